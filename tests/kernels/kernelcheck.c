/* SPDX-License-Identifier: Apache-2.0
 * kernelcheck: every kernel on every instruction set of this machine against exact results and
 * against the generic set. kernelcheck [--set NAME] [NAME ...]     checks all kernels, or those
 * whose names begin so kernelcheck --bench NAME ... [--csv]    time for one element and ratio to
 * generic */
#include "kernelcheck.h"

#include <float.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <time.h>
#include <unistd.h>

const struct sdx_vec *vec_now;
struct sdx_vec vec_generic;

static const struct kernel {
    const char *name;
    void (*check)(void);
    double (*bench)(void);
} kernels[] = {
#define ROW(name)    {#name, check_##name, bench_##name},
#define MAP(name)    ROW(f32_map_##name)
#define BINARY(name) ROW(f32_binary_##name)
#define REDUCE(name) ROW(f32_reduce_##name)
    SDX_VEC_MAPS(MAP) SDX_VEC_BINARIES(BINARY) SDX_VEC_REDUCTIONS(REDUCE) CHECK_VEC_OTHERS(ROW)
        CHECK_SUBJECTS(ROW)};

/* Sets beyond those of the templates count too: qdot has one of its own. */
static const struct {
    enum sdx_cpu_set id;
    const char *name;
} sets[] = {{SDX_CPU_GENERIC, "generic"},
#if defined(__x86_64__)
            {SDX_CPU_AVX2, "avx2"},
            {SDX_CPU_AVXVNNI, "avxvnni"},
            {SDX_CPU_AVX512, "avx512"},
            {SDX_CPU_AVX512VNNI, "avx512vnni"},
            {SDX_CPU_AVX512VBMI, "avx512vbmi"},
            {SDX_CPU_AMX, "amx"}
#elif defined(__aarch64__)
            {SDX_CPU_DOTPROD, "dotprod"}
#endif
};

static const char *kernel_now = "", *set_now = "";
static int failures;   /* of the kernel in hand */
static uint64_t state; /* of the random numbers */
static sigjmp_buf crashed;

bool expect(bool ok, const char *format, ...)
{
    if (ok) return true;
    if (failures++ < 5) {
        va_list args;
        va_start(args, format);
        printf("  %s (%s): ", kernel_now, set_now);
        vprintf(format, args);
        printf("\n");
        va_end(args);
    }
    return false;
}

uint32_t random_bits(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 32);
}
float random_float(float lo, float hi)
{
    return lo + (hi - lo) * ((float)(random_bits() >> 8) * 5.9604645e-8f);
}
int64_t random_int(int64_t lo, int64_t hi)
{
    return lo + (int64_t)(random_bits() % (uint64_t)(hi - lo + 1));
}

/* ---- guarded buffers; AddressSanitizer finds reads of the guards too ---- */
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(at, size)   (void)(at)
#define ASAN_UNPOISON_MEMORY_REGION(at, size) (void)(at)
#endif
enum { GUARD = 64, MOST_BUFFERS = 4096 };
static struct {
    unsigned char *base;
    size_t offset, size;
} buffers[MOST_BUFFERS];
static int buffer_count;

void *guarded(size_t n, size_t offset)
{
    unsigned char *base = NULL;
    size_t size = (n + offset + 2 * GUARD + 63) / 64 * 64;
    if (buffer_count == MOST_BUFFERS || !(base = aligned_alloc(64, size))) {
        fprintf(stderr, "kernelcheck: no memory\n");
        exit(2);
    }
    memset(base, 0xa5, size);
    buffers[buffer_count].base = base;
    buffers[buffer_count].offset = GUARD + offset;
    buffers[buffer_count++].size = n;
    ASAN_POISON_MEMORY_REGION(base, GUARD + offset);
    ASAN_POISON_MEMORY_REGION(base + GUARD + offset + n, size - GUARD - offset - n);
    return base + GUARD + offset;
}
bool guards_intact(void)
{
    for (int b = 0; b < buffer_count; b++) {
        const unsigned char *from = buffers[b].base + buffers[b].offset;
        ASAN_UNPOISON_MEMORY_REGION(buffers[b].base, buffers[b].offset + buffers[b].size + GUARD);
        for (size_t i = 0; i < GUARD; i++)
            if (from[-(ptrdiff_t)i - 1] != 0xa5 || from[buffers[b].size + i] != 0xa5)
                return expect(false, "wrote outside its output of %zu bytes", buffers[b].size);
    }
    return true;
}
void expect_piece(void *next_, const sdx_weight_f32 *begin, int64_t count)
{
    const sdx_weight_f32 **next = next_;
    expect(begin == *next, "a piece begins %lld numbers behind the one before",
           (long long)(begin - *next));
    *next = begin + count;
}

