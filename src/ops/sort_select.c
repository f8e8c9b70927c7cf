/* SPDX-License-Identifier: Apache-2.0
 * TopK, NonZero and Unique, in the order of order.h. */
#include <math.h>

#include "kernels/vec.h"
#include "ops/move.h"
#include "ops/op.h"
#include "ops/order.h"
#include "ops/scan.h"
#include "ops/suppress.h"
#include "tensor/convert.h"

/* Order of element i as an unsigned number. */
static uint64_t sort_key(const struct sdx_tensor *t, int64_t i)
{
    const uint64_t sign = UINT64_C(1) << 63;
    if (t->dtype == SDX_U64) return ((const uint64_t *)t->data)[i];
    if (t->dtype == SDX_I64) return ((const uint64_t *)t->data)[i] ^ sign;
    if (!sdx_dtype_is_float(t->dtype)) return (uint64_t)sdx_load_i64(t->dtype, t->data, i) ^ sign;
    if (t->dtype == SDX_F32) return sdx_order_key_f32(((const float *)t->data)[i]);
    double x = sdx_load_f64(t->dtype, t->data, i);
    uint64_t bits;
    if (isnan(x)) return UINT64_MAX;
    x += 0.0; /* -0 becomes 0 */
    memcpy(&bits, &x, sizeof(bits));
    return bits & sign ? ~bits : bits | sign;
}

/* ---- TopK ---- */

static enum sdx_status infer_top_k(struct sdx_infer *ix)
{
    int rank = sdx_infer_rank(ix, 0), axis = 0;
    int64_t k = sdx_ir_attr_int(ix->node, "k", -1), count = 0;
    const int64_t *v = NULL;
    sdx_infer_set_dtype(ix, 0, sdx_infer_dtype(ix, 0));
    if (ix->count_out > 1) sdx_infer_set_dtype(ix, 1, SDX_I64);
    if (rank < 0) return SDX_OK;
    SDX_TRY(sdx_infer_axis(ix, sdx_ir_attr_int(ix->node, "axis", -1), rank, &axis));
    bool known = ix->opset < 10 || (sdx_infer_known_ints(ix, 1, &v, &count) && count >= 1);
    if (ix->opset >= 10 && known) k = v[0];
    int64_t n = sdx_infer_dims(ix, 0)[axis];
    if (known && (k < 0 || (n >= 0 && k > n)))
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "TopK: k is %lld, the axis has length %lld",
                        (long long)k, (long long)n);
    for (int o = 0; o < ix->count_out && o < 2; o++) {
        int64_t *dims = sdx_infer_new_dims(ix, o, rank);
        if (!dims) return SDX_OUT_OF_MEMORY;
        memcpy(dims, sdx_infer_dims(ix, 0), (size_t)rank * sizeof(*dims));
        dims[axis] = known ? k : -1;
    }
    return SDX_OK;
}

struct top_k_params {
    int64_t rows, inner, n, k;
    bool largest;
    size_t size;
};

static struct sdx_pair pair_of(const struct top_k_params *p, const struct sdx_tensor *in,
                               int64_t base, int64_t j)
{
    const uint64_t key = sort_key(in, base + j * p->inner);
    return (struct sdx_pair){p->largest ? ~key : key, j};
}

static bool is_few(const struct top_k_params *p)
{
    return p->k <= p->n / 8;
}

enum {
    TOP_ROOM = 4,    /* candidates, in k, between two times that they are cut to k */
    TOP_CHUNK = 256, /* elements looked at between two bounds */
    TOP_GROUPS = 64, /* groups whose extremes bound the best k */
    TOP_SEEN = 4096, /* elements in all groups, at most */
    TOP_SHORT = 16,  /* k at most that are kept in order as a row is read */
    TOP_TOGETHER = 4 /* rows at least that share vectors */
};
static bool is_short(const struct top_k_params *p)
{
    return p->n < 2 * TOP_GROUPS && p->k <= TOP_SHORT;
}
/* Have rows of floats a way of their own? */
static bool is_quick(const struct top_k_params *p)
{
    return is_few(p) || is_short(p);
}

