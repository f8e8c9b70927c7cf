/* SPDX-License-Identifier: Apache-2.0
 * What the API tells about a model: inputs, outputs, metadata, parameters, work, operators. */
#include <stdlib.h>

#include "ops/op.h"
#include "ops/schema.h"
#include "run/model.h"

static const char *text_of(struct sdx_arena *arena, struct sdx_str s, bool *ok)
{
    const char *text = sdx_arena_strndup(arena, s.ptr ? s.ptr : "", s.len);
    *ok = *ok && text;
    return text;
}

static bool describe_value(struct sdx_model *m, const struct sdx_ir_value *v,
                           const struct sdx_onnx_value_infos *declared, struct sdx_value_info *info)
{
    bool ok = sdx_ir_value_describe(m->ir, &m->arena, v->name, &v->type, info);
    info->optional = v->constant != NULL;
    for (int32_t i = 0; ok && i < declared->count; i++) {
        const struct sdx_onnx_type *type = declared->at[i].type;
        if (!type || type->rank != info->rank || !sdx_str_equal(declared->at[i].name, v->name))
            continue;
        for (int d = 0; ok && d < info->rank; d++)
            if (type->dims[d].denotation.len)
                ((const char **)(uintptr_t)info->dim_denotations)[d] =
                    text_of(&m->arena, type->dims[d].denotation, &ok);
        break;
    }
    return ok;
}

static enum sdx_status describe_values(struct sdx_context *cx, struct sdx_model *m)
{
    const struct sdx_ir_graph *g = &m->ir->graphs[0];
    const struct sdx_onnx_graph *graph = m->message->graph;
    int32_t *uses = sdx_arena_array(&m->arena, (size_t)g->count_values + 1, sizeof *uses);
    m->inputs = sdx_arena_array(&m->arena, (size_t)g->count_inputs + 1, sizeof *m->inputs);
    m->outputs = sdx_arena_array(&m->arena, (size_t)g->count_outputs + 1, sizeof *m->outputs);
    if (!m->inputs || !m->outputs || !uses) return SDX_FAIL_MEMORY(cx);
    sdx_ir_count_uses(g, uses);
    for (int32_t i = 0; i < g->count_inputs; i++) {
        const struct sdx_ir_value *v = &g->values[g->inputs[i]];
        if (v->constant && m->ir->ir_version < 4) continue; /* cannot be fed */
        struct sdx_value_info *info = &m->inputs[m->count_inputs++];
        if (!describe_value(m, v, &graph->inputs, info)) return SDX_FAIL_MEMORY(cx);
        info->unused = uses[g->inputs[i]] == 0;
    }
    for (int32_t i = 0; i < g->count_outputs; i++)
        if (!describe_value(m, &g->values[g->outputs[i]], &graph->outputs,
                            &m->outputs[m->count_outputs++]))
            return SDX_FAIL_MEMORY(cx);
    return SDX_OK;
}

static enum sdx_status describe_texts(struct sdx_context *cx, struct sdx_model *m)
{
    const struct sdx_onnx_model *msg = m->message;
    struct sdx_model_facts *f = &m->facts;
    bool ok = true;
    f->name = text_of(&m->arena, msg->graph->name, &ok);
    f->producer = text_of(&m->arena, msg->producer, &ok);
    f->producer_version = text_of(&m->arena, msg->producer_version, &ok);
    f->domain = text_of(&m->arena, msg->domain, &ok);
    f->doc = text_of(&m->arena, msg->doc, &ok);
    f->graph_doc = text_of(&m->arena, msg->graph->doc, &ok);
    f->ir_version = msg->ir_version;
    f->model_version = msg->model_version;
    size_t opsets = (size_t)msg->opsets.count + 1, pairs = (size_t)msg->metadata.count + 1;
    const char **domains = sdx_arena_array(&m->arena, opsets, sizeof *domains);
    int64_t *versions = sdx_arena_array(&m->arena, opsets, sizeof *versions);
    const char **keys = sdx_arena_array(&m->arena, pairs, sizeof *keys);
    const char **values = sdx_arena_array(&m->arena, pairs, sizeof *values);
    if (!domains || !versions || !keys || !values) return SDX_FAIL_MEMORY(cx);
    for (int i = 0; i < msg->opsets.count; i++) {
        struct sdx_str domain = msg->opsets.at[i].domain;
        domains[i] = text_of(&m->arena, domain.len ? domain : SDX_STR("ai.onnx"), &ok);
        versions[i] = msg->opsets.at[i].version;
    }
    for (int i = 0; i < msg->metadata.count; i++) {
        keys[i] = text_of(&m->arena, msg->metadata.at[i].key, &ok);
        values[i] = text_of(&m->arena, msg->metadata.at[i].value, &ok);
    }
    f->count_opsets = msg->opsets.count;
    f->opset_domains = domains;
    f->opset_versions = versions;
    f->count_metadata = msg->metadata.count;
    f->metadata_keys = keys;
    f->metadata_values = values;
    f->count_functions = msg->count_functions;
    return ok ? SDX_OK : SDX_FAIL_MEMORY(cx);
}

static void count_parameters(struct sdx_model *m)
{
    struct sdx_model_facts *f = &m->facts;
    for (int32_t g = 0; g < m->ir->count_graphs; g++) {
        const struct sdx_ir_graph *graph = &m->ir->graphs[g];
        for (int32_t v = 0; v < graph->count_values; v++) {
            const struct sdx_tensor *t = graph->values[v].constant;
            if (!t) continue;
            f->count_initializers++;
            f->parameters += t->count;
            f->parameter_bytes += t->bytes;
        }
        for (int32_t n = 0; n < graph->count_nodes; n++) {
            const struct sdx_ir_node *node = &graph->nodes[n];
            f->count_nodes++;
            const struct sdx_ir_attr *a =
                sdx_str_is(node->op_type, "Constant") ? sdx_ir_attr(node, "value") : NULL;
            if (!a || !a->tensor) continue;
            f->parameters += a->tensor->count;
            f->parameter_bytes += a->tensor->bytes;
        }
    }
}

