/* SPDX-License-Identifier: Apache-2.0
 * Gradients of products (MatMul, Gemm), of norms over rows, of sums and their like over axes, and
 * of operators that only move values. The latter are run on the numbers of the elements: where a
 * number ends, there the gradient comes from. */
#include "ops/gradient.h"

#define OP1 sdx_gradient_op1
#define OP2 sdx_gradient_op2
#define OP3 sdx_gradient_op3

/* ---- products ---- */

static int32_t swap_last(struct sdx_gradient *d, int32_t value, int rank)
{
    int64_t order[SDX_RANK_MAX];
    for (int i = 0; i < rank; i++)
        order[i] = i < rank - 2 ? i : 2 * rank - 3 - i;
    return sdx_gradient_transpose(d, value, rank, order);
}

/* Vectors become matrices of one row or column while it lasts. */
static void rule_matmul(struct sdx_gradient *d)
{
    int32_t a = sdx_gradient_in(d, 0), b = sdx_gradient_in(d, 1), g = sdx_gradient_of(d, 0);
    struct sdx_type ta = *sdx_gradient_type(d, a), tb = *sdx_gradient_type(d, b);
    struct sdx_type ty = *sdx_gradient_type(d, sdx_gradient_out(d, 0));
    if (!ta.has_shape || !tb.has_shape || !ty.has_shape || ta.rank < 1 || tb.rank < 1) {
        sdx_gradient_refuse(d, "operands of unknown rank");
        return;
    }
    int64_t dims_a[SDX_RANK_MAX + 1], dims_b[SDX_RANK_MAX + 1], dims_g[SDX_RANK_MAX + 2];
    int32_t matrix_a = a, matrix_b = b;
    bool is_row = ta.rank == 1, is_column = tb.rank == 1;
    if (is_column) {
        matrix_b = OP2(d, "Unsqueeze", b, sdx_lower_ints(d->lx, 1, (int64_t[]){1}));
        g = OP2(d, "Unsqueeze", g, sdx_lower_ints(d->lx, 1, (int64_t[]){-1}));
    }
    if (is_row) {
        matrix_a = OP2(d, "Unsqueeze", a, sdx_lower_ints(d->lx, 1, (int64_t[]){0}));
        g = OP2(d, "Unsqueeze", g, sdx_lower_ints(d->lx, 1, (int64_t[]){-2}));
    }
    int rank_a = ta.rank + is_row, rank_b = tb.rank + is_column;
    int rank = ty.rank + is_row + is_column, batch = rank - 2;
    memcpy(dims_g, ty.dims, (size_t)batch * sizeof *dims_g);
    memcpy(dims_a, dims_g, (size_t)batch * sizeof *dims_a);
    memcpy(dims_b, dims_g, (size_t)batch * sizeof *dims_b);
    if (sdx_gradient_wants(d, 0)) {
        int32_t part = OP2(d, "MatMul", g, swap_last(d, matrix_b, rank_b));
        dims_a[batch] = is_row ? 1 : ta.dims[ta.rank - 2];
        dims_a[batch + 1] = ta.dims[ta.rank - 1];
        struct sdx_type type = {.has_shape = true, .rank = rank, .dims = dims_a};
        if (!is_row) part = sdx_gradient_unbroadcast(d, part, &type, a);
        if (is_row) { /* all but the last axis */
            int64_t axes[SDX_RANK_MAX + 1];
            for (int i = 0; i <= batch; i++)
                axes[i] = i;
            part = sdx_gradient_sum(d, part, batch + 1, axes, false);
        }
        sdx_gradient_give(d, 0, part);
    }
    if (sdx_gradient_wants(d, 1)) {
        int32_t part = OP2(d, "MatMul", swap_last(d, matrix_a, rank_a), g);
        dims_b[batch] = tb.dims[is_column ? 0 : tb.rank - 2];
        dims_b[batch + 1] = is_column ? 1 : tb.dims[tb.rank - 1];
        struct sdx_type type = {.has_shape = true, .rank = rank, .dims = dims_b};
        if (is_column) {
            int64_t axes[SDX_RANK_MAX + 1];
            for (int i = 0; i < batch; i++)
                axes[i] = i;
            axes[batch] = batch + 1;
            part = sdx_gradient_sum(d, part, batch + 1, axes, false);
        } else {
            part = sdx_gradient_unbroadcast(d, part, &type, b);
        }
        sdx_gradient_give(d, 1, part);
    }
}

