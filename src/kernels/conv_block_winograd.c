/* SPDX-License-Identifier: Apache-2.0
 * Winograd's convolution on blocked channels: a block of tiles is transformed to V, (step + 2)^2
 * matrices [tiles, channels]; their products with the transformed weights U give M, chunk by chunk
 * of output channels, and each chunk's inverse transform is the output. Sizes of blocks and chunks
 * are those that keep V and M in the second cache while U is read in order. */
#include "kernels/conv_block_winograd.h"

#include <math.h>
#include <string.h>

#include "kernels/conv_gather.h"
#include "kernels/tables.h"
#include "kernels/tuning.h"

enum {
    GAP = 16, /* floats between planes: their lines shall not share a set of the cache */
    MOST_PANEL = 32,
    MOST_PLANES = 64
};

struct winograd_cut {
    int64_t lanes, step, planes;
    int64_t high, wide, tiles; /* of an image, and of all */
    int64_t block, blocks;     /* tiles of a block */
    int64_t chunk, chunks;     /* vectors of output channels between two transforms of the output */
    int64_t vectors;           /* of all output channels */
    int64_t splits;            /* parts of a block, of whole chunks */
    int64_t plane_v, plane_m;
};

/* Chunks of 32 output channels, 64 where a row of U is long: whole panels on every set. */
static int64_t chunk_of(const struct sdx_conv_shape *s)
{
    return (s->ic < 256 ? 32 : 64) / sdx_kernel_tables()->block.lanes;
}
static struct winograd_cut cut_of(const struct sdx_conv_shape *s)
{
    const struct sdx_conv_block_table *table = &sdx_kernel_tables()->block;
    struct winograd_cut c = {
        .lanes = table->lanes, .step = sdx_winograd_block_fits(s), .chunk = chunk_of(s)};
    c.planes = (c.step + 2) * (c.step + 2);
    c.high = conv_divide_up(s->out[1], c.step);
    c.wide = conv_divide_up(s->out[2], c.step);
    c.tiles = s->batch * c.high * c.wide;
    const int64_t want = s->ic <= 128 ? 24 : s->ic <= 256 ? 48 : 72;
    c.blocks = conv_divide_up(c.tiles, want);
    if (c.blocks > 1 && c.blocks < 16) c.blocks += c.blocks % 2; /* two threads share them evenly */
    c.block = conv_divide_up(c.tiles, conv_most(c.blocks, 1));
    c.blocks = conv_divide_up(c.tiles, conv_most(c.block, 1));
    c.vectors = conv_divide_up(s->oc, c.lanes);
    c.chunks = conv_divide_up(c.vectors, c.chunk);
    /* Each part of a block transforms the whole input again: at 256 outputs 4 % of its work. */
    c.splits = 1;
    while (2 * c.splits * c.blocks <= sdx_kernel_tuning()->block_parts && 256 * c.splits <= s->oc &&
           2 * c.splits <= c.chunks)
        c.splits *= 2;
    const int64_t groups = conv_divide_up(c.block, table->winograd_rows);
    c.plane_v = groups * table->winograd_rows * conv_divide_up(s->ic, c.lanes) * c.lanes + GAP;
    c.plane_m = conv_divide_up(conv_least(c.chunk, c.vectors), 2) * 2 * c.lanes * c.block + GAP;
    return c;
}

/* Cycles of a processor with 16 multiplications in one, from measurements on Zen 3: products at 92
 * % of that; the transforms of a tile and 8 channels; weights from memory at 5.6 bytes a cycle. */
