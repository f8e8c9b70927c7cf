/* SPDX-License-Identifier: Apache-2.0
 * Attention and RotaryEmbedding. A part has a block of query rows of one head: the block's scores
 * are made, masked and normalised in scratch and never go to memory. With a cache, or when the
 * present keys and values are wanted, those are put together first. */
#include <math.h>

#include "kernels/gemm.h"
#include "kernels/vec.h"
#include "ops/attention_core.h"
#include "ops/narrow.h"
#include "ops/op.h"
#include "ops/rotate.h"
#include "tensor/convert.h"

enum {
    ROWS_MAX = 64,
    SCORES_MAX = 1 << 17, /* values of a block */
    BLOCK_BYTES = 256 * 1024,
    PLAIN_ROWS = 4
};
enum { IN_Q, IN_K, IN_V, IN_MASK, IN_LENGTHS, IN_COUNT };

/* ---- inference ---- */

struct sizes {
    bool is_3d;
    int64_t batch, q_heads, kv_heads, queries, fresh, past, keys, head_size, value_size;
};

static int64_t divide(int64_t a, int64_t b)
{
    return a >= 0 && b > 0 ? a / b : -1;
}

static enum sdx_status bad_heads(struct sdx_context *cx, int64_t length, int64_t heads)
{
    return SDX_FAIL(cx, SDX_BAD_MODEL,
                    "Attention: hidden size %lld does not divide into %lld heads",
                    (long long)length, (long long)heads);
}

/* Lengths < 0: not known. past_rank < 0: no cache. */
static enum sdx_status read_sizes(struct sdx_context *cx, const struct sdx_ir_node *node, int rank,
                                  const int64_t *q, const int64_t *k, const int64_t *v,
                                  const int64_t *past, struct sizes *s)
{
    s->is_3d = rank == 3;
    s->batch = q[0];
    if (s->is_3d) {
        s->q_heads = sdx_ir_attr_int(node, "q_num_heads", 0);
        s->kv_heads = sdx_ir_attr_int(node, "kv_num_heads", 0);
        if (s->q_heads < 1 || s->kv_heads < 1)
            return SDX_FAIL(cx, SDX_BAD_MODEL,
                            "Attention: q_num_heads and kv_num_heads must be given for rank 3");
        if (q[2] >= 0 && q[2] % s->q_heads) return bad_heads(cx, q[2], s->q_heads);
        if (k[2] >= 0 && k[2] % s->kv_heads) return bad_heads(cx, k[2], s->kv_heads);
        if (v[2] >= 0 && v[2] % s->kv_heads) return bad_heads(cx, v[2], s->kv_heads);
        s->queries = q[1];
        s->fresh = k[1];
        s->head_size = divide(q[2], s->q_heads);
        s->value_size = divide(v[2], s->kv_heads);
    } else {
        s->q_heads = q[1];
        s->kv_heads = k[1];
        s->queries = q[2];
        s->fresh = k[2];
        s->head_size = q[3];
        s->value_size = v[3];
    }
    s->past = past ? past[2] : 0;
    s->keys = s->past >= 0 && s->fresh >= 0 ? s->past + s->fresh : -1;
    if (s->q_heads > 0 && s->kv_heads > 0 && s->q_heads % s->kv_heads)
        return SDX_FAIL(cx, SDX_BAD_MODEL,
                        "Attention: %lld query heads do not divide over %lld key heads",
                        (long long)s->q_heads, (long long)s->kv_heads);
    return SDX_OK;
}

