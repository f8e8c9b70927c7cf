/* SPDX-License-Identifier: Apache-2.0
 * Optional values. Since version 18 a plain tensor or sequence stands for an optional that holds
 * it. */
#include "ops/move.h"
#include "ops/op.h"

/* ---- Optional ---- */

static enum sdx_status infer_optional(struct sdx_infer *ix)
{
    const struct sdx_ir_attr *a = sdx_ir_attr(ix->node, "type");
    ix->out[0].kind = SDX_KIND_OPTIONAL;
    if (sdx_infer_has(ix, 0) && ix->in[0]->kind != SDX_KIND_NONE)
        ix->out[0].elem = ix->in[0];
    else if (a)
        ix->out[0].elem = a->type_value;
    else if (!sdx_infer_has(ix, 0))
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "Optional: neither an input nor a type is given");
    if (ix->out[0].elem) ix->out[0].dtype = ix->out[0].elem->dtype;
    return SDX_OK;
}

static enum sdx_status run_optional(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)part;
    struct sdx_tensor *item = NULL;
    if (step->count_in < 1 || !step->in[0])
        return sdx_exec_output_items(x, step, 0, SDX_KIND_OPTIONAL, *(const int *)step->params, 0,
                                     NULL);
    SDX_TRY(sdx_tensor_clone(x->cx, step->in[0], &item));
    enum sdx_status status =
        sdx_exec_output_items(x, step, 0, SDX_KIND_OPTIONAL, item->dtype, 1, &item);
    sdx_tensor_release(item);
    return status;
}

static enum sdx_status prepare_optional(struct sdx_prepare *px)
{
    const struct sdx_ir_attr *a = sdx_ir_attr(px->node, "type");
    int *dtype = SDX_PREPARE_NEW(px, int);
    if (!dtype) return SDX_OUT_OF_MEMORY;
    const struct sdx_type *t = a ? a->type_value : NULL;
    while (t && t->elem)
        t = t->elem;
    *dtype = t ? t->dtype : SDX_DTYPE_NONE;
    return sdx_prepare_step(px, "optional", run_optional, dtype, 1, 0);
}

/* ---- OptionalHasElement ---- */

static enum sdx_status infer_has_element(struct sdx_infer *ix)
{
    sdx_infer_set_dtype(ix, 0, SDX_BOOL);
    return sdx_infer_set_dims(ix, 0, 0, NULL);
}

static enum sdx_status run_has_element(struct sdx_exec *x, const struct sdx_step *step,
                                       int64_t part)
{
    (void)x;
    (void)part;
    const struct sdx_tensor *in = step->count_in > 0 ? step->in[0] : NULL;
    bool has = in && (in->kind != SDX_KIND_OPTIONAL || in->count > 0);
    *(uint8_t *)step->out[0]->data = has;
    return SDX_OK;
}

static enum sdx_status prepare_has_element(struct sdx_prepare *px)
{
    return sdx_prepare_step(px, "optional_has_element", run_has_element, NULL, 1, 0);
}

/* ---- OptionalGetElement ---- */

static enum sdx_status infer_get_element(struct sdx_infer *ix)
{
    if (!sdx_infer_has(ix, 0)) return SDX_OK;
    const struct sdx_type *t = ix->in[0];
    if (t->kind != SDX_KIND_OPTIONAL)
        ix->out[0] = *t;
    else if (t->elem)
        ix->out[0] = *t->elem;
    return SDX_OK;
}

static enum sdx_status run_get_element(struct sdx_exec *x, const struct sdx_step *step,
                                       int64_t part)
{
    (void)part;
    const struct sdx_tensor *in = step->in[0];
    if (in->kind != SDX_KIND_OPTIONAL) return sdx_exec_output_copy(x, step, 0, in);
    if (in->count < 1)
        return SDX_FAIL(x->cx, SDX_RUN_FAILED, "OptionalGetElement: the optional is empty");
    return sdx_exec_output_copy(x, step, 0, in->items[0]);
}

static enum sdx_status prepare_get_element(struct sdx_prepare *px)
{
    return sdx_prepare_step(px, "optional_get_element", run_get_element, NULL, 1, 0);
}

static const struct sdx_op ops[] = {
    {"Optional", 15, 0, infer_optional, KERNEL(prepare_optional), .flags = SDX_OP_DYNAMIC},
    {"OptionalHasElement", 15, 0, infer_has_element, KERNEL(prepare_has_element)},
    {"OptionalGetElement", 15, 0, infer_get_element, KERNEL(prepare_get_element),
     .flags = SDX_OP_DYNAMIC},
};
const struct sdx_op_family sdx_ops_optional = FAMILY("", ops);
