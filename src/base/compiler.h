/* SPDX-License-Identifier: Apache-2.0
 * What differs between compilers: the only place for their extensions. */
#ifndef SDX_BASE_COMPILER_H
#define SDX_BASE_COMPILER_H

#if defined(__GNUC__) || defined(__clang__)
#define SDX_PRINTF(text, first) __attribute__((__format__(__printf__, text, first)))
#define SDX_ALWAYS_INLINE       __attribute__((always_inline))
#define SDX_NOINLINE            __attribute__((noinline))
#define SDX_LIKELY(x)           __builtin_expect(!!(x), 1)
#define SDX_UNLIKELY(x)         __builtin_expect(!!(x), 0)
#define SDX_UNUSED              __attribute__((unused))
#define SDX_NO_RETURN           __attribute__((noreturn))
#define SDX_ANYWHERE            __attribute__((aligned(1))) /* of a type: at any address */
#else
#define SDX_PRINTF(text, first)
#define SDX_ALWAYS_INLINE
#define SDX_NOINLINE
#define SDX_LIKELY(x)   (x)
#define SDX_UNLIKELY(x) (x)
#define SDX_UNUSED
#define SDX_NO_RETURN
#define SDX_ANYWHERE
#endif

/* SDX_UNROLL stands before a loop over registers: without complete unrolling gcc keeps the arrays
 * in memory. With SDX_SMALL_CODE, in the build of the fuzzers, kernels are what they read as:
 * minutes of compiling under sanitizers are saved. */
#define SDX_PRAGMA(text) _Pragma(#text)
#ifdef SDX_SMALL_CODE
#define SDX_INLINE static inline
#define SDX_UNROLL(n)
#else
#define SDX_INLINE    static inline SDX_ALWAYS_INLINE
#define SDX_UNROLL(n) SDX_PRAGMA(GCC unroll n)
#endif

/* Tells the processor that this is a spinning wait. */
#if defined(__x86_64__) || defined(__i386__)
#define SDX_SPIN_HINT() __builtin_ia32_pause()
#elif defined(__aarch64__)
#define SDX_SPIN_HINT() __asm__ volatile("yield")
#else
#define SDX_SPIN_HINT() ((void)0)
#endif

#define SDX_COUNT_OF(array) ((int)(sizeof(array) / sizeof((array)[0])))

/* Our invariants. On in debug builds, tests and fuzzers (SDX_ASSERTS=1); never for data from
 * outside. */
SDX_NO_RETURN void sdx_assert_failed(const char *text, const char *file, int line);
#if defined(SDX_ASSERTS) && SDX_ASSERTS
#define SDX_ASSERT(x) ((x) ? (void)0 : sdx_assert_failed(#x, __FILE__, __LINE__))
#else
#define SDX_ASSERT(x) ((void)sizeof(x))
#endif
#endif
