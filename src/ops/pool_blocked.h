/* SPDX-License-Identifier: Apache-2.0
 * f32 pools over blocked channels. */
#ifndef SDX_OPS_POOL_BLOCKED_H
#define SDX_OPS_POOL_BLOCKED_H

#include "kernels/pool_block.h"
#include "ops/op.h"

/* Max and average pools of one to three spatial axes without indices, of as many channels as a
 * block has or more. */
void sdx_pool_blocked_layout(struct sdx_prepare *px, struct sdx_layouts *want);
SDX_MUST_CHECK enum sdx_status sdx_pool_blocked_prepare(struct sdx_prepare *px, bool is_average);
/* What a step of a maximum pool does; NULL: it is another, or does it in two turns. */
const struct sdx_pool_block *sdx_pool_blocked_max(const struct sdx_step *step);
/* The mean or maximum over all spatial axes: a blocked input, a plain output of one number a
 * channel. */
SDX_MUST_CHECK enum sdx_status sdx_global_blocked_prepare(struct sdx_prepare *px, bool is_average);
#endif