/* What the k-th best of a row is not below, if it can be said. Signs of x are flipped by `sign`. */
static bool first_bound(const float *x, int64_t n, int64_t k, uint32_t sign, float *bound)
{
    float best[TOP_GROUPS];
    if (k > TOP_GROUPS / 2 || n < 2 * TOP_GROUPS) return false;
    memcpy(best, x, sizeof best);
    if (n > TOP_SEEN) n = TOP_SEEN;
    for (int64_t j = TOP_GROUPS; j < n; j += TOP_GROUPS)
        (sign ? sdx_vec()->f32_min : sdx_vec()->f32_max)(
            best, 1, x + j, 1, best, (size_t)(n - j < TOP_GROUPS ? n - j : TOP_GROUPS));
    *bound = INFINITY;
    for (int i = 0; i < TOP_GROUPS; i++)
        if (sign) best[i] = -best[i];
    for (int i = 0; i < TOP_GROUPS; i++) {
        int32_t better = 0;
        for (int j = 0; j < TOP_GROUPS; j++)
            better += best[j] > best[i];
        if (isnan(best[i])) return false;
        if (better < k && best[i] < *bound) *bound = best[i];
    }
    *bound = nextafterf(*bound, -INFINITY);
    return !isinf(*bound);
}

/* One more of the best k so far, which stay in order: the last of k goes. */
static void keep_in_order(struct sdx_pair *found, int64_t *count, int64_t k, uint64_t key,
                          int64_t j)
{
    int64_t at = *count < k ? (*count)++ : k - 1;
    for (; at > 0 && found[at - 1].key > key; at--)
        found[at] = found[at - 1];
    found[at] = (struct sdx_pair){key, j};
}
#define SELECT_SHORT(key_)                                                                         \
    for (int64_t j = 0, count = 0; j < n; j++) {                                                   \
        const uint64_t key = (key_) ^ flip;                                                        \
        if (count < k || key < found[k - 1].key) keep_in_order(found, &count, k, key, j);          \
    }

static void select_short_f32(struct sdx_pair *found, const struct top_k_params *p, const float *x)
{
    const int64_t n = p->n, k = p->k;
    const uint64_t flip = p->largest ? UINT64_MAX : 0;
    SELECT_SHORT(sdx_order_key_f32(x[j]))
}

/* As many of any row. */
static void select_short(struct sdx_pair *found, const struct top_k_params *p,
                         const struct sdx_tensor *in, int64_t base)
{
    const int64_t n = p->n, k = p->k, inner = p->inner;
    const uint64_t sign = UINT64_C(1) << 63, flip = p->largest ? ~sign : sign;
    const int64_t *x = (const int64_t *)in->data + base;
    if (in->dtype == SDX_I64)
        SELECT_SHORT((uint64_t)x[j * inner])
    else
        SELECT_SHORT(sort_key(in, base + j * inner) ^ sign)
}
#undef SELECT_SHORT

/* The best k of a row of floats, without an order of the others: once k are known, few elements are
 * better than the worst of them. */
static void select_few_f32(struct sdx_pair *found, const struct top_k_params *p, const float *x)
{
    const uint32_t sign = p->largest ? 0 : UINT32_C(1) << 31;
    const int64_t room = TOP_ROOM * p->k;
    uint32_t at[TOP_CHUNK + SDX_VEC_ABOVE_ROOM];
    int64_t count = 0;
    float bound = 0;
    uint64_t worst = UINT64_MAX;
    bool bounded = first_bound(x, p->n, p->k, sign, &bound);
    for (int64_t i = 0; i < p->n; i += TOP_CHUNK) {
        const int64_t m = p->n - i < TOP_CHUNK ? p->n - i : TOP_CHUNK;
        int64_t hits = m;
        if (bounded) hits = (int64_t)sdx_vec()->f32_above(x + i, (size_t)m, sign, bound, at);
        for (int64_t h = 0; h < hits; h++) {
            const int64_t j = i + (bounded ? at[h] : h);
            const uint64_t key = sdx_order_key_f32(x[j]);
            const struct sdx_pair v = {p->largest ? ~key : key, j};
            if (v.key >= worst) continue;
            found[count++] = v;
            if (count < room) continue;
            sdx_order_first(found, count, p->k);
            count = p->k;
            worst = found[p->k - 1].key;
        }
        if (worst == UINT64_MAX) continue;
        bound = x[found[p->k - 1].index];
        if (sign) bound = -bound;
        bounded = !isnan(bound);
    }
    sdx_order_first(found, count, p->k);
}

