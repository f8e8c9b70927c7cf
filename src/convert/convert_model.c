/* SPDX-License-Identifier: Apache-2.0
 * The conversion of a whole model, and of a file: read, check, convert, check, write. */
#include "convert/convert_model.h"

#include <stdio.h>

#include "ops/check.h"
#include "ops/op.h"
#include "ops/schema.h"

static const char *domain_text(struct sdx_str domain)
{
    return domain.len ? domain.ptr : "ai.onnx";
}

/* ---- what is left over ---- */

static bool add_uses(struct sdx_map *used, const struct sdx_rewrite_scope *scope)
{
    bool ok = true;
    for (int32_t n = 0; n < scope->nodes->count; n++) {
        const struct sdx_onnx_strings *inputs = &scope->nodes->at[n].inputs;
        for (int32_t i = 0; i < inputs->count; i++)
            ok = ok && (!inputs->at[i].len || sdx_map_put(used, inputs->at[i], 1));
    }
    for (int32_t i = 0; scope->graph && i < scope->graph->outputs.count; i++)
        ok = ok && sdx_map_put(used, scope->graph->outputs.at[i].name, 1);
    for (int32_t i = 0; scope->function && i < scope->function->outputs.count; i++)
        ok = ok && sdx_map_put(used, scope->function->outputs.at[i], 1);
    return ok;
}

/* Was the constant made into an attribute, and is it read nowhere else? */
static bool is_over(const struct sdx_rewrite *rx, const struct sdx_rewrite_scope *scope,
                    const struct sdx_map *used, struct sdx_str name)
{
    const int32_t at = sdx_map_get(&scope->names, name);
    return at >= 0 && rx->values[at].moved && sdx_map_get(used, name) < 0;
}

static enum sdx_status sweep_graph(struct sdx_rewrite *rx, struct sdx_rewrite_scope *scope,
                                   const struct sdx_map *used)
{
    struct sdx_onnx_tensors *list = &scope->graph->initializers;
    struct sdx_onnx_value_infos *inputs = &scope->graph->inputs;
    bool any = false;
    for (int32_t i = 0; i < list->count; i++)
        any |= is_over(rx, scope, used, list->at[i].name);
    if (!any) return SDX_OK;
    list->at = sdx_arena_copy(rx->arena, list->at, (size_t)list->count * sizeof *list->at);
    inputs->at = sdx_arena_copy(rx->arena, inputs->at, (size_t)inputs->count * sizeof *inputs->at);
    if (!list->at || !inputs->at) return SDX_FAIL_MEMORY(rx->cx);
    int32_t kept = 0;
    for (int32_t i = 0; i < inputs->count; i++)
        if (!is_over(rx, scope, used, inputs->at[i].name)) inputs->at[kept++] = inputs->at[i];
    inputs->count = kept;
    kept = 0;
    for (int32_t i = 0; i < list->count; i++)
        if (!is_over(rx, scope, used, list->at[i].name)) list->at[kept++] = list->at[i];
    list->count = kept;
    return SDX_OK;
}

/* Constants whose content moved into attributes go. */
static enum sdx_status sweep(struct sdx_rewrite *rx)
{
    struct sdx_map used;
    sdx_map_init(&used, rx->cx->mem);
    bool ok = true;
    for (int32_t s = 0; s < rx->count_scopes && ok; s++)
        ok = add_uses(&used, rx->scopes[s]);
    enum sdx_status status = ok ? SDX_OK : SDX_FAIL_MEMORY(rx->cx);
    for (int32_t s = 0; s < rx->count_scopes && status == SDX_OK; s++) {
        struct sdx_rewrite_scope *scope = rx->scopes[s];
        int32_t kept = 0;
        for (int32_t n = 0; n < scope->nodes->count; n++) {
            const struct sdx_onnx_node *node = &scope->nodes->at[n];
            if (!sdx_str_is(node->op_type, "Constant") || node->outputs.count != 1 ||
                !is_over(rx, scope, &used, node->outputs.at[0]))
                scope->nodes->at[kept++] = *node;
        }
        scope->nodes->count = kept;
        if (scope->graph) status = sweep_graph(rx, scope, &used);
    }
    sdx_map_deinit(&used);
    return status;
}

