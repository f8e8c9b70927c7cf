/* SPDX-License-Identifier: Apache-2.0
 * f32 convolution of 3 x 3, 1 x 3, 3 x 1 and other kernels by pieces of those on blocked channels
 * ([N][ceil(C / b)][H][W][b], b the lanes of a vector) by Winograd's transforms. Stride 1:
 * F(4 x 4, 3 x 3) with the points 0, +-2/3, +-3/2 and infinity, a quarter of the multiplications;
 * F(2 x 2, 3 x 3), four ninths, for few pixels and many channels; F(6 x 6, 3 x 3) with 0, +-1, +-2,
 * +-1/2 and infinity, 16 of 81, for large images. Stride 2: the pixels of even and odd rows and
 * columns are four images, phases, whose convolutions of 2 x 2, 2 x 1, 1 x 2 and 1 x 1 add up:
 * F(3 x 3, 2 x 2) with 0, +-1 and infinity and one sum for all four, 49 multiplications of 81
 * (docs/adr/0029). Lines, along one axis with stride 1 and any dilation, as 1-D convolutions are:
 * F(4, 3) with the points of F(4 x 4), half of the multiplications (docs/adr/0036). Three
 * dimensions: of each plane, the sums of all planes that the kernel covers joined before they are
 * transformed (docs/adr/0042). Other kernels, with any stride: pieces of 3 or, by F(5 x 5, 2 x 2),
 * of 2, of lines of 2, 3 or 4, the last filled up with zeros, that are joined as planes are: 5 x 5
 * in 33 multiplications of 100, 4 x 4 in 36 of 100, a line of 9 in 18 of 36, one of 3 with stride 2
 * in 11 of 15 (docs/adr/0064, 0065); two share a vector where an image has half a block of channels
 * or fewer (docs/adr/0070). Errors with random operands: below 5e-6, 2e-6 (both with four
 * points) and 3e-5 of the output's largest magnitude up to 512 channels, of lines 5e-6 (kernelcheck
 * holds it). A NaN or infinity spreads over the outputs of every tile that reads it. Filters of
 * 16-bit weights stay as they are and give the bits of f32 ones. Lanes beyond the channels hold any
 * finite values and are given finite ones. */
#ifndef SDX_KERNELS_CONV_BLOCK_WINOGRAD_H
#define SDX_KERNELS_CONV_BLOCK_WINOGRAD_H

#include "kernels/conv.h"
#include "kernels/tables.h"

/* 6, 4 or 2: F(6 x 6), F(4 x 4), of a line F(4), or F(2 x 2) is the best way; 3: so is F(3 x 3)
 * with stride 2; 0: it is not served, or direct is faster. By the shape of one image, so that a
 * batch changes no bit of it. */
int sdx_winograd_block_fits(const struct sdx_conv_shape *s);
/* As in conv.h, for shapes that fit: weights are plain [oc, ic, kernel...], bias_row has oc
 * elements, the residual is laid out as y. The packed form depends on the channels, the kernel and
 * the form (what ..._fits gives). */
size_t sdx_winograd_block_packed_size(const struct sdx_conv_shape *s);
void sdx_winograd_block_pack(const struct sdx_conv_shape *s, const sdx_weight_f32 *weights,
                             void *packed, const struct sdx_pieces *pieces);
int64_t sdx_winograd_block_parts(const struct sdx_conv_shape *s);
int64_t sdx_winograd_block_together(const struct sdx_conv_shape *s);
size_t sdx_winograd_block_scratch(const struct sdx_conv_shape *s);
void sdx_winograd_block_run(const struct sdx_conv_shape *s, const float *x, const void *packed,
                            float *y, const struct sdx_epilogue *epilogue, int64_t part,
                            int64_t end, void *scratch);

/* Of tiles of `step` outputs down and across: the inputs of a side, of a phase; the phases that
 * have a part of plane p (row by row of the side) of tiles of 3, four but at infinity; and the
 * place among those of plane p, over all blocks of channels, of the phase of rows 2 i + down and
 * columns 2 j + across of a block. */
