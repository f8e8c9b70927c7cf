/* SPDX-License-Identifier: Apache-2.0
 * ScatterGrid, ours, as pass_scatter.c makes it: x with y at the places of a grid,
 * out[i0[a], i1[b], ...] = y[a, b, ...]. Inputs x, y, i0, i1 and so on: an i64 tensor for each of
 * the first axes of x, whose elements are places along it, negative ones from its end; a single one
 * stands for all of y's. Where places are met twice the last wins. */
#include "ops/move.h"
#include "ops/op.h"
#include "ops/scatter_reduce.h"

struct grid {
    int axes;
    int64_t rows, across; /* places along all axes but the last one; along that */
    size_t bytes;         /* of a place */
    int64_t steps[SDX_RANK_MAX];
};

static int64_t place_of(const struct sdx_step *step, int axis, int64_t i)
{
    const struct sdx_tensor *places = step->in[2 + axis];
    const int64_t at = ((const int64_t *)places->data)[places->count > 1 ? i : 0];
    return at < 0 ? at + step->out[0]->dims[axis] : at;
}
static void write_places(char *to, const char *from, size_t bytes, const struct sdx_tensor *places,
                         int64_t length, int64_t count)
{
    const int64_t *place = places->data, step = places->count > 1;
    for (int64_t i = 0; i < count; i++, from += bytes, place += step)
        sdx_move_one(to + (size_t)(*place + (*place < 0 ? length : 0)) * bytes, from, bytes);
}

/* Are all places within x? *has_order: those of all axes but the last ascend, so that no two rows
 * are one; *is_run: those of the last follow each other. */
static enum sdx_status check_places(struct sdx_exec *x, const struct sdx_step *step,
                                    const struct grid *g, bool *has_order, bool *is_run)
{
    *has_order = *is_run = true;
    for (int axis = 0; axis < g->axes; axis++) {
        const int64_t length = step->out[0]->dims[axis], count = step->in[1]->dims[axis];
        for (int64_t i = 0, before = -1; i < count; i++) {
            const int64_t at = place_of(step, axis, i);
            if (at < 0 || at >= length)
                return SDX_FAIL(x->cx, SDX_RUN_FAILED,
                                "ScatterND: index %lld is outside axis %d of length %lld",
                                (long long)(at < 0 ? at - length : at), axis, (long long)length);
            if (axis < g->axes - 1)
                *has_order = *has_order && at > before;
            else
                *is_run = *is_run && (i == 0 || at == before + 1);
            before = at;
        }
    }
    return SDX_OK;
}

static enum sdx_status run_scatter_grid(struct sdx_exec *x, const struct sdx_step *step,
                                        int64_t part)
{
    const struct grid *g = step->params;
    const int last = g->axes - 1;
    const int64_t length = step->out[0]->dims[last];
    bool has_order, is_run;
    SDX_TRY(check_places(x, step, g, &has_order, &is_run));
    if (!has_order && part > 0) return SDX_OK;
    const int64_t parts = has_order ? step->parts : 1;
    const int64_t end = sdx_part_begin(g->rows, parts, part + 1, 1);
    for (int64_t row = sdx_part_begin(g->rows, parts, part, 1); row < end; row++) {
        const char *from = (const char *)step->in[1]->data + (size_t)(row * g->across) * g->bytes;
        char *to = step->out[0]->data;
        int64_t rest = row;
        for (int axis = last - 1; axis >= 0; axis--) {
            const int64_t count = step->in[1]->dims[axis];
            to += (size_t)(place_of(step, axis, rest % count) * g->steps[axis]) * g->bytes;
            rest /= count;
        }
        if (is_run && g->across > 0)
            sdx_move_bytes(to + (size_t)place_of(step, last, 0) * g->bytes, from,
                           (size_t)g->across * g->bytes);
        else
            write_places(to, from, g->bytes, step->in[2 + last], length, g->across);
    }
    return SDX_OK;
}

static enum sdx_status prepare_scatter_grid(struct sdx_prepare *px)
{
    const struct sdx_tensor *x = px->in[0], *y = px->in[1];
    struct grid *g = SDX_PREPARE_NEW(px, struct grid);
    if (!g) return SDX_OUT_OF_MEMORY;
    g->axes = px->count_in - 2;
    g->rows = 1;
    bool fits = g->axes <= x->rank && y->rank == x->rank;
    for (int d = 0; fits && d < x->rank; d++) {
        const int64_t count = d < g->axes ? px->in[2 + d]->count : x->dims[d];
        fits = y->dims[d] == count || (d < g->axes && count == 1);
        if (d < g->axes - 1) g->rows *= y->dims[d];
    }
    if (!fits) {
        char a[128], b[128];
        return SDX_FAIL(px->cx, SDX_BAD_MODEL,
                        "ScatterND: updates of shape %s, places along %d axes of data of shape %s",
                        sdx_dims_describe(y->dims, y->rank, a, sizeof(a)), g->axes,
                        sdx_dims_describe(x->dims, x->rank, b, sizeof(b)));
    }
    g->across = y->dims[g->axes - 1];
    g->bytes = sdx_move_size(x->dtype) * (size_t)sdx_move_product(x->dims, g->axes, x->rank);
    sdx_move_strides(g->axes, x->dims, g->steps);
    return sdx_scatter_add(px, "scatter_grid", run_scatter_grid, g,
                           sdx_prepare_parts((double)y->count * (double)sdx_move_size(x->dtype),
                                             128 * 1024, g->rows > 0 ? g->rows : 1));
}

static const struct sdx_op ops[] = {
    {"ScatterGrid", 1, 0, sdx_infer_same, KERNEL(prepare_scatter_grid), .cost = sdx_cost_none,
     .flags = SDX_OP_INPLACE(0)},
};
const struct sdx_op_family sdx_ops_scatter_grid = FAMILY("sardonyx", ops);
