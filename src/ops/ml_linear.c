/* SPDX-License-Identifier: Apache-2.0
 * LinearClassifier and LinearRegressor: scores = x * coefficients' + intercepts. */
#include "kernels/gemm.h"
#include "ops/ml_common.h"
#include "ops/op.h"
#include "ops/scan.h"

/* Rows whose scores are made together; as many targets at most are a dot product each. */
enum { BLOCK = 64, FEW = 4 };

struct linear {
    int64_t rows, columns, targets, columns_out;
    struct sdx_ml_labels labels;
    const float *coefficients, *intercepts; /* [targets, columns]; [targets] or NULL */
    float *packed;                          /* the coefficients of more than a FEW targets */
    enum sdx_ml_post post;
    bool is_classifier, two_of_one; /* the one score stands for two classes */
    bool wide;
};

static void wide_scores(const struct linear *p, const struct sdx_tensor *x, int64_t first,
                        int64_t rows, float *scores)
{
    const double *v = (const double *)x->data + first * p->columns;
    for (const double *end = v + rows * p->columns; v < end; v += p->columns)
        for (int64_t t = 0; t < p->targets; t++) {
            double sum = p->intercepts ? p->intercepts[t] : 0;
            for (int64_t j = 0; j < p->columns; j++)
                sum += v[j] * p->coefficients[t * p->columns + j];
            *scores++ = (float)sum;
        }
}

/* scores: [rows, targets] */
static void scores_of(const struct linear *p, const struct sdx_tensor *x, int64_t first,
                      int64_t rows, float *scores, float *room, void *scratch)
{
    if (p->wide) {
        wide_scores(p, x, first, rows, scores);
        return;
    }
    const float *v = sdx_ml_rows_f32(x, first, rows, p->columns, room);
    if (p->packed) {
        sdx_ml_multiply(v, rows, p->packed, p->targets, p->columns, p->intercepts, scores,
                        p->targets, scratch);
        return;
    }
    for (int64_t t = 0; t < p->targets; t++) {
        float column[BLOCK];
        const float shift = p->intercepts ? p->intercepts[t] : 0;
        sdx_gemm_f32_rows_dot(v, p->columns, p->coefficients + t * p->columns, rows, p->columns,
                              column);
        for (int64_t i = 0; i < rows; i++)
            scores[i * p->targets + t] = column[i] + shift;
    }
}

/* Labels of rows; y: [rows, columns_out], the results. The class is that of the greatest score
 * before the transform, which can make two of them equal. */
static void classify(const struct linear *p, const float *scores, int64_t rows, float *y,
                     int64_t *labels, float *scratch)
{
    for (int64_t i = 0; p->two_of_one && i < rows; i++) {
        const float s = scores[i];
        labels[i] = s > 0;
        /* as ONNX Runtime: probabilities where no transform makes them */
        y[2 * i] = p->post == SDX_ML_NONE ? 1 - s : -s;
        y[2 * i + 1] = s;
    }
    if (p->columns_out > 1 && !p->two_of_one)
        sdx_arg_rows(scores, rows, p->targets, false, false, labels);
    sdx_ml_post_rows(p->post, y, rows, p->columns_out, scratch);
    for (int64_t i = 0; p->columns_out == 1 && i < rows; i++) {
        const bool positive = y[i] >= (p->post == SDX_ML_NONE ? 0 : 0.5F);
        labels[i] = !positive ? -1 : p->labels.count ? 0 : 1;
    }
    sdx_ml_number_labels(&p->labels, labels, rows);
}

static enum sdx_status run_linear(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct linear *p = step->params;
    float *scores = x->scratch, *y = scores + BLOCK; /* scores: of one target, for two classes */
    float *room = y + BLOCK * p->columns_out, *scratch = room;
    if (step->in[0]->dtype != SDX_F32) scratch += BLOCK * p->columns;
    const int64_t end = sdx_part_begin(p->rows, step->parts, part + 1, BLOCK);
    int64_t rows = 0;
    for (int64_t i = sdx_part_begin(p->rows, step->parts, part, BLOCK); i < end; i += rows) {
        rows = end - i < BLOCK ? end - i : BLOCK;
        float *to = step->out[0] ? (float *)step->out[0]->data + i * p->columns_out : y;
        float *made = p->two_of_one ? scores : to;
        scores_of(p, step->in[0], i, rows, made, room, scratch);
        if (p->is_classifier)
            classify(p, made, rows, to, (int64_t *)step->out[1]->data + i, scratch);
        else
            sdx_ml_post_rows(p->post, to, rows, p->columns_out, scratch);
    }
    return SDX_OK;
}

