/* SPDX-License-Identifier: Apache-2.0
 * QLinearConvTranspose (of ours, made by the pass qdq): a ConvTranspose of one group between bytes,
 * with the inputs of QLinearConv and weights [ic, oc, kernel...], where each phase has taps. The
 * phases are convolutions of bytes whose pixels the last step puts in turn. */
#include "kernels/qdot.h"
#include "ops/conv_quant.h"
#include "ops/conv_transpose.h"
#include "ops/layout.h"

enum { W = 3, BIAS = 8, GRAIN = 1 << 16 /* bytes of a part of the interleaving */ };

static enum sdx_status infer(struct sdx_infer *ix)
{
    return sdx_conv_transpose_infer_of(ix, 0, W, sdx_infer_has(ix, BIAS) ? BIAS : -1,
                                       sdx_infer_dtype(ix, 7));
}

static void cost(const struct sdx_infer *ix, struct sdx_cost *cost)
{
    sdx_conv_transpose_cost_of(ix, W, cost);
}

static void layout(struct sdx_prepare *px, struct sdx_layouts *want)
{
    const struct sdx_tensor *x = px->in[0], *y = px->out[0];
    if (sdx_layout_serves(SDX_LAYOUT_LAST, x->dtype, x->rank)) want->in[0] = SDX_LAYOUT_LAST;
    if (sdx_layout_serves(SDX_LAYOUT_LAST, y->dtype, y->rank)) want->out[0] = SDX_LAYOUT_LAST;
}

struct conv_weights {
    const struct sdx_phases *p;
    const struct sdx_phase_conv *conv;
};

/* Weights of a convolution [slots * oc, ic, taps...], taps reversed. */
static void gather(const void *arg_, const uint8_t *weights, uint8_t *to)
{
    const struct conv_weights *arg = arg_;
    const struct sdx_conv_shape *t = &arg->p->t;
    const int64_t volume = t->kernel[0] * t->kernel[1] * t->kernel[2];
    for (int32_t f = 0; f < arg->p->count_phases; f++) {
        const struct sdx_phase *phase = &arg->p->phases[f];
        if (&arg->p->convs[phase->group] != arg->conv) continue;
        for (int64_t oc = 0; oc < t->oc; oc++)
            for (int64_t ic = 0; ic < t->ic; ic++)
                to = sdx_phase_filter(t, phase, weights + (ic * t->oc + oc) * volume, 1, to);
    }
}

/* Rows of the output, from the phases that their pixels alternate between. */
static enum sdx_status run_interleave(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct sdx_phases *p = step->params;
    const int64_t *s = p->t.stride, *out = p->t.out, oc = p->t.oc, lines = out[0] * out[1];
    const int64_t high = s[1] < out[1] ? s[1] : out[1], wide = s[2] < out[2] ? s[2] : out[2];
    const int64_t rows = p->t.batch * lines, end = sdx_part_begin(rows, step->parts, part + 1, 1);
    for (int64_t r = sdx_part_begin(rows, step->parts, part, 1); r < end && !sdx_exec_cancelled(x);
         r++) {
        const int64_t d = r % lines / out[1], h = r % out[1];
        uint8_t *to = (uint8_t *)step->out[0]->data + r * out[2] * oc;
        for (int64_t w = 0; w < wide; w++) {
            const struct sdx_phase *phase = &p->phases[(d % s[0] * high + h % s[1]) * wide + w];
            const struct sdx_phase_axis *a = phase->axes;
            const int64_t pitch = p->convs[phase->group].slots * oc;
            const int64_t line = (r / lines * a[0].count + d / s[0]) * a[1].count + h / s[1];
            const uint8_t *from = (const uint8_t *)step->in[phase->group]->data +
                                  line * a[2].count * pitch + phase->slot * oc;
            uint8_t *at = to + w * oc;
            for (int64_t k = 0; oc == 1 && k < a[2].count; k++)
                at[k * s[2]] = from[k * pitch];
            for (int64_t k = 0; oc > 1 && k < a[2].count; k++)
                memcpy(at + k * s[2] * oc, from + k * pitch, (size_t)oc);
        }
    }
    return SDX_OK;
}

static enum sdx_status add_phases(struct sdx_prepare *px, struct sdx_conv_q_source *source,
                                  struct sdx_phases *p, struct sdx_tensor *x, struct sdx_tensor *y)
{
    struct sdx_tensor **made =
        sdx_prepare_alloc(px, (size_t)p->count_convs * sizeof(struct sdx_tensor *));
    if (!made) return SDX_FAIL_MEMORY(px->cx);
    for (int32_t g = 0; g < p->count_convs; g++) {
        const struct sdx_conv_shape *s = &p->convs[g].s;
        const struct conv_weights weights = {p, &p->convs[g]};
        const int64_t dims[] = {s->batch, s->out[0], s->out[1], s->out[2], s->oc};
        made[g] = p->count_phases == 1 ? y : sdx_prepare_temp(px, y->dtype, 5, dims);
        if (!made[g]) return SDX_FAIL_MEMORY(px->cx);
        source->arg = &weights;
        source->variant = sdx_phases_variant(p, g);
        SDX_TRY(sdx_conv_q_add(px, source, s, x, made[g]));
    }
    if (p->count_phases == 1) return SDX_OK;
    const int64_t rows = p->t.batch * p->t.out[0] * p->t.out[1];
    return sdx_prepare_step_on(px, "conv_transpose_q_interleave", run_interleave, p,
                               sdx_prepare_parts((double)y->bytes, GRAIN, rows), 0, p->count_convs,
                               made, 1, &y);
}

static enum sdx_status prepare(struct sdx_prepare *px)
{
    struct sdx_phases *p = SDX_PREPARE_NEW(px, struct sdx_phases);
    struct sdx_conv_q_source source = {.make = gather};
    struct sdx_tensor *y = px->out[0];
    if (!p) return SDX_FAIL_MEMORY(px->cx);
    if (y->count == 0) return SDX_OK;
    SDX_TRY(sdx_conv_transpose_shape(px, W, &p->t));
    SDX_TRY(sdx_phases_find(px, 1, p));
    for (int32_t f = 0; f < p->count_phases; f++)
        if (p->phases[f].group < 0 || p->t.groups != 1)
            return SDX_FAIL(px->cx, SDX_NOT_SUPPORTED,
                            "QLinearConvTranspose: groups, or outputs without a tap");
    sdx_conv_q_facts(px, &source);
    SDX_TRY(sdx_conv_q_check(px, source.facts, p->t.oc, y->dtype));
    source.channels = p->t.oc;
    struct sdx_tensor *x = sdx_conv_q_last(px, px->in[0]), *to = sdx_conv_q_last(px, y);
    if (!x || !to) return SDX_FAIL_MEMORY(px->cx);
    if (x != px->in[0]) SDX_TRY(sdx_layout_reorder(px, px->in[0], x));
    SDX_TRY(add_phases(px, &source, p, x, to));
    return to != y ? sdx_layout_reorder(px, to, y) : SDX_OK;
}

static const struct sdx_op ops[] = {
    {"QLinearConvTranspose", 1, 0, infer, KERNEL(prepare), .cost = cost, .layout = layout,
     .note = "1 to 3 spatial axes"},
};

const struct sdx_op_family sdx_ops_conv_transpose_quant = FAMILY("ai.sardonyx", ops);
