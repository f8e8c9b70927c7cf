/* SPDX-License-Identifier: Apache-2.0
 * Products of nbits.h, once an instruction set. For floats a weight of 2 or 4 bits is masked where
 * it stands in its word and converted: that is q * 2^(bits * i), which numbers of A divided by the
 * same power make good, exactly. The mask of the topmost leaves the sign bit, so that one is less
 * its middle; the others' middles are in the number that a sum starts from. Weights of 8 bits are
 * less their middle.
 *
 * In whole products masks part a word into runs of bytes or shorts, which meet as many numbers of A
 * as neighbours of 32 bits that are the same for all columns. */
#include "kernels/nbits_panel.h"

/* Panels that one row and two rows of floats are computed of at a time, by measurement: on Zen 3,
 * where about twelve sums hide what an FMA takes, and on Zen 5, whose memory gives more from fewer
 * places. There weights of less than 8 bits are fetched too. */
#ifdef SDX_SET_AVX512
enum { PANELS_1 = 2, PANELS_2 = 3, FETCHED_BITS = 2 };
#else
enum { PANELS_1 = 6, PANELS_2 = 3, FETCHED_BITS = 8 };
#endif
enum { STREAMS = PANELS_1 > PANELS_2 ? PANELS_1 : PANELS_2 };
#define STREAM SDX_UNROLL(6) for (int q = 0; q < streams; q++)

SIMD int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---- floats: rows ---- */

/* What numbers k, k + RUN ... of a block are multiplied by, and what each adds to the start of its
 * run: less the middle of its weight, where that is not signed. */
enum { RUN = SDX_NBITS_RUN };
struct places {
    float scale[RUN], start[RUN];
};
static void places_fill(struct places *p, int bits)
{
    const int each = 32 / bits;
    float scale = 1.0f;
    for (int i = 0; i < RUN; i++) {
        if (i % each == 0) scale = 1.0f;
        p->scale[i] = scale;
        p->start[i] = bits == 8 || i % each == each - 1 ? 0.0f : -(float)(1 << (bits - 1));
        if (bits < 8) scale /= (float)(1 << bits);
    }
}
SIMD float total(vf v)
{
    float lanes[LANES], sum = 0;
    v_store(lanes, v);
    for (int i = 0; i < LANES; i++)
        sum += lanes[i];
    return sum;
}
static void float_row(const struct sdx_nbits *w, const float *a, float *row)
{
    const int64_t each = 32 / w->bits;
    struct places p;
    places_fill(&p, w->bits);
    for (int64_t k = 0; k < w->k;) {
        const int64_t end = least(k + w->block, w->k);
        float *sum = row++, rest[RUN] = {0};
        *sum = 0;
        for (int64_t depth; k < end; k += depth) {
            vf all = v_set1(0.0f), start = all;
            const float *from = a + k;
            float *to = row + 1;
            depth = least(RUN, end - k);
            if (depth < RUN) from = to = memcpy(rest, from, (size_t)depth * sizeof *rest);
            for (int i = 0; i < RUN; i += LANES) {
                const vf x = v_load(from + i);
                all += x;
                start += x * v_load(p.start + i);
                v_store(to + i, x * v_load(p.scale + i));
            }
            *sum += total(all);
            *row++ = total(start);
            const int64_t whole = (depth + each - 1) / each * each;
            if (depth < RUN) memcpy(row, rest, (size_t)whole * sizeof *rest);
            row += whole;
        }
    }
}

/* ---- floats: sums ---- */

static const uint32_t masks[2][16] = {
    {0x3u, 0x3u << 2, 0x3u << 4, 0x3u << 6, 0x3u << 8, 0x3u << 10, 0x3u << 12, 0x3u << 14,
     0x3u << 16, 0x3u << 18, 0x3u << 20, 0x3u << 22, 0x3u << 24, 0x3u << 26, 0x3u << 28,
     0x3u << 30},
    {0xfu, 0xfu << 4, 0xfu << 8, 0xfu << 12, 0xfu << 16, 0xfu << 20, 0xfu << 24, 0xfu << 28}};

