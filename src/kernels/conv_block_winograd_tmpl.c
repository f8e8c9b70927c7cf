/* SPDX-License-Identifier: Apache-2.0
 * Winograd's transforms and products on blocked channels: a vector holds one pixel, or one element
 * of a tile, of all channels of a block. Once an instruction set. Points of F(4 x 4): 0, +-a, +-b,
 * infinity with a b = 1; of F(2 x 2): 0, +-1, infinity. */
#include "kernels/conv_block_curve.h"
#include "kernels/conv_gather.h"
#include "kernels/tables.h"

#define A  (2.0f / 3)
#define B  1.5f
#define A2 (4.0f / 9)
#define B2 2.25f
#define S2 (97.0f / 36) /* a^2 + b^2 */
#define A3 (8.0f / 27)
#define B3 3.375f

enum {
#if defined(SDX_SET_AVX512)
    ROWS = 12, /* tiles of a register tile, by two vectors of output channels */
#else
    ROWS = 6,
#endif
    WIDE = 2,
    MOST = 6,  /* side of an input tile */
    PASS = 128 /* input channels in one chain of sums, for accuracy */
};

/* ---- transforms of one row or column ---- */
SIMD vf times(float c, vf a, vf b)
{
    return v_fma(a, v_set1(c), b);
}
SIMD void line_in(const int step, const vf *d, vf *to)
{
    if (step == 2) {
        to[0] = d[0] - d[2];
        to[1] = d[2] + d[1];
        to[2] = d[2] - d[1];
        to[3] = d[3] - d[1];
        return;
    }
    const vf even_a = times(-B2, d[2], d[4]), odd_a = times(-B2, d[1], d[3]);
    const vf even_b = times(-A2, d[2], d[4]), odd_b = times(-A2, d[1], d[3]);
    to[0] = times(-S2, d[2], d[0] + d[4]);
    to[1] = times(A, odd_a, even_a);
    to[2] = times(-A, odd_a, even_a);
    to[3] = times(B, odd_b, even_b);
    to[4] = times(-B, odd_b, even_b);
    to[5] = times(-S2, d[3], d[1] + d[5]);
}
SIMD void line_out(const int step, const vf *m, vf *to)
{
    if (step == 2) {
        to[0] = m[0] + (m[1] + m[2]);
        to[1] = (m[1] - m[2]) + m[3];
        return;
    }
    const vf sum_a = m[1] + m[2], less_a = m[1] - m[2];
    const vf sum_b = m[3] + m[4], less_b = m[3] - m[4];
    to[0] = m[0] + (sum_a + sum_b);
    to[1] = times(A, less_a, v_set1(B) * less_b);
    to[2] = times(A2, sum_a, v_set1(B2) * sum_b);
    to[3] = times(A3, less_a, times(B3, less_b, m[5]));
}

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
/* A block's tiles in groups of at most ROWS, as equal as can be: first tile of group g. */
SIMD int64_t group_begin(int64_t tiles, int64_t groups, int64_t g)
{
    return tiles / groups * g + conv_least(g, tiles % groups);
}

