/* SPDX-License-Identifier: Apache-2.0
 * Attention of f32 operands as one step: what the operator Attention, MultiHeadAttention and the
 * form that the pass `attention` recognises share. Operands are read where they are, whatever their
 * strides; the scores of a block of queries stay in scratch. */
#ifndef SDX_OPS_ATTENTION_CORE_H
#define SDX_OPS_ATTENTION_CORE_H

#include "ops/op.h"

/* y = softmax(scale * q k^T, changed and masked) v for each of batch x heads. Steps, in elements,
 * of [batch, head, row, column]; 0 where an operand is shared. y's columns are side by side. */
struct sdx_attention {
    struct sdx_tensor *q, *k, *v, *y;
    struct sdx_tensor *choice; /* bool: where it is false the score becomes `fill`; NULL: none */
    struct sdx_tensor *mask;   /* f32: added to the scores then; bool: false is -inf; NULL: none */
    struct sdx_tensor *more;   /* f32: added as well; NULL: none */
    /* i32 [batch, 2]: mask_keys and offset of each batch entry, mask_keys at most keys; NULL: the
     * same for all. */
    struct sdx_tensor *places;
    struct sdx_tensor *sinks;  /* f32 [heads]: the score of a key without value; NULL: none */
    struct sdx_tensor *scores; /* output, plain: what the softmax is taken of; NULL: not wanted */
    /* A mask in two parts that are added to the scores, plain [batch, head, row, key / width] and
     * [batch, head, row, key % width]; NULL: none */
    struct sdx_tensor *outer, *inner;
    int64_t width;
    struct sdx_tensor *factor; /* one number: the scale times it, or divided by it; NULL: 1 */
    int64_t batch, heads, queries, keys, size, value_size;
    int64_t q_at[4], k_at[4], v_at[4], y_at[4], choice_at[4], mask_at[4], more_at[4];
    int64_t q_first, k_first, v_first; /* elements before the first */
    int64_t heads_per_key;             /* so many heads share one of k and v; 0: as k_at says */
    int64_t mask_keys;                 /* keys from here on are not seen; without a mask: keys */
    int64_t offset;                    /* causal: query i sees keys 0 .. i + offset */
    int64_t left;                      /* > 0: query i sees so many keys up to i + offset only */
    float scale, fill;
    float softcap;        /* > 0: the score becomes softcap * tanh(score / softcap) before masks */
    float unseen;         /* in `scores` where a key is not seen */
    bool choice_is_false; /* the score becomes `fill` where choice is true instead */
    bool factor_divides;
    bool is_causal;
    bool empty_is_zero; /* a query that sees no key gives 0 instead of NaN, */
    bool nan_is_zero;   /* and so does one whose weights are NaN for any reason */
};
SDX_MUST_CHECK enum sdx_status sdx_attention_prepare(struct sdx_prepare *px,
                                                     const struct sdx_attention *attention);
#endif
