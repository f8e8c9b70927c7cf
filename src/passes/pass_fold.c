/* SPDX-License-Identifier: Apache-2.0
 * Constant folding: nodes whose inputs are all constants are evaluated once, and what asks for a
 * shape that is known. Results larger than 1 MiB that are larger than their inputs stay nodes, so
 * that a small file cannot grow without bound; but for what Constant holds, and for weights that
 * are dequantised, as what takes them wants to pack them once. */
#include "ops/step_host.h"
#include "passes/passes.h"

enum {
    FREE_BYTES = 1024 * 1024,
    SHARED_BYTES = 64 * FREE_BYTES,
    ALIAS_BYTES = 4096,
    LARGE_BYTES = 64 * 1024, /* of a result that has memory of its own */
    TWIN_BYTES = 4096,       /* of results that are there once, if their elements are the same */
    FLOATS_OF_BYTE = 2       /* in a byte, of 4 bits each */
};

/* A value that became a constant: its elements lie in `own` or in the sweep's memory. */
struct result {
    struct result *next;
    int32_t graph, value;
    struct sdx_arena own;
};

/* One sweep over the nodes. Elements of results have memory until it ends, as most of them are
 * folded on; large ones until the last of their readers is. */
struct sweep {
    struct sdx_arena work;
    struct result *results;
    /* of the values of the graph at hand: */
    struct result **of;
    int32_t *uses; /* by nodes that are left, and outputs */
    size_t left;   /* of SHARED_BYTES */
};

/* What is known of a value of the main graph, whatever the file declares for it: that its shape
 * follows from those of the graph's inputs, or its elements too. */
enum { SHAPE_FOLLOWS = 1, VALUE_FOLLOWS = 2, ALL_FOLLOWS = 3 };

static bool asks_shape(const struct sdx_ir_node *node)
{
    return !node->domain.len &&
           (sdx_str_is(node->op_type, "Shape") || sdx_str_is(node->op_type, "Size"));
}

/* Do the values of inputs after the first leave the shapes of the outputs alone? */
static bool is_shaped_by_shapes(const struct sdx_ir_node *node)
{
    static const char *const ops[] = {"Gather",
                                      "GatherElements",
                                      "Where",
                                      "Concat",
                                      "Add",
                                      "Sub",
                                      "Mul",
                                      "Div",
                                      "Equal",
                                      "Less",
                                      "Greater",
                                      "LessOrEqual",
                                      "GreaterOrEqual",
                                      "And",
                                      "Or"};
    for (int i = 0; i < SDX_COUNT_OF(ops) && !node->domain.len; i++)
        if (sdx_str_is(node->op_type, ops[i])) return true;
    return false;
}

static uint8_t follows(const struct sdx_ir *ir, const struct sdx_ir_node *node,
                       const uint8_t *known)
{
    const struct sdx_ir_graph *g = &ir->graphs[0];
    uint8_t all = ALL_FOLLOWS;
    if (!node->op || node->op->flags & (SDX_OP_DYNAMIC | SDX_OP_TOLD_LATE | SDX_OP_IMPURE))
        return 0;
    for (int i = 0; i < node->count_inputs; i++) {
        if (node->inputs[i] < 0) continue;
        const uint8_t of =
            sdx_ir_constant(ir, 0, node->inputs[i]) ? ALL_FOLLOWS : known[node->inputs[i]];
        const int dtype = g->values[node->inputs[i]].type.dtype;
        /* the output's shape may depend on whole numbers, as Reshape's does */
        const bool is_real = dtype == SDX_F32 || dtype == SDX_F16 || dtype == SDX_F64;
        if (i > 0 && !(of & VALUE_FOLLOWS) && !is_real && !is_shaped_by_shapes(node)) return 0;
        all &= of;
    }
    if (asks_shape(node) && all & SHAPE_FOLLOWS) return ALL_FOLLOWS;
    return all;
}

/* What stands for an input of which only the shape is asked, where that is known: a header. The
 * shapes of a body's values may change from one of its runs to the next. */
