/* SPDX-License-Identifier: Apache-2.0
 * If, Loop, Scan and SequenceMap. The bodies are graphs of their own that sdx_exec_body runs; what
 * lives from trip to trip is in control_state.c. */
#include "ops/control_state.h"
#include "ops/move.h"
#include "ops/op.h"

/* ---- shared ---- */

static const struct sdx_ir_graph *body_graph(const struct sdx_ir *ir,
                                             const struct sdx_ir_node *node, const char *name)
{
    const struct sdx_ir_attr *a = sdx_ir_attr(node, name);
    return a && a->type == SDX_ATTR_GRAPH ? &ir->graphs[a->graph] : NULL;
}

static const struct sdx_type *declared_output(const struct sdx_ir_graph *g, int k)
{
    return &g->values[g->outputs[k]].type;
}

static enum sdx_status check_cancel(struct sdx_exec *x)
{
    if (sdx_exec_cancelled(x)) return SDX_FAIL(x->cx, SDX_CANCELLED, "the run was cancelled");
    return SDX_OK;
}

/* The type both have: differing lengths become unknown. */
static enum sdx_status unite_types(struct sdx_infer *ix, const struct sdx_type *a,
                                   const struct sdx_type *b, struct sdx_type *out)
{
    *out = *a;
    if (a->kind == SDX_KIND_NONE) *out = *b;
    if (a->kind == SDX_KIND_NONE || b->kind == SDX_KIND_NONE || a->kind != b->kind) {
        out->has_shape = false;
        return SDX_OK;
    }
    if (!out->dtype) out->dtype = b->dtype;
    if (!a->has_shape || !b->has_shape || a->rank != b->rank) {
        out->has_shape = false;
        return SDX_OK;
    }
    int64_t *dims = sdx_arena_array(ix->arena, (size_t)a->rank + 1, sizeof(*dims));
    if (!dims) return SDX_FAIL_MEMORY(ix->cx);
    for (int i = 0; i < a->rank; i++)
        dims[i] = a->dims[i] == b->dims[i] ? a->dims[i] : -1;
    out->dims = dims;
    return SDX_OK;
}

/* ---- If ---- */

static enum sdx_status infer_if(struct sdx_infer *ix)
{
    const struct sdx_type *types[2] = {NULL, NULL};
    static const char *const names[2] = {"then_branch", "else_branch"};
    for (int b = 0; b < 2; b++) {
        const struct sdx_ir_attr *a = sdx_ir_attr(ix->node, names[b]);
        if (!a || a->type != SDX_ATTR_GRAPH)
            return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "If: attribute %s is missing", names[b]);
        const struct sdx_ir_graph *g = &ix->ir->graphs[a->graph];
        if (g->count_outputs < ix->count_out)
            return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "If: %s has %d outputs, the node %d", names[b],
                            g->count_outputs, ix->count_out);
        if (!ix->body) return SDX_OK;
        SDX_TRY(ix->body(ix, a->graph, 0, NULL, &types[b]));
    }
    for (int k = 0; k < ix->count_out; k++)
        SDX_TRY(unite_types(ix, &types[0][k], &types[1][k], &ix->out[k]));
    return SDX_OK;
}

struct if_params {
    struct sdx_body *body[2]; /* else, then */
};

static enum sdx_status run_if(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)part;
    const struct if_params *p = step->params;
    struct sdx_tensor *const *out = NULL;
    if (step->in[0]->count != 1)
        return SDX_FAIL(x->cx, SDX_RUN_FAILED, "If: the condition has %lld elements, expected 1",
                        (long long)step->in[0]->count);
    bool taken = *(const uint8_t *)step->in[0]->data != 0;
    SDX_TRY(sdx_exec_body(x, p->body[taken], 0, NULL, &out));
    for (int k = 0; k < step->count_out; k++)
        SDX_TRY(sdx_exec_output_copy(x, step, k, out[k]));
    return SDX_OK;
}

static enum sdx_status prepare_if(struct sdx_prepare *px)
{
    struct if_params *p = SDX_PREPARE_NEW(px, struct if_params);
    if (!p) return SDX_OUT_OF_MEMORY;
    static const char *const names[2] = {"else_branch", "then_branch"};
    for (int b = 0; b < 2; b++) {
        const struct sdx_ir_graph *g = body_graph(px->ir, px->node, names[b]);
        if (g && g->count_outputs < px->count_out)
            return SDX_FAIL(px->cx, SDX_BAD_MODEL, "If: %s has %d outputs, the node %d", names[b],
                            g->count_outputs, px->count_out);
        p->body[b] = sdx_prepare_body(px, names[b]);
        if (!p->body[b]) return px->cx->error.status;
    }
    return sdx_prepare_step(px, "if", run_if, p, 1, 0);
}

