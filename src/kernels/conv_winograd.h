/* SPDX-License-Identifier: Apache-2.0
 * f32 convolution of 3 x 3, stride 1, by Winograd's F(4 x 4, 3 x 3) with the points 0, +-2/3,
 * +-3/2 and infinity: a quarter of the multiplications. Rounding errors are those of a tile, not of
 * a pixel: with random operands below 5e-6 of the output's largest magnitude up to 512 channels
 * (kernelcheck holds it). A NaN or infinity spreads over the 4 x 4 outputs of every tile that reads
 * it. Private to conv_f32.c. */
#ifndef SDX_KERNELS_CONV_WINOGRAD_H
#define SDX_KERNELS_CONV_WINOGRAD_H

#include "kernels/conv.h"

/* Is it the faster way? By the shape of one image, so that a batch changes no bit of it. */
bool sdx_winograd_f32_fits(const struct sdx_conv_shape *s);
/* As in conv.h. The packed form depends on the channels only. */
size_t sdx_winograd_f32_packed_size(const struct sdx_conv_shape *s);
void sdx_winograd_f32_pack(const struct sdx_conv_shape *s, const float *weights, float *packed);
int64_t sdx_winograd_f32_parts(const struct sdx_conv_shape *s);
size_t sdx_winograd_f32_scratch(const struct sdx_conv_shape *s);
void sdx_winograd_f32_part(const struct sdx_conv_shape *s, const float *x, const float *packed,
                           float *y, const struct sdx_epilogue *epilogue, int64_t part,
                           void *scratch);
#endif
