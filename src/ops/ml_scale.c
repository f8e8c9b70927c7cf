/* SPDX-License-Identifier: Apache-2.0
 * Scaler, Imputer, Normalizer and Binarizer: element by element, with numbers for each feature (the
 * last axis). */
#include <math.h>

#include "kernels/vec.h"
#include "ops/ml_common.h"
#include "ops/op.h"
#include "tensor/convert.h"

enum norm { NORM_MAX, NORM_L1, NORM_L2 };

enum {
    SPREAD = 512, /* numbers of a Scaler that are there for several rows of few features */
    SHORT = 64,   /* features of a row that is normalised together with others */
    TILE = 64     /* ... so many rows */
};

struct scale {
    int64_t rows, columns;
    const float *a, *b; /* Scaler: offset and scale of `repeats` rows. Imputer: values */
    int64_t repeats;
    const int64_t *ints;
    double replaced;
    int64_t replaced_int;
    float threshold;
    enum norm norm;
};

static enum sdx_status set_shape(struct sdx_prepare *px, struct scale *p)
{
    const struct sdx_tensor *x = px->in[0];
    p->columns = x->rank ? x->dims[x->rank - 1] : 1;
    p->rows = p->columns ? x->count / p->columns : 0;
    switch (x->dtype) {
    case SDX_F32:
    case SDX_F64:
    case SDX_I32:
    case SDX_I64: return SDX_OK;
    default:
        return SDX_FAIL(px->cx, SDX_NOT_SUPPORTED, "%.*s: element type %s",
                        SDX_STR_ARG(px->node->op_type), sdx_dtype_name(x->dtype));
    }
}

static enum sdx_status wrong_count(struct sdx_prepare *px, const char *name, int64_t count,
                                   int64_t columns)
{
    return SDX_FAIL(px->cx, SDX_BAD_MODEL, "%.*s: %s has %lld entries for %lld features",
                    SDX_STR_ARG(px->node->op_type), name, (long long)count, (long long)columns);
}

static enum sdx_status add_rows(struct sdx_prepare *px, const char *kernel, sdx_step_fn *run,
                                struct scale *p)
{
    int64_t parts = sdx_prepare_parts((double)px->in[0]->count, 16384, p->rows > 0 ? p->rows : 1);
    return sdx_prepare_step(px, kernel, run, p, parts, 0);
}

/* ---- Scaler ---- */

static enum sdx_status run_scaler(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)x;
    const struct scale *p = step->params;
    int64_t n = 0, end = sdx_part_begin(p->rows, step->parts, part + 1, 1);
    for (int64_t i = sdx_part_begin(p->rows, step->parts, part, 1); i < end; i += n) {
        n = end - i < p->repeats ? end - i : p->repeats;
        float *y = (float *)step->out[0]->data + i * p->columns;
        const float *v = sdx_ml_rows_f32(step->in[0], i, n, p->columns, y);
        sdx_vec()->f32_sub(v, 1, p->a, 1, y, (size_t)(n * p->columns));
        sdx_vec()->f32_mul(y, 1, p->b, 1, y, (size_t)(n * p->columns));
    }
    return SDX_OK;
}

/* A number for each feature of `repeats` rows, where the attribute has one for all, or none. */
static enum sdx_status spread(struct sdx_prepare *px, const char *name, float missing,
                              const struct scale *p, const float **values)
{
    int64_t count = 0;
    const float *given = sdx_ir_attr_floats(px->node, name, &count);
    if (given && count != p->columns && count != 1) return wrong_count(px, name, count, p->columns);
    float *all = sdx_prepare_alloc(px, (size_t)(p->repeats * p->columns) * sizeof *all);
    if (!all) return px->cx->error.status;
    for (int64_t j = 0; j < p->repeats * p->columns; j++)
        all[j] = !given ? missing : count == 1 ? *given : given[j % p->columns];
    *values = all;
    return SDX_OK;
}

