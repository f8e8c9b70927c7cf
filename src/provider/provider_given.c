/* SPDX-License-Identifier: Apache-2.0
 * What the caller gave beside the model's file, handed on to an ONNX Runtime library: lengths of
 * dimensions, initializers, files with external data and their folder. Nothing is copied. */
#include "provider/provider.h"

enum { SINCE_FILES = 18 }; /* the release with AddExternalInitializersFromFilesInMemory */

#define TRY_ORT(call) SDX_TRY(sdx_ort_status(&r->library, cx, r->names[0], (call)))

static enum sdx_status give_dims(struct sdx_context *cx, const struct sdx_model *m,
                                 struct sdx_remote *r)
{
    const OrtApi *api = r->library.api;
    for (int i = 0; i < m->count_dims; i++) {
        const struct sdx_dim_override *dim = &m->dims[i];
        if (dim->name)
            TRY_ORT(api->AddFreeDimensionOverrideByName(r->options, dim->name, dim->length));
        else
            TRY_ORT(api->AddFreeDimensionOverride(r->options, dim->denotation, dim->length));
    }
    return SDX_OK;
}

/* Where there are two of a name, the last counts. */
static const struct sdx_onnx_tensor *find(const struct sdx_onnx_tensors *all, struct sdx_str name)
{
    for (int32_t i = all->count; i-- > 0;)
        if (sdx_str_equal(all->at[i].name, name)) return &all->at[i];
    return NULL;
}

/* Of numbers: the library takes no strings. */
static bool is_same(struct sdx_context *cx, const struct sdx_onnx_tensor *from,
                    const struct sdx_tensor *given)
{
    struct sdx_arena arena;
    struct sdx_context trial;
    const void *data = NULL;
    sdx_context_init_child(&trial, cx);
    sdx_arena_init(&arena, cx->mem, SDX_MEM_SCRATCH);
    const bool same = sdx_onnx_tensor_data(&trial, &arena, NULL, from, &data) == SDX_OK &&
                      (given->bytes == 0 || memcmp(data, given->data, given->bytes) == 0);
    sdx_arena_deinit(&arena);
    return same;
}

/* The library folds constants of an initializer as it is in the file, and reads the one that is
 * given only where nodes are left: with other elements its passes must not run. It has a way of its
 * own for external ones, which it replaces first. */
static enum sdx_status give_tensors(struct sdx_context *cx, const struct sdx_model *m,
                                    struct sdx_remote *r, sdx_level *level)
{
    const OrtApi *api = r->library.api;
    const struct sdx_external *ex = &m->external;
    if (ex->count_given == 0) return SDX_OK;
    r->given = sdx_mem_calloc(cx->mem, SDX_MEM_PLAN, (size_t)ex->count_given, sizeof *r->given);
    if (!r->given) return SDX_FAIL_MEMORY(cx);
    r->count_given = ex->count_given;
    for (int32_t i = 0; i < ex->count_given; i++) {
        const struct sdx_given *given = &ex->given[i];
        OrtValue **value = &r->given[i];
        const char *name = given->name.ptr;
        const struct sdx_onnx_tensor *from = find(&m->message->graph->initializers, given->name);
        if (!from)
            return SDX_FAIL(cx, SDX_NOT_SUPPORTED,
                            "%s: the file has no dense initializer \"%s\"; one is given for an "
                            "input only with " SDX_PROVIDER_OWN,
                            r->names[0], name);
        SDX_TRY(sdx_remote_value(cx, r, given->tensor, given->tensor->rank, value));
        if (from->data_location == 1) {
            TRY_ORT(
                api->AddExternalInitializers(r->options, &name, (const OrtValue *const *)value, 1));
        } else {
            TRY_ORT(api->AddInitializer(r->options, name, *value));
            if (!is_same(cx, from, given->tensor)) *level = SDX_LEVEL_NONE;
        }
    }
    return SDX_OK;
}

static enum sdx_status give_files(struct sdx_context *cx, struct sdx_model *m, struct sdx_remote *r)
{
    const OrtApi *api = r->library.api;
    for (int32_t i = 0; i < m->external.count; i++) {
        const struct sdx_file_map *file = &m->external.files[i];
        char *bytes = (char *)(uintptr_t)file->data;
        if (!file->given_as) continue;
        if (r->library.release < SINCE_FILES)
            return SDX_FAIL(cx, SDX_NOT_SUPPORTED,
                            "%s: files from memory need ONNX Runtime 1.%d, found %s", r->names[0],
                            SINCE_FILES, r->library.version);
        TRY_ORT(api->AddExternalInitializersFromFilesInMemory(r->options, &file->given_as, &bytes,
                                                              &file->size, 1));
    }
    return SDX_OK;
}

enum sdx_status sdx_remote_give(struct sdx_context *cx, struct sdx_model *m, struct sdx_remote *r,
                                sdx_level *level)
{
    const char *folder = m->has_folder ? m->external.folder : NULL;
    if (folder)
        TRY_ORT(r->library.api->AddSessionConfigEntry(
            r->options, "session.model_external_initializers_file_folder_path", folder));
    SDX_TRY(give_dims(cx, m, r));
    SDX_TRY(give_tensors(cx, m, r, level));
    sdx_lock_take(&m->lock); /* files are opened while graphs are made */
    enum sdx_status status = give_files(cx, m, r);
    sdx_lock_give(&m->lock);
    return status;
}
