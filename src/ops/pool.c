/* SPDX-License-Identifier: Apache-2.0
 * Pools over any number of spatial axes. A row of outputs is made in two sweeps: first the input
 * rows that its windows cover are reduced into one row (contiguous), then the last axis. Windows
 * are cut at the input's ends; AveragePool with count_include_pad cuts them at the ends of the
 * padding. */
#include <float.h>
#include <math.h>

#include "kernels/qbytes.h"
#include "kernels/vec.h"
#include "ops/pool_blocked.h"
#include "ops/pool_last.h"
#include "ops/shared.h"
#include "ops/window.h"
#include "tensor/convert.h"

#define NAME(node) SDX_STR_ARG((node)->op_type)

enum kind { KIND_MAX, KIND_AVERAGE, KIND_LP };

/* ---- inference ---- */

enum sdx_status sdx_pool_infer(struct sdx_infer *ix)
{
    struct sdx_window w;
    int rank = sdx_infer_rank(ix, 0);
    const int64_t *dims = sdx_infer_dims(ix, 0);
    sdx_infer_set_dtype(ix, 0, sdx_infer_dtype(ix, 0));
    if (ix->count_out > 1) sdx_infer_set_dtype(ix, 1, SDX_I64);
    if (rank < 0) return SDX_OK;
    SDX_TRY(sdx_window_read(ix->cx, ix->node, rank - 2, NULL, &w));
    int64_t out[SDX_RANK_MAX] = {dims[0], dims[1]};
    for (int i = 0; i < rank - 2; i++)
        SDX_TRY(sdx_window_length(ix->cx, ix->node, &w, i, dims[i + 2], &out[i + 2]));
    for (int k = 0; k < ix->count_out; k++)
        SDX_TRY(sdx_infer_set_dims(ix, k, rank, out));
    return SDX_OK;
}

enum sdx_status sdx_global_pool_infer(struct sdx_infer *ix)
{
    int rank = sdx_infer_rank(ix, 0);
    const int64_t *dims = sdx_infer_dims(ix, 0);
    sdx_infer_set_dtype(ix, 0, sdx_infer_dtype(ix, 0));
    if (rank < 0) return SDX_OK;
    if (rank < 2)
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "%.*s: input has rank %d, expected at least 2",
                        NAME(ix->node), rank);
    int64_t *out = sdx_infer_new_dims(ix, 0, rank);
    if (!out) return SDX_FAIL_MEMORY(ix->cx);
    for (int i = 0; i < rank; i++)
        out[i] = i < 2 ? dims[i] : 1;
    return SDX_OK;
}

static void cost_pool(const struct sdx_infer *ix, struct sdx_cost *cost)
{
    int64_t count = 0;
    const int64_t *kernel = sdx_ir_attr_ints(ix->node, "kernel_shape", &count);
    cost->flops = 1;
    for (int64_t i = 0; i < count; i++)
        cost->flops *= (double)kernel[i];
    for (int i = 0; i < ix->out[0].rank; i++)
        cost->flops *= (double)ix->out[0].dims[i];
}

static void cost_global(const struct sdx_infer *ix, struct sdx_cost *cost)
{
    cost->flops = 1;
    for (int i = 0; i < sdx_infer_rank(ix, 0); i++)
        cost->flops *= (double)sdx_infer_dims(ix, 0)[i];
}

/* ---- windows of a plane ---- */

struct params {
    struct sdx_window w;
    enum kind kind;
    bool include_pad, column_major;
    double p; /* LpPool */
    int64_t in[SDX_RANK_MAX], out[SDX_RANK_MAX];
    int64_t in_plane, out_plane, rows; /* rows: of outputs in a plane */
    int64_t planes, planes_a_part;
    int64_t full_begin, full_end; /* outputs along the last axis whose windows lie inside */
};

/* Taps k0..k1-1 of the window at output o of an axis that fall on the input. */
static void taps_at(const struct params *p, int axis, int64_t o, int64_t *k0, int64_t *k1)
{
    int64_t dilation = p->w.dilation[axis], at = o * p->w.stride[axis] - p->w.pad_begin[axis];
    *k0 = at >= 0 ? 0 : (-at + dilation - 1) / dilation;
    *k1 = at >= p->in[axis] ? 0 : (p->in[axis] - at + dilation - 1) / dilation;
    if (*k1 > p->w.kernel[axis]) *k1 = p->w.kernel[axis];
    if (*k0 > *k1) *k0 = *k1;
}

/* How many taps an average divides by along an axis. */
static int64_t divisor_at(const struct params *p, int axis, int64_t o)
{
    int64_t k0, k1;
    taps_at(p, axis, o, &k0, &k1);
    if (!p->include_pad) return k1 - k0;
    int64_t at = o * p->w.stride[axis] - p->w.pad_begin[axis], d = p->w.dilation[axis];
    int64_t room = p->in[axis] + p->w.pad_end[axis] - at;
    int64_t taps = room <= 0 ? 0 : (room + d - 1) / d;
    return taps < p->w.kernel[axis] ? taps : p->w.kernel[axis];
}

