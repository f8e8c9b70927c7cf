/* SPDX-License-Identifier: Apache-2.0
 * Winograd's transforms and products on blocked channels: a vector holds one pixel, or one element
 * of a tile, of all channels of a block. Once an instruction set. */
#include "kernels/conv_block_curve.h"
#include "kernels/conv_block_winograd_line.h"
#include "kernels/winograd_lines.h"

enum {
    REACH = 8, /* most pixels that a tile reads across */
    LINE = 16, /* floats of a line of the cache */
    PASS = 128 /* input channels in one chain of sums, for accuracy */
};

/* ---- tiles ---- */

/* Rows, then columns of what they give. */
static SDX_NOINLINE void tile_in_6(const float *from, int64_t pitch, float *to, int64_t plane)
{
    vf half[MOST][MOST];
    for (int i = 0; i < MOST; i++, from += pitch) {
        vf d[MOST];
        SDX_UNROLL(8) for (int j = 0; j < MOST; j++) d[j] = v_load(from + j * LANES);
        line_in_6(d, half[i]);
    }
    for (int j = 0; j < MOST; j++, to += plane) {
        vf d[MOST], t[MOST];
        float *column = to;
        SDX_UNROLL(8) for (int i = 0; i < MOST; i++) d[i] = half[i][j];
        line_in_6(d, t);
        SDX_UNROLL(8) for (int i = 0; i < MOST; i++, column += MOST * plane) v_store(column, t[i]);
    }
}
/* Column by column: an element of a row's transform is computed where it is used. That costs a
 * sixth more operations than keeping all rows, but those would not fit into the registers. */
SIMD void tile_in(const int step, const struct points *p, const float *from, int64_t pitch,
                  float *to, int64_t plane)
{
    const int side = winograd_side(step);
    if (step == 6) {
        tile_in_6(from, pitch, to, plane);
        return;
    }
    SDX_UNROLL(6) for (int j = 0; j < side; j++, to += plane)
    {
        vf d[MOST], t[MOST];
        const float *row = from;
        float *column = to;
        SDX_UNROLL(6) for (int i = 0; i < side; i++, row += pitch)
        {
            P_KEEP(row);
            d[i] = element_in(step, j, p, row, 1);
        }
        line_in(step, p, d, t);
        SDX_UNROLL(6) for (int i = 0; i < side; i++, column += side * plane)
        {
            P_KEEP(column);
            v_store(column, t[i]);
        }
    }
}
/* With stride 2: a phase is the pixels of rows 2 i + down and columns 2 j + across, which meet the
 * weights of those places. Where there is but one in a direction, it has no part of the point at
 * infinity there, and the last pixels are not read. `block`: of channels. */
SIMD void phase_in(const int down, const int across, const struct points *p, const float *from,
                   int64_t pitch, int64_t block, float *to, int64_t plane)
{
    enum { SIDE = 4, STEP = SIDE - 1 };
    from += down * pitch + across * LANES;
    SDX_UNROLL(4) for (int j = 0; j < SIDE - across; j++)
    {
        vf d[SIDE], t[SIDE];
        const float *row = from;
        d[STEP] = v_set1(0.0f);
        SDX_UNROLL(4) for (int i = 0; i < SIDE - down; i++, row += 2 * pitch)
        {
            P_KEEP(row);
            d[i] = element_in(STEP, j, p, row, 2);
        }
        line_in(STEP, p, d, t);
        SDX_UNROLL(4) for (int i = 0; i < SIDE - down; i++)
        {
            float *at = to + (i * SIDE + j) * plane;
            P_KEEP(at);
            at += winograd_phase(STEP, i * SIDE + j, down, across, block) * ROWS * LANES;
            v_store(at, t[i]);
        }
    }
}
SIMD void phases_in(const struct points *p, const float *from, int64_t pitch, int64_t block,
                    float *to, int64_t plane)
{
    phase_in(0, 0, p, from, pitch, block, to, plane);
    phase_in(0, 1, p, from, pitch, block, to, plane);
    phase_in(1, 0, p, from, pitch, block, to, plane);
    phase_in(1, 1, p, from, pitch, block, to, plane);
}
/* A tile that reaches beyond the image, its pixels between zeros, or whose pixels lie so many
 * `down` and `across` apart. */
