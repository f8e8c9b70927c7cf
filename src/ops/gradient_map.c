/* SPDX-License-Identifier: Apache-2.0
 * Gradients of elementwise operators, of broadcasting ones and of Softmax and its like. Where two
 * inputs of Max and Min are equal they share the gradient; the corners of Relu and Abs have 0. */
#include "ops/gradient.h"

#include <math.h>

#define OP1 sdx_gradient_op1
#define OP2 sdx_gradient_op2
#define OP3 sdx_gradient_op3

static const double two_over_root_pi = 1.12837916709551257390;

static int32_t scalar(struct sdx_gradient *d, double v)
{
    return sdx_gradient_scalar(d, sdx_gradient_out(d, 0), v);
}

static float attr(const struct sdx_gradient *d, const char *name, float fallback)
{
    return sdx_ir_attr_float(sdx_gradient_node(d), name, fallback);
}

static int32_t one_less(struct sdx_gradient *d, int32_t v)
{
    return OP2(d, "Sub", scalar(d, 1), v);
}

static int32_t square(struct sdx_gradient *d, int32_t v)
{
    return OP2(d, "Mul", v, v);
}

static int32_t where_positive(struct sdx_gradient *d, int32_t x, int32_t yes, int32_t no)
{
    return OP3(d, "Where", OP2(d, "Greater", x, scalar(d, 0)), yes, no);
}

/* ---- maps of one input: the factor dy/dx from x and y ---- */

typedef int32_t factor_fn(struct sdx_gradient *d, int32_t x, int32_t y);

#define FACTOR(name) static int32_t factor_##name(struct sdx_gradient *d, int32_t x, int32_t y)
#define UNUSED       (void)d, (void)x, (void)y

