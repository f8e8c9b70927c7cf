/* SPDX-License-Identifier: Apache-2.0
 * Reductions over any axes. The shape is collapsed to alternating kept and reduced axes; where the
 * last of them is reduced, contiguous runs are folded, where it is kept, rows are added up into a
 * tile. The order of operations depends on the shape only. ArgMax and CumSum are in scan.c. */
#include <math.h>

#include "kernels/elements.h"
#include "kernels/vec.h"
#include "ops/pool_blocked.h"
#include "ops/loops.h"
#include "ops/op.h"
#include "ops/scan.h"
#include "ops/tile.h"
#include "tensor/convert.h"

enum {
    TILE = 1024,    /* columns of a tile: accumulators of 8 bytes stay in L1 */
    SHORT_RUN = 64, /* runs up to this are folded many at a time, elements of 4 bytes */
    SHORT_F32 = 51, /* of f32: longer ones fill the vectors of a fold */
    SHORT_TILE = 128,
    FEW_COLUMNS = 64 /* rows of so many are folded many at a time */
};

struct reduce {
    /* Adds n elements of x into acc[0]. */
    void (*fold)(const void *x, int64_t n, void *acc);
    /* acc[j] takes x[j]. */
    void (*fold_row)(const void *x, int64_t n, void *acc);
    void (*start)(void *acc, int64_t n);
    void (*finish)(const struct reduce *r, const void *acc, void *y, int64_t n);
    void (*halve)(const float *a, size_t step_a, const float *b, size_t step_b, float *y, size_t n);
    int32_t size_x, size_y;
    int64_t length;                  /* elements in each reduction */
    bool is_row;                     /* the innermost axis is kept */
    int64_t inner;                   /* its length (1 when it is reduced) */
    int64_t run;                     /* length of the innermost reduced axis when not is_row */
    int64_t together;                /* runs finished at once: accumulators of f32 are floats */
    int64_t tiles;                   /* of the innermost kept axis */
    int32_t rank_kept, rank_reduced; /* of the other axes */
    int64_t kept[SDX_RANK_MAX], kept_step[SDX_RANK_MAX];
    int64_t reduced[SDX_RANK_MAX], reduced_step[SDX_RANK_MAX];
    int64_t outer, turns; /* products of kept, reduced */
};

/* ---- element loops: T elements, A accumulators ---- */

#define FOLD_START(name, A, first)                                                                 \
    static void name(void *acc, int64_t n)                                                         \
    {                                                                                              \
        A *a = acc;                                                                                \
        for (int64_t j = 0; j < n; j++)                                                            \
            a[j] = (A)(first);                                                                     \
    }
#define FOLD_RUN(name, T, A, expr)                                                                 \
    static void name(const void *from, int64_t n, void *acc)                                       \
    {                                                                                              \
        const T *p = from;                                                                         \
        A s = *(A *)acc;                                                                           \
        for (int64_t j = 0; j < n; j++) {                                                          \
            const A x = (A)p[j];                                                                   \
            s = (A)(expr);                                                                         \
        }                                                                                          \
        *(A *)acc = s;                                                                             \
    }
