/* SPDX-License-Identifier: Apache-2.0
 * LongformerAttention of com.microsoft: a token attends to those within a window around it and to
 * global ones; a global token attends to all, with projections of its own. Both are whole
 * attentions here, the first with a mask; each row is taken from one of them. */
#include <math.h>

#include "ops/attention_heads.h"

enum { X, WEIGHT, BIAS, MASK, GLOBAL_WEIGHT, GLOBAL_BIAS, GLOBAL, COUNT };

/* One batch entry: the mask of the keys where the query sees them, -inf elsewhere. */
static enum sdx_status run_window(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)x;
    const int64_t length = step->in[0]->dims[1], window = *(const int64_t *)step->params;
    const float *mask = (const float *)step->in[0]->data + part * length;
    const int32_t *global = (const int32_t *)step->in[1]->data + part * length;
    float *to = (float *)step->out[0]->data + part * length * length;
    for (int64_t i = 0; i < length; i++)
        for (int64_t j = 0; j < length; j++)
            *to++ = global[j] || (j - i <= window && i - j <= window) ? mask[j] : -INFINITY;
    return SDX_OK;
}

/* One batch entry: rows of global tokens come from the second input. */
static enum sdx_status run_select(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)x;
    const int64_t length = step->out[0]->dims[1], width = step->out[0]->dims[2];
    for (int64_t t = part * length; t < (part + 1) * length; t++) {
        const struct sdx_tensor *from = step->in[((const int32_t *)step->in[2]->data)[t] ? 1 : 0];
        memcpy((float *)step->out[0]->data + t * width, (const float *)from->data + t * width,
               (size_t)width * sizeof(float));
    }
    return SDX_OK;
}

/* Attention with these weights to a new tensor like the output. */
static enum sdx_status attend(struct sdx_prepare *px, const struct sdx_attention *form, int weight,
                              struct sdx_tensor **y)
{
    struct sdx_attention a = *form;
    struct sdx_tensor *rows = NULL, *bias = px->in[weight + 1];
    struct sdx_heads h[3];
    bool biased = false;
    const int64_t width = a.heads * a.size, dims[] = {a.batch, a.heads, a.queries, a.size};
    SDX_TRY(sdx_heads_project(px, px->in[X], weight, bias, &rows, &biased));
    for (int i = 0; i < 3; i++) {
        h[i] = sdx_heads_of_rows(rows, i * width, a.queries, a.size, 3 * width);
        if (!biased) SDX_TRY(sdx_heads_add_bias(px, &h[i], bias, i * width, dims));
    }
    *y = a.y = sdx_prepare_temp(px, SDX_F32, 3, px->out[0]->dims);
    if (!a.y) return px->cx->error.status;
    return sdx_heads_attention(px, &a, &h[0], &h[1], &h[2]);
}

static enum sdx_status prepare_longformer(struct sdx_prepare *px)
{
    const struct sdx_tensor *x = px->in[X];
    const int64_t heads = sdx_ir_attr_int(px->node, "num_heads", 0);
    int64_t *window = SDX_PREPARE_NEW(px, int64_t);
    if (!window) return SDX_FAIL_MEMORY(px->cx);
    *window = sdx_ir_attr_int(px->node, "window", 0);
    bool fits = x->rank == 3 && heads > 0 && x->dims[2] % heads == 0 && x->dtype == SDX_F32;
    for (int i = WEIGHT; fits && i <= GLOBAL_WEIGHT; i += GLOBAL_WEIGHT - WEIGHT)
        fits = px->in[i]->rank == 2 && px->in[i]->dims[1] == 3 * x->dims[2];
    if (!fits || px->in[MASK]->count != x->dims[0] * x->dims[1] ||
        px->in[GLOBAL]->count != px->in[MASK]->count || px->in[MASK]->dtype != SDX_F32 ||
        px->in[MASK]->rank != 2 || px->in[GLOBAL]->dtype != SDX_I32)
        return SDX_FAIL(px->cx, SDX_BAD_MODEL,
                        "LongformerAttention: shapes of input, weights and masks do not agree");
    struct sdx_attention a = {.batch = x->dims[0],
                              .heads = heads,
                              .queries = x->dims[1],
                              .keys = x->dims[1],
                              .mask_keys = x->dims[1],
                              .size = x->dims[2] / heads,
                              .value_size = x->dims[2] / heads,
                              .empty_is_zero = true};
    if (x->count == 0) return SDX_OK;
    a.scale = 1 / sqrtf((float)a.size);
    const int64_t dims[] = {a.batch, a.keys, a.keys};
    struct sdx_tensor *seen[] = {px->in[MASK], px->in[GLOBAL]}, *y[3] = {NULL, NULL};
    a.mask = sdx_prepare_temp(px, SDX_F32, 3, dims);
    if (!a.mask) return px->cx->error.status;
    SDX_TRY(sdx_prepare_step_on(px, "longformer_mask", run_window, window, a.batch, 0, 2, seen, 1,
                                &a.mask));
    a.mask_at[0] = a.keys * a.keys;
    a.mask_at[2] = a.keys;
    a.mask_at[3] = 1;
    SDX_TRY(attend(px, &a, WEIGHT, &y[0]));
    a.mask = px->in[MASK];
    a.mask_at[0] = a.keys;
    a.mask_at[2] = 0;
    SDX_TRY(attend(px, &a, GLOBAL_WEIGHT, &y[1]));
    y[2] = px->in[GLOBAL];
    return sdx_prepare_step_on(px, "longformer_rows", run_select, NULL, a.batch, 0, 3, y, 1,
                               px->out);
}

static const struct sdx_op ops[] = {
    {"LongformerAttention", 1, 0, sdx_infer_same, KERNEL(prepare_longformer),
     .flags = SDX_OP_VIA_F32},
};

const struct sdx_op_family sdx_ops_contrib_longformer = FAMILY("com.microsoft", ops);
