/* SPDX-License-Identifier: Apache-2.0
 * BatchNormalization, x: [N, C, inner]. Inferring is one multiply and add with two numbers a
 * channel. Training normalises with the batch's own mean and variance (of the population) and gives
 * the running ones. With spatial = 0 (before opset 9) every activation is a channel. */
#include "ops/batch_norm.h"

#include <math.h>

#include "kernels/channel_block.h"
#include "kernels/conv_block.h"
#include "kernels/vec.h"
#include "tensor/convert.h"

struct batch_norm {
    int64_t count, channels, inner;
    float epsilon, momentum;
};

static double at(const struct sdx_tensor *t, int64_t i)
{
    return t->dtype == SDX_F32 ? ((const float *)t->data)[i] : ((const double *)t->data)[i];
}

static void put(struct sdx_tensor *t, int64_t i, double value)
{
    if (t->dtype == SDX_F32)
        ((float *)t->data)[i] = (float)value;
    else
        ((double *)t->data)[i] = value;
}

/* y = x * scale + shift for channels first .. last-1 */
static void coefficients(const struct batch_norm *p, const struct sdx_step *step, int64_t first,
                         int64_t last, float *scale, float *shift)
{
    for (int64_t c = first; c < last; c++) {
        double factor = at(step->in[1], c) / sqrt(at(step->in[4], c) + p->epsilon);
        scale[c - first] = (float)factor;
        shift[c - first] = (float)(at(step->in[2], c) - at(step->in[3], c) * factor);
    }
}

/* Parts over N * C rows; [N, C] without inner axes over N. */
static enum sdx_status run_f32(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct batch_norm *p = step->params;
    const struct sdx_vec *vec = sdx_vec();
    const float *from = step->in[0]->data;
    float *to = step->out[0]->data, *scale = x->scratch;
    if (p->inner == 1) {
        size_t n = (size_t)p->channels;
        float *shift = scale + n;
        coefficients(p, step, 0, p->channels, scale, shift);
        int64_t begin = sdx_part_begin(p->count, step->parts, part, 1);
        int64_t end = sdx_part_begin(p->count, step->parts, part + 1, 1);
        for (int64_t i = begin; i < end; i++) {
            float *row = to + i * p->channels;
            vec->f32_mul(from + i * p->channels, 1, scale, 1, row, n);
            vec->f32_add(row, 1, shift, 1, row, n);
        }
        return SDX_OK;
    }
    int64_t rows = p->count * p->channels;
    int64_t begin = sdx_part_begin(rows, step->parts, part, 1);
    int64_t end = sdx_part_begin(rows, step->parts, part + 1, 1);
    for (int64_t row = begin; row < end; row++) {
        float shift = 0;
        coefficients(p, step, row % p->channels, row % p->channels + 1, scale, &shift);
        vec->f32_affine(from + row * p->inner, scale[0], shift, to + row * p->inner,
                        (size_t)p->inner);
    }
    return SDX_OK;
}

/* Blocked channels: parts over the blocks of all images. */
static enum sdx_status run_blocked(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct batch_norm *p = step->params;
    const int64_t lanes = sdx_block_lanes(), blocks = (p->channels + lanes - 1) / lanes;
    const int64_t rows = p->count * blocks, size = p->inner * lanes;
    float *scale = x->scratch, *shift = scale + lanes;
    int64_t end = sdx_part_begin(rows, step->parts, part + 1, 1);
    memset(scale, 0, 2 * (size_t)lanes * sizeof *scale);
    for (int64_t row = sdx_part_begin(rows, step->parts, part, 1); row < end; row++) {
        int64_t first = row % blocks * lanes, last = first + lanes;
        coefficients(p, step, first, last < p->channels ? last : p->channels, scale, shift);
        sdx_channel_block()->f32_affine((const float *)step->in[0]->data + row * size, scale, shift,
                                        (float *)step->out[0]->data + row * size, p->inner);
    }
    return SDX_OK;
}

/* Any width, and training: parts over the channels. */
static void statistics(const struct batch_norm *p, const struct sdx_tensor *in, int64_t channel,
                       double *mean, double *variance)
{
    double n = (double)(p->count * p->inner), sum = 0, squares = 0;
    for (int64_t i = 0; i < p->count; i++)
        for (int64_t j = 0; j < p->inner; j++)
            sum += at(in, (i * p->channels + channel) * p->inner + j);
    *mean = sum / n;
    for (int64_t i = 0; i < p->count; i++)
        for (int64_t j = 0; j < p->inner; j++) {
            double d = at(in, (i * p->channels + channel) * p->inner + j) - *mean;
            squares += d * d;
        }
    *variance = squares / n;
}

static void normalise(const struct batch_norm *p, const struct sdx_step *step, int64_t channel,
                      double mean, double variance)
{
    double factor = at(step->in[1], channel) / sqrt(variance + p->epsilon);
    double bias = at(step->in[2], channel);
    for (int64_t i = 0; i < p->count; i++)
        for (int64_t j = 0; j < p->inner; j++) {
            int64_t k = (i * p->channels + channel) * p->inner + j;
            put(step->out[0], k, (at(step->in[0], k) - mean) * factor + bias);
        }
}

