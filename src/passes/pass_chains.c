/* SPDX-License-Identifier: Apache-2.0
 * Shortens chains: Transpose of Transpose becomes one, Reshape of a view reads the view's input,
 * and a Cast that loses nothing is skipped by the Cast behind it. The first node dies when nobody
 * else reads it. */
#include "passes/passes.h"

/* The node of the same graph that makes input 0 of `node`, when it is `op` of the standard's
 * domain. */
static const struct sdx_ir_node *maker(const struct sdx_ir_graph *g, const struct sdx_ir_node *node,
                                       const char *op)
{
    int32_t v = node->count_inputs ? node->inputs[0] : -1;
    if (v < 0 || g->values[v].producer < 0 || g->values[v].constant) return NULL;
    const struct sdx_ir_node *from = &g->nodes[g->values[v].producer];
    bool fits = !from->is_dead && !from->domain.len && sdx_str_is(from->op_type, op) &&
                from->inputs[0] >= 0;
    return fits ? from : NULL;
}

static enum sdx_status join_transposes(struct sdx_context *cx, struct sdx_ir *ir,
                                       struct sdx_ir_graph *g, struct sdx_ir_node *node,
                                       bool *changed)
{
    const struct sdx_ir_node *first = maker(g, node, "Transpose");
    int64_t count_a = 0, count_b = 0;
    const int64_t *a = first ? sdx_ir_attr_ints(first, "perm", &count_a) : NULL;
    const int64_t *b = sdx_ir_attr_ints(node, "perm", &count_b);
    if (!a || !b || count_a != count_b) return SDX_OK;
    int64_t *joined = sdx_arena_array(ir->arena, (size_t)count_a + 1, sizeof *joined);
    struct sdx_ir_attr *attr = sdx_arena_copy(ir->arena, sdx_ir_attr(node, "perm"), sizeof *attr);
    if (!joined || !attr) return SDX_FAIL_MEMORY(cx);
    for (int64_t i = 0; i < count_b; i++) {
        if (b[i] < 0 || b[i] >= count_a) return SDX_OK; /* the operator's own check tells */
        joined[i] = a[b[i]];
    }
    attr->ints = joined;
    node->attrs = attr;
    node->count_attrs = 1;
    node->inputs[0] = first->inputs[0];
    *changed = true;
    return SDX_OK;
}

/* Does the Reshape's target name every length itself, without "as the input"? */
static bool is_absolute(const struct sdx_ir_graph *g, const struct sdx_ir_node *node)
{
    if (node->count_inputs < 2 || node->inputs[1] < 0) return false;
    const struct sdx_tensor *shape = g->values[node->inputs[1]].constant;
    if (!shape || shape->dtype != SDX_I64 || g->values[node->inputs[1]].flags & SDX_IR_INPUT)
        return false;
    for (int64_t i = 0; i < shape->count; i++)
        if (((const int64_t *)shape->data)[i] == 0) return false;
    return true;
}

static void join_reshapes(const struct sdx_ir_graph *g, struct sdx_ir_node *node, bool *changed)
{
    static const char *const views[] = {"Reshape", "Flatten", "Squeeze", "Unsqueeze"};
    for (int i = 0; i < SDX_COUNT_OF(views); i++) {
        const struct sdx_ir_node *first = maker(g, node, views[i]);
        if (!first || !is_absolute(g, node)) continue;
        node->inputs[0] = first->inputs[0];
        *changed = true;
        return;
    }
}

/* Is every value of `from` a value of `to`? */
static bool is_lossless(int from, int to)
{
    if (from == SDX_BOOL) return to != SDX_STRING && !sdx_dtype_is_complex(to);
    switch (from) {
    case SDX_F16:
    case SDX_BF16: return to == SDX_F32 || to == SDX_F64;
    case SDX_F32: return to == SDX_F64;
    case SDX_I8:
        return to == SDX_I16 || to == SDX_I32 || to == SDX_I64 || to == SDX_F32 || to == SDX_F64;
    case SDX_U8:
        return to == SDX_I16 || to == SDX_I32 || to == SDX_I64 || to == SDX_F32 || to == SDX_F64;
    case SDX_I16: return to == SDX_I32 || to == SDX_I64 || to == SDX_F32 || to == SDX_F64;
    case SDX_I32: return to == SDX_I64 || to == SDX_F64;
    default: return false;
    }
}

static void skip_cast(const struct sdx_ir_graph *g, struct sdx_ir_node *node, bool *changed)
{
    const struct sdx_ir_node *first = maker(g, node, "Cast");
    if (!first) return;
    int from = g->values[first->inputs[0]].type.dtype,
        through = (int)sdx_ir_attr_int(first, "to", 0);
    if (!is_lossless(from, through)) return;
    node->inputs[0] = first->inputs[0];
    *changed = true;
}

enum sdx_status sdx_pass_chains(struct sdx_context *cx, struct sdx_ir *ir, bool *changed)
{
    for (int32_t n_graph = 0; n_graph < ir->count_graphs; n_graph++) {
        struct sdx_ir_graph *g = &ir->graphs[n_graph];
        for (int32_t n = 0; n < g->count_nodes; n++) {
            struct sdx_ir_node *node = &g->nodes[n];
            if (node->is_dead || node->domain.len) continue;
            if (sdx_str_is(node->op_type, "Transpose"))
                SDX_TRY(join_transposes(cx, ir, g, node, changed));
            else if (sdx_str_is(node->op_type, "Reshape"))
                join_reshapes(g, node, changed);
            else if (sdx_str_is(node->op_type, "Cast"))
                skip_cast(g, node, changed);
        }
    }
    return SDX_OK;
}
