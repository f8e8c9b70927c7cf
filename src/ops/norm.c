/* SPDX-License-Identifier: Apache-2.0
 * Normalisations: of rows (LayerNormalization, RMSNormalization, and SimplifiedLayerNormalization
 * of ONNX Runtime, which has LayerNormalization before version 17 too), of channels or groups of
 * them (InstanceNormalization, GroupNormalization), by Lp norm, by the channels around (LRN), and
 * MeanVarianceNormalization as a lowering. BatchNormalization is in batch_norm.c. */
#include <math.h>

#include "kernels/vec.h"
#include "ops/batch_norm.h"
#include "ops/lower.h"
#include "ops/loops.h"
#include "ops/norm_blocked.h"
#include "tensor/convert.h"

static int64_t product(const int64_t *dims, int from, int to)
{
    int64_t n = 1;
    for (int d = from; d < to; d++)
        n *= dims[d];
    return n;
}

static enum sdx_status type_fault(struct sdx_prepare *px)
{
    return SDX_FAIL(px->cx, SDX_NOT_SUPPORTED, "%.*s: element type %s",
                    SDX_STR_ARG(px->node->op_type), sdx_dtype_name(px->in[0]->dtype));
}

static int64_t parts_of(double work, int64_t items)
{
    return sdx_prepare_parts(work, SDX_NEST_GRAIN / 4, items > 0 ? items : 1);
}

/* One row in double: two passes. scale, bias may be NULL. */
static void row_norm_f64(const double *x, const double *scale, const double *bias, double epsilon,
                         double *y, int64_t n, double *mean_out, double *inverse_out)
{
    double mean = 0, variance = 0;
    for (int64_t j = 0; j < n; j++)
        mean += x[j];
    mean /= (double)n;
    for (int64_t j = 0; j < n; j++)
        variance += (x[j] - mean) * (x[j] - mean);
    double inverse = 1 / sqrt(variance / (double)n + epsilon);
    for (int64_t j = 0; j < n; j++)
        y[j] = (x[j] - mean) * inverse * (scale ? scale[j] : 1) + (bias ? bias[j] : 0);
    *mean_out = mean;
    *inverse_out = inverse;
}

/* ---- LayerNormalization, RMSNormalization ---- */

struct row_norm {
    int64_t rows, length;
    float epsilon;
    bool mixed;                 /* RMSNormalization of a result of another type */
    bool with_scale, with_bias; /* applied here; otherwise later steps do, with broadcasting */
};

static void store_real(struct sdx_tensor *t, int64_t i, double value)
{
    if (t->dtype == SDX_F64)
        ((double *)t->data)[i] = value;
    else
        ((float *)t->data)[i] = (float)value;
}

/* The f32 rows [begin, end) by `norm`; their statistics, f32 or f64, where they are outputs. */
static void norm_rows_f32(const struct sdx_step *step, void (*norm)(const struct sdx_norm_rows *),
                          int64_t begin, int64_t end, struct sdx_tensor *mean,
                          struct sdx_tensor *inverse)
{
    enum { KEPT = 32 };
    const struct row_norm *p = step->params;
    float means[KEPT], inverses[KEPT];
    const int64_t most = mean || inverse ? KEPT : end - begin;
    for (int64_t row = begin, count; row < end; row += count) {
        const int64_t at = row * p->length;
        count = end - row < most ? end - row : most;
        norm(&(struct sdx_norm_rows){
            .x = (const float *)step->in[0]->data + at,
            .scale = p->with_scale ? step->in[1]->data : NULL,
            .bias = p->with_bias ? step->in[2]->data : NULL,
            .y = (float *)step->out[0]->data + at,
            .n = (size_t)p->length,
            .rows = (size_t)count,
            .epsilon = p->epsilon,
            .mean = mean ? means : NULL,
            .inv_std = inverse ? inverses : NULL,
        });
        for (int64_t k = 0; mean && k < count; k++)
            store_real(mean, row + k, means[k]);
        for (int64_t k = 0; inverse && k < count; k++)
            store_real(inverse, row + k, inverses[k]);
    }
}

