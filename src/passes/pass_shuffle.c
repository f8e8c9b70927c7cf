/* SPDX-License-Identifier: Apache-2.0
 * The channel shuffle of ShuffleNet, Reshape [N, g, C / g, ...], Transpose of the two and Reshape
 * back, becomes a Gather along the channels, which blocked channels have a kernel for; and a Split
 * in two behind it, or Slices, Gathers of their own. */
#include "passes/match.h"
#include "passes/passes.h"

enum { CHANNELS_MAX = 1 << 16, GATHER_OPSET = 13 };

/* g where the Reshape takes the channels of x [N, C, ...] apart into [N, g, C / g, ...]; 0: no. */
static int64_t groups_of(const struct sdx_type *x, const struct sdx_type *apart)
{
    if (!x->has_shape || !apart->has_shape || apart->rank != x->rank + 1 || x->rank < 3 ||
        x->dims[1] < 1 || x->dims[1] > CHANNELS_MAX || apart->dims[1] < 1 || apart->dims[2] < 1)
        return 0;
    for (int d = 0; d < x->rank; d++)
        if (d != 1 && (x->dims[d] == -1 || x->dims[d] != apart->dims[d > 1 ? d + 1 : d])) return 0;
    return apart->dims[1] * apart->dims[2] == x->dims[1] ? apart->dims[1] : 0;
}

/* The node becomes the Gather of those channels of x. */
static enum sdx_status become_gather(struct sdx_context *cx, struct sdx_ir *ir,
                                     struct sdx_ir_graph *g, struct sdx_ir_node *node, int32_t x,
                                     const int64_t *channels, int64_t count)
{
    const int32_t list = sdx_match_add_ints(ir, g, "channels", channels, count);
    if (list < 0) return SDX_FAIL_MEMORY(cx);
    SDX_TRY(
        sdx_match_become(cx, ir, node, "Gather", GATHER_OPSET, (const int32_t[]){x, list}, 2, 1));
    node->attrs[node->count_attrs++] =
        (struct sdx_ir_attr){.name = SDX_STR("axis"), .type = SDX_ATTR_INT, .i = 1};
    return SDX_OK;
}

static enum sdx_status join_shuffle(struct sdx_context *cx, struct sdx_ir *ir,
                                    struct sdx_ir_graph *g, struct sdx_ir_node *node, bool *changed)
{
    const struct sdx_ir_node *transpose = sdx_match_maker(g, node->inputs[0], "Transpose");
    const struct sdx_ir_node *apart =
        transpose ? sdx_match_maker(g, transpose->inputs[0], "Reshape") : NULL;
    const int32_t x = apart ? apart->inputs[0] : -1;
    if (x < 0 || !sdx_match_same_type(g, x, node->outputs[0])) return SDX_OK;
    const struct sdx_type *type = &g->values[x].type;
    const int64_t groups = groups_of(type, &g->values[apart->outputs[0]].type);
    if (groups < 2 || groups == type->dims[1] ||
        !sdx_match_moves_axis(transpose, type->rank + 1, 1, 2))
        return SDX_OK;
    const int64_t count = type->dims[1], each = count / groups;
    int64_t *channels = sdx_arena_array(ir->arena, (size_t)count, sizeof *channels);
    if (!channels) return SDX_FAIL_MEMORY(cx);
    for (int64_t c = 0; c < count; c++)
        channels[c] = c % groups * each + c / groups;
    *changed = true;
    return become_gather(cx, ir, g, node, x, channels, count);
}

/* The Gather of known channels that makes `value`, and the list of these; NULL: it is none. */
static struct sdx_ir_node *gather_of(const struct sdx_ir_graph *g, int32_t value,
                                     const struct sdx_tensor **list)
{
    struct sdx_ir_node *gather = sdx_match_maker(g, value, "Gather");
    *list = gather ? sdx_match_constant(g, gather->inputs[1]) : NULL;
    const bool fits = *list && (*list)->rank == 1 && (*list)->dtype == SDX_I64 &&
                      sdx_ir_attr_int(gather, "axis", 0) == 1;
    return fits ? gather : NULL;
}

