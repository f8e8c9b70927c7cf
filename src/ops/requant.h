/* SPDX-License-Identifier: Apache-2.0
 * Zero points, scales and the final rounding of integer products and convolutions. */
#ifndef SDX_OPS_REQUANT_H
#define SDX_OPS_REQUANT_H

#include "ops/op.h"

/* Where they come from; any may be NULL (zero 0, scale 1). Each has one element, or rows (a) or
 * columns (b) of them. */
struct sdx_qsource {
    struct sdx_tensor *zero_a, *scale_a, *zero_b, *scale_b, *zero_y, *scale_y;
    int64_t rows, columns; /* rows: 1 when a's are scalars */
};
/* Them as arrays. factor[j] = scale_a[0] * scale_b[j] / scale_y. */
struct sdx_qfacts {
    int32_t zero_y;
    float scale_y;
    const int32_t *zero_a, *zero_b;
    const float *scale_a, *scale_b, *factor;
};
/* Reads them once when all are constant (*fixed), otherwise by a step of each run into a tensor
 * (*temp). */
SDX_MUST_CHECK enum sdx_status sdx_qfacts_prepare(struct sdx_prepare *px,
                                                  const struct sdx_qsource *source,
                                                  const void **fixed, struct sdx_tensor **temp);
struct sdx_qfacts sdx_qfacts_view(const void *block, int64_t rows, int64_t columns);

/* Bounds of the bytes of a result: those of its type, or the attribute "clamp" that the pass qdq
 * gives. */
struct sdx_qclamp {
    int32_t lo, hi;
};
/* Of output 0; unused when that holds no bytes. */
SDX_MUST_CHECK enum sdx_status sdx_qclamp_read(struct sdx_prepare *px, struct sdx_qclamp *clamp);
/* y[i] = round_to_even((sums[i] + bias) * factor) + zero within the bounds, y u8 or s8. */
void sdx_requantize(const int32_t *sums, int64_t n, int32_t bias, float factor, int32_t zero,
                    struct sdx_qclamp clamp, void *y);
/* One value: saturate(round_to_even(x) + zero) to lo..hi; NaN gives lo. */
static inline int32_t sdx_round_saturate(float x, int32_t zero, int32_t lo, int32_t hi)
{
    float low = (float)(lo - zero), high = (float)(hi - zero);
    x = x > low ? x : low;
    x = x < high ? x : high;
    /* Below 2^22 in size: adding and taking away 3 * 2^22 rounds to even. */
    float magic = 12582912.0f;
    return (int32_t)((x + magic) - magic) + zero;
}
#endif
