/* SPDX-License-Identifier: Apache-2.0
 * Tiles of sums of qdot.h, one or two panels wide, to where they belong. */
#ifndef SDX_KERNELS_X86_QDOT_TILE_AVX512_H
#define SDX_KERNELS_X86_QDOT_TILE_AVX512_H

#include "kernels/x86/qdot_store_avx512.h"

#if SDX_SIMD_LANES == 16
/* Register tiles: up to QDOT_TILE_ROWS rows by one or two panels. */
enum { QDOT_TILE_ROWS = 12, QDOT_TILE_WIDE = 2 };
#define QDOT_PANELS(n) SDX_UNROLL(2) for (int j = 0; j < (n); j++)

/* What brings the bytes of four vectors one behind the other. */
SIMD __m512i in_order(void)
{
    return _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
}
/* Rows of 32 columns, two at a time. */
SIMD void store_pairs(const int count, const bool plain, __m512i (*acc)[QDOT_TILE_WIDE],
                      const struct rounding *r, const __m512 by[QDOT_TILE_WIDE], uint8_t *y,
                      int64_t pitch)
{
    const __m512i order = in_order();
    SDX_UNROLL(12) for (int i = 0; i < count; i += 2, y += 2 * pitch)
    {
        const int then = i + 1 < count ? i + 1 : i;
        const __m512i a = shorts(r, acc[i][0], by[0], acc[i][1], by[1]);
        const __m512i b = shorts(r, acc[then][0], by[0], acc[then][1], by[1]);
        const __m512i rows = _mm512_permutexvar_epi32(order, bytes(r, plain, a, b));
        _mm256_storeu_si256((__m256i *)y, _mm512_castsi512_si256(rows));
        if (then > i)
            _mm256_storeu_si256((__m256i *)(y + pitch), _mm512_extracti64x4_epi64(rows, 1));
    }
}
/* Rows of 16 columns, four at a time. */
SIMD void store_fours(const int count, const bool plain, __m512i (*acc)[QDOT_TILE_WIDE],
                      const struct rounding *r, __m512 by, uint8_t *y, int64_t pitch)
{
    const __m512i order = in_order();
#define ROW(k) acc[i + (k) < count ? i + (k) : i][0]
    SDX_UNROLL(12) for (int i = 0; i < count; i += 4, y += 4 * pitch)
    {
        const __m512i a = shorts(r, ROW(0), by, ROW(1), by);
        const __m512i b = shorts(r, ROW(2), by, ROW(3), by);
        const __m512i rows = _mm512_permutexvar_epi32(order, bytes(r, plain, a, b));
        _mm_storeu_si128((__m128i *)y, _mm512_castsi512_si128(rows));
        if (i + 1 < count)
            _mm_storeu_si128((__m128i *)(y + pitch), _mm512_extracti32x4_epi32(rows, 1));
        if (i + 2 < count)
            _mm_storeu_si128((__m128i *)(y + 2 * pitch), _mm512_extracti32x4_epi32(rows, 2));
        if (i + 3 < count)
            _mm_storeu_si128((__m128i *)(y + 3 * pitch), _mm512_extracti32x4_epi32(rows, 3));
    }
#undef ROW
}
/* `count` rows of `panels` whole panels as floats. */
static SDX_NOINLINE void store_floats(int count, int panels, const struct sdx_qdot_store *st,
                                      const int32_t *sums, int64_t row, int64_t column)
{
    for (int j = 0; j < panels; j++, sums += SDX_QDOT_COLS, column += SDX_QDOT_COLS) {
        const __m512 by = _mm512_loadu_ps(st->factor + column);
        const __m512 bias = st->bias ? _mm512_loadu_ps(st->bias + column) : _mm512_setzero_ps();
        const __m512i zero = st->zero_w ? whole(st->zero_w + column) : _mm512_setzero_si512();
        float *y = (float *)st->y + row * st->pitch + column;
        for (int i = 0; i < count; i++, y += st->pitch) {
            __m512i x = whole(sums + i * panels * SDX_QDOT_COLS);
            if (st->zero_w)
                x = _mm512_sub_epi32(
                    x, _mm512_mullo_epi32(_mm512_set1_epi32(st->row_sums[row + i]), zero));
            __m512 v = _mm512_mul_ps(_mm512_cvtepi32_ps(x), by);
            if (st->bias) v = _mm512_add_ps(v, bias);
            _mm512_storeu_ps(y, v);
        }
    }
}
static SDX_NOINLINE void copy_rows(int count, const uint8_t *from, int64_t pitch, uint8_t *to,
                                   int64_t pitch_to, size_t n)
{
    for (int i = 0; i < count; i++)
        memcpy(to + i * pitch_to, from + i * pitch, n);
}
/* n columns of them as bytes, less what zero points of weights add. */
static SDX_NOINLINE void store_less_zeros(int count, int panels, const struct sdx_qdot_store *st,
                                          const int32_t *sums, int64_t row, int64_t column,
                                          int64_t n)
{
    const struct rounding r = rounding(st);
    const __m512i order = in_order();
    const int64_t width = panels * SDX_QDOT_COLS, then = column + width - SDX_QDOT_COLS;
    const __mmask32 which = n < width ? (1u << n) - 1 : (__mmask32)(UINT64_MAX >> (64 - width));
    const __m512i zeros[] = {whole(st->zero_w + column), whole(st->zero_w + then)};
    const __m512 by[] = {_mm512_loadu_ps(st->factor + column), _mm512_loadu_ps(st->factor + then)};
    uint8_t *y = (uint8_t *)st->y + row * st->pitch + column;
    for (int i = 0; i < count; i++, sums += width, y += st->pitch) {
        const __m512i sum = _mm512_set1_epi32(st->row_sums[row + i]);
        const __m512i a = _mm512_sub_epi32(whole(sums), _mm512_mullo_epi32(sum, zeros[0]));
        const __m512i b = _mm512_sub_epi32(whole(sums + width - SDX_QDOT_COLS),
                                           _mm512_mullo_epi32(sum, zeros[1]));
        const __m512i both = shorts(&r, a, by[0], b, by[1]);
        const __m512i all = _mm512_permutexvar_epi32(order, bytes(&r, false, both, both));
        _mm256_mask_storeu_epi8(y, which, _mm512_castsi512_si256(all));
    }
}
/* What is rare, or little beside its product. */
static SDX_NOINLINE void store_slowly(int count, int panels, const struct sdx_qdot_store *st,
                                      const int32_t *sums, int64_t row, int64_t column, int64_t n)
{
    if (st->to == SDX_QDOT_FLOATS && n >= panels * SDX_QDOT_COLS) {
        store_floats(count, panels, st, sums, row, column);
        return;
    }
    if (st->to == SDX_QDOT_BYTES && st->zero_w && st->factors_are_small) {
        store_less_zeros(count, panels, st, sums, row, column, n);
        return;
    }
    for (int i = 0; i < count; i++)
        for (int64_t j = 0; j < n && j < panels * SDX_QDOT_COLS; j += SDX_QDOT_COLS)
            store_row(st, sums + i * panels * SDX_QDOT_COLS + j, row + i, column + j,
                      n - j < SDX_QDOT_COLS ? n - j : SDX_QDOT_COLS);
}
SIMD void store_tile(const int count, const int panels, const struct sdx_qdot_store *st,
                     __m512i (*acc)[QDOT_TILE_WIDE], int64_t row, int64_t column, int64_t n)
{
    if (SDX_UNLIKELY(!qdot_is_rounded(st))) {
        int32_t sums[QDOT_TILE_ROWS * QDOT_TILE_WIDE * SDX_QDOT_COLS];
        QDOT_ROWS(count)
        QDOT_PANELS(panels) _mm512_storeu_si512(sums + (i * panels + j) * SDX_QDOT_COLS, acc[i][j]);
        store_slowly(count, panels, st, sums, row, column, n);
        return;
    }
    const struct rounding r = rounding(st);
    __m512 by[QDOT_TILE_WIDE];
    QDOT_PANELS(panels) by[j] = _mm512_loadu_ps(st->factor + column + j * SDX_QDOT_COLS);
    uint8_t *y = (uint8_t *)st->y + row * st->pitch + column;
    uint8_t all[QDOT_TILE_ROWS * QDOT_TILE_WIDE * SDX_QDOT_COLS];
    const bool is_whole = n >= panels * SDX_QDOT_COLS;
    uint8_t *const to = is_whole ? y : all;
    const int64_t pitch = is_whole ? st->pitch : panels * SDX_QDOT_COLS;
    if (panels == QDOT_TILE_WIDE && is_plain(st))
        store_pairs(count, true, acc, &r, by, to, pitch);
    else if (panels == QDOT_TILE_WIDE)
        store_pairs(count, false, acc, &r, by, to, pitch);
    else if (is_plain(st))
        store_fours(count, true, acc, &r, by[0], to, pitch);
    else
        store_fours(count, false, acc, &r, by[0], to, pitch);
    if (!is_whole) copy_rows(count, all, pitch, y, st->pitch, (size_t)n);
}
#endif
#endif
