/* SPDX-License-Identifier: Apache-2.0
 * A factor or summand for each channel over one block of blocked channels: x, y [pixels][b], the
 * others b floats, b = sdx_block_lanes(). y may be x. */
#ifndef SDX_KERNELS_CHANNEL_BLOCK_H
#define SDX_KERNELS_CHANNEL_BLOCK_H

#include <stdint.h>

struct sdx_channel_block {
    /* y = x * scale + shift, rounded twice */
    void (*f32_affine)(const float *x, const float *scale, const float *shift, float *y,
                       int64_t pixels);
    void (*f32_mul)(const float *x, const float *scale, float *y, int64_t pixels);
    void (*f32_add)(const float *x, const float *shift, float *y, int64_t pixels);
};
const struct sdx_channel_block *sdx_channel_block(void);
#endif