/* The Gather, which only the Split reads, makes the first half; the Split becomes the second. */
static enum sdx_status split_gather(struct sdx_context *cx, struct sdx_ir *ir,
                                    struct sdx_ir_graph *g, struct sdx_ir_node *split,
                                    const int32_t *uses, bool *changed)
{
    const struct sdx_tensor *list;
    struct sdx_ir_node *gather = gather_of(g, split->inputs[0], &list);
    if (!gather || uses[split->inputs[0]] != 1 || split->count_outputs != 2 ||
        split->outputs[0] < 0 || split->outputs[1] < 0 || sdx_ir_attr_int(split, "axis", 0) != 1)
        return SDX_OK;
    const struct sdx_type *a = &g->values[split->outputs[0]].type,
                          *b = &g->values[split->outputs[1]].type;
    if (!a->has_shape || !b->has_shape || a->dims[1] < 1 || b->dims[1] < 1 ||
        a->dims[1] + b->dims[1] != list->count)
        return SDX_OK;
    const int64_t *channels = list->data, first = a->dims[1];
    const int32_t x = gather->inputs[0], second = split->outputs[1];
    g->values[gather->outputs[0]].producer = -1;
    sdx_ir_node_set_output(g, gather, (int32_t)(gather - g->nodes), 0, split->outputs[0]);
    split->count_outputs = 1;
    sdx_ir_node_set_output(g, split, (int32_t)(split - g->nodes), 0, second);
    SDX_TRY(become_gather(cx, ir, g, gather, x, channels, first));
    SDX_TRY(become_gather(cx, ir, g, split, x, channels + first, list->count - first));
    *changed = true;
    return SDX_OK;
}

static bool is_one_number(const struct sdx_ir_graph *g, const struct sdx_ir_node *node, int i,
                          int64_t *number)
{
    const struct sdx_tensor *t =
        i < node->count_inputs ? sdx_match_constant(g, node->inputs[i]) : NULL;
    if (!t || t->count != 1 || t->dtype != SDX_I64) return false;
    *number = *(const int64_t *)t->data;
    return true;
}
/* Some of the channels that a Gather gives, whoever reads the others. */
static enum sdx_status slice_gather(struct sdx_context *cx, struct sdx_ir *ir,
                                    struct sdx_ir_graph *g, struct sdx_ir_node *slice,
                                    bool *changed)
{
    const struct sdx_tensor *list;
    const struct sdx_ir_node *gather = gather_of(g, slice->inputs[0], &list);
    const struct sdx_type *type = &g->values[slice->outputs[0]].type;
    int64_t start = 0, end = 0, axis = 0, step = 1;
    if (!gather || slice->opset < 10 || !type->has_shape) return SDX_OK;
    if (!is_one_number(g, slice, 1, &start) || !is_one_number(g, slice, 2, &end) ||
        !is_one_number(g, slice, 3, &axis) || axis != 1 ||
        (slice->count_inputs > 4 && (!is_one_number(g, slice, 4, &step) || step != 1)))
        return SDX_OK;
    const int64_t count = type->dims[1];
    if (start < 0 || count < 1 || start > list->count - count) return SDX_OK;
    *changed = true;
    return become_gather(cx, ir, g, slice, gather->inputs[0], (const int64_t *)list->data + start,
                         count);
}

enum sdx_status sdx_pass_shuffle(struct sdx_context *cx, struct sdx_ir *ir, bool *changed)
{
    for (int32_t n_graph = 0; n_graph < ir->count_graphs; n_graph++) {
        struct sdx_ir_graph *g = &ir->graphs[n_graph];
        int32_t *uses = sdx_ir_uses(g, ir->arena);
        if (!uses) return SDX_FAIL_MEMORY(cx);
        const int32_t values = g->count_values;
        for (int32_t n = 0; n < g->count_nodes; n++) {
            struct sdx_ir_node *node = &g->nodes[n];
            if (node->is_dead || node->domain.len || node->count_inputs < 1) continue;
            if (node->inputs[0] < 0 || node->inputs[0] >= values) continue;
            if (sdx_str_is(node->op_type, "Reshape"))
                SDX_TRY(join_shuffle(cx, ir, g, node, changed));
            else if (sdx_str_is(node->op_type, "Slice"))
                SDX_TRY(slice_gather(cx, ir, g, node, changed));
            else if (sdx_str_is(node->op_type, "Split"))
                SDX_TRY(split_gather(cx, ir, g, node, uses, changed));
        }
    }
    return SDX_OK;
}