SIMD void tile_in(const int step, const float *from, int64_t pitch, float *to, int64_t plane)
{
    const int side = step + 2;
    vf half[MOST][MOST], d[MOST], t[MOST];
    for (int i = 0; i < side; i++, from += pitch) {
        SDX_UNROLL(6) for (int j = 0; j < side; j++) d[j] = v_load(from + j * LANES);
        line_in(step, d, t);
        SDX_UNROLL(6) for (int j = 0; j < side; j++) half[i][j] = t[j];
    }
    for (int j = 0; j < side; j++, to += plane) {
        SDX_UNROLL(6) for (int i = 0; i < side; i++) d[i] = half[i][j];
        line_in(step, d, t);
        float *column = to;
        SDX_UNROLL(6) for (int i = 0; i < side; i++, column += side * plane) v_store(column, t[i]);
    }
}
/* A tile that reaches beyond the image: its pixels between zeros. */
static void edge_in(const struct sdx_conv_shape *s, int64_t side, const float *x, int64_t h,
                    int64_t w, float *to)
{
    int64_t top, bottom, left, right;
    conv_valid(h, 1, s->in[1], side, &top, &bottom);
    conv_valid(w, 1, s->in[2], side, &left, &right);
    for (int64_t i = 0; i < side * side; i++)
        v_store(to + i * LANES, v_set1(0.0f));
    for (int64_t i = top; i < bottom; i++)
        for (int64_t j = left; j < right; j++)
            v_store(to + (i * side + j) * LANES, v_load(x + ((h + i) * s->in[2] + w + j) * LANES));
}
SIMD void block_in(const int step, const struct sdx_winograd_block *w, const float *x, float *v)
{
    const struct sdx_conv_shape *s = w->shape;
    const int side = step + 2;
    const int64_t blocks = conv_divide_up(s->ic, LANES), pitch = s->in[2] * LANES;
    const int64_t groups = conv_divide_up(w->tiles, ROWS);
    struct tile_at begin = tile_at(w, w->first);
    for (int64_t g = 0; g < groups; g++) {
        const int64_t count =
            group_begin(w->tiles, groups, g + 1) - group_begin(w->tiles, groups, g);
        struct tile_at at = begin;
        for (int64_t b = 0; b < blocks; b++, v += ROWS * LANES) {
            at = begin;
            for (int64_t i = 0; i < count; i++, tile_next(w, &at)) {
                const int64_t h = at.row * step - s->pad_begin[1];
                const int64_t c = at.column * step - s->pad_begin[2];
                const float *image = x + (at.image * blocks + b) * s->in[1] * pitch;
                float edge[MOST * MOST * LANES];
                if (h >= 0 && c >= 0 && h + side <= s->in[1] && c + side <= s->in[2]) {
                    tile_in(step, image + h * pitch + c * LANES, pitch, v + i * LANES, w->plane_v);
                } else {
                    edge_in(s, side, image, h, c, edge);
                    tile_in(step, edge, side * LANES, v + i * LANES, w->plane_v);
                }
            }
        }
        begin = at;
    }
}
static void winograd_in(const struct sdx_winograd_block *w, const float *x, float *v)
{
    if (w->step == 4)
        block_in(4, w, x, v);
    else
        block_in(2, w, x, v);
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
SIMD void product(const int rows, const int wide, int64_t channels, const float *v, const float *u,
                  float *m)
{
    for (bool more = false; channels > 0; channels -= PASS, more = true) {
        const int64_t count = channels < PASS ? channels : PASS;
        vf sums[ROWS][WIDE];
        SDX_UNROLL(12)
        for (int i = 0; i < rows; i++)
            SDX_UNROLL(2) for (int j = 0; j < wide; j++) sums[i][j] = v_set1(0.0f);
        for (int64_t n = count / LANES; n > 0; n--, v += ROWS * LANES, u += wide * LANES * LANES) {
            P_KEEP(v);
            P_KEEP(u);
            SDX_UNROLL(16)
            for (int k = 0; k < LANES; k++)
                product_step(rows, wide, sums, v + k, u + k * wide * LANES);
        }
        for (int64_t k = 0; k < count % LANES; k++)
            product_step(rows, wide, sums, v + k, u + k * wide * LANES);
        SDX_UNROLL(12) for (int i = 0; i < rows; i++) SDX_UNROLL(2) for (int j = 0; j < wide; j++)
        {
            float *to = m + (i * WIDE + j) * LANES;
            v_store(to, more ? v_load(to) + sums[i][j] : sums[i][j]);
        }
    }
}
SIMD void panel(const int wide, const struct sdx_winograd_block *w, const float *v, const float *u,
                float *m)
{
    const int64_t ic = w->shape->ic, step = conv_divide_up(ic, LANES) * ROWS * LANES;
    const int64_t groups = conv_divide_up(w->tiles, ROWS);
    for (int64_t g = 0, at = 0; g < groups; g++, v += step) {
        const int64_t end = group_begin(w->tiles, groups, g + 1);
        float *to = m + at * WIDE * LANES;
        switch (end - at) {
#if defined(SDX_SET_AVX512)
        case 12: product(12, wide, ic, v, u, to); break;
        case 11: product(11, wide, ic, v, u, to); break;
        case 10: product(10, wide, ic, v, u, to); break;
        case 9: product(9, wide, ic, v, u, to); break;
        case 8: product(8, wide, ic, v, u, to); break;
        case 7: product(7, wide, ic, v, u, to); break;
#endif
        case 6: product(6, wide, ic, v, u, to); break;
        case 5: product(5, wide, ic, v, u, to); break;
        case 4: product(4, wide, ic, v, u, to); break;
        case 3: product(3, wide, ic, v, u, to); break;
        case 2: product(2, wide, ic, v, u, to); break;
        default: product(1, wide, ic, v, u, to); break;
        }
        at = end;
    }
}
static void winograd_multiply(const struct sdx_winograd_block *w, const float *v, const float *u,
                              int64_t vectors, float *m)
{
    const int planes = (w->step + 2) * (w->step + 2);
    for (int p = 0; p < planes; p++, v += w->plane_v, m += w->plane_m) {
        float *to = m;
        int64_t left = vectors;
        for (; left >= WIDE; left -= WIDE, to += w->room * WIDE * LANES) {
            panel(WIDE, w, v, u, to);
            u += w->shape->ic * WIDE * LANES;
        }
        if (left) {
            panel(1, w, v, u, to);
            u += w->shape->ic * LANES;
        }
    }
}

/* ---- output ---- */
struct output {
    const struct sdx_epilogue *epilogue;
    vf bias;
    float lo, hi;
    int64_t pitch; /* floats of a row of y */
};
/* A tile, without what its epilogue adds, to rows of y or of a copy. */
SIMD void tile_out(const int step, const float *m, int64_t plane, const struct output *o,
                   const float *residual, float *y, int64_t pitch)
{
    const int side = step + 2;
    const vf lo = v_set1(o->lo), hi = v_set1(o->hi);
    vf half[MOST][MOST], d[MOST], t[MOST];
    for (int j = 0; j < side; j++, m += plane) {
        const float *column = m;
        SDX_UNROLL(6) for (int i = 0; i < side; i++, column += side * plane) d[i] = v_load(column);
        line_out(step, d, t);
        SDX_UNROLL(4) for (int i = 0; i < step; i++) half[i][j] = t[i];
    }
    for (int i = 0; i < step; i++, y += pitch) {
        SDX_UNROLL(6) for (int j = 0; j < side; j++) d[j] = half[i][j];
        line_out(step, d, t);
        SDX_UNROLL(4) for (int j = 0; j < step; j++) t[j] += o->bias;
        if (residual) {
            SDX_UNROLL(4) for (int j = 0; j < step; j++) t[j] += v_load(residual + j * LANES);
            residual += pitch;
        }
        SDX_UNROLL(4)
        for (int j = 0; j < step; j++)
            v_store(y + j * LANES, v_min(hi, v_max(lo, t[j])));
    }
}
/* A tile that is cut off at the edge, or that has a curved activation. */
static void copied_out(const int step, const float *m, int64_t plane, const struct output *o,
                       const float *residual, float *y, int64_t rows, int64_t columns)
{
    float copy[4 * 4 * LANES], more[4 * 4 * LANES];
    const int64_t pitch = step * LANES;
    for (int64_t i = 0; residual && i < step; i++)
        for (int64_t j = 0; j < step; j++)
            v_store(more + i * pitch + j * LANES, i < rows && j < columns
                                                      ? v_load(residual + i * o->pitch + j * LANES)
                                                      : v_set1(0.0f));
    if (step == 4)
        tile_out(4, m, plane, o, residual ? more : NULL, copy, pitch);
    else
        tile_out(2, m, plane, o, residual ? more : NULL, copy, pitch);
    const struct sdx_epilogue *e = o->epilogue;
    if (block_is_curved(e->act)) block_curve(copy, step * step, e->act, e->a, e->b);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            v_store(y + i * o->pitch + j * LANES, v_load(copy + i * pitch + j * LANES));
}
SIMD void vector_out(const int step, const struct sdx_winograd_block *w, const float *m, int64_t k,
                     const struct output *o, float *y)
{
    const struct sdx_conv_shape *s = w->shape;
    const int64_t blocks = conv_divide_up(s->oc, LANES), size = s->out[1] * o->pitch;
    const bool curved = block_is_curved(o->epilogue->act);
    struct tile_at at = tile_at(w, w->first);
    for (int64_t i = 0; i < w->tiles; i++, tile_next(w, &at), m += WIDE * LANES) {
        const int64_t h = at.row * step, c = at.column * step;
        const int64_t rows = conv_least(step, s->out[1] - h);
        const int64_t columns = conv_least(step, s->out[2] - c);
        const int64_t to = (at.image * blocks + k) * size + h * o->pitch + c * LANES;
        const float *residual = o->epilogue->residual ? o->epilogue->residual + to : NULL;
        if (!curved && rows == step && columns == step)
            tile_out(step, m, w->plane_m, o, residual, y + to, o->pitch);
        else
            copied_out(step, m, w->plane_m, o, residual, y + to, rows, columns);
    }
}
static void winograd_out(const struct sdx_winograd_block *w, const float *m, int64_t k0, int64_t k1,
                         const struct sdx_epilogue *epilogue, float *y)
{
    struct output o = {.epilogue = epilogue, .pitch = w->shape->out[2] * LANES};
    block_limits(epilogue->act, epilogue->a, epilogue->b, &o.lo, &o.hi);
    for (int64_t k = k0; k < k1; k++) {
        float bias[LANES];
        for (int64_t i = 0, at = k * LANES; i < LANES; i++, at++)
            bias[i] = epilogue->bias_row && at < w->shape->oc ? epilogue->bias_row[at] : 0.0f;
        o.bias = v_load(bias);
        const float *from = m + (k - k0) / WIDE * w->room * WIDE * LANES + (k - k0) % WIDE * LANES;
        if (w->step == 4)
            vector_out(4, w, from, k, &o, y);
        else
            vector_out(2, w, from, k, &o, y);
    }
}

void SDX_INIT(sdx_conv_block_winograd_init_)(struct sdx_conv_block_table *block)
{
    block->winograd_rows = ROWS;
    block->f32_winograd_in = winograd_in;
    block->f32_winograd_multiply = winograd_multiply;
    block->f32_winograd_out = winograd_out;
}
