/* SPDX-License-Identifier: Apache-2.0
 * Forms of the convolution over blocked channels, and the reorders to and from plain layout. */
#include "kernels/conv_block.h"

#include "kernels/conv_block_depthwise.h"
#include "kernels/conv_block_direct.h"
#include "kernels/conv_block_group.h"
#include "kernels/conv_block_spans.h"
#include "kernels/conv_block_tiles.h"
#include "kernels/conv_block_winograd.h"
#include "kernels/conv_block_winograd_digits.h"
#include "kernels/conv_gather.h"
#include "kernels/flush.h"

static bool is_winograd(const struct sdx_conv_shape *s)
{
    return sdx_winograd_block_fits(s) != 0;
}
static bool is_first(const struct sdx_conv_shape *s)
{
    return sdx_direct_block_fits(s) && sdx_direct_block_is_first(s);
}

/* The first row that fits is taken. */
static const struct form {
    enum sdx_conv_block_form form;
    bool (*fits)(const struct sdx_conv_shape *s);
    size_t (*packed_size)(const struct sdx_conv_shape *s);
    /* NULL: with scratch memory */
    void (*pack)(const struct sdx_conv_shape *s, const sdx_weight_f32 *weights, void *packed,
                 const struct sdx_pieces *pieces);
    int64_t (*parts)(const struct sdx_conv_shape *s);
    size_t (*scratch)(const struct sdx_conv_shape *s);
    /* either parts that cost the same alone, or neighbours in one call */
    void (*part)(const struct sdx_conv_shape *s, const float *x, const void *packed, float *y,
                 const struct sdx_epilogue *epilogue, int64_t part, void *scratch);
    void (*run)(const struct sdx_conv_shape *s, const float *x, const void *packed, float *y,
                const struct sdx_epilogue *epilogue, int64_t part, int64_t end, void *scratch);
    int64_t (*together)(const struct sdx_conv_shape *s);
} forms[] = {
    {SDX_CONV_BLOCK_FIRST, is_first, sdx_direct_block_packed_size, sdx_direct_block_pack,
     sdx_direct_block_parts, sdx_direct_block_scratch, sdx_direct_block_part, NULL, NULL},
    {SDX_CONV_BLOCK_DEPTHWISE, sdx_depthwise_block_fits, sdx_depthwise_block_packed_size,
     sdx_depthwise_block_pack, sdx_depthwise_block_parts, sdx_depthwise_block_scratch,
     sdx_depthwise_block_part, NULL, NULL},
    {SDX_CONV_BLOCK_TILES, sdx_tiles_block_fits, sdx_tiles_block_packed_size, sdx_tiles_block_pack,
     sdx_tiles_block_parts, sdx_tiles_block_scratch, NULL, sdx_tiles_block_run,
     sdx_tiles_block_together},
    {SDX_CONV_BLOCK_WINOGRAD_4 /* or another tile */, sdx_winograd_digits_fits,
     sdx_winograd_digits_packed_size, sdx_winograd_digits_pack, sdx_winograd_digits_parts,
     sdx_winograd_digits_scratch, NULL, sdx_winograd_digits_run, sdx_winograd_digits_together},
    {SDX_CONV_BLOCK_WINOGRAD_4 /* or another tile */, is_winograd, sdx_winograd_block_packed_size,
     sdx_winograd_block_pack, sdx_winograd_block_parts, sdx_winograd_block_scratch, NULL,
     sdx_winograd_block_run, sdx_winograd_block_together},
    {SDX_CONV_BLOCK_GROUP, sdx_group_block_fits, sdx_group_block_packed_size, sdx_group_block_pack,
     sdx_group_block_parts, sdx_group_block_scratch, sdx_group_block_part, NULL, NULL},
    {SDX_CONV_BLOCK_SPANS, sdx_spans_block_fits, sdx_spans_block_packed_size, NULL,
     sdx_spans_block_parts, sdx_spans_block_scratch, NULL, sdx_spans_block_run,
     sdx_spans_block_together},
    {SDX_CONV_BLOCK_DIRECT, sdx_direct_block_fits, sdx_direct_block_packed_size,
     sdx_direct_block_pack, sdx_direct_block_parts, sdx_direct_block_scratch, sdx_direct_block_part,
     NULL, NULL},
};

static const struct form *form_of(const struct sdx_conv_shape *s)
{
    if (s->batch * s->oc * s->out[0] * s->out[1] * s->out[2] == 0) return NULL;
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++)
        if (forms[i].fits(s)) return &forms[i];
    return NULL;
}