static int32_t gemm(struct sdx_gradient *d, int32_t a, int32_t b, bool turn_a, bool turn_b)
{
    float alpha = sdx_ir_attr_float(sdx_gradient_node(d), "alpha", 1);
    int32_t y = OP2(d, "Gemm", a, b);
    sdx_lower_attr_int(d->lx, "transA", turn_a);
    sdx_lower_attr_int(d->lx, "transB", turn_b);
    sdx_lower_attr_float(d->lx, "alpha", alpha);
    return y;
}

static void rule_gemm(struct sdx_gradient *d)
{
    const struct sdx_ir_node *node = sdx_gradient_node(d);
    bool turn_a = sdx_ir_attr_int(node, "transA", 0), turn_b = sdx_ir_attr_int(node, "transB", 0);
    float beta = sdx_ir_attr_float(node, "beta", 1);
    int32_t a = sdx_gradient_in(d, 0), b = sdx_gradient_in(d, 1), g = sdx_gradient_of(d, 0);
    if (sdx_gradient_wants(d, 0))
        sdx_gradient_give(d, 0,
                          turn_a ? gemm(d, b, g, turn_b, true) : gemm(d, g, b, false, !turn_b));
    if (sdx_gradient_wants(d, 1))
        sdx_gradient_give(d, 1,
                          turn_b ? gemm(d, g, a, true, turn_a) : gemm(d, a, g, !turn_a, false));
    if (sdx_gradient_wants(d, 2)) {
        int32_t part = OP2(d, "Mul", g, sdx_gradient_scalar(d, sdx_gradient_out(d, 0), beta));
        sdx_gradient_give_broadcast(d, 2, part);
    }
}

/* ---- over axes ---- */

/* The axes, from attribute or constant input; false: known only at run time. count 0: all. */
static bool axes_of(struct sdx_gradient *d, int64_t *axes, int *count, int rank)
{
    const struct sdx_ir_node *node = sdx_gradient_node(d);
    const struct sdx_ir_graph *graph = d->lx->graph;
    int64_t length = 0;
    const int64_t *given = sdx_ir_attr_ints(node, "axes", &length);
    int32_t input = sdx_gradient_in(d, 1);
    if (input >= 0) {
        const struct sdx_tensor *t =
            sdx_ir_constant(d->lx->ir, (int32_t)(graph - d->lx->ir->graphs), input);
        if (!t || t->dtype != SDX_I64) return false;
        given = t->data;
        length = t->count;
    }
    if (length > rank) return false;
    for (int64_t i = 0; i < length; i++)
        axes[i] = given[i] < 0 ? given[i] + rank : given[i];
    *count = (int)length;
    return true;
}

/* Output and gradient with the axes kept as ones. false: refused. */
static bool keep_axes(struct sdx_gradient *d, int32_t *y, int32_t *g, bool *is_noop)
{
    const struct sdx_ir_node *node = sdx_gradient_node(d);
    const struct sdx_type *type = sdx_gradient_type(d, sdx_gradient_in(d, 0));
    int64_t axes[SDX_RANK_MAX];
    int count = 0;
    if (!type->has_shape || !axes_of(d, axes, &count, type->rank)) {
        sdx_gradient_refuse(d, "axes or a rank that only the run tells");
        return false;
    }
    *y = sdx_gradient_out(d, 0);
    *g = sdx_gradient_of(d, 0);
    *is_noop = count == 0 && sdx_ir_attr_int(node, "noop_with_empty_axes", 0) != 0;
    if (count == 0 && !*is_noop)
        while (count < type->rank) {
            axes[count] = count;
            count++;
        }
    if (count == 0 || sdx_ir_attr_int(node, "keepdims", 1) != 0) return true;
    int32_t list = sdx_lower_ints(d->lx, count, axes);
    *y = OP2(d, "Unsqueeze", *y, list);
    *g = OP2(d, "Unsqueeze", *g, list);
    return true;
}

static int32_t expand_like(struct sdx_gradient *d, int32_t value, int32_t like)
{
    return OP2(d, "Expand", value, OP1(d, "Shape", like));
}

