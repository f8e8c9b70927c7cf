/* SPDX-License-Identifier: Apache-2.0
 * The copy of a model that conversion may change, and what is known of its values: types from the
 * IR, constants from initializers and Constant nodes. */
#include "convert/convert_model.h"

struct sdx_rewrite_scope *sdx_rewrite_scope_add(struct sdx_rewrite *rx,
                                                struct sdx_rewrite_scope *parent)
{
    if (rx->count_scopes == rx->capacity_scopes) {
        int32_t capacity = rx->capacity_scopes ? 2 * rx->capacity_scopes : 16;
        void *grown = sdx_mem_realloc(rx->cx->mem, SDX_MEM_MODEL, rx->scopes,
                                      (size_t)capacity * sizeof(struct sdx_rewrite_scope *));
        if (!grown) return NULL;
        rx->scopes = grown;
        rx->capacity_scopes = capacity;
    }
    struct sdx_rewrite_scope *scope = sdx_arena_alloc(rx->arena, sizeof *scope);
    if (!scope) return NULL;
    *scope = (struct sdx_rewrite_scope){.parent = parent, .version = rx->to, .ir_graph = -1};
    sdx_map_init(&scope->names, rx->cx->mem);
    rx->scopes[rx->count_scopes++] = scope;
    return scope;
}

/* The tensor that a Constant node's attribute stands for; NULL: it is none of ours to know. */
static const struct sdx_onnx_tensor *constant_of(struct sdx_rewrite *rx,
                                                 const struct sdx_onnx_attr *attr)
{
    static const struct {
        const char *name;
        int dtype;
        bool list;
    } forms[] = {{"value_int", SDX_I64, false},       {"value_ints", SDX_I64, true},
                 {"value_float", SDX_F32, false},     {"value_floats", SDX_F32, true},
                 {"value_string", SDX_STRING, false}, {"value_strings", SDX_STRING, true}};
    if (attr->ref.len) return NULL;
    if (sdx_str_is(attr->name, "value")) return attr->t;
    for (int i = 0; i < SDX_COUNT_OF(forms); i++) {
        if (!sdx_str_is(attr->name, forms[i].name)) continue;
        const bool list = forms[i].list;
        struct sdx_onnx_tensor *t = sdx_arena_alloc(rx->arena, sizeof *t);
        int64_t *dims = sdx_arena_alloc(rx->arena, sizeof *dims);
        if (!t || !dims) return NULL;
        *t = (struct sdx_onnx_tensor){
            .data_type = forms[i].dtype, .has_data_type = true, .dims = {dims, list}};
        if (forms[i].dtype == SDX_I64) {
            dims[0] = list ? attr->ints.count : 1;
            t->int64_data = list ? attr->ints.at : sdx_arena_copy(rx->arena, &attr->i, 8);
            t->count_int64 = dims[0];
        } else if (forms[i].dtype == SDX_F32) {
            dims[0] = list ? attr->count_floats : 1;
            t->float_data = list ? attr->floats : sdx_arena_copy(rx->arena, &attr->f, 4);
            t->count_float = dims[0];
        } else {
            t->strings = attr->strings;
            if (!list)
                t->strings = (struct sdx_onnx_strings){
                    sdx_arena_copy(rx->arena, &attr->s, sizeof attr->s), 1};
            dims[0] = t->strings.count;
        }
        return t;
    }
    return NULL;
}

static enum sdx_status note_names(struct sdx_rewrite *rx, struct sdx_rewrite_scope *scope)
{
    const struct sdx_onnx_graph *graph = scope->graph;
    for (int32_t i = 0; graph && i < graph->inputs.count; i++)
        if (!sdx_rewrite_value(rx, scope, graph->inputs.at[i].name)) return rx->status;
    for (int32_t i = 0; graph && i < graph->initializers.count; i++) {
        struct sdx_rewrite_value *value =
            sdx_rewrite_value(rx, scope, graph->initializers.at[i].name);
        if (!value) return rx->status;
        value->constant = &graph->initializers.at[i];
    }
    for (int32_t n = 0; n < scope->nodes->count; n++) {
        const struct sdx_onnx_node *node = &scope->nodes->at[n];
        const bool constant = sdx_str_is(node->op_type, "Constant") &&
                              sdx_ir_domain(node->domain).len == 0 && node->attrs.count == 1;
        for (int32_t k = 0; k < node->outputs.count; k++) {
            if (!node->outputs.at[k].len) continue;
            struct sdx_rewrite_value *value = sdx_rewrite_value(rx, scope, node->outputs.at[k]);
            if (!value) return rx->status;
            if (constant) value->constant = constant_of(rx, &node->attrs.at[0]);
        }
    }
    return SDX_OK;
}

