/* SPDX-License-Identifier: Apache-2.0
 * Products of rows of shorts with panels of 16 columns, [k / 2][16][2] shorts, exact in 32 bits.
 * For files compiled once a set with vectors of 32 bytes or more. */
#ifndef SDX_KERNELS_QDOT_SHORTS_H
#define SDX_KERNELS_QDOT_SHORTS_H

#include "kernels/qdot_vector.h"

#if SDX_SIMD_LANES >= 8
/* A tile has QDOT_SHORTS_PANELS panels or one: with two, a pair of A that is spread serves enough
 * products for loads not to bound them. */
enum { QDOT_SHORTS_ROWS = 6, QDOT_SHORTS_PANELS = 2 / QDOT_PARTS };
#define QDOT_VECTORS(panels) SDX_UNROLL(2) for (int j = 0; j < (panels)*QDOT_PARTS; j++)

/* The functions of all tiles, which TILE(count, panels) defines as tile_<count>_<panels>, and the
 * table of them: [panels - 1][count - 1]. */
#define QDOT_SHORTS_HEIGHTS(X, panels)                                                             \
    X(1, panels) X(2, panels) X(3, panels) X(4, panels) X(5, panels) X(6, panels)
#define QDOT_SHORTS_NAME(count, panels) tile_##count##_##panels,
#if SDX_SIMD_LANES == 16
#define QDOT_SHORTS_TILES(TILE) QDOT_SHORTS_HEIGHTS(TILE, 1) QDOT_SHORTS_HEIGHTS(TILE, 2)
#define QDOT_SHORTS_TABLE                                                                          \
    {                                                                                              \
        {QDOT_SHORTS_HEIGHTS(QDOT_SHORTS_NAME, 1)}, {QDOT_SHORTS_HEIGHTS(QDOT_SHORTS_NAME, 2)},    \
    }
#else
#define QDOT_SHORTS_TILES(TILE) QDOT_SHORTS_HEIGHTS(TILE, 1)
#define QDOT_SHORTS_TABLE                                                                          \
    {                                                                                              \
        {QDOT_SHORTS_HEIGHTS(QDOT_SHORTS_NAME, 1)},                                                \
    }
#endif

/* sums[i][] += k products of row a[i]; weights of the second panel are `apart` behind those of the
 * first. Those that are `ahead` are fetched. */
SIMD void qdot_add_shorts(const int count, const int panels, qdot_vector (*sums)[2],
                          const int16_t *const *a, int64_t k, const int16_t *w, int64_t apart,
                          int64_t ahead)
{
    const int64_t step = panels > 1 ? apart : 2 * QDOT_PART_LANES;
    for (int64_t at = 0; at < k; at += 2, w += 2 * SDX_QDOT_COLS) {
        qdot_vector weights[2];
        QDOT_VECTORS(panels)
        {
            weights[j] = QDOT_LOAD(w + j * step);
            V_KEEP(weights[j]);
            if (j % QDOT_PARTS == 0)
                _mm_prefetch((const char *)(w + j * step + ahead), _MM_HINT_T0);
        }
        QDOT_ROWS(count)
        {
            int32_t pair;
            memcpy(&pair, a[i] + at, sizeof pair);
            const qdot_vector x = QDOT_V(set1_epi32)(pair);
            QDOT_VECTORS(panels)
            sums[i][j] = QDOT_V(add_epi32)(sums[i][j], QDOT_V(madd_epi16)(x, weights[j]));
        }
    }
}
#endif
#endif
