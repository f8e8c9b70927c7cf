/* SPDX-License-Identifier: Apache-2.0
 * Elementwise operators of one operand: activations, rounding, transcendental functions, tests of
 * value, and Identity. Dropout is in dropout.c. */
#include <tgmath.h>

#include "kernels/elements.h"
#include "kernels/vec.h"
#include "ops/dropout.h"
#include "ops/layout.h"
#include "ops/loops.h"
#include "tensor/convert.h"

struct unary {
    float a, b; /* the operator's parameters */
    int dtype;
};
typedef void unary_fn(const struct unary *u, const void *x, void *y, int64_t n);

/* ---- loops ---- */

#define MAP(name, T, R, expr)                                                                      \
    static void name(const struct unary *u, const void *from, void *to, int64_t n)                 \
    {                                                                                              \
        (void)u;                                                                                   \
        const T *a = from;                                                                         \
        R *r = to;                                                                                 \
        for (int64_t j = 0; j < n; j++) {                                                          \
            const T x = a[j];                                                                      \
            r[j] = (R)(expr);                                                                      \
        }                                                                                          \
    }
#define VEC(op)                                                                                    \
    static void op##_f32(const struct unary *u, const void *from, void *to, int64_t n)             \
    {                                                                                              \
        sdx_vec()->f32_##op(from, to, (size_t)n, u->a, u->b);                                      \
    }
/* The expression serves float and double: <tgmath.h> picks the function. */
#define BOTH(op, expr)        MAP(op##_f32, float, float, expr) MAP(op##_f64, double, double, expr)
#define VEC_AND_F64(op, expr) VEC(op) MAP(op##_f64, double, double, expr)

#define LIMIT01(v)     ((v) < 0 ? 0 : (v) > 1 ? 1 : (v))
#define SOFTPLUS(v)    (log1p(exp(-fabs(v))) + ((v) > 0 ? (v) : 0))
#define SQRT_HALF      0.70710678118654752440
#define SQRT_2_OVER_PI 0.79788456080286535588
#define GELU_INNER(v)  (SQRT_2_OVER_PI * ((v) + 0.044715 * (v) * (v) * (v)))

VEC_AND_F64(abs, fabs(x))
VEC_AND_F64(neg, -x)
VEC(sqrt)
VEC_AND_F64(reciprocal, 1 / x)
VEC_AND_F64(floor, floor(x))
VEC_AND_F64(ceil, ceil(x))
VEC(round)
VEC(relu)
VEC_AND_F64(leaky_relu, x < 0 ? u->a * x : x)
VEC_AND_F64(elu, x < 0 ? u->a * expm1(x) : x)
VEC_AND_F64(hard_sigmoid, LIMIT01(u->a *x + u->b))
VEC_AND_F64(hard_swish, x *LIMIT01(x / 6 + 0.5))
VEC_AND_F64(thresholded_relu, x > u->a ? x : 0)
VEC_AND_F64(exp, exp(x))
VEC_AND_F64(log, log(x))
VEC_AND_F64(tanh, tanh(x))
VEC_AND_F64(sigmoid, 1 / (1 + exp(-x)))
VEC_AND_F64(erf, erf(x))
VEC_AND_F64(gelu_erf, 0.5 * x * (1 + erf(x * SQRT_HALF)))
VEC_AND_F64(gelu_tanh, 0.5 * x * (1 + tanh(GELU_INNER(x))))
VEC_AND_F64(softplus, SOFTPLUS(x))
VEC_AND_F64(softsign, x / (1 + fabs(x)))
VEC_AND_F64(mish, x *tanh(SOFTPLUS(x)))
VEC_AND_F64(sin, sin(x))
VEC_AND_F64(cos, cos(x))
VEC(silu)
VEC(fake_quantize)
MAP(tan_f64, double, double, tan(x))
VEC_AND_F64(asin, asin(x))
VEC_AND_F64(acos, acos(x))
VEC_AND_F64(atan, atan(x))
VEC_AND_F64(sinh, sinh(x))
VEC_AND_F64(cosh, cosh(x))
VEC_AND_F64(asinh, asinh(x))
VEC_AND_F64(acosh, acosh(x))
VEC_AND_F64(atanh, atanh(x))
BOTH(celu_any, x > 0 ? x : u->a * expm1(x / u->a))
MAP(selu_f64, double, double, u->b *(x > 0 ? x : u->a * expm1(x)))
MAP(swish_f64, double, double, x / (1 + exp(-u->a * x)))

