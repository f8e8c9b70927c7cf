/* SPDX-License-Identifier: Apache-2.0
 * MoE and QMoE of com.microsoft: each token goes through the few experts that its router prefers,
 * and what they give is added up by the router's weights. Weights of few bits are decoded a block
 * of rows at a time. */
#include <math.h>

#include "kernels/gemm.h"
#include "kernels/vec.h"
#include "ops/attention_heads.h"

enum { TOKENS = 16 /* that go through an expert at once */, COLUMNS = 64 /* decoded at once */ };
enum act { RELU, GELU, SILU, IDENTITY, SWIGLU };
enum layer { FC1, FC2, FC3, LAYERS };
enum part { WEIGHT, SCALE, BIAS, ZERO, PARTS };
/* Inputs; -1: the operator has none such. */
static const int8_t plain_inputs[LAYERS][PARTS] = {{2, -1, 3, -1}, {4, -1, 5, -1}, {6, -1, 7, -1}};
static const int8_t coded_inputs[LAYERS][PARTS] = {{2, 3, 4, 11}, {5, 6, 7, 12}, {8, 9, 10, 13}};
enum { ROUTER_WEIGHTS = 14, QMOE_INPUTS = 15 };

/* Weights of one layer: [experts, n, k], or codes of `bits` bits with a scale for every `block` of
 * a row. */
struct matrix {
    int64_t n, k, block;
    int bits; /* 0: f32 */
};

struct params {
    int64_t tokens, experts, hidden, inter, chosen;
    struct matrix layer[LAYERS];
    enum act act;
    bool is_coded, normalizes, has_gate /* FC3 */, halves /* of SWIGLU lie one after the other */;
    float alpha, beta, limit;
    size_t plain_scratch;
};

/* Operands of the steps. */
enum { IN_X, IN_EXPERTS, IN_SHARES, IN_LAYERS, IN_COUNT = IN_LAYERS + LAYERS * PARTS };

static enum sdx_status bad(struct sdx_prepare *px, const char *what)
{
    return SDX_FAIL(px->cx, SDX_BAD_MODEL, "%.*s: %s", SDX_HEADS_OP(px), what);
}

/* ---- the router ---- */

/* The experts that a token goes to and its shares of them: the greatest of a softmax; of equal ones
 * the last. */
static void route(const struct params *p, const float *logits, const float *weights, float *shares,
                  int32_t *experts, float *out)
{
    float sum = 0;
    sdx_vec()->f32_softmax(logits, shares, (size_t)p->experts);
    for (int64_t j = 0; j < p->chosen; j++) {
        int64_t best = -1;
        for (int64_t e = 0; e < p->experts; e++) {
            bool taken = false;
            for (int64_t i = 0; i < j && !taken; i++)
                taken = experts[i] == e;
            if (!taken && (best < 0 || shares[e] >= shares[best])) best = e;
        }
        experts[j] = (int32_t)best;
        out[j] = weights ? weights[best] : shares[best];
        sum += out[j];
    }
    for (int64_t j = 0; p->normalizes && sum != 0 && j < p->chosen; j++)
        out[j] /= sum;
}

static enum sdx_status run_route(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct params *p = step->params;
    const int64_t begin = sdx_part_begin(p->tokens, step->parts, part, 1);
    const int64_t end = sdx_part_begin(p->tokens, step->parts, part + 1, 1);
    for (int64_t t = begin; t < end; t++) {
        const float *weights = step->in[1] ? (const float *)step->in[1]->data : NULL;
        route(p, (const float *)step->in[0]->data + t * p->experts,
              weights ? weights + t * p->experts : NULL, x->scratch,
              (int32_t *)step->out[0]->data + t * p->chosen,
              (float *)step->out[1]->data + t * p->chosen);
    }
    return SDX_OK;
}

/* ---- an expert ---- */

static float code_at(const uint8_t *codes, int64_t i, int bits)
{
    const int64_t per = 8 / bits;
    return (float)(codes[i / per] >> (int)(i % per * bits) & ((1 << bits) - 1));
}