FACTOR(neg)
{
    UNUSED;
    return scalar(d, -1);
}
FACTOR(exp)
{
    UNUSED;
    return y;
}
FACTOR(log)
{
    UNUSED;
    return OP1(d, "Reciprocal", x);
}
FACTOR(sqrt)
{
    UNUSED;
    return OP2(d, "Div", scalar(d, 0.5), y);
}
FACTOR(reciprocal)
{
    UNUSED;
    return OP1(d, "Neg", square(d, y));
}
FACTOR(sigmoid)
{
    UNUSED;
    return OP2(d, "Mul", y, one_less(d, y));
}
FACTOR(tanh)
{
    UNUSED;
    return one_less(d, square(d, y));
}
FACTOR(relu)
{
    UNUSED;
    return where_positive(d, x, scalar(d, 1), scalar(d, 0));
}
FACTOR(leaky_relu)
{
    UNUSED;
    return where_positive(d, x, scalar(d, 1), scalar(d, attr(d, "alpha", 0.01f)));
}
FACTOR(thresholded_relu)
{
    UNUSED;
    int32_t passes = OP2(d, "Greater", x, scalar(d, attr(d, "alpha", 1)));
    return OP3(d, "Where", passes, scalar(d, 1), scalar(d, 0));
}
FACTOR(elu)
{
    UNUSED;
    return where_positive(d, x, scalar(d, 1), OP2(d, "Add", y, scalar(d, attr(d, "alpha", 1))));
}
FACTOR(selu)
{
    UNUSED;
    double alpha = attr(d, "alpha", 1.67326319217681884765625f);
    double gamma = attr(d, "gamma", 1.05070102214813232421875f);
    return where_positive(d, x, scalar(d, gamma), OP2(d, "Add", y, scalar(d, alpha * gamma)));
}
FACTOR(softplus)
{
    UNUSED;
    return OP1(d, "Sigmoid", x);
}
FACTOR(softsign)
{
    UNUSED;
    int32_t bottom = OP2(d, "Add", scalar(d, 1), OP1(d, "Abs", x));
    return OP1(d, "Reciprocal", square(d, bottom));
}
FACTOR(abs)
{
    UNUSED;
    return OP1(d, "Sign", x);
}
FACTOR(sin)
{
    UNUSED;
    return OP1(d, "Cos", x);
}
FACTOR(cos)
{
    UNUSED;
    return OP1(d, "Neg", OP1(d, "Sin", x));
}
FACTOR(tan)
{
    UNUSED;
    return OP2(d, "Add", scalar(d, 1), square(d, y));
}
FACTOR(asin)
{
    UNUSED;
    return OP1(d, "Reciprocal", OP1(d, "Sqrt", one_less(d, square(d, x))));
}
FACTOR(acos)
{
    return OP1(d, "Neg", factor_asin(d, x, y));
}
FACTOR(atan)
{
    UNUSED;
    return OP1(d, "Reciprocal", OP2(d, "Add", scalar(d, 1), square(d, x)));
}
FACTOR(sinh)
{
    UNUSED;
    return OP1(d, "Cosh", x);
}
FACTOR(cosh)
{
    UNUSED;
    return OP1(d, "Sinh", x);
}
FACTOR(asinh)
{
    UNUSED;
    return OP1(d, "Reciprocal", OP1(d, "Sqrt", OP2(d, "Add", square(d, x), scalar(d, 1))));
}
FACTOR(acosh)
{
    UNUSED;
    return OP1(d, "Reciprocal", OP1(d, "Sqrt", OP2(d, "Sub", square(d, x), scalar(d, 1))));
}
FACTOR(atanh)
{
    UNUSED;
    return OP1(d, "Reciprocal", one_less(d, square(d, x)));
}
FACTOR(erf)
{
    UNUSED;
    int32_t bell = OP1(d, "Exp", OP1(d, "Neg", square(d, x)));
    return OP2(d, "Mul", bell, scalar(d, two_over_root_pi));
}
FACTOR(hard_sigmoid)
{
    UNUSED;
    int32_t inside =
        OP2(d, "And", OP2(d, "Greater", y, scalar(d, 0)), OP2(d, "Less", y, scalar(d, 1)));
    return OP3(d, "Where", inside, scalar(d, attr(d, "alpha", 0.2f)), scalar(d, 0));
}
FACTOR(hard_swish)
{
    UNUSED;
    int32_t slope = OP2(d, "Add", OP2(d, "Mul", x, scalar(d, 1.0 / 3)), scalar(d, 0.5));
    slope = OP3(d, "Where", OP2(d, "Less", x, scalar(d, -3)), scalar(d, 0), slope);
    return OP3(d, "Where", OP2(d, "Greater", x, scalar(d, 3)), scalar(d, 1), slope);
}
FACTOR(swish)
{
    UNUSED;
    int32_t ax = OP2(d, "Mul", x, scalar(d, attr(d, "alpha", 1))), s = OP1(d, "Sigmoid", ax);
    return OP2(d, "Mul", s, OP2(d, "Add", scalar(d, 1), OP2(d, "Mul", ax, one_less(d, s))));
}
FACTOR(mish)
{
    UNUSED;
    int32_t t = OP1(d, "Tanh", OP1(d, "Softplus", x));
    int32_t rest = OP2(d, "Mul", OP1(d, "Sigmoid", x), one_less(d, square(d, t)));
    return OP2(d, "Add", t, OP2(d, "Mul", x, rest));
}
FACTOR(celu)
{
    UNUSED;
    double alpha = attr(d, "alpha", 1);
    int32_t low = OP1(d, "Exp", OP2(d, "Mul", x, scalar(d, 1 / alpha)));
    return where_positive(d, x, scalar(d, 1), low);
}
FACTOR(gelu)
{
    UNUSED;
    int32_t half = scalar(d, 0.5), one = scalar(d, 1);
    if (sdx_str_is(sdx_ir_attr_str(sdx_gradient_node(d), "approximate", "none"), "tanh")) {
        /* y = x (1 + t) / 2, t = tanh(u), u = c (x + 0.044715 x^3) */
        double c = two_over_root_pi * sqrt(0.5);
        int32_t xx = square(d, x);
        int32_t cubic = OP2(d, "Add", one, OP2(d, "Mul", xx, scalar(d, 0.044715)));
        int32_t slope = OP2(d, "Add", one, OP2(d, "Mul", xx, scalar(d, 3 * 0.044715)));
        int32_t t = OP1(d, "Tanh", OP2(d, "Mul", OP2(d, "Mul", x, cubic), scalar(d, c)));
        int32_t rest = OP2(d, "Mul", OP2(d, "Mul", x, slope), one_less(d, square(d, t)));
        int32_t twice = OP2(d, "Add", OP2(d, "Add", one, t), OP2(d, "Mul", rest, scalar(d, c)));
        return OP2(d, "Mul", half, twice);
    }
    int32_t part = OP1(d, "Erf", OP2(d, "Mul", x, scalar(d, sqrt(0.5))));
    int32_t bell = OP1(d, "Exp", OP2(d, "Mul", square(d, x), scalar(d, -0.5)));
    int32_t tail = OP2(d, "Mul", OP2(d, "Mul", x, bell), scalar(d, two_over_root_pi * sqrt(0.125)));
    return OP2(d, "Add", OP2(d, "Mul", half, OP2(d, "Add", one, part)), tail);
}