#define ABS_SIGNED(op, s, T)    MAP(op##_##s, T, T, x < 0 ? 0 - (uint64_t)x : (uint64_t)x)
#define NEG_SIGNED(op, s, T)    MAP(op##_##s, T, T, 0 - (uint64_t)x)
#define RELU_INT(op, s, T)      MAP(op##_##s, T, T, x < 0 ? 0 : x)
#define SIGN_SIGNED(op, s, T)   MAP(op##_##s, T, T, (x > 0) - (x < 0))
#define SAME(op, s, T)          MAP(op##_##s, T, T, x)
#define SIGN_UNSIGNED(op, s, T) MAP(op##_##s, T, T, x > 0)
#define SHORT_SIGNED(X, op)     X(op, i8, int8_t) X(op, i16, int16_t)
SHORT_SIGNED(ABS_SIGNED, abs)
SDX_LOOP_UNSIGNED(SAME, abs)
SHORT_SIGNED(NEG_SIGNED, neg)
SHORT_SIGNED(RELU_INT, relu)
SHORT_SIGNED(SIGN_SIGNED, sign)
SIGN_SIGNED(sign, i64, int64_t)
SDX_LOOP_UNSIGNED(SIGN_UNSIGNED, sign)

MAP(is_nan_f64, double, uint8_t, x != x)
MAP(is_inf_f64, double, uint8_t, x == u->a || x == u->b)
MAP(sign_f64, double, double, x > 0 ? 1 : x < 0 ? -1 : x)
MAP(shrink_f64, double, double, x<-u->b ? x + u->a : x> u->b ? x - u->a : 0)

#define ELEMENT(name, kernel, size_in, size_out)                                                   \
    static void name(const struct unary *u, const void *from, void *to, int64_t n)                 \
    {                                                                                              \
        element(sdx_elements()->kernel, u, size_in, size_out, from, to, n);                        \
    }
static void element(sdx_element_fn *fn, const struct unary *u, uint8_t size_in, uint8_t size_out,
                    const void *from, void *to, int64_t n)
{
    const uint8_t sizes[] = {size_in, size_out};
    const float arg[] = {u->a, u->b};
    sdx_element_run(fn, arg, 1, sizes, &from, &(int64_t){1}, to, n);
}
ELEMENT(is_nan_f32, f32_is_nan, 4, 1)
ELEMENT(is_inf_f32, f32_is_inf, 4, 1)
ELEMENT(not_bool, bool_not, 1, 1)
ELEMENT(sign_f32, f32_sign, 4, 4)
ELEMENT(shrink_f32, f32_shrink, 4, 4)
ELEMENT(abs_i32, i32_abs, 4, 4)
ELEMENT(abs_i64, i64_abs, 8, 8)
ELEMENT(sign_i32, i32_sign, 4, 4)
ELEMENT(sqrt_f64, f64_sqrt, 8, 8)
ELEMENT(round_f64, f64_round, 8, 8)

/* By a kernel of two operands, one of which is a constant. */
#define WITH(name, kernel, size, left, right)                                                      \
    static void name(const struct unary *u, const void *from, void *to, int64_t n)                 \
    {                                                                                              \
        (void)u;                                                                                   \
        const void *const in[] = {left, right};                                                    \
        const int64_t step[] = {in[0] == from, in[1] == from};                                     \
        sdx_element_run(sdx_elements()->kernel, NULL, 2, (const uint8_t[]){size, size, size}, in,  \
                        step, to, n);                                                              \
    }
