/* SPDX-License-Identifier: Apache-2.0
 * Pooling on blocked channels: a vector holds one pixel of all channels of a block; windows that
 * lie within the columns of the image are taken several at a time. Once an instruction set. */
#include "kernels/conv_gather.h"
#include "kernels/simd.h"
#include "kernels/tables.h"

enum { GROUP = 8, MEAN_BLOCK = 256 };

/* The positions of a window in the image, along one axis. */
struct span {
    int64_t first, lo, hi;
};
SIMD struct span span_of(const struct sdx_pool_block *p, int axis, int64_t out)
{
    struct span s = {.first = out * p->stride[axis] - p->pad_begin[axis]};
    conv_valid(s.first, p->dilation[axis], p->in[axis], p->kernel[axis], &s.lo, &s.hi);
    return s;
}
/* How many of them count for an average. */
SIMD int64_t count_of(const struct sdx_pool_block *p, int axis, const struct span *s, bool pads)
{
    if (!pads) return s->hi - s->lo;
    int64_t lo, hi;
    conv_valid(s->first + p->pad_begin[axis], p->dilation[axis],
               p->pad_begin[axis] + p->in[axis] + p->pad_end[axis], p->kernel[axis], &lo, &hi);
    return hi - lo;
}

/* v_max gives its second argument when either is NaN. */
SIMD vf larger(vf a, vf b)
{
    return v_select(a != a, a, v_max(a, b));
}
SIMD vf merge(const bool max, vf a, vf b)
{
    return max ? larger(a, b) : a + b;
}
/* `count` neighbouring windows over the same rows and taps. */
SIMD void windows(const bool max, const int count, const struct sdx_pool_block *p, const float *x,
                  int64_t rows, int64_t taps, float divisor, float *y)
{
    const int64_t pitch = p->in[1] * p->dilation[0] * LANES, step = p->stride[1] * LANES;
    vf found[GROUP];
    SDX_UNROLL(8) for (int i = 0; i < count; i++) found[i] = v_set1(max ? -INFINITY : 0.0f);
    for (int64_t r = 0; r < rows; r++, x += pitch) {
        const float *tap = x;
        for (int64_t k = 0; k < taps; k++, tap += p->dilation[1] * LANES)
            SDX_UNROLL(8)
        for (int i = 0; i < count; i++)
            found[i] = merge(max, v_load(tap + i * step), found[i]);
    }
    SDX_UNROLL(8)
    for (int i = 0; i < count; i++)
        v_store(y + i * LANES, max ? found[i] : found[i] / v_set1(divisor));
}
SIMD void pool(const bool max, const struct sdx_pool_block *p, bool count_pads, const float *x,
               float *y, int64_t h0, int64_t h1)
{
    int64_t lo, hi; /* windows within the columns of the image */
    conv_valid(-p->pad_begin[1], p->stride[1], p->in[1] - (p->kernel[1] - 1) * p->dilation[1],
               p->out[1], &lo, &hi);
    for (int64_t h = h0; h < h1; h++) {
        const struct span down = span_of(p, 0, h);
        const int64_t high = count_of(p, 0, &down, count_pads), rows = down.hi - down.lo;
        const float *row = x + (down.first + down.lo * p->dilation[0]) * p->in[1] * LANES;
        float *to = y + h * p->out[1] * LANES;
        for (int64_t w = 0; w < p->out[1];) {
            const struct span across = span_of(p, 1, w);
            const int64_t taps = across.hi - across.lo;
            const float *from = row + (across.first + across.lo * p->dilation[1]) * LANES;
            const float all = (float)conv_most(1, high * count_of(p, 1, &across, count_pads));
            if (w >= lo && w + GROUP <= hi) {
                windows(max, GROUP, p, from, rows, taps, all, to + w * LANES);
                w += GROUP;
            } else {
                windows(max, 1, p, from, taps > 0 ? rows : 0, taps, all, to + w * LANES);
                w++;
            }
        }
    }
}
static void pool_max(const struct sdx_pool_block *p, const float *x, float *y, int64_t h0,
                     int64_t h1)
{
    pool(true, p, false, x, y, h0, h1);
}
static void pool_average(const struct sdx_pool_block *p, bool count_pads, const float *x, float *y,
                         int64_t h0, int64_t h1)
{
    pool(false, p, count_pads, x, y, h0, h1);
}
static void pool_mean(int64_t pixels, const float *x, float *y)
{
    vf total = v_set1(0.0f);
    for (int64_t at = 0; at < pixels; at += MEAN_BLOCK) {
        const int64_t end = conv_least(pixels, at + MEAN_BLOCK);
        vf sums[4];
        SDX_UNROLL(4) for (int i = 0; i < 4; i++) sums[i] = v_set1(0.0f);
        int64_t n = at;
        for (; n + 4 <= end; n += 4)
            SDX_UNROLL(4)
        for (int i = 0; i < 4; i++)
            sums[i] += v_load(x + (n + i) * LANES);
        for (; n < end; n++)
            sums[0] += v_load(x + n * LANES);
        total += (sums[0] + sums[1]) + (sums[2] + sums[3]);
    }
    v_store(y, total / v_set1((float)conv_most(1, pixels)));
}

void SDX_INIT(sdx_pool_block_init_)(struct sdx_pool_block_table *pool)
{
    pool->f32_max = pool_max;
    pool->f32_average = pool_average;
    pool->f32_mean = pool_mean;
}
