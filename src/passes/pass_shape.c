/* SPDX-License-Identifier: Apache-2.0
 * Shapes are asked of the values that lengths come from, mostly the graph's inputs, and not of what
 * lies on the way: an exporter that leaves lengths open asks for the shape of the queries that it
 * has just transposed, and with nothing else to read them, the passes behind can do without the
 * Transpose. What is read of a shape is a number where the length is known. Main graph only: the
 * shapes of a body's values may change from one of its runs to the next. */
#include "passes/match.h"
#include "passes/passes.h"
#include "tensor/convert.h"

enum { OPSET = 13, STEPS_MOST = 64, INPUTS_MOST = 64 };

struct work {
    struct sdx_context *cx;
    struct sdx_ir *ir;
    struct sdx_ir_graph *g;
    const uint64_t *from;   /* of each value: a bit for each input it is made of */
    const int32_t *readers; /* of each value */
    bool did;
};

static bool is_shape(const struct sdx_ir_node *node)
{
    return !node->is_dead && !node->domain.len && sdx_str_is(node->op_type, "Shape");
}

/* The type of a tensor whose rank is known, or NULL. */
static const struct sdx_type *type_of(const struct work *w, int32_t value)
{
    const struct sdx_type *t = value < 0 ? NULL : &w->g->values[value].type;
    return t && t->kind == SDX_KIND_TENSOR && t->has_shape ? t : NULL;
}

static int axis_with(const struct sdx_type *t, int64_t dim)
{
    for (int d = 0; d < t->rank; d++)
        if (t->dims[d] == dim) return d;
    return -1;
}

/* Has `value` all lengths of `of` that are not known? */
static bool covers(const struct work *w, int32_t value, const struct sdx_type *of)
{
    const struct sdx_type *t = type_of(w, value);
    for (int d = 0; t && d < of->rank; d++)
        if (of->dims[d] < 0 && (of->dims[d] == -1 || axis_with(t, of->dims[d]) < 0)) return false;
    return t != NULL;
}

/* Is it an input, or read by several nodes but for those that ask for its shape? Then one more that
 * does parts no two nodes that would be joined. */
static bool is_read_apart(const struct work *w, int32_t value)
{
    return w->g->values[value].producer < 0 || w->readers[value] > 1;
}

/* An input that `value` is made of, or else the first of the values on the way, with all of its
 * lengths that are not known. */
static int32_t source_of(const struct work *w, int32_t value)
{
    const struct sdx_type *of = type_of(w, value);
    int32_t found = value;
    for (int32_t i = 0; i < w->g->count_inputs && i < INPUTS_MOST; i++)
        if (w->from[value] >> i & 1 && covers(w, w->g->inputs[i], of)) return w->g->inputs[i];
    for (int step = 0; step < STEPS_MOST; step++) {
        const int32_t producer = w->g->values[value].producer;
        const struct sdx_ir_node *node = producer < 0 ? NULL : &w->g->nodes[producer];
        int i = 0;
        while (node && i < node->count_inputs &&
               (sdx_match_constant(w->g, node->inputs[i]) || !covers(w, node->inputs[i], of)))
            i++;
        if (!node || i == node->count_inputs) break;
        value = node->inputs[i];
        if (is_read_apart(w, value)) found = value;
    }
    return found;
}

/* Which inputs the values are made of and by how many nodes they are read, Shape not counted. */
static enum sdx_status find_ways(struct work *w, struct sdx_arena *work)
{
    const struct sdx_ir_graph *g = w->g;
    uint64_t *from = sdx_arena_array(work, (size_t)g->count_values + 1, sizeof *from);
    int32_t *readers = sdx_arena_array(work, (size_t)g->count_values + 1, sizeof *readers);
    if (!from || !readers) return SDX_FAIL_MEMORY(w->cx);
    for (int32_t i = 0; i < g->count_inputs && i < INPUTS_MOST; i++)
        from[g->inputs[i]] |= UINT64_C(1) << i;
    for (int32_t n = 0; n < g->count_nodes; n++) {
        const struct sdx_ir_node *node = &g->nodes[n];
        uint64_t all = 0;
        for (int i = 0; i < node->count_inputs && !node->is_dead; i++) {
            if (node->inputs[i] < 0) continue;
            all |= from[node->inputs[i]];
            readers[node->inputs[i]] += !is_shape(node);
        }
        /* lengths that only a run tells are nobody's */
        if (!node->op || node->op->flags & (SDX_OP_DYNAMIC | SDX_OP_TOLD_LATE)) all = 0;
        for (int k = 0; k < node->count_outputs; k++)
            if (node->outputs[k] >= 0) from[node->outputs[k]] = all;
    }
    for (int32_t i = 0; i < g->count_outputs; i++)
        readers[g->outputs[i]] += 2;
    w->from = from;
    w->readers = readers;
    return SDX_OK;
}

