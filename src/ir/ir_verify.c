/* SPDX-License-Identifier: Apache-2.0
 * The invariants of the IR that every pass must keep. What a model file may get wrong is not
 * checked here: the import refuses that. */
#include "ir/ir.h"

struct verify {
    struct sdx_context *cx;
    const struct sdx_ir *ir;
    uint8_t *held; /* of each graph: how many nodes hold it */
};

#define FAULT(v, ...) SDX_FAIL((v)->cx, SDX_INTERNAL, __VA_ARGS__)

static bool is_value(const struct sdx_ir_graph *graph, int32_t value)
{
    return value >= 0 && value < graph->count_values;
}

static enum sdx_status verify_value(struct verify *v, int32_t g, int32_t index)
{
    const struct sdx_ir_graph *graph = &v->ir->graphs[g];
    const struct sdx_ir_value *value = &graph->values[index];
    if (value->outer >= 0) {
        if (graph->parent < 0 || !is_value(&v->ir->graphs[graph->parent], value->outer))
            return FAULT(v, "graph %d: value %d captures value %d, which its parent has not", g,
                         index, value->outer);
        if (value->producer >= 0 || (value->flags & SDX_IR_INPUT))
            return FAULT(v, "graph %d: value %d is a capture and has a producer", g, index);
    }
    if (value->producer >= 0) {
        if (value->producer >= graph->count_nodes)
            return FAULT(v, "graph %d: producer of value %d is node %d of %d", g, index,
                         value->producer, graph->count_nodes);
        const struct sdx_ir_node *node = &graph->nodes[value->producer];
        int32_t slot = value->producer_slot;
        if (slot < 0 || slot >= node->count_outputs || node->outputs[slot] != index)
            return FAULT(v, "graph %d: value %d is not output %d of node %d", g, index, slot,
                         value->producer);
        if (value->flags & SDX_IR_INPUT)
            return FAULT(v, "graph %d: value %d is an input and has a producer", g, index);
    }
    for (int32_t d = 0; value->type.has_shape && d < value->type.rank; d++)
        if (value->type.dims[d] < -1 && -(value->type.dims[d] + 2) >= v->ir->count_symbols)
            return FAULT(v, "graph %d: value %d has an unknown dimension symbol", g, index);
    return SDX_OK;
}

static enum sdx_status verify_use(struct verify *v, int32_t g, int32_t n, int32_t value)
{
    const struct sdx_ir_graph *graph = &v->ir->graphs[g];
    if (!is_value(graph, value))
        return FAULT(v, "graph %d: node %d reads value %d of %d", g, n, value, graph->count_values);
    const struct sdx_ir_value *at = &graph->values[value];
    if (at->producer >= n)
        return FAULT(v, "graph %d: node %d reads value %d, which node %d makes later", g, n, value,
                     at->producer);
    if (at->producer < 0 && at->outer < 0 && !(at->flags & SDX_IR_INPUT) && !at->constant)
        return FAULT(v, "graph %d: node %d reads value %d, which nothing makes", g, n, value);
    if (at->producer >= 0 && graph->nodes[at->producer].is_dead)
        return FAULT(v, "graph %d: node %d reads value %d of a dead node", g, n, value);
    return SDX_OK;
}

