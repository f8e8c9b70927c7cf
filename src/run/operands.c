/* SPDX-License-Identifier: Apache-2.0
 * From a node to its steps: operands in the layouts that it wants, constants in reach, memory for
 * the results, and what lies in one piece without a copy. */
#include "ops/layout.h"
#include "run/custom_nodes.h"
#include "run/planning.h"
#include "run/tune.h"

/* ---- layouts ---- */

static enum sdx_status pack_layout(struct sdx_context *cx, void *dst, void *arg)
{
    (void)cx;
    struct sdx_tensor **pair = arg; /* from, to */
    pair[1]->data = dst;
    sdx_layout_copy(pair[0], pair[1]);
    return SDX_OK;
}

/* A constant in another layout, as if its shape had `rank` axes (ones in front). */
static struct sdx_tensor *constant_in(struct sdx_planning *p, struct sdx_tensor *from, int layout,
                                      int rank)
{
    int64_t dims[SDX_RANK_MAX];
    for (int d = 0; d < rank; d++)
        dims[d] = d < rank - from->rank ? 1 : from->dims[d - (rank - from->rank)];
    struct sdx_tensor *to = sdx_layout_tensor(p->cx, &p->s->arena, from->dtype, rank, dims, layout);
    struct sdx_tensor *as =
        sdx_layout_tensor(p->cx, &p->work, from->dtype, rank, dims, SDX_LAYOUT_PLAIN);
    if (!to || !as) return NULL;
    as->data = from->data;
    if (from->needs_copy) {
        as->data = sdx_arena_alloc(&p->work, from->bytes);
        if (!as->data) {
            (void)SDX_FAIL_MEMORY(p->cx);
            return NULL;
        }
        sdx_tensor_copy_elements(from, as->data);
    }
    to->is_constant = true;
    to->in_model = from->in_model;
    struct sdx_tensor *pair[] = {as, to};
    const struct sdx_pack pack = {.key = "layout",
                                  .variant = layout + 4 * to->dims[1],
                                  .size = to->bytes,
                                  .pack = pack_layout,
                                  .arg = pair};
    if (from->in_model)
        to->data = (void *)(uintptr_t)sdx_store_get(p->r->shared->store, p->cx, from, &pack);
    else if (!(to->data = sdx_arena_alloc(&p->s->arena, to->bytes + 64)))
        (void)SDX_FAIL_MEMORY(p->cx);
    else
        sdx_layout_copy(as, to);
    return to->data ? to : NULL;
}

static enum sdx_status add_reorder(struct sdx_planning *p, struct sdx_tensor *from,
                                   struct sdx_tensor *to)
{
    struct sdx_prepare_host host = {.list = &p->s->list, .user = p};
    struct sdx_prepare px = {
        .cx = p->cx, .arena = &p->s->arena, .node = &p->r->g->nodes[p->node], .host = &host};
    p->s->list.node = p->node;
    return sdx_layout_reorder(&px, from, to);
}

static struct sdx_twin *twin_add(struct sdx_planning *p, int32_t value, struct sdx_tensor *t,
                                 struct sdx_spot spot)
{
    struct sdx_twin *twin = sdx_arena_alloc(&p->work, sizeof *twin);
    if (!twin) {
        (void)SDX_FAIL_MEMORY(p->cx);
        return NULL;
    }
    *twin = (struct sdx_twin){p->twins[value], t, spot};
    p->twins[value] = twin;
    return twin;
}

static struct sdx_tensor *make_twin(struct sdx_planning *p, int32_t value, int layout,
                                    struct sdx_spot *spot)
{
    struct sdx_tensor *from = sdx_planning_slot(p, value)->tensor;
    if (from->layout == SDX_LAYOUT_GROWING && layout != SDX_LAYOUT_PLAIN)
        from = sdx_operand(p, value, SDX_LAYOUT_PLAIN, from->rank, spot);
    struct sdx_tensor *to =
        from ? sdx_layout_tensor(p->cx, &p->s->arena, from->dtype, from->rank, from->dims, layout)
             : NULL;
    if (!to) return NULL;
    const int other = layout == SDX_LAYOUT_PLAIN ? from->layout : layout;
    const bool same = (layout == SDX_LAYOUT_PLAIN || from->layout == SDX_LAYOUT_PLAIN) &&
                      sdx_layout_is_same(other, from->rank, from->dims);
    if (same) {
        if (from == sdx_planning_slot(p, value)->tensor) *spot = sdx_place_of_slot(p, value);
    } else {
        spot->block = sdx_place_new_block(p, to->bytes, p->node, p->node);
        if (spot->block < 0) return NULL;
        sdx_place_extend(p, spot->block, sdx_planning_slot(p, value)->last_use);
    }
    if (sdx_place_at(p, to, *spot) != SDX_OK || !twin_add(p, value, to, *spot)) return NULL;
    return same || add_reorder(p, from, to) == SDX_OK ? to : NULL;
}

