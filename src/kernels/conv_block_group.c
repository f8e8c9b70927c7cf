/* SPDX-License-Identifier: Apache-2.0
 * Cutting, packing and copies of conv_block_group.h. */
#include "kernels/conv_block_group.h"

#include <string.h>

#include "kernels/conv_gather.h"
#include "kernels/tables.h"

enum {
    TAPS = 3,                    /* of a kernel row */
    LONG = 40,                   /* outputs whose pixels are read in place */
    EDGE = SDX_CONV_GROUP_LEAST, /* outputs at either end of such a row */
    STRIP = 96 << 10             /* bytes of copied rows, for the second cache */
};

struct group_cut {
    int64_t lanes, channels; /* of a block; that each of its outputs sums up, of one input block */
    int64_t outputs, blocks; /* blocks of the output; of the input for each */
    int64_t rows, strips;    /* output rows of a part, at most */
    int64_t bundles;         /* parts that share the blocks of the output */
    struct conv_segment segments[3];
    int count;
    int64_t columns; /* the most that are copied */
};
static int64_t rows_in(const struct sdx_conv_shape *s, int64_t rows)
{
    return (rows - 1) * s->stride[1] + s->kernel[1];
}
static struct group_cut cut_of(const struct sdx_conv_shape *s)
{
    struct group_cut c = {.lanes = sdx_kernel_tables()->block.lanes};
    const int64_t icg = s->ic / s->groups;
    c.channels = conv_least(icg, c.lanes);
    c.outputs = conv_divide_up(s->oc, c.lanes);
    c.blocks = conv_divide_up(icg, c.lanes);
    c.count = conv_segments(s, LONG, EDGE, c.segments);
    for (int i = 0; i < c.count; i++)
        c.columns = conv_most(c.columns, c.segments[i].columns);
    const int64_t row = conv_most(1, c.columns * c.lanes * c.blocks * (int64_t)sizeof(float));
    const int64_t fit = conv_most(STRIP / row, s->kernel[1]);
    const int64_t wanted = conv_wanted(conv_worth(s));
    c.strips = conv_divide_up(s->out[1], (fit - s->kernel[1]) / s->stride[1] + 1);
    c.strips = conv_most(c.strips, conv_divide_up(wanted, c.outputs));
    c.strips = conv_least(c.strips, conv_most(1, s->out[1]));
    c.rows = conv_divide_up(s->out[1], c.strips);
    c.bundles = conv_least(c.outputs, conv_divide_up(wanted, c.strips));
    return c;
}

/* A block of outputs for each group, or groups that share blocks? */
static bool is_cut_by_blocks(const struct sdx_conv_shape *s, int64_t lanes)
{
    const int64_t icg = s->ic / s->groups, ocg = s->oc / s->groups;
    if (s->ic != s->groups * icg || s->oc != s->groups * ocg || icg == 0) return false;
    return ocg == lanes ? icg % lanes == 0 : icg == ocg && ocg > 1 && lanes % ocg == 0;
}
/* Weights of 16 bits: panels keep whole blocks of them so; the few of groups within a block become
 * f32. */
bool sdx_group_block_fits(const struct sdx_conv_shape *s)
{
    const struct sdx_conv_block_table *table = &sdx_kernel_tables()->block;
    if (!table->f32_group_row || s->groups < 2) return false;
    if (s->half != SDX_HALF_NONE && s->ic / s->groups >= table->lanes) return false;
    if (s->in[0] != 1 || s->out[0] != 1 || s->kernel[0] != 1 || s->pad_begin[0] != 0) return false;
    return s->kernel[2] == TAPS && s->stride[2] <= 2 && s->dilation[1] == 1 &&
           s->dilation[2] == 1 && s->out[2] >= SDX_CONV_GROUP_LEAST &&
           is_cut_by_blocks(s, table->lanes);
}

/* [block of the output][block][kernel row][channel][kernel column][output channel] */
static int64_t weights_of_output(const struct sdx_conv_shape *s)
{
    const int64_t lanes = sdx_kernel_tables()->block.lanes;
    return lanes * (s->ic / s->groups) * s->kernel[1] * TAPS;
}
size_t sdx_group_block_packed_size(const struct sdx_conv_shape *s)
{
    const int64_t outputs = conv_divide_up(s->oc, sdx_kernel_tables()->block.lanes);
    return (size_t)(outputs * weights_of_output(s)) * sizeof(float);
}
void sdx_group_block_pack(const struct sdx_conv_shape *s, const sdx_weight_f32 *weights,
                          void *packed, const struct sdx_pieces *pieces)
{
    (void)pieces;
    const int64_t lanes = sdx_kernel_tables()->block.lanes, icg = s->ic / s->groups;
    const int64_t taps = s->kernel[1] * TAPS, channels = conv_least(icg, lanes);
    float *to = packed;
    for (int64_t o = 0; o < s->oc; o += lanes)
        for (int64_t b = 0; b < icg; b += channels)
            for (int64_t row = 0; row < taps; row += TAPS)
                for (int64_t i = 0; i < channels * TAPS; i++) {
                    const int64_t at = (b + i / TAPS) * taps + row + i % TAPS;
                    for (int64_t j = o; j < o + lanes; j++)
                        *to++ = j < s->oc ? weights[j * icg * taps + at] : 0.0f;
                }
}

