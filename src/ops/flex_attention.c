/* SPDX-License-Identifier: Apache-2.0
 * FlexAttention of ai.onnx.preview: attention whose scores and probabilities pass through graphs of
 * the model. The scores are a tensor here, because those graphs see all of them at once.
 * Q: [B, Hq, L, E], K: [B, H, S, E], V: [B, H, S, Ev]. */
#include <math.h>

#include "kernels/vec.h"
#include "ops/narrow.h"
#include "ops/product.h"
#include "tensor/convert.h"

enum { RANK = 4 };

struct sizes {
    int64_t batch, q_heads, heads, queries, keys, head_size, value_size;
};

/* The element type that score_mod and prob_mod see. */
static enum sdx_status inner_type(struct sdx_context *cx, const struct sdx_ir_node *node, int dtype,
                                  int *inner)
{
    *inner = (int)sdx_ir_attr_int(node, "softmax_precision", dtype == SDX_F64 ? SDX_F64 : SDX_F32);
    if (*inner == SDX_F32 || *inner == SDX_F64 || *inner == SDX_F16 || *inner == SDX_BF16)
        return SDX_OK;
    return SDX_FAIL(cx, SDX_BAD_MODEL, "FlexAttention: softmax_precision is %d, not a float type",
                    *inner);
}

/* Lengths < 0: not known. */
static enum sdx_status read_sizes(struct sdx_context *cx, const int64_t *q, const int64_t *k,
                                  const int64_t *v, struct sizes *s)
{
    *s = (struct sizes){q[0], q[1], k[1], q[2], k[2], q[3], v[3]};
    static const struct {
        int a, axis_a, b, axis_b;
        const char *what;
    } pairs[] = {{0, 0, 1, 0, "batch sizes of Q and K"},
                 {0, 0, 2, 0, "batch sizes of Q and V"},
                 {0, 3, 1, 3, "head sizes of Q and K"},
                 {1, 1, 2, 1, "heads of K and V"},
                 {1, 2, 2, 2, "sequence lengths of K and V"}};
    const int64_t *const dims[] = {q, k, v};
    for (int i = 0; i < SDX_COUNT_OF(pairs); i++) {
        int64_t a = dims[pairs[i].a][pairs[i].axis_a], b = dims[pairs[i].b][pairs[i].axis_b];
        if (a >= 0 && b >= 0 && a != b)
            return SDX_FAIL(cx, SDX_BAD_MODEL, "FlexAttention: %s are %lld and %lld", pairs[i].what,
                            (long long)a, (long long)b);
    }
    if (s->q_heads < 0 || s->heads < 0 || s->q_heads == s->heads ||
        (s->heads > 0 && s->q_heads % s->heads == 0))
        return SDX_OK;
    return SDX_FAIL(cx, SDX_BAD_MODEL,
                    "FlexAttention: %lld query heads do not divide over %lld key heads",
                    (long long)s->q_heads, (long long)s->heads);
}

static enum sdx_status infer_mod(struct sdx_infer *ix, const char *name, int dtype,
                                 const int64_t *dims)
{
    const struct sdx_ir_attr *a = sdx_ir_attr(ix->node, name);
    const struct sdx_type *out = NULL;
    if (!a || !ix->body) return SDX_OK;
    if (a->type != SDX_ATTR_GRAPH || ix->ir->graphs[a->graph].count_inputs != 1 ||
        ix->ir->graphs[a->graph].count_outputs != 1)
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL,
                        "FlexAttention: %s must be a graph of one input and one output", name);
    struct sdx_type in = {
        .kind = SDX_KIND_TENSOR, .dtype = (uint8_t)dtype, .has_shape = dims != NULL};
    if (dims) {
        int64_t *copy = sdx_arena_copy(ix->arena, dims, RANK * sizeof *dims);
        if (!copy) return SDX_FAIL_MEMORY(ix->cx);
        in.rank = RANK;
        in.dims = copy;
    }
    SDX_TRY(ix->body(ix, a->graph, 1, &in, &out));
    if (out[0].kind == SDX_KIND_TENSOR && out[0].dtype && out[0].dtype != dtype)
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "FlexAttention: %s gives %s, expected %s", name,
                        sdx_dtype_name(out[0].dtype), sdx_dtype_name(dtype));
    return SDX_OK;
}

