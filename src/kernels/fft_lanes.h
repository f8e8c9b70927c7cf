/* SPDX-License-Identifier: Apache-2.0
 * Discrete Fourier transforms by factors 4, 2 and odd primes (Stockham's order, no reversal of
 * bits) of several lines at a time, one in each lane of a vector. A line's result does not depend
 * on the set or on its lane: it is that of the scalar transform (ops/fft.c) to the last bit. */
#ifndef SDX_KERNELS_FFT_LANES_H
#define SDX_KERNELS_FFT_LANES_H

#include <stdbool.h>
#include <stdint.h>

enum { SDX_FFT_FACTORS_MOST = 32, SDX_FFT_PRIME_MOST = 61, SDX_FFT_LANES_MOST = 16 };

/* What is known of a length whose prime factors are all small. */
struct sdx_fft_stages {
    int64_t n;
    int count_factors;
    int8_t factors[SDX_FFT_FACTORS_MOST];
    const void *turns; /* stage after stage: [factor - 1, rest - 1] of e^(2 pi i j k / (...)) */
    const void
        *roots; /* odd factors, one after another: cos and sin of 2 pi j / factor, j < factor */
};

/* lines[k] becomes the sum over j of lines[j] e^(-2 pi i j k / n), +2 for `inverse`, without 1 / n.
 * lines, work: [n][2][lanes]; roots of the same type. */
struct sdx_fft_kernels {
    int64_t lanes_f32, lanes_f64;
    void (*f32)(const struct sdx_fft_stages *f, float *lines, float *work, bool inverse);
    void (*f64)(const struct sdx_fft_stages *f, double *lines, double *work, bool inverse);
};

const struct sdx_fft_kernels *sdx_fft_kernels(void);
#endif
