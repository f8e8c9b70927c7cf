/* SPDX-License-Identifier: Apache-2.0
 * Softmax, LogSoftmax and Hardmax along one axis, x: [outer, length, inner]. Before opset 13 the
 * input is taken as a matrix: everything from the axis on is one row. */
#include <math.h>

#include "kernels/flush.h"
#include "kernels/vec.h"
#include "ops/loops.h"
#include "ops/narrow.h"
#include "ops/op.h"
#include "ops/scan.h"
#include "ops/softmax.h"

/* Columns worked on at a time where the axis is not the last; or rows, where they are SHORT: those
 * are turned into columns. Few long columns are turned into rows. */
enum { TILE = 256, SHORT = 63, FEW_COLUMNS = 32, TURNED = 16384 /* elements of those */ };

struct softmax {
    int64_t outer, length, inner, tiles;
    bool is_log, turns;
    int narrow; /* f16 or bf16: each result is rounded to that; 0: none is */
};

/* ---- one tile of n columns, `step` from one element to the next ---- */

static void columns_f32(const struct softmax *p, const float *x, float *y, int64_t step, size_t n,
                        float *scratch)
{
    const struct sdx_vec *vec = sdx_vec();
    float *largest = scratch, *sum = scratch + TILE;
    memcpy(largest, x, n * sizeof *x);
    for (int64_t k = 1; k < p->length; k++)
        vec->f32_max(largest, 1, x + k * step, 1, largest, n);
    memset(sum, 0, n * sizeof *sum);
    float *shifted = sum + TILE;
    for (int64_t k = 0; k < p->length; k++) {
        float *row = p->is_log ? shifted : y + k * step;
        vec->f32_sub(x + k * step, 1, largest, 1, row, n);
        sdx_narrow_round(p->narrow, row, n);
        vec->f32_exp(row, row, n, 0, 0);
        sdx_narrow_round(p->narrow, row, n);
        vec->f32_add(sum, 1, row, 1, sum, n);
    }
    if (p->is_log) vec->f32_log(sum, sum, n, 0, 0);
    for (int64_t k = 0; k < p->length; k++) {
        float *row = y + k * step;
        if (!p->is_log) {
            vec->f32_div(row, 1, sum, 1, row, n);
            continue;
        }
        vec->f32_sub(x + k * step, 1, largest, 1, row, n);
        vec->f32_sub(row, 1, sum, 1, row, n);
    }
}

/* Softmax or log-softmax of a tile; scratch: 3 * TILE. */
static void tile_f32(const struct softmax *p, const float *x, float *y, int64_t step, size_t n,
                     float *scratch)
{
    if (p->is_log || p->narrow)
        columns_f32(p, x, y, step, n, scratch);
    else
        sdx_vec()->f32_softmax_columns(x, y, (size_t)p->length, (size_t)step, n);
}

/* n rows, by way of columns. */
static void rows_f32(const struct softmax *p, const float *x, float *y, size_t n, float *scratch)
{
    const struct sdx_vec *vec = sdx_vec();
    const size_t length = (size_t)p->length;
    float *columns = scratch + 3 * TILE;
    vec->b32_transpose(x, length, columns, TILE, n, length);
    tile_f32(p, columns, columns, TILE, n, scratch);
    vec->b32_transpose(columns, TILE, y, length, length, n);
}

static void row_f32(const struct softmax *p, const float *x, float *y)
{
    const size_t n = (size_t)p->length;
    if (p->is_log)
        sdx_vec()->f32_log_softmax(x, y, n);
    else if (p->narrow)
        sdx_narrow_softmax(p->narrow, x, y, n);
    else
        sdx_vec()->f32_softmax(x, y, n);
}

size_t sdx_softmax_rows_scratch(int64_t length)
{
    return length <= SHORT ? (size_t)(3 + length) * TILE * sizeof(float) : 0;
}

void sdx_softmax_rows(float *x, int64_t rows, int64_t length, float *scratch)
{
    const struct softmax p = {.length = length};
    const int64_t most = length <= SHORT ? TILE : 1;
    for (int64_t i = 0; i < rows; i += most, x += most * length) {
        const size_t n = (size_t)(rows - i < most ? rows - i : most);
        if (length > SHORT)
            row_f32(&p, x, x);
        else if (n == 1) /* a row is a column with nothing beside it */
            tile_f32(&p, x, x, 1, 1, scratch);
        else
            rows_f32(&p, x, x, n, scratch);
    }
}

/* All columns of one outer position, by way of rows. */
static void turned_f32(const struct softmax *p, const float *x, float *y, float *rows)
{
    const struct sdx_vec *vec = sdx_vec();
    const size_t length = (size_t)p->length, inner = (size_t)p->inner;
    vec->b32_transpose(x, inner, rows, length, length, inner);
    for (size_t j = 0; j < inner; j++)
        row_f32(p, rows + j * length, rows + j * length);
    vec->b32_transpose(rows, length, y, inner, inner, length);
}

