/* SPDX-License-Identifier: Apache-2.0
 * One row of outputs of a depthwise convolution of bytes, channels last. */
#ifndef SDX_KERNELS_QCONV_DEPTHWISE_H
#define SDX_KERNELS_QCONV_DEPTHWISE_H

#include "kernels/conv.h"
#include "kernels/qdot.h"

/* Weights in blocks of 16 channels: [taps / 2][32] shorts, the two taps' of a channel beside each
 * other at qdw_place. x may be read up to 15 bytes beyond the last channel. Where weights less
 * their zero points fit into bytes, there may be a kernel for four taps at a time: blocks of 64
 * channels, [taps / 4][64][4] bytes, channel c at qdw_place_of_four; nothing is read beyond. */
struct sdx_qdw {
    const uint8_t *x;    /* the first tap of the first pixel */
    int64_t count, step; /* pixels, bytes from one to the next */
    const int64_t *taps; /* places of the taps */
    int64_t count_taps;
    int slides; /* 1, 2: the stride of a kernel that slides; 0: it does not */
    int64_t channels;
    const void *weights;
    struct sdx_qdot_store store; /* row i is pixel i */
};
/* Where tap `odd` (0, 1) of channel c of 16 stands: as two rows of shorts interleave in halves. */
static inline int64_t qdw_place(int64_t c, int64_t odd)
{
    return c % 4 * 2 + (c / 4 % 2 * 2 + c / 8) * 8 + odd;
}

enum { SDX_QDW_FOURS = 4, SDX_QDW_FOURS_WIDE = 64 };
static inline int64_t qdw_place_of_four(int64_t c)
{
    return c / 4 % 4 * 16 + c / 16 * 4 + c % 4;
}

/* Kernels of three rows and three columns that lie together slide with a stride of 1 or 2: a column
 * of the input is made ready once for the outputs that it reaches. Pairs of taps are, whatever the
 * stride, the upper two rows of each column, then in the third row nothing and column 0, columns 1
 * and 2. Fours of taps are the three rows of each column and nothing. */
enum { SDX_QDW_SLID = 10, SDX_QDW_NO_TAP = 6, SDX_QDW_FOURS_SLID = 3 * SDX_QDW_FOURS };
static inline bool qdw_is_slid(const struct sdx_conv_shape *s)
{
    return s->kernel[0] == 1 && s->kernel[1] == 3 && s->kernel[2] == 3 && s->dilation[2] == 1;
}
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
