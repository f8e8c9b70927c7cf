/* SPDX-License-Identifier: Apache-2.0
 * Loading: map, read, check, import, infer; and the graphs made for sessions. */
#include "run/model.h"

#include <stdio.h>

#include "ir/ir_export.h"
#include "ops/check.h"
#include "ops/custom.h"
#include "ops/op.h"
#include "passes/passes.h"

/* Checker faults become the error text: the first one, and how many there were. */
struct first_fault {
    char text[512];
};

static void keep_first(const char *text, void *user)
{
    struct first_fault *first = user;
    if (!first->text[0]) snprintf(first->text, sizeof first->text, "%s", text);
}

/* *bytes: of the file, mapped, when there is a path. */
static enum sdx_status open_bytes(struct sdx_context *cx, struct sdx_model *m, const char *path,
                                  const void **bytes, size_t *size)
{
    const char *folder = NULL;
    if (path) {
        SDX_TRY(sdx_file_map_open(cx, path, &m->map));
        *bytes = m->map.data;
        *size = m->map.size;
        folder = sdx_path_folder(&m->arena, path);
        m->path = sdx_arena_strndup(&m->arena, path, strlen(path));
        if (!folder || !m->path) return SDX_FAIL_MEMORY(cx);
    }
    m->bytes = *bytes;
    m->size = *size;
    sdx_external_init(&m->external, &m->arena, folder);
    return SDX_OK;
}

static enum sdx_status import_graph(struct sdx_context *cx, struct sdx_model *m,
                                    struct sdx_arena *arena, struct sdx_ir **out)
{
    SDX_TRY(sdx_ir_import(cx, arena, &m->external, m->message, out));
    (*out)->customs = m->customs;
    return sdx_model_set_dims(cx, m, *out);
}

/* Messages to a checked and inferred IR. With `faults` all faults are collected, otherwise the
 * first is kept. */
static enum sdx_status build_ir(struct sdx_context *cx, struct sdx_model *m, bool check,
                                struct sdx_faults *faults)
{
    faults->customs = m->customs;
    if (check) {
        enum sdx_status status =
            sdx_check_messages(cx, &m->arena, &m->external, m->message, faults);
        if (status != SDX_OK || faults->is_structure_only) return status;
    }
    SDX_TRY(import_graph(cx, m, &m->arena, &m->ir));
    SDX_TRY(sdx_ops_bind(cx, m->ir, false));
    return check ? sdx_check_types(cx, m->ir, faults) : sdx_infer_model(cx, m->ir, 0, NULL, NULL);
}

static enum sdx_status keep_graph(struct sdx_context *cx, struct sdx_model *m, sdx_level level,
                                  bool open, struct sdx_ir *ir)
{
    struct sdx_model_graph *g = sdx_arena_alloc(&m->arena, sizeof *g);
    if (!g) return SDX_FAIL_MEMORY(cx);
    *g = (struct sdx_model_graph){.next = m->graphs, .level = level, .is_open = open, .ir = ir};
    m->graphs = g;
    return SDX_OK;
}

/* The graph of a plan file has been checked, rewritten and folded before it was written. It is
 * still imported and inferred as any graph is: the file may be broken. */
static enum sdx_status load_plan(struct sdx_context *cx, struct sdx_model *m, const void *bytes,
                                 size_t size)
{
    struct sdx_plan_file *plan = &m->plan;
    SDX_TRY(sdx_plan_read(cx, bytes, size, plan));
    m->external.section = plan->constants;
    m->external.section_size = plan->constants_size;
    SDX_TRY(sdx_onnx_read_model(cx, &m->arena, plan->graph.ptr, plan->graph.len, &m->message));
    SDX_TRY(import_graph(cx, m, &m->arena, &m->ir));
    SDX_TRY(sdx_ops_bind(cx, m->ir, true));
    SDX_TRY(sdx_infer_model(cx, m->ir, 0, NULL, NULL));
    m->store = sdx_store_create(&m->mem, &m->map, &m->external);
    if (!m->store) return SDX_FAIL_MEMORY(cx);
    SDX_TRY(sdx_store_adopt(m->store, cx, plan));
    SDX_TRY(keep_graph(cx, m, (sdx_level)plan->level, false, m->ir));
    return sdx_plan_get_facts(cx, plan->facts, m);
}