static void edge_in(const struct sdx_conv_shape *s, int64_t reach, int64_t down, int64_t across,
                    const float *x, int64_t h, int64_t w, float *to)
{
    int64_t top, bottom, left, right;
    conv_valid(h, down, s->in[1], reach, &top, &bottom);
    conv_valid(w, across, s->in[2], reach, &left, &right);
    if ((bottom - top) * (right - left) < reach * reach)
        for (int64_t i = 0; i < reach * reach; i++)
            v_store(to + i * LANES, v_set1(0.0f));
    for (int64_t i = top; i < bottom; i++) {
        const float *row = x + ((h + i * down) * s->in[2] + w) * LANES;
        for (int64_t j = left; j < right; j++)
            v_store(to + (i * reach + j) * LANES, v_load(row + j * across * LANES));
    }
}
/* The plane in memory that number `number` of the depth of an output plane's sums is in, a block of
 * channels of a plane of the input; -1: it lies beyond the image. `image` counts output planes. */
SIMD int64_t plane_in(const struct sdx_conv_shape *s, int64_t image, int64_t blocks, int64_t number)
{
    if (s->in[0] == 1 && s->out[0] == 1 && s->kernel[0] == 1 && s->pad_begin[0] == 0)
        return image * blocks + number;
    const int64_t at =
        image % s->out[0] * s->stride[0] + number / blocks * s->dilation[0] - s->pad_begin[0];
    if (at < 0 || at >= s->in[0]) return -1;
    return (image / s->out[0] * blocks + number % blocks) * s->in[0] + at;
}
/* Tiles of 5 outputs have the inputs of those of 4. */
SIMD void block_in(const int step, const struct sdx_winograd_block *w, const float *x, float *v)
{
    const struct sdx_conv_shape *s = w->shape;
    const int reach = step == 3 ? 7 : winograd_side(step);
    const int64_t outputs = w->step;
    const int64_t stride_down = winograd_apart(s, 1), stride_right = winograd_apart(s, 2);
    const int64_t apart_down = stride_down * s->dilation[1];
    const int64_t apart_right = stride_right * s->dilation[2];
    const int64_t blocks = conv_divide_up(s->ic, LANES), pitch = s->in[2] * LANES;
    const int64_t first = w->from / LANES, count_in = conv_divide_up(w->channels, LANES);
    const int64_t piece = winograd_piece(s), pieces = winograd_pieces(s);
    const int64_t wide = winograd_pieces_across(s), lacking = part_of(s);
    const bool gathered = apart_down > 1 || apart_right > 1;
    const struct groups groups = groups_of(w->tiles, w->group);
    const struct points p = points();
    struct tile_at begin = tile_at(w, w->first);
    for (int64_t g = 0; g < groups.count; g++, v += w->group_v) {
        const int64_t count = groups.size + (g < groups.more);
        struct tile_at at = begin;
        for (int64_t b = 0; b < count_in; b++) {
            const int64_t whole = (first + b) / blocks; /* pieces before it, of all planes */
            const int64_t number = whole / pieces * blocks + (first + b) % blocks;
            const int64_t row = whole % pieces / wide, column = whole % wide;
            const int64_t down =
                winograd_first_tap(row, piece, stride_down) * s->dilation[1] - s->pad_begin[1];
            const int64_t right =
                winograd_first_tap(column, piece, stride_right) * s->dilation[2] - s->pad_begin[2];
            const bool part = (first + b) % blocks == lacking;
            at = begin;
            for (int64_t i = 0; i < count; i++, tile_next(w, &at)) {
                const int64_t h =
                    winograd_tile_first(at.row, outputs, s->dilation[1]) * s->stride[1] + down;
                const int64_t c =
                    winograd_tile_first(at.column, outputs, s->dilation[2]) * s->stride[2] + right;
                const int64_t plane = plane_in(s, at.image, blocks, number);
                const float *image = x + conv_most(plane, 0) * s->in[1] * pitch;
                const bool inside = !gathered && !part && plane >= 0 && h >= 0 && c >= 0 &&
                                    h + reach <= s->in[1] && c + reach <= s->in[2];
                float edge[REACH * REACH * LANES];
                if (plane < 0)
                    memset(edge, 0, sizeof edge);
                else if (!inside)
                    edge_in(s, reach, apart_down, apart_right, image, h, c, edge);
                if (part) only_channels(s, edge, reach * reach);
                const float *from = inside ? image + h * pitch + c * LANES : edge;
                const int64_t apart = inside ? pitch : reach * LANES;
                if (step == 3)
                    phases_in(&p, from, apart, b, v + i * LANES, w->plane_v);
                else
                    tile_in(step, &p, from, apart, v + b * w->block_v + i * w->tile_v, w->plane_v);
            }
        }
        begin = at;
    }
}
/* Half a vector of each of reach x reach pixels, `down` and `across` apart; x NULL: zeros. */
SIMD void half_in(const struct sdx_conv_shape *s, int64_t reach, int64_t down, int64_t across,
                  const float *x, int64_t h, int64_t w, float *to)
{
    enum { HALF = LANES / 2 };
    int64_t top = 0, bottom = reach, left = 0, right = reach;
    if (h < 0 || h + (reach - 1) * down >= s->in[1] || w < 0 ||
        w + (reach - 1) * across >= s->in[2]) {
        conv_valid(h, down, s->in[1], reach, &top, &bottom);
        conv_valid(w, across, s->in[2], reach, &left, &right);
    }
    if (!x) bottom = top;
    if ((bottom - top) * (right - left) < reach * reach)
        for (int64_t i = 0; i < reach * reach; i++)
            memset(to + i * LANES, 0, HALF * sizeof *to);
    for (int64_t i = top; i < bottom; i++) {
        const float *row = x + ((h + i * down) * s->in[2] + w) * LANES;
        for (int64_t j = left; j < right; j++)
            memcpy(to + (i * reach + j) * LANES, row + j * across * LANES, HALF * sizeof *to);
    }
    for (int64_t i = 0; s->ic < HALF && i < reach * reach; i++)
        memset(to + i * LANES + s->ic, 0, (size_t)(HALF - s->ic) * sizeof *to);
}
/* Two pieces a vector, of one block of channels. */
static void halves_in(const struct sdx_winograd_block *w, const float *x, float *v)
{
    const struct sdx_conv_shape *s = w->shape;
    const int64_t side = winograd_side(w->step);
    const int64_t apart[2] = {winograd_apart(s, 1), winograd_apart(s, 2)};
    const int64_t pieces = winograd_pieces(s), wide = winograd_pieces_across(s);
    const int64_t piece = winograd_piece(s), size = s->in[1] * s->in[2] * LANES;
    const int64_t first = w->from / LANES, count_in = conv_divide_up(w->channels, LANES);
    const struct groups groups = groups_of(w->tiles, w->group);
    const struct points p = points();
    struct tile_at begin = tile_at(w, w->first);
    for (int64_t g = 0; g < groups.count; g++, v += w->group_v) {
        const int64_t count = groups.size + (g < groups.more);
        struct tile_at at = begin;
        for (int64_t b = 0; b < count_in; b++) {
            at = begin;
            for (int64_t i = 0; i < count; i++, tile_next(w, &at)) {
                float pixels[MOST * MOST * LANES], *to = v + b * w->block_v + i * w->tile_v;
                for (int64_t half = 0; half < 2; half++) {
                    const int64_t whole = 2 * (first + b) + half, number = whole % pieces;
                    int64_t from[2] = {number / wide, number % wide};
                    for (int k = 0; k < 2; k++)
                        from[k] =
                            winograd_first_tap(from[k], piece, apart[k]) * s->dilation[k + 1] -
                            s->pad_begin[k + 1];
                    from[0] += winograd_tile_first(at.row, w->step, s->dilation[1]) * s->stride[1];
                    from[1] +=
                        winograd_tile_first(at.column, w->step, s->dilation[2]) * s->stride[2];
                    const int64_t plane = whole < pieces * s->kernel[0]
                                              ? plane_in(s, at.image, 1, whole / pieces)
                                              : -1;
                    half_in(s, side, apart[0] * s->dilation[1], apart[1] * s->dilation[2],
                            plane < 0 ? NULL : x + plane * size, from[0], from[1],
                            pixels + half * LANES / 2);
                }
                if (w->step == 6)
                    tile_in_6(pixels, side * LANES, to, w->plane_v);
                else if (w->step == 2)
                    tile_in(2, &p, pixels, side * LANES, to, w->plane_v);
                else
                    tile_in(4, &p, pixels, side * LANES, to, w->plane_v);
            }
        }
        begin = at;
    }
}
static void winograd_in(const struct sdx_winograd_block *w, const float *x, float *v)
{
    if (w->axis) {
        line_block_in(w, x, v);
        return;
    }
    if (winograd_in_halves(w->shape)) {
        halves_in(w, x, v);
        return;
    }
    switch (w->step) {
    case 6: block_in(6, w, x, v); break;
    case 5:
    case 4: block_in(4, w, x, v); break;
    case 3: block_in(3, w, x, v); break;
    default: block_in(2, w, x, v); break;
    }
}

