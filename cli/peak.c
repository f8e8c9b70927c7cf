/* SPDX-License-Identifier: Apache-2.0
 * The arithmetic limit of this machine: independent chains of fused multiply-adds in registers, of
 * the widest vectors the processor has (a mask by SDX_CPU does not count: the limit is the
 * machine's). Twelve chains hide a latency of 4 to 5 cycles on two units. */
#include "peak.h"
#include "cli.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { CHAINS = 12, STEPS = 4096, THREADS_MAX = 256 };
static const double seconds = 0.15;

/* Runs STEPS rounds over all chains; returns something that depends on each. `width` gets the
 * floats of a vector. */
typedef float burst_fn(float start, int *width);

static float burst_plain(float start, int *width)
{
    float x[CHAINS][4], sum = 0;
    *width = 4;
    for (int k = 0; k < CHAINS; k++)
        for (int j = 0; j < 4; j++)
            x[k][j] = start + (float)k;
    for (int i = 0; i < STEPS; i++)
        for (int k = 0; k < CHAINS; k++)
            for (int j = 0; j < 4; j++)
                x[k][j] = x[k][j] * 0.999f + 0.001f;
    for (int k = 0; k < CHAINS; k++)
        for (int j = 0; j < 4; j++)
            sum += x[k][j];
    return sum;
}

#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) static float burst_avx2(float start, int *width)
{
    __m256 x[CHAINS], a = _mm256_set1_ps(0.999f), b = _mm256_set1_ps(0.001f);
    float sum = 0;
    *width = 8;
    for (int k = 0; k < CHAINS; k++)
        x[k] = _mm256_set1_ps(start + (float)k);
    for (int i = 0; i < STEPS; i++) {
#pragma GCC unroll 12
        for (int k = 0; k < CHAINS; k++)
            x[k] = _mm256_fmadd_ps(x[k], a, b);
    }
    for (int k = 0; k < CHAINS; k++)
        sum += _mm256_cvtss_f32(x[k]);
    return sum;
}

__attribute__((target("avx512f"))) static float burst_avx512(float start, int *width)
{
    __m512 x[CHAINS], a = _mm512_set1_ps(0.999f), b = _mm512_set1_ps(0.001f);
    float sum = 0;
    *width = 16;
    for (int k = 0; k < CHAINS; k++)
        x[k] = _mm512_set1_ps(start + (float)k);
    for (int i = 0; i < STEPS; i++) {
#pragma GCC unroll 12
        for (int k = 0; k < CHAINS; k++)
            x[k] = _mm512_fmadd_ps(x[k], a, b);
    }
    for (int k = 0; k < CHAINS; k++)
        sum += _mm512_cvtss_f32(x[k]);
    return sum;
}
#endif

static burst_fn *best_burst(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f")) return burst_avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return burst_avx2;
#endif
    return burst_plain;
}

struct meter {
    burst_fn *burst;
    _Atomic double *rate; /* all threads add theirs */
};

static void *measure(void *argument)
{
    const struct meter *meter = argument;
    int width = 0;
    float value = meter->burst(1.0f, &width); /* wakes the units */
    double begin = sdx_cli_now_ms(), now = begin;
    int64_t bursts = 0;
    for (; now - begin < seconds * 1e3; now = sdx_cli_now_ms())
        for (int i = 0; i < 16; i++, bursts++)
            value = meter->burst(value * 1e-3f, &width);
    double flops = (double)bursts * STEPS * CHAINS * 2 * width;
    double rate = isfinite(value) ? flops / ((now - begin) * 1e6) : 0;
    double old = atomic_load(meter->rate);
    while (!atomic_compare_exchange_weak(meter->rate, &old, old + rate)) {
    }
    return NULL;
}

double sdx_cli_peak_gflops(int threads)
{
    _Atomic double rate = 0;
    struct meter meter = {best_burst(), &rate};
    pthread_t others[THREADS_MAX];
    int started = 0;
    while (started < threads - 1 && started < THREADS_MAX &&
           pthread_create(&others[started], NULL, measure, &meter) == 0)
        started++;
    measure(&meter);
    for (int i = 0; i < started; i++)
        pthread_join(others[i], NULL);
    return atomic_load(&rate);
}
