/* SPDX-License-Identifier: Apache-2.0
 * The vector operations kernels are written in, one width a set: generic 4 lanes (the compiler maps
 * them to SSE2, NEON or plain code), avx2 8, avx512 16. Arithmetic, comparison and shifts are the
 * compiler's own operators on vf and vi; here is what those lack. min and max give their second
 * argument when either is NaN, on every set. For files compiled once a set only. */
#ifndef SDX_KERNELS_SIMD_H
#define SDX_KERNELS_SIMD_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/compiler.h"

#if defined(SDX_SET_AVX512) || defined(SDX_SET_AVX2)
#include <immintrin.h>
#elif defined(__SSE2__)
#include <emmintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#ifndef SDX_SIMD_LANES
#if defined(SDX_SET_AVX512)
#define SDX_SIMD_LANES 16
#elif defined(SDX_SET_AVX2)
#define SDX_SIMD_LANES 8
#else
#define SDX_SIMD_LANES 4
#endif
#endif

/* Few x86 machines run the generic set: it is to be small. */
#if SDX_SIMD_LANES == 4 && defined(__SSE2__)
#define SDX_SMALL_SET 1
#endif

/* Keeps v in a register from here on: gcc 12 otherwise folds the load of an operand into each of
 * its uses and so loads it many times. */
#if defined(SDX_SET_AVX512)
#define V_KEEP(v) __asm__("" : "+v"(v))
#elif defined(__SSE2__)
#define V_KEEP(v) __asm__("" : "+x"(v))
#elif defined(__aarch64__)
#define V_KEEP(v) __asm__("" : "+w"(v))
#else
#define V_KEEP(v) (void)(v)
#endif

/* v is in a register up to here, so gcc puts no result over it: it otherwise lets sums take turns
 * with their operands, and then moves and spills them. */
#if defined(SDX_SET_AVX512)
#define V_USE(v) __asm__ volatile("" : : "v"(v))
#elif defined(__SSE2__)
#define V_USE(v) __asm__ volatile("" : : "x"(v))
#elif defined(__aarch64__)
#define V_USE(v) __asm__ volatile("" : : "w"(v))
#else
#define V_USE(v) (void)(v)
#endif

/* 16 bytes in each lane of 128 bits. */
#if defined(SDX_SET_AVX512)
#define V_SPREAD(x) _mm512_broadcast_i32x4(x)
#elif defined(SDX_SET_AVX2)
#define V_SPREAD(x) _mm256_broadcastsi128_si256(x)
#endif

/* Makes a pointer or index a value of its own: gcc otherwise derives many from one and spills them.
 */
#define P_KEEP(p) __asm__("" : "+r"(p))

/* Asks for the line of p in the second cache; p may lie beyond its array. */
#if defined(__GNUC__)
#define V_PREFETCH(p) __builtin_prefetch(p, 0, 2)
#else
#define V_PREFETCH(p) (void)(p)
#endif

/* NEON: 32 registers, and products that take one lane of an operand, so a vector of broadcast
 * values is loaded once for four steps. */
#if defined(__aarch64__) && SDX_SIMD_LANES == 4
#define SDX_SIMD_NEON 1
#endif

enum { LANES = SDX_SIMD_LANES };
typedef float vf __attribute__((vector_size(4 * SDX_SIMD_LANES)));
typedef int32_t vi __attribute__((vector_size(4 * SDX_SIMD_LANES)));
typedef uint32_t vu __attribute__((vector_size(4 * SDX_SIMD_LANES)));
typedef int16_t vs __attribute__((vector_size(4 * SDX_SIMD_LANES)));
typedef double vd __attribute__((vector_size(4 * SDX_SIMD_LANES))); /* LANES / 2 of them */

#define SIMD SDX_INLINE