static enum sdx_status infer_attention(struct sdx_infer *ix)
{
    int rank = sdx_infer_rank(ix, 0);
    const int64_t *q = sdx_infer_dims(ix, 0), *k = sdx_infer_dims(ix, 1);
    const int64_t *v = sdx_infer_dims(ix, 2), *past = sdx_infer_dims(ix, 4);
    struct sizes s;
    static const int from[] = {0, 1, 2, 0}; /* the input whose type output k has */
    for (int i = 0; i < ix->count_out && i < 4; i++)
        sdx_infer_set_dtype(ix, i, sdx_infer_dtype(ix, from[i]));
    if (sdx_infer_has(ix, 4) != sdx_infer_has(ix, 5))
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL,
                        "Attention: past_key and past_value must be given together");
    if (sdx_infer_has(ix, 4) && sdx_infer_has(ix, 6))
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL,
                        "Attention: nonpad_kv_seqlen together with past_key");
    if (rank >= 0 && rank != 3 && rank != 4)
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "Attention: Q has rank %d, expected 3 or 4", rank);
    if (rank < 0 || !k || !v) return SDX_OK;
    if (sdx_infer_rank(ix, 1) != rank || sdx_infer_rank(ix, 2) != rank)
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "Attention: Q, K and V differ in rank");
    if (past && sdx_infer_rank(ix, 4) != 4)
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "Attention: past_key has rank %d, expected 4",
                        sdx_infer_rank(ix, 4));
    SDX_TRY(read_sizes(ix->cx, ix->node, rank, q, k, v, past, &s));
    if (sdx_infer_has(ix, 4) && !past) s.keys = -1;
    int64_t hidden = s.q_heads >= 0 && s.value_size >= 0 ? s.q_heads * s.value_size : -1;
    const int64_t y3[] = {s.batch, s.queries, hidden};
    const int64_t y4[] = {s.batch, s.q_heads, s.queries, s.value_size};
    const int64_t key[] = {s.batch, s.kv_heads, s.keys, s.head_size};
    const int64_t value[] = {s.batch, s.kv_heads, s.keys, s.value_size};
    const int64_t qk[] = {s.batch, s.q_heads, s.queries, s.keys};
    SDX_TRY(sdx_infer_set_dims(ix, 0, rank, s.is_3d ? y3 : y4));
    if (ix->count_out > 1) SDX_TRY(sdx_infer_set_dims(ix, 1, 4, key));
    if (ix->count_out > 2) SDX_TRY(sdx_infer_set_dims(ix, 2, 4, value));
    if (ix->count_out > 3) SDX_TRY(sdx_infer_set_dims(ix, 3, 4, qk));
    return SDX_OK;
}

static void cost_attention(const struct sdx_infer *ix, struct sdx_cost *cost)
{
    struct sdx_context cx = {.log = NULL};
    struct sizes s;
    if (read_sizes(&cx, ix->node, sdx_infer_rank(ix, 0), sdx_infer_dims(ix, 0),
                   sdx_infer_dims(ix, 1), sdx_infer_dims(ix, 2), sdx_infer_dims(ix, 4), &s))
        return;
    cost->macs = (double)s.batch * (double)s.q_heads * (double)s.queries * (double)s.keys *
                 ((double)s.head_size + (double)s.value_size);
    cost->flops = 2 * cost->macs;
}

/* ---- keys and values of a cache ---- */

struct join {
    int64_t heads, past, fresh, size;
    int64_t past_pitch, pitch; /* rows from one head to the next, of the cache and of the result */
    int64_t fresh_batch, fresh_head, fresh_row; /* steps of the new ones */
    size_t element;
};

/* One head of one batch entry: the cached rows, unless they are there already, then the new ones.
 */
static enum sdx_status run_join(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)x;
    const struct join *p = step->params;
    size_t row = (size_t)p->size * p->element;
    char *to = (char *)step->out[0]->data + (size_t)(part * p->pitch) * row;
    int64_t at = part / p->heads * p->fresh_batch + part % p->heads * p->fresh_head;
    const char *fresh = (const char *)step->in[0]->data + (size_t)at * p->element;
    if (p->past) {
        const size_t cached = (size_t)p->past * row;
        const char *from = (const char *)step->in[1]->data + (size_t)(part * p->past_pitch) * row;
        if (from != to) memcpy(to, from, cached);
        to += cached;
    }
    for (int64_t i = 0; i < p->fresh; i++)
        memcpy(to + (size_t)i * row, fresh + (size_t)(i * p->fresh_row) * p->element, row);
    return SDX_OK;
}

/* Steps of a key or value tensor. */
struct layout {
    int64_t batch, head, row;
};

static struct layout layout_of(bool is_3d, int64_t heads, int64_t length, int64_t size)
{
    if (is_3d) return (struct layout){length * heads * size, size, heads * size};
    return (struct layout){heads * length * size, length * size, size};
}

