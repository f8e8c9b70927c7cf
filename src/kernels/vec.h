/* SPDX-License-Identifier: Apache-2.0
 * Vector kernels on contiguous data: maps, binary operations, reductions of a row, row softmax and
 * normalisation, conversions. One table of function pointers, filled once for the CPU (sdx_vec()).
 * Pointers need no alignment. y may equal an input (same address), otherwise they may not overlap.
 * n = 0 does nothing; a reduction of nothing gives its neutral element.
 * Maps of all sets are bit-equal, but for those of a polynomial, which uses FMA where the set has
 * it; reductions use the fixed order stated in vec_reduce_tmpl.c. */
#ifndef SDX_KERNELS_VEC_H
#define SDX_KERNELS_VEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* X(name): void (const float *x, float *y, size_t n, float a, float b). a, b are the operator's
 * parameters: clip(lo, hi), leaky_relu(alpha), elu(alpha), hard_sigmoid(alpha, beta),
 * thresholded_relu(alpha), others none. Accuracy against the exact value, in ulp: exp 1.1, log 1,
 * tanh 2, sigmoid 2.5, erf 2, sin/cos 2 (|x| < 8192, libm beyond), asin 2.5, acos/atan 2,
 * sinh/cosh/acosh 4, asinh/atanh 3, others exact or as their parts.
 * NaN, infinities and signed zeros as C's libm has them. silu: x*sigmoid(x); gelu_erf:
 * x/2*(1+erf(x/sqrt2)); gelu_tanh; hard_swish: x*clip(x/6+1/2,0,1); round: to nearest, ties to
 * even; mish: x*tanh(softplus(x)). fake_quantize(a: scale, b: lowest integer, -65535 .. 0):
 * a * clip(round(x / a), b, b + 65535); NaN gives a * b. */
/* clang-format off */
#define SDX_VEC_MAPS(X) \
    X(abs) X(neg) X(sqrt) X(rsqrt) X(reciprocal) X(square) X(floor) X(ceil) X(round) X(trunc) \
    X(relu) X(clip) X(leaky_relu) X(elu) X(hard_sigmoid) X(hard_swish) X(thresholded_relu) \
    X(exp) X(log) X(tanh) X(sigmoid) X(silu) X(erf) X(gelu_erf) X(gelu_tanh) X(softplus) \
    X(softsign) X(mish) X(sin) X(cos) X(asin) X(acos) X(atan) X(sinh) X(cosh) X(asinh) X(acosh) \
    X(atanh) X(fake_quantize)
/* clang-format on */

/* X(name): void (const float *a, size_t step_a, const float *b, size_t step_b, float *y, size_t n);
 * steps are 0 (a scalar for all) or 1. max, min: NaN wins, as ONNX says. prelu: a < 0 ? a * b : a.
 */
#define SDX_VEC_BINARIES(X) X(add) X(sub) X(mul) X(div) X(max) X(min) X(prelu)

/* X(name): float (const float *x, size_t n). sum, sumsq, prod: float accumulators in the stated
 * order, then pairwise. */
#define SDX_VEC_REDUCTIONS(X) X(sum) X(sumsq) X(sumabs) X(prod) X(max) X(min)

/* Rows of n scores, `pitch` apart, each of which becomes the softmax of x * scale + mask[0] +
 * mask[1] in place; a mask may be NULL. mask_pitch: from one row of a mask to the next, 0 where all
 * share it. tops: of each row the greatest before, NaN where one is NaN; where that is not finite
 * the row becomes 0. Relative error as f32_softmax. */
struct sdx_masked_rows {
    float *x, *tops;
    size_t pitch, rows, n;
    float scale;
    const float *mask[2];
    size_t mask_pitch[2];
};

/* Rows of n numbers, one behind the other: y = (x - mean) * inv_std * scale + bias, with each row's
 * own statistics. y may be x; scale[n], bias[n], mean[rows] and inv_std[rows] may be NULL. */
struct sdx_norm_rows {
    const float *x, *scale, *bias;
    float *y;
    size_t n, rows;
    float epsilon;
    float *mean, *inv_std;
};

