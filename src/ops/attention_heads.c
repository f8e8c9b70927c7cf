/* SPDX-License-Identifier: Apache-2.0
 * Steps around the attention step: rows into caches, rotary positions, masks and places. */
#include "ops/attention_heads.h"

#include <math.h>

#include "kernels/vec.h"
#include "ops/product.h"
#include "ops/rotate.h"
#include "ops/step_host.h"
#include "tensor/convert.h"

struct sdx_heads sdx_heads_of_rows(struct sdx_tensor *t, int64_t first, int64_t length,
                                   int64_t size, int64_t width)
{
    return (struct sdx_heads){t, first, {length * width, size, width, 1}};
}

struct sdx_heads sdx_heads_plain(struct sdx_tensor *t, int64_t first, int64_t heads, int64_t length,
                                 int64_t size)
{
    return (struct sdx_heads){t, first, {heads * length * size, length * size, size, 1}};
}

/* Is [batch, heads, rows, size] inside the tensor? */
static bool covers(const struct sdx_heads *h, int64_t batch, int64_t heads, int64_t rows,
                   int64_t size)
{
    if (batch < 1 || heads < 1 || rows < 1 || size < 1) return true;
    const int64_t last = h->first + (batch - 1) * h->at[0] + (heads - 1) * h->at[1] +
                         (rows - 1) * h->at[2] + (size - 1) * h->at[3];
    return h->t->dtype == SDX_F32 && last < h->t->count;
}

static enum sdx_status misfit(struct sdx_prepare *px)
{
    return SDX_FAIL(px->cx, SDX_BAD_MODEL,
                    "%.*s: shapes or types of queries, keys, values, bias and caches do not agree",
                    SDX_HEADS_OP(px));
}

static float *head_at(const struct sdx_heads *h, const struct sdx_tensor *t, int64_t batch,
                      int64_t head)
{
    return (float *)t->data + h->first + batch * h->at[0] + head * h->at[1];
}

/* ---- rows behind cached ones ---- */

enum { PLACE_FROM, PLACE_BIAS, PLACE_PAST, PLACE_PLACES, PLACE_BEAMS, PLACE_IN };

/* Row r of a head of a cache: where its column c is depends on `split`. */
static float *cache_at(const struct sdx_place *p, float *head, int64_t rows, int64_t r, int64_t c)
{
    if (p->split <= 0) return head + r * p->size + c;
    return head + c / p->split * p->split * rows + r * p->split + c % p->split;
}

/* Columns that lie side by side in `to`. */
static int64_t run_of(const struct sdx_place *p)
{
    return p->split > 0 ? p->split : p->size;
}

static float *to_at(const struct sdx_place *p, float *head, int64_t r, int64_t c)
{
    return p->to_is_plain ? head + r * p->size + c : cache_at(p, head, p->capacity, r, c);
}

static void copy_past(const struct sdx_place *p, const struct sdx_step *step, int64_t batch,
                      int64_t head, int64_t rows)
{
    const struct sdx_tensor *beams = step->in[PLACE_BEAMS], *past = step->in[PLACE_PAST];
    float *to = head_at(&p->to, step->out[0], batch, head);
    float *from = head_at(&p->past, past, batch, head);
    const int64_t run = run_of(p);
    if (from == to || rows <= 0) return;
    if (!beams && p->split <= 0) {
        memcpy(to, from, (size_t)(rows * p->size) * sizeof *to);
        return;
    }
    const int32_t *whose = beams ? (const int32_t *)beams->data + batch * p->capacity : NULL;
    for (int64_t r = 0; r < rows; r++) {
        int64_t beam = whose ? whose[r] : 0;
        if (beam < 0 || beam >= p->width) beam = 0;
        if (whose) from = head_at(&p->past, past, batch / p->width * p->width + beam, head);
        for (int64_t c = 0; c < p->size; c += run)
            memcpy(to_at(p, to, r, c), cache_at(p, from, p->past_rows, r, c),
                   (size_t)run * sizeof *to);
    }
}

