/* SPDX-License-Identifier: Apache-2.0
 * Operators on strings: StringNormalizer, StringConcat, StringSplit, RegexFullMatch (regex.c) and
 * TfIdfVectorizer. Case mapping does not depend on the locale. */
#include "ops/ml_lookup.h"
#include "ops/move.h"
#include "ops/op.h"
#include "ops/regex.h"
#include "ops/utf8.h"
#include "tensor/convert.h"

/* ---- StringNormalizer ---- */

enum text_case { CASE_NONE, CASE_LOWER, CASE_UPPER };

struct normalizer {
    enum text_case action;
    bool sensitive;
    int64_t count_stops;
    const struct sdx_str *stops; /* folded to `action` when case does not matter */
};

static enum sdx_status infer_normalizer(struct sdx_infer *ix)
{
    int rank = sdx_infer_rank(ix, 0);
    int64_t dims[2] = {1, -1};
    sdx_infer_set_dtype(ix, 0, SDX_STRING);
    if (rank < 0) return SDX_OK;
    if (rank != 1 && rank != 2)
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL,
                        "StringNormalizer: the input has rank %d, expected "
                        "1 or 2",
                        rank);
    if (rank == 2 && sdx_infer_dims(ix, 0)[0] > 1)
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "StringNormalizer: %lld rows, expected 1",
                        (long long)sdx_infer_dims(ix, 0)[0]);
    return sdx_infer_set_dims(ix, 0, rank, dims + 2 - rank);
}

/* Adds the ASCII letters that the text begins with, from `at` on. Returns where they end. */
static size_t add_ascii(struct sdx_text *to, struct sdx_str s, size_t at, enum text_case action)
{
    char some[128];
    const unsigned char first = action == CASE_LOWER ? 'A' : 'a';
    while (at < s.len && (unsigned char)s.ptr[at] < 0x80) {
        size_t n = 0;
        for (; n < sizeof some && at < s.len && (unsigned char)s.ptr[at] < 0x80; n++, at++) {
            const unsigned char c = (unsigned char)s.ptr[at];
            some[n] = (char)(action != CASE_NONE && (unsigned char)(c - first) < 26 ? c ^ 0x20 : c);
        }
        sdx_text_add_bytes(to, some, n);
    }
    return at;
}

/* Adds the text in another case. A letter may grow, by at most two bytes of four. */
static void add_cased(struct sdx_text *to, struct sdx_str s, enum text_case action)
{
    for (size_t at = add_ascii(to, s, 0, action); at < s.len; at = add_ascii(to, s, at, action)) {
        size_t from = at;
        char bytes[4];
        uint32_t c = sdx_utf8_next(s, &at);
        uint32_t d = action == CASE_LOWER   ? sdx_utf8_lower(c)
                     : action == CASE_UPPER ? sdx_utf8_upper(c)
                                            : c;
        if (d == c)
            sdx_text_add_bytes(to, s.ptr + from, at - from);
        else
            sdx_text_add_bytes(to, bytes, sdx_utf8_put(d, bytes));
    }
}

static bool is_stop(const struct normalizer *p, struct sdx_str s)
{
    for (int64_t i = 0; i < p->count_stops; i++)
        if (sdx_str_equal(s, p->stops[i])) return true;
    return false;
}

/* All texts go into one buffer; ends[i] is where kept text i stops. */
static enum sdx_status normalize(struct sdx_exec *x, const struct normalizer *p,
                                 const struct sdx_tensor *in, struct sdx_text *all,
                                 struct sdx_text *folded, size_t *ends, int64_t *kept)
{
    const struct sdx_str *texts = in->data;
    enum text_case fold = p->action == CASE_NONE ? CASE_LOWER : p->action;
    for (int64_t i = 0; i < in->count; i++) {
        struct sdx_str s = texts[i];
        if (!p->sensitive && p->count_stops) {
            sdx_text_clear(folded);
            add_cased(folded, s, fold);
            s = (struct sdx_str){sdx_text_get(folded), folded->len};
        }
        if (p->count_stops && is_stop(p, s)) continue;
        if (p->action == CASE_NONE)
            sdx_text_add_bytes(all, texts[i].ptr, texts[i].len);
        else
            add_cased(all, texts[i], p->action);
        ends[(*kept)++] = all->len;
        if (!all->ok || !folded->ok) return SDX_FAIL_MEMORY(x->cx);
    }
    return SDX_OK;
}

