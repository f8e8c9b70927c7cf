/* SPDX-License-Identifier: Apache-2.0
 * TreeEnsemble, TreeEnsembleRegressor and TreeEnsembleClassifier: a row is walked through
 * SDX_FOREST_LANES trees at a time; in large forests, and where there are fewer trees, as many rows
 * through a tree. Sums follow the order of the trees. */
#include <math.h>

#include "ops/ml_common.h"
#include "ops/ml_forest.h"
#include "ops/op.h"
#include "ops/scan.h"
#include "tensor/convert.h"

/* A forest of more nodes does not stay in the second cache: rows go through each tree together. */
enum { NODES_CACHED = 20000, BLOCK = 64 /* rows whose results are made together */ };

struct trees {
    struct sdx_forest forest;
    int64_t rows, columns, targets;
    enum sdx_ml_aggregate aggregate;
    enum sdx_ml_post post;
    enum sdx_ml_post post_binary; /* of the one number that stands for two classes */
    bool narrow;                  /* sums are floats */
    bool by_rows;                 /* rows go through each tree together */
    double *base;                 /* NULL: none; otherwise `targets` numbers */
    /* classifier */
    bool is_classifier, all_positive;
    int64_t only_class; /* the one class that has weights; -1: several have */
    struct sdx_ml_labels labels;
    int64_t columns_out;
    const float *dense; /* every leaf has one entry a target: at node * targets_padded, else NULL */
    int64_t targets_padded;
    const struct single { /* every leaf has one entry: by node, else NULL */
        float weight;
        int32_t target;
    } * single;
};

/* ---- one row's sums ---- */

static double narrowed(const struct sdx_forest *f, double x)
{
    return f->wide ? x : (double)(float)x;
}

/* Sums in float: `sum` is an array of them, of targets_padded where leaves are dense. */
static void add_narrow(const struct trees *p, const int32_t *leaf, int count, float *sum)
{
    const struct sdx_forest *f = &p->forest;
    if (p->dense && p->targets == 1) {
        float s = sum[0];
        for (int i = 0; i < count; i++)
            s += p->dense[leaf[i]];
        sum[0] = s;
        return;
    }
    for (int64_t t = 0; p->dense && t < p->targets_padded; t += 4) {
        float s[4];
        memcpy(s, sum + t, sizeof s);
        for (int i = 0; i < count; i++) {
            const float *w = p->dense + leaf[i] * p->targets_padded + t;
            for (int k = 0; k < 4; k++)
                s[k] += w[k];
        }
        memcpy(sum + t, s, sizeof s);
    }
    for (int i = 0; p->single && i < count; i++)
        sum[p->single[leaf[i]].target] += p->single[leaf[i]].weight;
    for (int i = 0; !p->dense && !p->single && i < count; i++) {
        struct sdx_forest_leaf at = f->leaves[leaf[i]];
        for (int32_t k = at.first; k < at.first + at.count; k++)
            sum[f->leaf_target[k]] += f->leaf_narrow[k];
    }
}

static void add_leaf(const struct trees *p, int32_t leaf, double *sum, bool *seen)
{
    const struct sdx_forest *f = &p->forest;
    int32_t first = f->leaves[leaf].first;
    for (int32_t k = first, end = first + f->leaves[leaf].count; k < end; k++) {
        int32_t t = f->leaf_target[k];
        double w = narrowed(f, f->leaf_weight[k]);
        if (p->aggregate <= SDX_ML_SUM)
            sum[t] += w;
        else if (!seen[t] || (p->aggregate == SDX_ML_MIN ? w < sum[t] : w > sum[t]))
            sum[t] = w;
        seen[t] = true;
    }
}

static void finish_sums(const struct trees *p, double *sum)
{
    for (int64_t t = 0; t < p->targets; t++) {
        if (p->aggregate == SDX_ML_AVERAGE)
            sum[t] = narrowed(&p->forest, sum[t] / (double)p->forest.count_trees);
        if (p->base) sum[t] = narrowed(&p->forest, sum[t] + p->base[t]);
    }
}

