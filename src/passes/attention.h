/* SPDX-License-Identifier: Apache-2.0
 * What the files of the pass `attention` share. Values and nodes are indices of one graph; making
 * either moves the arrays. */
#ifndef SDX_PASSES_ATTENTION_H
#define SDX_PASSES_ATTENTION_H

#include "passes/match.h"

enum { SDX_ATTENTION_RANK = 4 /* of operands at the most */ };

struct sdx_attention_found {
    int32_t q, k, v, y, choice, mask, factor;
    int32_t more;                                 /* another mask; -1: none */
    int32_t head_scale;                           /* a factor for each head; -1: none */
    int32_t outer, inner;                         /* parts of a mask that stay apart; -1: none */
    int32_t split_mask[2], split_add, split_back; /* find_split_mask; nodes; -1: none */
    int64_t axes[4][SDX_ATTENTION_RANK];          /* of q, k, v, y */
    int rank;
    double scale, fill;
    bool choice_is_false, factor_divides, nan_is_zero;
    int32_t softmax, weigh;      /* nodes that die, */
    int32_t turn, where, is_nan; /* -1: none */
};

/* The mask of windows that was made last, of which elements: all layers of a stage have one. */
struct sdx_window_mask {
    const void *data;
    float times;
    const struct sdx_tensor *made; /* NULL: none yet */
    int32_t value;
};

struct sdx_attention_search {
    struct sdx_context *cx;
    struct sdx_ir *ir;
    struct sdx_ir_graph *g;
    int32_t *uses;
    struct sdx_window_mask *last_mask;
};

static inline int sdx_attention_rank(const struct sdx_ir_graph *g, int32_t value)
{
    const struct sdx_type *t = &g->values[value].type;
    return value >= 0 && t->kind == SDX_KIND_TENSOR && t->has_shape ? t->rank : -1;
}
static inline bool sdx_attention_is_f32(const struct sdx_ir_graph *g, int32_t value)
{
    return value >= 0 && g->values[value].type.dtype == SDX_F32;
}

/* attention_scores.c. */
/* value = rest * factor, where the factor is a constant of one element that does not add axes. */
bool sdx_attention_scaled(const struct sdx_ir_graph *g, int32_t value, int32_t *rest,
                          double *factor);
/* Walks up from what the softmax f->softmax of f->rank axes reads to the product of q and k, and
 * notes what lies between: additions, a choice, factors. false: something else does. */
bool sdx_attention_scores(const struct sdx_attention_search *s, struct sdx_attention_found *f);

#endif
