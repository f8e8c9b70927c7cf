/* SPDX-License-Identifier: Apache-2.0
 * The optimisers of ai.onnx.preview.training: Adagrad, Adam, Momentum. Inputs are the rate, the
 * count of updates, then all tensors X, all gradients G, all first and (Adam) second moments; the
 * outputs have the order of the inputs without G. Gradient is not here. */
#include <math.h>

#include "ops/op.h"

#define NAME(node) SDX_STR_ARG((node)->op_type)

enum kind { KIND_ADAGRAD, KIND_ADAM, KIND_MOMENTUM };
enum { IN_RATE, IN_COUNT_UPDATES, IN_X, IN_G, IN_V, IN_H, IN_MOST };

struct params {
    enum kind kind;
    bool is_nesterov;
    double norm, norm_post, alpha, beta, epsilon, decay;
};

/* What of the formulas is the same for all elements. */
struct now {
    double rate, beta;
};

static int groups_of(const struct sdx_ir_node *node)
{
    return sdx_str_is(node->op_type, "Adam") ? 4 : 3;
}

static enum sdx_status count_of(struct sdx_context *cx, const struct sdx_ir_node *node,
                                int count_in, int count_out, int *count)
{
    int groups = groups_of(node), tensors = count_in - 2;
    *count = tensors / groups;
    if (tensors > 0 && tensors % groups == 0 && count_out <= *count * (groups - 1)) return SDX_OK;
    return SDX_FAIL(cx, SDX_BAD_MODEL,
                    "%.*s: %d inputs and %d outputs, expected 2 + %d * n and %d * n", NAME(node),
                    count_in, count_out, groups, groups - 1);
}

static enum sdx_status infer_optimiser(struct sdx_infer *ix)
{
    int count = 0;
    SDX_TRY(count_of(ix->cx, ix->node, ix->count_in, ix->count_out, &count));
    for (int k = 0; k < ix->count_out; k++)
        sdx_infer_copy(ix, k, 2 + (k < count ? k : k + count)); /* there is no new G */
    return SDX_OK;
}

static void cost_optimiser(const struct sdx_infer *ix, struct sdx_cost *cost)
{
    int tensors = (ix->count_in - 2) / groups_of(ix->node);
    for (int i = 0; i < tensors; i++) {
        int64_t count = 0;
        const struct sdx_type *t = ix->in[2 + i];
        if (t && t->has_shape && sdx_dims_count(t->dims, t->rank, &count))
            cost->flops += 10 * (double)count;
    }
}

