/* SPDX-License-Identifier: Apache-2.0
 * f32 InstanceNormalization and GroupNormalization over blocked channels. */
#ifndef SDX_OPS_NORM_BLOCKED_H
#define SDX_OPS_NORM_BLOCKED_H

#include "ops/op.h"

/* Of any normalisation. */
void sdx_norm_cost(const struct sdx_infer *ix, struct sdx_cost *cost);
/* Where the input is blocked, inputs 1 and 2 are f32. */
void sdx_norm_blocked_layout(struct sdx_prepare *px, struct sdx_layouts *want);
/* groups divides the channels; per_group: scale and bias have one entry a group, not a channel. */
SDX_MUST_CHECK enum sdx_status sdx_norm_blocked_prepare(struct sdx_prepare *px, int64_t groups,
                                                        bool per_group);
#endif
