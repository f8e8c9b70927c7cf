/* SPDX-License-Identifier: Apache-2.0
 * ConvInteger and QLinearConv of one to three spatial axes. */
#include "kernels/qgemm.h"
#include "ops/conv_common.h"
#include "ops/product.h"
#include "ops/requant.h"
#include "ops/shared.h"
#include "tensor/convert.h"

static enum sdx_status infer_conv_integer(struct sdx_infer *ix)
{
    return sdx_conv_infer_of(ix, 0, 1, -1, SDX_I32);
}

static enum sdx_status infer_qlinear_conv(struct sdx_infer *ix)
{
    return sdx_conv_infer_of(ix, 0, 3, 8, sdx_infer_has(ix, 7) ? sdx_infer_dtype(ix, 7) : SDX_F32);
}

static void cost_qlinear_conv(const struct sdx_infer *ix, struct sdx_cost *cost)
{
    sdx_conv_cost_of(ix, 3, cost);
}

struct conv_q {
    struct sdx_qconv q;
    const void *packed, *facts; /* NULL: inputs 1 and 2 of the step */
    int dtype_y;                /* i32: the sums; f32: scaled; u8, i8: requantised */
    struct sdx_qclamp clamp;
    int64_t pixels;
};

struct store_q {
    const struct conv_q *p;
    struct sdx_qfacts facts;
    const int32_t *bias;
    void *y;
};

static void store_sums(void *arg_, int64_t n, int64_t channel, int64_t pixel, int64_t count,
                       const int32_t *sums)
{
    const struct store_q *arg = arg_;
    int64_t at = (n * arg->p->q.shape.oc + channel) * arg->p->pixels + pixel;
    const int32_t bias = arg->bias ? arg->bias[channel] : 0;
    if (arg->p->dtype_y == SDX_I32) {
        memcpy((int32_t *)arg->y + at, sums, (size_t)count * sizeof *sums);
    } else if (arg->p->dtype_y == SDX_F32) {
        for (int64_t i = 0; i < count; i++)
            ((float *)arg->y)[at + i] =
                (float)(int32_t)((uint32_t)sums[i] + (uint32_t)bias) * arg->facts.factor[channel];
    } else {
        sdx_requantize(sums, count, bias, arg->facts.factor[channel], arg->facts.zero_y,
                       arg->p->clamp, (uint8_t *)arg->y + at);
    }
}

static enum sdx_status run_conv_q(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct conv_q *p = step->params;
    struct store_q arg = {.p = p, .y = step->out[0]->data};
    if (sdx_exec_cancelled(x)) return SDX_OK;
    arg.facts = sdx_qfacts_view(p->facts ? p->facts : step->in[2]->data, 1, p->q.shape.oc);
    if (step->in[3]) arg.bias = step->in[3]->data;
    struct sdx_qconv q = p->q;
    q.zero_x = arg.facts.zero_a[0];
    sdx_qconv_part(&q, step->in[0]->data, p->packed ? p->packed : step->in[1]->data, part,
                   x->scratch, store_sums, &arg);
    return SDX_OK;
}

/* The zero points of the weights are taken away when these are packed. */
struct pack_q {
    const struct sdx_qconv *q;
    const void *weights;
};

static enum sdx_status pack_conv_q(struct sdx_context *cx, void *dst, void *arg_)
{
    (void)cx;
    const struct pack_q *arg = arg_;
    sdx_qconv_pack(arg->q, arg->weights, dst);
    return SDX_OK;
}

static enum sdx_status run_pack_q(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)x;
    (void)part;
    const struct conv_q *p = step->params;
    struct sdx_qconv q = p->q;
    q.zero_w = sdx_qfacts_view(p->facts ? p->facts : step->in[1]->data, 1, q.shape.oc).zero_b;
    sdx_qconv_pack(&q, step->in[0]->data, step->out[0]->data);
    return SDX_OK;
}