static enum sdx_status infer_flex(struct sdx_infer *ix)
{
    const int64_t *q = sdx_infer_dims(ix, 0), *k = sdx_infer_dims(ix, 1);
    const int64_t *v = sdx_infer_dims(ix, 2);
    struct sizes s;
    int dtype = sdx_infer_dtype(ix, 0), inner = SDX_DTYPE_NONE;
    sdx_infer_set_dtype(ix, 0, dtype);
    for (int i = 0; i < 3; i++)
        if (sdx_infer_rank(ix, i) >= 0 && sdx_infer_rank(ix, i) != RANK)
            return SDX_FAIL(ix->cx, SDX_BAD_MODEL,
                            "FlexAttention: input %d has rank %d, expected 4", i,
                            sdx_infer_rank(ix, i));
    int64_t scores[RANK];
    bool known = q && k && v;
    if (known) {
        SDX_TRY(read_sizes(ix->cx, q, k, v, &s));
        const int64_t y[] = {s.batch, s.q_heads, s.queries, s.value_size};
        SDX_TRY(sdx_infer_set_dims(ix, 0, RANK, y));
        memcpy(scores, y, sizeof y);
        scores[RANK - 1] = s.keys;
    }
    if (dtype == SDX_DTYPE_NONE) return SDX_OK;
    SDX_TRY(inner_type(ix->cx, ix->node, dtype, &inner));
    SDX_TRY(infer_mod(ix, "score_mod", inner, known ? scores : NULL));
    return infer_mod(ix, "prob_mod", inner, known ? scores : NULL);
}

static void cost_flex(const struct sdx_infer *ix, struct sdx_cost *cost)
{
    const int64_t *q = sdx_infer_dims(ix, 0), *v = sdx_infer_dims(ix, 2);
    cost->macs =
        (double)q[0] * (double)q[1] * (double)q[2] * (double)v[2] * ((double)q[3] + (double)v[3]);
    cost->flops = 2 * cost->macs;
}

/* ---- steps ---- */

static enum sdx_status run_convert(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)x;
    const struct sdx_tensor *in = step->in[0];
    int64_t begin = sdx_part_begin(in->count, step->parts, part, 64);
    int64_t end = sdx_part_begin(in->count, step->parts, part + 1, 64);
    sdx_convert(step->out[0]->dtype, step->out[0]->data, begin, in->dtype, in->data, begin,
                end - begin, true);
    return SDX_OK;
}

static enum sdx_status run_mod(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)part;
    struct sdx_body *body = step->params;
    const struct sdx_tensor *in[] = {step->in[0]};
    struct sdx_tensor *const *out = NULL;
    SDX_TRY(sdx_exec_body(x, body, 1, in, &out));
    const struct sdx_tensor *to = step->out[0];
    if (out[0]->kind != SDX_KIND_TENSOR || out[0]->dtype != to->dtype ||
        !sdx_dims_equal(out[0]->dims, out[0]->rank, to->dims, to->rank))
        return SDX_FAIL(x->cx, SDX_RUN_FAILED,
                        "FlexAttention: score_mod or prob_mod changed the shape or type");
    if (to->bytes) memcpy(to->data, out[0]->data, to->bytes);
    return SDX_OK;
}

/* Rows of the last axis, in place. */
static enum sdx_status run_softmax(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    struct sdx_tensor *t = step->out[0];
    int64_t n = t->dims[RANK - 1], rows = t->count / n;
    int64_t end = sdx_part_begin(rows, step->parts, part + 1, 1);
    for (int64_t r = sdx_part_begin(rows, step->parts, part, 1); r < end; r++) {
        if (sdx_exec_cancelled(x)) return SDX_OK;
        if (t->dtype == SDX_F64)
            sdx_softmax_f64((double *)t->data + r * n, n);
        else
            sdx_vec()->f32_softmax((float *)t->data + r * n, (float *)t->data + r * n, (size_t)n);
    }
    return SDX_OK;
}

/* `t` as `dtype`: itself, or a temporary. NULL: error is set. */
static struct sdx_tensor *converted(struct sdx_prepare *px, struct sdx_tensor *t, int dtype)
{
    if (t->dtype == dtype) return t;
    struct sdx_tensor *to = sdx_prepare_temp(px, dtype, t->rank, t->dims);
    if (!to) return NULL;
    int64_t parts = sdx_prepare_parts((double)t->count, 1 << 15, 64);
    return sdx_prepare_step_on(px, "convert", run_convert, NULL, parts, 0, 1, &t, 1, &to) == SDX_OK
               ? to
               : NULL;
}

/* *t passes through the type `inner` and the graph in attribute `name`; it keeps its own type. */
static enum sdx_status modify(struct sdx_prepare *px, const char *name, int inner,
                              struct sdx_tensor **t)
{
    int dtype = (*t)->dtype;
    struct sdx_tensor *now = converted(px, *t, inner);
    if (!now) return px->cx->error.status;
    if (sdx_ir_attr(px->node, name)) {
        struct sdx_body *body = sdx_prepare_body(px, name);
        struct sdx_tensor *to = body ? sdx_prepare_temp(px, inner, RANK, now->dims) : NULL;
        if (!to) return px->cx->error.status;
        SDX_TRY(sdx_prepare_step_on(px, name, run_mod, body, 1, 0, 1, &now, 1, &to));
        now = to;
    }
    *t = converted(px, now, dtype);
    return *t ? SDX_OK : px->cx->error.status;
}

