/* SPDX-License-Identifier: Apache-2.0
 * Pooling on blocked channels: a vector holds one pixel of all channels of a block; windows that
 * lie within the columns of the image are taken several at a time. Once an instruction set. */
#include "kernels/conv_gather.h"
#include "kernels/simd.h"
#include "kernels/tables.h"

enum { GROUP = 8, HALF = 4, MEAN_BLOCK = 256 };

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
#if defined(SDX_SET_AVX512) && SDX_SIMD_LANES == 16
    const __mmask16 is_number = _mm512_cmp_ps_mask((__m512)a, (__m512)a, _CMP_ORD_Q);
    return (vf)_mm512_mask_max_ps((__m512)a, is_number, (__m512)a, (__m512)b);
#else
    return v_select(a != a, a, v_max(a, b));
#endif
}
SIMD vf merge(const bool max, vf a, vf b)
{
    return max ? larger(a, b) : a + b;
}
/* What the windows of a row of outputs have in common: planes of rows of the image. */
struct lines {
    const float *x; /* the first row's first pixel */
    int64_t planes, rows;
    int64_t pitch_plane, pitch_row; /* in floats */
    int64_t count;                  /* what an average divides by for each column */
};
/* The greatest, or the sum, of what `count` windows see at one place across. */
SIMD void column(const bool max, const int count, int64_t step, const struct lines *l, int64_t at,
                 vf *found)
{
    for (int64_t z = 0; z < l->planes; z++)
        for (int64_t r = 0; r < l->rows; r++) {
            const float *tap = l->x + z * l->pitch_plane + r * l->pitch_row + at;
            SDX_UNROLL(8)
            for (int i = 0; i < count; i++)
                found[i] = merge(max, v_load(tap + i * step), found[i]);
        }
}
/* `count` neighbouring windows over the same rows and taps, from `at` floats on. Sums go down the
 * columns first, as on plain images: of numbers of eight bits an average often lies between two. */
SIMD void windows(const bool max, const int count, const struct sdx_pool_block *p,
                  const struct lines *l, int64_t at, int64_t taps, float divisor, float *y)
{
    const int64_t step = p->stride[2] * LANES;
    vf found[GROUP];
    SDX_UNROLL(8) for (int i = 0; i < count; i++) found[i] = v_set1(max ? -INFINITY : 0.0f);
    for (int64_t k = 0; k < taps; k++, at += p->dilation[2] * LANES) {
        vf sums[GROUP];
        if (max) {
            column(true, count, step, l, at, found);
            continue;
        }
        SDX_UNROLL(8) for (int i = 0; i < count; i++) sums[i] = v_set1(0.0f);
        column(false, count, step, l, at, sums);
        SDX_UNROLL(8) for (int i = 0; i < count; i++) found[i] += sums[i];
    }
    SDX_UNROLL(8)
    for (int i = 0; i < count; i++)
        v_store(y + i * LANES, max ? found[i] : found[i] / v_set1(divisor));
}
SIMD struct lines lines_of(const struct sdx_pool_block *p, bool count_pads, const float *x,
                           int64_t r)
{
    const struct span deep = span_of(p, 0, r / p->out[1]), down = span_of(p, 1, r % p->out[1]);
    const int64_t row = p->in[2] * LANES, plane = p->in[1] * row;
    return (struct lines){.x = x + (deep.first + deep.lo * p->dilation[0]) * plane +
                               (down.first + down.lo * p->dilation[1]) * row,
                          .planes = deep.hi - deep.lo,
                          .rows = down.hi - down.lo,
                          .pitch_plane = p->dilation[0] * plane,
                          .pitch_row = p->dilation[1] * row,
                          .count = count_of(p, 0, &deep, count_pads) *
                                   count_of(p, 1, &down, count_pads)};
}
SIMD void pool(const bool max, const struct sdx_pool_block *p, bool count_pads, const float *x,
               float *y, int64_t r0, int64_t r1)
{
    int64_t lo, hi; /* windows within the columns of the image */
    conv_valid(-p->pad_begin[2], p->stride[2], p->in[2] - (p->kernel[2] - 1) * p->dilation[2],
               p->out[2], &lo, &hi);
    for (int64_t r = r0; r < r1; r++) {
        const struct lines l = lines_of(p, count_pads, x, r);
        float *to = y + r * p->out[2] * LANES;
        for (int64_t w = 0, group = 1; w < p->out[2]; w += group) {
            group = w < lo || w >= hi ? 1 : hi - lo >= GROUP ? GROUP : hi - lo >= HALF ? HALF : 1;
            if (group > 1) w = conv_least(w, hi - group); /* some are made twice */
            struct span across = {.first = w * p->stride[2] - p->pad_begin[2], 0, p->kernel[2]};
            int64_t counted = p->kernel[2];
            if (w < lo || w >= hi) {
                across = span_of(p, 2, w);
                counted = count_of(p, 2, &across, count_pads);
            }
            const int64_t taps = across.hi - across.lo;
            const int64_t at = (across.first + across.lo * p->dilation[2]) * LANES;
            const float all = (float)conv_most(1, l.count * counted);
            if (group == GROUP)
                windows(max, GROUP, p, &l, at, taps, all, to + w * LANES);
            else if (group == HALF)
                windows(max, HALF, p, &l, at, taps, all, to + w * LANES);
            else
                windows(max, 1, p, &l, at, taps, all, to + w * LANES);
        }
    }
}
static void pool_max(const struct sdx_pool_block *p, const float *x, float *y, int64_t r0,
                     int64_t r1)
{
    pool(true, p, false, x, y, r0, r1);
}
static void pool_average(const struct sdx_pool_block *p, bool count_pads, const float *x, float *y,
                         int64_t r0, int64_t r1)
{
    pool(false, p, count_pads, x, y, r0, r1);
}
/* Of each lane the sum over a plane, of the squares of what lies beside the mean if that is given,
 * in blocks of four sums. */
SIMD vf sum_up(int64_t pixels, const float *x, const bool squares, vf mean)
{
    vf total = v_set1(0.0f);
    for (int64_t at = 0; at < pixels; at += MEAN_BLOCK) {
        const int64_t end = conv_least(pixels, at + MEAN_BLOCK);
        vf sums[4];
        SDX_UNROLL(4) for (int i = 0; i < 4; i++) sums[i] = v_set1(0.0f);
        int64_t n = at;
        for (; n + 4 <= end; n += 4)
            SDX_UNROLL(4)
        for (int i = 0; i < 4; i++) {
            const vf v = v_load(x + (n + i) * LANES) - mean;
            sums[i] += squares ? v * v : v;
        }
        for (; n < end; n++) {
            const vf v = v_load(x + n * LANES) - mean;
            sums[0] += squares ? v * v : v;
        }
        total += (sums[0] + sums[1]) + (sums[2] + sums[3]);
    }
    return total;
}
static void pool_mean(int64_t pixels, const float *x, float *y)
{
    const vf total = sum_up(pixels, x, false, v_set1(0.0f));
    v_store(y, total / v_set1((float)conv_most(1, pixels)));
}
static void pool_squares(int64_t pixels, const float *x, const float *mean, float *y)
{
    v_store(y, sum_up(pixels, x, true, v_load(mean)));
}

void SDX_INIT(sdx_pool_block_init_)(struct sdx_pool_block_table *pool)
{
    pool->f32_max = pool_max;
    pool->f32_average = pool_average;
    pool->f32_mean = pool_mean;
    pool->f32_squares = pool_squares;
}