static enum sdx_status note_types(struct sdx_rewrite *rx, struct sdx_rewrite_scope *scope)
{
    if (!rx->ir || scope->ir_graph < 0) return SDX_OK;
    const struct sdx_ir_graph *g = &rx->ir->graphs[scope->ir_graph];
    for (int32_t v = 0; v < g->count_values; v++) {
        int32_t at = g->values[v].name.len ? sdx_map_get(&scope->names, g->values[v].name) : -1;
        if (at < 0) continue;
        rx->values[at].type = &g->values[v].type;
        rx->values[at].ir_value = v;
    }
    return SDX_OK;
}

/* The body in the IR: of the node that makes the same output. -1: not known. */
static int32_t find_body(const struct sdx_rewrite *rx, const struct sdx_rewrite_scope *scope,
                         const struct sdx_onnx_node *node, struct sdx_str attr, int32_t index)
{
    if (!rx->ir || scope->ir_graph < 0) return -1;
    const struct sdx_ir_graph *g = &rx->ir->graphs[scope->ir_graph];
    for (int32_t k = 0; k < node->outputs.count; k++) {
        int32_t at = sdx_map_get(&scope->names, node->outputs.at[k]);
        int32_t v = at < 0 ? -1 : rx->values[at].ir_value;
        if (v < 0 || g->values[v].producer < 0) continue;
        const struct sdx_ir_node *made = &g->nodes[g->values[v].producer];
        for (int32_t a = 0; a < made->count_attrs; a++) {
            int64_t count = 0;
            const int32_t *bodies = sdx_ir_attr_graphs(&made->attrs[a], &count);
            if (sdx_str_equal(made->attrs[a].name, attr) && index < count) return bodies[index];
        }
    }
    return -1;
}

static enum sdx_status copy_graph(struct sdx_rewrite *rx, struct sdx_rewrite_scope *parent,
                                  int32_t ir_graph, struct sdx_onnx_graph **graph);

static enum sdx_status copy_nodes(struct sdx_rewrite *rx, struct sdx_rewrite_scope *scope)
{
    struct sdx_onnx_nodes *nodes = scope->nodes;
    nodes->at = sdx_arena_copy(rx->arena, nodes->at, (size_t)nodes->count * sizeof *nodes->at);
    if (!nodes->at) return SDX_FAIL_MEMORY(rx->cx);
    SDX_TRY(note_names(rx, scope));
    SDX_TRY(note_types(rx, scope));
    for (int32_t n = 0; n < nodes->count; n++) {
        struct sdx_onnx_node *node = &nodes->at[n];
        if (!node->attrs.count) continue;
        node->attrs.at = sdx_arena_copy(rx->arena, node->attrs.at,
                                        (size_t)node->attrs.count * sizeof *node->attrs.at);
        if (!node->attrs.at) return SDX_FAIL_MEMORY(rx->cx);
        for (int32_t a = 0; a < node->attrs.count; a++) {
            struct sdx_onnx_attr *attr = &node->attrs.at[a];
            if (attr->g)
                SDX_TRY(copy_graph(rx, scope, find_body(rx, scope, node, attr->name, 0), &attr->g));
            if (!attr->count_graphs) continue;
            attr->graphs = sdx_arena_copy(rx->arena, attr->graphs,
                                          (size_t)attr->count_graphs * sizeof *attr->graphs);
            if (!attr->graphs) return SDX_FAIL_MEMORY(rx->cx);
            for (int32_t g = 0; g < attr->count_graphs; g++) {
                struct sdx_onnx_graph *copy = &attr->graphs[g];
                SDX_TRY(copy_graph(rx, scope, find_body(rx, scope, node, attr->name, g), &copy));
                attr->graphs[g] = *copy;
                rx->scopes[rx->count_scopes - 1]->graph = &attr->graphs[g];
            }
        }
    }
    return rx->status;
}

