/* SPDX-License-Identifier: Apache-2.0
 * Value handles: creation, counted references, deep copies, and their text form. */
#include "tensor/tensor.h"

#include <stdio.h>

static enum sdx_status check_shape(struct sdx_context *cx, int dtype, int rank, const int64_t *dims,
                                   int64_t *count, size_t *bytes)
{
    if (!sdx_dtype_is_valid(dtype))
        return SDX_FAIL(cx, SDX_INVALID_ARGUMENT, "tensor: element type %d is unknown", dtype);
    if (rank < 0 || rank > SDX_RANK_MAX)
        return SDX_FAIL(cx, SDX_INVALID_ARGUMENT, "tensor: rank %d, expected 0 to %d", rank,
                        SDX_RANK_MAX);
    if (!sdx_dims_count(dims, rank, count) || !sdx_dtype_bytes(dtype, *count, bytes)) {
        char text[256];
        return SDX_FAIL(cx, SDX_INVALID_ARGUMENT,
                        "tensor: shape %s has a negative length or too many elements",
                        sdx_dims_describe(dims, rank, text, sizeof text));
    }
    return SDX_OK;
}

enum { DATA_ALIGNMENT = 64, SMALL_MOST = 1024 };

/* Bytes from the start of a handle to the elements that lie behind it in the same block. */
static size_t data_offset(int rank)
{
    size_t dims = rank > SDX_RANK_INLINE ? (size_t)rank * sizeof(int64_t) : 0;
    return (sizeof(struct sdx_tensor) + dims + DATA_ALIGNMENT - 1) / DATA_ALIGNMENT *
           DATA_ALIGNMENT;
}

/* A handle with its dims, and room behind it; the caller fills the rest. */
static enum sdx_status handle_create(struct sdx_context *cx, int kind, int dtype, int rank,
                                     const int64_t *dims, size_t room, struct sdx_tensor **out)
{
    size_t extra = rank > SDX_RANK_INLINE ? (size_t)rank * sizeof *dims : 0;
    struct sdx_tensor *t =
        sdx_mem_alloc(cx->mem, SDX_MEM_TENSOR, room ? data_offset(rank) + room : sizeof *t + extra);
    if (!t) return SDX_FAIL_MEMORY(cx);
    memset(t, 0, sizeof *t);
    int64_t *own = extra ? (int64_t *)(void *)(t + 1) : t->dims_inline;
    if (rank > 0) memcpy(own, dims, (size_t)rank * sizeof *dims);
    t->dims = own;
    t->rank = rank;
    t->mem = cx->mem;
    t->kind = (uint8_t)kind;
    t->dtype = (uint8_t)dtype;
    atomic_init(&t->refs, 1);
    *out = t;
    return SDX_OK;
}

enum sdx_status sdx_tensor_new_view(struct sdx_context *cx, int dtype, int rank,
                                    const int64_t *dims, void *data, struct sdx_tensor **out)
{
    int64_t count = 0;
    size_t bytes = 0;
    *out = NULL;
    SDX_TRY(check_shape(cx, dtype, rank, dims, &count, &bytes));
    struct sdx_tensor *t = NULL;
    SDX_TRY(handle_create(cx, SDX_KIND_TENSOR, dtype, rank, dims, 0, &t));
    t->data = data;
    t->count = count;
    t->bytes = bytes;
    *out = t;
    return SDX_OK;
}

/* Few elements lie in the handle's block: one allocation instead of two. */
enum sdx_status sdx_tensor_new_raw(struct sdx_context *cx, int dtype, int rank, const int64_t *dims,
                                   struct sdx_tensor **out)
{
    int64_t count = 0;
    size_t bytes = 0;
    struct sdx_tensor *t = NULL;
    *out = NULL;
    SDX_TRY(check_shape(cx, dtype, rank, dims, &count, &bytes));
    bool is_small = bytes > 0 && bytes <= SMALL_MOST;
    SDX_TRY(handle_create(cx, SDX_KIND_TENSOR, dtype, rank, dims, is_small ? bytes : 0, &t));
    t->count = count;
    t->bytes = bytes;
    t->owns_data = !is_small;
    t->data =
        is_small ? (char *)t + data_offset(rank) : sdx_mem_alloc(cx->mem, SDX_MEM_TENSOR, bytes);
    if (!t->data) {
        sdx_tensor_release(t);
        return SDX_FAIL_MEMORY(cx);
    }
    if (dtype == SDX_STRING && bytes) memset(t->data, 0, bytes);
    *out = t;
    return SDX_OK;
}

