/* SPDX-License-Identifier: Apache-2.0
 * Einsum. Operands are taken pairwise from the left. A pair becomes a batched matrix product:
 * labels of both and of the result are the batch, those summed are K, the others rows and columns;
 * an operand whose labels do not lie as the product needs is copied first. Pairs with tiny
 * matrices or nothing but a factor for each row, and single operands, go through plain loops over
 * labels. */
#include "ops/einsum.h"

#include "kernels/vec.h"
#include "ops/move.h"
#include "ops/product.h"

enum { LETTERS = 52, LABELS = LETTERS + SDX_RANK_MAX, SMALL = 32 };

/* ---- the equation ---- */

struct term {
    int count;
    int labels[SDX_RANK_MAX];
};

/* dims: of each label; -1 when not known, or not used. Labels from LETTERS on are the ellipsis'
 * axes, aligned right. */
struct equation {
    int count_terms, ellipsis;
    struct term out;
    int64_t dims[LABELS];
};

static int label_of(char c)
{
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    return c >= 'A' && c <= 'Z' ? c - 'A' : -1;
}

static enum sdx_status bad(struct sdx_context *cx, struct sdx_str text)
{
    return SDX_FAIL(cx, SDX_BAD_MODEL, "Einsum: equation \"%.*s\" is not valid for these inputs",
                    SDX_STR_ARG(text));
}

bool sdx_einsum_holds(struct sdx_str term, char label)
{
    return term.len && memchr(term.ptr, label, term.len);
}

/* Without an arrow the output has the labels that are there once, in their order. */
static void imply_output(struct sdx_einsum *e)
{
    size_t length = 0;
    for (int c = 'A'; c <= 'z'; c++) {
        int uses = 0;
        for (int t = 0; t < e->count; t++)
            uses += sdx_einsum_holds(e->term[t], (char)c);
        if (uses == 1) e->implied[length++] = (char)c;
    }
    e->term[e->count] = (struct sdx_str){e->implied, length};
}

bool sdx_einsum_read(const struct sdx_ir_node *node, struct sdx_einsum *e)
{
    const struct sdx_str given = sdx_ir_attr_str(node, "equation", "");
    const char *text = e->text;
    size_t length = 0;
    *e = (struct sdx_einsum){0};
    for (size_t i = 0; i < given.len && length + 1 < SDX_EINSUM_LONGEST; i++)
        if (given.ptr[i] != ' ') e->text[length++] = given.ptr[i];
    for (size_t i = 0, from = 0; i <= length; i++) {
        const bool ends = i == length || text[i] == ',' || text[i] == '-';
        if (text[i] == '.') return false;
        for (size_t k = from; k < i && !ends; k++)
            if (text[k] == text[i]) return false; /* a diagonal */
        if (!ends) continue;
        if (e->count > SDX_EINSUM_TERMS - 1) return false;
        e->term[e->count] = (struct sdx_str){text + from, i - from};
        if (i < length || !e->is_explicit) e->count++;
        from = i + 1;
        if (text[i] != '-') continue;
        e->is_explicit = true;
        from = ++i + 1; /* behind the arrow */
    }
    if (!e->is_explicit) imply_output(e);
    return e->count == node->count_inputs;
}

/* Letters of one term; *dots gets the place of the ellipsis among them, -1 for none. */
static bool read_letters(struct sdx_str text, int *letters, int *count, int *dots)
{
    *count = 0;
    *dots = -1;
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] == ' ') continue;
        if (text.ptr[i] == '.') {
            if (*dots >= 0 || text.len - i < 3 || memcmp(text.ptr + i, "...", 3) != 0) return false;
            *dots = *count;
            i += 2;
            continue;
        }
        if (label_of(text.ptr[i]) < 0 || *count == SDX_RANK_MAX) return false;
        letters[(*count)++] = label_of(text.ptr[i]);
    }
    return true;
}

/* The term with its ellipsis written out as the last `axes` of the `most` ellipsis labels. */
static bool expand(const int *letters, int count, int dots, int axes, int most, struct term *out)
{
    out->count = 0;
    if (count + (dots < 0 ? 0 : axes) > SDX_RANK_MAX) return false;
    for (int i = 0; i <= count; i++) {
        for (int k = 0; i == dots && k < axes; k++)
            out->labels[out->count++] = LETTERS + most - axes + k;
        if (i < count) out->labels[out->count++] = letters[i];
    }
    return true;
}