/* ---- results ---- */

static void put(struct sdx_tensor *t, int64_t i, double value)
{
    if (t->dtype == SDX_F64)
        ((double *)t->data)[i] = value;
    else
        ((float *)t->data)[i] = (float)value;
}

/* Scores and label index of one row. One class with weights decides between two: its score counts
 * from 1/2 when all weights are positive (a probability), otherwise from 0. Where that is the first
 * class, its score is that of the second label, and the first label's is made from it. */
static int64_t classify(const struct trees *p, double *sum)
{
    if (p->only_class < 0) {
        int64_t best = 0;
        for (int64_t t = 1; t < p->targets; t++)
            if (sum[t] > sum[best]) best = t;
        sdx_ml_post_apply(p->post, sum, p->targets);
        return best;
    }
    bool positive = sum[p->only_class] > (p->all_positive ? 0.5 : 0);
    const enum sdx_ml_post post = p->post_binary;
    if (p->only_class == 1)
        sdx_ml_post_apply(p->post, sum, 2);
    else
        sdx_ml_post_binary(post,
                           p->all_positive && post == SDX_ML_NONE ? SDX_ML_SECOND_COMPLEMENT
                                                                  : SDX_ML_SECOND_NEGATIVE,
                           sum);
    return p->labels.count == 2 ? positive : -1 - (int64_t)positive;
}

static void write_row(const struct trees *p, const struct sdx_step *step, int64_t row, double *sum)
{
    finish_sums(p, sum);
    struct sdx_tensor *scores = step->out[0];
    if (p->is_classifier) {
        int64_t *labels = step->out[1]->data;
        labels[row] = classify(p, sum);
    } else {
        sdx_ml_post_apply(p->post, sum, p->targets);
    }
    for (int64_t t = 0; scores && t < p->columns_out; t++)
        put(scores, row * p->columns_out + t, sum[t]);
}

/* Numbers of a row's sums: groups of four floats, or doubles with room for a second score. */
static int64_t sums_per_row(const struct trees *p)
{
    if (p->targets == 1) return p->narrow ? 1 : 2;
    return p->narrow ? (p->targets + 3) / 4 * 4 : p->targets;
}

/* The scores of two classes, of one whose weights are the sums. */
static void binary_rows(const struct trees *p, const float *sums, int64_t rows, float *y,
                        int64_t *labels)
{
    const int64_t stride = sums_per_row(p);
    const bool complement =
        (p->all_positive && p->post_binary == SDX_ML_NONE) || p->post_binary == SDX_ML_PROBIT;
    const float least = p->all_positive ? 0.5F : 0;
    for (int64_t i = 0; i < rows; i++, sums += stride, y += 2) {
        const bool positive = sums[p->only_class] > least;
        labels[i] = p->labels.count == 2 ? positive : -1 - (int64_t)positive;
        y[1] = p->only_class == 1 ? sums[1] : sums[0];
        y[0] = p->only_class == 1 ? sums[0] : complement ? 1 - sums[0] : -sums[0];
    }
}

