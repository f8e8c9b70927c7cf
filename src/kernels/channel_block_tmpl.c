/* SPDX-License-Identifier: Apache-2.0
 * Channel factors and summands on blocked channels. Once an instruction set. */
#include "kernels/simd.h"
#include "kernels/tables.h"

/* `result` of the vector v, for each pixel. */
#define EACH_PIXEL(result)                                                                         \
    for (int64_t p = 0; p < pixels; p++, x += LANES, y += LANES) {                                 \
        const vf v = v_load(x);                                                                    \
        v_store(y, result);                                                                        \
    }

static void affine(const float *x, const float *scale, const float *shift, float *y, int64_t pixels)
{
    const vf s = v_load(scale), t = v_load(shift);
    EACH_PIXEL(v * s + t)
}

static void mul(const float *x, const float *scale, float *y, int64_t pixels)
{
    const vf s = v_load(scale);
    EACH_PIXEL(v * s)
}

static void add(const float *x, const float *shift, float *y, int64_t pixels)
{
    const vf t = v_load(shift);
    EACH_PIXEL(v + t)
}

void SDX_INIT(sdx_channel_block_init_)(struct sdx_channel_block *channel)
{
    *channel = (struct sdx_channel_block){.f32_affine = affine, .f32_mul = mul, .f32_add = add};
}