static enum sdx_status read_model(struct sdx_prepare *px, struct linear *p)
{
    int64_t coefficients = 0, intercepts = 0;
    SDX_TRY(sdx_ml_matrix(px, &p->rows, &p->columns));
    SDX_TRY(sdx_ml_post_attr(px->cx, px->node, &p->post));
    p->coefficients = sdx_ir_attr_floats(px->node, "coefficients", &coefficients);
    p->intercepts = sdx_ir_attr_floats(px->node, "intercepts", &intercepts);
    if (!p->intercepts || intercepts == 0) p->intercepts = NULL;
    if (p->is_classifier) p->targets = p->columns ? coefficients / p->columns : 0;
    if (!p->coefficients || p->targets < 1 || coefficients != p->targets * p->columns ||
        (p->intercepts && intercepts < p->targets))
        return SDX_FAIL(px->cx, SDX_BAD_MODEL,
                        "%.*s: %lld coefficients and %lld intercepts for %lld features",
                        SDX_STR_ARG(px->node->op_type), (long long)coefficients,
                        (long long)intercepts, (long long)p->columns);
    p->wide = px->in[0]->dtype == SDX_F64;
    return SDX_OK;
}

static enum sdx_status add_step(struct sdx_prepare *px, struct linear *p, int count_out,
                                struct sdx_tensor *const *out)
{
    double work = (double)p->rows * (double)p->targets * (double)(p->columns + 8);
    int64_t parts = sdx_prepare_parts(work, 65536, p->rows > 0 ? (p->rows + BLOCK - 1) / BLOCK : 1);
    struct sdx_tensor *in = px->in[0];
    size_t room = (size_t)(1 + p->columns_out), multiply = 0;
    if (in->dtype != SDX_F32) room += (size_t)p->columns;
    if (p->targets > FEW && !p->wide) {
        p->packed = sdx_ml_pack(px, p->coefficients, p->targets, p->columns);
        if (!p->packed) return px->cx->error.status;
        multiply = sdx_gemm_f32_scratch(BLOCK, p->targets, p->columns);
    }
    const size_t post = sdx_ml_post_scratch(p->post, p->columns_out);
    return sdx_prepare_step_on(px, "linear", run_linear, p, parts,
                               room * BLOCK * sizeof(float) + (multiply > post ? multiply : post),
                               1, &in, count_out, out);
}

static enum sdx_status prepare_regressor(struct sdx_prepare *px)
{
    struct linear *p = SDX_PREPARE_NEW(px, struct linear);
    if (!p) return px->cx->error.status;
    p->targets = p->columns_out = sdx_ir_attr_int(px->node, "targets", 1);
    SDX_TRY(read_model(px, p));
    return add_step(px, p, 1, px->out);
}

static int64_t classifier_columns(const struct sdx_ir_node *node, int64_t features)
{
    int64_t count = 0;
    struct sdx_ml_labels labels = sdx_ml_labels_of(node, "classlabels_ints", "classlabels_strings");
    if (!sdx_ir_attr_floats(node, "coefficients", &count) || features < 1) return -1;
    int64_t targets = count / features;
    if (count % features && labels.count) return labels.count;
    return targets == 1 && labels.count == 2 ? 2 : targets;
}

static enum sdx_status prepare_classifier(struct sdx_prepare *px)
{
    struct linear *p = SDX_PREPARE_NEW(px, struct linear);
    if (!p) return px->cx->error.status;
    struct sdx_ml_labels labels =
        sdx_ml_labels_of(px->node, "classlabels_ints", "classlabels_strings");
    p->is_classifier = true;
    p->labels = labels;
    SDX_TRY(read_model(px, p));
    p->columns_out = classifier_columns(px->node, p->columns);
    p->two_of_one = p->columns_out == 2 && p->targets == 1;
    struct sdx_tensor *index = sdx_ml_label_rows(px, &labels, p->rows);
    if (!index) return px->cx->error.status;
    struct sdx_tensor *out[2] = {px->count_out > 1 ? px->out[1] : NULL, index};
    SDX_TRY(add_step(px, p, 2, out));
    return sdx_ml_add_texts(px, &p->labels, index);
}

static enum sdx_status infer_regressor(struct sdx_infer *ix)
{
    return sdx_ml_infer_rows(ix, SDX_F32, sdx_ir_attr_int(ix->node, "targets", 1));
}

static enum sdx_status infer_classifier(struct sdx_infer *ix)
{
    const int64_t *dims = sdx_infer_dims(ix, 0);
    int rank = sdx_infer_rank(ix, 0);
    int64_t features = dims && rank > 0 ? dims[rank - 1] : -1;
    struct sdx_ml_labels labels =
        sdx_ml_labels_of(ix->node, "classlabels_ints", "classlabels_strings");
    return sdx_ml_infer_classifier(ix, labels.strings != NULL,
                                   classifier_columns(ix->node, features));
}

static const struct sdx_op ops[] = {
    {"LinearClassifier", 1, 0, infer_classifier, KERNEL(prepare_classifier)},
    {"LinearRegressor", 1, 0, infer_regressor, KERNEL(prepare_regressor)},
};
const struct sdx_op_family sdx_ops_ml_linear = FAMILY("ai.onnx.ml", ops);
