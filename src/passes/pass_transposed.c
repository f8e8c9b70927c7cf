/* SPDX-License-Identifier: Apache-2.0
 * A Transpose of the last two axes that only one MatMul reads becomes the transA or transB of a
 * FusedMatMul, whose kernels read either order at the same speed, and one number by which a product
 * of two computed values is multiplied its alpha. It is the last word on products: other passes
 * know MatMul by its name. */
#include "passes/match.h"
#include "passes/passes.h"

enum { ROOM = 3 }; /* attributes */

/* What `value` is the Transpose of, if that only swaps the last two axes; -1: it is not so. */
static int32_t swapped(const struct sdx_ir_graph *g, int32_t value)
{
    const struct sdx_ir_node *node = sdx_match_maker(g, value, "Transpose");
    int64_t count = 0;
    if (!node || !sdx_ir_attr_ints(node, "perm", &count) || count < 2) return -1;
    const int rank = (int)count;
    if (!sdx_match_moves_axis(node, rank, rank - 2, rank - 1)) return -1;
    return node->inputs[0];
}

/* The only reader of the product, where it multiplies or divides it by *alpha or its inverse. */
static struct sdx_ir_node *scaled(const struct sdx_match_walk *w, const struct sdx_ir_node *node,
                                  float *alpha)
{
    const struct sdx_ir_graph *g = w->g;
    const int32_t y = node->outputs[0];
    struct sdx_ir_node *reader = sdx_match_reader(w, y);
    int32_t rest = -1;
    double scalar = 1;
    if (!reader || sdx_match_is_fused(node) || sdx_match_constant(g, node->inputs[0]) ||
        sdx_match_constant(g, node->inputs[1]) || !sdx_match_same_type(g, y, reader->outputs[0]))
        return NULL;
    const bool divides = sdx_match_is(reader, "Div");
    if (!sdx_match_with_scalar(g, reader->outputs[0], divides ? "Div" : "Mul", &rest, &scalar) ||
        rest != y)
        return NULL;
    *alpha = divides ? 1.0f / (float)scalar : (float)scalar;
    return *alpha - *alpha == 0 ? reader : NULL; /* NULL: infinite, or no number */
}

static enum sdx_status rewrite(struct sdx_match_walk *w, int32_t n)
{
    static const char *const names[] = {"transA", "transB"};
    struct sdx_ir_graph *g = w->g;
    struct sdx_ir_node *node = &g->nodes[n];
    int32_t from[2];
    float alpha = 1;
    if (!sdx_match_is(node, "MatMul") || node->count_inputs < 2 || node->inputs[0] < 0 ||
        g->values[node->outputs[0]].type.dtype != SDX_F32)
        return SDX_OK;
    for (int i = 0; i < 2; i++) {
        const int32_t value = node->inputs[i];
        from[i] = value >= 0 && w->uses[value] == 1 ? swapped(g, value) : -1;
    }
    struct sdx_ir_node *reader = scaled(w, node, &alpha);
    if (from[0] < 0 && from[1] < 0 && !reader) return SDX_OK;
    struct sdx_ir_attr *attrs =
        sdx_arena_array(w->ir->arena, (size_t)node->count_attrs + ROOM, sizeof *attrs);
    int32_t *inputs =
        sdx_arena_copy(w->ir->arena, node->inputs, (size_t)node->count_inputs * sizeof *inputs);
    if (!attrs || !inputs) return SDX_FAIL_MEMORY(w->cx);
    if (node->count_attrs) memcpy(attrs, node->attrs, (size_t)node->count_attrs * sizeof *attrs);
    for (int i = 0; i < 2; i++) {
        if (from[i] < 0) continue;
        inputs[i] = from[i];
        attrs[node->count_attrs++] = (struct sdx_ir_attr){
            .name = sdx_str(names[i]), .type = SDX_ATTR_INT, .graph = -1, .i = 1};
    }
    if (reader) {
        attrs[node->count_attrs++] = (struct sdx_ir_attr){
            .name = SDX_STR("alpha"), .type = SDX_ATTR_FLOAT, .graph = -1, .f = alpha};
        sdx_match_take_over(g, node, reader);
    }
    node->attrs = attrs;
    node->inputs = inputs;
    sdx_match_rename(node, "com.microsoft", "FusedMatMul", 1);
    w->did = true;
    return SDX_OK;
}

enum sdx_status sdx_pass_transposed(struct sdx_context *cx, struct sdx_ir *ir, bool *changed)
{
    return sdx_match_walk_nodes(cx, ir, rewrite, changed);
}
