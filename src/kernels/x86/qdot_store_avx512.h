/* SPDX-License-Identifier: Apache-2.0
 * What becomes of sums: struct sdx_qdot_store, 64 sums at a time. */
#ifndef SDX_KERNELS_X86_QDOT_STORE_AVX512_H
#define SDX_KERNELS_X86_QDOT_STORE_AVX512_H

#include "kernels/qdot_panel.h"
#include "kernels/simd.h"

#if SDX_SIMD_LANES == 16
SIMD __m512i whole(const void *p)
{
    return _mm512_loadu_si512(p);
}

/* 16 sums of one row to where they belong; n: the columns that are stored. */
static SDX_NOINLINE void store_row(const struct sdx_qdot_store *st, const int32_t *sums,
                                   int64_t row, int64_t column, int64_t n)
{
    const int64_t at = row * st->pitch + column;
    const __mmask16 mask = (__mmask16)((1u << n) - 1);
    __m512i x = whole(sums);
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

/* How sums become bytes, in registers: what is stored may lie anywhere. */
struct rounding {
    __m512i zero, lo, hi, flip;
};
SIMD struct rounding rounding(const struct sdx_qdot_store *st)
{
    return (struct rounding){.zero = _mm512_set1_epi16((short)st->zero),
                             .lo = _mm512_set1_epi8((char)st->lo),
                             .hi = _mm512_set1_epi8((char)st->hi),
                             .flip = _mm512_set1_epi8((char)st->flip)};
}
/* Does the whole range of unsigned bytes leave nothing to do but rounding? */
static inline bool is_plain(const struct sdx_qdot_store *st)
{
    return st->lo == 0 && st->hi == 255 && st->flip == 0;
}
/* Two vectors of sums times their factors as shorts, four of a and four of b in turn. */
SIMD __m512i shorts(const struct rounding *r, __m512i a, __m512 by_a, __m512i b, __m512 by_b)
{
    const __m512 u = _mm512_mul_ps(_mm512_cvtepi32_ps(a), by_a);
    const __m512 v = _mm512_mul_ps(_mm512_cvtepi32_ps(b), by_b);
    return _mm512_adds_epi16(_mm512_packs_epi32(_mm512_cvtps_epi32(u), _mm512_cvtps_epi32(v)),
                             r->zero);
}
/* The bytes of two of those: four of each of their four vectors in turn. */
SIMD __m512i bytes(const struct rounding *r, const bool plain, __m512i low, __m512i high)
{
    const __m512i all = _mm512_packus_epi16(low, high);
    if (plain) return all;
    return _mm512_xor_si512(_mm512_min_epu8(_mm512_max_epu8(all, r->lo), r->hi), r->flip);
}
#endif
#endif
