/* SPDX-License-Identifier: Apache-2.0
 * From the message to the IR: names become indices. A graph is imported in four steps: everything
 * that has a name is declared, types are noted, nodes are made (which imports bodies and inlines
 * calls), and the result is sorted; so the order of nodes in the file does not matter. */
#include "ir/ir_export.h"
#include "ir/ir_import.h"

#include <inttypes.h>
#include <stdio.h>

enum { OPSETS_MAX = 256, ATTRS_MAX = 256 }; /* what is searched in a line must be short */

void sdx_import_scope_init(struct sdx_import *im, struct sdx_import_scope *scope,
                           struct sdx_import_scope *parent, const struct sdx_import_frame *frame,
                           int32_t graph)
{
    *scope = (struct sdx_import_scope){.parent = parent, .frame = frame, .graph = graph};
    scope->depth = parent ? parent->depth + 1 : 0;
    sdx_map_init(&scope->names, im->cx->mem);
}

void sdx_import_scope_deinit(struct sdx_import_scope *scope)
{
    sdx_map_deinit(&scope->names);
}

struct sdx_str sdx_import_join(struct sdx_import *im, struct sdx_str a, struct sdx_str b)
{
    char *text = sdx_arena_alloc(im->arena, a.len + b.len + 1);
    if (!text) return (struct sdx_str){NULL, 0};
    if (a.len) memcpy(text, a.ptr, a.len);
    if (b.len) memcpy(text + a.len, b.ptr, b.len);
    return (struct sdx_str){text, a.len + b.len};
}

struct sdx_str sdx_import_name(struct sdx_import *im, const struct sdx_import_scope *scope,
                               struct sdx_str name)
{
    if (!scope->frame || name.len == 0) return name;
    return sdx_import_join(im, sdx_str(scope->frame->prefix), name);
}

static struct sdx_ir_value *value_at(struct sdx_import *im, const struct sdx_import_scope *scope,
                                     int32_t value)
{
    return &im->ir->graphs[scope->graph].values[value];
}

enum sdx_status sdx_import_declare(struct sdx_import *im, struct sdx_import_scope *scope,
                                   struct sdx_str name, int32_t *value)
{
    if (sdx_map_get(&scope->names, name) >= 0)
        return SDX_FAIL(im->cx, SDX_BAD_MODEL, "value \"%.*s\" is defined twice",
                        SDX_STR_ARG(name));
    struct sdx_str kept = sdx_import_name(im, scope, name);
    *value = kept.len == 0 && name.len > 0
                 ? -1
                 : sdx_ir_value_create(im->ir, &im->ir->graphs[scope->graph], kept);
    if (*value < 0 || !sdx_map_put(&scope->names, name, *value + 1)) return SDX_FAIL_MEMORY(im->cx);
    return SDX_OK;
}

enum sdx_status sdx_import_resolve(struct sdx_import *im, struct sdx_import_scope *scope,
                                   struct sdx_str name, int32_t *value)
{
    *value = -1;
    if (name.len == 0) return SDX_OK;
    int32_t at = sdx_map_get(&scope->names, name);
    if (at >= 0) {
        *value = at - 1;
        return SDX_OK;
    }
    if (!scope->parent)
        return SDX_FAIL(im->cx, SDX_BAD_MODEL, "value \"%.*s\" is not defined", SDX_STR_ARG(name));
    int32_t outer = -1;
    SDX_TRY(sdx_import_resolve(im, scope->parent, name, &outer));
    if (outer < 0) return SDX_OK;
    SDX_TRY(sdx_import_declare(im, scope, name, value));
    struct sdx_ir_value *capture = value_at(im, scope, *value);
    capture->outer = outer;
    capture->type = value_at(im, scope->parent, outer)->type;
    return SDX_OK;
}

