/* SPDX-License-Identifier: Apache-2.0
 * Rows of qconv_depthwise.h, once an instruction set: two taps at a time as shorts, summed in 32
 * bits. */
#include "kernels/qconv_depthwise.h"
#include "kernels/qdot_store.h"
#include "kernels/tables.h"

enum { BLOCK = SDX_QDOT_COLS };

#if SDX_SIMD_LANES >= 8
enum { PIXELS = 4 };
/* 16 channels as shorts: widened by the load, which no move between halves has to follow. */
SIMD wide shorts_at(const uint8_t *x)
{
    return _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)x));
}
/* Adds two taps by their pair of weights; sums[0] is that of channels 0-3 and 8-11. */
SIMD void weigh(wide a, wide b, const int16_t *w, wide sums[2])
{
    const wide low = _mm256_madd_epi16(_mm256_unpacklo_epi16(a, b), wide_load(w));
    const wide high = _mm256_madd_epi16(_mm256_unpackhi_epi16(a, b), wide_load(w + BLOCK));
    sums[0] = _mm256_add_epi32(sums[0], low);
    sums[1] = _mm256_add_epi32(sums[1], high);
}
/* From the order of weigh() to that of the channels, and back. */
SIMD void swap_middle(wide pair[2])
{
    const wide x = _mm256_permute2x128_si256(pair[0], pair[1], 0x20);
    pair[1] = _mm256_permute2x128_si256(pair[0], pair[1], 0x31);
    pair[0] = x;
}
SIMD void start_of(const struct sdx_qdw *j, int64_t channel, wide start[2])
{
    start[0] = wide_load(j->store.start + channel);
    start[1] = wide_load(j->store.start + channel + 8);
    swap_middle(start);
}
SIMD void sums_of(const struct sdx_qdw *j, int64_t i, int64_t channel, const wide start[2],
                  wide sums[2])
{
    const int64_t count_taps = j->count_taps, *const taps = j->taps;
    const uint8_t *x = j->x + i * j->step + channel;
    const int16_t *w = (const int16_t *)j->weights + channel * ((count_taps + 1) / 2) * 2;
    sums[0] = start[0];
    sums[1] = start[1];
    SDX_UNROLL(13) for (int64_t t = 0; t < count_taps; t += 2, w += 2 * BLOCK)
    {
        const wide a = shorts_at(x + taps[t]);
        weigh(a, t + 1 < count_taps ? shorts_at(x + taps[t + 1]) : a, w, sums);
    }
    swap_middle(sums);
}

/* A kernel that slides: the output that begins at the column in hand, the next, the one that ends;
 * with stride 2 there is none between. */
