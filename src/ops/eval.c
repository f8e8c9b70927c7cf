/* SPDX-License-Identifier: Apache-2.0
 * Evaluation of one node with known inputs, serially: constant folding, and shape arithmetic while
 * planning. */
#include "ops/step_host.h"

enum { SMALL = 16 };

struct eval {
    const struct sdx_tensor *const *in;
};

static const struct sdx_tensor *infer_value(struct sdx_infer *ix, int i)
{
    const struct eval *e = ix->host;
    return e->in[i];
}

static bool infer_ints(struct sdx_infer *ix, int i, struct sdx_ints *out)
{
    return sdx_infer_tensor_ints(ix, infer_value(ix, i), out);
}

static const struct sdx_tensor *prepare_value(struct sdx_prepare *px, int i)
{
    (void)px, (void)i;
    return NULL; /* all inputs are constants: never asked */
}

static const void *prepare_pack(struct sdx_prepare *px, const struct sdx_tensor *constant,
                                const struct sdx_pack *pack)
{
    (void)constant;
    void *packed = sdx_prepare_alloc(px, pack->size);
    return packed && pack->pack(px->cx, packed, pack->arg) == SDX_OK ? packed : NULL;
}

static struct sdx_body *prepare_body(struct sdx_prepare *px, int32_t graph)
{
    (void)graph;
    (void)SDX_FAIL(px->cx, SDX_INTERNAL, "a body cannot be evaluated here");
    return NULL;
}

static enum sdx_status run_steps(struct sdx_context *cx, struct sdx_arena *work,
                                 const struct sdx_step_list *list)
{
    atomic_int cancel = 0;
    for (int32_t t = 0; t < list->count_temps; t++) {
        struct sdx_tensor *temp = list->temps[t].tensor;
        temp->data = sdx_arena_alloc(work, temp->bytes + 64);
        if (!temp->data) return SDX_FAIL_MEMORY(cx);
    }
    for (int32_t s = 0; s < list->count; s++) {
        const struct sdx_step *step = &list->steps[s];
        struct sdx_exec x = {.cx = cx, .cancel = &cancel, .threads = 1};
        if (step->scratch && !(x.scratch = sdx_arena_alloc(work, step->scratch + 256)))
            return SDX_FAIL_MEMORY(cx);
        for (int64_t part = 0; part < step->parts; part = x.part_end) {
            const int64_t left = step->parts - part;
            x.part_end = part + (step->in_ranges || left < step->together ? left : step->together);
            SDX_TRY(step->run(&x, step, part));
        }
    }
    return SDX_OK;
}

/* Is the node one that can be evaluated on its own? */
static bool can_eval(const struct sdx_ir_node *node, const struct sdx_tensor *const *in)
{
    if (!node->op || !(node->op->prepare || node->op->flags & SDX_OP_VIEW) ||
        node->op->flags & SDX_OP_IMPURE)
        return false;
    if (node->count_captures > 0) return false;
    for (int a = 0; a < node->count_attrs; a++)
        if (node->attrs[a].type == SDX_ATTR_GRAPH || node->attrs[a].type == SDX_ATTR_GRAPHS)
            return false;
    for (int i = 0; i < node->count_inputs; i++)
        if (node->inputs[i] >= 0 && (!in[i] || in[i]->kind != SDX_KIND_TENSOR)) return false;
    return true;
}

/* Infers and makes headers for the outputs in `arena` (data for the ones with known shapes). */
static enum sdx_status make_outputs(struct sdx_context *cx, struct sdx_arena *arena,
                                    const struct sdx_ir_node *node, const struct sdx_type *types,
                                    struct sdx_tensor **out, size_t limit, bool *fits)
{
    size_t total = 0;
    *fits = true;
    for (int k = 0; k < node->count_outputs && *fits; k++) {
        if (node->outputs[k] < 0) continue;
        if (node->op->flags & SDX_OP_DYNAMIC) {
            out[k] = sdx_arena_alloc(arena, sizeof *out[k]);
            if (!out[k]) return SDX_FAIL_MEMORY(cx);
            out[k]->dims = out[k]->dims_inline;
            out[k]->kind = SDX_KIND_TENSOR;
            continue;
        }
        const struct sdx_type *type = &types[k];
        *fits = type->kind == SDX_KIND_TENSOR && type->has_shape && type->dtype;
        for (int d = 0; *fits && d < type->rank; d++)
            *fits = type->dims[d] >= 0;
        if (!*fits) break;
        out[k] = sdx_op_tensor(cx, arena, type->dtype, type->rank, type->dims);
        if (!out[k]) return cx->error.status;
        *fits = sdx_add_size(total, out[k]->bytes, &total) && total <= limit;
        if (!*fits) break;
        out[k]->data = sdx_arena_alloc(arena, out[k]->bytes + 64);
        if (!out[k]->data) return SDX_FAIL_MEMORY(cx);
    }
    return SDX_OK;
}