typedef vf float_sums[STREAMS][NBITS_ROWS][2];

/* Weights i of the words of vector j of the columns, as they stand there. */
SIMD vf float_weights(const int bits, const uint32_t *word, int i, int j, vi mask)
{
    if (bits == 8) return v_load_i8((const int8_t *)word + i * NBITS_COLS + j * LANES);
    return v_from_int(vi_load(word + j * LANES) & mask);
}
SIMD int places_of(const int bits)
{
    return bits == 8 ? 4 : 8;
}
/* Adds up to eight weights of a word of each column to s, of place `from` on: sums, numbers of A, a
 * mask and one vector of weights fill 16 registers. */
SIMD void float_places(const int bits, const int mr, const int streams, int from, const float *a,
                       int64_t row_a, const uint32_t *word, int64_t apart, float_sums s)
{
    const float *row[NBITS_ROWS];
    const uint32_t *words[STREAMS], *mask_of = masks[bits == 4] + from;
    P_KEEP(mask_of);
    NBITS_ROW
    {
        row[r] = r ? row[r - 1] + row_a : a + from;
        P_KEEP(row[r]);
    }
    STREAM words[q] = q ? words[q - 1] + apart : word;
    SDX_UNROLL(8) for (int i = 0; i < places_of(bits); i++)
    {
        vf x[NBITS_ROWS];
        vi mask = vi_set1((int32_t)mask_of[i]);
        if (bits < 8) V_KEEP(mask);
        STREAM P_KEEP(words[q]); /* loaded anew for each place */
        NBITS_ROW
        {
            x[r] = v_set1(row[r][i]);
            V_KEEP(x[r]);
        }
        STREAM NBITS_PAIR
        {
            vf w = float_weights(bits, words[q], i, j, mask);
            V_KEEP(w);
            NBITS_ROW
            {
                s[q][r][j] = v_fma(x[r], w, s[q][r][j]);
                V_KEEP(s[q][r][j]);
            }
        }
    }
}
/* Rows i .. i + mr of panels p, p + step and so on. c stays in memory, as s needs the registers. */
SIMD void float_panels(const int bits, const int mr, const int streams,
                       const struct sdx_nbits_job *g, int64_t i, int64_t p, int64_t step)
{
    const struct sdx_nbits *w = g->w;
    const int each = 32 / bits;
    const int64_t apart = step * g->panel_step, row_a = g->row_bytes / 4;
    const uint32_t *from = g->packed + p * g->panel_step;
    const float *a = (const float *)(const void *)(g->rows + i * g->row_bytes);
    float_sums sums, s;
    vf(*c)[NBITS_ROWS][2] = sums;
    STREAM NBITS_ROW NBITS_PAIR c[q][r][j] = v_set1(0.0f);
    for (int64_t k = 0; k < w->k; k += w->block) {
        const float *sum = a++, *scale = (const float *)(const void *)from;
        int64_t words = (least(w->block, w->k - k) + each - 1) / each;
        from += NBITS_COLS * (1 + w->has_zeros);
        while (words > 0) {
            const int64_t n = least(RUN / each, words);
            words -= n;
            STREAM NBITS_ROW NBITS_PAIR s[q][r][j] = v_set1(a[r * row_a]);
            a++;
            SDX_UNROLL(1)
            for (const float *const end = a + n * each; a < end; a += each, from += NBITS_COLS) {
                if (bits >= FETCHED_BITS) STREAM nbits_fetch_word(from + q * apart, g->ahead);
                SDX_UNROLL(1)
                for (int at = 0; at < each; at += 8) {
                    if (bits == 2) P_KEEP(at); /* or both times are code */
                    float_places(bits, mr, streams, at, a, row_a, from, apart, s);
                }
            }
            P_KEEP(c);
            STREAM NBITS_PAIR
            {
                const vf of = v_load(scale + q * apart + j * LANES);
                NBITS_ROW c[q][r][j] = v_fma(of, s[q][r][j], c[q][r][j]);
            }
        }
        if (w->has_zeros) STREAM NBITS_PAIR
            {
                const vf shift = v_load(scale + q * apart + NBITS_COLS + j * LANES);
                NBITS_ROW c[q][r][j] = v_fma(v_set1(sum[r * row_a]), shift, c[q][r][j]);
            }
    }
    SDX_UNROLL(1)
    for (int q = 0; q < streams; q++)
        nbits_store_panel(mr, g, i, (p + q * step) * NBITS_COLS, c[q]);
}
#define PANELS(name, bits, mr, streams)                                                            \
    static SDX_NOINLINE void name##_##bits##_##mr(const struct sdx_nbits_job *g, int64_t i,        \
                                                  int64_t p, int64_t step)                         \
    {                                                                                              \
        float_panels(bits, mr, streams, g, i, p, step);                                            \
    }