/* Walks the input rows that output row `row` (of the axes but the last) covers. */
struct rows {
    const struct params *p;
    int axes; /* all but the last */
    int64_t begin[SDX_RANK_MAX], end[SDX_RANK_MAX], k[SDX_RANK_MAX], o[SDX_RANK_MAX];
    double divisor;
    bool is_done;
};

static void rows_begin(struct rows *r, const struct params *p, int64_t row)
{
    r->p = p;
    r->axes = p->w.rank - 1;
    r->divisor = 1;
    r->is_done = false;
    for (int i = r->axes - 1; i >= 0; i--) {
        r->o[i] = row % p->out[i];
        row /= p->out[i];
        taps_at(p, i, r->o[i], &r->begin[i], &r->end[i]);
        r->k[i] = r->begin[i];
        r->divisor *= (double)divisor_at(p, i, r->o[i]);
        if (r->begin[i] == r->end[i]) r->is_done = true;
    }
}

/* The next input row's first element in the plane; -1: no more. */
static int64_t rows_next(struct rows *r)
{
    const struct params *p = r->p;
    int64_t at = 0;
    if (r->is_done) return -1;
    for (int i = 0; i < r->axes; i++) {
        int64_t where = r->o[i] * p->w.stride[i] - p->w.pad_begin[i] + r->k[i] * p->w.dilation[i];
        at = at * p->in[i] + where;
    }
    int i = r->axes - 1;
    while (i >= 0 && ++r->k[i] == r->end[i]) {
        r->k[i] = r->begin[i];
        i--;
    }
    if (i < 0) r->is_done = true;
    return at * p->in[r->axes];
}

/* ---- small planes whose windows all lie inside ---- */

enum { WHOLE_WIDTH = 64, WHOLE_PLANE = 4096 };

static bool is_whole(const struct params *p)
{
    for (int i = 0; i < p->w.rank; i++)
        if (p->w.pad_begin[i] ||
            (p->out[i] - 1) * p->w.stride[i] + (p->w.kernel[i] - 1) * p->w.dilation[i] >= p->in[i])
            return false;
    return p->in[p->w.rank - 1] <= WHOLE_WIDTH && p->in_plane <= WHOLE_PLANE;
}

/* The outputs that lie in axes from `axis` on: each stride-th of what was folded. Returns the next
 * one's place. */
static float *pick(const struct params *p, int axis, const float *from, int64_t apart, float *to,
                   float scale)
{
    const int64_t step = p->w.stride[axis] * apart, n = p->out[axis];
    if (axis + 1 < p->w.rank) {
        for (int64_t o = 0; o < n; o++)
            to = pick(p, axis + 1, from + o * step, apart / p->in[axis + 1], to, scale);
        return to;
    }
    if (p->kind == KIND_MAX)
        for (int64_t o = 0; o < n; o++)
            to[o] = from[o * step];
    else
        for (int64_t o = 0; o < n; o++)
            to[o] = from[o * step] / scale;
    return to + n;
}

/* A plane is one row: what an axis' taps see is so many elements apart everywhere in it, and what
 * is folded across the end of a line is read by no output. */
static enum sdx_status run_whole(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct params *p = step->params;
    const int64_t begin = part * p->planes_a_part, end = begin + p->planes_a_part;
    for (int64_t i = begin; i < end && i < p->planes && !sdx_exec_cancelled(x); i++) {
        const float *from = (const float *)step->in[0]->data + i * p->in_plane;
        float *room[2] = {x->scratch, (float *)x->scratch + p->in_plane}, scale = 1;
        int64_t n = p->in_plane, apart = 1;
        int turn = 0;
        for (int axis = p->w.rank - 1; axis >= 0; apart *= p->in[axis--]) {
            const int64_t taps = p->w.kernel[axis], away = p->w.dilation[axis] * apart;
            scale *= (float)taps;
            float *to = room[turn];
            if (taps == 1) continue;
            n -= (taps - 1) * away;
            for (int64_t k = 1; k < taps; k++)
                (p->kind == KIND_MAX ? sdx_vec()->f32_max : sdx_vec()->f32_add)(
                    k == 1 ? from : to, 1, from + k * away, 1, to, (size_t)n);
            from = to;
            turn = !turn;
        }
        pick(p, 0, from, p->in_plane / p->in[0], (float *)step->out[0]->data + i * p->out_plane,
             scale);
    }
    return SDX_OK;
}

/* ---- the loops, a type each ---- */

/* One output row: MERGE_ROW reduces the input rows into one, SLIDE_ROW (whole windows, all at once)
 * and TAKE (windows at the ends) the taps of the last axis; FINISH makes the output from that and
 * the number of taps, FINISH_ROW what it is to be from a row of these. */
