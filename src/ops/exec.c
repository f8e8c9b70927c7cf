/* SPDX-License-Identifier: Apache-2.0
 * What running steps call: outputs whose shape is found while running, values that are not tensors,
 * bodies. */
#include "ops/step_host.h"

void sdx_op_tensor_clear(struct sdx_tensor *t)
{
    if (t->owns_data) {
        for (int64_t i = 0; t->items && i < t->count; i++)
            sdx_tensor_release(t->items[i]);
        sdx_mem_free(t->mem, t->items);
        sdx_mem_free(t->mem, t->data);
        if (t->dims != t->dims_inline) sdx_mem_free(t->mem, (void *)(uintptr_t)t->dims);
        t->dims = t->dims_inline;
        t->rank = 0;
        t->count = 0;
    }
    t->items = NULL;
    t->data = NULL;
    t->owns_data = false;
}

/* The header becomes an owner: dims are copied, data is allocated (`extra` bytes behind the
 * elements). */
static enum sdx_status own(struct sdx_exec *x, struct sdx_tensor *t, int dtype, int rank,
                           const int64_t *dims, size_t extra)
{
    struct sdx_context *cx = x->cx;
    int64_t count = 0;
    size_t bytes = 0, total = 0;
    if (rank < 0 || rank > SDX_RANK_MAX)
        return SDX_FAIL(cx, SDX_NOT_SUPPORTED, "result has rank %d, the largest is %d", rank,
                        SDX_RANK_MAX);
    if (!sdx_dims_count(dims, rank, &count) || !sdx_dtype_bytes(dtype, count, &bytes) ||
        !sdx_add_size(bytes, extra, &total))
        return SDX_FAIL(cx, SDX_OUT_OF_MEMORY, "result is larger than memory can be");
    int64_t copy[SDX_RANK_MAX]; /* dims may belong to t itself */
    if (rank) memcpy(copy, dims, (size_t)rank * sizeof *dims);
    bool reuse = t->owns_data && !t->items && t->data && t->bytes == total && t->rank == rank;
    if (!reuse) {
        sdx_op_tensor_clear(t);
        t->mem = cx->mem;
        t->owns_data = true;
        t->dims = t->dims_inline;
        if (rank > SDX_RANK_INLINE) {
            int64_t *many = sdx_mem_alloc(cx->mem, SDX_MEM_TENSOR, (size_t)rank * sizeof *many);
            if (!many) return SDX_FAIL_MEMORY(cx);
            t->dims = many;
        }
        t->data = sdx_mem_alloc(cx->mem, SDX_MEM_TENSOR, total);
        if (!t->data) return SDX_FAIL_MEMORY(cx);
    }
    if (rank) memcpy((void *)(uintptr_t)t->dims, copy, (size_t)rank * sizeof *copy);
    t->kind = SDX_KIND_TENSOR;
    t->dtype = (uint8_t)dtype;
    t->rank = rank;
    t->count = count;
    t->bytes = bytes;
    return SDX_OK;
}

enum sdx_status sdx_exec_output(struct sdx_exec *x, const struct sdx_step *step, int k, int dtype,
                                int rank, const int64_t *dims)
{
    if (k >= step->count_out || !step->out[k]) return SDX_OK;
    SDX_TRY(own(x, step->out[k], dtype, rank, dims, 0));
    if (dtype == SDX_STRING) memset(step->out[k]->data, 0, step->out[k]->bytes);
    return SDX_OK;
}

enum sdx_status sdx_exec_output_strings(struct sdx_exec *x, const struct sdx_step *step, int k,
                                        int rank, const int64_t *dims, const struct sdx_str *texts)
{
    if (k >= step->count_out || !step->out[k]) return SDX_OK;
    int64_t count = 0;
    size_t extra = 0;
    if (!sdx_dims_count(dims, rank, &count))
        return SDX_FAIL(x->cx, SDX_OUT_OF_MEMORY, "result is larger than memory can be");
    for (int64_t i = 0; i < count; i++)
        if (!sdx_add_size(extra, texts[i].len, &extra)) return SDX_FAIL_MEMORY(x->cx);
    /* texts may lie in what the output owns now: keep that until they are copied */
    struct sdx_tensor *t = step->out[k], old = {0};
    if (t->owns_data) {
        old.data = t->data;
        old.mem = t->mem;
        if (t->dims != t->dims_inline) old.items = (void *)(uintptr_t)t->dims;
        t->owns_data = false;
    }
    t->dims = t->dims_inline;
    enum sdx_status status = own(x, t, SDX_STRING, rank, dims, extra);
    if (status == SDX_OK) {
        struct sdx_str *strings = t->data;
        char *at = (char *)t->data + t->bytes;
        for (int64_t i = 0; i < count; i++) {
            strings[i] = (struct sdx_str){at, texts[i].len};
            if (texts[i].len) memcpy(at, texts[i].ptr, texts[i].len);
            at += texts[i].len;
        }
    }
    if (old.mem) {
        sdx_mem_free(old.mem, old.data);
        sdx_mem_free(old.mem, old.items);
    }
    return status;
}

enum sdx_status sdx_exec_output_items(struct sdx_exec *x, const struct sdx_step *step, int k,
                                      int kind, int dtype, int64_t count,
                                      struct sdx_tensor *const *items)
{
    if (k >= step->count_out || !step->out[k]) return SDX_OK;
    struct sdx_tensor *t = step->out[k];
    struct sdx_tensor **copy =
        sdx_mem_calloc(x->cx->mem, SDX_MEM_TENSOR, (size_t)count + 1, sizeof *copy);
    if (!copy) return SDX_FAIL_MEMORY(x->cx);
    for (int64_t i = 0; i < count; i++)
        copy[i] = sdx_tensor_retain(items[i]);
    sdx_op_tensor_clear(t);
    t->kind = (uint8_t)kind;
    t->dtype = (uint8_t)dtype;
    t->mem = x->cx->mem;
    t->owns_data = true;
    t->items = copy;
    t->count = count;
    t->rank = 0;
    t->bytes = 0;
    return SDX_OK;
}

enum sdx_status sdx_exec_output_copy(struct sdx_exec *x, const struct sdx_step *step, int k,
                                     const struct sdx_tensor *from)
{
    if (k >= step->count_out || !step->out[k]) return SDX_OK;
    struct sdx_tensor *t = step->out[k];
    if (from->kind != SDX_KIND_TENSOR)
        return sdx_exec_output_items(x, step, k, from->kind, from->dtype, from->count, from->items);
    if (from->dtype == SDX_STRING)
        return sdx_exec_output_strings(x, step, k, from->rank, from->dims, from->data);
    if (t->owns_data || !t->data)
        SDX_TRY(sdx_exec_output(x, step, k, from->dtype, from->rank, from->dims));
    if (t->bytes != from->bytes)
        return SDX_FAIL(x->cx, SDX_RUN_FAILED, "result has %zu bytes, expected %zu", from->bytes,
                        t->bytes);
    if (from->bytes && t->data != from->data) memmove(t->data, from->data, from->bytes);
    return SDX_OK;
}

enum sdx_status sdx_exec_body(struct sdx_exec *x, struct sdx_body *body, int count_in,
                              const struct sdx_tensor *const *in, struct sdx_tensor *const **out)
{
    return body->run(x, body, count_in, in, out);
}