/* Rows n0 .. n1 of an expert's weights as numbers. */
static void decode_rows(const struct matrix *m, struct sdx_tensor *const *in, int64_t expert,
                        int64_t n0, int64_t n1, float *to)
{
    const int64_t blocks = m->k / m->block, row = m->k * m->bits / 8;
    const int64_t zero_row = (blocks * m->bits + 7) / 8;
    for (int64_t n = n0; n < n1; n++) {
        const uint8_t *codes = (const uint8_t *)in[WEIGHT]->data + (expert * m->n + n) * row;
        const float *scales = (const float *)in[SCALE]->data + (expert * m->n + n) * blocks;
        for (int64_t b = 0; b < blocks; b++) {
            float zero = (float)(1 << (m->bits - 1));
            if (in[ZERO] && in[ZERO]->rank == 3)
                zero = code_at((const uint8_t *)in[ZERO]->data + (expert * m->n + n) * zero_row, b,
                               m->bits);
            else if (in[ZERO])
                zero = code_at((const uint8_t *)in[ZERO]->data + expert * in[ZERO]->dims[1], n,
                               m->bits);
            for (int64_t i = b * m->block; i < (b + 1) * m->block; i++)
                *to++ = (code_at(codes, i, m->bits) - zero) * scales[b];
        }
    }
}

/* y [rows, n] = a [rows, k] * weights^T + bias */
static void multiply(const struct params *p, enum layer layer, struct sdx_tensor *const *all,
                     int64_t expert, int64_t rows, const float *a, float *y, float *decoded,
                     void *scratch)
{
    const struct matrix *m = &p->layer[layer];
    struct sdx_tensor *const *in = all + IN_LAYERS + layer * PARTS;
    for (int64_t n0 = 0; n0 < m->n; n0 += COLUMNS) {
        const int64_t n1 = n0 + COLUMNS < m->n ? n0 + COLUMNS : m->n;
        const float *w = decoded;
        if (p->is_coded)
            decode_rows(m, in, expert, n0, n1, decoded);
        else
            w = (const float *)in[WEIGHT]->data + (expert * m->n + n0) * m->k;
        struct sdx_gemm_f32 g = {.m = rows,
                                 .n = n1 - n0,
                                 .k = m->k,
                                 .a = a,
                                 .row_a = m->k,
                                 .col_a = 1,
                                 .c = y + n0,
                                 .row_c = m->n,
                                 .alpha = 1};
        sdx_gemm_f32_plain(&g, w, 1, m->k, 0, rows, 0, n1 - n0, scratch);
    }
    const float *bias = in[BIAS] ? (const float *)in[BIAS]->data + expert * m->n : NULL;
    for (int64_t r = 0; bias && r < rows; r++)
        sdx_vec()->f32_add(y + r * m->n, 1, bias, 1, y + r * m->n, (size_t)m->n);
}

/* One row: h [n of FC1] to [inter]; may be in place. */
static void activate(const struct params *p, const float *h, float *y)
{
    const struct sdx_vec *v = sdx_vec();
    const size_t n = (size_t)p->inter;
    switch (p->act) {
    case RELU: v->f32_relu(h, y, n, 0, 0); return;
    case GELU: v->f32_gelu_tanh(h, y, n, 0, 0); return;
    case SILU: v->f32_silu(h, y, n, 0, 0); return;
    case IDENTITY: memmove(y, h, n * sizeof *y); return;
    case SWIGLU: break;
    }
    for (int64_t i = 0; i < p->inter; i++) {
        const float gate = h[p->halves ? i : 2 * i];
        const float linear = h[p->halves ? i + p->inter : 2 * i + 1];
        const float g = gate < p->limit ? gate : p->limit;
        float l = linear < p->limit ? linear : p->limit, s = p->alpha * g;
        l = l > -p->limit ? l : -p->limit;
        v->f32_sigmoid(&s, &s, 1, 0, 0);
        y[i] = g * s * (l + p->beta);
    }
}

struct room {
    float *x, *h, *gate, *decoded;
    void *rest;
};

/* So many floats of scratch before the product's own. */
static int64_t floats_of(const struct params *p)
{
    const int64_t wide = p->hidden > p->inter ? p->hidden : p->inter;
    return TOKENS * (p->hidden + p->layer[FC1].n + p->inter) + COLUMNS * wide + 64;
}

static struct room room_of(const struct params *p, void *scratch)
{
    struct room r = {.x = scratch};
    r.h = r.x + TOKENS * p->hidden;
    r.gate = r.h + TOKENS * p->layer[FC1].n;
    r.decoded = r.gate + TOKENS * p->inter;
    r.rest = (char *)scratch + ((size_t)floats_of(p) * sizeof(float) + 63) / 64 * 64;
    return r;
}

