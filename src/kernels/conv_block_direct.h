/* SPDX-License-Identifier: Apache-2.0
 * The forms DIRECT and FIRST of conv_block.h: sums over runs of the input from tables of offsets,
 * read in place; padding is left out. */
#ifndef SDX_KERNELS_CONV_BLOCK_DIRECT_H
#define SDX_KERNELS_CONV_BLOCK_DIRECT_H

#include "kernels/conv.h"

bool sdx_direct_block_fits(const struct sdx_conv_shape *s);
bool sdx_direct_block_is_first(const struct sdx_conv_shape *s);
size_t sdx_direct_block_packed_size(const struct sdx_conv_shape *s);
void sdx_direct_block_pack(const struct sdx_conv_shape *s, const sdx_weight_f32 *weights,
                           void *packed);
int64_t sdx_direct_block_parts(const struct sdx_conv_shape *s);
size_t sdx_direct_block_scratch(const struct sdx_conv_shape *s);
void sdx_direct_block_part(const struct sdx_conv_shape *s, const float *x, const void *packed,
                           float *y, const struct sdx_epilogue *epilogue, int64_t part,
                           void *scratch);
#endif
