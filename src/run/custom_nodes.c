/* SPDX-License-Identifier: Apache-2.0
 * Nodes of the caller's own operators: `create` when the session is made, `destroy` at its end. */
#include "run/custom_nodes.h"

struct sdx_custom_nodes {
    struct sdx_arena arena;
    struct sdx_store *store;
    struct sdx_node *at; /* in the order of graphs and their nodes */
    int32_t count_made;  /* those whose `create` has succeeded */
};

/* ---- constants ---- */

static const struct sdx_tensor *constant_value(const struct sdx_node *node, int i)
{
    const struct sdx_custom_nodes *nodes = node->host;
    const struct sdx_tensor *t = sdx_ir_constant(node->ir, node->graph, node->node->inputs[i]);
    if (!t || !t->needs_copy) return t;
    struct sdx_tensor *copy = sdx_arena_copy(node->arena, t, sizeof *t);
    if (!copy) return NULL;
    if (t->dims == t->dims_inline) copy->dims = copy->dims_inline;
    sdx_tensor_settle(copy, sdx_store_get_aligned(nodes->store, node->cx, t));
    return copy->data ? copy : NULL;
}

/* ---- making ---- */

static int32_t count_nodes(const struct sdx_ir *ir)
{
    int32_t count = 0;
    for (int32_t g = 0; g < ir->count_graphs; g++)
        for (int32_t n = 0; n < ir->graphs[g].count_nodes; n++)
            count += !ir->graphs[g].nodes[n].is_dead && sdx_custom_of(&ir->graphs[g].nodes[n]);
    return count;
}

static const struct sdx_type **types_of(struct sdx_arena *arena, const struct sdx_ir_graph *g,
                                        const int32_t *values, int32_t count)
{
    const struct sdx_type **types = sdx_arena_array(arena, (size_t)count + 1, sizeof *types);
    for (int32_t i = 0; types && i < count; i++)
        types[i] = values[i] >= 0 ? &g->values[values[i]].type : NULL;
    return types;
}

static enum sdx_status make_node(struct sdx_custom_nodes *nodes, struct sdx_context *cx,
                                 const struct sdx_ir *ir, int32_t graph,
                                 const struct sdx_ir_node *node)
{
    const struct sdx_ir_graph *g = &ir->graphs[graph];
    struct sdx_node *n = &nodes->at[nodes->count_made];
    const struct sdx_type **in = types_of(&nodes->arena, g, node->inputs, node->count_inputs);
    const struct sdx_type **out = types_of(&nodes->arena, g, node->outputs, node->count_outputs);
    if (!in || !out) return SDX_FAIL_MEMORY(cx);
    *n = (struct sdx_node){.cx = cx,
                           .arena = &nodes->arena,
                           .ir = ir,
                           .node = node,
                           .value = constant_value,
                           .host = nodes};
    SDX_TRY(sdx_node_describe(n, in, out));
    const struct sdx_custom_op *op = &n->row->given;
    if (op->create &&
        sdx_custom_result(cx, op->create(n, &n->state, op->user), "create") != SDX_OK) {
        char place[256];
        return sdx_fail_where(cx, "%s", sdx_ir_node_describe(g, node, place, sizeof place));
    }
    nodes->count_made++;
    return SDX_OK;
}

enum sdx_status sdx_custom_nodes_create(struct sdx_context *cx, const struct sdx_ir *ir,
                                        struct sdx_store *store, struct sdx_custom_nodes **out)
{
    *out = NULL;
    const int32_t count = ir->customs ? count_nodes(ir) : 0;
    if (!count) return SDX_OK;
    struct sdx_custom_nodes *nodes = sdx_mem_calloc(cx->mem, SDX_MEM_PLAN, 1, sizeof *nodes);
    if (!nodes) return SDX_FAIL_MEMORY(cx);
    sdx_arena_init(&nodes->arena, cx->mem, SDX_MEM_PLAN);
    nodes->store = store;
    nodes->at = sdx_arena_array(&nodes->arena, (size_t)count, sizeof *nodes->at);
    enum sdx_status status = nodes->at ? SDX_OK : SDX_FAIL_MEMORY(cx);
    for (int32_t g = 0; g < ir->count_graphs; g++)
        for (int32_t n = 0; n < ir->graphs[g].count_nodes && status == SDX_OK; n++) {
            const struct sdx_ir_node *node = &ir->graphs[g].nodes[n];
            if (!node->is_dead && sdx_custom_of(node)) status = make_node(nodes, cx, ir, g, node);
        }
    if (status == SDX_OK)
        *out = nodes;
    else
        sdx_custom_nodes_destroy(nodes);
    return status;
}

void sdx_custom_nodes_destroy(struct sdx_custom_nodes *nodes)
{
    if (!nodes) return;
    for (int32_t i = nodes->count_made - 1; i >= 0; i--) {
        const struct sdx_custom_op *op = &nodes->at[i].row->given;
        if (op->destroy) op->destroy(nodes->at[i].state, op->user);
    }
    struct sdx_mem *mem = nodes->arena.mem;
    sdx_arena_deinit(&nodes->arena);
    sdx_mem_free(mem, nodes);
}

struct sdx_node *sdx_custom_nodes_find(const struct sdx_custom_nodes *nodes,
                                       const struct sdx_ir_node *node)
{
    for (int32_t i = 0; i < nodes->count_made; i++)
        if (nodes->at[i].node == node) return &nodes->at[i];
    SDX_ASSERT(false);
    return NULL;
}
