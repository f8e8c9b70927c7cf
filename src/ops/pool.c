/* SPDX-License-Identifier: Apache-2.0
 * Pools over any number of spatial axes. Of f32 and bytes a strip of a plane is made at a time: all
 * its elements are folded with those that a tap is away, one axis after the other. Of f64, and
 * where indices are asked for, a row of outputs. Windows are cut at the input's ends; AveragePool
 * with count_include_pad cuts them at the ends of the padding. */
#include <math.h>

#include "kernels/qbytes.h"
#include "kernels/vec.h"
#include "ops/move.h"
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
    SDX_TRY(sdx_window_infer(ix, &w, dims, out));
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
    /* of strips: */
    int size;              /* bytes of an element */
    uint8_t flip;          /* makes bytes unsigned ones */
    bool is_plain;         /* but along the first axis windows see the input alone, all of it */
    bool packs;            /* along the first axis outputs are folded one by one */
    int64_t strip, strips; /* outputs along the first axis of one; strips of a plane */
    int64_t seen[SDX_RANK_MAX];  /* lengths of the other axes as windows see them */
    int64_t apart[SDX_RANK_MAX]; /* elements between neighbours along an axis, of what they see */
    int64_t room;                /* elements that the windows of a strip see; 0: in the input */
    int64_t folded;              /* elements of a strip that are folded */
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

/* ---- strips of f32 and of bytes ---- */

enum { STRIP_BYTES = 16 << 10, PACKED_LEAST = 128 /* elements of a row */ };
#define PLANE_MOST 0x1p40 /* elements */

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}
static int64_t within(int64_t x, int64_t low, int64_t high)
{
    return x < low ? low : least(x, high);
}

static double lp_term(const struct params *p, double x)
{
    return p->p == 2 ? x * x : p->p == 1 ? fabs(x) : pow(fabs(x), p->p);
}

static double lp_root(const struct params *p, double sum)
{
    return p->p == 2 ? sqrt(sum) : p->p == 1 ? sum : pow(sum, 1 / p->p);
}

/* n elements beside the input. */
static void see_none(const struct params *p, char *to, int64_t n)
{
    const float start = p->kind == KIND_MAX ? -INFINITY : 0;
    if (p->size == 1)
        memset(to, p->flip, (size_t)n);
    else
        sdx_move_fill(to, sizeof start, &start, n);
}

static void see_row(const struct params *p, const char *from, char *to, int64_t n)
{
    const float *x = (const void *)from;
    float *y = (void *)to;
    if (p->kind != KIND_LP)
        memcpy(to, from, (size_t)(n * p->size));
    else if (p->p == 2)
        sdx_vec()->f32_square(x, y, (size_t)n, 0, 0);
    else
        for (int64_t i = 0; i < n; i++)
            y[i] = (float)lp_term(p, x[i]);
}

/* What windows see at `length` places of an axis, from `begin` on, and along the axes behind it. */
static void see(const struct params *p, int axis, int64_t begin, int64_t length, const char *from,
                char *to)
{
    const int64_t apart = p->apart[axis], next = apart * p->size;
    const int64_t step = sdx_move_product(p->in, axis + 1, p->w.rank) * p->size;
    const int64_t first = within(-begin, 0, length);
    const int64_t last = within(p->in[axis] - begin, first, length);
    see_none(p, to, first * apart);
    see_none(p, to + last * next, (length - last) * apart);
    const bool is_row = p->is_plain || axis + 1 == p->w.rank;
    if (is_row && last > first)
        see_row(p, from + (begin + first) * step, to + first * next, (last - first) * apart);
    for (int64_t i = first; !is_row && i < last; i++)
        see(p, axis + 1, -p->w.pad_begin[axis + 1], p->seen[axis + 1], from + (begin + i) * step,
            to + i * next);
}

/* to = the fold of a and b, n elements of each */
static void fold(const struct params *p, const char *a, const char *b, char *to, int64_t n)
{
    if (p->size == 1) {
        if (to != a) memcpy(to, a, (size_t)n);
        sdx_qbytes()->max((const uint8_t *)b, p->flip, (uint8_t *)to, (size_t)n);
        return;
    }
    (p->kind == KIND_MAX ? sdx_vec()->f32_max : sdx_vec()->f32_add)(
        (const void *)a, 1, (const void *)b, 1, (void *)to, (size_t)n);
}

