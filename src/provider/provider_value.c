/* SPDX-License-Identifier: Apache-2.0
 * Values over to an ONNX Runtime library and back. Tensors of numbers lie in memory alike, so they
 * go over without a copy; what comes back is copied, because it is the library's. */
#include "provider/provider.h"

#define TRY_ORT(call) SDX_TRY(sdx_ort_status(&r->library, cx, NULL, (call)))

static enum sdx_status fill_strings(struct sdx_context *cx, const struct sdx_remote *r,
                                    const struct sdx_tensor *from, OrtValue *to)
{
    const struct sdx_str *texts = from->data;
    for (int64_t i = 0; i < from->count; i++) {
        char *room = NULL;
        TRY_ORT(r->library.api->GetResizedStringTensorElementBuffer(to, (size_t)i, texts[i].len,
                                                                    &room));
        if (texts[i].len) memcpy(room, texts[i].ptr, texts[i].len);
    }
    return SDX_OK;
}

/* Sequences and maps. The value holds its items. */
static enum sdx_status take_items(struct sdx_context *cx, const struct sdx_remote *r,
                                  const struct sdx_tensor *from, OrtValue **out)
{
    const OrtApi *api = r->library.api;
    enum ONNXType type = from->kind == SDX_KIND_MAP ? ONNX_TYPE_MAP : ONNX_TYPE_SEQUENCE;
    if (from->count == 0 || (from->kind != SDX_KIND_MAP && from->kind != SDX_KIND_SEQUENCE))
        return SDX_FAIL(cx, SDX_NOT_SUPPORTED, "%s cannot be given to the library",
                        from->count ? "a sparse tensor" : "an empty sequence or optional");
    size_t count = (size_t)from->count;
    OrtValue **items = sdx_mem_calloc(cx->mem, SDX_MEM_SCRATCH, count + 1, sizeof *items);
    enum sdx_status status = items ? SDX_OK : SDX_FAIL_MEMORY(cx);
    for (size_t i = 0; i < count && status == SDX_OK; i++)
        status = sdx_remote_value(cx, r, from->items[i], from->items[i]->rank, &items[i]);
    if (status == SDX_OK)
        status = sdx_ort_status(&r->library, cx, NULL,
                                api->CreateValue((const OrtValue *const *)items, count, type, out));
    for (size_t i = 0; items && i < count; i++)
        if (items[i]) api->ReleaseValue(items[i]);
    sdx_mem_free(cx->mem, items);
    return status;
}

enum sdx_status sdx_remote_value(struct sdx_context *cx, const struct sdx_remote *r,
                                 const struct sdx_tensor *from, int rank, OrtValue **out)
{
    const OrtApi *api = r->library.api;
    *out = NULL;
    if (from->kind != SDX_KIND_TENSOR) return take_items(cx, r, from, out);
    if (from->dtype != SDX_STRING) {
        TRY_ORT(api->CreateTensorWithDataAsOrtValue(r->memory, from->data, from->bytes, from->dims,
                                                    (size_t)rank,
                                                    (ONNXTensorElementDataType)from->dtype, out));
        return SDX_OK;
    }
    TRY_ORT(api->CreateTensorAsOrtValue(r->allocator, from->dims, (size_t)rank,
                                        ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING, out));
    return fill_strings(cx, r, from, *out);
}

/* ---- back ---- */

static enum sdx_status copy_strings(struct sdx_context *cx, const struct sdx_remote *r,
                                    const OrtValue *from, int rank, const int64_t *dims,
                                    struct sdx_arena *arena, struct sdx_tensor **out)
{
    size_t bytes = 0, count = 1;
    TRY_ORT(r->library.api->GetStringTensorDataLength(from, &bytes));
    for (int d = 0; d < rank; d++)
        count *= (size_t)dims[d];
    char *texts = sdx_arena_alloc(arena, bytes + 1);
    size_t *offsets = sdx_arena_array(arena, count + 1, sizeof *offsets);
    struct sdx_str *views = sdx_arena_array(arena, count + 1, sizeof *views);
    if (!texts || !offsets || !views) return SDX_FAIL_MEMORY(cx);
    if (count) TRY_ORT(r->library.api->GetStringTensorContent(from, texts, bytes, offsets, count));
    offsets[count] = bytes;
    for (size_t i = 0; i < count; i++)
        views[i] = (struct sdx_str){texts + offsets[i], offsets[i + 1] - offsets[i]};
    return sdx_tensor_new_strings(cx, rank, dims, views, out);
}

