/* SPDX-License-Identifier: Apache-2.0
 * f32 convolution of 1 to 3 spatial dimensions in plain NC[D]HW layout: by implicit GEMM (the image
 * is gathered straight into the packed operand, block of pixels by block), direct where few output
 * channels would be few rows of it, and depthwise direct. One thread a call. Numbers below 2^-126
 * count as 0. */
#ifndef SDX_KERNELS_CONV_H
#define SDX_KERNELS_CONV_H

#include "kernels/gemm.h"

/* Shapes of one convolution; 1-D and 2-D have leading lengths of 1, strides and dilations 1, pads
 * 0. */
struct sdx_conv_shape {
    int64_t batch, groups;
    int64_t ic, oc; /* channels in all groups */
    int64_t in[3], out[3], kernel[3], stride[3], dilation[3];
    int64_t pad_begin[3]; /* may be negative: cropped */
    enum sdx_half half;   /* the weights are such numbers: conv_block.h packs them in 16 bits */
    int winograd; /* on blocks: tiles of 2, 3, 4 or 6, -1: none, 1: none but the machine's (AMX); 0:
                     what the shape says is fastest; more: sdx_spans_block_ways */
};

/* Every output pixel reads the input pixel at its own place. */
static inline bool sdx_conv_is_pointwise(const struct sdx_conv_shape *s)
{
    for (int i = 0; i < 3; i++)
        if (s->kernel[i] != 1 || s->stride[i] != 1 || s->pad_begin[i] != 0 || s->in[i] != s->out[i])
            return false;
    return true;
}

/* Few output channels of planes: pixels are the lanes, which takes no gathering. */
bool sdx_conv_f32_is_few(const struct sdx_conv_shape *s);
/* Weights [oc, ic / groups, kernel...] packed once. The form depends on groups, ic, oc, kernel, on
 * whether the output has more than one pixel, and on sdx_conv_f32_is_few; on nothing else of the
 * shape. */
size_t sdx_conv_f32_packed_size(const struct sdx_conv_shape *s);
void sdx_conv_f32_pack(const struct sdx_conv_shape *s, const float *weights, float *packed);
/* Number of parts (from the shape only) and bytes of scratch for one. */
int64_t sdx_conv_f32_parts(const struct sdx_conv_shape *s);
size_t sdx_conv_f32_scratch(const struct sdx_conv_shape *s);
/* x [batch, ic, in...], y [batch, oc, out...]; epilogue: bias_row per output channel; residual as
 * y. */
void sdx_conv_f32_part(const struct sdx_conv_shape *s, const float *x, const float *packed,
                       float *y, const struct sdx_epilogue *epilogue, int64_t part, void *scratch);
/* y[i] = act(y[i] + bias): what the epilogue has besides is not looked at. */
void sdx_conv_f32_finish(float *y, int64_t n, float bias, const struct sdx_epilogue *epilogue);
/* Multiply-accumulates of the whole convolution. */
double sdx_conv_macs(const struct sdx_conv_shape *s);
#endif
