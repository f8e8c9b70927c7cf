/* SPDX-License-Identifier: Apache-2.0
 * The choice of tokens in a search, as ONNX Runtime's CPU kernels make it: the order of the rules,
 * ties to the lower index, and its random numbers (the minimal standard generator of C++). */
#include "ops/beams.h"

#include <float.h>
#include <math.h>

#include "kernels/vec.h"

static void *zeros(struct sdx_beams *b, int64_t count, size_t size)
{
    return sdx_mem_calloc(b->cx->mem, SDX_MEM_SCRATCH, (size_t)count + 1, size);
}

enum sdx_status sdx_beams_init(struct sdx_beams *b)
{
    const int64_t finished = b->batch * b->width;
    b->rows = b->batch * b->width;
    b->sequences = zeros(b, b->rows * b->most, sizeof *b->sequences);
    b->spare = zeros(b, b->rows * b->most, sizeof *b->spare);
    b->tokens = zeros(b, b->rows, sizeof *b->tokens);
    b->from = zeros(b, b->rows, sizeof *b->from);
    b->sums = zeros(b, b->rows, sizeof *b->sums);
    b->done = zeros(b, b->batch, sizeof *b->done);
    b->found = zeros(b, finished, sizeof *b->found);
    b->count_found = zeros(b, b->batch, sizeof *b->count_found);
    b->best = zeros(b, 2 * b->width, sizeof *b->best);
    if (!b->sequences || !b->spare || !b->tokens || !b->from || !b->sums || !b->done || !b->found ||
        !b->count_found || !b->best)
        return SDX_FAIL_MEMORY(b->cx);
    for (int64_t i = 0; i < finished; i++) {
        b->found[i].tokens = zeros(b, b->most, sizeof *b->found[i].tokens);
        if (!b->found[i].tokens) return SDX_FAIL_MEMORY(b->cx);
    }
    /* the beams of a batch entry are the same at first: one counts */
    for (int64_t i = 0; i < b->rows; i++)
        b->sums[i] = i % b->width ? -1e9f : 0.0f;
    return SDX_OK;
}

void sdx_beams_deinit(struct sdx_beams *b)
{
    struct sdx_mem *mem = b->cx->mem;
    for (int64_t i = 0; b->found && i < b->rows; i++)
        sdx_mem_free(mem, b->found[i].tokens);
    void *const blocks[] = {b->sequences, b->spare, b->tokens,      b->from, b->scores, b->sums,
                            b->done,      b->found, b->count_found, b->best, b->order};
    for (int i = 0; i < SDX_COUNT_OF(blocks); i++)
        sdx_mem_free(mem, blocks[i]);
}

enum sdx_status sdx_beams_set_vocab(struct sdx_beams *b, int64_t vocab)
{
    b->vocab = vocab;
    if (vocab < 1 || b->rules.end >= vocab || 2 * b->width > b->width * vocab)
        return SDX_FAIL(b->cx, SDX_RUN_FAILED, "a vocabulary of %lld tokens, expected more than %d",
                        (long long)vocab, b->rules.end);
    b->scores = zeros(b, b->rows * vocab, sizeof *b->scores);
    b->order = zeros(b, vocab, sizeof *b->order);
    return b->scores && b->order ? SDX_OK : SDX_FAIL_MEMORY(b->cx);
}

/* ---- rules ---- */

static void punish_repeats(const struct sdx_beams *b, const int32_t *sequence, float *scores)
{
    const float penalty = b->rules.repetition;
    for (int64_t i = 0; i < b->length; i++) {
        bool seen = false;
        for (int64_t j = 0; j < i && !seen; j++)
            seen = sequence[j] == sequence[i];
        if (seen || sequence[i] < 0 || sequence[i] >= b->vocab) continue;
        float *score = &scores[sequence[i]];
        *score = *score < 0 ? *score * penalty : *score / penalty;
    }
}

static void forbid_ngrams(const struct sdx_beams *b, const int32_t *sequence, float *scores)
{
    const int64_t size = b->rules.ngram, prefix = size - 1;
    for (int64_t i = 0; i + size <= b->length; i++) {
        const int32_t word = sequence[i + prefix];
        if (word >= 0 && word < b->vocab &&
            memcmp(sequence + i, sequence + b->length - prefix,
                   (size_t)prefix * sizeof *sequence) == 0)
            scores[word] = -FLT_MAX;
    }
}

static void forbid_words(const int32_t *words, float *scores, int64_t n)
{
    for (int64_t i = 0; words && i < n; i++)
        if (words[i] == 0) scores[i] = -FLT_MAX;
}

