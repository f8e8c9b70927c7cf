/* SPDX-License-Identifier: Apache-2.0
 * Clears the way from a matrix product to what its store can do: an activation behind a view or
 * Transpose of the product (or of a convolution), or an addition behind a Reshape, comes before it;
 * a multiplication by a constant row (layer scale) becomes input 4 of the product, which scales the
 * packed columns and the bias; a Transpose that only moves axes of length 1, and a Gather of the
 * only slice there is, become a Reshape. */
#include "passes/match.h"
#include "passes/passes.h"

struct work {
    struct sdx_context *cx;
    struct sdx_ir *ir;
    struct sdx_ir_graph *g;
    int32_t *uses;
    bool did;
};

static const struct sdx_type *type_of(const struct work *w, int32_t value)
{
    return &w->g->values[value].type;
}

/* The f32 MatMul or Gemm that makes `value` for one reader, without an activation. */
static struct sdx_ir_node *product_of(const struct work *w, int32_t value)
{
    if (value < 0 || w->uses[value] != 1 || type_of(w, value)->dtype != SDX_F32) return NULL;
    struct sdx_ir_node *node = sdx_match_maker(w->g, value, "MatMul");
    if (!node) node = sdx_match_maker(w->g, value, "Gemm");
    return node && !sdx_ir_attr(node, "activation") ? node : NULL;
}

/* The view or Transpose that makes `value` for one reader. */
static struct sdx_ir_node *move_of(const struct work *w, int32_t value)
{
    static const char *const ops[] = {"Reshape", "Transpose", "Flatten", "Squeeze", "Unsqueeze"};
    for (int i = 0; i < SDX_COUNT_OF(ops) && w->uses[value] == 1; i++) {
        struct sdx_ir_node *node = sdx_match_maker(w->g, value, ops[i]);
        if (node && node->inputs[0] >= 0) return node;
    }
    return NULL;
}
/* Is it made from the result of a product, or a convolution, whose store has room for an
 * activation, through nothing but moves? */
static bool is_moved_product(const struct work *w, int32_t value)
{
    for (const struct sdx_ir_node *move; (move = move_of(w, value)) != NULL;)
        value = move->inputs[0];
    if (product_of(w, value)) return true;
    const struct sdx_ir_node *conv = sdx_match_maker(w->g, value, "Conv");
    return conv && w->uses[value] == 1 && type_of(w, value)->dtype == SDX_F32 &&
           !sdx_ir_attr(conv, "activation");
}

/* Swaps what only moves the elements of a product with the operator of one operand behind it. */
static void sink(struct work *w, struct sdx_ir_node *node)
{
    static const char *const ops[] = {"Relu", "LeakyRelu", "Sigmoid",     "Tanh", "HardSwish",
                                      "Clip", "Swish",     "HardSigmoid", "Gelu"};
    if (!sdx_match_is_one_of(node, ops, SDX_COUNT_OF(ops)) || !is_moved_product(w, node->inputs[0]))
        return;
    for (struct sdx_ir_node *move; (move = move_of(w, node->inputs[0])) != NULL; w->did = true) {
        const int32_t from = move->inputs[0], between = node->inputs[0], last = node->outputs[0];
        node->inputs[0] = from;
        move->inputs[0] = between;
        sdx_ir_node_set_output(w->g, node, (int32_t)(node - w->g->nodes), 0, between);
        sdx_ir_node_set_output(w->g, move, (int32_t)(move - w->g->nodes), 0, last);
        w->g->values[between].type = *type_of(w, from);
    }
}

/* Inputs up to number i exist. */
static enum sdx_status set_input(const struct work *w, struct sdx_ir_node *node, int i,
                                 int32_t value)
{
    if (i >= node->count_inputs) {
        int32_t *inputs = sdx_arena_array(w->ir->arena, (size_t)i + 1, sizeof *inputs);
        if (!inputs) return SDX_FAIL_MEMORY(w->cx);
        for (int k = 0; k <= i; k++)
            inputs[k] = k < node->count_inputs ? node->inputs[k] : -1;
        node->inputs = inputs;
        node->count_inputs = i + 1;
    }
    node->inputs[i] = value;
    return SDX_OK;
}

