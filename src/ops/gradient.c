/* SPDX-License-Identifier: Apache-2.0
 * Gradient (ai.onnx.preview.training): reverse-mode differentiation of the nodes between the
 * tensors that its attributes name, written as nodes of the standard. Nodes on the way that are
 * lowered themselves, other gradients among them, come first: then Gradient waits for the next
 * round. */
#include "ops/gradient.h"
#include "ops/schema.h"

/* ---- what rules use ---- */

const struct sdx_ir_node *sdx_gradient_node(const struct sdx_gradient *d)
{
    return &d->lx->graph->nodes[d->node];
}

int32_t sdx_gradient_in(const struct sdx_gradient *d, int i)
{
    const struct sdx_ir_node *node = sdx_gradient_node(d);
    return i < node->count_inputs ? node->inputs[i] : -1;
}

int32_t sdx_gradient_out(const struct sdx_gradient *d, int k)
{
    const struct sdx_ir_node *node = sdx_gradient_node(d);
    return k < node->count_outputs ? node->outputs[k] : -1;
}

int32_t sdx_gradient_of(const struct sdx_gradient *d, int k)
{
    int32_t value = sdx_gradient_out(d, k);
    return value < 0 ? -1 : d->grads[value];
}

bool sdx_gradient_wants(const struct sdx_gradient *d, int i)
{
    int32_t value = sdx_gradient_in(d, i);
    return value >= 0 && d->needs[value];
}

const struct sdx_type *sdx_gradient_type(const struct sdx_gradient *d, int32_t value)
{
    return &d->lx->graph->values[value].type;
}

void sdx_gradient_refuse(struct sdx_gradient *d, const char *reason)
{
    if (d->lx->status != SDX_OK) return;
    d->lx->status = SDX_FAIL(d->lx->cx, SDX_NOT_SUPPORTED, "Gradient: %.*s with %s",
                             SDX_STR_ARG(sdx_gradient_node(d)->op_type), reason);
}

int32_t sdx_gradient_op1(struct sdx_gradient *d, const char *op, int32_t a)
{
    return sdx_lower_op(d->lx, op, 1, &a);
}

int32_t sdx_gradient_op2(struct sdx_gradient *d, const char *op, int32_t a, int32_t b)
{
    return sdx_lower_op(d->lx, op, 2, (int32_t[]){a, b});
}

int32_t sdx_gradient_op3(struct sdx_gradient *d, const char *op, int32_t a, int32_t b, int32_t c)
{
    return sdx_lower_op(d->lx, op, 3, (int32_t[]){a, b, c});
}

int32_t sdx_gradient_scalar(struct sdx_gradient *d, int32_t like, double v)
{
    return sdx_lower_scalar(d->lx, sdx_gradient_type(d, like)->dtype, v);
}

int32_t sdx_gradient_reshape_like(struct sdx_gradient *d, int32_t value, int32_t like)
{
    int32_t y = sdx_gradient_op2(d, "Reshape", value, sdx_gradient_op1(d, "Shape", like));
    sdx_lower_attr_int(d->lx, "allowzero", 1);
    return y;
}

int32_t sdx_gradient_transpose(struct sdx_gradient *d, int32_t value, int count,
                               const int64_t *order)
{
    int32_t y = sdx_gradient_op1(d, "Transpose", value);
    sdx_lower_attr_ints(d->lx, "perm", count, order);
    return y;
}

int32_t sdx_gradient_sum(struct sdx_gradient *d, int32_t value, int count, const int64_t *axes,
                         bool keep)
{
    int32_t y = count ? sdx_gradient_op2(d, "ReduceSum", value, sdx_lower_ints(d->lx, count, axes))
                      : sdx_gradient_op1(d, "ReduceSum", value);
    sdx_lower_attr_int(d->lx, "keepdims", keep);
    return y;
}

