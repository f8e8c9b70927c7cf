/* SPDX-License-Identifier: Apache-2.0
 * SVMClassifier and SVMRegressor: kernels of support vectors, pairwise votes, and probabilities by
 * pairwise coupling (Wu, Lin, Weng 2004). Without support vectors both are linear. */
#include <math.h>

#include "kernels/gemm.h"
#include "kernels/vec.h"
#include "ops/ml_common.h"
#include "ops/op.h"

enum { BLOCK = 32 }; /* rows whose kernels are made together, at most */

enum kernel { KERNEL_LINEAR, KERNEL_POLY, KERNEL_RBF, KERNEL_SIGMOID };

struct svm {
    int64_t rows, columns;
    int64_t vectors, classes, columns_out;
    struct sdx_ml_labels labels;
    const float *support; /* [vectors, columns] */
    float *weights; /* LINEAR: [pairs, columns], what the support vectors add up to; NULL: they
                       are fewer */
    float *turned;  /* RBF: [columns, room_of()], zeros beyond the vectors */
    float *packed;  /* the others: a matrix [columns, vectors] to multiply by */
    int64_t block;  /* rows whose kernels are made together */
    const float *coefficients, *rho, *prob_a, *prob_b;
    const int64_t *per_class;
    int64_t *first; /* first vector of a class */
    int64_t count_rho, count_prob;
    float gamma, coef0, degree;
    enum kernel kernel;
    enum sdx_ml_post post;
    bool one_class, all_positive;
};

static float linear(const struct svm *p, const float *x, const float *v)
{
    return sdx_vec()->f32_dot(x, v, (size_t)p->columns);
}

/* In place, (gamma x + coef0)^degree; small whole degrees by multiplication. */
static void power(const struct svm *p, float *x, size_t n)
{
    enum { TILE = 512 };
    const struct sdx_vec *vec = sdx_vec();
    const bool is_small = p->degree >= 1 && p->degree <= 8;
    float base[TILE];
    for (size_t at = 0; at < n; at += TILE, x += TILE) {
        const size_t m = n - at < TILE ? n - at : TILE;
        const float *factor = base;
        vec->f32_affine(x, p->gamma, p->coef0, base, m);
        for (int i = 1; i < (int)p->degree && is_small; i++, factor = x)
            vec->f32_mul(factor, 1, base, 1, x, m);
        if (factor == base && is_small) memcpy(x, base, m * sizeof *x);
        for (size_t i = 0; i < m && !is_small; i++)
            x[i] = powf(base[i], p->degree);
    }
}

/* Support vectors in whole vectors of the machine: the last ones are 0. */
static int64_t room_of(const struct svm *p)
{
    enum { LANES = 16 };
    return (p->vectors + LANES - 1) / LANES * LANES;
}
/* Kernels of rows with every support vector; to: [rows, room_of()]. */
static void kernels_of(const struct svm *p, const float *x, int64_t rows, float *to, void *scratch)
{
    const struct sdx_vec *v = sdx_vec();
    const int64_t n = room_of(p);
    const size_t all = (size_t)(rows * n);
    if (p->vectors == 0 || p->weights) return;
    for (int64_t i = 0; i < rows && p->kernel == KERNEL_RBF; i++)
        v->f32_distances(x + i * p->columns, (size_t)p->columns, p->turned, (size_t)n, to + i * n,
                         (size_t)n);
    if (p->kernel != KERNEL_RBF)
        sdx_ml_multiply(x, rows, p->packed, p->vectors, p->columns, NULL, to, n, scratch);
    if (p->kernel == KERNEL_POLY) power(p, to, all);
    if (p->kernel == KERNEL_POLY || p->kernel == KERNEL_LINEAR) return;
    v->f32_affine(to, p->kernel == KERNEL_RBF ? -p->gamma : p->gamma,
                  p->kernel == KERNEL_RBF ? 0 : p->coef0, to, all);
    if (p->kernel == KERNEL_RBF) v->f32_exp(to, to, all, 0, 0);
    if (p->kernel == KERNEL_SIGMOID) v->f32_tanh(to, to, all, 0, 0);
}

