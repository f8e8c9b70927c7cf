/* SPDX-License-Identifier: Apache-2.0
 * GroupQueryAttention and SparseAttention of com.microsoft: several query heads share a key head,
 * each batch entry has a length of its own, the caches have room for more than they hold (or keep
 * the newest positions only), and may be of 8 or 4 bits. */
#include <math.h>

#include "kernels/vec.h"
#include "ops/attention_heads.h"
#include "ops/narrow.h"
#include "ops/product.h"
#include "tensor/convert.h"

enum role {
    Q,
    K,
    V,
    PAST_K,
    PAST_V,
    LENGTHS,
    TOTAL,
    COS,
    SIN,
    IDS,
    ADDED,
    SINK,
    K_SCALE,
    V_SCALE,
    Q_NORM,
    K_NORM,
    ROWS,    /* of SparseAttention: where rows of blocks begin in COLUMNS */
    COLUMNS, /* blocks that are seen */
    ROLES
};
/* Which input has a role; -1: the operator has none such. */
static const int8_t group_roles[ROLES] = {0, 1,  2,  3,  4,  5,  6,  7,  8,
                                          9, 10, 11, 12, 13, 14, 15, -1, -1};
static const int8_t sparse_roles[ROLES] = {0,  1,  2,  3,  4,  8,  7,  9, 10,
                                           -1, -1, -1, -1, -1, -1, -1, 5, 6};

/* Lengths < 0: not known. */
struct sizes {
    bool is_sparse, is_packed, slides, is_quantised;
    int bits;
    int64_t batch, heads, kv_heads, queries, size, past, capacity, total;
};

static int role_at(const struct sdx_ir_node *node, int role)
{
    return sdx_str_is(node->op_type, "SparseAttention") ? sparse_roles[role] : group_roles[role];
}

static enum sdx_status bad(struct sdx_context *cx, const struct sdx_ir_node *node, const char *what)
{
    return SDX_FAIL(cx, SDX_BAD_MODEL, "%.*s: %s", SDX_STR_ARG(node->op_type), what);
}

static bool has_quant(const struct sdx_ir_node *node, const char *name)
{
    const struct sdx_str type = sdx_ir_attr_str(node, name, "NONE");
    return type.len > 0 && !sdx_str_is(type, "NONE");
}

/* q, k, past: dims of rank 3, 3 and 4, NULL where not known (has_key: whether there is a key). */
static enum sdx_status read_sizes(struct sdx_context *cx, const struct sdx_ir_node *node,
                                  const int64_t *q, bool has_key, bool has_past,
                                  const int64_t *past, int64_t total, struct sizes *z)
{
    *z = (struct sizes){.batch = -1, .queries = -1, .size = -1, .total = total};
    z->is_sparse = sdx_str_is(node->op_type, "SparseAttention");
    z->heads = sdx_ir_attr_int(node, "num_heads", 0);
    z->kv_heads = sdx_ir_attr_int(node, "kv_num_heads", 0);
    z->is_packed = !has_key;
    z->slides = sdx_ir_attr_int(node, "sliding_window_cache", 0) != 0;
    z->is_quantised = has_quant(node, "k_quant_type") || has_quant(node, "v_quant_type");
    z->bits = (int)sdx_ir_attr_int(node, "kv_cache_bit_width", 8);
    if (z->bits == 0) z->bits = 8;
    if (z->heads < 1 || z->kv_heads < 1 || z->heads % z->kv_heads)
        return SDX_FAIL(cx, SDX_BAD_MODEL, "%.*s: %lld heads do not divide over %lld of keys",
                        SDX_STR_ARG(node->op_type), (long long)z->heads, (long long)z->kv_heads);
    if (z->is_quantised && (has_quant(node, "k_quant_type") != has_quant(node, "v_quant_type") ||
                            (z->bits != 8 && z->bits != 4)))
        return SDX_FAIL(cx, SDX_NOT_SUPPORTED, "%.*s: caches of %d bits, one of them not quantised",
                        SDX_STR_ARG(node->op_type), z->bits);
    if (q) {
        const int64_t all = z->heads + (z->is_packed ? 2 * z->kv_heads : 0);
        z->batch = q[0];
        z->queries = q[1];
        if (q[2] >= 0 && q[2] % all)
            return SDX_FAIL(cx, SDX_BAD_MODEL, "%.*s: %lld columns do not divide over %lld heads",
                            SDX_STR_ARG(node->op_type), (long long)q[2], (long long)all);
        if (q[2] >= 0) z->size = q[2] / all;
    }
    z->past = !has_past ? 0 : past ? past[2] : -1;
    z->capacity = total < 0 || z->past < 0 ? -1 : total > z->past ? total : z->past;
    if (z->slides || z->is_sparse) z->capacity = z->past;
    if (z->slides &&
        (!has_past || sdx_ir_attr_int(node, "local_window_size", -1) < 1 ||
         (past && past[2] >= 0 && past[2] < sdx_ir_attr_int(node, "local_window_size", -1))))
        return bad(cx, node, "a cache that slides wants local_window_size and as many rows");
    return SDX_OK;
}

