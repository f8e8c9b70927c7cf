/* SPDX-License-Identifier: Apache-2.0
 * Winograd's convolution on blocked channels: a block of tiles is transformed to V, matrices
 * [tiles, channels], one for each input of a tile, with the channels of all four phases where the
 * stride is 2; their products with the transformed weights U give M, chunk by chunk
 * of output channels, and each chunk's inverse transform is the output. Sizes of blocks and chunks
 * are those that keep V and M in the second cache while U is read in order. Where an image is one
 * block of few tiles, U would be read once a run: it is made from the filters then, panel by panel,
 * as reading nine numbers in place of 16 or 36 takes less time, memory and packing. With 16-bit
 * weights it always is: that is as fast as widening U would be. So it is with stride 2. There, and
 * where pieces are many, V holds no more input channels than one such U, and M all output channels.
 */
#include "kernels/conv_block_winograd.h"

#include <math.h>
#include <string.h>

#include "kernels/conv_block_tiles.h"
#include "kernels/conv_block_winograd_digits.h"
#include "kernels/conv_gather.h"
#include "kernels/gemm_tiles.h"
#include "kernels/tables.h"
#include "kernels/tuning.h"

enum {
    GAP = 16, /* floats between planes: their lines shall not share a set of the cache */
    MOST_PANEL = 32,
    MOST_PLANES = 64,
    AT_ONCE = SDX_WINOGRAD_FILTERS,
    LATE_TILES = 100,       /* of an image, at most */
    LATE_LEAST = 512 << 10, /* bytes of U from which it is made late, */
    LATE_MOST = 4 << 20,    /* and from which pieces of tiles of 6 or of two blocks are */
    SMALL_U = 6 << 20,      /* bytes */
    PASSES_LEAST = 1024,    /* depth of pieces of which V would be too large */
    PHASED_TILES = 64,      /* of a block with stride 2 */
    LEAST_GROUPS = 4,       /* of tiles in a line's block, where more of them can be had */
    EVEN = 16               /* blocks, of which one more is much for a thread */
};

struct winograd_cut {
    int64_t lanes, step, planes;
    int axis;                  /* as in struct sdx_winograd_block */
    int taps;                  /* of a piece of a filter */
    int64_t depth;             /* numbers that an output adds up of each of its positions */
    int64_t high, wide, tiles; /* of a plane of an image, and of all */
    int64_t block, blocks;     /* tiles of a block */
    int64_t chunk, chunks;     /* vectors of output channels between two transforms of the output */
    int64_t vectors;           /* of all output channels */
    int64_t splits;            /* parts of a block, of whole chunks */
    int64_t plane_v, plane_m, group_v;
    int64_t phases; /* images whose products add up */
    int64_t pass;   /* input channels of which a late U is made */
    bool late;      /* U is made in each run, a panel at a time */
    bool in_passes; /* V has no more input channels than one such U, and M all output channels */
};

/* 1, 2: kernels of 2 or more along this axis; 0: along both of a plane; -1: others. */
static int axis_of(const struct sdx_conv_shape *s)
{
    const int64_t high = s->kernel[1], wide = s->kernel[2];
    return high > 1 && wide > 1 ? 0 : high > 1 ? 1 : wide > 1 ? 2 : -1;
}
/* Bytes of U with so many planes. */
static int64_t bytes_of_u(const struct sdx_conv_shape *s, int64_t planes)
{
    const int64_t lanes = sdx_kernel_tables()->block.lanes;
    return planes * conv_divide_up(s->oc, lanes) * lanes * winograd_depth(s) *
           (int64_t)sizeof(float);
}
/* Chunks of 32 output channels, 64 where a row of U is long: whole panels on every set. A line's
 * chunks are shared among threads, so it has four at least where it has 128 output channels. */