static enum sdx_status header_of(struct sdx_context *cx, struct sdx_ir *ir,
                                 const struct sdx_ir_node *node, const struct sdx_tensor **in)
{
    const struct sdx_type *t = &ir->graphs[0].values[node->inputs[0]].type;
    if (t->kind != SDX_KIND_TENSOR || !t->has_shape) return SDX_OK;
    for (int d = 0; d < t->rank; d++)
        if (t->dims[d] < 0) return SDX_OK;
    *in = sdx_op_tensor(cx, ir->arena, t->dtype, t->rank, t->dims);
    return *in ? SDX_OK : cx->error.status;
}

/* The tensor of a node Constant, which stays where the file has it, however large. */
static struct sdx_tensor *held(const struct sdx_ir_node *node)
{
    if (node->domain.len || !sdx_str_is(node->op_type, "Constant") || node->count_outputs != 1 ||
        node->count_attrs != 1)
        return NULL;
    return node->attrs[0].tensor;
}

/* What reads it will read its input (pass `identity`), which is no small one to be there twice. */
static bool is_alias(const struct sdx_ir_node *node, int32_t graph, size_t bytes)
{
    return graph == 0 && bytes > ALIAS_BYTES && !node->domain.len &&
           sdx_str_is(node->op_type, "Identity");
}

static bool only_repeats(const struct sdx_ir_node *node)
{
    return sdx_str_is(node->op_type, "Expand") || sdx_str_is(node->op_type, "Tile") ||
           sdx_str_is(node->op_type, "ConstantOfShape");
}

/* The value is constant `t` from now on. `own`: where its elements lie, which the result takes
 * over; NULL: in the model's memory. */
static enum sdx_status become_constant(struct sdx_context *cx, struct sdx_ir *ir,
                                       struct sweep *sweep, int32_t graph, int32_t value,
                                       struct sdx_tensor *t, struct sdx_arena *own)
{
    struct sdx_ir_value *v = &ir->graphs[graph].values[value];
    if (own) {
        struct sdx_tensor *header = sdx_arena_copy(ir->arena, t, sizeof *t);
        struct result *result = sdx_arena_alloc(&sweep->work, sizeof *result);
        if (!header || !result) return SDX_FAIL_MEMORY(cx);
        header->dims = header->dims_inline;
        if (t->dims != t->dims_inline)
            header->dims = sdx_arena_copy(ir->arena, t->dims, (size_t)t->rank * sizeof *t->dims);
        if (!header->dims) return SDX_FAIL_MEMORY(cx);
        *result = (struct result){sweep->results, graph, value, *own};
        sdx_arena_init(own, cx->mem, SDX_MEM_PLAN);
        sweep->results = sweep->of[value] = result;
        t = header;
    }
    t->in_model = true;
    v->constant = t;
    v->producer = -1;
    v->type = (struct sdx_type){.kind = SDX_KIND_TENSOR,
                                .dtype = t->dtype,
                                .has_shape = true,
                                .rank = t->rank,
                                .dims = t->dims};
    return SDX_OK;
}

/* The node is folded: of what nobody else reads large results are gone, and files leave memory. */
static void let_go(struct sdx_ir *ir, struct sweep *sweep, int32_t graph,
                   const struct sdx_ir_node *node)
{
    for (int i = 0; i < node->count_inputs; i++) {
        const int32_t value = node->inputs[i];
        if (value < 0 || --sweep->uses[value] > 0) continue;
        struct sdx_tensor **t = &ir->graphs[graph].values[value].constant;
        if (sweep->of[value]) {
            sdx_arena_deinit(&sweep->of[value]->own);
            *t = NULL;
        } else if (*t && ir->drop) {
            ir->drop(ir->user, *t);
        }
    }
}

