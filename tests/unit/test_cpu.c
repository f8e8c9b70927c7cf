/* SPDX-License-Identifier: Apache-2.0
 * Instruction sets under every mask. The mask is read once a process, so each case is a child. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cpu.h"

/* Exit code 0 when under SDX_CPU=`mask` exactly the sets up to `last` that the machine has are
 * there. */
static int run_child(const char *mask, int last, bool mask_ok)
{
    pid_t child = fork();
    if (child == 0) {
        setenv("SDX_CPU", mask, 1);
        const char *bad = "";
        bool ok = sdx_cpu_mask_ok(&bad) == mask_ok && (bad == NULL) == mask_ok;
        int best = SDX_CPU_GENERIC;
        for (int set = 0; set < SDX_CPU_SET_COUNT; set++) {
            bool expected = set <= last && sdx_cpu_has_unmasked((enum sdx_cpu_set)set);
            ok = ok && sdx_cpu_has((enum sdx_cpu_set)set) == expected;
            if (expected) best = set;
        }
        ok = ok && (int)sdx_cpu_best() == best && sdx_cpu_has(SDX_CPU_GENERIC);
        _exit(ok ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    return status;
}

static void masks_limit(void **state)
{
    (void)state;
    for (int set = 0; set < SDX_CPU_SET_COUNT; set++)
        assert_int_equal(run_child(sdx_cpu_set_name((enum sdx_cpu_set)set), set, true), 0);
    assert_int_equal(run_child("", SDX_CPU_SET_COUNT, true), 0);
    assert_int_equal(run_child("sse9", SDX_CPU_SET_COUNT, false), 0);
}

#if defined(__x86_64__)
/* A flag of the first processor in /proc/cpuinfo. */
static bool kernel_tells(const char *flag)
{
    static char line[16384];
    FILE *file = fopen("/proc/cpuinfo", "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file) && strncmp(line, "flags", 5) != 0) {
    }
    fclose(file);
    bool found = false;
    for (char *word = strtok(line, " \n"); word; word = strtok(NULL, " \n"))
        found = found || strcmp(word, flag) == 0;
    return found;
}
#endif

/* A set includes what stands before it in its architecture. */
static void sets_rise(void **state)
{
    (void)state;
    if (sdx_cpu_has_unmasked(SDX_CPU_AMX)) assert_true(sdx_cpu_has_unmasked(SDX_CPU_AVX512VBMI));
    if (sdx_cpu_has_unmasked(SDX_CPU_AVX512VBMI))
        assert_true(sdx_cpu_has_unmasked(SDX_CPU_AVX512VNNI));
    if (sdx_cpu_has_unmasked(SDX_CPU_AVX512VNNI)) assert_true(sdx_cpu_has_unmasked(SDX_CPU_AVX512));
    if (sdx_cpu_has_unmasked(SDX_CPU_AVX512)) assert_true(sdx_cpu_has_unmasked(SDX_CPU_AVX2));
    if (sdx_cpu_has_unmasked(SDX_CPU_I8MM)) assert_true(sdx_cpu_has_unmasked(SDX_CPU_DOTPROD));
#if defined(__x86_64__)
    __builtin_cpu_init();
    assert_int_equal(sdx_cpu_has_unmasked(SDX_CPU_AVX512VNNI),
                     __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512bw"));
    assert_int_equal(sdx_cpu_has_unmasked(SDX_CPU_AVXVNNI), kernel_tells("avx_vnni"));
    assert_int_equal(sdx_cpu_has_unmasked(SDX_CPU_AVX2),
                     __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"));
#endif
}

/* What the kernel says of the third cache in its list, which is the second of data as a rule. */
static bool cache_tells(const char *what, size_t *number)
{
    char path[96];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index2/%s", what);
    FILE *file = fopen(path, "re");
    if (file == NULL) return false;
    char unit = 'K'; /* of sizes */
    const bool tells = fscanf(file, "%zu%c", number, &unit) >= 1;
    fclose(file);
    return tells && (unit == 'K' || unit == '\n');
}
static void cache_makes_sense(void **state)
{
    (void)state;
    const size_t l2 = sdx_cpu_l2();
    assert_true(l2 >= 1 << 16 && l2 <= 1 << 28);
    assert_int_equal(sdx_cpu_l2(), l2);
    size_t level = 0, told = 0;
    if (cache_tells("level", &level) && level == 2 && cache_tells("size", &told))
        assert_int_equal(l2, told << 10);
}

/* As the kernel tells of the first processor. */
static void the_family_is_the_kernels(void **state)
{
    (void)state;
#if defined(__x86_64__)
    FILE *file = fopen("/proc/cpuinfo", "re");
    if (file == NULL) skip();
    char line[256];
    bool amd = false;
    int family = -1;
    while (family < 0 && fgets(line, sizeof line, file)) {
        if (strncmp(line, "vendor_id", 9) == 0) amd = strstr(line, "AuthenticAMD") != NULL;
        const char *value = strncmp(line, "cpu family", 10) == 0 ? strchr(line, ':') : NULL;
        if (value) family = (int)strtol(value + 1, NULL, 10);
    }
    fclose(file);
    assert_int_equal(sdx_cpu_is_amd_25(), amd && family == 25);
#else
    assert_false(sdx_cpu_is_amd_25());
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(masks_limit), /* first: the others read the mask in this process */
        cmocka_unit_test(sets_rise),
        cmocka_unit_test(cache_makes_sense),
        cmocka_unit_test(the_family_is_the_kernels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
