/* SPDX-License-Identifier: Apache-2.0
 * Providers that are not in this library: their options, which programs may fill in before they
 * learn it, and what is said when they are appended. */
#include "ort_provider_start.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Options by name: texts, and addresses that a program hands over. */
struct options {
    struct OrtKeyValuePairs pairs;
    char **names;
    void **addresses;
    size_t count;
};

struct OrtCUDAProviderOptionsV2 {
    struct options options;
};

struct OrtTensorRTProviderOptionsV2 {
    struct options options;
};

static void deinit(struct options *options)
{
    for (size_t i = 0; i < options->count; i++)
        free(options->names[i]);
    free(options->names);
    free(options->addresses);
    ort_pairs_deinit(&options->pairs);
}

static OrtStatusPtr update(struct options *options, const char *const *keys,
                           const char *const *values, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!keys[i] || !*keys[i] || !values[i] || !*values[i])
            return ort_fail(ORT_FAIL, "key/value cannot be empty");
        ORT_TRY(ort_pairs_set(&options->pairs, keys[i], values[i]));
    }
    return NULL;
}

/* "key=value;key=value" */
static OrtStatusPtr as_text(const struct options *options, OrtAllocator *allocator, char **out)
{
    size_t size = 1;
    for (size_t i = 0; i < options->pairs.count; i++)
        size += strlen(options->pairs.keys[i]) + strlen(options->pairs.values[i]) + 2;
    *out = allocator->Alloc(allocator, size);
    if (!*out) return ort_no_memory();
    char *at = *out;
    *at = '\0';
    for (size_t i = 0; i < options->pairs.count; i++) {
        if (i) *at++ = ';';
        at = stpcpy(stpcpy(stpcpy(at, options->pairs.keys[i]), "="), options->pairs.values[i]);
    }
    return NULL;
}

static OrtStatusPtr set_address(struct options *options, const char *name, void *address)
{
    for (size_t i = 0; i < options->count; i++) {
        if (strcmp(options->names[i], name) != 0) continue;
        options->addresses[i] = address;
        return NULL;
    }
    char *own = NULL;
    ORT_TRY(ort_grow(&options->names, options->count, sizeof *options->names));
    ORT_TRY(ort_grow(&options->addresses, options->count, sizeof *options->addresses));
    ORT_TRY(ort_set_text(&own, name));
    options->names[options->count] = own;
    options->addresses[options->count++] = address;
    return NULL;
}

static OrtStatusPtr get_address(const struct options *options, const char *name, void **out)
{
    *out = NULL;
    for (size_t i = 0; i < options->count; i++)
        if (strcmp(options->names[i], name) == 0) *out = options->addresses[i];
    return NULL;
}

/* The struct of options of the first releases begins with the device; what follows in it is left at
 * its default. */
static OrtStatusPtr append_old(OrtSessionOptions *to, const char *provider, const void *options,
                               const char *missing)
{
    struct OrtKeyValuePairs pairs = {0};
    char text[16];
    int device = 0;
    if (options) memcpy(&device, options, sizeof device);
    snprintf(text, sizeof text, "%d", device);
    OrtStatusPtr status = ort_pairs_set(&pairs, "device_id", text);
    if (!status) status = ort_provider_start(to, provider, &pairs, ORT_FAIL, missing);
    ort_pairs_deinit(&pairs);
    return status;
}

/* X(name in the table, of the provider, what messages call it when it is appended) */
#define WITH_OPTIONS(X)                                                                            \
    X(CUDA, "CUDAExecutionProvider", "OrtSessionOptionsAppendExecutionProvider_Cuda")              \
    X(TensorRT, "TensorrtExecutionProvider", "OrtSessionOptionsAppendExecutionProvider_TensorRT")