#ifdef SDX_SMALL_SET
#define SPREADS(bits)
#define SPREAD(bits, mr, streams)                                                                  \
    for (p = 0; p < panels; p++)                                                                   \
        float_single_##bits##_##mr(g, i, p, 0);
#else
#define SPREADS(bits)                                                                              \
    PANELS(float_spread, bits, 1, PANELS_1)                                                        \
    PANELS(float_spread, bits, 2, PANELS_2)
/* Panels that are computed together lie far apart, as memory gives more from several places. */
#define SPREAD(bits, mr, streams)                                                                  \
    for (p = 0; p < panels / (streams); p++)                                                       \
        float_spread_##bits##_##mr(g, i, p, panels / (streams));                                   \
    for (p *= (streams); p < panels; p++)                                                          \
        float_single_##bits##_##mr(g, i, p, 0);
#endif
/* Many rows: some blocks of a panel are decoded once, in the first cache, and tiles of rows take
 * them from there. The same products and sums in the same order. */
enum { TILE = 6, TILED = SDX_NBITS_TILED, CHUNK = SDX_NBITS_CHUNK };
struct float_chunk {
    int64_t k0, k1;     /* whole blocks, or up to the end */
    const float *facts; /* scales and shifts of the first block */
    int64_t apart;      /* from block to block, in floats */
    _Alignas(64) float weights[CHUNK * NBITS_COLS];
};
/* Weights as they stand in their words, those of one k of all columns side by side. */
SIMD void float_decode(const int bits, const uint32_t *word, int64_t words, int64_t ahead,
                       float *to)
{
    const int each = 32 / bits;
    SDX_UNROLL(1)
    for (; words > 0; words--, word += NBITS_COLS) {
        nbits_fetch_word(word, ahead);
        SDX_UNROLL(1)
        for (int i = 0; i < each; i++, to += NBITS_COLS) {
            const vi mask = vi_set1((int32_t)masks[bits == 4][i]);
            NBITS_PAIR v_store(to + j * LANES, float_weights(bits, word, i, j, mask));
        }
    }
}
/* Decodes the chunk that begins at k0, at `from`; returns where the next one lies. */
SIMD const uint32_t *float_open_chunk(const int bits, const struct sdx_nbits_job *g, int64_t k0,
                                      const uint32_t *from, struct float_chunk *c)
{
    const struct sdx_nbits *w = g->w;
    const int each = 32 / bits;
    const int64_t facts = NBITS_COLS * (1 + w->has_zeros);
    float *to = c->weights;
    c->k0 = k0;
    c->k1 = least(w->k, k0 + CHUNK / w->block * w->block);
    c->facts = (const float *)(const void *)from;
    c->apart = facts + w->block / each * NBITS_COLS;
    for (int64_t k = k0; k < c->k1; k += w->block) {
        const int64_t words = (least(w->block, c->k1 - k) + each - 1) / each;
        float_decode(bits, from + facts, words, g->ahead, to);
        to += words * each * NBITS_COLS;
        from += facts + words * NBITS_COLS;
    }
    return from;
}
/* Adds the chunk to sums of mr rows, which begin at k0; returns how far these go. */
static SDX_NOINLINE int64_t float_tile(const struct sdx_nbits_job *g, const struct float_chunk *ch,
                                       const float *rows, float *sums)
{
    enum { mr = TILE, STEPS = 4 };
    const struct sdx_nbits *w = g->w;
    const int64_t each = 32 / w->bits, row_a = g->row_bytes / 4, block = w->block;
    const float *a = rows, *b = ch->weights, *facts = ch->facts;
    for (int64_t left = ch->k1 - ch->k0; left > 0; left -= block, facts += ch->apart) {
        const float *sum = a++;
        for (int64_t whole = (least(block, left) + each - 1) & -each; whole > 0; whole -= RUN) {
            const float *const end = b + least(RUN, whole) * NBITS_COLS, *row[TILE];
            vf s[TILE][2];
            NBITS_ROW
            {
                row[r] = r ? row[r - 1] + row_a : a;
                P_KEEP(row[r]);
                NBITS_PAIR s[r][j] = v_set1(*row[r]);
            }
            SDX_UNROLL(1) for (int64_t k = 1; b < end; k += STEPS, b += STEPS * NBITS_COLS)
            {
                P_KEEP(k);
                SDX_UNROLL(4) for (int u = 0; u < STEPS; u++)
                {
                    vf v[2];
                    NBITS_PAIR
                    {
                        v[j] = v_load(b + u * NBITS_COLS + j * LANES);
                        V_KEEP(v[j]);
                    }
                    NBITS_ROW
                    {
                        const vf x = v_set1(row[r][k + u]);
                        NBITS_PAIR s[r][j] = v_fma(x, v[j], s[r][j]);
                        V_USE(x);
                    }
                    NBITS_PAIR V_USE(v[j]);
                }
            }
            a += 1 + least(RUN, whole);
            float *c = sums;
            P_KEEP(c);
            NBITS_PAIR
            {
                const vf of = v_load(facts + j * LANES);
                NBITS_ROW
                {
                    float *at = c + r * NBITS_COLS + j * LANES;
                    v_store(at, v_fma(of, s[r][j], v_load(at)));
                }
            }
        }
        if (w->has_zeros) NBITS_PAIR
            {
                const vf shift = v_load(facts + NBITS_COLS + j * LANES);
                NBITS_ROW
                {
                    float *at = sums + r * NBITS_COLS + j * LANES;
                    v_store(at, v_fma(v_set1(sum[r * row_a]), shift, v_load(at)));
                }
            }
    }
    return a - rows;
}
/* All tiles of panel p. */
SIMD void float_tiles(const int bits, const struct sdx_nbits_job *g, int64_t p)
{
    const struct sdx_nbits *w = g->w;
    const uint32_t *from = g->packed + p * g->panel_step;
    _Alignas(64) float sums[TILED * NBITS_COLS];
    struct float_chunk chunk;
    const int64_t tiles = g->m / TILE, column = p * NBITS_COLS;
    int64_t at = 0, next = 0;
    memset(sums, 0, (size_t)(tiles * TILE * NBITS_COLS) * sizeof *sums);
    for (int64_t k = 0; k < w->k; k = chunk.k1, at = next) {
        from = float_open_chunk(bits, g, k, from, &chunk);
        for (int64_t i = 0; i < tiles * TILE; i += TILE) {
            const uint8_t *rows = g->rows + i * g->row_bytes;
            next = at + float_tile(g, &chunk, (const float *)(const void *)rows + at,
                                   sums + i * NBITS_COLS);
        }
    }
    for (int64_t i = 0; i < tiles * TILE; i++) {
        vf out[1][2];
        NBITS_PAIR out[0][j] = v_load(sums + i * NBITS_COLS + j * LANES);
        nbits_store_panel(1, g, i, column, out);
    }
}
#define FLOATS(bits)                                                                               \
    PANELS(float_single, bits, 1, 1)                                                               \
    PANELS(float_single, bits, 2, 1)                                                               \
    PANELS(float_single, bits, 4, 1)                                                               \
    SPREADS(bits)                                                                                  \
    static void floats_##bits(const struct sdx_nbits_job *g)                                       \
    {                                                                                              \
        const int64_t panels = (g->width + NBITS_COLS - 1) / NBITS_COLS;                           \
        const bool is_tiled = g->m >= 4 * TILE && g->w->block <= CHUNK;                            \
        int64_t i = is_tiled ? g->m / TILE * TILE : 0, p;                                          \
        const int64_t first = i, fours = i + (g->m - i) / 4 * 4;                                   \
        for (p = 0; p < panels; p++) {                                                             \
            if (is_tiled) float_tiles(bits, g, p);                                                 \
            for (i = first; i < fours; i += 4)                                                     \
                float_single_##bits##_4(g, i, p, 0);                                               \
        }                                                                                          \
        i = fours;                                                                                 \
        if (g->m - i >= 2) {                                                                       \
            SPREAD(bits, 2, PANELS_2)                                                              \
            i += 2;                                                                                \
        }                                                                                          \
        if (i < g->m) {                                                                            \
            SPREAD(bits, 1, PANELS_1)                                                              \
        }                                                                                          \
    }