#define POOL_PLANE(name, T, start_, MERGE_ROW, SLIDE_ROW, TAKE, FINISH, FINISH_ROW)                \
    static void name(const struct params *p, const T *x, T *y, T *reduced)                         \
    {                                                                                              \
        int last = p->w.rank - 1;                                                                  \
        int64_t width = p->in[last], out = p->out[last], d = p->w.dilation[last];                  \
        int64_t s = p->w.stride[last], pad = p->w.pad_begin[last], taps = p->w.kernel[last];       \
        T *slid = reduced + width;                                                                 \
        for (int64_t row = 0; row < p->rows; row++, y += out) {                                    \
            struct rows r;                                                                         \
            rows_begin(&r, p, row);                                                                \
            for (int64_t i = 0; i < width; i++)                                                    \
                reduced[i] = start_;                                                               \
            for (int64_t at = rows_next(&r); at >= 0; at = rows_next(&r))                          \
                MERGE_ROW(p, x + at, reduced, width);                                              \
            int64_t inside = p->full_end ? width - (taps - 1) * d : 0;                             \
            memcpy(slid, reduced, (size_t)inside * sizeof(T));                                     \
            for (int64_t k = 1; k < taps && inside; k++)                                           \
                SLIDE_ROW(p, reduced + k * d, slid, inside);                                       \
            double whole = r.divisor * (double)taps;                                               \
            for (int64_t o = p->full_begin; o < p->full_end; o++)                                  \
                y[o] = FINISH(p, whole, slid[o * s - pad]);                                        \
            for (int64_t o = 0; o < out; o++) {                                                    \
                if (o == p->full_begin) o = p->full_end;                                           \
                if (o >= out) break;                                                               \
                int64_t k0, k1;                                                                    \
                taps_at(p, last, o, &k0, &k1);                                                     \
                T sum = start_;                                                                    \
                for (int64_t k = k0; k < k1; k++)                                                  \
                    sum = TAKE(sum, reduced[o * s - pad + k * d]);                                 \
                double some = r.divisor * (double)divisor_at(p, last, o);                          \
                y[o] = FINISH(p, some, sum);                                                       \
            }                                                                                      \
            FINISH_ROW(p, y, out);                                                                 \
        }                                                                                          \
    }

#define MAX_FLOAT(a, b)           ((b) > (a) || (b) != (b) ? (b) : (a))
#define MAX_INT(a, b)             ((b) > (a) ? (b) : (a))
#define ADD(a, b)                 ((a) + (b))
#define KEEP(p, taps, sum)        ((void)(taps), (sum))
#define MERGE_MAX_F32(p, x, y, n) sdx_vec()->f32_max(y, 1, x, 1, y, (size_t)(n))
#define MERGE_ADD_F32(p, x, y, n) sdx_vec()->f32_add(y, 1, x, 1, y, (size_t)(n))
#define ROW_LOOP(y, n, expression)                                                                 \
    for (int64_t i_ = 0; i_ < (n); i_++)                                                           \
    (y)[i_] = (expression)
#define MERGE_MAX_F64(p, x, y, n) ROW_LOOP(y, n, MAX_FLOAT((y)[i_], (x)[i_]))
#define MERGE_MAX_I8(p, x, y, n)  merge_max((x), 0x80, (y), (n))
#define MERGE_MAX_U8(p, x, y, n)  merge_max((x), 0, (y), (n))
#define MERGE_ADD_F64(p, x, y, n) ROW_LOOP(y, n, (y)[i_] + (x)[i_])
#define MERGE_LP_F32(p, x, y, n)  merge_lp_f32(p, x, y, slid, n)
#define MERGE_LP_F64(p, x, y, n)  ROW_LOOP(y, n, (y)[i_] + lp_term((p), (x)[i_]))
#define MEAN_F32(p, taps, sum)    ((sum) / (float)(taps))
#define MEAN_F64(p, taps, sum)    ((sum) / (taps))
#define NO_ROW(p, y, n)           ((void)0)

static void merge_max(const void *x, uint8_t flip, void *y, int64_t n)
{
    sdx_qbytes()->max(x, flip, y, (size_t)n);
}

static double lp_term(const struct params *p, double x)
{
    return p->p == 2 ? x * x : p->p == 1 ? fabs(x) : pow(fabs(x), p->p);
}

static double lp_root(const struct params *p, double sum)
{
    return p->p == 2 ? sqrt(sum) : p->p == 1 ? sum : pow(sum, 1 / p->p);
}

static void lp_roots_f32(const struct params *p, float *y, int64_t n)
{
    if (p->p == 2)
        sdx_vec()->f32_sqrt(y, y, (size_t)n, 0, 0);
    else
        ROW_LOOP(y, n, (float)lp_root(p, y[i_]));
}

