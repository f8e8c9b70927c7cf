/* SPDX-License-Identifier: Apache-2.0
 * Elementary functions on four vectors at a time (one alone would run at the latency of its chain
 * of operations). Polynomials are our own minimax fits in f64, rounded to f32, and use FMA where
 * the set has it; the error stated is measured by tests/kernels/check_vec.c. Everything else is
 * rounded operation by operation and bit-equal between sets. */
#ifndef SDX_KERNELS_VEC_MATH_H
#define SDX_KERNELS_VEC_MATH_H

#include "kernels/gemm.h"
#include "kernels/simd.h"

enum { BLOCK = 4 * LANES };
struct vx {
    vf r[4];
};
struct mx {
    vi r[4];
};
#define EACH SDX_UNROLL(4) for (int i = 0; i < 4; i++)

#define VX_BINARY(name, expression)                                                                \
    SIMD struct vx x_##name(struct vx a, struct vx b)                                              \
    {                                                                                              \
        struct vx y;                                                                               \
        EACH y.r[i] = expression;                                                                  \
        return y;                                                                                  \
    }
#define VX_UNARY(name, expression)                                                                 \
    SIMD struct vx x_##name(struct vx a)                                                           \
    {                                                                                              \
        struct vx y;                                                                               \
        EACH y.r[i] = expression;                                                                  \
        return y;                                                                                  \
    }
VX_BINARY(add, a.r[i] + b.r[i])
VX_BINARY(sub, a.r[i] - b.r[i])
VX_BINARY(mul, a.r[i] * b.r[i])
VX_BINARY(div, a.r[i] / b.r[i])
VX_BINARY(min, v_min(a.r[i], b.r[i]))
VX_BINARY(max, v_max(a.r[i], b.r[i]))
VX_BINARY(or, v_or(a.r[i], b.r[i]))
VX_UNARY(abs, v_abs(a.r[i]))
VX_UNARY(neg, v_neg(a.r[i]))
VX_UNARY(sign, v_sign(a.r[i]))
VX_UNARY(sqrt, v_sqrt(a.r[i]))

SIMD struct vx x_load(const float *p)
{
    struct vx y;
    EACH y.r[i] = v_load(p + i * LANES);
    return y;
}
SIMD void x_store(float *p, struct vx a)
{
    EACH v_store(p + i * LANES, a.r[i]);
}
SIMD struct vx x_set1(float c)
{
    struct vx y;
    EACH y.r[i] = v_set1(c);
    return y;
}
SIMD struct vx x_mad(struct vx a, struct vx b, float c) /* a * b + c, two roundings */
{
    struct vx y;
    EACH y.r[i] = a.r[i] * b.r[i] + v_set1(c);
    return y;
}
SIMD struct vx x_scale(struct vx a, float c)
{
    struct vx y;
    EACH y.r[i] = a.r[i] * v_set1(c);
    return y;
}
SIMD struct mx x_less(struct vx a, struct vx b)
{
    struct mx m;
    EACH m.r[i] = a.r[i] < b.r[i];
    return m;
}
SIMD struct vx x_select(struct mx m, struct vx yes, struct vx no)
{
    struct vx y;
    EACH y.r[i] = v_select(m.r[i], yes.r[i], no.r[i]);
    return y;
}
SIMD struct vx x_fma(struct vx a, struct vx b, struct vx c) /* one rounding where the set has FMA */
{
    struct vx y;
    EACH y.r[i] = v_fma(a.r[i], b.r[i], c.r[i]);
    return y;
}
/* Horner's rule, highest coefficient first. */
SIMD struct vx x_poly(struct vx x, const float *c, const int count)
{
    struct vx y = x_set1(c[0]);
    SDX_UNROLL(12) for (int k = 1; k < count; k++) y = x_fma(y, x, x_set1(c[k]));
    return y;
}