/* ---- filters ---- */

SIMD float *filter_row(const int side, const int taps, vf half[3][MOST], int i, float *row,
                       int64_t plane)
{
    vf line[3], t[MOST];
    SDX_UNROLL(3) for (int j = 0; j < taps; j++) line[j] = half[j][i];
    spread(side, taps, line, t);
    SDX_UNROLL(8) for (int j = 0; j < side; j++, row += plane) v_store(row, t[j]);
    return row;
}
/* Of `taps` x `taps`. Rows are unrolled where it saves time: elsewhere it is that of packing. */
SIMD void filters(const int step, const int taps, int64_t width, const float *g, int64_t channels,
                  float *u, int64_t plane)
{
    const int side = winograd_side(step);
    for (; channels > 0; channels--, g += taps * taps * width, u += width) {
        for (int64_t at = 0; at < width; at += LANES) {
            vf half[3][MOST];
            SDX_UNROLL(3) for (int j = 0; j < taps; j++)
            {
                vf column[3];
                SDX_UNROLL(3)
                for (int i = 0; i < taps; i++)
                    column[i] = v_load(g + (taps * i + j) * width + at);
                spread(side, taps, column, half[j]);
            }
            float *row = u + at;
            int i = 0;
            SDX_UNROLL(1)
            for (; step != 4 && i < side; i++)
                row = filter_row(side, taps, half, i, row, plane);
            SDX_UNROLL(6) for (; i < side; i++) row = filter_row(side, taps, half, i, row, plane);
        }
    }
}
/* The filters of a phase of stride 2; u: [block of channels][phase][channel of the block]. */
SIMD void phase_filters(const int down, const int across, int64_t width, const float *g,
                        int64_t channel, float *u, int64_t plane)
{
    enum { STEP = 3, SIDE = 4 };
    for (int64_t at = 0; at < width; at += LANES) {
        vf half[2][SIDE];
        SDX_UNROLL(2) for (int j = 0; j < 2 - across; j++)
        {
            vf column[2];
            SDX_UNROLL(2)
            for (int i = 0; i < 2 - down; i++)
                column[i] = v_load(g + (3 * (2 * i + down) + 2 * j + across) * width + at);
            spread(SIDE, 2 - down, column, half[j]);
        }
        SDX_UNROLL(4) for (int i = 0; i < SIDE - down; i++)
        {
            vf line[2], t[SIDE];
            SDX_UNROLL(2) for (int j = 0; j < 2 - across; j++) line[j] = half[j][i];
            spread(SIDE, 2 - across, line, t);
            SDX_UNROLL(4) for (int j = 0; j < SIDE - across; j++)
            {
                const int64_t row =
                    winograd_phase(STEP, i * SIDE + j, down, across, channel / LANES);
                float *to = u + (i * SIDE + j) * plane;
                P_KEEP(to);
                v_store(to + (row * LANES + channel % LANES) * width + at, t[j]);
            }
        }
    }
}
SIMD void phases_filters(int64_t width, const float *g, int64_t channels, float *u, int64_t plane)
{
    for (int64_t i = 0; i < channels; i++, g += 9 * width) {
        phase_filters(0, 0, width, g, i, u, plane);
        phase_filters(0, 1, width, g, i, u, plane);
        phase_filters(1, 0, width, g, i, u, plane);
        phase_filters(1, 1, width, g, i, u, plane);
    }
}
static void winograd_filters(int step, int taps, const float *weights, int64_t channels,
                             int64_t width, float *u, int64_t plane)
{
    if (step == 5)
        filters(5, 2, width, weights, channels, u, plane);
    else if (taps == 4)
        line_filters(4, width / LANES, weights, channels, u, plane);
    else if (taps == 2)
        line_filters(2, width / LANES, weights, channels, u, plane);
    else if (taps == 3)
        line_filters(3, width / LANES, weights, channels, u, plane);
    else if (step == 6)
        filters(6, 3, width, weights, channels, u, plane);
    else if (step == 4)
        filters(4, 3, width, weights, channels, u, plane);
    else if (step == 3)
        phases_filters(width, weights, channels, u, plane);
    else
        filters(2, 3, width, weights, channels, u, plane);
}

