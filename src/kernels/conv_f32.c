/* SPDX-License-Identifier: Apache-2.0
 * f32 convolution as a matrix product: the weights are A [channels, K], the image is gathered into
 * panels of B [K, pixels] block by block. Grouped convolutions of one input channel go to
 * conv_depthwise.c, those of few output channels to conv_few.c. Outputs of one pixel (after a
 * global pooling) are dot products. */
#include "kernels/conv.h"

#include <string.h>

#include "base/compiler.h"
#include "kernels/conv_depthwise.h"
#include "kernels/conv_few.h"
#include "kernels/conv_gather.h"
#include "kernels/flush.h"
#include "kernels/tables.h"
#include "kernels/tuning.h"

enum {
    LINES = 8, /* gathered before they are dealt out to the panels */
    EVEN = 32  /* fewer blocks of pixels are an even number, which two threads share */
};

static struct conv_cut cut_of(const struct sdx_conv_shape *s)
{
    const struct sdx_kernel_tuning *t = sdx_kernel_tuning();
    const struct sdx_gemm_table *table = &sdx_kernel_tables()->gemm;
    const struct conv_sizes z = conv_sizes(s);
    struct conv_cut c = {.depth = conv_most(1, z.k)};
    if (z.pixels > 1 && z.k > t->whole_k) c.depth = t->block_k;
    int64_t fit = t->conv_bytes / (c.depth * (int64_t)sizeof(float)) / table->cols * table->cols;
    fit = conv_most(table->cols, conv_least(fit, t->conv_pixels));
    c.blocks = conv_divide_up(conv_most(z.pixels, 1), fit);
    c.blocks = conv_even(c.blocks, EVEN);
    c.block_pixels =
        conv_divide_up(conv_divide_up(conv_most(z.pixels, 1), c.blocks), table->cols) * table->cols;
    c.blocks = conv_divide_up(conv_most(z.pixels, 1), c.block_pixels);
    const int64_t parts = s->batch * s->groups * c.blocks;
    const int64_t most_splits = conv_most(1, z.ocg / t->conv_rows);
    c.splits = 1;
    if (parts > 0 && parts < t->conv_parts)
        c.splits = conv_least(conv_divide_up(t->conv_parts, parts), most_splits);
    c.block_channels = conv_divide_up(conv_divide_up(z.ocg, c.splits), table->rows) * table->rows;
    c.splits = conv_divide_up(conv_most(z.ocg, 1), c.block_channels);
    return c;
}

size_t sdx_conv_f32_packed_size(const struct sdx_conv_shape *s)
{
    return (size_t)(s->oc * conv_sizes(s).k) * sizeof(float);
}
/* [group][block of K][channel of the group][k of the block] */
void sdx_conv_f32_pack(const struct sdx_conv_shape *s, const float *weights, float *packed)
{
    if (sdx_conv_f32_is_few(s)) {
        sdx_conv_few_pack(s, weights, packed);
        return;
    }
    const struct conv_sizes z = conv_sizes(s);
    const int64_t depth = cut_of(s).depth;
    for (int64_t g = 0; g < s->groups; g++, weights += z.ocg * z.k)
        for (int64_t k0 = 0; k0 < z.k; k0 += depth) {
            const int64_t kc = conv_least(depth, z.k - k0);
            for (int64_t i = 0; i < z.ocg; i++, packed += kc)
                memcpy(packed, weights + i * z.k + k0, (size_t)kc * sizeof(float));
        }
}
int64_t sdx_conv_f32_parts(const struct sdx_conv_shape *s)
{
    if (sdx_conv_f32_is_few(s)) return sdx_conv_few_parts(s);
    if (conv_is_direct(s)) return sdx_depthwise_f32_parts(s);
    const struct conv_cut c = cut_of(s);
    return s->batch * s->groups * c.blocks * c.splits;
}
size_t sdx_conv_f32_scratch(const struct sdx_conv_shape *s)
{
    if (sdx_conv_f32_is_few(s)) return sdx_conv_few_scratch(s);
    if (conv_is_direct(s)) return sdx_depthwise_f32_scratch(s);
    const struct conv_cut c = cut_of(s);
    return (size_t)((c.depth + LINES) * c.block_pixels) * sizeof(float);
}
double sdx_conv_macs(const struct sdx_conv_shape *s)
{
    const struct conv_sizes z = conv_sizes(s);
    return (double)s->batch * (double)s->oc * (double)z.pixels * (double)z.k;
}

