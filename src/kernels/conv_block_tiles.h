/* SPDX-License-Identifier: Apache-2.0
 * The form TILES of conv_block.h: convolutions by the products of tiles that a machine has (AMX). A
 * row of A is what an output pixel sees, a column of B a filter, with the errors that stand in
 * gemm.h, all of K being one span. An infinity or NaN gives NaN in all channels of the outputs that
 * see it. */
#ifndef SDX_KERNELS_CONV_BLOCK_TILES_H
#define SDX_KERNELS_CONV_BLOCK_TILES_H

#include "kernels/conv.h"

/* Cycles of an image (Sapphire Rapids); INFINITY where another form is faster in any case, or it is
 * not served. */
double sdx_tiles_block_cost(const struct sdx_conv_shape *s);
bool sdx_tiles_block_fits(const struct sdx_conv_shape *s);
size_t sdx_tiles_block_packed_size(const struct sdx_conv_shape *s);
void sdx_tiles_block_pack(const struct sdx_conv_shape *s, const sdx_weight_f32 *weights,
                          void *packed, const struct sdx_pieces *pieces);
int64_t sdx_tiles_block_parts(const struct sdx_conv_shape *s);
int64_t sdx_tiles_block_together(const struct sdx_conv_shape *s);
size_t sdx_tiles_block_scratch(const struct sdx_conv_shape *s);
void sdx_tiles_block_run(const struct sdx_conv_shape *s, const float *x, const void *packed,
                         float *y, const struct sdx_epilogue *epilogue, int64_t part, int64_t end,
                         void *scratch);
#endif