static enum sdx_status prepare_scaler(struct sdx_prepare *px)
{
    struct scale *p = SDX_PREPARE_NEW(px, struct scale);
    if (!p) return px->cx->error.status;
    SDX_TRY(set_shape(px, p));
    p->repeats = p->columns ? (SPREAD + p->columns - 1) / p->columns : 1;
    if (p->repeats > p->rows) p->repeats = p->rows > 0 ? p->rows : 1;
    SDX_TRY(spread(px, "offset", 0, p, &p->a));
    SDX_TRY(spread(px, "scale", 1, p, &p->b));
    return add_rows(px, "Scaler", run_scaler, p);
}

/* ---- Imputer ---- */

/* y may be x. */
#define IMPUTE(name, T, V, values, gone_, is_replaced)                                             \
    static void name(const struct scale *p, const T *x, T *y, int64_t begin, int64_t end)          \
    {                                                                                              \
        const int64_t columns = p->columns;                                                        \
        const T gone = (T)(gone_);                                                                 \
        const V *instead = (values);                                                               \
        T some[TILE];                                                                              \
        (void)gone;                                                                                \
        for (int64_t row = begin; row < end; row++)                                                \
            for (int64_t j = 0, n; j < columns; j += n) {                                          \
                T *to = y + row * columns + j;                                                     \
                n = columns - j < TILE ? columns - j : TILE;                                       \
                memcpy(some, x + row * columns + j, (size_t)n * sizeof *some);                     \
                for (int64_t k = 0; k < n; k++) {                                                  \
                    const T v = some[k], both[2] = {v, (T)instead[j + k]};                         \
                    to[k] = both[is_replaced]; /* no jump: NaN come in no order */                 \
                }                                                                                  \
            }                                                                                      \
    }
IMPUTE(impute_nan_f32, float, float, p->a, 0, v != v)
IMPUTE(impute_f32, float, float, p->a, p->replaced, v == gone)
IMPUTE(impute_nan_f64, double, float, p->a, 0, v != v)
IMPUTE(impute_f64, double, float, p->a, p->replaced, v == gone)
IMPUTE(impute_i32, int32_t, int64_t, p->ints, 0, v == p->replaced_int)
IMPUTE(impute_i64, int64_t, int64_t, p->ints, 0, v == p->replaced_int)

static enum sdx_status run_imputer(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)x;
    const struct scale *p = step->params;
    int64_t begin = sdx_part_begin(p->rows, step->parts, part, 1);
    int64_t end = sdx_part_begin(p->rows, step->parts, part + 1, 1);
    const void *from = step->in[0]->data;
    void *to = step->out[0]->data;
    switch (step->in[0]->dtype) {
    case SDX_F32:
        (isnan(p->replaced) ? impute_nan_f32 : impute_f32)(p, from, to, begin, end);
        break;
    case SDX_F64:
        (isnan(p->replaced) ? impute_nan_f64 : impute_f64)(p, from, to, begin, end);
        break;
    case SDX_I32: impute_i32(p, from, to, begin, end); break;
    default: impute_i64(p, from, to, begin, end); break;
    }
    return SDX_OK;
}

