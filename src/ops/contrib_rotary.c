/* SPDX-License-Identifier: Apache-2.0
 * Operators of com.microsoft around attention: rotary positions, biases of relative positions,
 * padding taken out and put back. */
#include <math.h>

#include "kernels/vec.h"
#include "ops/attention_heads.h"
#include "ops/narrow.h"
#include "tensor/convert.h"

static enum sdx_status bad(struct sdx_context *cx, const struct sdx_ir_node *node, const char *what)
{
    return SDX_FAIL(cx, SDX_BAD_MODEL, "%.*s: %s", SDX_STR_ARG(node->op_type), what);
}

/* ---- RotaryEmbedding: 3 axes [batch, length, columns] or 4 [batch, heads, length, size] ---- */

enum { R_X, R_IDS, R_COS, R_SIN };

static enum sdx_status prepare_rotary(struct sdx_prepare *px)
{
    const struct sdx_tensor *x = px->in[R_X], *cosine = px->in[R_COS];
    struct sdx_tensor *ids = px->in[R_IDS];
    const int64_t dim = sdx_ir_attr_int(px->node, "rotary_embedding_dim", 0);
    const int64_t given = sdx_ir_attr_int(px->node, "num_heads", 0);
    if ((x->rank != 3 && x->rank != 4) || cosine->rank != 2 || ids->dtype != SDX_I64 || dim < 0 ||
        given < 0)
        return bad(px->cx, px->node,
                   "input, position_ids or caches have no shape that is expected");
    if (x->dtype != SDX_F32)
        return SDX_FAIL(px->cx, SDX_NOT_SUPPORTED, "RotaryEmbedding: element type %s",
                        sdx_dtype_short_name(x->dtype));
    struct sdx_rotary r = {.cosine = px->in[R_COS],
                           .sine = px->in[R_SIN],
                           .ids = ids,
                           .batch = x->dims[0],
                           .rows = x->dims[x->rank - 2],
                           .turned = dim ? dim : 2 * cosine->dims[1],
                           .ids_is_first = ids->count == 1 && ids->rank <= 1};
    r.is_interleaved = sdx_ir_attr_int(px->node, "interleaved", 0) != 0;
    if (x->rank == 4) {
        r.heads = x->dims[1];
        r.size = x->dims[3];
        r.from = sdx_heads_plain(px->in[R_X], 0, r.heads, r.rows, r.size);
        r.to = sdx_heads_plain(px->out[0], 0, r.heads, r.rows, r.size);
    } else {
        const int64_t width = x->dims[2];
        r.heads = given ? given : r.turned ? width / r.turned : 1;
        if (r.heads < 1 || width % r.heads)
            return bad(px->cx, px->node, "heads do not divide the columns");
        r.size = width / r.heads;
        r.from = sdx_heads_of_rows(px->in[R_X], 0, r.rows, r.size, width);
        r.to = sdx_heads_of_rows(px->out[0], 0, r.rows, r.size, width);
    }
    return sdx_heads_rotate(px, &r);
}

/* ---- GemmaRotaryEmbedding ---- */

enum { G_ANGLES, G_Q, G_Q_TURNED, G_K, G_K_TURNED };

static enum sdx_status infer_gemma(struct sdx_infer *ix)
{
    sdx_infer_copy(ix, 0, G_Q);
    if (ix->count_out > 1) sdx_infer_copy(ix, 1, G_K);
    return SDX_OK;
}