static double cost_of(const struct sdx_conv_shape *s, int64_t step)
{
    const double tiles =
        (double)conv_divide_up(s->out[1], step) * (double)conv_divide_up(s->out[2], step);
    const double side = (double)step + 2, ic = (double)s->ic, oc = (double)s->oc;
    const double each = step == 6 ? 390 : step == 4 ? 165 : 60;
    const double transform = each * tiles * (ceil(ic / 8) + ceil(oc / 8));
    const double products = side * side * fmax(tiles, 4) * ic * oc / 14.8;
    return fmax(products, side * side * 4 * ic * oc / 5.6) + transform;
}
int sdx_winograd_block_fits(const struct sdx_conv_shape *s)
{
    if (s->groups != 1 || s->in[0] != 1 || s->out[0] != 1 || s->pad_begin[0] != 0) return 0;
    for (int i = 0; i < 3; i++)
        if (s->kernel[i] != (i ? 3 : 1) || s->stride[i] != 1 || s->dilation[i] != 1) return 0;
    if (s->winograd) return s->winograd < 0 ? 0 : s->winograd;
    const double ic = (double)s->ic, oc = (double)s->oc;
    const double pixels = (double)s->out[1] * (double)s->out[2];
    /* Pixels at a padded border are classes of their own, in tiles of few pixels. */
    const double border = s->pad_begin[1] > 0 || s->pad_begin[2] > 0 ? 9 * ic * oc : 0;
    const double direct = fmax(9 * pixels * ic * oc / 14.3, 9 * 4 * ic * oc / 5.6) + border;
    const double six = cost_of(s, 6), four = cost_of(s, 4), two = cost_of(s, 2);
    if (fmin(four, two) >= 0.97 * direct) return 0;
    /* less exact, so only for a clear gain and whole numbers */
    if (s->half == SDX_HALF_NONE && six < 0.9 * fmin(four, two)) return 6;
    return four <= two ? 4 : 2;
}

/* [chunk][plane][panel of two vectors, or one at the end][channel][output channel of the panel];
 * 16-bit ones come after the scales [chunk][plane][output channel]. */
size_t sdx_winograd_block_packed_size(const struct sdx_conv_shape *s)
{
    const struct winograd_cut c = cut_of(s);
    const size_t filters = (size_t)(c.planes * c.vectors * c.lanes);
    if (s->half != SDX_HALF_NONE)
        return filters * (sizeof(float) + (size_t)s->ic * sizeof(int16_t));
    return filters * (size_t)s->ic * sizeof(float);
}
/* The transformed filters of input channel i and the output channels k .. k + width - 1: rows of
 * 2 * lanes, one a plane, zeros beyond the channels. */
static void transform_filters(const struct sdx_conv_shape *s, int64_t step, const float *weights,
                              int64_t k, int64_t width, int64_t i, float *u)
{
    sdx_kernel_tables()->block.f32_winograd_filters((int)step, weights + (k * s->ic + i) * 9,
                                                    s->ic * 9, conv_least(width, s->oc - k), u);
}
/* A panel's `width` output channels from k on: plane p of channel i at to + p * plane + i * width.
 */
static void pack_panel(const struct sdx_conv_shape *s, const struct winograd_cut *c,
                       const float *weights, int64_t k, int64_t width, float *to, int64_t plane)
{
    float u[MOST_PLANES * MOST_PANEL];
    for (int64_t i = 0; i < s->ic; i++, to += width) {
        transform_filters(s, c->step, weights, k, width, i, u);
        for (int64_t p = 0; p < c->planes; p++)
            memcpy(to + p * plane, u + p * 2 * c->lanes, (size_t)width * sizeof(float));
    }
}
/* The same as integers: an output channel's numbers of a plane are rounded to 1/32767 of the
 * largest of them. scales: plane p at scales + p * plane_scales. */
