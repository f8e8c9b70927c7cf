/* SPDX-License-Identifier: Apache-2.0
 * f32 products with the tile registers of AMX, which multiply bytes: a row of A, and a column of B,
 * are whole numbers of 24 bits times a scale, as three digits of base 256 from -128 to 127. Of
 * the nine products of digits the six that reach into 24 bits are summed, exactly, those of equal
 * weight together (Ozaki, Ogita, Oishi, Rump, "Error-free transformations of matrix
 * multiplication", 2012, with whole numbers). A row has the same bits whatever stands beside it.
 * What is not finite is summed anew by FMAs, so that infinity and NaN come out where they belong.
 * Weights of 16 bits become digits panel by panel, of few rows chunk by chunk. */
#define SDX_SET_AVX512 1 /* the set includes it: width of simd.h */
#include "kernels/gemm_tiles.h"
#include "kernels/tables.h"
#include "kernels/transpose.h"
#include "kernels/x86/tiles_amx.h"

enum {
    CHUNK = SDX_TILES_CHUNK, /* of k */
    COLS = SDX_TILES_WIDTH,  /* of a panel */
    TILE = SDX_TILE_ROWS * SDX_TILE_BYTES,
    DIGITS = SDX_TILES_DIGITS,
    CHUNK_A = SDX_TILES_CHUNK_A,
    CHUNK_B = SDX_TILES_CHUNK_B, /* [digit][half of the panel] */
    TALL = 2 * SDX_TILE_ROWS,
    FEW = SDX_TILE_ROWS / DIGITS, /* rows whose digits are rows of one tile */
    LONG = 4,        /* chunks, of which the first cache does not hold two tiles and a panel */
    MOST_AHEAD = 16, /* of a panel that is fetched as a whole */
    SPAN = 8,        /* of others, */
    MANY = 8,        /* and tiles that take it in turn */
    VECTORS = CHUNK / LANES,
    HALF_AHEAD = 4096 /* bytes of 16-bit weights that are fetched before they are used */
};
/* What makes whole numbers of 24 bits of numbers up to `size` (the bits of an absolute value), and
 * what brings products back: NaN when size is not finite. */
struct scale {
    float by, back;
};
/* A power of 2: to less than 2^(bits + 1). */
static struct scale scale_in(uint32_t size, int bits)
{
    const int infinite = 255, least = 29; /* smaller ones count with fewer bits */
    int exponent = (int)(size >> 23);
    if (exponent == infinite) return (struct scale){0.0f, NAN};
    if (exponent < least) exponent = least;
    const int power = bits + 127 - exponent;
    struct scale s;
    const uint32_t by = (uint32_t)(127 + power) << 23, back = (uint32_t)(127 + 16 - power) << 23;
    memcpy(&s.by, &by, sizeof by);
    memcpy(&s.back, &back, sizeof back);
    return s;
}
/* A power of 2 for numbers of 16 bits, so that sums of whole numbers are exact; else times up to 31
 * sixteenths, which makes use of what three digits hold: 127 * 2^16. */
static struct scale scale_of(uint32_t size, bool is_short)
{
    const __m128i mantissa = _mm_cvtsi32_si128((int)((size & 0x7fffff) | 0x3f800000));
    const __m128 x = _mm_castsi128_ps(mantissa), fit = _mm_set_ss(31.7f); /* 31.75 would */
    const __m128 most = _mm_mul_ss(fit, _mm_rcp14_ss(x, x));
    const __m128i kept = _mm_cvtsi32_si128((int)(is_short ? 0xff800000 : 0xfff80000));
    const float parts = _mm_cvtss_f32(_mm_and_ps(most, _mm_castsi128_ps(kept)));
    const struct scale s = scale_in(size, 18);
    return (struct scale){s.by * parts, s.back / parts};
}
/* 64 numbers; those from `left` on are 0. */
SIMD void load_chunk(const float *from, int64_t left, __m512 x[VECTORS])
{
    SDX_UNROLL(4)
    for (int v = 0; v < VECTORS; v++) {
        const int64_t some = left - v * LANES;
        const __mmask16 mask = (__mmask16)(some <= 0      ? 0
                                           : some < LANES ? (1u << some) - 1
                                                          : 0xffff);
        x[v] = _mm512_maskz_loadu_ps(mask, from + v * LANES);
    }
}
/* The larger absolute values, as their bits; NaN is larger than all. */
SIMD __m512i larger(__m512i most, __m512 x)
{
    const __m512i unsigned_bits = _mm512_set1_epi32(0x7fffffff);
    return _mm512_max_epu32(most, _mm512_and_si512(_mm512_castps_si512(x), unsigned_bits));
}
enum { BEYOND_SHORT = 0xff /* bits of a number of more than 16 */ };
/* A row or column, as far as it was seen. */
struct extent {
    __m512i most;
    bool is_short;
};
SIMD struct extent nothing(void)
{
    return (struct extent){_mm512_setzero_si512(), true};
}
SIMD void extend(struct extent *e, __m512 x)
{
    const __m512i beyond = _mm512_set1_epi32(BEYOND_SHORT);
    e->most = larger(e->most, x);
    if (e->is_short) e->is_short = !_mm512_test_epi32_mask(_mm512_castps_si512(x), beyond);
}
SIMD struct scale scale_of_all(const struct extent *e)
{
    return scale_of(_mm512_reduce_max_epu32(e->most), e->is_short);
}
/* Of k numbers. */
static struct extent extent_of(const float *x, int64_t k)
{
    struct extent e = nothing();
    for (int64_t i = 0; i < k; i += CHUNK) {
        __m512 v[VECTORS];
        load_chunk(x + i, k - i, v);
        SDX_UNROLL(4)
        for (int j = 0; j < VECTORS; j++)
            extend(&e, v[j]);
    }
    return e;
}
/* Whole numbers whose bytes are their digits, the lowest first. */
SIMD __m512i with_digits(__m512 x, __m512 by)
{
    const __m512i middle = _mm512_set1_epi32(0x808080);
    return _mm512_xor_si512(_mm512_add_epi32(_mm512_cvtps_epi32(x * by), middle), middle);
}
/* Digit d of 64 numbers to to[d]: of number i of each vector the bytes lie side by side. */
SIMD void gather_digits(const __m512i q[VECTORS], __m512i to[DIGITS])
{
    const __m512i even = _mm512_set1_epi32(0xff00ff), half = _mm512_set1_epi32(0xffff);
    enum { choose = 0xca }; /* bits of the second where the first says so, else of the third */
    /* bytes 0, 2 and 1, 3 of two vectors in turn, then of four */
    const __m512i a02 = _mm512_ternarylogic_epi32(even, q[0], _mm512_slli_epi32(q[1], 8), choose);
    const __m512i a1 = _mm512_ternarylogic_epi32(even, _mm512_srli_epi32(q[0], 8), q[1], choose);
    const __m512i c02 = _mm512_ternarylogic_epi32(even, q[2], _mm512_slli_epi32(q[3], 8), choose);
    const __m512i c1 = _mm512_ternarylogic_epi32(even, _mm512_srli_epi32(q[2], 8), q[3], choose);
    to[0] = _mm512_ternarylogic_epi32(half, _mm512_srli_epi32(a02, 16), c02, choose);
    to[1] = _mm512_ternarylogic_epi32(half, a1, _mm512_slli_epi32(c1, 16), choose);
    to[2] = _mm512_ternarylogic_epi32(half, a02, _mm512_slli_epi32(c02, 16), choose);
}
/* of 64 numbers, `apart` bytes from one digit to the next */
SIMD void digits(const __m512 x[VECTORS], __m512 by, char *to, int64_t apart)
{
    __m512i q[VECTORS], d[DIGITS];
    SDX_UNROLL(4)
    for (int v = 0; v < VECTORS; v++)
        q[v] = with_digits(x[v], by);
    gather_digits(q, d);
    SDX_UNROLL(3)
    for (int i = 0; i < DIGITS; i++)
        _mm512_store_si512(to + i * apart, d[i]);
}

