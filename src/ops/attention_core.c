/* SPDX-License-Identifier: Apache-2.0
 * The attention step. A unit of work is a run of query rows of one head. It goes through the keys
 * in blocks that are packed into panels once and stay in the second cache: for each few rows the
 * scores (in the first cache), their exponentials against the greatest score so far, and the
 * product with the block's values, which is added to the output; what was there is scaled first
 * when a greater score has come. The division by the sum comes last. The blocks depend on the
 * number of keys only, so a row has the same bits in any unit. Where that is cheaper, all four
 * operands go through tiles (gemm.h). With few queries (a decoder's step) nothing is packed. */
#include "ops/attention_core.h"

#include <math.h>

#include "kernels/elements.h"
#include "kernels/flush.h"
#include "kernels/gemm.h"
#include "kernels/vec.h"

enum {
    PAD = 32, /* floats of a row of scores are a multiple of it */
    KEYS_MAX = 384,
    ROWS_MAX = 144,
    TILE_ROWS = 12,  /* blocks of rows are multiples of it */
    TILES_ROWS = 16, /* of tiles: of that; fewer than three of them do not pay for packing keys */
    FEW_ROWS = 4,
    GROUP_MAX = 8,    /* heads that read keys together */
    GROUP_KEYS = 128, /* as long as those are in the first cache */
    RISE = 8, /* a greatest score that rises by less stays: its exponentials are below e^8 */
    UNITS_WANTED = 12, /* so many at least, so that threads have something to share, */
    UNIT_ROWS = 240,   /* but not of fewer rows than it pays to pack keys for */
    FEW_UNITS = 4,     /* of groups */
    PART_MACS = 1 << 17
};

struct params {
    struct sdx_attention a;
    int64_t block_rows, block_keys;
    int64_t chunk_rows, chunks; /* chunks of a head, each of whole blocks */
    int64_t pitch;              /* of a row of scores */
    int64_t group;              /* of one query: heads of a unit, which share its keys */
    int64_t units, parts;
    size_t scores_size, state_size, k_size, v_size, tiles_size; /* of the areas of scratch */
    bool is_few;
    bool by_tiles; /* q, k, the weights and v are brought into tiles */
    bool at_once;  /* a row's weights come from all its keys, and f32 masks, in one call */
};

struct unit {
    const float *q, *k, *v;
    float *y;
    const uint8_t *choice;
    const void *mask, *more;
    const float *outer, *inner; /* of row 0 of the head */
    const float *sink;          /* NULL: none */
    float *kept;                /* of row 0 of the head, in a->scores; NULL: not wanted */
    float scale;
    int64_t begin, end;   /* rows */
    int64_t keys, offset; /* as mask_keys and offset, of this batch entry */
    float *scores, *k_packed, *v_packed, *tiles;
    float *tops, *sums; /* of each row so far: greatest score, sum of exponentials */
    char *scratch;
};

static int64_t up(int64_t n, int64_t to)
{
    return (n + to - 1) / to * to;
}

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
    u.q = (const float *)step->in[0]->data + a->q_first + at_head(a->q_at, batch, head);
    u.k = (const float *)step->in[1]->data + a->k_first + at_head(a->k_at, batch, shared);
    u.v = (const float *)step->in[2]->data + a->v_first + at_head(a->v_at, batch, shared);
    u.y = (float *)step->out[0]->data + at_head(a->y_at, batch, head);
    if (step->in[3])
        u.choice = (const uint8_t *)step->in[3]->data + at_head(a->choice_at, batch, head);
    if (step->in[4])
        u.mask = (const char *)step->in[4]->data +
                 (size_t)at_head(a->mask_at, batch, head) * (a->mask->dtype == SDX_BOOL ? 1 : 4);
    if (step->in[8]) u.more = (const float *)step->in[8]->data + at_head(a->more_at, batch, head);
    const int32_t *place = step->in[9] ? (const int32_t *)step->in[9]->data + 2 * batch : NULL;
    u.keys = place ? place[0] : a->mask_keys;
    u.offset = place ? place[1] : a->offset;
    if (step->in[10]) u.sink = (const float *)step->in[10]->data + head;
    if (step->out[1])
        u.kept = (float *)step->out[1]->data + (batch * a->heads + head) * a->queries * a->keys;
    if (step->in[6]) {
        const int64_t first = (batch * a->heads + head) * a->queries;
        u.outer = (const float *)step->in[6]->data + first * (a->keys / a->width);
        u.inner = (const float *)step->in[7]->data + first * a->width;
    }
    u.scale = a->scale;
    if (step->in[5]) {
        const float factor = *(const float *)step->in[5]->data;
        u.scale = a->factor_divides ? a->scale / factor : a->scale * factor;
    }
    u.scores = advance(&scratch, p->scores_size);
    u.tops = advance(&scratch, p->state_size);
    u.sums = advance(&scratch, p->state_size);
    u.k_packed = advance(&scratch, p->k_size);
    u.v_packed = advance(&scratch, p->v_size);
    u.tiles = advance(&scratch, p->tiles_size);
    u.scratch = scratch;
    return u;
}