static void pack_panel_half(const struct sdx_conv_shape *s, const struct winograd_cut *c,
                            const float *weights, int64_t k, int64_t width, int16_t *to,
                            int64_t plane, float *scales, int64_t plane_scales)
{
    const int64_t pitch = 2 * c->lanes;
    float u[MOST_PLANES * MOST_PANEL], most[MOST_PLANES * MOST_PANEL] = {0};
    for (int64_t i = 0; i < s->ic; i++) {
        transform_filters(s, c->step, weights, k, width, i, u);
        for (int64_t at = 0; at < c->planes * pitch; at++)
            most[at] = isnan(u[at]) ? INFINITY : fmaxf(most[at], fabsf(u[at]));
    }
    for (int64_t p = 0; p < c->planes; p++)
        for (int64_t j = 0; j < width; j++)
            scales[p * plane_scales + j] = most[p * pitch + j] / INT16_MAX;
    for (int64_t i = 0; i < s->ic; i++) {
        transform_filters(s, c->step, weights, k, width, i, u);
        for (int64_t p = 0; p < c->planes; p++)
            for (int64_t j = 0; j < width; j++) {
                const int64_t at = p * pitch + j;
                const double scaled = (double)u[at] / most[at] * INT16_MAX;
                to[p * plane + i * width + j] = (int16_t)(isfinite(scaled) ? lrint(scaled) : 0);
            }
    }
}
static void pack_half(const struct sdx_conv_shape *s, const float *weights, void *packed)
{
    const struct winograd_cut c = cut_of(s);
    float *scales = packed;
    int16_t *to = (int16_t *)(scales + c.planes * c.vectors * c.lanes);
    for (int64_t v0 = 0; v0 < c.vectors; v0 += c.chunk) {
        const int64_t count = conv_least(c.chunk, c.vectors - v0), filters = count * c.lanes;
        for (int64_t v = 0; v < count; v += 2)
            pack_panel_half(s, &c, weights, (v0 + v) * c.lanes, conv_least(2, count - v) * c.lanes,
                            to + v * c.lanes * s->ic, filters * s->ic, scales + v * c.lanes,
                            filters);
        scales += c.planes * filters;
        to += c.planes * filters * s->ic;
    }
}
void sdx_winograd_block_pack(const struct sdx_conv_shape *s, const float *weights, void *packed_)
{
    const struct winograd_cut c = cut_of(s);
    float *packed = packed_;
    if (s->half != SDX_HALF_NONE) {
        pack_half(s, weights, packed);
        return;
    }
    for (int64_t v0 = 0; v0 < c.vectors; v0 += c.chunk) {
        const int64_t count = conv_least(c.chunk, c.vectors - v0);
        const int64_t plane = count * c.lanes * s->ic;
        for (int64_t v = 0; v < count; v += 2) {
            const int64_t width = conv_least(2, count - v) * c.lanes;
            pack_panel(s, &c, weights, (v0 + v) * c.lanes, width, packed + v * c.lanes * s->ic,
                       plane);
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
    if (s->half != SDX_HALF_NONE) floats += conv_least(c.chunk, c.vectors) * c.lanes * s->ic;
    return (size_t)floats * sizeof(float);
}
/* M of a chunk of `vectors` from vector k0 on, whose U is decoded plane by plane into u. */
static void multiply_half(struct sdx_winograd_block *w, const struct winograd_cut *c,
                          const void *packed, int64_t k0, int64_t vectors, const float *v, float *m,
                          float *u)
{
    const struct sdx_conv_block_table *table = &sdx_kernel_tables()->block;
    const int64_t ic = w->shape->ic, filters = vectors * c->lanes;
    const float *scales = (const float *)packed + c->planes * k0 * c->lanes;
    const int16_t *from =
        (const int16_t *)((const float *)packed + c->planes * c->vectors * c->lanes);
    from += c->planes * k0 * c->lanes * ic;
    w->planes = 1;
    for (int64_t p = 0; p < c->planes; p++, scales += filters, from += filters * ic) {
        for (int64_t i = 0; i < vectors; i += 2) {
            const int64_t at = i * c->lanes;
            table->i16_decode(from + at * ic, scales + at, ic,
                              conv_least(2, vectors - i) * c->lanes, from + (filters + at) * ic,
                              u + at * ic);
        }
        table->f32_winograd_multiply(w, v + p * c->plane_v, u, vectors, m + p * c->plane_m);
    }
}
/* Does U come from beyond the second cache, as it is? */
static bool streams(const struct sdx_conv_shape *s, const struct winograd_cut *c)
{
    const int64_t bytes = c->planes * c->vectors * c->lanes * s->ic * (int64_t)sizeof(float);
    return s->half == SDX_HALF_NONE && bytes > sdx_kernel_tuning()->a_bytes;
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
                                   .high = c.high,
                                   .wide = c.wide,
                                   .first = block * c.block,
                                   .room = c.block,
                                   .planes = (int)c.planes,
                                   .streams = streams(s, &c),
                                   .plane_v = c.plane_v,
                                   .plane_m = c.plane_m};
    w.tiles = conv_least(c.block, c.tiles - w.first);
    table->f32_winograd_in(&w, x, v);
    const int64_t end = c.chunks * (split + 1) / c.splits;
    for (int64_t i = c.chunks * split / c.splits; i < end; i++) {
        const int64_t k0 = i * c.chunk, k1 = conv_least(c.vectors, k0 + c.chunk);
        if (s->half != SDX_HALF_NONE)
            multiply_half(&w, &c, packed, k0, k1 - k0, v, m, u);
        else
            table->f32_winograd_multiply(
                &w, v, (const float *)packed + c.planes * k0 * c.lanes * s->ic, k1 - k0, m);
        table->f32_winograd_out(&w, m, k0, k1, epilogue, y);
    }
}