static enum sdx_status load(struct sdx_context *cx, struct sdx_model *m, const char *path,
                            const void *bytes, size_t size, const struct sdx_model_options *options)
{
    const bool check = options->check_fully;
    SDX_TRY(sdx_customs_create(cx, &m->arena, options->count_custom_ops, options->custom_ops,
                               &m->customs));
    SDX_TRY(open_bytes(cx, m, path, &bytes, &size));
    m->has_folder = options->folder != NULL;
    if (sdx_plan_is(bytes, size) && sdx_model_is_given(options))
        return SDX_FAIL(cx, SDX_NOT_SUPPORTED,
                        "plan file: dimensions, initializers and files are given when it is made");
    if (sdx_plan_is(bytes, size)) return load_plan(cx, m, bytes, size);
    sdx_file_map_use_small_pages(&m->map);
    SDX_TRY(sdx_model_take_given(cx, m, options));
    m->external.tolerate = options->tolerate;
    SDX_TRY(sdx_onnx_read_model(cx, &m->arena, bytes, size, &m->message));
    if (options->tolerate) SDX_TRY(sdx_model_tolerate(cx, m));
    struct first_fault first = {{0}};
    struct sdx_faults faults = {.fault = keep_first, .user = &first};
    enum sdx_status status = build_ir(cx, m, check, &faults);
    if (status == SDX_BAD_MODEL && first.text[0]) {
        sdx_context_clear(cx);
        if (faults.count > 1)
            return SDX_FAIL(cx, SDX_BAD_MODEL, "%s (and %lld more faults)", first.text,
                            (long long)faults.count - 1);
        return SDX_FAIL(cx, SDX_BAD_MODEL, "%s", first.text);
    }
    SDX_TRY(status);
    m->store = sdx_store_create(&m->mem, &m->map, &m->external);
    if (!m->store) return SDX_FAIL_MEMORY(cx);
    return sdx_model_describe(cx, m);
}

static struct sdx_model *new_model(struct sdx_context *cx, size_t limit)
{
    struct sdx_model *m = sdx_mem_calloc(cx->mem, SDX_MEM_MODEL, 1, sizeof *m);
    if (!m) return NULL;
    sdx_mem_init(&m->mem, cx->mem, limit);
    sdx_context_init_child(&m->cx, cx);
    m->cx.mem = &m->mem;
    sdx_arena_init(&m->arena, &m->mem, SDX_MEM_MODEL);
    sdx_lock_init(&m->lock);
    return m;
}

/* What happens inside uses the model's memory; the failure is told to the caller's context. */
static enum sdx_status tell(struct sdx_context *cx, struct sdx_model *m, const char *path,
                            enum sdx_status status)
{
    if (status == SDX_OK) return SDX_OK;
    if (path && !strstr(m->cx.error.text, path))
        return SDX_FAIL(cx, status, "%s: %s", path, m->cx.error.text);
    return SDX_FAIL(cx, status, "%s", m->cx.error.text);
}

enum sdx_status sdx_model_create(struct sdx_context *cx, const char *path, const void *bytes,
                                 size_t size, const struct sdx_model_options *options,
                                 struct sdx_model **out)
{
    *out = NULL;
    struct sdx_model *m = new_model(cx, options->memory_limit);
    if (!m) return SDX_FAIL_MEMORY(cx);
    enum sdx_status status = tell(cx, m, path, load(&m->cx, m, path, bytes, size, options));
    if (status == SDX_OK)
        *out = m;
    else
        sdx_model_free(m);
    return status;
}

void sdx_model_free(struct sdx_model *m)
{
    if (!m) return;
    struct sdx_mem *mem = m->mem.parent;
    for (struct sdx_model_graph *g = m->graphs; g; g = g->next)
        if (g->ir != m->ir) sdx_ir_deinit(g->ir);
    if (m->ir) sdx_ir_deinit(m->ir);
    sdx_store_destroy(m->store);
    if (m->external.arena) sdx_external_deinit(&m->external);
    sdx_arena_deinit(&m->arena);
    sdx_file_map_close(&m->map);
    sdx_lock_deinit(&m->lock);
    sdx_mem_free(mem, m);
}

/* Before IR version 4 no graph is open: inputs with initializers cannot be fed. */
static enum sdx_status settle_inputs(struct sdx_context *cx, struct sdx_ir *ir, bool open)
{
    struct sdx_ir_graph *g = &ir->graphs[0];
    open = open && ir->ir_version >= 4;
    for (int32_t i = 0; open && i < g->count_inputs; i++) {
        struct sdx_tensor *t = g->values[g->inputs[i]].constant;
        if (!t || !t->needs_copy) continue;
        sdx_tensor_settle(t, sdx_arena_copy(ir->arena, t->data, t->bytes));
        if (!t->data) return SDX_FAIL_MEMORY(cx);
    }
    if (open) return SDX_OK;
    int32_t kept = 0;
    for (int32_t i = 0; i < g->count_inputs; i++) {
        struct sdx_ir_value *v = &g->values[g->inputs[i]];
        if (v->constant)
            v->flags &= ~(uint32_t)SDX_IR_INPUT;
        else
            g->inputs[kept++] = g->inputs[i];
    }
    g->count_inputs = kept;
    return SDX_OK;
}

