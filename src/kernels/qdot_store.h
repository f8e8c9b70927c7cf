/* SPDX-License-Identifier: Apache-2.0
 * What becomes of 16 sums of one row: struct sdx_qdot_store. For files compiled once a set. */
#ifndef SDX_KERNELS_QDOT_STORE_H
#define SDX_KERNELS_QDOT_STORE_H

#include "kernels/qdot_panel.h"
#include "kernels/simd.h"

#if SDX_SIMD_LANES >= 8
typedef __m256i wide;

SIMD wide wide_load(const void *p)
{
    return _mm256_loadu_si256((const __m256i *)p);
}
/* 16 sums of one row as integers or floats. */
SIMD void qdot_store_words(const struct sdx_qdot_store *st, wide x, wide y, int64_t row,
                           int64_t column, int64_t n)
{
    const int64_t at = row * st->pitch + column;
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
    float all[SDX_QDOT_COLS];
    float *to = n == SDX_QDOT_COLS ? (float *)st->y + at : all;
    if (st->bias) {
        u = _mm256_add_ps(u, _mm256_loadu_ps(st->bias + column));
        v = _mm256_add_ps(v, _mm256_loadu_ps(st->bias + column + 8));
    }
    _mm256_storeu_ps(to, u);
    _mm256_storeu_ps(to + 8, v);
    if (n < SDX_QDOT_COLS) memcpy((float *)st->y + at, all, (size_t)n * sizeof *all);
}

/* What rounding 16 columns needs, in registers: bytes that are stored may lie anywhere, so that the
 * compiler would read it anew for each row. */
struct qdot_rounding {
    __m256 u, v; /* factors */
    wide zero, lo, hi, flip;
};
SIMD struct qdot_rounding qdot_rounding(const struct sdx_qdot_store *st, int64_t column)
{
    return (struct qdot_rounding){.u = _mm256_loadu_ps(st->factor + column),
                                  .v = _mm256_loadu_ps(st->factor + column + 8),
                                  .zero = _mm256_set1_epi16((short)st->zero),
                                  .lo = _mm256_set1_epi8((char)st->lo),
                                  .hi = _mm256_set1_epi8((char)st->hi),
                                  .flip = _mm256_set1_epi8((char)st->flip)};
}
/* Rounded to shorts: columns 0-3, 8-11, 4-7, 12-15. What does not fit saturates; only above 2^31
 * the conversion would change the sign, and NaN becomes the least. */
