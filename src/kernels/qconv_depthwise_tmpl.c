/* SPDX-License-Identifier: Apache-2.0
 * Rows of qconv_depthwise.h, once an instruction set: two taps at a time as shorts, summed in 32
 * bits. */
#include "kernels/qconv_depthwise.h"
#include "kernels/qdot_store.h"
#include "kernels/tables.h"

enum { BLOCK = SDX_QDOT_COLS };

#if SDX_SIMD_LANES >= 8
SIMD wide shorts_at(const uint8_t *x)
{
    return _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)x));
}
SIMD void pixel(const int64_t count_taps, const struct sdx_qdw *j, const int64_t *taps, int64_t i,
                int64_t channel, int64_t n)
{
    const uint8_t *x = j->x + i * j->step + channel;
    const int16_t *w = j->weights + channel * ((count_taps + 1) / 2) * 2;
    wide low = _mm256_setzero_si256(), high = low;
    SDX_UNROLL(13) for (int64_t t = 0; t < count_taps; t += 2, w += 2 * BLOCK)
    {
        const wide a = shorts_at(x + taps[t]);
        const wide b = t + 1 < count_taps ? shorts_at(x + taps[t + 1]) : _mm256_setzero_si256();
        low = _mm256_add_epi32(low, _mm256_madd_epi16(_mm256_unpacklo_epi16(a, b), wide_load(w)));
        high = _mm256_add_epi32(
            high, _mm256_madd_epi16(_mm256_unpackhi_epi16(a, b), wide_load(w + BLOCK)));
    }
    const int32_t *start = j->store.start + channel;
    qdot_store_row(
        &j->store, _mm256_add_epi32(_mm256_permute2x128_si256(low, high, 0x20), wide_load(start)),
        _mm256_add_epi32(_mm256_permute2x128_si256(low, high, 0x31), wide_load(start + 8)), i,
        channel, n);
}
#else
SIMD void pixel(const int64_t count_taps, const struct sdx_qdw *j, const int64_t *taps, int64_t i,
                int64_t channel, int64_t n)
{
    const uint8_t *x = j->x + i * j->step + channel;
    const int16_t *w = j->weights + channel * ((count_taps + 1) / 2) * 2;
    int32_t sums[BLOCK];
    memcpy(sums, j->store.start + channel, sizeof sums);
    for (int64_t t = 0; t < count_taps; t++)
        for (int64_t c = 0; c < BLOCK; c++)
            sums[c] =
                (int32_t)((uint32_t)sums[c] +
                          (uint32_t)(x[taps[t] + c] * w[t / 2 * 2 * BLOCK + qdw_place(c, t % 2)]));
    qdot_store_row(&j->store, sums, i, channel, n);
}
#endif

SIMD void all_pixels(const int64_t count_taps, const struct sdx_qdw *j, const int64_t *taps)
{
    for (int64_t i = 0; i < j->count; i++) {
        int64_t c = 0;
        for (; c + BLOCK <= j->channels; c += BLOCK)
            pixel(count_taps, j, taps, i, c, BLOCK);
        if (c < j->channels) pixel(count_taps, j, taps, i, c, j->channels - c);
    }
}
static void row(const struct sdx_qdw *j)
{
    if (j->count_taps == 9) {
        int64_t taps[9]; /* the compiler sees that nothing else changes them */
        memcpy(taps, j->taps, sizeof taps);
        all_pixels(9, j, taps);
    } else {
        all_pixels(j->count_taps, j, j->taps);
    }
}

void SDX_INIT(sdx_qdw_init_)(void (**fn)(const struct sdx_qdw *job))
{
    *fn = row;
}
