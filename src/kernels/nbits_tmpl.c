/* SPDX-License-Identifier: Apache-2.0
 * Products of nbits.h, once an instruction set. For floats a weight is masked where it stands in
 * its word and converted: that is q * 2^(bits * i), which a scale divided by the same power makes
 * good, exactly. Only the topmost is shifted down, as it would be negative. A word of 2-bit weights
 * is two halves of eight.
 *
 * In whole products masks part a word into runs of bytes or shorts, which meet as many numbers of A
 * as neighbours of 32 bits that are the same for all columns. */
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

/* ---- sums to C ---- */

enum { ROWS = SDX_NBITS_THIN };
#define ROW SDX_UNROLL(4) for (int r = 0; r < mr; r++)

/* The n columns of the last panel, of rows i .. i + mr. */
static SDX_NOINLINE void store_part(int mr, const struct sdx_nbits_job *g, int64_t i,
                                    int64_t column, int64_t n, const float *s)
{
    for (int64_t r = 0; r < mr; r++)
        for (int64_t j = 0; j < n; j++) {
            const float bias = g->bias ? g->bias[column + j] : 0.0f;
            g->c[(i + r) * g->row_c + column + j] = s[r * COLS + j] + bias;
        }
}
SIMD void store_panel(const int mr, const struct sdx_nbits_job *g, int64_t i, int64_t column,
                      vf (*s)[2])
{
    float out[ROWS * COLS], *c = g->c + i * g->row_c + column;
    if (g->width - column >= COLS) {
        PAIR
        {
            const vf bias = g->bias ? v_load(g->bias + column + j * LANES) : v_set1(0.0f);
            ROW v_store(c + r * g->row_c + j * LANES, s[r][j] + bias);
        }
        return;
    }
    ROW PAIR v_store(out + r * COLS + j * LANES, s[r][j]);
    store_part(mr, g, i, column, g->width - column, out);
}

/* ---- few rows ---- */

enum { STREAMS = 2 };
typedef vf sums[STREAMS][ROWS][2];
#define STREAM SDX_UNROLL(2) for (int q = 0; q < streams; q++)

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
    STREAM store_panel(mr, g, 0, (p + q * half) * COLS, s[q]);
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
/* Of 2 and 4 bits not memory, but the operations are what takes the time. */
THIN_BITS(2, 1)
THIN_BITS(4, 1)
THIN_BITS(8, 2)
static void nbits_thin(const struct sdx_nbits_job *g)
{
    static void (*const run[3][ROWS])(const struct sdx_nbits_job *g) = {
        {thin_2_1, thin_2_2, thin_2_3, thin_2_4},
        {thin_4_1, thin_4_2, thin_4_3, thin_4_4},
        {thin_8_1, thin_8_2, thin_8_3, thin_8_4}};
    run[g->w->bits == 2 ? 0 : g->w->bits == 4 ? 1 : 2][g->m - 1](g);
}

/* ---- whole products: rows ---- */