/* weights[k] += the sum of count vectors times their coefficients */
static void add_vectors(const struct svm *p, int64_t first, int64_t count,
                        const float *coefficients, double *weights)
{
    for (int64_t i = 0; i < count; i++)
        for (int64_t k = 0; k < p->columns; k++)
            weights[k] += (double)coefficients[i] * p->support[(first + i) * p->columns + k];
}

static int64_t count_pairs(const struct svm *p)
{
    return p->first ? p->classes * (p->classes - 1) / 2 : 1;
}

/* A product with a sum is the sum of the products: one vector for each pair of classes. */
static enum sdx_status add_up(struct sdx_prepare *px, struct svm *p)
{
    const int64_t pairs = count_pairs(p);
    const size_t size = (size_t)p->columns + 1;
    double *sum = sdx_prepare_alloc(px, size * sizeof *sum);
    p->weights = sdx_prepare_alloc(px, size * (size_t)(pairs + 1) * sizeof *p->weights);
    if (!sum || !p->weights) return px->cx->error.status;
    float *to = p->weights;
    for (int64_t i = 0, left = pairs; left > 0; i++)
        for (int64_t j = i + 1; left > 0 && (!p->first || j < p->classes); j++, left--) {
            memset(sum, 0, size * sizeof *sum);
            if (p->first) {
                add_vectors(p, p->first[i], p->per_class[i],
                            p->coefficients + (j - 1) * p->vectors + p->first[i], sum);
                add_vectors(p, p->first[j], p->per_class[j],
                            p->coefficients + i * p->vectors + p->first[j], sum);
            } else {
                add_vectors(p, 0, p->vectors, p->coefficients, sum);
            }
            for (int64_t k = 0; k < p->columns; k++)
                *to++ = (float)sum[k];
        }
    return SDX_OK;
}

static enum sdx_status lay_support(struct sdx_prepare *px, struct svm *p)
{
    enum { CACHED = 32768 }; /* kernels or scores of a block */
    const int64_t n = room_of(p), each = n > count_pairs(p) ? n : count_pairs(p);
    p->block = each * BLOCK <= CACHED ? BLOCK : each * 8 <= 4 * CACHED ? 8 : 1;
    if (p->vectors == 0) return SDX_OK;
    if (p->kernel == KERNEL_LINEAR && count_pairs(p) <= p->vectors) return add_up(px, p);
    if (p->kernel != KERNEL_RBF) {
        p->packed = sdx_ml_pack(px, p->support, p->vectors, p->columns);
        return p->packed ? SDX_OK : px->cx->error.status;
    }
    p->turned = sdx_prepare_alloc(px, (size_t)(n * p->columns + 1) * sizeof *p->turned);
    if (!p->turned) return px->cx->error.status;
    for (int64_t i = 0; i < p->vectors; i++)
        for (int64_t j = 0; j < p->columns; j++)
            p->turned[j * n + i] = p->support[i * p->columns + j];
    return SDX_OK;
}

/* Scratch of a part; what is there for a block of rows comes first. */
struct room {
    float *rows, *kernels, *scores; /* scores: [pairs, block] */
    void *multiply;
    float *votes;
    double *pair_scores, *pairs, *q, *qp, *probability;
};

/* Sets the pointers into `base` (NULL: only counts). Returns the bytes needed. */
static size_t lay_out(const struct svm *p, char *base, struct room *room)
{
    size_t classes = (size_t)p->classes, pairs = classes * classes, block = (size_t)p->block;
    size_t at = 0;
    room->rows = sdx_ml_take(base, &at, block * (size_t)p->columns * sizeof(float));
    room->kernels =
        sdx_ml_take(base, &at, p->weights ? 0 : block * (size_t)room_of(p) * sizeof(float));
    room->scores = sdx_ml_take(base, &at, block * (size_t)(count_pairs(p) + 1) * sizeof(float));
    room->multiply = sdx_ml_take(
        base, &at, p->packed ? sdx_gemm_f32_scratch(p->block, p->vectors, p->columns) : 0);
    room->votes = sdx_ml_take(base, &at, classes * sizeof(float));
    room->pair_scores = sdx_ml_take(base, &at, (pairs + 2) * sizeof(double));
    room->pairs = sdx_ml_take(base, &at, pairs * sizeof(double));
    room->q = sdx_ml_take(base, &at, pairs * sizeof(double));
    room->qp = sdx_ml_take(base, &at, classes * sizeof(double));
    room->probability = sdx_ml_take(base, &at, (classes + 2) * sizeof(double));
    return at;
}