static enum sdx_status normalizer_output(struct sdx_exec *x, const struct sdx_step *step,
                                         const struct sdx_text *all, const size_t *ends,
                                         int64_t kept)
{
    int rank = step->in[0]->rank;
    int64_t dims[2] = {1, kept > 0 ? kept : 1}; /* nothing left: one empty text */
    struct sdx_str *texts =
        sdx_mem_calloc(x->cx->mem, SDX_MEM_SCRATCH, (size_t)kept + 1, sizeof(*texts));
    if (!texts) return SDX_FAIL_MEMORY(x->cx);
    for (int64_t i = 0; i < kept; i++) {
        size_t from = i ? ends[i - 1] : 0;
        texts[i] = (struct sdx_str){sdx_text_get(all) + from, ends[i] - from};
    }
    enum sdx_status status = sdx_exec_output_strings(x, step, 0, rank, dims + 2 - rank, texts);
    sdx_mem_free(x->cx->mem, texts);
    return status;
}

static enum sdx_status run_normalizer(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)part;
    const struct sdx_tensor *in = step->in[0];
    struct sdx_text all, folded;
    int64_t kept = 0;
    size_t *ends =
        sdx_mem_calloc(x->cx->mem, SDX_MEM_SCRATCH, (size_t)in->count + 1, sizeof(*ends));
    sdx_text_init(&all, x->cx->mem);
    sdx_text_init(&folded, x->cx->mem);
    enum sdx_status status =
        ends ? normalize(x, step->params, in, &all, &folded, ends, &kept) : SDX_FAIL_MEMORY(x->cx);
    if (status == SDX_OK) status = normalizer_output(x, step, &all, ends, kept);
    sdx_text_deinit(&all);
    sdx_text_deinit(&folded);
    sdx_mem_free(x->cx->mem, ends);
    return status;
}

/* Stop words in the case in which texts are compared. */
static enum sdx_status fold_stops(struct sdx_prepare *px, struct normalizer *p)
{
    const struct sdx_str *given = sdx_ir_attr_strings(px->node, "stopwords", &p->count_stops);
    enum text_case fold = p->action == CASE_NONE ? CASE_LOWER : p->action;
    p->stops = given;
    if (p->sensitive || p->count_stops == 0) return SDX_OK;
    struct sdx_str *stops = sdx_prepare_alloc(px, (size_t)p->count_stops * sizeof(*stops));
    if (!stops) return SDX_OUT_OF_MEMORY;
    struct sdx_text text;
    sdx_text_init(&text, px->cx->mem);
    bool ok = true;
    for (int64_t i = 0; i < p->count_stops && ok; i++) {
        sdx_text_clear(&text);
        add_cased(&text, given[i], fold);
        stops[i].len = text.len;
        stops[i].ptr = sdx_arena_strndup(px->arena, sdx_text_get(&text), text.len);
        ok = text.ok && stops[i].ptr;
    }
    sdx_text_deinit(&text);
    p->stops = stops;
    return ok ? SDX_OK : SDX_FAIL_MEMORY(px->cx);
}

static enum sdx_status prepare_normalizer(struct sdx_prepare *px)
{
    struct normalizer *p = SDX_PREPARE_NEW(px, struct normalizer);
    if (!p) return SDX_OUT_OF_MEMORY;
    struct sdx_str action = sdx_ir_attr_str(px->node, "case_change_action", "NONE");
    p->sensitive = sdx_ir_attr_int(px->node, "is_case_sensitive", 0) != 0;
    if (sdx_str_is(action, "LOWER"))
        p->action = CASE_LOWER;
    else if (sdx_str_is(action, "UPPER"))
        p->action = CASE_UPPER;
    else if (!sdx_str_is(action, "NONE"))
        return SDX_FAIL(px->cx, SDX_BAD_MODEL, "StringNormalizer: case_change_action \"%.*s\"",
                        SDX_STR_ARG(action));
    SDX_TRY(fold_stops(px, p));
    return sdx_prepare_step(px, "string_normalizer", run_normalizer, p, 1, 0);
}