/* What the scores read: K (or V) as it is, or joined with the cache. */
static enum sdx_status join_cache(struct sdx_prepare *px, const struct sizes *s, int input,
                                  struct sdx_tensor *past, struct sdx_tensor *out, int64_t size,
                                  struct sdx_tensor **tensor, struct layout *layout)
{
    *tensor = px->in[input];
    *layout = layout_of(s->is_3d, s->kv_heads, s->fresh, size);
    if (!past && !out) return SDX_OK;
    const int64_t dims[] = {s->batch, s->kv_heads, s->keys, size};
    struct join *p = SDX_PREPARE_NEW(px, struct join);
    if (!out) out = sdx_prepare_temp(px, px->in[input]->dtype, 4, dims);
    if (!p || !out) return SDX_FAIL_MEMORY(px->cx);
    *p = (struct join){.heads = s->kv_heads,
                       .past = past ? s->past : 0,
                       .fresh = s->fresh,
                       .size = size,
                       .past_pitch = past && past->rank == 4 ? sdx_tensor_pitch(past, 2) : 0,
                       .pitch = sdx_tensor_pitch(out, 2),
                       .fresh_batch = layout->batch,
                       .fresh_head = layout->head,
                       .fresh_row = layout->row};
    if (past && (past->rank != 4 || past->count != s->batch * s->kv_heads * s->past * size ||
                 past->dims[2] != s->past))
        return SDX_FAIL(px->cx, SDX_BAD_MODEL, "Attention: the cache does not fit the new keys");
    if (!sdx_dtype_bytes(px->in[input]->dtype, 1, &p->element)) p->element = 0;
    struct sdx_tensor *in[] = {px->in[input], past};
    *tensor = out;
    *layout = layout_of(false, s->kv_heads, p->pitch, size);
    if (out->count == 0) return SDX_OK;
    return sdx_prepare_step_on(px, "attention_cache", run_join, p, s->batch * s->kv_heads, 0, 2, in,
                               1, &out);
}

/* ---- scores ---- */

struct params {
    struct sizes s;
    struct layout q, k, v;
    int64_t keys, value_size, y_batch, y_head, y_row;
    int64_t block_rows, blocks,
        block_keys;                  /* rows of a part, parts of a head, keys packed at once */
    int64_t mask_keys, mask_step[3]; /* of batch, head, query */
    int64_t left, right;
    bool is_causal, has_past;
    double scale, softcap;
    int qk_mode;
    int narrow; /* f16 or bf16: each result is rounded to that; 0: none is */
    bool softmax_is_f32;
    size_t scores_size, packed_size;
};

/* A part's rows and where its operands begin. */
struct block {
    int64_t row, rows, q, k, v, y, qk, mask;
    int64_t offset; /* of the first query's place among the keys */
    int64_t valid;  /* keys that are not padding */
    int64_t keys;   /* no row of the block sees a key from here on */
};

static enum sdx_status block_of(struct sdx_exec *x, const struct params *p,
                                const struct sdx_step *step, int64_t part, struct block *b)
{
    const struct sizes *s = &p->s;
    int64_t block = part % p->blocks, head = part / p->blocks % s->q_heads;
    int64_t n = part / p->blocks / s->q_heads, kv = head / (s->q_heads / s->kv_heads);
    b->row = block * p->block_rows;
    b->rows = s->queries - b->row < p->block_rows ? s->queries - b->row : p->block_rows;
    b->q = n * p->q.batch + head * p->q.head + b->row * p->q.row;
    b->k = n * p->k.batch + kv * p->k.head;
    b->v = n * p->v.batch + kv * p->v.head;
    b->y = n * p->y_batch + head * p->y_head + b->row * p->y_row;
    b->qk = ((n * s->q_heads + head) * s->queries + b->row) * p->keys;
    b->mask = n * p->mask_step[0] + head * p->mask_step[1];
    b->valid = p->keys;
    b->offset = p->has_past ? s->past : 0;
    if (step->in[IN_LENGTHS]) {
        b->valid = sdx_load_i64(step->in[IN_LENGTHS]->dtype, step->in[IN_LENGTHS]->data, n);
        if (b->valid < 0 || b->valid > p->keys)
            return SDX_FAIL(x->cx, SDX_RUN_FAILED,
                            "Attention: nonpad_kv_seqlen[%lld] is %lld, expected 0 to %lld",
                            (long long)n, (long long)b->valid, (long long)p->keys);
        b->offset = b->valid - s->queries;
    }
    int64_t last = b->offset + b->row + b->rows - 1, end = b->valid;
    if (p->is_causal && last + 1 < end) end = last + 1;
    if (p->right >= 0 && last + p->right + 1 < end) end = last + p->right + 1;
    b->keys = end < 0 ? 0 : end;
    return SDX_OK;
}

