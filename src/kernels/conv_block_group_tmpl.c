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

/* Channel c of each lane's group. */
SIMD vf picked(const bool shared, const float *pixel, int c, vi pick)
{
    return shared ? v_permute(v_load(pixel), pick) : v_set1(pixel[c]);
}
/* One channel: x points to the first pixel. */
SIMD void channel(const int n, const int stride, const bool shared, const float *x, int c, vi pick,
                  const float *weights, vf *s)
{
    vf w[TAPS];
    TAP
    {
        w[k] = v_load(weights + k * LANES);
        V_KEEP(w[k]);
    }
    SDX_UNROLL(19) for (int j = 0; j < (n - 1) * stride + TAPS; j++)
    {
        const vf pixel = picked(shared, x + j * LANES, c, pick);
        TAP
        {
            const int i = (j - k) / stride;
            if (j >= k && (j - k) % stride == 0 && i < n) s[i] = v_fma(pixel, w[k], s[i]);
        }
        V_USE(pixel);
    }
    TAP V_USE(w[k]);
}
SIMD void tile(const int n, const int stride, const bool shared, const struct sdx_conv_group_row *g,
               int64_t first)
{
    const int channels = shared ? g->channels : LANES;
    const vi begin = v_lane() & vi_set1(-channels); /* of a lane's group */
    const vf bias = v_load(g->bias), lo = v_set1(g->lo), hi = v_set1(g->hi);
    const float *block = g->x + first * stride * LANES, *of_block = g->weights;
    float *y = g->y + first * LANES;
    vf s[MOST];
    OUTPUT s[i] = bias;
    for (int64_t b = g->blocks; b > 0; b--, block += g->block, of_block += g->weights_block) {
        const float *row = block, *weights = of_block;
        for (int64_t r = g->rows; r > 0; r--, row += g->pitch) {
            SDX_UNROLL(1)
            for (int c = 0; c < channels; c++, weights += TAPS * LANES)
                channel(n, stride, shared, row, c, begin + vi_set1(c), weights, s);
        }
    }
    OUTPUT v_store(y + i * LANES, v_min(hi, v_max(lo, s[i])));
}
#define TILE(n, stride, shared)                                                                    \
    static void tile_##n##_##stride##_##shared(const struct sdx_conv_group_row *g, int64_t first)  \
    {                                                                                              \
        tile(n, stride, shared, g, first);                                                         \
    }
#define TILES(n) TILE(n, 1, 0) TILE(n, 2, 0) TILE(n, 1, 1) TILE(n, 2, 1)
TILES(5)
TILES(6)
TILES(7)
TILES(8)
TILES(9)

/* In tiles whose lengths differ by at most one. */
static void group_row(const struct sdx_conv_group_row *g)
{
#define NAMES(stride, shared)                                                                      \
    {                                                                                              \
        tile_5_##stride##_##shared, tile_6_##stride##_##shared, tile_7_##stride##_##shared,        \
            tile_8_##stride##_##shared, tile_9_##stride##_##shared                                 \
    }
    static void (*const tiles[2][2][MOST - SDX_CONV_GROUP_LEAST + 1])(
        const struct sdx_conv_group_row *g, int64_t first) = {{NAMES(1, 0), NAMES(1, 1)},
                                                              {NAMES(2, 0), NAMES(2, 1)}};
#undef NAMES
    const int64_t count = (g->width + MOST - 1) / MOST, size = g->width / count;
    const int64_t more = g->width % count;
    for (int64_t i = 0, at = 0; i < count; i++) {
        const int64_t n = size + (i < more);
        tiles[g->stride - 1][g->channels < LANES][n - SDX_CONV_GROUP_LEAST](g, at);
        at += n;
    }
}

void SDX_INIT(sdx_conv_block_group_init_)(struct sdx_conv_block_table *block)
{
    block->f32_group_row = group_row;
}
#endif
