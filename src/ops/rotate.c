/* SPDX-License-Identifier: Apache-2.0
 * The operator that the pass `rotate` makes of a rotary embedding (Su et al., "RoFormer", 2021)
 * that is spelled out: y = x * cos + [-x2, x1] * sin, where x1 and x2 are the halves of x along the
 * last axis; interleaved: what stands at even and at odd places there. Inputs: x, cos, sin; the
 * latter two broadcast to x and have its last axis. order: axis i of cos and sin is axis order[i]
 * of x; without it the same. Rounds as the operators one by one. And the rows of RotaryEmbedding.
 */
#include "ops/rotate.h"

#include "kernels/vec.h"
#include "ops/nest.h"
#include "ops/op.h"

size_t sdx_rotate_scratch(const struct sdx_rotate *r)
{
    return r->is_interleaved ? 2 * (size_t)r->turned * sizeof(float) : 0;
}

void sdx_rotate_angles(struct sdx_rotate *r, const float *cosine, const float *sine, float *scratch)
{
    r->cosine = cosine;
    r->sine = sine;
    if (!r->is_interleaved) return;
    float *cosines = scratch, *sines = scratch + r->turned; /* of each column */
    for (int64_t i = 0; i < r->turned; i++) {
        cosines[i] = cosine[i / 2];
        sines[i] = sine[i / 2];
    }
    r->cosine = cosines;
    r->sine = sines;
}

void sdx_rotate_row(const struct sdx_rotate *r, const float *from, float *to)
{
    const size_t turned = (size_t)r->turned;
    if (r->is_interleaved)
        sdx_vec()->f32_rotate_pairs(from, r->cosine, r->sine, to, turned);
    else
        sdx_vec()->f32_rotate(from, r->cosine, r->sine, 0, to, turned / 2, 1);
    if (to != from) memcpy(to + turned, from + turned, ((size_t)r->size - turned) * sizeof *to);
}

struct params {
    struct sdx_nest nest;
    int64_t half;
    bool is_interleaved;
};

/* The axis of a result of this rank that axis d of an operand is; -1: none. */
static int64_t axis_of(const int64_t *order, int rank, int rank_operand, int d)
{
    const int at = d + rank - rank_operand;
    const int64_t to = at < 0 ? -1 : order ? order[at] : at;
    return to < rank ? to : -1;
}

static const int64_t *order_of(const struct sdx_ir_node *node, int rank)
{
    int64_t count = 0;
    const int64_t *order = sdx_ir_attr_ints(node, "order", &count);
    return count == rank ? order : NULL;
}

static enum sdx_status infer_rotate(struct sdx_infer *ix)
{
    const int rank = sdx_infer_rank(ix, 0);
    const int64_t *order = order_of(ix->node, rank);
    sdx_infer_set_dtype(ix, 0, sdx_infer_dtype(ix, 0));
    if (rank < 0) return SDX_OK;
    int64_t *dims = sdx_infer_new_dims(ix, 0, rank);
    if (!dims) return SDX_FAIL_MEMORY(ix->cx);
    memcpy(dims, sdx_infer_dims(ix, 0), (size_t)rank * sizeof *dims);
    for (int i = 1; i < 3; i++)
        for (int d = 0; d < sdx_infer_rank(ix, i); d++) {
            const int64_t to = axis_of(order, rank, sdx_infer_rank(ix, i), d);
            if (to < 0) continue; /* prepare says so */
            SDX_TRY(sdx_infer_broadcast_dim(ix, dims[to], sdx_infer_dims(ix, i)[d], &dims[to]));
        }
    return SDX_OK;
}

static bool run_rows(const void *arg, const void *const *in, const int64_t *step, void *out,
                     int64_t n)
{
    const struct params *p = arg;
    const size_t half = (size_t)p->half;
    (void)step;
    if (p->is_interleaved)
        sdx_vec()->f32_rotate_pairs(in[0], in[1], in[2], out, (size_t)n);
    else
        sdx_vec()->f32_rotate(in[0], in[1], in[2], half, out, half, (size_t)n / (2 * half));
    return true;
}

static enum sdx_status run_rotate(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct params *p = step->params;
    const int64_t size = 2 * p->half, rows = p->nest.count / size;
    const void *in[] = {step->in[0]->data, step->in[1]->data, step->in[2]->data};
    (void)x;
    (void)sdx_nest_run(&p->nest, in, step->out[0]->data,
                       sdx_part_begin(rows, step->parts, part, 1) * size,
                       sdx_part_begin(rows, step->parts, part + 1, 1) * size, NULL, run_rows, p);
    return SDX_OK;
}

/* The lengths of an operand along the axes of the result, if its elements then lie in order. */
static bool turned(const struct sdx_tensor *t, const struct sdx_tensor *y, const int64_t *order,
                   int64_t dims[SDX_RANK_MAX])
{
    int64_t last = -1;
    for (int d = 0; d < y->rank; d++)
        dims[d] = 1;
    for (int d = 0; d < t->rank; d++) {
        const int64_t to = axis_of(order, y->rank, t->rank, d);
        if (to < 0) return false;
        dims[to] = t->dims[d];
        if (t->dims[d] == 1) continue;
        if (to <= last) return false;
        last = to;
    }
    return y->rank > 0 && dims[y->rank - 1] == y->dims[y->rank - 1];
}

static enum sdx_status prepare_rotate(struct sdx_prepare *px)
{
    const struct sdx_tensor *y = px->out[0];
    struct params *p = SDX_PREPARE_NEW(px, struct params);
    struct sdx_nest_shape shapes[3];
    int64_t dims[3][SDX_RANK_MAX];
    if (!p) return SDX_FAIL_MEMORY(px->cx);
    for (int i = 0; i < 3; i++) {
        shapes[i] = (struct sdx_nest_shape){dims[i], y->rank};
        if (px->in[i]->dtype != SDX_F32 ||
            !turned(px->in[i], y, i > 0 ? order_of(px->node, y->rank) : NULL, dims[i]) ||
            y->dims[y->rank - 1] % 2)
            return SDX_FAIL(px->cx, SDX_NOT_SUPPORTED, "Rotate: input %d does not fit", i);
    }
    if (y->count == 0) return SDX_OK;
    p->half = y->dims[y->rank - 1] / 2;
    p->is_interleaved = sdx_ir_attr_int(px->node, "interleaved", 0) != 0;
    SDX_TRY(sdx_nest_make(px, &p->nest, y, 3, px->in, shapes));
    p->nest.gathers = false; /* the runs are whole rows */
    return sdx_prepare_step(
        px, "rotate", run_rotate, p,
        sdx_prepare_parts((double)y->count * 2, SDX_NEST_GRAIN, y->count / (2 * p->half)), 0);
}

static const struct sdx_op ops[] = {
    {"Rotate", 1, 0, infer_rotate, KERNEL(prepare_rotate)},
};

const struct sdx_op_family sdx_ops_rotate = FAMILY("sardonyx", ops);