/* The list of the lengths of `value`, and behind them those of `known` that are no symbols. */
static int32_t add_lengths(struct work *w, const struct sdx_ir_node *like, int32_t value,
                           const struct sdx_type *known)
{
    const struct sdx_str name = like->name;
    const int64_t opset = like->opset;
    int64_t numbers[SDX_RANK_MAX], count = 0;
    int32_t parts[2];
    for (int d = 0; d < known->rank; d++)
        if (known->dims[d] >= 0) numbers[count++] = known->dims[d];
    const int64_t rank = type_of(w, value)->rank;
    for (int i = 0; i < 1 + (count > 0); i++) {
        const int32_t out = sdx_ir_value_create(w->ir, w->g, w->g->values[value].name);
        int64_t *dims = sdx_arena_array(w->ir->arena, 1, sizeof *dims);
        if (out < 0 || !dims) return -1;
        *dims = i ? rank + count : rank;
        w->g->values[out].type = (struct sdx_type){
            .kind = SDX_KIND_TENSOR, .dtype = SDX_I64, .has_shape = true, .rank = 1, .dims = dims};
        if (i) parts[1] = sdx_match_add_ints(w->ir, w->g, "lengths", numbers, count);
        if (i && parts[1] < 0) return -1;
        struct sdx_ir_node *node =
            sdx_match_add_node(w->ir, w->g, i ? "Concat" : "Shape", i ? OPSET : opset, name,
                               i ? parts : &value, i ? 2 : 1, out, i);
        if (!node) return -1;
        if (i)
            node->attrs[0] =
                (struct sdx_ir_attr){.name = SDX_STR("axis"), .type = SDX_ATTR_INT, .graph = -1};
        parts[0] = out;
    }
    return parts[0];
}

/* The Shape becomes a Gather of the lengths of what they come from. */
static enum sdx_status ask_source(struct work *w, int32_t n)
{
    struct sdx_ir_node *node = &w->g->nodes[n];
    const struct sdx_type *t = type_of(w, node->inputs[0]);
    int64_t places[SDX_RANK_MAX], numbers = 0;
    int known = 0;
    if (!t) return SDX_OK;
    for (int d = 0; d < t->rank; d++)
        known += t->dims[d] >= 0;
    const int32_t source = known < t->rank ? source_of(w, node->inputs[0]) : node->inputs[0];
    const struct sdx_type *from = type_of(w, source);
    if (source == node->inputs[0] || !from) return SDX_OK;
    w->did = true;
    if (from->rank == t->rank &&
        memcmp(from->dims, t->dims, (size_t)t->rank * sizeof *t->dims) == 0) {
        node->inputs[0] = source;
        return SDX_OK;
    }
    int64_t begin = sdx_ir_attr_int(node, "start", 0), end = sdx_ir_attr_int(node, "end", t->rank);
    if (begin < 0) begin += t->rank;
    if (end < 0) end += t->rank;
    begin = begin < 0 ? 0 : begin > t->rank ? t->rank : begin;
    end = end < begin ? begin : end > t->rank ? t->rank : end;
    for (int d = 0; d < t->rank; d++)
        places[d] = t->dims[d] >= 0 ? from->rank + numbers++ : axis_with(from, t->dims[d]);
    const int32_t inputs[] = {add_lengths(w, node, source, t),
                              sdx_match_add_ints(w->ir, w->g, "axes", places + begin, end - begin)};
    if (inputs[0] < 0 || inputs[1] < 0) return SDX_FAIL_MEMORY(w->cx);
    return sdx_match_become(w->cx, w->ir, &w->g->nodes[n], "Gather", OPSET, inputs, 2, 0);
}

/* The constant indices of a Gather of numbers, or NULL. */
static const struct sdx_tensor *index_of(const struct work *w, const struct sdx_ir_node *gather)
{
    const struct sdx_type *t = gather ? type_of(w, gather->inputs[0]) : NULL;
    const struct sdx_tensor *index = t && t->rank == 1 && t->dtype == SDX_I64
                                         ? sdx_match_constant(w->g, gather->inputs[1])
                                         : NULL;
    return index && index->rank <= 1 && index->count <= SDX_RANK_MAX ? index : NULL;
}

