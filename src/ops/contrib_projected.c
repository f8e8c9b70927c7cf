/* SPDX-License-Identifier: Apache-2.0
 * The attention forms of com.microsoft that hold the projections of queries, keys and values:
 * Attention, DecoderMaskedSelfAttention, QAttention, PackedAttention, PackedMultiHeadAttention and
 * DecoderAttention. Cached keys and values are halves of one tensor (DecoderAttention: two). */
#include <math.h>

#include "ops/contrib_quant.h"
#include "ops/attention_heads.h"

enum role { MASK, ADDED, PAST, PAST_LENGTH, BEAMS, ROLES };
enum kind { PLAIN, MASKED, QUANTISED };
/* Which input has a role; -1: the operator has none such. */
static const int8_t roles[][ROLES] = {
    [PLAIN] = {3, 5, 4, 6, -1}, [MASKED] = {3, 5, 4, 6, 8}, [QUANTISED] = {5, -1, 8, -1, -1}};

/* Lengths < 0: not known. */
struct sizes {
    enum kind kind;
    bool shares, has_past;
    int64_t batch, heads, length, past, capacity, width, size, value_size;
};

static enum sdx_status bad(struct sdx_context *cx, const struct sdx_ir_node *node, const char *what)
{
    return SDX_FAIL(cx, SDX_BAD_MODEL, "%.*s: %s", SDX_STR_ARG(node->op_type), what);
}

/* Columns of q (and k) and of v in `all` projected columns (< 0: not known). */
static enum sdx_status split_columns(struct sdx_context *cx, const struct sdx_ir_node *node,
                                     int64_t all, int64_t *size, int64_t *value_size)
{
    const int64_t heads = sdx_ir_attr_int(node, "num_heads", 0);
    int64_t count = 0;
    const int64_t *given = sdx_ir_attr_ints(node, "qkv_hidden_sizes", &count);
    if (heads < 1) return bad(cx, node, "num_heads must be at least 1");
    const int64_t third = all / 3;
    const int64_t even[] = {third, third, third};
    if (given && count != 3) return bad(cx, node, "qkv_hidden_sizes must have three values");
    const int64_t *w = given && count == 3 ? given : even;
    *size = *value_size = -1;
    if (all < 0 && w == even) return SDX_OK;
    if (w[0] != w[1] || w[0] < 0 || w[2] < 0 || w[0] % heads || w[2] % heads ||
        (all >= 0 && w[0] + w[1] + w[2] != all))
        return SDX_FAIL(cx, SDX_BAD_MODEL,
                        "%.*s: %lld columns of weights do not divide over %lld heads",
                        SDX_STR_ARG(node->op_type), (long long)all, (long long)heads);
    *size = w[0] / heads;
    *value_size = w[2] / heads;
    return SDX_OK;
}

static enum kind kind_of(const struct sdx_ir_node *node)
{
    if (sdx_str_is(node->op_type, "QAttention")) return QUANTISED;
    return sdx_str_is(node->op_type, "DecoderMaskedSelfAttention") ? MASKED : PLAIN;
}

static enum sdx_status read_sizes(struct sdx_context *cx, const struct sdx_ir_node *node,
                                  const int64_t *x, const int64_t *w, const int64_t *past,
                                  bool has_past, struct sizes *z)
{
    *z = (struct sizes){.kind = kind_of(node), .batch = -1, .length = -1, .width = -1};
    z->heads = sdx_ir_attr_int(node, "num_heads", 0);
    z->shares = has_past && sdx_ir_attr_int(node, "past_present_share_buffer", 0) != 0;
    z->has_past = has_past;
    if (x) {
        z->batch = x[0];
        z->length = x[1];
    }
    if (w) z->width = w[1];
    SDX_TRY(split_columns(cx, node, z->width, &z->size, &z->value_size));
    if (z->kind == MASKED && z->length >= 0 && z->length != 1)
        return bad(cx, node, "the sequence length of the input must be 1");
    if (has_past && z->size != z->value_size)
        return bad(cx, node, "a cache wants keys and values of one size");
    z->past = !has_past ? 0 : past ? past[3] : -1;
    z->capacity = z->shares ? z->past : z->past >= 0 && z->length >= 0 ? z->past + z->length : -1;
    return SDX_OK;
}

