/* SPDX-License-Identifier: Apache-2.0
 * Carried values, stacks of trip results and slices of scanned inputs. */
#include "ops/control_state.h"

#include "ops/move.h"
#include "tensor/convert.h"

/* ---- carried values ---- */

enum sdx_status sdx_carried_init(struct sdx_carried *c, struct sdx_context *cx, int count)
{
    *c = (struct sdx_carried){.cx = cx, .count = count};
    size_t n = (size_t)count + 1;
    c->now = sdx_mem_calloc(cx->mem, SDX_MEM_SCRATCH, n, sizeof(*c->now));
    c->own = sdx_mem_calloc(cx->mem, SDX_MEM_SCRATCH, n * 2, sizeof(*c->own));
    return c->now && c->own ? SDX_OK : SDX_FAIL_MEMORY(cx);
}

void sdx_carried_deinit(struct sdx_carried *c)
{
    if (!c->cx) return;
    for (int i = 0; c->own && i < c->count; i++)
        sdx_tensor_release(c->own[i]);
    sdx_mem_free(c->cx->mem, c->now);
    sdx_mem_free(c->cx->mem, c->own);
}

static bool fits(const struct sdx_tensor *own, const struct sdx_tensor *from)
{
    return own && own->kind == SDX_KIND_TENSOR && from->kind == SDX_KIND_TENSOR &&
           own->dtype == from->dtype && own->dtype != SDX_STRING &&
           sdx_dims_equal(own->dims, own->rank, from->dims, from->rank);
}

/* Does `from` lie in the memory of a value of ours other than number k? */
static bool aliases(const struct sdx_carried *c, int k, const struct sdx_tensor *from)
{
    for (int i = 0; i < c->count; i++) {
        const struct sdx_tensor *own = c->own[i];
        if (!own || (i == k && own->data == from->data)) continue;
        uintptr_t a = (uintptr_t)own->data, b = (uintptr_t)from->data;
        if (own->data && from->data && b < a + own->bytes && a < b + from->bytes) return true;
    }
    return false;
}

static enum sdx_status copy_value(struct sdx_context *cx, const struct sdx_tensor *from,
                                  struct sdx_tensor **out)
{
    if (from->kind == SDX_KIND_TENSOR) return sdx_tensor_clone(cx, from, out);
    return sdx_tensor_new_items(cx, from->kind, from->dtype, from->count, from->items, from->rank,
                                from->dims, out);
}

enum sdx_status sdx_carried_update(struct sdx_carried *c, struct sdx_tensor *const *from)
{
    struct sdx_tensor **fresh = c->own + c->count + 1;
    enum sdx_status status = SDX_OK;
    bool mixed = false;
    for (int i = 0; i < c->count; i++) {
        fresh[i] = NULL;
        mixed = mixed || aliases(c, i, from[i]);
    }
    for (int i = 0; i < c->count && status == SDX_OK; i++)
        if (mixed || !fits(c->own[i], from[i])) status = copy_value(c->cx, from[i], &fresh[i]);
    for (int i = 0; i < c->count && status == SDX_OK; i++) {
        struct sdx_tensor *own = c->own[i];
        if (!fresh[i] && own->data != from[i]->data && own->bytes)
            memcpy(own->data, from[i]->data, own->bytes);
    }
    for (int i = 0; i < c->count; i++) {
        if (!fresh[i]) continue;
        if (status == SDX_OK) {
            sdx_tensor_release(c->own[i]);
            c->own[i] = fresh[i];
        } else {
            sdx_tensor_release(fresh[i]);
        }
    }
    for (int i = 0; i < c->count && status == SDX_OK; i++)
        c->now[i] = c->own[i];
    return status;
}

/* ---- stacks ---- */

void sdx_stack_init(struct sdx_stack *s, struct sdx_context *cx, const struct sdx_type *declared)
{
    *s = (struct sdx_stack){.cx = cx, .declared = declared};
}

void sdx_stack_deinit(struct sdx_stack *s)
{
    if (!s->cx) return;
    for (int64_t i = 0; s->texts && i < s->trips; i++)
        sdx_tensor_release(s->texts[i]);
    sdx_mem_free(s->cx->mem, s->texts);
    sdx_mem_free(s->cx->mem, s->data);
}

static enum sdx_status stack_begin(struct sdx_stack *s, const struct sdx_tensor *t)
{
    if (t->kind != SDX_KIND_TENSOR || t->rank >= SDX_RANK_MAX)
        return SDX_FAIL(s->cx, SDX_RUN_FAILED, "a scan output is no tensor of rank below %d",
                        SDX_RANK_MAX);
    s->dtype = t->dtype;
    s->rank = t->rank;
    s->each = t->count;
    if (t->rank) memcpy(s->dims, t->dims, (size_t)t->rank * sizeof(*s->dims));
    return SDX_OK;
}