SIMD vf v_load(const float *p)
{
    vf v;
    memcpy(&v, p, sizeof v);
    return v;
}
SIMD void v_store(float *p, vf v)
{
    memcpy(p, &v, sizeof v);
}
SIMD vi vi_load(const void *p)
{
    vi v;
    memcpy(&v, p, sizeof v);
    return v;
}
SIMD void vi_store(void *p, vi v)
{
    memcpy(p, &v, sizeof v);
}
SIMD vd vd_load(const double *p)
{
    vd v;
    memcpy(&v, p, sizeof v);
    return v;
}
SIMD void vd_store(double *p, vd v)
{
    memcpy(p, &v, sizeof v);
}
SIMD vf v_bits(vi v) /* the same bits as floats */
{
    return (vf)v;
}
SIMD vi vi_bits(vf v)
{
    return (vi)v;
}
SIMD vi vi_add(vi a, vi b) /* modulo 2^32, as is the difference */
{
    return (vi)((vu)a + (vu)b);
}
SIMD vi vi_sub(vi a, vi b)
{
    return (vi)((vu)a - (vu)b);
}
SIMD vi vi_shift16_left(vi a, const int by) /* in each 16 bits */
{
    return (vi)((vs)a << by);
}
SIMD vf v_from_int(vi v)
{
    return __builtin_convertvector(v, vf);
}
SIMD vi v_to_int(vf v) /* towards zero; the value fits */
{
    return __builtin_convertvector(v, vi);
}

#if defined(SDX_SET_AVX512) && SDX_SIMD_LANES == 16
SIMD vf v_set1(float x)
{
    return (vf)_mm512_set1_ps(x);
}
SIMD vi vi_set1(int32_t x)
{
    return (vi)_mm512_set1_epi32(x);
}
SIMD vd vd_set1(double x)
{
    return (vd)_mm512_set1_pd(x);
}
SIMD vf v_fma(vf a, vf b, vf c) /* a * b + c */
{
    return (vf)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
}
SIMD vd vd_fma(vd a, vd b, vd c)
{
    return (vd)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
}
SIMD vf v_min(vf a, vf b)
{
    return (vf)_mm512_min_ps((__m512)a, (__m512)b);
}
SIMD vf v_max(vf a, vf b)
{
    return (vf)_mm512_max_ps((__m512)a, (__m512)b);
}
SIMD vf v_sqrt(vf a)
{
    return (vf)_mm512_sqrt_ps((__m512)a);
}
SIMD vf v_select(vi mask, vf yes, vf no) /* lanes of mask are 0 or -1 */
{
    return (vf)_mm512_mask_blend_ps(_mm512_movepi32_mask((__m512i)mask), (__m512)no, (__m512)yes);
}
/* acc + a0 * b0 + a1 * b1 for the two 16-bit halves of each lane */
SIMD vi vi_dot16(vi acc, vi a, vi b)
{
    return vi_add(acc, (vi)_mm512_madd_epi16((__m512i)a, (__m512i)b));
}
/* acc + a0 * b0 + a1 * b1 in each 16 bits for their two bytes, those of a unsigned; the products'
 * sum fits */