static enum sdx_status infer_projected(struct sdx_infer *ix)
{
    struct sizes z;
    const enum kind kind = kind_of(ix->node);
    const int past = roles[kind][PAST];
    const int from = kind == QUANTISED ? 2 : 0;
    for (int k = 0; k < ix->count_out; k++)
        sdx_infer_set_dtype(ix, k, sdx_infer_dtype(ix, from));
    if ((sdx_infer_rank(ix, 0) >= 0 && sdx_infer_rank(ix, 0) != 3) ||
        (sdx_infer_rank(ix, 1) >= 0 && sdx_infer_rank(ix, 1) != 2) ||
        (sdx_infer_has(ix, past) && sdx_infer_rank(ix, past) >= 0 && sdx_infer_rank(ix, past) != 5))
        return bad(ix->cx, ix->node, "input, weights and past must have rank 3, 2 and 5");
    SDX_TRY(read_sizes(ix->cx, ix->node, sdx_infer_dims(ix, 0), sdx_infer_dims(ix, 1),
                       sdx_infer_has(ix, past) ? sdx_infer_dims(ix, past) : NULL,
                       sdx_infer_has(ix, past), &z));
    if (!sdx_infer_dims(ix, 0)) return SDX_OK;
    const int64_t y[] = {z.batch, z.length, z.value_size < 0 ? -1 : z.heads * z.value_size};
    const int64_t present[] = {2, z.batch, z.heads, z.capacity, z.size};
    SDX_TRY(sdx_infer_set_dims(ix, 0, 3, y));
    return ix->count_out > 1 ? sdx_infer_set_dims(ix, 1, 5, present) : SDX_OK;
}

static void cost_projected(const struct sdx_infer *ix, struct sdx_cost *cost)
{
    const int64_t *x = sdx_infer_dims(ix, 0), *w = sdx_infer_dims(ix, 1);
    const double rows = (double)ix->in[0]->dims[0] * (x ? (double)x[1] : 1);
    cost->macs = w ? rows * (double)w[0] * (double)w[1] : rows;
    if (x && sdx_infer_rank(ix, 0) == 3 && w)
        cost->macs += rows * (double)x[1] * (double)w[1] * 2 / 3;
    cost->flops = 2 * cost->macs;
}

/* ---- rotary positions without given caches ---- */

/* Cosines (is_sine false) or sines of place / 10000^(2 i / turned). NULL: error is set. */
static struct sdx_tensor *angles(struct sdx_prepare *px, int64_t places, int64_t turned,
                                 bool is_sine)
{
    const int64_t dims[] = {places, turned / 2};
    struct sdx_tensor *t = sdx_heads_constant(px, 2, dims);
    for (int64_t i = 0; t && i < t->count; i++) {
        const double power = (double)(i % dims[1] * 2) / (double)turned;
        const double angle = (double)(i / dims[1]) / pow(10000.0, power);
        ((float *)t->data)[i] = (float)(is_sine ? sin(angle) : cos(angle));
    }
    return t;
}

/* Turns q and k (columns of `rows`) in place. */
static enum sdx_status turn(struct sdx_prepare *px, const struct sizes *z,
                            struct sdx_tensor *places, struct sdx_heads h[3])
{
    struct sdx_rotary r = {.places = places,
                           .batch = z->batch,
                           .heads = z->heads,
                           .rows = z->length,
                           .size = z->size,
                           .base = places ? 0 : z->past};
    r.turned = sdx_ir_attr_int(px->node, "rotary_embedding_dim", 0);
    if (r.turned == 0) r.turned = z->size;
    r.turned -= r.turned % 2;
    if (r.turned < 2 || r.turned > z->size)
        return bad(px->cx, px->node, "rotary_embedding_dim does not fit the heads");
    r.cosine = angles(px, z->capacity, r.turned, false);
    r.sine = r.cosine ? angles(px, z->capacity, r.turned, true) : NULL;
    if (!r.sine) return px->cx->error.status;
    for (int i = 0; i < 2; i++) {
        r.from = r.to = h[i];
        SDX_TRY(sdx_heads_rotate(px, &r));
    }
    return SDX_OK;
}

