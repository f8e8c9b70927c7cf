/* SPDX-License-Identifier: Apache-2.0
 * ArgMax, ArgMin, CumSum and CumProd over [outer, length, inner]. The first NaN is the extreme, as
 * in NumPy. */
#include "ops/scan.h"

#include "kernels/vec.h"
#include "ops/loops.h"
#include "tensor/convert.h"

struct scan {
    int64_t outer, length, inner;
    bool is_min, last, reverse, exclusive, is_product;
    void (*run)(const struct scan *s, const void *x, void *y, int64_t begin, int64_t end);
};

static enum sdx_status set_axis(struct sdx_prepare *px, struct scan *s, int64_t axis)
{
    const struct sdx_tensor *in = px->in[0];
    int rank = in->rank;
    int64_t at = axis < 0 ? axis + rank : axis;
    if (rank == 0 && (axis == 0 || axis == -1)) at = 0;
    if (at < 0 || at >= (rank ? rank : 1))
        return SDX_FAIL(px->cx, SDX_BAD_MODEL, "%.*s: axis %lld of rank %d",
                        SDX_STR_ARG(px->node->op_type), (long long)axis, rank);
    s->outer = s->inner = s->length = 1;
    for (int d = 0; d < rank; d++) {
        if (d < at) s->outer *= in->dims[d];
        if (d == at) s->length = in->dims[d];
        if (d > at) s->inner *= in->dims[d];
    }
    return SDX_OK;
}

static enum sdx_status run_scan(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)x;
    const struct scan *s = step->params;
    int64_t items = s->outer * s->inner;
    s->run(s, step->in[0]->data, step->out[0]->data, sdx_part_begin(items, step->parts, part, 16),
           sdx_part_begin(items, step->parts, part + 1, 16));
    return SDX_OK;
}

static enum sdx_status add_scan(struct sdx_prepare *px, const char *kernel, struct scan *s)
{
    if (!s->run)
        return SDX_FAIL(px->cx, SDX_NOT_SUPPORTED, "%.*s: element type %s",
                        SDX_STR_ARG(px->node->op_type), sdx_dtype_name(px->in[0]->dtype));
    int64_t most = (s->outer * s->inner + 15) / 16;
    int64_t parts = sdx_prepare_parts((double)px->in[0]->count, SDX_NEST_GRAIN, most ? most : 1);
    struct sdx_tensor *in = px->in[0], *out = px->out[0];
    return sdx_prepare_step_on(px, kernel, run_scan, s, parts, 0, 1, &in, 1, &out);
}

/* ---- ArgMax, ArgMin ---- */

enum { TILE = 256, SHORT_ROW = 192, SHORT_TILE = 64, SHORT_ROOM = 4096 };

/* Neighbouring columns are walked together; what beats the best so far takes its place. */
#define ARG(suffix, T)                                                                             \
    static int64_t arg_tile_##suffix(const struct scan *s, const T *x, int64_t *y, int64_t n)      \
    {                                                                                              \
        T best[TILE];                                                                              \
        int32_t place[TILE] = {0};                                                                 \
        int64_t length = s->length, first = s->last ? length - 1 : 0, turn = s->last ? -1 : 1;     \
        memcpy(best, x + first * s->inner, (size_t)n * sizeof(T));                                 \
        for (int64_t k = 1; k < length; k++) {                                                     \
            const T *row = x + (first + turn * k) * s->inner;                                      \
            for (int64_t j = 0; j < n; j++) {                                                      \
                T v = row[j], b = best[j];                                                         \
                bool wins = (s->is_min ? v < b : v > b) || (v != v && b == b);                     \
                best[j] = wins ? v : b;                                                            \
                place[j] = wins ? (int32_t)k : place[j];                                           \
            }                                                                                      \
        }                                                                                          \
        for (int64_t j = 0; j < n; j++)                                                            \
            y[j] = first + turn * place[j];                                                        \
        return n;                                                                                  \
    }                                                                                              \
    static int64_t arg_one_##suffix(const struct scan *s, const T *x, int64_t *y)                  \
    {                                                                                              \
        int64_t step = s->inner, last = s->length - 1, best = s->last ? last : 0;                  \
        T b = x[best * step];                                                                      \
        for (int64_t k = 1; k <= last && b == b; k++) {                                            \
            int64_t at = s->last ? last - k : k;                                                   \
            T v = x[at * step];                                                                    \
            if ((s->is_min ? v < b : v > b) || v != v) {                                           \
                b = v;                                                                             \
                best = at;                                                                         \
            }                                                                                      \
        }                                                                                          \
        *y = best;                                                                                 \
        return 1;                                                                                  \
    }                                                                                              \
    static void arg_##suffix(const struct scan *s, const void *from, void *to, int64_t begin,      \
                             int64_t end)                                                          \
    {                                                                                              \
        for (int64_t at = begin; at < end;) {                                                      \
            int64_t column = at % s->inner, n = s->inner - column, *y = (int64_t *)to + at;        \
            const T *x = (const T *)from + (at / s->inner) * s->length * s->inner + column;        \
            n = n < end - at ? n : end - at;                                                       \
            at += n < 16 ? arg_one_##suffix(s, x, y)                                               \
                         : arg_tile_##suffix(s, x, y, n < TILE ? n : TILE);                        \
        }                                                                                          \
    }
