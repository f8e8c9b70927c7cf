/* SPDX-License-Identifier: Apache-2.0
 * Recurrences that carry a state from call to call: CausalConvWithState (a depthwise convolution
 * over what came before) and LinearAttention (a matrix a head, decayed and written by each token).
 */
#include <math.h>

#include "kernels/vec.h"
#include "ops/op.h"

#define NAME(node) SDX_STR_ARG((node)->op_type)

static struct sdx_tensor *input(struct sdx_prepare *px, int i)
{
    return sdx_prepare_has(px, i) ? px->in[i] : NULL;
}

static struct sdx_tensor *output(struct sdx_prepare *px, int k)
{
    return k < px->count_out ? px->out[k] : NULL;
}

static enum sdx_status want_f32(struct sdx_prepare *px)
{
    for (int i = 0; i < px->count_in; i++)
        if (px->in[i] && px->in[i]->dtype != SDX_F32)
            return SDX_FAIL(px->cx, SDX_NOT_SUPPORTED, "%.*s: input %d has element type %s",
                            NAME(px->node), i, sdx_dtype_short_name(px->in[i]->dtype));
    return SDX_OK;
}

static enum sdx_status infer_rank(struct sdx_infer *ix, int i, int rank)
{
    if (sdx_infer_rank(ix, i) < 0 || sdx_infer_rank(ix, i) == rank) return SDX_OK;
    return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "%.*s: input %d has rank %d, expected %d",
                    NAME(ix->node), i, sdx_infer_rank(ix, i), rank);
}

/* Input i has this shape, or is left out. */
static enum sdx_status check_shape(struct sdx_prepare *px, int i, int rank, const int64_t *dims)
{
    const struct sdx_tensor *t = input(px, i);
    char found[100], wanted[100];
    if (!t || sdx_dims_equal(t->dims, t->rank, dims, rank)) return SDX_OK;
    return SDX_FAIL(px->cx, SDX_BAD_MODEL, "%.*s: input %d has shape %s, expected %s",
                    NAME(px->node), i, sdx_dims_describe(t->dims, t->rank, found, sizeof found),
                    sdx_dims_describe(dims, rank, wanted, sizeof wanted));
}

/* ---- CausalConvWithState: x: [N, C, L], weight: [C, 1, K], state: [N, C, K - 1] ---- */

enum { SHORT = 8 }; /* places up to which calls of a vector kernel cost more than they save */

struct causal {
    int64_t rows, channels, length, kernel;
    bool is_silu;
};

static enum sdx_status infer_causal(struct sdx_infer *ix)
{
    const int64_t *x = sdx_infer_dims(ix, 0), *w = sdx_infer_dims(ix, 1);
    for (int k = 0; k < ix->count_out; k++)
        sdx_infer_set_dtype(ix, k, sdx_infer_dtype(ix, 0));
    static const int ranks[] = {3, 3, 1, 3};
    for (int i = 0; i < 4; i++)
        SDX_TRY(infer_rank(ix, i, ranks[i]));
    if (x) SDX_TRY(sdx_infer_set_dims(ix, 0, 3, x));
    if (!x || ix->count_out < 2) return SDX_OK;
    if (w && w[2] == 0)
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "CausalConvWithState: the kernel is empty");
    const int64_t state[] = {x[0], x[1], w && w[2] > 0 ? w[2] - 1 : -1};
    return sdx_infer_set_dims(ix, 1, 3, state);
}

static void cost_causal(const struct sdx_infer *ix, struct sdx_cost *cost)
{
    const int64_t *x = sdx_infer_dims(ix, 0), *w = sdx_infer_dims(ix, 1);
    cost->macs = (double)x[0] * (double)x[1] * (double)x[2] * (double)w[2];
    cost->flops = 2 * cost->macs;
}

