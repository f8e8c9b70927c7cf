/* SPDX-License-Identifier: Apache-2.0
 * Steps that the attention forms of com.microsoft share: new rows put behind cached ones, rotary
 * positions, masks of 0 and 1 as numbers to add, and the places of each batch entry. */
#ifndef SDX_OPS_ATTENTION_HEADS_H
#define SDX_OPS_ATTENTION_HEADS_H

#include "ops/attention_core.h"

/* An f32 tensor seen as [batch, head, row, column]: `first` element and steps, in elements. */
struct sdx_heads {
    struct sdx_tensor *t;
    int64_t first, at[4];
};
/* Columns first + head * size of [batch, length, width]. */
struct sdx_heads sdx_heads_of_rows(struct sdx_tensor *t, int64_t first, int64_t length,
                                   int64_t size, int64_t width);
/* [batch, heads, length, size] from element `first` on. */
struct sdx_heads sdx_heads_plain(struct sdx_tensor *t, int64_t first, int64_t heads, int64_t length,
                                 int64_t size);

/* `rows` new rows of each head, with a bias, behind `past_rows` cached ones; what is left of the
 * `capacity` rows becomes 0, unless `to` is the memory of `past`. */
struct sdx_place {
    struct sdx_heads from, past, to; /* past.t NULL: none */
    struct sdx_tensor *bias;         /* f32, column bias_first + head * size + i; NULL: none */
    struct sdx_tensor *places;       /* i32 [batch, 2]: [1] is past_rows; NULL: the same for all */
    struct sdx_tensor *beams;        /* i32 [batch / width, width, capacity]: whose row it is */
    int64_t batch, heads, rows, size, bias_first, past_rows, capacity, width;
    /* > 0: columns of the cache lie in runs of so many, each run for all rows; of `to` too, unless
     * to_is_plain. */
    int64_t split;
    bool to_is_plain;
};
SDX_MUST_CHECK enum sdx_status sdx_heads_place(struct sdx_prepare *px,
                                               const struct sdx_place *place);
/* The same rows with a bias in a new temporary [batch, heads, rows, size]; *h becomes that. */
SDX_MUST_CHECK enum sdx_status sdx_heads_add_bias(struct sdx_prepare *px, struct sdx_heads *h,
                                                  struct sdx_tensor *bias, int64_t bias_first,
                                                  const int64_t dims[4]);

/* Rotary positions: pairs of the first `turned` columns are turned by the angles whose cosines and
 * sines are in a row of the caches. */
struct sdx_rotary {
    struct sdx_heads from, to;        /* may be the same */
    struct sdx_tensor *cosine, *sine; /* f32, at least turned / 2 columns */
    struct sdx_tensor *ids;           /* i64: row of the caches; NULL: as `places` and `base` say */
    struct sdx_tensor *places;        /* i32 [batch, 2]: place [1] is added to the row; NULL: 0 */
    int64_t batch, heads, rows, size, turned;
    int64_t base;      /* added too */
    int64_t limit;     /* rows of the caches */
    bool ids_is_first; /* ids has one value: that of row 0 */
    bool is_interleaved;
};
SDX_MUST_CHECK enum sdx_status sdx_heads_rotate(struct sdx_prepare *px,
                                                const struct sdx_rotary *rotary);

/* A padding mask of int32 as an f32 tensor [batch, 1 or queries, keys] to be added: 0 where it is
 * positive, `filter` where not. Of 1 axis: numbers of keys; with 2 * batch values, ends and then
 * beginnings. Of 2: [batch, keys], of 3: [batch, queries, keys], of 4: [batch, 1, most, most], the
 * rows from `past` on. Sets attention->mask and its steps. */
SDX_MUST_CHECK enum sdx_status sdx_heads_mask(struct sdx_prepare *px, struct sdx_tensor *mask,
                                              float filter, int64_t past,
                                              struct sdx_attention *attention);