static void apply_rules(const struct sdx_beams *b, int64_t row, int64_t step)
{
    const struct sdx_token_rules *r = &b->rules;
    float *scores = b->scores + row * b->vocab;
    const int32_t *sequence = b->sequences + row * b->most;
    const int64_t batch = row / b->width;
    if (r->repetition != 1) punish_repeats(b, sequence, scores);
    if (r->ngram > 0) forbid_ngrams(b, sequence, scores);
    forbid_words(r->words, scores, b->vocab);
    if (r->first_words && step == 1)
        forbid_words(r->first_words + batch * b->vocab, scores, b->vocab);
    if (b->length < r->min_length && r->end >= 0) scores[r->end] = -FLT_MAX;
    if (r->temperature > 0 && r->temperature != 1)
        for (int64_t i = 0; i < b->vocab; i++)
            scores[i] /= r->temperature;
    for (int64_t i = 0; r->presence && i < b->vocab; i++)
        scores[i] -= (float)r->presence[batch * b->vocab + i] * r->presence_penalty;
}

/* ---- sequences ---- */

/* Each sequence goes on from row `from` with its token. */
static void append(struct sdx_beams *b)
{
    for (int64_t i = 0; i < b->rows; i++) {
        int32_t *to = b->spare + i * b->most;
        memcpy(to, b->sequences + b->from[i] * b->most, (size_t)b->length * sizeof *to);
        to[b->length] = b->tokens[i];
    }
    int32_t *last = b->sequences;
    b->sequences = b->spare;
    b->spare = last;
    b->length++;
}

bool sdx_beams_all_done(const struct sdx_beams *b)
{
    for (int64_t i = 0; i < b->batch; i++)
        if (!b->done[i]) return false;
    return true;
}

/* ---- beams ---- */

static void keep(struct sdx_beams *b, int64_t batch, const int32_t *sequence, float sum)
{
    struct sdx_hypothesis *list = b->found + batch * b->width;
    int64_t *count = &b->count_found[batch], at = *count;
    const float score = sum / powf((float)b->length, b->length_penalty);
    if (*count == b->width) {
        at = b->width - 1;
        if (!(score > list[at].score)) return;
    } else {
        ++*count;
    }
    struct sdx_hypothesis last = list[at];
    for (; at > 0 && score > list[at - 1].score; at--)
        list[at] = list[at - 1];
    last.score = score;
    last.length = b->length;
    memcpy(last.tokens, sequence, (size_t)b->length * sizeof *sequence);
    list[at] = last;
}

/* The 2 * width best of a batch entry, best first; of equal ones the first. */
static void find_best(struct sdx_beams *b, int64_t batch)
{
    const float *scores = b->scores + batch * b->width * b->vocab;
    const int64_t wanted = 2 * b->width;
    int64_t count = 0;
    for (int64_t i = 0; i < b->width * b->vocab; i++) {
        if (count == wanted && !(scores[i] > b->best[wanted - 1].score)) continue;
        int64_t at = count < wanted ? count++ : wanted - 1;
        for (; at > 0 && scores[i] > b->best[at - 1].score; at--)
            b->best[at] = b->best[at - 1];
        b->best[at] = (struct sdx_pick){scores[i], i};
    }
}

/* The best candidates go on, those that end are kept. */
static void advance_batch(struct sdx_beams *b, int64_t batch, float *sums)
{
    const int64_t first = batch * b->width;
    int64_t open = 0;
    if (b->done[batch]) {
        for (int64_t i = first; i < first + b->width; i++) {
            sums[i] = 0;
            b->tokens[i] = b->rules.pad;
            b->from[i] = (int32_t)first;
        }
        return;
    }
    find_best(b, batch);
    for (int64_t j = 0; j < 2 * b->width && open < b->width; j++) {
        const int32_t token = (int32_t)(b->best[j].at % b->vocab);
        const int64_t row = first + b->best[j].at / b->vocab;
        if (token == b->rules.end) {
            if (j < b->width) keep(b, batch, b->sequences + row * b->most, b->best[j].score);
            continue;
        }
        sums[first + open] = b->best[j].score;
        b->tokens[first + open] = token;
        b->from[first + open++] = (int32_t)row;
    }
    if (b->count_found[batch] < b->width) return;
    const float most = b->best[0].score / powf((float)b->length, b->length_penalty);
    b->done[batch] = b->stops_early || b->found[first + b->width - 1].score >= most;
}

enum sdx_status sdx_beams_advance(struct sdx_beams *b, int64_t step)
{
    float *sums = zeros(b, b->rows, sizeof *sums);
    if (!sums) return SDX_FAIL_MEMORY(b->cx);
    for (int64_t row = 0; row < b->rows; row++) {
        float *scores = b->scores + row * b->vocab;
        sdx_vec()->f32_log_softmax(scores, scores, (size_t)b->vocab);
        apply_rules(b, row, step);
        for (int64_t i = 0; i < b->vocab; i++)
            scores[i] += b->sums[row];
    }
    for (int64_t i = 0; i < b->batch; i++)
        advance_batch(b, i, sums);
    memcpy(b->sums, sums, (size_t)b->rows * sizeof *sums);
    sdx_mem_free(b->cx->mem, sums);
    append(b);
    return SDX_OK;
}

