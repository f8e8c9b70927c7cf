/* SPDX-License-Identifier: Apache-2.0
 * f32 depthwise convolution (one or several filters for each channel, output c is of channel
 * c / (oc / ic)) of one or two dimensions on blocked channels: a tensor [N, C, H, W] lies as
 * [N][ceil(C / b)][H][W][b], b being the lanes of a vector of the set in use. Lanes beyond C hold
 * any finite values and are given finite ones. Any kernel, stride, dilation and pads; the order of
 * a sum depends on the shape and the place of the output, not on the batch or the cut into parts.
 */
#ifndef SDX_KERNELS_CONV_BLOCK_DEPTHWISE_H
#define SDX_KERNELS_CONV_BLOCK_DEPTHWISE_H

#include "kernels/conv.h"

bool sdx_depthwise_block_fits(const struct sdx_conv_shape *s);
/* Whether whole lines are summed column by column of the input, in place. */
static inline bool sdx_depthwise_block_slides(const struct sdx_conv_shape *s)
{
    const int64_t stride = s->stride[2], before = s->pad_begin[2];
    const int64_t after = (s->out[2] - 1) * stride + 3 - before - s->in[2];
    const int64_t most = stride == 1 ? 2 : 1; /* columns beside the image */
    return s->kernel[1] <= 3 && s->kernel[2] == 3 && s->dilation[2] == 1 && stride <= 2 &&
           before >= 0 && before <= most && after <= most;
}
/* Columns of the input that n neighbouring outputs of a line read; if slid, the whole image's. */
static inline int64_t sdx_depthwise_block_columns(const struct sdx_conv_shape *s, int64_t n)
{
    return sdx_depthwise_block_slides(s)
               ? s->in[2]
               : (n - 1) * s->stride[2] + (s->kernel[2] - 1) * s->dilation[2] + 1;
}
/* As in conv.h: weights are plain [oc, 1, kh, kw], bias_row has oc elements, the residual is laid
 * out as y. The packed form depends on the channels and the kernel only. */
size_t sdx_depthwise_block_packed_size(const struct sdx_conv_shape *s);
void sdx_depthwise_block_pack(const struct sdx_conv_shape *s, const sdx_weight_f32 *weights,
                              void *packed, const struct sdx_pieces *pieces);
int64_t sdx_depthwise_block_parts(const struct sdx_conv_shape *s);
size_t sdx_depthwise_block_scratch(const struct sdx_conv_shape *s);
void sdx_depthwise_block_part(const struct sdx_conv_shape *s, const float *x, const void *packed,
                              float *y, const struct sdx_epilogue *epilogue, int64_t part,
                              void *scratch);

/* Lines line0 .. line1 - 1 of the outputs of blocks block0 .. block1 - 1, from rows row0 .. row0 +
 * rows - 1 of the input, which are all that these lines see of it. One plane, one filter a channel.
 */
struct sdx_depthwise_lines {
    int64_t block0, block1, line0, line1, row0, rows;
    int64_t x_step, y_step; /* floats from a block to the next */
};
/* x: from row0 of block0 on; y, the residual: from line0 of block0 on. scratch: as for a part. */
void sdx_depthwise_block_lines(const struct sdx_conv_shape *s, const struct sdx_depthwise_lines *l,
                               const float *x, const void *packed, float *y,
                               const struct sdx_epilogue *e, void *scratch);
#endif
