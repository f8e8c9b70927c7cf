/* SPDX-License-Identifier: Apache-2.0
 * Gradients of what is linear in its operands without being a plain product: Einsum, Pad, Resize,
 * Trilu, CumSum, RotaryEmbedding; and of Attention, whose probabilities a copy of the node tells.
 */
#include "ops/gradient.h"

#include <math.h>
#include <stdio.h>

#include "ops/einsum.h"

#define OP1 sdx_gradient_op1
#define OP2 sdx_gradient_op2
#define OP3 sdx_gradient_op3

static int32_t ints(struct sdx_gradient *d, int64_t v)
{
    return sdx_lower_ints(d->lx, 1, &v);
}

static int32_t filled_like(struct sdx_gradient *d, int32_t like, double v)
{
    return OP2(d, "Expand", sdx_gradient_scalar(d, like, v), OP1(d, "Shape", like));
}

/* ---- Einsum ---- */

/* Of operand i: g and the other operands along its labels; ones where only it has a label. */
static void rule_einsum(struct sdx_gradient *d)
{
    char back[SDX_EINSUM_LONGEST + 128];
    struct sdx_einsum e;
    if (!sdx_einsum_read(sdx_gradient_node(d), &e)) {
        sdx_gradient_refuse(d, "an ellipsis or a diagonal");
        return;
    }
    for (int i = 0; i < e.count; i++) {
        if (!sdx_gradient_wants(d, i)) continue;
        int32_t in[SDX_EINSUM_TERMS + 2] = {sdx_gradient_of(d, 0)};
        int count = 1,
            at = snprintf(back, sizeof back, "%.*s", (int)e.term[e.count].len, e.term[e.count].ptr);
        bool alone = false;
        for (size_t k = 0; k < e.term[i].len; k++) {
            bool found = sdx_einsum_holds(e.term[e.count], e.term[i].ptr[k]);
            for (int t = 0; t < e.count; t++)
                found |= t != i && sdx_einsum_holds(e.term[t], e.term[i].ptr[k]);
            alone |= !found;
        }
        for (int t = 0; t < e.count; t++) {
            if (t == i && !alone) continue;
            in[count++] = t == i ? filled_like(d, sdx_gradient_in(d, i), 1) : sdx_gradient_in(d, t);
            at += snprintf(back + at, sizeof back - (size_t)at, ",%.*s", (int)e.term[t].len,
                           e.term[t].ptr);
        }
        snprintf(back + at, sizeof back - (size_t)at, "->%.*s", (int)e.term[i].len, e.term[i].ptr);
        char *lasting = sdx_arena_strndup(d->lx->ir->arena, back, strlen(back));
        int32_t part = sdx_lower_op(d->lx, "Einsum", count, in);
        if (lasting) sdx_lower_attr_str(d->lx, "equation", lasting);
        sdx_gradient_give(d, i, part);
    }
}

/* ---- Pad ---- */

/* Run on the numbers of the elements, from 1 on: 0 is the constant. */
static void rule_pad(struct sdx_gradient *d)
{
    struct sdx_lower *lx = d->lx;
    const struct sdx_ir_node *node = sdx_gradient_node(d);
    int32_t x = sdx_gradient_in(d, 0), g = sdx_gradient_of(d, 0), flat = ints(d, -1);
    if (node->opset < 11) {
        sdx_gradient_refuse(d, "pads as an attribute");
        return;
    }
    int32_t one = sdx_lower_scalar(lx, SDX_I64, 1), size = OP1(d, "Size", x);
    int32_t numbers = OP3(d, "Range", one, OP2(d, "Add", size, one), one);
    numbers = sdx_gradient_reshape_like(d, numbers, x);
    int32_t from = sdx_gradient_copy_node(d, d->node, numbers, 1);
    if (from < 0) return;
    struct sdx_ir_node *copy = &lx->graph->nodes[lx->graph->count_nodes - 1];
    if (copy->count_inputs > 2) copy->inputs[2] = -1;
    int32_t room = OP2(d, "Reshape", OP2(d, "Add", size, one), flat);
    int32_t zeros = OP2(d, "Expand", sdx_gradient_scalar(d, x, 0), room);
    int32_t sum =
        OP3(d, "ScatterElements", zeros, OP2(d, "Reshape", from, flat), OP2(d, "Reshape", g, flat));
    sdx_lower_attr_int(lx, "axis", 0);
    sdx_lower_attr_str(lx, "reduction", "add");
    int32_t rest = OP3(d, "Slice", sum, ints(d, 1), room);
    sdx_gradient_give(d, 0, sdx_gradient_reshape_like(d, rest, x));
    if (sdx_gradient_wants(d, 2))
        sdx_gradient_give(d, 2,
                          sdx_gradient_reshape_like(d, OP3(d, "Slice", sum, ints(d, 0), ints(d, 1)),
                                                    sdx_gradient_in(d, 2)));
}