static enum sdx_status infer_group(struct sdx_infer *ix)
{
    struct sizes z;
    const int at_past = role_at(ix->node, PAST_K), dtype = sdx_infer_dtype(ix, 0);
    const int64_t *q = sdx_infer_dims(ix, 0), *total = NULL, *past = sdx_infer_dims(ix, at_past);
    const bool has_past = sdx_infer_has(ix, at_past);
    int64_t count = 0;
    if ((q && sdx_infer_rank(ix, 0) != 3) || (has_past && past && sdx_infer_rank(ix, at_past) != 4))
        return bad(ix->cx, ix->node, "query and past_key must have rank 3 and 4");
    if (!sdx_infer_known_ints(ix, role_at(ix->node, TOTAL), &total, &count) || count != 1)
        total = NULL;
    SDX_TRY(read_sizes(ix->cx, ix->node, q, sdx_infer_has(ix, 1), has_past, has_past ? past : NULL,
                       total ? total[0] : -1, &z));
    int cache = has_past ? sdx_infer_dtype(ix, at_past) : dtype;
    if (z.is_quantised && !has_past) cache = z.bits == 4 ? SDX_U8 : SDX_I8;
    for (int k = 0; k < ix->count_out; k++)
        sdx_infer_set_dtype(ix, k, k == 1 || k == 2 ? cache : dtype);
    if (!q) return SDX_OK;
    const int64_t row = z.size < 0 || !z.is_quantised ? z.size : z.size * z.bits / 8;
    const int64_t y[] = {z.batch, z.queries, z.size < 0 ? -1 : z.heads * z.size};
    const int64_t present[] = {z.batch, z.kv_heads, z.capacity, row};
    const int64_t qk[] = {z.batch, z.heads, z.queries, z.total};
    SDX_TRY(sdx_infer_set_dims(ix, 0, 3, y));
    for (int k = 1; k < ix->count_out && k < 3; k++)
        SDX_TRY(sdx_infer_set_dims(ix, k, 4, present));
    return ix->count_out > 3 ? sdx_infer_set_dims(ix, 3, 4, qk) : SDX_OK;
}

static void cost_group(const struct sdx_infer *ix, struct sdx_cost *cost)
{
    const int64_t *y = ix->out[0].dims;
    const int64_t *present = ix->count_out > 1 ? ix->out[1].dims : NULL;
    const double keys = (double)(present ? present[2] : y[1]);
    cost->macs = 2 * (double)y[0] * (double)y[1] * (double)y[2] * keys;
    cost->flops = 2 * cost->macs;
}

/* ---- norms of queries and keys ---- */

struct norm {
    struct sdx_heads from;
    int64_t heads, rows, size;
    float epsilon;
};

/* One head of one batch entry. */
static enum sdx_status run_norm(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)x;
    const struct norm *p = step->params;
    const float *from = (const float *)step->in[0]->data + p->from.first +
                        part / p->heads * p->from.at[0] + part % p->heads * p->from.at[1];
    float *to = (float *)step->out[0]->data + part * p->rows * p->size;
    for (int64_t r = 0; r < p->rows; r++)
        sdx_vec()->f32_rms_norm(&(struct sdx_norm_rows){.x = from + r * p->from.at[2],
                                                        .scale = step->in[1]->data,
                                                        .y = to + r * p->size,
                                                        .n = (size_t)p->size,
                                                        .rows = 1,
                                                        .epsilon = p->epsilon});
    return SDX_OK;
}