/* Version imported for a domain; a function's own imports go before the model's. 0: none. */
static int64_t find_opset(const struct sdx_import *im, const struct sdx_import_scope *scope,
                          struct sdx_str domain)
{
    const struct sdx_onnx_opsets *own =
        scope->frame ? &scope->frame->function->opsets : &im->model->opsets;
    const struct sdx_onnx_opsets *lists[] = {own, &im->model->opsets};
    for (int k = 0; k < SDX_COUNT_OF(lists); k++)
        for (int32_t i = 0; i < lists[k]->count; i++)
            if (sdx_str_equal(sdx_ir_domain(lists[k]->at[i].domain), domain))
                return lists[k]->at[i].version;
    /* Before IR version 3 there were no imports: version 1 of the standard is meant. */
    return domain.len == 0 && im->model->ir_version < 3 ? 1 : 0;
}

static enum sdx_status import_inputs(struct sdx_import *im, struct sdx_import_scope *scope,
                                     const struct sdx_onnx_value_infos *infos)
{
    int32_t *inputs = sdx_arena_array(im->arena, (size_t)infos->count, sizeof(*inputs));
    if (!inputs) return SDX_FAIL_MEMORY(im->cx);
    for (int32_t i = 0; i < infos->count; i++) {
        if (infos->at[i].name.len == 0)
            return SDX_FAIL(im->cx, SDX_BAD_MODEL, "input %d has no name", i);
        SDX_TRY(sdx_import_declare(im, scope, infos->at[i].name, &inputs[i]));
        struct sdx_type type;
        if (sdx_import_type(im, scope->graph, scope->frame, infos->at[i].type, &type) != SDX_OK)
            return sdx_fail_where(im->cx, "input \"%.*s\"", SDX_STR_ARG(infos->at[i].name));
        value_at(im, scope, inputs[i])->type = type;
        value_at(im, scope, inputs[i])->flags |= SDX_IR_INPUT;
    }
    im->ir->graphs[scope->graph].inputs = inputs;
    im->ir->graphs[scope->graph].count_inputs = infos->count;
    return SDX_OK;
}

/* Is the tensor of the shape that an input is declared with, as far as that is known? */
static bool shape_fits(const struct sdx_type *declared, const struct sdx_tensor *tensor)
{
    bool fits = declared->rank == tensor->rank;
    for (int d = 0; fits && d < tensor->rank; d++)
        fits = declared->dims[d] < 0 || declared->dims[d] == tensor->dims[d];
    return fits;
}

static enum sdx_status add_constant(struct sdx_import *im, struct sdx_import_scope *scope,
                                    struct sdx_str name, struct sdx_tensor *tensor)
{
    if (name.len == 0) return SDX_FAIL(im->cx, SDX_BAD_MODEL, "an initializer has no name");
    int32_t value = sdx_map_get(&scope->names, name) - 1;
    if (value < 0) SDX_TRY(sdx_import_declare(im, scope, name, &value));
    struct sdx_ir_value *at = value_at(im, scope, value);
    if (at->constant)
        return SDX_FAIL(im->cx, SDX_BAD_MODEL, "initializer \"%.*s\" is given twice",
                        SDX_STR_ARG(name));
    at->constant = tensor;
    if (at->type.kind == SDX_KIND_TENSOR && at->type.has_shape && !shape_fits(&at->type, tensor)) {
        char a[160], b[160];
        return SDX_FAIL(im->cx, SDX_BAD_MODEL, "initializer \"%.*s\" is %s, declared %s",
                        SDX_STR_ARG(name),
                        sdx_dims_describe(tensor->dims, tensor->rank, a, sizeof a),
                        sdx_dims_describe(at->type.dims, at->type.rank, b, sizeof b));
    }
    if (at->type.kind == SDX_KIND_NONE)
        at->type = (struct sdx_type){.kind = SDX_KIND_TENSOR,
                                     .dtype = tensor->dtype,
                                     .has_shape = true,
                                     .rank = tensor->rank,
                                     .dims = tensor->dims};
    return SDX_OK;
}

