/* SPDX-License-Identifier: Apache-2.0
 * Going down past the version that brought an operator: its function, as the standard gives it, in
 * operators that are older. */
#include "convert/adapt.h"

/* Steps of a formula. Shapes that are plain to see are noted, for steps to older versions still. */
static struct sdx_str op1(struct sdx_rewrite *rx, const char *op, struct sdx_str a)
{
    struct sdx_str y = sdx_rewrite_out(sdx_rewrite_before(rx, op, SDX_NONE, a, SDX_NONE, SDX_NONE));
    if (strcmp(op, "Shape") != 0) sdx_rewrite_set_like(rx, y, a, sdx_rewrite_dtype(rx, a));
    return y;
}

/* a, and b of the same shape or one number. */
static struct sdx_str op2(struct sdx_rewrite *rx, const char *op, struct sdx_str a,
                          struct sdx_str b)
{
    struct sdx_str y = sdx_rewrite_out(sdx_rewrite_before(rx, op, SDX_NONE, a, b, SDX_NONE));
    if (sdx_str_equal(a, b) || sdx_rewrite_rank(rx, b) == 0)
        sdx_rewrite_set_like(rx, y, a, sdx_rewrite_dtype(rx, a));
    return y;
}

/* The node's output 0, and the end of the node. */
static void result(struct sdx_rewrite *rx, const char *op, struct sdx_str a, struct sdx_str b)
{
    sdx_rewrite_before(rx, op, sdx_rewrite_output(rx, 0), a, b, SDX_NONE);
    rx->drop = true;
}

/* The element type of input 0, which constants of the formula have. */
static enum sdx_status need_dtype(struct sdx_rewrite *rx, int *dtype)
{
    *dtype = sdx_rewrite_dtype(rx, sdx_rewrite_input(rx, 0));
    return *dtype ? SDX_OK
                  : sdx_rewrite_refuse(rx,
                                       "is new in version %lld, and its formula needs "
                                       "the type of input 0, which is not known",
                                       (long long)rx->from);
}

enum sdx_status sdx_adapt_expand_hard_swish(struct sdx_rewrite *rx)
{
    struct sdx_str x = sdx_rewrite_input(rx, 0);
    struct sdx_onnx_node *gate =
        sdx_rewrite_before(rx, "HardSigmoid", SDX_NONE, x, SDX_NONE, SDX_NONE);
    sdx_rewrite_set_float(rx, gate, "alpha", 1.0f / 6.0f);
    sdx_rewrite_set_float(rx, gate, "beta", 0.5f);
    result(rx, "Mul", x, sdx_rewrite_out(gate));
    return SDX_OK;
}

enum sdx_status sdx_adapt_expand_mish(struct sdx_rewrite *rx)
{
    struct sdx_str x = sdx_rewrite_input(rx, 0);
    result(rx, "Mul", x, op1(rx, "Tanh", op1(rx, "Softplus", x)));
    return SDX_OK;
}

enum sdx_status sdx_adapt_expand_gelu(struct sdx_rewrite *rx)
{
    struct sdx_str x = sdx_rewrite_input(rx, 0), inner;
    int dtype;
    SDX_TRY(need_dtype(rx, &dtype));
    if (sdx_rewrite_attr_is(rx->node, "approximate", "tanh", false)) {
        struct sdx_str cube = op2(rx, "Mul", op2(rx, "Mul", x, x), x);
        struct sdx_str sum = op2(
            rx, "Add", x, op2(rx, "Mul", cube, sdx_rewrite_const_number(rx, dtype, 0, 0.044715)));
        inner = op1(
            rx, "Tanh",
            op2(rx, "Mul", sum, sdx_rewrite_const_number(rx, dtype, 0, 0.79788456080286535588)));
    } else {
        inner =
            op1(rx, "Erf",
                op2(rx, "Mul", x, sdx_rewrite_const_number(rx, dtype, 0, 0.70710678118654752440)));
    }
    struct sdx_str gate =
        op2(rx, "Mul", op2(rx, "Add", inner, sdx_rewrite_const_number(rx, dtype, 0, 1)),
            sdx_rewrite_const_number(rx, dtype, 0, 0.5));
    result(rx, "Mul", x, gate);
    return SDX_OK;
}

