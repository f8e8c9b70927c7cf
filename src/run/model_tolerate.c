/* SPDX-License-Identifier: Apache-2.0
 * Faults of a file that other runtimes read over are taken out of its messages before the checker
 * sees them, each with a warning in the log. What is said twice counts as it is said last. */
#include "ops/schema.h"
#include "run/model.h"

enum { IR_VERSION_ASSUMED = 3 }; /* the oldest with imports */

#define WARN(cx, ...) sdx_log(cx, SDX_LOG_WARNING, "model", __VA_ARGS__)

/* Entries of a list of which the last one with a key counts: how many are left, in their order,
 * at the end of the list; -1: no memory. */
struct keyed {
    void *at;
    int32_t count;
    size_t size;
    struct sdx_str (*key_of)(const void *entry);
    const char *what; /* in the warning */
    bool wants_key;   /* one without a key is dropped */
};

static int32_t keep_last(struct sdx_context *cx, const struct keyed *list)
{
    char *const at = list->at;
    int32_t first = list->count;
    bool ok = true;
    struct sdx_map seen;
    sdx_map_init(&seen, cx->mem);
    for (int32_t i = list->count - 1; i >= 0 && ok; i--) {
        const struct sdx_str key = list->key_of(at + (size_t)i * list->size);
        if (key.len == 0 && list->wants_key) {
            WARN(cx, "%s has no name, it is ignored", list->what);
        } else if (sdx_map_get(&seen, key) >= 0) {
            WARN(cx, "%s \"%.*s\" is given twice, the last one counts", list->what,
                 SDX_STR_ARG(key));
        } else {
            ok = sdx_map_put(&seen, key, 0);
            first--;
            if (first != i)
                memcpy(at + (size_t)first * list->size, at + (size_t)i * list->size, list->size);
        }
    }
    sdx_map_deinit(&seen);
    return ok ? list->count - first : -1;
}

static struct sdx_str key_of_pair(const void *entry)
{
    return ((const struct sdx_onnx_pair *)entry)->key;
}

static struct sdx_str key_of_opset(const void *entry)
{
    return sdx_ir_domain(((const struct sdx_onnx_opset *)entry)->domain);
}

static struct sdx_str key_of_tensor(const void *entry)
{
    return ((const struct sdx_onnx_tensor *)entry)->name;
}

/* Drops what is said again from a list (a struct with `at` and `count`). */
#define KEEP_LAST(cx, list, key, text, needs_name)                                                 \
    do {                                                                                           \
        const struct keyed keyed = {(list)->at, (list)->count, sizeof *(list)->at,                 \
                                    key,        text,          needs_name};                        \
        const int32_t left = keep_last(cx, &keyed);                                                \
        if (left < 0) return SDX_FAIL_MEMORY(cx);                                                  \
        if (left < (list)->count) (list)->at += (list)->count - left;                              \
        (list)->count = left;                                                                      \
    } while (0)

/* The first attribute of a Constant is its value; what tools add behind it is dropped. */
static void trim_constant(struct sdx_context *cx, struct sdx_onnx_node *node)
{
    struct sdx_onnx_attrs *attrs = &node->attrs;
    if (attrs->count < 2 || sdx_ir_domain(node->domain).len ||
        !sdx_str_is(node->op_type, "Constant"))
        return;
    const struct sdx_schema *schema =
        sdx_schema_find(node->domain, node->op_type, sdx_schema_opset_newest, NULL);
    if (!schema || !sdx_schema_find_attr(schema, attrs->at[0].name)) return;
    WARN(cx, "Constant \"%.*s\": attribute %.*s is ignored",
         SDX_STR_ARG(node->outputs.count ? node->outputs.at[0] : node->name),
         SDX_STR_ARG(attrs->at[1].name));
    attrs->count = 1;
}

