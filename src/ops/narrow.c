/* SPDX-License-Identifier: Apache-2.0
 * Rounding of f32 values to f16 and bf16, the row softmax with such roundings, and that of f64. */
#include "ops/narrow.h"

#include <math.h>

#include "kernels/vec.h"

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

void sdx_softmax_f64(double *x, int64_t n)
{
    double top = x[0], sum = 0;
    for (int64_t i = 1; i < n; i++)
        top = x[i] > top || x[i] != x[i] ? x[i] : top;
    for (int64_t i = 0; i < n; i++)
        sum += x[i] = exp(x[i] - top);
    for (int64_t i = 0; i < n; i++)
        x[i] /= sum;
}

struct scaled {
    float factor;
    int narrow;
};

static enum sdx_status run_scaled(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)x;
    const struct scaled *p = step->params;
    int64_t begin = sdx_part_begin(step->in[0]->count, step->parts, part, 64);
    int64_t end = sdx_part_begin(step->in[0]->count, step->parts, part + 1, 64);
    float *to = (float *)step->out[0]->data + begin;
    sdx_vec()->f32_mul((const float *)step->in[0]->data + begin, 1, &p->factor, 0, to,
                       (size_t)(end - begin));
    sdx_narrow_round(p->narrow, to, (size_t)(end - begin));
    return SDX_OK;
}

struct sdx_tensor *sdx_narrow_scaled(struct sdx_prepare *px, float factor, struct sdx_tensor *from,
                                     struct sdx_tensor *to)
{
    struct scaled *p = SDX_PREPARE_NEW(px, struct scaled);
    if (p && !to) to = sdx_prepare_temp(px, SDX_F32, from->rank, from->dims);
    if (!p || !to) return NULL;
    *p = (struct scaled){factor, px->narrow};
    int64_t parts = sdx_prepare_parts((double)from->count, 1 << 15, 64);
    return sdx_prepare_step_on(px, "narrow_scale", run_scaled, p, parts, 0, 1, &from, 1, &to) ==
                   SDX_OK
               ? to
               : NULL;
}
