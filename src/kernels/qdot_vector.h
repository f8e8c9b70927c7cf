/* SPDX-License-Identifier: Apache-2.0
 * The 16 columns of a panel of qdot.h as one vector of 64 bytes or two of 32. For files compiled
 * once a set. */
#ifndef SDX_KERNELS_QDOT_VECTOR_H
#define SDX_KERNELS_QDOT_VECTOR_H

#include "kernels/qdot_panel.h"
#include "kernels/qdot_store.h"
#include "kernels/simd.h"
#include "kernels/x86/qdot_tile_avx512.h"

#if SDX_SIMD_LANES == 16
typedef __m512i qdot_vector;
enum { QDOT_PARTS = 1 };
#define QDOT_V(name)  _mm512_##name
#define QDOT_LOAD(at) _mm512_loadu_si512(at)
#elif SDX_SIMD_LANES == 8
typedef wide qdot_vector;
enum { QDOT_PARTS = 2 };
#define QDOT_V(name)  _mm256_##name
#define QDOT_LOAD(at) wide_load(at)
#endif

#if SDX_SIMD_LANES >= 8
enum { QDOT_PART_LANES = SDX_QDOT_COLS / QDOT_PARTS };

/* The sums of `count` rows of one panel or, in vectors of 64 bytes, of two: n columns of them. */
SIMD void qdot_store_sums(const int count, const int panels, const struct sdx_qdot_store *st,
                          qdot_vector (*sums)[2], int64_t row, int64_t column, int64_t n)
{
#if SDX_SIMD_LANES == 16
    store_tile(count, panels, st, sums, row, column, n);
#else
    (void)panels;
    qdot_store_rows(count, st, sums, row, column, n);
#endif
}
#endif
#endif
