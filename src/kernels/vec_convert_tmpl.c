/* SPDX-License-Identifier: Apache-2.0
 * Conversions of vec.h and the transposition of 4-byte elements. Once an instruction set. NaNs come
 * out quiet with their leading bits, as the f16 instructions of x86 do. */
#include "kernels/simd.h"
#include "kernels/tables.h"
#include "kernels/transpose.h"

static inline uint32_t bits_of(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}
static inline float float_of(uint32_t u)
{
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}
static inline float one_f16_to_f32(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, rest = (uint32_t)(h & 0x7fff) << 13;
    if (rest >= 0x0f800000) { /* infinity, NaN */
        uint32_t quiet = rest > 0x0f800000 ? 0x00400000u : 0;
        return float_of(sign | quiet | (rest + 0x70000000));
    }
    if (rest < 0x00800000) /* zero, denormal: exact in f32 */
        return float_of(sign | bits_of((float)(rest >> 13) * 5.9604644775390625e-8f));
    return float_of(sign | (rest + 0x38000000));
}
static inline uint16_t one_f32_to_f16(float x)
{
    uint32_t u = bits_of(x), sign = u >> 16 & 0x8000, rest = u & 0x7fffffff;
    if (rest > 0x7f800000) return (uint16_t)(sign | 0x7e00 | (rest >> 13 & 0x3ff));
    if (rest >= 0x47800000) return (uint16_t)(sign | 0x7c00);
    if (rest < 0x38800000) { /* denormal: adding 0.5 leaves the rounded value in the low bits */
        return (uint16_t)(sign | (bits_of(float_of(rest) + 0.5f) - 0x3f000000));
    }
    rest += 0xc8000fff + (rest >> 13 & 1);
    return (uint16_t)(sign | rest >> 13);
}

static void f16_to_f32(const uint16_t *x, float *y, size_t n)
{
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        v_store(y + i, v_load_f16(x + i));
    for (; i < n; i++)
        y[i] = one_f16_to_f32(x[i]);
}
static void f32_to_f16(const float *x, uint16_t *y, size_t n)
{
    size_t i = 0;
#if defined(SDX_SET_AVX2) || defined(SDX_SET_AVX512)
    for (; i + 8 <= n; i += 8)
        _mm_storeu_si128((__m128i *)(y + i), _mm256_cvtps_ph(_mm256_loadu_ps(x + i), 0));
#endif
    for (; i < n; i++)
        y[i] = one_f32_to_f16(x[i]);
}
static void bf16_to_f32(const uint16_t *x, float *y, size_t n)
{
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        v_store(y + i, v_load_bf16(x + i));
    for (; i < n; i++)
        y[i] = float_of((uint32_t)x[i] << 16);
}
static void f32_to_bf16(const float *x, uint16_t *y, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t u = bits_of(x[i]), rounded = (u + 0x7fff + (u >> 16 & 1)) >> 16;
        y[i] = (uint16_t)((u & 0x7fffffff) > 0x7f800000 ? u >> 16 | 0x40 : rounded);
    }
}

#define FROM_BYTES(name, type)                                                                     \
    static void name(const type *x, float scale, int32_t zero, float *y, size_t n)                 \
    {                                                                                              \
        for (size_t i = 0; i < n; i++)                                                             \
            y[i] = (float)(x[i] - zero) * scale;                                                   \
    }
FROM_BYTES(u8_to_f32, uint8_t)
FROM_BYTES(s8_to_f32, int8_t)

static void u8_mix(const uint8_t *const *rows, uint8_t flip, float shift, const float *w, int count,
                   float *y, size_t n)
{
    const uint8_t *a = rows[0], *b = rows[count > 1];
    const float v = w[0], u = count > 1 ? w[1] : 0;
    for (size_t i = 0; i < n; i++)
        y[i] = shift + (float)(a[i] ^ flip) * v + (float)(b[i] ^ flip) * u;
    for (int r = 2; r < count; r++)
        for (size_t i = 0; i < n; i++)
            y[i] += (float)(rows[r][i] ^ flip) * w[r];
}
/* `cols` < SIDE columns of SIDE rows, behind which there is more of src to read. */
SIMD void turn_few_columns(const void *src, size_t stride, void *dst, size_t stride_dst,
                           size_t cols)
{
    uint32_t square[SIDE * SIDE];
    turn(src, stride, square, SIDE);
    for (size_t e = 0; e < cols; e++)
        memcpy((char *)dst + 4 * e * stride_dst, square + e * SIDE, SIDE * sizeof *square);
}
static size_t whole_sides(size_t cols)
{
    return (cols + SIDE - 1) / SIDE * SIDE;
}
enum { TILE = 32, FAR = 1024 /* elements between rows that share their place in the cache */ };
/* TILE rows by `cols` <= SIDE columns, whole lines of dst at a time; SIDE of src are read. */
static SDX_NOINLINE void turn_lines(const void *src, size_t stride, void *dst, size_t stride_dst,
                                    size_t cols)
{
    uint32_t lines[SIDE * TILE];
    SDX_UNROLL(1)
    for (size_t i = 0; i < TILE; i += SIDE)
        turn((const char *)src + 4 * i * stride, stride, lines + i, TILE);
    for (size_t j = 0; j < cols; j++)
        SDX_UNROLL(8) for (size_t i = 0; i < TILE; i += SIDE)
        {
            turn_row part; /* as it was written: no wait for two stores */
            memcpy(&part, lines + j * TILE + i, sizeof part);
            memcpy((char *)dst + 4 * (j * stride_dst + i), &part, sizeof part);
        }
}
#if SDX_SIMD_LANES >= 8
#define EVEN(a, b)  __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14)
#define ODD(a, b)   __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15)
#define FIRST(a, b) __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define LAST(a, b)  __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15)
#else
#define EVEN(a, b)  __builtin_shufflevector(a, b, 0, 2, 4, 6)
#define ODD(a, b)   __builtin_shufflevector(a, b, 1, 3, 5, 7)
#define FIRST(a, b) __builtin_shufflevector(a, b, 0, 4, 1, 5)
#define LAST(a, b)  __builtin_shufflevector(a, b, 2, 6, 3, 7)
#endif
typedef uint32_t element SDX_ANYWHERE;
/* n pairs that lie together, their first elements to one row and their second ones to another; or
 * two rows to pairs. */
