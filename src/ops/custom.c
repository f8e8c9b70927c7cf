/* SPDX-License-Identifier: Apache-2.0
 * Operators of the caller's own: their table, and the row functions that call back. */
#include "ops/custom.h"

#include <limits.h>
#include <stddef.h>

#include "ops/schema.h"
#include "ops/step_host.h"

/* ---- inference ---- */

static const struct sdx_tensor *infer_value(const struct sdx_node *node, int i)
{
    return sdx_infer_value(node->ix, i);
}

static enum sdx_status infer_custom(struct sdx_infer *ix)
{
    const struct sdx_custom_row *row = sdx_custom_of(ix->node);
    const int count_out = ix->count_out;
    if (!row->given.infer) {
        for (int k = 0; k < count_out; k++)
            ix->out[k].kind = SDX_KIND_TENSOR;
        return SDX_OK;
    }
    const struct sdx_type unknown = {.kind = SDX_KIND_NONE};
    const struct sdx_type **out = sdx_arena_array(ix->arena, (size_t)count_out + 1, sizeof *out);
    if (!out) return SDX_FAIL_MEMORY(ix->cx);
    for (int k = 0; k < count_out; k++)
        out[k] = ix->node->outputs[k] >= 0 ? &unknown : NULL;
    struct sdx_node n = {.cx = ix->cx,
                         .arena = ix->arena,
                         .ir = ix->ir,
                         .node = ix->node,
                         .ix = ix,
                         .value = infer_value};
    SDX_TRY(sdx_node_describe(&n, ix->in, out));
    return sdx_custom_result(ix->cx, row->given.infer(&n, row->given.user), "infer");
}

enum sdx_status sdx_custom_result(struct sdx_context *cx, enum sdx_status status,
                                  const char *callback)
{
    if (status == SDX_OK) return cx->error.status;
    return SDX_FAIL(cx, status, "the operator's %s failed", callback);
}

/* ---- running ---- */

struct custom_params {
    const struct sdx_node *node;
    bool *is_dynamic, *is_made; /* of each output */
};

static enum sdx_status run_custom(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct custom_params *p = step->params;
    const struct sdx_custom_op *op = &p->node->row->given;
    struct sdx_call call = {x, step, p->node, p->is_dynamic, p->is_made};
    (void)part;
    for (int k = 0; k < step->count_out; k++)
        p->is_made[k] = !step->out[k];
    SDX_TRY(sdx_custom_result(x->cx, op->run(&call, p->node->state, op->user), "run"));
    for (int k = 0; k < step->count_out; k++)
        if (!p->is_made[k])
            return SDX_FAIL(x->cx, SDX_RUN_FAILED, "the operator did not make output %d", k);
    return SDX_OK;
}

static enum sdx_status prepare_custom(struct sdx_prepare *px)
{
    const struct sdx_prepare_host *host = px->host;
    struct custom_params *p = SDX_PREPARE_NEW(px, struct custom_params);
    bool *flags = sdx_prepare_alloc(px, 2 * (size_t)px->count_out + 1);
    if (!p || !flags) return px->cx->error.status;
    *p = (struct custom_params){host->custom(px), flags, flags + px->count_out};
    /* What has no shape yet is a header of rank 0 without the one element that it would have. */
    for (int k = 0; k < px->count_out; k++)
        p->is_dynamic[k] = px->out[k] && px->out[k]->rank == 0 && px->out[k]->count == 0;
    return sdx_prepare_step(px, "custom", run_custom, p, 1, 0);
}

/* ---- the table ---- */

const struct sdx_custom_row *sdx_custom_of(const struct sdx_ir_node *node)
{
    if (!node->op || node->op->prepare != prepare_custom) return NULL;
    return (const struct sdx_custom_row *)(const void *)node->op;
}

const struct sdx_custom_row *sdx_customs_find(const struct sdx_customs *customs,
                                              struct sdx_str domain, struct sdx_str name,
                                              int64_t opset)
{
    domain = sdx_ir_domain(domain);
    for (int32_t i = 0; customs && i < customs->count; i++) {
        const struct sdx_custom_row *row = &customs->rows[i];
        if (opset && (opset < row->op.since || (row->op.until && opset > row->op.until))) continue;
        if (sdx_str_is(name, row->op.name) &&
            (sdx_str_equal(domain, row->domain) || sdx_str_equal(domain, row->hidden)))
            return row;
    }
    return NULL;
}

