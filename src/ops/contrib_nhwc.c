/* SPDX-License-Identifier: Apache-2.0
 * Operators of com.microsoft whose data are channels last, as the standard's between two
 * transpositions: weights are the standard's. Also QLinearConv of either order. */
#include "ops/contrib_lower.h"

#define NAME(node) SDX_STR_ARG((node)->op_type)

/* ---- helpers for all files of com.microsoft ---- */

enum sdx_status sdx_contrib_infer_as(struct sdx_infer *ix, const char *domain, const char *name,
                                     int opset)
{
    const struct sdx_op *op = sdx_op_find(sdx_str(domain), sdx_str(name), opset);
    SDX_ASSERT(op != NULL);
    int64_t own = ix->opset;
    ix->opset = opset;
    enum sdx_status status = op->infer(ix);
    ix->opset = own;
    return status;
}

/* The lengths of a type with its channels moved to axis 1, or from there to the end. */
static enum sdx_status turn(struct sdx_infer *ix, struct sdx_type *type, bool to_last)
{
    int rank = type->rank;
    if (!type->has_shape) return SDX_OK;
    if (rank < 3)
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "%.*s: rank %d, expected at least 3", NAME(ix->node),
                        rank);
    int64_t *dims = sdx_arena_array(ix->arena, (size_t)rank, sizeof *dims);
    if (!dims) return SDX_FAIL_MEMORY(ix->cx);
    dims[0] = type->dims[0];
    for (int i = 1; i < rank; i++)
        dims[i] =
            to_last ? type->dims[i < rank - 1 ? i + 1 : 1] : type->dims[i > 1 ? i - 1 : rank - 1];
    type->dims = dims;
    return SDX_OK;
}

enum sdx_status sdx_contrib_infer_last(struct sdx_infer *ix, const char *domain, const char *name,
                                       int opset, uint32_t data)
{
    const struct sdx_type *const *own = ix->in;
    size_t count = (size_t)(ix->count_in > 0 ? ix->count_in : 1);
    const struct sdx_type **in = sdx_arena_array(ix->arena, count, sizeof *in);
    struct sdx_type *types = sdx_arena_array(ix->arena, count, sizeof *types);
    if (!in || !types) return SDX_FAIL_MEMORY(ix->cx);
    for (int i = 0; i < ix->count_in; i++) {
        in[i] = own[i];
        if (!own[i] || !(data >> i & 1)) continue;
        types[i] = *own[i];
        in[i] = &types[i];
        SDX_TRY(turn(ix, &types[i], false));
    }
    ix->in = in;
    enum sdx_status status = sdx_contrib_infer_as(ix, domain, name, opset);
    ix->in = own;
    return status == SDX_OK ? turn(ix, &ix->out[0], true) : status;
}

static int32_t transpose(struct sdx_lower *lx, int32_t value, int rank, bool to_last)
{
    int64_t perm[SDX_RANK_MAX] = {0};
    for (int i = 1; i < rank; i++)
        perm[i] = to_last ? (i < rank - 1 ? i + 1 : 1) : (i > 1 ? i - 1 : rank - 1);
    int32_t out = sdx_lower_unary(lx, "Transpose", value);
    sdx_lower_attr_ints(lx, "perm", rank, perm);
    return out;
}

enum sdx_status sdx_contrib_lower_last(struct sdx_lower *lx, bool contrib, const char *name,
                                       uint32_t data)
{
    int32_t count = sdx_lower_node(lx)->count_inputs, in[16];
    const struct sdx_type *type = sdx_lower_type(lx, 0);
    int64_t spatial = 0;
    (void)sdx_ir_attr_ints(sdx_lower_node(lx), "kernel_shape", &spatial);
    int rank = type->has_shape ? type->rank : spatial < SDX_RANK_MAX - 1 ? (int)spatial + 2 : 0;
    if (rank < 3)
        return SDX_FAIL(lx->cx, SDX_NOT_SUPPORTED, "%.*s: input of unknown rank",
                        NAME(sdx_lower_node(lx)));
    SDX_ASSERT(count <= SDX_COUNT_OF(in));
    for (int i = 0; i < count; i++) {
        in[i] = sdx_lower_input(lx, i);
        if (in[i] >= 0 && (data >> i & 1)) in[i] = transpose(lx, in[i], rank, false);
    }
    int32_t y =
        contrib ? sdx_lower_contrib(lx, name, count, in) : sdx_lower_op(lx, name, count, in);
    sdx_lower_attrs(lx, "channels_last");
    sdx_lower_output(lx, 0, transpose(lx, y, rank, true));
    return lx->status;
}

/* ---- float convolutions ---- */

static enum sdx_status infer_conv(struct sdx_infer *ix)
{
    return sdx_contrib_infer_last(ix, "", "Conv", 22, 1);
}

static enum sdx_status lower_conv(struct sdx_lower *lx)
{
    return sdx_contrib_lower_last(lx, false, "Conv", 1);
}

static enum sdx_status infer_fused_conv(struct sdx_infer *ix)
{
    return sdx_contrib_infer_last(ix, "com.microsoft", "FusedConv", 1, 1 | 8);
}

static enum sdx_status lower_fused_conv(struct sdx_lower *lx)
{
    return sdx_contrib_lower_last(lx, true, "FusedConv", 1 | 8);
}

/* ---- bytes ---- */

static enum sdx_status infer_max_pool(struct sdx_infer *ix)
{
    return sdx_contrib_infer_last(ix, "", "MaxPool", 12, 1);
}

static enum sdx_status lower_max_pool(struct sdx_lower *lx)
{
    lx->opset = 12;
    return sdx_contrib_lower_last(lx, false, "MaxPool", 1);
}

static enum sdx_status infer_qlinear_conv(struct sdx_infer *ix)
{
    if (sdx_contrib_is_last(ix->node)) return sdx_contrib_infer_last(ix, "", "QLinearConv", 10, 1);
    return sdx_contrib_infer_as(ix, "", "QLinearConv", 10);
}

static enum sdx_status lower_qlinear_conv(struct sdx_lower *lx)
{
    lx->opset = 10;
    if (sdx_contrib_is_last(sdx_lower_node(lx)))
        return sdx_contrib_lower_last(lx, false, "QLinearConv", 1);
    int32_t in[9], count = sdx_lower_node(lx)->count_inputs;
    for (int i = 0; i < count; i++)
        in[i] = sdx_lower_input(lx, i);
    int32_t y = sdx_lower_op(lx, "QLinearConv", count, in);
    sdx_lower_attrs(lx, "channels_last");
    sdx_lower_output(lx, 0, y);
    return lx->status;
}

static const struct sdx_op ops[] = {
    {"NhwcConv", 1, 0, infer_conv, LOWER(lower_conv), .note = "1 to 3 spatial axes"},
    {"NhwcFusedConv", 1, 0, infer_fused_conv, LOWER(lower_fused_conv),
     .note = "1 to 3 spatial axes"},
    {"NhwcMaxPool", 1, 0, infer_max_pool, LOWER(lower_max_pool)},
    {"QLinearConv", 1, 0, infer_qlinear_conv, LOWER(lower_qlinear_conv),
     .note = "1 to 3 spatial axes"},
};

const struct sdx_op_family sdx_ops_contrib_nhwc = FAMILY("com.microsoft", ops);