/* ---- Loop ---- */

/* Type of a body's input without its shape, which may change from trip to trip. */
static struct sdx_type shapeless(const struct sdx_type *t)
{
    struct sdx_type out = {0};
    if (t) out = *t;
    out.has_shape = false;
    return out;
}

/* [?, element's lengths] */
static enum sdx_status stacked_type(struct sdx_infer *ix, const struct sdx_type *elem,
                                    int64_t trips, int64_t axis, struct sdx_type *out)
{
    *out = (struct sdx_type){.kind = SDX_KIND_TENSOR, .dtype = elem->dtype};
    if (!elem->has_shape || elem->rank >= SDX_RANK_MAX) return SDX_OK;
    int rank = elem->rank + 1;
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank)
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "%.*s: axis %lld of an output of rank %d",
                        SDX_MOVE_OP(ix), (long long)axis, rank);
    int64_t *dims = sdx_arena_array(ix->arena, (size_t)rank, sizeof(*dims));
    if (!dims) return SDX_FAIL_MEMORY(ix->cx);
    for (int i = 0, j = 0; i < rank; i++)
        dims[i] = i == axis ? trips : elem->dims[j++];
    out->has_shape = true;
    out->rank = rank;
    out->dims = dims;
    return SDX_OK;
}

static enum sdx_status infer_loop(struct sdx_infer *ix)
{
    const struct sdx_ir_attr *a = sdx_ir_attr(ix->node, "body");
    if (!a || a->type != SDX_ATTR_GRAPH)
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "Loop: attribute body is missing");
    const struct sdx_ir_graph *g = &ix->ir->graphs[a->graph];
    int carried = g->count_inputs - 2, scans = g->count_outputs - 1 - carried;
    if (carried < 0 || scans < 0 || ix->count_out > carried + scans || ix->count_in - 2 > carried)
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL,
                        "Loop: the body has %d inputs and %d outputs, the node %d and %d",
                        g->count_inputs, g->count_outputs, ix->count_in, ix->count_out);
    if (!ix->body) return SDX_OK;
    struct sdx_type *in = sdx_arena_array(ix->arena, (size_t)carried + 2, sizeof(*in));
    if (!in) return SDX_FAIL_MEMORY(ix->cx);
    in[0] = (struct sdx_type){.kind = SDX_KIND_TENSOR, .dtype = SDX_I64};
    in[1] = (struct sdx_type){.kind = SDX_KIND_TENSOR, .dtype = SDX_BOOL};
    for (int i = 0; i < carried; i++)
        in[2 + i] = shapeless(2 + i < ix->count_in ? ix->in[2 + i] : NULL);
    const struct sdx_type *out = NULL;
    SDX_TRY(ix->body(ix, a->graph, carried + 2, in, &out));
    for (int k = 0; k < ix->count_out; k++) {
        if (k >= carried)
            SDX_TRY(stacked_type(ix, &out[1 + k], -1, 0, &ix->out[k]));
        else if (2 + k < ix->count_in && ix->in[2 + k] && ix->in[2 + k]->kind == out[1 + k].kind)
            SDX_TRY(unite_types(ix, ix->in[2 + k], &out[1 + k], &ix->out[k]));
        else
            ix->out[k] = out[1 + k]; /* an optional may go in and its content come out */
    }
    return SDX_OK;
}

struct loop_params {
    struct sdx_body *body;
    const struct sdx_ir_graph *graph;
    int carried, scans;
    int rank_trip, rank_condition; /* as the body declares its first two inputs */
};

struct loop {
    struct sdx_carried carried;
    struct sdx_stack *scans;
    const struct sdx_tensor **in;
    int64_t trip, limit;
    uint8_t condition;
};

/* A one-element operand on the stack of the caller. */
static struct sdx_tensor scalar_view(void *value, int dtype, int rank)
{
    static const int64_t one[SDX_RANK_INLINE] = {1, 1, 1, 1, 1, 1};
    return (struct sdx_tensor){.data = value,
                               .dims = one,
                               .count = 1,
                               .bytes = dtype == SDX_BOOL ? 1 : 8,
                               .rank = rank,
                               .kind = SDX_KIND_TENSOR,
                               .dtype = (uint8_t)dtype};
}