/* ---- caches in one tensor ---- */

struct cache {
    struct sdx_tensor *past, *present, *places, *beams, *bias;
    int64_t split;
};

static enum sdx_status join(struct sdx_prepare *px, const struct sizes *z, const struct cache *c,
                            int i, int64_t size, struct sdx_heads *h)
{
    const int64_t fresh[] = {z->batch, z->heads, z->length, size};
    const int64_t dims[] = {z->batch, z->heads, z->capacity, size};
    const int64_t bias_first = i * z->heads * z->size, split = i == 1 ? c->split : 0;
    const int64_t half = (i - 1) * z->batch * z->heads * size;
    if (i == 0 || (!c->past && !c->present))
        return c->bias ? sdx_heads_add_bias(px, h, c->bias, bias_first, fresh) : SDX_OK;
    struct sdx_place p = {.from = *h,
                          .bias = c->bias,
                          .bias_first = bias_first,
                          .places = c->places,
                          .batch = z->batch,
                          .heads = z->heads,
                          .rows = z->length,
                          .size = size,
                          .past_rows = z->past,
                          .capacity = z->capacity,
                          .split = split};
    if (c->past) p.past = sdx_heads_plain(c->past, half * z->past, z->heads, z->past, size);
    struct sdx_tensor *to = c->present;
    if (to) p.to = sdx_heads_plain(to, half * z->capacity, z->heads, z->capacity, size);
    if (to && (c->beams || split)) {
        SDX_TRY(sdx_heads_place(px, &p));
        to = NULL;
    }
    if (!to) {
        to = sdx_prepare_temp(px, SDX_F32, 4, dims);
        if (!to) return px->cx->error.status;
        p.to = sdx_heads_plain(to, 0, z->heads, z->capacity, size);
        p.to_is_plain = true;
    }
    p.beams = c->beams;
    if (c->beams) p.width = c->beams->dims[1];
    *h = p.to;
    return sdx_heads_place(px, &p);
}

static enum sdx_status check_cache(struct sdx_prepare *px, const struct sizes *z,
                                   const struct cache *c, const struct sdx_tensor *lengths)
{
    const struct sdx_tensor *past = c->past, *beams = c->beams;
    if (past && (past->rank != 5 || past->dims[0] != 2 ||
                 past->count != 2 * z->batch * z->heads * z->past * z->size))
        return bad(px->cx, px->node, "the cache does not fit input and weights");
    if (z->shares && !lengths)
        return bad(px->cx, px->node, "a shared cache wants past_sequence_length");
    if (c->split && z->size % c->split)
        return SDX_FAIL(px->cx, SDX_NOT_SUPPORTED, "%.*s: heads of %lld columns", SDX_HEADS_OP(px),
                        (long long)z->size);
    if (beams && (beams->rank != 3 || beams->dims[0] * beams->dims[1] != z->batch || !z->shares ||
                  beams->dims[2] != z->capacity || beams->dtype != SDX_I32))
        return bad(px->cx, px->node, "cache_indirection does not fit batch and cache");
    return SDX_OK;
}

