/* SPDX-License-Identifier: Apache-2.0
 * Rows of qconv_depthwise.h, once an instruction set: two taps at a time as shorts, summed in 32
 * bits. */
#include "kernels/qconv_depthwise.h"
#include "kernels/qdot_vector.h"
#include "kernels/tables.h"

enum { MASKS = SDX_SIMD_LANES == 16 };
#if SDX_SIMD_LANES >= 8
/* Channels in hand: as many shorts as a vector has. */
enum { BLOCK = 2 * SDX_SIMD_LANES, PAIR = 2 * SDX_QDW_WIDE, HIGH = SDX_QDW_WIDE };

/* Two taps of the channels 8 l .. + 3 of each lane l of 128 bits, then of the four that follow; or
 * the channels' sums. */
typedef struct {
    qdot_vector v[2];
} halves;

/* What is the same for all pixels of a block of channels, of which n are there. */
struct block {
    int64_t channel, n;
    const int16_t *w;
    halves start;
#if SDX_SIMD_LANES == 16
    __mmask32 mask;
    __m512 factor[2];
    struct rounding rounding;
#else
    struct qdot_rounding rounding;
#endif
};

#if SDX_SIMD_LANES == 16
SIMD __mmask32 mask_of(int64_t n)
{
    return n < BLOCK ? (1u << n) - 1 : ~(__mmask32)0;
}
/* 32 values in the order of the channels, of which n are there, to that of the halves. */
SIMD halves halves_at(const int32_t *p, int64_t n)
{
    const __mmask32 mask = mask_of(n);
    const __m512i a = _mm512_maskz_loadu_epi32((__mmask16)mask, p);
    const __m512i b = _mm512_maskz_loadu_epi32((__mmask16)(mask >> 16), p + 16);
    return (halves){{_mm512_shuffle_i32x4(a, b, 0x88), _mm512_shuffle_i32x4(a, b, 0xdd)}};
}
SIMD void begin_rounding(const struct sdx_qdot_store *st, struct block *b)
{
    const halves factor = halves_at((const int32_t *)(st->factor + b->channel), b->n);
    b->factor[0] = _mm512_castsi512_ps(factor.v[0]);
    b->factor[1] = _mm512_castsi512_ps(factor.v[1]);
    b->rounding = rounding(st);
}
/* Shorts in the order of the channels. */
SIMD __m512i shorts_of(const struct block *b, halves sums)
{
    return shorts(&b->rounding, sums.v[0], b->factor[0], sums.v[1], b->factor[1]);
}
/* Shorts of `count` pixels, one or two, as bytes to y and y + pitch. */
SIMD void put(const int count, const struct block *b, __m512i one, __m512i two, uint8_t *y,
              int64_t pitch)
{
    const __m512i order = _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7);
    const __m512i all =
        _mm512_permutexvar_epi64(order, bytes(&b->rounding, false, one, count > 1 ? two : one));
    _mm256_mask_storeu_epi8(y, b->mask, _mm512_castsi512_si256(all));
    if (count > 1) _mm256_mask_storeu_epi8(y + pitch, b->mask, _mm512_extracti64x4_epi64(all, 1));
}
static SDX_NOINLINE void put_slowly(const struct sdx_qdw *j, int64_t channel, int64_t n,
                                    halves sums, int64_t i)
{
    const __m512i low = _mm512_shuffle_i32x4(sums.v[0], sums.v[1], 0x44);
    const __m512i high = _mm512_shuffle_i32x4(sums.v[0], sums.v[1], 0xee);
    int32_t all[BLOCK];
    _mm512_storeu_si512(all, _mm512_shuffle_i32x4(low, low, 0xd8));
    _mm512_storeu_si512(all + 16, _mm512_shuffle_i32x4(high, high, 0xd8));
    for (int64_t at = 0; at < n; at += SDX_QDOT_COLS)
        store_row(&j->store, all + at, i, channel + at,
                  n - at < SDX_QDOT_COLS ? n - at : SDX_QDOT_COLS);
}
SIMD __m512i pixel_at(const struct block *b, const uint8_t *x)
{
    return _mm512_cvtepu8_epi16(_mm256_maskz_loadu_epi8(b->mask, x));
}
#else
/* From the order of the channels to that of the halves, and back. */
SIMD halves swap_middle(wide x, wide y)
{
    return (halves){{_mm256_permute2x128_si256(x, y, 0x20), _mm256_permute2x128_si256(x, y, 0x31)}};
}
SIMD halves halves_at(const int32_t *p, int64_t n)
{
    (void)n;
    return swap_middle(wide_load(p), wide_load(p + 8));
}
SIMD void begin_rounding(const struct sdx_qdot_store *st, struct block *b)
{
    b->rounding = qdot_rounding(st, b->channel);
    const __m256 u = b->rounding.u;
    b->rounding.u = _mm256_permute2f128_ps(u, b->rounding.v, 0x20);
    b->rounding.v = _mm256_permute2f128_ps(u, b->rounding.v, 0x31);
}
SIMD wide shorts_of(const struct block *b, halves sums)
{
    return qdot_shorts(&b->rounding, sums.v[0], sums.v[1], true);
}
/* n < BLOCK channels of one or two pixels. */
static SDX_NOINLINE void put_some(__m128i first, __m128i second, int count, int64_t n, uint8_t *y,
                                  int64_t pitch)
{
    qdot_put(y, first, n);
    if (count > 1) qdot_put(y + pitch, second, n);
}
SIMD void put(const int count, const struct block *b, wide one, wide two, uint8_t *y, int64_t pitch)
{
    const wide all =
        _mm256_permute4x64_epi64(qdot_pack(&b->rounding, one, count > 1 ? two : one), 0xd8);
    const __m128i first = _mm256_castsi256_si128(all), second = _mm256_extracti128_si256(all, 1);
    if (SDX_UNLIKELY(b->n < BLOCK)) {
        put_some(first, second, count, b->n, y, pitch);
        return;
    }
    _mm_storeu_si128((__m128i *)y, first);
    if (count > 1) _mm_storeu_si128((__m128i *)(y + pitch), second);
}
static SDX_NOINLINE void put_slowly(const struct sdx_qdw *j, int64_t channel, int64_t n,
                                    halves sums, int64_t i)
{
    halves in_channels = swap_middle(sums.v[0], sums.v[1]);
    qdot_store_slowly(1, &j->store, &in_channels.v, i, channel, n);
}
/* Widened by the load, which no move between halves has to follow. */
SIMD wide pixel_at(const struct block *b, const uint8_t *x)
{
    (void)b;
    return _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)x));
}
#endif

