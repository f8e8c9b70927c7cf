/* SPDX-License-Identifier: Apache-2.0
 * Nodes of one graph that compute the same from the same values become one (common subexpression
 * elimination). Small constants are compared by content. A node that makes a graph output stays. */
#include "passes/match.h"
#include "passes/passes.h"

enum { CONTENT_MOST = 64 }; /* bytes of a constant that its content stands for */

static void add_number(struct sdx_text *key, int64_t number)
{
    sdx_text_add_bytes(key, &number, sizeof number);
}

static void add_list(struct sdx_text *key, const void *list, int64_t count, size_t size)
{
    add_number(key, count);
    if (count > 0) sdx_text_add_bytes(key, list, (size_t)count * size);
}

static void add_str(struct sdx_text *key, struct sdx_str s)
{
    add_list(key, s.ptr, (int64_t)s.len, 1);
}

static void add_input(struct sdx_text *key, const struct sdx_ir_graph *g, int32_t value)
{
    const struct sdx_tensor *t =
        value >= 0 && !(g->values[value].flags & SDX_IR_INPUT) ? g->values[value].constant : NULL;
    if (t && t->bytes <= CONTENT_MOST) t = sdx_match_constant(g, value); /* with its elements */
    if (!t || t->kind != SDX_KIND_TENSOR || t->dtype == SDX_STRING || t->bytes > CONTENT_MOST) {
        add_number(key, value);
        return;
    }
    add_number(key, INT64_MIN + t->dtype);
    add_list(key, t->dims, t->rank, sizeof *t->dims);
    add_list(key, t->data, (int64_t)t->bytes, 1);
}

/* false: it holds what is not compared. */
static bool add_attr(struct sdx_text *key, const struct sdx_ir_attr *a)
{
    add_str(key, a->name);
    add_number(key, a->type);
    switch (a->type) {
    case SDX_ATTR_INT: add_number(key, a->i); return true;
    case SDX_ATTR_FLOAT: sdx_text_add_bytes(key, &a->f, sizeof a->f); return true;
    case SDX_ATTR_STRING: add_str(key, a->s); return true;
    case SDX_ATTR_INTS: add_list(key, a->ints, a->count, sizeof *a->ints); return true;
    case SDX_ATTR_FLOATS: add_list(key, a->floats, a->count, sizeof *a->floats); return true;
    case SDX_ATTR_STRINGS:
        add_number(key, a->count);
        for (int64_t i = 0; i < a->count; i++)
            add_str(key, a->strings[i]);
        return true;
    default: return false;
    }
}

/* What tells the node from those that compute something else; false: it is not merged. */
static bool make_key(struct sdx_text *key, const struct sdx_ir_graph *g,
                     const struct sdx_ir_node *node)
{
    if (node->is_dead || !node->op || node->op->flags & SDX_OP_IMPURE || node->count_captures ||
        node->count_inputs == 0)
        return false;
    sdx_text_clear(key);
    sdx_text_add_bytes(key, &node->op, sizeof node->op);
    add_str(key, node->op_type);
    add_str(key, node->domain);
    add_number(key, node->opset);
    add_number(key, node->count_inputs);
    for (int32_t i = 0; i < node->count_inputs; i++)
        add_input(key, g, node->inputs[i]);
    for (int32_t a = 0; a < node->count_attrs; a++)
        if (!add_attr(key, &node->attrs[a])) return false;
    return true;
}

/* Does `first` make all that is read of `node`, and may its values stand for those? */
static bool can_stand(const struct sdx_ir_graph *g, const struct sdx_ir_node *first,
                      const struct sdx_ir_node *node)
{
    for (int32_t k = 0; k < node->count_outputs; k++) {
        if (node->outputs[k] < 0) continue;
        if (k >= first->count_outputs || first->outputs[k] < 0 ||
            g->values[node->outputs[k]].flags & SDX_IR_OUTPUT)
            return false;
    }
    return true;
}

static enum sdx_status merge_graph(struct sdx_context *cx, struct sdx_ir *ir, int32_t graph,
                                   struct sdx_arena *keys, bool *changed)
{
    struct sdx_ir_graph *g = &ir->graphs[graph];
    struct sdx_map firsts;
    struct sdx_text key;
    bool ok = true;
    sdx_map_init(&firsts, cx->mem);
    sdx_text_init(&key, cx->mem);
    for (int32_t n = 0; n < g->count_nodes && ok; n++) {
        struct sdx_ir_node *node = &g->nodes[n];
        if (!make_key(&key, g, node)) continue;
        const int32_t first = sdx_map_get(&firsts, (struct sdx_str){key.ptr, key.len});
        if (first < 0) {
            const char *kept = sdx_arena_copy(keys, key.ptr, key.len);
            ok = key.ok && kept && sdx_map_put(&firsts, (struct sdx_str){kept, key.len}, n);
        } else if (can_stand(g, &g->nodes[first], node)) {
            for (int32_t k = 0; k < node->count_outputs; k++)
                if (node->outputs[k] >= 0)
                    sdx_ir_replace_uses(ir, graph, node->outputs[k], g->nodes[first].outputs[k]);
            node->is_dead = true;
            *changed = true;
        }
    }
    sdx_text_deinit(&key);
    sdx_map_deinit(&firsts);
    return ok ? SDX_OK : SDX_FAIL_MEMORY(cx);
}

enum sdx_status sdx_pass_merge(struct sdx_context *cx, struct sdx_ir *ir, bool *changed)
{
    enum sdx_status status = SDX_OK;
    for (int32_t g = 0; g < ir->count_graphs && status == SDX_OK; g++) {
        struct sdx_arena keys;
        sdx_arena_init(&keys, cx->mem, SDX_MEM_OTHER);
        status = merge_graph(cx, ir, g, &keys, changed);
        sdx_arena_deinit(&keys);
    }
    return status;
}