static enum sdx_status normalise(struct sdx_prepare *px, const struct sizes *z, int64_t heads,
                                 struct sdx_tensor *weight, struct sdx_heads *h)
{
    const int64_t dims[] = {z->batch, heads, z->queries, z->size};
    struct norm *p = SDX_PREPARE_NEW(px, struct norm);
    struct sdx_tensor *to = p ? sdx_prepare_temp(px, SDX_F32, 4, dims) : NULL;
    if (!to) return px->cx->error.status;
    if (weight->count != z->size)
        return bad(px->cx, px->node, "weights of the norms do not fit the heads");
    *p = (struct norm){*h, heads, z->queries, z->size,
                       sdx_ir_attr_float(px->node, "qk_norm_epsilon", 1e-6f)};
    struct sdx_tensor *in[] = {h->t, weight};
    *h = sdx_heads_plain(to, 0, heads, z->queries, z->size);
    if (to->count == 0) return SDX_OK;
    return sdx_prepare_step_on(px, "attention_norm", run_norm, p, z->batch * heads, 0, 2, in, 1,
                               &to);
}

/* ---- caches of few bits ---- */

struct coded {
    struct sdx_heads from;
    int64_t heads, rows, size, past_rows, capacity, scale_step; /* 0: one scale for all */
    int bits;
    enum sdx_half half; /* of 16 bits, without scales */
};

static const float *scales_of(const struct coded *p, const struct sdx_tensor *scale, int64_t head)
{
    if (p->half) return NULL;
    return (const float *)scale->data + (p->scale_step ? head * p->size : 0);
}

/* Numbers to codes: round(x / scale), 4 bits: two in a byte, the first low, 8 is 0. */
static void encode(const struct coded *p, const float *x, const float *scale, uint8_t *to)
{
    if (p->half) {
        sdx_half_encode(p->half, x, (uint16_t *)(void *)to, p->size);
        return;
    }
    const float most = p->bits == 4 ? 7 : 127, least = -most - 1;
    for (int64_t i = 0; i < p->size; i++) {
        const float s = scale[p->scale_step ? i : 0];
        float y = s == 0 ? 0 : rintf(x[i] / s);
        y = y < least ? least : y > most ? most : y;
        if (p->bits == 8)
            to[i] = (uint8_t)(int8_t)y;
        else if (i % 2 == 0)
            to[i / 2] = (uint8_t)((int)y + 8);
        else
            to[i / 2] |= (uint8_t)(((int)y + 8) << 4);
    }
}

/* One key head of one batch entry: cached codes, then those of the new rows. */
static enum sdx_status run_encode(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)x;
    const struct coded *p = step->params;
    const int64_t batch = part / p->heads, head = part % p->heads;
    const int64_t past = ((const int32_t *)step->in[3]->data)[2 * batch + 1];
    const size_t row = (size_t)(p->size * p->bits / 8);
    const float *from = (const float *)step->in[0]->data + p->from.first + batch * p->from.at[0] +
                        head * p->from.at[1];
    uint8_t *to = (uint8_t *)step->out[0]->data + (size_t)(part * p->capacity) * row;
    if (step->in[1] && step->in[1]->data != step->out[0]->data && past > 0)
        memcpy(to, (const uint8_t *)step->in[1]->data + (size_t)(part * p->past_rows) * row,
               (size_t)past * row);
    for (int64_t r = 0; r < p->rows && past + r < p->capacity; r++)
        encode(p, from + r * p->from.at[2], scales_of(p, step->in[2], head),
               to + (size_t)(past + r) * row);
    const int64_t end = past + p->rows;
    if (end < p->capacity && (!step->in[1] || step->in[1]->data != step->out[0]->data))
        memset(to + (size_t)end * row, 0, (size_t)(p->capacity - end) * row);
    return SDX_OK;
}