struct sdx_tensor *sdx_operand(struct sdx_planning *p, int32_t value, int layout, int rank,
                               struct sdx_spot *spot)
{
    struct sdx_tensor *t = sdx_planning_slot(p, value)->tensor;
    *spot = sdx_place_of_slot(p, value);
    if (t->kind != SDX_KIND_TENSOR || t->layout == layout) return t;
    *spot = (struct sdx_spot){.block = -1};
    if (t->is_constant) return constant_in(p, t, layout, rank);
    for (struct sdx_twin *twin = p->twins[value]; twin; twin = twin->next)
        if (twin->tensor->layout == layout) {
            *spot = twin->spot;
            return twin->tensor;
        }
    return make_twin(p, value, layout, spot);
}

/* ---- results ---- */

static enum sdx_status note_dynamic(struct sdx_planning *p, struct sdx_tensor *t)
{
    struct sdx_segment *s = p->s;
    if (!SDX_RESERVE(p, &s->arena, s->dynamic, s->count_dynamic, s->capacity_dynamic))
        return p->cx->error.status;
    s->dynamic[s->count_dynamic++] = t;
    return SDX_OK;
}

/* Results that bring their own memory; strings have an array in the arena until then. */
static enum sdx_status owning_output(struct sdx_planning *p, int32_t value, bool is_dynamic,
                                     const struct sdx_type *type, struct sdx_tensor **out)
{
    struct sdx_segment *s = p->s;
    if (is_dynamic) {
        *out = sdx_arena_alloc(&s->arena, sizeof **out);
        if (!*out) return SDX_FAIL_MEMORY(p->cx);
        (*out)->dims = (*out)->dims_inline;
        (*out)->kind = type->kind;
        (*out)->dtype = type->dtype;
    } else {
        *out = sdx_op_tensor(p->cx, &s->arena, type->dtype, type->rank, type->dims);
        if (!*out) return p->cx->error.status;
        (*out)->data = sdx_arena_alloc(&s->arena, (*out)->bytes + 16);
        if (!(*out)->data) return SDX_FAIL_MEMORY(p->cx);
    }
    SDX_TRY(note_dynamic(p, *out));
    return sdx_place_value(p, value, *out, (struct sdx_spot){.block = -1}, is_dynamic);
}

/* Gives `out` memory: the caller's, that of an input of the node that dies here, of those in the
 * inputs `over`, or a block of its own. */
static enum sdx_status give_memory(struct sdx_planning *p, int32_t value,
                                   const struct sdx_ir_node *node, uint32_t over,
                                   struct sdx_tensor *out, struct sdx_spot *spot)
{
    struct sdx_segment *s = p->s;
    const struct sdx_slot *slot = sdx_planning_slot(p, value);
    *spot = (struct sdx_spot){.block = -1};
    if (slot->claim >= 0 && out->layout == SDX_LAYOUT_PLAIN) {
        s->externals[s->count_externals++] = (struct sdx_external_output){out, slot->claim};
        return SDX_OK;
    }
    if (over && slot->claim < 0) *spot = sdx_place_over_input(p, node, over, out);
    if (spot->block < 0) spot->block = sdx_place_new_block(p, out->bytes, p->node, p->node);
    if (spot->block < 0) return p->cx->error.status;
    return sdx_place_at(p, out, *spot);
}

/* ---- results that grow ---- */

/* Written for other types than what is in memory? Then operands are converted as a whole. */
static bool is_converted(const struct sdx_op *op, int dtype)
{
    return op->flags & SDX_OP_VIA_F32 && dtype != SDX_F32 && dtype != SDX_F64;
}

/* The graph input in whose memory output k of the node is to be made, with more positions behind
 * what that has; *grown is NULL when there is none. */
