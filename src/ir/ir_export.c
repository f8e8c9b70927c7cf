/* SPDX-License-Identifier: Apache-2.0
 * The IR as messages. Names come first: those of the model's inputs and outputs are kept, any other
 * value keeps its own while that is free in the whole model (ONNX knows no shadowing) and gets a
 * number behind it where it is not. A value that is given out twice, or under a name that is not
 * its own, goes through an Identity. */
#include "ir/ir_export.h"

#include <inttypes.h>
#include <stdio.h>

enum { IDENTITY_TENSORS = 13, IDENTITY_ANYTHING = 16 }; /* versions of Identity */

struct exporter {
    struct sdx_context *cx;
    struct sdx_arena *arena;
    const struct sdx_ir *ir;
    const struct sdx_ir_export *options;
    struct sdx_map taken;   /* names in use */
    struct sdx_str **names; /* [graph][value] */
    struct sdx_onnx_opsets opsets;
    int32_t capacity_opsets;
    int count_made; /* names */
    bool in_body;
};

static enum sdx_status export_graph(struct exporter *x, int32_t graph, struct sdx_onnx_graph *to);

/* ---- names ---- */

static bool is_taken(const struct exporter *x, struct sdx_str name)
{
    return sdx_map_get(&x->taken, name) >= 0;
}

static enum sdx_status take(struct exporter *x, struct sdx_str name)
{
    return sdx_map_put(&x->taken, name, 1) ? SDX_OK : SDX_FAIL_MEMORY(x->cx);
}

/* `wanted`, or the like of it that is free. */
static enum sdx_status free_name(struct exporter *x, struct sdx_str wanted, struct sdx_str *out)
{
    *out = wanted;
    while (out->len == 0 || is_taken(x, *out)) {
        const int len = wanted.len > 4096 ? 4096 : (int)wanted.len;
        char *text =
            sdx_arena_printf(x->arena, "%.*s_%d", len, wanted.ptr ? wanted.ptr : "", x->count_made);
        if (!text) return SDX_FAIL_MEMORY(x->cx);
        x->count_made++;
        *out = sdx_str(text);
    }
    return take(x, *out);
}

static const struct sdx_onnx_value_infos *declared_outputs(const struct exporter *x)
{
    return &x->options->from->graph->outputs;
}

static enum sdx_status name_outputs(struct exporter *x, const struct sdx_ir_graph *g,
                                    struct sdx_str *names)
{
    const struct sdx_onnx_value_infos *outputs = declared_outputs(x);
    if (outputs->count != g->count_outputs)
        return SDX_FAIL(x->cx, SDX_INTERNAL, "%d outputs are declared, the graph has %d",
                        outputs->count, g->count_outputs);
    for (int32_t o = 0; o < g->count_outputs; o++) {
        struct sdx_str name = outputs->at[o].name;
        struct sdx_str *own = &names[g->outputs[o]];
        const bool is_own_input = own->len && sdx_str_equal(*own, name);
        if (is_own_input) continue;
        if (is_taken(x, name))
            return SDX_FAIL(x->cx, SDX_NOT_SUPPORTED, "two values are named \"%.*s\"",
                            SDX_STR_ARG(name));
        SDX_TRY(take(x, name));
        if (!own->len) *own = name;
    }
    return SDX_OK;
}

static enum sdx_status name_values(struct exporter *x, int32_t graph)
{
    const struct sdx_ir_graph *g = &x->ir->graphs[graph];
    struct sdx_str *names = sdx_arena_array(x->arena, (size_t)g->count_values + 1, sizeof *names);
    if (!names) return SDX_FAIL_MEMORY(x->cx);
    x->names[graph] = names;
    for (int32_t i = 0; i < g->count_inputs && graph == 0; i++) {
        names[g->inputs[i]] = g->values[g->inputs[i]].name;
        SDX_TRY(take(x, names[g->inputs[i]]));
    }
    if (graph == 0) SDX_TRY(name_outputs(x, g, names));
    for (int32_t v = 0; v < g->count_values; v++) {
        if (g->values[v].outer >= 0)
            names[v] = x->names[g->parent][g->values[v].outer];
        else if (!names[v].len)
            SDX_TRY(free_name(x, g->values[v].name, &names[v]));
    }
    return SDX_OK;
}

