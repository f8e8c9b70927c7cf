/* SPDX-License-Identifier: Apache-2.0
 * Adapters of arithmetic: broadcasting before version 7, Gemm, PRelu, Softmax, Cast, axes counted
 * from the end, and types that older versions lack. */
#include "convert/adapt.h"

#include <stdio.h>

/* ---- broadcasting: before version 7 on request, of input 1 into a run of input 0's axes ---- */

enum sdx_status sdx_adapt_broadcast_up(struct sdx_rewrite *rx)
{
    const bool on = sdx_rewrite_attr_int(rx->node, "broadcast", 0) != 0;
    const struct sdx_onnx_attr *attr = sdx_rewrite_attr(rx->node, "axis");
    const bool has_axis = attr != NULL;
    int64_t axis = has_axis ? attr->i : 0, axes[SDX_RANK_MAX];
    sdx_rewrite_remove(rx->node, "broadcast");
    sdx_rewrite_remove(rx->node, "axis");
    if (!on || !has_axis) return SDX_OK;
    const int a = sdx_rewrite_rank(rx, sdx_rewrite_input(rx, 0));
    const int b = sdx_rewrite_rank(rx, sdx_rewrite_input(rx, 1));
    if (b == 0) return SDX_OK;
    if (a < 0 || b < 0)
        return sdx_rewrite_refuse(rx, "broadcasts from axis %lld, and the ranks are not known",
                                  (long long)axis);
    if (axis < 0) axis += a;
    const int64_t behind = axis >= 0 && axis <= a ? a - axis - b : -1;
    if (behind < 0)
        return sdx_rewrite_refuse(rx, "axis %lld and ranks %d and %d do not fit", (long long)axis,
                                  a, b);
    if (behind == 0) return SDX_OK;
    for (int64_t i = 0; i < behind; i++)
        axes[i] = b + i;
    struct sdx_onnx_node *node = sdx_rewrite_squeeze(rx, "Unsqueeze", false, SDX_NONE,
                                                     sdx_rewrite_input(rx, 1), behind, axes);
    sdx_rewrite_set_input(rx, 1, sdx_rewrite_out(node));
    return SDX_OK;
}

static bool same_dims(const int64_t *a, const int64_t *b, int count)
{
    for (int i = 0; i < count; i++)
        if (a[i] != b[i] || a[i] == -1) return false;
    return true;
}

static bool is_single(const struct sdx_rewrite *rx, struct sdx_str name)
{
    const int64_t *dims = sdx_rewrite_dims(rx, name);
    bool single = dims != NULL;
    for (int i = 0; single && i < sdx_rewrite_rank(rx, name); i++)
        single = dims[i] == 1;
    return single;
}

/* May b go into a as version 6 does it, at the last axes? */
static bool goes_into(const struct sdx_rewrite *rx, struct sdx_str a, struct sdx_str b)
{
    const int ra = sdx_rewrite_rank(rx, a), rb = sdx_rewrite_rank(rx, b);
    if (ra < rb) return false;
    return is_single(rx, b) ||
           same_dims(sdx_rewrite_dims(rx, a) + (ra - rb), sdx_rewrite_dims(rx, b), rb);
}

/* Input i, repeated to the shape of both. */
static enum sdx_status spread(struct sdx_rewrite *rx, int i)
{
    struct sdx_str x = sdx_rewrite_input(rx, i), other = sdx_rewrite_input(rx, 1 - i);
    const int r = sdx_rewrite_rank(rx, x), ro = sdx_rewrite_rank(rx, other);
    const int64_t *dims = sdx_rewrite_dims(rx, x), *dims_other = sdx_rewrite_dims(rx, other);
    int64_t repeats[SDX_RANK_MAX], axes[SDX_RANK_MAX];
    const int rank = r > ro ? r : ro;
    bool any = false;
    for (int k = 0; k < rank; k++) {
        const int64_t mine = k < rank - r ? 1 : dims[k - (rank - r)];
        const int64_t its = k < rank - ro ? 1 : dims_other[k - (rank - ro)];
        axes[k] = k;
        repeats[k] = mine == 1 ? its : 1;
        any |= repeats[k] != 1;
        if (repeats[k] < 0 || mine == -1)
            return sdx_rewrite_refuse(rx, "broadcasts an axis whose length is not known");
    }
    if (r < rank)
        x = sdx_rewrite_out(
            sdx_rewrite_squeeze(rx, "Unsqueeze", false, SDX_NONE, x, rank - r, axes));
    if (any)
        x = sdx_rewrite_out(sdx_rewrite_before(
            rx, "Tile", SDX_NONE, x, sdx_rewrite_const_ints(rx, rank, repeats), SDX_NONE));
    sdx_rewrite_set_input(rx, i, x);
    return SDX_OK;
}

