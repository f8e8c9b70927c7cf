/* SPDX-License-Identifier: Apache-2.0
 * LinearClassifier and LinearRegressor: scores = x * coefficients' + intercepts. */
#include <math.h>

#include "kernels/vec.h"
#include "ops/ml_common.h"
#include "ops/op.h"

struct linear {
    int64_t rows, columns, targets, columns_out, labels;
    const float *coefficients, *intercepts; /* [targets, columns]; [targets] or NULL */
    enum sdx_ml_post post;
    bool is_classifier, two_of_one; /* the one score stands for two classes */
    bool wide;
};

static double score_of(const struct linear *p, const void *row, int64_t target)
{
    const float *w = p->coefficients + target * p->columns;
    double bias = p->intercepts ? p->intercepts[target] : 0;
    if (!p->wide) return (float)bias + sdx_vec()->f32_dot(row, w, (size_t)p->columns);
    const double *x = row;
    for (int64_t j = 0; j < p->columns; j++)
        bias += x[j] * w[j];
    return bias;
}

/* Index of the label; scores become the results. */
static int64_t classify(const struct linear *p, double *scores)
{
    if (p->two_of_one) { /* as ONNX Runtime: probabilities where no transform makes them */
        bool second = scores[0] > 0;
        scores[1] = scores[0];
        scores[0] = p->post == SDX_ML_NONE ? 1 - scores[0] : -scores[0];
        sdx_ml_post_apply(p->post, scores, 2);
        return second;
    }
    sdx_ml_post_apply(p->post, scores, p->columns_out);
    int64_t best = 0;
    for (int64_t t = 1; t < p->columns_out; t++)
        if (scores[t] > scores[best]) best = t;
    if (p->columns_out > 1) return best;
    bool positive = scores[0] >= (p->post == SDX_ML_NONE ? 0 : 0.5);
    return !positive ? -1 : p->labels ? 0 : 1;
}

static enum sdx_status run_linear(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct linear *p = step->params;
    double *scores = x->scratch;
    void *room = scores + p->targets + 2;
    int64_t end = sdx_part_begin(p->rows, step->parts, part + 1, 1);
    for (int64_t i = sdx_part_begin(p->rows, step->parts, part, 1); i < end; i++) {
        const void *row = p->wide ? (const void *)sdx_ml_row_f64(step->in[0], i, p->columns, room)
                                  : sdx_ml_row_f32(step->in[0], i, p->columns, room);
        for (int64_t t = 0; t < p->targets; t++)
            scores[t] = score_of(p, row, t);
        if (p->is_classifier)
            ((int64_t *)step->out[1]->data)[i] = classify(p, scores);
        else
            sdx_ml_post_apply(p->post, scores, p->targets);
        float *to = step->out[0] ? (float *)step->out[0]->data + i * p->columns_out : NULL;
        for (int64_t t = 0; to && t < p->columns_out; t++)
            to[t] = (float)scores[t];
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
    int64_t parts = sdx_prepare_parts(work, 32768, p->rows > 0 ? p->rows : 1);
    size_t scratch = ((size_t)p->targets + 2 + (size_t)p->columns) * sizeof(double);
    struct sdx_tensor *in = px->in[0];
    return sdx_prepare_step_on(px, "linear", run_linear, p, parts, scratch, 1, &in, count_out, out);
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
    p->labels = labels.count;
    SDX_TRY(read_model(px, p));
    p->columns_out = classifier_columns(px->node, p->columns);
    p->two_of_one = p->columns_out == 2 && p->targets == 1;
    struct sdx_tensor *index = sdx_prepare_temp(px, SDX_I64, 1, &p->rows);
    if (!index) return px->cx->error.status;
    struct sdx_tensor *out[2] = {px->count_out > 1 ? px->out[1] : NULL, index};
    SDX_TRY(add_step(px, p, 2, out));
    return sdx_ml_add_labels(px, 0, &labels, index);
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