/* ---- products ---- */
SIMD void product_step(const int rows, const int wide, vf sums[ROWS][WIDE], const float *v,
                       const float *u)
{
    vf weight[WIDE];
    SDX_UNROLL(2) for (int j = 0; j < wide; j++)
    {
        weight[j] = v_load(u + j * LANES);
        V_KEEP(weight[j]);
    }
    SDX_UNROLL(12) for (int i = 0; i < rows; i++)
    {
        const vf pixel = v_set1(v[i * LANES]);
        SDX_UNROLL(2)
        for (int j = 0; j < wide; j++)
            sums[i][j] = v_fma(pixel, weight[j], sums[i][j]);
    }
}
/* All lanes of a block of channels. */
#ifdef SDX_SIMD_NEON
SIMD void product_block(const int rows, const int wide, vf sums[ROWS][WIDE], const float *v,
                        const float *u)
{
    vf pixel[ROWS];
    SDX_UNROLL(12) for (int i = 0; i < rows; i++)
    {
        pixel[i] = v_load(v + i * LANES);
        V_KEEP(pixel[i]);
    }
    SDX_UNROLL(4) for (int k = 0; k < LANES; k++, u += wide * LANES)
    {
        vf weight[WIDE];
        SDX_UNROLL(2) for (int j = 0; j < wide; j++)
        {
            weight[j] = v_load(u + j * LANES);
            V_KEEP(weight[j]);
        }
        SDX_UNROLL(12)
        for (int i = 0; i < rows; i++)
            SDX_UNROLL(2)
        for (int j = 0; j < wide; j++)
            sums[i][j] = v_fma_lane(weight[j], pixel[i], k, sums[i][j]);
        SDX_UNROLL(2) for (int j = 0; j < wide; j++) V_USE(weight[j]);
    }
    SDX_UNROLL(12) for (int i = 0; i < rows; i++) V_USE(pixel[i]);
}
#else
SIMD void product_block(const int rows, const int wide, vf sums[ROWS][WIDE], const float *v,
                        const float *u)
{
    SDX_UNROLL(4) for (int k = 0; k < LANES; k++)
    {
        product_step(rows, wide, sums, v + k, u + k * wide * LANES);
    }
}
#endif
/* Weights that are fetched into the second cache while others are used: so many lines a block of
 * channels, from `next` on. */
