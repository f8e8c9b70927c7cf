/* SPDX-License-Identifier: Apache-2.0
 * Shared parts of the ai.onnx.ml operators. */
#include "ops/ml_common.h"

#include <math.h>

#include "kernels/gemm.h"
#include "kernels/vec.h"
#include "ops/softmax.h"
#include "tensor/convert.h"

enum sdx_status sdx_ml_post_attr(struct sdx_context *cx, const struct sdx_ir_node *node,
                                 enum sdx_ml_post *out)
{
    struct sdx_str text = sdx_ir_attr_str(node, "post_transform", "NONE");
    const int found = sdx_ml_find_name(sdx_ml_post_names, SDX_ML_POSTS, text);
    if (found < 0)
        return SDX_FAIL(cx, SDX_BAD_MODEL, "%.*s: post_transform \"%.*s\"",
                        SDX_STR_ARG(node->op_type), SDX_STR_ARG(text));
    *out = (enum sdx_ml_post)found;
    return SDX_OK;
}

static double logistic(double x)
{
    double v = 1 / (1 + exp(-fabs(x)));
    return x < 0 ? 1 - v : v;
}

/* Winitzki's approximation of the inverse error function, which the standard's runtimes use. */
static double probit(double p)
{
    double x = 2 * p - 1, sign = x < 0 ? -1 : 1, product = (1 - x) * (1 + x);
    if (product == 0) return 0;
    double l = log(product), v = 2 / (3.14159265358979323846 * 0.147) + 0.5 * l;
    return 1.41421356 * sign * sqrt(-v + sqrt(v * v - l / 0.147));
}

static void softmax(double *s, int64_t n, bool keep_zero)
{
    double largest = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; i++)
        largest = s[i] > largest ? s[i] : largest;
    for (int64_t i = 0; i < n; i++) {
        bool near_zero = keep_zero && fabs(s[i]) <= 1e-7;
        s[i] = near_zero ? s[i] * exp(-largest) : exp(s[i] - largest);
        sum += s[i];
    }
    for (int64_t i = 0; i < n; i++)
        s[i] = sum == 0 ? 0.5 : s[i] / sum;
}

void sdx_ml_post_apply(enum sdx_ml_post post, double *scores, int64_t n)
{
    if (post == SDX_ML_SOFTMAX || post == SDX_ML_SOFTMAX_ZERO)
        softmax(scores, n, post == SDX_ML_SOFTMAX_ZERO);
    for (int64_t i = 0; i < n && post == SDX_ML_LOGISTIC; i++)
        scores[i] = logistic(scores[i]);
    for (int64_t i = 0; i < n && post == SDX_ML_PROBIT; i++)
        scores[i] = probit(scores[i]);
}

size_t sdx_ml_post_scratch(enum sdx_ml_post post, int64_t columns)
{
    switch (post) {
    case SDX_ML_NONE:
    case SDX_ML_LOGISTIC: return 0;
    case SDX_ML_SOFTMAX: return sdx_softmax_rows_scratch(columns);
    default: return (size_t)columns * sizeof(double);
    }
}

void sdx_ml_post_rows(enum sdx_ml_post post, float *scores, int64_t rows, int64_t columns,
                      void *scratch)
{
    double *wide = scratch;
    if (post == SDX_ML_LOGISTIC) {
        sdx_vec()->f32_sigmoid(scores, scores, (size_t)(rows * columns), 0, 0);
    } else if (post == SDX_ML_SOFTMAX) {
        sdx_softmax_rows(scores, rows, columns, scratch);
    } else if (post != SDX_ML_NONE) {
        for (float *at = scores, *end = scores + rows * columns; at < end; at += columns) {
            for (int64_t t = 0; t < columns; t++)
                wide[t] = (double)at[t];
            sdx_ml_post_apply(post, wide, columns);
            for (int64_t t = 0; t < columns; t++)
                at[t] = (float)wide[t];
        }
    }
}

int64_t sdx_ml_post_binary(enum sdx_ml_post post, enum sdx_ml_second second, double *scores)
{
    double s = scores[0];
    if (second == SDX_ML_SECOND_NONE) {
        sdx_ml_post_apply(post == SDX_ML_PROBIT ? post : SDX_ML_NONE, scores, 1);
        return 1;
    }
    bool complement = second == SDX_ML_SECOND_COMPLEMENT || post == SDX_ML_PROBIT;
    scores[1] = s;
    scores[0] = complement ? 1 - s : -s;
    sdx_ml_post_apply(post, scores, 2);
    return 2;
}

enum sdx_status sdx_ml_matrix(struct sdx_prepare *px, int64_t *rows, int64_t *columns)
{
    const struct sdx_tensor *x = px->in[0];
    if (x->rank < 1 || x->rank > 2)
        return SDX_FAIL(px->cx, SDX_BAD_INPUT, "%.*s: input has rank %d, expected 1 or 2",
                        SDX_STR_ARG(px->node->op_type), x->rank);
    *rows = x->rank == 2 ? x->dims[0] : 1;
    *columns = x->dims[x->rank - 1];
    return SDX_OK;
}