/* One place of one batch entry: x * cos + turned * sin, each result rounded. */
static enum sdx_status run_gemma(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct sdx_vec *v = sdx_vec();
    const int narrow = *(const int *)step->params;
    const int64_t length = step->in[G_ANGLES]->dims[1], size = step->in[G_ANGLES]->dims[2];
    const size_t n = (size_t)size;
    float *cosine = x->scratch, *sine = cosine + size, *t = sine + size;
    const float *angles = (const float *)step->in[G_ANGLES]->data + part * size;
    v->f32_cos(angles, cosine, n, 0, 0);
    v->f32_sin(angles, sine, n, 0, 0);
    sdx_narrow_round(narrow, cosine, 2 * n);
    for (int i = 0; i < 2; i++) {
        const struct sdx_tensor *from = step->in[G_Q + 2 * i];
        if (!step->out[i]) continue;
        for (int64_t h = 0; h < from->dims[1]; h++) {
            const int64_t row = part / length * from->dims[1] + h;
            const int64_t at = (row * length + part % length) * size;
            float *y = (float *)step->out[i]->data + at;
            v->f32_mul((const float *)step->in[G_Q_TURNED + 2 * i]->data + at, 1, sine, 1, t, n);
            sdx_narrow_round(narrow, t, n);
            v->f32_mul((const float *)from->data + at, 1, cosine, 1, y, n);
            sdx_narrow_round(narrow, y, n);
            v->f32_add(y, 1, t, 1, y, n);
        }
    }
    return SDX_OK;
}

static enum sdx_status prepare_gemma(struct sdx_prepare *px)
{
    const struct sdx_tensor *angles = px->in[G_ANGLES];
    int *narrow = SDX_PREPARE_NEW(px, int);
    if (!narrow) return SDX_FAIL_MEMORY(px->cx);
    *narrow = px->narrow;
    bool fits = angles->rank == 3 && angles->dtype == SDX_F32;
    for (int i = G_Q; fits && i <= G_K_TURNED; i++) {
        const struct sdx_tensor *t = px->in[i];
        fits = t->rank == 4 && t->dims[0] == angles->dims[0] && t->dims[2] == angles->dims[1] &&
               t->dims[3] == angles->dims[2] && t->count == px->in[i < G_K ? G_Q : G_K]->count &&
               t->dtype == SDX_F32;
    }
    if (!fits) return bad(px->cx, px->node, "angles, queries and keys do not fit each other");
    if (angles->count == 0) return SDX_OK;
    struct sdx_tensor *out[] = {px->out[0], sdx_heads_output(px, 1)};
    return sdx_prepare_step_on(
        px, "gemma_rotary", run_gemma, narrow, angles->dims[0] * angles->dims[1],
        3 * (size_t)angles->dims[2] * sizeof(float), px->count_in, px->in, 2, out);
}

/* ---- RelativePositionBias ---- */

static enum sdx_status infer_relative(struct sdx_infer *ix)
{
    const int64_t *table = sdx_infer_dims(ix, 0), *length = NULL;
    int64_t dims[4] = {1, -1, -1, -1}, count = 0;
    sdx_infer_set_dtype(ix, 0, sdx_infer_dtype(ix, 0));
    if (table && sdx_infer_rank(ix, 0) != 2)
        return bad(ix->cx, ix->node, "bias_table must have rank 2");
    if (table) dims[1] = table[1];
    for (int i = 1; i < 3; i++) {
        if (!sdx_infer_known_ints(ix, i, &length, &count)) continue;
        if (count != 1 || length[0] < 0)
            return bad(ix->cx, ix->node, "lengths must be one number, not negative");
        dims[1 + i] = length[0];
    }
    return sdx_infer_set_dims(ix, 0, 4, dims);
}

struct relative {
    int64_t buckets, most;
    bool is_two_sided;
};

/* The bucket of a key `away` positions behind the query. */
static int64_t bucket_of(const struct relative *p, int64_t away)
{
    int64_t buckets = p->buckets, first = 0;
    if (p->is_two_sided) {
        buckets /= 2;
        first = away > 0 ? buckets : 0;
        away = away < 0 ? -away : away;
    } else {
        away = away < 0 ? -away : 0;
    }
    const int64_t exact = buckets / 2;
    if (away < exact) return first + away;
    const float far = logf((float)away / (float)exact) / logf((float)p->most / (float)exact);
    const int64_t at = exact + (int64_t)(far * (float)(buckets - exact));
    return first + (at < buckets - 1 ? at : buckets - 1);
}

