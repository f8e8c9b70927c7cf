/* SPDX-License-Identifier: Apache-2.0
 * The transforms and products of qconv_winograd.h, for sets with vectors of 256 bits and more. */
#include "kernels/conv_block_winograd.h"
#include "kernels/qconv_winograd.h"
#include "kernels/qdot_shorts.h"
#include "kernels/simd.h"
#include "kernels/tables.h"

#if SDX_SIMD_LANES >= 8
enum {
    ROWS = QDOT_SHORTS_ROWS,
    COLS = SDX_QDOT_COLS,
    TILE = SDX_QWINOGRAD_TILE,
    SIDE = SDX_QWINOGRAD_SIDE,
    PLANES = SDX_QWINOGRAD_PLANES,
    INVERSE = 954437177,       /* of 9 modulo 2^32 */
    INVERSE_LINE = -1431655765 /* of 3 */
};

/* ---- input ---- */

SIMD wide add16(wide a, wide b)
{
    return _mm256_add_epi16(a, b);
}
SIMD wide sub16(wide a, wide b)
{
    return _mm256_sub_epi16(a, b);
}
/* B^T d: rows 4 0 -5 0 1 0 | 0 -4 -4 1 1 0 | 0 4 -4 -1 1 0 | 0 -2 -1 2 1 0 | 0 2 -1 -2 1 0 |
 * 0 4 0 -5 0 1 */
SIMD void in_line(const wide d[SIDE], wide t[SIDE])
{
    const wide a = sub16(d[4], _mm256_slli_epi16(d[2], 2));
    const wide b = sub16(d[3], _mm256_slli_epi16(d[1], 2));
    const wide c = sub16(d[4], d[2]), e = sub16(d[3], d[1]), f = add16(e, e);
    t[0] = add16(_mm256_slli_epi16(sub16(d[0], d[2]), 2), c);
    t[1] = add16(a, b);
    t[2] = sub16(a, b);
    t[3] = add16(c, f);
    t[4] = sub16(c, f);
    t[5] = sub16(sub16(d[5], d[3]), _mm256_slli_epi16(e, 2));
}
/* 16 channels of every `step`th of six pixels, transformed. */
SIMD void in_pixels(const uint8_t *const *pixels, const int step, int64_t channel, __m128i flip,
                    wide t[SIDE])
{
    wide d[SIDE];
    SDX_UNROLL(6) for (int i = 0; i < SIDE; i++)
    {
        const uint8_t *p = pixels[i * step] + channel;
        d[i] = _mm256_cvtepu8_epi16(_mm_xor_si128(_mm_loadu_si128((const __m128i *)p), flip));
    }
    in_line(d, t);
}
/* 16 channels of a tile of planes or of a line. |v| <= 17340. */
SIMD void in_channels(bool is_line, const uint8_t *const *pixels, int64_t channel, __m128i flip,
                      int16_t *v, int64_t plane)
{
    wide columns[SIDE][SIDE];
    if (is_line) {
        wide t[SIDE];
        in_pixels(pixels, 1, channel, flip, t);
        SDX_UNROLL(6)
        for (int i = 0; i < SIDE; i++)
            _mm256_storeu_si256((wide *)(v + i * plane), t[i]);
        return;
    }
    SDX_UNROLL(6) for (int j = 0; j < SIDE; j++)
    {
        wide t[SIDE];
        in_pixels(pixels + j, SIDE, channel, flip, t);
        SDX_UNROLL(6) for (int i = 0; i < SIDE; i++) columns[i][j] = t[i];
    }
    SDX_UNROLL(6) for (int i = 0; i < SIDE; i++)
    {
        wide t[SIDE];
        in_line(columns[i], t);
        SDX_UNROLL(6)
        for (int j = 0; j < SIDE; j++)
            _mm256_storeu_si256((wide *)(v + (i * SIDE + j) * plane), t[j]);
    }
}
/* The pixels of a tile whose first one is (h0, w0) of a plane of the image; `x`: NULL beyond it. */
SIMD void pixels_of(const struct sdx_qwinograd *w, const uint8_t *x, int64_t h0, int64_t w0,
                    const uint8_t **pixels)
{
    const struct sdx_conv_shape *s = w->shape;
    const int tall = qwinograd_side(s, 1), broad = qwinograd_side(s, 2);
    for (int i = 0; i < tall; i++)
        for (int j = 0; j < broad; j++) {
            const int64_t h = h0 + i * s->dilation[1], c = w0 + j * s->dilation[2];
            const bool inside = x && h >= 0 && h < s->in[1] && c >= 0 && c < s->in[2];
            *pixels++ = inside ? x + (h * s->in[2] + c) * s->ic : w->pad;
        }
}
static void transform_in(const struct sdx_qwinograd *w)
{
    const struct sdx_conv_shape *s = w->shape;
    const __m128i flip = _mm_set1_epi8((char)w->flip);
    const int64_t down = qwinograd_apart(s, 1), right = qwinograd_apart(s, 2);
    const int64_t tall = qwinograd_tile(s, 1), broad = qwinograd_tile(s, 2);
    const bool is_line = qwinograd_is_line(s);
    const int64_t across = qwinograd_across(s), pieces = qwinograd_pieces(s);
    const int64_t plane = s->in[1] * s->in[2] * s->ic;
    for (int64_t t = 0; t < w->tiles; t++) {
        const int64_t row = (w->first + t) / w->wide, column = (w->first + t) % w->wide;
        const int64_t h0 = winograd_tile_first(row, tall, down) - s->pad_begin[1];
        const int64_t w0 = winograd_tile_first(column, broad, right) - s->pad_begin[2];
        int16_t *v = w->v + t * w->depth;
        for (int64_t i = 0; i < s->kernel[0] * pieces; i++, v += s->ic) {
            const int64_t d = w->plane + i / pieces * s->dilation[0], piece = i % pieces;
            const uint8_t *pixels[PLANES];
            int64_t c = 0;
            pixels_of(w, d >= 0 && d < s->in[0] ? w->x + d * plane : NULL,
                      h0 + piece / across * 3 * down, w0 + piece % across * 3 * right, pixels);
            for (; c + COLS <= s->ic; c += COLS)
                in_channels(is_line, pixels, c, flip, v + c, w->plane_v);
            if (c < s->ic)
                in_channels(is_line, pixels, s->ic - COLS, flip, v + s->ic - COLS, w->plane_v);
        }
    }
}

