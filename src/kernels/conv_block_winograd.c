/* SPDX-License-Identifier: Apache-2.0
 * Winograd's convolution on blocked channels: a block of tiles is transformed to V, matrices
 * [tiles, channels], one for each input of a tile, with the channels of all four phases where the
 * stride is 2; their products with the transformed weights U give M, chunk by chunk
 * of output channels, and each chunk's inverse transform is the output. Sizes of blocks and chunks
 * are those that keep V and M in the second cache while U is read in order. Where an image is one
 * block of few tiles, U would be read once a run: it is made from the filters then, panel by panel,
 * as reading nine numbers in place of 16 or 36 takes less time, memory and packing. With 16-bit
 * weights it always is: that is as fast as widening U would be. So it is with stride 2, where V
 * holds no more input channels than one such U, and M all output channels. */
#include "kernels/conv_block_winograd.h"

#include <math.h>
#include <string.h>

#include "kernels/conv_gather.h"
#include "kernels/tables.h"
#include "kernels/tuning.h"

enum {
    GAP = 16, /* floats between planes: their lines shall not share a set of the cache */
    MOST_PANEL = 32,
    MOST_PLANES = 64,
    AT_ONCE = 4,            /* input channels whose filters are packed at once */
    LATE_TILES = 100,       /* of an image, at most */
    LATE_LEAST = 512 << 10, /* bytes of U from which it is made late */
    PHASED_TILES = 64,      /* of a block with stride 2 */
    EVEN = 16               /* blocks, of which one more is much for a thread */
};

struct winograd_cut {
    int64_t lanes, step, planes;
    int axis;                  /* as in struct sdx_winograd_block */
    int taps;                  /* of a filter */
    int64_t high, wide, tiles; /* of a plane of an image, and of all */
    int64_t block, blocks;     /* tiles of a block */
    int64_t chunk, chunks;     /* vectors of output channels between two transforms of the output */
    int64_t vectors;           /* of all output channels */
    int64_t splits;            /* parts of a block, of whole chunks */
    int64_t plane_v, plane_m, group_v;
    int64_t phases; /* images whose products add up */
    int64_t pass;   /* input channels of which a late U is made */
    bool late;      /* U is made in each run, a panel at a time */
};

/* 1, 2: kernels of 3 along this axis; 0: of 3 x 3 in a plane; -1: others. */
static int axis_of(const struct sdx_conv_shape *s)
{
    const int64_t high = s->kernel[1], wide = s->kernel[2];
    return high == 3 && wide == 3   ? 0
           : high == 3 && wide == 1 ? 1
           : high == 1 && wide == 3 ? 2
                                    : -1;
}
/* What an output adds up of each position of the kernel in its plane: the channels of each plane
 * that the kernel covers, plane by plane. */
static int64_t depth_of(const struct sdx_conv_shape *s)
{
    return s->ic * s->kernel[0];
}
/* Tiles along an axis, of `step` outputs each; those of the outputs 0, d, 2 d ..., of 1, d + 1 ...
 * are as many, so the last ones may hold none. */