FLOATS(2)
FLOATS(4)
FLOATS(8)

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
    fact->start = size == 2 ? 0 : -total * (1 << (bits - 1));
}
/* The bytes of `depth` numbers, a multiple of a word's, and what stands before them. */
SIMD int64_t whole_step(const int size, int64_t depth)
{
    return (int64_t)sizeof(struct sdx_nbits_fact) + depth * size;
}
SIMD void whole_row(const int size, const struct sdx_nbits *w, const float *a, uint8_t *row)
{
    for (int64_t k = 0; k < w->k; k += w->block, row += whole_step(size, w->block))
        whole_block(size, w->bits, a + k, least(w->block, w->k - k), row);
}

/* ---- whole products: sums ---- */

/* Words whose sums stay exact in 16 bits: 16 products of 4 bits or 64 of 2 bits in each. Sums of 8
 * bits are 256 times too large, in 32 bits. */
SIMD int whole_chunk(const int bits)
{
    return bits == 8 ? 64 : bits == 4 ? 4 : 8;
}
SIMD int whole_runs(const int bits)
{
    return bits == 2 ? 4 : 2;
}
typedef vi whole_sums[NBITS_ROWS][2];
SIMD void whole_word(const int bits, const int mr, const uint8_t *a, int64_t row_bytes,
                     const uint32_t *word, int64_t ahead, whole_sums part)
{
    vi x[2], y[2];
    NBITS_PAIR x[j] = vi_load(word + j * LANES);
    nbits_fetch_word(word, ahead);
    SDX_UNROLL(4) for (int i = 0; i < whole_runs(bits); i++)
    {
        NBITS_PAIR y[j] = nbits_whole_run(bits, i, x[j]);
        NBITS_ROW
        {
            const vi q = nbits_four_bytes(a + r * row_bytes + 4 * i);
            NBITS_PAIR
            {
                part[r][j] =
                    bits == 8 ? vi_dot16(part[r][j], q, y[j]) : vi_dot8(part[r][j], y[j], q);
                V_KEEP(part[r][j]);
            }
        }
    }
}
/* Adds `count` words to s. */
SIMD void whole_words(const int bits, const int mr, const struct sdx_nbits_job *g, const uint8_t *a,
                      const uint32_t *word, int64_t count, whole_sums s)
{
    while (count > 0) {
        int64_t n = least(whole_chunk(bits), count);
        whole_sums part;
        count -= n;
        NBITS_ROW NBITS_PAIR part[r][j] = vi_set1(0);
        SDX_UNROLL(1)
        for (; n > 0; n--, a += 4 * whole_runs(bits), word += NBITS_COLS)
            whole_word(bits, mr, a, g->row_bytes, word, g->ahead, part);
        NBITS_ROW NBITS_PAIR s[r][j] = bits == 8
                                           ? vi_add(s[r][j], part[r][j] >> 8)
                                           : vi_dot16(s[r][j], part[r][j], vi_set1(0x00010001));
    }
}
/* Rows i .. i + mr of panel p. */
SIMD void whole_panel(const int bits, const int mr, const struct sdx_nbits_job *g, int64_t i,
                      int64_t p)
{
    const struct sdx_nbits *w = g->w;
    const int each = 32 / bits;
    const uint32_t *from = g->packed + p * g->panel_step;
    const uint8_t *a = g->rows + i * g->row_bytes;
    vf s[NBITS_ROWS][2];
    NBITS_ROW NBITS_PAIR s[r][j] = v_set1(0.0f);
    for (int64_t k = 0; k < w->k; k += w->block, a += whole_step(bits == 8 ? 2 : 1, w->block)) {
        const int64_t depth = least(w->block, w->k - k);
        const int64_t words = (depth + each - 1) / each;
        const float *scale = (const float *)(const void *)from;
        const uint8_t *facts = a;
        whole_sums sum;
        from += NBITS_COLS * (1 + w->has_zeros);
        NBITS_ROW NBITS_PAIR sum[r][j] = NBITS_FACT(start);
        whole_words(bits, mr, g, a + sizeof(struct sdx_nbits_fact), from, words, sum);
        from += words * NBITS_COLS;
        NBITS_ROW NBITS_PAIR
        {
            s[r][j] = v_fma(v_from_int(sum[r][j]),
                            v_bits(NBITS_FACT(scale)) * v_load(scale + j * LANES), s[r][j]);
            if (w->has_zeros)
                s[r][j] =
                    v_fma(v_bits(NBITS_FACT(sum)), v_load(scale + NBITS_COLS + j * LANES), s[r][j]);
        }
    }
    nbits_store_panel(mr, g, i, p * NBITS_COLS, s);
}
/* Four rows at a time are 5 % faster, which is not worth their code. */
#define WHOLE(bits)                                                                                \
    static void whole_##bits(const struct sdx_nbits_job *g)                                        \
    {                                                                                              \
        for (int64_t p = 0; p * NBITS_COLS < g->width; p++) {                                      \
            int64_t i = 0;                                                                         \
            for (; i + 2 <= g->m; i += 2)                                                          \
                whole_panel(bits, 2, g, i, p);                                                     \
            if (i < g->m) whole_panel(bits, 1, g, i, p);                                           \
        }                                                                                          \
    }
WHOLE(2)
WHOLE(4)
WHOLE(8)

/* ---- both ---- */

static void nbits_row(const struct sdx_nbits *w, int size, const float *a, void *row)
{
    if (!w->whole)
        float_row(w, a, row);
    else if (size == 2)
        whole_row(2, w, a, row);
    else
        whole_row(1, w, a, row);
}
static void nbits_run(const struct sdx_nbits_job *g)
{
    static void (*const run[2][3])(const struct sdx_nbits_job *g) = {{floats_2, floats_4, floats_8},
                                                                     {whole_2, whole_4, whole_8}};
    run[g->w->whole][g->w->bits == 2 ? 0 : g->w->bits == 4 ? 1 : 2](g);
}

void SDX_INIT(sdx_nbits_init_)(struct sdx_gemm_table *gemm)
{
    gemm->nbits_panels[0] = PANELS_1;
    gemm->nbits_panels[1] = PANELS_2;
    gemm->nbits_row = nbits_row;
    gemm->nbits_run = nbits_run;
}
