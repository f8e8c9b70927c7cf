/* SPDX-License-Identifier: Apache-2.0
 * Starting a provider of a real library, and handing the list of those that started to the engine.
 * Strict: what was appended runs, or making a session fails. What starts at all is found out once a
 * process and library. */
#include "ort_provider_start.h"

#include "ort_inside.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static OrtStatusPtr try_list(sdx_context *cx, const OrtSessionOptions *list, OrtErrorCode code,
                             const char *missing)
{
    sdx_session_options options;
    void *room = NULL;
    sdx_session_options_init(&options);
    ORT_TRY(ort_provider_set(list, &options, &room));
    OrtStatusPtr status =
        sdx_providers_start(cx, &options) ? ort_fail(code, "%s: %s", missing, sdx_error(cx)) : NULL;
    free(room);
    return status;
}

/* A context for one call, where failures leave no trace; NULL: no memory. */
static sdx_context *own_context(void)
{
    sdx_context_options own;
    sdx_context_options_init(&own);
    own.parent = ort_context();
    return own.parent ? sdx_context_create(&own) : NULL;
}

OrtStatusPtr ort_provider_start(OrtSessionOptions *to, const char *name,
                                const struct OrtKeyValuePairs *with, OrtErrorCode code,
                                const char *missing)
{
    const char *library = getenv("SDX_ORT_LIBRARY");
    if (!library || !*library) return ort_status(code, missing);
    sdx_context *cx = own_context();
    if (!cx) return ort_no_memory();
    const struct ort_provider tried = {(char *)(uintptr_t)name,
                                       with ? *with : (struct OrtKeyValuePairs){0}};
    const OrtSessionOptions list = {.providers = (struct ort_provider *)(uintptr_t)&tried,
                                    .count_providers = 1};
    OrtStatusPtr status = try_list(cx, &list, code, missing);
    sdx_context_destroy(cx);
    return status ? status : ort_options_add_provider(to, name, &tried.options);
}

static bool is_own(const struct ort_provider *provider)
{
    return !strcmp(provider->name, "CPUExecutionProvider") || !strcmp(provider->name, "cpu");
}

OrtStatusPtr ort_provider_set(const OrtSessionOptions *options, sdx_session_options *to,
                              void **room)
{
    size_t count = 0, pairs = 0;
    for (; count < options->count_providers && !is_own(&options->providers[count]); count++)
        pairs += options->providers[count].options.count;
    *room = NULL;
    if (!count) return NULL;
    sdx_provider_option *rows = calloc(1, pairs * sizeof *rows + count * sizeof(char *));
    if (!rows) return ort_no_memory();
    const char **names = (const char **)(rows + pairs);
    to->provider_options = rows;
    to->providers = names;
    to->profile = false;
    for (size_t i = 0; i < count; i++) {
        const struct ort_provider *from = &options->providers[i];
        names[to->count_providers++] = from->name;
        for (size_t k = 0; k < from->options.count; k++)
            rows[to->count_provider_options++] =
                (sdx_provider_option){from->name, from->options.keys[k], from->options.values[k]};
    }
    *room = rows;
    return NULL;
}

OrtStatusPtr ort_provider_append(OrtSessionOptions *options, const char *name,
                                 const char *const *keys, const char *const *values, size_t count)
{
    struct OrtKeyValuePairs pairs = {0};
    OrtStatusPtr status = NULL;
    for (size_t i = 0; i < count && !status; i++)
        status = ort_pairs_set(&pairs, keys[i], values[i]);
    if (!status) status = ort_options_add_provider(options, name, &pairs);
    ort_pairs_deinit(&pairs);
    return status;
}

OrtStatusPtr ort_session_providers(OrtSession *session, void (*each)(const char *name, void *user),
                                   void *user)
{
    struct ort_worker *worker = NULL;
    ORT_TRY(ort_worker_take(session, &worker));
    for (int i = 0; sdx_session_provider(worker->session, i); i++)
        each(sdx_session_provider(worker->session, i), user);
    ort_worker_give(session, worker);
    return NULL;
}

/* ---- what starts ---- */

static const char own_name[] = "CPUExecutionProvider";
static const char cpu_of_library[] = "ort:CPUExecutionProvider";

/* The names that the last library starts beside its CPU's, each with NUL; the lock is for all. */
static struct {
    pthread_mutex_t lock;
    bool is_known, has_cpu;
    char *library; /* what SDX_ORT_LIBRARY was; NULL: it was not set */
    char names[1024];
    size_t size;
    int count;
} started = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void note(const sdx_provider_info *info, void *user)
{
    (void)user;
    const size_t size = strlen(info->name) + 1;
    if (!info->starts || !strcmp(info->name, own_name)) return;
    if (!strcmp(info->name, cpu_of_library)) {
        started.has_cpu = true;
    } else if (size <= sizeof started.names - started.size) {
        memcpy(started.names + started.size, info->name, size);
        started.size += size;
        started.count++;
    }
}

static OrtStatusPtr find_out(const char *library)
{
    if (started.is_known && !strcmp(started.library ? started.library : "", library ? library : ""))
        return NULL;
    sdx_context *cx = own_context();
    if (!cx) return ort_no_memory();
    started.is_known = started.has_cpu = false;
    started.size = 0;
    started.count = 0;
    OrtStatusPtr status = ort_set_text(&started.library, library);
    if (!status && sdx_providers(cx, NULL, note, NULL))
        status = ort_status(ORT_FAIL, sdx_error(cx));
    sdx_context_destroy(cx);
    started.is_known = !status;
    return status;
}

OrtStatusPtr ort_provider_names(bool with_library, char ***out, int *count)
{
    const char *library = getenv("SDX_ORT_LIBRARY");
    if (library && !*library) library = NULL;
    const bool look = library || with_library;
    *count = 0;
    *out = NULL;
    pthread_mutex_lock(&started.lock);
    OrtStatusPtr status = look ? find_out(library) : NULL;
    const int others = look && !status ? started.count : 0;
    if (!status) *out = calloc((size_t)others + 2, sizeof **out);
    if (!status && !*out) status = ort_no_memory();
    const char *name = started.names;
    for (int i = 0; i < others && !status; i++, name += strlen(name) + 1)
        status = ort_copy_text(NULL, name, &(*out)[(*count)++]);
    if (!status) status = ort_copy_text(NULL, own_name, &(*out)[(*count)++]);
    if (!status && with_library && started.has_cpu)
        status = ort_copy_text(NULL, cpu_of_library, &(*out)[(*count)++]);
    pthread_mutex_unlock(&started.lock);
    return status;
}
