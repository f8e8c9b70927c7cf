/* SPDX-License-Identifier: Apache-2.0
 * What follows a convolution or matrix product moves into its store: the bias of a MatMul, a
 * residual addition (not of a ConvTranspose), an activation. The node keeps its type and gets input
 * 2 (bias), input 3 (residual) and the attributes "activation" and "activation_params" that
 * ops/product.h describes; files cannot have these (the checker refuses unknown attributes). */
#include <math.h>

#include "passes/match.h"
#include "passes/passes.h"

static const struct {
    const char *op, *name; /* of the operator and of the fused activation */
    const char *attr_a, *attr_b;
    float a, b; /* defaults */
} activations[] = {
    {"Relu", "Relu", NULL, NULL, 0, 0},
    {"LeakyRelu", "LeakyRelu", "alpha", NULL, 0.01f, 0},
    {"Sigmoid", "Sigmoid", NULL, NULL, 0, 0},
    {"Tanh", "Tanh", NULL, NULL, 0, 0},
    {"HardSwish", "HardSwish", NULL, NULL, 0, 0},
    {"HardSigmoid", "HardSigmoid", "alpha", "beta", 0.2f, 0.5f},
};

static bool is_product(const struct sdx_ir_node *node)
{
    return node->domain.len == 0 &&
           (sdx_str_is(node->op_type, "Conv") || sdx_str_is(node->op_type, "MatMul") ||
            sdx_str_is(node->op_type, "Gemm") || sdx_str_is(node->op_type, "ConvTranspose"));
}

/* The product that makes `value` for one reader only, not yet with an activation. */
static struct sdx_ir_node *product_of(const struct sdx_ir_graph *g, const int32_t *uses,
                                      int32_t value)
{
    if (value < 0 || uses[value] != 1 || g->values[value].producer < 0 || g->values[value].constant)
        return NULL;
    struct sdx_ir_node *node = &g->nodes[g->values[value].producer];
    int dtype = g->values[value].type.dtype;
    bool fits = !node->is_dead && is_product(node) &&
                (dtype == SDX_F32 || dtype == SDX_F16 || dtype == SDX_BF16);
    return fits && !sdx_ir_attr(node, "activation") ? node : NULL;
}

static enum sdx_status add_attrs(struct sdx_context *cx, struct sdx_ir *ir,
                                 struct sdx_ir_node *node, const char *name, float a, float b)
{
    size_t count = (size_t)node->count_attrs;
    struct sdx_ir_attr *attrs = sdx_arena_array(ir->arena, count + 2, sizeof *attrs);
    float *params = sdx_arena_array(ir->arena, 2, sizeof *params);
    if (!attrs || !params) return SDX_FAIL_MEMORY(cx);
    if (count) memcpy(attrs, node->attrs, count * sizeof *attrs);
    params[0] = a;
    params[1] = b;
    attrs[count] = (struct sdx_ir_attr){
        .name = SDX_STR("activation"), .type = SDX_ATTR_STRING, .s = sdx_str(name)};
    attrs[count + 1] = (struct sdx_ir_attr){.name = SDX_STR("activation_params"),
                                            .type = SDX_ATTR_FLOATS,
                                            .count = 2,
                                            .floats = params};
    node->attrs = attrs;
    node->count_attrs += 2;
    return SDX_OK;
}

static enum sdx_status set_input(struct sdx_context *cx, struct sdx_ir *ir,
                                 struct sdx_ir_node *node, int i, int32_t value)
{
    if (i >= node->count_inputs) {
        int32_t *inputs = sdx_arena_array(ir->arena, (size_t)i + 1, sizeof *inputs);
        if (!inputs) return SDX_FAIL_MEMORY(cx);
        for (int k = 0; k <= i; k++)
            inputs[k] = k < node->count_inputs ? node->inputs[k] : -1;
        node->inputs = inputs;
        node->count_inputs = i + 1;
    }
    node->inputs[i] = value;
    return SDX_OK;
}

/* name NULL: the node is no activation that a store can do. */
static void activation_of(const struct sdx_ir_graph *g, const struct sdx_ir_node *node,
                          const char **name, float *a, float *b)
{
    *name = NULL;
    *a = *b = 0;
    for (int i = 0; i < SDX_COUNT_OF(activations); i++) {
        if (!sdx_str_is(node->op_type, activations[i].op)) continue;
        *name = activations[i].name;
        *a = activations[i].attr_a
                 ? sdx_ir_attr_float(node, activations[i].attr_a, activations[i].a)
                 : 0;
        *b = activations[i].attr_b
                 ? sdx_ir_attr_float(node, activations[i].attr_b, activations[i].b)
                 : 0;
    }
    if (sdx_str_is(node->op_type, "Swish") && sdx_ir_attr_float(node, "alpha", 1) == 1)
        *name = "Silu";
    if (sdx_str_is(node->op_type, "Gelu"))
        *name =
            sdx_str_is(sdx_ir_attr_str(node, "approximate", "none"), "tanh") ? "GeluTanh" : "Gelu";
    if (!sdx_str_is(node->op_type, "Clip")) return;
    double lo = -INFINITY, hi = INFINITY;
    if (node->opset < 11) {
        lo = sdx_ir_attr_float(node, "min", -3.402823466e38f);
        hi = sdx_ir_attr_float(node, "max", 3.402823466e38f);
    } else {
        if (node->count_inputs > 1 && node->inputs[1] >= 0 &&
            !sdx_match_scalar(g, node->inputs[1], &lo))
            return;
        if (node->count_inputs > 2 && node->inputs[2] >= 0 &&
            !sdx_match_scalar(g, node->inputs[2], &hi))
            return;
    }
    *name = "Clip";
    *a = (float)lo;
    *b = (float)hi;
}

