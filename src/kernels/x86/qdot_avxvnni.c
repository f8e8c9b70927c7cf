/* SPDX-License-Identifier: Apache-2.0
 * Panels of qdot.h with vpdpbusd in vectors of 32 bytes, for machines that have it without AVX-512:
 * all steps as they are, since four products are added to 32 bits exactly. */
#define SDX_SET_AVX2 1 /* the set includes it: width of simd.h */
#include "kernels/qdot_panel.h"
#include "kernels/qdot_store.h"
#include "kernels/tables.h"

enum { COLS = SDX_QDOT_COLS, ROWS = 6 };

/* `ahead`: bytes from a step's weights to what it fetches. */
SIMD void tile(const int count, const struct sdx_qdot *q, const struct qdot_panel *panel,
               const struct sdx_qdot_step *s, int64_t ahead, int64_t row, int64_t column, int64_t n)
{
    wide acc[ROWS][2];
    const uint8_t *a[ROWS];
    const int8_t *w = (const int8_t *)q->packed + panel->weights;
    const int32_t *start = q->store.start + column;
    QDOT_ROWS(count)
    {
        a[i] = q->rows[row + i];
        acc[i][0] = wide_load(start);
        acc[i][1] = wide_load(start + 8);
    }
    const int64_t steps = q->some ? q->some : panel->count[QDOT_ONES];
    w += q->first * QDOT_BYTES;
    s += q->first;
    for (int64_t k = 0; k < steps; k++, w += QDOT_BYTES) {
        const size_t at = s[k].at;
        _mm_prefetch((const char *)w + ahead, _MM_HINT_T0);
        const wide w0 = wide_load(w), w1 = wide_load(w + 32);
        QDOT_ROWS(count)
        {
            int32_t x;
            memcpy(&x, a[i] + at, sizeof x);
            const wide bytes = _mm256_set1_epi32(x);
            acc[i][0] = _mm256_dpbusd_avx_epi32(acc[i][0], bytes, w0);
            acc[i][1] = _mm256_dpbusd_avx_epi32(acc[i][1], bytes, w1);
        }
    }
    qdot_store_rows(count, &q->store, acc, row, column, n);
}

typedef void tile_fn(const struct sdx_qdot *q, const struct qdot_panel *panel,
                     const struct sdx_qdot_step *s, int64_t ahead, int64_t row, int64_t column,
                     int64_t n);
#define TILE(count)                                                                                \
    static void tile_##count(const struct sdx_qdot *q, const struct qdot_panel *panel,             \
                             const struct sdx_qdot_step *s, int64_t ahead, int64_t row,            \
                             int64_t column, int64_t n)                                            \
    {                                                                                              \
        tile(count, q, panel, s, ahead, row, column, n);                                           \
    }
#define TILE_NAME(count) tile_##count,
#define HEIGHTS(X)       X(1) X(2) X(3) X(4) X(5) X(6)
HEIGHTS(TILE)
static tile_fn *const tiles[ROWS] = {HEIGHTS(TILE_NAME)};

static void panel_of(const struct sdx_qdot *q, const struct qdot_panel *panel,
                     const struct sdx_qdot_step *steps, int64_t column, int64_t n)
{
    const struct qdot_cut cut = qdot_cut(q->m, ROWS);
    /* the next panel's weights come while the first tile is in hand */
    const int64_t apart = qdot_panel_bytes(panel);
    for (int64_t t = 0, row = 0; t < cut.count; t++) {
        const int64_t rows = qdot_height(&cut, t);
        tiles[rows - 1](q, panel, steps, t == 0 ? apart : 0, row, column, n);
        row += rows;
    }
}

void sdx_qdot_init_avxvnni(struct sdx_qdot_table *qdot)
{
    *qdot = (struct sdx_qdot_table){
        .natural = QDOT_ONES, .wide = 1, .takes_some = true, .panel = panel_of};
}