/* One row; past may be NULL: zeros. */
static void causal_row(const struct causal *p, const float *x, const float *w, float bias,
                       const float *past, float *y)
{
    int64_t kept = p->kernel - 1, length = p->length;
    for (int64_t t = 0; t < length; t++)
        y[t] = bias;
    for (int64_t j = 0; j < p->kernel; j++) {
        int64_t from_past = kept - j < length ? kept - j : length;
        for (int64_t t = 0; past && t < from_past; t++)
            y[t] += w[j] * past[t + j];
        if (length - from_past > SHORT) {
            sdx_vec()->f32_axpy(w[j], x, y + from_past, (size_t)(length - from_past));
            continue;
        }
        for (int64_t t = from_past; t < length; t++)
            y[t] += w[j] * x[t - from_past];
    }
    if (p->is_silu) sdx_vec()->f32_silu(y, y, (size_t)length, 0, 0);
}

/* The last K - 1 places of the past and x in a row. */
static void causal_state(const struct causal *p, const float *x, const float *past, float *state)
{
    int64_t kept = p->kernel - 1;
    for (int64_t i = 0; i < kept; i++) {
        int64_t at = i + p->length - kept; /* in x */
        state[i] = at >= 0 ? x[at] : past ? past[kept + at] : 0;
    }
}

static enum sdx_status run_causal(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct causal *p = step->params;
    int64_t begin = sdx_part_begin(p->rows, step->parts, part, 1), kept = p->kernel - 1;
    int64_t end = sdx_part_begin(p->rows, step->parts, part + 1, 1);
    for (int64_t r = begin; r < end && !sdx_exec_cancelled(x); r++) {
        int64_t c = r % p->channels;
        const float *from = (const float *)step->in[0]->data + r * p->length;
        const float *w = (const float *)step->in[1]->data + c * p->kernel;
        const float *past = step->in[3] ? (const float *)step->in[3]->data + r * kept : NULL;
        float bias = step->in[2] ? ((const float *)step->in[2]->data)[c] : 0;
        if (step->out[0])
            causal_row(p, from, w, bias, past, (float *)step->out[0]->data + r * p->length);
        if (step->out[1]) causal_state(p, from, past, (float *)step->out[1]->data + r * kept);
    }
    return SDX_OK;
}

static enum sdx_status prepare_causal(struct sdx_prepare *px)
{
    struct causal *p = SDX_PREPARE_NEW(px, struct causal);
    const struct sdx_tensor *x = px->in[0], *w = px->in[1];
    if (!p) return SDX_FAIL_MEMORY(px->cx);
    SDX_TRY(want_f32(px));
    struct sdx_str act = sdx_ir_attr_str(px->node, "activation", "none");
    p->is_silu = sdx_str_is(act, "silu") || sdx_str_is(act, "swish");
    if (!p->is_silu && !sdx_str_is(act, "none"))
        return SDX_FAIL(px->cx, SDX_BAD_MODEL,
                        "CausalConvWithState: activation \"%.*s\", expected none, silu or swish",
                        SDX_STR_ARG(act));
    if (w->dims[2] < 1)
        return SDX_FAIL(px->cx, SDX_BAD_MODEL, "CausalConvWithState: the kernel is empty");
    p->channels = x->dims[1];
    p->rows = x->dims[0] * x->dims[1];
    p->length = x->dims[2];
    p->kernel = w->dims[2];
    const int64_t weight[] = {p->channels, 1, p->kernel};
    const int64_t state[] = {x->dims[0], p->channels, p->kernel - 1};
    SDX_TRY(check_shape(px, 1, 3, weight));
    SDX_TRY(check_shape(px, 2, 1, weight));
    SDX_TRY(check_shape(px, 3, 3, state));
    if (p->rows == 0) return SDX_OK;
    struct sdx_tensor *in[] = {px->in[0], px->in[1], input(px, 2), input(px, 3)};
    struct sdx_tensor *out[] = {px->out[0], output(px, 1)};
    double work = (double)p->rows * (double)(p->length + 4) * (double)(p->kernel + 4 * p->is_silu);
    return sdx_prepare_step_on(px, "causal_conv", run_causal, p,
                               sdx_prepare_parts(work, 1 << 16, p->rows), 0, 4, in, 2, out);
}