static int64_t tiles_along(const struct sdx_conv_shape *s, int axis, int64_t step, bool is_line)
{
    const int64_t d = is_line ? s->dilation[axis] : 1;
    return d * conv_divide_up(s->out[axis], step * d);
}
/* Chunks of 32 output channels, 64 where a row of U is long: whole panels on every set. */
static int64_t chunk_of(const struct sdx_conv_shape *s)
{
    return (depth_of(s) < 256 ? 32 : 64) / sdx_kernel_tables()->block.lanes;
}
static struct winograd_cut cut_of(const struct sdx_conv_shape *s)
{
    const struct sdx_conv_block_table *table = &sdx_kernel_tables()->block;
    struct winograd_cut c = {
        .lanes = table->lanes, .step = sdx_winograd_block_fits(s), .chunk = chunk_of(s)};
    c.axis = axis_of(s);
    c.planes = winograd_side((int)c.step) * (c.axis ? 1 : winograd_side((int)c.step));
    c.phases = winograd_phases((int)c.step, 0);
    c.pass = table->winograd_pass / c.phases;
    c.high = c.axis == 2 ? s->out[1] : tiles_along(s, 1, c.step, c.axis == 1);
    c.wide = c.axis == 1 ? s->out[2] : tiles_along(s, 2, c.step, c.axis == 2);
    c.tiles = s->batch * s->out[0] * c.high * c.wide;
    const int64_t one = c.high * c.wide;
    int64_t want = depth_of(s) <= 128 ? 24 : depth_of(s) <= 256 ? 48 : 72;
    if (c.axis) want *= 4; /* fewer planes */
    c.vectors = conv_divide_up(s->oc, c.lanes);
    const bool is_small = one <= conv_most(want, LATE_TILES);
    c.taps = c.axis ? 3 : 9;
    c.late = c.phases > 1 || s->half != SDX_HALF_NONE ||
             (c.step != 6 && !c.axis && is_small &&
              c.planes * c.vectors * c.lanes * depth_of(s) * (int64_t)sizeof(float) >= LATE_LEAST);
    if (c.late) c.chunk = 2;
    if (c.phases > 1)
        want = PHASED_TILES;
    else if (c.late && is_small) /* in halves where two parts would transform more tiles again
                                    than filters */
        want = 2 * one > s->oc && one >= 48 ? conv_divide_up(one, 2) : conv_most(want, one);
    c.blocks = conv_divide_up(c.tiles, want);
    c.blocks = conv_even(c.blocks, EVEN);
    c.block = conv_divide_up(c.tiles, conv_most(c.blocks, 1));
    c.blocks = conv_divide_up(c.tiles, conv_most(c.block, 1));
    c.chunks = conv_divide_up(c.vectors, c.chunk);
    /* Each part of a block transforms the whole input again: at 256 outputs 4 % of its work. An
     * only block is worth more of that. */
    c.splits = 1;
    while (2 * c.splits * c.blocks <= sdx_kernel_tuning()->block_parts &&
           2 * c.splits <= c.chunks && (c.late && c.splits == 1 ? 64 : 256 * c.splits) <= s->oc)
        c.splits *= 2;
    const int64_t groups = conv_divide_up(c.block, table->winograd_rows);
    c.group_v = table->winograd_rows * conv_divide_up(depth_of(s), c.lanes) * c.lanes;
    if (c.phases > 1) c.group_v = table->winograd_rows * c.phases * conv_least(depth_of(s), c.pass);
    c.plane_v = groups * c.group_v + GAP;
    const int64_t chunks = c.phases > 1 ? conv_divide_up(c.chunks, c.splits) : 1; /* in M at once */
    c.plane_m =
        conv_divide_up(conv_least(chunks * c.chunk, c.vectors), 2) * 2 * c.lanes * c.block + GAP;
    return c;
}

/* Cycles of a processor with 16 multiplications in one, from measurements on Zen 3: products at 92
 * % of that; the transforms of a tile and 8 channels; weights from memory at 5.6 bytes a cycle. */
