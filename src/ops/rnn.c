/* SPDX-License-Identifier: Apache-2.0
 * RNN, GRU and LSTM. The input part of all gates is one product over the whole sequence; then parts
 * walk the time steps, each with some batch entries of one direction and the recurrent weights
 * packed. The usual case (f32, constant weights, standard activations) is in ops/rnn_fused.h,
 * everything else walks in rnn_tmpl.h: there DynamicQuantizeLSTM of com.microsoft is LSTM in floats
 * of which X and the states before each product are rounded to what bytes can hold. */
#include <math.h>

#include "kernels/qbytes.h"
#include "kernels/vec.h"
#include "ops/product.h"
#include "ops/rnn_bytes.h"
#include "ops/rnn_fused.h"
#include "ops/step_host.h"
#include "tensor/convert.h"

#define NAME(node) SDX_STR_ARG((node)->op_type)

enum kind { KIND_RNN, KIND_GRU, KIND_LSTM };
enum { ACTS_MAX = 6 };
/* Inputs of the step that walks. */
enum { IN_XW, IN_R, IN_B, IN_LENGTHS, IN_H, IN_C, IN_P, IN_PACKED, IN_COUNT };

enum act_kind {
    ACT_RELU,
    ACT_TANH,
    ACT_SIGMOID,
    ACT_AFFINE,
    ACT_LEAKY_RELU,
    ACT_THRESHOLDED_RELU,
    ACT_SCALED_TANH,
    ACT_HARD_SIGMOID,
    ACT_ELU,
    ACT_SOFTSIGN,
    ACT_SOFTPLUS
};
static const struct {
    const char *name;
    enum act_kind kind;
    bool has_alpha, has_beta;
    float alpha, beta;
} act_table[] = {
    {"relu", ACT_RELU, false, false, 0, 0},
    {"tanh", ACT_TANH, false, false, 0, 0},
    {"sigmoid", ACT_SIGMOID, false, false, 0, 0},
    {"affine", ACT_AFFINE, true, true, 1, 0},
    {"leakyrelu", ACT_LEAKY_RELU, true, false, 0.01f, 0},
    {"thresholdedrelu", ACT_THRESHOLDED_RELU, true, false, 1, 0},
    {"scaledtanh", ACT_SCALED_TANH, true, true, 1, 1},
    {"hardsigmoid", ACT_HARD_SIGMOID, true, true, 0.2f, 0.5f},
    {"elu", ACT_ELU, true, false, 1, 0},
    {"softsign", ACT_SOFTSIGN, false, false, 0, 0},
    {"softplus", ACT_SOFTPLUS, false, false, 0, 0},
};

struct act {
    enum act_kind kind;
    float alpha, beta;
};

struct params {
    enum kind kind;
    struct sdx_rnn_walk walk;
    int acts_a_direction;
    bool has_clip, linear_before_reset, input_forget;
    float clip;
    struct act acts[ACTS_MAX];
    const char *packed; /* recurrent weights of all directions; NULL: IN_PACKED */
    size_t packed_a_direction, packed_second; /* second: GRU's third gate */
    size_t state_size;   /* of a part's state in scratch, before that of the products */
    size_t product_size; /* of that; then the rounded states */
};

static bool has_layout(const struct sdx_ir_node *node)
{
    return sdx_ir_attr_int(node, "layout", 0) != 0;
}

static int64_t gates_of(struct sdx_str op)
{
    if (sdx_str_is(op, "LSTM") || sdx_str_is(op, "DynamicQuantizeLSTM")) return 4;
    return sdx_str_is(op, "GRU") ? 3 : 1;
}

static enum sdx_status read_direction(struct sdx_context *cx, const struct sdx_ir_node *node,
                                      int *directions, bool *is_reverse)
{
    struct sdx_str text = sdx_ir_attr_str(node, "direction", "forward");
    *directions = sdx_str_is(text, "bidirectional") ? 2 : 1;
    *is_reverse = sdx_str_is(text, "reverse");
    /* GRU-1's default is misspelt in the standard. */
    if (*directions == 2 || *is_reverse || sdx_str_is(text, "forward") ||
        sdx_str_is(text, "foward"))
        return SDX_OK;
    return SDX_FAIL(cx, SDX_BAD_MODEL,
                    "%.*s: direction is \"%.*s\", expected forward, reverse or bidirectional",
                    NAME(node), SDX_STR_ARG(text));
}

