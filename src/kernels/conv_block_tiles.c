/* SPDX-License-Identifier: Apache-2.0
 * Convolution on blocked channels by products of tiles. A part is a range of pixels of an image,
 * which are brought into tiles once a call, times some of the panels of weights. K, the channels of
 * one kernel position behind those of the other, is one span: a pixel's sums pass through no
 * memory. */
#include "kernels/conv_block_tiles.h"

#include <math.h>
#include <string.h>

#include "kernels/conv_block_winograd.h"
#include "kernels/conv_gather.h"
#include "kernels/gemm_tiles.h"
#include "kernels/tables.h"
#include "kernels/tuning.h"

enum {
    LEAST_PIXELS = 16,      /* of an image, */
    PART_PIXELS = 32,       /* and of a part */
    MANY_WEIGHTS = 1 << 20, /* bytes that are better read once */
    EVEN = 16
};

static int64_t depth_of(const struct sdx_conv_shape *s)
{
    const int64_t lanes = sdx_kernel_tables()->block.lanes;
    return conv_sizes(s).taps * conv_divide_up(s->ic, lanes) * lanes;
}
static int64_t panels_of(const struct sdx_conv_shape *s)
{
    return conv_divide_up(s->oc, SDX_TILES_WIDTH);
}
static bool is_half(const struct sdx_conv_shape *s)
{
    return s->half != SDX_HALF_NONE;
}
/* Of a panel of weights. */
static int64_t panel_bytes(const struct sdx_conv_shape *s)
{
    return (is_half(s) ? sdx_tiles_bytes_half : sdx_tiles_bytes_b)(depth_of(s));
}
/* Ranges of pixels of an image, and the parts that share the panels of one. */
struct cut {
    int64_t pixels, ranges, panels, splits;
};
static struct cut cut_of(const struct sdx_conv_shape *s)
{
    const int64_t wanted = conv_wanted(conv_worth(s));
    struct cut c = {.pixels = conv_sizes(s).pixels, .panels = panels_of(s)};
    const int64_t bytes = sdx_tiles_bytes_a(depth_of(s)) / SDX_TILES_HEIGHT;
    const int64_t fit = sdx_kernel_tuning()->block_bytes / bytes / PART_PIXELS * PART_PIXELS;
    c.ranges = conv_divide_up(c.pixels, conv_most(fit, PART_PIXELS));
    /* each range makes its panels of 16-bit weights anew */
    if (!is_half(s) && c.panels * sdx_tiles_bytes_b(depth_of(s)) <= MANY_WEIGHTS)
        c.ranges = conv_most(c.ranges,
                             conv_least(conv_divide_up(wanted, s->batch), c.pixels / PART_PIXELS));
    c.ranges = conv_least(conv_even(conv_most(c.ranges, 1), EVEN), c.pixels);
    c.splits = conv_least(c.panels, conv_divide_up(wanted, s->batch * c.ranges));
    return c;
}

/* How many of the products meet pixels of the image, 0 to 1: FMAs leave the others out. */
static double share_inside(const struct sdx_conv_shape *s)
{
    double share = 1;
    for (int i = 0; i < 3; i++) {
        int64_t inside = 0;
        for (int64_t k = 0; k < s->kernel[i]; k++) {
            int64_t lo, hi;
            conv_valid(k * s->dilation[i] - s->pad_begin[i], s->stride[i], s->in[i], s->out[i], &lo,
                       &hi);
            inside += hi - lo;
        }
        share *= (double)inside / (double)(s->kernel[i] * s->out[i]);
    }
    return share;
}
static bool served(const struct sdx_conv_shape *s)
{
    return sdx_kernel_tables()->gemm.f32_tiles && s->groups == 1 && depth_of(s) <= SDX_TILES_MOST_K;
}
/* Channels that fill up vectors and pixels beyond the image cost as much as others. */
double sdx_tiles_block_cost(const struct sdx_conv_shape *s)
{
    const int64_t k = depth_of(s), pixels = conv_sizes(s).pixels, taps = conv_sizes(s).taps;
    const double useful = share_inside(s) * (double)conv_sizes(s).k / (double)k;
    if (!served(s) || pixels < LEAST_PIXELS || (taps > 1 && useful < 0.75) ||
        k < SDX_TILES_LEAST_K || !sdx_gemm_f32_tiles_pay(k, s->oc))
        return INFINITY;
    const double weights = (double)k * (double)s->oc;
    const double bytes = (is_half(s) ? 2 : SDX_TILES_DIGITS) * weights;
    const double making = is_half(s) ? 0.3 * weights * (double)cut_of(s).ranges : 0;
    return (double)pixels * sdx_gemm_f32_tiles_cost(k, s->oc) + bytes / SDX_TILES_READ + making;
}
bool sdx_tiles_block_fits(const struct sdx_conv_shape *s)
{
    if (s->winograd != 0) return s->winograd == 1 && served(s);
    return isfinite(sdx_tiles_block_cost(s)) && !sdx_winograd_block_fits(s);
}

