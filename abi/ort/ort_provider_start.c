/* SPDX-License-Identifier: Apache-2.0
 * Starting a provider of a real library by making a session of a small model, and handing the list
 * of those that started to the engine. Strict: what was appended runs, or making a session fails.
 */
#include "ort_provider_start.h"

#include <stdlib.h>
#include <string.h>

/* Relu of float[1]. */
static const char small_model[] =
    "\x08\x08\x3a\x33"
    "\x0a\x0c\x0a\x01x\x12\x01y\x22\x04Relu"
    "\x12\x01g"
    "\x5a\x0f\x0a\x01x\x12\x0a\x0a\x08\x08\x01\x12\x04\x0a\x02\x08\x01"
    "\x62\x0f\x0a\x01y\x12\x0a\x0a\x08\x08\x01\x12\x04\x0a\x02\x08\x01"
    "\x42\x02\x10\x0d";

static OrtStatusPtr try_list(sdx_context *cx, const OrtSessionOptions *list, OrtErrorCode code,
                             const char *missing)
{
    sdx_session_options options;
    sdx_model *model = NULL;
    sdx_session *session = NULL;
    void *room = NULL;
    sdx_session_options_init(&options);
    ORT_TRY(ort_provider_set(list, &options, &room));
    sdx_status failed = sdx_model_load(cx, small_model, sizeof small_model - 1, NULL, &model);
    if (!failed) failed = sdx_session_create(cx, model, &options, &session);
    OrtStatusPtr status = failed ? ort_fail(code, "%s: %s", missing, sdx_error(cx)) : NULL;
    sdx_session_destroy(session);
    sdx_model_destroy(model);
    free(room);
    return status;
}

OrtStatusPtr ort_provider_start(OrtSessionOptions *to, const char *name,
                                const struct OrtKeyValuePairs *with, OrtErrorCode code,
                                const char *missing)
{
    const char *library = getenv("SDX_ORT_LIBRARY");
    if (!library || !*library) return ort_status(code, missing);
    sdx_context_options own;
    sdx_context_options_init(&own);
    own.parent = ort_context();
    sdx_context *cx = own.parent ? sdx_context_create(&own) : NULL;
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
    return strcmp(provider->name, "CPUExecutionProvider") == 0;
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