/* Between the digits of a chunk of A. */
SIMD int64_t digits_apart(int64_t height)
{
    return height <= FEW ? height * SDX_TILE_BYTES : TILE;
}
/* [chunk][digit], then the scales of the rows. A row's scale is found before the row in front of it
 * becomes digits, which then need not wait. */
static void tile_a(const float *a, int64_t row_a, int64_t rows, int64_t height, int64_t k,
                   void *to_)
{
    const int64_t chunks = sdx_tiles_chunks(k), apart = digits_apart(height);
    char *to = to_;
    float *back = (float *)(void *)(to + chunks * CHUNK_A);
    struct extent e = extent_of(a, k);
    for (int64_t i = 0; i < height; i++, a += row_a) {
        const struct scale s = scale_of_all(&e);
        const __m512 by = _mm512_set1_ps(s.by);
        back[i] = s.back;
        e = extent_of(a + row_a, i + 1 < rows ? k : 0);
        for (int64_t c = 0; c < chunks; c++) {
            __m512 x[VECTORS];
            load_chunk(a + c * CHUNK, i < rows ? k - c * CHUNK : 0, x);
            digits(x, by, to + c * CHUNK_A + i * SDX_TILE_BYTES, apart);
        }
    }
}

/* The vectors of a row, tap by tap; behind the last one zeros. */
struct vectors {
    const int64_t *from;
    int64_t taps, block;
};
SIMD __m512 next_vector(const struct sdx_tile_pixels *p, int64_t blocks, __mmask16 last,
                        struct vectors *at)
{
    if (at->taps == 0) return _mm512_setzero_ps();
    const int64_t from = *at->from;
    const bool is_last = at->block == blocks - 1;
    const __mmask16 mask = (__mmask16)(from < 0 ? 0 : is_last ? last : 0xffff);
    const float *vector = p->a + (from < 0 ? 0 : from) + at->block * p->block_a;
    at->block = is_last ? 0 : at->block + 1;
    at->from += is_last;
    at->taps -= is_last;
    return _mm512_maskz_loadu_ps(mask, vector);
}
/* Of the pixel's row i. */
SIMD struct extent extent_of_pixel(const struct sdx_tile_pixels *p, int64_t blocks, __mmask16 last,
                                   int64_t i)
{
    const int64_t *from = p->from + i * p->taps;
    struct extent e = nothing();
    for (int64_t t = 0; i < p->rows && t < p->taps; t++) {
        const float *pixel = p->a + from[t];
        if (from[t] < 0) continue;
        for (int64_t b = 0; b < blocks - 1; b++, pixel += p->block_a)
            extend(&e, _mm512_loadu_ps(pixel));
        extend(&e, _mm512_maskz_loadu_ps(last, pixel));
    }
    return e;
}
static void tile_pixels(const struct sdx_tile_pixels *p, void *to_)
{
    const int64_t blocks = (p->channels + LANES - 1) / LANES, vectors = p->taps * blocks;
    const int64_t chunks = sdx_tiles_chunks(vectors * LANES), apart = digits_apart(p->height);
    const __mmask16 last = (__mmask16)(0xffff >> (blocks * LANES - p->channels));
    char *to = to_;
    float *back = (float *)(void *)(to + chunks * CHUNK_A);
    struct extent e = extent_of_pixel(p, blocks, last, 0);
    for (int64_t i = 0; i < p->height; i++, to += SDX_TILE_BYTES) {
        const struct scale s = scale_of_all(&e);
        const __m512 by = _mm512_set1_ps(s.by);
        struct vectors at = {.from = p->from + i * p->taps, .taps = i < p->rows ? p->taps : 0};
        back[i] = s.back;
        e = extent_of_pixel(p, blocks, last, i + 1);
        for (int64_t c = 0; c < chunks; c++) {
            __m512 x[VECTORS];
            SDX_UNROLL(4)
            for (int v = 0; v < VECTORS; v++)
                x[v] = next_vector(p, blocks, last, &at);
            digits(x, by, to + c * CHUNK_A, apart);
        }
    }
}

