/* SPDX-License-Identifier: Apache-2.0
 * Devices: the one CPU there is, as hardware and as what the CPU provider runs on. There are no
 * streams, no providers from other libraries and no models compiled for a device. */
#include "ort_customop.h"
#include "ort_devices.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

struct OrtHardwareDevice {
    const char *vendor;
    uint32_t vendor_id, device_id;
    OrtKeyValuePairs metadata;
};

struct OrtEpDevice {
    const struct OrtHardwareDevice *device;
    OrtKeyValuePairs metadata, options;
};

struct OrtDeviceEpIncompatibilityDetails {
    uint32_t reasons;
};

static const char provider_name[] = "CPUExecutionProvider";
static struct OrtHardwareDevice cpu = {.vendor = "unknown"};
static struct OrtEpDevice cpu_provider = {.device = &cpu};
static const OrtEpDevice *const devices[] = {&cpu_provider};
static pthread_once_t found = PTHREAD_ONCE_INIT;

/* The maker of the CPU with its PCI number. */
static void find_cpu(void)
{
#if defined(__x86_64__) || defined(__i386__)
    static const struct {
        const char *text, *vendor;
        uint32_t id;
    } makers[] = {{"AuthenticAMD", "AMD", 0x1022}, {"GenuineIntel", "Intel", 0x8086}};
    unsigned int highest = 0, text[3] = {0};
    if (__get_cpuid(0, &highest, &text[0], &text[2], &text[1]))
        for (size_t i = 0; i < sizeof makers / sizeof makers[0]; i++)
            if (memcmp(text, makers[i].text, sizeof text) == 0) {
                cpu.vendor = makers[i].vendor;
                cpu.vendor_id = makers[i].id;
            }
#endif
    ort_release_status(
        ort_pairs_set(&cpu_provider.metadata, "version", OrtGetApiBase()->GetVersionString()));
}

static OrtStatusPtr get_ep_devices(const OrtEnv *env, const OrtEpDevice *const **out, size_t *count)
{
    (void)env;
    pthread_once(&found, find_cpu);
    *out = devices;
    *count = 1;
    return NULL;
}

static OrtStatusPtr get_num_hardware_devices(const OrtEnv *env, size_t *out)
{
    (void)env;
    *out = 1;
    return NULL;
}

static OrtStatusPtr get_hardware_devices(const OrtEnv *env, const OrtHardwareDevice **out,
                                         size_t room)
{
    (void)env;
    if (room < 1)
        return ort_fail(ORT_INVALID_ARGUMENT,
                        "num_devices is less than the number of available hardware devices. Use "
                        "GetNumHardwareDevices() to get the required array size.");
    pthread_once(&found, find_cpu);
    out[0] = &cpu;
    return NULL;
}

static OrtHardwareDeviceType hardware_device_type(const OrtHardwareDevice *device)
{
    (void)device;
    return OrtHardwareDeviceType_CPU;
}

static uint32_t hardware_device_vendor_id(const OrtHardwareDevice *device)
{
    return device->vendor_id;
}

static const char *hardware_device_vendor(const OrtHardwareDevice *device)
{
    return device->vendor;
}

static uint32_t hardware_device_device_id(const OrtHardwareDevice *device)
{
    return device->device_id;
}

static const OrtKeyValuePairs *hardware_device_metadata(const OrtHardwareDevice *device)
{
    return &device->metadata;
}

static const char *ep_device_ep_name(const OrtEpDevice *device)
{
    (void)device;
    return provider_name;
}

static const char *ep_device_ep_vendor(const OrtEpDevice *device)
{
    (void)device;
    return "Sardonyx";
}

static const OrtKeyValuePairs *ep_device_ep_metadata(const OrtEpDevice *device)
{
    return &device->metadata;
}

static const OrtKeyValuePairs *ep_device_ep_options(const OrtEpDevice *device)
{
    return &device->options;
}

static const OrtHardwareDevice *ep_device_device(const OrtEpDevice *device)
{
    return device->device;
}