enum sdx_conv_block_form sdx_conv_block_form(const struct sdx_conv_shape *s)
{
    const struct form *form = form_of(s);
    if (!form) return SDX_CONV_BLOCK_NONE;
    if (form->form != SDX_CONV_BLOCK_WINOGRAD_4) return form->form;
    const int tile = sdx_winograd_block_fits(s);
    if (!winograd_is_plane(s)) return SDX_CONV_BLOCK_WINOGRAD_LINE;
    return tile == 6   ? SDX_CONV_BLOCK_WINOGRAD_6
           : tile == 4 ? SDX_CONV_BLOCK_WINOGRAD_4
           : tile == 3 ? SDX_CONV_BLOCK_WINOGRAD_3
                       : SDX_CONV_BLOCK_WINOGRAD_2;
}
int sdx_conv_block_winograd(const struct sdx_conv_shape *s)
{
    const int tile = sdx_tiles_block_fits(s) ? 1 : sdx_winograd_block_fits(s);
    if (sdx_conv_block_form(s) == SDX_CONV_BLOCK_SPANS) return sdx_spans_block_ways(s);
    return tile ? tile : -1;
}
size_t sdx_conv_block_packed_size(const struct sdx_conv_shape *s)
{
    return form_of(s)->packed_size(s);
}
size_t sdx_conv_block_pack_scratch(const struct sdx_conv_shape *s)
{
    return form_of(s)->pack ? 0 : sdx_spans_block_pack_scratch(s);
}
void sdx_conv_block_pack(const struct sdx_conv_shape *s, const sdx_weight_f32 *weights,
                         void *packed, void *scratch, const struct sdx_pieces *pieces)
{
    const struct form *form = form_of(s);
    if (form->pack)
        form->pack(s, weights, packed, pieces);
    else
        sdx_spans_block_pack(s, weights, packed, scratch);
}
int64_t sdx_conv_block_parts(const struct sdx_conv_shape *s)
{
    return form_of(s)->parts(s);
}
size_t sdx_conv_block_scratch(const struct sdx_conv_shape *s)
{
    return form_of(s)->scratch(s);
}
int64_t sdx_conv_block_together(const struct sdx_conv_shape *s)
{
    const struct form *form = form_of(s);
    return form->together ? form->together(s) : 1;
}
void sdx_conv_block_run(const struct sdx_conv_shape *s, const float *x, const void *packed,
                        float *y, const struct sdx_epilogue *epilogue, int64_t part, int64_t end,
                        void *scratch)
{
    const struct form *form = form_of(s);
    const unsigned before = sdx_flush_begin();
    if (form->run)
        form->run(s, x, packed, y, epilogue, part, end, scratch);
    else
        for (; part < end; part++)
            form->part(s, x, packed, y, epilogue, part, scratch);
    sdx_flush_end(before);
}

int64_t sdx_block_lanes(void)
{
    return sdx_kernel_tables()->block.lanes;
}
void sdx_block_from_plain(const float *plain, float *blocked, int64_t channels, int64_t pixels,
                          int64_t row0, int64_t row1, int64_t p0, int64_t p1)
{
    const struct sdx_conv_block_table *table = &sdx_kernel_tables()->block;
    const int64_t lanes = table->lanes, blocks = conv_divide_up(channels, lanes);
    for (int64_t row = row0; row < row1; row++) {
        const int64_t image = row / blocks, c = (row - image * blocks) * lanes;
        table->f32_from_plain(plain + (image * channels + c) * pixels + p0, pixels,
                              conv_least(lanes, channels - c), p1 - p0,
                              blocked + (row * pixels + p0) * lanes);
    }
}
void sdx_block_to_plain(const float *blocked, float *plain, int64_t channels, int64_t pixels,
                        int64_t row0, int64_t row1, int64_t p0, int64_t p1)
{
    const struct sdx_conv_block_table *table = &sdx_kernel_tables()->block;
    const int64_t lanes = table->lanes, blocks = conv_divide_up(channels, lanes);
    for (int64_t row = row0; row < row1; row++) {
        const int64_t image = row / blocks, c = (row - image * blocks) * lanes;
        table->f32_to_plain(blocked + (row * pixels + p0) * lanes, conv_least(lanes, channels - c),
                            p1 - p0, plain + (image * channels + c) * pixels + p0, pixels);
    }
}