struct fetch {
    const float *next;
    int64_t lines;
};
/* `count` groups of `rows` tiles. */
SIMD void product(const int rows, const int wide, const struct sdx_winograd_block *w, int64_t count,
                  const float *v, int64_t step, const float *u, struct fetch *fetch, float *m)
{
    const int64_t lines = fetch->lines;
    const float *next = fetch->next;
    for (; count > 0; count--, v += step, m += rows * WIDE * LANES) {
        const float *tiles = v, *weights = u;
        for (int64_t done = 0; done < w->channels; done += PASS) {
            const int64_t channels = conv_least(PASS, w->channels - done);
            vf sums[ROWS][WIDE];
            SDX_UNROLL(12)
            for (int i = 0; i < rows; i++)
                SDX_UNROLL(2) for (int j = 0; j < wide; j++) sums[i][j] = v_set1(0.0f);
            for (int64_t n = channels / LANES; n > 0; n--) {
                P_KEEP(tiles);
                P_KEEP(weights);
                for (int64_t k = lines; k > 0; k--, next += LINE)
                    V_PREFETCH(next);
                if (w->far) {
                    SDX_UNROLL(12) for (int k = 0; k < rows * LANES; k += LINE)
                    {
                        V_PREFETCH(tiles + step + k);
                    }
                }
                product_block(rows, wide, sums, tiles, weights);
                tiles += ROWS * LANES;
                weights += wide * LANES * LANES;
            }
            for (int64_t k = 0; k < channels % LANES; k++)
                product_step(rows, wide, sums, tiles + k, weights + k * wide * LANES);
            float *to = m;
            P_KEEP(to);
            if (done + w->from > 0) {
                SDX_UNROLL(12)
                for (int i = 0; i < rows; i++)
                    SDX_UNROLL(2)
                for (int j = 0; j < wide; j++)
                    sums[i][j] += v_load(to + (i * WIDE + j) * LANES);
            }
            SDX_UNROLL(12)
            for (int i = 0; i < rows; i++)
                SDX_UNROLL(2)
            for (int j = 0; j < wide; j++)
                v_store(to + (i * WIDE + j) * LANES, sums[i][j]);
        }
    }
    fetch->next = next;
}
#define PRODUCT(rows)                                                                              \
    case rows: product(rows, wide, w, count, v, step, u, fetch, m); break;
