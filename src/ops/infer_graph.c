/* SPDX-License-Identifier: Apache-2.0
 * Inference over a whole model: nodes in order, bodies when their node asks for them, results
 * merged with what the file declares. What was inferred wins over a declared shape; a declared
 * element type or kind that contradicts it is a fault. */
#include "ops/infer.h"
#include "ops/op.h"

enum { SMALL = 16, INTS_MAX = 4096 };

struct graph_state {
    const struct sdx_ints **ints; /* for each value, NULL: not known */
    struct sdx_type *declared;    /* of each value, as the file has it; SDX_INFER_STRICT only */
    bool visited;
};

struct host {
    struct sdx_context *cx;
    struct sdx_ir *ir;
    struct graph_state *graphs;
    int32_t graph; /* of the node being inferred */
    uint32_t flags;
    sdx_infer_fault_fn fault;
    void *user;
};

static enum sdx_status infer_graph(struct host *h, int32_t graph);

/* The tensor behind a value that sdx_ir_constant does not see: the attribute of a node Constant,
 * and the initializer of an input where that holds. */
static const struct sdx_tensor *other_constant(const struct host *h, int32_t value)
{
    for (int32_t graph = h->graph; graph >= 0 && value >= 0; graph = h->ir->graphs[graph].parent) {
        const struct sdx_ir_graph *g = &h->ir->graphs[graph];
        const struct sdx_ir_value *v = &g->values[value];
        if (v->constant) return h->flags & SDX_INFER_DEFAULTS_HOLD ? v->constant : NULL;
        if (v->producer >= 0) {
            const struct sdx_ir_node *node = &g->nodes[v->producer];
            const struct sdx_ir_attr *attr = sdx_ir_attr(node, "value");
            if (!attr || attr->type != SDX_ATTR_TENSOR || node->domain.len) return NULL;
            return sdx_str_is(node->op_type, "Constant") ? attr->tensor : NULL;
        }
        value = v->outer;
    }
    return NULL;
}

static const struct sdx_tensor *host_value(struct sdx_infer *ix, int i)
{
    const struct host *h = ix->host;
    const struct sdx_tensor *t = sdx_ir_constant(h->ir, h->graph, ix->node->inputs[i]);
    if (!t) t = other_constant(h, ix->node->inputs[i]);
    return t && t->needs_copy ? NULL : t;
}

static bool host_ints(struct sdx_infer *ix, int i, struct sdx_ints *out)
{
    const struct host *h = ix->host;
    const struct sdx_tensor *t = host_value(ix, i);
    if (t) return t->count <= INTS_MAX && sdx_infer_tensor_ints(ix, t, out);
    int32_t graph = h->graph, value = ix->node->inputs[i];
    while (graph >= 0 && value >= 0) {
        const struct sdx_ints *known = h->graphs[graph].ints ? h->graphs[graph].ints[value] : NULL;
        if (known) {
            *out = *known;
            return true;
        }
        value = h->ir->graphs[graph].values[value].outer;
        graph = h->ir->graphs[graph].parent;
    }
    return false;
}

/* Lengths that cannot be told become symbols without names, so that what has the same length later
 * on is known to. */
static enum sdx_status name_unknown(struct host *h, struct sdx_type *type)
{
    bool any = false;
    for (int d = 0; type->kind == SDX_KIND_TENSOR && type->has_shape && d < type->rank; d++)
        any = any || type->dims[d] == -1;
    if (!any) return SDX_OK;
    int64_t *dims = sdx_arena_copy(h->ir->arena, type->dims, (size_t)type->rank * sizeof *dims);
    for (int d = 0; dims && d < type->rank; d++) {
        if (dims[d] != -1) continue;
        dims[d] = sdx_ir_symbol_new(h->ir);
        if (!dims[d]) return SDX_FAIL_MEMORY(h->cx);
    }
    type->dims = dims;
    return dims ? SDX_OK : SDX_FAIL_MEMORY(h->cx);
}

