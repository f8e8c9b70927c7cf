/* SPDX-License-Identifier: Apache-2.0
 * The checker of messages: model, graphs, names and tensors. Stricter than onnx.checker where a
 * file could not be run (outputs that nothing makes, domains imported twice). What every runtime
 * reads although the standard forbids it (graphs without a name, nodes out of order, inputs without
 * a shape) is a fault only where the check is to the letter. */
#include "ops/check_messages.h"

#include <inttypes.h>
#include <stdio.h>

static const size_t sparse_bytes_max = (size_t)1 << 30;

static void add_place(struct sdx_text *text, const struct sdx_check_place *place)
{
    if (!place) return;
    add_place(text, place->outer);
    sdx_text_add(text, "%s \"%.*s\"", place->what, SDX_STR_ARG(place->name));
    if (place->op.len) sdx_text_add(text, " (%.*s)", SDX_STR_ARG(place->op));
    sdx_text_add(text, ": ");
}

void sdx_check_fault(struct sdx_check *c, const struct sdx_check_place *place, const char *format,
                     ...)
{
    char line[SDX_ERROR_TEXT];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    sdx_text_clear(&c->text);
    add_place(&c->text, place);
    sdx_text_add(&c->text, "%s", line);
    if (!c->text.ok) c->out_of_memory = true;
    if (c->faults->count++ == 0) (void)SDX_FAIL(c->cx, SDX_BAD_MODEL, "%s", sdx_text_get(&c->text));
    if (c->faults->fault) c->faults->fault(sdx_text_get(&c->text), c->faults->user);
}

int32_t sdx_check_find_function(struct sdx_check *c, struct sdx_str domain, struct sdx_str name,
                                struct sdx_str overload)
{
    if (c->model->count_functions == 0) return -1;
    domain = sdx_ir_domain(domain);
    sdx_text_clear(&c->key);
    sdx_text_add_bytes(&c->key, domain.ptr, domain.len);
    sdx_text_add_bytes(&c->key, "\n", 1);
    sdx_text_add_bytes(&c->key, name.ptr, name.len);
    sdx_text_add_bytes(&c->key, "\n", 1);
    sdx_text_add_bytes(&c->key, overload.ptr, overload.len);
    if (!c->key.ok) c->out_of_memory = true;
    return sdx_map_get(&c->functions, (struct sdx_str){sdx_text_get(&c->key), c->key.len});
}

/* What a reader of data refuses becomes a fault. */
static void take_error(struct sdx_check *c, const struct sdx_check_place *place,
                       const struct sdx_context *child)
{
    if (child->error.status == SDX_OUT_OF_MEMORY)
        c->out_of_memory = true;
    else
        sdx_check_fault(c, place, "%s", child->error.text);
}

void sdx_check_tensor(struct sdx_check *c, const struct sdx_check_place *place,
                      const struct sdx_onnx_tensor *tensor)
{
    struct sdx_context child;
    sdx_context_init_child(&child, c->cx);
    if (sdx_onnx_tensor_data(&child, c->arena, c->ex, tensor, NULL) != SDX_OK)
        take_error(c, place, &child);
}

void sdx_check_sparse(struct sdx_check *c, const struct sdx_check_place *place,
                      const struct sdx_onnx_sparse *sparse)
{
    struct sdx_context child;
    struct sdx_arena arena;
    struct sdx_tensor *dense = NULL;
    sdx_context_init_child(&child, c->cx);
    sdx_arena_init(&arena, c->cx->mem, SDX_MEM_MODEL);
    if (sdx_onnx_sparse_import(&child, &arena, c->ex, sparse, sparse_bytes_max, &dense) != SDX_OK)
        take_error(c, place, &child);
    sdx_arena_deinit(&arena);
}

