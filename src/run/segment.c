/* SPDX-License-Identifier: Apache-2.0
 * Planning: from nodes with known input shapes to steps over placed operands. Small nodes whose
 * inputs are all known (shape arithmetic) are evaluated here and leave no step. */
#include "ops/layout.h"
#include "run/planning.h"
#include "run/profile.h"

enum { FOLD_MAX = 256 * 1024, WATCH_MAX = 64 * 1024 };

bool sdx_planning_reserve(struct sdx_planning *p, struct sdx_arena *arena, void **array,
                          int32_t count, int32_t *capacity, size_t size)
{
    if (count < *capacity) return true;
    int32_t wanted = *capacity ? *capacity * 2 : 32;
    void *bigger = sdx_arena_array(arena, (size_t)wanted, size);
    if (!bigger) {
        (void)SDX_FAIL_MEMORY(p->cx);
        return false;
    }
    if (count) memcpy(bigger, *array, (size_t)count * size);
    *array = bigger;
    *capacity = wanted;
    return true;
}

/* The plan relies on the shape, or the content too, of a value that an earlier segment or the
 * caller gave. */
static enum sdx_status watch(struct sdx_planning *p, const struct sdx_tensor *t, bool content)
{
    struct sdx_segment *s = p->s;
    for (int32_t i = 0; i < s->count_watches; i++)
        if (s->watches[i].tensor == t && (s->watches[i].bytes || !content)) return SDX_OK;
    if (!SDX_RESERVE(p, &s->arena, s->watches, s->count_watches, s->capacity_watches))
        return p->cx->error.status;
    struct sdx_watch w = {.tensor = t,
                          .rank = t->rank,
                          .kind = t->kind,
                          .dtype = t->dtype,
                          .layout = t->layout,
                          .axis = t->axis,
                          .capacity = t->capacity};
    w.dims = sdx_arena_copy(&s->arena, t->dims, (size_t)t->rank * sizeof *t->dims);
    if (content) {
        w.size = t->bytes;
        w.bytes = sdx_arena_copy(&s->arena, t->data, t->bytes);
    }
    if (!w.dims || (content && !w.bytes)) return SDX_FAIL_MEMORY(p->cx);
    s->watches[s->count_watches++] = w;
    return SDX_OK;
}

/* ---- inference with concrete types ---- */

const struct sdx_tensor *sdx_planning_value(struct sdx_planning *p, const struct sdx_ir_node *node,
                                            int i)
{
    if (i >= node->count_inputs || node->inputs[i] < 0) return NULL;
    const struct sdx_slot *slot = sdx_planning_slot(p, node->inputs[i]);
    struct sdx_tensor *t = slot->tensor;
    if (t->is_constant) return t->needs_copy ? NULL : t;
    if (slot->depth >= p->s->depth || t->kind != SDX_KIND_TENSOR || t->dtype == SDX_STRING ||
        t->bytes > WATCH_MAX) {
        p->waits = true;
        return NULL;
    }
    if (watch(p, t, true) != SDX_OK) return NULL;
    if (t->layout == SDX_LAYOUT_PLAIN) return t;
    struct sdx_tensor *plain = sdx_op_tensor(p->cx, &p->work, t->dtype, t->rank, t->dims);
    if (!plain) return NULL;
    plain->data = sdx_arena_alloc(&p->work, plain->bytes + 64);
    if (plain->data)
        sdx_layout_copy(t, plain);
    else
        (void)SDX_FAIL_MEMORY(p->cx);
    return plain->data ? plain : NULL;
}

static const struct sdx_tensor *infer_value(struct sdx_infer *ix, int i)
{
    return sdx_planning_value(ix->host, ix->node, i);
}

static bool infer_ints(struct sdx_infer *ix, int i, struct sdx_ints *out)
{
    return sdx_infer_tensor_ints(ix, infer_value(ix, i), out);
}

struct inferred {
    struct sdx_type *out;
    const struct sdx_ints **ints;
};

