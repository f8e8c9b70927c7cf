/* SPDX-License-Identifier: Apache-2.0
 * Rows of conv_block_group.c, once an instruction set. A tile is some outputs of a row; with their
 * sums, the three weights of a channel and a value of the input are in registers. */
#include "kernels/simd.h"
#include "kernels/tables.h"

#if SDX_SIMD_LANES < 8 /* small code before speed; NEON has lanes for operands, so panels do */
void SDX_INIT(sdx_conv_block_group_init_)(struct sdx_conv_block_table *block)
{
    block->f32_group_row = NULL;
}
#else
enum { MOST = 2 * SDX_CONV_GROUP_LEAST - 1, TAPS = 3 };
#define OUTPUT SDX_UNROLL(9) for (int i = 0; i < n; i++)
#define TAP    SDX_UNROLL(3) for (int k = 0; k < TAPS; k++)

/* One channel: x points to it in the first pixel. */
SIMD void channel(const int n, const int stride, const float *x, const float *weights, vf *s)
{
    vf w[TAPS];
    TAP
    {
        w[k] = v_load(weights + k * LANES);
        V_KEEP(w[k]);
    }
    SDX_UNROLL(19) for (int j = 0; j < (n - 1) * stride + TAPS; j++)
    {
        const vf pixel = v_set1(x[j * LANES]);
        TAP
        {
            const int i = (j - k) / stride;
            if (j >= k && (j - k) % stride == 0 && i < n) s[i] = v_fma(pixel, w[k], s[i]);
        }
        V_USE(pixel);
    }
    TAP V_USE(w[k]);
}
SIMD void tile(const int n, const int stride, const struct sdx_conv_group_row *g, int64_t first)
{
    const vf bias = v_load(g->bias), lo = v_set1(g->lo), hi = v_set1(g->hi);
    const float *block = g->x + first * stride * LANES, *of_block = g->weights;
    float *y = g->y + first * LANES;
    vf s[MOST];
    OUTPUT s[i] = bias;
    for (int64_t b = g->blocks; b > 0; b--, block += g->block, of_block += g->weights_block) {
        const float *row = block, *weights = of_block;
        for (int64_t r = g->rows; r > 0; r--, row += g->pitch) {
            SDX_UNROLL(1)
            for (int c = 0; c < LANES; c++, weights += TAPS * LANES)
                channel(n, stride, row + c, weights, s);
        }
    }
    OUTPUT v_store(y + i * LANES, v_min(hi, v_max(lo, s[i])));
}
#define TILE(n)                                                                                    \
    static void tile_##n##_1(const struct sdx_conv_group_row *g, int64_t first)                    \
    {                                                                                              \
        tile(n, 1, g, first);                                                                      \
    }                                                                                              \
    static void tile_##n##_2(const struct sdx_conv_group_row *g, int64_t first)                    \
    {                                                                                              \
        tile(n, 2, g, first);                                                                      \
    }
TILE(5)
TILE(6)
TILE(7)
TILE(8)
TILE(9)

/* In tiles whose lengths differ by at most one. */
static void group_row(const struct sdx_conv_group_row *g)
{
    static void (*const tiles[2][MOST - SDX_CONV_GROUP_LEAST + 1])(
        const struct sdx_conv_group_row *g,
        int64_t first) = {{tile_5_1, tile_6_1, tile_7_1, tile_8_1, tile_9_1},
                          {tile_5_2, tile_6_2, tile_7_2, tile_8_2, tile_9_2}};
    const int64_t count = (g->width + MOST - 1) / MOST, size = g->width / count;
    const int64_t more = g->width % count;
    for (int64_t i = 0, at = 0; i < count; i++) {
        const int64_t n = size + (i < more);
        tiles[g->stride - 1][n - SDX_CONV_GROUP_LEAST](g, at);
        at += n;
    }
}

void SDX_INIT(sdx_conv_block_group_init_)(struct sdx_conv_block_table *block)
{
    block->f32_group_row = group_row;
}
#endif
