/* SPDX-License-Identifier: Apache-2.0
 * Blocked channels that come from channels of other blocked tensors, in any order: what Concat,
 * Split, Gather and Pad along the channels do where pieces fill no whole blocks. */
#ifndef SDX_OPS_CHANNEL_PICK_H
#define SDX_OPS_CHANNEL_PICK_H

#include "ops/op.h"

/* A channel of operand `input` of a step; -1: zeros. */
struct sdx_channel {
    int32_t input;
    int64_t channel;
};

/* Adds a step that makes the channels of `out` from map[0] .. map[C - 1]; all are blocked, of the
 * same batch and pixels. */
SDX_MUST_CHECK enum sdx_status sdx_channel_pick(struct sdx_prepare *px, const char *kernel,
                                                int count_in, struct sdx_tensor *const *in,
                                                struct sdx_tensor *out,
                                                const struct sdx_channel *map);
#endif
