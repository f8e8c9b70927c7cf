/* SPDX-License-Identifier: Apache-2.0
 * What becomes of 16 sums of one row: struct sdx_qdot_store. For files compiled once a set. */
#ifndef SDX_KERNELS_QDOT_STORE_H
#define SDX_KERNELS_QDOT_STORE_H

#include "kernels/qdot.h"
#include "kernels/simd.h"

#if SDX_SIMD_LANES >= 8
typedef __m256i wide;

SIMD wide wide_load(const void *p)
{
    return _mm256_loadu_si256((const __m256i *)p);
}
/* 16 sums of one row to where they belong. */
SIMD void qdot_store_row(const struct sdx_qdot_store *st, wide x, wide y, int64_t row,
                         int64_t column, int64_t n)
{
    const int64_t at = row * st->pitch + column;
    if (st->zero_w) {
        const wide sum = _mm256_set1_epi32(st->row_sums[row]);
        x = _mm256_sub_epi32(x, _mm256_mullo_epi32(sum, wide_load(st->zero_w + column)));
        y = _mm256_sub_epi32(y, _mm256_mullo_epi32(sum, wide_load(st->zero_w + column + 8)));
    }
    if (st->to == SDX_QDOT_SUMS) {
        int32_t all[SDX_QDOT_COLS];
        int32_t *to = n == SDX_QDOT_COLS ? (int32_t *)st->y + at : all;
        _mm256_storeu_si256((__m256i *)to, x);
        _mm256_storeu_si256((__m256i *)(to + 8), y);
        if (n < SDX_QDOT_COLS) memcpy((int32_t *)st->y + at, all, (size_t)n * sizeof *all);
        return;
    }
    __m256 u = _mm256_mul_ps(_mm256_cvtepi32_ps(x), _mm256_loadu_ps(st->factor + column));
    __m256 v = _mm256_mul_ps(_mm256_cvtepi32_ps(y), _mm256_loadu_ps(st->factor + column + 8));
    if (st->to == SDX_QDOT_FLOATS) {
        float all[SDX_QDOT_COLS];
        float *to = n == SDX_QDOT_COLS ? (float *)st->y + at : all;
        if (st->bias) {
            u = _mm256_add_ps(u, _mm256_loadu_ps(st->bias + column));
            v = _mm256_add_ps(v, _mm256_loadu_ps(st->bias + column + 8));
        }
        _mm256_storeu_ps(to, u);
        _mm256_storeu_ps(to + 8, v);
        if (n < SDX_QDOT_COLS) memcpy((float *)st->y + at, all, (size_t)n * sizeof *all);
        return;
    }
    const __m256 lo = _mm256_set1_ps((float)(st->lo - st->zero)),
                 hi = _mm256_set1_ps((float)(st->hi - st->zero));
    x = _mm256_cvtps_epi32(_mm256_min_ps(_mm256_max_ps(u, lo), hi));
    y = _mm256_cvtps_epi32(_mm256_min_ps(_mm256_max_ps(v, lo), hi));
    x = _mm256_permute4x64_epi64(_mm256_packs_epi32(x, y), 0xd8);
    x = _mm256_add_epi16(x, _mm256_set1_epi16((short)st->zero));
    __m128i bytes = _mm_packus_epi16(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
    bytes = _mm_xor_si128(bytes, _mm_set1_epi8((char)st->flip));
    uint8_t all[SDX_QDOT_COLS];
    uint8_t *to = n == SDX_QDOT_COLS ? (uint8_t *)st->y + at : all;
    _mm_storeu_si128((__m128i *)to, bytes);
    if (n < SDX_QDOT_COLS) memcpy((uint8_t *)st->y + at, all, (size_t)n);
}

#else
/* 16 sums of one row to where they belong. */
SIMD void qdot_store_row(const struct sdx_qdot_store *st, const int32_t *sums, int64_t row,
                         int64_t column, int64_t n)
{
    const int64_t at = row * st->pitch + column;
    const float lo = (float)(st->lo - st->zero), hi = (float)(st->hi - st->zero);
    const float magic = 12582912.0f; /* adding it rounds to even */
    for (int64_t j = 0; j < n; j++) {
        int32_t sum = sums[j];
        if (st->zero_w)
            sum = (int32_t)((uint32_t)sum -
                            (uint32_t)st->row_sums[row] * (uint32_t)st->zero_w[column + j]);
        if (st->to == SDX_QDOT_SUMS) {
            ((int32_t *)st->y)[at + j] = sum;
            continue;
        }
        float v = (float)sum * st->factor[column + j];
        if (st->to == SDX_QDOT_FLOATS) {
            ((float *)st->y)[at + j] = st->bias ? v + st->bias[column + j] : v;
            continue;
        }
        v = v > lo ? v : lo;
        v = v < hi ? v : hi;
        ((uint8_t *)st->y)[at + j] =
            (uint8_t)(((int32_t)((v + magic) - magic) + st->zero) ^ st->flip);
    }
}

#endif
#endif