/* The CPU provider has no allocators of its own. */
static const OrtMemoryInfo *ep_device_memory_info(const OrtEpDevice *device,
                                                  OrtDeviceMemoryType type)
{
    (void)device, (void)type;
    return NULL;
}

static OrtStatusPtr session_get_ep_device_for_inputs(const OrtSession *session,
                                                     const OrtEpDevice **out, size_t count)
{
    if (count != session->count_inputs)
        return ort_fail(ORT_FAIL, "Number of inputs mismatch. Expected %zu, got %zu",
                        session->count_inputs, count);
    pthread_once(&found, find_cpu);
    for (size_t i = 0; i < count; i++)
        out[i] = &cpu_provider;
    return NULL;
}

static OrtStatusPtr session_get_ep_device_for_outputs(const OrtSession *session,
                                                      const OrtEpDevice **out, size_t count)
{
    if (count != session->count_outputs)
        return ort_fail(ORT_FAIL, "Number of outputs mismatch. Expected %zu, got %zu",
                        session->count_outputs, count);
    pthread_once(&found, find_cpu);
    for (size_t i = 0; i < count; i++)
        out[i] = &cpu_provider;
    return NULL;
}

/* ---- which device fits ---- */

static OrtStatusPtr get_incompatibility_details(const OrtEnv *env, const char *provider,
                                                const OrtHardwareDevice *device,
                                                OrtDeviceEpIncompatibilityDetails **out)
{
    (void)env, (void)device;
    *out = NULL;
    if (strcmp(provider, provider_name) != 0)
        return ort_fail(ORT_INVALID_ARGUMENT, "No valid factory found for execution provider '%s'.",
                        provider);
    *out = calloc(1, sizeof **out);
    return *out ? NULL : ort_no_memory();
}

static OrtStatusPtr get_reasons_bitmask(const OrtDeviceEpIncompatibilityDetails *details,
                                        uint32_t *out)
{
    *out = details->reasons;
    return NULL;
}

static OrtStatusPtr get_notes(const OrtDeviceEpIncompatibilityDetails *details, const char **out)
{
    (void)details;
    *out = NULL;
    return NULL;
}

static OrtStatusPtr get_incompatibility_code(const OrtDeviceEpIncompatibilityDetails *details,
                                             int32_t *out)
{
    (void)details;
    *out = 0;
    return NULL;
}

static void release_incompatibility_details(OrtDeviceEpIncompatibilityDetails *details)
{
    free(details);
}

static OrtStatusPtr get_model_compatibility(const OrtEpDevice *const *of, size_t count,
                                            const char *info, OrtCompiledModelCompatibility *out)
{
    if (!of || count == 0) return ort_fail(ORT_INVALID_ARGUMENT, "Invalid argument provided.");
    if (!info || !out) return ort_fail(ORT_INVALID_ARGUMENT, "Invalid argument provided.");
    *out = OrtCompiledModelCompatibility_EP_NOT_APPLICABLE;
    return NULL;
}

/* What a model was compiled for is told by a provider that compiles. */
static OrtStatusPtr get_compatibility(const char *path, const char *provider,
                                      OrtAllocator *allocator, char **out)
{
    (void)provider, (void)allocator;
    *out = NULL;
    if (access(path, R_OK) == 0) return NULL;
    return ort_fail(ORT_NO_SUCHFILE, "Failed to open model file: %s", path);
}

static OrtStatusPtr get_compatibility_of_bytes(const void *bytes, size_t size, const char *provider,
                                               OrtAllocator *allocator, char **out)
{
    (void)provider, (void)allocator;
    *out = NULL;
    if (bytes && size) return NULL;
    return ort_fail(ORT_INVALID_ARGUMENT, "model_data is NULL or empty");
}

/* ---- shared allocators ---- */

static OrtStatusPtr create_shared(OrtEnv *env, const OrtEpDevice *device,
                                  OrtDeviceMemoryType memory, OrtAllocatorType type,
                                  const OrtKeyValuePairs *options, OrtAllocator **out)
{
    (void)env, (void)device, (void)memory, (void)type, (void)options;
    *out = NULL;
    return ort_fail(ORT_INVALID_ARGUMENT, "the CPU provider's memory has no allocator of its own");
}

