/* SPDX-License-Identifier: Apache-2.0
 * BeamSearch, GreedySearch, Sampling and WhisperBeamSearch of com.microsoft: the decoder is a body
 * that is run once a token; what it is fed is told by the names of its inputs. Outputs of the body
 * after the logits are the inputs past_... of the next run, in order; what follows (cross
 * attention) stays as the encoder made it. */
#include "ops/beams.h"
#include "ops/op.h"
#include "tensor/convert.h"

enum kind { BEAM, GREEDY, SAMPLING, WHISPER };
enum role {
    IDS,
    MAX_LENGTH,
    MIN_LENGTH,
    BEAMS,
    RETURNED,
    LENGTH_PENALTY,
    REPETITION,
    WORDS,
    FIRST_WORDS,
    MASK,
    START_IDS,
    PROCESSOR,
    TEMPERATURE,
    PRESENCE,
    SEED,
    ROLES
};
/* Which input has a role; -1: the operator has none such. */
static const int8_t roles[][ROLES] = {
    [BEAM] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, -1, -1, -1},
    [GREEDY] = {0, 1, 2, -1, -1, -1, 3, 4, 5, 6, -1, -1, -1, -1, -1},
    [SAMPLING] = {0, 1, 2, -1, -1, -1, 3, 4, 5, 6, -1, -1, -1, 7, 8},
    [WHISPER] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 14, -1, -1}};
enum { LENGTH_MOST = 4096, BEAMS_MOST = 128, RANK = 5 };

struct params {
    enum kind kind;
    struct sdx_body *decoder, *first_decoder, *encoder;
    const struct sdx_ir_graph *graph, *encoder_graph;
    bool has_encoder;
    int64_t start;
    float temperature;
    struct sdx_token_rules rules;
    struct sdx_sampling sampling;
    bool stops_early;
};

/* What one run of the node has. */
struct search {
    struct sdx_exec *x;
    const struct sdx_step *step;
    const struct params *p;
    struct sdx_beams beams;
    int64_t returned, prompt, input_length;
    int32_t *positions, *mask; /* [rows], [rows, mask_length] */
    int64_t mask_length;
    struct sdx_tensor *feeds; /* of the decoder; their data is ours */
    const struct sdx_tensor **in;
    float *all_scores; /* [most - prompt, rows, vocab]: the output, NULL: not wanted */
    int64_t trips;
};

static enum kind kind_of(const struct sdx_ir_node *node)
{
    if (sdx_str_is(node->op_type, "WhisperBeamSearch")) return WHISPER;
    if (sdx_str_is(node->op_type, "GreedySearch")) return GREEDY;
    return sdx_str_is(node->op_type, "Sampling") ? SAMPLING : BEAM;
}

/* ---- inference ---- */

static enum sdx_status infer_generate(struct sdx_infer *ix)
{
    const enum kind kind = kind_of(ix->node);
    const bool has_beams = kind == BEAM || kind == WHISPER;
    const int64_t *ids = sdx_infer_dims(ix, 0);
    int64_t known[ROLES], count = 0;
    for (int r = MAX_LENGTH; r <= RETURNED; r++) {
        const int64_t *v = NULL;
        known[r] = -1;
        if (roles[kind][r] >= 0 && sdx_infer_known_ints(ix, roles[kind][r], &v, &count) &&
            count == 1 && v[0] > 0)
            known[r] = v[0];
    }
    const int64_t batch = ids ? ids[0] : -1;
    sdx_infer_set_dtype(ix, 0, SDX_I32);
    for (int k = 1; k < ix->count_out; k++)
        sdx_infer_set_dtype(ix, k, SDX_F32);
    if (!has_beams) {
        const int64_t dims[] = {batch, known[MAX_LENGTH]};
        return sdx_infer_set_dims(ix, 0, 2, dims);
    }
    const int64_t dims[] = {batch, known[RETURNED], known[MAX_LENGTH]};
    const int64_t scores[] = {-1, batch, known[BEAMS], -1};
    SDX_TRY(sdx_infer_set_dims(ix, 0, 3, dims));
    if (ix->count_out > 1) SDX_TRY(sdx_infer_set_dims(ix, 1, 2, dims));
    return ix->count_out > 2 ? sdx_infer_set_dims(ix, 2, 4, scores) : SDX_OK;
}

/* ---- operands ---- */

static const struct sdx_tensor *operand(const struct search *s, int role)
{
    const int i = roles[s->p->kind][role];
    return i >= 0 && i < s->step->count_in ? s->step->in[i] : NULL;
}