static const uint64_t zeros = 0, ones = UINT64_MAX;
WITH(neg_i32, b32_sub, 4, &zeros, from)
WITH(neg_i64, b64_sub, 8, &zeros, from)
WITH(relu_i32, i32_max, 4, from, &zeros)
WITH(relu_i64, i64_max, 8, from, &zeros)
WITH(relu_f64, f64_max, 8, from, &zeros)
WITH(bit_not_1, bits_xor, 1, from, &ones)
static void bit_not_2(const struct unary *u, const void *from, void *to, int64_t n)
{
    bit_not_1(u, from, to, 2 * n);
}
static void bit_not_4(const struct unary *u, const void *from, void *to, int64_t n)
{
    bit_not_1(u, from, to, 4 * n);
}
static void bit_not_8(const struct unary *u, const void *from, void *to, int64_t n)
{
    bit_not_1(u, from, to, 8 * n);
}

/* Integers through double; the result truncates. */
static void shrink_int(const struct unary *u, const void *from, void *to, int64_t n)
{
    for (int64_t j = 0; j < n; j++) {
        double x = sdx_load_f64(u->dtype, from, j);
        sdx_store_f64(u->dtype, to, j, x < -u->b ? x + u->a : x > u->b ? x - u->a : 0);
    }
}
static void erf_int(const struct unary *u, const void *from, void *to, int64_t n)
{
    for (int64_t j = 0; j < n; j++) {
        double x = sdx_load_f64(u->dtype, from, j);
        sdx_store_f64(u->dtype, to, j, (float)erf(x)); /* as the reference: 4 gives 1 */
    }
}

enum { TILE = 1024 };

static void selu_f32(const struct unary *u, const void *from, void *to, int64_t n)
{
    const float *x = from;
    float *y = to;
    for (int64_t at = 0; at < n; at += TILE) {
        size_t run = (size_t)(n - at < TILE ? n - at : TILE);
        sdx_vec()->f32_elu(x + at, y + at, run, u->a, 0);
        sdx_vec()->f32_mul(y + at, 1, &u->b, 0, y + at, run);
    }
}
static void swish_f32(const struct unary *u, const void *from, void *to, int64_t n)
{
    const float *x = from;
    float *y = to, gate[TILE];
    if (u->a == 1.0f) {
        silu_f32(u, from, to, n);
        return;
    }
    for (int64_t at = 0; at < n; at += TILE) {
        size_t run = (size_t)(n - at < TILE ? n - at : TILE);
        sdx_vec()->f32_mul(x + at, 1, &u->a, 0, gate, run);
        sdx_vec()->f32_sigmoid(gate, gate, run, 0, 0);
        sdx_vec()->f32_mul(x + at, 1, gate, 1, y + at, run);
    }
}

/* max(x, 0) + min(alpha (e^(x / alpha) - 1), 0) */
static void celu_f32(const struct unary *u, const void *from, void *to, int64_t n)
{
    const struct sdx_vec *vec = sdx_vec();
    const float *x = from, zero = 0, inverse = 1 / u->a;
    float *y = to, below[TILE];
    if (!(u->a > 0) || isinf(inverse)) {
        celu_any_f32(u, from, to, n);
        return;
    }
    for (int64_t at = 0; at < n; at += TILE) {
        size_t run = (size_t)(n - at < TILE ? n - at : TILE);
        vec->f32_mul(x + at, 1, &inverse, 0, below, run);
        vec->f32_elu(below, below, run, u->a, 0);
        vec->f32_min(below, 1, &zero, 0, below, run);
        vec->f32_max(x + at, 1, &zero, 0, y + at, run);
        vec->f32_add(y + at, 1, below, 1, y + at, run);
    }
}
static void tan_f32(const struct unary *u, const void *from, void *to, int64_t n)
{
    const struct sdx_vec *vec = sdx_vec();
    const float *x = from;
    float *y = to, cosine[TILE];
    (void)u;
    for (int64_t at = 0; at < n; at += TILE) {
        size_t run = (size_t)(n - at < TILE ? n - at : TILE);
        vec->f32_cos(x + at, cosine, run, 0, 0);
        vec->f32_sin(x + at, y + at, run, 0, 0);
        vec->f32_div(y + at, 1, cosine, 1, y + at, run);
    }
}

