/* SPDX-License-Identifier: Apache-2.0
 * Images with channels last, as Keras and TensorFlow have them, between convolutions, which want
 * them first: a Transpose of channels to the last axis goes behind what works element by element on
 * its result, behind Pad, Concat and reductions, until it meets the one that turns them back and
 * the passes `chains` and `identity` drop both. Constants that are broadcast are turned instead. */
#include "passes/match.h"
#include "passes/passes.h"

enum { INPUTS_MAX = 64, CONSTANT_MAX = 1 << 16 /* elements */ };

struct work {
    struct sdx_context *cx;
    struct sdx_ir *ir;
    struct sdx_ir_graph *g;
    int32_t
        *first; /* the value with channels first that a value is a Transpose of; -1: it is none */
    int32_t count; /* values that this tells of */
    bool did;
};

static const struct sdx_type *type_of(const struct work *w, int32_t value)
{
    return &w->g->values[value].type;
}

/* Axis i of channels last is that axis of channels first. */
static int axis_first(int i, int rank)
{
    return i == 0 ? 0 : i == rank - 1 ? 1 : i + 1;
}

/* Does a Transpose take channels from axis 1 of an image to the last? */
static bool is_to_last(const struct work *w, const struct sdx_ir_node *node)
{
    const struct sdx_type *x = type_of(w, node->inputs[0]);
    return x->has_shape && x->rank >= 4 && sdx_match_moves_axis(node, x->rank, 1, x->rank - 1);
}

static int32_t first_of(const struct work *w, int32_t value)
{
    return value >= 0 && value < w->count ? w->first[value] : -1;
}

/* Does the operator work element by element, with broadcasting of all operands? Before opset 7 that
 * had an axis. */
static bool is_elementwise(const struct sdx_ir_node *node)
{
    static const char *const names[] = {
        "Abs",      "Add",  "Cast",       "Ceil",  "Clip",        "Div",       "Elu",
        "Erf",      "Exp",  "Floor",      "Gelu",  "HardSigmoid", "HardSwish", "LeakyRelu",
        "Log",      "Max",  "Min",        "Mish",  "Mul",         "Neg",       "PRelu",
        "Pow",      "Relu", "Reciprocal", "Round", "Selu",        "Sigmoid",   "Softplus",
        "Softsign", "Sqrt", "Sub",        "Sum",   "Swish",       "Tanh",      "ThresholdedRelu",
        "Where"};
    return node->opset >= 7 && sdx_match_is_one_of(node, names, SDX_COUNT_OF(names));
}

/* The constant as it is broadcast over channels first: its own value for one element, else turned.
 * -1: it is none, or of another shape; *status for what fails. */
static int32_t constant_first(struct work *w, int32_t value, int rank, enum sdx_status *status)
{
    const struct sdx_tensor *t = sdx_match_constant(w->g, value);
    int64_t dims[SDX_RANK_MAX], steps[SDX_RANK_MAX], turned[SDX_RANK_MAX], step = 1;
    if (!t || t->rank > rank || t->count > CONSTANT_MAX || t->count == 0 || !t->data) return -1;
    if (t->count == 1) return value;
    const size_t element = t->bytes / (size_t)t->count;
    if (t->dtype == SDX_STRING || element * (size_t)t->count != t->bytes) return -1;
    for (int i = rank - 1; i >= 0; i--) {
        const int own = i - (rank - t->rank);
        dims[i] = own < 0 ? 1 : t->dims[own];
        steps[i] = step;
        step *= dims[i];
    }
    for (int i = 0; i < rank; i++)
        turned[axis_first(i, rank)] = dims[i];
    struct sdx_tensor *to = sdx_match_new_constant(w->ir, t->dtype, rank, turned);
    *status = to ? SDX_OK : SDX_FAIL_MEMORY(w->cx);
    if (!to) return -1;
    int64_t index[SDX_RANK_MAX] = {0};
    for (int64_t at = 0; at < to->count; at++) {
        int64_t from = 0;
        for (int i = 0; i < rank; i++)
            from += index[axis_first(i, rank)] * steps[i];
        memcpy((char *)to->data + (size_t)at * element,
               (const char *)t->data + (size_t)from * element, element);
        for (int i = rank - 1; i >= 0 && ++index[i] == turned[i]; i--)
            index[i] = 0;
    }
    const int32_t made = sdx_match_add_constant(w->ir, w->g, w->g->values[value].name, to);
    if (made < 0) *status = SDX_FAIL_MEMORY(w->cx);
    return made;
}

/* The result of node n, which has the inputs of channels first now, becomes a Transpose of a new
 * value. */