static void lp_roots_f64(const struct params *p, double *y, int64_t n)
{
    ROW_LOOP(y, n, lp_root(p, y[i_]));
}

/* terms: room for n */
static void merge_lp_f32(const struct params *p, const float *x, float *y, float *terms, int64_t n)
{
    if (p->p == 2)
        sdx_vec()->f32_square(x, terms, (size_t)n, 0, 0);
    else
        for (int64_t i = 0; i < n; i++)
            terms[i] = (float)lp_term(p, x[i]);
    MERGE_ADD_F32(p, terms, y, n);
}

POOL_PLANE(max_f32, float, -INFINITY, MERGE_MAX_F32, MERGE_MAX_F32, MAX_FLOAT, KEEP, NO_ROW)
POOL_PLANE(max_f64, double, -INFINITY, MERGE_MAX_F64, MERGE_MAX_F64, MAX_FLOAT, KEEP, NO_ROW)
POOL_PLANE(max_i8, int8_t, INT8_MIN, MERGE_MAX_I8, MERGE_MAX_I8, MAX_INT, KEEP, NO_ROW)
POOL_PLANE(max_u8, uint8_t, 0, MERGE_MAX_U8, MERGE_MAX_U8, MAX_INT, KEEP, NO_ROW)
POOL_PLANE(average_f32, float, 0, MERGE_ADD_F32, MERGE_ADD_F32, ADD, MEAN_F32, NO_ROW)
POOL_PLANE(average_f64, double, 0, MERGE_ADD_F64, MERGE_ADD_F64, ADD, MEAN_F64, NO_ROW)
POOL_PLANE(lp_f32, float, 0, MERGE_LP_F32, MERGE_ADD_F32, ADD, KEEP, lp_roots_f32)
POOL_PLANE(lp_f64, double, 0, MERGE_LP_F64, MERGE_ADD_F64, ADD, KEEP, lp_roots_f64)

#define POOL_RUN(name, T, plane)                                                                   \
    static enum sdx_status name(struct sdx_exec *x, const struct sdx_step *step, int64_t part)     \
    {                                                                                              \
        const struct params *p = step->params;                                                     \
        int64_t begin = part * p->planes_a_part, end = begin + p->planes_a_part;                   \
        for (int64_t i = begin; i < end && i < p->planes && !sdx_exec_cancelled(x); i++)           \
            plane(p, (const T *)step->in[0]->data + i * p->in_plane,                               \
                  (T *)step->out[0]->data + i * p->out_plane, x->scratch);                         \
        return SDX_OK;                                                                             \
    }
POOL_RUN(run_max_f32, float, max_f32)
POOL_RUN(run_max_f64, double, max_f64)
POOL_RUN(run_max_i8, int8_t, max_i8)
POOL_RUN(run_max_u8, uint8_t, max_u8)
POOL_RUN(run_average_f32, float, average_f32)
POOL_RUN(run_average_f64, double, average_f64)
POOL_RUN(run_lp_f32, float, lp_f32)
POOL_RUN(run_lp_f64, double, lp_f64)
#undef POOL_RUN

/* MaxPool that also tells where: the first largest element of each window, as a flat index of the
 * whole input (or column-major within its plane). */
static int64_t index_of(const struct params *p, int64_t plane, int64_t at)
{
    if (!p->column_major) return plane * p->in_plane + at;
    int64_t place[SDX_RANK_MAX], index = 0;
    for (int i = p->w.rank - 1; i >= 0; i--) {
        place[i] = at % p->in[i];
        at /= p->in[i];
    }
    for (int i = p->w.rank - 1; i >= 0; i--)
        index = index * p->in[i] + place[i];
    return plane * p->in_plane + index;
}

