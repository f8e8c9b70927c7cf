/* SPDX-License-Identifier: Apache-2.0
 * Elementwise and moving kernels on quantised bytes. Signed bytes are worked on as unsigned ones
 * with the top bit flipped: `flip` is 0x80 for them, else 0, and zero points are those of the
 * unsigned ones. All sets give the same bytes. n = 0 does nothing. y may be an operand, otherwise
 * memory may not overlap. */
#ifndef SDX_KERNELS_QBYTES_H
#define SDX_KERNELS_QBYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* add: y = zero_y + round((a - zero_a) * scale_a + (b - zero_b) * scale_b), to even, saturated:
 *      a * scale_a + (b * scale_b + base), each rounded once, a and b as signed as they are;
 * mul: y = zero_y + round((a - zero_a) * (b - zero_b) * scale_a). */
struct sdx_qpair {
    int32_t zero_a, zero_b, zero_y;
    float scale_a, scale_b, base; /* base: of sdx_qpair_base() */
    uint8_t flip;
};
/* What the zero points bring to a sum. */
static inline float sdx_qpair_base(const struct sdx_qpair *p)
{
    const int32_t shift = p->flip ? 128 : 0;
    return (float)-((double)(p->zero_a - shift) * p->scale_a +
                    (double)(p->zero_b - shift) * p->scale_b);
}

/* Are the terms of a sum so small that it cannot leave 32 bits? */
static inline bool sdx_qpair_is_small(const struct sdx_qpair *p)
{
    return p->scale_a > -0x1p20f && p->scale_a < 0x1p20f && p->scale_b > -0x1p20f &&
           p->scale_b < 0x1p20f;
}

enum { SDX_QAFFINE_STEP = 64 };
/* y = zero + round(x * scale[i] + shift[i]) within lo..hi, to even, x as signed as it is; zero, lo
 * and hi of bytes with the top bit flipped by `flip`. */
struct sdx_qaffine {
    const float *scale, *shift; /* finite; repeated after `length`, a multiple of that step */
    size_t length;
    int32_t zero, lo, hi;
    uint8_t flip;
};

/* n cells of bytes, each the weighted sum of `taps` cells of numbers: those from
 * index[j * taps + t] * cell on, of which up to 15 behind the last cell may be read. */
struct sdx_qblend {
    const int32_t *index;
    const float *weight;
    int taps;
    int64_t cell, n;
    uint8_t flip; /* 0x80: the sums are signed, and so are the bytes */
};

struct sdx_qbytes {
    /* step_a, step_b: 0 (one byte for all) or 1 */
    void (*add)(const struct sdx_qpair *p, const uint8_t *a, size_t step_a, const uint8_t *b,
                size_t step_b, uint8_t *y, size_t n);
    void (*mul)(const struct sdx_qpair *p, const uint8_t *a, size_t step_a, const uint8_t *b,
                size_t step_b, uint8_t *y, size_t n);
    /* y may be x */
    void (*affine)(const struct sdx_qaffine *p, const uint8_t *x, uint8_t *y, size_t n);
    /* y[i] = table[x[i]] */
    void (*lookup)(const uint8_t *table, const uint8_t *x, uint8_t *y, size_t n);
    /* y[i] = (round_to_even(x[i] / scale) + zero within 0..255) ^ flip; NaN gives the least */
    void (*quantize)(const float *x, float scale, int32_t zero, uint8_t flip, uint8_t *y, size_t n);
    /* y[j * cell + i] = round_to_even(sum over t, in order) within the bounds of the bytes */
    void (*blend)(const struct sdx_qblend *b, const float *x, uint8_t *y);
    /* y[j * pitch_y + i] = x[i * pitch_x + j] for i < rows, j < columns */
    void (*transpose)(const uint8_t *x, size_t pitch_x, uint8_t *y, size_t pitch_y, size_t rows,
                      size_t columns);
    /* y[i] = max(y[i], x[i]), of bytes with the top bit flipped by `flip` */
    void (*max)(const uint8_t *x, uint8_t flip, uint8_t *y, size_t n);
    /* sum of x[i] ^ flip; n at most 2^24 */
    uint32_t (*sum)(const uint8_t *x, uint8_t flip, size_t n);
    /* sums[i] += x[i] ^ flip */
    void (*add_up)(const uint8_t *x, uint8_t flip, uint32_t *sums, size_t n);
    /* y[i] += x[i] */
    void (*add_sums)(const int32_t *x, int32_t *y, size_t n);
    /* y[i] -= times * x[i], of blocks of 16 */
    void (*less_sums)(const int32_t *x, int32_t times, int32_t *y, size_t blocks);
    /* y[i] = x[i] ^ flip */
    void (*flip)(const uint8_t *x, uint8_t flip, uint8_t *y, size_t n);
    /* A panel of 16 columns for products of four: y[(16 * s + j) * 4 + b] =
     * x[(4 * s + b) * step_k + j * step_n] ^ flip for s < steps; sums[j] += those of column j,
     * signed. step_k or step_n is 1. */
    void (*weave)(const uint8_t *x, size_t step_k, size_t step_n, uint8_t flip, size_t steps,
                  int8_t *y, int32_t *sums);
};

const struct sdx_qbytes *sdx_qbytes(void);
#endif