static enum sdx_status run_layer_norm(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)x;
    const struct row_norm *p = step->params;
    struct sdx_tensor *mean_out = step->count_out > 1 ? step->out[1] : NULL;
    struct sdx_tensor *inverse_out = step->count_out > 2 ? step->out[2] : NULL;
    int64_t begin = sdx_part_begin(p->rows, step->parts, part, 1);
    int64_t end = sdx_part_begin(p->rows, step->parts, part + 1, 1);
    if (step->in[0]->dtype == SDX_F32) {
        norm_rows_f32(step, sdx_vec()->f32_layer_norm, begin, end, mean_out, inverse_out);
        return SDX_OK;
    }
    for (int64_t row = begin; row < end; row++) {
        const int64_t at = row * p->length;
        double mean, inverse;
        row_norm_f64((const double *)step->in[0]->data + at,
                     p->with_scale ? step->in[1]->data : NULL,
                     p->with_bias ? step->in[2]->data : NULL, p->epsilon,
                     (double *)step->out[0]->data + at, p->length, &mean, &inverse);
        if (mean_out) store_real(mean_out, row, mean);
        if (inverse_out) store_real(inverse_out, row, inverse);
    }
    return SDX_OK;
}

/* A row in f64 from and to any types. */
static void rms_row_any(const struct row_norm *p, const struct sdx_tensor *x, struct sdx_tensor *y,
                        struct sdx_tensor *inverse_out, int64_t row)
{
    const int64_t at = row * p->length;
    double sum = 0;
    for (int64_t j = 0; j < p->length; j++) {
        double value = sdx_load_f64(x->dtype, x->data, at + j);
        sum += value * value;
    }
    double inverse = 1 / sqrt(sum / (double)p->length + p->epsilon);
    for (int64_t j = 0; j < p->length; j++)
        sdx_store_f64(y->dtype, y->data, at + j, sdx_load_f64(x->dtype, x->data, at + j) * inverse);
    if (inverse_out) store_real(inverse_out, row, inverse);
}

static enum sdx_status run_rms_norm(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)x;
    const struct row_norm *p = step->params;
    struct sdx_tensor *inverse_out = step->count_out > 1 ? step->out[1] : NULL;
    int64_t begin = sdx_part_begin(p->rows, step->parts, part, 1);
    int64_t end = sdx_part_begin(p->rows, step->parts, part + 1, 1);
    if (!p->mixed && step->in[0]->dtype == SDX_F32) {
        norm_rows_f32(step, sdx_vec()->f32_rms_norm, begin, end, NULL, inverse_out);
        return SDX_OK;
    }
    for (int64_t row = begin; row < end; row++) {
        int64_t at = row * p->length;
        if (p->mixed) {
            rms_row_any(p, step->in[0], step->out[0], inverse_out, row);
            continue;
        }
        const double *from = (const double *)step->in[0]->data + at;
        const double *scale = p->with_scale ? step->in[1]->data : NULL;
        double *to = (double *)step->out[0]->data + at, sum = 0;
        for (int64_t j = 0; j < p->length; j++)
            sum += from[j] * from[j];
        double inverse = 1 / sqrt(sum / (double)p->length + p->epsilon);
        for (int64_t j = 0; j < p->length; j++)
            to[j] = from[j] * inverse * (scale ? scale[j] : 1);
        if (inverse_out) store_real(inverse_out, row, inverse);
    }
    return SDX_OK;
}

/* Is `t` exactly the normalised part of x? */
static bool is_row_operand(const struct sdx_tensor *x, int axis, const struct sdx_tensor *t)
{
    int first = 0;
    while (first < t->rank && t->rank - first > x->rank - axis && t->dims[first] == 1)
        first++;
    return sdx_dims_equal(x->dims + axis, x->rank - axis, t->dims + first, t->rank - first);
}

static bool times_f32(const void *arg, const void *const *in, const int64_t *step, void *out,
                      int64_t n)
{
    (void)arg;
    sdx_vec()->f32_mul(in[0], (size_t)step[0], in[1], (size_t)step[1], out, (size_t)n);
    return true;
}
static bool plus_f32(const void *arg, const void *const *in, const int64_t *step, void *out,
                     int64_t n)
{
    (void)arg;
    sdx_vec()->f32_add(in[0], (size_t)step[0], in[1], (size_t)step[1], out, (size_t)n);
    return true;
}
SDX_LOOP_BINARY(times_f64, double, double, double, x *y)
SDX_LOOP_BINARY(plus_f64, double, double, double, x + y)