/* ---- attributes ---- */

static enum sdx_status fault(struct sdx_prepare *px, const char *name, int64_t found,
                             int64_t expected)
{
    return SDX_FAIL(px->cx, SDX_BAD_MODEL, "%.*s: %s has %lld entries, expected %lld",
                    SDX_STR_ARG(px->node->op_type), name, (long long)found, (long long)expected);
}

/* A float list of at least `least` entries. */
static enum sdx_status list_of(struct sdx_prepare *px, const char *name, int64_t least,
                               const float **out, int64_t *count)
{
    *count = 0;
    *out = sdx_ir_attr_floats(px->node, name, count);
    if (!*out) *count = 0;
    return *count < least ? fault(px, name, *count, least) : SDX_OK;
}

static enum sdx_status read_kernel(struct sdx_prepare *px, struct svm *p)
{
    static const char *const names[] = {"LINEAR", "POLY", "RBF", "SIGMOID"};
    struct sdx_str text = sdx_ir_attr_str(px->node, "kernel_type", "LINEAR");
    int found = -1;
    for (int i = 0; i < SDX_COUNT_OF(names); i++)
        if (sdx_str_is(text, names[i])) found = i;
    if (found < 0)
        return SDX_FAIL(px->cx, SDX_BAD_MODEL, "%.*s: kernel_type \"%.*s\"",
                        SDX_STR_ARG(px->node->op_type), SDX_STR_ARG(text));
    p->kernel = (enum kernel)found;
    const float *params = NULL;
    int64_t count = 0;
    SDX_TRY(list_of(px, "kernel_params", 0, &params, &count));
    if (count && count < 3) return fault(px, "kernel_params", count, 3);
    p->gamma = count ? params[0] : 0;
    p->coef0 = count ? params[1] : 0;
    p->degree = count ? truncf(params[2]) : 0;
    SDX_TRY(sdx_ml_matrix(px, &p->rows, &p->columns));
    return sdx_ml_post_attr(px->cx, px->node, &p->post);
}

/* ---- SVMRegressor ---- */

static enum sdx_status run_regressor(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct svm *p = step->params;
    struct room room;
    lay_out(p, x->scratch, &room);
    int64_t n = 0, end = sdx_part_begin(p->rows, step->parts, part + 1, 1);
    for (int64_t i = sdx_part_begin(p->rows, step->parts, part, 1); i < end; i += n) {
        n = end - i < p->block ? end - i : p->block;
        float *y = (float *)step->out[0]->data + i;
        const float *rows = sdx_ml_rows_f32(step->in[0], i, n, p->columns, room.rows);
        kernels_of(p, rows, n, room.kernels, room.multiply);
        if (p->vectors && !p->weights)
            sdx_gemm_f32_rows_dot(room.kernels, room_of(p), p->coefficients, n, p->vectors, y);
        else
            sdx_gemm_f32_rows_dot(rows, p->columns, p->weights ? p->weights : p->coefficients, n,
                                  p->columns, y);
        for (int64_t k = 0; k < n; k++) {
            double score = y[k] + p->rho[0];
            if (p->one_class)
                score = score > 0 ? 1 : -1;
            else
                sdx_ml_post_apply(p->post, &score, 1);
            y[k] = (float)score;
        }
    }
    return SDX_OK;
}

static enum sdx_status prepare_regressor(struct sdx_prepare *px)
{
    struct svm *p = SDX_PREPARE_NEW(px, struct svm);
    int64_t count = 0;
    if (!p) return px->cx->error.status;
    SDX_TRY(read_kernel(px, p));
    p->vectors = sdx_ir_attr_int(px->node, "n_supports", 0);
    p->one_class = sdx_ir_attr_int(px->node, "one_class", 0) != 0;
    if (p->vectors < 0 || p->vectors > INT32_MAX) return fault(px, "n_supports", p->vectors, 0);
    SDX_TRY(list_of(px, "rho", 1, &p->rho, &p->count_rho));
    SDX_TRY(list_of(px, "coefficients", p->vectors ? p->vectors : p->columns, &p->coefficients,
                    &count));
    SDX_TRY(list_of(px, "support_vectors", 0, &p->support, &count));
    if (p->vectors && count / p->vectors != p->columns)
        return fault(px, "support_vectors", count, p->vectors * p->columns);
    SDX_TRY(lay_support(px, p));
    double work = (double)p->rows * (double)(p->vectors + 1) * (double)(p->columns + 8);
    int64_t parts = sdx_prepare_parts(work, 32768, p->rows > 0 ? p->rows : 1);
    struct room room;
    return sdx_prepare_step(px, "svm", run_regressor, p, parts, lay_out(p, NULL, &room));
}