/* ---- Resize ---- */

/* The matrix of one axis: what Resize makes of the unit matrix. */
static int32_t axis_matrix(struct sdx_gradient *d, int64_t from, int64_t to, bool by_scale,
                           float scale)
{
    const int64_t square[] = {from, from}, sizes[] = {to, from};
    int32_t x = sdx_gradient_in(d, 0);
    int32_t unit =
        OP1(d, "EyeLike",
            OP2(d, "Expand", sdx_gradient_scalar(d, x, 0), sdx_lower_ints(d->lx, 2, square)));
    int32_t in[4] = {unit, -1, -1, -1};
    if (by_scale) {
        int32_t list[] = {
            OP2(d, "Reshape", sdx_lower_scalar(d->lx, SDX_F32, (double)scale), ints(d, 1)),
            OP2(d, "Reshape", sdx_lower_scalar(d->lx, SDX_F32, 1), ints(d, 1))};
        in[2] = OP2(d, "Concat", list[0], list[1]);
        sdx_lower_attr_int(d->lx, "axis", 0);
    } else {
        in[3] = sdx_lower_ints(d->lx, 2, sizes);
    }
    int32_t y = sdx_lower_op(d->lx, "Resize", by_scale ? 3 : 4, in);
    static const char *const kept[] = {"coordinate_transformation_mode", "mode", "nearest_mode"};
    const struct sdx_ir_node *node = sdx_gradient_node(d);
    for (int i = 0; i < SDX_COUNT_OF(kept); i++) {
        const struct sdx_ir_attr *attr = sdx_ir_attr(node, kept[i]);
        const char *text =
            attr ? sdx_arena_strndup(d->lx->ir->arena, attr->s.ptr, attr->s.len) : NULL;
        if (text) sdx_lower_attr_str(d->lx, kept[i], text);
    }
    sdx_lower_attr_int(d->lx, "antialias", sdx_ir_attr_int(node, "antialias", 0));
    sdx_lower_attr_int(d->lx, "exclude_outside", sdx_ir_attr_int(node, "exclude_outside", 0));
    sdx_lower_attr_float(d->lx, "cubic_coeff_a", sdx_ir_attr_float(node, "cubic_coeff_a", -0.75f));
    return y;
}