/* The best k of any row. */
static void select_few(struct sdx_pair *found, const struct top_k_params *p,
                       const struct sdx_tensor *in, int64_t base)
{
    const int64_t room = TOP_ROOM * p->k;
    int64_t count = 0;
    uint64_t worst = UINT64_MAX;
    for (int64_t j = 0; j < p->n; j++) {
        const struct sdx_pair v = pair_of(p, in, base, j);
        if (v.key >= worst && worst != UINT64_MAX) continue;
        found[count++] = v;
        if (count < room) continue;
        sdx_order_first(found, count, p->k);
        count = p->k;
        worst = found[p->k - 1].key;
    }
    sdx_order_first(found, count, p->k);
}

/* The best of each of m rows or neighbouring columns of floats. */
static void select_one(const struct top_k_params *p, const float *x, int64_t m, float *values,
                       int64_t *indices)
{
    const int64_t apart = p->inner == 1 ? p->n : 1;
    int64_t place[TOP_CHUNK];
    for (int64_t i = 0, n; i < m; i += n, x += n * apart) {
        n = m - i < TOP_CHUNK ? m - i : TOP_CHUNK;
        if (p->inner == 1)
            sdx_arg_rows(x, n, p->n, false, false, place);
        else
            sdx_vec()->f32_arg_columns(x, (size_t)p->n, (ptrdiff_t)p->inner, (size_t)n, false,
                                       place);
        for (int64_t j = 0; values && j < n; j++)
            values[i + j] = x[j * apart + place[j] * p->inner];
        if (indices) memcpy(indices + i, place, (size_t)n * sizeof *place);
    }
}

/* In the scratch memory. */
static size_t pairs_of(const struct top_k_params *p)
{
    return (size_t)(is_few(p) ? TOP_ROOM * p->k : 2 * p->n) + 1;
}

/* One call's share. */
struct top_k_work {
    const struct top_k_params *p;
    const struct sdx_tensor *in;
    struct sdx_pair *pairs; /* scratch */
    float *rows;            /* scratch, for columns */
    char *values;           /* NULL: not asked for */
    int64_t *indices;       /* NULL: not asked for */
};

/* Where row r begins in the input. */
static int64_t row_base(const struct top_k_params *p, int64_t r)
{
    return r / p->inner * p->n * p->inner + r % p->inner;
}

/* The pairs are the best of row r. */
static void write_row(const struct top_k_work *w, int64_t r)
{
    const struct top_k_params *p = w->p;
    const int64_t base = row_base(p, r), first = r / p->inner * p->k * p->inner + r % p->inner;
    for (int64_t j = 0; j < p->k; j++) {
        const int64_t to = first + j * p->inner, from = base + w->pairs[j].index * p->inner;
        if (w->values)
            sdx_move_one(w->values + (size_t)to * p->size,
                         (const char *)w->in->data + (size_t)from * p->size, p->size);
        if (w->indices) w->indices[to] = w->pairs[j].index;
    }
}

static void top_any(const struct top_k_work *w, int64_t r)
{
    const struct top_k_params *p = w->p;
    const int64_t base = row_base(p, r);
    if (p->k <= TOP_SHORT) {
        select_short(w->pairs, p, w->in, base);
    } else if (is_few(p)) {
        select_few(w->pairs, p, w->in, base);
    } else {
        for (int64_t j = 0; j < p->n; j++)
            w->pairs[j] = pair_of(p, w->in, base, j);
        if (p->k > p->n / 4)
            sdx_order_all(w->pairs, p->n, true, w->pairs + p->n);
        else
            sdx_order_first(w->pairs, p->n, p->k);
    }
    write_row(w, r);
}

/* The best few of each of m rows or neighbouring columns of floats from r on, with a row in each
 * lane. */
