/* SPDX-License-Identifier: Apache-2.0
 * Pooling on blocked channels: by the table of the set in use. */
#include "kernels/pool_block.h"

#include "kernels/tables.h"

void sdx_pool_block_max(const struct sdx_pool_block *p, const float *x, float *y, int64_t r0,
                        int64_t r1)
{
    sdx_kernel_tables()->pool.f32_max(p, x, y, r0, r1);
}
void sdx_pool_block_average(const struct sdx_pool_block *p, bool count_pads, const float *x,
                            float *y, int64_t r0, int64_t r1)
{
    sdx_kernel_tables()->pool.f32_average(p, count_pads, x, y, r0, r1);
}
void sdx_pool_block_mean(int64_t pixels, const float *x, float *y)
{
    sdx_kernel_tables()->pool.f32_mean(pixels, x, y);
}
void sdx_pool_block_squares(int64_t pixels, const float *x, const float *mean, float *y)
{
    sdx_kernel_tables()->pool.f32_squares(pixels, x, mean, y);
}
