/* SPDX-License-Identifier: Apache-2.0
 * One row of outputs of a depthwise convolution of bytes, channels last. */
#ifndef SDX_KERNELS_QCONV_DEPTHWISE_H
#define SDX_KERNELS_QCONV_DEPTHWISE_H

#include "kernels/qdot.h"

/* Weights in blocks of 16 channels: [taps / 2][32] shorts, the two taps' of a channel beside each
 * other at qdw_place. x may be read up to 15 bytes beyond the last channel. */
struct sdx_qdw {
    const uint8_t *x;    /* the first tap of the first pixel */
    int64_t count, step; /* pixels, bytes from one to the next */
    const int64_t *taps; /* places of the taps */
    int64_t count_taps;
    int64_t channels;
    const int16_t *weights;
    struct sdx_qdot_store store; /* row i is pixel i */
};
/* Where tap `odd` (0, 1) of channel c of 16 stands. */
static inline int64_t qdw_place(int64_t c, int64_t odd)
{
    return 2 * c + odd;
}
#endif