enum sdx_status sdx_adapt_broadcast_down(struct sdx_rewrite *rx)
{
    static const char *const commutative[] = {"Add", "And", "Equal", "Mul", "Or", "Xor"};
    struct sdx_str a = sdx_rewrite_input(rx, 0), b = sdx_rewrite_input(rx, 1);
    const int64_t *da = sdx_rewrite_dims(rx, a), *db = sdx_rewrite_dims(rx, b);
    bool swaps = false;
    if (!da || !db) return sdx_rewrite_refuse(rx, "the shapes of the inputs are not known");
    const int ra = sdx_rewrite_rank(rx, a), rb = sdx_rewrite_rank(rx, b);
    if (ra == rb && same_dims(da, db, ra)) return SDX_OK;
    for (int i = 0; i < SDX_COUNT_OF(commutative); i++)
        swaps |= sdx_str_is(rx->node->op_type, commutative[i]);
    if (goes_into(rx, a, b)) {
        sdx_rewrite_set_int(rx, rx->node, "broadcast", 1);
    } else if (swaps && goes_into(rx, b, a)) {
        sdx_rewrite_set_input(rx, 0, b);
        sdx_rewrite_set_input(rx, 1, a);
        sdx_rewrite_set_int(rx, rx->node, "broadcast", 1);
    } else {
        struct sdx_onnx_strings inputs = rx->node->inputs;
        SDX_TRY(spread(rx, 0));
        struct sdx_str first = sdx_rewrite_input(rx, 0);
        rx->node->inputs = inputs;
        SDX_TRY(spread(rx, 1));
        sdx_rewrite_set_input(rx, 0, first);
    }
    return SDX_OK;
}

/* Sum and its like had no broadcasting. */
enum sdx_status sdx_adapt_same_shapes_down(struct sdx_rewrite *rx)
{
    struct sdx_str first = sdx_rewrite_input(rx, 0);
    const int rank = sdx_rewrite_rank(rx, first);
    for (int i = 1; i < rx->node->inputs.count; i++) {
        struct sdx_str name = sdx_rewrite_input(rx, i);
        if (rank < 0 || sdx_rewrite_rank(rx, name) != rank ||
            !same_dims(sdx_rewrite_dims(rx, first), sdx_rewrite_dims(rx, name), rank))
            return sdx_rewrite_refuse(rx, "inputs 0 and %d are not known to have one shape", i);
    }
    return SDX_OK;
}

/* ---- PRelu, Gemm ---- */

enum sdx_status sdx_adapt_prelu_up(struct sdx_rewrite *rx)
{
    struct sdx_str slope = sdx_rewrite_input(rx, 1);
    const int rank = sdx_rewrite_rank(rx, sdx_rewrite_input(rx, 0));
    const int rank_slope = sdx_rewrite_rank(rx, slope);
    int64_t axes[SDX_RANK_MAX];
    if (rank < 0 || rank_slope < 0) return sdx_rewrite_refuse(rx, "the ranks are not known");
    if (rank_slope != 1 || rank <= 2 || is_single(rx, slope)) return SDX_OK;
    for (int i = 0; i < rank - 2; i++)
        axes[i] = i + 1;
    sdx_rewrite_set_input(rx, 1,
                          sdx_rewrite_out(sdx_rewrite_squeeze(rx, "Unsqueeze", false, SDX_NONE,
                                                              slope, rank - 2, axes)));
    return SDX_OK;
}

