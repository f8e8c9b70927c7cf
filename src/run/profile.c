/* SPDX-License-Identifier: Apache-2.0
 * Rows of the profile: texts are made once a plan, times are added by every run. */
#include "run/profile.h"

#include "ops/tile.h"

void sdx_profile_init(struct sdx_profile *profile, struct sdx_mem *mem)
{
    memset(profile, 0, sizeof *profile);
    sdx_arena_init(&profile->arena, mem, SDX_MEM_OTHER);
}

void sdx_profile_deinit(struct sdx_profile *profile)
{
    sdx_arena_deinit(&profile->arena);
}

static void describe(struct sdx_text *text, struct sdx_tensor *const *tensors, int count)
{
    for (int i = 0; i < count; i++) {
        char shape[160];
        if (tensors[i])
            sdx_text_add(text, "%s%s", text->len ? " " : "",
                         sdx_tensor_describe(tensors[i], shape, sizeof shape));
    }
}

static double bytes_of(struct sdx_tensor *const *tensors, int count)
{
    double sum = 0;
    for (int i = 0; i < count; i++) {
        if (!tensors[i]) continue;
        if (tensors[i]->layout == SDX_LAYOUT_GROWING) /* without the room behind */
            sum += (double)tensors[i]->count * sdx_dtype_bits(tensors[i]->dtype) / 8;
        else
            sum += (double)tensors[i]->bytes;
    }
    return sum;
}

/* A node's work is that of its step with the most parts; conversions, packing and reorders count
 * nothing, and chains belong to no node alone. */
static bool works(const struct sdx_step *step)
{
    return !sdx_chain_of(step) && strcmp(step->kernel, "reorder") != 0;
}
static bool is_main_step(const struct sdx_step_list *list, int32_t i)
{
    const struct sdx_step *steps = list->steps;
    if (!works(&steps[i])) return false;
    for (int32_t k = i - 1; k >= 0 && steps[k].node == steps[i].node; k--)
        if (steps[k].parts >= steps[i].parts && works(&steps[k])) return false;
    for (int32_t k = i + 1; k < list->count && steps[k].node == steps[i].node; k++)
        if (steps[k].parts > steps[i].parts && works(&steps[k])) return false;
    return true;
}

/* Type of a value of the graph; false: not known. */
static bool type_of(const struct sdx_runner *r, int32_t value, struct sdx_type *type)
{
    const struct sdx_tensor *t = value < 0 ? NULL : r->slots[value].tensor;
    if (!t) return false;
    *type = (struct sdx_type){.kind = t->kind,
                              .dtype = t->dtype,
                              .has_shape = t->kind == SDX_KIND_TENSOR && (t->dims || !t->rank),
                              .rank = t->rank,
                              .dims = t->dims};
    return true;
}

/* Work of a node by its cost function. */
static double flops_of(const struct sdx_runner *r, struct sdx_segment *s,
                       const struct sdx_ir_node *node)
{
    size_t count = (size_t)node->count_inputs + (size_t)node->count_outputs;
    struct sdx_type *types = sdx_arena_array(&s->arena, count + 1, sizeof *types);
    const struct sdx_type **in =
        sdx_arena_array(&s->arena, (size_t)node->count_inputs + 1, sizeof *in);
    if (!types || !in) return 0;
    struct sdx_type *out = types + node->count_inputs;
    for (int32_t i = 0; i < node->count_inputs; i++) {
        if (node->inputs[i] >= 0 && !type_of(r, node->inputs[i], &types[i])) return 0;
        in[i] = node->inputs[i] >= 0 ? &types[i] : NULL;
    }
    for (int32_t k = 0; k < node->count_outputs; k++)
        if (!type_of(r, node->outputs[k], &out[k]) && k == 0) return 0;
    struct sdx_cost cost = {0};
    struct sdx_infer ix = {.cx = r->shared->cx,
                           .arena = &s->arena,
                           .ir = r->shared->ir,
                           .node = node,
                           .opset = node->opset,
                           .count_in = node->count_inputs,
                           .count_out = node->count_outputs,
                           .in = in,
                           .out = out};
    if (node->op->cost && out[0].has_shape)
        node->op->cost(&ix, &cost);
    else if (out[0].has_shape)
        cost.flops = (double)r->slots[node->outputs[0]].tensor->count;
    return cost.flops > 2 * cost.macs ? cost.flops : 2 * cost.macs;
}

