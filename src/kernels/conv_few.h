/* SPDX-License-Identifier: Apache-2.0
 * f32 convolution of few output channels on plain images: pixels are the lanes. Weights are packed
 * as [group][tile of 4 channels][k][channel of the tile]. */
#ifndef SDX_KERNELS_CONV_FEW_H
#define SDX_KERNELS_CONV_FEW_H

#include "kernels/conv.h"

void sdx_conv_few_pack(const struct sdx_conv_shape *s, const float *weights, float *packed);
int64_t sdx_conv_few_parts(const struct sdx_conv_shape *s);
size_t sdx_conv_few_scratch(const struct sdx_conv_shape *s);
void sdx_conv_few_part(const struct sdx_conv_shape *s, const float *x, const float *packed,
                       float *y, const struct sdx_epilogue *epilogue, int64_t part, void *scratch);
#endif