/* scores [rows, keys] = scale * Q * K^T */
static void scores_f32(const struct params *p, int64_t rows, int64_t keys, const float *q,
                       const float *k, float *scores, char *scratch)
{
    struct sdx_gemm_f32 g = {.m = rows, .n = keys, .k = p->s.head_size, .a = q, .row_a = p->q.row};
    g.col_a = 1;
    g.c = scores;
    g.row_c = keys;
    g.alpha = (float)p->scale;
    if (rows <= PLAIN_ROWS) {
        sdx_gemm_f32_plain(&g, k, 1, p->k.row, 0, rows, 0, keys, scratch);
        return;
    }
    for (int64_t j = 0; j < keys; j += p->block_keys) {
        g.n = keys - j < p->block_keys ? keys - j : p->block_keys;
        g.c = scores + j;
        g.packed = (const float *)scratch;
        sdx_gemm_f32_pack(k + j * p->k.row, 1, p->k.row, g.k, g.n, (float *)scratch);
        sdx_gemm_f32_run(&g, 0, rows, 0, g.n, scratch + p->packed_size);
    }
}

/* y [rows, value_size] = scores * V */
static void weigh_f32(const struct params *p, int64_t rows, int64_t keys, const float *scores,
                      const float *v, float *y, char *scratch)
{
    struct sdx_gemm_f32 g = {.m = rows, .n = p->value_size, .a = scores, .row_a = keys, .col_a = 1};
    g.row_c = p->y_row;
    g.c = y;
    g.alpha = 1;
    if (rows <= PLAIN_ROWS) {
        g.k = keys;
        sdx_gemm_f32_plain(&g, v, p->v.row, 1, 0, rows, 0, g.n, scratch);
        return;
    }
    for (int64_t j = 0; j < keys; j += p->block_keys) {
        g.k = keys - j < p->block_keys ? keys - j : p->block_keys;
        g.a = scores + j;
        g.accumulate = j > 0;
        g.packed = (const float *)scratch;
        sdx_gemm_f32_pack(v + j * p->v.row, p->v.row, 1, g.k, g.n, (float *)scratch);
        sdx_gemm_f32_run(&g, 0, rows, 0, g.n, scratch + p->packed_size);
    }
}

static void softmax_f32(const struct params *p, float *x, int64_t n)
{
    if (!p->narrow || p->softmax_is_f32)
        sdx_vec()->f32_softmax(x, x, (size_t)n);
    else
        sdx_narrow_softmax(p->narrow, x, x, (size_t)n);
}

#define T              float
#define MASK_DTYPE     SDX_F32
#define SUFFIX(name)   name##_f32
#define SCORES         scores_f32
#define WEIGH          weigh_f32
#define SOFTMAX        softmax_f32
#define TANH(x, n)     sdx_vec()->f32_tanh((x), (x), (size_t)(n), 0, 0)
#define ROUND(p, x, n) sdx_narrow_round((p)->narrow, (x), (size_t)(n))
#include "ops/attention_tmpl.h"
#undef T
#undef MASK_DTYPE
#undef SUFFIX
#undef SCORES
#undef WEIGH
#undef SOFTMAX
#undef TANH
#undef ROUND

static void scores_f64(const struct params *p, int64_t rows, int64_t keys, const double *q,
                       const double *k, double *scores, char *scratch)
{
    (void)scratch;
    sdx_gemm_f64(rows, keys, p->s.head_size, p->scale, q, p->q.row, 1, k, 1, p->k.row, 0, scores,
                 keys);
}

static void weigh_f64(const struct params *p, int64_t rows, int64_t keys, const double *scores,
                      const double *v, double *y, char *scratch)
{
    (void)scratch;
    sdx_gemm_f64(rows, p->value_size, keys, 1, scores, keys, 1, v, p->v.row, 1, 0, y, p->y_row);
}

static void softmax_f64(const struct params *p, double *x, int64_t n)
{
    (void)p;
    sdx_softmax_f64(x, n);
}

static void tanh_f64(double *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = tanh(x[i]);
}

#define T              double
#define MASK_DTYPE     SDX_F64
#define SUFFIX(name)   name##_f64
#define SCORES         scores_f64
#define WEIGH          weigh_f64
#define SOFTMAX        softmax_f64
#define TANH           tanh_f64
#define ROUND(p, x, n) ((void)0)
#include "ops/attention_tmpl.h"
#undef T
#undef MASK_DTYPE
#undef SUFFIX
#undef SCORES
#undef WEIGH
#undef SOFTMAX
#undef TANH
#undef ROUND