void sdx_beams_finish(struct sdx_beams *b, int64_t count, int32_t *sequences, float *scores)
{
    for (int64_t i = 0; i < b->batch * count * b->most; i++)
        sequences[i] = b->rules.pad;
    for (int64_t i = 0; i < b->batch; i++) {
        for (int64_t row = i * b->width; !b->done[i] && row < (i + 1) * b->width; row++)
            keep(b, i, b->sequences + row * b->most, b->sums[row]);
        for (int64_t j = 0; j < count; j++) {
            const struct sdx_hypothesis *h = &b->found[i * b->width + j];
            memcpy(sequences + (i * count + j) * b->most, h->tokens,
                   (size_t)h->length * sizeof *sequences);
            if (scores) scores[i * count + j] = h->score;
        }
    }
}

/* ---- greed and chance ---- */

/* Below 1, of two draws of the generator x' = 16807 x mod 2^31 - 1. */
static double draw(struct sdx_beams *b)
{
    const double range = 2147483646.0;
    double sum = 0, factor = 1;
    for (int i = 0; i < 2; i++) {
        b->random = (uint32_t)((uint64_t)b->random * 16807u % 2147483647u);
        sum += (double)(b->random - 1) * factor;
        factor *= range;
    }
    const double y = sum / factor;
    return y < 1 ? y : nextafter(1.0, 0.0);
}

/* b->order: tokens by score, least first (or greatest, of is_custom), equal ones as they are. */
static void sort_tokens(struct sdx_beams *b, const float *scores, bool descends)
{
    for (int64_t i = 0; i < b->vocab; i++)
        b->order[i] = i;
    for (int64_t gap = b->vocab / 2; gap > 0; gap /= 2)
        for (int64_t i = gap; i < b->vocab; i++) {
            const int64_t token = b->order[i];
            int64_t at = i;
            for (; at >= gap; at -= gap) {
                const int64_t other = b->order[at - gap];
                const float a = scores[token], c = scores[other];
                const bool before = descends ? a > c : a < c;
                if (!before && !(a == c && token < other)) break;
                b->order[at] = other;
            }
            b->order[at] = token;
        }
}

/* Takes the tokens away that top_p leaves out. */
static enum sdx_status filter(struct sdx_beams *b, const struct sdx_sampling *s, float *scores)
{
    float *shares = zeros(b, b->vocab, sizeof *shares), sum = 0;
    if (!shares) return SDX_FAIL_MEMORY(b->cx);
    sort_tokens(b, scores, s->is_custom);
    for (int64_t i = 0; i < b->vocab; i++)
        shares[i] = scores[b->order[i]];
    sdx_vec()->f32_softmax(shares, shares, (size_t)b->vocab);
    if (s->is_custom) {
        for (int64_t i = 0; i + 1 < b->vocab; i++) {
            sum += shares[i];
            if (sum > s->top_p) scores[b->order[i + 1]] = s->filter;
        }
    } else {
        for (int64_t i = 0; i == 0 || i < b->vocab - s->least; i++) {
            sum += shares[i];
            if (sum <= 1 - s->top_p) scores[b->order[i]] = s->filter;
        }
    }
    sdx_mem_free(b->cx->mem, shares);
    return SDX_OK;
}

static int64_t sample(struct sdx_beams *b, const float *scores)
{
    float top = -FLT_MAX;
    double total = 0;
    for (int64_t i = 0; i < b->vocab; i++)
        if (isfinite(scores[i]) && scores[i] > top) top = scores[i];
    for (int64_t i = 0; i < b->vocab; i++)
        if (isfinite(scores[i])) total += exp((double)scores[i] - (double)top);
    const double wanted = draw(b) * total;
    double sum = 0;
    for (int64_t i = 0; i < b->vocab; i++) {
        if (isfinite(scores[i])) sum += exp((double)scores[i] - (double)top);
        if (sum > wanted) return i;
    }
    return b->vocab - 1;
}

enum sdx_status sdx_beams_advance_greedy(struct sdx_beams *b, int64_t step,
                                         const struct sdx_sampling *sampling)
{
    for (int64_t row = 0; row < b->rows; row++)
        apply_rules(b, row, step);
    for (int64_t row = 0; row < b->rows && sampling; row++)
        SDX_TRY(filter(b, sampling, b->scores + row * b->vocab));
    for (int64_t row = 0; row < b->rows; row++) {
        const float *scores = b->scores + row * b->vocab;
        int64_t best = 0;
        for (int64_t i = 1; i < b->vocab && !sampling; i++)
            if (scores[i] > scores[best]) best = i;
        if (sampling) best = sample(b, scores);
        if (best == b->rules.end) b->done[row] = true;
        b->tokens[row] = b->done[row] ? b->rules.pad : (int32_t)best;
        b->from[row] = (int32_t)row;
    }
    append(b);
    return SDX_OK;
}