/* ---- operator sets ---- */

static struct sdx_onnx_opset *find_opset(struct exporter *x, struct sdx_str domain)
{
    for (int32_t i = 0; i < x->opsets.count; i++)
        if (sdx_str_equal(sdx_ir_domain(x->opsets.at[i].domain), domain)) return &x->opsets.at[i];
    return NULL;
}

/* The version that the model imports of the domain; `version` when it did not do so yet. */
static enum sdx_status import_opset(struct exporter *x, struct sdx_str domain, int64_t version,
                                    int64_t *imported)
{
    const struct sdx_onnx_opset *found = find_opset(x, domain);
    *imported = found ? found->version : version;
    if (found) return SDX_OK;
    if (x->opsets.count == x->capacity_opsets) {
        const int32_t grown = 2 * x->capacity_opsets + 8;
        struct sdx_onnx_opset *at = sdx_arena_array(x->arena, (size_t)grown, sizeof *at);
        if (!at) return SDX_FAIL_MEMORY(x->cx);
        if (x->opsets.count) memcpy(at, x->opsets.at, (size_t)x->opsets.count * sizeof *at);
        x->opsets.at = at;
        x->capacity_opsets = grown;
    }
    x->opsets.at[x->opsets.count++] =
        (struct sdx_onnx_opset){.domain = domain, .version = version, .has_version = true};
    return SDX_OK;
}

static enum sdx_status set_version(struct exporter *x, struct sdx_str domain, int64_t version,
                                   struct sdx_onnx_node *to)
{
    int64_t imported = 0;
    SDX_TRY(import_opset(x, domain, version, &imported));
    if (imported == version) return SDX_OK;
    if (!x->options->keeps_versions)
        return SDX_FAIL(x->cx, SDX_NOT_SUPPORTED,
                        "node \"%.*s\" (%.*s) is of version %" PRId64
                        ", but the model imports version %" PRId64,
                        SDX_STR_ARG(to->name), SDX_STR_ARG(to->op_type), version, imported);
    struct sdx_onnx_pair *pair = sdx_arena_alloc(x->arena, sizeof *pair);
    char *text = sdx_arena_printf(x->arena, "%" PRId64, version);
    if (!pair || !text) return SDX_FAIL_MEMORY(x->cx);
    *pair = (struct sdx_onnx_pair){.key = SDX_STR(SDX_IR_VERSION_KEY), .value = sdx_str(text)};
    to->metadata = (struct sdx_onnx_pairs){pair, 1};
    return SDX_OK;
}

/* ---- types ---- */

/* The import puts the place behind the symbols of bodies: it comes off again. */
static struct sdx_str symbol_name(const struct sdx_ir *ir, int64_t dim, bool in_body)
{
    struct sdx_str name = ir->symbols[-(dim + 2)].name;
    for (size_t i = name.len; in_body && i > 0; i--)
        if (name.ptr[i - 1] == '@') return (struct sdx_str){name.ptr, i - 1};
    return name;
}

enum sdx_status sdx_ir_export_type(struct sdx_context *cx, struct sdx_arena *arena,
                                   const struct sdx_ir *ir, bool in_body,
                                   const struct sdx_type *from, struct sdx_onnx_type **out)
{
    static const uint8_t which[] = {
        [SDX_KIND_NONE] = SDX_TYPE_NONE,         [SDX_KIND_TENSOR] = SDX_TYPE_TENSOR,
        [SDX_KIND_SEQUENCE] = SDX_TYPE_SEQUENCE, [SDX_KIND_OPTIONAL] = SDX_TYPE_OPTIONAL,
        [SDX_KIND_MAP] = SDX_TYPE_MAP,           [SDX_KIND_SPARSE] = SDX_TYPE_SPARSE};
    *out = NULL;
    if (from->kind == SDX_KIND_NONE) return SDX_OK;
    struct sdx_onnx_type *to = sdx_arena_alloc(arena, sizeof *to);
    if (!to) return SDX_FAIL_MEMORY(cx);
    *out = to;
    to->which = which[from->kind];
    if (from->kind == SDX_KIND_MAP) {
        to->elem_type = from->key_dtype;
        to->has_elem_type = from->key_dtype != 0;
    }
    if (from->elem) return sdx_ir_export_type(cx, arena, ir, in_body, from->elem, &to->elem);
    if (from->kind != SDX_KIND_TENSOR && from->kind != SDX_KIND_SPARSE) return SDX_OK;
    to->elem_type = from->dtype;
    to->has_elem_type = from->dtype != 0;
    to->has_shape = from->has_shape;
    if (!from->has_shape) return SDX_OK;
    to->rank = from->rank;
    to->dims = sdx_arena_array(arena, (size_t)from->rank + 1, sizeof *to->dims);
    if (!to->dims) return SDX_FAIL_MEMORY(cx);
    for (int32_t d = 0; d < from->rank; d++) {
        if (from->dims[d] >= 0) {
            to->dims[d].which = SDX_DIM_VALUE;
            to->dims[d].value = from->dims[d];
        } else if (sdx_ir_symbol_has_name(ir, from->dims[d])) {
            to->dims[d].which = SDX_DIM_PARAM;
            to->dims[d].param = symbol_name(ir, from->dims[d], in_body);
        }
    }
    return SDX_OK;
}

