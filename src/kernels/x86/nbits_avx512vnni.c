/* SPDX-License-Identifier: Apache-2.0
 * Products of floats with weights of 4 bits (nbits.h) with vpdpbusd, which multiplies 64 bytes in
 * the time of 16 floats: a number of A in three digits of 8 bits takes three quarters of what a
 * float would, and a weight becomes a byte by a mask alone. Sums of a run are whole and exact.
 * Whole products of 4 and 8 bits are the same with one digit. */
#define SDX_SET_AVX512 1 /* the set includes it: width of simd.h */
#include "kernels/nbits_panel.h"

#include <float.h>

enum { RUN = SDX_NBITS_RUN, DIGITS = 3, PAGE = 4096 };
#define DIGIT SDX_UNROLL(3) for (int d = 0; d < digits; d++)

SIMD int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---- rows ---- */

static void run_of_row(const float *a, int64_t depth, uint8_t *row, float *sum)
{
    struct sdx_nbits_fact *fact = (void *)row;
    const __m128i by_digit = _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const vi planes = {0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14}, middle = vi_set1(0x808080);
    vf x[RUN / LANES];
    vi most = vi_set1(0), all = most; /* of floats' bits, so NaN is the greatest */
    for (int i = 0; i < RUN / LANES; i++) {
        const int64_t n = depth - i * LANES;
        x[i] = (vf)_mm512_maskz_loadu_ps(n <= 0      ? 0
                                         : n < LANES ? (1u << n) - 1
                                                     : 0xffff,
                                         a + i * LANES);
        most = (vi)_mm512_max_epi32((__m512i)most, (__m512i)vi_bits(v_abs(x[i])));
    }
    const int32_t greatest = _mm512_reduce_max_epi32((__m512i)most);
    memcpy(&fact->scale, &greatest, sizeof greatest);
    fact->scale /= (float)SDX_NBITS_DIGITS_MOST;
    if (fact->scale < FLT_MIN) fact->scale = FLT_MIN;
    row += sizeof *fact;
    for (int i = 0; i < RUN / LANES; i++, row += LANES) {
        const vi q = (vi)_mm512_cvtps_epi32((__m512)(x[i] / v_set1(fact->scale)));
        const vi digits = vi_add(q, middle) ^ middle;
        const vi fours = (vi)_mm512_shuffle_epi8((__m512i)digits, _mm512_broadcast_i32x4(by_digit));
        all = vi_add(all, q);
        const __m512i three = _mm512_permutexvar_epi32((__m512i)planes, (__m512i)fours);
        _mm_storeu_si128((__m128i *)row, _mm512_castsi512_si128(three));
        _mm_storeu_si128((__m128i *)(row + RUN), _mm512_extracti32x4_epi32(three, 1));
        _mm_storeu_si128((__m128i *)(row + 2 * RUN), _mm512_extracti32x4_epi32(three, 2));
    }
    uint32_t lanes[LANES], total = 0; /* of NaN and infinity it goes around */
    vi_store(lanes, all);
    for (int i = 0; i < LANES; i++)
        total += lanes[i];
    *sum += fact->scale * (float)(int32_t)total;
    fact->sum = *sum;
    fact->start = (int32_t)(-8u * total);
}
static void digit_row(const struct sdx_nbits *w, const float *a, void *row_)
{
    uint8_t *row = row_;
    for (int64_t k = 0; k < w->k;) {
        const int64_t end = least(k + w->block, w->k);
        float sum = 0;
        for (int64_t depth; k < end; k += depth) {
            depth = least(RUN, end - k);
            run_of_row(a + k, depth, row, &sum);
            row += sizeof(struct sdx_nbits_fact) + DIGITS * RUN;
        }
    }
}

/* ---- sums ---- */

typedef vi digit_sums[DIGITS][NBITS_ROWS][2];
SIMD void digit_word(const int bits, const int digits, const int mr, const uint8_t *a,
                     int64_t row_bytes, const uint32_t *word, digit_sums s)
{
    const int halves = bits == 4 ? 2 : 1;
    SDX_UNROLL(2) for (int i = 0; i < halves; i++)
    {
        vi w[2];
        P_KEEP(word); /* loaded anew for each half */
        NBITS_PAIR w[j] = vi_load(word + j * LANES);
        if (bits == 4) NBITS_PAIR w[j] = nbits_whole_run(4, i, w[j]);
        NBITS_ROW DIGIT
        {
            vi q = nbits_four_bytes(a + r * row_bytes + 4 * i + RUN * d);
            V_KEEP(q);
            NBITS_PAIR
            {
                s[d][r][j] =
                    (vi)_mm512_dpbusd_epi32((__m512i)s[d][r][j], (__m512i)w[j], (__m512i)q);
                V_KEEP(s[d][r][j]);
            }
        }
    }
}
SIMD vi whole_sum(const int digits, vi low, vi middle, vi high)
{
    if (digits == 1) return low;
    return vi_add(low, (vi)(((vu)middle << 8) + ((vu)high << 16)));
}
/* Rows i .. i + mr of panel p. One digit: whole products, whose runs are whole blocks. c stays in
 * memory, as s needs the registers. */