/* The pixels of `line` of one channel under one kernel position. */
static void gather_line(const struct sdx_conv_shape *s, bool padded, const struct conv_line *line,
                        const struct conv_tap *tap, const float *channel, float *to)
{
    const struct sdx_gemm_table *table = &sdx_kernel_tables()->gemm;
    if (padded) memset(to, 0, (size_t)(line->end - line->from) * sizeof(float));
    struct conv_walk w = conv_walk(s, line, tap);
    while (conv_walk_next(s, &w))
        if (w.found.rows > 0) table->f32_copy_rows(channel + w.offset, to + w.to, w.found);
}
/* Do the pixels p0..p1 of a line see no padding, each the one behind its neighbour's? */
static bool is_inside_line(const struct sdx_conv_shape *s, int64_t p0, int64_t p1)
{
    const int64_t first = p0 - s->pad_begin[2];
    const int64_t last = p1 - 1 - s->pad_begin[2] + (s->kernel[2] - 1) * s->dilation[2];
    return s->in[0] * s->in[1] * s->kernel[0] * s->kernel[1] == 1 && s->out[0] * s->out[1] == 1 &&
           s->stride[2] == 1 && first >= 0 && last < s->in[2];
}
/* The rows of B for the taps of a channel are what lies there, a dilation apart. */
static void gather_inside_line(const struct sdx_conv_shape *s, const float *x, int64_t k0,
                               int64_t kc, int64_t p0, int64_t p1, float *panels)
{
    const struct sdx_gemm_table *table = &sdx_kernel_tables()->gemm;
    const int64_t taps = s->kernel[2], dilation = s->dilation[2];
    x += p0 - s->pad_begin[2];
    for (int64_t e = 0, some; e < kc; e += some) {
        const int64_t channel = (k0 + e) / taps, tap = (k0 + e) % taps;
        some = conv_least(taps - tap, kc - e);
        table->f32_pack(x + channel * s->in[2] + tap * dilation, dilation, 1, some, p1 - p0,
                        panels + e * table->cols, kc * table->cols);
    }
}
/* Rows k0 .. k0 + kc of B for the pixels p0..p1, as panels. x: first channel of the group. */
static void gather(const struct sdx_conv_shape *s, const float *x, int64_t k0, int64_t kc,
                   int64_t p0, int64_t p1, float *panels, float *lines)
{
    const struct sdx_gemm_table *table = &sdx_kernel_tables()->gemm;
    const struct conv_sizes z = conv_sizes(s);
    const int64_t count = p1 - p0, step = kc * table->cols;
    if (sdx_conv_is_pointwise(s)) {
        table->f32_pack(x + k0 * z.pixels + p0, z.pixels, 1, kc, count, panels, step);
        return;
    }
    if (is_inside_line(s, p0, p1)) {
        gather_inside_line(s, x, k0, kc, p0, p1, panels);
        return;
    }
    const bool padded = !conv_is_unpadded(s);
    const struct conv_line line = conv_line(s, p0, p1);
    struct conv_tap tap = conv_tap(s, k0);
    for (int64_t e = 0; e < kc; e += LINES) {
        const int64_t some = conv_least(LINES, kc - e);
        for (int64_t i = 0; i < some; i++, conv_tap_next(s, &tap))
            gather_line(s, padded, &line, &tap, x + tap.channel * z.pixels_in, lines + i * count);
        table->f32_pack(lines, count, 1, some, count, panels + e * table->cols, step);
    }
}