static void top_columns_f32(const struct top_k_work *w, int64_t r, int64_t m)
{
    enum { COLUMNS = SDX_VEC_TOP_COLUMNS };
    const struct top_k_params *p = w->p;
    const float *x = (const float *)w->in->data + row_base(p, r), *from = x;
    const int64_t apart = p->inner == 1 ? p->n : 1, apart_out = p->inner == 1 ? p->k : 1;
    const int64_t first = r / p->inner * p->k * p->inner + r % p->inner;
    int64_t step = p->inner;
    int32_t at[SDX_VEC_TOP_MOST * COLUMNS];
    if (p->inner == 1 || m < COLUMNS) {
        if (p->inner == 1)
            sdx_vec()->b32_transpose(x, (size_t)p->n, w->rows, COLUMNS, (size_t)m, (size_t)p->n);
        for (int64_t j = 0; p->inner > 1 && j < p->n; j++)
            memcpy(w->rows + j * COLUMNS, x + j * p->inner, (size_t)m * sizeof *x);
        from = w->rows;
        step = COLUMNS;
    }
    sdx_vec()->f32_top_columns(from, (size_t)p->n, (ptrdiff_t)step, (size_t)p->k, !p->largest, at);
    for (int64_t t = 0; t < p->k; t++) { /* columns lie side by side */
        const int64_t to = first + t * p->inner;
        float *values = w->values ? (float *)(void *)w->values + to : NULL;
        int64_t *indices = w->indices ? w->indices + to : NULL;
        const int32_t *place = at + t * COLUMNS;
        for (int64_t i = 0; values && i < m; i++)
            values[i * apart_out] = x[i * apart + place[i] * p->inner];
        for (int64_t i = 0; indices && i < m; i++)
            indices[i * apart_out] = place[i];
    }
}

/* Few, or of short rows: those of floats from r on, `left` of which lie side by side. Returns how
 * many it did. */
static int64_t top_few_f32(const struct top_k_work *w, int64_t r, int64_t left)
{
    const struct top_k_params *p = w->p;
    const float *row = (const float *)w->in->data + row_base(p, r);
    const int64_t m = left < SDX_VEC_TOP_COLUMNS ? left : SDX_VEC_TOP_COLUMNS;
    if (is_short(p) && p->k <= SDX_VEC_TOP_MOST && m >= TOP_TOGETHER) {
        top_columns_f32(w, r, m);
        return m;
    }
    if (p->inner > 1) {
        sdx_vec()->b32_transpose(row, (size_t)p->inner, w->rows, (size_t)p->n, (size_t)p->n,
                                 (size_t)m);
        row = w->rows;
    }
    for (int64_t i = 0; i < m; i++, row += p->n) {
        (is_short(p) ? select_short_f32 : select_few_f32)(w->pairs, p, row);
        write_row(w, r + i);
    }
    return m;
}

static enum sdx_status run_top_k(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct top_k_params *p = step->params;
    struct top_k_work w = {.p = p, .in = step->in[0], .pairs = x->scratch};
    w.rows = (float *)(void *)(w.pairs + pairs_of(p));
    w.values = step->out[0] ? step->out[0]->data : NULL;
    w.indices = step->count_out > 1 && step->out[1] ? step->out[1]->data : NULL;
    if (p->k == 0) return SDX_OK;
    const bool quick = w.in->dtype == SDX_F32 && is_quick(p);
    const int64_t end = sdx_part_begin(p->rows, step->parts, part + 1, 1);
    for (int64_t r = sdx_part_begin(p->rows, step->parts, part, 1), m; r < end; r += m) {
        const int64_t i = r % p->inner, rows = p->inner == 1 ? end - r : p->inner - i;
        const int64_t left = rows < end - r ? rows : end - r;
        m = 1;
        if (quick && p->k == 1 && p->largest && (p->inner == 1 || left >= SDX_VEC_TOP_COLUMNS))
            select_one(p, (const float *)w.in->data + row_base(p, r), m = left,
                       w.values ? (float *)(void *)w.values + r : NULL,
                       w.indices ? w.indices + r : NULL);
        else if (quick)
            m = top_few_f32(&w, r, left);
        else
            top_any(&w, r);
    }
    return SDX_OK;
}