/* Attention over `rows`: [batch, length, columns of q, k and v], to `y`. */
static enum sdx_status attend(struct sdx_prepare *px, const struct sizes *z,
                              struct sdx_tensor *rows, struct sdx_tensor *bias,
                              struct sdx_tensor *y)
{
    struct sdx_tensor *in[ROLES];
    for (int r = 0; r < ROLES; r++)
        in[r] = sdx_heads_input(px, roles[z->kind][r]);
    struct cache c = {
        .past = in[PAST], .present = sdx_heads_output(px, 1), .beams = in[BEAMS], .bias = bias};
    if (z->kind == MASKED && z->shares) c.split = 16 / (px->narrow ? 2 : 4);
    SDX_TRY(check_cache(px, z, &c, in[PAST_LENGTH]));
    struct sdx_attention a = {.y = y,
                              .batch = z->batch,
                              .heads = z->heads,
                              .queries = z->length,
                              .keys = z->capacity,
                              .mask_keys = z->capacity,
                              .offset = z->past,
                              .size = z->size,
                              .value_size = z->value_size,
                              .scale = sdx_ir_attr_float(px->node, "scale", 0),
                              .empty_is_zero = true};
    const float filter = sdx_ir_attr_float(px->node, "mask_filter_value", -10000.0f);
    if (a.scale == 0) a.scale = 1 / sqrtf((float)z->size);
    a.is_causal = sdx_ir_attr_int(px->node, "unidirectional", 0) != 0 && z->length > 1;
    if (z->shares) {
        int64_t limit = a.keys;
        if (in[MASK] && in[MASK]->rank == 2 && in[MASK]->dims[1] < limit) limit = in[MASK]->dims[1];
        if (in[ADDED] && in[ADDED]->rank == 4 && in[ADDED]->dims[3] < limit)
            limit = in[ADDED]->dims[3];
        const struct sdx_places last = {
            .kind = SDX_PLACES_PAST, .batch = z->batch, .fresh = z->length, .limit = limit};
        a.places = sdx_heads_places(px, in[PAST_LENGTH], &last);
        if (!a.places) return px->cx->error.status;
        c.places = a.places;
    }
    SDX_TRY(sdx_heads_mask(px, in[MASK], filter, z->past, &a));
    SDX_TRY(sdx_heads_bias(px, in[ADDED], &a));
    struct sdx_heads h[3];
    const int64_t width = z->heads * z->size, all = 2 * width + z->heads * z->value_size;
    const int64_t sizes[] = {z->size, z->size, z->value_size};
    for (int i = 0; i < 3; i++)
        h[i] = sdx_heads_of_rows(rows, i * width, z->length, sizes[i], all);
    if (sdx_ir_attr_int(px->node, "do_rotary", 0)) {
        for (int i = 0; bias && i < 3; i++) {
            const int64_t dims[] = {z->batch, z->heads, z->length, sizes[i]};
            SDX_TRY(sdx_heads_add_bias(px, &h[i], bias, i * width, dims));
        }
        c.bias = NULL;
        SDX_TRY(turn(px, z, a.places, h));
    }
    for (int i = 0; i < 3; i++)
        SDX_TRY(join(px, z, &c, i, sizes[i], &h[i]));
    return sdx_heads_attention(px, &a, &h[0], &h[1], &h[2]);
}

static enum sdx_status prepare_projected(struct sdx_prepare *px)
{
    struct sizes z;
    struct sdx_tensor *rows = NULL, *bias = sdx_heads_input(px, 2);
    struct sdx_tensor *past = sdx_heads_input(px, roles[kind_of(px->node)][PAST]);
    bool biased = false;
    SDX_TRY(read_sizes(px->cx, px->node, px->in[0]->dims, px->in[1]->dims, past ? past->dims : NULL,
                       past != NULL, &z));
    SDX_TRY(sdx_heads_project(px, px->in[0], 1, bias, &rows, &biased));
    return attend(px, &z, rows, biased ? NULL : bias, px->out[0]);
}

static enum sdx_status prepare_quantised(struct sdx_prepare *px)
{
    struct sizes z;
    struct sdx_tensor *past = sdx_heads_input(px, 8), *x = px->in[0];
    if (x->rank != 3 || px->in[1]->rank != 2 || px->in[1]->dims[0] != x->dims[2] ||
        px->in[2]->count != px->in[1]->dims[1])
        return bad(px->cx, px->node, "input, weights and bias do not fit each other");
    SDX_TRY(read_sizes(px->cx, px->node, x->dims, px->in[1]->dims, past ? past->dims : NULL,
                       past != NULL, &z));
    const int64_t dims[] = {z.batch, z.length, z.width};
    struct sdx_tensor *rows = sdx_prepare_temp(px, SDX_F32, 3, dims);
    if (!rows) return px->cx->error.status;
    /* The product is that of MatMulIntegerToFloat. */
    struct sdx_tensor *in[] = {
        x,        px->in[1], px->in[3], px->in[4], sdx_heads_input(px, 6), sdx_heads_input(px, 7),
        px->in[2]};
    struct sdx_prepare inner = *px;
    inner.in = in;
    inner.out = &rows;
    inner.count_in = SDX_COUNT_OF(in);
    inner.count_out = 1;
    const bool is_constant = px->in[2]->is_constant && px->in[1]->is_constant;
    if (!is_constant) inner.count_in--;
    SDX_TRY(sdx_integer_matmul_prepare(&inner));
    return attend(px, &z, rows, is_constant ? NULL : px->in[2], px->out[0]);
}

