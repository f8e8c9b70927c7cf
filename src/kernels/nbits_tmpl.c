/* SPDX-License-Identifier: Apache-2.0
 * Decoding of nbits.h, once an instruction set. A weight is masked where it stands in its word and
 * converted: that is q * 2^(bits * i), which a scale divided by the same power makes good, exactly.
 * Only the topmost is shifted down, as it would be negative. A word of 2-bit weights is two halves
 * of eight. */
#include "kernels/tables.h"
#include "kernels/vec_math.h"

enum { COLS = 2 * LANES, PLACES_MAX = 8 };
#define PAIR       SDX_UNROLL(2) for (int j = 0; j < 2; j++)
#define PLACES     SDX_UNROLL(8) for (int i = 0; i < places_of(bits); i++)
#define HALVES     for (int half = 0; half < (bits == 2 ? 2 : 1); half++)
#define NEXT(word) (vi)((vu)(word) >> 16) /* the upper half, when there are two */
SIMD int places_of(const int bits)
{
    return bits == 8 ? 4 : PLACES_MAX;
}

/* The scales of one block for each place in a word or half, and its shifts. */
struct block {
    vf scale[PLACES_MAX][2], shift[2];
};
SIMD bool is_top(const int bits, const int i)
{
    return i == 32 / bits - 1;
}
SIMD void block_load(struct block *b, const int bits, bool has_zeros, const uint32_t *from)
{
    PAIR
    {
        vf s = v_load((const float *)(const void *)from + j * LANES);
        b->shift[j] = has_zeros ? v_load((const float *)(const void *)from + COLS + j * LANES)
                                : s * v_set1(-(float)(1 << (bits - 1)));
        PLACES
        {
            b->scale[i][j] = is_top(bits, i) ? b->scale[0][j] : s;
            s *= v_set1(1.0f / (float)(1 << bits));
        }
    }
}
SIMD vf decode(const int bits, const int i, vi word, vf scale, vf shift)
{
    const uint32_t mask = (1u << bits) - 1;
    vi q = is_top(bits, i) ? (vi)((vu)word >> (32 - bits))
                           : word & vi_set1((int32_t)(mask << (i * bits)));
    return v_fma(v_from_int(q), scale, shift);
}
/* The lowest weight of a word, which leaves it: where loops over a part of a word are not worth
 * the code of each place. The same values. */
SIMD vf decode_next(const int bits, vu *word, vf scale, vf shift)
{
    vf q = v_from_int((vi)*word & vi_set1((1 << bits) - 1));
    *word >>= bits;
    return v_fma(q, scale, shift);
}

/* ---- a panel to floats ---- */

SIMD void decode_panel(const int bits, const struct sdx_nbits *w, const uint32_t *from, int64_t k0,
                       int64_t k1, float *to)
{
    const int each = 32 / bits;
    const int64_t head = COLS * (1 + w->has_zeros), step = head + w->block / each * COLS;
    for (int64_t k = k0; k < k1;) {
        const int64_t g = k / w->block, end = (g + 1) * w->block < k1 ? (g + 1) * w->block : k1;
        const uint32_t *word = from + g * step + head + (k - g * w->block) / each * COLS;
        struct block b;
        block_load(&b, bits, w->has_zeros, from + g * step);
        for (; k + each <= end; k += each, word += COLS) {
            vi x[2];
            PAIR x[j] = vi_load(word + j * LANES);
            HALVES
            {
                PLACES PAIR v_store(to + i * COLS + j * LANES,
                                    decode(bits, i, x[j], b.scale[i][j], b.shift[j]));
                PAIR x[j] = NEXT(x[j]);
                to += places_of(bits) * COLS;
            }
        }
        if (k < end) /* the last word of K */
            PAIR
            {
                vu rest = (vu)vi_load(word + j * LANES);
                SDX_UNROLL(1)
                for (int64_t i = 0; i < end - k; i++)
                    v_store(to + i * COLS + j * LANES,
                            decode_next(bits, &rest, b.scale[0][j], b.shift[j]));
            }
        k = end;
    }
}
static void nbits_decode(const struct sdx_nbits *w, const uint32_t *from, int64_t k0, int64_t k1,
                         float *to)
{
    if (w->bits == 2)
        decode_panel(2, w, from, k0, k1, to);
    else if (w->bits == 4)
        decode_panel(4, w, from, k0, k1, to);
    else
        decode_panel(8, w, from, k0, k1, to);
}

/* ---- few rows ---- */

enum { ROWS = SDX_NBITS_THIN, STREAMS = 2 };
typedef vf sums[STREAMS][ROWS][2];
#define STREAM SDX_UNROLL(2) for (int q = 0; q < streams; q++)
#define ROW    SDX_UNROLL(4) for (int r = 0; r < mr; r++)