static enum sdx_status prepare_imputer(struct sdx_prepare *px)
{
    struct scale *p = SDX_PREPARE_NEW(px, struct scale);
    if (!p) return px->cx->error.status;
    SDX_TRY(set_shape(px, p));
    p->replaced = sdx_ir_attr_float(px->node, "replaced_value_float", 0);
    p->replaced_int = sdx_ir_attr_int(px->node, "replaced_value_int64", 0);
    const bool real = sdx_dtype_is_float(px->in[0]->dtype);
    int64_t count = 0;
    const float *floats = sdx_ir_attr_floats(px->node, "imputed_value_floats", &count);
    if (!real) count = 0;
    const int64_t *ints = real ? NULL : sdx_ir_attr_ints(px->node, "imputed_value_int64s", &count);
    if (!(real ? (const void *)floats : ints)) count = 0;
    if (count != 1 && count != p->columns)
        return wrong_count(px, real ? "imputed_value_floats" : "imputed_value_int64s", count,
                           p->columns);
    float *a = sdx_prepare_alloc(px, (size_t)p->columns * sizeof *a);
    int64_t *b = sdx_prepare_alloc(px, (size_t)p->columns * sizeof *b);
    if (!a || !b) return px->cx->error.status;
    for (int64_t j = 0; j < p->columns; j++) {
        if (real) a[j] = floats[count == 1 ? 0 : j];
        if (!real) b[j] = ints[count == 1 ? 0 : j];
    }
    p->a = a;
    p->ints = b;
    return add_rows(px, "Imputer", run_imputer, p);
}

/* ---- Normalizer ---- */

/* norm: of n numbers so far, and takes x's */
static void add_norms(enum norm kind, const float *x, float *norm, size_t n)
{
    const struct sdx_vec *vec = sdx_vec();
    float made[TILE];
    if (kind == NORM_MAX) { /* the standard's max(X), not of absolute values */
        vec->f32_max(norm, 1, x, 1, norm, n);
        return;
    }
    if (kind == NORM_L1)
        vec->f32_abs(x, made, n, 0, 0);
    else
        vec->f32_mul(x, 1, x, 1, made, n);
    vec->f32_add(norm, 1, made, 1, norm, n);
}

static void finish_norms(enum norm kind, float *norm, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        if (kind == NORM_L2) norm[i] = sqrtf(norm[i]);
        if (norm[i] == 0) norm[i] = 1;
    }
}

/* One row of few features, in the order of normalize_short. */
static void normalize_one(const struct scale *p, const float *x, float *y)
{
    float norm = p->norm == NORM_MAX ? -INFINITY : 0;
    for (int64_t j = 0; j < p->columns; j++) {
        if (p->norm == NORM_MAX)
            norm = x[j] > norm || x[j] != x[j] ? x[j] : norm;
        else
            norm += p->norm == NORM_L1 ? fabsf(x[j]) : x[j] * x[j];
    }
    finish_norms(p->norm, &norm, 1);
    for (int64_t j = 0; j < p->columns; j++)
        y[j] = x[j] / norm;
}

/* Up to TILE rows of few features: they are turned into columns. */
static void normalize_short(const struct scale *p, const float *x, int64_t rows, float *y)
{
    const struct sdx_vec *vec = sdx_vec();
    const size_t n = (size_t)rows, columns = (size_t)p->columns;
    float tile[SHORT * TILE], norm[TILE];
    vec->b32_transpose(x, columns, tile, TILE, n, columns);
    for (size_t i = 0; i < n; i++)
        norm[i] = p->norm == NORM_MAX ? -INFINITY : 0;
    for (size_t j = 0; j < columns; j++)
        add_norms(p->norm, tile + j * TILE, norm, n);
    finish_norms(p->norm, norm, rows);
    for (size_t j = 0; j < columns; j++)
        vec->f32_div(tile + j * TILE, 1, norm, 1, tile + j * TILE, n);
    vec->b32_transpose(tile, TILE, y, columns, columns, n);
}

static void normalize_row(const struct scale *p, const float *x, float *y)
{
    const struct sdx_vec *vec = sdx_vec();
    const size_t columns = (size_t)p->columns;
    float norm = p->norm == NORM_MAX  ? vec->f32_reduce_max(x, columns)
                 : p->norm == NORM_L1 ? vec->f32_reduce_sumabs(x, columns)
                                      : vec->f32_reduce_sumsq(x, columns);
    finish_norms(p->norm, &norm, 1);
    vec->f32_div(x, 1, &norm, 0, y, columns);
}

