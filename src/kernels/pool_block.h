/* SPDX-License-Identifier: Apache-2.0
 * f32 pooling of one or two dimensions on blocked channels, where a plane is [H][W][b], b being the
 * lanes of a vector of the set in use: one channel block of one image a call. */
#ifndef SDX_KERNELS_POOL_BLOCK_H
#define SDX_KERNELS_POOL_BLOCK_H

#include <stdbool.h>
#include <stdint.h>

/* Height and width; 1-D has leading lengths of 1, strides and dilations 1, pads 0. Pads may be
 * negative. pad_end counts for averages alone. */
struct sdx_pool_block {
    int64_t in[2], out[2], kernel[2], stride[2], dilation[2];
    int64_t pad_begin[2], pad_end[2];
};

/* Rows h0 .. h1 of y from the plane x. A window with no pixel gives -infinity; a NaN spreads to
 * every window that holds it. */
void sdx_pool_block_max(const struct sdx_pool_block *p, const float *x, float *y, int64_t h0,
                        int64_t h1);
/* The sum, row by row, divided by the number of its pixels; with count_pads the pads count as
 * pixels of value 0, what lies beyond them does not. A window with none gives 0. */
void sdx_pool_block_average(const struct sdx_pool_block *p, bool count_pads, const float *x,
                            float *y, int64_t h0, int64_t h1);
/* The mean of each lane over a plane: y is one vector. Summed by blocks of 256 pixels, four sums
 * each. */
void sdx_pool_block_mean(int64_t pixels, const float *x, float *y);
#endif
