/* SPDX-License-Identifier: Apache-2.0
 * Fourier transforms: against sums in long double, and lane for lane equal to the generic set. */
#include "kernelcheck.h"

enum { MOST = 640 };

static const int8_t lengths[][8] = {{1},          {2},
                                    {3},          {4},
                                    {5},          {2, 4},
                                    {4, 4},       {61},
                                    {2, 3},       {4, 3, 5},
                                    {4, 4, 5, 5}, {2, 4, 4, 4, 4},
                                    {7, 11},      {4, 4, 2, 4, 5}};

static long double root(int64_t k, int64_t n, int part)
{
    const long double angle = 2 * acosl(-1.0L) * (long double)(k % n) / (long double)n;
    return part ? sinl(angle) : cosl(angle);
}

/* The tables of a length, in both types. */
struct tables {
    struct sdx_fft_stages narrow, wide;
    float turns_f32[4 * MOST], roots_f32[2 * MOST];
    double turns[4 * MOST], roots[2 * MOST];
};

static void make(const int8_t factors[8], struct tables *t)
{
    struct sdx_fft_stages s = {.n = 1};
    for (int i = 0; i < 8 && factors[i]; i++) {
        if (factors[i] == 1) continue;
        s.factors[s.count_factors++] = factors[i];
        s.n *= factors[i];
    }
    int64_t at = 0, at_root = 0, rest = s.n, l = 1;
    for (int i = 0; i < s.count_factors; i++) {
        const int64_t p = s.factors[i];
        rest /= p;
        for (int64_t j = 1; j < p; j++)
            for (int64_t k = 1; k < rest; k++)
                for (int c = 0; c < 2; c++)
                    t->turns[at++] = (double)root(j * k * l, s.n, c);
        for (int64_t j = 0; (p & 1) && j < p; j++)
            for (int c = 0; c < 2; c++)
                t->roots[at_root++] = (double)root(j, p, c);
        l *= p;
    }
    for (int64_t i = 0; i < at; i++)
        t->turns_f32[i] = (float)t->turns[i];
    for (int64_t i = 0; i < at_root; i++)
        t->roots_f32[i] = (float)t->roots[i];
    t->narrow = t->wide = s;
    t->narrow.turns = t->turns_f32;
    t->narrow.roots = t->roots_f32;
    t->wide.turns = t->turns;
    t->wide.roots = t->roots;
}

#define CHECK(T, type, bound)                                                                      \
    static void check_##type(const struct sdx_fft_stages *f, bool inverse)                         \
    {                                                                                              \
        const struct sdx_fft_kernels *now = sdx_fft_kernels();                                     \
        struct sdx_fft_kernels plain;                                                              \
        sdx_fft_init_generic(&plain);                                                              \
        const int64_t n = f->n, lanes = now->lanes_##type, few = plain.lanes_##type;               \
        const size_t size = (size_t)(2 * n) * sizeof(T);                                           \
        T *x = guarded(size, sizeof(T)), *y = guarded(size * (size_t)lanes, sizeof(T));            \
        T *z = guarded(size * (size_t)few, 0), *work = guarded(size * (size_t)lanes, sizeof(T));   \
        const int64_t lane = random_int(0, lanes - 1);                                             \
        for (int64_t i = 0; i < 2 * n * lanes; i++)                                                \
            y[i] = (T)random_float(-1, 1);                                                         \
        for (int64_t i = 0; i < 2 * n; i++) {                                                      \
            x[i] = y[i * lanes + lane];                                                            \
            for (int64_t l = 0; l < few; l++)                                                      \
                z[i * few + l] = x[i];                                                             \
        }                                                                                          \
        now->type(f, y, work, inverse);                                                            \
        plain.type(f, z, work, inverse);                                                           \
        for (int64_t k = 0; k < n; k++) {                                                          \
            long double re = 0, im = 0;                                                            \
            for (int64_t j = 0; j < n; j++) {                                                      \
                const long double c = root(j * k, n, 0);                                           \
                const long double s = (inverse ? 1 : -1) * root(j * k, n, 1);                      \
                re += x[2 * j] * c - x[2 * j + 1] * s;                                             \
                im += x[2 * j] * s + x[2 * j + 1] * c;                                             \
            }                                                                                      \
            const T *found = y + 2 * k * lanes + lane;                                             \
            expect(fabsl(found[0] - re) < (bound) && fabsl(found[lanes] - im) < (bound),           \
                   "%lld values, inverse %d, at %lld: %g %g, expected %Lg %Lg", (long long)n,      \
                   inverse, (long long)k, (double)found[0], (double)found[lanes], re, im);         \
            expect(found[0] == z[2 * k * few] && found[lanes] == z[(2 * k + 1) * few],             \
                   "%lld values at %lld: not the generic set's", (long long)n, (long long)k);      \
        }                                                                                          \
        guards_intact();                                                                           \
        guards_release();                                                                          \
    }
CHECK(float, f32, 1e-4L)
CHECK(double, f64, 1e-13L)

void check_fft_lanes(void)
{
    static struct tables t;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        make(lengths[i], &t);
        for (int inverse = 0; inverse < 2; inverse++) {
            check_f32(&t.narrow, inverse);
            check_f64(&t.wide, inverse);
        }
    }
}

static void timed(void *data)
{
    struct tables *t = data;
    static double lines[2 * MOST * SDX_FFT_LANES_MOST], work[2 * MOST * SDX_FFT_LANES_MOST];
    sdx_fft_kernels()->f64(&t->wide, lines, work, false);
}

double bench_fft_lanes(void)
{
    static struct tables t;
    make(lengths[11], &t);
    return best_ns(timed, &t) / (double)(t.wide.n * sdx_fft_kernels()->lanes_f64);
}