/* Output of one pixel: rows of weights times the gathered column, or the pixel that there is. */
static void one_pixel(const struct sdx_conv_shape *s, const float *x, const float *weights,
                      int64_t channels, float *y, const struct sdx_epilogue *e, float *column)
{
    const struct sdx_kernel_tables *tables = sdx_kernel_tables();
    const struct conv_sizes z = conv_sizes(s);
    const bool padded = !conv_is_unpadded(s);
    const struct conv_line line = conv_line(s, 0, 1);
    struct conv_tap tap = conv_tap(s, 0);
    const bool is_there = z.taps == 1 && z.pixels_in == 1 && !padded;
    for (int64_t k = 0; !is_there && k < z.k; k++, conv_tap_next(s, &tap))
        gather_line(s, padded, &line, &tap, x + tap.channel * z.pixels_in, column + k);
    tables->gemm.f32_rows_dot(weights, z.k, is_there ? x : column, channels, z.k, y);
    if (e->bias_row) tables->vec.f32_add(y, 1, e->bias_row, 1, y, (size_t)channels);
    tables->gemm.f32_finish(y, y, channels, 0.0f, e->residual, e);
}

static void product_part(const struct sdx_conv_shape *s, const float *x, const float *packed,
                         float *y, const struct sdx_epilogue *epilogue, int64_t part, void *scratch)
{
    const struct sdx_gemm_table *table = &sdx_kernel_tables()->gemm;
    const struct conv_sizes z = conv_sizes(s);
    const struct conv_cut c = cut_of(s);
    const int64_t split = part % c.splits, block = part / c.splits % c.blocks;
    const int64_t image_group = part / c.splits / c.blocks, g = image_group % s->groups;
    const int64_t p0 = block * c.block_pixels, p1 = conv_least(z.pixels, p0 + c.block_pixels);
    const int64_t i0 = split * c.block_channels, i1 = conv_least(z.ocg, i0 + c.block_channels);
    const float *from = x + image_group * z.icg * z.pixels_in;
    const float *weights = packed + g * z.ocg * z.k;
    const int64_t to = (image_group * z.ocg + i0) * z.pixels + p0;
    struct sdx_epilogue e = *epilogue;
    e.bias_col = NULL;
    if (e.bias_row) e.bias_row += g * z.ocg + i0;
    if (e.residual) e.residual += to;
    if (p0 >= p1 || i0 >= i1) return;
    if (z.pixels == 1) {
        one_pixel(s, from, weights + i0 * z.k, i1 - i0, y + to, &e, scratch);
        return;
    }
    float *panels = scratch, *lines = panels + c.depth * c.block_pixels;
    int64_t k0 = 0;
    do {
        const int64_t kc = conv_least(c.depth, z.k - k0);
        gather(s, from, k0, kc, p0, p1, panels, lines);
        const int64_t fit =
            sdx_kernel_tuning()->a_bytes / (conv_most(kc, 1) * (int64_t)sizeof(float));
        const int64_t rows = conv_most(fit / table->rows, 1) * table->rows;
        for (int64_t r0 = i0; r0 < i1; r0 += rows) {
            struct sdx_gemm_job job = {.m = conv_least(rows, i1 - r0),
                                       .n = p1 - p0,
                                       .k = kc,
                                       .a = weights + k0 * z.ocg + r0 * kc,
                                       .row_a = kc,
                                       .b = panels,
                                       .row_b = table->cols,
                                       .panel_step = kc * table->cols,
                                       .c = y + to + (r0 - i0) * z.pixels,
                                       .row_c = z.pixels,
                                       .from_c = k0 > 0,
                                       .last = k0 + kc >= z.k,
                                       .alpha = 1.0f,
                                       .epilogue = e};
            if (e.bias_row) job.epilogue.bias_row += r0 - i0;
            if (e.residual) job.epilogue.residual += (r0 - i0) * z.pixels;
            table->f32_block(&job);
        }
        k0 += c.depth;
    } while (k0 < z.k);
}
void sdx_conv_f32_finish(float *y, int64_t n, float bias, const struct sdx_epilogue *epilogue)
{
    sdx_kernel_tables()->gemm.f32_finish(y, y, n, bias, NULL, epilogue);
}

void sdx_conv_f32_part(const struct sdx_conv_shape *s, const float *x, const float *packed,
                       float *y, const struct sdx_epilogue *epilogue, int64_t part, void *scratch)
{
    const unsigned before = sdx_flush_begin();
    (sdx_conv_f32_is_few(s) ? sdx_conv_few_part
     : conv_is_direct(s)    ? sdx_depthwise_f32_part
                            : product_part)(s, x, packed, y, epilogue, part, scratch);
    sdx_flush_end(before);
}