/* The rows that hold keys, as numbers. */
static enum sdx_status run_decode(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)x;
    const struct coded *p = step->params;
    const float *scale = scales_of(p, step->in[1], part % p->heads);
    const int64_t keys = ((const int32_t *)step->in[2]->data)[2 * (part / p->heads)];
    const uint8_t *from =
        (const uint8_t *)step->in[0]->data + part * p->capacity * (p->size * p->bits / 8);
    float *to = (float *)step->out[0]->data + part * p->capacity * p->size;
    const size_t n = (size_t)p->size;
    if (p->half) {
        sdx_half_decode(p->half, (const uint16_t *)(const void *)from, to, keys * p->size);
        return SDX_OK;
    }
    for (int64_t r = 0; r < keys; r++, to += p->size, from += p->size * p->bits / 8) {
        if (p->bits == 8) {
            sdx_vec()->s8_to_f32((const int8_t *)from, 1, 0, to, n);
        } else {
            for (int64_t i = 0; i < p->size; i++)
                to[i] = (float)((from[i / 2] >> (i % 2 * 4) & 15) - 8);
        }
        sdx_vec()->f32_mul(to, 1, scale, p->scale_step ? 1 : 0, to, n);
    }
    return SDX_OK;
}

/* Codes in caches, of `dtype` and `row` elements, and what they stand for. */
static enum sdx_status add_coded(struct sdx_prepare *px, const struct sizes *z, int i,
                                 struct coded coded, int dtype, int64_t row,
                                 struct sdx_tensor *scale, struct sdx_tensor *places,
                                 struct sdx_heads *h)
{
    struct sdx_tensor *past = sdx_heads_input(px, role_at(px->node, PAST_K + i));
    struct sdx_tensor *present = sdx_heads_output(px, 1 + i);
    struct coded *p = SDX_PREPARE_NEW(px, struct coded);
    const int64_t dims[] = {z->batch, z->kv_heads, z->capacity, row};
    const int64_t wide[] = {z->batch, z->kv_heads, z->capacity, z->size};
    if (!p) return px->cx->error.status;
    if (past && past->count != z->batch * z->kv_heads * z->past * row)
        return bad(px->cx, px->node, "the cache does not fit the keys");
    if (past && past->dtype != dtype)
        return SDX_FAIL(px->cx, SDX_NOT_SUPPORTED, "%.*s: a cache of %s", SDX_HEADS_OP(px),
                        sdx_dtype_short_name(past->dtype));
    *p = coded;
    p->from = *h;
    p->heads = z->kv_heads;
    p->rows = z->queries;
    p->size = z->size;
    p->past_rows = z->past;
    p->capacity = z->capacity;
    if (!present) present = sdx_prepare_temp(px, dtype, 4, dims);
    struct sdx_tensor *to = present ? sdx_prepare_temp(px, SDX_F32, 4, wide) : NULL;
    if (!to) return px->cx->error.status;
    struct sdx_tensor *in[] = {h->t, past, scale, places}, *in2[] = {present, scale, places};
    const int64_t parts = z->batch * z->kv_heads;
    *h = sdx_heads_plain(to, 0, z->kv_heads, z->capacity, z->size);
    if (to->count == 0) return SDX_OK;
    SDX_TRY(sdx_prepare_step_on(px, "cache_encode", run_encode, p, parts, 0, 4, in, 1, &present));
    return sdx_prepare_step_on(px, "cache_decode", run_decode, p, parts, 0, 3, in2, 1, &to);
}

static enum sdx_status join_coded(struct sdx_prepare *px, const struct sizes *z, int i,
                                  struct sdx_tensor *places, struct sdx_heads *h)
{
    struct sdx_tensor *scale = sdx_heads_input(px, role_at(px->node, K_SCALE + i));
    if (!scale || (scale->count != 1 && scale->count != z->kv_heads * z->size) || z->size % 2)
        return bad(px->cx, px->node, "scales do not fit the keys");
    const struct coded coded = {.scale_step = scale->count > 1, .bits = z->bits};
    return add_coded(px, z, i, coded, z->bits == 4 ? SDX_U8 : SDX_I8, z->size * z->bits / 8, scale,
                     places, h);
}

/* ---- caches that slide ---- */

struct slide {
    int64_t heads, rows, capacity, size, window, staged;
};