/* What the caller gives for an initializer of the main graph; NULL: nothing. */
static const struct sdx_tensor *given_for(const struct sdx_import *im,
                                          const struct sdx_import_scope *scope, struct sdx_str name)
{
    return scope->graph || scope->frame ? NULL : sdx_external_given(im->ex, name);
}

static enum sdx_status import_initializers(struct sdx_import *im, struct sdx_import_scope *scope,
                                           const struct sdx_onnx_graph *from)
{
    for (int32_t i = 0; i < from->initializers.count; i++) {
        const struct sdx_onnx_tensor *t = &from->initializers.at[i];
        const struct sdx_tensor *given = given_for(im, scope, t->name);
        struct sdx_tensor *tensor = NULL;
        if (given)
            SDX_TRY(sdx_import_given(im, given, t->name, t->data_type, t->dims.count, t->dims.at,
                                     &tensor));
        else
            SDX_TRY(sdx_import_tensor(im, scope->frame, t, &tensor));
        SDX_TRY(add_constant(im, scope, t->name, tensor));
    }
    for (int32_t i = 0; i < from->sparse_initializers.count; i++) {
        const struct sdx_onnx_sparse *s = &from->sparse_initializers.at[i];
        struct sdx_str name = s->values ? s->values->name : (struct sdx_str){NULL, 0};
        struct sdx_tensor *tensor = NULL;
        const struct sdx_tensor *given = given_for(im, scope, name);
        if (given)
            SDX_TRY(sdx_import_given(im, given, name, s->values->data_type, s->dims.count,
                                     s->dims.at, &tensor));
        else
            SDX_TRY(sdx_import_sparse(im, scope->frame, s, &tensor));
        SDX_TRY(add_constant(im, scope, name, tensor));
    }
    return SDX_OK;
}

/* Types that the graph declares for values of its own. */
static enum sdx_status import_types(struct sdx_import *im, struct sdx_import_scope *scope,
                                    const struct sdx_onnx_value_infos *infos)
{
    for (int32_t i = 0; i < infos->count; i++) {
        int32_t at = sdx_map_get(&scope->names, infos->at[i].name);
        if (at <= 0 || value_at(im, scope, at - 1)->type.kind != SDX_KIND_NONE) continue;
        struct sdx_type type;
        if (sdx_import_type(im, scope->graph, scope->frame, infos->at[i].type, &type) != SDX_OK)
            return sdx_fail_where(im->cx, "value \"%.*s\"", SDX_STR_ARG(infos->at[i].name));
        value_at(im, scope, at - 1)->type = type;
    }
    return SDX_OK;
}

/* A name that a function's frame has bound to an output of the call, and that nothing makes yet. */
static bool is_bound_output(struct sdx_import *im, const struct sdx_import_scope *scope,
                            struct sdx_str name)
{
    int32_t at = sdx_map_get(&scope->names, name);
    if (!scope->frame || scope->parent || at <= 0) return false;
    const struct sdx_ir_value *value = value_at(im, scope, at - 1);
    return value->producer < 0 && value->outer < 0 && !value->constant &&
           !(value->flags & SDX_IR_INPUT);
}

enum sdx_status sdx_import_declare_nodes(struct sdx_import *im, struct sdx_import_scope *scope,
                                         const struct sdx_onnx_nodes *nodes)
{
    for (int32_t n = 0; n < nodes->count; n++) {
        const struct sdx_onnx_strings *outputs = &nodes->at[n].outputs;
        for (int32_t i = 0; i < outputs->count; i++) {
            int32_t value;
            if (outputs->at[i].len && !is_bound_output(im, scope, outputs->at[i]))
                SDX_TRY(sdx_import_declare(im, scope, outputs->at[i], &value));
        }
    }
    return SDX_OK;
}