static enum sdx_status find_grown(struct sdx_planning *p, const struct sdx_ir_node *node, int k,
                                  const struct sdx_type *type, int layout,
                                  const struct sdx_tensor **grown)
{
    const struct sdx_runner *r = p->r;
    const struct sdx_slot *slot = sdx_planning_slot(p, node->outputs[k]);
    const int32_t o = slot->claim;
    int input = -1, axis = -1;
    *grown = NULL;
    if (o < 0 || r->grown[o] < 0 || layout != SDX_LAYOUT_PLAIN ||
        r->g->outputs[o] != node->outputs[k] || slot->is_taken || !node->op->grow ||
        is_converted(node->op, type->dtype) || !node->op->grow(node, k, type->rank, &input, &axis))
        return SDX_OK;
    const struct sdx_tensor *past = &r->inputs[r->grown[o]];
    if (input >= node->count_inputs || node->inputs[input] != r->g->inputs[r->grown[o]] ||
        past->layout != SDX_LAYOUT_GROWING || past->axis != axis || past->rank != type->rank ||
        past->dtype != type->dtype)
        return SDX_OK;
    for (int d = 0; d < type->rank; d++)
        if (d != axis && past->dims[d] != type->dims[d]) return SDX_OK;
    SDX_TRY(sdx_runner_check_capacity(r, o, type->dims[axis], past));
    *grown = past;
    return SDX_OK;
}

static enum sdx_status grown_output(struct sdx_planning *p, int32_t value,
                                    const struct sdx_type *type, const struct sdx_tensor *past,
                                    struct sdx_tensor **out, struct sdx_spot *spot)
{
    *out = sdx_op_tensor(p->cx, &p->s->arena, type->dtype, type->rank, type->dims);
    if (!*out) return p->cx->error.status;
    sdx_tensor_lie_as(*out, past);
    *spot = (struct sdx_spot){.block = -1, .root = past};
    SDX_TRY(sdx_place_at(p, *out, *spot));
    return sdx_place_value(p, value, *out, *spot, false);
}

/* The layout in which the node takes input i: as it is when that grows and the node can. */
static int layout_of_input(const struct sdx_planning *p, const struct sdx_ir_node *node, int i,
                           int wanted)
{
    const struct sdx_tensor *t = sdx_planning_slot(p, node->inputs[i])->tensor;
    const bool takes = t->layout == SDX_LAYOUT_GROWING && wanted == SDX_LAYOUT_PLAIN && i < 32 &&
                       node->op->growing & 1u << i && !is_converted(node->op, t->dtype);
    return takes ? SDX_LAYOUT_GROWING : wanted;
}

/* Header and memory for output k in `layout`. What must be plain gets a plain twin that becomes the
 * value; a step fills it later. */
static enum sdx_status make_output(struct sdx_planning *p, const struct sdx_ir_node *node, int k,
                                   const struct sdx_type *type, const struct sdx_layouts *want,
                                   struct sdx_tensor **out, struct sdx_spot *spot)
{
    const int layout = want->out[k];
    const int32_t value = node->outputs[k];
    const uint32_t flags = node->op->flags;
    const uint32_t over = flags >> SDX_OP_INPLACE_SHIFT & ((1u << SDX_OP_INPLACE_MOST) - 1);
    const bool is_dynamic =
        flags & SDX_OP_DYNAMIC || (flags & SDX_OP_TOLD_LATE && !sdx_planning_is_concrete(type));
    *spot = (struct sdx_spot){.block = -1};
    if (is_dynamic || type->dtype == SDX_STRING)
        return owning_output(p, value, is_dynamic, type, out);
    const struct sdx_tensor *grown = NULL;
    SDX_TRY(find_grown(p, node, k, type, layout, &grown));
    if (grown) return grown_output(p, value, type, grown, out, spot);
    *out = sdx_layout_tensor(p->cx, &p->s->arena, type->dtype, type->rank, type->dims, layout);
    if (!*out) return p->cx->error.status;
    SDX_TRY(give_memory(p, value, node, k == 0 ? over | want->over : 0, *out, spot));
    if (layout == SDX_LAYOUT_PLAIN || !sdx_planning_must_be_plain(p, value))
        return sdx_place_value(p, value, *out, *spot, false);
    struct sdx_spot there;
    struct sdx_tensor *plain =
        sdx_op_tensor(p->cx, &p->s->arena, type->dtype, type->rank, type->dims);
    if (!plain) return p->cx->error.status;
    SDX_TRY(give_memory(p, value, node, 0, plain, &there));
    SDX_TRY(sdx_place_value(p, value, plain, there, false));
    if (spot->block >= 0) sdx_place_extend(p, spot->block, sdx_planning_slot(p, value)->last_use);
    return twin_add(p, value, *out, *spot) ? SDX_OK : p->cx->error.status;
}