/* Up to 64 k of n <= LANES columns as tiles of each digit, 2 * TILE apart: row i has k = i, i + 16,
 * i + 32 and i + 48 of each column beside each other. Row i, from rows of b `pitch` apart, with
 * `left` more k; factor: of the columns. */
SIMD void row_of_rows(const sdx_weight_f32 *b, int64_t pitch, int64_t left, __mmask16 mask,
                      __m512 factor, char *to)
{
    __m512i q[VECTORS], d[DIGITS];
    SDX_UNROLL(4)
    for (int v = 0; v < VECTORS; v++)
        q[v] =
            with_digits(_mm512_maskz_loadu_ps(v * LANES < left ? mask : 0, b + v * pitch), factor);
    gather_digits(q, d);
    SDX_UNROLL(3)
    for (int i = 0; i < DIGITS; i++)
        _mm512_store_si512(to + 2 * i * TILE, d[i]);
}
/* Of a B whose rows lie together: */
static void tile_of_rows(const sdx_weight_f32 *b, int64_t row_b, int64_t k, int64_t n,
                         const float *by, char *to)
{
    const __mmask16 mask = (__mmask16)(n < LANES ? (1u << n) - 1 : 0xffff);
    const __m512 factor = _mm512_loadu_ps(by);
    for (int64_t i = 0; i < SDX_TILE_ROWS; i++, to += SDX_TILE_BYTES)
        row_of_rows(b + i * row_b, LANES * row_b, k - i, mask, factor, to);
}
/* of digits [digit][column], as those of A, */
struct columns {
    _Alignas(64) char digits[DIGITS][LANES * CHUNK];
};
SIMD void turn_columns(const struct columns *c, char *to)
{
    for (int d = 0; d < DIGITS; d++)
        for (int i = 0; i < LANES; i += SIDE)
            for (int j = 0; j < LANES; j += SIDE)
                turn(c->digits[d] + i * CHUNK + 4 * j, LANES,
                     to + 2 * d * TILE + j * SDX_TILE_BYTES + 4 * i, LANES);
}
/* of a B whose columns lie together, */
static void tile_of_columns(const sdx_weight_f32 *b, int64_t col_b, int64_t k, int64_t n,
                            const float *by, char *to)
{
    struct columns c = {{{0}}};
    for (int64_t j = 0; j < n; j++) {
        __m512 x[VECTORS];
        load_chunk((const float *)(const void *)(b + j * col_b), k, x);
        digits(x, _mm512_set1_ps(by[j]), c.digits[0] + j * CHUNK, LANES * CHUNK);
    }
    turn_columns(&c, to);
}
/* and of filters, from vector v of them on. */
static void tile_of_filters(const sdx_weight_f32 *filters, int64_t taps, int64_t channels,
                            int64_t v, int64_t n, const float *by, char *to)
{
    const int64_t blocks = (channels + LANES - 1) / LANES;
    const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i index = _mm512_mullo_epi32(lanes, _mm512_set1_epi32((int)taps));
    struct columns c = {{{0}}};
    for (int64_t j = 0; j < n; j++) {
        __m512 x[VECTORS];
        for (int64_t i = 0; i < VECTORS; i++) {
            const int64_t tap = (v + i) / blocks, first = (v + i) % blocks * LANES;
            const int64_t left = tap < taps ? channels - first : 0;
            const __mmask16 mask = (__mmask16)(left < LANES ? (1u << left) - 1 : 0xffff);
            const float *at =
                (const float *)(const void *)(filters + (j * channels + first) * taps + tap);
            x[i] = _mm512_mask_i32gather_ps(_mm512_setzero_ps(), mask, index, at, 4);
        }
        digits(x, _mm512_set1_ps(by[j]), c.digits[0] + j * CHUNK, LANES * CHUNK);
    }
    turn_columns(&c, to);
}
/* The largest absolute values of n columns, as their bits; returns which of them are short. */
static unsigned sizes_of(const sdx_weight_f32 *b, int64_t row_b, int64_t col_b, int64_t k,
                         int64_t n, uint32_t size[LANES])
{
    const __mmask16 mask = (__mmask16)(n < LANES ? (1u << n) - 1 : 0xffff);
    __m512i most = _mm512_setzero_si512(), bits = most;
    unsigned shorts = 0;
    for (int64_t i = 0; col_b == 1 && i < k; i++) {
        const __m512 row = _mm512_maskz_loadu_ps(mask, b + i * row_b);
        most = larger(most, row);
        bits = _mm512_or_si512(bits, _mm512_castps_si512(row));
    }
    _mm512_storeu_si512(size, most);
    if (col_b == 1) return _mm512_testn_epi32_mask(bits, _mm512_set1_epi32(BEYOND_SHORT));
    for (int64_t j = 0; j < n; j++) {
        const struct extent e = extent_of((const float *)(const void *)(b + j * col_b), k);
        size[j] = _mm512_reduce_max_epu32(e.most);
        shorts |= (unsigned)e.is_short << j;
    }
    return shorts;
}
/* The scales of n columns, each multiplied by scale[j] (NULL: 1). */
static void scales_of(const sdx_weight_f32 *b, int64_t row_b, int64_t col_b, int64_t k, int64_t n,
                      const sdx_weight_f32 *scale, float by[LANES], float back[LANES])
{
    uint32_t size[LANES];
    const unsigned shorts = sizes_of(b, row_b, col_b, k, n, size);
    for (int64_t j = 0; j < LANES; j++) {
        const float times = scale && j < n ? scale[j] : 1.0f;
        float largest;
        memcpy(&largest, &size[j], sizeof largest);
        largest = fabsf(largest * times);
        memcpy(&size[j], &largest, sizeof largest);
        const struct scale s = scale_of(size[j], times == 1.0f && (shorts >> j & 1));
        by[j] = s.by * times;
        back[j] = s.back;
    }
}
/* Columns of half h of a panel of n. */
SIMD int64_t columns_of(int64_t n, int64_t h)
{
    const int64_t left = n - h * LANES;
    return left < 0 ? 0 : left < LANES ? left : LANES;
}
/* [chunk][digit][half of the panel], then the scales of the columns */
static void tile_b(const sdx_weight_f32 *b, int64_t row_b, int64_t col_b, int64_t k, int64_t n,
                   const sdx_weight_f32 *scale, void *to_)
{
    const int64_t chunks = sdx_tiles_chunks(k);
    for (int64_t h = 0; h < 2; h++) {
        const sdx_weight_f32 *half = b + h * LANES * col_b;
        const int64_t count = columns_of(n, h);
        char *to = (char *)to_ + h * TILE;
        float *back = (float *)(void *)((char *)to_ + chunks * CHUNK_B) + h * LANES;
        float by[LANES];
        scales_of(half, row_b, col_b, k, count, scale ? scale + h * LANES : NULL, by, back);
        for (int64_t c = 0; c < chunks; c++, to += CHUNK_B) {
            const sdx_weight_f32 *from = half + c * CHUNK * row_b;
            if (col_b == 1)
                tile_of_rows(from, row_b, k - c * CHUNK, count, by, to);
            else
                tile_of_columns(from, col_b, k - c * CHUNK, count, by, to);
        }
    }
}
static void tile_b_sizes(const float *b, int64_t rows, float *sizes)
{
    for (int h = 0; h < 2; h++) {
        __m512i most = _mm512_castps_si512(_mm512_loadu_ps(sizes + h * LANES));
        for (int64_t i = 0; i < rows; i++)
            most = larger(most, _mm512_loadu_ps(b + i * COLS + h * LANES));
        _mm512_storeu_ps(sizes + h * LANES, _mm512_castsi512_ps(most));
    }
}
static void tile_b_scales(float *sizes, int64_t k, void *panel)
{
    float *back = (float *)(void *)((char *)panel + sdx_tiles_chunks(k) * CHUNK_B);
    for (int j = 0; j < COLS; j++) {
        uint32_t size;
        memcpy(&size, &sizes[j], sizeof size);
        const struct scale s = scale_of(size, false);
        sizes[j] = s.by;
        back[j] = s.back;
    }
}
static void tile_b_rows(const float *b, int64_t rows, const float *factors, int64_t k0, void *panel)
{
    char *to = (char *)panel + k0 / CHUNK * CHUNK_B + k0 % CHUNK * SDX_TILE_BYTES;
    for (int h = 0; h < 2; h++)
        row_of_rows((const sdx_weight_f32 *)b + h * LANES, COLS, rows * LANES, 0xffff,
                    _mm512_loadu_ps(factors + h * LANES), to + h * TILE);
}
/* 16 weights of 16 bits. */
SIMD __m512 widen(const bool is_f16, const uint16_t *from)
{
    const __m256i bits = _mm256_loadu_si256((const __m256i *)(const void *)from);
    return is_f16 ? _mm512_cvtph_ps(bits)
                  : _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
}
/* Whole numbers q of 23 bits, of which a weight of 16 bits has 11 at most: q + 0xc08080 as a float
 * has 64 and the highest digit, and 128 and each other one, as the bytes of its mantissa. */
