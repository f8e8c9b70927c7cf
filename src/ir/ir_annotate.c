/* SPDX-License-Identifier: Apache-2.0
 * A model's messages with the types that inference found: value_info of what nodes make, and the
 * types of outputs. Everything else stays as it was read. Nodes inside model-local functions are
 * left alone: their types are those of a call. */
#include "ir/ir_export.h"

struct annotator {
    struct sdx_context *cx;
    struct sdx_arena *arena;
    const struct sdx_ir *ir;
};

static enum sdx_status annotate_graph(struct annotator *a, int32_t graph,
                                      const struct sdx_onnx_graph *from, struct sdx_onnx_graph *to);

/* What the file says of a type beyond what the IR holds stays: denotations, fields we do not know.
 */
static void keep_notes(const struct sdx_onnx_type *from, struct sdx_onnx_type *to)
{
    for (; from && to && from->which == to->which; from = from->elem, to = to->elem) {
        to->denotation = from->denotation;
        to->unknown = from->unknown;
        to->unknown_inner = from->unknown_inner;
        to->unknown_shape = from->unknown_shape;
        for (int32_t d = 0; from->rank == to->rank && d < to->rank; d++) {
            to->dims[d].denotation = from->dims[d].denotation;
            to->dims[d].unknown = from->dims[d].unknown;
        }
    }
}

static enum sdx_status annotate_info(struct annotator *a, int32_t graph, int32_t value,
                                     struct sdx_onnx_value_info *info)
{
    const struct sdx_onnx_type *declared = info->type;
    struct sdx_onnx_type *type = NULL;
    SDX_TRY(sdx_ir_export_type(a->cx, a->arena, a->ir, graph != 0,
                               &a->ir->graphs[graph].values[value].type, &type));
    if (!type) return SDX_OK;
    keep_notes(declared, type);
    info->type = type;
    return SDX_OK;
}

/* The names of the graph's own values. */
static enum sdx_status map_values(struct annotator *a, int32_t graph, struct sdx_map *names)
{
    const struct sdx_ir_graph *g = &a->ir->graphs[graph];
    for (int32_t v = 0; v < g->count_values; v++)
        if (g->values[v].outer < 0 && g->values[v].name.len &&
            !sdx_map_put(names, g->values[v].name, v))
            return SDX_FAIL_MEMORY(a->cx);
    return SDX_OK;
}

/* The node of the IR that was made from the message: by what it makes. NULL: none. */
static const struct sdx_ir_node *find_node(const struct annotator *a, int32_t graph,
                                           const struct sdx_map *names,
                                           const struct sdx_onnx_node *node)
{
    const struct sdx_ir_graph *g = &a->ir->graphs[graph];
    for (int32_t i = 0; i < node->outputs.count; i++) {
        const int32_t value = sdx_map_get(names, node->outputs.at[i]);
        const int32_t made_by = value < 0 ? -1 : g->values[value].producer;
        if (made_by >= 0 && sdx_str_equal(g->nodes[made_by].op_type, node->op_type))
            return &g->nodes[made_by];
    }
    return NULL;
}

static enum sdx_status annotate_bodies(struct annotator *a, const struct sdx_ir_node *made,
                                       struct sdx_onnx_attr *attr)
{
    for (int32_t i = 0; i < made->count_attrs; i++) {
        if (!sdx_str_equal(made->attrs[i].name, attr->name)) continue;
        int64_t count = 0;
        const int32_t *graphs = sdx_ir_attr_graphs(&made->attrs[i], &count);
        const int64_t expected = attr->g ? 1 : attr->count_graphs;
        const struct sdx_onnx_graph *from = attr->g ? attr->g : attr->graphs;
        if (count != expected) return SDX_OK;
        struct sdx_onnx_graph *to = sdx_arena_array(a->arena, (size_t)count + 1, sizeof *to);
        if (!to) return SDX_FAIL_MEMORY(a->cx);
        for (int64_t k = 0; k < count; k++)
            SDX_TRY(annotate_graph(a, graphs[k], &from[k], &to[k]));
        if (attr->g)
            attr->g = to;
        else
            attr->graphs = to;
    }
    return SDX_OK;
}