SIMD void products(const int wide, int64_t rows, const struct sdx_winograd_block *w, int64_t count,
                   const float *v, int64_t step, const float *u, struct fetch *fetch, float *m)
{
    switch (rows) {
#if SDX_SIMD_LANES == 16
        PRODUCT(12)
        PRODUCT(11)
        PRODUCT(10)
        PRODUCT(9)
#endif
#if SDX_SIMD_LANES == 16 || defined(SDX_SIMD_NEON)
        PRODUCT(8)
        PRODUCT(7)
#endif
        PRODUCT(6)
        PRODUCT(5)
        PRODUCT(4)
        PRODUCT(3)
        PRODUCT(2)
    default: product(1, wide, w, count, v, step, u, fetch, m); break;
    }
}
/* Once a width: a panel has groups of two sizes. */
#define PRODUCTS(wide)                                                                             \
    static SDX_NOINLINE void products_##wide(int64_t rows, const struct sdx_winograd_block *w,     \
                                             int64_t count, const float *v, int64_t step,          \
                                             const float *u, struct fetch *fetch, float *m)        \
    {                                                                                              \
        products(wide, rows, w, count, v, step, u, fetch, m);                                      \
    }
PRODUCTS(1)
PRODUCTS(2)
SIMD void panel(const int wide, const struct groups *g, const struct sdx_winograd_block *w,
                const float *v, const float *u, struct fetch fetch, float *m)
{
    const int64_t step = w->group_v;
    void (*const products_of)(int64_t, const struct sdx_winograd_block *, int64_t, const float *,
                              int64_t, const float *, struct fetch *, float *) =
        wide == WIDE ? products_2 : products_1;
    if (g->more) products_of(g->size + 1, w, g->more, v, step, u, &fetch, m);
    if (g->count > g->more)
        products_of(g->size, w, g->count - g->more, v + g->more * step, step, u, &fetch,
                    m + g->more * (g->size + 1) * WIDE * LANES);
}
/* What a panel of plane p brings: the next one, or a share of w->ahead. In equal shares by all
 * groups: memory has the time of all of them for it. */