static enum sdx_status stack_grow(struct sdx_stack *s)
{
    int64_t wanted = s->capacity ? s->capacity * 2 : 4, elements = 0;
    size_t bytes = 0;
    if (!sdx_mul_i64(wanted, s->each, &elements) || !sdx_dtype_bytes(s->dtype, elements, &bytes))
        return SDX_FAIL(s->cx, SDX_OUT_OF_MEMORY, "a scan output is larger than memory can be");
    char *data = sdx_mem_realloc(s->cx->mem, SDX_MEM_SCRATCH, s->data, bytes + 1);
    if (!data) return SDX_FAIL_MEMORY(s->cx);
    s->data = data;
    if (s->dtype == SDX_STRING) {
        struct sdx_tensor **texts =
            sdx_mem_realloc(s->cx->mem, SDX_MEM_SCRATCH, s->texts, (size_t)wanted * sizeof(*texts));
        if (!texts) return SDX_FAIL_MEMORY(s->cx);
        s->texts = texts;
    }
    s->capacity = wanted;
    return SDX_OK;
}

static bool is_packed(int dtype)
{
    return dtype != SDX_STRING && sdx_dtype_bits((sdx_dtype)dtype) < 8;
}

enum sdx_status sdx_stack_push(struct sdx_stack *s, const struct sdx_tensor *t)
{
    if (s->trips == 0) SDX_TRY(stack_begin(s, t));
    if (t->dtype != s->dtype || !sdx_dims_equal(t->dims, t->rank, s->dims, s->rank)) {
        char a[128], b[128];
        return SDX_FAIL(s->cx, SDX_RUN_FAILED,
                        "a scan output has shape %s in trip %lld, before it had %s",
                        sdx_dims_describe(t->dims, t->rank, a, sizeof(a)), (long long)s->trips,
                        sdx_dims_describe(s->dims, s->rank, b, sizeof(b)));
    }
    if (s->trips == s->capacity) SDX_TRY(stack_grow(s));
    if (is_packed(s->dtype)) {
        sdx_convert(s->dtype, s->data, s->trips * s->each, s->dtype, t->data, 0, s->each, true);
    } else {
        size_t bytes = (size_t)s->each * sdx_move_size(s->dtype);
        const void *from = t->data;
        if (s->dtype == SDX_STRING) {
            SDX_TRY(sdx_tensor_clone(s->cx, t, &s->texts[s->trips]));
            from = s->texts[s->trips]->data;
        }
        if (bytes) memcpy(s->data + (size_t)s->trips * bytes, from, bytes);
    }
    s->trips++;
    return SDX_OK;
}

/* Without a trip: lengths that are not declared are 0. */
static enum sdx_status stack_declared(struct sdx_stack *s)
{
    const struct sdx_type *t = s->declared;
    if (!t || t->dtype == SDX_DTYPE_NONE)
        return SDX_FAIL(s->cx, SDX_NOT_SUPPORTED,
                        "no trip was made and the element type of a scan output is not declared");
    s->dtype = t->dtype;
    s->rank = t->has_shape && t->rank < SDX_RANK_MAX ? t->rank : 0;
    for (int i = 0; i < s->rank; i++)
        s->dims[i] = t->dims[i] < 0 ? 0 : t->dims[i];
    return SDX_OK;
}

enum sdx_status sdx_stack_shape(struct sdx_stack *s, int64_t axis, int64_t length, int *rank,
                                int64_t *dims, int *axis_out)
{
    if (s->trips == 0) SDX_TRY(stack_declared(s));
    *rank = s->rank + 1;
    if (axis < 0) axis += *rank;
    if (axis < 0 || axis >= *rank)
        return SDX_FAIL(s->cx, SDX_BAD_MODEL, "axis %lld of a scan output of rank %d",
                        (long long)axis, *rank);
    for (int i = 0, j = 0; i < *rank; i++)
        dims[i] = i == axis ? length : s->dims[j++];
    *axis_out = (int)axis;
    return SDX_OK;
}

