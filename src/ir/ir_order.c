/* SPDX-License-Identifier: Apache-2.0
 * Order and bookkeeping of whole graphs: topological sort, captures of bodies, compaction. */
#include "ir/ir.h"

static bool node_value_is_late(const struct sdx_ir_graph *graph, int32_t value, int32_t node)
{
    return value >= 0 && graph->values[value].producer >= node;
}

static bool graph_is_sorted(const struct sdx_ir_graph *graph)
{
    for (int32_t n = 0; n < graph->count_nodes; n++) {
        const struct sdx_ir_node *node = &graph->nodes[n];
        if (node->is_dead) continue;
        for (int32_t i = 0; i < node->count_inputs; i++)
            if (node_value_is_late(graph, node->inputs[i], n)) return false;
        for (int32_t i = 0; i < node->count_captures; i++)
            if (node_value_is_late(graph, node->captures[i], n)) return false;
    }
    return true;
}

/* The producer of dependency `k` (inputs, then captures) of a node; -1: none. */
static int32_t dependency(const struct sdx_ir_graph *graph, const struct sdx_ir_node *node,
                          int32_t k)
{
    int32_t value =
        k < node->count_inputs ? node->inputs[k] : node->captures[k - node->count_inputs];
    return value < 0 ? -1 : graph->values[value].producer;
}

struct visit {
    int32_t node, next; /* the dependency to look at next */
};

enum { NEW = 0, OPEN = 1, DONE = 2 };

/* Depth-first from each node in the order given: order[k] is the node that comes k-th. Returns a
 * node on a cycle, or -1. */
static int32_t order_nodes(const struct sdx_ir_graph *graph, uint8_t *state, struct visit *stack,
                           int32_t *order)
{
    int32_t done = 0;
    for (int32_t root = 0; root < graph->count_nodes; root++) {
        if (state[root] != NEW) continue;
        int32_t depth = 0;
        stack[depth++] = (struct visit){root, 0};
        state[root] = OPEN;
        while (depth > 0) {
            struct visit *top = &stack[depth - 1];
            const struct sdx_ir_node *node = &graph->nodes[top->node];
            int32_t count = node->is_dead ? 0 : node->count_inputs + node->count_captures;
            if (top->next == count) {
                state[top->node] = DONE;
                order[done++] = top->node;
                depth--;
                continue;
            }
            int32_t from = dependency(graph, node, top->next++);
            if (from < 0 || state[from] == DONE) continue;
            if (state[from] == OPEN) return from;
            state[from] = OPEN;
            stack[depth++] = (struct visit){from, 0};
        }
    }
    return -1;
}

/* Producers and holders follow nodes that moved. */
static void relink(struct sdx_ir *ir, struct sdx_ir_graph *graph)
{
    for (int32_t n = 0; n < graph->count_nodes; n++) {
        const struct sdx_ir_node *node = &graph->nodes[n];
        for (int32_t i = 0; i < node->count_outputs; i++)
            if (node->outputs[i] >= 0) graph->values[node->outputs[i]].producer = n;
        for (int32_t a = 0; a < node->count_attrs && !node->is_dead; a++) {
            int64_t count = 0;
            const int32_t *bodies = sdx_ir_attr_graphs(&node->attrs[a], &count);
            for (int64_t b = 0; b < count; b++)
                ir->graphs[bodies[b]].parent_node = n;
        }
    }
}