/* ---- the model ---- */

static bool set_version(struct sdx_onnx_opsets *opsets, struct sdx_str domain, int64_t version)
{
    bool found = false;
    for (int32_t i = 0; i < opsets->count; i++)
        if (sdx_str_equal(sdx_ir_domain(opsets->at[i].domain), domain)) {
            opsets->at[i].version = version;
            opsets->at[i].has_version = true;
            found = true;
        }
    return found;
}

static enum sdx_status set_versions(struct sdx_rewrite *rx)
{
    struct sdx_onnx_model *model = rx->model;
    const int64_t version = rx->scopes[0]->version;
    for (int32_t s = 1; s < rx->count_scopes; s++)
        if (rx->scopes[s]->function)
            (void)set_version(&rx->scopes[s]->function->opsets, rx->domain, rx->scopes[s]->version);
    if (set_version(&model->opsets, rx->domain, version)) return SDX_OK;
    /* Files of before IR version 3 import nothing and mean version 1. */
    struct sdx_onnx_opset *only = sdx_arena_alloc(rx->arena, sizeof *only);
    if (!only) return SDX_FAIL_MEMORY(rx->cx);
    *only = (struct sdx_onnx_opset){.domain = SDX_STR(""), .version = version, .has_version = true};
    model->opsets = (struct sdx_onnx_opsets){only, 1};
    model->ir_version = 3;
    return SDX_OK;
}

/* One step of each scope that is at version `from`; bodies that a step adds have its end's. */
static enum sdx_status step_all(struct sdx_rewrite *rx, int64_t from, int64_t to)
{
    for (int32_t s = 0; s < rx->count_scopes; s++)
        if (rx->scopes[s]->version == from) SDX_TRY(sdx_convert_step(rx, rx->scopes[s], to));
    return SDX_OK;
}

/* *more: it stopped on the way down, because the types of values that a step made are not known. */
static enum sdx_status convert(struct sdx_rewrite *rx, const struct sdx_onnx_model *model,
                               int64_t version, bool *more)
{
    const int64_t newest = sdx_schema_domain_version(rx->domain);
    int64_t lowest = version, highest = version;
    SDX_TRY(sdx_convert_scopes(rx, model));
    for (int32_t s = 0; s < rx->count_scopes; s++) {
        const int64_t own = rx->scopes[s]->version;
        if (own < 1 || own > newest)
            return SDX_FAIL(rx->cx, SDX_NOT_SUPPORTED,
                            "the model imports version %lld of %s, expected 1 to %lld",
                            (long long)own, domain_text(rx->domain), (long long)newest);
        lowest = own < lowest ? own : lowest;
        highest = own > highest ? own : highest;
    }
    for (; lowest < version; lowest++)
        SDX_TRY(step_all(rx, lowest, lowest + 1));
    const int64_t made = rx->count_fresh;
    for (; highest > version && rx->count_fresh == made; highest--)
        SDX_TRY(step_all(rx, highest, highest - 1));
    *more = highest > version;
    SDX_TRY(sweep(rx));
    return set_versions(rx);
}

enum sdx_status sdx_convert_model(struct sdx_context *cx, struct sdx_arena *arena,
                                  struct sdx_external *external, const struct sdx_onnx_model *model,
                                  const struct sdx_ir *ir, struct sdx_str domain, int64_t version,
                                  struct sdx_onnx_model **out, bool *more)
{
    struct sdx_rewrite rx = {.cx = cx,
                             .arena = arena,
                             .external = external,
                             .ir = ir,
                             .domain = sdx_ir_domain(domain),
                             .spare_name = SDX_STR("no_memory")};
    const int64_t newest = sdx_schema_domain_version(rx.domain);
    *out = NULL;
    *more = false;
    if (!newest)
        return SDX_FAIL(cx, SDX_INVALID_ARGUMENT, "%s is no domain with known versions",
                        domain_text(rx.domain));
    if (version < 1 || version > newest)
        return SDX_FAIL(cx, SDX_INVALID_ARGUMENT, "version %lld of %s, expected 1 to %lld",
                        (long long)version, domain_text(rx.domain), (long long)newest);
    sdx_map_init(&rx.taken, cx->mem);
    enum sdx_status status = convert(&rx, model, version, more);
    for (int32_t s = 0; s < rx.count_scopes; s++)
        sdx_map_deinit(&rx.scopes[s]->names);
    sdx_mem_free(cx->mem, rx.scopes);
    sdx_mem_free(cx->mem, rx.values);
    sdx_map_deinit(&rx.taken);
    if (status == SDX_OK) *out = rx.model;
    return status;
}