/* ---- SVMClassifier ---- */

/* Scores of all pairs of classes, of rows (x) whose kernels are there. Returns the number of pairs.
 */
static int64_t score_pairs(const struct svm *p, const float *x, int64_t rows,
                           const struct room *room)
{
    const int64_t n = room_of(p);
    float second[BLOCK], *to = room->scores;
    for (int64_t i = 0, pair = 0; i < p->classes; i++)
        for (int64_t j = i + 1; j < p->classes; j++, pair++, to += p->block) {
            const float *a = p->coefficients + (j - 1) * p->vectors + p->first[i];
            const float *b = p->coefficients + i * p->vectors + p->first[j];
            if (p->weights) {
                sdx_gemm_f32_rows_dot(x, p->columns, p->weights + pair * p->columns, rows,
                                      p->columns, to);
                for (int64_t k = 0; k < rows; k++)
                    to[k] += p->rho[pair];
                continue;
            }
            sdx_gemm_f32_rows_dot(room->kernels + p->first[i], n, a, rows, p->per_class[i], to);
            sdx_gemm_f32_rows_dot(room->kernels + p->first[j], n, b, rows, p->per_class[j], second);
            for (int64_t k = 0; k < rows; k++)
                to[k] = p->rho[pair] + (to[k] + second[k]);
        }
    return count_pairs(p);
}

/* How often each class wins against another in row k of a block. */
static void vote(const struct svm *p, int64_t k, const struct room *room)
{
    const float *score = room->scores + k;
    for (int64_t i = 0; i < p->classes; i++)
        room->votes[i] = 0;
    for (int64_t i = 0, pair = 0; i < p->classes; i++)
        for (int64_t j = i + 1; j < p->classes; j++, pair++, score += p->block) {
            room->pair_scores[pair] = (double)*score;
            room->votes[*score > 0 ? i : j] += 1;
        }
}

static double pair_probability(double score, double a, double b)
{
    double v = 1 / (1 + exp(-fabs(score * a + b)));
    double logistic = score * a + b < 0 ? 1 - v : v, p = 1 - logistic;
    return p < 1e-7 ? 1e-7 : p > 1 - 1e-7 ? 1 - 1e-7 : p;
}

/* From the pairwise probabilities r[i][j] to those of the classes. */
static void couple(int64_t k, const double *r, double *q, double *qp, double *p)
{
    double limit = 0.005 / (double)k;
    for (int64_t t = 0; t < k; t++) {
        p[t] = 1 / (double)k;
        q[t * k + t] = 0;
        for (int64_t j = 0; j < k; j++) {
            if (j == t) continue;
            q[t * k + t] += r[j * k + t] * r[j * k + t];
            q[t * k + j] = -r[j * k + t] * r[t * k + j];
        }
    }
    for (int64_t round = 0; round < (k > 100 ? k : 100); round++) {
        double sum = 0, worst = 0;
        for (int64_t t = 0; t < k; t++) {
            qp[t] = 0;
            for (int64_t j = 0; j < k; j++)
                qp[t] += q[t * k + j] * p[j];
            sum += p[t] * qp[t];
        }
        for (int64_t t = 0; t < k; t++)
            worst = fabs(qp[t] - sum) > worst ? fabs(qp[t] - sum) : worst;
        if (worst < limit) break;
        for (int64_t t = 0; t < k; t++) {
            double diff = (sum - qp[t]) / q[t * k + t], scale = 1 / (1 + diff);
            p[t] += diff;
            sum = (sum + diff * (diff * q[t * k + t] + 2 * qp[t])) * (scale * scale);
            for (int64_t j = 0; j < k; j++) {
                p[j] *= scale;
                qp[j] = (qp[j] + diff * q[t * k + j]) * scale;
            }
        }
    }
}

