/* SPDX-License-Identifier: Apache-2.0
 * f32 pooling of one to three dimensions on blocked channels, where a plane is [D][H][W][b], b
 * being the lanes of a vector of the set in use: one channel block of one image a call. */
#ifndef SDX_KERNELS_POOL_BLOCK_H
#define SDX_KERNELS_POOL_BLOCK_H

#include <stdbool.h>
#include <stdint.h>

/* Depth, height and width; of fewer dimensions, leading lengths, strides and dilations are 1, pads
 * 0. Pads may be negative. pad_end counts for averages alone. */
struct sdx_pool_block {
    int64_t in[3], out[3], kernel[3], stride[3], dilation[3];
    int64_t pad_begin[3], pad_end[3];
};

/* Rows r0 .. r1 of y (out[0] * out[1] of out[2] pixels) from the plane x. A window with no pixel
 * gives -infinity; a NaN spreads to every window that holds it. */
void sdx_pool_block_max(const struct sdx_pool_block *p, const float *x, float *y, int64_t r0,
                        int64_t r1);
/* The sum, column by column, divided by the number of its pixels; with count_pads the pads count as
 * pixels of value 0, what lies beyond them does not. A window with none gives 0. */
void sdx_pool_block_average(const struct sdx_pool_block *p, bool count_pads, const float *x,
                            float *y, int64_t r0, int64_t r1);
/* The mean of each lane over a plane: y is one vector. Summed by blocks of 256 pixels, four sums
 * each. */
void sdx_pool_block_mean(int64_t pixels, const float *x, float *y);
/* The sum of the squares of what each lane has above or below its mean, summed in the same way. */
void sdx_pool_block_squares(int64_t pixels, const float *x, const float *mean, float *y);
#endif