static enum sdx_status check_dims(struct sdx_infer *ix, int i, int rank, int64_t d0, int64_t d1,
                                  int64_t d2)
{
    const int64_t *dims = sdx_infer_dims(ix, i), want[3] = {d0, d1, d2};
    int64_t unused;
    if (!dims) return SDX_OK;
    if (sdx_infer_rank(ix, i) != rank)
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "%.*s: input %d has rank %d, expected %d",
                        NAME(ix->node), i, sdx_infer_rank(ix, i), rank);
    for (int k = 0; k < rank; k++)
        SDX_TRY(sdx_infer_merge_dim(ix, dims[k], want[k], "length of an input's axis", &unused));
    return SDX_OK;
}

static enum sdx_status infer_rnn(struct sdx_infer *ix)
{
    int64_t gates = gates_of(ix->node->op_type),
            hidden = sdx_ir_attr_int(ix->node, "hidden_size", -1);
    const int64_t *x = sdx_infer_dims(ix, 0), *r = sdx_infer_dims(ix, 2);
    int directions;
    bool is_reverse, batch_first = has_layout(ix->node);
    for (int k = 0; k < ix->count_out; k++)
        sdx_infer_set_dtype(ix, k, sdx_infer_dtype(ix, 0));
    SDX_TRY(read_direction(ix->cx, ix->node, &directions, &is_reverse));
    if (sdx_ir_attr(ix->node, "hidden_size") && hidden < 1)
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "%.*s: hidden_size is %lld, expected at least 1",
                        NAME(ix->node), (long long)hidden);
    if (hidden > INT64_C(1) << 40)
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "%.*s: hidden_size is too large", NAME(ix->node));
    if (hidden < 0 && r && sdx_infer_rank(ix, 2) == 3) hidden = r[2];
    SDX_TRY(check_dims(ix, 0, 3, -1, -1, -1));
    int64_t wide = hidden >= 0 ? gates * hidden : -1;
    int64_t seq = x ? x[batch_first] : -1, batch = x ? x[!batch_first] : -1;
    SDX_TRY(check_dims(ix, 1, 3, directions, wide, x ? x[2] : -1));
    SDX_TRY(check_dims(ix, 2, 3, directions, wide, hidden));
    SDX_TRY(check_dims(ix, 3, 2, directions, wide >= 0 ? 2 * wide : -1, 0));
    SDX_TRY(check_dims(ix, 4, 1, batch, 0, 0));
    for (int i = 5; i < 7; i++)
        SDX_TRY(check_dims(ix, i, 3, batch_first ? batch : directions,
                           batch_first ? directions : batch, hidden));
    SDX_TRY(check_dims(ix, 7, 2, directions, hidden >= 0 ? 3 * hidden : -1, 0));
    const int64_t y0[] = {seq, directions, batch, hidden}, y1[] = {batch, seq, directions, hidden};
    const int64_t h0[] = {directions, batch, hidden}, h1[] = {batch, directions, hidden};
    if (ix->count_out > 0) SDX_TRY(sdx_infer_set_dims(ix, 0, 4, batch_first ? y1 : y0));
    for (int k = 1; k < ix->count_out; k++)
        SDX_TRY(sdx_infer_set_dims(ix, k, 3, batch_first ? h1 : h0));
    return SDX_OK;
}

static void cost_rnn(const struct sdx_infer *ix, struct sdx_cost *cost)
{
    const int64_t *x = sdx_infer_dims(ix, 0), *w = sdx_infer_dims(ix, 1);
    const int64_t *r = sdx_infer_dims(ix, 2);
    cost->macs =
        (double)x[0] * (double)x[1] * (double)w[0] * (double)w[1] * ((double)x[2] + (double)r[2]);
    cost->flops = 2 * cost->macs;
}

static enum sdx_status read_lengths(struct sdx_exec *x, const struct params *p,
                                    const struct sdx_tensor *lengths, int64_t begin, int64_t rows,
                                    int64_t *out)
{
    for (int64_t r = 0; r < rows; r++) {
        out[r] = lengths ? ((const int32_t *)lengths->data)[begin + r] : p->walk.seq;
        if (out[r] < 0 || out[r] > p->walk.seq)
            return SDX_FAIL(x->cx, SDX_RUN_FAILED,
                            "sequence_lens[%lld] is %lld, expected 0 to %lld",
                            (long long)(begin + r), (long long)out[r], (long long)p->walk.seq);
    }
    return SDX_OK;
}

