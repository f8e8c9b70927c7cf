/* SPDX-License-Identifier: Apache-2.0
 * Operators that only look at a shape: Reshape, Flatten, Squeeze and Unsqueeze are views; Shape and
 * Size produce numbers, which inference hands on so that shape arithmetic needs no run. */
#include "ops/move.h"
#include "ops/op.h"

/* The list that old versions have as an attribute and newer ones as input 1. *given is false when
 * there is none; otherwise *known tells whether it is known. */
static bool list_of(struct sdx_infer *ix, const char *attr, int64_t input_since, struct sdx_ints *v,
                    bool *given)
{
    *v = (struct sdx_ints){.rank = 1};
    if (ix->opset < input_since) {
        v->v = sdx_ir_attr_ints(ix->node, attr, &v->count);
        *given = v->v != NULL;
        return true;
    }
    *given = sdx_infer_has(ix, 1);
    return !*given || sdx_infer_ints(ix, 1, v);
}

/* ---- Reshape ---- */

/* The length for -1, out[hole]: the input's elements over those of the other axes; -1: unknown. */
static enum sdx_status rest_dim(struct sdx_infer *ix, const int64_t *dims, int rank, int64_t *out,
                                int rank_out, int hole)
{
    int64_t have = 1, want = 1, others[SDX_RANK_MAX];
    int count = 0;
    bool known = true;
    for (int i = 0; i < rank; i++) {
        if (dims[i] < 0)
            known = false;
        else if (!sdx_mul_i64(have, dims[i], &have))
            return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "Reshape: the input is too large");
    }
    for (int j = 0; j < rank_out; j++) {
        if (j == hole) continue;
        others[count++] = out[j];
        if (out[j] < 0)
            known = false;
        else if (!sdx_mul_i64(want, out[j], &want))
            return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "Reshape: the shape is too large");
    }
    if (!known) out[hole] = sdx_infer_ratio(ix, dims, rank, others, count);
    if (!known && out[hole] != 0) return SDX_OK;
    if (!known || (want == 0 ? have != 0 : have % want != 0))
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL,
                        "Reshape: %lld elements cannot be divided by the %lld of the other axes",
                        (long long)have, (long long)want);
    out[hole] = want == 0 ? 0 : have / want;
    return SDX_OK;
}

static enum sdx_status reshape_dim(struct sdx_infer *ix, const struct sdx_ints *shape, int j,
                                   bool allow_zero, int64_t *out, int *hole)
{
    int rank = sdx_infer_rank(ix, 0);
    const int64_t *dims = sdx_infer_dims(ix, 0);
    int64_t v = shape->v[j];
    if (shape->sym && shape->sym[j]) {
        *out = shape->sym[j];
    } else if (v == 0 && !allow_zero) {
        if (rank >= 0 && j >= rank)
            return SDX_FAIL(ix->cx, SDX_BAD_MODEL,
                            "Reshape: length %d is 0 (copy), but the input has rank %d", j, rank);
        *out = rank >= 0 ? dims[j] : -1;
    } else if (v == -1) {
        if (*hole >= 0)
            return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "Reshape: the shape holds -1 more than once");
        *hole = j;
    } else if (v < 0) {
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "Reshape: length %d is %lld", j, (long long)v);
    } else {
        *out = v;
    }
    return SDX_OK;
}

static enum sdx_status check_count(struct sdx_infer *ix, const int64_t *dims, int rank)
{
    int64_t a = -1, b = -1;
    if (sdx_infer_rank(ix, 0) < 0) return SDX_OK;
    SDX_TRY(sdx_move_dims_product(ix->cx, sdx_infer_dims(ix, 0), sdx_infer_rank(ix, 0), &a));
    SDX_TRY(sdx_move_dims_product(ix->cx, dims, rank, &b));
    if (a >= 0 && b >= 0 && a != b) {
        char from[128], to[128];
        return SDX_FAIL(
            ix->cx, SDX_BAD_MODEL, "Reshape: %s has %lld elements, %s has %lld",
            sdx_dims_describe(sdx_infer_dims(ix, 0), sdx_infer_rank(ix, 0), from, sizeof(from)),
            (long long)a, sdx_dims_describe(dims, rank, to, sizeof(to)), (long long)b);
    }
    return SDX_OK;
}