/* ---- rows without padding ---- */

static enum sdx_status infer_packed(struct sdx_infer *ix)
{
    const bool is_projected = sdx_str_is(ix->node->op_type, "PackedAttention");
    const int64_t *x = sdx_infer_dims(ix, 0), *w = sdx_infer_dims(ix, 1);
    const int64_t *v = sdx_infer_dims(ix, 2);
    int64_t size = 0, value_size = -1, width = -1;
    sdx_infer_set_dtype(ix, 0, sdx_infer_dtype(ix, 0));
    if (is_projected) {
        SDX_TRY(split_columns(ix->cx, ix->node, w && sdx_infer_rank(ix, 1) == 2 ? w[1] : -1, &size,
                              &value_size));
        if (value_size >= 0) width = value_size * sdx_ir_attr_int(ix->node, "num_heads", 0);
    } else if (sdx_infer_has(ix, 2)) {
        if (v && sdx_infer_rank(ix, 2) == 2) width = v[1];
    } else if (x && sdx_infer_rank(ix, 0) == 4) {
        width = x[1] >= 0 && x[3] >= 0 ? x[1] * x[3] : -1;
    }
    if (!x) return SDX_OK;
    const int64_t y[] = {x[0], width};
    return sdx_infer_set_dims(ix, 0, 2, y);
}

/* Attention of padded operands, collected to the output. */
static enum sdx_status attend_packed(struct sdx_prepare *px, struct sdx_heads h[3], int64_t size,
                                     int64_t value_size, int first)
{
    struct sdx_tensor *offsets = px->in[first];
    const int64_t batch = offsets->dims[0], length = offsets->dims[1];
    const int64_t heads = sdx_ir_attr_int(px->node, "num_heads", 0);
    const int64_t dims[] = {batch, length, heads * value_size};
    struct sdx_tensor *y = sdx_prepare_temp(px, SDX_F32, 3, dims);
    if (!y) return px->cx->error.status;
    struct sdx_attention a = {.y = y,
                              .batch = batch,
                              .heads = heads,
                              .queries = length,
                              .keys = length,
                              .mask_keys = length,
                              .size = size,
                              .value_size = value_size,
                              .scale = sdx_ir_attr_float(px->node, "scale", 0),
                              .empty_is_zero = true};
    if (a.scale == 0) a.scale = 1 / sqrtf((float)size);
    const struct sdx_places sums = {
        .kind = SDX_PLACES_SUMS, .batch = batch, .fresh = length, .limit = length};
    a.places = sdx_heads_places(px, px->in[first + 1], &sums);
    if (!a.places) return px->cx->error.status;
    SDX_TRY(sdx_heads_bias(px, sdx_heads_input(px, first + 2), &a));
    SDX_TRY(sdx_heads_attention(px, &a, &h[0], &h[1], &h[2]));
    return sdx_heads_collect(px, y, offsets, px->out[0]);
}

/* [tokens, columns] as [batch, length, columns]. */
static enum sdx_status spread(struct sdx_prepare *px, struct sdx_tensor *from, int first,
                              int64_t columns, struct sdx_tensor **to)
{
    struct sdx_tensor *offsets = px->in[first];
    if (offsets->rank != 2 || from->rank < 1 || from->count != from->dims[0] * columns ||
        from->dims[0] != px->out[0]->dims[0])
        return bad(px->cx, px->node, "tokens do not fit num_heads and token_offset");
    const int64_t dims[] = {offsets->dims[0], offsets->dims[1], columns};
    *to = sdx_prepare_temp(px, SDX_F32, 3, dims);
    return *to ? sdx_heads_spread(px, from, offsets, *to) : px->cx->error.status;
}

