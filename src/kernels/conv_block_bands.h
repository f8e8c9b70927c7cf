/* SPDX-License-Identifier: Apache-2.0
 * Two or three f32 operators over blocked channels in one go: a direct convolution of one group,
 * the depthwise one or the maximum pool that reads it, the pointwise convolution that reads that,
 * or two neighbours of these. What lies between them is never in memory as a whole: a few rows are,
 * in scratch memory that stays in the second cache. The bits are those of one after the other. */
#ifndef SDX_KERNELS_CONV_BLOCK_BANDS_H
#define SDX_KERNELS_CONV_BLOCK_BANDS_H

#include "kernels/conv_block.h"

struct sdx_conv_bands {
    bool has_direct, has_pointwise;
    bool is_pool; /* `depthwise` is the shape of a maximum pool, as if it had a filter a channel */
    /* each reads what the one before makes; of those that are left out nothing is looked at */
    struct sdx_conv_shape direct, depthwise, pointwise;
};
/* Would the second cache lose the image that `s` reads before it is read? */
bool sdx_conv_bands_leave(const struct sdx_conv_shape *s);
/* Have they these forms, and would the second cache lose each image between two of them? */
bool sdx_conv_bands_fit(const struct sdx_conv_bands *p);
/* The rest is for those that fit. Number of parts, from the shapes only, and how many neighbours,
 * those of an image, cost less in one call. Bytes of scratch for one call. */
int64_t sdx_conv_bands_parts(const struct sdx_conv_bands *p);
int64_t sdx_conv_bands_together(const struct sdx_conv_bands *p);
size_t sdx_conv_bands_scratch(const struct sdx_conv_bands *p);

/* Weights and epilogue of a convolution, as in conv_block.h; only the last may have a residual. */
struct sdx_conv_side {
    const void *packed;
    struct sdx_epilogue epilogue;
};
/* What a run reads and writes: x of the first, y of the last. */
struct sdx_conv_bands_run {
    const float *x;
    struct sdx_conv_side direct, depthwise, pointwise;
    float *y;
};
void sdx_conv_bands_run(const struct sdx_conv_bands *p, const struct sdx_conv_bands_run *run,
                        int64_t part, int64_t end, void *scratch);
#endif
