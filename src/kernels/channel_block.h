/* SPDX-License-Identifier: Apache-2.0
 * Channels of one block of blocked channels, x and y [pixels][b], b = sdx_block_lanes(): a factor,
 * summand or slope for each (b floats; y may be x), channels from several blocks, and all channels
 * of a pixel normalised. */
#ifndef SDX_KERNELS_CHANNEL_BLOCK_H
#define SDX_KERNELS_CHANNEL_BLOCK_H

#include <stdint.h>

/* Lane i of y is lane from[i] of x where take[i] is -1; where it is 0, x does not give that lane.
 */
struct sdx_channel_source {
    const float *x;
    int32_t from[16], take[16];
};

/* Normalisation of the channels of each pixel, which lie in several blocks. */
struct sdx_channel_norm {
    int64_t channels;          /* at least 1 */
    int64_t step;              /* floats from a block to the next one, of x as of y */
    const float *scale, *bias; /* of whole blocks */
    float epsilon;
};

struct sdx_channel_block {
    /* y = x * scale + shift, rounded twice */
    void (*f32_affine)(const float *x, const float *scale, const float *shift, float *y,
                       int64_t pixels);
    void (*f32_mul)(const float *x, const float *scale, float *y, int64_t pixels);
    void (*f32_add)(const float *x, const float *shift, float *y, int64_t pixels);
    void (*f32_prelu)(const float *x, const float *slope, float *y, int64_t pixels);
    /* Lanes that no source gives are 0; none is given twice. y is none of the sources. */
    void (*f32_pick)(const struct sdx_channel_source *sources, int64_t count, float *y,
                     int64_t pixels);
    /* y = (x - mean) / sqrt(variance + epsilon) * scale + bias, mean and variance of the channels
     * of the pixel. y may be x. The same for a pixel among any others. */
    void (*f32_norm)(const struct sdx_channel_norm *p, const float *x, float *y, int64_t pixels);
};
const struct sdx_channel_block *sdx_channel_block(void);
#endif
