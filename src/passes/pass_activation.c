/* SPDX-License-Identifier: Apache-2.0
 * Composite activations, as exporters write them, become the operator that the standard has by now:
 * x * sigmoid(x) is Swish, x * hard_sigmoid(x) is HardSwish, and so is x * clip(x + 3, 0, 6) / 6
 * with its sixth wherever Paddle and PyTorch put it, x/2 * (1 + erf(x / sqrt 2)) is Gelu, and so is
 * its tanh form; x * tanh(softplus(x)) is Mish, and PyTorch's guard around softplus goes; relu(x) +
 * c * relu(-x), which Keras exports, is PRelu with the slope -c, and PRelu with one slope is
 * LeakyRelu. Results differ in the last bits. */
#include "passes/match.h"
#include "passes/passes.h"

enum {
    OPSET_SOFTPLUS = 1,
    OPSET_LEAKY_RELU = 6,
    OPSET_PRELU = 9,
    OPSET_SWISH = 24,
    OPSET_HARD_SWISH = 14,
    OPSET_MISH = 18,
    OPSET_GELU = 20
};

static const double sqrt_2 = 1.4142135623730951, sqrt_2_pi = 0.7978845608028654;

/* x of x * f(x) where f is `op`; -1: it is not one. */
static int32_t gated(const struct sdx_ir_graph *g, const struct sdx_ir_node *mul, const char *op,
                     struct sdx_ir_node **gate)
{
    for (int i = 0; i < 2; i++) {
        *gate = sdx_match_maker(g, mul->inputs[i], op);
        if (*gate && (*gate)->inputs[0] == mul->inputs[1 - i]) return mul->inputs[1 - i];
    }
    return -1;
}

/* x of x * tanh(softplus(x)) */
static int32_t mish(const struct sdx_ir_graph *g, const struct sdx_ir_node *mul)
{
    for (int i = 0; i < 2; i++) {
        const struct sdx_ir_node *tanh = sdx_match_maker(g, mul->inputs[i], "Tanh");
        const struct sdx_ir_node *inner =
            tanh ? sdx_match_maker(g, tanh->inputs[0], "Softplus") : NULL;
        if (inner && inner->inputs[0] == mul->inputs[1 - i]) return mul->inputs[1 - i];
    }
    return -1;
}

/* x of 1 + erf(x / sqrt 2) */
static int32_t erf_part(const struct sdx_ir_graph *g, int32_t value)
{
    int32_t erf = -1, x = -1;
    double one = 0, c = 0;
    if (!sdx_match_with_scalar(g, value, "Add", &erf, &one) || one != 1) return -1;
    const struct sdx_ir_node *node = sdx_match_maker(g, erf, "Erf");
    if (!node) return -1;
    if (sdx_match_with_scalar(g, node->inputs[0], "Div", &x, &c))
        return sdx_match_near(c, sqrt_2) ? x : -1;
    if (sdx_match_with_scalar(g, node->inputs[0], "Mul", &x, &c))
        return sdx_match_near(c, 1 / sqrt_2) ? x : -1;
    return -1;
}

/* x of x^3: Pow(x, 3) or x * (x * x) */
static int32_t cube(const struct sdx_ir_graph *g, int32_t value)
{
    int32_t x = -1;
    double three = 0;
    if (sdx_match_with_scalar(g, value, "Pow", &x, &three)) return three == 3 ? x : -1;
    const struct sdx_ir_node *mul = sdx_match_maker(g, value, "Mul");
    for (int i = 0; mul && i < 2; i++) {
        const struct sdx_ir_node *square = sdx_match_maker(g, mul->inputs[i], "Mul");
        x = mul->inputs[1 - i];
        if (square && square->inputs[0] == x && square->inputs[1] == x) return x;
    }
    return -1;
}

/* x of 1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3)) */
static int32_t tanh_part(const struct sdx_ir_graph *g, int32_t value)
{
    int32_t tanh = -1, sum = -1, third = -1;
    double one = 0, c = 0;
    if (!sdx_match_with_scalar(g, value, "Add", &tanh, &one) || one != 1) return -1;
    const struct sdx_ir_node *node = sdx_match_maker(g, tanh, "Tanh");
    if (!node || !sdx_match_with_scalar(g, node->inputs[0], "Mul", &sum, &c) ||
        !sdx_match_near(c, sqrt_2_pi))
        return -1;
    const struct sdx_ir_node *add = sdx_match_maker(g, sum, "Add");
    for (int i = 0; add && i < 2; i++) {
        if (!sdx_match_with_scalar(g, add->inputs[i], "Mul", &third, &c) ||
            !sdx_match_near(c, 0.044715))
            continue;
        int32_t x = add->inputs[1 - i];
        if (cube(g, third) == x) return x;
    }
    return -1;
}

