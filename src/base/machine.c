/* SPDX-License-Identifier: Apache-2.0
 * Names and caches of processors. x86: CPUID leaves 0x80000002 to 4 (AMD64 manual volume 3,
 * appendix E.4) and CLFLUSH; aarch64: the register MIDR_EL1 as Linux shows it. */
#include "base/machine.h"

#include <stdio.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

void sdx_machine_cpu(char *buf, size_t size)
{
    char text[49] = "";
#if defined(__x86_64__)
    unsigned words[12] = {0};
    if ((unsigned)__get_cpuid_max(0x80000000U, NULL) >= 0x80000004U)
        for (unsigned i = 0; i < 3; i++)
            (void)__get_cpuid(0x80000002U + i, &words[4 * i], &words[4 * i + 1], &words[4 * i + 2],
                              &words[4 * i + 3]);
    memcpy(text, words, sizeof words);
#elif defined(__aarch64__) && defined(__linux__)
    FILE *file = fopen("/sys/devices/system/cpu/cpu0/regs/identification/midr_el1", "r");
    if (file) {
        text[fread(text, 1, sizeof text - 1, file)] = 0;
        fclose(file);
    }
#endif
    size_t n = 0;
    for (const char *c = text + strspn(text, " "); *c && n + 1 < size; c++)
        buf[n++] = *c > ' ' && *c <= '~' ? *c : ' ';
    while (n && buf[n - 1] == ' ')
        n--;
    if (size) buf[n] = 0;
    if (!n) snprintf(buf, size, "unknown");
}

void sdx_machine_evict(const void *bytes, size_t size)
{
#if defined(__x86_64__)
    for (size_t at = 0; at < size; at += 64)
        __builtin_ia32_clflush((const char *)bytes + at);
#else
    (void)bytes, (void)size;
#endif
}
