/* SPDX-License-Identifier: Apache-2.0
 * The activation at the end of a store on blocked channels: limits, or a curve over vectors that
 * lie in the first cache. For files compiled once a set only. */
#ifndef SDX_KERNELS_CONV_BLOCK_CURVE_H
#define SDX_KERNELS_CONV_BLOCK_CURVE_H

#include "kernels/act_blocks.h"

SIMD bool block_is_curved(enum sdx_act act)
{
    return act > SDX_ACT_CLIP;
}

/* n vectors at y, in place. */
static inline void block_curve(float *y, int64_t n, enum sdx_act act, float a, float b)
{
    const int64_t whole = n / 4 * BLOCK;
    const size_t rest = (size_t)(n * LANES - whole) * sizeof(float);
    act_blocks(y, (int)whole, act, a, b);
    if (rest == 0) return;
    float t[BLOCK] = {0};
    memcpy(t, y + whole, rest);
    act_blocks(t, BLOCK, act, a, b);
    memcpy(y + whole, t, rest);
}
#endif