static OrtStatusPtr get_shared(OrtEnv *env, const OrtMemoryInfo *memory, OrtAllocator **out)
{
    (void)env;
    *out = memory->device == OrtMemoryInfoDeviceType_CPU ? ort_default_allocator() : NULL;
    return NULL;
}

static OrtStatusPtr release_shared(OrtEnv *env, const OrtEpDevice *device,
                                   OrtDeviceMemoryType memory)
{
    (void)env, (void)device, (void)memory;
    return ort_fail(ORT_INVALID_ARGUMENT, "the CPU provider's memory has no allocator of its own");
}

static OrtStatusPtr create_registered(OrtEnv *env, const char *provider,
                                      const OrtMemoryInfo *memory, const OrtArenaCfg *arena,
                                      const char *const *keys, const char *const *values,
                                      size_t count)
{
    (void)keys, (void)values, (void)count;
    if (strcmp(provider, provider_name) != 0)
        return ort_fail(ORT_INVALID_ARGUMENT,
                        "%s is not implemented in CreateAndRegisterAllocatorV2()", provider);
    return OrtGetApiBase()->GetApi(ORT_API_VERSION)->CreateAndRegisterAllocator(env, memory, arena);
}

/* ---- streams, and providers from other libraries ---- */

static OrtStatusPtr create_sync_stream(const OrtEpDevice *device, const OrtKeyValuePairs *options,
                                       OrtSyncStream **out)
{
    (void)device, (void)options;
    *out = NULL;
    return ort_fail(ORT_INVALID_ARGUMENT,
                    "ep_device does not use DEFAULT memory of a non-CPU device.");
}

static void *get_stream_handle(OrtSyncStream *stream)
{
    (void)stream;
    return NULL;
}

static void release_sync_stream(OrtSyncStream *stream)
{
    (void)stream; /* there are none */
}

static void set_sync_stream(OrtRunOptions *options, OrtSyncStream *stream)
{
    (void)options, (void)stream; /* there are none */
}

/* Providers come from a real library (ort_providers.c); one by itself cannot be asked for work. */
static OrtStatusPtr register_library(OrtEnv *env, const char *name, const char *path)
{
    void *library = NULL;
    (void)env;
    ORT_TRY(ort_library_open(path, &library));
    dlclose(library);
    return ort_fail(ORT_NOT_IMPLEMENTED,
                    "libraries of one execution provider are not used: %s (%s)", name, path);
}

static OrtStatusPtr unregister_library(OrtEnv *env, const char *name)
{
    (void)env;
    return ort_fail(ORT_FAIL, "Execution provider library: %s was not registered.", name);
}

/* ---- the choice of a device ---- */

static OrtStatusPtr append_v2(OrtSessionOptions *options, OrtEnv *env,
                              const OrtEpDevice *const *chosen, size_t count,
                              const char *const *keys, const char *const *values, size_t pairs)
{
    OrtKeyValuePairs with = {0};
    OrtStatusPtr failed = NULL;
    (void)env;
    if (count == 0)
        return ort_fail(ORT_INVALID_ARGUMENT, "Must provide one or more OrtEpDevice instances.");
    for (size_t i = 0; i < count; i++)
        if (chosen[i] != &cpu_provider)
            return ort_fail(ORT_INVALID_ARGUMENT, "OrtEpDevice %zu is none of this library", i);
    for (size_t i = 0; i < pairs && !failed; i++)
        failed = ort_pairs_set(&with, keys[i], values[i]);
    if (!failed) failed = ort_options_add_provider(options, provider_name, &with);
    ort_pairs_deinit(&with);
    return failed;
}

static OrtStatusPtr set_policy(OrtSessionOptions *options, OrtExecutionProviderDevicePolicy policy)
{
    if (policy < OrtExecutionProviderDevicePolicy_DEFAULT ||
        policy > OrtExecutionProviderDevicePolicy_MIN_OVERALL_POWER)
        return ort_fail(ORT_INVALID_ARGUMENT, "policy %d is unknown", (int)policy);
    options->choose_device = NULL;
    return NULL; /* with one device all policies choose the same */
}