static enum sdx_status fuse_activation(struct sdx_context *cx, struct sdx_ir *ir,
                                       struct sdx_ir_graph *g, struct sdx_ir_node *node,
                                       const int32_t *uses, bool *changed)
{
    const char *name = NULL;
    float a = 0, b = 0;
    if (node->count_inputs < 1 || node->count_outputs != 1) return SDX_OK;
    struct sdx_ir_node *product = product_of(g, uses, node->inputs[0]);
    if (!product) return SDX_OK;
    activation_of(g, node, &name, &a, &b);
    if (!name) return SDX_OK;
    SDX_TRY(add_attrs(cx, ir, product, name, a, b));
    sdx_match_take_over(g, product, node);
    *changed = true;
    return SDX_OK;
}

/* MatMul + a constant row of the last axis' length, [N] or [1, ..., N] */
static bool is_bias(const struct sdx_ir_graph *g, const struct sdx_ir_node *product, int32_t value)
{
    const struct sdx_tensor *t = sdx_match_constant(g, value);
    const struct sdx_type *type = &g->values[product->outputs[0]].type;
    return t && sdx_str_is(product->op_type, "MatMul") && product->count_inputs == 2 &&
           t->rank >= 1 && t->rank <= type->rank && t->dtype == type->dtype && type->has_shape &&
           type->rank >= 2 && type->dims[type->rank - 1] == t->dims[t->rank - 1] &&
           t->count == t->dims[t->rank - 1];
}

/* The value as a list: itself, or a constant of its content. -1: no memory. */
static int32_t as_list(struct sdx_ir *ir, struct sdx_ir_graph *g, int32_t value)
{
    const struct sdx_tensor *t = g->values[value].constant;
    if (t->rank == 1) return value;
    struct sdx_tensor *list = sdx_match_new_constant(ir, t->dtype, 1, &t->count);
    if (!list) return -1;
    memcpy(list->data, t->data, t->bytes);
    return sdx_match_add_constant(ir, g, g->values[value].name, list);
}

static enum sdx_status fuse_add(struct sdx_context *cx, struct sdx_ir *ir, struct sdx_ir_graph *g,
                                struct sdx_ir_node *add, const int32_t *uses, bool *changed)
{
    for (int i = 0; i < 2 && !add->is_dead; i++) {
        struct sdx_ir_node *product = product_of(g, uses, add->inputs[i]);
        int32_t other = add->inputs[1 - i];
        if (!product || other < 0 || sdx_str_is(product->op_type, "ConvTranspose")) continue;
        /* A bf16 product is rounded before it is added to, as the reference does: with 8 bits one
         * rounding less shows. f16 keeps the more exact fused form. */
        if (g->values[add->inputs[i]].type.dtype == SDX_BF16) continue;
        if (is_bias(g, product, other)) {
            const int32_t bias = as_list(ir, g, other);
            if (bias < 0) return SDX_FAIL_MEMORY(cx);
            SDX_TRY(set_input(cx, ir, product, 2, bias));
        } else if (other != add->inputs[i] && !sdx_match_constant(g, other) &&
                   sdx_match_takes_residual(g, product) &&
                   sdx_match_same_type(g, add->inputs[i], other)) {
            SDX_TRY(set_input(cx, ir, product, 3, other));
        } else {
            continue;
        }
        sdx_match_take_over(g, product, add);
        *changed = true;
    }
    return SDX_OK;
}

enum sdx_status sdx_pass_epilogue(struct sdx_context *cx, struct sdx_ir *ir, bool *changed)
{
    for (int32_t n_graph = 0; n_graph < ir->count_graphs; n_graph++) {
        struct sdx_ir_graph *g = &ir->graphs[n_graph];
        int32_t *uses = sdx_ir_uses(g, ir->arena);
        if (!uses) return SDX_FAIL_MEMORY(cx);
        bool did = false;
        for (int32_t n = 0; n < g->count_nodes; n++) {
            struct sdx_ir_node *node = &g->nodes[n];
            if (node->is_dead || node->domain.len) continue;
            if (sdx_str_is(node->op_type, "Add") && node->count_inputs == 2)
                SDX_TRY(fuse_add(cx, ir, g, node, uses, &did));
            else
                SDX_TRY(fuse_activation(cx, ir, g, node, uses, &did));
        }
        if (did)
            SDX_TRY(
                sdx_ir_sort(cx, ir, g)); /* a residual may be made after the product's old place */
        *changed = *changed || did;
    }
    return SDX_OK;
}