static enum sdx_status export_type(struct exporter *x, const struct sdx_type *from,
                                   struct sdx_onnx_type **out)
{
    return sdx_ir_export_type(x->cx, x->arena, x->ir, x->in_body, from, out);
}

static enum sdx_status export_info(struct exporter *x, struct sdx_str name,
                                   const struct sdx_type *type, struct sdx_onnx_value_info *to)
{
    to->name = name;
    return to->type ? SDX_OK : export_type(x, type, &to->type);
}

/* ---- tensors and attributes ---- */

static enum sdx_status export_tensor(struct exporter *x, const struct sdx_tensor *t,
                                     struct sdx_str name, struct sdx_onnx_tensor *to)
{
    if (t->kind != SDX_KIND_TENSOR || t->layout != SDX_LAYOUT_PLAIN)
        return SDX_FAIL(x->cx, SDX_NOT_SUPPORTED, "constant \"%.*s\" is not a plain tensor",
                        SDX_STR_ARG(name));
    *to = (struct sdx_onnx_tensor){.name = name, .data_type = t->dtype, .has_data_type = true};
    to->dims = (struct sdx_onnx_ints){(int64_t *)(uintptr_t)t->dims, t->rank};
    if (t->dtype == SDX_STRING) {
        to->strings = (struct sdx_onnx_strings){t->data, (int32_t)t->count};
        return SDX_OK;
    }
    if (x->options->place) SDX_TRY(x->options->place(x->options->user, t, to));
    if (to->data_location) return SDX_OK;
    void *elements = t->data;
    if (t->recipe) {
        elements = sdx_arena_alloc(x->arena, t->bytes);
        if (!elements) return SDX_FAIL_MEMORY(x->cx);
        sdx_tensor_copy_elements(t, elements);
    }
    to->raw = (struct sdx_str){elements ? elements : "", t->bytes};
    to->has_raw = true;
    return SDX_OK;
}

static enum sdx_status export_tensors(struct exporter *x, const struct sdx_ir_attr *from,
                                      struct sdx_onnx_attr *to)
{
    to->type = SDX_ATTR_TENSORS;
    to->tensors.count = (int32_t)from->count;
    to->tensors.at = sdx_arena_array(x->arena, (size_t)from->count + 1, sizeof *to->tensors.at);
    if (!to->tensors.at) return SDX_FAIL_MEMORY(x->cx);
    for (int64_t i = 0; i < from->count; i++)
        SDX_TRY(export_tensor(x, from->tensors[i], SDX_STR(""), &to->tensors.at[i]));
    return SDX_OK;
}

static enum sdx_status export_bodies(struct exporter *x, const struct sdx_ir_attr *from,
                                     struct sdx_onnx_attr *to)
{
    int64_t count = 0;
    const int32_t *graphs = sdx_ir_attr_graphs(from, &count);
    struct sdx_onnx_graph *bodies = sdx_arena_array(x->arena, (size_t)count + 1, sizeof *bodies);
    if (!bodies) return SDX_FAIL_MEMORY(x->cx);
    const bool in_body = x->in_body;
    x->in_body = true;
    for (int64_t i = 0; i < count; i++)
        SDX_TRY(export_graph(x, graphs[i], &bodies[i]));
    x->in_body = in_body;
    if (from->type == SDX_ATTR_GRAPH) {
        to->g = bodies;
    } else {
        to->graphs = bodies;
        to->count_graphs = (int32_t)count;
    }
    return SDX_OK;
}

