/* SPDX-License-Identifier: Apache-2.0
 * Public API: tensors and other values. Checks arguments, calls the tensor and proto layers. */
#include "proto/tensor_data.h"
#include "tensor/convert.h"
#include "tensor/npy.h"
#include "tensor/tensor.h"

#define BEGIN(cx, out)                                                                             \
    do {                                                                                           \
        *(out) = NULL;                                                                             \
        sdx_context_clear(cx);                                                                     \
    } while (0)

static enum sdx_status check_shape(sdx_context *cx, int rank, const int64_t *dims)
{
    if (rank < 0 || rank > SDX_RANK_MAX)
        return SDX_FAIL(cx, SDX_INVALID_ARGUMENT, "rank %d, expected 0 to %d", rank, SDX_RANK_MAX);
    if (rank && !dims)
        return SDX_FAIL(cx, SDX_INVALID_ARGUMENT, "dims is NULL, expected %d lengths", rank);
    return SDX_OK;
}

sdx_status sdx_tensor_create(sdx_context *cx, sdx_dtype dtype, int rank, const int64_t *dims,
                             sdx_tensor **out)
{
    BEGIN(cx, out);
    SDX_TRY(check_shape(cx, rank, dims));
    return sdx_tensor_new(cx, (int)dtype, rank, dims, out);
}

sdx_status sdx_tensor_view(sdx_context *cx, sdx_dtype dtype, int rank, const int64_t *dims,
                           void *data, sdx_tensor **out)
{
    BEGIN(cx, out);
    SDX_TRY(check_shape(cx, rank, dims));
    if (dtype == SDX_STRING)
        return SDX_FAIL(cx, SDX_INVALID_ARGUMENT,
                        "strings cannot be viewed, use sdx_tensor_create_strings");
    return sdx_tensor_new_view(cx, (int)dtype, rank, dims, data, out);
}

sdx_status sdx_tensor_create_strings(sdx_context *cx, int rank, const int64_t *dims,
                                     const char *const *texts, const size_t *lengths,
                                     sdx_tensor **out)
{
    BEGIN(cx, out);
    SDX_TRY(check_shape(cx, rank, dims));
    int64_t count = 0;
    if (!sdx_dims_count(dims, rank, &count))
        return SDX_FAIL(cx, SDX_INVALID_ARGUMENT, "lengths are negative or overflow");
    struct sdx_str *views =
        sdx_mem_calloc(cx->mem, SDX_MEM_TENSOR, (size_t)count + 1, sizeof *views);
    if (!views) return SDX_FAIL_MEMORY(cx);
    for (int64_t i = 0; i < count; i++)
        views[i] = lengths ? (struct sdx_str){texts[i], lengths[i]} : sdx_str(texts[i]);
    sdx_status status = sdx_tensor_new_strings(cx, rank, dims, views, out);
    sdx_mem_free(cx->mem, views);
    return status;
}

sdx_status sdx_value_create(sdx_context *cx, sdx_kind kind, sdx_dtype dtype, int64_t count,
                            sdx_tensor *const *items, sdx_tensor **out)
{
    BEGIN(cx, out);
    if (kind < SDX_KIND_SEQUENCE || kind > SDX_KIND_MAP || count < 0 || (count && !items))
        return SDX_FAIL(cx, SDX_INVALID_ARGUMENT, "kind %d with %lld items", (int)kind,
                        (long long)count);
    if (kind == SDX_KIND_OPTIONAL && count > 1)
        return SDX_FAIL(cx, SDX_INVALID_ARGUMENT, "an optional has %lld items, expected at most 1",
                        (long long)count);
    if (kind == SDX_KIND_MAP && count != 2)
        return SDX_FAIL(cx, SDX_INVALID_ARGUMENT, "a map has %lld items, expected 2",
                        (long long)count);
    for (int64_t i = 0; i < count; i++)
        if (items[i]->layout == SDX_LAYOUT_GROWING)
            return SDX_FAIL(cx, SDX_INVALID_ARGUMENT, "item %lld is a tensor that grows",
                            (long long)i);
    return sdx_tensor_new_items(cx, (int)kind, (int)dtype, count, items, 0, NULL, out);
}