static enum sdx_status prepare_top_k(struct sdx_prepare *px)
{
    const struct sdx_tensor *in = px->in[0];
    const struct sdx_tensor *out = px->out[0] ? px->out[0] : px->count_out > 1 ? px->out[1] : NULL;
    struct top_k_params *p = SDX_PREPARE_NEW(px, struct top_k_params);
    if (!p) return SDX_OUT_OF_MEMORY;
    if (!out) return SDX_OK;
    int64_t axis = sdx_ir_attr_int(px->node, "axis", -1);
    if (axis < 0) axis += in->rank;
    p->largest = sdx_ir_attr_int(px->node, "largest", 1) != 0;
    p->n = in->dims[axis];
    p->k = out->dims[axis];
    p->inner = sdx_move_product(in->dims, (int)axis + 1, in->rank);
    p->rows = p->n ? in->count / p->n : 0;
    p->size = sdx_move_size(in->dtype);
    const size_t rows = is_quick(p) ? (size_t)p->n * SDX_VEC_TOP_COLUMNS : 0;
    return sdx_prepare_step(px, "top_k", run_top_k, p,
                            sdx_prepare_parts((double)in->count, 4096, p->rows > 0 ? p->rows : 1),
                            pairs_of(p) * sizeof(struct sdx_pair) + rows * sizeof(float));
}

/* ---- NonZero ---- */

static enum sdx_status infer_non_zero(struct sdx_infer *ix)
{
    int64_t dims[2] = {sdx_infer_rank(ix, 0), -1};
    sdx_infer_set_dtype(ix, 0, SDX_I64);
    return sdx_infer_set_dims(ix, 0, 2, dims);
}

enum { NON_ZERO_CHUNK = 512 };

#define FLAGS(type, condition)                                                                     \
    for (int64_t i = 0; i < n; i++) {                                                              \
        const type *v = (const type *)t->data + begin + i;                                         \
        flags[i] = (condition);                                                                    \
    }

/* flags[i]: is element begin + i not zero? */
static void set_flags(const struct sdx_tensor *t, int64_t begin, int64_t n, uint8_t *flags)
{
    switch (t->dtype) {
    case SDX_BOOL:
    case SDX_U8:
    case SDX_I8: FLAGS(uint8_t, *v != 0) break;
    case SDX_F32: FLAGS(float, *v != 0) break;
    case SDX_I32: FLAGS(int32_t, *v != 0) break;
    case SDX_I64: FLAGS(int64_t, *v != 0) break;
    case SDX_STRING: FLAGS(struct sdx_str, v->len != 0) break;
    case SDX_C64:
        for (int64_t i = 0; i < n; i++) {
            const float *v = (const float *)t->data + 2 * (begin + i);
            flags[i] = v[0] != 0 || v[1] != 0;
        }
        break;
    case SDX_C128:
        for (int64_t i = 0; i < n; i++) {
            const double *v = (const double *)t->data + 2 * (begin + i);
            flags[i] = v[0] != 0 || v[1] != 0;
        }
        break;
    default:
        for (int64_t i = 0; i < n; i++)
            flags[i] = sdx_load_f64(t->dtype, t->data, begin + i) != 0;
    }
}
#undef FLAGS

static int64_t count_flags(const uint8_t *flags, int64_t n)
{
    int64_t sum = 0, i = 0;
    for (; i + 8 <= n; i += 8) {
        uint64_t eight;
        memcpy(&eight, flags + i, sizeof eight);
        sum += (int64_t)(eight * UINT64_C(0x0101010101010101) >> 56); /* each is 0 or 1 */
    }
    for (; i < n; i++)
        sum += flags[i];
    return sum;
}

/* Writes the coordinates of the n found elements, whose rows of the last axis are visited in turn.
 */