/* ---- constants ---- */

static bool must_align(const struct sdx_op *op, struct sdx_tensor *const *in, int i)
{
    const bool anywhere = in[i] && i < 32 && op->anywhere & 1u << i && in[i]->in_model;
    return in[i] && in[i]->needs_copy && (in[i]->recipe || !anywhere);
}

/* Constants that lie at odd addresses are copied for the time of `prepare`. None is for later
 * shapes where only pack functions read them (they have a place, and are copied when one is called)
 * or where steps do (keep_aligned). */
static enum sdx_status align_inputs(struct sdx_planning *p, const struct sdx_op *op,
                                    struct sdx_tensor **in, int count)
{
    size_t total = 0;
    int unaligned = 0;
    p->count_copies = 0;
    for (int i = 0; i < count; i++)
        unaligned += must_align(op, in, i);
    if (!unaligned) return SDX_OK;
    p->copies = sdx_arena_array(&p->work, (size_t)unaligned, sizeof *p->copies);
    if (!p->copies) return SDX_FAIL_MEMORY(p->cx);
    for (int i = 0; i < count; i++) {
        if (!must_align(op, in, i)) continue;
        struct sdx_tensor *copy = sdx_arena_copy(&p->s->arena, in[i], sizeof *copy);
        if (!copy) return SDX_FAIL_MEMORY(p->cx);
        if (in[i]->dims == in[i]->dims_inline) copy->dims = copy->dims_inline;
        const bool later = i < 32 && op->packs & 1u << i && in[i]->in_model;
        void *kept = in[i]->in_model ? sdx_store_find_aligned(p->r->shared->store, in[i]) : NULL;
        if (!kept) total += (in[i]->bytes + 127) / 64 * 64;
        p->copies[p->count_copies++] = (struct sdx_aligned_copy){copy, in[i], kept, kept || !later};
        in[i] = copy;
    }
    if (total > p->aligned_size) {
        sdx_mem_free(p->cx->mem, p->aligned);
        p->aligned = sdx_mem_alloc(p->cx->mem, SDX_MEM_PLAN, total);
        p->aligned_size = p->aligned ? total : 0;
        if (!p->aligned) return SDX_FAIL_MEMORY(p->cx);
    }
    char *at = p->aligned;
    for (int c = 0; c < p->count_copies; c++) {
        struct sdx_aligned_copy *a = &p->copies[c];
        if (!a->place) {
            a->place = at;
            at += (a->original->bytes + 127) / 64 * 64;
            if (a->is_filled) sdx_tensor_copy_elements(a->original, a->place);
        }
        sdx_tensor_settle(a->copy, a->place);
    }
    return SDX_OK;
}

/* A form of a constant, of which the copies may have to be filled first, or not to be used. */
struct filling {
    struct sdx_planning *p;
    const struct sdx_pack *pack;
};

static const struct sdx_pack *fill(void *arg)
{
    const struct filling *f = arg;
    for (int c = 0; c < f->p->count_copies; c++) {
        struct sdx_aligned_copy *copy = &f->p->copies[c];
        if (f->pack->reads_anywhere && !copy->is_filled && !copy->original->recipe) {
            copy->copy->data = copy->original->data;
            continue;
        }
        if (copy->is_filled) continue;
        sdx_tensor_copy_elements(copy->original, copy->copy->data);
        sdx_store_drop(f->p->r->shared->store, copy->original);
        copy->is_filled = true;
    }
    return f->pack;
}

/* The copies that fill() has pointed to their originals have their places again. */
static void point_back(void *arg)
{
    const struct filling *f = arg;
    for (int c = 0; c < f->p->count_copies; c++)
        f->p->copies[c].copy->data = f->p->copies[c].place;
}

static enum sdx_status fill_and_pack(struct sdx_context *cx, void *dst, void *arg)
{
    const struct sdx_pack *pack = fill(arg);
    const enum sdx_status status = pack->pack(cx, dst, pack->arg);
    point_back(arg);
    return status;
}

