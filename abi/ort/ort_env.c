/* SPDX-License-Identifier: Apache-2.0
 * The environment: one a process, counted; its logger; threads that sessions share. */
#include "ort_objects.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of `env` and what is in it */
static struct OrtEnv *env;

/* ---- log ---- */

struct OrtLogger ort_env_logger(void)
{
    pthread_mutex_lock(&lock);
    struct OrtLogger logger = {.level = ORT_LOGGING_LEVEL_WARNING, .id = ""};
    if (env) logger = env->logger;
    pthread_mutex_unlock(&lock);
    return logger;
}

/* 2026-01-31 12:00:00.123456 [W:onnxruntime:ID, PLACE] TEXT */
static void log_line(const struct OrtLogger *logger, OrtLoggingLevel level, const char *place,
                     const char *text)
{
    struct timeval now;
    struct tm parts;
    char when[32];
    gettimeofday(&now, NULL);
    localtime_r(&now.tv_sec, &parts);
    strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S", &parts);
    fprintf(stderr, "%s.%06ld [%c:onnxruntime:%s, %s] %s\n", when, (long)now.tv_usec,
            "VIWEF"[level], logger -> id ? logger -> id : "", place, text);
}

void ort_log(const struct OrtLogger *given, OrtLoggingLevel level, const char *place,
             const char *format, ...)
{
    const struct OrtLogger logger = given ? *given : ort_env_logger();
    if (level < logger.level || level < ORT_LOGGING_LEVEL_VERBOSE ||
        level > ORT_LOGGING_LEVEL_FATAL)
        return;
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (logger.fn)
        logger.fn(logger.param, level, "onnxruntime", logger.id ? logger.id : "", place, text);
    else
        log_line(&logger, level, place, text);
}

static _Thread_local const struct OrtLogger *logger_here;

const struct OrtLogger *ort_log_here(const struct OrtLogger *logger)
{
    const struct OrtLogger *before = logger_here;
    logger_here = logger;
    return before;
}

static void log_of_engine(sdx_log_level level, const char *area, const char *text, void *user)
{
    (void)user;
    ort_log(logger_here, (OrtLoggingLevel)level, area, "%s", text);
}

/* ---- the context ---- */

static sdx_context *context;

static void make_context(void)
{
    sdx_context_options options;
    sdx_context_options_init(&options);
    options.log = log_of_engine;
    options.log_level = SDX_LOG_DEBUG; /* ort_log asks the logger */
    context = sdx_context_create(&options);
}

sdx_context *ort_context(void)
{
    static pthread_once_t made = PTHREAD_ONCE_INIT;
    pthread_once(&made, make_context);
    return context;
}

static void *start_thread(void (*work)(void *arg), void *arg, void *user)
{
    const struct ort_threads *own = user;
    return (void *)(uintptr_t)own->create(own->options, work, arg);
}

static void join_thread(void *thread, void *user)
{
    const struct ort_threads *own = user;
    own->join(thread);
}

OrtStatusPtr ort_context_create(sdx_context *parent, const struct ort_threads *own, int count,
                                sdx_context **out)
{
    sdx_context_options with;
    sdx_context_options_init(&with);
    with.parent = parent;
    if (own->create) {
        if (!own->join) return ort_status(ORT_FAIL, "custom join thread function not set");
        with.threads = count > 0 ? count : 0;
        with.thread_start = start_thread;
        with.thread_join = join_thread;
        with.thread_user = (void *)(uintptr_t)own;
    }
    *out = parent ? sdx_context_create(&with) : NULL;
    return *out ? NULL : ort_no_memory();
}

/* ---- environments ---- */

static void free_env(OrtEnv *given)
{
    sdx_context_destroy(given->pool);
    free(given->logger.id);
    free(given);
}

static OrtStatusPtr make_env(OrtLoggingFunction fn, void *param, OrtLoggingLevel level,
                             const char *id, const OrtThreadingOptions *threading)
{
    if (!ort_context()) return ort_no_memory();
    struct OrtEnv *made = calloc(1, sizeof *made);
    if (!made) return ort_no_memory();
    made->logger = (struct OrtLogger){.fn = fn, .param = param, .level = level};
    made->threads = threading ? threading->intra : -1;
    if (threading) made->own = threading->own;
    OrtStatusPtr status = ort_set_text(&made->logger.id, id);
    if (!status && made->own.create)
        status = ort_context_create(ort_context(), &made->own, made->threads, &made->pool);
    if (status)
        free_env(made);
    else
        env = made;
    return status;
}