/* `rows` places (token * chosen + j) through an expert. */
static void run_rows(const struct params *p, const struct sdx_step *step, int64_t expert,
                     const int64_t *places, int64_t rows, const struct room *room)
{
    const int64_t wide = p->layer[FC1].n;
    const float *shares = step->in[IN_SHARES]->data;
    for (int64_t r = 0; r < rows; r++)
        memcpy(room->x + r * p->hidden,
               (const float *)step->in[IN_X]->data + places[r] / p->chosen * p->hidden,
               (size_t)p->hidden * sizeof(float));
    multiply(p, FC1, step->in, expert, rows, room->x, room->h, room->decoded, room->rest);
    if (p->has_gate)
        multiply(p, FC3, step->in, expert, rows, room->x, room->gate, room->decoded, room->rest);
    for (int64_t r = 0; r < rows; r++) {
        float *h = room->h + r * p->inter; /* rows move to the front: none is overwritten early */
        activate(p, room->h + r * wide, h);
        if (p->has_gate)
            sdx_vec()->f32_mul(h, 1, room->gate + r * p->inter, 1, h, (size_t)p->inter);
    }
    multiply(p, FC2, step->in, expert, rows, room->h, room->x, room->decoded, room->rest);
    for (int64_t r = 0; r < rows; r++)
        sdx_vec()->f32_mul(room->x + r * p->hidden, 1, &shares[places[r]], 0,
                           (float *)step->out[0]->data + places[r] * p->hidden, (size_t)p->hidden);
}

/* One expert. */
static enum sdx_status run_expert(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct params *p = step->params;
    const struct room room = room_of(p, x->scratch);
    const int32_t *experts = step->in[IN_EXPERTS]->data;
    int64_t places[TOKENS], rows = 0;
    for (int64_t i = 0; i < p->tokens * p->chosen && !sdx_exec_cancelled(x); i++) {
        if (experts[i] == part) places[rows++] = i;
        if (rows < TOKENS) continue;
        run_rows(p, step, part, places, rows, &room);
        rows = 0;
    }
    if (rows > 0) run_rows(p, step, part, places, rows, &room);
    return SDX_OK;
}

/* What the experts of a token gave, added up. */
static enum sdx_status run_sum(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)x;
    const struct params *p = step->params;
    const int64_t begin = sdx_part_begin(p->tokens, step->parts, part, 1);
    const int64_t end = sdx_part_begin(p->tokens, step->parts, part + 1, 1);
    for (int64_t t = begin; t < end; t++) {
        const float *from = (const float *)step->in[0]->data + t * p->chosen * p->hidden;
        float *y = (float *)step->out[0]->data + t * p->hidden;
        memcpy(y, from, (size_t)p->hidden * sizeof *y);
        for (int64_t j = 1; j < p->chosen; j++)
            sdx_vec()->f32_add(y, 1, from + j * p->hidden, 1, y, (size_t)p->hidden);
    }
    return SDX_OK;
}

/* ---- prepare ---- */

static enum sdx_status read_act(struct sdx_prepare *px, struct params *p)
{
    static const char *const names[] = {"relu", "gelu", "silu", "identity", "swiglu"};
    const struct sdx_str name = sdx_ir_attr_str(px->node, "activation_type", "relu");
    const int64_t fusion = sdx_ir_attr_int(px->node, "swiglu_fusion", 0);
    int at = 0;
    while (at < SDX_COUNT_OF(names) && !sdx_str_is(name, names[at]))
        at++;
    if (at == SDX_COUNT_OF(names) || sdx_ir_attr_int(px->node, "use_sparse_mixer", 0))
        return SDX_FAIL(px->cx, SDX_NOT_SUPPORTED, "%.*s: activation \"%.*s\" or use_sparse_mixer",
                        SDX_HEADS_OP(px), SDX_STR_ARG(name));
    p->act = (enum act)at;
    p->halves = fusion == 2;
    if (p->act == SWIGLU && fusion == 0)
        return SDX_FAIL(px->cx, SDX_NOT_SUPPORTED, "%.*s: swiglu with swiglu_fusion 0",
                        SDX_HEADS_OP(px));
    p->alpha = sdx_ir_attr_float(px->node, "activation_alpha", 1);
    p->beta = sdx_ir_attr_float(px->node, "activation_beta", 0);
    p->limit = sdx_ir_attr_float(px->node, "swiglu_limit", INFINITY);
    return SDX_OK;
}

static const char *bits_name(int layer)
{
    static const char *const names[] = {"fc1_expert_weight_bits", "fc2_expert_weight_bits",
                                        "fc3_expert_weight_bits"};
    return names[layer];
}

