/* SPDX-License-Identifier: Apache-2.0
 * One step of one scope: each node through its adapter, then against the schema of the step's end,
 * so that what no adapter knows of is refused and never silently wrong. */
#include "convert/convert_model.h"

#include "convert/adapt.h"
#include "ops/schema.h"

static bool is_call(const struct sdx_rewrite *rx, const struct sdx_onnx_node *node)
{
    for (int32_t i = 0; i < rx->model->count_functions; i++) {
        const struct sdx_onnx_function *f = &rx->model->functions[i];
        if (sdx_str_equal(f->name, node->op_type) &&
            sdx_str_equal(sdx_ir_domain(f->domain), sdx_ir_domain(node->domain)) &&
            sdx_str_equal(f->overload, node->overload))
            return true;
    }
    return false;
}

/* ---- after the adapter: does the node fit? ---- */

static bool is_default(const struct sdx_adapt_default *row, const struct sdx_onnx_attr *attr)
{
    bool ones = true;
    switch (row->kind) {
    case SDX_DROP_INT: return attr->i == row->value;
    case SDX_DROP_TEXT: return sdx_str_is(attr->s, row->text);
    case SDX_DROP_ONES:
        for (int64_t i = 0; i < attr->ints.count; i++)
            ones &= attr->ints.at[i] == 1;
        return ones;
    case SDX_DROP_ALWAYS: break;
    }
    return true;
}

static enum sdx_status drop_defaults(struct sdx_rewrite *rx)
{
    int count = 0;
    const struct sdx_adapt_default *rows = sdx_adapt_defaults(&count);
    for (int i = 0; i < count && rx->domain.len == 0; i++) {
        if (rows[i].version != rx->from || !sdx_str_is(rx->node->op_type, rows[i].op)) continue;
        const struct sdx_onnx_attr *attr = sdx_rewrite_attr(rx->node, rows[i].attr);
        if (attr && (attr->ref.len ? rows[i].kind == SDX_DROP_ALWAYS : is_default(&rows[i], attr)))
            sdx_rewrite_remove(rx->node, rows[i].attr);
    }
    return SDX_OK;
}

static enum sdx_status fit_attrs(struct sdx_rewrite *rx, const struct sdx_schema *schema)
{
    struct sdx_onnx_node *node = rx->node;
    if (rx->to > rx->from) sdx_rewrite_remove(node, "consumed_inputs");
    for (int32_t a = 0; a < node->attrs.count; a++) {
        const struct sdx_onnx_attr *attr = &node->attrs.at[a];
        if (sdx_schema_find_attr(schema, attr->name)) continue;
        if (attr->type == SDX_ATTR_INT && !attr->ref.len)
            return sdx_rewrite_refuse(rx, "attribute %.*s is %lld, and version %lld has none",
                                      SDX_STR_ARG(attr->name), (long long)attr->i,
                                      (long long)rx->to);
        return sdx_rewrite_refuse(rx, "attribute %.*s%s%.*s%s is not in version %lld",
                                  SDX_STR_ARG(attr->name), attr->s.len ? " (" : "",
                                  SDX_STR_ARG(attr->s), attr->s.len ? ")" : "", (long long)rx->to);
    }
    for (int i = 0; i < schema->count_attrs; i++) {
        const struct sdx_schema_attr *want = &sdx_schema_attrs[schema->attrs + i];
        const char *name = sdx_schema_str(want->name);
        if (want->required && !sdx_rewrite_attr(node, name))
            return sdx_rewrite_refuse(rx, "attribute %s is missing, which version %lld expects",
                                      name, (long long)rx->to);
    }
    return SDX_OK;
}

