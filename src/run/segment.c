/* SPDX-License-Identifier: Apache-2.0
 * Planning: from nodes with known input shapes to steps over placed operands. Small nodes whose
 * inputs are all known (shape arithmetic) are evaluated here and leave no step. */
#include "run/profile.h"
#include "run/runner.h"

enum { FOLD_MAX = 256 * 1024, WATCH_MAX = 64 * 1024 };

struct planning {
    struct sdx_runner *r;
    struct sdx_segment *s;
    struct sdx_context *cx;
    struct sdx_arena work;
    struct sdx_block *blocks;
    int32_t count_blocks, capacity_blocks;
    struct pending {
        struct sdx_tensor *tensor;
        int32_t block;
    } * pending;
    int32_t count_pending, capacity_pending;
    int32_t temps_placed;
    char *aligned; /* copies of unaligned constants while their node is prepared */
    size_t aligned_size;
    struct aligned_copy {
        struct sdx_tensor *copy;
        const struct sdx_tensor *original;
    } * copies;
    int count_copies;
    int32_t node;
    bool waits; /* the node asked for content that is not there yet */
};

/* Room for one more in an arena array. false: no memory (error set). */
static bool reserve(struct planning *p, struct sdx_arena *arena, void **array, int32_t count,
                    int32_t *capacity, size_t size)
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
#define RESERVE(p, arena, array, count, capacity)                                                  \
    reserve((p), (arena), (void **)&(array), (count), &(capacity), sizeof *(array))

static struct sdx_slot *slot_of(const struct planning *p, int32_t value)
{
    return &p->r->slots[value];
}

/* The plan relies on the shape, or the content too, of a value that an earlier segment or the
 * caller gave. */
static enum sdx_status watch(struct planning *p, const struct sdx_tensor *t, bool content)
{
    struct sdx_segment *s = p->s;
    for (int32_t i = 0; i < s->count_watches; i++)
        if (s->watches[i].tensor == t && (s->watches[i].bytes || !content)) return SDX_OK;
    if (!RESERVE(p, &s->arena, s->watches, s->count_watches, s->capacity_watches))
        return p->cx->error.status;
    struct sdx_watch w = {.tensor = t, .rank = t->rank, .kind = t->kind, .dtype = t->dtype};
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

static const struct sdx_tensor *known_value(struct planning *p, const struct sdx_ir_node *node,
                                            int i)
{
    if (i >= node->count_inputs || node->inputs[i] < 0) return NULL;
    const struct sdx_slot *slot = slot_of(p, node->inputs[i]);
    struct sdx_tensor *t = slot->tensor;
    if (t->is_constant) return t->is_unaligned ? NULL : t;
    if (slot->depth >= p->s->depth || t->kind != SDX_KIND_TENSOR || t->dtype == SDX_STRING ||
        t->bytes > WATCH_MAX) {
        p->waits = true;
        return NULL;
    }
    return watch(p, t, true) == SDX_OK ? t : NULL;
}

static const struct sdx_tensor *infer_value(struct sdx_infer *ix, int i)
{
    return known_value(ix->host, ix->node, i);
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

static enum sdx_status infer(struct planning *p, const struct sdx_ir_node *node,
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
        const struct sdx_tensor *t = slot_of(p, node->inputs[i])->tensor;
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

static bool is_concrete(const struct sdx_type *type)
{
    if (type->kind != SDX_KIND_TENSOR || !type->has_shape || !type->dtype) return false;
    for (int d = 0; d < type->rank; d++)
        if (type->dims[d] < 0) return false;
    return true;
}

/* ---- outputs ---- */

static enum sdx_status produce(struct planning *p, int32_t value, struct sdx_tensor *t,
                               int32_t block, bool is_dynamic)
{
    struct sdx_segment *s = p->s;
    struct sdx_slot *slot = slot_of(p, value);
    slot->tensor = t;
    slot->block = block;
    slot->depth = (int16_t)(t->is_constant ? -1 : s->depth);
    slot->is_dynamic = is_dynamic;
    if (!RESERVE(p, &s->arena, s->produced, s->count_produced, s->capacity_produced))
        return p->cx->error.status;
    s->produced[s->count_produced++] = (struct sdx_produced){value, t};
    return SDX_OK;
}

static int32_t new_block(struct planning *p, size_t size, int32_t first, int32_t last)
{
    if (!RESERVE(p, &p->work, p->blocks, p->count_blocks, p->capacity_blocks)) return -1;
    p->blocks[p->count_blocks] =
        (struct sdx_block){.size = size, .first = first, .last = last < first ? first : last};
    return p->count_blocks++;
}

static enum sdx_status place(struct planning *p, struct sdx_tensor *t, int32_t block)
{
    if (block < 0 || !RESERVE(p, &p->work, p->pending, p->count_pending, p->capacity_pending))
        return p->cx->error.status;
    p->pending[p->count_pending++] = (struct pending){t, block};
    return SDX_OK;
}

/* An integer output whose content inference told becomes a constant. */
static enum sdx_status produce_ints(struct planning *p, int32_t value, const struct sdx_type *type,
                                    const struct sdx_ints *ints)
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
    return produce(p, value, t, -1, false);
}

static bool ints_tell_all(const struct sdx_ir_node *node, const struct inferred *f)
{
    if (node->count_outputs == 0) return false;
    for (int k = 0; k < node->count_outputs; k++) {
        const struct sdx_ints *ints = f->ints[k];
        const struct sdx_type *type = &f->out[k];
        int64_t count = 0;
        if (!ints || !is_concrete(type) || (type->dtype != SDX_I64 && type->dtype != SDX_I32))
            return false;
        if (!sdx_dims_count(type->dims, type->rank, &count) || count != ints->count) return false;
        for (int64_t i = 0; ints->sym && i < count; i++)
            if (ints->sym[i]) return false;
    }
    return true;
}

/* *done: the node was evaluated now. */
static enum sdx_status try_fold(struct planning *p, const struct sdx_ir_node *node,
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
        in[i] = slot_of(p, node->inputs[i])->tensor;
        if (!in[i]->is_constant) return SDX_OK;
    }
    SDX_TRY(sdx_op_eval(p->cx, &p->s->arena, p->r->shared->ir, node, in, out, FOLD_MAX, done));
    for (int k = 0; *done && k < node->count_outputs; k++)
        if (node->outputs[k] >= 0) SDX_TRY(produce(p, node->outputs[k], out[k], -1, false));
    return SDX_OK;
}

/* ---- views ---- */

static enum sdx_status run_copy(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)x, (void)part;
    if (step->in[0]->bytes) memcpy(step->out[0]->data, step->in[0]->data, step->in[0]->bytes);
    return SDX_OK;
}