static int64_t number(const struct search *s, int role, int64_t otherwise)
{
    const struct sdx_tensor *t = operand(s, role);
    return t && t->count > 0 ? sdx_load_i64(t->dtype, t->data, 0) : otherwise;
}

static float real(const struct search *s, int role, float otherwise)
{
    const struct sdx_tensor *t = operand(s, role);
    return t && t->count > 0 ? (float)sdx_load_f64(t->dtype, t->data, 0) : otherwise;
}

static enum sdx_status bad(const struct search *s, const char *what, int64_t found)
{
    return SDX_FAIL(s->x->cx, SDX_RUN_FAILED, "search of sequences: %s is %lld", what,
                    (long long)found);
}

/* Lengths and rules of this run. */
static enum sdx_status read_operands(struct search *s)
{
    struct sdx_beams *b = &s->beams;
    const struct sdx_tensor *ids = operand(s, IDS), *start = operand(s, START_IDS);
    const int rank = s->p->kind == WHISPER ? 3 : 2;
    if (ids->rank != rank || ids->count == 0) return bad(s, "the rank of input_ids", ids->rank);
    b->batch = ids->dims[0];
    s->input_length = ids->dims[1];
    s->prompt = s->p->has_encoder ? 1 : s->input_length;
    if (start && s->p->has_encoder) {
        if (start->rank != 2 || start->dims[0] != b->batch || start->dtype != SDX_I32)
            return bad(s, "the rank of decoder_input_ids", start->rank);
        s->prompt = start->dims[1];
    }
    b->most = number(s, MAX_LENGTH, LENGTH_MOST);
    b->width = number(s, BEAMS, 1);
    s->returned = number(s, RETURNED, 1);
    b->rules = s->p->rules;
    b->rules.min_length = number(s, MIN_LENGTH, 0);
    b->rules.repetition = real(s, REPETITION, 1);
    b->rules.temperature = real(s, TEMPERATURE, s->p->temperature);
    b->length_penalty = real(s, LENGTH_PENALTY, 1);
    b->stops_early = s->p->stops_early;
    b->random = (uint32_t)number(s, SEED, 0) % 2147483647u;
    if (b->random == 0) b->random = 1;
    if (b->most <= s->prompt || b->most > LENGTH_MOST) return bad(s, "max_length", b->most);
    if (b->width < 1 || b->width > BEAMS_MOST) return bad(s, "num_beams", b->width);
    if (s->returned < 1 || s->returned > b->width)
        return bad(s, "num_return_sequences", s->returned);
    if (b->rules.min_length >= b->most) return bad(s, "min_length", b->rules.min_length);
    if (!(b->rules.repetition > 0)) return bad(s, "repetition_penalty", 0);
    if (number(s, PROCESSOR, 0) != 0)
        return SDX_FAIL(s->x->cx, SDX_NOT_SUPPORTED, "search of sequences: logits_processor %lld",
                        (long long)number(s, PROCESSOR, 0));
    return SDX_OK;
}

/* Masks of the vocabulary, when its size is known. */
static enum sdx_status read_masks(struct search *s)
{
    struct sdx_beams *b = &s->beams;
    static const int8_t masks[] = {WORDS, FIRST_WORDS, PRESENCE};
    const int32_t **to[] = {&b->rules.words, &b->rules.first_words, &b->rules.presence};
    for (int i = 0; i < SDX_COUNT_OF(masks); i++) {
        const struct sdx_tensor *t = operand(s, masks[i]);
        if (!t) continue;
        if (t->dtype != SDX_I32 || t->count != (i == 0 ? 1 : b->batch) * b->vocab)
            return bad(s, "the size of a mask of the vocabulary", t->count);
        *to[i] = t->data;
    }
    return SDX_OK;
}

/* ---- what the bodies are fed ---- */

/* `t` gets memory of its own of this shape, zeroed; what it had is freed. */
static enum sdx_status renew(struct search *s, struct sdx_tensor *t, int dtype, int rank,
                             const int64_t *dims)
{
    struct sdx_mem *mem = s->x->cx->mem;
    size_t bytes = 0;
    int64_t count = 0;
    sdx_mem_free(mem, t->data);
    *t = (struct sdx_tensor){.kind = SDX_KIND_TENSOR, .dtype = (uint8_t)dtype, .rank = rank};
    t->dims = t->dims_inline;
    memcpy(t->dims_inline, dims, (size_t)rank * sizeof *dims);
    if (!sdx_dims_count(dims, rank, &count) || !sdx_dtype_bytes(dtype, count, &bytes))
        return SDX_FAIL_MEMORY(s->x->cx);
    t->count = count;
    t->bytes = bytes;
    t->data = sdx_mem_calloc(mem, SDX_MEM_SCRATCH, bytes + 16, 1);
    return t->data ? SDX_OK : SDX_FAIL_MEMORY(s->x->cx);
}

