/* SPDX-License-Identifier: Apache-2.0
 * MultiHeadAttention and DecoderMaskedMultiHeadAttention of com.microsoft: queries, keys and values
 * in any of their forms, put behind cached ones, through the attention step. Masks are numbers that
 * are added (mask_filter_value), as ONNX Runtime has them. */
#include <float.h>
#include <math.h>

#include "ops/attention_heads.h"

enum role { Q, K, V, BIAS, MASK, ADDED, PAST_K, PAST_V, PAST_LENGTH, BEAMS, ROLES };
/* Which input has a role. */
static const int8_t common_roles[ROLES] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
static const int8_t masked_roles[ROLES] = {0, 1, 2, 10, 3, 4, 5, 6, 7, 9};

enum form {
    ROWS,       /* q, k, v: [batch, length, heads * size] */
    HEADS,      /* k, v: [batch, heads, length, size] */
    PACKED_KV,  /* k: [batch, length, heads, 2, size] */
    PACKED,     /* q: [batch, length, heads, 3, size] */
    PACKED_ROWS /* q: [batch, length, 3 * heads * size] */
};

/* Lengths < 0: not known. */
struct sizes {
    enum form form;
    bool is_masked, shares;
    int64_t batch, heads, queries, fresh, past, capacity, size, value_size;
};

struct shapes {
    bool has[ROLES];
    int rank[ROLES];
    const int64_t *dims[ROLES];
};

static bool is_masked_form(const struct sdx_ir_node *node)
{
    return sdx_str_is(node->op_type, "DecoderMaskedMultiHeadAttention");
}

static int role_at(const struct sdx_ir_node *node, int role)
{
    return is_masked_form(node) ? masked_roles[role] : common_roles[role];
}

static enum sdx_status bad(struct sdx_context *cx, const struct sdx_ir_node *node, const char *what)
{
    return SDX_FAIL(cx, SDX_BAD_MODEL, "%.*s: %s", SDX_STR_ARG(node->op_type), what);
}

/* a / b; -1: not known, or it leaves a rest (then *fits is false). */
static int64_t divide(int64_t a, int64_t b, bool *fits)
{
    if (a < 0 || b <= 0) return -1;
    if (a % b) *fits = false;
    return a / b;
}

/* Keys and values as the form has them. */
static void read_keys(const struct shapes *s, struct sizes *z, bool *fits)
{
    const int64_t *k = s->dims[K], *v = s->dims[V];
    if (!k) return;
    if (s->rank[K] == 5) {
        z->form = PACKED_KV;
        *fits = *fits && !s->has[V] && k[3] == 2 && (k[2] < 0 || k[2] == z->heads);
        z->fresh = k[1];
        z->value_size = z->size = k[4];
    } else if (s->rank[K] == 4) {
        z->form = HEADS;
        *fits = *fits && s->has[V] && !s->has[PAST_K] && (k[1] < 0 || k[1] == z->heads);
        z->fresh = k[2];
        if (z->size < 0) z->size = k[3];
        if (v && s->rank[V] == 4) z->value_size = v[3];
        *fits = *fits && (!v || s->rank[V] == 4);
    } else {
        *fits = *fits && s->rank[K] == 3 && s->has[V];
        z->fresh = k[1];
        if (v && s->rank[V] == 3) z->value_size = divide(v[2], z->heads, fits);
        *fits = *fits && (!v || s->rank[V] == 3);
    }
}

