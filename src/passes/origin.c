/* SPDX-License-Identifier: Apache-2.0
 * Addresses in the output of a node are taken apart into its axes, each of which is steps in the
 * input. */
#include "passes/origin.h"

#include "passes/match.h"
#include "tensor/convert.h"

/* Axis d of the output is to[d] elements of the input apart, from element `base` on. */
struct moved {
    int rank;
    const int64_t *dims;
    int64_t to[SDX_RANK_MAX], base;
};

/* A value's type, with lengths. */
struct known {
    int dtype, rank;
    int64_t dims[SDX_RANK_MAX];
};

bool sdx_origin_lengths(const struct sdx_ir *ir, int32_t value, int sample,
                        int64_t dims[SDX_RANK_MAX])
{
    const struct sdx_type *t = value < 0 ? NULL : &ir->graphs[0].values[value].type;
    int64_t elements = 1;
    if (!t || t->kind != SDX_KIND_TENSOR || !t->has_shape || t->rank > SDX_RANK_MAX) return false;
    for (int d = 0; d < t->rank; d++) {
        dims[d] = sdx_ir_symbol_sample(ir, t->dims[d], sample);
        if (dims[d] < 1 || !sdx_mul_i64(elements, dims[d], &elements)) return false;
    }
    return true;
}

static bool find_known(const struct sdx_ir *ir, int32_t value, int sample, struct known *k)
{
    if (!sdx_origin_lengths(ir, value, sample, k->dims)) return false;
    k->dtype = ir->graphs[0].values[value].type.dtype;
    k->rank = ir->graphs[0].values[value].type.rank;
    return true;
}

static int64_t pitch(const struct known *t, int axis)
{
    int64_t elements = 1;
    for (int d = axis + 1; d < t->rank; d++)
        elements *= t->dims[d];
    return elements;
}

/* From addresses in the output to those in the input; false where an axis of the operand runs over
 * several of the output's. */
static bool rewrite(struct sdx_origin *p, const struct moved *m)
{
    int64_t reach[SDX_RANK_MAX] = {0}, steps[SDX_ORIGIN_AXES] = {0};
    int64_t at = p->first, first = m->base, step = 1;
    for (int a = m->rank - 1; a >= 0; step *= m->dims[a--]) {
        reach[a] = at % m->dims[a];
        first += reach[a] * m->to[a];
        at /= m->dims[a];
        for (int d = 0; d < SDX_ORIGIN_AXES; d++) {
            if (p->dims[d] == 1 || p->steps[d] % step || p->steps[d] / step >= m->dims[a]) continue;
            if (p->steps[d] < step) continue;
            steps[d] = p->steps[d] / step * m->to[a];
            reach[a] += (p->dims[d] - 1) * (p->steps[d] / step);
        }
        if (reach[a] >= m->dims[a]) return false;
    }
    for (int d = 0; d < SDX_ORIGIN_AXES; d++)
        if (p->dims[d] > 1 && p->steps[d] != 0 && steps[d] == 0) return false;
    memcpy(p->steps, steps, sizeof steps);
    p->first = first;
    return true;
}

static int axis_of(const struct sdx_ir_node *node, int64_t normally, int rank)
{
    const int64_t axis = sdx_ir_attr_int(node, "axis", normally);
    return (int)(axis < 0 ? axis + rank : axis);
}

static bool through_transpose(const struct sdx_ir_node *node, const struct known *in,
                              struct moved *m)
{
    int64_t count = 0;
    const int64_t *perm = sdx_ir_attr_ints(node, "perm", &count);
    if (!perm || count != m->rank || in->rank != m->rank) return false;
    for (int d = 0; d < m->rank; d++)
        m->to[d] = pitch(in, (int)perm[d]);
    return true;
}

static bool through_gather(const struct sdx_ir_graph *g, const struct sdx_ir_node *node,
                           const struct known *in, struct moved *m)
{
    const struct sdx_tensor *index = sdx_match_constant(g, node->inputs[1]);
    const int axis = axis_of(node, 0, in->rank);
    if (!index || index->count != 1 || index->rank > 1 || axis < 0 || axis >= in->rank)
        return false;
    const int64_t i = sdx_load_i64(index->dtype, index->data, 0);
    for (int d = 0; d < m->rank; d++)
        m->to[d] = pitch(in, index->rank == 0 && d >= axis ? d + 1 : d);
    m->base = (i < 0 ? i + in->dims[axis] : i) * pitch(in, axis);
    return m->base >= 0 && i < in->dims[axis];
}

static bool through_split(const struct sdx_ir *ir, const struct sdx_ir_node *node,
                          const struct known *in, const struct sdx_origin *p, struct moved *m)
{
    const int axis = axis_of(node, 0, in->rank);
    if (axis < 0 || axis >= in->rank || m->rank != in->rank) return false;
    for (int d = 0; d < m->rank; d++)
        m->to[d] = pitch(in, d);
    for (int k = 0; k < node->count_outputs && node->outputs[k] != p->value; k++) {
        struct known before;
        if (!find_known(ir, node->outputs[k], p->sample, &before)) return false;
        m->base += before.dims[axis] * pitch(in, axis);
    }
    return true;
}

