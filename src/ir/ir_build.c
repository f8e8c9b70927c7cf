/* SPDX-License-Identifier: Apache-2.0
 * Building blocks of the IR: values, nodes, attributes, uses. Arrays live in the model's
 * arena and grow by doubling, so a pointer to a graph or a node is good until the next one is
 * created. */
#include "ir/ir.h"

#include <limits.h>
#include <stdio.h>

void *sdx_ir_array_grow(struct sdx_ir *ir, void *array, int32_t count, int32_t *capacity,
                        size_t size)
{
    if (count < *capacity) return array;
    if (*capacity > INT32_MAX / 2) return NULL;
    int32_t grown = *capacity < 8 ? 8 : *capacity * 2;
    void *to = sdx_arena_array(ir->arena, (size_t)grown, size);
    if (!to) return NULL;
    if (count > 0) memcpy(to, array, (size_t)count * size);
    *capacity = grown;
    return to;
}

struct sdx_str sdx_ir_domain(struct sdx_str domain)
{
    return sdx_str_is(domain, "ai.onnx") ? SDX_STR("") : domain;
}

int32_t sdx_ir_graph_create(struct sdx_ir *ir, int32_t parent, int32_t parent_node)
{
    struct sdx_ir_graph *graphs =
        sdx_ir_array_grow(ir, ir->graphs, ir->count_graphs, &ir->capacity_graphs, sizeof(*graphs));
    if (!graphs) return -1;
    ir->graphs = graphs;
    graphs[ir->count_graphs] = (struct sdx_ir_graph){.parent = parent, .parent_node = parent_node};
    return ir->count_graphs++;
}

enum sdx_status sdx_ir_reserve(struct sdx_ir *ir, struct sdx_ir_graph *graph, int32_t nodes,
                               int32_t values)
{
    graph->nodes = sdx_arena_array(ir->arena, (size_t)nodes + 1, sizeof *graph->nodes);
    graph->values = sdx_arena_array(ir->arena, (size_t)values + 1, sizeof *graph->values);
    if (!graph->nodes || !graph->values) return SDX_FAIL_MEMORY(ir->cx);
    graph->capacity_nodes = nodes;
    graph->capacity_values = values;
    return SDX_OK;
}

int32_t sdx_ir_value_create(struct sdx_ir *ir, struct sdx_ir_graph *graph, struct sdx_str name)
{
    struct sdx_ir_value *values = sdx_ir_array_grow(ir, graph->values, graph->count_values,
                                                    &graph->capacity_values, sizeof(*values));
    if (!values) return -1;
    graph->values = values;
    values[graph->count_values] = (struct sdx_ir_value){.name = name, .producer = -1, .outer = -1};
    return graph->count_values++;
}

struct sdx_ir_node *sdx_ir_node_create(struct sdx_ir *ir, struct sdx_ir_graph *graph,
                                       struct sdx_str domain, struct sdx_str op_type,
                                       int32_t count_inputs, int32_t count_outputs,
                                       int32_t count_attrs)
{
    struct sdx_ir_node *nodes = sdx_ir_array_grow(ir, graph->nodes, graph->count_nodes,
                                                  &graph->capacity_nodes, sizeof(*nodes));
    if (!nodes) return NULL;
    graph->nodes = nodes;
    struct sdx_ir_node node = {.op_type = op_type,
                               .domain = domain,
                               .count_inputs = count_inputs,
                               .count_outputs = count_outputs,
                               .count_attrs = count_attrs};
    node.inputs = sdx_arena_array(ir->arena, (size_t)count_inputs, sizeof(int32_t));
    node.outputs = sdx_arena_array(ir->arena, (size_t)count_outputs, sizeof(int32_t));
    node.attrs = sdx_arena_array(ir->arena, (size_t)count_attrs, sizeof(*node.attrs));
    if (!node.inputs || !node.outputs || !node.attrs) return NULL;
    for (int32_t i = 0; i < count_inputs; i++)
        node.inputs[i] = -1;
    for (int32_t i = 0; i < count_attrs; i++)
        node.attrs[i].graph = -1;
    int32_t index = graph->count_nodes;
    for (int32_t i = 0; i < count_outputs; i++) {
        int32_t value = sdx_ir_value_create(ir, graph, (struct sdx_str){NULL, 0});
        if (value < 0) return NULL;
        sdx_ir_node_set_output(graph, &node, index, i, value);
    }
    nodes[index] = node;
    graph->count_nodes++;
    return &nodes[index];
}