static enum sdx_status read_sizes(struct sdx_context *cx, const struct sdx_ir_node *node,
                                  const struct shapes *s, struct sizes *z)
{
    const int64_t *q = s->dims[Q];
    bool fits = true;
    *z = (struct sizes){.batch = -1, .queries = -1, .fresh = -1, .size = -1, .value_size = -1};
    z->is_masked = is_masked_form(node);
    z->heads = sdx_ir_attr_int(node, "num_heads", 0);
    z->shares = s->has[PAST_K] && s->has[PAST_LENGTH];
    if (z->is_masked && sdx_ir_attr_int(node, "past_present_share_buffer", 0) == 0)
        z->shares = false;
    if (z->heads < 1) return bad(cx, node, "num_heads must be at least 1");
    if (s->has[PAST_K] != s->has[PAST_V])
        return bad(cx, node, "past_key and past_value must be given together");
    if (q && s->rank[Q] != 3 && s->rank[Q] != 5) return bad(cx, node, "query has no rank 3 or 5");
    if (q) {
        z->batch = q[0];
        z->queries = q[1];
    }
    if (q && s->rank[Q] == 5) {
        z->form = PACKED;
        fits = !s->has[K] && (q[2] < 0 || q[2] == z->heads) && (q[3] < 0 || q[3] == 3);
        z->fresh = q[1];
        z->size = z->value_size = q[4];
    } else if (!s->has[K]) {
        z->form = PACKED_ROWS;
        if (q) {
            z->fresh = q[1];
            z->size = z->value_size = divide(q[2], 3 * z->heads, &fits);
        }
        fits = fits && z->is_masked;
    } else {
        if (q) z->size = divide(q[2], z->heads, &fits);
        read_keys(s, z, &fits);
    }
    if (z->is_masked && z->queries >= 0) fits = fits && z->queries == 1;
    z->past = !s->has[PAST_K] ? 0 : s->dims[PAST_K] ? s->dims[PAST_K][2] : -1;
    fits = fits && (!s->dims[PAST_K] || s->rank[PAST_K] == 4);
    z->capacity = z->shares ? z->past : z->past >= 0 && z->fresh >= 0 ? z->past + z->fresh : -1;
    return fits ? SDX_OK : bad(cx, node, "shapes of query, key and value do not agree");
}

static enum sdx_status infer_mha(struct sdx_infer *ix)
{
    struct shapes s = {0};
    struct sizes z;
    for (int r = 0; r < ROLES; r++) {
        const int i = role_at(ix->node, r);
        s.has[r] = sdx_infer_has(ix, i);
        s.rank[r] = s.has[r] ? sdx_infer_rank(ix, i) : -1;
        s.dims[r] = s.has[r] ? sdx_infer_dims(ix, i) : NULL;
    }
    for (int k = 0; k < ix->count_out; k++)
        sdx_infer_set_dtype(ix, k, sdx_infer_dtype(ix, 0));
    SDX_TRY(read_sizes(ix->cx, ix->node, &s, &z));
    int64_t total = z.capacity;
    const int64_t *lengths = NULL;
    int64_t count = 0;
    if (z.shares && ix->count_out > 3) {
        total = -1;
        if (sdx_infer_known_ints(ix, role_at(ix->node, PAST_LENGTH), &lengths, &count) &&
            count == 1 && z.fresh >= 0)
            total = lengths[0] + z.fresh;
    }
    if (!s.dims[Q]) return SDX_OK;
    const int64_t width = z.value_size < 0 ? -1 : z.heads * z.value_size;
    const int64_t y[] = {z.batch, z.queries, width};
    const int64_t key[] = {z.batch, z.heads, z.capacity, z.size};
    const int64_t value[] = {z.batch, z.heads, z.capacity, z.value_size};
    const int64_t qk[] = {z.batch, z.heads, z.queries, total};
    SDX_TRY(sdx_infer_set_dims(ix, 0, 3, y));
    if (ix->count_out > 1) SDX_TRY(sdx_infer_set_dims(ix, 1, 4, key));
    if (ix->count_out > 2) SDX_TRY(sdx_infer_set_dims(ix, 2, 4, value));
    if (ix->count_out > 3) SDX_TRY(sdx_infer_set_dims(ix, 3, 4, qk));
    return SDX_OK;
}

static void cost_mha(const struct sdx_infer *ix, struct sdx_cost *cost)
{
    const int64_t *q = sdx_infer_dims(ix, 0), *y = ix->out[0].dims;
    const int64_t *k = sdx_infer_dims(ix, 1), *past = sdx_infer_dims(ix, role_at(ix->node, PAST_K));
    double keys = (double)(k ? k[sdx_infer_rank(ix, 1) == 4 ? 2 : 1] : q[1]);
    if (past) keys += (double)past[2];
    cost->macs = 2 * (double)y[0] * (double)y[1] * (double)y[2] * keys;
    cost->flops = 2 * cost->macs;
}

struct cache {
    struct sdx_tensor *past, *present, *places, *beams;
    struct sdx_tensor *bias;
    int64_t bias_first;
};