enum sdx_status sdx_tensor_new(struct sdx_context *cx, int dtype, int rank, const int64_t *dims,
                               struct sdx_tensor **out)
{
    SDX_TRY(sdx_tensor_new_raw(cx, dtype, rank, dims, out));
    if ((*out)->bytes) memset((*out)->data, 0, (*out)->bytes);
    return SDX_OK;
}

/* One block: the array of views, then the texts they point to. */
enum sdx_status sdx_tensor_new_strings(struct sdx_context *cx, int rank, const int64_t *dims,
                                       const struct sdx_str *texts, struct sdx_tensor **out)
{
    struct sdx_tensor *t = NULL;
    *out = NULL;
    SDX_TRY(sdx_tensor_new_view(cx, SDX_STRING, rank, dims, NULL, &t));
    size_t total = t->bytes;
    bool fits = true;
    for (int64_t i = 0; i < t->count && fits; i++)
        fits = sdx_add_size(total, texts[i].len, &total);
    if (!fits) {
        sdx_tensor_release(t);
        return SDX_FAIL(cx, SDX_INVALID_ARGUMENT, "tensor: texts of more bytes than fit in memory");
    }
    t->data = sdx_mem_alloc(cx->mem, SDX_MEM_TENSOR, total);
    t->owns_data = true;
    if (!t->data) {
        sdx_tensor_release(t);
        return SDX_FAIL_MEMORY(cx);
    }
    struct sdx_str *views = t->data;
    char *at = (char *)t->data + t->bytes;
    for (int64_t i = 0; i < t->count; i++) {
        views[i] = (struct sdx_str){at, texts[i].len};
        if (texts[i].len > 0) memcpy(at, texts[i].ptr, texts[i].len);
        at += texts[i].len;
    }
    *out = t;
    return SDX_OK;
}

/* Where items lie that are in the handle's block. */
static struct sdx_tensor **small_items(struct sdx_tensor *t)
{
    return (struct sdx_tensor **)(void *)((char *)t + data_offset(t->rank));
}

/* Room for `count` items, none of them set yet. */
static enum sdx_status items_create(struct sdx_context *cx, int kind, int dtype, int64_t count,
                                    int rank, const int64_t *dims, struct sdx_tensor **out)
{
    struct sdx_tensor *t = NULL;
    *out = NULL;
    if (kind <= SDX_KIND_TENSOR || kind > SDX_KIND_SPARSE)
        return SDX_FAIL(cx, SDX_INVALID_ARGUMENT, "value: kind %d holds no items", kind);
    if (count < 0 || (kind == SDX_KIND_OPTIONAL && count > 1) ||
        ((kind == SDX_KIND_MAP || kind == SDX_KIND_SPARSE) && count != 2))
        return SDX_FAIL(cx, SDX_INVALID_ARGUMENT, "value: kind %d with %lld items", kind,
                        (long long)count);
    if (rank < 0 || rank > SDX_RANK_MAX)
        return SDX_FAIL(cx, SDX_INVALID_ARGUMENT, "value: rank %d, expected 0 to %d", rank,
                        SDX_RANK_MAX);
    const bool is_small = count > 0 && count <= SMALL_MOST / (int64_t)sizeof(struct sdx_tensor *);
    const size_t bytes = is_small ? (size_t)count * sizeof(struct sdx_tensor *) : 0;
    SDX_TRY(handle_create(cx, kind, dtype, rank, dims, bytes, &t));
    if (is_small) {
        t->items = small_items(t);
        memset(t->items, 0, bytes);
    } else {
        t->items =
            sdx_mem_calloc(cx->mem, SDX_MEM_TENSOR, (size_t)count, sizeof(struct sdx_tensor *));
    }
    t->owns_data = true;
    if (!t->items) {
        sdx_tensor_release(t);
        return SDX_FAIL_MEMORY(cx);
    }
    t->count = count;
    *out = t;
    return SDX_OK;
}