/* Splits off what comes before `mark`; the rest stays in *text. */
static struct sdx_str cut(struct sdx_str *text, char mark)
{
    size_t n = 0;
    while (n < text->len && text->ptr[n] != mark)
        n++;
    struct sdx_str head = {text->ptr, n};
    text->ptr += n < text->len ? n + 1 : n;
    text->len -= n < text->len ? n + 1 : n;
    return head;
}

static enum sdx_status merge_label(struct sdx_context *cx, struct sdx_str text, int64_t *dim,
                                   int64_t length)
{
    if (*dim == -1 || *dim == 1)
        *dim = length;
    else if (length > 1 && *dim >= 0 && *dim != length)
        return bad(cx, text);
    else if (length > 1)
        *dim = length;
    return SDX_OK;
}

/* terms: one an input; ranks, dims: of the inputs. */
static enum sdx_status parse(struct sdx_context *cx, struct sdx_str text, int count,
                             const int *ranks, const int64_t *const *dims, struct term *terms,
                             struct equation *eq)
{
    int letters[SDX_RANK_MAX], n, dots, uses[LABELS] = {0};
    struct sdx_str left = text, rest = {NULL, 0};
    bool is_explicit = false, seen[LABELS] = {false};
    for (size_t i = 0; i + 1 < text.len; i++)
        if (text.ptr[i] == '-' && text.ptr[i + 1] == '>' && !is_explicit) {
            is_explicit = true;
            left.len = i;
            rest = (struct sdx_str){text.ptr + i + 2, text.len - i - 2};
        }
    eq->ellipsis = 0;
    eq->count_terms = count;
    for (int i = 0; i < LABELS; i++)
        eq->dims[i] = -1;
    for (int pass = 0; pass < 2; pass++) {
        struct sdx_str work = left;
        for (int t = 0; t < count; t++) {
            if (t == count - 1 && memchr(work.ptr, ',', work.len)) return bad(cx, text);
            struct sdx_str term = cut(&work, ',');
            if (!read_letters(term, letters, &n, &dots)) return bad(cx, text);
            int axes = ranks[t] - n;
            if (axes < 0 || (axes > 0 && dots < 0)) return bad(cx, text);
            if (axes > eq->ellipsis) eq->ellipsis = axes;
            if (pass == 0) continue;
            if (!expand(letters, n, dots, axes, eq->ellipsis, &terms[t])) return bad(cx, text);
            for (int i = 0; i < ranks[t]; i++) {
                int label = terms[t].labels[i];
                SDX_TRY(merge_label(cx, text, &eq->dims[label], dims[t][i]));
                seen[label] = true;
                uses[label]++;
            }
        }
    }
    if (is_explicit) {
        if (!read_letters(rest, letters, &n, &dots) ||
            !expand(letters, n, dots, eq->ellipsis, eq->ellipsis, &eq->out) ||
            (dots < 0 && eq->ellipsis > 0))
            return bad(cx, text);
        bool twice[LABELS] = {false};
        for (int i = 0; i < eq->out.count; i++) {
            int label = eq->out.labels[i];
            if (!seen[label] || twice[label]) return bad(cx, text);
            twice[label] = true;
        }
        return SDX_OK;
    }
    eq->out.count = 0;
    for (int i = 0; i < eq->ellipsis; i++)
        eq->out.labels[eq->out.count++] = LETTERS + i;
    for (int label = 0; label < LETTERS; label++)
        if (uses[label] == 1) eq->out.labels[eq->out.count++] = label;
    return SDX_OK;
}

static enum sdx_status infer_einsum(struct sdx_infer *ix)
{
    struct equation eq;
    int count = ix->count_in;
    sdx_infer_set_dtype(ix, 0, sdx_infer_dtype(ix, 0));
    int *ranks = sdx_arena_array(ix->arena, (size_t)count, sizeof *ranks);
    const int64_t **dims = sdx_arena_array(ix->arena, (size_t)count, sizeof *dims);
    struct term *terms = sdx_arena_array(ix->arena, (size_t)count, sizeof *terms);
    if (!ranks || !dims || !terms) return SDX_FAIL_MEMORY(ix->cx);
    for (int i = 0; i < count; i++) {
        ranks[i] = sdx_infer_rank(ix, i);
        dims[i] = sdx_infer_dims(ix, i);
        if (ranks[i] < 0) return SDX_OK;
    }
    SDX_TRY(
        parse(ix->cx, sdx_ir_attr_str(ix->node, "equation", ""), count, ranks, dims, terms, &eq));
    int64_t out[SDX_RANK_MAX];
    for (int i = 0; i < eq.out.count; i++)
        out[i] = eq.dims[eq.out.labels[i]];
    return sdx_infer_set_dims(ix, 0, eq.out.count, out);
}

