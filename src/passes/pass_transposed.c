/* SPDX-License-Identifier: Apache-2.0
 * A Transpose of the last two axes that only one MatMul reads becomes the transA or transB of a
 * FusedMatMul, whose kernels read either order at the same speed. It is the last word on products:
 * other passes know MatMul by its name. */
#include "passes/match.h"
#include "passes/passes.h"

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

static enum sdx_status rewrite(struct sdx_context *cx, struct sdx_ir *ir, struct sdx_ir_graph *g,
                               struct sdx_ir_node *node, const int32_t *uses, bool *changed)
{
    static const char *const names[] = {"transA", "transB"};
    int32_t from[2];
    for (int i = 0; i < 2; i++) {
        const int32_t value = node->inputs[i];
        from[i] = value >= 0 && uses[value] == 1 ? swapped(g, value) : -1;
    }
    if (from[0] < 0 && from[1] < 0) return SDX_OK;
    struct sdx_ir_attr *attrs =
        sdx_arena_array(ir->arena, (size_t)node->count_attrs + 2, sizeof *attrs);
    int32_t *inputs =
        sdx_arena_copy(ir->arena, node->inputs, (size_t)node->count_inputs * sizeof *inputs);
    if (!attrs || !inputs) return SDX_FAIL_MEMORY(cx);
    if (node->count_attrs) memcpy(attrs, node->attrs, (size_t)node->count_attrs * sizeof *attrs);
    for (int i = 0; i < 2; i++) {
        if (from[i] < 0) continue;
        inputs[i] = from[i];
        attrs[node->count_attrs++] = (struct sdx_ir_attr){
            .name = sdx_str(names[i]), .type = SDX_ATTR_INT, .graph = -1, .i = 1};
    }
    node->attrs = attrs;
    node->inputs = inputs;
    sdx_match_rename(node, "com.microsoft", "FusedMatMul", 1);
    *changed = true;
    return SDX_OK;
}

enum sdx_status sdx_pass_transposed(struct sdx_context *cx, struct sdx_ir *ir, bool *changed)
{
    for (int32_t n_graph = 0; n_graph < ir->count_graphs; n_graph++) {
        struct sdx_ir_graph *g = &ir->graphs[n_graph];
        int32_t *uses = sdx_ir_uses(g, ir->arena);
        if (!uses) return SDX_FAIL_MEMORY(cx);
        for (int32_t n = 0; n < g->count_nodes; n++) {
            struct sdx_ir_node *node = &g->nodes[n];
            if (node->is_dead || node->domain.len || node->count_inputs < 2) continue;
            if (!sdx_str_is(node->op_type, "MatMul") || node->inputs[0] < 0) continue;
            if (g->values[node->outputs[0]].type.dtype != SDX_F32) continue;
            SDX_TRY(rewrite(cx, ir, g, node, uses, changed));
        }
    }
    return SDX_OK;
}