/* ---- StringConcat ---- */

static enum sdx_status run_concat(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)part;
    const struct sdx_tensor *in[2] = {step->in[0], step->in[1]}, *out = step->out[0];
    int64_t at[SDX_RANK_MAX] = {0}, from[2] = {0, 0}, stride[2][SDX_RANK_MAX];
    size_t total = 0, used = 0;
    for (int k = 0; k < 2; k++) {
        int64_t own[SDX_RANK_MAX];
        int lead = out->rank - in[k]->rank;
        sdx_move_strides(in[k]->rank, in[k]->dims, own);
        for (int i = 0; i < out->rank; i++)
            stride[k][i] = i < lead || in[k]->dims[i - lead] == 1 ? 0 : own[i - lead];
    }
    struct sdx_mem *mem = x->cx->mem;
    struct sdx_str *texts =
        sdx_mem_calloc(mem, SDX_MEM_SCRATCH, (size_t)out->count + 1, 2 * sizeof(*texts));
    if (!texts) return SDX_FAIL_MEMORY(x->cx);
    for (int64_t i = 0; i < out->count; i++) {
        for (int k = 0; k < 2; k++) {
            texts[2 * i + k] = ((const struct sdx_str *)in[k]->data)[from[k]];
            total += texts[2 * i + k].len;
        }
        for (int a = out->rank - 1; a >= 0; a--) {
            from[0] += stride[0][a];
            from[1] += stride[1][a];
            if (++at[a] < out->dims[a]) break;
            from[0] -= stride[0][a] * out->dims[a];
            from[1] -= stride[1][a] * out->dims[a];
            at[a] = 0;
        }
    }
    char *bytes = sdx_mem_alloc(mem, SDX_MEM_SCRATCH, total + 1);
    for (int64_t i = 0; i < out->count && bytes; i++) {
        struct sdx_str joined = {bytes + used, 0};
        for (int k = 0; k < 2; k++) {
            struct sdx_str s = texts[2 * i + k];
            if (s.len) memcpy(bytes + used, s.ptr, s.len);
            used += s.len;
            joined.len += s.len;
        }
        texts[i] = joined;
    }
    enum sdx_status status = bytes
                                 ? sdx_exec_output_strings(x, step, 0, out->rank, out->dims, texts)
                                 : SDX_FAIL_MEMORY(x->cx);
    sdx_mem_free(mem, bytes);
    sdx_mem_free(mem, texts);
    return status;
}

static enum sdx_status prepare_concat(struct sdx_prepare *px)
{
    return sdx_prepare_step(px, "string_concat", run_concat, NULL, 1, 0);
}

/* ---- StringSplit ---- */

struct splitter {
    struct sdx_str delimiter; /* empty: runs of white space */
    int64_t limit;            /* splits; < 0: no limit */
};

static enum sdx_status infer_split(struct sdx_infer *ix)
{
    int rank = sdx_infer_rank(ix, 0);
    sdx_infer_set_dtype(ix, 0, SDX_STRING);
    if (ix->count_out > 1) sdx_infer_set_dtype(ix, 1, SDX_I64);
    if (rank < 0) return SDX_OK;
    int64_t *dims = sdx_infer_new_dims(ix, 0, rank + 1);
    if (!dims) return SDX_OUT_OF_MEMORY;
    if (rank) memcpy(dims, sdx_infer_dims(ix, 0), (size_t)rank * sizeof(*dims));
    dims[rank] = -1;
    return ix->count_out > 1 ? sdx_infer_set_dims(ix, 1, rank, dims) : SDX_OK;
}

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* The next piece of *rest; false: there is none. `splits` counts those made. */
static bool next_piece(const struct splitter *p, struct sdx_str *rest, int64_t *splits, bool *done,
                       struct sdx_str *out)
{
    const char *s = rest->ptr;
    size_t n = rest->len, i = 0;
    if (*done) return false;
    bool last = p->limit >= 0 && *splits >= p->limit;
    if (p->delimiter.len == 0) {
        while (i < n && is_space(s[i]))
            i++;
        size_t from = i;
        if (i == n) return false;
        while (i < n && (last || !is_space(s[i])))
            i++;
        *out = (struct sdx_str){s + from, i - from};
    } else {
        size_t d = p->delimiter.len;
        while (!last && i + d <= n && memcmp(s + i, p->delimiter.ptr, d) != 0)
            i++;
        bool found = !last && i + d <= n;
        if (!found) i = n;
        *out = (struct sdx_str){s, i};
        *done = !found;
        i += found ? d : 0;
    }
    *rest = (struct sdx_str){s + i, n - i};
    (*splits)++;
    return true;
}

