/* SPDX-License-Identifier: Apache-2.0
 * Transforms of F(4, 3), F(3, 4) and F(5, 2), maybe of pieces of a longer kernel, along one axis
 * of blocked channels, for conv_block_winograd.c: the outputs of a tile lie a dilation apart. Tiles
 * are numbered as those of 3 x 3 are; along the axis those of one dilation, which interleave,
 * follow each other. For conv_block_winograd_tmpl.c. */
#ifndef SDX_KERNELS_CONV_BLOCK_WINOGRAD_LINE_H
#define SDX_KERNELS_CONV_BLOCK_WINOGRAD_LINE_H

#include "kernels/winograd_lines.h"

enum { LINE_STEP = 5 /* at most */, LINE_SIDE = 6 };

/* The axis of the input or the output. */
struct line {
    int64_t length;  /* pixels */
    int64_t pixel;   /* floats between two */
    int64_t between; /* pixels between neighbours of a tile */
    int64_t apart;   /* floats */
};
struct line_tile {
    int64_t image;
    int64_t first; /* pixel of the axis that it begins with, maybe outside */
    int64_t at;    /* in floats */
};
SIMD struct line line_of(const struct sdx_winograd_block *w, const int64_t *sizes, int64_t between)
{
    const int64_t pixel = w->axis == 1 ? sizes[2] * LANES : LANES;
    return (struct line){sizes[w->axis], pixel, between, between * pixel};
}
SIMD struct line line_of_inputs(const struct sdx_winograd_block *w)
{
    const struct sdx_conv_shape *s = w->shape;
    return line_of(w, s->in, s->dilation[w->axis] * s->stride[w->axis]); /* one of them is 1 */
}
SIMD struct line line_of_outputs(const struct sdx_winograd_block *w)
{
    return line_of(w, w->shape->out, w->shape->dilation[w->axis]);
}
/* A tile of `step` outputs; of its inputs with the stride, where the first output's begin at
 * `start`. */
SIMD struct line_tile line_tile(const struct sdx_winograd_block *w, const struct line *l,
                                struct tile_at at, int64_t step, int64_t stride, int64_t start)
{
    const int64_t across = w->axis == 1 ? at.row : at.column, d = w->shape->dilation[w->axis];
    const int64_t first = winograd_tile_first(across, step, d) * stride + start;
    const int64_t other = w->axis == 1 ? at.column : at.row * l->length;
    return (struct line_tile){at.image, first, first * l->pixel + other * LANES};
}

static void line_tile_in(const float *from, int64_t apart, const struct points *p, float *to,
                         int64_t plane)
{
    vf d[MOST], t[MOST];
    SDX_UNROLL(6) for (int i = 0; i < LINE_SIDE; i++, from += apart) d[i] = v_load(from);
    line_in(LINE_STEP, p, d, t);
    SDX_UNROLL(6) for (int i = 0; i < LINE_SIDE; i++, to += plane) v_store(to, t[i]);
}
/* A tile that reaches beyond the image: its pixels between zeros. */
static void line_edge(const float *x, const struct line *l, int64_t first, float *to)
{
    for (int i = 0; i < LINE_SIDE; i++, first += l->between, x += l->apart, to += LANES)
        v_store(to, first >= 0 && first < l->length ? v_load(x) : v_set1(0.0f));
}
/* A group's tiles, `skipped` pixels further on: all channels, which are `size` floats of an image.
 */