/* Elements begin .. end-1 of one tensor; x, v, h: what is new (NULL: not wanted). */
#define OPTIMISER(suffix, T, SQRT)                                                                 \
    static void adagrad_##suffix(const struct params *p, struct now now,                           \
                                 const struct sdx_step *step, int64_t begin, int64_t end)          \
    {                                                                                              \
        const T *x = step->in[IN_X]->data, *g = step->in[IN_G]->data, *h = step->in[IN_V]->data;   \
        T *x_out = step->out[0] ? step->out[0]->data : NULL;                                       \
        T *h_out = step->out[1] ? step->out[1]->data : NULL;                                       \
        for (int64_t i = begin; i < end; i++) {                                                    \
            T slope = (T)p->norm * x[i] + g[i], sum = h[i] + slope * slope;                        \
            if (x_out) x_out[i] = x[i] - (T)now.rate * slope / (SQRT(sum) + (T)p->epsilon);        \
            if (h_out) h_out[i] = sum;                                                             \
        }                                                                                          \
    }                                                                                              \
    static void adam_##suffix(const struct params *p, struct now now, const struct sdx_step *step, \
                              int64_t begin, int64_t end)                                          \
    {                                                                                              \
        const T *x = step->in[IN_X]->data, *g = step->in[IN_G]->data;                              \
        const T *v = step->in[IN_V]->data, *h = step->in[IN_H]->data;                              \
        T *x_out = step->out[0] ? step->out[0]->data : NULL;                                       \
        T *v_out = step->out[1] ? step->out[1]->data : NULL;                                       \
        T *h_out = step->out[2] ? step->out[2]->data : NULL;                                       \
        T alpha = (T)p->alpha, beta = (T)p->beta, keep = (T)(1 - p->norm_post);                    \
        for (int64_t i = begin; i < end; i++) {                                                    \
            T slope = (T)p->norm * x[i] + g[i];                                                    \
            T first = alpha * v[i] + (T)(1 - p->alpha) * slope;                                    \
            T second = beta * h[i] + (T)(1 - p->beta) * (slope * slope);                           \
            T move = (T)now.rate * (first / (SQRT(second) + (T)p->epsilon));                       \
            if (x_out) x_out[i] = keep * (x[i] - move);                                            \
            if (v_out) v_out[i] = first;                                                           \
            if (h_out) h_out[i] = second;                                                          \
        }                                                                                          \
    }                                                                                              \
    static void momentum_##suffix(const struct params *p, struct now now,                          \
                                  const struct sdx_step *step, int64_t begin, int64_t end)         \
    {                                                                                              \
        const T *x = step->in[IN_X]->data, *g = step->in[IN_G]->data, *v = step->in[IN_V]->data;   \
        T *x_out = step->out[0] ? step->out[0]->data : NULL;                                       \
        T *v_out = step->out[1] ? step->out[1]->data : NULL;                                       \
        T alpha = (T)p->alpha, rate = (T)now.rate;                                                 \
        for (int64_t i = begin; i < end; i++) {                                                    \
            T slope = (T)p->norm * x[i] + g[i], speed = alpha * v[i] + (T)now.beta * slope;        \
            T move = p->is_nesterov ? slope + alpha * speed : speed;                               \
            if (x_out) x_out[i] = x[i] - rate * move;                                              \
            if (v_out) v_out[i] = speed;                                                           \
        }                                                                                          \
    }
OPTIMISER(f32, float, sqrtf)
OPTIMISER(f64, double, sqrt)
#undef OPTIMISER

static struct now now_of(const struct params *p, const struct sdx_step *step)
{
    const struct sdx_tensor *rate = step->in[IN_RATE];
    double updates = (double)*(const int64_t *)step->in[IN_COUNT_UPDATES]->data;
    struct now now = {rate->dtype == SDX_F64 ? *(const double *)rate->data
                                             : (double)*(const float *)rate->data,
                      updates > 0 ? p->beta : 1};
    if (p->kind == KIND_ADAGRAD) now.rate /= 1 + updates * p->decay;
    if (p->kind == KIND_ADAM && updates > 0)
        now.rate *= sqrt(1 - pow(p->beta, updates)) / (1 - pow(p->alpha, updates));
    return now;
}

static enum sdx_status run_optimiser(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)x;
    const struct params *p = step->params;
    int64_t count = step->in[IN_X]->count;
    int64_t begin = sdx_part_begin(count, step->parts, part, 64);
    int64_t end = sdx_part_begin(count, step->parts, part + 1, 64);
    bool wide = step->in[IN_X]->dtype == SDX_F64;
    struct now now = now_of(p, step);
    switch (p->kind) {
    case KIND_ADAGRAD: (wide ? adagrad_f64 : adagrad_f32)(p, now, step, begin, end); break;
    case KIND_ADAM: (wide ? adam_f64 : adam_f32)(p, now, step, begin, end); break;
    case KIND_MOMENTUM: (wide ? momentum_f64 : momentum_f32)(p, now, step, begin, end); break;
    }
    return SDX_OK;
}