static enum sdx_status export_attr(struct exporter *x, const struct sdx_ir_attr *from,
                                   struct sdx_onnx_attr *to)
{
    *to = (struct sdx_onnx_attr){.name = from->name, .type = from->type, .has_type = true};
    switch ((enum sdx_attr_type)from->type) {
    case SDX_ATTR_FLOAT:
        to->f = from->f;
        to->has_f = true;
        return SDX_OK;
    case SDX_ATTR_INT:
        to->i = from->i;
        to->has_i = true;
        return SDX_OK;
    case SDX_ATTR_STRING:
        to->s = from->s;
        to->has_s = true;
        return SDX_OK;
    case SDX_ATTR_SPARSE: /* the import made it dense */
        if (sdx_str_is(from->name, "sparse_value")) to->name = SDX_STR("value");
        to->type = SDX_ATTR_TENSOR;
        /* fall through */
    case SDX_ATTR_TENSOR:
        to->t = sdx_arena_alloc(x->arena, sizeof *to->t);
        return to->t ? export_tensor(x, from->tensor, SDX_STR(""), to->t) : SDX_FAIL_MEMORY(x->cx);
    case SDX_ATTR_GRAPH:
    case SDX_ATTR_GRAPHS: return export_bodies(x, from, to);
    case SDX_ATTR_FLOATS:
        to->floats = (float *)(uintptr_t)from->floats;
        to->count_floats = from->count;
        return SDX_OK;
    case SDX_ATTR_INTS:
        to->ints = (struct sdx_onnx_ints){(int64_t *)(uintptr_t)from->ints, from->count};
        return SDX_OK;
    case SDX_ATTR_STRINGS:
        to->strings = (struct sdx_onnx_strings){(struct sdx_str *)(uintptr_t)from->strings,
                                                (int32_t)from->count};
        return SDX_OK;
    case SDX_ATTR_SPARSES:
    case SDX_ATTR_TENSORS: return export_tensors(x, from, to);
    case SDX_ATTR_TYPE: return export_type(x, from->type_value, &to->tp);
    default: break;
    }
    return SDX_FAIL(x->cx, SDX_INTERNAL, "attribute %.*s has type %d", SDX_STR_ARG(from->name),
                    from->type);
}

/* ---- nodes and graphs ---- */

static enum sdx_status name_list(struct exporter *x, const struct sdx_str *names,
                                 const int32_t *values, int32_t count, struct sdx_onnx_strings *to)
{
    to->count = count;
    to->at = sdx_arena_array(x->arena, (size_t)count + 1, sizeof *to->at);
    if (!to->at) return SDX_FAIL_MEMORY(x->cx);
    for (int32_t i = 0; i < count; i++)
        to->at[i] = values[i] < 0 ? SDX_STR("") : names[values[i]];
    return SDX_OK;
}

static enum sdx_status export_node(struct exporter *x, const struct sdx_ir_node *from,
                                   const struct sdx_str *names, struct sdx_onnx_node *to)
{
    *to = (struct sdx_onnx_node){
        .name = from->name, .op_type = from->op_type, .domain = from->domain};
    const struct sdx_str hidden = SDX_STR(SDX_IR_HIDDEN);
    if (!x->options->keeps_versions && from->domain.len >= hidden.len &&
        memcmp(from->domain.ptr, hidden.ptr, hidden.len) == 0)
        to->domain = (struct sdx_str){from->domain.ptr + hidden.len, from->domain.len - hidden.len};
    SDX_TRY(name_list(x, names, from->inputs, from->count_inputs, &to->inputs));
    SDX_TRY(name_list(x, names, from->outputs, from->count_outputs, &to->outputs));
    SDX_TRY(set_version(x, sdx_ir_domain(to->domain), from->opset, to));
    to->attrs.at = sdx_arena_array(x->arena, (size_t)from->count_attrs + 1, sizeof *to->attrs.at);
    if (!to->attrs.at) return SDX_FAIL_MEMORY(x->cx);
    for (int32_t a = 0; a < from->count_attrs; a++)
        SDX_TRY(export_attr(x, &from->attrs[a], &to->attrs.at[to->attrs.count++]));
    return SDX_OK;
}

