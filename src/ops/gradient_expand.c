/* SPDX-License-Identifier: Apache-2.0
 * Operators on the way of a gradient that are replaced by others which have rules: losses, norms of
 * instances and groups, and recurrent networks, whose steps are written out. */
#include "ops/gradient.h"

enum { STEPS_MAX = 512 };

static int32_t input(const struct sdx_lower *lx, int i)
{
    return sdx_lower_input(lx, i);
}

static int32_t op2(struct sdx_lower *lx, const char *op, int32_t a, int32_t b)
{
    return sdx_lower_binary(lx, op, a, b);
}

static int32_t op3(struct sdx_lower *lx, const char *op, int32_t a, int32_t b, int32_t c)
{
    const int32_t in[] = {a, b, c};
    return sdx_lower_op(lx, op, 3, in);
}

static int32_t at_axes(struct sdx_lower *lx, const char *op, int32_t value, int64_t axis)
{
    return op2(lx, op, value, sdx_lower_ints(lx, 1, &axis));
}

static int32_t total(struct sdx_lower *lx, int32_t value)
{
    int32_t y = sdx_lower_unary(lx, "ReduceSum", value);
    sdx_lower_attr_int(lx, "keepdims", 0);
    return y;
}

/* ---- losses ---- */

/* Output 0 from logarithms of probabilities [N, C, ...] and the classes, input 1. */
static bool expand_loss(struct sdx_lower *lx, int32_t logs)
{
    const struct sdx_ir_node node = *sdx_lower_node(lx);
    const struct sdx_ir_attr *ignored = sdx_ir_attr(&node, "ignore_index");
    const struct sdx_str how = sdx_ir_attr_str(&node, "reduction", "mean");
    int32_t weight = input(lx, 2), skip = -1, zero = sdx_lower_scalar_like(lx, 0, 0);
    int32_t at = sdx_lower_unary(lx, "Cast", input(lx, 1));
    sdx_lower_attr_int(lx, "to", SDX_I64);
    if (ignored) {
        skip = op2(lx, "Equal", at, sdx_lower_scalar(lx, SDX_I64, (double)ignored->i));
        at = op3(lx, "Where", skip, sdx_lower_scalar(lx, SDX_I64, 0), at);
    }
    int32_t y = op2(lx, "GatherElements", logs, at_axes(lx, "Unsqueeze", at, 1));
    sdx_lower_attr_int(lx, "axis", 1);
    y = sdx_lower_unary(lx, "Neg", at_axes(lx, "Squeeze", y, 1));
    if (weight >= 0) weight = op2(lx, "Gather", weight, at);
    if (weight >= 0) y = op2(lx, "Mul", y, weight);
    if (ignored) {
        int32_t counted = weight >= 0 ? weight : sdx_lower_scalar_like(lx, 0, 1);
        y = op3(lx, "Where", skip, zero, y);
        weight = op3(lx, "Where", skip, zero, counted);
    }
    if (!sdx_str_is(how, "none")) {
        int32_t sum = total(lx, y);
        if (sdx_str_is(how, "sum"))
            y = sum;
        else if (weight >= 0)
            y = op2(lx, "Div", sum, total(lx, weight));
        else
            y = op2(lx, "Div", sum, op2(lx, "CastLike", sdx_lower_unary(lx, "Size", y), sum));
    }
    sdx_lower_output(lx, 0, y);
    return true;
}

static bool expand_nll(struct sdx_lower *lx)
{
    return expand_loss(lx, input(lx, 0));
}

static bool expand_cross_entropy(struct sdx_lower *lx)
{
    int32_t logs = sdx_lower_unary(lx, "LogSoftmax", input(lx, 0));
    sdx_lower_attr_int(lx, "axis", 1);
    sdx_lower_output(lx, 1, logs);
    return expand_loss(lx, logs);
}

/* ---- InstanceNormalization, GroupNormalization ---- */