static bool fill_and_check(const void *packed, void *arg)
{
    const struct sdx_pack *pack = fill(arg);
    const bool good = pack->check(packed, pack->arg);
    point_back(arg);
    return good;
}

/* Copies that the node's steps read while running get a place that stays: shared in the model's
 * store. */
static enum sdx_status keep_aligned(struct sdx_planning *p, int32_t first_step)
{
    for (int c = 0; c < p->count_copies; c++) {
        struct sdx_tensor *copy = p->copies[c].copy;
        bool read = false;
        for (int32_t s = first_step; s < p->s->list.count && !read; s++)
            for (int i = 0; i < p->s->list.steps[s].count_in && !read; i++)
                read = p->s->list.steps[s].in[i] == copy;
        if (!read) continue;
        if (copy->in_model)
            copy->data = sdx_store_get_aligned(p->r->shared->store, p->cx, p->copies[c].original);
        else if (!(copy->data = sdx_arena_copy(&p->s->arena, copy->data, copy->bytes)))
            (void)SDX_FAIL_MEMORY(p->cx);
        if (!copy->data) return p->cx->error.status;
    }
    p->count_copies = 0;
    return SDX_OK;
}

/* ---- steps ---- */

static const struct sdx_tensor *prepare_value(struct sdx_prepare *px, int i)
{
    struct sdx_planning *p = ((struct sdx_prepare_host *)px->host)->user;
    return sdx_planning_value(p, px->node, i);
}

static const void *prepare_pack(struct sdx_prepare *px, const struct sdx_tensor *constant,
                                const struct sdx_pack *pack)
{
    struct sdx_planning *p = ((struct sdx_prepare_host *)px->host)->user;
    for (int c = 0; c < p->count_copies; c++)
        if (p->copies[c].copy == constant) constant = p->copies[c].original;
    if (constant->in_model) {
        struct filling filling = {p, pack};
        struct sdx_pack wanted = *pack;
        wanted.pack = fill_and_pack;
        wanted.check = pack->check ? fill_and_check : NULL;
        wanted.arg = &filling;
        return sdx_store_get(p->r->shared->store, px->cx, constant, &wanted);
    }
    void *packed = sdx_prepare_alloc(px, pack->size + 64);
    return packed && pack->pack(px->cx, packed, pack->arg) == SDX_OK ? packed : NULL;
}

static void prepare_drop(struct sdx_prepare *px, const void *bytes, size_t size)
{
    struct sdx_planning *p = ((struct sdx_prepare_host *)px->host)->user;
    sdx_store_drop_bytes(p->r->shared->store, bytes, size);
}

static struct sdx_body *prepare_body(struct sdx_prepare *px, int32_t graph)
{
    struct sdx_planning *p = ((struct sdx_prepare_host *)px->host)->user;
    return sdx_runner_body(p->r, p->s, graph);
}

static struct sdx_node *prepare_custom(struct sdx_prepare *px)
{
    const struct sdx_planning *p = ((struct sdx_prepare_host *)px->host)->user;
    return sdx_custom_nodes_find(p->r->shared->customs, px->node);
}

static int prepare_choose(struct sdx_prepare *px, const struct sdx_choice *choice)
{
    const struct sdx_planning *p = ((struct sdx_prepare_host *)px->host)->user;
    struct sdx_run_shared *shared = p->r->shared;
    return sdx_tune_choose(shared->tune, choice, shared->cancel);
}

/* Operands of the node in hand. */
struct operands {
    struct sdx_tensor **in, **out;
    struct sdx_spot *at_in, *at_out;
    struct sdx_layouts want;
    int layout; /* of the operands that are not plain */
};

static enum sdx_status operands_init(struct sdx_planning *p, const struct sdx_ir_node *node,
                                     struct operands *o)
{
    const size_t in = (size_t)node->count_inputs + 1, out = (size_t)node->count_outputs + 1;
    *o = (struct operands){.in = sdx_arena_array(&p->s->arena, in, sizeof *o->in),
                           .out = sdx_arena_array(&p->s->arena, out, sizeof *o->out),
                           .at_in = sdx_arena_array(&p->work, in, sizeof *o->at_in),
                           .at_out = sdx_arena_array(&p->work, out, sizeof *o->at_out)};
    o->want.in = sdx_arena_array(&p->work, in, 1);
    o->want.out = sdx_arena_array(&p->work, out, 1);
    if (!o->in || !o->out || !o->at_in || !o->at_out || !o->want.in || !o->want.out)
        return SDX_FAIL_MEMORY(p->cx);
    return SDX_OK;
}