enum { SDX_VEC_ABOVE_ROOM = 16, SDX_VEC_TOP_COLUMNS = 16, SDX_VEC_TOP_MOST = 8 };
struct sdx_vec {
#define SDX_VEC_FIELD(name)                                                                        \
    void (*f32_##name)(const float *x, float *y, size_t n, float a, float b);
    SDX_VEC_MAPS(SDX_VEC_FIELD)
#undef SDX_VEC_FIELD
#define SDX_VEC_FIELD(name)                                                                        \
    void (*f32_##name)(const float *a, size_t step_a, const float *b, size_t step_b, float *y,     \
                       size_t n);
    SDX_VEC_BINARIES(SDX_VEC_FIELD)
#undef SDX_VEC_FIELD
#define SDX_VEC_FIELD(name) float (*f32_reduce_##name)(const float *x, size_t n);
    SDX_VEC_REDUCTIONS(SDX_VEC_FIELD)
#undef SDX_VEC_FIELD
    /* y[j] = k of the largest (is_min: smallest) of x[k * step + j], the first of equal ones; the
     * first NaN is the extreme. length >= 1, below 2^31. */
    void (*f32_arg_columns)(const float *x, size_t length, ptrdiff_t step, size_t n, bool is_min,
                            int64_t *y);
    /* at[t * SDX_VEC_TOP_COLUMNS + i] = j of the t-th, t < k, of x[j * step + i] in falling
     * (is_min: rising) order for each of SDX_VEC_TOP_COLUMNS columns i; NaN is the largest, -0
     * equals 0, of equal ones the first comes first. 0 < k <= SDX_VEC_TOP_MOST, k <= length < 2^31.
     */
    void (*f32_top_columns)(const float *x, size_t length, ptrdiff_t step, size_t k, bool is_min,
                            int32_t *at);
    /* sum of a[i] * b[i] */
    float (*f32_dot)(const float *a, const float *b, size_t n);
    /* y[i] += a * x[i] */
    void (*f32_axpy)(float a, const float *x, float *y, size_t n);
    /* y[i] = rows[0][i] * w[0] + rows[1][i] * w[1] ..., count >= 1 */
    void (*f32_mix)(const float *const *rows, const float *w, int count, float *y, size_t n);
    /* The same of cells: y[j * cell + i] = the sum over t < count of x[index[j * count + t] * cell
     * + i] * w[j * count + t], j < n. */
    void (*f32_mix_cells)(const float *x, const int32_t *index, const float *w, int count,
                          size_t cell, float *y, size_t n);
    /* y[i] = sum over k < count of (x[k] - rows[k * step + i])^2 */
    void (*f32_distances)(const float *x, size_t count, const float *rows, size_t step, float *y,
                          size_t n);
    /* y[i] += outer[(begin + i) / width] + inner[(begin + i) % width], the latter two added first
     */
    void (*f32_add_outer)(const float *outer, const float *inner, size_t width, size_t begin,
                          float *y, size_t n);
    /* Rows of 2 * half: with halves x1, x2 of x, y1 = x1 * cos1 - x2 * sin1 and y2 = x2 * cos2 + x1
     * * sin2. second: where cos2 and sin2 begin in rows of half + second, `half` or 0. y may be x.
     */
    void (*f32_rotate)(const float *x, const float *cos, const float *sin, size_t second, float *y,
                       size_t half, size_t rows);
    /* The same with x1 at even places, x2 and the others' at odd ones. n is even; y may be x. */
    void (*f32_rotate_pairs)(const float *x, const float *cos, const float *sin, float *y,
                             size_t n);
    /* y = e^(x - max), 0 where x - max < -87; returns the sum. No x is NaN or above max, which is
     * finite. Relative error: 3e-7 + 1.2e-7 (max - x). */
    float (*f32_exp_sum)(const float *x, float *y, size_t n, float max);
    /* Softmax of one row; log: log-softmax. y may be x. All -inf gives NaN, as the reference does.
     * Relative error of softmax: 1.1e-5. */
    void (*f32_softmax)(const float *x, float *y, size_t n);
    void (*f32_log_softmax)(const float *x, float *y, size_t n);
    /* Softmax of each of n columns of `length` numbers, `step` apart in x and y. */
    void (*f32_softmax_columns)(const float *x, float *y, size_t length, size_t step, size_t n);
    void (*f32_softmax_masked)(const struct sdx_masked_rows *rows);
    /* inv_std = 1 / sqrt(variance + epsilon), in two passes over a row; rms: the mean is 0, and is
     * not stored. */
    void (*f32_layer_norm)(const struct sdx_norm_rows *rows);
    void (*f32_rms_norm)(const struct sdx_norm_rows *rows);
    /* y = x * scale + shift with one scale and shift for the row (BatchNormalization of one
     * channel) */
    void (*f32_affine)(const float *x, float scale, float shift, float *y, size_t n);
    /* Is the intersection over union of `box` and one of n boxes above the threshold? A box is y0,
     * x0, y1, x1 and its area; boxes: the y0 of all, `step` numbers on the x0 of all, ... There is
     * room for up to 64 more, of area 0 or checked before. One of no area has no intersection. */
    bool (*f32_overlaps)(const float box[5], const float *boxes, size_t step, size_t n,
                         float threshold);
    /* at: the rising positions of those of n < 2^31 elements that, their bits ^ `sign` (that of a
     * float, or 0), are not at most `bound`: NaN is among them. Returns their count; `at` has room
     * for SDX_VEC_ABOVE_ROOM more than n. bound is no NaN. */
    size_t (*f32_above)(const float *x, size_t n, uint32_t sign, float bound, uint32_t *at);
    void (*f16_to_f32)(const uint16_t *x, float *y, size_t n);
    void (*f32_to_f16)(const float *x, uint16_t *y, size_t n);
    void (*bf16_to_f32)(const uint16_t *x, float *y, size_t n);
    void (*f32_to_bf16)(const float *x, uint16_t *y, size_t n);
    /* y[i] = the sum of shift and (rows[r][i] ^ flip) * w[r], in order, each step rounded; count >=
     * 1
     */
    void (*u8_mix)(const uint8_t *const *rows, uint8_t flip, float shift, const float *w, int count,
                   float *y, size_t n);
    /* (x - zero) * scale */
    void (*u8_to_f32)(const uint8_t *x, float scale, int32_t zero, float *y, size_t n);
    void (*s8_to_f32)(const int8_t *x, float scale, int32_t zero, float *y, size_t n);
    /* Row r of y, `width` elements of 4 bytes, takes those at x + r * stride; splat: the one there,
     * `width` times. There is room for 63 bytes behind the last row. */
    void (*b32_rows)(const float *x, size_t stride, bool splat, float *y, size_t width,
                     size_t rows);
    /* dst[j * stride_dst + i] = src[i * stride + j] for elements of 4 bytes: rows x cols
     * transposed; both at any address */
    void (*b32_transpose)(const void *src, size_t stride, void *dst, size_t stride_dst, size_t rows,
                          size_t cols);
};

const struct sdx_vec *sdx_vec(void);
#endif
