/* SPDX-License-Identifier: Apache-2.0
 * Winograd's integer convolution: which shapes and weights it serves, packing, parts. */
#include "kernels/qconv_winograd.h"

#include <string.h>

#include "kernels/conv_block_winograd.h"
#include "kernels/conv_gather.h"
#include "kernels/tables.h"
#include "kernels/tuning.h"

enum {
    TILE = SDX_QWINOGRAD_TILE,
    SIDE = SDX_QWINOGRAD_SIDE,
    PLANES = SDX_QWINOGRAD_PLANES,
    COLS = SDX_QDOT_COLS,
    TAPS = 9,
    TILES_LEAST = 8, /* below, the transformed weights are read for too little work */
    TILES_MOST = 60,
    LINE_TILES_MOST = 30 /* M stays in the first cache */
};

struct geometry {
    int64_t depth, planes;
    int64_t wide, high, tiles; /* of a plane of the output */
    int64_t block, blocks;     /* tiles of a part */
    int64_t panels, splits;    /* parts of a block that share them */
    int64_t plane_v, plane_m;
    int64_t together; /* panels worked at once */
};

/* Elements of a plane: an odd number of lines of the cache, so that planes do not collide in it. */
static int64_t plane_of(int64_t elements, int64_t a_line)
{
    return (conv_divide_up(elements, a_line) | 1) * a_line;
}
static int64_t tiles_along(const struct sdx_conv_shape *s, int axis)
{
    return s->kernel[axis] > 1 ? winograd_tiles_along(s, axis, TILE) : s->out[axis];
}
static struct geometry geometry_of(const struct sdx_conv_shape *s)
{
    const struct sdx_kernel_tuning *t = sdx_kernel_tuning();
    struct geometry g = {.depth = s->ic * s->kernel[0] * qwinograd_pieces(s),
                         .planes = qwinograd_planes(s),
                         .wide = tiles_along(s, 2),
                         .high = tiles_along(s, 1),
                         .panels = conv_divide_up(s->oc, COLS),
                         .together = sdx_kernel_tables()->qwinograd.panels};
    g.tiles = g.wide * g.high;
    const int64_t room = t->a_bytes * 5 / 4 / (g.planes * (int64_t)sizeof(int16_t) * g.depth);
    const int64_t bytes_of_u = g.planes * g.depth * s->oc * (int64_t)sizeof(int16_t);
    const bool few = qwinograd_is_line(s) && bytes_of_u < t->a_bytes;
    const int64_t most = few ? LINE_TILES_MOST : TILES_MOST;
    g.blocks = conv_divide_up(g.tiles, conv_least(conv_most(room, TILES_LEAST), most));
    g.block = conv_divide_up(g.tiles, g.blocks);
    g.blocks = conv_divide_up(g.tiles, g.block);
    const int64_t wanted = conv_divide_up(t->conv_parts, g.blocks * s->batch * s->out[0]);
    g.splits = conv_least(g.panels, wanted);
    g.plane_v = plane_of(g.block * g.depth, 32);
    g.plane_m = plane_of(g.block * COLS, 16);
    return g;
}

static bool shape_fits(const struct sdx_qconv *q)
{
    const struct sdx_conv_shape *s = &q->shape;
    if (s->groups != 1 || s->ic < 16 || s->ic % 2 || s->oc < 8 || q->quickly) return false;
    for (int i = 0; i < 3; i++)
        if (s->out[i] < 1 || (i > 0 && s->stride[i] != 1)) return false;
    /* 36 products of 16 bits for 16 outputs are as fast as 58 of bytes, 6 for 4 as 10 */
    const int64_t taps = s->kernel[1] * s->kernel[2];
    if (taps == 1 || 5 * taps < (qwinograd_is_line(s) ? 12 : 20) * qwinograd_pieces(s))
        return false;
    const struct geometry g = geometry_of(s);
    /* tiles may overhang the image, but not by half */
    const int64_t outputs = qwinograd_tile(s, 1) * qwinograd_tile(s, 2);
    return g.tiles >= TILES_LEAST && g.tiles * outputs * 2 <= s->out[1] * s->out[2] * 3;
}

bool sdx_qwinograd_serves(const struct sdx_qconv *q, const void *weights)
{
    const int64_t k = conv_sizes(&q->shape).k, most = (1 << 25) / 255 - 1;
    if (!sdx_kernel_tables()->qwinograd.run || !shape_fits(q)) return false;
    for (int64_t c = 0; c < q->shape.oc; c++) {
        int64_t positive = 0, negative = 0;
        if (q->zero_w && q->zero_w[c] != (q->w_signed ? 0 : 128)) return false;
        if (128 * k <= most) continue; /* whatever they are */
        for (int64_t i = 0; i < k; i++) {
            const int w = sdx_qconv_weight(q, weights, c * k + i);
            positive += w > 0 ? w : 0;
            negative -= w < 0 ? w : 0;
        }
        if (positive > most || negative > most) return false;
    }
    return q->zero_w || q->w_signed;
}

