/* SPDX-License-Identifier: Apache-2.0
 * Attention of a block of query rows for one element type. Included by attention.c once a type,
 * with T (the type), SUFFIX(name), MASK_DTYPE (T's), SCORES, WEIGH, SOFTMAX, TANH and ROUND defined
 * there. A template: not compiled by itself. */

/* Adds what masks say to the scores of query `row` against keys 0..keys-1. false: no key may be
 * seen. */
static bool SUFFIX(add_bias)(const struct params *p, const struct sdx_step *step,
                             const struct block *b, int64_t row, int64_t keys, T *scores)
{
    const struct sdx_tensor *mask = step->in[IN_MASK];
    int64_t first = 0, last = keys, at = b->offset + row; /* of visible keys */
    if (p->is_causal && at + 1 < last) last = at + 1;
    if (p->right >= 0 && at + p->right + 1 < last) last = at + p->right + 1;
    if (p->left >= 0 && at - p->left > first) first = at - p->left;
    if (b->valid < last) last = b->valid;
    if (mask && p->mask_keys < last) last = p->mask_keys;
    if (last < 0) last = 0;
    if (first > last) first = last;
    bool any = first < last && !mask;
    for (int64_t j = 0; j < first; j++)
        scores[j] = -(T)INFINITY;
    for (int64_t j = last; j < keys; j++)
        scores[j] = -(T)INFINITY;
    if (!mask) return any;
    int64_t place = b->mask + row * p->mask_step[2];
    if (mask->dtype == SDX_BOOL) {
        const uint8_t *from = (const uint8_t *)mask->data + place;
        for (int64_t j = first; j < last; j++) {
            any = any || from[j];
            if (!from[j]) scores[j] = -(T)INFINITY;
        }
        return any;
    }
    const T *same = mask->dtype == MASK_DTYPE ? (const T *)mask->data + place : NULL;
    for (int64_t j = first; j < last; j++) {
        T bias = same ? same[j] : (T)sdx_load_f64(mask->dtype, mask->data, place + j);
        any = any || !(bias == -(T)INFINITY);
        scores[j] += bias;
    }
    return any;
}

/* Scores of one row to probabilities; copies what output 3 wants (qk: its row, or NULL). */
static void SUFFIX(finish_row)(const struct params *p, const struct sdx_step *step,
                               const struct block *b, int64_t row, int64_t keys, T *scores, T *qk)
{
    size_t bytes = (size_t)keys * sizeof(T);
    ROUND(p, scores, keys);
    if (qk && p->qk_mode == 0) memcpy(qk, scores, bytes);
    if (p->softcap > 0) {
        T cap = (T)p->softcap;
        ROUND(p, &cap, 1);
        for (int64_t j = 0; j < keys; j++)
            scores[j] /= cap;
        ROUND(p, scores, keys);
        TANH(scores, keys);
        ROUND(p, scores, keys);
        for (int64_t j = 0; j < keys; j++)
            scores[j] *= cap;
        ROUND(p, scores, keys);
    }
    if (qk && p->qk_mode == 1) memcpy(qk, scores, bytes);
    bool any = SUFFIX(add_bias)(p, step, b, row, keys, scores);
    ROUND(p, scores, keys);
    if (qk && p->qk_mode == 2) memcpy(qk, scores, bytes);
    T top = -(T)INFINITY;
    for (int64_t j = 0; j < keys; j++)
        if (!(scores[j] <= top)) top = scores[j];
    if (!any || top == -(T)INFINITY)
        memset(scores, 0, bytes);
    else
        SOFTMAX(p, scores, keys);
    ROUND(p, scores, keys);
    if (qk && p->qk_mode == 3) memcpy(qk, scores, bytes);
}

static enum sdx_status SUFFIX(run)(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct params *p = step->params;
    struct block b;
    if (sdx_exec_cancelled(x)) return SDX_OK;
    SDX_TRY(block_of(x, p, step, part, &b));
    T *scores = x->scratch;
    char *scratch = (char *)x->scratch + p->scores_size;
    const T *q = (const T *)step->in[IN_Q]->data + b.q;
    const T *k = (const T *)step->in[IN_K]->data + b.k, *v = (const T *)step->in[IN_V]->data + b.v;
    T *y = (T *)step->out[0]->data + b.y;
    T *qk = step->out[1] ? (T *)step->out[1]->data + b.qk : NULL;
    int64_t keys = qk ? p->keys : b.keys; /* of the block: later ones are masked for all rows */
    if (keys == 0) {
        for (int64_t r = 0; r < b.rows; r++)
            memset(y + r * p->y_row, 0, (size_t)p->value_size * sizeof(T));
        return SDX_OK;
    }
    SCORES(p, b.rows, keys, q, k, scores, scratch);
    for (int64_t r = 0; r < b.rows; r++)
        SUFFIX(finish_row)
    (p, step, &b, b.row + r, keys, scores + r * keys, qk ? qk + r * keys : NULL);
    WEIGH(p, b.rows, keys, scores, v, y, scratch);
    return SDX_OK;
}