/* Every axis is resized for itself: the gradient goes back through the matrix of each. */
static void rule_resize(struct sdx_gradient *d)
{
    const struct sdx_ir_node *node = sdx_gradient_node(d);
    const struct sdx_type x = *sdx_gradient_type(d, sdx_gradient_in(d, 0));
    const struct sdx_type y = *sdx_gradient_type(d, sdx_gradient_out(d, 0));
    const int32_t graph = (int32_t)(d->lx->graph - d->lx->ir->graphs), list = sdx_gradient_in(d, 2);
    const struct sdx_tensor *scales = list < 0 ? NULL : sdx_ir_constant(d->lx->ir, graph, list);
    struct sdx_str policy = sdx_ir_attr_str(node, "keep_aspect_ratio_policy", "stretch");
    int64_t count_axes = 0;
    const int64_t *axes = sdx_ir_attr_ints(node, "axes", &count_axes);
    bool known = x.has_shape && y.has_shape && x.rank == y.rank;
    for (int i = 0; known && i < x.rank; i++)
        known = x.dims[i] > 0 && y.dims[i] > 0;
    const bool by_scale = scales && scales->count > 0;
    known = known && (by_scale || sdx_gradient_in(d, 3) >= 0) &&
            (!by_scale || scales->count == (axes ? count_axes : x.rank));
    if (!known || node->opset < 11 || !sdx_str_is(policy, "stretch") ||
        sdx_str_is(sdx_ir_attr_str(node, "coordinate_transformation_mode", ""),
                   "tf_crop_and_resize")) {
        sdx_gradient_refuse(d, "lengths that only the run tells, a crop or a kept ratio");
        return;
    }
    int32_t g = sdx_gradient_of(d, 0);
    for (int i = 0; i < x.rank; i++) {
        int64_t at = axes ? -1 : i, order[SDX_RANK_MAX];
        for (int64_t k = 0; axes && k < count_axes; k++)
            if ((axes[k] < 0 ? axes[k] + x.rank : axes[k]) == i) at = k;
        const float scale = by_scale && at >= 0 ? ((const float *)scales->data)[at] : 1;
        if (at < 0 || (x.dims[i] == y.dims[i] && (!by_scale || scale == 1))) continue;
        for (int k = 0; k < x.rank; k++)
            order[k] = k == i ? x.rank - 1 : k == x.rank - 1 ? i : k;
        g = sdx_gradient_transpose(d, g, x.rank, order);
        g = OP2(d, "MatMul", g, axis_matrix(d, x.dims[i], y.dims[i], by_scale, scale));
        g = sdx_gradient_transpose(d, g, x.rank, order);
    }
    sdx_gradient_give(d, 0, g);
}

/* ---- Trilu, CumSum, RotaryEmbedding: the node again, on the gradient ---- */

static int32_t again(struct sdx_gradient *d)
{
    return sdx_gradient_copy_node(d, d->node, sdx_gradient_of(d, 0), 1);
}

static void rule_trilu(struct sdx_gradient *d)
{
    sdx_gradient_give(d, 0, again(d));
}

static void rule_cumsum(struct sdx_gradient *d)
{
    const struct sdx_ir_node *node = sdx_gradient_node(d);
    const bool exclusive = sdx_ir_attr_int(node, "exclusive", 0) != 0;
    const bool reverse = sdx_ir_attr_int(node, "reverse", 0) != 0;
    int32_t part = OP2(d, "CumSum", sdx_gradient_of(d, 0), sdx_gradient_in(d, 1));
    sdx_lower_attr_int(d->lx, "exclusive", exclusive);
    sdx_lower_attr_int(d->lx, "reverse", !reverse);
    sdx_gradient_give(d, 0, part);
}

/* Turned back by the same angles. */
static void rule_rotary(struct sdx_gradient *d)
{
    if (sdx_gradient_wants(d, 1) || sdx_gradient_wants(d, 2)) {
        sdx_gradient_refuse(d, "angles that depend on xs");
        return;
    }
    int32_t back = OP1(d, "Neg", sdx_gradient_in(d, 2)), part = again(d);
    if (part < 0) return;
    d->lx->graph->nodes[d->lx->graph->count_nodes - 1].inputs[2] = back;
    sdx_gradient_give(d, 0, part);
}

/* ---- Attention ---- */

struct attention {
    struct sdx_gradient *d;
    int64_t batch, heads, heads_kv, size, size_v; /* batch: 0, "as it is" */
    bool is_flat;
};

/* [batch, length, heads * size] or [batch, heads, length, size] as [batch, heads of keys, group,
 * length, size]. */
static int32_t grouped(const struct attention *a, int32_t value, int64_t heads, int64_t size)
{
    static const int64_t order[] = {0, 2, 1, 3};
    struct sdx_gradient *d = a->d;
    if (a->is_flat) {
        const int64_t apart[] = {0, 0, heads, size};
        value = OP2(d, "Reshape", value, sdx_lower_ints(d->lx, 4, apart));
        value = sdx_gradient_transpose(d, value, 4, order);
    }
    const int64_t dims[] = {0, a->heads_kv, heads / a->heads_kv, -1, size};
    return OP2(d, "Reshape", value, sdx_lower_ints(d->lx, 5, dims));
}

