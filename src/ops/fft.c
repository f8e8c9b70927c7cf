/* SPDX-License-Identifier: Apache-2.0
 * Lengths of small factors by kernels/fft_lanes.h, or by its stages on numbers where there are few
 * lines; lengths with a large prime factor by Bluestein's chirp, in double. */
#include "ops/fft.h"

#include <math.h>

static const double pi = 3.14159265358979323846;

#define T            float
#define V            float
#define SUFFIX(name) name##_f32
#include "kernels/fft_tmpl.h"
#undef T
#undef V
#undef SUFFIX

#define T            double
#define V            double
#define SUFFIX(name) name##_f64
#include "kernels/fft_tmpl.h"
#undef T
#undef V
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
static bool find_factors(int64_t n, struct sdx_fft_stages *f)
{
    *f = (struct sdx_fft_stages){.n = n};
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
    for (int64_t p = 3; p <= SDX_FFT_PRIME_MOST && n > 1; p += 2)
        for (; n % p == 0; n /= p)
            f->factors[f->count_factors++] = (int8_t)p;
    return n == 1;
}

static enum sdx_status init_factors(struct sdx_prepare *px, int dtype, struct sdx_fft_stages *f)
{
    int64_t count = 0, count_roots = 0, rest = f->n, l = 1;
    for (int i = 0; i < f->count_factors; i++) {
        rest /= f->factors[i];
        count += (f->factors[i] - 1) * (rest - 1);
        if (f->factors[i] & 1) count_roots += f->factors[i];
    }
    size_t size = 2 * (dtype == SDX_F32 ? sizeof(float) : sizeof(double));
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
                put_root(dtype, turns, at++, j * k * l, f->n);
        for (int64_t j = 0; (p & 1) && j < p; j++)
            put_root(dtype, roots, at_root++, j, p);
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
    double *chirp = sdx_prepare_alloc(px, (size_t)f->n * 2 * sizeof *chirp);
    double *other = sdx_prepare_alloc(px, (size_t)m * 2 * sizeof *other);
    double *work = sdx_prepare_alloc(px, (size_t)m * 2 * sizeof *work);
    if (!chirp || !other || !work) return SDX_FAIL_MEMORY(px->cx);
    find_factors(m, &f->stages);
    SDX_TRY(init_factors(px, SDX_F64, &f->stages));
    for (int64_t k = 0; k < f->n; k++) {
        root_of(k * k % (2 * f->n), 2 * f->n, chirp + 2 * k);
        int64_t mirror = k ? m - k : 0;
        other[2 * k] = other[2 * mirror] = chirp[2 * k];
        other[2 * k + 1] = other[2 * mirror + 1] = chirp[2 * k + 1];
        chirp[2 * k + 1] = -chirp[2 * k + 1];
    }
    transform_f64(&f->stages, other, work, false);
    f->dtype = SDX_F64;
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
    if (!find_factors(n, &f->stages)) return init_chirp(px, f);
    return init_factors(px, dtype, &f->stages);
}

int64_t sdx_fft_lanes(const struct sdx_fft *f, int64_t count)
{
    const struct sdx_fft_kernels *kernels = sdx_fft_kernels();
    const int64_t lanes = f->dtype == SDX_F32 ? kernels->lanes_f32 : kernels->lanes_f64;
    return count >= lanes / 2 ? lanes : 1;
}

/* Numbers of the lines: those of a chirp are as long as its transform. */
static size_t numbers_of(const struct sdx_fft *f, int64_t lanes)
{
    return ((size_t)f->stages.n * 2 * (size_t)lanes + 15) / 16 * 16;
}

static size_t line_bytes(const struct sdx_fft *f, int64_t lanes)
{
    return numbers_of(f, lanes) * (f->dtype == SDX_F32 ? sizeof(float) : sizeof(double));
}

size_t sdx_fft_size(const struct sdx_fft *f, int64_t lanes)
{
    return 2 * line_bytes(f, lanes);
}

/* ---- between memory and lanes ---- */