/* ---- scores to weights ---- */

/* scores[j] becomes `other` where choice[j * step] is not `keep`. */
static void choose(const uint8_t *choice, int64_t step, bool keep, float other, int64_t keys,
                   float *scores)
{
    if (step == 1) {
        const void *in[] = {choice, keep ? scores : &other, keep ? &other : scores};
        sdx_element_run(sdx_elements()->where_4, NULL, 3, (const uint8_t[]){1, 4, 4, 4}, in,
                        (const int64_t[]){1, keep, !keep}, scores, keys);
        return;
    }
    for (int64_t j = 0; j < keys; j++)
        scores[j] = (choice[j * step] != 0) == keep ? scores[j] : other;
}

/* mask_at: steps of the mask. */
static void add_mask(int dtype, const int64_t mask_at[4], const void *mask, int64_t row,
                     int64_t key, int64_t keys, float *scores)
{
    const int64_t step = mask_at[3], at = row * mask_at[2] + key * step;
    if (dtype == SDX_F32) {
        sdx_vec()->f32_add(scores, 1, (const float *)mask + at, (size_t)step, scores, (size_t)keys);
        return;
    }
    choose((const uint8_t *)mask + at, step, true, -INFINITY, keys, scores);
}

/* Keys that rows before `end` may see. */
static int64_t keys_before(const struct sdx_attention *a, const struct unit *u, int64_t end)
{
    int64_t keys = u->keys;
    if (a->is_causal && end + u->offset < keys) keys = end + u->offset;
    return keys < 0 ? 0 : keys;
}

static void cap_scores(float cap, float *scores, int64_t n)
{
    const float inverse = 1 / cap;
    sdx_vec()->f32_mul(scores, 1, &inverse, 0, scores, (size_t)n);
    sdx_vec()->f32_tanh(scores, scores, (size_t)n, 0, 0);
    sdx_vec()->f32_mul(scores, 1, &cap, 0, scores, (size_t)n);
}

/* Keys in front of the window of `row`. */
static int64_t keys_passed(const struct sdx_attention *a, const struct unit *u, int64_t row)
{
    const int64_t first = row + u->offset + 1 - a->left;
    return a->left <= 0 || first < 0 ? 0 : first;
}

/* Scores of `row` against keys key .. key + keys become e^(score - top), where top is the greatest
 * of the row up to here, or less by up to RISE; those up to `whole` become 0. Returns what the sums
 * of earlier keys are to be multiplied by. */
