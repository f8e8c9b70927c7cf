/* SPDX-License-Identifier: Apache-2.0
 * Kernels of qbytes.h, once an instruction set. */
#include "kernels/qbytes.h"
#include "kernels/simd.h"
#include "kernels/tables.h"

enum { PAIRS = 4 * LANES, WIDTH = 16, CHUNK = 256 }; /* elements of a step; of a repeated byte */
#define MAGIC 8388608.0f

#if SDX_SIMD_LANES >= 8
typedef __m256i wide;
SIMD wide rounded(__m256 v, __m256 lo, __m256 hi)
{
    return _mm256_cvtps_epi32(_mm256_min_ps(_mm256_max_ps(v, lo), hi));
}
SIMD void store_bytes(uint8_t *y, wide low, wide high, wide zero, __m128i flip)
{
    wide v = _mm256_permute4x64_epi64(_mm256_packs_epi32(low, high), 0xd8);
    v = _mm256_add_epi16(v, zero);
    const __m128i bytes =
        _mm_packus_epi16(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    _mm_storeu_si128((__m128i *)y, _mm_xor_si128(bytes, flip));
}
#if SDX_SIMD_LANES == 16
#define ALL(op) _mm512_##op
typedef __m512i bytes_in;
typedef __m512 floats_in;
#else
#define ALL(op) _mm256_##op
typedef __m256i bytes_in;
typedef __m256 floats_in;
#endif
/* The facts of a pair in registers: bytes that are stored may lie anywhere, so that the compiler
 * would read them anew for each step. */
struct facts {
    vf zero_a, zero_b, scale_a, scale_b, base;
    vi zero_y, flip;
};
SIMD struct facts facts_of(const struct sdx_qpair *p)
{
    return (struct facts){.zero_a = v_set1(MAGIC + (float)p->zero_a),
                          .zero_b = v_set1(MAGIC + (float)p->zero_b),
                          .scale_a = v_set1(p->scale_a),
                          .scale_b = v_set1(p->scale_b),
                          .base = v_set1(p->base),
                          .zero_y = (vi)ALL(set1_epi16)((short)p->zero_y),
                          .flip = (vi)ALL(set1_epi8)((char)p->flip)};
}
/* Bytes less their zero point, in the order that packing undoes. A byte in the last digits of 2^23
 * is that much more. */
SIMD void floats_of(const uint8_t *x, vi flip, vf zero, vf v[4])
{
    const bytes_in bytes = (bytes_in)(vi_load(x) ^ flip), none = (bytes_in)vi_set1(0);
    const bytes_in top = (bytes_in)vi_set1(0x4b004b00);
    const bytes_in low = ALL(unpacklo_epi8)(bytes, none), high = ALL(unpackhi_epi8)(bytes, none);
    v[0] = (vf)ALL(unpacklo_epi16)(low, top) - zero;
    v[1] = (vf)ALL(unpackhi_epi16)(low, top) - zero;
    v[2] = (vf)ALL(unpacklo_epi16)(high, top) - zero;
    v[3] = (vf)ALL(unpackhi_epi16)(high, top) - zero;
}
/* Rounded, in the order of floats_of(). Saturated by the packing; the bound is for what is above
 * 2^31. NaN becomes the least. */
SIMD bytes_in rounded_bytes(const struct facts *f, const vf v[4])
{
    const vf most = v_set1(32767.0f);
    bytes_in u[4];
    SDX_UNROLL(4)
    for (int i = 0; i < 4; i++)
        u[i] = ALL(cvtps_epi32)((floats_in)v_min(most, v[i]));
    const bytes_in zero = (bytes_in)f->zero_y;
    const bytes_in low = ALL(adds_epi16)(ALL(packs_epi32)(u[0], u[1]), zero);
    const bytes_in high = ALL(adds_epi16)(ALL(packs_epi32)(u[2], u[3]), zero);
    return (bytes_in)((vi)ALL(packus_epi16)(low, high) ^ f->flip);
}
SIMD void product_step(const struct facts *f, const uint8_t *a, const uint8_t *b, uint8_t *y)
{
    vf x[4], z[4];
    floats_of(a, f->flip, f->zero_a, x);
    floats_of(b, f->flip, f->zero_b, z);
    SDX_UNROLL(4)
    for (int i = 0; i < 4; i++)
        x[i] = x[i] * z[i] * f->scale_a; /* x z is exact */
    vi_store(y, (vi)rounded_bytes(f, x));
}
#if SDX_SIMD_LANES == 16
SIMD vf float_bytes(const bool is_signed, const uint8_t *x)
{
    const __m128i b = _mm_loadu_si128((const __m128i *)x);
    return (vf)_mm512_cvtepi32_ps(is_signed ? _mm512_cvtepi8_epi32(b) : _mm512_cvtepu8_epi32(b));
}
#define IN_ORDER   _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15)
#define REORDER(x) _mm512_permutexvar_epi32(IN_ORDER, x)
#else
SIMD vf float_bytes(const bool is_signed, const uint8_t *x)
{
    const __m128i b = _mm_loadl_epi64((const __m128i *)x);
    return (vf)_mm256_cvtepi32_ps(is_signed ? _mm256_cvtepi8_epi32(b) : _mm256_cvtepu8_epi32(b));
}
#define IN_ORDER   _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7)
#define REORDER(x) _mm256_permutevar8x32_epi32(x, IN_ORDER)
#endif
SIMD void sum_step(const bool is_signed, const struct facts *f, const uint8_t *a, const uint8_t *b,
                   uint8_t *y)
{
    vf v[4];
    SDX_UNROLL(4)
    for (int i = 0; i < 4; i++) {
        v[i] = v_fma(float_bytes(is_signed, b + i * LANES), f->scale_b, f->base);
        v[i] = v_fma(float_bytes(is_signed, a + i * LANES), f->scale_a, v[i]);
    }
    vi_store(y, (vi)REORDER(rounded_bytes(f, v)));
}
SIMD void affine_step(const struct facts *f, const struct sdx_qaffine *p, size_t at,
                      const uint8_t *x, uint8_t *y)
{
    const vf lo = v_set1((float)(p->lo - p->zero)), hi = v_set1((float)(p->hi - p->zero));
    vf v[4];
    SDX_UNROLL(4)
    for (size_t i = 0; i < 4; i++) {
        const size_t k = at + i * LANES;
        v[i] = float_bytes(p->flip != 0, x + i * LANES);
        v[i] = v_fma(v[i], v_load(p->scale + k), v_load(p->shift + k));
        v[i] = v_min(v_max(v[i], lo), hi);
    }
    vi_store(y, (vi)REORDER(rounded_bytes(f, v)));
}
#else
struct facts {
    struct sdx_qpair pair;
};
SIMD struct facts facts_of(const struct sdx_qpair *p)
{
    return (struct facts){*p};
}
/* a * b + c rounded once; in doubles, where an instruction for it is missing, all but the last
 * rounding is exact, unless b and c are 2^20 apart. */
SIMD float fused(float a, float b, float c)
{
#ifdef FP_FAST_FMAF
    return __builtin_fmaf(a, b, c);
#else
    return (float)((double)a * b + c);
#endif
}
SIMD uint8_t rounded_byte(const struct sdx_qpair *p, float v)
{
    const float lo = (float)-p->zero_y, hi = (float)(255 - p->zero_y), magic = 12582912.0f;
    v = v > lo ? v : lo;
    v = v < hi ? v : hi;
    return (uint8_t)(((int32_t)((v + magic) - magic) + p->zero_y) ^ p->flip);
}
SIMD void product_step(const struct facts *f, const uint8_t *a, const uint8_t *b, uint8_t *y)
{
    const struct sdx_qpair *p = &f->pair;
    for (int i = 0; i < PAIRS; i++) {
        const float x = (float)((a[i] ^ p->flip) - p->zero_a);
        const float z = (float)((b[i] ^ p->flip) - p->zero_b);
        y[i] = rounded_byte(p, x * z * p->scale_a);
    }
}
SIMD void sum_step(const bool is_signed, const struct facts *f, const uint8_t *a, const uint8_t *b,
                   uint8_t *y)
{
    const struct sdx_qpair *p = &f->pair;
    for (int i = 0; i < PAIRS; i++) {
        const float x = is_signed ? (int8_t)a[i] : a[i], z = is_signed ? (int8_t)b[i] : b[i];
        y[i] = rounded_byte(p, fused(x, p->scale_a, fused(z, p->scale_b, p->base)));
    }
}
SIMD void affine_step(const struct facts *f, const struct sdx_qaffine *p, size_t at,
                      const uint8_t *x, uint8_t *y)
{
    const float lo = (float)(p->lo - p->zero), hi = (float)(p->hi - p->zero);
    for (size_t i = 0; i < PAIRS; i++) {
        const float a = p->flip ? (int8_t)x[i] : x[i];
        float v = fused(a, p->scale[at + i], p->shift[at + i]);
        v = v > lo ? v : lo;
        y[i] = rounded_byte(&f->pair, v < hi ? v : hi);
    }
}
#endif

typedef void step_fn(const struct facts *f, const uint8_t *a, const uint8_t *b, uint8_t *y);
SIMD void signed_sum(const struct facts *f, const uint8_t *a, const uint8_t *b, uint8_t *y)
{
    sum_step(true, f, a, b, y);
}
SIMD void unsigned_sum(const struct facts *f, const uint8_t *a, const uint8_t *b, uint8_t *y)
{
    sum_step(false, f, a, b, y);
}
SIMD void pair(step_fn *const step, const struct facts *f, const uint8_t *a, const uint8_t *b,
               uint8_t *y, size_t n)
{
    size_t i = 0;
    for (; i + PAIRS <= n; i += PAIRS)
        step(f, a + i, b + i, y + i);
    if (i == n) return;
    uint8_t left[3][PAIRS] = {{0}};
    memcpy(left[0], a + i, n - i);
    memcpy(left[1], b + i, n - i);
    step(f, left[0], left[1], left[2]);
    memcpy(y + i, left[2], n - i);
}
SIMD void pair_steps(const bool multiply, const struct sdx_qpair *p, const uint8_t *a,
                     size_t step_a, const uint8_t *b, size_t step_b, uint8_t *y, size_t n)
{
    const struct facts f = facts_of(p);
    uint8_t same_a[CHUNK], same_b[CHUNK];
    if (n == 0) return;
    if (!step_a) memset(same_a, *a, sizeof same_a);
    if (!step_b) memset(same_b, *b, sizeof same_b);
    const size_t chunk = step_a && step_b ? n : CHUNK;
    for (size_t i = 0; i < n; i += chunk) {
        const uint8_t *x = step_a ? a + i : same_a, *z = step_b ? b + i : same_b;
        const size_t count = n - i < chunk ? n - i : chunk;
        if (multiply)
            pair(product_step, &f, x, z, y + i, count);
        else if (p->flip)
            pair(signed_sum, &f, x, z, y + i, count);
        else
            pair(unsigned_sum, &f, x, z, y + i, count);
    }
}
static void add(const struct sdx_qpair *p, const uint8_t *a, size_t step_a, const uint8_t *b,
                size_t step_b, uint8_t *y, size_t n)
{
    pair_steps(false, p, a, step_a, b, step_b, y, n);
}
static void mul(const struct sdx_qpair *p, const uint8_t *a, size_t step_a, const uint8_t *b,
                size_t step_b, uint8_t *y, size_t n)
{
    pair_steps(true, p, a, step_a, b, step_b, y, n);
}
static void affine(const struct sdx_qaffine *p, const uint8_t *x, uint8_t *y, size_t n)
{
    const struct sdx_qpair pair = {.zero_y = p->zero, .flip = p->flip};
    const struct facts f = facts_of(&pair);
    size_t i = 0, at = 0;
    for (; i + PAIRS <= n; i += PAIRS) {
        affine_step(&f, p, at, x + i, y + i);
        at = at + PAIRS < p->length ? at + PAIRS : 0;
    }
    if (i == n) return;
    uint8_t left[2][PAIRS] = {{0}};
    memcpy(left[0], x + i, n - i);
    affine_step(&f, p, at, left[0], left[1]);
    memcpy(y + i, left[1], n - i);
}

#if SDX_SIMD_LANES == 16
SIMD void quantize_step(const float *x, float scale, int32_t zero, uint8_t flip, uint8_t *y)
{
    const __m512 v = _mm512_div_ps(_mm512_loadu_ps(x), _mm512_set1_ps(scale));
    const __m512 lo = _mm512_set1_ps((float)-zero), hi = _mm512_set1_ps((float)(255 - zero));
    const __m512i whole = _mm512_cvtps_epi32(_mm512_min_ps(_mm512_max_ps(v, lo), hi));
    const __m128i bytes = _mm512_cvtepi32_epi8(_mm512_add_epi32(whole, _mm512_set1_epi32(zero)));
    _mm_storeu_si128((__m128i *)y, _mm_xor_si128(bytes, _mm_set1_epi8((char)flip)));
}
#elif SDX_SIMD_LANES == 8
SIMD void quantize_step(const float *x, float scale, int32_t zero, uint8_t flip, uint8_t *y)
{
    const __m256 s = _mm256_set1_ps(scale), lo = _mm256_set1_ps((float)-zero),
                 hi = _mm256_set1_ps((float)(255 - zero));
    store_bytes(y, rounded(_mm256_div_ps(_mm256_loadu_ps(x), s), lo, hi),
                rounded(_mm256_div_ps(_mm256_loadu_ps(x + 8), s), lo, hi),
                _mm256_set1_epi16((short)zero), _mm_set1_epi8((char)flip));
}
#else
SIMD void quantize_step(const float *x, float scale, int32_t zero, uint8_t flip, uint8_t *y)
{
    const float lo = (float)-zero, hi = (float)(255 - zero), magic = 12582912.0f;
    for (int i = 0; i < WIDTH; i++) {
        float v = x[i] / scale;
        v = v > lo ? v : lo;
        v = v < hi ? v : hi;
        y[i] = (uint8_t)(((int32_t)((v + magic) - magic) + zero) ^ flip);
    }
}
#endif
static void quantize(const float *x, float scale, int32_t zero, uint8_t flip, uint8_t *y, size_t n)
{
    size_t i = 0;
    for (; i + WIDTH <= n; i += WIDTH)
        quantize_step(x + i, scale, zero, flip, y + i);
    if (i == n) return;
    float left[WIDTH] = {0};
    uint8_t bytes[WIDTH];
    memcpy(left, x + i, (n - i) * sizeof *x);
    quantize_step(left, scale, zero, flip, bytes);
    memcpy(y + i, bytes, n - i);
}

/* WIDTH elements of a cell; at: where its taps have them. */
#if SDX_SIMD_LANES >= 8
SIMD void blend_step(const struct sdx_qblend *b, const float *x, const int32_t *index,
                     const float *weight, uint8_t *y)
{
    const __m256 lo = _mm256_setzero_ps(), hi = _mm256_set1_ps(255.0f);
    __m256 u = _mm256_set1_ps(b->flip), v = u;
    for (int t = 0; t < b->taps; t++) {
        const float *at = x + index[t] * b->cell;
        const __m256 w = _mm256_set1_ps(weight[t]);
        u = _mm256_add_ps(u, _mm256_mul_ps(_mm256_loadu_ps(at), w));
        v = _mm256_add_ps(v, _mm256_mul_ps(_mm256_loadu_ps(at + 8), w));
    }
    store_bytes(y, rounded(u, lo, hi), rounded(v, lo, hi), _mm256_setzero_si256(),
                _mm_set1_epi8((char)b->flip));
}
#else
SIMD void blend_step(const struct sdx_qblend *b, const float *x, const int32_t *index,
                     const float *weight, uint8_t *y)
{
    float sums[WIDTH];
    for (int i = 0; i < WIDTH; i++) {
        sums[i] = b->flip;
        for (int t = 0; t < b->taps; t++)
            sums[i] += x[index[t] * b->cell + i] * weight[t];
    }
    quantize_step(sums, 1, 0, b->flip, y);
}
#endif
/* What a step has beyond its cell is written again by the next; the last cells go by `left`. */
static void blend(const struct sdx_qblend *job, const float *x, uint8_t *y)
{
    const struct sdx_qblend b = *job; /* bytes that are stored may lie anywhere, but not here */
    const uint8_t *end = y + b.n * b.cell;
    const int32_t *index = b.index;
    const float *weight = b.weight;
    for (int64_t j = 0; j < b.n; j++, y += b.cell, index += b.taps, weight += b.taps)
        for (int64_t c = 0; c < b.cell; c += WIDTH) {
            uint8_t left[WIDTH];
            const bool fits = end - y >= c + WIDTH;
            blend_step(&b, x + c, index, weight, fits ? y + c : left);
            if (!fits) memcpy(y + c, left, (size_t)(b.cell - c < WIDTH ? b.cell - c : WIDTH));
        }
}

#if SDX_SIMD_LANES >= 8
#if SDX_SIMD_LANES == 16
SIMD bytes_in xor_3(bytes_in a, bytes_in b, bytes_in c)
{
    return _mm512_ternarylogic_epi32(a, b, c, 0x96);
}
#else
SIMD bytes_in xor_3(bytes_in a, bytes_in b, bytes_in c)
{
    return _mm256_xor_si256(_mm256_xor_si256(a, b), c);
}
#endif
/* Rows of 16 entries by pshufb, which gives 0 where the index is negative. With the differences of
 * neighbouring rows, the sum (xor) of all rows whose index is not negative yet is the entry. */
SIMD bytes_in looked_up(const bytes_in rows[16], bytes_in low)
{
    const bytes_in sixteen = ALL(set1_epi8)(16);
    bytes_in high = (bytes_in)((vi)low ^ (vi)ALL(set1_epi8)((char)0x80));
    bytes_in sum = ALL(shuffle_epi8)(rows[8], high);
    bytes_in found = ALL(shuffle_epi8)(rows[0], low);
    SDX_UNROLL(8) for (int i = 1; i < 8; i++)
    {
        low = ALL(subs_epi8)(low, sixteen);
        high = ALL(subs_epi8)(high, sixteen);
        found = xor_3(found, ALL(shuffle_epi8)(rows[i], low), ALL(shuffle_epi8)(rows[8 + i], high));
    }
    return (bytes_in)((vi)found ^ (vi)sum);
}
static void lookup(const uint8_t *table, const uint8_t *x, uint8_t *y, size_t n)
{
    bytes_in rows[16];
    for (int i = 0; i < 16; i++) {
        __m128i row = _mm_loadu_si128((const __m128i *)(table + 16 * i));
        if (i % 8)
            row = _mm_xor_si128(row, _mm_loadu_si128((const __m128i *)(table + 16 * i - 16)));
        rows[i] = V_SPREAD(row);
    }
    size_t at = 0;
    for (; at + sizeof *rows <= n; at += sizeof *rows)
        vi_store(y + at, (vi)looked_up(rows, (bytes_in)vi_load(x + at)));
#if SDX_SIMD_LANES == 16
    const __mmask64 left = (1ULL << (n - at)) - 1;
    if (left)
        _mm512_mask_storeu_epi8(y + at, left,
                                looked_up(rows, _mm512_maskz_loadu_epi8(left, x + at)));
#else
    for (; at < n; at++)
        y[at] = table[x[at]];
#endif
}
#else
static void lookup(const uint8_t *table, const uint8_t *x, uint8_t *y, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = table[x[i]];
}
#endif

#if defined(__SSE2__)
/* Rows i and i + 8 interleave, four times over. */
SIMD void transpose_16(const uint8_t *x, size_t pitch_x, uint8_t *y, size_t pitch_y)
{
    __m128i a[16], b[16];
    SDX_UNROLL(16)
    for (size_t i = 0; i < 16; i++)
        a[i] = _mm_loadu_si128((const __m128i *)(x + i * pitch_x));
    SDX_UNROLL(4) for (int round = 0; round < 4; round++)
    {
        SDX_UNROLL(8) for (int i = 0; i < 8; i++)
        {
            b[2 * i] = _mm_unpacklo_epi8(a[i], a[i + 8]);
            b[2 * i + 1] = _mm_unpackhi_epi8(a[i], a[i + 8]);
        }
        SDX_UNROLL(16) for (int i = 0; i < 16; i++) a[i] = b[i];
    }
    SDX_UNROLL(16)
    for (size_t i = 0; i < 16; i++)
        _mm_storeu_si128((__m128i *)(y + i * pitch_y), a[i]);
}
#else
SIMD void transpose_16(const uint8_t *x, size_t pitch_x, uint8_t *y, size_t pitch_y)
{
    for (size_t i = 0; i < 16; i++)
        for (size_t j = 0; j < 16; j++)
            y[j * pitch_y + i] = x[i * pitch_x + j];
}
#endif
static void transpose_edge(const uint8_t *x, size_t pitch_x, uint8_t *y, size_t pitch_y,
                           size_t rows, size_t columns)
{
    for (size_t j = 0; j < columns; j++)
        for (size_t i = 0; i < rows; i++)
            y[j * pitch_y + i] = x[i * pitch_x + j];
}
/* Three rows (the colours of a picture): the common case of few. */
static void transpose_3(const uint8_t *x, size_t pitch_x, uint8_t *y, size_t columns)
{
    for (size_t j = 0; j < columns; j++) {
        y[3 * j] = x[j];
        y[3 * j + 1] = x[pitch_x + j];
        y[3 * j + 2] = x[2 * pitch_x + j];
    }
}
/* And back: the compiler makes vectors of it. */
static void transpose_to_3(const uint8_t *restrict x, uint8_t *restrict y, size_t pitch_y,
                           size_t rows)
{
    uint8_t *restrict y1 = y + pitch_y, *restrict y2 = y1 + pitch_y;
    for (size_t i = 0; i < rows; i++) {
        y[i] = x[3 * i];
        y1[i] = x[3 * i + 1];
        y2[i] = x[3 * i + 2];
    }
}
/* 64 rows by 16 columns: whole lines of y, which may share their place in the cache. */
static SDX_NOINLINE void transpose_64(const uint8_t *x, size_t pitch_x, uint8_t *y, size_t pitch_y)
{
    uint8_t lines[16 * 64];
    SDX_UNROLL(1)
    for (size_t i = 0; i < 64; i += 16)
        transpose_16(x + i * pitch_x, pitch_x, lines + i, 64);
    for (size_t j = 0; j < 16; j++)
        memcpy(y + j * pitch_y, lines + j * 64, 64);
}
static void transpose(const uint8_t *x, size_t pitch_x, uint8_t *y, size_t pitch_y, size_t rows,
                      size_t columns)
{
    if (columns == 3 && pitch_x == 3) {
        transpose_to_3(x, y, pitch_y, rows);
        return;
    }
    if (rows == 3 && pitch_y == 3) {
        transpose_3(x, pitch_x, y, columns);
        return;
    }
    size_t i = 0;
    for (; pitch_y > pitch_x && i + 64 <= rows; i += 64) {
        size_t j = 0;
        for (; j + 16 <= columns; j += 16)
            transpose_64(x + i * pitch_x + j, pitch_x, y + j * pitch_y + i, pitch_y);
        transpose_edge(x + i * pitch_x + j, pitch_x, y + j * pitch_y + i, pitch_y, 64, columns - j);
    }
    for (; i + 16 <= rows; i += 16) {
        size_t j = 0;
        for (; j + 16 <= columns; j += 16)
            transpose_16(x + i * pitch_x + j, pitch_x, y + j * pitch_y + i, pitch_y);
        transpose_edge(x + i * pitch_x + j, pitch_x, y + j * pitch_y + i, pitch_y, 16, columns - j);
    }
    transpose_edge(x + i * pitch_x, pitch_x, y + i, pitch_y, rows - i, columns);
}

static void max(const uint8_t *x, uint8_t flip, uint8_t *y, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const uint8_t a = x[i] ^ flip, b = y[i] ^ flip;
        y[i] = (uint8_t)((a > b ? a : b) ^ flip);
    }
}
static uint32_t sum(const uint8_t *x, uint8_t flip, size_t n)
{
    uint32_t total = 0;
    for (size_t i = 0; i < n; i++)
        total += x[i] ^ flip;
    return total;
}
static void add_up(const uint8_t *x, uint8_t flip, uint32_t *sums, size_t n)
{
    for (size_t i = 0; i < n; i++)
        sums[i] += x[i] ^ flip;
}
static void add_sums(const int32_t *x, int32_t *y, size_t n)
{
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        vi_store(y + i, vi_add(vi_load(x + i), vi_load(y + i)));
    for (; i < n; i++)
        y[i] = (int32_t)((uint32_t)x[i] + (uint32_t)y[i]);
}
static void less_sums(const int32_t *x, int32_t times, int32_t *y, size_t blocks)
{
    const vu each = (vu)vi_set1(times);
    for (size_t i = 0; i < 16 * blocks; i += LANES)
        vi_store(y + i, vi_sub(vi_load(y + i), (vi)((vu)vi_load(x + i) * each)));
}
static void flip(const uint8_t *x, uint8_t flip, uint8_t *y, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = x[i] ^ flip;
}

