/* SPDX-License-Identifier: Apache-2.0
 * Products of dynamically quantised operands: MatMulInteger or ConvInteger, Cast to f32, Mul by
 * both scales, Add of a bias become one product with a float result. The scales are multiplied with
 * each other first, as the graph has it. */
#include "passes/qdq.h"

/* A product behind its Cast and its Mul by the scales. */
struct scaled {
    int32_t product; /* node */
    int32_t scale_a, scale_b;
    int64_t channels; /* of the result; -1: not known */
};

static bool is_plain(const struct sdx_ir_node *node, const char *op)
{
    return !node->is_dead && !node->domain.len && sdx_str_is(node->op_type, op);
}

static bool is_scalar(const struct sdx_qdq *r, int32_t value)
{
    const struct sdx_type *type = &r->g->values[value].type;
    if (type->dtype != SDX_F32 || !type->has_shape) return false;
    return type->rank == 0 || (type->rank == 1 && type->dims[0] == 1);
}

/* A constant of one f32, or one for each of n channels that lie along the axis `from_end` of the
 * result, counted from its end. */
static bool is_row(const struct sdx_qdq *r, int32_t value, int64_t n, int from_end)
{
    const struct sdx_tensor *t = sdx_match_constant(r->g, value);
    if (!t || t->dtype != SDX_F32 || !t->data) return false;
    if (t->count == 1) return t->rank <= 1;
    return t->count == n && t->rank >= from_end && t->dims[t->rank - from_end] == n;
}

/* How far from the end of the result's shape the channels stand, and how many they are. */
static bool channels_of(const struct sdx_qdq *r, const struct sdx_ir_node *product, int *from_end,
                        int64_t *n)
{
    const bool is_conv = is_plain(product, "ConvInteger");
    if (product->count_inputs < 2 || (!is_conv && !is_plain(product, "MatMulInteger")))
        return false;
    const struct sdx_type *w = &r->g->values[product->inputs[1]].type;
    if (!w->has_shape || w->rank < 2 || (is_conv && w->rank < 3)) return false;
    *from_end = is_conv ? w->rank - 1 : 1;
    *n = w->dims[is_conv ? 0 : w->rank - 1];
    return *n > 0;
}

/* `value` is product * scale_a * scale_b in floats, and nobody else reads what is on the way. */
static bool match_scaled(const struct sdx_qdq *r, int32_t value, struct scaled *s)
{
    const struct sdx_ir_node *mul = sdx_qdq_maker(r, value, "Mul");
    int from_end = 0;
    if (!mul || mul->domain.len || mul->count_inputs != 2) return false;
    for (int i = 0; i < 2; i++) {
        const int32_t sum = mul->inputs[i];
        const struct sdx_ir_node *cast = sdx_qdq_maker(r, sum, "Cast");
        const struct sdx_ir_node *scales = sdx_qdq_maker(r, mul->inputs[1 - i], "Mul");
        if (!cast || !scales || r->uses[sum] != 1 || r->uses[cast->inputs[0]] != 1 ||
            sdx_ir_attr_int(cast, "to", 0) != SDX_F32)
            continue;
        s->product = r->g->values[cast->inputs[0]].producer;
        if (s->product < 0 || r->g->values[cast->inputs[0]].constant ||
            !channels_of(r, &r->g->nodes[s->product], &from_end, &s->channels))
            continue;
        for (int k = 0; k < 2; k++) {
            s->scale_a = scales->inputs[k];
            s->scale_b = scales->inputs[1 - k];
            if (s->scale_a < 0 || s->scale_b < 0 || !is_scalar(r, s->scale_a)) continue;
            if (is_scalar(r, s->scale_b) || is_row(r, s->scale_b, s->channels, from_end))
                return true;
        }
    }
    return false;
}

/* Node n becomes the product; bias -1: none. */
static enum sdx_status make_product(struct sdx_qdq *r, int32_t n, const struct scaled *s,
                                    int32_t bias)
{
    const struct sdx_ir_node *product = &r->g->nodes[s->product];
    const int32_t *in = product->inputs;
    int32_t zero_a = product->count_inputs > 2 ? in[2] : -1;
    int32_t zero_b = product->count_inputs > 3 ? in[3] : -1;
    if (is_plain(product, "MatMulInteger")) {
        const int32_t inputs[] = {in[0], in[1], s->scale_a, s->scale_b, zero_a, zero_b, bias};
        return sdx_qdq_become(r, n, "com.microsoft", "MatMulIntegerToFloat", 1, 7, inputs, NULL, 0);
    }
    const int32_t inputs[] = {in[0], s->scale_a, zero_a, in[1], s->scale_b, zero_b, -1, -1, bias};
    return sdx_qdq_become(r, n, "", "QLinearConv", 10, 9, inputs, product->attrs,
                          product->count_attrs);
}

/* Add of a bias to a scaled product. */
static enum sdx_status join_bias(struct sdx_qdq *r, int32_t n)
{
    const struct sdx_ir_node *add = &r->g->nodes[n];
    struct scaled s;
    int from_end = 0;
    int64_t channels = 0;
    if (!is_plain(add, "Add") || add->count_inputs != 2) return SDX_OK;
    for (int i = 0; i < 2; i++) {
        const int32_t v = add->inputs[i], bias = add->inputs[1 - i];
        if (v < 0 || bias < 0 || r->uses[v] != 1 || !match_scaled(r, v, &s)) continue;
        const struct sdx_tensor *t = sdx_match_constant(r->g, bias);
        if (!t || t->count != s.channels ||
            !channels_of(r, &r->g->nodes[s.product], &from_end, &channels) ||
            !is_row(r, bias, channels, from_end))
            continue;
        return make_product(r, n, &s, bias);
    }
    return SDX_OK;
}

enum sdx_status sdx_qdq_dynamic(struct sdx_qdq *r)
{
    struct scaled s;
    for (int32_t n = 0; n < r->g->count_nodes; n++)
        SDX_TRY(join_bias(r, n));
    for (int32_t n = 0; n < r->g->count_nodes; n++)
        if (is_plain(&r->g->nodes[n], "Mul") && match_scaled(r, r->g->nodes[n].outputs[0], &s))
            SDX_TRY(make_product(r, n, &s, -1));
    return SDX_OK;
}