SIMD struct block block_at(const bool fast, const struct sdx_qdw *j, int64_t channel)
{
    const int64_t left = j->channels - channel, in_wide = channel % SDX_QDW_WIDE;
    struct block b = {.channel = channel, .n = left < BLOCK ? left : BLOCK};
#if SDX_SIMD_LANES == 16
    b.mask = mask_of(b.n);
#endif
    b.w =
        (const int16_t *)j->weights + (channel - in_wide) * ((j->count_taps + 1) / 2) * 2 + in_wide;
    b.start = halves_at(j->store.start + channel, b.n);
    if (fast) begin_rounding(&j->store, &b);
    return b;
}
SIMD halves taps_of(qdot_vector a, qdot_vector b)
{
    return (halves){{QDOT_V(unpacklo_epi16)(a, b), QDOT_V(unpackhi_epi16)(a, b)}};
}
SIMD void weigh(halves x, const int16_t *w, halves *sums)
{
    const qdot_vector low = QDOT_V(madd_epi16)(x.v[0], QDOT_LOAD(w));
    const qdot_vector high = QDOT_V(madd_epi16)(x.v[1], QDOT_LOAD(w + HIGH));
    sums->v[0] = QDOT_V(add_epi32)(sums->v[0], low);
    sums->v[1] = QDOT_V(add_epi32)(sums->v[1], high);
}

/* A kernel that slides: the output that begins at the column in hand, the next, the one that ends;
 * with stride 2 there is none between. */