static double cost_of(const struct sdx_conv_shape *s, int64_t step)
{
    const double tiles =
        (double)conv_divide_up(s->out[1], step) * (double)conv_divide_up(s->out[2], step);
    const double side = winograd_side((int)step), ic = (double)depth_of(s), oc = (double)s->oc;
    const double each = step == 6 ? 390 : step == 4 ? 165 : 60;
    const double transform = each * tiles * (ceil(ic / 8) + ceil(oc / 8));
    const double products = side * side * fmax(tiles, 4) * ic * oc / 14.8;
    return fmax(products, side * side * 4 * ic * oc / 5.6) + transform;
}
/* The same with stride 2, with the transforms of the filters of each block. */
static double cost_of_phases(const struct sdx_conv_shape *s)
{
    const double high = (double)conv_divide_up(s->out[1], 3);
    const double tiles = high * (double)conv_divide_up(s->out[2], 3);
    const double ic = (double)depth_of(s), oc = (double)s->oc;
    const double products = 49 * fmax(tiles, 4) * ic * oc / 15.2;
    const double filters = 15 * ceil(tiles / PHASED_TILES) * ic * oc;
    return products + filters + tiles * (250 * ceil(ic / 8) + 70 * ceil(oc / 8));
}
/* The same along an axis. */
static int line_fits(const struct sdx_conv_shape *s, int axis)
{
    const int other = 3 - axis;
    for (int i = 0; i < 3; i++)
        if (s->stride[i] != 1) return 0;
    if (s->in[other] != s->out[other] || s->pad_begin[other] != 0) return 0;
    if (s->winograd != 0) return s->winograd == 4 ? 4 : 0;
    const double ic = (double)depth_of(s), oc = (double)s->oc, lines = (double)s->out[other];
    const double tiles = (double)tiles_along(s, axis, 4, true) * lines;
    const double pixels = (double)s->out[axis] * lines;
    const double border = s->pad_begin[axis] > 0 ? 3 : 0;
    const double direct = fmax(3 * pixels / 14.3, 3 * 4 / 5.6) + border;
    const double products = fmax(6 * fmax(tiles, 4) / 14.8, 6 * 4 / 5.6);
    const double transform = 26.5 * tiles * (ceil(ic / 8) + ceil(oc / 8));
    return products * ic * oc + transform < 0.97 * direct * ic * oc ? 4 : 0;
}
int sdx_winograd_block_fits(const struct sdx_conv_shape *s)
{
    const int axis = axis_of(s);
    const bool flat = s->in[0] == 1 && s->out[0] == 1 && s->kernel[0] == 1 && s->pad_begin[0] == 0;
    if (axis < 0 || s->groups != 1 || s->winograd == 1) return 0;
    if (axis > 0) return flat ? line_fits(s, axis) : 0;
    const bool phased = s->stride[1] == 2;
    if (s->stride[1] > 2 || s->stride[2] != s->stride[1]) return 0;
    if (s->dilation[1] != 1 || s->dilation[2] != 1) return 0;
    if ((phased || s->kernel[0] > 1) && s->ic % sdx_kernel_tables()->block.lanes != 0) return 0;
    if (s->winograd > 0) return (s->winograd == 3) == phased ? s->winograd : 0;
    if (s->winograd < 0) return 0;
    const double ic = (double)depth_of(s), oc = (double)s->oc;
    const double pixels = (double)s->out[1] * (double)s->out[2];
    if (phased) return cost_of_phases(s) < 0.92 * 9 * pixels * ic * oc / 14.9 ? 3 : 0;
    /* Pixels at a padded border are classes of their own, in tiles of few pixels. */
    const double border = s->pad_begin[1] > 0 || s->pad_begin[2] > 0 ? 9 * ic * oc : 0;
    const double direct = fmax(9 * pixels * ic * oc / 14.3, 9 * 4 * ic * oc / 5.6) + border;
    const double six = cost_of(s, 6), four = cost_of(s, 4), two = cost_of(s, 2);
    if (fmin(four, two) >= 0.97 * direct) return 0;
    /* less exact, so only for a clear gain */
    if (six < 0.9 * fmin(four, two)) return 6;
    return four <= two ? 4 : 2;
}

/* [chunk][plane][panel of two vectors, or one at the end][channel][output channel of the panel].
 * Late: [panel][channel][tap][output channel of the panel], the filters themselves. */
