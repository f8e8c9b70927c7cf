/* SPDX-License-Identifier: Apache-2.0
 * What Winograd's transforms on blocked channels share: tiles in groups, the transforms
 * of one row or column of a tile, and outputs on their way. Points of tiles of 6 inputs: 0, +-a,
 * +-b, infinity with a b = 1, as F(4 x 4, 3 x 3) so errs by 3e-6 of the peak at 512 channels, a
 * quarter of what 1 and 2 give; of 4: 0, +-1, infinity; of 8: 0, +-1, +-2, +-1/2, infinity. For
 * files compiled once a set only. */
#ifndef SDX_KERNELS_WINOGRAD_LINES_H
#define SDX_KERNELS_WINOGRAD_LINES_H

#include "kernels/conv_block_curve.h"
#include "kernels/conv_block_winograd.h"
#include "kernels/conv_gather.h"
#include "kernels/simd.h"
#include "kernels/tables.h"

#define POINT_A  (2.0f / 3)
#define POINT_B  1.5f
#define POINT_A2 (4.0f / 9)
#define POINT_B2 2.25f
#define POINT_S2 (97.0f / 36) /* a^2 + b^2 */
#define POINT_A3 (8.0f / 27)
#define POINT_B3 3.375f
#define POINT_A4 (16.0f / 81)
#define POINT_B4 5.0625f

enum {
#if SDX_SIMD_LANES == 16
    ROWS = 12, /* tiles of a register tile, by two vectors of output channels */
#elif defined(SDX_SIMD_NEON)
    ROWS = 8, /* and a vector of four channels of each tile */
#else
    ROWS = 6,
#endif
    WIDE = 2,
    MOST = 8 /* inputs of a tile's side */
};

/* ---- tiles ---- */

struct tile_at {
    int64_t image, row, column;
};
SIMD struct tile_at tile_at(const struct sdx_winograd_block *w, int64_t tile)
{
    const int64_t line = tile / w->wide, image = line / w->high;
    return (struct tile_at){image, line - image * w->high, tile - line * w->wide};
}
SIMD void tile_next(const struct sdx_winograd_block *w, struct tile_at *t)
{
    if (++t->column < w->wide) return;
    t->column = 0;
    if (++t->row < w->high) return;
    t->row = 0;
    t->image++;
}
/* Tiles in groups of at most `most`, as equal as can be: the first `more` of size + 1. */
struct groups {
    int64_t count, size, more;
};
SIMD struct groups groups_of(int64_t tiles, int64_t most)
{
    const int64_t count = conv_divide_up(tiles, most), size = tiles / conv_most(count, 1);
    return (struct groups){count, size, tiles - count * size};
}

/* The block of channels that lacks some which are transformed all the same, or -1. What it holds in
 * their place may be too large for that: zeros instead. */
SIMD int64_t part_of(const struct sdx_conv_shape *s)
{
    return winograd_channels(s) > s->ic ? s->ic / LANES : -1;
}
SIMD void only_channels(const struct sdx_conv_shape *s, float *pixels, int64_t count)
{
    for (; count > 0; count--, pixels += LANES)
        v_store(pixels, v_load_masked(pixels, (size_t)(s->ic % LANES), 0.0f));
}

/* ---- transforms of one row or column ---- */

SIMD vf times(float c, vf a, vf b)
{
    return v_fma(a, v_set1(c), b);
}
SIMD void line_out(const int step, const vf *m, vf *to)
{
    if (step < 4) {
        to[0] = m[0] + (m[1] + m[2]);
        to[1] = step == 2 ? (m[1] - m[2]) + m[3] : m[1] - m[2];
        if (step == 3) to[2] = (m[1] + m[2]) + m[3];
        return;
    }
    if (step == 6) {
        const vf sum_1 = m[1] + m[2], less_1 = m[1] - m[2];
        const vf sum_2 = m[3] + m[4], less_2 = m[3] - m[4];
        const vf sum_half = m[5] + m[6], less_half = m[5] - m[6];
        to[0] = (m[0] + sum_1) + (sum_2 + sum_half);
        to[1] = times(2, less_2, times(0.5f, less_half, less_1));
        to[2] = times(4, sum_2, times(0.25f, sum_half, sum_1));
        to[3] = times(8, less_2, times(0.125f, less_half, less_1));
        to[4] = times(16, sum_2, times(0.0625f, sum_half, sum_1));
        to[5] = times(32, less_2, times(0.03125f, less_half, less_1)) + m[7];
        return;
    }
    const vf sum_a = m[1] + m[2], less_a = m[1] - m[2];
    const vf sum_b = m[3] + m[4], less_b = m[3] - m[4];
    to[0] = m[0] + (sum_a + sum_b);
    to[1] = times(POINT_A, less_a, v_set1(POINT_B) * less_b);
    to[2] = times(POINT_A2, sum_a, v_set1(POINT_B2) * sum_b);
    if (step == 5) { /* and fewer: infinity belongs to the last */
        to[3] = times(POINT_A3, less_a, v_set1(POINT_B3) * less_b);
        to[4] = times(POINT_A4, sum_a, v_set1(POINT_B4) * sum_b);
        return;
    }
    to[3] = times(POINT_A3, less_a, times(POINT_B3, less_b, m[5]));
}

/* The constants of tiles of 6 in registers. */
struct points {
    vf a, b, a2, b2, s2;
};
SIMD struct points points(void)
{
    struct points p = {v_set1(POINT_A), v_set1(POINT_B), v_set1(POINT_A2), v_set1(POINT_B2),
                       v_set1(POINT_S2)};
    V_KEEP(p.a);
    V_KEEP(p.b);
    V_KEEP(p.a2);
    V_KEEP(p.b2);
    V_KEEP(p.s2);
    return p;
}
/* Element j of the transform of d, of which only what it needs is loaded; its elements lie `apart`
 * vectors apart. */
