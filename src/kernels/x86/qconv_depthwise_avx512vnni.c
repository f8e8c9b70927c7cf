/* SPDX-License-Identifier: Apache-2.0
 * Rows of qconv_depthwise.h with vpdpbusd: four taps of 16 channels in one go. The bytes of four
 * taps interleave twice, 64 channels at a time, which leaves four channels of each 16 to a vector:
 * vector v has channels 16 l + 4 v .. + 3 in its lane l, and packing the sums undoes it. */
#define SDX_SET_AVX512 1 /* the set includes it: width of simd.h */
#include "kernels/qconv_depthwise.h"
#include "kernels/tables.h"
#include "kernels/x86/qdot_store_avx512.h"

enum { FOURS = SDX_QDW_FOURS, WIDE = SDX_QDW_FOURS_WIDE };
enum { COLS = SDX_QDOT_COLS, VECTORS = WIDE / COLS };
#define EACH SDX_UNROLL(4) for (int v = 0; v < VECTORS; v++)

/* 64 channels, or what is left of them, at a row. */
struct columns {
    const int8_t *w;
    __mmask64 mask;
    __m512i start[VECTORS];
    __m512 factor[VECTORS];
};

SIMD __m512i bytes_at(const struct columns *c, const uint8_t *x)
{
    return _mm512_maskz_loadu_epi8(c->mask, x);
}
SIMD void interleave(__m512i a, __m512i b, __m512i c, __m512i d, __m512i u[VECTORS])
{
    const __m512i low = _mm512_unpacklo_epi8(a, b), high = _mm512_unpackhi_epi8(a, b);
    const __m512i more = _mm512_unpacklo_epi8(c, d), most = _mm512_unpackhi_epi8(c, d);
    u[0] = _mm512_unpacklo_epi16(low, more);
    u[1] = _mm512_unpackhi_epi16(low, more);
    u[2] = _mm512_unpacklo_epi16(high, most);
    u[3] = _mm512_unpackhi_epi16(high, most);
}
SIMD void weigh(const __m512i u[VECTORS], const int8_t *w, __m512i sums[VECTORS])
{
    EACH sums[v] = _mm512_dpbusd_epi32(sums[v], u[v], whole(w + v * WIDE));
}
/* Lanes of 128 bits by rows and columns, either way. */
SIMD void turn(__m512i x[VECTORS])
{
    const __m512i a = _mm512_shuffle_i32x4(x[0], x[1], 0x44);
    const __m512i b = _mm512_shuffle_i32x4(x[0], x[1], 0xee);
    const __m512i c = _mm512_shuffle_i32x4(x[2], x[3], 0x44);
    const __m512i d = _mm512_shuffle_i32x4(x[2], x[3], 0xee);
    x[0] = _mm512_shuffle_i32x4(a, c, 0x88);
    x[1] = _mm512_shuffle_i32x4(a, c, 0xdd);
    x[2] = _mm512_shuffle_i32x4(b, d, 0x88);
    x[3] = _mm512_shuffle_i32x4(b, d, 0xdd);
}
static struct columns columns_at(const struct sdx_qdw *j, int64_t channel)
{
    const int64_t n = j->channels - channel;
    struct columns c = {.w = (const int8_t *)j->weights + channel * j->count_taps,
                        .mask = n < WIDE ? ((__mmask64)1 << n) - 1 : ~(__mmask64)0};
    __m512i factor[VECTORS];
    for (int v = 0; v < VECTORS; v++) {
        const bool is_there = v * COLS < n;
        const int64_t at = channel + v * COLS;
        c.start[v] = is_there ? whole(j->store.start + at) : _mm512_setzero_si512();
        factor[v] =
            is_there && j->store.factor ? whole(j->store.factor + at) : _mm512_setzero_si512();
    }
    turn(c.start);
    turn(factor);
    EACH c.factor[v] = _mm512_castsi512_ps(factor[v]);
    return c;
}
static SDX_NOINLINE void store_slowly(const struct sdx_qdw *j, const __m512i *from, int64_t i,
                                      int64_t channel)
{
    int32_t sums[WIDE];
    __m512i x[VECTORS] = {from[0], from[1], from[2], from[3]};
    turn(x);
    EACH _mm512_storeu_si512(sums + v * COLS, x[v]);
    for (int64_t at = 0; at < WIDE && channel + at < j->channels; at += COLS) {
        const int64_t n = j->channels - channel - at;
        store_row(&j->store, sums + at, i, channel + at, n < COLS ? n : COLS);
    }
}
SIMD void store(const struct sdx_qdw *j, const struct columns *c, const struct rounding *r,
                const __m512i sums[VECTORS], int64_t i, int64_t channel)
{
    if (SDX_UNLIKELY(!qdot_is_rounded(&j->store))) {
        const __m512i copy[VECTORS] = {sums[0], sums[1], sums[2], sums[3]};
        store_slowly(j, copy, i, channel);
        return;
    }
    const __m512i low = shorts(r, sums[0], c->factor[0], sums[1], c->factor[1]);
    const __m512i high = shorts(r, sums[2], c->factor[2], sums[3], c->factor[3]);
    uint8_t *y = (uint8_t *)j->store.y + i * j->store.pitch + channel;
    _mm512_mask_storeu_epi8(y, c->mask, bytes(r, false, low, high));
}