/* Masks in place of branches, which would be guessed wrong. */
#define POOL_INDEX(name, T, lowest)                                                                \
    static enum sdx_status name(struct sdx_exec *x, const struct sdx_step *step, int64_t part)     \
    {                                                                                              \
        const struct params *p = step->params;                                                     \
        int last = p->w.rank - 1;                                                                  \
        const T *in = (const T *)step->in[0]->data + part * p->in_plane;                           \
        T *y = step->out[0] ? (T *)step->out[0]->data + part * p->out_plane : NULL,                \
          *best = x->scratch;                                                                      \
        int64_t *index = (int64_t *)step->out[1]->data + part * p->out_plane;                      \
        int64_t width = p->out[last], d = p->w.dilation[last];                                     \
        for (int64_t row = 0; row < p->rows && !sdx_exec_cancelled(x); row++, index += width) {    \
            struct rows r;                                                                         \
            for (int64_t o = 0; o < width; o++) {                                                  \
                best[o] = lowest;                                                                  \
                index[o] = -1;                                                                     \
            }                                                                                      \
            rows_begin(&r, p, row);                                                                \
            for (int64_t at = rows_next(&r); at >= 0; at = rows_next(&r))                          \
                for (int64_t o = 0; o < width; o++) {                                              \
                    int64_t k = 0, end = p->w.kernel[last], found = index[o];                      \
                    T most = best[o];                                                              \
                    if (o < p->full_begin || o >= p->full_end) taps_at(p, last, o, &k, &end);      \
                    int64_t where = at + o * p->w.stride[last] - p->w.pad_begin[last] + k * d;     \
                    for (; k < end; k++, where += d) {                                             \
                        const T v = in[where];                                                     \
                        if (found < 0) {                                                           \
                            most = v;                                                              \
                            found = where;                                                         \
                        }                                                                          \
                        const int64_t more = -(int64_t)(v > most);                                 \
                        found ^= (found ^ where) & more;                                           \
                        most = v > most ? v : most;                                                \
                    }                                                                              \
                    best[o] = most;                                                                \
                    index[o] = found;                                                              \
                }                                                                                  \
            for (int64_t o = 0; o < width; o++)                                                    \
                index[o] = index_of(p, part, index[o] < 0 ? 0 : index[o]);                         \
            if (y) memcpy(y + row * width, best, (size_t)width * sizeof(T));                       \
        }                                                                                          \
        return SDX_OK;                                                                             \
    }
POOL_INDEX(run_index_f32, float, -INFINITY)
POOL_INDEX(run_index_f64, double, -INFINITY)
POOL_INDEX(run_index_i8, int8_t, INT8_MIN)
POOL_INDEX(run_index_u8, uint8_t, 0)
#undef POOL_INDEX

/* Without the axes of one pixel, which would be rows of one, all but one of them. */
static void drop_axes(struct params *p)
{
    struct sdx_window *w = &p->w;
    int kept = 0;
    for (int i = 0; i < w->rank; i++) {
        const bool is_one = p->in[i] == 1 && p->out[i] == 1 && w->kernel[i] == 1 &&
                            w->pad_begin[i] == 0 && w->pad_end[i] == 0;
        if (is_one && kept + w->rank - i > 1) continue;
        p->in[kept] = p->in[i];
        p->out[kept] = p->out[i];
        w->kernel[kept] = w->kernel[i];
        w->stride[kept] = w->stride[i];
        w->dilation[kept] = w->dilation[i];
        w->pad_begin[kept] = w->pad_begin[i];
        w->pad_end[kept++] = w->pad_end[i];
    }
    w->rank = kept;
}

static enum sdx_status read_params(struct sdx_prepare *px, enum kind kind, struct params *p)
{
    const struct sdx_tensor *x = px->in[0];
    int64_t length;
    SDX_TRY(sdx_window_read(px->cx, px->node, x->rank - 2, NULL, &p->w));
    p->kind = kind;
    p->include_pad = sdx_ir_attr_int(px->node, "count_include_pad", 0) != 0;
    p->column_major = sdx_ir_attr_int(px->node, "storage_order", 0) != 0;
    for (int i = 0; i < p->w.rank; i++) {
        p->in[i] = x->dims[i + 2];
        SDX_TRY(sdx_window_length(px->cx, px->node, &p->w, i, p->in[i], &length));
        p->out[i] = length;
    }
    drop_axes(p);
    p->in_plane = p->out_plane = p->rows = 1;
    for (int i = 0; i < p->w.rank; i++) {
        p->in_plane *= p->in[i];
        p->out_plane *= p->out[i];
        if (i < p->w.rank - 1) p->rows *= p->out[i];
    }
    p->planes = x->dims[0] * x->dims[1];
    int last = p->w.rank - 1;
    int64_t s = p->w.stride[last], pad = p->w.pad_begin[last];
    int64_t room = p->in[last] - 1 - (p->w.kernel[last] - 1) * p->w.dilation[last] + pad;
    p->full_begin = pad > 0 ? (pad + s - 1) / s : 0;
    p->full_end = room < 0 ? 0 : room / s + 1;
    if (p->full_end > p->out[last]) p->full_end = p->out[last];
    if (p->full_begin >= p->full_end) p->full_begin = p->full_end = 0;
    return SDX_OK;
}

/* Attribute p: an integer, a float in the first versions. */
static enum sdx_status read_p(struct sdx_prepare *px, double *p)
{
    const struct sdx_ir_attr *attr = sdx_ir_attr(px->node, "p");
    *p = !attr ? 2 : px->opset < 2 ? (double)attr->f : (double)attr->i;
    if (*p > 0) return SDX_OK;
    return SDX_FAIL(px->cx, SDX_BAD_MODEL, "%.*s: p is %g, expected more than 0", NAME(px->node),
                    *p);
}