static enum sdx_status infer_reshape(struct sdx_infer *ix)
{
    struct sdx_ints shape;
    bool given = false, allow_zero = sdx_ir_attr_int(ix->node, "allowzero", 0) != 0;
    int rank = sdx_infer_rank(ix, 0), hole = -1;
    sdx_infer_set_dtype(ix, 0, sdx_infer_dtype(ix, 0));
    if (!list_of(ix, "shape", 5, &shape, &given)) {
        if (sdx_infer_rank(ix, 1) == 1 && sdx_dim_known(sdx_infer_dims(ix, 1)[0]) &&
            sdx_infer_dims(ix, 1)[0] <= SDX_RANK_MAX)
            return sdx_move_infer_rank(ix, 0, (int)sdx_infer_dims(ix, 1)[0]);
        return SDX_OK;
    }
    if (!given && ix->opset >= 5)
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "Reshape: input 1 (shape) is missing");
    if (shape.count > SDX_RANK_MAX)
        return SDX_FAIL(ix->cx, SDX_NOT_SUPPORTED, "Reshape: rank %lld, at most %d are supported",
                        (long long)shape.count, SDX_RANK_MAX);
    int64_t dims[SDX_RANK_MAX];
    for (int j = 0; j < (int)shape.count; j++)
        SDX_TRY(reshape_dim(ix, &shape, j, allow_zero, &dims[j], &hole));
    if (hole >= 0) {
        dims[hole] = -1;
        if (allow_zero)
            for (int j = 0; j < (int)shape.count; j++)
                if (dims[j] == 0)
                    return SDX_FAIL(ix->cx, SDX_BAD_MODEL,
                                    "Reshape: the shape holds 0 and -1 while allowzero is set");
        if (rank >= 0)
            SDX_TRY(rest_dim(ix, sdx_infer_dims(ix, 0), rank, dims, (int)shape.count, hole));
    }
    SDX_TRY(check_count(ix, dims, (int)shape.count));
    SDX_TRY(sdx_infer_set_dims(ix, 0, (int)shape.count, dims));
    return sdx_move_infer_pass_ints(ix);
}

/* ---- Flatten, Squeeze, Unsqueeze ---- */

static enum sdx_status infer_flatten(struct sdx_infer *ix)
{
    int64_t axis = sdx_ir_attr_int(ix->node, "axis", 1), dims[2];
    int rank = sdx_infer_rank(ix, 0);
    sdx_infer_set_dtype(ix, 0, sdx_infer_dtype(ix, 0));
    if (rank < 0) return sdx_move_infer_rank(ix, 0, 2);
    if (axis < (ix->opset >= 11 ? -rank : 0) || axis > rank)
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "Flatten: axis %lld of a tensor of rank %d",
                        (long long)axis, rank);
    if (axis < 0) axis += rank;
    const int64_t *in = sdx_infer_dims(ix, 0);
    SDX_TRY(sdx_move_dims_product(ix->cx, in, (int)axis, &dims[0]));
    SDX_TRY(sdx_move_dims_product(ix->cx, in + axis, rank - (int)axis, &dims[1]));
    if (dims[0] == -1) dims[0] = sdx_infer_ratio(ix, in, (int)axis, NULL, 0);
    if (dims[1] == -1) dims[1] = sdx_infer_ratio(ix, in + axis, rank - (int)axis, NULL, 0);
    return sdx_infer_set_dims(ix, 0, 2, dims);
}

/* Marks the listed axes of `rank`; a repeated one is a fault. */
static enum sdx_status mark_axes(struct sdx_infer *ix, const struct sdx_ints *axes, int rank,
                                 bool *marked)
{
    memset(marked, 0, SDX_RANK_MAX * sizeof(*marked));
    for (int64_t i = 0; i < axes->count; i++) {
        int axis = 0;
        SDX_TRY(sdx_infer_axis(ix, axes->v[i], rank, &axis));
        if (marked[axis])
            return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "%.*s: axis %d is listed twice", SDX_MOVE_OP(ix),
                            axis);
        marked[axis] = true;
    }
    return SDX_OK;
}

static bool has_symbols(const struct sdx_ints *v)
{
    for (int64_t i = 0; v->sym && i < v->count; i++)
        if (v->sym[i]) return true;
    return false;
}

static enum sdx_status infer_squeeze(struct sdx_infer *ix)
{
    struct sdx_ints axes;
    bool given = false, gone[SDX_RANK_MAX];
    int rank = sdx_infer_rank(ix, 0), n = 0;
    int64_t dims[SDX_RANK_MAX];
    sdx_infer_set_dtype(ix, 0, sdx_infer_dtype(ix, 0));
    if (!list_of(ix, "axes", 13, &axes, &given) || has_symbols(&axes) || rank < 0) return SDX_OK;
    const int64_t *in = sdx_infer_dims(ix, 0);
    if (given) {
        SDX_TRY(mark_axes(ix, &axes, rank, gone));
    } else {
        for (int i = 0; i < rank; i++) {
            if (in[i] < 0) return SDX_OK;
            gone[i] = in[i] == 1;
        }
    }
    for (int i = 0; i < rank; i++) {
        if (gone[i] && in[i] >= 0 && in[i] != 1)
            return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "Squeeze: axis %d has length %lld, expected 1",
                            i, (long long)in[i]);
        if (!gone[i]) dims[n++] = in[i];
    }
    SDX_TRY(sdx_infer_set_dims(ix, 0, n, dims));
    return sdx_move_infer_pass_ints(ix);
}