void guards_release(void)
{
    for (int b = 0; b < buffer_count; b++) {
        ASAN_UNPOISON_MEMORY_REGION(buffers[b].base, buffers[b].offset + buffers[b].size + GUARD);
        free(buffers[b].base);
    }
    buffer_count = 0;
}

/* ---- operands of convolutions ---- */
void random_half(enum sdx_half half, float *x, uint16_t *y, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        uint16_t bits;
        const float value = random_float(-1, 1);
        sdx_half_encode(half, &value, &bits, 1);
        sdx_half_decode(half, &bits, x + i, 1);
        if (y) y[i] = bits;
    }
}

float *blocked_tensor(int64_t batch, int64_t channels, int64_t pixels, int64_t lanes)
{
    const int64_t blocks = (channels + lanes - 1) / lanes, size = batch * blocks * pixels * lanes;
    float *t = guarded((size_t)size * 4, 4);
    for (int64_t i = 0; i < size; i++) {
        const int64_t c = i / (pixels * lanes) % blocks * lanes + i % lanes;
        t[i] = c < channels ? random_float(-1, 1) : random_float(-1e38f, 1e38f);
    }
    return t;
}
double exact_activation(double x, const struct sdx_epilogue *e)
{
    switch (e->act) {
    case SDX_ACT_NONE: return x;
    case SDX_ACT_RELU: return fmax(0, x);
    case SDX_ACT_CLIP: return fmin(e->b, fmax(e->a, x));
    case SDX_ACT_LEAKY_RELU: return x < 0 ? x * e->a : x;
    case SDX_ACT_SIGMOID: return 1 / (1 + exp(-x));
    case SDX_ACT_TANH: return tanh(x);
    case SDX_ACT_SILU: return x / (1 + exp(-x));
    case SDX_ACT_HARD_SWISH: return x * fmin(1, fmax(0, x / 6 + 0.5));
    case SDX_ACT_HARD_SIGMOID: return fmin(1, fmax(0, x * e->a + e->b));
    case SDX_ACT_GELU_ERF: return x / 2 * (1 + erf(x / sqrt(2.0)));
    case SDX_ACT_GELU_TANH:
        return x / 2 * (1 + tanh(sqrt(2 / acos(-1.0)) * (x + 0.044715 * x * x * x)));
    }
    return x;
}

/* ---- comparing, timing ---- */
bool same_bits(float a, float b)
{
    return (a != a && b != b) || memcmp(&a, &b, sizeof a) == 0;
}
double ulp_error(float a, double b)
{
    const float nearest = (float)b;
    if (a != a || b != b) return a != a && b != b ? 0.0 : INFINITY;
    if (isinf(a) || isinf(nearest)) {
        if (a == nearest) return 0.0;
        /* the largest finite number and infinity are neighbours */
        if (fabsf(a) < FLT_MAX && isinf(nearest)) return INFINITY;
        return fabs(b) > 3.4028233e38 || fabsf(a) == FLT_MAX ? 1.0 : INFINITY;
    }
    int exponent;
    frexp(b, &exponent);
    const double ulp = ldexp(1.0, (exponent < -125 ? -125 : exponent) - 24);
    return fabs((double)a - b) / ulp;
}
double best_ns(void (*fn)(void *arg), void *arg)
{
    double best = 1e30, total = 0.0;
    for (int turn = 0; turn < 15 || (total < 4e7 && turn < 4000); turn++) {
        struct timespec t0, t1;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t0);
        fn(arg);
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t1);
        const double ns = 1e9 * (double)(t1.tv_sec - t0.tv_sec) + (double)(t1.tv_nsec - t0.tv_nsec);
        if (ns < best) best = ns;
        total += ns;
    }
    return best;
}