static enum sdx_status prepare_packed_attention(struct sdx_prepare *px)
{
    struct sdx_tensor *rows = NULL, *padded = NULL;
    struct sdx_heads h[3];
    int64_t size = 0, value_size = 0;
    bool biased = false;
    if (px->in[1]->rank != 2) return bad(px->cx, px->node, "weights must have rank 2");
    const int64_t all = px->in[1]->dims[1];
    SDX_TRY(split_columns(px->cx, px->node, all, &size, &value_size));
    SDX_TRY(sdx_heads_project(px, px->in[0], 1, px->in[2], &rows, &biased));
    SDX_TRY(spread(px, rows, 3, all, &padded));
    const int64_t heads = sdx_ir_attr_int(px->node, "num_heads", 0),
                  sizes[] = {size, size, value_size};
    for (int i = 0; i < 3; i++) {
        const int64_t dims[] = {padded->dims[0], heads, padded->dims[1], sizes[i]};
        h[i] = sdx_heads_of_rows(padded, i * heads * size, padded->dims[1], sizes[i], all);
        if (!biased) SDX_TRY(sdx_heads_add_bias(px, &h[i], px->in[2], i * heads * size, dims));
    }
    return attend_packed(px, h, size, value_size, 3);
}

static enum sdx_status prepare_packed_heads(struct sdx_prepare *px)
{
    const int64_t heads = sdx_ir_attr_int(px->node, "num_heads", 0);
    const struct sdx_tensor *q = px->in[0];
    struct sdx_tensor *bias = sdx_heads_input(px, 3), *padded = NULL;
    const bool is_packed = q->rank == 4;
    struct sdx_heads h[3];
    int64_t sizes[3];
    if (heads < 1 || sdx_prepare_has(px, 1) == is_packed || sdx_prepare_has(px, 2) == is_packed ||
        (is_packed && (q->dims[1] != heads || q->dims[2] != 3)) || (!is_packed && q->rank != 2))
        return bad(px->cx, px->node, "query, key and value have no shape that is expected");
    for (int i = 0; i < 3; i++) {
        const struct sdx_tensor *t = px->in[is_packed ? 0 : i];
        const int64_t columns = is_packed ? q->dims[3] * heads : t->dims[t->rank - 1];
        if (columns % heads || (i == 1 && columns / heads != sizes[0]))
            return bad(px->cx, px->node, "query, key and value do not divide over the heads");
        sizes[i] = columns / heads;
    }
    for (int i = 0; i < 3; i++) {
        const int64_t n = heads * sizes[i];
        if (!is_packed || i == 0) SDX_TRY(spread(px, px->in[i], 4, is_packed ? 3 * n : n, &padded));
        const int64_t length = padded->dims[1], dims[] = {padded->dims[0], heads, length, sizes[i]};
        h[i] = sdx_heads_of_rows(padded, 0, length, sizes[i], n);
        if (is_packed)
            h[i] =
                (struct sdx_heads){padded, i * sizes[0], {length * 3 * n, 3 * sizes[0], 3 * n, 1}};
        if (bias && bias->count != heads * (2 * sizes[0] + sizes[2]))
            return bad(px->cx, px->node, "bias does not fit query, key and value");
        if (bias) SDX_TRY(sdx_heads_add_bias(px, &h[i], bias, i * heads * sizes[0], dims));
    }
    return attend_packed(px, h, sizes[0], sizes[2], 4);
}

/* ---- DecoderAttention ---- */

enum {
    D_QUERY,
    D_KEY,
    D_Q_WEIGHT,
    D_KV_WEIGHT,
    D_BIAS,
    D_MASK,
    D_KEY_CACHE,
    D_VALUE_CACHE,
    D_STATIC,
    D_PAST,
    D_STATE,
    D_MASKED
};

static int64_t sum(int64_t a, int64_t b)
{
    return a < 0 || b < 0 ? -1 : a + b;
}

/* Keys there are, of known flags. */
static int64_t decoder_keys(bool is_cross, bool is_cached, int64_t queries, int64_t keys,
                            int64_t cached)
{
    if (is_cached) return is_cross ? cached : sum(cached, queries);
    return is_cross ? keys : queries;
}