static struct sdx_prepare prepare_of(struct sdx_planning *p, const struct sdx_ir_node *node,
                                     const struct operands *o, struct sdx_prepare_host *host)
{
    *host = (struct sdx_prepare_host){.list = &p->s->list,
                                      .value = prepare_value,
                                      .pack = prepare_pack,
                                      .drop = prepare_drop,
                                      .body = prepare_body,
                                      .custom = prepare_custom,
                                      .choose = p->r->shared->tune ? prepare_choose : NULL,
                                      .user = p};
    return (struct sdx_prepare){.cx = p->cx,
                                .arena = &p->s->arena,
                                .ir = p->r->shared->ir,
                                .node = node,
                                .opset = node->opset,
                                .count_in = node->count_inputs,
                                .count_out = node->count_outputs,
                                .in = o->in,
                                .out = o->out,
                                .layout = (uint8_t)o->layout,
                                .host = host};
}

/* Is a value that `node` makes read by operators that take blocks of channels, as it is or through
 * others that keep its layout, and by no other? Looked for among the nodes that follow. */
static bool feeds_blocks(const struct sdx_planning *p, int32_t value, int32_t node, int depth)
{
    enum { NODES = 64 };
    const struct sdx_ir_graph *g = p->r->g;
    bool feeds = false;
    if (value < 0 || depth == 0 || sdx_planning_must_be_plain(p, value)) return false;
    for (int32_t n = node + 1; n < g->count_nodes && n < p->node + NODES; n++) {
        const struct sdx_ir_node *reader = &g->nodes[n];
        const uint32_t flags = reader->op ? reader->op->flags : 0;
        bool reads = false;
        for (int i = 0; i < reader->count_inputs; i++)
            reads = reads || reader->inputs[i] == value;
        if (!reads || sdx_str_is(reader->op_type, "Shape")) continue;
        feeds = flags & SDX_OP_TAKES_BLOCKS ||
                (flags & (SDX_OP_KEEPS_BLOCKS | SDX_OP_VIEW | SDX_OP_JOIN) &&
                 feeds_blocks(p, reader->outputs[0], n, depth - 1));
        if (!feeds) return false;
    }
    return feeds;
}

/* Asks the operator for the layouts it wants; its outputs are headers of their shapes only. */
static enum sdx_status choose_layouts(struct sdx_planning *p, const struct sdx_ir_node *node,
                                      const struct sdx_type *types, struct operands *o)
{
    struct sdx_prepare_host host;
    bool any = false;
    if (!node->op->layout) return SDX_OK;
    for (int i = 0; i < node->count_inputs; i++) {
        if (node->inputs[i] < 0) continue;
        o->in[i] = sdx_planning_slot(p, node->inputs[i])->tensor;
        any = any || (o->in[i]->kind == SDX_KIND_TENSOR && !o->in[i]->is_constant);
        if (o->in[i]->layout != SDX_LAYOUT_GROWING) continue;
        o->in[i] = sdx_op_tensor(p->cx, &p->work, o->in[i]->dtype, o->in[i]->rank, o->in[i]->dims);
        if (!o->in[i]) return p->cx->error.status;
    }
    if (!any) return SDX_OK;
    for (int k = 0; k < node->count_outputs; k++) {
        const struct sdx_type *t = &types[k];
        if (node->outputs[k] < 0) continue;
        o->out[k] = sdx_op_tensor(p->cx, &p->work, t->dtype, t->rank, t->dims);
        if (!o->out[k]) return p->cx->error.status;
    }
    struct sdx_prepare px = prepare_of(p, node, o, &host);
    o->want.leaves = node->outputs[0] >= 0 && sdx_planning_must_be_plain(p, node->outputs[0]);
    o->want.feeds =
        node->op->flags & SDX_OP_MAKES_BLOCKS && feeds_blocks(p, node->outputs[0], p->node, 4);
    node->op->layout(&px, &o->want);
    for (int i = 0; i < node->count_inputs; i++)
        o->layout = o->layout ? o->layout : o->want.in[i];
    return p->cx->error.status;
}