static const float exp_fit[] = {1.395063126e-03f, 8.368969895e-03f, 4.166620225e-02f,
                                1.666651815e-01f, 5.000000000e-01f};
/* e^x = 2^n (1 + p): n = round(x / ln 2) by the magic number 1.5 * 2^23; ln 2 in two parts, the
 * first of 9 bits, so that n times it is exact. x is within -104 .. 89 or NaN. */
SIMD void x_exp_parts(struct vx x, struct vx *p, struct mx *n)
{
    const float magic = 12582912.0f;
    struct vx m = x_fma(x, x_set1(1.44269504f), x_set1(magic));
    EACH n->r[i] = vi_sub(vi_bits(m.r[i]), vi_set1(0x4b400000));
    m = x_sub(m, x_set1(magic));
    struct vx r = x_fma(m, x_set1(-0.693359375f), x);
    r = x_fma(m, x_set1(2.12194440e-4f), r);
    *p = x_fma(x_mul(r, r), x_poly(r, exp_fit, 5), r);
}
SIMD struct vx x_pow2(struct mx n) /* 2^n of a normal number */
{
    struct vx y;
    EACH y.r[i] = v_bits(vi_add(n.r[i], vi_set1(127)) << 23);
    return y;
}
/* In two factors, so that infinity and denormal results come out rounded once. */
SIMD struct vx x_exp(struct vx x)
{
    struct vx p;
    struct mx n, half;
    x_exp_parts(x_min(x_set1(89.0f), x_max(x_set1(-104.0f), x)), &p, &n);
    EACH half.r[i] = n.r[i] >> 1;
    EACH n.r[i] -= half.r[i];
    p = x_add(x_set1(1.0f), p);
    return x_mul(x_mul(p, x_pow2(half)), x_pow2(n));
}
/* e^x - 1 for x <= 0 or NaN, without cancellation near 0 */
SIMD struct vx x_expm1_negative(struct vx x)
{
    struct vx p;
    struct mx n;
    x_exp_parts(x_max(x_set1(-40.0f), x), &p, &n);
    struct vx s = x_pow2(n);
    return x_add(x_mul(s, p), x_sub(s, x_set1(1.0f)));
}
/* ln(2^k (1 + f)) with f in sqrt(1/2) - 1 .. sqrt(2) - 1: f - f^2/2 + f^3 P(f) + k ln 2; what the
 * two large sums lose is kept and added with the small terms. */
SIMD struct vx x_log(struct vx x)
{
    static const float c[] = {6.917034090e-02f,  -1.179192588e-01f, 1.187337637e-01f,
                              -1.238404065e-01f, 1.421856880e-01f,  -1.666926444e-01f,
                              2.000223100e-01f,  -2.499998659e-01f, 3.333331048e-01f};
    struct mx tiny = x_less(x, x_set1(1.17549435e-38f));
    struct vx big = x_select(tiny, x_scale(x, 33554432.0f), x), k, f;
    EACH
    {
        vi bits = vi_sub(vi_bits(big.r[i]), vi_set1(0x3f3504f3)); /* sqrt(1/2) */
        k.r[i] = v_from_int((bits >> 23) - (tiny.r[i] & vi_set1(25)));
        f.r[i] = v_bits((bits & vi_set1(0x7fffff)) + vi_set1(0x3f3504f3)) - v_set1(1.0f);
    }
    struct vx z = x_mul(f, f), h = x_scale(z, 0.5f), s = x_sub(f, h);
    struct vx rest = x_sub(x_sub(f, s), h), kh = x_scale(k, 0.693359375f), sum = x_add(kh, s);
    rest = x_add(rest, x_add(x_sub(kh, sum), s));
    rest = x_add(rest, x_add(x_mul(x_mul(z, f), x_poly(f, c, 9)), x_scale(k, -2.12194440e-4f)));
    struct vx y = x_add(sum, rest), inf = x_set1(INFINITY);
    y = x_select(x_less(x, inf), y, x); /* infinity, NaN */
    y = x_select(x_less(x, x_set1(0.0f)), x_set1(NAN), y);
    EACH y.r[i] = v_select(x.r[i] == v_set1(0.0f), v_set1(-INFINITY), y.r[i]);
    return y;
}
/* ln(1 + u) for u >= 0 or NaN: the rounding of 1 + u is put back; or ln of `large` plus `more`
 * where that is so large that it goes for the rest. */