/* Along one axis, element by element. */
static bool through_slice(const struct sdx_ir_graph *g, const struct sdx_ir_node *node,
                          const struct known *in, struct moved *m)
{
    const struct sdx_tensor *given[5] = {NULL};
    if (node->count_inputs < 4 || node->count_inputs > 5 || m->rank != in->rank) return false;
    for (int i = 1; i < node->count_inputs; i++) {
        if (i == 4 && node->inputs[i] < 0) continue;
        given[i] = sdx_match_constant(g, node->inputs[i]);
        if (!given[i] || given[i]->count != 1) return false;
    }
    if (given[4] && sdx_load_i64(given[4]->dtype, given[4]->data, 0) != 1) return false;
    int64_t axis = sdx_load_i64(given[3]->dtype, given[3]->data, 0);
    int64_t start = sdx_load_i64(given[1]->dtype, given[1]->data, 0);
    if (axis < 0) axis += in->rank;
    if (axis < 0 || axis >= in->rank) return false;
    if (start < 0) start += in->dims[axis];
    if (start < 0 || start + m->dims[axis] > in->dims[axis]) return false;
    for (int d = 0; d < m->rank; d++)
        m->to[d] = pitch(in, d);
    m->base = start * pitch(in, (int)axis);
    return true;
}

/* One node up. *copies: it is one that would move memory. */
static bool climb_once(const struct sdx_ir *ir, struct sdx_origin *p, bool *copies)
{
    const struct sdx_ir_graph *g = &ir->graphs[0];
    const int32_t producer = p->value < 0 ? -1 : g->values[p->value].producer;
    const struct sdx_ir_node *node = producer < 0 ? NULL : &g->nodes[producer];
    struct known in, out;
    if (!node || node->is_dead || !node->op || node->domain.len || node->count_inputs < 1)
        return false;
    *copies = !(node->op->flags & SDX_OP_VIEW);
    if (!*copies && node->outputs[0] != p->value) return false;
    if (!find_known(ir, node->inputs[0], p->sample, &in) ||
        !find_known(ir, p->value, p->sample, &out) || in.dtype != out.dtype ||
        (!*copies && pitch(&in, -1) != pitch(&out, -1)))
        return false;
    struct moved m = {.rank = out.rank, .dims = out.dims};
    const bool fits = !*copies                                 ? true
                      : sdx_str_is(node->op_type, "Transpose") ? through_transpose(node, &in, &m)
                      : sdx_str_is(node->op_type, "Gather")    ? through_gather(g, node, &in, &m)
                      : sdx_str_is(node->op_type, "Split")     ? through_split(ir, node, &in, p, &m)
                      : sdx_str_is(node->op_type, "Slice")     ? through_slice(g, node, &in, &m)
                                                               : false;
    if (!fits || (*copies && !rewrite(p, &m))) return false;
    p->value = node->inputs[0];
    return true;
}

enum { STEPS = 16 };

/* The values an operand comes by, the first its own; as many as it may go up from. */
struct path {
    int32_t values[STEPS + 1];
    int length;
};

static void find_path(const struct sdx_ir *ir, struct sdx_origin at, struct path *path)
{
    bool copies = false;
    path->length = 0;
    do
        path->values[path->length++] = at.value;
    while (path->length <= STEPS && climb_once(ir, &at, &copies));
}

/* Readers of a value that are the operands' node or on one of the paths, nodes counted once. */
static int32_t readers_on(const struct sdx_ir_graph *g, const struct path *paths, int count,
                          int32_t value)
{
    int32_t below[SDX_ORIGIN_MOST], found = 0, direct = 0;
    for (int i = 0; i < count; i++) {
        direct += paths[i].values[0] == value;
        for (int at = 1; at < paths[i].length; at++) {
            const int32_t node = g->values[paths[i].values[at - 1]].producer;
            bool is_new = paths[i].values[at] == value;
            for (int j = 0; j < found; j++)
                is_new = is_new && below[j] != node;
            if (is_new) below[found++] = node;
        }
    }
    return direct + found;
}

void sdx_origin_climb(const struct sdx_ir *ir, const int32_t *uses, struct sdx_origin *operands,
                      int count, bool *went)
{
    const struct sdx_ir_graph *g = &ir->graphs[0];
    struct path paths[SDX_ORIGIN_MOST];
    bool changed = true;
    for (int i = 0; i < count; i++)
        find_path(ir, operands[i], &paths[i]);
    while (changed) {
        changed = false;
        for (int i = 0; i < count; i++)
            for (int at = 0; at + 1 < paths[i].length; at++) {
                const int32_t value = paths[i].values[at];
                if (uses[value] == readers_on(g, paths, count, value)) continue;
                paths[i].length = at + 1;
                changed = true;
            }
    }
    for (int i = 0; i < count; i++) {
        struct sdx_origin at = operands[i];
        bool copies = false;
        went[i] = false;
        for (int step = 1; step < paths[i].length && climb_once(ir, &at, &copies); step++) {
            if (!copies || (at.dims[SDX_ORIGIN_AXES - 1] > 1 && at.steps[SDX_ORIGIN_AXES - 1] != 1))
                continue;
            operands[i] = at;
            went[i] = true;
        }
    }
}