enum sdx_status sdx_import_node_create(struct sdx_import *im, const struct sdx_import_scope *scope,
                                       struct sdx_str domain, struct sdx_str op_type,
                                       int32_t count_inputs, int32_t count_outputs,
                                       int32_t count_attrs, int32_t *index)
{
    struct sdx_ir_graph *graph = &im->ir->graphs[scope->graph];
    if (graph->count_nodes >= SDX_IR_NODES_MAX)
        return SDX_FAIL(im->cx, SDX_BAD_MODEL, "graph \"%.*s\" has more than %d nodes",
                        SDX_STR_ARG(graph->name), SDX_IR_NODES_MAX);
    struct sdx_ir_node *node =
        sdx_ir_node_create(im->ir, graph, domain, op_type, count_inputs, 0, count_attrs);
    int32_t *outputs = sdx_arena_array(im->arena, (size_t)count_outputs, sizeof(*outputs));
    if (!node || !outputs) return SDX_FAIL_MEMORY(im->cx);
    for (int32_t i = 0; i < count_outputs; i++)
        outputs[i] = -1;
    node->outputs = outputs;
    node->count_outputs = count_outputs;
    node->count_attrs = 0; /* grows as they are imported */
    *index = graph->count_nodes - 1;
    return SDX_OK;
}

enum sdx_status sdx_import_set_output(struct sdx_import *im, const struct sdx_import_scope *scope,
                                      int32_t index, int32_t slot, int32_t value)
{
    struct sdx_ir_graph *graph = &im->ir->graphs[scope->graph];
    if (value >= 0 && graph->values[value].producer >= 0)
        return SDX_FAIL(im->cx, SDX_BAD_MODEL, "value \"%.*s\" is made twice",
                        SDX_STR_ARG(graph->values[value].name));
    sdx_ir_node_set_output(graph, &graph->nodes[index], index, slot, value);
    return SDX_OK;
}

/* In a plan file a node may be of another version than the one imported; 0: not so. */
static int64_t kept_version(const struct sdx_import *im, const struct sdx_onnx_node *from)
{
    int64_t version = 0;
    if (!im->ex || !im->ex->section) return 0;
    for (int32_t i = 0; i < from->metadata.count; i++)
        if (sdx_str_is(from->metadata.at[i].key, SDX_IR_VERSION_KEY) &&
            sdx_parse_i64(from->metadata.at[i].value, &version))
            return version;
    return 0;
}

static enum sdx_status import_operator(struct sdx_import *im, struct sdx_import_scope *scope,
                                       const struct sdx_onnx_node *from)
{
    if (from->attrs.count > ATTRS_MAX)
        return SDX_FAIL(im->cx, SDX_BAD_MODEL, "has %d attributes, expected at most %d",
                        from->attrs.count, ATTRS_MAX);
    int32_t index = -1, value = -1;
    struct sdx_str domain = sdx_ir_domain(from->domain);
    SDX_TRY(sdx_import_node_create(im, scope, domain, from->op_type, from->inputs.count,
                                   from->outputs.count, from->attrs.count, &index));
    struct sdx_ir_node *node = &im->ir->graphs[scope->graph].nodes[index];
    node->name = sdx_import_name(im, scope, from->name);
    node->opset = kept_version(im, from);
    if (!node->opset) node->opset = find_opset(im, scope, domain);
    for (int32_t i = 0; i < from->inputs.count; i++)
        SDX_TRY(sdx_import_resolve(im, scope, from->inputs.at[i], &node->inputs[i]));
    for (int32_t i = 0; i < from->outputs.count; i++) {
        SDX_TRY(sdx_import_resolve(im, scope, from->outputs.at[i], &value));
        SDX_TRY(sdx_import_set_output(im, scope, index, i, value));
    }
    for (int32_t i = 0; i < from->attrs.count; i++)
        SDX_TRY(sdx_import_attr(im, scope, index, &from->attrs.at[i]));
    return SDX_OK;
}

static enum sdx_status fail_at_node(struct sdx_import *im, const struct sdx_onnx_node *node)
{
    bool named = node->name.len > 0 || node->outputs.count == 0;
    return sdx_fail_where(im->cx, "node %s\"%.*s\" (%.*s)", named ? "" : "of ",
                          SDX_STR_ARG(named ? node->name : node->outputs.at[0]),
                          SDX_STR_ARG(node->op_type));
}