/* One head of one batch entry. */
static enum sdx_status run_place(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)x;
    const struct sdx_place *p = step->params;
    const int64_t batch = part / p->heads, head = part % p->heads, run = run_of(p);
    const float *from = head_at(&p->from, step->in[PLACE_FROM], batch, head);
    const float *bias = NULL;
    const size_t n = (size_t)run;
    int64_t past = step->in[PLACE_PAST] ? p->past_rows : 0;
    if (step->in[PLACE_BIAS])
        bias = (const float *)step->in[PLACE_BIAS]->data + p->bias_first + head * p->size;
    if (step->in[PLACE_PLACES])
        past = ((const int32_t *)step->in[PLACE_PLACES]->data)[2 * batch + 1];
    if (step->in[PLACE_PAST]) copy_past(p, step, batch, head, past);
    float *to = head_at(&p->to, step->out[0], batch, head);
    for (int64_t r = 0; r < p->rows && past + r < p->capacity; r++) {
        for (int64_t c = 0; c < p->size; c += run) {
            const float *row = from + r * p->from.at[2] + c;
            if (bias)
                sdx_vec()->f32_add(row, 1, bias + c, 1, to_at(p, to, past + r, c), n);
            else
                memcpy(to_at(p, to, past + r, c), row, n * sizeof *to);
        }
    }
    const bool is_shared = step->in[PLACE_PAST] && step->in[PLACE_PAST]->data == step->out[0]->data;
    for (int64_t r = past + p->rows; !is_shared && r < p->capacity; r++)
        for (int64_t c = 0; c < p->size; c += run)
            memset(to_at(p, to, r, c), 0, n * sizeof *to);
    return SDX_OK;
}

enum sdx_status sdx_heads_place(struct sdx_prepare *px, const struct sdx_place *place)
{
    struct sdx_place *p = SDX_PREPARE_NEW(px, struct sdx_place);
    if (!p) return SDX_FAIL_MEMORY(px->cx);
    *p = *place;
    SDX_ASSERT(p->from.at[3] == 1 && p->to.at[2] == p->size &&
               (!p->past.t || p->past.at[2] == p->size));
    if (!covers(&p->from, p->batch, p->heads, p->rows, p->size) ||
        !covers(&p->to, p->batch, p->heads, p->capacity, p->size) ||
        (p->past.t && !covers(&p->past, p->batch, p->heads, p->past_rows, p->size)) ||
        (p->bias &&
         (p->bias->dtype != SDX_F32 || p->bias->count < p->bias_first + p->heads * p->size)) ||
        (!p->places && p->past_rows + p->rows > p->capacity))
        return misfit(px);
    struct sdx_tensor *in[PLACE_IN] = {p->from.t, p->bias, p->past.t, p->places, p->beams};
    if (p->to.t->count == 0) return SDX_OK;
    return sdx_prepare_step_on(px, "attention_rows", run_place, p, p->batch * p->heads, 0, PLACE_IN,
                               in, 1, &p->to.t);
}

enum sdx_status sdx_heads_add_bias(struct sdx_prepare *px, struct sdx_heads *h,
                                   struct sdx_tensor *bias, int64_t bias_first,
                                   const int64_t dims[4])
{
    struct sdx_tensor *t = sdx_prepare_temp(px, SDX_F32, 4, dims);
    if (!t) return px->cx->error.status;
    const struct sdx_place place = {.from = *h,
                                    .to = sdx_heads_plain(t, 0, dims[1], dims[2], dims[3]),
                                    .bias = bias,
                                    .bias_first = bias_first,
                                    .batch = dims[0],
                                    .heads = dims[1],
                                    .rows = dims[2],
                                    .size = dims[3],
                                    .capacity = dims[2]};
    *h = place.to;
    return sdx_heads_place(px, &place);
}

/* ---- rotary positions ---- */

enum { ROTARY_FROM, ROTARY_COS, ROTARY_SIN, ROTARY_IDS, ROTARY_PLACES, ROTARY_IN };
static struct sdx_rotate rows_of(const struct sdx_rotary *p)
{
    return (struct sdx_rotate){
        .size = p->size, .turned = p->turned, .is_interleaved = p->is_interleaved};
}

/* One row of one batch entry, all heads. */
static enum sdx_status run_rotate(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct sdx_rotary *p = step->params;
    const int64_t batch = part / p->rows, r = part % p->rows;
    const int64_t half = step->in[ROTARY_COS]->dims[1];
    const struct sdx_tensor *ids = step->in[ROTARY_IDS], *places = step->in[ROTARY_PLACES];
    int64_t row = p->base + r;
    if (places) row += ((const int32_t *)places->data)[2 * batch + 1];
    if (ids) row = ((const int64_t *)ids->data)[p->ids_is_first ? 0 : part];
    if (ids && p->ids_is_first) row += r;
    if (row < 0 || row >= p->limit)
        return SDX_FAIL(x->cx, SDX_RUN_FAILED,
                        "rotary position %lld is not in a cache of %lld rows", (long long)row,
                        (long long)p->limit);
    const float *cosine = (const float *)step->in[ROTARY_COS]->data + row * half;
    const float *sine = (const float *)step->in[ROTARY_SIN]->data + row * half;
    struct sdx_rotate rotate = rows_of(p);
    sdx_rotate_angles(&rotate, cosine, sine, x->scratch);
    for (int64_t h = 0; h < p->heads; h++)
        sdx_rotate_row(&rotate,
                       head_at(&p->from, step->in[ROTARY_FROM], batch, h) + r * p->from.at[2],
                       head_at(&p->to, step->out[0], batch, h) + r * p->to.at[2]);
    return SDX_OK;
}

