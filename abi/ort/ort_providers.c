/* SPDX-License-Identifier: Apache-2.0
 * Which providers there are, which build this is, and the choice of providers for a session. */
#include "ort_inside.h"
#include "ort_provider_start.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static OrtStatusPtr available(char ***out, int *count)
{
    return ort_provider_names(false, out, count);
}

static OrtStatusPtr release_available(char **names, int count)
{
    for (int i = 0; i < count; i++)
        free(names[i]);
    free(names);
    return NULL;
}

static const char *build_info(void)
{
    return "ORT Build Info: git-branch=sardonyx, git-commit-id=" SDX_VERSION_STRING
           ", build type=Release";
}

/* X(short name, name) of the providers that the function below may be asked for. */
#define PROVIDERS(X)                                                                               \
    X("DML", "DmlExecutionProvider")                                                               \
    X("QNN", "QNNExecutionProvider")                                                               \
    X("OpenVINO", "OpenVINOExecutionProvider")                                                     \
    X("SNPE", "SNPEExecutionProvider")                                                             \
    X("XNNPACK", "XnnpackExecutionProvider")                                                       \
    X("WEBNN", "WebNNExecutionProvider")                                                           \
    X("WebGPU", "WebGpuExecutionProvider")                                                         \
    X("AZURE", "AzureExecutionProvider")                                                           \
    X("JS", "JsExecutionProvider")                                                                 \
    X("VitisAI", "VitisAIExecutionProvider")                                                       \
    X("CoreML", "CoreMLExecutionProvider")                                                         \
    X("NvTensorRtRtx", "NvTensorRTRTXExecutionProvider")                                           \
    X("MIGraphX", "MIGraphXExecutionProvider")

/* Ours alone: what the real library that SDX_ORT_LIBRARY names has for the CPU. */
static const char cpu_of_library[] = "ort:CPUExecutionProvider";

static OrtStatusPtr append(OrtSessionOptions *options, const char *name, const char *const *keys,
                           const char *const *values, size_t count)
{
    struct OrtKeyValuePairs pairs = {0};
    OrtStatusPtr status = NULL;
    const bool is_cpu = !strcmp(name, "CPU") || !strcmp(name, "CPUExecutionProvider");
    const bool is_auto = !strcmp(name, "auto"); /* ours alone as well: what starts */
    const char *known = !strcmp(name, cpu_of_library) ? cpu_of_library : NULL;
    char missing[1024];
#define FULL_NAME(brief, full)                                                                     \
    if (!strcmp(name, brief) || !strcmp(name, full)) known = full;
    PROVIDERS(FULL_NAME)
#undef FULL_NAME
#define LIST(brief, full) "'" brief "'/'" full "', "
    if (known)
        snprintf(missing, sizeof missing, "%s execution provider is not supported in this build. ",
                 name);
    else
        snprintf(missing, sizeof missing,
                 "Unknown provider name '%s'. Currently supported values are " PROVIDERS(
                     LIST) "and 'CPU'/'CPUExecutionProvider'.",
                 name);
#undef LIST
    for (size_t i = 0; i < count && !status; i++)
        status = ort_pairs_set(&pairs, keys[i], values[i]);
    if (!status)
        status =
            is_cpu || is_auto
                ? ort_options_add_provider(options, is_cpu ? "CPUExecutionProvider" : name, &pairs)
                : ort_provider_start(options, known ? known : name, &pairs, ORT_INVALID_ARGUMENT,
                                     missing);
    ort_pairs_deinit(&pairs);
    return status;
}

/* The Java binding imports this one by name. */
__attribute__((visibility("default"))) OrtStatusPtr
OrtSessionOptionsAppendExecutionProvider_CPU(OrtSessionOptions *options, int use_arena)
{
    options->cpu_arena = use_arena != 0;
    return append(options, "CPU", NULL, NULL, 0);
}

static const OrtTrainingApi *training_api(uint32_t version)
{
    (void)version;
    return NULL;
}

/* That of DirectML is the only one there is anywhere. */
static OrtStatusPtr provider_api(const char *name, uint32_t version, const void **out)
{
    (void)name, (void)version;
    *out = NULL;
    return ort_status(ORT_INVALID_ARGUMENT, "Specified provider is not supported.");
}

/* There are none; programs ask by name and get NULL for what a library lacks. */
static const void *experimental_function(const char *name)
{
    (void)name;
    return NULL;
}

void ort_fill_providers(OrtApi *api)
{
    api->GetExecutionProviderApi = provider_api;
    api->GetExperimentalFunction = experimental_function;
    api->GetAvailableProviders = available;
    api->ReleaseAvailableProviders = release_available;
    api->GetBuildInfoString = build_info;
    api->SessionOptionsAppendExecutionProvider = append;
    api->GetTrainingApi = training_api;
}
