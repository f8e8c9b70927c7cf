/* SPDX-License-Identifier: Apache-2.0
 * Elementwise arithmetic on two or more operands with broadcasting. Integers wrap; dividing an
 * integer by zero fails. Mod follows Python's sign rule (fmod = 0) or C's (fmod = 1). */
#include <math.h>

#include "kernels/channel_block.h"
#include "kernels/conv_block.h"
#include "kernels/elements.h"
#include "kernels/vec.h"
#include "ops/layout.h"
#include "ops/loops.h"
#include "tensor/convert.h"

/* ---- inference: content of small integer tensors ---- */

enum fold { FOLD_ADD, FOLD_SUB, FOLD_MUL, FOLD_DIV, FOLD_MIN, FOLD_MAX, FOLD_MOD };

static bool fold_numbers(enum fold fold, int64_t a, int64_t b, int64_t *out)
{
    switch (fold) {
    case FOLD_ADD: return sdx_add_i64(a, b, out);
    case FOLD_SUB: return b != INT64_MIN && sdx_add_i64(a, -b, out);
    case FOLD_MUL: return sdx_mul_i64(a, b, out);
    case FOLD_MIN: *out = a < b ? a : b; return true;
    case FOLD_MAX: *out = a > b ? a : b; return true;
    case FOLD_DIV: *out = b > 0 ? a / b : 0; return b > 0;
    case FOLD_MOD: *out = b > 0 && a >= 0 ? a % b : 0; return b > 0 && a >= 0;
    }
    return false;
}

/* A symbol and a number, where all that may come of them are lengths. */
static int64_t fold_symbol(struct sdx_infer *ix, enum fold fold, int64_t sym_a, int64_t a,
                           int64_t sym_b, int64_t b)
{
    const int64_t both[] = {sym_a, sym_b};
    if (sym_a && sym_b) return fold == FOLD_MUL ? sdx_infer_ratio(ix, both, 2, NULL, 0) : -1;
    const int64_t number = sym_a ? b : a;
    struct sdx_ir_length l = {.dim = sym_a ? sym_a : sym_b, .factor = 1, .divisor = 1};
    if (number >= 0 && (fold == FOLD_ADD || (fold == FOLD_SUB && sym_a && number == 0)))
        l.term = number;
    else if (fold == FOLD_MUL && number > 0)
        l.factor = number;
    else if (fold == FOLD_DIV && sym_a && number > 0)
        l.divisor = number;
    else
        return -1;
    if (l.term == 0 && l.factor == 1 && l.divisor == 1) return l.dim;
    return sdx_infer_scaled(ix, l);
}

static struct sdx_int fold_int(struct sdx_infer *ix, const void *arg, const struct sdx_int *at)
{
    const enum fold fold = *(const enum fold *)arg;
    struct sdx_int made = {0, 0};
    if (at[0].sym || at[1].sym)
        made.sym = fold_symbol(ix, fold, at[0].sym, at[0].v, at[1].sym, at[1].v);
    else if (!fold_numbers(fold, at[0].v, at[1].v, &made.v) ||
             (sdx_infer_dtype(ix, 0) == SDX_I32 && made.v != (int32_t)made.v))
        made.sym = -1;
    return made;
}

static enum sdx_status fold_ints(struct sdx_infer *ix, enum fold fold)
{
    struct sdx_ints lists[2];
    const int dtype = sdx_infer_dtype(ix, 0);
    if ((dtype != SDX_I64 && dtype != SDX_I32) || ix->count_in != 2) return SDX_OK;
    if (!sdx_infer_ints_to_pass(ix, 0, &lists[0]) || !sdx_infer_ints_to_pass(ix, 1, &lists[1]))
        return SDX_OK;
    return sdx_infer_map_ints(ix, lists, 2, &fold, fold_int);
}

static enum sdx_status infer_fold(struct sdx_infer *ix, enum fold fold)
{
    sdx_infer_set_dtype(ix, 0, sdx_infer_dtype(ix, 0));
    SDX_TRY(sdx_nest_infer_shape(ix));
    return fold_ints(ix, fold);
}

static enum sdx_status infer_add(struct sdx_infer *ix)
{
    return infer_fold(ix, FOLD_ADD);
}
static enum sdx_status infer_sub(struct sdx_infer *ix)
{
    return infer_fold(ix, FOLD_SUB);
}
static enum sdx_status infer_mul(struct sdx_infer *ix)
{
    return infer_fold(ix, FOLD_MUL);
}
static enum sdx_status infer_div(struct sdx_infer *ix)
{
    return infer_fold(ix, FOLD_DIV);
}
static enum sdx_status infer_mod(struct sdx_infer *ix)
{
    return infer_fold(ix, FOLD_MOD);
}
static enum sdx_status infer_binary(struct sdx_infer *ix)
{
    sdx_infer_set_dtype(ix, 0, sdx_infer_dtype(ix, 0));
    return sdx_nest_infer_shape(ix);
}
static enum sdx_status infer_max(struct sdx_infer *ix)
{
    SDX_TRY(sdx_infer_variadic(ix));
    return fold_ints(ix, FOLD_MAX);
}
static enum sdx_status infer_min(struct sdx_infer *ix)
{
    SDX_TRY(sdx_infer_variadic(ix));
    return fold_ints(ix, FOLD_MIN);
}