/* x of a GELU whose last multiplication is `mul`: the factors x, 1/2 and the bracket in any order.
 */
static int32_t gelu(const struct sdx_ir_graph *g, const struct sdx_ir_node *mul,
                    int32_t (*bracket)(const struct sdx_ir_graph *, int32_t))
{
    int32_t rest = -1;
    double half = 0;
    for (int i = 0; i < 2; i++) {
        int32_t a = mul->inputs[i], b = mul->inputs[1 - i];
        int32_t x = bracket(g, a);
        if (x >= 0 && sdx_match_with_scalar(g, b, "Mul", &rest, &half) && half == 0.5 && rest == x)
            return x;
        if (sdx_match_with_scalar(g, a, "Mul", &rest, &half) && half == 0.5 &&
            bracket(g, rest) == b)
            return b;
        if (!sdx_match_scalar(g, a, &half) || half != 0.5) continue;
        const struct sdx_ir_node *inner = sdx_match_maker(g, b, "Mul");
        for (int k = 0; inner && k < 2; k++) {
            x = bracket(g, inner->inputs[k]);
            if (x >= 0 && x == inner->inputs[1 - k]) return x;
        }
    }
    return -1;
}

/* value = rest / 6 */
static bool is_sixth(const struct sdx_ir_graph *g, int32_t value, int32_t *rest)
{
    double c = 0;
    if (sdx_match_with_scalar(g, value, "Div", rest, &c)) return c == 6;
    return sdx_match_with_scalar(g, value, "Mul", rest, &c) && sdx_match_near(c, 1.0 / 6);
}

/* x of clip(x + 3, 0, 6) */
static int32_t ramp(const struct sdx_ir_graph *g, int32_t value)
{
    const struct sdx_ir_node *clip = sdx_match_maker(g, value, "Clip");
    int32_t x = -1;
    double three = 0, low = 1, high = 0;
    if (!clip || !sdx_match_with_scalar(g, clip->inputs[0], "Add", &x, &three) || three != 3)
        return -1;
    if (clip->opset < 11) {
        low = sdx_ir_attr_float(clip, "min", -1);
        high = sdx_ir_attr_float(clip, "max", -1);
    } else if (clip->count_inputs != 3 || !sdx_match_scalar(g, clip->inputs[1], &low) ||
               !sdx_match_scalar(g, clip->inputs[2], &high)) {
        return -1;
    }
    return low == 0 && high == 6 ? x : -1;
}

/* x of x * ramp(x) */
static int32_t ramped(const struct sdx_ir_graph *g, int32_t value)
{
    const struct sdx_ir_node *mul = sdx_match_maker(g, value, "Mul");
    for (int i = 0; mul && mul->count_inputs == 2 && i < 2; i++)
        if (mul->inputs[i] >= 0 && ramp(g, mul->inputs[1 - i]) == mul->inputs[i])
            return mul->inputs[i];
    return -1;
}

/* x of x * clip(x + 3, 0, 6) / 6, whose last operation, a Mul or a Div, makes `value`. */
static int32_t hard_swish(const struct sdx_ir_graph *g, int32_t value)
{
    int32_t rest = -1;
    if (is_sixth(g, value, &rest)) return ramped(g, rest);
    const struct sdx_ir_node *mul = sdx_match_maker(g, value, "Mul");
    for (int i = 0; mul && i < 2; i++)
        if (is_sixth(g, mul->inputs[i], &rest) && rest >= 0 && ramp(g, rest) == mul->inputs[1 - i])
            return mul->inputs[1 - i];
    return -1;
}