/* Splits all texts. out NULL: only counts; otherwise rows of `width` pieces. */
static int64_t split_all(const struct splitter *p, const struct sdx_tensor *in, int64_t *counts,
                         int64_t width, struct sdx_str *out)
{
    int64_t most = 0;
    for (int64_t i = 0; i < in->count; i++) {
        struct sdx_str rest = ((const struct sdx_str *)in->data)[i], piece;
        int64_t splits = 0, n = 0;
        bool done = false;
        while (next_piece(p, &rest, &splits, &done, &piece)) {
            if (out) out[i * width + n] = piece;
            n++;
        }
        counts[i] = n;
        if (n > most) most = n;
    }
    return most;
}

static enum sdx_status run_split(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)part;
    const struct sdx_tensor *in = step->in[0];
    struct sdx_mem *mem = x->cx->mem;
    int64_t dims[SDX_RANK_MAX + 1], width = 0, total = 0;
    int64_t *counts = sdx_mem_calloc(mem, SDX_MEM_SCRATCH, (size_t)in->count + 1, sizeof(*counts));
    struct sdx_str *texts = NULL;
    enum sdx_status status = SDX_OK;
    if (counts) width = split_all(step->params, in, counts, 0, NULL);
    if (counts && sdx_mul_i64(in->count, width, &total))
        texts = sdx_mem_calloc(mem, SDX_MEM_SCRATCH, (size_t)total + 1, sizeof(*texts));
    if (!texts) {
        status = SDX_FAIL_MEMORY(x->cx);
    } else {
        (void)split_all(step->params, in, counts, width, texts);
        if (in->rank) memcpy(dims, in->dims, (size_t)in->rank * sizeof(*dims));
        dims[in->rank] = width;
        status = sdx_exec_output_strings(x, step, 0, in->rank + 1, dims, texts);
        if (status == SDX_OK && step->count_out > 1 && step->out[1]) {
            status = sdx_exec_output(x, step, 1, SDX_I64, in->rank, dims);
            if (status == SDX_OK && in->count)
                memcpy(step->out[1]->data, counts, (size_t)in->count * sizeof(*counts));
        }
    }
    sdx_mem_free(mem, texts);
    sdx_mem_free(mem, counts);
    return status;
}

static enum sdx_status prepare_split(struct sdx_prepare *px)
{
    struct splitter *p = SDX_PREPARE_NEW(px, struct splitter);
    if (!p) return SDX_OUT_OF_MEMORY;
    p->delimiter = sdx_ir_attr_str(px->node, "delimiter", "");
    p->limit = sdx_ir_attr_int(px->node, "maxsplit", -1);
    return sdx_prepare_step(px, "string_split", run_split, p, 1, 0);
}

/* ---- RegexFullMatch ---- */

static enum sdx_status infer_regex(struct sdx_infer *ix)
{
    sdx_infer_copy(ix, 0, 0);
    sdx_infer_set_dtype(ix, 0, SDX_BOOL);
    if (sdx_infer_rank(ix, 0) < 0) return SDX_OK;
    return sdx_infer_set_dims(ix, 0, sdx_infer_rank(ix, 0), sdx_infer_dims(ix, 0));
}

static enum sdx_status run_regex(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct sdx_tensor *in = step->in[0];
    const struct sdx_str *texts = in->data;
    uint8_t *out = step->out[0]->data;
    int64_t end = sdx_part_begin(in->count, step->parts, part + 1, 1);
    for (int64_t i = sdx_part_begin(in->count, step->parts, part, 1); i < end; i++)
        out[i] = sdx_regex_match(step->params, texts[i], x->scratch);
    return SDX_OK;
}