static enum sdx_status prepare_pool(struct sdx_prepare *px, enum kind kind)
{
    static const struct {
        enum kind kind;
        int dtype;
        bool has_index;
        sdx_step_fn *run;
        const char *name;
    } table[] = {
        {KIND_MAX, SDX_F32, false, run_max_f32, "max_pool_f32"},
        {KIND_MAX, SDX_F64, false, run_max_f64, "max_pool_f64"},
        {KIND_MAX, SDX_I8, false, run_max_i8, "max_pool_i8"},
        {KIND_MAX, SDX_U8, false, run_max_u8, "max_pool_u8"},
        {KIND_MAX, SDX_F32, true, run_index_f32, "max_pool_index_f32"},
        {KIND_MAX, SDX_F64, true, run_index_f64, "max_pool_index_f64"},
        {KIND_MAX, SDX_I8, true, run_index_i8, "max_pool_index_i8"},
        {KIND_MAX, SDX_U8, true, run_index_u8, "max_pool_index_u8"},
        {KIND_AVERAGE, SDX_F32, false, run_average_f32, "average_pool_f32"},
        {KIND_AVERAGE, SDX_F64, false, run_average_f64, "average_pool_f64"},
        {KIND_LP, SDX_F32, false, run_lp_f32, "lp_pool_f32"},
        {KIND_LP, SDX_F64, false, run_lp_f64, "lp_pool_f64"},
    };
    struct params *p = SDX_PREPARE_NEW(px, struct params);
    if (!p) return SDX_FAIL_MEMORY(px->cx);
    bool has_index = px->count_out > 1 && px->out[1];
    SDX_TRY(read_params(px, kind, p));
    if (kind == KIND_LP) SDX_TRY(read_p(px, &p->p));
    if (p->planes == 0 || p->out_plane == 0) return SDX_OK;
    double taps = 1;
    for (int i = 0; i < p->w.rank; i++)
        taps *= (double)p->w.kernel[i];
    int64_t parts =
        sdx_prepare_parts((double)p->planes * (double)p->out_plane * (taps + 1), 1 << 15, 128);
    p->planes_a_part = has_index ? 1 : (p->planes + parts - 1) / parts;
    parts = (p->planes + p->planes_a_part - 1) / p->planes_a_part;
    if (px->in[0]->dtype == SDX_F32 && !has_index && kind != KIND_LP && is_whole(p))
        return sdx_prepare_step(px, kind == KIND_MAX ? "max_pool_whole" : "average_pool_whole",
                                run_whole, p, parts, (size_t)(2 * p->in_plane) * sizeof(float));
    for (int i = 0; i < SDX_COUNT_OF(table); i++)
        if (table[i].kind == kind && table[i].dtype == px->in[0]->dtype &&
            table[i].has_index == has_index)
            return sdx_prepare_step(
                px, table[i].name, table[i].run, p, parts,
                (size_t)(p->in[p->w.rank - 1] * 16 + p->out[p->w.rank - 1] * 8));
    return SDX_FAIL(px->cx, SDX_NOT_SUPPORTED, "%.*s: element type %s", NAME(px->node),
                    sdx_dtype_short_name(px->in[0]->dtype));
}

static void max_pool_layout(struct sdx_prepare *px, struct sdx_layouts *want)
{
    sdx_max_pool_layout(px, want);
    sdx_pool_blocked_layout(px, want);
}

static enum sdx_status prepare_max_pool(struct sdx_prepare *px)
{
    if (px->in[0]->layout == SDX_LAYOUT_BLOCKED) return sdx_pool_blocked_prepare(px, false);
    if (px->in[0]->layout == SDX_LAYOUT_LAST) return sdx_max_pool_last_prepare(px);
    return prepare_pool(px, KIND_MAX);
}

static enum sdx_status prepare_average_pool(struct sdx_prepare *px)
{
    if (px->in[0]->layout == SDX_LAYOUT_BLOCKED) return sdx_pool_blocked_prepare(px, true);
    return prepare_pool(px, KIND_AVERAGE);
}

static enum sdx_status prepare_lp_pool(struct sdx_prepare *px)
{
    return prepare_pool(px, KIND_LP);
}

/* ---- global pools ---- */

static double global_f64(const struct params *p, const double *x)
{
    double sum = p->kind == KIND_MAX ? -INFINITY : 0;
    for (int64_t i = 0; i < p->in_plane; i++)
        sum = p->kind == KIND_MAX       ? MAX_FLOAT(sum, x[i])
              : p->kind == KIND_AVERAGE ? sum + x[i]
                                        : sum + lp_term(p, x[i]);
    return p->kind == KIND_MAX       ? sum
           : p->kind == KIND_AVERAGE ? sum / (double)p->in_plane
                                     : lp_root(p, sum);
}

