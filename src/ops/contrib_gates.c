/* SPDX-License-Identifier: Apache-2.0
 * Gates, norms and rotations of com.microsoft that stand around linear attention: each a few
 * operators of the standard, in float where the operator says so. */
#include "ops/contrib_lower.h"

enum { OPSET = 24, ROTARY_MAX = 1024 };

static int32_t input(const struct sdx_lower *lx, int i)
{
    return sdx_lower_input(lx, i);
}

/* Input i in float. */
static int32_t wide(struct sdx_lower *lx, int i)
{
    if (sdx_lower_type(lx, i)->dtype == SDX_F32) return input(lx, i);
    int32_t out = sdx_lower_unary(lx, "Cast", input(lx, i));
    sdx_lower_attr_int(lx, "to", SDX_F32);
    return out;
}

/* Output k in the type of input 0. */
static enum sdx_status narrow(struct sdx_lower *lx, int k, int32_t value)
{
    const int dtype = sdx_lower_type(lx, 0)->dtype;
    if (dtype != SDX_F32) {
        value = sdx_lower_unary(lx, "Cast", value);
        sdx_lower_attr_int(lx, "to", dtype);
    }
    sdx_lower_output(lx, k, value);
    return lx->status;
}

static int32_t reshape(struct sdx_lower *lx, int32_t value, int32_t shape)
{
    return sdx_lower_binary(lx, "Reshape", value, shape);
}

static enum sdx_status lower_gated_add(struct sdx_lower *lx)
{
    lx->opset = OPSET;
    int32_t gated = sdx_lower_binary(lx, "Mul", input(lx, 1), input(lx, 2));
    sdx_lower_output(lx, 0, sdx_lower_binary(lx, "Add", input(lx, 0), gated));
    return lx->status;
}

/* Each step is rounded to the type. */
static enum sdx_status lower_scaled_silu(struct sdx_lower *lx)
{
    const double alpha = (double)sdx_ir_attr_float(sdx_lower_node(lx), "alpha", 1);
    lx->opset = OPSET;
    int32_t scale = input(lx, 1) >= 0 ? wide(lx, 1) : sdx_lower_scalar(lx, SDX_F32, alpha);
    int32_t z = sdx_lower_binary(lx, "Mul", wide(lx, 0), scale);
    z = sdx_lower_binary(lx, "CastLike", z, input(lx, 0));
    sdx_lower_output(lx, 0, sdx_lower_binary(lx, "Mul", z, sdx_lower_unary(lx, "Sigmoid", z)));
    return lx->status;
}

static int32_t rms_norm(struct sdx_lower *lx, int32_t x, int32_t scale)
{
    const float epsilon = sdx_ir_attr_float(sdx_lower_node(lx), "epsilon", 1e-5f);
    int32_t y = sdx_lower_binary(lx, "RMSNormalization", x, scale);
    sdx_lower_attr_float(lx, "epsilon", epsilon);
    return y;
}

static enum sdx_status lower_gated_norm(struct sdx_lower *lx)
{
    const struct sdx_str act = sdx_ir_attr_str(sdx_lower_node(lx), "activation", "silu");
    const bool is_sigmoid = sdx_str_is(act, "sigmoid");
    const int64_t rows = -1;
    if (!is_sigmoid && !sdx_str_is(act, "silu") && !sdx_str_is(act, "swish"))
        return SDX_FAIL(lx->cx, SDX_BAD_MODEL,
                        "GatedRMSNorm: activation \"%.*s\", expected silu, swish or sigmoid",
                        SDX_STR_ARG(act));
    lx->opset = OPSET;
    int32_t list[] = {sdx_lower_ints(lx, 1, &rows), sdx_lower_unary(lx, "Shape", input(lx, 1))};
    int32_t groups = sdx_lower_op(lx, "Concat", 2, list);
    sdx_lower_attr_int(lx, "axis", 0);
    int32_t x = rms_norm(lx, reshape(lx, wide(lx, 0), groups), wide(lx, 1)), gate = wide(lx, 2);
    x = reshape(lx, x, sdx_lower_unary(lx, "Shape", input(lx, 0)));
    return narrow(lx, 0,
                  sdx_lower_binary(lx, "Mul", x,
                                   sdx_lower_unary(lx, is_sigmoid ? "Sigmoid" : "Swish", gate)));
}

