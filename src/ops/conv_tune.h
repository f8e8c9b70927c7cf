/* SPDX-License-Identifier: Apache-2.0
 * The form of a convolution by measurement, where the session is tuned. */
#ifndef SDX_OPS_CONV_TUNE_H
#define SDX_OPS_CONV_TUNE_H

#include "kernels/conv.h"
#include "ops/op.h"

/* Sets shape->winograd to the fastest form over blocks for one image of this shape, so that a row
 * has the same bits in any batch. true: plain layout is faster than all of them. Without tuning,
 * and for weights that each run packs, nothing changes. An error may be set: the run was cancelled.
 */
bool sdx_conv_tune(struct sdx_prepare *px, struct sdx_conv_shape *shape);
#endif