SIMD void tile_of_half(const bool is_f16, bool fetch, const uint16_t *from, __m512 factor, char *to)
{
    const __m512 base = _mm512_set1_ps(0xc08080);
    const __m512i middle = _mm512_set1_epi8((char)0x80), high = _mm512_set1_epi8(0x40);
    for (int64_t i = 0; i < SDX_TILE_ROWS; i++, from += CHUNK, to += SDX_TILE_BYTES) {
        __m512i q[VECTORS], d[DIGITS];
        SDX_UNROLL(4)
        for (int v = 0; v < VECTORS; v++)
            q[v] =
                _mm512_castps_si512(_mm512_fmadd_ps(widen(is_f16, from + v * LANES), factor, base));
        gather_digits(q, d);
        if (fetch) {
            _mm_prefetch((const char *)from + HALF_AHEAD, _MM_HINT_T0);
            _mm_prefetch((const char *)from + HALF_AHEAD + SDX_TILE_BYTES, _MM_HINT_T0);
        }
        _mm512_store_si512(to, _mm512_sub_epi8(d[0], high));
        _mm512_store_si512(to + 2 * TILE, _mm512_xor_si512(d[1], middle));
        _mm512_store_si512(to + 4 * TILE, _mm512_xor_si512(d[2], middle));
    }
}
static void half_scales(const char *sizes, float factors[COLS], float *back)
{
    for (int j = 0; j < COLS; j++) {
        uint32_t size;
        memcpy(&size, sizes + (size_t)j * sizeof size, sizeof size);
        const struct scale s = scale_in(size, (size & 0x7fffff) >= 0x7e0000 ? 20 : 21);
        factors[j] = s.by;
        back[j] = s.back;
    }
}
static SDX_NOINLINE void chunk_of_half(bool fetch, enum sdx_half half, const char *weights,
                                       const float factors[COLS], char *to)
{
    const uint16_t *from = (const uint16_t *)(const void *)weights;
    for (int h = 0; h < 2; h++, from += LANES * CHUNK) {
        const __m512 factor = _mm512_loadu_ps(factors + h * LANES);
        if (half == SDX_HALF_F16)
            tile_of_half(true, fetch, from, factor, to + h * TILE);
        else
            tile_of_half(false, fetch, from, factor, to + h * TILE);
    }
}
/* A panel of digits and scales, of one of 16-bit weights. */
static void tile_b_half(const char *weights, enum sdx_half half, int64_t k, char *panel)
{
    const int64_t chunks = sdx_tiles_chunks(k);
    float factors[COLS];
    half_scales(weights + chunks * SDX_TILES_CHUNK_HALF, factors,
                (float *)(void *)(panel + chunks * CHUNK_B));
    for (int64_t c = 0; c < chunks; c++, weights += SDX_TILES_CHUNK_HALF, panel += CHUNK_B)
        chunk_of_half(false, half, weights, factors, panel);
}
static void tile_filters(const sdx_weight_f32 *filters, int64_t taps, int64_t channels, int64_t n,
                         void *to_)
{
    const int64_t blocks = (channels + LANES - 1) / LANES, each = channels * taps;
    const int64_t chunks = sdx_tiles_chunks(taps * blocks * LANES);
    for (int64_t h = 0; h < 2; h++) {
        const sdx_weight_f32 *half = filters + h * LANES * each;
        char *to = (char *)to_ + h * TILE;
        float *back = (float *)(void *)((char *)to_ + chunks * CHUNK_B) + h * LANES;
        const int64_t count = columns_of(n, h);
        float by[LANES];
        scales_of(half, 1, each, each, count, NULL, by, back);
        for (int64_t c = 0; c < chunks; c++, to += CHUNK_B)
            tile_of_filters(half, taps, channels, c * VECTORS, count, by, to);
    }
}