/* knows_shape: that of input 0 follows from the graph's inputs. */
static enum sdx_status fold_node(struct sdx_context *cx, struct sdx_ir *ir, struct sweep *sweep,
                                 int32_t graph, struct sdx_ir_node *node, bool knows_shape,
                                 bool *folded)
{
    const struct sdx_tensor *in_small[16] = {0}, **in = in_small;
    struct sdx_tensor *out[16] = {0};
    size_t bytes_in = 0, bytes_out = 0;
    *folded = false;
    if (node->count_outputs > 16 || node->count_outputs < 1) return SDX_OK;
    if (node->count_inputs > 16) {
        in = sdx_arena_array(ir->arena, (size_t)node->count_inputs, sizeof *in);
        if (!in) return SDX_FAIL_MEMORY(cx);
    }
    for (int i = 0; i < node->count_inputs; i++) {
        if (node->inputs[i] < 0) continue;
        in[i] = sdx_ir_constant(ir, graph, node->inputs[i]);
        if (!in[i] && knows_shape && asks_shape(node)) SDX_TRY(header_of(cx, ir, node, &in[i]));
        if (!in[i]) return SDX_OK;
        bytes_in += in[i]->bytes;
    }
    if (is_alias(node, graph, bytes_in)) return SDX_OK;
    if (sdx_str_is(node->op_type, "DequantizeLinear")) bytes_in *= FLOATS_OF_BYTE * sizeof(float);
    const size_t least = bytes_in > FREE_BYTES ? bytes_in : FREE_BYTES;
    const size_t limit = only_repeats(node) || sweep->left < least ? least : sweep->left;
    out[0] = held(node);
    const bool is_result = !out[0], is_large = node->count_outputs == 1 && bytes_in > LARGE_BYTES;
    *folded = !is_result;
    enum sdx_status status = SDX_OK;
    struct sdx_arena own;
    sdx_arena_init(&own, cx->mem, SDX_MEM_PLAN);
    if (is_result)
        status = sdx_op_eval(cx, is_large ? &own : &sweep->work, ir, node, in, out, limit, folded);
    for (int k = 0; status == SDX_OK && *folded && k < node->count_outputs; k++) {
        if (node->outputs[k] < 0) continue;
        status = become_constant(cx, ir, sweep, graph, node->outputs[k], out[k],
                                 is_result ? &own : NULL);
        bytes_out += out[k]->bytes;
    }
    sdx_arena_deinit(&own);
    if (status == SDX_RUN_FAILED) { /* the run says so, if it comes here: a branch may not */
        sdx_context_clear(cx);
        *folded = false;
        return SDX_OK;
    }
    if (status != SDX_OK)
        return sdx_fail_where(cx, "node \"%.*s\" (%.*s)", SDX_STR_ARG(node->name),
                              SDX_STR_ARG(node->op_type));
    if (is_result && *folded && bytes_out > least) sweep->left -= bytes_out;
    if (*folded) let_go(ir, sweep, graph, node);
    if (*folded) node->is_dead = true;
    return SDX_OK;
}

static enum sdx_status fold_nodes(struct sdx_context *cx, struct sdx_ir *ir, struct sweep *sweep,
                                  bool all, bool *changed)
{
    uint8_t *known =
        sdx_arena_array(ir->arena, (size_t)ir->graphs[0].count_values + 1, sizeof *known);
    if (!known) return SDX_FAIL_MEMORY(cx);
    for (int32_t i = 0; i < ir->graphs[0].count_inputs; i++)
        known[ir->graphs[0].inputs[i]] = SHAPE_FOLLOWS;
    for (int32_t g = 0; g < ir->count_graphs; g++) {
        sweep->uses = sdx_ir_uses(&ir->graphs[g], &sweep->work);
        sweep->of = sdx_arena_array(&sweep->work, (size_t)ir->graphs[g].count_values + 1,
                                    sizeof(struct result *));
        if (!sweep->uses || !sweep->of) return SDX_FAIL_MEMORY(cx);
        for (int32_t n = 0; n < ir->graphs[g].count_nodes; n++) {
            struct sdx_ir_node *node = &ir->graphs[g].nodes[n];
            bool folded = false;
            if (node->is_dead) continue;
            const uint8_t of = g == 0 ? follows(ir, node, known) : 0;
            for (int k = 0; g == 0 && k < node->count_outputs; k++)
                if (node->outputs[k] >= 0) known[node->outputs[k]] = of;
            if (!all && sdx_str_is(node->op_type, "DequantizeLinear")) continue;
            if (node->op) SDX_TRY(fold_node(cx, ir, sweep, g, node, of & VALUE_FOLLOWS, &folded));
            *changed = *changed || folded;
        }
    }
    return SDX_OK;
}

