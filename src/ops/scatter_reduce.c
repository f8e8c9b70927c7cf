/* SPDX-License-Identifier: Apache-2.0
 * One loop for each element type and reduction, made by one macro. f16 and bf16 go through f32,
 * integers wrap. */
#include "ops/scatter_reduce.h"

#include <complex.h>

#include "kernels/vec.h"
#include "sardonyx/sardonyx.h"
#include "tensor/convert.h"

#define LOOP(name, type, expression)                                                               \
    static void name(void *dst, const void *src, int64_t n)                                        \
    {                                                                                              \
        type *d = dst;                                                                             \
        const type *s = src;                                                                       \
        for (int64_t i = 0; i < n; i++) {                                                          \
            type a = d[i], b = s[i];                                                               \
            d[i] = (type)(expression);                                                             \
        }                                                                                          \
    }
/* unsigned wide arithmetic: no overflow that C leaves undefined */
#define LOOPS_INT(id, type)                                                                        \
    LOOP(id##_add, type, (uint64_t)a + (uint64_t)b)                                                \
    LOOP(id##_mul, type, (uint64_t)a *(uint64_t)b)                                                 \
    LOOP(id##_max, type, a > b ? a : b)                                                            \
    LOOP(id##_min, type, a < b ? a : b)
#define LOOPS_FLOAT(id, type)                                                                      \
    LOOP(id##_add, type, a + b)                                                                    \
    LOOP(id##_mul, type, a *b)                                                                     \
    LOOP(id##_max, type, a != a || a > b ? a : b)                                                  \
    LOOP(id##_min, type, a != a || a < b ? a : b)

LOOPS_INT(i8, int8_t)
LOOPS_INT(u8, uint8_t)
LOOPS_INT(i16, int16_t)
LOOPS_INT(u16, uint16_t)
LOOPS_INT(i32, int32_t)
LOOPS_INT(u32, uint32_t)
LOOPS_INT(i64, int64_t)
LOOPS_INT(u64, uint64_t)
/* Rows in vectors; `few` are not worth the call. */
#define VECTORS(op)                                                                                \
    static void f32_##op(void *dst, const void *src, int64_t n)                                    \
    {                                                                                              \
        enum { FEW = 8 };                                                                          \
        if (n < FEW)                                                                               \
            f32_few_##op(dst, src, n);                                                             \
        else                                                                                       \
            sdx_vec()->f32_##op(dst, 1, src, 1, dst, (size_t)n);                                   \
    }
LOOPS_FLOAT(f32_few, float)
VECTORS(add)
VECTORS(mul)
VECTORS(max)
VECTORS(min)
#undef VECTORS
LOOPS_FLOAT(f64, double)
LOOP(c64_add, float complex, a + b)
LOOP(c64_mul, float complex, a *b)
LOOP(c128_add, double complex, a + b)
LOOP(c128_mul, double complex, a *b)
LOOP(bool_or, uint8_t, a | b)
LOOP(bool_and, uint8_t, a &b)
#undef LOOP

#define LOOP_HALF(name, load, store, expression)                                                   \
    static void name(void *dst, const void *src, int64_t n)                                        \
    {                                                                                              \
        uint16_t *d = dst;                                                                         \
        const uint16_t *s = src;                                                                   \
        for (int64_t i = 0; i < n; i++) {                                                          \
            float a = load(d[i]), b = load(s[i]);                                                  \
            d[i] = store(expression);                                                              \
        }                                                                                          \
    }
#define LOOPS_HALF(id, load, store)                                                                \
    LOOP_HALF(id##_add, load, store, a + b)                                                        \
    LOOP_HALF(id##_mul, load, store, a *b)                                                         \
    LOOP_HALF(id##_max, load, store, a != a || a > b ? a : b)                                      \
    LOOP_HALF(id##_min, load, store, a != a || a < b ? a : b)
LOOPS_HALF(f16, sdx_f16_to_f32, sdx_f32_to_f16)
LOOPS_HALF(bf16, sdx_bf16_to_f32, sdx_f32_to_bf16)
#undef LOOP_HALF
#undef LOOPS_HALF
#undef LOOPS_INT
#undef LOOPS_FLOAT

sdx_scatter_fn *sdx_scatter_find(struct sdx_str name, int dtype)
{
    static const struct {
        int dtype;
        sdx_scatter_fn *fn[4];
    } table[] = {
#define ROW(dtype_, id)                                                                            \
    {                                                                                              \
        dtype_,                                                                                    \
        {                                                                                          \
            id##_add, id##_mul, id##_max, id##_min                                                 \
        }                                                                                          \
    }
        ROW(SDX_I8, i8),
        ROW(SDX_U8, u8),
        ROW(SDX_I16, i16),
        ROW(SDX_U16, u16),
        ROW(SDX_I32, i32),
        ROW(SDX_U32, u32),
        ROW(SDX_I64, i64),
        ROW(SDX_U64, u64),
        ROW(SDX_F32, f32),
        ROW(SDX_F64, f64),
        ROW(SDX_F16, f16),
        ROW(SDX_BF16, bf16),
#undef ROW
        {SDX_BOOL, {bool_or, bool_and, bool_or, bool_and}},
        {SDX_C64, {c64_add, c64_mul, NULL, NULL}},
        {SDX_C128, {c128_add, c128_mul, NULL, NULL}},
    };
    static const char *const names[4] = {"add", "mul", "max", "min"};
    for (int i = 0; i < SDX_COUNT_OF(table); i++)
        for (int k = 0; k < 4 && table[i].dtype == dtype; k++)
            if (sdx_str_is(name, names[k])) return table[i].fn[k];
    return NULL;
}
