/* SPDX-License-Identifier: Apache-2.0
 * Panels of qconv_shorts.h, for sets with vectors of 256 bits and more. */
#include "kernels/qconv_shorts.h"
#include "kernels/qdot_store.h"
#include "kernels/simd.h"
#include "kernels/tables.h"

#if SDX_SIMD_LANES >= 8
enum { ROWS = 6, COLS = SDX_QDOT_COLS };
#define TIMES(n) SDX_UNROLL(8) for (int i = 0; i < (n); i++)

static void widen(const uint8_t *from, uint8_t flip, int16_t *to, int64_t n)
{
    const __m128i flips = _mm_set1_epi8((char)flip);
    int64_t i = 0;
    for (; i + COLS <= n; i += COLS) {
        const __m128i bytes = _mm_loadu_si128((const __m128i *)(from + i));
        _mm256_storeu_si256((wide *)(to + i), _mm256_cvtepu8_epi16(_mm_xor_si128(bytes, flips)));
    }
    for (; i < n; i++)
        to[i] = from[i] ^ flip;
}

SIMD void tile(const int count, const struct sdx_qshorts *q, const int16_t *w, int64_t row,
               int64_t column, int64_t n)
{
    wide acc[ROWS][2];
    const int16_t *a[ROWS];
    TIMES(count)
    {
        acc[i][0] = wide_load(q->store.start + column);
        acc[i][1] = wide_load(q->store.start + column + 8);
    }
    for (int64_t r = 0; r < q->runs; r++) {
        TIMES(count) a[i] = q->rows[row + i] + q->starts[r];
        for (int64_t k = 0; k < q->run; k += 2, w += 2 * COLS) {
            wide w0 = wide_load(w), w1 = wide_load(w + COLS);
            V_KEEP(w0);
            V_KEEP(w1);
            TIMES(count)
            {
                int32_t pair;
                memcpy(&pair, a[i] + k, sizeof pair);
                const wide x = _mm256_set1_epi32(pair);
                acc[i][0] = _mm256_add_epi32(acc[i][0], _mm256_madd_epi16(x, w0));
                acc[i][1] = _mm256_add_epi32(acc[i][1], _mm256_madd_epi16(x, w1));
            }
        }
    }
    qdot_store_rows(count, &q->store, acc, row, column, n);
}
typedef void tile_fn(const struct sdx_qshorts *q, const int16_t *w, int64_t row, int64_t column,
                     int64_t n);
#define TILE(count)                                                                                \
    static void tile_##count(const struct sdx_qshorts *q, const int16_t *w, int64_t row,           \
                             int64_t column, int64_t n)                                            \
    {                                                                                              \
        tile(count, q, w, row, column, n);                                                         \
    }
TILE(1)
TILE(2)
TILE(3)
TILE(4)
TILE(5)
TILE(6)
static tile_fn *const tiles[ROWS] = {tile_1, tile_2, tile_3, tile_4, tile_5, tile_6};

static void panels(const struct sdx_qshorts *q, int64_t p0, int64_t p1)
{
    if (q->m <= 0) return;
    const int64_t count = (q->m + ROWS - 1) / ROWS, height = q->m / count, taller = q->m % count;
    const int64_t size = q->runs * q->run * COLS;
    for (int64_t p = p0; p < p1; p++) {
        const int64_t left = q->n - p * COLS, n = left < COLS ? left : COLS;
        for (int64_t t = 0, row = 0; t < count; t++) {
            const int64_t rows = height + (t < taller);
            tiles[rows - 1](q, q->w + p * size, row, p * COLS, n);
            row += rows;
        }
    }
}

void SDX_INIT(sdx_qshorts_init_)(struct sdx_qshorts_table *qshorts)
{
    *qshorts = (struct sdx_qshorts_table){.widen = widen, .panels = panels};
}
#else
/* Narrower sets have all sums in 16-bit steps already (qdot_tmpl.c). */
void SDX_INIT(sdx_qshorts_init_)(struct sdx_qshorts_table *qshorts)
{
    *qshorts = (struct sdx_qshorts_table){.panels = NULL};
}
#endif
