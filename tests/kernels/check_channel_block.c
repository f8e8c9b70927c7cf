/* SPDX-License-Identifier: Apache-2.0
 * Checks of channel_block.h: equal to plain loops. */
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

/* Each lane from a source drawn by lot, or from none. */
static void check_pick(int64_t count, int64_t pixels)
{
    const int64_t lanes = sdx_block_lanes();
    struct sdx_channel_source sources[16] = {0};
    int64_t giver[16];
    float *y = random_lanes(pixels, 5, 6);
    for (int64_t k = 0; k < count; k++)
        sources[k].x = random_lanes(pixels, -3, 3);
    for (int64_t i = 0; i < lanes; i++) {
        giver[i] = random_int(-1, count - 1);
        if (giver[i] < 0) continue;
        sources[giver[i]].from[i] = (int32_t)random_int(0, lanes - 1);
        sources[giver[i]].take[i] = -1;
    }
    sdx_kernel_tables()->channel.f32_pick(sources, count, y, pixels);
    for (int64_t at = 0; at < pixels * lanes; at++) {
        const int64_t i = at % lanes;
        const struct sdx_channel_source *s = giver[i] < 0 ? NULL : &sources[giver[i]];
        const float wanted = s ? s->x[at - i + s->from[i]] : 0;
        expect(same_bits(y[at], wanted), "%lld sources: element %lld is %g, expected %g",
               (long long)count, (long long)at, (double)y[at], (double)wanted);
    }
    guards_intact();
    guards_release();
}

/* Against sums in double; tail lanes hold what would spoil the sums. */
static void check_norm(int64_t channels, int64_t pixels)
{
    const int64_t lanes = sdx_block_lanes(), blocks = (channels + lanes - 1) / lanes;
    const int64_t step = pixels * lanes;
    float *x = random_lanes(pixels * blocks, -3, 5), *y = random_lanes(pixels * blocks, 0, 1);
    float *scale = random_lanes(blocks, -2, 2), *bias = random_lanes(blocks, -1, 1);
    for (int64_t c = channels; c < blocks * lanes; c++)
        for (int64_t p = 0; p < pixels; p++)
            x[c / lanes * step + p * lanes + c % lanes] = NAN;
    const struct sdx_channel_norm norm = {
        .channels = channels, .step = step, .scale = scale, .bias = bias, .epsilon = 1e-3f};
    sdx_kernel_tables()->channel.f32_norm(&norm, x, y, pixels);
    for (int64_t p = 0; p < pixels; p++) {
        double sum = 0, squares = 0;
        for (int64_t c = 0; c < channels; c++)
            sum += x[c / lanes * step + p * lanes + c % lanes];
        const double mean = sum / (double)channels;
        for (int64_t c = 0; c < channels; c++) {
            const double d = x[c / lanes * step + p * lanes + c % lanes] - mean;
            squares += d * d;
        }
        const double factor = 1 / sqrt(squares / (double)channels + 1e-3f);
        for (int64_t c = 0; c < channels; c++) {
            const int64_t at = c / lanes * step + p * lanes + c % lanes;
            const double wanted = (x[at] - mean) * factor * scale[c] + bias[c];
            expect(fabs(y[at] - wanted) < 2e-5, "%lld channels, pixel %lld: %g, expected %g",
                   (long long)channels, (long long)p, (double)y[at], wanted);
        }
    }
    float *alone = random_lanes(pixels * blocks, 0, 1);
    for (int64_t p = 0; p < pixels; p++)
        sdx_kernel_tables()->channel.f32_norm(&norm, x + p * lanes, alone + p * lanes, 1);
    for (int64_t c = 0; c < channels; c++)
        for (int64_t p = 0; p < pixels; p++) {
            const int64_t at = c / lanes * step + p * lanes + c % lanes;
            expect(same_bits(alone[at], y[at]), "a pixel alone is %g, among others %g",
                   (double)alone[at], (double)y[at]);
        }
    guards_intact();
    guards_release();
}

void check_channel_block(void)
{
    for (int64_t channels = 1; channels < 3 * sdx_block_lanes(); channels += 5)
        for (int64_t pixels = 0; pixels < 40; pixels += 1 + pixels / 3)
            check_norm(channels, pixels);
    for (int64_t count = 0; count <= sdx_block_lanes(); count++)
        for (int64_t pixels = 0; pixels < 9; pixels++)
            check_pick(count, pixels);
    const struct sdx_channel_block *t = &sdx_kernel_tables()->channel;
    const int64_t lanes = sdx_block_lanes();
    for (int64_t pixels = 0; pixels < 70; pixels++) {
        float *x = random_lanes(pixels, -3, 3), *s = random_lanes(1, -2, 2);
        float *b = random_lanes(1, -1, 1), *y = random_lanes(pixels, 0, 1);
        float *m = random_lanes(pixels, 0, 1), *a = random_lanes(pixels, 0, 1);
        float *r = random_lanes(pixels, 0, 1);
        t->f32_affine(x, s, b, y, pixels);
        t->f32_mul(x, s, m, pixels);
        t->f32_add(x, b, a, pixels);
        t->f32_prelu(x, s, r, pixels);
        for (int64_t i = 0; i < pixels * lanes; i++) {
            const float product = x[i] * s[i % lanes], sum = x[i] + b[i % lanes];
            expect(same_bits(m[i], product), "mul: element %lld is %g", (long long)i, (double)m[i]);
            expect(same_bits(r[i], x[i] < 0 ? product : x[i]), "prelu: element %lld is %g",
                   (long long)i, (double)r[i]);
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
