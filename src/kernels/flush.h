/* SPDX-License-Identifier: Apache-2.0
 * Between ..._begin and ..._end numbers below 2^-126 count as 0, in operands and in results of this
 * thread: x86 processors of Intel's take a hundred times as long for an operation with one (Intel
 * SDM volume 1, 10.2.3). Networks make them: x * sigmoid(x) of -100 is one, GELU of -13, and the
 * square of scores that hardly differ. Convolutions, products, attention and softmax do it. */
#ifndef SDX_KERNELS_FLUSH_H
#define SDX_KERNELS_FLUSH_H

#if defined(__SSE2__)
#include <xmmintrin.h>

static inline unsigned sdx_flush_begin(void)
{
    const unsigned before = _mm_getcsr(), flush_results = 1U << 15, flush_operands = 1U << 6;
    _mm_setcsr(before | flush_results | flush_operands);
    return before;
}
/* before: what ..._begin returned */
static inline void sdx_flush_end(unsigned before)
{
    _mm_setcsr(before);
}
#else
static inline unsigned sdx_flush_begin(void)
{
    return 0;
}
static inline void sdx_flush_end(unsigned before)
{
    (void)before;
}
#endif
#endif