static enum sdx_status read_params(struct sdx_prepare *px, enum kind kind, struct params *p)
{
    const struct sdx_ir_node *node = px->node;
    bool is_adam = kind == KIND_ADAM;
    p->kind = kind;
    p->norm = (double)sdx_ir_attr_float(node, "norm_coefficient", 0);
    p->norm_post = (double)sdx_ir_attr_float(node, "norm_coefficient_post", 0);
    p->alpha = (double)sdx_ir_attr_float(node, "alpha", is_adam ? 0.9f : 0);
    p->beta = (double)sdx_ir_attr_float(node, "beta", is_adam ? 0.999f : 0);
    p->epsilon = (double)sdx_ir_attr_float(node, "epsilon", 1e-6f);
    p->decay = (double)sdx_ir_attr_float(node, "decay_factor", 0);
    if (kind != KIND_MOMENTUM) return SDX_OK;
    struct sdx_str mode = sdx_ir_attr_str(node, "mode", "");
    p->is_nesterov = sdx_str_is(mode, "nesterov");
    if (p->is_nesterov || sdx_str_is(mode, "standard")) return SDX_OK;
    return SDX_FAIL(px->cx, SDX_BAD_MODEL,
                    "Momentum: mode is \"%.*s\", expected standard or nesterov", SDX_STR_ARG(mode));
}

static enum sdx_status check_scalars(struct sdx_prepare *px)
{
    const struct sdx_tensor *rate = px->in[IN_RATE], *updates = px->in[IN_COUNT_UPDATES];
    if (rate->count == 1 && updates->count == 1 && updates->dtype == SDX_I64 &&
        (rate->dtype == SDX_F32 || rate->dtype == SDX_F64))
        return SDX_OK;
    return SDX_FAIL(px->cx, SDX_BAD_MODEL,
                    "%.*s: R and T must be one float or double and one int64", NAME(px->node));
}

static enum sdx_status prepare_optimiser(struct sdx_prepare *px, enum kind kind)
{
    struct params *p = SDX_PREPARE_NEW(px, struct params);
    int groups = groups_of(px->node), count = 0;
    if (!p) return SDX_FAIL_MEMORY(px->cx);
    SDX_TRY(count_of(px->cx, px->node, px->count_in, px->count_out, &count));
    SDX_TRY(read_params(px, kind, p));
    SDX_TRY(check_scalars(px));
    for (int i = 0; i < count; i++) {
        struct sdx_tensor *in[IN_MOST] = {px->in[IN_RATE], px->in[IN_COUNT_UPDATES]};
        struct sdx_tensor *out[3] = {NULL, NULL, NULL};
        for (int g = 0; g < groups; g++) {
            in[IN_X + g] = px->in[2 + g * count + i];
            const struct sdx_tensor *t = in[IN_X + g], *x = in[IN_X];
            if (!t || t->dtype != x->dtype || (t->dtype != SDX_F32 && t->dtype != SDX_F64) ||
                !sdx_dims_equal(t->dims, t->rank, x->dims, x->rank))
                return SDX_FAIL(px->cx, SDX_BAD_MODEL,
                                "%.*s: tensor %d and its gradient and moments differ in shape or "
                                "are not all float or all double",
                                NAME(px->node), i);
        }
        for (int g = 0; g < groups - 1 && g * count + i < px->count_out; g++)
            out[g] = px->out[g * count + i];
        if (in[IN_X]->count == 0) continue;
        SDX_TRY(sdx_prepare_step_on(px, "optimiser", run_optimiser, p,
                                    sdx_prepare_parts((double)in[IN_X]->count, 1 << 15, 64), 0,
                                    IN_X + groups, in, groups - 1, out));
    }
    return SDX_OK;
}

static enum sdx_status prepare_adagrad(struct sdx_prepare *px)
{
    return prepare_optimiser(px, KIND_ADAGRAD);
}

static enum sdx_status prepare_adam(struct sdx_prepare *px)
{
    return prepare_optimiser(px, KIND_ADAM);
}

static enum sdx_status prepare_momentum(struct sdx_prepare *px)
{
    return prepare_optimiser(px, KIND_MOMENTUM);
}

static const struct sdx_op ops[] = {
    {"Adagrad", 1, 0, infer_optimiser, KERNEL(prepare_adagrad), .cost = cost_optimiser},
    {"Adam", 1, 0, infer_optimiser, KERNEL(prepare_adam), .cost = cost_optimiser},
    {"Momentum", 1, 0, infer_optimiser, KERNEL(prepare_momentum), .cost = cost_optimiser},
};

const struct sdx_op_family sdx_ops_training = FAMILY("ai.onnx.preview.training", ops);