/* Multiply-accumulates with unknown dimensions taken as 1; a body counts once. */
static enum sdx_status count_macs(struct sdx_context *cx, struct sdx_model *m)
{
    struct sdx_arena work;
    sdx_arena_init(&work, cx->mem, SDX_MEM_OTHER);
    double macs = 0;
    enum sdx_status status = SDX_OK;
    m->facts.macs_exact = true;
    for (int32_t g = 0; g < m->ir->count_graphs && status == SDX_OK; g++) {
        const struct sdx_ir_graph *graph = &m->ir->graphs[g];
        for (int32_t n = 0; n < graph->count_nodes; n++) {
            const struct sdx_ir_node *node = &graph->nodes[n];
            if (!node->op || !node->op->cost) continue;
            sdx_arena_reset(&work);
            int count = node->count_inputs + node->count_outputs;
            struct sdx_type *types = sdx_arena_array(&work, (size_t)count + 1, sizeof *types);
            const struct sdx_type **in = sdx_arena_array(&work, (size_t)count + 1, sizeof *in);
            bool known = types && in;
            bool complete = true;
            for (int i = 0; known && i < count; i++) {
                int32_t v = i < node->count_inputs ? node->inputs[i]
                                                   : node->outputs[i - node->count_inputs];
                if (v < 0) continue;
                types[i] = graph->values[v].type;
                if (types[i].kind != SDX_KIND_TENSOR || !types[i].has_shape) complete = false;
                int64_t *dims = sdx_arena_array(&work, (size_t)types[i].rank + 1, sizeof *dims);
                known = dims != NULL;
                for (int d = 0; known && types[i].has_shape && d < types[i].rank; d++) {
                    dims[d] = types[i].dims[d] < 0 ? 1 : types[i].dims[d];
                    if (types[i].dims[d] < 0) m->facts.macs_exact = false;
                }
                types[i].dims = dims;
                if (i < node->count_inputs) in[i] = &types[i];
            }
            if (!known) {
                status = SDX_FAIL_MEMORY(cx);
                break;
            }
            if (!complete) {
                m->facts.macs_exact = false;
                continue;
            }
            struct sdx_cost cost = {0};
            struct sdx_infer ix = {.cx = cx,
                                   .arena = &work,
                                   .ir = m->ir,
                                   .node = node,
                                   .opset = node->opset,
                                   .count_in = node->count_inputs,
                                   .count_out = node->count_outputs,
                                   .in = in,
                                   .out = types + node->count_inputs};
            node->op->cost(&ix, &cost);
            macs += cost.macs;
        }
    }
    sdx_arena_deinit(&work);
    m->facts.macs = macs < 9e18 ? (int64_t)macs : INT64_MAX;
    return status;
}

static int compare_uses(const void *a, const void *b)
{
    const struct sdx_op_use *x = a, *y = b;
    int by_domain = strcmp(x->domain, y->domain);
    return by_domain ? by_domain : strcmp(x->name, y->name);
}

static enum sdx_status count_ops(struct sdx_context *cx, struct sdx_model *m)
{
    struct sdx_map map;
    sdx_map_init(&map, cx->mem);
    int32_t capacity = 0;
    bool ok = true;
    for (int32_t g = 0; g < m->ir->count_graphs && ok; g++) {
        const struct sdx_ir_graph *graph = &m->ir->graphs[g];
        for (int32_t n = 0; n < graph->count_nodes && ok; n++) {
            const struct sdx_ir_node *node = &graph->nodes[n];
            char *key = sdx_arena_printf(&m->arena, "%.*s:%.*s", SDX_STR_ARG(node->domain),
                                         SDX_STR_ARG(node->op_type));
            if (!key) {
                ok = false;
                break;
            }
            int32_t at = sdx_map_get(&map, sdx_str(key));
            if (at < 0) {
                if (m->count_op_uses == capacity) {
                    struct sdx_op_use *more =
                        sdx_arena_array(&m->arena, (size_t)capacity * 2 + 64, sizeof *more);
                    if (!more) {
                        ok = false;
                        break;
                    }
                    if (capacity) memcpy(more, m->op_uses, (size_t)capacity * sizeof *more);
                    m->op_uses = more;
                    capacity = capacity * 2 + 64;
                }
                at = m->count_op_uses++;
                m->op_uses[at] = (struct sdx_op_use){
                    .domain = text_of(&m->arena,
                                      node->domain.len ? node->domain : SDX_STR("ai.onnx"), &ok),
                    .name = text_of(&m->arena, node->op_type, &ok),
                    .opset = (int)node->opset,
                    .unsupported = node->op
                                       ? NULL
                                       : sdx_arena_printf(&m->arena, "no kernel for version %lld",
                                                          (long long)node->opset)};
                ok = ok && sdx_map_put(&map, sdx_str(key), at);
            }
            m->op_uses[at].count++;
        }
    }
    sdx_map_deinit(&map);
    if (!ok) return SDX_FAIL_MEMORY(cx);
    if (m->count_op_uses)
        qsort(m->op_uses, (size_t)m->count_op_uses, sizeof *m->op_uses, compare_uses);
    return SDX_OK;
}

enum sdx_status sdx_model_describe(struct sdx_context *cx, struct sdx_model *m)
{
    SDX_TRY(describe_values(cx, m));
    SDX_TRY(describe_texts(cx, m));
    count_parameters(m);
    SDX_TRY(count_macs(cx, m));
    return count_ops(cx, m);
}
