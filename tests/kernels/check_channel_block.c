/* SPDX-License-Identifier: Apache-2.0
 * Check of channel_block.h: equal to plain loops. */
#include "kernels/conv_block.h"
#include "kernelcheck.h"

static float *random_lanes(int64_t pixels, float lo, float hi)
{
    const int64_t n = pixels * sdx_block_lanes();
    float *x = guarded((size_t)n * sizeof *x, 0);
    for (int64_t i = 0; i < n; i++)
        x[i] = random_float(lo, hi);
    return x;
}

void check_channel_block(void)
{
    const struct sdx_channel_block *t = &sdx_kernel_tables()->channel;
    const int64_t lanes = sdx_block_lanes();
    for (int64_t pixels = 0; pixels < 70; pixels++) {
        float *x = random_lanes(pixels, -3, 3), *s = random_lanes(1, -2, 2);
        float *b = random_lanes(1, -1, 1), *y = random_lanes(pixels, 0, 1);
        float *m = random_lanes(pixels, 0, 1), *a = random_lanes(pixels, 0, 1);
        t->f32_affine(x, s, b, y, pixels);
        t->f32_mul(x, s, m, pixels);
        t->f32_add(x, b, a, pixels);
        for (int64_t i = 0; i < pixels * lanes; i++) {
            const float product = x[i] * s[i % lanes], sum = x[i] + b[i % lanes];
            expect(same_bits(m[i], product), "mul: element %lld is %g", (long long)i, (double)m[i]);
            expect(same_bits(a[i], sum), "add: element %lld is %g", (long long)i, (double)a[i]);
            expect(same_bits(y[i], product + b[i % lanes]), "affine: element %lld is %g",
                   (long long)i, (double)y[i]);
        }
        guards_intact();
        guards_release();
    }
}

struct bench_channel {
    float *x, *s;
    int64_t pixels;
};

static void run_bench(void *arg)
{
    const struct bench_channel *b = arg;
    sdx_kernel_tables()->channel.f32_mul(b->x, b->s, b->x, b->pixels);
}

double bench_channel_block(void)
{
    struct bench_channel b = {random_lanes(512, -1, 1), random_lanes(1, -1, 1), 512};
    const double ns = best_ns(run_bench, &b) / (double)(b.pixels * sdx_block_lanes());
    guards_release();
    return ns;
}
