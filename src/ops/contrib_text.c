/* SPDX-License-Identifier: Apache-2.0
 * com.microsoft on texts: Tokenizer, MurmurHash3, WordConvEmbedding. */
#include <float.h>
#include <math.h>

#include "kernels/vec.h"
#include "ops/op.h"
#include "ops/regex.h"
#include "ops/utf8.h"
#include "tensor/convert.h"

/* ---- Tokenizer ---- */

struct tokenizer {
    struct sdx_str pad;
    bool marks, by_letter;
    int64_t least; /* letters of a token */
    int64_t count_separators;
    struct sdx_regex **separators, *token; /* token NULL: by separators */
    size_t scratch;
};

/* The tokens of all texts, one text after another. */
struct tokens {
    struct sdx_mem *mem;
    struct sdx_str *list;
    size_t count, capacity;
    bool ok;
};

static void add_token(struct tokens *t, const char *ptr, size_t len)
{
    if (t->count == t->capacity) {
        size_t more = t->capacity ? 2 * t->capacity : 64;
        struct sdx_str *list = sdx_mem_calloc(t->mem, SDX_MEM_SCRATCH, more, sizeof *list);
        if (!list) {
            t->ok = false;
            return;
        }
        if (t->count) memcpy(list, t->list, t->count * sizeof *list);
        sdx_mem_free(t->mem, t->list);
        t->list = list;
        t->capacity = more;
    }
    t->list[t->count++] = (struct sdx_str){ptr, len};
}

static int64_t letters(struct sdx_str s)
{
    int64_t n = 0;
    for (size_t at = 0; at < s.len; n++)
        (void)sdx_utf8_next(s, &at);
    return n;
}

static void add_long_enough(const struct tokenizer *p, struct tokens *t, const char *ptr,
                            size_t len)
{
    if (letters((struct sdx_str){ptr, len}) >= p->least) add_token(t, ptr, len);
}

/* The matches of re in the text are tokens (keep), or what lies between them. */
static void split(const struct tokenizer *p, const struct sdx_regex *re, struct sdx_str s,
                  bool keep, void *scratch, struct tokens *t)
{
    size_t begin, end, start = 0;
    while (sdx_regex_find(re, s, start, scratch, &begin, &end)) {
        if (keep)
            add_long_enough(p, t, s.ptr + begin, end - begin);
        else
            add_long_enough(p, t, s.ptr + start, begin - start);
        if (end == begin && end < s.len)
            (void)sdx_utf8_next(s, &end);
        else if (end == begin)
            break;
        start = end;
    }
    if (!keep) add_long_enough(p, t, s.ptr + start, s.len - start);
}

/* UTF-8, with NULs if need be? */
static bool is_text(struct sdx_str s)
{
    while (s.len) {
        const char *nul = memchr(s.ptr, '\0', s.len);
        const size_t len = nul ? (size_t)(nul - s.ptr) : s.len;
        if (!sdx_str_is_utf8((struct sdx_str){s.ptr, len})) return false;
        const size_t past = nul ? len + 1 : len;
        s = (struct sdx_str){s.ptr + past, s.len - past};
    }
    return true;
}

/* Adds the tokens of one text. `other` is working memory of the same kind. */
static void tokenize(const struct tokenizer *p, struct sdx_str s, void *scratch, struct tokens *t,
                     struct tokens *other)
{
    if (p->by_letter) {
        for (size_t at = 0; at < s.len;) {
            size_t from = at;
            (void)sdx_utf8_next(s, &at);
            add_token(t, s.ptr + from, at - from);
        }
        return;
    }
    if (p->token) {
        split(p, p->token, s, true, scratch, t);
        return;
    }
    const size_t first = t->count;
    add_token(t, s.ptr, s.len);
    for (int64_t i = 0; i < p->count_separators; i++) {
        other->count = 0;
        for (size_t k = first; k < t->count; k++)
            split(p, p->separators[i], t->list[k], false, scratch, other);
        t->count = first;
        for (size_t k = 0; k < other->count; k++)
            add_token(t, other->list[k].ptr, other->list[k].len);
    }
}

