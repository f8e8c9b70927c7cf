/* SPDX-License-Identifier: Apache-2.0
 * Convolution of kernels of one position on blocked channels by products of tiles. A part is a
 * range of pixels of an image, which are brought into tiles once, times some of the panels of
 * weights. */
#include "kernels/conv_block_tiles.h"

#include <string.h>

#include "kernels/conv_gather.h"
#include "kernels/tables.h"
#include "kernels/tuning.h"

enum {
    LEAST_PIXELS = 32,      /* of an image, and of a part */
    MANY_WEIGHTS = 1 << 20, /* bytes that are better read once */
    EVEN = 16
};

/* Ranges of pixels of an image, and the parts that share the panels of one. */
struct cut {
    int64_t pixels, ranges, panels, splits;
};
static struct cut cut_of(const struct sdx_conv_shape *s)
{
    const int64_t columns = sdx_gemm_f32_panel(), wanted = conv_wanted(conv_worth(s));
    struct cut c = {.pixels = conv_sizes(s).pixels, .panels = conv_divide_up(s->oc, columns)};
    const int64_t bytes = (int64_t)sdx_gemm_f32_tiles_size(LEAST_PIXELS, s->ic) / LEAST_PIXELS;
    const int64_t fit = sdx_kernel_tuning()->block_bytes / bytes / LEAST_PIXELS * LEAST_PIXELS;
    c.ranges = conv_divide_up(c.pixels, conv_most(fit, LEAST_PIXELS));
    if ((int64_t)sdx_gemm_tiles_packed_size(s->ic, s->oc) <= MANY_WEIGHTS)
        c.ranges = conv_most(c.ranges,
                             conv_least(conv_divide_up(wanted, s->batch), c.pixels / LEAST_PIXELS));
    c.ranges = conv_least(conv_even(conv_most(c.ranges, 1), EVEN), c.pixels);
    c.splits = conv_least(c.panels, conv_divide_up(wanted, s->batch * c.ranges));
    return c;
}

bool sdx_tiles_block_fits(const struct sdx_conv_shape *s)
{
    if (!sdx_kernel_tables()->gemm.f32_tile_pixels || (s->winograd != 0 && s->winograd != 1) ||
        s->groups != 1 || s->half != SDX_HALF_NONE)
        return false;
    for (int i = 0; i < 3; i++)
        if (s->kernel[i] != 1 || s->pad_begin[i] != 0 || (s->out[i] - 1) * s->stride[i] >= s->in[i])
            return false;
    return s->winograd == 1 ||
           (conv_sizes(s).pixels >= LEAST_PIXELS && sdx_gemm_f32_tiles_pay(s->ic, s->oc));
}

size_t sdx_tiles_block_packed_size(const struct sdx_conv_shape *s)
{
    return sdx_gemm_tiles_packed_size(s->ic, s->oc);
}
void sdx_tiles_block_pack(const struct sdx_conv_shape *s, const sdx_weight_f32 *weights,
                          void *packed)
{
    sdx_gemm_tiles_pack(weights, 1, s->ic, NULL, s->ic, s->oc, packed);
}
int64_t sdx_tiles_block_parts(const struct sdx_conv_shape *s)
{
    const struct cut c = cut_of(s);
    return s->batch * c.ranges * c.splits;
}

/* Tiles, then places of pixels, then the bias with zeros behind it. */
struct room {
    void *tiles;
    int64_t *from;
    float *bias;
    size_t size;
};
static struct room room_of(const struct sdx_conv_shape *s, const struct cut *c, void *scratch)
{
    const int64_t most = conv_divide_up(c->pixels, c->ranges);
    const size_t tiles = sdx_gemm_f32_tiles_size(most, s->ic),
                 from = (size_t)most * sizeof(int64_t);
    struct room r = {.tiles = scratch};
    r.from = (void *)((char *)scratch + tiles);
    r.bias = (void *)((char *)scratch + tiles + from);
    r.size = tiles + from + (size_t)(c->panels * sdx_gemm_f32_panel()) * sizeof(float);
    return r;
}
size_t sdx_tiles_block_scratch(const struct sdx_conv_shape *s)
{
    const struct cut c = cut_of(s);
    char none[1];
    return room_of(s, &c, none).size;
}

/* Where pixels p0 .. p1 of the output read a block of the input, in floats. */
static void place_pixels(const struct sdx_conv_shape *s, int64_t p0, int64_t p1, int64_t *from)
{
    const int64_t lanes = sdx_kernel_tables()->block.lanes;
    int64_t w = p0 % s->out[2], h = p0 / s->out[2] % s->out[1], d = p0 / s->out[2] / s->out[1];
    for (; p0 < p1; p0++) {
        const int64_t row = d * s->stride[0] * s->in[1] + h * s->stride[1];
        *from++ = (row * s->in[2] + w * s->stride[2]) * lanes;
        if (++w < s->out[2]) continue;
        w = 0;
        if (++h < s->out[1]) continue;
        h = 0;
        d++;
    }
}

void sdx_tiles_block_part(const struct sdx_conv_shape *s, const float *x, const void *packed,
                          float *y, const struct sdx_epilogue *e, int64_t part, void *scratch)
{
    const struct cut c = cut_of(s);
    const struct room r = room_of(s, &c, scratch);
    const int64_t lanes = sdx_kernel_tables()->block.lanes, columns = sdx_gemm_f32_panel();
    const int64_t split = part % c.splits, at = part / c.splits, image = at / c.ranges;
    const int64_t p0 = conv_share(c.pixels, at % c.ranges, c.ranges);
    const int64_t p1 = conv_share(c.pixels, at % c.ranges + 1, c.ranges);
    const int64_t blocks = conv_divide_up(s->oc, lanes), block_in = conv_sizes(s).pixels_in * lanes;
    const int64_t to = (image * blocks * c.pixels + p0) * lanes;
    struct sdx_gemm_f32 g = {.m = p1 - p0,
                             .n = blocks * lanes,
                             .k = s->ic,
                             .col_a = 1,
                             .packed = packed,
                             .a_tiles = r.tiles,
                             .block_c = c.pixels * lanes,
                             .c = y + to,
                             .alpha = 1.0f,
                             .residual_first = true,
                             .epilogue = *e};
    const int64_t n0 = conv_share(c.panels, split, c.splits) * columns;
    const int64_t n1 = conv_share(c.panels, split + 1, c.splits) * columns;
    if (e->bias_row) {
        memset(r.bias, 0, (size_t)(c.panels * columns) * sizeof(float));
        memcpy(r.bias, e->bias_row, (size_t)s->oc * sizeof(float));
        g.epilogue.bias_col = r.bias;
        g.epilogue.bias_row = NULL;
    }
    if (e->residual) g.epilogue.residual = e->residual + to;
    place_pixels(s, p0, p1, r.from);
    sdx_gemm_f32_tile_pixels(x + image * conv_divide_up(s->ic, lanes) * block_in, r.from, block_in,
                             g.m, g.k, r.tiles);
    sdx_gemm_f32_run(&g, 0, g.m, n0, conv_least(n1, g.n), NULL);
}