/* x of relu(x) + c * relu(-x), or - c *; c is a constant. */
static int32_t two_slopes(const struct sdx_ir_graph *g, const struct sdx_ir_node *sum, int32_t *c)
{
    const int32_t orders = sdx_str_is(sum->op_type, "Add") ? 2 : 1; /* - has one */
    for (int32_t i = 0; i < orders; i++) {
        const struct sdx_ir_node *above = sdx_match_maker(g, sum->inputs[i], "Relu");
        const struct sdx_ir_node *mul = sdx_match_maker(g, sum->inputs[1 - i], "Mul");
        for (int32_t k = 0; above && mul && k < 2; k++) {
            const struct sdx_ir_node *below = sdx_match_maker(g, mul->inputs[k], "Relu");
            const struct sdx_ir_node *neg =
                below ? sdx_match_maker(g, below->inputs[0], "Neg") : NULL;
            *c = mul->inputs[1 - k];
            if (neg && neg->inputs[0] == above->inputs[0] && sdx_match_constant(g, *c))
                return above->inputs[0];
        }
    }
    return -1;
}

/* The value as it is, or for `negative` the constant -c; -1: no memory. */
static int32_t slope_of(struct sdx_ir *ir, struct sdx_ir_graph *g, int32_t c, bool negative)
{
    const struct sdx_tensor *from = sdx_match_constant(g, c);
    if (!negative) return c;
    struct sdx_tensor *t = sdx_match_new_constant(ir, SDX_F32, from->rank, from->dims);
    if (!t) return -1;
    for (int64_t i = 0; i < t->count; i++)
        ((float *)t->data)[i] = -((const float *)from->data)[i];
    return sdx_match_add_constant(ir, g, SDX_STR("slope"), t);
}

static bool is_all(const struct sdx_tensor *t, float x)
{
    for (int64_t i = 0; i < t->count; i++)
        if (((const float *)t->data)[i] != x) return false;
    return true;
}

/* PRelu for `node`, whose input 1 is the slope, or LeakyRelu. */
static enum sdx_status become_prelu(struct sdx_context *cx, struct sdx_ir *ir,
                                    struct sdx_ir_graph *g, struct sdx_ir_node *node, int32_t x,
                                    int32_t slope)
{
    const struct sdx_tensor *t = sdx_match_constant(g, slope);
    const float first = *(const float *)t->data;
    if (!is_all(t, first))
        return sdx_match_become(cx, ir, node, "PRelu", OPSET_PRELU, (const int32_t[]){x, slope}, 2,
                                0);
    SDX_TRY(sdx_match_become(cx, ir, node, "LeakyRelu", OPSET_LEAKY_RELU, &x, 1, 1));
    node->attrs[node->count_attrs++] =
        (struct sdx_ir_attr){.name = SDX_STR("alpha"), .type = SDX_ATTR_FLOAT, .f = first};
    return SDX_OK;
}

/* May `c` be the slopes of x: f32 numbers that add no axes? */
static bool are_slopes(const struct sdx_ir_graph *g, int32_t x, int32_t c)
{
    const struct sdx_tensor *t = sdx_match_constant(g, c);
    const struct sdx_type *type = &g->values[x].type;
    return t && t->dtype == SDX_F32 && t->count > 0 && type->dtype == SDX_F32 && type->has_shape &&
           t->rank <= type->rank;
}

static enum sdx_status rewrite_slopes(struct sdx_context *cx, struct sdx_ir *ir,
                                      struct sdx_ir_graph *g, struct sdx_ir_node *node,
                                      bool *changed)
{
    int32_t c = node->inputs[1], x = node->inputs[0];
    if (sdx_str_is(node->op_type, "PRelu")) {
        if (!are_slopes(g, x, c) ||
            !is_all(sdx_match_constant(g, c), *(const float *)sdx_match_constant(g, c)->data))
            return SDX_OK;
    } else {
        x = two_slopes(g, node, &c);
        if (x < 0 || !are_slopes(g, x, c) || !sdx_match_same_type(g, x, node->outputs[0]))
            return SDX_OK;
        c = slope_of(ir, g, c, sdx_str_is(node->op_type, "Add"));
        if (c < 0) return SDX_FAIL_MEMORY(cx);
    }
    *changed = true;
    return become_prelu(cx, ir, g, node, x, c);
}

/* x may take the place of `node`: a float, and constants of one element add no axes. */
static bool fits(const struct sdx_ir_graph *g, const struct sdx_ir_node *node, int32_t x)
{
    if (x < 0) return false;
    const struct sdx_type *from = &g->values[x].type, *to = &g->values[node->outputs[0]].type;
    if (from->has_shape && to->has_shape && from->rank != to->rank) return false;
    return from->dtype == SDX_F32 || from->dtype == SDX_F16 || from->dtype == SDX_BF16;
}