static enum sdx_status infer_attention_gate(struct sdx_infer *ix)
{
    for (int k = 0; k < ix->count_out && k < 2; k++) {
        const int from = k ? 3 : 0;
        sdx_infer_set_dtype(ix, k, sdx_infer_dtype(ix, 0));
        if (!sdx_infer_has(ix, from) || sdx_infer_rank(ix, from) < 0) continue;
        SDX_TRY(sdx_infer_set_dims(ix, k, sdx_infer_rank(ix, from), sdx_infer_dims(ix, from)));
    }
    return SDX_OK;
}

static enum sdx_status lower_attention_gate(struct sdx_lower *lx)
{
    lx->opset = OPSET;
    int32_t decay = sdx_lower_binary(lx, "Add", wide(lx, 0), input(lx, 1));
    decay = sdx_lower_unary(lx, "Softplus", decay);
    SDX_TRY(narrow(lx, 0, sdx_lower_binary(lx, "Mul", input(lx, 2), decay)));
    const struct sdx_ir_node *node = sdx_lower_node(lx);
    if (node->count_outputs < 2 || node->outputs[1] < 0) return SDX_OK;
    if (input(lx, 3) < 0)
        return SDX_FAIL(lx->cx, SDX_BAD_MODEL, "LinearAttentionGate: beta without input b");
    return narrow(lx, 1, sdx_lower_unary(lx, "Sigmoid", wide(lx, 3)));
}

/* Branches are the last axes, or parts of the last one. */
static enum sdx_status lower_branch_norm(struct sdx_lower *lx)
{
    const struct sdx_type *x = sdx_lower_type(lx, 0);
    const int64_t branches = sdx_ir_attr_int(sdx_lower_node(lx), "num_branches", 0);
    const int rank = x->has_shape ? x->rank : 0;
    const int64_t last = rank > 0 ? x->dims[rank - 1] : -1;
    const int64_t count = branches > 0 ? branches : rank > 1 ? x->dims[rank - 2] : -1;
    if (last < 1 || count < 1 || (branches > 0 && last % branches != 0))
        return SDX_FAIL(lx->cx, SDX_NOT_SUPPORTED,
                        "BranchwiseRMSNorm: branches of lengths that only the run tells");
    const int64_t size = branches > 0 ? last / branches : last;
    const int64_t grouped[] = {-1, count, size}, table[] = {count, size};
    const bool scaled = input(lx, 1) >= 0;
    const struct sdx_type *s = scaled ? sdx_lower_type(lx, 1) : NULL;
    const bool is_row = s && s->has_shape && s->rank == 1 && s->dims[0] == size;
    lx->opset = OPSET;
    int32_t one = sdx_lower_scalar(lx, SDX_F32, 1), y = -1;
    y = rms_norm(lx, reshape(lx, wide(lx, 0), sdx_lower_ints(lx, 3, grouped)), one);
    if (scaled) {
        int32_t scale = wide(lx, 1);
        if (!is_row) scale = reshape(lx, scale, sdx_lower_ints(lx, 2, table));
        y = sdx_lower_binary(lx, "Mul", y, scale);
    }
    return narrow(lx, 0, reshape(lx, y, sdx_lower_unary(lx, "Shape", input(lx, 0))));
}

/* ---- MRotaryEmbedding ---- */

/* Which of the three positions turns each pair: chunks of the sections, or t, h, w in turn until a
 * section is used up. */
static bool choose_positions(const struct sdx_ir_node *node, int64_t half, int64_t *of)
{
    int64_t count = 0;
    const int64_t *section = sdx_ir_attr_ints(node, "mrope_section", &count);
    const bool in_turn = sdx_ir_attr_int(node, "mrope_layout", 0) == 1;
    if (!section || count != 3 || half > ROTARY_MAX) return false;
    for (int64_t i = 0; i < half; i++) {
        const int64_t turn = i % 3;
        if (in_turn)
            of[i] = turn > 0 && i < 3 * section[turn] ? turn : 0;
        else
            of[i] = i < section[0] ? 0 : i < section[0] + section[1] ? 1 : 2;
    }
    return section[0] + section[1] + section[2] == half;
}

