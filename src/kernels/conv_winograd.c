/* SPDX-License-Identifier: Apache-2.0
 * Winograd's convolution: a block of tiles (4 x 4 outputs each, in reading order over the whole
 * batch) is transformed to 36 matrices V [channels, tiles]; 36 products with the transformed
 * weights U give M [output channels, tiles], whose transform is the output. */
#include "kernels/conv_winograd.h"

#include <math.h>
#include <string.h>

#include "base/compiler.h"
#include "kernels/conv_block_winograd.h"
#include "kernels/conv_gather.h"
#include "kernels/tables.h"
#include "kernels/tuning.h"

enum {
    SIDE = 6, /* of an input tile */
    STEP = 4, /* of an output tile */
    PLANES = SIDE * SIDE,
    GAP = 16 /* floats between planes: their lines shall not share a set of the cache */
};

struct wino_cut {
    int64_t high, wide, tiles; /* of an image, and of all */
    int64_t block, blocks;     /* tiles of a block */
    int64_t chunk, chunks;     /* output channels between two transforms of the output */
    int64_t splits;            /* parts of a block, of whole chunks */
    int64_t room;              /* tiles of a block and what its last vector may touch */
    int64_t panel_step, plane_v, plane_m;
    int64_t line; /* floats of a padded line of pixels */
};

static int64_t chunk_of(const struct sdx_conv_shape *s)
{
    const int64_t rows = sdx_kernel_tables()->gemm.rows;
    return conv_divide_up(s->ic < 256 ? 36 : 64, rows) * rows;
}
static struct wino_cut cut_of(const struct sdx_conv_shape *s)
{
    const struct sdx_kernel_tuning *t = sdx_kernel_tuning();
    const int64_t cols = sdx_kernel_tables()->gemm.cols;
    struct wino_cut c = {.high = conv_divide_up(s->out[1], STEP),
                         .wide = conv_divide_up(s->out[2], STEP),
                         .chunk = chunk_of(s)};
    c.tiles = s->batch * c.high * c.wide;
    const int64_t want = s->ic <= 128 ? 32 : s->ic <= 256 ? 48 : 64;
    c.blocks = conv_divide_up(c.tiles, conv_divide_up(want, cols) * cols);
    c.block = conv_divide_up(conv_divide_up(c.tiles, conv_most(c.blocks, 1)), cols) * cols;
    c.blocks = conv_divide_up(c.tiles, conv_most(c.block, 1));
    c.chunks = conv_divide_up(s->oc, c.chunk);
    /* Each part of a block transforms the whole input again. */
    c.splits = c.blocks < t->conv_parts ? conv_divide_up(t->conv_parts, conv_most(c.blocks, 1)) : 1;
    c.splits = conv_most(1, conv_least(c.splits, conv_least(s->oc / 96, c.chunks)));
    c.room = c.block + 2 * cols;
    c.panel_step = s->ic * cols;
    c.plane_v = c.block / cols * c.panel_step + GAP;
    c.plane_m = c.chunk * c.block + GAP;
    c.line = STEP * c.room;
    return c;
}

/* Multiplications of the products and, at what they were measured to cost, of the transforms,
 * against those of the implicit product. Few tiles wait for the weights, four times as large. */
bool sdx_winograd_f32_fits(const struct sdx_conv_shape *s)
{
    if (s->groups != 1 || s->in[0] != 1 || s->out[0] != 1 || s->pad_begin[0] != 0) return false;
    for (int i = 0; i < 3; i++)
        if (s->kernel[i] != (i ? 3 : 1) || s->stride[i] != 1 || s->dilation[i] != 1) return false;
    const double tiles =
        (double)conv_divide_up(s->out[1], STEP) * (double)conv_divide_up(s->out[2], STEP);
    const double columns = fmax(ceil(tiles / 8) * 8, 12), ic = (double)s->ic, oc = (double)s->oc;
    const double direct = 9 * (double)s->out[1] * (double)s->out[2] * ic * oc;
    return PLANES * columns * ic * oc + tiles * (320 * ic + 290 * oc) < 0.92 * direct;
}

