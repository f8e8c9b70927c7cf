/* SPDX-License-Identifier: Apache-2.0
 * Block sizes and thresholds of the kernels, by the caches of the CPU. */
#ifndef SDX_KERNELS_TUNING_H
#define SDX_KERNELS_TUNING_H

#include <stdint.h>

struct sdx_kernel_tuning {
    /* K up to whole_k is one block, else blocks of block_k */
    int64_t whole_k, block_k;
    int64_t
        block_k_direct;   /* B read in place: few rows of it at a time, for the page tables' sake */
    int64_t a_bytes;      /* block of A that stays in L2 */
    int64_t b_bytes;      /* block of B packed on the fly */
    int64_t direct_tiles; /* up to so many tiles of rows B is read in place */
    int64_t conv_bytes;   /* gathered block of the image */
    int64_t conv_pixels;  /* and its most columns */
    int64_t conv_parts;   /* output channels are split as well when there are fewer parts */
    int64_t conv_rows;    /* but not below so many rows */
    int64_t depthwise_floats; /* padded band of the input, in L1 */
    int64_t part_macs;        /* parts are worth some such multiply-adds */
    int64_t block_bytes;      /* strip of a blocked image that stays in L2 */
    int64_t block_pixels;     /* and its most pixels */
    int64_t block_parts;      /* at least so many parts of a blocked convolution */
    int64_t stream_ahead;     /* bytes ahead that a stream of weights is fetched */
};

const struct sdx_kernel_tuning *sdx_kernel_tuning(void);
#endif
