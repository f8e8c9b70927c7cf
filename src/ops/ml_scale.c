/* SPDX-License-Identifier: Apache-2.0
 * Scaler, Imputer, Normalizer and Binarizer: element by element, with numbers for each feature (the
 * last axis). */
#include <math.h>

#include "ops/ml_common.h"
#include "ops/op.h"
#include "tensor/convert.h"

enum norm { NORM_MAX, NORM_L1, NORM_L2 };

struct scale {
    int64_t rows, columns;
    const float *a, *b; /* Scaler: offset and scale, for each feature. Imputer: values */
    const int64_t *ints;
    int64_t count_a, count_ints;
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

static float real_at(const struct sdx_tensor *x, int64_t i)
{
    return x->dtype == SDX_F32 ? ((const float *)x->data)[i]
                               : (float)sdx_load_f64(x->dtype, x->data, i);
}

/* ---- Scaler ---- */

static enum sdx_status run_scaler(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)x;
    const struct scale *p = step->params;
    const struct sdx_tensor *from = step->in[0];
    const float *offset = p->a, *factor = p->b;
    int64_t end = sdx_part_begin(p->rows, step->parts, part + 1, 1);
    for (int64_t i = sdx_part_begin(p->rows, step->parts, part, 1); i < end; i++) {
        float *y = (float *)step->out[0]->data + i * p->columns;
        if (from->dtype == SDX_F32) {
            const float *v = (const float *)from->data + i * p->columns;
            for (int64_t j = 0; j < p->columns; j++)
                y[j] = (v[j] - offset[j]) * factor[j];
        } else {
            for (int64_t j = 0; j < p->columns; j++)
                y[j] = (real_at(from, i * p->columns + j) - offset[j]) * factor[j];
        }
    }
    return SDX_OK;
}

/* A number for each feature, where the attribute has one for all, or none. */
static enum sdx_status spread(struct sdx_prepare *px, const char *name, float missing,
                              int64_t columns, const float **values)
{
    int64_t count = 0;
    *values = sdx_ir_attr_floats(px->node, name, &count);
    if (*values && count == columns) return SDX_OK;
    if (*values && count != 1) return wrong_count(px, name, count, columns);
    float *all = sdx_prepare_alloc(px, (size_t)columns * sizeof *all);
    if (!all) return px->cx->error.status;
    for (int64_t j = 0; j < columns; j++)
        all[j] = *values ? **values : missing;
    *values = all;
    return SDX_OK;
}

static enum sdx_status prepare_scaler(struct sdx_prepare *px)
{
    struct scale *p = SDX_PREPARE_NEW(px, struct scale);
    if (!p) return px->cx->error.status;
    SDX_TRY(set_shape(px, p));
    SDX_TRY(spread(px, "offset", 0, p->columns, &p->a));
    SDX_TRY(spread(px, "scale", 1, p->columns, &p->b));
    return add_rows(px, "Scaler", run_scaler, p);
}

/* ---- Imputer ---- */

#define IMPUTE(name, T, values, count, is_replaced)                                                \
    static void name(const struct scale *p, const T *x, T *y, int64_t begin, int64_t end)          \
    {                                                                                              \
        for (int64_t i = begin; i < end; i++)                                                      \
            for (int64_t j = 0; j < p->columns; j++) {                                             \
                T v = x[i * p->columns + j];                                                       \
                y[i * p->columns + j] = (is_replaced) ? (T)values[count == 1 ? 0 : j] : v;         \
            }                                                                                      \
    }
IMPUTE(impute_f32, float, p->a, p->count_a,
       v == (float)p->replaced || (v != v && isnan(p->replaced)))
IMPUTE(impute_f64, double, p->a, p->count_a, v == p->replaced || (v != v && isnan(p->replaced)))
IMPUTE(impute_i32, int32_t, p->ints, p->count_ints, v == p->replaced_int)
IMPUTE(impute_i64, int64_t, p->ints, p->count_ints, v == p->replaced_int)

static enum sdx_status run_imputer(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)x;
    const struct scale *p = step->params;
    int64_t begin = sdx_part_begin(p->rows, step->parts, part, 1);
    int64_t end = sdx_part_begin(p->rows, step->parts, part + 1, 1);
    const void *from = step->in[0]->data;
    void *to = step->out[0]->data;
    switch (step->in[0]->dtype) {
    case SDX_F32: impute_f32(p, from, to, begin, end); break;
    case SDX_F64: impute_f64(p, from, to, begin, end); break;
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
    p->a = sdx_ir_attr_floats(px->node, "imputed_value_floats", &p->count_a);
    p->ints = sdx_ir_attr_ints(px->node, "imputed_value_int64s", &p->count_ints);
    p->replaced = sdx_ir_attr_float(px->node, "replaced_value_float", 0);
    p->replaced_int = sdx_ir_attr_int(px->node, "replaced_value_int64", 0);
    bool real = sdx_dtype_is_float(px->in[0]->dtype);
    int64_t count = real ? (p->a ? p->count_a : 0) : (p->ints ? p->count_ints : 0);
    if (count != 1 && count != p->columns)
        return wrong_count(px, real ? "imputed_value_floats" : "imputed_value_int64s", count,
                           p->columns);
    return add_rows(px, "Imputer", run_imputer, p);
}

/* ---- Normalizer ---- */

static double norm_of(const struct scale *p, const struct sdx_tensor *x, int64_t row)
{
    double norm = p->norm == NORM_MAX ? -INFINITY : 0;
    for (int64_t j = 0; j < p->columns; j++) {
        double v = real_at(x, row * p->columns + j);
        if (p->norm == NORM_MAX)
            norm = v > norm ? v : norm; /* the standard's max(X), not of absolute values */
        else
            norm += p->norm == NORM_L1 ? fabs(v) : v * v;
    }
    return p->norm == NORM_L2 ? sqrt(norm) : norm;
}

static enum sdx_status run_normalizer(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)x;
    const struct scale *p = step->params;
    float *y = step->out[0]->data;
    int64_t end = sdx_part_begin(p->rows, step->parts, part + 1, 1);
    for (int64_t i = sdx_part_begin(p->rows, step->parts, part, 1); i < end; i++) {
        double norm = norm_of(p, step->in[0], i);
        for (int64_t j = i * p->columns; j < (i + 1) * p->columns; j++)
            y[j] = (float)(real_at(step->in[0], j) / (norm == 0 ? 1 : norm));
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