static void cost_einsum(const struct sdx_infer *ix, struct sdx_cost *cost)
{
    bool seen[256] = {false};
    struct sdx_str left = sdx_ir_attr_str(ix->node, "equation", "");
    cost->macs = 1;
    for (int t = 0; t < ix->count_in; t++) {
        struct sdx_str term = cut(&left, ',');
        int letters[SDX_RANK_MAX], n, dots, rank = sdx_infer_rank(ix, t);
        const char *arrow = memchr(term.ptr, '-', term.len);
        if (arrow) term.len = (size_t)(arrow - term.ptr);
        if (!read_letters(term, letters, &n, &dots)) return;
        for (int i = 0; i < n; i++) {
            int at = dots >= 0 && i >= dots ? rank - n + i : i;
            if (!seen[letters[i]]) cost->macs *= (double)sdx_infer_dims(ix, t)[at];
            seen[letters[i]] = true;
        }
        for (int i = 0; t == 0 && dots >= 0 && i < rank - n; i++)
            cost->macs *= (double)sdx_infer_dims(ix, t)[dots + i];
    }
    cost->flops = 2 * cost->macs;
}

/* ---- loops over labels ---- */

/* A tensor and the step of each label in it (repeated labels: the diagonal's). */
struct view {
    struct sdx_tensor *tensor;
    int input; /* of the node; -1: a temporary */
    bool has[LABELS];
    int64_t step[LABELS];
};

struct loops {
    int count_out, count_sum;
    int64_t out[SDX_RANK_MAX], sum[SDX_RANK_MAX];
    int64_t out_step[2][SDX_RANK_MAX], sum_step[2][SDX_RANK_MAX]; /* of the operands */
    int64_t outputs, sums;
};

/* The next place of an odometer over `dims`; at[2] are the operands' elements. */
static void advance(int count, const int64_t *dims, int64_t (*steps)[SDX_RANK_MAX], int64_t *index,
                    int64_t *at)
{
    for (int d = count - 1; d >= 0; d--) {
        index[d]++;
        at[0] += steps[0][d];
        at[1] += steps[1][d];
        if (index[d] < dims[d]) return;
        at[0] -= steps[0][d] * dims[d];
        at[1] -= steps[1][d] * dims[d];
        index[d] = 0;
    }
}

static void seek(const struct loops *p, int64_t place, int64_t *index, int64_t *at)
{
    at[0] = at[1] = 0;
    for (int d = p->count_out - 1; d >= 0; d--) {
        index[d] = place % p->out[d];
        place /= p->out[d];
        at[0] += index[d] * p->out_step[0][d];
        at[1] += index[d] * p->out_step[1][d];
    }
}

/* y[j] = a[j * step_a] * b[j * step_b], j < n */
static void multiply_row(const float *a, int64_t step_a, const float *b, int64_t step_b, float *y,
                         int64_t n)
{
    if ((step_a == 0 || step_a == 1) && (step_b == 0 || step_b == 1)) {
        sdx_vec()->f32_mul(a, (size_t)step_a, b, (size_t)step_b, y, (size_t)n);
        return;
    }
    for (int64_t j = 0; j < n; j++, a += step_a, b += step_b)
        y[j] = *a * *b;
}