int32_t sdx_gradient_copy_node(struct sdx_gradient *d, int32_t node, int32_t in0, int outputs)
{
    struct sdx_lower *lx = d->lx;
    if (lx->status != SDX_OK) return -1;
    struct sdx_ir_node from = lx->graph->nodes[node];
    struct sdx_ir_node *copy = sdx_ir_node_create(lx->ir, lx->graph, from.domain, from.op_type,
                                                  from.count_inputs, outputs, from.count_attrs);
    if (!copy) {
        lx->status = SDX_FAIL_MEMORY(lx->cx);
        return -1;
    }
    copy->name = from.name;
    copy->opset = from.opset;
    copy->op = from.op;
    for (int32_t i = 0; i < from.count_inputs; i++)
        copy->inputs[i] = i == 0 ? in0 : from.inputs[i];
    for (int32_t i = 0; i < from.count_attrs; i++)
        copy->attrs[i] = from.attrs[i];
    return copy->outputs[outputs - 1];
}

/* The dimensions that differ are summed; where lengths are known only at run time, so are they. */
int32_t sdx_gradient_unbroadcast(struct sdx_gradient *d, int32_t value, const struct sdx_type *from,
                                 int32_t to)
{
    struct sdx_type small = *sdx_gradient_type(d, to), big = *from;
    if (!small.has_shape || !big.has_shape) {
        sdx_gradient_refuse(d, "operands of unknown rank");
        return -1;
    }
    int64_t lead[SDX_RANK_MAX], ones[SDX_RANK_MAX];
    int extra = big.rank - small.rank, count = 0;
    bool is_open = false;
    for (int i = 0; i < extra; i++)
        lead[i] = i;
    for (int i = 0; i < small.rank; i++) {
        int64_t a = small.dims[i], b = big.dims[extra + i];
        if (a == 1 && b != 1) ones[count++] = i;
        if (a != b && a != 1 && !(a > 1)) is_open = true;
    }
    if (extra > 0) value = sdx_gradient_sum(d, value, extra, lead, false);
    if (!is_open) return count ? sdx_gradient_sum(d, value, count, ones, true) : value;
    int32_t shape = sdx_gradient_op1(d, "Shape", to),
            is_one = sdx_gradient_op2(d, "Equal", shape, sdx_lower_scalar(d->lx, SDX_I64, 1));
    int32_t axes = sdx_gradient_op2(d, "Squeeze", sdx_gradient_op1(d, "NonZero", is_one),
                                    sdx_lower_ints(d->lx, 1, (int64_t[]){0}));
    int32_t y = sdx_gradient_op2(d, "ReduceSum", value, axes);
    sdx_lower_attr_int(d->lx, "noop_with_empty_axes", 1);
    return y;
}

void sdx_gradient_give(struct sdx_gradient *d, int i, int32_t value)
{
    if (d->lx->status != SDX_OK || !sdx_gradient_wants(d, i)) return;
    int32_t *sum = &d->grads[sdx_gradient_in(d, i)];
    *sum = *sum < 0 ? value : sdx_gradient_op2(d, "Add", *sum, value);
}

void sdx_gradient_give_broadcast(struct sdx_gradient *d, int i, int32_t value)
{
    if (d->lx->status != SDX_OK || !sdx_gradient_wants(d, i)) return;
    const struct sdx_type out = *sdx_gradient_type(d, sdx_gradient_out(d, 0));
    sdx_gradient_give(d, i, sdx_gradient_unbroadcast(d, value, &out, sdx_gradient_in(d, i)));
}

/* ---- the walk ---- */

/* The value of that name which something live makes; -1: none. */
static int32_t value_named(const struct sdx_ir_graph *graph, struct sdx_str name)
{
    for (int32_t v = graph->count_values - 1; v >= 0; v--) {
        const struct sdx_ir_value *value = &graph->values[v];
        if (!sdx_str_equal(value->name, name)) continue;
        if (value->producer >= 0
                ? !graph->nodes[value->producer].is_dead
                : value->constant || value->outer >= 0 || (value->flags & SDX_IR_INPUT))
            return v;
    }
    return -1;
}

/* What one call of the lowering works on. */
struct walk {
    struct sdx_lower *lx;
    int32_t count_values, count_nodes, count_ends;
    int32_t *ends; /* the values that xs and zs name */
    int32_t count_xs, y;
    bool *is_end, *is_used; /* a value: named in xs or zs; y depends on it */
    bool *on_path;          /* a node: between the ends and y */
};