/* ---- the operators ---- */

struct unary_def {
    const char *name;
    double weight; /* cost of an element against an addition */
    unary_fn *fns[SDX_LOOP_TYPES];
    const char *attr_a, *attr_b; /* float attributes; NULL: none */
    float a, b;                  /* their defaults */
};

#define FLOATS(op) [SDX_F32] = op##_f32, [SDX_F64] = op##_f64
#define SIGNED_INTS(op)                                                                            \
    [SDX_I8] = op##_i8, [SDX_I16] = op##_i16, [SDX_I32] = op##_i32, [SDX_I64] = op##_i64
#define ALL_INTS(fn)                                                                               \
    [SDX_U8] = fn, [SDX_U16] = fn, [SDX_U32] = fn, [SDX_U64] = fn, [SDX_I8] = fn, [SDX_I16] = fn,  \
    [SDX_I32] = fn, [SDX_I64] = fn

static const struct unary_def defs[] = {
    {"Abs", 1, {FLOATS(abs), SDX_LOOP_INT_ROWS(abs)}, NULL, NULL, 0, 0},
    {"Neg", 1, {FLOATS(neg), SIGNED_INTS(neg)}, NULL, NULL, 0, 0},
    {"Sign", 1, {FLOATS(sign), SDX_LOOP_INT_ROWS(sign)}, NULL, NULL, 0, 0},
    {"Sqrt", 2, {FLOATS(sqrt)}, NULL, NULL, 0, 0},
    {"Reciprocal", 2, {FLOATS(reciprocal)}, NULL, NULL, 0, 0},
    {"Floor", 1, {FLOATS(floor)}, NULL, NULL, 0, 0},
    {"Ceil", 1, {FLOATS(ceil)}, NULL, NULL, 0, 0},
    {"Round", 1, {FLOATS(round)}, NULL, NULL, 0, 0},
    {"Relu", 1, {FLOATS(relu), SIGNED_INTS(relu)}, NULL, NULL, 0, 0},
    {"LeakyRelu", 1, {FLOATS(leaky_relu)}, "alpha", NULL, 0.01f, 0},
    {"Elu", 6, {FLOATS(elu)}, "alpha", NULL, 1, 0},
    {"Selu",
     6,
     {FLOATS(selu)},
     "alpha",
     "gamma",
     1.67326319217681884765625f,
     1.05070102214813232421875f},
    {"Celu", 16, {[SDX_F32] = celu_f32, [SDX_F64] = celu_any_f64}, "alpha", NULL, 1, 0},
    {"HardSigmoid", 1, {FLOATS(hard_sigmoid)}, "alpha", "beta", 0.2f, 0.5f},
    {"HardSwish", 1, {FLOATS(hard_swish)}, NULL, NULL, 0, 0},
    {"ThresholdedRelu", 1, {FLOATS(thresholded_relu)}, "alpha", NULL, 1, 0},
    {"FakeQuantize", 3, {[SDX_F32] = fake_quantize_f32}, "scale", "low", 1, 0},
    {"Shrink", 2, {FLOATS(shrink), ALL_INTS(shrink_int)}, "bias", "lambd", 0, 0.5f},
    {"Exp", 5, {FLOATS(exp)}, NULL, NULL, 0, 0},
    {"Log", 5, {FLOATS(log)}, NULL, NULL, 0, 0},
    {"Tanh", 6, {FLOATS(tanh)}, NULL, NULL, 0, 0},
    {"Sigmoid", 6, {FLOATS(sigmoid)}, NULL, NULL, 0, 0},
    {"Swish", 7, {FLOATS(swish)}, "alpha", NULL, 1, 0},
    {"Erf", 8, {FLOATS(erf), ALL_INTS(erf_int)}, NULL, NULL, 0, 0},
    {"Softplus", 10, {FLOATS(softplus)}, NULL, NULL, 0, 0},
    {"Softsign", 2, {FLOATS(softsign)}, NULL, NULL, 0, 0},
    {"Mish", 16, {FLOATS(mish)}, NULL, NULL, 0, 0},
    {"Sin", 6, {FLOATS(sin)}, NULL, NULL, 0, 0},
    {"Cos", 6, {FLOATS(cos)}, NULL, NULL, 0, 0},
    {"Tan", 16, {FLOATS(tan)}, NULL, NULL, 0, 0},
    {"Asin", 16, {FLOATS(asin)}, NULL, NULL, 0, 0},
    {"Acos", 16, {FLOATS(acos)}, NULL, NULL, 0, 0},
    {"Atan", 16, {FLOATS(atan)}, NULL, NULL, 0, 0},
    {"Sinh", 16, {FLOATS(sinh)}, NULL, NULL, 0, 0},
    {"Cosh", 16, {FLOATS(cosh)}, NULL, NULL, 0, 0},
    {"Asinh", 16, {FLOATS(asinh)}, NULL, NULL, 0, 0},
    {"Acosh", 16, {FLOATS(acosh)}, NULL, NULL, 0, 0},
    {"Atanh", 16, {FLOATS(atanh)}, NULL, NULL, 0, 0},
    {"IsNaN", 1, {FLOATS(is_nan)}, NULL, NULL, 0, 0},
    {"Not", 1, {[SDX_BOOL] = not_bool}, NULL, NULL, 0, 0},
    {"BitwiseNot",
     1,
     {[SDX_U8] = bit_not_1,
      [SDX_I8] = bit_not_1,
      [SDX_U16] = bit_not_2,
      [SDX_I16] = bit_not_2,
      [SDX_U32] = bit_not_4,
      [SDX_I32] = bit_not_4,
      [SDX_U64] = bit_not_8,
      [SDX_I64] = bit_not_8},
     NULL,
     NULL,
     0,
     0},
};

