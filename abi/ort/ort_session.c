/* SPDX-License-Identifier: Apache-2.0
 * Sessions: made from a file or bytes, shared by threads, asked for names and types. A session of
 * the engine serves one thread at a time, so there are as many as threads run at once; they share
 * the model's weights. */
#include "ort_customop.h"
#include "ort_devices.h"
#include "ort_provider_start.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- workers ---- */

static OrtStatusPtr load_status(const OrtSession *session, sdx_status status)
{
    return ort_load_status(status, sdx_error(session->cx), session->path, session->bytes,
                           session->size);
}

static OrtStatusPtr new_worker(OrtSession *session, bool profiled, struct ort_worker **out)
{
    struct ort_worker *worker = calloc(1, sizeof *worker);
    *out = worker;
    if (!worker) return ort_no_memory();
    pthread_mutex_lock(&session->lock); /* one thread at a time has the context */
    OrtStatusPtr status = NULL;
    sdx_session_options engine = session->engine;
    engine.sibling = session->all ? session->all->session : NULL;
    if (profiled && !engine.count_providers) engine.profile = true;
    const sdx_status failed =
        sdx_session_create(session->cx, session->model, &engine, &worker->session);
    if (failed) {
        status = ort_custom_failure(session->custom);
        if (!status) status = load_status(session, failed);
    } else {
        worker->next = session->all;
        session->all = worker;
    }
    pthread_mutex_unlock(&session->lock);
    if (!status) return NULL;
    free(worker);
    *out = NULL;
    return status;
}

OrtStatusPtr ort_worker_take(OrtSession *session, struct ort_worker **out)
{
    *out = atomic_exchange_explicit(&session->hot, NULL, memory_order_acquire);
    if (*out) return NULL;
    pthread_mutex_lock(&session->lock);
    *out = session->idle;
    if (*out) session->idle = (*out)->next_idle;
    pthread_mutex_unlock(&session->lock);
    return *out ? NULL : new_worker(session, false, out);
}

OrtStatusPtr ort_worker_take_profiled(OrtSession *session, struct ort_worker **out)
{
    pthread_mutex_lock(&session->lock);
    *out = session->profiled;
    if (*out) session->profiled = (*out)->next_idle;
    pthread_mutex_unlock(&session->lock);
    return *out ? NULL : new_worker(session, true, out);
}

void ort_worker_give_profiled(OrtSession *session, struct ort_worker *worker)
{
    pthread_mutex_lock(&session->lock);
    worker->next_idle = session->profiled;
    session->profiled = worker;
    pthread_mutex_unlock(&session->lock);
}

void ort_worker_give(OrtSession *session, struct ort_worker *worker)
{
    struct ort_worker *none = NULL;
    if (atomic_compare_exchange_strong_explicit(&session->hot, &none, worker, memory_order_release,
                                                memory_order_relaxed))
        return;
    pthread_mutex_lock(&session->lock);
    worker->next_idle = session->idle;
    session->idle = worker;
    pthread_mutex_unlock(&session->lock);
}

/* ---- names ---- */