void sdx_check_type(struct sdx_check *c, const struct sdx_check_place *place,
                    const struct sdx_onnx_type *type)
{
    if (!type || type->which == SDX_TYPE_NONE) {
        sdx_check_fault(c, place, "has no type");
        return;
    }
    if (type->which == SDX_TYPE_OPAQUE) {
        if (type->opaque_name.len == 0) sdx_check_fault(c, place, "opaque type has no name");
        return;
    }
    bool typed = type->which == SDX_TYPE_TENSOR || type->which == SDX_TYPE_SPARSE;
    bool map = type->which == SDX_TYPE_MAP;
    if (map && type->elem_type != SDX_STRING && !sdx_dtype_is_integer(type->elem_type))
        sdx_check_fault(c, place, "key type is %d, expected an integer type or string",
                        type->elem_type);
    if (typed && !sdx_dtype_is_valid(type->elem_type))
        sdx_check_fault(c, place, "element type is %d, expected 1 to %d", type->elem_type,
                        SDX_DTYPE_LAST);
    if (!typed) sdx_check_type(c, place, type->elem);
    if (type->rank > SDX_RANK_MAX)
        sdx_check_fault(c, place, "rank is %d, expected at most %d", type->rank, SDX_RANK_MAX);
    for (int32_t i = 0; i < type->rank; i++)
        if (type->dims[i].which == SDX_DIM_VALUE && type->dims[i].value < -1)
            sdx_check_fault(c, place, "dimension %d is %" PRId64 ", expected at least 0", i,
                            type->dims[i].value);
}

/* To the letter: the main graph's inputs and outputs have a shape, if not its lengths. */
static void want_shape(struct sdx_check *c, const struct sdx_check_place *place,
                       const struct sdx_check_scope *scope, const struct sdx_onnx_type *type)
{
    if (!c->faults->is_strict || scope->outer || !type) return;
    if ((type->which == SDX_TYPE_TENSOR || type->which == SDX_TYPE_SPARSE) && !type->has_shape)
        sdx_check_fault(c, place, "has no shape, expected one with a length or none for each axis");
}

bool sdx_check_declare(struct sdx_check *c, struct sdx_check_scope *scope, struct sdx_str name,
                       int32_t order)
{
    if (sdx_map_get(&scope->names, name) >= 0) return false;
    if (!sdx_map_put(&scope->names, name, order)) c->out_of_memory = true;
    return true;
}

bool sdx_check_is_visible(const struct sdx_check_scope *scope, struct sdx_str name)
{
    for (; scope; scope = scope->outer)
        if (sdx_map_get(&scope->names, name) >= 0) return true;
    return false;
}

static void check_inputs(struct sdx_check *c, const struct sdx_check_place *place,
                         struct sdx_check_scope *scope, const struct sdx_onnx_value_infos *infos)
{
    for (int32_t i = 0; i < infos->count; i++) {
        const struct sdx_onnx_value_info *info = &infos->at[i];
        struct sdx_check_place at = {.outer = place, .what = "input", .name = info->name};
        if (info->name.len == 0)
            sdx_check_fault(c, place, "input %d has no name", i);
        else if (!sdx_check_declare(c, scope, info->name, 0))
            sdx_check_fault(c, &at, "stands twice among the inputs");
        /* The inputs of a body take their types from the node. */
        if (!scope->outer || (info->type && info->type->which != SDX_TYPE_NONE))
            sdx_check_type(c, &at, info->type);
        want_shape(c, &at, scope, info->type);
    }
}

/* `seen` holds the initializers met so far. */
static void check_initializer(struct sdx_check *c, const struct sdx_check_place *place,
                              struct sdx_check_scope *scope, struct sdx_map *seen,
                              struct sdx_str name)
{
    struct sdx_check_place at = {.outer = place, .what = "initializer", .name = name};
    if (name.len == 0) {
        sdx_check_fault(c, place, "an initializer has no name");
        return;
    }
    if (sdx_map_get(seen, name) >= 0) sdx_check_fault(c, &at, "is given twice");
    if (!sdx_map_put(seen, name, 0)) c->out_of_memory = true;
    if (sdx_check_declare(c, scope, name, 0) && c->faults->is_strict && c->model->ir_version < 4)
        sdx_check_fault(c, &at, "is no input, expected one before IR version 4");
}

