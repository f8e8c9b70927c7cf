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
 * transformed (docs/adr/0042). Other kernels with stride 1: pieces of 3, the last filled up with
 * zeros, that are joined as planes are, 5 x 5 in 33 multiplications of 100; of lines, with any
 * stride, pieces of 2, 3 or 4, a line of 9 in 18 of 36, one of 3 with stride 2 in 11 of 15
 * (docs/adr/0064). Errors with random operands: below 5e-6, 2e-6
 * (both with four points) and 3e-5 of the output's largest magnitude up to 512 channels, of lines
 * 5e-6 (kernelcheck holds it). A NaN or infinity spreads over the outputs of every tile that reads
 * it. Filters of 16-bit weights stay as they are and give the bits of f32 ones. Lanes beyond the
 * channels hold any finite values and are given finite ones. */
#ifndef SDX_KERNELS_CONV_BLOCK_WINOGRAD_H
#define SDX_KERNELS_CONV_BLOCK_WINOGRAD_H

#include "kernels/conv.h"

/* 6, 4 or 2: F(6 x 6), F(4 x 4), of a line F(4), or F(2 x 2) is the best way; 3: so is F(3 x 3)
 * with stride 2; 0: it is not served, or direct is faster. By the shape of one image, so that a
 * batch changes no bit of it. */
int sdx_winograd_block_fits(const struct sdx_conv_shape *s);
/* As in conv.h, for shapes that fit: weights are plain [oc, ic, kernel...], bias_row has oc
 * elements, the residual is laid out as y. The packed form depends on the channels, the kernel and
 * the form (what ..._fits gives). */
size_t sdx_winograd_block_packed_size(const struct sdx_conv_shape *s);
void sdx_winograd_block_pack(const struct sdx_conv_shape *s, const sdx_weight_f32 *weights,
                             void *packed);
int64_t sdx_winograd_block_parts(const struct sdx_conv_shape *s);
int64_t sdx_winograd_block_together(const struct sdx_conv_shape *s);
size_t sdx_winograd_block_scratch(const struct sdx_conv_shape *s);
void sdx_winograd_block_run(const struct sdx_conv_shape *s, const float *x, const void *packed,
                            float *y, const struct sdx_epilogue *epilogue, int64_t part,
                            int64_t end, void *scratch);

/* Of tiles of `step` outputs down and across: the inputs of a side, of a phase; the stride; the
 * phases that have a part of plane p (row by row of the side), four but at infinity; and the place
 * among those of plane p, over all blocks of channels, of the phase of rows 2 i + down and columns
 * 2 j + across of a block. */
static inline int winograd_side(int step)
{
    return (step + 2) / 2 * 2;
}
static inline int winograd_stride(int step)
{
    return 1 + step % 2;
}
static inline int winograd_phases(int step, int p)
{
    const int side = winograd_side(step);
    if (step % 2 == 0) return 1;
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
/* Of a line: the stride, and the phases, sets of every stride'th tap; the first phase has the most
 * taps. Strides of planes are winograd_stride's. */
static inline int64_t winograd_line_stride(const struct sdx_conv_shape *s)
{
    return winograd_is_plane(s) ? 1 : s->kernel[1] > 1 ? s->stride[1] : s->stride[2];
}
static inline int64_t winograd_line_phases(const struct sdx_conv_shape *s)
{
    const int64_t stride = winograd_line_stride(s);
    return stride > 1 && winograd_taps(s) < stride ? winograd_taps(s) : stride;
}
static inline int64_t winograd_phase_taps(const struct sdx_conv_shape *s)
{
    const int64_t stride = winograd_line_stride(s), taps = winograd_taps(s);
    return stride > 1 ? (taps + stride - 1) / stride : taps;
}
/* Taps of a piece along an axis longer than 1: 3, and of a line what needs the fewest
 * multiplications, F(4, 3), F(3, 4) or F(5, 2), all with the points of F(4, 3). */
static inline int64_t winograd_piece(const struct sdx_conv_shape *s)
{
    if (winograd_is_plane(s)) return 3;
    const int64_t taps = winograd_phase_taps(s);
    return taps == 2 ? 2 : 4 * ((taps + 3) / 4) < 3 * ((taps + 2) / 3) ? 4 : 3;
}
/* Outputs of a line's tile, which has 6 inputs. */
static inline int64_t winograd_line_step(const struct sdx_conv_shape *s)
{
    return 7 - winograd_piece(s);
}
/* Pieces of a plane of the kernel across, and all: row by row; of a line those of all phases before
 * the next one of each. */
static inline int64_t winograd_pieces_of(int64_t taps, int64_t piece)
{
    return taps <= piece ? 1 : (taps + piece - 1) / piece;
}
static inline int64_t winograd_pieces_across(const struct sdx_conv_shape *s)
{
    return winograd_is_plane(s) ? winograd_pieces_of(s->kernel[2], 3) : winograd_line_phases(s);
}
static inline int64_t winograd_pieces(const struct sdx_conv_shape *s)
{
    return winograd_pieces_across(s) *
           (winograd_is_plane(s) ? winograd_pieces_of(s->kernel[1], 3)
                                 : winograd_pieces_of(winograd_phase_taps(s), winograd_piece(s)));
}
/* What an output adds up of each position of a piece: the channels of each piece, of each plane
 * that the kernel covers. */
static inline int64_t winograd_depth(const struct sdx_conv_shape *s)
{
    return s->ic * s->kernel[0] * winograd_pieces(s);
}
/* How many of these, the first ones, have a part in the planes at infinity, of the last row of a
 * tile or the end of a line: pieces whose last taps are not zeros that fill them up. */
static inline int64_t winograd_depth_at_infinity(const struct sdx_conv_shape *s)
{
    const int64_t piece = winograd_piece(s), across = winograd_pieces_across(s);
    int64_t count = 0;
    if (s->kernel[0] > 1) return winograd_depth(s);
    if (winograd_is_plane(s))
        count = s->kernel[1] / piece * across;
    else
        for (int64_t last = piece - 1; last * across < winograd_taps(s); last += piece) {
            const int64_t left = winograd_taps(s) - last * across;
            count += left < across ? left : across;
        }
    return count ? count * s->ic : winograd_depth(s);
}
/* The transformed filters of `channels` <= SDX_WINOGRAD_FILTERS input channels, i0, i0 + apart ...,
 * and of output channels k .. k + width - 1 (one or two vectors), zeros beyond those there are:
 * planes [channel][width], SDX_WINOGRAD_FILTERS * width floats apart. */
enum { SDX_WINOGRAD_FILTERS = 4 };
void sdx_winograd_filters(const struct sdx_conv_shape *s, int step, const sdx_weight_f32 *weights,
                          int64_t k, int64_t width, int64_t i0, int64_t apart, int64_t channels,
                          float *u);
#endif