/* [channels] beside [N, channels, ...] */
static int32_t by_channel(struct sdx_lower *lx, int i, int rank)
{
    int64_t dims[SDX_RANK_MAX] = {-1};
    for (int k = 1; k < rank - 1; k++)
        dims[k] = 1;
    return op2(lx, "Reshape", input(lx, i), sdx_lower_ints(lx, rank - 1, dims));
}

static bool expand_norm(struct sdx_lower *lx)
{
    const struct sdx_ir_node node = *sdx_lower_node(lx);
    const struct sdx_type x = *sdx_lower_type(lx, 0);
    const bool is_group = sdx_str_is(node.op_type, "GroupNormalization");
    const float epsilon = sdx_ir_attr_float(&node, "epsilon", 1e-5f);
    if (!x.has_shape || x.rank < 3 || (is_group && node.opset < 21)) return false;
    const int64_t channels = x.dims[1];
    const int64_t rows[] = {0, is_group ? sdx_ir_attr_int(&node, "num_groups", 1) : channels, -1};
    if (rows[1] < 1) return false;
    int32_t flat = op2(lx, "Reshape", input(lx, 0), sdx_lower_ints(lx, 3, rows));
    int32_t y = op2(lx, "LayerNormalization", flat, sdx_lower_scalar_like(lx, 0, 1));
    sdx_lower_attr_float(lx, "epsilon", epsilon);
    y = op2(lx, "Reshape", y, sdx_lower_unary(lx, "Shape", input(lx, 0)));
    y = op2(lx, "Mul", y, by_channel(lx, 1, x.rank));
    sdx_lower_output(lx, 0, op2(lx, "Add", y, by_channel(lx, 2, x.rank)));
    return true;
}

/* ---- RNN, GRU, LSTM ---- */

struct recurrent {
    struct sdx_lower *lx;
    enum { RNN, GRU, LSTM } kind;
    int64_t steps, batch, hidden, gates;
    bool is_reverse, has_lbr; /* linear_before_reset */
    struct sdx_str acts[6];
    int count_acts; /* of a direction */
    /* of the direction at hand */
    int32_t w, r, bias_w, bias_r, h, c;
    const struct sdx_str *act;
};

static int32_t activate(struct recurrent *n, int k, int32_t value)
{
    static const char *const known[] = {"Sigmoid", "Tanh", "Relu"};
    for (int i = 0; i < SDX_COUNT_OF(known); i++)
        if (sdx_str_is(n->act[k], known[i])) return sdx_lower_unary(n->lx, known[i], value);
    return -1;
}

static bool read_recurrent(struct recurrent *n, int *directions)
{
    static const char *const names[] = {"RNN", "GRU", "LSTM"};
    static const char *const usual[][3] = {
        {"Tanh"}, {"Sigmoid", "Tanh"}, {"Sigmoid", "Tanh", "Tanh"}};
    const struct sdx_ir_node *node = sdx_lower_node(n->lx);
    const struct sdx_type *x = sdx_lower_type(n->lx, 0);
    const struct sdx_str way = sdx_ir_attr_str(node, "direction", "forward");
    int64_t count = 0;
    for (int i = 0; i < SDX_COUNT_OF(names); i++)
        if (sdx_str_is(node->op_type, names[i])) n->kind = i;
    n->count_acts = n->kind + 1;
    n->gates = n->kind == RNN ? 1 : n->kind == GRU ? 3 : 4;
    *directions = sdx_str_is(way, "bidirectional") ? 2 : 1;
    n->is_reverse = sdx_str_is(way, "reverse");
    const struct sdx_str *acts = sdx_ir_attr_strings(node, "activations", &count);
    if (acts && count != (int64_t)n->count_acts * *directions) return false;
    for (int i = 0; i < n->count_acts * *directions; i++) {
        n->acts[i] = acts ? acts[i] : sdx_str(usual[n->kind][i % n->count_acts]);
        if (!sdx_str_is(n->acts[i], "Sigmoid") && !sdx_str_is(n->acts[i], "Tanh") &&
            !sdx_str_is(n->acts[i], "Relu"))
            return false;
    }
    n->hidden = sdx_ir_attr_int(node, "hidden_size", 0);
    n->has_lbr = sdx_ir_attr_int(node, "linear_before_reset", 0) != 0;
    if (!x->has_shape || x->rank != 3 || x->dims[0] < 1 || x->dims[0] > STEPS_MAX || x->dims[1] < 1)
        return false;
    n->steps = x->dims[0];
    n->batch = x->dims[1];
    return n->hidden > 0 && input(n->lx, 4) < 0 && input(n->lx, 7) < 0 &&
           !sdx_ir_attr(node, "clip") && sdx_ir_attr_int(node, "layout", 0) == 0 &&
           sdx_ir_attr_int(node, "input_forget", 0) == 0;
}