#define MOVES(name, X, T)                                                                          \
    static void read_##name(const struct sdx_fft_values *from, int64_t lanes, int64_t count,       \
                            T *to)                                                                 \
    {                                                                                              \
        const X *x = from->x, *window = from->window;                                              \
        for (int64_t i = 0; i < count; i++) {                                                      \
            const T weight = window ? (T)window[i] : 1;                                            \
            for (int64_t c = 0; c < from->parts; c++)                                              \
                for (int64_t l = 0; l < from->lines; l++)                                          \
                    to[(2 * i + c) * lanes + l] =                                                  \
                        (T)x[(from->first[l] + i * from->step) * from->parts + c] * weight;        \
        }                                                                                          \
    }                                                                                              \
    static void write_##name(const struct sdx_fft_values *to, int64_t lanes, int64_t count,        \
                             double scale, const T *from)                                          \
    {                                                                                              \
        X *x = to->x;                                                                              \
        for (int64_t l = 0; l < to->lines; l++)                                                    \
            for (int64_t i = 0; i < count; i++)                                                    \
                for (int64_t c = 0; c < to->parts; c++)                                            \
                    x[(to->first[l] + i * to->step) * to->parts + c] =                             \
                        (X)((double)from[(2 * i + c) * lanes + l] * scale);                        \
    }
MOVES(narrow, float, float)
MOVES(mixed, float, double)
MOVES(wide, double, double)

void sdx_fft_read(const struct sdx_fft *f, int64_t lanes, const struct sdx_fft_values *from,
                  int64_t count, void *lines)
{
    memset(lines, 0, line_bytes(f, lanes));
    if (from->dtype == SDX_F64)
        read_wide(from, lanes, count, lines);
    else if (f->dtype == SDX_F64)
        read_mixed(from, lanes, count, lines);
    else
        read_narrow(from, lanes, count, lines);
}

void sdx_fft_write(const struct sdx_fft *f, int64_t lanes, const struct sdx_fft_values *to,
                   int64_t count, double scale, const void *lines)
{
    if (to->dtype == SDX_F64)
        write_wide(to, lanes, count, scale, lines);
    else if (f->dtype == SDX_F64)
        write_mixed(to, lanes, count, scale, lines);
    else
        write_narrow(to, lanes, count, scale, lines);
}

/* ---- transforms ---- */

static void transform(const struct sdx_fft *f, int64_t lanes, void *lines, bool inverse)
{
    void *work = (char *)lines + line_bytes(f, lanes);
    const struct sdx_fft_kernels *kernels = sdx_fft_kernels();
    if (f->dtype == SDX_F32)
        (lanes == 1 ? transform_f32 : kernels->f32)(&f->stages, lines, work, inverse);
    else
        (lanes == 1 ? transform_f64 : kernels->f64)(&f->stages, lines, work, inverse);
}

/* The first `end` values times w; imaginary parts times `before` and `after` it. */
static void times(double *x, int64_t lanes, int64_t end, const double *w, double before,
                  double after)
{
    for (int64_t i = 0; i < end; i++, x += 2 * lanes, w += 2)
        for (int64_t l = 0; l < lanes; l++) {
            const double re = x[l], im = before * x[lanes + l];
            x[l] = re * w[0] - im * w[1];
            x[lanes + l] = after * (re * w[1] + im * w[0]);
        }
}

void sdx_fft_run(const struct sdx_fft *f, int64_t lanes, void *lines, bool inverse)
{
    if (!f->chirp) {
        transform(f, lanes, lines, inverse);
        return;
    }
    double *x = lines, sign = inverse ? -1 : 1; /* the conjugate's transform, conjugated */
    const int64_t m = f->stages.n;
    times(x, lanes, f->n, f->chirp, sign, 1);
    memset(x + 2 * f->n * lanes, 0, (size_t)(2 * (m - f->n) * lanes) * sizeof *x);
    transform(f, lanes, x, false);
    times(x, lanes, m, f->other, 1, 1);
    transform(f, lanes, x, true);
    times(x, lanes, f->n, f->chirp, 1, sign);
    for (int64_t i = 0; i < 2 * f->n * lanes; i++)
        x[i] /= (double)m;
}