static struct sdx_str name_of(const struct sdx_ir_graph *g, int i, bool is_output)
{
    return g->values[is_output ? g->outputs[i] : g->inputs[i]].name;
}

static bool starts_with(struct sdx_str name, const char *text)
{
    const size_t n = strlen(text);
    return name.len >= n && memcmp(name.ptr, text, n) == 0;
}

/* Is input i of the decoder one that its outputs or the encoder's become? */
static bool is_past(const struct sdx_ir_graph *g, int i)
{
    static const char *const others[] = {"input_ids",
                                         "position_ids",
                                         "attention_mask",
                                         "encoder_attention_mask",
                                         "encoder_hidden_states",
                                         "past_sequence_length",
                                         "past_seq_len",
                                         "beam_width",
                                         "num_beams",
                                         "cache_indirection"};
    for (int k = 0; k < SDX_COUNT_OF(others); k++)
        if (sdx_str_is(name_of(g, i, false), others[k])) return false;
    return true;
}

static int count_past(const struct sdx_ir_graph *g)
{
    int count = 0;
    for (int i = 0; i < g->count_inputs; i++)
        count += is_past(g, i);
    return count;
}

/* Rows of a tensor whose axis `axis` is the batch, taken from rows `from`, or repeated for each
 * beam (from NULL), to feed i. */
static enum sdx_status feed_rows(struct search *s, int i, const struct sdx_tensor *t, int axis,
                                 const int32_t *from)
{
    const struct sdx_beams *b = &s->beams;
    struct sdx_tensor fresh = {0};
    int64_t dims[SDX_RANK_INLINE], outer = 1;
    if (t->kind != SDX_KIND_TENSOR || t->rank <= axis || t->rank > SDX_RANK_INLINE ||
        t->dtype == SDX_STRING || (t->dims[axis] != b->rows && t->dims[axis] != b->batch))
        return SDX_FAIL(s->x->cx, SDX_RUN_FAILED,
                        "search of sequences: input %d of the decoder has no batch of %lld", i,
                        (long long)b->rows);
    memcpy(dims, t->dims, (size_t)t->rank * sizeof *dims);
    const int64_t had = dims[axis];
    dims[axis] = b->rows;
    for (int d = 0; d < axis; d++)
        outer *= dims[d];
    SDX_TRY(renew(s, &fresh, t->dtype, t->rank, dims));
    const size_t row = fresh.bytes / (size_t)(outer * b->rows);
    for (int64_t o = 0; o < outer; o++)
        for (int64_t r = 0; r < b->rows; r++) {
            int64_t source = from ? from[r] : r;
            if (had != b->rows) source /= b->width;
            memcpy((char *)fresh.data + (size_t)(o * b->rows + r) * row,
                   (const char *)t->data + (size_t)(o * had + source) * row, row);
        }
    sdx_mem_free(s->x->cx->mem, s->feeds[i].data);
    s->feeds[i] = fresh;
    s->feeds[i].dims = s->feeds[i].dims_inline;
    return SDX_OK;
}

/* The declared shape of input i of the decoder with the lengths of this run: a cache of `past`
 * rows. */
static enum sdx_status feed_empty(struct search *s, int i, int64_t past)
{
    const struct sdx_ir_graph *g = s->p->graph;
    const struct sdx_type *t = &g->values[g->inputs[i]].type;
    const int last = t->rank - 1, axis = t->rank == RANK ? 1 : 0;
    int64_t dims[RANK];
    if (!t->has_shape || (t->rank != RANK && t->rank != RANK - 1) || t->dims[last] < 1 ||
        t->dims[last - 2] < 1)
        return SDX_FAIL(s->x->cx, SDX_BAD_MODEL,
                        "search of sequences: heads of input %d of the decoder are not declared",
                        i);
    memcpy(dims, t->dims, (size_t)t->rank * sizeof *dims);
    if (axis) dims[0] = 2;
    dims[axis] = s->beams.rows;
    dims[last - 1] = past;
    return renew(s, &s->feeds[i], t->dtype, t->rank, dims);
}

static enum sdx_status feed_number(struct search *s, int i, int64_t value)
{
    const int64_t one = 1;
    SDX_TRY(renew(s, &s->feeds[i], SDX_I32, 1, &one));
    *(int32_t *)s->feeds[i].data = (int32_t)value;
    return SDX_OK;
}