static void probabilities(const struct svm *p, struct room *room)
{
    int64_t k = p->classes, pair = 0;
    for (int64_t i = 0; i < k; i++)
        for (int64_t j = i + 1; j < k; j++, pair++) {
            double v = pair_probability(room->pair_scores[pair], p->prob_a[pair], p->prob_b[pair]);
            room->pairs[i * k + j] = v;
            room->pairs[j * k + i] = 1 - v;
        }
    couple(k, room->pairs, room->q, room->qp, room->probability);
}

/* Label of row k of a block, x its numbers; *scores and *count become the results before the post
 * transform. */
static int64_t classify(const struct svm *p, const float *x, int64_t k, int64_t pairs,
                        struct room *room, double **scores, int64_t *count)
{
    *scores = room->pair_scores;
    *count = pairs;
    if (p->vectors == 0) {
        for (int64_t c = 0; c < p->classes; c++) {
            room->votes[c] = p->rho[0] + linear(p, x, p->coefficients + c * p->columns);
            room->pair_scores[c] = room->votes[c];
        }
        *count = p->classes;
    } else {
        vote(p, k, room);
    }
    bool probable = p->count_prob > 0 && p->vectors > 0;
    if (probable) {
        probabilities(p, room);
        *scores = room->probability;
        *count = p->classes;
    }
    int64_t best = 0;
    for (int64_t c = 1; c < p->classes; c++)
        if (room->votes[c] > room->votes[best]) best = c;
    if (p->count_rho != 1) return best;
    float most = room->votes[best];
    if (p->labels.count == 2) return !probable && p->all_positive && most >= 0.5f ? 1 : best;
    return most > 0 ? -2 : -1; /* the numbers 1 and 0 */
}

static enum sdx_status run_classifier(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct svm *p = step->params;
    struct room room;
    lay_out(p, x->scratch, &room);
    int64_t n = 0, pairs = 0, end = sdx_part_begin(p->rows, step->parts, part + 1, 1);
    for (int64_t i = sdx_part_begin(p->rows, step->parts, part, 1); i < end; i += n) {
        n = end - i < p->block ? end - i : p->block;
        const float *rows = sdx_ml_rows_f32(step->in[0], i, n, p->columns, room.rows);
        kernels_of(p, rows, n, room.kernels, room.multiply);
        if (p->vectors) pairs = score_pairs(p, rows, n, &room);
        for (int64_t k = 0; k < n; k++) {
            double *scores = NULL;
            int64_t count = 0, *label = (int64_t *)step->out[1]->data + i + k;
            *label = classify(p, rows + k * p->columns, k, pairs, &room, &scores, &count);
            if (count == 1)
                sdx_ml_post_binary(
                    p->post, p->columns_out == 2 ? SDX_ML_SECOND_NEGATIVE : SDX_ML_SECOND_NONE,
                    scores);
            else
                sdx_ml_post_apply(p->post, scores, count);
            float *to =
                step->out[0] ? (float *)step->out[0]->data + (i + k) * p->columns_out : NULL;
            for (int64_t c = 0; to && c < p->columns_out; c++)
                to[c] = (float)scores[c];
        }
        sdx_ml_number_labels(&p->labels, (int64_t *)step->out[1]->data + i, n);
    }
    return SDX_OK;
}

static int64_t sum_of(const int64_t *list, int64_t count)
{
    int64_t sum = 0;
    for (int64_t i = 0; list && i < count; i++)
        sum += list[i] > 0 && list[i] < INT32_MAX ? list[i] : 0;
    return sum;
}

static struct sdx_ml_labels labels_of(const struct sdx_ir_node *node)
{
    return sdx_ml_labels_of(node, "classlabels_ints", "classlabels_strings");
}

static int64_t classifier_columns(const struct sdx_ir_node *node)
{
    int64_t count = 0, rho = 0, prob = 0, labels = labels_of(node).count;
    const int64_t *per_class = sdx_ir_attr_ints(node, "vectors_per_class", &count);
    int64_t classes = labels > 1 ? labels : 1, vectors = sum_of(per_class, count);
    if (!sdx_ir_attr_floats(node, "rho", &rho)) rho = 0;
    if (!sdx_ir_attr_floats(node, "prob_a", &prob)) prob = 0;
    int64_t scores = vectors == 0 || prob > 0 ? classes : classes * (classes - 1) / 2;
    return scores == 1 && rho == 1 && labels == 2 ? 2 : scores;
}