enum sdx_status sdx_tensor_new_items(struct sdx_context *cx, int kind, int dtype, int64_t count,
                                     struct sdx_tensor *const *items, int rank, const int64_t *dims,
                                     struct sdx_tensor **out)
{
    SDX_TRY(items_create(cx, kind, dtype, count, rank, dims, out));
    for (int64_t i = 0; i < count; i++)
        (*out)->items[i] = sdx_tensor_retain(items[i]);
    return SDX_OK;
}

static enum sdx_status clone_items(struct sdx_context *cx, const struct sdx_tensor *from,
                                   const struct sdx_tensor *like, const struct sdx_tensor *made,
                                   struct sdx_tensor **out);

enum sdx_status sdx_tensor_clone(struct sdx_context *cx, const struct sdx_tensor *from,
                                 struct sdx_tensor **out)
{
    *out = NULL;
    if (from->kind == SDX_KIND_TENSOR) {
        if (from->dtype == SDX_STRING)
            return sdx_tensor_new_strings(cx, from->rank, from->dims, from->data, out);
        SDX_TRY(sdx_tensor_new_raw(cx, from->dtype, from->rank, from->dims, out));
        if (from->layout == SDX_LAYOUT_GROWING)
            sdx_tensor_copy(from, *out, 0, sdx_tensor_copy_parts(from, *out));
        else if (from->bytes > 0)
            memcpy((*out)->data, from->data, from->bytes);
        return SDX_OK;
    }
    return clone_items(cx, from, NULL, NULL, out);
}

/* What `like` has been cloned to in `made` is shared: maps of a sequence have one set of keys. */
static enum sdx_status clone_items(struct sdx_context *cx, const struct sdx_tensor *from,
                                   const struct sdx_tensor *like, const struct sdx_tensor *made,
                                   struct sdx_tensor **out)
{
    struct sdx_tensor *t = NULL;
    SDX_TRY(items_create(cx, from->kind, from->dtype, from->count, from->rank, from->dims, &t));
    for (int64_t i = 0; i < from->count; i++) {
        const struct sdx_tensor *item = from->items[i];
        enum sdx_status status = SDX_OK;
        if (like && i < like->count && item == like->items[i])
            t->items[i] = sdx_tensor_retain(made->items[i]);
        else if (item->kind == SDX_KIND_MAP && i > 0 && from->items[i - 1]->kind == SDX_KIND_MAP)
            status = clone_items(cx, item, from->items[i - 1], t->items[i - 1], &t->items[i]);
        else
            status = sdx_tensor_clone(cx, item, &t->items[i]);
        if (status != SDX_OK) {
            sdx_tensor_release(t);
            return status;
        }
    }
    *out = t;
    return SDX_OK;
}

void sdx_tensor_copy_elements(const struct sdx_tensor *constant, void *to)
{
    if (constant->recipe)
        constant->recipe->make(constant->recipe, to);
    else if (constant->bytes)
        memcpy(to, constant->data, constant->bytes);
}

void sdx_tensor_settle(struct sdx_tensor *constant, void *data)
{
    constant->data = data;
    constant->recipe = NULL;
    constant->needs_copy = false;
}

const void *sdx_tensor_key(const struct sdx_tensor *constant)
{
    return constant->recipe ? (const void *)constant->recipe : constant->data;
}

struct sdx_tensor *sdx_tensor_retain(struct sdx_tensor *tensor)
{
    SDX_ASSERT(atomic_load_explicit(&tensor->refs, memory_order_relaxed) > 0);
    atomic_fetch_add_explicit(&tensor->refs, 1, memory_order_relaxed);
    return tensor;
}