static void non_zero_fill(const struct sdx_tensor *in, int64_t n, int64_t *out)
{
    int64_t at[SDX_RANK_MAX] = {0}, hits[NON_ZERO_CHUNK + 1], k = 0;
    uint8_t flags[NON_ZERO_CHUNK];
    int last = in->rank - 1;
    int64_t width = in->dims[last];
    for (int64_t row = 0; row < in->count; row += width) {
        for (int64_t j = 0; j < width; j += NON_ZERO_CHUNK) {
            int64_t m = width - j < NON_ZERO_CHUNK ? width - j : NON_ZERO_CHUNK, found = 0;
            set_flags(in, row + j, m, flags);
            for (int64_t i = 0; i < m; i++) { /* no branch on data */
                hits[found] = j + i;
                found += flags[i];
            }
            memcpy(out + last * n + k, hits, (size_t)found * sizeof(*hits));
            for (int a = 0; a < last; a++)
                for (int64_t i = 0; i < found; i++)
                    out[a * n + k + i] = at[a];
            k += found;
        }
        for (int a = last - 1; a >= 0; a--) {
            if (++at[a] < in->dims[a]) break;
            at[a] = 0;
        }
    }
}

static enum sdx_status run_non_zero(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)part;
    const struct sdx_tensor *in = step->in[0];
    uint8_t flags[NON_ZERO_CHUNK];
    int64_t n = 0;
    for (int64_t i = 0; i < in->count; i += NON_ZERO_CHUNK) {
        int64_t m = in->count - i < NON_ZERO_CHUNK ? in->count - i : NON_ZERO_CHUNK;
        set_flags(in, i, m, flags);
        n += count_flags(flags, m);
    }
    int64_t dims[2] = {in->rank, n};
    SDX_TRY(sdx_exec_output(x, step, 0, SDX_I64, 2, dims));
    if (n > 0 && in->rank > 0) non_zero_fill(in, n, step->out[0]->data);
    return SDX_OK;
}

static enum sdx_status prepare_non_zero(struct sdx_prepare *px)
{
    return sdx_prepare_step(px, "non_zero", run_non_zero, NULL, 1, 0);
}

/* ---- Unique ---- */

static enum sdx_status infer_unique(struct sdx_infer *ix)
{
    int rank = sdx_infer_rank(ix, 0), axis = 0;
    const struct sdx_ir_attr *a = sdx_ir_attr(ix->node, "axis");
    sdx_infer_set_dtype(ix, 0, sdx_infer_dtype(ix, 0));
    for (int k = 1; k < ix->count_out; k++) {
        sdx_infer_set_dtype(ix, k, SDX_I64);
        SDX_TRY(sdx_move_infer_rank(ix, k, 1));
    }
    if (!a) return sdx_move_infer_rank(ix, 0, 1);
    if (rank < 0) return SDX_OK;
    SDX_TRY(sdx_infer_axis(ix, a->i, rank, &axis));
    int64_t *dims = sdx_infer_new_dims(ix, 0, rank);
    if (!dims) return SDX_OUT_OF_MEMORY;
    memcpy(dims, sdx_infer_dims(ix, 0), (size_t)rank * sizeof(*dims));
    dims[axis] = -1;
    return SDX_OK;
}

struct unique_params {
    bool flat, sorted;
    int axis;
};

/* Slices of the input along the axis: element e of slice i is at outer_at(e) + i * inner. */
struct unique {
    const struct sdx_tensor *in;
    int64_t n, outer, inner;
    struct sdx_pair *pairs;            /* slices in sorted order, and room for as many; or */
    int64_t *order, *work;             /* the same */
    int64_t *first, *inverse, *counts; /* of the groups; inverse of the slices */
    int64_t groups;
};

static int compare_f64(double a, double b)
{
    if (isnan(a) || isnan(b)) return isnan(a) - isnan(b);
    return (a > b) - (a < b);
}

static int compare_elements(const struct sdx_tensor *t, int64_t i, int64_t j)
{
    int c = 0;
    switch (t->dtype) {
    case SDX_STRING:
        return sdx_str_compare(((const struct sdx_str *)t->data)[i],
                               ((const struct sdx_str *)t->data)[j]);
    case SDX_C64: {
        const float *v = t->data;
        c = compare_f64(v[2 * i], v[2 * j]);
        return c ? c : compare_f64(v[2 * i + 1], v[2 * j + 1]);
    }
    case SDX_C128: {
        const double *v = t->data;
        c = compare_f64(v[2 * i], v[2 * j]);
        return c ? c : compare_f64(v[2 * i + 1], v[2 * j + 1]);
    }
    default: {
        uint64_t a = sort_key(t, i), b = sort_key(t, j);
        return (a > b) - (a < b);
    }
    }
}

