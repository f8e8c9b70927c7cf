/* SPDX-License-Identifier: Apache-2.0
 * Preloaded by bench/as_cpu: answers the cpuid instructions that it has replaced by ud2 as a
 * processor would that has the set in CPUID_MASK (avx2, avxvnni or avx512) and nothing newer. */
#include <cpuid.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <ucontext.h>

enum { FEATURES = 7, AVX10 = 0x24 };
struct registers {
    unsigned a, b, c, d;
};
static bool hides_avx512 = true, hides_vnni = true;

/* Bits as in Intel's manual, volume 2, CPUID, leaf 7. */
static struct registers answer(unsigned leaf, unsigned sub)
{
    struct registers r;
    __cpuid_count(leaf, sub, r.a, r.b, r.c, r.d);
    if (leaf == FEATURES && sub == 0) {
        if (hides_avx512) r.b &= ~(1U << 16 | 1U << 17 | 1U << 28 | 3U << 30);
        r.b &= ~(1U << 21 | 1U << 26 | 1U << 27);
        r.c &= ~(1U << 1 | 1U << 6 | 1U << 11 | 1U << 12 | 1U << 14);
        r.d &= ~(1U << 2 | 1U << 3 | 1U << 8 | 15U << 22);
    } else if (leaf == FEATURES && sub == 1) {
        r.a &= ~(1U << 5 | 1U << 21);
        r.d &= ~(1U << 8 | 1U << 19);
        if (hides_vnni) {
            r.a &= ~(1U << 4 | 1U << 23);
            r.d &= ~(1U << 4 | 1U << 5 | 1U << 10);
        }
    } else if (leaf == AVX10) {
        r = (struct registers){0, 0, 0, 0};
    }
    return r;
}

static void on_illegal(int number, siginfo_t *info, void *context)
{
    static const unsigned char ud2[] = {0x0f, 0x0b};
    greg_t *g = ((ucontext_t *)context)->uc_mcontext.gregs;
    (void)info;
    if (memcmp((const void *)g[REG_RIP], ud2, sizeof ud2) != 0) {
        signal(number, SIG_DFL); /* a real one: it comes again */
        return;
    }
    const struct registers r = answer((unsigned)g[REG_RAX], (unsigned)g[REG_RCX]);
    g[REG_RAX] = r.a;
    g[REG_RBX] = r.b;
    g[REG_RCX] = r.c;
    g[REG_RDX] = r.d;
    g[REG_RIP] += (greg_t)sizeof ud2;
}

/* Initialised before every other library (-z initfirst), libc too: getenv() finds nothing yet. */
__attribute__((constructor)) static void start(int argc, char **argv, char **environment)
{
    (void)argc;
    (void)argv;
    for (; *environment; environment++) {
        hides_vnni = hides_vnni && strcmp(*environment, "CPUID_MASK=avxvnni") != 0;
        hides_avx512 = hides_avx512 && strcmp(*environment, "CPUID_MASK=avx512") != 0;
    }
    struct sigaction action = {.sa_sigaction = on_illegal, .sa_flags = SA_SIGINFO | SA_NODEFER};
    sigaction(SIGILL, &action, NULL);
}
