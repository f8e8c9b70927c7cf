/* SPDX-License-Identifier: Apache-2.0
 * Panels of qdot.h with vpdpbusd, which adds four products to 32 bits exactly: all steps as they
 * are, 16 columns to a register, two panels at a time: then a byte of A that is spread over a
 * register serves two products, and loads do not bound them. */
#define SDX_SET_AVX512 1 /* the set includes it: width of simd.h */
#include "kernels/qdot_panel.h"
#include "kernels/tables.h"
#include "kernels/x86/qdot_tile_avx512.h"

enum { COLS = SDX_QDOT_COLS, ROWS = QDOT_TILE_ROWS, WIDE = QDOT_TILE_WIDE };
enum { STREAMS = 4096 }; /* bytes of a panel from which on one row takes them one by one */

/* What a step fetches, behind its own weights; and_at 0: nothing more. */
struct ahead {
    int64_t at, and_at;
};

SIMD void tile(const int count, const int wide, const struct sdx_qdot *q,
               const struct qdot_panel *panel, const struct sdx_qdot_step *s, struct ahead ahead,
               int64_t row, int64_t column, int64_t n)
{
    __m512i acc[ROWS][WIDE], start[WIDE];
    const uint8_t *a[ROWS];
    const int64_t all = panel->count[QDOT_ONES], steps = q->some ? q->some : all;
    const int8_t *w = (const int8_t *)q->packed + panel->weights + q->first * QDOT_BYTES;
    const int64_t apart = all * QDOT_BYTES; /* panels */
    s += q->first;
    QDOT_PANELS(wide) start[j] = whole(q->store.start + column + j * COLS);
    QDOT_ROWS(count)
    {
        a[i] = q->rows[row + i];
        QDOT_PANELS(wide) acc[i][j] = start[j];
    }
    for (int64_t k = 0; k < steps; k++, w += QDOT_BYTES) {
        const size_t at = s[k].at;
        __m512i weights[WIDE];
        _mm_prefetch((const char *)w + ahead.at, _MM_HINT_T0);
        if (ahead.and_at) _mm_prefetch((const char *)w + ahead.and_at, _MM_HINT_T0);
        QDOT_PANELS(wide)
        {
            weights[j] = whole(w + j * apart);
            V_KEEP(weights[j]);
        }
        QDOT_ROWS(count)
        {
            int32_t x;
            memcpy(&x, a[i] + at, sizeof x);
            const __m512i bytes = _mm512_set1_epi32(x);
            QDOT_PANELS(wide) acc[i][j] = _mm512_dpbusd_epi32(acc[i][j], bytes, weights[j]);
        }
    }
    store_tile(count, wide, &q->store, acc, row, column, n);
}

/* One row by one panel: each weight is read once, in one stream of which QDOT_AHEAD bytes are under
 * way. One sum would wait for itself. */
static SDX_NOINLINE void stream(const struct sdx_qdot *q, const struct qdot_panel *panel,
                                const struct sdx_qdot_step *s, int64_t column, int64_t n)
{
    enum { CHAINS = 4 };
    const int64_t steps = q->some ? q->some : panel->count[QDOT_ONES];
    const int8_t *w = (const int8_t *)q->packed + panel->weights + q->first * QDOT_BYTES;
    const uint8_t *a = q->rows[0];
    __m512i acc[CHAINS] = {whole(q->store.start + column)}, sum[1][WIDE];
    s += q->first;
    for (int64_t k = 0; k < steps; k += CHAINS, w += CHAINS * QDOT_BYTES)
        SDX_UNROLL(4) for (int c = 0; c < CHAINS; c++)
        {
            int32_t x;
            if (k + c == steps) break;
            _mm_prefetch((const char *)w + c * QDOT_BYTES + QDOT_AHEAD, _MM_HINT_T0);
            memcpy(&x, a + s[k + c].at, sizeof x);
            acc[c] = _mm512_dpbusd_epi32(acc[c], _mm512_set1_epi32(x), whole(w + c * QDOT_BYTES));
        }
    SDX_UNROLL(4) for (int c = 1; c < CHAINS; c++) acc[0] = _mm512_add_epi32(acc[0], acc[c]);
    sum[0][0] = acc[0];
    store_tile(1, 1, &q->store, sum, 0, column, n);
}

typedef void tile_fn(const struct sdx_qdot *q, const struct qdot_panel *panel,
                     const struct sdx_qdot_step *s, struct ahead ahead, int64_t row, int64_t column,
                     int64_t n);
#define TILE(count, wide)                                                                          \
    static void tile_##count##_##wide(const struct sdx_qdot *q, const struct qdot_panel *panel,    \
                                      const struct sdx_qdot_step *s, struct ahead ahead,           \
                                      int64_t row, int64_t column, int64_t n)                      \
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
    tile_fn *const *fns = tiles[n > COLS];
    const struct qdot_cut cut = qdot_cut(q->m, ROWS);
    /* the weights of the next panels come while the first two tiles are in hand, or the only one */
    const int64_t apart = qdot_panel_bytes(panel);
    if (q->m == 1 && apart >= STREAMS) {
        for (int64_t j = 0; j < n; j += COLS)
            stream(q, panel + j / COLS, steps, column + j, n - j < COLS ? n - j : COLS);
        return;
    }
    for (int64_t t = 0, row = 0; t < cut.count; t++) {
        const int64_t rows = qdot_height(&cut, t);
        const struct ahead ahead = {t < WIDE ? (WIDE + t) * apart : 0,
                                    cut.count == 1 ? (WIDE + 1) * apart : 0};
        fns[rows - 1](q, panel, steps, ahead, row, column, n);
        row += rows;
    }
}

void sdx_qdot_init_avx512vnni(struct sdx_qdot_table *qdot)
{
    *qdot = (struct sdx_qdot_table){
        .natural = QDOT_ONES, .wide = WIDE, .takes_some = true, .panel = panel_of};
}
