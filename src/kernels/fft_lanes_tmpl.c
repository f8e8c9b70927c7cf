/* SPDX-License-Identifier: Apache-2.0
 * Fourier transforms of as many lines as a vector has lanes. Once an instruction set. */
#include "kernels/fft_lanes.h"

#include "kernels/simd.h"
#include "kernels/tables.h"

typedef vf fft_floats __attribute__((may_alias, aligned(4)));
typedef vd fft_doubles __attribute__((may_alias, aligned(8)));

#define T            float
#define V            fft_floats
#define SUFFIX(name) fft_##name##_f32
#include "kernels/fft_tmpl.h"
#undef T
#undef V
#undef SUFFIX

#define T            double
#define V            fft_doubles
#define SUFFIX(name) fft_##name##_f64
#include "kernels/fft_tmpl.h"
#undef T
#undef V
#undef SUFFIX

static void fft_lines_f32(const struct sdx_fft_stages *f, float *lines, float *work, bool inverse)
{
    fft_transform_f32(f, (fft_floats *)lines, (fft_floats *)work, inverse);
}

static void fft_lines_f64(const struct sdx_fft_stages *f, double *lines, double *work, bool inverse)
{
    fft_transform_f64(f, (fft_doubles *)lines, (fft_doubles *)work, inverse);
}

void SDX_INIT(sdx_fft_init_)(struct sdx_fft_kernels *fft)
{
    *fft = (struct sdx_fft_kernels){LANES, LANES / 2, fft_lines_f32, fft_lines_f64};
}