static const struct {
    const char *op;
    factor_fn *factor;
} maps[] = {
    {"Neg", factor_neg},
    {"Exp", factor_exp},
    {"Log", factor_log},
    {"Sqrt", factor_sqrt},
    {"Reciprocal", factor_reciprocal},
    {"Sigmoid", factor_sigmoid},
    {"Tanh", factor_tanh},
    {"Relu", factor_relu},
    {"LeakyRelu", factor_leaky_relu},
    {"ThresholdedRelu", factor_thresholded_relu},
    {"Elu", factor_elu},
    {"Selu", factor_selu},
    {"Softplus", factor_softplus},
    {"Softsign", factor_softsign},
    {"Abs", factor_abs},
    {"Sin", factor_sin},
    {"Cos", factor_cos},
    {"Tan", factor_tan},
    {"Asin", factor_asin},
    {"Acos", factor_acos},
    {"Atan", factor_atan},
    {"Sinh", factor_sinh},
    {"Cosh", factor_cosh},
    {"Asinh", factor_asinh},
    {"Acosh", factor_acosh},
    {"Atanh", factor_atanh},
    {"Erf", factor_erf},
    {"HardSigmoid", factor_hard_sigmoid},
    {"HardSwish", factor_hard_swish},
    {"Swish", factor_swish},
    {"Mish", factor_mish},
    {"Celu", factor_celu},
    {"Gelu", factor_gelu},
};

static void rule_map(struct sdx_gradient *d)
{
    for (size_t i = 0; i < sizeof maps / sizeof maps[0]; i++)
        if (sdx_str_is(sdx_gradient_node(d)->op_type, maps[i].op)) {
            int32_t factor = maps[i].factor(d, sdx_gradient_in(d, 0), sdx_gradient_out(d, 0));
            sdx_gradient_give(d, 0, OP2(d, "Mul", sdx_gradient_of(d, 0), factor));
        }
}

/* Steps: their gradient is 0 wherever there is one. */
static void rule_zero(struct sdx_gradient *d)
{
    (void)d;
}

/* ---- operators that broadcast ---- */

/* Before version 7 operands were broadcast where an attribute said so. */
static bool refuse_old(struct sdx_gradient *d)
{
    const struct sdx_ir_node *node = sdx_gradient_node(d);
    if (node->opset >= 7 || sdx_ir_attr_int(node, "broadcast", 0) == 0) return false;
    sdx_gradient_refuse(d, "the broadcasting of opset 6");
    return true;
}

static void rule_add(struct sdx_gradient *d)
{
    if (refuse_old(d)) return;
    sdx_gradient_give_broadcast(d, 0, sdx_gradient_of(d, 0));
    sdx_gradient_give_broadcast(d, 1, sdx_gradient_of(d, 0));
}

static void rule_sub(struct sdx_gradient *d)
{
    if (refuse_old(d)) return;
    sdx_gradient_give_broadcast(d, 0, sdx_gradient_of(d, 0));
    if (sdx_gradient_wants(d, 1))
        sdx_gradient_give_broadcast(d, 1, OP1(d, "Neg", sdx_gradient_of(d, 0)));
}

