/* SPDX-License-Identifier: Apache-2.0
 * The attention step: a unit of work is a run of query rows of one head. Its keys and values are
 * packed into panels once, then for each block of rows: scores, softmax without the division,
 * product with the values, division of what comes out. Rows of scores are padded with -inf to whole
 * vectors. With few queries (a decoder's step) nothing is packed. */
#include "ops/attention_core.h"

#include <math.h>

#include "kernels/gemm.h"
#include "kernels/vec.h"

enum {
    PAD = 32,                 /* floats of a row of scores are a multiple of it */
    SCORE_BYTES = 160 * 1024, /* of a block: they share the second cache with a panel stream */
    ROWS_MAX = 96,
    ROWS_MIN = 12,
    FEW_ROWS = 4,
    UNITS_WANTED = 16, /* so many at least, so that threads have something to share */
    PART_MACS = 1 << 17
};

struct params {
    struct sdx_attention a;
    int64_t block_rows, chunk_rows, chunks; /* chunks of a head, each of whole blocks */
    int64_t pitch;                          /* of a row of scores */
    int64_t units, parts;
    size_t scores_size, sums_size, k_size, v_size; /* of the areas of scratch */
    bool is_few;
};

struct unit {
    const float *q, *k, *v;
    float *y;
    const uint8_t *choice;
    const void *mask;
    float scale;
    int64_t begin, end; /* rows */
    float *scores, *sums, *k_packed, *v_packed;
    char *scratch;
};

static int64_t at_head(const int64_t at[4], int64_t batch, int64_t head)
{
    return batch * at[0] + head * at[1];
}

static float *advance(char **scratch, size_t size)
{
    char *at = *scratch;
    *scratch += size;
    return (float *)at;
}

static struct unit unit_of(const struct params *p, const struct sdx_step *step, int64_t unit,
                           char *scratch)
{
    const struct sdx_attention *a = &p->a;
    const int64_t head = unit / p->chunks % a->heads, batch = unit / p->chunks / a->heads;
    const int64_t shared = a->heads_per_key ? head / a->heads_per_key : head;
    struct unit u = {.begin = unit % p->chunks * p->chunk_rows};
    u.end = u.begin + p->chunk_rows < a->queries ? u.begin + p->chunk_rows : a->queries;
    u.q = (const float *)step->in[0]->data + at_head(a->q_at, batch, head);
    u.k = (const float *)step->in[1]->data + at_head(a->k_at, batch, shared);
    u.v = (const float *)step->in[2]->data + at_head(a->v_at, batch, shared);
    u.y = (float *)step->out[0]->data + at_head(a->y_at, batch, head);
    if (step->in[3])
        u.choice = (const uint8_t *)step->in[3]->data + at_head(a->choice_at, batch, head);
    if (step->in[4])
        u.mask = (const char *)step->in[4]->data +
                 (size_t)at_head(a->mask_at, batch, head) * (a->mask->dtype == SDX_BOOL ? 1 : 4);
    u.scale = a->scale;
    if (step->in[5]) {
        const float factor = *(const float *)step->in[5]->data;
        u.scale = a->factor_divides ? a->scale / factor : a->scale * factor;
    }
    u.scores = advance(&scratch, p->scores_size);
    u.sums = advance(&scratch, p->sums_size);
    u.k_packed = advance(&scratch, p->k_size);
    u.v_packed = advance(&scratch, p->v_size);
    u.scratch = scratch;
    return u;
}

/* ---- scores to weights ---- */

static void choose(const struct sdx_attention *a, const uint8_t *choice, int64_t keys,
                   float *scores)
{
    const int64_t step = a->choice_at[3];
    const uint8_t keep = !a->choice_is_false;
    for (int64_t j = 0; j < keys; j++)
        scores[j] = (choice[j * step] != 0) == keep ? scores[j] : a->fill;
}

static void add_mask(const struct sdx_attention *a, const void *mask, int64_t row, int64_t keys,
                     float *scores)
{
    const int64_t at = row * a->mask_at[2], step = a->mask_at[3];
    if (a->mask->dtype == SDX_F32) {
        sdx_vec()->f32_add(scores, 1, (const float *)mask + at, (size_t)step, scores, (size_t)keys);
        return;
    }
    const uint8_t *seen = (const uint8_t *)mask + at;
    for (int64_t j = 0; j < keys; j++)
        scores[j] = seen[j * step] ? scores[j] : -INFINITY;
}

/* Row `row` of the head: scores to e^(score - top), the rest of the pitch to 0. Returns what the
 * weighted sum of values is to be multiplied by. */