size_t sdx_qwinograd_packed_size(const struct sdx_qconv *q)
{
    const int64_t columns = conv_divide_up(q->shape.oc, COLS) * COLS;
    const struct geometry g = geometry_of(&q->shape);
    return (size_t)columns * (sizeof(int32_t) + (size_t)(g.planes * g.depth) * sizeof(int16_t));
}

/* Three weights to six, of COLS columns each: the rows of G times 24, 6, 6, 24, 24, 6. Twice of it
 * gives 49 times a byte at most. */
static void line(const int16_t *a, const int16_t *b, const int16_t *c, int16_t *u, int step)
{
    for (int j = 0; j < COLS; j++) {
        const int ends = a[j] + c[j], more = a[j] + 4 * c[j];
        u[j] = (int16_t)(6 * a[j]);
        u[step * COLS + j] = (int16_t) - (ends + b[j]);
        u[2 * step * COLS + j] = (int16_t)(b[j] - ends);
        u[3 * step * COLS + j] = (int16_t)(more + 2 * b[j]);
        u[4 * step * COLS + j] = (int16_t)(more - 2 * b[j]);
        u[5 * step * COLS + j] = (int16_t)(6 * c[j]);
    }
}
/* u = G w G^T of one channel, of a line G w, COLS columns. */
static void transform(bool is_line, int16_t w[TAPS][COLS], int16_t u[PLANES][COLS])
{
    int16_t lines[SIDE * 3][COLS];
    if (is_line) {
        line(w[0], w[1], w[2], u[0], 1);
        return;
    }
    for (int j = 0; j < 3; j++)
        line(w[j], w[3 + j], w[6 + j], lines[j], 3);
    for (int i = 0; i < SIDE; i++)
        line(lines[3 * i], lines[3 * i + 1], lines[3 * i + 2], u[SIDE * i], 1);
}

/* Of number `number` of the depth, (plane of the kernel, piece, channel), and output channels
 * c .. c + count - 1: its weights, zeros that fill it up, and what they add to the sums. */
static void gather(const struct sdx_qconv *q, const void *weights, int64_t number, int64_t c,
                   int64_t count, int16_t w[TAPS][COLS], int32_t *sums)
{
    const struct sdx_conv_shape *s = &q->shape;
    const int64_t pieces = qwinograd_pieces(s), across = qwinograd_across(s);
    const int64_t channel = number % s->ic, whole = number / s->ic;
    const int64_t top = whole % pieces / across * 3, left = whole % across * 3;
    const int64_t rows = conv_least(3, s->kernel[1] - top);
    const int64_t columns = conv_least(3, s->kernel[2] - left);
    const int64_t pitch = s->kernel[2] > 1 ? 3 : 1;
    memset(w, 0, TAPS * sizeof *w);
    for (int64_t j = 0; j < count; j++) {
        const int64_t plane = ((c + j) * s->ic + channel) * s->kernel[0] + whole / pieces;
        for (int64_t i = 0; i < rows * columns; i++) {
            const int64_t row = top + i / columns, column = left + i % columns;
            const int16_t weight =
                sdx_qconv_weight(q, weights, (plane * s->kernel[1] + row) * s->kernel[2] + column);
            w[i / columns * pitch + i % columns][j] = weight;
            sums[j] += weight;
        }
    }
}
void sdx_qwinograd_pack(const struct sdx_qconv *q, const void *weights, void *packed)
{
    const struct geometry g = geometry_of(&q->shape);
    const int64_t depth = g.depth, panels = g.panels;
    int32_t *sums = packed;
    int16_t *to = (int16_t *)(sums + panels * COLS);
    memset(sums, 0, (size_t)(panels * COLS) * sizeof *sums);
    for (int64_t p = 0; p < panels; p++, to += g.planes * depth * COLS, sums += COLS) {
        const int64_t count = conv_least(COLS, q->shape.oc - p * COLS);
        for (int64_t k = 0; k < depth; k += 2) {
            int16_t w[TAPS][COLS], u[2][PLANES][COLS];
            for (int b = 0; b < 2; b++) {
                gather(q, weights, k + b, p * COLS, count, w, sums);
                transform(qwinograd_is_line(&q->shape), w, u[b]);
            }
            for (int64_t i = 0; i < g.planes; i++)
                for (int j = 0; j < COLS; j++)
                    for (int b = 0; b < 2; b++)
                        to[(i * depth + k) * COLS + 2 * j + b] = u[b][i][j];
        }
    }
}