static float global_f32(const struct params *p, const float *x)
{
    const struct sdx_vec *v = sdx_vec();
    size_t n = (size_t)p->in_plane;
    if (p->kind == KIND_MAX) return v->f32_reduce_max(x, n);
    if (p->kind == KIND_AVERAGE) return v->f32_reduce_sum(x, n) / (float)n;
    if (p->p == 2) return sqrtf(v->f32_reduce_sumsq(x, n));
    if (p->p == 1) return v->f32_reduce_sumabs(x, n);
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += lp_term(p, x[i]);
    return (float)lp_root(p, sum);
}

static enum sdx_status run_global(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct params *p = step->params;
    int64_t begin = part * p->planes_a_part, end = begin + p->planes_a_part;
    for (int64_t i = begin; i < end && i < p->planes && !sdx_exec_cancelled(x); i++) {
        if (step->in[0]->dtype == SDX_F32)
            ((float *)step->out[0]->data)[i] =
                global_f32(p, (const float *)step->in[0]->data + i * p->in_plane);
        else
            ((double *)step->out[0]->data)[i] =
                global_f64(p, (const double *)step->in[0]->data + i * p->in_plane);
    }
    return SDX_OK;
}

static enum sdx_status prepare_global(struct sdx_prepare *px, enum kind kind)
{
    struct params *p = SDX_PREPARE_NEW(px, struct params);
    const struct sdx_tensor *x = px->in[0];
    if (!p) return SDX_FAIL_MEMORY(px->cx);
    if (x->dtype != SDX_F32 && x->dtype != SDX_F64)
        return SDX_FAIL(px->cx, SDX_NOT_SUPPORTED, "%.*s: element type %s", NAME(px->node),
                        sdx_dtype_short_name(x->dtype));
    p->kind = kind;
    if (kind == KIND_LP) SDX_TRY(read_p(px, &p->p));
    p->planes = x->dims[0] * x->dims[1];
    p->in_plane = 1;
    for (int i = 2; i < x->rank; i++)
        p->in_plane *= x->dims[i];
    if (p->planes == 0) return SDX_OK;
    int64_t parts = sdx_prepare_parts((double)x->count, 1 << 15, 128);
    p->planes_a_part = (p->planes + parts - 1) / parts;
    parts = (p->planes + p->planes_a_part - 1) / p->planes_a_part;
    return sdx_prepare_step(px, "global_pool", run_global, p, parts, 0);
}

static void global_layout(struct sdx_prepare *px, struct sdx_layouts *want)
{
    if (px->in[0]->layout == SDX_LAYOUT_BLOCKED) want->in[0] = SDX_LAYOUT_BLOCKED;
}

static enum sdx_status prepare_global_max(struct sdx_prepare *px)
{
    if (px->in[0]->layout == SDX_LAYOUT_BLOCKED) return sdx_global_blocked_prepare(px, false);
    return prepare_global(px, KIND_MAX);
}

static enum sdx_status prepare_global_average(struct sdx_prepare *px)
{
    if (px->in[0]->layout == SDX_LAYOUT_BLOCKED) return sdx_global_blocked_prepare(px, true);
    return prepare_global(px, KIND_AVERAGE);
}

static enum sdx_status prepare_global_lp(struct sdx_prepare *px)
{
    return prepare_global(px, KIND_LP);
}

/* ---- MaxUnpool ---- */

/* Shape that the attributes alone give: what the indices are relative to. */
static enum sdx_status unpool_shape(struct sdx_context *cx, const struct sdx_ir_node *node,
                                    int rank, const int64_t *in, int64_t *out)
{
    struct sdx_window w;
    SDX_TRY(sdx_window_read(cx, node, rank - 2, NULL, &w));
    out[0] = in[0];
    out[1] = in[1];
    for (int i = 0; i < w.rank; i++) {
        int64_t length = in[i + 2];
        out[i + 2] = -1;
        if (length < 0) continue;
        if (!sdx_mul_i64(length - 1, w.stride[i], &length) ||
            !sdx_add_i64(length, w.kernel[i] - w.pad_begin[i] - w.pad_end[i], &length) ||
            length < 0)
            return SDX_FAIL(cx, SDX_BAD_MODEL, "MaxUnpool: axis %d has no possible length", i + 2);
        out[i + 2] = length;
    }
    return SDX_OK;
}

static enum sdx_status infer_unpool(struct sdx_infer *ix)
{
    int rank = sdx_infer_rank(ix, 0);
    int64_t out[SDX_RANK_MAX], count;
    const int64_t *given;
    sdx_infer_set_dtype(ix, 0, sdx_infer_dtype(ix, 0));
    if (rank < 0) return SDX_OK;
    SDX_TRY(unpool_shape(ix->cx, ix->node, rank, sdx_infer_dims(ix, 0), out));
    if (!sdx_infer_has(ix, 2)) return sdx_infer_set_dims(ix, 0, rank, out);
    if (!sdx_infer_known_ints(ix, 2, &given, &count)) return SDX_OK;
    if (count != rank)
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL,
                        "MaxUnpool: output_shape has %lld values, expected %d", (long long)count,
                        rank);
    for (int i = 0; i < rank; i++)
        if (given[i] < 0 || (out[i] >= 0 && given[i] < out[i]))
            return SDX_FAIL(ix->cx, SDX_BAD_MODEL,
                            "MaxUnpool: output_shape[%d] is %lld, expected at least %lld", i,
                            (long long)given[i], (long long)(out[i] < 0 ? 0 : out[i]));
    return sdx_infer_set_dims(ix, 0, rank, given);
}

