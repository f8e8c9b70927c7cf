/* SPDX-License-Identifier: Apache-2.0
 * Operators along one axis that keep track of a position: ArgMax, ArgMin, CumSum, CumProd. */
#ifndef SDX_OPS_SCAN_H
#define SDX_OPS_SCAN_H

#include "ops/infer.h"
#include "ops/step.h"

/* Where the largest or smallest of n >= 1 floats is, the first or last of equal ones; a NaN is more
 * extreme than any number. */
int64_t sdx_arg_row(const float *x, int64_t n, bool is_min, bool is_last);
/* The same for each of `rows` of them, one behind the other. */
void sdx_arg_rows(const float *x, int64_t rows, int64_t n, bool is_min, bool is_last, int64_t *y);
enum sdx_status sdx_arg_infer(struct sdx_infer *ix);
enum sdx_status sdx_arg_prepare(struct sdx_prepare *px);
enum sdx_status sdx_cumulate_infer(struct sdx_infer *ix);
enum sdx_status sdx_cumulate_prepare(struct sdx_prepare *px);
#endif