static bool is_plain(const sdx_tensor *tensor)
{
    return tensor->kind == SDX_KIND_TENSOR && tensor->layout != SDX_LAYOUT_GROWING;
}

sdx_status sdx_tensor_create_sparse(sdx_context *cx, int rank, const int64_t *dims,
                                    sdx_tensor *values, sdx_tensor *indices, sdx_tensor **out)
{
    sdx_tensor *const items[] = {values, indices};
    char a[200], b[200];
    int64_t places = 0;
    BEGIN(cx, out);
    SDX_TRY(check_shape(cx, rank, dims));
    if (!sdx_dims_count(dims, rank, &places))
        return SDX_FAIL(cx, SDX_INVALID_ARGUMENT, "lengths are negative or overflow");
    const bool fits = is_plain(values) && values->rank == 1 && is_plain(indices) &&
                      indices->dtype == SDX_I64 && indices->rank >= 1 && indices->rank <= 2 &&
                      indices->dims[0] == values->dims[0] &&
                      (indices->rank == 1 || indices->dims[1] == rank);
    if (!fits)
        return SDX_FAIL(cx, SDX_INVALID_ARGUMENT,
                        "values %s with indices %s, expected [n] and int64 [n] or [n,%d]",
                        sdx_tensor_describe(values, a, sizeof a),
                        sdx_tensor_describe(indices, b, sizeof b), rank);
    return sdx_tensor_new_items(cx, SDX_KIND_SPARSE, values->dtype, 2, items, rank, dims, out);
}

sdx_status sdx_tensor_create_growing(sdx_context *cx, sdx_dtype dtype, int rank,
                                     const int64_t *dims, int axis, int64_t capacity,
                                     sdx_tensor **out)
{
    BEGIN(cx, out);
    SDX_TRY(check_shape(cx, rank, dims));
    return sdx_tensor_new_growing(cx, (int)dtype, rank, dims, axis, capacity, out);
}

sdx_status sdx_tensor_set_length(sdx_context *cx, sdx_tensor *tensor, int64_t length)
{
    sdx_context_clear(cx);
    if (tensor->layout != SDX_LAYOUT_GROWING)
        return SDX_FAIL(cx, SDX_INVALID_ARGUMENT, "the tensor is not one that grows");
    if (length < 0 || length > tensor->capacity)
        return SDX_FAIL(cx, SDX_INVALID_ARGUMENT, "length %lld, expected 0 to the capacity, %lld",
                        (long long)length, (long long)tensor->capacity);
    sdx_tensor_grow_to(tensor, length);
    return SDX_OK;
}

int64_t sdx_tensor_capacity(const sdx_tensor *tensor)
{
    return tensor->layout == SDX_LAYOUT_GROWING ? tensor->capacity : -1;
}

void sdx_tensor_destroy(sdx_tensor *tensor)
{
    sdx_tensor_release(tensor);
}

sdx_kind sdx_tensor_kind(const sdx_tensor *tensor)
{
    return tensor->kind;
}

sdx_dtype sdx_tensor_dtype(const sdx_tensor *tensor)
{
    return tensor->dtype;
}

int sdx_tensor_rank(const sdx_tensor *tensor)
{
    return tensor->rank;
}

const int64_t *sdx_tensor_dims(const sdx_tensor *tensor)
{
    return tensor->dims;
}

int64_t sdx_tensor_count(const sdx_tensor *tensor)
{
    return tensor->count;
}

size_t sdx_tensor_bytes(const sdx_tensor *tensor)
{
    return tensor->bytes;
}

void *sdx_tensor_data(sdx_tensor *tensor)
{
    return tensor->kind == SDX_KIND_TENSOR && tensor->dtype != SDX_STRING ? tensor->data : NULL;
}

const void *sdx_tensor_const_data(const sdx_tensor *tensor)
{
    return tensor->kind == SDX_KIND_TENSOR && tensor->dtype != SDX_STRING ? tensor->data : NULL;
}

static bool in_range(const sdx_tensor *tensor, int64_t i)
{
    return tensor->kind == SDX_KIND_TENSOR && i >= 0 && i < tensor->count;
}