struct slide {
    const uint8_t *lines[SDX_QDW_SIDE], *outside;
    int64_t at, end;    /* bytes to the next column, to the end of a row */
    qdot_vector before; /* the third row of the column before */
    halves begins, goes_on, ends;
};
/* The next column; inside: it is known to be. */
SIMD void slide_column(const bool inside, const struct block *b, int64_t apart, struct slide *s,
                       qdot_vector column[SDX_QDW_SIDE])
{
    const bool is_there = inside || (uint64_t)s->at < (uint64_t)s->end;
    SDX_UNROLL(3)
    for (int k = 0; k < SDX_QDW_SIDE; k++)
        column[k] = pixel_at(b, is_there ? s->lines[k] + s->at : s->outside);
    s->at += apart;
}
SIMD void slide_1(const bool inside, const struct block *b, int64_t apart, struct slide *s)
{
    qdot_vector c[SDX_QDW_SIDE];
    slide_column(inside, b, apart, s, c);
    const halves upper = taps_of(c[0], c[1]), third = taps_of(s->before, c[2]);
    s->ends = s->goes_on;
    s->goes_on = s->begins;
    s->begins = b->start;
    weigh(upper, b->w + 2 * PAIR, &s->ends);
    weigh(third, b->w + 4 * PAIR, &s->ends);
    weigh(upper, b->w + 1 * PAIR, &s->goes_on);
    weigh(upper, b->w, &s->begins);
    weigh(third, b->w + 3 * PAIR, &s->begins);
    s->before = c[2];
}
SIMD void slide_2(const bool inside, const struct block *b, int64_t apart, struct slide *s)
{
    qdot_vector c[SDX_QDW_SIDE], d[SDX_QDW_SIDE];
    slide_column(inside, b, apart, s, c);
    slide_column(inside, b, apart, s, d);
    const halves upper = taps_of(d[0], d[1]), third = taps_of(c[2], d[2]);
    s->ends = s->begins;
    s->begins = b->start;
    weigh(taps_of(c[0], c[1]), b->w + 1 * PAIR, &s->ends);
    weigh(upper, b->w + 2 * PAIR, &s->ends);
    weigh(third, b->w + 4 * PAIR, &s->ends);
    weigh(upper, b->w, &s->begins);
    weigh(third, b->w + 3 * PAIR, &s->begins);
}
/* The next output. */
SIMD halves slide_next(const int stride, const bool inside, const struct block *b, int64_t apart,
                       struct slide *s)
{
    if (stride == 1)
        slide_1(inside, b, apart, s);
    else
        slide_2(inside, b, apart, s);
    return s->ends;
}
SIMD struct slide slide_begin(const int stride, const struct sdx_qdw *j, const struct block *b)
{
    const int64_t apart = j->apart;
    struct slide s = {.at = j->column,
                      .end = j->end,
                      .outside = j->outside + b->channel,
                      .before = QDOT_V(set1_epi16)(0),
                      .begins = b->start,
                      .goes_on = b->start};
    SDX_UNROLL(3)
    for (int k = 0; k < SDX_QDW_SIDE; k++)
        s.lines[k] = j->lines[k] + b->channel;
    if (stride == 1) {
        slide_1(false, b, apart, &s);
        slide_1(false, b, apart, &s);
    } else {
        qdot_vector c[SDX_QDW_SIDE];
        slide_column(false, b, apart, &s, c);
        weigh(taps_of(c[0], c[1]), b->w, &s.begins);
        weigh(taps_of(c[2], c[2]), b->w + 3 * PAIR, &s.begins);
    }
    return s;
}
SIMD void slide(const int stride, const bool fast, const struct sdx_qdw *j, int64_t channel)
{
    const struct block b = block_at(fast, j, channel);
    const int64_t count = j->count, apart = j->apart, pitch = j->store.pitch;
    struct slide s = slide_begin(stride, j, &b);
    int64_t i = 0;
    uint8_t *y = (uint8_t *)j->store.y + channel;
    const int64_t last = s.at >= 0 ? s.end - 2 * stride * apart : INT64_MIN;
    for (; fast && i + 2 <= count && s.at <= last; i += 2, y += 2 * pitch) {
        const qdot_vector one = shorts_of(&b, slide_next(stride, true, &b, apart, &s));
        put(2, &b, one, shorts_of(&b, slide_next(stride, true, &b, apart, &s)), y, pitch);
    }
    for (; i < count; i++, y += pitch) {
        const halves sums = slide_next(stride, false, &b, apart, &s);
        if (fast) {
            const qdot_vector one = shorts_of(&b, sums);
            put(1, &b, one, one, y, pitch);
        } else
            put_slowly(j, channel, b.n, sums, i);
    }
}