/* Sums of the three weights: as whole numbers and, in place of the first ones, as floats. */
union sums {
    int32_t whole[DIGITS][TALL * COLS];
    float floats[TALL * COLS];
};
#define LOAD(da, db)                                                                               \
    do {                                                                                           \
        _tile_loadd(4, a + (da)*TILE, SDX_TILE_BYTES);                                             \
        if (tall) _tile_loadd(5, a + step_a + (da)*TILE, SDX_TILE_BYTES);                          \
        _tile_loadd(6, b + 2 * (db)*TILE, SDX_TILE_BYTES);                                         \
        _tile_loadd(7, b + (2 * (db) + 1) * TILE, SDX_TILE_BYTES);                                 \
    } while (0)
#define MULTIPLY(da, db)                                                                           \
    do {                                                                                           \
        LOAD(da, db);                                                                              \
        _tile_dpbssd(0, 4, 6);                                                                     \
        _tile_dpbssd(1, 4, 7);                                                                     \
        if (tall) {                                                                                \
            _tile_dpbssd(2, 5, 6);                                                                 \
            _tile_dpbssd(3, 5, 7);                                                                 \
        }                                                                                          \
    } while (0)
/* The sums of one tile of rows or, when tall, two with a panel, of the pairs of digits whose weight
 * is 256^-weight of the highest: [32][COLS]. `lines` lines from `ahead` on come into the second
 * cache for each chunk. */
SIMD void multiply(const int weight, const bool tall, const char *a, int64_t step_a, const char *b,
                   int64_t chunks, const char *ahead, int64_t lines, int32_t *sums)
{
    struct sdx_tile_drain drain;
    drain.since = 0;
    _tile_zero(0);
    _tile_zero(1);
    if (tall) {
        _tile_zero(2);
        _tile_zero(3);
    }
    for (; chunks > 0; chunks--, a += CHUNK_A, b += CHUNK_B) {
        if (weight == 0) MULTIPLY(0, 0);
        if (weight == 1) {
            MULTIPLY(0, 1);
            MULTIPLY(1, 0);
        }
        if (weight == 2) {
            MULTIPLY(0, 2);
            MULTIPLY(1, 1);
            MULTIPLY(2, 0);
        }
        for (int64_t i = 0; i < lines; i++, ahead += SDX_TILE_BYTES)
            _mm_prefetch(ahead, _MM_HINT_T1);
        sdx_tile_drain(&drain, 8 * (weight + 1));
    }
    const int64_t row = COLS * (int64_t)sizeof *sums;
    _tile_stored(0, sums, row);
    _tile_stored(1, sums + LANES, row);
    if (tall) {
        _tile_stored(2, sums + SDX_TILE_ROWS * COLS, row);
        _tile_stored(3, sums + SDX_TILE_ROWS * COLS + LANES, row);
    }
    sdx_tile_fence();
}
#undef LOAD
#undef MULTIPLY

/* Three by two tiles of sums: to begin with, from and to memory where the three lie `apart` numbers
 * apart. */
SIMD void zero_sums(void)
{
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    _tile_zero(4);
    _tile_zero(5);
}
enum { SUMS_ROW = COLS * 4 /* bytes */ };
SIMD void load_sums(const int32_t *sums, int64_t apart)
{
    _tile_loadd(0, sums, SUMS_ROW);
    _tile_loadd(1, sums + LANES, SUMS_ROW);
    _tile_loadd(2, sums + apart, SUMS_ROW);
    _tile_loadd(3, sums + apart + LANES, SUMS_ROW);
    _tile_loadd(4, sums + 2 * apart, SUMS_ROW);
    _tile_loadd(5, sums + 2 * apart + LANES, SUMS_ROW);
}
SIMD void store_sums(int32_t *sums, int64_t apart)
{
    _tile_stored(0, sums, SUMS_ROW);
    _tile_stored(1, sums + LANES, SUMS_ROW);
    _tile_stored(2, sums + apart, SUMS_ROW);
    _tile_stored(3, sums + apart + LANES, SUMS_ROW);
    _tile_stored(4, sums + 2 * apart, SUMS_ROW);
    _tile_stored(5, sums + 2 * apart + LANES, SUMS_ROW);
    sdx_tile_fence();
}
#define FETCH(line)                                                                                \
    if ((line) < lines) _mm_prefetch(ahead + (line)*SDX_TILE_BYTES, _MM_HINT_T1)
#define STEP(number, sum, tile)                                                                    \
    do {                                                                                           \
        _tile_loadd(7, b + (tile)*TILE, SDX_TILE_BYTES);                                           \
        _tile_dpbssd(sum, 6, 7);                                                                   \
        FETCH(number);                                                                             \
        FETCH((number) + STEPS);                                                                   \
    } while (0)