/* Sizes of a layer's operands: [experts, n, k]. */
static enum sdx_status read_layer(struct sdx_prepare *px, struct params *p, int layer,
                                  struct sdx_tensor *const *in, int64_t n, int64_t k)
{
    struct matrix *m = &p->layer[layer];
    *m = (struct matrix){.n = n, .k = k, .block = k};
    if (p->is_coded) {
        m->bits = (int)sdx_ir_attr_int(px->node, bits_name(layer),
                                       sdx_ir_attr_int(px->node, "expert_weight_bits", 4));
        const int64_t block = sdx_ir_attr_int(px->node, "block_size", 0);
        if (block > 0) m->block = block;
        if ((m->bits != 2 && m->bits != 4 && m->bits != 8) || k % m->block || k * m->bits % 8)
            return bad(px, "bits or block_size do not fit the weights");
    }
    const struct sdx_tensor *w = in[WEIGHT];
    bool fits = w && w->rank == 3 && w->dims[0] == p->experts && w->dims[1] == n &&
                w->dims[2] == (p->is_coded ? k * m->bits / 8 : k) &&
                w->dtype == (p->is_coded ? SDX_U8 : SDX_F32);
    if (p->is_coded)
        fits = fits && in[SCALE] && in[SCALE]->dtype == SDX_F32 &&
               in[SCALE]->count == p->experts * n * (k / m->block);
    if (in[BIAS]) fits = fits && in[BIAS]->count == p->experts * n && in[BIAS]->dtype == SDX_F32;
    if (in[ZERO]) {
        const int64_t row = (k / m->block * m->bits + 7) / 8;
        const bool by_row = in[ZERO]->rank == 3 && in[ZERO]->count == p->experts * n * row;
        const bool by_expert = in[ZERO]->rank == 2 && m->block == k &&
                               in[ZERO]->count == p->experts * ((n * m->bits + 7) / 8);
        fits = fits && (by_row || by_expert) && in[ZERO]->dtype == SDX_U8;
    }
    return fits ? SDX_OK : bad(px, "weights, scales or biases do not fit each other");
}

static enum sdx_status check_type(struct sdx_prepare *px, const struct params *p)
{
    const struct sdx_str type = sdx_ir_attr_str(px->node, "quant_type", "int");
    if (px->in[0]->dtype != SDX_F32)
        return SDX_FAIL(px->cx, SDX_NOT_SUPPORTED, "%.*s: element type %s", SDX_HEADS_OP(px),
                        sdx_dtype_short_name(px->in[0]->dtype));
    if (!p->is_coded) return SDX_OK;
    if (!sdx_str_is(type, "int") || sdx_ir_attr_int(px->node, "weights_prepacked", 0) > 0)
        return SDX_FAIL(px->cx, SDX_NOT_SUPPORTED, "QMoE: quant_type \"%.*s\", weights_prepacked",
                        SDX_STR_ARG(type));
    for (int i = QMOE_INPUTS; i < px->count_in; i++)
        if (px->in[i]) return SDX_FAIL(px->cx, SDX_NOT_SUPPORTED, "QMoE: input %d", i);
    return SDX_OK;
}

static enum sdx_status read_params(struct sdx_prepare *px, struct params *p, struct sdx_tensor **in)
{
    const struct sdx_tensor *x = px->in[0], *router = px->in[1];
    p->is_coded = sdx_str_is(px->node->op_type, "QMoE");
    SDX_TRY(check_type(px, p));
    SDX_TRY(read_act(px, p));
    if ((x->rank != 2 && x->rank != 3) || router->rank != 2 || router->dtype != SDX_F32)
        return bad(px, "input and router_probs must have rank 2 or 3 and 2");
    p->hidden = x->dims[x->rank - 1];
    p->tokens = router->dims[0];
    p->experts = router->dims[1];
    p->chosen = sdx_ir_attr_int(px->node, "k", 1);
    p->normalizes = p->is_coded || sdx_ir_attr_int(px->node, "normalize_routing_weights", 0) != 0;
    if (p->chosen < 1 || p->chosen > p->experts || x->count != p->tokens * p->hidden)
        return bad(px, "k or input do not fit router_probs");
    for (int i = 0; i < LAYERS * PARTS; i++)
        in[IN_LAYERS + i] =
            sdx_heads_input(px, (p->is_coded ? coded_inputs : plain_inputs)[i / PARTS][i % PARTS]);
    const struct sdx_tensor *w1 = in[IN_LAYERS];
    const int64_t fused = p->act == SWIGLU ? 2 : 1;
    if (!w1 || w1->rank != 3 || w1->dims[1] % fused) return bad(px, "weights must have rank 3");
    p->inter = w1->dims[1] / fused;
    p->has_gate = in[IN_LAYERS + FC3 * PARTS] != NULL;
    if (p->has_gate && p->act == SWIGLU) return bad(px, "swiglu that is fused has no third layer");
    struct sdx_tensor *const *layers = in + IN_LAYERS;
    SDX_TRY(read_layer(px, p, FC1, layers, p->inter * fused, p->hidden));
    SDX_TRY(read_layer(px, p, FC2, layers + PARTS, p->hidden, p->inter));
    if (!p->has_gate) return SDX_OK;
    return read_layer(px, p, FC3, layers + FC3 * PARTS, p->inter, p->hidden);
}