/* ---- f32 ---- */

static void activate_f32(const struct act *act, float *x, int64_t count)
{
    const struct sdx_vec *v = sdx_vec();
    size_t n = (size_t)count;
    switch (act->kind) {
    case ACT_RELU: v->f32_relu(x, x, n, 0, 0); break;
    case ACT_TANH: v->f32_tanh(x, x, n, 0, 0); break;
    case ACT_SIGMOID: v->f32_sigmoid(x, x, n, 0, 0); break;
    case ACT_AFFINE: v->f32_affine(x, act->alpha, act->beta, x, n); break;
    case ACT_LEAKY_RELU: v->f32_leaky_relu(x, x, n, act->alpha, 0); break;
    case ACT_THRESHOLDED_RELU: v->f32_thresholded_relu(x, x, n, act->alpha, 0); break;
    case ACT_SCALED_TANH:
        v->f32_affine(x, act->beta, 0, x, n);
        v->f32_tanh(x, x, n, 0, 0);
        v->f32_affine(x, act->alpha, 0, x, n);
        break;
    case ACT_HARD_SIGMOID: v->f32_hard_sigmoid(x, x, n, act->alpha, act->beta); break;
    case ACT_ELU: v->f32_elu(x, x, n, act->alpha, 0); break;
    case ACT_SOFTSIGN: v->f32_softsign(x, x, n, 0, 0); break;
    case ACT_SOFTPLUS: v->f32_softplus(x, x, n, 0, 0); break;
    }
}

/* y is x as bytes of one scale and zero point (those of DynamicQuantizeLinear) hold it. */
static void round_to_bytes(const float *x, float *y, int64_t n)
{
    enum { AT_ONCE = 512 };
    uint8_t bytes[AT_ONCE];
    float scale;
    int32_t zero;
    sdx_rnn_byte_scale(x, n, &scale, &zero);
    for (int64_t at = 0; at < n; at += AT_ONCE) {
        const size_t some = (size_t)(n - at < AT_ONCE ? n - at : AT_ONCE);
        sdx_qbytes()->quantize(x + at, scale, zero, 0, bytes, some);
        sdx_vec()->u8_to_f32(bytes, scale, zero, y + at, some);
    }
}

/* y (+)= h * R^T for the gates of `which` (GRU: 0 the first two, 1 the third). */
static void product_f32(const struct params *p, const struct sdx_step *step, int direction,
                        int which, int64_t rows, const float *h, int64_t row_h, float *y,
                        int64_t row_y, bool accumulate, void *scratch)
{
    const char *packed = p->packed ? p->packed : step->in[IN_PACKED]->data;
    if (p->walk.rounds) {
        float *rounded = (float *)(void *)((char *)scratch + p->product_size);
        round_to_bytes(h, rounded, rows * p->walk.hidden);
        h = rounded;
    }
    struct sdx_gemm_f32 g = {.m = rows, .k = p->walk.hidden, .a = h, .row_a = row_h, .col_a = 1};
    g.n = (p->kind != KIND_GRU ? p->walk.gates : which ? 1 : 2) * p->walk.hidden;
    g.packed = (const float *)(packed + (size_t)direction * p->packed_a_direction +
                               (which ? p->packed_second : 0));
    g.c = y;
    g.row_c = row_y;
    g.alpha = 1;
    g.accumulate = accumulate;
    sdx_gemm_f32_run(&g, 0, rows, 0, g.n, scratch);
}

#define T                   float
#define SUFFIX(name)        name##_f32
#define ACTIVATE(act, x, n) activate_f32((act), (x), (n))
#define MULTIPLY(p, s, d, w, r, h, rh, y, ry, scratch)                                             \
    product_f32(p, s, d, w, r, h, rh, y, ry, false, scratch)
#define ADD_PRODUCT(p, s, d, w, r, h, rh, y, ry, scratch)                                          \
    product_f32(p, s, d, w, r, h, rh, y, ry, true, scratch)
#include "ops/rnn_tmpl.h"
#undef T
#undef SUFFIX
#undef ACTIVATE
#undef MULTIPLY
#undef ADD_PRODUCT

/* ---- f64 ---- */