static SDX_NOINLINE struct vx x_log1p_or(struct vx u, struct vx large, float most, float more)
{
    const struct mx far = x_less(x_set1(most), large);
    const struct vx one = x_set1(1.0f), w = x_add(one, u);
    const struct vx lost = x_div(x_sub(u, x_sub(w, one)), w);
    return x_add(x_log(x_select(far, large, w)), x_select(far, x_set1(more), lost));
}
/* (e - 1) / (e + 1), e = e^(2 |x|), is 1 in f32 from 9.02 on; below 0.26 x + x^3 P(x^2), an own
 * fit. */
SIMD struct vx x_tanh(struct vx x)
{
    static const float c[] = {-5.102201924e-02f, 1.332103014e-01f, -3.333318532e-01f};
    const struct vx t = x_min(x_set1(10.0f), x_abs(x)), z = x_mul(x, x);
    struct vx p;
    struct mx n;
    x_exp_parts(x_add(t, t), &p, &n);
    const struct vx s = x_pow2(n), more = x_fma(s, p, x_sub(s, x_set1(1.0f)));
    const struct vx big = x_div(more, x_add(more, x_set1(2.0f)));
    const struct vx small = x_fma(x_mul(x, z), x_poly(z, c, 3), x);
    return x_or(x_select(x_less(t, x_set1(0.26f)), small, big), x_sign(x));
}
SIMD struct vx x_sigmoid(struct vx x) /* from e^-|x|, which neither overflows nor cancels */
{
    struct vx e = x_exp(x_neg(x_abs(x))), one = x_set1(1.0f);
    return x_div(x_select(x_less(x, x_set1(0.0f)), e, one), x_add(one, e));
}
/* x + x Q(x^2) below 1, then 1 - e^-(x R(x)), which is 1 in f32 from 4 on */
SIMD struct vx x_erf(struct vx x)
{
    static const float q[] = {7.889122935e-05f,  -8.020842797e-04f, 5.189535674e-03f,
                              -2.685444430e-02f, 1.128360033e-01f,  -3.761262596e-01f,
                              1.283791661e-01f};
    static const float r[] = {4.314428224e-06f, -3.793249562e-05f, -8.883526607e-05f,
                              3.039438743e-03f, -2.285251208e-02f, 1.054334566e-01f,
                              6.355364323e-01f, 1.128571153e+00f};
    struct vx t = x_abs(x), u = x_min(x_set1(4.1f), t), one = x_set1(1.0f);
    struct vx small = x_add(x, x_mul(x, x_poly(x_mul(x, x), q, 7)));
    struct vx big = x_sub(one, x_exp(x_neg(x_mul(u, x_poly(u, r, 8)))));
    return x_select(x_less(t, one), small, x_or(big, x_sign(x)));
}
/* (|x| + x) / 2 - |x| T(|x|), T = 1 / (2 p^8), p a polynomial with 1 as its last of `count` terms,
 * an own fit; T is below 1e-11 at 7 and taken as that beyond. */