static int64_t chunk_of(const struct sdx_conv_shape *s)
{
    return (winograd_depth(s) < 256 || (axis_of(s) && s->oc < 256) ? 32 : 64) /
           sdx_kernel_tables()->block.lanes;
}
/* Of a block, in planes. */
static int64_t wanted_tiles(const struct sdx_conv_shape *s)
{
    return winograd_depth(s) <= 128 ? 24 : winograd_depth(s) <= 256 ? 48 : 72;
}
/* Most tiles of an image that are an only block with a late U. */
static int64_t late_tiles(const struct sdx_conv_shape *s)
{
    return conv_most(wanted_tiles(s), LATE_TILES);
}
/* Is U of an image of so many tiles a plane rather made in each run, of each block? */
static bool is_late(const struct sdx_conv_shape *s, int64_t step, int64_t tiles)
{
    const int64_t side = winograd_side((int)step), bytes = bytes_of_u(s, side * side);
    const int64_t block = late_tiles(s);
    if (step != 6 && tiles <= block) return bytes >= LATE_LEAST;
    const int64_t all = tiles * s->out[0]; /* each plane's block makes it again */
    return winograd_pieces(s) > 1 && all <= (step == 6 ? 1 : 2) * block && bytes >= LATE_MOST;
}
static struct winograd_cut cut_of(const struct sdx_conv_shape *s)
{
    const struct sdx_conv_block_table *table = &sdx_kernel_tables()->block;
    struct winograd_cut c = {.lanes = table->lanes,
                             .step = winograd_step(s, sdx_winograd_block_fits(s)),
                             .chunk = chunk_of(s)};
    c.axis = axis_of(s);
    c.depth = winograd_depth(s);
    c.planes = winograd_side((int)c.step) * (c.axis ? 1 : winograd_side((int)c.step));
    c.phases = winograd_phases((int)c.step, 0);
    c.pass = table->winograd_pass / c.phases;
    const int64_t step = c.axis ? winograd_line_step(s) : c.step;
    c.high = c.axis == 2 ? s->out[1] : winograd_tiles_along(s, 1, step);
    c.wide = c.axis == 1 ? s->out[2] : winograd_tiles_along(s, 2, step);
    c.tiles = s->batch * s->out[0] * c.high * c.wide;
    const int64_t one = c.high * c.wide;
    int64_t want = wanted_tiles(s) * (c.axis ? 4 : 1); /* fewer planes */
    c.vectors = conv_divide_up(s->oc, c.lanes);
    c.taps = (int)winograd_piece_taps(s);
    c.late = c.phases > 1 || s->half != SDX_HALF_NONE || (!c.axis && is_late(s, c.step, one));
    if (c.late) c.chunk = 2;
    c.in_passes =
        c.phases > 1 || (c.late && !c.axis && c.depth >= PASSES_LEAST && winograd_pieces(s) > 1);
    if (c.phases > 1)
        want = PHASED_TILES;
    else if (c.late && one <= conv_most(want, LATE_TILES))
        /* in halves where two parts would transform more tiles again than filters */
        want = 2 * one > s->oc && one >= 48 ? conv_divide_up(one, 2) : conv_most(want, one);
    c.blocks = conv_divide_up(c.tiles, want);
    /* each reads U from the second cache */
    if (c.axis && bytes_of_u(s, c.planes) <= sdx_kernel_tuning()->a_bytes)
        c.blocks = conv_most(c.blocks, conv_least(conv_wanted(conv_worth(s)),
                                                  c.tiles / (LEAST_GROUPS * table->winograd_rows)));
    c.blocks = conv_even(c.blocks, EVEN);
    c.block = conv_divide_up(c.tiles, conv_most(c.blocks, 1));
    c.blocks = conv_divide_up(c.tiles, conv_most(c.block, 1));
    c.chunks = conv_divide_up(c.vectors, c.chunk);
    /* Each part of a block transforms the whole input again: at 256 outputs 4 % of its work, of a
     * line less. An only block, which pieces often are, is worth more of that. */
    c.splits = 1;
    const int64_t least = c.axis || winograd_pieces(s) > 1 ? 64 : 256;
    while (2 * c.splits * c.blocks <= sdx_kernel_tuning()->block_parts &&
           2 * c.splits <= c.chunks && (c.late && c.splits == 1 ? 64 : least * c.splits) <= s->oc)
        c.splits *= 2;
    const int64_t groups = conv_divide_up(c.block, table->winograd_rows);
    c.group_v = table->winograd_rows * conv_divide_up(c.depth, c.lanes) * c.lanes;
    if (c.in_passes) c.group_v = table->winograd_rows * c.phases * conv_least(c.depth, c.pass);
    c.plane_v = groups * c.group_v + GAP;
    const int64_t chunks = c.phases > 1  ? conv_divide_up(c.chunks, c.splits) /* in M at once */
                           : c.in_passes ? c.chunks
                                         : 1;
    c.plane_m =
        conv_divide_up(conv_least(chunks * c.chunk, c.vectors), 2) * 2 * c.lanes * c.block + GAP;
    return c;
}

