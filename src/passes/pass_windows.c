/* SPDX-License-Identifier: Apache-2.0
 * Attention over windows, softmax(q k^T) v of five axes and more (Hiera, Twins): what comes before
 * the last three becomes one axis, so that the pass `attention` sees batch and heads. Constant
 * factors and the Transpose of k move to that form; reshapes of the operands and of the result are
 * views. Keeps bits. */
#include "passes/match.h"
#include "passes/passes.h"

enum { RANK = 4 };

struct search {
    struct sdx_context *cx;
    struct sdx_ir *ir;
    struct sdx_ir_graph *g;
    int32_t *uses;
    int rank; /* of the scores */
};

static const struct sdx_type *type_of(const struct search *s, int32_t value)
{
    const struct sdx_type *t = value < 0 ? NULL : &s->g->values[value].type;
    return t && t->kind == SDX_KIND_TENSOR && t->has_shape && t->dtype == SDX_F32 ? t : NULL;
}

/* The lengths of `value` with its leading axes as one. */
static void joined(const struct search *s, int32_t value, int64_t dims[RANK])
{
    const struct sdx_type *t = type_of(s, value);
    const int lead = s->rank - 3;
    dims[0] = 1;
    for (int d = 0; d < lead; d++)
        dims[0] = dims[0] < 0 || t->dims[d] < 0 ? -1 : dims[0] * t->dims[d];
    memcpy(dims + 1, t->dims + lead, 3 * sizeof *dims);
}

/* Are all lengths known but one of the leading ones, and those before the last two as in `like`? */
static bool fits(const struct search *s, int32_t value, int32_t like)
{
    const struct sdx_type *a = type_of(s, value), *b = type_of(s, like);
    int unknown = 0;
    if (!a || !b || a->rank != s->rank || b->rank != s->rank) return false;
    for (int d = 0; d < s->rank; d++) {
        if (d < s->rank - 2 && (a->dims[d] == -1 || a->dims[d] != b->dims[d])) return false;
        if (a->dims[d] == 0 || (a->dims[d] < 0 && (d >= s->rank - 3 || unknown++ > 0)))
            return false;
    }
    return true;
}

static enum sdx_status set_joined(const struct search *s, int32_t value, const int64_t dims[RANK])
{
    struct sdx_type *t = &s->g->values[value].type;
    t->dims = sdx_arena_copy(s->ir->arena, dims, RANK * sizeof *dims);
    t->rank = RANK;
    return t->dims ? SDX_OK : SDX_FAIL_MEMORY(s->cx);
}

/* A Reshape of `from` to those lengths, which has the type of `from` still; -1: no memory. */
static int32_t reshape(const struct search *s, int32_t from, const int64_t *dims, int rank)
{
    int64_t lengths[SDX_RANK_MAX];
    for (int d = 0; d < rank; d++)
        lengths[d] = dims[d] < 0 ? -1 : dims[d];
    const int32_t shape = sdx_match_add_ints(s->ir, s->g, "windows", lengths, rank);
    struct sdx_ir_node *node =
        shape < 0 ? NULL
                  : sdx_ir_node_create(s->ir, s->g, SDX_STR(""), SDX_STR("Reshape"), 2, 1, 0);
    if (!node) return -1;
    node->opset = 13;
    node->op = sdx_op_find(node->domain, node->op_type, node->opset);
    node->inputs[0] = from;
    node->inputs[1] = shape;
    s->g->values[node->outputs[0]].type = s->g->values[from].type;
    return node->outputs[0];
}

/* The input of the node that makes `value`, which has one reader, if the node works on joined axes
 * as well: what is beside a constant factor, or what Transpose turns in the last two axes. -1:
 * there is none. */
static int through(const struct search *s, int32_t value)
{
    const int32_t n = s->g->values[value].producer;
    if (n < 0 || s->uses[value] != 1) return -1;
    const struct sdx_ir_node *node = &s->g->nodes[n];
    int32_t rest = -1;
    double factor;
    if (node->is_dead || node->domain.len) return -1;
    if (sdx_match_with_scalar(s->g, value, "Mul", &rest, &factor) ||
        sdx_match_with_scalar(s->g, value, "Div", &rest, &factor)) {
        const int i = node->inputs[0] == rest ? 0 : 1;
        const struct sdx_tensor *scalar = sdx_match_constant(s->g, node->inputs[1 - i]);
        return scalar && scalar->rank <= RANK && fits(s, rest, value) ? i : -1;
    }
    int64_t count = 0;
    const int64_t *perm =
        sdx_str_is(node->op_type, "Transpose") ? sdx_ir_attr_ints(node, "perm", &count) : NULL;
    if (!perm || count != s->rank || !fits(s, node->inputs[0], value)) return -1;
    for (int d = 0; d < s->rank - 2; d++)
        if (perm[d] != d) return -1;
    return perm[s->rank - 1] == s->rank - 2 ? 0 : -1;
}

/* *value becomes one with joined axes: the same where its node can make that. */
static enum sdx_status join(const struct search *s, int32_t *value);

static enum sdx_status join_input(const struct search *s, int32_t n, int i)
{
    int32_t input = s->g->nodes[n].inputs[i];
    SDX_TRY(join(s, &input));
    s->g->nodes[n].inputs[i] = input;
    return SDX_OK;
}