enum sdx_status sdx_import_nodes(struct sdx_import *im, struct sdx_import_scope *scope,
                                 const struct sdx_onnx_nodes *nodes)
{
    for (int32_t n = 0; n < nodes->count; n++) {
        const struct sdx_onnx_node *node = &nodes->at[n];
        const struct sdx_onnx_function *function;
        SDX_TRY(sdx_import_find_function(im, node, &function));
        enum sdx_status status = function ? sdx_import_call(im, scope, node, function)
                                          : import_operator(im, scope, node);
        if (status != SDX_OK) return fail_at_node(im, node);
    }
    return SDX_OK;
}

static enum sdx_status import_outputs(struct sdx_import *im, struct sdx_import_scope *scope,
                                      const struct sdx_onnx_value_infos *infos)
{
    int32_t *outputs = sdx_arena_array(im->arena, (size_t)infos->count, sizeof(*outputs));
    if (!outputs) return SDX_FAIL_MEMORY(im->cx);
    for (int32_t i = 0; i < infos->count; i++) {
        if (sdx_import_resolve(im, scope, infos->at[i].name, &outputs[i]) != SDX_OK)
            return sdx_fail_where(im->cx, "output %d of graph \"%.*s\"", i,
                                  SDX_STR_ARG(im->ir->graphs[scope->graph].name));
        if (outputs[i] < 0)
            return SDX_FAIL(im->cx, SDX_BAD_MODEL, "output %d of graph \"%.*s\" has no value", i,
                            SDX_STR_ARG(im->ir->graphs[scope->graph].name));
        value_at(im, scope, outputs[i])->flags |= SDX_IR_OUTPUT;
    }
    im->ir->graphs[scope->graph].outputs = outputs;
    im->ir->graphs[scope->graph].count_outputs = infos->count;
    return SDX_OK;
}

/* Before IR version 4 initializers stand among the inputs; the node that holds a body does not give
 * those. (Of the main graph they stay inputs until a session is made.) */
static void drop_constant_inputs(struct sdx_import *im, struct sdx_import_scope *scope)
{
    struct sdx_ir_graph *g = &im->ir->graphs[scope->graph];
    int32_t kept = 0;
    if (g->parent < 0 || im->model->ir_version >= 4) return;
    for (int32_t i = 0; i < g->count_inputs; i++) {
        struct sdx_ir_value *value = &g->values[g->inputs[i]];
        if (value->constant)
            value->flags &= ~(uint32_t)SDX_IR_INPUT;
        else
            g->inputs[kept++] = g->inputs[i];
    }
    g->count_inputs = kept;
}

/* As many as the file has, and half as many again for the passes. */
static enum sdx_status reserve(struct sdx_import *im, struct sdx_ir_graph *graph,
                               const struct sdx_onnx_graph *from)
{
    int64_t nodes = from->nodes.count,
            values = (int64_t)from->inputs.count + from->initializers.count;
    for (int32_t i = 0; i < from->nodes.count; i++)
        values += from->nodes.at[i].outputs.count;
    nodes += nodes / 2;
    values += values / 2;
    if (nodes > INT32_MAX / 2 || values > INT32_MAX / 2) return SDX_FAIL_MEMORY(im->cx);
    return sdx_ir_reserve(im->ir, graph, (int32_t)nodes, (int32_t)values);
}

static enum sdx_status import_graph(struct sdx_import *im, struct sdx_import_scope *scope,
                                    const struct sdx_onnx_graph *from)
{
    im->ir->graphs[scope->graph].name = from->name;
    SDX_TRY(reserve(im, &im->ir->graphs[scope->graph], from));
    SDX_TRY(import_inputs(im, scope, &from->inputs));
    SDX_TRY(import_initializers(im, scope, from));
    if (scope->graph == 0) SDX_TRY(sdx_import_given_inputs(im, scope));
    drop_constant_inputs(im, scope);
    SDX_TRY(sdx_import_declare_nodes(im, scope, &from->nodes));
    SDX_TRY(import_types(im, scope, &from->outputs));
    SDX_TRY(import_types(im, scope, &from->values));
    SDX_TRY(sdx_import_nodes(im, scope, &from->nodes));
    SDX_TRY(import_outputs(im, scope, &from->outputs));
    SDX_TRY(sdx_ir_update_captures(im->cx, im->ir, scope->graph));
    return sdx_ir_sort(im->cx, im->ir, &im->ir->graphs[scope->graph]);
}