#define ARG_INT(op, s, T) ARG(s, T)
ARG(f64, double)
SDX_LOOP_INTS(ARG_INT, arg)

/* Columns of floats, walked together. */
static void arg_f32(const struct scan *s, const void *from, void *to, int64_t begin, int64_t end)
{
    int64_t n;
    for (int64_t at = begin; at < end; at += n) {
        const int64_t column = at % s->inner, first = s->last ? s->length - 1 : 0;
        const int64_t base = (at / s->inner * s->length + first) * s->inner + column;
        int64_t *y = (int64_t *)to + at;
        n = s->inner - column < end - at ? s->inner - column : end - at;
        sdx_vec()->f32_arg_columns((const float *)from + base, (size_t)s->length,
                                   (ptrdiff_t)(s->last ? -s->inner : s->inner), (size_t)n,
                                   s->is_min, y);
        for (int64_t j = 0; s->last && j < n; j++)
            y[j] = first - y[j];
    }
}

/* The extreme of each chunk, and where it is in the first chunk that has it. */
int64_t sdx_arg_row(const float *x, int64_t n, bool is_min, bool is_last)
{
    enum { CHUNK = 128 };
    float (*const extreme)(const float *, size_t) =
        is_min ? sdx_vec()->f32_reduce_min : sdx_vec()->f32_reduce_max;
    const int64_t chunks = (n + CHUNK - 1) / CHUNK;
    int64_t first = 0;
    float best = 0;
    for (int64_t i = 0; i < chunks && best == best; i++) {
        const int64_t at = (is_last ? chunks - 1 - i : i) * CHUNK;
        const float v = extreme(x + at, (size_t)(n - at < CHUNK ? n - at : CHUNK));
        if (i && (is_min ? v >= best : v <= best)) continue;
        best = v;
        first = at;
    }
    int64_t at = is_last ? (n - first < CHUNK ? n : first + CHUNK) - 1 : first;
    while (best == best ? x[at] != best : x[at] == x[at])
        at += is_last ? -1 : 1;
    return at;
}

/* Short rows: tiles of them are transposed, and their columns walked together. */
static void arg_short(const float *x, int64_t rows, int64_t length, bool is_min, bool is_last,
                      int64_t *y)
{
    const struct sdx_vec *vec = sdx_vec();
    const int64_t fit = SHORT_ROOM / length / 16 * 16, wide = fit < SHORT_TILE ? fit : SHORT_TILE;
    float tile[SHORT_ROOM];
    int64_t n;
    for (int64_t at = 0; at < rows; at += n, y += n) {
        n = rows - at < wide ? rows - at : wide;
        vec->b32_transpose(x + at * length, (size_t)length, tile, (size_t)wide, (size_t)n,
                           (size_t)length);
        vec->f32_arg_columns(is_last ? tile + (length - 1) * wide : tile, (size_t)length,
                             is_last ? -wide : wide, (size_t)n, is_min, y);
        for (int64_t j = 0; is_last && j < n; j++)
            y[j] = length - 1 - y[j];
    }
}

void sdx_arg_rows(const float *x, int64_t rows, int64_t n, bool is_min, bool is_last, int64_t *y)
{
    if (n <= SHORT_ROW && rows > 2) {
        arg_short(x, rows, n, is_min, is_last, y);
        return;
    }
    for (int64_t i = 0; i < rows; i++)
        y[i] = sdx_arg_row(x + i * n, n, is_min, is_last);
}

static void arg_rows_f32(const struct scan *s, const void *from, void *to, int64_t begin,
                         int64_t end)
{
    sdx_arg_rows((const float *)from + begin * s->length, end - begin, s->length, s->is_min,
                 s->last, (int64_t *)to + begin);
}