static enum sdx_status find_ends(struct walk *w)
{
    struct sdx_lower *lx = w->lx;
    const struct sdx_ir_node *node = sdx_lower_node(lx);
    int64_t count_xs = 0, count_zs = 0;
    const struct sdx_str *xs = sdx_ir_attr_strings(node, "xs", &count_xs);
    const struct sdx_str *zs = sdx_ir_attr_strings(node, "zs", &count_zs);
    struct sdx_str y = sdx_ir_attr_str(node, "y", "");
    if (count_xs + count_zs != node->count_inputs)
        return SDX_FAIL(lx->cx, SDX_BAD_MODEL, "Gradient: %d inputs for %lld names in xs and zs",
                        node->count_inputs, (long long)(count_xs + count_zs));
    if (node->count_outputs > count_xs)
        return SDX_FAIL(lx->cx, SDX_BAD_MODEL, "Gradient: %d outputs for %lld names in xs",
                        node->count_outputs, (long long)count_xs);
    w->count_xs = (int32_t)count_xs;
    w->count_ends = node->count_inputs;
    w->ends = sdx_arena_array(lx->ir->arena, (size_t)w->count_ends, sizeof *w->ends);
    if (!w->ends) return SDX_FAIL_MEMORY(lx->cx);
    for (int32_t i = 0; i < w->count_ends; i++) {
        struct sdx_str name = i < count_xs ? xs[i] : zs[i - count_xs];
        if (node->inputs[i] < 0)
            return SDX_FAIL(lx->cx, SDX_BAD_MODEL, "Gradient: input %d is left out", i);
        w->ends[i] = value_named(lx->graph, name);
        if (w->ends[i] < 0)
            return SDX_FAIL(lx->cx, SDX_BAD_MODEL, "Gradient: there is no tensor \"%.*s\"",
                            SDX_STR_ARG(name));
    }
    const struct sdx_ir_attr *known = sdx_ir_attr(node, "y_value");
    w->y = known ? (int32_t)known->i : value_named(lx->graph, y);
    if (known) memcpy(w->ends, node->inputs, (size_t)w->count_ends * sizeof *w->ends);
    if (w->y >= 0) return SDX_OK;
    return SDX_FAIL(lx->cx, SDX_BAD_MODEL, "Gradient: there is no tensor \"%.*s\"", SDX_STR_ARG(y));
}

/* Marks what y is made of. *ready is false when something on the way is to be lowered first. */
static enum sdx_status find_path(struct walk *w, bool *ready)
{
    struct sdx_lower *lx = w->lx;
    const struct sdx_ir_graph *graph = lx->graph;
    w->count_values = graph->count_values;
    w->count_nodes = graph->count_nodes;
    w->is_end = sdx_arena_alloc(lx->ir->arena, (size_t)w->count_values);
    w->is_used = sdx_arena_alloc(lx->ir->arena, (size_t)w->count_values);
    w->on_path = sdx_arena_alloc(lx->ir->arena, (size_t)w->count_nodes);
    if (!w->is_end || !w->is_used || !w->on_path) return SDX_FAIL_MEMORY(lx->cx);
    for (int32_t i = 0; i < w->count_ends; i++)
        w->is_end[w->ends[i]] = true;
    w->is_used[w->y] = true;
    *ready = graph->values[w->y].type.kind != SDX_KIND_NONE;
    for (int32_t n = w->count_nodes - 1; n >= 0; n--) {
        const struct sdx_ir_node *node = &graph->nodes[n];
        bool used = false;
        for (int32_t k = 0; k < node->count_outputs && !node->is_dead; k++)
            used = used || (node->outputs[k] >= 0 && w->is_used[node->outputs[k]] &&
                            !w->is_end[node->outputs[k]]);
        if (!used) continue;
        w->on_path[n] = true;
        if (!node->op || node->op->lower || graph->values[node->outputs[0]].type.kind == 0)
            *ready = false;
        for (int32_t i = 0; i < node->count_inputs; i++) {
            if (node->inputs[i] < 0) continue;
            w->is_used[node->inputs[i]] = true;
            /* Made in this round: its node may stand behind this one. */
            if (graph->values[node->inputs[i]].type.kind == SDX_KIND_NONE) *ready = false;
        }
    }
    return SDX_OK;
}