/* Multiplications a cycle of products and direct; bytes of weights a cycle from memory; cycles of
 * the transforms of a tile of each step and a vector of so many channels. */
static const struct figures {
    double products, direct, bytes, lanes, step_2, step_4, step_6, line;
    double filters_2, filters_4, filters_6;
} zen_3 = {14.8, 14.3, 5.6, 8, 60, 165, 390, 26.5, 6, 15, 30},
  with_tiles /* Sapphire Rapids */ = {29, 28, SDX_TILES_READ, 16, 100, 290, 800, 47, 3, 8, 16};
static const struct figures *figures(void)
{
    return sdx_kernel_tables()->gemm.f32_tiles ? &with_tiles : &zen_3;
}
/* Output channels that fill vectors. */
static double outputs(const struct sdx_conv_shape *s)
{
    const double lanes = (double)sdx_kernel_tables()->block.lanes;
    return ceil((double)s->oc / lanes) * lanes;
}
/* Transforms of vectors of the figures' length that are worth those of a tile, of all channels. */
static double transforms(const struct sdx_conv_shape *s)
{
    const double lanes = (double)sdx_kernel_tables()->block.lanes, ic = (double)winograd_depth(s);
    return (ceil(ic / lanes) * lanes + outputs(s)) / figures()->lanes;
}
static int64_t tiles_of(const struct sdx_conv_shape *s, int form)
{
    const int step = winograd_step(s, form);
    return winograd_tiles_along(s, 1, step) * winograd_tiles_along(s, 2, step);
}
static double cost_of(const struct sdx_conv_shape *s, int form)
{
    const struct figures *f = figures();
    const int step = winograd_step(s, form);
    const double tiles = (double)tiles_of(s, form), ic = (double)winograd_depth(s), oc = outputs(s);
    const double planes = winograd_side(step) * winograd_side(step), pairs = planes * ic * oc;
    const double plain = step == 6 ? f->step_6 : step >= 4 ? f->step_4 : f->step_2;
    const bool gathered =
        winograd_is_dilated(s) || s->stride[1] > 1 || s->stride[2] > 1 || winograd_in_halves(s);
    const double each = plain + (gathered ? 1.5 * planes : 0);
    const double transform = each * tiles * transforms(s);
    if (sdx_winograd_digits_serve(s))
        return planes * tiles * sdx_gemm_f32_tiles_cost(winograd_depth(s), s->oc) +
               SDX_TILES_DIGITS * pairs / f->bytes + transform;
    return fmax(fmax(tiles, 4) * pairs / f->products, sizeof(float) * pairs / f->bytes) + transform;
}
/* Of transforms of filters in each run; digits are packed. */
static double cost_of_filters(const struct sdx_conv_shape *s, int form)
{
    if (sdx_winograd_digits_serve(s)) return 0;
    const int step = winograd_step(s, form);
    const int64_t tiles = tiles_of(s, form);
    const struct figures *f = figures();
    const double each = step == 6 ? f->filters_6 : step == 2 ? f->filters_2 : f->filters_4;
    const double blocks = tiles > late_tiles(s) ? 2 : 1;
    return is_late(s, step, tiles) ? blocks * each * (double)winograd_depth(s) * outputs(s) : 0;
}
/* Taps along an axis that lie in the image, of all outputs: the direct way leaves the others out.
 */
static double taps_met(const struct sdx_conv_shape *s, int axis)
{
    int64_t sum = 0;
    for (int64_t tap = 0; tap < s->kernel[axis]; tap++) {
        int64_t first, end;
        conv_valid(tap * s->dilation[axis] - s->pad_begin[axis], s->stride[axis], s->in[axis],
                   s->out[axis], &first, &end);
        sum += end - first;
    }
    return (double)sum;
}
/* Without Winograd, of `pixels` times `taps`. Pixels at a padded border are classes of their own,
 * in tiles of few pixels. */