static float weights_of(const struct params *p, const struct unit *u, int64_t row, int64_t key,
                        int64_t keys, int64_t whole, float *scores)
{
    const struct sdx_attention *a = &p->a;
    float *top = &u->tops[row - u->begin], *sum = &u->sums[row - u->begin];
    int64_t seen = keys_before(a, u, row + 1) - key, passed = keys_passed(a, u, row) - key;
    seen = seen < 0 ? 0 : seen > keys ? keys : seen;
    if (a->softcap > 0) cap_scores(a->softcap, scores, seen);
    if (u->choice)
        choose(u->choice + row * a->choice_at[2] + key * a->choice_at[3], a->choice_at[3],
               !a->choice_is_false, a->fill, seen, scores);
    if (u->mask) add_mask(a->mask->dtype, a->mask_at, u->mask, row, key, seen, scores);
    if (u->more) add_mask(SDX_F32, a->more_at, u->more, row, key, seen, scores);
    if (u->outer)
        sdx_vec()->f32_add_outer(u->outer + row * (a->keys / a->width), u->inner + row * a->width,
                                 (size_t)a->width, (size_t)key, scores, (size_t)seen);
    passed = passed < 0 ? 0 : passed > seen ? seen : passed;
    if (u->kept && passed < seen)
        memcpy(u->kept + row * a->keys + key + passed, scores + passed,
               (size_t)(seen - passed) * sizeof *scores);
    for (int64_t j = seen; j < whole; j++)
        scores[j] = -INFINITY;
    for (int64_t j = 0; j < passed; j++)
        scores[j] = -INFINITY;
    const float last = *top, most = sdx_vec()->f32_reduce_max(scores, (size_t)whole);
    *top = most > last + RISE || isnan(most) ? most : last; /* NaN stays */
    if (!isfinite(*top) || most == -INFINITY) {
        memset(scores, 0, (size_t)whole * sizeof *scores);
        return 1.0f;
    }
    const float here = sdx_vec()->f32_exp_sum(scores, scores, (size_t)whole, *top);
    if (*top == last || last == -INFINITY) {
        *sum += here;
        return 1.0f;
    }
    float shrink = last - *top;
    sdx_vec()->f32_exp(&shrink, &shrink, 1, 0, 0);
    *sum = *sum * shrink + here;
    return shrink;
}

/* Scores of rows row .. row + rows become weights, divided by their sums. */
static void weights_at_once(const struct params *p, const struct unit *u, int64_t row, int64_t rows,
                            int64_t keys)
{
    const struct sdx_attention *a = &p->a;
    struct sdx_masked_rows s = {.x = u->scores,
                                .tops = u->tops + (row - u->begin),
                                .pitch = (size_t)p->pitch,
                                .rows = (size_t)rows,
                                .n = (size_t)keys,
                                .scale = p->by_tiles ? 1.0f : u->scale,
                                .mask_pitch = {(size_t)a->mask_at[2], (size_t)a->more_at[2]}};
    if (u->mask) s.mask[0] = (const float *)u->mask + row * a->mask_at[2];
    if (u->more) s.mask[1] = (const float *)u->more + row * a->more_at[2];
    sdx_vec()->f32_softmax_masked(&s);
}

static void scale_row(const struct params *p, const struct unit *u, int64_t row, float factor)
{
    float *y = u->y + row * p->a.y_at[2];
    sdx_vec()->f32_mul(y, 1, &factor, 0, y, (size_t)p->a.value_size);
}

/* What the sums of a row are to be multiplied by. */
static float weight_of_all(const struct unit *u, float top, float sum)
{
    if (!u->sink) return 1.0f / sum;
    const float most = *u->sink > top ? *u->sink : top;
    float powers[] = {top - most, *u->sink - most};
    sdx_vec()->f32_exp(powers, powers, 2, 0, 0);
    return powers[0] / (sum * powers[0] + powers[1]);
}