#define FUNCTIONS(name, provider, who)                                                             \
    static OrtStatusPtr create_##name(Ort##name##ProviderOptionsV2 **out)                          \
    {                                                                                              \
        *out = calloc(1, sizeof **out);                                                            \
        return *out ? NULL : ort_no_memory();                                                      \
    }                                                                                              \
    static void release_##name(Ort##name##ProviderOptionsV2 *options)                              \
    {                                                                                              \
        if (options) deinit(&options->options);                                                    \
        free(options);                                                                             \
    }                                                                                              \
    static OrtStatusPtr update_##name(Ort##name##ProviderOptionsV2 *options,                       \
                                      const char *const *keys, const char *const *values,          \
                                      size_t count)                                                \
    {                                                                                              \
        return update(&options->options, keys, values, count);                                     \
    }                                                                                              \
    static OrtStatusPtr text_##name(const Ort##name##ProviderOptionsV2 *options,                   \
                                    OrtAllocator *allocator, char **out)                           \
    {                                                                                              \
        return as_text(&options->options, allocator, out);                                         \
    }                                                                                              \
    static OrtStatusPtr set_##name(Ort##name##ProviderOptionsV2 *options, const char *key,         \
                                   void *value)                                                    \
    {                                                                                              \
        return set_address(&options->options, key, value);                                         \
    }                                                                                              \
    static OrtStatusPtr get_##name(const Ort##name##ProviderOptionsV2 *options, const char *key,   \
                                   void **out)                                                     \
    {                                                                                              \
        return get_address(&options->options, key, out);                                           \
    }                                                                                              \
    static OrtStatusPtr append_##name##_v2(OrtSessionOptions *to,                                  \
                                           const Ort##name##ProviderOptionsV2 *options)            \
    {                                                                                              \
        return ort_provider_start(to, provider, options ? &options->options.pairs : NULL,          \
                                  ORT_FAIL, who ": Failed to load shared library");                \
    }                                                                                              \
    static OrtStatusPtr append_##name(OrtSessionOptions *to,                                       \
                                      const Ort##name##ProviderOptions *options)                   \
    {                                                                                              \
        return append_old(to, provider, options, who ": Failed to load shared library");           \
    }
WITH_OPTIONS(FUNCTIONS)
#undef FUNCTIONS

/* X(name in the table, why there are no options of it) */
#define WITHOUT_OPTIONS(X)                                                                         \
    X(ROCM, "ROCM execution provider is not enabled in this build. ")                              \
    X(CANN, "CANN execution provider is not enabled in this build.")                               \
    X(Dnnl, "oneDNN execution provider is not enabled in this build.")
#define FUNCTIONS(name, why)                                                                       \
    static OrtStatusPtr create_##name(Ort##name##ProviderOptions **out)                            \
    {                                                                                              \
        *out = NULL;                                                                               \
        return ort_status(ORT_FAIL, why);                                                          \
    }                                                                                              \
    static void release_##name(Ort##name##ProviderOptions *options)                                \
    {                                                                                              \
        (void)options; /* there are none */                                                        \
    }                                                                                              \
    static OrtStatusPtr update_##name(Ort##name##ProviderOptions *options,                         \
                                      const char *const *keys, const char *const *values,          \
                                      size_t count)                                                \
    {                                                                                              \
        (void)options, (void)keys, (void)values, (void)count;                                      \
        return ort_status(ORT_FAIL, why);                                                          \
    }                                                                                              \
    static OrtStatusPtr text_##name(const Ort##name##ProviderOptions *options,                     \
                                    OrtAllocator *allocator, char **out)                           \
    {                                                                                              \
        (void)options, (void)allocator;                                                            \
        *out = NULL;                                                                               \
        return ort_status(ORT_FAIL, why);                                                          \
    }                                                                                              \
    static OrtStatusPtr append_##name(OrtSessionOptions *to,                                       \
                                      const Ort##name##ProviderOptions *options)                   \
    {                                                                                              \
        (void)to, (void)options;                                                                   \
        return ort_status(ORT_FAIL, why);                                                          \
    }
WITHOUT_OPTIONS(FUNCTIONS)
#undef FUNCTIONS

static OrtStatusPtr append_migraphx(OrtSessionOptions *to, const OrtMIGraphXProviderOptions *with)
{
    return append_old(to, "MIGraphXExecutionProvider", with,
                      "MIGraphX execution provider is not enabled in this build.");
}

static OrtStatusPtr append_openvino(OrtSessionOptions *to, const OrtOpenVINOProviderOptions *with)
{
    (void)to, (void)with;
    return ort_status(ORT_FAIL, "SessionOptionsAppendExecutionProvider_OpenVINO: Failed to load "
                                "shared library");
}