enum sdx_status sdx_heads_rotate(struct sdx_prepare *px, const struct sdx_rotary *rotary)
{
    struct sdx_rotary *p = SDX_PREPARE_NEW(px, struct sdx_rotary);
    if (!p) return SDX_FAIL_MEMORY(px->cx);
    *p = *rotary;
    if (p->turned < 0 || p->turned > p->size || p->turned % 2 || p->cosine->rank != 2 ||
        p->sine->count != p->cosine->count || p->sine->rank != 2 ||
        p->cosine->dims[1] < p->turned / 2)
        return SDX_FAIL(px->cx, SDX_BAD_MODEL,
                        "%.*s: caches of cosines and sines do not fit %lld columns",
                        SDX_HEADS_OP(px), (long long)p->turned);
    if (p->ids && p->ids->count != (p->ids_is_first ? p->ids->count : p->batch * p->rows))
        return SDX_FAIL(px->cx, SDX_BAD_MODEL, "%.*s: position_ids has %lld values, expected %lld",
                        SDX_HEADS_OP(px), (long long)p->ids->count,
                        (long long)(p->batch * p->rows));
    if (!covers(&p->from, p->batch, p->heads, p->rows, p->size) ||
        !covers(&p->to, p->batch, p->heads, p->rows, p->size) || p->cosine->dtype != SDX_F32 ||
        p->sine->dtype != SDX_F32 || (p->ids && p->ids->dtype != SDX_I64))
        return misfit(px);
    p->limit = p->cosine->dims[0];
    struct sdx_tensor *in[ROTARY_IN] = {p->from.t, p->cosine, p->sine, p->ids, p->places};
    if (p->to.t->count == 0) return SDX_OK;
    const struct sdx_rotate rotate = rows_of(p);
    return sdx_prepare_step_on(px, "rotary", run_rotate, p, p->batch * p->rows,
                               sdx_rotate_scratch(&rotate), ROTARY_IN, in, 1, &p->to.t);
}

/* ---- masks ---- */

struct mask {
    int rank;
    float filter;
    int64_t rows, keys, past, most;
    bool has_begin;
};

/* One batch entry. */
static enum sdx_status run_mask(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)x;
    const struct mask *p = step->params;
    const int32_t *mask = step->in[0]->data;
    float *to = (float *)step->out[0]->data + part * p->rows * p->keys;
    if (p->rank == 1) {
        const int64_t end = mask[part], begin = p->has_begin ? mask[part + step->parts] : 0;
        for (int64_t j = 0; j < p->keys; j++)
            to[j] = j >= begin && j < end ? 0 : p->filter;
        return SDX_OK;
    }
    const int64_t width = p->rank == 4 ? p->most : p->keys;
    mask += part * (p->rank == 4 ? p->most : p->rows) * width + p->past * width;
    for (int64_t r = 0; r < p->rows; r++)
        for (int64_t j = 0; j < p->keys; j++)
            to[r * p->keys + j] = mask[r * width + j] > 0 ? 0 : p->filter;
    return SDX_OK;
}

