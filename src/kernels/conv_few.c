/* SPDX-License-Identifier: Apache-2.0
 * Convolution of few output channels, in all or in each group. A band of input rows is copied with
 * its padding, channel by channel, and the outputs of the band are computed as one line as long as
 * all its rows: what a kernel position adds to them is that line, shifted, times a weight. What
 * falls between rows is thrown away. With strides, rows and columns of each phase lie apart. Where
 * the channels of a band do not fit, sums are kept from some of them to the next; long rows are cut
 * into strips. Outputs of one depth see the planes of an input channel under the kernel as channels
 * of their own. */
#include "kernels/conv_few.h"

#include <string.h>

#include "kernels/conv_depthwise.h"
#include "kernels/conv_gather.h"
#include "kernels/tables.h"
#include "kernels/tuning.h"

enum {
    CHANNELS = 8, /* of outputs: more are rows enough for a matrix product */
    TILE = 4,     /* of them the kernel takes at once */
    PIXELS = 16,
    BAND = 1 << 15, /* floats of a band's input */
    SUMS = 1 << 14,
    PARTS = 16,  /* of a plane, where there is work for as many */
    STRIP = 512, /* columns of a strip of one row, at least */
    SLACK = 128  /* the kernel reads and writes whole blocks of vectors */
};

struct few {
    int64_t phases[2]; /* of rows and of columns that are read */
    int64_t planes;    /* of all input channels of a group, under the kernel */
    int64_t taps;      /* of one */
    int64_t width;     /* output columns of a strip */
    int64_t strips;    /* of a plane of outputs */
    int64_t pitch;     /* of a line of the band, and of the sums */
    int64_t rows;      /* output rows of a band */
    int64_t bands;     /* of a plane of outputs */
    int64_t plane;     /* floats of one phase */
    int64_t channel;   /* floats of all phases */
    int64_t chunk;     /* planes at a time */
    int64_t sums;      /* floats of the sums of one output channel */
    int64_t items;     /* of a part: strips of bands of groups of images */
};

static int64_t items_of(const struct sdx_conv_shape *s, const struct few *f)
{
    return s->batch * s->groups * s->out[0] * f->bands * f->strips;
}

static struct few few_of(const struct sdx_conv_shape *s)
{
    const struct conv_sizes z = conv_sizes(s);
    const int64_t part_macs = sdx_kernel_tuning()->part_macs;
    const int64_t span[2] = {(s->kernel[1] - 1) * s->dilation[1],
                             (s->kernel[2] - 1) * s->dilation[2]};
    struct few f = {0};
    for (int i = 0; i < 2; i++)
        f.phases[i] = conv_least(s->stride[i + 1], span[i] + 1);
    f.planes = z.icg * s->kernel[0];
    f.taps = s->kernel[1] * s->kernel[2];
    const int64_t macs = z.ocg * s->out[1] * s->out[2] * z.k;
    const int64_t wanted = conv_least(PARTS, conv_divide_up(macs, part_macs));
    f.strips = conv_most(conv_divide_up(s->out[2] * z.ocg, SUMS),
                         conv_divide_up(s->out[2] * f.phases[1], BAND));
    if (s->out[1] == 1) f.strips = conv_most(f.strips, conv_least(wanted, s->out[2] / STRIP));
    f.width = conv_divide_up(s->out[2], f.strips);
    f.strips = conv_divide_up(s->out[2], f.width);
    f.pitch = f.width + span[1] / s->stride[2];
    const int64_t fit = conv_most(1, SUMS / (f.pitch * z.ocg));
    f.bands = conv_most(conv_divide_up(s->out[1], fit), conv_least(wanted, s->out[1]));
    f.bands = conv_least(conv_even(f.bands, PARTS), s->out[1]);
    f.rows = conv_divide_up(s->out[1], f.bands);
    f.bands = conv_divide_up(s->out[1], f.rows);
    f.plane = (f.rows + span[0] / s->stride[1]) * f.pitch;
    f.channel = f.phases[0] * f.phases[1] * f.plane;
    f.chunk = conv_most(1, conv_least(f.planes, BAND / f.channel));
    f.sums = f.rows * f.pitch + SLACK;
    f.items = conv_divide_up(part_macs, conv_most(1, macs / (f.bands * f.strips)));
    f.items = conv_least(f.items, items_of(s, &f));
    return f;
}

bool sdx_conv_f32_is_few(const struct sdx_conv_shape *s)
{
    const struct conv_sizes z = conv_sizes(s);
    const bool is_deep = s->kernel[0] != 1 || s->in[0] != 1 || s->pad_begin[0] != 0;
    return z.ocg <= CHANNELS && s->out[1] * s->out[2] >= PIXELS && z.k > 0 &&
           s->kernel[1] * s->kernel[2] > 1 && s->out[0] > 0 &&
           (s->out[1] == 1 || (s->kernel[2] - 1) * s->dilation[2] <= s->out[2] * s->stride[2]) &&
           !(conv_is_direct(s) && (is_deep || sdx_depthwise_f32_is_banded(s)));
}

int64_t sdx_conv_few_parts(const struct sdx_conv_shape *s)
{
    const struct few f = few_of(s);
    return conv_divide_up(items_of(s, &f), f.items);
}

static size_t band_bytes(const struct few *f)
{
    return (size_t)(f->chunk * f->channel + SLACK) * sizeof(float);
}

size_t sdx_conv_few_scratch(const struct sdx_conv_shape *s)
{
    const struct few f = few_of(s);
    const struct conv_sizes z = conv_sizes(s);
    return band_bytes(&f) + (size_t)(z.ocg * f.sums) * sizeof(float) +
           (size_t)(f.chunk * f.taps) * sizeof(int64_t);
}