enum sdx_status sdx_import_body(struct sdx_import *im, struct sdx_import_scope *around,
                                const struct sdx_onnx_graph *from, int32_t node, int32_t *graph)
{
    if (around->depth + 1 > SDX_IR_BODY_DEPTH_MAX)
        return SDX_FAIL(im->cx, SDX_BAD_MODEL, "graphs nest more than %d deep",
                        SDX_IR_BODY_DEPTH_MAX);
    *graph = sdx_ir_graph_create(im->ir, around->graph, node);
    if (*graph < 0) return SDX_FAIL_MEMORY(im->cx);
    struct sdx_import_scope scope;
    sdx_import_scope_init(im, &scope, around, around->frame, *graph);
    enum sdx_status status = import_graph(im, &scope, from);
    sdx_import_scope_deinit(&scope);
    return status;
}

static enum sdx_status check_opsets(struct sdx_import *im)
{
    int32_t most = im->model->opsets.count;
    for (int32_t i = 0; i < im->model->count_functions; i++)
        if (im->model->functions[i].opsets.count > most)
            most = im->model->functions[i].opsets.count;
    if (most > OPSETS_MAX)
        return SDX_FAIL(im->cx, SDX_BAD_MODEL, "%d operator sets are imported, expected at most %d",
                        most, OPSETS_MAX);
    return SDX_OK;
}

static enum sdx_status import_model(struct sdx_import *im)
{
    if (!im->model->graph) return SDX_FAIL(im->cx, SDX_BAD_MODEL, "the model has no graph");
    SDX_TRY(check_opsets(im));
    SDX_TRY(sdx_import_functions(im));
    int32_t graph = sdx_ir_graph_create(im->ir, -1, -1);
    if (graph < 0) return SDX_FAIL_MEMORY(im->cx);
    struct sdx_import_scope scope;
    sdx_import_scope_init(im, &scope, NULL, NULL, graph);
    enum sdx_status status = import_graph(im, &scope, im->model->graph);
    sdx_import_scope_deinit(&scope);
    return status;
}

enum sdx_status sdx_ir_import(struct sdx_context *cx, struct sdx_arena *arena,
                              struct sdx_external *ex, const struct sdx_onnx_model *model,
                              struct sdx_ir **out)
{
    *out = NULL;
    struct sdx_ir *ir = sdx_arena_alloc(arena, sizeof(*ir));
    if (!ir) return SDX_FAIL_MEMORY(cx);
    *ir = (struct sdx_ir){.cx = cx,
                          .arena = arena,
                          .opsets = model->opsets.at,
                          .count_opsets = model->opsets.count,
                          .ir_version = model->ir_version};
    sdx_map_init(&ir->symbol_map, cx->mem);
    sdx_map_init(&ir->length_map, cx->mem);
    struct sdx_import im = {.cx = cx, .arena = arena, .ex = ex, .model = model, .ir = ir};
    sdx_map_init(&im.functions, cx->mem);
    sdx_map_init(&im.tensor_map, cx->mem);
    sdx_text_init(&im.key, cx->mem);
    enum sdx_status status = import_model(&im);
    sdx_text_deinit(&im.key);
    sdx_map_deinit(&im.tensor_map);
    sdx_map_deinit(&im.functions);
    sdx_mem_free(cx->mem, im.tensors);
    if (status == SDX_OK)
        *out = ir;
    else
        sdx_ir_deinit(ir);
    return status;
}