/* Shows the operands as plain tensors of their shapes in memory. at: where to place these; NULL:
 * only shapes are wanted. */
static enum sdx_status show_physical(struct sdx_planning *p, struct sdx_tensor **tensors,
                                     const struct sdx_spot *at, int count, int layout)
{
    for (int i = 0; i < count; i++) {
        if (!tensors[i] || (tensors[i]->layout == SDX_LAYOUT_PLAIN && tensors[i]->count == 1))
            continue;
        struct sdx_arena *arena = at ? &p->s->arena : &p->work;
        struct sdx_tensor *t = sdx_layout_physical(p->cx, arena, tensors[i], layout);
        if (!t) return p->cx->error.status;
        if (at && !t->is_constant) SDX_TRY(sdx_place_at(p, t, at[i]));
        tensors[i] = t;
    }
    return SDX_OK;
}

/* Offsets of pieces or joined inputs in bytes. NULL without an error: they are to be copied. */
static size_t *places(struct sdx_planning *p, const struct sdx_ir_node *node, struct operands *o,
                      int count)
{
    struct sdx_prepare_host host;
    int64_t *at = sdx_arena_array(&p->work, (size_t)count + 1, sizeof *at);
    size_t *bytes = sdx_arena_array(&p->work, (size_t)count + 1, sizeof *bytes);
    if (!at || !bytes) {
        (void)SDX_FAIL_MEMORY(p->cx);
        return NULL;
    }
    struct operands seen = *o;
    const size_t in = (size_t)node->count_inputs, out = (size_t)node->count_outputs;
    seen.in = sdx_arena_copy(&p->work, o->in, in * sizeof *o->in);
    seen.out = sdx_arena_copy(&p->work, o->out, out * sizeof *o->out);
    if (!seen.in || !seen.out) {
        (void)SDX_FAIL_MEMORY(p->cx);
        return NULL;
    }
    if (o->layout && (show_physical(p, seen.in, NULL, node->count_inputs, o->layout) != SDX_OK ||
                      show_physical(p, seen.out, NULL, node->count_outputs, o->layout) != SDX_OK))
        return NULL;
    struct sdx_prepare px = prepare_of(p, node, &seen, &host);
    const unsigned bits = sdx_dtype_bits(o->in[0]->dtype);
    if (bits < 8 || o->in[0]->dtype == SDX_STRING || !node->op->place(&px, at)) return NULL;
    for (int i = 0; i < count; i++)
        bytes[i] = (size_t)at[i] * (bits / 8);
    return bytes;
}

/* Outputs that lie within input 0. *done: all of them. */
static enum sdx_status give_pieces(struct sdx_planning *p, const struct sdx_ir_node *node,
                                   const struct sdx_type *types, struct operands *o, bool *done)
{
    const struct sdx_spot from = o->at_in[0];
    *done = false;
    if (o->in[0]->kind != SDX_KIND_TENSOR || (from.block < 0 && !from.root) ||
        o->in[0]->is_constant)
        return SDX_OK;
    for (int k = 0; k < node->count_outputs; k++) {
        const struct sdx_type *t = &types[k];
        if (node->outputs[k] < 0) continue;
        if (sdx_planning_slot(p, node->outputs[k])->claim >= 0) return SDX_OK;
        if (o->want.out[k] != SDX_LAYOUT_PLAIN && sdx_planning_must_be_plain(p, node->outputs[k]))
            return SDX_OK;
        o->out[k] =
            sdx_layout_tensor(p->cx, &p->s->arena, t->dtype, t->rank, t->dims, o->want.out[k]);
        if (!o->out[k]) return p->cx->error.status;
    }
    const size_t *at = places(p, node, o, node->count_outputs);
    if (!at) return p->cx->error.status;
    for (int k = 0; k < node->count_outputs; k++) {
        if (node->outputs[k] < 0) continue;
        const struct sdx_spot spot = {from.block, from.root, from.shift + at[k]};
        SDX_TRY(sdx_place_at(p, o->out[k], spot));
        SDX_TRY(sdx_place_value(p, node->outputs[k], o->out[k], spot, false));
    }
    *done = true;
    return SDX_OK;
}