/* Results of rows whose sums are floats. y: room for their scores. */
static void write_rows(const struct trees *p, const struct sdx_step *step, int64_t row,
                       int64_t rows, float *sums, float *y, void *scratch)
{
    const int64_t stride = sums_per_row(p), n = p->columns_out;
    int64_t *labels = p->is_classifier ? (int64_t *)step->out[1]->data + row : NULL;
    if (step->out[0]) y = (float *)step->out[0]->data + row * n;
    for (int64_t i = 0; i < rows && (p->base || p->aggregate == SDX_ML_AVERAGE); i++)
        for (int64_t t = 0; t < p->targets; t++) {
            float *sum = sums + i * stride + t;
            if (p->aggregate == SDX_ML_AVERAGE) *sum /= (float)p->forest.count_trees;
            if (p->base) *sum = (float)((double)*sum + p->base[t]);
        }
    if (p->only_class >= 0) {
        binary_rows(p, sums, rows, y, labels);
        sdx_ml_post_rows(p->only_class == 1 ? p->post : p->post_binary, y, rows, 2, scratch);
        return;
    }
    if (stride == n)
        memcpy(y, sums, (size_t)(rows * n) * sizeof *y);
    else
        for (int64_t i = 0; i < rows; i++)
            for (int64_t t = 0; t < n; t++)
                y[i * n + t] = sums[i * stride + t];
    if (labels) sdx_arg_rows(y, rows, n, false, false, labels);
    sdx_ml_post_rows(p->post, y, rows, n, scratch);
}

/* Scratch of a part. */
struct room {
    double *sums; /* of BLOCK rows; floats where they are narrow */
    bool *seen;
    char *rows; /* converted rows */
    float *scores;
    void *post;
};

/* Sets the pointers into `base` (NULL: only counts). Returns the bytes needed. */
static size_t lay_out(const struct trees *p, char *base, struct room *room)
{
    const size_t sums = (size_t)sums_per_row(p) * BLOCK;
    size_t at = 0;
    room->sums = sdx_ml_take(base, &at, sums * (p->narrow ? sizeof(float) : sizeof(double)));
    room->seen = sdx_ml_take(base, &at, p->narrow ? 0 : sums);
    room->rows = sdx_ml_take(base, &at, (size_t)p->columns * 8 * SDX_FOREST_LANES);
    room->scores = sdx_ml_take(base, &at, (size_t)p->columns_out * BLOCK * sizeof(float));
    room->post = sdx_ml_take(base, &at, sdx_ml_post_scratch(p->post, p->columns_out));
    return at;
}

static const void *load_row(const struct trees *p, const struct sdx_tensor *x, int64_t row,
                            char *room)
{
    if (p->forest.wide) return sdx_ml_row_f64(x, row, p->columns, (double *)(void *)room);
    return sdx_ml_rows_f32(x, row, 1, p->columns, (float *)(void *)room);
}

/* Adds what `count` leaves give to the sums of row i of a block. */
static void add_leaves(const struct trees *p, const int32_t *leaf, int count, int64_t i,
                       const struct room *room)
{
    const int64_t at = i * sums_per_row(p);
    if (p->narrow) add_narrow(p, leaf, count, (float *)(void *)room->sums + at);
    for (int k = 0; k < count && !p->narrow; k++)
        add_leaf(p, leaf[k], room->sums + at, room->seen + at);
}

/* The trees of row i of a block. */
static void one_row(const struct trees *p, const struct sdx_tensor *x, int64_t row, int64_t i,
                    const struct room *room)
{
    const void *from = load_row(p, x, row, room->rows);
    enum sdx_forest_kind kind = sdx_forest_row_kind(&p->forest, from, p->columns);
    for (int64_t t = 0; t < p->forest.count_trees; t += SDX_FOREST_LANES) {
        int32_t leaf[SDX_FOREST_LANES];
        int64_t left = p->forest.count_trees - t;
        memcpy(leaf, p->forest.roots + t, sizeof leaf);
        sdx_forest_walk_row(&p->forest, kind, from, leaf);
        add_leaves(p, leaf, left < SDX_FOREST_LANES ? (int)left : SDX_FOREST_LANES, i, room);
    }
}