/* LANES numbers of x / divisor, to `size` bytes each. */
SIMD vi whole_lanes(const int size, vf x, vf divisor, void *to)
{
    const vf most = v_set1(127.0f), round = v_set1(12582912.0f); /* 1.5 * 2^23 */
    typedef int8_t bytes __attribute__((vector_size(LANES)));
    typedef int16_t shorts __attribute__((vector_size(2 * LANES)));
    x = v_min(v_max(x / divisor, v_neg(most)), most); /* NaN: -127 */
    const vi q = vi_sub(vi_bits(x + round), vi_bits(round));
    const shorts s = __builtin_convertvector(q, shorts);
    const bytes b = __builtin_convertvector(s, bytes); /* by way of shorts: gcc 12 is slow else */
    memcpy(to, size == 2 ? (const void *)&s : &b, (size_t)size * LANES);
    return q;
}
/* `depth` numbers; zeros up to a whole word behind them. */
SIMD void whole_block(const int size, int bits, const float *a, int64_t depth, void *block)
{
    const int64_t whole = depth - depth % LANES, rest = depth - whole;
    struct sdx_nbits_fact *fact = block;
    uint8_t *to = (uint8_t *)(fact + 1), end[2 * LANES];
    float last[LANES] = {0};
    int32_t lanes[LANES], total = 0;
    vi most = vi_set1(0), sum = most; /* of floats' bits, so NaN is the greatest */
    if (rest) {
        memcpy(last, a + whole, (size_t)rest * sizeof *a);
        most = vi_bits(v_abs(v_load(last)));
    }
    for (int64_t k = 0; k < whole; k += LANES) {
        const vi x = vi_bits(v_abs(v_load(a + k)));
        most = vi_bits(v_select(x > most, v_bits(x), v_bits(most)));
    }
    vi_store(lanes, most);
    for (int i = 1; i < LANES; i++)
        if (lanes[i] > lanes[0]) lanes[0] = lanes[i];
    memcpy(&fact->scale, lanes, sizeof fact->scale);
    fact->scale /= 127.0f;
    const vf divisor = v_set1(fact->scale == 0.0f ? 1.0f : fact->scale);
    for (int64_t k = 0; k < whole; k += LANES)
        sum = vi_add(sum, whole_lanes(size, v_load(a + k), divisor, to + k * size));
    if (rest) {
        sum = vi_add(sum, whole_lanes(size, v_load(last), divisor, end));
        memcpy(to + whole * size, end, (size_t)(rest * size));
        memset(to + depth * size, 0, (size_t)(-depth & (32 / bits - 1)) * (size_t)size);
    }
    vi_store(lanes, sum);
    for (int i = 0; i < LANES; i++)
        total += lanes[i];
    fact->sum = fact->scale * (float)total;
    fact->start = bits == 8 ? 0 : -total * (1 << (bits - 1));
}
/* The bytes of `depth` numbers, a multiple of a word's, and what stands before them. */
SIMD int64_t whole_step(const int size, int64_t depth)
{
    return (int64_t)sizeof(struct sdx_nbits_fact) + depth * size;
}
SIMD void whole_row(const int size, const struct sdx_nbits *w, const float *a, uint8_t *row)
{
    for (int64_t k = 0; k < w->k; k += w->block, row += whole_step(size, w->block))
        whole_block(size, w->bits, a + k, w->k - k < w->block ? w->k - k : w->block, row);
}
static void nbits_row(const struct sdx_nbits *w, const float *a, void *row)
{
    if (w->bits == 8)
        whole_row(2, w, a, row);
    else
        whole_row(1, w, a, row);
}

/* ---- whole products: sums ---- */

/* Words whose sums stay exact in 16 bits: 16 products of 4 bits or 64 of 2 bits in each. Sums of 8
 * bits are 256 times too large, in 32 bits. */