/* Three columns that slide: with stride 1 two of them are those of the output before. */
struct slide {
    const struct sdx_qdw *job;
    int64_t channel, at; /* bytes to the next column */
};
/* The next column: its three rows. */
SIMD void next_column(const struct columns *c, struct slide *s, __m512i u[VECTORS])
{
    const bool inside = (uint64_t)s->at < (uint64_t)s->job->end;
    __m512i x[SDX_QDW_SIDE];
    SDX_UNROLL(3)
    for (int k = 0; k < SDX_QDW_SIDE; k++)
        x[k] = bytes_at(c, s->channel + (inside ? s->job->lines[k] + s->at : s->job->outside));
    s->at += s->job->apart;
    interleave(x[0], x[1], x[2], _mm512_setzero_si512(), u);
}
SIMD void slide(const int stride, const struct sdx_qdw *j, int64_t channel)
{
    const struct columns c = columns_at(j, channel);
    const struct rounding r = rounding(&j->store);
    struct slide s = {j, channel, j->column};
    __m512i u[SDX_QDW_SIDE][VECTORS];
    next_column(&c, &s, u[0]);
    if (stride == 1) next_column(&c, &s, u[1]);
    for (int64_t i = 0; i < j->count; i++) {
        __m512i sums[VECTORS];
        EACH sums[v] = c.start[v];
        if (stride == 2) next_column(&c, &s, u[1]);
        next_column(&c, &s, u[2]);
        for (int k = 0; k < SDX_QDW_SIDE; k++)
            weigh(u[k], c.w + k * VECTORS * WIDE, sums);
        store(j, &c, &r, sums, i, channel);
        EACH
        {
            u[0][v] = stride == 1 ? u[1][v] : u[2][v];
            u[1][v] = u[2][v];
        }
    }
}
SIMD void any(const struct sdx_qdw *j, int64_t channel)
{
    const struct columns c = columns_at(j, channel);
    const struct rounding r = rounding(&j->store);
    const uint8_t *x = j->x + channel;
    for (int64_t i = 0; i < j->count; i++, x += j->step) {
        __m512i sums[VECTORS], u[VECTORS];
        EACH sums[v] = c.start[v];
        const int8_t *w = c.w;
        for (int64_t t = 0; t < j->count_taps; t += FOURS, w += VECTORS * WIDE) {
            const int64_t *taps = j->taps + t;
            interleave(bytes_at(&c, x + taps[0]), bytes_at(&c, x + taps[1]),
                       bytes_at(&c, x + taps[2]), bytes_at(&c, x + taps[3]), u);
            weigh(u, w, sums);
        }
        store(j, &c, &r, sums, i, channel);
    }
}
static void row(const struct sdx_qdw *j)
{
    for (int64_t c = 0; c < j->channels; c += WIDE) {
        if (j->stride == 1)
            slide(1, j, c);
        else if (j->stride == 2)
            slide(2, j, c);
        else
            any(j, c);
    }
}

void sdx_qdw_init_avx512vnni(struct sdx_qdw_table *qdw)
{
    qdw->row_of_fours = row;
}