enum { STEPS = 12 /* of a chunk in multiply_long */ };
/* A tile of A times all digits of a chunk of B, each to sums of its own. */
SIMD void multiply_digits(const char *a, const char *b, const char *ahead, int64_t lines)
{
    _tile_loadd(6, a, SDX_TILE_BYTES);
    STEP(0, 0, 0);
    STEP(1, 1, 1);
    STEP(2, 2, 2);
    STEP(3, 3, 3);
    STEP(4, 4, 4);
    STEP(5, 5, 5);
}

/* The sums of few rows, of which the registers have those of each digit of B: */
static void store_few(int64_t height, union sums *sums)
{
    _Alignas(64) int32_t s[DIGITS][SDX_TILE_ROWS * COLS]; /* a digit of B; the rows of each of A */
    store_sums(s[0], SDX_TILE_ROWS * COLS);
    const int64_t next = height * COLS; /* digit of A */
    for (int64_t j = 0; j < next; j++) {
        sums->whole[0][j] = s[0][j];
        sums->whole[1][j] = s[0][next + j] + s[1][j];
        sums->whole[2][j] = s[0][2 * next + j] + s[1][next + j] + s[2][j];
    }
}
/* Few rows: their digits are the rows of one tile, so each digit of B is read once, in
 * the order in which it lies in memory, which is what takes the time here. */
static void multiply_few(const char *a, const char *b, int64_t chunks, int64_t height,
                         union sums *sums)
{
    struct sdx_tile_drain drain;
    drain.since = 0;
    zero_sums();
    for (; chunks > 0; chunks--, a += CHUNK_A, b += CHUNK_B) {
        multiply_digits(a, b, NULL, 0);
        sdx_tile_drain(&drain, 13);
    }
    store_few(height, sums);
}
/* The same of 16-bit weights, a chunk of which becomes digits beside the products of the last one;
 * back: the scales of the columns. */
static void multiply_few_half(enum sdx_half half, const char *a, const char *weights,
                              int64_t chunks, int64_t height, float back[COLS], union sums *sums)
{
    struct sdx_tile_drain drain;
    _Alignas(64) char digits[2][CHUNK_B];
    float factors[COLS];
    drain.since = 0;
    half_scales(weights + chunks * SDX_TILES_CHUNK_HALF, factors, back);
    zero_sums();
    for (int64_t c = 0; c < chunks; c++, a += CHUNK_A, weights += SDX_TILES_CHUNK_HALF) {
        chunk_of_half(true, half, weights, factors, digits[c % 2]);
        sdx_tile_fence();
        multiply_digits(a, digits[c % 2], NULL, 0);
        sdx_tile_drain(&drain, 13);
    }
    store_few(height, sums);
}

/* Row i of the sums times the scales of the row and of the columns. */
SIMD void join(const union sums *sums, int64_t i, float back_a, const float *back_b, vf row[2])
{
    SDX_UNROLL(2)
    for (int j = 0; j < 2; j++) {
        const int64_t at = i * COLS + j * LANES;
        const __m512 high = _mm512_cvtepi32_ps(_mm512_loadu_si512(sums->whole[0] + at));
        const __m512 middle = _mm512_cvtepi32_ps(_mm512_loadu_si512(sums->whole[1] + at));
        const __m512 low = _mm512_cvtepi32_ps(_mm512_loadu_si512(sums->whole[2] + at));
        const __m512 digit = _mm512_set1_ps(0x1p-8f);
        const __m512 rest = _mm512_fmadd_ps(low, digit, middle);
        const __m512 sum = _mm512_fmadd_ps(rest, digit, high);
        row[j] = sum * _mm512_set1_ps(back_a) * _mm512_loadu_ps(back_b + j * LANES);
    }
}

/* A row of A times a panel by FMAs; what was not finite of it is taken from there. back: the scales
 * of the columns. Few rows of 16-bit weights have kept no digits of these: *digits becomes theirs.
 */
static SDX_NOINLINE void sum_anew(const struct sdx_gemm_tiles *g, const float *a, const char *b,
                                  const char **digits, const float *back, float *sums)
{
    float s[COLS] = {0};
    if (!*digits) {
        tile_b_half(b, g->half, g->job.k, g->panel);
        *digits = g->panel;
    }
    for (int64_t k = 0; k < g->job.k; k++)
        for (int j = 0; j < COLS; j++) {
            const signed char *at = (const signed char *)*digits + k / CHUNK * CHUNK_B +
                                    j / LANES * TILE + k % LANES * SDX_TILE_BYTES + j % LANES * 4 +
                                    k % CHUNK / LANES;
            const int32_t whole = at[0] * 65536 + at[2 * TILE] * 256 + at[4 * TILE];
            s[j] = fmaf(a[k * g->col_a], (float)whole * (back[j] * 0x1p-16f), s[j]);
        }
    for (int j = 0; j < COLS; j++)
        if (!isfinite(sums[j])) sums[j] = s[j];
}

/* Is C what the sums are, and nothing besides? */
SIMD bool is_plain(const struct sdx_gemm_job *job)
{
    const struct sdx_epilogue *e = &job->epilogue;
    return !job->from_c && !job->a && job->alpha == 1.0f && !e->bias_row && !e->bias_col &&
           !e->residual && e->act == SDX_ACT_NONE;
}
/* Rows `first` .. of sums to C, `rows` of them from row i0 on; back_a: their scales; n: columns
 * that are stored. */