static void rule_reduce(struct sdx_gradient *d)
{
    struct sdx_str op = sdx_gradient_node(d)->op_type;
    int32_t x = sdx_gradient_in(d, 0), y, g, part = -1;
    bool is_noop = false;
    if (!keep_axes(d, &y, &g, &is_noop)) return;
    if (is_noop && !sdx_str_is(op, "ReduceSum") && !sdx_str_is(op, "ReduceMean")) {
        sdx_gradient_refuse(d, "noop_with_empty_axes");
        return;
    }
    if (sdx_str_is(op, "ReduceSum")) {
        part = expand_like(d, g, x);
    } else if (sdx_str_is(op, "ReduceMean")) {
        int32_t all = OP2(d, "CastLike", OP1(d, "Size", x), x);
        int32_t left = OP2(d, "CastLike", OP1(d, "Size", y), x);
        part = expand_like(d, OP2(d, "Mul", g, OP2(d, "Div", left, all)), x);
    } else if (sdx_str_is(op, "ReduceSumSquare")) {
        part = OP2(d, "Mul", OP2(d, "Mul", g, sdx_gradient_scalar(d, x, 2)), x);
    } else if (sdx_str_is(op, "ReduceL1")) {
        part = OP2(d, "Mul", g, OP1(d, "Sign", x));
    } else if (sdx_str_is(op, "ReduceL2")) {
        part = OP2(d, "Div", OP2(d, "Mul", g, x), y);
    } else if (sdx_str_is(op, "ReduceLogSumExp")) {
        part = OP2(d, "Mul", g, OP1(d, "Exp", OP2(d, "Sub", x, y)));
    } else if (sdx_str_is(op, "ReduceLogSum")) {
        part = expand_like(d, OP2(d, "Div", g, OP1(d, "Exp", y)), x);
    } else { /* ReduceMax, ReduceMin: equal ones share */
        int32_t one = sdx_gradient_scalar(d, x, 1), zero = sdx_gradient_scalar(d, x, 0);
        int32_t hits = OP3(d, "Where", OP2(d, "Equal", x, y), one, zero);
        const struct sdx_type *type = sdx_gradient_type(d, x);
        int64_t axes[SDX_RANK_MAX];
        int count = 0;
        if (!axes_of(d, axes, &count, type->rank)) return;
        int32_t total = sdx_gradient_sum(d, hits, count, axes, true);
        part = OP2(d, "Mul", hits, OP2(d, "Div", g, total));
    }
    sdx_gradient_give(d, 0, part);
}

/* ---- LayerNormalization, RMSNormalization ---- */

/* With n = (x - mean) / deviation (mean 0 for RMS) and s = g scale: dx = (s - mean(s) - n mean(s
 * n)) / deviation. */
static void rule_layer_norm(struct sdx_gradient *d)
{
    const struct sdx_ir_node *node = sdx_gradient_node(d);
    int32_t x = sdx_gradient_in(d, 0), scale = sdx_gradient_in(d, 1), g = sdx_gradient_of(d, 0);
    const struct sdx_type *type = sdx_gradient_type(d, x);
    bool is_rms = sdx_str_is(node->op_type, "RMSNormalization");
    double epsilon = sdx_ir_attr_float(node, "epsilon", 1e-5f);
    int64_t axis = sdx_ir_attr_int(node, "axis", -1), list[SDX_RANK_MAX];
    if (!type->has_shape || g < 0 || sdx_gradient_of(d, 1) >= 0 || sdx_gradient_of(d, 2) >= 0) {
        sdx_gradient_refuse(d, "an input of unknown rank, or from its mean or deviation");
        return;
    }
    int count = 0;
    for (int64_t i = axis < 0 ? axis + type->rank : axis; i < type->rank; i++)
        list[count++] = i;
    int32_t axes = sdx_lower_ints(d->lx, count, list), centred = x;
    if (!is_rms) centred = OP2(d, "Sub", x, OP2(d, "ReduceMean", x, axes));
    int32_t variance = OP2(d, "ReduceMean", OP2(d, "Mul", centred, centred), axes);
    int32_t deviation = OP1(d, "Sqrt", OP2(d, "Add", variance, sdx_gradient_scalar(d, x, epsilon)));
    int32_t normal = OP2(d, "Div", centred, deviation);
    int32_t s = OP2(d, "Mul", g, OP2(d, "CastLike", scale, x));
    int32_t along = OP2(d, "ReduceMean", OP2(d, "Mul", s, normal), axes);
    int32_t part = OP2(d, "Sub", s, OP2(d, "Mul", normal, along));
    if (!is_rms) part = OP2(d, "Sub", part, OP2(d, "ReduceMean", s, axes));
    sdx_gradient_give(d, 0, OP2(d, "Div", part, deviation));
    if (sdx_gradient_wants(d, 1))
        sdx_gradient_give_broadcast(d, 1, OP2(d, "CastLike", OP2(d, "Mul", g, normal), scale));
    if (sdx_gradient_wants(d, 2))
        sdx_gradient_give_broadcast(d, 2, OP2(d, "CastLike", g, sdx_gradient_in(d, 2)));
}

