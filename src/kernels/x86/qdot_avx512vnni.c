/* SPDX-License-Identifier: Apache-2.0
 * Panels of qdot.h with vpdpbusd, which adds four products to 32 bits exactly: all steps as they
 * are, 16 columns to a register. */
#define SDX_SET_AVX512 1 /* the set includes it: width of simd.h */
#include "kernels/qdot_panel.h"
#include "kernels/simd.h"
#include "kernels/tables.h"

enum { COLS = SDX_QDOT_COLS, ROWS = 12 };
#define TIMES(n) SDX_UNROLL(12) for (int i = 0; i < (n); i++)

SIMD __m512i whole(const void *p)
{
    return _mm512_loadu_si512(p);
}

/* 16 sums of one row to where they belong; mask: of the columns that are stored. */
SIMD void store_row(const struct sdx_qdot_store *st, __m512i x, int64_t row, int64_t column,
                    __mmask16 mask)
{
    const int64_t at = row * st->pitch + column;
    if (st->zero_w) {
        const __m512i sum = _mm512_set1_epi32(st->row_sums[row]);
        x = _mm512_sub_epi32(x, _mm512_mullo_epi32(sum, whole(st->zero_w + column)));
    }
    if (st->to == SDX_QDOT_SUMS) {
        _mm512_mask_storeu_epi32((int32_t *)st->y + at, mask, x);
        return;
    }
    __m512 v = _mm512_mul_ps(_mm512_cvtepi32_ps(x), _mm512_loadu_ps(st->factor + column));
    if (st->to == SDX_QDOT_FLOATS) {
        if (st->bias) v = _mm512_add_ps(v, _mm512_loadu_ps(st->bias + column));
        _mm512_mask_storeu_ps((float *)st->y + at, mask, v);
        return;
    }
    v = _mm512_max_ps(v, _mm512_set1_ps((float)(st->lo - st->zero)));
    v = _mm512_min_ps(v, _mm512_set1_ps((float)(st->hi - st->zero)));
    x = _mm512_add_epi32(_mm512_cvtps_epi32(v), _mm512_set1_epi32(st->zero));
    const __m128i bytes = _mm_xor_si128(_mm512_cvtepi32_epi8(x), _mm_set1_epi8((char)st->flip));
    _mm_mask_storeu_epi8((uint8_t *)st->y + at, mask, bytes);
}

SIMD void tile(const int count, const struct sdx_qdot *q, const struct qdot_panel *panel,
               const struct sdx_qdot_step *s, int64_t row, int64_t column, __mmask16 mask)
{
    __m512i acc[ROWS];
    const uint8_t *a[ROWS];
    const int8_t *w = (const int8_t *)q->packed + panel->weights;
    const __m512i start = whole(q->store.start + column);
    TIMES(count)
    {
        a[i] = q->rows[row + i];
        acc[i] = start;
    }
    for (int32_t k = 0; k < panel->count[QDOT_ONES]; k++, w += QDOT_BYTES) {
        const size_t at = s[k].at;
        const __m512i weights = whole(w);
        TIMES(count)
        {
            int32_t x;
            memcpy(&x, a[i] + at, sizeof x);
            acc[i] = _mm512_dpbusd_epi32(acc[i], _mm512_set1_epi32(x), weights);
        }
    }
    TIMES(count) store_row(&q->store, acc[i], row + i, column, mask);
}

typedef void tile_fn(const struct sdx_qdot *q, const struct qdot_panel *panel,
                     const struct sdx_qdot_step *s, int64_t row, int64_t column, __mmask16 mask);
#define TILE(count)                                                                                \
    static void tile_##count(const struct sdx_qdot *q, const struct qdot_panel *panel,             \
                             const struct sdx_qdot_step *s, int64_t row, int64_t column,           \
                             __mmask16 mask)                                                       \
    {                                                                                              \
        tile(count, q, panel, s, row, column, mask);                                               \
    }
#define TILE_NAME(count) tile_##count,
#define HEIGHTS(X)       X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12)
HEIGHTS(TILE)
static tile_fn *const tiles[ROWS] = {HEIGHTS(TILE_NAME)};

static void panel_of(const struct sdx_qdot *q, const struct qdot_panel *panel,
                     const struct sdx_qdot_step *steps, int64_t column, int64_t n)
{
    if (q->m <= 0) return;
    const __mmask16 mask = (__mmask16)((1u << n) - 1);
    const int64_t count = (q->m + ROWS - 1) / ROWS, height = q->m / count, taller = q->m % count;
    for (int64_t t = 0, row = 0; t < count; t++) {
        const int64_t rows = height + (t < taller);
        tiles[rows - 1](q, panel, steps, row, column, mask);
        row += rows;
    }
}

void sdx_qdot_init_avx512vnni(struct sdx_qdot_table *qdot)
{
    *qdot = (struct sdx_qdot_table){.natural = QDOT_ONES, .panel = panel_of};
}