/* The new rows with their bias, behind the cached ones; *h becomes what the scores read. */
static enum sdx_status join(struct sdx_prepare *px, const struct sizes *z, const struct cache *c,
                            int64_t size, struct sdx_heads *h)
{
    const int64_t fresh[] = {z->batch, z->heads, z->fresh, size};
    const int64_t dims[] = {z->batch, z->heads, z->capacity, size};
    if (!c->past && !c->present && !c->bias) return SDX_OK;
    if (!c->past && !c->present) return sdx_heads_add_bias(px, h, c->bias, c->bias_first, fresh);
    struct sdx_place p = {.from = *h,
                          .bias = c->bias,
                          .bias_first = c->bias_first,
                          .places = c->places,
                          .batch = z->batch,
                          .heads = z->heads,
                          .rows = z->fresh,
                          .size = size,
                          .past_rows = z->past,
                          .capacity = z->capacity};
    if (c->past) p.past = sdx_heads_plain(c->past, 0, z->heads, z->past, size);
    if (c->past && (c->past->rank != 4 || c->past->count != z->batch * z->heads * z->past * size))
        return bad(px->cx, px->node, "the cache does not fit the new keys and values");
    struct sdx_tensor *to = c->present;
    if (to && c->beams) {
        p.to = sdx_heads_plain(to, 0, z->heads, z->capacity, size);
        SDX_TRY(sdx_heads_place(px, &p));
        to = NULL;
    }
    if (!to) to = sdx_prepare_temp(px, SDX_F32, 4, dims);
    if (!to) return px->cx->error.status;
    p.to = sdx_heads_plain(to, 0, z->heads, z->capacity, size);
    p.beams = c->beams;
    if (c->beams) p.width = c->beams->dims[1];
    *h = p.to;
    return sdx_heads_place(px, &p);
}

static enum sdx_status check_beams(struct sdx_prepare *px, const struct sizes *z,
                                   const struct sdx_tensor *beams)
{
    if (!beams || (beams->rank == 3 && beams->dims[0] * beams->dims[1] == z->batch && z->shares &&
                   beams->dims[2] == z->capacity && beams->dtype == SDX_I32))
        return SDX_OK;
    return bad(px->cx, px->node, "cache_indirection does not fit batch and cache");
}

/* Where q, k and v lie. */
static void find_operands(struct sdx_prepare *px, const struct sizes *z, struct sdx_heads h[3])
{
    const int64_t n = z->heads, d = z->size, width = n * d;
    struct sdx_tensor *q = px->in[0], *k = sdx_heads_input(px, 1), *v = sdx_heads_input(px, 2);
    h[0] = sdx_heads_of_rows(q, 0, z->queries, d, width);
    switch (z->form) {
    case ROWS:
        h[1] = sdx_heads_of_rows(k, 0, z->fresh, d, width);
        h[2] = sdx_heads_of_rows(v, 0, z->fresh, z->value_size, n * z->value_size);
        break;
    case HEADS:
        h[1] = sdx_heads_plain(k, 0, n, z->fresh, d);
        h[2] = sdx_heads_plain(v, 0, n, z->fresh, z->value_size);
        break;
    case PACKED_KV:
        for (int i = 0; i < 2; i++)
            h[1 + i] = (struct sdx_heads){k, i * d, {z->fresh * 2 * width, 2 * d, 2 * width, 1}};
        break;
    case PACKED:
        for (int i = 0; i < 3; i++)
            h[i] = (struct sdx_heads){q, i * d, {z->fresh * 3 * width, 3 * d, 3 * width, 1}};
        break;
    case PACKED_ROWS:
        for (int i = 0; i < 3; i++)
            h[i] = sdx_heads_of_rows(q, i * width, z->fresh, d, 3 * width);
        break;
    }
}

/* Sizes that only hold when all are known. */
static enum sdx_status check_operands(struct sdx_prepare *px, const struct sizes *z)
{
    const struct sdx_tensor *k = sdx_heads_input(px, 1), *v = sdx_heads_input(px, 2);
    const struct sdx_tensor *bias = sdx_heads_input(px, role_at(px->node, BIAS));
    const int64_t rows = z->batch * z->heads * z->fresh;
    const int64_t keys = rows * z->size * (z->form == PACKED_KV ? 2 : 1);
    if ((k && k->count != keys) || (v && v->count != rows * z->value_size) ||
        (k && k->dims[0] != z->batch))
        return bad(px->cx, px->node, "shapes of query, key and value do not agree");
    if (bias && bias->count != z->heads * (2 * z->size + z->value_size))
        return bad(px->cx, px->node, "bias does not fit query, key and value");
    if (px->in[0]->dtype != SDX_F32)
        return SDX_FAIL(px->cx, SDX_NOT_SUPPORTED, "%.*s: element type %s", SDX_HEADS_OP(px),
                        sdx_dtype_short_name(px->in[0]->dtype));
    return SDX_OK;
}

