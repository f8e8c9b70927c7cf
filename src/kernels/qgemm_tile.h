/* SPDX-License-Identifier: Apache-2.0
 * Register tiles of the integer matrix product. The file that includes this defines V_DOT(acc, a,
 * b): acc + the products of the values in each group of 4 bytes. For files compiled once a set. */
#ifndef SDX_KERNELS_QGEMM_TILE_H
#define SDX_KERNELS_QGEMM_TILE_H

#include "kernels/simd.h"

#if SDX_SIMD_LANES == 16
enum { ROWS = 12 };
#elif SDX_SIMD_LANES == 8
enum { ROWS = 6 };
#else
enum { ROWS = 4 };
#endif
enum { COLS = 2 * LANES, GROUPS = (ROWS + 2) / 3, STEP = 4 };
#define TIMES(n) SDX_UNROLL(16) for (int i = 0; i < (n); i++)

SIMD void tile_step(const int mr, vi s[ROWS][2], const int32_t *const rows[GROUPS], const int u,
                    int64_t row_a, const int32_t *b)
{
    vi w0 = vi_load(b), w1 = vi_load(b + LANES);
    V_KEEP(w0);
    V_KEEP(w1);
    P_KEEP(row_a);
    TIMES(mr)
    {
        const vi x = vi_set1(rows[i / 3][i % 3 * row_a + u]);
        s[i][0] = V_DOT(s[i][0], x, w0);
        s[i][1] = V_DOT(s[i][1], x, w1);
    }
}
SIMD void tile(const int mr, int64_t groups, const int32_t *a, int64_t row_a, const int32_t *b,
               int32_t *c, int64_t row_c)
{
    vi s[ROWS][2];
    TIMES(mr) s[i][0] = s[i][1] = vi_set1(0);
    const int32_t *rows[GROUPS];
    TIMES((mr + 2) / 3) rows[i] = a + 3 * i * row_a;
    for (; groups >= STEP; groups -= STEP, b += STEP * COLS) {
        SDX_UNROLL(4) for (int u = 0; u < STEP; u++) tile_step(mr, s, rows, u, row_a, b + u * COLS);
        TIMES((mr + 2) / 3)
        {
            rows[i] += STEP;
            P_KEEP(rows[i]);
        }
    }
    for (; groups > 0; groups--, b += COLS) {
        tile_step(mr, s, rows, 0, row_a, b);
        TIMES((mr + 2) / 3) rows[i]++;
    }
    TIMES(mr)
    {
        vi_store(c + i * row_c, s[i][0]);
        vi_store(c + i * row_c + LANES, s[i][1]);
    }
}

typedef void (*tile_fn)(int64_t groups, const int32_t *a, int64_t row_a, const int32_t *b,
                        int32_t *c, int64_t row_c);
#define TILE_FN(mr)                                                                                \
    static void tile_##mr(int64_t groups, const int32_t *a, int64_t row_a, const int32_t *b,       \
                          int32_t *c, int64_t row_c)                                               \
    {                                                                                              \
        tile(mr, groups, a, row_a, b, c, row_c);                                                   \
    }
#define TILE_NAME(mr) tile_##mr,
#if SDX_SIMD_LANES == 16
#define HEIGHTS(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12)
#elif SDX_SIMD_LANES == 8
#define HEIGHTS(X) X(1) X(2) X(3) X(4) X(5) X(6)
#else
#define HEIGHTS(X) X(1) X(2) X(3) X(4)
#endif
HEIGHTS(TILE_FN)
static const tile_fn tiles[ROWS] = {HEIGHTS(TILE_NAME)};

static void block(int64_t m, int64_t n, int64_t groups, const int32_t *a, int64_t row_a,
                  const int32_t *b, int64_t panel_step, int32_t *c, int64_t row_c)
{
    if (m <= 0) return;
    const int64_t count = (m + ROWS - 1) / ROWS, height = m / count, taller = m % count;
    for (int64_t j = 0; j < n; j += COLS, b += panel_step) {
        const int32_t *from = a;
        int32_t *to = c + j;
        for (int64_t t = 0; t < count; t++) {
            const int64_t rows = height + (t < taller);
            if (n - j >= COLS) {
                tiles[rows - 1](groups, from, row_a, b, to, row_c);
            } else {
                int32_t edge[ROWS * COLS];
                tiles[rows - 1](groups, from, row_a, b, edge, COLS);
                for (int64_t i = 0; i < rows; i++)
                    memcpy(to + i * row_c, edge + i * COLS, (size_t)(n - j) * sizeof(int32_t));
            }
            from += rows * row_a;
            to += rows * row_c;
        }
    }
}
#endif