/* One key head of one batch entry: the newest of the rows that were put together. */
static enum sdx_status run_slide(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)x;
    const struct slide *p = step->params;
    const int64_t batch = part / p->heads, all = ((const int32_t *)step->in[2]->data)[batch] + 1;
    const int64_t keys = ((const int32_t *)step->in[1]->data)[2 * batch];
    const int64_t kept = sdx_heads_resident(all, p->capacity, p->window);
    const float *from =
        (const float *)step->in[0]->data + (part * p->staged + keys - kept) * p->size;
    float *to = (float *)step->out[0]->data + part * p->capacity * p->size;
    memcpy(to, from, (size_t)(kept * p->size) * sizeof *to);
    memset(to + kept * p->size, 0, (size_t)((p->capacity - kept) * p->size) * sizeof *to);
    return SDX_OK;
}

/* ---- keys and values ---- */

static enum sdx_status join(struct sdx_prepare *px, const struct sizes *z, int i,
                            struct sdx_tensor *places, struct sdx_heads *h)
{
    struct sdx_tensor *past = sdx_heads_input(px, role_at(px->node, PAST_K + i));
    struct sdx_tensor *present = sdx_heads_output(px, 1 + i), *to = present;
    const struct sdx_tensor *cache = past ? past : present;
    const struct coded narrow = {.bits = 16, .half = cache ? sdx_half_of(cache) : SDX_HALF_NONE};
    if (z->is_quantised) return join_coded(px, z, i, places, h);
    if (narrow.half && !z->slides)
        return add_coded(px, z, i, narrow, cache->dtype, z->size, NULL, places, h);
    if (narrow.half && past && !(past = sdx_prepare_converted(px, past, SDX_F32)))
        return px->cx->error.status;
    const int64_t rows = z->slides ? z->capacity + z->queries : z->capacity;
    const int64_t dims[] = {z->batch, z->kv_heads, rows, z->size};
    if (past && (past->rank != 4 || past->dtype != SDX_F32 ||
                 past->count != z->batch * z->kv_heads * z->past * z->size))
        return bad(px->cx, px->node, "the cache does not fit the keys");
    if (!to || z->slides) to = sdx_prepare_temp(px, SDX_F32, 4, dims);
    if (!to) return px->cx->error.status;
    struct sdx_place p = {.from = *h,
                          .to = sdx_heads_plain(to, 0, z->kv_heads, rows, z->size),
                          .places = places,
                          .batch = z->batch,
                          .heads = z->kv_heads,
                          .rows = z->queries,
                          .size = z->size,
                          .past_rows = z->past,
                          .capacity = rows};
    if (past) p.past = sdx_heads_plain(past, 0, z->kv_heads, z->past, z->size);
    *h = p.to;
    SDX_TRY(sdx_heads_place(px, &p));
    if (!z->slides || !present || present->count == 0) return SDX_OK;
    struct sdx_tensor *slid = present;
    if (narrow.half) slid = sdx_prepare_temp(px, SDX_F32, present->rank, present->dims);
    if (!slid) return px->cx->error.status;
    struct slide *s = SDX_PREPARE_NEW(px, struct slide);
    if (!s) return px->cx->error.status;
    *s = (struct slide){z->kv_heads,
                        z->queries,
                        z->capacity,
                        z->size,
                        sdx_ir_attr_int(px->node, "local_window_size", 0),
                        rows};
    struct sdx_tensor *in[] = {to, places, px->in[role_at(px->node, LENGTHS)]};
    SDX_TRY(sdx_prepare_step_on(px, "cache_slide", run_slide, s, z->batch * z->kv_heads, 0, 3, in,
                                1, &slid));
    return narrow.half ? sdx_prepare_convert(px, slid, present) : SDX_OK;
}

static enum sdx_status turn(struct sdx_prepare *px, const struct sizes *z, bool is_prompt,
                            int64_t heads, struct sdx_tensor *places, struct sdx_heads *h)
{
    const int64_t dims[] = {z->batch, heads, z->queries, z->size};
    struct sdx_tensor *to = sdx_prepare_temp(px, SDX_F32, 4, dims);
    if (!to) return px->cx->error.status;
    struct sdx_rotary r = {.from = *h,
                           .to = sdx_heads_plain(to, 0, heads, z->queries, z->size),
                           .cosine = sdx_heads_input(px, role_at(px->node, COS)),
                           .sine = sdx_heads_input(px, role_at(px->node, SIN)),
                           .ids = sdx_heads_input(px, role_at(px->node, IDS)),
                           .places = places,
                           .batch = z->batch,
                           .heads = heads,
                           .rows = z->queries,
                           .size = z->size,
                           .ids_is_first = is_prompt};
    if (!r.cosine || !r.sine || r.cosine->rank != 2)
        return bad(px->cx, px->node, "do_rotary wants cos_cache and sin_cache");
    if (r.ids && (r.ids->dtype != SDX_I64 || r.ids->count < 1))
        return bad(px->cx, px->node, "position_ids must be int64");
    r.turned = 2 * r.cosine->dims[1];
    r.is_interleaved = sdx_ir_attr_int(px->node, "rotary_interleaved", 0) != 0;
    *h = r.to;
    return sdx_heads_rotate(px, &r);
}