/* One sum of a (times b, when there is one). T: type; A: accumulator. */
#define LOOPS(T, A)                                                                                \
    static A sum_##T(struct loops *p, const T *a, const T *b)                                      \
    {                                                                                              \
        const int last = p->count_sum - 1;                                                         \
        const int64_t n = last < 0 ? 1 : p->sum[last], rows = n ? p->sums / n : 0;                 \
        const int64_t step_a = last < 0 ? 0 : p->sum_step[0][last];                                \
        const int64_t step_b = last < 0 ? 0 : p->sum_step[1][last];                                \
        int64_t index[SDX_RANK_MAX] = {0}, at[2] = {0, 0};                                         \
        A sum = 0;                                                                                 \
        for (int64_t r = 0; r < rows; r++) {                                                       \
            const T *x = a + at[0], *z = b ? b + at[1] : NULL;                                     \
            if (z)                                                                                 \
                for (int64_t k = 0; k < n; k++)                                                    \
                    sum += (A)x[k * step_a] * (A)z[k * step_b];                                    \
            else                                                                                   \
                for (int64_t k = 0; k < n; k++)                                                    \
                    sum += (A)x[k * step_a];                                                       \
            advance(last, p->sum, p->sum_step, index, at);                                         \
        }                                                                                          \
        return sum;                                                                                \
    }                                                                                              \
    static enum sdx_status run_##T(struct sdx_exec *x, const struct sdx_step *step, int64_t part)  \
    {                                                                                              \
        struct loops *p = step->params;                                                            \
        const T *a = step->in[0]->data, *b = step->in[1] ? step->in[1]->data : NULL;               \
        T *y = step->out[0]->data;                                                                 \
        const int last = p->count_out - 1;                                                         \
        const int64_t length = last < 0 ? 1 : p->out[last];                                        \
        const int64_t step_a = last < 0 ? 0 : p->out_step[0][last];                                \
        const int64_t step_b = last < 0 ? 0 : p->out_step[1][last];                                \
        const int64_t end = sdx_part_begin(p->outputs, step->parts, part + 1, 16);                 \
        int64_t index[SDX_RANK_MAX] = {0}, at[2], n;                                               \
        int64_t i = sdx_part_begin(p->outputs, step->parts, part, 16);                             \
        seek(p, i, index, at);                                                                     \
        for (; i < end && !sdx_exec_cancelled(x); i += n) {                                        \
            const int64_t first = last < 0 ? 0 : index[last];                                      \
            n = length - first < end - i ? length - first : end - i;                               \
            if (sizeof(A) == 4 && b && p->sums == 1)                                               \
                multiply_row((const float *)(const void *)(a + at[0]), step_a,                     \
                             (const float *)(const void *)(b + at[1]), step_b,                     \
                             (float *)(void *)(y + i), n);                                         \
            else                                                                                   \
                for (int64_t j = 0; j < n; j++)                                                    \
                    y[i + j] =                                                                     \
                        (T)sum_##T(p, a + at[0] + j * step_a, b ? b + at[1] + j * step_b : NULL);  \
            at[0] -= first * step_a;                                                               \
            at[1] -= first * step_b;                                                               \
            if (last >= 0) index[last] = 0;                                                        \
            advance(last, p->out, p->out_step, index, at);                                         \
        }                                                                                          \
        return SDX_OK;                                                                             \
    }
LOOPS(float, float)
LOOPS(double, double)
LOOPS(uint8_t, uint64_t)
LOOPS(uint16_t, uint64_t)
LOOPS(uint32_t, uint64_t)
LOOPS(uint64_t, uint64_t)
#undef LOOPS

static sdx_step_fn *loops_for(int dtype)
{
    size_t bytes = 0;
    if (dtype == SDX_F32) return run_float;
    if (dtype == SDX_F64) return run_double;
    if (!sdx_dtype_is_integer(dtype) || !sdx_dtype_bytes(dtype, 1, &bytes)) return NULL;
    return bytes == 1   ? run_uint8_t
           : bytes == 2 ? run_uint16_t
           : bytes == 4 ? run_uint32_t
                        : run_uint64_t;
}

static enum sdx_status run_turned(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)x;
    const struct sdx_move *m = step->params;
    sdx_move_run(m, step->in[0]->data, step->out[0]->data,
                 sdx_part_begin(m->units, step->parts, part, 1),
                 sdx_part_begin(m->units, step->parts, part + 1, 1));
    return SDX_OK;
}

/* One operand in another order, nothing summed. */
static enum sdx_status add_turned(struct sdx_prepare *px, const struct loops *p,
                                  struct sdx_tensor *from, struct sdx_tensor *out)
{
    struct sdx_move *m = SDX_PREPARE_NEW(px, struct sdx_move);
    int64_t to[SDX_RANK_MAX];
    size_t size = 0;
    if (!m) return SDX_FAIL_MEMORY(px->cx);
    if (!sdx_dtype_bytes(out->dtype, 1, &size)) size = 1;
    sdx_move_strides(p->count_out, p->out, to);
    sdx_move_init(m, size, p->count_out, p->out, p->out_step[0], to, 0, 0);
    return sdx_prepare_step_on(px, "einsum_turn", run_turned, m, sdx_move_parts(m), 0, 1, &from, 1,
                               &out);
}

