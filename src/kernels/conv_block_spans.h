/* SPDX-License-Identifier: Apache-2.0
 * f32 convolution in groups on blocked channels, as one of a single group for each span: the
 * neighbouring blocks of outputs that read the same channels. Groups of whole blocks are spans, and
 * taken where Winograd is the best way of one. Of other groups a block that lies in two reads the
 * channels of both, and a group's first block of channels is read from its first lane on; weights
 * in between are zeros, so that a NaN or infinity in one group reaches outputs of another that
 * share a block. Taken where that is less work than plain layout makes. */
#ifndef SDX_KERNELS_CONV_BLOCK_SPANS_H
#define SDX_KERNELS_CONV_BLOCK_SPANS_H

#include "kernels/conv.h"

bool sdx_spans_block_fits(const struct sdx_conv_shape *s);
/* For s->winograd: the ways of all spans, which the packed form depends on. */
int sdx_spans_block_ways(const struct sdx_conv_shape *s);
/* As in conv_block.h. */
size_t sdx_spans_block_packed_size(const struct sdx_conv_shape *s);
size_t sdx_spans_block_pack_scratch(const struct sdx_conv_shape *s);
void sdx_spans_block_pack(const struct sdx_conv_shape *s, const sdx_weight_f32 *weights,
                          void *packed, void *scratch);
int64_t sdx_spans_block_parts(const struct sdx_conv_shape *s);
int64_t sdx_spans_block_together(const struct sdx_conv_shape *s);
size_t sdx_spans_block_scratch(const struct sdx_conv_shape *s);
void sdx_spans_block_run(const struct sdx_conv_shape *s, const float *x, const void *packed,
                         float *y, const struct sdx_epilogue *epilogue, int64_t part, int64_t end,
                         void *scratch);
#endif