static void finish(const struct sdx_gemm_tiles *g, const float *back_a, const char *b,
                   const float *back_b, union sums *all, int64_t first, int64_t rows, int64_t i0,
                   int64_t j0, int64_t n)
{
    float *sums = all->floats + first * COLS;
    const struct sdx_gemm_job *job = &g->job;
    const struct sdx_epilogue *e = &job->epilogue;
    enum { others = 0x99 }; /* NaN, infinity */
    const __mmask16 mask[2] = {(__mmask16)(n < LANES ? (1u << n) - 1 : 0xffff),
                               (__mmask16)(n > LANES ? (1u << (n - LANES)) - 1 : 0)};
    const int64_t begin = i0 * job->row_c + j0 / COLS * g->panel_c;
    float *c = job->c + begin;
    if (n == COLS && is_plain(job)) {
        for (int64_t i = 0; i < rows; i++, c += job->row_c) {
            vf s[2];
            join(all, first + i, back_a[i], back_b, s);
            v_store(c, s[0]);
            v_store(c + g->half_c, s[1]);
        }
        return;
    }
    const char *digits = g->half && g->height <= FEW ? NULL : b;
    const bool curves = job->last && e->act > SDX_ACT_CLIP, from_c = job->from_c;
    const bool clips = job->last && e->act != SDX_ACT_NONE && !curves;
    const vf lo = v_set1(e->act == SDX_ACT_CLIP ? e->a : 0.0f);
    const vf hi = v_set1(e->act == SDX_ACT_CLIP ? e->b : INFINITY);
    const vf alpha = v_set1(job->alpha);
    const float *bias_col = job->last && e->bias_col ? e->bias_col + j0 : NULL;
    const float *bias_row = job->last && e->bias_row ? e->bias_row + i0 : NULL;
    const float *residual = e->residual ? e->residual + begin : NULL;
    vf bias[2] = {v_set1(0.0f), v_set1(0.0f)};
    for (int j = 0; bias_col && j < 2; j++)
        bias[j] = _mm512_maskz_loadu_ps(mask[j], bias_col + j * LANES);
    for (int64_t i = 0, at = 0; i < rows; i++, at += job->row_c) {
        float *row = sums + i * COLS;
        vf s[2];
        join(all, first + i, back_a[i], back_b, s);
        if (job->a && SDX_UNLIKELY(_mm512_fpclass_ps_mask(s[0], others) |
                                   _mm512_fpclass_ps_mask(s[1], others))) {
            v_store(row, s[0]);
            v_store(row + LANES, s[1]);
            sum_anew(g, job->a + (i0 + i) * job->row_a, b, &digits, back_b, row);
            s[0] = v_load(row);
            s[1] = v_load(row + LANES);
        }
        SDX_UNROLL(2)
        for (int j = 0; j < 2; j++) {
            const int64_t to = at + j * g->half_c;
            if (from_c) s[j] += _mm512_maskz_loadu_ps(mask[j], c + to);
            s[j] *= alpha;
            if (bias_row) s[j] += v_set1(bias_row[i]);
            if (bias_col) s[j] += bias[j];
            if (residual) s[j] += _mm512_maskz_loadu_ps(mask[j], residual + to);
            if (clips) s[j] = v_min(hi, v_max(lo, s[j]));
            if (curves)
                v_store(row + j * LANES, s[j]);
            else
                _mm512_mask_storeu_ps(c + to, mask[j], s[j]);
        }
    }
    if (!curves) return;
    sdx_kernel_tables()->gemm.f32_finish(sums, sums, rows * COLS, 0.0f, NULL, e);
    for (int64_t i = 0; i < rows; i++, c += job->row_c)
        for (int j = 0; j < 2; j++)
            _mm512_mask_storeu_ps(c + j * g->half_c, mask[j], v_load(sums + i * COLS + j * LANES));
}

/* The sums of one tile of rows with a panel, all three weights at once: of a long K each byte comes
 * from the second cache once. The lines from `ahead` on come between the products. */