/* Each of *n elements becomes the fold of `taps`, `away` elements apart from it on; those at the
 * end, which lack some, are lost. The greatest of 2, 4, 8 ... come from those of half as many. */
static const char *fold_taps(const struct params *p, int64_t taps, int64_t away, const char *from,
                             char *const rooms[2], int64_t *n)
{
    const int64_t bytes = away * p->size;
    char *to = from == rooms[0] ? rooms[1] : rooms[0];
    if (p->kind != KIND_MAX) {
        *n -= (taps - 1) * away;
        for (int64_t k = 1; k < taps; k++)
            fold(p, k == 1 ? from : to, from + k * bytes, to, *n);
        return taps > 1 ? to : from;
    }
    for (int64_t done = 1, more; done < taps; done += more) {
        more = least(done, taps - done);
        *n -= more * away;
        fold(p, from, from + more * bytes, to, *n);
        from = to;
        to = to == rooms[0] ? rooms[1] : rooms[0];
    }
    return from;
}

/* The same along the first axis for `count` outputs, each packed behind the one before it. */
static const char *fold_rows(const struct params *p, int64_t count, const char *from, char *to,
                             int64_t *n)
{
    const int64_t inner = p->apart[0], bytes = inner * p->size;
    for (int64_t o = 0; o < count; o++, from += p->w.stride[0] * bytes)
        for (int64_t k = 1; k < p->w.kernel[0]; k++)
            fold(p, k == 1 ? from : to + o * bytes, from + k * p->w.dilation[0] * bytes,
                 to + o * bytes, inner);
    *n = count * inner;
    return to;
}

/* Of what was folded the `count` outputs from `axis` on, `step` bytes apart. Returns their end. */
static char *pick(const struct params *p, int axis, int64_t count, const char *from, int64_t step,
                  char *to)
{
    if (axis + 1 < p->w.rank) {
        for (int64_t o = 0; o < count; o++)
            to = pick(p, axis + 1, p->out[axis + 1], from + o * step,
                      p->w.stride[axis + 1] * p->apart[axis + 1] * p->size, to);
        return to;
    }
    if (step == p->size)
        memcpy(to, from, (size_t)(count * p->size));
    else if (p->size == 1)
        for (int64_t o = 0; o < count; o++)
            to[o] = from[o * step];
    else
        for (int64_t o = 0; o < count; o++)
            memcpy(to + o * 4, from + o * step, 4);
    return to + count * p->size;
}

/* Sums of the outputs begin .. end of an axis and all behind it become means. */
static float *divide(const struct params *p, int axis, int64_t begin, int64_t end, double divisor,
                     float *y)
{
    const bool is_last = axis + 1 == p->w.rank;
    for (int64_t o = begin; o < end;) {
        const double taps = divisor * (double)divisor_at(p, axis, o);
        const bool is_full = is_last && o >= p->full_begin && o < p->full_end;
        const int64_t until = is_full ? least(end, p->full_end) : o + 1;
        if (is_last) {
            const float by = (float)taps;
            sdx_vec()->f32_div(y, 1, &by, 0, y, (size_t)(until - o));
            y += until - o;
        } else {
            y = divide(p, axis + 1, 0, p->out[axis + 1], taps, y);
        }
        o = until;
    }
    return y;
}

static void finish_strip(const struct params *p, int64_t o, int64_t count, char *to)
{
    float *y = (void *)to;
    const int64_t n = count * sdx_move_product(p->out, 1, p->w.rank);
    if (p->kind == KIND_AVERAGE)
        divide(p, 0, o, o + count, 1, y);
    else if (p->kind == KIND_LP && p->p == 2)
        sdx_vec()->f32_sqrt(y, y, (size_t)n, 0, 0);
    else if (p->kind == KIND_LP)
        for (int64_t i = 0; i < n; i++)
            y[i] = (float)lp_root(p, y[i]);
}