static void column_f64(const struct softmax *p, const double *x, double *y)
{
    double largest = -INFINITY, sum = 0;
    for (int64_t k = 0; k < p->length; k++) {
        double v = x[k * p->inner];
        largest = v > largest || v != v ? v : largest;
    }
    for (int64_t k = 0; k < p->length; k++)
        sum += exp(x[k * p->inner] - largest);
    double log_sum = log(sum);
    for (int64_t k = 0; k < p->length; k++) {
        double shifted = x[k * p->inner] - largest;
        y[k * p->inner] = p->is_log ? shifted - log_sum : exp(shifted) / sum;
    }
}

static enum sdx_status run_softmax(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct softmax *p = step->params;
    int64_t items = p->outer * p->tiles;
    int64_t begin = sdx_part_begin(items, step->parts, part, 1);
    int64_t end = sdx_part_begin(items, step->parts, part + 1, 1);
    const unsigned before = sdx_flush_begin();
    for (int64_t item = begin; item < end; item++) {
        int64_t column = (item % p->tiles) * TILE, left = p->inner - column;
        int64_t at = (item / p->tiles) * p->length * p->inner + column;
        int64_t n = left < TILE ? left : TILE;
        if (step->in[0]->dtype == SDX_F64) {
            for (int64_t j = 0; j < n; j++)
                column_f64(p, (const double *)step->in[0]->data + at + j,
                           (double *)step->out[0]->data + at + j);
            continue;
        }
        const float *from = (const float *)step->in[0]->data + at;
        float *to = (float *)step->out[0]->data + at;
        if (p->turns)
            turned_f32(p, from, to, x->scratch);
        else if (p->inner > 1)
            tile_f32(p, from, to, p->inner, (size_t)n, x->scratch);
        else
            row_f32(p, from, to);
    }
    sdx_flush_end(before);
    return SDX_OK;
}

static enum sdx_status run_short(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct softmax *p = step->params;
    const int64_t end = sdx_part_begin(p->outer, step->parts, part + 1, TILE);
    const unsigned before = sdx_flush_begin();
    for (int64_t row = sdx_part_begin(p->outer, step->parts, part, TILE); row < end; row += TILE)
        rows_f32(p, (const float *)step->in[0]->data + row * p->length,
                 (float *)step->out[0]->data + row * p->length,
                 (size_t)(end - row < TILE ? end - row : TILE), x->scratch);
    sdx_flush_end(before);
    return SDX_OK;
}

/* ---- Hardmax: 1 at the first largest element ---- */

enum { HARD_COLUMNS = 256 };

static void hardmax_f64(const struct softmax *p, const double *x, double *y)
{
    int64_t best = 0;
    for (int64_t k = 1; k < p->length; k++) {
        double v = x[k * p->inner], b = x[best * p->inner];
        if (b == b && (v > b || v != v)) best = k;
    }
    for (int64_t k = 0; k < p->length; k++)
        y[k * p->inner] = k == best;
}

/* Of n columns. */
static void hardmax_columns(const struct softmax *p, const float *x, float *y, int64_t n)
{
    int64_t at[HARD_COLUMNS];
    sdx_vec()->f32_arg_columns(x, (size_t)p->length, (ptrdiff_t)p->inner, (size_t)n, false, at);
    for (int64_t k = 0; k < p->length; k++)
        memset(y + k * p->inner, 0, (size_t)n * sizeof *y);
    for (int64_t j = 0; j < n; j++)
        y[at[j] * p->inner + j] = 1;
}

static void hardmax_rows(const struct softmax *p, const float *x, float *y, int64_t n)
{
    int64_t at[HARD_COLUMNS];
    sdx_arg_rows(x, n, p->length, false, false, at);
    memset(y, 0, (size_t)(n * p->length) * sizeof *y);
    for (int64_t i = 0; i < n; i++)
        y[i * p->length + at[i]] = 1;
}

static enum sdx_status run_hardmax(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)x;
    const struct softmax *p = step->params;
    const void *from = step->in[0]->data;
    void *to = step->out[0]->data;
    int64_t items = p->outer * p->inner, n;
    int64_t end = sdx_part_begin(items, step->parts, part + 1, 16);
    for (int64_t i = sdx_part_begin(items, step->parts, part, 16); i < end; i += n) {
        const int64_t column = i % p->inner, left = p->inner - column;
        const int64_t at = i / p->inner * p->length * p->inner + column;
        n = p->inner == 1 ? end - i : left < end - i ? left : end - i;
        if (n > HARD_COLUMNS) n = HARD_COLUMNS;
        if (step->in[0]->dtype == SDX_F64)
            hardmax_f64(p, (const double *)from + at, (double *)to + at), n = 1;
        else
            (p->inner > 1 ? hardmax_columns : hardmax_rows)(p, (const float *)from + at,
                                                            (float *)to + at, n);
    }
    return SDX_OK;
}

