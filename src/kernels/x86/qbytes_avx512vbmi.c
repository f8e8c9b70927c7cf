/* SPDX-License-Identifier: Apache-2.0
 * Tables of 256 bytes by byte permutations: four of 64, of which the upper two bits of a byte say
 * which counts. */
#define SDX_SET_AVX512 1 /* the set includes it: width of simd.h */
#include "kernels/qbytes.h"
#include "kernels/simd.h"
#include "kernels/tables.h"

enum { STEP = 64, ROWS = 4 };

SIMD __m512i looked_up(const __m512i rows[ROWS], __m512i x)
{
    const __mmask64 top = _mm512_movepi8_mask(x);
    const __mmask64 next = _mm512_test_epi8_mask(x, _mm512_set1_epi8(0x40));
    const __m512i low =
        _mm512_mask_permutexvar_epi8(_mm512_permutexvar_epi8(x, rows[0]), next, x, rows[1]);
    const __m512i high =
        _mm512_mask_permutexvar_epi8(_mm512_permutexvar_epi8(x, rows[2]), next, x, rows[3]);
    return _mm512_mask_mov_epi8(low, top, high);
}
static void lookup(const uint8_t *table, const uint8_t *x, uint8_t *y, size_t n)
{
    __m512i rows[ROWS];
    for (int i = 0; i < ROWS; i++)
        rows[i] = _mm512_loadu_si512(table + i * STEP);
    size_t at = 0;
    for (; at + STEP <= n; at += STEP)
        _mm512_storeu_si512(y + at, looked_up(rows, _mm512_loadu_si512(x + at)));
    const __mmask64 left = (1ULL << (n - at)) - 1;
    if (!left) return;
    _mm512_mask_storeu_epi8(y + at, left, looked_up(rows, _mm512_maskz_loadu_epi8(left, x + at)));
}

void sdx_qbytes_init_avx512vbmi(struct sdx_qbytes *qbytes)
{
    qbytes->lookup = lookup;
}
