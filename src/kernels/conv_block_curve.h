/* SPDX-License-Identifier: Apache-2.0
 * Activations that are more than a minimum and a maximum, over vectors that lie in the first cache:
 * the end of a store on blocked channels. For files compiled once a set only. */
#ifndef SDX_KERNELS_CONV_BLOCK_CURVE_H
#define SDX_KERNELS_CONV_BLOCK_CURVE_H

#include "kernels/vec_math.h"

SIMD bool block_is_curved(enum sdx_act act)
{
    return act > SDX_ACT_CLIP;
}
/* The limits that the other activations are. */
SIMD void block_limits(enum sdx_act act, float a, float b, float *lo, float *hi)
{
    *lo = act == SDX_ACT_RELU ? 0.0f : act == SDX_ACT_CLIP ? a : -INFINITY;
    *hi = act == SDX_ACT_CLIP ? b : INFINITY;
}

SIMD void block_curve_loop(float *y, int64_t n, const enum sdx_act act, float a, float b)
{
    for (; n >= 4; n -= 4, y += BLOCK)
        x_store(y, x_act(x_load(y), act, a, b));
    if (n == 0) return;
    struct vx v = x_set1(0.0f);
    SDX_UNROLL(3) for (int i = 0; i < 3; i++) if (i < n) v.r[i] = v_load(y + i * LANES);
    v = x_act(v, act, a, b);
    SDX_UNROLL(3) for (int i = 0; i < 3; i++) if (i < n) v_store(y + i * LANES, v.r[i]);
}
#define CURVE(id)                                                                                  \
    case id: block_curve_loop(y, n, id, a, b); break;
/* n vectors at y, in place. */
static inline void block_curve(float *y, int64_t n, enum sdx_act act, float a, float b)
{
    switch (act) {
        CURVE(SDX_ACT_LEAKY_RELU)
        CURVE(SDX_ACT_SIGMOID)
        CURVE(SDX_ACT_TANH)
        CURVE(SDX_ACT_SILU)
        CURVE(SDX_ACT_HARD_SWISH)
        CURVE(SDX_ACT_HARD_SIGMOID)
        CURVE(SDX_ACT_GELU_ERF)
        CURVE(SDX_ACT_GELU_TANH)
    default: break;
    }
}
#undef CURVE
#endif