static enum sdx_status prepare_regex(struct sdx_prepare *px)
{
    const struct sdx_ir_attr *a = sdx_ir_attr(px->node, "pattern");
    struct sdx_regex *re = NULL;
    if (!a) return SDX_FAIL(px->cx, SDX_BAD_MODEL, "RegexFullMatch: attribute pattern is missing");
    SDX_TRY(sdx_regex_create(px->cx, px->arena, a->s, &re));
    int64_t n = px->in[0]->count;
    return sdx_prepare_step(px, "regex_full_match", run_regex, re,
                            sdx_prepare_parts((double)n, 256, n > 0 ? n : 1),
                            sdx_regex_scratch(re));
}

/* ---- TfIdfVectorizer ---- */

enum weighting { WEIGHT_TF, WEIGHT_IDF, WEIGHT_TFIDF };

/* N-grams as a tree: each node is reached by one item from its parent. */
struct gram_node {
    int32_t parent, item; /* item: its place in the pool, the last of equal ones */
    int32_t id;           /* number of the n-gram that ends here; -1: none */
};

struct tfidf {
    enum weighting weighting;
    int64_t least, most, skip, width; /* lengths of n-grams; columns of the output */
    const int64_t *indexes;
    const float *weights; /* of the n-grams of the pool; NULL: none */
    struct sdx_lookup items;
    struct gram_node *nodes;
    int32_t *slots;    /* a table of nodes by parent and item: node + 1; 0: free */
    int64_t slot_mask; /* a power of 2, less 1 */
    int32_t count;
};

static enum sdx_status tfidf_width(struct sdx_context *cx, const struct sdx_ir_node *node,
                                   int64_t *width)
{
    int64_t n = 0;
    const int64_t *indexes = sdx_ir_attr_ints(node, "ngram_indexes", &n);
    *width = 0;
    for (int64_t i = 0; i < n; i++) {
        if (indexes[i] < 0 || indexes[i] >= INT32_MAX)
            return SDX_FAIL(cx, SDX_BAD_MODEL, "TfIdfVectorizer: n-gram index %lld",
                            (long long)indexes[i]);
        if (indexes[i] + 1 > *width) *width = indexes[i] + 1;
    }
    if (n == 0) return SDX_FAIL(cx, SDX_BAD_MODEL, "TfIdfVectorizer: ngram_indexes is missing");
    return SDX_OK;
}

static enum sdx_status infer_tfidf(struct sdx_infer *ix)
{
    int rank = sdx_infer_rank(ix, 0);
    int64_t dims[2] = {0, 0};
    SDX_TRY(tfidf_width(ix->cx, ix->node, &dims[1]));
    sdx_infer_set_dtype(ix, 0, SDX_F32);
    if (rank < 0) return SDX_OK;
    if (rank > 2)
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL,
                        "TfIdfVectorizer: the input has rank %d, expected "
                        "1 or 2",
                        rank);
    if (rank < 2) return sdx_infer_set_dims(ix, 0, 1, &dims[1]);
    dims[0] = sdx_infer_dims(ix, 0)[0];
    return sdx_infer_set_dims(ix, 0, 2, dims);
}

/* Where the child of `parent` by `item` stands in the table, or the free slot where it would. */
static int32_t *gram_slot(const struct tfidf *p, int32_t parent, int32_t item)
{
    const uint64_t key = (uint64_t)(uint32_t)parent << 32 | (uint32_t)item;
    int64_t at = (int64_t)sdx_hash_number(key) & p->slot_mask;
    for (; p->slots[at]; at = (at + 1) & p->slot_mask) {
        const struct gram_node *node = &p->nodes[p->slots[at] - 1];
        if (node->parent == parent && node->item == item) break;
    }
    return &p->slots[at];
}

/* The child of `parent` by `item`, made when it is not there. */
static int32_t gram_child(struct tfidf *p, int32_t parent, int32_t item)
{
    int32_t *slot = gram_slot(p, parent, item);
    if (*slot) return *slot - 1;
    p->nodes[p->count++] = (struct gram_node){parent, item, -1};
    *slot = p->count;
    return p->count - 1;
}