/* What running gave to owners moves into the arena as constants. */
static enum sdx_status settle(struct sdx_context *cx, struct sdx_arena *arena,
                              const struct sdx_ir_node *node, struct sdx_tensor **out, size_t limit,
                              bool *done)
{
    enum sdx_status status = SDX_OK;
    for (int k = 0; k < node->count_outputs; k++) {
        struct sdx_tensor *t = out[k];
        if (!t) continue;
        if (t->owns_data) {
            if (t->kind != SDX_KIND_TENSOR || t->bytes > limit || t->rank > SDX_RANK_INLINE ||
                t->dtype == SDX_STRING) {
                *done = false;
            } else if (status == SDX_OK) {
                void *data = sdx_arena_alloc(arena, t->bytes + 64);
                if (!data)
                    status = SDX_FAIL_MEMORY(cx);
                else if (t->bytes)
                    memcpy(data, t->data, t->bytes);
                sdx_mem_free(t->mem, t->data);
                t->data = data;
                t->owns_data = false;
            }
            if (t->owns_data) sdx_op_tensor_clear(t);
        }
        t->is_constant = true;
    }
    return status;
}

enum sdx_status sdx_op_eval(struct sdx_context *cx, struct sdx_arena *arena,
                            const struct sdx_ir *ir, const struct sdx_ir_node *node,
                            const struct sdx_tensor *const *in, struct sdx_tensor **out,
                            size_t limit, bool *done)
{
    *done = false;
    if (!can_eval(node, in)) return SDX_OK;
    struct sdx_arena work;
    sdx_arena_init(&work, cx->mem, SDX_MEM_PLAN);
    struct eval e = {in};
    size_t count_in = (size_t)node->count_inputs + 1, count_out = (size_t)node->count_outputs + 1;
    const struct sdx_type **types_in = sdx_arena_array(&work, count_in, sizeof *types_in);
    struct sdx_type *types = sdx_arena_array(&work, count_in, sizeof *types);
    struct sdx_type *types_out = sdx_arena_array(&work, count_out, sizeof *types_out);
    const struct sdx_ints **ints = sdx_arena_array(&work, count_out, sizeof *ints);
    struct sdx_tensor **operands = sdx_arena_array(&work, count_in, sizeof *operands);
    enum sdx_status status = SDX_OK;
    if (!types_in || !types || !types_out || !ints || !operands) {
        status = SDX_FAIL_MEMORY(cx);
        goto out;
    }
    for (int i = 0; i < node->count_inputs; i++) {
        if (!in[i]) continue;
        types[i] = (struct sdx_type){.kind = in[i]->kind,
                                     .dtype = in[i]->dtype,
                                     .has_shape = true,
                                     .rank = in[i]->rank,
                                     .dims = in[i]->dims};
        types_in[i] = &types[i];
        operands[i] = sdx_arena_copy(&work, in[i], sizeof *in[i]);
        if (!operands[i]) {
            status = SDX_FAIL_MEMORY(cx);
            goto out;
        }
        if (in[i]->dims == in[i]->dims_inline) operands[i]->dims = operands[i]->dims_inline;
        operands[i]->is_constant = true;
        operands[i]->owns_data = false;
        if (!in[i]->needs_copy) continue;
        sdx_tensor_settle(operands[i], sdx_arena_alloc(&work, in[i]->bytes));
        if (!operands[i]->data) {
            status = SDX_FAIL_MEMORY(cx);
            goto out;
        }
        sdx_tensor_copy_elements(in[i], operands[i]->data);
    }
    e.in = (const struct sdx_tensor *const *)operands;
    struct sdx_infer ix = {.cx = cx,
                           .arena = &work,
                           .ir = ir,
                           .node = node,
                           .opset = node->opset,
                           .count_in = node->count_inputs,
                           .count_out = node->count_outputs,
                           .in = types_in,
                           .out = types_out,
                           .out_ints = ints,
                           .value = infer_value,
                           .ints = infer_ints,
                           .host = &e};
    status = node->op->infer(&ix);
    bool fits = false;
    if (status == SDX_OK) status = make_outputs(cx, arena, node, types_out, out, limit, &fits);
    if (status != SDX_OK || !fits) goto out;
    if (node->op->flags & SDX_OP_VIEW) {
        if (out[0] && out[0]->bytes == operands[0]->bytes) {
            memcpy(out[0]->data, operands[0]->data, out[0]->bytes);
            *done = node->count_outputs == 1;
        }
    } else {
        struct sdx_step_list list = {.arena = &work};
        struct sdx_prepare_host host = {
            .list = &list, .value = prepare_value, .pack = prepare_pack, .body = prepare_body};
        struct sdx_prepare px = {.cx = cx,
                                 .arena = &work,
                                 .ir = ir,
                                 .node = node,
                                 .opset = node->opset,
                                 .count_in = node->count_inputs,
                                 .count_out = node->count_outputs,
                                 .in = operands,
                                 .out = out,
                                 .host = &host};
        status = sdx_op_prepare_node(&px, node->op);
        if (status == SDX_OK) status = run_steps(cx, &work, &list);
        *done = status == SDX_OK;
    }
    enum sdx_status settled = settle(cx, arena, node, out, limit, done);
    if (status == SDX_OK) status = settled;
out:
    sdx_arena_deinit(&work);
    if (status != SDX_OK) *done = false;
    return status;
}