static enum sdx_status infer_decoder(struct sdx_infer *ix)
{
    const int64_t *q = sdx_infer_dims(ix, D_QUERY), *k = sdx_infer_dims(ix, D_KEY);
    const int64_t *cache = sdx_infer_has(ix, D_KEY_CACHE) ? sdx_infer_dims(ix, D_KEY_CACHE) : NULL;
    const int64_t heads = sdx_ir_attr_int(ix->node, "num_heads", 0);
    bool flags[4] = {false}, known = true;
    for (int k_out = 0; k_out < ix->count_out; k_out++)
        sdx_infer_set_dtype(ix, k_out, sdx_infer_dtype(ix, 0));
    if (heads < 1) return bad(ix->cx, ix->node, "num_heads must be at least 1");
    if (!q) return SDX_OK;
    if (sdx_infer_rank(ix, D_QUERY) != 3) return bad(ix->cx, ix->node, "query must have rank 3");
    SDX_TRY(sdx_infer_set_dims(ix, 0, 3, q));
    for (int i = 0; i < 4; i++) {
        const struct sdx_tensor *t = sdx_infer_value(ix, D_STATIC + i);
        known = known && t && t->count == 1;
        if (known) flags[i] = *(const uint8_t *)t->data != 0;
    }
    int64_t keys = -1;
    if (known && k)
        keys = decoder_keys(flags[0], flags[1] && flags[2], q[0], k[0], cache ? cache[2] : -1);
    const int64_t dims[] = {q[1], heads, keys, q[2] < 0 ? -1 : q[2] / heads};
    for (int i = 1; i < ix->count_out; i++)
        SDX_TRY(sdx_infer_set_dims(ix, i, 4, dims));
    return SDX_OK;
}

/* The flags of inputs D_STATIC ...; their values were wanted for the shapes. */
static enum sdx_status read_flags(struct sdx_prepare *px, bool flags[4])
{
    for (int i = 0; i < 4; i++) {
        const struct sdx_tensor *t = sdx_prepare_value(px, D_STATIC + i);
        if (!t || t->count != 1 || t->dtype != SDX_BOOL)
            return bad(px->cx, px->node, "static_kv and its like must be known numbers");
        flags[i] = *(const uint8_t *)t->data != 0;
    }
    return SDX_OK;
}

/* Keys and values of [keys, batch, columns], or of the cache, or both one after the other. */
static enum sdx_status decoder_cache(struct sdx_prepare *px, const struct sdx_attention *a,
                                     int64_t cached, int64_t fresh, int i, struct sdx_heads *h)
{
    struct sdx_tensor *past = cached > 0 ? px->in[D_KEY_CACHE + i] : NULL;
    struct sdx_tensor *to = sdx_heads_output(px, 1 + i);
    const int64_t dims[] = {a->batch, a->heads, a->keys, a->size};
    if (past && (past->rank != 4 || past->count != a->batch * a->heads * cached * a->size))
        return bad(px->cx, px->node, "the cache does not fit query and key");
    if (!to) to = sdx_prepare_temp(px, SDX_F32, 4, dims);
    if (!to) return px->cx->error.status;
    struct sdx_place p = {.to = sdx_heads_plain(to, 0, a->heads, a->keys, a->size),
                          .bias = fresh > 0 ? px->in[D_BIAS] : NULL,
                          .bias_first = (1 + i) * a->heads * a->size,
                          .batch = a->batch,
                          .heads = a->heads,
                          .rows = fresh,
                          .size = a->size,
                          .past_rows = cached,
                          .capacity = a->keys};
    if (past) p.past = sdx_heads_plain(past, 0, a->heads, cached, a->size);
    p.from = fresh > 0 ? *h : p.past;
    *h = p.to;
    return sdx_heads_place(px, &p);
}