static bool has_body(const struct sdx_ir_node *node)
{
    for (int32_t i = 0; i < node->count_attrs; i++)
        if (node->attrs[i].type == SDX_ATTR_GRAPH || node->attrs[i].type == SDX_ATTR_GRAPHS)
            return true;
    return false;
}

/* The gradient at other values than the named ones: of a copy of the path. */
static enum sdx_status copy_path(struct walk *w)
{
    struct sdx_lower *lx = w->lx;
    struct sdx_gradient d = {.lx = lx};
    int32_t *copy = sdx_arena_array(lx->ir->arena, (size_t)w->count_values, sizeof *copy);
    if (!copy) return SDX_FAIL_MEMORY(lx->cx);
    for (int32_t v = 0; v < w->count_values; v++)
        copy[v] = v;
    for (int32_t i = 0; i < w->count_ends && lx->status == SDX_OK; i++) {
        /* Values of their own: one may stand for two of the names. */
        int32_t value = sdx_gradient_op1(&d, "Identity", sdx_lower_input(lx, i));
        copy[w->ends[i]] = lx->graph->nodes[lx->node].inputs[i] = value;
    }
    for (int32_t n = 0; n < w->count_nodes && lx->status == SDX_OK; n++) {
        bool changes = false;
        for (int32_t i = 0; w->on_path[n] && i < lx->graph->nodes[n].count_inputs; i++) {
            int32_t v = lx->graph->nodes[n].inputs[i];
            changes = changes || (v >= 0 && copy[v] != v);
        }
        if (!changes) continue;
        d.node = n;
        if (has_body(&lx->graph->nodes[n])) sdx_gradient_refuse(&d, "a body");
        int32_t made = lx->graph->count_nodes, in0 = lx->graph->nodes[n].inputs[0];
        sdx_gradient_copy_node(&d, n, in0, lx->graph->nodes[n].count_outputs);
        if (lx->status != SDX_OK) break;
        const struct sdx_ir_node *from = &lx->graph->nodes[n], *to = &lx->graph->nodes[made];
        for (int32_t i = 0; i < to->count_inputs; i++)
            if (to->inputs[i] >= 0) to->inputs[i] = copy[to->inputs[i]];
        for (int32_t k = 0; k < from->count_outputs; k++)
            if (from->outputs[k] >= 0) copy[from->outputs[k]] = to->outputs[k];
    }
    struct sdx_ir_node *node = &lx->graph->nodes[lx->node];
    struct sdx_ir_attr *attrs =
        sdx_arena_array(lx->ir->arena, (size_t)node->count_attrs + 1, sizeof *attrs);
    if (!attrs) return SDX_FAIL_MEMORY(lx->cx);
    memcpy(attrs, node->attrs, (size_t)node->count_attrs * sizeof *attrs);
    attrs[node->count_attrs] =
        (struct sdx_ir_attr){.name = SDX_STR("y_value"), .type = SDX_ATTR_INT, .i = copy[w->y]};
    node->attrs = attrs;
    node->count_attrs++;
    return lx->status;
}

/* NULL: the operator cannot be differentiated. */
static sdx_gradient_rule *rule_of(const struct sdx_ir_node *node)
{
    if (node->domain.len > 0) return NULL;
    static const struct sdx_gradient_rows *const files[] = {
        &sdx_gradient_broadcast, &sdx_gradient_move, &sdx_gradient_window, &sdx_gradient_linear};
    for (int f = 0; f < SDX_COUNT_OF(files); f++)
        for (int i = 0; i < files[f]->count; i++)
            if (sdx_str_is(node->op_type, files[f]->rows[i].op)) return files[f]->rows[i].rule;
    return sdx_gradient_find_map(node->op_type);
}

static bool depends_on_xs(const struct sdx_gradient *d, int32_t n)
{
    const struct sdx_ir_node *node = &d->lx->graph->nodes[n];
    for (int32_t i = 0; i < node->count_inputs; i++)
        if (node->inputs[i] >= 0 && d->needs[node->inputs[i]]) return true;
    return false;
}