/* ---- loops ---- */

#define VEC_LOOP(op)                                                                               \
    static bool op##_f32(const void *arg, const void *const *in, const int64_t *step, void *out,   \
                         int64_t n)                                                                \
    {                                                                                              \
        (void)arg;                                                                                 \
        sdx_vec()->f32_##op(in[0], (size_t)step[0], in[1], (size_t)step[1], out, (size_t)n);       \
        return true;                                                                               \
    }
VEC_LOOP(add)
VEC_LOOP(sub)
VEC_LOOP(mul)
VEC_LOOP(div)
VEC_LOOP(max)
VEC_LOOP(min)
VEC_LOOP(prelu)
#undef VEC_LOOP

SDX_LOOP_BINARY(prelu_f64, double, double, double, x < 0 ? x * y : x)

/* Through uint64_t, where overflow wraps as it should. */
#define ADD(op, s, T)     SDX_LOOP_BINARY(op##_##s, T, T, T, (uint64_t)x + (uint64_t)y)
#define SUB(op, s, T)     SDX_LOOP_BINARY(op##_##s, T, T, T, (uint64_t)x - (uint64_t)y)
#define MUL(op, s, T)     SDX_LOOP_BINARY(op##_##s, T, T, T, (uint64_t)x *(uint64_t)y)
#define MAX(op, s, T)     SDX_LOOP_BINARY(op##_##s, T, T, T, x > y ? x : y)
#define MIN(op, s, T)     SDX_LOOP_BINARY(op##_##s, T, T, T, x < y ? x : y)
#define ADD_F64(op, s, T) SDX_LOOP_BINARY(op##_##s, T, T, T, x + y)
#define SUB_F64(op, s, T) SDX_LOOP_BINARY(op##_##s, T, T, T, x - y)
#define MUL_F64(op, s, T) SDX_LOOP_BINARY(op##_##s, T, T, T, x *y)
#define DIV_F64(op, s, T) SDX_LOOP_BINARY(op##_##s, T, T, T, x / y)
#define MAX_F64(op, s, T) SDX_LOOP_BINARY(op##_##s, T, T, T, x > y || x != x ? x : y)
#define MIN_F64(op, s, T) SDX_LOOP_BINARY(op##_##s, T, T, T, x < y || x != x ? x : y)
/* With a kernel for all but a few elements. */
#define BY_KERNEL(name, few, T, kernel)                                                            \
    static bool name(const void *arg, const void *const *in, const int64_t *step, void *out,       \
                     int64_t n)                                                                    \
    {                                                                                              \
        if (n < SDX_ELEMENT_BLOCK / 4) return few(arg, in, step, out, n);                          \
        const uint8_t size[] = {sizeof(T), sizeof(T), sizeof(T)};                                  \
        sdx_element_run(sdx_elements()->kernel, NULL, 2, size, in, step, out, n);                  \
        return true;                                                                               \
    }