/* c = alpha * a * b of all heads; a head of b serves a group of heads of a. */
static enum sdx_status multiply(struct sdx_prepare *px, const struct sizes *s, struct sdx_tensor *a,
                                struct sdx_tensor *b, bool is_transposed, double alpha,
                                struct sdx_tensor *c)
{
    int64_t count = s->batch * s->q_heads, group = s->heads ? s->q_heads / s->heads : 1;
    int64_t *at = sdx_prepare_alloc(px, ((size_t)count * 2 + 1) * sizeof *at);
    if (!at) return SDX_FAIL_MEMORY(px->cx);
    struct sdx_product q = {.a = a, .b = b, .c = c, .input_b = -1, .batch = count};
    q.m = s->queries;
    q.k = a->dims[RANK - 1];
    q.n = c->dims[RANK - 1];
    for (int64_t i = 0; i < count; i++) {
        at[i] = i * q.m * q.k;
        at[count + i] = i / group * q.k * q.n; /* heads of all entries count on */
    }
    q.at_a = at;
    q.at_b = at + count;
    q.row_a = q.k;
    q.col_a = 1;
    q.row_b = is_transposed ? 1 : q.n;
    q.col_b = is_transposed ? q.k : 1;
    q.alpha = alpha;
    return sdx_product_prepare(px, &q);
}

/* Of narrow types the scaled operands and the scores are rounded. */
static enum sdx_status make_scores(struct sdx_prepare *px, const struct sizes *s,
                                   struct sdx_tensor *q, struct sdx_tensor *k, double scale,
                                   struct sdx_tensor *scores)
{
    if (!px->narrow || scale < 0) return multiply(px, s, q, k, true, scale, scores);
    float factor = sqrtf((float)scale);
    sdx_narrow_round(px->narrow, &factor, 1);
    q = sdx_narrow_scaled(px, factor, q, NULL);
    k = sdx_narrow_scaled(px, factor, k, NULL);
    if (!q || !k) return px->cx->error.status;
    SDX_TRY(multiply(px, s, q, k, true, 1, scores));
    return sdx_narrow_scaled(px, 1, scores, scores) ? SDX_OK : px->cx->error.status;
}

static enum sdx_status prepare_flex(struct sdx_prepare *px)
{
    struct sdx_tensor *q = px->in[0], *k = px->in[1], *v = px->in[2], *y = px->out[0];
    struct sizes s;
    int inner = SDX_DTYPE_NONE, dtype = q->dtype;
    if ((dtype != SDX_F32 && dtype != SDX_F64) || k->dtype != dtype || v->dtype != dtype)
        return SDX_FAIL(px->cx, SDX_NOT_SUPPORTED, "FlexAttention: element types %s, %s and %s",
                        sdx_dtype_short_name(dtype), sdx_dtype_short_name(k->dtype),
                        sdx_dtype_short_name(v->dtype));
    SDX_TRY(read_sizes(px->cx, q->dims, k->dims, v->dims, &s));
    SDX_TRY(inner_type(px->cx, px->node, dtype, &inner));
    if (y->count == 0) return SDX_OK;
    if (s.keys == 0 || s.head_size == 0)
        return SDX_FAIL(px->cx, SDX_NOT_SUPPORTED, "FlexAttention: no keys, or keys of no length");
    const struct sdx_ir_attr *given = sdx_ir_attr(px->node, "scale");
    double scale = given ? (double)given->f : 1 / sqrt((double)s.head_size);
    const int64_t dims[] = {s.batch, s.q_heads, s.queries, s.keys};
    struct sdx_tensor *scores = sdx_prepare_temp(px, dtype, RANK, dims);
    if (!scores) return SDX_FAIL_MEMORY(px->cx);
    SDX_TRY(make_scores(px, &s, q, k, scale, scores));
    int work = inner == SDX_F64 ? SDX_F64 : SDX_F32; /* narrow types are computed in f32 */
    scores = converted(px, scores, work);
    v = converted(px, v, work);
    if (!scores || !v) return px->cx->error.status;
    SDX_TRY(modify(px, "score_mod", inner, &scores));
    SDX_TRY(sdx_prepare_step_on(
        px, "softmax", run_softmax, NULL,
        sdx_prepare_parts((double)scores->count * 8, 1 << 15, scores->count / s.keys), 0, 1,
        &scores, 1, &scores));
    SDX_TRY(modify(px, "prob_mod", inner, &scores));
    struct sdx_tensor *sum = work == dtype ? y : sdx_prepare_temp(px, work, RANK, y->dims);
    if (!sum) return SDX_FAIL_MEMORY(px->cx);
    SDX_TRY(multiply(px, &s, scores, v, false, 1, sum));
    if (sum == y) return SDX_OK;
    return sdx_prepare_step_on(px, "convert", run_convert, NULL,
                               sdx_prepare_parts((double)y->count, 1 << 15, 64), 0, 1, &sum, 1, &y);
}

static const struct sdx_op ops[] = {
    {"FlexAttention", 1, 0, infer_flex, KERNEL(prepare_flex), .cost = cost_flex,
     .flags = SDX_OP_VIA_F32},
};

const struct sdx_op_family sdx_ops_flex_attention = FAMILY("ai.onnx.preview", ops);