/* ---- LinearAttention: query: [B, T, Hq * K], key: [B, T, H * K], value: [B, T, H * V],
 * state: [B, H, K, V], decay: [B, T, H] or [B, T, H * K], beta: [B, T, H] or [B, T, 1] ---- */

enum { IN_QUERY, IN_KEY, IN_VALUE, IN_PAST, IN_DECAY, IN_BETA, IN_COUNT };

struct linear {
    int64_t batch, length, q_heads, heads, key_size, value_size;
    int64_t columns, blocks;         /* of a state that a part has; parts of a head */
    int64_t decay_width, beta_width; /* of the last axis; 0: left out */
    float scale;
};

static enum sdx_status read_heads(struct sdx_context *cx, const struct sdx_ir_node *node,
                                  int64_t *q_heads, int64_t *heads)
{
    *q_heads = sdx_ir_attr_int(node, "q_num_heads", 0);
    *heads = sdx_ir_attr_int(node, "kv_num_heads", 0);
    if (*q_heads > 0 && *heads > 0 && *q_heads % *heads == 0) return SDX_OK;
    return SDX_FAIL(cx, SDX_BAD_MODEL,
                    "LinearAttention: q_num_heads is %lld, kv_num_heads %lld, expected a multiple",
                    (long long)*q_heads, (long long)*heads);
}

static enum sdx_status divide(struct sdx_context *cx, int64_t length, int64_t heads, int64_t *size)
{
    *size = length < 0 ? -1 : length / heads;
    if (length < 0 || length % heads == 0) return SDX_OK;
    return SDX_FAIL(cx, SDX_BAD_MODEL,
                    "LinearAttention: length %lld does not divide into %lld heads",
                    (long long)length, (long long)heads);
}

static enum sdx_status infer_linear(struct sdx_infer *ix)
{
    const int64_t *q = sdx_infer_dims(ix, IN_QUERY), *v = sdx_infer_dims(ix, IN_VALUE);
    int64_t q_heads, heads, key_size = -1, value_size = -1;
    sdx_infer_set_dtype(ix, 0, sdx_infer_dtype(ix, IN_QUERY));
    if (ix->count_out > 1)
        sdx_infer_set_dtype(ix, 1,
                            sdx_infer_dtype(ix, sdx_infer_has(ix, IN_PAST) ? IN_PAST : IN_QUERY));
    for (int i = 0; i < IN_COUNT; i++)
        SDX_TRY(infer_rank(ix, i, i == IN_PAST ? 4 : 3));
    SDX_TRY(read_heads(ix->cx, ix->node, &q_heads, &heads));
    const int64_t *past = sdx_infer_dims(ix, IN_PAST);
    if (!q && !past) return SDX_OK;
    if (q) SDX_TRY(divide(ix->cx, q[2], q_heads, &key_size));
    if (v) SDX_TRY(divide(ix->cx, v[2], heads, &value_size));
    const int64_t *k = sdx_infer_dims(ix, IN_KEY);
    int64_t batch = q ? q[0] : -1, tokens = q ? q[1] : -1;
    for (int i = IN_KEY; i <= IN_VALUE; i++) {
        const int64_t *other = i == IN_KEY ? k : v;
        if (!other) continue;
        SDX_TRY(sdx_infer_merge_dim(ix, batch, other[0], "batch", &batch));
        SDX_TRY(sdx_infer_merge_dim(ix, tokens, other[1], "number of tokens", &tokens));
    }
    if (past) {
        SDX_TRY(sdx_infer_merge_dim(ix, batch, past[0], "batch", &batch));
        SDX_TRY(sdx_infer_merge_dim(ix, key_size, past[2], "key size", &key_size));
        SDX_TRY(sdx_infer_merge_dim(ix, value_size, past[3], "value size", &value_size));
    }
    const int64_t y[] = {batch, tokens, value_size < 0 ? -1 : q_heads * value_size};
    const int64_t state[] = {batch, heads, key_size, value_size};
    SDX_TRY(sdx_infer_set_dims(ix, 0, 3, y));
    return ix->count_out > 1 ? sdx_infer_set_dims(ix, 1, 4, state) : SDX_OK;
}