static int32_t equals(struct sdx_lower *lx, int32_t list, double v)
{
    return sdx_lower_binary(lx, "Equal", list, sdx_lower_scalar(lx, SDX_I64, v));
}

/* Cosines or sines [batch, length, half] of the cache that input i is. */
static int32_t angles(struct sdx_lower *lx, int i, const int32_t *positions, int32_t chosen)
{
    int32_t out = sdx_lower_binary(lx, "Gather", input(lx, i), positions[0]);
    for (int k = 1; k < 3; k++) {
        int32_t in[] = {equals(lx, chosen, k),
                        sdx_lower_binary(lx, "Gather", input(lx, i), positions[k]), out};
        out = sdx_lower_op(lx, "Where", 3, in);
    }
    return out;
}

static enum sdx_status lower_multi_rotary(struct sdx_lower *lx)
{
    const struct sdx_ir_node *node = sdx_lower_node(lx);
    const struct sdx_type *x = sdx_lower_type(lx, 0), *cache = sdx_lower_type(lx, 2);
    const int64_t width = sdx_ir_attr_int(node, "rotary_embedding_dim", 0);
    const int64_t interleaved = sdx_ir_attr_int(node, "interleaved", 0);
    const int64_t heads = sdx_ir_attr_int(node, "num_heads", 0);
    int64_t of[ROTARY_MAX];
    const int64_t half = cache->has_shape && cache->rank == 2 ? cache->dims[1] : -1;
    if (half < 1 || !x->has_shape || sdx_ir_attr_int(node, "is_packed_batching", 0) != 0 ||
        sdx_ir_attr_float(node, "scale", 1) != 1)
        return SDX_FAIL(lx->cx, SDX_NOT_SUPPORTED,
                        "MRotaryEmbedding: a packed batch, a scale, or lengths that only the run "
                        "tells");
    if (!choose_positions(node, half, of))
        return SDX_FAIL(lx->cx, SDX_BAD_MODEL,
                        "MRotaryEmbedding: mrope_section wants 3 numbers whose sum is %lld",
                        (long long)half);
    const bool is_flat = x->rank == 3;
    lx->opset = OPSET;
    int32_t positions[3], chosen = sdx_lower_ints(lx, half, of);
    for (int k = 0; k < 3; k++)
        positions[k] =
            sdx_lower_binary(lx, "Gather", input(lx, 1), sdx_lower_scalar(lx, SDX_I64, k));
    int32_t in[] = {input(lx, 0), angles(lx, 2, positions, chosen),
                    angles(lx, 3, positions, chosen)};
    int32_t y = sdx_lower_op(lx, "RotaryEmbedding", 3, in);
    sdx_lower_attr_int(lx, "interleaved", interleaved);
    sdx_lower_attr_int(lx, "rotary_embedding_dim", width);
    if (is_flat) sdx_lower_attr_int(lx, "num_heads", heads);
    sdx_lower_output(lx, 0, y);
    return lx->status;
}

static const struct sdx_op ops[] = {
    {"GatedAdd", 1, 0, sdx_infer_same, LOWER(lower_gated_add)},
    {"ScaledSiLU", 1, 0, sdx_infer_same, LOWER(lower_scaled_silu)},
    {"GatedRMSNorm", 1, 0, sdx_infer_same, LOWER(lower_gated_norm)},
    {"LinearAttentionGate", 1, 0, infer_attention_gate, LOWER(lower_attention_gate)},
    {"BranchwiseRMSNorm", 1, 0, sdx_infer_same, LOWER(lower_branch_norm),
     .note = "branches of known lengths"},
    {"MRotaryEmbedding", 1, 0, sdx_infer_same, LOWER(lower_multi_rotary),
     .note = "no packed batches, no scale"},
};

const struct sdx_op_family sdx_ops_contrib_gates = FAMILY("com.microsoft", ops);