/* Attributes whose name begins with two underlines are notes of a tool. */
static void drop_notes(struct sdx_context *cx, struct sdx_onnx_node *node)
{
    int32_t left = 0;
    for (int32_t i = 0; i < node->attrs.count; i++) {
        const struct sdx_onnx_attr *attr = &node->attrs.at[i];
        if (attr->name.len > 2 && !memcmp(attr->name.ptr, "__", 2))
            WARN(cx, "node \"%.*s\" (%.*s): attribute %.*s is ignored", SDX_STR_ARG(node->name),
                 SDX_STR_ARG(node->op_type), SDX_STR_ARG(attr->name));
        else
            node->attrs.at[left++] = *attr;
    }
    node->attrs.count = left;
}

static bool is_imported(const struct sdx_onnx_opsets *opsets, struct sdx_str domain)
{
    for (int32_t i = 0; i < opsets->count; i++)
        if (sdx_str_equal(sdx_ir_domain(opsets->at[i].domain), domain)) return true;
    return false;
}

static enum sdx_status import_domain(struct sdx_context *cx, struct sdx_arena *arena,
                                     struct sdx_onnx_opsets *opsets, struct sdx_str domain)
{
    const int64_t version = sdx_schema_domain_version(domain);
    if (version == 0 || is_imported(opsets, domain)) return SDX_OK;
    struct sdx_onnx_opset *grown = sdx_arena_array(arena, (size_t)opsets->count + 1, sizeof *grown);
    if (!grown) return SDX_FAIL_MEMORY(cx);
    memcpy(grown, opsets->at, (size_t)opsets->count * sizeof *grown);
    grown[opsets->count] =
        (struct sdx_onnx_opset){.domain = domain, .version = version, .has_version = true};
    opsets->at = grown;
    opsets->count++;
    WARN(cx, "domain \"%.*s\" is not imported, version %lld is assumed", SDX_STR_ARG(domain),
         (long long)version);
    return SDX_OK;
}

/* Domains of operators that we know, of all nodes of a graph and the bodies in it. */
static enum sdx_status import_domains(struct sdx_context *cx, struct sdx_arena *arena,
                                      struct sdx_onnx_opsets *opsets,
                                      const struct sdx_onnx_graph *graph)
{
    for (int32_t n = 0; n < graph->nodes.count; n++) {
        const struct sdx_onnx_node *node = &graph->nodes.at[n];
        const struct sdx_str domain = sdx_ir_domain(node->domain);
        if (sdx_schema_find(domain, node->op_type, INT64_MAX, NULL))
            SDX_TRY(import_domain(cx, arena, opsets, domain));
        for (int32_t i = 0; i < node->attrs.count; i++) {
            const struct sdx_onnx_attr *attr = &node->attrs.at[i];
            if (attr->g) SDX_TRY(import_domains(cx, arena, opsets, attr->g));
            for (int32_t k = 0; k < attr->count_graphs; k++)
                SDX_TRY(import_domains(cx, arena, opsets, &attr->graphs[k]));
        }
    }
    return SDX_OK;
}

enum sdx_status sdx_model_tolerate(struct sdx_context *cx, struct sdx_model *m)
{
    struct sdx_onnx_model *model = m->message;
    KEEP_LAST(cx, &model->metadata, key_of_pair, "metadata", false);
    if (model->opsets.count == 0 || !model->graph) return SDX_OK; /* the checker tells */
    KEEP_LAST(cx, &model->opsets, key_of_opset, "import of domain", false);
    if (model->has_ir_version && model->ir_version == 0) {
        WARN(cx, "ir_version is 0, %d is assumed", IR_VERSION_ASSUMED);
        model->ir_version = IR_VERSION_ASSUMED;
    }
    KEEP_LAST(cx, &model->graph->initializers, key_of_tensor, "initializer", true);
    for (int32_t n = 0; n < model->graph->nodes.count; n++) {
        trim_constant(cx, &model->graph->nodes.at[n]);
        drop_notes(cx, &model->graph->nodes.at[n]);
    }
    return import_domains(cx, &m->arena, &model->opsets, model->graph);
}
