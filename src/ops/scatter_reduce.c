/* SPDX-License-Identifier: Apache-2.0
 * The reductions are one loop for each element type and reduction, made by one macro. f16 and bf16
 * go through f32, integers wrap. */
#include "ops/scatter_reduce.h"

#include <complex.h>

#include "kernels/vec.h"
#include "ops/move.h"
#include "sardonyx/sardonyx.h"
#include "tensor/convert.h"

/* ---- the data ---- */

/* The whole data, copied by the first part of work; parts are bytes. */
static enum sdx_status copy_data(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)x;
    const char *src = step->in[0]->data;
    char *dst = step->out[0]->data;
    int64_t bytes = step->out[0]->count * *(const int64_t *)step->params;
    int64_t begin = sdx_part_begin(bytes, step->parts, part, 64);
    int64_t end = sdx_part_begin(bytes, step->parts, part + 1, 64);
    if (src != dst && end > begin) memcpy(dst + begin, src + begin, (size_t)(end - begin));
    return SDX_OK;
}

/* A step that finds the output already holding the data: the copy is its own step before it. Packed
 * types and strings go through one temporary, so both steps must see the same operands; they are
 * therefore run as one step when the type needs a temporary. */
struct scatter {
    sdx_step_fn *run;
    void *params;
    int64_t size;
};

static enum sdx_status run_scatter_whole(struct sdx_exec *x, const struct sdx_step *step,
                                         int64_t part)
{
    const struct scatter *s = step->params;
    struct sdx_step inner = *step;
    inner.params = (void *)(uintptr_t)&s->size;
    SDX_TRY(copy_data(x, &inner, part));
    inner.params = s->params;
    return s->run(x, &inner, part);
}

enum sdx_status sdx_scatter_add(struct sdx_prepare *px, const char *kernel, sdx_step_fn *run,
                                void *params, int64_t parts)
{
    struct scatter *s = SDX_PREPARE_NEW(px, struct scatter);
    if (!s) return SDX_OUT_OF_MEMORY;
    const struct sdx_tensor *out = px->out[0];
    s->run = run;
    s->params = params;
    s->size = (int64_t)sdx_move_size(out->dtype);
    bool direct = out->dtype != SDX_STRING && sdx_dtype_bits((sdx_dtype)out->dtype) >= 8;
    if (!direct) return sdx_move_step(px, kernel, run_scatter_whole, s, 1, 0);
    SDX_TRY(sdx_prepare_step(px, "copy", copy_data, &s->size,
                             sdx_prepare_parts((double)out->bytes, 256 * 1024, 64), 0));
    return sdx_prepare_step(px, kernel, run, params, parts, 0);
}

/* ---- reductions ---- */

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
