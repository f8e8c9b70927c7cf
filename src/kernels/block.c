/* SPDX-License-Identifier: Apache-2.0
 * Between plain and blocked channels. */
#include "kernels/block.h"

#include "kernels/tables.h"

int64_t sdx_block_lanes(void)
{
    return sdx_kernel_tables()->gemm.cols / 2;
}

void sdx_block_from_plain(const float *from, int64_t pixels, int64_t channels, float *to)
{
    const int64_t lanes = sdx_block_lanes();
    for (int64_t p = 0; p < pixels; p++)
        for (int64_t c = 0; c < lanes; c++)
            to[p * lanes + c] = c < channels ? from[c * pixels + p] : 0.0f;
}

void sdx_block_to_plain(const float *from, int64_t pixels, int64_t channels, float *to)
{
    const int64_t lanes = sdx_block_lanes();
    for (int64_t c = 0; c < channels; c++)
        for (int64_t p = 0; p < pixels; p++)
            to[c * pixels + p] = from[p * lanes + c];
}