SIMD struct fetch fetch_of(const int wide, const struct sdx_winograd_block *w, int64_t groups,
                           int p, const float *next)
{
    if (w->ahead) {
        const int64_t taps = winograd_piece_taps(w->shape);
        const int64_t lines =
            taps * w->channels / winograd_phases(w->step, p) * wide * LANES / LINE;
        const int64_t share = conv_divide_up(lines, w->planes);
        return (struct fetch){w->ahead + p * share * LINE,
                              conv_divide_up(share, groups * conv_most(w->channels / LANES, 1))};
    }
    const int64_t all = wide * LANES * LANES / LINE;
    return (struct fetch){next, w->streams ? conv_divide_up(all, groups) : 0};
}
static void winograd_multiply(const struct sdx_winograd_block *w, const float *v, const float *u,
                              int64_t vectors, float *m)
{
    const int64_t room = w->channels * winograd_phases(w->step, 0) * LANES; /* of a vector in u */
    const struct groups g = groups_of(w->tiles, w->group);
    const int64_t least = winograd_depth_at_infinity(w->shape) - w->from;
    const int infinity = w->planes - (w->axis ? 1 : winograd_side(w->step));
    for (int p = 0; p < w->planes; p++, v += w->plane_v, m += w->plane_m, u += w->gap_u) {
        const int phases = winograd_phases(w->step, p);
        struct sdx_winograd_block plane = *w;
        float *to = m;
        int64_t left = vectors;
        plane.from *= phases;
        plane.channels *= phases;
        if (phases == 1 && p >= infinity) plane.channels = conv_least(plane.channels, least);
        if (plane.channels <= 0) { /* not the first ones */
            u += room * vectors;
            continue;
        }
        for (; left >= WIDE; left -= WIDE, to += w->room * WIDE * LANES) {
            const struct fetch fetch = fetch_of(WIDE, &plane, g.count, p, u + room * WIDE);
            panel(WIDE, &g, &plane, v, u, fetch, to);
            u += room * WIDE;
        }
        if (left) {
            panel(1, &g, &plane, v, u, fetch_of(1, &plane, g.count, p, u + room), to);
            u += room;
        }
    }
}

/* ---- output ---- */
/* A tile, without what its epilogue adds, to rows of y or of a copy. */
SIMD void tile_out(const int step, const float *m, int64_t plane, const struct output *o,
                   const float *residual, float *y, int64_t pitch)
{
    const int side = winograd_side(step);
    const vf lo = v_set1(o->lo), hi = v_set1(o->hi);
    vf half[MOST][MOST], d[MOST], t[MOST];
    for (int j = 0; j < side; j++, m += plane) {
        const float *column = m;
        SDX_UNROLL(8) for (int i = 0; i < side; i++, column += side * plane) d[i] = v_load(column);
        line_out(step, d, t);
        if (step == 5) t[4] += d[5]; /* infinity */
        SDX_UNROLL(6) for (int i = 0; i < step; i++) half[i][j] = t[i];
    }
    for (int i = 0; i < step; i++, y += pitch) {
        SDX_UNROLL(8) for (int j = 0; j < side; j++) d[j] = half[i][j];
        line_out(step, d, t);
        if (step == 5) t[4] += d[5];
        SDX_UNROLL(6) for (int j = 0; j < step; j++) t[j] += o->bias;
        if (residual) {
            SDX_UNROLL(6) for (int j = 0; j < step; j++) t[j] += v_load(residual + j * LANES);
            residual += pitch;
        }
        SDX_UNROLL(6)
        for (int j = 0; j < step; j++)
            v_store(y + j * LANES, v_min(hi, v_max(lo, t[j])));
    }
}
/* Once a step: what comes before and after the tiles is inlined in more than one place. */
#define TILE_OUT(step)                                                                             \
    static SDX_NOINLINE void tile_out_##step(const float *m, int64_t plane,                        \
                                             const struct output *o, const float *residual,        \
                                             float *y, int64_t pitch)                              \
    {                                                                                              \
        tile_out(step, m, plane, o, residual, y, pitch);                                           \
    }
TILE_OUT(2)
TILE_OUT(3)
TILE_OUT(4)
TILE_OUT(5)
TILE_OUT(6)
typedef void tile_out_fn(const float *m, int64_t plane, const struct output *o,
                         const float *residual, float *y, int64_t pitch);
