/* SPDX-License-Identifier: Apache-2.0
 * Winograd's products from digits. A block of tiles of the image is transformed in groups, which
 * are the rows of a tile of A; each group's V is brought into digits, plane by plane, while it is
 * in the second cache. Then each plane's product, for which U is read in order, goes to M, and the
 * inverse transforms are the output. Parts are ranges of tiles, or of output channels where tiles
 * are few; neighbours in one call read U, or make V, once. */
#include "kernels/conv_block_winograd_digits.h"

#include <string.h>

#include "kernels/conv_block_winograd.h"
#include "kernels/conv_gather.h"
#include "kernels/gemm_tiles.h"
#include "kernels/tables.h"
#include "kernels/tuning.h"

enum {
    GAP = 16, /* floats between planes: their lines shall not share a set of the cache */
    MOST_PLANES = 64,
    MOST_TILES = 192,     /* of a block whose V does not stay in the second cache, */
    MOST_BYTES = 8 << 20, /* and of its V and M */
    PART_TILES = 32,
    PART_PANELS = 2,
    EVEN = 16 /* parts, of which one more is much for a thread */
};

struct cut {
    int64_t step, planes, depth, vectors, panels;
    int64_t high, wide, tiles;         /* of a plane of an image, and of all */
    int64_t block;                     /* most tiles of one */
    int64_t parts, together;           /* ranges of tiles, or, */
    bool by_panels;                    /* of panels */
    int64_t group_plane;               /* floats of V of a group */
    int64_t bytes_a, plane_a, panel_b; /* bytes */
    int64_t plane_m;                   /* floats */
};
static struct cut cut_of(const struct sdx_conv_shape *s)
{
    const int64_t lanes = sdx_kernel_tables()->block.lanes;
    const int step = winograd_step(s, sdx_winograd_block_fits(s));
    struct cut c = {.step = step,
                    .planes = winograd_side(step) * winograd_side(step),
                    .depth = winograd_depth(s),
                    .vectors = conv_divide_up(s->oc, lanes),
                    .panels = conv_divide_up(s->oc, SDX_TILES_WIDTH),
                    .high = winograd_tiles_along(s, 1, step),
                    .wide = winograd_tiles_along(s, 2, step)};
    c.tiles = s->batch * s->out[0] * c.high * c.wide;
    c.bytes_a = sdx_tiles_bytes_a(c.depth);
    c.panel_b = sdx_tiles_bytes_b(c.depth);
    /* What stays in the second cache; of many channels more, as U comes from memory. */
    const int64_t row =
        c.bytes_a / SDX_TILES_HEIGHT + c.panels * SDX_TILES_WIDTH * (int64_t)sizeof(float);
    const int64_t fit = 3 * sdx_kernel_tuning()->a_bytes / (c.planes * row);
    const int64_t more = conv_least(conv_least(c.depth, MOST_TILES), MOST_BYTES / (c.planes * row));
    const int64_t want = conv_most(conv_most(fit, more), PART_TILES);
    const int64_t blocks = conv_most((c.tiles + want / 2) / want, 1);
    /* Several calls read U as often, or make V. */
    c.by_panels = c.tiles < conv_most(PART_TILES, s->oc / 4);
    c.parts =
        c.by_panels ? conv_divide_up(c.panels, PART_PANELS) : conv_divide_up(c.tiles, PART_TILES);
    c.parts = conv_even(c.parts, EVEN);
    c.together = c.by_panels ? c.parts : conv_divide_up(c.parts, blocks);
    c.block = c.by_panels ? conv_divide_up(c.tiles, blocks)
                          : c.together * conv_divide_up(c.tiles, conv_most(c.parts, 1));
    c.group_plane = SDX_TILES_HEIGHT * conv_divide_up(c.depth, lanes) * lanes + GAP;
    c.plane_a = sdx_tiles_of(c.block) * c.bytes_a;
    c.plane_m = c.panels * SDX_TILES_WIDTH * c.block + GAP;
    return c;
}