/* ---- products ---- */

SIMD void tile(const int count, const int panels, const struct sdx_qwinograd *w, const int16_t *v,
               const int16_t *u, int64_t ahead, int32_t *m)
{
    qdot_vector sums[ROWS][2];
    const int64_t k = w->depth;
    const int16_t *a[ROWS];
    QDOT_ROWS(count)
    {
        a[i] = v + i * k;
        QDOT_VECTORS(panels) sums[i][j] = (qdot_vector){0};
    }
    qdot_add_shorts(count, panels, sums, a, k, u, w->planes * k * COLS, ahead);
    QDOT_ROWS(count)
    QDOT_VECTORS(panels)
    {
        const int64_t panel = j / QDOT_PARTS * w->planes * w->plane_m;
        memcpy(m + panel + i * COLS + j % QDOT_PARTS * QDOT_PART_LANES, &sums[i][j],
               sizeof sums[i][j]);
    }
}
typedef void tile_fn(const struct sdx_qwinograd *w, const int16_t *v, const int16_t *u,
                     int64_t ahead, int32_t *m);
#define TILE_OF(count, panels)                                                                     \
    static void tile_##count##_##panels(const struct sdx_qwinograd *w, const int16_t *v,           \
                                        const int16_t *u, int64_t ahead, int32_t *m)               \
    {                                                                                              \
        tile(count, panels, w, v, u, ahead, m);                                                    \
    }
QDOT_SHORTS_TILES(TILE_OF)
static tile_fn *const tiles[QDOT_SHORTS_PANELS][ROWS] = QDOT_SHORTS_TABLE;

/* Of panels p .. p + panels - 1. */
static void multiply(const struct sdx_qwinograd *w, int64_t p, int64_t panels)
{
    const int64_t k = w->depth;
    const struct qdot_cut cut = qdot_cut(w->tiles, ROWS);
    const int16_t *u = w->u + p * w->planes * k * COLS;
    for (int plane = 0; plane < w->planes; plane++, u += k * COLS)
        for (int64_t t = 0, row = 0; t < cut.count; t++) {
            const int64_t rows = qdot_height(&cut, t);
            tiles[panels - 1][rows - 1](w, w->v + plane * w->plane_v + row * k, u,
                                        t == 0 ? k * COLS : 0,
                                        w->m + plane * w->plane_m + row * COLS);
            row += rows;
        }
}

/* ---- output ---- */