static enum sdx_status annotate_nodes(struct annotator *a, int32_t graph,
                                      const struct sdx_map *names, struct sdx_onnx_nodes *nodes)
{
    if (!nodes->count) return SDX_OK;
    nodes->at = sdx_arena_copy(a->arena, nodes->at, (size_t)nodes->count * sizeof *nodes->at);
    if (!nodes->at) return SDX_FAIL_MEMORY(a->cx);
    for (int32_t n = 0; n < nodes->count; n++) {
        struct sdx_onnx_node *node = &nodes->at[n];
        bool has_body = false;
        for (int32_t i = 0; i < node->attrs.count; i++)
            has_body = has_body || node->attrs.at[i].g || node->attrs.at[i].count_graphs;
        const struct sdx_ir_node *made = has_body ? find_node(a, graph, names, node) : NULL;
        if (!made) continue;
        struct sdx_onnx_attr *attrs =
            sdx_arena_copy(a->arena, node->attrs.at, (size_t)node->attrs.count * sizeof *attrs);
        if (!attrs) return SDX_FAIL_MEMORY(a->cx);
        node->attrs.at = attrs;
        for (int32_t i = 0; i < node->attrs.count; i++)
            if (attrs[i].g || attrs[i].count_graphs) SDX_TRY(annotate_bodies(a, made, &attrs[i]));
    }
    return SDX_OK;
}

/* The list of types: those that were there, completed, then those of other values that nodes make.
 */
static enum sdx_status annotate_values(struct annotator *a, int32_t graph,
                                       const struct sdx_map *names, struct sdx_map *listed,
                                       const struct sdx_onnx_graph *from, struct sdx_onnx_graph *to)
{
    size_t most = (size_t)from->values.count + 1;
    for (int32_t n = 0; n < from->nodes.count; n++)
        most += (size_t)from->nodes.at[n].outputs.count;
    struct sdx_onnx_value_info *at = sdx_arena_array(a->arena, most, sizeof *at);
    if (!at) return SDX_FAIL_MEMORY(a->cx);
    to->values = (struct sdx_onnx_value_infos){at, 0};
    for (int32_t i = 0; i < from->values.count; i++) {
        struct sdx_onnx_value_info *info = &at[to->values.count++];
        *info = from->values.at[i];
        const int32_t value = sdx_map_get(names, info->name);
        if (value >= 0) SDX_TRY(annotate_info(a, graph, value, info));
        if (!sdx_map_put(listed, info->name, 0)) return SDX_FAIL_MEMORY(a->cx);
    }
    for (int32_t n = 0; n < from->nodes.count; n++)
        for (int32_t i = 0; i < from->nodes.at[n].outputs.count; i++) {
            struct sdx_onnx_value_info info = {.name = from->nodes.at[n].outputs.at[i]};
            const int32_t value = sdx_map_get(names, info.name);
            if (value < 0 || sdx_map_get(listed, info.name) >= 0) continue;
            SDX_TRY(annotate_info(a, graph, value, &info));
            if (info.type) at[to->values.count++] = info;
        }
    return SDX_OK;
}

static enum sdx_status annotate_named(struct annotator *a, int32_t graph,
                                      const struct sdx_map *names, struct sdx_map *listed,
                                      const struct sdx_onnx_graph *from, struct sdx_onnx_graph *to)
{
    const size_t count = (size_t)from->outputs.count;
    struct sdx_onnx_value_info *at = sdx_arena_array(a->arena, count + 1, sizeof *at);
    if (!at) return SDX_FAIL_MEMORY(a->cx);
    to->outputs.at = at;
    for (size_t i = 0; i < count; i++) {
        at[i] = from->outputs.at[i];
        const int32_t value = sdx_map_get(names, at[i].name);
        if (value >= 0) SDX_TRY(annotate_info(a, graph, value, &at[i]));
        if (!sdx_map_put(listed, at[i].name, 0)) return SDX_FAIL_MEMORY(a->cx);
    }
    SDX_TRY(annotate_values(a, graph, names, listed, from, to));
    return annotate_nodes(a, graph, names, &to->nodes);
}

static enum sdx_status annotate_graph(struct annotator *a, int32_t graph,
                                      const struct sdx_onnx_graph *from, struct sdx_onnx_graph *to)
{
    struct sdx_map names, listed;
    sdx_map_init(&names, a->cx->mem);
    sdx_map_init(&listed, a->cx->mem);
    *to = *from;
    enum sdx_status status = map_values(a, graph, &names);
    if (status == SDX_OK) status = annotate_named(a, graph, &names, &listed, from, to);
    sdx_map_deinit(&listed);
    sdx_map_deinit(&names);
    return status;
}

enum sdx_status sdx_ir_annotate(struct sdx_context *cx, struct sdx_arena *arena,
                                const struct sdx_ir *ir, const struct sdx_onnx_model *model,
                                struct sdx_onnx_model **out)
{
    struct annotator a = {cx, arena, ir};
    struct sdx_onnx_model *to = sdx_arena_alloc(arena, sizeof *to);
    struct sdx_onnx_graph *graph = sdx_arena_alloc(arena, sizeof *graph);
    *out = NULL;
    if (!to || !graph) return SDX_FAIL_MEMORY(cx);
    SDX_TRY(annotate_graph(&a, 0, model->graph, graph));
    *to = *model;
    to->graph = graph;
    *out = to;
    return SDX_OK;
}