/* Weights and their zero points are constant: packed once. */
static enum sdx_status pack_constant_q(struct sdx_prepare *px, int w, const struct sdx_tensor *zero,
                                       size_t size, struct conv_q *p)
{
    int64_t oc = p->q.shape.oc;
    int32_t *zeros = sdx_prepare_alloc(px, (size_t)(oc ? oc : 1) * sizeof *zeros);
    if (!zeros) return SDX_FAIL_MEMORY(px->cx);
    for (int64_t i = 0; zero && i < oc; i++)
        zeros[i] = (int32_t)sdx_load_i64(zero->dtype, zero->data, zero->count == 1 ? 0 : i);
    struct sdx_qconv q = p->q;
    q.zero_w = zeros;
    struct pack_q arg = {&q, px->in[w]->data};
    const struct sdx_conv_shape *shape = &q.shape;
    int64_t form[] = {shape->groups, shape->kernel[0] * shape->kernel[1] * shape->kernel[2],
                      q.x_signed, q.w_signed,
                      (int64_t)sdx_hash_bytes(zeros, (size_t)oc * sizeof *zeros, 3)};
    p->packed =
        sdx_prepare_pack(px, w, "conv_q", sdx_pack_variant(form, 5), size, pack_conv_q, &arg);
    return p->packed ? SDX_OK : SDX_FAIL_MEMORY(px->cx);
}

/* Both integer convolutions: w is the node's input with the weights. */
static enum sdx_status prepare_conv_q(struct sdx_prepare *px, int w, struct sdx_qsource *source,
                                      struct sdx_tensor *bias)
{
    struct conv_q *p = SDX_PREPARE_NEW(px, struct conv_q);
    struct sdx_tensor *packed = NULL, *facts = NULL;
    if (!p) return SDX_FAIL_MEMORY(px->cx);
    if (px->out[0]->count == 0) return SDX_OK;
    struct sdx_conv_shape *s = &p->q.shape;
    SDX_TRY(sdx_conv_shape_of(px, px->in[0], px->in[w], px->out[0], s));
    p->q.x_signed = px->in[0]->dtype == SDX_I8;
    p->q.w_signed = px->in[w]->dtype == SDX_I8;
    p->dtype_y = px->out[0]->dtype;
    SDX_TRY(sdx_qclamp_read(px, &p->clamp));
    p->pixels = s->out[0] * s->out[1] * s->out[2];
    source->rows = 1;
    source->columns = s->oc;
    SDX_TRY(sdx_qfacts_prepare(px, source, &p->facts, &facts));
    size_t size = sdx_qconv_packed_size(&p->q);
    const struct sdx_tensor *zero = source->zero_b;
    if (px->in[w]->is_constant && (!zero || zero->is_constant)) {
        SDX_TRY(pack_constant_q(px, w, zero, size, p));
    } else {
        struct sdx_tensor *from[] = {px->in[w], facts};
        const int64_t bytes = (int64_t)size;
        packed = sdx_prepare_temp(px, SDX_U8, 1, &bytes);
        if (!packed) return SDX_FAIL_MEMORY(px->cx);
        SDX_TRY(sdx_prepare_step_on(px, "conv_q_pack", run_pack_q, p, 1, 0, 2, from, 1, &packed));
    }
    struct sdx_tensor *in[] = {px->in[0], packed, facts, bias};
    return sdx_prepare_step_on(px, "conv_q", run_conv_q, p, sdx_qconv_parts(&p->q),
                               sdx_qconv_scratch(&p->q), 4, in, 1, px->out);
}

static struct sdx_tensor *input(struct sdx_prepare *px, int i)
{
    return sdx_prepare_has(px, i) ? px->in[i] : NULL;
}

static enum sdx_status prepare_conv_integer(struct sdx_prepare *px)
{
    struct sdx_qsource source = {.zero_a = input(px, 2), .zero_b = input(px, 3)};
    return prepare_conv_q(px, 1, &source, NULL);
}

static enum sdx_status prepare_qlinear_conv(struct sdx_prepare *px)
{
    struct sdx_qsource source = {.scale_a = input(px, 1),
                                 .zero_a = input(px, 2),
                                 .scale_b = input(px, 4),
                                 .zero_b = input(px, 5),
                                 .scale_y = input(px, 6),
                                 .zero_y = input(px, 7)};
    return prepare_conv_q(px, 3, &source, input(px, 8));
}

static const struct sdx_op ops[] = {
    {"ConvInteger", 10, 0, infer_conv_integer, KERNEL(prepare_conv_integer), .cost = sdx_conv_cost,
     .note = "1 to 3 spatial axes"},
    {"QLinearConv", 10, 0, infer_qlinear_conv, KERNEL(prepare_qlinear_conv),
     .cost = cost_qlinear_conv, .note = "1 to 3 spatial axes"},
};

const struct sdx_op_family sdx_ops_conv_quant = FAMILY("", ops);