static enum sdx_status turn_result(struct work *w, int32_t n)
{
    const int32_t old = w->g->nodes[n].outputs[0], rank = type_of(w, old)->rank;
    const int32_t made = sdx_ir_value_create(w->ir, w->g, w->g->values[old].name);
    int64_t *dims = sdx_arena_array(w->ir->arena, (size_t)rank, sizeof *dims);
    int64_t *perm = sdx_arena_array(w->ir->arena, (size_t)rank, sizeof *perm);
    if (made < 0 || !dims || !perm) return SDX_FAIL_MEMORY(w->cx);
    struct sdx_type *type = &w->g->values[made].type;
    *type = *type_of(w, old);
    for (int i = 0; i < rank; i++) {
        perm[i] = axis_first(i, rank);
        dims[perm[i]] = type->dims[i];
    }
    type->dims = dims;
    sdx_ir_node_set_output(w->g, &w->g->nodes[n], n, 0, made);
    const struct sdx_ir_node *node = &w->g->nodes[n];
    struct sdx_ir_node *turn =
        sdx_match_add_node(w->ir, w->g, "Transpose", node->opset, node->name, &made, 1, old, 1);
    if (!turn) return SDX_FAIL_MEMORY(w->cx);
    turn->attrs[0] = (struct sdx_ir_attr){
        .name = SDX_STR("perm"), .type = SDX_ATTR_INTS, .count = rank, .ints = perm};
    w->first[old] = made;
    w->did = true;
    return SDX_OK;
}

/* The attribute of that name, which the node has, to be changed: it gets its own. NULL: no memory.
 */
static struct sdx_ir_attr *own_attr(struct work *w, struct sdx_ir_node *node, const char *name)
{
    struct sdx_ir_attr *attrs =
        sdx_arena_copy(w->ir->arena, node->attrs, (size_t)node->count_attrs * sizeof *attrs);
    if (attrs) node->attrs = attrs;
    for (int i = 0; attrs && i < node->count_attrs; i++)
        if (sdx_str_is(attrs[i].name, name)) return &attrs[i];
    return NULL;
}

static enum sdx_status turn_elementwise(struct work *w, int32_t n)
{
    const struct sdx_ir_node *node = &w->g->nodes[n];
    const struct sdx_type *out = type_of(w, node->outputs[0]);
    const int32_t count = node->count_inputs, rank = out->rank;
    int32_t inputs[INPUTS_MAX];
    bool whole = false; /* an operand is as large as the result */
    if (count > INPUTS_MAX || !out->has_shape) return SDX_OK;
    for (int32_t i = 0; i < count; i++) {
        const int32_t value = node->inputs[i], first = first_of(w, value);
        inputs[i] = first >= 0 && type_of(w, value)->rank == rank ? first : value;
        if (inputs[i] == first && first >= 0)
            whole = whole || sdx_dims_equal(type_of(w, value)->dims, rank, out->dims, rank);
        else if (value >= 0 && !sdx_match_constant(w->g, value) &&
                 (!type_of(w, value)->has_shape || type_of(w, value)->rank > 0))
            return SDX_OK;
    }
    if (!whole) return SDX_OK;
    for (int32_t i = 0; i < count; i++) {
        if (inputs[i] != w->g->nodes[n].inputs[i] || !sdx_match_constant(w->g, inputs[i])) continue;
        enum sdx_status status = SDX_OK;
        inputs[i] = constant_first(w, inputs[i], rank, &status);
        if (status != SDX_OK || inputs[i] < 0) return status;
    }
    for (int32_t i = 0; i < count; i++)
        w->g->nodes[n].inputs[i] = inputs[i];
    return turn_result(w, n);
}

static enum sdx_status turn_concat(struct work *w, int32_t n)
{
    struct sdx_ir_node *node = &w->g->nodes[n];
    const struct sdx_type *out = type_of(w, node->outputs[0]);
    if (!out->has_shape || !sdx_ir_attr(node, "axis")) return SDX_OK;
    const int64_t axis = sdx_ir_attr_int(node, "axis", 0);
    for (int32_t i = 0; i < node->count_inputs; i++)
        if (first_of(w, node->inputs[i]) < 0) return SDX_OK;
    struct sdx_ir_attr *attr = own_attr(w, node, "axis");
    if (!attr) return SDX_FAIL_MEMORY(w->cx);
    attr->i = axis_first((int)(axis < 0 ? axis + out->rank : axis), out->rank);
    for (int32_t i = 0; i < node->count_inputs; i++)
        node->inputs[i] = first_of(w, node->inputs[i]);
    return turn_result(w, n);
}