static enum sdx_status fit_counts(struct sdx_rewrite *rx, const struct sdx_schema *schema)
{
    struct sdx_onnx_strings *in = &rx->node->inputs, *out = &rx->node->outputs;
    const int32_t most_in = sdx_schema_inputs_max(schema);
    const int32_t most_out = sdx_schema_outputs_max(schema);
    while (in->count > most_in && !in->at[in->count - 1].len)
        in->count--;
    while (out->count > most_out && !out->at[out->count - 1].len)
        out->count--;
    if (in->count > most_in || in->count < schema->inputs_min)
        return sdx_rewrite_refuse(rx, "has %d inputs, and version %lld takes %d to %d", in->count,
                                  (long long)rx->to, schema->inputs_min, most_in);
    for (int i = 0; i < in->count; i++) {
        const struct sdx_schema_param *param = sdx_schema_input(schema, i);
        if (!in->at[i].len && param && param->option == SDX_PARAM_SINGLE)
            return sdx_rewrite_refuse(rx, "input %d is left out, and version %lld wants it", i,
                                      (long long)rx->to);
    }
    if (out->count > most_out)
        return sdx_rewrite_refuse(rx, "has %d outputs, and version %lld makes at most %d",
                                  out->count, (long long)rx->to, most_out);
    return SDX_OK;
}

static enum sdx_status fit_type(struct sdx_rewrite *rx, const char *what, int i,
                                const struct sdx_type *type, const struct sdx_schema_param *now,
                                const struct sdx_schema_param *was)
{
    char text[160];
    if (!type || !now || sdx_schema_allows(&sdx_schema_typesets[now->types], type)) return SDX_OK;
    if (was && !sdx_schema_allows(&sdx_schema_typesets[was->types], type)) return SDX_OK;
    if (rx->ir)
        sdx_ir_type_describe(rx->ir, type, text, sizeof text);
    else
        text[0] = 0;
    return sdx_rewrite_refuse(rx, "%s %d is %s, which version %lld does not take", what, i, text,
                              (long long)rx->to);
}

/* Going down only: up, types are only added. */
static enum sdx_status fit_types(struct sdx_rewrite *rx, const struct sdx_schema *schema,
                                 const struct sdx_schema *before)
{
    const struct sdx_onnx_node *node = rx->node;
    for (int i = 0; i < node->inputs.count; i++)
        SDX_TRY(fit_type(rx, "input", i, sdx_rewrite_type(rx, node->inputs.at[i]),
                         sdx_schema_input(schema, i), sdx_schema_input(before, i)));
    for (int i = 0; i < node->outputs.count; i++)
        SDX_TRY(fit_type(rx, "output", i, sdx_rewrite_type(rx, node->outputs.at[i]),
                         sdx_schema_output(schema, i), sdx_schema_output(before, i)));
    const struct sdx_onnx_attr *to = sdx_rewrite_attr(node, "to");
    if (!to || rx->to < 6 || !sdx_str_is(node->op_type, "Cast")) return SDX_OK;
    const struct sdx_type made = {.kind = SDX_KIND_TENSOR, .dtype = (uint8_t)to->i};
    return fit_type(rx, "output", 0, &made, sdx_schema_output(schema, 0),
                    sdx_schema_output(before, 0));
}

static enum sdx_status fit(struct sdx_rewrite *rx, const struct sdx_schema *before)
{
    bool known = false;
    const struct sdx_schema *schema =
        sdx_schema_find(rx->domain, rx->node->op_type, rx->to, &known);
    if (!schema)
        return sdx_rewrite_refuse(rx, "version %lld has no such operator", (long long)rx->to);
    if (schema->deprecated && !before->deprecated)
        return sdx_rewrite_refuse(rx, "the operator is deprecated in version %lld",
                                  (long long)rx->to);
    if (rx->to < rx->from) SDX_TRY(drop_defaults(rx));
    SDX_TRY(fit_counts(rx, schema));
    SDX_TRY(fit_attrs(rx, schema));
    return rx->to < rx->from ? fit_types(rx, schema, before) : SDX_OK;
}

/* ---- a node, a scope ---- */