static inline int winograd_side(int step)
{
    return (step + 2) / 2 * 2;
}
static inline int winograd_phases(int step, int p)
{
    const int side = winograd_side(step);
    if (step != 3) return 1;
    return (p / side < side - 1 ? 2 : 1) * (p % side < side - 1 ? 2 : 1);
}
static inline int64_t winograd_phase(int step, int p, int down, int across, int64_t block)
{
    const int side = winograd_side(step);
    const int place = (p % side < side - 1 ? 2 * down : down) + across;
    return block * winograd_phases(step, p) + place;
}
/* Tiles along an axis, of `step` outputs each, that lie a dilation apart: those of the outputs
 * 0, d, 2 d ..., of 1, d + 1 ... are as many, so the last ones may hold none; and the first output
 * of tile `at`. */
static inline int64_t winograd_tiles_along(const struct sdx_conv_shape *s, int axis, int64_t step)
{
    const int64_t d = s->dilation[axis];
    return d * ((s->out[axis] + step * d - 1) / (step * d));
}
static inline int64_t winograd_tile_first(int64_t at, int64_t step, int64_t dilation)
{
    return dilation == 1 ? at * step : at / dilation * step * dilation + at % dilation;
}
/* Of the outputs of a tile, those within so many pixels from its first one on. */
static inline int64_t winograd_outputs_left(int64_t step, int64_t pixels, int64_t dilation)
{
    if (dilation > 1) pixels = pixels > 0 ? (pixels + dilation - 1) / dilation : 0;
    return pixels < step ? pixels : step;
}
/* Is the kernel longer than 1 along both axes of a plane? */
static inline bool winograd_is_plane(const struct sdx_conv_shape *s)
{
    return s->kernel[1] > 1 && s->kernel[2] > 1;
}
static inline bool winograd_is_dilated(const struct sdx_conv_shape *s)
{
    return s->dilation[1] > 1 || s->dilation[2] > 1;
}
/* Taps of a plane of the kernel. */
static inline int64_t winograd_taps(const struct sdx_conv_shape *s)
{
    return s->kernel[1] * s->kernel[2];
}
/* 3 x 3 with stride 2: tiles of 3 outputs. */
static inline bool winograd_is_phased(const struct sdx_conv_shape *s)
{
    return s->kernel[1] == 3 && s->kernel[2] == 3 && s->stride[1] == 2 && s->stride[2] == 2;
}
/* One piece of 3 x 3, as most are. */
static inline bool winograd_is_whole(const struct sdx_conv_shape *s)
{
    return s->kernel[1] == 3 && s->kernel[2] == 3 && s->stride[1] == s->stride[2] &&
           s->stride[1] <= 2;
}
/* Otherwise every stride'th tap is of one phase, whose pixels are adjacent in an image of every
 * stride'th pixel, and each phase is cut into pieces of adjacent taps. Along an axis: the pieces,
 * in the order of their first taps; the first tap of one; and how many reach infinity, the first
 * ones, as zeros fill up none of those. */
static inline int64_t winograd_apart(const struct sdx_conv_shape *s, int axis)
{
    return winograd_is_phased(s) ? 1 : s->stride[axis];
}
static inline int64_t winograd_pieces_of(int64_t taps, int64_t piece, int64_t stride)
{
    const int64_t left = taps % (piece * stride);
    return taps / (piece * stride) * stride + (left < stride ? left : stride);
}
static inline int64_t winograd_first_tap(int64_t number, int64_t piece, int64_t stride)
{
    if (stride == 1) return number * piece;
    return number / stride * piece * stride + number % stride;
}
static inline int64_t winograd_at_infinity(int64_t taps, int64_t piece, int64_t stride)
{
    const int64_t last = (piece - 1) * stride;
    return taps > last ? winograd_pieces_of(taps - last, piece, stride) : 0;
}
/* The first axis that the kernel is longer than 1 along. */
static inline int winograd_first_axis(const struct sdx_conv_shape *s)
{
    return s->kernel[1] > 1 ? 1 : 2;
}
/* Taps of a phase of a line, of the first, which has the most. */
static inline int64_t winograd_line_taps(const struct sdx_conv_shape *s)
{
    const int axis = winograd_first_axis(s);
    return (s->kernel[axis] + s->stride[axis] - 1) / s->stride[axis];
}
/* Taps of a piece along an axis longer than 1: what needs the fewest multiplications. Of a line
 * F(4, 3), F(3, 4) or F(5, 2), all with the points of F(4, 3), of a plane F(4 x 4, 3 x 3) or
 * F(5 x 5, 2 x 2). */