/* Divides by the sums. */
static void finish_rows(const struct params *p, const struct unit *u)
{
    for (int64_t row = u->begin; row < u->end; row++) {
        const float top = u->tops[row - u->begin];
        if (isfinite(top)) {
            if (!p->at_once) scale_row(p, u, row, weight_of_all(u, top, u->sums[row - u->begin]));
            continue;
        }
        const bool is_zero = p->a.nan_is_zero || (p->a.empty_is_zero && top == -INFINITY);
        const float nothing = is_zero ? 0.0f : NAN;
        for (int64_t j = 0; j < p->a.value_size; j++)
            u->y[row * p->a.y_at[2] + j] = nothing;
    }
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

static void start_rows(const struct sdx_attention *a, const struct unit *u)
{
    for (int64_t r = 0; r < u->end - u->begin; r++) {
        u->tops[r] = -INFINITY;
        u->sums[r] = 0.0f;
    }
    if (!u->kept) return;
    for (int64_t i = u->begin * a->keys; i < u->end * a->keys; i++)
        u->kept[i] = a->unseen;
}

/* Brings A into tiles, which spread what is not finite over a row, and multiplies. */
static void multiply(const struct params *p, const struct unit *u, struct sdx_gemm_f32 *g)
{
    if (p->by_tiles) {
        const int64_t rows = sdx_gemm_f32_tile_rows(g->m);
        sdx_gemm_f32_tile_a(g, 0, (g->m + rows - 1) / rows, u->tiles);
        g->a_tiles = u->tiles;
        g->a = NULL;
    }
    sdx_gemm_f32_run(g, 0, g->m, 0, g->n, u->scratch);
}

/* The same of rows row .. row + rows, of which all see `seen` keys of the block at most; scales
 * what is there of earlier ones. */
static void weights_by_row(const struct params *p, const struct unit *u, int64_t row, int64_t rows,
                           int64_t key, int64_t keys, int64_t seen)
{
    const int64_t whole = up(keys, PAD);
    for (int64_t r = 0; r < rows; r++) {
        const float factor = weights_of(p, u, row + r, key, seen, whole, u->scores + r * p->pitch);
        if (key > 0 && factor != 1.0f) scale_row(p, u, row + r, factor);
    }
}

/* Rows row .. row + rows against the packed keys key .. key + keys. */
static void run_block(const struct params *p, const struct unit *u, int64_t row, int64_t rows,
                      int64_t key, int64_t keys)
{
    const struct sdx_attention *a = &p->a;
    const int64_t panel = sdx_gemm_f32_panel();
    int64_t seen = keys_before(a, u, row + rows) - key;
    if (seen <= 0 && key > 0) return;
    seen = seen < 0 ? 0 : seen > keys ? keys : seen;
    /* what is beyond the keys is zeros, and there */
    const int64_t n = up(seen, p->by_tiles ? panel : panel / 2);
    struct sdx_gemm_f32 g = product_of(u->q + row * a->q_at[2], a->q_at[2], a->q_at[3], u->scores,
                                       p->pitch, rows, n, a->size);
    g.packed = u->k_packed;
    if (n) multiply(p, u, &g);
    if (p->at_once)
        weights_at_once(p, u, row, rows, keys);
    else
        weights_by_row(p, u, row, rows, key, keys, seen);
    g = product_of(u->scores, p->pitch, 1, u->y + row * a->y_at[2], a->y_at[2], rows, a->value_size,
                   keys);
    g.packed = u->v_packed;
    g.accumulate = key > 0;
    multiply(p, u, &g);
}

static void pack_block(const struct params *p, const struct unit *u, int64_t key, int64_t keys)
{
    const struct sdx_attention *a = &p->a;
    const float *k = u->k + key * a->k_at[2], *v = u->v + key * a->v_at[2];
    if (p->by_tiles) {
        float scales[KEYS_MAX];
        for (int64_t i = 0; i < keys; i++)
            scales[i] = u->scale;
        sdx_gemm_tiles_pack(k, a->k_at[3], a->k_at[2], scales, a->size, keys, u->k_packed);
        sdx_gemm_tiles_pack(v, a->v_at[2], a->v_at[3], NULL, keys, a->value_size, u->v_packed);
        return;
    }
    sdx_gemm_f32_pack(k, a->k_at[3], a->k_at[2], a->size, keys, u->k_packed);
    if (!p->at_once) {
        const size_t packed = sdx_gemm_f32_packed_size(a->size, keys) / sizeof(float);
        sdx_vec()->f32_mul(u->k_packed, 1, &u->scale, 0, u->k_packed, packed);
    }
    sdx_gemm_f32_pack(v, a->v_at[2], a->v_at[3], keys, a->value_size, u->v_packed);
}

static void run_unit(const struct params *p, const struct unit *u)
{
    const struct sdx_attention *a = &p->a;
    /* the scale of a column of tiles is that of all its keys: whatever the rows of a unit see */
    const int64_t all = keys_before(a, u, u->end), packed = p->by_tiles ? u->keys : all;
    int64_t key = 0;
    start_rows(a, u);
    do {
        const int64_t keys = packed - key < p->block_keys ? packed - key : p->block_keys;
        pack_block(p, u, key, keys);
        for (int64_t row = u->begin; row < u->end; row += p->block_rows) {
            const int64_t rows = u->end - row < p->block_rows ? u->end - row : p->block_rows;
            run_block(p, u, row, rows, key, keys);
        }
        key += keys;
    } while (key < all);
    finish_rows(p, u);
}

/* Few queries of a head, or one of each head of a group: keys and values are read once, where they
 * are. */
static void run_unit_few(const struct params *p, const struct sdx_step *step, int64_t unit,
                         char *scratch)
{
    const struct sdx_attention *a = &p->a;
    struct unit heads[GROUP_MAX];
    for (int64_t h = 0; h < p->group; h++) {
        heads[h] = unit_of(p, step, unit * p->group + h, scratch);
        heads[h].scores += h * p->pitch;
        heads[h].k_packed += h * a->size;
        heads[h].tops += h;
        heads[h].sums += h;
        start_rows(a, &heads[h]);
    }
    const struct unit *u = heads;
    const int64_t keys = keys_before(a, u, u->end), rows = u->end - u->begin;
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t h = 0; h < p->group; h++)
            for (int64_t i = 0; i < a->size; i++)
                u[h].k_packed[i] =
                    u[h].scale * u[h].q[(u->begin + r) * a->q_at[2] + i * a->q_at[3]];
        const int64_t most = p->group > 1 ? GROUP_KEYS : keys;
        for (int64_t key = 0; key < keys; key += most)
            for (int64_t h = 0; h < p->group; h++)
                sdx_gemm_f32_rows_dot(u->k + key * a->k_at[2], a->k_at[2], u[h].k_packed,
                                      keys - key < most ? keys - key : most, a->size,
                                      u[h].scores + r * p->pitch + key);
        for (int64_t h = 0; h < p->group; h++)
            weights_of(p, &u[h], u->begin + r, 0, keys, up(keys, PAD), u[h].scores + r * p->pitch);
    }
    const int64_t m = rows * p->group; /* one of them is 1 */
    struct sdx_gemm_f32 g =
        product_of(u->scores, p->pitch, 1, u->y + u->begin * a->y_at[2],
                   p->group > 1 ? a->y_at[1] : a->y_at[2], m, a->value_size, keys);
    sdx_gemm_f32_plain(&g, u->v, a->v_at[2], a->v_at[3], 0, m, 0, a->value_size, u->scratch);
    for (int64_t h = 0; h < p->group; h++)
        finish_rows(p, &u[h]);
}