enum sdx_status sdx_adapt_prelu_down(struct sdx_rewrite *rx)
{
    struct sdx_str slope = sdx_rewrite_input(rx, 1);
    const int rank = sdx_rewrite_rank(rx, sdx_rewrite_input(rx, 0));
    const int rank_slope = sdx_rewrite_rank(rx, slope);
    const int64_t *dims = sdx_rewrite_dims(rx, slope);
    int64_t length = 1;
    if (rank < 0 || !dims) return sdx_rewrite_refuse(rx, "the shapes are not known");
    bool channels = true;
    for (int i = 0; i < rank_slope; i++) {
        if (i + rank - rank_slope == 1)
            length = dims[i];
        else
            channels &= dims[i] == 1;
    }
    if (!channels || length < 1)
        return sdx_rewrite_refuse(rx, "the slope is neither one number nor one for each channel");
    if (rank_slope == 1 && (rank == 2 || length == 1)) return SDX_OK;
    sdx_rewrite_set_input(rx, 1, sdx_rewrite_reshape(rx, slope, 1, &length));
    return SDX_OK;
}

static enum sdx_status gemm_ranks(struct sdx_rewrite *rx)
{
    for (int i = 0; i < 2; i++) {
        const int rank = sdx_rewrite_rank(rx, sdx_rewrite_input(rx, i));
        if (rank >= 0 && rank != 2)
            return sdx_rewrite_refuse(rx, "input %d has rank %d, expected 2", i, rank);
    }
    return SDX_OK;
}

enum sdx_status sdx_adapt_gemm_7_up(struct sdx_rewrite *rx)
{
    sdx_rewrite_remove(rx->node, "broadcast");
    return gemm_ranks(rx);
}

enum sdx_status sdx_adapt_gemm_7_down(struct sdx_rewrite *rx)
{
    struct sdx_str c = sdx_rewrite_input(rx, 2), y = sdx_rewrite_output(rx, 0);
    const int rank = sdx_rewrite_rank(rx, c);
    const int64_t *dims = sdx_rewrite_dims(rx, c), *dims_y = sdx_rewrite_dims(rx, y);
    SDX_TRY(gemm_ranks(rx));
    if (!dims) return sdx_rewrite_refuse(rx, "the shape of input C is not known");
    if (rank == 2 && dims_y && sdx_rewrite_rank(rx, y) == 2 && same_dims(dims, dims_y, 2))
        return SDX_OK;
    if (rank == 2 && !is_single(rx, c)) {
        if (dims[0] != 1 || dims[1] < 0)
            return sdx_rewrite_refuse(rx, "input C is not known to be as large as the result, nor "
                                          "a row");
        sdx_rewrite_set_input(rx, 2, sdx_rewrite_reshape(rx, c, 1, &dims[1]));
    }
    sdx_rewrite_set_int(rx, rx->node, "broadcast", 1);
    return SDX_OK;
}

enum sdx_status sdx_adapt_gemm_11_down(struct sdx_rewrite *rx)
{
    const int dtype = sdx_rewrite_dtype(rx, sdx_rewrite_input(rx, 0));
    if (sdx_rewrite_input(rx, 2).len) return SDX_OK;
    if (!dtype) return sdx_rewrite_refuse(rx, "has no input C, and the type is not known");
    sdx_rewrite_set_input(rx, 2, sdx_rewrite_const_number(rx, dtype, 0, 0));
    return SDX_OK;
}

/* ---- Softmax: before version 13 over all axes from `axis` on, as one ---- */

enum sdx_status sdx_adapt_softmax_up(struct sdx_rewrite *rx)
{
    struct sdx_str x = sdx_rewrite_input(rx, 0);
    const int rank = sdx_rewrite_rank(rx, x);
    const int64_t axis = sdx_rewrite_attr_int(rx->node, "axis", 1);
    sdx_rewrite_set_int(rx, rx->node, "axis", -1);
    if (axis == -1 || (rank > 0 && axis == rank - 1)) return SDX_OK;
    struct sdx_onnx_node *shape = sdx_rewrite_before(rx, "Shape", SDX_NONE, x, SDX_NONE, SDX_NONE);
    struct sdx_str list = sdx_rewrite_out(shape);
    struct sdx_onnx_node *flat = sdx_rewrite_before(rx, "Flatten", SDX_NONE, x, SDX_NONE, SDX_NONE);
    sdx_rewrite_set_int(rx, flat, "axis", axis);
    sdx_rewrite_set_input(rx, 0, sdx_rewrite_out(flat));
    struct sdx_str y = sdx_rewrite_take_output(rx, 0);
    sdx_rewrite_set_type(rx, sdx_rewrite_output(rx, 0), NULL);
    sdx_rewrite_after(rx, "Reshape", y, sdx_rewrite_output(rx, 0), list, SDX_NONE);
    return SDX_OK;
}

