/* SPDX-License-Identifier: Apache-2.0
 * Channel factors and summands on blocked channels, channels from several blocks, and those of a
 * pixel normalised. Once an instruction set. */
#include "kernels/simd.h"
#include "kernels/tables.h"
#include "kernels/transpose.h"

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

/* Of each of LANES pixels the mean of `count` numbers that its vector of `sums` holds. */
static void means(const float *sums, float count, float *mean)
{
    float turned[LANES * LANES];
    for (int i = 0; i < LANES; i += SIDE)
        for (int j = 0; j < LANES; j += SIDE)
            turn(sums + i * LANES + j, LANES, turned + j * LANES + i, LANES);
    vf total = v_load(turned);
    for (int i = 1; i < LANES; i++)
        total += v_load(turned + i * LANES);
    v_store(mean, total / v_set1(count));
}
/* The sums over all blocks of x - less, or of its square, pixel by pixel. */
SIMD void sum_blocks(const int pixels, const bool square, const struct sdx_channel_norm *p,
                     const float *x, const float *less, float *sums)
{
    vf s[LANES];
    SDX_UNROLL(16)
    for (int i = 0; i < pixels; i++)
        s[i] = v_set1(0.0f);
    for (int64_t c = 0; c < p->channels; c += LANES, x += p->step) {
        const int64_t left = p->channels - c < LANES ? p->channels - c : LANES;
        const vi mask = v_lane() < vi_set1((int32_t)left);
        SDX_UNROLL(16)
        for (int i = 0; i < pixels; i++) {
            vf v = v_load(x + i * LANES);
            if (square) v = v - v_set1(less[i]);
            v = v_select(mask, v, v_set1(0.0f));
            s[i] = square ? v_fma(v, v, s[i]) : s[i] + v;
        }
    }
    SDX_UNROLL(16)
    for (int i = 0; i < pixels; i++)
        v_store(sums + i * LANES, s[i]);
}
SIMD void norm_tile(const int pixels, const struct sdx_channel_norm *p, const float *x, float *y)
{
    float sums[LANES * LANES] = {0}, mean[LANES], factor[LANES];
    sum_blocks(pixels, false, p, x, NULL, sums);
    means(sums, (float)p->channels, mean);
    sum_blocks(pixels, true, p, x, mean, sums);
    means(sums, (float)p->channels, factor);
    v_store(factor, v_set1(1.0f) / v_sqrt(v_load(factor) + v_set1(p->epsilon)));
    for (int64_t c = 0; c < p->channels; c += LANES, x += p->step, y += p->step) {
        const vf scale = v_load(p->scale + c), bias = v_load(p->bias + c);
        SDX_UNROLL(4)
        for (int i = 0; i < pixels; i++) {
            const vf v = (v_load(x + i * LANES) - v_set1(mean[i])) * v_set1(factor[i]);
            v_store(y + i * LANES, v * scale + bias);
        }
    }
}
static void norm(const struct sdx_channel_norm *p, const float *x, float *y, int64_t pixels)
{
    for (; pixels >= LANES; pixels -= LANES, x += LANES * LANES, y += LANES * LANES)
        norm_tile(LANES, p, x, y);
    for (; pixels > 0; pixels--, x += LANES, y += LANES)
        norm_tile(1, p, x, y);
}

void SDX_INIT(sdx_channel_block_init_)(struct sdx_channel_block *channel)
{
    *channel = (struct sdx_channel_block){.f32_affine = affine,
                                          .f32_mul = mul,
                                          .f32_add = add,
                                          .f32_prelu = prelu,
                                          .f32_pick = pick,
                                          .f32_norm = norm};
}
