/* SPDX-License-Identifier: Apache-2.0
 * What the f32 and the integer convolution share: sizes of a shape, its split into parts, and the
 * walk over the pixels of the output that the gather of one kernel position makes. */
#ifndef SDX_KERNELS_CONV_GATHER_H
#define SDX_KERNELS_CONV_GATHER_H

#include <math.h>

#include "kernels/conv.h"
#include "kernels/tables.h"
#include "kernels/tuning.h"

/* Sizes that follow from a shape. */
struct conv_sizes {
    int64_t icg, ocg;  /* channels of a group */
    int64_t taps, k;   /* kernel positions; times icg */
    int64_t pixels;    /* of an output channel */
    int64_t pixels_in; /* of an input channel */
};
static inline struct conv_sizes conv_sizes(const struct sdx_conv_shape *s)
{
    struct conv_sizes z = {.icg = s->ic / s->groups,
                           .ocg = s->oc / s->groups,
                           .taps = s->kernel[0] * s->kernel[1] * s->kernel[2],
                           .pixels = s->out[0] * s->out[1] * s->out[2],
                           .pixels_in = s->in[0] * s->in[1] * s->in[2]};
    z.k = z.icg * z.taps;
    return z;
}

/* One input channel a group and few outputs of it: no matrix product worth the name. */
static inline bool conv_is_direct(const struct sdx_conv_shape *s)
{
    return s->groups > 1 && s->ic == s->groups && s->oc / s->groups <= 4;
}
static inline int64_t conv_least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}
static inline int64_t conv_most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}
/* Fewer than `few` parts are an even number, which two threads share; one stays one. */
static inline int64_t conv_even(int64_t parts, int64_t few)
{
    return parts > 1 && parts < few ? parts + parts % 2 : parts;
}
/* Where share i of `count` things among `shares` begins: shares differ by one at most. */
static inline int64_t conv_share(int64_t count, int64_t i, int64_t shares)
{
    return count * i / shares;
}
static inline int64_t conv_divide_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}
/* What so many outputs along an axis see of the input, with its padding. */
static inline int64_t conv_window(const struct sdx_conv_shape *s, int axis, int64_t outputs)
{
    return (outputs - 1) * s->stride[axis] + (s->kernel[axis] - 1) * s->dilation[axis] + 1;
}

/* How the work of one matrix-product convolution is cut: parts are (image, group, block of pixels,
 * block of channels), the last fastest. */
struct conv_cut {
    int64_t depth;                /* of a block of K */
    int64_t block_pixels, blocks; /* block_pixels is a multiple of the panel */
    int64_t block_channels, splits;
};

/* Where i in 0 .. n has 0 <= first + i * step < size: from *lo to *hi. */
static inline void conv_valid(int64_t first, int64_t step, int64_t size, int64_t n, int64_t *lo,
                              int64_t *hi)
{
    *lo = first >= 0 ? 0 : step == 1 ? -first : conv_divide_up(-first, step);
    *hi = size - first <= 0 ? 0 : step == 1 ? size - first : conv_divide_up(size - first, step);
    *lo = conv_least(*lo, n);
    *hi = conv_most(*lo, conv_least(*hi, n));
}

/* Parts of a blocked convolution that bring more than they cost, and how many are wanted. */
static inline double conv_worth(const struct sdx_conv_shape *s)
{
    return sdx_conv_macs(s) / (double)(4 * sdx_kernel_tuning()->part_macs);
}
static inline int64_t conv_wanted(double worth)
{
    const int64_t wanted = (int64_t)fmin(1 + worth, (double)sdx_kernel_tuning()->block_parts);
    return conv_even(wanted, INT64_MAX);
}

/* Outputs from..end of a row; columns: of the copy between zeros that their pixels come from, 0:
 * these are read in place. */
struct conv_segment {
    int64_t from, end, columns;
};
/* A row in up to three of them: one copy if less than `least` outputs read no column beside the
 * image, else copies for at least `edge` outputs at either end that does. Returns how many. */
static inline int conv_segments(const struct sdx_conv_shape *s, int64_t least, int64_t edge,
                                struct conv_segment *to)
{
    const int64_t width = s->out[2], reach = (s->kernel[2] - 1) * s->dilation[2];
    int64_t lo, hi;
    int count = 0;
    conv_valid(-s->pad_begin[2], s->stride[2], s->in[2] - reach, width, &lo, &hi);
    if (hi - lo < conv_least(least, width)) {
        lo = hi = width;
    } else {
        if (lo > 0) lo = conv_most(lo, edge);
        if (hi < width) hi = conv_least(hi, width - edge);
    }
    const int64_t ends[4] = {0, lo, hi, width};
    for (int i = 0; i < 3; i++) {
        const int64_t from = ends[i], end = ends[i + 1];
        const int64_t columns = i == 1 ? 0 : (end - from - 1) * s->stride[2] + reach + 1;
        if (from < end) to[count++] = (struct conv_segment){from, end, columns};
    }
    return count;
}