static enum sdx_status join(const struct search *s, int32_t *value)
{
    static const int64_t turn[RANK] = {0, 1, 3, 2};
    int64_t dims[RANK];
    joined(s, *value, dims);
    const int i = through(s, *value);
    if (i < 0) {
        *value = reshape(s, *value, dims, RANK);
        return *value < 0 ? SDX_FAIL_MEMORY(s->cx) : set_joined(s, *value, dims);
    }
    const int32_t n = s->g->values[*value].producer;
    SDX_TRY(join_input(s, n, i));
    struct sdx_ir_node *node = &s->g->nodes[n];
    if (sdx_str_is(node->op_type, "Transpose")) {
        node->attrs = sdx_arena_copy(s->ir->arena, node->attrs, sizeof *node->attrs);
        if (!node->attrs) return SDX_FAIL_MEMORY(s->cx);
        node->attrs[0].ints = turn;
        node->attrs[0].count = RANK;
    }
    return set_joined(s, *value, dims);
}

/* The scores before constant factors that only this chain reads. */
static int32_t scores_of(const struct search *s, int32_t value)
{
    while (!sdx_match_plain_product(s->g, value)) {
        const int i = sdx_match_maker(s->g, value, "Transpose") ? -1 : through(s, value);
        if (i < 0) return -1;
        value = s->g->nodes[s->g->values[value].producer].inputs[i];
    }
    return s->uses[value] == 1 ? value : -1;
}

struct found {
    int32_t scores, weights, y; /* first product, softmax and second product of them */
};

static bool match(struct search *s, const struct sdx_ir_node *softmax, struct found *f)
{
    const struct sdx_type *t = type_of(s, softmax->outputs[0]);
    if (!t || t->rank <= RANK) return false;
    s->rank = t->rank;
    const int64_t axis = sdx_ir_attr_int(softmax, "axis", softmax->opset < 13 ? 1 : -1);
    f->weights = softmax->outputs[0];
    if ((axis != -1 && axis != s->rank - 1) || s->uses[f->weights] != 1) return false;
    f->scores = scores_of(s, softmax->inputs[0]);
    f->y = -1;
    for (int32_t n = 0; n < s->g->count_nodes && f->y < 0; n++) {
        const struct sdx_ir_node *node = &s->g->nodes[n];
        if (!node->is_dead && node->count_inputs > 0 && node->inputs[0] == f->weights &&
            sdx_match_plain_product(s->g, node->outputs[0]) == node)
            f->y = node->outputs[0];
    }
    if (f->scores < 0 || f->y < 0 || (s->g->values[f->y].flags & SDX_IR_OUTPUT)) return false;
    const struct sdx_ir_node *first = sdx_match_plain_product(s->g, f->scores),
                             *second = sdx_match_plain_product(s->g, f->y);
    return fits(s, f->weights, f->scores) && fits(s, first->inputs[0], f->scores) &&
           fits(s, first->inputs[1], f->scores) && fits(s, second->inputs[1], f->scores) &&
           fits(s, f->y, f->scores);
}

static enum sdx_status build(const struct search *s, const struct found *f)
{
    const int32_t first = s->g->values[f->scores].producer, last = s->g->values[f->y].producer;
    const struct sdx_type whole = s->g->values[f->y].type;
    const int32_t back = reshape(s, f->y, whole.dims, whole.rank);
    if (back < 0) return SDX_FAIL_MEMORY(s->cx);
    sdx_ir_replace_uses(s->ir, (int32_t)(s->g - s->ir->graphs), f->y, back);
    s->g->nodes[s->g->values[back].producer].inputs[0] = f->y;
    SDX_TRY(join_input(s, first, 0));
    SDX_TRY(join_input(s, first, 1));
    SDX_TRY(join_input(s, last, 1));
    for (int32_t value = f->weights;;) { /* up to the scores */
        int64_t dims[RANK];
        const int32_t n = s->g->values[value].producer;
        const int i = value == f->weights ? 0 : value == f->scores ? -1 : through(s, value);
        joined(s, value, dims);
        SDX_TRY(set_joined(s, value, dims));
        if (i < 0) break;
        value = s->g->nodes[n].inputs[i];
    }
    struct sdx_ir_attr *axis = sdx_arena_array(s->ir->arena, 1, sizeof *axis);
    if (!axis) return SDX_FAIL_MEMORY(s->cx);
    *axis = (struct sdx_ir_attr){.name = SDX_STR("axis"), .type = SDX_ATTR_INT, .i = RANK - 1};
    struct sdx_ir_node *softmax = &s->g->nodes[s->g->values[f->weights].producer];
    softmax->attrs = axis;
    softmax->count_attrs = 1;
    int64_t dims[RANK];
    joined(s, f->y, dims);
    return set_joined(s, f->y, dims);
}

static enum sdx_status join_graph(struct search *s, bool *changed)
{
    bool did = false;
    for (int32_t n = 0, count = s->g->count_nodes; n < count; n++) {
        const struct sdx_ir_node *node = &s->g->nodes[n];
        struct found f;
        if (node->is_dead || node->domain.len || !sdx_str_is(node->op_type, "Softmax")) continue;
        s->uses = sdx_ir_uses(s->g, s->ir->arena);
        if (!s->uses) return SDX_FAIL_MEMORY(s->cx);
        if (!match(s, node, &f)) continue;
        SDX_TRY(build(s, &f));
        did = true;
    }
    if (did) SDX_TRY(sdx_ir_sort(s->cx, s->ir, s->g));
    *changed = *changed || did;
    return SDX_OK;
}

enum sdx_status sdx_pass_windows(struct sdx_context *cx, struct sdx_ir *ir, bool *changed)
{
    for (int32_t n = 0; n < ir->count_graphs; n++) {
        struct search s = {.cx = cx, .ir = ir, .g = &ir->graphs[n]};
        SDX_TRY(join_graph(&s, changed));
    }
    return SDX_OK;
}