static void rule_mul(struct sdx_gradient *d)
{
    if (refuse_old(d)) return;
    for (int i = 0; i < 2; i++)
        if (sdx_gradient_wants(d, i))
            sdx_gradient_give_broadcast(
                d, i, OP2(d, "Mul", sdx_gradient_of(d, 0), sdx_gradient_in(d, 1 - i)));
}

static void rule_div(struct sdx_gradient *d)
{
    if (refuse_old(d)) return;
    int32_t first = OP2(d, "Div", sdx_gradient_of(d, 0), sdx_gradient_in(d, 1));
    sdx_gradient_give_broadcast(d, 0, first);
    if (sdx_gradient_wants(d, 1))
        sdx_gradient_give_broadcast(d, 1,
                                    OP1(d, "Neg", OP2(d, "Mul", first, sdx_gradient_out(d, 0))));
}

static void rule_pow(struct sdx_gradient *d)
{
    if (refuse_old(d)) return;
    int32_t x = sdx_gradient_in(d, 0), e = sdx_gradient_in(d, 1), g = sdx_gradient_of(d, 0);
    int32_t zero = scalar(d, 0);
    if (sdx_gradient_wants(d, 0)) { /* 0 where the exponent is 0, also for x = 0 */
        int32_t as_x = OP2(d, "CastLike", e, x);
        int32_t power = OP2(d, "Pow", x, OP2(d, "Sub", as_x, scalar(d, 1)));
        int32_t slope = OP2(d, "Mul", as_x, power);
        slope = OP3(d, "Where", OP2(d, "Equal", as_x, zero), zero, slope);
        sdx_gradient_give_broadcast(d, 0, OP2(d, "Mul", g, slope));
    }
    if (sdx_gradient_wants(d, 1)) { /* 0 where x is 0 or less */
        int32_t is_positive = OP2(d, "Greater", x, zero);
        int32_t inside = OP3(d, "Where", is_positive, x, scalar(d, 1));
        int32_t slope = OP2(d, "Mul", sdx_gradient_out(d, 0), OP1(d, "Log", inside));
        int32_t part = OP3(d, "Where", is_positive, OP2(d, "Mul", g, slope), zero);
        sdx_gradient_give_broadcast(d, 1, OP2(d, "CastLike", part, e));
    }
}

static void rule_sum(struct sdx_gradient *d)
{
    if (refuse_old(d)) return;
    int count = sdx_gradient_node(d)->count_inputs;
    bool is_mean = sdx_str_is(sdx_gradient_node(d)->op_type, "Mean");
    int32_t g = sdx_gradient_of(d, 0);
    if (is_mean) g = OP2(d, "Mul", g, scalar(d, 1.0 / count));
    for (int i = 0; i < count; i++)
        sdx_gradient_give_broadcast(d, i, g);
}

static void rule_extreme(struct sdx_gradient *d)
{
    if (refuse_old(d)) return;
    int count = sdx_gradient_node(d)->count_inputs;
    int32_t y = sdx_gradient_out(d, 0), total = -1, zero = scalar(d, 0), one = scalar(d, 1);
    for (int i = 0; i < count; i++) {
        int32_t hit = OP3(d, "Where", OP2(d, "Equal", sdx_gradient_in(d, i), y), one, zero);
        total = total < 0 ? hit : OP2(d, "Add", total, hit);
    }
    int32_t share = OP2(d, "Div", sdx_gradient_of(d, 0), total);
    for (int i = 0; i < count; i++)
        if (sdx_gradient_wants(d, i))
            sdx_gradient_give_broadcast(
                d, i, OP3(d, "Where", OP2(d, "Equal", sdx_gradient_in(d, i), y), share, zero));
}

static void rule_where(struct sdx_gradient *d)
{
    int32_t condition = sdx_gradient_in(d, 0), g = sdx_gradient_of(d, 0), zero = scalar(d, 0);
    if (sdx_gradient_wants(d, 1))
        sdx_gradient_give_broadcast(d, 1, OP3(d, "Where", condition, g, zero));
    if (sdx_gradient_wants(d, 2))
        sdx_gradient_give_broadcast(d, 2, OP3(d, "Where", condition, zero, g));
}