static enum sdx_status read_classifier(struct sdx_prepare *px, struct svm *p)
{
    int64_t count = 0, per_class = 0;
    SDX_TRY(read_kernel(px, p));
    p->per_class = sdx_ir_attr_ints(px->node, "vectors_per_class", &per_class);
    if (!p->per_class) per_class = 0;
    for (int64_t c = 0; c < per_class; c++)
        if (p->per_class[c] < 0 || p->per_class[c] >= INT32_MAX)
            return fault(px, "vectors_per_class", p->per_class[c], 0);
    p->vectors = sum_of(p->per_class, per_class);
    p->classes = p->labels.count > 1 ? p->labels.count : 1;
    if (p->classes > 4096) return fault(px, "classlabels", p->classes, 4096);
    if (p->vectors && per_class != p->classes)
        return fault(px, "vectors_per_class", per_class, p->classes);
    int64_t pairs = p->vectors ? p->classes * (p->classes - 1) / 2 : 1;
    int64_t least = p->vectors ? p->vectors * (p->classes - 1) : p->classes * p->columns;
    SDX_TRY(list_of(px, "rho", pairs, &p->rho, &p->count_rho));
    SDX_TRY(list_of(px, "coefficients", least, &p->coefficients, &count));
    p->all_positive = true;
    for (int64_t i = 0; i < count; i++)
        p->all_positive = p->all_positive && p->coefficients[i] >= 0;
    SDX_TRY(list_of(px, "support_vectors", 0, &p->support, &count));
    if (p->vectors && count != p->vectors * p->columns)
        return fault(px, "support_vectors", count, p->vectors * p->columns);
    SDX_TRY(list_of(px, "prob_a", 0, &p->prob_a, &p->count_prob));
    if (p->count_prob == 0 || !p->vectors) return SDX_OK;
    SDX_TRY(list_of(px, "prob_a", pairs, &p->prob_a, &p->count_prob));
    return list_of(px, "prob_b", pairs, &p->prob_b, &count);
}

static enum sdx_status prepare_classifier(struct sdx_prepare *px)
{
    struct svm *p = SDX_PREPARE_NEW(px, struct svm);
    if (!p) return px->cx->error.status;
    struct sdx_ml_labels labels = labels_of(px->node);
    p->labels = labels;
    SDX_TRY(read_classifier(px, p));
    p->first = sdx_prepare_alloc(px, ((size_t)p->classes + 1) * sizeof *p->first);
    struct sdx_tensor *index = sdx_ml_label_rows(px, &labels, p->rows);
    if (!p->first || !index) return px->cx->error.status;
    for (int64_t c = 0; p->vectors && c < p->classes; c++)
        p->first[c + 1] = p->first[c] + p->per_class[c];
    SDX_TRY(lay_support(px, p));
    p->columns_out = classifier_columns(px->node);
    struct sdx_tensor *in = px->in[0], *out[2] = {px->count_out > 1 ? px->out[1] : NULL, index};
    double work = (double)p->rows * (double)(p->vectors + p->classes) * (double)(p->columns + 8);
    int64_t parts = sdx_prepare_parts(work, 32768, p->rows > 0 ? p->rows : 1);
    struct room room;
    SDX_TRY(sdx_prepare_step_on(px, "svm", run_classifier, p, parts, lay_out(p, NULL, &room), 1,
                                &in, 2, out));
    return sdx_ml_add_texts(px, &p->labels, index);
}

static enum sdx_status infer_regressor(struct sdx_infer *ix)
{
    return sdx_ml_infer_rows(ix, SDX_F32, 1);
}

static enum sdx_status infer_classifier(struct sdx_infer *ix)
{
    bool strings = labels_of(ix->node).strings != NULL;
    return sdx_ml_infer_classifier(ix, strings, classifier_columns(ix->node));
}

static const struct sdx_op ops[] = {
    {"SVMClassifier", 1, 0, infer_classifier, KERNEL(prepare_classifier)},
    {"SVMRegressor", 1, 0, infer_regressor, KERNEL(prepare_regressor)},
};
const struct sdx_op_family sdx_ops_ml_svm = FAMILY("ai.onnx.ml", ops);