enum sdx_status sdx_adapt_softmax_down(struct sdx_rewrite *rx)
{
    struct sdx_str x = sdx_rewrite_input(rx, 0);
    const int rank = sdx_rewrite_rank(rx, x);
    int64_t axis = sdx_rewrite_attr_int(rx->node, "axis", -1), perm[SDX_RANK_MAX];
    if (rank < 0 && axis == -1) {
        sdx_rewrite_set_int(rx, rx->node, "axis", -1);
        return SDX_OK;
    }
    if (rank < 1) return sdx_rewrite_refuse(rx, "axis %lld of an unknown rank", (long long)axis);
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank)
        return sdx_rewrite_refuse(rx, "axis %lld is out of range for rank %d", (long long)axis,
                                  rank);
    sdx_rewrite_set_int(rx, rx->node, "axis", rank - 1);
    if (axis == rank - 1) return SDX_OK;
    for (int i = 0; i < rank; i++)
        perm[i] = i;
    perm[axis] = rank - 1;
    perm[rank - 1] = axis;
    struct sdx_onnx_node *before =
        sdx_rewrite_before(rx, "Transpose", SDX_NONE, x, SDX_NONE, SDX_NONE);
    sdx_rewrite_set_ints(rx, before, "perm", rank, perm);
    sdx_rewrite_set_input(rx, 0, sdx_rewrite_out(before));
    struct sdx_str y = sdx_rewrite_take_output(rx, 0);
    sdx_rewrite_set_type(rx, sdx_rewrite_output(rx, 0), NULL);
    struct sdx_onnx_node *after =
        sdx_rewrite_after(rx, "Transpose", y, sdx_rewrite_output(rx, 0), SDX_NONE, SDX_NONE);
    sdx_rewrite_set_ints(rx, after, "perm", rank, perm);
    return SDX_OK;
}

/* ---- types ---- */

static const struct {
    const char *name;
    int dtype;
} type_names[] = {{"FLOAT", SDX_F32},   {"UINT8", SDX_U8},      {"INT8", SDX_I8},
                  {"UINT16", SDX_U16},  {"INT16", SDX_I16},     {"INT32", SDX_I32},
                  {"INT64", SDX_I64},   {"STRING", SDX_STRING}, {"BOOL", SDX_BOOL},
                  {"FLOAT16", SDX_F16}, {"DOUBLE", SDX_F64},    {"UINT32", SDX_U32},
                  {"UINT64", SDX_U64},  {"COMPLEX64", SDX_C64}, {"COMPLEX128", SDX_C128}};

enum sdx_status sdx_adapt_cast_6_up(struct sdx_rewrite *rx)
{
    const struct sdx_onnx_attr *to = sdx_rewrite_attr(rx->node, "to");
    for (int i = 0; to && i < SDX_COUNT_OF(type_names); i++)
        if (sdx_str_is(to->s, type_names[i].name)) {
            sdx_rewrite_set_int(rx, rx->node, "to", type_names[i].dtype);
            return SDX_OK;
        }
    return sdx_rewrite_refuse(rx, "attribute to is \"%.*s\", which is no type",
                              SDX_STR_ARG(to ? to->s : SDX_NONE));
}

enum sdx_status sdx_adapt_cast_6_down(struct sdx_rewrite *rx)
{
    const int64_t to = sdx_rewrite_attr_int(rx->node, "to", 0);
    for (int i = 0; i < SDX_COUNT_OF(type_names); i++)
        if (to == type_names[i].dtype) {
            sdx_rewrite_set_str(rx, rx->node, "to", type_names[i].name);
            return SDX_OK;
        }
    return sdx_rewrite_refuse(rx, "attribute to is %lld, which is no type", (long long)to);
}