static double activate_one(const struct act *act, double x)
{
    double a = act->alpha, b = act->beta;
    switch (act->kind) {
    case ACT_RELU: return x > 0 ? x : 0;
    case ACT_TANH: return tanh(x);
    case ACT_SIGMOID: return 1 / (1 + exp(-x));
    case ACT_AFFINE: return a * x + b;
    case ACT_LEAKY_RELU: return x >= 0 ? x : a * x;
    case ACT_THRESHOLDED_RELU: return x > a ? x : 0;
    case ACT_SCALED_TANH: return a * tanh(b * x);
    case ACT_HARD_SIGMOID: return fmax(0, fmin(1, a * x + b));
    case ACT_ELU: return x >= 0 ? x : a * expm1(x);
    case ACT_SOFTSIGN: return x / (1 + fabs(x));
    case ACT_SOFTPLUS: return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
    }
    return x;
}

static void activate_f64(const struct act *act, double *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = activate_one(act, x[i]);
}

static void product_f64(const struct params *p, const struct sdx_step *step, int direction,
                        int which, int64_t rows, const double *h, int64_t row_h, double *y,
                        int64_t row_y, double beta)
{
    int64_t n = (p->kind != KIND_GRU ? p->walk.gates : which ? 1 : 2) * p->walk.hidden;
    const double *r =
        (const double *)step->in[IN_R]->data +
        (direction * p->walk.gates + (which ? 2 : 0)) * p->walk.hidden * p->walk.hidden;
    sdx_gemm_f64(rows, n, p->walk.hidden, 1, h, row_h, 1, r, 1, p->walk.hidden, beta, y, row_y);
}

#define T                   double
#define SUFFIX(name)        name##_f64
#define ACTIVATE(act, x, n) activate_f64((act), (x), (n))
#define MULTIPLY(p, s, d, w, r, h, rh, y, ry, scratch)                                             \
    ((void)(scratch), product_f64(p, s, d, w, r, h, rh, y, ry, 0))
#define ADD_PRODUCT(p, s, d, w, r, h, rh, y, ry, scratch)                                          \
    ((void)(scratch), product_f64(p, s, d, w, r, h, rh, y, ry, 1))
#include "ops/rnn_tmpl.h"
#undef T
#undef SUFFIX
#undef ACTIVATE
#undef MULTIPLY
#undef ADD_PRODUCT

/* ---- prepare ---- */

static bool same_name(struct sdx_str text, const char *lower)
{
    size_t n = strlen(lower);
    if (text.len != n) return false;
    for (size_t i = 0; i < n; i++) {
        char c = text.ptr[i];
        if (c >= 'A' && c <= 'Z') c = (char)(c - 'A' + 'a');
        if (c != lower[i]) return false;
    }
    return true;
}

/* Names in order of directions, then f, g, h; alphas and betas go to those that take one. */
static enum sdx_status read_acts(struct sdx_prepare *px, struct params *p)
{
    static const char *const defaults[3][3] = {
        {"tanh", "", ""}, {"sigmoid", "tanh", ""}, {"sigmoid", "tanh", "tanh"}};
    int64_t count = 0, count_alpha = 0, count_beta = 0, at_alpha = 0, at_beta = 0;
    const struct sdx_str *names = sdx_ir_attr_strings(px->node, "activations", &count);
    const float *alphas = sdx_ir_attr_floats(px->node, "activation_alpha", &count_alpha);
    const float *betas = sdx_ir_attr_floats(px->node, "activation_beta", &count_beta);
    p->acts_a_direction = (int)p->kind + 1;
    int total = p->walk.directions * p->acts_a_direction;
    if (!names) count = 0;
    if (count && count < total)
        return SDX_FAIL(px->cx, SDX_BAD_MODEL, "%.*s: activations has %lld names, expected %d",
                        NAME(px->node), (long long)count, total);
    for (int i = 0; i < total; i++) {
        struct sdx_str name =
            count ? names[i] : sdx_str(defaults[p->kind][i % p->acts_a_direction]);
        int k = 0;
        while (k < SDX_COUNT_OF(act_table) && !same_name(name, act_table[k].name))
            k++;
        if (k == SDX_COUNT_OF(act_table))
            return SDX_FAIL(px->cx, SDX_BAD_MODEL, "%.*s: activation \"%.*s\" is not known",
                            NAME(px->node), SDX_STR_ARG(name));
        p->acts[i] = (struct act){act_table[k].kind, act_table[k].alpha, act_table[k].beta};
        if (act_table[k].has_alpha && alphas && at_alpha < count_alpha)
            p->acts[i].alpha = alphas[at_alpha++];
        if (act_table[k].has_beta && betas && at_beta < count_beta)
            p->acts[i].beta = betas[at_beta++];
    }
    return SDX_OK;
}