static enum sdx_status run_attention(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct params *p = step->params;
    const int64_t end = p->units * (part + 1) / p->parts;
    const unsigned before = sdx_flush_begin();
    for (int64_t i = p->units * part / p->parts; i < end && !sdx_exec_cancelled(x); i++) {
        if (p->is_few) {
            run_unit_few(p, step, i, x->scratch);
            continue;
        }
        const struct unit u = unit_of(p, step, i, x->scratch);
        run_unit(p, &u);
    }
    sdx_flush_end(before);
    return SDX_OK;
}

/* ---- prepare ---- */

static size_t area(int64_t floats)
{
    return ((size_t)floats * sizeof(float) + 63) / 64 * 64;
}

/* Heads of a group, so that some units are left for threads. */
static int64_t group_of(const struct params *p)
{
    const struct sdx_attention *a = &p->a;
    int64_t group = 1;
    if (!p->is_few || a->queries > 1) return group;
    for (int64_t n = 2; n <= a->heads_per_key && n <= GROUP_MAX; n++)
        if (a->heads_per_key % n == 0 && a->batch * a->heads / n >= FEW_UNITS) group = n;
    return group;
}

/* Are both products, of one block of keys, cheaper in tiles? */
static bool wants_tiles(const struct params *p)
{
    const struct sdx_attention *a = &p->a;
    return !p->is_few && a->queries >= 3 * TILES_ROWS && (a->k_at[2] == 1 || a->k_at[3] == 1) &&
           (a->v_at[2] == 1 || a->v_at[3] == 1) && sdx_gemm_f32_tiles_pay(a->size, p->block_keys) &&
           sdx_gemm_f32_tiles_pay(p->block_keys, a->value_size);
}

/* One block of keys, all of which every row sees, and no other change to the scores than masks that
 * are added. */