struct map_job {
    struct unary unary;
    unary_fn *fn;
};

static void run_map(const struct sdx_step *step, const void *const *in, void *out, int64_t begin,
                    int64_t end, void *scratch)
{
    (void)scratch;
    const struct map_job *job = step->params;
    job->fn(&job->unary, in[0], out, end - begin);
}

static enum sdx_status add_map(struct sdx_prepare *px, const char *kernel, unary_fn *fn, float a,
                               float b, double weight)
{
    const struct sdx_tensor *in = px->in[0];
    if (!fn)
        return SDX_FAIL(px->cx, SDX_NOT_SUPPORTED, "%.*s: element type %s",
                        SDX_STR_ARG(px->node->op_type), sdx_dtype_name(in->dtype));
    struct map_job *job = SDX_PREPARE_NEW(px, struct map_job);
    if (!job) return px->cx->error.status;
    job->unary = (struct unary){a, b, in->dtype};
    job->fn = fn;
    const struct sdx_tiles tiles = {
        .run = run_map, .count = px->out[0]->count, .weight = weight, .full = 1};
    return sdx_prepare_tiles(px, kernel, &tiles, job, 0, 1, px->in, px->out[0]);
}

static enum sdx_status prepare_unary(struct sdx_prepare *px)
{
    for (int i = 0; i < SDX_COUNT_OF(defs); i++) {
        const struct unary_def *def = &defs[i];
        if (!sdx_str_is(px->node->op_type, def->name)) continue;
        float a = def->attr_a ? sdx_ir_attr_float(px->node, def->attr_a, def->a) : 0;
        float b = def->attr_b ? sdx_ir_attr_float(px->node, def->attr_b, def->b) : 0;
        return add_map(px, def->name, def->fns[px->in[0]->dtype], a, b, def->weight);
    }
    return SDX_FAIL(px->cx, SDX_INTERNAL, "%.*s: no row in unary", SDX_STR_ARG(px->node->op_type));
}

