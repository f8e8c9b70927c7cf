/* SPDX-License-Identifier: Apache-2.0
 * What this processor can do, as far as the operating system saves the registers, and the mask that
 * SDX_CPU puts over it. x86: CPUID leaves 1 and 7, XCR0 (Intel SDM volume 2, CPUID); aarch64:
 * the kernel's hardware capability words. */
#include "base/cpu.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

#include "base/compiler.h"

static const char *const set_names[SDX_CPU_SET_COUNT] = {
#define SET_NAME(id, name) [id] = (name),
    SDX_CPU_SETS(SET_NAME)
#undef SET_NAME
};

#if defined(__x86_64__)
static bool has_bits(unsigned word, unsigned bits)
{
    return (word & bits) == bits;
}

/* Tile registers are 8 KB that a process must ask for: once, for all its threads (Linux,
 * Documentation/arch/x86/xstate.rst). */
static bool may_use_tiles(unsigned saved)
{
#if defined(__linux__)
    enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 };
    const unsigned tiles_saved = 3U << 17;
    return has_bits(saved, tiles_saved) &&
           syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0;
#else
    (void)saved;
    return false;
#endif
}

static bool has_avxvnni(void)
{
    unsigned eax, ebx, ecx, edx;
    return __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) && has_bits(eax, 1U << 4);
}

static unsigned detect(void)
{
    unsigned sets = 1U << SDX_CPU_GENERIC;
    unsigned eax, ebx, ecx, edx, low, high;
    const unsigned fma = 1U << 12, osxsave = 1U << 27, avx = 1U << 28, f16c = 1U << 29;
    if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx) || !has_bits(ecx, fma | osxsave | avx | f16c))
        return sets;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    const unsigned ymm_saved = 0x6, zmm_saved = 0xe6;
    if (!has_bits(low, ymm_saved) || !__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx)) return sets;
    const unsigned avx2 = 1U << 5, bmi2 = 1U << 8;
    if (!has_bits(ebx, avx2 | bmi2)) return sets;
    sets |= 1U << SDX_CPU_AVX2;
    if (has_avxvnni()) sets |= 1U << SDX_CPU_AVXVNNI;
    const unsigned f = 1U << 16, dq = 1U << 17, cd = 1U << 28, bw = 1U << 30, vl = 1U << 31;
    if (!has_bits(low, zmm_saved) || !has_bits(ebx, f | dq | cd | bw | vl)) return sets;
    sets |= 1U << SDX_CPU_AVX512;
    if (!has_bits(ecx, 1U << 11)) return sets;
    sets |= 1U << SDX_CPU_AVX512VNNI;
    if (!has_bits(ecx, 1U << 1)) return sets;
    sets |= 1U << SDX_CPU_AVX512VBMI;
    const unsigned amx_tile = 1U << 24, amx_int8 = 1U << 25;
    if (has_bits(edx, amx_tile | amx_int8) && may_use_tiles(low)) sets |= 1U << SDX_CPU_AMX;
    return sets;
}
#elif defined(__aarch64__) && defined(__linux__)
static unsigned detect(void)
{
    unsigned sets = 1U << SDX_CPU_GENERIC;
    const unsigned long asimd_dp = 1UL << 20, i8mm = 1UL << 13;
    if (!(getauxval(AT_HWCAP) & asimd_dp)) return sets;
    sets |= 1U << SDX_CPU_DOTPROD;
    if (getauxval(AT_HWCAP2) & i8mm) sets |= 1U << SDX_CPU_I8MM;
    return sets;
}
#else
static unsigned detect(void)
{
    return 1U << SDX_CPU_GENERIC;
}
#endif

/* Bits of the sets; all threads find the same, so a race stores the same word twice. */
static unsigned detected(void)
{
    static atomic_uint known; /* 0: not yet; generic is always there */
    unsigned sets = atomic_load_explicit(&known, memory_order_relaxed);
    if (sets == 0) {
        sets = detect();
        atomic_store_explicit(&known, sets, memory_order_relaxed);
    }
    return sets;
}

