/* SPDX-License-Identifier: Apache-2.0
 * f32 pictures read between their pixels, at up to SDX_SAMPLE_BLOCK positions a call. What position
 * i has of its tap t lies at t * SDX_SAMPLE_BLOCK + i; arrays are as long as whole blocks. */
#ifndef SDX_KERNELS_SAMPLE_H
#define SDX_KERNELS_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>

enum { SDX_SAMPLE_BLOCK = 64 };
struct sdx_sample_plane {
    int taps; /* of an axis: 1 nearest, 2 linear, 4 cubic */
    int32_t width, height;
    bool border;  /* a tap beyond it reads the nearest pixel, otherwise the offset is `none` */
    int32_t none; /* negative: reads 0 */
    /* nearest or linear with border: what lies before `first` or as far beyond the last pixel is
     * at the border itself */
    float first;
};
struct sdx_sample {
    /* x[i] = pairs[2 * i] * scale[0] + shift[0], y[i] so of pairs[2 * i + 1], rounded once and
     * limited to a billion; NaN: as -infinity. Whole numbers for one tap. */
    void (*f32_places)(const float *pairs, const float scale[2], const float shift[2], bool whole,
                       int64_t n, float *x, float *y);
    /* offsets of pixels, and weights, row by row */
    void (*f32_taps)(const struct sdx_sample_plane *p, const float *x, const float *y, int64_t n,
                     int32_t *offset, float *weight);
    /* sums of `taps` taps in `channels` planes, pitch apart, to out, pitch_out apart */
    void (*f32_gather)(const float *plane, int64_t pitch, int64_t channels, const int32_t *offset,
                       const float *weight, int64_t taps, int64_t n, float *out, int64_t pitch_out);
    /* the same of blocked channels, [pixel][lanes], for offsets that are not negative */
    void (*f32_lanes)(const float *blocked, const int32_t *offset, const float *weight,
                      int64_t taps, int64_t n, float *out);
};
const struct sdx_sample *sdx_sample(void);
#endif