/* Rows of as many tokens as the longest has, filled up with the padding text. */
static enum sdx_status write_tokens(struct sdx_exec *x, const struct sdx_step *step,
                                    const struct tokens *t, const size_t *ends)
{
    const struct tokenizer *p = step->params;
    const struct sdx_tensor *in = step->in[0];
    int64_t dims[SDX_RANK_MAX + 1], most = 0;
    for (int64_t i = 0; i < in->count; i++) {
        int64_t n = (int64_t)(ends[i] - (i ? ends[i - 1] : 0));
        if (n > most) most = n;
    }
    if (most > 0 && p->marks) most += 2;
    memcpy(dims, in->dims, (size_t)in->rank * sizeof *dims);
    dims[in->rank] = most;
    size_t total = (size_t)(in->count * most);
    struct sdx_str *texts = sdx_mem_calloc(x->cx->mem, SDX_MEM_SCRATCH, total + 1, sizeof *texts);
    if (!texts) return SDX_FAIL_MEMORY(x->cx);
    for (int64_t i = 0; i < in->count && most > 0; i++) {
        struct sdx_str *to = texts + i * most, *end = to + most;
        if (p->marks) *to++ = SDX_STR("\x02");
        for (size_t k = i ? ends[i - 1] : 0; k < ends[i]; k++)
            *to++ = t->list[k];
        if (p->marks) *to++ = SDX_STR("\x03");
        while (to < end)
            *to++ = p->pad;
    }
    enum sdx_status status = sdx_exec_output_strings(x, step, 0, in->rank + 1, dims, texts);
    sdx_mem_free(x->cx->mem, texts);
    return status;
}

static enum sdx_status run_tokenizer(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct sdx_tensor *in = step->in[0];
    const struct tokenizer *p = step->params;
    struct sdx_mem *mem = x->cx->mem;
    struct tokens t = {.mem = mem, .ok = true}, other = {.mem = mem, .ok = true};
    (void)part;
    for (int64_t i = 0; i < in->count; i++)
        if (!is_text(((const struct sdx_str *)in->data)[i]))
            return SDX_FAIL(x->cx, SDX_RUN_FAILED, "Tokenizer: text %lld is not valid UTF-8",
                            (long long)i);
    size_t *ends = sdx_mem_calloc(mem, SDX_MEM_SCRATCH, (size_t)in->count + 1, sizeof *ends);
    for (int64_t i = 0; ends && i < in->count && t.ok && other.ok; i++) {
        tokenize(p, ((const struct sdx_str *)in->data)[i], x->scratch, &t, &other);
        ends[i] = t.count;
    }
    enum sdx_status status =
        ends && t.ok && other.ok ? write_tokens(x, step, &t, ends) : SDX_FAIL_MEMORY(x->cx);
    sdx_mem_free(mem, t.list);
    sdx_mem_free(mem, other.list);
    sdx_mem_free(mem, ends);
    return status;
}

static enum sdx_status infer_tokenizer(struct sdx_infer *ix)
{
    int rank = sdx_infer_rank(ix, 0);
    sdx_infer_set_dtype(ix, 0, SDX_STRING);
    if (rank < 0) return SDX_OK;
    if (rank != 1 && rank != 2)
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "Tokenizer: input has rank %d, expected 1 or 2",
                        rank);
    int64_t *out = sdx_infer_new_dims(ix, 0, rank + 1);
    if (!out) return SDX_FAIL_MEMORY(ix->cx);
    memcpy(out, sdx_infer_dims(ix, 0), (size_t)rank * sizeof *out);
    out[rank] = -1;
    return SDX_OK;
}

static enum sdx_status add_pattern(struct sdx_prepare *px, struct tokenizer *p,
                                   struct sdx_str pattern, struct sdx_regex **out)
{
    SDX_TRY(sdx_regex_create(px->cx, px->arena, pattern, out));
    size_t size = sdx_regex_scratch(*out);
    if (size > p->scratch) p->scratch = size;
    return SDX_OK;
}

