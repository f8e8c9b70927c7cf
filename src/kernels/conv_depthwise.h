/* SPDX-License-Identifier: Apache-2.0
 * Direct f32 convolution with one input channel a group. Weights are read plain. */
#ifndef SDX_KERNELS_CONV_DEPTHWISE_H
#define SDX_KERNELS_CONV_DEPTHWISE_H

#include "kernels/conv.h"

/* Does it have a kernel of its own? */
bool sdx_depthwise_f32_is_banded(const struct sdx_conv_shape *s);
int64_t sdx_depthwise_f32_parts(const struct sdx_conv_shape *s);
size_t sdx_depthwise_f32_scratch(const struct sdx_conv_shape *s);
void sdx_depthwise_f32_part(const struct sdx_conv_shape *s, const float *x, const float *weights,
                            float *y, const struct sdx_epilogue *epilogue, int64_t part,
                            void *scratch);

/* A band of padded input rows of one channel: planes of `pitch` floats a line, one for each phase
 * of rows and of columns that a stride leaves. */
struct conv_band {
    int64_t row_phases, column_phases, pitch, plane;
};
/* The input rows of output rows o0 .. o0 + rows; what lies outside the image is 0 in the buffer
 * from before, except in lines that an earlier band has filled. */
void sdx_conv_fill_band(const struct sdx_conv_shape *s, const struct conv_band *b, const float *x,
                        int64_t o0, int64_t rows, float *buffer);
#endif
