/* SPDX-License-Identifier: Apache-2.0
 * Session options: what they keep until a session is made of them. */
#include "ort_objects.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_MAX = 1024, VALUE_MAX = 8192 };

/* ---- life ---- */

static OrtStatusPtr create_options(OrtSessionOptions **out)
{
    OrtSessionOptions *options = calloc(1, sizeof *options);
    *out = options;
    if (!options) return ort_no_memory();
    options->level = ORT_ENABLE_ALL;
    options->per_session_threads = options->mem_pattern = options->cpu_arena = true;
    options->severity = -1;
    return NULL;
}

void ort_options_free(OrtSessionOptions *options)
{
    if (!options) return;
    free(options->log_id);
    free(options->profile_prefix);
    free(options->optimized_path);
    ort_pairs_deinit(&options->config);
    for (size_t i = 0; i < options->count_dims; i++)
        free(options->dims[i].name);
    for (size_t i = 0; i < options->count_initializers; i++) {
        free(options->initializers[i].name);
        ort_value_release(options->initializers[i].value);
    }
    for (size_t i = 0; i < options->count_providers; i++) {
        free(options->providers[i].name);
        ort_pairs_deinit(&options->providers[i].options);
    }
    for (size_t i = 0; i < options->count_libraries; i++)
        dlclose(options->libraries[i]);
    for (size_t i = 0; i < options->count_files; i++)
        ort_file_release(options->files[i]);
    free(options->files);
    free(options->dims);
    free(options->initializers);
    free(options->providers);
    free(options->domains);
    free(options->libraries);
    free(options);
}

static OrtStatusPtr copy_text(char **to, const char *from)
{
    return from ? ort_set_text(to, from) : NULL;
}

static OrtStatusPtr add_dim(OrtSessionOptions *options, const char *name, bool is_denotation,
                            int64_t length)
{
    const size_t at = options->count_dims;
    ORT_TRY(ort_grow(&options->dims, at, sizeof *options->dims));
    options->dims[at] = (struct ort_dim_override){NULL, is_denotation, length};
    ORT_TRY(ort_set_text(&options->dims[at].name, name));
    options->count_dims++;
    return NULL;
}

static OrtStatusPtr add_initializer(OrtSessionOptions *options, const char *name,
                                    const OrtValue *value)
{
    const size_t at = options->count_initializers;
    ORT_TRY(ort_grow(&options->initializers, at, sizeof *options->initializers));
    options->initializers[at] = (struct ort_initializer){0};
    ORT_TRY(ort_set_text(&options->initializers[at].name, name));
    options->initializers[at].value = ort_value_retain(value);
    options->count_initializers++;
    return NULL;
}

OrtStatusPtr ort_options_add_provider(OrtSessionOptions *options, const char *name,
                                      const struct OrtKeyValuePairs *with)
{
    const size_t at = options->count_providers;
    ORT_TRY(ort_grow(&options->providers, at, sizeof *options->providers));
    options->providers[at] = (struct ort_provider){0};
    ORT_TRY(ort_set_text(&options->providers[at].name, name));
    options->count_providers++;
    return ort_pairs_copy(&options->providers[at].options, with);
}

OrtStatusPtr ort_options_add_domain(OrtSessionOptions *options, OrtCustomOpDomain *domain)
{
    ORT_TRY(ort_grow(&options->domains, options->count_domains, sizeof *options->domains));
    options->domains[options->count_domains++] = domain;
    return NULL;
}

OrtStatusPtr ort_options_add_library(OrtSessionOptions *options, void *library)
{
    ORT_TRY(ort_grow(&options->libraries, options->count_libraries, sizeof *options->libraries));
    options->libraries[options->count_libraries++] = library;
    return NULL;
}

/* The same library once more, so that each copy of the options closes its own. */
static void *open_again(void *library)
{
    Dl_info info;
    void *symbol = dlsym(library, "RegisterCustomOps");
    return symbol && dladdr(symbol, &info) ? dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD) : NULL;
}

