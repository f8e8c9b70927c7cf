/* SPDX-License-Identifier: Apache-2.0
 * Weight-only quantisation: MatMul or Gemm whose right operand is a DequantizeLinear of constants
 * (2 to 8 bits, per tensor, per column or in blocks along K) becomes one operator that decodes the
 * weights where it multiplies (ops/nbits.c), before folding would make floats of them. Products
 * whose left operand is dequantised too are left to the integer kernels. */
#include "passes/match.h"
#include "passes/passes.h"

struct source {
    int32_t weights, scale, zero;
    int k_axis; /* of the weights */
    int64_t block;
};

static int64_t dim_of(const struct sdx_tensor *t, int d)
{
    return t->rank > d ? t->dims[d] : 1;
}

/* Are the scales one, one a column, or in blocks along K? */
static bool facts_fit(const struct sdx_ir_node *node, const struct sdx_tensor *w,
                      const struct sdx_tensor *scale, struct source *s)
{
    int64_t axis = sdx_ir_attr_int(node, "axis", 1);
    const int n_axis = 1 - s->k_axis;
    if (axis < 0) axis += 2;
    s->block = sdx_ir_attr_int(node, "block_size", 0);
    if (s->block == 0)
        return scale->count == 1 ||
               (scale->rank == 1 && axis == n_axis && scale->dims[0] == w->dims[n_axis]);
    const int64_t blocks = (w->dims[s->k_axis] + s->block - 1) / s->block;
    return s->block > 0 && axis == s->k_axis && scale->rank == 2 &&
           s->block % (32 / sdx_dtype_bits(w->dtype)) == 0 && dim_of(scale, s->k_axis) == blocks &&
           dim_of(scale, n_axis) == w->dims[n_axis];
}

/* The constants behind right operand `value`, stored [K, N] or, when is_turned, [N, K]. */
static bool find_source(const struct sdx_ir_graph *g, int32_t value, bool is_turned,
                        struct source *s)
{
    const struct sdx_ir_node *turn = sdx_match_maker(g, value, "Transpose");
    int64_t count = 0;
    const int64_t *perm = turn ? sdx_ir_attr_ints(turn, "perm", &count) : NULL;
    if (turn) {
        if (perm && (count != 2 || perm[0] != 1 || perm[1] != 0)) return false;
        value = turn->inputs[0];
        is_turned = !is_turned;
    }
    const struct sdx_ir_node *node = sdx_match_maker(g, value, "DequantizeLinear");
    if (!node || node->count_inputs < 2 || g->values[value].type.dtype != SDX_F32) return false;
    s->weights = node->inputs[0];
    s->scale = node->inputs[1];
    s->zero = node->count_inputs > 2 ? node->inputs[2] : -1;
    s->k_axis = is_turned;
    const struct sdx_tensor *w = sdx_match_constant(g, s->weights);
    const struct sdx_tensor *scale = sdx_match_constant(g, s->scale);
    const struct sdx_tensor *zero = sdx_match_constant(g, s->zero);
    if (!w || !scale || w->rank != 2 || w->count == 0 || scale->dtype != SDX_F32) return false;
    if (!sdx_dtype_is_integer(w->dtype) || sdx_dtype_bits(w->dtype) > 8) return false;
    if (s->zero >= 0 && (!zero || zero->count != scale->count || zero->dtype != w->dtype))
        return false;
    return facts_fit(node, w, scale, s);
}

static bool is_dequantised(const struct sdx_ir_graph *g, int32_t value)
{
    return sdx_match_maker(g, value, "DequantizeLinear") ||
           sdx_match_maker(g, value, "DynamicQuantizeLinear");
}

static enum sdx_status become(struct sdx_context *cx, struct sdx_ir *ir, struct sdx_ir_node *node,
                              const struct source *s, int32_t bias)
{
    const int32_t inputs[] = {node->inputs[0], s->weights, s->scale, s->zero, bias};
    SDX_TRY(sdx_match_become_in(cx, ir, node, "sardonyx", "MatMulBlocks", 1, inputs,
                                SDX_COUNT_OF(inputs), 2));
    node->count_attrs = 2;
    node->attrs[0] = (struct sdx_ir_attr){
        .name = SDX_STR("k_axis"), .type = SDX_ATTR_INT, .graph = -1, .i = s->k_axis};
    node->attrs[1] = (struct sdx_ir_attr){
        .name = SDX_STR("block_size"), .type = SDX_ATTR_INT, .graph = -1, .i = s->block};
    return SDX_OK;
}

/* Gemm without factors and with a row of biases or none; *bias: -1 none. */
static bool is_plain_gemm(const struct sdx_ir_graph *g, const struct sdx_ir_node *node,
                          int32_t *bias)
{
    *bias = node->count_inputs > 2 ? node->inputs[2] : -1;
    const struct sdx_type *type = *bias < 0 ? NULL : &g->values[*bias].type;
    const struct sdx_type *out = &g->values[node->outputs[0]].type;
    bool fits = !type || (type->has_shape && type->rank == 1 && out->has_shape && out->rank == 2 &&
                          type->dims[0] >= 0 && type->dims[0] == out->dims[1]);
    return fits && sdx_ir_attr_float(node, "alpha", 1) == 1 &&
           sdx_ir_attr_float(node, "beta", 1) == 1 && sdx_ir_attr_int(node, "transA", 0) == 0 &&
           !sdx_match_is_fused(node);
}

enum sdx_status sdx_pass_weights(struct sdx_context *cx, struct sdx_ir *ir, bool *changed)
{
    for (int32_t n_graph = 0; n_graph < ir->count_graphs; n_graph++) {
        const struct sdx_ir_graph *g = &ir->graphs[n_graph];
        for (int32_t n = 0; n < g->count_nodes; n++) {
            struct sdx_ir_node *node = &g->nodes[n];
            struct source s;
            int32_t bias = -1;
            if (node->is_dead || node->domain.len || node->count_inputs < 2) continue;
            const bool is_gemm = sdx_str_is(node->op_type, "Gemm");
            if (!is_gemm && !sdx_str_is(node->op_type, "MatMul")) continue;
            if (is_gemm ? !is_plain_gemm(g, node, &bias)
                        : node->count_inputs != 2 || node->count_attrs > 0)
                continue;
            if (node->inputs[0] < 0 || g->values[node->inputs[0]].type.dtype != SDX_F32) continue;
            if (is_dequantised(g, node->inputs[0])) continue;
            if (!find_source(g, node->inputs[1], is_gemm && sdx_ir_attr_int(node, "transB", 0) != 0,
                             &s))
                continue;
            SDX_TRY(become(cx, ir, node, &s, bias));
            *changed = true;
        }
    }
    return SDX_OK;
}