/* The tokens that the decoder has not seen, or all of them. */
static enum sdx_status feed_ids(struct search *s, int i, int64_t first)
{
    const struct sdx_beams *b = &s->beams;
    const int64_t dims[] = {b->rows, b->length - first};
    SDX_TRY(renew(s, &s->feeds[i], SDX_I32, 2, dims));
    for (int64_t r = 0; r < b->rows; r++)
        memcpy((int32_t *)s->feeds[i].data + r * dims[1], b->sequences + r * b->most + first,
               (size_t)dims[1] * sizeof(int32_t));
    return SDX_OK;
}

static enum sdx_status feed_mask(struct search *s, int i)
{
    const struct sdx_beams *b = &s->beams;
    const int64_t length = s->p->has_encoder ? s->mask_length : b->length;
    const int64_t dims[] = {b->rows, length};
    SDX_TRY(renew(s, &s->feeds[i], SDX_I32, 2, dims));
    for (int64_t r = 0; r < b->rows; r++)
        for (int64_t t = 0; t < length; t++)
            ((int32_t *)s->feeds[i].data)[r * length + t] =
                t < s->mask_length ? s->mask[r * s->mask_length + t] : 1;
    return SDX_OK;
}

static enum sdx_status feed_positions(struct search *s, int i, bool is_first)
{
    const struct sdx_beams *b = &s->beams;
    const int64_t dims[] = {b->rows, is_first ? b->length : 1};
    SDX_TRY(renew(s, &s->feeds[i], SDX_I32, 2, dims));
    int32_t *to = s->feeds[i].data;
    for (int64_t r = 0; r < b->rows; r++) {
        int32_t position = 0;
        for (int64_t t = 0; is_first && t < b->length; t++)
            if (b->sequences[r * b->most + t] == b->rules.pad)
                *to++ = 0;
            else
                *to++ = position++;
        if (is_first)
            s->positions[r] = position;
        else
            *to++ = s->positions[r]++;
    }
    return SDX_OK;
}

/* Each row's keys are its own: they are put in order between runs. */
static enum sdx_status feed_indirection(struct search *s, int i)
{
    const struct sdx_beams *b = &s->beams;
    const int64_t dims[] = {b->batch, b->width, b->most};
    SDX_TRY(renew(s, &s->feeds[i], SDX_I32, 3, dims));
    for (int64_t n = 0; n < b->rows * b->most; n++)
        ((int32_t *)s->feeds[i].data)[n] = (int32_t)(n / b->most % b->width);
    return SDX_OK;
}

/* Feeds that are no caches; `seen` tokens are in the caches. */
static enum sdx_status feed_others(struct search *s, int64_t seen)
{
    const struct sdx_ir_graph *g = s->p->graph;
    for (int i = 0; i < g->count_inputs; i++) {
        const struct sdx_str name = name_of(g, i, false);
        const struct sdx_type *t = &g->values[g->inputs[i]].type;
        if (sdx_str_is(name, "input_ids")) {
            const bool wants_all = s->p->has_encoder && s->trips > 0 && t->has_shape &&
                                   t->rank == 2 && t->dims[1] != 1 && seen > 0;
            SDX_TRY(feed_ids(s, i, wants_all ? 0 : seen));
        } else if (sdx_str_is(name, "position_ids")) {
            SDX_TRY(feed_positions(s, i, seen == 0));
        } else if (sdx_str_is(name, "attention_mask") ||
                   sdx_str_is(name, "encoder_attention_mask")) {
            SDX_TRY(feed_mask(s, i));
        } else if (starts_with(name, "past_seq")) {
            SDX_TRY(feed_number(s, i, seen));
        } else if (sdx_str_is(name, "beam_width") || sdx_str_is(name, "num_beams")) {
            SDX_TRY(feed_number(s, i, s->beams.width));
        } else if (sdx_str_is(name, "cache_indirection")) {
            SDX_TRY(feed_indirection(s, i));
        }
    }
    return SDX_OK;
}

/* Are caches as long as the sequences can be, with a number that tells what is in them? */
static bool shares_caches(const struct sdx_ir_graph *g)
{
    for (int i = 0; i < g->count_inputs; i++)
        if (starts_with(name_of(g, i, false), "past_seq")) return true;
    return false;
}

