/* SPDX-License-Identifier: Apache-2.0
 * The limits of this machine that kernels are measured by: multiply-add in registers (f32, and of
 * bytes vpdpbusd or the pairs of maddubs + madd) in its widest vectors, and reading memory with one
 * stream and with four, on 1 thread and on as many as given. Prints the best and the median of
 * several rounds.
 *
 *     peak [THREADS] */
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "worker.h"

enum { ROUNDS = 9, THREADS_MAX = 256, BUFFER = 1 << 28, CHAINS = 10 };

typedef double kernel_fn(const char *buffer); /* does some work; returns how much */
struct limit {
    const char *name, *unit;
    kernel_fn *kernel;
};

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>

/* Chains of `next`, of s, a and b, in registers; `work`: of a vector. */
#define CHAIN_KERNEL(name, isa, vector, begin, a_, b_, next, work)                                 \
    __attribute__((target(isa))) static double name(const char *buffer)                            \
    {                                                                                              \
        (void)buffer;                                                                              \
        vector sum[CHAINS], a = a_, b = b_;                                                        \
        for (int i = 0; i < CHAINS; i++)                                                           \
            sum[i] = begin;                                                                        \
        for (int64_t k = 0; k < 2000000; k++) {                                                    \
            _Pragma("GCC unroll 16") for (int i = 0; i < CHAINS; i++)                              \
            {                                                                                      \
                const vector s = sum[i];                                                           \
                sum[i] = next;                                                                     \
            }                                                                                      \
            __asm__ volatile("" : "+v"(a), "+v"(b));                                               \
        }                                                                                          \
        for (int i = 0; i < CHAINS; i++)                                                           \
            __asm__ volatile("" : : "v"(sum[i]));                                                  \
        return 2e6 * CHAINS * (work);                                                              \
    }
CHAIN_KERNEL(fma_f32, "avx2,fma", __m256, _mm256_set1_ps((float)i), _mm256_set1_ps(0.999f),
             _mm256_set1_ps(1e-3f), _mm256_fmadd_ps(s, a, b), 16)
CHAIN_KERNEL(fma_f32_512, "avx512f", __m512, _mm512_set1_ps((float)i), _mm512_set1_ps(0.999f),
             _mm512_set1_ps(1e-3f), _mm512_fmadd_ps(s, a, b), 32)
CHAIN_KERNEL(madd_i8, "avx2", __m256i, _mm256_set1_epi8((char)i), _mm256_set1_epi8(5),
             _mm256_set1_epi16(1),
             _mm256_add_epi32(s, _mm256_madd_epi16(_mm256_maddubs_epi16(s, a), b)), 64)
CHAIN_KERNEL(madd_i8_512, "avx512f,avx512bw", __m512i, _mm512_set1_epi8((char)i),
             _mm512_set1_epi8(5), _mm512_set1_epi16(1),
             _mm512_add_epi32(s, _mm512_madd_epi16(_mm512_maddubs_epi16(s, a), b)), 128)
CHAIN_KERNEL(dot_i8_256, "avxvnni", __m256i, _mm256_set1_epi32(i), _mm256_set1_epi32(0x05040302),
             _mm256_set1_epi32(0x01020304), _mm256_dpbusd_avx_epi32(s, a, b), 64)
CHAIN_KERNEL(dot_i8_512, "avx512f,avx512vnni", __m512i, _mm512_set1_epi32(i),
             _mm512_set1_epi32(0x05040302), _mm512_set1_epi32(0x01020304),
             _mm512_dpbusd_epi32(s, a, b), 128)

__attribute__((target("avx2"))) static double read_streams(const char *buffer, int streams)
{
    __m256i sum = _mm256_setzero_si256();
    size_t part = (size_t)BUFFER / (size_t)streams;
    for (size_t at = 0; at < part; at += 64)
        for (int s = 0; s < streams; s++) {
            const char *from = buffer + (size_t)s * part + at;
            sum = _mm256_xor_si256(sum, _mm256_load_si256((const __m256i *)(const void *)from));
            sum = _mm256_xor_si256(sum,
                                   _mm256_load_si256((const __m256i *)(const void *)(from + 32)));
        }
    volatile int out = _mm256_extract_epi32(sum, 0);
    (void)out;
    return BUFFER;
}

