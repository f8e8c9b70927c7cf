/* SPDX-License-Identifier: Apache-2.0
 * Panels of qdot.h with vpdpbusd, which adds four products to 32 bits exactly: all steps as they
 * are, 16 columns to a register, two panels at a time: then a byte of A that is spread over a
 * register serves two products, and loads do not bound them. */
#define SDX_SET_AVX512 1 /* the set includes it: width of simd.h */
#include "kernels/qdot_panel.h"
#include "kernels/tables.h"
#include "kernels/x86/qdot_store_avx512vnni.h"

enum { COLS = SDX_QDOT_COLS, ROWS = 12, WIDE = 2 };
#define TIMES(n)  SDX_UNROLL(12) for (int i = 0; i < (n); i++)
#define PANELS(n) SDX_UNROLL(2) for (int j = 0; j < (n); j++)

/* What brings the bytes of four vectors one behind the other. */
SIMD __m512i in_order(void)
{
    return _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
}
/* Rows of 32 columns, two at a time. */
SIMD void store_pairs(const int count, const struct sdx_qdot_store *st, __m512i (*acc)[WIDE],
                      const struct rounding *r, const __m512 by[WIDE], uint8_t *y)
{
    const int64_t pitch = st->pitch;
    const __m512i order = in_order();
    SDX_UNROLL(12) for (int i = 0; i < count; i += 2, y += 2 * pitch)
    {
        const int then = i + 1 < count ? i + 1 : i;
        const __m512i a = shorts(r, acc[i][0], by[0], acc[i][1], by[1]);
        const __m512i b = shorts(r, acc[then][0], by[0], acc[then][1], by[1]);
        const __m512i rows = _mm512_permutexvar_epi32(order, bytes(r, a, b));
        _mm256_storeu_si256((__m256i *)y, _mm512_castsi512_si256(rows));
        if (then > i)
            _mm256_storeu_si256((__m256i *)(y + pitch), _mm512_extracti64x4_epi64(rows, 1));
    }
}
/* Rows of 16 columns, four at a time. */
SIMD void store_fours(const int count, const struct sdx_qdot_store *st, __m512i (*acc)[WIDE],
                      const struct rounding *r, __m512 by, uint8_t *y)
{
    const int64_t pitch = st->pitch;
    const __m512i order = in_order();
#define ROW(k) acc[i + (k) < count ? i + (k) : i][0]
    SDX_UNROLL(12) for (int i = 0; i < count; i += 4, y += 4 * pitch)
    {
        const __m512i a = shorts(r, ROW(0), by, ROW(1), by);
        const __m512i b = shorts(r, ROW(2), by, ROW(3), by);
        const __m512i rows = _mm512_permutexvar_epi32(order, bytes(r, a, b));
        _mm_storeu_si128((__m128i *)y, _mm512_castsi512_si128(rows));
        if (i + 1 < count)
            _mm_storeu_si128((__m128i *)(y + pitch), _mm512_extracti32x4_epi32(rows, 1));
        if (i + 2 < count)
            _mm_storeu_si128((__m128i *)(y + 2 * pitch), _mm512_extracti32x4_epi32(rows, 2));
        if (i + 3 < count)
            _mm_storeu_si128((__m128i *)(y + 3 * pitch), _mm512_extracti32x4_epi32(rows, 3));
    }
#undef ROW
}
SIMD void store_tile(const int count, const int wide, const struct sdx_qdot_store *st,
                     __m512i (*acc)[WIDE], int64_t row, int64_t column, int64_t n)
{
    if (SDX_UNLIKELY(st->to != SDX_QDOT_BYTES || st->zero_w || n < wide * COLS)) {
        int32_t sums[ROWS * WIDE * COLS];
        TIMES(count) PANELS(wide) _mm512_storeu_si512(sums + (i * wide + j) * COLS, acc[i][j]);
        for (int i = 0; i < count; i++)
            for (int j = 0; j < wide; j++)
                store_row(st, sums + (i * wide + j) * COLS, row + i, column + j * COLS,
                          n - j * COLS < COLS ? n - j * COLS : COLS);
        return;
    }
    const struct rounding r = rounding(st);
    __m512 by[WIDE];
    PANELS(wide) by[j] = _mm512_loadu_ps(st->factor + column + j * COLS);
    uint8_t *y = (uint8_t *)st->y + row * st->pitch + column;
    if (wide == WIDE)
        store_pairs(count, st, acc, &r, by, y);
    else
        store_fours(count, st, acc, &r, by[0], y);
}