/* The limits that an activation is, infinities where it is none or a curve. */
static inline void conv_limits(enum sdx_act act, float a, float b, float *lo, float *hi)
{
    *lo = act == SDX_ACT_RELU ? 0.0f : act == SDX_ACT_CLIP ? a : -INFINITY;
    *hi = act == SDX_ACT_CLIP ? b : INFINITY;
}

/* A line of output pixels from .. end, and a kernel position; both are found once and stepped, as
 * divisions for each line would cost more than its copy. */
struct conv_line {
    int64_t from, end;
    int64_t od, oh, ow; /* of `from` */
    int64_t full;       /* whole rows after the part of a row that it begins with */
};
static inline struct conv_line conv_line(const struct sdx_conv_shape *s, int64_t from, int64_t end)
{
    const int64_t row = from / s->out[2], od = row / s->out[1], ow = from - row * s->out[2];
    const int64_t part = ow > 0 ? conv_least(s->out[2] - ow, end - from) : 0;
    return (struct conv_line){.from = from,
                              .end = end,
                              .od = od,
                              .oh = row - od * s->out[1],
                              .ow = ow,
                              .full = (end - from - part) / s->out[2]};
}
struct conv_tap {
    int64_t channel, kd, kh, kw;
};
static inline struct conv_tap conv_tap(const struct sdx_conv_shape *s, int64_t k)
{
    const int64_t row = k / s->kernel[2], plane = row / s->kernel[1];
    struct conv_tap t = {.channel = plane / s->kernel[0]};
    t.kw = k - row * s->kernel[2];
    t.kh = row - plane * s->kernel[1];
    t.kd = plane - t.channel * s->kernel[0];
    return t;
}
static inline void conv_tap_next(const struct sdx_conv_shape *s, struct conv_tap *t)
{
    if (++t->kw < s->kernel[2]) return;
    t->kw = 0;
    if (++t->kh < s->kernel[1]) return;
    t->kh = 0;
    if (++t->kd < s->kernel[0]) return;
    t->kd = 0;
    t->channel++;
}

/* A line as one kernel position sees it: a walk over rectangles of whole rows, or part of a row at
 * its ends, as far as they lie within the image. */
struct conv_walk {
    int64_t at, end, full, od, oh, ow;
    int64_t first[3];           /* place in the input of output 0, by axis */
    int64_t lo, hi;             /* columns within the image */
    int64_t from;               /* of the line */
    int64_t offset, to;         /* found: in the channel, in the line */
    struct sdx_rectangle found; /* may be empty */
};
static inline struct conv_walk conv_walk(const struct sdx_conv_shape *s,
                                         const struct conv_line *line, const struct conv_tap *tap)
{
    struct conv_walk w;
    w.at = w.from = line->from;
    w.end = line->end;
    w.full = line->full;
    w.od = line->od;
    w.oh = line->oh;
    w.ow = line->ow;
    w.first[0] = tap->kd * s->dilation[0] - s->pad_begin[0];
    w.first[1] = tap->kh * s->dilation[1] - s->pad_begin[1];
    w.first[2] = tap->kw * s->dilation[2] - s->pad_begin[2];
    conv_valid(w.first[2], s->stride[2], s->in[2], s->out[2], &w.lo, &w.hi);
    w.found.pitch_from = s->stride[1] * s->in[2];
    w.found.step = s->stride[2];
    w.found.pitch_to = s->out[2];
    return w;
}
/* The next rectangle; false at the end. */
static inline bool conv_walk_next(const struct sdx_conv_shape *s, struct conv_walk *w)
{
    if (w->at >= w->end) return false;
    int64_t rows = 1, width = s->out[2], top = 0, bottom = 0;
    if (w->ow > 0 || w->full == 0) {
        width = conv_least(s->out[2] - w->ow, w->end - w->at);
    } else {
        rows = conv_least(w->full, s->out[1] - w->oh);
        w->full -= rows;
    }
    const int64_t c0 = conv_most(w->lo, w->ow), c1 = conv_least(w->hi, w->ow + width);
    const int64_t id = w->od * s->stride[0] + w->first[0];
    const int64_t ih = w->oh * s->stride[1] + w->first[1];
    if (id >= 0 && id < s->in[0] && c0 < c1)
        conv_valid(ih, s->stride[1], s->in[1], rows, &top, &bottom);
    w->found.rows = bottom - top;
    w->found.width = c1 - c0;
    w->offset =
        (id * s->in[1] + ih + top * s->stride[1]) * s->in[2] + c0 * s->stride[2] + w->first[2];
    w->to = w->at - w->from + top * s->out[2] + c0 - w->ow;
    w->at += rows * width;
    w->ow = 0;
    w->oh += rows;
    if (w->oh == s->out[1]) {
        w->oh = 0;
        w->od++;
    }
    return true;
}
/* Reads no element outside the image. */
static inline bool conv_is_unpadded(const struct sdx_conv_shape *s)
{
    for (int i = 0; i < 3; i++)
        if (s->pad_begin[i] > 0 || (s->out[i] - 1) * s->stride[i] +
                                           (s->kernel[i] - 1) * s->dilation[i] - s->pad_begin[i] >=
                                       s->in[i])
            return false;
    return true;
}
#endif