static int32_t pick(struct sdx_lower *lx, int32_t value, int64_t at)
{
    return op2(lx, "Gather", value, sdx_lower_scalar(lx, SDX_I64, (double)at));
}

static int32_t part(struct sdx_lower *lx, int32_t value, int64_t begin, int64_t end, int64_t axis)
{
    const int32_t in[] = {value, sdx_lower_ints(lx, 1, &begin), sdx_lower_ints(lx, 1, &end),
                          sdx_lower_ints(lx, 1, &axis)};
    return sdx_lower_op(lx, "Slice", 4, in);
}

/* value * weights^T + bias; bias -1: none. */
static int32_t product(struct sdx_lower *lx, int32_t value, int32_t weights, int32_t bias)
{
    int32_t y = bias < 0 ? op2(lx, "Gemm", value, weights) : op3(lx, "Gemm", value, weights, bias);
    sdx_lower_attr_int(lx, "transB", 1);
    return y;
}

static int32_t state(struct recurrent *n, int i, int direction)
{
    const int64_t dims[] = {n->batch, n->hidden};
    if (input(n->lx, i) >= 0) return pick(n->lx, input(n->lx, i), direction);
    return op2(n->lx, "Expand", sdx_lower_scalar_like(n->lx, 0, 0), sdx_lower_ints(n->lx, 2, dims));
}

static void step_lstm(struct recurrent *n, int32_t x)
{
    struct sdx_lower *lx = n->lx;
    const int64_t h = n->hidden;
    int32_t all = product(lx, x, n->w, n->bias_w), gate[4];
    all = op2(lx, "Add", all, product(lx, n->h, n->r, n->bias_r));
    for (int k = 0; k < 4; k++) /* i, o, f, c */
        gate[k] = activate(n, k == 3, part(lx, all, k * h, (k + 1) * h, 1));
    n->c = op2(lx, "Add", op2(lx, "Mul", gate[2], n->c), op2(lx, "Mul", gate[0], gate[3]));
    n->h = op2(lx, "Mul", gate[1], activate(n, 2, n->c));
}

static void step_gru(struct recurrent *n, int32_t x)
{
    struct sdx_lower *lx = n->lx;
    const int64_t h = n->hidden;
    int32_t from_x = product(lx, x, n->w, n->bias_w), from_h = product(lx, n->h, n->r, n->bias_r);
    int32_t both = op2(lx, "Add", part(lx, from_x, 0, 2 * h, 1), part(lx, from_h, 0, 2 * h, 1));
    both = activate(n, 0, both);
    int32_t z = part(lx, both, 0, h, 1), r = part(lx, both, h, 2 * h, 1), late;
    if (n->has_lbr) {
        late = op2(lx, "Mul", r, part(lx, from_h, 2 * h, 3 * h, 1));
    } else {
        int32_t bias = n->bias_r < 0 ? -1 : part(lx, n->bias_r, 2 * h, 3 * h, 0);
        late = product(lx, op2(lx, "Mul", r, n->h), part(lx, n->r, 2 * h, 3 * h, 0), bias);
    }
    late = activate(n, 1, op2(lx, "Add", part(lx, from_x, 2 * h, 3 * h, 1), late));
    int32_t keep = op2(lx, "Mul", z, op2(lx, "Sub", n->h, late)); /* (1 - z) late + z h */
    n->h = op2(lx, "Add", late, keep);
}