static enum sdx_status add_broadcast(struct sdx_prepare *px, const char *kernel, sdx_nest_fn *fn,
                                     struct sdx_tensor *operand)
{
    struct sdx_nest_job *job = SDX_PREPARE_NEW(px, struct sdx_nest_job);
    if (!job) return px->cx->error.status;
    struct sdx_tensor *in[2] = {px->out[0], operand};
    job->fn = fn;
    SDX_TRY(sdx_nest_plain(px, &job->nest, px->out[0], 2, in));
    return sdx_nest_add(px, kernel, job, 1, 2, in, px->out[0]);
}

static enum sdx_status prepare_rows(struct sdx_prepare *px, sdx_step_fn *run, const char *kernel)
{
    const struct sdx_tensor *x = px->in[0];
    struct row_norm *p = SDX_PREPARE_NEW(px, struct row_norm);
    if (!p) return px->cx->error.status;
    if (x->dtype != SDX_F32 && x->dtype != SDX_F64) return type_fault(px);
    int64_t axis = sdx_ir_attr_int(px->node, "axis", -1);
    if (axis < -x->rank || axis > x->rank)
        return SDX_FAIL(px->cx, SDX_BAD_MODEL, "%s: axis %lld of rank %d", kernel, (long long)axis,
                        x->rank);
    int at = (int)(axis < 0 ? axis + x->rank : axis);
    bool has_bias = sdx_prepare_has(px, 2);
    if (!px->out[0])
        return SDX_FAIL(px->cx, SDX_NOT_SUPPORTED, "%s: the first output is not used", kernel);
    int dtype = run == run_rms_norm ? px->out[0]->dtype : x->dtype;
    for (int i = 1; i < 2 + has_bias; i++)
        if (px->in[i]->dtype != dtype)
            return SDX_FAIL(px->cx, SDX_NOT_SUPPORTED, "%s: %s with %s", kernel,
                            sdx_dtype_name(x->dtype), sdx_dtype_name(px->in[i]->dtype));
    p->mixed = x->dtype != dtype;
    p->rows = product(x->dims, 0, at);
    p->length = product(x->dims, at, x->rank);
    p->epsilon = sdx_ir_attr_float(px->node, "epsilon", 1e-5f);
    p->with_scale = !p->mixed && is_row_operand(x, at, px->in[1]);
    p->with_bias = p->with_scale && has_bias && is_row_operand(x, at, px->in[2]);
    SDX_TRY(sdx_prepare_step(px, kernel, run, p, parts_of((double)x->count * 2, p->rows), 0));
    bool wide = dtype == SDX_F64;
    if (!p->with_scale)
        SDX_TRY(add_broadcast(px, "scale", wide ? times_f64 : times_f32, px->in[1]));
    if (has_bias && !p->with_bias)
        SDX_TRY(add_broadcast(px, "bias", wide ? plus_f64 : plus_f32, px->in[2]));
    return SDX_OK;
}

static enum sdx_status prepare_layer_norm(struct sdx_prepare *px)
{
    return prepare_rows(px, run_layer_norm, "LayerNormalization");
}

static enum sdx_status prepare_rms_norm(struct sdx_prepare *px)
{
    return prepare_rows(px, run_rms_norm, "RMSNormalization");
}

static enum sdx_status infer_layer_norm(struct sdx_infer *ix)
{
    sdx_infer_copy(ix, 0, 0);
    const int64_t *dims = sdx_infer_dims(ix, 0);
    int rank = sdx_infer_rank(ix, 0);
    int64_t axis = sdx_ir_attr_int(ix->node, "axis", -1);
    for (int k = 1; k < ix->count_out; k++) {
        sdx_infer_set_dtype(ix, k, (int)sdx_ir_attr_int(ix->node, "stash_type", 1));
        if (!dims) continue;
        int64_t *result = sdx_infer_new_dims(ix, k, rank);
        if (!result) return ix->cx->error.status;
        for (int d = 0; d < rank; d++)
            result[d] = d < (axis < 0 ? axis + rank : axis) ? dims[d] : 1;
    }
    return SDX_OK;
}