/* out = sum of a * b over the labels that out does not have; b may be NULL. */
static enum sdx_status add_loops(struct sdx_prepare *px, const struct equation *eq,
                                 const struct view *a, const struct view *b,
                                 const struct term *labels, struct sdx_tensor *out)
{
    struct loops *p = SDX_PREPARE_NEW(px, struct loops);
    bool is_out[LABELS] = {false};
    const struct view *views[2] = {a, b};
    if (!p) return SDX_FAIL_MEMORY(px->cx);
    p->outputs = p->sums = 1;
    for (int i = 0; i < labels->count; i++) {
        int label = labels->labels[i];
        is_out[label] = true;
        p->out[p->count_out] = eq->dims[label];
        for (int k = 0; k < 2; k++)
            p->out_step[k][p->count_out] =
                views[k] && views[k]->has[label] ? views[k]->step[label] : 0;
        p->outputs *= eq->dims[label];
        p->count_out++;
    }
    for (int label = 0; label < LABELS; label++) {
        bool used = a->has[label] || (b && b->has[label]);
        if (!used || is_out[label] || eq->dims[label] == 1) continue;
        p->sum[p->count_sum] = eq->dims[label];
        for (int k = 0; k < 2; k++)
            p->sum_step[k][p->count_sum] =
                views[k] && views[k]->has[label] ? views[k]->step[label] : 0;
        p->sums *= eq->dims[label];
        p->count_sum++;
    }
    sdx_step_fn *run = loops_for(out->dtype);
    if (!run)
        return SDX_FAIL(px->cx, SDX_NOT_SUPPORTED, "Einsum: element type %s",
                        sdx_dtype_short_name(out->dtype));
    if (p->outputs == 0) return SDX_OK;
    if (!b && p->count_sum == 0) return add_turned(px, p, a->tensor, out);
    struct sdx_tensor *in[] = {a->tensor, b ? b->tensor : NULL};
    int64_t parts =
        sdx_prepare_parts((double)p->outputs * (double)(p->sums ? p->sums : 1), 1 << 14, 64);
    return sdx_prepare_step_on(px, "einsum", run, p, parts, 0, 2, in, 1, &out);
}

/* ---- pairs ---- */

static struct view view_of(struct sdx_tensor *t, int input, const struct term *term)
{
    struct view v = {.tensor = t, .input = input};
    int64_t step = 1;
    for (int i = term->count - 1; i >= 0; i--) {
        v.has[term->labels[i]] = true;
        if (t->dims[i] != 1) v.step[term->labels[i]] += step;
        step *= t->dims[i];
    }
    return v;
}

/* A new contiguous tensor of these labels; out is its view. */
static enum sdx_status fresh(struct sdx_prepare *px, const struct equation *eq,
                             const struct term *labels, struct view *out)
{
    int64_t dims[SDX_RANK_MAX];
    for (int i = 0; i < labels->count; i++)
        dims[i] = eq->dims[labels->labels[i]];
    struct sdx_tensor *t = sdx_prepare_temp(px, px->out[0]->dtype, labels->count, dims);
    if (!t) return SDX_FAIL_MEMORY(px->cx);
    *out = view_of(t, -1, labels);
    return SDX_OK;
}

static void append(struct term *to, int label)
{
    to->labels[to->count++] = label;
}

/* The labels as one axis of the view: its length and step. false: they do not lie so. */
static bool flatten(const struct equation *eq, const struct view *v, const struct term *labels,
                    int64_t *length, int64_t *step)
{
    bool has_step = false;
    *length = 1;
    *step = 0;
    for (int i = labels->count - 1; i >= 0; i--) {
        int64_t n = eq->dims[labels->labels[i]], s = v->step[labels->labels[i]];
        if (n == 1) continue;
        if (has_step && s != *step * *length) return false;
        if (!has_step) *step = s;
        has_step = true;
        *length *= n;
    }
    if (!has_step) *step = 1;
    return true;
}

/* Element of each product of the batch. */
static enum sdx_status places(struct sdx_prepare *px, const struct equation *eq,
                              const struct view *v, const struct term *batch, int64_t count,
                              const int64_t **out)
{
    int64_t *at = sdx_prepare_alloc(px, (size_t)(count ? count : 1) * sizeof *at);
    if (!at) return SDX_FAIL_MEMORY(px->cx);
    for (int64_t i = 0; i < count; i++) {
        int64_t rest = i;
        for (int d = batch->count - 1; d >= 0; d--) {
            int label = batch->labels[d];
            at[i] += rest % eq->dims[label] * v->step[label];
            rest /= eq->dims[label];
        }
    }
    *out = at;
    return SDX_OK;
}

