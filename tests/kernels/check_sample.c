/* SPDX-License-Identifier: Apache-2.0
 * Checks of sample.h against the definition in doubles. */
#include "kernelcheck.h"
#include "kernels/sample.h"

enum { BLOCK = SDX_SAMPLE_BLOCK };
static double cubic(double d)
{
    const double a = -0.75;
    d = fabs(d);
    return d <= 1 ? ((a + 2) * d - (a + 3)) * d * d + 1 : ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
}
static double weight_of(int taps, double distance)
{
    return taps == 1 ? 1 : taps == 2 ? 1 - fabs(distance) : cubic(distance);
}
/* `plane` in steps of `step` numbers */
static double sampled(const struct sdx_sample_plane *p, const float *plane, int64_t step, double x,
                      double y)
{
    double sum = 0;
    if (p->border && p->taps < 4) {
        if (x < (double)p->first || x > p->width - 1 - (double)p->first)
            x = fmin(fmax(x, 0), p->width - 1);
        if (y < (double)p->first || y > p->height - 1 - (double)p->first)
            y = fmin(fmax(y, 0), p->height - 1);
    }
    const int64_t x0 = (int64_t)floor(x) - p->taps / 4, y0 = (int64_t)floor(y) - p->taps / 4;
    for (int64_t j = y0; j < y0 + p->taps; j++)
        for (int64_t i = x0; i < x0 + p->taps; i++) {
            const bool inside = i >= 0 && i < p->width && j >= 0 && j < p->height;
            if (!inside && !p->border) continue;
            const int64_t row = j < 0 ? 0 : j < p->height ? j : p->height - 1;
            const int64_t column = i < 0 ? 0 : i < p->width ? i : p->width - 1;
            sum += weight_of(p->taps, x - (double)i) * weight_of(p->taps, y - (double)j) *
                   (double)plane[(row * p->width + column) * step];
        }
    return sum;
}
static void check_plane(struct sdx_sample_plane p, int64_t n, int64_t channels)
{
    const struct sdx_sample *s = sdx_sample();
    const int64_t lanes = sdx_kernel_tables()->block.lanes, taps = (int64_t)p.taps * p.taps;
    const int64_t pixels = (int64_t)p.width * p.height;
    float *pairs = guarded((size_t)n * 8, 4),
          *blocked = blocked_tensor(1, lanes, pixels + 1, lanes);
    float *plane = guarded((size_t)(channels * pixels) * 4, 4);
    float *out = guarded((size_t)(channels * n) * 4, 4),
          *out_lanes = guarded((size_t)(n * lanes) * 4, 4);
    float x[BLOCK] = {0}, y[BLOCK] = {0}, weight[16 * BLOCK];
    int32_t offset[16 * BLOCK];
    const float scale[] = {(float)p.width / 2, (float)p.height / 2};
    const float shift[] = {(float)(p.width - 1) / 2, (float)(p.height - 1) / 2};
    for (int64_t i = 0; i < 2 * n; i++)
        pairs[i] = random_float(-1.5f, 1.5f);
    if (n > 5) {
        pairs[3] = NAN;
        pairs[6] = INFINITY;
        pairs[9] = 0;
    }
    for (int64_t i = 0; i < channels * pixels; i++)
        plane[i] = random_float(-1, 1);
    s->f32_places(pairs, scale, shift, p.taps == 1, n, x, y);
    for (int64_t i = 0; i < 2 * n; i++) {
        double want = (float)((double)pairs[i] * (double)scale[i % 2] + (double)shift[i % 2]);
        want = want != want ? -1e9 : fmin(fmax(want, -1e9), 1e9);
        if (p.taps == 1) want = nearbyint(want);
        const double got = (i % 2 ? y : x)[i / 2];
        expect(got == want, "place of %g: %.9g, expected %.9g", (double)pairs[i], got, want);
    }
    p.none = -1;
    s->f32_taps(&p, x, y, n, offset, weight);
    s->f32_gather(plane, pixels, channels, offset, weight, taps, n, out, n);
    for (int64_t i = 0; i < channels * n; i++) {
        const double want = sampled(&p, plane + i / n * pixels, 1, x[i % n], y[i % n]);
        expect(fabs(out[i] - want) <= 1e-6, "%d taps at %g, %g: %.9g, expected %.9g", p.taps,
               (double)x[i % n], (double)y[i % n], (double)out[i], want);
    }
    p.none = (int32_t)pixels;
    for (int64_t i = 0; i < lanes; i++)
        blocked[pixels * lanes + i] = 0;
    s->f32_taps(&p, x, y, n, offset, weight);
    s->f32_lanes(blocked, offset, weight, taps, n, out_lanes);
    for (int64_t i = 0; i < lanes * n; i++) {
        const double want = sampled(&p, blocked + i % lanes, lanes, x[i / lanes], y[i / lanes]);
        expect(fabs(out_lanes[i] - want) <= 1e-6, "lanes, %d taps at %g, %g: %.9g, expected %.9g",
               p.taps, (double)x[i / lanes], (double)y[i / lanes], (double)out_lanes[i], want);
    }
    guards_intact();
    guards_release();
}
void check_sample(void)
{
    for (int taps = 1; taps <= 4; taps *= 2)
        for (int border = 0; border < 2; border++)
            for (int32_t size = 1; size < 20; size += 3)
                for (int64_t n = 1; n <= BLOCK; n += n < 35 ? 1 : 29)
                    check_plane((struct sdx_sample_plane){taps, size, 1 + size / 2, border != 0, -1,
                                                          n % 2 ? 0 : -0.5f},
                                n, 1 + n % 3);
}

struct timed {
    struct sdx_sample_plane p;
    float *plane, *out;
    float pairs[2 * BLOCK];
    int64_t lanes;
};
static void timed_run(void *arg)
{
    struct timed *t = arg;
    const struct sdx_sample *s = sdx_sample();
    const float scale[] = {32, 32}, shift[] = {31.5f, 31.5f};
    float x[BLOCK], y[BLOCK], weight[16 * BLOCK];
    int32_t offset[16 * BLOCK];
    const int64_t taps = (int64_t)t->p.taps * t->p.taps;
    s->f32_places(t->pairs, scale, shift, false, BLOCK, x, y);
    s->f32_taps(&t->p, x, y, BLOCK, offset, weight);
    if (t->lanes)
        s->f32_lanes(t->plane, offset, weight, taps, BLOCK, t->out);
    else
        s->f32_gather(t->plane, 4096, 16, offset, weight, taps, BLOCK, t->out, BLOCK);
}
double bench_sample(void)
{
    double total = 0, outputs = 0;
    for (int form = 0; form < 4; form++) {
        const int64_t lanes = form & 1 ? sdx_kernel_tables()->block.lanes : 0;
        struct timed t = {.p = {form < 2 ? 2 : 4, 64, 64, true, -1, 0}, .lanes = lanes};
        t.plane = blocked_tensor(1, 16, 4097, 16);
        t.out = guarded(16 * BLOCK * 4, 0);
        for (int i = 0; i < 2 * BLOCK; i++)
            t.pairs[i] = random_float(-1, 1);
        const double ns = best_ns(timed_run, &t), count = BLOCK * (lanes ? (double)lanes : 16);
        fprintf(stderr, "  %s, %d x %d taps: %.2f ns\n", lanes ? "lanes" : "gather", t.p.taps,
                t.p.taps, ns / count);
        total += ns;
        outputs += count;
        guards_release();
    }
    return total / outputs;
}