SIMD struct vx x_gelu(struct vx x, const float *fit, const int count)
{
    const struct vx z = x_abs(x), u = x_min(x_set1(7.0f), z), half = x_set1(0.5f);
    struct vx p = x_poly(u, fit, count);
    p = x_mul(p, p);
    p = x_mul(p, p);
    p = x_div(half, x_mul(p, p));
    return x_fma(x_neg(u), p, x_fma(half, z, x_mul(half, x)));
}
/* T = erfc(|x| / sqrt 2) / 2: error below 2e-7 of max(1, |x|). */
SIMD struct vx x_gelu_erf(struct vx x)
{
    static const float fit[] = {2.932145558e-06f, -1.674326184e-05f, 9.756422230e-05f,
                                1.113927592e-04f, 9.806088402e-04f,  8.591668644e-03f,
                                4.478878886e-02f, 9.973249686e-02f,  1.0f};
    return x_gelu(x, fit, 9);
}
/* T = (1 - tanh(sqrt(2 / pi) (|x| + 0.044715 |x|^3))) / 2: error below 2e-7 of max(1, |x|). */
SIMD struct vx x_gelu_tanh(struct vx x)
{
    static const float fit[] = {
        2.862581036e-06f, -2.801122936e-05f, 1.356904117e-04f, -2.285948126e-04f, 5.942388211e-04f,
        4.698877998e-04f, 8.737860612e-03f,  4.472705118e-02f, 9.973883599e-02f,  1.0f};
    return x_gelu(x, fit, 10);
}
SIMD struct vx x_silu(struct vx x)
{
    return x_mul(x, x_sigmoid(x));
}
SIMD struct vx x_hard_sigmoid(struct vx x, float a, float b)
{
    struct vx y = x_mad(x, x_set1(a), b);
    return x_min(x_set1(1.0f), x_max(x_set1(0.0f), y));
}
SIMD struct vx x_hard_swish(struct vx x)
{
    return x_mul(x, x_hard_sigmoid(x, 1.0f / 6.0f, 0.5f));
}
SIMD struct vx x_relu(struct vx x)
{
    return x_max(x_set1(0.0f), x);
}
SIMD struct vx x_clip(struct vx x, float lo, float hi)
{
    return x_min(x_set1(hi), x_max(x_set1(lo), x));
}
/* 65536 quanta; adding and taking away 3 * 2^22 rounds to even. */
SIMD struct vx x_fake_quantize(struct vx x, float scale, float low)
{
    const struct vx magic = x_set1(12582912.0f), lo = x_set1(low), hi = x_set1(low + 65535.0f);
    const struct vx q = x_min(x_max(x_div(x, x_set1(scale)), lo), hi);
    return x_scale(x_sub(x_add(q, magic), magic), scale);
}
SIMD struct vx x_leaky_relu(struct vx x, float a)
{
    return x_select(x_less(x, x_set1(0.0f)), x_scale(x, a), x);
}
/* ln(1 + e^x) = max(x, 0) + ln(1 + e^-|x|) */
SIMD struct vx x_softplus(struct vx x)
{
    const struct vx e = x_exp(x_neg(x_abs(x)));
    return x_add(x_relu(x), x_log1p_or(e, e, 1.0f, 0.0f));
}
/* tanh(ln(1 + w)) = w (w + 2) / (w (w + 2) + 2), w = e^x; divided by w^2 for x >= 0 */
SIMD struct vx x_mish(struct vx x)
{
    struct vx e = x_exp(x_neg(x_abs(x))), e2 = x_mul(e, e), two = x_add(e, e);
    struct mx below = x_less(x, x_set1(0.0f));
    struct vx up = x_select(below, x_add(e2, two), x_add(x_set1(1.0f), two));
    struct vx more = x_select(below, x_set1(2.0f), x_add(e2, e2));
    return x_mul(x, x_div(up, x_add(up, more)));
}
SIMD struct vx x_softsign(struct vx x)
{
    return x_div(x, x_add(x_set1(1.0f), x_abs(x)));
}
/* To the nearest integer, ties to even, of t >= 0 or NaN. */
SIMD struct vx x_round_positive(struct vx t)
{
    struct vx big = x_set1(8388608.0f);
    return x_select(x_less(t, big), x_sub(x_add(t, big), big), t);
}
SIMD struct vx x_round(struct vx x)
{
    return x_or(x_round_positive(x_abs(x)), x_sign(x));
}
/* One where m is set: r - 1 or r + 1 there. */
SIMD struct vx x_one_where(struct mx m)
{
    return x_select(m, x_set1(1.0f), x_set1(0.0f));
}
SIMD struct vx x_floor(struct vx x)
{
    struct vx r = x_round(x);
    return x_or(x_sub(r, x_one_where(x_less(x, r))), x_sign(x));
}
SIMD struct vx x_ceil(struct vx x)
{
    struct vx r = x_round(x);
    return x_or(x_add(r, x_one_where(x_less(r, x))), x_sign(x));
}
SIMD struct vx x_trunc(struct vx x)
{
    struct vx t = x_abs(x), r = x_round_positive(t);
    return x_or(x_sub(r, x_one_where(x_less(t, r))), x_sign(x));
}
/* sin(x + quarter * pi/2) for |x| < 8192: reduced in f64, where n times the first 33 bits of pi/2
 * is exact; other lanes are put right by the caller. */
