/* SPDX-License-Identifier: Apache-2.0
 * Direct f32 convolution with one input channel a group. Weights are read plain. */
#ifndef SDX_KERNELS_CONV_DEPTHWISE_H
#define SDX_KERNELS_CONV_DEPTHWISE_H

#include "kernels/conv.h"

int64_t sdx_depthwise_f32_parts(const struct sdx_conv_shape *s);
size_t sdx_depthwise_f32_scratch(const struct sdx_conv_shape *s);
void sdx_depthwise_f32_part(const struct sdx_conv_shape *s, const float *x, const float *weights,
                            float *y, const struct sdx_epilogue *epilogue, int64_t part,
                            void *scratch);
#endif
