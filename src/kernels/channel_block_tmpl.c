/* SPDX-License-Identifier: Apache-2.0
 * Channel factors and summands on blocked channels, and channels from several blocks. Once an
 * instruction set. */
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

static void prelu(const float *x, const float *slope, float *y, int64_t pixels)
{
    const vf s = v_load(slope);
    EACH_PIXEL(v_select(v < v_set1(0.0f), v * s, v))
}

enum { AT_ONCE = 4 }; /* sources */

/* more: to what lies in y already. */
SIMD void pick_some(const int count, const bool more, const struct sdx_channel_source *sources,
                    float *y, int64_t pixels)
{
    vi from[AT_ONCE], take[AT_ONCE];
    for (int k = 0; k < count; k++) {
        from[k] = vi_load(sources[k].from);
        take[k] = vi_load(sources[k].take);
    }
    for (int64_t p = 0; p < pixels * LANES; p += LANES) {
        vf v = more ? v_load(y + p) : v_set1(0.0f);
        SDX_UNROLL(4)
        for (int k = 0; k < count; k++)
            v = v_select(take[k], v_permute(v_load(sources[k].x + p), from[k]), v);
        v_store(y + p, v);
    }
}
static void pick(const struct sdx_channel_source *sources, int64_t count, float *y, int64_t pixels)
{
    switch (count) {
    case 0: memset(y, 0, (size_t)pixels * LANES * sizeof *y); return;
    case 1: pick_some(1, false, sources, y, pixels); return;
    case 2: pick_some(2, false, sources, y, pixels); return;
    case 3: pick_some(3, false, sources, y, pixels); return;
    default: break;
    }
    pick_some(AT_ONCE, false, sources, y, pixels);
    for (int64_t k = AT_ONCE; k < count; k++)
        pick_some(1, true, sources + k, y, pixels);
}

void SDX_INIT(sdx_channel_block_init_)(struct sdx_channel_block *channel)
{
    *channel = (struct sdx_channel_block){
        .f32_affine = affine, .f32_mul = mul, .f32_add = add, .f32_prelu = prelu, .f32_pick = pick};
}