static enum sdx_status infer_rms_norm(struct sdx_infer *ix)
{
    sdx_infer_copy(ix, 0, 0);
    int dtype = sdx_infer_dtype(ix, 1);
    const int64_t *dims = sdx_infer_dims(ix, 0);
    sdx_infer_set_dtype(ix, 0, dtype != SDX_DTYPE_NONE ? dtype : sdx_infer_dtype(ix, 0));
    return dims ? sdx_infer_set_dims(ix, 0, sdx_infer_rank(ix, 0), dims) : SDX_OK;
}

/* Of ONNX Runtime: the type of Y is that of the scale. */
static enum sdx_status infer_typed_norm(struct sdx_infer *ix)
{
    SDX_TRY(infer_layer_norm(ix));
    return infer_rms_norm(ix);
}

/* ---- InstanceNormalization, GroupNormalization: x: [N, groups, channels of one, inner] ---- */

struct group_norm {
    int64_t count, groups, channels, inner; /* count: N */
    float epsilon;
    bool per_group; /* scale and bias have one entry a group, not a channel */
};

static enum sdx_status run_group_norm(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)x;
    const struct group_norm *p = step->params;
    int64_t rows = p->count * p->groups, length = p->channels * p->inner;
    int64_t begin = sdx_part_begin(rows, step->parts, part, 1);
    int64_t end = sdx_part_begin(rows, step->parts, part + 1, 1);
    const struct sdx_vec *vec = sdx_vec();
    bool wide = step->in[0]->dtype == SDX_F64;
    for (int64_t row = begin; row < end; row++) {
        int64_t group = row % p->groups, at = row * length;
        const double *from = (const double *)step->in[0]->data + at;
        double *to = (double *)step->out[0]->data + at, mean = 0, inverse = 0;
        float *to_f32 = (float *)step->out[0]->data + at;
        if (wide)
            row_norm_f64(from, NULL, NULL, p->epsilon, to, length, &mean, &inverse);
        else
            vec->f32_layer_norm(&(struct sdx_norm_rows){
                .x = (const float *)step->in[0]->data + at,
                .y = to_f32,
                .n = (size_t)length,
                .rows = 1,
                .epsilon = p->epsilon,
            });
        for (int64_t c = 0; c < p->channels; c++) {
            int64_t entry = p->per_group ? group : group * p->channels + c;
            if (!wide) {
                float scale = ((const float *)step->in[1]->data)[entry];
                float shift = ((const float *)step->in[2]->data)[entry];
                vec->f32_affine(to_f32 + c * p->inner, scale, shift, to_f32 + c * p->inner,
                                (size_t)p->inner);
                continue;
            }
            double scale = ((const double *)step->in[1]->data)[entry];
            double shift = ((const double *)step->in[2]->data)[entry];
            for (int64_t j = c * p->inner; j < (c + 1) * p->inner; j++)
                to[j] = to[j] * scale + shift;
        }
    }
    return SDX_OK;
}

