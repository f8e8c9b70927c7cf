/* SPDX-License-Identifier: Apache-2.0
 * What scatters share: the copy of the data that they write to, and the reductions of
 * ScatterElements and ScatterND. */
#ifndef SDX_OPS_SCATTER_REDUCE_H
#define SDX_OPS_SCATTER_REDUCE_H

#include "ops/step.h"

/* Adds the step `run` over the node's operands, which finds output 0 holding input 0 already. */
SDX_MUST_CHECK enum sdx_status sdx_scatter_add(struct sdx_prepare *px, const char *kernel,
                                               sdx_step_fn *run, void *params, int64_t parts);

/* dst[i] = dst[i] op src[i] for n elements */
typedef void sdx_scatter_fn(void *dst, const void *src, int64_t n);
/* name: add, mul, max, min. Bool: or, and, or, and. NaN wins in max and min. NULL: unknown name, or
 * not defined for the element type. */
sdx_scatter_fn *sdx_scatter_find(struct sdx_str name, int dtype);
#endif
