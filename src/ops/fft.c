/* SPDX-License-Identifier: Apache-2.0
 * Transforms by factors 4, 2 and odd primes (Stockham's order, no reversal of bits), in the type of
 * the values; lengths with a large prime factor by Bluestein's chirp, in double. */
#include "ops/fft.h"

#include <math.h>

static const double pi = 3.14159265358979323846;

enum { PRIME_MOST = 61 };

#define T            float
#define SUFFIX(name) name##_f32
#include "ops/fft_tmpl.h"
#undef T
#undef SUFFIX

#define T            double
#define SUFFIX(name) name##_f64
#include "ops/fft_tmpl.h"
#undef T
#undef SUFFIX

/* cos and sin of 2 pi k / n, 0 <= k < n, from an angle of at most an eighth turn: quarters are
 * exact. */
static void root_of(int64_t k, int64_t n, double root[2])
{
    int64_t eighth = 8 * k / n, rest = 8 * k - eighth * n; /* of n eighths */
    bool is_mirrored = eighth & 1;
    double angle = pi / 4 * (double)(is_mirrored ? n - rest : rest) / (double)n;
    double near = cos(angle), far = sin(angle);
    int64_t quarter = (eighth + 1) / 2 & 3; /* of the axis the angle is taken from */
    if (is_mirrored) far = -far;
    root[0] = quarter == 0 ? near : quarter == 1 ? -far : quarter == 2 ? -near : far;
    root[1] = quarter == 0 ? far : quarter == 1 ? near : quarter == 2 ? -far : -near;
}

static void put_root(int dtype, void *to, int64_t at, int64_t k, int64_t n)
{
    double root[2];
    root_of(k, n, root);
    for (int c = 0; c < 2; c++)
        if (dtype == SDX_F32)
            ((float *)to)[2 * at + c] = (float)root[c];
        else
            ((double *)to)[2 * at + c] = root[c];
}

/* Factors into f; returns whether all are small. */
static bool find_factors(int64_t n, struct sdx_fft *f)
{
    while (n % 4 == 0) {
        f->factors[f->count_factors++] = 4;
        n /= 4;
    }
    if (n % 2 == 0) {
        f->factors[f->count_factors++] = 2;
        n /= 2;
        int8_t first = f->factors[0];
        f->factors[0] = 2;
        f->factors[f->count_factors - 1] = first;
    }
    for (int64_t p = 3; p <= PRIME_MOST && n > 1; p += 2)
        for (; n % p == 0; n /= p)
            f->factors[f->count_factors++] = (int8_t)p;
    return n == 1;
}

static enum sdx_status init_factors(struct sdx_prepare *px, struct sdx_fft *f)
{
    int64_t count = 0, count_roots = 0, rest = f->n, l = 1;
    for (int i = 0; i < f->count_factors; i++) {
        rest /= f->factors[i];
        count += (f->factors[i] - 1) * (rest - 1);
        if (f->factors[i] & 1) count_roots += f->factors[i];
    }
    size_t size = 2 * (f->dtype == SDX_F32 ? sizeof(float) : sizeof(double));
    void *turns = sdx_prepare_alloc(px, (size_t)(count ? count : 1) * size);
    void *roots = sdx_prepare_alloc(px, (size_t)(count_roots ? count_roots : 1) * size);
    if (!turns || !roots) return SDX_FAIL_MEMORY(px->cx);
    int64_t at = 0, at_root = 0;
    rest = f->n;
    for (int i = 0; i < f->count_factors; i++) {
        int64_t p = f->factors[i];
        rest /= p;
        for (int64_t j = 1; j < p; j++)
            for (int64_t k = 1; k < rest; k++)
                put_root(f->dtype, turns, at++, j * k * l, f->n);
        for (int64_t j = 0; (p & 1) && j < p; j++)
            put_root(f->dtype, roots, at_root++, j, p);
        l *= p;
    }
    f->turns = turns;
    f->roots = roots;
    return SDX_OK;
}