/* One head; the table holds each head's buckets side by side. */
static enum sdx_status run_relative(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)x;
    const struct relative *p = step->params;
    const int64_t queries = step->out[0]->dims[2], keys = step->out[0]->dims[3];
    const float *table = (const float *)step->in[0]->data + part * p->buckets;
    float *to = (float *)step->out[0]->data + part * queries * keys;
    for (int64_t i = 0; i < queries; i++)
        for (int64_t j = 0; j < keys; j++)
            *to++ = table[bucket_of(p, j - i)];
    return SDX_OK;
}

static enum sdx_status prepare_relative(struct sdx_prepare *px)
{
    struct relative *p = SDX_PREPARE_NEW(px, struct relative);
    if (!p) return SDX_FAIL_MEMORY(px->cx);
    p->buckets = px->in[0]->dims[0];
    p->most = sdx_ir_attr_int(px->node, "max_distance", 0);
    p->is_two_sided = sdx_ir_attr_int(px->node, "is_bidirectional", 0) != 0;
    if (p->buckets < (p->is_two_sided ? 4 : 2) || p->most <= p->buckets / 2 ||
        px->in[0]->dtype != SDX_F32)
        return bad(px->cx, px->node, "bias_table or max_distance is too small");
    if (px->out[0]->count == 0) return SDX_OK;
    return sdx_prepare_step(px, "relative_bias", run_relative, p, px->in[0]->dims[1], 0);
}

/* ---- GatedRelativePositionBias ---- */

enum { B_QUERY, B_BIAS, B_POSITIONS, B_WEIGHT, B_GATE_BIAS, B_FACTOR, B_OFFSETS };

static enum sdx_status infer_gated(struct sdx_infer *ix)
{
    const int64_t *q = sdx_infer_dims(ix, B_QUERY), *rel = sdx_infer_dims(ix, B_POSITIONS);
    const int64_t *offsets = sdx_infer_has(ix, B_OFFSETS) ? sdx_infer_dims(ix, B_OFFSETS) : NULL;
    sdx_infer_set_dtype(ix, 0, sdx_infer_dtype(ix, 0));
    if (!q || (sdx_infer_has(ix, B_OFFSETS) && !offsets)) return SDX_OK;
    if ((rel && sdx_infer_rank(ix, B_POSITIONS) != 4) ||
        (offsets ? sdx_infer_rank(ix, B_OFFSETS) != 2 : sdx_infer_rank(ix, B_QUERY) != 3))
        return bad(ix->cx, ix->node, "query_layer, rel_pos or token_offset has another rank");
    const int64_t *rows = offsets ? offsets : q;
    const int64_t dims[] = {rows[0], sdx_ir_attr_int(ix->node, "num_heads", 0), rows[1], rows[1]};
    return sdx_infer_set_dims(ix, 0, 4, dims);
}

/* A number for each row of a head: sigmoid of the sum of half of the gate's columns. */
static float gate_of(const float *q, const float *weight, float bias, int64_t size)
{
    float y = sdx_vec()->f32_dot(q, weight, (size_t)size) + bias;
    sdx_vec()->f32_sigmoid(&y, &y, 1, 0, 0);
    return y;
}

/* One head of one batch entry. */
static enum sdx_status run_gated(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const int64_t heads = step->out[0]->dims[1], length = step->out[0]->dims[2];
    const int64_t head = part % heads, size = step->in[B_WEIGHT]->dims[0];
    const int64_t columns = step->in[B_WEIGHT]->dims[1], half = columns / 2;
    const float *weight = step->in[B_WEIGHT]->data, *gate_bias = step->in[B_GATE_BIAS]->data;
    const float factor = ((const float *)step->in[B_FACTOR]->data)[head];
    float *sums = x->scratch, *q = sums + 2 * size, bias[2] = {0, 0};
    for (int64_t i = 0; i < 2; i++) {
        for (int64_t c = 0; c < size; c++)
            sums[i * size + c] =
                sdx_vec()->f32_reduce_sum(weight + c * columns + i * half, (size_t)half);
        bias[i] = sdx_vec()->f32_reduce_sum(gate_bias + i * half, (size_t)half);
    }
    for (int64_t r = 0; r < length; r++) {
        const int64_t row = part / heads * length + r;
        sdx_vec()->f32_add((const float *)step->in[B_QUERY]->data + (row * heads + head) * size, 1,
                           (const float *)step->in[B_BIAS]->data + head * size, 1, q, (size_t)size);
        const float u = gate_of(q, sums, bias[0], size), g = gate_of(q, sums + size, bias[1], size);
        const float gate = u * (g * factor - 1.0f) + 2.0f;
        sdx_vec()->f32_mul(
            (const float *)step->in[B_POSITIONS]->data + (head * length + r) * length, 1, &gate, 0,
            (float *)step->out[0]->data + (part * length + r) * length, (size_t)length);
    }
    return SDX_OK;
}