static enum sdx_status export_inputs(struct exporter *x, int32_t graph, struct sdx_onnx_graph *to)
{
    const struct sdx_ir_graph *g = &x->ir->graphs[graph];
    const struct sdx_onnx_value_infos *known = &x->options->from->graph->inputs;
    to->inputs.at = sdx_arena_array(x->arena, (size_t)g->count_inputs + 1, sizeof *to->inputs.at);
    if (!to->inputs.at) return SDX_FAIL_MEMORY(x->cx);
    to->inputs.count = g->count_inputs;
    for (int32_t i = 0; i < g->count_inputs; i++) {
        const struct sdx_str name = x->names[graph][g->inputs[i]];
        for (int32_t k = 0; k < known->count && graph == 0; k++)
            if (sdx_str_equal(known->at[k].name, name)) to->inputs.at[i] = known->at[k];
        SDX_TRY(export_info(x, name, &g->values[g->inputs[i]].type, &to->inputs.at[i]));
    }
    return SDX_OK;
}

/* Must output `o` go through an Identity to have its own name? */
static bool needs_identity(const struct exporter *x, int32_t graph, int32_t o)
{
    const struct sdx_ir_graph *g = &x->ir->graphs[graph];
    const int32_t v = g->outputs[o];
    if (graph == 0) return !sdx_str_equal(x->names[0][v], declared_outputs(x)->at[o].name);
    bool again = g->values[v].outer >= 0;
    for (int32_t k = 0; k < o && !again; k++)
        again = g->outputs[k] == v;
    return again;
}

static enum sdx_status export_outputs(struct exporter *x, int32_t graph, struct sdx_onnx_graph *to)
{
    const struct sdx_ir_graph *g = &x->ir->graphs[graph];
    const struct sdx_str *names = x->names[graph];
    to->outputs.at =
        sdx_arena_array(x->arena, (size_t)g->count_outputs + 1, sizeof *to->outputs.at);
    if (!to->outputs.at) return SDX_FAIL_MEMORY(x->cx);
    to->outputs.count = g->count_outputs;
    for (int32_t o = 0; o < g->count_outputs; o++) {
        const int32_t v = g->outputs[o];
        struct sdx_str name = names[v];
        if (graph == 0) to->outputs.at[o] = declared_outputs(x)->at[o];
        if (needs_identity(x, graph, o)) {
            const bool is_tensor = g->values[v].type.kind == SDX_KIND_TENSOR;
            struct sdx_str *ends = sdx_arena_array(x->arena, 2, sizeof *ends);
            if (!ends) return SDX_FAIL_MEMORY(x->cx);
            name = to->outputs.at[o].name;
            if (graph != 0) SDX_TRY(free_name(x, names[v], &name));
            ends[0] = names[v];
            ends[1] = name;
            struct sdx_onnx_node *node = &to->nodes.at[to->nodes.count++];
            *node = (struct sdx_onnx_node){
                .op_type = SDX_STR("Identity"), .inputs = {&ends[0], 1}, .outputs = {&ends[1], 1}};
            const struct sdx_onnx_opset *set = find_opset(x, SDX_STR(""));
            int64_t version = is_tensor ? IDENTITY_TENSORS : IDENTITY_ANYTHING;
            if (set && (is_tensor || set->version >= version)) version = set->version;
            SDX_TRY(set_version(x, SDX_STR(""), version, node));
        }
        SDX_TRY(export_info(x, name, &g->values[v].type, &to->outputs.at[o]));
    }
    return SDX_OK;
}