/* Any kernel: `count` pixels, one or two, of which x is the first. */
SIMD void sums_of(const int count, const struct sdx_qdw *j, const struct block *b, const uint8_t *x,
                  halves sums[2])
{
    const int64_t taps = j->count_taps, *const places = j->taps;
    const int16_t *w = b->w;
    SDX_UNROLL(2) for (int i = 0; i < count; i++) sums[i] = b->start;
    for (int64_t t = 0; t < taps; t += 2, w += PAIR) {
        const int64_t one = places[t], two = places[t + 1 < taps ? t + 1 : t];
        SDX_UNROLL(2) for (int i = 0; i < count; i++)
        {
            const uint8_t *from = x + i * j->step;
            weigh(taps_of(pixel_at(b, from + one), pixel_at(b, from + two)), w, &sums[i]);
        }
    }
}
SIMD void any(const bool fast, const struct sdx_qdw *j, int64_t channel)
{
    const struct block b = block_at(fast, j, channel);
    const int64_t count = j->count, step = j->step, pitch = j->store.pitch;
    const uint8_t *x = j->x + channel;
    uint8_t *y = (uint8_t *)j->store.y + channel;
    halves sums[2];
    int64_t i = 0;
    for (; fast && i + 2 <= count; i += 2, x += 2 * step, y += 2 * pitch) {
        sums_of(2, j, &b, x, sums);
        put(2, &b, shorts_of(&b, sums[0]), shorts_of(&b, sums[1]), y, pitch);
    }
    for (; i < count; i++, x += step, y += pitch) {
        sums_of(1, j, &b, x, sums);
        if (fast)
            put(1, &b, shorts_of(&b, sums[0]), shorts_of(&b, sums[0]), y, pitch);
        else
            put_slowly(j, channel, b.n, sums[0], i);
    }
}
SIMD void blocks(const bool fast, const struct sdx_qdw *j, int64_t channel, int64_t end)
{
    for (; channel < end; channel += BLOCK) {
        if (j->stride == 1)
            slide(1, fast, j, channel);
        else if (j->stride == 2)
            slide(2, fast, j, channel);
        else
            any(fast, j, channel);
    }
}
static SDX_NOINLINE void slow_blocks(const struct sdx_qdw *j)
{
    blocks(false, j, 0, j->channels);
}
static void row(const struct sdx_qdw *j)
{
    if (qdot_is_rounded(&j->store))
        blocks(true, j, 0, j->channels);
    else
        slow_blocks(j);
}
#else
/* Where pixel i sees tap t, channel 0. */
SIMD const uint8_t *seen(const struct sdx_qdw *j, int64_t i, int64_t t)
{
    if (!j->stride) return j->x + i * j->step + j->taps[t];
    const int64_t column = j->column + (i * j->stride + t % SDX_QDW_SIDE) * j->apart;
    if (column < 0 || column >= j->end) return j->outside;
    return j->lines[t / SDX_QDW_SIDE] + column;
}
SIMD void block(const struct sdx_qdw *j, int64_t channel, int64_t n)
{
    const int64_t taps = j->stride ? SDX_QDW_SIDE * SDX_QDW_SIDE : j->count_taps;
    const int64_t in_wide = channel % SDX_QDW_WIDE;
    const int16_t *w =
        (const int16_t *)j->weights + (channel - in_wide) * ((j->count_taps + 1) / 2) * 2;
    for (int64_t i = 0; i < j->count; i++) {
        int32_t sums[SDX_QDOT_COLS];
        memcpy(sums, j->store.start + channel, sizeof sums);
        for (int64_t t = 0; t < taps; t++) {
            const uint8_t *x = seen(j, i, t) + channel;
            const int64_t at = j->stride ? qdw_slid_tap(t) : t;
            const int16_t *of_pair = w + at / 2 * 2 * SDX_QDW_WIDE;
            for (int64_t c = 0; c < SDX_QDOT_COLS; c++)
                sums[c] = (int32_t)((uint32_t)sums[c] +
                                    (uint32_t)(x[c] * of_pair[qdw_place(in_wide + c, at % 2)]));
        }
        qdot_store_row(&j->store, sums, i, channel, n);
    }
}
static void row(const struct sdx_qdw *j)
{
    for (int64_t c = 0; c < j->channels; c += SDX_QDOT_COLS)
        block(j, c, j->channels - c < SDX_QDOT_COLS ? j->channels - c : SDX_QDOT_COLS);
}
#endif

void SDX_INIT(sdx_qdw_init_)(struct sdx_qdw_table *qdw)
{
    qdw->row = row;
    qdw->masks = MASKS;
}