static void cost_linear(const struct sdx_infer *ix, struct sdx_cost *cost)
{
    const int64_t *q = sdx_infer_dims(ix, IN_QUERY), *v = sdx_infer_dims(ix, IN_VALUE);
    double q_heads = (double)sdx_ir_attr_int(ix->node, "q_num_heads", 1);
    double heads = (double)sdx_ir_attr_int(ix->node, "kv_num_heads", 1);
    double writes = sdx_infer_has(ix, IN_BETA) ? 2 : 1; /* delta rules read before they write */
    cost->macs = (double)q[0] * (double)q[1] * ((double)q[2] / q_heads) * ((double)v[2] / heads) *
                 (q_heads + heads * writes);
    cost->flops = 2 * cost->macs;
}

/* What one token does to columns of a state. factors: key_size floats of scratch; fresh: n. */
static void linear_write(const struct linear *p, const float *key, const float *value,
                         const float *decay, const float *beta, float *state, float *factors,
                         float *fresh, int64_t n)
{
    const struct sdx_vec *vec = sdx_vec();
    if (decay) {
        bool is_one = p->decay_width == p->heads;
        vec->f32_exp(decay, factors, is_one ? 1 : (size_t)p->key_size, 0, 0);
        for (int64_t d = 0; d < p->key_size; d++)
            vec->f32_affine(state + d * p->value_size, factors[is_one ? 0 : d], 0,
                            state + d * p->value_size, (size_t)n);
    }
    memcpy(fresh, value, (size_t)n * sizeof *fresh);
    if (beta) {
        for (int64_t d = 0; d < p->key_size; d++)
            vec->f32_axpy(-key[d], state + d * p->value_size, fresh, (size_t)n);
        vec->f32_affine(fresh, *beta, 0, fresh, (size_t)n);
    }
    for (int64_t d = 0; d < p->key_size; d++)
        vec->f32_axpy(key[d], fresh, state + d * p->value_size, (size_t)n);
}

static const float *floats(const struct sdx_tensor *t)
{
    return t ? t->data : NULL;
}

/* A block of columns of one head's state, over all tokens. */
static enum sdx_status run_linear(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct linear *p = step->params;
    const struct sdx_vec *vec = sdx_vec();
    int64_t head = part / p->blocks % p->heads, entry = part / p->blocks / p->heads;
    int64_t group = p->q_heads / p->heads, first = part % p->blocks * p->columns;
    int64_t left = p->value_size - first, n = left < p->columns ? left : p->columns;
    int64_t place = (entry * p->heads + head) * p->key_size * p->value_size + first;
    float *state = (float *)step->out[1]->data + place;
    const float *past = floats(step->in[IN_PAST]), *decays = floats(step->in[IN_DECAY]);
    const float *betas = floats(step->in[IN_BETA]);
    float *factors = x->scratch, *fresh = factors + p->key_size;
    for (int64_t d = 0; d < p->key_size; d++)
        for (int64_t j = 0; j < n; j++)
            state[d * p->value_size + j] = past ? past[place + d * p->value_size + j] : 0;
    for (int64_t t = 0; t < p->length && !sdx_exec_cancelled(x); t++) {
        int64_t at = entry * p->length + t, kv = at * p->heads + head;
        const float *decay = NULL, *beta = NULL;
        if (decays) decay = decays + at * p->decay_width + head * (p->decay_width / p->heads);
        if (betas) beta = betas + at * p->beta_width + (p->beta_width > 1 ? head : 0);
        linear_write(p, floats(step->in[IN_KEY]) + kv * p->key_size,
                     floats(step->in[IN_VALUE]) + kv * p->value_size + first, decay, beta, state,
                     factors, fresh, n);
        for (int64_t g = 0; g < group && step->out[0]; g++) {
            int64_t row = at * p->q_heads + head * group + g;
            const float *query = floats(step->in[IN_QUERY]) + row * p->key_size;
            float *y = (float *)step->out[0]->data + row * p->value_size + first;
            memset(y, 0, (size_t)n * sizeof *y);
            for (int64_t d = 0; d < p->key_size; d++)
                vec->f32_axpy(query[d], state + d * p->value_size, y, (size_t)n);
            vec->f32_affine(y, p->scale, 0, y, (size_t)n);
        }
    }
    return SDX_OK;
}