static enum sdx_status prepare_groups(struct sdx_prepare *px, int64_t groups, bool per_group)
{
    const struct sdx_tensor *x = px->in[0];
    struct group_norm *p = SDX_PREPARE_NEW(px, struct group_norm);
    if (!p) return px->cx->error.status;
    if (x->dtype != SDX_F32 && x->dtype != SDX_F64) return type_fault(px);
    if (x->rank < 2)
        return SDX_FAIL(px->cx, SDX_BAD_INPUT, "%.*s: input has rank %d, expected at least 2",
                        SDX_STR_ARG(px->node->op_type), x->rank);
    if (groups < 1 || x->dims[1] % groups != 0)
        return SDX_FAIL(px->cx, SDX_BAD_MODEL, "%.*s: %lld channels in %lld groups",
                        SDX_STR_ARG(px->node->op_type), (long long)x->dims[1], (long long)groups);
    int64_t entries = per_group ? groups : x->dims[1];
    for (int i = 1; i < 3; i++)
        if (px->in[i]->count != entries || px->in[i]->dtype != x->dtype)
            return SDX_FAIL(px->cx, SDX_BAD_INPUT, "%.*s: input %d has %lld entries, expected %lld",
                            SDX_STR_ARG(px->node->op_type), i, (long long)px->in[i]->count,
                            (long long)entries);
    if (x->layout == SDX_LAYOUT_BLOCKED) return sdx_norm_blocked_prepare(px, groups, per_group);
    p->count = x->dims[0];
    p->groups = groups;
    p->channels = x->dims[1] / groups;
    p->inner = product(x->dims, 2, x->rank);
    p->epsilon = sdx_ir_attr_float(px->node, "epsilon", 1e-5f);
    p->per_group = per_group;
    return sdx_prepare_step(px, "group norm", run_group_norm, p,
                            parts_of((double)x->count * 3, p->count * groups), 0);
}

static enum sdx_status prepare_instance_norm(struct sdx_prepare *px)
{
    int64_t channels = px->in[0]->rank > 1 ? px->in[0]->dims[1] : 0;
    return prepare_groups(px, channels > 0 ? channels : 1, false);
}

static enum sdx_status prepare_group_norm(struct sdx_prepare *px)
{
    return prepare_groups(px, sdx_ir_attr_int(px->node, "num_groups", 0), px->opset < 21);
}

/* ---- LpNormalization: x: [outer, length, inner] ---- */

enum { TILE = 256 };

struct lp_norm {
    int64_t outer, length, inner, tiles;
    bool is_l1;
};

/* n columns; norm: room for n numbers. */
static void lp_norm_f64(const struct lp_norm *p, const double *x, double *y, double *norm,
                        int64_t n)
{
    for (int64_t j = 0; j < n; j++)
        norm[j] = 0;
    for (int64_t k = 0; k < p->length; k++)
        for (int64_t j = 0; j < n; j++) {
            double v = x[k * p->inner + j];
            norm[j] += p->is_l1 ? fabs(v) : v * v;
        }
    for (int64_t j = 0; j < n && !p->is_l1; j++)
        norm[j] = sqrt(norm[j]);
    for (int64_t k = 0; k < p->length; k++)
        for (int64_t j = 0; j < n; j++)
            y[k * p->inner + j] = norm[j] == 0 ? 0 : x[k * p->inner + j] / norm[j];
}

/* norm: room for 2 n. */
static void lp_norm_f32(const struct lp_norm *p, const float *x, float *y, float *norm, int64_t n)
{
    const struct sdx_vec *vec = sdx_vec();
    float *term = norm + n;
    memset(norm, 0, (size_t)n * sizeof *norm);
    for (int64_t k = 0; k < p->length; k++) {
        (p->is_l1 ? vec->f32_abs : vec->f32_square)(x + k * p->inner, term, (size_t)n, 0, 0);
        vec->f32_add(norm, 1, term, 1, norm, (size_t)n);
    }
    if (!p->is_l1) vec->f32_sqrt(norm, norm, (size_t)n, 0, 0);
    for (int64_t j = 0; j < n; j++)
        if (norm[j] == 0) norm[j] = INFINITY; /* where all is 0 */
    for (int64_t k = 0; k < p->length; k++)
        vec->f32_div(x + k * p->inner, 1, norm, 1, y + k * p->inner, (size_t)n);
}

static void lp_row_f32(const struct lp_norm *p, const float *x, float *y)
{
    const struct sdx_vec *vec = sdx_vec();
    float norm = p->is_l1 ? vec->f32_reduce_sumabs(x, (size_t)p->length)
                          : sqrtf(vec->f32_reduce_sumsq(x, (size_t)p->length));
    if (norm != 0)
        vec->f32_div(x, 1, &norm, 0, y, (size_t)p->length);
    else
        memset(y, 0, (size_t)p->length * sizeof *y);
}

