/* SPDX-License-Identifier: Apache-2.0
 * Lengths are asked of the graph's inputs, and not of what lies on the way: an exporter that leaves
 * lengths open asks for the shape of the queries that it has just transposed, and with nothing else
 * to read them, the passes behind can do without the Transpose. What is read of a shape becomes a
 * constant where it is known, and where a length is reckoned from those of inputs, so is this one.
 * Main graph only: the shapes of a body's values may change from one of its runs to the next. */
#include "ops/move.h"
#include "passes/match.h"
#include "passes/passes.h"
#include "tensor/convert.h"

enum { OPSET = 14, INPUTS_MOST = 64, DEPTH_MOST = 16 };

struct work {
    struct sdx_context *cx;
    struct sdx_ir *ir;
    struct sdx_ir_graph *g;
    const uint64_t *from; /* of each value that was there: a bit for each input it is made of */
    int64_t version;      /* of Shape: the model's, as what is asked is */
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

/* An axis of that length, of one of the inputs in `from`. */
static bool find_axis(const struct work *w, uint64_t from, int64_t dim, int32_t *input, int *axis)
{
    for (int32_t i = 0; i < w->g->count_inputs && i < INPUTS_MOST; i++) {
        *input = w->g->inputs[i];
        const struct sdx_type *t = from >> i & 1 ? type_of(w, *input) : NULL;
        for (*axis = 0; t && *axis < t->rank; ++*axis)
            if (t->dims[*axis] == dim) return true;
    }
    return false;
}

/* Can the length be reckoned from those of the inputs in `from`? */
static bool is_reckoned(const struct work *w, uint64_t from, int64_t dim, int depth)
{
    int32_t input;
    int axis;
    if (dim >= 0 || (dim < -1 && find_axis(w, from, dim, &input, &axis))) return true;
    if (dim == -1 || depth == DEPTH_MOST) return false;
    const struct sdx_ir_length *l = &w->ir->symbols[-(dim + 2)].length;
    return l->dim && !l->most && is_reckoned(w, from, l->dim, depth + 1) &&
           (!l->times || is_reckoned(w, from, l->times, depth + 1));
}

/* A node that makes `count` integers of 64 bits; -1: no memory. */
static int32_t add_node(struct work *w, const char *op, const int32_t *inputs, int count_inputs,
                        int64_t count)
{
    const int32_t out = sdx_ir_value_create(w->ir, w->g, SDX_STR("length"));
    int64_t *dims = sdx_arena_array(w->ir->arena, 1, sizeof *dims);
    if (out < 0 || !dims) return -1;
    *dims = count;
    w->g->values[out].type = (struct sdx_type){
        .kind = SDX_KIND_TENSOR, .dtype = SDX_I64, .has_shape = true, .rank = 1, .dims = dims};
    const int64_t opset = sdx_str_is(sdx_str(op), "Shape") ? w->version : OPSET;
    return sdx_match_add_node(w->ir, w->g, op, opset, SDX_STR("length"), inputs, count_inputs, out,
                              0)
               ? out
               : -1;
}

/* `op` of a list of one and a number; `neutral`: the number that changes nothing. */
static int32_t add_step(struct work *w, const char *op, int32_t list, int64_t number,
                        int64_t neutral)
{
    if (list < 0 || number == neutral) return list;
    const int32_t inputs[] = {list, sdx_match_add_ints(w->ir, w->g, "number", &number, 1)};
    return inputs[1] < 0 ? -1 : add_node(w, op, inputs, 2, 1);
}

/* The length as a list of one; -1: no memory. */
static int32_t add_length(struct work *w, uint64_t from, int64_t dim)
{
    int32_t inputs[2];
    int axis;
    if (dim >= 0) return sdx_match_add_ints(w->ir, w->g, "length", &dim, 1);
    if (find_axis(w, from, dim, &inputs[0], &axis)) {
        const int64_t place = axis;
        inputs[0] = add_node(w, "Shape", inputs, 1, type_of(w, inputs[0])->rank);
        inputs[1] = sdx_match_add_ints(w->ir, w->g, "axis", &place, 1);
        return inputs[0] < 0 || inputs[1] < 0 ? -1 : add_node(w, "Gather", inputs, 2, 1);
    }
    const struct sdx_ir_length l = w->ir->symbols[-(dim + 2)].length;
    inputs[0] = add_length(w, from, l.dim);
    if (l.times) {
        inputs[1] = add_length(w, from, l.times);
        if (inputs[0] < 0 || inputs[1] < 0) return -1;
        inputs[0] = add_node(w, "Mul", inputs, 2, 1);
    }
    inputs[0] = add_step(w, "Mul", inputs[0], l.factor, 1);
    inputs[0] = add_step(w, "Add", inputs[0], l.term, 0);
    return add_step(w, "Div", inputs[0], l.divisor, 1);
}

/* The node makes these lengths of `value` of itself: a list or, rank 0, a number. */
static enum sdx_status ask(struct work *w, int32_t n, int32_t value, int count, const int64_t *dims,
                           int rank)
{
    const uint64_t from = w->from[value];
    int32_t parts[SDX_RANK_MAX + 1];
    bool is_known = true;
    for (int i = 0; i < count; i++) {
        if (!is_reckoned(w, from, dims[i], 0)) return SDX_OK;
        is_known = is_known && dims[i] >= 0;
    }
    const struct sdx_ir_node *node = &w->g->nodes[n];
    if (is_known) {
        if (w->g->values[node->outputs[0]].flags & SDX_IR_OUTPUT) return SDX_OK;
        const int64_t length[] = {count};
        struct sdx_tensor *list = sdx_match_new_constant(w->ir, SDX_I64, rank, length);
        if (!list) return SDX_FAIL_MEMORY(w->cx);
        memcpy(list->data, dims, (size_t)count * sizeof *dims);
        const int32_t constant = sdx_match_add_constant(w->ir, w->g, SDX_STR("lengths"), list);
        if (constant < 0) return SDX_FAIL_MEMORY(w->cx);
        sdx_ir_replace_uses(w->ir, 0, node->outputs[0], constant);
        w->g->nodes[n].is_dead = w->did = true;
        return SDX_OK;
    }
    w->version = node->opset;
    for (int i = 0; i < count; i++) {
        parts[i] = add_length(w, from, dims[i]);
        if (parts[i] < 0) return SDX_FAIL_MEMORY(w->cx);
    }
    w->did = true;
    if (rank == 0) {
        parts[1] = sdx_match_add_constant(w->ir, w->g, SDX_STR("first"),
                                          sdx_match_new_constant(w->ir, SDX_I64, 0, NULL));
        if (parts[1] < 0) return SDX_FAIL_MEMORY(w->cx);
        return sdx_match_become(w->cx, w->ir, &w->g->nodes[n], "Gather", OPSET, parts, 2, 0);
    }
    SDX_TRY(sdx_match_become(w->cx, w->ir, &w->g->nodes[n], "Concat", OPSET, parts, count, 1));
    w->g->nodes[n].attrs[w->g->nodes[n].count_attrs++] =
        (struct sdx_ir_attr){.name = SDX_STR("axis"), .type = SDX_ATTR_INT, .graph = -1};
    return SDX_OK;
}

/* Does an input of the graph lie before the node that asks for its shape? */
static bool is_asked(const struct work *w, const struct sdx_ir_node *shape)
{
    return w->g->values[shape->inputs[0]].producer < 0;
}

/* The lengths that a Shape makes, *count of them; NULL: of a value whose rank is not known. */
static const int64_t *lengths_of(const struct work *w, const struct sdx_ir_node *shape, int *count)
{
    const struct sdx_type *t = type_of(w, shape->inputs[0]);
    if (!t) return NULL;
    int begin, end;
    sdx_move_shape_range(shape, t->rank, &begin, &end);
    *count = end - begin;
    return t->dims + begin;
}

/* A Shape that is read as a whole. */
static enum sdx_status ask_all(struct work *w, int32_t n)
{
    const struct sdx_ir_node *node = &w->g->nodes[n];
    int count = 0;
    const int64_t *dims = lengths_of(w, node, &count);
    if (!dims || count == 0 || is_asked(w, node)) return SDX_OK;
    return ask(w, n, node->inputs[0], count, dims, 1);
}

/* The places that a Gather or Slice takes from a list of `count`, at most SDX_RANK_MAX; *rank: of
 * what it makes. -1: not known. */
static int picks_of(const struct work *w, const struct sdx_ir_node *node, int64_t count,
                    int64_t *places, int *rank)
{
    enum { STARTS, ENDS, STEPS, LISTS };
    static const char *const names[LISTS] = {"starts", "ends", NULL};
    static const int inputs[LISTS] = {1, 2, 4};
    const int64_t *list[LISTS];
    *rank = 1;
    if (sdx_str_is(node->op_type, "Gather")) {
        const struct sdx_tensor *index = sdx_match_constant(w->g, node->inputs[1]);
        if (!index || index->rank > 1 || index->count > SDX_RANK_MAX) return -1;
        for (int64_t i = 0; i < index->count; i++) {
            places[i] = sdx_load_i64(index->dtype, index->data, i);
            if (places[i] < 0) places[i] += count;
            if (places[i] < 0 || places[i] >= count) return -1;
        }
        *rank = index->rank;
        return (int)index->count;
    }
    for (int i = 0; i < LISTS; i++) {
        int64_t length = 0;
        if (!sdx_match_list(w->g, node, inputs[i], names[i], &list[i], &length)) return -1;
        if (list[i] ? length != 1 : i != STEPS) return -1;
    }
    if (list[STEPS] && list[STEPS][0] != 1) return -1;
    int64_t begin = list[STARTS][0], end = list[ENDS][0];
    begin = begin < -count ? 0 : begin < 0 ? begin + count : begin;
    end = end < -count ? 0 : end < 0 ? end + count : end > count ? count : end;
    int picked = 0;
    while (begin < end)
        places[picked++] = begin++;
    return picked;
}

static bool picks(const struct sdx_ir_node *node)
{
    return sdx_match_is(node, "Gather") || sdx_match_is(node, "Slice");
}

/* The elements of a list of at most SDX_RANK_MAX as lengths, -1 for those that are none or not
 * known; how many they are, or -1. budget: of values to look at. */
static int lengths_in(const struct work *w, int32_t list, int64_t *dims, int *budget)
{
    const struct sdx_type *t = type_of(w, list);
    if (!t || t->rank > 1 || t->dtype != SDX_I64 || --*budget < 0) return -1;
    const struct sdx_tensor *constant = sdx_match_constant(w->g, list);
    if (constant) {
        for (int64_t i = 0; i < constant->count && constant->count <= SDX_RANK_MAX; i++) {
            dims[i] = sdx_load_i64(SDX_I64, constant->data, i);
            if (dims[i] < 0) dims[i] = -1;
        }
        return constant->count <= SDX_RANK_MAX ? (int)constant->count : -1;
    }
    if (w->g->values[list].producer < 0) return -1;
    const struct sdx_ir_node *node = &w->g->nodes[w->g->values[list].producer];
    int64_t part[SDX_RANK_MAX], places[SDX_RANK_MAX];
    int count = 0, rank;
    if (is_shape(node)) {
        const int64_t *lengths = lengths_of(w, node, &count);
        if (!lengths) return -1;
        memcpy(dims, lengths, (size_t)count * sizeof *dims);
    } else if (picks(node)) {
        const int all = lengths_in(w, node->inputs[0], part, budget);
        count = all < 0 ? -1 : picks_of(w, node, all, places, &rank);
        for (int i = 0; i < count; i++)
            dims[i] = part[places[i]];
    } else if (sdx_match_is(node, "Concat")) {
        for (int i = 0; i < node->count_inputs; i++) {
            const int more = lengths_in(w, node->inputs[i], part, budget);
            if (more < 0 || count + more > SDX_RANK_MAX) return -1;
            memcpy(dims + count, part, (size_t)more * sizeof *dims);
            count += more;
        }
    } else {
        const bool is_view = sdx_match_is(node, "Unsqueeze") || sdx_match_is(node, "Squeeze");
        return is_view ? lengths_in(w, node->inputs[0], dims, budget) : -1;
    }
    return count;
}

/* What a Gather or Slice takes from a Shape or, if that is known, from a list made of such. */
static enum sdx_status ask_picked(struct work *w, int32_t n)
{
    const struct sdx_ir_node *node = &w->g->nodes[n];
    const struct sdx_ir_node *shape = sdx_match_maker(w->g, node->inputs[0], "Shape");
    int64_t places[SDX_RANK_MAX], dims[SDX_RANK_MAX], lengths[SDX_RANK_MAX];
    int rank, budget = 64;
    bool is_known = true;
    const int all = lengths_in(w, node->inputs[0], lengths, &budget);
    if (all < 0) return SDX_OK;
    const int count = picks_of(w, node, all, places, &rank);
    for (int i = 0; i < count; i++) {
        dims[i] = lengths[places[i]];
        is_known = is_known && dims[i] >= 0;
    }
    if (count < 1 || (!is_known && (!shape || is_asked(w, shape)))) return SDX_OK;
    return ask(w, n, node->inputs[0], count, dims, rank);
}

/* Which inputs the values are made of. Lengths that only a run tells are nobody's. */
static enum sdx_status find_inputs(struct work *w, struct sdx_arena *work)
{
    const struct sdx_ir_graph *g = w->g;
    uint64_t *from = sdx_arena_array(work, (size_t)g->count_values + 1, sizeof *from);
    if (!from) return SDX_FAIL_MEMORY(w->cx);
    for (int32_t i = 0; i < g->count_inputs && i < INPUTS_MOST; i++)
        from[g->inputs[i]] |= UINT64_C(1) << i;
    for (int32_t n = 0; n < g->count_nodes; n++) {
        const struct sdx_ir_node *node = &g->nodes[n];
        uint64_t all = 0;
        for (int i = 0; i < node->count_inputs && !node->is_dead; i++)
            if (node->inputs[i] >= 0) all |= from[node->inputs[i]];
        if (!node->op || node->op->flags & (SDX_OP_DYNAMIC | SDX_OP_TOLD_LATE)) all = 0;
        for (int k = 0; k < node->count_outputs; k++)
            if (node->outputs[k] >= 0) from[node->outputs[k]] = all;
    }
    w->from = from;
    return SDX_OK;
}

static enum sdx_status run(struct work *w, struct sdx_arena *work)
{
    const int32_t count = w->g->count_nodes;
    for (int32_t n = 0; n < count; n++) {
        const struct sdx_ir_node *node = &w->g->nodes[n];
        if (picks(node)) SDX_TRY(ask_picked(w, n));
    }
    const int32_t *uses = sdx_ir_uses(w->g, work);
    if (!uses) return SDX_FAIL_MEMORY(w->cx);
    for (int32_t n = 0; n < count; n++) {
        struct sdx_ir_node *node = &w->g->nodes[n];
        if (!is_shape(node)) continue;
        if (uses[node->outputs[0]])
            SDX_TRY(ask_all(w, n));
        else
            node->is_dead = w->did = true;
    }
    return w->did ? sdx_ir_sort(w->cx, w->ir, w->g) : SDX_OK;
}

enum sdx_status sdx_pass_shape(struct sdx_context *cx, struct sdx_ir *ir, bool *changed)
{
    struct work w = {.cx = cx, .ir = ir, .g = &ir->graphs[0]};
    struct sdx_arena work;
    sdx_arena_init(&work, cx->mem, SDX_MEM_PLAN);
    enum sdx_status status = find_inputs(&w, &work);
    if (status == SDX_OK) status = run(&w, &work);
    sdx_arena_deinit(&work);
    *changed = *changed || w.did;
    return status;
}