struct pack_arg {
    const struct params *p;
    const float *r;
};

static void pack_all(const struct params *p, const float *r, char *dst)
{
    int64_t n = p->walk.hidden;
    for (int d = 0; d < p->walk.directions; d++, r += p->walk.gates * n * n) {
        char *to = dst + (size_t)d * p->packed_a_direction;
        int64_t first = p->kind == KIND_GRU ? 2 : p->walk.gates;
        sdx_gemm_f32_pack(r, 1, n, n, first * n, (float *)to);
        if (p->kind == KIND_GRU)
            sdx_gemm_f32_pack(r + 2 * n * n, 1, n, n, n, (float *)(to + p->packed_second));
    }
}

static enum sdx_status pack(struct sdx_context *cx, void *dst, void *arg_)
{
    (void)cx;
    const struct pack_arg *arg = arg_;
    pack_all(arg->p, arg->r, dst);
    return SDX_OK;
}

static enum sdx_status run_pack(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)x;
    (void)part;
    pack_all(step->params, step->in[0]->data, step->out[0]->data);
    return SDX_OK;
}

static enum sdx_status pack_recurrent(struct sdx_prepare *px, struct params *p,
                                      struct sdx_tensor **packed)
{
    int64_t n = p->walk.hidden, first = p->kind == KIND_GRU ? 2 : p->walk.gates;
    p->packed_second = (sdx_gemm_f32_packed_size(n, first * n) + 63) / 64 * 64;
    p->packed_a_direction = p->packed_second;
    if (p->kind == KIND_GRU)
        p->packed_a_direction += (sdx_gemm_f32_packed_size(n, n) + 63) / 64 * 64;
    int64_t size = (int64_t)p->packed_a_direction * p->walk.directions;
    if (px->in[2]->is_constant) {
        struct pack_arg arg = {p, px->in[2]->data};
        const struct sdx_pack wanted = {
            .key = "rnn_f32", .variant = p->kind, .size = (size_t)size, .pack = pack, .arg = &arg};
        p->packed = sdx_prepare_pack(px, 2, &wanted);
        return p->packed ? SDX_OK : px->cx->error.status;
    }
    *packed = sdx_prepare_temp(px, SDX_U8, 1, &size);
    if (!*packed) return SDX_FAIL_MEMORY(px->cx);
    return sdx_prepare_step_on(px, "rnn_pack", run_pack, p, 1, 0, 1, &px->in[2], 1, packed);
}

/* X * W^T of all directions: [directions, seq * batch, gates * hidden]. */
static enum sdx_status input_product(struct sdx_prepare *px, const struct params *p,
                                     struct sdx_tensor **out)
{
    const int64_t dims[] = {p->walk.directions, p->walk.seq * p->walk.batch,
                            p->walk.gates * p->walk.hidden};
    int64_t *at = sdx_prepare_alloc(px, 4 * sizeof *at);
    *out = sdx_prepare_temp(px, px->in[0]->dtype, 3, dims);
    if (!at || !*out) return SDX_FAIL_MEMORY(px->cx);
    at[3] = dims[2] * p->walk.input;
    struct sdx_product q = {.a = px->in[0], .b = px->in[1], .c = *out, .input_b = 1};
    q.batch = dims[0];
    q.m = dims[1];
    q.n = dims[2];
    q.k = p->walk.input;
    if (q.batch > 1) {
        q.at_a = at;
        q.at_b = at + 2;
    }
    q.row_a = p->walk.input;
    q.col_a = q.row_b = 1;
    q.col_b = p->walk.input;
    q.alpha = 1;
    return sdx_product_prepare(px, &q);
}