static enum sdx_status prepare_decoder(struct sdx_prepare *px)
{
    const struct sdx_tensor *q = px->in[D_QUERY], *key = px->in[D_KEY];
    const int64_t heads = sdx_ir_attr_int(px->node, "num_heads", 0);
    bool flags[4], biased = false;
    SDX_TRY(read_flags(px, flags));
    if (q->rank != 3 || key->rank != 3 || q->dims[2] % heads || key->dims[1] != q->dims[1] ||
        px->in[D_BIAS]->count != 3 * q->dims[2] || px->in[D_KV_WEIGHT]->rank != 2 ||
        px->in[D_KV_WEIGHT]->dims[1] != 2 * q->dims[2] ||
        px->in[D_Q_WEIGHT]->count != q->dims[2] * q->dims[2])
        return bad(px->cx, px->node, "shapes of query, key, weights and bias do not agree");
    const bool is_cross = flags[0], is_cached = flags[1] && flags[2];
    if (is_cached && (!sdx_prepare_has(px, D_KEY_CACHE) || !sdx_prepare_has(px, D_VALUE_CACHE)))
        return bad(px->cx, px->node, "use_past wants key_cache and value_cache");
    const int64_t batch = q->dims[1], width = q->dims[2], queries = q->dims[0];
    const int64_t cached = is_cached ? px->in[D_KEY_CACHE]->dims[2] : 0;
    const int64_t keys = decoder_keys(is_cross, is_cached, queries, key->dims[0], cached);
    struct sdx_attention a = {.y = px->out[0],
                              .batch = batch,
                              .heads = heads,
                              .queries = queries,
                              .keys = keys,
                              .mask_keys = keys,
                              .size = width / heads,
                              .value_size = width / heads,
                              .y_at = {width, width / heads, batch * width, 1},
                              .fill = -INFINITY,
                              .choice_is_false = true,
                              .empty_is_zero = true};
    a.scale = 1 / sqrtf((float)a.size);
    if (flags[3]) {
        a.choice = sdx_heads_input(px, D_MASK);
        if (!a.choice || a.choice->dtype != SDX_BOOL || a.choice->count != batch * keys)
            return bad(px->cx, px->node, "key_padding_mask does not fit batch and keys");
        a.choice_at[0] = keys;
        a.choice_at[3] = 1;
    }
    struct sdx_tensor *rows = NULL;
    struct sdx_heads h[3];
    SDX_TRY(sdx_heads_project(px, px->in[D_QUERY], D_Q_WEIGHT, NULL, &rows, &biased));
    h[0] = (struct sdx_heads){rows, 0, {width, a.size, batch * width, 1}};
    const int64_t q_dims[] = {batch, heads, queries, a.size};
    SDX_TRY(sdx_heads_add_bias(px, &h[0], px->in[D_BIAS], 0, q_dims));
    int64_t fresh = 0;
    if (!is_cached || !is_cross) {
        struct sdx_tensor *from = px->in[is_cross ? D_KEY : D_QUERY];
        fresh = from->dims[0];
        SDX_TRY(sdx_heads_project(px, from, D_KV_WEIGHT, NULL, &rows, &biased));
    }
    for (int i = 0; i < 2; i++) {
        h[1 + i] = (struct sdx_heads){rows, i * width, {2 * width, a.size, batch * 2 * width, 1}};
        SDX_TRY(decoder_cache(px, &a, cached, fresh, i, &h[1 + i]));
    }
    return sdx_heads_attention(px, &a, &h[0], &h[1], &h[2]);
}

static const struct sdx_op ops[] = {
    {"Attention", 1, 0, infer_projected, KERNEL(prepare_projected), .cost = cost_projected,
     .flags = SDX_OP_VIA_F32},
    {"DecoderMaskedSelfAttention", 1, 0, infer_projected, KERNEL(prepare_projected),
     .cost = cost_projected, .flags = SDX_OP_VIA_F32},
    {"QAttention", 1, 0, infer_projected, KERNEL(prepare_quantised), .cost = cost_projected,
     .flags = SDX_OP_VIA_F32},
    {"PackedAttention", 1, 0, infer_packed, KERNEL(prepare_packed_attention),
     .cost = cost_projected, .flags = SDX_OP_VIA_F32},
    {"PackedMultiHeadAttention", 1, 0, infer_packed, KERNEL(prepare_packed_heads),
     .flags = SDX_OP_VIA_F32},
    {"DecoderAttention", 1, 0, infer_decoder, KERNEL(prepare_decoder), .flags = SDX_OP_VIA_F32},
};

const struct sdx_op_family sdx_ops_contrib_projected = FAMILY("com.microsoft", ops);