/* ---- prepare ---- */

/* Narrow types: Q and K are multiplied by the root of the scale and rounded before their product.
 */
static enum sdx_status rescale(struct sdx_prepare *px, struct params *p, struct sdx_tensor **q,
                               struct sdx_tensor **k)
{
    float factor = (float)sqrt(p->scale);
    sdx_narrow_round(p->narrow, &factor, 1);
    p->scale = 1;
    *q = sdx_narrow_scaled(px, factor, *q, NULL);
    *k = sdx_narrow_scaled(px, factor, *k, NULL);
    return *q && *k ? SDX_OK : px->cx->error.status;
}

/* The mask broadcasts to [batch, heads, queries]; its last axis may be shorter than the keys. */
static enum sdx_status read_mask(struct sdx_prepare *px, struct params *p,
                                 const struct sdx_tensor *mask)
{
    const int64_t want[] = {p->s.batch, p->s.q_heads, p->s.queries};
    if (!mask) return SDX_OK;
    if (mask->rank < 1 || mask->rank > 4 || mask->dims[mask->rank - 1] > p->keys)
        return SDX_FAIL(px->cx, SDX_BAD_MODEL, "Attention: attn_mask does not fit %lld keys",
                        (long long)p->keys);
    p->mask_keys = mask->dims[mask->rank - 1];
    int64_t step = p->mask_keys;
    for (int i = 2; i >= 0; i--) {
        int d = mask->rank - 2 - (2 - i);
        int64_t length = d >= 0 ? mask->dims[d] : 1;
        if (length != 1 && length != want[i])
            return SDX_FAIL(px->cx, SDX_BAD_MODEL,
                            "Attention: attn_mask has length %lld where %lld is expected",
                            (long long)length, (long long)want[i]);
        p->mask_step[i] = length == 1 ? 0 : step;
        step *= length;
    }
    return SDX_OK;
}

static enum sdx_status read_params(struct sdx_prepare *px, struct params *p)
{
    const struct sizes *s = &p->s;
    const struct sdx_ir_attr *scale = sdx_ir_attr(px->node, "scale");
    p->scale = scale ? (double)scale->f : 1 / sqrt((double)(s->head_size ? s->head_size : 1));
    p->softcap = sdx_ir_attr_float(px->node, "softcap", 0);
    p->is_causal = sdx_ir_attr_int(px->node, "is_causal", 0) != 0;
    p->left = sdx_ir_attr_int(px->node, "left_window_size", -1);
    p->right = sdx_ir_attr_int(px->node, "right_window_size", -1);
    p->qk_mode = (int)sdx_ir_attr_int(px->node, "qk_matmul_output_mode", 0);
    p->narrow = px->narrow;
    int64_t precision = sdx_ir_attr_int(px->node, "softmax_precision", p->narrow);
    p->softmax_is_f32 = precision == SDX_F32 || precision == SDX_F64;
    if (p->left < -1 || p->right < -1 || p->left > INT32_MAX || p->right > INT32_MAX)
        return SDX_FAIL(px->cx, SDX_BAD_MODEL,
                        "Attention: window sizes are %lld and %lld, expected at least -1",
                        (long long)p->left, (long long)p->right);
    if (p->qk_mode < 0 || p->qk_mode > 3)
        return SDX_FAIL(px->cx, SDX_BAD_MODEL,
                        "Attention: qk_matmul_output_mode is %d, expected 0 to 3", p->qk_mode);
    p->keys = s->keys;
    p->mask_keys = s->keys;
    p->value_size = s->value_size;
    p->q = layout_of(s->is_3d, s->q_heads, s->queries, s->head_size);
    struct layout y = layout_of(s->is_3d, s->q_heads, s->queries, s->value_size);
    p->y_batch = y.batch;
    p->y_head = y.head;
    p->y_row = y.row;
    return SDX_OK;
}

static struct sdx_tensor *input(struct sdx_prepare *px, int i)
{
    return sdx_prepare_has(px, i) ? px->in[i] : NULL;
}

static struct sdx_tensor *output(struct sdx_prepare *px, int k)
{
    return k < px->count_out ? px->out[k] : NULL;
}