/* The rule asks for decay and beta, or forbids them. */
static enum sdx_status check_rule(struct sdx_prepare *px)
{
    static const struct {
        const char *name;
        bool decay, beta;
    } rules[] = {{"linear", false, false},
                 {"gated", true, false},
                 {"delta", false, true},
                 {"gated_delta", true, true}};
    struct sdx_str rule = sdx_ir_attr_str(px->node, "update_rule", "gated_delta");
    for (int i = 0; i < SDX_COUNT_OF(rules); i++) {
        if (!sdx_str_is(rule, rules[i].name)) continue;
        if (rules[i].decay == (input(px, IN_DECAY) != NULL) &&
            rules[i].beta == (input(px, IN_BETA) != NULL))
            return SDX_OK;
        return SDX_FAIL(px->cx, SDX_BAD_MODEL,
                        "LinearAttention: update_rule %s, expected decay %s and beta %s",
                        rules[i].name, rules[i].decay ? "given" : "left out",
                        rules[i].beta ? "given" : "left out");
    }
    return SDX_FAIL(px->cx, SDX_BAD_MODEL, "LinearAttention: update_rule \"%.*s\" is not known",
                    SDX_STR_ARG(rule));
}

static enum sdx_status read_linear(struct sdx_prepare *px, struct linear *p)
{
    const struct sdx_tensor *q = px->in[IN_QUERY], *v = px->in[IN_VALUE];
    const struct sdx_tensor *decay = input(px, IN_DECAY), *beta = input(px, IN_BETA);
    SDX_TRY(read_heads(px->cx, px->node, &p->q_heads, &p->heads));
    p->batch = q->dims[0];
    p->length = q->dims[1];
    SDX_TRY(divide(px->cx, q->dims[2], p->q_heads, &p->key_size));
    SDX_TRY(divide(px->cx, v->dims[2], p->heads, &p->value_size));
    p->decay_width = decay ? decay->dims[2] : 0;
    p->beta_width = beta ? beta->dims[2] : 0;
    if (decay && p->decay_width != p->heads && p->decay_width != p->heads * p->key_size)
        return SDX_FAIL(
            px->cx, SDX_BAD_MODEL, "LinearAttention: decay has %lld columns, expected %lld or %lld",
            (long long)p->decay_width, (long long)p->heads, (long long)(p->heads * p->key_size));
    if (beta && p->beta_width != p->heads && p->beta_width != 1)
        return SDX_FAIL(px->cx, SDX_BAD_MODEL,
                        "LinearAttention: beta has %lld columns, expected %lld or 1",
                        (long long)p->beta_width, (long long)p->heads);
    const int64_t wide[] = {p->heads * p->key_size, p->heads * p->value_size, 0, p->decay_width,
                            p->beta_width};
    const int64_t state[] = {p->batch, p->heads, p->key_size, p->value_size};
    for (int i = IN_KEY; i < IN_COUNT; i++) {
        const int64_t dims[] = {p->batch, p->length, wide[i - IN_KEY]};
        if (i != IN_PAST) SDX_TRY(check_shape(px, i, 3, dims));
    }
    SDX_TRY(check_shape(px, IN_PAST, 4, state));
    p->scale = sdx_ir_attr_float(px->node, "scale", 0);
    if (p->scale == 0 && p->key_size) p->scale = (float)(1 / sqrt((double)p->key_size));
    return SDX_OK;
}