/* Makes an operand lie as [batch, first, second]. */
static enum sdx_status copy_view(struct sdx_prepare *px, const struct equation *eq,
                                 const struct term *batch, const struct term *first,
                                 const struct term *second, struct view *v)
{
    struct term labels = {0};
    const struct term *lists[] = {batch, first, second};
    struct view copy;
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < lists[k]->count; i++)
            if (v->has[lists[k]->labels[i]]) append(&labels, lists[k]->labels[i]);
    SDX_TRY(fresh(px, eq, &labels, &copy));
    SDX_TRY(add_loops(px, eq, v, NULL, &labels, copy.tensor));
    *v = copy;
    return SDX_OK;
}

struct roles {
    struct term batch, rows, columns, inner;
};

/* Labels of a pair by role, in the order of `wanted` (those the result must keep). */
static void sort_labels(const struct view *a, const struct view *b, const struct term *wanted,
                        struct roles *r)
{
    bool kept[LABELS] = {false};
    memset(r, 0, sizeof *r);
    for (int i = 0; i < wanted->count; i++) {
        int label = wanted->labels[i];
        kept[label] = true;
        append(a->has[label] && b->has[label] ? &r->batch
               : a->has[label]                ? &r->rows
                                              : &r->columns,
               label);
    }
    for (int label = 0; label < LABELS; label++)
        if (a->has[label] && b->has[label] && !kept[label]) append(&r->inner, label);
}

static int64_t volume(const struct equation *eq, const struct term *labels)
{
    int64_t n = 1;
    for (int i = 0; i < labels->count; i++)
        n *= eq->dims[labels->labels[i]];
    return n;
}

/* Sums away what only this operand has and nobody wants. */
static enum sdx_status drop_own(struct sdx_prepare *px, const struct equation *eq,
                                const struct view *other, const struct term *wanted, struct view *v)
{
    struct term keep = {0};
    bool kept[LABELS] = {false}, drops = false;
    for (int i = 0; i < wanted->count; i++)
        kept[wanted->labels[i]] = true;
    for (int label = 0; label < LABELS; label++) {
        if (!v->has[label]) continue;
        if (kept[label] || other->has[label])
            append(&keep, label);
        else
            drops = true;
    }
    if (!drops) return SDX_OK;
    struct view sum;
    SDX_TRY(fresh(px, eq, &keep, &sum));
    SDX_TRY(add_loops(px, eq, v, NULL, &keep, sum.tensor));
    *v = sum;
    return SDX_OK;
}

/* A label of length > 1 that an operand has with length 1 is as if it had not got it. */
static void drop_ones(const struct equation *eq, struct view *v)
{
    for (int label = 0; label < LABELS; label++)
        if (v->has[label] && v->step[label] == 0 && eq->dims[label] > 1) v->has[label] = false;
}

/* result = a * b with the labels `wanted`; `out`: where, when its labels are in this very order,
 * otherwise NULL. */