/* [chunk][plane][output channel of the chunk][channel] */
size_t sdx_winograd_f32_packed_size(const struct sdx_conv_shape *s)
{
    return (size_t)(PLANES * s->oc * s->ic) * sizeof(float);
}
void sdx_winograd_f32_pack(const struct sdx_conv_shape *s, const float *weights, float *packed)
{
    const int64_t chunk = chunk_of(s);
    for (int64_t i0 = 0; i0 < s->oc; i0 += chunk) {
        const int64_t rows = conv_least(chunk, s->oc - i0);
        for (int64_t i = 0; i < rows * s->ic; i++, weights += 9) {
            double u[PLANES];
            sdx_winograd_filter(STEP, weights, u);
            for (int e = 0; e < PLANES; e++)
                packed[e * rows * s->ic + i] = (float)u[e];
        }
        packed += PLANES * rows * s->ic;
    }
}

int64_t sdx_winograd_f32_parts(const struct sdx_conv_shape *s)
{
    const struct wino_cut c = cut_of(s);
    return c.blocks * c.splits;
}
static int64_t columns_floats(const struct wino_cut *c)
{
    return PLANES * (c->room + GAP);
}
size_t sdx_winograd_f32_scratch(const struct sdx_conv_shape *s)
{
    const struct wino_cut c = cut_of(s);
    const int64_t work = conv_most(SIDE * c.line + columns_floats(&c), STEP * STEP * c.block);
    return (size_t)(PLANES * (c.plane_v + c.plane_m) + work) * sizeof(float);
}

/* Tiles of a block that lie in one row of tiles of an image. */
struct wino_run {
    int64_t image, row, from, count; /* from: of the row */
    int64_t at;                      /* of the block */
};
static struct wino_run run_first(const struct wino_cut *c, int64_t tile, int64_t count)
{
    const int64_t row = tile / c->wide;
    struct wino_run r = {.image = row / c->high, .from = tile - row * c->wide};
    r.row = row - r.image * c->high;
    r.count = conv_least(count, c->wide - r.from);
    return r;
}
static void run_next(const struct wino_cut *c, int64_t count, struct wino_run *r)
{
    r->at += r->count;
    r->from = 0;
    r->count = conv_least(count - r->at, c->wide);
    if (++r->row == c->high) {
        r->row = 0;
        r->image++;
    }
}

/* The six lines of pixels under a run, with zeros where there is no image. */
static void gather_lines(const struct sdx_conv_shape *s, const struct wino_run *r,
                         const float *channel, float *lines, int64_t pitch)
{
    const int64_t h0 = STEP * r->row - s->pad_begin[1], w0 = STEP * r->from - s->pad_begin[2];
    const int64_t width = STEP * r->count + SIDE - STEP;
    int64_t top, bottom, left, right;
    conv_valid(h0, 1, s->in[1], SIDE, &top, &bottom);
    conv_valid(w0, 1, s->in[2], width, &left, &right);
    if (left >= right) bottom = top;
    for (int64_t i = 0; i < SIDE; i++) {
        if (i < top || i >= bottom) {
            memset(lines + i * pitch, 0, (size_t)width * sizeof(float));
            continue;
        }
        for (int64_t j = 0; j < left; j++)
            lines[i * pitch + j] = 0.0f;
        for (int64_t j = right; j < width; j++)
            lines[i * pitch + j] = 0.0f;
    }
    const struct sdx_rectangle found = {bottom - top, right - left, s->in[2], 1, pitch};
    if (bottom > top)
        sdx_kernel_tables()->gemm.f32_copy_rows(channel + (h0 + top) * s->in[2] + w0 + left,
                                                lines + top * pitch + left, found);
}
static void transform_input(const struct sdx_conv_shape *s, const struct wino_cut *c,
                            const float *x, int64_t tile, int64_t count, float *v, float *work)
{
    const struct sdx_gemm_table *table = &sdx_kernel_tables()->gemm;
    const int64_t pixels = s->in[1] * s->in[2], step = c->room + GAP;
    float *lines = work, *columns = lines + SIDE * c->line + GAP;
    memset(work, 0, (size_t)(SIDE * c->line + columns_floats(c)) * sizeof(float));
    for (int64_t i = 0; i < s->ic; i++) {
        struct wino_run r = run_first(c, tile, count);
        for (; r.count > 0; run_next(c, count, &r)) {
            gather_lines(s, &r, x + (r.image * s->ic + i) * pixels, lines, c->line);
            table->f32_winograd_columns(lines, c->line, r.count, columns + r.at, step);
        }
        table->f32_winograd_rows(columns, step, count, v + i * table->cols, c->plane_v,
                                 c->panel_step);
    }
}