/* ---- what moves values ---- */

/* y's elements are elements of x: `from` are their numbers in x, of y's shape. */
static int32_t scatter(struct sdx_gradient *d, int32_t g, int32_t from, int32_t x)
{
    int32_t flat = sdx_lower_ints(d->lx, 1, (int64_t[]){-1});
    int32_t size = OP2(d, "Reshape", OP1(d, "Size", x), flat);
    int32_t zeros = OP2(d, "Expand", sdx_gradient_scalar(d, x, 0), size);
    int32_t sum =
        OP3(d, "ScatterElements", zeros, OP2(d, "Reshape", from, flat), OP2(d, "Reshape", g, flat));
    sdx_lower_attr_int(d->lx, "axis", 0);
    sdx_lower_attr_str(d->lx, "reduction", "add");
    return sdx_gradient_reshape_like(d, sum, x);
}

static int32_t numbers_of(struct sdx_gradient *d, int32_t x)
{
    int32_t zero = sdx_lower_scalar(d->lx, SDX_I64, 0), one = sdx_lower_scalar(d->lx, SDX_I64, 1);
    return sdx_gradient_reshape_like(d, OP3(d, "Range", zero, OP1(d, "Size", x), one), x);
}

static void rule_move(struct sdx_gradient *d)
{
    int32_t x = sdx_gradient_in(d, 0);
    int32_t from = sdx_gradient_copy_node(d, d->node, numbers_of(d, x), 1);
    sdx_gradient_give(d, 0, scatter(d, sdx_gradient_of(d, 0), from, x));
}

static void rule_identity(struct sdx_gradient *d)
{
    sdx_gradient_give(d, 0, sdx_gradient_of(d, 0));
}

static void rule_cast(struct sdx_gradient *d)
{
    sdx_gradient_give(d, 0, OP2(d, "CastLike", sdx_gradient_of(d, 0), sdx_gradient_in(d, 0)));
}

static void rule_reshape(struct sdx_gradient *d)
{
    sdx_gradient_give(d, 0,
                      sdx_gradient_reshape_like(d, sdx_gradient_of(d, 0), sdx_gradient_in(d, 0)));
}

static void rule_expand(struct sdx_gradient *d)
{
    sdx_gradient_give_broadcast(d, 0, sdx_gradient_of(d, 0));
}

static void rule_transpose(struct sdx_gradient *d)
{
    const struct sdx_type *type = sdx_gradient_type(d, sdx_gradient_in(d, 0));
    int64_t count = 0, back[SDX_RANK_MAX];
    const int64_t *order = sdx_ir_attr_ints(sdx_gradient_node(d), "perm", &count);
    if (!type->has_shape || (order && count != type->rank)) {
        sdx_gradient_refuse(d, "an input of unknown rank");
        return;
    }
    for (int i = 0; i < type->rank; i++)
        back[order ? order[i] : type->rank - 1 - i] = i;
    sdx_gradient_give(d, 0, sdx_gradient_transpose(d, sdx_gradient_of(d, 0), type->rank, back));
}

/* Length of a value along an axis, as a list of one. */
static int32_t length_along(struct sdx_gradient *d, int32_t value, int64_t axis)
{
    int32_t shape = OP1(d, "Shape", value), at = sdx_lower_ints(d->lx, 1, &axis);
    return OP2(d, "Gather", shape, at);
}