static int32_t item_at(const struct tfidf *p, int64_t i)
{
    return (int32_t)(p->items.kind == SDX_LOOKUP_TEXT
                         ? sdx_lookup_text(&p->items, p->items.texts[i])
                         : sdx_lookup_int(&p->items, p->items.ints[i]));
}

static enum sdx_status tfidf_weights(struct sdx_prepare *px, struct tfidf *p, int64_t grams)
{
    int64_t n = 0;
    p->weights = sdx_ir_attr_floats(px->node, "weights", &n);
    if (n == 0) p->weights = NULL;
    if (p->weights && n < grams)
        return SDX_FAIL(px->cx, SDX_BAD_MODEL, "TfIdfVectorizer: %lld weights for %lld n-grams",
                        (long long)n, (long long)grams);
    return SDX_OK;
}

/* counts[k]: where in the pool the (k+1)-grams begin. */
static enum sdx_status tfidf_build(struct sdx_prepare *px, struct tfidf *p, int64_t items)
{
    int64_t n = 0, n_indexes = 0;
    int32_t id = 0;
    const int64_t *counts = sdx_ir_attr_ints(px->node, "ngram_counts", &n);
    p->indexes = sdx_ir_attr_ints(px->node, "ngram_indexes", &n_indexes);
    p->nodes = sdx_prepare_alloc(px, ((size_t)items + 1) * sizeof(*p->nodes));
    for (p->slot_mask = 15; p->slot_mask < 2 * items;)
        p->slot_mask = 2 * p->slot_mask + 1;
    p->slots = sdx_prepare_alloc(px, ((size_t)p->slot_mask + 1) * sizeof(*p->slots));
    if (!p->nodes || !p->slots) return SDX_OUT_OF_MEMORY;
    p->nodes[p->count++] = (struct gram_node){-1, -1, -1};
    for (int64_t k = 0; k < n; k++) {
        int64_t from = counts[k], to = k + 1 < n ? counts[k + 1] : items;
        if (from < 0 || to < from || to > items || (to - from) % (k + 1) != 0)
            return SDX_FAIL(px->cx, SDX_BAD_MODEL,
                            "TfIdfVectorizer: ngram_counts do not fit the "
                            "pool of %lld",
                            (long long)items);
        for (; from < to; id++) {
            int32_t at = 0;
            for (int64_t i = 0; i <= k; i++, from++)
                if (k + 1 >= p->least && k + 1 <= p->most) at = gram_child(p, at, item_at(p, from));
            if (at) p->nodes[at].id = id;
        }
    }
    if (id > n_indexes)
        return SDX_FAIL(px->cx, SDX_BAD_MODEL, "TfIdfVectorizer: %d n-grams, %lld indexes", id,
                        (long long)n_indexes);
    return tfidf_weights(px, p, id);
}

static void tfidf_add(const struct tfidf *p, int32_t id, float *out)
{
    float w = p->weights && p->weighting != WEIGHT_TF ? p->weights[id] : 1;
    *out = p->weighting == WEIGHT_IDF ? w : *out + w;
}

/* Counts the n-grams of n items (-1: not in the pool) with gaps of `step` between their items. */
static void tfidf_count(const struct tfidf *p, const int32_t *items, int64_t n, int64_t step,
                        int64_t least, float *out)
{
    for (int64_t start = 0; start < n && (least - 1) * step < n - start; start++) {
        int32_t at = 0;
        for (int64_t size = 1, i = start; size <= p->most && i < n; size++, i += step) {
            if (items[i] < 0) break;
            at = *gram_slot(p, at, items[i]) - 1;
            if (at < 0) break;
            int32_t id = p->nodes[at].id;
            if (size >= least && id >= 0) tfidf_add(p, id, out + p->indexes[id]);
        }
    }
}