static enum sdx_status export_constants(struct exporter *x, int32_t graph,
                                        struct sdx_onnx_graph *to)
{
    const struct sdx_ir_graph *g = &x->ir->graphs[graph];
    int32_t *uses = sdx_arena_array(x->arena, (size_t)g->count_values + 1, sizeof *uses);
    int32_t count = 0;
    if (!uses) return SDX_FAIL_MEMORY(x->cx);
    sdx_ir_count_uses(g, uses);
    for (int32_t v = 0; v < g->count_values; v++) {
        if (g->values[v].flags & SDX_IR_INPUT) uses[v] = 1;
        count += g->values[v].constant && uses[v];
    }
    to->initializers.at = sdx_arena_array(x->arena, (size_t)count + 1, sizeof *to->initializers.at);
    if (!to->initializers.at) return SDX_FAIL_MEMORY(x->cx);
    for (int32_t v = 0; v < g->count_values; v++)
        if (g->values[v].constant && uses[v])
            SDX_TRY(export_tensor(x, g->values[v].constant, x->names[graph][v],
                                  &to->initializers.at[to->initializers.count++]));
    return SDX_OK;
}

static enum sdx_status export_types(struct exporter *x, int32_t graph, struct sdx_onnx_graph *to)
{
    const struct sdx_ir_graph *g = &x->ir->graphs[graph];
    to->values.at = sdx_arena_array(x->arena, (size_t)g->count_values + 1, sizeof *to->values.at);
    if (!to->values.at) return SDX_FAIL_MEMORY(x->cx);
    for (int32_t v = 0; v < g->count_values; v++) {
        const struct sdx_ir_value *value = &g->values[v];
        if (value->producer < 0 || value->type.kind == SDX_KIND_NONE) continue;
        if (value->flags & SDX_IR_OUTPUT) continue;
        SDX_TRY(
            export_info(x, x->names[graph][v], &value->type, &to->values.at[to->values.count++]));
    }
    return SDX_OK;
}

static enum sdx_status export_graph(struct exporter *x, int32_t graph, struct sdx_onnx_graph *to)
{
    const struct sdx_ir_graph *g = &x->ir->graphs[graph];
    SDX_TRY(name_values(x, graph));
    to->name = g->name;
    const size_t most = (size_t)g->count_nodes + (size_t)g->count_outputs + 1;
    to->nodes.at = sdx_arena_array(x->arena, most, sizeof *to->nodes.at);
    if (!to->nodes.at) return SDX_FAIL_MEMORY(x->cx);
    SDX_TRY(export_inputs(x, graph, to));
    SDX_TRY(export_constants(x, graph, to));
    for (int32_t n = 0; n < g->count_nodes; n++)
        if (!g->nodes[n].is_dead)
            SDX_TRY(
                export_node(x, &g->nodes[n], x->names[graph], &to->nodes.at[to->nodes.count++]));
    SDX_TRY(export_outputs(x, graph, to));
    return x->options->with_types ? export_types(x, graph, to) : SDX_OK;
}

static enum sdx_status export_model(struct exporter *x, struct sdx_onnx_model *to)
{
    const struct sdx_onnx_model *from = x->options->from;
    struct sdx_onnx_graph *graph = sdx_arena_alloc(x->arena, sizeof *graph);
    if (!graph) return SDX_FAIL_MEMORY(x->cx);
    *to = *from;
    to->functions = NULL;
    to->count_functions = 0;
    to->graph = graph;
    graph->doc = from->graph->doc;
    graph->metadata = from->graph->metadata;
    x->opsets = from->opsets;
    x->capacity_opsets = from->opsets.count;
    SDX_TRY(export_graph(x, 0, graph));
    to->opsets = x->opsets;
    return SDX_OK;
}

enum sdx_status sdx_ir_export(struct sdx_context *cx, struct sdx_arena *arena,
                              const struct sdx_ir *ir, const struct sdx_ir_export *options,
                              struct sdx_onnx_model **out)
{
    struct exporter x = {.cx = cx, .arena = arena, .ir = ir, .options = options};
    struct sdx_onnx_model *model = sdx_arena_alloc(arena, sizeof *model);
    x.names = sdx_arena_array(arena, (size_t)ir->count_graphs + 1, sizeof *x.names);
    *out = NULL;
    if (!model || !x.names) return SDX_FAIL_MEMORY(cx);
    sdx_map_init(&x.taken, cx->mem);
    enum sdx_status status = export_model(&x, model);
    sdx_map_deinit(&x.taken);
    if (status == SDX_OK) *out = model;
    return status;
}