SIMD vi vi_dot8(vi acc, vi a, vi b)
{
    return (vi)_mm512_add_epi16((__m512i)acc, _mm512_maddubs_epi16((__m512i)a, (__m512i)b));
}
#elif defined(SDX_SET_AVX2) && SDX_SIMD_LANES == 8
SIMD vf v_set1(float x)
{
    return (vf)_mm256_set1_ps(x);
}
SIMD vi vi_set1(int32_t x)
{
    return (vi)_mm256_set1_epi32(x);
}
SIMD vd vd_set1(double x)
{
    return (vd)_mm256_set1_pd(x);
}
SIMD vf v_fma(vf a, vf b, vf c)
{
    return (vf)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
}
SIMD vd vd_fma(vd a, vd b, vd c)
{
    return (vd)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
}
SIMD vf v_min(vf a, vf b)
{
    return (vf)_mm256_min_ps((__m256)a, (__m256)b);
}
SIMD vf v_max(vf a, vf b)
{
    return (vf)_mm256_max_ps((__m256)a, (__m256)b);
}
SIMD vf v_sqrt(vf a)
{
    return (vf)_mm256_sqrt_ps((__m256)a);
}
SIMD vf v_select(vi mask, vf yes, vf no)
{
    return (vf)_mm256_blendv_ps((__m256)no, (__m256)yes, (__m256)mask);
}
SIMD vi vi_dot16(vi acc, vi a, vi b)
{
    return vi_add(acc, (vi)_mm256_madd_epi16((__m256i)a, (__m256i)b));
}
SIMD vi vi_dot8(vi acc, vi a, vi b)
{
    return (vi)_mm256_add_epi16((__m256i)acc, _mm256_maddubs_epi16((__m256i)a, (__m256i)b));
}
#else
#if SDX_SIMD_LANES == 4
SIMD vf v_set1(float x)
{
    return (vf){x, x, x, x};
}
SIMD vi vi_set1(int32_t x)
{
    return (vi){x, x, x, x};
}
SIMD vd vd_set1(double x)
{
    return (vd){x, x};
}
#else
SIMD vf v_set1(float x)
{
    vf v;
    for (int i = 0; i < LANES; i++)
        v[i] = x;
    return v;
}
SIMD vi vi_set1(int32_t x)
{
    vi v;
    for (int i = 0; i < LANES; i++)
        v[i] = x;
    return v;
}
SIMD vd vd_set1(double x)
{
    vd v;
    for (int i = 0; i < LANES / 2; i++)
        v[i] = x;
    return v;
}
#endif
#ifdef SDX_SIMD_NEON
SIMD vf v_fma(vf a, vf b, vf c)
{
    return (vf)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
}
SIMD vd vd_fma(vd a, vd b, vd c)
{
    return (vd)vfmaq_f64((float64x2_t)c, (float64x2_t)a, (float64x2_t)b);
}
SIMD vf v_fma_lane(vf a, vf b, const int lane, vf c) /* a * b[lane] + c */
{
    return v_fma(a, v_set1(b[lane]), c);
}
#else
SIMD vf v_fma(vf a, vf b, vf c) /* without the instruction: two roundings */
{
    return a * b + c;
}
SIMD vd vd_fma(vd a, vd b, vd c)
{
    return a * b + c;
}
#endif
SIMD vf v_select(vi mask, vf yes, vf no)
{
    return (vf)((mask & (vi)yes) | (~mask & (vi)no));
}
#if defined(__SSE2__) && SDX_SIMD_LANES == 4
SIMD vf v_min(vf a, vf b)
{
    return (vf)_mm_min_ps((__m128)a, (__m128)b);
}
SIMD vf v_max(vf a, vf b)
{
    return (vf)_mm_max_ps((__m128)a, (__m128)b);
}
SIMD vf v_sqrt(vf a)
{
    return (vf)_mm_sqrt_ps((__m128)a);
}
SIMD vi vi_dot16(vi acc, vi a, vi b)
{
    return vi_add(acc, (vi)_mm_madd_epi16((__m128i)a, (__m128i)b));
}
#else
SIMD vf v_min(vf a, vf b)
{
    return v_select(a < b, a, b);
}
SIMD vf v_max(vf a, vf b)
{
    return v_select(a > b, a, b);
}
#ifdef SDX_SIMD_NEON
SIMD vf v_sqrt(vf a)
{
    return (vf)vsqrtq_f32((float32x4_t)a);
}
SIMD vi vi_dot16(vi acc, vi a, vi b)
{
    const int16x8_t x = (int16x8_t)a, y = (int16x8_t)b;
    const int32x4_t low = vmull_s16(vget_low_s16(x), vget_low_s16(y)), high = vmull_high_s16(x, y);
    return vi_add(acc, (vi)vpaddq_s32(low, high));
}
#else
SIMD vf v_sqrt(vf a)
{
    for (int i = 0; i < LANES; i++)
        a[i] = sqrtf(a[i]);
    return a;
}
SIMD vi vi_dot16(vi acc, vi a, vi b)
{
    return vi_add(acc, vi_add(((a << 16) >> 16) * ((b << 16) >> 16), (a >> 16) * (b >> 16)));
}
#endif
#endif
SIMD vi vi_dot8(vi acc, vi a, vi b)
{
    const vs x = (vs)a, y = (vs)b;
    return (vi)((vs)acc + (x & 255) * ((y << 8) >> 8) + ((x >> 8) & 255) * (y >> 8));
}
#endif