static enum sdx_status prepare_tokenizer(struct sdx_prepare *px)
{
    struct tokenizer *p = SDX_PREPARE_NEW(px, struct tokenizer);
    if (!p) return SDX_FAIL_MEMORY(px->cx);
    int64_t count = 0;
    const struct sdx_str *separators = sdx_ir_attr_strings(px->node, "separators", &count);
    struct sdx_str token = sdx_ir_attr_str(px->node, "tokenexp", "");
    p->marks = sdx_ir_attr_int(px->node, "mark", 0) != 0;
    p->pad = sdx_ir_attr_str(px->node, "pad_value", "");
    p->least = sdx_ir_attr_int(px->node, "mincharnum", 1);
    p->by_letter = count == 1 && separators[0].len == 0;
    if (p->least < 1 || (p->by_letter && p->least > 1))
        return SDX_FAIL(px->cx, SDX_BAD_MODEL, "Tokenizer: mincharnum is %lld",
                        (long long)p->least);
    if ((count > 0) == (token.len > 0))
        return SDX_FAIL(px->cx, SDX_BAD_MODEL,
                        "Tokenizer: either separators or tokenexp must be given");
    if (token.len) SDX_TRY(add_pattern(px, p, token, &p->token));
    p->separators = sdx_prepare_alloc(px, (size_t)(count + 1) * sizeof(struct sdx_regex *));
    if (!p->separators) return SDX_FAIL_MEMORY(px->cx);
    for (int64_t i = 0; i < count && !p->by_letter; i++) {
        if (separators[i].len == 0)
            return SDX_FAIL(px->cx, SDX_BAD_MODEL, "Tokenizer: separator %lld is empty",
                            (long long)i);
        SDX_TRY(add_pattern(px, p, separators[i], &p->separators[i]));
        p->count_separators++;
    }
    return sdx_prepare_step(px, "tokenizer", run_tokenizer, p, 1, p->scratch);
}

/* ---- MurmurHash3: the variant of 32 bits ---- */

static uint32_t turn_left(uint32_t x, int bits)
{
    return x << bits | x >> (32 - bits);
}

static uint32_t murmur3(const void *bytes, size_t size, uint32_t seed)
{
    const uint8_t *p = bytes;
    uint32_t h = seed, k = 0;
    for (size_t i = 0; i < size; i++) {
        k |= (uint32_t)p[i] << (i % 4 * 8);
        if (i % 4 != 3 && i + 1 < size) continue;
        k = turn_left(k * 0xcc9e2d51u, 15) * 0x1b873593u;
        h ^= k;
        if (i % 4 == 3) h = turn_left(h, 13) * 5 + 0xe6546b64u;
        k = 0;
    }
    h ^= (uint32_t)size;
    h = (h ^ h >> 16) * 0x85ebca6bu;
    h = (h ^ h >> 13) * 0xc2b2ae35u;
    return h ^ h >> 16;
}

static enum sdx_status infer_murmur(struct sdx_infer *ix)
{
    sdx_infer_copy(ix, 0, 0);
    sdx_infer_set_dtype(ix, 0, sdx_ir_attr_int(ix->node, "positive", 1) ? SDX_U32 : SDX_I32);
    if (sdx_infer_rank(ix, 0) < 0) return SDX_OK;
    return sdx_infer_set_dims(ix, 0, sdx_infer_rank(ix, 0), sdx_infer_dims(ix, 0));
}

static enum sdx_status run_murmur(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct sdx_tensor *in = step->in[0];
    const uint32_t seed = *(const uint32_t *)step->params;
    uint32_t *out = step->out[0]->data;
    (void)x;
    int64_t end = sdx_part_begin(in->count, step->parts, part + 1, 1);
    for (int64_t i = sdx_part_begin(in->count, step->parts, part, 1); i < end; i++) {
        const size_t size = (size_t)sdx_dtype_bits(in->dtype) / 8;
        struct sdx_str s = {(const char *)in->data + (size_t)i * size, size};
        if (in->dtype == SDX_STRING) s = ((const struct sdx_str *)in->data)[i];
        out[i] = murmur3(s.ptr, s.len, seed);
    }
    return SDX_OK;
}

static enum sdx_status prepare_murmur(struct sdx_prepare *px)
{
    uint32_t *seed = SDX_PREPARE_NEW(px, uint32_t);
    if (!seed) return SDX_FAIL_MEMORY(px->cx);
    *seed = (uint32_t)sdx_ir_attr_int(px->node, "seed", 0);
    int64_t count = px->in[0]->count;
    if (count == 0) return SDX_OK;
    return sdx_prepare_step(px, "murmur3", run_murmur, seed,
                            sdx_prepare_parts((double)count * 16, 1 << 15, count), 0);
}

/* ---- WordConvEmbedding ---- */

struct word_conv {
    int64_t words, length, letters, letter; /* letters of the alphabet; floats of one */
    int64_t filters, window;
};