static enum sdx_status init_chirp(struct sdx_prepare *px, struct sdx_fft *f)
{
    int64_t m = 1;
    while (m < 2 * f->n - 1)
        m *= 2;
    struct sdx_fft *power = SDX_PREPARE_NEW(px, struct sdx_fft);
    double *chirp = sdx_prepare_alloc(px, (size_t)f->n * 2 * sizeof *chirp);
    double *other = sdx_prepare_alloc(px, (size_t)m * 2 * sizeof *other);
    double *work = sdx_prepare_alloc(px, (size_t)m * 2 * sizeof *work);
    if (!power || !chirp || !other || !work) return SDX_FAIL_MEMORY(px->cx);
    SDX_TRY(sdx_fft_init(px, m, SDX_F64, power));
    for (int64_t k = 0; k < f->n; k++) {
        root_of(k * k % (2 * f->n), 2 * f->n, chirp + 2 * k);
        int64_t mirror = k ? m - k : 0;
        other[2 * k] = other[2 * mirror] = chirp[2 * k];
        other[2 * k + 1] = other[2 * mirror + 1] = chirp[2 * k + 1];
        chirp[2 * k + 1] = -chirp[2 * k + 1];
    }
    transform_f64(power, other, work, false);
    f->power = power;
    f->chirp = chirp;
    f->other = other;
    return SDX_OK;
}

enum sdx_status sdx_fft_init(struct sdx_prepare *px, int64_t n, int dtype, struct sdx_fft *f)
{
    *f = (struct sdx_fft){.n = n, .dtype = dtype};
    if (n > INT64_C(1) << 30)
        return SDX_FAIL(px->cx, SDX_NOT_SUPPORTED, "%.*s: transform of %lld values",
                        SDX_STR_ARG(px->node->op_type), (long long)n);
    return find_factors(n, f) ? init_factors(px, f) : init_chirp(px, f);
}

size_t sdx_fft_line(const struct sdx_fft *f)
{
    return (size_t)f->n * 2 * (f->dtype == SDX_F32 ? sizeof(float) : sizeof(double));
}

size_t sdx_fft_work(const struct sdx_fft *f)
{
    return f->power ? (size_t)f->power->n * 4 * sizeof(double) : sdx_fft_line(f);
}

static void times(double *x, const double *w)
{
    double re = x[0], im = x[1];
    x[0] = re * w[0] - im * w[1];
    x[1] = re * w[1] + im * w[0];
}

static void run_chirp(const struct sdx_fft *f, void *line, double *x, bool inverse)
{
    int64_t m = f->power->n;
    double *work = x + 2 * m, sign = inverse ? -1 : 1;
    float *narrow = f->dtype == SDX_F32 ? line : NULL;
    double *wide = line;
    memset(x, 0, (size_t)m * 2 * sizeof *x);
    for (int64_t i = 0; i < f->n; i++) { /* the inverse is the conjugate's transform, conjugated */
        x[2 * i] = narrow ? narrow[2 * i] : wide[2 * i];
        x[2 * i + 1] = sign * (narrow ? narrow[2 * i + 1] : wide[2 * i + 1]);
        times(x + 2 * i, f->chirp + 2 * i);
    }
    transform_f64(f->power, x, work, false);
    for (int64_t i = 0; i < m; i++)
        times(x + 2 * i, f->other + 2 * i);
    transform_f64(f->power, x, work, true);
    for (int64_t i = 0; i < f->n; i++) {
        times(x + 2 * i, f->chirp + 2 * i);
        double re = x[2 * i] / (double)m, im = sign * x[2 * i + 1] / (double)m;
        if (narrow) {
            narrow[2 * i] = (float)re;
            narrow[2 * i + 1] = (float)im;
        } else {
            wide[2 * i] = re;
            wide[2 * i + 1] = im;
        }
    }
}

void sdx_fft_run(const struct sdx_fft *f, void *line, void *work, bool inverse)
{
    if (f->power)
        run_chirp(f, line, work, inverse);
    else if (f->dtype == SDX_F32)
        transform_f32(f, line, work, inverse);
    else
        transform_f64(f, line, work, inverse);
}