static enum sdx_status loop_init(struct sdx_exec *x, const struct sdx_step *step, struct loop *l)
{
    const struct loop_params *p = step->params;
    l->limit = INT64_MAX;
    l->condition = 1;
    if (step->count_in > 0 && step->in[0] && step->in[0]->count > 0)
        l->limit = sdx_move_index(step->in[0], 0);
    if (step->count_in > 1 && step->in[1] && step->in[1]->count > 0)
        l->condition = *(const uint8_t *)step->in[1]->data != 0;
    l->in = sdx_mem_calloc(x->cx->mem, SDX_MEM_SCRATCH, (size_t)p->carried + 2, sizeof(*l->in));
    l->scans = sdx_mem_calloc(x->cx->mem, SDX_MEM_SCRATCH, (size_t)p->scans + 1, sizeof(*l->scans));
    SDX_TRY(sdx_carried_init(&l->carried, x->cx, p->carried));
    if (!l->in || !l->scans) return SDX_FAIL_MEMORY(x->cx);
    for (int i = 0; i < p->carried; i++) {
        l->carried.now[i] = 2 + i < step->count_in ? step->in[2 + i] : NULL;
        if (!l->carried.now[i])
            return SDX_FAIL(x->cx, SDX_BAD_MODEL, "Loop: carried value %d has no initial value", i);
    }
    for (int i = 0; i < p->scans; i++)
        sdx_stack_init(&l->scans[i], x->cx, declared_output(p->graph, 1 + p->carried + i));
    return SDX_OK;
}

static enum sdx_status loop_trips(struct sdx_exec *x, const struct sdx_step *step, struct loop *l)
{
    const struct loop_params *p = step->params;
    struct sdx_tensor trip = scalar_view(&l->trip, SDX_I64, p->rank_trip);
    struct sdx_tensor condition = scalar_view(&l->condition, SDX_BOOL, p->rank_condition);
    l->in[0] = &trip;
    l->in[1] = &condition;
    for (l->trip = 0; l->trip < l->limit && l->condition; l->trip++) {
        struct sdx_tensor *const *out = NULL;
        SDX_TRY(check_cancel(x));
        for (int i = 0; i < p->carried; i++)
            l->in[2 + i] = l->carried.now[i];
        SDX_TRY(sdx_exec_body(x, p->body, p->carried + 2, l->in, &out));
        if (out[0]->count < 1)
            return SDX_FAIL(x->cx, SDX_RUN_FAILED, "Loop: the body's condition is empty");
        uint8_t next = *(const uint8_t *)out[0]->data != 0;
        for (int i = 0; i < p->scans; i++)
            SDX_TRY(sdx_stack_push(&l->scans[i], out[1 + p->carried + i]));
        SDX_TRY(sdx_carried_update(&l->carried, out + 1));
        l->condition = next;
    }
    for (int k = 0; k < step->count_out; k++) {
        if (!step->out[k]) continue;
        if (k < p->carried)
            SDX_TRY(sdx_exec_output_copy(x, step, k, l->carried.now[k]));
        else
            SDX_TRY(sdx_stack_output(&l->scans[k - p->carried], x, step, k, 0, false));
    }
    return SDX_OK;
}

static enum sdx_status run_loop(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)part;
    const struct loop_params *p = step->params;
    struct loop l = {0};
    enum sdx_status status = loop_init(x, step, &l);
    if (status == SDX_OK) status = loop_trips(x, step, &l);
    for (int i = 0; l.scans && i < p->scans; i++)
        sdx_stack_deinit(&l.scans[i]);
    sdx_carried_deinit(&l.carried);
    sdx_mem_free(x->cx->mem, l.scans);
    sdx_mem_free(x->cx->mem, l.in);
    return status;
}

static int declared_rank(const struct sdx_ir_graph *g, int input)
{
    const struct sdx_type *t = &g->values[g->inputs[input]].type;
    return t->has_shape && t->rank <= SDX_RANK_INLINE ? t->rank : 0;
}

static enum sdx_status prepare_loop(struct sdx_prepare *px)
{
    struct loop_params *p = SDX_PREPARE_NEW(px, struct loop_params);
    if (!p) return SDX_OUT_OF_MEMORY;
    p->graph = body_graph(px->ir, px->node, "body");
    p->body = sdx_prepare_body(px, "body");
    if (!p->body) return px->cx->error.status;
    p->carried = p->graph->count_inputs - 2;
    p->scans = p->graph->count_outputs - 1 - p->carried;
    if (p->carried < 0 || p->scans < 0 || px->count_out > p->carried + p->scans)
        return SDX_FAIL(px->cx, SDX_BAD_MODEL, "Loop: the body has %d inputs and %d outputs",
                        p->graph->count_inputs, p->graph->count_outputs);
    p->rank_trip = declared_rank(p->graph, 0);
    p->rank_condition = declared_rank(p->graph, 1);
    return sdx_prepare_step(px, "loop", run_loop, p, 1, 0);
}