size_t sdx_winograd_block_packed_size(const struct sdx_conv_shape *s)
{
    const struct winograd_cut c = cut_of(s);
    if (c.late)
        return (size_t)(c.taps * depth_of(s) * c.vectors * c.lanes) *
               (s->half != SDX_HALF_NONE ? sizeof(uint16_t) : sizeof(float));
    return (size_t)(c.planes * c.vectors * c.lanes * depth_of(s)) * sizeof(float);
}
/* The filters of input channels i0 .. i0 + channels - 1 and output channels k .. k + width - 1 as
 * [channel][taps][width], zeros beyond the output channels. */
static void gather_filters(const struct sdx_conv_shape *s, const sdx_weight_f32 *weights, int64_t k,
                           int64_t width, int64_t i0, int64_t channels, float *to)
{
    const int64_t taps = s->kernel[1] * s->kernel[2];
    const int64_t count = conv_least(width, s->oc - k), numbers = taps * channels;
    const int64_t row = taps * depth_of(s), deep = s->kernel[0];
    if (count < width) memset(to, 0, (size_t)(numbers * width) * sizeof *to);
    for (int64_t i = i0, many = deep > 1 ? 1 : channels; i < i0 + channels; i += many)
        sdx_kernel_tables()->vec.b32_transpose(
            weights + k * row + (i % s->ic * deep + i / s->ic) * taps, (size_t)row,
            (uint32_t *)to + (i - i0) * taps * width, (size_t)width, (size_t)count,
            (size_t)(many * taps));
}
/* The transformed filters of the same: planes [channel][width], AT_ONCE * width floats apart. */
static void transform_filters(const struct sdx_conv_shape *s, const struct winograd_cut *c,
                              const sdx_weight_f32 *weights, int64_t k, int64_t width, int64_t i0,
                              int64_t channels, float *u)
{
    const struct sdx_conv_block_table *table = &sdx_kernel_tables()->block;
    float g[AT_ONCE * 9 * MOST_PANEL];
    gather_filters(s, weights, k, width, i0, channels, g);
    table->f32_winograd_filters((int)c->step, c->taps, g, channels, width, u, AT_ONCE * width);
}
/* A panel's `width` output channels from k on: plane p of channel i at to + p * plane + i * width.
 */
static void pack_panel(const struct sdx_conv_shape *s, const struct winograd_cut *c,
                       const sdx_weight_f32 *weights, int64_t k, int64_t width, float *to,
                       int64_t plane)
{
    float u[MOST_PLANES * AT_ONCE * MOST_PANEL];
    for (int64_t i = 0; i < depth_of(s); i += AT_ONCE, to += AT_ONCE * width) {
        const int64_t channels = conv_least(AT_ONCE, depth_of(s) - i);
        transform_filters(s, c, weights, k, width, i, channels, u);
        for (int64_t p = 0; p < c->planes; p++)
            memcpy(to + p * plane, u + p * AT_ONCE * width,
                   (size_t)(channels * width) * sizeof(float));
    }
}
static void pack_late(const struct sdx_conv_shape *s, const sdx_weight_f32 *weights, void *packed)
{
    const struct winograd_cut c = cut_of(s);
    float g[AT_ONCE * 9 * MOST_PANEL];
    for (int64_t v = 0; v < c.vectors; v += 2) {
        const int64_t width = conv_least(2, c.vectors - v) * c.lanes, row = c.taps * width;
        const int64_t panel = c.taps * depth_of(s) * v * c.lanes;
        if (s->half == SDX_HALF_NONE)
            gather_filters(s, weights, v * c.lanes, width, 0, depth_of(s), (float *)packed + panel);
        for (int64_t i = 0; s->half != SDX_HALF_NONE && i < depth_of(s); i += AT_ONCE) {
            const int64_t channels = conv_least(AT_ONCE, depth_of(s) - i);
            gather_filters(s, weights, v * c.lanes, width, i, channels, g);
            sdx_half_encode(s->half, g, (uint16_t *)packed + panel + i * row, channels * row);
        }
    }
}
void sdx_winograd_block_pack(const struct sdx_conv_shape *s, const sdx_weight_f32 *weights,
                             void *packed_)
{
    const struct winograd_cut c = cut_of(s);
    float *packed = packed_;
    if (c.late) {
        pack_late(s, weights, packed);
        return;
    }
    for (int64_t v0 = 0; v0 < c.vectors; v0 += c.chunk) {
        const int64_t count = conv_least(c.chunk, c.vectors - v0);
        const int64_t plane = count * c.lanes * depth_of(s);
        for (int64_t v = 0; v < count; v += 2) {
            const int64_t width = conv_least(2, count - v) * c.lanes;
            pack_panel(s, &c, weights, (v0 + v) * c.lanes, width,
                       packed + v * c.lanes * depth_of(s), plane);
        }
        packed += c.planes * plane;
    }
}