size_t sdx_tiles_block_packed_size(const struct sdx_conv_shape *s)
{
    return (size_t)(panels_of(s) * panel_bytes(s));
}
/* Filters of a panel. */
struct filters {
    const struct sdx_conv_shape *s;
    const sdx_weight_f32 *weights;
    int64_t first;
};
static void gather_filters(const void *arg, int64_t k0, uint16_t *rows)
{
    const struct filters *f = arg;
    const struct sdx_conv_shape *s = f->s;
    const int64_t taps = conv_sizes(s).taps, channels = depth_of(s) / taps;
    float floats[SDX_TILES_CHUNK * SDX_TILES_WIDTH];
    memset(floats, 0, sizeof floats);
    for (int64_t j = 0; j < conv_least(SDX_TILES_WIDTH, s->oc - f->first); j++) {
        const sdx_weight_f32 *filter = f->weights + (f->first + j) * s->ic * taps;
        int64_t tap = k0 / channels, c = k0 % channels;
        for (int64_t i = 0; i < SDX_TILES_CHUNK && tap < taps; i++) {
            if (c < s->ic) floats[i * SDX_TILES_WIDTH + j] = filter[c * taps + tap];
            if (++c < channels) continue;
            c = 0;
            tap++;
        }
    }
    sdx_half_encode(s->half, floats, rows, SDX_TILES_CHUNK * SDX_TILES_WIDTH);
}
void sdx_tiles_block_pack(const struct sdx_conv_shape *s, const sdx_weight_f32 *weights,
                          void *packed, const struct sdx_pieces *pieces)
{
    (void)pieces;
    const int64_t taps = conv_sizes(s).taps;
    char *to = packed;
    for (int64_t j = 0; j < s->oc; j += SDX_TILES_WIDTH, to += panel_bytes(s)) {
        const struct filters f = {s, weights, j};
        if (is_half(s))
            sdx_tiles_pack_half(s->half, depth_of(s), gather_filters, &f, to);
        else
            sdx_kernel_tables()->gemm.f32_tile_filters(weights + j * s->ic * taps, taps, s->ic,
                                                       conv_least(SDX_TILES_WIDTH, s->oc - j), to);
    }
}
int64_t sdx_tiles_block_parts(const struct sdx_conv_shape *s)
{
    const struct cut c = cut_of(s);
    return s->batch * c.ranges * c.splits;
}
int64_t sdx_tiles_block_together(const struct sdx_conv_shape *s)
{
    return cut_of(s).splits;
}

/* Tiles, a panel that is made of 16-bit weights, then places of pixels, then the bias with zeros
 * behind it. */
struct room {
    char *tiles, *panel;
    int64_t *from;
    float *bias;
    size_t size;
};
static struct room room_of(const struct sdx_conv_shape *s, const struct cut *c, void *scratch)
{
    const int64_t most = conv_divide_up(c->pixels, c->ranges);
    const size_t tiles = (size_t)(sdx_tiles_of(most) * sdx_tiles_bytes_a(depth_of(s)));
    const size_t from = (size_t)(most * conv_sizes(s).taps) * sizeof(int64_t);
    const size_t panel = is_half(s) ? (size_t)sdx_tiles_bytes_b(depth_of(s)) : 0;
    struct room r = {.tiles = scratch};
    r.panel = r.tiles + tiles;
    r.from = (void *)(r.panel + panel);
    r.bias = (void *)(r.panel + panel + from);
    r.size = tiles + panel + from + (size_t)(c->panels * SDX_TILES_WIDTH) * sizeof(float);
    return r;
}
size_t sdx_tiles_block_scratch(const struct sdx_conv_shape *s)
{
    const struct cut c = cut_of(s);
    char none[1];
    return room_of(s, &c, none).size;
}