/* ---- Scan ---- */

struct scan_params {
    struct sdx_body *body;
    const struct sdx_ir_graph *graph;
    int first;                   /* input where the states begin: 1 in version 8 */
    int states, inputs, outputs; /* states; scanned inputs; scan outputs */
    bool batched;                /* version 8: axis 0 is a batch, axis 1 the sequence */
    const int64_t *axes_in, *axes_out, *reverse_in, *reverse_out; /* NULL: all 0 */
    int64_t n_axes_in, n_axes_out, n_reverse_in, n_reverse_out;
};

static int64_t entry(const int64_t *list, int64_t n, int i)
{
    return list && i < n ? list[i] : 0;
}

static enum sdx_status scan_read(struct sdx_context *cx, const struct sdx_ir *ir,
                                 const struct sdx_ir_node *node, int64_t opset, int count_in,
                                 int count_out, struct scan_params *p)
{
    const struct sdx_ir_node *n = node;
    p->batched = opset < 9;
    p->first = p->batched ? 1 : 0;
    p->graph = body_graph(ir, node, "body");
    p->inputs = (int)sdx_ir_attr_int(node, "num_scan_inputs", 0);
    p->states = count_in - p->first - p->inputs;
    p->outputs = count_out - p->states;
    if (p->batched) {
        p->reverse_in = sdx_ir_attr_ints(n, "directions", &p->n_reverse_in);
    } else {
        p->reverse_in = sdx_ir_attr_ints(n, "scan_input_directions", &p->n_reverse_in);
        p->reverse_out = sdx_ir_attr_ints(n, "scan_output_directions", &p->n_reverse_out);
        p->axes_in = sdx_ir_attr_ints(n, "scan_input_axes", &p->n_axes_in);
        p->axes_out = sdx_ir_attr_ints(n, "scan_output_axes", &p->n_axes_out);
    }
    if (!p->graph || p->inputs < 1 || p->states < 0 || p->outputs < 0 ||
        p->graph->count_inputs != p->states + p->inputs ||
        p->graph->count_outputs != p->states + p->outputs)
        return SDX_FAIL(cx, SDX_BAD_MODEL,
                        "Scan: %d states, %d scanned inputs, %d outputs do not fit the body",
                        p->states, p->inputs, p->outputs);
    return SDX_OK;
}

static enum sdx_status scan_input_type(struct sdx_infer *ix, const struct scan_params *p, int i,
                                       int64_t *trips, struct sdx_type *out)
{
    const struct sdx_type *t = ix->in[p->first + p->states + i];
    *out = t ? *t : (struct sdx_type){0};
    if (!t || !t->has_shape) return SDX_OK;
    int axis = 0, n = 0;
    SDX_TRY(sdx_infer_axis(ix, entry(p->axes_in, p->n_axes_in, i), t->rank, &axis));
    SDX_TRY(sdx_infer_merge_dim(ix, *trips, t->dims[axis], "scanned axis", trips));
    int64_t *dims = sdx_arena_array(ix->arena, (size_t)t->rank + 1, sizeof(*dims));
    if (!dims) return SDX_FAIL_MEMORY(ix->cx);
    for (int k = 0; k < t->rank; k++)
        if (k != axis) dims[n++] = t->dims[k];
    out->dims = dims;
    out->rank = n;
    return SDX_OK;
}

/* Scan-8: every operand has an axis of batches in front of what the body sees. */
static enum sdx_status infer_batched(struct sdx_infer *ix, const struct scan_params *p,
                                     int32_t graph)
{
    const int count = p->states + p->inputs;
    int64_t batch = -1, trips = -1;
    struct sdx_type *in = sdx_arena_array(ix->arena, (size_t)count + 1, sizeof(*in));
    if (!in) return SDX_FAIL_MEMORY(ix->cx);
    for (int i = 0; i < count; i++) {
        const struct sdx_type *t = ix->in[p->first + i];
        const int outer = i < p->states ? 1 : 2; /* axes that the body does not see */
        in[i] = t ? *t : (struct sdx_type){0};
        if (!t || !t->has_shape) continue;
        if (t->rank < outer)
            return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "Scan: input %d has rank %d, expected above %d",
                            p->first + i, t->rank, outer - 1);
        SDX_TRY(sdx_infer_merge_dim(ix, batch, t->dims[0], "batch", &batch));
        if (outer == 2) SDX_TRY(sdx_infer_merge_dim(ix, trips, t->dims[1], "sequence", &trips));
        in[i].rank -= outer;
        in[i].dims += outer;
    }
    const struct sdx_type *out = NULL;
    SDX_TRY(ix->body(ix, graph, count, in, &out));
    for (int k = 0; k < ix->count_out; k++) {
        struct sdx_type item = out[k];
        if (k < p->states)
            SDX_TRY(unite_types(ix, &in[k], &out[k], &item));
        else
            SDX_TRY(stacked_type(ix, &out[k], trips, 0, &item));
        SDX_TRY(stacked_type(ix, &item, batch, 0, &ix->out[k]));
    }
    return SDX_OK;
}