enum sdx_status sdx_heads_mask(struct sdx_prepare *px, struct sdx_tensor *mask, float filter,
                               int64_t past, struct sdx_attention *a)
{
    if (!mask) return SDX_OK;
    struct mask *p = SDX_PREPARE_NEW(px, struct mask);
    if (!p) return SDX_FAIL_MEMORY(px->cx);
    const int64_t *d = mask->dims, batch = a->batch;
    *p = (struct mask){.rank = mask->rank, .filter = filter, .rows = 1, .keys = a->mask_keys};
    bool fits = false;
    if (p->rank == 1) {
        p->has_begin = d[0] == 2 * batch;
        fits = d[0] == batch || p->has_begin || d[0] == 3 * batch + 2;
    } else if (p->rank == 2) {
        fits = d[0] == batch && (d[1] == a->keys || (a->places && d[1] <= a->keys));
        p->keys = d[1];
    } else if (p->rank == 3) {
        fits = d[0] == batch && d[1] == a->queries && d[2] == a->keys;
        p->rows = a->queries;
    } else if (p->rank == 4) {
        fits = d[0] == batch && d[1] == 1 && d[2] == d[3] && d[2] >= past + a->queries &&
               d[3] >= a->keys;
        p->rows = a->queries;
        p->past = past;
        p->most = d[3];
    }
    if (!fits || mask->dtype != SDX_I32)
        return SDX_FAIL(px->cx, SDX_BAD_MODEL,
                        "%.*s: a mask of rank %d does not fit batch %lld, %lld queries, %lld keys",
                        SDX_HEADS_OP(px), mask->rank, (long long)batch, (long long)a->queries,
                        (long long)a->keys);
    const int64_t dims[] = {batch, p->rows, p->keys};
    a->mask = sdx_prepare_temp(px, SDX_F32, 3, dims);
    if (!a->mask) return px->cx->error.status;
    const int64_t at[] = {p->rows * p->keys, 0, p->rows > 1 ? p->keys : 0, 1};
    memcpy(a->mask_at, at, sizeof at);
    if (a->mask->count == 0) return SDX_OK;
    return sdx_prepare_step_on(px, "attention_mask", run_mask, p, batch, 0, 1, &mask, 1, &a->mask);
}

enum sdx_status sdx_heads_bias(struct sdx_prepare *px, struct sdx_tensor *bias,
                               struct sdx_attention *a)
{
    if (!bias) return SDX_OK;
    const int64_t *d = bias->dims;
    const bool fits = bias->rank == 4 && (d[0] == 1 || d[0] == a->batch) &&
                      (d[1] == 1 || d[1] == a->heads) && d[2] == a->queries &&
                      (d[3] == a->keys || a->places) && bias->dtype == SDX_F32;
    if (!fits)
        return SDX_FAIL(px->cx, SDX_BAD_MODEL,
                        "%.*s: attention_bias does not fit %lld heads, %lld queries, %lld keys",
                        SDX_HEADS_OP(px), (long long)a->heads, (long long)a->queries,
                        (long long)a->keys);
    const int64_t each = d[2] * d[3];
    const int64_t at[] = {d[0] == 1 ? 0 : d[1] * each, d[1] == 1 ? 0 : each, d[3], 1};
    a->more = bias;
    memcpy(a->more_at, at, sizeof at);
    return SDX_OK;
}

/* ---- places ---- */

int64_t sdx_heads_resident(int64_t all, int64_t rows, int64_t window)
{
    const int64_t group = rows - window + 1;
    return all <= rows ? all : all - group * ((all - rows + group - 1) / group);
}

/* Keys of a batch entry and how many of them were there before; both as `kind` has them. */
static void place_of(const struct sdx_places *p, const int32_t *lengths, int64_t b, int64_t *keys,
                     int64_t *past)
{
    *past = 0;
    switch (p->kind) {
    case SDX_PLACES_PAST: *keys = lengths[0] + p->fresh; break;
    case SDX_PLACES_SUMS: *keys = (int64_t)lengths[b + 1] - lengths[b]; return;
    case SDX_PLACES_PROMPT:
    case SDX_PLACES_WINDOW_PROMPT: *keys = lengths[b] + p->lacks; return;
    case SDX_PLACES_LAST: *keys = lengths[b] + p->lacks; break;
    case SDX_PLACES_WINDOW:
        *past = lengths[b] + p->lacks - p->fresh;
        if (*past >= 0) *past = sdx_heads_resident(*past, p->rows, p->window);
        *keys = *past + p->fresh;
        return;
    }
    *past = *keys - p->fresh;
}

static enum sdx_status run_places(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)part;
    const struct sdx_places *p = step->params;
    int32_t *to = step->out[0]->data;
    for (int64_t b = 0; b < p->batch; b++) {
        int64_t keys = 0, past = 0;
        place_of(p, step->in[0]->data, b, &keys, &past);
        if (keys < 0 || past < 0 || keys > p->limit)
            return SDX_FAIL(x->cx, SDX_RUN_FAILED,
                            "%lld keys of batch entry %lld, expected %lld to %lld", (long long)keys,
                            (long long)b, (long long)(past < 0 ? keys - past : 0),
                            (long long)p->limit);
        to[2 * b] = (int32_t)keys;
        to[2 * b + 1] = (int32_t)past;
    }
    return SDX_OK;
}

