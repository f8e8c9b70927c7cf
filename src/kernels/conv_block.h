/* SPDX-License-Identifier: Apache-2.0
 * f32 convolution over blocked channels. A blocked tensor of shape [N, C, D, H, W] lies in memory
 * as [N][ceil(C / b)][D][H][W][b], b = sdx_block_lanes(). The lanes beyond C of the last block hold
 * finite values that mean nothing: kernels write some there, and no result depends on those read.
 * One thread a call; results depend neither on the parts nor on the batch. Numbers below 2^-126
 * count as 0. */
#ifndef SDX_KERNELS_CONV_BLOCK_H
#define SDX_KERNELS_CONV_BLOCK_H

#include "kernels/conv.h"

int64_t sdx_block_lanes(void);

/* Reorders pixels p0..p1 of the channel blocks row0..row1 of a whole tensor, counted over all
 * images (block c of image n is row n * ceil(channels / b) + c). Padding lanes become 0. */
void sdx_block_from_plain(const float *plain, float *blocked, int64_t channels, int64_t pixels,
                          int64_t row0, int64_t row1, int64_t p0, int64_t p1);
void sdx_block_to_plain(const float *blocked, float *plain, int64_t channels, int64_t pixels,
                        int64_t row0, int64_t row1, int64_t p0, int64_t p1);

enum sdx_conv_block_form {
    SDX_CONV_BLOCK_NONE,  /* not served: conv.h does it in plain layout */
    SDX_CONV_BLOCK_FIRST, /* few input channels, read from plain layout; the others are blocked */
    SDX_CONV_BLOCK_DEPTHWISE,     /* a channel a group; of the output one or several */
    SDX_CONV_BLOCK_TILES,         /* rows of pixels, where the machine multiplies tiles */
    SDX_CONV_BLOCK_WINOGRAD_2,    /* F(2 x 2, 3 x 3) */
    SDX_CONV_BLOCK_WINOGRAD_3,    /* F(3 x 3, 2 x 2) of the phases of 3 x 3 with stride 2 */
    SDX_CONV_BLOCK_WINOGRAD_4,    /* F(4 x 4, 3 x 3) */
    SDX_CONV_BLOCK_WINOGRAD_6,    /* F(6 x 6, 3 x 3) */
    SDX_CONV_BLOCK_WINOGRAD_LINE, /* F(4, 3) of 1 x 3 or 3 x 1, with any dilation */
    SDX_CONV_BLOCK_SPANS,         /* groups as convolutions of other forms, see its header */
    SDX_CONV_BLOCK_GROUP,         /* groups of one block of outputs, kernels three wide */
    SDX_CONV_BLOCK_DIRECT
};
enum sdx_conv_block_form sdx_conv_block_form(const struct sdx_conv_shape *s);
/* What s->winograd is to be so that the parts do not choose again. */
int sdx_conv_block_winograd(const struct sdx_conv_shape *s);

/* The rest is for shapes whose form is not NONE. Weights [oc, ic / groups, kernel...] packed once:
 * the form and the packing depend on the shape; where shape->half says that they are such numbers,
 * the packed ones take 16 bits, but in FIRST and DEPTHWISE. Sizes in bytes; packed and scratch are
 * aligned to 64 bytes. */
size_t sdx_conv_block_packed_size(const struct sdx_conv_shape *s);
size_t sdx_conv_block_pack_scratch(const struct sdx_conv_shape *s);
void sdx_conv_block_pack(const struct sdx_conv_shape *s, const sdx_weight_f32 *weights,
                         void *packed, void *scratch, const struct sdx_pieces *pieces);
/* Number of parts (from the shape only), how many neighbours at most cost less in one call, and
 * bytes of scratch for one call. */
int64_t sdx_conv_block_parts(const struct sdx_conv_shape *s);
int64_t sdx_conv_block_together(const struct sdx_conv_shape *s);
size_t sdx_conv_block_scratch(const struct sdx_conv_shape *s);
/* Parts part .. end - 1. Epilogue: bias_row has oc values; residual is blocked as y, and may be y
 * but in GROUP. */
void sdx_conv_block_run(const struct sdx_conv_shape *s, const float *x, const void *packed,
                        float *y, const struct sdx_epilogue *epilogue, int64_t part, int64_t end,
                        void *scratch);
#endif
