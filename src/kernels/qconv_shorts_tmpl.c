/* SPDX-License-Identifier: Apache-2.0
 * Panels of qconv_shorts.h, for sets with vectors of 256 bits and more. */
#include "kernels/qconv_shorts.h"
#include "kernels/qdot_shorts.h"
#include "kernels/simd.h"
#include "kernels/tables.h"

#if SDX_SIMD_LANES >= 8
enum { ROWS = QDOT_SHORTS_ROWS, COLS = SDX_QDOT_COLS };

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

SIMD void tile(const int count, const int panels, const struct sdx_qshorts *q, const int16_t *w,
               int64_t ahead, int64_t row, int64_t column, int64_t n)
{
    qdot_vector sums[ROWS][2];
    const int16_t *a[ROWS];
    QDOT_ROWS(count)
    QDOT_VECTORS(panels)
    sums[i][j] = QDOT_LOAD(q->store.start + column + j * QDOT_PART_LANES);
    for (int64_t r = 0; r < q->runs; r++, w += q->run * COLS) {
        QDOT_ROWS(count) a[i] = (const int16_t *)q->rows[row + i] + q->starts[r];
        qdot_add_shorts(count, panels, sums, a, q->run, w, q->apart, ahead);
    }
    qdot_store_sums(count, panels, &q->store, sums, row, column, n);
}
typedef void tile_fn(const struct sdx_qshorts *q, const int16_t *w, int64_t ahead, int64_t row,
                     int64_t column, int64_t n);
#define TILE(count, panels)                                                                        \
    static void tile_##count##_##panels(const struct sdx_qshorts *q, const int16_t *w,             \
                                        int64_t ahead, int64_t row, int64_t column, int64_t n)     \
    {                                                                                              \
        tile(count, panels, q, w, ahead, row, column, n);                                          \
    }
QDOT_SHORTS_TILES(TILE)
static tile_fn *const tiles[QDOT_SHORTS_PANELS][ROWS] = QDOT_SHORTS_TABLE;

static void panels(const struct sdx_qshorts *q, int64_t p0, int64_t p1)
{
    const struct qdot_cut cut = qdot_cut(q->m, ROWS);
    for (int64_t p = p0, count; p < p1; p += count) {
        count = p1 - p < QDOT_SHORTS_PANELS ? p1 - p : QDOT_SHORTS_PANELS;
        const int64_t left = q->n - p * COLS, n = left < count * COLS ? left : count * COLS;
        for (int64_t t = 0, row = 0; t < cut.count; t++) {
            const int64_t rows = qdot_height(&cut, t);
            tiles[count - 1][rows - 1](q, q->w + p * q->apart, t == 0 ? count * q->apart : 0, row,
                                       p * COLS, n);
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