static enum sdx_status run_wide(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)x;
    const struct batch_norm *p = step->params;
    int64_t end = sdx_part_begin(p->channels, step->parts, part + 1, 1);
    for (int64_t c = sdx_part_begin(p->channels, step->parts, part, 1); c < end; c++)
        normalise(p, step, c, at(step->in[3], c), at(step->in[4], c));
    return SDX_OK;
}

static enum sdx_status run_training(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)x;
    const struct batch_norm *p = step->params;
    int64_t end = sdx_part_begin(p->channels, step->parts, part + 1, 1);
    for (int64_t c = sdx_part_begin(p->channels, step->parts, part, 1); c < end; c++) {
        double mean = 0, variance = 0, m = p->momentum;
        statistics(p, step->in[0], c, &mean, &variance);
        double results[4] = {at(step->in[3], c) * m + mean * (1 - m),
                             at(step->in[4], c) * m + variance * (1 - m), mean, variance};
        if (step->out[0]) normalise(p, step, c, mean, variance);
        for (int k = 1; k < step->count_out && k < 5; k++)
            if (step->out[k]) put(step->out[k], c, results[k - 1]);
    }
    return SDX_OK;
}

/* Versions before 14 train when more than Y is wanted (and, before 7, is_test is not set). */
static bool trains(const struct sdx_ir_node *node, int64_t opset)
{
    if (opset >= 14) return sdx_ir_attr_int(node, "training_mode", 0) != 0;
    if (opset < 7 && sdx_ir_attr_int(node, "is_test", 0) != 0) return false;
    for (int k = 1; k < node->count_outputs; k++)
        if (node->outputs[k] >= 0) return true;
    return false;
}

enum sdx_status sdx_batch_norm_prepare(struct sdx_prepare *px)
{
    const struct sdx_tensor *x = px->in[0];
    struct batch_norm *p = SDX_PREPARE_NEW(px, struct batch_norm);
    if (!p) return px->cx->error.status;
    if (x->rank < 1)
        return SDX_FAIL(px->cx, SDX_BAD_INPUT, "BatchNormalization: input is a scalar");
    p->count = x->dims[0];
    p->channels = x->rank > 1 ? x->dims[1] : 1;
    p->inner = 1;
    for (int d = 2; d < x->rank; d++)
        p->inner *= x->dims[d];
    if (px->opset < 9 && sdx_ir_attr_int(px->node, "spatial", 1) == 0) {
        p->channels *= p->inner;
        p->inner = 1;
    }
    bool f32 = true;
    for (int i = 0; i < 5; i++) {
        int dtype = px->in[i]->dtype;
        f32 = f32 && dtype == SDX_F32;
        if (dtype != SDX_F32 && dtype != SDX_F64)
            return SDX_FAIL(px->cx, SDX_NOT_SUPPORTED, "BatchNormalization: element type %s",
                            sdx_dtype_name(dtype));
        if (i > 0 && px->in[i]->count != p->channels)
            return SDX_FAIL(px->cx, SDX_BAD_INPUT,
                            "BatchNormalization: input %d has %lld entries for %lld channels", i,
                            (long long)px->in[i]->count, (long long)p->channels);
    }
    p->epsilon = sdx_ir_attr_float(px->node, "epsilon", 1e-5f);
    p->momentum = sdx_ir_attr_float(px->node, "momentum", 0.9f);
    bool training = trains(px->node, px->opset);
    int64_t items = training || !f32 ? p->channels
                    : p->inner == 1  ? p->count
                                     : p->count * p->channels;
    int64_t parts = sdx_prepare_parts((double)x->count, 32768, items > 0 ? items : 1);
    if (training)
        return sdx_prepare_step(px, "BatchNormalization training", run_training, p, parts, 0);
    if (x->layout == SDX_LAYOUT_BLOCKED)
        return sdx_prepare_step(px, "BatchNormalization", run_blocked, p, parts,
                                2 * sizeof(float) * (size_t)sdx_block_lanes());
    size_t scratch = 64;
    if (f32 && p->inner == 1) scratch = 2 * sizeof(float) * (size_t)p->channels + 64;
    return sdx_prepare_step(px, "BatchNormalization", f32 ? run_f32 : run_wide, p, parts, scratch);
}

void sdx_batch_norm_layout(struct sdx_prepare *px, struct sdx_layouts *want)
{
    if (px->opset < 9 && sdx_ir_attr_int(px->node, "spatial", 1) == 0) return;
    for (int i = 0; i < 5; i++)
        if (px->in[i]->dtype != SDX_F32) return;
    if (px->in[0]->layout == SDX_LAYOUT_BLOCKED && !trains(px->node, px->opset))
        want->in[0] = want->out[0] = SDX_LAYOUT_BLOCKED;
}

enum sdx_status sdx_batch_norm_infer(struct sdx_infer *ix)
{
    sdx_infer_copy(ix, 0, 0);
    for (int k = 1; k < ix->count_out; k++) {
        int input = ix->opset >= 14 ? 2 + k : 3 + (k - 1) % 2;
        if (!sdx_infer_has(ix, input)) continue;
        sdx_infer_copy(ix, k, input);
    }
    return SDX_OK;
}