static bool has_input(const struct sdx_ir_node *node, int i)
{
    return i < node->count_inputs && node->inputs[i] >= 0;
}

/* Reshape(product) + other, where other is as long: the product adds it. */
static enum sdx_status sink_addition(struct work *w, struct sdx_ir_node *add)
{
    for (int i = 0; i < 2; i++) {
        const int32_t between = add->inputs[i], other = add->inputs[1 - i];
        struct sdx_ir_node *reshape = sdx_match_maker(w->g, between, "Reshape");
        if (!reshape || w->uses[between] != 1 || other < 0 || other == between) continue;
        struct sdx_ir_node *product = product_of(w, reshape->inputs[0]);
        if (!product || sdx_match_constant(w->g, other)) continue;
        if (!sdx_match_same_type(w->g, between, other) || !sdx_match_takes_residual(w->g, product))
            continue;
        SDX_TRY(set_input(w, product, 3, other));
        w->g->values[between].producer = -1;
        sdx_ir_node_set_output(w->g, reshape, (int32_t)(reshape - w->g->nodes), 0, add->outputs[0]);
        add->is_dead = true;
        w->did = true;
        return SDX_OK;
    }
    return SDX_OK;
}

/* product * row, before anything but a bias of constants was added. */
static enum sdx_status fold_scale(struct work *w, struct sdx_ir_node *mul)
{
    for (int i = 0; i < 2; i++) {
        const struct sdx_tensor *t = sdx_match_constant(w->g, mul->inputs[i]);
        struct sdx_ir_node *product = t ? product_of(w, mul->inputs[1 - i]) : NULL;
        if (!product || t->rank != 1 || t->dtype != SDX_F32 || has_input(product, 3) ||
            has_input(product, 4) || !sdx_match_constant(w->g, product->inputs[1]))
            continue;
        const struct sdx_tensor *bias =
            has_input(product, 2) ? sdx_match_constant(w->g, product->inputs[2]) : NULL;
        if (has_input(product, 2) && (!bias || bias->rank != 1)) continue;
        const struct sdx_type *type = type_of(w, product->outputs[0]);
        if (!type->has_shape || type->rank < 2 || type->dims[type->rank - 1] != t->dims[0])
            continue;
        if (bias && bias->count != t->count) continue;
        SDX_TRY(set_input(w, product, 4, mul->inputs[i]));
        w->g->values[product->outputs[0]].producer = -1;
        sdx_ir_node_set_output(w->g, product, (int32_t)(product - w->g->nodes), 0, mul->outputs[0]);
        mul->is_dead = true;
        w->did = true;
        return SDX_OK;
    }
    return SDX_OK;
}

enum { NO_AXIS = -1 }; /* a length of 1 that is not the input's */

/* Where a Transpose keeps the order of the lengths over 1: the axes that its output has of the
 * input; how many, or -1. */
static int transposed(const struct sdx_ir_node *node, const struct sdx_type *in, int64_t *axes)
{
    int64_t count = 0, last = -1;
    const int64_t *perm = sdx_ir_attr_ints(node, "perm", &count);
    if (!perm || in->rank != count || count == 0 || count > SDX_RANK_MAX) return -1;
    for (int64_t d = 0; d < count; d++) {
        if (perm[d] < 0 || perm[d] >= count) return -1;
        axes[d] = perm[d];
        if (in->dims[perm[d]] == 1) continue;
        if (perm[d] < last) return -1;
        last = perm[d];
    }
    return (int)count;
}