/* Outputs of the decoder become its caches. */
static enum sdx_status feed_present(struct search *s, struct sdx_tensor *const *out)
{
    const struct sdx_ir_graph *g = s->p->graph;
    int k = 1;
    for (int i = 0; i < g->count_inputs && k < g->count_outputs; i++)
        if (is_past(g, i)) {
            SDX_TRY(feed_rows(s, i, out[k], out[k]->rank == RANK ? 1 : 0, s->beams.from));
            k++;
        }
    return SDX_OK;
}

/* ---- scores ---- */

/* The last row of logits of each sequence; one for all beams where there are fewer. */
static enum sdx_status take_logits(struct search *s, const struct sdx_tensor *t)
{
    struct sdx_beams *b = &s->beams;
    if (t->rank != 3 || (t->dims[0] != b->rows && t->dims[0] != b->batch) || t->dims[1] < 1 ||
        (b->vocab > 0 && t->dims[2] != b->vocab))
        return bad(s, "the rank of the logits, or a length that does not fit,", t->rank);
    if (b->vocab == 0) {
        SDX_TRY(sdx_beams_set_vocab(b, t->dims[2]));
        SDX_TRY(read_masks(s));
    }
    for (int64_t r = 0; r < b->rows; r++) {
        const int64_t row = t->dims[0] == b->rows ? r : r / b->width;
        sdx_convert(SDX_F32, b->scores + r * b->vocab, 0, t->dtype, t->data,
                    ((row + 1) * t->dims[1] - 1) * b->vocab, b->vocab, true);
    }
    return SDX_OK;
}

static enum sdx_status choose(struct search *s)
{
    struct sdx_beams *b = &s->beams;
    const struct params *p = s->p;
    s->trips++;
    if (p->kind == GREEDY || p->kind == SAMPLING) {
        SDX_TRY(sdx_beams_advance_greedy(b, s->trips, p->kind == SAMPLING ? &p->sampling : NULL));
        struct sdx_tensor *kept = s->step->count_out > 1 ? s->step->out[1] : NULL;
        const int64_t dims[] = {b->batch, b->vocab};
        if (!kept) return SDX_OK;
        SDX_TRY(sdx_exec_output(s->x, s->step, 1, SDX_F32, 2, dims));
        memcpy(kept->data, b->scores, (size_t)(b->rows * b->vocab) * sizeof(float));
        return SDX_OK;
    }
    struct sdx_tensor *all = s->step->count_out > 2 ? s->step->out[2] : NULL;
    if (all && s->trips == 1) {
        const int64_t dims[] = {b->most - s->prompt, b->batch, b->width, b->vocab};
        SDX_TRY(sdx_exec_output(s->x, s->step, 2, SDX_F32, 4, dims));
        s->all_scores = all->data;
        memset(s->all_scores, 0, all->bytes);
    }
    SDX_TRY(sdx_beams_advance(b, s->trips));
    if (all)
        memcpy(s->all_scores + (s->trips - 1) * b->rows * b->vocab, b->scores,
               (size_t)(b->rows * b->vocab) * sizeof(float));
    return SDX_OK;
}

/* ---- the encoder ---- */

/* [batch, length]: 0 for padding on the left, or as the operand says. */
static enum sdx_status encoder_mask(struct search *s, struct sdx_tensor *t)
{
    const struct sdx_tensor *ids = operand(s, IDS), *given = operand(s, MASK);
    SDX_TRY(renew(s, t, SDX_I32, 2, ids->dims));
    if (given && (given->count != t->count || given->dtype != SDX_I32))
        return bad(s, "the size of attention_mask", given->count);
    int32_t *to = t->data;
    if (given) {
        memcpy(to, given->data, t->bytes);
        return SDX_OK;
    }
    for (int64_t b = 0; b < ids->dims[0]; b++) {
        bool begun = false;
        for (int64_t i = 0; i < ids->dims[1]; i++) {
            const int64_t at = b * ids->dims[1] + i;
            begun = begun || ((const int32_t *)ids->data)[at] != s->p->rules.pad;
            to[at] = begun;
        }
    }
    return SDX_OK;
}

static enum sdx_status start_tokens(struct search *s, struct sdx_tensor *t)
{
    const struct sdx_tensor *given = operand(s, START_IDS);
    const int64_t dims[] = {s->beams.batch, s->prompt};
    SDX_TRY(renew(s, t, SDX_I32, 2, dims));
    for (int64_t i = 0; i < t->count; i++)
        ((int32_t *)t->data)[i] = (int32_t)s->p->start;
    if (given) memcpy(t->data, given->data, t->bytes);
    return SDX_OK;
}

/* The encoder's outputs: logits of the first token and hidden states, where it has them, and the
 * caches of the decoder: all of them, or only the last ones. */