/* ---- files ---- */

struct first_fault {
    char text[512];
};

static void keep_first(const char *text, void *user)
{
    struct first_fault *first = user;
    if (!first->text[0]) snprintf(first->text, sizeof first->text, "%s", text);
}

static bool go_on(void *user, struct sdx_context *cx, const struct sdx_ir_graph *graph,
                  const struct sdx_ir_node *node)
{
    (void)user;
    (void)cx;
    (void)graph;
    (void)node;
    return true;
}

/* The IR with types. Unchecked, a model that cannot be imported for want of a file has none. */
static enum sdx_status make_ir(struct sdx_context *cx, struct sdx_arena *arena,
                               struct sdx_external *external, const struct sdx_onnx_model *model,
                               bool check, struct sdx_ir **ir)
{
    struct first_fault first = {{0}};
    struct sdx_faults faults = {.fault = keep_first, .user = &first};
    enum sdx_status status =
        check ? sdx_check_messages(cx, arena, external, model, &faults) : SDX_OK;
    if (status == SDX_OK) status = sdx_ir_import(cx, arena, external, model, ir);
    if (!check && (status == SDX_NOT_FOUND || status == SDX_IO)) {
        sdx_context_clear(cx);
        return SDX_OK;
    }
    if (status == SDX_OK) status = sdx_ops_bind(cx, *ir, false);
    if (status == SDX_OK)
        status =
            check ? sdx_check_types(cx, *ir, &faults) : sdx_infer_model(cx, *ir, 0, go_on, NULL);
    if (status != SDX_BAD_MODEL || !first.text[0]) return status;
    sdx_context_clear(cx);
    return SDX_FAIL(cx, SDX_BAD_MODEL, "%s", first.text);
}

struct embed {
    struct sdx_context *cx;
    struct sdx_arena *arena;
    struct sdx_external *external;
    size_t bytes;
};

enum { EMBED_BYTES_MAX = INT32_MAX }; /* what readers of protobuf take */

static enum sdx_status embed_tensor(struct embed *e, struct sdx_onnx_tensor *t)
{
    const void *data = NULL;
    size_t bytes = 0;
    int64_t count = 1;
    if (!t->data_location) return SDX_OK;
    for (int64_t d = 0; d < t->dims.count; d++)
        if (!sdx_mul_i64(count, t->dims.at[d], &count))
            return SDX_FAIL(e->cx, SDX_BAD_MODEL, "tensor \"%.*s\" is too large",
                            SDX_STR_ARG(t->name));
    SDX_TRY(sdx_onnx_tensor_data(e->cx, e->arena, e->external, t, &data));
    if (!sdx_dtype_bytes(t->data_type, count, &bytes)) return SDX_FAIL_MEMORY(e->cx);
    e->bytes += bytes;
    if (e->bytes > EMBED_BYTES_MAX)
        return SDX_FAIL(e->cx, SDX_NOT_SUPPORTED,
                        "the external data is too large for one file, expected an output in the "
                        "model's own folder");
    t->data_location = 0;
    t->has_location = false;
    t->external = (struct sdx_onnx_pairs){NULL, 0};
    t->raw = (struct sdx_str){data ? data : "", bytes};
    t->has_raw = true;
    return SDX_OK;
}

static enum sdx_status embed_nodes(struct embed *e, const struct sdx_onnx_nodes *nodes);

static enum sdx_status embed_graph(struct embed *e, const struct sdx_onnx_graph *graph)
{
    for (int32_t i = 0; i < graph->initializers.count; i++)
        SDX_TRY(embed_tensor(e, &graph->initializers.at[i]));
    return embed_nodes(e, &graph->nodes);
}