enum sdx_status sdx_stack_write(const struct sdx_stack *s, int axis, int64_t length, bool reverse,
                                void *dst)
{
    if (s->trips == 0 || s->each == 0) return SDX_OK;
    if (axis == 0 && !reverse) {
        size_t bytes = 0;
        (void)sdx_dtype_bytes(s->dtype, s->each * s->trips, &bytes);
        memcpy(dst, s->data, bytes);
        return SDX_OK;
    }
    if (is_packed(s->dtype))
        return SDX_FAIL(s->cx, SDX_NOT_SUPPORTED, "scan outputs of %s on other axes than 0",
                        sdx_dtype_short_name(s->dtype));
    int64_t dims[SDX_RANK_MAX], whole[SDX_RANK_MAX], src[SDX_RANK_MAX], own[SDX_RANK_MAX];
    int64_t dst_strides[SDX_RANK_MAX];
    sdx_move_strides(s->rank, s->dims, own);
    for (int i = 0, j = 0; i < s->rank + 1; i++) {
        dims[i] = i == axis ? s->trips : s->dims[j];
        whole[i] = i == axis ? length : s->dims[j];
        src[i] = i == axis ? (reverse ? -s->each : s->each) : own[j];
        j += i != axis;
    }
    sdx_move_strides(s->rank + 1, whole, dst_strides);
    struct sdx_move m;
    sdx_move_init(&m, sdx_move_size(s->dtype), s->rank + 1, dims, src, dst_strides,
                  reverse ? (s->trips - 1) * s->each : 0, 0);
    sdx_move_run(&m, s->data, dst, 0, m.units);
    return SDX_OK;
}

enum sdx_status sdx_stack_output(struct sdx_stack *s, struct sdx_exec *x,
                                 const struct sdx_step *step, int k, int64_t axis, bool reverse)
{
    int rank = 0, at = 0;
    int64_t dims[SDX_RANK_MAX], count = 0;
    SDX_TRY(sdx_stack_shape(s, axis, s->trips, &rank, dims, &at));
    if (s->dtype != SDX_STRING) {
        SDX_TRY(sdx_exec_output(x, step, k, s->dtype, rank, dims));
        return sdx_stack_write(s, at, s->trips, reverse, step->out[k]->data);
    }
    (void)sdx_dims_count(dims, rank, &count);
    struct sdx_str *texts =
        sdx_mem_calloc(s->cx->mem, SDX_MEM_SCRATCH, (size_t)count + 1, sizeof(*texts));
    if (!texts) return SDX_FAIL_MEMORY(s->cx);
    enum sdx_status status = sdx_stack_write(s, at, s->trips, reverse, texts);
    if (status == SDX_OK) status = sdx_exec_output_strings(x, step, k, rank, dims, texts);
    sdx_mem_free(s->cx->mem, texts);
    return status;
}

/* ---- slices ---- */

enum sdx_status sdx_slice_init(struct sdx_slice *s, struct sdx_context *cx,
                               const struct sdx_tensor *from, int axis)
{
    memset(s, 0, sizeof(*s));
    s->cx = cx;
    s->from = from;
    s->axis = axis;
    s->head.kind = SDX_KIND_TENSOR;
    s->head.dtype = from->dtype;
    s->head.rank = from->rank - 1;
    s->head.dims = s->dims;
    for (int i = 0, j = 0; i < from->rank; i++)
        if (i != axis) s->dims[j++] = from->dims[i];
    (void)sdx_dims_count(s->dims, s->head.rank, &s->head.count);
    (void)sdx_dtype_bytes(from->dtype, s->head.count, &s->head.bytes);
    if (axis == 0 && !is_packed(from->dtype)) return SDX_OK;
    s->buffer = sdx_mem_calloc(cx->mem, SDX_MEM_SCRATCH, 1, s->head.bytes + 16);
    s->head.data = s->buffer;
    return s->buffer ? SDX_OK : SDX_FAIL_MEMORY(cx);
}

void sdx_slice_deinit(struct sdx_slice *s)
{
    if (s->cx) sdx_mem_free(s->cx->mem, s->buffer);
}

enum sdx_status sdx_slice_set(struct sdx_slice *s, int64_t t)
{
    const struct sdx_tensor *from = s->from;
    if (!s->buffer) {
        s->head.data = (char *)from->data + (size_t)t * s->head.bytes;
        return SDX_OK;
    }
    if (is_packed(from->dtype)) {
        if (s->axis != 0)
            return SDX_FAIL(s->cx, SDX_NOT_SUPPORTED, "scan inputs of %s on other axes than 0",
                            sdx_dtype_short_name(from->dtype));
        sdx_convert(from->dtype, s->buffer, 0, from->dtype, from->data, t * s->head.count,
                    s->head.count, true);
        return SDX_OK;
    }
    int64_t own[SDX_RANK_MAX], src[SDX_RANK_MAX], dst[SDX_RANK_MAX];
    sdx_move_strides(from->rank, from->dims, own);
    for (int i = 0, j = 0; i < from->rank; i++)
        if (i != s->axis) src[j++] = own[i];
    sdx_move_strides(s->head.rank, s->dims, dst);
    struct sdx_move m;
    sdx_move_init(&m, sdx_move_size(from->dtype), s->head.rank, s->dims, src, dst, t * own[s->axis],
                  0);
    sdx_move_run(&m, from->data, s->buffer, 0, m.units);
    return SDX_OK;
}
