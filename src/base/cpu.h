/* SPDX-License-Identifier: Apache-2.0
 * Instruction sets: named once, here. */
#ifndef SDX_BASE_CPU_H
#define SDX_BASE_CPU_H

#include <stdbool.h>
#include <stddef.h>

/* X(id, name). Sets in rising order within an architecture; a set includes what stands before it
 * there, but for avxvnni, which a machine with AVX-512 may lack. avx2: with FMA and F16C. avxvnni:
 * products of bytes in vectors of 32. avx512: F BW DQ VL CD. avx512vbmi: bytes permuted in a
 * vector. amx: tiles of bytes. dotprod, i8mm: aarch64. */
#define SDX_CPU_SETS(X)                                                                            \
    X(SDX_CPU_GENERIC, "generic")                                                                  \
    X(SDX_CPU_AVX2, "avx2")                                                                        \
    X(SDX_CPU_AVXVNNI, "avxvnni")                                                                  \
    X(SDX_CPU_AVX512, "avx512")                                                                    \
    X(SDX_CPU_AVX512VNNI, "avx512vnni")                                                            \
    X(SDX_CPU_AVX512VBMI, "avx512vbmi")                                                            \
    X(SDX_CPU_AMX, "amx")                                                                          \
    X(SDX_CPU_DOTPROD, "dotprod")                                                                  \
    X(SDX_CPU_I8MM, "i8mm")

enum sdx_cpu_set {
#define SDX_CPU_ENUM(id, name) id,
    SDX_CPU_SETS(SDX_CPU_ENUM)
#undef SDX_CPU_ENUM
        SDX_CPU_SET_COUNT
};

/* Has this machine the set, and does the mask (SDX_CPU=generic|avx2|...; unset: everything) allow
 * it? Read once. */
bool sdx_cpu_has(enum sdx_cpu_set set);
bool sdx_cpu_has_unmasked(enum sdx_cpu_set set);
/* false: SDX_CPU holds a name that is not in the list (its text in *bad). */
bool sdx_cpu_mask_ok(const char **bad);
enum sdx_cpu_set sdx_cpu_best(void);
const char *sdx_cpu_set_name(enum sdx_cpu_set set);
/* Bytes of the second cache as one core sees it; a sensible default where the system does not tell.
 */
size_t sdx_cpu_l2(void);
/* An AMD processor of family 25 (0x19), Zen 3 or Zen 4: what has AVX-512 of them is Zen 4. */
bool sdx_cpu_is_amd_25(void);
#endif
