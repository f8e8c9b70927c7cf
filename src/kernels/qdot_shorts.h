/* SPDX-License-Identifier: Apache-2.0
 * Products of rows of shorts with panels of 16 columns, [k / 2][16][2] shorts, exact in 32 bits.
 * For files compiled once a set with vectors of 32 bytes or more. */
#ifndef SDX_KERNELS_QDOT_SHORTS_H
#define SDX_KERNELS_QDOT_SHORTS_H

#include "kernels/qdot_panel.h"
#include "kernels/qdot_store.h"
#include "kernels/simd.h"
#include "kernels/x86/qdot_tile_avx512.h"

enum { QDOT_SHORTS_ROWS = 6 };

/* A tile has QDOT_SHORTS_PANELS panels or one: enough products to a spread pair of A that loads do
 * not bound them. Its sums are vectors, QDOT_SHORTS_PARTS to a panel. */
#if SDX_SIMD_LANES == 16
typedef __m512i qdot_sums;
enum { QDOT_SHORTS_PANELS = 2, QDOT_SHORTS_PARTS = 1 };
#define QDOT_V(name)        _mm512_##name
#define QDOT_SHORTS_LOAD(p) _mm512_loadu_si512(p)
#elif SDX_SIMD_LANES == 8
typedef wide qdot_sums;
enum { QDOT_SHORTS_PANELS = 1, QDOT_SHORTS_PARTS = 2 };
#define QDOT_V(name)        _mm256_##name
#define QDOT_SHORTS_LOAD(p) wide_load(p)
#endif

#if SDX_SIMD_LANES >= 8
enum {
    QDOT_SHORTS_VECTORS = QDOT_SHORTS_PANELS * QDOT_SHORTS_PARTS,
    QDOT_SHORTS_LANES = SDX_QDOT_COLS / QDOT_SHORTS_PARTS
};
#define QDOT_VECTORS(panels) SDX_UNROLL(2) for (int j = 0; j < (panels)*QDOT_SHORTS_PARTS; j++)

/* sums[i][] += k products of row a[i]; weights of the second panel are `apart` behind those of the
 * first. Those that are `ahead` are fetched. */
SIMD void qdot_add_shorts(const int count, const int panels, qdot_sums (*sums)[QDOT_SHORTS_VECTORS],
                          const int16_t *const *a, int64_t k, const int16_t *w, int64_t apart,
                          int64_t ahead)
{
    const int64_t step = panels > 1 ? apart : 2 * QDOT_SHORTS_LANES;
    for (int64_t at = 0; at < k; at += 2, w += 2 * SDX_QDOT_COLS) {
        qdot_sums weights[QDOT_SHORTS_VECTORS];
        QDOT_VECTORS(panels)
        {
            weights[j] = QDOT_SHORTS_LOAD(w + j * step);
            V_KEEP(weights[j]);
            if (j % QDOT_SHORTS_PARTS == 0)
                _mm_prefetch((const char *)(w + j * step + ahead), _MM_HINT_T0);
        }
        QDOT_ROWS(count)
        {
            int32_t pair;
            memcpy(&pair, a[i] + at, sizeof pair);
            const qdot_sums x = QDOT_V(set1_epi32)(pair);
            QDOT_VECTORS(panels)
            sums[i][j] = QDOT_V(add_epi32)(sums[i][j], QDOT_V(madd_epi16)(x, weights[j]));
        }
    }
}
#endif
#endif
