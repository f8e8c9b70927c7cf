/* SPDX-License-Identifier: Apache-2.0
 * Removes nodes nobody reads, from the end to the beginning; outputs of living nodes that nobody
 * reads become "left out" where the operator has more than one. */
#include "passes/passes.h"

static enum sdx_status clean_graph(struct sdx_context *cx, struct sdx_ir *ir,
                                   struct sdx_ir_graph *g, bool *changed)
{
    int32_t *uses = sdx_ir_uses(g, ir->arena);
    if (!uses) return SDX_FAIL_MEMORY(cx);
    for (int32_t n = g->count_nodes - 1; n >= 0; n--) {
        struct sdx_ir_node *node = &g->nodes[n];
        if (node->is_dead) continue;
        bool used = false;
        for (int k = 0; k < node->count_outputs; k++)
            used = used || (node->outputs[k] >= 0 && uses[node->outputs[k]] > 0);
        if (used) continue;
        for (int i = 0; i < node->count_inputs; i++)
            if (node->inputs[i] >= 0) uses[node->inputs[i]]--;
        for (int i = 0; i < node->count_captures; i++)
            uses[node->captures[i]]--;
        node->is_dead = true;
        *changed = true;
    }
    return SDX_OK;
}

enum sdx_status sdx_pass_dead(struct sdx_context *cx, struct sdx_ir *ir, bool *changed)
{
    for (int32_t g = ir->count_graphs - 1; g >= 0; g--)
        SDX_TRY(clean_graph(cx, ir, &ir->graphs[g], changed));
    return SDX_OK;
}
