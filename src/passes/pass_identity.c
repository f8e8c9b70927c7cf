/* SPDX-License-Identifier: Apache-2.0
 * Removes nodes that give their input back: Identity, Cast to the same type, Reshape, Transpose,
 * Resize, Pad and Slice that change nothing, Concat and Sum of one operand, x + 0, x * 1. One that
 * makes a graph output of what no node makes, or of another output, stays. And Expand before what
 * broadcasts anyway. */
#include "passes/match.h"
#include "passes/passes.h"
#include "tensor/convert.h"

static bool same_dims(const struct sdx_type *a, const struct sdx_type *b)
{
    if (!a->has_shape || !b->has_shape || a->rank != b->rank) return false;
    int unknown = 0;
    for (int d = 0; d < a->rank; d++) {
        if (a->dims[d] == -1 || b->dims[d] == -1)
            unknown++;
        else if (a->dims[d] != b->dims[d])
            return false;
    }
    return unknown == 0;
}

/* Sizes that are those of the input, and pixels that then lie where they lay? */
static bool keeps_pixels(const struct sdx_ir_node *resize)
{
    const struct sdx_str mode =
        sdx_ir_attr_str(resize, "coordinate_transformation_mode", "half_pixel");
    return resize->opset >= 11 && resize->count_inputs > 3 && resize->inputs[3] >= 0 &&
           !sdx_str_is(mode, "tf_crop_and_resize") && !sdx_str_is(mode, "tf_half_pixel_for_nn");
}

/* Input i is a constant list of nothing but `number`? */
static bool is_all(const struct sdx_ir_graph *g, const struct sdx_ir_node *node, int i,
                   int64_t number)
{
    const struct sdx_tensor *t = sdx_match_constant(g, node->inputs[i]);
    for (int64_t at = 0; t && at < t->count; at++)
        if (sdx_load_i64(t->dtype, t->data, at) != number) return false;
    return t != NULL;
}

/* Zeros for all axes, or as many as leave the lengths as they are? */
static bool pads_nothing(const struct sdx_ir_graph *g, const struct sdx_ir_node *pad)
{
    const struct sdx_type *in = &g->values[pad->inputs[0]].type;
    const bool has_axes = pad->count_inputs > 3 && pad->inputs[3] >= 0;
    const bool fits = in->has_shape && !has_axes && g->values[pad->inputs[1]].type.rank == 1 &&
                      g->values[pad->inputs[1]].type.dims[0] == 2 * in->rank;
    return (fits || same_dims(in, &g->values[pad->outputs[0]].type)) && is_all(g, pad, 1, 0);
}

/* x + 0, x - 0, x * 1, x / 1, and the constant adds no axis? -0 + 0 is taken for -0, not 0. */
static bool is_neutral(const struct sdx_ir_graph *g, const struct sdx_ir_node *node)
{
    static const char *const ops[] = {"Add", "Sub", "Mul", "Div"};
    double c = 0;
    if (node->count_inputs != 2 || !sdx_match_scalar(g, node->inputs[1], &c)) return false;
    const struct sdx_type *in = &g->values[node->inputs[0]].type;
    const int32_t rank = g->values[node->inputs[1]].constant->rank;
    if (rank > 0 && (!in->has_shape || in->rank < rank) &&
        (rank > 1 || !sdx_match_maker(g, node->inputs[0], "Unsqueeze")))
        return false;
    for (int i = 0; i < SDX_COUNT_OF(ops); i++)
        if (sdx_str_is(node->op_type, ops[i])) return c == i / 2;
    return false;
}