enum sdx_status sdx_adapt_expand_celu(struct sdx_rewrite *rx)
{
    int dtype;
    SDX_TRY(need_dtype(rx, &dtype));
    struct sdx_str alpha = sdx_rewrite_const_number(
        rx, dtype, 0, (double)sdx_rewrite_attr_float(rx->node, "alpha", 1));
    struct sdx_str elu = op1(rx, "Elu", op2(rx, "Div", sdx_rewrite_input(rx, 0), alpha));
    result(rx, "Mul", elu, alpha);
    return SDX_OK;
}

enum sdx_status sdx_adapt_expand_or_equal(struct sdx_rewrite *rx)
{
    struct sdx_str a = sdx_rewrite_input(rx, 0), b = sdx_rewrite_input(rx, 1);
    const bool less = sdx_str_is(rx->node->op_type, "LessOrEqual");
    struct sdx_str other = op2(rx, less ? "Less" : "Greater", a, b);
    result(rx, "Or", other, op2(rx, "Equal", a, b));
    return SDX_OK;
}

enum sdx_status sdx_adapt_expand_swish(struct sdx_rewrite *rx)
{
    struct sdx_str x = sdx_rewrite_input(rx, 0), inner = x;
    const float alpha = sdx_rewrite_attr_float(rx->node, "alpha", 1);
    int dtype;
    SDX_TRY(need_dtype(rx, &dtype));
    if (alpha != 1)
        inner = op2(rx, "Mul", x, sdx_rewrite_const_number(rx, dtype, 0, (double)alpha));
    result(rx, "Mul", x, op1(rx, "Sigmoid", inner));
    return SDX_OK;
}

enum sdx_status sdx_adapt_expand_cast_like(struct sdx_rewrite *rx)
{
    const int dtype = sdx_rewrite_dtype(rx, sdx_rewrite_input(rx, 1));
    if (!dtype) return sdx_rewrite_refuse(rx, "the type of input 1 is not known");
    sdx_rewrite_cast(rx, false, sdx_rewrite_output(rx, 0), sdx_rewrite_input(rx, 0), dtype);
    rx->drop = true;
    return SDX_OK;
}

/* ---- LayerNormalization, RMSNormalization ---- */

/* The mean over the axes from `axis` on, which stay with length 1. */
static enum sdx_status mean_from(struct sdx_rewrite *rx, struct sdx_str x, struct sdx_str *mean)
{
    int64_t axis = sdx_rewrite_attr_int(rx->node, "axis", -1), axes[SDX_RANK_MAX];
    const int rank = sdx_rewrite_rank(rx, sdx_rewrite_input(rx, 0));
    if (axis >= 0) axis -= rank;
    if (axis >= 0 || axis < -SDX_RANK_MAX || (rank < 0 && axis != -1))
        return sdx_rewrite_refuse(rx, "normalises from an axis of an unknown rank");
    for (int64_t i = 0; i < -axis; i++)
        axes[i] = axis + i + (rank < 0 ? 0 : rank);
    struct sdx_str list = rx->to >= 18 ? sdx_rewrite_const_ints(rx, -axis, axes) : SDX_NONE;
    struct sdx_onnx_node *node = sdx_rewrite_before(rx, "ReduceMean", SDX_NONE, x, list, SDX_NONE);
    if (rx->to < 18) sdx_rewrite_set_ints(rx, node, "axes", -axis, axes);
    *mean = sdx_rewrite_out(node);
    return SDX_OK;
}

/* Input 0 as the type that stash_type asks for. */
static enum sdx_status stashed(struct sdx_rewrite *rx, struct sdx_str *x, int *dtype, int *work)
{
    SDX_TRY(need_dtype(rx, dtype));
    *work = (int)sdx_rewrite_attr_int(rx->node, "stash_type", SDX_F32);
    *x = sdx_rewrite_input(rx, 0);
    if (*work != *dtype) *x = sdx_rewrite_out(sdx_rewrite_cast(rx, false, SDX_NONE, *x, *work));
    return SDX_OK;
}