/* ---- prepare ---- */

static enum sdx_status set_shape(struct sdx_prepare *px, struct softmax *p)
{
    const struct sdx_tensor *in = px->in[0];
    if (in->dtype != SDX_F32 && in->dtype != SDX_F64)
        return SDX_FAIL(px->cx, SDX_NOT_SUPPORTED, "%.*s: element type %s",
                        SDX_STR_ARG(px->node->op_type), sdx_dtype_name(in->dtype));
    bool matrix = px->opset < 13;
    int64_t axis = sdx_ir_attr_int(px->node, "axis", matrix ? 1 : -1);
    int64_t at = axis < 0 ? axis + in->rank : axis;
    bool scalar = in->rank == 0 && (axis == 0 || axis == -1);
    if (!scalar && (at < 0 || at >= in->rank + (matrix ? 1 : 0)))
        return SDX_FAIL(px->cx, SDX_BAD_MODEL, "%.*s: axis %lld of rank %d",
                        SDX_STR_ARG(px->node->op_type), (long long)axis, in->rank);
    p->outer = p->length = p->inner = 1;
    for (int d = 0; d < in->rank; d++) {
        if (d < at)
            p->outer *= in->dims[d];
        else if (d == at || matrix)
            p->length *= in->dims[d];
        else
            p->inner *= in->dims[d];
    }
    if (p->length == 0) p->outer = 0;
    p->tiles = (p->inner + TILE - 1) / TILE;
    p->is_log = sdx_str_is(px->node->op_type, "LogSoftmax");
    p->narrow = p->is_log ? SDX_DTYPE_NONE : px->narrow;
    return SDX_OK;
}

static enum sdx_status prepare_softmax(struct sdx_prepare *px)
{
    struct softmax *p = SDX_PREPARE_NEW(px, struct softmax);
    if (!p) return px->cx->error.status;
    SDX_TRY(set_shape(px, p));
    const bool is_short =
        px->in[0]->dtype == SDX_F32 && p->inner == 1 && p->length <= SHORT && !p->narrow;
    const int64_t items = is_short ? (p->outer + TILE - 1) / TILE : p->outer * p->tiles;
    int64_t parts =
        sdx_prepare_parts((double)px->in[0]->count * 8, SDX_NEST_GRAIN, items > 0 ? items : 1);
    p->turns = px->in[0]->dtype == SDX_F32 && p->inner > 1 && p->inner <= FEW_COLUMNS &&
               p->length > FEW_COLUMNS && p->inner * p->length <= TURNED;
    const int64_t scratch =
        p->turns ? p->inner * p->length : (3 + (is_short ? p->length : 0)) * TILE;
    return sdx_prepare_step(px, p->is_log ? "LogSoftmax" : "Softmax",
                            is_short ? run_short : run_softmax, p, parts,
                            (size_t)scratch * sizeof(float));
}

static enum sdx_status prepare_hardmax(struct sdx_prepare *px)
{
    struct softmax *p = SDX_PREPARE_NEW(px, struct softmax);
    if (!p) return px->cx->error.status;
    SDX_TRY(set_shape(px, p));
    int64_t most = (p->outer * p->inner + 15) / 16;
    int64_t parts =
        sdx_prepare_parts((double)px->in[0]->count * 2, SDX_NEST_GRAIN, most > 0 ? most : 1);
    return sdx_prepare_step(px, "Hardmax", run_hardmax, p, parts, 0);
}

/* As its input. Before version 11 the axis may be the rank: the whole input is one row. */
static enum sdx_status infer_softmax(struct sdx_infer *ix)
{
    int rank = sdx_infer_rank(ix, 0), axis = 0;
    int64_t given = sdx_ir_attr_int(ix->node, "axis", ix->opset < 13 ? 1 : -1);
    if (rank > 0 && !(ix->opset < 11 && given == rank))
        SDX_TRY(sdx_infer_axis(ix, given, rank, &axis));
    return sdx_infer_same(ix);
}

static void cost_softmax(const struct sdx_infer *ix, struct sdx_cost *cost)
{
    int64_t count = 0;
    if (ix->in[0]->has_shape && sdx_dims_count(ix->in[0]->dims, ix->in[0]->rank, &count))
        cost->flops = 8 * (double)count;
}

static const struct sdx_op ops[] = {
    {"Softmax", 1, 0, infer_softmax, KERNEL(prepare_softmax), .cost = cost_softmax,
     .flags = SDX_OP_VIA_F32 | SDX_OP_INPLACE(0)},
    {"LogSoftmax", 1, 0, infer_softmax, KERNEL(prepare_softmax), .cost = cost_softmax,
     .flags = SDX_OP_VIA_F32 | SDX_OP_INPLACE(0)},
    {"Hardmax", 1, 0, infer_softmax, KERNEL(prepare_hardmax), .flags = SDX_OP_VIA_F32},
};
const struct sdx_op_family sdx_ops_softmax = FAMILY("", ops);