#if SDX_SIMD_LANES >= 8
SIMD __m128i sixteen_of(const uint8_t *x, __m128i flip)
{
    return _mm_xor_si128(_mm_loadu_si128((const __m128i *)x), flip);
}
/* Four columns' four bytes; adds to their sums. */
SIMD void put_columns(int8_t *y, __m128i bytes, __m128i *sums)
{
    const __m128i pairs = _mm_maddubs_epi16(_mm_set1_epi8(1), bytes);
    *sums = _mm_add_epi32(*sums, _mm_madd_epi16(pairs, _mm_set1_epi16(1)));
    _mm_storeu_si128((__m128i *)y, bytes);
}
/* A step of rows that lie along the columns. */
SIMD void weave_row(const uint8_t *x, size_t step_k, __m128i flip, int8_t *y, __m128i sums[4])
{
    const __m128i a = sixteen_of(x, flip), b = sixteen_of(x + step_k, flip);
    const __m128i c = sixteen_of(x + 2 * step_k, flip), d = sixteen_of(x + 3 * step_k, flip);
    const __m128i low = _mm_unpacklo_epi8(a, b), then = _mm_unpacklo_epi8(c, d);
    const __m128i high = _mm_unpackhi_epi8(a, b), last = _mm_unpackhi_epi8(c, d);
    put_columns(y, _mm_unpacklo_epi16(low, then), sums);
    put_columns(y + 16, _mm_unpackhi_epi16(low, then), sums + 1);
    put_columns(y + 32, _mm_unpacklo_epi16(high, last), sums + 2);
    put_columns(y + 48, _mm_unpackhi_epi16(high, last), sums + 3);
}
/* Four steps of four columns that lie along k. */
SIMD void weave_columns(const uint8_t *x, size_t step_n, __m128i flip, int8_t *y, __m128i *sums)
{
    const __m128i a = sixteen_of(x, flip), b = sixteen_of(x + step_n, flip);
    const __m128i c = sixteen_of(x + 2 * step_n, flip), d = sixteen_of(x + 3 * step_n, flip);
    const __m128i low = _mm_unpacklo_epi32(a, b), then = _mm_unpacklo_epi32(c, d);
    const __m128i high = _mm_unpackhi_epi32(a, b), last = _mm_unpackhi_epi32(c, d);
    put_columns(y, _mm_unpacklo_epi64(low, then), sums);
    put_columns(y + 64, _mm_unpackhi_epi64(low, then), sums);
    put_columns(y + 128, _mm_unpacklo_epi64(high, last), sums);
    put_columns(y + 192, _mm_unpackhi_epi64(high, last), sums);
}
static void weave(const uint8_t *x, size_t step_k, size_t step_n, uint8_t flip, size_t steps,
                  int8_t *y, int32_t *sums)
{
    const __m128i top = _mm_set1_epi8((char)flip);
    __m128i s[4];
    SDX_UNROLL(4) for (int i = 0; i < 4; i++) s[i] = _mm_loadu_si128((__m128i *)sums + i);
    if (step_n == 1)
        for (; steps > 0; steps--, x += 4 * step_k, y += 64)
            weave_row(x, step_k, top, y, s);
    for (; steps >= 4; steps -= 4, x += 16, y += 256)
        SDX_UNROLL(4)
    for (size_t i = 0; i < 4; i++)
        weave_columns(x + 4 * i * step_n, step_n, top, y + 16 * i, s + i);
    for (; steps > 0; steps--, x += 4, y += 64)
        SDX_UNROLL(4) for (size_t i = 0; i < 4; i++)
        {
            uint8_t four[16];
            SDX_UNROLL(4)
            for (size_t j = 0; j < 4; j++)
                memcpy(four + 4 * j, x + (4 * i + j) * step_n, 4);
            put_columns(y + 16 * i, sixteen_of(four, top), s + i);
        }
    SDX_UNROLL(4) for (int i = 0; i < 4; i++) _mm_storeu_si128((__m128i *)sums + i, s[i]);
}
#else
static void weave(const uint8_t *x, size_t step_k, size_t step_n, uint8_t flip, size_t steps,
                  int8_t *y, int32_t *sums)
{
    for (; steps > 0; steps--, x += 4 * step_k, y += 4 * WIDTH)
        for (size_t j = 0; j < WIDTH; j++)
            for (size_t b = 0; b < 4; b++) {
                y[4 * j + b] = (int8_t)(x[b * step_k + j * step_n] ^ flip);
                sums[j] += y[4 * j + b];
            }
}
#endif

void SDX_INIT(sdx_qbytes_init_)(struct sdx_qbytes *qbytes)
{
    *qbytes = (struct sdx_qbytes){.add = add,
                                  .mul = mul,
                                  .affine = affine,
                                  .lookup = lookup,
                                  .quantize = quantize,
                                  .blend = blend,
                                  .transpose = transpose,
                                  .max = max,
                                  .sum = sum,
                                  .add_up = add_up,
                                  .add_sums = add_sums,
                                  .less_sums = less_sums,
                                  .flip = flip,
                                  .weave = weave};
}