/* SDX_INFER_STRICT: the shape found against the one that the file declares. */
static enum sdx_status compare_shapes(struct host *h, struct sdx_str name,
                                      const struct sdx_type *declared, const struct sdx_type *found)
{
    for (; declared && found; declared = declared->elem, found = found->elem) {
        if (declared->kind != found->kind || !declared->has_shape || !found->has_shape) continue;
        if (declared->rank != found->rank)
            return SDX_FAIL(h->cx, SDX_BAD_MODEL, "value \"%.*s\" is declared of rank %d, found %d",
                            SDX_STR_ARG(name), declared->rank, found->rank);
        for (int d = 0; d < found->rank; d++)
            if (declared->dims[d] >= 0 && found->dims[d] >= 0 &&
                declared->dims[d] != found->dims[d])
                return SDX_FAIL(h->cx, SDX_BAD_MODEL,
                                "value \"%.*s\": dimension %d is declared %lld, found %lld",
                                SDX_STR_ARG(name), d, (long long)declared->dims[d],
                                (long long)found->dims[d]);
    }
    return SDX_OK;
}

/* A length that is reckoned from another one is told from the others by that, whatever it is
 * called: it takes the name that was declared for it first. But outputs stay what the file calls
 * them. */
static int64_t complete_length(struct host *h, int64_t found, int64_t declared, bool is_output)
{
    if (found >= 0 || declared == -1) return found;
    if (sdx_ir_symbol_has_name(h->ir, found))
        return h->flags & SDX_INFER_STRICT && declared >= 0 ? declared : found;
    if (found == -1 || declared >= 0 || is_output) return declared;
    struct sdx_ir_symbol *symbol = &h->ir->symbols[-(found + 2)];
    if (!symbol->length.dim) return declared;
    if (h->graph == 0 && sdx_ir_symbol_has_name(h->ir, declared))
        symbol->name = h->ir->symbols[-(declared + 2)].name;
    return found;
}

/* `type` completed by what was declared. */
static enum sdx_status complete(struct host *h, struct sdx_type *type,
                                const struct sdx_type *declared, bool is_output)
{
    if (declared->kind != type->kind) return SDX_OK;
    if (!type->dtype) type->dtype = declared->dtype;
    if (!type->elem) {
        type->elem = declared->elem;
    } else if (declared->elem) {
        struct sdx_type *elem = sdx_arena_copy(h->ir->arena, type->elem, sizeof *elem);
        if (!elem) return SDX_FAIL_MEMORY(h->cx);
        type->elem = elem;
        return complete(h, elem, declared->elem, is_output);
    }
    if (!declared->has_shape) return SDX_OK;
    if (!type->has_shape) {
        type->has_shape = true;
        type->rank = declared->rank;
        type->dims = declared->dims;
    } else if (declared->rank == type->rank) {
        int64_t *dims = sdx_arena_array(h->ir->arena, (size_t)type->rank + 1, sizeof *dims);
        if (!dims) return SDX_FAIL_MEMORY(h->cx);
        for (int d = 0; d < type->rank; d++) {
            dims[d] = complete_length(h, type->dims[d], declared->dims[d], is_output);
        }
        type->dims = dims;
    }
    return SDX_OK;
}

/* The type of a value now becomes `found`, completed by what was declared. */
static enum sdx_status merge(struct host *h, struct sdx_ir_value *v, const struct sdx_type *found)
{
    if (found->kind == SDX_KIND_NONE) return SDX_OK;
    const struct sdx_type *declared = &v->type;
    char a[200], b[200];
    bool clash = declared->kind != SDX_KIND_NONE && declared->kind != found->kind;
    if (!clash && declared->kind == SDX_KIND_TENSOR && declared->dtype && found->dtype)
        clash = declared->dtype != found->dtype;
    if (clash)
        return SDX_FAIL(h->cx, SDX_BAD_MODEL, "value \"%.*s\" is declared %s, found %s",
                        SDX_STR_ARG(v->name), sdx_ir_type_describe(h->ir, declared, a, sizeof a),
                        sdx_ir_type_describe(h->ir, found, b, sizeof b));
    struct sdx_type merged = *found;
    SDX_TRY(complete(h, &merged, declared, v->flags & SDX_IR_OUTPUT));
    SDX_TRY(name_unknown(h, &merged));
    v->type = merged;
    return SDX_OK;
}