static enum sdx_status run_strips(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct params *p = step->params;
    const int64_t units = p->planes * p->strips,
                  end = sdx_part_begin(units, step->parts, part + 1, 1);
    const int64_t reach = (p->w.kernel[0] - 1) * p->w.dilation[0] + 1;
    char *const seen = x->scratch, *const folded = seen + p->room * p->size;
    char *const rooms[2] = {folded, folded + p->folded * p->size};
    for (int64_t u = sdx_part_begin(units, step->parts, part, 1); u < end && !sdx_exec_cancelled(x);
         u++) {
        const int64_t o = u % p->strips * p->strip, count = least(p->strip, p->out[0] - o);
        const int64_t begin = o * p->w.stride[0] - p->w.pad_begin[0];
        const int64_t length = (count - 1) * p->w.stride[0] + reach;
        const char *from = (const char *)step->in[0]->data + u / p->strips * p->in_plane * p->size;
        char *to = (char *)step->out[0]->data +
                   (u / p->strips * p->out_plane + o * (p->out_plane / p->out[0])) * p->size;
        int64_t n = length * p->apart[0];
        if (p->is_plain && p->kind != KIND_LP && begin >= 0 && begin + length <= p->in[0]) {
            from += begin * p->apart[0] * p->size;
        } else {
            see(p, 0, begin, length, from, seen);
            from = seen;
        }
        from = p->packs
                   ? fold_rows(p, count, from, rooms[0], &n)
                   : fold_taps(p, p->w.kernel[0], p->w.dilation[0] * p->apart[0], from, rooms, &n);
        for (int axis = 1; axis < p->w.rank; axis++)
            from = fold_taps(p, p->w.kernel[axis], p->w.dilation[axis] * p->apart[axis], from,
                             rooms, &n);
        pick(p, 0, count, from, (p->packs ? 1 : p->w.stride[0]) * p->apart[0] * p->size, to);
        finish_strip(p, o, count, to);
    }
    return SDX_OK;
}

static enum sdx_status plan_strips(struct sdx_prepare *px, struct params *p)
{
    const int dtype = px->in[0]->dtype;
    p->size = dtype == SDX_F32 ? 4 : 1;
    p->flip = dtype == SDX_I8 ? 0x80 : 0;
    p->is_plain = true;
    double all = 1; /* elements that windows see of a plane */
    for (int d = 0; d < p->w.rank; d++) {
        const int64_t needed =
            (p->out[d] - 1) * p->w.stride[d] + (p->w.kernel[d] - 1) * p->w.dilation[d] + 1;
        const bool is_inside = p->w.pad_begin[d] == 0 && needed <= p->in[d];
        p->seen[d] = is_inside ? p->in[d] : needed;
        if (d > 0) p->is_plain = p->is_plain && is_inside;
        if (d == 0 && !is_inside) p->room = 1; /* there is some */
        all *= (double)p->seen[d];
    }
    if (all > PLANE_MOST)
        return SDX_FAIL(
            px->cx, SDX_NOT_SUPPORTED,
            "%.*s: a plane of %.3g elements with its padding, at most %.3g are possible",
            NAME(px->node), all, (double)PLANE_MOST);
    for (int d = 0; d < p->w.rank; d++)
        p->apart[d] = sdx_move_product(p->seen, d + 1, p->w.rank);
    const int64_t reach = (p->w.kernel[0] - 1) * p->w.dilation[0] + 1;
    const int64_t rows = STRIP_BYTES / (p->size * p->apart[0]) - reach;
    p->strip = least(p->out[0], rows < 0 ? 1 : rows / p->w.stride[0] + 1);
    p->strips = (p->out[0] + p->strip - 1) / p->strip;
    p->packs = p->w.kernel[0] > 1 &&
               (p->strip == 1 || (p->w.stride[0] > 1 && p->apart[0] >= PACKED_LEAST));
    const int64_t whole = ((p->strip - 1) * p->w.stride[0] + reach) * p->apart[0];
    p->room = p->room || !p->is_plain || p->kind == KIND_LP ? whole : 0;
    p->folded = p->packs ? p->strip * p->apart[0] : whole;
    return SDX_OK;
}

/* ---- rows of f64 ---- */

static double join(const struct params *p, double a, double b)
{
    return p->kind != KIND_MAX ? a + b : b > a || b != b ? b : a;
}

static double finish(const struct params *p, double taps, double sum)
{
    return p->kind == KIND_MAX ? sum : p->kind == KIND_AVERAGE ? sum / taps : lp_root(p, sum);
}