/* The first version rounded its defaults to four digits. */
static enum sdx_status prepare_selu_old(struct sdx_prepare *px)
{
    unary_fn *fn = px->in[0]->dtype == SDX_F64 ? selu_f64 : selu_f32;
    return add_map(px, "Selu", fn, sdx_ir_attr_float(px->node, "alpha", 1.6732f),
                   sdx_ir_attr_float(px->node, "gamma", 1.0507f), 6);
}

static enum sdx_status prepare_gelu(struct sdx_prepare *px)
{
    struct sdx_str mode = sdx_ir_attr_str(px->node, "approximate", "none");
    bool is_tanh = sdx_str_is(mode, "tanh"), wide = px->in[0]->dtype == SDX_F64;
    if (!is_tanh && !sdx_str_is(mode, "none"))
        return SDX_FAIL(px->cx, SDX_BAD_MODEL, "Gelu: approximate \"%.*s\"", SDX_STR_ARG(mode));
    unary_fn *fn =
        is_tanh ? (wide ? gelu_tanh_f64 : gelu_tanh_f32) : (wide ? gelu_erf_f64 : gelu_erf_f32);
    return add_map(px, is_tanh ? "Gelu tanh" : "Gelu", fn, 0, 0, 8);
}

static enum sdx_status prepare_is_inf(struct sdx_prepare *px)
{
    unary_fn *fn = px->in[0]->dtype == SDX_F64 ? is_inf_f64 : is_inf_f32;
    return add_map(px, "IsInf", fn,
                   sdx_ir_attr_int(px->node, "detect_negative", 1) ? -INFINITY : NAN,
                   sdx_ir_attr_int(px->node, "detect_positive", 1) ? INFINITY : NAN, 1);
}

/* ---- inference ---- */

static enum sdx_status infer_bool(struct sdx_infer *ix)
{
    sdx_infer_copy(ix, 0, 0);
    sdx_infer_set_dtype(ix, 0, SDX_BOOL);
    const int64_t *dims = sdx_infer_dims(ix, 0);
    return dims ? sdx_infer_set_dims(ix, 0, sdx_infer_rank(ix, 0), dims) : SDX_OK;
}

static enum sdx_status infer_identity(struct sdx_infer *ix)
{
    sdx_infer_copy(ix, 0, 0);
    struct sdx_ints ints;
    if (!sdx_infer_ints_to_pass(ix, 0, &ints)) return SDX_OK;
    return sdx_infer_set_ints(ix, 0, ints.rank, ints.count, ints.v, ints.sym);
}

static enum sdx_status infer_neg(struct sdx_infer *ix)
{
    sdx_infer_copy(ix, 0, 0);
    struct sdx_ints ints;
    if (sdx_infer_dtype(ix, 0) != SDX_I64 || !sdx_infer_ints_to_pass(ix, 0, &ints)) return SDX_OK;
    int64_t *v = sdx_arena_array(ix->arena, (size_t)ints.count + 1, sizeof *v);
    int64_t *sym = sdx_arena_array(ix->arena, (size_t)ints.count + 1, sizeof *sym);
    if (!v || !sym) return SDX_FAIL_MEMORY(ix->cx);
    for (int64_t i = 0; i < ints.count; i++) {
        sym[i] = ints.sym && ints.sym[i] ? -1 : 0;
        v[i] = (int64_t)(0 - (uint64_t)ints.v[i]);
    }
    return sdx_infer_set_ints(ix, 0, ints.rank, ints.count, v, sym);
}

static void cost_heavy(const struct sdx_infer *ix, struct sdx_cost *cost)
{
    int64_t count = 0;
    if (ix->out[0].has_shape && sdx_dims_count(ix->out[0].dims, ix->out[0].rank, &count))
        cost->flops = 8 * (double)count;
}

#define FLAGS  (SDX_OP_VIA_F32 | SDX_OP_INPLACE(0) | SDX_OP_PHYSICAL)
#define FINITE SDX_OP_FINITE
#define ANY    0
#define ROW(name, since, more)                                                                     \
    {                                                                                              \
        name, since, 0, sdx_infer_same, KERNEL(prepare_unary), .layout = sdx_layout_elementwise,   \
                                                               .flags = FLAGS | (more)             \
    }
