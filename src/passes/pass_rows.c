/* SPDX-License-Identifier: Apache-2.0
 * Of tokens [N, L, C] of which only one is read (the class token of a ViT, the first of a BERT that
 * classifies, the last of a language model), what works on each token for itself computes that one:
 * the Gather moves up through normalisations, additions, activations and products with constant
 * weights, so far as nothing else reads their results. Each row is computed as before. */
#include "passes/match.h"
#include "passes/passes.h"

struct work {
    struct sdx_context *cx;
    struct sdx_ir *ir;
    struct sdx_ir_graph *g;
    int32_t count_values;
    int32_t *uses;
    int32_t *taken; /* how many of the uses read `row` instead */
    int32_t *row;   /* the value that is only the one token, -1: none yet */
    int64_t index;  /* of the token */
    int64_t opset;
    int32_t length; /* of axis 1 before: a type's dimension */
};

static const struct sdx_type *type_of(const struct work *w, int32_t value)
{
    return &w->g->values[value].type;
}

/* [N, L, C] of the length in question? */
static bool is_tokens(const struct work *w, int32_t value)
{
    if (value < 0 || value >= w->count_values || sdx_match_constant(w->g, value)) return false;
    const struct sdx_type *type = type_of(w, value);
    return type->kind == SDX_KIND_TENSOR && type->has_shape && type->rank == 3 &&
           type->dims[1] == w->length;
}

/* Has every token the same operand there? */
static bool is_shared(const struct work *w, int32_t value)
{
    const struct sdx_tensor *t = value < 0 ? NULL : sdx_match_constant(w->g, value);
    return t && (t->rank <= 1 || t->count == 1);
}

/* Inputs that are tokens, as bits; 0: the node does not work on each token for itself. */
static unsigned tokens_of(const struct work *w, const struct sdx_ir_node *node)
{
    static const char *const unary[] = {"Relu", "Gelu", "Tanh", "Sigmoid", "Swish", "HardSwish"};
    static const char *const binary[] = {"Add", "Sub", "Mul", "Div"};
    static const char *const norms[] = {"LayerNormalization", "RMSNormalization"};
    const struct sdx_tensor *weights;
    if (node->is_dead || node->domain.len || node->count_inputs < 1 || node->count_outputs < 1)
        return 0;
    const bool first = is_tokens(w, node->inputs[0]);
    for (int k = 1; k < node->count_outputs; k++)
        if (node->outputs[k] >= 0) return 0;
    if (sdx_match_is_one_of(node, unary, SDX_COUNT_OF(unary)))
        return first && node->count_inputs == 1;
    for (int i = 0; i < SDX_COUNT_OF(norms); i++) {
        if (!sdx_str_is(node->op_type, norms[i])) continue;
        const int64_t axis = sdx_ir_attr_int(node, "axis", -1);
        for (int k = 1; k < node->count_inputs; k++)
            if (node->inputs[k] >= 0 && !is_shared(w, node->inputs[k])) return 0;
        return first && (axis == -1 || axis == 2);
    }
    if (sdx_str_is(node->op_type, "MatMul")) {
        weights = node->count_inputs == 2 ? sdx_match_constant(w->g, node->inputs[1]) : NULL;
        return first && weights && weights->rank == 2 && !sdx_match_is_fused(node);
    }
    for (int i = 0; i < SDX_COUNT_OF(binary); i++) {
        if (!sdx_str_is(node->op_type, binary[i]) || node->count_inputs != 2) continue;
        unsigned tokens = 0;
        for (int k = 0; k < 2; k++) {
            const int32_t value = node->inputs[k];
            if (is_tokens(w, value) && sdx_match_same_type(w->g, value, node->outputs[0]))
                tokens |= 1U << k;
            else if (!is_shared(w, value))
                return 0;
        }
        return tokens;
    }
    return 0;
}

/* The value that is the one token of `value`; it has no maker yet. -1: no memory. */
static int32_t row_of(struct work *w, int32_t value)
{
    if (w->row[value] >= 0) return w->row[value];
    const int32_t row = sdx_ir_value_create(w->ir, w->g, w->g->values[value].name);
    int64_t *dims = sdx_arena_array(w->ir->arena, 3, sizeof *dims);
    if (row < 0 || !dims) return -1;
    struct sdx_type *type = &w->g->values[row].type;
    *type = w->g->values[value].type;
    dims[0] = type->dims[0];
    dims[1] = 1;
    dims[2] = type->dims[2];
    type->dims = dims;
    return w->row[value] = row;
}

/* Node n computes the one token of what it made. */
static enum sdx_status narrow(struct work *w, int32_t n, unsigned tokens)
{
    struct sdx_ir_node *node = &w->g->nodes[n];
    const int32_t old = node->outputs[0];
    int32_t *inputs = sdx_arena_copy(w->ir->arena, node->inputs,
                                     (size_t)node->count_inputs * sizeof *node->inputs);
    if (!inputs) return SDX_FAIL_MEMORY(w->cx);
    for (int i = 0; i < node->count_inputs; i++) {
        if (!(i < 2 && tokens >> i & 1)) continue;
        w->taken[inputs[i]]++;
        inputs[i] = row_of(w, inputs[i]);
        if (inputs[i] < 0) return SDX_FAIL_MEMORY(w->cx);
    }
    node->inputs = inputs;
    w->g->values[old].producer = -1;
    sdx_ir_node_set_output(w->g, node, n, 0, w->row[old]);
    return SDX_OK;
}

