/* SPDX-License-Identifier: Apache-2.0
 * Integer convolution on 16-bit values less their zero points, so that padding is 0: weights
 * [channel, K] by image panels gathered like those of conv_f32.c. One input channel a group:
 * directly.
 */
#include <string.h>

#include "kernels/conv_gather.h"
#include "kernels/qgemm.h"
#include "kernels/tables.h"
#include "kernels/tuning.h"

static const struct sdx_qgemm_table *table_now(void)
{
    return &sdx_kernel_tables()->qconv;
}
static int64_t pairs_of(int64_t k)
{
    return (k + 1) / 2;
}

struct cut {
    int64_t block_pixels, blocks, block_channels, splits;
    int64_t rows; /* channels whose sums are held at a time */
};
static struct cut cut_of(const struct sdx_conv_shape *s)
{
    const struct sdx_kernel_tuning *t = sdx_kernel_tuning();
    const struct sdx_qgemm_table *table = table_now();
    const struct conv_sizes z = conv_sizes(s);
    const int64_t pixels = conv_most(1, z.pixels), cols = table->cols;
    int64_t fit = t->conv_bytes / (conv_most(1, pairs_of(z.k)) * 4) / cols * cols;
    fit = conv_most(cols, conv_least(fit, t->conv_pixels));
    struct cut c = {.blocks = conv_divide_up(pixels, fit)};
    c.block_pixels = conv_divide_up(conv_divide_up(pixels, c.blocks), cols) * cols;
    c.blocks = conv_divide_up(pixels, c.block_pixels);
    const int64_t parts = s->batch * s->groups * c.blocks;
    c.splits = 1;
    if (parts > 0 && parts < t->conv_parts)
        c.splits =
            conv_least(conv_divide_up(t->conv_parts, parts), conv_most(1, z.ocg / t->conv_rows));
    c.block_channels = conv_divide_up(conv_divide_up(z.ocg, c.splits), table->rows) * table->rows;
    c.splits = conv_divide_up(conv_most(1, z.ocg), c.block_channels);
    c.rows = t->a_bytes / (conv_most(1, pairs_of(z.k)) * 4) / table->rows;
    c.rows = conv_most(1, conv_least(c.rows, 4)) * table->rows;
    return c;
}
/* Channels and pixels of a part of the direct form. */
static int64_t direct_channels(const struct sdx_conv_shape *s)
{
    const struct conv_sizes z = conv_sizes(s);
    const int64_t macs = conv_most(1, z.pixels * z.taps);
    return conv_least(conv_most(1, s->oc), conv_divide_up(sdx_kernel_tuning()->part_macs, macs));
}

size_t sdx_qconv_packed_size(const struct sdx_qconv *q)
{
    const struct conv_sizes z = conv_sizes(&q->shape);
    return (size_t)(q->shape.oc * pairs_of(z.k)) * sizeof(int32_t);
}
void sdx_qconv_pack(const struct sdx_qconv *q, const void *weights, void *packed)
{
    const struct sdx_qgemm_table *t = table_now();
    const struct conv_sizes z = conv_sizes(&q->shape);
    int16_t *to = packed;
    for (int64_t i = 0; i < q->shape.oc; i++, to += 2 * pairs_of(z.k)) {
        if (z.k) to[2 * pairs_of(z.k) - 1] = 0;
        t->widen((const char *)weights + i * z.k, q->w_signed, 1, z.k, q->zero_w ? q->zero_w[i] : 0,
                 to);
    }
}
int64_t sdx_qconv_parts(const struct sdx_qconv *q)
{
    const struct sdx_conv_shape *s = &q->shape;
    if (conv_is_direct(s)) return s->batch * conv_divide_up(s->oc, direct_channels(s));
    const struct cut c = cut_of(s);
    return s->batch * s->groups * c.blocks * c.splits;
}
size_t sdx_qconv_scratch(const struct sdx_qconv *q)
{
    const struct sdx_conv_shape *s = &q->shape;
    if (conv_is_direct(s)) return (size_t)conv_sizes(s).pixels * sizeof(int32_t);
    const struct cut c = cut_of(s);
    const int64_t panels = pairs_of(conv_sizes(s).k) * c.block_pixels;
    return (size_t)(panels + c.rows * c.block_pixels + c.block_pixels) * sizeof(int32_t);
}

