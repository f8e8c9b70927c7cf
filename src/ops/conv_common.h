/* SPDX-License-Identifier: Apache-2.0
 * What convolutions share with one another and with pools: inference, cost, shape, bands. */
#ifndef SDX_OPS_CONV_COMMON_H
#define SDX_OPS_CONV_COMMON_H

#include "kernels/conv.h"
#include "ops/op.h"

/* Output 0 of a convolution of inputs x and w; bias: its input, -1: none. */
enum sdx_status sdx_conv_infer_of(struct sdx_infer *ix, int x, int w, int bias, int dtype);
/* w: the input with the weights. */
void sdx_conv_cost_of(const struct sdx_infer *ix, int w, struct sdx_cost *cost);
/* Shape of the convolution of x and w into y. */
SDX_MUST_CHECK enum sdx_status sdx_conv_shape_of(struct sdx_prepare *px, const struct sdx_tensor *x,
                                                 const struct sdx_tensor *w,
                                                 const struct sdx_tensor *y,
                                                 struct sdx_conv_shape *s);
/* Of a convolution: what the packed forms of kernels/conv.h depend on. */
int64_t sdx_conv_variant(const struct sdx_conv_shape *s);
/* For sdx_prepare_absorbs: f32 convolutions and maximum pools over blocked channels in bands
 * (kernels/conv_block_bands.h). */
sdx_absorb_fn sdx_conv_absorb;
#endif