static OrtStatusPtr get_env(OrtLoggingFunction fn, void *param, OrtLoggingLevel level,
                            const char *id, const OrtThreadingOptions *threading, OrtEnv **out)
{
    OrtStatusPtr status = NULL;
    pthread_mutex_lock(&lock);
    if (!env) status = make_env(fn, param, level, id, threading);
    if (!status) env->refs++;
    *out = status ? NULL : env;
    pthread_mutex_unlock(&lock);
    return status;
}

static OrtStatusPtr create_env(OrtLoggingLevel level, const char *id, OrtEnv **out)
{
    return get_env(NULL, NULL, level, id, NULL, out);
}

static OrtStatusPtr create_env_with_logger(OrtLoggingFunction fn, void *param,
                                           OrtLoggingLevel level, const char *id, OrtEnv **out)
{
    return get_env(fn, param, level, id, NULL, out);
}

static OrtStatusPtr create_env_with_threads(OrtLoggingLevel level, const char *id,
                                            const OrtThreadingOptions *threading, OrtEnv **out)
{
    return get_env(NULL, NULL, level, id, threading, out);
}

static OrtStatusPtr create_env_with_both(OrtLoggingFunction fn, void *param, OrtLoggingLevel level,
                                         const char *id,
                                         const struct OrtThreadingOptions *threading, OrtEnv **out)
{
    return get_env(fn, param, level, id, threading, out);
}

/* config_entries are for providers that are loaded as libraries: there are none to read them. */
static OrtStatusPtr create_env_with_options(const OrtEnvCreationOptions *options, OrtEnv **out)
{
    enum { SINCE = 24 };
    *out = NULL;
    if (!options)
        return ort_status(
            ORT_INVALID_ARGUMENT,
            "CreateEnvWithOptions requires a valid (non-null) OrtEnvCreationOptions argument");
    const char *wrong = options->version < SINCE ? "the version set equal to ORT_API_VERSION"
                        : options->logging_severity_level < ORT_LOGGING_LEVEL_VERBOSE ||
                                options->logging_severity_level > ORT_LOGGING_LEVEL_FATAL
                            ? "a valid logging severity level value from the OrtLoggingLevel "
                              "enumeration"
                        : !options->log_id ? "a valid (non-null) log identifier string"
                                           : NULL;
    if (wrong)
        return ort_fail(ORT_INVALID_ARGUMENT,
                        "CreateEnvWithOptions requires a OrtEnvCreationOptions argument with %s",
                        wrong);
    return get_env(options->custom_logging_function, options->custom_logging_param,
                   (OrtLoggingLevel)options->logging_severity_level, options->log_id,
                   options->threading_options, out);
}

static void release_env(OrtEnv *given)
{
    if (!given) return;
    pthread_mutex_lock(&lock);
    const bool last = --given->refs == 0;
    if (last) env = NULL;
    pthread_mutex_unlock(&lock);
    if (!last) return;
    free_env(given);
}

static OrtStatusPtr set_log_level(OrtEnv *given, OrtLoggingLevel level)
{
    pthread_mutex_lock(&lock);
    given->logger.level = level;
    pthread_mutex_unlock(&lock);
    return NULL;
}

/* There is no telemetry, and nothing depends on the caller's language. */
static OrtStatusPtr set_telemetry(const OrtEnv *given)
{
    (void)given;
    return NULL;
}

static OrtStatusPtr set_language(const OrtEnv *given, OrtLanguageProjection language)
{
    (void)given, (void)language;
    return NULL;
}

/* ---- registered allocators ---- */

static int find_allocator(const OrtEnv *given, const OrtMemoryInfo *info)
{
    int i = 0;
    while (i < given->count_allocators &&
           !ort_memory_equal(given->allocators[i]->Info(given->allocators[i]), info))
        i++;
    return i;
}

static OrtStatusPtr register_allocator(OrtEnv *given, OrtAllocator *allocator)
{
    enum { ROOM = sizeof given->allocators / sizeof given->allocators[0] };
    const OrtMemoryInfo *info = allocator->Info(allocator);
    OrtStatusPtr status = NULL;
    pthread_mutex_lock(&lock);
    if (find_allocator(given, info) < given->count_allocators)
        status = ort_fail(ORT_INVALID_ARGUMENT,
                          "An allocator for this device has already been registered for sharing.");
    else if (given->count_allocators == ROOM)
        status = ort_fail(ORT_FAIL, "more than %d allocators are registered", ROOM);
    else
        given->allocators[given->count_allocators++] = allocator;
    pthread_mutex_unlock(&lock);
    return status;
}

static OrtStatusPtr unregister_allocator(OrtEnv *given, const OrtMemoryInfo *info)
{
    OrtStatusPtr status = NULL;
    pthread_mutex_lock(&lock);
    const int at = find_allocator(given, info);
    if (at == given->count_allocators)
        status =
            ort_status(ORT_INVALID_ARGUMENT, "No allocator for this device has been registered "
                                             "for sharing.");
    else
        given->allocators[at] = given->allocators[--given->count_allocators];
    pthread_mutex_unlock(&lock);
    return status;
}