static enum sdx_status embed_nodes(struct embed *e, const struct sdx_onnx_nodes *nodes)
{
    for (int32_t n = 0; n < nodes->count; n++)
        for (int32_t a = 0; a < nodes->at[n].attrs.count; a++) {
            const struct sdx_onnx_attr *attr = &nodes->at[n].attrs.at[a];
            if (attr->t) SDX_TRY(embed_tensor(e, attr->t));
            for (int32_t i = 0; i < attr->tensors.count; i++)
                SDX_TRY(embed_tensor(e, &attr->tensors.at[i]));
            if (attr->g) SDX_TRY(embed_graph(e, attr->g));
            for (int32_t g = 0; g < attr->count_graphs; g++)
                SDX_TRY(embed_graph(e, &attr->graphs[g]));
        }
    return SDX_OK;
}

static enum sdx_status embed_model(struct embed *e, const struct sdx_onnx_model *model)
{
    for (int32_t i = 0; i < model->count_functions; i++)
        SDX_TRY(embed_nodes(e, &model->functions[i].nodes));
    return embed_graph(e, model->graph);
}

static enum sdx_status check_result(struct sdx_context *cx, struct sdx_arena *arena,
                                    struct sdx_external *external,
                                    const struct sdx_onnx_model *model)
{
    struct sdx_ir *ir = NULL;
    enum sdx_status status = make_ir(cx, arena, external, model, true, &ir);
    if (ir) sdx_ir_deinit(ir);
    if (status == SDX_BAD_MODEL) return sdx_fail_where(cx, "the converted model is not valid");
    return status;
}

static enum sdx_status write_model(struct sdx_context *cx, const struct sdx_onnx_model *model,
                                   const char *to)
{
    struct sdx_file_writer writer;
    SDX_TRY(sdx_file_writer_open(cx, to, &writer));
    enum sdx_status status = sdx_onnx_write_model(cx, model, &writer);
    if (status == SDX_OK) return sdx_file_writer_close(&writer);
    sdx_file_writer_abandon(&writer);
    return status;
}

/* As far as types are known; then with those of what was made, as long as the model can be read. */
static enum sdx_status convert_to(struct sdx_context *cx, struct sdx_arena *arena,
                                  struct sdx_external *external, const struct sdx_opset *opset,
                                  struct sdx_onnx_model **model, struct sdx_ir **ir)
{
    for (bool more = true; more;) {
        SDX_TRY(sdx_convert_model(cx, arena, external, *model, *ir, sdx_str(opset->domain),
                                  opset->version, model, &more));
        if (!more) break;
        if (*ir) sdx_ir_deinit(*ir);
        *ir = NULL;
        const enum sdx_status status = make_ir(cx, arena, external, *model, false, ir);
        if (status == SDX_OUT_OF_MEMORY) return status;
        if (status != SDX_OK) sdx_context_clear(cx);
    }
    return SDX_OK;
}

enum sdx_status sdx_convert_bytes(struct sdx_context *cx, struct sdx_arena *arena,
                                  const void *bytes, size_t size, const char *folder, int count,
                                  const struct sdx_opset *opsets, bool check, const char *to)
{
    struct sdx_external external;
    struct sdx_onnx_model *model = NULL;
    struct sdx_ir *ir = NULL;
    const char *folder_to = sdx_path_folder(arena, to);
    if (!folder_to) return SDX_FAIL_MEMORY(cx);
    sdx_external_init(&external, arena, folder);
    struct embed embed = {.cx = cx, .arena = arena, .external = &external};
    enum sdx_status status = sdx_onnx_read_model(cx, arena, bytes, size, &model);
    if (status == SDX_OK) status = make_ir(cx, arena, &external, model, check, &ir);
    for (int i = 0; i < count && status == SDX_OK; i++)
        status = convert_to(cx, arena, &external, &opsets[i], &model, &ir);
    if (status == SDX_OK && check) status = check_result(cx, arena, &external, model);
    if (status == SDX_OK && (!folder || strcmp(folder, folder_to) != 0))
        status = embed_model(&embed, model);
    if (status == SDX_OK) status = write_model(cx, model, to);
    if (ir) sdx_ir_deinit(ir);
    sdx_external_deinit(&external);
    return status;
}