static enum sdx_status take_encoder(struct search *s, struct sdx_tensor *const *out)
{
    const struct sdx_ir_graph *g = s->p->graph, *e = s->p->encoder_graph;
    int given = 0;
    const struct sdx_tensor *logits = NULL, *hidden = NULL;
    for (int k = 0; k < e->count_outputs; k++) {
        const struct sdx_str name = name_of(e, k, true);
        if (sdx_str_is(name, "logits"))
            logits = out[k];
        else if (sdx_str_is(name, "encoder_hidden_states"))
            hidden = out[k];
        else
            given++;
    }
    int empty = count_past(g) - given, k = 0;
    if (empty < 0) return bad(s, "the number of outputs of the encoder", e->count_outputs);
    for (int i = 0; i < g->count_inputs; i++) {
        if (hidden && sdx_str_is(name_of(g, i, false), "encoder_hidden_states"))
            SDX_TRY(feed_rows(s, i, hidden, 0, NULL));
        if (!is_past(g, i)) continue;
        if (empty-- > 0) {
            SDX_TRY(feed_empty(s, i, 0));
            continue;
        }
        while (k < e->count_outputs && (out[k] == logits || out[k] == hidden))
            k++;
        SDX_TRY(feed_rows(s, i, out[k++], 0, NULL));
    }
    if (!logits) return SDX_OK;
    SDX_TRY(take_logits(s, logits));
    return choose(s);
}

static enum sdx_status run_encoder(struct search *s)
{
    const struct sdx_ir_graph *e = s->p->encoder_graph;
    struct sdx_beams *b = &s->beams;
    struct sdx_tensor mask = {0}, start = {0};
    struct sdx_tensor *const *out = NULL;
    const struct sdx_tensor *in[3] = {NULL};
    enum sdx_status status = start_tokens(s, &start);
    if (status == SDX_OK && s->p->kind != WHISPER) status = encoder_mask(s, &mask);
    for (int i = 0; status == SDX_OK && i < e->count_inputs; i++) {
        const struct sdx_str name = name_of(e, i, false);
        if (i < 3)
            in[i] = sdx_str_is(name, "encoder_attention_mask") && mask.data ? &mask
                    : sdx_str_is(name, "decoder_input_ids")                 ? &start
                                                                            : operand(s, IDS);
        else
            status = bad(s, "the number of inputs of the encoder", e->count_inputs);
    }
    if (status == SDX_OK) {
        for (int64_t r = 0; r < b->rows; r++) {
            memcpy(b->sequences + r * b->most,
                   (const int32_t *)start.data + r / b->width * s->prompt,
                   (size_t)s->prompt * sizeof(int32_t));
            if (mask.data)
                memcpy(s->mask + r * s->mask_length,
                       (const int32_t *)mask.data + r / b->width * s->mask_length,
                       (size_t)s->mask_length * sizeof(int32_t));
        }
        status = sdx_exec_body(s->x, s->p->encoder, e->count_inputs, in, &out);
    }
    if (status == SDX_OK) status = take_encoder(s, out);
    sdx_mem_free(s->x->cx->mem, mask.data);
    sdx_mem_free(s->x->cx->mem, start.data);
    return status;
}

/* ---- the search ---- */

/* A prompt without an encoder: its mask, and empty caches. */
static enum sdx_status take_prompt(struct search *s)
{
    struct sdx_beams *b = &s->beams;
    const struct sdx_ir_graph *g = s->p->graph;
    const struct sdx_tensor *ids = operand(s, IDS), *given = operand(s, MASK);
    if (ids->dtype != SDX_I32 || (given && (given->dtype != SDX_I32 || given->count != ids->count)))
        return bad(s, "the element type of input_ids or attention_mask", ids->dtype);
    for (int64_t r = 0; r < b->rows; r++) {
        const int64_t from = r / b->width * s->prompt;
        for (int64_t t = 0; t < s->prompt; t++) {
            const int32_t token = ((const int32_t *)ids->data)[from + t];
            b->sequences[r * b->most + t] = token;
            s->mask[r * s->mask_length + t] =
                given ? ((const int32_t *)given->data)[from + t] : token != b->rules.pad;
        }
    }
    for (int i = 0; i < g->count_inputs; i++)
        if (is_past(g, i)) SDX_TRY(feed_empty(s, i, shares_caches(g) ? b->most : 0));
    return SDX_OK;
}