void sdx_ir_node_set_output(struct sdx_ir_graph *graph, struct sdx_ir_node *node, int32_t index,
                            int32_t slot, int32_t value)
{
    node->outputs[slot] = value;
    if (value < 0) return;
    graph->values[value].producer = index;
    graph->values[value].producer_slot = slot;
}

const int32_t *sdx_ir_attr_graphs(const struct sdx_ir_attr *attr, int64_t *count)
{
    *count = attr->type == SDX_ATTR_GRAPH ? 1 : attr->type == SDX_ATTR_GRAPHS ? attr->count : 0;
    return attr->type == SDX_ATTR_GRAPH ? &attr->graph : attr->graphs;
}

void sdx_ir_replace_uses(struct sdx_ir *ir, int32_t graph, int32_t from, int32_t to)
{
    struct sdx_ir_graph *g = &ir->graphs[graph];
    for (int32_t n = 0; n < g->count_nodes; n++) {
        struct sdx_ir_node *node = &g->nodes[n];
        for (int32_t i = 0; i < node->count_inputs; i++)
            if (node->inputs[i] == from) node->inputs[i] = to;
        bool captured = false;
        for (int32_t i = 0; i < node->count_captures; i++) {
            if (node->captures[i] != from) continue;
            node->captures[i] = to;
            captured = true;
        }
        for (int32_t a = 0; captured && a < node->count_attrs; a++) {
            int64_t count = 0;
            const int32_t *bodies = sdx_ir_attr_graphs(&node->attrs[a], &count);
            for (int64_t b = 0; b < count; b++) {
                struct sdx_ir_graph *body = &ir->graphs[bodies[b]];
                for (int32_t v = 0; v < body->count_values; v++)
                    if (body->values[v].outer == from) body->values[v].outer = to;
            }
        }
    }
    for (int32_t i = 0; i < g->count_outputs; i++) {
        if (g->outputs[i] != from) continue;
        g->outputs[i] = to;
        g->values[to].flags |= SDX_IR_OUTPUT;
    }
    g->values[from].flags &= ~(uint32_t)SDX_IR_OUTPUT;
}

void sdx_ir_count_uses(const struct sdx_ir_graph *graph, int32_t *uses)
{
    memset(uses, 0, (size_t)graph->count_values * sizeof(*uses));
    for (int32_t n = 0; n < graph->count_nodes; n++) {
        const struct sdx_ir_node *node = &graph->nodes[n];
        if (node->is_dead) continue;
        for (int32_t i = 0; i < node->count_inputs; i++)
            if (node->inputs[i] >= 0) uses[node->inputs[i]]++;
        for (int32_t i = 0; i < node->count_captures; i++)
            uses[node->captures[i]]++;
    }
    for (int32_t i = 0; i < graph->count_outputs; i++)
        uses[graph->outputs[i]]++;
}

int32_t *sdx_ir_uses(const struct sdx_ir_graph *graph, struct sdx_arena *arena)
{
    int32_t *uses = sdx_arena_array(arena, (size_t)graph->count_values + 1, sizeof *uses);
    if (uses) sdx_ir_count_uses(graph, uses);
    return uses;
}

