/* SPDX-License-Identifier: Apache-2.0
 * Discrete Fourier transforms of one line of complex values, in float or double. */
#ifndef SDX_OPS_FFT_H
#define SDX_OPS_FFT_H

#include "ops/op.h"

enum { SDX_FFT_FACTORS_MOST = 32 };

/* Made by sdx_fft_init, in the plan's memory. Values are pairs of the type's reals. */
struct sdx_fft {
    int64_t n;
    int dtype; /* SDX_F32 or SDX_F64: of lines and arithmetic */
    int count_factors;
    int8_t factors[SDX_FFT_FACTORS_MOST];
    const void *turns; /* stage after stage: [factor - 1, rest - 1] of e^(2 pi i j k / (...)) */
    const void
        *roots; /* odd factors, one after another: cos and sin of 2 pi j / factor, j < factor */
    /* A length with a prime factor over some: Bluestein's chirp, in double, through a power of two.
     */
    const struct sdx_fft *power; /* NULL: the factors above */
    const double *chirp;         /* e^(-pi i k^2 / n) */
    const double *other;         /* transform of the conjugate chirp */
};

SDX_MUST_CHECK enum sdx_status sdx_fft_init(struct sdx_prepare *px, int64_t n, int dtype,
                                            struct sdx_fft *f);
size_t sdx_fft_line(const struct sdx_fft *f); /* bytes of a line */
size_t sdx_fft_work(const struct sdx_fft *f); /* bytes of work space */
/* line[k] becomes the sum over j of line[j] e^(-2 pi i j k / n); +2 for `inverse`, without 1 / n.
 */
void sdx_fft_run(const struct sdx_fft *f, void *line, void *work, bool inverse);
#endif
