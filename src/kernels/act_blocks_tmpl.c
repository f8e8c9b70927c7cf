/* SPDX-License-Identifier: Apache-2.0
 * Activations of act_blocks.h, once an instruction set. */
#include "kernels/act_blocks.h"

#define ACT_CASE(id)                                                                               \
    case id:                                                                                       \
        for (int at = 0; at < n; at += BLOCK)                                                      \
            x_store(y + at, x_act(x_load(y + at), id, a, b));                                      \
        break;
static void run(float *y, int n, enum sdx_act act, float a, float b)
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
act_blocks_fn *SDX_INIT(sdx_act_blocks_init_)(void)
{
    return run;
}