/* Where q, k and v lie. */
static enum sdx_status find_operands(struct sdx_prepare *px, const struct sizes *z,
                                     struct sdx_heads h[3])
{
    const int64_t heads[] = {z->heads, z->kv_heads, z->kv_heads};
    int64_t first = 0;
    for (int i = 0; i < 3; i++) {
        struct sdx_tensor *t = px->in[z->is_packed ? 0 : i];
        const int64_t width = heads[i] * z->size;
        if (!z->is_packed && (!t || t->rank != 3 || t->dims[2] != width ||
                              t->count != z->batch * z->queries * width))
            return bad(px->cx, px->node, "shapes of query, key and value do not agree");
        const int64_t all = z->is_packed ? t->dims[2] : width;
        h[i] = sdx_heads_of_rows(t, first, z->queries, z->size, all);
        if (z->is_packed) first += width;
    }
    return SDX_OK;
}

/* ---- blocks that are seen ---- */

struct blocks {
    int64_t layouts, most_rows, most_columns, size, queries, keys;
};

/* One layout of one batch entry: 0 where a key is in a block that is seen, -inf elsewhere. */
static enum sdx_status run_blocks(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct blocks *p = step->params;
    const int64_t heads = step->out[0]->dims[1], batch = part / heads;
    const int64_t layout = part % heads % p->layouts;
    const int32_t *rows = (const int32_t *)step->in[0]->data + layout * p->most_rows;
    const int32_t *columns = (const int32_t *)step->in[1]->data + layout * p->most_columns;
    const int64_t past = ((const int32_t *)step->in[2]->data)[2 * batch + 1];
    float *to = (float *)step->out[0]->data + part * p->queries * p->keys;
    for (int64_t q = 0; q < p->queries; q++, to += p->keys) {
        const int64_t row = (past + q) / p->size;
        for (int64_t j = 0; j < p->keys; j++)
            to[j] = -INFINITY;
        if (row + 1 >= p->most_rows) continue; /* padding behind the end */
        if (rows[row] < 0 || rows[row + 1] > p->most_columns)
            return SDX_FAIL(x->cx, SDX_RUN_FAILED,
                            "SparseAttention: block_row_indices[%lld] is out of range",
                            (long long)row);
        for (int64_t c = rows[row]; c < rows[row + 1]; c++)
            for (int64_t j = columns[c] * p->size;
                 columns[c] >= 0 && j < p->keys && j < (columns[c] + 1) * p->size; j++)
                to[j] = 0;
    }
    return SDX_OK;
}

static enum sdx_status see_blocks(struct sdx_prepare *px, struct sdx_attention *a)
{
    struct sdx_tensor *in[] = {px->in[sparse_roles[ROWS]], px->in[sparse_roles[COLUMNS]],
                               a->places};
    struct blocks *p = SDX_PREPARE_NEW(px, struct blocks);
    if (!p) return px->cx->error.status;
    p->size = sdx_ir_attr_int(px->node, "sparse_block_size", 0);
    if (p->size < 1 || in[0]->rank != 2 || in[1]->rank != 2 || in[0]->dims[0] != in[1]->dims[0] ||
        in[0]->dtype != SDX_I32 || in[1]->dtype != SDX_I32 || in[0]->dims[0] < 1 ||
        a->heads % in[0]->dims[0] || (in[0]->dims[1] - 1) * p->size < a->keys)
        return bad(px->cx, px->node, "indices of blocks do not fit heads and keys");
    p->layouts = in[0]->dims[0];
    p->most_rows = in[0]->dims[1];
    p->most_columns = in[1]->dims[1];
    p->queries = a->queries;
    p->keys = a->keys;
    const int64_t heads = p->layouts > 1 ? a->heads : 1, each = a->queries * a->keys;
    const int64_t dims[] = {a->batch, heads, a->queries, a->keys};
    a->mask = sdx_prepare_temp(px, SDX_F32, 4, dims);
    if (!a->mask) return px->cx->error.status;
    const int64_t at[] = {heads * each, heads > 1 ? each : 0, a->keys, 1};
    memcpy(a->mask_at, at, sizeof at);
    if (a->mask->count == 0) return SDX_OK;
    return sdx_prepare_step_on(px, "sparse_mask", run_blocks, p, a->batch * heads, 0, 3, in, 1,
                               &a->mask);
}