static SDX_NOINLINE struct vx x_sin_quarter(struct vx x, int quarter)
{
    static const float cs[] = {-1.951721497e-04f, 8.332177997e-03f, -1.666665524e-01f};
    static const float cc[] = {2.443835729e-05f, -1.388736651e-03f, 4.166664556e-02f};
    const float magic = 12582912.0f;
    struct vx m = x_mad(x, x_set1(0.636619772f), magic), f = x_sub(m, x_set1(magic));
    float xs[BLOCK], fs[BLOCK];
    x_store(xs, x);
    x_store(fs, f);
    for (int i = 0; i < BLOCK; i++) {
        double n = fs[i];
        xs[i] = (float)((xs[i] - n * 1.57079632673412561417) - n * 6.07710050650619224932e-11);
    }
    struct vx r = x_load(xs), z = x_mul(r, r), h = x_scale(z, 0.5f), one = x_set1(1.0f);
    struct vx s = x_add(r, x_mul(x_mul(r, z), x_poly(z, cs, 3))), w = x_sub(one, h);
    s = x_or(s, x_sign(r)); /* of zero */
    struct vx c = x_add(x_sub(x_sub(one, w), h), x_mul(x_mul(z, z), x_poly(z, cc, 3)));
    c = x_add(w, c);
    struct vx y;
    EACH
    {
        vi q = vi_add(vi_bits(m.r[i]), vi_set1(quarter));
        vf v = v_select(-(q & vi_set1(1)), c.r[i], s.r[i]);
        y.r[i] = v_bits(vi_bits(v) ^ ((q & vi_set1(2)) << 30));
    }
    return y;
}
SIMD struct vx x_sin(struct vx x)
{
    return x_sin_quarter(x, 0);
}
SIMD struct vx x_cos(struct vx x)
{
    return x_sin_quarter(x, 1);
}

/* pi/2 - y, or pi - y */
SIMD struct vx x_half_pi_less(struct vx y)
{
    return x_sub(x_set1(1.57079637f), x_add(y, x_set1(4.37113883e-8f)));
}
SIMD struct vx x_pi_less(struct vx y)
{
    return x_sub(x_set1(3.14159274f), x_add(y, x_set1(8.74227766e-8f)));
}
/* u + u^3 P(u^2) of u = min(|x|, 1 / |x|) */
SIMD struct vx x_atan(struct vx x)
{
    static const float c[] = {-1.793622294e-03f, 1.091460846e-02f,  -3.117785109e-02f,
                              5.795759903e-02f,  -8.403450660e-02f, 1.095218589e-01f,
                              -1.426424170e-01f, 1.999854829e-01f,  -3.333329909e-01f};
    const struct vx t = x_abs(x), one = x_set1(1.0f);
    const struct mx far = x_less(one, t);
    const struct vx u = x_div(x_select(far, one, t), x_select(far, t, one)), z = x_mul(u, u);
    const struct vx y = x_add(u, x_mul(x_mul(u, z), x_poly(z, c, 9)));
    return x_or(x_select(far, x_half_pi_less(y), y), x_sign(x));
}
/* The arc sine of |x|, or half the arc cosine of it where that is above 1/2 (*far). This and what
 * else two maps share is one function a set, as it is long. */