static enum sdx_status run_lp_norm(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct lp_norm *p = step->params;
    int64_t items = p->outer * p->tiles;
    int64_t begin = sdx_part_begin(items, step->parts, part, 1);
    int64_t end = sdx_part_begin(items, step->parts, part + 1, 1);
    for (int64_t item = begin; item < end; item++) {
        int64_t column = (item % p->tiles) * TILE, left = p->inner - column;
        int64_t at = (item / p->tiles) * p->length * p->inner + column;
        int64_t n = left < TILE ? left : TILE;
        const void *from = step->in[0]->data;
        void *to = step->out[0]->data;
        if (step->in[0]->dtype == SDX_F64)
            lp_norm_f64(p, (const double *)from + at, (double *)to + at, x->scratch, n);
        else if (p->inner == 1)
            lp_row_f32(p, (const float *)from + at, (float *)to + at);
        else
            lp_norm_f32(p, (const float *)from + at, (float *)to + at, x->scratch, n);
    }
    return SDX_OK;
}

static enum sdx_status prepare_lp_norm(struct sdx_prepare *px)
{
    const struct sdx_tensor *x = px->in[0];
    struct lp_norm *p = SDX_PREPARE_NEW(px, struct lp_norm);
    if (!p) return px->cx->error.status;
    if (x->dtype != SDX_F32 && x->dtype != SDX_F64) return type_fault(px);
    int64_t axis = sdx_ir_attr_int(px->node, "axis", -1), power = sdx_ir_attr_int(px->node, "p", 2);
    if (axis < -x->rank || axis >= x->rank || power < 1 || power > 2)
        return SDX_FAIL(px->cx, SDX_BAD_MODEL, "LpNormalization: axis %lld of rank %d, p = %lld",
                        (long long)axis, x->rank, (long long)power);
    int at = (int)(axis < 0 ? axis + x->rank : axis);
    p->outer = product(x->dims, 0, at);
    p->length = x->dims[at];
    p->inner = product(x->dims, at + 1, x->rank);
    p->tiles = (p->inner + TILE - 1) / TILE;
    p->is_l1 = power == 1;
    return sdx_prepare_step(px, "LpNormalization", run_lp_norm, p,
                            parts_of((double)x->count * 2, p->outer * p->tiles),
                            TILE * sizeof(double));
}

/* ---- LRN: x: [N, C, inner] ---- */

struct lrn {
    int64_t count, channels, inner, tiles;
    int64_t before, after; /* channels of the window on each side */
    float alpha, beta, bias;
};

static int64_t lrn_first(const struct lrn *p, int64_t c)
{
    return c > p->before ? c - p->before : 0;
}
static int64_t lrn_last(const struct lrn *p, int64_t c)
{
    return c + p->after < p->channels ? c + p->after : p->channels - 1;
}

static void lrn_f32(const struct lrn *p, const float *x, float *y, float *sum, int64_t columns)
{
    const struct sdx_vec *vec = sdx_vec();
    const size_t n = (size_t)columns;
    float *t = sum + TILE;
    for (int64_t c = 0; c < p->channels; c++) {
        const int64_t first = lrn_first(p, c), last = lrn_last(p, c), at = c * p->inner;
        vec->f32_square(x + first * p->inner, sum, n, 0, 0);
        for (int64_t k = first + 1; k <= last; k++) {
            vec->f32_square(x + k * p->inner, t, n, 0, 0);
            vec->f32_add(sum, 1, t, 1, sum, n);
        }
        vec->f32_affine(sum, p->alpha / (float)(p->before + p->after + 1), p->bias, sum, n);
        if (p->beta == 0.75f) {
            vec->f32_sqrt(sum, t, n, 0, 0);
            vec->f32_sqrt(t, sum, n, 0, 0);
            vec->f32_mul(t, 1, sum, 1, sum, n);
        } else {
            for (size_t j = 0; j < n; j++)
                sum[j] = powf(sum[j], p->beta);
        }
        vec->f32_div(x + at, 1, sum, 1, y + at, n);
    }
}