static enum sdx_status run_normalizer(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)x;
    const struct scale *p = step->params;
    int64_t n = 0, end = sdx_part_begin(p->rows, step->parts, part + 1, 1);
    for (int64_t i = sdx_part_begin(p->rows, step->parts, part, 1); i < end; i += n) {
        n = p->columns > SHORT ? 1 : end - i < TILE ? end - i : TILE;
        float *y = (float *)step->out[0]->data + i * p->columns;
        const float *v = sdx_ml_rows_f32(step->in[0], i, n, p->columns, y);
        if (p->columns > SHORT)
            normalize_row(p, v, y);
        else if (n == 1)
            normalize_one(p, v, y);
        else
            normalize_short(p, v, n, y);
    }
    return SDX_OK;
}

static enum sdx_status prepare_normalizer(struct sdx_prepare *px)
{
    static const char *const names[] = {"MAX", "L1", "L2"};
    struct scale *p = SDX_PREPARE_NEW(px, struct scale);
    if (!p) return px->cx->error.status;
    SDX_TRY(set_shape(px, p));
    struct sdx_str text = sdx_ir_attr_str(px->node, "norm", "MAX");
    int found = -1;
    for (int i = 0; i < SDX_COUNT_OF(names); i++)
        if (sdx_str_is(text, names[i])) found = i;
    if (found < 0)
        return SDX_FAIL(px->cx, SDX_BAD_MODEL, "Normalizer: norm \"%.*s\"", SDX_STR_ARG(text));
    p->norm = (enum norm)found;
    return add_rows(px, "Normalizer", run_normalizer, p);
}

/* ---- Binarizer ---- */

#define BINARIZE(T)                                                                                \
    {                                                                                              \
        const T *from = step->in[0]->data;                                                         \
        T *to = step->out[0]->data;                                                                \
        for (int64_t i = begin; i < end; i++)                                                      \
            to[i] = (double)from[i] > (double)p->threshold;                                        \
    }

static enum sdx_status run_binarizer(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)x;
    const struct scale *p = step->params;
    int64_t begin = sdx_part_begin(p->rows, step->parts, part, 1) * p->columns;
    int64_t end = sdx_part_begin(p->rows, step->parts, part + 1, 1) * p->columns;
    switch (step->in[0]->dtype) {
    case SDX_F32: BINARIZE(float) break;
    case SDX_F64: BINARIZE(double) break;
    case SDX_I32: BINARIZE(int32_t) break;
    default: BINARIZE(int64_t) break;
    }
    return SDX_OK;
}

static enum sdx_status prepare_binarizer(struct sdx_prepare *px)
{
    struct scale *p = SDX_PREPARE_NEW(px, struct scale);
    if (!p) return px->cx->error.status;
    SDX_TRY(set_shape(px, p));
    p->threshold = sdx_ir_attr_float(px->node, "threshold", 0);
    return add_rows(px, "Binarizer", run_binarizer, p);
}

static enum sdx_status infer_f32(struct sdx_infer *ix)
{
    sdx_infer_set_dtype(ix, 0, SDX_F32);
    const int64_t *dims = sdx_infer_dims(ix, 0);
    return dims ? sdx_infer_set_dims(ix, 0, sdx_infer_rank(ix, 0), dims) : SDX_OK;
}

static const struct sdx_op ops[] = {
    {"Scaler", 1, 0, infer_f32, KERNEL(prepare_scaler)},
    {"Imputer", 1, 0, sdx_infer_same, KERNEL(prepare_imputer), .flags = SDX_OP_INPLACE(0)},
    {"Normalizer", 1, 0, infer_f32, KERNEL(prepare_normalizer)},
    {"Binarizer", 1, 0, sdx_infer_same, KERNEL(prepare_binarizer), .flags = SDX_OP_INPLACE(0)},
};
const struct sdx_op_family sdx_ops_ml_scale = FAMILY("ai.onnx.ml", ops);