/* ---- running ---- */
static void on_crash(int signal_number)
{
    char text[256];
    int n = snprintf(text, sizeof text, "  %s (%s): crashed with signal %d\n", kernel_now, set_now,
                     signal_number);
    if (n > 0 && write(STDOUT_FILENO, text, (size_t)n) < 0) _exit(3);
    siglongjmp(crashed, 1);
}
static void watch_crashes(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_crash;
    action.sa_flags = SA_NODEFER;
    const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE};
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
        sigaction(signals[i], &action, NULL);
}
static void use_set(int set)
{
    sdx_kernel_tables_use(sets[set].id);
    vec_now = sdx_vec();
    set_now = sets[set].name;
}
static bool check_one(const struct kernel *kernel)
{
    kernel_now = kernel->name;
    failures = 0;
    state = 12345;
    if (sigsetjmp(crashed, 1) == 0)
        kernel->check();
    else
        failures++;
    guards_intact();
    guards_release();
    if (failures > 5) printf("  %s (%s): %d more\n", kernel_now, set_now, failures - 5);
    return failures == 0;
}
/* What differs in the sets that the templates are not compiled for; products of tiles are there
 * only. */
static bool has_kernel(const char *set, const char *kernel)
{
    const bool is_amx = strcmp(set, "amx") == 0, is_tiles = strcmp(kernel, "gemm_tiles") == 0;
    if (is_tiles) return is_amx;
    if (strcmp(set, "avx512vbmi") == 0) return strcmp(kernel, "qbytes") == 0;
    return (!is_amx && strcmp(set, "avxvnni") != 0 && strcmp(set, "avx512vnni") != 0 &&
            strcmp(set, "dotprod") != 0) ||
           (is_amx &&
            (strcmp(kernel, "conv_block") == 0 || strcmp(kernel, "winograd_block") == 0)) ||
           ((is_amx || strcmp(set, "avx512vnni") == 0) && strcmp(kernel, "nbits") == 0) ||
           strcmp(kernel, "qdot") == 0 || strcmp(kernel, "qconv") == 0;
}
static bool named(const char *kernel, char **names, int count)
{
    for (int i = 0; i < count; i++)
        if (strncmp(kernel, names[i], strlen(names[i])) == 0) return true;
    return count == 0;
}

static int bench(char **names, int count, bool csv)
{
    if (csv) printf("kernel,set,ns,ratio\n");
    for (size_t k = 0; k < sizeof kernels / sizeof kernels[0]; k++) {
        double generic = 0.0;
        if (!named(kernels[k].name, names, count)) continue;
        for (size_t s = 0; s < sizeof sets / sizeof sets[0]; s++) {
            if (!sdx_cpu_has_unmasked(sets[s].id) || !has_kernel(sets[s].name, kernels[k].name))
                continue;
            use_set((int)s);
            state = 1;
            const double ns = kernels[k].bench();
            guards_release();
            if (generic == 0.0) generic = ns;
            printf(csv ? "%s,%s,%.5f,%.2f\n" : "%-24s %-10s %10.5f ns %8.2f\n", kernels[k].name,
                   sets[s].name, ns, generic / ns);
        }
    }
    return 0;
}

int main(int argc, char **argv)
{
    const char *only = NULL;
    bool benches = false, csv = false;
    char *names[64];
    int count = 0, passed = 0, failed = 0, skipped = 0;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--bench") == 0)
            benches = true;
        else if (strcmp(argv[i], "--csv") == 0)
            csv = true;
        else if (strcmp(argv[i], "--set") == 0 && i + 1 < argc)
            only = argv[++i];
        else if (argv[i][0] != '-' && count < 64)
            names[count++] = argv[i];
        else {
            fprintf(stderr, "usage: kernelcheck [--bench] [--csv] [--set NAME] [KERNEL ...]\n");
            return 2;
        }
    }
    watch_crashes();
    use_set(0);
    vec_generic = *vec_now;
    if (benches) return bench(names, count, csv);
    for (size_t s = 0; s < sizeof sets / sizeof sets[0]; s++) {
        if (only && strcmp(only, sets[s].name) != 0) continue;
        const bool here = sdx_cpu_has_unmasked(sets[s].id);
        int good = 0, bad = 0, none = 0;
        if (here) use_set((int)s);
        for (size_t k = 0; k < sizeof kernels / sizeof kernels[0]; k++) {
            if (!named(kernels[k].name, names, count) || !has_kernel(sets[s].name, kernels[k].name))
                continue;
            if (!here)
                none++;
            else if (check_one(&kernels[k]))
                good++;
            else
                bad++;
        }
        if (here)
            printf("%s: %d kernels good, %d bad\n", sets[s].name, good, bad);
        else
            printf("%s: not run, this machine lacks it\n", sets[s].name);
        passed += good;
        failed += bad;
        skipped += none;
    }
    printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped);
    return failed != 0;
}
