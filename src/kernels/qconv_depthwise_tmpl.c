/* SPDX-License-Identifier: Apache-2.0
 * Rows of qconv_depthwise.h, once an instruction set: two taps at a time as shorts, summed in 32
 * bits. */
#include "kernels/qconv_depthwise.h"
#include "kernels/qdot_vector.h"
#include "kernels/tables.h"

enum { BLOCK = SDX_QDOT_COLS };

#if SDX_SIMD_LANES >= 8
enum { PIXELS = 4, PAIR = 2 * BLOCK };

/* A `pixel` is 16 channels of one, `taps` those of two, a channel's beside each other, `sums`
 * theirs times their weights. */
#if SDX_SIMD_LANES == 16
typedef __m512i pixel, taps, sums, weights;
SIMD pixel pixel_at(const uint8_t *x)
{
    return _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)x));
}
SIMD taps taps_of(pixel a, pixel b)
{
    return _mm512_or_si512(a, _mm512_slli_epi32(b, 16));
}
/* From the order of qdw_place() to that of the channels. */
SIMD weights weights_at(const int16_t *w)
{
    const __m512i x = _mm512_loadu_si512(w);
    return _mm512_shuffle_i64x2(x, x, 0xd8);
}
SIMD void weigh(taps x, weights w, sums *s)
{
    *s = _mm512_add_epi32(*s, _mm512_madd_epi16(x, w));
}
SIMD sums start_of(const struct sdx_qdw *j, int64_t channel)
{
    return _mm512_loadu_si512(j->store.start + channel);
}
SIMD void columns_of(sums s, qdot_vector row[2])
{
    row[0] = s;
}
#else
typedef wide pixel;
typedef struct {
    wide v[2]; /* channels 0-3 and 8-11, the others: as two rows of shorts interleave in halves */
} taps, sums;
typedef const int16_t *weights;
/* Widened by the load, which no move between halves has to follow. */
SIMD pixel pixel_at(const uint8_t *x)
{
    return _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)x));
}
SIMD taps taps_of(pixel a, pixel b)
{
    return (taps){{_mm256_unpacklo_epi16(a, b), _mm256_unpackhi_epi16(a, b)}};
}
SIMD weights weights_at(const int16_t *w)
{
    return w;
}
SIMD void weigh(taps x, weights w, sums *s)
{
    const wide low = _mm256_madd_epi16(x.v[0], wide_load(w));
    const wide high = _mm256_madd_epi16(x.v[1], wide_load(w + BLOCK));
    s->v[0] = _mm256_add_epi32(s->v[0], low);
    s->v[1] = _mm256_add_epi32(s->v[1], high);
}
/* From that order to that of the channels, and back. */
SIMD sums swap_middle(sums s)
{
    return (sums){{_mm256_permute2x128_si256(s.v[0], s.v[1], 0x20),
                   _mm256_permute2x128_si256(s.v[0], s.v[1], 0x31)}};
}
SIMD sums start_of(const struct sdx_qdw *j, int64_t channel)
{
    const int32_t *start = j->store.start + channel;
    return swap_middle((sums){{wide_load(start), wide_load(start + 8)}});
}
SIMD void columns_of(sums s, qdot_vector row[2])
{
    const sums in_channels = swap_middle(s);
    row[0] = in_channels.v[0];
    row[1] = in_channels.v[1];
}
#endif

/* n channels of pixels i, i + 1, .. */
SIMD void store(const int count, const struct sdx_qdw *j, const sums *s, int64_t i, int64_t channel,
                int64_t n)
{
    qdot_vector rows[PIXELS][2];
    SDX_UNROLL(4) for (int k = 0; k < count; k++) columns_of(s[k], rows[k]);
    qdot_store_sums(count, 1, &j->store, rows, i, channel, n);
}
SIMD sums sums_of(const struct sdx_qdw *j, int64_t i, int64_t channel, sums s)
{
    const int64_t count = j->count_taps, *const places = j->taps;
    const uint8_t *x = j->x + i * j->step + channel;
    const int16_t *w = (const int16_t *)j->weights + channel * ((count + 1) / 2) * 2;
    SDX_UNROLL(13) for (int64_t t = 0; t < count; t += 2, w += PAIR)
    {
        const pixel a = pixel_at(x + places[t]);
        weigh(taps_of(a, t + 1 < count ? pixel_at(x + places[t + 1]) : a), weights_at(w), &s);
    }
    return s;
}

/* A kernel that slides: the output that begins at the column in hand, the next, the one that ends;
 * with stride 2 there is none between. */