static enum sdx_status multiply(struct sdx_prepare *px, const struct equation *eq, struct view a,
                                struct view b, const struct term *wanted, struct sdx_tensor *out,
                                struct view *result)
{
    struct roles r;
    SDX_TRY(drop_own(px, eq, &b, wanted, &a));
    SDX_TRY(drop_own(px, eq, &a, wanted, &b));
    sort_labels(&a, &b, wanted, &r);
    struct sdx_product p = {.alpha = 1};
    p.batch = volume(eq, &r.batch);
    p.m = volume(eq, &r.rows);
    p.n = volume(eq, &r.columns);
    p.k = volume(eq, &r.inner);
    const bool is_small = (p.k == 1 && (p.m == 1 || p.n == 1)) ||
                          ((double)p.m * (double)p.n * (double)p.k < SMALL && p.batch > 1);
    struct term order = *wanted;
    if (!is_small) {
        const struct term *lists[] = {&r.batch, &r.rows, &r.columns};
        order.count = 0;
        for (int k = 0; k < 3; k++)
            for (int i = 0; i < lists[k]->count; i++)
                append(&order, lists[k]->labels[i]);
    }
    bool in_order = memcmp(order.labels, wanted->labels, (size_t)wanted->count * sizeof(int)) == 0;
    if (out && in_order)
        *result = view_of(out, -1, &order);
    else
        SDX_TRY(fresh(px, eq, &order, result));
    if (is_small) {
        SDX_TRY(add_loops(px, eq, &a, &b, &order, result->tensor));
    } else {
        int64_t length, unused;
        if (!flatten(eq, &a, &r.rows, &length, &p.row_a) ||
            !flatten(eq, &a, &r.inner, &unused, &p.col_a))
            SDX_TRY(copy_view(px, eq, &r.batch, &r.rows, &r.inner, &a));
        if (!flatten(eq, &b, &r.inner, &length, &p.row_b) ||
            !flatten(eq, &b, &r.columns, &unused, &p.col_b))
            SDX_TRY(copy_view(px, eq, &r.batch, &r.inner, &r.columns, &b));
        if (!flatten(eq, &a, &r.rows, &length, &p.row_a) ||
            !flatten(eq, &a, &r.inner, &length, &p.col_a) ||
            !flatten(eq, &b, &r.inner, &length, &p.row_b) ||
            !flatten(eq, &b, &r.columns, &length, &p.col_b))
            return SDX_FAIL(px->cx, SDX_INTERNAL, "Einsum: a copied operand is not contiguous");
        p.a = a.tensor;
        p.b = b.tensor;
        p.c = result->tensor;
        p.input_b = b.input;
        if (r.batch.count) {
            SDX_TRY(places(px, eq, &a, &r.batch, p.batch, &p.at_a));
            SDX_TRY(places(px, eq, &b, &r.batch, p.batch, &p.at_b));
        }
        SDX_TRY(sdx_product_prepare(px, &p));
    }
    if (!out || in_order) return SDX_OK;
    return add_loops(px, eq, result, NULL, wanted, out);
}

static enum sdx_status prepare_einsum(struct sdx_prepare *px)
{
    struct equation eq;
    int count = px->count_in;
    int *ranks = sdx_prepare_alloc(px, (size_t)count * sizeof *ranks);
    const int64_t **dims = sdx_prepare_alloc(px, (size_t)count * sizeof *dims);
    struct term *terms = sdx_prepare_alloc(px, (size_t)count * sizeof *terms);
    if (!ranks || !dims || !terms) return SDX_FAIL_MEMORY(px->cx);
    for (int i = 0; i < count; i++) {
        ranks[i] = px->in[i]->rank;
        dims[i] = px->in[i]->dims;
    }
    SDX_TRY(
        parse(px->cx, sdx_ir_attr_str(px->node, "equation", ""), count, ranks, dims, terms, &eq));
    if (px->out[0]->count == 0) return SDX_OK;
    struct view so_far = view_of(px->in[0], 0, &terms[0]);
    if (count == 1) return add_loops(px, &eq, &so_far, NULL, &eq.out, px->out[0]);
    for (int t = 1; t < count; t++) {
        struct view next = view_of(px->in[t], t, &terms[t]), result;
        drop_ones(&eq, &so_far);
        drop_ones(&eq, &next);
        if (t == count - 1) return multiply(px, &eq, so_far, next, &eq.out, px->out[0], &result);
        bool later[LABELS] = {false};
        struct term wanted = {0};
        for (int i = 0; i < eq.out.count; i++)
            later[eq.out.labels[i]] = true;
        for (int k = t + 1; k < count; k++)
            for (int i = 0; i < terms[k].count; i++)
                later[terms[k].labels[i]] = true;
        for (int label = 0; label < LABELS; label++)
            if (later[label] && (so_far.has[label] || next.has[label])) {
                if (wanted.count == SDX_RANK_MAX)
                    return SDX_FAIL(px->cx, SDX_NOT_SUPPORTED, "Einsum: over %d labels at once",
                                    SDX_RANK_MAX);
                append(&wanted, label);
            }
        SDX_TRY(multiply(px, &eq, so_far, next, &wanted, NULL, &result));
        so_far = result;
    }
    return SDX_OK;
}

static const struct sdx_op ops[] = {
    {"Einsum", 12, 0, infer_einsum, KERNEL(prepare_einsum), .cost = cost_einsum,
     .flags = SDX_OP_VIA_F32},
};

const struct sdx_op_family sdx_ops_einsum = FAMILY("", ops);
