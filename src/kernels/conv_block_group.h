/* SPDX-License-Identifier: Apache-2.0
 * f32 convolution in groups of one block of output channels each ([N][C / b][H][W][b], b the lanes
 * of a vector), or in groups of so few channels, as many in as out, that a block holds some of
 * them. Kernels are three wide: a value of the input is read once for all three outputs of
 * its row that it adds to, as one vector of outputs is too few for a panel. Sums are chains over
 * the block, the kernel row, the channel and the kernel column. Pixels beside the image are zeros
 * that are multiplied, rows above and below it are left out. Groups that share a block have a
 * channel each in a vector of inputs: a permutation in place of a broadcast. */
#ifndef SDX_KERNELS_CONV_BLOCK_GROUP_H
#define SDX_KERNELS_CONV_BLOCK_GROUP_H

#include "kernels/conv.h"

/* Stride 1 or 2 across; not for 16-bit weights, which would be f32; not on every set. */
bool sdx_group_block_fits(const struct sdx_conv_shape *s);
/* As in conv.h: weights are plain [oc, ic / groups, kh, 3], bias_row has oc elements, the residual
 * is laid out as y. The packed form depends on the channels, the groups and the kernel. */
size_t sdx_group_block_packed_size(const struct sdx_conv_shape *s);
void sdx_group_block_pack(const struct sdx_conv_shape *s, const sdx_weight_f32 *weights,
                          void *packed, const struct sdx_pieces *pieces);
int64_t sdx_group_block_parts(const struct sdx_conv_shape *s);
size_t sdx_group_block_scratch(const struct sdx_conv_shape *s);
void sdx_group_block_part(const struct sdx_conv_shape *s, const float *x, const void *packed,
                          float *y, const struct sdx_epilogue *epilogue, int64_t part,
                          void *scratch);
#endif
