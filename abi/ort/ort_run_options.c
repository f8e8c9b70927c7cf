/* SPDX-License-Identifier: Apache-2.0
 * Run options. Setting the flag that ends runs cancels those under way with the options. */
#include "ort_objects.h"

#include <stdlib.h>
#include <string.h>

static OrtStatusPtr create(OrtRunOptions **out)
{
    OrtRunOptions *options = calloc(1, sizeof *options);
    *out = options;
    if (!options) return ort_no_memory();
    options->severity = -1;
    pthread_mutex_init(&options->lock, NULL);
    return NULL;
}

static void release(OrtRunOptions *options)
{
    if (!options) return;
    free(options->tag);
    free((void *)options->adapters);
    free(options->profile_prefix);
    ort_pairs_deinit(&options->config);
    pthread_mutex_destroy(&options->lock);
    free(options);
}

static OrtStatusPtr set_verbosity(OrtRunOptions *options, int level)
{
    options->verbosity = level;
    return NULL;
}

static OrtStatusPtr get_verbosity(const OrtRunOptions *options, int *out)
{
    *out = options->verbosity;
    return NULL;
}

static OrtStatusPtr set_severity(OrtRunOptions *options, int level)
{
    options->severity = level;
    return NULL;
}

static OrtStatusPtr get_severity(const OrtRunOptions *options, int *out)
{
    *out = options->severity;
    return NULL;
}

static OrtStatusPtr set_tag(OrtRunOptions *options, const char *tag)
{
    return ort_set_text(&options->tag, tag);
}

static OrtStatusPtr get_tag(const OrtRunOptions *options, const char **out)
{
    *out = options->tag ? options->tag : "";
    return NULL;
}

static OrtStatusPtr enable_profiling(OrtRunOptions *options, const char *prefix)
{
    if (!prefix) return ort_status(ORT_INVALID_ARGUMENT, "the prefix of the profile is NULL");
    return ort_set_text(&options->profile_prefix, prefix);
}

static OrtStatusPtr disable_profiling(OrtRunOptions *options)
{
    free(options->profile_prefix);
    options->profile_prefix = NULL;
    return NULL;
}

static OrtStatusPtr set_terminate(OrtRunOptions *options)
{
    pthread_mutex_lock(&options->lock);
    atomic_store(&options->terminate, true);
    for (struct ort_running *r = options->running; r; r = r->next)
        sdx_cancel(r->session);
    pthread_mutex_unlock(&options->lock);
    return NULL;
}

static OrtStatusPtr unset_terminate(OrtRunOptions *options)
{
    atomic_store(&options->terminate, false);
    return NULL;
}

static OrtStatusPtr add_config(OrtRunOptions *options, const char *key, const char *value)
{
    enum { KEY_MAX = 1024 };
    if (!key || !*key || strlen(key) > KEY_MAX)
        return ort_fail(ORT_INVALID_ARGUMENT,
                        "Config key is empty or longer than maximum length %d", KEY_MAX);
    return ort_pairs_set(&options->config, key, value);
}

static const char *get_config(const OrtRunOptions *options, const char *key)
{
    return ort_pairs_get(&options->config, key);
}

void ort_fill_run_options(OrtApi *api)
{
    api->CreateRunOptions = create;
    api->ReleaseRunOptions = release;
    api->RunOptionsSetRunLogVerbosityLevel = set_verbosity;
    api->RunOptionsGetRunLogVerbosityLevel = get_verbosity;
    api->RunOptionsSetRunLogSeverityLevel = set_severity;
    api->RunOptionsGetRunLogSeverityLevel = get_severity;
    api->RunOptionsSetRunTag = set_tag;
    api->RunOptionsGetRunTag = get_tag;
    api->RunOptionsEnableProfiling = enable_profiling;
    api->RunOptionsDisableProfiling = disable_profiling;
    api->RunOptionsSetTerminate = set_terminate;
    api->RunOptionsUnsetTerminate = unset_terminate;
    api->AddRunConfigEntry = add_config;
    api->GetRunConfigEntry = get_config;
}
