/* SPDX-License-Identifier: Apache-2.0
 * Integer matrix product on bytes: vpdpbusd adds four products of u8 by s8 to 32 bits, exactly. */
#define SDX_SET_AVX512 1 /* the set includes it: width of simd.h */
#include <immintrin.h>

#define V_DOT(acc, a, b) ((vi)_mm512_dpbusd_epi32((__m512i)(acc), (__m512i)(a), (__m512i)(b)))
#include "kernels/qgemm_tile.h"
#include "kernels/tables.h"

void sdx_qgemm_init_avx512vnni(struct sdx_qgemm_table *qgemm)
{
    qgemm->rows = ROWS;
    qgemm->cols = COLS;
    qgemm->bytes = true;
    qgemm->block = block;
}