static enum sdx_status prepare_linear(struct sdx_prepare *px)
{
    struct linear *p = SDX_PREPARE_NEW(px, struct linear);
    struct sdx_tensor *in[IN_COUNT], *out[] = {px->out[0], output(px, 1)};
    if (!p) return SDX_FAIL_MEMORY(px->cx);
    SDX_TRY(want_f32(px));
    SDX_TRY(check_rule(px));
    SDX_TRY(read_linear(px, p));
    int64_t heads = p->batch * p->heads;
    if (heads == 0 || p->value_size == 0) return SDX_OK;
    const int64_t state[] = {p->batch, p->heads, p->key_size, p->value_size};
    if (!out[1]) out[1] = sdx_prepare_temp(px, SDX_F32, 4, state);
    if (!out[1]) return SDX_FAIL_MEMORY(px->cx);
    for (int i = 0; i < IN_COUNT; i++)
        in[i] = input(px, i);
    double work =
        (double)heads * (double)(p->length + 1) * (double)p->key_size * (double)p->value_size * 2;
    int64_t wanted = (sdx_prepare_parts(work, 1 << 18, 64) + heads - 1) / heads;
    p->columns = ((p->value_size + wanted - 1) / wanted + 31) / 32 * 32;
    p->blocks = (p->value_size + p->columns - 1) / p->columns;
    int64_t n = p->columns < p->value_size ? p->columns : p->value_size;
    return sdx_prepare_step_on(px, "linear_attention", run_linear, p, heads * p->blocks,
                               (size_t)(p->key_size + n) * sizeof(float), IN_COUNT, in, 2, out);
}

static const struct sdx_op ops[] = {
    {"CausalConvWithState", 27, 0, infer_causal, KERNEL(prepare_causal), .cost = cost_causal,
     .flags = SDX_OP_VIA_F32},
    {"LinearAttention", 27, 0, infer_linear, KERNEL(prepare_linear), .cost = cost_linear,
     .flags = SDX_OP_VIA_F32},
};

const struct sdx_op_family sdx_ops_state_space = FAMILY("", ops);

/* com.microsoft had them first, with forms that the standard did not take over. */
static enum sdx_status plain_form(struct sdx_infer *ix)
{
    static const struct {
        const char *name;
        int64_t usual;
    } table[] = {{"state_window", 0}, {"channels_last", 0}, {"dilation", 1}, {"ndim", 1}};
    for (int i = 0; i < SDX_COUNT_OF(table); i++) {
        const int64_t found = sdx_ir_attr_int(ix->node, table[i].name, table[i].usual);
        if (found != table[i].usual)
            return SDX_FAIL(ix->cx, SDX_NOT_SUPPORTED, "%.*s: %s is %lld, expected %lld",
                            SDX_STR_ARG(ix->node->op_type), table[i].name, (long long)found,
                            (long long)table[i].usual);
    }
    return SDX_OK;
}

static enum sdx_status infer_plain_causal(struct sdx_infer *ix)
{
    SDX_TRY(plain_form(ix));
    return infer_causal(ix);
}

static enum sdx_status infer_plain_linear(struct sdx_infer *ix)
{
    SDX_TRY(plain_form(ix));
    return infer_linear(ix);
}

static const struct sdx_op contrib_ops[] = {
    {"CausalConvWithState", 1, 0, infer_plain_causal, KERNEL(prepare_causal), .cost = cost_causal,
     .flags = SDX_OP_VIA_F32, .note = "one spatial axis, channels first, no dilation"},
    {"LinearAttention", 1, 0, infer_plain_linear, KERNEL(prepare_linear), .cost = cost_linear,
     .flags = SDX_OP_VIA_F32, .note = "state_window 0"},
};

const struct sdx_op_family sdx_ops_state_space_contrib = FAMILY("com.microsoft", contrib_ops);