static enum sdx_status infer_unsqueeze(struct sdx_infer *ix)
{
    struct sdx_ints axes;
    bool given = false, added[SDX_RANK_MAX];
    int rank = sdx_infer_rank(ix, 0), n = 0;
    int64_t dims[SDX_RANK_MAX];
    sdx_infer_set_dtype(ix, 0, sdx_infer_dtype(ix, 0));
    if (!list_of(ix, "axes", 13, &axes, &given) || has_symbols(&axes) || rank < 0) return SDX_OK;
    if (!given) return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "Unsqueeze: axes are missing");
    if (axes.count + rank > SDX_RANK_MAX)
        return SDX_FAIL(ix->cx, SDX_NOT_SUPPORTED, "Unsqueeze: rank %lld, at most %d are supported",
                        (long long)(axes.count + rank), SDX_RANK_MAX);
    int rank_out = rank + (int)axes.count;
    SDX_TRY(mark_axes(ix, &axes, rank_out, added));
    const int64_t *in = sdx_infer_dims(ix, 0);
    for (int i = 0; i < rank_out; i++)
        dims[i] = added[i] ? 1 : in[n++];
    SDX_TRY(sdx_infer_set_dims(ix, 0, rank_out, dims));
    return sdx_move_infer_pass_ints(ix);
}

/* ---- Shape, Size ---- */

/* The axes that start and end (clamped, since version 15) select. */
void sdx_move_shape_range(const struct sdx_ir_node *node, int rank, int *begin, int *end)
{
    int64_t a = sdx_ir_attr_int(node, "start", 0), b = sdx_ir_attr_int(node, "end", rank);
    if (a < 0) a += rank;
    if (b < 0) b += rank;
    a = a < 0 ? 0 : a > rank ? rank : a;
    b = b < 0 ? 0 : b > rank ? rank : b;
    *begin = (int)a;
    *end = (int)(b < a ? a : b);
}

static enum sdx_status infer_shape(struct sdx_infer *ix)
{
    int rank = sdx_infer_rank(ix, 0), begin = 0, end = 0;
    sdx_infer_set_dtype(ix, 0, SDX_I64);
    if (rank < 0) return sdx_move_infer_rank(ix, 0, 1);
    sdx_move_shape_range(ix->node, rank, &begin, &end);
    int64_t n = end - begin, v[SDX_RANK_MAX] = {0}, sym[SDX_RANK_MAX] = {0};
    SDX_TRY(sdx_infer_set_dims(ix, 0, 1, &n));
    const int64_t *dims = sdx_infer_dims(ix, 0);
    bool known = true;
    for (int i = begin; i < end; i++) {
        if (dims[i] >= 0)
            v[i - begin] = dims[i];
        else
            sym[i - begin] = dims[i];
        known = known && dims[i] >= 0;
    }
    return sdx_infer_set_ints(ix, 0, 1, n, v, known ? NULL : sym);
}

static enum sdx_status infer_size(struct sdx_infer *ix)
{
    int64_t count = -1, zero = 0;
    sdx_infer_set_dtype(ix, 0, SDX_I64);
    SDX_TRY(sdx_infer_set_dims(ix, 0, 0, NULL));
    if (sdx_infer_rank(ix, 0) < 0) return SDX_OK;
    SDX_TRY(sdx_move_dims_product(ix->cx, sdx_infer_dims(ix, 0), sdx_infer_rank(ix, 0), &count));
    return count >= 0 ? sdx_infer_set_ints(ix, 0, 0, 1, &count, NULL)
                      : sdx_infer_set_ints(ix, 0, 0, 1, &zero, &count);
}

static enum sdx_status run_shape(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)x;
    (void)part;
    if (step->out[0]->bytes) memcpy(step->out[0]->data, step->params, step->out[0]->bytes);
    return SDX_OK;
}

static enum sdx_status prepare_shape(struct sdx_prepare *px)
{
    const struct sdx_tensor *in = px->in[0];
    int begin = 0, end = 0;
    sdx_move_shape_range(px->node, in->rank, &begin, &end);
    int64_t *dims = sdx_prepare_alloc(px, ((size_t)in->rank + 1) * sizeof(*dims));
    if (!dims) return SDX_OUT_OF_MEMORY;
    for (int i = begin; i < end; i++)
        dims[i - begin] = in->dims[i];
    return sdx_prepare_step(px, "shape", run_shape, dims, 1, 0);
}

static enum sdx_status prepare_size(struct sdx_prepare *px)
{
    int64_t *count = SDX_PREPARE_NEW(px, int64_t);
    if (!count) return SDX_OUT_OF_MEMORY;
    *count = px->in[0]->count;
    return sdx_prepare_step(px, "size", run_shape, count, 1, 0);
}

static const struct sdx_op ops[] = {
    {"Reshape", 1, 0, infer_reshape, .cost = sdx_cost_none, .flags = SDX_OP_VIEW},
    {"Flatten", 1, 0, infer_flatten, .cost = sdx_cost_none, .flags = SDX_OP_VIEW},
    {"Squeeze", 1, 0, infer_squeeze, .cost = sdx_cost_none, .flags = SDX_OP_VIEW},
    {"Unsqueeze", 1, 0, infer_unsqueeze, .cost = sdx_cost_none, .flags = SDX_OP_VIEW},
    {"Shape", 1, 0, infer_shape, KERNEL(prepare_shape), .cost = sdx_cost_none},
    {"Size", 1, 0, infer_size, KERNEL(prepare_size), .cost = sdx_cost_none},
};
const struct sdx_op_family sdx_ops_view = FAMILY("", ops);
