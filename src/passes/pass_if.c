/* SPDX-License-Identifier: Apache-2.0
 * An If whose condition is known is the branch that it takes: the branch's nodes move to the graph
 * around it, where other passes see what they make. Exporters write one wherever Python code asks
 * for the rank or a length of a tensor. */
#include "passes/match.h"
#include "passes/passes.h"

struct work {
    struct sdx_context *cx;
    struct sdx_ir *ir;
    int32_t graph; /* around the If */
};

static struct sdx_ir_graph *graph_of(const struct work *w)
{
    return &w->ir->graphs[w->graph];
}

/* The branch that the node takes, -1: only a run tells. */
static int32_t taken(const struct work *w, const struct sdx_ir_node *node)
{
    const struct sdx_tensor *condition = sdx_match_is(node, "If") && node->count_inputs == 1
                                             ? sdx_ir_constant(w->ir, w->graph, node->inputs[0])
                                             : NULL;
    if (!condition || condition->dtype != SDX_BOOL || condition->count != 1 || !condition->data)
        return -1;
    const bool is_true = *(const uint8_t *)condition->data != 0;
    const struct sdx_ir_attr *attr = sdx_ir_attr(node, is_true ? "then_branch" : "else_branch");
    if (!attr || attr->type != SDX_ATTR_GRAPH) return -1;
    const struct sdx_ir_graph *body = &w->ir->graphs[attr->graph];
    return body->count_inputs || body->count_outputs < node->count_outputs ? -1 : attr->graph;
}

/* The value of the graph around the branch that is its value `from`; -1: no memory. */
static int32_t move_value(const struct work *w, const struct sdx_ir_value *from)
{
    if (from->outer >= 0) return from->outer;
    const int32_t to = sdx_ir_value_create(w->ir, graph_of(w), from->name);
    if (to < 0) return -1;
    graph_of(w)->values[to].constant = from->constant;
    graph_of(w)->values[to].type = from->type;
    return to;
}

static bool map_list(const struct work *w, const int32_t **list, int32_t count, const int32_t *map)
{
    int32_t *own = sdx_arena_array(w->ir->arena, (size_t)count + 1, sizeof *own);
    for (int32_t i = 0; own && i < count; i++)
        own[i] = (*list)[i] < 0 ? -1 : map[(*list)[i]];
    *list = own;
    return own != NULL;
}

/* What bodies of the node take is what the map says. */
static void move_bodies(const struct work *w, const struct sdx_ir_node *node, const int32_t *map)
{
    for (int32_t a = 0; a < node->count_attrs; a++) {
        int64_t count = 0;
        const int32_t *bodies = sdx_ir_attr_graphs(&node->attrs[a], &count);
        for (int64_t i = 0; i < count; i++) {
            struct sdx_ir_graph *body = &w->ir->graphs[bodies[i]];
            body->parent = w->graph;
            for (int32_t v = 0; v < body->count_values; v++)
                if (body->values[v].outer >= 0) body->values[v].outer = map[body->values[v].outer];
        }
    }
}

static enum sdx_status move_node(const struct work *w, const struct sdx_ir_node *from,
                                 const int32_t *map)
{
    struct sdx_ir_graph *g = graph_of(w);
    const int32_t *inputs = from->inputs, *outputs = from->outputs;
    if (!map_list(w, &inputs, from->count_inputs, map) ||
        !map_list(w, &outputs, from->count_outputs, map) ||
        !sdx_ir_node_create(w->ir, g, from->domain, from->op_type, 0, 0, 0))
        return SDX_FAIL_MEMORY(w->cx);
    const int32_t index = g->count_nodes - 1;
    struct sdx_ir_node *to = &g->nodes[index];
    *to = *from;
    to->inputs = (int32_t *)inputs;
    to->outputs = (int32_t *)outputs;
    to->captures = NULL;
    to->count_captures = 0;
    for (int32_t k = 0; k < to->count_outputs; k++)
        sdx_ir_node_set_output(g, to, index, k, outputs[k]);
    move_bodies(w, to, map);
    return SDX_OK;
}

/* Output k of the branch, which is value `to` of the graph around it, where it is not made by one
 * of the nodes that move. */
static enum sdx_status hand_on(const struct work *w, const struct sdx_ir_node *node, int32_t k,
                               int32_t from)
{
    struct sdx_ir_graph *g = graph_of(w);
    const int32_t to = node->outputs[k];
    g->values[to].producer = -1;
    return sdx_match_add_node(w->ir, g, "Identity", node->opset, node->name, &from, 1, to, 0)
               ? SDX_OK
               : SDX_FAIL_MEMORY(w->cx);
}

static enum sdx_status take(const struct work *w, struct sdx_arena *arena, int32_t n,
                            int32_t branch)
{
    const struct sdx_ir_graph *body = &w->ir->graphs[branch];
    const struct sdx_ir_node node = graph_of(w)->nodes[n];
    int32_t *map = sdx_arena_array(arena, (size_t)body->count_values + 1, sizeof *map);
    if (!map) return SDX_FAIL_MEMORY(w->cx);
    graph_of(w)->nodes[n].is_dead = true;
    for (int32_t v = 0; v < body->count_values; v++)
        map[v] = -1;
    for (int32_t k = 0; k < node.count_outputs; k++) {
        const struct sdx_ir_value *v = &body->values[body->outputs[k]];
        if (node.outputs[k] < 0 || v->producer < 0 || map[body->outputs[k]] >= 0) continue;
        map[body->outputs[k]] = node.outputs[k];
    }
    for (int32_t v = 0; v < body->count_values; v++) {
        if (map[v] < 0) map[v] = move_value(w, &body->values[v]);
        if (map[v] < 0) return SDX_FAIL_MEMORY(w->cx);
    }
    for (int32_t i = 0; i < body->count_nodes; i++)
        if (!body->nodes[i].is_dead) SDX_TRY(move_node(w, &body->nodes[i], map));
    for (int32_t k = 0; k < node.count_outputs; k++)
        if (node.outputs[k] >= 0 && map[body->outputs[k]] != node.outputs[k])
            SDX_TRY(hand_on(w, &node, k, map[body->outputs[k]]));
    struct sdx_ir_graph *left = &w->ir->graphs[branch]; /* bodies within it have moved */
    *left = (struct sdx_ir_graph){.name = left->name, .parent = -1, .parent_node = -1};
    return SDX_OK;
}

enum sdx_status sdx_pass_if(struct sdx_context *cx, struct sdx_ir *ir, bool *changed)
{
    struct sdx_arena arena;
    enum sdx_status status = SDX_OK;
    sdx_arena_init(&arena, cx->mem, SDX_MEM_PLAN);
    for (int32_t graph = 0; graph < ir->count_graphs && status == SDX_OK; graph++) {
        const struct work w = {.cx = cx, .ir = ir, .graph = graph};
        bool did = false;
        for (int32_t n = 0; n < ir->graphs[graph].count_nodes && status == SDX_OK; n++) {
            const int32_t branch = taken(&w, &ir->graphs[graph].nodes[n]);
            if (branch < 0) continue;
            status = take(&w, &arena, n, branch);
            did = true;
        }
        if (!did || status != SDX_OK) continue;
        *changed = true;
        status = sdx_ir_update_captures(cx, ir, graph);
        if (status == SDX_OK) status = sdx_ir_sort(cx, ir, &ir->graphs[graph]);
    }
    sdx_arena_deinit(&arena);
    if (status != SDX_OK) return status;
    return *changed ? sdx_passes_infer(cx, ir) : SDX_OK;
}