static enum sdx_status start(struct walk *w, struct sdx_gradient *d)
{
    struct sdx_lower *lx = w->lx;
    *d = (struct sdx_gradient){.lx = lx, .count_values = w->count_values, .node = lx->node};
    d->grads = sdx_arena_array(lx->ir->arena, (size_t)w->count_values, sizeof *d->grads);
    d->needs = sdx_arena_alloc(lx->ir->arena, (size_t)w->count_values);
    if (!d->grads || !d->needs) return SDX_FAIL_MEMORY(lx->cx);
    for (int32_t v = 0; v < w->count_values; v++)
        d->grads[v] = -1;
    for (int32_t i = 0; i < w->count_xs; i++)
        d->needs[w->ends[i]] = true;
    for (int32_t n = 0; n < w->count_nodes; n++)
        if (w->on_path[n] && depends_on_xs(d, n)) {
            const struct sdx_ir_node *node = &lx->graph->nodes[n];
            for (int32_t k = 0; k < node->count_outputs; k++) {
                int32_t v = node->outputs[k];
                if (v >= 0 && !w->is_end[v] && sdx_dtype_is_float(sdx_gradient_type(d, v)->dtype))
                    d->needs[v] = true;
            }
        }
    if (!sdx_dtype_is_float(sdx_gradient_type(d, w->y)->dtype))
        return SDX_FAIL(lx->cx, SDX_BAD_MODEL, "Gradient: y is no tensor of floats");
    int32_t shape = sdx_gradient_op1(d, "Shape", w->y);
    d->grads[w->y] = sdx_gradient_op2(d, "Expand", sdx_gradient_scalar(d, w->y, 1), shape);
    return lx->status;
}

static enum sdx_status differentiate(struct walk *w)
{
    struct sdx_gradient d;
    struct sdx_lower *lx = w->lx;
    SDX_TRY(start(w, &d));
    for (int32_t n = w->count_nodes - 1; n >= 0 && lx->status == SDX_OK; n--) {
        const struct sdx_ir_node *node = &lx->graph->nodes[n];
        bool reached = false;
        for (int32_t k = 0; k < node->count_outputs; k++)
            reached = reached || (node->outputs[k] >= 0 && d.grads[node->outputs[k]] >= 0 &&
                                  !w->is_end[node->outputs[k]]);
        if (!w->on_path[n] || !reached || !depends_on_xs(&d, n)) continue;
        sdx_gradient_rule *rule = rule_of(node);
        if (!rule)
            return SDX_FAIL(lx->cx, SDX_NOT_SUPPORTED, "Gradient: operator %.*s has no rule",
                            SDX_STR_ARG(node->op_type));
        d.node = n;
        rule(&d);
    }
    for (int32_t i = 0; i < w->count_xs && lx->status == SDX_OK; i++) {
        int32_t x = w->ends[i], value = d.grads[x];
        if (value < 0)
            value = sdx_gradient_op2(&d, "Expand", sdx_gradient_scalar(&d, x, 0),
                                     sdx_gradient_op1(&d, "Shape", x));
        sdx_lower_output(lx, i, value);
    }
    return lx->status;
}

static enum sdx_status lower_gradient(struct sdx_lower *lx)
{
    struct walk w = {.lx = lx};
    bool ready = false, at_ends = true, expanded = false;
    lx->opset = sdx_schema_opset_newest;
    SDX_TRY(find_ends(&w));
    SDX_TRY(find_path(&w, &ready));
    for (int32_t i = 0; i < w.count_ends; i++)
        at_ends = at_ends && w.ends[i] == sdx_lower_input(lx, i);
    for (int32_t n = 0; n < w.count_nodes && ready && lx->status == SDX_OK; n++)
        if (w.on_path[n] && sdx_gradient_expand(lx, n)) expanded = true;
    lx->is_postponed = !ready || !at_ends || expanded;
    if (!ready || expanded) return lx->status;
    return at_ends ? differentiate(&w) : copy_path(&w);
}

static enum sdx_status infer_gradient(struct sdx_infer *ix)
{
    for (int k = 0; k < ix->count_out && k < ix->count_in; k++)
        if (sdx_infer_has(ix, k)) ix->out[k] = *ix->in[k];
    return SDX_OK;
}

static const struct sdx_op ops[] = {
    {"Gradient", 1, 0, infer_gradient, LOWER(lower_gradient),
     .note = "operators with a rule: docs/adr/0020"},
};

const struct sdx_op_family sdx_ops_gradient = FAMILY("ai.onnx.preview.training", ops);