/* Each length of an input that is not known is one of its own, those of other values are unknown.
 */
static enum sdx_status forget_names(struct sdx_context *cx, struct sdx_ir *ir)
{
    for (int32_t n = 0; n < ir->count_graphs; n++)
        for (int32_t v = 0; v < ir->graphs[n].count_values; v++) {
            struct sdx_ir_value *value = &ir->graphs[n].values[v];
            struct sdx_type *t = &value->type;
            if (t->kind != SDX_KIND_TENSOR || !t->has_shape || t->rank == 0) continue;
            int64_t *dims = sdx_arena_copy(ir->arena, t->dims, (size_t)t->rank * sizeof *dims);
            for (int d = 0; dims && d < t->rank; d++) {
                if (dims[d] >= -1) continue;
                dims[d] = n == 0 && value->flags & SDX_IR_INPUT ? sdx_ir_symbol_new(ir) : -1;
                if (!dims[d]) return SDX_FAIL_MEMORY(cx);
            }
            if (!dims) return SDX_FAIL_MEMORY(cx);
            t->dims = dims;
        }
    return SDX_OK;
}

enum sdx_status sdx_model_import(struct sdx_context *cx, struct sdx_model *m,
                                 struct sdx_arena *arena, bool open, struct sdx_ir **out)
{
    SDX_TRY(import_graph(cx, m, arena, out));
    SDX_TRY(settle_inputs(cx, *out, open));
    if (open) SDX_TRY(forget_names(cx, *out));
    SDX_TRY(sdx_ops_bind(cx, *out, true));
    return sdx_infer_model(cx, *out, 0, NULL, NULL);
}

/* Constants of which passes made others, and which no node reads any more, leave memory. */
static enum sdx_status drop_unread(struct sdx_context *cx, struct sdx_model *m,
                                   const struct sdx_ir *ir)
{
    for (int32_t i = 0; i < ir->count_graphs; i++) {
        const struct sdx_ir_graph *g = &ir->graphs[i];
        int32_t *uses = sdx_ir_uses(g, &m->arena);
        if (!uses) return SDX_FAIL_MEMORY(cx);
        for (int32_t v = 0; v < g->count_values; v++)
            if (g->values[v].constant && uses[v] == 0)
                sdx_store_drop(m->store, g->values[v].constant);
    }
    return SDX_OK;
}

static void drop(void *store, const struct sdx_tensor *constant)
{
    sdx_store_drop(store, constant);
}

static enum sdx_status make_graph(struct sdx_context *cx, struct sdx_model *m, sdx_level level,
                                  bool open, struct sdx_ir **out)
{
    SDX_TRY(sdx_model_import(cx, m, &m->arena, open, out));
    (*out)->drop = drop;
    (*out)->user = m->store;
    SDX_TRY(sdx_passes_run(cx, *out, level));
    return drop_unread(cx, m, *out);
}

/* Why a plan file has no such graph. */
static enum sdx_status fail_in_plan(struct sdx_context *cx, const struct sdx_model *m,
                                    sdx_level level)
{
    if ((int)level != m->plan.level)
        return SDX_FAIL(cx, SDX_NOT_SUPPORTED,
                        "plan file: made at optimisation level %d, expected level %d",
                        m->plan.level, (int)level);
    return SDX_FAIL(
        cx, SDX_NOT_SUPPORTED,
        "plan file: made with the initializers of inputs, which cannot be fed to it, and "
        "lengths of one name that are equal");
}

enum sdx_status sdx_model_graph_get(struct sdx_context *cx, struct sdx_model *m, sdx_level level,
                                    bool open, const struct sdx_ir **out)
{
    *out = NULL;
    enum sdx_status status = SDX_OK;
    sdx_lock_take(&m->lock);
    for (struct sdx_model_graph *g = m->graphs; g && !*out; g = g->next)
        if (g->level == level && g->is_open == open) *out = g->ir;
    if (!*out && m->plan.bytes) {
        status = fail_in_plan(cx, m, level);
    } else if (!*out) {
        struct sdx_ir *ir = NULL;
        sdx_context_clear(&m->cx);
        status = make_graph(&m->cx, m, level, open, &ir);
        if (status == SDX_OK) status = keep_graph(&m->cx, m, level, open, ir);
        if (status == SDX_OK)
            *out = ir;
        else if (ir)
            sdx_ir_deinit(ir);
        status = tell(cx, m, NULL, status);
    }
    sdx_lock_give(&m->lock);
    return status;
}

