/* SPDX-License-Identifier: Apache-2.0
 * The kernels of elements.h: plain loops of a known length, so that the compiler needs no code for
 * what is left over. Once an instruction set. */
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/compiler.h"
#include "kernels/tables.h"

/* An element is read before any is written in its place. */
#if defined(__clang__)
#define INDEPENDENT SDX_PRAGMA(clang loop vectorize(assume_safety))
#elif defined(__GNUC__)
#define INDEPENDENT SDX_PRAGMA(GCC ivdep)
#else
#define INDEPENDENT
#endif

enum { BLOCK = SDX_ELEMENT_BLOCK };
/* TURN: elements of a loop that the compiler makes vectors of; more is longer code only. */
#define KERNEL(name, prepare, advance, expression)                                                 \
    static void run_##name(const void *const *in, const size_t *step, void *out, size_t blocks,    \
                           const float *arg)                                                       \
    {                                                                                              \
        (void)step;                                                                                \
        (void)arg;                                                                                 \
        prepare;                                                                                   \
        enum { TURN = sizeof *a + sizeof *r == 2 ? 32 : 16 };                                      \
        for (; blocks; blocks--) {                                                                 \
            SDX_PRAGMA(GCC unroll 1)                                                               \
            for (int turn = 0; turn < BLOCK; turn += TURN) {                                       \
                INDEPENDENT                                                                        \
                for (int i = turn; i < turn + TURN; i++)                                           \
                    r[i] = expression;                                                             \
            }                                                                                      \
            advance;                                                                               \
            r += BLOCK;                                                                            \
        }                                                                                          \
    }