static enum sdx_status prepare_gated(struct sdx_prepare *px)
{
    const struct sdx_tensor *y = px->out[0], *weight = px->in[B_WEIGHT];
    struct sdx_tensor *in[B_OFFSETS], *offsets = sdx_heads_input(px, B_OFFSETS);
    memcpy(in, px->in, sizeof in);
    const int64_t batch = y->dims[0], heads = y->dims[1], length = y->dims[2];
    const int64_t size = weight->rank == 2 ? weight->dims[0] : 0, width = heads * size;
    bool fits = heads > 0 && size > 0 && weight->dims[1] % 2 == 0 && in[B_BIAS]->count == width &&
                in[B_GATE_BIAS]->count == weight->dims[1] && in[B_FACTOR]->count == heads &&
                in[B_POSITIONS]->count == heads * length * length;
    for (int i = 0; i < B_OFFSETS; i++)
        fits = fits && in[i]->dtype == SDX_F32;
    const int64_t dims[] = {batch, length, width};
    if (fits && offsets) {
        fits = in[B_QUERY]->rank == 2 && in[B_QUERY]->dims[1] == width;
        in[B_QUERY] = sdx_prepare_temp(px, SDX_F32, 3, dims);
        if (!in[B_QUERY]) return px->cx->error.status;
        if (fits) SDX_TRY(sdx_heads_spread(px, px->in[B_QUERY], offsets, in[B_QUERY]));
    }
    if (!fits || in[B_QUERY]->count != batch * length * width)
        return bad(px->cx, px->node, "shapes of the inputs do not agree");
    if (y->count == 0) return SDX_OK;
    return sdx_prepare_step_on(px, "gated_bias", run_gated, NULL, batch * heads,
                               3 * (size_t)size * sizeof(float), B_OFFSETS, in, 1, px->out);
}

/* ---- RemovePadding, RestorePadding ---- */

static enum sdx_status infer_remove(struct sdx_infer *ix)
{
    const int64_t *x = sdx_infer_dims(ix, 0), *counts = NULL;
    int64_t count = 0, one = 1, sums = -1, total = -1;
    sdx_infer_set_dtype(ix, 0, sdx_infer_dtype(ix, 0));
    for (int k = 1; k < ix->count_out; k++)
        sdx_infer_set_dtype(ix, k, SDX_I32);
    if (!x) return SDX_OK;
    if (sdx_infer_rank(ix, 0) != 3) return bad(ix->cx, ix->node, "input must have rank 3");
    if (sdx_infer_known_ints(ix, 1, &counts, &count)) {
        total = 0;
        for (int64_t i = 0; i < count; i++) {
            if (counts[i] < 0 || (x[1] >= 0 && counts[i] > x[1]))
                return bad(ix->cx, ix->node, "a count of tokens does not fit the sequence");
            total += counts[i];
        }
    }
    if (x[0] >= 0) sums = x[0] + 1;
    const int64_t y[] = {total, x[2]};
    SDX_TRY(sdx_infer_set_dims(ix, 0, 2, y));
    if (ix->count_out > 1) SDX_TRY(sdx_infer_set_dims(ix, 1, 2, x));
    if (ix->count_out > 2) SDX_TRY(sdx_infer_set_dims(ix, 2, 1, &sums));
    return ix->count_out > 3 ? sdx_infer_set_dims(ix, 3, 1, &one) : SDX_OK;
}