/* What a node was found to make, against the file, and merged with it. */
static enum sdx_status take_output(struct host *h, int32_t graph, int32_t value,
                                   const struct sdx_type *found)
{
    struct sdx_ir_value *v = &h->ir->graphs[graph].values[value];
    if (h->flags & SDX_INFER_STRICT)
        SDX_TRY(compare_shapes(h, v->name, &h->graphs[graph].declared[value], found));
    return merge(h, v, found);
}

/* Before the first visit: room for what is found, and what the file says. */
static enum sdx_status begin_graph(struct host *h, int32_t graph)
{
    const struct sdx_ir_graph *g = &h->ir->graphs[graph];
    struct graph_state *state = &h->graphs[graph];
    const size_t count = (size_t)g->count_values + 1;
    state->visited = true;
    if (state->ints) return SDX_OK;
    state->ints = sdx_arena_array(h->ir->arena, count, sizeof(void *));
    if (!state->ints) return SDX_FAIL_MEMORY(h->cx);
    if (!(h->flags & SDX_INFER_STRICT)) return SDX_OK;
    state->declared = sdx_arena_array(h->ir->arena, count, sizeof *state->declared);
    if (!state->declared) return SDX_FAIL_MEMORY(h->cx);
    for (int32_t v = 0; v < g->count_values; v++)
        state->declared[v] = g->values[v].type;
    return SDX_OK;
}

static enum sdx_status host_body(struct sdx_infer *ix, int32_t graph, int count_in,
                                 const struct sdx_type *in, const struct sdx_type **out)
{
    struct host *h = ix->host;
    struct sdx_ir_graph *body = &h->ir->graphs[graph];
    if (in && count_in != body->count_inputs)
        return SDX_FAIL(h->cx, SDX_BAD_MODEL, "%.*s: body \"%.*s\" has %d inputs, expected %d",
                        SDX_STR_ARG(ix->node->op_type), SDX_STR_ARG(body->name), body->count_inputs,
                        count_in);
    SDX_TRY(begin_graph(h, graph));
    for (int i = 0; in && i < count_in && h->flags & SDX_INFER_STRICT; i++)
        SDX_TRY(compare_shapes(h, body->values[body->inputs[i]].name,
                               &h->graphs[graph].declared[body->inputs[i]], &in[i]));
    for (int i = 0; in && i < count_in; i++)
        SDX_TRY(merge(h, &body->values[body->inputs[i]], &in[i]));
    int32_t outer = h->graph;
    enum sdx_status status = infer_graph(h, graph);
    h->graph = outer;
    SDX_TRY(status);
    struct sdx_type *types =
        sdx_arena_array(h->ir->arena, (size_t)body->count_outputs + 1, sizeof *types);
    if (!types) return SDX_FAIL_MEMORY(h->cx);
    for (int k = 0; k < body->count_outputs; k++)
        types[k] = body->values[body->outputs[k]].type;
    *out = types;
    return SDX_OK;
}

static enum sdx_status infer_bodies(struct host *h, const struct sdx_ir_node *node)
{
    for (int a = 0; a < node->count_attrs; a++) {
        const struct sdx_ir_attr *attr = &node->attrs[a];
        int count = attr->type == SDX_ATTR_GRAPH    ? 1
                    : attr->type == SDX_ATTR_GRAPHS ? (int)attr->count
                                                    : 0;
        for (int g = 0; g < count; g++) {
            int32_t body = attr->type == SDX_ATTR_GRAPH ? attr->graph : attr->graphs[g];
            if (h->graphs[body].visited) continue;
            int32_t outer = h->graph;
            enum sdx_status status = infer_graph(h, body);
            h->graph = outer;
            SDX_TRY(status);
        }
    }
    return SDX_OK;
}