static enum sdx_status run_trips(struct search *s)
{
    struct sdx_beams *b = &s->beams;
    const struct sdx_ir_graph *g = s->p->graph;
    int64_t seen = s->p->has_encoder && s->trips > 0 ? s->prompt : 0;
    while (b->length < b->most && !sdx_beams_all_done(b)) {
        struct sdx_tensor *const *out = NULL;
        if (sdx_exec_cancelled(s->x))
            return SDX_FAIL(s->x->cx, SDX_CANCELLED, "the run was cancelled");
        SDX_TRY(feed_others(s, seen));
        for (int i = 0; i < g->count_inputs; i++)
            s->in[i] = &s->feeds[i];
        struct sdx_body *body =
            s->trips == 0 && s->p->first_decoder ? s->p->first_decoder : s->p->decoder;
        SDX_TRY(sdx_exec_body(s->x, body, g->count_inputs, s->in, &out));
        seen = b->length;
        SDX_TRY(take_logits(s, out[0]));
        SDX_TRY(choose(s));
        if (b->length < b->most) SDX_TRY(feed_present(s, out));
    }
    return SDX_OK;
}

static enum sdx_status write_outputs(struct search *s)
{
    struct sdx_beams *b = &s->beams;
    if (s->p->kind == GREEDY || s->p->kind == SAMPLING) {
        const int64_t dims[] = {b->batch, b->most};
        SDX_TRY(sdx_exec_output(s->x, s->step, 0, SDX_I32, 2, dims));
        int32_t *to = s->step->out[0]->data;
        for (int64_t r = 0; r < b->rows; r++)
            for (int64_t t = 0; t < b->most; t++)
                *to++ = t < b->length ? b->sequences[r * b->most + t] : b->rules.pad;
        return SDX_OK;
    }
    const int64_t dims[] = {b->batch, s->returned, b->most};
    struct sdx_tensor *scores = s->step->count_out > 1 ? s->step->out[1] : NULL;
    SDX_TRY(sdx_exec_output(s->x, s->step, 0, SDX_I32, 3, dims));
    if (scores) SDX_TRY(sdx_exec_output(s->x, s->step, 1, SDX_F32, 2, dims));
    sdx_beams_finish(b, s->returned, s->step->out[0]->data, scores ? scores->data : NULL);
    return SDX_OK;
}

static enum sdx_status search(struct search *s)
{
    struct sdx_beams *b = &s->beams;
    struct sdx_mem *mem = s->x->cx->mem;
    const int inputs = s->p->graph->count_inputs;
    SDX_TRY(read_operands(s));
    b->length = s->prompt;
    s->mask_length = s->input_length;
    SDX_TRY(sdx_beams_init(b));
    s->feeds = sdx_mem_calloc(mem, SDX_MEM_SCRATCH, (size_t)inputs + 1, sizeof *s->feeds);
    s->in = sdx_mem_calloc(mem, SDX_MEM_SCRATCH, (size_t)inputs + 1, sizeof *s->in);
    s->positions = sdx_mem_calloc(mem, SDX_MEM_SCRATCH, (size_t)b->rows, sizeof *s->positions);
    s->mask = sdx_mem_calloc(mem, SDX_MEM_SCRATCH, (size_t)(b->rows * s->mask_length) + 1,
                             sizeof *s->mask);
    if (!s->feeds || !s->in || !s->positions || !s->mask) return SDX_FAIL_MEMORY(s->x->cx);
    SDX_TRY(s->p->has_encoder ? run_encoder(s) : take_prompt(s));
    SDX_TRY(run_trips(s));
    return write_outputs(s);
}

static enum sdx_status run_generate(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)part;
    struct search s = {.x = x, .step = step, .p = step->params, .beams = {.cx = x->cx}};
    enum sdx_status status = search(&s);
    for (int i = 0; s.feeds && i < s.p->graph->count_inputs; i++)
        sdx_mem_free(x->cx->mem, s.feeds[i].data);
    sdx_mem_free(x->cx->mem, s.feeds);
    sdx_mem_free(x->cx->mem, s.in);
    sdx_mem_free(x->cx->mem, s.positions);
    sdx_mem_free(x->cx->mem, s.mask);
    sdx_beams_deinit(&s.beams);
    return status;
}

/* ---- prepare ---- */

static enum sdx_status find_body(struct sdx_prepare *px, const char *name, struct sdx_body **body,
                                 const struct sdx_ir_graph **graph)
{
    const struct sdx_ir_attr *a = sdx_ir_attr(px->node, name);
    *body = sdx_prepare_body(px, name);
    if (!*body) return px->cx->error.status;
    *graph = &px->ir->graphs[a->graph];
    return SDX_OK;
}