static SDX_NOINLINE void multiply_long(bool goes_on, const char *a, const char *b, int64_t chunks,
                                       const char *ahead, int64_t lines, union sums *sums,
                                       int64_t first)
{
    int32_t *const to = sums->whole[0] + first * COLS;
    struct sdx_tile_drain drain;
    drain.since = 0;
    if (goes_on)
        load_sums(to, TALL * COLS);
    else
        zero_sums();
    for (; chunks > 0; chunks--, a += CHUNK_A, b += CHUNK_B, ahead += lines * SDX_TILE_BYTES) {
        multiply_digits(a, b, ahead, lines);
        _tile_loadd(6, a + TILE, SDX_TILE_BYTES);
        STEP(6, 4, 2);
        STEP(7, 5, 3);
        STEP(8, 2, 0);
        STEP(9, 3, 1);
        _tile_loadd(6, a + 2 * TILE, SDX_TILE_BYTES);
        STEP(10, 5, 1);
        STEP(11, 4, 0);
        for (int64_t i = 2 * STEPS; i < lines; i++)
            FETCH(i);
        sdx_tile_drain(&drain, 27);
    }
    store_sums(to, TALL * COLS);
}
#undef STEP
#undef FETCH
/* All three weights, one after the other. */
SIMD void multiply_all(const bool tall, const char *a, int64_t step_a, const char *b,
                       int64_t chunks, const char *ahead, int64_t lines, union sums *sums)
{
    multiply(0, tall, a, step_a, b, chunks, ahead, 0, sums->whole[0]);
    multiply(1, tall, a, step_a, b, chunks, ahead, 0, sums->whole[1]);
    multiply(2, tall, a, step_a, b, chunks, ahead, lines, sums->whole[2]);
}
/* Tile t of rows, whose sums begin at row `first`, times the panel b from column j0 on is done. */
SIMD void finish_tile(const struct sdx_gemm_tiles *g, const char *b, int64_t j0, int64_t t,
                      union sums *sums, int64_t first)
{
    const int64_t chunks = sdx_tiles_chunks(g->job.k), i0 = t * g->height;
    const char *back_a = (const char *)g->a + t * sdx_tiles_bytes_a(g->job.k) + chunks * CHUNK_A;
    const char *back_b = b + chunks * CHUNK_B;
    const int64_t rows = g->job.m - i0 < g->height ? g->job.m - i0 : g->height;
    const int64_t n = g->job.n - j0 < COLS ? g->job.n - j0 : COLS;
    finish(g, (const float *)(const void *)back_a, b, (const float *)(const void *)back_b, sums,
           first, rows, i0, j0, n);
}
/* Few rows, the panel of 16-bit weights. */
static void panel_few_half(const struct sdx_gemm_tiles *g, const char *weights, int64_t j0)
{
    const int64_t chunks = sdx_tiles_chunks(g->job.k);
    const char *back_a = (const char *)g->a + chunks * CHUNK_A;
    _Alignas(64) union sums sums;
    float back[COLS];
    multiply_few_half(g->half, g->a, weights, chunks, g->height, back, &sums);
    finish(g, (const float *)(const void *)back_a, weights, back, &sums, 0, g->job.m, 0, j0,
           g->job.n - j0 < COLS ? g->job.n - j0 : COLS);
}
/* A panel of few chunks, or few rows; ahead: what is read after it. */
static void panel_short(const struct sdx_gemm_tiles *g, int64_t tiles, const char *b,
                        const char *ahead, int64_t j0)
{
    const int64_t chunks = sdx_tiles_chunks(g->job.k), pairs = (tiles + 1) / 2;
    const int64_t step_a = sdx_tiles_bytes_a(g->job.k);
    const int64_t lines = pairs > 1 ? (CHUNK_B / SDX_TILE_BYTES + pairs - 1) / pairs : 0;
    const char *a = g->a;
    _Alignas(64) union sums sums;
    for (int64_t t = 0; t < tiles; t += 2, a += 2 * step_a) {
        const bool tall = t + 1 < tiles;
        if (g->height <= FEW)
            multiply_few(a, b, chunks, g->height, &sums);
        else if (tall)
            multiply_all(true, a, step_a, b, chunks, ahead, lines, &sums);
        else
            multiply_all(false, a, step_a, b, chunks, ahead, lines, &sums);
        ahead += chunks * lines * SDX_TILE_BYTES;
        finish_tile(g, b, j0, t, &sums, 0);
        if (tall) finish_tile(g, b, j0, t + 1, &sums, SDX_TILE_ROWS);
    }
}
/* One of many chunks, tile by tile, while the next one is fetched; */
static void panel_long(const struct sdx_gemm_tiles *g, int64_t tiles, const char *b,
                       const char *ahead, int64_t j0)
{
    const int64_t chunks = sdx_tiles_chunks(g->job.k), step_a = sdx_tiles_bytes_a(g->job.k);
    const int64_t lines = tiles > 2 ? (CHUNK_B / SDX_TILE_BYTES + tiles - 1) / tiles : 0;
    const char *a = g->a;
    _Alignas(64) union sums sums;
    for (int64_t t = 0; t < tiles; t++, a += step_a) {
        multiply_long(false, a, b, chunks, ahead, lines, &sums, 0);
        ahead += chunks * lines * SDX_TILE_BYTES;
        finish_tile(g, b, j0, t, &sums, 0);
    }
}
/* of more than the second cache holds beside A, a span of them for several tiles. */
static void panel_spans(const struct sdx_gemm_tiles *g, int64_t tiles, const char *b,
                        const char *next, int64_t j0)
{
    const int64_t chunks = sdx_tiles_chunks(g->job.k), step_a = sdx_tiles_bytes_a(g->job.k);
    _Alignas(64) union sums sums[MANY / 2];
    for (int64_t t0 = 0; t0 < tiles; t0 += MANY) {
        const int64_t count = tiles - t0 < MANY ? tiles - t0 : MANY;
        const int64_t lines = (CHUNK_B / SDX_TILE_BYTES + count - 1) / count;
        const char *after = t0 + count < tiles ? b : next;
        for (int64_t c = 0; c < chunks; c += SPAN) {
            const int64_t some = chunks - c < SPAN ? chunks - c : SPAN;
            const char *a = (const char *)g->a + t0 * step_a + c * CHUNK_A;
            const char *ahead = c + some < chunks ? b + (c + some) * CHUNK_B : after;
            for (int64_t t = 0; t < count; t++, a += step_a) {
                multiply_long(c > 0, a, b + c * CHUNK_B, some, ahead, lines, &sums[t / 2],
                              t % 2 * SDX_TILE_ROWS);
                ahead += some * lines * SDX_TILE_BYTES;
            }
        }
        for (int64_t t = 0; t < count; t++)
            finish_tile(g, b, j0, t0 + t, &sums[t / 2], t % 2 * SDX_TILE_ROWS);
    }
}
static void block(const struct sdx_gemm_tiles *g)
{
    const struct sdx_gemm_job *job = &g->job;
    const int64_t height = g->height, tiles = (job->m + height - 1) / height;
    const int64_t chunks = sdx_tiles_chunks(job->k);
    const bool is_few = height <= FEW, is_long = !is_few && chunks >= LONG;
    const char *b = g->b, *next;
    if (job->m <= 0 || job->n <= 0) return;
    sdx_tile_configure((int)(is_few ? height * DIGITS : height), is_few || is_long ? 7 : 6);
    for (int64_t j0 = 0; j0 < job->n; j0 += COLS, b = next) {
        const char *panel = g->half ? g->panel : b;
        next = b + (g->half ? sdx_tiles_bytes_half(job->k) : sdx_tiles_bytes_b(job->k));
        if (g->half && is_few) {
            panel_few_half(g, b, j0);
            continue;
        }
        if (g->half) tile_b_half(b, g->half, job->k, g->panel);
        if (is_long && chunks > MOST_AHEAD)
            panel_spans(g, tiles, panel, next, j0);
        else if (is_long)
            panel_long(g, tiles, panel, next, j0);
        else
            panel_short(g, tiles, panel, next, j0);
    }
    _tile_release();
}

void sdx_gemm_init_amx(struct sdx_gemm_table *gemm)
{
    SDX_ASSERT(gemm->cols == COLS);
    gemm->f32_tile_a = tile_a;
    gemm->f32_tile_pixels = tile_pixels;
    gemm->f32_tile_b = tile_b;
    gemm->f32_tile_filters = tile_filters;
    gemm->f32_tile_b_sizes = tile_b_sizes;
    gemm->f32_tile_b_scales = tile_b_scales;
    gemm->f32_tile_b_rows = tile_b_rows;
    gemm->f32_tiles = block;
}