static int compare_slices(const struct unique *u, int64_t i, int64_t j)
{
    for (int64_t o = 0; o < u->outer; o++)
        for (int64_t k = 0; k < u->inner; k++) {
            int64_t base = o * u->n * u->inner + k;
            int c = compare_elements(u->in, base + i * u->inner, base + j * u->inner);
            if (c) return c;
        }
    return 0;
}

/* Stable merge sort of order[begin, end). */
static void unique_sort(struct unique *u, int64_t begin, int64_t end)
{
    if (end - begin < 2) return;
    int64_t mid = begin + (end - begin) / 2, i = begin, j = mid, k = begin;
    unique_sort(u, begin, mid);
    unique_sort(u, mid, end);
    while (i < mid && j < end)
        u->work[k++] =
            compare_slices(u, u->order[j], u->order[i]) < 0 ? u->order[j++] : u->order[i++];
    while (i < mid)
        u->work[k++] = u->order[i++];
    while (j < end)
        u->work[k++] = u->order[j++];
    memcpy(u->order + begin, u->work + begin, (size_t)(end - begin) * sizeof(*u->order));
}

/* Slices of one number are sorted as keys. */
static bool has_keys(const struct unique *u)
{
    const enum sdx_dtype dtype = u->in->dtype;
    return u->outer == 1 && u->inner == 1 && dtype != SDX_STRING && dtype != SDX_C64 &&
           dtype != SDX_C128;
}

static void unique_group(struct unique *u)
{
    const bool keys = has_keys(u);
    for (int64_t i = 0; i < u->n; i++) {
        u->order[i] = i;
        if (keys) u->pairs[i] = (struct sdx_pair){sort_key(u->in, i), i};
    }
    if (keys)
        sdx_order_all(u->pairs, u->n, true, u->pairs + u->n);
    else
        unique_sort(u, 0, u->n);
    for (int64_t i = 0; i < u->n; i++) {
        const int64_t s = keys ? u->pairs[i].index : u->order[i];
        if (i == 0 || (keys ? u->pairs[i].key != u->pairs[i - 1].key
                            : compare_slices(u, u->order[i - 1], s) != 0)) {
            u->first[u->groups] = s;
            u->counts[u->groups++] = 0;
        }
        u->counts[u->groups - 1]++;
        u->inverse[s] = u->groups - 1;
    }
}

/* Renumbers the groups by their first slice. */
static void unique_by_appearance(struct unique *u)
{
    int64_t *place = u->order, *first = u->work, next = 0;
    for (int64_t g = 0; g < u->groups; g++)
        place[g] = -1;
    for (int64_t s = 0; s < u->n; s++) {
        int64_t g = u->inverse[s];
        if (place[g] < 0) {
            first[next] = s;
            place[g] = next++;
        }
        u->inverse[s] = place[g];
    }
    memcpy(u->first, first, (size_t)u->groups * sizeof(*first));
    memset(u->counts, 0, (size_t)u->groups * sizeof(*u->counts));
    for (int64_t s = 0; s < u->n; s++)
        u->counts[u->inverse[s]]++;
}

static enum sdx_status unique_values(struct sdx_exec *x, const struct sdx_step *step,
                                     const struct unique *u, int rank, const int64_t *dims)
{
    const struct sdx_tensor *in = u->in;
    size_t size = sdx_move_size(in->dtype), run = (size_t)u->inner * size;
    char *dst = NULL, *texts = NULL;
    if (in->dtype == SDX_STRING) {
        texts = sdx_mem_calloc(x->cx->mem, SDX_MEM_SCRATCH, (size_t)in->count + 1, size);
        if (!texts) return SDX_FAIL_MEMORY(x->cx);
        dst = texts;
    } else {
        SDX_TRY(sdx_exec_output(x, step, 0, in->dtype, rank, dims));
        dst = step->out[0]->data;
    }
    for (int64_t o = 0; o < u->outer && run; o++)
        for (int64_t g = 0; g < u->groups; g++, dst += run)
            memcpy(dst, (const char *)in->data + (size_t)(o * u->n + u->first[g]) * run, run);
    if (!texts) return SDX_OK;
    enum sdx_status status =
        sdx_exec_output_strings(x, step, 0, rank, dims, (const struct sdx_str *)(void *)texts);
    sdx_mem_free(x->cx->mem, texts);
    return status;
}

