/* SPDX-License-Identifier: Apache-2.0
 * The activations of a store that are more than a minimum and a maximum, on a small buffer: one
 * function a set, as in every tile they would take too much code. For files compiled once a set. */
#ifndef SDX_KERNELS_ACT_BLOCKS_H
#define SDX_KERNELS_ACT_BLOCKS_H

#include "kernels/tables.h"
#include "kernels/vec_math.h"

typedef void act_blocks_fn(float *y, int n, enum sdx_act act, float a, float b);
act_blocks_fn *SDX_INIT(sdx_act_blocks_init_)(void);

/* n is a multiple of BLOCK. */
SIMD void act_blocks(float *y, int n, enum sdx_act act, float a, float b)
{
    SDX_INIT(sdx_act_blocks_init_)()(y, n, act, a, b);
}
#endif