static void gather_line(const struct sdx_qconv *q, const struct conv_line *line,
                        const struct conv_tap *tap, const uint8_t *channel, int16_t *to)
{
    memset(to, 0, (size_t)(line->end - line->from) * sizeof(int16_t));
    struct conv_walk w = conv_walk(&q->shape, line, tap);
    while (conv_walk_next(&q->shape, &w))
        if (w.found.rows > 0)
            table_now()->widen_rows(channel + w.offset, q->x_signed, q->zero_x, to + w.to, w.found);
}
static void gather(const struct sdx_qconv *q, const uint8_t *x, int64_t p0, int64_t p1,
                   int32_t *panels, int16_t *lines)
{
    const struct sdx_qgemm_table *t = table_now();
    const struct conv_sizes z = conv_sizes(&q->shape);
    const int64_t count = p1 - p0;
    const struct conv_line line = conv_line(&q->shape, p0, p1);
    struct conv_tap tap = conv_tap(&q->shape, 0);
    int16_t *second = lines + count;
    for (int64_t k = 0; k < z.k; k += 2) {
        gather_line(q, &line, &tap, x + tap.channel * z.pixels_in, lines);
        conv_tap_next(&q->shape, &tap);
        if (k + 1 < z.k)
            gather_line(q, &line, &tap, x + tap.channel * z.pixels_in, second);
        else
            memset(second, 0, (size_t)count * sizeof(int16_t));
        conv_tap_next(&q->shape, &tap);
        t->deal(lines, second, count, panels + k / 2 * t->cols, pairs_of(z.k) * t->cols);
    }
}

static void part_direct(const struct sdx_qconv *q, const uint8_t *x, const int16_t *weights,
                        int64_t part, int32_t *sums, sdx_qconv_store_fn store, void *arg)
{
    const struct sdx_conv_shape *s = &q->shape;
    const struct conv_sizes z = conv_sizes(s);
    const int64_t block = direct_channels(s), blocks = conv_divide_up(s->oc, block);
    const int64_t image = part / blocks, c0 = part % blocks * block;
    if (z.pixels == 0) return;
    const struct conv_line line = conv_line(s, 0, z.pixels);
    for (int64_t c = c0; c < conv_least(s->oc, c0 + block); c++) {
        const uint8_t *from = x + (image * s->ic + c / z.ocg) * z.pixels_in;
        memset(sums, 0, (size_t)z.pixels * sizeof(int32_t));
        struct conv_tap tap = conv_tap(s, 0);
        for (int64_t k = 0; k < z.taps; k++, conv_tap_next(s, &tap)) {
            struct conv_walk w = conv_walk(s, &line, &tap);
            while (conv_walk_next(s, &w))
                if (w.found.rows > 0)
                    table_now()->axpy_rows(weights[c * 2 * pairs_of(z.k) + k], from + w.offset,
                                           q->x_signed, q->zero_x, sums + w.to, w.found);
        }
        store(arg, image, c, 0, z.pixels, sums);
    }
}

void sdx_qconv_part(const struct sdx_qconv *q, const void *x, const void *packed, int64_t part,
                    void *scratch, sdx_qconv_store_fn store, void *arg)
{
    const struct sdx_conv_shape *s = &q->shape;
    if (conv_is_direct(s)) {
        part_direct(q, x, packed, part, scratch, store, arg);
        return;
    }
    const struct sdx_qgemm_table *t = table_now();
    const struct conv_sizes z = conv_sizes(s);
    const struct cut c = cut_of(s);
    const int64_t split = part % c.splits, block = part / c.splits % c.blocks;
    const int64_t image_group = part / c.splits / c.blocks, g = image_group % s->groups;
    const int64_t p0 = block * c.block_pixels, p1 = conv_least(z.pixels, p0 + c.block_pixels);
    const int64_t i0 = split * c.block_channels, i1 = conv_least(z.ocg, i0 + c.block_channels);
    const int64_t pairs = pairs_of(z.k), count = p1 - p0;
    if (p0 >= p1 || i0 >= i1) return;
    int32_t *panels = scratch, *sums = panels + pairs * c.block_pixels;
    gather(q, (const uint8_t *)x + image_group * z.icg * z.pixels_in, p0, p1, panels,
           (int16_t *)(sums + c.rows * c.block_pixels));
    for (int64_t r0 = i0; r0 < i1; r0 += c.rows) {
        const int64_t m = conv_least(c.rows, i1 - r0), channel = g * z.ocg + r0;
        t->block(m, count, pairs, (const int32_t *)packed + channel * pairs, pairs, panels,
                 pairs * t->cols, sums, count);
        for (int64_t i = 0; i < m; i++)
            store(arg, image_group / s->groups, channel + i, p0, count, sums + i * count);
    }
}