static enum sdx_status read_params(struct sdx_prepare *px, struct params *p, int64_t hidden)
{
    const struct sdx_tensor *x = px->in[0];
    p->walk.gates = gates_of(px->node->op_type);
    p->kind = p->walk.gates == 4 ? KIND_LSTM : p->walk.gates == 3 ? KIND_GRU : KIND_RNN;
    p->walk.batch_first = has_layout(px->node);
    p->walk.seq = x->dims[p->walk.batch_first];
    p->walk.batch = x->dims[!p->walk.batch_first];
    p->walk.input = x->dims[2];
    p->walk.hidden = hidden;
    p->has_clip = sdx_ir_attr(px->node, "clip") != NULL;
    p->clip = sdx_ir_attr_float(px->node, "clip", 0);
    p->linear_before_reset = sdx_ir_attr_int(px->node, "linear_before_reset", 0) != 0;
    p->input_forget = sdx_ir_attr_int(px->node, "input_forget", 0) != 0;
    SDX_TRY(read_direction(px->cx, px->node, &p->walk.directions, &p->walk.is_reverse));
    return read_acts(px, p);
}

/* ---- the usual case ---- */

/* Is it rnn_fused.h's case? */
static bool is_usual(const struct sdx_prepare *px, const struct params *p, enum sdx_rnn_kind *kind)
{
    static const enum act_kind usual[3][3] = {
        {ACT_TANH}, {ACT_SIGMOID, ACT_TANH}, {ACT_SIGMOID, ACT_TANH, ACT_TANH}};
    bool relu = p->kind == KIND_RNN && p->acts[0].kind == ACT_RELU;
    for (int d = 0; d < p->walk.directions; d++)
        for (int a = 0; a < p->acts_a_direction; a++)
            if (p->acts[d * p->acts_a_direction + a].kind != (relu ? ACT_RELU : usual[p->kind][a]))
                return false;
    if (px->in[0]->dtype != SDX_F32 || p->has_clip || p->input_forget || p->walk.hidden < 1)
        return false;
    if (p->kind == KIND_GRU && !p->linear_before_reset) return false;
    if (!px->in[1]->is_constant || !px->in[2]->is_constant) return false;
    if (sdx_prepare_has(px, 3) && !px->in[3]->is_constant) return false;
    if (sdx_prepare_has(px, 4) || sdx_prepare_has(px, 7)) return false;
    *kind = p->kind == KIND_LSTM  ? SDX_RNN_LSTM
            : p->kind == KIND_GRU ? SDX_RNN_GRU
            : relu                ? SDX_RNN_RELU
                                  : SDX_RNN_TANH;
    return true;
}

/* Any other case. */
static enum sdx_status prepare_walk(struct sdx_prepare *px, struct params *p)
{
    struct sdx_tensor *in[IN_COUNT] = {NULL}, *out[3] = {NULL, NULL, NULL};
    const bool is_float = px->in[0]->dtype == SDX_F32;
    SDX_TRY(input_product(px, p, &in[IN_XW]));
    if (is_float) SDX_TRY(pack_recurrent(px, p, &in[IN_PACKED]));
    for (int i = 2; i < 8; i++)
        in[IN_R + i - 2] = sdx_prepare_has(px, i) ? px->in[i] : NULL;
    for (int k = 0; k < 3 && k < px->count_out; k++)
        out[k] = px->out[k];
    sdx_rnn_split_batch(&p->walk, SDX_RNN_ROWS);
    int64_t rows = p->walk.rows_a_part, width = p->walk.gates * p->walk.hidden;
    size_t elements = (size_t)(rows * (4 * p->walk.hidden + width) + width);
    p->state_size = (elements * (is_float ? 4 : 8) + 63) / 64 * 64;
    size_t scratch = p->state_size;
    if (is_float) {
        p->product_size = (sdx_gemm_f32_scratch(rows, width, p->walk.hidden) + 63) / 64 * 64;
        scratch += p->product_size;
        if (p->walk.rounds) scratch += (size_t)(rows * p->walk.hidden) * sizeof(float);
    }
    return sdx_prepare_step_on(px, "rnn", is_float ? run_f32 : run_f64, p,
                               p->walk.directions * p->walk.blocks, scratch, IN_COUNT, in, 3, out);
}

