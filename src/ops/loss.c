/* SPDX-License-Identifier: Apache-2.0
 * NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss over scores [N, C, d...] and labels
 * [N, d...]. With weights the mean divides by the sum of the weights that count; labels equal to
 * ignore_index count nothing. */
#include <math.h>

#include "kernels/vec.h"
#include "ops/op.h"
#include "tensor/convert.h"

enum reduction { LOSS_NONE, LOSS_SUM, LOSS_MEAN };

struct loss {
    int64_t count, classes, inner; /* N, C, product of d */
    int64_t ignore;
    bool has_ignore, with_softmax;
    enum reduction reduction;
};

static double at(const struct sdx_tensor *t, int64_t i)
{
    return t->dtype == SDX_F32 ? ((const float *)t->data)[i] : ((const double *)t->data)[i];
}

static void put(struct sdx_tensor *t, int64_t i, double value)
{
    if (t->dtype == SDX_F32)
        ((float *)t->data)[i] = (float)value;
    else
        ((double *)t->data)[i] = value;
}

enum { TILE = 256 }; /* columns of scores that are worked on at a time */

/* Softmax's logarithm of the class scores at column [n, j]: x - shift. */
static double column_shift(const struct loss *p, const struct sdx_tensor *scores, int64_t first)
{
    double largest = -INFINITY, sum = 0;
    for (int64_t c = 0; c < p->classes; c++) {
        double v = at(scores, first + c * p->inner);
        largest = v > largest || v != v ? v : largest;
    }
    for (int64_t c = 0; c < p->classes; c++)
        sum += exp(at(scores, first + c * p->inner) - largest);
    return largest + log(sum);
}

/* The same for n columns of f32, which are neighbours or, without inner axes, rows. */
static void shifts_f32(const struct loss *p, const float *x, int64_t n, float *shift)
{
    const struct sdx_vec *vec = sdx_vec();
    float sum[TILE] = {0}, e[TILE];
    if (p->inner == 1) {
        for (int64_t j = 0; j < n; j++, x += p->classes) {
            shift[j] = vec->f32_reduce_max(x, (size_t)p->classes);
            if (!isfinite(shift[j])) sum[j] = NAN;
            for (int64_t c = 0; isfinite(shift[j]) && c < p->classes; c += TILE)
                sum[j] += vec->f32_exp_sum(
                    x + c, e, (size_t)(p->classes - c < TILE ? p->classes - c : TILE), shift[j]);
        }
    } else {
        memcpy(shift, x, (size_t)n * sizeof *shift);
        for (int64_t c = 1; c < p->classes; c++)
            vec->f32_max(shift, 1, x + c * p->inner, 1, shift, (size_t)n);
        for (int64_t c = 0; c < p->classes; c++) {
            vec->f32_sub(x + c * p->inner, 1, shift, 1, e, (size_t)n);
            vec->f32_exp(e, e, (size_t)n, 0, 0);
            vec->f32_add(sum, 1, e, 1, sum, (size_t)n);
        }
    }
    vec->f32_log(sum, sum, (size_t)n, 0, 0);
    vec->f32_add(shift, 1, sum, 1, shift, (size_t)n);
}

/* log_prob of n columns. */
static void log_probs_f32(const struct loss *p, const float *x, const float *shift, int64_t n,
                          float *y)
{
    const struct sdx_vec *vec = sdx_vec();
    if (p->inner == 1)
        for (int64_t j = 0; j < n; j++)
            vec->f32_sub(x + j * p->classes, 1, &shift[j], 0, y + j * p->classes,
                         (size_t)p->classes);
    else
        for (int64_t c = 0; c < p->classes; c++)
            vec->f32_sub(x + c * p->inner, 1, shift, 1, y + c * p->inner, (size_t)n);
}

/* Loss and weight of each label into two lists; log_prob where wanted. Parts over labels. */
static enum sdx_status run_each(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct loss *p = step->params;
    const struct sdx_tensor *scores = step->in[0], *labels = step->in[1], *weights = step->in[2];
    double *losses = step->out[0]->data, *factors = step->out[1]->data;
    struct sdx_tensor *log_prob = step->out[2];
    int64_t items = p->count * p->inner;
    int64_t end = sdx_part_begin(items, step->parts, part + 1, 1);
    const bool by_tile = scores->dtype == SDX_F32 && p->classes > 0;
    float shifts[TILE] = {0};
    const int64_t begin = sdx_part_begin(items, step->parts, part, 1);
    int64_t tile = begin, tile_end = begin; /* the items that `shifts` has */
    for (int64_t i = begin; i < end; i++) {
        int64_t first = (i / p->inner) * p->classes * p->inner + i % p->inner;
        double shift = 0;
        if (by_tile && i == tile_end) {
            const int64_t left = p->inner == 1 ? end - i : p->inner - i % p->inner;
            const int64_t n = left < TILE ? left : TILE, last = i + n < end ? i + n : end;
            const float *from = (const float *)scores->data + first;
            tile = i;
            tile_end = last;
            if (p->with_softmax) shifts_f32(p, from, last - i, shifts);
            if (log_prob) log_probs_f32(p, from, shifts, last - i, (float *)log_prob->data + first);
        }
        if (by_tile)
            shift = (double)shifts[i - tile];
        else if (p->with_softmax)
            shift = column_shift(p, scores, first);
        for (int64_t c = 0; log_prob && !by_tile && c < p->classes; c++)
            put(log_prob, first + c * p->inner, at(scores, first + c * p->inner) - shift);
        int64_t label = sdx_load_i64(labels->dtype, labels->data, i);
        losses[i] = factors[i] = 0;
        if (p->has_ignore && label == p->ignore) continue;
        if (label < 0 || label >= p->classes)
            return SDX_FAIL(x->cx, SDX_RUN_FAILED, "loss: label %lld, there are %lld classes",
                            (long long)label, (long long)p->classes);
        factors[i] = weights ? at(weights, label) : 1;
        losses[i] = -(at(scores, first + label * p->inner) - shift) * factors[i];
    }
    return SDX_OK;
}