int64_t sdx_qwinograd_parts(const struct sdx_qconv *q)
{
    const struct geometry g = geometry_of(&q->shape);
    return q->shape.batch * q->shape.out[0] * g.blocks * g.splits;
}
size_t sdx_qwinograd_scratch(const struct sdx_qconv *q)
{
    const struct geometry g = geometry_of(&q->shape);
    return (size_t)(g.planes * g.plane_v) * sizeof(int16_t) +
           (size_t)(g.together * g.planes * g.plane_m) * sizeof(int32_t) +
           (size_t)(conv_divide_up(q->shape.ic, 64) * 64);
}

/* What is left of the store of the part's pixels, in as long stretches as lie together. */
static void finish(const struct sdx_qwinograd *j)
{
    const struct sdx_conv_shape *s = j->shape;
    const int64_t n0 = j->p0 * COLS, n = conv_least(s->oc, j->p1 * COLS) - n0;
    const int64_t down = qwinograd_apart(s, 1), right = qwinograd_apart(s, 2);
    const int64_t high = qwinograd_tile(s, 1), wide = qwinograd_tile(s, 2);
    for (int64_t t = j->first, end = j->first + j->tiles, count; t < end; t += count) {
        const int64_t across = t % j->wide, row = t / j->wide;
        count = right > 1 ? 1 : conv_least(j->wide - across, end - t);
        const int64_t w0 = winograd_tile_first(across, wide, right);
        const int64_t w1 = conv_least(s->out[2], w0 + count * wide * right);
        const int64_t h0 = winograd_tile_first(row, high, down);
        const int64_t h1 = conv_least(s->out[1], h0 + high * down);
        for (int64_t h = h0; h < h1; h += down) {
            uint8_t *y = (uint8_t *)j->store.y + (h * s->out[2] + w0) * s->oc + n0;
            if (n == s->oc && right == 1) {
                sdx_qdot_finish(&j->store, y, (size_t)((w1 - w0) * n));
                continue;
            }
            for (int64_t w = w0; w < w1; w += right, y += right * s->oc)
                sdx_qdot_finish(&j->store, y, (size_t)n);
        }
    }
}

void sdx_qwinograd_part(const struct sdx_qconv *q, const void *x, int32_t zero, const void *packed,
                        const struct sdx_qdot_store *store, int64_t part, void *scratch)
{
    const struct sdx_conv_shape *s = &q->shape;
    const struct geometry g = geometry_of(s);
    const int64_t split = part % g.splits, block = part / g.splits % g.blocks;
    const int64_t plane = part / g.splits / g.blocks, n = plane / s->out[0];
    const int64_t size = store->to == SDX_QDOT_BYTES ? 1 : 4;
    struct sdx_qwinograd j = {.shape = s,
                              .x = (const uint8_t *)x + n * s->ic * conv_sizes(s).pixels_in,
                              .plane = plane % s->out[0] * s->stride[0] - s->pad_begin[0],
                              .depth = g.depth,
                              .planes = (int)g.planes,
                              .flip = q->x_signed ? 0x80 : 0,
                              .wide = g.wide,
                              .first = block * g.block,
                              .u = (const int16_t *)((const int32_t *)packed + g.panels * COLS),
                              .p0 = conv_share(g.panels, split, g.splits),
                              .p1 = conv_share(g.panels, split + 1, g.splits),
                              .m = scratch,
                              .plane_v = g.plane_v,
                              .plane_m = g.plane_m,
                              .store = *store};
    j.tiles = conv_least(g.block, g.tiles - j.first);
    j.v = (int16_t *)(j.m + g.together * g.planes * g.plane_m);
    uint8_t *pad = (uint8_t *)(j.v + g.planes * g.plane_v);
    memset(pad, (uint8_t)zero ^ j.flip, (size_t)s->ic);
    j.pad = pad;
    j.store.zero_w = NULL;
    j.store.pitch = s->oc;
    const int64_t image = plane * s->out[1] * s->out[2] * s->oc;
    j.store.y = (uint8_t *)store->y + image * size;
    if (store->addend) j.store.addend += image;
    sdx_kernel_tables()->qwinograd.run(&j);
    if (store->to == SDX_QDOT_BYTES && (store->sum || store->table)) finish(&j);
}