int32_t *sdx_ir_last_readers(const struct sdx_ir_graph *graph, struct sdx_arena *arena)
{
    int32_t *reader = sdx_arena_array(arena, (size_t)graph->count_values + 1, sizeof *reader);
    if (!reader) return NULL;
    for (int32_t v = 0; v < graph->count_values; v++)
        reader[v] = -1;
    for (int32_t n = 0; n < graph->count_nodes; n++) {
        const struct sdx_ir_node *node = &graph->nodes[n];
        for (int i = 0; i < node->count_inputs && !node->is_dead; i++)
            if (node->inputs[i] >= 0) reader[node->inputs[i]] = n;
    }
    return reader;
}

const struct sdx_ir_attr *sdx_ir_attr(const struct sdx_ir_node *node, const char *name)
{
    struct sdx_str key = sdx_str(name);
    for (int32_t i = 0; i < node->count_attrs; i++)
        if (sdx_str_equal(node->attrs[i].name, key)) return &node->attrs[i];
    return NULL;
}

int64_t sdx_ir_attr_int(const struct sdx_ir_node *node, const char *name, int64_t fallback)
{
    const struct sdx_ir_attr *attr = sdx_ir_attr(node, name);
    return attr ? attr->i : fallback;
}

float sdx_ir_attr_float(const struct sdx_ir_node *node, const char *name, float fallback)
{
    const struct sdx_ir_attr *attr = sdx_ir_attr(node, name);
    return attr ? attr->f : fallback;
}

struct sdx_str sdx_ir_attr_str(const struct sdx_ir_node *node, const char *name,
                               const char *fallback)
{
    const struct sdx_ir_attr *attr = sdx_ir_attr(node, name);
    return attr ? attr->s : sdx_str(fallback);
}

const int64_t *sdx_ir_attr_ints(const struct sdx_ir_node *node, const char *name, int64_t *count)
{
    static const int64_t none[1] = {0};
    const struct sdx_ir_attr *attr = sdx_ir_attr(node, name);
    *count = attr ? attr->count : 0;
    return !attr ? NULL : attr->ints ? attr->ints : none;
}

const float *sdx_ir_attr_floats(const struct sdx_ir_node *node, const char *name, int64_t *count)
{
    static const float none[1] = {0.0f};
    const struct sdx_ir_attr *attr = sdx_ir_attr(node, name);
    *count = attr ? attr->count : 0;
    return !attr ? NULL : attr->floats ? attr->floats : none;
}

const struct sdx_str *sdx_ir_attr_strings(const struct sdx_ir_node *node, const char *name,
                                          int64_t *count)
{
    static const struct sdx_str none[1] = {{NULL, 0}};
    const struct sdx_ir_attr *attr = sdx_ir_attr(node, name);
    *count = attr ? attr->count : 0;
    return !attr ? NULL : attr->strings ? attr->strings : none;
}

const char *sdx_ir_node_describe(const struct sdx_ir_graph *graph, const struct sdx_ir_node *node,
                                 char *buf, size_t size)
{
    struct sdx_str output = {NULL, 0};
    for (int32_t i = 0; i < node->count_outputs && !output.len; i++)
        if (node->outputs[i] >= 0) output = graph->values[node->outputs[i]].name;
    if (node->name.len || !output.len)
        snprintf(buf, size, "node \"%.*s\" (%.*s)", SDX_STR_ARG(node->name),
                 SDX_STR_ARG(node->op_type));
    else
        snprintf(buf, size, "node of \"%.*s\" (%.*s)", SDX_STR_ARG(output),
                 SDX_STR_ARG(node->op_type));
    return buf;
}

void sdx_ir_deinit(struct sdx_ir *ir)
{
    if (!ir) return;
    sdx_map_deinit(&ir->symbol_map);
    sdx_map_deinit(&ir->length_map);
}

const struct sdx_tensor *sdx_ir_constant(const struct sdx_ir *ir, int32_t graph, int32_t value)
{
    while (value >= 0 && graph >= 0) {
        const struct sdx_ir_value *v = &ir->graphs[graph].values[value];
        if (v->constant) return v->flags & SDX_IR_INPUT ? NULL : v->constant;
        value = v->outer;
        graph = ir->graphs[graph].parent;
    }
    return NULL;
}