static void pairs_apart(const element *src, element *first, element *second, size_t n)
{
    turn_row a, b, c;
    size_t i = 0;
    for (; i + SIDE <= n; i += SIDE) {
        memcpy(&a, src + 2 * i, sizeof a);
        memcpy(&b, src + 2 * i + SIDE, sizeof b);
        c = EVEN(a, b);
        memcpy(first + i, &c, sizeof c);
        c = ODD(a, b);
        memcpy(second + i, &c, sizeof c);
    }
    for (; i < n; i++) {
        first[i] = src[2 * i];
        second[i] = src[2 * i + 1];
    }
}
static void pairs_joined(const element *first, const element *second, element *dst, size_t n)
{
    turn_row a, b, c;
    size_t i = 0;
    for (; i + SIDE <= n; i += SIDE) {
        memcpy(&a, first + i, sizeof a);
        memcpy(&b, second + i, sizeof b);
        c = FIRST(a, b);
        memcpy(dst + 2 * i, &c, sizeof c);
        c = LAST(a, b);
        memcpy(dst + 2 * i + SIDE, &c, sizeof c);
    }
    for (; i < n; i++) {
        dst[2 * i] = first[i];
        dst[2 * i + 1] = second[i];
    }
}
/* Three or four rows to columns that lie together: each is written as four, and what is too much
 * overwritten by the next one. */
static void rows_joined(const element *src, size_t stride, element *dst, size_t rows, size_t cols)
{
    size_t j = 0;
    for (; j + SIDE < cols; j += SIDE) {
        turn_row a[4], q[4];
        SDX_UNROLL(4)
        for (size_t i = 0; i < 4; i++)
            memcpy(&a[i], src + (i < rows ? i : 0) * stride + j, sizeof a[i]);
        turn_rows(a, q);
        SDX_UNROLL(8)
        for (size_t c = 0; c < SIDE; c++)
            memcpy(dst + (j + c) * rows, (const char *)&q[c % 4] + c / 4 * 16, 16);
    }
    for (; j < cols; j++)
        for (size_t i = 0; i < rows; i++)
            dst[j * rows + i] = src[i * stride + j];
}
/* In squares of 32, whose lines on both sides stay in the first cache. */
static void b32_transpose(const void *src_, size_t stride, void *dst_, size_t stride_dst,
                          size_t rows, size_t cols)
{
    const element *src = src_;
    element *dst = dst_;
    const size_t last = rows > 0 ? (rows - 1) * stride + cols : 0;
    if (cols == 2 && stride == 2) {
        pairs_apart(src, dst, dst + stride_dst, rows);
        return;
    }
    if (rows == 2 && stride_dst == 2) {
        pairs_joined(src, src + stride, dst, cols);
        return;
    }
    if ((rows == 3 || rows == 4) && stride_dst == rows) {
        rows_joined(src, stride, dst, rows, cols);
        return;
    }
    for (size_t i0 = 0; i0 < rows; i0 += TILE) {
        size_t i1 = i0 + TILE < rows ? i0 + TILE : rows;
        for (size_t j0 = 0; j0 < cols; j0 += TILE) {
            size_t j1 = j0 + TILE < cols ? j0 + TILE : cols, i = i0, j = j0;
            if (stride_dst >= FAR && i1 - i0 == TILE &&
                (i1 - 1) * stride + j0 + whole_sides(j1 - j0) <= last) {
                for (; j < j1; j += SIDE)
                    turn_lines(src + i0 * stride + j, stride, dst + j * stride_dst + i0, stride_dst,
                               j1 - j < SIDE ? j1 - j : SIDE);
                continue;
            }
            for (; i < i1 && SIDE <= i1; i += SIDE) {
                if (i + SIDE > i1) i = i1 - SIDE; /* rows that are there once more */
                for (j = j0; j + SIDE <= j1; j += SIDE)
                    turn(src + i * stride + j, stride, dst + j * stride_dst + i, stride_dst);
                if (j < j1 && (i + SIDE - 1) * stride + j + SIDE <= last)
                    turn_few_columns(src + i * stride + j, stride, dst + j * stride_dst + i,
                                     stride_dst, j1 - j);
                else
                    for (; j < j1; j++)
                        for (size_t e = i; e < i + SIDE; e++)
                            dst[j * stride_dst + e] = src[e * stride + j];
            }
            for (; i < i1; i++)
                for (j = j0; j < j1; j++)
                    dst[j * stride_dst + i] = src[i * stride + j];
        }
    }
}

void SDX_INIT(sdx_vec_convert_init_)(struct sdx_vec *vec)
{
    vec->f16_to_f32 = f16_to_f32;
    vec->f32_to_f16 = f32_to_f16;
    vec->bf16_to_f32 = bf16_to_f32;
    vec->f32_to_bf16 = f32_to_bf16;
    vec->u8_to_f32 = u8_to_f32;
    vec->s8_to_f32 = s8_to_f32;
    vec->u8_mix = u8_mix;
    vec->b32_transpose = b32_transpose;
}
