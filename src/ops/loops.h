/* SPDX-License-Identifier: Apache-2.0
 * Loop templates of the elementwise families: one function of the type sdx_nest_fn from an
 * expression, and lists of element types to make them for. */
#ifndef SDX_OPS_LOOPS_H
#define SDX_OPS_LOOPS_H

#include "ops/nest.h"

/* X(op, suffix, C type) */
#define SDX_LOOP_UNSIGNED(X, op)                                                                   \
    X(op, u8, uint8_t) X(op, u16, uint16_t) X(op, u32, uint32_t) X(op, u64, uint64_t)
#define SDX_LOOP_SIGNED(X, op)                                                                     \
    X(op, i8, int8_t) X(op, i16, int16_t) X(op, i32, int32_t) X(op, i64, int64_t)
#define SDX_LOOP_INTS(X, op) SDX_LOOP_UNSIGNED(X, op) SDX_LOOP_SIGNED(X, op)

enum { SDX_LOOP_TYPES = SDX_DTYPE_LAST + 1 }; /* length of a table of functions by element type */
#define SDX_LOOP_INT_ROWS(op)                                                                      \
    [SDX_U8] = op##_u8, [SDX_U16] = op##_u16, [SDX_U32] = op##_u32, [SDX_U64] = op##_u64,          \
    [SDX_I8] = op##_i8, [SDX_I16] = op##_i16, [SDX_I32] = op##_i32, [SDX_I64] = op##_i64

/* y[j] = expr of x */
#define SDX_LOOP_UNARY(name, type, result, expr)                                                   \
    static bool name(const void *arg, const void *const *in, const int64_t *step, void *out,       \
                     int64_t n)                                                                    \
    {                                                                                              \
        (void)arg;                                                                                 \
        (void)step;                                                                                \
        const type *a = in[0];                                                                     \
        result *r = out;                                                                           \
        for (int64_t j = 0; j < n; j++) {                                                          \
            const type x = a[j];                                                                   \
            r[j] = (result)(expr);                                                                 \
        }                                                                                          \
        return true;                                                                               \
    }

/* r[j] = expr of x and y, either of which may stand still */
#define SDX_LOOP_BINARY(name, type_a, type_b, result, expr)                                        \
    static bool name(const void *arg, const void *const *in, const int64_t *step, void *out,       \
                     int64_t n)                                                                    \
    {                                                                                              \
        (void)arg;                                                                                 \
        const type_a *a = in[0];                                                                   \
        const type_b *b = in[1];                                                                   \
        result *r = out;                                                                           \
        for (int64_t j = 0; j < n; j++, a += step[0], b += step[1]) {                              \
            const type_a x = *a;                                                                   \
            const type_b y = *b;                                                                   \
            r[j] = (result)(expr);                                                                 \
        }                                                                                          \
        return true;                                                                               \
    }
#endif