static enum sdx_status run_total(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)x;
    (void)part;
    const struct loss *p = step->params;
    const double *losses = step->in[0]->data, *factors = step->in[1]->data;
    double sum = 0, weight = 0;
    for (int64_t i = 0; i < p->count * p->inner; i++) {
        if (p->reduction == LOSS_NONE) put(step->out[0], i, losses[i]);
        sum += losses[i];
        weight += factors[i];
    }
    if (p->reduction != LOSS_NONE)
        put(step->out[0], 0, p->reduction == LOSS_MEAN ? sum / weight : sum);
    return SDX_OK;
}

static enum sdx_status read_attributes(struct sdx_prepare *px, struct loss *p)
{
    const struct sdx_ir_attr *ignore = sdx_ir_attr(px->node, "ignore_index");
    struct sdx_str reduction = sdx_ir_attr_str(px->node, "reduction", "mean");
    p->has_ignore = ignore != NULL;
    p->ignore = ignore ? ignore->i : 0;
    p->with_softmax = sdx_str_is(px->node->op_type, "SoftmaxCrossEntropyLoss");
    p->reduction = sdx_str_is(reduction, "none")  ? LOSS_NONE
                   : sdx_str_is(reduction, "sum") ? LOSS_SUM
                                                  : LOSS_MEAN;
    if (p->reduction == LOSS_MEAN && !sdx_str_is(reduction, "mean"))
        return SDX_FAIL(px->cx, SDX_BAD_MODEL, "%.*s: reduction \"%.*s\"",
                        SDX_STR_ARG(px->node->op_type), SDX_STR_ARG(reduction));
    return SDX_OK;
}

static enum sdx_status prepare_loss(struct sdx_prepare *px)
{
    const struct sdx_tensor *scores = px->in[0], *labels = px->in[1];
    struct sdx_tensor *weights = sdx_prepare_has(px, 2) ? px->in[2] : NULL;
    struct loss *p = SDX_PREPARE_NEW(px, struct loss);
    if (!p) return px->cx->error.status;
    SDX_TRY(read_attributes(px, p));
    if (scores->dtype != SDX_F32 && scores->dtype != SDX_F64)
        return SDX_FAIL(px->cx, SDX_NOT_SUPPORTED, "%.*s: element type %s",
                        SDX_STR_ARG(px->node->op_type), sdx_dtype_name(scores->dtype));
    if (scores->rank < 2)
        return SDX_FAIL(px->cx, SDX_BAD_INPUT, "%.*s: scores have rank %d, expected at least 2",
                        SDX_STR_ARG(px->node->op_type), scores->rank);
    p->count = scores->dims[0];
    p->classes = scores->dims[1];
    p->inner = 1;
    for (int d = 2; d < scores->rank; d++)
        p->inner *= scores->dims[d];
    if (labels->count != p->count * p->inner)
        return SDX_FAIL(px->cx, SDX_BAD_INPUT, "%.*s: %lld labels, expected %lld",
                        SDX_STR_ARG(px->node->op_type), (long long)labels->count,
                        (long long)(p->count * p->inner));
    if (weights && (weights->count != p->classes || weights->dtype != scores->dtype))
        return SDX_FAIL(px->cx, SDX_BAD_INPUT, "%.*s: %lld weights for %lld classes",
                        SDX_STR_ARG(px->node->op_type), (long long)weights->count,
                        (long long)p->classes);
    int64_t items = p->count * p->inner;
    struct sdx_tensor *losses = sdx_prepare_temp(px, SDX_F64, 1, &items);
    struct sdx_tensor *factors = sdx_prepare_temp(px, SDX_F64, 1, &items);
    if (!losses || !factors) return px->cx->error.status;
    struct sdx_tensor *in[3] = {px->in[0], px->in[1], weights};
    struct sdx_tensor *out[3] = {losses, factors, px->count_out > 1 ? px->out[1] : NULL};
    int64_t parts = sdx_prepare_parts((double)scores->count * (p->with_softmax ? 16 : 1), 32768,
                                      items > 0 ? items : 1);
    SDX_TRY(sdx_prepare_step_on(px, "loss", run_each, p, parts, 0, 3, in, 3, out));
    if (!px->out[0]) return SDX_OK;
    struct sdx_tensor *lists[2] = {losses, factors};
    return sdx_prepare_step_on(px, "loss total", run_total, p, 1, 0, 2, lists, 1, px->out);
}

static enum sdx_status infer_loss(struct sdx_infer *ix)
{
    sdx_infer_set_dtype(ix, 0, sdx_infer_dtype(ix, 0));
    if (ix->count_out > 1) sdx_infer_copy(ix, 1, 0);
    if (!sdx_str_is(sdx_ir_attr_str(ix->node, "reduction", "mean"), "none"))
        return sdx_infer_set_dims(ix, 0, 0, NULL);
    const int64_t *labels = sdx_infer_dims(ix, 1);
    return labels ? sdx_infer_set_dims(ix, 0, sdx_infer_rank(ix, 1), labels) : SDX_OK;
}

static const struct sdx_op ops[] = {
    {"NegativeLogLikelihoodLoss", 12, 0, infer_loss, KERNEL(prepare_loss), .flags = SDX_OP_VIA_F32},
    {"SoftmaxCrossEntropyLoss", 12, 0, infer_loss, KERNEL(prepare_loss), .flags = SDX_OP_VIA_F32},
};
const struct sdx_op_family sdx_ops_loss = FAMILY("", ops);