static OrtStatusPtr copy_lists(const OrtSessionOptions *from, OrtSessionOptions *to)
{
    ORT_TRY(ort_pairs_copy(&to->config, &from->config));
    for (size_t i = 0; i < from->count_dims; i++)
        ORT_TRY(add_dim(to, from->dims[i].name, from->dims[i].is_denotation, from->dims[i].length));
    for (size_t i = 0; i < from->count_initializers; i++)
        ORT_TRY(add_initializer(to, from->initializers[i].name, from->initializers[i].value));
    for (size_t i = 0; i < from->count_files; i++) {
        ORT_TRY(ort_grow(&to->files, to->count_files, sizeof *to->files));
        atomic_fetch_add(&from->files[i]->refs, 1);
        to->files[to->count_files++] = from->files[i];
    }
    for (size_t i = 0; i < from->count_providers; i++)
        ORT_TRY(ort_options_add_provider(to, from->providers[i].name, &from->providers[i].options));
    for (size_t i = 0; i < from->count_domains; i++)
        ORT_TRY(ort_options_add_domain(to, from->domains[i]));
    for (size_t i = 0; i < from->count_libraries; i++) {
        void *again = open_again(from->libraries[i]);
        if (again) ORT_TRY(ort_options_add_library(to, again));
    }
    return NULL;
}

static OrtStatusPtr copy_members(const OrtSessionOptions *from, OrtSessionOptions *to)
{
    to->mode = from->mode;
    to->level = from->level;
    to->threads_intra = from->threads_intra;
    to->threads_inter = from->threads_inter;
    to->per_session_threads = from->per_session_threads;
    to->mem_pattern = from->mem_pattern;
    to->cpu_arena = from->cpu_arena;
    to->deterministic = from->deterministic;
    to->profile = from->profile;
    to->verbosity = from->verbosity;
    to->severity = from->severity;
    to->log_fn = from->log_fn;
    to->log_param = from->log_param;
    to->threads = from->threads;
    to->choose_device = from->choose_device;
    to->choose_state = from->choose_state;
    ORT_TRY(copy_text(&to->log_id, from->log_id));
    ORT_TRY(copy_text(&to->profile_prefix, from->profile_prefix));
    ORT_TRY(copy_text(&to->optimized_path, from->optimized_path));
    return copy_lists(from, to);
}

OrtStatusPtr ort_options_copy(const OrtSessionOptions *from, OrtSessionOptions **out)
{
    ORT_TRY(create_options(out));
    OrtStatusPtr status = from ? copy_members(from, *out) : NULL;
    if (!status) return NULL;
    ort_options_free(*out);
    *out = NULL;
    return status;
}

/* ---- setters ---- */

static OrtStatusPtr set_mode(OrtSessionOptions *options, ExecutionMode mode)
{
    if (mode != ORT_SEQUENTIAL && mode != ORT_PARALLEL)
        return ort_status(ORT_INVALID_ARGUMENT, "execution_mode is not valid");
    options->mode = mode;
    return NULL;
}

static OrtStatusPtr get_mode(const OrtSessionOptions *options, ExecutionMode *out)
{
    *out = options->mode;
    return NULL;
}

static OrtStatusPtr set_level(OrtSessionOptions *options, GraphOptimizationLevel level)
{
    const bool known =
        (level >= ORT_DISABLE_ALL && level <= ORT_ENABLE_LAYOUT) || level == ORT_ENABLE_ALL;
    if (!known) return ort_status(ORT_INVALID_ARGUMENT, "graph_optimization_level is not valid");
    options->level = level;
    return NULL;
}

static OrtStatusPtr set_intra(OrtSessionOptions *options, int count)
{
    options->threads_intra = count;
    return NULL;
}

static OrtStatusPtr set_inter(OrtSessionOptions *options, int count)
{
    options->threads_inter = count;
    return NULL;
}

