/* SPDX-License-Identifier: Apache-2.0
 * Depthwise convolution, one channel at a time. 3x3 and 5x5 of stride 1 or 2: a band of input rows
 * is copied with its padding into a buffer in L1, and the outputs of the band are computed as one
 * line as long as all its rows, so that small maps fill vectors too; what falls between rows is
 * thrown away. For stride 2 the buffer holds rows and columns of each parity apart. All else: a
 * line of sums an output row, one kernel position after the other. */
#include "kernels/conv_depthwise.h"

#include <string.h>

#include "kernels/conv_gather.h"
#include "kernels/tables.h"
#include "kernels/tuning.h"

enum { SLACK = 128 }; /* the line kernel reads and writes whole blocks of vectors */

/* Output rows whose sums the general form holds at a time. */
static int64_t lines_of_sums(const struct sdx_conv_shape *s)
{
    return conv_most(1, sdx_kernel_tuning()->depthwise_floats / conv_most(1, s->out[2]));
}

struct band {
    bool usable;
    int size, stride;
    int64_t pitch;  /* of a line of the buffer, and of the sums */
    int64_t rows;   /* output rows at a time */
    int64_t lines;  /* of one parity */
    int64_t plane;  /* floats of one parity of rows and columns */
    int64_t sums;   /* where they begin in scratch */
    int64_t floats; /* of scratch */
};
static struct band band_of(const struct sdx_conv_shape *s)
{
    struct band b = {.size = (int)s->kernel[2], .stride = (int)s->stride[2]};
    b.usable = s->in[0] == 1 && s->out[0] == 1 && s->kernel[0] == 1 && s->pad_begin[0] == 0 &&
               (s->kernel[2] == 3 || s->kernel[2] == 5) && s->kernel[1] == s->kernel[2] &&
               (s->stride[2] == 1 || s->stride[2] == 2) && s->stride[1] == s->stride[2] &&
               s->dilation[1] == 1 && s->dilation[2] == 1;
    if (!b.usable) {
        b.floats = lines_of_sums(s) * s->out[2];
        return b;
    }
    const int64_t parities = b.stride;
    b.pitch = s->out[2] + (b.stride == 1 ? b.size - 1 : b.size / 2);
    const int64_t fit =
        sdx_kernel_tuning()->depthwise_floats / (b.pitch * (parities * parities + 1));
    b.rows = conv_most(1, conv_least(s->out[1], fit));
    b.lines = b.rows + (b.stride == 1 ? b.size - 1 : b.size / 2);
    b.plane = b.lines * b.pitch;
    b.sums = parities * parities * b.plane + SLACK;
    b.floats = b.sums + b.rows * b.pitch + SLACK;
    return b;
}

bool sdx_depthwise_f32_is_banded(const struct sdx_conv_shape *s)
{
    return band_of(s).usable;
}

static int64_t channels_of_part(const struct sdx_conv_shape *s)
{
    const struct conv_sizes z = conv_sizes(s);
    const int64_t macs = conv_most(1, z.pixels * z.taps);
    return conv_least(conv_most(s->oc, 1), conv_divide_up(sdx_kernel_tuning()->part_macs, macs));
}
int64_t sdx_depthwise_f32_parts(const struct sdx_conv_shape *s)
{
    return s->batch * conv_divide_up(s->oc, channels_of_part(s));
}
size_t sdx_depthwise_f32_scratch(const struct sdx_conv_shape *s)
{
    return (size_t)band_of(s).floats * sizeof(float);
}

