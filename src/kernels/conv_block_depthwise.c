/* SPDX-License-Identifier: Apache-2.0
 * Depthwise convolution on blocked channels, line by line of a channel block. Where a line needs
 * pixels beside the image, its rows are copied once between zeros, into a ring of as many rows as
 * the kernel spans; the middle of a long line is read in place. Where a channel has several
 * outputs, all columns are copied, and a lane of the copy holds the channel that this lane of the
 * output reads: those of a block are of one block of the input, whatever the number of outputs.
 * Kernels that are deep add one plane of the input after the other to a plane of the output. */
#include "kernels/conv_block_depthwise.h"

#include <math.h>
#include <string.h>

#include "kernels/conv_gather.h"
#include "kernels/tables.h"
#include "kernels/tuning.h"

enum {
    EDGE = 8,  /* outputs at either end of a long line */
    LONG = 48, /* outputs that make a line long */
    BANDS = 4, /* of an image: threads keep their rows from step to step */
    BAND_LEAST = 7,
    PARTS = 32,    /* of an image, as far as these go */
    COPY = 1 << 14 /* vectors of a ring where all columns are copied, at most */
};

/* Has a channel several outputs? */
static bool is_multiplied(const struct sdx_conv_shape *s)
{
    return s->oc != s->ic;
}
static int64_t span_of(const struct sdx_conv_shape *s)
{
    return (s->kernel[1] - 1) * s->dilation[1] + 1;
}
/* The strips of a line; returns how many. */
static int strips_of(const struct sdx_conv_shape *s, struct conv_segment *to)
{
    if (!is_multiplied(s) && !sdx_depthwise_block_slides(s))
        return conv_segments(s, LONG, EDGE, to);
    const int64_t columns = is_multiplied(s) ? sdx_depthwise_block_columns(s, s->out[2]) : 0;
    *to = (struct conv_segment){0, s->out[2], columns};
    return 1;
}

struct depthwise_cut {
    int64_t lanes, blocks; /* channels of a block; blocks of an image */
    int64_t groups, bands; /* parts across the blocks, and down the output rows of a plane */
    int64_t ends[3];       /* outputs of a line in up to three strips */
    int64_t rings[3];      /* where their rings begin; < 0: read in place */
    int count;
    int64_t floats; /* of scratch */
};

static struct depthwise_cut cut_of(const struct sdx_conv_shape *s)
{
    const struct sdx_kernel_tuning *t = sdx_kernel_tuning();
    struct depthwise_cut c = {.lanes = sdx_kernel_tables()->block.lanes};
    const double row = (double)(s->kernel[1] * s->kernel[2] * s->out[2] * c.lanes);
    c.blocks = conv_divide_up(s->oc, c.lanes);
    c.bands = conv_most(1, conv_least(BANDS, s->out[1] / BAND_LEAST));
    const double band = row * (double)conv_divide_up(s->out[1], c.bands);
    const int64_t few = (int64_t)((double)(4 * t->part_macs) / fmax(1, band));
    const int64_t some = conv_divide_up(c.blocks * c.bands, PARTS);
    const int64_t per_part = conv_least(c.blocks, conv_most(conv_most(few, some), 1));
    c.groups = conv_divide_up(c.blocks, per_part);
    if (c.bands % 2 == 1) c.groups = conv_least(c.blocks, conv_even(c.groups, INT64_MAX));
    struct conv_segment segments[3];
    c.count = strips_of(s, segments);
    for (int i = 0; i < c.count; i++) {
        const int64_t columns = segments[i].columns;
        c.ends[i] = segments[i].end;
        c.rings[i] = columns ? c.floats : -1;
        c.floats += span_of(s) * columns * c.lanes;
    }
    return c;
}

/* Does each plane of the output see one of the input? */
static bool sees_planes(const struct sdx_conv_shape *s)
{
    return s->dilation[0] == 1 && s->pad_begin[0] < s->kernel[0] &&
           (s->out[0] - 1) * s->stride[0] - s->pad_begin[0] < s->in[0];
}

bool sdx_depthwise_block_fits(const struct sdx_conv_shape *s)
{
    if (s->groups != s->ic || !sees_planes(s) || s->kernel[1] > SDX_DEPTHWISE_ROWS ||
        s->kernel[2] >= INT32_MAX || s->in[1] >= INT32_MAX ||
        s->dilation[1] >= INT32_MAX / SDX_DEPTHWISE_ROWS)
        return false;
    return !is_multiplied(s) || (s->groups > 1 && s->oc % s->groups == 0 &&
                                 sdx_depthwise_block_columns(s, s->out[2]) <= COPY / span_of(s));
}

static int64_t taps_of(const struct sdx_conv_shape *s)
{
    return s->kernel[0] * s->kernel[1] * s->kernel[2];
}

/* [channel block][position of the kernel][lane] */
size_t sdx_depthwise_block_packed_size(const struct sdx_conv_shape *s)
{
    const int64_t lanes = sdx_kernel_tables()->block.lanes, taps = taps_of(s);
    return (size_t)(conv_divide_up(s->oc, lanes) * lanes * taps) * sizeof(float);
}
void sdx_depthwise_block_pack(const struct sdx_conv_shape *s, const sdx_weight_f32 *weights,
                              void *packed, const struct sdx_pieces *pieces)
{
    (void)pieces;
    float *to = packed;
    const int64_t lanes = sdx_kernel_tables()->block.lanes, taps = taps_of(s);
    for (int64_t c0 = 0; c0 < s->oc; c0 += lanes)
        for (int64_t t = 0; t < taps; t++)
            for (int64_t c = c0; c < c0 + lanes; c++)
                *to++ = c < s->oc ? weights[c * taps + t] : 0.0f;
}