#define FOLDS(name, T, A, first, expr)                                                             \
    FOLD_START(name##_start, A, first)                                                             \
    FOLD_RUN(name, T, A, expr)                                                                     \
    static void name##_row(const void *from, int64_t n, void *acc)                                 \
    {                                                                                              \
        const T *p = from;                                                                         \
        A *a = acc;                                                                                \
        for (int64_t j = 0; j < n; j++) {                                                          \
            const A x = (A)p[j], s = a[j];                                                         \
            a[j] = (A)(expr);                                                                      \
        }                                                                                          \
    }
/* By a kernel of two elements, with accumulators of their type. */
#define FOLDS_BY(name, T, first, expr, kernel)                                                     \
    FOLD_START(name##_start, T, first)                                                             \
    FOLD_RUN(name##_few, T, T, expr)                                                               \
    static void name##_row(const void *from, int64_t n, void *acc)                                 \
    {                                                                                              \
        const uint8_t size[] = {sizeof(T), sizeof(T), sizeof(T)};                                  \
        sdx_element_run(sdx_elements()->kernel, NULL, 2, size, (const void *const[]){acc, from},   \
                        (const int64_t[]){1, 1}, acc, n);                                          \
    }                                                                                              \
    static void name(const void *from, int64_t n, void *acc)                                       \
    {                                                                                              \
        fold_blocks(sdx_elements()->kernel, sizeof(T), name##_few, from, n, acc);                  \
    }

/* Four blocks are folded into four, these by halves into a few elements, they and what is left over
 * into acc. */
static void fold_blocks(sdx_element_fn *fn, size_t size,
                        void (*few)(const void *x, int64_t n, void *acc), const char *x, int64_t n,
                        void *acc)
{
    enum { BLOCK = SDX_ELEMENT_BLOCK, FEW = 8 };
    const size_t step[] = {BLOCK, BLOCK}, bytes = BLOCK * size;
    const float none[2] = {0, 0};
    _Alignas(64) char blocks[4 * BLOCK * SDX_ELEMENT_BYTES], half[BLOCK * SDX_ELEMENT_BYTES];
    const void *in[] = {blocks, x};
    if (n >= 8 * BLOCK) {
        memcpy(blocks, x, 4 * bytes);
        for (n -= 4 * BLOCK, x += 4 * bytes; n >= 4 * BLOCK; n -= 4 * BLOCK, x += 4 * bytes) {
            in[1] = x;
            fn(in, step, blocks, 4, none);
        }
        for (size_t left = 2 * bytes; left >= FEW * size; left /= 2) {
            in[1] = left < bytes ? memcpy(half, blocks + left, bytes) : blocks + left;
            fn(in, step, blocks, left > bytes ? 2 : 1,
               none); /* what is behind `left` is not used */
        }
        few(blocks, FEW, acc);
    }
    few(x, n, acc);
}

#define IS_MAX(x, s) ((x) > (s) || (x) != (x) ? (x) : (s))
#define IS_MIN(x, s) ((x) < (s) || (x) != (x) ? (x) : (s))

FOLDS_BY(sum_f64, double, 0, s + x, f64_add)
FOLDS(sumabs_f64, double, double, 0, s + fabs(x))
FOLDS(sumsq_f64, double, double, 0, s + x * x)
FOLDS(prod_f64, double, double, 1, s *x)
FOLDS_BY(max_f64, double, -INFINITY, IS_MAX(x, s), f64_max)
FOLDS_BY(min_f64, double, INFINITY, IS_MIN(x, s), f64_min)
/* Sums of integers wrap in 64 bits, so their low bits are those of the narrow sum. */
#define INT_SUMS(s_, T)                                                                            \
    FOLDS(sumsq_##s_, T, uint64_t, 0, s + x * x)                                                   \
    FOLDS(prod_##s_, T, uint64_t, 1, s *x)                                                         \
    FOLDS(dsum_##s_, T, double, 0, s + x)                                                          \
    FOLDS(dsumsq_##s_, T, double, 0, s + x * x)
INT_SUMS(i32, int32_t)
INT_SUMS(i64, int64_t)
INT_SUMS(u32, uint32_t)
INT_SUMS(u64, uint64_t)
FOLDS(sum_i32, int32_t, uint64_t, 0, s + x)
FOLDS(sum_u32, uint32_t, uint64_t, 0, s + x)
FOLDS_BY(wrapped_32, uint32_t, 0, s + x, b32_add)
FOLDS_BY(sum_64, uint64_t, 0, s + x, b64_add)
FOLDS(sumabs_i32, int32_t, uint64_t, 0, s + ((int64_t)x < 0 ? 0 - x : x))
FOLDS(sumabs_i64, int64_t, uint64_t, 0, s + ((int64_t)x < 0 ? 0 - x : x))
#define EXTREMES(s_, T, lowest, highest)                                                           \
    FOLDS(max_##s_, T, T, lowest, x > s ? x : s)                                                   \
    FOLDS(min_##s_, T, T, highest, x < s ? x : s)
#define EXTREMES_BY(s_, T, lowest, highest)                                                        \
    FOLDS_BY(max_##s_, T, lowest, x > s ? x : s, s_##_max)                                         \
    FOLDS_BY(min_##s_, T, highest, x < s ? x : s, s_##_min)
EXTREMES(i8, int8_t, INT8_MIN, INT8_MAX)
EXTREMES_BY(u8, uint8_t, 0, UINT8_MAX)
EXTREMES_BY(i32, int32_t, INT32_MIN, INT32_MAX)
EXTREMES_BY(i64, int64_t, INT64_MIN, INT64_MAX)
EXTREMES(u32, uint32_t, 0, UINT32_MAX)
EXTREMES(u64, uint64_t, 0, UINT64_MAX)

/* f32 through the vector kernels. */
#define VEC_FOLD(op, first, merge, row)                                                            \
    static void op##_f32_start(void *acc, int64_t n)                                               \
    {                                                                                              \
        float *a = acc;                                                                            \
        for (int64_t j = 0; j < n; j++)                                                            \
            a[j] = (first);                                                                        \
    }                                                                                              \
    static void op##_f32(const void *from, int64_t n, void *acc)                                   \
    {                                                                                              \
        float x = sdx_vec()->f32_reduce_##op(from, (size_t)n), s = *(float *)acc;                  \
        *(float *)acc = (merge);                                                                   \
    }                                                                                              \
    static void op##_f32_row(const void *from, int64_t n, void *acc)                               \
    {                                                                                              \
        const float *x = from;                                                                     \
        float *a = acc;                                                                            \
        row;                                                                                       \
    }
/* `made`: of m numbers from x + j on, to `tile` */
#define ROW_TILES(made)                                                                            \
    float tile[SHORT_TILE];                                                                        \
    for (int64_t j = 0; j < n; j += SHORT_TILE) {                                                  \
        const size_t m = (size_t)(n - j < SHORT_TILE ? n - j : SHORT_TILE);                        \
        sdx_vec()->made;                                                                           \
        sdx_vec()->f32_add(a + j, 1, tile, 1, a + j, m);                                           \
    }
VEC_FOLD(sum, 0, s + x, sdx_vec()->f32_add(a, 1, x, 1, a, (size_t)n))
VEC_FOLD(sumabs, 0, s + x, ROW_TILES(f32_abs(x + j, tile, m, 0, 0)))
VEC_FOLD(sumsq, 0, s + x, ROW_TILES(f32_mul(x + j, 1, x + j, 1, tile, m)))
VEC_FOLD(prod, 1, s *x, sdx_vec()->f32_mul(a, 1, x, 1, a, (size_t)n))
VEC_FOLD(max, -INFINITY, IS_MAX(x, s), sdx_vec()->f32_max(a, 1, x, 1, a, (size_t)n))
VEC_FOLD(min, INFINITY, IS_MIN(x, s), sdx_vec()->f32_min(a, 1, x, 1, a, (size_t)n))

/* ---- the last step: from accumulators to elements ---- */

#define FINISH(name, A, T, expr)                                                                   \
    static void name(const struct reduce *r, const void *acc, void *to, int64_t n)                 \
    {                                                                                              \
        (void)r;                                                                                   \
        const A *a = acc;                                                                          \
        T *y = to;                                                                                 \
        for (int64_t j = 0; j < n; j++) {                                                          \
            const A s = a[j];                                                                      \
            y[j] = (T)(expr);                                                                      \
        }                                                                                          \
    }
FINISH(keep_f32, float, float, s)
FINISH(mean_f32, float, float, s / (float)r->length)
FINISH(root_f32, float, float, sqrtf(s))
static void log_f32(const struct reduce *r, const void *acc, void *y, int64_t n)
{
    (void)r;
    sdx_vec()->f32_log(acc, y, (size_t)n, 0, 0);
}
FINISH(keep_f64, double, double, s)
FINISH(mean_f64, double, double, s / (double)r->length)
FINISH(root_f64, double, double, sqrt(s))
FINISH(log_f64, double, double, log(s))
FINISH(keep_i8, int8_t, int8_t, s)
FINISH(keep_u8, uint8_t, uint8_t, s)
FINISH(keep_bool, uint8_t, uint8_t, s != 0)
FINISH(keep_i32, int32_t, int32_t, s)
FINISH(keep_i64, int64_t, int64_t, s)
FINISH(keep_u32, uint32_t, uint32_t, s)
FINISH(keep_u64, uint64_t, uint64_t, s)
FINISH(wrap_32, uint64_t, uint32_t, s)
FINISH(wrap_64, uint64_t, uint64_t, s)
/* Integer mean truncates; the mean of nothing is 0. */
FINISH(mean_i32, uint64_t, int32_t, r->length ? (int64_t)s / r->length : 0)
FINISH(mean_i64, uint64_t, int64_t, r->length ? (int64_t)s / r->length : 0)
FINISH(mean_u32, uint64_t, uint32_t, r->length ? (uint32_t)s / (uint64_t)r->length : 0)
FINISH(mean_u64, uint64_t, uint64_t, r->length ? s / (uint64_t)r->length : 0)
#define FINISH_REAL(name, dtype, expr)                                                             \
    static void name(const struct reduce *r, const void *acc, void *to, int64_t n)                 \
    {                                                                                              \
        (void)r;                                                                                   \
        const double *a = acc;                                                                     \
        for (int64_t j = 0; j < n; j++)                                                            \
            sdx_store_f64(dtype, to, j, expr(a[j]));                                               \
    }
#define REAL(s_, dtype) FINISH_REAL(root_##s_, dtype, sqrt) FINISH_REAL(log_##s_, dtype, log)
REAL(i32, SDX_I32)
REAL(i64, SDX_I64)
REAL(u32, SDX_U32)
REAL(u64, SDX_U64)

/* ---- the loops ---- */

/* Offset of position `at` in nested loops, innermost last. */
static int64_t offset_of(int32_t rank, const int64_t *dims, const int64_t *step, int64_t at)
{
    int64_t offset = 0;
    for (int32_t d = rank - 1; d >= 0; d--) {
        offset += (at % dims[d]) * step[d];
        at /= dims[d];
    }
    return offset;
}

/* Visits the reduced positions of one output (or tile of outputs) from element `base` on. */
static void visit(const struct reduce *r, const char *x, int64_t base, int64_t n, void *acc)
{
    int64_t index[SDX_RANK_MAX] = {0}, offset = base;
    for (int64_t turn = 0; turn < r->turns; turn++) {
        if (r->is_row)
            r->fold_row(x + offset * r->size_x, n, acc);
        else
            r->fold(x + offset * r->size_x, r->run, acc);
        for (int32_t d = r->rank_reduced - 1; d >= 0; d--) {
            offset += r->reduced_step[d];
            if (++index[d] < r->reduced[d]) break;
            offset -= r->reduced[d] * r->reduced_step[d];
            index[d] = 0;
        }
    }
}

static enum sdx_status run_reduce(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct reduce *r = step->params;
    const char *from = step->in[0]->data;
    char *to = step->out[0]->data;
    int64_t items = r->is_row ? r->outer * r->tiles : r->outer;
    int64_t begin = sdx_part_begin(items, step->parts, part, 1);
    int64_t end = sdx_part_begin(items, step->parts, part + 1, 1);
    for (int64_t item = begin; item < end; item++) {
        int64_t outer = r->is_row ? item / r->tiles : item, at = 0, n = 1;
        if (r->is_row) {
            at = (item % r->tiles) * TILE;
            n = r->inner - at < TILE ? r->inner - at : TILE;
        }
        int64_t base = offset_of(r->rank_kept, r->kept, r->kept_step, outer) + at;
        r->start(x->scratch, n);
        visit(r, from, base, n, x->scratch);
        r->finish(r, x->scratch, to + (outer * r->inner + at) * r->size_y, n);
    }
    return SDX_OK;
}

/* Runs, one behind the other, from number `first` on. */
static void take_runs(const void *params, const void *from_, int64_t first, int64_t count, void *to,
                      void *acc)
{
    const struct reduce *r = params;
    const char *from = from_;
    for (int64_t at = 0, n = 0; at < count; at += n) {
        n = count - at < r->together ? count - at : r->together;
        r->start(acc, n);
        for (int64_t j = 0; j < n; j++)
            r->fold(from + (at + j) * r->run * r->size_x, r->run,
                    (char *)acc + j * (int64_t)sizeof(float));
        r->finish(r, acc, (char *)to + (first + at) * r->size_y, n);
    }
}
static enum sdx_status run_runs(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct reduce *r = step->params;
    const int64_t begin = sdx_part_begin(r->outer, step->parts, part, 1);
    const int64_t end = sdx_part_begin(r->outer, step->parts, part + 1, 1);
    take_runs(r, (const char *)step->in[0]->data + begin * r->run * r->size_x, begin, end - begin,
              step->out[0]->data, x->scratch);
    return SDX_OK;
}
/* Runs of what is worked element by element. */
static enum sdx_status absorb_runs(struct sdx_context *cx, struct sdx_arena *arena,
                                   const struct sdx_step *maker, struct sdx_step *reader,
                                   bool *done)
{
    const struct reduce *r = reader->params;
    const struct sdx_rows_reader how = {r->outer, r->run, TILE * sizeof(double), take_runs};
    return sdx_chain_absorb_rows(cx, arena, maker, reader, &how, done);
}

/* Short runs, one behind the other: a tile of them is transposed, and row after row added up. */
static enum sdx_status run_short(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct reduce *r = step->params;
    const char *from = step->in[0]->data;
    char *to = step->out[0]->data, *rows = (char *)x->scratch + SHORT_TILE * sizeof(double);
    const int64_t end = sdx_part_begin(r->outer, step->parts, part + 1, 1);
    int64_t n = 0;
    for (int64_t at = sdx_part_begin(r->outer, step->parts, part, 1); at < end; at += n) {
        n = end - at < SHORT_TILE ? end - at : SHORT_TILE;
        sdx_vec()->b32_transpose(from + at * r->run * r->size_x, (size_t)r->run, rows, SHORT_TILE,
                                 (size_t)n, (size_t)r->run);
        r->start(x->scratch, n);
        for (int64_t j = 0; j < r->run; j++)
            r->fold_row(rows + j * SHORT_TILE * r->size_x, n, x->scratch);
        r->finish(r, x->scratch, to + at * r->size_y, n);
    }
    return SDX_OK;
}

/* Few f32 columns of rows that lie in one piece: half of the rows is folded into the other half
 * until one is left. */
static enum sdx_status run_halves(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct reduce *r = step->params;
    float *to = step->out[0]->data, *half = x->scratch;
    const int64_t end = sdx_part_begin(r->outer, step->parts, part + 1, 1);
    for (int64_t item = sdx_part_begin(r->outer, step->parts, part, 1); item < end; item++) {
        const float *from = (const float *)step->in[0]->data + item * r->turns * r->inner;
        for (int64_t rows = r->turns; rows > 1; from = half, rows -= rows / 2) {
            const int64_t n = rows / 2 * r->inner, rest = rows * r->inner - n;
            r->halve(from, 1, from + rest, 1, half, (size_t)n);
            if (rest > n && from != half)
                memcpy(half + n, from + n, (size_t)r->inner * sizeof *half);
        }
        r->finish(r, from, to + item * r->inner, r->inner);
    }
    return SDX_OK;
}

/* log(sum(exp(x - m))) + m with m the largest element, by element: two visits. */
struct lse_state {
    double largest, sum;
};

static enum sdx_status run_lse(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)x;
    const struct reduce *r = step->params;
    const struct sdx_tensor *in = step->in[0];
    struct sdx_tensor *out = step->out[0];
    int64_t items = r->outer * r->inner;
    int64_t begin = sdx_part_begin(items, step->parts, part, 1);
    int64_t end = sdx_part_begin(items, step->parts, part + 1, 1);
    int64_t run = r->is_row ? 1 : r->run;
    for (int64_t item = begin; item < end; item++) {
        int64_t base = offset_of(r->rank_kept, r->kept, r->kept_step, item / r->inner);
        base += item % r->inner;
        struct lse_state s = {-INFINITY, 0};
        for (int pass = 0; pass < 2; pass++) {
            double shift = isinf(s.largest) ? 0 : s.largest;
            for (int64_t turn = 0; turn < r->turns; turn++) {
                int64_t at = base + offset_of(r->rank_reduced, r->reduced, r->reduced_step, turn);
                for (int64_t j = 0; j < run; j++) {
                    double v = sdx_load_f64(in->dtype, in->data, at + j);
                    if (pass == 0)
                        s.largest = IS_MAX(v, s.largest);
                    else
                        s.sum += exp(v - shift);
                }
            }
        }
        double shift = isinf(s.largest) ? 0 : s.largest;
        sdx_store_f64(out->dtype, out->data, item, log(s.sum) + shift);
    }
    return SDX_OK;
}

/* The same for f32 rows that lie in one piece; all is summed before the logarithms. */
static enum sdx_status run_lse_rows(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct reduce *r = step->params;
    const struct sdx_vec *vec = sdx_vec();
    const float *from = step->in[0]->data;
    float *to = step->out[0]->data, *tile = x->scratch;
    int64_t begin = sdx_part_begin(r->outer, step->parts, part, 1);
    int64_t end = sdx_part_begin(r->outer, step->parts, part + 1, 1);
    for (int64_t item = begin; item < end; item++) {
        const float *row = from + offset_of(r->rank_kept, r->kept, r->kept_step, item);
        float largest = vec->f32_reduce_max(row, (size_t)r->run), sum = 0;
        float shift = isinf(largest) ? 0 : largest;
        for (int64_t at = 0; at < r->run; at += TILE) {
            size_t n = (size_t)(r->run - at < TILE ? r->run - at : TILE);
            vec->f32_sub(row + at, 1, &shift, 0, tile, n);
            vec->f32_exp(tile, tile, n, 0, 0);
            sum += vec->f32_reduce_sum(tile, n);
        }
        to[item] = logf(sum) + shift;
    }
    return SDX_OK;
}

/* acc, followed by what is subtracted and by room: e^(x - shift) is added. */
static void exp_sum_row(const void *x, int64_t n, void *acc)
{
    const struct sdx_vec *vec = sdx_vec();
    float *a = acc, *shift = a + TILE, *e = a + 2 * TILE;
    vec->f32_sub(x, 1, shift, 1, e, (size_t)n);
    vec->f32_exp(e, e, (size_t)n, 0, 0);
    vec->f32_add(a, 1, e, 1, a, (size_t)n);
}

/* The same for n columns of f32 from element `base` on; acc: 3 * TILE numbers. */
static void lse_columns(struct reduce *r, const void *from, int64_t base, int64_t n, float *acc,
                        float *to)
{
    float *shift = acc + TILE;
    max_f32_start(shift, n);
    r->fold_row = max_f32_row;
    visit(r, from, base, n, shift);
    for (int64_t j = 0; j < n; j++)
        if (isinf(shift[j])) shift[j] = 0;
    sum_f32_start(acc, n);
    r->fold_row = exp_sum_row;
    visit(r, from, base, n, acc);
    log_f32(r, acc, acc, n);
    sdx_vec()->f32_add(acc, 1, shift, 1, to, (size_t)n);
}

static enum sdx_status run_lse_tiles(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    struct reduce r = *(const struct reduce *)step->params;
    float *to = step->out[0]->data;
    const int64_t items = r.outer * r.tiles, end = sdx_part_begin(items, step->parts, part + 1, 1);
    for (int64_t item = sdx_part_begin(items, step->parts, part, 1); item < end; item++) {
        const int64_t outer = item / r.tiles, at = (item % r.tiles) * TILE;
        const int64_t n = r.inner - at < TILE ? r.inner - at : TILE;
        const int64_t base = offset_of(r.rank_kept, r.kept, r.kept_step, outer) + at;
        lse_columns(&r, step->in[0]->data, base, n, x->scratch, to + outer * r.inner + at);
    }
    return SDX_OK;
}

/* Short rows of f32 that lie in one piece: tiles of them are transposed. */
static enum sdx_status run_lse_short(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    struct reduce r = *(const struct reduce *)step->params;
    const float *from = step->in[0]->data;
    float *to = step->out[0]->data, *rows = (float *)x->scratch + (int64_t)3 * TILE;
    const int64_t end = sdx_part_begin(r.outer, step->parts, part + 1, 1);
    int64_t n = 0;
    r.is_row = true;
    r.rank_reduced = 1;
    r.turns = r.reduced[0] = r.run;
    r.reduced_step[0] = SHORT_TILE;
    for (int64_t at = sdx_part_begin(r.outer, step->parts, part, 1); at < end; at += n) {
        n = end - at < SHORT_TILE ? end - at : SHORT_TILE;
        sdx_vec()->b32_transpose(from + at * r.run, (size_t)r.run, rows, SHORT_TILE, (size_t)n,
                                 (size_t)r.run);
        lse_columns(&r, rows, 0, n, x->scratch, to + at);
    }
    return SDX_OK;
}

/* ---- choice ---- */

enum kind { R_SUM, R_MEAN, R_L1, R_L2, R_SUMSQ, R_LOGSUM, R_PROD, R_MAX, R_MIN, R_LSE };
static const char *const kind_names[] = {
    "ReduceSum",    "ReduceMean", "ReduceL1",  "ReduceL2",  "ReduceSumSquare",
    "ReduceLogSum", "ReduceProd", "ReduceMax", "ReduceMin", "ReduceLogSumExp"};

#define FN(name, finish) name, name##_row, name##_start, finish
struct reduce_fns {
    void (*fold)(const void *x, int64_t n, void *acc);
    void (*fold_row)(const void *x, int64_t n, void *acc);
    void (*start)(void *acc, int64_t n);
    void (*finish)(const struct reduce *r, const void *acc, void *y, int64_t n);
};
#define WRAPPED_32 FN(wrapped_32, keep_u32)
#define SUM_64     FN(sum_64, wrap_64)
/* Row per kind, up to R_MIN. */
#define FLOAT_FNS(s)                                                                               \
    {                                                                                              \
        [R_SUM] = {FN(sum_##s, keep_##s)}, [R_MEAN] = {FN(sum_##s, mean_##s)},                     \
        [R_L1] = {FN(sumabs_##s, keep_##s)}, [R_L2] = {FN(sumsq_##s, root_##s)},                   \
        [R_SUMSQ] = {FN(sumsq_##s, keep_##s)}, [R_LOGSUM] = {FN(sum_##s, log_##s)},                \
        [R_PROD] = {FN(prod_##s, keep_##s)}, [R_MAX] = {FN(max_##s, keep_##s)},                    \
        [R_MIN] = {FN(min_##s, keep_##s)},                                                         \
    }
#define INT_FNS(s, whole, sum, abs, wrap)                                                          \
    {                                                                                              \
        [R_SUM] = {whole}, [R_MEAN] = {FN(sum, mean_##s)}, [R_L1] = {FN(abs, wrap)},               \
        [R_L2] = {FN(dsumsq_##s, root_##s)}, [R_SUMSQ] = {FN(sumsq_##s, wrap)},                    \
        [R_LOGSUM] = {FN(dsum_##s, log_##s)}, [R_PROD] = {FN(prod_##s, wrap)},                     \
        [R_MAX] = {FN(max_##s, keep_##s)}, [R_MIN] = {FN(min_##s, keep_##s)},                      \
    }
static const struct reduce_fns fns[SDX_LOOP_TYPES][R_LSE] = {
    [SDX_F32] = FLOAT_FNS(f32),
    [SDX_F64] = FLOAT_FNS(f64),
    [SDX_I32] = INT_FNS(i32, WRAPPED_32, sum_i32, sumabs_i32, wrap_32),
    [SDX_I64] = INT_FNS(i64, SUM_64, sum_64, sumabs_i64, wrap_64),
    [SDX_U32] = INT_FNS(u32, WRAPPED_32, sum_u32, sum_u32, wrap_32),
    [SDX_U64] = INT_FNS(u64, SUM_64, sum_64, sum_64, wrap_64),
    [SDX_I8] = {[R_MAX] = {FN(max_i8, keep_i8)}, [R_MIN] = {FN(min_i8, keep_i8)}},
    [SDX_U8] = {[R_MAX] = {FN(max_u8, keep_u8)}, [R_MIN] = {FN(min_u8, keep_u8)}},
    [SDX_BOOL] = {[R_MAX] = {FN(max_u8, keep_u8)}, [R_MIN] = {FN(min_u8, keep_bool)}},
};

static int kind_of(struct sdx_str op)
{
    for (int i = 0; i < SDX_COUNT_OF(kind_names); i++)
        if (sdx_str_is(op, kind_names[i])) return i;
    return R_SUM;
}

/* Which axes are reduced. Axes are an attribute in old versions, an input in new ones (ReduceSum:
 * 13, the others: 18); none means all, unless noop_with_empty_axes. */
static bool has_axes_input(struct sdx_str op, int64_t opset)
{
    return opset >= 18 || (opset >= 13 && sdx_str_is(op, "ReduceSum"));
}

static enum sdx_status mark_axes(struct sdx_context *cx, const struct sdx_ir_node *node,
                                 const int64_t *axes, int64_t count, int rank, bool *reduced)
{
    bool all = count == 0 && sdx_ir_attr_int(node, "noop_with_empty_axes", 0) == 0;
    for (int d = 0; d < rank; d++)
        reduced[d] = all;
    for (int64_t i = 0; i < count; i++) {
        int64_t axis = axes[i] < 0 ? axes[i] + rank : axes[i];
        if (axis < 0 || axis >= rank)
            return SDX_FAIL(cx, SDX_BAD_MODEL, "%.*s: axis %lld of rank %d",
                            SDX_STR_ARG(node->op_type), (long long)axes[i], rank);
        reduced[axis] = true;
    }
    return SDX_OK;
}

static enum sdx_status prepared_axes(struct sdx_prepare *px, bool *reduced)
{
    int64_t count = 0, list[SDX_RANK_MAX];
    const int64_t *axes = NULL;
    if (!has_axes_input(px->node->op_type, px->opset)) {
        axes = sdx_ir_attr_ints(px->node, "axes", &count);
        if (!axes) count = 0;
    } else if (sdx_prepare_has(px, 1)) {
        const struct sdx_tensor *value = sdx_prepare_value(px, 1);
        if (!value) return SDX_FAIL(px->cx, SDX_INTERNAL, "reduction axes are not known");
        count = value->count;
        if (count > SDX_RANK_MAX)
            return SDX_FAIL(px->cx, SDX_BAD_INPUT, "%.*s: %lld axes",
                            SDX_STR_ARG(px->node->op_type), (long long)count);
        for (int64_t i = 0; i < count; i++)
            list[i] = sdx_load_i64(value->dtype, value->data, i);
        axes = list;
    }
    return mark_axes(px->cx, px->node, axes, count, px->in[0]->rank, reduced);
}

/* Merges neighbouring axes of the same kind and takes the innermost apart. */
static void collapse(struct reduce *r, const struct sdx_tensor *in, const bool *reduced)
{
    int64_t dims[SDX_RANK_MAX];
    bool kind[SDX_RANK_MAX];
    int rank = 0;
    for (int d = 0; d < in->rank; d++) {
        if (in->dims[d] == 1) continue;
        if (rank && kind[rank - 1] == reduced[d]) {
            dims[rank - 1] *= in->dims[d];
        } else {
            dims[rank] = in->dims[d];
            kind[rank++] = reduced[d];
        }
    }
    r->is_row = rank > 0 && !kind[rank - 1];
    r->inner = r->is_row ? dims[rank - 1] : 1;
    r->run = rank > 0 && !r->is_row ? dims[rank - 1] : 1;
    r->tiles = (r->inner + TILE - 1) / TILE;
    r->outer = r->turns = 1;
    int64_t stride = rank > 0 ? dims[rank - 1] : 1;
    for (int d = 0; d < rank - 1; d++) {
        int64_t step = stride;
        for (int e = d + 1; e < rank - 1; e++)
            step *= dims[e];
        if (kind[d]) {
            r->reduced[r->rank_reduced] = dims[d];
            r->reduced_step[r->rank_reduced++] = step;
            r->turns *= dims[d];
        } else {
            r->kept[r->rank_kept] = dims[d];
            r->kept_step[r->rank_kept++] = step;
            r->outer *= dims[d];
        }
    }
    r->length = r->turns * r->run;
}

/* A mean or maximum over all spatial axes reads blocked channels. */
static void global_layout(struct sdx_prepare *px, struct sdx_layouts *want)
{
    const struct sdx_tensor *in = px->in[0];
    bool reduced[SDX_RANK_MAX];
    if (in->layout != SDX_LAYOUT_BLOCKED || prepared_axes(px, reduced) != SDX_OK) return;
    for (int d = 0; d < in->rank; d++)
        if (reduced[d] != (d >= 2)) return;
    want->in[0] = SDX_LAYOUT_BLOCKED;
}

static enum sdx_status prepare_reduce(struct sdx_prepare *px)
{
    if (px->in[0]->layout == SDX_LAYOUT_BLOCKED)
        return sdx_global_blocked_prepare(px, kind_of(px->node->op_type) == R_MEAN);
    struct reduce *r = SDX_PREPARE_NEW(px, struct reduce);
    bool reduced[SDX_RANK_MAX];
    if (!r) return px->cx->error.status;
    SDX_TRY(prepared_axes(px, reduced));
    struct sdx_tensor *in = px->in[0], *out = px->out[0];
    collapse(r, in, reduced);
    r->size_x = r->size_y = (int32_t)sdx_dtype_bits(in->dtype) / 8;
    int kind = kind_of(px->node->op_type);
    double work = (double)in->count;
    const bool is_short = !r->is_row && r->turns == 1 && r->size_x == 4 &&
                          r->run <= (in->dtype == SDX_F32 ? SHORT_F32 : SHORT_RUN);
    if (kind == R_LSE) {
        const bool real = in->dtype == SDX_F32, rows = real && !r->is_row && r->turns == 1;
        const bool tiles = real && r->is_row, turned = real && is_short;
        int64_t items = tiles ? r->outer * r->tiles : r->outer * r->inner;
        int64_t parts = sdx_prepare_parts(work * 8, SDX_NEST_GRAIN, items > 0 ? items : 1);
        const size_t scratch = rows || tiles ? 3 * TILE * sizeof(float) : 0;
        return sdx_prepare_step_on(
            px, kind_names[kind],
            turned  ? run_lse_short
            : rows  ? run_lse_rows
            : tiles ? run_lse_tiles
                    : run_lse,
            r, parts, scratch + (turned ? (size_t)r->run * SHORT_TILE * 4 : 0), 1, &in, 1, &out);
    }
    const struct reduce_fns *fn = &fns[in->dtype][kind];
    if (!fn->fold)
        return SDX_FAIL(px->cx, SDX_NOT_SUPPORTED, "%s: element type %s", kind_names[kind],
                        sdx_dtype_name(in->dtype));
    r->fold = fn->fold;
    r->fold_row = fn->fold_row;
    r->start = fn->start;
    r->finish = fn->finish;
    int64_t items = r->is_row ? r->outer * r->tiles : r->outer;
    int64_t parts = sdx_prepare_parts(work, SDX_NEST_GRAIN, items > 0 ? items : 1);
    const bool runs = !r->is_row && r->turns == 1 && r->rank_kept <= 1;
    r->together = in->dtype == SDX_F32 ? TILE : 1;
    if (in->dtype == SDX_F32)
        r->halve = kind == R_SUM || kind == R_MEAN ? sdx_vec()->f32_add
                   : kind == R_MAX                 ? sdx_vec()->f32_max
                   : kind == R_MIN                 ? sdx_vec()->f32_min
                                                   : NULL;
    if (r->halve && r->is_row && r->rank_reduced == 1 && r->reduced_step[0] == r->inner &&
        r->inner <= FEW_COLUMNS && r->turns > 4 && r->turns <= TILE && r->rank_kept <= 1)
        return sdx_prepare_step_on(px, kind_names[kind], run_halves, r,
                                   sdx_prepare_parts(work, SDX_NEST_GRAIN, items > 0 ? items : 1),
                                   (size_t)((r->turns + 1) / 2 * r->inner) * sizeof(float), 1, &in,
                                   1, &out);
    const size_t scratch = is_short ? SHORT_TILE * (sizeof(double) + (size_t)(r->run * r->size_x))
                                    : TILE * sizeof(double);
    SDX_TRY(sdx_prepare_step_on(px, kind_names[kind],
                                is_short ? run_short
                                : runs   ? run_runs
                                         : run_reduce,
                                r, parts, scratch, 1, &in, 1, &out));
    if (runs && !is_short && in->count > 0) sdx_prepare_absorbs(px, absorb_runs);
    return SDX_OK;
}

/* ---- inference ---- */

static enum sdx_status infer_reduce(struct sdx_infer *ix)
{
    sdx_infer_set_dtype(ix, 0, sdx_infer_dtype(ix, 0));
    const int64_t *dims = sdx_infer_dims(ix, 0), *axes = NULL;
    int rank = sdx_infer_rank(ix, 0);
    int64_t count = 0;
    bool keep = sdx_ir_attr_int(ix->node, "keepdims", 1) != 0, reduced[SDX_RANK_MAX];
    if (!dims) return SDX_OK;
    if (!has_axes_input(ix->node->op_type, ix->opset)) {
        axes = sdx_ir_attr_ints(ix->node, "axes", &count);
        if (!axes) count = 0;
    } else if (sdx_infer_has(ix, 1) && !sdx_infer_known_ints(ix, 1, &axes, &count)) {
        int64_t *unknown = keep ? sdx_infer_new_dims(ix, 0, rank) : NULL;
        for (int d = 0; unknown && d < rank; d++)
            unknown[d] = dims[d] == 1 ? 1 : -1;
        return unknown || !keep ? SDX_OK : ix->cx->error.status;
    }
    SDX_TRY(mark_axes(ix->cx, ix->node, axes, count, rank, reduced));
    int64_t result[SDX_RANK_MAX];
    int at = 0;
    for (int d = 0; d < rank; d++)
        if (!reduced[d] || keep) result[at++] = reduced[d] ? 1 : dims[d];
    return sdx_infer_set_dims(ix, 0, at, result);
}

static void cost_reduce(const struct sdx_infer *ix, struct sdx_cost *cost)
{
    int64_t count = 0;
    if (ix->in[0]->has_shape && sdx_dims_count(ix->in[0]->dims, ix->in[0]->rank, &count))
        cost->flops = (double)count;
}

#define ROW(name)                                                                                  \
    {                                                                                              \
        name, 1, 0, infer_reduce, KERNEL(prepare_reduce), .cost = cost_reduce,                     \
                                                          .flags = SDX_OP_VIA_F32                  \
    }
static const struct sdx_op ops[] = {
    ROW("ReduceSum"),
    {"ReduceMean", 1, 0, infer_reduce, KERNEL(prepare_reduce), .cost = cost_reduce,
     .layout = global_layout, .flags = SDX_OP_VIA_F32},
    ROW("ReduceL1"),
    ROW("ReduceL2"),
    ROW("ReduceSumSquare"),
    ROW("ReduceLogSum"),
    ROW("ReduceLogSumExp"),
    ROW("ReduceProd"),
    {"ReduceMax", 1, 0, infer_reduce, KERNEL(prepare_reduce), .cost = cost_reduce,
     .layout = global_layout, .flags = SDX_OP_VIA_F32},
    ROW("ReduceMin"),
    {"ArgMax", 1, 0, sdx_arg_infer, KERNEL(sdx_arg_prepare), .cost = cost_reduce,
     .flags = SDX_OP_VIA_F32},
    {"ArgMin", 1, 0, sdx_arg_infer, KERNEL(sdx_arg_prepare), .cost = cost_reduce,
     .flags = SDX_OP_VIA_F32},
    {"CumSum", 11, 0, sdx_cumulate_infer, KERNEL(sdx_cumulate_prepare), .flags = SDX_OP_VIA_F32},
    {"CumProd", 26, 0, sdx_cumulate_infer, KERNEL(sdx_cumulate_prepare), .flags = SDX_OP_VIA_F32},
};
const struct sdx_op_family sdx_ops_reduce = FAMILY("", ops);