static float weights_of(const struct params *p, const struct unit *u, int64_t row, int64_t keys,
                        float *scores)
{
    const struct sdx_attention *a = &p->a;
    int64_t seen = keys < a->mask_keys ? keys : a->mask_keys;
    if (a->is_causal && row + a->offset + 1 < seen)
        seen = row + a->offset + 1 < 0 ? 0 : row + a->offset + 1;
    if (u->choice) choose(a, u->choice + row * a->choice_at[2], seen, scores);
    if (u->mask) add_mask(a, u->mask, row, seen, scores);
    int64_t whole = (keys + PAD - 1) / PAD * PAD;
    for (int64_t j = seen; j < whole; j++)
        scores[j] = -INFINITY;
    const float top = sdx_vec()->f32_reduce_max(scores, (size_t)whole);
    if (isfinite(top)) return 1.0f / sdx_vec()->f32_exp_sum(scores, scores, (size_t)whole, top);
    memset(scores, 0, (size_t)whole * sizeof *scores);
    return a->empty_is_zero && top == -INFINITY ? 0.0f : NAN;
}

static void scale_rows(const struct params *p, const struct unit *u, int64_t row, int64_t rows)
{
    const struct sdx_attention *a = &p->a;
    for (int64_t r = 0; r < rows; r++) {
        float *y = u->y + (row + r) * a->y_at[2];
        if (u->sums[r] == 0.0f) /* not 0 * infinity */
            memset(y, 0, (size_t)a->value_size * sizeof *y);
        else
            sdx_vec()->f32_mul(y, 1, &u->sums[r], 0, y, (size_t)a->value_size);
    }
}

/* Keys that some row before `end` may see. */
static int64_t keys_before(const struct sdx_attention *a, int64_t end)
{
    int64_t keys = a->mask_keys;
    if (a->is_causal && end + a->offset < keys) keys = end + a->offset;
    return keys < 0 ? 0 : keys;
}

/* ---- a unit ---- */

static struct sdx_gemm_f32 product_of(const float *a, int64_t row_a, int64_t col_a, float *c,
                                      int64_t row_c, int64_t m, int64_t n, int64_t k)
{
    return (struct sdx_gemm_f32){.m = m,
                                 .n = n,
                                 .k = k,
                                 .a = a,
                                 .row_a = row_a,
                                 .col_a = col_a,
                                 .c = c,
                                 .row_c = row_c,
                                 .alpha = 1.0f};
}

static void run_block(const struct params *p, const struct unit *u, int64_t row, int64_t rows,
                      int64_t keys_packed)
{
    const struct sdx_attention *a = &p->a;
    const int64_t keys = keys_before(a, row + rows), panel = sdx_gemm_f32_panel();
    int64_t n = (keys + panel / 2 - 1) / (panel / 2) * (panel / 2); /* half a panel is zeros */
    struct sdx_gemm_f32 g = product_of(u->q + row * a->q_at[2], a->q_at[2], a->q_at[3], u->scores,
                                       p->pitch, rows, n, a->size);
    g.alpha = u->scale;
    g.packed = u->k_packed;
    if (n) sdx_gemm_f32_run(&g, 0, rows, 0, n, u->scratch);
    for (int64_t r = 0; r < rows; r++)
        u->sums[r] = weights_of(p, u, row + r, keys, u->scores + r * p->pitch);
    g = product_of(u->scores, p->pitch, 1, u->y + row * a->y_at[2], a->y_at[2], rows, a->value_size,
                   keys_packed);
    g.packed = u->v_packed;
    /* The values are packed for keys_packed rows: later weights are 0. */
    for (int64_t r = 0; r < rows && keys < keys_packed; r++)
        memset(u->scores + r * p->pitch + keys, 0, (size_t)(keys_packed - keys) * sizeof(float));
    sdx_gemm_f32_run(&g, 0, rows, 0, a->value_size, u->scratch);
    scale_rows(p, u, row, rows);
}

static void run_unit(const struct params *p, const struct unit *u)
{
    const struct sdx_attention *a = &p->a;
    const int64_t keys = keys_before(a, u->end);
    sdx_gemm_f32_pack(u->k, a->k_at[3], a->k_at[2], a->size, keys, u->k_packed);
    sdx_gemm_f32_pack(u->v, a->v_at[2], a->v_at[3], keys, a->value_size, u->v_packed);
    for (int64_t row = u->begin; row < u->end; row += p->block_rows) {
        const int64_t rows = u->end - row < p->block_rows ? u->end - row : p->block_rows;
        run_block(p, u, row, rows, keys);
    }
}