/* ---- the operators ---- */

/* The score of a key without value, for each head. */
static enum sdx_status find_sinks(struct sdx_prepare *px, struct sdx_attention *a)
{
    a->sinks = sdx_heads_input(px, role_at(px->node, SINK));
    if (!a->sinks && sdx_ir_attr_int(px->node, "smooth_softmax", 0) == 1) {
        a->sinks = sdx_heads_constant(px, 1, &a->heads);
        if (!a->sinks) return px->cx->error.status;
        memset(a->sinks->data, 0, a->sinks->bytes);
    }
    if (a->sinks && a->sinks->count != a->heads)
        return bad(px->cx, px->node, "head_sink does not fit num_heads");
    return SDX_OK;
}

/* Places among the keys that are read, and of the rotary positions. */
static enum sdx_status find_places(struct sdx_prepare *px, const struct sizes *z, bool is_prompt,
                                   struct sdx_attention *a, struct sdx_tensor **rotary)
{
    struct sdx_tensor *lengths = px->in[role_at(px->node, LENGTHS)];
    struct sdx_places p = {.kind = is_prompt ? SDX_PLACES_PROMPT : SDX_PLACES_LAST,
                           .lacks = z->is_sparse ? 0 : 1,
                           .batch = z->batch,
                           .fresh = z->queries,
                           .limit = z->slides ? INT32_MAX : a->keys};
    *rotary = sdx_heads_places(px, lengths, &p);
    a->places = *rotary;
    if (*rotary && z->slides) {
        p.kind = is_prompt ? SDX_PLACES_WINDOW_PROMPT : SDX_PLACES_WINDOW;
        p.limit = a->keys;
        p.rows = z->capacity;
        p.window = sdx_ir_attr_int(px->node, "local_window_size", 0);
        a->places = sdx_heads_places(px, lengths, &p);
    }
    return a->places ? SDX_OK : px->cx->error.status;
}

static enum sdx_status check(struct sdx_prepare *px, const struct sizes *z)
{
    const int64_t window = sdx_ir_attr_int(px->node, "local_window_size", -1);
    if (px->in[0]->dtype != SDX_F32)
        return SDX_FAIL(px->cx, SDX_NOT_SUPPORTED, "%.*s: element type %s", SDX_HEADS_OP(px),
                        sdx_dtype_short_name(px->in[0]->dtype));
    if (z->total < z->queries || z->total > z->capacity + (z->slides ? z->total : 0))
        return SDX_FAIL(
            px->cx, SDX_BAD_MODEL, "%.*s: total_sequence_length is %lld, expected %lld to %lld",
            SDX_HEADS_OP(px), (long long)z->total, (long long)z->queries, (long long)z->capacity);
    if (window > 0 && sdx_ir_attr_int(px->node, "causal", 1) == 0)
        return bad(px->cx, px->node, "local_window_size wants causal");
    if (z->slides && (z->is_quantised || sdx_prepare_has(px, group_roles[ADDED])))
        return SDX_FAIL(px->cx, SDX_NOT_SUPPORTED,
                        "%.*s: a cache that slides, with few bits or attention_bias",
                        SDX_HEADS_OP(px));
    if (sdx_heads_input(px, role_at(px->node, Q_NORM)) != NULL &&
        !sdx_heads_input(px, role_at(px->node, K_NORM)))
        return bad(px->cx, px->node, "q_norm_weight and k_norm_weight must be given together");
    return SDX_OK;
}