static enum sdx_status infer_word_conv(struct sdx_infer *ix)
{
    static const char *const names[] = {"embedding_size", "conv_window_size",
                                        "char_embedding_size"};
    const int64_t *x = sdx_infer_dims(ix, 0), *w = sdx_infer_dims(ix, 1);
    const int64_t *b = sdx_infer_dims(ix, 2), *c = sdx_infer_dims(ix, 3);
    static const int axes[] = {0, 2, 3};
    int64_t out[] = {x ? x[0] : -1, w ? w[0] : -1}, unused;
    sdx_infer_set_dtype(ix, 0, SDX_F32);
    if ((x && sdx_infer_rank(ix, 0) != 2) || (w && sdx_infer_rank(ix, 1) != 4) ||
        (b && sdx_infer_rank(ix, 2) != 1) || (c && sdx_infer_rank(ix, 3) != 2))
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL,
                        "WordConvEmbedding: ranks of the inputs must be 2, 4, 1, 2");
    if (w && c) SDX_TRY(sdx_infer_merge_dim(ix, w[3], c[1], "length of a letter", &unused));
    if (w && b) SDX_TRY(sdx_infer_merge_dim(ix, w[0], b[0], "number of filters", &unused));
    for (int i = 0; w && i < 3; i++) {
        int64_t given = sdx_ir_attr_int(ix->node, names[i], -1);
        if (given >= 0) SDX_TRY(sdx_infer_merge_dim(ix, w[axes[i]], given, names[i], &unused));
    }
    return sdx_infer_set_dims(ix, 0, 2, out);
}

/* One word: the letters' rows one after another, then the largest tanh of each filter. Words begin
 * with a letter above 0 and have as many letters as there are above 0; others give zeros. */
static enum sdx_status run_word_conv(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct word_conv *p = step->params;
    const int32_t *word = (const int32_t *)step->in[0]->data + part * p->length;
    const float *weights = step->in[1]->data, *bias = step->in[2]->data;
    float *rows = x->scratch, *y = (float *)step->out[0]->data + part * p->filters;
    const size_t taps = (size_t)(p->window * p->letter);
    int64_t used = 0;
    for (int64_t i = 0; i < p->length; i++)
        used += word[i] > 0;
    memset(y, 0, (size_t)p->filters * sizeof *y);
    if (p->length < 1 || word[0] <= 0) return SDX_OK;
    if (used < p->window) used = p->window;
    for (int64_t i = 0; i < used; i++) {
        if (word[i] < 0 || word[i] >= p->letters)
            return SDX_FAIL(x->cx, SDX_RUN_FAILED, "WordConvEmbedding: letter %d of %lld", word[i],
                            (long long)p->letters);
        memcpy(rows + i * p->letter, (const float *)step->in[3]->data + word[i] * p->letter,
               (size_t)p->letter * sizeof *rows);
    }
    for (int64_t f = 0; f < p->filters; f++) {
        float most = -FLT_MAX;
        for (int64_t i = 0; i + p->window <= used; i++) {
            float sum = sdx_vec()->f32_dot(rows + i * p->letter, weights + (size_t)f * taps, taps);
            if (sum > most) most = sum;
        }
        y[f] = tanhf(most + bias[f]);
    }
    return SDX_OK;
}

static enum sdx_status prepare_word_conv(struct sdx_prepare *px)
{
    struct word_conv *p = SDX_PREPARE_NEW(px, struct word_conv);
    if (!p) return SDX_FAIL_MEMORY(px->cx);
    p->words = px->in[0]->dims[0];
    p->length = px->in[0]->dims[1];
    p->letters = px->in[3]->dims[0];
    p->letter = px->in[3]->dims[1];
    p->filters = px->in[1]->dims[0];
    p->window = px->in[1]->dims[2];
    if (px->in[1]->dims[1] != 1 || p->window < 1 || p->window > p->length)
        return SDX_FAIL(px->cx, SDX_BAD_MODEL,
                        "WordConvEmbedding: a window of %lld letters of %lld, %lld channels",
                        (long long)p->window, (long long)p->length, (long long)px->in[1]->dims[1]);
    if (px->out[0]->count == 0) return SDX_OK;
    return sdx_prepare_step(px, "word_conv", run_word_conv, p, p->words,
                            (size_t)(p->length * p->letter) * sizeof(float));
}

static const struct sdx_op ops[] = {
    {"Tokenizer", 1, 0, infer_tokenizer, KERNEL(prepare_tokenizer), .flags = SDX_OP_DYNAMIC},
    {"MurmurHash3", 1, 0, infer_murmur, KERNEL(prepare_murmur)},
    {"WordConvEmbedding", 1, 0, infer_word_conv, KERNEL(prepare_word_conv)},
};

const struct sdx_op_family sdx_ops_contrib_text = FAMILY("com.microsoft", ops);