static OrtStatusPtr set_delegate(OrtSessionOptions *options, EpSelectionDelegate choose,
                                 void *state)
{
    options->choose_device = choose;
    options->choose_state = state;
    return NULL;
}

OrtStatusPtr ort_choose_device(const OrtSessionOptions *options, const sdx_model *model)
{
    enum { MAX_CHOSEN = 8 };
    const OrtEpDevice *chosen[MAX_CHOSEN] = {NULL};
    OrtKeyValuePairs about = {0}, none = {0};
    size_t count = 0;
    if (!options->choose_device || options->count_providers > 0) return NULL;
    pthread_once(&found, find_cpu);
    const sdx_model_facts *facts = sdx_model_get_facts(model);
    OrtStatusPtr failed = NULL;
    for (int i = 0; i < facts->count_metadata && !failed; i++)
        failed = ort_pairs_set(&about, facts->metadata_keys[i], facts->metadata_values[i]);
    if (!failed)
        failed = options->choose_device((const OrtEpDevice **)(uintptr_t)devices, 1, &about, &none,
                                        chosen, MAX_CHOSEN, &count, options->choose_state);
    if (!failed && (count == 0 || count > MAX_CHOSEN))
        failed = ort_fail(ORT_FAIL, "the function that selects devices chose %zu of 1", count);
    ort_pairs_deinit(&about);
    return failed;
}

void ort_fill_devices(OrtApi *api)
{
    api->GetEpDevices = get_ep_devices;
    api->GetNumHardwareDevices = get_num_hardware_devices;
    api->GetHardwareDevices = get_hardware_devices;
    api->HardwareDevice_Type = hardware_device_type;
    api->HardwareDevice_VendorId = hardware_device_vendor_id;
    api->HardwareDevice_Vendor = hardware_device_vendor;
    api->HardwareDevice_DeviceId = hardware_device_device_id;
    api->HardwareDevice_Metadata = hardware_device_metadata;
    api->EpDevice_EpName = ep_device_ep_name;
    api->EpDevice_EpVendor = ep_device_ep_vendor;
    api->EpDevice_EpMetadata = ep_device_ep_metadata;
    api->EpDevice_EpOptions = ep_device_ep_options;
    api->EpDevice_Device = ep_device_device;
    api->EpDevice_MemoryInfo = ep_device_memory_info;
    api->SessionGetEpDeviceForInputs = session_get_ep_device_for_inputs;
    api->SessionGetEpDeviceForOutputs = session_get_ep_device_for_outputs;
    api->GetHardwareDeviceEpIncompatibilityDetails = get_incompatibility_details;
    api->DeviceEpIncompatibilityDetails_GetReasonsBitmask = get_reasons_bitmask;
    api->DeviceEpIncompatibilityDetails_GetNotes = get_notes;
    api->DeviceEpIncompatibilityDetails_GetErrorCode = get_incompatibility_code;
    api->ReleaseDeviceEpIncompatibilityDetails = release_incompatibility_details;
    api->GetModelCompatibilityForEpDevices = get_model_compatibility;
    api->GetCompatibilityInfoFromModel = get_compatibility;
    api->GetCompatibilityInfoFromModelBytes = get_compatibility_of_bytes;
    api->CreateSharedAllocator = create_shared;
    api->GetSharedAllocator = get_shared;
    api->ReleaseSharedAllocator = release_shared;
    api->CreateAndRegisterAllocatorV2 = create_registered;
    api->RunOptionsSetSyncStream = set_sync_stream;
    api->CreateSyncStreamForEpDevice = create_sync_stream;
    api->SyncStream_GetHandle = get_stream_handle;
    api->ReleaseSyncStream = release_sync_stream;
    api->RegisterExecutionProviderLibrary = register_library;
    api->UnregisterExecutionProviderLibrary = unregister_library;
    api->SessionOptionsAppendExecutionProvider_V2 = append_v2;
    api->SessionOptionsSetEpSelectionPolicy = set_policy;
    api->SessionOptionsSetEpSelectionPolicyDelegate = set_delegate;
}