/* A Gather of what a Gather picks of lengths picks them itself. */
static enum sdx_status join_picks(struct work *w, struct sdx_ir_node *node)
{
    const struct sdx_ir_node *inner = sdx_match_maker(w->g, node->inputs[0], "Gather");
    const struct sdx_tensor *outer_at = index_of(w, node), *inner_at = index_of(w, inner);
    if (!outer_at || !inner_at || inner_at->rank != 1) return SDX_OK;
    struct sdx_tensor *at = sdx_match_new_constant(w->ir, SDX_I64, outer_at->rank, outer_at->dims);
    if (!at) return SDX_FAIL_MEMORY(w->cx);
    for (int64_t i = 0; i < outer_at->count; i++) {
        int64_t place = sdx_load_i64(outer_at->dtype, outer_at->data, i);
        if (place < 0) place += inner_at->count;
        if (place < 0 || place >= inner_at->count) return SDX_OK;
        ((int64_t *)at->data)[i] = sdx_load_i64(inner_at->dtype, inner_at->data, place);
    }
    const int32_t list = inner->inputs[0];
    const int32_t index = sdx_match_add_constant(w->ir, w->g, SDX_STR("axes"), at);
    if (index < 0) return SDX_FAIL_MEMORY(w->cx);
    node->inputs[0] = list;
    node->inputs[1] = index;
    w->did = true;
    return SDX_OK;
}

/* What is picked of a Shape where all of it is known. */
static enum sdx_status take_known(struct work *w, struct sdx_ir_node *node)
{
    const struct sdx_ir_node *shape = sdx_match_maker(w->g, node->inputs[0], "Shape");
    const struct sdx_type *t = shape ? type_of(w, shape->inputs[0]) : NULL;
    const struct sdx_tensor *index = index_of(w, node);
    if (!t || !index || shape->count_attrs || w->g->values[node->outputs[0]].flags & SDX_IR_OUTPUT)
        return SDX_OK;
    int64_t numbers[SDX_RANK_MAX];
    for (int64_t i = 0; i < index->count; i++) {
        int64_t axis = sdx_load_i64(index->dtype, index->data, i);
        if (axis < 0) axis += t->rank;
        if (axis < 0 || axis >= t->rank || t->dims[axis] < 0) return SDX_OK;
        numbers[i] = t->dims[axis];
    }
    struct sdx_tensor *list = sdx_match_new_constant(w->ir, SDX_I64, index->rank, index->dims);
    const struct sdx_str name = node->name;
    if (!list) return SDX_FAIL_MEMORY(w->cx);
    memcpy(list->data, numbers, (size_t)index->count * sizeof *numbers);
    const int32_t value = sdx_match_add_constant(w->ir, w->g, name, list);
    if (value < 0) return SDX_FAIL_MEMORY(w->cx);
    sdx_ir_replace_uses(w->ir, 0, node->outputs[0], value);
    node->is_dead = true;
    w->did = true;
    return SDX_OK;
}

static enum sdx_status run(struct work *w)
{
    const int32_t count = w->g->count_nodes;
    for (int32_t n = 0; n < count; n++)
        if (is_shape(&w->g->nodes[n])) SDX_TRY(ask_source(w, n));
    for (int32_t n = 0; n < count; n++) {
        struct sdx_ir_node *node = &w->g->nodes[n];
        if (node->is_dead || node->domain.len || !sdx_str_is(node->op_type, "Gather")) continue;
        SDX_TRY(join_picks(w, node));
        SDX_TRY(take_known(w, node));
    }
    return w->did ? sdx_ir_sort(w->cx, w->ir, w->g) : SDX_OK;
}

enum sdx_status sdx_pass_shape(struct sdx_context *cx, struct sdx_ir *ir, bool *changed)
{
    struct work w = {.cx = cx, .ir = ir, .g = &ir->graphs[0]};
    struct sdx_arena work;
    sdx_arena_init(&work, cx->mem, SDX_MEM_PLAN);
    enum sdx_status status = find_ways(&w, &work);
    if (status == SDX_OK) status = run(&w);
    sdx_arena_deinit(&work);
    *changed = *changed || w.did;
    return status;
}