static enum sdx_status prepare_rnn(struct sdx_prepare *px)
{
    struct params *p = SDX_PREPARE_NEW(px, struct params);
    const int dtype = px->in[0]->dtype;
    enum sdx_rnn_kind kind;
    if (!p) return SDX_FAIL_MEMORY(px->cx);
    SDX_TRY(read_params(px, p, px->in[2]->dims[2]));
    if (dtype != SDX_F32 && dtype != SDX_F64)
        return SDX_FAIL(px->cx, SDX_NOT_SUPPORTED, "%.*s: element type %s", NAME(px->node),
                        sdx_dtype_short_name(dtype));
    if (p->walk.batch == 0) return SDX_OK;
    if (is_usual(px, p, &kind)) return sdx_rnn_fused_prepare(px, &p->walk, kind);
    return prepare_walk(px, p);
}

/* ---- DynamicQuantizeLSTM ---- */

enum { DYNAMIC_INPUTS = 8, DYNAMIC_ALL = 12 }; /* those of LSTM; with the facts of W and R */

/* W and R have their axes of inputs and gates the other way round. */
static enum sdx_status infer_dynamic(struct sdx_infer *ix)
{
    struct sdx_infer sub = *ix;
    const struct sdx_type *in[DYNAMIC_INPUTS] = {NULL};
    struct sdx_type types[2];
    int64_t dims[2][3];
    for (int i = 0; i < DYNAMIC_INPUTS && i < ix->count_in; i++) {
        in[i] = ix->in[i];
        if (i < 1 || i > 2 || !in[i] || !in[i]->has_shape || in[i]->rank != 3) continue;
        const int64_t turned[] = {in[i]->dims[0], in[i]->dims[2], in[i]->dims[1]};
        memcpy(dims[i - 1], turned, sizeof turned);
        types[i - 1] = *in[i];
        types[i - 1].dims = dims[i - 1];
        in[i] = &types[i - 1];
    }
    sub.in = in;
    sub.count_in = DYNAMIC_INPUTS;
    return infer_rnn(&sub);
}

/* to [directions, gates, k] = (from [directions, k, gates] - zero) * scale; facts: one for each
 * direction, or for each of its gates. */
static void widen(const struct sdx_tensor *from, const struct sdx_tensor *scale,
                  const struct sdx_tensor *zero, float *to)
{
    const int64_t d = from->dims[0], k = from->dims[1], gates = from->dims[2];
    for (int64_t n = 0; n < d * gates; n++) {
        const int64_t at_scale = scale->count == d ? n / gates : n;
        const int64_t at_zero = zero->count == d ? n / gates : n;
        const float factor = ((const float *)scale->data)[at_scale];
        const int32_t less = (int32_t)sdx_load_i64(zero->dtype, zero->data, at_zero);
        for (int64_t i = 0; i < k; i++) {
            const int64_t at = (n / gates * k + i) * gates + n % gates;
            const int32_t q = from->dtype == SDX_I8 ? ((const int8_t *)from->data)[at]
                                                    : ((const uint8_t *)from->data)[at];
            to[n * k + i] = (float)(q - less) * factor;
        }
    }
}

static enum sdx_status run_widen(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)x;
    (void)part;
    widen(step->in[0], step->in[1], step->in[2], step->out[0]->data);
    return SDX_OK;
}

/* Steps behind the longest sequence have no say in the scale. */
static enum sdx_status run_round(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct sdx_tensor *from = step->in[0], *lengths = step->in[1];
    int64_t longest = lengths ? 0 : from->dims[0];
    (void)x;
    (void)part;
    for (int64_t i = 0; lengths && i < lengths->count; i++) {
        const int64_t own = sdx_load_i64(lengths->dtype, lengths->data, i);
        if (own > longest) longest = own < from->dims[0] ? own : from->dims[0];
    }
    const int64_t used = longest * from->dims[1] * from->dims[2];
    float *to = step->out[0]->data;
    round_to_bytes(from->data, to, used);
    memset(to + used, 0, (size_t)(from->count - used) * sizeof *to);
    return SDX_OK;
}

static enum sdx_status check_facts(struct sdx_prepare *px, int i)
{
    const int64_t d = px->in[i]->dims[0], all = d * px->in[i]->dims[2];
    for (int k = 0; k < 2; k++) {
        const int64_t count = px->in[sdx_rnn_facts_of(i) + k]->count;
        if (count != d && count != all)
            return SDX_FAIL(px->cx, SDX_BAD_MODEL,
                            "%.*s: %lld scales or zero points of input %d, expected %lld or %lld",
                            NAME(px->node), (long long)count, i, (long long)d, (long long)all);
    }
    return SDX_OK;
}