SIMD qdot_vector add32(qdot_vector a, qdot_vector b)
{
    return QDOT_V(add_epi32)(a, b);
}
SIMD qdot_vector sub32(qdot_vector a, qdot_vector b)
{
    return QDOT_V(sub_epi32)(a, b);
}
/* The four outputs of a line of six, times 24, 12, 6, 6. */
SIMD void out_line(const qdot_vector t[SIDE], qdot_vector y[TILE])
{
    const qdot_vector p = add32(t[1], t[2]), m = sub32(t[1], t[2]);
    const qdot_vector q = add32(t[3], t[4]), n = sub32(t[3], t[4]);
    y[0] = add32(add32(t[0], q), QDOT_V(slli_epi32)(p, 2));
    y[1] = add32(add32(m, m), n);
    y[2] = add32(p, q);
    y[3] = add32(add32(m, t[5]), add32(n, n));
}
static const int shifts[TILE] = {3, 2, 1, 1}; /* what is left of those factors without 3 */
/* A vector of columns of a line's tile: exact sums, `step` elements of y apart. */
SIMD void out_columns_line(const int32_t *m, int64_t plane, const int32_t *start, const int part,
                           int step, qdot_vector (*y)[2])
{
    const qdot_vector inverse = QDOT_V(set1_epi32)(INVERSE_LINE), from = QDOT_LOAD(start);
    qdot_vector t[SIDE], sums[TILE];
    SDX_UNROLL(6) for (int i = 0; i < SIDE; i++) t[i] = QDOT_LOAD(m + i * plane);
    out_line(t, sums);
    SDX_UNROLL(4)
    for (int i = 0; i < TILE; i++)
        y[i * step][part] =
            add32(from, QDOT_V(srai_epi32)(QDOT_V(mullo_epi32)(sums[i], inverse), shifts[i]));
}
/* Of a plane's. */
SIMD void out_columns(const int32_t *m, int64_t plane, const int32_t *start, const int part,
                      qdot_vector y[TILE][TILE][2])
{
    const qdot_vector inverse = QDOT_V(set1_epi32)(INVERSE), from = QDOT_LOAD(start);
    qdot_vector lines[TILE][SIDE];
    SDX_UNROLL(6) for (int j = 0; j < SIDE; j++)
    {
        qdot_vector t[SIDE], column[TILE];
        SDX_UNROLL(6)
        for (int i = 0; i < SIDE; i++)
            t[i] = QDOT_LOAD(m + (i * SIDE + j) * plane);
        out_line(t, column);
        SDX_UNROLL(4) for (int i = 0; i < TILE; i++) lines[i][j] = column[i];
    }
    SDX_UNROLL(4) for (int i = 0; i < TILE; i++)
    {
        qdot_vector sums[TILE];
        out_line(lines[i], sums);
        SDX_UNROLL(4)
        for (int j = 0; j < TILE; j++)
            y[i][j][part] = add32(from, QDOT_V(srai_epi32)(QDOT_V(mullo_epi32)(sums[j], inverse),
                                                           shifts[i] + shifts[j]));
    }
}
static void transform_out(const struct sdx_qwinograd *w, const int32_t *m, int64_t p)
{
    const struct sdx_conv_shape *s = w->shape;
    const int64_t down = qwinograd_apart(s, 1), right = qwinograd_apart(s, 2);
    const int64_t tall = qwinograd_tile(s, 1), broad = qwinograd_tile(s, 2);
    const int64_t column = p * COLS, left = s->oc - column, n = left < COLS ? left : COLS;
    for (int64_t t = 0; t < w->tiles; t++) {
        const int64_t h0 = winograd_tile_first((w->first + t) / w->wide, tall, down);
        const int64_t w0 = winograd_tile_first((w->first + t) % w->wide, broad, right);
        const int64_t high = winograd_outputs_left(tall, s->out[1] - h0, down);
        const int64_t across = winograd_outputs_left(broad, s->out[2] - w0, right);
        qdot_vector y[TILE][TILE][2];
        SDX_UNROLL(2) for (int i = 0; i < QDOT_PARTS; i++)
        {
            const int64_t at = i * QDOT_PART_LANES;
            const int32_t *from = m + t * COLS + at, *start = w->store.start + column + at;
            if (qwinograd_is_line(s))
                out_columns_line(from, w->plane_m, start, i, broad == 1 ? TILE : 1, y[0]);
            else
                out_columns(from, w->plane_m, start, i, y);
        }
        for (int64_t i = 0; i < high; i++) {
            const int64_t row = (h0 + i * down) * s->out[2] + w0;
            if (across == TILE && right == 1)
                qdot_store_sums(TILE, 1, &w->store, y[i], row, column, n);
            else
                for (int64_t j = 0; j < across; j++)
                    qdot_store_sums(1, 1, &w->store, y[i] + j, row + j * right, column, n);
        }
    }
}

static void run(const struct sdx_qwinograd *w)
{
    transform_in(w);
    for (int64_t p = w->p0, panels; p < w->p1; p += panels) {
        panels = w->p1 - p < QDOT_SHORTS_PANELS ? w->p1 - p : QDOT_SHORTS_PANELS;
        multiply(w, p, panels);
        for (int64_t j = 0; j < panels; j++)
            transform_out(w, w->m + j * w->planes * w->plane_m, p + j);
    }
}

void SDX_INIT(sdx_qwinograd_init_)(struct sdx_qwinograd_table *qwinograd)
{
    *qwinograd = (struct sdx_qwinograd_table){.panels = QDOT_SHORTS_PANELS, .run = run};
}
#else
/* Narrower sets have no such product of shorts. */
void SDX_INIT(sdx_qwinograd_init_)(struct sdx_qwinograd_table *qwinograd)
{
    *qwinograd = (struct sdx_qwinograd_table){.run = NULL};
}
#endif