static double cost_of_others(const struct sdx_conv_shape *s, double pixels, double taps,
                             bool padded)
{
    const struct figures *f = figures();
    const double pairs = (double)(s->ic * s->kernel[0]) * outputs(s);
    const double direct =
        fmax(taps * pixels / f->direct, taps * sizeof(float) / f->bytes) + (padded ? taps : 0);
    return fmin(direct * pairs, sdx_tiles_block_cost(s));
}
/* With stride 2, with the transforms of the filters of each block, on Zen 3. */
static double cost_of_phases(const struct sdx_conv_shape *s)
{
    const double high = (double)conv_divide_up(s->out[1], 3);
    const double tiles = high * (double)conv_divide_up(s->out[2], 3);
    const double ic = (double)winograd_depth(s), oc = (double)s->oc;
    const double products = 49 * fmax(tiles, 4) * ic * oc / 15.2;
    const double filters = 15 * ceil(tiles / PHASED_TILES) * ic * oc;
    return products + filters + tiles * (250 * ceil(ic / 8) + 70 * ceil(oc / 8));
}
/* Along an axis. */
static int line_fits(const struct sdx_conv_shape *s, int axis)
{
    const int other = 3 - axis;
    if (s->stride[0] != 1 || s->stride[other] != 1) return 0;
    if (s->stride[axis] > 1 && (s->dilation[axis] > 1 || winograd_line_taps(s) < 2)) return 0;
    if (s->in[other] != s->out[other] || s->pad_begin[other] != 0) return 0;
    if (s->winograd != 0) return s->winograd == 4 ? 4 : 0;
    const struct figures *f = figures();
    const double ic = (double)winograd_depth(s), oc = outputs(s);
    const double lines = (double)s->out[other];
    const double tiles = (double)winograd_tiles_along(s, axis, winograd_line_step(s)) * lines;
    const double others = cost_of_others(s, (double)s->out[axis] * lines, (double)s->kernel[axis],
                                         s->pad_begin[axis] > 0);
    /* wider vectors wait for memory for more of their time */
    const double bytes = f->bytes * f->lanes / sdx_kernel_tables()->block.lanes;
    const double planes = 5 + (double)winograd_depth_at_infinity(s) / ic;
    const double products = fmax(planes * fmax(tiles, 4) / f->products, 6 * sizeof(float) / bytes);
    const double transform = f->line * tiles * transforms(s);
    return products * ic * oc + transform < 0.97 * others ? 4 : 0;
}
/* Is U of F(6 x 6) in pieces small, or what it holds more than that of F(4 x 4) no more than twice
 * the images? */
static bool is_small(const struct sdx_conv_shape *s)
{
    const int64_t images =
        s->ic * s->in[0] * s->in[1] * s->in[2] + s->oc * s->out[0] * s->out[1] * s->out[2];
    const int64_t six = is_late(s, 6, tiles_of(s, 6)) ? 0 : bytes_of_u(s, 64);
    const int64_t four = is_late(s, 4, tiles_of(s, 4)) ? 0 : bytes_of_u(s, 36);
    return six <= SMALL_U || six - four <= 2 * images * (int64_t)sizeof(float);
}
int sdx_winograd_block_fits(const struct sdx_conv_shape *s)
{
    const int axis = axis_of(s);
    const bool flat = s->in[0] == 1 && s->out[0] == 1 && s->kernel[0] == 1 && s->pad_begin[0] == 0;
    if (axis < 0 || s->groups != 1 || s->winograd == 1) return 0;
    if (axis > 0) return flat ? line_fits(s, axis) : 0;
    const bool dilated = winograd_is_dilated(s), phased = winograd_is_phased(s);
    for (int i = 1; i < 3; i++) /* phases of one tap are direct */
        if (s->stride[i] > 1 && (dilated || s->kernel[i] <= s->stride[i])) return 0;
    if (s->winograd < 0) return 0;
    const bool in_twos = winograd_piece(s) == 2, in_pieces = winograd_pieces(s) > 1;
    if (s->winograd > 0)
        return (s->winograd == 3) == phased && (s->winograd == 4 || !in_twos) ? s->winograd : 0;
    const double pixels = (double)s->out[1] * (double)s->out[2];
    if (phased) {
        const double direct = 9 * pixels * (double)winograd_depth(s) * (double)s->oc / 14.9;
        return !isfinite(sdx_tiles_block_cost(s)) && cost_of_phases(s) < 0.92 * direct ? 3 : 0;
    }
    /* an only block that cannot be shared among threads, of work that was worth it */
    if (in_pieces && s->oc < 64 && is_late(s, 2, tiles_of(s, 2))) return 0;
    const double taps = (double)winograd_taps(s);
    const double others =
        cost_of_others(s, dilated ? taps_met(s, 1) * taps_met(s, 2) / taps : pixels, taps,
                       s->pad_begin[1] > 0 || s->pad_begin[2] > 0);
    const double six =
        in_twos || (in_pieces && !is_small(s)) ? INFINITY : cost_of(s, 6) + cost_of_filters(s, 6);
    const double four = cost_of(s, 4), two = in_twos ? INFINITY : cost_of(s, 2);
    const double own = fmin(four + cost_of_filters(s, 4), two + cost_of_filters(s, 2));
    if (own >= (dilated ? 0.9 : 0.97) * others) return 0;
    /* less exact, and from digits U is large, so only for a clear gain */
    if (six < 0.9 * fmin(four, two)) return 6;
    return four <= (sdx_winograd_digits_serve(s) ? 0.9 : 1) * two ? 4 : 2;
}