static void check_initializers(struct sdx_check *c, const struct sdx_check_place *place,
                               struct sdx_check_scope *scope, const struct sdx_onnx_graph *graph)
{
    struct sdx_map seen;
    sdx_map_init(&seen, c->cx->mem);
    for (int32_t i = 0; i < graph->initializers.count; i++) {
        const struct sdx_onnx_tensor *tensor = &graph->initializers.at[i];
        check_initializer(c, place, scope, &seen, tensor->name);
        const bool is_given =
            !scope->outer && !c->function && sdx_external_given(c->ex, tensor->name);
        if (!is_given) sdx_check_tensor(c, place, tensor);
    }
    for (int32_t i = 0; i < graph->sparse_initializers.count; i++) {
        const struct sdx_onnx_sparse *sparse = &graph->sparse_initializers.at[i];
        check_initializer(c, place, scope, &seen,
                          sparse->values ? sparse->values->name : (struct sdx_str){NULL, 0});
        sdx_check_sparse(c, place, sparse);
    }
    sdx_map_deinit(&seen);
}

static void check_outputs(struct sdx_check *c, const struct sdx_check_place *place,
                          const struct sdx_check_scope *scope,
                          const struct sdx_onnx_value_infos *infos)
{
    for (int32_t i = 0; i < infos->count; i++) {
        const struct sdx_onnx_value_info *info = &infos->at[i];
        struct sdx_check_place at = {.outer = place, .what = "output", .name = info->name};
        if (info->name.len == 0)
            sdx_check_fault(c, place, "output %d has no name", i);
        else if (sdx_map_get(&scope->names, info->name) < 0)
            sdx_check_fault(c, &at, "%s",
                            sdx_check_is_visible(scope, info->name)
                                ? "is a value of a graph around it, expected one of its own"
                                : "is not made by any node");
        if (info->type && info->type->which != SDX_TYPE_NONE) sdx_check_type(c, &at, info->type);
        want_shape(c, &at, scope, info->type);
    }
}

void sdx_check_graph(struct sdx_check *c, const struct sdx_check_place *place,
                     const struct sdx_check_scope *outer, const struct sdx_onnx_graph *graph)
{
    struct sdx_check_scope scope = {.outer = outer};
    if (graph->name.len == 0 && c->faults->is_strict)
        sdx_check_fault(c, place, "%s has no name", outer ? "the body" : "the graph");
    sdx_map_init(&scope.names, c->cx->mem);
    check_inputs(c, place, &scope, &graph->inputs);
    check_initializers(c, place, &scope, graph);
    sdx_check_nodes(c, place, &scope, &graph->nodes);
    check_outputs(c, place, &scope, &graph->outputs);
    sdx_map_deinit(&scope.names);
}

bool sdx_check_is_standard(struct sdx_str domain)
{
    return domain.len == 0 || sdx_str_is(domain, "ai.onnx.ml") ||
           sdx_str_is(domain, "ai.onnx.preview") || sdx_str_is(domain, "ai.onnx.preview.training");
}

static void check_opset(struct sdx_check *c, const struct sdx_check_place *place,
                        const struct sdx_onnx_opset *opset)
{
    struct sdx_str domain = sdx_ir_domain(opset->domain);
    struct sdx_str shown = domain.len ? domain : SDX_STR("ai.onnx");
    int64_t newest = sdx_schema_domain_version(domain);
    if (newest == 0) return;
    if (opset->version < 1)
        sdx_check_fault(c, place,
                        "version %" PRId64 " of domain %.*s is imported, expected 1 to %" PRId64,
                        opset->version, SDX_STR_ARG(shown), newest);
    else if (opset->version > newest)
        sdx_check_fault(c, place,
                        "version %" PRId64 " of domain %.*s is imported, newest known is %" PRId64,
                        opset->version, SDX_STR_ARG(shown), newest);
}

void sdx_check_opsets(struct sdx_check *c, const struct sdx_check_place *place,
                      const struct sdx_onnx_opsets *opsets)
{
    struct sdx_map seen;
    sdx_map_init(&seen, c->cx->mem);
    for (int32_t i = 0; i < opsets->count; i++) {
        const struct sdx_onnx_opset *opset = &opsets->at[i];
        struct sdx_str domain = sdx_ir_domain(opset->domain);
        int32_t before = sdx_map_get(&seen, domain);
        check_opset(c, place, opset);
        if (before >= 0 && opsets->at[before].version != opset->version)
            sdx_check_fault(c, place,
                            "domain \"%.*s\" is imported twice, with versions %" PRId64
                            " and %" PRId64,
                            SDX_STR_ARG(domain), opsets->at[before].version, opset->version);
        if (before < 0 && !sdx_map_put(&seen, domain, i)) c->out_of_memory = true;
    }
    sdx_map_deinit(&seen);
}