#define HEAVY(name, since, more)                                                                   \
    {                                                                                              \
        name, since, 0, sdx_infer_same, KERNEL(prepare_unary),                                     \
            .cost = cost_heavy, .layout = sdx_layout_elementwise, .flags = FLAGS | (more)          \
    }
static const struct sdx_op ops[] = {
    ROW("Abs", 1, FINITE),
    {"Neg", 1, 0, infer_neg, KERNEL(prepare_unary), .layout = sdx_layout_elementwise,
     .flags = FLAGS | FINITE},
    ROW("Sign", 9, FINITE),
    ROW("Sqrt", 1, ANY),
    ROW("Reciprocal", 1, ANY),
    ROW("Floor", 1, FINITE),
    ROW("Ceil", 1, FINITE),
    ROW("Round", 11, FINITE),
    ROW("Relu", 1, FINITE),
    ROW("LeakyRelu", 1, FINITE),
    HEAVY("Elu", 1, FINITE),
    {"Selu", 1, 5, sdx_infer_same, KERNEL(prepare_selu_old), .cost = cost_heavy,
     .layout = sdx_layout_elementwise, .flags = FLAGS | FINITE},
    HEAVY("Selu", 6, FINITE),
    HEAVY("Celu", 12, FINITE),
    ROW("HardSigmoid", 1, FINITE),
    ROW("HardSwish", 14, FINITE),
    ROW("ThresholdedRelu", 1, FINITE),
    ROW("Shrink", 9, FINITE),
    HEAVY("Exp", 1, ANY),
    HEAVY("Log", 1, ANY),
    HEAVY("Tanh", 1, FINITE),
    HEAVY("Sigmoid", 1, FINITE),
    HEAVY("Swish", 24, FINITE),
    HEAVY("Erf", 9, FINITE),
    {"Gelu", 20, 0, sdx_infer_same, KERNEL(prepare_gelu), .cost = cost_heavy,
     .layout = sdx_layout_elementwise, .flags = FLAGS | FINITE},
    HEAVY("Softplus", 1, FINITE),
    ROW("Softsign", 1, FINITE),
    HEAVY("Mish", 18, FINITE),
    HEAVY("Sin", 7, FINITE),
    HEAVY("Cos", 7, FINITE),
    HEAVY("Tan", 7, ANY),
    HEAVY("Asin", 7, ANY),
    HEAVY("Acos", 7, ANY),
    HEAVY("Atan", 7, FINITE),
    HEAVY("Sinh", 9, ANY),
    HEAVY("Cosh", 9, ANY),
    HEAVY("Asinh", 9, ANY),
    HEAVY("Acosh", 9, ANY),
    HEAVY("Atanh", 9, ANY),
    {"IsNaN", 9, 0, infer_bool, KERNEL(prepare_unary), .flags = SDX_OP_VIA_F32},
    {"IsInf", 10, 0, infer_bool, KERNEL(prepare_is_inf), .flags = SDX_OP_VIA_F32},
    {"Not", 1, 0, sdx_infer_same, KERNEL(prepare_unary), .flags = SDX_OP_INPLACE(0)},
    {"BitwiseNot", 18, 0, sdx_infer_same, KERNEL(prepare_unary), .flags = SDX_OP_INPLACE(0)},
    {"Identity", 1, 0, infer_identity, .flags = SDX_OP_VIEW},
    {"Dropout", 1, 0, sdx_dropout_infer, KERNEL(sdx_dropout_prepare),
     .flags = SDX_OP_INPLACE(0) | SDX_OP_IMPURE},
};
const struct sdx_op_family sdx_ops_unary = FAMILY("", ops);
/* Of ours, made by the pass qdq. */
static const struct sdx_op own[] = {ROW("FakeQuantize", 1, FINITE)};
const struct sdx_op_family sdx_ops_unary_own = FAMILY("ai.sardonyx", own);