static enum sdx_status infer_scan(struct sdx_infer *ix)
{
    struct scan_params p = {0};
    SDX_TRY(scan_read(ix->cx, ix->ir, ix->node, ix->opset, ix->count_in, ix->count_out, &p));
    for (int i = p.first; i < ix->count_in; i++)
        if (!ix->in[i]) return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "Scan: input %d is left out", i);
    if (!ix->body) return SDX_OK;
    const struct sdx_type *out = NULL;
    const struct sdx_ir_attr *a = sdx_ir_attr(ix->node, "body");
    int64_t trips = -1;
    if (p.batched) return infer_batched(ix, &p, a->graph);
    struct sdx_type *in = sdx_arena_array(ix->arena, (size_t)ix->count_in + 1, sizeof(*in));
    if (!in) return SDX_FAIL_MEMORY(ix->cx);
    for (int i = 0; i < p.states; i++)
        in[i] = ix->in[i] ? *ix->in[i] : (struct sdx_type){0}; /* states keep their shapes */
    for (int i = 0; i < p.inputs; i++)
        SDX_TRY(scan_input_type(ix, &p, i, &trips, &in[p.states + i]));
    SDX_TRY(ix->body(ix, a->graph, p.states + p.inputs, in, &out));
    for (int k = 0; k < ix->count_out; k++) {
        if (k < p.states && ix->in[k])
            SDX_TRY(unite_types(ix, ix->in[k], &out[k], &ix->out[k]));
        else if (k >= p.states)
            SDX_TRY(stacked_type(ix, &out[k], trips, entry(p.axes_out, p.n_axes_out, k - p.states),
                                 &ix->out[k]));
    }
    return SDX_OK;
}

struct scan {
    const struct scan_params *p;
    struct sdx_carried states;
    struct sdx_slice *slices;
    struct sdx_stack *stacks;
    const struct sdx_tensor **in;
    int64_t length; /* of the scanned axes */
};

static void scan_deinit(struct scan *s, struct sdx_mem *mem)
{
    sdx_carried_deinit(&s->states);
    for (int i = 0; s->slices && i < s->p->inputs; i++)
        sdx_slice_deinit(&s->slices[i]);
    for (int i = 0; s->stacks && i < s->p->outputs; i++)
        sdx_stack_deinit(&s->stacks[i]);
    sdx_mem_free(mem, s->slices);
    sdx_mem_free(mem, s->stacks);
    sdx_mem_free(mem, s->in);
}

/* states: initial values; scanned: the inputs. */
static enum sdx_status scan_init(struct sdx_exec *x, const struct scan_params *p, struct scan *s,
                                 const struct sdx_tensor *const *states,
                                 const struct sdx_tensor *const *scanned)
{
    struct sdx_mem *mem = x->cx->mem;
    s->p = p;
    s->length = -1;
    s->slices = sdx_mem_calloc(mem, SDX_MEM_SCRATCH, (size_t)p->inputs + 1, sizeof(*s->slices));
    s->stacks = sdx_mem_calloc(mem, SDX_MEM_SCRATCH, (size_t)p->outputs + 1, sizeof(*s->stacks));
    s->in =
        sdx_mem_calloc(mem, SDX_MEM_SCRATCH, (size_t)(p->states + p->inputs) + 1, sizeof(*s->in));
    SDX_TRY(sdx_carried_init(&s->states, x->cx, p->states));
    if (!s->slices || !s->stacks || !s->in) return SDX_FAIL_MEMORY(x->cx);
    for (int i = 0; i < p->states; i++)
        s->states.now[i] = states[i];
    for (int i = 0; i < p->outputs; i++)
        sdx_stack_init(&s->stacks[i], x->cx, declared_output(p->graph, p->states + i));
    for (int i = 0; i < p->inputs; i++) {
        const struct sdx_tensor *t = scanned[i];
        int64_t axis = entry(p->axes_in, p->n_axes_in, i);
        if (axis < 0) axis += t->rank;
        if (axis < 0 || axis >= t->rank)
            return SDX_FAIL(x->cx, SDX_RUN_FAILED, "Scan: axis %lld of input %d of rank %d",
                            (long long)axis, i, t->rank);
        if (s->length >= 0 && t->dims[axis] != s->length)
            return SDX_FAIL(x->cx, SDX_RUN_FAILED, "Scan: input %d has length %lld, expected %lld",
                            i, (long long)t->dims[axis], (long long)s->length);
        s->length = t->dims[axis];
        SDX_TRY(sdx_slice_init(&s->slices[i], x->cx, t, (int)axis));
    }
    return SDX_OK;
}