/* Few queries: keys and values are read once, where they are. */
static void run_unit_few(const struct params *p, const struct unit *u)
{
    const struct sdx_attention *a = &p->a;
    const int64_t keys = keys_before(a, u->end), rows = u->end - u->begin;
    for (int64_t r = 0; r < rows; r++) {
        float *scores = u->scores + r * p->pitch;
        const float *q = u->q + (u->begin + r) * a->q_at[2];
        for (int64_t i = 0; i < a->size; i++)
            u->k_packed[i] = u->scale * q[i * a->q_at[3]];
        sdx_gemm_f32_rows_dot(u->k, a->k_at[2], u->k_packed, keys, a->size, scores);
        u->sums[r] = weights_of(p, u, u->begin + r, keys, scores);
    }
    struct sdx_gemm_f32 g = product_of(u->scores, p->pitch, 1, u->y + u->begin * a->y_at[2],
                                       a->y_at[2], rows, a->value_size, keys);
    sdx_gemm_f32_plain(&g, u->v, a->v_at[2], a->v_at[3], 0, rows, 0, a->value_size, u->scratch);
    scale_rows(p, u, u->begin, rows);
}

static enum sdx_status run_attention(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct params *p = step->params;
    const int64_t end = p->units * (part + 1) / p->parts;
    for (int64_t i = p->units * part / p->parts; i < end && !sdx_exec_cancelled(x); i++) {
        struct unit u = unit_of(p, step, i, x->scratch);
        if (p->is_few)
            run_unit_few(p, &u);
        else
            run_unit(p, &u);
    }
    return SDX_OK;
}

/* ---- prepare ---- */

static size_t area(int64_t floats)
{
    return ((size_t)floats * sizeof(float) + 63) / 64 * 64;
}

static int64_t up(int64_t n, int64_t to)
{
    return (n + to - 1) / to * to;
}

/* Blocks, chunks and scratch, from shapes only. Returns the scratch's bytes. */
static size_t plan(struct params *p)
{
    const struct sdx_attention *a = &p->a;
    p->is_few = a->queries <= FEW_ROWS && a->k_at[3] == 1 && a->v_at[3] == 1;
    p->pitch = up(a->keys, PAD);
    if (p->pitch % 512 == 0) p->pitch += PAD; /* or all rows share a few sets of the cache */
    int64_t rows = SCORE_BYTES / ((p->pitch ? p->pitch : 1) * 4) / 6 * 6;
    rows = rows > ROWS_MAX ? ROWS_MAX : rows < ROWS_MIN ? ROWS_MIN : rows;
    const int64_t blocks = (a->queries + rows - 1) / rows, per_block = a->queries / blocks;
    rows = per_block + (a->queries % blocks != 0); /* blocks of about one height */
    p->block_rows = rows;
    const int64_t all = a->batch * a->heads, wanted = (UNITS_WANTED + all - 1) / all;
    const int64_t chunks = wanted < blocks ? wanted : blocks;
    p->chunk_rows = (blocks + chunks - 1) / chunks * rows;
    p->chunks = (a->queries + p->chunk_rows - 1) / p->chunk_rows;
    p->units = all * p->chunks;
    const double macs =
        (double)all * (double)a->queries * (double)a->keys * (double)(a->size + a->value_size);
    p->parts = sdx_prepare_parts(macs, PART_MACS, p->units);
    p->scores_size = area(rows * p->pitch);
    p->sums_size = area(rows);
    if (p->is_few) {
        p->k_size = area(a->size);
        return p->scores_size + p->sums_size + p->k_size +
               sdx_gemm_f32_plain_scratch(rows, a->value_size, a->keys);
    }
    p->k_size = (sdx_gemm_f32_packed_size(a->size, a->keys) + 63) / 64 * 64;
    p->v_size = (sdx_gemm_f32_packed_size(a->keys, a->value_size) + 63) / 64 * 64;
    const size_t first = sdx_gemm_f32_scratch(rows, a->keys + sdx_gemm_f32_panel(), a->size);
    const size_t second = sdx_gemm_f32_scratch(rows, a->value_size, a->keys);
    return p->scores_size + p->sums_size + p->k_size + p->v_size +
           (first > second ? first : second);
}

enum sdx_status sdx_attention_prepare(struct sdx_prepare *px, const struct sdx_attention *attention)
{
    struct params *p = SDX_PREPARE_NEW(px, struct params);
    if (!p) return SDX_FAIL_MEMORY(px->cx);
    p->a = *attention;
    struct sdx_attention *a = &p->a;
    if (a->y->count == 0) return SDX_OK;
    if (a->keys == 0) a->empty_is_zero = true; /* a product over nothing */
    SDX_ASSERT(a->y_at[3] == 1 && a->queries > 0 && a->mask_keys <= a->keys);
    const size_t scratch = plan(p);
    struct sdx_tensor *in[] = {a->q, a->k, a->v, a->choice, a->mask, a->factor};
    return sdx_prepare_step_on(px, p->is_few ? "attention_few" : "attention_f32", run_attention, p,
                               p->parts, scratch, 6, in, 1, &a->y);
}