static int by_name(const void *a, const void *b)
{
    const sdx_value_info *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

static const sdx_value_info *search(const sdx_value_info **sorted, size_t count, const char *name,
                                    size_t *at)
{
    size_t low = 0, high = count;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        const int order = strcmp(name, sorted[middle]->name);
        if (order == 0) {
            *at = middle;
            return sorted[middle];
        }
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

const sdx_value_info *ort_find_input(OrtSession *session, size_t position, const char *name)
{
    if (position < session->count_inputs && !strcmp(session->inputs[position]->name, name))
        return session->inputs[position];
    size_t at;
    return search(session->feeds, session->count_feeds, name, &at);
}

const sdx_value_info *ort_find_output(const OrtSession *session, size_t position, const char *name)
{
    if (position < session->count_outputs && !strcmp(session->outputs[position]->name, name))
        return session->outputs[position];
    for (size_t i = 0; i < session->count_outputs; i++)
        if (!strcmp(session->outputs[i]->name, name)) return session->outputs[i];
    return NULL;
}

static OrtStatusPtr list_values(OrtSession *session)
{
    const size_t ins = (size_t)sdx_model_count_inputs(session->model);
    const size_t outs = (size_t)sdx_model_count_outputs(session->model);
    const sdx_value_info **room = calloc(3 * ins + outs + 1, sizeof *room);
    if (!room) return ort_no_memory();
    session->inputs = room;
    session->overridable = room + ins;
    session->feeds = room + 2 * ins;
    session->outputs = room + 3 * ins;
    for (size_t i = 0; i < ins; i++) {
        const sdx_value_info *info = sdx_model_input(session->model, (int)i);
        session->feeds[session->count_feeds++] = info;
        if (info->kind == SDX_KIND_OPTIONAL) session->count_optional++;
        if (info->optional)
            session->overridable[session->count_overridable++] = info;
        else
            session->inputs[session->count_inputs++] = info;
    }
    for (size_t i = 0; i < outs; i++)
        session->outputs[session->count_outputs++] = sdx_model_output(session->model, (int)i);
    if (session->count_optional &&
        sdx_value_create(session->cx, SDX_KIND_OPTIONAL, SDX_F32, 0, NULL, &session->nothing))
        return ort_no_memory();
    qsort(session->feeds, session->count_feeds, sizeof *session->feeds, by_name);
    return NULL;
}

/* ---- making ---- */

void ort_session_free(OrtSession *session)
{
    if (!session) return;
    for (struct ort_worker *worker = session->all, *next; worker; worker = next) {
        next = worker->next;
        sdx_session_destroy(worker->session);
        free(worker);
    }
    ort_custom_unhand(&session->handed);
    ort_profile_close(session->profile);
    ort_model_close(session->shared);
    ort_custom_close(session->custom);
    sdx_tensor_destroy(session->nothing);
    sdx_context_destroy(session->cx);
    ort_options_free(session->options);
    free(session->providers);
    pthread_mutex_destroy(&session->lock);
    free(session->inputs);
    free(session->path);
    if (session->owns_bytes) free(session->bytes);
    ort_editor_free(session->editor);
    free(session);
}

static OrtStatusPtr set_up(OrtSession *session, const OrtEnv *env, const OrtSessionOptions *options)
{
    static const struct ort_threads none;
    ORT_TRY(ort_options_copy(options, &session->options));
    const OrtSessionOptions *o = session->options;
    const bool is_shared = !o->per_session_threads && env->pool;
    ORT_TRY(ort_context_create(is_shared ? env->pool : ort_context(),
                               o->per_session_threads ? &o->threads : &none, o->threads_intra,
                               &session->cx));
    session->logger = env->logger;
    if (o->log_fn) {
        session->logger.fn = o->log_fn;
        session->logger.param = o->log_param;
    }
    if (o->log_id) session->logger.id = o->log_id;
    if (o->severity >= 0) session->logger.level = (OrtLoggingLevel)o->severity;
    sdx_session_options_init(&session->engine);
    const int threads =
        o->per_session_threads || env->threads < 0 ? o->threads_intra : env->threads;
    session->engine.threads = threads > 0 ? threads : 0;
    session->engine.profile = o->profile;
    session->engine.cancel_holds = true;
    session->engine.level = o->level == ORT_DISABLE_ALL       ? SDX_LEVEL_NONE
                            : o->level == ORT_ENABLE_BASIC    ? SDX_LEVEL_BASIC
                            : o->level == ORT_ENABLE_EXTENDED ? SDX_LEVEL_EXTENDED
                                                              : SDX_LEVEL_ALL;
    ORT_TRY(ort_provider_set(o, &session->engine, &session->providers));
    if (o->count_domains) {
        session->engine.ort_setup = ort_custom_hand;
        session->engine.ort_setup_user = session;
    }
    return o->profile ? ort_profile_open(o->profile_prefix, &session->profile) : NULL;
}

/* What the options say of the model; the lists that the engine reads are freed by the caller. */
static OrtStatusPtr model_options_of(const OrtSessionOptions *options, sdx_model_options *model,
                                     sdx_dim_override **dims, sdx_feed **initializers,
                                     sdx_file_bytes **files)
{
    sdx_model_options_init(model);
    model->tolerate = true;
    *files = calloc(options->count_files + 1, sizeof **files);
    *dims = calloc(options->count_dims + 1, sizeof **dims);
    *initializers = calloc(options->count_initializers + 1, sizeof **initializers);
    if (!*dims || !*initializers || !*files) return ort_no_memory();
    for (size_t i = 0; i < options->count_files; i++)
        (*files)[i] = (sdx_file_bytes){options->files[i]->name, options->files[i]->bytes,
                                       options->files[i]->size};
    model->files = *files;
    model->count_files = (int)options->count_files;
    for (size_t i = 0; i < options->count_dims; i++) {
        const struct ort_dim_override *from = &options->dims[i];
        (*dims)[i] = (sdx_dim_override){.name = from->is_denotation ? NULL : from->name,
                                        .denotation = from->is_denotation ? from->name : NULL,
                                        .length = from->length};
    }
    for (size_t i = 0; i < options->count_initializers; i++)
        (*initializers)[i] = (sdx_feed){options->initializers[i].name,
                                        ort_value_tensor(options->initializers[i].value)};
    model->folder =
        ort_pairs_get(&options->config, "session.model_external_initializers_file_folder_path");
    model->dims = *dims;
    model->count_dims = (int)options->count_dims;
    model->initializers = *initializers;
    model->count_initializers = (int)options->count_initializers;
    return NULL;
}

static OrtStatusPtr open_model(OrtSession *session)
{
    sdx_model_options options;
    sdx_dim_override *dims = NULL;
    sdx_feed *initializers = NULL;
    sdx_file_bytes *files = NULL;
    OrtStatusPtr status =
        model_options_of(session->options, &options, &dims, &initializers, &files);
    if (!status)
        status = ort_custom_open(session->options, &session->logger, &options, &session->custom);
    if (!status) status = ort_model_open(session, &options);
    free(dims);
    free(initializers);
    free(files);
    return status;
}

/* The caller may free the bytes when the session is made, unless the options say otherwise. */
static OrtStatusPtr keep_bytes(OrtSession *session, const void *bytes, size_t size)
{
    enum { ALIGNMENT = 64 }; /* of plan files */
    const char *direct =
        ort_pairs_get(&session->options->config, "session.use_ort_model_bytes_directly");
    session->size = size;
    session->bytes = (void *)(uintptr_t)bytes;
    if (direct && !strcmp(direct, "1")) return NULL;
    session->owns_bytes = !posix_memalign(&session->bytes, ALIGNMENT, size ? size : 1);
    if (!session->owns_bytes) return ort_no_memory();
    if (size) memcpy(session->bytes, bytes, size);
    return NULL;
}

static OrtStatusPtr check_path(const char *path)
{
    struct stat about;
    if (stat(path, &about))
        return ort_fail(errno == ENOENT || errno == ENOTDIR ? ORT_NO_SUCHFILE : ORT_FAIL,
                        "Load model from %s failed:Load model %s failed. File doesn't exist", path,
                        path);
    if (S_ISDIR(about.st_mode))
        return ort_status(ORT_INVALID_ARGUMENT,
                          "The model path is a directory. Loading a model package from a directory "
                          "path is not supported. Use the model package API "
                          "(CreateModelPackageContext, SelectComponent, CreateSession) instead.");
    return NULL;
}

/* Reads the model and makes the first worker; both are told in the profile. */
static OrtStatusPtr load(OrtSession *session)
{
    struct ort_worker *worker = NULL;
    ort_log(&session->logger, ORT_LOGGING_LEVEL_INFO, "CreateSession", "Initializing session.");
    const uint64_t begin = ort_clock();
    ORT_TRY(open_model(session));
    ORT_TRY(ort_choose_device(session->options, session->model));
    const uint64_t loaded = ort_clock();
    ORT_TRY(list_values(session));
    ORT_TRY(new_worker(session, false, &worker));
    ort_worker_give(session, worker);
    ort_log(&session->logger, ORT_LOGGING_LEVEL_INFO, "CreateSession",
            "Session successfully initialized.");
    if (session->profile) {
        ort_profile_add(session->profile,
                        session->path ? "model_loading_uri" : "model_loading_array", begin, loaded);
        ort_profile_add(session->profile, "session_initialization", loaded, ort_clock());
    }
    const char *to = session->options->optimized_path;
    if (to && *to && sdx_session_save_model(worker->session, to))
        return ort_status(ORT_FAIL, sdx_session_error(worker->session));
    return NULL;
}

static OrtStatusPtr check_cancelled(const OrtSessionOptions *options)
{
    if (!options || !atomic_load(&options->load_cancelled)) return NULL;
    return ort_status(ORT_MODEL_LOAD_CANCELED,
                      "Session initialization canceled due to user request.");
}

static OrtStatusPtr make(const OrtEnv *env, const char *path, const void *bytes, size_t size,
                         const OrtSessionOptions *options,
                         const OrtPrepackedWeightsContainer *container, OrtSession **out)
{
    *out = NULL;
    if (path) ORT_TRY(check_path(path));
    OrtSession *session = calloc(1, sizeof *session);
    if (!session) return ort_no_memory();
    pthread_mutex_init(&session->lock, NULL);
    session->container = container;
    OrtStatusPtr status = set_up(session, env, options);
    if (!status)
        status = path ? ort_set_text(&session->path, path) : keep_bytes(session, bytes, size);
    const struct OrtLogger *before = ort_log_here(&session->logger);
    if (!status) status = check_cancelled(options);
    if (!status) status = load(session);
    if (!status) status = check_cancelled(options);
    ort_log_here(before);
    if (status)
        ort_session_free(session);
    else
        *out = session;
    return status;
}

OrtStatusPtr ort_session_create(const OrtEnv *env, const char *path, const void *bytes, size_t size,
                                const OrtSessionOptions *options, OrtSession **out)
{
    return make(env, path, bytes, size, options, NULL, out);
}

static OrtStatusPtr create(const OrtEnv *env, const char *path, const OrtSessionOptions *options,
                           OrtSession **out)
{
    return ort_session_create(env, path, NULL, 0, options, out);
}

static OrtStatusPtr create_from_array(const OrtEnv *env, const void *bytes, size_t size,
                                      const OrtSessionOptions *options, OrtSession **out)
{
    *out = NULL;
    if (!bytes) return ort_status(ORT_INVALID_ARGUMENT, "Model data pointer is null.");
    return ort_session_create(env, NULL, bytes, size, options, out);
}

/* ---- weights packed for several sessions: those of one file share them anyway ---- */

struct OrtPrepackedWeightsContainer {
    char place;
};

static OrtStatusPtr create_container(OrtPrepackedWeightsContainer **out)
{
    *out = calloc(1, sizeof **out);
    return *out ? NULL : ort_no_memory();
}

static void release_container(OrtPrepackedWeightsContainer *container)
{
    free(container);
}

static OrtStatusPtr create_with_container(const OrtEnv *env, const char *path,
                                          const OrtSessionOptions *options,
                                          OrtPrepackedWeightsContainer *container, OrtSession **out)
{
    (void)container;
    return create(env, path, options, out);
}

static OrtStatusPtr create_from_array_with_container(const OrtEnv *env, const void *bytes,
                                                     size_t size, const OrtSessionOptions *options,
                                                     OrtPrepackedWeightsContainer *container,
                                                     OrtSession **out)
{
    *out = NULL;
    if (!bytes) return ort_status(ORT_INVALID_ARGUMENT, "Model data pointer is null.");
    return make(env, NULL, bytes, size, options, container, out);
}

/* ---- asking ---- */

static OrtStatusPtr count_inputs(const OrtSession *session, size_t *out)
{
    *out = session->count_inputs;
    return NULL;
}

static OrtStatusPtr count_outputs(const OrtSession *session, size_t *out)
{
    *out = session->count_outputs;
    return NULL;
}

static OrtStatusPtr count_overridable(const OrtSession *session, size_t *out)
{
    *out = session->count_overridable;
    return NULL;
}

static OrtStatusPtr name_of(const sdx_value_info **infos, size_t count, size_t index,
                            OrtAllocator *allocator, char **out)
{
    *out = NULL;
    if (index >= count) return ort_status(ORT_FAIL, "index out of range");
    return ort_copy_text(allocator, infos[index]->name, out);
}

static OrtStatusPtr type_of(const sdx_value_info **infos, size_t count, size_t index,
                            OrtTypeInfo **out)
{
    *out = NULL;
    if (index >= count) return ort_status(ORT_FAIL, "out of index");
    return ort_type_of_info(infos[index], out);
}

static OrtStatusPtr input_name(const OrtSession *session, size_t index, OrtAllocator *allocator,
                               char **out)
{
    return name_of(session->inputs, session->count_inputs, index, allocator, out);
}

static OrtStatusPtr output_name(const OrtSession *session, size_t index, OrtAllocator *allocator,
                                char **out)
{
    return name_of(session->outputs, session->count_outputs, index, allocator, out);
}

static OrtStatusPtr overridable_name(const OrtSession *session, size_t index,
                                     OrtAllocator *allocator, char **out)
{
    return name_of(session->overridable, session->count_overridable, index, allocator, out);
}

static OrtStatusPtr input_type(const OrtSession *session, size_t index, OrtTypeInfo **out)
{
    return type_of(session->inputs, session->count_inputs, index, out);
}

static OrtStatusPtr output_type(const OrtSession *session, size_t index, OrtTypeInfo **out)
{
    return type_of(session->outputs, session->count_outputs, index, out);
}

static OrtStatusPtr overridable_type(const OrtSession *session, size_t index, OrtTypeInfo **out)
{
    return type_of(session->overridable, session->count_overridable, index, out);
}

/* All that sessions take and make is in the memory of the process. */
static OrtStatusPtr memory_of(const OrtSession *session, const OrtMemoryInfo **infos, size_t count)
{
    for (size_t i = 0; i < count; i++)
        infos[i] = session->options->cpu_arena ? &ort_arena_memory : &ort_cpu_memory;
    return NULL;
}

/* The CPU provider has no options that change while it runs. */
static OrtStatusPtr set_dynamic(OrtSession *session, const char *const *keys,
                                const char *const *values, size_t count)
{
    (void)session, (void)keys, (void)values, (void)count;
    return NULL;
}

/* No provider here captures graphs. */
static OrtStatusPtr release_captured(OrtSession *session, int id)
{
    (void)session, (void)id;
    return NULL;
}

void ort_fill_session(OrtApi *api)
{
    api->SetEpDynamicOptions = set_dynamic;
    api->SessionReleaseCapturedGraph = release_captured;
    api->CreateSession = create;
    api->CreateSessionFromArray = create_from_array;
    api->CreatePrepackedWeightsContainer = create_container;
    api->ReleasePrepackedWeightsContainer = release_container;
    api->CreateSessionWithPrepackedWeightsContainer = create_with_container;
    api->CreateSessionFromArrayWithPrepackedWeightsContainer = create_from_array_with_container;
    api->ReleaseSession = ort_session_free;
    api->SessionGetInputCount = count_inputs;
    api->SessionGetOutputCount = count_outputs;
    api->SessionGetOverridableInitializerCount = count_overridable;
    api->SessionGetInputName = input_name;
    api->SessionGetOutputName = output_name;
    api->SessionGetOverridableInitializerName = overridable_name;
    api->SessionGetInputTypeInfo = input_type;
    api->SessionGetOutputTypeInfo = output_type;
    api->SessionGetOverridableInitializerTypeInfo = overridable_type;
    api->SessionGetMemoryInfoForInputs = memory_of;
    api->SessionGetMemoryInfoForOutputs = memory_of;
}