static enum sdx_status run_prepare(struct sdx_planning *p, const struct sdx_ir_node *node,
                                   struct operands *o)
{
    struct sdx_prepare_host host;
    struct sdx_tensor **own =
        sdx_arena_copy(&p->work, o->out, (size_t)node->count_outputs * sizeof *o->out);
    if (!own) return SDX_FAIL_MEMORY(p->cx);
    if (o->layout && node->op->flags & SDX_OP_PHYSICAL && !o->want.logical) {
        SDX_TRY(show_physical(p, o->in, o->at_in, node->count_inputs, o->layout));
        SDX_TRY(show_physical(p, o->out, o->at_out, node->count_outputs, o->layout));
    }
    SDX_TRY(align_inputs(p, node->op, o->in, node->count_inputs));
    int32_t first_step = p->s->list.count;
    struct sdx_prepare px = prepare_of(p, node, o, &host);
    p->s->list.node = p->node;
    SDX_TRY(sdx_op_prepare_node(&px, node->op));
    SDX_TRY(keep_aligned(p, first_step));
    for (int k = 0; k < node->count_outputs; k++) {
        if (node->outputs[k] < 0) continue;
        struct sdx_tensor *value = sdx_planning_slot(p, node->outputs[k])->tensor;
        if (own[k] != value) SDX_TRY(add_reorder(p, own[k], value));
    }
    return SDX_OK;
}

enum sdx_status sdx_operand_steps(struct sdx_planning *p, const struct sdx_ir_node *node,
                                  const struct sdx_type *types)
{
    struct operands o;
    SDX_TRY(operands_init(p, node, &o));
    SDX_TRY(choose_layouts(p, node, types, &o));
    for (int i = 0; i < node->count_inputs; i++) {
        if (node->inputs[i] < 0) continue;
        const int layout = o.layout ? o.want.in[i] : layout_of_input(p, node, i, o.want.in[i]);
        o.in[i] = sdx_operand(p, node->inputs[i], layout, types[0].rank, &o.at_in[i]);
        if (!o.in[i]) return p->cx->error.status;
    }
    bool done = false;
    const uint32_t flags = o.want.logical ? 0 : node->op->flags;
    if (flags & SDX_OP_PIECES) SDX_TRY(give_pieces(p, node, types, &o, &done));
    if (done) return SDX_OK;
    for (int k = 0; k < node->count_outputs; k++)
        if (node->outputs[k] >= 0)
            SDX_TRY(make_output(p, node, k, &types[k], &o.want, &o.out[k], &o.at_out[k]));
    if (flags & SDX_OP_JOIN && o.at_out[0].block >= 0) {
        const size_t *at = places(p, node, &o, node->count_inputs);
        if (!at && p->cx->error.status != SDX_OK) return p->cx->error.status;
        if (at) sdx_place_join(p, node, o.at_out[0].block, o.in, at, &done);
    }
    if (done && sdx_planning_slot(p, node->outputs[0])->tensor != o.out[0])
        return add_reorder(p, o.out[0], sdx_planning_slot(p, node->outputs[0])->tensor);
    if (done) return SDX_OK;
    SDX_TRY(run_prepare(p, node, &o));
    for (; p->temps_placed < p->s->list.count_temps; p->temps_placed++) {
        struct sdx_tensor *temp = p->s->list.temps[p->temps_placed].tensor;
        const struct sdx_spot spot = {.block =
                                          sdx_place_new_block(p, temp->bytes, p->node, p->node)};
        if (spot.block < 0) return p->cx->error.status;
        SDX_TRY(sdx_place_at(p, temp, spot));
    }
    return SDX_OK;
}

static enum sdx_status run_copy(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)x, (void)part;
    if (step->in[0]->bytes) memcpy(step->out[0]->data, step->in[0]->data, step->in[0]->bytes);
    return SDX_OK;
}

/* The copy that a view of strings is. */
enum sdx_status sdx_operand_copy_strings(struct sdx_planning *p, const struct sdx_ir_node *node,
                                         const struct sdx_type *type)
{
    struct sdx_tensor *from = sdx_planning_slot(p, node->inputs[0])->tensor, *to = NULL;
    struct sdx_prepare_host host = {.list = &p->s->list, .user = p};
    struct sdx_prepare px = {.cx = p->cx, .arena = &p->s->arena, .node = node, .host = &host};
    SDX_TRY(owning_output(p, node->outputs[0], false, type, &to));
    p->s->list.node = p->node;
    return sdx_prepare_step_on(&px, "copy", run_copy, NULL, 1, 0, 1, &from, 1, &to);
}