/* Where the taps of an output pixel read a block of the input, in floats; -1: beyond the image. */
static int64_t *place_taps(const struct sdx_conv_shape *s, const int64_t pixel[3], int64_t *from)
{
    const int64_t lanes = sdx_kernel_tables()->block.lanes;
    int64_t first[3];
    for (int i = 0; i < 3; i++)
        first[i] = pixel[i] * s->stride[i] - s->pad_begin[i];
    for (int64_t kd = 0, d = first[0]; kd < s->kernel[0]; kd++, d += s->dilation[0])
        for (int64_t kh = 0, h = first[1]; kh < s->kernel[1]; kh++, h += s->dilation[1])
            for (int64_t kw = 0, w = first[2]; kw < s->kernel[2]; kw++, w += s->dilation[2]) {
                const bool inside =
                    d >= 0 && d < s->in[0] && h >= 0 && h < s->in[1] && w >= 0 && w < s->in[2];
                *from++ = inside ? ((d * s->in[1] + h) * s->in[2] + w) * lanes : -1;
            }
    return from;
}
static void place_pixels(const struct sdx_conv_shape *s, int64_t p0, int64_t p1, int64_t *from)
{
    int64_t at[3] = {p0 / s->out[2] / s->out[1], p0 / s->out[2] % s->out[1], p0 % s->out[2]};
    for (; p0 < p1; p0++) {
        from = place_taps(s, at, from);
        if (++at[2] < s->out[2]) continue;
        at[2] = 0;
        if (++at[1] < s->out[1]) continue;
        at[1] = 0;
        at[0]++;
    }
}

/* A range of pixels, number `at` over all images, to the channels of splits `first` .. end - 1. */
static void run_range(const struct sdx_conv_shape *s, const float *x, const void *packed, float *y,
                      const struct sdx_epilogue *e, int64_t at, int64_t first, int64_t end,
                      void *scratch)
{
    const struct sdx_gemm_table *table = &sdx_kernel_tables()->gemm;
    const struct cut c = cut_of(s);
    const struct room r = room_of(s, &c, scratch);
    const int64_t lanes = sdx_kernel_tables()->block.lanes, k = depth_of(s);
    const int64_t image = at / c.ranges;
    const int64_t p0 = conv_share(c.pixels, at % c.ranges, c.ranges);
    const int64_t p1 = conv_share(c.pixels, at % c.ranges + 1, c.ranges);
    const int64_t blocks = conv_divide_up(s->oc, lanes), block_in = conv_sizes(s).pixels_in * lanes;
    const int64_t panel0 = conv_share(c.panels, first, c.splits);
    const int64_t panel1 = conv_share(c.panels, end, c.splits);
    const int64_t j0 = panel0 * SDX_TILES_WIDTH, block_out = c.pixels * lanes;
    const int64_t to = image * blocks * block_out + p0 * lanes + j0 / lanes * block_out;
    struct sdx_tile_pixels pixels = {.a = x + image * conv_divide_up(s->ic, lanes) * block_in,
                                     .from = r.from,
                                     .taps = conv_sizes(s).taps,
                                     .channels = s->ic,
                                     .block_a = block_in,
                                     .height = sdx_tiles_height(p1 - p0)};
    struct sdx_gemm_tiles g = {
        .job = {.m = p1 - p0,
                .n = conv_least(panel1 * SDX_TILES_WIDTH, blocks * lanes) - j0,
                .k = k,
                .c = y + to,
                .row_c = lanes,
                .last = true,
                .alpha = 1.0f,
                .epilogue = *e},
        .a = r.tiles,
        .b = (const char *)packed + panel0 * panel_bytes(s),
        .half = s->half,
        .panel = r.panel,
        .height = pixels.height,
        .half_c = block_out,
        .panel_c = SDX_TILES_WIDTH / lanes * block_out};
    if (e->bias_row) {
        memset(r.bias, 0, (size_t)(c.panels * SDX_TILES_WIDTH) * sizeof(float));
        memcpy(r.bias, e->bias_row, (size_t)s->oc * sizeof(float));
        g.job.epilogue.bias_col = r.bias + j0;
        g.job.epilogue.bias_row = NULL;
    }
    if (e->residual) g.job.epilogue.residual = e->residual + to;
    place_pixels(s, p0, p1, r.from);
    char *tile = r.tiles;
    for (int64_t i = 0; i < g.job.m; i += pixels.height, tile += sdx_tiles_bytes_a(k)) {
        pixels.rows = conv_least(pixels.height, g.job.m - i);
        table->f32_tile_pixels(&pixels, tile);
        pixels.from += pixels.height * pixels.taps;
    }
    table->f32_tiles(&g);
}
void sdx_tiles_block_run(const struct sdx_conv_shape *s, const float *x, const void *packed,
                         float *y, const struct sdx_epilogue *epilogue, int64_t part, int64_t end,
                         void *scratch)
{
    const int64_t splits = cut_of(s).splits;
    for (int64_t next; part < end; part = next) {
        const int64_t at = part / splits, first = at * splits;
        next = conv_least(first + splits, end);
        run_range(s, x, packed, y, epilogue, at, part - first, next - first, scratch);
    }
}