/* What is added to the scores: [batch or 1, heads or 1, queries, keys]. Sets attention->more. */
SDX_MUST_CHECK enum sdx_status sdx_heads_bias(struct sdx_prepare *px, struct sdx_tensor *bias,
                                              struct sdx_attention *attention);

/* Places of each batch entry from lengths that are known at run time only. */
enum sdx_places_kind {
    SDX_PLACES_PAST,   /* one number: rows in the cache */
    SDX_PLACES_LAST,   /* [batch]: rows in the cache and `fresh` new ones, less `lacks` */
    SDX_PLACES_PROMPT, /* the same with an empty cache */
    SDX_PLACES_SUMS,   /* [batch + 1]: sums of lengths */
    /* As LAST and PROMPT, of a cache that keeps the newest positions only: sdx_heads_resident. */
    SDX_PLACES_WINDOW,
    SDX_PLACES_WINDOW_PROMPT
};
struct sdx_places {
    enum sdx_places_kind kind;
    int64_t batch, fresh, limit; /* the most keys there can be */
    int64_t lacks;
    int64_t rows, window; /* SDX_PLACES_WINDOW: of the cache; of the attention */
};
/* NULL: error is set. */
struct sdx_tensor *sdx_heads_places(struct sdx_prepare *px, struct sdx_tensor *lengths,
                                    const struct sdx_places *places);
/* How many of `all` positions a cache of `rows` rows keeps for a window. */
int64_t sdx_heads_resident(int64_t all, int64_t rows, int64_t window);
/* Runs sdx_attention_prepare with these operands: fills q, k, v, their steps and y of
 * [batch, queries, heads * value_size]. */
SDX_MUST_CHECK enum sdx_status sdx_heads_attention(struct sdx_prepare *px, struct sdx_attention *a,
                                                   const struct sdx_heads *q,
                                                   const struct sdx_heads *k,
                                                   const struct sdx_heads *v);
/* [lengths of rows] = softmax of each in place, of a plain f32 tensor; sinks: as in
 * struct sdx_attention, of [batch, heads, rows, keys]. */
SDX_MUST_CHECK enum sdx_status sdx_heads_softmax(struct sdx_prepare *px, struct sdx_tensor *scores,
                                                 struct sdx_tensor *sinks);

/* Rows without padding and padded ones: offsets (i32 [batch, length]) tell where in the padded rows
 * row i of the others is. Spread: rows of no token become 0. Collect: rows of `to` from padded. */
SDX_MUST_CHECK enum sdx_status sdx_heads_spread(struct sdx_prepare *px, struct sdx_tensor *from,
                                                struct sdx_tensor *offsets, struct sdx_tensor *to);
SDX_MUST_CHECK enum sdx_status sdx_heads_collect(struct sdx_prepare *px, struct sdx_tensor *from,
                                                 struct sdx_tensor *offsets, struct sdx_tensor *to);
/* A product with constant or other weights [k, n]: [m, n] = from [m, k] * weights + bias; `input`:
 * the node's input that weights are. *biased: the bias, if there is one, is in the result. */
SDX_MUST_CHECK enum sdx_status sdx_heads_project(struct sdx_prepare *px, struct sdx_tensor *from,
                                                 int input, struct sdx_tensor *bias,
                                                 struct sdx_tensor **to, bool *biased);

/* A constant f32 tensor of the plan, to be filled. NULL: error is set. */
struct sdx_tensor *sdx_heads_constant(struct sdx_prepare *px, int rank, const int64_t *dims);

static inline struct sdx_tensor *sdx_heads_input(struct sdx_prepare *px, int i)
{
    return i >= 0 && sdx_prepare_has(px, i) ? px->in[i] : NULL;
}
static inline struct sdx_tensor *sdx_heads_output(struct sdx_prepare *px, int k)
{
    return k < px->count_out ? px->out[k] : NULL;
}
#define SDX_HEADS_OP(x) SDX_STR_ARG((x)->node->op_type)
#endif
