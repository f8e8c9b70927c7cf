/* SPDX-License-Identifier: Apache-2.0
 * f16 and bf16 graphs become f32 ones, so that every pass, layout and kernel serves them. Operators
 * that compute in f32 anyway (SDX_OP_VIA_F32) take and give f32 values; those that only move data
 * let such values through; a value is rounded only where something else reads it: a graph output, a
 * body, an operator of whole numbers or one whose result jumps (Floor, Equal, ArgMax). The
 * roundings between operators are dropped, which is more accurate and what other engines do; only
 * graphs without weights keep them, as they gain nothing. Large constants, and weights of products
 * whatever their size, stay as narrow as they are in the file, and so do caches of attention.
 * Re-associates; see docs/adr/0012-narrow-floats.md. */
#include "passes/match.h"
#include "passes/passes.h"
#include "tensor/convert.h"

enum { SMALL = 65536 }; /* elements: larger constants stay narrow where they can */

struct work {
    struct sdx_context *cx;
    struct sdx_ir *ir;
    int32_t graph;
    int32_t *wide; /* the f32 twin of each value that was there at first; -1: none yet */
    int32_t count; /* of them */
    bool did;
};

static struct sdx_ir_graph *graph_of(const struct work *w)
{
    return &w->ir->graphs[w->graph];
}

static bool is_narrow(const struct work *w, int32_t value)
{
    if (value < 0 || value >= w->count) return false;
    const struct sdx_type *t = &graph_of(w)->values[value].type;
    return t->kind == SDX_KIND_TENSOR && (t->dtype == SDX_F16 || t->dtype == SDX_BF16);
}

/* Results that jump where an operand changes by its last bit: they see the rounded values. */
static bool jumps(const struct sdx_ir_node *node)
{
    static const char *const names[] = {"Floor",  "Ceil",   "Round",       "Mod",
                                        "Sign",   "Equal",  "Less",        "Greater",
                                        "IsInf",  "IsNaN",  "LessOrEqual", "GreaterOrEqual",
                                        "ArgMax", "ArgMin", "Hardmax",     "TreeEnsemble"};
    return sdx_match_is_one_of(node, names, SDX_COUNT_OF(names));
}

static bool moves(const struct sdx_ir_node *node)
{
    static const char *const names[] = {
        "Reshape",       "Transpose",      "Concat",  "Slice",     "Split",
        "Gather",        "Flatten",        "Squeeze", "Unsqueeze", "Identity",
        "Pad",           "Expand",         "Tile",    "GatherND",  "DepthToSpace",
        "SpaceToDepth",  "GatherElements", "Where",   "Trilu",     "Compress",
        "CenterCropPad", "ReverseSequence"};
    return !node->domain.len && sdx_match_is_one_of(node, names, SDX_COUNT_OF(names));
}

/* Weights, which kernels decode where they use them; DeformConv's are converted in each run. */
static bool is_weight(const struct sdx_ir_node *node, int i)
{
    if (i != 1 || !node->op) return false;
    return node->op->flags & SDX_OP_NARROW_WEIGHTS || sdx_str_is(node->op_type, "DeformConv");
}

/* A cache, or a constant, that stays as it is when it is input i of a node that computes. */
static bool stays(const struct work *w, const struct sdx_ir_node *node, int i)
{
    if (sdx_op_is_cache_in(node->op, i)) return true;
    const struct sdx_tensor *t = sdx_ir_constant(w->ir, w->graph, node->inputs[i]);
    return t && (t->count > SMALL || is_weight(node, i));
}

/* Is the model worth it: does a product have constant narrow weights, or low-bit ones? */
static bool has_weights(struct work *w)
{
    for (w->graph = 0; w->graph < w->ir->count_graphs; w->graph++) {
        const struct sdx_ir_graph *g = graph_of(w);
        w->count = g->count_values;
        for (int32_t n = 0; n < g->count_nodes; n++) {
            const struct sdx_ir_node *node = &g->nodes[n];
            if (node->is_dead || node->count_inputs < 2) continue;
            if (sdx_str_is(node->op_type, "MatMulNBits") && is_narrow(w, node->inputs[0]))
                return true;
            if (is_weight(node, 1) && is_narrow(w, node->inputs[1]) &&
                sdx_ir_constant(w->ir, w->graph, node->inputs[1]))
                return true;
        }
    }
    return false;
}