/* K and V have the lengths that Q and they themselves ask for. */
static enum sdx_status check_shapes(struct sdx_prepare *px, const struct sizes *s)
{
    const struct sdx_tensor *k = px->in[1], *v = px->in[2];
    if (k->count != s->batch * s->kv_heads * s->fresh * s->head_size ||
        v->count != s->batch * s->kv_heads * s->fresh * s->value_size)
        return SDX_FAIL(px->cx, SDX_BAD_MODEL, "Attention: shapes of Q, K and V do not agree");
    if (input(px, 6) && input(px, 6)->count != s->batch)
        return SDX_FAIL(px->cx, SDX_BAD_MODEL,
                        "Attention: nonpad_kv_seqlen has %lld values, expected %lld",
                        (long long)input(px, 6)->count, (long long)s->batch);
    return SDX_OK;
}

/* Rows of a part, so that its scores fit a cache, and the scratch they need. */
static size_t plan_blocks(struct params *p, bool is_f32)
{
    const struct sizes *s = &p->s;
    int64_t keys = p->keys ? p->keys : 1, rows = SCORES_MAX / keys, panel = sdx_gemm_f32_panel();
    rows = rows > ROWS_MAX ? ROWS_MAX : rows < 1 ? 1 : rows;
    if (rows > s->queries) rows = s->queries ? s->queries : 1;
    p->block_rows = rows;
    p->blocks = (s->queries + rows - 1) / rows;
    p->scores_size = ((size_t)(rows * keys) * (is_f32 ? 4 : 8) + 63) / 64 * 64;
    if (!is_f32) return p->scores_size;
    int64_t wide = s->head_size > s->value_size ? s->head_size : s->value_size;
    p->block_keys = BLOCK_BYTES / ((wide ? wide : 1) * 4) / panel * panel;
    if (p->block_keys < panel) p->block_keys = panel;
    if (p->block_keys > keys) p->block_keys = (keys + panel - 1) / panel * panel;
    size_t of_k = sdx_gemm_f32_packed_size(s->head_size, p->block_keys);
    size_t of_v = sdx_gemm_f32_packed_size(p->block_keys, s->value_size);
    p->packed_size = ((of_k > of_v ? of_k : of_v) + 63) / 64 * 64;
    const size_t needs[] = {
        p->packed_size + sdx_gemm_f32_scratch(rows, p->block_keys, s->head_size),
        p->packed_size + sdx_gemm_f32_scratch(rows, s->value_size, p->block_keys),
        sdx_gemm_f32_plain_scratch(rows, keys, s->head_size),
        sdx_gemm_f32_plain_scratch(rows, s->value_size, keys)};
    size_t most = 0;
    for (int i = 0; i < SDX_COUNT_OF(needs); i++)
        if (needs[i] > most) most = needs[i];
    return p->scores_size + most;
}

/* Is there nothing that ops/attention_core.h does not do? */
static bool is_common(const struct params *p, struct sdx_tensor *const in[IN_COUNT], int dtype,
                      const struct sdx_tensor *qk)
{
    const struct sdx_tensor *mask = in[IN_MASK];
    return dtype == SDX_F32 && !p->narrow && p->softcap == 0 && p->left < 0 && p->right < 0 &&
           !qk && !in[IN_LENGTHS] && (!mask || mask->dtype == SDX_F32 || mask->dtype == SDX_BOOL);
}

static enum sdx_status prepare_common(struct sdx_prepare *px, const struct params *p,
                                      struct sdx_tensor *const in[IN_COUNT])
{
    const struct sizes *s = &p->s;
    struct sdx_attention a = {.q = in[IN_Q],
                              .k = in[IN_K],
                              .v = in[IN_V],
                              .y = px->out[0],
                              .mask = in[IN_MASK],
                              .batch = s->batch,
                              .heads = s->q_heads,
                              .heads_per_key = s->q_heads / s->kv_heads,
                              .queries = s->queries,
                              .keys = p->keys,
                              .size = s->head_size,
                              .value_size = s->value_size,
                              .q_at = {p->q.batch, p->q.head, p->q.row, 1},
                              .k_at = {p->k.batch, p->k.head, p->k.row, 1},
                              .v_at = {p->v.batch, p->v.head, p->v.row, 1},
                              .y_at = {p->y_batch, p->y_head, p->y_row, 1},
                              .mask_at = {p->mask_step[0], p->mask_step[1], p->mask_step[2], 1},
                              .mask_keys = p->mask_keys,
                              .offset = p->has_past ? s->past : 0,
                              .scale = (float)p->scale,
                              .is_causal = p->is_causal,
                              .empty_is_zero = true};
    return sdx_attention_prepare(px, &a);
}