static SDX_NOINLINE struct vx x_asin_part(struct vx x, struct mx *far)
{
    static const float c[] = {4.216630831e-02f, 2.417951478e-02f, 4.547037594e-02f,
                              7.495297643e-02f, 1.666675248e-01f};
    const struct vx t = x_abs(x);
    *far = x_less(x_set1(0.5f), t);
    const struct vx z = x_select(*far, x_scale(x_sub(x_set1(1.0f), t), 0.5f), x_mul(t, t));
    const struct vx u = x_select(*far, x_sqrt(z), t);
    return x_add(u, x_mul(x_mul(u, z), x_poly(z, c, 5)));
}
SIMD struct vx x_asin(struct vx x)
{
    struct mx far;
    const struct vx y = x_asin_part(x, &far);
    return x_or(x_select(far, x_half_pi_less(x_add(y, y)), y), x_sign(x));
}
SIMD struct vx x_acos(struct vx x)
{
    struct mx far;
    const struct vx y = x_asin_part(x, &far), twice = x_add(y, y);
    const struct vx near = x_half_pi_less(x_or(y, x_sign(x)));
    const struct mx below = x_less(x, x_set1(0.0f));
    return x_select(far, x_select(below, x_pi_less(twice), twice), near);
}
/* e^t / 2 and e^-t / 2; e^(t / 2) squared does not overflow before its half does */
static SDX_NOINLINE struct vx x_half_exps(struct vx t, struct vx *other)
{
    const struct vx h = x_exp(x_scale(t, 0.5f));
    *other = x_div(x_set1(0.5f), x_mul(h, h));
    return x_mul(x_scale(h, 0.5f), h);
}
SIMD struct vx x_cosh(struct vx x)
{
    struct vx other, y = x_half_exps(x_abs(x), &other);
    return x_add(y, other);
}
SIMD struct vx x_sinh(struct vx x)
{
    static const float c[] = {2.037219444e-04f, 8.330283718e-03f, 1.666671602e-01f};
    const struct vx t = x_abs(x), z = x_mul(x, x);
    struct vx other, y = x_half_exps(t, &other);
    const struct vx small = x_add(x, x_mul(x_mul(x, z), x_poly(z, c, 3)));
    return x_select(x_less(t, x_set1(1.0f)), small, x_or(x_sub(y, other), x_sign(x)));
}
enum { HYPERBOLIC_FAR = 10000 }; /* where asinh and acosh are ln 2x */
SIMD struct vx x_asinh(struct vx x)
{
    const struct vx t = x_abs(x), z = x_mul(t, t), one = x_set1(1.0f);
    const struct vx u = x_add(t, x_div(z, x_add(one, x_sqrt(x_add(z, one)))));
    return x_or(x_log1p_or(u, t, HYPERBOLIC_FAR, 0.693147181f), x_sign(x));
}
SIMD struct vx x_acosh(struct vx x)
{
    const struct vx t = x_sub(x, x_set1(1.0f));
    const struct vx u = x_add(t, x_mul(x_sqrt(t), x_sqrt(x_add(t, x_set1(2.0f)))));
    return x_log1p_or(u, x, HYPERBOLIC_FAR, 0.693147181f);
}
SIMD struct vx x_atanh(struct vx x)
{
    const struct vx t = x_abs(x), u = x_div(x_add(t, t), x_sub(x_set1(1.0f), t));
    return x_or(x_scale(x_log1p_or(u, u, 1e9f, 0.0f), 0.5f), x_sign(x)); /* far: of 1 */
}