static enum sdx_status rewrite(struct sdx_context *cx, struct sdx_ir *ir,
                               const struct sdx_ir_graph *g, struct sdx_ir_node *node,
                               bool *changed)
{
    struct sdx_ir_node *gate = NULL;
    *changed = true;
    int32_t x = hard_swish(g, node->outputs[0]);
    if (fits(g, node, x))
        return sdx_match_become(cx, ir, node, "HardSwish", OPSET_HARD_SWISH, &x, 1, 1);
    *changed = false;
    if (!sdx_str_is(node->op_type, "Mul")) return SDX_OK;
    *changed = true;
    x = gated(g, node, "Sigmoid", &gate);
    if (fits(g, node, x)) return sdx_match_become(cx, ir, node, "Swish", OPSET_SWISH, &x, 1, 1);
    x = gated(g, node, "HardSigmoid", &gate);
    if (fits(g, node, x) && sdx_match_near(sdx_ir_attr_float(gate, "alpha", 0.2f), 1.0 / 6) &&
        sdx_ir_attr_float(gate, "beta", 0.5f) == 0.5f)
        return sdx_match_become(cx, ir, node, "HardSwish", OPSET_HARD_SWISH, &x, 1, 1);
    x = mish(g, node);
    if (fits(g, node, x)) return sdx_match_become(cx, ir, node, "Mish", OPSET_MISH, &x, 1, 0);
    x = gelu(g, node, erf_part);
    if (fits(g, node, x)) return sdx_match_become(cx, ir, node, "Gelu", OPSET_GELU, &x, 1, 1);
    x = gelu(g, node, tanh_part);
    if (fits(g, node, x)) {
        SDX_TRY(sdx_match_become(cx, ir, node, "Gelu", OPSET_GELU, &x, 1, 1));
        node->attrs[node->count_attrs++] = (struct sdx_ir_attr){
            .name = SDX_STR("approximate"), .type = SDX_ATTR_STRING, .s = SDX_STR("tanh")};
        return SDX_OK;
    }
    *changed = false;
    return SDX_OK;
}

/* x of Where(x > c, x, Softplus(x)), as PyTorch guards e^x: the same where e^-c is nothing beside
 * c.
 */
static int32_t guarded(const struct sdx_ir_graph *g, const struct sdx_ir_node *where)
{
    enum { LEAST = 15 };
    const struct sdx_ir_node *above = sdx_match_maker(g, where->inputs[0], "Greater");
    const struct sdx_ir_node *softplus = sdx_match_maker(g, where->inputs[2], "Softplus");
    const int32_t x = where->inputs[1];
    double c = 0;
    return above && softplus && above->inputs[0] == x && softplus->inputs[0] == x &&
                   sdx_match_scalar(g, above->inputs[1], &c) && c >= LEAST
               ? x
               : -1;
}

enum sdx_status sdx_pass_activation(struct sdx_context *cx, struct sdx_ir *ir, bool *changed)
{
    for (int32_t n_graph = 0; n_graph < ir->count_graphs; n_graph++) {
        struct sdx_ir_graph *g = &ir->graphs[n_graph];
        for (int32_t n = 0; n < g->count_nodes; n++) {
            struct sdx_ir_node *node = &g->nodes[n];
            if (node->is_dead || node->domain.len) continue;
            if (sdx_str_is(node->op_type, "Where") && node->count_inputs == 3) {
                const int32_t x = guarded(g, node);
                if (!fits(g, node, x)) continue;
                SDX_TRY(sdx_match_become(cx, ir, node, "Softplus", OPSET_SOFTPLUS, &x, 1, 0));
                *changed = true;
                continue;
            }
            if (node->count_inputs != 2 || node->inputs[0] < 0 || node->inputs[1] < 0) continue;
            bool did = false;
            if (sdx_str_is(node->op_type, "Mul") || sdx_str_is(node->op_type, "Div"))
                SDX_TRY(rewrite(cx, ir, g, node, &did));
            else if (sdx_str_is(node->op_type, "Add") || sdx_str_is(node->op_type, "Sub") ||
                     sdx_str_is(node->op_type, "PRelu"))
                SDX_TRY(rewrite_slopes(cx, ir, g, node, &did));
            *changed = *changed || did;
        }
    }
    return SDX_OK;
}
