/* SPDX-License-Identifier: Apache-2.0
 * The operator that the pass `channel_norm` makes of layer normalisation (Ba, Kiros and Hinton,
 * 2016) over the channels of each pixel: y = (x - mean) / sqrt(variance + epsilon) * scale + bias,
 * where mean and variance are over axis 1. x and y: f32 [N, C, ...]; scale, and bias if there is
 * one: f32 [C]. Channels may be blocked. */
#include <math.h>

#include "kernels/channel_block.h"
#include "kernels/conv_block.h"
#include "kernels/vec.h"
#include "ops/move.h"
#include "ops/norm_blocked.h"
#include "ops/step_host.h"

enum { TILE = 256 /* pixels in the caches at once */, GRAIN = 8192 /* elements of a part */ };

struct norm {
    int64_t count, channels, blocks, pixels; /* count: N */
    int64_t tiles;                           /* of an image */
    float epsilon;
};

static enum sdx_status run_blocked(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct norm *p = step->params;
    const int64_t lanes = sdx_block_lanes(), room = p->blocks * lanes;
    float *scale = x->scratch, *bias = scale + room;
    memset(scale, 0, 2 * (size_t)room * sizeof *scale);
    memcpy(scale, step->in[1]->data, (size_t)p->channels * sizeof *scale);
    if (step->in[2]) memcpy(bias, step->in[2]->data, (size_t)p->channels * sizeof *bias);
    const struct sdx_channel_norm norm = {.channels = p->channels,
                                          .step = p->pixels * lanes,
                                          .scale = scale,
                                          .bias = bias,
                                          .epsilon = p->epsilon};
    const int64_t end = sdx_part_begin(p->count * p->tiles, step->parts, part + 1, 1);
    for (int64_t t = sdx_part_begin(p->count * p->tiles, step->parts, part, 1);
         t < end && !sdx_exec_cancelled(x); t++) {
        const int64_t pixel = t % p->tiles * TILE, left = p->pixels - pixel;
        const int64_t at = (t / p->tiles * p->blocks * p->pixels + pixel) * lanes;
        sdx_channel_block()->f32_norm(&norm, (const float *)step->in[0]->data + at,
                                      (float *)step->out[0]->data + at, left < TILE ? left : TILE);
    }
    return SDX_OK;
}

/* `columns` pixels of an image. room: 3 * TILE floats. */
static void norm_columns(const struct norm *p, const float *x, const float *scale,
                         const float *bias, float *y, float *room, int64_t columns)
{
    const struct sdx_vec *vec = sdx_vec();
    const size_t n = (size_t)columns;
    float *mean = room, *factor = room + TILE, *t = room + 2 * TILE;
    const float share = 1 / (float)p->channels;
    memset(room, 0, 2 * TILE * sizeof *room);
    for (int64_t c = 0; c < p->channels; c++)
        vec->f32_add(mean, 1, x + c * p->pixels, 1, mean, n);
    vec->f32_affine(mean, share, 0, mean, n);
    for (int64_t c = 0; c < p->channels; c++) {
        vec->f32_sub(x + c * p->pixels, 1, mean, 1, t, n);
        vec->f32_mul(t, 1, t, 1, t, n);
        vec->f32_add(factor, 1, t, 1, factor, n);
    }
    for (size_t i = 0; i < n; i++)
        factor[i] = 1 / sqrtf(factor[i] * share + p->epsilon);
    for (int64_t c = 0; c < p->channels; c++) {
        vec->f32_sub(x + c * p->pixels, 1, mean, 1, t, n);
        vec->f32_mul(t, 1, factor, 1, t, n);
        vec->f32_affine(t, scale[c], bias ? bias[c] : 0, y + c * p->pixels, n);
    }
}

static enum sdx_status run_plain(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct norm *p = step->params;
    const int64_t end = sdx_part_begin(p->count * p->tiles, step->parts, part + 1, 1);
    for (int64_t t = sdx_part_begin(p->count * p->tiles, step->parts, part, 1);
         t < end && !sdx_exec_cancelled(x); t++) {
        const int64_t pixel = t % p->tiles * TILE, left = p->pixels - pixel;
        const int64_t at = t / p->tiles * p->channels * p->pixels + pixel;
        norm_columns(p, (const float *)step->in[0]->data + at, step->in[1]->data,
                     step->in[2] ? step->in[2]->data : NULL, (float *)step->out[0]->data + at,
                     x->scratch, left < TILE ? left : TILE);
    }
    return SDX_OK;
}

static void channel_norm_layout(struct sdx_prepare *px, struct sdx_layouts *want)
{
    if (px->in[0]->layout == SDX_LAYOUT_BLOCKED) want->in[0] = want->out[0] = SDX_LAYOUT_BLOCKED;
}

static enum sdx_status prepare_channel_norm(struct sdx_prepare *px)
{
    const struct sdx_tensor *x = px->in[0];
    const int64_t lanes = sdx_block_lanes();
    struct norm *p = SDX_PREPARE_NEW(px, struct norm);
    if (!p) return SDX_FAIL_MEMORY(px->cx);
    for (int i = 0; i < 3; i++)
        if (px->in[i] && (px->in[i]->dtype != SDX_F32 || x->rank < 3 ||
                          (i > 0 && px->in[i]->count != x->dims[1])))
            return SDX_FAIL(px->cx, SDX_NOT_SUPPORTED,
                            "ChannelNormalization: input %d does not fit", i);
    if (x->count == 0) return SDX_OK;
    p->count = x->dims[0];
    p->channels = x->dims[1];
    p->blocks = (p->channels + lanes - 1) / lanes;
    p->pixels = sdx_move_product(x->dims, 2, x->rank);
    p->tiles = (p->pixels + TILE - 1) / TILE;
    p->epsilon = sdx_ir_attr_float(px->node, "epsilon", 1e-5f);
    const int64_t parts = sdx_prepare_parts((double)x->count, GRAIN, p->count * p->tiles);
    if (x->layout == SDX_LAYOUT_BLOCKED)
        return sdx_prepare_step(px, "channel_norm_blocked", run_blocked, p, parts,
                                2 * (size_t)(p->blocks * lanes) * sizeof(float));
    return sdx_prepare_step(px, "channel_norm", run_plain, p, parts, 3 * TILE * sizeof(float));
}

static const struct sdx_op ops[] = {
    {"ChannelNormalization", 1, 0, sdx_infer_same, KERNEL(prepare_channel_norm),
     .cost = sdx_norm_cost, .layout = channel_norm_layout, .flags = SDX_OP_INPLACE(0)},
};

const struct sdx_op_family sdx_ops_norm_channels = FAMILY("sardonyx", ops);
