/* SPDX-License-Identifier: Apache-2.0
 * GatherElements of an Expand, as torch.gather of neighbours is exported, reads what was expanded.
 * The node gets the attribute "spread", which files cannot have: axes of length 1 stand still. */
#include "passes/match.h"
#include "passes/passes.h"

/* The value that Expand makes the data of, where all lengths are known and fit. */
static int32_t spread_from(const struct sdx_ir_graph *g, const struct sdx_ir_node *node)
{
    if (node->is_dead || node->domain.len || !sdx_str_is(node->op_type, "GatherElements"))
        return -1;
    const struct sdx_ir_node *expand = sdx_match_maker(g, node->inputs[0], "Expand");
    if (!expand || expand->inputs[0] < 0 || node->inputs[1] < 0) return -1;
    const struct sdx_type *from = &g->values[expand->inputs[0]].type,
                          *data = &g->values[node->inputs[0]].type,
                          *index = &g->values[node->inputs[1]].type;
    if (!from->has_shape || !data->has_shape || !index->has_shape || from->rank != data->rank ||
        index->rank != data->rank)
        return -1;
    const int64_t axis = sdx_ir_attr_int(node, "axis", 0);
    for (int d = 0; d < data->rank; d++) {
        const bool is_axis = d == axis || d == axis + data->rank;
        if (from->dims[d] < 1 || data->dims[d] < 1 || index->dims[d] < 0 ||
            (is_axis ? from->dims[d] != data->dims[d] : index->dims[d] > data->dims[d]))
            return -1;
    }
    return expand->inputs[0];
}

enum sdx_status sdx_pass_gather(struct sdx_context *cx, struct sdx_ir *ir, bool *changed)
{
    for (int32_t n_graph = 0; n_graph < ir->count_graphs; n_graph++) {
        const struct sdx_ir_graph *g = &ir->graphs[n_graph];
        for (int32_t n = 0; n < g->count_nodes; n++) {
            struct sdx_ir_node *node = &g->nodes[n];
            const int32_t from = spread_from(g, node);
            if (from < 0) continue;
            struct sdx_ir_attr *attrs = sdx_arena_array(ir->arena, 2, sizeof *attrs);
            if (!attrs) return SDX_FAIL_MEMORY(cx);
            attrs[0] = (struct sdx_ir_attr){.name = SDX_STR("axis"),
                                            .type = SDX_ATTR_INT,
                                            .i = sdx_ir_attr_int(node, "axis", 0)};
            attrs[1] =
                (struct sdx_ir_attr){.name = SDX_STR("spread"), .type = SDX_ATTR_INT, .i = 1};
            node->attrs = attrs;
            node->count_attrs = 2;
            node->inputs[0] = from;
            *changed = true;
        }
    }
    return SDX_OK;
}
