/* SPDX-License-Identifier: Apache-2.0
 * The optimised model as an ONNX file: only passes whose results can be said run, nodes of newer
 * versions than the model imports become operators of com.microsoft where there is one, and what is
 * written has been compared with the schema table. */
#include "ir/ir_export.h"
#include "ops/schema.h"
#include "passes/passes.h"
#include "run/model.h"

enum { IR_VERSION_LEAST = 4 }; /* initializers need not be inputs */

/* The standard's version that the model imports. */
static int64_t standard_version(const struct sdx_ir *ir)
{
    for (int32_t i = 0; i < ir->count_opsets; i++)
        if (sdx_ir_domain(ir->opsets[i].domain).len == 0) return ir->opsets[i].version;
    return sdx_schema_opset_newest;
}

/* Does a model that imports `version` mean the same operator? */
static bool is_same_in(const struct sdx_ir_node *node, int64_t version)
{
    return sdx_schema_find(node->domain, node->op_type, node->opset, NULL) ==
           sdx_schema_find(node->domain, node->op_type, version, NULL);
}

/* Activations that later versions of the standard brought. false: no memory. */
static bool say_activation(struct sdx_ir *ir, struct sdx_ir_node *node)
{
    const bool is_gelu = sdx_str_is(node->op_type, "Gelu");
    if (!is_gelu && !sdx_str_is(node->op_type, "Swish")) return true;
    struct sdx_ir_attr *attr = sdx_arena_alloc(ir->arena, sizeof *attr);
    if (!attr) return false;
    const bool is_tanh = sdx_str_is(sdx_ir_attr_str(node, "approximate", "none"), "tanh");
    *attr = (struct sdx_ir_attr){
        .name = SDX_STR("alpha"), .type = SDX_ATTR_FLOAT, .f = sdx_ir_attr_float(node, "alpha", 1)};
    node->op_type = !is_gelu  ? SDX_STR("QuickGelu")
                    : is_tanh ? SDX_STR("FastGelu")
                              : SDX_STR("Gelu");
    node->domain = SDX_STR("com.microsoft");
    node->opset = 1;
    node->attrs = attr;
    node->count_attrs = !is_gelu;
    return true;
}

static bool has_only_known(const struct sdx_ir_node *node, const struct sdx_schema *schema)
{
    if (node->count_inputs > sdx_schema_inputs_max(schema) ||
        node->count_inputs < schema->inputs_min ||
        node->count_outputs > sdx_schema_outputs_max(schema))
        return false;
    for (int32_t a = 0; a < node->count_attrs; a++) {
        const struct sdx_schema_attr *fact = sdx_schema_find_attr(schema, node->attrs[a].name);
        const bool is_sparse = node->attrs[a].type == SDX_ATTR_SPARSE;
        if (!fact || (fact->type != node->attrs[a].type && !is_sparse)) return false;
    }
    return true;
}

static enum sdx_status say_node(struct sdx_context *cx, struct sdx_ir *ir,
                                const struct sdx_ir_graph *graph, struct sdx_ir_node *node,
                                int64_t version)
{
    if (node->domain.len == 0 && node->opset != version) {
        if (is_same_in(node, version))
            node->opset = version;
        else if (!say_activation(ir, node))
            return SDX_FAIL_MEMORY(cx);
    }
    bool known = false;
    const struct sdx_schema *schema =
        sdx_schema_find(node->domain, node->op_type, node->opset, &known);
    const bool is_ours = sdx_str_is(node->domain, "sardonyx");
    const bool is_late = node->domain.len == 0 && node->opset != version;
    if (!is_ours && !is_late && (!known || (schema && has_only_known(node, schema)))) return SDX_OK;
    char place[256];
    return SDX_FAIL(cx, SDX_NOT_SUPPORTED, "%s cannot be said in version %lld of ONNX",
                    sdx_ir_node_describe(graph, node, place, sizeof place), (long long)version);
}

static enum sdx_status say_all(struct sdx_context *cx, struct sdx_ir *ir)
{
    const int64_t version = standard_version(ir);
    for (int32_t g = 0; g < ir->count_graphs; g++)
        for (int32_t n = 0; n < ir->graphs[g].count_nodes; n++) {
            struct sdx_ir_node *node = &ir->graphs[g].nodes[n];
            if (!node->is_dead) SDX_TRY(say_node(cx, ir, &ir->graphs[g], node, version));
        }
    return SDX_OK;
}

static enum sdx_status make_message(struct sdx_context *cx, struct sdx_model *m,
                                    struct sdx_arena *arena, sdx_level level, struct sdx_ir **ir,
                                    struct sdx_onnx_model **message)
{
    const struct sdx_ir_export options = {.from = m->message, .with_types = true};
    SDX_TRY(sdx_model_import(cx, m, arena, true, ir));
    SDX_TRY(sdx_passes_run_said(cx, *ir, level, standard_version(*ir)));
    SDX_TRY(say_all(cx, *ir));
    SDX_TRY(sdx_ir_export(cx, arena, *ir, &options, message));
    if ((*message)->ir_version < IR_VERSION_LEAST) (*message)->ir_version = IR_VERSION_LEAST;
    return SDX_OK;
}

static enum sdx_status write_level(struct sdx_context *cx, struct sdx_model *m, sdx_level level,
                                   const char *path)
{
    struct sdx_arena arena;
    struct sdx_ir *ir = NULL;
    struct sdx_onnx_model *message = NULL;
    struct sdx_file_writer writer;
    sdx_arena_init(&arena, cx->mem, SDX_MEM_OTHER);
    sdx_lock_take(&m->lock); /* the import opens files with external data */
    enum sdx_status status = make_message(cx, m, &arena, level, &ir, &message);
    sdx_lock_give(&m->lock);
    if (status == SDX_OK) status = sdx_file_writer_open(cx, path, &writer);
    if (status == SDX_OK) {
        status = sdx_onnx_write_model(cx, message, &writer);
        if (status == SDX_OK)
            status = sdx_file_writer_close(&writer);
        else
            sdx_file_writer_abandon(&writer);
    }
    if (ir) sdx_ir_deinit(ir);
    sdx_arena_deinit(&arena);
    return status;
}

enum sdx_status sdx_model_save_optimised(struct sdx_context *cx, struct sdx_model *m,
                                         sdx_level level, const char *path)
{
    if (m->plan.bytes)
        return SDX_FAIL(cx, SDX_NOT_SUPPORTED,
                        "the model is from a plan file, which holds no ONNX model to save");
    enum sdx_status status = write_level(cx, m, level, path);
    if (status != SDX_NOT_SUPPORTED || level <= SDX_LEVEL_BASIC) return status;
    sdx_log(cx, SDX_LOG_INFO, "save", "%s: as the basic level has it", cx->error.text);
    sdx_context_clear(cx);
    return write_level(cx, m, SDX_LEVEL_BASIC, path);
}