/* Each tree for `lanes` rows, from row i of a block on. */
static void several_rows(const struct trees *p, const struct sdx_tensor *x, int64_t row, int64_t i,
                         int lanes, const struct room *room)
{
    const void *rows[SDX_FOREST_LANES];
    for (int k = 0; k < SDX_FOREST_LANES; k++)
        rows[k] =
            k < lanes ? load_row(p, x, row + k, room->rows + (int64_t)k * p->columns * 8) : rows[0];
    enum sdx_forest_kind kind = SDX_FOREST_PLAIN;
    for (int k = 0; k < lanes && kind == SDX_FOREST_PLAIN; k++)
        kind = sdx_forest_row_kind(&p->forest, rows[k], p->columns);
    for (int64_t t = 0; t < p->forest.count_trees; t++) {
        int32_t leaf[SDX_FOREST_LANES];
        for (int k = 0; k < SDX_FOREST_LANES; k++)
            leaf[k] = p->forest.roots[t];
        sdx_forest_walk(&p->forest, kind, rows, leaf);
        for (int k = 0; k < lanes; k++)
            add_leaves(p, leaf + k, 1, i + k, room);
    }
}

static enum sdx_status run_trees(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct trees *p = step->params;
    const struct sdx_tensor *in = step->in[0];
    struct room room;
    lay_out(p, x->scratch, &room);
    int64_t rows = 0, end = sdx_part_begin(p->rows, step->parts, part + 1, SDX_FOREST_LANES);
    for (int64_t row = sdx_part_begin(p->rows, step->parts, part, SDX_FOREST_LANES); row < end;
         row += rows) {
        rows = end - row < BLOCK ? end - row : BLOCK;
        const size_t sums = (size_t)(sums_per_row(p) * rows);
        memset(room.sums, 0, sums * (p->narrow ? sizeof(float) : sizeof(double)));
        if (!p->narrow) memset(room.seen, 0, sums);
        if (sdx_exec_cancelled(x)) return SDX_FAIL(x->cx, SDX_CANCELLED, "cancelled");
        const bool by_rows = rows > 1 && p->by_rows;
        for (int64_t i = 0; i < rows && !by_rows; i++)
            one_row(p, in, row + i, i, &room);
        for (int64_t i = 0; i < rows && by_rows; i += SDX_FOREST_LANES)
            several_rows(p, in, row + i, i,
                         rows - i < SDX_FOREST_LANES ? (int)(rows - i) : SDX_FOREST_LANES, &room);
        if (p->narrow)
            write_rows(p, step, row, rows, (float *)(void *)room.sums, room.scores, room.post);
        for (int64_t i = 0; i < rows && !p->narrow; i++)
            write_row(p, step, row + i, room.sums + i * sums_per_row(p));
        if (p->is_classifier)
            sdx_ml_number_labels(&p->labels, (int64_t *)step->out[1]->data + row, rows);
    }
    return SDX_OK;
}

/* ---- prepare ---- */

static enum sdx_status check(struct sdx_prepare *px, struct trees *p)
{
    SDX_TRY(sdx_ml_matrix(px, &p->rows, &p->columns));
    if (p->forest.features > p->columns)
        return SDX_FAIL(px->cx, SDX_BAD_INPUT, "%.*s: input has %lld features, expected %lld",
                        SDX_STR_ARG(px->node->op_type), (long long)p->columns,
                        (long long)p->forest.features);
    if (p->only_class >= p->targets)
        return SDX_FAIL(px->cx, SDX_BAD_MODEL, "%.*s: class %lld of %lld",
                        SDX_STR_ARG(px->node->op_type), (long long)p->only_class,
                        (long long)p->targets);
    for (int64_t i = 0; i < p->forest.count_leaves; i++)
        if (p->forest.leaf_target[i] >= p->targets)
            return SDX_FAIL(px->cx, SDX_BAD_MODEL, "%.*s: a leaf gives target %d of %lld",
                            SDX_STR_ARG(px->node->op_type), p->forest.leaf_target[i],
                            (long long)p->targets);
    return SDX_OK;
}