#define KERNEL_OR_FEW(loop, op, s, T, kernel)                                                      \
    loop(op##_few, s, T) BY_KERNEL(op##_##s, op##_few_##s, T, kernel)
#define WRAPS_32(loop, op)                                                                         \
    KERNEL_OR_FEW(loop, op, u32, uint32_t, b32_##op) KERNEL_OR_FEW(loop, op, i32, int32_t, b32_##op)
#define WRAPS_64(loop, op)                                                                         \
    KERNEL_OR_FEW(loop, op, u64, uint64_t, b64_##op) KERNEL_OR_FEW(loop, op, i64, int64_t, b64_##op)
#define LOOP_SHORT(X, op)                                                                          \
    X(op, u8, uint8_t) X(op, u16, uint16_t) X(op, i8, int8_t) X(op, i16, int16_t)
LOOP_SHORT(ADD, add)
LOOP_SHORT(SUB, sub)
LOOP_SHORT(MUL, mul)
WRAPS_32(ADD, add)
WRAPS_32(SUB, sub)
WRAPS_32(MUL, mul)
WRAPS_64(ADD, add)
WRAPS_64(SUB, sub)
WRAPS_64(MUL, mul)
LOOP_SHORT(MAX, max)
LOOP_SHORT(MIN, min)
MAX(max, u32, uint32_t)
MIN(min, u32, uint32_t)
KERNEL_OR_FEW(MAX, max, i32, int32_t, i32_max)
KERNEL_OR_FEW(MIN, min, i32, int32_t, i32_min)
MAX(max, u64, uint64_t)
MIN(min, u64, uint64_t)
KERNEL_OR_FEW(MAX, max, i64, int64_t, i64_max)
KERNEL_OR_FEW(MIN, min, i64, int64_t, i64_min)
KERNEL_OR_FEW(ADD_F64, add, f64, double, f64_add)
KERNEL_OR_FEW(SUB_F64, sub, f64, double, f64_sub)
KERNEL_OR_FEW(MUL_F64, mul, f64, double, f64_mul)
KERNEL_OR_FEW(DIV_F64, div, f64, double, f64_div)
KERNEL_OR_FEW(MAX_F64, max, f64, double, f64_max)
KERNEL_OR_FEW(MIN_F64, min, f64, double, f64_min)

/* Of elements of `size` bytes, byte by byte. */
static bool run_bits(sdx_element_fn *fn, uint8_t size, const void *const *in, const int64_t *step,
                     void *out, int64_t n)
{
    const uint8_t sizes[] = {step[0] ? 1 : size, step[1] ? 1 : size, 1};
    sdx_element_run(fn, NULL, 2, sizes, in, step, out, n * size);
    return true;
}
#define BITS(op, s, T)                                                                             \
    static bool op##_##s(const void *arg, const void *const *in, const int64_t *step, void *out,   \
                         int64_t n)                                                                \
    {                                                                                              \
        (void)arg;                                                                                 \
        return run_bits(sdx_elements()->bits_##op, sizeof(T), in, step, out, n);                   \
    }
#define BITS_OF_ALL(op)                                                                            \
    BITS(op, u8, uint8_t) BITS(op, u16, uint16_t) BITS(op, u32, uint32_t) BITS(op, u64, uint64_t)
BITS_OF_ALL(and)
BITS_OF_ALL(or)
BITS_OF_ALL(xor)
#define PRELU(op, s, T)                                                                            \
    SDX_LOOP_BINARY(op##_##s, T, T, T, x < (T)1 ? (uint64_t)x * (uint64_t)y : (uint64_t)x)
PRELU(prelu, i32, int32_t)
PRELU(prelu, i64, int64_t)
PRELU(prelu, u32, uint32_t)
PRELU(prelu, u64, uint64_t)

/* The quotient of the smallest number by -1 wraps; C leaves it undefined. */
#define IS_MINUS_ONE(T, y) ((T)-1 < (T)1 && (y) == (T)-1)
#define QUOTIENT(T)        (IS_MINUS_ONE(T, y) ? (T)(0 - (uint64_t)x) : (T)(x / y))
#define REMAINDER(T)       (IS_MINUS_ONE(T, y) ? (T)0 : (T)(x % y))
/* Python's sign: that of the divisor. */
#define FLOOR_MOD(T, rest) ((rest) != 0 && ((rest) < (T)1) != (y < (T)1) ? (T)((rest) + y) : (rest))
#define DIV(op, s, T)      WHOLE(op, s, T, QUOTIENT(T))
#define MODC(op, s, T)     WHOLE(op, s, T, REMAINDER(T))
#define MODP(op, s, T)     WHOLE(op, s, T, FLOOR_MOD(T, REMAINDER(T)))
/* The operation, and around it a look for zero divisors. */
#define WHOLE(op, s, T, expr)                                                                      \
    SDX_LOOP_BINARY(op##_nonzero_##s, T, T, T, expr)                                               \
    CHECKED(op, s, T)
/* With a kernel for all but a few elements. */
#define MANY(op, s, T, expr)                                                                       \
    SDX_LOOP_BINARY(op##_few_##s, T, T, T, expr)                                                   \
    BY_KERNEL(op##_nonzero_##s, op##_few_##s, T, s##_##op)                                         \
    CHECKED(op, s, T)
#define CHECKED(op, s, T)                                                                          \
    static bool op##_##s(const void *arg, const void *const *in, const int64_t *step, void *out,   \
                         int64_t n)                                                                \
    {                                                                                              \
        const T *b = in[1];                                                                        \
        for (int64_t j = 0, last = step[1] ? n : 1; j < last; j++)                                 \
            if (b[j] == 0) return false;                                                           \
        return op##_nonzero_##s(arg, in, step, out, n);                                            \
    }
#define DIV_MANY(s, T)  MANY(div, s, T, QUOTIENT(T))
#define MODP_MANY(s, T) MANY(modp, s, T, FLOOR_MOD(T, REMAINDER(T)))
#define SHORT(X, op)    SDX_LOOP_UNSIGNED(X, op) X(op, i8, int8_t) X(op, i16, int16_t)
SHORT(DIV, div)
DIV_MANY(i32, int32_t)
DIV_MANY(i64, int64_t)
SDX_LOOP_INTS(MODC, modc)
SHORT(MODP, modp)
MODP_MANY(i32, int32_t)
MODP_MANY(i64, int64_t)

static double floor_mod(double x, double y)
{
    double rest = fmod(x, y);
    if (rest == 0) return copysign(0, y);
    return (rest < 0) != (y < 0) ? rest + y : rest;
}
static bool modc_f32(const void *arg, const void *const *in, const int64_t *step, void *out,
                     int64_t n)
{
    (void)arg;
    sdx_element_run(sdx_elements()->f32_fmod, NULL, 2, (const uint8_t[]){4, 4, 4}, in, step, out,
                    n);
    return true;
}
SDX_LOOP_BINARY(modc_f64, double, double, double, fmod(x, y))
SDX_LOOP_BINARY(modp_f32, float, float, float, floor_mod(x, y))
SDX_LOOP_BINARY(modp_f64, double, double, double, floor_mod(x, y))

/* Shifts by a negative number or by the width and more leave only the sign. */
#define WIDTH(T) ((uint64_t)sizeof(T) * 8)
#define SHL(op, s, T)                                                                              \
    SDX_LOOP_BINARY(op##_##s, T, T, T, (uint64_t)y < WIDTH(T) ? (uint64_t)x << y : 0)
#define SHR(op, s, T)                                                                              \
    SDX_LOOP_BINARY(op##_##s, T, T, T, x >> ((uint64_t)y < WIDTH(T) ? (uint64_t)y : WIDTH(T) - 1))
#define SHRU(op, s, T)                                                                             \
    SDX_LOOP_BINARY(op##_##s, T, T, T, (uint64_t)y < WIDTH(T) ? (uint64_t)x >> y : 0)
SDX_LOOP_INTS(SHL, shl)
SDX_LOOP_SIGNED(SHR, shr)
SDX_LOOP_UNSIGNED(SHRU, shr)

/* ---- Pow ---- */

static uint64_t power_wrapped(uint64_t base, uint64_t exponent)
{
    uint64_t result = 1;
    for (; exponent; exponent >>= 1) {
        if (exponent & 1) result *= base;
        base *= base;
    }
    return result;
}

/* An integer to an integer power; a negative one truncates the true value, which for 0 is none. */
static int64_t power_i64(int64_t base, int64_t exponent)
{
    if (exponent >= 0) return (int64_t)power_wrapped((uint64_t)base, (uint64_t)exponent);
    if (base == 1) return 1;
    if (base == -1) return exponent & 1 ? -1 : 1;
    return 0;
}

SDX_LOOP_BINARY(pow_f64, double, double, double, pow(x, y))
SDX_LOOP_BINARY(pow_ints_i32, int32_t, int32_t, int32_t, power_i64(x, y))
SDX_LOOP_BINARY(pow_ints_i64, int64_t, int64_t, int64_t, power_i64(x, y))

enum { POW_TILE = 512 };

/* sqrt(x), but of -0 and -infinity what pow makes of them. */
static void square_roots(const float *a, float *r, size_t n)
{
    const struct sdx_vec *vec = sdx_vec();
    const float zero = 0;
    const bool is_plain = vec->f32_reduce_min(a, n) > -INFINITY; /* false of NaN */
    float x[POW_TILE];
    vec->f32_add(a, 1, &zero, 0, x, n);
    vec->f32_sqrt(x, r, n, 0, 0);
    for (size_t j = 0; !is_plain && j < n; j++)
        if (x[j] == -INFINITY) r[j] = INFINITY;
}

/* r = a^exponent, for the exponents that need no logarithm. */
static bool pow_simple(const float *a, int64_t step, double exponent, float *r, int64_t n)
{
    const struct sdx_vec *vec = sdx_vec();
    if (exponent == 2) {
        vec->f32_mul(a, (size_t)step, a, (size_t)step, r, (size_t)n);
        return true;
    }
    if (exponent != 3 && exponent != 0.5) return false;
    if (!step) { /* one for all: the bits that it has in a row */
        float one;
        (void)pow_simple(a, 1, exponent, &one, 1);
        for (int64_t j = 0; j < n; j++)
            r[j] = one;
        return true;
    }
    for (int64_t at = 0; at < n; at += POW_TILE) {
        const size_t run = (size_t)(n - at < POW_TILE ? n - at : POW_TILE);
        float squares[POW_TILE];
        if (exponent == 3) {
            vec->f32_mul(a + at, 1, a + at, 1, squares, run);
            vec->f32_mul(squares, 1, a + at, 1, r + at, run);
        } else {
            square_roots(a + at, r + at, run);
        }
    }
    return true;
}

static bool pow_f32(const void *arg, const void *const *in, const int64_t *step, void *out,
                    int64_t n)
{
    (void)arg;
    if (step[1] == 0 && pow_simple(in[0], step[0], ((const float *)in[1])[0], out, n)) return true;
    sdx_element_run(sdx_elements()->f32_pow, NULL, 2, (const uint8_t[]){4, 4, 4}, in, step, out, n);
    return true;
}

static bool has_zero_to_negative(const void *a, int dtype_a, int64_t step_a, const void *b,
                                 int dtype_b, int64_t step_b, int64_t n)
{
    for (int64_t j = 0, last = step_a || step_b ? n : n > 0; j < last; j++) {
        if (!step_b && sdx_load_i64(dtype_b, b, 0) >= 0) break;
        if (sdx_load_i64(dtype_b, b, j * step_b) < 0 && sdx_load_i64(dtype_a, a, j * step_a) == 0)
            return true;
    }
    return false;
}

struct pow_types {
    int base, exponent;
};

/* Base and exponent of different types, or integers. */
static bool pow_mixed(const void *arg, const void *const *in, const int64_t *step, void *out,
                      int64_t n)
{
    const struct pow_types *types = arg;
    bool integers = sdx_dtype_is_integer(types->base) && sdx_dtype_is_integer(types->exponent);
    if (types->base == SDX_F32 && step[1] == 0 && n > 0 &&
        pow_simple(in[0], step[0], sdx_load_f64(types->exponent, in[1], 0), out, n))
        return true;
    if (!integers) {
        for (int64_t j = 0; j < n; j++)
            sdx_store_f64(types->base, out, j,
                          pow(sdx_load_f64(types->base, in[0], j * step[0]),
                              sdx_load_f64(types->exponent, in[1], j * step[1])));
        return true;
    }
    if (sdx_dtype_is_signed(types->exponent) &&
        has_zero_to_negative(in[0], types->base, step[0], in[1], types->exponent, step[1], n))
        return false;
    if (types->base == types->exponent && step[1] == 0 && n > 0 &&
        sdx_load_i64(types->exponent, in[1], 0) == 2) {
        const void *const pair[] = {in[0], in[0]};
        const int64_t steps[] = {step[0], step[0]};
        return types->base == SDX_I32 ? mul_i32(arg, pair, steps, out, n)
                                      : mul_i64(arg, pair, steps, out, n);
    }
    if (types->base == types->exponent)
        return types->base == SDX_I32 ? pow_ints_i32(arg, in, step, out, n)
                                      : pow_ints_i64(arg, in, step, out, n);
    for (int64_t j = 0; j < n; j++) {
        int64_t x = sdx_load_i64(types->base, in[0], j * step[0]);
        int64_t y = sdx_load_i64(types->exponent, in[1], j * step[1]);
        bool large = types->exponent == SDX_U64 && y < 0;
        sdx_store_i64(types->base, out, j,
                      large ? (int64_t)power_wrapped((uint64_t)x, (uint64_t)y) : power_i64(x, y));
    }
    return true;
}

static enum sdx_status prepare_pow(struct sdx_prepare *px)
{
    struct sdx_nest_job *job = SDX_PREPARE_NEW(px, struct sdx_nest_job);
    struct pow_types *types = SDX_PREPARE_NEW(px, struct pow_types);
    if (!job || !types) return px->cx->error.status;
    types->base = px->in[0]->dtype;
    types->exponent = px->in[1]->dtype;
    bool same = types->base == types->exponent;
    job->fn = same && types->base == SDX_F32   ? pow_f32
              : same && types->base == SDX_F64 ? pow_f64
                                               : pow_mixed;
    job->arg = types;
    if (sdx_dtype_is_integer(types->base) && sdx_dtype_is_signed(types->exponent))
        job->failure = "Pow: 0 to a negative integer power";
    SDX_TRY(sdx_nest_binary(px, &job->nest));
    return sdx_nest_add(px, "pow", job, 16, 2, px->in, px->out[0]);
}

/* ---- SwiGLU ---- */

static bool swiglu_f32(const void *arg, const void *const *in, const int64_t *step, void *out,
                       int64_t n)
{
    (void)step;
    float alpha = *(const float *)arg, gate[256];
    const float *a = in[0], *b = in[1];
    float *r = out;
    for (int64_t at = 0; at < n; at += 256) {
        size_t run = (size_t)(n - at < 256 ? n - at : 256);
        if (alpha == 1.0f) {
            sdx_vec()->f32_silu(a + at, gate, run, 0, 0);
        } else {
            sdx_vec()->f32_mul(a + at, 1, &alpha, 0, gate, run);
            sdx_vec()->f32_sigmoid(gate, gate, run, 0, 0);
            sdx_vec()->f32_mul(a + at, 1, gate, 1, gate, run);
        }
        sdx_vec()->f32_mul(gate, 1, b + at, 1, r + at, run);
    }
    return true;
}
SDX_LOOP_BINARY(swiglu_f64, double, double, double,
                x / (1 + exp(-(double)*(const float *)arg * x)) * y)

static enum sdx_status infer_swiglu(struct sdx_infer *ix)
{
    const int64_t *a = sdx_infer_dims(ix, 0), *b = sdx_infer_dims(ix, 1);
    const int rank = sdx_infer_rank(ix, a ? 0 : 1);
    sdx_infer_set_dtype(ix, 0, sdx_infer_dtype(ix, 0));
    if (!a || !b) return a || b ? sdx_infer_set_dims(ix, 0, rank, a ? a : b) : SDX_OK;
    if (sdx_infer_rank(ix, 1) != rank)
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "SwiGLU: A has rank %d, B has rank %d", rank,
                        sdx_infer_rank(ix, 1));
    int64_t *dims = sdx_infer_new_dims(ix, 0, rank);
    if (!dims) return ix->cx->error.status;
    for (int d = 0; d < rank; d++)
        SDX_TRY(sdx_infer_merge_dim(ix, a[d], b[d], "an axis", &dims[d]));
    return SDX_OK;
}

static enum sdx_status prepare_swiglu(struct sdx_prepare *px)
{
    struct sdx_nest_job *job = SDX_PREPARE_NEW(px, struct sdx_nest_job);
    float *alpha = SDX_PREPARE_NEW(px, float);
    if (!job || !alpha) return px->cx->error.status;
    if (!sdx_dims_equal(px->in[0]->dims, px->in[0]->rank, px->in[1]->dims, px->in[1]->rank))
        return SDX_FAIL(px->cx, SDX_BAD_INPUT, "SwiGLU: A and B differ in shape");
    *alpha = sdx_ir_attr_float(px->node, "alpha", 1.0f);
    job->arg = alpha;
    job->fn = px->in[0]->dtype == SDX_F64 ? swiglu_f64 : swiglu_f32;
    SDX_TRY(sdx_nest_plain(px, &job->nest, px->out[0], 2, px->in));
    return sdx_nest_add(px, "swiglu", job, 8, 2, px->in, px->out[0]);
}

/* ---- two operands of one type ---- */

static enum sdx_status type_fault(struct sdx_prepare *px)
{
    return SDX_FAIL(px->cx, SDX_NOT_SUPPORTED, "%.*s: element type %s",
                    SDX_STR_ARG(px->node->op_type), sdx_dtype_name(px->in[0]->dtype));
}

#define TABLE(op)                                                                                  \
    static sdx_nest_fn *const op##_fns[SDX_LOOP_TYPES] = {                                         \
        [SDX_F32] = op##_f32, [SDX_F64] = op##_f64, SDX_LOOP_INT_ROWS(op)};
#define TABLE_INTS(op) static sdx_nest_fn *const op##_fns[SDX_LOOP_TYPES] = {SDX_LOOP_INT_ROWS(op)};
#define TABLE_BITS(op)                                                                             \
    static sdx_nest_fn *const op##_fns[SDX_LOOP_TYPES] = {                                         \
        [SDX_U8] = op##_u8, [SDX_U16] = op##_u16, [SDX_U32] = op##_u32, [SDX_U64] = op##_u64,      \
        [SDX_I8] = op##_u8, [SDX_I16] = op##_u16, [SDX_I32] = op##_u32, [SDX_I64] = op##_u64};

TABLE(add)
TABLE(sub)
TABLE(mul)
TABLE(div)
TABLE(max)
TABLE(min)
TABLE(modc)
TABLE(modp)
TABLE_BITS(and)
TABLE_BITS(or)
TABLE_BITS(xor)
TABLE_INTS(shl)
TABLE_INTS(shr)

static sdx_nest_fn *const prelu_fns[SDX_LOOP_TYPES] = {
    [SDX_F32] = prelu_f32, [SDX_F64] = prelu_f64, [SDX_I32] = prelu_i32,
    [SDX_I64] = prelu_i64, [SDX_U32] = prelu_u32, [SDX_U64] = prelu_u64};

typedef void channel_fn(const float *x, const float *channel, float *y, int64_t pixels);
/* A factor, summand or slope a channel on blocked channels: a vector for many pixels. */
struct channel_job {
    int full;       /* the operand that has all elements */
    int64_t pixels; /* of a block */
    int64_t period; /* blocks after which the other operand repeats */
    channel_fn *fn;
};

static void run_channel(const struct sdx_step *step, const void *const *in, void *out,
                        int64_t begin, int64_t end, void *scratch)
{
    (void)scratch;
    const struct channel_job *job = step->params;
    const float *from = in[job->full], *channel = in[1 - job->full];
    float *to = out;
    const int64_t lanes = sdx_block_lanes();
    for (int64_t at = begin / lanes, last = end / lanes; at < last;) {
        const int64_t row = at / job->pixels, rest = (row + 1) * job->pixels - at;
        const int64_t n = rest < last - at ? rest : last - at;
        job->fn(from, channel + row % job->period * lanes, to, n);
        from += n * lanes;
        to += n * lanes;
        at += n;
    }
}

/* NULL: there is none; *either: x may be the second operand. */
static channel_fn *channel_fn_of(sdx_nest_fn *const *fns, const char **name, bool *either)
{
    const struct sdx_channel_block *t = sdx_channel_block();
    *either = fns != prelu_fns;
    *name = fns == mul_fns ? "mul channel" : fns == add_fns ? "add channel" : "prelu channel";
    return fns == mul_fns     ? t->f32_mul
           : fns == add_fns   ? t->f32_add
           : fns == prelu_fns ? t->f32_prelu
                              : NULL;
}

/* *done: a step was added. px shows shapes [N, C / b, spatial..., b]. */
static enum sdx_status try_channel(struct sdx_prepare *px, sdx_nest_fn *const *fns, bool *done)
{
    const struct sdx_tensor *out = px->out[0];
    const int64_t lanes = sdx_block_lanes();
    const char *name;
    bool either;
    channel_fn *fn = channel_fn_of(fns, &name, &either);
    *done = false;
    if (px->layout != SDX_LAYOUT_BLOCKED || !fn) return SDX_OK;
    for (int full = 0; full < (either ? 2 : 1); full++) {
        const struct sdx_tensor *x = px->in[full], *c = px->in[1 - full];
        const int64_t blocks = out->dims[1];
        if (x->count != out->count || c->rank != out->rank || c->dims[1] != blocks ||
            c->dims[c->rank - 1] != lanes || c->count != c->dims[0] * blocks * lanes)
            continue;
        struct channel_job *job = SDX_PREPARE_NEW(px, struct channel_job);
        if (!job) return px->cx->error.status;
        const int64_t rows = out->dims[0] * blocks;
        *job = (struct channel_job){.full = full,
                                    .pixels = out->count / lanes / (rows ? rows : 1),
                                    .period = c->dims[0] * blocks,
                                    .fn = fn};
        const struct sdx_tiles tiles = {
            .run = run_channel, .count = out->count, .weight = 1, .full = 1u << full};
        *done = true;
        return sdx_prepare_tiles(px, name, &tiles, job, 0, 2, px->in, px->out[0]);
    }
    return SDX_OK;
}

static enum sdx_status prepare_binary(struct sdx_prepare *px, sdx_nest_fn *const *fns,
                                      const char *kernel, double weight)
{
    bool done = false;
    SDX_TRY(try_channel(px, fns, &done));
    if (done) return SDX_OK;
    struct sdx_nest_job *job = SDX_PREPARE_NEW(px, struct sdx_nest_job);
    if (!job) return px->cx->error.status;
    job->fn = fns[px->in[0]->dtype];
    if (!job->fn || px->in[1]->dtype != px->in[0]->dtype) return type_fault(px);
    if (sdx_dtype_is_integer(px->in[0]->dtype) &&
        (fns == div_fns || fns == modc_fns || fns == modp_fns))
        job->failure = "integer division by zero";
    SDX_TRY(sdx_nest_binary(px, &job->nest));
    return sdx_nest_add(px, kernel, job, weight, 2, px->in, px->out[0]);
}

#define PREPARE(op, weight)                                                                        \
    static enum sdx_status prepare_##op(struct sdx_prepare *px)                                    \
    {                                                                                              \
        return prepare_binary(px, op##_fns, #op, weight);                                          \
    }
PREPARE(add, 1)
PREPARE(sub, 1)
PREPARE(mul, 1)
PREPARE(div, 2)
PREPARE(and, 1)
PREPARE(or, 1)
PREPARE(xor, 1)
#undef PREPARE

static enum sdx_status prepare_mod(struct sdx_prepare *px)
{
    bool truncates = sdx_ir_attr_int(px->node, "fmod", 0) != 0;
    return prepare_binary(px, truncates ? modc_fns : modp_fns, truncates ? "fmod" : "mod", 4);
}

static enum sdx_status prepare_shift(struct sdx_prepare *px)
{
    struct sdx_str direction = sdx_ir_attr_str(px->node, "direction", "");
    bool left = sdx_str_is(direction, "LEFT");
    if (!left && !sdx_str_is(direction, "RIGHT"))
        return SDX_FAIL(px->cx, SDX_BAD_MODEL, "BitShift: direction \"%.*s\"",
                        SDX_STR_ARG(direction));
    return prepare_binary(px, left ? shl_fns : shr_fns, left ? "shl" : "shr", 1);
}

/* ---- PRelu: the slope broadcasts to X; a list of one slope a channel is also taken ---- */

static enum sdx_status prepare_prelu(struct sdx_prepare *px)
{
    bool done = false;
    SDX_TRY(try_channel(px, prelu_fns, &done));
    if (done) return SDX_OK;
    const struct sdx_tensor *a = px->in[0], *b = px->in[1];
    struct sdx_nest_job *job = SDX_PREPARE_NEW(px, struct sdx_nest_job);
    if (!job) return px->cx->error.status;
    job->fn = prelu_fns[a->dtype];
    if (!job->fn || b->dtype != a->dtype) return type_fault(px);
    struct sdx_nest_shape shapes[2] = {{a->dims, a->rank}, {b->dims, b->rank}};
    int64_t channel[SDX_RANK_MAX];
    bool fits = b->rank <= a->rank;
    for (int d = 0; d < b->rank && fits; d++)
        fits = b->dims[d] == 1 || b->dims[d] == a->dims[a->rank - b->rank + d];
    if (b->rank == 1 && a->rank >= 2 && b->dims[0] == a->dims[1] && (px->opset < 7 || !fits)) {
        for (int d = 0; d < a->rank - 1; d++)
            channel[d] = d == 0 ? b->dims[0] : 1;
        shapes[1] = (struct sdx_nest_shape){channel, a->rank - 1};
    }
    SDX_TRY(sdx_nest_make(px, &job->nest, px->out[0], 2, px->in, shapes));
    return sdx_nest_add(px, "prelu", job, 1, 2, px->in, px->out[0]);
}

/* ---- any number of operands: two at a time, in order ---- */

static bool copy_one(const void *arg, const void *const *in, const int64_t *step, void *out,
                     int64_t n)
{
    (void)step;
    if (out != in[0]) memcpy(out, in[0], (size_t)n * *(const size_t *)arg);
    return true;
}

static bool divide_f32(const void *arg, const void *const *in, const int64_t *step, void *out,
                       int64_t n)
{
    float count = (float)*(const double *)arg;
    sdx_vec()->f32_div(in[0], (size_t)step[0], &count, 0, out, (size_t)n);
    return true;
}
SDX_LOOP_UNARY(divide_f64, double, double, x / *(const double *)arg)

static enum sdx_status add_one(struct sdx_prepare *px, const char *kernel, sdx_nest_fn *fn,
                               const void *arg, struct sdx_tensor *in, struct sdx_tensor *out)
{
    struct sdx_nest_job *job = SDX_PREPARE_NEW(px, struct sdx_nest_job);
    if (!job) return px->cx->error.status;
    job->fn = fn;
    job->arg = arg;
    SDX_TRY(sdx_nest_plain(px, &job->nest, out, 1, &in));
    return sdx_nest_add(px, kernel, job, 1, 1, &in, out);
}

/* Partial results of three and more operands stay off the output: its memory may be an operand's
 * that is read again later. */
static enum sdx_status prepare_variadic(struct sdx_prepare *px, sdx_nest_fn *const *fns,
                                        const char *kernel, bool mean)
{
    struct sdx_tensor *out = px->out[0], *sum = out;
    sdx_nest_fn *fn = fns[out->dtype];
    if (!fn) return type_fault(px);
    if (px->count_in == 1) {
        size_t *size = SDX_PREPARE_NEW(px, size_t);
        if (!size) return px->cx->error.status;
        *size = (size_t)sdx_dtype_bits(out->dtype) / 8;
        return add_one(px, "copy", copy_one, size, px->in[0], out);
    }
    if (px->count_in > 2) {
        sum = sdx_prepare_temp(px, out->dtype, out->rank, out->dims);
        if (!sum) return px->cx->error.status;
    }
    for (int i = 1; i < px->count_in; i++) {
        struct sdx_nest_job *job = SDX_PREPARE_NEW(px, struct sdx_nest_job);
        if (!job) return px->cx->error.status;
        job->fn = fn;
        struct sdx_tensor *in[2] = {i == 1 ? px->in[0] : sum, px->in[i]};
        struct sdx_tensor *to = i + 1 == px->count_in ? out : sum;
        SDX_TRY(sdx_nest_plain(px, &job->nest, to, 2, in));
        SDX_TRY(sdx_nest_add(px, kernel, job, 1, 2, in, to));
    }
    if (!mean) return SDX_OK;
    double *count = SDX_PREPARE_NEW(px, double);
    if (!count) return px->cx->error.status;
    *count = px->count_in;
    return add_one(px, "divide", out->dtype == SDX_F64 ? divide_f64 : divide_f32, count, out, out);
}

static enum sdx_status prepare_max(struct sdx_prepare *px)
{
    return prepare_variadic(px, max_fns, "max", false);
}
static enum sdx_status prepare_min(struct sdx_prepare *px)
{
    return prepare_variadic(px, min_fns, "min", false);
}
static enum sdx_status prepare_sum(struct sdx_prepare *px)
{
    return prepare_variadic(px, add_fns, "add", false);
}
static enum sdx_status prepare_mean(struct sdx_prepare *px)
{
    return prepare_variadic(px, add_fns, "add", true);
}

static void layout_prelu(struct sdx_prepare *px, struct sdx_layouts *want)
{
    if (px->in[1]->rank != 1 || px->in[1]->count == 1) sdx_layout_elementwise(px, want);
}

#define BOTH (SDX_OP_INPLACE(0) | SDX_OP_INPLACE(1))
#define F32  (SDX_OP_VIA_F32 | SDX_OP_PHYSICAL)
#define NICE (F32 | SDX_OP_FINITE)
#define WIDE .layout = sdx_layout_elementwise
static const struct sdx_op ops[] = {
    {"Add", 1, 0, infer_add, KERNEL(prepare_add), WIDE, .flags = NICE | BOTH},
    {"Sub", 1, 0, infer_sub, KERNEL(prepare_sub), WIDE, .flags = NICE | BOTH},
    {"Mul", 1, 0, infer_mul, KERNEL(prepare_mul), WIDE, .flags = NICE | BOTH},
    {"Div", 1, 0, infer_div, KERNEL(prepare_div), WIDE, .flags = F32 | BOTH},
    {"Pow", 1, 0, infer_binary, KERNEL(prepare_pow), WIDE, .flags = F32 | SDX_OP_INPLACE(0)},
    {"Mod", 10, 0, infer_mod, KERNEL(prepare_mod), .flags = SDX_OP_VIA_F32 | BOTH},
    {"BitShift", 11, 0, infer_binary, KERNEL(prepare_shift), .flags = BOTH},
    {"BitwiseAnd", 18, 0, infer_binary, KERNEL(prepare_and), .flags = BOTH},
    {"BitwiseOr", 18, 0, infer_binary, KERNEL(prepare_or), .flags = BOTH},
    {"BitwiseXor", 18, 0, infer_binary, KERNEL(prepare_xor), .flags = BOTH},
    {"PRelu", 1, 0, sdx_infer_same, KERNEL(prepare_prelu), .layout = layout_prelu,
     .flags = NICE | SDX_OP_INPLACE(0)},
    {"SwiGLU", 28, 0, infer_swiglu, KERNEL(prepare_swiglu), .flags = SDX_OP_VIA_F32 | BOTH},
    {"Max", 1, 0, infer_max, KERNEL(prepare_max), WIDE, .flags = NICE},
    {"Min", 1, 0, infer_min, KERNEL(prepare_min), WIDE, .flags = NICE},
    {"Sum", 1, 0, sdx_infer_variadic, KERNEL(prepare_sum), WIDE, .flags = NICE},
    {"Mean", 1, 0, sdx_infer_variadic, KERNEL(prepare_mean), WIDE, .flags = NICE},
};
const struct sdx_op_family sdx_ops_binary = FAMILY("", ops);