static void step_rnn(struct recurrent *n, int32_t x)
{
    int32_t sum = product(n->lx, x, n->w, n->bias_w);
    n->h = activate(n, 0, op2(n->lx, "Add", sum, product(n->lx, n->h, n->r, n->bias_r)));
}

/* One direction; *y: [steps, 1, batch, hidden]. */
static void expand_direction(struct recurrent *n, int direction, int32_t *y)
{
    struct sdx_lower *lx = n->lx;
    const int64_t bias = n->gates * n->hidden;
    const bool reverse = n->is_reverse || direction == 1;
    int32_t rows[STEPS_MAX], b = input(lx, 3) < 0 ? -1 : pick(lx, input(lx, 3), direction);
    n->act = n->acts + direction * n->count_acts;
    n->w = pick(lx, input(lx, 1), direction);
    n->r = pick(lx, input(lx, 2), direction);
    n->bias_w = b < 0 ? -1 : part(lx, b, 0, bias, 0);
    n->bias_r = b < 0 ? -1 : part(lx, b, bias, 2 * bias, 0);
    n->h = state(n, 5, direction);
    if (n->kind == LSTM) n->c = state(n, 6, direction);
    for (int64_t t = 0; t < n->steps; t++) {
        const int64_t at = reverse ? n->steps - 1 - t : t;
        int32_t x = pick(lx, input(lx, 0), at);
        if (n->kind == LSTM)
            step_lstm(n, x);
        else if (n->kind == GRU)
            step_gru(n, x);
        else
            step_rnn(n, x);
        rows[at] = op2(lx, "Unsqueeze", n->h, sdx_lower_ints(lx, 2, (const int64_t[]){0, 1}));
    }
    *y = sdx_lower_op(lx, "Concat", (int)n->steps, rows);
    sdx_lower_attr_int(lx, "axis", 0);
}

static int32_t together(struct sdx_lower *lx, int count, const int32_t *values, int64_t axis)
{
    if (count == 1) return values[0];
    int32_t y = sdx_lower_op(lx, "Concat", count, values);
    sdx_lower_attr_int(lx, "axis", axis);
    return y;
}

static bool expand_recurrent(struct sdx_lower *lx)
{
    struct recurrent n = {.lx = lx};
    int32_t y[2] = {-1, -1}, h[2] = {-1, -1}, c[2] = {-1, -1};
    int directions = 1;
    if (!read_recurrent(&n, &directions)) return false;
    for (int d = 0; d < directions; d++) {
        expand_direction(&n, d, &y[d]);
        h[d] = at_axes(lx, "Unsqueeze", n.h, 0);
        if (n.kind == LSTM) c[d] = at_axes(lx, "Unsqueeze", n.c, 0);
    }
    sdx_lower_output(lx, 0, together(lx, directions, y, 1));
    sdx_lower_output(lx, 1, together(lx, directions, h, 0));
    if (n.kind == LSTM) sdx_lower_output(lx, 2, together(lx, directions, c, 0));
    return true;
}

static const struct {
    const char *op;
    bool (*expand)(struct sdx_lower *lx);
} table[] = {
    {"NegativeLogLikelihoodLoss", expand_nll},
    {"SoftmaxCrossEntropyLoss", expand_cross_entropy},
    {"InstanceNormalization", expand_norm},
    {"GroupNormalization", expand_norm},
    {"RNN", expand_recurrent},
    {"GRU", expand_recurrent},
    {"LSTM", expand_recurrent},
};

bool sdx_gradient_expand(struct sdx_lower *lx, int32_t node)
{
    struct sdx_lower own = *lx;
    own.node = node;
    for (int i = 0; i < SDX_COUNT_OF(table); i++) {
        const struct sdx_ir_node *from = &lx->graph->nodes[node];
        if (from->domain.len > 0 || !sdx_str_is(from->op_type, table[i].op)) continue;
        const bool done = table[i].expand(&own);
        lx->status = own.status;
        if (done && own.status == SDX_OK) lx->graph->nodes[node].is_dead = true;
        return done;
    }
    return false;
}