static OrtStatusPtr share_threads(OrtSessionOptions *options)
{
    options->per_session_threads = false;
    return NULL;
}

static OrtStatusPtr enable_profiling(OrtSessionOptions *options, const char *prefix)
{
    options->profile = true;
    return ort_set_text(&options->profile_prefix, prefix);
}

static OrtStatusPtr disable_profiling(OrtSessionOptions *options)
{
    options->profile = false;
    free(options->profile_prefix);
    options->profile_prefix = NULL;
    return NULL;
}

static OrtStatusPtr enable_mem_pattern(OrtSessionOptions *options)
{
    options->mem_pattern = true;
    return NULL;
}

static OrtStatusPtr disable_mem_pattern(OrtSessionOptions *options)
{
    options->mem_pattern = false;
    return NULL;
}

static OrtStatusPtr get_mem_pattern(const OrtSessionOptions *options, int *out)
{
    *out = options->mem_pattern;
    return NULL;
}

static OrtStatusPtr enable_arena(OrtSessionOptions *options)
{
    options->cpu_arena = true;
    return NULL;
}

static OrtStatusPtr disable_arena(OrtSessionOptions *options)
{
    options->cpu_arena = false;
    return NULL;
}

static OrtStatusPtr set_deterministic(OrtSessionOptions *options, bool value)
{
    options->deterministic = value;
    return NULL;
}

static OrtStatusPtr set_log_id(OrtSessionOptions *options, const char *id)
{
    return ort_set_text(&options->log_id, id);
}

static OrtStatusPtr set_verbosity(OrtSessionOptions *options, int level)
{
    options->verbosity = level;
    return NULL;
}

static OrtStatusPtr set_severity(OrtSessionOptions *options, int level)
{
    options->severity = level;
    return NULL;
}

static OrtStatusPtr set_logger(OrtSessionOptions *options, OrtLoggingFunction fn, void *param)
{
    options->log_fn = fn;
    options->log_param = param;
    return NULL;
}

static OrtStatusPtr set_optimized_path(OrtSessionOptions *options, const char *path)
{
    return ort_set_text(&options->optimized_path, path);
}

static OrtStatusPtr set_create_thread(OrtSessionOptions *options, OrtCustomCreateThreadFn fn)
{
    options->threads.create = fn;
    return NULL;
}

static OrtStatusPtr set_create_options(OrtSessionOptions *options, void *with)
{
    options->threads.options = with;
    return NULL;
}

static OrtStatusPtr set_join_thread(OrtSessionOptions *options, OrtCustomJoinThreadFn fn)
{
    options->threads.join = fn;
    return NULL;
}

/* ---- dimensions and initializers ---- */

static OrtStatusPtr override_denotation(OrtSessionOptions *options, const char *denotation,
                                        int64_t length)
{
    return add_dim(options, denotation, true, length);
}

static OrtStatusPtr override_name(OrtSessionOptions *options, const char *name, int64_t length)
{
    return add_dim(options, name, false, length);
}

static OrtStatusPtr set_initializer(OrtSessionOptions *options, const char *name,
                                    const OrtValue *value)
{
    sdx_tensor *tensor = NULL;
    if (!name) return ort_status(ORT_INVALID_ARGUMENT, "Received nullptr for name");
    if (!value) return ort_status(ORT_INVALID_ARGUMENT, "Received nullptr for OrtValue");
    OrtStatusPtr status = ort_need_tensor(value, &tensor);
    if (status) {
        ort_release_status(status);
        return ort_status(ORT_INVALID_ARGUMENT,
                          "Received OrtValue is not a tensor. Only tensors are supported.");
    }
    for (size_t i = 0; i < options->count_initializers; i++)
        if (!strcmp(options->initializers[i].name, name))
            return ort_fail(ORT_INVALID_ARGUMENT,
                            "An OrtValue for this name has already been added: %s", name);
    return add_initializer(options, name, value);
}

static OrtStatusPtr set_external(OrtSessionOptions *options, const char *const *names,
                                 const OrtValue *const *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        ORT_TRY(set_initializer(options, names[i], values[i]));
    return NULL;
}