enum sdx_status sdx_arg_prepare(struct sdx_prepare *px)
{
    static void (*const fns[SDX_LOOP_TYPES])(const struct scan *, const void *, void *, int64_t,
                                             int64_t) = {
        [SDX_F32] = arg_f32, [SDX_F64] = arg_f64, SDX_LOOP_INT_ROWS(arg)};
    struct scan *s = SDX_PREPARE_NEW(px, struct scan);
    if (!s) return px->cx->error.status;
    SDX_TRY(set_axis(px, s, sdx_ir_attr_int(px->node, "axis", 0)));
    if (s->length == 0 && px->out[0]->count)
        return SDX_FAIL(px->cx, SDX_BAD_INPUT, "%.*s: the axis has no elements",
                        SDX_STR_ARG(px->node->op_type));
    if (s->length > INT32_MAX)
        return SDX_FAIL(px->cx, SDX_NOT_SUPPORTED, "%.*s: an axis of %lld elements",
                        SDX_STR_ARG(px->node->op_type), (long long)s->length);
    s->is_min = sdx_str_is(px->node->op_type, "ArgMin");
    s->last = sdx_ir_attr_int(px->node, "select_last_index", 0) != 0;
    s->run = fns[px->in[0]->dtype];
    if (px->in[0]->dtype == SDX_F32 && s->inner == 1) s->run = arg_rows_f32;
    return add_scan(px, s->is_min ? "argmin" : "argmax", s);
}

enum sdx_status sdx_arg_infer(struct sdx_infer *ix)
{
    sdx_infer_set_dtype(ix, 0, SDX_I64);
    const int64_t *dims = sdx_infer_dims(ix, 0);
    int rank = sdx_infer_rank(ix, 0), axis = 0, at = 0;
    if (!dims) return SDX_OK;
    bool keep = sdx_ir_attr_int(ix->node, "keepdims", 1) != 0;
    if (rank == 0) return sdx_infer_set_dims(ix, 0, 0, dims);
    SDX_TRY(sdx_infer_axis(ix, sdx_ir_attr_int(ix->node, "axis", 0), rank, &axis));
    int64_t result[SDX_RANK_MAX];
    for (int d = 0; d < rank; d++)
        if (d != axis || keep) result[at++] = d == axis ? 1 : dims[d];
    return sdx_infer_set_dims(ix, 0, at, result);
}

/* ---- CumSum, CumProd ---- */

/* Where the walk along one item begins, and over how many elements: one less of x where a sum is to
 * exclude its element; y goes ahead of x by that one then. */
struct walk {
    int64_t begin, turn, ahead, n;
};
static struct walk walk_of(const struct scan *s, int64_t item)
{
    struct walk w = {.turn = s->reverse ? -s->inner : s->inner, .n = s->length};
    w.begin = item / s->inner * s->length * s->inner + item % s->inner;
    if (s->reverse && w.n) w.begin += (w.n - 1) * s->inner;
    if (s->exclusive && w.n) w.n--, w.ahead = w.turn;
    return w;
}

/* Items go in fours, as each sum waits for the one before; less than four are the last one again.
 */
enum { TOGETHER = 4 };
#define CUMULATE(suffix, T, A)                                                                     \
    static void cumulate_##suffix(const struct scan *s, const void *from, void *to, int64_t begin, \
                                  int64_t end)                                                     \
    {                                                                                              \
        for (int64_t item = begin; item < end && s->length; item += TOGETHER) {                    \
            const T *x[TOGETHER];                                                                  \
            T *y[TOGETHER];                                                                        \
            const bool is_product = s->is_product;                                                 \
            A a = is_product, b = a, c = a, d = a;                                                 \
            struct walk w = {0};                                                                   \
            for (int i = 0; i < TOGETHER; i++) {                                                   \
                w = walk_of(s, item + i < end ? item + i : end - 1);                               \
                x[i] = (const T *)from + w.begin;                                                  \
                y[i] = (T *)to + w.begin + w.ahead;                                                \
                if (s->exclusive) y[i][-w.ahead] = (T)a;                                           \
            }                                                                                      \
            if (end - item == 1) {                                                                 \
                for (int64_t k = 0, at = 0; k < w.n; k++, at += w.turn) {                          \
                    a = is_product ? a * (A)x[0][at] : a + (A)x[0][at];                            \
                    y[0][at] = (T)a;                                                               \
                }                                                                                  \
                return;                                                                            \
            }                                                                                      \
            for (int64_t k = 0, at = 0; k < w.n; k++, at += w.turn) {                              \
                const A e = (A)x[0][at], f = (A)x[1][at], g = (A)x[2][at], h = (A)x[3][at];        \
                a = is_product ? a * e : a + e;                                                    \
                b = is_product ? b * f : b + f;                                                    \
                c = is_product ? c * g : c + g;                                                    \
                d = is_product ? d * h : d + h;                                                    \
                y[0][at] = (T)a;                                                                   \
                y[1][at] = (T)b;                                                                   \
                y[2][at] = (T)c;                                                                   \
                y[3][at] = (T)d;                                                                   \
            }                                                                                      \
        }                                                                                          \
    }