static enum sdx_status unique_outputs(struct sdx_exec *x, const struct sdx_step *step,
                                      const struct unique *u, const struct unique_params *p)
{
    int64_t dims[SDX_RANK_MAX], counts[4] = {0, u->groups, u->n, u->groups};
    const int64_t *lists[4] = {NULL, u->first, u->inverse, u->counts};
    int rank = p->flat ? 1 : u->in->rank;
    for (int i = 0; i < rank; i++)
        dims[i] = p->flat || i == p->axis ? u->groups : u->in->dims[i];
    if (step->out[0]) SDX_TRY(unique_values(x, step, u, rank, dims));
    for (int k = 1; k < step->count_out && k < 4; k++) {
        if (!step->out[k]) continue;
        SDX_TRY(sdx_exec_output(x, step, k, SDX_I64, 1, &counts[k]));
        if (counts[k]) memcpy(step->out[k]->data, lists[k], (size_t)counts[k] * sizeof(int64_t));
    }
    return SDX_OK;
}

static enum sdx_status run_unique(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)part;
    const struct unique_params *p = step->params;
    const struct sdx_tensor *in = step->in[0];
    struct unique u = {
        .in = in, .n = p->flat ? in->count : in->dims[p->axis], .outer = 1, .inner = 1};
    if (!p->flat) {
        u.outer = in->count ? sdx_move_product(in->dims, 0, p->axis) : 0;
        u.inner = sdx_move_product(in->dims, p->axis + 1, in->rank);
    }
    const size_t item = 5 * sizeof(int64_t) + (has_keys(&u) ? 2 * sizeof(*u.pairs) : 0);
    int64_t *lists = sdx_mem_calloc(x->cx->mem, SDX_MEM_SCRATCH, (size_t)u.n + 1, item);
    if (!lists) return SDX_FAIL_MEMORY(x->cx);
    u.order = lists;
    u.work = lists + u.n;
    u.first = u.work + u.n;
    u.inverse = u.first + u.n;
    u.counts = u.inverse + u.n;
    u.pairs = (struct sdx_pair *)(void *)(u.counts + u.n);
    unique_group(&u);
    if (!p->sorted) unique_by_appearance(&u);
    enum sdx_status status = unique_outputs(x, step, &u, p);
    sdx_mem_free(x->cx->mem, lists);
    return status;
}

static enum sdx_status prepare_unique(struct sdx_prepare *px)
{
    struct unique_params *p = SDX_PREPARE_NEW(px, struct unique_params);
    if (!p) return SDX_OUT_OF_MEMORY;
    const struct sdx_ir_attr *a = sdx_ir_attr(px->node, "axis");
    p->flat = a == NULL;
    p->sorted = sdx_ir_attr_int(px->node, "sorted", 1) != 0;
    if (a) p->axis = (int)(a->i < 0 ? a->i + px->in[0]->rank : a->i);
    return sdx_prepare_step(px, "unique", run_unique, p, 1, 0);
}

static const struct sdx_op ops[] = {
    {"TopK", 1, 0, infer_top_k, KERNEL(prepare_top_k)},
    {"NonZero", 9, 0, infer_non_zero, KERNEL(prepare_non_zero), .flags = SDX_OP_DYNAMIC},
    {"NonMaxSuppression", 10, 0, sdx_suppress_infer, KERNEL(sdx_suppress_prepare),
     .flags = SDX_OP_DYNAMIC},
    {"Unique", 11, 0, infer_unique, KERNEL(prepare_unique), .flags = SDX_OP_DYNAMIC},
};
const struct sdx_op_family sdx_ops_sort_select = FAMILY("", ops);