static enum sdx_status plan_view(struct planning *p, const struct sdx_ir_node *node,
                                 const struct sdx_type *type)
{
    struct sdx_segment *s = p->s;
    const struct sdx_slot *from = slot_of(p, node->inputs[0]);
    struct sdx_tensor *root = from->tensor, *view = NULL;
    if (root->kind == SDX_KIND_TENSOR) {
        view = sdx_op_tensor(p->cx, &s->arena, root->dtype, type->rank, type->dims);
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
    int32_t value = node->outputs[0];
    if (root->is_constant) {
        view->data = root->data;
        view->is_constant = true;
        view->in_model = root->in_model;
        view->is_unaligned = root->is_unaligned;
        return produce(p, value, view, -1, false);
    }
    if (from->depth == s->depth && from->block >= 0) {
        struct sdx_block *block = &p->blocks[from->block];
        if (slot_of(p, value)->last_use > block->last) block->last = slot_of(p, value)->last_use;
        SDX_TRY(place(p, view, from->block));
        return produce(p, value, view, from->block, false);
    }
    if (!RESERVE(p, &s->arena, s->aliases, s->count_aliases, s->capacity_aliases))
        return p->cx->error.status;
    s->aliases[s->count_aliases++] = (struct sdx_alias){view, root};
    return produce(p, value, view, -1, false);
}

/* ---- steps ---- */

/* The block of an input that output 0 may be written over, or -1. */
static int32_t in_place_block(struct planning *p, const struct sdx_ir_node *node,
                              const struct sdx_tensor *out)
{
    if (out->dtype == SDX_STRING) return -1;
    for (int k = 0; k < 8 && k < node->count_inputs; k++) {
        if (!(node->op->flags & SDX_OP_INPLACE(k)) || node->inputs[k] < 0) continue;
        const struct sdx_slot *slot = slot_of(p, node->inputs[k]);
        if (slot->depth != p->s->depth || slot->block < 0 || slot->tensor->bytes != out->bytes)
            continue;
        if (slot->tensor->count != out->count || p->blocks[slot->block].last != p->node) continue;
        bool shared = false;
        for (int i = 0; i < node->count_inputs; i++)
            if (i != k && node->inputs[i] >= 0 && slot_of(p, node->inputs[i])->depth == p->s->depth)
                shared = shared || slot_of(p, node->inputs[i])->block == slot->block;
        if (!shared) return slot->block;
    }
    return -1;
}

static enum sdx_status make_output(struct planning *p, const struct sdx_ir_node *node, int k,
                                   const struct sdx_type *type, struct sdx_tensor **out)
{
    struct sdx_segment *s = p->s;
    int32_t value = node->outputs[k];
    const struct sdx_slot *slot = slot_of(p, value);
    if (node->op->flags & SDX_OP_DYNAMIC || type->dtype == SDX_STRING) {
        bool is_dynamic = (node->op->flags & SDX_OP_DYNAMIC) != 0;
        if (is_dynamic) {
            *out = sdx_arena_alloc(&s->arena, sizeof **out);
            if (!*out) return SDX_FAIL_MEMORY(p->cx);
            (*out)->dims = (*out)->dims_inline;
            (*out)->kind = type->kind;
            (*out)->dtype = type->dtype;
        } else { /* strings have their array in the arena until a step gives them one of their own
                  */
            *out = sdx_op_tensor(p->cx, &s->arena, type->dtype, type->rank, type->dims);
            if (!*out) return p->cx->error.status;
            (*out)->data = sdx_arena_alloc(&s->arena, (*out)->bytes + 16);
            if (!(*out)->data) return SDX_FAIL_MEMORY(p->cx);
        }
        if (!RESERVE(p, &s->arena, s->dynamic, s->count_dynamic, s->capacity_dynamic))
            return p->cx->error.status;
        s->dynamic[s->count_dynamic++] = *out;
        return produce(p, value, *out, -1, is_dynamic);
    }
    *out = sdx_op_tensor(p->cx, &s->arena, type->dtype, type->rank, type->dims);
    if (!*out) return p->cx->error.status;
    if (slot->claim >= 0) {
        s->externals[s->count_externals++] = (struct sdx_external_output){*out, slot->claim};
        return produce(p, value, *out, -1, false);
    }
    int32_t block = k == 0 ? in_place_block(p, node, *out) : -1;
    if (block >= 0) {
        if (slot->last_use > p->blocks[block].last) p->blocks[block].last = slot->last_use;
    } else {
        block = new_block(p, (*out)->bytes, p->node, slot->last_use);
    }
    SDX_TRY(place(p, *out, block));
    return produce(p, value, *out, block, false);
}

static const struct sdx_tensor *prepare_value(struct sdx_prepare *px, int i)
{
    struct planning *p = ((struct sdx_prepare_host *)px->host)->user;
    return known_value(p, px->node, i);
}

static const void *prepare_pack(struct sdx_prepare *px, const struct sdx_tensor *constant,
                                const char *key, int64_t variant, size_t size, sdx_pack_fn *pack,
                                void *arg)
{
    struct planning *p = ((struct sdx_prepare_host *)px->host)->user;
    for (int c = 0; c < p->count_copies; c++)
        if (p->copies[c].copy == constant) constant = p->copies[c].original;
    if (constant->in_model)
        return sdx_store_get(p->r->shared->store, px->cx, constant, key, variant, size, pack, arg);
    void *packed = sdx_prepare_alloc(px, size + 64);
    return packed && pack(px->cx, packed, arg) == SDX_OK ? packed : NULL;
}

static struct sdx_body *prepare_body(struct sdx_prepare *px, int32_t graph)
{
    struct planning *p = ((struct sdx_prepare_host *)px->host)->user;
    return sdx_runner_body(p->r, p->s, graph);
}

/* Constants that lie at odd addresses are copied for the time of `prepare`. */
static enum sdx_status align_inputs(struct planning *p, struct sdx_tensor **in, int count)
{
    size_t total = 0;
    p->count_copies = 0;
    for (int i = 0; i < count; i++)
        if (in[i] && in[i]->is_unaligned) total += (in[i]->bytes + 127) / 64 * 64;
    if (!total) return SDX_OK;
    if (total > p->aligned_size) {
        sdx_mem_free(p->cx->mem, p->aligned);
        p->aligned = sdx_mem_alloc(p->cx->mem, SDX_MEM_PLAN, total);
        p->aligned_size = p->aligned ? total : 0;
        if (!p->aligned) return SDX_FAIL_MEMORY(p->cx);
    }
    p->copies = sdx_arena_array(&p->work, (size_t)count, sizeof *p->copies);
    if (!p->copies) return SDX_FAIL_MEMORY(p->cx);
    char *at = p->aligned;
    for (int i = 0; i < count; i++) {
        if (!in[i] || !in[i]->is_unaligned) continue;
        struct sdx_tensor *copy = sdx_arena_copy(&p->s->arena, in[i], sizeof *copy);
        if (!copy) return SDX_FAIL_MEMORY(p->cx);
        if (in[i]->dims == in[i]->dims_inline) copy->dims = copy->dims_inline;
        copy->is_unaligned = false;
        copy->data = memcpy(at, in[i]->data, in[i]->bytes);
        at += (in[i]->bytes + 127) / 64 * 64;
        p->copies[p->count_copies++] = (struct aligned_copy){copy, in[i]};
        in[i] = copy;
    }
    return SDX_OK;
}

static enum sdx_status pack_aligned(struct sdx_context *cx, void *dst, void *arg)
{
    (void)cx;
    const struct sdx_tensor *from = arg;
    memcpy(dst, from->data, from->bytes);
    return SDX_OK;
}

/* Copies that the node's steps read while running get a place that stays: shared in the model's
 * store. */
static enum sdx_status keep_aligned(struct planning *p, int32_t first_step)
{
    for (int c = 0; c < p->count_copies; c++) {
        struct sdx_tensor *copy = p->copies[c].copy;
        bool read = false;
        for (int32_t s = first_step; s < p->s->list.count && !read; s++)
            for (int i = 0; i < p->s->list.steps[s].count_in && !read; i++)
                read = p->s->list.steps[s].in[i] == copy;
        if (!read) continue;
        const void *kept = NULL;
        if (copy->in_model)
            kept = sdx_store_get(p->r->shared->store, p->cx, p->copies[c].original, "aligned", 0,
                                 copy->bytes, pack_aligned, copy);
        else if (!(kept = sdx_arena_copy(&p->s->arena, copy->data, copy->bytes)))
            return SDX_FAIL_MEMORY(p->cx);
        if (!kept) return p->cx->error.status;
        copy->data = (void *)(uintptr_t)kept;
    }
    p->count_copies = 0;
    return SDX_OK;
}

static enum sdx_status plan_steps(struct planning *p, const struct sdx_ir_node *node,
                                  const struct inferred *f)
{
    struct sdx_segment *s = p->s;
    struct sdx_tensor **in = sdx_arena_array(&s->arena, (size_t)node->count_inputs + 1, sizeof *in);
    struct sdx_tensor **out =
        sdx_arena_array(&s->arena, (size_t)node->count_outputs + 1, sizeof *out);
    if (!in || !out) return SDX_FAIL_MEMORY(p->cx);
    for (int i = 0; i < node->count_inputs; i++)
        if (node->inputs[i] >= 0) in[i] = slot_of(p, node->inputs[i])->tensor;
    for (int k = 0; k < node->count_outputs; k++)
        if (node->outputs[k] >= 0) SDX_TRY(make_output(p, node, k, &f->out[k], &out[k]));
    SDX_TRY(align_inputs(p, in, node->count_inputs));
    int32_t first_step = s->list.count;
    struct sdx_prepare_host host = {.list = &s->list,
                                    .value = prepare_value,
                                    .pack = prepare_pack,
                                    .body = prepare_body,
                                    .user = p};
    struct sdx_prepare px = {.cx = p->cx,
                             .arena = &s->arena,
                             .ir = p->r->shared->ir,
                             .node = node,
                             .opset = node->opset,
                             .count_in = node->count_inputs,
                             .count_out = node->count_outputs,
                             .in = in,
                             .out = out,
                             .host = &host};
    s->list.node = p->node;
    SDX_TRY(sdx_op_prepare_node(&px, node->op));
    SDX_TRY(keep_aligned(p, first_step));
    for (; p->temps_placed < s->list.count_temps; p->temps_placed++) {
        struct sdx_tensor *temp = s->list.temps[p->temps_placed].tensor;
        SDX_TRY(place(p, temp, new_block(p, temp->bytes, p->node, p->node)));
    }
    return SDX_OK;
}

static enum sdx_status plan_string_copy(struct planning *p, const struct sdx_ir_node *node,
                                        const struct sdx_type *type)
{
    struct sdx_tensor *from = slot_of(p, node->inputs[0])->tensor, *to = NULL;
    SDX_TRY(make_output(p, node, 0, type, &to));
    struct sdx_prepare_host host = {.list = &p->s->list, .user = p};
    struct sdx_prepare px = {.cx = p->cx, .arena = &p->s->arena, .node = node, .host = &host};
    p->s->list.node = p->node;
    return sdx_prepare_step_on(&px, "copy", run_copy, NULL, 1, 0, 1, &from, 1, &to);
}

/* *ready is false when the node must wait for a later segment. */
static enum sdx_status plan_node(struct planning *p, const struct sdx_ir_node *node, bool *ready)
{
    *ready = true;
    if (!node->op)
        return SDX_FAIL(p->cx, SDX_NOT_SUPPORTED, "operator version %lld is not supported",
                        (long long)node->opset);
    for (int i = 0; i < node->count_inputs; i++) {
        if (node->inputs[i] < 0) continue;
        const struct sdx_slot *slot = slot_of(p, node->inputs[i]);
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
                       slot_of(p, node->inputs[0])->tensor->kind != SDX_KIND_TENSOR;
        for (int k = 0; k < node->count_outputs && !is_view; k++) {
            if (node->outputs[k] < 0 || is_concrete(&f.out[k])) continue;
            if (!p->waits || (p->node == p->s->node_begin && p->s->depth > 0))
                return SDX_FAIL(p->cx, SDX_NOT_SUPPORTED, "shape of output %d cannot be told", k);
            *ready = false;
            return SDX_OK;
        }
    }
    bool done = false;
    SDX_TRY(try_fold(p, node, &f, &done));
    if (done) return SDX_OK;
    if (node->op->flags & SDX_OP_VIEW) {
        const struct sdx_tensor *from = slot_of(p, node->inputs[0])->tensor;
        if (from->kind == SDX_KIND_TENSOR && from->dtype == SDX_STRING && !from->is_constant)
            return plan_string_copy(p, node, &f.out[0]);
        return plan_view(p, node, &f.out[0]);
    }
    return plan_steps(p, node, &f);
}

static enum sdx_status say_where(struct planning *p, const struct sdx_ir_node *node)
{
    struct sdx_text inputs;
    sdx_text_init(&inputs, p->cx->mem);
    for (int i = 0; i < node->count_inputs && i < 8; i++) {
        if (node->inputs[i] < 0) continue;
        const struct sdx_tensor *t = slot_of(p, node->inputs[i])->tensor;
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

static enum sdx_status lay_out(struct planning *p)
{
    struct sdx_segment *s = p->s;
    SDX_TRY(sdx_layout(p->cx, &p->work, p->blocks, p->count_blocks, &s->slab_size));
    s->placed = sdx_arena_array(&s->arena, (size_t)p->count_pending + 1, sizeof *s->placed);
    if (!s->placed) return SDX_FAIL_MEMORY(p->cx);
    for (int32_t i = 0; i < p->count_pending; i++)
        s->placed[i] =
            (struct sdx_placed){p->pending[i].tensor, p->blocks[p->pending[i].block].offset};
    s->count_placed = p->count_pending;
    for (int32_t i = 0; i < s->list.count; i++)
        if (s->list.steps[i].scratch > s->scratch) s->scratch = s->list.steps[i].scratch;
    return SDX_OK;
}

static enum sdx_status plan_nodes(struct planning *p)
{
    struct sdx_segment *s = p->s;
    const struct sdx_ir_graph *g = p->r->g;
    s->externals = sdx_arena_array(&s->arena, (size_t)g->count_outputs + 1, sizeof *s->externals);
    if (!s->externals) return SDX_FAIL_MEMORY(p->cx);
    for (p->node = s->node_begin; p->node < g->count_nodes; p->node++) {
        const struct sdx_ir_node *node = &g->nodes[p->node];
        if (node->is_dead) continue;
        if (atomic_load_explicit(&p->r->shared->cancel, memory_order_relaxed))
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
    SDX_TRY(lay_out(p));
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
    struct planning p = {.r = r, .s = s, .cx = cx};
    sdx_arena_init(&p.work, cx->mem, SDX_MEM_PLAN);
    enum sdx_status status = SDX_OK;
    if (depth == 0) { /* everything from outside is a fact of the first segment */
        for (int i = 0; i < r->g->count_inputs && status == SDX_OK; i++)
            status = watch(&p, &r->inputs[i], false);
        for (int32_t v = 0; v < r->g->count_values && status == SDX_OK; v++)
            if (r->g->values[v].outer >= 0 && r->slots[v].tensor &&
                !r->slots[v].tensor->is_constant)
                status = watch(&p, r->slots[v].tensor, false);
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
