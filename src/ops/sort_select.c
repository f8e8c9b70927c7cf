/* SPDX-License-Identifier: Apache-2.0
 * TopK, NonMaxSuppression, NonZero and Unique. Orders are total: equal values keep the lower index
 * first, NaN counts as the largest value, -0 equals 0. */
#include <math.h>

#include "kernels/vec.h"
#include "ops/move.h"
#include "ops/op.h"
#include "tensor/convert.h"

/* ---- sorting pairs ---- */

/* Sorted by rising key, then by rising index: no two pairs are equal. */
struct pair {
    uint64_t key;
    int64_t index;
};

static bool pair_less(struct pair a, struct pair b)
{
    return a.key < b.key || (a.key == b.key && a.index < b.index);
}

static void pair_swap(struct pair *a, struct pair *b)
{
    struct pair t = *a;
    *a = *b;
    *b = t;
}

/* Max-heap: moves the pair at i down. */
static void heap_sift(struct pair *h, int64_t n, int64_t i)
{
    struct pair v = h[i];
    for (int64_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && pair_less(h[child], h[child + 1])) child++;
        if (!pair_less(v, h[child])) break;
        h[i] = h[child];
    }
    h[i] = v;
}

static void heap_sort(struct pair *h, int64_t n)
{
    for (int64_t i = n / 2 - 1; i >= 0; i--)
        heap_sift(h, n, i);
    for (int64_t i = n - 1; i > 0; i--) {
        pair_swap(&h[0], &h[i]);
        heap_sift(h, i, 0);
    }
}

/* Splits around the median of three; returns where the pivot lies. */
static int64_t partition(struct pair *v, int64_t n)
{
    int64_t mid = n / 2;
    if (pair_less(v[mid], v[0])) pair_swap(&v[mid], &v[0]);
    if (pair_less(v[n - 1], v[mid])) pair_swap(&v[n - 1], &v[mid]);
    if (pair_less(v[mid], v[0])) pair_swap(&v[mid], &v[0]);
    pair_swap(&v[mid], &v[n - 2]);
    struct pair pivot = v[n - 2];
    int64_t i = 0, j = n - 2;
    for (;;) {
        while (pair_less(v[++i], pivot)) {
        }
        while (pair_less(pivot, v[--j])) {
        }
        if (i >= j) break;
        pair_swap(&v[i], &v[j]);
    }
    pair_swap(&v[i], &v[n - 2]);
    return i;
}

/* The k smallest pairs come first, sorted. Quicksort that leaves out what lies beyond k; heap sort
 * when it degenerates. */
static void sort_first(struct pair *v, int64_t n, int64_t k, int depth)
{
    while (n > 24 && k > 0) {
        if (depth-- == 0) {
            heap_sort(v, n);
            return;
        }
        int64_t at = partition(v, n);
        if (k > at + 1) sort_first(v + at + 1, n - at - 1, k - at - 1, depth);
        n = at;
        if (k > n) k = n;
    }
    for (int64_t i = 1; i < n && k > 0; i++) {
        struct pair p = v[i];
        int64_t j = i;
        for (; j > 0 && pair_less(p, v[j - 1]); j--)
            v[j] = v[j - 1];
        v[j] = p;
    }
}

static int sort_depth(int64_t n)
{
    int depth = 4;
    for (; n > 1; n /= 2)
        depth += 2;
    return depth;
}

/* Order of a float as an unsigned number. */
static uint32_t sort_key_f32(float x)
{
    uint32_t bits;
    if (isnan(x)) return UINT32_MAX;
    x += 0.0f; /* -0 becomes 0 */
    memcpy(&bits, &x, sizeof bits);
    return bits ^ (bits >> 31 ? UINT32_MAX : UINT32_C(1) << 31);
}