struct slide {
    const uint8_t *x;             /* of the next column */
    int64_t apart, second, third; /* bytes to the next column, to the rows below */
    weights w[SDX_QDW_SLID / 2];
    pixel before; /* the third row of the column before */
    sums start, begins, goes_on, ends;
};
SIMD void slide_1(struct slide *s)
{
    const taps upper = taps_of(pixel_at(s->x), pixel_at(s->x + s->second));
    const pixel c = pixel_at(s->x + s->third);
    const taps third = taps_of(s->before, c);
    s->ends = s->goes_on;
    s->goes_on = s->begins;
    s->begins = s->start;
    weigh(upper, s->w[2], &s->ends);
    weigh(third, s->w[4], &s->ends);
    weigh(upper, s->w[1], &s->goes_on);
    weigh(upper, s->w[0], &s->begins);
    weigh(third, s->w[3], &s->begins);
    s->before = c;
    s->x += s->apart;
}
SIMD void slide_2(struct slide *s)
{
    const uint8_t *x = s->x, *next = x + s->apart;
    const taps third = taps_of(pixel_at(x + s->third), pixel_at(next + s->third));
    const taps upper = taps_of(pixel_at(next), pixel_at(next + s->second));
    s->ends = s->begins;
    s->begins = s->start;
    weigh(taps_of(pixel_at(x), pixel_at(x + s->second)), s->w[1], &s->ends);
    weigh(upper, s->w[2], &s->ends);
    weigh(third, s->w[4], &s->ends);
    weigh(upper, s->w[0], &s->begins);
    weigh(third, s->w[3], &s->begins);
    s->x = next + s->apart;
}
/* The next output. */
SIMD sums slide_next(const int stride, struct slide *s)
{
    if (stride == 1)
        slide_1(s);
    else
        slide_2(s);
    return s->ends;
}
SIMD struct slide slide_begin(const int stride, const struct sdx_qdw *j, int64_t channel)
{
    const int16_t *w = (const int16_t *)j->weights + channel * SDX_QDW_SLID;
    struct slide s = {.x = j->x + channel,
                      .apart = j->step / stride,
                      .second = j->taps[1],
                      .third = j->taps[SDX_QDW_NO_TAP + 1],
                      .start = start_of(j, channel)};
    SDX_UNROLL(5) for (int i = 0; i < SDX_QDW_SLID / 2; i++) s.w[i] = weights_at(w + i * PAIR);
    s.begins = s.goes_on = s.start;
    s.before = pixel_at(s.x + s.third);
    if (stride == 1) {
        slide_1(&s);
        slide_1(&s);
    } else {
        weigh(taps_of(pixel_at(s.x), pixel_at(s.x + s.second)), s.w[0], &s.begins);
        weigh(taps_of(s.before, s.before), s.w[3], &s.begins);
        s.x += s.apart;
    }
    return s;
}
/* n channels of all pixels, to whatever is stored. */
SIMD void slide(const int stride, const struct sdx_qdw *j, int64_t channel, int64_t n)
{
    struct slide s = slide_begin(stride, j, channel);
    int64_t i = 0;
#if SDX_SIMD_LANES == 16
    for (; i + PIXELS <= j->count; i += PIXELS) {
        sums four[PIXELS];
        SDX_UNROLL(4) for (int k = 0; k < PIXELS; k++) four[k] = slide_next(stride, &s);
        store(PIXELS, j, four, i, channel, n);
    }
#endif
    for (; i < j->count; i++) {
        const sums one = slide_next(stride, &s);
        store(1, j, &one, i, channel, n);
    }
}
#if SDX_SIMD_LANES == 8
/* Two outputs whose shorts stand in the order of the channels. */
SIMD wide slide_bytes(const struct qdot_rounding *r, wide one, wide two)
{
    return _mm256_permute4x64_epi64(qdot_pack(r, one, two), 0xd8);
}
SIMD wide slide_shorts(const int stride, const struct qdot_rounding *r, struct slide *s)
{
    const sums next = slide_next(stride, s);
    return qdot_shorts(r, next.v[0], next.v[1], true);
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
        const wide one = slide_shorts(stride, &r, &s), two = slide_shorts(stride, &r, &s);
        const wide bytes = slide_bytes(&r, one, two);
        qdot_put(y, _mm256_castsi256_si128(bytes), BLOCK);
        qdot_put(y + pitch, _mm256_extracti128_si256(bytes, 1), BLOCK);
    }
    if (left == 0) return;
    const wide one = slide_shorts(stride, &r, &s);
    qdot_put(y, _mm256_castsi256_si128(slide_bytes(&r, one, one)), BLOCK);
}
#endif
/* Pixels of one block of channels: the whole line of pixels lies in the first cache. */
SIMD void block(const struct sdx_qdw *j, int64_t channel, int64_t n)
{
    const sums start = start_of(j, channel);
    int64_t i = 0;
    for (; i + PIXELS <= j->count; i += PIXELS) {
        sums four[PIXELS];
        SDX_UNROLL(4)
        for (int p = 0; p < PIXELS; p++)
            four[p] = sums_of(j, i + p, channel, start);
        store(PIXELS, j, four, i, channel, n);
    }
    for (; i < j->count; i++) {
        const sums one = sums_of(j, i, channel, start);
        store(1, j, &one, i, channel, n);
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
#if SDX_SIMD_LANES == 8
    if (j->store.to == SDX_QDOT_BYTES && j->store.factors_are_small)
        for (; c + BLOCK <= j->channels; c += BLOCK)
            slide_to_bytes(stride, j, c);
#endif
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
