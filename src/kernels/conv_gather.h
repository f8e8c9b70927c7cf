/* SPDX-License-Identifier: Apache-2.0
 * What the f32 and the integer convolution share: sizes of a shape, its split into parts, and the
 * walk over the pixels of the output that the gather of one kernel position makes. */
#ifndef SDX_KERNELS_CONV_GATHER_H
#define SDX_KERNELS_CONV_GATHER_H

#include "kernels/conv.h"

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
/* Every output pixel reads the input pixel at its own place. */
static inline bool conv_is_pointwise(const struct sdx_conv_shape *s)
{
    for (int i = 0; i < 3; i++)
        if (s->kernel[i] != 1 || s->stride[i] != 1 || s->pad_begin[i] != 0 || s->in[i] != s->out[i])
            return false;
    return true;
}

static inline int64_t conv_least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}
static inline int64_t conv_most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}
static inline int64_t conv_divide_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
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
    *lo = first >= 0 ? 0 : conv_divide_up(-first, step);
    *hi = size - first <= 0 ? 0 : conv_divide_up(size - first, step);
    *lo = conv_least(*lo, n);
    *hi = conv_most(*lo, conv_least(*hi, n));
}

/* A run of output pixels of one row as one kernel position sees it: element i of `count` is at
 * offset + i * stride of the channel for lo <= i < hi, padding elsewhere. */
struct conv_run {
    int64_t at, count, lo, hi, offset;
};
/* The run that begins at output pixel `pixel` and ends before `end`, for kernel position tap. */
static inline struct conv_run conv_run_at(const struct sdx_conv_shape *s, int64_t tap,
                                          int64_t pixel, int64_t end)
{
    const int64_t kw = tap % s->kernel[2], kh = tap / s->kernel[2] % s->kernel[1];
    const int64_t kd = tap / (s->kernel[2] * s->kernel[1]);
    const int64_t ow = pixel % s->out[2], row = pixel / s->out[2];
    const int64_t oh = row % s->out[1], od = row / s->out[1];
    const int64_t id = od * s->stride[0] + kd * s->dilation[0] - s->pad_begin[0];
    const int64_t ih = oh * s->stride[1] + kh * s->dilation[1] - s->pad_begin[1];
    const int64_t iw = ow * s->stride[2] + kw * s->dilation[2] - s->pad_begin[2];
    struct conv_run r = {.at = pixel, .count = conv_least(s->out[2] - ow, end - pixel)};
    if (id < 0 || id >= s->in[0] || ih < 0 || ih >= s->in[1]) return r;
    conv_valid(iw, s->stride[2], s->in[2], r.count, &r.lo, &r.hi);
    r.offset = (id * s->in[1] + ih) * s->in[2] + iw;
    return r;
}
#endif