int64_t sdx_winograd_block_parts(const struct sdx_conv_shape *s)
{
    const struct winograd_cut c = cut_of(s);
    return c.blocks * c.splits;
}
size_t sdx_winograd_block_scratch(const struct sdx_conv_shape *s)
{
    const struct winograd_cut c = cut_of(s);
    int64_t floats = c.planes * (c.plane_v + c.plane_m);
    if (c.late) {
        floats += c.planes * (2 * c.lanes * c.pass * c.phases + GAP);
        if (s->half != SDX_HALF_NONE) floats += c.taps * 2 * c.lanes * c.pass;
    }
    return (size_t)floats * sizeof(float);
}
/* M of a panel of `vectors` from vector k0 on and of the input channels in hand, whose U is made in
 * u; next: the filters after these. */
static void multiply_pass(struct sdx_winograd_block *w, const struct winograd_cut *c,
                          const float *filters, const float *next, int64_t vectors, const float *v,
                          float *m, float *u)
{
    const struct sdx_conv_block_table *table = &sdx_kernel_tables()->block;
    const enum sdx_half half = w->shape->half;
    const int64_t width = vectors * c->lanes, numbers = c->taps * width * w->channels;
    float *decoded = u + c->planes * (2 * c->lanes * c->pass * c->phases + GAP);
    w->gap_u = GAP;
    if (half != SDX_HALF_NONE) {
        sdx_half_decode(half, (const uint16_t *)(const void *)filters, decoded, numbers);
        filters = decoded;
    } else
        w->ahead = next;
    table->f32_winograd_filters(w->step, c->taps, filters, w->channels, width, u,
                                w->channels * width * c->phases + GAP);
    table->f32_winograd_multiply(w, v, u, vectors, m);
}
/* Late filters of input channel i and the panel from vector k0 on. */
static const void *filters_at(const struct sdx_conv_shape *s, const struct winograd_cut *c,
                              const void *packed, int64_t k0, int64_t i)
{
    const int64_t at = c->taps * c->lanes * (depth_of(s) * k0 + i * conv_least(2, c->vectors - k0));
    return (const char *)packed + at * (int64_t)(s->half != SDX_HALF_NONE ? 2 : 4);
}
/* M of a panel: for so many input channels at once that U stays in the second cache until it is
 * used. */