double sdx_tensor_f64(const sdx_tensor *tensor, int64_t i)
{
    return in_range(tensor, i)
               ? sdx_load_f64(tensor->dtype, tensor->data, sdx_tensor_index(tensor, i))
               : 0;
}

int64_t sdx_tensor_i64(const sdx_tensor *tensor, int64_t i)
{
    return in_range(tensor, i)
               ? sdx_load_i64(tensor->dtype, tensor->data, sdx_tensor_index(tensor, i))
               : 0;
}

const char *sdx_tensor_string(const sdx_tensor *tensor, int64_t i, size_t *length)
{
    *length = 0;
    if (!in_range(tensor, i) || tensor->dtype != SDX_STRING) return NULL;
    const struct sdx_str *s = (const struct sdx_str *)tensor->data + i;
    *length = s->len;
    return s->ptr ? s->ptr : "";
}

sdx_tensor *sdx_tensor_item(const sdx_tensor *tensor, int64_t i)
{
    return tensor->items && i >= 0 && i < tensor->count ? tensor->items[i] : NULL;
}

sdx_status sdx_tensor_load_npy(sdx_context *cx, const char *path, sdx_tensor **out)
{
    BEGIN(cx, out);
    return sdx_npy_load(cx, path, out);
}

sdx_status sdx_tensor_load_npz(sdx_context *cx, const char *path, const char *member,
                               sdx_tensor **out)
{
    BEGIN(cx, out);
    return sdx_npz_load(cx, path, member, out);
}

sdx_status sdx_tensor_load_pb(sdx_context *cx, const char *path, sdx_kind kind, sdx_tensor **out)
{
    BEGIN(cx, out);
    return sdx_pb_load(cx, path, kind == SDX_KIND_NONE ? SDX_KIND_TENSOR : (int)kind, out);
}

/* A packed copy of a tensor that grows; NULL of others. */
static enum sdx_status pack(sdx_context *cx, const sdx_tensor *tensor, sdx_tensor **out)
{
    *out = NULL;
    return tensor->layout == SDX_LAYOUT_GROWING ? sdx_tensor_clone(cx, tensor, out) : SDX_OK;
}

static enum sdx_status npz_save_packed(sdx_context *cx, const char *path, int count,
                                       const char *const *names, sdx_tensor *const *tensors)
{
    sdx_tensor **packed = sdx_mem_calloc(cx->mem, SDX_MEM_TENSOR, (size_t)count, sizeof *packed);
    enum sdx_status status = packed ? SDX_OK : SDX_FAIL_MEMORY(cx);
    for (int i = 0; i < count && status == SDX_OK; i++) {
        status = pack(cx, tensors[i], &packed[i]);
        if (!packed[i] && status == SDX_OK) packed[i] = sdx_tensor_retain(tensors[i]);
    }
    if (status == SDX_OK) status = sdx_npz_save(cx, path, count, names, packed);
    for (int i = 0; packed && i < count; i++)
        sdx_tensor_release(packed[i]);
    sdx_mem_free(cx->mem, packed);
    return status;
}

sdx_status sdx_tensor_save_npy(sdx_context *cx, const char *path, const sdx_tensor *tensor)
{
    sdx_tensor *packed = NULL;
    sdx_context_clear(cx);
    SDX_TRY(pack(cx, tensor, &packed));
    sdx_status status = sdx_npy_save(cx, path, packed ? packed : tensor);
    sdx_tensor_release(packed);
    return status;
}

sdx_status sdx_tensor_save_npz(sdx_context *cx, const char *path, int count,
                               const char *const *names, sdx_tensor *const *tensors)
{
    sdx_context_clear(cx);
    for (int i = 0; i < count; i++)
        if (tensors[i]->layout == SDX_LAYOUT_GROWING)
            return npz_save_packed(cx, path, count, names, tensors);
    return sdx_npz_save(cx, path, count, names, tensors);
}

sdx_status sdx_tensor_save_pb(sdx_context *cx, const char *path, const char *name,
                              const sdx_tensor *tensor)
{
    sdx_tensor *packed = NULL;
    sdx_context_clear(cx);
    SDX_TRY(pack(cx, tensor, &packed));
    sdx_status status = sdx_pb_save(cx, path, name, packed ? packed : tensor);
    sdx_tensor_release(packed);
    return status;
}