static enum sdx_status turn_pad(struct work *w, int32_t n)
{
    const struct sdx_ir_node *node = &w->g->nodes[n];
    const int32_t x = first_of(w, node->inputs[0]);
    const struct sdx_type *out = type_of(w, node->outputs[0]);
    int64_t count = 0, pads[2 * SDX_RANK_MAX];
    const int64_t *own = sdx_match_ints(w->g, node, 1, &count);
    const bool has_axes = node->count_inputs > 3 && node->inputs[3] >= 0;
    if (x < 0 || node->opset < 11 || !own || !out->has_shape || count != 2 * out->rank || has_axes)
        return SDX_OK;
    const int rank = out->rank;
    for (int i = 0; i < 2 * rank; i++)
        pads[i / rank * rank + axis_first(i % rank, rank)] = own[i];
    const int32_t turned = sdx_match_add_ints(w->ir, w->g, "pads", pads, count);
    if (turned < 0) return SDX_FAIL_MEMORY(w->cx);
    w->g->nodes[n].inputs[0] = x;
    w->g->nodes[n].inputs[1] = turned;
    return turn_result(w, n);
}

/* Of the spatial axes: what is left has no others between image and channels. */
static enum sdx_status turn_reduce(struct work *w, int32_t n)
{
    struct sdx_ir_node *node = &w->g->nodes[n];
    const int32_t x = first_of(w, node->inputs[0]);
    const bool keeps = sdx_ir_attr_int(node, "keepdims", 1) != 0;
    int64_t count = 0, axes[SDX_RANK_MAX];
    if (x < 0) return SDX_OK;
    const int rank = type_of(w, x)->rank;
    const bool by_input = node->count_inputs > 1;
    const int64_t *own;
    if (!sdx_match_list(w->g, node, 1, "axes", &own, &count) || !own || count != rank - 2 ||
        !type_of(w, node->outputs[0])->has_shape)
        return SDX_OK;
    for (int64_t i = 0; i < count; i++) {
        const int64_t axis = own[i] < 0 ? own[i] + rank : own[i];
        if (axis < 1 || axis > rank - 2) return SDX_OK;
        axes[i] = axis_first((int)axis, rank);
    }
    if (by_input) {
        const int32_t turned = sdx_match_add_ints(w->ir, w->g, "axes", axes, count);
        if (turned < 0) return SDX_FAIL_MEMORY(w->cx);
        w->g->nodes[n].inputs[1] = turned;
    } else {
        struct sdx_ir_attr *attr = own_attr(w, node, "axes");
        if (attr) attr->ints = sdx_arena_copy(w->ir->arena, axes, (size_t)count * sizeof *axes);
        if (!attr || !attr->ints) return SDX_FAIL_MEMORY(w->cx);
    }
    w->g->nodes[n].inputs[0] = x;
    w->did = true;
    return keeps ? turn_result(w, n) : SDX_OK;
}

static enum sdx_status turn_node(struct work *w, int32_t n)
{
    static const char *const reductions[] = {"ReduceMax", "ReduceMean", "ReduceMin", "ReduceSum"};
    const struct sdx_ir_node *node = &w->g->nodes[n];
    if (node->is_dead || node->domain.len || node->count_outputs != 1 || !node->count_inputs ||
        node->count_captures || node->outputs[0] >= w->count)
        return SDX_OK;
    if (is_elementwise(node)) return turn_elementwise(w, n);
    if (node->inputs[0] < 0) return SDX_OK;
    if (sdx_str_is(node->op_type, "Transpose")) {
        if (is_to_last(w, node)) w->first[node->outputs[0]] = node->inputs[0];
        return SDX_OK;
    }
    if (sdx_str_is(node->op_type, "Concat")) return turn_concat(w, n);
    if (sdx_str_is(node->op_type, "Pad")) return turn_pad(w, n);
    return sdx_match_is_one_of(node, reductions, SDX_COUNT_OF(reductions)) ? turn_reduce(w, n)
                                                                           : SDX_OK;
}

enum sdx_status sdx_pass_channels_last(struct sdx_context *cx, struct sdx_ir *ir, bool *changed)
{
    struct sdx_arena arena;
    enum sdx_status status = SDX_OK;
    sdx_arena_init(&arena, cx->mem, SDX_MEM_PLAN);
    for (int32_t i = 0; i < ir->count_graphs && status == SDX_OK; i++) {
        struct sdx_ir_graph *g = &ir->graphs[i];
        struct work w = {.cx = cx, .ir = ir, .g = g, .count = g->count_values};
        w.first = sdx_arena_array(&arena, (size_t)w.count + 1, sizeof *w.first);
        if (!w.first) status = SDX_FAIL_MEMORY(cx);
        for (int32_t v = 0; status == SDX_OK && v < w.count; v++)
            w.first[v] = -1;
        const int32_t nodes = g->count_nodes;
        for (int32_t n = 0; n < nodes && status == SDX_OK; n++)
            status = turn_node(&w, n);
        if (status == SDX_OK && w.did) status = sdx_ir_sort(cx, ir, g);
        *changed = *changed || w.did;
    }
    sdx_arena_deinit(&arena);
    return status;
}