static enum sdx_status copy_elements(struct sdx_context *cx, const struct sdx_remote *r,
                                     const OrtValue *from, const OrtTensorTypeAndShapeInfo *info,
                                     struct sdx_arena *arena, struct sdx_tensor **out)
{
    const OrtApi *api = r->library.api;
    ONNXTensorElementDataType dtype = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
    size_t rank = 0;
    void *data = NULL;
    TRY_ORT(api->GetTensorElementType(info, &dtype));
    TRY_ORT(api->GetDimensionsCount(info, &rank));
    int64_t *dims = sdx_arena_array(arena, rank + 1, sizeof *dims);
    if (!dims) return SDX_FAIL_MEMORY(cx);
    TRY_ORT(api->GetDimensions(info, dims, rank));
    if (dtype == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING)
        return copy_strings(cx, r, from, (int)rank, dims, arena, out);
    SDX_TRY(sdx_tensor_new_raw(cx, (int)dtype, (int)rank, dims, out));
    TRY_ORT(api->GetTensorMutableData((OrtValue *)(uintptr_t)from, &data));
    if ((*out)->bytes) memcpy((*out)->data, data, (*out)->bytes);
    return SDX_OK;
}

static enum sdx_status copy_tensor(struct sdx_context *cx, const struct sdx_remote *r,
                                   const OrtValue *from, struct sdx_tensor **out)
{
    OrtTensorTypeAndShapeInfo *info = NULL;
    struct sdx_arena arena;
    TRY_ORT(r->library.api->GetTensorTypeAndShape(from, &info));
    sdx_arena_init(&arena, cx->mem, SDX_MEM_SCRATCH);
    enum sdx_status status = copy_elements(cx, r, from, info, &arena, out);
    sdx_arena_deinit(&arena);
    r->library.api->ReleaseTensorTypeAndShapeInfo(info);
    return status;
}

static enum sdx_status copy_items(struct sdx_context *cx, const struct sdx_remote *r,
                                  const OrtValue *from, int kind, int dtype,
                                  struct sdx_tensor **out)
{
    const OrtApi *api = r->library.api;
    size_t count = 2; /* keys and values of a map */
    if (kind == SDX_KIND_SEQUENCE) TRY_ORT(api->GetValueCount(from, &count));
    struct sdx_tensor **items =
        sdx_mem_calloc(cx->mem, SDX_MEM_SCRATCH, count + 1, sizeof(struct sdx_tensor *));
    enum sdx_status status = items ? SDX_OK : SDX_FAIL_MEMORY(cx);
    for (size_t i = 0; i < count && status == SDX_OK; i++) {
        OrtValue *item = NULL;
        status =
            sdx_ort_status(&r->library, cx, NULL, api->GetValue(from, (int)i, r->allocator, &item));
        if (status == SDX_OK)
            status = sdx_remote_tensor(cx, r, item, SDX_KIND_NONE, dtype, &items[i]);
        if (item) api->ReleaseValue(item);
    }
    if (status == SDX_OK)
        status = sdx_tensor_new_items(cx, kind, dtype, (int64_t)count, items, 0, NULL, out);
    for (size_t i = 0; items && i < count; i++)
        sdx_tensor_release(items[i]);
    sdx_mem_free(cx->mem, items);
    return status;
}

/* The library has no optionals: there is the value in one, or none. */
static enum sdx_status copy_value(struct sdx_context *cx, const struct sdx_remote *r,
                                  const OrtValue *from, int dtype, struct sdx_tensor **out)
{
    enum ONNXType type = ONNX_TYPE_UNKNOWN;
    TRY_ORT(r->library.api->GetValueType(from, &type));
    if (type == ONNX_TYPE_TENSOR) return copy_tensor(cx, r, from, out);
    if (type == ONNX_TYPE_SEQUENCE || type == ONNX_TYPE_MAP)
        return copy_items(cx, r, from, type == ONNX_TYPE_MAP ? SDX_KIND_MAP : SDX_KIND_SEQUENCE,
                          dtype, out);
    return SDX_FAIL(cx, SDX_NOT_SUPPORTED, "a value of kind %d cannot be taken", (int)type);
}

enum sdx_status sdx_remote_tensor(struct sdx_context *cx, const struct sdx_remote *r,
                                  const OrtValue *from, int kind, int dtype,
                                  struct sdx_tensor **out)
{
    int has_value = 0;
    *out = NULL;
    TRY_ORT(r->library.api->HasValue(from, &has_value));
    enum sdx_status status = has_value ? copy_value(cx, r, from, dtype, out) : SDX_OK;
    if (status == SDX_OK && (kind == SDX_KIND_OPTIONAL || !has_value)) {
        struct sdx_tensor *item = *out;
        status = sdx_tensor_new_items(cx, SDX_KIND_OPTIONAL, dtype, has_value, &item, 0, NULL, out);
        sdx_tensor_release(item);
    }
    if (status) {
        sdx_tensor_release(*out);
        *out = NULL;
    }
    return status;
}