static tile_out_fn *tile_out_of(int step)
{
    return step == 6   ? tile_out_6
           : step == 5 ? tile_out_5
           : step == 4 ? tile_out_4
           : step == 3 ? tile_out_3
                       : tile_out_2;
}
static void copy_out(int step, const float *m, int64_t plane, const struct output *o,
                     const float *residual, struct copy to, struct copies *c)
{
    const int64_t pitch = step * LANES;
    float more[6 * 6 * LANES], *copy = c->tiles + c->count * step * pitch;
    for (int64_t i = 0; residual && i < step; i++)
        for (int64_t j = 0; j < step; j++)
            v_store(more + i * pitch + j * LANES,
                    i < to.rows && j < to.columns ? v_load(residual + i * o->pitch + j * o->apart)
                                                  : v_set1(0.0f));
    tile_out_of(step)(m, plane, o, residual ? more : NULL, copy, pitch);
    c->of[c->count++] = to;
    if (c->count == COPIES) copies_out(step, step, o, c);
}
/* Both vectors of a panel, tile by tile, as they share the lines of M. */
SIMD void panel_out(const struct sdx_winograd_block *w, const float *m, int64_t k,
                    const struct output *o, int count, float *y)
{
    const struct sdx_conv_shape *s = w->shape;
    const int step = w->step;
    tile_out_fn *const whole = tile_out_of(step);
    const int64_t blocks = conv_divide_up(s->oc, LANES), pitch = s->out[2] * LANES;
    const int64_t down = s->dilation[1], across = s->dilation[2], size = s->out[1] * pitch;
    const bool copied = winograd_is_dilated(s) || block_is_curved(o->epilogue->act);
    struct tile_at at = tile_at(w, w->first);
    struct copies copies;
    copies.count = 0;
    for (int64_t i = 0; i < w->tiles; i++, tile_next(w, &at), m += WIDE * LANES) {
        const int64_t h = winograd_tile_first(at.row, step, down);
        const int64_t c = winograd_tile_first(at.column, step, across);
        const int64_t rows = winograd_outputs_left(step, s->out[1] - h, down);
        const int64_t columns = winograd_outputs_left(step, s->out[2] - c, across);
        const int64_t deep = s->out[0];
        int64_t plane = at.image * blocks + k;
        if (deep > 1) plane = (at.image / deep * blocks + k) * deep + at.image % deep;
        int64_t to = plane * size + h * pitch + c * LANES;
        for (int j = 0; j < count; j++, to += deep * size) {
            const float *residual = o->epilogue->residual ? o->epilogue->residual + to : NULL;
            if (!copied && rows == step && columns == step)
                whole(m + j * LANES, w->plane_m, &o[j], residual, y + to, o->pitch);
            else
                copy_out(step, m + j * LANES, w->plane_m, &o[j], residual,
                         (struct copy){y + to, rows, columns}, &copies);
        }
    }
    copies_out(step, step, o, &copies);
}
static void winograd_out(const struct sdx_winograd_block *w, const float *m, int64_t k0, int64_t k1,
                         const struct sdx_epilogue *epilogue, float *y)
{
    const int64_t pitch = w->shape->out[2] * LANES, *dilation = w->shape->dilation;
    struct output o[WIDE] = {
        {.epilogue = epilogue, .pitch = dilation[1] * pitch, .apart = dilation[2] * LANES}};
    conv_limits(epilogue->act, epilogue->a, epilogue->b, &o[0].lo, &o[0].hi);
    o[1] = o[0];
    for (int64_t k = k0; k < k1; k += WIDE, m += w->room * WIDE * LANES) {
        const int count = (int)conv_least(WIDE, k1 - k);
        for (int j = 0; j < count; j++) {
            float bias[LANES];
            for (int64_t i = 0, at = (k + j) * LANES; i < LANES; i++, at++)
                bias[i] = epilogue->bias_row && at < w->shape->oc ? epilogue->bias_row[at] : 0.0f;
            o[j].bias = v_load(bias);
        }
        if (w->axis)
            line_panel_out(w, m, k, o, count, y);
        else
            panel_out(w, m, k, o, count, y);
    }
}

void SDX_INIT(sdx_conv_block_winograd_init_)(struct sdx_conv_block_table *block)
{
    block->winograd_rows = ROWS;
    block->winograd_pass = PASS;
    block->f32_winograd_filters = winograd_filters;
    block->f32_winograd_in = winograd_in;
    block->f32_winograd_multiply = winograd_multiply;
    block->f32_winograd_out = winograd_out;
}