/* The operand in f64; NULL: none, or an error is set. */
static struct sdx_tensor *widened(struct sdx_prepare *px, struct sdx_tensor *t, bool is_input)
{
    if (!t || t->dtype == SDX_F64) return t;
    if (is_input) return sdx_prepare_converted(px, t, SDX_F64);
    return sdx_prepare_temp(px, SDX_F64, t->rank, t->dims);
}

/* Floats and doubles together: all is computed in doubles. */
static enum sdx_status prepare_mixed(struct sdx_prepare *px, struct params *p,
                                     struct sdx_tensor *in[IN_COUNT], struct sdx_tensor *out[2])
{
    struct sdx_tensor *wide[2] = {widened(px, out[0], false), widened(px, out[1], false)};
    p->narrow = 0;
    for (int i = IN_Q; i <= IN_V; i++)
        in[i] = widened(px, in[i], true);
    if (px->cx->error.status != SDX_OK) return px->cx->error.status;
    SDX_TRY(sdx_prepare_step_on(px, "attention", run_f64, p, p->s.batch * p->s.q_heads * p->blocks,
                                plan_blocks(p, false), IN_COUNT, in, 2, wide));
    for (int k = 0; k < 2; k++)
        if (wide[k] != out[k]) SDX_TRY(sdx_prepare_convert(px, wide[k], out[k]));
    return SDX_OK;
}

static enum sdx_status prepare_attention(struct sdx_prepare *px)
{
    struct params *p = SDX_PREPARE_NEW(px, struct params);
    struct sdx_tensor *in[IN_COUNT] = {px->in[0], NULL, NULL, input(px, 3), input(px, 6)};
    int dtype = px->in[0]->dtype;
    if (!p) return SDX_FAIL_MEMORY(px->cx);
    struct sdx_tensor *past = input(px, 4);
    SDX_TRY(read_sizes(px->cx, px->node, px->in[0]->rank, px->in[0]->dims, px->in[1]->dims,
                       px->in[2]->dims, past ? past->dims : NULL, &p->s));
    p->has_past = past != NULL;
    SDX_TRY(check_shapes(px, &p->s));
    SDX_TRY(read_params(px, p));
    SDX_TRY(read_mask(px, p, in[IN_MASK]));
    SDX_TRY(join_cache(px, &p->s, 1, past, output(px, 1), p->s.head_size, &in[IN_K], &p->k));
    SDX_TRY(
        join_cache(px, &p->s, 2, input(px, 5), output(px, 2), p->s.value_size, &in[IN_V], &p->v));
    struct sdx_tensor *out[] = {px->out[0], output(px, 3)};
    if (px->out[0]->count == 0 && (!out[1] || out[1]->count == 0)) return SDX_OK;
    for (int i = IN_Q; i <= IN_V; i++)
        if (in[i]->dtype != SDX_F32 && in[i]->dtype != SDX_F64)
            return SDX_FAIL(px->cx, SDX_NOT_SUPPORTED,
                            "Attention: operand %d has elements of type %s", i,
                            sdx_dtype_short_name(in[i]->dtype));
    if (in[IN_K]->dtype != dtype || in[IN_V]->dtype != dtype) return prepare_mixed(px, p, in, out);
    if (is_common(p, in, dtype, out[1])) return prepare_common(px, p, in);
    if (p->narrow && p->scale >= 0) SDX_TRY(rescale(px, p, &in[IN_Q], &in[IN_K]));
    size_t scratch = plan_blocks(p, dtype == SDX_F32);
    return sdx_prepare_step_on(px, "attention", dtype == SDX_F32 ? run_f32 : run_f64, p,
                               p->s.batch * p->s.q_heads * p->blocks, scratch, IN_COUNT, in, 2,
                               out);
}

/* ---- RotaryEmbedding ---- */

struct rotary {
    int64_t batch, heads, length;
    struct sdx_rotate rows;
    struct layout x;
    bool by_position;
    int64_t positions; /* rows of the caches */
};