void sdx_tensor_release(struct sdx_tensor *tensor)
{
    if (!tensor) return;
    SDX_ASSERT(atomic_load_explicit(&tensor->refs, memory_order_relaxed) > 0);
    if (atomic_fetch_sub_explicit(&tensor->refs, 1, memory_order_acq_rel) != 1) return;
    struct sdx_mem *mem = tensor->mem;
    if (tensor->owns_data) {
        if (tensor->items)
            for (int64_t i = 0; i < tensor->count; i++)
                sdx_tensor_release(tensor->items[i]);
        if (tensor->items != small_items(tensor)) sdx_mem_free(mem, tensor->items);
        sdx_mem_free(mem, tensor->data);
    }
    sdx_mem_free(mem, tensor);
}

/* Adds at `*at`, never past the end. */
static SDX_PRINTF(4, 5) void put(char *buf, size_t size, size_t *at, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = *at < size ? vsnprintf(buf + *at, size - *at, format, args) : 0;
    va_end(args);
    if (n > 0) *at += (size_t)n;
    if (*at >= size) *at = size;
}

static void put_dims(char *buf, size_t size, size_t *at, const int64_t *dims, int rank)
{
    put(buf, size, at, "[");
    for (int i = 0; i < rank && *at < size; i++) {
        const char *comma = i ? "," : "";
        if (dims[i] >= 0)
            put(buf, size, at, "%s%lld", comma, (long long)dims[i]);
        else
            put(buf, size, at, "%s?", comma);
    }
    put(buf, size, at, "]");
}

const char *sdx_dims_describe(const int64_t *dims, int rank, char *buf, size_t size)
{
    size_t at = 0;
    if (size > 0) buf[0] = 0;
    put_dims(buf, size, &at, dims, rank);
    return buf;
}

const char *sdx_tensor_describe(const struct sdx_tensor *tensor, char *buf, size_t size)
{
    static const char *const kinds[] = {
        [SDX_KIND_SEQUENCE] = "seq", [SDX_KIND_OPTIONAL] = "optional", [SDX_KIND_MAP] = "map"};
    size_t at = 0;
    if (size > 0) buf[0] = 0;
    if (tensor->kind == SDX_KIND_TENSOR || tensor->kind == SDX_KIND_SPARSE) {
        const char *sparse = tensor->kind == SDX_KIND_SPARSE ? "sparse " : "";
        put(buf, size, &at, "%s%s", sparse, sdx_dtype_short_name(tensor->dtype));
        put_dims(buf, size, &at, tensor->dims, tensor->rank);
        if (tensor->layout == SDX_LAYOUT_BLOCKED) put(buf, size, &at, " blocked");
        if (tensor->layout == SDX_LAYOUT_LAST) put(buf, size, &at, " last");
        if (tensor->layout == SDX_LAYOUT_GROWING) put(buf, size, &at, " growing");
    } else if (tensor->kind == SDX_KIND_MAP) {
        put(buf, size, &at, "map(%lld keys)", (long long)tensor->items[0]->count);
    } else {
        put(buf, size, &at, "%s(%lld item%s)",
            tensor->kind <= SDX_KIND_MAP && kinds[tensor->kind] ? kinds[tensor->kind] : "value",
            (long long)tensor->count, tensor->count == 1 ? "" : "s");
    }
    return buf;
}

enum sdx_status sdx_tensor_reshape(struct sdx_context *cx, struct sdx_tensor **tensor, int rank,
                                   const int64_t *dims)
{
    struct sdx_tensor *from = *tensor, *t = NULL;
    SDX_ASSERT(atomic_load(&from->refs) == 1);
    if (rank <= SDX_RANK_INLINE) {
        if (rank > 0) memmove(from->dims_inline, dims, (size_t)rank * sizeof *dims);
        from->dims = from->dims_inline;
        from->rank = rank;
        return SDX_OK;
    }
    SDX_TRY(sdx_tensor_new_raw(cx, from->dtype, rank, dims, &t));
    SDX_ASSERT(t->bytes == from->bytes && from->dtype != SDX_STRING);
    if (t->bytes) memcpy(t->data, from->data, t->bytes);
    sdx_tensor_release(from);
    *tensor = t;
    return SDX_OK;
}