static bool has_kernels(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}
/* Whether SDX_CPU, which bench/as_cpu sets, is a set without what is asked for. */
static bool is_masked_to(const char *set)
{
    const char *mask = getenv("SDX_CPU");
    return mask && strcmp(mask, set) == 0;
}
static bool has_avx512(void)
{
    return __builtin_cpu_supports("avx512f") && !is_masked_to("avx2") && !is_masked_to("avxvnni");
}
static bool has_avxvnni(void) /* not every compiler's __builtin_cpu_supports knows it */
{
    unsigned a, b, c, d;
    return __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a >> 4 & 1) && !is_masked_to("avx2") &&
           !is_masked_to("avx512");
}
/* The widest that this processor has. */
static struct limit f32_limit(void)
{
    return (struct limit){"f32 multiply-add, registers", "GFLOP/s",
                          has_avx512() ? fma_f32_512 : fma_f32};
}
static struct limit i8_limit(void)
{
    if (has_avx512() && __builtin_cpu_supports("avx512vnni") && !is_masked_to("avx512"))
        return (struct limit){"8-bit vpdpbusd", "GOP/s", dot_i8_512};
    if (has_avxvnni()) return (struct limit){"8-bit vpdpbusd", "GOP/s", dot_i8_256};
    return (struct limit){"8-bit maddubs + madd + add", "GOP/s",
                          has_avx512() ? madd_i8_512 : madd_i8};
}
#else
static double fma_f32(const char *buffer)
{
    (void)buffer;
    float sum[4 * CHAINS];
    for (int i = 0; i < 4 * CHAINS; i++)
        sum[i] = (float)i;
    for (int64_t k = 0; k < 2000000; k++)
        for (int i = 0; i < 4 * CHAINS; i++)
            sum[i] = sum[i] * 0.999f + 1e-3f;
    volatile float out = 0;
    for (int i = 0; i < 4 * CHAINS; i++)
        out += sum[i];
    return 2e6 * CHAINS * 8;
}

static double madd_i8(const char *buffer)
{
    (void)buffer;
    return 0;
}

static double read_streams(const char *buffer, int streams)
{
    uint64_t sum = 0;
    size_t part = (size_t)BUFFER / (size_t)streams;
    for (size_t at = 0; at < part; at += 8)
        for (int s = 0; s < streams; s++)
            sum ^= *(const uint64_t *)(const void *)(buffer + (size_t)s * part + at);
    volatile uint64_t out = sum;
    (void)out;
    return BUFFER;
}

static bool has_kernels(void)
{
    return true;
}
static struct limit f32_limit(void)
{
    return (struct limit){"f32 multiply-add, registers", "GFLOP/s", fma_f32};
}
static struct limit i8_limit(void)
{
    return (struct limit){"8-bit maddubs + madd + add", "GOP/s", madd_i8};
}
#endif

static double read_one(const char *buffer)
{
    return read_streams(buffer, 1);
}

static double read_four(const char *buffer)
{
    return read_streams(buffer, 4);
}

struct helper {
    pthread_t thread;
    pthread_barrier_t *start;
    kernel_fn *kernel;
    char *buffer;
    int cpu;
    double work, begin, end;
};

static void *help(void *arg)
{
    struct helper *h = arg;
#if defined(__linux__)
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)h->cpu, &set);
    pthread_setaffinity_np(pthread_self(), sizeof set, &set);
#endif
    pthread_barrier_wait(h->start);
    h->begin = worker_us();
    h->work = h->kernel(h->buffer);
    h->end = worker_us();
    return NULL;
}

/* Billions a second of all threads together. */
static double measure(kernel_fn *kernel, struct helper *helpers, int threads)
{
    pthread_barrier_t start;
    pthread_barrier_init(&start, NULL, (unsigned)threads);
    for (int i = 0; i < threads; i++) {
        helpers[i].start = &start;
        helpers[i].kernel = kernel;
        if (pthread_create(&helpers[i].thread, NULL, help, &helpers[i]) != 0) exit(1);
    }
    double work = 0, begin = 0, end = 0;
    for (int i = 0; i < threads; i++) {
        pthread_join(helpers[i].thread, NULL);
        work += helpers[i].work;
        if (i == 0 || helpers[i].begin < begin) begin = helpers[i].begin;
        if (helpers[i].end > end) end = helpers[i].end;
    }
    pthread_barrier_destroy(&start);
    return work / (end - begin) * 1e-3;
}

static int compare(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

int main(int argc, char **argv)
{
    const struct limit kernels[] = {f32_limit(),
                                    i8_limit(),
                                    {"read memory, one stream", "GB/s", read_one},
                                    {"read memory, four streams", "GB/s", read_four}};
    static struct helper helpers[THREADS_MAX];
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    int most = argc > 1 ? (int)strtol(argv[1], NULL, 10) : (int)cpus;
    if (most < 1 || most > THREADS_MAX || !has_kernels()) {
        fprintf(stderr, "usage: peak [THREADS], on a processor with AVX2 and FMA\n");
        return 2;
    }
    for (int i = 0; i < most; i++) {
        helpers[i].cpu = (int)(i % cpus);
        helpers[i].buffer = aligned_alloc(64, BUFFER);
        if (helpers[i].buffer == NULL) return 1;
        memset(helpers[i].buffer, 1, BUFFER);
    }
    printf("%-32s %-8s %8s %10s %10s\n", "limit", "unit", "threads", "best", "median");
    for (size_t k = 0; k < sizeof kernels / sizeof *kernels; k++)
        for (int threads = 1; threads <= most; threads = threads < most ? most : most + 1) {
            double rate[ROUNDS];
            for (int r = 0; r < ROUNDS; r++)
                rate[r] = measure(kernels[k].kernel, helpers, threads);
            qsort(rate, ROUNDS, sizeof *rate, compare);
            printf("%-32s %-8s %8d %10.1f %10.1f\n", kernels[k].name, kernels[k].unit, threads,
                   rate[ROUNDS - 1], rate[ROUNDS / 2]);
            fflush(stdout);
        }
    return 0;
}