static int32_t ungrouped(const struct attention *a, int32_t value, int64_t heads, int64_t size,
                         bool flat)
{
    static const int64_t order[] = {0, 2, 1, 3}, together[] = {0, 0, -1};
    struct sdx_gradient *d = a->d;
    const int64_t dims[] = {0, heads, -1, size};
    value = OP2(d, "Reshape", value, sdx_lower_ints(d->lx, 4, dims));
    if (!flat) return value;
    value = sdx_gradient_transpose(d, value, 4, order);
    return OP2(d, "Reshape", value, sdx_lower_ints(d->lx, 3, together));
}

static int32_t swapped(struct sdx_gradient *d, int32_t value)
{
    static const int64_t order[] = {0, 1, 2, 4, 3};
    return sdx_gradient_transpose(d, value, 5, order);
}

/* [batch, heads, ...] as [batch, heads of keys, group, ...]. */
static int32_t split_heads(const struct attention *a, int32_t value)
{
    struct sdx_gradient *d = a->d;
    const int64_t heads[] = {0, a->heads_kv, a->heads / a->heads_kv}, rest[] = {2, 3};
    int32_t list = OP2(d, "Gather", OP1(d, "Shape", value), sdx_lower_ints(d->lx, 2, rest));
    list = OP2(d, "Concat", sdx_lower_ints(d->lx, 3, heads), list);
    sdx_lower_attr_int(d->lx, "axis", 0);
    return OP2(d, "Reshape", value, list);
}

/* The last output of a copy of the node that gives keys, values and `mode` of the products. */
static int32_t copy_with(struct sdx_gradient *d, int64_t mode, int32_t *keys, int32_t *values)
{
    struct sdx_lower *lx = d->lx;
    int32_t p = sdx_gradient_copy_node(d, d->node, sdx_gradient_in(d, 0), 4);
    if (p < 0) return -1;
    struct sdx_ir_node *copy = &lx->graph->nodes[lx->graph->count_nodes - 1];
    struct sdx_ir_attr *attrs =
        sdx_arena_array(lx->ir->arena, (size_t)copy->count_attrs + 1, sizeof *attrs);
    if (!attrs) {
        lx->status = SDX_FAIL_MEMORY(lx->cx);
        return -1;
    }
    *keys = copy->outputs[1];
    *values = copy->outputs[2];
    int32_t count = 0;
    for (int32_t i = 0; i < copy->count_attrs; i++)
        if (!sdx_str_is(copy->attrs[i].name, "qk_matmul_output_mode"))
            attrs[count++] = copy->attrs[i];
    attrs[count++] = (struct sdx_ir_attr){
        .name = SDX_STR("qk_matmul_output_mode"), .type = SDX_ATTR_INT, .i = mode};
    copy->attrs = attrs;
    copy->count_attrs = count;
    return p;
}

static bool read_attention(struct attention *a)
{
    struct sdx_gradient *d = a->d;
    const struct sdx_ir_node *node = sdx_gradient_node(d);
    const struct sdx_type *q = sdx_gradient_type(d, sdx_gradient_in(d, 0));
    const struct sdx_type *k = sdx_gradient_type(d, sdx_gradient_in(d, 1));
    const struct sdx_type *v = sdx_gradient_type(d, sdx_gradient_in(d, 2));
    if (!q->has_shape || !k->has_shape || !v->has_shape || q->rank < 3 || q->rank != k->rank ||
        q->rank != v->rank)
        return false;
    const int last = q->rank - 1;
    a->is_flat = q->rank == 3;
    a->heads = a->is_flat ? sdx_ir_attr_int(node, "q_num_heads", 0) : q->dims[1];
    a->heads_kv = a->is_flat ? sdx_ir_attr_int(node, "kv_num_heads", 0) : k->dims[1];
    if (a->heads < 1 || a->heads_kv < 1 || a->heads % a->heads_kv != 0) return false;
    a->size = a->is_flat ? q->dims[last] / a->heads : q->dims[last];
    a->size_v = a->is_flat ? v->dims[last] / a->heads_kv : v->dims[last];
    return a->size > 0 && a->size_v > 0;
}