struct sdx_tensor *sdx_heads_places(struct sdx_prepare *px, struct sdx_tensor *lengths,
                                    const struct sdx_places *places)
{
    const int64_t dims[] = {places->batch, 2};
    int64_t want = places->batch;
    if (places->kind == SDX_PLACES_PAST) want = 1;
    if (places->kind == SDX_PLACES_SUMS) want = places->batch + 1;
    if (lengths->dtype != SDX_I32 || lengths->count != want) {
        (void)SDX_FAIL(px->cx, SDX_BAD_MODEL, "%.*s: %lld sequence lengths, expected %lld",
                       SDX_HEADS_OP(px), (long long)lengths->count, (long long)want);
        return NULL;
    }
    struct sdx_places *p = SDX_PREPARE_NEW(px, struct sdx_places);
    struct sdx_tensor *to = p ? sdx_prepare_temp(px, SDX_I32, 2, dims) : NULL;
    if (!to) return NULL;
    *p = *places;
    return sdx_prepare_step_on(px, "attention_places", run_places, p, 1, 0, 1, &lengths, 1, &to) ==
                   SDX_OK
               ? to
               : NULL;
}

/* ---- the step itself ---- */

enum sdx_status sdx_heads_attention(struct sdx_prepare *px, struct sdx_attention *a,
                                    const struct sdx_heads *q, const struct sdx_heads *k,
                                    const struct sdx_heads *v)
{
    const int64_t width = a->heads * a->value_size;
    const int64_t y_at[] = {a->queries * width, a->value_size, width, 1};
    const int64_t shared = a->heads_per_key ? a->heads / a->heads_per_key : a->heads;
    if (!covers(q, a->batch, a->heads, a->queries, a->size) ||
        !covers(k, a->batch, shared, a->keys, a->size) ||
        !covers(v, a->batch, shared, a->keys, a->value_size) ||
        a->y->count != a->batch * a->queries * width)
        return misfit(px);
    a->q = q->t;
    a->k = k->t;
    a->v = v->t;
    a->q_first = q->first;
    a->k_first = k->first;
    a->v_first = v->first;
    memcpy(a->q_at, q->at, sizeof a->q_at);
    memcpy(a->k_at, k->at, sizeof a->k_at);
    memcpy(a->v_at, v->at, sizeof a->v_at);
    if (a->y_at[3] == 0) memcpy(a->y_at, y_at, sizeof y_at);
    return sdx_attention_prepare(px, a);
}

struct softmax {
    int64_t keys, rows, heads;
};

/* One head of one batch entry. */
static enum sdx_status run_softmax(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)x;
    const struct softmax *p = step->params;
    const size_t n = (size_t)p->keys;
    for (int64_t r = 0; r < p->rows; r++) {
        float *row = (float *)step->out[0]->data + (part * p->rows + r) * p->keys;
        float top = sdx_vec()->f32_reduce_max(row, n), sink = -INFINITY;
        if (step->in[0]) sink = ((const float *)step->in[0]->data)[part % p->heads];
        top = top > sink ? top : sink;
        if (!isfinite(top)) {
            memset(row, 0, n * sizeof *row);
            continue;
        }
        float sum = sdx_vec()->f32_exp_sum(row, row, n, top);
        if (step->in[0]) sum += expf(sink - top);
        const float inverse = 1 / sum;
        sdx_vec()->f32_mul(row, 1, &inverse, 0, row, n);
    }
    return SDX_OK;
}

enum sdx_status sdx_heads_softmax(struct sdx_prepare *px, struct sdx_tensor *scores,
                                  struct sdx_tensor *sinks)
{
    struct softmax *p = SDX_PREPARE_NEW(px, struct softmax);
    if (!p) return SDX_FAIL_MEMORY(px->cx);
    *p = (struct softmax){scores->dims[3], scores->dims[2], scores->dims[1]};
    if (scores->count == 0) return SDX_OK;
    return sdx_prepare_step_on(px, "attention_softmax", run_softmax, p,
                               scores->dims[0] * scores->dims[1], 0, 1, &sinks, 1, &scores);
}

struct sdx_tensor *sdx_heads_constant(struct sdx_prepare *px, int rank, const int64_t *dims)
{
    struct sdx_tensor *t = sdx_op_tensor(px->cx, px->arena, SDX_F32, rank, dims);
    if (!t) return NULL;
    t->is_constant = true;
    t->data = sdx_prepare_alloc(px, t->bytes + 1);
    return t->data ? t : NULL;
}