static void rule_concat(struct sdx_gradient *d)
{
    const struct sdx_type *type = sdx_gradient_type(d, sdx_gradient_out(d, 0));
    int64_t axis = sdx_ir_attr_int(sdx_gradient_node(d), "axis", 1);
    if (!type->has_shape) {
        sdx_gradient_refuse(d, "inputs of unknown rank");
        return;
    }
    if (axis < 0) axis += type->rank;
    int count = sdx_gradient_node(d)->count_inputs;
    int32_t start = sdx_lower_ints(d->lx, 1, (int64_t[]){0});
    int32_t list = sdx_lower_ints(d->lx, 1, &axis);
    for (int i = 0; i < count; i++) {
        int32_t end = OP2(d, "Add", start, length_along(d, sdx_gradient_in(d, i), axis));
        if (sdx_gradient_wants(d, i)) {
            int32_t in[4] = {sdx_gradient_of(d, 0), start, end, list};
            sdx_gradient_give(d, i, sdx_lower_op(d->lx, "Slice", 4, in));
        }
        start = end;
    }
}

static void rule_split(struct sdx_gradient *d)
{
    int count = sdx_gradient_node(d)->count_outputs;
    int64_t axis = sdx_ir_attr_int(sdx_gradient_node(d), "axis", 0);
    int32_t *parts = sdx_arena_array(d->lx->ir->arena, (size_t)count, sizeof *parts);
    int32_t x = sdx_gradient_in(d, 0);
    if (!parts) {
        d->lx->status = SDX_FAIL_MEMORY(d->lx->cx);
        return;
    }
    for (int k = 0; k < count; k++) {
        parts[k] = sdx_gradient_of(d, k);
        if (parts[k] >= 0) continue;
        if (sdx_gradient_out(d, k) < 0) {
            sdx_gradient_refuse(d, "an output left out");
            return;
        }
        parts[k] =
            OP2(d, "Expand", sdx_gradient_scalar(d, x, 0), OP1(d, "Shape", sdx_gradient_out(d, k)));
    }
    int32_t all = sdx_lower_op(d->lx, "Concat", count, parts);
    sdx_lower_attr_int(d->lx, "axis", axis);
    sdx_gradient_give(d, 0, all);
}

/* MaxPool tells the numbers itself. */
static void rule_max_pool(struct sdx_gradient *d)
{
    int32_t x = sdx_gradient_in(d, 0);
    if (sdx_gradient_node(d)->opset < 8 ||
        sdx_ir_attr_int(sdx_gradient_node(d), "storage_order", 0) != 0) {
        sdx_gradient_refuse(d, "version 1 or storage_order 1");
        return;
    }
    int32_t from = sdx_gradient_copy_node(d, d->node, x, 2);
    sdx_gradient_give(d, 0, scatter(d, sdx_gradient_of(d, 0), from, x));
}

/* Without training it is the identity. */
static void rule_dropout(struct sdx_gradient *d)
{
    const struct sdx_ir_node *node = sdx_gradient_node(d);
    if (node->opset < 7 || sdx_gradient_in(d, 2) >= 0) sdx_gradient_refuse(d, "training_mode");
    rule_identity(d);
}

static const struct sdx_gradient_row rows[] = {
    {"MatMul", rule_matmul},
    {"Gemm", rule_gemm},
    {"ReduceSum", rule_reduce},
    {"ReduceMean", rule_reduce},
    {"ReduceSumSquare", rule_reduce},
    {"ReduceL1", rule_reduce},
    {"ReduceL2", rule_reduce},
    {"ReduceLogSum", rule_reduce},
    {"ReduceLogSumExp", rule_reduce},
    {"ReduceMax", rule_reduce},
    {"ReduceMin", rule_reduce},
    {"LayerNormalization", rule_layer_norm},
    {"RMSNormalization", rule_layer_norm},
    {"Identity", rule_identity},
    {"Dropout", rule_dropout},
    {"Cast", rule_cast},
    {"CastLike", rule_cast},
    {"Reshape", rule_reshape},
    {"Flatten", rule_reshape},
    {"Squeeze", rule_reshape},
    {"Unsqueeze", rule_reshape},
    {"Expand", rule_expand},
    {"Transpose", rule_transpose},
    {"Concat", rule_concat},
    {"Split", rule_split},
    {"MaxPool", rule_max_pool},
    {"Slice", rule_move},
    {"Gather", rule_move},
    {"GatherElements", rule_move},
    {"GatherND", rule_move},
    {"Tile", rule_move},
    {"DepthToSpace", rule_move},
    {"SpaceToDepth", rule_move},
    {"Compress", rule_move},
    {"ReverseSequence", rule_move},
};

const struct sdx_gradient_rows sdx_gradient_move = {rows, SDX_COUNT_OF(rows)};