/* Output k is a cache whose type is that of the one before. */
static bool leaves_cache(const struct work *w, const struct sdx_ir_node *node, int k)
{
    return node->op && sdx_op_is_cache_out(node->op, k) && node->count_inputs > k + 2 &&
           is_narrow(w, node->inputs[k + 2]);
}

static bool must_widen(const struct work *w, const struct sdx_ir_node *node)
{
    if (node->is_dead || !node->op) return false;
    if (moves(node)) {
        for (int i = 0; i < node->count_inputs; i++)
            if (is_narrow(w, node->inputs[i]) && w->wide[node->inputs[i]] >= 0 &&
                !sdx_ir_constant(w->ir, w->graph, node->inputs[i]))
                return true;
        return false;
    }
    if (!(node->op->flags & SDX_OP_VIA_F32) || jumps(node)) return false;
    for (int i = 0; i < node->count_inputs; i++)
        if (is_narrow(w, node->inputs[i]) && !stays(w, node, i)) return true;
    for (int k = 0; k < node->count_outputs; k++)
        if (is_narrow(w, node->outputs[k])) return true;
    return false;
}

static int32_t twin_of(struct work *w, int32_t like)
{
    return sdx_match_f32_like(w->ir, graph_of(w), like);
}
static enum sdx_status add_cast(struct work *w, int32_t from, int32_t to)
{
    return sdx_match_add_cast(w->ir, graph_of(w), from, to) ? SDX_OK : SDX_FAIL_MEMORY(w->cx);
}

static enum sdx_status widen_constant(struct work *w, const struct sdx_tensor *from, int32_t to)
{
    struct sdx_tensor *t = sdx_arena_alloc(w->ir->arena, sizeof *t);
    if (!t) return SDX_FAIL_MEMORY(w->cx);
    *t = (struct sdx_tensor){.kind = SDX_KIND_TENSOR,
                             .dtype = SDX_F32,
                             .rank = from->rank,
                             .count = from->count,
                             .bytes = (size_t)from->count * sizeof(float),
                             .is_constant = true,
                             .in_model = true};
    t->dims = from->rank ? sdx_arena_copy(w->ir->arena, from->dims,
                                          (size_t)from->rank * sizeof *from->dims)
                         : t->dims_inline;
    t->data = sdx_arena_alloc(w->ir->arena, t->bytes + 64);
    if (!t->dims || !t->data) return SDX_FAIL_MEMORY(w->cx);
    for (int64_t i = 0; i < from->count; i++)
        ((float *)t->data)[i] = (float)sdx_load_f64(from->dtype, from->data, i);
    graph_of(w)->values[to].constant = t;
    return SDX_OK;
}

/* The value that a Cast of the model rounded to `value`, if it is one that f32 holds as well. */
static int32_t cast_from(const struct work *w, int32_t value)
{
    const struct sdx_ir_graph *g = graph_of(w);
    const struct sdx_ir_node *cast = sdx_match_maker(g, value, "Cast");
    if (!cast) return -1;
    const int dtype = g->values[cast->inputs[0]].type.dtype;
    const bool fits = dtype == SDX_F32 || dtype == SDX_BOOL || sdx_dtype_is_integer(dtype);
    return fits ? cast->inputs[0] : -1;
}

/* The f32 twin of a narrow value, made when it is not there. */
static enum sdx_status widen(struct work *w, int32_t value, int32_t *twin)
{
    if (w->wide[value] < 0) {
        const struct sdx_tensor *t = sdx_ir_constant(w->ir, w->graph, value);
        int32_t from = t ? -1 : cast_from(w, value);
        if (from >= 0 && graph_of(w)->values[from].type.dtype == SDX_F32) {
            w->wide[value] = from;
        } else {
            const int32_t made = twin_of(w, value);
            if (made < 0) return SDX_FAIL_MEMORY(w->cx);
            if (t)
                SDX_TRY(widen_constant(w, t, made));
            else
                SDX_TRY(add_cast(w, from >= 0 ? from : value, made));
            w->wide[value] = made;
        }
    }
    *twin = w->wide[value];
    return SDX_OK;
}