/* What stays of the results before `end` and has the same elements as that; NULL: nothing. */
static void *find_twin(const struct sdx_ir *ir, const struct result *kept, const struct result *end)
{
    const struct sdx_tensor *t = ir->graphs[end->graph].values[end->value].constant;
    if (t->bytes < TWIN_BYTES || t->dtype == SDX_STRING) return NULL;
    for (; kept != end; kept = kept->next) {
        const struct sdx_tensor *u = ir->graphs[kept->graph].values[kept->value].constant;
        if (u && u->dtype == t->dtype && u->bytes == t->bytes &&
            memcmp(u->data, t->data, t->bytes) == 0)
            return u->data;
    }
    return NULL;
}

/* Results that are read get a place in the model's memory, the others are values of nothing. As
 * each layer of some networks makes its own mask or places, many are the same. */
static enum sdx_status keep_results(struct sdx_context *cx, struct sdx_ir *ir, struct sweep *sweep)
{
    int32_t graph = -1, *uses = NULL;
    for (struct result *result = sweep->results; result; result = result->next) {
        const struct sdx_ir_graph *g = &ir->graphs[result->graph];
        if (graph != result->graph) {
            uses = sdx_ir_uses(g, &sweep->work);
            if (!uses) return SDX_FAIL_MEMORY(cx);
            graph = result->graph;
        }
        struct sdx_ir_value *v = &g->values[result->value];
        if (!uses[result->value]) v->constant = NULL;
        if (!v->constant) continue;
        void *data = find_twin(ir, sweep->results, result);
        if (!data) {
            data = sdx_arena_alloc(ir->arena, v->constant->bytes + 64);
            if (!data) return SDX_FAIL_MEMORY(cx);
            if (v->constant->bytes) memcpy(data, v->constant->data, v->constant->bytes);
        }
        v->constant->data = data;
        sdx_arena_deinit(&result->own);
    }
    return SDX_OK;
}

static enum sdx_status fold(struct sdx_context *cx, struct sdx_ir *ir, bool all, bool *changed)
{
    struct sweep sweep = {.left = SHARED_BYTES};
    sdx_arena_init(&sweep.work, cx->mem, SDX_MEM_PLAN);
    enum sdx_status status = fold_nodes(cx, ir, &sweep, all, changed);
    if (status == SDX_OK) status = keep_results(cx, ir, &sweep);
    for (struct result *result = sweep.results; result; result = result->next)
        sdx_arena_deinit(&result->own);
    sdx_arena_deinit(&sweep.work);
    return status;
}

/* Lengths of the main graph that are not known. */
static int64_t count_unknown(const struct sdx_ir *ir)
{
    const struct sdx_ir_graph *g = &ir->graphs[0];
    int64_t count = 0;
    for (int32_t n = 0; n < g->count_nodes; n++) {
        for (int k = 0; k < g->nodes[n].count_outputs && !g->nodes[n].is_dead; k++) {
            if (g->nodes[n].outputs[k] < 0) continue;
            const struct sdx_type *t = &g->values[g->nodes[n].outputs[k]].type;
            if (t->kind != SDX_KIND_TENSOR) continue;
            count += !t->has_shape;
            for (int d = 0; t->has_shape && d < t->rank; d++)
                count += t->dims[d] < 0;
        }
    }
    return count;
}

/* A shape may follow from what was folded, and more can be folded then: sizes that are reckoned
 * with floats are known one after the other. */
static enum sdx_status fold_known(struct sdx_context *cx, struct sdx_ir *ir, bool all,
                                  bool *changed)
{
    for (int64_t unknown = INT64_MAX;;) {
        bool did = false;
        SDX_TRY(fold(cx, ir, all, &did));
        *changed = *changed || did;
        const int64_t left = did ? count_unknown(ir) : 0;
        if (left == 0 || left >= unknown) return SDX_OK;
        unknown = left;
        SDX_TRY(sdx_passes_infer(cx, ir));
    }
}

enum sdx_status sdx_pass_fold(struct sdx_context *cx, struct sdx_ir *ir, bool *changed)
{
    return fold_known(cx, ir, false, changed);
}

enum sdx_status sdx_pass_fold_all(struct sdx_context *cx, struct sdx_ir *ir, bool *changed)
{
    return fold_known(cx, ir, true, changed);
}