static inline int64_t winograd_pieces_in(const struct sdx_conv_shape *s, int64_t piece)
{
    return winograd_pieces_of(s->kernel[1], piece, winograd_apart(s, 1)) *
           winograd_pieces_of(s->kernel[2], piece, winograd_apart(s, 2));
}
static inline int64_t winograd_piece(const struct sdx_conv_shape *s)
{
    if (winograd_is_plane(s))
        return !winograd_is_whole(s) &&
                       16 * winograd_pieces_in(s, 2) < 25 * winograd_pieces_in(s, 3)
                   ? 2
                   : 3;
    const int64_t taps = winograd_line_taps(s);
    return taps == 2 ? 2 : 4 * ((taps + 3) / 4) < 3 * ((taps + 2) / 3) ? 4 : 3;
}
static inline int64_t winograd_piece_taps(const struct sdx_conv_shape *s)
{
    return winograd_piece(s) * (winograd_is_plane(s) ? winograd_piece(s) : 1);
}
/* Outputs of a tile of a form, down and across; of a line's tile, which has 6 inputs. */
static inline int winograd_step(const struct sdx_conv_shape *s, int form)
{
    return form == 4 && winograd_is_plane(s) && winograd_piece(s) == 2 ? 5 : form;
}
static inline int64_t winograd_line_step(const struct sdx_conv_shape *s)
{
    return 7 - winograd_piece(s);
}
/* Pieces of a plane of the kernel across, and all: row by row. */
static inline int64_t winograd_pieces_across(const struct sdx_conv_shape *s)
{
    return winograd_pieces_of(s->kernel[2], winograd_piece(s), winograd_apart(s, 2));
}
static inline int64_t winograd_pieces(const struct sdx_conv_shape *s)
{
    return winograd_is_whole(s) ? 1 : winograd_pieces_in(s, winograd_piece(s));
}
/* Do two pieces of a kernel's plane share a vector, as the channels fill but half of one? */
static inline bool winograd_in_halves(const struct sdx_conv_shape *s)
{
    return winograd_is_plane(s) && winograd_pieces(s) > 1 &&
           2 * s->ic <= sdx_kernel_tables()->block.lanes &&
           !sdx_kernel_tables()->gemm.f32_tiles; /* they have their own layout */
}
/* Input channels: those of whole blocks, or of half of one, where more than one image adds up. */
static inline int64_t winograd_channels(const struct sdx_conv_shape *s)
{
    const int64_t lanes = sdx_kernel_tables()->block.lanes;
    const bool many = winograd_is_phased(s) || s->kernel[0] > 1 || winograd_pieces(s) > 1;
    if (winograd_in_halves(s)) return lanes / 2;
    return many ? (s->ic + lanes - 1) / lanes * lanes : s->ic;
}
/* What an output adds up of each position of a piece: the channels of each piece, of each plane
 * that the kernel covers. */
static inline int64_t winograd_depth(const struct sdx_conv_shape *s)
{
    return winograd_channels(s) * s->kernel[0] * winograd_pieces(s);
}
/* How many of these, the first ones, have a part in the planes at infinity, of the last row of a
 * tile or the end of a line. */
static inline int64_t winograd_depth_at_infinity(const struct sdx_conv_shape *s)
{
    const int axis = winograd_first_axis(s);
    const int64_t stride = winograd_apart(s, axis);
    const int64_t across = axis == 1 ? winograd_pieces_across(s) : 1;
    const int64_t count = winograd_at_infinity(s->kernel[axis], winograd_piece(s), stride) * across;
    return s->kernel[0] > 1 || count == 0 ? winograd_depth(s) : count * winograd_channels(s);
}
/* The transformed filters of `channels` <= SDX_WINOGRAD_FILTERS input channels, i0, i0 + apart ...,
 * and of output channels k .. k + width - 1 (one or two vectors), zeros beyond those there are:
 * planes [channel][width], SDX_WINOGRAD_FILTERS * width floats apart. */
enum { SDX_WINOGRAD_FILTERS = 4 };
void sdx_winograd_filters(const struct sdx_conv_shape *s, int step, const sdx_weight_f32 *weights,
                          int64_t k, int64_t width, int64_t i0, int64_t apart, int64_t channels,
                          float *u);
#endif
