/* SPDX-License-Identifier: Apache-2.0
 * One row of outputs of a depthwise convolution of bytes, channels last. */
#ifndef SDX_KERNELS_QCONV_DEPTHWISE_H
#define SDX_KERNELS_QCONV_DEPTHWISE_H

#include "kernels/conv.h"
#include "kernels/qdot.h"

/* Kernels of three rows and three columns slide with a stride of 1 or 2: a column of the input is
 * made ready once for the outputs that it reaches. Where columns are d apart (dilation), every d-th
 * output is such a row. */
enum { SDX_QDW_SIDE = 3 };
static inline bool qdw_is_square(const struct sdx_conv_shape *s)
{
    return s->kernel[0] == 1 && s->kernel[1] == SDX_QDW_SIDE && s->kernel[2] == SDX_QDW_SIDE;
}
static inline bool qdw_slides(const struct sdx_conv_shape *s)
{
    return qdw_is_square(s) && (s->stride[2] == 1 || (s->stride[2] == 2 && s->dilation[2] == 1));
}

/* Weights in blocks of 32 channels: [taps / 2][64] shorts, the two taps' of channel c beside each
 * other at qdw_place. x may be read up to 15 bytes beyond the last channel, but for kernels that
 * mask. Where weights less their zero points fit into bytes, there may be a kernel for four taps at
 * a time, which masks: blocks of 64 channels, [taps / 4][64][4] bytes, channel c at
 * qdw_place_of_four. */
struct sdx_qdw {
    int64_t count, channels; /* pixels */
    const void *weights;
    int64_t count_taps;
    struct sdx_qdot_store store; /* row i is pixel i */
    int stride;                  /* 1, 2: of a kernel that slides; 0: it does not */
    /* A kernel that slides: the image rows under it, a pixel that stands for those beyond their
     * ends, and in bytes: the column that the first output sees first, the end of the rows, from a
     * column of the kernel to the next. */
    const uint8_t *lines[SDX_QDW_SIDE], *outside;
    int64_t column, end, apart;
    /* Any other. */
    const uint8_t *x;    /* the first tap of the first pixel */
    int64_t step;        /* bytes from one to the next */
    const int64_t *taps; /* places of the taps */
};
struct sdx_qdw_table {
    void (*row)(const struct sdx_qdw *job);
    bool masks;
    void (*row_of_fours)(const struct sdx_qdw *job); /* NULL: none */
};
enum { SDX_QDW_WIDE = 32, SDX_QDW_FOURS = 4, SDX_QDW_FOURS_WIDE = 64 };
/* Where tap `odd` (0, 1) of channel c of 32 stands: as two rows of shorts interleave, eight
 * channels at a time. */
static inline int64_t qdw_place(int64_t c, int64_t odd)
{
    return c / 4 % 2 * SDX_QDW_WIDE + c / 8 * 8 + c % 4 * 2 + odd;
}
static inline int64_t qdw_place_of_four(int64_t c)
{
    return c / 4 % 4 * 16 + c / 16 * 4 + c % 4;
}

/* Of a kernel of three rows and columns, whether or not it slides, pairs of taps are the upper two
 * rows of each column, then in the third row nothing and column 0, columns 1 and 2. Fours of taps
 * are the three rows of each column and nothing. */
enum { SDX_QDW_SLID = 10, SDX_QDW_FOURS_SLID = SDX_QDW_SIDE * SDX_QDW_FOURS };
/* Where tap t, in reading order, stands among those. */
static inline int64_t qdw_slid_tap(int64_t t)
{
    return t < 6 ? t % 3 * 2 + t / 3 : t + 1;
}
static inline int64_t qdw_slid_tap_of_four(int64_t t)
{
    return t % 3 * SDX_QDW_FOURS + t / 3;
}
#endif