static enum sdx_status copy_graph(struct sdx_rewrite *rx, struct sdx_rewrite_scope *parent,
                                  int32_t ir_graph, struct sdx_onnx_graph **graph)
{
    *graph = sdx_arena_copy(rx->arena, *graph, sizeof **graph);
    struct sdx_rewrite_scope *scope = sdx_rewrite_scope_add(rx, parent);
    if (!*graph || !scope) return SDX_FAIL_MEMORY(rx->cx);
    if (parent) scope->version = parent->version;
    scope->graph = *graph;
    scope->nodes = &(*graph)->nodes;
    scope->ir_graph = ir_graph;
    return copy_nodes(rx, scope);
}

int64_t *sdx_convert_version(const struct sdx_onnx_opsets *opsets, struct sdx_str domain)
{
    for (int32_t i = 0; i < opsets->count; i++)
        if (sdx_str_equal(sdx_ir_domain(opsets->at[i].domain), domain))
            return &opsets->at[i].version;
    return NULL;
}

/* Copies the list, so that the domain's version may be set. */
static enum sdx_status copy_opsets(struct sdx_rewrite *rx, struct sdx_onnx_opsets *opsets)
{
    opsets->at = sdx_arena_copy(rx->arena, opsets->at, (size_t)opsets->count * sizeof *opsets->at);
    return opsets->at ? SDX_OK : SDX_FAIL_MEMORY(rx->cx);
}

static enum sdx_status copy_functions(struct sdx_rewrite *rx, int64_t version)
{
    struct sdx_onnx_model *model = rx->model;
    if (!model->count_functions) return SDX_OK;
    model->functions = sdx_arena_copy(rx->arena, model->functions,
                                      (size_t)model->count_functions * sizeof *model->functions);
    if (!model->functions) return SDX_FAIL_MEMORY(rx->cx);
    for (int32_t i = 0; i < model->count_functions; i++) {
        struct sdx_onnx_function *function = &model->functions[i];
        struct sdx_rewrite_scope *scope = sdx_rewrite_scope_add(rx, NULL);
        if (!scope) return SDX_FAIL_MEMORY(rx->cx);
        SDX_TRY(copy_opsets(rx, &function->opsets));
        const int64_t *own = sdx_convert_version(&function->opsets, rx->domain);
        scope->version = own ? *own : version;
        scope->function = function;
        scope->nodes = &function->nodes;
        SDX_TRY(copy_nodes(rx, scope));
    }
    return SDX_OK;
}

enum sdx_status sdx_convert_scopes(struct sdx_rewrite *rx, const struct sdx_onnx_model *model)
{
    rx->model = sdx_arena_copy(rx->arena, model, sizeof *model);
    if (!rx->model) return SDX_FAIL_MEMORY(rx->cx);
    if (!model->graph) return SDX_FAIL(rx->cx, SDX_BAD_MODEL, "the model has no graph");
    SDX_TRY(copy_opsets(rx, &rx->model->opsets));
    const int64_t *found = sdx_convert_version(&rx->model->opsets, rx->domain);
    const bool implied = !found && rx->domain.len == 0 && model->ir_version < 3;
    if (!found && !implied)
        return SDX_FAIL(rx->cx, SDX_INVALID_ARGUMENT, "the model does not import %.*s",
                        SDX_STR_ARG(rx->domain.len ? rx->domain : SDX_STR("ai.onnx")));
    struct sdx_onnx_graph *graph = rx->model->graph;
    rx->to = found ? *found : 1;
    SDX_TRY(copy_graph(rx, NULL, rx->ir ? 0 : -1, &graph));
    rx->model->graph = graph;
    return copy_functions(rx, rx->to);
}