/* Order of element i as an unsigned number. */
static uint64_t sort_key(const struct sdx_tensor *t, int64_t i)
{
    const uint64_t sign = UINT64_C(1) << 63;
    if (t->dtype == SDX_U64) return ((const uint64_t *)t->data)[i];
    if (!sdx_dtype_is_float(t->dtype)) return (uint64_t)sdx_load_i64(t->dtype, t->data, i) ^ sign;
    if (t->dtype == SDX_F32) return sort_key_f32(((const float *)t->data)[i]);
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

static struct pair pair_of(const struct top_k_params *p, const struct sdx_tensor *in, int64_t base,
                           int64_t j)
{
    const uint64_t key = sort_key(in, base + j * p->inner);
    return (struct pair){p->largest ? ~key : key, j};
}

static bool is_few(const struct top_k_params *p)
{
    return p->k <= p->n / 8;
}

enum { TOP_ROOM = 4 }; /* candidates, in k, between two times that they are cut to k */

/* The best k of a row, without an order of the others: once k are known, few elements are better
 * than the worst of them. */
static void select_few(struct pair *found, const struct top_k_params *p,
                       const struct sdx_tensor *in, int64_t base)
{
    const float *x = in->dtype == SDX_F32 ? (const float *)in->data + base : NULL;
    const int64_t room = TOP_ROOM * p->k;
    int64_t count = 0;
    bool bounded = false;
    float bound = 0;
    for (int64_t j = 0; j < p->n; j++) {
        if (bounded && x) { /* false for a NaN */
            const float v = x[j * p->inner];
            if (p->largest ? v <= bound : v >= bound) continue;
        }
        const struct pair v = pair_of(p, in, base, j);
        if (bounded && v.key >= found[p->k - 1].key) continue;
        found[count++] = v;
        if (count < room) continue;
        sort_first(found, count, p->k, sort_depth(count));
        count = p->k;
        bounded = true;
        if (x) bound = x[found[p->k - 1].index * p->inner];
    }
    sort_first(found, count, p->k, sort_depth(count));
}

static enum sdx_status run_top_k(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct top_k_params *p = step->params;
    const struct sdx_tensor *in = step->in[0];
    struct pair *pairs = x->scratch;
    char *values = step->out[0] ? step->out[0]->data : NULL;
    int64_t *indices = step->count_out > 1 && step->out[1] ? step->out[1]->data : NULL;
    int64_t end = sdx_part_begin(p->rows, step->parts, part + 1, 1);
    if (p->k == 0) return SDX_OK;
    for (int64_t r = sdx_part_begin(p->rows, step->parts, part, 1); r < end; r++) {
        int64_t o = r / p->inner, i = r % p->inner, base = o * p->n * p->inner + i;
        if (is_few(p)) {
            select_few(pairs, p, in, base);
        } else {
            for (int64_t j = 0; j < p->n; j++)
                pairs[j] = pair_of(p, in, base, j);
            sort_first(pairs, p->n, p->k, sort_depth(p->n));
        }
        for (int64_t j = 0; j < p->k; j++) {
            int64_t to = (o * p->k + j) * p->inner + i;
            int64_t from = base + pairs[j].index * p->inner;
            if (values)
                sdx_move_one(values + (size_t)to * p->size,
                             (const char *)in->data + (size_t)from * p->size, p->size);
            if (indices) indices[to] = pairs[j].index;
        }
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
    size_t pairs = (size_t)(is_few(p) ? TOP_ROOM * p->k : p->n) + 1;
    return sdx_prepare_step(px, "top_k", run_top_k, p,
                            sdx_prepare_parts((double)in->count, 4096, p->rows > 0 ? p->rows : 1),
                            pairs * sizeof(struct pair));
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

/* ---- NonMaxSuppression ---- */

static enum sdx_status infer_nms(struct sdx_infer *ix)
{
    static const int64_t dims[2] = {-1, 3};
    if ((sdx_infer_rank(ix, 0) >= 0 && sdx_infer_rank(ix, 0) != 3) ||
        (sdx_infer_rank(ix, 1) >= 0 && sdx_infer_rank(ix, 1) != 3))
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL,
                        "NonMaxSuppression: boxes and scores have ranks %d and %d, expected 3",
                        sdx_infer_rank(ix, 0), sdx_infer_rank(ix, 1));
    sdx_infer_set_dtype(ix, 0, SDX_I64);
    return sdx_infer_set_dims(ix, 0, 2, dims);
}

/* y0, x0, y1, x1, area */
static void read_box(const float *b, bool center, float box[5])
{
    if (center) {
        const float w = b[2] / 2, h = b[3] / 2;
        const float corners[4] = {b[1] - h, b[0] - w, b[1] + h, b[0] + w};
        memcpy(box, corners, sizeof corners);
    } else {
        for (int i = 0; i < 2; i++) {
            box[i] = fminf(b[i], b[i + 2]);
            box[i + 2] = fmaxf(b[i], b[i + 2]);
        }
    }
    box[4] = (box[2] - box[0]) * (box[3] - box[1]);
}

static float scalar_of(const struct sdx_step *step, int i, float fallback)
{
    if (i >= step->count_in || !step->in[i] || step->in[i]->count == 0) return fallback;
    return (float)sdx_load_f64(step->in[i]->dtype, step->in[i]->data, 0);
}

struct nms_state {
    int64_t limit;
    float iou, score;
    bool has_score, center;
    struct pair *order; /* candidates by falling score */
    float *kept;        /* those chosen of a class, as sdx_vec.f32_overlaps reads them */
    size_t step;
    int64_t count_kept;
    int64_t *out, count;
};

/* Appends the choices of one class of one image. */
static void nms_class(struct nms_state *s, const float *boxes, const float *scores, int64_t n,
                      int64_t batch, int64_t class)
{
    int64_t candidates = 0, kept = 0;
    for (size_t i = 0; i < 5; i++) /* of the class before */
        memset(s->kept + i * s->step, 0, (size_t)s->count_kept * sizeof *s->kept);
    const struct sdx_tensor t = {.data = (void *)(uintptr_t)scores, .dtype = SDX_F32};
    for (int64_t i = 0; i < n; i++)
        if (!s->has_score || scores[i] > s->score)
            s->order[candidates++] = (struct pair){~sort_key(&t, i), i};
    sort_first(s->order, candidates, candidates, sort_depth(candidates));
    for (int64_t c = 0; c < candidates && kept < s->limit; c++) {
        float box[5];
        read_box(boxes + 4 * s->order[c].index, s->center, box);
        if (sdx_vec()->f32_overlaps(box, s->kept, s->step, (size_t)kept, s->iou)) continue;
        for (int i = 0; i < 5; i++)
            s->kept[(size_t)i * s->step + (size_t)kept] = box[i];
        kept++;
        int64_t *to = s->out + 3 * s->count++;
        to[0] = batch;
        to[1] = class;
        to[2] = s->order[c].index;
    }
    s->count_kept = kept;
}

static enum sdx_status nms_all(struct sdx_exec *x, const struct sdx_step *step, struct nms_state *s)
{
    const struct sdx_tensor *boxes = step->in[0], *scores = step->in[1];
    int64_t n = boxes->dims[1], classes = scores->dims[1];
    for (int64_t b = 0; b < scores->dims[0]; b++)
        for (int64_t c = 0; c < classes; c++) {
            if (sdx_exec_cancelled(x)) return SDX_FAIL(x->cx, SDX_CANCELLED, "cancelled");
            nms_class(s, (const float *)boxes->data + b * n * 4,
                      (const float *)scores->data + (b * classes + c) * n, n, b, c);
        }
    int64_t dims[2] = {s->count, 3};
    SDX_TRY(sdx_exec_output(x, step, 0, SDX_I64, 2, dims));
    if (s->count) memcpy(step->out[0]->data, s->out, (size_t)s->count * 24);
    return SDX_OK;
}

static enum sdx_status run_nms(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)part;
    const struct sdx_tensor *boxes = step->in[0], *scores = step->in[1];
    int64_t n = boxes->dims[1], limit = 0, most = 0;
    struct nms_state s = {.center = *(const bool *)step->params};
    if (step->count_in > 2 && step->in[2] && step->in[2]->count)
        limit = sdx_load_i64(step->in[2]->dtype, step->in[2]->data, 0);
    s.limit = limit < 0 ? 0 : limit > n ? n : limit;
    s.iou = scalar_of(step, 3, 0);
    s.score = scalar_of(step, 4, 0);
    s.has_score = step->count_in > 4 && step->in[4];
    if (scores->dims[2] != n || scores->dims[0] != boxes->dims[0] || boxes->dims[2] != 4)
        return SDX_FAIL(x->cx, SDX_RUN_FAILED,
                        "NonMaxSuppression: boxes and scores do not fit together");
    if (!sdx_mul_i64(scores->dims[0] * scores->dims[1], s.limit, &most))
        return SDX_FAIL(x->cx, SDX_RUN_FAILED, "NonMaxSuppression: too many boxes");
    struct sdx_mem *mem = x->cx->mem;
    s.order = sdx_mem_calloc(mem, SDX_MEM_SCRATCH, (size_t)n + 1, sizeof(*s.order));
    s.step = (size_t)s.limit + 64;
    s.kept = sdx_mem_calloc(mem, SDX_MEM_SCRATCH, s.step, 5 * sizeof(*s.kept));
    s.out = sdx_mem_calloc(mem, SDX_MEM_SCRATCH, (size_t)most + 1, 3 * sizeof(*s.out));
    enum sdx_status status =
        s.order && s.kept && s.out ? nms_all(x, step, &s) : SDX_FAIL_MEMORY(x->cx);
    sdx_mem_free(mem, s.order);
    sdx_mem_free(mem, s.kept);
    sdx_mem_free(mem, s.out);
    return status;
}

static enum sdx_status prepare_nms(struct sdx_prepare *px)
{
    bool *center = SDX_PREPARE_NEW(px, bool);
    if (!center) return SDX_OUT_OF_MEMORY;
    *center = sdx_ir_attr_int(px->node, "center_point_box", 0) != 0;
    return sdx_prepare_step(px, "non_max_suppression", run_nms, center, 1, 0);
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
    int64_t *order, *work;             /* slices in sorted order */
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

static void unique_group(struct unique *u)
{
    for (int64_t i = 0; i < u->n; i++)
        u->order[i] = i;
    unique_sort(u, 0, u->n);
    for (int64_t i = 0; i < u->n; i++) {
        int64_t s = u->order[i];
        if (i == 0 || compare_slices(u, u->order[i - 1], s) != 0) {
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
    int64_t *lists =
        sdx_mem_calloc(x->cx->mem, SDX_MEM_SCRATCH, (size_t)u.n + 1, 5 * sizeof(*lists));
    if (!lists) return SDX_FAIL_MEMORY(x->cx);
    u.order = lists;
    u.work = lists + u.n;
    u.first = u.work + u.n;
    u.inverse = u.first + u.n;
    u.counts = u.inverse + u.n;
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
    {"NonMaxSuppression", 10, 0, infer_nms, KERNEL(prepare_nms), .flags = SDX_OP_DYNAMIC},
    {"Unique", 11, 0, infer_unique, KERNEL(prepare_unique), .flags = SDX_OP_DYNAMIC},
};
const struct sdx_op_family sdx_ops_sort_select = FAMILY("", ops);