SIMD void digit_panel(const int bits, const int digits, const int mr, const struct sdx_nbits_job *g,
                      int64_t i, int64_t p)
{
    const struct sdx_nbits *w = g->w;
    const int64_t each = 32 / bits;
    const uint32_t *from = g->packed + p * g->panel_step;
    const uint8_t *a = g->rows + i * g->row_bytes, *facts = a;
    const int64_t run = digits == 1 ? w->block : RUN;
    vf sums[NBITS_ROWS][2], (*c)[2] = sums;
    NBITS_ROW NBITS_PAIR c[r][j] = v_set1(0.0f);
    for (int64_t k = 0; k < w->k; k += w->block) {
        const float *scale = (const float *)(const void *)from;
        int64_t words = (least(w->block, w->k - k) + each - 1) / each;
        from += NBITS_COLS * (1 + w->has_zeros);
        while (words > 0) {
            int64_t n = least(run / each, words);
            digit_sums s;
            words -= n;
            facts = a;
            a += sizeof(struct sdx_nbits_fact);
            DIGIT NBITS_ROW NBITS_PAIR s[d][r][j] = d ? vi_set1(0) : NBITS_FACT(start);
            SDX_UNROLL(1)
            for (; n > 0; n--, a += each, from += NBITS_COLS) {
                if (mr == 1)
                    nbits_fetch_word(from, g->ahead);
                else
                    NBITS_PAIR _mm_prefetch((const char *)from + PAGE + 64 * j, _MM_HINT_T0);
                digit_word(bits, digits, mr, a, g->row_bytes, from, s);
            }
            if (digits > 1) a = facts + sizeof(struct sdx_nbits_fact) + DIGITS * RUN;
            P_KEEP(c);
            NBITS_PAIR
            {
                const vf of = v_load(scale + j * LANES);
                NBITS_ROW
                {
                    const vi sum = whole_sum(digits, s[0][r][j], s[1][r][j], s[2][r][j]);
                    c[r][j] = v_fma(v_from_int(sum), v_bits(NBITS_FACT(scale)) * of, c[r][j]);
                }
            }
        }
        if (w->has_zeros) NBITS_PAIR
            {
                const vf shift = v_load(scale + NBITS_COLS + j * LANES);
                NBITS_ROW c[r][j] = v_fma(v_bits(NBITS_FACT(sum)), shift, c[r][j]);
            }
    }
    nbits_store_panel(mr, g, i, p * NBITS_COLS, c);
}
#define PANEL(name, bits, digits, mr)                                                              \
    static SDX_NOINLINE void name##_##mr(const struct sdx_nbits_job *g, int64_t i, int64_t p)      \
    {                                                                                              \
        digit_panel(bits, digits, mr, g, i, p);                                                    \
    }
PANEL(digit_panel, 4, 3, 1)
PANEL(digit_panel, 4, 3, 2)
PANEL(digit_panel, 4, 3, 4)
PANEL(byte_panel, 8, 1, 1)
PANEL(byte_panel, 8, 1, 2)
PANEL(byte_panel, 8, 1, 4)
PANEL(whole_panel, 4, 1, 4)
/* Of all rows: panels[r] computes 1 << r. */
typedef void panel_fn(const struct sdx_nbits_job *g, int64_t i, int64_t p);
static void run_panels(const struct sdx_nbits_job *g, panel_fn *const *panels)
{
    for (int64_t p = 0; p * NBITS_COLS < g->width; p++)
        for (int64_t i = 0, left; (left = g->m - i) > 0;) {
            const int r = left >= 4 ? 2 : left >= 2;
            panels[r](g, i, p);
            i += 1 << r;
        }
}
static void digit_run(const struct sdx_nbits_job *g)
{
    static panel_fn *const panels[] = {digit_panel_1, digit_panel_2, digit_panel_4};
    run_panels(g, panels);
}
static void whole_bytes(const struct sdx_nbits_job *g)
{
    static panel_fn *const panels[] = {byte_panel_1, byte_panel_2, byte_panel_4};
    run_panels(g, panels);
}
static void whole_fours(const struct sdx_nbits_job *g)
{
    for (int64_t p = 0; p * NBITS_COLS < g->width; p++)
        for (int64_t i = 0; i + 4 <= g->m; i += 4)
            whole_panel_4(g, i, p);
}

void sdx_nbits_init_avx512vnni(struct sdx_gemm_table *gemm)
{
    gemm->nbits_digit_row = digit_row;
    gemm->nbits_digit_run = digit_run;
    gemm->nbits_whole_fours = whole_fours;
    gemm->nbits_whole_bytes = whole_bytes;
}
