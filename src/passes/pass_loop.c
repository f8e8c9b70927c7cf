/* SPDX-License-Identifier: Apache-2.0
 * What does not change from trip to trip of a Loop leaves it: carried values that the body hands on
 * as it got them are taken from outside, so that weights among them are constants that are packed
 * once, and nodes that read only such values are computed once, before the loop. Paddle2ONNX and
 * tf2onnx carry every weight that a loop uses. A loop of no trips computes such a node for nothing;
 * it is one that cannot fail where the body does not. */
#include "passes/match.h"
#include "passes/passes.h"

enum { BEFORE_CARRIED = 2 /* inputs of a body: trip, condition; outputs: condition */ };

static bool can_leave(const struct sdx_ir_node *node)
{
    static const char *const ops[] = {"MatMul",  "Gemm",    "Conv", "Transpose", "Unsqueeze",
                                      "Squeeze", "Cast",    "Add",  "Sub",       "Mul",
                                      "Tanh",    "Sigmoid", "Relu", "Shape"};
    if (node->is_dead || node->domain.len || node->count_outputs != 1 || node->count_captures)
        return false;
    return sdx_match_is_one_of(node, ops, SDX_COUNT_OF(ops));
}

static int32_t count_of(const struct sdx_ir_graph *g, int32_t output)
{
    int32_t count = 0;
    for (int32_t k = 0; k < g->count_outputs; k++)
        count += g->outputs[k] == output;
    return count;
}

static void remove_at(int32_t *list, int32_t *count, int32_t at)
{
    for (int32_t i = at; i + 1 < *count; i++)
        list[i] = list[i + 1];
    (*count)--;
}

static bool same_axes(const struct sdx_ir_graph *g, const struct sdx_ir_node *a,
                      const struct sdx_ir_node *b)
{
    const int64_t *list[2];
    int64_t count[2];
    return sdx_match_list(g, a, 1, "axes", &list[0], &count[0]) && list[0] &&
           sdx_match_list(g, b, 1, "axes", &list[1], &count[1]) && list[1] &&
           sdx_dims_equal(list[0], (int)count[0], list[1], (int)count[1]);
}
/* What the value is as it is: Paddle assigns by x + 0 between an Unsqueeze and its Squeeze. */
static int32_t handed_on(const struct sdx_ir_graph *body, int32_t value)
{
    for (;;) {
        const struct sdx_ir_node *same = sdx_match_maker(body, value, "Identity");
        const struct sdx_ir_node *squeeze = sdx_match_maker(body, value, "Squeeze");
        if (squeeze) same = sdx_match_maker(body, squeeze->inputs[0], "Unsqueeze");
        if (!same || (squeeze && !same_axes(body, squeeze, same))) return value;
        value = same->inputs[0];
    }
}

/* Carried value i is that of before the loop, always: the body reads that, and so do its readers.
 */
static bool take_from_outside(struct sdx_ir *ir, int32_t graph, struct sdx_ir_node *loop,
                              struct sdx_ir_graph *body, int32_t i)
{
    struct sdx_ir_graph *g = &ir->graphs[graph];
    const int32_t inner = body->inputs[BEFORE_CARRIED + i];
    const int32_t first = loop->inputs[BEFORE_CARRIED + i];
    const int32_t last = i < loop->count_outputs ? loop->outputs[i] : -1;
    const int32_t handed = body->outputs[1 + i];
    struct sdx_ir_value *v = &body->values[inner];
    if (handed_on(body, handed) != inner || count_of(body, handed) != 1 || v->constant || first < 0)
        return false;
    if (handed != inner && count_of(body, inner)) return false;
    if (last >= 0 && g->values[last].flags & SDX_IR_OUTPUT) return false; /* keeps its name */
    v->outer = first;
    v->flags &= ~(uint32_t)(SDX_IR_INPUT | SDX_IR_OUTPUT);
    body->values[handed].flags &= ~(uint32_t)SDX_IR_OUTPUT;
    v->type = g->values[first].type;
    remove_at(body->inputs, &body->count_inputs, BEFORE_CARRIED + i);
    remove_at(body->outputs, &body->count_outputs, 1 + i);
    remove_at(loop->inputs, &loop->count_inputs, BEFORE_CARRIED + i);
    if (i < loop->count_outputs) remove_at(loop->outputs, &loop->count_outputs, i);
    for (int32_t k = i; k < loop->count_outputs; k++)
        if (loop->outputs[k] >= 0) g->values[loop->outputs[k]].producer_slot = k;
    if (last < 0) return true;
    g->values[last].producer = -1;
    sdx_ir_replace_uses(ir, graph, last, first);
    return true;
}