static enum sdx_status scan_trips(struct sdx_exec *x, struct scan *s, int64_t trips)
{
    const struct scan_params *p = s->p;
    for (int64_t t = 0; t < trips; t++) {
        struct sdx_tensor *const *out = NULL;
        SDX_TRY(check_cancel(x));
        for (int i = 0; i < p->states; i++)
            s->in[i] = s->states.now[i];
        for (int i = 0; i < p->inputs; i++) {
            bool reverse = entry(p->reverse_in, p->n_reverse_in, i) != 0;
            SDX_TRY(sdx_slice_set(&s->slices[i], reverse ? trips - 1 - t : t));
            s->in[p->states + i] = &s->slices[i].head;
        }
        SDX_TRY(sdx_exec_body(x, p->body, p->states + p->inputs, s->in, &out));
        for (int i = 0; i < p->outputs; i++)
            SDX_TRY(sdx_stack_push(&s->stacks[i], out[p->states + i]));
        SDX_TRY(sdx_carried_update(&s->states, out));
    }
    return SDX_OK;
}

static enum sdx_status scan_plain(struct sdx_exec *x, const struct sdx_step *step, struct scan *s)
{
    const struct scan_params *p = step->params;
    SDX_TRY(scan_init(x, p, s, (const struct sdx_tensor *const *)step->in,
                      (const struct sdx_tensor *const *)step->in + p->states));
    SDX_TRY(scan_trips(x, s, s->length));
    for (int k = 0; k < step->count_out; k++) {
        int i = k - p->states;
        if (!step->out[k]) continue;
        if (i < 0)
            SDX_TRY(sdx_exec_output_copy(x, step, k, s->states.now[k]));
        else
            SDX_TRY(sdx_stack_output(&s->stacks[i], x, step, k,
                                     entry(p->axes_out, p->n_axes_out, i),
                                     entry(p->reverse_out, p->n_reverse_out, i) != 0));
    }
    return SDX_OK;
}

/* Version 8, one batch element: its results are pushed onto the stacks of the batch. */
static enum sdx_status scan_element(struct sdx_exec *x, const struct scan_params *p,
                                    const struct sdx_tensor *const *in, int64_t trips,
                                    struct sdx_stack *results)
{
    struct scan s = {.p = p};
    enum sdx_status status = scan_init(x, p, &s, in, in + p->states);
    if (status == SDX_OK && trips < 0) trips = s.length;
    if (status == SDX_OK && trips > s.length)
        status = SDX_FAIL(x->cx, SDX_RUN_FAILED, "Scan: sequence length %lld of an axis of %lld",
                          (long long)trips, (long long)s.length);
    if (status == SDX_OK) status = scan_trips(x, &s, trips);
    for (int k = 0; k < p->states && status == SDX_OK; k++)
        status = sdx_stack_push(&results[k], s.states.now[k]);
    for (int k = 0; k < p->outputs && status == SDX_OK; k++) {
        int rank = 0, axis = 0;
        int64_t dims[SDX_RANK_MAX];
        struct sdx_tensor *t = NULL;
        status = sdx_stack_shape(&s.stacks[k], 0, s.length, &rank, dims, &axis);
        if (status == SDX_OK) status = sdx_tensor_new(x->cx, s.stacks[k].dtype, rank, dims, &t);
        /* texts are lent to t, which the stack then copies */
        if (status == SDX_OK) status = sdx_stack_write(&s.stacks[k], 0, s.length, false, t->data);
        if (status == SDX_OK) status = sdx_stack_push(&results[p->states + k], t);
        sdx_tensor_release(t);
    }
    scan_deinit(&s, x->cx->mem);
    return status;
}