/* Places of the tokens, then those of the padding; sums of lengths; the greatest length. */
static enum sdx_status run_offsets(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)x;
    (void)part;
    const int32_t *counts = step->in[0]->data;
    int32_t *offsets = step->out[0]->data, *sums = step->out[1]->data, most = 0;
    const int64_t batch = step->out[0]->dims[0], length = step->out[0]->dims[1];
    for (int pass = 0; pass < 2; pass++)
        for (int64_t b = 0; b < batch; b++)
            for (int64_t i = pass ? counts[b] : 0; i < (pass ? length : counts[b]); i++)
                *offsets++ = (int32_t)(b * length + i);
    sums[0] = 0;
    for (int64_t b = 0; b < batch; b++) {
        sums[b + 1] = sums[b] + counts[b];
        most = counts[b] > most ? counts[b] : most;
    }
    *(int32_t *)step->out[2]->data = most;
    return SDX_OK;
}

static enum sdx_status prepare_remove(struct sdx_prepare *px)
{
    const struct sdx_tensor *x = px->in[0];
    const int64_t sums = x->dims[0] + 1, one = 1;
    struct sdx_tensor *out[3];
    if (px->in[1]->count != x->dims[0] || px->in[1]->dtype != SDX_I32)
        return bad(px->cx, px->node, "sequence_token_count does not fit the batch");
    for (int k = 0; k < 3; k++) {
        out[k] = sdx_heads_output(px, k + 1);
        if (!out[k])
            out[k] = sdx_prepare_temp(px, SDX_I32, k == 0 ? 2 : 1,
                                      k == 0   ? x->dims
                                      : k == 1 ? &sums
                                               : &one);
        if (!out[k]) return px->cx->error.status;
    }
    SDX_TRY(
        sdx_prepare_step_on(px, "token_offsets", run_offsets, NULL, 1, 0, 1, &px->in[1], 3, out));
    return sdx_heads_collect(px, px->in[0], out[0], px->out[0]);
}

static enum sdx_status infer_restore(struct sdx_infer *ix)
{
    const int64_t *x = sdx_infer_dims(ix, 0), *offsets = sdx_infer_dims(ix, 1);
    sdx_infer_set_dtype(ix, 0, sdx_infer_dtype(ix, 0));
    if (!x || !offsets) return SDX_OK;
    if (sdx_infer_rank(ix, 0) != 2 || sdx_infer_rank(ix, 1) != 2)
        return bad(ix->cx, ix->node, "input and token_offset must have rank 2");
    const int64_t dims[] = {offsets[0], offsets[1], x[1]};
    return sdx_infer_set_dims(ix, 0, 3, dims);
}

static enum sdx_status prepare_restore(struct sdx_prepare *px)
{
    return sdx_heads_spread(px, px->in[0], px->in[1], px->out[0]);
}

static const struct sdx_op ops[] = {
    {"RotaryEmbedding", 1, 0, sdx_infer_same, KERNEL(prepare_rotary), .flags = SDX_OP_VIA_F32},
    {"GemmaRotaryEmbedding", 1, 0, infer_gemma, KERNEL(prepare_gemma), .flags = SDX_OP_VIA_F32},
    {"RelativePositionBias", 1, 0, infer_relative, KERNEL(prepare_relative),
     .flags = SDX_OP_VIA_F32},
    {"GatedRelativePositionBias", 1, 0, infer_gated, KERNEL(prepare_gated),
     .flags = SDX_OP_VIA_F32},
    {"RemovePadding", 1, 0, infer_remove, KERNEL(prepare_remove)},
    {"RestorePadding", 1, 0, infer_restore, KERNEL(prepare_restore)},
};

const struct sdx_op_family sdx_ops_contrib_rotary = FAMILY("com.microsoft", ops);