static enum sdx_status prepare_group(struct sdx_prepare *px)
{
    struct sizes z;
    struct sdx_heads h[3];
    const struct sdx_tensor *past = sdx_heads_input(px, role_at(px->node, PAST_K));
    const struct sdx_tensor *total = sdx_prepare_value(px, role_at(px->node, TOTAL));
    if (!total || total->count != 1)
        return bad(px->cx, px->node, "total_sequence_length must be one number");
    SDX_TRY(read_sizes(px->cx, px->node, px->in[0]->dims, sdx_prepare_has(px, 1), past != NULL,
                       past ? past->dims : NULL, sdx_load_i64(total->dtype, total->data, 0), &z));
    SDX_TRY(check(px, &z));
    SDX_TRY(find_operands(px, &z, h));
    const int64_t mode = sdx_ir_attr_int(px->node, "qk_output", 0);
    const int64_t window = sdx_ir_attr_int(px->node, "local_window_size", -1);
    struct sdx_attention a = {.y = px->out[0],
                              .batch = z.batch,
                              .heads = z.heads,
                              .heads_per_key = z.heads / z.kv_heads,
                              .queries = z.queries,
                              .keys = z.slides ? z.capacity + z.queries : z.capacity,
                              .size = z.size,
                              .value_size = z.size,
                              .left = window > 0 ? window : 0,
                              .scale = sdx_ir_attr_float(px->node, "scale", 0),
                              .softcap = sdx_ir_attr_float(px->node, "softcap", 0),
                              .unseen = mode == 2 ? -INFINITY : 0,
                              .empty_is_zero = true};
    if (a.scale == 0) a.scale = 1 / sqrtf((float)z.size);
    a.is_causal = sdx_ir_attr_int(px->node, "causal", 1) != 0;
    a.scores = mode > 0 ? sdx_heads_output(px, 3) : NULL;
    if (a.scores || z.is_sparse) a.keys = z.total;
    if (a.scores && z.slides)
        return SDX_FAIL(px->cx, SDX_NOT_SUPPORTED, "%.*s: qk_output of a cache that slides",
                        SDX_HEADS_OP(px));
    a.mask_keys = a.keys;
    struct sdx_tensor *added = sdx_heads_input(px, role_at(px->node, ADDED)), *rotary = NULL;
    if (added && added->rank == 4 && added->dims[3] < a.keys && !a.scores)
        a.keys = a.mask_keys = added->dims[3];
    const bool is_prompt = z.queries == z.total;
    SDX_TRY(find_places(px, &z, is_prompt, &a, &rotary));
    SDX_TRY(sdx_heads_bias(px, added, &a));
    SDX_TRY(find_sinks(px, &a));
    if (z.is_sparse) SDX_TRY(see_blocks(px, &a));
    for (int i = 0; i < 2; i++) {
        const int64_t heads = i ? z.kv_heads : z.heads;
        struct sdx_tensor *weight = sdx_heads_input(px, role_at(px->node, Q_NORM + i));
        if (weight) SDX_TRY(normalise(px, &z, heads, weight, &h[i]));
        if (sdx_ir_attr_int(px->node, "do_rotary", 0))
            SDX_TRY(turn(px, &z, is_prompt, heads, rotary, &h[i]));
    }
    for (int i = 0; i < 2; i++)
        SDX_TRY(join(px, &z, i, a.places, &h[1 + i]));
    SDX_TRY(sdx_heads_attention(px, &a, &h[0], &h[1], &h[2]));
    return mode == 2 && a.scores ? sdx_heads_softmax(px, a.scores, a.sinks) : SDX_OK;
}

static const struct sdx_op ops[] = {
    {"GroupQueryAttention", 1, 0, infer_group, KERNEL(prepare_group), .cost = cost_group,
     .flags = SDX_OP_VIA_F32 | SDX_OP_NARROW_CACHES, .note = "no caches of float8"},
    {"SparseAttention", 1, 0, infer_group, KERNEL(prepare_group), .cost = cost_group,
     .flags = SDX_OP_VIA_F32 | SDX_OP_NARROW_CACHES},
};

const struct sdx_op_family sdx_ops_contrib_group = FAMILY("com.microsoft", ops);