/* One output channel: m is its row of plane 0. */
static void transform_output(const struct sdx_conv_shape *s, const struct wino_cut *c,
                             const float *m, int64_t channel, int64_t tile, int64_t count, float *y,
                             const struct sdx_epilogue *e, float *work)
{
    const struct sdx_gemm_table *table = &sdx_kernel_tables()->gemm;
    const int64_t pitch = STEP * c->block;
    const bool clamped = e->act == SDX_ACT_NONE || e->act == SDX_ACT_RELU || e->act == SDX_ACT_CLIP;
    const float lo = e->act == SDX_ACT_RELU ? 0.0f : e->act == SDX_ACT_CLIP ? e->a : -INFINITY;
    const float hi = e->act == SDX_ACT_CLIP ? e->b : INFINITY;
    table->f32_winograd_output(m, c->plane_m, count, e->bias_row ? e->bias_row[channel] : 0.0f,
                               work, pitch);
    struct wino_run r = run_first(c, tile, count);
    for (; r.count > 0; run_next(c, count, &r)) {
        const int64_t h = STEP * r.row, w = STEP * r.from;
        const int64_t rows = conv_least(STEP, s->out[1] - h);
        const int64_t width = conv_least(STEP * r.count, s->out[2] - w);
        const int64_t to = ((r.image * s->oc + channel) * s->out[1] + h) * s->out[2] + w;
        const float *from = work + STEP * r.at, *residual = e->residual ? e->residual + to : NULL;
        if (clamped) {
            const struct sdx_rectangle all = {rows, width, pitch, 1, s->out[2]};
            table->f32_clamp_rows(from, residual, y + to, all, lo, hi);
            continue;
        }
        for (int64_t i = 0; i < rows; i++)
            table->f32_finish(from + i * pitch, y + to + i * s->out[2], width, 0.0f,
                              residual ? residual + i * s->out[2] : NULL, e);
    }
}

void sdx_winograd_f32_part(const struct sdx_conv_shape *s, const float *x, const float *packed,
                           float *y, const struct sdx_epilogue *epilogue, int64_t part,
                           void *scratch)
{
    const struct sdx_gemm_table *table = &sdx_kernel_tables()->gemm;
    const struct wino_cut c = cut_of(s);
    const int64_t split = part % c.splits, tile = part / c.splits * c.block;
    const int64_t count = conv_least(c.block, c.tiles - tile), lanes = table->cols / 2;
    const int64_t first = c.chunks * split / c.splits, end = c.chunks * (split + 1) / c.splits;
    float *v = scratch, *m = v + PLANES * c.plane_v, *work = m + PLANES * c.plane_m;
    if (count <= 0) return;
    transform_input(s, &c, x, tile, count, v, work);
    for (int64_t i0 = first * c.chunk; i0 < conv_least(end * c.chunk, s->oc); i0 += c.chunk) {
        const int64_t rows = conv_least(c.chunk, s->oc - i0);
        for (int64_t plane = 0; plane < PLANES; plane++) {
            const struct sdx_gemm_job job = {.m = rows,
                                             .n = conv_divide_up(count, lanes) * lanes,
                                             .k = s->ic,
                                             .a = packed + (PLANES * i0 + plane * rows) * s->ic,
                                             .row_a = s->ic,
                                             .b = v + plane * c.plane_v,
                                             .row_b = table->cols,
                                             .panel_step = c.panel_step,
                                             .c = m + plane * c.plane_m,
                                             .row_c = c.block,
                                             .last = true,
                                             .alpha = 1.0f};
            table->f32_block(&job);
        }
        for (int64_t i = 0; i < rows; i++)
            transform_output(s, &c, m + i * c.block, i0 + i, tile, count, y, epilogue, work);
    }
}