static enum sdx_status prepare_moe(struct sdx_prepare *px)
{
    struct params *p = SDX_PREPARE_NEW(px, struct params);
    struct sdx_tensor *in[IN_COUNT] = {px->in[0]}, *weights = NULL;
    if (!p) return SDX_FAIL_MEMORY(px->cx);
    SDX_TRY(read_params(px, p, in));
    if (p->is_coded) weights = sdx_heads_input(px, ROUTER_WEIGHTS);
    if (weights && (weights->count != px->in[1]->count || weights->dtype != SDX_F32))
        return bad(px, "router_weights do not fit router_probs");
    if (weights) p->normalizes = sdx_ir_attr_int(px->node, "normalize_routing_weights", 0) != 0;
    if (px->out[0]->count == 0) return SDX_OK;
    const int64_t routes[] = {p->tokens, p->chosen}, rows[] = {p->tokens, p->chosen, p->hidden};
    in[IN_EXPERTS] = sdx_prepare_temp(px, SDX_I32, 2, routes);
    in[IN_SHARES] = sdx_prepare_temp(px, SDX_F32, 2, routes);
    struct sdx_tensor *given = sdx_prepare_temp(px, SDX_F32, 3, rows);
    if (!in[IN_EXPERTS] || !in[IN_SHARES] || !given) return px->cx->error.status;
    struct sdx_tensor *router[] = {px->in[1], weights}, *routed[] = {in[IN_EXPERTS], in[IN_SHARES]};
    const int64_t parts = sdx_prepare_parts((double)(p->tokens * p->hidden), 1 << 14, p->tokens);
    SDX_TRY(sdx_prepare_step_on(px, "moe_route", run_route, p, parts,
                                (size_t)p->experts * sizeof(float), 2, router, 2, routed));
    size_t most = 0;
    for (int i = 0; i < LAYERS; i++) {
        const size_t need = sdx_gemm_f32_plain_scratch(TOKENS, COLUMNS, p->layer[i].k);
        most = need > most ? need : most;
    }
    const size_t scratch = (size_t)floats_of(p) * sizeof(float) + 64 + most;
    SDX_TRY(sdx_prepare_step_on(px, "moe_experts", run_expert, p, p->experts, scratch, IN_COUNT, in,
                                1, &given));
    return sdx_prepare_step_on(px, "moe_sum", run_sum, p, parts, 0, 1, &given, 1, px->out);
}

static void cost_moe(const struct sdx_infer *ix, struct sdx_cost *cost)
{
    const int64_t *x = sdx_infer_dims(ix, 1), *w = sdx_infer_dims(ix, 2);
    if (!x || !w) return;
    cost->macs = (double)x[0] * (double)sdx_ir_attr_int(ix->node, "k", 1) * 1.5 * (double)w[1] *
                 (double)ix->out[0].dims[ix->out[0].rank - 1];
    cost->flops = 2 * cost->macs;
}

static const struct sdx_op ops[] = {
    {"MoE", 1, 0, sdx_infer_same, KERNEL(prepare_moe), .cost = cost_moe, .flags = SDX_OP_VIA_F32,
     .note = "no use_sparse_mixer"},
    {"QMoE", 1, 0, sdx_infer_same, KERNEL(prepare_moe), .cost = cost_moe, .flags = SDX_OP_VIA_F32,
     .note = "quant_type int, weights not packed"},
};

const struct sdx_op_family sdx_ops_contrib_moe = FAMILY("com.microsoft", ops);