/* ---- padding ---- */

struct padding {
    int64_t tokens, places;
    size_t row; /* bytes */
    bool spreads;
};

static enum sdx_status run_padding(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)part;
    const struct padding *p = step->params;
    const int32_t *offsets = step->in[1]->data;
    const char *from = step->in[0]->data;
    char *to = step->out[0]->data;
    if (p->spreads) memset(to, 0, step->out[0]->bytes);
    for (int64_t i = 0; i < p->tokens; i++) {
        if (offsets[i] < 0 || offsets[i] >= p->places)
            return SDX_FAIL(x->cx, SDX_RUN_FAILED, "token_offset[%lld] is %d, expected 0 to %lld",
                            (long long)i, offsets[i], (long long)(p->places - 1));
        const size_t padded = (size_t)offsets[i] * p->row, plain = (size_t)i * p->row;
        if (p->spreads)
            memcpy(to + padded, from + plain, p->row);
        else
            memcpy(to + plain, from + padded, p->row);
    }
    return SDX_OK;
}

static enum sdx_status add_padding(struct sdx_prepare *px, struct sdx_tensor *from,
                                   struct sdx_tensor *offsets, struct sdx_tensor *to, bool spreads)
{
    struct padding *p = SDX_PREPARE_NEW(px, struct padding);
    const struct sdx_tensor *plain = spreads ? from : to;
    if (!p) return SDX_FAIL_MEMORY(px->cx);
    *p = (struct padding){.tokens = plain->dims[0], .places = offsets->count, .spreads = spreads};
    if (offsets->dtype != SDX_I32 || p->tokens > p->places)
        return SDX_FAIL(px->cx, SDX_BAD_MODEL, "%.*s: %lld tokens, but token_offset has %lld",
                        SDX_HEADS_OP(px), (long long)p->tokens, (long long)p->places);
    if (to->count == 0) return SDX_OK;
    p->row = p->tokens > 0 ? plain->bytes / (size_t)p->tokens : 0;
    struct sdx_tensor *in[] = {from, offsets};
    return sdx_prepare_step_on(px, "padding", run_padding, p, 1, 0, 2, in, 1, &to);
}

enum sdx_status sdx_heads_spread(struct sdx_prepare *px, struct sdx_tensor *from,
                                 struct sdx_tensor *offsets, struct sdx_tensor *to)
{
    return add_padding(px, from, offsets, to, true);
}

enum sdx_status sdx_heads_collect(struct sdx_prepare *px, struct sdx_tensor *from,
                                  struct sdx_tensor *offsets, struct sdx_tensor *to)
{
    return add_padding(px, from, offsets, to, false);
}

/* ---- projections ---- */

enum sdx_status sdx_heads_project(struct sdx_prepare *px, struct sdx_tensor *from, int input,
                                  struct sdx_tensor *bias, struct sdx_tensor **to, bool *biased)
{
    struct sdx_tensor *weights = px->in[input];
    int64_t dims[SDX_RANK_MAX];
    const int64_t k = from->rank > 0 ? from->dims[from->rank - 1] : 0;
    *biased = bias != NULL;
    if (weights->rank != 2 || weights->dims[0] != k || weights->dtype != SDX_F32 ||
        from->dtype != SDX_F32 || (bias && bias->count != weights->dims[1]))
        return SDX_FAIL(px->cx, SDX_BAD_MODEL, "%.*s: weights or bias do not fit %lld columns",
                        SDX_HEADS_OP(px), (long long)k);
    memcpy(dims, from->dims, (size_t)from->rank * sizeof *dims);
    dims[from->rank - 1] = weights->dims[1];
    *to = sdx_prepare_temp(px, SDX_F32, from->rank, dims);
    if (!*to) return px->cx->error.status;
    struct sdx_product p = {.a = from,
                            .b = weights,
                            .c = *to,
                            .input_b = input,
                            .batch = 1,
                            .m = k > 0 ? from->count / k : 0,
                            .n = weights->dims[1],
                            .k = k,
                            .row_a = k,
                            .col_a = 1,
                            .row_b = weights->dims[1],
                            .col_b = 1,
                            .alpha = 1};
    if (bias && bias->is_constant && weights->is_constant) p.bias_col = bias;
    *biased = !bias || p.bias_col;
    if ((*to)->count == 0) return SDX_OK;
    return sdx_product_prepare(px, &p);
}
