/* SPDX-License-Identifier: Apache-2.0
 * The operator that the pass `rotate` makes of a rotary embedding (Su et al., "RoFormer", 2021)
 * that is spelled out: y = x * cos + [-x2, x1] * sin, where x1 and x2 are the halves of x along the
 * last axis. Inputs: x, cos, sin; the latter two broadcast to x and have its last axis. order: axis
 * i of cos and sin is axis order[i] of x; without it the same. Rounds as the operators one by one.
 */
#include "kernels/vec.h"
#include "ops/nest.h"
#include "ops/op.h"

struct params {
    struct sdx_nest nest;
    int64_t half;
};

static enum sdx_status infer_rotate(struct sdx_infer *ix)
{
    sdx_infer_set_dtype(ix, 0, sdx_infer_dtype(ix, 0));
    if (sdx_infer_rank(ix, 0) < 0) return SDX_OK;
    return sdx_infer_set_dims(ix, 0, sdx_infer_rank(ix, 0), sdx_infer_dims(ix, 0));
}

static bool run_rows(const void *arg, const void *const *in, const int64_t *step, void *out,
                     int64_t n)
{
    const int64_t half = *(const int64_t *)arg;
    (void)step;
    sdx_vec()->f32_rotate(in[0], in[1], in[2], out, (size_t)half, (size_t)(n / (2 * half)));
    return true;
}

static enum sdx_status run_rotate(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct params *p = step->params;
    const int64_t size = 2 * p->half, rows = p->nest.count / size;
    const void *in[] = {step->in[0]->data, step->in[1]->data, step->in[2]->data};
    (void)x;
    (void)sdx_nest_run(
        &p->nest, in, step->out[0]->data, sdx_part_begin(rows, step->parts, part, 1) * size,
        sdx_part_begin(rows, step->parts, part + 1, 1) * size, NULL, run_rows, &p->half);
    return SDX_OK;
}

/* The lengths of cos or sin along the axes of x, whose elements then lie in order. */
static bool turned(const struct sdx_tensor *t, const struct sdx_tensor *x, const int64_t *order,
                   int64_t dims[SDX_RANK_MAX])
{
    int64_t last = -1;
    for (int d = 0; d < x->rank; d++)
        dims[d] = 1;
    for (int d = 0; d < t->rank; d++) {
        const int at = d + x->rank - t->rank;
        const int64_t to = at < 0 ? -1 : order ? order[at] : at;
        if (to < 0 || to >= x->rank || (t->dims[d] != 1 && t->dims[d] != x->dims[to])) return false;
        if (t->dims[d] != 1 && to <= last) return false;
        if (t->dims[d] != 1) last = to;
        dims[to] = t->dims[d];
    }
    return dims[x->rank - 1] == x->dims[x->rank - 1];
}

static enum sdx_status prepare_rotate(struct sdx_prepare *px)
{
    const struct sdx_tensor *x = px->in[0];
    struct params *p = SDX_PREPARE_NEW(px, struct params);
    int64_t dims[2][SDX_RANK_MAX], count = 0;
    const int64_t *order = sdx_ir_attr_ints(px->node, "order", &count);
    if (!p) return SDX_FAIL_MEMORY(px->cx);
    for (int i = 0; i < 3; i++)
        if (px->in[i]->dtype != SDX_F32 || x->rank < 1 || (order && count != x->rank) ||
            x->dims[x->rank - 1] % 2 || (i > 0 && !turned(px->in[i], x, order, dims[i - 1])))
            return SDX_FAIL(px->cx, SDX_NOT_SUPPORTED, "Rotate: input %d does not fit x", i);
    if (x->count == 0) return SDX_OK;
    const struct sdx_nest_shape shapes[] = {
        {x->dims, x->rank}, {dims[0], x->rank}, {dims[1], x->rank}};
    p->half = x->dims[x->rank - 1] / 2;
    SDX_TRY(sdx_nest_make(px, &p->nest, px->out[0], 3, px->in, shapes));
    p->nest.gathers = false; /* the runs are whole rows */
    return sdx_prepare_step(
        px, "rotate", run_rotate, p,
        sdx_prepare_parts((double)x->count * 2, SDX_NEST_GRAIN, x->count / (2 * p->half)), 0);
}

static const struct sdx_op ops[] = {
    {"Rotate", 1, 0, infer_rotate, KERNEL(prepare_rotate)},
};

const struct sdx_op_family sdx_ops_rotate = FAMILY("sardonyx", ops);