int64_t sdx_depthwise_block_parts(const struct sdx_conv_shape *s)
{
    const struct depthwise_cut c = cut_of(s);
    return s->batch * s->out[0] * c.groups * c.bands;
}
size_t sdx_depthwise_block_scratch(const struct sdx_conv_shape *s)
{
    return (size_t)cut_of(s).floats * sizeof(float);
}

/* A band of a plane of one channel block. */
static void run_strips(const struct sdx_conv_shape *s, const struct depthwise_cut *c,
                       struct sdx_depthwise_strip *strip, float *rings)
{
    for (int i = 0; i < c->count; i++) {
        strip->from = i ? c->ends[i - 1] : 0;
        strip->end = c->ends[i];
        strip->ring = c->rings[i] < 0 ? NULL : rings + c->rings[i];
        sdx_kernel_tables()->block.f32_depthwise(s, strip);
    }
}

/* The biases of block b. */
static void bias_of(const struct sdx_conv_shape *s, const struct sdx_epilogue *e, int64_t b,
                    int64_t lanes, float *bias)
{
    for (int64_t i = 0, at = b * lanes; i < lanes; i++, at++)
        bias[i] = e->bias_row && at < s->oc ? e->bias_row[at] : 0.0f;
}

void sdx_depthwise_block_part(const struct sdx_conv_shape *s, const float *x, const void *packed,
                              float *y, const struct sdx_epilogue *epilogue, int64_t part,
                              void *scratch)
{
    static const float none[16];
    const struct depthwise_cut c = cut_of(s);
    const int64_t pixels_in = s->in[1] * s->in[2] * c.lanes;
    const int64_t pixels = s->out[1] * s->out[2] * c.lanes;
    const int64_t group = part % c.groups, band = part / c.groups % c.bands;
    const int64_t plane = part / c.groups / c.bands % s->out[0];
    const int64_t image = part / c.groups / c.bands / s->out[0];
    const int64_t first =
        plane * s->stride[0] - s->pad_begin[0]; /* plane that the kernel begins at */
    const int64_t k0 = conv_most(0, -first), k1 = conv_least(s->kernel[0], s->in[0] - first);
    const int64_t b0 = conv_share(c.blocks, group, c.groups);
    const int64_t b1 = conv_share(c.blocks, group + 1, c.groups), times = s->oc / s->ic;
    const int64_t blocks_in = conv_divide_up(s->ic, c.lanes);
    float bias[16], *rings = scratch;
    int32_t pick[16];
    struct sdx_depthwise_strip strip = {.h0 = conv_share(s->out[1], band, c.bands),
                                        .h1 = conv_share(s->out[1], band + 1, c.bands),
                                        .pick = is_multiplied(s) ? pick : NULL,
                                        .a = epilogue->a,
                                        .b = epilogue->b};
    if (c.floats) memset(rings, 0, (size_t)c.floats * sizeof(float));
    for (int64_t b = b0; b < b1; b++) {
        const float *planes = x + (image * blocks_in + b / times) * s->in[0] * pixels_in;
        const float *w = (const float *)packed + b * taps_of(s) * c.lanes;
        const int64_t to = ((image * c.blocks + b) * s->out[0] + plane) * pixels;
        strip.y = y + to;
        bias_of(s, epilogue, b, c.lanes, bias);
        for (int64_t i = 0; i < c.lanes && strip.pick; i++)
            pick[i] = (int32_t)((b * c.lanes + i) / times % c.lanes);
        for (int64_t k = k0; k < k1; k++) {
            const float *residual = epilogue->residual ? epilogue->residual + to : NULL;
            strip.x = planes + (first + k) * pixels_in;
            strip.w = w + k * s->kernel[1] * s->kernel[2] * c.lanes;
            strip.bias = k == k0 ? bias : none;
            strip.residual = k == k0 ? residual : strip.y;
            strip.act = k == k1 - 1 ? epilogue->act : SDX_ACT_NONE;
            run_strips(s, &c, &strip, rings);
        }
    }
}

void sdx_depthwise_block_lines(const struct sdx_conv_shape *s, const struct sdx_depthwise_lines *l,
                               const float *x, const void *packed, float *y,
                               const struct sdx_epilogue *e, void *scratch)
{
    struct sdx_conv_shape seen = *s; /* an image of those rows and lines */
    seen.in[1] = l->rows;
    seen.out[1] = l->line1 - l->line0;
    seen.pad_begin[1] += l->row0 - l->line0 * s->stride[1];
    const struct depthwise_cut c = cut_of(&seen);
    float bias[16];
    struct sdx_depthwise_strip strip = {.x = x,
                                        .y = y,
                                        .residual = e->residual,
                                        .h1 = seen.out[1],
                                        .bias = bias,
                                        .act = e->act,
                                        .a = e->a,
                                        .b = e->b};
    if (c.floats) memset(scratch, 0, (size_t)c.floats * sizeof(float));
    for (int64_t b = l->block0; b < l->block1; b++) {
        bias_of(s, e, b, c.lanes, bias);
        strip.w = (const float *)packed + b * taps_of(s) * c.lanes;
        run_strips(&seen, &c, &strip, scratch);
        strip.x += l->x_step;
        strip.y += l->y_step;
        if (strip.residual) strip.residual += l->y_step;
    }
}