/* Does the node read constants and values from outside, and at least one of the latter? */
static bool reads_outside(const struct sdx_ir_graph *body, const struct sdx_ir_node *node)
{
    bool any = false;
    for (int32_t i = 0; i < node->count_inputs; i++) {
        if (node->inputs[i] < 0) continue;
        const struct sdx_ir_value *v = &body->values[node->inputs[i]];
        if (v->outer < 0 && (!v->constant || v->flags & SDX_IR_INPUT)) return false;
        any = any || v->outer >= 0;
    }
    return any && !(body->values[node->outputs[0]].flags & SDX_IR_OUTPUT);
}

/* The node goes to the graph around the body. */
static enum sdx_status leave(struct sdx_context *cx, struct sdx_ir *ir, int32_t graph,
                             struct sdx_ir_graph *body, struct sdx_ir_node *node)
{
    struct sdx_ir_graph *g = &ir->graphs[graph];
    struct sdx_ir_node *to = sdx_ir_node_create(ir, g, node->domain, node->op_type,
                                                node->count_inputs, 1, node->count_attrs);
    if (!to) return SDX_FAIL_MEMORY(cx);
    const int32_t result = to->outputs[0];
    to->name = node->name;
    to->op = node->op;
    to->opset = node->opset;
    if (node->count_attrs)
        memcpy(to->attrs, node->attrs, (size_t)node->count_attrs * sizeof *to->attrs);
    for (int32_t i = 0; i < node->count_inputs; i++) {
        if (node->inputs[i] < 0) continue;
        const struct sdx_ir_value *v = &body->values[node->inputs[i]];
        to->inputs[i] = v->outer;
        if (v->outer >= 0) continue;
        to->inputs[i] = sdx_match_add_constant(ir, g, v->name, v->constant);
        if (to->inputs[i] < 0) return SDX_FAIL_MEMORY(cx);
    }
    struct sdx_ir_value *v = &body->values[node->outputs[0]];
    g->values[result].type = v->type;
    v->producer = -1;
    v->outer = result;
    node->is_dead = true;
    return SDX_OK;
}

static enum sdx_status clean_loop(struct sdx_context *cx, struct sdx_ir *ir, int32_t graph,
                                  int32_t node, bool *moved, bool *changed)
{
    struct sdx_ir_node *loop = &ir->graphs[graph].nodes[node];
    const struct sdx_ir_attr *attr = sdx_ir_attr(loop, "body");
    if (!attr || attr->type != SDX_ATTR_GRAPH) return SDX_OK;
    struct sdx_ir_graph *body = &ir->graphs[attr->graph];
    for (int32_t i = loop->count_inputs - BEFORE_CARRIED - 1; i >= 0; i--)
        if (BEFORE_CARRIED + i < body->count_inputs && 1 + i < body->count_outputs)
            *changed = take_from_outside(ir, graph, loop, body, i) || *changed;
    for (int32_t n = 0; n < body->count_nodes; n++) {
        if (!can_leave(&body->nodes[n]) || !reads_outside(body, &body->nodes[n])) continue;
        SDX_TRY(leave(cx, ir, graph, body, &body->nodes[n]));
        *moved = *changed = true;
    }
    return SDX_OK;
}

enum sdx_status sdx_pass_loop(struct sdx_context *cx, struct sdx_ir *ir, bool *changed)
{
    for (int32_t graph = 0; graph < ir->count_graphs; graph++) {
        bool moved = false;
        const int32_t count = ir->graphs[graph].count_nodes;
        for (int32_t n = 0; n < count; n++) {
            const struct sdx_ir_node *node = &ir->graphs[graph].nodes[n];
            if (!node->is_dead && !node->domain.len && sdx_str_is(node->op_type, "Loop"))
                SDX_TRY(clean_loop(cx, ir, graph, n, &moved, changed));
        }
        if (!moved) continue;
        SDX_TRY(sdx_ir_update_captures(cx, ir, graph));
        SDX_TRY(sdx_ir_sort(cx, ir, &ir->graphs[graph]));
    }
    return *changed ? sdx_passes_infer(cx, ir) : SDX_OK;
}