/* Does every leaf give each of `targets` targets a number, in order? (-1: one number to any.) */
static bool leaves_are(const struct sdx_forest *f, int64_t targets)
{
    for (int64_t n = 0; n < f->count_nodes; n++) {
        struct sdx_forest_leaf leaf = f->leaves[n];
        if (f->mode[n] != SDX_FOREST_LEAF) continue;
        if (leaf.count != (targets < 0 ? 1 : targets)) return false;
        for (int32_t k = 0; targets >= 0 && k < leaf.count; k++)
            if (f->leaf_target[leaf.first + k] != k) return false;
    }
    return true;
}

/* The usual kinds of leaves get their numbers laid out by node. */
static enum sdx_status lay_leaves(struct sdx_prepare *px, struct trees *p)
{
    const struct sdx_forest *f = &p->forest;
    size_t nodes = (size_t)f->count_nodes + 1;
    if (!p->narrow) return SDX_OK;
    if (p->targets <= 64 && leaves_are(f, p->targets)) {
        int64_t padded = p->targets == 1 ? 1 : (p->targets + 3) / 4 * 4;
        float *dense = sdx_prepare_alloc(px, nodes * (size_t)padded * sizeof *dense);
        if (!dense) return px->cx->error.status;
        for (int64_t n = 0; n < f->count_nodes; n++)
            for (int32_t k = 0; k < f->leaves[n].count; k++)
                dense[n * padded + k] = f->leaf_narrow[f->leaves[n].first + k];
        p->dense = dense;
        p->targets_padded = padded;
    } else if (leaves_are(f, -1)) {
        struct single *single = sdx_prepare_alloc(px, nodes * sizeof *single);
        if (!single) return px->cx->error.status;
        for (int64_t n = 0; n < f->count_nodes; n++)
            if (f->mode[n] == SDX_FOREST_LEAF)
                single[n] = (struct single){f->leaf_narrow[f->leaves[n].first],
                                            f->leaf_target[f->leaves[n].first]};
        p->single = single;
    }
    return SDX_OK;
}

static enum sdx_status add_step(struct sdx_prepare *px, struct trees *p, int count_out,
                                struct sdx_tensor *const *out)
{
    struct room room;
    const bool is_softmax = p->post == SDX_ML_SOFTMAX || p->post == SDX_ML_SOFTMAX_ZERO;
    p->post_binary = is_softmax ? SDX_ML_NONE : p->post;
    p->narrow =
        !p->forest.wide && p->aggregate <= SDX_ML_SUM && (!out[0] || out[0]->dtype == SDX_F32);
    p->by_rows = p->forest.count_nodes > NODES_CACHED || p->forest.count_trees < SDX_FOREST_LANES;
    SDX_TRY(lay_leaves(px, p));
    double work = (double)p->rows * (double)p->forest.count_trees * (8 + 2.0 * p->forest.depth);
    int64_t most = (p->rows + SDX_FOREST_LANES - 1) / SDX_FOREST_LANES;
    int64_t parts = sdx_prepare_parts(work, 32768, most > 0 ? most : 1);
    struct sdx_tensor *in = px->in[0];
    return sdx_prepare_step_on(px, "trees", run_trees, p, parts, lay_out(p, NULL, &room), 1, &in,
                               count_out, out);
}

/* base_values, or the tensor that version 3 allows for them: one for all targets, or one each. */
static enum sdx_status read_base(struct sdx_prepare *px, const double **base, int64_t *count)
{
    const struct sdx_ir_attr *attr = sdx_ir_attr(px->node, "base_values_as_tensor");
    const struct sdx_tensor *tensor = attr ? attr->tensor : NULL;
    const float *list = tensor ? NULL : sdx_ir_attr_floats(px->node, "base_values", count);
    if (tensor) *count = tensor->count;
    if ((!tensor && !list) || *count == 0) {
        *count = 0;
        return SDX_OK;
    }
    double *values = sdx_prepare_alloc(px, (size_t)*count * sizeof *values);
    if (!values) return px->cx->error.status;
    for (int64_t i = 0; i < *count; i++)
        values[i] = tensor ? sdx_load_f64(tensor->dtype, tensor->data, i) : list[i];
    *base = values;
    return SDX_OK;
}