static enum sdx_status scan_batch(struct sdx_exec *x, const struct sdx_step *step,
                                  struct sdx_slice *slices, const struct sdx_tensor **in,
                                  struct sdx_stack *results)
{
    const struct scan_params *p = step->params;
    int n = p->states + p->inputs;
    const struct sdx_tensor *lengths = step->in[0];
    int64_t batch = step->in[1]->rank ? step->in[1]->dims[0] : 0;
    for (int i = 0; i < n; i++) {
        const struct sdx_tensor *t = step->in[1 + i];
        if (t->rank < 1 || t->dims[0] != batch)
            return SDX_FAIL(x->cx, SDX_RUN_FAILED, "Scan: input %d has no batch of %lld", i + 1,
                            (long long)batch);
        SDX_TRY(sdx_slice_init(&slices[i], x->cx, t, 0));
        in[i] = &slices[i].head;
    }
    for (int64_t b = 0; b < batch; b++) {
        for (int i = 0; i < n; i++)
            SDX_TRY(sdx_slice_set(&slices[i], b));
        int64_t trips = lengths && b < lengths->count ? sdx_move_index(lengths, b) : -1;
        SDX_TRY(scan_element(x, p, in, trips, results));
    }
    for (int k = 0; k < step->count_out; k++)
        if (step->out[k]) SDX_TRY(sdx_stack_output(&results[k], x, step, k, 0, false));
    return SDX_OK;
}

static enum sdx_status run_scan_batched(struct sdx_exec *x, const struct sdx_step *step)
{
    const struct scan_params *p = step->params;
    struct sdx_mem *mem = x->cx->mem;
    int n = p->states + p->inputs, m = p->states + p->outputs;
    struct sdx_slice *slices = sdx_mem_calloc(mem, SDX_MEM_SCRATCH, (size_t)n + 1, sizeof(*slices));
    struct sdx_stack *results =
        sdx_mem_calloc(mem, SDX_MEM_SCRATCH, (size_t)m + 1, sizeof(*results));
    const struct sdx_tensor **in = sdx_mem_calloc(mem, SDX_MEM_SCRATCH, (size_t)n + 1, sizeof(*in));
    enum sdx_status status = SDX_OK;
    if (slices && results && in) {
        for (int k = 0; k < m; k++)
            sdx_stack_init(&results[k], x->cx, declared_output(p->graph, k));
        status = scan_batch(x, step, slices, in, results);
    } else {
        status = SDX_FAIL_MEMORY(x->cx);
    }
    for (int i = 0; slices && i < n; i++)
        sdx_slice_deinit(&slices[i]);
    for (int k = 0; results && k < m; k++)
        sdx_stack_deinit(&results[k]);
    sdx_mem_free(mem, slices);
    sdx_mem_free(mem, results);
    sdx_mem_free(mem, in);
    return status;
}

static enum sdx_status run_scan(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)part;
    const struct scan_params *p = step->params;
    if (p->batched) return run_scan_batched(x, step);
    struct scan s = {.p = p};
    enum sdx_status status = scan_plain(x, step, &s);
    scan_deinit(&s, x->cx->mem);
    return status;
}

static enum sdx_status prepare_scan(struct sdx_prepare *px)
{
    struct scan_params *p = SDX_PREPARE_NEW(px, struct scan_params);
    if (!p) return SDX_OUT_OF_MEMORY;
    SDX_TRY(scan_read(px->cx, px->ir, px->node, px->opset, px->count_in, px->count_out, p));
    for (int i = p->first; i < px->count_in; i++)
        if (!px->in[i]) return SDX_FAIL(px->cx, SDX_BAD_MODEL, "Scan: input %d is left out", i);
    p->body = sdx_prepare_body(px, "body");
    if (!p->body) return px->cx->error.status;
    return sdx_prepare_step(px, "scan", run_scan, p, 1, 0);
}

/* ---- SequenceMap ---- */

static enum sdx_status infer_sequence_map(struct sdx_infer *ix)
{
    const struct sdx_ir_attr *a = sdx_ir_attr(ix->node, "body");
    if (!a || a->type != SDX_ATTR_GRAPH)
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "SequenceMap: attribute body is missing");
    const struct sdx_ir_graph *g = &ix->ir->graphs[a->graph];
    if (g->count_inputs != ix->count_in || g->count_outputs < ix->count_out)
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL,
                        "SequenceMap: the body has %d inputs and %d outputs, the node %d and %d",
                        g->count_inputs, g->count_outputs, ix->count_in, ix->count_out);
    if (!ix->body) return SDX_OK;
    struct sdx_type *in = sdx_arena_array(ix->arena, (size_t)ix->count_in + 1, sizeof(*in));
    if (!in) return SDX_FAIL_MEMORY(ix->cx);
    for (int i = 0; i < ix->count_in; i++) {
        const struct sdx_type *t = ix->in[i];
        if (t && t->kind == SDX_KIND_SEQUENCE) t = t->elem;
        in[i] = t ? *t : (struct sdx_type){0};
    }
    const struct sdx_type *out = NULL;
    SDX_TRY(ix->body(ix, a->graph, ix->count_in, in, &out));
    for (int k = 0; k < ix->count_out; k++)
        ix->out[k] =
            (struct sdx_type){.kind = SDX_KIND_SEQUENCE, .dtype = out[k].dtype, .elem = &out[k]};
    return SDX_OK;
}