/* The gradient of keys or values so far: of the past, then of the new ones. */
static void give_keys(const struct attention *a, int now, int past, int32_t g, int64_t size)
{
    struct sdx_gradient *d = a->d;
    int32_t sum = sdx_gradient_sum(d, g, 1, (const int64_t[]){2}, true), before = ints(d, 0);
    const int32_t old = sdx_gradient_in(d, past);
    sum = ungrouped(a, sum, a->heads_kv, size, false);
    if (old >= 0) before = OP2(d, "Gather", OP1(d, "Shape", old), ints(d, 2));
    int32_t end = OP2(d, "Gather", OP1(d, "Shape", sum), ints(d, 2));
    int32_t in[4] = {sum, ints(d, 0), before, ints(d, 2)};
    if (old >= 0 && sdx_gradient_wants(d, past))
        sdx_gradient_give(d, past, sdx_lower_op(d->lx, "Slice", 4, in));
    in[1] = before;
    in[2] = end;
    int32_t fresh = old >= 0 ? sdx_lower_op(d->lx, "Slice", 4, in) : sum;
    sdx_gradient_give(d, now, a->is_flat ? ungrouped(a, fresh, a->heads_kv, size, true) : fresh);
}

/* With S = s q k^T, P = softmax(S + mask), y = P v: dv = P^T g, dS = P (g v^T - sum(P g v^T)). */
static void rule_attention(struct sdx_gradient *d)
{
    struct attention a = {.d = d};
    const struct sdx_ir_node *node = sdx_gradient_node(d);
    const double softcap = (double)sdx_ir_attr_float(node, "softcap", 0);
    const double scale = (double)sdx_ir_attr_float(node, "scale", 0);
    const int32_t x = sdx_gradient_in(d, 0), last = ints(d, -1);
    int32_t keys = -1, values = -1;
    bool others = sdx_gradient_wants(d, 3);
    for (int k = 1; k < 4; k++)
        others |= sdx_gradient_of(d, k) >= 0;
    if (others || !read_attention(&a)) {
        sdx_gradient_refuse(d, "lengths that only the run tells, its caches or a mask from xs");
        return;
    }
    int32_t p = split_heads(&a, copy_with(d, 3, &keys, &values));
    int32_t two = ints(d, 2), g = grouped(&a, sdx_gradient_of(d, 0), a.heads, a.size_v);
    int32_t k5 = OP2(d, "Unsqueeze", keys, two), v5 = OP2(d, "Unsqueeze", values, two);
    int32_t along = OP2(d, "MatMul", g, swapped(d, v5));
    int32_t common = OP2(d, "ReduceSum", OP2(d, "Mul", along, p), last);
    int32_t inner = OP2(d, "Mul", p, OP2(d, "Sub", along, common));
    if (softcap != 0) { /* of tanh */
        int32_t capped = split_heads(&a, copy_with(d, 1, &keys, &values));
        int32_t part = OP2(d, "Div", capped, sdx_gradient_scalar(d, x, softcap));
        part = OP2(d, "Sub", sdx_gradient_scalar(d, x, 1), OP2(d, "Mul", part, part));
        inner = OP2(d, "Mul", inner, part);
    }
    int32_t factor = sdx_gradient_scalar(d, x, scale != 0 ? scale : 1 / sqrt((double)a.size));
    inner = OP2(d, "Mul", inner, factor);
    int32_t q = grouped(&a, x, a.heads, a.size);
    sdx_gradient_give(d, 0, ungrouped(&a, OP2(d, "MatMul", inner, k5), a.heads, a.size, a.is_flat));
    give_keys(&a, 1, 4, OP2(d, "MatMul", swapped(d, inner), q), a.size);
    give_keys(&a, 2, 5, OP2(d, "MatMul", swapped(d, p), g), a.size_v);
}

static const struct sdx_gradient_row rows[] = {
    {"Einsum", rule_einsum},       {"Pad", rule_pad},       {"Resize", rule_resize},
    {"Trilu", rule_trilu},         {"CumSum", rule_cumsum}, {"RotaryEmbedding", rule_rotary},
    {"Attention", rule_attention},
};

const struct sdx_gradient_rows sdx_gradient_linear = {rows, SDX_COUNT_OF(rows)};