/* What an adapter would read of a function's own attributes is not known. */
static enum sdx_status refuse_references(struct sdx_rewrite *rx)
{
    for (int32_t a = 0; a < rx->node->attrs.count; a++)
        if (rx->node->attrs.at[a].ref.len)
            return sdx_rewrite_refuse(
                rx, "attribute %.*s is the function's \"%.*s\", whose value is not known",
                SDX_STR_ARG(rx->node->attrs.at[a].name), SDX_STR_ARG(rx->node->attrs.at[a].ref));
    return SDX_OK;
}

static enum sdx_status adapt_node(struct sdx_rewrite *rx)
{
    const int64_t boundary = rx->to > rx->from ? rx->to : rx->from;
    const struct sdx_schema *before =
        sdx_schema_find(rx->domain, rx->node->op_type, rx->from, NULL);
    if (!before)
        return sdx_rewrite_refuse(rx, "version %lld has no such operator", (long long)rx->from);
    if (before == sdx_schema_find(rx->domain, rx->node->op_type, rx->to, NULL)) return SDX_OK;
    const struct sdx_adapter *row = sdx_adapt_find(rx->domain, rx->node->op_type, boundary);
    sdx_adapt_fn *fn = !row ? NULL : rx->to > rx->from ? row->up : row->down;
    if (fn && fn != sdx_adapt_inputs_up) SDX_TRY(refuse_references(rx));
    if (fn) SDX_TRY(fn(rx));
    if (rx->status != SDX_OK || rx->drop) return rx->status;
    return fit(rx, before);
}

static bool put(struct sdx_rewrite *rx, const struct sdx_onnx_node *nodes, int32_t count)
{
    struct sdx_rewrite_list *done = &rx->done;
    if (done->count + count > done->capacity) {
        int32_t capacity = 2 * (done->count + count) + 64;
        struct sdx_onnx_node *grown =
            sdx_arena_array(rx->arena, (size_t)capacity, sizeof *done->at);
        if (!grown) return false;
        if (done->count) memcpy(grown, done->at, (size_t)done->count * sizeof *grown);
        done->at = grown;
        done->capacity = capacity;
    }
    if (count) memcpy(done->at + done->count, nodes, (size_t)count * sizeof *nodes);
    done->count += count;
    return true;
}

/* Must anything in the scope be looked at in this step? */
static bool concerns(const struct sdx_rewrite *rx, const struct sdx_onnx_node *node)
{
    return sdx_str_equal(sdx_ir_domain(node->domain), rx->domain) &&
           sdx_schema_find(rx->domain, node->op_type, rx->from, NULL) !=
               sdx_schema_find(rx->domain, node->op_type, rx->to, NULL) &&
           !is_call(rx, node);
}

enum sdx_status sdx_convert_step(struct sdx_rewrite *rx, struct sdx_rewrite_scope *scope,
                                 int64_t to)
{
    const struct sdx_onnx_nodes from = *scope->nodes;
    bool any = false;
    rx->scope = scope;
    rx->from = scope->version;
    rx->to = to;
    for (int32_t n = 0; n < from.count && !any; n++)
        any = concerns(rx, &from.at[n]);
    scope->version = to;
    if (!any) return SDX_OK;
    rx->done = (struct sdx_rewrite_list){NULL, 0, 0};
    for (int32_t n = 0; n < from.count; n++) {
        struct sdx_onnx_node node = from.at[n];
        rx->node = &node;
        rx->drop = false;
        rx->after = (struct sdx_rewrite_list){NULL, 0, 0};
        if (concerns(rx, &node)) SDX_TRY(adapt_node(rx));
        if (!rx->drop && !put(rx, &node, 1)) return SDX_FAIL_MEMORY(rx->cx);
        if (!put(rx, rx->after.at, rx->after.count)) return SDX_FAIL_MEMORY(rx->cx);
    }
    rx->node = NULL;
    *scope->nodes = (struct sdx_onnx_nodes){rx->done.at, rx->done.count};
    return rx->status;
}
