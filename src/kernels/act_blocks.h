/* SPDX-License-Identifier: Apache-2.0
 * The activations of a store that are more than a minimum and a maximum, on a small buffer: one
 * function a set, as in every tile they would take too much code. For files compiled once a set. */
#ifndef SDX_KERNELS_ACT_BLOCKS_H
#define SDX_KERNELS_ACT_BLOCKS_H

#include "kernels/vec_math.h"

#define ACT_CASE(id)                                                                               \
    case id:                                                                                       \
        for (int at = 0; at < n; at += BLOCK)                                                      \
            x_store(y + at, x_act(x_load(y + at), id, a, b));                                      \
        break;
/* n is a multiple of BLOCK. */
static SDX_NOINLINE void act_blocks(float *y, int n, enum sdx_act act, float a, float b)
{
    switch (act) {
    case SDX_ACT_NONE:
        break;
        ACT_CASE(SDX_ACT_RELU)
        ACT_CASE(SDX_ACT_CLIP)
        ACT_CASE(SDX_ACT_LEAKY_RELU)
        ACT_CASE(SDX_ACT_SIGMOID)
        ACT_CASE(SDX_ACT_TANH)
        ACT_CASE(SDX_ACT_SILU)
        ACT_CASE(SDX_ACT_HARD_SWISH)
        ACT_CASE(SDX_ACT_HARD_SIGMOID)
        ACT_CASE(SDX_ACT_GELU_ERF)
        ACT_CASE(SDX_ACT_GELU_TANH)
    }
}
#undef ACT_CASE
#endif