/* The last set that SDX_CPU allows. */
static unsigned read_mask(const char **bad)
{
    const char *text = getenv("SDX_CPU");
    *bad = NULL;
    if (text == NULL || text[0] == '\0') return SDX_CPU_SET_COUNT - 1;
    for (unsigned i = 0; i < SDX_CPU_SET_COUNT; i++)
        if (strcmp(text, set_names[i]) == 0) return i;
    *bad = text;
    return SDX_CPU_SET_COUNT - 1;
}

static unsigned mask(void)
{
    static atomic_uint known; /* last allowed set + 1 */
    unsigned last = atomic_load_explicit(&known, memory_order_relaxed);
    if (last == 0) {
        const char *bad;
        last = read_mask(&bad) + 1;
        atomic_store_explicit(&known, last, memory_order_relaxed);
    }
    return last - 1;
}

/* Sets of other architectures are never detected, so one rising list serves all of them. */
bool sdx_cpu_has(enum sdx_cpu_set set)
{
    return (unsigned)set <= mask() && sdx_cpu_has_unmasked(set);
}

bool sdx_cpu_has_unmasked(enum sdx_cpu_set set)
{
    SDX_ASSERT(set < SDX_CPU_SET_COUNT);
    return (detected() >> set) & 1U;
}

bool sdx_cpu_mask_ok(const char **bad)
{
    read_mask(bad);
    return *bad == NULL;
}

enum sdx_cpu_set sdx_cpu_best(void)
{
    for (int set = SDX_CPU_SET_COUNT - 1; set > SDX_CPU_GENERIC; set--)
        if (sdx_cpu_has((enum sdx_cpu_set)set)) return (enum sdx_cpu_set)set;
    return SDX_CPU_GENERIC;
}

const char *sdx_cpu_set_name(enum sdx_cpu_set set)
{
    SDX_ASSERT(set < SDX_CPU_SET_COUNT);
    return set_names[set];
}

/* First line of a file of the kernel's cache description. */
static bool read_cache_fact(int index, const char *name, char *line, int size)
{
    char path[96];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/%s", index, name);
    FILE *file = fopen(path, "re");
    if (file == NULL) return false;
    bool ok = fgets(line, size, file) != NULL;
    fclose(file);
    return ok;
}

/* 0: it does not say. */
static size_t l2_of_system(void)
{
#ifdef _SC_LEVEL2_CACHE_SIZE /* no file is read for it; 0 on aarch64 */
    const long bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
    if (bytes > 0) return (size_t)bytes;
#endif
    char level[32], type[32], size[32];
    for (int i = 0; read_cache_fact(i, "level", level, sizeof level); i++) {
        if (level[0] != '2' || !read_cache_fact(i, "type", type, sizeof type) || type[0] == 'I' ||
            !read_cache_fact(i, "size", size, sizeof size))
            continue; /* "Instruction" */
        char *unit;
        const size_t number = strtoul(size, &unit, 10);
        return number << (*unit == 'K' ? 10 : *unit == 'M' ? 20 : 0);
    }
    return 0;
}

bool sdx_cpu_is_amd_25(void)
{
#if defined(__x86_64__)
    unsigned eax, ebx, ecx, edx;
    const unsigned auth = 0x68747541, amd = 0x444d4163; /* "Auth", "cAMD" */
    if (!__get_cpuid(0, &eax, &ebx, &ecx, &edx) || ebx != auth || ecx != amd) return false;
    if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx)) return false;
    return (eax >> 8 & 15) + (eax >> 20 & 255) == 25;
#else
    return false;
#endif
}

size_t sdx_cpu_l2(void)
{
    static atomic_size_t found; /* 0: not yet */
    size_t l2 = atomic_load(&found);
    if (l2 == 0) {
        l2 = l2_of_system();
        if (l2 == 0) l2 = 512 << 10;
        atomic_store(&found, l2);
    }
    return l2;
}
