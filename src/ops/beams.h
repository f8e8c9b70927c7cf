/* SPDX-License-Identifier: Apache-2.0
 * The state of a search for sequences of tokens: sequences so far, what changes the scores of the
 * next token, and the choice of it by greed, by chance or by beams. */
#ifndef SDX_OPS_BEAMS_H
#define SDX_OPS_BEAMS_H

#include "ops/step.h"

/* What changes scores, in this order; numbers that change nothing leave a step out. */
struct sdx_token_rules {
    float repetition;                   /* 1: none */
    int64_t ngram;                      /* 0: none */
    const int32_t *words, *first_words; /* [vocab], [batch, vocab]: 0 forbids; NULL: none */
    int64_t min_length;
    float temperature;       /* 1: none */
    const int32_t *presence; /* [batch, vocab]: times the penalty is taken away; NULL: none */
    float presence_penalty;
    int32_t end, pad;
};

/* A finished sequence of a batch entry. */
struct sdx_hypothesis {
    float score;
    int64_t length;
    int32_t *tokens; /* most_length of them */
};

struct sdx_beams {
    struct sdx_context *cx;
    int64_t batch, width, rows, vocab, most, length; /* rows: batch * width; length: so far */
    struct sdx_token_rules rules;
    int32_t *sequences, *spare;   /* [rows, most] */
    int32_t *tokens, *from;       /* [rows]: the next tokens, and the row each goes on from */
    float *scores;                /* [rows, vocab]: of the next tokens */
    float *sums;                  /* [rows]: of the beams */
    bool *done;                   /* [batch] */
    struct sdx_hypothesis *found; /* [batch, width], best first */
    int64_t *count_found;         /* [batch] */
    float length_penalty;
    bool stops_early;
    struct sdx_pick {
        float score;
        int64_t at;
    } * best;       /* [2 * width] */
    int64_t *order; /* [vocab], of sampling */
    uint32_t random;
};

/* Sizes (batch, width, most, length, rules, cx) are set; the vocabulary is known later. */
SDX_MUST_CHECK enum sdx_status sdx_beams_init(struct sdx_beams *b);
void sdx_beams_deinit(struct sdx_beams *b);
SDX_MUST_CHECK enum sdx_status sdx_beams_set_vocab(struct sdx_beams *b, int64_t vocab);
/* b->scores are logits: become log-softmax with the rules and sums of the beams, and the next
 * tokens are chosen and put behind. `step` begins at 1. */
SDX_MUST_CHECK enum sdx_status sdx_beams_advance(struct sdx_beams *b, int64_t step);
/* The greatest score; or, with top_p, by chance of those left over. */
struct sdx_sampling {
    float top_p, filter;
    int64_t least; /* tokens that are kept */
    bool is_custom;
};
SDX_MUST_CHECK enum sdx_status sdx_beams_advance_greedy(struct sdx_beams *b, int64_t step,
                                                        const struct sdx_sampling *sampling);
bool sdx_beams_all_done(const struct sdx_beams *b);
/* The beams that are open count as found; sequences [batch, count, most], scores [batch, count]
 * (may be NULL). */
void sdx_beams_finish(struct sdx_beams *b, int64_t count, int32_t *sequences, float *scores);
#endif