static bool has_bodies(const struct sdx_ir_node *node)
{
    for (int a = 0; a < node->count_attrs; a++)
        if (node->attrs[a].type == SDX_ATTR_GRAPH || node->attrs[a].type == SDX_ATTR_GRAPHS)
            return true;
    return false;
}

static enum sdx_status infer(struct sdx_planning *p, const struct sdx_ir_node *node,
                             struct inferred *result)
{
    size_t count_in = (size_t)node->count_inputs + 1, count_out = (size_t)node->count_outputs + 1;
    struct sdx_type *types =
        sdx_arena_array(&p->work, count_in * 2, sizeof *types); /* and their items' types */
    const struct sdx_type **in = sdx_arena_array(&p->work, count_in, sizeof *in);
    result->out = sdx_arena_array(&p->work, count_out, sizeof *result->out);
    result->ints = sdx_arena_array(&p->work, count_out, sizeof *result->ints);
    if (!types || !in || !result->out || !result->ints) return SDX_FAIL_MEMORY(p->cx);
    for (int i = 0; i < node->count_inputs; i++) {
        if (node->inputs[i] < 0) continue;
        const struct sdx_tensor *t = sdx_planning_slot(p, node->inputs[i])->tensor;
        bool is_tensor = t->kind == SDX_KIND_TENSOR;
        types[i] = (struct sdx_type){.kind = t->kind,
                                     .dtype = t->dtype,
                                     .has_shape = is_tensor,
                                     .rank = t->rank,
                                     .dims = t->dims};
        types[count_in + (size_t)i] = (struct sdx_type){.kind = SDX_KIND_TENSOR, .dtype = t->dtype};
        if (!is_tensor) types[i].elem = &types[count_in + (size_t)i];
        in[i] = &types[i];
    }
    struct sdx_infer ix = {.cx = p->cx,
                           .arena = &p->work,
                           .ir = p->r->shared->ir,
                           .node = node,
                           .opset = node->opset,
                           .count_in = node->count_inputs,
                           .count_out = node->count_outputs,
                           .in = in,
                           .out = result->out,
                           .out_ints = result->ints,
                           .value = infer_value,
                           .ints = infer_ints,
                           .shapes_only = true,
                           .host = p};
    p->waits = false;
    bool unknown = has_bodies(node) && node->op->flags & SDX_OP_DYNAMIC;
    return unknown ? SDX_OK : node->op->infer(&ix);
}

bool sdx_planning_is_concrete(const struct sdx_type *type)
{
    if (type->kind != SDX_KIND_TENSOR || !type->has_shape || !type->dtype) return false;
    for (int d = 0; d < type->rank; d++)
        if (type->dims[d] < 0) return false;
    return true;
}

/* ---- outputs ---- */

/* An integer output whose content inference told becomes a constant. */
static enum sdx_status produce_ints(struct sdx_planning *p, int32_t value,
                                    const struct sdx_type *type, const struct sdx_ints *ints)
{
    struct sdx_tensor *t = sdx_op_tensor(p->cx, &p->s->arena, type->dtype, type->rank, type->dims);
    if (!t) return p->cx->error.status;
    t->data = sdx_arena_alloc(&p->s->arena, t->bytes + 8);
    if (!t->data) return SDX_FAIL_MEMORY(p->cx);
    for (int64_t i = 0; i < t->count; i++) {
        if (type->dtype == SDX_I64)
            ((int64_t *)t->data)[i] = ints->v[i];
        else
            ((int32_t *)t->data)[i] = (int32_t)ints->v[i];
    }
    t->is_constant = true;
    return sdx_place_value(p, value, t, (struct sdx_spot){.block = -1}, false);
}

