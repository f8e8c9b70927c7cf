/* SPDX-License-Identifier: Apache-2.0
 * Rows of qconv_depthwise.h, once an instruction set: two taps at a time as shorts, summed in 32
 * bits. */
#include "kernels/qconv_depthwise.h"
#include "kernels/qdot_store.h"
#include "kernels/tables.h"

enum { BLOCK = SDX_QDOT_COLS };

#if SDX_SIMD_LANES >= 8
enum { PIXELS = 4 };
SIMD __m128i bytes_at(const uint8_t *x)
{
    return _mm_loadu_si128((const __m128i *)x);
}
SIMD void sums_of(const int64_t count_taps, const struct sdx_qdw *j, const int64_t *taps, int64_t i,
                  int64_t channel, wide sums[2])
{
    const uint8_t *x = j->x + i * j->step + channel;
    const int16_t *w = j->weights + channel * ((count_taps + 1) / 2) * 2;
    wide low = wide_load(j->store.start + channel), high = wide_load(j->store.start + channel + 8);
    SDX_UNROLL(13) for (int64_t t = 0; t < count_taps; t += 2, w += 2 * BLOCK)
    {
        const __m128i a = bytes_at(x + taps[t]);
        const __m128i b = t + 1 < count_taps ? bytes_at(x + taps[t + 1]) : _mm_setzero_si128();
        const wide c = _mm256_cvtepu8_epi16(_mm_unpacklo_epi8(a, b));
        const wide d = _mm256_cvtepu8_epi16(_mm_unpackhi_epi8(a, b));
        low = _mm256_add_epi32(low, _mm256_madd_epi16(c, wide_load(w)));
        high = _mm256_add_epi32(high, _mm256_madd_epi16(d, wide_load(w + BLOCK)));
    }
    sums[0] = low;
    sums[1] = high;
}
/* Pixels of one block of channels: the whole line of pixels lies in the first cache. */
SIMD void block(const int64_t count_taps, const struct sdx_qdw *j, const int64_t *taps,
                int64_t channel, int64_t n)
{
    int64_t i = 0;
    for (; i + PIXELS <= j->count; i += PIXELS) {
        wide sums[PIXELS][2];
        SDX_UNROLL(4)
        for (int p = 0; p < PIXELS; p++)
            sums_of(count_taps, j, taps, i + p, channel, sums[p]);
        qdot_store_rows(PIXELS, &j->store, sums, i, channel, n);
    }
    for (; i < j->count; i++) {
        wide sums[1][2];
        sums_of(count_taps, j, taps, i, channel, sums[0]);
        qdot_store_rows(1, &j->store, sums, i, channel, n);
    }
}
#else
SIMD void block(const int64_t count_taps, const struct sdx_qdw *j, const int64_t *taps,
                int64_t channel, int64_t n)
{
    const int16_t *w = j->weights + channel * ((count_taps + 1) / 2) * 2;
    for (int64_t i = 0; i < j->count; i++) {
        const uint8_t *x = j->x + i * j->step + channel;
        int32_t sums[BLOCK];
        memcpy(sums, j->store.start + channel, sizeof sums);
        for (int64_t t = 0; t < count_taps; t++)
            for (int64_t c = 0; c < BLOCK; c++)
                sums[c] = (int32_t)((uint32_t)sums[c] +
                                    (uint32_t)(x[taps[t] + c] *
                                               w[t / 2 * 2 * BLOCK + qdw_place(c, t % 2)]));
        qdot_store_row(&j->store, sums, i, channel, n);
    }
}
#endif

SIMD void all_pixels(const int64_t count_taps, const struct sdx_qdw *j, const int64_t *taps)
{
    int64_t c = 0;
    for (; c + BLOCK <= j->channels; c += BLOCK)
        block(count_taps, j, taps, c, BLOCK);
    if (c < j->channels) block(count_taps, j, taps, c, j->channels - c);
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