/* Integers in operators that took none: exact to 2^53. */
enum sdx_status sdx_adapt_through_double_down(struct sdx_rewrite *rx)
{
    const int dtype = sdx_rewrite_dtype(rx, sdx_rewrite_input(rx, 0));
    if (dtype != SDX_I32 && dtype != SDX_U32 && dtype != SDX_I64 && dtype != SDX_U64) return SDX_OK;
    if (dtype == SDX_I64 || dtype == SDX_U64)
        sdx_log(rx->cx, SDX_LOG_WARNING, "convert",
                "%.*s of 64-bit integers goes through double: exact up to 2^53",
                SDX_STR_ARG(rx->node->op_type));
    for (int i = 0; i < rx->node->inputs.count; i++)
        sdx_rewrite_set_input(rx, i,
                              sdx_rewrite_out(sdx_rewrite_cast(rx, false, SDX_NONE,
                                                               sdx_rewrite_input(rx, i), SDX_F64)));
    if (sdx_rewrite_dtype(rx, sdx_rewrite_output(rx, 0)) == SDX_BOOL) return SDX_OK;
    struct sdx_str y = sdx_rewrite_take_output(rx, 0);
    sdx_rewrite_set_type(rx, sdx_rewrite_output(rx, 0), NULL);
    sdx_rewrite_cast(rx, true, y, sdx_rewrite_output(rx, 0), dtype);
    return SDX_OK;
}

/* Reshape takes every type. */
enum sdx_status sdx_adapt_flatten_9_down(struct sdx_rewrite *rx)
{
    struct sdx_str x = sdx_rewrite_input(rx, 0);
    const int dtype = sdx_rewrite_dtype(rx, x), rank = sdx_rewrite_rank(rx, x);
    const int64_t axis = sdx_rewrite_attr_int(rx->node, "axis", 1);
    const int64_t *dims = sdx_rewrite_dims(rx, x);
    int64_t shape[2] = {1, -1};
    if (!dtype || dtype == SDX_F16 || dtype == SDX_F32 || dtype == SDX_F64) return SDX_OK;
    if (axis < 0) return sdx_rewrite_refuse(rx, "axis is below 0");
    if (axis == 1) shape[0] = 0;
    for (int i = 0; axis > 1 && i < axis; i++) {
        if (axis > rank || dims[i] < 0 || !sdx_mul_i64(shape[0], dims[i], &shape[0]))
            return sdx_rewrite_refuse(rx, "the shape of the input is not known");
    }
    sdx_rewrite_before(rx, "Reshape", sdx_rewrite_output(rx, 0), x,
                       sdx_rewrite_const_ints(rx, 2, shape), SDX_NONE);
    rx->drop = true;
    return SDX_OK;
}

/* ---- axes counted from the end, since version 11 ---- */

enum sdx_status sdx_adapt_axes_11_down(struct sdx_rewrite *rx)
{
    int rank = sdx_rewrite_rank(rx, sdx_rewrite_input(rx, 0));
    struct sdx_onnx_attr *axis = sdx_rewrite_attr(rx->node, "axis");
    struct sdx_onnx_attr *axes = sdx_rewrite_attr(rx->node, "axes");
    bool any = axis && axis->i < 0;
    for (int64_t i = 0; axes && i < axes->ints.count; i++)
        any |= axes->ints.at[i] < 0;
    if (!any) return SDX_OK;
    if (rank < 0) return sdx_rewrite_refuse(rx, "an axis below 0 of an unknown rank");
    if (axis && axis->i < 0) sdx_rewrite_set_int(rx, rx->node, "axis", axis->i + rank);
    if (!axes) return SDX_OK;
    if (sdx_str_is(rx->node->op_type, "Unsqueeze")) rank += (int)axes->ints.count;
    int64_t *v = sdx_arena_array(rx->arena, (size_t)axes->ints.count + 1, sizeof *v);
    if (!v) return SDX_FAIL_MEMORY(rx->cx);
    for (int64_t i = 0; i < axes->ints.count; i++)
        v[i] = axes->ints.at[i] + (axes->ints.at[i] < 0 ? rank : 0);
    sdx_rewrite_set_ints(rx, rx->node, "axes", axes->ints.count, v);
    return SDX_OK;
}