void sdx_conv_few_pack(const struct sdx_conv_shape *s, const float *weights, float *packed)
{
    const struct conv_sizes z = conv_sizes(s);
    for (int64_t g = 0; g < s->groups; g++, weights += z.ocg * z.k)
        for (int64_t i0 = 0; i0 < z.ocg; i0 += TILE)
            for (int64_t k = 0; k < z.k; k++)
                for (int64_t i = i0; i < conv_least(i0 + TILE, z.ocg); i++)
                    *packed++ = weights[i * z.k + k];
}

/* Where each kernel position of each channel of a chunk begins in the band. */
static void find_offsets(const struct sdx_conv_shape *s, const struct few *f, int64_t *offsets)
{
    for (int64_t c = 0; c < f->chunk; c++)
        for (int64_t i = 0; i < s->kernel[1]; i++)
            for (int64_t j = 0; j < s->kernel[2]; j++) {
                const int64_t row = i * s->dilation[1], column = j * s->dilation[2];
                const int64_t phase = row % s->stride[1] * f->phases[1] + column % s->stride[2];
                *offsets++ = c * f->channel + phase * f->plane + row / s->stride[1] * f->pitch +
                             column / s->stride[2];
            }
}

/* The outputs of `rows` rows from o0 on of plane d0, of one group of one image, into the sums. s:
 * as wide as the strip. */
static void sum_band(const struct sdx_conv_shape *s, const struct few *f, const float *x,
                     const float *weights, int64_t d0, int64_t o0, int64_t rows, float *band,
                     const int64_t *offsets, float *sums)
{
    const struct sdx_gemm_table *table = &sdx_kernel_tables()->gemm;
    const struct conv_sizes z = conv_sizes(s);
    const struct conv_band lines = {f->phases[0], f->phases[1], f->pitch, f->plane};
    const int64_t plane = s->in[1] * s->in[2];
    for (int64_t c0 = 0; c0 < f->planes; c0 += f->chunk) {
        const int64_t count = conv_least(f->chunk, f->planes - c0);
        for (int64_t c = 0; c < count; c++) {
            const int64_t deep = (c0 + c) % s->kernel[0], channel = (c0 + c) / s->kernel[0];
            const int64_t z0 = d0 * s->stride[0] + deep * s->dilation[0] - s->pad_begin[0];
            float *to = band + c * f->channel;
            if (z0 < 0 || z0 >= s->in[0])
                memset(to, 0, (size_t)f->channel * sizeof *to);
            else
                sdx_conv_fill_band(s, &lines, x + (channel * s->in[0] + z0) * plane, o0, rows, to);
        }
        for (int64_t i = 0; i < z.ocg; i += TILE) {
            const int64_t channels = conv_least(TILE, z.ocg - i);
            table->f32_few(&(struct sdx_few_job){.channels = (int)channels,
                                                 .more = c0 > 0,
                                                 .x = band,
                                                 .offsets = offsets,
                                                 .taps = count * f->taps,
                                                 .w = weights + i * z.k + c0 * f->taps * channels,
                                                 .y = sums + i * f->sums,
                                                 .pitch = f->sums,
                                                 .n = (rows - 1) * f->pitch + s->out[2]});
        }
    }
}

void sdx_conv_few_part(const struct sdx_conv_shape *s, const float *x, const float *packed,
                       float *y, const struct sdx_epilogue *epilogue, int64_t part, void *scratch)
{
    const struct few f = few_of(s);
    const struct conv_sizes z = conv_sizes(s);
    int64_t *offsets = scratch;
    float *band = (float *)(offsets + f.chunk * f.taps);
    float *sums = (float *)((char *)band + band_bytes(&f));
    const int64_t end = conv_least((part + 1) * f.items, items_of(s, &f));
    const struct sdx_gemm_table *table = &sdx_kernel_tables()->gemm;
    memset(band, 0, band_bytes(&f)); /* margins stay 0 */
    find_offsets(s, &f, offsets);
    for (int64_t item = part * f.items; item < end; item++) {
        const int64_t plane = item / f.strips / f.bands, d0 = plane % s->out[0];
        const int64_t image_group = plane / s->out[0], group = image_group % s->groups;
        const int64_t o0 = item / f.strips % f.bands * f.rows, w0 = item % f.strips * f.width;
        const int64_t rows = conv_least(f.rows, s->out[1] - o0);
        struct sdx_conv_shape strip = *s;
        strip.out[2] = conv_least(f.width, s->out[2] - w0);
        strip.pad_begin[2] -= w0 * s->stride[2];
        if (f.strips > 1) memset(band, 0, band_bytes(&f));
        sum_band(&strip, &f, x + image_group * z.icg * z.pixels_in, packed + group * z.ocg * z.k,
                 d0, o0, rows, band, offsets, sums);
        for (int64_t i = 0; i < z.ocg; i++) {
            const int64_t to =
                (image_group * z.ocg + i) * z.pixels + (d0 * s->out[1] + o0) * s->out[2] + w0;
            const float bias = epilogue->bias_row ? epilogue->bias_row[group * z.ocg + i] : 0.0f;
            for (int64_t r = 0; r < rows; r++)
                table->f32_finish(
                    sums + i * f.sums + r * f.pitch, y + to + r * s->out[2], strip.out[2], bias,
                    epilogue->residual ? epilogue->residual + to + r * s->out[2] : NULL, epilogue);
        }
    }
}