/* One place in the sequence of one batch entry, all heads. */
static enum sdx_status run_rotary(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct rotary *p = step->params;
    int64_t n = part / p->length, t = part % p->length, half = p->rows.turned / 2, row = part;
    if (p->by_position) {
        row = ((const int64_t *)step->in[3]->data)[part];
        if (row < 0) row += p->positions;
        if (row < 0 || row >= p->positions)
            return SDX_FAIL(x->cx, SDX_RUN_FAILED,
                            "RotaryEmbedding: position %lld is not in a cache of %lld",
                            (long long)row, (long long)p->positions);
    }
    struct sdx_rotate rows = p->rows;
    sdx_rotate_angles(&rows, (const float *)step->in[1]->data + row * half,
                      (const float *)step->in[2]->data + row * half, x->scratch);
    int64_t at = n * p->x.batch + t * p->x.row;
    for (int64_t h = 0; h < p->heads; h++, at += p->x.head)
        sdx_rotate_row(&rows, (const float *)step->in[0]->data + at,
                       (float *)step->out[0]->data + at);
    return SDX_OK;
}

static enum sdx_status bad_rotary(struct sdx_prepare *px, const char *what)
{
    return SDX_FAIL(px->cx, SDX_BAD_MODEL, "RotaryEmbedding: %s", what);
}

static enum sdx_status prepare_rotary(struct sdx_prepare *px)
{
    struct rotary *p = SDX_PREPARE_NEW(px, struct rotary);
    const struct sdx_tensor *x = px->in[0], *cosine = px->in[1], *sine = px->in[2];
    if (!p) return SDX_FAIL_MEMORY(px->cx);
    if (x->rank != 3 && x->rank != 4) return bad_rotary(px, "input must have rank 3 or 4");
    bool is_3d = x->rank == 3;
    p->batch = x->dims[0];
    p->heads = is_3d ? sdx_ir_attr_int(px->node, "num_heads", 0) : x->dims[1];
    p->length = x->dims[is_3d ? 1 : 2];
    if (is_3d && (p->heads < 1 || x->dims[2] % p->heads))
        return bad_rotary(px, "num_heads must divide the hidden size");
    struct sdx_rotate *rows = &p->rows;
    rows->size = is_3d ? x->dims[2] / p->heads : x->dims[3];
    rows->turned = sdx_ir_attr_int(px->node, "rotary_embedding_dim", 0);
    if (rows->turned == 0) rows->turned = rows->size;
    if (rows->turned < 0 || rows->turned > rows->size || rows->turned % 2)
        return bad_rotary(px, "rotary_embedding_dim must be even and at most the head size");
    rows->is_interleaved = sdx_ir_attr_int(px->node, "interleaved", 0) != 0;
    p->x = layout_of(is_3d, p->heads, p->length, rows->size);
    p->by_position = sdx_prepare_has(px, 3);
    int64_t half = rows->turned / 2;
    if (cosine->count != sine->count || cosine->rank < 1 || cosine->dims[cosine->rank - 1] != half)
        return bad_rotary(px, "caches must have rotary_embedding_dim / 2 columns");
    p->positions = half ? cosine->count / half : 0;
    int64_t places = p->batch * p->length;
    if (p->by_position ? px->in[3]->count != places : p->positions != places && half)
        return bad_rotary(px, "position_ids or caches do not have a row for each element");
    if (x->count == 0) return SDX_OK;
    if (x->dtype != SDX_F32)
        return SDX_FAIL(px->cx, SDX_NOT_SUPPORTED, "RotaryEmbedding: element type %s",
                        sdx_dtype_short_name(x->dtype));
    return sdx_prepare_step(px, "rotary_embedding", run_rotary, p, places,
                            sdx_rotate_scratch(rows));
}

/* present_key and present_value are past_key and past_value with the new ones behind. */
static bool grow_attention(const struct sdx_ir_node *node, int k, int rank, int *input, int *axis)
{
    (void)node;
    *input = k + 3;
    *axis = 2;
    return (k == 1 || k == 2) && rank == 4;
}

static const struct sdx_op ops[] = {
    {"Attention", 23, 0, infer_attention, KERNEL(prepare_attention), .cost = cost_attention,
     .grow = grow_attention, .growing = 1u << 4 | 1u << 5, .flags = SDX_OP_VIA_F32},
    {"RotaryEmbedding", 23, 0, sdx_infer_same, KERNEL(prepare_rotary), .flags = SDX_OP_VIA_F32},
};

const struct sdx_op_family sdx_ops_attention = FAMILY("", ops);
