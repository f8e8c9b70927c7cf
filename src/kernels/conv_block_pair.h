/* SPDX-License-Identifier: Apache-2.0
 * Two convolutions over blocked channels in one go: a direct one of one group and the depthwise one
 * that reads its result. What the first makes never lies in memory as a whole: a few rows of a few
 * blocks of channels do, in scratch memory that stays in the second cache, and the second reads
 * them at once. The bits are those of the two alone. */
#ifndef SDX_KERNELS_CONV_BLOCK_PAIR_H
#define SDX_KERNELS_CONV_BLOCK_PAIR_H

#include "kernels/conv_block.h"

struct sdx_conv_pair {
    struct sdx_conv_shape maker, reader; /* reader.in is maker.out */
};
/* Both have these forms, and an image between them is larger than what stays in the cache? */
bool sdx_conv_pair_fits(const struct sdx_conv_pair *p);
/* The rest is for pairs that fit. Number of parts, from the shapes only; neighbours cost less in
 * one call, all of them. Bytes of scratch for one call. */
int64_t sdx_conv_pair_parts(const struct sdx_conv_pair *p);
size_t sdx_conv_pair_scratch(const struct sdx_conv_pair *p);

/* One of the two, as in conv_block.h. */
struct sdx_conv_side {
    const void *packed;
    struct sdx_epilogue epilogue; /* no residual for the maker */
};
void sdx_conv_pair_run(const struct sdx_conv_pair *p, const float *x,
                       const struct sdx_conv_side *maker, const struct sdx_conv_side *reader,
                       float *y, int64_t part, int64_t end, void *scratch);
#endif