static enum sdx_status check_graphs(struct sdx_prepare *px, const struct params *p)
{
    const struct sdx_ir_graph *g = p->graph;
    if (g->count_outputs < 2 || count_past(g) < g->count_outputs - 1 || g->count_inputs < 2 ||
        !sdx_str_is(name_of(g, 0, false), "input_ids"))
        return SDX_FAIL(px->cx, SDX_BAD_MODEL,
                        "%.*s: the decoder has %d inputs and %d outputs, expected input_ids, "
                        "caches and logits with caches",
                        SDX_STR_ARG(px->node->op_type), g->count_inputs, g->count_outputs);
    if (p->has_encoder && (p->kind == GREEDY || p->kind == SAMPLING))
        return SDX_FAIL(px->cx, SDX_NOT_SUPPORTED, "%.*s: models with an encoder",
                        SDX_STR_ARG(px->node->op_type));
    if (px->count_out > 3)
        for (int k = 3; k < px->count_out; k++)
            if (px->out[k])
                return SDX_FAIL(px->cx, SDX_NOT_SUPPORTED, "%.*s: output %d",
                                SDX_STR_ARG(px->node->op_type), k);
    return SDX_OK;
}

static enum sdx_status prepare_generate(struct sdx_prepare *px)
{
    struct params *p = SDX_PREPARE_NEW(px, struct params);
    const struct sdx_ir_node *n = px->node;
    const struct sdx_ir_graph *first = NULL;
    if (!p) return SDX_FAIL_MEMORY(px->cx);
    p->kind = kind_of(n);
    p->has_encoder = sdx_ir_attr_int(n, "model_type", p->kind == WHISPER ? 2 : 0) != 0;
    SDX_TRY(find_body(px, "decoder", &p->decoder, &p->graph));
    if (p->has_encoder) SDX_TRY(find_body(px, "encoder", &p->encoder, &p->encoder_graph));
    if (!p->has_encoder && sdx_ir_attr(n, "init_decoder")) {
        SDX_TRY(find_body(px, "init_decoder", &p->first_decoder, &first));
        if (first->count_inputs != p->graph->count_inputs ||
            first->count_outputs != p->graph->count_outputs)
            return SDX_FAIL(px->cx, SDX_BAD_MODEL,
                            "%.*s: init_decoder and decoder differ in inputs or outputs",
                            SDX_STR_ARG(n->op_type));
    }
    SDX_TRY(check_graphs(px, p));
    p->start = sdx_ir_attr_int(n, "decoder_start_token_id", -1);
    p->stops_early = sdx_ir_attr_int(n, "early_stopping", 0) != 0;
    p->temperature = sdx_ir_attr_float(n, "temperature", 1);
    p->rules =
        (struct sdx_token_rules){.ngram = sdx_ir_attr_int(n, "no_repeat_ngram_size", 0),
                                 .presence_penalty = sdx_ir_attr_float(n, "presence_penalty", 0),
                                 .end = (int32_t)sdx_ir_attr_int(n, "eos_token_id", -1),
                                 .pad = (int32_t)sdx_ir_attr_int(n, "pad_token_id", -1)};
    p->sampling = (struct sdx_sampling){.top_p = sdx_ir_attr_float(n, "top_p", 0),
                                        .filter = sdx_ir_attr_float(n, "filter_value", -1e20f),
                                        .least = sdx_ir_attr_int(n, "min_tokens_to_keep", 0),
                                        .is_custom = sdx_ir_attr_int(n, "custom", 0) != 0};
    return sdx_prepare_step(px, "generate", run_generate, p, 1, 0);
}

static const struct sdx_op ops[] = {
    {"BeamSearch", 1, 0, infer_generate, KERNEL(prepare_generate), .flags = SDX_OP_DYNAMIC,
     .note = "no logits_processor"},
    {"WhisperBeamSearch", 1, 0, infer_generate, KERNEL(prepare_generate), .flags = SDX_OP_DYNAMIC,
     .note = "no logits_processor, no outputs but sequences and scores"},
    {"GreedySearch", 1, 0, infer_generate, KERNEL(prepare_generate), .flags = SDX_OP_DYNAMIC,
     .note = "no encoder"},
    {"Sampling", 1, 0, infer_generate, KERNEL(prepare_generate),
     .flags = SDX_OP_DYNAMIC | SDX_OP_IMPURE, .note = "no encoder"},
};

const struct sdx_op_family sdx_ops_contrib_generate = FAMILY("com.microsoft", ops);