/* LANES numbers of 16 bits: f16, exact, with NaNs made quiet; bf16; integers. */
typedef uint16_t vh __attribute__((vector_size(2 * SDX_SIMD_LANES)));
SIMD vu vu_load_16(const uint16_t *p)
{
#if defined(SDX_SET_AVX512) && SDX_SIMD_LANES == 16 /* gcc 12 converts in halves */
    return (vu)_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)p));
#elif defined(SDX_SET_AVX2) && SDX_SIMD_LANES == 8
    return (vu)_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p));
#else
    vh v;
    memcpy(&v, p, sizeof v);
    return __builtin_convertvector(v, vu);
#endif
}
SIMD vf v_load_f16(const uint16_t *p)
{
#if defined(SDX_SET_AVX512) && SDX_SIMD_LANES == 16
    return (vf)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p));
#elif defined(SDX_SET_AVX2) && SDX_SIMD_LANES == 8
    return (vf)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p));
#elif defined(SDX_SIMD_NEON)
    return (vf)vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p)));
#else
    const vi bits = (vi)vu_load_16(p), rest = (bits & vi_set1(0x7fff)) << 13;
    const vi sign = (bits & vi_set1(0x8000)) << 16;
    const vi least = vi_set1(0x00800000), most = vi_set1(0x0f800000);
    const vi top = (rest >= most) & vi_set1(0x38000000); /* infinity, NaN */
    const vi quiet = (rest > most) & vi_set1(0x00400000);
    const vf tiny = v_from_int(bits & vi_set1(0x7fff)) * v_set1(5.9604644775390625e-8f);
    const vf normal = v_bits(vi_add(vi_add(rest, vi_set1(0x38000000)), top) | quiet);
    return v_bits(vi_bits(v_select(rest < least, tiny, normal)) | sign);
#endif
}
SIMD vf v_load_bf16(const uint16_t *p)
{
    return (vf)(vu_load_16(p) << 16);
}
SIMD vf v_load_i8(const int8_t *p)
{
#if defined(SDX_SET_AVX512) && SDX_SIMD_LANES == 16
    return v_from_int((vi)_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)p)));
#elif defined(SDX_SET_AVX2) && SDX_SIMD_LANES == 8
    return v_from_int((vi)_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)p)));
#else
    int8_t v __attribute__((vector_size(SDX_SIMD_LANES)));
    memcpy(&v, p, sizeof v);
    return v_from_int(__builtin_convertvector(v, vi));
#endif
}

/* The first n <= LANES of them: the other lanes are `fill`, or stay as they are in memory. */
#if defined(SDX_SET_AVX2) && SDX_SIMD_LANES == 8
SIMD vi v_first(size_t n)
{
    static const int32_t ones[2 * LANES] = {-1, -1, -1, -1, -1, -1, -1, -1};
    return vi_load(ones + LANES - n);
}
#endif
SIMD vf v_load_masked(const float *p, size_t n, float fill)
{
#if defined(SDX_SET_AVX512) && SDX_SIMD_LANES == 16
    return (vf)_mm512_mask_loadu_ps((__m512)v_set1(fill), (__mmask16)((1u << n) - 1), p);
#elif defined(SDX_SET_AVX2) && SDX_SIMD_LANES == 8
    const vi mask = v_first(n);
    return v_select(mask, (vf)_mm256_maskload_ps(p, (__m256i)mask), v_set1(fill));
#else
    float t[LANES];
    v_store(t, v_set1(fill));
    memcpy(t, p, n * sizeof(float));
    return v_load(t);
#endif
}
SIMD void v_store_masked(float *p, vf v, size_t n)
{
#if defined(SDX_SET_AVX512) && SDX_SIMD_LANES == 16
    _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1), (__m512)v);