/* [chunk][plane][panel of two vectors, or one at the end][channel][output channel of the panel].
 * Late: [panel][channel][tap][output channel of the panel], the filters themselves. */
size_t sdx_winograd_block_packed_size(const struct sdx_conv_shape *s)
{
    const struct winograd_cut c = cut_of(s);
    if (c.late)
        return (size_t)(c.taps * c.depth * c.vectors * c.lanes) *
               (s->half != SDX_HALF_NONE ? sizeof(uint16_t) : sizeof(float));
    return (size_t)bytes_of_u(s, c.planes);
}
/* The piece of a filter that belongs to number `number` of the depth, as [taps][width]. */
static void gather_piece(const struct sdx_conv_shape *s, const sdx_weight_f32 *weights,
                         int64_t width, int64_t count, int64_t number, float *to)
{
    const int64_t pieces = winograd_pieces(s), across = winograd_pieces_across(s);
    const int64_t whole = winograd_channels(s), channel = number % whole;
    const int64_t piece = number / whole % pieces, plane = number / whole / pieces;
    const int64_t size = winograd_piece(s), down = winograd_apart(s, 1);
    const int64_t right = winograd_apart(s, 2), taps = winograd_taps(s);
    const int64_t row = s->ic * s->kernel[0] * taps;
    const int64_t top = winograd_first_tap(piece / across, size, down);
    const int64_t left = winograd_first_tap(piece % across, size, right);
    const int64_t rows = conv_least(size, conv_divide_up(s->kernel[1] - top, down));
    const int64_t columns = conv_least(size, conv_divide_up(s->kernel[2] - left, right));
    const int64_t pitch = s->kernel[2] > 1 ? size : 1; /* taps between rows of the piece */
    if (channel >= s->ic) return;
    weights += (channel * s->kernel[0] + plane) * taps + top * s->kernel[2] + left;
    /* what lies together at once: all of it, a row, a tap */
    const bool is_one = down == 1 && columns == s->kernel[2] && columns == pitch;
    const int64_t runs = is_one ? 1 : right == 1 ? rows : rows * columns;
    const int64_t in_row = right == 1 ? 1 : columns, taken = rows * columns / runs;
    for (int64_t i = 0; i < runs; i++)
        sdx_kernel_tables()->vec.b32_transpose(
            weights + i / in_row * down * s->kernel[2] + i % in_row * right, (size_t)row,
            (uint32_t *)to + (i / in_row * pitch + i % in_row) * width, (size_t)width,
            (size_t)count, (size_t)taken);
}
/* The filters of so many numbers of the depth, i0, i0 + apart ..., and output channels
 * k .. k + width - 1 as [number][taps][width], zeros beyond the output channels and the kernel. */