enum sdx_status sdx_ir_sort(struct sdx_context *cx, struct sdx_ir *ir, struct sdx_ir_graph *graph)
{
    if (graph_is_sorted(graph)) return SDX_OK;
    enum sdx_status status = SDX_OK;
    size_t count = (size_t)graph->count_nodes;
    uint8_t *state = sdx_mem_calloc(cx->mem, SDX_MEM_MODEL, count, sizeof(*state));
    struct visit *stack = sdx_mem_calloc(cx->mem, SDX_MEM_MODEL, count, sizeof(*stack));
    int32_t *order = sdx_mem_calloc(cx->mem, SDX_MEM_MODEL, count, sizeof(*order));
    struct sdx_ir_node *nodes = sdx_mem_calloc(cx->mem, SDX_MEM_MODEL, count, sizeof(*nodes));
    if (!state || !stack || !order || !nodes) {
        status = SDX_FAIL_MEMORY(cx);
        goto done;
    }
    int32_t cyclic = order_nodes(graph, state, stack, order);
    if (cyclic >= 0) {
        char text[512];
        status = SDX_FAIL(cx, SDX_BAD_MODEL, "%s depends on its own output, expected no cycle",
                          sdx_ir_node_describe(graph, &graph->nodes[cyclic], text, sizeof(text)));
        goto done;
    }
    memcpy(nodes, graph->nodes, count * sizeof(*nodes));
    for (size_t k = 0; k < count; k++)
        graph->nodes[k] = nodes[order[k]];
    relink(ir, graph);
done:
    sdx_mem_free(cx->mem, nodes);
    sdx_mem_free(cx->mem, order);
    sdx_mem_free(cx->mem, stack);
    sdx_mem_free(cx->mem, state);
    return status;
}

/* Captures of all bodies of the node, repeats included. */
static int64_t count_outer(const struct sdx_ir *ir, const struct sdx_ir_node *node)
{
    int64_t total = 0;
    for (int32_t a = 0; a < node->count_attrs; a++) {
        int64_t count = 0;
        const int32_t *bodies = sdx_ir_attr_graphs(&node->attrs[a], &count);
        for (int64_t b = 0; b < count; b++) {
            const struct sdx_ir_graph *body = &ir->graphs[bodies[b]];
            for (int32_t v = 0; v < body->count_values; v++)
                total += body->values[v].outer >= 0;
        }
    }
    return total;
}

/* Collects the outer values of all bodies of the node, in the order met, each once. `seen` is zero
 * before and after. */
static void collect_outer(const struct sdx_ir *ir, struct sdx_ir_node *node, uint8_t *seen)
{
    node->count_captures = 0;
    for (int32_t a = 0; a < node->count_attrs; a++) {
        int64_t count = 0;
        const int32_t *bodies = sdx_ir_attr_graphs(&node->attrs[a], &count);
        for (int64_t b = 0; b < count; b++) {
            const struct sdx_ir_graph *body = &ir->graphs[bodies[b]];
            for (int32_t v = 0; v < body->count_values; v++) {
                int32_t outer = body->values[v].outer;
                if (outer < 0 || seen[outer]) continue;
                seen[outer] = 1;
                node->captures[node->count_captures++] = outer;
            }
        }
    }
    for (int32_t i = 0; i < node->count_captures; i++)
        seen[node->captures[i]] = 0;
}

enum sdx_status sdx_ir_update_captures(struct sdx_context *cx, struct sdx_ir *ir, int32_t graph)
{
    struct sdx_ir_graph *g = &ir->graphs[graph];
    uint8_t *seen = NULL;
    for (int32_t n = 0; n < g->count_nodes; n++) {
        struct sdx_ir_node *node = &g->nodes[n];
        int64_t total = count_outer(ir, node);
        if (total == 0) node->count_captures = 0;
        if (total == 0) continue;
        if (!seen) seen = sdx_mem_calloc(cx->mem, SDX_MEM_MODEL, (size_t)g->count_values, 1);
        if (!seen) return SDX_FAIL_MEMORY(cx);
        if (total > node->count_captures)
            node->captures = sdx_arena_array(ir->arena, (size_t)total, sizeof(int32_t));
        if (!node->captures) {
            sdx_mem_free(cx->mem, seen);
            return SDX_FAIL_MEMORY(cx);
        }
        collect_outer(ir, node, seen);
    }
    sdx_mem_free(cx->mem, seen);
    return SDX_OK;
}