static enum sdx_status prepare_mha(struct sdx_prepare *px)
{
    struct shapes s = {0};
    struct sdx_tensor *in[ROLES];
    struct sizes z;
    struct sdx_heads h[3];
    for (int r = 0; r < ROLES; r++) {
        in[r] = sdx_heads_input(px, role_at(px->node, r));
        s.has[r] = in[r] != NULL;
        s.rank[r] = in[r] ? in[r]->rank : -1;
        s.dims[r] = in[r] ? in[r]->dims : NULL;
    }
    SDX_TRY(read_sizes(px->cx, px->node, &s, &z));
    SDX_TRY(check_operands(px, &z));
    find_operands(px, &z, h);
    SDX_TRY(check_beams(px, &z, in[BEAMS]));
    struct sdx_attention a = {.y = px->out[0],
                              .batch = z.batch,
                              .heads = z.heads,
                              .queries = z.queries,
                              .keys = z.capacity,
                              .mask_keys = z.capacity,
                              .offset = z.past,
                              .size = z.size,
                              .value_size = z.value_size,
                              .scores = sdx_heads_output(px, 3),
                              .unseen = -FLT_MAX,
                              .empty_is_zero = true};
    const float filter = sdx_ir_attr_float(px->node, "mask_filter_value", -10000.0f);
    a.is_causal = sdx_ir_attr_int(px->node, "unidirectional", 0) != 0 && z.queries > 1;
    a.scale = sdx_ir_attr_float(px->node, "scale", 0);
    if (a.scale == 0) a.scale = 1 / sqrtf((float)z.size);
    if (a.scores) a.keys = a.mask_keys = a.scores->dims[3];
    if (a.keys > z.capacity) return bad(px->cx, px->node, "more keys than the cache can hold");
    if (z.shares) {
        int64_t limit = a.keys < z.capacity ? a.keys : z.capacity;
        if (in[MASK] && in[MASK]->rank == 2 && in[MASK]->dims[1] < limit) limit = in[MASK]->dims[1];
        if (in[ADDED] && in[ADDED]->rank == 4 && in[ADDED]->dims[3] < limit)
            limit = in[ADDED]->dims[3];
        const struct sdx_places last = {
            .kind = SDX_PLACES_PAST, .batch = z.batch, .fresh = z.fresh, .limit = limit};
        a.places = sdx_heads_places(px, in[PAST_LENGTH], &last);
        if (!a.places) return px->cx->error.status;
    }
    SDX_TRY(sdx_heads_mask(px, in[MASK], filter, z.past, &a));
    SDX_TRY(sdx_heads_bias(px, in[ADDED], &a));
    const int64_t q_dims[] = {z.batch, z.heads, z.queries, z.size};
    struct cache c[2] = {
        {in[PAST_K], sdx_heads_output(px, 1), a.places, in[BEAMS], in[BIAS], z.heads * z.size},
        {in[PAST_V], sdx_heads_output(px, 2), a.places, in[BEAMS], in[BIAS], 2 * z.heads * z.size}};
    if (in[BIAS]) SDX_TRY(sdx_heads_add_bias(px, &h[0], in[BIAS], 0, q_dims));
    if (z.form == HEADS) c[0].bias = c[1].bias = NULL;
    SDX_TRY(join(px, &z, &c[0], z.size, &h[1]));
    SDX_TRY(join(px, &z, &c[1], z.value_size, &h[2]));
    return sdx_heads_attention(px, &a, &h[0], &h[1], &h[2]);
}

static const struct sdx_op ops[] = {
    {"MultiHeadAttention", 1, 0, infer_mha, KERNEL(prepare_mha), .cost = cost_mha,
     .flags = SDX_OP_VIA_F32},
    {"DecoderMaskedMultiHeadAttention", 1, 0, infer_mha, KERNEL(prepare_mha), .cost = cost_mha,
     .flags = SDX_OP_VIA_F32},
};

const struct sdx_op_family sdx_ops_contrib_attention = FAMILY("com.microsoft", ops);