/* ---- OneHot: an index below 0 counts from the end since version 11; before, nothing is hot ----
 */

enum sdx_status sdx_adapt_one_hot(struct sdx_rewrite *rx)
{
    struct sdx_str indices = sdx_rewrite_input(rx, 0), depth = sdx_rewrite_input(rx, 1);
    const int dtype = sdx_rewrite_dtype(rx, indices);
    const float *v = NULL;
    int64_t count = 0;
    bool harmless = dtype && !sdx_dtype_is_signed(dtype);
    if (!harmless && sdx_rewrite_floats(rx, indices, &v, &count)) {
        harmless = true;
        for (int64_t i = 0; i < count; i++)
            harmless = harmless && v[i] >= 0;
    }
    if (harmless) return SDX_OK;
    if (!dtype) return sdx_rewrite_refuse(rx, "the type of the indices is not known");
    /* Where it is below 0: going down, plus the depth; going up, beyond the depth. */
    struct sdx_str zero = sdx_rewrite_const_number(rx, dtype, 0, 0);
    struct sdx_str one = sdx_rewrite_reshape(rx, depth, 0, NULL); /* it may be a list of one */
    struct sdx_str like = sdx_rewrite_out(sdx_rewrite_cast(rx, false, SDX_NONE, one, dtype));
    struct sdx_str below =
        sdx_rewrite_out(sdx_rewrite_before(rx, "Less", SDX_NONE, indices, zero, SDX_NONE));
    struct sdx_str other;
    if (rx->to < rx->from) {
        other = sdx_rewrite_out(sdx_rewrite_before(rx, "Add", SDX_NONE, indices, like, SDX_NONE));
    } else {
        struct sdx_str size =
            sdx_rewrite_out(sdx_rewrite_before(rx, "Abs", SDX_NONE, indices, SDX_NONE, SDX_NONE));
        other = sdx_rewrite_out(sdx_rewrite_before(rx, "Add", SDX_NONE, size, like, SDX_NONE));
    }
    struct sdx_onnx_node *pick = sdx_rewrite_before(rx, "Where", SDX_NONE, below, other, indices);
    sdx_rewrite_set_input(rx, 0, sdx_rewrite_out(pick));
    return SDX_OK;
}

/* ---- small ones ---- */

/* Version 6 changed what no attribute means: both are written out. */
enum sdx_status sdx_adapt_selu(struct sdx_rewrite *rx)
{
    const bool old = rx->from < 6;
    if (!sdx_rewrite_attr(rx->node, "alpha"))
        sdx_rewrite_set_float(rx, rx->node, "alpha", old ? 1.6732f : 1.6732631921768188f);
    if (!sdx_rewrite_attr(rx->node, "gamma"))
        sdx_rewrite_set_float(rx, rx->node, "gamma", old ? 1.0507f : 1.0507010221481323f);
    return SDX_OK;
}

/* The p of LpPool was a float. */
enum sdx_status sdx_adapt_p_up(struct sdx_rewrite *rx)
{
    const struct sdx_onnx_attr *p = sdx_rewrite_attr(rx->node, "p");
    if (!p) return SDX_OK;
    const float v = p->f;
    if (!(v >= 1 && v < 1e6f) || (float)(int64_t)v != v)
        return sdx_rewrite_refuse(rx, "p is %g, expected an integer", (double)v);
    sdx_rewrite_set_int(rx, rx->node, "p", (int64_t)v);
    return SDX_OK;
}

enum sdx_status sdx_adapt_p_down(struct sdx_rewrite *rx)
{
    const struct sdx_onnx_attr *p = sdx_rewrite_attr(rx->node, "p");
    if (p) sdx_rewrite_set_float(rx, rx->node, "p", (float)p->i);
    return SDX_OK;
}