static void drop_dead_nodes(struct sdx_ir *ir, struct sdx_ir_graph *graph)
{
    int32_t live = 0;
    for (int32_t n = 0; n < graph->count_nodes; n++) {
        const struct sdx_ir_node *node = &graph->nodes[n];
        if (!node->is_dead) {
            graph->nodes[live++] = *node;
            continue;
        }
        for (int32_t i = 0; i < node->count_outputs; i++) {
            int32_t value = node->outputs[i];
            if (value >= 0 && graph->values[value].producer == n)
                graph->values[value].producer = -1;
        }
    }
    if (live == graph->count_nodes) return;
    /* A pass may give a dead node's output to a new node, so producers are set anew. */
    graph->count_nodes = live;
    relink(ir, graph);
}

static enum sdx_status drop_unused_captures(struct sdx_context *cx, struct sdx_ir_graph *graph)
{
    int32_t *uses =
        sdx_mem_calloc(cx->mem, SDX_MEM_MODEL, (size_t)graph->count_values, sizeof(*uses));
    if (!uses) return SDX_FAIL_MEMORY(cx);
    sdx_ir_count_uses(graph, uses);
    for (int32_t v = 0; v < graph->count_values; v++)
        if (uses[v] == 0) graph->values[v].outer = -1;
    sdx_mem_free(cx->mem, uses);
    return SDX_OK;
}

static enum sdx_status compact_graph(struct sdx_context *cx, struct sdx_ir *ir, int32_t index,
                                     uint8_t *held, int depth);

static enum sdx_status compact_bodies(struct sdx_context *cx, struct sdx_ir *ir, int32_t graph,
                                      int32_t n, uint8_t *held, int depth)
{
    const struct sdx_ir_node *node = &ir->graphs[graph].nodes[n];
    for (int32_t a = 0; a < node->count_attrs; a++) {
        int64_t count = 0;
        const int32_t *bodies = sdx_ir_attr_graphs(&node->attrs[a], &count);
        for (int64_t b = 0; b < count; b++) {
            ir->graphs[bodies[b]].parent = graph;
            ir->graphs[bodies[b]].parent_node = n;
            SDX_TRY(compact_graph(cx, ir, bodies[b], held, depth + 1));
        }
    }
    return SDX_OK;
}

static enum sdx_status compact_graph(struct sdx_context *cx, struct sdx_ir *ir, int32_t index,
                                     uint8_t *held, int depth)
{
    struct sdx_ir_graph *graph = &ir->graphs[index];
    if (held[index] || depth > 2 * SDX_IR_BODY_DEPTH_MAX)
        return SDX_FAIL(cx, SDX_INTERNAL, "graph %d is held by two nodes or nests too deep", index);
    held[index] = 1;
    drop_dead_nodes(ir, graph);
    for (int32_t n = 0; n < graph->count_nodes; n++)
        SDX_TRY(compact_bodies(cx, ir, index, n, held, depth));
    SDX_TRY(sdx_ir_update_captures(cx, ir, index));
    return drop_unused_captures(cx, graph);
}

enum sdx_status sdx_ir_compact(struct sdx_context *cx, struct sdx_ir *ir)
{
    uint8_t *held = sdx_mem_calloc(cx->mem, SDX_MEM_MODEL, (size_t)ir->count_graphs, 1);
    if (!held) return SDX_FAIL_MEMORY(cx);
    enum sdx_status status = compact_graph(cx, ir, 0, held, 0);
    for (int32_t g = 0; g < ir->count_graphs && status == SDX_OK; g++) {
        if (held[g]) continue;
        struct sdx_ir_graph *graph = &ir->graphs[g];
        *graph = (struct sdx_ir_graph){.name = graph->name, .parent = -1, .parent_node = -1};
    }
    sdx_mem_free(cx->mem, held);
    return status;
}