/* Weights i as floats: now where they are constant, otherwise at each run. */
static enum sdx_status wide_weights(struct sdx_prepare *px, int i, struct sdx_tensor **out)
{
    struct sdx_tensor *const *facts = px->in + sdx_rnn_facts_of(i);
    struct sdx_tensor *in[] = {px->in[i], facts[0], facts[1]};
    const int64_t dims[] = {in[0]->dims[0], in[0]->dims[2], in[0]->dims[1]};
    if (!in[0]->is_constant || !in[1]->is_constant || !in[2]->is_constant) {
        *out = sdx_prepare_temp(px, SDX_F32, 3, dims);
        if (!*out) return SDX_FAIL_MEMORY(px->cx);
        return sdx_prepare_step_on(px, "rnn_widen", run_widen, NULL, 1, 0, 3, in, 1, out);
    }
    *out = sdx_op_tensor(px->cx, px->arena, SDX_F32, 3, dims);
    if (!*out) return px->cx->error.status;
    (*out)->data = sdx_prepare_alloc(px, (*out)->bytes + 64);
    (*out)->is_constant = true;
    if (!(*out)->data) return SDX_FAIL_MEMORY(px->cx);
    widen(in[0], in[1], in[2], (*out)->data);
    return SDX_OK;
}

/* The unusual cases: LSTM in floats. */
static enum sdx_status prepare_rounded(struct sdx_prepare *px, struct params *p)
{
    struct sdx_prepare sub = *px;
    struct sdx_tensor *in[DYNAMIC_INPUTS] = {NULL};
    for (int i = 3; i < DYNAMIC_INPUTS; i++)
        in[i] = px->in[i];
    SDX_TRY(wide_weights(px, 1, &in[1]));
    SDX_TRY(wide_weights(px, 2, &in[2]));
    in[0] = sdx_prepare_temp(px, SDX_F32, 3, px->in[0]->dims);
    if (!in[0]) return SDX_FAIL_MEMORY(px->cx);
    struct sdx_tensor *round_in[] = {px->in[0], in[4]};
    SDX_TRY(sdx_prepare_step_on(px, "rnn_round", run_round, NULL, 1, 0, 2, round_in, 1, in));
    sub.in = in;
    sub.count_in = DYNAMIC_INPUTS;
    return prepare_walk(&sub, p);
}

static enum sdx_status prepare_dynamic(struct sdx_prepare *px)
{
    struct params *p = SDX_PREPARE_NEW(px, struct params);
    enum sdx_rnn_kind kind;
    if (!p) return SDX_FAIL_MEMORY(px->cx);
    if (px->count_in < DYNAMIC_ALL)
        return SDX_FAIL(px->cx, SDX_BAD_MODEL, "%.*s: %d inputs, expected 12", NAME(px->node),
                        px->count_in);
    p->walk.rounds = true;
    SDX_TRY(read_params(px, p, px->in[2]->dims[1]));
    SDX_TRY(check_facts(px, 1));
    SDX_TRY(check_facts(px, 2));
    if (p->walk.batch == 0) return SDX_OK;
    bool is_fixed = px->in[0]->count > 0;
    for (int i = sdx_rnn_facts_of(1); i < DYNAMIC_ALL; i++)
        is_fixed = is_fixed && px->in[i]->is_constant;
    if (is_fixed && is_usual(px, p, &kind)) return sdx_rnn_fused_prepare(px, &p->walk, kind);
    return prepare_rounded(px, p);
}

static const struct sdx_op ops[] = {
    {"RNN", 1, 0, infer_rnn, KERNEL(prepare_rnn), .cost = cost_rnn, .flags = SDX_OP_VIA_F32},
    {"GRU", 1, 0, infer_rnn, KERNEL(prepare_rnn), .cost = cost_rnn, .flags = SDX_OP_VIA_F32},
    {"LSTM", 1, 0, infer_rnn, KERNEL(prepare_rnn), .cost = cost_rnn, .flags = SDX_OP_VIA_F32},
};

const struct sdx_op_family sdx_ops_rnn = FAMILY("", ops);

static const struct sdx_op contrib_ops[] = {
    {"DynamicQuantizeLSTM", 1, 0, infer_dynamic, KERNEL(prepare_dynamic)},
};

const struct sdx_op_family sdx_ops_rnn_dynamic = FAMILY("com.microsoft", contrib_ops);