OrtAllocator *ort_env_allocator(const OrtEnv *given)
{
    OrtAllocator *found = NULL;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < given->count_allocators && !found; i++) {
        OrtAllocator *each = given->allocators[i];
        if (each->Info(each)->device == OrtMemoryInfoDeviceType_CPU) found = each;
    }
    pthread_mutex_unlock(&lock);
    return found == ort_arena_allocator() ? NULL : found;
}

static OrtStatusPtr create_shared_arena(OrtEnv *given, const OrtMemoryInfo *info,
                                        const OrtArenaCfg *arena)
{
    (void)arena;
    if (info->device != OrtMemoryInfoDeviceType_CPU)
        return ort_status(ORT_INVALID_ARGUMENT, "Only CPU devices are supported. Please call "
                                                "CreateAndRegisterAllocatorV2() for other device.");
    ort_release_status(register_allocator(given, ort_arena_allocator())); /* there already: fine */
    return NULL;
}

/* ---- threads ---- */

static OrtStatusPtr create_threading(OrtThreadingOptions **out)
{
    *out = calloc(1, sizeof **out);
    if (!*out) return ort_no_memory();
    (*out)->spin = 1;
    return NULL;
}

static void release_threading(OrtThreadingOptions *threading)
{
    if (threading) free(threading->affinity);
    free(threading);
}

static OrtStatusPtr set_intra(OrtThreadingOptions *threading, int count)
{
    threading->intra = count;
    return NULL;
}

static OrtStatusPtr set_inter(OrtThreadingOptions *threading, int count)
{
    threading->inter = count;
    return NULL;
}

static OrtStatusPtr set_spin(OrtThreadingOptions *threading, int allow)
{
    if (allow != 0 && allow != 1)
        return ort_status(ORT_INVALID_ARGUMENT, "Received invalid value for allow_spinning. Valid "
                                                "values are 0 or 1");
    threading->spin = allow;
    return NULL;
}

static OrtStatusPtr set_denormal(OrtThreadingOptions *threading)
{
    threading->denormal_as_zero = 1;
    return NULL;
}

static OrtStatusPtr set_affinity(OrtThreadingOptions *threading, const char *affinity)
{
    enum { LENGTH_MAX = 4096 };
    if (!affinity || !*affinity || strlen(affinity) > LENGTH_MAX)
        return ort_fail(ORT_INVALID_ARGUMENT, "Size of affinity string must be between 1 and %d",
                        LENGTH_MAX);
    return ort_set_text(&threading->affinity, affinity);
}

static OrtStatusPtr set_create_thread(OrtThreadingOptions *threading, OrtCustomCreateThreadFn fn)
{
    threading->own.create = fn;
    return NULL;
}

static OrtStatusPtr set_create_options(OrtThreadingOptions *threading, void *options)
{
    threading->own.options = options;
    return NULL;
}

static OrtStatusPtr set_join_thread(OrtThreadingOptions *threading, OrtCustomJoinThreadFn fn)
{
    threading->own.join = fn;
    return NULL;
}

void ort_fill_env(OrtApi *api)
{
    api->CreateEnv = create_env;
    api->CreateEnvWithOptions = create_env_with_options;
    api->CreateEnvWithCustomLogger = create_env_with_logger;
    api->CreateEnvWithGlobalThreadPools = create_env_with_threads;
    api->CreateEnvWithCustomLoggerAndGlobalThreadPools = create_env_with_both;
    api->ReleaseEnv = release_env;
    api->UpdateEnvWithCustomLogLevel = set_log_level;
    api->EnableTelemetryEvents = set_telemetry;
    api->DisableTelemetryEvents = set_telemetry;
    api->SetLanguageProjection = set_language;
    api->RegisterAllocator = register_allocator;
    api->UnregisterAllocator = unregister_allocator;
    api->CreateAndRegisterAllocator = create_shared_arena;
    api->CreateThreadingOptions = create_threading;
    api->ReleaseThreadingOptions = release_threading;
    api->SetGlobalIntraOpNumThreads = set_intra;
    api->SetGlobalInterOpNumThreads = set_inter;
    api->SetGlobalSpinControl = set_spin;
    api->SetGlobalDenormalAsZero = set_denormal;
    api->SetGlobalIntraOpThreadAffinity = set_affinity;
    api->SetGlobalCustomCreateThreadFn = set_create_thread;
    api->SetGlobalCustomThreadCreationOptions = set_create_options;
    api->SetGlobalCustomJoinThreadFn = set_join_thread;
}