static bool ints_tell_all(const struct sdx_ir_node *node, const struct inferred *f)
{
    if (node->count_outputs == 0) return false;
    for (int k = 0; k < node->count_outputs; k++) {
        const struct sdx_ints *ints = f->ints[k];
        const struct sdx_type *type = &f->out[k];
        int64_t count = 0;
        if (!ints || !sdx_planning_is_concrete(type) ||
            (type->dtype != SDX_I64 && type->dtype != SDX_I32))
            return false;
        if (!sdx_dims_count(type->dims, type->rank, &count) || count != ints->count) return false;
        for (int64_t i = 0; ints->sym && i < count; i++)
            if (ints->sym[i]) return false;
    }
    return true;
}

/* *done: the node was evaluated now. */
static enum sdx_status try_fold(struct sdx_planning *p, const struct sdx_ir_node *node,
                                const struct inferred *f, bool *done)
{
    *done = false;
    if (ints_tell_all(node, f)) {
        for (int k = 0; k < node->count_outputs; k++)
            if (node->outputs[k] >= 0)
                SDX_TRY(produce_ints(p, node->outputs[k], &f->out[k], f->ints[k]));
        *done = true;
        return SDX_OK;
    }
    if (node->count_inputs == 0 && node->op->flags & SDX_OP_IMPURE) return SDX_OK;
    const struct sdx_tensor **in =
        sdx_arena_array(&p->work, (size_t)node->count_inputs + 1, sizeof *in);
    struct sdx_tensor **out =
        sdx_arena_array(&p->work, (size_t)node->count_outputs + 1, sizeof *out);
    if (!in || !out) return SDX_FAIL_MEMORY(p->cx);
    for (int i = 0; i < node->count_inputs; i++) {
        if (node->inputs[i] < 0) continue;
        in[i] = sdx_planning_slot(p, node->inputs[i])->tensor;
        if (!in[i]->is_constant) return SDX_OK;
    }
    SDX_TRY(sdx_op_eval(p->cx, &p->s->arena, p->r->shared->ir, node, in, out, FOLD_MAX, done));
    for (int k = 0; *done && k < node->count_outputs; k++)
        if (node->outputs[k] >= 0)
            SDX_TRY(sdx_place_value(p, node->outputs[k], out[k], (struct sdx_spot){.block = -1},
                                    false));
    return SDX_OK;
}

/* ---- views ---- */

/* A view that leaves images and channels as they are keeps the layout of the input. */
static int view_layout(const struct sdx_planning *p, const struct sdx_ir_node *node,
                       const struct sdx_type *type)
{
    const struct sdx_tensor *in = sdx_planning_slot(p, node->inputs[0])->tensor;
    const bool keeps = in->layout != SDX_LAYOUT_PLAIN && type->has_shape &&
                       sdx_layout_serves(in->layout, in->dtype, type->rank) &&
                       sdx_dims_equal(in->dims, 2, type->dims, 2) &&
                       !sdx_planning_must_be_plain(p, node->outputs[0]);
    return keeps ? in->layout : SDX_LAYOUT_PLAIN;
}

static enum sdx_status plan_view(struct sdx_planning *p, const struct sdx_ir_node *node,
                                 const struct sdx_type *type)
{
    struct sdx_segment *s = p->s;
    struct sdx_spot spot;
    const int layout = view_layout(p, node, type);
    struct sdx_tensor *root = sdx_operand(p, node->inputs[0], layout, type->rank, &spot);
    struct sdx_tensor *view = NULL;
    if (!root) return p->cx->error.status;
    if (root->kind == SDX_KIND_TENSOR) {
        view = sdx_layout_tensor(p->cx, &s->arena, root->dtype, type->rank, type->dims, layout);
        if (view && view->bytes != root->bytes)
            return SDX_FAIL(p->cx, SDX_BAD_MODEL, "result has %lld elements, the input %lld",
                            (long long)view->count, (long long)root->count);
    } else {
        view = sdx_arena_alloc(&s->arena, sizeof *view);
        if (view)
            view->dims = view->dims_inline;
        else
            (void)SDX_FAIL_MEMORY(p->cx);
    }
    if (!view) return p->cx->error.status;
    if (root->is_constant) {
        view->data = root->data;
        view->is_constant = true;
        view->in_model = root->in_model;
        view->needs_copy = root->needs_copy;
        view->recipe = root->recipe;
    } else {
        SDX_TRY(sdx_place_at(p, view, spot));
    }
    return sdx_place_value(p, node->outputs[0], view, spot, false);
}