CUMULATE(f32, float, float)
CUMULATE(f64, double, double)
CUMULATE(i32, int32_t, uint64_t)
CUMULATE(i64, int64_t, uint64_t)
CUMULATE(u32, uint32_t, uint64_t)
CUMULATE(u64, uint64_t, uint64_t)

/* Columns of floats: each row is the one before with a row of x added. */
static void cumulate_rows_f32(const struct scan *s, const void *from, void *to, int64_t begin,
                              int64_t end)
{
    enum { COLUMNS = 2048 };
    void (*const join)(const float *, size_t, const float *, size_t, float *, size_t) =
        s->is_product ? sdx_vec()->f32_mul : sdx_vec()->f32_add;
    const float first = s->is_product ? 1.0f : 0.0f;
    int64_t n;
    for (int64_t item = begin; item < end; item += n) {
        const struct walk w = walk_of(s, item);
        const int64_t left = s->inner - item % s->inner;
        const float *x = (const float *)from + w.begin;
        float *y = (float *)to + w.begin + w.ahead;
        n = left < end - item ? left : end - item;
        if (n > COLUMNS) n = COLUMNS;
        for (int64_t j = 0; w.ahead && j < n; j++)
            y[j - w.ahead] = first;
        for (int64_t k = 0; k < w.n; k++, x += w.turn, y += w.turn)
            if (k == 0 && !w.ahead)
                join(&first, 0, x, 1, y, (size_t)n);
            else
                join(y - w.turn, 1, x, 1, y, (size_t)n);
    }
}

static void cumulate_any_f32(const struct scan *s, const void *from, void *to, int64_t begin,
                             int64_t end)
{
    (s->inner < 8 ? cumulate_f32 : cumulate_rows_f32)(s, from, to, begin, end);
}

/* The axis is an input that may be known only when running. */
struct cumulate {
    struct scan scan;
    int32_t rank;
};

static enum sdx_status run_cumulate(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)part;
    const struct cumulate *c = step->params;
    const struct sdx_tensor *in = step->in[0], *axis = step->in[1];
    int64_t given = sdx_load_i64(axis->dtype, axis->data, 0);
    int64_t at = given < 0 ? given + c->rank : given;
    if (at < 0 || at >= (c->rank ? c->rank : 1))
        return SDX_FAIL(x->cx, SDX_RUN_FAILED, "cumulative axis %lld of rank %d", (long long)given,
                        c->rank);
    struct scan s = c->scan;
    s.outer = s.inner = s.length = 1;
    for (int d = 0; d < c->rank; d++) {
        if (d < at) s.outer *= in->dims[d];
        if (d == at) s.length = in->dims[d];
        if (d > at) s.inner *= in->dims[d];
    }
    s.run(&s, in->data, step->out[0]->data, 0, s.outer * s.inner);
    return SDX_OK;
}

enum sdx_status sdx_cumulate_prepare(struct sdx_prepare *px)
{
    struct cumulate *c = SDX_PREPARE_NEW(px, struct cumulate);
    if (!c) return px->cx->error.status;
    struct scan *s = &c->scan;
    switch (px->in[0]->dtype) {
    case SDX_F32: s->run = cumulate_any_f32; break;
    case SDX_F64: s->run = cumulate_f64; break;
    case SDX_I32: s->run = cumulate_i32; break;
    case SDX_I64: s->run = cumulate_i64; break;
    case SDX_U32: s->run = cumulate_u32; break;
    case SDX_U64: s->run = cumulate_u64; break;
    default: break;
    }
    s->is_product = sdx_str_is(px->node->op_type, "CumProd");
    s->reverse = sdx_ir_attr_int(px->node, "reverse", 0) != 0;
    s->exclusive = sdx_ir_attr_int(px->node, "exclusive", 0) != 0;
    c->rank = px->in[0]->rank;
    if (px->in[1]->count != 1)
        return SDX_FAIL(px->cx, SDX_BAD_INPUT, "%.*s: axis has %lld elements",
                        SDX_STR_ARG(px->node->op_type), (long long)px->in[1]->count);
    const char *kernel = s->is_product ? "cumprod" : "cumsum";
    const struct sdx_tensor *axis = sdx_prepare_value(px, 1);
    if (!axis && s->run) return sdx_prepare_step(px, kernel, run_cumulate, c, 1, 0);
    if (axis) SDX_TRY(set_axis(px, s, sdx_load_i64(axis->dtype, axis->data, 0)));
    return add_scan(px, kernel, s);
}

enum sdx_status sdx_cumulate_infer(struct sdx_infer *ix)
{
    return sdx_infer_same(ix);
}