static double work_of_chain(const struct sdx_chain *chain)
{
    return sdx_chain_weight(chain) * (double)chain->members[0].step.tiles->count;
}
static double work_of(const struct sdx_runner *r, struct sdx_segment *s, int32_t i)
{
    const struct sdx_step *step = &s->list.steps[i];
    const struct sdx_chain *chain = sdx_chain_of(step);
    if (chain) return work_of_chain(chain);
    double work = is_main_step(&s->list, i) ? flops_of(r, s, &r->g->nodes[step->node]) : 0;
    for (const struct sdx_step *a = step->absorbed; a; a = a->absorbed)
        work += sdx_chain_of(a) ? work_of_chain(sdx_chain_of(a))
                                : flops_of(r, s, &r->g->nodes[a->node]);
    return work;
}

enum sdx_status sdx_profile_add_segment(struct sdx_profile *profile, struct sdx_context *cx,
                                        const struct sdx_runner *r, struct sdx_segment *s)
{
    s->profile_rows =
        sdx_arena_array(&s->arena, (size_t)s->list.count + 1, sizeof *s->profile_rows);
    if (!s->profile_rows) return SDX_FAIL_MEMORY(cx);
    for (int32_t i = 0; i < s->list.count; i++) {
        const struct sdx_step *step = &s->list.steps[i];
        const struct sdx_ir_node *node = &r->g->nodes[step->node];
        if (profile->count == profile->capacity) {
            int32_t wanted = profile->capacity ? profile->capacity * 2 : 256;
            struct sdx_profile_row *rows =
                sdx_arena_array(&profile->arena, (size_t)wanted, sizeof *rows);
            if (!rows) return SDX_FAIL_MEMORY(cx);
            if (profile->count) memcpy(rows, profile->rows, (size_t)profile->count * sizeof *rows);
            profile->rows = rows;
            profile->capacity = wanted;
        }
        struct sdx_text in, out;
        sdx_text_init(&in, cx->mem);
        sdx_text_init(&out, cx->mem);
        describe(&in, step->in, step->count_in);
        describe(&out, step->out, step->count_out);
        struct sdx_profile_row row = {
            .name = sdx_arena_strndup(&profile->arena, node->name.ptr, node->name.len),
            .op = sdx_arena_strndup(&profile->arena, node->op_type.ptr, node->op_type.len),
            .kernel = sdx_arena_printf(&profile->arena, "%s", step->kernel),
            .shapes = sdx_arena_printf(&profile->arena, "%s -> %s", sdx_text_get(&in),
                                       sdx_text_get(&out)),
            .flops = work_of(r, s, i),
            .bytes = bytes_of(step->in, step->count_in) + bytes_of(step->out, step->count_out),
        };
        sdx_text_deinit(&in);
        sdx_text_deinit(&out);
        if (!row.name || !row.op || !row.shapes || !row.kernel) return SDX_FAIL_MEMORY(cx);
        s->profile_rows[i] = profile->count;
        profile->rows[profile->count++] = row;
    }
    return SDX_OK;
}

void sdx_profile_record(struct sdx_profile *profile, int32_t row, int64_t begin_ns, int64_t end_ns,
                        int64_t run_begin_ns)
{
    struct sdx_profile_row *r = &profile->rows[row];
    r->runs++;
    r->ns += end_ns - begin_ns;
    r->start_ns = begin_ns - run_begin_ns;
    r->last_ns = end_ns - begin_ns;
}

void sdx_profile_reset(struct sdx_profile *profile)
{
    for (int32_t i = 0; i < profile->count; i++)
        profile->rows[i].runs = profile->rows[i].ns = 0;
}
