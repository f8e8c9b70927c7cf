/* SPDX-License-Identifier: Apache-2.0
 * Checks of vec.h: maps and binary operations on special and random values against f64 functions
 * and, bit by bit, against the generic set. The bounds are those vec.h states, in ulp; for
 * compositions, which vec.h calls "as their parts", an absolute part is given besides. */
#include "kernelcheck.h"

#include <float.h>

static const float specials[] = {
    0.0f,        -0.0f,       1.0f,        -1.0f,       0.5f,       -0.5f,       2.0f,
    -2.0f,       1.5f,        2.5f,        -1.5f,       -2.5f,      INFINITY,    -INFINITY,
    NAN,         FLT_MAX,     -FLT_MAX,    FLT_MIN,     -FLT_MIN,   1e-40f,      -1e-40f,
    1.4e-45f,    -1.4e-45f,   88.72f,      88.73f,      -87.33f,    -87.34f,     -103.9f,
    -104.1f,     0.625f,      -0.625f,     0.9999999f,  1.0000001f, 4.1f,        -4.1f,
    3.9f,        6.5f,        -6.5f,       20.0f,       -20.0f,     8191.9f,     8192.0f,
    -8192.0f,    1e10f,       -1e10f,      8388607.5f,  8388608.0f, -8388607.5f, 4194303.5f,
    0.70710678f, 1.41421356f, 3.14159274f, 1.57079637f, -3.0f,      3.0f,        100.0f,
    -100.0f,     16777216.0f};
enum { SPECIALS = sizeof specials / sizeof specials[0] };

typedef void (*map_fn)(const float *x, float *y, size_t n, float a, float b);
typedef double (*exact_fn)(double x, double a, double b);

/* The values a map is tried on: specials, then random ones of all sizes and of the usual ones. */
static void map_inputs(float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (i < SPECIALS) {
            x[i] = specials[i];
        } else if (i % 4 == 0) {
            const uint32_t bits = random_bits();
            memcpy(&x[i], &bits, 4);
        } else {
            const float size = i % 4 == 1 ? 1.0f : i % 4 == 2 ? 10.0f : 110.0f;
            x[i] = random_float(-size, size);
        }
    }
}
/* is_fused: of a polynomial, so not as the generic set's. */
static void check_map(map_fn now, map_fn generic, exact_fn exact, float a, float b, double ulps,
                      double absolute, bool is_fused)
{
    enum { MANY = 60000 };
    float *x = guarded(MANY * 4, 4), *y = guarded(MANY * 4, 8), *z = guarded(MANY * 4, 0);
    map_inputs(x, MANY);
    now(x, y, MANY, a, b);
    generic(x, z, MANY, a, b);
    for (size_t i = 0; i < MANY; i++) {
        expect(is_fused || same_bits(y[i], z[i]), "x = %.9g: %.9g, generic %.9g", x[i], y[i], z[i]);
        const double right = exact(x[i], a, b);
        const double error = ulp_error(y[i], right);
        expect(error <= ulps || fabs(y[i] - right) <= absolute,
               "x = %.9g: %.9g, expected %.9g, %.2f ulp off", x[i], y[i], right, error);
        if (right == 0.0 && y[i] == 0.0f && absolute == 0.0)
            expect(!signbit(y[i]) == !signbit(right), "x = %.9g: sign of zero", x[i]);
    }
    for (size_t n = 0; n <= 3 * 64 + 1; n += n < 70 ? 1 : 13)
        for (size_t offset = 0; offset <= 12; offset += 12) {
            float *to = guarded(n * 4, offset), *same = guarded(n * 4, offset);
            now(x + n, to, n, a, b);
            memcpy(same, x + n, n * 4);
            now(same, same, n, a, b);
            for (size_t i = 0; i < n; i++) {
                expect(same_bits(to[i], y[n + i]), "n = %zu, element %zu: %.9g, expected %.9g", n,
                       i, to[i], y[n + i]);
                expect(same_bits(to[i], same[i]), "n = %zu, element %zu: other in place", n, i);
            }
        }
}
struct timed {
    map_fn map;
    float *x, *y;
};
enum { TIMED = 4096 };
static void timed_map(void *arg)
{
    struct timed *t = arg;
    for (int i = 0; i < 16; i++)
        t->map(t->x, t->y, TIMED, 0.1f, 0.5f);
}
static float *timed_input(void)
{
    float *x = guarded(TIMED * 4, 0);
    for (int i = 0; i < TIMED; i++)
        x[i] = random_float(-3, 3);
    return x;
}
static double bench_map(map_fn map)
{
    struct timed t = {map, timed_input(), guarded(TIMED * 4, 0)};
    return best_ns(timed_map, &t) / (16.0 * TIMED);
}