/* *ready is false when the node must wait for a later segment. */
static enum sdx_status plan_node(struct sdx_planning *p, const struct sdx_ir_node *node,
                                 bool *ready)
{
    *ready = true;
    if (!node->op)
        return SDX_FAIL(p->cx, SDX_NOT_SUPPORTED, "operator version %lld is not supported",
                        (long long)node->opset);
    for (int i = 0; i < node->count_inputs; i++) {
        if (node->inputs[i] < 0) continue;
        const struct sdx_slot *slot = sdx_planning_slot(p, node->inputs[i]);
        if (!slot->is_dynamic) continue;
        if (slot->depth == p->s->depth) {
            *ready = false;
            return SDX_OK;
        }
        SDX_TRY(watch(p, slot->tensor, false));
    }
    struct inferred f;
    SDX_TRY(infer(p, node, &f));
    if (p->cx->error.status != SDX_OK) return p->cx->error.status; /* memory, inside a callback */
    if (!(node->op->flags & SDX_OP_DYNAMIC)) {
        bool is_view = node->op->flags & SDX_OP_VIEW &&
                       sdx_planning_slot(p, node->inputs[0])->tensor->kind != SDX_KIND_TENSOR;
        for (int k = 0; k < node->count_outputs && !is_view; k++) {
            if (node->outputs[k] < 0 || sdx_planning_is_concrete(&f.out[k])) continue;
            if (!p->waits || (p->node == p->s->node_begin && p->s->depth > 0)) {
                if (node->op->flags & SDX_OP_TOLD_LATE) continue;
                return SDX_FAIL(p->cx, SDX_NOT_SUPPORTED, "shape of output %d cannot be told", k);
            }
            *ready = false;
            return SDX_OK;
        }
    }
    bool done = false;
    SDX_TRY(try_fold(p, node, &f, &done));
    if (done) return SDX_OK;
    if (node->op->flags & SDX_OP_VIEW) {
        const struct sdx_tensor *from = sdx_planning_slot(p, node->inputs[0])->tensor;
        if (from->kind == SDX_KIND_TENSOR && from->dtype == SDX_STRING && !from->is_constant)
            return sdx_operand_copy_strings(p, node, &f.out[0]);
        return plan_view(p, node, &f.out[0]);
    }
    return sdx_operand_steps(p, node, f.out);
}

static enum sdx_status say_where(struct sdx_planning *p, const struct sdx_ir_node *node)
{
    struct sdx_text inputs;
    sdx_text_init(&inputs, p->cx->mem);
    for (int i = 0; i < node->count_inputs && i < 8; i++) {
        if (node->inputs[i] < 0) continue;
        const struct sdx_tensor *t = sdx_planning_slot(p, node->inputs[i])->tensor;
        char shape[160];
        sdx_text_add(&inputs, "%s%.*s %s", inputs.len ? ", " : "",
                     SDX_STR_ARG(p->r->g->values[node->inputs[i]].name),
                     t ? sdx_tensor_describe(t, shape, sizeof shape) : "?");
    }
    enum sdx_status status =
        sdx_fail_where(p->cx, "node \"%.*s\" (%.*s: %.400s)", SDX_STR_ARG(node->name),
                       SDX_STR_ARG(node->op_type), sdx_text_get(&inputs));
    sdx_text_deinit(&inputs);
    return status;
}

/* ---- the whole segment ---- */