static enum sdx_status widen_node(struct work *w, int32_t n)
{
    const bool is_move = moves(&graph_of(w)->nodes[n]);
    for (int i = 0; i < graph_of(w)->nodes[n].count_inputs; i++) {
        const struct sdx_ir_node *node = &graph_of(w)->nodes[n];
        int32_t twin = -1;
        if (!is_narrow(w, node->inputs[i]) || (!is_move && stays(w, node, i))) continue;
        SDX_TRY(widen(w, node->inputs[i], &twin));
        graph_of(w)->nodes[n].inputs[i] = twin;
    }
    for (int k = 0; k < graph_of(w)->nodes[n].count_outputs; k++) {
        const int32_t value = graph_of(w)->nodes[n].outputs[k];
        if (!is_narrow(w, value) || leaves_cache(w, &graph_of(w)->nodes[n], k)) continue;
        const int32_t twin = twin_of(w, value);
        if (twin < 0) return SDX_FAIL_MEMORY(w->cx);
        w->wide[value] = twin;
        graph_of(w)->values[value].producer = -1;
        sdx_ir_node_set_output(graph_of(w), &graph_of(w)->nodes[n], n, k, twin);
    }
    w->did = true;
    return SDX_OK;
}

/* A Cast of the model back to f32 takes the value that was not rounded; but a rounding that the
 * model spells, Cast behind Cast, stays. */
static void skip_rounding(struct work *w, const struct sdx_ir_node *cast)
{
    const int32_t value = cast->inputs[0];
    if (sdx_ir_attr_int(cast, "to", 0) != SDX_F32 || !is_narrow(w, value) || w->wide[value] < 0 ||
        graph_of(w)->values[value].producer >= 0 || sdx_ir_constant(w->ir, w->graph, value))
        return;
    cast->inputs[0] = w->wide[value];
    w->did = true;
}

/* What narrow readers are left of values that are made wide now. */
static enum sdx_status round_outputs(struct work *w)
{
    struct sdx_ir_graph *g = graph_of(w);
    int32_t *uses = sdx_ir_uses(g, w->ir->arena);
    if (!uses) return SDX_FAIL_MEMORY(w->cx);
    for (int32_t v = 0; v < w->count; v++) {
        const struct sdx_ir_value *value = &graph_of(w)->values[v];
        if (w->wide[v] < 0 || uses[v] == 0 || value->producer >= 0 || value->constant ||
            value->outer >= 0 || value->flags & SDX_IR_INPUT)
            continue;
        SDX_TRY(add_cast(w, w->wide[v], v));
    }
    return SDX_OK;
}

static enum sdx_status widen_graph(struct work *w)
{
    const int32_t count_nodes = graph_of(w)->count_nodes;
    w->count = graph_of(w)->count_values;
    w->did = false;
    w->wide = sdx_arena_array(w->ir->arena, (size_t)w->count + 1, sizeof *w->wide);
    if (!w->wide) return SDX_FAIL_MEMORY(w->cx);
    for (int32_t v = 0; v < w->count; v++)
        w->wide[v] = -1;
    for (int32_t n = 0; n < count_nodes; n++) {
        const struct sdx_ir_node *node = &graph_of(w)->nodes[n];
        if (must_widen(w, node))
            SDX_TRY(widen_node(w, n));
        else if (!node->is_dead && !node->domain.len && sdx_str_is(node->op_type, "Cast"))
            skip_rounding(w, node);
    }
    if (!w->did) return SDX_OK;
    SDX_TRY(round_outputs(w));
    return sdx_ir_sort(w->cx, w->ir, graph_of(w));
}

enum sdx_status sdx_pass_narrow(struct sdx_context *cx, struct sdx_ir *ir, bool *changed)
{
    struct work w = {.cx = cx, .ir = ir};
    if (!has_weights(&w)) return SDX_OK;
    for (w.graph = 0; w.graph < ir->count_graphs; w.graph++) {
        SDX_TRY(widen_graph(&w));
        *changed = *changed || w.did;
    }
    return SDX_OK;
}