static void gather_filters(const struct sdx_conv_shape *s, const sdx_weight_f32 *weights, int64_t k,
                           int64_t width, int64_t i0, int64_t apart, int64_t channels, float *to)
{
    const int64_t taps = winograd_piece_taps(s), count = conv_least(width, s->oc - k);
    const int64_t row = s->ic * s->kernel[0] * winograd_taps(s);
    const bool is_whole =
        taps == winograd_taps(s) && winograd_pieces(s) == 1 && winograd_channels(s) == s->ic;
    if (count < width || !is_whole) memset(to, 0, (size_t)(taps * channels * width) * sizeof *to);
    if (is_whole && s->kernel[0] == 1 && apart == 1) {
        sdx_kernel_tables()->vec.b32_transpose(weights + k * row + i0 * taps, (size_t)row,
                                               (uint32_t *)to, (size_t)width, (size_t)count,
                                               (size_t)(channels * taps));
        return;
    }
    for (int64_t j = 0; j < channels; j++)
        gather_piece(s, weights + k * row, width, count, i0 + j * apart, to + j * taps * width);
}
void sdx_winograd_filters(const struct sdx_conv_shape *s, int step, const sdx_weight_f32 *weights,
                          int64_t k, int64_t width, int64_t i0, int64_t apart, int64_t channels,
                          float *u)
{
    const int taps = (int)winograd_piece_taps(s);
    float g[AT_ONCE * 9 * MOST_PANEL];
    gather_filters(s, weights, k, width, i0, apart, channels, g);
    sdx_kernel_tables()->block.f32_winograd_filters(step, taps, g, channels, width, u,
                                                    AT_ONCE * width);
}
/* A panel's `width` output channels from k on: plane p of channel i at to + p * plane + i * width.
 */
static void pack_panel(const struct sdx_conv_shape *s, const struct winograd_cut *c,
                       const sdx_weight_f32 *weights, int64_t k, int64_t width, float *to,
                       int64_t plane)
{
    float u[MOST_PLANES * AT_ONCE * MOST_PANEL];
    for (int64_t i = 0; i < c->depth; i += AT_ONCE, to += AT_ONCE * width) {
        const int64_t channels = conv_least(AT_ONCE, c->depth - i);
        sdx_winograd_filters(s, (int)c->step, weights, k, width, i, 1, channels, u);
        for (int64_t p = 0; p < c->planes; p++)
            memcpy(to + p * plane, u + p * AT_ONCE * width,
                   (size_t)(channels * width) * sizeof(float));
    }
}
/* The filters of vectors v0 .. v1 - 1 of output channels are read. */
static void note_piece(const struct sdx_conv_shape *s, const struct winograd_cut *c,
                       const sdx_weight_f32 *weights, int64_t v0, int64_t v1,
                       const struct sdx_pieces *pieces)
{
    const int64_t filter = s->ic * s->kernel[0] * s->kernel[1] * s->kernel[2];
    const int64_t o0 = v0 * c->lanes, o1 = conv_least(v1 * c->lanes, s->oc);
    if (pieces) pieces->done(pieces->user, weights + o0 * filter, (o1 - o0) * filter);
}
static void pack_late(const struct sdx_conv_shape *s, const sdx_weight_f32 *weights, void *packed,
                      const struct sdx_pieces *pieces)
{
    const struct winograd_cut c = cut_of(s);
    float g[AT_ONCE * 9 * MOST_PANEL];
    for (int64_t v = 0; v < c.vectors; v += 2) {
        const int64_t width = conv_least(2, c.vectors - v) * c.lanes, row = c.taps * width;
        const int64_t panel = c.taps * c.depth * v * c.lanes;
        if (s->half == SDX_HALF_NONE)
            gather_filters(s, weights, v * c.lanes, width, 0, 1, c.depth, (float *)packed + panel);
        for (int64_t i = 0; s->half != SDX_HALF_NONE && i < c.depth; i += AT_ONCE) {
            const int64_t channels = conv_least(AT_ONCE, c.depth - i);
            gather_filters(s, weights, v * c.lanes, width, i, 1, channels, g);
            sdx_half_encode(s->half, g, (uint16_t *)packed + panel + i * row, channels * row);
        }
        note_piece(s, &c, weights, v, v + 2, pieces);
    }
}
void sdx_winograd_block_pack(const struct sdx_conv_shape *s, const sdx_weight_f32 *weights,
                             void *packed_, const struct sdx_pieces *pieces)
{
    const struct winograd_cut c = cut_of(s);
    float *packed = packed_;
    if (c.late) {
        pack_late(s, weights, packed, pieces);
        return;
    }
    for (int64_t v0 = 0; v0 < c.vectors; v0 += c.chunk) {
        const int64_t count = conv_least(c.chunk, c.vectors - v0);
        const int64_t plane = count * c.lanes * c.depth;
        for (int64_t v = 0; v < count; v += 2) {
            const int64_t width = conv_least(2, count - v) * c.lanes;
            pack_panel(s, &c, weights, (v0 + v) * c.lanes, width, packed + v * c.lanes * c.depth,
                       plane);
        }
        packed += c.planes * plane;
        note_piece(s, &c, weights, v0, v0 + count, pieces);
    }
}