#define UNARY(name, A, R, expression)                                                              \
    static inline R one_##name(const A x, const float u, const float v)                            \
    {                                                                                              \
        (void)u;                                                                                   \
        (void)v;                                                                                   \
        return (R)(expression);                                                                    \
    }                                                                                              \
    KERNEL(name, const A *a = in[0]; R *r = out; const float u = arg[0];                           \
           const float v = arg[1], a += step[0], one_##name(a[i], u, v))
#define BINARY(name, A, R, expression)                                                             \
    static inline R one_##name(const A x, const A y)                                               \
    {                                                                                              \
        return (R)(expression);                                                                    \
    }                                                                                              \
    KERNEL(name, const A *a = in[0]; const A *b = in[1];                                           \
           R *r = out, (a += step[0], b += step[1]), one_##name(a[i], b[i]))
#define WHERE(name, T)                                                                             \
    KERNEL(name, const uint8_t *c = in[0]; const T *a = in[1]; const T *b = in[2];                 \
           T *r = out, (c += step[0], a += step[1], b += step[2]),                                 \
           (T)((a[i] & (T)(c[i] ? -1 : 0)) | (b[i] & (T)(c[i] ? 0 : -1))))

/* x, or -2^31 or -2^63 where the integer has no room for it */
#define WITHIN(x, limit) ((x) >= -(limit) && (x) < (limit) ? (x) : -(limit))

/* The nearest whole number, the even one of two, from `low` to `high`, both below 2^22 in size; NaN
 * gives the least. */
static inline int32_t rounded(float x, float low, float high)
{
    x = x > low ? x : low;
    x = x < high ? x : high;
    return (int32_t)(x + 0x1.8p23f - 0x1.8p23f);
}

UNARY(bool_f32, uint8_t, float, x != 0)
UNARY(bool_i32, uint8_t, int32_t, x != 0)
UNARY(bool_i64, uint8_t, int64_t, x != 0)
UNARY(i32_f32, int32_t, float, x)
UNARY(i32_i64, int32_t, int64_t, x)
UNARY(i64_f32, int64_t, float, x)
UNARY(i64_i32, int64_t, int32_t, x)
UNARY(i64_bool, int64_t, uint8_t, x != 0)
UNARY(u8_i64, uint8_t, int64_t, x)
UNARY(i32_u8, int32_t, uint8_t, x)
UNARY(u16_scaled, uint16_t, float, ((float)x - u) * v)
UNARY(i16_scaled, int16_t, float, ((float)x - u) * v)
UNARY(f32_quantized_u16, float, uint16_t, rounded(x / v, 0 - u, 65535 - u) + (int32_t)u)
UNARY(f32_quantized_i16, float, int16_t, rounded(x / v, -32768 - u, 32767 - u) + (int32_t)u)
UNARY(f32_u8, float, uint8_t, (int32_t)WITHIN(x, 0x1p31f))
UNARY(f32_i32, float, int32_t, WITHIN(x, 0x1p31f))
UNARY(f32_bool, float, uint8_t, x != 0)
UNARY(f32_f64, float, double, x)
UNARY(f64_f32, double, float, x)
UNARY(bool_not, uint8_t, uint8_t, !x)
UNARY(f32_is_nan, float, uint8_t, x != x)
UNARY(f32_is_inf, float, uint8_t, (x == u) | (x == v))
UNARY(f32_sign, float, float, x > 0 ? 1 : x < 0 ? -1 : x)
UNARY(f32_shrink, float, float, x<-v ? x + u : x> v ? x - u : 0)
UNARY(i32_abs, int32_t, uint32_t, x < 0 ? 0 - (uint32_t)x : (uint32_t)x)
UNARY(i64_abs, int64_t, uint64_t, x < 0 ? 0 - (uint64_t)x : (uint64_t)x)
UNARY(i32_sign, int32_t, int32_t, (x > 0) - (x < 0))
UNARY(f64_sqrt, double, double, sqrt(x))
UNARY(f64_round, double, double, rint(x))

BINARY(bool_and, uint8_t, uint8_t, (x != 0) & (y != 0))
BINARY(bool_or, uint8_t, uint8_t, (x | y) != 0)
BINARY(bool_xor, uint8_t, uint8_t, (x != 0) ^ (y != 0))
BINARY(bool_equal, uint8_t, uint8_t, (x == 0) == (y == 0))
BINARY(equal_1, uint8_t, uint8_t, x == y)
BINARY(equal_2, uint16_t, uint8_t, x == y)
BINARY(equal_4, uint32_t, uint8_t, x == y)
BINARY(equal_8, uint64_t, uint8_t, x == y)
BINARY(f32_equal, float, uint8_t, x == y)
BINARY(f32_less, float, uint8_t, x < y)
BINARY(i32_less, int32_t, uint8_t, x < y)
BINARY(i64_less, int64_t, uint8_t, x < y)
BINARY(f32_less_equal, float, uint8_t, x <= y)
BINARY(b32_add, uint32_t, uint32_t, x + y)
BINARY(b32_sub, uint32_t, uint32_t, x - y)
BINARY(b32_mul, uint32_t, uint32_t, x *y)
BINARY(b64_add, uint64_t, uint64_t, x + y)
BINARY(b64_sub, uint64_t, uint64_t, x - y)
BINARY(b64_mul, uint64_t, uint64_t, x *y)
BINARY(i32_max, int32_t, int32_t, x > y ? x : y)
BINARY(i32_min, int32_t, int32_t, x < y ? x : y)
BINARY(i64_max, int64_t, int64_t, x > y ? x : y)
BINARY(i64_min, int64_t, int64_t, x < y ? x : y)
BINARY(f64_add, double, double, x + y)
BINARY(f64_sub, double, double, x - y)
BINARY(f64_mul, double, double, x *y)
BINARY(f64_div, double, double, x / y)
BINARY(f64_max, double, double, (x > y) | (x != x) ? x : y)
BINARY(f64_min, double, double, (x < y) | (x != x) ? x : y)
BINARY(u8_max, uint8_t, uint8_t, x > y ? x : y)
BINARY(u8_min, uint8_t, uint8_t, x < y ? x : y)
BINARY(bits_and, uint8_t, uint8_t, x &y)
BINARY(bits_or, uint8_t, uint8_t, x | y)
BINARY(bits_xor, uint8_t, uint8_t, x ^ y)

WHERE(where_1, uint8_t)
WHERE(where_2, uint16_t)
WHERE(where_4, uint32_t)
WHERE(where_8, uint64_t)

/* Of what an i32 holds, by way of it: few sets have the conversion to an i64. */
static void run_f32_i64(const void *const *in, const size_t *step, void *out, size_t blocks,
                        const float *arg)
{
    const float *a = in[0];
    int64_t *r = out;
    (void)arg;
    for (; blocks; blocks--, a += step[0], r += BLOCK) {
        int32_t small[BLOCK], is_small = -1;
        for (int i = 0; i < BLOCK; i++) {
            is_small &= -(a[i] < 0x1p31f) & -(a[i] > -0x1p31f);
            small[i] = (int32_t)WITHIN(a[i], 0x1p31f);
        }
        for (int i = 0; is_small && i < BLOCK; i++)
            r[i] = small[i];
        for (int i = 0; !is_small && i < BLOCK; i++)
            r[i] = (int64_t)WITHIN(a[i], 0x1p63f);
    }
}

static const double to_whole = 0x1.8p52; /* added and taken away: the nearest whole number */
#define LN2 0.69314718055994530942

static inline double of_bits(int64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}
static inline int64_t to_bits(double x)
{
    int64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* A quotient of less than 2^29, rounded to a whole number, times y is exact in f64, and so is what
 * is left: from -y / 2 on, or a little less. Blocks with other quotients, or an infinity or NaN,
 * are libm's. Each loop has elements of one size, or the compiler makes no vectors of it. */
static void run_f32_fmod(const void *const *in, const size_t *step, void *out, size_t blocks,
                         const float *arg)
{
    const float *a = in[0], *b = in[1];
    float *r = out;
    (void)arg;
    for (; blocks; blocks--, a += step[0], b += step[1], r += BLOCK) {
        double x[BLOCK], y[BLOCK];
        int64_t fits = -1;
        for (int i = 0; i < BLOCK; i++)
            x[i] = fabsf(a[i]);
        for (int i = 0; i < BLOCK; i++)
            y[i] = fabsf(b[i]);
        for (int i = 0; i < BLOCK; i++) {
            const double q = x[i] / y[i], left = x[i] - (q + to_whole - to_whole) * y[i];
            fits &= -(int64_t)(q < 0x1p29) & -(int64_t)(y[i] < INFINITY);
            x[i] = left < 0 ? left + y[i] : left;
        }
        if (fits)
            for (int i = 0; i < BLOCK; i++)
                r[i] = copysignf((float)x[i], a[i]);
        else
            for (int i = 0; i < BLOCK; i++)
                r[i] = fmodf(a[i], b[i]);
    }
}

/* log2(x) of numbers above 0, to 2e-12: the exponent, and of what is left, m in [1 / sqrt(2),
 * sqrt(2)), 2 / ln(2) artanh((m - 1) / (m + 1)). */
static inline void logarithms(const double *x, double *r)
{
    const uint64_t half = UINT64_C(0x3fe6a09e667f3bcd); /* bits of 1 / sqrt(2) */
    const uint64_t mantissa = (UINT64_C(1) << 52) - 1, zero = (uint64_t)to_bits(0x1p52);
    INDEPENDENT
    for (int i = 0; i < BLOCK; i++) {
        const uint64_t from = (uint64_t)to_bits(x[i]) - half;
        const int64_t low = (int64_t)((from & mantissa) + half);
        /* the exponent in 12 bits, of which the sign is turned */
        const uint64_t exponent = (from >> 52) ^ 0x800;
        const double e = of_bits((int64_t)(exponent | zero)) - (0x1p52 + 0x800);
        const double m = of_bits(low), z = (m - 1) / (m + 1), s = z * z;
        double sum = s * (2 / (13 * LN2)) + 2 / (11 * LN2);
        sum = sum * s + 2 / (9 * LN2);
        sum = sum * s + 2 / (7 * LN2);
        sum = sum * s + 2 / (5 * LN2);
        sum = sum * s + 2 / (3 * LN2);
        sum = sum * s + 2 / LN2;
        r[i] = sum * z + e;
    }
}

/* 2^x, x in [-1000, 1000], to 1e-11 of it. */
static inline void powers_of_2(double *x)
{
    INDEPENDENT
    for (int i = 0; i < BLOCK; i++) {
        const double n = x[i] + to_whole, f = (x[i] - (n - to_whole)) * LN2;
        double sum = f * (1.0 / 362880) + 1.0 / 40320;
        sum = sum * f + 1.0 / 5040;
        sum = sum * f + 1.0 / 720;
        sum = sum * f + 1.0 / 120;
        sum = sum * f + 1.0 / 24;
        sum = sum * f + 1.0 / 6;
        sum = sum * f + 0.5;
        sum = sum * f + 1;
        sum = sum * f + 1;
        x[i] = of_bits((int64_t)((uint64_t)to_bits(sum) + ((uint64_t)to_bits(n) << 52)));
    }
}

/* In f64, which holds every result of f32 and more. Zeros, negative bases, infinities and NaN are
 * libm's, one by one. */
static void run_f32_pow(const void *const *in, const size_t *step, void *out, size_t blocks,
                        const float *arg)
{
    const float *a = in[0], *b = in[1];
    float *r = out;
    (void)arg;
    for (; blocks; blocks--, a += step[0], b += step[1], r += BLOCK) {
        double x[BLOCK], y[BLOCK];
        float base[BLOCK], exponent[BLOCK];
        int32_t is_plain = -1;
        memcpy(base, a, sizeof base); /* the result may come over them */
        memcpy(exponent, b, sizeof exponent);
        for (int i = 0; i < BLOCK; i++)
            is_plain &= -(base[i] > 0) & -(base[i] < INFINITY) & -(fabsf(exponent[i]) < INFINITY);
        for (int i = 0; i < BLOCK; i++)
            x[i] = base[i];
        for (int i = 0; i < BLOCK; i++)
            y[i] = exponent[i];
        logarithms(x, x);
        for (int i = 0; i < BLOCK; i++) {
            const double power = x[i] * y[i];
            x[i] = power > 1000 ? 1000 : power < -1000 ? -1000 : power;
        }
        powers_of_2(x);
        for (int i = 0; i < BLOCK; i++)
            r[i] = (float)x[i];
        for (int i = 0; !is_plain && i < BLOCK; i++)
            if (!(base[i] > 0 && base[i] < INFINITY && fabsf(exponent[i]) < INFINITY))
                r[i] = powf(base[i], exponent[i]);
    }
}

/* ---- quotients and remainders of integers ----
 * By way of f64, where x / y of less than 2^53 never rounds up to a whole number, and products of
 * the quotient are exact. */

enum { ROOM_BITS = 51 }; /* of a number that has its bits in a sum with to_whole */

static void quotients(const double *x, const double *y, double *r)
{
    INDEPENDENT
    for (int i = 0; i < BLOCK; i++) {
        const double q = x[i] / y[i], nearest = q + to_whole - to_whole;
        const double towards = q < 0 ? -1 : 1, far = (nearest - q) * towards;
        r[i] = far > 0 ? nearest - towards : nearest;
    }
}

static void remainders(const double *x, const double *y, double *r)
{
    INDEPENDENT
    for (int i = 0; i < BLOCK; i++) {
        const double left = x[i] - (x[i] / y[i] + to_whole - to_whole) * y[i];
        r[i] = left * y[i] < 0 ? left + y[i] : left;
    }
}

typedef void pair_fn(const double *x, const double *y, double *r);

static inline void pairs_i32(const void *const *in, const size_t *step, int32_t *r, size_t blocks,
                             pair_fn *fn)
{
    const int32_t *a = in[0], *b = in[1];
    for (; blocks; blocks--, a += step[0], b += step[1], r += BLOCK) {
        double x[BLOCK], y[BLOCK];
        for (int i = 0; i < BLOCK; i++)
            x[i] = a[i];
        for (int i = 0; i < BLOCK; i++)
            y[i] = b[i];
        fn(x, y, x);
        for (int i = 0; i < BLOCK; i++)
            r[i] = (int32_t)WITHIN(x[i], 0x1p31);
    }
}

/* False, and nothing written, where an element of a block needs more bits. */
static inline bool pair_i64(const int64_t *a, const int64_t *b, int64_t *r, pair_fn *fn)
{
    const int64_t zero = to_bits(to_whole);
    const uint64_t half = UINT64_C(1) << (ROOM_BITS - 1);
    double x[BLOCK], y[BLOCK];
    uint64_t bits = 0;
    for (int i = 0; i < BLOCK; i++) {
        bits |= ((uint64_t)a[i] + half) | ((uint64_t)b[i] + half);
        x[i] = of_bits((int64_t)((uint64_t)a[i] + (uint64_t)zero)) - to_whole;
        y[i] = of_bits((int64_t)((uint64_t)b[i] + (uint64_t)zero)) - to_whole;
    }
    if (bits >> ROOM_BITS) return false;
    fn(x, y, x);
    for (int i = 0; i < BLOCK; i++)
        r[i] = to_bits(x[i] + to_whole) - zero;
    return true;
}

static int64_t quotient(int64_t x, int64_t y)
{
    return y == -1 ? (int64_t)(0 - (uint64_t)x) : x / y;
}
static int64_t remainder_of(int64_t x, int64_t y)
{
    const int64_t left = y == -1 ? 0 : x % y;
    return left && (left < 0) != (y < 0) ? left + y : left;
}

static inline void pairs_i64(const void *const *in, const size_t *step, int64_t *r, size_t blocks,
                             pair_fn *fn, int64_t (*one)(int64_t x, int64_t y))
{
    const int64_t *a = in[0], *b = in[1];
    for (; blocks; blocks--, a += step[0], b += step[1], r += BLOCK) {
        if (pair_i64(a, b, r, fn)) continue;
        for (int i = 0; i < BLOCK; i++)
            r[i] = one(a[i], b[i]);
    }
}

#define PAIRS(name, call)                                                                          \
    static void run_##name(const void *const *in, const size_t *step, void *out, size_t blocks,    \
                           const float *arg)                                                       \
    {                                                                                              \
        (void)arg;                                                                                 \
        call;                                                                                      \
    }
PAIRS(i32_div, pairs_i32(in, step, out, blocks, quotients))
PAIRS(i32_modp, pairs_i32(in, step, out, blocks, remainders))
PAIRS(i64_div, pairs_i64(in, step, out, blocks, quotients, quotient))
PAIRS(i64_modp, pairs_i64(in, step, out, blocks, remainders, remainder_of))

void SDX_INIT(sdx_elements_init_)(const struct sdx_elements **elements)
{
    static const struct sdx_elements table = {
#define FIELD(name) .name = run_##name,
        SDX_ELEMENTS(FIELD)
#undef FIELD
    };
    *elements = &table;
}