static struct sdx_str inverse_root(struct sdx_rewrite *rx, struct sdx_str square, int work)
{
    const double epsilon = (double)sdx_rewrite_attr_float(rx->node, "epsilon", 1e-5f);
    return op1(
        rx, "Reciprocal",
        op1(rx, "Sqrt", op2(rx, "Add", square, sdx_rewrite_const_number(rx, work, 0, epsilon))));
}

/* A further output of the node is this value. */
static void also(struct sdx_rewrite *rx, int k, struct sdx_str value)
{
    struct sdx_str name = sdx_rewrite_output(rx, k);
    if (name.len) sdx_rewrite_before(rx, "Identity", name, value, SDX_NONE, SDX_NONE);
}

enum sdx_status sdx_adapt_expand_layer_norm(struct sdx_rewrite *rx)
{
    struct sdx_str x, mean, square;
    int dtype, work;
    SDX_TRY(stashed(rx, &x, &dtype, &work));
    SDX_TRY(mean_from(rx, x, &mean));
    struct sdx_str apart = op2(rx, "Sub", x, mean);
    SDX_TRY(mean_from(rx, op2(rx, "Mul", apart, apart), &square));
    struct sdx_str inverse = inverse_root(rx, square, work);
    struct sdx_str y = op2(rx, "Mul", apart, inverse);
    also(rx, 1, mean);
    also(rx, 2, inverse);
    if (work != dtype) y = sdx_rewrite_out(sdx_rewrite_cast(rx, false, SDX_NONE, y, dtype));
    struct sdx_str bias = sdx_rewrite_input(rx, 2);
    if (bias.len)
        result(rx, "Add", op2(rx, "Mul", y, sdx_rewrite_input(rx, 1)), bias);
    else
        result(rx, "Mul", y, sdx_rewrite_input(rx, 1));
    return SDX_OK;
}

enum sdx_status sdx_adapt_expand_rms_norm(struct sdx_rewrite *rx)
{
    struct sdx_str x, square, scale = sdx_rewrite_input(rx, 1);
    int dtype, work;
    SDX_TRY(stashed(rx, &x, &dtype, &work));
    SDX_TRY(mean_from(rx, op2(rx, "Mul", x, x), &square));
    struct sdx_str y = op2(rx, "Mul", x, inverse_root(rx, square, work));
    if (work != dtype) y = sdx_rewrite_out(sdx_rewrite_cast(rx, false, SDX_NONE, y, dtype));
    const int dtype_scale = sdx_rewrite_dtype(rx, scale);
    if (dtype_scale && dtype_scale != dtype)
        y = sdx_rewrite_out(sdx_rewrite_cast(rx, false, SDX_NONE, y, dtype_scale));
    result(rx, "Mul", y, scale);
    return SDX_OK;
}

/* Version 18 has one scale a group: InstanceNormalization of [N, groups, the rest]. */
enum sdx_status sdx_adapt_expand_group_norm(struct sdx_rewrite *rx)
{
    struct sdx_str x = sdx_rewrite_input(rx, 0);
    const int64_t groups = sdx_rewrite_attr_int(rx->node, "num_groups", 0);
    struct sdx_str grouped = sdx_rewrite_reshape(rx, x, 3, (const int64_t[]){0, groups, -1});
    struct sdx_onnx_node *norm =
        sdx_rewrite_before(rx, "InstanceNormalization", SDX_NONE, grouped, sdx_rewrite_input(rx, 1),
                           sdx_rewrite_input(rx, 2));
    sdx_rewrite_set_float(rx, norm, "epsilon", sdx_rewrite_attr_float(rx->node, "epsilon", 1e-5f));
    struct sdx_str y = sdx_rewrite_out(norm);
    result(rx, "Reshape", y, op1(rx, "Shape", x));
    return SDX_OK;
}
