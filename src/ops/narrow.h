/* SPDX-License-Identifier: Apache-2.0
 * Operators that the standard's reference computes in f16 or bf16 step by step, each result
 * rounded: values stay f32 here and are rounded where the reference does it. */
#ifndef SDX_OPS_NARROW_H
#define SDX_OPS_NARROW_H

#include "ops/step.h"

/* Rounds to what `dtype` (SDX_F16, SDX_BF16) can hold; any other type: nothing. */
void sdx_narrow_round(int dtype, float *x, size_t n);
/* Softmax of one row with differences, powers and their sum rounded; the quotients are not. x holds
 * values of `dtype`, one of the two; y may be x. All -inf gives NaN. */
void sdx_narrow_softmax(int dtype, const float *x, float *y, size_t n);
/* Softmax of n > 0 values in place. */
void sdx_softmax_f64(double *x, int64_t n);
/* Adds a step that writes the elements of `from`, converted, to `to` of the same shape. */
SDX_MUST_CHECK enum sdx_status sdx_prepare_convert(struct sdx_prepare *px, struct sdx_tensor *from,
                                                   struct sdx_tensor *to);
/* The same into a temporary of `dtype`, which is returned; NULL: error is set. */
struct sdx_tensor *sdx_prepare_converted(struct sdx_prepare *px, struct sdx_tensor *from,
                                         int dtype);
/* Adds a step that writes the f32 tensor `from` times factor, rounded to px->narrow, to `to` (may
 * be `from`; NULL: a temporary). Returns `to`; NULL: error is set. */
struct sdx_tensor *sdx_narrow_scaled(struct sdx_prepare *px, float factor, struct sdx_tensor *from,
                                     struct sdx_tensor *to);
#endif