bool sdx_winograd_digits_serve(const struct sdx_conv_shape *s)
{
    return sdx_kernel_tables()->gemm.f32_tiles && s->half == SDX_HALF_NONE && s->kernel[1] > 1 &&
           s->kernel[2] > 1 && s->stride[1] == 1 && s->stride[2] == 1 &&
           winograd_depth(s) <= SDX_TILES_MOST_K &&
           sdx_gemm_f32_tiles_pay(winograd_depth(s), s->oc);
}
bool sdx_winograd_digits_fits(const struct sdx_conv_shape *s)
{
    return sdx_winograd_digits_serve(s) && sdx_winograd_block_fits(s);
}

/* [plane][panel] */
size_t sdx_winograd_digits_packed_size(const struct sdx_conv_shape *s)
{
    const struct cut c = cut_of(s);
    return (size_t)(c.planes * c.panels * c.panel_b);
}
/* Output channels k .. k + 31. The scales of the columns come first, so the filters are transformed
 * twice. */
static void pack_panel(const struct sdx_conv_shape *s, const struct cut *c,
                       const sdx_weight_f32 *weights, int64_t k, char *to)
{
    enum { MANY = SDX_WINOGRAD_FILTERS, ROWS = MANY * SDX_TILES_WIDTH };
    enum { LANES = SDX_TILES_CHUNK / MANY }; /* so far apart are the channels of a row of a tile */
    const struct sdx_gemm_table *table = &sdx_kernel_tables()->gemm;
    const int64_t plane = c->panels * c->panel_b;
    float u[MOST_PLANES * ROWS], by[MOST_PLANES * SDX_TILES_WIDTH];
    memset(by, 0, sizeof by);
    for (int64_t i = 0; i < c->depth; i += MANY) {
        const int64_t channels = conv_least(MANY, c->depth - i);
        sdx_winograd_filters(s, (int)c->step, weights, k, SDX_TILES_WIDTH, i, 1, channels, u);
        for (int64_t p = 0; p < c->planes; p++)
            table->f32_tile_b_sizes(u + p * ROWS, channels, by + p * SDX_TILES_WIDTH);
    }
    for (int64_t p = 0; p < c->planes; p++)
        table->f32_tile_b_scales(by + p * SDX_TILES_WIDTH, c->depth, to + p * plane);
    for (int64_t row = 0; row < sdx_tiles_chunks(c->depth) * LANES; row++) {
        const int64_t i = row / LANES * SDX_TILES_CHUNK + row % LANES;
        const int64_t left = conv_divide_up(c->depth - i, LANES);
        const int64_t channels = conv_most(conv_least(MANY, left), 0);
        if (channels > 0)
            sdx_winograd_filters(s, (int)c->step, weights, k, SDX_TILES_WIDTH, i, LANES, channels,
                                 u);
        for (int64_t p = 0; p < c->planes; p++)
            table->f32_tile_b_rows(u + p * ROWS, channels, by + p * SDX_TILES_WIDTH, i,
                                   to + p * plane);
    }
}
void sdx_winograd_digits_pack(const struct sdx_conv_shape *s, const sdx_weight_f32 *weights,
                              void *packed, const struct sdx_pieces *pieces)
{
    (void)pieces;
    const struct cut c = cut_of(s);
    for (int64_t i = 0; i < c.panels; i++)
        pack_panel(s, &c, weights, i * SDX_TILES_WIDTH, (char *)packed + i * c.panel_b);
}

int64_t sdx_winograd_digits_parts(const struct sdx_conv_shape *s)
{
    return cut_of(s).parts;
}
int64_t sdx_winograd_digits_together(const struct sdx_conv_shape *s)
{
    return cut_of(s).together;
}
/* V in digits, then M, which takes the place of a group's V. */
size_t sdx_winograd_digits_scratch(const struct sdx_conv_shape *s)
{
    const struct cut c = cut_of(s);
    const int64_t floats = c.planes * conv_most(c.plane_m, c.group_plane);
    return (size_t)(c.planes * c.plane_a) + (size_t)floats * sizeof(float);
}