struct map_params {
    struct sdx_body *body;
    const struct sdx_ir_graph *graph;
};

/* items: count_out lists of `count` entries, filled as far as the trips get. */
static enum sdx_status map_trips(struct sdx_exec *x, const struct sdx_step *step,
                                 const struct sdx_tensor **in, struct sdx_tensor **items)
{
    const struct map_params *p = step->params;
    int64_t count = step->in[0]->count;
    for (int64_t t = 0; t < count; t++) {
        struct sdx_tensor *const *out = NULL;
        SDX_TRY(check_cancel(x));
        for (int i = 0; i < step->count_in; i++) {
            const struct sdx_tensor *from = step->in[i];
            if (from->kind == SDX_KIND_SEQUENCE && from->count != count)
                return SDX_FAIL(x->cx, SDX_RUN_FAILED,
                                "SequenceMap: input %d has %lld items, expected %lld", i,
                                (long long)from->count, (long long)count);
            in[i] = from->kind == SDX_KIND_SEQUENCE ? from->items[t] : from;
        }
        SDX_TRY(sdx_exec_body(x, p->body, step->count_in, in, &out));
        for (int k = 0; k < step->count_out; k++)
            SDX_TRY(sdx_tensor_clone(x->cx, out[k], &items[k * count + t]));
    }
    for (int k = 0; k < step->count_out; k++) {
        int dtype = count ? items[k * count]->dtype : declared_output(p->graph, k)->dtype;
        SDX_TRY(
            sdx_exec_output_items(x, step, k, SDX_KIND_SEQUENCE, dtype, count, items + k * count));
    }
    return SDX_OK;
}

static enum sdx_status run_sequence_map(struct sdx_exec *x, const struct sdx_step *step,
                                        int64_t part)
{
    (void)part;
    struct sdx_mem *mem = x->cx->mem;
    if (step->in[0]->kind != SDX_KIND_SEQUENCE)
        return SDX_FAIL(x->cx, SDX_RUN_FAILED, "SequenceMap: input 0 is no sequence");
    int64_t n = step->in[0]->count * step->count_out;
    const struct sdx_tensor **in =
        sdx_mem_calloc(mem, SDX_MEM_SCRATCH, (size_t)step->count_in + 1, sizeof(*in));
    struct sdx_tensor **items = sdx_mem_calloc(mem, SDX_MEM_SCRATCH, (size_t)n + 1, sizeof(*items));
    enum sdx_status status = in && items ? map_trips(x, step, in, items) : SDX_FAIL_MEMORY(x->cx);
    for (int64_t i = 0; items && i < n; i++)
        sdx_tensor_release(items[i]);
    sdx_mem_free(mem, items);
    sdx_mem_free(mem, in);
    return status;
}

static enum sdx_status prepare_sequence_map(struct sdx_prepare *px)
{
    struct map_params *p = SDX_PREPARE_NEW(px, struct map_params);
    if (!p) return SDX_OUT_OF_MEMORY;
    p->graph = body_graph(px->ir, px->node, "body");
    p->body = sdx_prepare_body(px, "body");
    if (!p->body) return px->cx->error.status;
    for (int i = 0; i < px->count_in; i++)
        if (!px->in[i])
            return SDX_FAIL(px->cx, SDX_BAD_MODEL, "SequenceMap: input %d is left out", i);
    if (p->graph->count_outputs < px->count_out)
        return SDX_FAIL(px->cx, SDX_BAD_MODEL, "SequenceMap: the body has %d outputs, the node %d",
                        p->graph->count_outputs, px->count_out);
    return sdx_prepare_step(px, "sequence_map", run_sequence_map, p, 1, 0);
}

static const struct sdx_op ops[] = {
    {"If", 1, 0, infer_if, KERNEL(prepare_if), .flags = SDX_OP_DYNAMIC},
    {"Loop", 1, 0, infer_loop, KERNEL(prepare_loop), .flags = SDX_OP_DYNAMIC},
    {"Scan", 8, 0, infer_scan, KERNEL(prepare_scan), .flags = SDX_OP_DYNAMIC,
     .note = "scan of packed types on axis 0 only"},
    {"SequenceMap", 17, 0, infer_sequence_map, KERNEL(prepare_sequence_map),
     .flags = SDX_OP_DYNAMIC},
};
const struct sdx_op_family sdx_ops_control = FAMILY("", ops);