int64_t sdx_group_block_parts(const struct sdx_conv_shape *s)
{
    const struct group_cut c = cut_of(s);
    return s->batch * c.bundles * c.strips;
}
size_t sdx_group_block_scratch(const struct sdx_conv_shape *s)
{
    const struct group_cut c = cut_of(s);
    return (size_t)(c.blocks * rows_in(s, c.rows) * c.columns * c.lanes) * sizeof(float);
}

/* Columns `left` on of `rows` rows of a block's image from row `first` on, zeros beyond it. Rows
 * beyond it stay as they are. */
static void copy_rows(const struct sdx_conv_shape *s, int64_t lanes, const float *x, int64_t first,
                      int64_t rows, int64_t left, int64_t columns, float *to)
{
    int64_t lo, hi;
    conv_valid(left, 1, s->in[2], columns, &lo, &hi);
    if (lo >= hi) lo = hi = columns;
    for (int64_t row = first; row < first + rows; row++, to += columns * lanes) {
        if (row < 0 || row >= s->in[1]) continue;
        memset(to, 0, (size_t)(lo * lanes) * sizeof *to);
        if (lo < hi)
            memcpy(to + lo * lanes, x + (row * s->in[2] + left + lo) * lanes,
                   (size_t)((hi - lo) * lanes) * sizeof *to);
        memset(to + hi * lanes, 0, (size_t)((columns - hi) * lanes) * sizeof *to);
    }
}
/* Rows row0..row1 of a segment of a block of outputs. x, y: of its image; job: what all its rows
 * have. */
static void run_segment(const struct sdx_conv_shape *s, const struct group_cut *c,
                        const struct conv_segment *g, int64_t row0, int64_t row1, const float *x,
                        float *y, struct sdx_conv_group_row job, float *copy)
{
    const int64_t pixels = s->in[1] * s->in[2] * c->lanes, top = row0 * s->stride[1];
    const int64_t left = g->from * s->stride[2] - s->pad_begin[2], above = top - s->pad_begin[1];
    const int64_t count = rows_in(s, row1 - row0);
    job.width = g->end - g->from;
    job.pitch = (g->columns ? g->columns : s->in[2]) * c->lanes;
    job.block = g->columns ? count * job.pitch : pixels;
    for (int64_t b = 0; g->columns && b < c->blocks; b++)
        copy_rows(s, c->lanes, x + b * pixels, above, count, left, g->columns,
                  copy + b * job.block);
    const float *weights = job.weights;
    const int64_t of_row = c->channels * TAPS * c->lanes;
    for (int64_t h = row0; h < row1; h++) {
        const int64_t first = h * s->stride[1] - s->pad_begin[1]; /* row of the input */
        int64_t lo, hi;
        conv_valid(first, 1, s->in[1], s->kernel[1], &lo, &hi);
        job.rows = conv_most(hi - lo, 0);
        job.weights = weights + lo * of_row;
        job.x = job.rows == 0 ? x
                : g->columns  ? copy + (first + lo - above) * job.pitch
                              : x + ((first + lo) * s->in[2] + left) * c->lanes;
        job.y = y + (h * s->out[2] + g->from) * c->lanes;
        sdx_kernel_tables()->block.f32_group_row(&job);
    }
}
void sdx_group_block_part(const struct sdx_conv_shape *s, const float *x, const void *packed,
                          float *y, const struct sdx_epilogue *e, int64_t part, void *scratch)
{
    const struct group_cut c = cut_of(s);
    const int64_t strip = part % c.strips, bundle = part / c.strips % c.bundles;
    const int64_t row0 = conv_share(s->out[1], strip, c.strips);
    const int64_t row1 = conv_share(s->out[1], strip + 1, c.strips);
    const int64_t first = conv_share(c.outputs, bundle, c.bundles);
    const int64_t last = conv_share(c.outputs, bundle + 1, c.bundles);
    const int64_t image = part / c.strips / c.bundles;
    const int64_t size_x = c.blocks * s->in[1] * s->in[2] * c.lanes;
    const int64_t size_y = s->out[1] * s->out[2] * c.lanes;
    const int64_t size_w = weights_of_output(s);
    const struct sdx_epilogue rest = {.act = e->act, .a = e->a, .b = e->b};
    const bool is_late = e->act > SDX_ACT_CLIP || e->residual; /* in a pass of its own */
    float bias[16] = {0};
    struct sdx_conv_group_row job = {.blocks = c.blocks,
                                     .channels = (int)c.channels,
                                     .weights_block = size_w / c.blocks,
                                     .bias = bias,
                                     .stride = (int)s->stride[2]};
    conv_limits(is_late ? SDX_ACT_NONE : e->act, e->a, e->b, &job.lo, &job.hi);
    for (int64_t g = first; g < last; g++) {
        const int64_t plane = image * c.outputs + g, channels = s->oc - g * c.lanes;
        if (e->bias_row)
            memcpy(bias, e->bias_row + g * c.lanes,
                   (size_t)conv_least(c.lanes, channels) * sizeof *bias);
        job.weights = (const float *)packed + g * size_w;
        for (int i = 0; i < c.count; i++)
            run_segment(s, &c, &c.segments[i], row0, row1, x + plane * size_x, y + plane * size_y,
                        job, scratch);
        if (!is_late) continue;
        const int64_t at = plane * size_y + row0 * s->out[2] * c.lanes;
        sdx_kernel_tables()->gemm.f32_finish(y + at, y + at, (row1 - row0) * s->out[2] * c.lanes,
                                             0.0f, e->residual ? e->residual + at : NULL, &rest);
    }
}