SIMD vf element_in(const int step, const int j, const struct points *p, const float *d,
                   const int apart)
{
#define D(i) v_load(d + (i)*apart * LANES)
    if (step < 4)
        return j == 1 ? D(2) + D(1) : j == 0 ? D(0) - D(2) : j == 2 ? D(2) - D(1) : D(3) - D(1);
    if (j == 0 || j == 5) {
        const int from = j == 5;
        return v_fma(-D(from + 2), p->s2, D(from) + D(from + 4));
    }
    const vf other = j < 3 ? p->b2 : p->a2, own = j < 3 ? p->a : p->b;
    const vf even = v_fma(-D(2), other, D(4)), odd = v_fma(-D(1), other, D(3));
    return v_fma(j % 2 ? odd : -odd, own, even);
#undef D
}
SIMD void line_in(const int step, const struct points *p, const vf *d, vf *to)
{
    if (step < 4) {
        to[0] = d[0] - d[2];
        to[1] = d[2] + d[1];
        to[2] = d[2] - d[1];
        to[3] = d[3] - d[1];
        return;
    }
    const vf even_a = v_fma(-d[2], p->b2, d[4]), odd_a = v_fma(-d[1], p->b2, d[3]);
    const vf even_b = v_fma(-d[2], p->a2, d[4]), odd_b = v_fma(-d[1], p->a2, d[3]);
    to[0] = v_fma(-d[2], p->s2, d[0] + d[4]);
    to[1] = v_fma(odd_a, p->a, even_a);
    to[2] = v_fma(-odd_a, p->a, even_a);
    to[3] = v_fma(odd_b, p->b, even_b);
    to[4] = v_fma(-odd_b, p->b, even_b);
    to[5] = v_fma(-d[3], p->s2, d[1] + d[5]);
}
SIMD void line_in_6(const vf *d, vf *to)
{
    const vf even_1 = times(-4.25f, d[4], d[2] + d[6]), odd_1 = times(-4.25f, d[3], d[1] + d[5]);
    const vf even_2 = times(0.25f, d[2], times(-1.25f, d[4], d[6]));
    const vf even_half = times(4, d[2], times(-5, d[4], d[6]));
    const vf middle = v_set1(-2.5f) * d[3];
    const vf odd_2 = times(0.5f, d[1], times(2, d[5], middle));
    const vf odd_half = times(2, d[1], times(0.5f, d[5], middle));
    to[0] = times(5.25f, d[4] - d[2], d[0] - d[6]);
    to[1] = even_1 + odd_1;
    to[2] = even_1 - odd_1;
    to[3] = even_2 + odd_2;
    to[4] = even_2 - odd_2;
    to[5] = even_half + odd_half;
    to[6] = even_half - odd_half;
    to[7] = times(5.25f, d[3] - d[5], d[7] - d[1]);
}

/* ---- filters ---- */

/* One row or column of 1 to 4 weights to `side` sums: at 0, at +-p for each p, at infinity, where
 * one weight has none. */
SIMD void spread(const int side, const int taps, const vf *g, vf *to)
{
    static const struct {
        double p, factor; /* 1 / product of the distances to the other points */
    } pairs[][3] = {{{1, 0.5}},
                    {{2.0 / 3, -729.0 / 1170}, {3.0 / 2, 16.0 / 130}},
                    {{1, -2.0 / 9}, {2, 1.0 / 90}, {0.5, 32.0 / 45}}};
    to[0] = g[0];
    SDX_UNROLL(3) for (int i = 0; i < side / 2 - 1; i++)
    {
        const double p = pairs[side / 2 - 2][i].p, factor = pairs[side / 2 - 2][i].factor;
        const vf first = v_set1((float)factor) * g[0];
        const vf even = taps >= 3 ? times((float)(p * p * factor), g[2], first) : first;
        const vf second = taps == 1 ? v_set1(0.0f) : v_set1((float)(p * factor)) * g[1];
        const vf odd = taps == 4 ? times((float)(p * p * p * factor), g[3], second) : second;
        to[2 * i + 1] = even + odd;
        to[2 * i + 2] = even - odd;
    }
    if (taps > 1) to[side - 1] = g[taps - 1];
}

/* ---- output ---- */

struct output {
    const struct sdx_epilogue *epilogue;
    vf bias;
    float lo, hi;
    int64_t pitch, apart; /* floats between rows of y, and between outputs of a tile in a row */
};
/* Tiles that are cut off at the edge, or that have a curved activation, on their way to y: so many
 * at once that whole blocks of vectors go through it. */
enum { COPIES = 4 };
struct copies {
    int count;
    struct copy {
        float *y;
        int64_t rows, columns;
    } of[COPIES];
    float tiles[COPIES * 6 * 6 * LANES];
};
/* Of tiles of high x wide outputs. */
static void copies_out(const int high, const int wide, const struct output *o, struct copies *c)
{
    const struct sdx_epilogue *e = o->epilogue;
    const int64_t pitch = wide * LANES;
    const float *from = c->tiles;
    if (block_is_curved(e->act)) block_curve(c->tiles, c->count * high * wide, e->act, e->a, e->b);
    for (int n = 0; n < c->count; n++, from += high * pitch)
        for (int64_t i = 0; i < c->of[n].rows; i++)
            for (int64_t j = 0; j < c->of[n].columns; j++)
                v_store(c->of[n].y + i * o->pitch + j * o->apart,
                        v_load(from + i * pitch + j * LANES));
    c->count = 0;
}
#endif