/* Another thread may set it while a session is being made. */
static OrtStatusPtr cancel_load(OrtSessionOptions *options, bool cancel)
{
    atomic_store(&options->load_cancelled, cancel);
    return NULL;
}

/* ---- config entries ---- */

static OrtStatusPtr set_config(OrtSessionOptions *options, const char *key, const char *value)
{
    if (!key || !*key || strlen(key) > KEY_MAX)
        return ort_fail(ORT_INVALID_ARGUMENT,
                        "Config key is empty or longer than maximum length %d", KEY_MAX);
    if (!value || strlen(value) > VALUE_MAX)
        return ort_fail(ORT_INVALID_ARGUMENT, "Config value is longer than maximum length: %d",
                        VALUE_MAX);
    return ort_pairs_set(&options->config, key, value);
}

static OrtStatusPtr has_config(const OrtSessionOptions *options, const char *key, int *out)
{
    *out = ort_pairs_get(&options->config, key) != NULL;
    return NULL;
}

static OrtStatusPtr get_config(const OrtSessionOptions *options, const char *key, char *to,
                               size_t *size)
{
    const char *value = ort_pairs_get(&options->config, key);
    if (!value)
        return ort_fail(ORT_INVALID_ARGUMENT, "Session config entry '%s' was not found.", key);
    const size_t need = strlen(value) + 1, room = *size;
    *size = need;
    if (!to) return NULL;
    if (room < need)
        return ort_status(ORT_INVALID_ARGUMENT,
                          "Output buffer is not large enough for session config entry");
    memcpy(to, value, need);
    return NULL;
}

static OrtStatusPtr get_configs(const OrtSessionOptions *options, OrtKeyValuePairs **out)
{
    *out = calloc(1, sizeof **out);
    return *out ? ort_pairs_copy(*out, &options->config) : ort_no_memory();
}

void ort_fill_options(OrtApi *api)
{
    api->CreateSessionOptions = create_options;
    api->CloneSessionOptions = ort_options_copy;
    api->ReleaseSessionOptions = ort_options_free;
    api->SetSessionExecutionMode = set_mode;
    api->GetSessionExecutionMode = get_mode;
    api->SetSessionGraphOptimizationLevel = set_level;
    api->SetIntraOpNumThreads = set_intra;
    api->SetInterOpNumThreads = set_inter;
    api->DisablePerSessionThreads = share_threads;
    api->EnableProfiling = enable_profiling;
    api->DisableProfiling = disable_profiling;
    api->EnableMemPattern = enable_mem_pattern;
    api->DisableMemPattern = disable_mem_pattern;
    api->GetMemPatternEnabled = get_mem_pattern;
    api->EnableCpuMemArena = enable_arena;
    api->DisableCpuMemArena = disable_arena;
    api->SetDeterministicCompute = set_deterministic;
    api->SetSessionLogId = set_log_id;
    api->SetSessionLogVerbosityLevel = set_verbosity;
    api->SetSessionLogSeverityLevel = set_severity;
    api->SetUserLoggingFunction = set_logger;
    api->SetOptimizedModelFilePath = set_optimized_path;
    api->SessionOptionsSetCustomCreateThreadFn = set_create_thread;
    api->SessionOptionsSetCustomThreadCreationOptions = set_create_options;
    api->SessionOptionsSetCustomJoinThreadFn = set_join_thread;
    api->AddFreeDimensionOverride = override_denotation;
    api->AddFreeDimensionOverrideByName = override_name;
    api->AddInitializer = set_initializer;
    api->AddExternalInitializers = set_external;
    api->AddSessionConfigEntry = set_config;
    api->HasSessionConfigEntry = has_config;
    api->GetSessionConfigEntry = get_config;
    api->SessionOptionsSetLoadCancellationFlag = cancel_load;
    api->GetSessionOptionsConfigEntries = get_configs;
}