/* The least and largest as C's comparison gives them; NaN stays. */
static double at_least(double x, double lo)
{
    return x < lo ? lo : x;
}
static double at_most(double x, double hi)
{
    return x > hi ? hi : x;
}
static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}
static double softplus(double x)
{
    return at_least(x, 0) + log1p(exp(-fabs(x)));
}
#define MAP(name, a_, b_, ulps, absolute, expression)                                              \
    MAP_OF(name, a_, b_, ulps, absolute, false, expression)
#define FUSED(name, a_, b_, ulps, absolute, expression)                                            \
    MAP_OF(name, a_, b_, ulps, absolute, true, expression)
#define MAP_OF(name, a_, b_, ulps, absolute, is_fused, expression)                                 \
    static double exact_##name(double x, double a, double b)                                       \
    {                                                                                              \
        (void)a;                                                                                   \
        (void)b;                                                                                   \
        return expression;                                                                         \
    }                                                                                              \
    void check_f32_map_##name(void)                                                                \
    {                                                                                              \
        check_map(vec_now->f32_##name, vec_generic.f32_##name, exact_##name, a_, b_, ulps,         \
                  absolute, is_fused);                                                             \
    }                                                                                              \
    double bench_f32_map_##name(void)                                                              \
    {                                                                                              \
        return bench_map(vec_now->f32_##name);                                                     \
    }
MAP(abs, 0, 0, 0, 0, fabs(x))
MAP(neg, 0, 0, 0, 0, -x)
MAP(sqrt, 0, 0, 0.5, 0, sqrt(x))
MAP(rsqrt, 0, 0, 1.5, 0, 1 / sqrt(x))
MAP(reciprocal, 0, 0, 0.5, 0, 1 / x)
MAP(square, 0, 0, 0.5, 0, x *x)
MAP(floor, 0, 0, 0, 0, floor(x))
MAP(ceil, 0, 0, 0, 0, ceil(x))
MAP(round, 0, 0, 0, 0, nearbyint(x))
MAP(trunc, 0, 0, 0, 0, trunc(x))
MAP(relu, 0, 0, 0, 0, at_least(x, 0))
MAP(clip, -0.75f, 2.25f, 0, 0, at_most(at_least(x, a), b))
MAP(leaky_relu, 0.01f, 0, 0.5, 0, x < 0 ? a * x : x)
FUSED(elu, 0.7f, 0, 2.5, 0, x < 0 ? a * expm1(x) : x)
MAP(hard_sigmoid, 0.2f, 0.5f, 1, 1e-7, at_most(at_least(a *x + b, 0), 1))
MAP(hard_swish, 0, 0, 2, 3e-7, x *at_most(at_least(x / 6 + 0.5, 0), 1))
MAP(thresholded_relu, 1.0f, 0, 0, 0, x > a ? x : 0)
MAP(fake_quantize, 0.0037f, -12345, 0.5, 0,
    a *at_most(x != x ? b : at_least(nearbyint((float)x / (float)a) + 0.0, b), b + 65535))
FUSED(exp, 0, 0, 1.1, 0, exp(x))
FUSED(log, 0, 0, 1, 0, log(x))
FUSED(tanh, 0, 0, 2, 0, tanh(x))
FUSED(sigmoid, 0, 0, 2.5, 0, sigmoid(x))
FUSED(silu, 0, 0, 3.5, 2e-43, x *sigmoid(x))
FUSED(erf, 0, 0, 2, 0, erf(x))
FUSED(gelu_erf, 0, 0, 3, 4e-7, x *(erfc(-x / sqrt(2)) / 2))
FUSED(gelu_tanh, 0, 0, 3, 1e-6, x *sigmoid(2 * 0.79788456080286536 * (x + 0.044715 * x * x * x)))
FUSED(softplus, 0, 0, 3, 0, softplus(x))
MAP(softsign, 0, 0, 1.5, 0, x / (1 + fabs(x)))
FUSED(mish, 0, 0, 5, 2e-43, x *tanh(softplus(x)))
FUSED(sin, 0, 0, 2, 0, sin(x))
FUSED(cos, 0, 0, 2, 0, cos(x))
FUSED(asin, 0, 0, 2.5, 0, asin(x))
FUSED(acos, 0, 0, 2, 0, acos(x))
FUSED(atan, 0, 0, 2, 0, atan(x))
FUSED(sinh, 0, 0, 4, 0, sinh(x))
FUSED(cosh, 0, 0, 4, 0, cosh(x))
FUSED(asinh, 0, 0, 3, 0, asinh(x))
FUSED(acosh, 0, 0, 4, 0, acosh(x))
FUSED(atanh, 0, 0, 3, 0, atanh(x))

/* ---- binary operations ---- */
typedef void (*binary_fn)(const float *a, size_t step_a, const float *b, size_t step_b, float *y,
                          size_t n);
static void check_binary(binary_fn now, binary_fn generic, double (*exact)(double a, double b))
{
    enum { MANY = 4 * SPECIALS * SPECIALS };
    float *a = guarded(MANY * 4, 4), *b = guarded(MANY * 4, 0), *y = guarded(MANY * 4, 8);
    float *z = guarded(MANY * 4, 0);
    for (int i = 0; i < MANY; i++) { /* all pairs of specials first */
        const bool paired = i < SPECIALS * SPECIALS;
        a[i] = paired ? specials[i / SPECIALS] : random_float(-10, 10);
        b[i] = paired ? specials[i % SPECIALS] : random_float(-10, 10);
    }
    now(a, 1, b, 1, y, MANY);
    generic(a, 1, b, 1, z, MANY);
    for (int i = 0; i < MANY; i++) {
        expect(same_bits(y[i], z[i]), "%.9g, %.9g: %.9g, generic %.9g", a[i], b[i], y[i], z[i]);
        expect(ulp_error(y[i], exact(a[i], b[i])) <= 0.500001, "%.9g, %.9g: %.9g, expected %.9g",
               a[i], b[i], y[i], exact(a[i], b[i]));
    }
    for (size_t n = 0; n <= 130; n += n < 36 ? 1 : 7)
        for (size_t steps = 0; steps < 4; steps++) {
            const size_t sa = steps & 1, sb = steps >> 1;
            float *to = guarded(n * 4, 4 * (n % 3)), *same = guarded((n + 1) * 4, 4);
            const float *from_a = a + MANY - 200, *from_b = b + MANY - 190;
            now(from_a, sa, from_b, sb, to, n);
            memcpy(same, from_a, (n + 1) * 4);
            if (sa) now(same, 1, from_b, sb, same, n);
            for (size_t i = 0; i < n; i++) {
                const double right = exact(from_a[sa * i], from_b[sb * i]);
                expect(ulp_error(to[i], right) <= 0.500001,
                       "n %zu, steps %zu %zu, element %zu: %.9g, expected %.9g", n, sa, sb, i,
                       to[i], right);
                expect(!sa || same_bits(same[i], to[i]), "n %zu: other in place", n);
            }
        }
}
struct timed_binary {
    binary_fn fn;
    float *x, *y;
};
static void timed_binary(void *arg)
{
    struct timed_binary *t = arg;
    for (int i = 0; i < 16; i++)
        t->fn(t->x, 1, t->x, 1, t->y, TIMED);
}
#define BINARY(name, expression)                                                                   \
    static double exact_binary_##name(double a, double b)                                          \
    {                                                                                              \
        return expression;                                                                         \
    }                                                                                              \
    void check_f32_binary_##name(void)                                                             \
    {                                                                                              \
        check_binary(vec_now->f32_##name, vec_generic.f32_##name, exact_binary_##name);            \
    }                                                                                              \
    double bench_f32_binary_##name(void)                                                           \
    {                                                                                              \
        struct timed_binary t = {vec_now->f32_##name, timed_input(), guarded(TIMED * 4, 0)};       \
        return best_ns(timed_binary, &t) / (16.0 * TIMED);                                         \
    }
BINARY(add, a + b)
BINARY(sub, a - b)
BINARY(mul, a *b)
BINARY(div, a / b)
BINARY(max, a != a || b != b ? NAN : a > b ? a : b)
BINARY(min, a != a || b != b ? NAN : a < b ? a : b)
BINARY(prelu, a < 0 ? a * b : a)

/* ---- reductions ---- */
typedef float (*reduce_fn)(const float *x, size_t n);
static void check_reduce(reduce_fn now, reduce_fn generic, double (*step)(double acc, double x),
                         double neutral, bool is_sum)
{
    float *x = guarded(5000 * 4, 4);
    for (size_t n = 0; n <= 5000; n += n < 140 ? 1 : 977) {
        for (size_t i = 0; i < n; i++)
            x[i] = random_float(-2, 2);
        double right = neutral;
        for (size_t i = 0; i < n; i++)
            right = step(right, x[i]);
        const float got = now(x, n);
        expect(same_bits(got, generic(x, n)), "n %zu: %.9g, generic %.9g", n, got, generic(x, n));
        /* 32 lanes: n / 32 + 5 roundings of at most the sum of magnitudes; of a product n */
        const double bound = neutral == 1.0 ? (double)n * 6e-8 * fabs(right) + 1e-37
                             : is_sum       ? ((double)n / 32 + 6) * 6e-8 * 4.0 * (double)n
                                            : 0.0;
        expect(got == right || fabs(got - right) <= bound, "n %zu: %.9g, expected %.9g", n, got,
               right);
        if (n > 0) {
            x[n / 2] = NAN;
            expect(isnan(now(x, n)), "n %zu: NaN is lost", n);
        }
    }
}
struct timed_reduce {
    reduce_fn fn;
    float *x;
    volatile float sink;
};
static void timed_reduce(void *arg)
{
    struct timed_reduce *t = arg;
    for (int i = 0; i < 16; i++)
        t->sink = t->fn(t->x, TIMED);
}
#define REDUCE(name, neutral, is_sum, expression)                                                  \
    static double step_##name(double acc, double x)                                                \
    {                                                                                              \
        return expression;                                                                         \
    }                                                                                              \
    void check_f32_reduce_##name(void)                                                             \
    {                                                                                              \
        check_reduce(vec_now->f32_reduce_##name, vec_generic.f32_reduce_##name, step_##name,       \
                     neutral, is_sum);                                                             \
    }                                                                                              \
    double bench_f32_reduce_##name(void)                                                           \
    {                                                                                              \
        struct timed_reduce t = {vec_now->f32_reduce_##name, timed_input(), 0};                    \
        return best_ns(timed_reduce, &t) / (16.0 * TIMED);                                         \
    }
REDUCE(sum, 0.0, true, acc + x)
REDUCE(sumsq, 0.0, true, acc + x * x)
REDUCE(sumabs, 0.0, true, acc + fabs(x))
REDUCE(prod, 1.0, true, acc *x)
REDUCE(max, -INFINITY, false, acc > x ? acc : x)
REDUCE(min, INFINITY, false, acc < x ? acc : x)