struct unpool {
    int64_t dims[SDX_RANK_MAX]; /* what the indices are relative to */
    int64_t count;
};

static enum sdx_status run_unpool(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)part;
    const struct unpool *p = step->params;
    const struct sdx_tensor *in = step->in[0], *out = step->out[0];
    const int64_t *index = step->in[1]->data;
    size_t size = out->dtype == SDX_F64 ? 8 : 4;
    const bool is_same = memcmp(p->dims, out->dims, (size_t)out->rank * sizeof(int64_t)) == 0;
    memset(out->data, 0, out->bytes);
    bool is_inside = is_same && size == 4;
    for (int64_t i = 0; is_inside && i < in->count; i++) {
        is_inside = (uint64_t)index[i] < (uint64_t)p->count;
        if (is_inside) ((float *)out->data)[index[i]] = ((const float *)in->data)[i];
    }
    if (is_inside) return SDX_OK;
    for (int64_t i = 0; i < in->count; i++) {
        if (index[i] < 0 || index[i] >= p->count)
            return SDX_FAIL(x->cx, SDX_RUN_FAILED, "MaxUnpool: index %lld is not in 0..%lld",
                            (long long)index[i], (long long)(p->count - 1));
        int64_t rest = index[i], at = is_same ? rest : 0, stride = 1;
        for (int d = out->rank - 1; d >= 0 && !is_same; d--) {
            at += rest % p->dims[d] * stride;
            rest /= p->dims[d];
            stride *= out->dims[d];
        }
        if (size == 4)
            ((float *)out->data)[at] = ((const float *)in->data)[i];
        else
            ((double *)out->data)[at] = ((const double *)in->data)[i];
    }
    return SDX_OK;
}

static enum sdx_status prepare_unpool(struct sdx_prepare *px)
{
    struct unpool *p = SDX_PREPARE_NEW(px, struct unpool);
    const struct sdx_tensor *x = px->in[0];
    if (!p) return SDX_FAIL_MEMORY(px->cx);
    if (x->dtype != SDX_F32 && x->dtype != SDX_F64)
        return SDX_FAIL(px->cx, SDX_NOT_SUPPORTED, "MaxUnpool: element type %s",
                        sdx_dtype_short_name(x->dtype));
    if (px->in[1]->count != x->count)
        return SDX_FAIL(px->cx, SDX_BAD_MODEL, "MaxUnpool: %lld indices for %lld values",
                        (long long)px->in[1]->count, (long long)x->count);
    SDX_TRY(unpool_shape(px->cx, px->node, x->rank, x->dims, p->dims));
    if (!sdx_dims_count(p->dims, x->rank, &p->count))
        return SDX_FAIL(px->cx, SDX_BAD_MODEL, "MaxUnpool: output is too large");
    return sdx_prepare_step(px, "max_unpool", run_unpool, p, 1, 0);
}

static const struct sdx_op ops[] = {
    {"MaxPool", 1, 0, sdx_pool_infer, KERNEL(prepare_max_pool), .cost = cost_pool,
     .layout = max_pool_layout, .flags = SDX_OP_VIA_F32},
    {"AveragePool", 1, 0, sdx_pool_infer, KERNEL(prepare_average_pool), .cost = cost_pool,
     .layout = sdx_pool_blocked_layout, .flags = SDX_OP_VIA_F32},
    {"LpPool", 1, 0, sdx_pool_infer, KERNEL(prepare_lp_pool), .cost = cost_pool,
     .flags = SDX_OP_VIA_F32},
    {"GlobalMaxPool", 1, 0, sdx_global_pool_infer, KERNEL(prepare_global_max), .cost = cost_global,
     .layout = global_layout, .flags = SDX_OP_VIA_F32},
    {"GlobalAveragePool", 1, 0, sdx_global_pool_infer, KERNEL(prepare_global_average),
     .cost = cost_global, .layout = global_layout, .flags = SDX_OP_VIA_F32},
    {"GlobalLpPool", 1, 0, sdx_global_pool_infer, KERNEL(prepare_global_lp), .cost = cost_global,
     .flags = SDX_OP_VIA_F32},
    {"MaxUnpool", 9, 0, infer_unpool, KERNEL(prepare_unpool), .flags = SDX_OP_VIA_F32},
};

const struct sdx_op_family sdx_ops_pool = FAMILY("", ops);