/* A Gather makes the one token of `value`. */
static enum sdx_status gather(struct work *w, int32_t value)
{
    const int32_t list = sdx_match_add_ints(w->ir, w->g, "token", &w->index, 1);
    const int32_t inputs[] = {value, list};
    struct sdx_ir_node *node =
        list < 0 ? NULL
                 : sdx_match_add_node(w->ir, w->g, "Gather", w->opset, w->g->values[value].name,
                                      inputs, 2, w->row[value], 1);
    if (!node) return SDX_FAIL_MEMORY(w->cx);
    node->attrs[0] = (struct sdx_ir_attr){.name = SDX_STR("axis"), .type = SDX_ATTR_INT, .i = 1};
    return SDX_OK;
}

/* Node n is a Gather of one token? Then it moves up from there. */
static enum sdx_status move_up(struct work *w, int32_t n, bool *did)
{
    const struct sdx_ir_node *node = &w->g->nodes[n];
    const struct sdx_tensor *index = sdx_match_constant(w->g, node->inputs[1]);
    const int32_t x = node->inputs[0];
    double number = 0;
    if (sdx_ir_attr_int(node, "axis", 0) != 1 || !index || index->rank > 1 ||
        !sdx_match_scalar(w->g, node->inputs[1], &number) || x < 0 || x >= w->count_values ||
        !type_of(w, x)->has_shape || type_of(w, x)->rank != 3 || w->uses[x] != 1 ||
        w->g->values[x].producer < 0)
        return SDX_OK;
    const int32_t last = w->g->values[x].producer;
    w->length = (int32_t)type_of(w, x)->dims[1];
    w->index = (int64_t)number;
    w->opset = node->opset;
    if (w->length == 1 || w->length == -1 || type_of(w, x)->dims[1] != w->length ||
        !tokens_of(w, &w->g->nodes[last]))
        return SDX_OK;
    for (int32_t v = 0; v < w->count_values; v++) {
        w->taken[v] = 0;
        w->row[v] = -1;
    }
    const int rank = index->rank;
    const int64_t zero = 0;
    const int32_t first = sdx_match_add_ints(w->ir, w->g, "token", &zero, 1);
    int32_t *inputs = sdx_arena_array(w->ir->arena, 2, sizeof *inputs);
    if (row_of(w, x) < 0 || first < 0 || !inputs) return SDX_FAIL_MEMORY(w->cx);
    if (rank == 0) { /* a scalar drops the axis */
        w->g->values[first].constant->rank = 0;
        w->g->values[first].type.rank = 0;
    }
    inputs[0] = w->row[x];
    inputs[1] = first;
    w->g->nodes[n].inputs = inputs;
    w->taken[x] = 1;
    *did = true;
    for (int32_t m = last; m >= 0; m--) { /* what reads a value comes after what makes it */
        const struct sdx_ir_node *maker = &w->g->nodes[m];
        const int32_t value = maker->count_outputs ? maker->outputs[0] : -1;
        if (value < 0 || value >= w->count_values || w->row[value] < 0) continue;
        const unsigned tokens = w->taken[value] == w->uses[value] ? tokens_of(w, maker) : 0;
        if (tokens) SDX_TRY(narrow(w, m, tokens));
    }
    const int32_t count = w->count_values;
    for (int32_t v = 0; v < count; v++)
        if (w->row[v] >= 0 && w->g->values[w->row[v]].producer < 0) SDX_TRY(gather(w, v));
    return SDX_OK;
}

enum sdx_status sdx_pass_rows(struct sdx_context *cx, struct sdx_ir *ir, bool *changed)
{
    for (int32_t n_graph = 0; n_graph < ir->count_graphs; n_graph++) {
        struct work w = {.cx = cx, .ir = ir, .g = &ir->graphs[n_graph]};
        const int32_t count_nodes = w.g->count_nodes;
        w.count_values = w.g->count_values;
        const size_t count = (size_t)w.count_values + 1;
        w.uses = sdx_arena_array(ir->arena, count, sizeof *w.uses);
        w.taken = sdx_arena_array(ir->arena, count, sizeof *w.taken);
        w.row = sdx_arena_array(ir->arena, count, sizeof *w.row);
        if (!w.uses || !w.taken || !w.row) return SDX_FAIL_MEMORY(cx);
        bool did = false;
        sdx_ir_count_uses(w.g, w.uses);
        for (int32_t n = 0; n < count_nodes && !did; n++)
            if (!w.g->nodes[n].is_dead && !w.g->nodes[n].domain.len &&
                sdx_str_is(w.g->nodes[n].op_type, "Gather"))
                SDX_TRY(move_up(&w, n, &did));
        if (did) SDX_TRY(sdx_ir_sort(cx, ir, w.g));
        *changed = *changed || did;
    }
    return SDX_OK;
}