static enum sdx_status plan_nodes(struct sdx_planning *p)
{
    struct sdx_segment *s = p->s;
    const struct sdx_ir_graph *g = p->r->g;
    s->externals = sdx_arena_array(&s->arena, (size_t)g->count_outputs + 1, sizeof *s->externals);
    if (!s->externals) return SDX_FAIL_MEMORY(p->cx);
    for (p->node = s->node_begin; p->node < g->count_nodes; p->node++) {
        const struct sdx_ir_node *node = &g->nodes[p->node];
        if (node->is_dead) continue;
        if (atomic_load_explicit(p->r->shared->cancel, memory_order_relaxed))
            return SDX_FAIL(p->cx, SDX_CANCELLED, "the run was cancelled");
        bool ready = false;
        enum sdx_status status = plan_node(p, node, &ready);
        if (status != SDX_OK) return say_where(p, node);
        if (!ready) break;
    }
    s->node_end = p->node;
    s->is_last = p->node == g->count_nodes;
    if (!s->is_last && s->node_end == s->node_begin && s->depth > 0)
        return SDX_FAIL(p->cx, SDX_INTERNAL, "planning does not advance");
    SDX_TRY(sdx_chain_join(p));
    SDX_TRY(sdx_absorb_steps(p));
    SDX_TRY(sdx_place_finish(p));
    for (int32_t i = 0; i < s->list.count; i++)
        if (s->list.steps[i].scratch > s->scratch) s->scratch = s->list.steps[i].scratch;
    return p->r->shared->profile ? sdx_profile_add_segment(p->r->shared->profile, p->cx, p->r, s)
                                 : SDX_OK;
}

enum sdx_status sdx_segment_create(struct sdx_runner *r, int depth, int32_t node_begin,
                                   struct sdx_segment **out)
{
    struct sdx_context *cx = r->shared->cx;
    *out = NULL;
    struct sdx_segment *s = sdx_mem_calloc(cx->mem, SDX_MEM_PLAN, 1, sizeof *s);
    if (!s) return SDX_FAIL_MEMORY(cx);
    sdx_arena_init(&s->arena, cx->mem, SDX_MEM_PLAN);
    s->depth = depth;
    s->node_begin = node_begin;
    s->list.arena = &s->arena;
    struct sdx_planning p = {.r = r, .s = s, .cx = cx};
    sdx_arena_init(&p.work, cx->mem, SDX_MEM_PLAN);
    p.twins = sdx_arena_array(&p.work, (size_t)r->g->count_values + 1, sizeof *p.twins);
    enum sdx_status status = p.twins ? SDX_OK : SDX_FAIL_MEMORY(cx);
    if (status == SDX_OK &&
        depth == 0) { /* everything from outside is a fact of the first segment */
        for (int i = 0; i < r->g->count_inputs && status == SDX_OK; i++)
            status = watch(&p, &r->inputs[i], false);
        for (int32_t v = 0; v < r->g->count_values && status == SDX_OK; v++)
            if (r->g->values[v].outer >= 0 && r->slots[v].tensor &&
                !r->slots[v].tensor->is_constant)
                status = watch(&p, r->slots[v].tensor, false);
        const size_t count = (size_t)r->g->count_outputs;
        if (status == SDX_OK && !r->is_body && count) {
            s->grown = sdx_arena_copy(&s->arena, r->grown, count * sizeof *r->grown);
            if (!s->grown) status = SDX_FAIL_MEMORY(cx);
        }
    }
    if (status == SDX_OK) status = plan_nodes(&p);
    sdx_arena_deinit(&p.work);
    sdx_mem_free(cx->mem, p.aligned);
    if (status == SDX_OK)
        *out = s;
    else
        sdx_segment_destroy(s);
    return status;
}

void sdx_segment_destroy(struct sdx_segment *s)
{
    if (!s) return;
    for (struct sdx_segment *c = s->children, *next; c; c = next) {
        next = c->next;
        sdx_segment_destroy(c);
    }
    for (struct sdx_body_runner *b = s->bodies, *next; b; b = next) {
        next = b->next;
        sdx_runner_deinit(&b->runner);
    }
    for (int32_t i = 0; i < s->count_dynamic; i++)
        sdx_op_tensor_clear(s->dynamic[i]);
    struct sdx_mem *mem = s->arena.mem;
    sdx_arena_deinit(&s->arena);
    sdx_mem_free(mem, s);
}