void sdx_conv_fill_band(const struct sdx_conv_shape *s, const struct conv_band *b, const float *x,
                        int64_t o0, int64_t rows, float *buffer)
{
    const struct sdx_gemm_table *table = &sdx_kernel_tables()->gemm;
    const int64_t down = s->stride[1], across = s->stride[2];
    const int64_t needed = (rows - 1) * down + (s->kernel[1] - 1) * s->dilation[1] + 1;
    const int64_t top = o0 * down - s->pad_begin[1];
    for (int64_t p = 0; p < b->row_phases; p++)
        for (int64_t q = 0; q < b->column_phases; q++) {
            float *plane = buffer + (p * b->column_phases + q) * b->plane;
            const int64_t lines = conv_divide_up(needed - p, down);
            int64_t lo, hi, first, last;
            conv_valid(q - s->pad_begin[2], across, s->in[2], b->pitch, &lo, &hi);
            conv_valid(top + p, down, s->in[1], lines, &first, &last);
            memset(plane, 0, (size_t)(first * b->pitch) * sizeof(float));
            memset(plane + last * b->pitch, 0, (size_t)((lines - last) * b->pitch) * sizeof(float));
            if (lo >= hi || first >= last) continue;
            table->f32_copy_rows(x + (top + p + first * down) * s->in[2] + q - s->pad_begin[2] +
                                     lo * across,
                                 plane + first * b->pitch + lo,
                                 (struct sdx_rectangle){.rows = last - first,
                                                        .width = hi - lo,
                                                        .pitch_from = down * s->in[2],
                                                        .step = across,
                                                        .pitch_to = b->pitch});
        }
}
static void channel_banded(const struct sdx_conv_shape *s, const struct band *b, const float *x,
                           const float *w, float *y, float bias, const struct sdx_epilogue *e,
                           float *scratch)
{
    const struct sdx_gemm_table *table = &sdx_kernel_tables()->gemm;
    const int64_t width = s->out[2];
    const struct conv_band lines_of = {b->stride, b->stride, b->pitch, b->plane};
    float *sums = scratch + b->sums;
    const float *lines[5];
    for (int r = 0; r < b->size; r++)
        lines[r] = scratch + r % b->stride * b->stride * b->plane + r / b->stride * b->pitch;
    for (int64_t o0 = 0; o0 < s->out[1]; o0 += b->rows) {
        const int64_t rows = conv_least(b->rows, s->out[1] - o0);
        const int64_t count = (rows - 1) * b->pitch + width;
        sdx_conv_fill_band(s, &lines_of, x, o0, rows, scratch);
        table->f32_depthwise(b->size, b->stride, lines, b->plane, w, sums, count);
        if (!e->residual) {
            const struct sdx_rectangle all = {
                .rows = rows, .width = width, .pitch_from = b->pitch, .step = 1, .pitch_to = width};
            table->f32_finish(sums, sums, count, bias, NULL, e);
            table->f32_copy_rows(sums, y + o0 * width, all);
            continue;
        }
        for (int64_t r = 0; r < rows; r++) {
            const int64_t at = (o0 + r) * width;
            table->f32_finish(sums + r * b->pitch, y + at, width, bias, e->residual + at, e);
        }
    }
}
static void channel_general(const struct sdx_conv_shape *s, const float *x, const float *w,
                            float *y, float bias, const struct sdx_epilogue *e, float *sums)
{
    const struct sdx_gemm_table *table = &sdx_kernel_tables()->gemm;
    const struct conv_sizes z = conv_sizes(s);
    const int64_t some = lines_of_sums(s) * s->out[2];
    for (int64_t p0 = 0; p0 < z.pixels; p0 += some) {
        const int64_t count = conv_least(some, z.pixels - p0);
        memset(sums, 0, (size_t)count * sizeof(float));
        const struct conv_line line = conv_line(s, p0, p0 + count);
        struct conv_tap tap = conv_tap(s, 0);
        for (int64_t k = 0; k < z.taps; k++, conv_tap_next(s, &tap)) {
            struct conv_walk walk = conv_walk(s, &line, &tap);
            while (conv_walk_next(s, &walk))
                if (walk.found.rows > 0)
                    table->f32_axpy_rows(w[k], x + walk.offset, sums + walk.to, walk.found);
        }
        table->f32_finish(sums, y + p0, count, bias, e->residual ? e->residual + p0 : NULL, e);
    }
}

/* Channels c0 .. c1 - 1 of an image of one pixel under a kernel of one position are a line, which
 * begins at first + c0 of x, y and the residual. */
static void channels_of_pixel(int64_t first, int64_t c0, int64_t c1, int64_t some, const float *x,
                              const float *w, float *y, const struct sdx_epilogue *e, float *sums)
{
    for (int64_t c = c0; c < c1; c += some) {
        const int64_t count = conv_least(some, c1 - c), at = first + c;
        for (int64_t i = 0; i < count; i++)
            sums[i] = w[c + i] * x[at + i] + (e->bias_row ? e->bias_row[c + i] : 0.0f);
        sdx_kernel_tables()->gemm.f32_finish(sums, y + at, count, 0,
                                             e->residual ? e->residual + at : NULL, e);
    }
}

void sdx_depthwise_f32_part(const struct sdx_conv_shape *s, const float *x, const float *weights,
                            float *y, const struct sdx_epilogue *epilogue, int64_t part,
                            void *scratch)
{
    const struct conv_sizes z = conv_sizes(s);
    const struct band b = band_of(s);
    const int64_t block = channels_of_part(s), blocks = conv_divide_up(s->oc, block);
    const int64_t image = part / blocks, c0 = part % blocks * block;
    const int64_t c1 = conv_least(s->oc, c0 + block);
    if (z.pixels == 0) return;
    const bool is_padded = s->pad_begin[0] || s->pad_begin[1] || s->pad_begin[2];
    if (z.pixels * z.pixels_in * z.taps * z.ocg == 1 && !is_padded) {
        channels_of_pixel(image * s->oc, c0, c1, lines_of_sums(s), x, weights, y, epilogue,
                          scratch);
        return;
    }
    if (b.usable) memset(scratch, 0, (size_t)b.sums * sizeof(float)); /* margins stay 0 */
    for (int64_t c = c0; c < c1; c++) {
        const float *from = x + (image * s->ic + c / z.ocg) * z.pixels_in;
        const int64_t to = (image * s->oc + c) * z.pixels;
        const float bias = epilogue->bias_row ? epilogue->bias_row[c] : 0.0f;
        struct sdx_epilogue e = *epilogue;
        if (e.residual) e.residual += to;
        if (b.usable)
            channel_banded(s, &b, from, weights + c * z.taps, y + to, bias, &e, scratch);
        else
            channel_general(s, from, weights + c * z.taps, y + to, bias, &e, scratch);
    }
}