static enum sdx_status infer_node(struct host *h, int32_t graph, const struct sdx_ir_node *node)
{
    struct sdx_ir_graph *g = &h->ir->graphs[graph];
    size_t count_in = (size_t)node->count_inputs, count_out = (size_t)node->count_outputs;
    const struct sdx_type *in_small[SMALL] = {0}, **in = in_small;
    struct sdx_type out_small[SMALL] = {{0}}, *out = out_small;
    const struct sdx_ints *ints_small[SMALL] = {0}, **ints = ints_small;
    if (count_in > SMALL) in = sdx_arena_array(h->ir->arena, count_in, sizeof *in);
    if (count_out > SMALL) {
        out = sdx_arena_array(h->ir->arena, count_out, sizeof *out);
        ints = sdx_arena_array(h->ir->arena, count_out, sizeof *ints);
    }
    if (!in || !out || !ints) return SDX_FAIL_MEMORY(h->cx);
    for (size_t i = 0; i < count_in; i++)
        in[i] = node->inputs[i] < 0 ? NULL : &g->values[node->inputs[i]].type;
    struct sdx_infer ix = {.cx = h->cx,
                           .arena = h->ir->arena,
                           .ir = h->ir,
                           .node = node,
                           .opset = node->opset,
                           .count_in = node->count_inputs,
                           .count_out = node->count_outputs,
                           .in = in,
                           .out = out,
                           .out_ints = ints,
                           .value = host_value,
                           .ints = host_ints,
                           .body = host_body,
                           .symbols = h->ir,
                           .host = h};
    if (node->op && node->op->infer) SDX_TRY(node->op->infer(&ix));
    SDX_TRY(infer_bodies(h, node));
    for (size_t k = 0; k < count_out; k++) {
        if (node->outputs[k] < 0) continue;
        h->graphs[graph].ints[node->outputs[k]] = ints[k];
        SDX_TRY(take_output(h, graph, node->outputs[k], &out[k]));
    }
    return SDX_OK;
}

/* The type of a constant; what is declared for it must not differ. */
static enum sdx_status take_constant(struct host *h, struct sdx_ir_value *value)
{
    const struct sdx_type type = {.kind = value->constant->kind,
                                  .dtype = value->constant->dtype,
                                  .has_shape = true,
                                  .rank = value->constant->rank,
                                  .dims = value->constant->dims};
    if (value->type.kind == SDX_KIND_NONE)
        value->type = type;
    else if (h->flags & SDX_INFER_STRICT)
        return compare_shapes(h, value->name, &value->type, &type);
    return SDX_OK;
}

static enum sdx_status infer_graph(struct host *h, int32_t graph)
{
    struct sdx_ir_graph *g = &h->ir->graphs[graph];
    h->graph = graph;
    SDX_TRY(begin_graph(h, graph));
    for (int32_t v = 0; v < g->count_values;
         v++) { /* captures and constants know their type already */
        struct sdx_ir_value *value = &g->values[v];
        if (value->outer >= 0) value->type = h->ir->graphs[g->parent].values[value->outer].type;
        if (value->constant) SDX_TRY(take_constant(h, value));
    }
    for (int32_t n = 0; n < g->count_nodes; n++) {
        const struct sdx_ir_node *node = &g->nodes[n];
        if (node->is_dead) continue;
        enum sdx_status status = infer_node(h, graph, node);
        h->graph = graph;
        if (status == SDX_OK) continue;
        if (!h->fault) /* the fault function says where itself */
            return sdx_fail_where(h->cx, "node \"%.*s\" (%.*s)", SDX_STR_ARG(node->name),
                                  SDX_STR_ARG(node->op_type));
        if (status == SDX_OUT_OF_MEMORY || !h->fault(h->user, h->cx, g, node)) return status;
        sdx_context_clear(h->cx);
    }
    return SDX_OK;
}

enum sdx_status sdx_infer_model(struct sdx_context *cx, struct sdx_ir *ir, uint32_t flags,
                                sdx_infer_fault_fn fault, void *user)
{
    struct host h = {.cx = cx, .ir = ir, .flags = flags, .fault = fault, .user = user};
    h.graphs = sdx_arena_array(ir->arena, (size_t)ir->count_graphs, sizeof *h.graphs);
    if (!h.graphs) return SDX_FAIL_MEMORY(cx);
    return infer_graph(&h, 0);
}