int64_t sdx_winograd_block_parts(const struct sdx_conv_shape *s)
{
    const struct winograd_cut c = cut_of(s);
    return c.blocks * c.splits;
}
int64_t sdx_winograd_block_together(const struct sdx_conv_shape *s)
{
    const struct winograd_cut c = cut_of(s);
    return c.phases > 1 ? 1 : c.splits; /* with phases V is made anew, and M holds one */
}
size_t sdx_winograd_block_scratch(const struct sdx_conv_shape *s)
{
    const struct winograd_cut c = cut_of(s);
    int64_t floats = c.planes * (c.plane_v + c.plane_m);
    if (c.late) {
        floats += c.planes * (2 * c.lanes * c.pass * c.phases + GAP);
        if (s->half != SDX_HALF_NONE) floats += c.taps * 2 * c.lanes * c.pass;
    }
    return (size_t)floats * sizeof(float);
}
/* M of a panel of `vectors` from vector k0 on and of the input channels in hand, whose U is made in
 * u; next: the filters after these. */
static void multiply_pass(struct sdx_winograd_block *w, const struct winograd_cut *c,
                          const float *filters, const float *next, int64_t vectors, const float *v,
                          float *m, float *u)
{
    const struct sdx_conv_block_table *table = &sdx_kernel_tables()->block;
    const enum sdx_half half = w->shape->half;
    const int64_t width = vectors * c->lanes, numbers = c->taps * width * w->channels;
    float *decoded = u + c->planes * (2 * c->lanes * c->pass * c->phases + GAP);
    w->gap_u = GAP;
    if (half != SDX_HALF_NONE) {
        sdx_half_decode(half, (const uint16_t *)(const void *)filters, decoded, numbers);
        filters = decoded;
    } else
        w->ahead = next;
    table->f32_winograd_filters(w->step, c->taps, filters, w->channels, width, u,
                                w->channels * width * c->phases + GAP);
    table->f32_winograd_multiply(w, v, u, vectors, m);
}
/* Late filters of input channel i and the panel from vector k0 on. */
static const void *filters_at(const struct sdx_conv_shape *s, const struct winograd_cut *c,
                              const void *packed, int64_t k0, int64_t i)
{
    const int64_t at = c->taps * c->lanes * (c->depth * k0 + i * conv_least(2, c->vectors - k0));
    return (const char *)packed + at * (int64_t)(s->half != SDX_HALF_NONE ? 2 : 4);
}
/* M of a panel: for so many input channels at once that U stays in the second cache until it is
 * used. */