SIMD void line_group_in(const struct sdx_winograd_block *w, const struct line *l,
                        const struct points *p, const struct line_tile *tiles, int64_t count,
                        int64_t skipped, int64_t lacking, const float *x, int64_t size, float *v)
{
    const int64_t blocks = conv_divide_up(w->shape->ic, LANES);
    x += skipped * l->pixel;
    for (int64_t b = 0; b < blocks; b++) {
        const bool part = b == lacking;
        for (int64_t i = 0; i < count; i++) {
            const struct line_tile *t = &tiles[i];
            const float *from = x + (t->image * blocks + b) * size + t->at;
            const int64_t first = t->first + skipped;
            float edge[LINE_SIDE * LANES], *to = v + (b * ROWS + i) * LANES;
            if (!part && first >= 0 && first + (LINE_SIDE - 1) * l->between < l->length) {
                line_tile_in(from, l->apart, p, to, w->plane_v);
            } else {
                line_edge(from, l, first, edge);
                if (part) only_channels(w->shape, edge, LINE_SIDE);
                line_tile_in(edge, LANES, p, to, w->plane_v);
            }
        }
    }
}
static void line_block_in(const struct sdx_winograd_block *w, const float *x, float *v)
{
    const struct sdx_conv_shape *s = w->shape;
    const int64_t size = s->in[1] * s->in[2] * LANES, blocks = conv_divide_up(s->ic, LANES);
    const int64_t pieces = winograd_pieces(s), piece = winograd_piece(s);
    const int64_t step = winograd_line_step(s), stride = s->stride[w->axis];
    const int64_t lacking = part_of(s);
    const struct line l = line_of_inputs(w);
    const struct groups groups = groups_of(w->tiles, ROWS);
    const struct points p = points();
    struct tile_at at = tile_at(w, w->first);
    for (int64_t g = 0; g < groups.count; g++, v += w->group_v) {
        const int64_t count = groups.size + (g < groups.more);
        struct line_tile tiles[ROWS];
        float *to = v;
        for (int64_t i = 0; i < count; i++, tile_next(w, &at))
            tiles[i] = line_tile(w, &l, at, step, stride, -s->pad_begin[w->axis]);
        for (int64_t k = 0; k < pieces; k++, to += blocks * ROWS * LANES)
            line_group_in(w, &l, &p, tiles, count,
                          winograd_first_tap(k, piece, stride) * s->dilation[w->axis], lacking, x,
                          size, to);
    }
}

/* Of so many vectors of output channels. */
SIMD void line_filters(const int taps, int64_t vectors, const float *g, int64_t channels, float *u,
                       int64_t plane)
{
    for (; channels > 0; channels--, g += taps * vectors * LANES, u += vectors * LANES)
        for (int64_t j = 0; j < vectors * LANES; j += LANES) {
            vf piece[4], t[MOST];
            SDX_UNROLL(4)
            for (int i = 0; i < taps; i++)
                piece[i] = v_load(g + i * vectors * LANES + j);
            spread(LINE_SIDE, taps, piece, t);
            SDX_UNROLL(6) for (int i = 0; i < LINE_SIDE; i++) v_store(u + i * plane + j, t[i]);
        }
}

/* Vector k of output channels, `m` being its part of M. */
static void line_vector_out(const struct sdx_winograd_block *w, const float *m, int64_t k,
                            const struct output *o, float *y)
{
    const struct sdx_conv_shape *s = w->shape;
    const int64_t size = s->out[1] * s->out[2] * LANES, blocks = conv_divide_up(s->oc, LANES);
    const struct line l = line_of_outputs(w);
    const int64_t step = winograd_line_step(s);
    const float *residual = o->epilogue->residual;
    const bool curved = block_is_curved(o->epilogue->act);
    struct tile_at at = tile_at(w, w->first);
    struct copies copies;
    const vf lo = v_set1(o->lo), hi = v_set1(o->hi);
    copies.count = 0;
    for (int64_t i = 0; i < w->tiles; i++, tile_next(w, &at), m += WIDE * LANES) {
        const struct line_tile tile = line_tile(w, &l, at, step, 1, 0);
        const int64_t to = (tile.image * blocks + k) * size + tile.at;
        int count = 0;
        vf d[MOST], t[LINE_STEP];
        while (count < step && tile.first + count * l.between < l.length)
            count++;
        SDX_UNROLL(6) for (int j = 0; j < LINE_SIDE; j++) d[j] = v_load(m + j * w->plane_m);
        if (step == 4) {
            line_out(4, d, t);
        } else {
            line_out(5, d, t);
            t[step == 5 ? 4 : 2] += d[LINE_SIDE - 1]; /* infinity */
        }
        for (int j = 0; j < count; j++) {
            t[j] += o->bias;
            if (residual) t[j] += v_load(residual + to + j * l.apart);
            t[j] = v_min(hi, v_max(lo, t[j]));
            if (!curved) v_store(y + to + j * l.apart, t[j]);
        }
        if (!curved || count == 0) continue;
        SDX_UNROLL(4)
        for (int j = 0; j < LINE_STEP; j++)
            v_store(copies.tiles + (copies.count * LINE_STEP + j) * LANES, t[j]);
        copies.of[copies.count++] = (struct copy){y + to, 1, count};
        if (copies.count == COPIES) copies_out(1, LINE_STEP, o, &copies);
    }
    if (curved) copies_out(1, LINE_STEP, o, &copies);
}
SIMD void line_panel_out(const struct sdx_winograd_block *w, const float *m, int64_t k,
                         struct output *o, int count, float *y)
{
    for (int j = 0; j < count; j++) {
        o[j].apart = line_of_outputs(w).apart;
        line_vector_out(w, m + j * LANES, k + j, &o[j], y);
    }
}
#endif