static enum sdx_status set_base(struct sdx_prepare *px, struct trees *p)
{
    const double *base = NULL;
    int64_t count = 0;
    SDX_TRY(read_base(px, &base, &count));
    /* ONNX Runtime gives the one base value to the first class only. */
    if (!base || (count == 1 && p->only_class == 1)) return SDX_OK;
    if (count != p->targets && count != 1)
        return SDX_FAIL(px->cx, SDX_BAD_MODEL, "%.*s: %lld base values for %lld targets",
                        SDX_STR_ARG(px->node->op_type), (long long)count, (long long)p->targets);
    p->base = sdx_prepare_alloc(px, (size_t)p->targets * sizeof *p->base);
    if (!p->base) return px->cx->error.status;
    for (int64_t t = 0; t < p->targets; t++)
        p->base[t] = count > 1 ? base[t] : p->only_class < 0 || t == 0 ? base[0] : 0;
    return SDX_OK;
}

static enum sdx_status prepare_regressor(struct sdx_prepare *px)
{
    struct trees *p = SDX_PREPARE_NEW(px, struct trees);
    if (!p) return px->cx->error.status;
    struct sdx_str text = sdx_ir_attr_str(px->node, "aggregate_function", "SUM");
    const int found = sdx_ml_find_name(sdx_ml_aggregate_names, SDX_ML_AGGREGATES, text);
    if (found < 0)
        return SDX_FAIL(px->cx, SDX_BAD_MODEL, "TreeEnsembleRegressor: aggregate_function \"%.*s\"",
                        SDX_STR_ARG(text));
    p->aggregate = (enum sdx_ml_aggregate)found;
    p->targets = p->columns_out = px->out[0]->dims[1];
    p->only_class = -1;
    SDX_TRY(sdx_ml_post_attr(px->cx, px->node, &p->post));
    SDX_TRY(sdx_forest_from_lists(px, "target", &p->forest));
    SDX_TRY(set_base(px, p));
    SDX_TRY(check(px, p));
    return add_step(px, p, 1, px->out);
}

static enum sdx_status prepare_ensemble(struct sdx_prepare *px)
{
    struct trees *p = SDX_PREPARE_NEW(px, struct trees);
    if (!p) return px->cx->error.status;
    int64_t aggregate = sdx_ir_attr_int(px->node, "aggregate_function", SDX_ML_SUM);
    int64_t post = sdx_ir_attr_int(px->node, "post_transform", SDX_ML_NONE);
    if (aggregate < 0 || aggregate > SDX_ML_MAX || post < 0 || post > SDX_ML_PROBIT)
        return SDX_FAIL(px->cx, SDX_BAD_MODEL,
                        "TreeEnsemble: aggregate_function %lld, post_transform %lld",
                        (long long)aggregate, (long long)post);
    p->aggregate = (enum sdx_ml_aggregate)aggregate;
    p->post = (enum sdx_ml_post)post;
    p->targets = p->columns_out = px->out[0]->dims[1];
    p->only_class = -1;
    SDX_TRY(sdx_forest_from_tensors(px, &p->forest));
    SDX_TRY(check(px, p));
    return add_step(px, p, 1, px->out);
}

static const char *const label_ints = "classlabels_int64s";
static const char *const label_strings = "classlabels_strings";

/* The one class that class_ids names, or -1. */
static int64_t only_class(const struct sdx_ir_node *node)
{
    int64_t count = 0;
    const int64_t *ids = sdx_ir_attr_ints(node, "class_ids", &count);
    for (int64_t i = 1; ids && i < count; i++)
        if (ids[i] != ids[0]) return -1;
    return ids && count > 0 ? ids[0] : -1;
}

static bool is_binary(const struct sdx_ir_node *node, int64_t labels)
{
    return labels <= 2 && only_class(node) >= 0;
}