/* The rows of A of all tiles of a block. */
static void digits_in(const struct cut *c, int64_t height, struct sdx_winograd_block w,
                      const float *x, float *v, char *a)
{
    const struct sdx_kernel_tables *tables = sdx_kernel_tables();
    const int64_t end = w.first + w.tiles;
    for (; w.first < end; w.first += height, a += c->bytes_a) {
        w.tiles = conv_least(height, end - w.first);
        tables->block.f32_winograd_in(&w, x, v);
        for (int64_t p = 0; p < c->planes; p++)
            tables->gemm.f32_tile_a(v + p * w.plane_v, w.tile_v, w.tiles, height, c->depth,
                                    a + p * c->plane_a);
    }
}
/* The block w, to the output channels of panels j0 .. j1. */
static void run_block(const struct cut *c, const struct sdx_winograd_block *w, const float *x,
                      const void *packed, float *y, const struct sdx_epilogue *epilogue, int64_t j0,
                      int64_t j1, void *scratch)
{
    const struct sdx_kernel_tables *tables = sdx_kernel_tables();
    const int64_t lanes = tables->block.lanes;
    const int64_t k0 = j0 * SDX_TILES_WIDTH / lanes;
    const int64_t k1 = conv_least(j1 * SDX_TILES_WIDTH / lanes, c->vectors);
    char *a = scratch;
    float *m = (void *)(a + c->planes * c->plane_a);
    struct sdx_gemm_tiles g = {.job = {.m = w->tiles,
                                       .n = (k1 - k0) * lanes,
                                       .k = c->depth,
                                       .row_c = SDX_TILES_WIDTH,
                                       .last = true,
                                       .alpha = 1.0f},
                               .height = sdx_tiles_height(w->tiles),
                               .half_c = lanes,
                               .panel_c = SDX_TILES_WIDTH * w->room};
    digits_in(c, g.height, *w, x, m, a);
    for (int64_t p = 0; p < c->planes; p++) {
        g.job.c = m + p * c->plane_m;
        g.a = a + p * c->plane_a;
        g.b = (const char *)packed + (p * c->panels + j0) * c->panel_b;
        tables->gemm.f32_tiles(&g);
    }
    tables->block.f32_winograd_out(w, m, k0, k1, epilogue, y);
}
void sdx_winograd_digits_run(const struct sdx_conv_shape *s, const float *x, const void *packed,
                             float *y, const struct sdx_epilogue *epilogue, int64_t part,
                             int64_t end, void *scratch)
{
    const struct cut c = cut_of(s);
    const int64_t lanes = sdx_kernel_tables()->block.lanes;
    const int64_t j0 = c.by_panels ? conv_share(c.panels, part, c.parts) : 0;
    const int64_t j1 = c.by_panels ? conv_share(c.panels, end, c.parts) : c.panels;
    const int64_t first = c.by_panels ? 0 : conv_share(c.tiles, part, c.parts);
    const int64_t last = c.by_panels ? c.tiles : conv_share(c.tiles, end, c.parts);
    const int64_t blocks = conv_divide_up(last - first, c.block);
    struct sdx_winograd_block w = {.shape = s,
                                   .step = (int)c.step,
                                   .high = c.high,
                                   .wide = c.wide,
                                   .room = c.block,
                                   .planes = (int)c.planes,
                                   .channels = c.depth,
                                   .plane_v = c.group_plane,
                                   .plane_m = c.plane_m,
                                   .group = SDX_TILES_HEIGHT,
                                   .tile_v = conv_divide_up(c.depth, lanes) * lanes,
                                   .block_v = lanes};
    for (int64_t i = 0; i < blocks; i++) {
        w.first = first + conv_share(last - first, i, blocks);
        w.tiles = first + conv_share(last - first, i + 1, blocks) - w.first;
        run_block(&c, &w, x, packed, y, epilogue, j0, j1, scratch);
    }
}