SIMD wide qdot_shorts(const struct qdot_rounding *r, wide x, wide y, const bool small)
{
    const __m256 most = _mm256_set1_ps(32767.0f);
    __m256 u = _mm256_mul_ps(_mm256_cvtepi32_ps(x), r->u);
    __m256 v = _mm256_mul_ps(_mm256_cvtepi32_ps(y), r->v);
    if (!small) {
        u = _mm256_min_ps(most, u);
        v = _mm256_min_ps(most, v);
    }
    return _mm256_adds_epi16(_mm256_packs_epi32(_mm256_cvtps_epi32(u), _mm256_cvtps_epi32(v)),
                             r->zero);
}
/* The bytes of two rows' shorts, in the order that packing halves leaves. */
SIMD wide qdot_pack(const struct qdot_rounding *r, wide a, wide b)
{
    const wide bytes = _mm256_packus_epi16(a, b);
    return _mm256_xor_si256(_mm256_min_epu8(_mm256_max_epu8(bytes, r->lo), r->hi), r->flip);
}
/* Those of qdot_shorts(): row after row, in the order of the columns. */
SIMD wide qdot_bytes(const struct qdot_rounding *r, wide a, wide b)
{
    const wide order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    return _mm256_permutevar8x32_epi32(qdot_pack(r, a, b), order);
}
/* Two rows of 16 sums as bytes. */
SIMD wide qdot_two(const struct qdot_rounding *r, const wide a[2], const wide b[2],
                   const bool small)
{
    return qdot_bytes(r, qdot_shorts(r, a[0], a[1], small), qdot_shorts(r, b[0], b[1], small));
}
SIMD void qdot_put(uint8_t *y, __m128i bytes, int64_t n)
{
    uint8_t all[SDX_QDOT_COLS];
    _mm_storeu_si128((__m128i *)(n == SDX_QDOT_COLS ? y : all), bytes);
    if (n < SDX_QDOT_COLS) memcpy(y, all, (size_t)n);
}
SIMD wide qdot_less_zeros(const struct sdx_qdot_store *st, wide sums, int64_t row, int64_t column)
{
    const wide sum = _mm256_set1_epi32(st->row_sums[row]);
    return _mm256_sub_epi32(sums, _mm256_mullo_epi32(sum, wide_load(st->zero_w + column)));
}
/* 16 sums of each of `count` rows as bytes: factors are small. */
SIMD void qdot_store_bytes(const int count, const struct sdx_qdot_store *st, wide (*sums)[2],
                           int64_t row, int64_t column)
{
    const struct qdot_rounding r = qdot_rounding(st, column);
    const int64_t pitch = st->pitch;
    uint8_t *y = (uint8_t *)st->y + row * pitch + column;
    SDX_UNROLL(4) for (int i = 0; i < count; i += 2)
    {
        const int j = i + 1 < count ? i + 1 : i;
        const wide bytes = qdot_two(&r, sums[i], sums[j], true);
        _mm_storeu_si128((__m128i *)(y + i * pitch), _mm256_castsi256_si128(bytes));
        if (i != j)
            _mm_storeu_si128((__m128i *)(y + j * pitch), _mm256_extracti128_si256(bytes, 1));
    }
}
/* 16 sums of each of `count` rows as floats. */
SIMD void qdot_store_floats(int count, const struct sdx_qdot_store *st, wide (*sums)[2],
                            int64_t row, int64_t column)
{
    const __m256 u = _mm256_loadu_ps(st->factor + column);
    const __m256 v = _mm256_loadu_ps(st->factor + column + 8);
    const __m256 none = _mm256_set1_ps(-0.0f); /* which changes no number */
    const __m256 more_u = st->bias ? _mm256_loadu_ps(st->bias + column) : none;
    const __m256 more_v = st->bias ? _mm256_loadu_ps(st->bias + column + 8) : none;
    const int64_t pitch = st->pitch;
    float *y = (float *)st->y + row * pitch + column;
    for (int i = 0; i < count; i++, y += pitch) {
        const __m256 a = _mm256_mul_ps(_mm256_cvtepi32_ps(sums[i][0]), u);
        const __m256 b = _mm256_mul_ps(_mm256_cvtepi32_ps(sums[i][1]), v);
        _mm256_storeu_ps(y, _mm256_add_ps(a, more_u));
        _mm256_storeu_ps(y + 8, _mm256_add_ps(b, more_v));
    }
}
/* What is rare, or little beside its product: one function a file. */
static SDX_NOINLINE void qdot_store_slowly(int count, const struct sdx_qdot_store *st,
                                           wide (*sums)[2], int64_t row, int64_t column, int64_t n)
{
    for (int i = 0; st->zero_w && i < count; i++) {
        sums[i][0] = qdot_less_zeros(st, sums[i][0], row + i, column);
        sums[i][1] = qdot_less_zeros(st, sums[i][1], row + i, column + 8);
    }
    if (st->to == SDX_QDOT_FLOATS && n == SDX_QDOT_COLS) {
        qdot_store_floats(count, st, sums, row, column);
        return;
    }
    if (st->to != SDX_QDOT_BYTES) {
        for (int i = 0; i < count; i++)
            qdot_store_words(st, sums[i][0], sums[i][1], row + i, column, n);
        return;
    }
    const struct qdot_rounding r = qdot_rounding(st, column);
    uint8_t *y = (uint8_t *)st->y + row * st->pitch + column;
    for (int i = 0; i < count; i += 2) {
        const int j = i + 1 < count ? i + 1 : i;
        const wide bytes = qdot_two(&r, sums[i], sums[j], false);
        qdot_put(y + i * st->pitch, _mm256_castsi256_si128(bytes), n);
        qdot_put(y + j * st->pitch, _mm256_extracti128_si256(bytes, 1), n);
    }
}
/* 16 sums of each of the rows row, row + 1, .. to where they belong. */
SIMD void qdot_store_rows(const int count, const struct sdx_qdot_store *st, wide (*sums)[2],
                          int64_t row, int64_t column, int64_t n)
{
    if (SDX_UNLIKELY(n < SDX_QDOT_COLS || !qdot_is_rounded(st))) {
        wide copy[8][2];
        SDX_UNROLL(8) for (int i = 0; i < count; i++)
        {
            copy[i][0] = sums[i][0];
            copy[i][1] = sums[i][1];
        }
        qdot_store_slowly(count, st, copy, row, column, n);
        return;
    }
    qdot_store_bytes(count, st, sums, row, column);
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