/* ---- for stores: fewer operations, and less exact where the results are very small ---- */

/* An own fit of 2^r for r within +-1/2, highest coefficient first. */
static const float pow2_fit[] = {1.326472731e-03f, 9.671512991e-03f, 5.550733581e-02f,
                                 2.402224243e-01f, 6.931470037e-01f, 1.0f};

/* 1 + e^-x for x limited to -88 .. 87, with FMA where there is one; x becomes -88 at least. NaN
 * gives NaN or garbage. e^-x = 2^n 2^r, n added to the bits of the exponent: a relative error of
 * 2e-7 + 1.2e-7 |x|. */
SIMD struct vx x_one_and_exp_of_minus(struct vx *x)
{
    const vf magic = v_set1(12582912.0f), log2e = v_set1(-1.44269504f);
    struct vx m, r;
    EACH x->r[i] = v_max(v_set1(-88.0f), x->r[i]);
    EACH r.r[i] = v_min(v_set1(87.0f), x->r[i]);
    EACH m.r[i] = v_fma(r.r[i], log2e, magic);
    EACH r.r[i] = v_fma(r.r[i], log2e, magic - m.r[i]);
    struct vx p = x_poly(r, pow2_fit, 6);
    EACH p.r[i] = v_bits(vi_add(vi_bits(p.r[i]), vi_bits(m.r[i]) << 23));
    return x_add(x_set1(1.0f), p);
}
SIMD struct vx x_fma_sigmoid(struct vx x)
{
    struct vx limited = x, y = x_div(x_set1(1.0f), x_one_and_exp_of_minus(&limited));
    EACH y.r[i] = v_select(x.r[i] == x.r[i], y.r[i], x.r[i]); /* NaN */
    return y;
}
/* z P(z^2) / Q(z^2), z = x within +-8, an own fit: a relative error of 3e-7. */
static const float tanh_store_p[] = {1.522983872e-08f, 2.189430234e-05f, 3.571578069e-03f,
                                     1.344448179e-01f, 1.0f};
static const float tanh_store_q[] = {8.522227972e-07f, 3.411258222e-04f, 2.616436966e-02f,
                                     4.677780867e-01f, 1.0f};
SIMD struct vx x_fma_tanh(struct vx x)
{
    const struct vx limit = x_set1(8.0f), z = x_max(x_neg(limit), x_min(limit, x));
    const struct vx t = x_mul(z, z), p = x_mul(z, x_poly(t, tanh_store_p, 5));
    return x_div(p, x_poly(t, tanh_store_q, 5));
}
/* Below -88 it stays the value there, -5e-37. */
SIMD struct vx x_fma_silu(struct vx x)
{
    struct vx below = x_one_and_exp_of_minus(&x);
    return x_div(x, below);
}

/* The activations of a store that are more than a minimum and a maximum. */
SIMD struct vx x_act(struct vx x, enum sdx_act act, float a, float b)
{
    switch (act) {
    case SDX_ACT_NONE: return x;
    case SDX_ACT_RELU: return x_relu(x);
    case SDX_ACT_CLIP: return x_clip(x, a, b);
    case SDX_ACT_LEAKY_RELU: return x_leaky_relu(x, a);
    case SDX_ACT_SIGMOID: return x_fma_sigmoid(x);
    case SDX_ACT_TANH: return x_fma_tanh(x);
    case SDX_ACT_SILU: return x_fma_silu(x);
    case SDX_ACT_HARD_SWISH: return x_hard_swish(x);
    case SDX_ACT_HARD_SIGMOID: return x_hard_sigmoid(x, a, b);
    case SDX_ACT_GELU_ERF: return x_gelu_erf(x);
    case SDX_ACT_GELU_TANH: return x_gelu_tanh(x);
    }
    return x;
}
#endif
