/* SPDX-License-Identifier: Apache-2.0
 * A Pad of zeros along the spatial axes moves into the pads of the convolutions and average pools
 * that read it, and one of -infinity into those of a MaxPool: exporters write padding that differs
 * from side to side ("SAME" of TensorFlow) so. */
#include <float.h>
#include <math.h>

#include "passes/match.h"
#include "passes/passes.h"

/* What a Pad does along the spatial axes: begins, then ends. */
struct padding {
    int rank; /* number of spatial axes */
    int64_t pads[2 * SDX_RANK_MAX];
    double value;
};

/* false: the Pad is of another kind. */
static bool padding_of(const struct sdx_ir_graph *g, const struct sdx_ir_node *pad,
                       struct padding *p)
{
    const struct sdx_type *x = &g->values[pad->inputs[0]].type;
    const bool has_inputs = pad->opset >= 11;
    int64_t count = 0, count_axes = 0;
    const int64_t *axes = NULL;
    const int64_t *pads =
        has_inputs ? sdx_match_ints(g, pad, 1, &count) : sdx_ir_attr_ints(pad, "pads", &count);
    if (!pads || !x->has_shape || x->rank < 3 || x->rank > SDX_RANK_MAX ||
        !sdx_str_is(sdx_ir_attr_str(pad, "mode", "constant"), "constant"))
        return false;
    p->value = has_inputs ? 0 : sdx_ir_attr_float(pad, "value", 0);
    if (pad->count_inputs > 2 && pad->inputs[2] >= 0 &&
        !sdx_match_scalar(g, pad->inputs[2], &p->value))
        return false;
    if (pad->count_inputs > 3 && pad->inputs[3] >= 0) {
        axes = sdx_match_ints(g, pad, 3, &count_axes);
        if (!axes) return false;
    }
    const int64_t n = axes ? count_axes : x->rank;
    if (count != 2 * n) return false;
    *p = (struct padding){.rank = x->rank - 2, .value = p->value};
    for (int64_t i = 0; i < n; i++) {
        const int64_t axis = axes ? axes[i] + (axes[i] < 0 ? x->rank : 0) : i;
        if (pads[i] < 0 || pads[n + i] < 0 || axis < 0 || axis >= x->rank) return false;
        if (axis < 2 && (pads[i] || pads[n + i])) return false;
        if (axis < 2) continue;
        p->pads[axis - 2] += pads[i];
        p->pads[p->rank + axis - 2] += pads[n + i];
    }
    return true;
}

/* Can the node's own pads stand for these? *counted: an average has to count them. */
static bool takes(const struct sdx_ir_node *node, const struct padding *p, bool *counted)
{
    const struct sdx_str automatic = sdx_ir_attr_str(node, "auto_pad", "NOTSET");
    int64_t count = 0;
    const int64_t *own = sdx_ir_attr_ints(node, "pads", &count);
    *counted = false;
    if (node->domain.len || (own && count != 2 * p->rank)) return false;
    if (!sdx_str_is(automatic, "NOTSET") && !sdx_str_is(automatic, "VALID")) return false;
    if (sdx_str_is(node->op_type, "Conv")) return p->value == 0;
    if (sdx_ir_attr_int(node, "ceil_mode", 0)) return false; /* windows beyond the padding */
    if (sdx_str_is(node->op_type, "MaxPool"))
        return node->count_outputs == 1 && p->value <= -FLT_MAX;
    if (!sdx_str_is(node->op_type, "AveragePool") || p->value != 0 || node->opset < 7) return false;
    *counted = true;
    if (sdx_ir_attr_int(node, "count_include_pad", 0)) return true;
    for (int64_t i = 0; i < count; i++)
        if (own[i]) return false; /* pads of its own do not count */
    return true;
}

static struct sdx_ir_attr *set_attr(struct sdx_ir_node *node, const char *name, uint8_t type)
{
    int32_t i = 0;
    while (i < node->count_attrs && !sdx_str_is(node->attrs[i].name, name))
        i++;
    if (i == node->count_attrs) node->count_attrs++;
    node->attrs[i] = (struct sdx_ir_attr){.name = sdx_str(name), .type = type};
    return &node->attrs[i];
}

static enum sdx_status move_into(struct sdx_context *cx, struct sdx_ir *ir,
                                 struct sdx_ir_node *node, const struct padding *p, bool counted)
{
    const size_t count = (size_t)node->count_attrs, sides = 2 * (size_t)p->rank;
    struct sdx_ir_attr *attrs = sdx_arena_array(ir->arena, count + 3, sizeof *attrs);
    int64_t *pads = sdx_arena_array(ir->arena, sides, sizeof *pads), own_count = 0;
    const int64_t *own = sdx_ir_attr_ints(node, "pads", &own_count);
    const bool valid = sdx_str_is(sdx_ir_attr_str(node, "auto_pad", "NOTSET"), "VALID");
    if (!attrs || !pads) return SDX_FAIL_MEMORY(cx);
    for (size_t i = 0; i < sides; i++)
        pads[i] = p->pads[i] + (own && !valid ? own[i] : 0);
    if (count) memcpy(attrs, node->attrs, count * sizeof *attrs);
    node->attrs = attrs;
    struct sdx_ir_attr *attr = set_attr(node, "pads", SDX_ATTR_INTS);
    attr->ints = pads;
    attr->count = (int64_t)sides;
    set_attr(node, "auto_pad", SDX_ATTR_STRING)->s = SDX_STR("NOTSET");
    if (counted) set_attr(node, "count_include_pad", SDX_ATTR_INT)->i = 1;
    return SDX_OK;
}

static enum sdx_status pad_before(struct sdx_context *cx, struct sdx_ir *ir,
                                  const struct sdx_ir_graph *g, struct sdx_ir_node *node,
                                  bool *changed)
{
    struct padding p;
    bool counted = false;
    const struct sdx_ir_node *pad =
        node->count_inputs ? sdx_match_maker(g, node->inputs[0], "Pad") : NULL;
    if (!pad || !padding_of(g, pad, &p) || !takes(node, &p, &counted)) return SDX_OK;
    SDX_TRY(move_into(cx, ir, node, &p, counted));
    node->inputs[0] = pad->inputs[0];
    *changed = true;
    return SDX_OK;
}

enum sdx_status sdx_pass_pad(struct sdx_context *cx, struct sdx_ir *ir, bool *changed)
{
    static const char *const ops[] = {"Conv", "MaxPool", "AveragePool"};
    for (int32_t n_graph = 0; n_graph < ir->count_graphs; n_graph++) {
        const struct sdx_ir_graph *g = &ir->graphs[n_graph];
        for (int32_t n = 0; n < g->count_nodes; n++) {
            struct sdx_ir_node *node = &g->nodes[n];
            for (int i = 0; i < SDX_COUNT_OF(ops) && !node->is_dead; i++)
                if (!node->domain.len && sdx_str_is(node->op_type, ops[i]))
                    SDX_TRY(pad_before(cx, ir, g, node, changed));
        }
    }
    return SDX_OK;
}
