/* SPDX-License-Identifier: Apache-2.0
 * Winograd's convolution (conv_block_winograd.h) with the products of tiles that a machine has
 * (AMX): V, a row for each tile of the image and plane, is A, U is B, of digits as gemm_tiles.h
 * says, with the errors that stand in gemm.h. All channels being one span, a NaN or infinity gives
 * NaN in all channels of the outputs of every tile that reads it. */
#ifndef SDX_KERNELS_CONV_BLOCK_WINOGRAD_DIGITS_H
#define SDX_KERNELS_CONV_BLOCK_WINOGRAD_DIGITS_H

#include "kernels/conv.h"

/* Are Winograd's tiles with stride 1 had so? The channels decide. */
bool sdx_winograd_digits_serve(const struct sdx_conv_shape *s);
/* And are such tiles the best way? As in conv_block_winograd.h. */
bool sdx_winograd_digits_fits(const struct sdx_conv_shape *s);
size_t sdx_winograd_digits_packed_size(const struct sdx_conv_shape *s);
void sdx_winograd_digits_pack(const struct sdx_conv_shape *s, const sdx_weight_f32 *weights,
                              void *packed, const struct sdx_pieces *pieces);
int64_t sdx_winograd_digits_parts(const struct sdx_conv_shape *s);
int64_t sdx_winograd_digits_together(const struct sdx_conv_shape *s);
size_t sdx_winograd_digits_scratch(const struct sdx_conv_shape *s);
void sdx_winograd_digits_run(const struct sdx_conv_shape *s, const float *x, const void *packed,
                             float *y, const struct sdx_epilogue *epilogue, int64_t part,
                             int64_t end, void *scratch);
#endif