static bool check_lists(struct sdx_check *c)
{
    const struct sdx_onnx_model *model = c->model;
    int32_t opsets = model->opsets.count, attrs = 0;
    for (int32_t i = 0; i < model->count_functions; i++) {
        const struct sdx_onnx_function *function = &model->functions[i];
        if (function->opsets.count > opsets) opsets = function->opsets.count;
        if (function->attr_names.count > attrs) attrs = function->attr_names.count;
        if (function->attrs.count > attrs) attrs = function->attrs.count;
    }
    if (opsets > SDX_CHECK_LIST_MAX)
        sdx_check_fault(c, NULL, "%d operator sets are imported, expected at most %d", opsets,
                        SDX_CHECK_LIST_MAX);
    if (attrs > SDX_CHECK_LIST_MAX)
        sdx_check_fault(c, NULL, "a function has %d attributes, expected at most %d", attrs,
                        SDX_CHECK_LIST_MAX);
    return opsets <= SDX_CHECK_LIST_MAX && attrs <= SDX_CHECK_LIST_MAX;
}

static void check_metadata(struct sdx_check *c)
{
    struct sdx_map seen;
    sdx_map_init(&seen, c->cx->mem);
    for (int32_t i = 0; i < c->model->metadata.count; i++) {
        struct sdx_str key = c->model->metadata.at[i].key;
        if (sdx_map_get(&seen, key) >= 0)
            sdx_check_fault(c, NULL, "metadata_props holds key \"%.*s\" twice", SDX_STR_ARG(key));
        if (!sdx_map_put(&seen, key, i)) c->out_of_memory = true;
    }
    sdx_map_deinit(&seen);
}

static void check_model(struct sdx_check *c)
{
    const struct sdx_onnx_model *model = c->model;
    if (!model->has_ir_version)
        sdx_check_fault(c, NULL, "ir_version is missing");
    else if (model->ir_version < 1 || model->ir_version > sdx_schema_ir_version_newest)
        sdx_check_fault(c, NULL, "ir_version is %" PRId64 ", expected 1 to %d", model->ir_version,
                        sdx_schema_ir_version_newest);
    if (model->ir_version >= 3 && model->opsets.count == 0)
        sdx_check_fault(c, NULL, "opset_import is empty, expected the version of ai.onnx");
    if (model->has_ir_version && model->ir_version < 3 && model->opsets.count &&
        c->faults->is_strict)
        sdx_check_fault(c, NULL, "opset_import is given, expected none before IR version 3");
    if (!check_lists(c)) return;
    sdx_check_opsets(c, NULL, &model->opsets);
    check_metadata(c);
    sdx_check_functions(c);
    if (model->graph)
        sdx_check_graph(c, NULL, NULL, model->graph);
    else
        sdx_check_fault(c, NULL, "the model has no graph");
}

enum sdx_status sdx_check_messages(struct sdx_context *cx, struct sdx_arena *arena,
                                   struct sdx_external *ex, const struct sdx_onnx_model *model,
                                   struct sdx_faults *faults)
{
    struct sdx_check c = {.cx = cx, .arena = arena, .ex = ex, .model = model, .faults = faults};
    int64_t before = faults->count;
    sdx_map_init(&c.functions, cx->mem);
    sdx_text_init(&c.key, cx->mem);
    sdx_text_init(&c.text, cx->mem);
    check_model(&c);
    sdx_text_deinit(&c.text);
    sdx_text_deinit(&c.key);
    sdx_map_deinit(&c.functions);
    if (c.out_of_memory) return SDX_FAIL_MEMORY(cx);
    return faults->count > before ? SDX_BAD_MODEL : SDX_OK;
}
