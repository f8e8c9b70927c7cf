/* SPDX-License-Identifier: Apache-2.0
 * Discrete Fourier transforms of lines of complex values, in float or double. */
#ifndef SDX_OPS_FFT_H
#define SDX_OPS_FFT_H

#include "kernels/fft_lanes.h"
#include "ops/op.h"

/* Made by sdx_fft_init, in the plan's memory. Values are pairs of the type's reals. */
struct sdx_fft {
    struct sdx_fft_stages stages; /* of n, or of the power of two below */
    int64_t n;
    int dtype; /* SDX_F32 or SDX_F64: of lines and arithmetic */
    /* A length with a large prime factor: Bluestein's chirp, in double, through a power of two. */
    const double *chirp; /* e^(-pi i k^2 / n); NULL: by factors */
    const double *other; /* transform of the conjugate chirp */
};

SDX_MUST_CHECK enum sdx_status sdx_fft_init(struct sdx_prepare *px, int64_t n, int dtype,
                                            struct sdx_fft *f);
/* Where the values of the lines lie: value i of line l is x[(first[l] + i * step) * parts], its
 * imaginary part behind it when there are two. window: NULL or what value i is multiplied by. */
struct sdx_fft_values {
    int dtype; /* SDX_F32 or SDX_F64, as those of the window */
    void *x;
    const void *window;
    int64_t lines, first[SDX_FFT_LANES_MOST], step, parts;
};

/* Lines that sdx_fft_run takes at once, of `count` in all: those of a vector, or one. */
int64_t sdx_fft_lanes(const struct sdx_fft *f, int64_t count);
/* Bytes of lines, [n][2][lanes], and the work space behind them. */
size_t sdx_fft_size(const struct sdx_fft *f, int64_t lanes);
/* lines[i] of lane l = value i of line l, 0 from `count` on and in lanes that have no line. */
void sdx_fft_read(const struct sdx_fft *f, int64_t lanes, const struct sdx_fft_values *from,
                  int64_t count, void *lines);
/* lines[k] becomes the sum over j of lines[j] e^(-2 pi i j k / n); +2 for `inverse`, without 1 / n.
 */
void sdx_fft_run(const struct sdx_fft *f, int64_t lanes, void *lines, bool inverse);
/* The first `count` values of the lines, times scale. */
void sdx_fft_write(const struct sdx_fft *f, int64_t lanes, const struct sdx_fft_values *to,
                   int64_t count, double scale, const void *lines);
#endif
