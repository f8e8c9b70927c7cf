/* SPDX-License-Identifier: Apache-2.0
 * The transforms and products of qconv_winograd.h, for sets with vectors of 256 bits and more. */
#include "kernels/qconv_winograd.h"
#include "kernels/qdot_store.h"
#include "kernels/simd.h"
#include "kernels/tables.h"

#if SDX_SIMD_LANES >= 8
enum {
    ROWS = 6,
    COLS = SDX_QDOT_COLS,
    TILE = SDX_QWINOGRAD_TILE,
    SIDE = SDX_QWINOGRAD_SIDE,
    PLANES = SDX_QWINOGRAD_PLANES,
    INVERSE = 954437177 /* of 9 modulo 2^32 */
};
#define TIMES(n) SDX_UNROLL(8) for (int i = 0; i < (n); i++)

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
/* 16 channels of a tile. |v| <= 17340. */
SIMD void in_channels(const uint8_t *const *pixels, int64_t channel, __m128i flip, int16_t *v,
                      int64_t plane)
{
    wide columns[SIDE][SIDE];
    SDX_UNROLL(6) for (int j = 0; j < SIDE; j++)
    {
        wide d[SIDE], t[SIDE];
        SDX_UNROLL(6) for (int i = 0; i < SIDE; i++)
        {
            const uint8_t *p = pixels[i * SIDE + j] + channel;
            d[i] = _mm256_cvtepu8_epi16(_mm_xor_si128(_mm_loadu_si128((const __m128i *)p), flip));
        }
        in_line(d, t);
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
static void transform_in(const struct sdx_qwinograd *w)
{
    const struct sdx_conv_shape *s = w->shape;
    const __m128i flip = _mm_set1_epi8((char)w->flip);
    for (int64_t t = 0; t < w->tiles; t++) {
        const int64_t h0 = (w->first + t) / w->wide * TILE - s->pad_begin[1];
        const int64_t w0 = (w->first + t) % w->wide * TILE - s->pad_begin[2];
        const uint8_t *pixels[PLANES];
        for (int i = 0; i < SIDE; i++)
            for (int j = 0; j < SIDE; j++) {
                const int64_t h = h0 + i, c = w0 + j;
                const bool inside = h >= 0 && h < s->in[1] && c >= 0 && c < s->in[2];
                pixels[i * SIDE + j] = inside ? w->x + (h * s->in[2] + c) * s->ic : w->pad;
            }
        int16_t *v = w->v + t * s->ic;
        int64_t c = 0;
        for (; c + COLS <= s->ic; c += COLS)
            in_channels(pixels, c, flip, v + c, w->plane_v);
        if (c < s->ic) in_channels(pixels, s->ic - COLS, flip, v + s->ic - COLS, w->plane_v);
    }
}

/* ---- products ---- */

SIMD void tile(const int count, const int16_t *v, int64_t pitch, const int16_t *u, int64_t k,
               int32_t *m)
{
    wide acc[ROWS][2];
    TIMES(count) acc[i][0] = acc[i][1] = _mm256_setzero_si256();
    for (; k > 0; k -= 2, v += 2, u += 2 * COLS) {
        wide w0 = wide_load(u), w1 = wide_load(u + COLS);
        V_KEEP(w0);
        V_KEEP(w1);
        TIMES(count)
        {
            int32_t pair;
            memcpy(&pair, v + i * pitch, sizeof pair);
            const wide x = _mm256_set1_epi32(pair);
            acc[i][0] = _mm256_add_epi32(acc[i][0], _mm256_madd_epi16(x, w0));
            acc[i][1] = _mm256_add_epi32(acc[i][1], _mm256_madd_epi16(x, w1));
        }
    }
    TIMES(count)
    {
        _mm256_storeu_si256((wide *)(m + i * COLS), acc[i][0]);
        _mm256_storeu_si256((wide *)(m + i * COLS + 8), acc[i][1]);
    }
}
typedef void tile_fn(const int16_t *v, int64_t pitch, const int16_t *u, int64_t k, int32_t *m);
#define TILE_OF(count)                                                                             \
    static void tile_##count(const int16_t *v, int64_t pitch, const int16_t *u, int64_t k,         \
                             int32_t *m)                                                           \
    {                                                                                              \
        tile(count, v, pitch, u, k, m);                                                            \
    }
TILE_OF(1)
TILE_OF(2)
TILE_OF(3)
TILE_OF(4)
TILE_OF(5)
TILE_OF(6)
static tile_fn *const tiles[ROWS] = {tile_1, tile_2, tile_3, tile_4, tile_5, tile_6};

static void multiply(const struct sdx_qwinograd *w, int64_t p)
{
    const int64_t k = w->shape->ic;
    const int64_t count = (w->tiles + ROWS - 1) / ROWS;
    const int64_t height = w->tiles / count, taller = w->tiles % count;
    const int16_t *u = w->u + p * PLANES * k * COLS;
    for (int plane = 0; plane < PLANES; plane++, u += k * COLS)
        for (int64_t t = 0, row = 0; t < count; t++) {
            const int64_t rows = height + (t < taller);
            tiles[rows - 1](w->v + plane * w->plane_v + row * k, k, u, k,
                            w->m + plane * w->plane_m + row * COLS);
            row += rows;
        }
}

/* ---- output ---- */

SIMD wide add32(wide a, wide b)
{
    return _mm256_add_epi32(a, b);
}
/* The four outputs of a line of six, times 24, 12, 6, 6. */
SIMD void out_line(const wide t[SIDE], wide y[TILE])
{
    const wide p = add32(t[1], t[2]), m = _mm256_sub_epi32(t[1], t[2]);
    const wide q = add32(t[3], t[4]), n = _mm256_sub_epi32(t[3], t[4]);
    y[0] = add32(add32(t[0], q), _mm256_slli_epi32(p, 2));
    y[1] = add32(add32(m, m), n);
    y[2] = add32(p, q);
    y[3] = add32(add32(m, t[5]), add32(n, n));
}
/* 8 columns of a tile: exact sums. */
SIMD void out_columns(const int32_t *m, int64_t plane, wide start, const int half,
                      wide y[TILE][TILE][2])
{
    static const int shifts[TILE] = {3, 2, 1, 1};
    const wide inverse = _mm256_set1_epi32(INVERSE);
    wide lines[TILE][SIDE];
    SDX_UNROLL(6) for (int j = 0; j < SIDE; j++)
    {
        wide t[SIDE], column[TILE];
        SDX_UNROLL(6) for (int i = 0; i < SIDE; i++) t[i] = wide_load(m + (i * SIDE + j) * plane);
        out_line(t, column);
        SDX_UNROLL(4) for (int i = 0; i < TILE; i++) lines[i][j] = column[i];
    }
    SDX_UNROLL(4) for (int i = 0; i < TILE; i++)
    {
        wide sums[TILE];
        out_line(lines[i], sums);
        SDX_UNROLL(4)
        for (int j = 0; j < TILE; j++)
            y[i][j][half] = add32(start, _mm256_srai_epi32(_mm256_mullo_epi32(sums[j], inverse),
                                                           shifts[i] + shifts[j]));
    }
}
static void transform_out(const struct sdx_qwinograd *w, int64_t p)
{
    const struct sdx_conv_shape *s = w->shape;
    const int64_t column = p * COLS, left = s->oc - column, n = left < COLS ? left : COLS;
    const wide start[2] = {wide_load(w->store.start + column),
                           wide_load(w->store.start + column + 8)};
    for (int64_t t = 0; t < w->tiles; t++) {
        const int64_t h0 = (w->first + t) / w->wide * TILE;
        const int64_t w0 = (w->first + t) % w->wide * TILE;
        const int64_t high = s->out[1] - h0 < TILE ? s->out[1] - h0 : TILE;
        const int64_t across = s->out[2] - w0 < TILE ? s->out[2] - w0 : TILE;
        wide y[TILE][TILE][2];
        out_columns(w->m + t * COLS, w->plane_m, start[0], 0, y);
        out_columns(w->m + t * COLS + 8, w->plane_m, start[1], 1, y);
        for (int64_t i = 0; i < high; i++) {
            const int64_t row = (h0 + i) * s->out[2] + w0;
            if (across == TILE)
                qdot_store_rows(TILE, &w->store, y[i], row, column, n);
            else
                for (int64_t j = 0; j < across; j++)
                    qdot_store_rows(1, &w->store, y[i] + j, row + j, column, n);
        }
    }
}

static void run(const struct sdx_qwinograd *w)
{
    transform_in(w);
    for (int64_t p = w->p0; p < w->p1; p++) {
        multiply(w, p);
        transform_out(w, p);
    }
}

void SDX_INIT(sdx_qwinograd_init_)(void (**fn)(const struct sdx_qwinograd *job))
{
    *fn = run;
}
#else
/* Narrower sets have no such product of shorts. */
void SDX_INIT(sdx_qwinograd_init_)(void (**fn)(const struct sdx_qwinograd *job))
{
    *fn = NULL;
}
#endif