static bool is_identity(const struct sdx_ir_graph *g, const struct sdx_ir_node *node)
{
    static const char *const of_one[] = {"Concat", "Sum", "Mean", "Max", "Min"};
    if (node->domain.len || node->count_inputs < 1 || node->inputs[0] < 0 || node->outputs[0] < 0)
        return false;
    const struct sdx_type *in = &g->values[node->inputs[0]].type,
                          *out = &g->values[node->outputs[0]].type;
    if (sdx_str_is(node->op_type, "Identity") || is_neutral(g, node)) return true;
    if (node->count_inputs == 1)
        for (int i = 0; i < SDX_COUNT_OF(of_one); i++)
            if (sdx_str_is(node->op_type, of_one[i])) return true;
    if (in->kind != SDX_KIND_TENSOR || !in->dtype) return false;
    if (sdx_str_is(node->op_type, "Cast")) return in->dtype == sdx_ir_attr_int(node, "to", 0);
    if (sdx_str_is(node->op_type, "Reshape") || sdx_str_is(node->op_type, "Flatten") ||
        sdx_str_is(node->op_type, "Expand"))
        return same_dims(in, out);
    if (sdx_str_is(node->op_type, "Resize")) return same_dims(in, out) && keeps_pixels(node);
    if (sdx_str_is(node->op_type, "Pad")) return node->opset >= 11 && pads_nothing(g, node);
    if (sdx_str_is(node->op_type, "Slice"))
        return same_dims(in, out) && node->opset >= 10 &&
               (node->count_inputs < 5 || node->inputs[4] < 0 || is_all(g, node, 4, 1));
    if (sdx_str_is(node->op_type, "Transpose") && in->has_shape) {
        int64_t count = 0;
        const int64_t *perm = sdx_ir_attr_ints(node, "perm", &count);
        if (!perm) return in->rank <= 1;
        for (int64_t i = 0; i < count; i++)
            if (perm[i] != i) return false;
        return true;
    }
    return false;
}

/* Takes what Expand was given as an operand where another one has the whole shape. */
static bool skip_expand(const struct sdx_ir_graph *g, struct sdx_ir_node *node)
{
    static const char *const ops[] = {"Add",   "Sub",  "Mul",     "Div",         "Pow",
                                      "Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual",
                                      "And",   "Or",   "Xor",     "Where",       "Min",
                                      "Max",   "Sum",  "Mean"};
    bool broadcasts = false, did = false;
    for (int i = 0; i < SDX_COUNT_OF(ops) && !node->domain.len && node->opset >= 8; i++)
        broadcasts = broadcasts || sdx_str_is(node->op_type, ops[i]);
    for (int i = 0; broadcasts && i < node->count_inputs; i++) {
        const struct sdx_ir_node *expand = sdx_match_maker(g, node->inputs[i], "Expand");
        for (int j = 0; expand && j < node->count_inputs; j++) {
            if (j == i ||
                !same_dims(&g->values[node->inputs[i]].type, &g->values[node->inputs[j]].type))
                continue;
            node->inputs[i] = expand->inputs[0];
            expand = NULL;
            did = true;
        }
    }
    return did;
}

/* A graph output keeps its value, which has its name: what made the input makes that. */
static bool make_output(struct sdx_ir *ir, int32_t graph, const struct sdx_ir_node *node)
{
    struct sdx_ir_graph *g = &ir->graphs[graph];
    const int32_t from = node->inputs[0], to = node->outputs[0];
    struct sdx_ir_value *value = &g->values[from];
    const int32_t maker = value->producer;
    if (maker < 0 || value->flags & SDX_IR_OUTPUT) return false;
    if (!g->values[to].type.has_shape) g->values[to].type = value->type;
    sdx_ir_node_set_output(g, &g->nodes[maker], maker, value->producer_slot, to);
    sdx_ir_replace_uses(ir, graph, from, to);
    value->producer = -1;
    return true;
}

enum sdx_status sdx_pass_identity(struct sdx_context *cx, struct sdx_ir *ir, bool *changed)
{
    (void)cx;
    for (int32_t g = 0; g < ir->count_graphs; g++) {
        struct sdx_ir_graph *graph = &ir->graphs[g];
        for (int32_t n = 0; n < graph->count_nodes; n++) {
            struct sdx_ir_node *node = &graph->nodes[n];
            if (!node->is_dead && skip_expand(graph, node)) *changed = true;
            if (node->is_dead || node->count_outputs != 1 || !is_identity(graph, node)) continue;
            if (!(graph->values[node->outputs[0]].flags & SDX_IR_OUTPUT))
                sdx_ir_replace_uses(ir, g, node->outputs[0], node->inputs[0]);
            else if (!make_output(ir, g, node))
                continue;
            node->is_dead = true;
            *changed = true;
        }
    }
    return SDX_OK;
}