enum sdx_status sdx_model_check(struct sdx_context *cx, const char *path, const void *bytes,
                                size_t size, bool fully, sdx_text_fn fault, void *user)
{
    struct sdx_model *m = new_model(cx, 0);
    if (!m) return SDX_FAIL_MEMORY(cx);
    struct sdx_faults faults = {
        .fault = fault, .user = user, .is_strict = true, .is_structure_only = !fully};
    enum sdx_status status = open_bytes(&m->cx, m, path, &bytes, &size);
    if (status == SDX_OK && sdx_plan_is(bytes, size))
        status = SDX_FAIL(&m->cx, SDX_BAD_DATA, "is a plan file, expected an ONNX model");
    if (status == SDX_OK) status = sdx_onnx_read_model(&m->cx, &m->arena, bytes, size, &m->message);
    if (status == SDX_OK) status = build_ir(&m->cx, m, true, &faults);
    if (status == SDX_BAD_MODEL && faults.count == 0 && fault) {
        faults.count = 1;
        fault(m->cx.error.text, user);
    }
    if (status == SDX_OK && faults.count) status = SDX_BAD_MODEL;
    if (status == SDX_BAD_MODEL)
        status = SDX_FAIL(cx, SDX_BAD_MODEL, "%s%s%lld fault%s", path ? path : "", path ? ": " : "",
                          (long long)faults.count, faults.count == 1 ? "" : "s");
    else
        status = tell(cx, m, path, status);
    sdx_model_free(m);
    return status;
}

/* A node that inference refuses, told to the caller's function. */
struct lenient {
    sdx_text_fn fault;
    void *user;
};

static bool tell_node(void *user, struct sdx_context *cx, const struct sdx_ir_graph *graph,
                      const struct sdx_ir_node *node)
{
    const struct lenient *lenient = user;
    char place[256], line[256 + SDX_ERROR_TEXT];
    snprintf(line, sizeof line, "%s: %s", sdx_ir_node_describe(graph, node, place, sizeof place),
             cx->error.text);
    lenient->fault(line, lenient->user);
    return true;
}

static enum sdx_status write_inferred(struct sdx_context *cx, struct sdx_model *m, const char *to,
                                      struct lenient *lenient)
{
    const bool go_on = lenient->fault != NULL;
    const uint32_t flags = SDX_INFER_DEFAULTS_HOLD | (go_on ? 0 : SDX_INFER_STRICT);
    struct sdx_onnx_model *message = NULL;
    struct sdx_file_writer writer;
    SDX_TRY(import_graph(cx, m, &m->arena, &m->ir));
    SDX_TRY(sdx_ops_bind(cx, m->ir, false));
    SDX_TRY(sdx_infer_model(cx, m->ir, flags, go_on ? tell_node : NULL, lenient));
    SDX_TRY(sdx_ir_annotate(cx, &m->arena, m->ir, m->message, &message));
    SDX_TRY(sdx_file_writer_open(cx, to, &writer));
    enum sdx_status status = sdx_onnx_write_model(cx, message, &writer);
    if (status == SDX_OK) return sdx_file_writer_close(&writer);
    sdx_file_writer_abandon(&writer);
    return status;
}

enum sdx_status sdx_model_infer(struct sdx_context *cx, const char *path, const char *to,
                                sdx_text_fn fault, void *user)
{
    struct sdx_model *m = new_model(cx, 0);
    if (!m) return SDX_FAIL_MEMORY(cx);
    struct lenient lenient = {fault, user};
    const void *bytes = NULL;
    size_t size = 0;
    enum sdx_status status = open_bytes(&m->cx, m, path, &bytes, &size);
    if (status == SDX_OK && sdx_plan_is(bytes, size))
        status = SDX_FAIL(&m->cx, SDX_BAD_DATA, "is a plan file, expected an ONNX model");
    if (status == SDX_OK) status = sdx_onnx_read_model(&m->cx, &m->arena, bytes, size, &m->message);
    if (status == SDX_OK) status = write_inferred(&m->cx, m, to, &lenient);
    status = tell(cx, m, path, status);
    sdx_model_free(m);
    return status;
}