static enum sdx_status run_tfidf(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct tfidf *p = step->params;
    const struct sdx_tensor *in = step->in[0];
    int32_t *items = x->scratch;
    int64_t rows = in->rank == 2 ? in->dims[0] : 1, n = rows ? in->count / rows : 0;
    int64_t end = sdx_part_begin(rows, step->parts, part + 1, 1);
    for (int64_t r = sdx_part_begin(rows, step->parts, part, 1); r < end; r++) {
        float *out = (float *)step->out[0]->data + r * p->width;
        int64_t least = p->least;
        memset(out, 0, (size_t)p->width * sizeof(*out));
        for (int64_t i = 0; i < n; i++)
            items[i] = (int32_t)sdx_lookup_element(&p->items, in, r * n + i);
        for (int64_t gap = 1; gap <= p->skip + 1 && least <= p->most; gap++) {
            tfidf_count(p, items, n, gap, least, out);
            if (least == 1) least = 2; /* gaps make no difference to single items */
        }
    }
    return SDX_OK;
}

static enum sdx_status prepare_tfidf(struct sdx_prepare *px)
{
    struct tfidf *p = SDX_PREPARE_NEW(px, struct tfidf);
    if (!p) return SDX_OUT_OF_MEMORY;
    const struct sdx_tensor *in = px->in[0];
    struct sdx_str mode = sdx_ir_attr_str(px->node, "mode", "");
    int64_t n_texts = 0, n_ints = 0;
    p->weighting = sdx_str_is(mode, "TF")    ? WEIGHT_TF
                   : sdx_str_is(mode, "IDF") ? WEIGHT_IDF
                                             : WEIGHT_TFIDF;
    if (p->weighting == WEIGHT_TFIDF && !sdx_str_is(mode, "TFIDF"))
        return SDX_FAIL(px->cx, SDX_BAD_MODEL, "TfIdfVectorizer: mode \"%.*s\"", SDX_STR_ARG(mode));
    p->least = sdx_ir_attr_int(px->node, "min_gram_length", 1);
    p->most = sdx_ir_attr_int(px->node, "max_gram_length", 1);
    p->skip = sdx_ir_attr_int(px->node, "max_skip_count", 0);
    const struct sdx_str *texts = sdx_ir_attr_strings(px->node, "pool_strings", &n_texts);
    const int64_t *ints = sdx_ir_attr_ints(px->node, "pool_int64s", &n_ints);
    if (p->least < 1 || p->most < p->least || p->skip < 0 || (n_texts > 0) == (n_ints > 0) ||
        (n_texts > 0) != (in->dtype == SDX_STRING) || n_texts + n_ints > INT32_MAX)
        return SDX_FAIL(px->cx, SDX_BAD_MODEL,
                        "TfIdfVectorizer: lengths %lld to %lld, skips %lld, pool of %lld for %s",
                        (long long)p->least, (long long)p->most, (long long)p->skip,
                        (long long)(n_texts + n_ints), sdx_dtype_short_name(in->dtype));
    SDX_TRY(tfidf_width(px->cx, px->node, &p->width));
    SDX_TRY(n_texts > 0 ? sdx_lookup_texts(px, &p->items, texts, n_texts)
                        : sdx_lookup_ints(px, &p->items, ints, n_ints));
    SDX_TRY(tfidf_build(px, p, n_texts + n_ints));
    int64_t rows = in->rank == 2 ? in->dims[0] : 1;
    const size_t scratch = (size_t)(rows > 0 ? in->count / rows : 0) * sizeof(int32_t);
    return sdx_prepare_step(px, "tfidf", run_tfidf, p,
                            sdx_prepare_parts((double)in->count, 4096, rows > 0 ? rows : 1),
                            scratch);
}

static const struct sdx_op ops[] = {
    {"StringNormalizer", 10, 0, infer_normalizer, KERNEL(prepare_normalizer),
     .flags = SDX_OP_DYNAMIC,
     .note = "case mapping: Latin, Greek, Cyrillic, Armenian; locale is ignored"},
    {"StringConcat", 20, 0, sdx_infer_binary, KERNEL(prepare_concat)},
    {"StringSplit", 20, 0, infer_split, KERNEL(prepare_split), .flags = SDX_OP_DYNAMIC},
    {"RegexFullMatch", 20, 0, infer_regex, KERNEL(prepare_regex),
     .note = "RE2 syntax without \\p and \\C"},
    {"TfIdfVectorizer", 9, 0, infer_tfidf, KERNEL(prepare_tfidf)},
};
const struct sdx_op_family sdx_ops_text = FAMILY("", ops);