#elif defined(SDX_SET_AVX2) && SDX_SIMD_LANES == 8
    /* the masked store takes AMD's cores up to 20 cycles */
    __m128 part = _mm256_castps256_ps128((__m256)v);
    if (n == LANES) {
        v_store(p, v);
        return;
    }
    if (n & 4) {
        _mm_storeu_ps(p, part);
        part = _mm256_extractf128_ps((__m256)v, 1);
        p += 4;
    }
    if (n & 2) {
        _mm_storel_pi((__m64 *)p, part);
        part = _mm_movehl_ps(part, part);
        p += 2;
    }
    if (n & 1) _mm_store_ss(p, part);
#else
    float t[LANES];
    v_store(t, v);
    memcpy(p, t, n * sizeof(float));
#endif
}

SIMD bool v_any(vi mask) /* is a lane of 0s and -1s set? */
{
#if defined(SDX_SET_AVX512) && SDX_SIMD_LANES == 16
    return _mm512_movepi32_mask((__m512i)mask) != 0;
#elif defined(SDX_SET_AVX2) && SDX_SIMD_LANES == 8
    return _mm256_movemask_ps((__m256)mask) != 0;
#elif defined(__SSE2__) && SDX_SIMD_LANES == 4
    return _mm_movemask_ps((__m128)mask) != 0;
#elif defined(SDX_SIMD_NEON)
    return vmaxvq_u32((uint32x4_t)mask) != 0;
#else
    int32_t any = 0;
    for (int i = 0; i < LANES; i++)
        any |= mask[i];
    return any != 0;
#endif
}
SIMD vi v_lane(void) /* the number of each lane */
{
    vi v;
    for (int i = 0; i < LANES; i++)
        v[i] = i;
    return v;
}
SIMD vf v_permute(vf a, vi from) /* lane i: lane from[i] of a */
{
#if defined(SDX_SET_AVX512) && SDX_SIMD_LANES == 16
    return (vf)_mm512_permutexvar_ps((__m512i)from, (__m512)a);
#elif defined(SDX_SET_AVX2) && SDX_SIMD_LANES == 8
    return (vf)_mm256_permutevar8x32_ps((__m256)a, (__m256i)from);
#elif defined(SDX_SIMD_NEON) /* by bytes */
    const vi bytes = from * vi_set1(0x04040404) + vi_set1(0x03020100);
    return (vf)vqtbl1q_u8((uint8x16_t)a, (uint8x16_t)bytes);
#else
    vi to = vi_set1(0);
    SDX_UNROLL(4)
    for (int i = 0; i < LANES; i++)
        to |= vi_set1(vi_bits(a)[i]) & (from == vi_set1(i));
    return v_bits(to);
#endif
}
SIMD vf v_sign(vf a) /* the sign bit alone */
{
    return v_bits(vi_bits(a) & vi_set1(INT32_MIN));
}
SIMD vf v_abs(vf a)
{
    return v_bits(vi_bits(a) & vi_set1(INT32_MAX));
}
SIMD vf v_neg(vf a)
{
    return v_bits(vi_bits(a) ^ vi_set1(INT32_MIN));
}
SIMD vf v_or(vf a, vf b)
{
    return v_bits(vi_bits(a) | vi_bits(b));
}
#endif