static OrtStatusPtr append_pairs(OrtSessionOptions *to, const char *provider,
                                 const char *const *keys, const char *const *values, size_t count,
                                 const char *missing)
{
    struct OrtKeyValuePairs pairs = {0};
    OrtStatusPtr status = NULL;
    for (size_t i = 0; i < count && !status; i++)
        status = ort_pairs_set(&pairs, keys[i], values[i]);
    if (!status) status = ort_provider_start(to, provider, &pairs, ORT_FAIL, missing);
    ort_pairs_deinit(&pairs);
    return status;
}

static OrtStatusPtr append_openvino_v2(OrtSessionOptions *to, const char *const *keys,
                                       const char *const *values, size_t count)
{
    return append_pairs(to, "OpenVINOExecutionProvider", keys, values, count,
                        "SessionOptionsAppendExecutionProvider_OpenVINO_V2: Failed to load "
                        "shared library");
}

static OrtStatusPtr append_vitis(OrtSessionOptions *to, const char *const *keys,
                                 const char *const *values, size_t count)
{
    return append_pairs(to, "VitisAIExecutionProvider", keys, values, count,
                        "SessionOptionsAppendExecutionProvider_VitisAI: Failed to load "
                        "shared library");
}

static const char no_gpu[] = "CUDA execution provider is either not enabled or not available.";

static OrtStatusPtr set_gpu(int device)
{
    (void)device;
    return ort_status(ORT_FAIL, no_gpu);
}

static OrtStatusPtr get_gpu(int *device)
{
    (void)device;
    return ort_status(ORT_FAIL, no_gpu);
}

void ort_fill_provider_options(OrtApi *api)
{
    api->CreateCUDAProviderOptions = create_CUDA;
    api->ReleaseCUDAProviderOptions = release_CUDA;
    api->UpdateCUDAProviderOptions = update_CUDA;
    api->UpdateCUDAProviderOptionsWithValue = set_CUDA;
    api->GetCUDAProviderOptionsAsString = text_CUDA;
    api->GetCUDAProviderOptionsByName = get_CUDA;
    api->SessionOptionsAppendExecutionProvider_CUDA = append_CUDA;
    api->SessionOptionsAppendExecutionProvider_CUDA_V2 = append_CUDA_v2;
    api->CreateTensorRTProviderOptions = create_TensorRT;
    api->ReleaseTensorRTProviderOptions = release_TensorRT;
    api->UpdateTensorRTProviderOptions = update_TensorRT;
    api->UpdateTensorRTProviderOptionsWithValue = set_TensorRT;
    api->GetTensorRTProviderOptionsAsString = text_TensorRT;
    api->GetTensorRTProviderOptionsByName = get_TensorRT;
    api->SessionOptionsAppendExecutionProvider_TensorRT = append_TensorRT;
    api->SessionOptionsAppendExecutionProvider_TensorRT_V2 = append_TensorRT_v2;
    api->CreateROCMProviderOptions = create_ROCM;
    api->ReleaseROCMProviderOptions = release_ROCM;
    api->UpdateROCMProviderOptions = update_ROCM;
    api->GetROCMProviderOptionsAsString = text_ROCM;
    api->SessionOptionsAppendExecutionProvider_ROCM = append_ROCM;
    api->CreateCANNProviderOptions = create_CANN;
    api->ReleaseCANNProviderOptions = release_CANN;
    api->UpdateCANNProviderOptions = update_CANN;
    api->GetCANNProviderOptionsAsString = text_CANN;
    api->SessionOptionsAppendExecutionProvider_CANN = append_CANN;
    api->CreateDnnlProviderOptions = create_Dnnl;
    api->ReleaseDnnlProviderOptions = release_Dnnl;
    api->UpdateDnnlProviderOptions = update_Dnnl;
    api->GetDnnlProviderOptionsAsString = text_Dnnl;
    api->SessionOptionsAppendExecutionProvider_Dnnl = append_Dnnl;
    api->SessionOptionsAppendExecutionProvider_MIGraphX = append_migraphx;
    api->SessionOptionsAppendExecutionProvider_OpenVINO = append_openvino;
    api->SessionOptionsAppendExecutionProvider_OpenVINO_V2 = append_openvino_v2;
    api->SessionOptionsAppendExecutionProvider_VitisAI = append_vitis;
    api->SetCurrentGpuDeviceId = set_gpu;
    api->GetCurrentGpuDeviceId = get_gpu;
}