/* `count` whole words of K. */
SIMD void thin_words(const int bits, const int mr, const int streams, const struct block *b,
                     const float *a, int64_t row_a, const uint32_t *word, int64_t apart,
                     int64_t count, sums s)
{
    const bool again = bits == 8 && mr > 1 && streams > 1; /* words would take sums' registers */
    for (; count > 0; count--, word += COLS) {
        vi x[STREAMS][2];
        if (again) {
            PLACES
            {
                P_KEEP(word);
                STREAM PAIR
                {
                    const vi bits_of = vi_load(word + q * apart + j * LANES);
                    vf w = decode(bits, i, bits_of, b[q].scale[i][j], b[q].shift[j]);
                    ROW s[q][r][j] = v_fma(v_set1(a[i + r * row_a]), w, s[q][r][j]);
                }
            }
            a += places_of(bits);
            continue;
        }
        STREAM PAIR x[q][j] = vi_load(word + q * apart + j * LANES);
        HALVES
        {
            PLACES STREAM PAIR
            {
                vf w = decode(bits, i, x[q][j], b[q].scale[i][j], b[q].shift[j]);
                ROW s[q][r][j] = v_fma(v_set1(a[i + r * row_a]), w, s[q][r][j]);
            }
            STREAM PAIR x[q][j] = NEXT(x[q][j]);
            a += places_of(bits);
        }
    }
}
/* The first `count` weights of a word. */
SIMD void thin_rest(const int bits, const int mr, const int streams, const struct block *b,
                    const float *a, int64_t row_a, const uint32_t *word, int64_t apart,
                    int64_t count, sums s)
{
    vu x[STREAMS][2];
    STREAM PAIR x[q][j] = (vu)vi_load(word + q * apart + j * LANES);
    SDX_UNROLL(1)
    for (int64_t i = 0; i < count; i++) {
        STREAM PAIR
        {
            vf w = decode_next(bits, &x[q][j], b[q].scale[0][j], b[q].shift[j]);
            ROW s[q][r][j] = v_fma(v_set1(a[i + r * row_a]), w, s[q][r][j]);
        }
    }
}
/* The n columns of the last panel from s, through the epilogue. */
static SDX_NOINLINE void thin_store(const struct sdx_nbits_job *g, int64_t column, int64_t n,
                                    const float *s)
{
    const struct sdx_epilogue *e = g->epilogue;
    for (int64_t r = 0; r < g->m; r++)
        for (int64_t j = 0; j < n; j++) {
            const float bias = e->bias_col ? e->bias_col[column + j] : 0.0f;
            g->c[r * g->row_c + column + j] = s[r * COLS + j] + bias;
        }
}
/* `streams` panels, half of the range apart, from panel p on. */
SIMD void thin_panels(const int bits, const int mr, const int streams,
                      const struct sdx_nbits_job *g, int64_t p, int64_t half)
{
    const struct sdx_nbits *w = g->w;
    const int each = 32 / bits;
    const uint32_t *from = g->packed + p * g->panel_step;
    const int64_t apart = half * g->panel_step, head = COLS * (1 + w->has_zeros);
    sums s;
    STREAM ROW PAIR s[q][r][j] = v_set1(0.0f);
    for (int64_t k = 0; k < w->k; k += w->block) {
        const int64_t depth = w->k - k < w->block ? w->k - k : w->block, whole = depth / each;
        struct block b[STREAMS];
        STREAM block_load(&b[q], bits, w->has_zeros, from + q * apart);
        from += head;
        thin_words(bits, mr, streams, b, g->a + k, g->row_a, from, apart, whole, s);
        from += whole * COLS;
        if (depth % each)
            thin_rest(bits, mr, streams, b, g->a + k + whole * each, g->row_a, from, apart,
                      depth % each, s);
    }
    STREAM
    {
        float out[ROWS * COLS];
        const int64_t column = (p + q * half) * COLS, n = g->width - column;
        const float *bias = g->epilogue->bias_col;
        if (n >= COLS) {
            float *c = g->c + column;
            PAIR
            {
                const vf shift = bias ? v_load(bias + column + j * LANES) : v_set1(0.0f);
                ROW v_store(c + r * g->row_c + j * LANES, s[q][r][j] + shift);
            }
            continue;
        }
        ROW PAIR v_store(out + r * COLS + j * LANES, s[q][r][j]);
        thin_store(g, column, n, out);
    }
}
#define THIN(bits, mr, streams)                                                                    \
    static void thin_##bits##_##mr(const struct sdx_nbits_job *g)                                  \
    {                                                                                              \
        const int64_t panels = (g->width + COLS - 1) / COLS, half = panels / (streams);            \
        for (int64_t p = 0; p < half; p++)                                                         \
            thin_panels(bits, mr, streams, g, p, half);                                            \
        for (int64_t p = half * (streams); p < panels; p++)                                        \
            thin_panels(bits, mr, 1, g, p, 0);                                                     \
    }
#define THIN_BITS(bits, two) THIN(bits, 1, 2) THIN(bits, 2, two) THIN(bits, 3, 1) THIN(bits, 4, 1)
THIN_BITS(2, 2)
THIN_BITS(4, 1) /* not memory, but the chains of sums are what takes the time */
THIN_BITS(8, 2)
static void nbits_thin(const struct sdx_nbits_job *g)
{
    static void (*const run[3][ROWS])(const struct sdx_nbits_job *g) = {
        {thin_2_1, thin_2_2, thin_2_3, thin_2_4},
        {thin_4_1, thin_4_2, thin_4_3, thin_4_4},
        {thin_8_1, thin_8_2, thin_8_3, thin_8_4}};
    run[g->w->bits == 2 ? 0 : g->w->bits == 4 ? 1 : 2][g->m - 1](g);
}

void SDX_INIT(sdx_nbits_init_)(struct sdx_gemm_table *gemm)
{
    gemm->nbits_decode = nbits_decode;
    gemm->nbits_thin = nbits_thin;
}
