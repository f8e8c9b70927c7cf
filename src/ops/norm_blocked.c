/* SPDX-License-Identifier: Apache-2.0
 * InstanceNormalization and GroupNormalization over blocked channels in two steps: mean and sum of
 * squares of each channel, block by block; then, again block by block, those of a group's channels
 * joined (Chan, Golub and LeVeque 1979) and applied. */
#include "ops/norm_blocked.h"

#include <math.h>

#include "kernels/channel_block.h"
#include "kernels/conv_block.h"
#include "kernels/pool_block.h"
#include "ops/move.h"
#include "ops/step_host.h"

enum { GRAIN = 8192 /* elements of a part */ };

struct norm {
    int64_t count, channels, blocks, pixels, each; /* each: channels of a group */
    float epsilon;
    bool per_group;
};

/* To [image][block][mean or squares][lane]. */
static enum sdx_status run_moments(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct norm *p = step->params;
    const int64_t lanes = sdx_block_lanes(), rows = p->count * p->blocks;
    const int64_t end = sdx_part_begin(rows, step->parts, part + 1, 1);
    for (int64_t r = sdx_part_begin(rows, step->parts, part, 1); r < end && !sdx_exec_cancelled(x);
         r++) {
        const float *from = (const float *)step->in[0]->data + r * p->pixels * lanes;
        float *moments = (float *)step->out[0]->data + r * 2 * lanes;
        sdx_pool_block_mean(p->pixels, from, moments);
        sdx_pool_block_squares(p->pixels, from, moments, moments + lanes);
    }
    return SDX_OK;
}

/* Mean and 1 / sqrt(variance + epsilon) of the group that begins with this channel. */
static void join_group(const struct norm *p, const float *moments, int64_t first, double *mean,
                       double *inverse)
{
    const int64_t lanes = sdx_block_lanes();
    double sum = 0, squares = 0;
    for (int64_t c = first; c < first + p->each; c++)
        sum += moments[c / lanes * 2 * lanes + c % lanes];
    *mean = sum / (double)p->each;
    for (int64_t c = first; c < first + p->each; c++) {
        const float *at = moments + c / lanes * 2 * lanes + c % lanes;
        squares += at[lanes] + (double)p->pixels * (at[0] - *mean) * (at[0] - *mean);
    }
    *inverse = 1 / sqrt(squares / (double)(p->each * p->pixels) + p->epsilon);
}

static enum sdx_status run_apply(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct norm *p = step->params;
    const int64_t lanes = sdx_block_lanes(), rows = p->count * p->blocks, size = p->pixels * lanes;
    const int64_t end = sdx_part_begin(rows, step->parts, part + 1, 1);
    for (int64_t r = sdx_part_begin(rows, step->parts, part, 1); r < end && !sdx_exec_cancelled(x);
         r++) {
        const float *moments =
            (const float *)step->in[1]->data + r / p->blocks * p->blocks * 2 * lanes;
        float scale[16] = {0}, shift[16] = {0};
        const int64_t c0 = r % p->blocks * lanes;
        double mean = 0, inverse = 0;
        for (int64_t c = c0; c < c0 + lanes && c < p->channels; c++) {
            const int64_t group = c / p->each, entry = p->per_group ? group : c;
            if (c == c0 || c % p->each == 0)
                join_group(p, moments, group * p->each, &mean, &inverse);
            const double factor = ((const float *)step->in[2]->data)[entry] * inverse;
            scale[c - c0] = (float)factor;
            shift[c - c0] = (float)(((const float *)step->in[3]->data)[entry] - mean * factor);
        }
        sdx_channel_block()->f32_affine((const float *)step->in[0]->data + r * size, scale, shift,
                                        (float *)step->out[0]->data + r * size, p->pixels);
    }
    return SDX_OK;
}

void sdx_norm_blocked_layout(struct sdx_prepare *px, struct sdx_layouts *want)
{
    for (int i = 0; i < 3; i++)
        if (px->in[i]->dtype != SDX_F32) return;
    if (px->in[0]->layout == SDX_LAYOUT_BLOCKED) want->in[0] = want->out[0] = SDX_LAYOUT_BLOCKED;
}

enum sdx_status sdx_norm_blocked_prepare(struct sdx_prepare *px, int64_t groups, bool per_group)
{
    const struct sdx_tensor *x = px->in[0];
    const int64_t lanes = sdx_block_lanes();
    struct norm *p = SDX_PREPARE_NEW(px, struct norm);
    if (!p) return px->cx->error.status;
    p->count = x->dims[0];
    p->channels = x->dims[1];
    p->blocks = (p->channels + lanes - 1) / lanes;
    p->each = p->channels / groups;
    p->pixels = sdx_move_product(x->dims, 2, x->rank);
    p->epsilon = sdx_ir_attr_float(px->node, "epsilon", 1e-5f);
    p->per_group = per_group;
    if (x->count == 0) return SDX_OK;
    const int64_t dims[] = {p->count, p->blocks, 2, lanes};
    struct sdx_tensor *moments = sdx_prepare_temp(px, SDX_F32, 4, dims);
    if (!moments) return px->cx->error.status;
    struct sdx_tensor *in[] = {px->in[0], moments, px->in[1], px->in[2]};
    const int64_t parts = sdx_prepare_parts((double)x->count, GRAIN, p->count * p->blocks);
    SDX_TRY(sdx_prepare_step_on(px, "norm_moments", run_moments, p, parts, 0, 1, in, 1, &moments));
    return sdx_prepare_step_on(px, "norm_blocked", run_apply, p, parts, 0, 4, in, 1, px->out);
}