static void lrn_f64(const struct lrn *p, const double *x, double *y, double *sum, int64_t n)
{
    for (int64_t c = 0; c < p->channels; c++) {
        for (int64_t j = 0; j < n; j++)
            sum[j] = 0;
        for (int64_t k = lrn_first(p, c); k <= lrn_last(p, c); k++)
            for (int64_t j = 0; j < n; j++)
                sum[j] += x[k * p->inner + j] * x[k * p->inner + j];
        for (int64_t j = 0; j < n; j++) {
            const double v = p->bias + p->alpha / (double)(p->before + p->after + 1) * sum[j];
            y[c * p->inner + j] = x[c * p->inner + j] / pow(v, p->beta);
        }
    }
}

static enum sdx_status run_lrn(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct lrn *p = step->params;
    int64_t items = p->count * p->tiles;
    int64_t begin = sdx_part_begin(items, step->parts, part, 1);
    int64_t end = sdx_part_begin(items, step->parts, part + 1, 1);
    const void *from = step->in[0]->data;
    void *to = step->out[0]->data;
    for (int64_t item = begin; item < end; item++) {
        int64_t column = (item % p->tiles) * TILE, left = p->inner - column;
        int64_t at = (item / p->tiles) * p->channels * p->inner + column;
        int64_t n = left < TILE ? left : TILE;
        if (step->in[0]->dtype == SDX_F64)
            lrn_f64(p, (const double *)from + at, (double *)to + at, x->scratch, n);
        else
            lrn_f32(p, (const float *)from + at, (float *)to + at, x->scratch, n);
    }
    return SDX_OK;
}

static enum sdx_status prepare_lrn(struct sdx_prepare *px)
{
    const struct sdx_tensor *x = px->in[0];
    struct lrn *p = SDX_PREPARE_NEW(px, struct lrn);
    if (!p) return px->cx->error.status;
    if (x->dtype != SDX_F32 && x->dtype != SDX_F64) return type_fault(px);
    int64_t size = sdx_ir_attr_int(px->node, "size", 0);
    if (x->rank < 2 || size < 1 || size > INT32_MAX)
        return SDX_FAIL(px->cx, SDX_BAD_MODEL, "LRN: size %lld on rank %d", (long long)size,
                        x->rank);
    p->count = x->dims[0];
    p->channels = x->dims[1];
    p->inner = product(x->dims, 2, x->rank);
    p->tiles = (p->inner + TILE - 1) / TILE;
    p->before = (size - 1) / 2;
    p->after = size - 1 - p->before;
    p->alpha = sdx_ir_attr_float(px->node, "alpha", 1e-4f);
    p->beta = sdx_ir_attr_float(px->node, "beta", 0.75f);
    p->bias = sdx_ir_attr_float(px->node, "bias", 1.0f);
    return sdx_prepare_step(px, "LRN", run_lrn, p,
                            parts_of((double)x->count * 10, p->count * p->tiles),
                            TILE * sizeof(double));
}

/* ---- MeanVarianceNormalization: (x - mean) / (sqrt(variance) + 1e-9) ---- */

static int32_t lower_mean(struct sdx_lower *lx, int32_t value, int64_t count, const int64_t *axes)
{
    if (lx->opset >= 18) {
        int32_t in[2] = {value, sdx_lower_ints(lx, count, axes)};
        return sdx_lower_op(lx, "ReduceMean", 2, in);
    }
    int32_t mean = sdx_lower_op(lx, "ReduceMean", 1, &value);
    sdx_lower_attr_ints(lx, "axes", count, axes);
    return mean;
}

static int32_t lower_two(struct sdx_lower *lx, const char *op, int32_t a, int32_t b)
{
    int32_t in[2] = {a, b};
    return sdx_lower_op(lx, op, 2, in);
}

/* normalize false: the mean is subtracted, and that is all. */
static enum sdx_status lower_mvn_over(struct sdx_lower *lx, int64_t count, const int64_t *axes,
                                      bool normalize)
{
    int32_t x = sdx_lower_input(lx, 0);
    int32_t centred = lower_two(lx, "Sub", x, lower_mean(lx, x, count, axes));
    if (!normalize) {
        sdx_lower_output(lx, 0, centred);
        return lx->status;
    }
    int32_t variance = lower_mean(lx, lower_two(lx, "Mul", centred, centred), count, axes);
    int32_t deviation = sdx_lower_op(lx, "Sqrt", 1, &variance);
    int32_t divisor = lower_two(lx, "Add", deviation, sdx_lower_scalar_like(lx, 0, 1e-9));
    sdx_lower_output(lx, 0, lower_two(lx, "Div", centred, divisor));
    return lx->status;
}