static enum sdx_status check_given(struct sdx_context *cx, const struct sdx_custom_op *op)
{
    if (!op || op->size < offsetof(struct sdx_custom_op, user))
        return SDX_FAIL(cx, SDX_INVALID_ARGUMENT, "custom operator: the struct's size is %zu",
                        op ? op->size : 0);
    if (!op->name || !op->name[0] || !op->domain)
        return SDX_FAIL(cx, SDX_INVALID_ARGUMENT, "custom operator: it has no %s",
                        op->domain ? "name" : "domain");
    if (!op->run)
        return SDX_FAIL(cx, SDX_INVALID_ARGUMENT, "custom operator \"%s\": run is NULL", op->name);
    if (op->inputs_min < 0 || op->inputs_max < op->inputs_min || op->outputs_min < 0 ||
        op->outputs_max < op->outputs_min || op->since < 0 || (op->until && op->until < op->since))
        return SDX_FAIL(cx, SDX_INVALID_ARGUMENT,
                        "custom operator \"%s\": %d to %d inputs, %d to %d outputs, versions %d to "
                        "%d",
                        op->name, op->inputs_min, op->inputs_max, op->outputs_min, op->outputs_max,
                        op->since, op->until);
    return SDX_OK;
}

static bool overlap(const struct sdx_op *a, const struct sdx_op *b)
{
    return (!a->until || a->until >= b->since) && (!b->until || b->until >= a->since);
}

static enum sdx_status add_row(struct sdx_context *cx, struct sdx_arena *arena,
                               struct sdx_customs *customs, const struct sdx_custom_op *given)
{
    struct sdx_custom_row *row = &customs->rows[customs->count];
    memcpy(&row->given, given, given->size < sizeof *given ? given->size : sizeof *given);
    row->given.name = sdx_arena_strndup(arena, given->name, strlen(given->name));
    const char *domain = sdx_arena_strndup(arena, given->domain, strlen(given->domain));
    row->hidden = sdx_str(sdx_arena_printf(arena, SDX_IR_HIDDEN "%s", given->domain));
    if (!row->given.name || !domain || !row->hidden.ptr) return SDX_FAIL_MEMORY(cx);
    row->domain = sdx_ir_domain(sdx_str(domain));
    row->given.domain = row->domain.len ? domain : "";
    row->op = (struct sdx_op){.name = row->given.name,
                              .since = given->since,
                              .until = given->until,
                              .infer = infer_custom,
                              .prepare = prepare_custom,
                              .flags = SDX_OP_IMPURE | SDX_OP_TOLD_LATE};
    for (int32_t i = 0; i < customs->count; i++)
        if (strcmp(customs->rows[i].op.name, row->op.name) == 0 &&
            sdx_str_equal(customs->rows[i].domain, row->domain) &&
            overlap(&customs->rows[i].op, &row->op))
            return SDX_FAIL(cx, SDX_INVALID_ARGUMENT,
                            "custom operator \"%s\" of domain \"%s\" is given twice for a version",
                            given->name, given->domain);
    customs->count++;
    return SDX_OK;
}

enum sdx_status sdx_customs_create(struct sdx_context *cx, struct sdx_arena *arena, int count,
                                   const struct sdx_custom_op *const *ops,
                                   const struct sdx_customs **out)
{
    *out = NULL;
    if (count <= 0) return SDX_OK;
    struct sdx_customs *customs = sdx_arena_alloc(arena, sizeof *customs);
    if (customs) customs->rows = sdx_arena_array(arena, (size_t)count, sizeof *customs->rows);
    if (!customs || !customs->rows) return SDX_FAIL_MEMORY(cx);
    for (int i = 0; i < count; i++) {
        SDX_TRY(check_given(cx, ops[i]));
        SDX_TRY(add_row(cx, arena, customs, ops[i]));
    }
    *out = customs;
    return SDX_OK;
}

/* Tensors in attributes that lie at odd addresses are copied: callbacks read them in place. */
static enum sdx_status align_attrs(struct sdx_context *cx, struct sdx_ir *ir,
                                   struct sdx_ir_node *node)
{
    for (int32_t a = 0; a < node->count_attrs; a++) {
        struct sdx_ir_attr *attr = &node->attrs[a];
        struct sdx_tensor *one[] = {attr->tensor}, **all = attr->tensors ? attr->tensors : one;
        const int64_t count = attr->tensors ? attr->count : attr->tensor != NULL;
        for (int64_t i = 0; i < count; i++) {
            if (!all[i]->needs_copy) continue;
            sdx_tensor_settle(all[i], sdx_arena_copy(ir->arena, all[i]->data, all[i]->bytes));
            if (!all[i]->data) return SDX_FAIL_MEMORY(cx);
        }
    }
    return SDX_OK;
}

enum sdx_status sdx_custom_take(struct sdx_context *cx, struct sdx_ir *ir, struct sdx_ir_node *node)
{
    const struct sdx_custom_row *row =
        sdx_customs_find(ir->customs, node->domain, node->op_type, node->opset);
    if (!row) return SDX_OK;
    bool known = false;
    (void)sdx_schema_find(node->domain, node->op_type, node->opset, &known);
    if (known) node->domain = row->hidden;
    node->op = &row->op;
    if (!node->opset) node->opset = row->op.since ? row->op.since : 1; /* not imported */
    return align_attrs(cx, ir, node);
}