SIMD void tile(const int count, const int wide, const struct sdx_qdot *q,
               const struct qdot_panel *panel, const struct sdx_qdot_step *s, int64_t ahead,
               int64_t row, int64_t column, int64_t n)
{
    __m512i acc[ROWS][WIDE], start[WIDE];
    const uint8_t *a[ROWS];
    const int32_t steps = panel->count[QDOT_ONES];
    const int8_t *w = (const int8_t *)q->packed + panel->weights;
    const int64_t apart = (int64_t)steps * QDOT_BYTES; /* panels */
    PANELS(wide) start[j] = whole(q->store.start + column + j * COLS);
    TIMES(count)
    {
        a[i] = q->rows[row + i];
        PANELS(wide) acc[i][j] = start[j];
    }
    for (int32_t k = 0; k < steps; k++, w += QDOT_BYTES) {
        const size_t at = s[k].at;
        __m512i weights[WIDE];
        _mm_prefetch((const char *)w + ahead, _MM_HINT_T0);
        PANELS(wide)
        {
            weights[j] = whole(w + j * apart);
            V_KEEP(weights[j]);
        }
        TIMES(count)
        {
            int32_t x;
            memcpy(&x, a[i] + at, sizeof x);
            const __m512i bytes = _mm512_set1_epi32(x);
            PANELS(wide) acc[i][j] = _mm512_dpbusd_epi32(acc[i][j], bytes, weights[j]);
        }
    }
    store_tile(count, wide, &q->store, acc, row, column, n);
}

typedef void tile_fn(const struct sdx_qdot *q, const struct qdot_panel *panel,
                     const struct sdx_qdot_step *s, int64_t ahead, int64_t row, int64_t column,
                     int64_t n);
#define TILE(count, wide)                                                                          \
    static void tile_##count##_##wide(const struct sdx_qdot *q, const struct qdot_panel *panel,    \
                                      const struct sdx_qdot_step *s, int64_t ahead, int64_t row,   \
                                      int64_t column, int64_t n)                                   \
    {                                                                                              \
        tile(count, wide, q, panel, s, ahead, row, column, n);                                     \
    }
#define TILE_NAME(count, wide) tile_##count##_##wide,
#define HEIGHTS(X, wide)                                                                           \
    X(1, wide)                                                                                     \
    X(2, wide)                                                                                     \
    X(3, wide)                                                                                     \
    X(4, wide)                                                                                     \
    X(5, wide) X(6, wide) X(7, wide) X(8, wide) X(9, wide) X(10, wide) X(11, wide) X(12, wide)
HEIGHTS(TILE, 1)
HEIGHTS(TILE, 2)
static tile_fn *const tiles[WIDE][ROWS] = {{HEIGHTS(TILE_NAME, 1)}, {HEIGHTS(TILE_NAME, 2)}};

static void panel_of(const struct sdx_qdot *q, const struct qdot_panel *panel,
                     const struct sdx_qdot_step *steps, int64_t column, int64_t n)
{
    if (q->m <= 0) return;
    tile_fn *const *fns = tiles[n > COLS];
    const int64_t count = (q->m + ROWS - 1) / ROWS, height = q->m / count, taller = q->m % count;
    /* the weights of the next panels come while the first two tiles are in hand */
    const int64_t apart = (int64_t)panel->count[QDOT_ONES] * QDOT_BYTES;
    for (int64_t t = 0, row = 0; t < count; t++) {
        const int64_t rows = height + (t < taller), ahead = t < WIDE ? (WIDE + t) * apart : 0;
        fns[rows - 1](q, panel, steps, ahead, row, column, n);
        row += rows;
    }
}

void sdx_qdot_init_avx512vnni(struct sdx_qdot_table *qdot)
{
    *qdot = (struct sdx_qdot_table){.natural = QDOT_ONES, .wide = WIDE, .panel = panel_of};
}