const float *sdx_ml_rows_f32(const struct sdx_tensor *x, int64_t first, int64_t rows,
                             int64_t columns, float *room)
{
    const int64_t begin = first * columns;
    if (x->dtype == SDX_F32) return (const float *)x->data + begin;
    for (int64_t j = 0; j < rows * columns; j++)
        room[j] = (float)sdx_load_f64(x->dtype, x->data, begin + j);
    return room;
}

const double *sdx_ml_row_f64(const struct sdx_tensor *x, int64_t row, int64_t columns, double *room)
{
    if (x->dtype == SDX_F64) return (const double *)x->data + row * columns;
    for (int64_t j = 0; j < columns; j++)
        room[j] = (float)sdx_load_f64(x->dtype, x->data, row * columns + j);
    return room;
}

float *sdx_ml_pack(struct sdx_prepare *px, const float *matrix, int64_t n, int64_t k)
{
    enum {
        WIDE = 256
    }; /* bytes from which memory of the plan is aligned as packed forms must be */
    const size_t size = sdx_gemm_f32_packed_size(k, n);
    float *packed = sdx_prepare_alloc(px, size > WIDE ? size : WIDE);
    if (packed) sdx_gemm_f32_pack(matrix, 1, k, k, n, packed);
    return packed;
}

void sdx_ml_multiply(const float *x, int64_t m, const float *packed, int64_t n, int64_t k,
                     const float *bias, float *y, int64_t pitch, void *scratch)
{
    const struct sdx_gemm_f32 g = {.m = m,
                                   .n = n,
                                   .k = k,
                                   .a = x,
                                   .row_a = k,
                                   .col_a = 1,
                                   .packed = packed,
                                   .c = y,
                                   .row_c = pitch,
                                   .alpha = 1,
                                   .epilogue.bias_col = bias};
    sdx_gemm_f32_run(&g, 0, m, 0, n, scratch);
}

struct sdx_ml_labels sdx_ml_labels_of(const struct sdx_ir_node *node, const char *ints,
                                      const char *strings)
{
    struct sdx_ml_labels labels = {0};
    labels.strings = sdx_ir_attr_strings(node, strings, &labels.count);
    if (labels.strings && labels.count > 0) return labels;
    labels.strings = NULL;
    labels.count = 0;
    labels.ints = sdx_ir_attr_ints(node, ints, &labels.count);
    if (!labels.ints) labels.count = 0;
    return labels;
}

struct sdx_tensor *sdx_ml_label_rows(struct sdx_prepare *px, const struct sdx_ml_labels *labels,
                                     int64_t rows)
{
    if (!labels->strings && px->out[0]) return px->out[0];
    return sdx_prepare_temp(px, SDX_I64, 1, &rows);
}

void sdx_ml_number_labels(const struct sdx_ml_labels *labels, int64_t *indices, int64_t n)
{
    for (int64_t i = 0; i < n && !labels->strings; i++) {
        const int64_t at = indices[i];
        const bool named = at >= 0 && at < labels->count;
        indices[i] = named ? labels->ints[at] : at < 0 ? -1 - at : at;
    }
}

static enum sdx_status run_texts(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)part;
    const struct sdx_ml_labels *labels = step->params;
    const struct sdx_tensor *in = step->in[0], *out = step->out[0];
    const int64_t *index = in->data;
    struct sdx_str *texts = x->scratch;
    for (int64_t i = 0; i < in->count; i++)
        texts[i] = index[i] >= 0 && index[i] < labels->count ? labels->strings[index[i]]
                                                             : (struct sdx_str){"", 0};
    return sdx_exec_output_strings(x, step, 0, out->rank, out->dims, texts);
}

enum sdx_status sdx_ml_add_texts(struct sdx_prepare *px, struct sdx_ml_labels *labels,
                                 struct sdx_tensor *indices)
{
    if (!labels->strings || px->count_out < 1 || !px->out[0]) return SDX_OK;
    struct sdx_tensor *out = px->out[0];
    return sdx_prepare_step_on(px, "labels", run_texts, labels, 1,
                               (size_t)indices->count * sizeof(struct sdx_str), 1, &indices, 1,
                               &out);
}

static int64_t rows_of(struct sdx_infer *ix)
{
    const int64_t *dims = sdx_infer_dims(ix, 0);
    int rank = sdx_infer_rank(ix, 0);
    return !dims ? -1 : rank == 2 ? dims[0] : 1;
}

enum sdx_status sdx_ml_infer_classifier(struct sdx_infer *ix, bool strings, int64_t columns)
{
    int64_t dims[2] = {rows_of(ix), columns};
    sdx_infer_set_dtype(ix, 0, strings ? SDX_STRING : SDX_I64);
    SDX_TRY(sdx_infer_set_dims(ix, 0, 1, dims));
    if (ix->count_out < 2) return SDX_OK;
    sdx_infer_set_dtype(ix, 1, SDX_F32);
    return sdx_infer_set_dims(ix, 1, 2, dims);
}

enum sdx_status sdx_ml_infer_rows(struct sdx_infer *ix, int dtype, int64_t columns)
{
    int64_t dims[2] = {rows_of(ix), columns};
    sdx_infer_set_dtype(ix, 0, dtype);
    return sdx_infer_set_dims(ix, 0, 2, dims);
}