/* The same of a Gather of one index on an axis of length 1. */
static int gathered(const struct work *w, const struct sdx_ir_node *node, const struct sdx_type *in,
                    int64_t *axes)
{
    int64_t axis = sdx_ir_attr_int(node, "axis", 0);
    double index = 0;
    int rank = 0;
    if (!sdx_match_scalar(w->g, node->inputs[1], &index) || (index != 0 && index != -1)) return -1;
    const int times = sdx_match_constant(w->g, node->inputs[1])->rank;
    if (axis < 0) axis += in->rank;
    if (axis < 0 || axis >= in->rank || in->dims[axis] != 1 || in->rank + times > SDX_RANK_MAX)
        return -1;
    for (int d = 0; d < in->rank; d++)
        for (int k = d == axis ? times : 1; k > 0; k--)
            axes[rank++] = d == axis ? NO_AXIS : d;
    return rank;
}

/* The list that has a Reshape give these axes of the input. false: too many of them are open: there
 * is one rest, which is not to be told where another length may be 0. */
static bool list_shape(const struct sdx_type *in, const int64_t *axes, int rank, int64_t *list)
{
    int rests = 0, copies = 0;
    for (int d = 0; d < rank; d++) {
        list[d] = axes[d] == NO_AXIS ? 1 : in->dims[axes[d]];
        if (list[d] >= 0) continue;
        list[d] = axes[d] == d ? 0 : -1; /* as it is in the input, or the rest */
        rests += list[d] != 0;
        copies += list[d] == 0;
    }
    return rests == 0 || (rests == 1 && copies == 0);
}

/* A Transpose or Gather that only gives its input another shape becomes a Reshape. */
static enum sdx_status turn_to_view(struct work *w, int32_t n, bool is_gather)
{
    struct sdx_ir_node *node = &w->g->nodes[n];
    const struct sdx_type *in = type_of(w, node->inputs[0]);
    int64_t axes[SDX_RANK_MAX], list[SDX_RANK_MAX];
    if (!in->has_shape) return SDX_OK;
    for (int d = 0; d < in->rank; d++)
        if (in->dims[d] == 0) return SDX_OK;
    const int rank = is_gather ? gathered(w, node, in, axes) : transposed(node, in, axes);
    if (rank < 0 || !list_shape(in, axes, rank, list)) return SDX_OK;
    const int64_t opset = node->opset < 14 ? 13 : node->opset;
    int32_t shape = sdx_match_add_ints(w->ir, w->g, "shape", list, rank);
    if (shape < 0) return SDX_FAIL_MEMORY(w->cx);
    node = &w->g->nodes[n];
    const int32_t inputs[] = {node->inputs[0], shape};
    SDX_TRY(sdx_match_become(w->cx, w->ir, node, "Reshape", opset, inputs, 2, 0));
    w->did = true;
    return SDX_OK;
}

enum sdx_status sdx_pass_product(struct sdx_context *cx, struct sdx_ir *ir, bool *changed)
{
    for (int32_t n_graph = 0; n_graph < ir->count_graphs; n_graph++) {
        struct work w = {.cx = cx, .ir = ir, .g = &ir->graphs[n_graph]};
        w.uses = sdx_ir_uses(w.g, ir->arena);
        if (!w.uses) return SDX_FAIL_MEMORY(cx);
        for (int32_t n = 0; n < w.g->count_nodes; n++) {
            struct sdx_ir_node *node = &w.g->nodes[n];
            if (node->is_dead || node->domain.len || node->count_inputs < 1) continue;
            if (node->inputs[0] < 0 || node->count_outputs != 1) continue;
            const bool is_gather = sdx_str_is(node->op_type, "Gather") && node->count_inputs == 2;
            if (is_gather || sdx_str_is(node->op_type, "Transpose"))
                SDX_TRY(turn_to_view(&w, n, is_gather));
            else if (sdx_str_is(node->op_type, "Add") && node->count_inputs == 2)
                SDX_TRY(sink_addition(&w, node));
            else if (sdx_str_is(node->op_type, "Mul") && node->count_inputs == 2)
                SDX_TRY(fold_scale(&w, node));
            else
                sink(&w, node);
        }
        if (w.did) SDX_TRY(sdx_ir_sort(cx, ir, w.g));
        *changed = *changed || w.did;
    }
    return SDX_OK;
}