static bool is_at_once(const struct params *p)
{
    const struct sdx_attention *a = &p->a;
    return !p->is_few && a->keys <= p->block_keys && !a->choice && !a->outer && !a->sinks &&
           !a->scores && !a->is_causal && a->left <= 0 && a->softcap <= 0 &&
           (!a->mask || (a->mask->dtype == SDX_F32 && a->mask_at[3] == 1)) &&
           (!a->more || a->more_at[3] == 1);
}

static size_t greater(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* The areas of packed operands and what products need, for blocks of `rows` rows. Returns their
 * bytes. */
static size_t plan_packed(struct params *p, int64_t rows)
{
    const struct sdx_attention *a = &p->a;
    const int64_t keys = p->block_keys, size = a->size, value_size = a->value_size;
    if (p->by_tiles) {
        p->k_size = sdx_gemm_tiles_packed_size(size, keys);
        p->v_size = sdx_gemm_tiles_packed_size(keys, value_size);
        p->tiles_size =
            greater(sdx_gemm_f32_tiles_size(rows, size), sdx_gemm_f32_tiles_size(rows, keys));
        return p->k_size + p->v_size + p->tiles_size;
    }
    p->k_size = (sdx_gemm_f32_packed_size(size, keys) + 63) / 64 * 64;
    p->v_size = (sdx_gemm_f32_packed_size(keys, value_size) + 63) / 64 * 64;
    return p->k_size + p->v_size +
           greater(sdx_gemm_f32_scratch(rows, keys, size),
                   sdx_gemm_f32_scratch(rows, value_size, keys));
}

/* Blocks, chunks and scratch, from shapes only. Returns the scratch's bytes. */
static size_t plan(struct params *p)
{
    const struct sdx_attention *a = &p->a;
    p->is_few = a->queries <= FEW_ROWS && a->k_at[3] == 1 && a->v_at[3] == 1;
    /* blocks of about one size */
    const int64_t key_blocks = a->keys > KEYS_MAX ? (a->keys + KEYS_MAX - 1) / KEYS_MAX : 1;
    p->block_keys = p->is_few ? a->keys : up((a->keys + key_blocks - 1) / key_blocks, PAD);
    p->pitch = up(p->block_keys, PAD);
    if (p->pitch % 512 == 0) p->pitch += PAD; /* or all rows share a few sets of the cache */
    p->by_tiles = wants_tiles(p);
    p->at_once = is_at_once(p);
    const int64_t all = a->batch * a->heads, fit = a->queries / UNIT_ROWS;
    const int64_t step = p->is_few ? 1 : p->by_tiles ? TILES_ROWS : TILE_ROWS;
    int64_t chunks = (UNITS_WANTED + all - 1) / all;
    chunks = chunks < fit ? chunks : fit > 0 ? fit : 1;
    p->chunk_rows = p->is_few ? a->queries : up((a->queries + chunks - 1) / chunks, step);
    p->chunks = (a->queries + p->chunk_rows - 1) / p->chunk_rows;
    const int64_t blocks = (p->chunk_rows + ROWS_MAX - 1) / ROWS_MAX;
    p->block_rows = up((p->chunk_rows + blocks - 1) / blocks, step);
    const int64_t rows = p->block_rows;
    p->group = group_of(p);
    p->units = all * p->chunks / p->group;
    const double macs =
        (double)all * (double)a->queries * (double)a->keys * (double)(a->size + a->value_size);
    p->parts = sdx_prepare_parts(macs, PART_MACS, p->units);
    p->scores_size = area(p->group * rows * p->pitch);
    p->state_size = area(p->group * p->chunk_rows);
    const size_t rest = p->scores_size + 2 * p->state_size;
    if (!p->is_few) return rest + plan_packed(p, rows);
    p->k_size = area(p->group * a->size);
    return rest + p->k_size + sdx_gemm_f32_plain_scratch(p->group * rows, a->value_size, a->keys);
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
    struct sdx_tensor *in[] = {a->q,     a->k,     a->v,    a->choice, a->mask, a->factor,
                               a->outer, a->inner, a->more, a->places, a->sinks};
    struct sdx_tensor *out[] = {a->y, a->scores};
    return sdx_prepare_step_on(px, p->is_few ? "attention_few" : "attention_f32", run_attention, p,
                               p->parts, scratch, SDX_COUNT_OF(in), in, 2, out);
}