SIMD int whole_chunk(const int bits)
{
    return bits == 8 ? 64 : bits == 4 ? 4 : 8;
}
SIMD vi whole_run(const int bits, const int i, vi word)
{
    if (bits == 8) return i ? word & vi_set1((int32_t)0xff00ff00) : vi_shift16_left(word, 8);
    return (vi)((vu)word >> (i * bits)) & vi_set1(0x01010101 * ((1 << bits) - 1));
}
SIMD vi four_bytes(const uint8_t *p)
{
    int32_t x;
    memcpy(&x, p, sizeof x);
    return vi_set1(x);
}
SIMD int whole_runs(const int bits)
{
    return bits == 2 ? 4 : 2;
}
typedef vi whole_sums[ROWS][2];
SIMD void whole_word(const int bits, const int mr, const uint8_t *a, int64_t row_bytes,
                     const uint32_t *word, whole_sums part)
{
    vi x[2], y[2];
    PAIR x[j] = vi_load(word + j * LANES);
    for (int i = 0; i < COLS; i += 16) /* a page ahead, where the processor's own fetching ends */
        V_PREFETCH(word + 1024 + i);
    SDX_UNROLL(4) for (int i = 0; i < whole_runs(bits); i++)
    {
        PAIR y[j] = whole_run(bits, i, x[j]);
        ROW
        {
            const vi q = four_bytes(a + r * row_bytes + 4 * i);
            PAIR
            {
                part[r][j] =
                    bits == 8 ? vi_dot16(part[r][j], q, y[j]) : vi_dot8(part[r][j], y[j], q);
                V_KEEP(part[r][j]);
            }
        }
    }
}
/* Adds `count` words to s. */
SIMD void whole_words(const int bits, const int mr, const uint8_t *a, int64_t row_bytes,
                      const uint32_t *word, int64_t count, whole_sums s)
{
    while (count > 0) {
        int64_t n = count < whole_chunk(bits) ? count : whole_chunk(bits);
        whole_sums part;
        count -= n;
        ROW PAIR part[r][j] = vi_set1(0);
        SDX_UNROLL(1)
        for (; n > 0; n--, a += 4 * whole_runs(bits), word += COLS)
            whole_word(bits, mr, a, row_bytes, word, part);
        ROW PAIR s[r][j] = bits == 8 ? vi_add(s[r][j], part[r][j] >> 8)
                                     : vi_dot16(s[r][j], part[r][j], vi_set1(0x00010001));
    }
}
#define FACT(of) four_bytes(facts + r * g->row_bytes + offsetof(struct sdx_nbits_fact, of))
/* Rows i .. i + mr of panel p. */
SIMD void whole_panel(const int bits, const int mr, const struct sdx_nbits_job *g, int64_t i,
                      int64_t p)
{
    const struct sdx_nbits *w = g->w;
    const int each = 32 / bits;
    const uint32_t *from = g->packed + p * g->panel_step;
    const uint8_t *a = g->rows + i * g->row_bytes;
    vf s[ROWS][2];
    ROW PAIR s[r][j] = v_set1(0.0f);
    for (int64_t k = 0; k < w->k; k += w->block, a += whole_step(bits == 8 ? 2 : 1, w->block)) {
        const int64_t depth = w->k - k < w->block ? w->k - k : w->block;
        const int64_t words = (depth + each - 1) / each;
        const float *scale = (const float *)(const void *)from;
        const uint8_t *facts = a;
        whole_sums sum;
        from += COLS * (1 + w->has_zeros);
        ROW PAIR sum[r][j] = FACT(start);
        whole_words(bits, mr, a + sizeof(struct sdx_nbits_fact), g->row_bytes, from, words, sum);
        from += words * COLS;
        ROW PAIR
        {
            s[r][j] = v_fma(v_from_int(sum[r][j]), v_bits(FACT(scale)) * v_load(scale + j * LANES),
                            s[r][j]);
            if (w->has_zeros)
                s[r][j] = v_fma(v_bits(FACT(sum)), v_load(scale + COLS + j * LANES), s[r][j]);
        }
    }
    store_panel(mr, g, i, p * COLS, s);
}
/* Four rows at a time are 5 % faster, which is not worth their code. */
#define WHOLE(bits)                                                                                \
    static void whole_##bits(const struct sdx_nbits_job *g)                                        \
    {                                                                                              \
        for (int64_t p = 0; p * COLS < g->width; p++) {                                            \
            int64_t i = 0;                                                                         \
            for (; i + 2 <= g->m; i += 2)                                                          \
                whole_panel(bits, 2, g, i, p);                                                     \
            if (i < g->m) whole_panel(bits, 1, g, i, p);                                           \
        }                                                                                          \
    }
WHOLE(2)
WHOLE(4)
WHOLE(8)
static void nbits_whole(const struct sdx_nbits_job *g)
{
    if (g->w->bits == 2)
        whole_2(g);
    else if (g->w->bits == 4)
        whole_4(g);
    else
        whole_8(g);
}

void SDX_INIT(sdx_nbits_init_)(struct sdx_gemm_table *gemm)
{
    gemm->nbits_decode = nbits_decode;
    gemm->nbits_thin = nbits_thin;
    gemm->nbits_row = nbits_row;
    gemm->nbits_whole = nbits_whole;
}