static enum sdx_status lower_mvn(struct sdx_lower *lx)
{
    static const int64_t usual[3] = {0, 2, 3};
    int64_t count = 0;
    const int64_t *axes = sdx_ir_attr_ints(sdx_lower_node(lx), "axes", &count);
    return axes ? lower_mvn_over(lx, count, axes, true) : lower_mvn_over(lx, 3, usual, true);
}

/* The experimental operator before version 9: four dimensions, all samples together. */
static enum sdx_status lower_mvn_old(struct sdx_lower *lx)
{
    static const int64_t each[3] = {0, 2, 3}, all[4] = {0, 1, 2, 3};
    const struct sdx_ir_node *node = sdx_lower_node(lx);
    bool across = sdx_ir_attr_int(node, "across_channels", 0) != 0;
    bool normalize = sdx_ir_attr_int(node, "normalize_variance", 1) != 0;
    lx->opset = 13; /* the last one with axes of means as an attribute */
    return lower_mvn_over(lx, across ? 4 : 3, across ? all : each, normalize);
}

void sdx_norm_cost(const struct sdx_infer *ix, struct sdx_cost *cost)
{
    int64_t count = 0;
    if (ix->in[0]->has_shape && sdx_dims_count(ix->in[0]->dims, ix->in[0]->rank, &count))
        cost->flops = 6 * (double)count;
}

static const struct sdx_op ops[] = {
    {"BatchNormalization", 1, 0, sdx_batch_norm_infer, KERNEL(sdx_batch_norm_prepare),
     .layout = sdx_batch_norm_layout, .cost = sdx_norm_cost, .flags = SDX_OP_VIA_F32},
    {"LayerNormalization", 17, 0, infer_layer_norm, KERNEL(prepare_layer_norm),
     .cost = sdx_norm_cost, .flags = SDX_OP_VIA_F32 | SDX_OP_INPLACE(0)},
    {"LayerNormalization", 1, 16, infer_typed_norm, KERNEL(prepare_layer_norm),
     .cost = sdx_norm_cost, .flags = SDX_OP_VIA_F32},
    {"SimplifiedLayerNormalization", 1, 0, infer_typed_norm, KERNEL(prepare_rms_norm),
     .cost = sdx_norm_cost, .flags = SDX_OP_VIA_F32},
    {"RMSNormalization", 23, 0, infer_rms_norm, KERNEL(prepare_rms_norm), .cost = sdx_norm_cost,
     .flags = SDX_OP_VIA_F32 | SDX_OP_INPLACE(0)},
    {"InstanceNormalization", 1, 0, sdx_infer_same, KERNEL(prepare_instance_norm),
     .cost = sdx_norm_cost, .layout = sdx_norm_blocked_layout,
     .flags = SDX_OP_VIA_F32 | SDX_OP_INPLACE(0)},
    {"GroupNormalization", 18, 0, sdx_infer_same, KERNEL(prepare_group_norm), .cost = sdx_norm_cost,
     .layout = sdx_norm_blocked_layout, .flags = SDX_OP_VIA_F32 | SDX_OP_INPLACE(0)},
    {"LpNormalization", 1, 0, sdx_infer_same, KERNEL(prepare_lp_norm), .cost = sdx_norm_cost,
     .flags = SDX_OP_VIA_F32},
    {"LRN", 1, 0, sdx_infer_same, KERNEL(prepare_lrn), .cost = sdx_norm_cost,
     .flags = SDX_OP_VIA_F32},
    {"MeanVarianceNormalization", 1, 8, sdx_infer_same, LOWER(lower_mvn_old),
     .cost = sdx_norm_cost},
    {"MeanVarianceNormalization", 9, 0, sdx_infer_same, LOWER(lower_mvn), .cost = sdx_norm_cost},
};
const struct sdx_op_family sdx_ops_norm = FAMILY("", ops);
