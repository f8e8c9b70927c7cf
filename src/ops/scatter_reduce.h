/* SPDX-License-Identifier: Apache-2.0
 * The reductions of ScatterElements and ScatterND: dst[i] = dst[i] op src[i] for n elements. */
#ifndef SDX_OPS_SCATTER_REDUCE_H
#define SDX_OPS_SCATTER_REDUCE_H

#include "base/str.h"

typedef void sdx_scatter_fn(void *dst, const void *src, int64_t n);
/* name: add, mul, max, min. Bool: or, and, or, and. NaN wins in max and min. NULL: unknown name, or
 * not defined for the element type. */
sdx_scatter_fn *sdx_scatter_find(struct sdx_str name, int dtype);
#endif