static void multiply_late(struct sdx_winograd_block *w, const struct winograd_cut *c,
                          const void *packed, int64_t k0, int64_t vectors, const float *v, float *m,
                          float *u)
{
    const struct sdx_conv_shape *s = w->shape;
    const int64_t rows = sdx_kernel_tables()->block.winograd_rows;
    for (w->from = 0; w->from < depth_of(s); w->from += c->pass) {
        w->channels = conv_least(c->pass, depth_of(s) - w->from);
        multiply_pass(w, c, filters_at(s, c, packed, k0, w->from),
                      filters_at(s, c, packed, k0, w->from + w->channels), vectors,
                      v + w->from * rows, m, u);
    }
}
/* The vectors k0 .. k1 with stride 2: V has but the input channels in hand, M all these vectors. */
static void run_phases(struct sdx_winograd_block *w, const struct winograd_cut *c, const float *x,
                       const void *packed, int64_t k0, int64_t k1,
                       const struct sdx_epilogue *epilogue, float *v, float *m, float *u, float *y)
{
    const struct sdx_conv_block_table *table = &sdx_kernel_tables()->block;
    const struct sdx_conv_shape *s = w->shape;
    for (w->from = 0; w->from < depth_of(s); w->from += c->pass) {
        w->channels = conv_least(c->pass, depth_of(s) - w->from);
        table->f32_winograd_in(w, x, v);
        for (int64_t k = k0; k < k1; k += c->chunk) {
            const int64_t vectors = conv_least(c->chunk, k1 - k), then = k + vectors;
            const void *next = then < k1 ? filters_at(s, c, packed, then, w->from)
                                         : filters_at(s, c, packed, k0, w->from + w->channels);
            multiply_pass(w, c, filters_at(s, c, packed, k, w->from), next, vectors, v,
                          m + (k - k0) * c->lanes * w->room, u);
        }
    }
    table->f32_winograd_out(w, m, k0, k1, epilogue, y);
}
/* Does U come from beyond the second cache, as it is? */
static bool streams(const struct sdx_conv_shape *s, const struct winograd_cut *c)
{
    const int64_t bytes = c->planes * c->vectors * c->lanes * depth_of(s) * (int64_t)sizeof(float);
    return !c->late && bytes > sdx_kernel_tuning()->a_bytes;
}
/* Is V read from beyond the second cache: again for every panel, or too much for what lies behind
 * it to follow? */
static bool is_far(const struct winograd_cut *c)
{
    const int64_t bytes = c->planes * c->plane_v * (int64_t)sizeof(float);
    return bytes > (c->late ? 1 : 4) * sdx_kernel_tuning()->a_bytes;
}
void sdx_winograd_block_part(const struct sdx_conv_shape *s, const float *x, const void *packed,
                             float *y, const struct sdx_epilogue *epilogue, int64_t part,
                             void *scratch)
{
    const struct winograd_cut c = cut_of(s);
    const struct sdx_conv_block_table *table = &sdx_kernel_tables()->block;
    const int64_t block = part / c.splits, split = part % c.splits;
    float *v = scratch, *m = v + c.planes * c.plane_v, *u = m + c.planes * c.plane_m;
    struct sdx_winograd_block w = {.shape = s,
                                   .step = (int)c.step,
                                   .axis = c.axis,
                                   .high = c.high,
                                   .wide = c.wide,
                                   .first = block * c.block,
                                   .room = c.block,
                                   .planes = (int)c.planes,
                                   .channels = depth_of(s),
                                   .streams = streams(s, &c),
                                   .far = is_far(&c),
                                   .plane_v = c.plane_v,
                                   .plane_m = c.plane_m,
                                   .group_v = c.group_v};
    w.tiles = conv_least(c.block, c.tiles - w.first);
    const int64_t begin = c.chunks * split / c.splits, end = c.chunks * (split + 1) / c.splits;
    if (c.phases > 1) {
        run_phases(&w, &c, x, packed, begin * c.chunk, conv_least(c.vectors, end * c.chunk),
                   epilogue, v, m, u, y);
        return;
    }
    table->f32_winograd_in(&w, x, v);
    for (int64_t i = begin; i < end; i++) {
        const int64_t k0 = i * c.chunk, k1 = conv_least(c.vectors, k0 + c.chunk);
        if (c.late)
            multiply_late(&w, &c, packed, k0, k1 - k0, v, m, u);
        else
            table->f32_winograd_multiply(
                &w, v, (const float *)packed + c.planes * k0 * c.lanes * depth_of(s), k1 - k0, m);
        table->f32_winograd_out(&w, m, k0, k1, epilogue, y);
    }
}