/* First the rows that its windows cover are joined, then the taps of the last axis. */
static void row_f64(const struct params *p, int64_t row, const double *x, double *joined, double *y)
{
    const int last = p->w.rank - 1;
    const double start = p->kind == KIND_MAX ? -INFINITY : 0;
    struct rows r;
    rows_begin(&r, p, row);
    for (int64_t i = 0; i < p->in[last]; i++)
        joined[i] = start;
    for (int64_t at = rows_next(&r); at >= 0; at = rows_next(&r))
        for (int64_t i = 0; i < p->in[last]; i++)
            joined[i] = join(p, joined[i], p->kind == KIND_LP ? lp_term(p, x[at + i]) : x[at + i]);
    for (int64_t o = 0; o < p->out[last]; o++) {
        const int64_t at = o * p->w.stride[last] - p->w.pad_begin[last];
        double sum = start;
        int64_t k0, k1;
        taps_at(p, last, o, &k0, &k1);
        for (int64_t k = k0; k < k1; k++)
            sum = join(p, sum, joined[at + k * p->w.dilation[last]]);
        y[o] = finish(p, r.divisor * (double)divisor_at(p, last, o), sum);
    }
}

static enum sdx_status run_f64(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct params *p = step->params;
    const int64_t begin = part * p->planes_a_part, end = begin + p->planes_a_part;
    for (int64_t i = begin; i < end && i < p->planes && !sdx_exec_cancelled(x); i++)
        for (int64_t row = 0; row < p->rows; row++)
            row_f64(p, row, (const double *)step->in[0]->data + i * p->in_plane, x->scratch,
                    (double *)step->out[0]->data + i * p->out_plane + row * p->out[p->w.rank - 1]);
    return SDX_OK;
}

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
        int dtype;
        sdx_step_fn *run;
        const char *name;
    } indices[] = {
        {SDX_F32, run_index_f32, "max_pool_index_f32"},
        {SDX_F64, run_index_f64, "max_pool_index_f64"},
        {SDX_I8, run_index_i8, "max_pool_index_i8"},
        {SDX_U8, run_index_u8, "max_pool_index_u8"},
    };
    static const char *const names[] = {"max_pool", "average_pool", "lp_pool"};
    struct params *p = SDX_PREPARE_NEW(px, struct params);
    if (!p) return SDX_FAIL_MEMORY(px->cx);
    const int dtype = px->in[0]->dtype;
    const bool has_index = px->count_out > 1 && px->out[1],
               is_byte = dtype == SDX_I8 || dtype == SDX_U8;
    SDX_TRY(read_params(px, kind, p));
    if (kind == KIND_LP) SDX_TRY(read_p(px, &p->p));
    if (p->planes == 0 || p->out_plane == 0) return SDX_OK;
    double taps = 1;
    for (int i = 0; i < p->w.rank; i++)
        taps *= (double)p->w.kernel[i];
    const double work = (double)p->planes * (double)p->out_plane * (taps + 1);
    if (!has_index && (dtype == SDX_F32 || (is_byte && kind == KIND_MAX))) {
        SDX_TRY(plan_strips(px, p));
        return sdx_prepare_step(px, names[kind], run_strips, p,
                                sdx_prepare_parts(work, 1 << 15, p->planes * p->strips),
                                (size_t)((p->room + 2 * p->folded) * p->size));
    }
    int64_t parts = sdx_prepare_parts(work, 1 << 15, 128);
    p->planes_a_part = has_index ? 1 : (p->planes + parts - 1) / parts;
    parts = (p->planes + p->planes_a_part - 1) / p->planes_a_part;
    const size_t scratch = (size_t)(p->in[p->w.rank - 1] + p->out[p->w.rank - 1]) * sizeof(double);
    if (!has_index && dtype == SDX_F64)
        return sdx_prepare_step(px, names[kind], run_f64, p, parts, scratch);
    for (int i = 0; has_index && i < SDX_COUNT_OF(indices); i++)
        if (indices[i].dtype == dtype)
            return sdx_prepare_step(px, indices[i].name, indices[i].run, p, parts, scratch);
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
        sum = join(p, sum, p->kind == KIND_LP ? lp_term(p, x[i]) : x[i]);
    return finish(p, (double)p->in_plane, sum);
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
};

const struct sdx_op_family sdx_ops_pool = FAMILY("", ops);