static void multiply_late(struct sdx_winograd_block *w, const struct winograd_cut *c,
                          const void *packed, int64_t k0, int64_t vectors, const float *v, float *m,
                          float *u)
{
    const struct sdx_conv_shape *s = w->shape;
    const int64_t rows = sdx_kernel_tables()->block.winograd_rows;
    for (w->from = 0; w->from < c->depth; w->from += c->pass) {
        w->channels = conv_least(c->pass, c->depth - w->from);
        multiply_pass(w, c, filters_at(s, c, packed, k0, w->from),
                      filters_at(s, c, packed, k0, w->from + w->channels), vectors,
                      v + w->from * rows, m, u);
    }
}
/* The vectors k0 .. k1 in passes: V has but the input channels in hand, M all these vectors. */
static void run_passes(struct sdx_winograd_block *w, const struct winograd_cut *c, const float *x,
                       const void *packed, int64_t k0, int64_t k1,
                       const struct sdx_epilogue *epilogue, float *v, float *m, float *u, float *y)
{
    const struct sdx_conv_block_table *table = &sdx_kernel_tables()->block;
    const struct sdx_conv_shape *s = w->shape;
    for (w->from = 0; w->from < c->depth; w->from += c->pass) {
        w->channels = conv_least(c->pass, c->depth - w->from);
        table->f32_winograd_in(w, x, v);
        for (int64_t k = k0; k < k1; k += c->chunk) {
            const int64_t vectors = conv_least(c->chunk, k1 - k), then = k + vectors;
            const void *next = then < k1 ? filters_at(s, c, packed, then, w->from)
                                         : filters_at(s, c, packed, k0, w->from + w->channels);
            multiply_pass(w, c, filters_at(s, c, packed, k, w->from), next, vectors, v,
                          m + (k - k0) * c->lanes * w->room, u);
        }
    }
    table->f32_winograd_out(w, m, k0, k1, epilogue, y);
}
/* Does U come from beyond the second cache, as it is? */
static bool streams(const struct sdx_conv_shape *s, const struct winograd_cut *c)
{
    return !c->late && bytes_of_u(s, c->planes) > sdx_kernel_tuning()->a_bytes;
}
/* Is V read from beyond the second cache: again for every panel, or too much for what lies behind
 * it to follow? */
static bool is_far(const struct winograd_cut *c)
{
    const int64_t bytes = c->planes * c->plane_v * (int64_t)sizeof(float);
    return bytes > (c->late ? 1 : 4) * sdx_kernel_tuning()->a_bytes;
}
/* A block to the output channels of parts `first` .. last - 1 of it. */
static void run_block(const struct sdx_conv_shape *s, const struct winograd_cut *c, const float *x,
                      const void *packed, float *y, const struct sdx_epilogue *epilogue,
                      int64_t block, int64_t first, int64_t last, void *scratch)
{
    const struct sdx_conv_block_table *table = &sdx_kernel_tables()->block;
    float *v = scratch, *m = v + c->planes * c->plane_v, *u = m + c->planes * c->plane_m;
    struct sdx_winograd_block w = {.shape = s,
                                   .step = (int)c->step,
                                   .axis = c->axis,
                                   .high = c->high,
                                   .wide = c->wide,
                                   .first = block * c->block,
                                   .room = c->block,
                                   .planes = (int)c->planes,
                                   .channels = c->depth,
                                   .streams = streams(s, c),
                                   .far = is_far(c),
                                   .plane_v = c->plane_v,
                                   .plane_m = c->plane_m,
                                   .group_v = c->group_v,
                                   .group = table->winograd_rows,
                                   .tile_v = c->lanes,
                                   .block_v = table->winograd_rows * c->lanes};
    w.tiles = conv_least(c->block, c->tiles - w.first);
    const int64_t begin = c->chunks * first / c->splits, end = c->chunks * last / c->splits;
    if (c->in_passes) {
        run_passes(&w, c, x, packed, begin * c->chunk, conv_least(c->vectors, end * c->chunk),
                   epilogue, v, m, u, y);
        return;
    }
    table->f32_winograd_in(&w, x, v);
    for (int64_t i = begin; i < end; i++) {
        const int64_t k0 = i * c->chunk, k1 = conv_least(c->vectors, k0 + c->chunk);
        if (c->late)
            multiply_late(&w, c, packed, k0, k1 - k0, v, m, u);
        else
            table->f32_winograd_multiply(
                &w, v, (const float *)packed + c->planes * k0 * c->lanes * c->depth, k1 - k0, m);
        table->f32_winograd_out(&w, m, k0, k1, epilogue, y);
    }
}
void sdx_winograd_block_run(const struct sdx_conv_shape *s, const float *x, const void *packed,
                            float *y, const struct sdx_epilogue *epilogue, int64_t part,
                            int64_t end, void *scratch)
{
    const struct winograd_cut c = cut_of(s);
    for (int64_t next; part < end; part = next) {
        const int64_t block = part / c.splits, first = block * c.splits;
        next = c.phases > 1 ? part + 1 : conv_least(first + c.splits, end);
        run_block(s, &c, x, packed, y, epilogue, block, part - first, next - first, scratch);
    }
}