static void rule_prelu(struct sdx_gradient *d)
{
    if (refuse_old(d)) return;
    int32_t x = sdx_gradient_in(d, 0), g = sdx_gradient_of(d, 0), zero = scalar(d, 0);
    int32_t scaled = OP2(d, "Mul", g, sdx_gradient_in(d, 1));
    sdx_gradient_give(d, 0, where_positive(d, x, g, scaled));
    if (sdx_gradient_wants(d, 1))
        sdx_gradient_give_broadcast(d, 1, where_positive(d, x, zero, OP2(d, "Mul", g, x)));
}

static void rule_clip(struct sdx_gradient *d)
{
    if (sdx_gradient_node(d)->opset < 11) {
        sdx_gradient_refuse(d, "bounds as attributes");
        return;
    }
    if (sdx_gradient_wants(d, 1) || sdx_gradient_wants(d, 2)) {
        sdx_gradient_refuse(d, "bounds that depend on xs");
        return;
    }
    int32_t x = sdx_gradient_in(d, 0), g = sdx_gradient_of(d, 0), zero = scalar(d, 0);
    if (sdx_gradient_in(d, 1) >= 0)
        g = OP3(d, "Where", OP2(d, "Less", x, sdx_gradient_in(d, 1)), zero, g);
    if (sdx_gradient_in(d, 2) >= 0)
        g = OP3(d, "Where", OP2(d, "Greater", x, sdx_gradient_in(d, 2)), zero, g);
    sdx_gradient_give(d, 0, g);
}

/* ---- Softmax, LogSoftmax ---- */

static int32_t row_sum(struct sdx_gradient *d, int32_t value)
{
    const struct sdx_ir_node *node = sdx_gradient_node(d);
    const struct sdx_type *type = sdx_gradient_type(d, sdx_gradient_in(d, 0));
    if (!type->has_shape) {
        sdx_gradient_refuse(d, "an input of unknown rank");
        return -1;
    }
    int rank = type->rank, count = 1;
    int64_t axis = sdx_ir_attr_int(node, "axis", node->opset < 13 ? 1 : -1), axes[SDX_RANK_MAX];
    if (axis < 0) axis += rank;
    if (node->opset < 13) count = rank - (int)axis; /* rows were all that follows */
    if (count < 1) return value;                    /* an empty list would mean all */
    for (int i = 0; i < count; i++)
        axes[i] = axis + i;
    return sdx_gradient_sum(d, value, count, axes, true);
}

static void rule_softmax(struct sdx_gradient *d)
{
    int32_t y = sdx_gradient_out(d, 0), g = sdx_gradient_of(d, 0);
    int32_t common = row_sum(d, OP2(d, "Mul", g, y));
    sdx_gradient_give(d, 0, OP2(d, "Mul", y, OP2(d, "Sub", g, common)));
}

static void rule_log_softmax(struct sdx_gradient *d)
{
    int32_t g = sdx_gradient_of(d, 0), y = OP1(d, "Exp", sdx_gradient_out(d, 0));
    sdx_gradient_give(d, 0, OP2(d, "Sub", g, OP2(d, "Mul", y, row_sum(d, g))));
}

static const struct sdx_gradient_row rows[] = {
    {"Add", rule_add},     {"Sub", rule_sub},         {"Mul", rule_mul},
    {"Div", rule_div},     {"Pow", rule_pow},         {"Sum", rule_sum},
    {"Mean", rule_sum},    {"Max", rule_extreme},     {"Min", rule_extreme},
    {"Where", rule_where}, {"PRelu", rule_prelu},     {"Clip", rule_clip},
    {"Floor", rule_zero},  {"Ceil", rule_zero},       {"Round", rule_zero},
    {"Sign", rule_zero},   {"Softmax", rule_softmax}, {"LogSoftmax", rule_log_softmax},
};

const struct sdx_gradient_rows sdx_gradient_broadcast = {rows, SDX_COUNT_OF(rows)};

sdx_gradient_rule *sdx_gradient_find_map(struct sdx_str op)
{
    for (int i = 0; i < SDX_COUNT_OF(maps); i++)
        if (sdx_str_is(op, maps[i].op)) return rule_map;
    return NULL;
}