static enum sdx_status verify_bodies(struct verify *v, int32_t g, int32_t n)
{
    const struct sdx_ir_node *node = &v->ir->graphs[g].nodes[n];
    for (int32_t a = 0; a < node->count_attrs; a++) {
        int64_t count = 0;
        const int32_t *bodies = sdx_ir_attr_graphs(&node->attrs[a], &count);
        for (int64_t b = 0; b < count; b++) {
            int32_t index = bodies[b];
            if (index <= 0 || index >= v->ir->count_graphs)
                return FAULT(v, "graph %d: node %d holds graph %d of %d", g, n, index,
                             v->ir->count_graphs);
            const struct sdx_ir_graph *body = &v->ir->graphs[index];
            if (body->parent != g || body->parent_node != n || v->held[index])
                return FAULT(v, "graph %d: node %d holds graph %d, which belongs elsewhere", g, n,
                             index);
            v->held[index] = 1;
            for (int32_t k = 0; k < body->count_values; k++) {
                int32_t outer = body->values[k].outer, at = 0;
                if (outer < 0) continue;
                while (at < node->count_captures && node->captures[at] != outer)
                    at++;
                if (at == node->count_captures)
                    return FAULT(v, "graph %d: node %d does not list capture %d of graph %d", g, n,
                                 outer, index);
            }
        }
    }
    return SDX_OK;
}

static enum sdx_status verify_node(struct verify *v, int32_t g, int32_t n)
{
    const struct sdx_ir_graph *graph = &v->ir->graphs[g];
    const struct sdx_ir_node *node = &graph->nodes[n];
    for (int32_t i = 0; i < node->count_inputs; i++)
        if (node->inputs[i] != -1) SDX_TRY(verify_use(v, g, n, node->inputs[i]));
    for (int32_t i = 0; i < node->count_captures; i++) {
        SDX_TRY(verify_use(v, g, n, node->captures[i]));
        for (int32_t k = 0; k < i; k++)
            if (node->captures[k] == node->captures[i])
                return FAULT(v, "graph %d: node %d lists capture %d twice", g, n,
                             node->captures[i]);
    }
    for (int32_t i = 0; i < node->count_outputs; i++) {
        int32_t value = node->outputs[i];
        if (value == -1) continue;
        if (!is_value(graph, value) || graph->values[value].producer != n ||
            graph->values[value].producer_slot != i)
            return FAULT(v, "graph %d: output %d of node %d is value %d of another producer", g, i,
                         n, value);
    }
    for (int32_t i = 0; i < node->count_attrs; i++)
        if (node->attrs[i].type == SDX_ATTR_UNDEFINED)
            return FAULT(v, "graph %d: attribute %d of node %d has no type", g, i, n);
    return verify_bodies(v, g, n);
}

static enum sdx_status verify_graph(struct verify *v, int32_t g)
{
    const struct sdx_ir_graph *graph = &v->ir->graphs[g];
    for (int32_t i = 0; i < graph->count_values; i++)
        SDX_TRY(verify_value(v, g, i));
    for (int32_t i = 0; i < graph->count_inputs; i++)
        if (!is_value(graph, graph->inputs[i]) ||
            !(graph->values[graph->inputs[i]].flags & SDX_IR_INPUT))
            return FAULT(v, "graph %d: input %d is value %d without the flag", g, i,
                         graph->inputs[i]);
    for (int32_t n = 0; n < graph->count_nodes; n++)
        if (!graph->nodes[n].is_dead) SDX_TRY(verify_node(v, g, n));
    for (int32_t i = 0; i < graph->count_outputs; i++) {
        SDX_TRY(verify_use(v, g, graph->count_nodes, graph->outputs[i]));
        if (!(graph->values[graph->outputs[i]].flags & SDX_IR_OUTPUT))
            return FAULT(v, "graph %d: output %d is value %d without the flag", g, i,
                         graph->outputs[i]);
    }
    return SDX_OK;
}

enum sdx_status sdx_ir_verify(struct sdx_context *cx, const struct sdx_ir *ir)
{
    struct verify v = {.cx = cx, .ir = ir};
    v.held = sdx_mem_calloc(cx->mem, SDX_MEM_MODEL, (size_t)ir->count_graphs, 1);
    if (!v.held) return SDX_FAIL_MEMORY(cx);
    enum sdx_status status = SDX_OK;
    for (int32_t g = 0; g < ir->count_graphs && status == SDX_OK; g++)
        status = verify_graph(&v, g);
    sdx_mem_free(cx->mem, v.held);
    return status;
}
