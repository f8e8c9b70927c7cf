/* SPDX-License-Identifier: Apache-2.0
 * Rounding of f32 values to f16 and bf16, and the row softmax with such roundings. */
#include "ops/narrow.h"

#include <math.h>
#include <stdint.h>

#include "kernels/vec.h"
#include "tensor/tensor.h"

enum {
    BLOCK = 256,
    /* bf16 terms that are added up one by one in bf16, as the reference does it for the whole row.
     * There a sum of 256 swallows every term below 1; here blocks are added in f32. */
    SUM_BLOCK = 16
};

void sdx_narrow_round(int dtype, float *x, size_t n)
{
    const struct sdx_vec *vec = sdx_vec();
    uint16_t narrow[BLOCK];
    if (dtype != SDX_F16 && dtype != SDX_BF16) return;
    for (size_t at = 0; at < n; at += BLOCK) {
        size_t count = n - at < BLOCK ? n - at : BLOCK;
        if (dtype == SDX_F16) {
            vec->f32_to_f16(x + at, narrow, count);
            vec->f16_to_f32(narrow, x + at, count);
        } else {
            vec->f32_to_bf16(x + at, narrow, count);
            vec->bf16_to_f32(narrow, x + at, count);
        }
    }
}

static float sum_of(int dtype, const float *x, size_t n)
{
    if (dtype != SDX_BF16) return sdx_vec()->f32_reduce_sum(x, n);
    float total = 0;
    for (size_t at = 0; at < n; at += SUM_BLOCK) {
        float sum = 0;
        for (size_t i = at; i < n && i < at + SUM_BLOCK; i++) {
            sum += x[i];
            sdx_narrow_round(dtype, &sum, 1);
        }
        total += sum;
    }
    return total;
}

void sdx_narrow_softmax(int dtype, const float *x, float *y, size_t n)
{
    const struct sdx_vec *vec = sdx_vec();
    if (n == 0) return;
    float largest = vec->f32_reduce_max(x, n);
    vec->f32_sub(x, 1, &largest, 0, y, n);
    sdx_narrow_round(dtype, y, n);
    vec->f32_exp(y, y, n, 0, 0);
    sdx_narrow_round(dtype, y, n);
    float sum = sum_of(dtype, y, n), rounded = sum;
    sdx_narrow_round(dtype, &rounded, 1);
    if (isinf(rounded)) rounded = sum; /* more than f16 can hold */
    vec->f32_div(y, 1, &rounded, 0, y, n);
}