struct slide {
    const uint8_t *x;             /* of the next column */
    int64_t apart, second, third; /* bytes to the next column, to the rows below */
    const int16_t *w;
    wide before; /* the third row of the column before */
    wide start[2], begins[2], goes_on[2], ends[2];
};
SIMD void copy(const wide from[2], wide to[2])
{
    to[0] = from[0];
    to[1] = from[1];
}
enum { PAIR = 2 * BLOCK };
SIMD void slide_1(struct slide *s)
{
    const wide a = shorts_at(s->x), b = shorts_at(s->x + s->second);
    const wide before = s->before, c = shorts_at(s->x + s->third);
    copy(s->goes_on, s->ends);
    copy(s->begins, s->goes_on);
    copy(s->start, s->begins);
    weigh(a, b, s->w + 2 * PAIR, s->ends);
    weigh(before, c, s->w + 4 * PAIR, s->ends);
    weigh(a, b, s->w + PAIR, s->goes_on);
    weigh(a, b, s->w, s->begins);
    weigh(before, c, s->w + 3 * PAIR, s->begins);
    s->before = c;
    s->x += s->apart;
}
SIMD void slide_2(struct slide *s)
{
    const uint8_t *x = s->x, *next = x + s->apart;
    const wide before = shorts_at(x + s->third), c = shorts_at(next + s->third);
    const wide a = shorts_at(next), b = shorts_at(next + s->second);
    copy(s->begins, s->ends);
    copy(s->start, s->begins);
    weigh(shorts_at(x), shorts_at(x + s->second), s->w + PAIR, s->ends);
    weigh(a, b, s->w + 2 * PAIR, s->ends);
    weigh(before, c, s->w + 4 * PAIR, s->ends);
    weigh(a, b, s->w, s->begins);
    weigh(before, c, s->w + 3 * PAIR, s->begins);
    s->x = next + s->apart;
}
SIMD void slide_step(const int stride, struct slide *s)
{
    if (stride == 1)
        slide_1(s);
    else
        slide_2(s);
}
/* The next output, rounded to shorts. */
SIMD wide slide_next(const int stride, const struct qdot_rounding *r, struct slide *s)
{
    slide_step(stride, s);
    return qdot_shorts(r, s->ends[0], s->ends[1], true);
}
SIMD struct slide slide_begin(const int stride, const struct sdx_qdw *j, int64_t channel)
{
    struct slide s = {.x = j->x + channel,
                      .apart = j->step / stride,
                      .second = j->taps[1],
                      .third = j->taps[SDX_QDW_NO_TAP + 1],
                      .w = (const int16_t *)j->weights + channel * SDX_QDW_SLID};
    start_of(j, channel, s.start);
    copy(s.start, s.begins);
    copy(s.start, s.goes_on);
    s.before = shorts_at(s.x + s.third);
    if (stride == 1) {
        slide_1(&s);
        slide_1(&s);
    } else {
        weigh(shorts_at(s.x), shorts_at(s.x + s.second), s.w, s.begins);
        weigh(s.before, s.before, s.w + 3 * PAIR, s.begins);
        s.x += s.apart;
    }
    return s;
}
/* Two outputs whose shorts stand in the order of the channels. */
SIMD wide slide_bytes(const struct qdot_rounding *r, wide one, wide two)
{
    return _mm256_permute4x64_epi64(qdot_pack(r, one, two), 0xd8);
}
/* n channels of all pixels, to whatever is stored. */
SIMD void slide(const int stride, const struct sdx_qdw *j, int64_t channel, int64_t n)
{
    struct slide s = slide_begin(stride, j, channel);
    for (int64_t i = 0; i < j->count; i++) {
        slide_step(stride, &s);
        swap_middle(s.ends);
        qdot_store_rows(1, &j->store, &s.ends, i, channel, n);
    }
}
/* 16 channels of all pixels, to bytes. */
SIMD void slide_to_bytes(const int stride, const struct sdx_qdw *j, int64_t channel)
{
    struct qdot_rounding r = qdot_rounding(&j->store, channel);
    const __m256 u = r.u;
    r.u = _mm256_permute2f128_ps(u, r.v, 0x20);
    r.v = _mm256_permute2f128_ps(u, r.v, 0x31);
    struct slide s = slide_begin(stride, j, channel);
    uint8_t *y = (uint8_t *)j->store.y + channel;
    const int64_t pitch = j->store.pitch;
    int64_t left = j->count;
    for (; left > 1; left -= 2, y += 2 * pitch) {
        const wide one = slide_next(stride, &r, &s), two = slide_next(stride, &r, &s);
        const wide bytes = slide_bytes(&r, one, two);
        qdot_put(y, _mm256_castsi256_si128(bytes), BLOCK);
        qdot_put(y + pitch, _mm256_extracti128_si256(bytes, 1), BLOCK);
    }
    if (left == 0) return;
    const wide one = slide_next(stride, &r, &s);
    qdot_put(y, _mm256_castsi256_si128(slide_bytes(&r, one, one)), BLOCK);
}
/* Pixels of one block of channels: the whole line of pixels lies in the first cache. */
SIMD void block(const struct sdx_qdw *j, int64_t channel, int64_t n)
{
    wide start[2];
    start_of(j, channel, start);
    int64_t i = 0;
    for (; i + PIXELS <= j->count; i += PIXELS) {
        wide sums[PIXELS][2];
        SDX_UNROLL(4)
        for (int p = 0; p < PIXELS; p++)
            sums_of(j, i + p, channel, start, sums[p]);
        qdot_store_rows(PIXELS, &j->store, sums, i, channel, n);
    }
    for (; i < j->count; i++) {
        wide sums[1][2];
        sums_of(j, i, channel, start, sums[0]);
        qdot_store_rows(1, &j->store, sums, i, channel, n);
    }
}
#else
SIMD void block(const struct sdx_qdw *j, int64_t channel, int64_t n)
{
    const int64_t count_taps = j->count_taps, *const taps = j->taps;
    const int16_t *w = (const int16_t *)j->weights + channel * ((count_taps + 1) / 2) * 2;
    for (int64_t i = 0; i < j->count; i++) {
        const uint8_t *x = j->x + i * j->step + channel;
        int32_t sums[BLOCK];
        memcpy(sums, j->store.start + channel, sizeof sums);
        for (int64_t t = 0; t < count_taps; t += j->slides && t == SDX_QDW_NO_TAP - 1 ? 2 : 1)
            for (int64_t c = 0; c < BLOCK; c++)
                sums[c] = (int32_t)((uint32_t)sums[c] +
                                    (uint32_t)(x[taps[t] + c] *
                                               w[t / 2 * 2 * BLOCK + qdw_place(c, t % 2)]));
        qdot_store_row(&j->store, sums, i, channel, n);
    }
}
#endif

SIMD int64_t some(const struct sdx_qdw *j, int64_t channel)
{
    return j->channels - channel < BLOCK ? j->channels - channel : BLOCK;
}
#if SDX_SIMD_LANES >= 8
SIMD void slide_row(const int stride, const struct sdx_qdw *j)
{
    int64_t c = 0;
    if (j->store.to == SDX_QDOT_BYTES && j->store.factors_are_small)
        for (; c + BLOCK <= j->channels; c += BLOCK)
            slide_to_bytes(stride, j, c);
    for (; c < j->channels; c += BLOCK)
        slide(stride, j, c, some(j, c));
}
#endif
static void row(const struct sdx_qdw *j)
{
#if SDX_SIMD_LANES >= 8
    if (j->slides) {
        if (j->slides == 1)
            slide_row(1, j);
        else
            slide_row(2, j);
        return;
    }
#endif
    for (int64_t c = 0; c < j->channels; c += BLOCK)
        block(j, c, some(j, c));
}

void SDX_INIT(sdx_qdw_init_)(void (**fn)(const struct sdx_qdw *job))
{
    *fn = row;
}