static int64_t classifier_columns(const struct sdx_ir_node *node)
{
    struct sdx_ml_labels labels = sdx_ml_labels_of(node, label_ints, label_strings);
    return is_binary(node, labels.count) ? 2 : labels.count;
}

static enum sdx_status prepare_classifier(struct sdx_prepare *px)
{
    struct trees *p = SDX_PREPARE_NEW(px, struct trees);
    if (!p) return px->cx->error.status;
    struct sdx_ml_labels labels = sdx_ml_labels_of(px->node, label_ints, label_strings);
    if (labels.count == 0)
        return SDX_FAIL(px->cx, SDX_BAD_MODEL, "TreeEnsembleClassifier: no class labels");
    p->aggregate = SDX_ML_SUM;
    p->is_classifier = true;
    p->labels = labels;
    p->targets = labels.count;
    p->only_class = is_binary(px->node, labels.count) ? only_class(px->node) : -1;
    p->columns_out = classifier_columns(px->node);
    SDX_TRY(sdx_ml_post_attr(px->cx, px->node, &p->post));
    SDX_TRY(sdx_forest_from_lists(px, "class", &p->forest));
    p->all_positive = true;
    for (int64_t i = 0; i < p->forest.count_leaves; i++)
        p->all_positive = p->all_positive && p->forest.leaf_weight[i] >= 0;
    SDX_TRY(set_base(px, p));
    SDX_TRY(check(px, p));
    struct sdx_tensor *index = sdx_ml_label_rows(px, &labels, p->rows);
    if (!index) return px->cx->error.status;
    struct sdx_tensor *out[2] = {px->count_out > 1 ? px->out[1] : NULL, index};
    SDX_TRY(add_step(px, p, 2, out));
    return sdx_ml_add_texts(px, &p->labels, index);
}

/* ---- inference ---- */

static int64_t largest_plus_one(const int64_t *ids, int64_t count)
{
    int64_t n = 1;
    for (int64_t i = 0; i < count; i++)
        if (ids[i] >= n && ids[i] < INT32_MAX) n = ids[i] + 1;
    return n;
}

static enum sdx_status infer_regressor(struct sdx_infer *ix)
{
    int64_t targets = sdx_ir_attr_int(ix->node, "n_targets", 0), count = 0;
    const int64_t *ids = sdx_ir_attr_ints(ix->node, "target_ids", &count);
    if (targets <= 0) targets = largest_plus_one(ids, ids ? count : 0);
    return sdx_ml_infer_rows(ix, SDX_F32, targets);
}

static enum sdx_status infer_ensemble(struct sdx_infer *ix)
{
    int64_t targets = sdx_ir_attr_int(ix->node, "n_targets", 0), count = 0;
    const int64_t *ids = sdx_ir_attr_ints(ix->node, "leaf_targetids", &count);
    if (targets <= 0) targets = largest_plus_one(ids, ids ? count : 0);
    return sdx_ml_infer_rows(ix, sdx_infer_dtype(ix, 0), targets);
}

static enum sdx_status infer_classifier(struct sdx_infer *ix)
{
    struct sdx_ml_labels labels = sdx_ml_labels_of(ix->node, label_ints, label_strings);
    return sdx_ml_infer_classifier(ix, labels.strings != NULL, classifier_columns(ix->node));
}

static const struct sdx_op ops[] = {
    {"TreeEnsemble", 5, 0, infer_ensemble, KERNEL(prepare_ensemble), .flags = SDX_OP_VIA_F32},
    {"TreeEnsembleRegressor", 1, 0, infer_regressor, KERNEL(prepare_regressor)},
    {"TreeEnsembleClassifier", 1, 0, infer_classifier, KERNEL(prepare_classifier)},
};
const struct sdx_op_family sdx_ops_ml_tree = FAMILY("ai.onnx.ml", ops);
