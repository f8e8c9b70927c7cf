/* SPDX-License-Identifier: Apache-2.0
 * Normalisation as exporters spell it becomes the operator that the standard has by now: over the
 * last axis (x - mean) / sqrt(mean of squares + epsilon) * scale + bias is LayerNormalization,
 * x / sqrt(mean(x^2) + epsilon) * scale is RMSNormalization; InstanceNormalization of the channels
 * taken together in groups, * scale + bias, is GroupNormalization. Over axis 1 of an image, or
 * between Transposes to channels last and back, LayerNormalization is ChannelNormalization, an
 * operator of ours. Results differ in the last bits. */
#include "passes/match.h"
#include "passes/passes.h"

enum { OPSET_LAYER = 17, OPSET_RMS = 23, OPSET_GROUP = 21 };

static int rank_of(const struct sdx_ir_graph *g, int32_t value)
{
    const struct sdx_type *t = value < 0 ? NULL : &g->values[value].type;
    return t && t->kind == SDX_KIND_TENSOR && t->has_shape && t->dtype == SDX_F32 ? t->rank : -1;
}

/* The axis that all of a pattern is over. */
enum over { OVER_LAST, OVER_CHANNELS /* axis 1 of 3 or more */ };

/* x of the mean of x over that axis, which stays; -1: it is not one. */
static int32_t mean_of(const struct sdx_ir_graph *g, int32_t value, enum over over)
{
    const struct sdx_ir_node *node = sdx_match_maker(g, value, "ReduceMean");
    if (!node || sdx_ir_attr_int(node, "keepdims", 1) != 1) return -1;
    const int rank = rank_of(g, node->inputs[0]);
    const int64_t *axes;
    int64_t count;
    if (!sdx_match_list(g, node, 1, "axes", &axes, &count)) return -1;
    if (!axes || count != 1 || rank < (over == OVER_CHANNELS ? 3 : 1)) return -1;
    const int64_t axis = axes[0] < 0 ? axes[0] + rank : axes[0];
    return axis == (over == OVER_CHANNELS ? 1 : rank - 1) ? node->inputs[0] : -1;
}

/* x of x * x or x to the power of 2 */
static int32_t square_of(const struct sdx_ir_graph *g, int32_t value)
{
    int32_t x = -1;
    double two = 0;
    if (sdx_match_with_scalar(g, value, "Pow", &x, &two)) return two == 2 ? x : -1;
    const struct sdx_ir_node *mul = sdx_match_maker(g, value, "Mul");
    return mul && mul->inputs[0] == mul->inputs[1] ? mul->inputs[0] : -1;
}

/* x of sqrt(mean(x^2) + epsilon) */
static int32_t root_of(const struct sdx_ir_graph *g, int32_t value, enum over over, double *epsilon)
{
    const struct sdx_ir_node *root = sdx_match_maker(g, value, "Sqrt");
    int32_t mean = -1;
    if (!root || !sdx_match_with_scalar(g, root->inputs[0], "Add", &mean, epsilon)) return -1;
    int32_t square = mean_of(g, mean, over);
    return square < 0 ? -1 : square_of(g, square);
}

/* x of x / sqrt(mean(x^2) + epsilon), also as a product with the reciprocal. */
static int32_t scaled_by_root(const struct sdx_ir_graph *g, int32_t value, enum over over,
                              double *epsilon)
{
    const struct sdx_ir_node *div = sdx_match_maker(g, value, "Div");
    if (div) {
        int32_t x = root_of(g, div->inputs[1], over, epsilon);
        return x >= 0 && x == div->inputs[0] ? x : -1;
    }
    const struct sdx_ir_node *mul = sdx_match_maker(g, value, "Mul");
    for (int i = 0; mul && i < 2; i++) {
        const struct sdx_ir_node *below = sdx_match_maker(g, mul->inputs[i], "Reciprocal");
        int32_t root = below ? below->inputs[0] : -1;
        double one = 0;
        if (!below && (below = sdx_match_maker(g, mul->inputs[i], "Div")) != NULL)
            root = sdx_match_scalar(g, below->inputs[0], &one) && one == 1 ? below->inputs[1] : -1;
        int32_t x = root_of(g, root, over, epsilon);
        if (x >= 0 && x == mul->inputs[1 - i]) return x;
    }
    return -1;
}

/* x of x - mean(x) */
static int32_t centred(const struct sdx_ir_graph *g, int32_t value, enum over over)
{
    const struct sdx_ir_node *sub = sdx_match_maker(g, value, "Sub");
    if (!sub || mean_of(g, sub->inputs[1], over) != sub->inputs[0]) return -1;
    return sub->inputs[0];
}

/* The same deviations? They are one value, or two that exporters made twice. */
static bool same_deviations(const struct sdx_ir_graph *g, int32_t a, int32_t b, enum over over)
{
    const int32_t x = centred(g, a, over);
    return a == b || (x >= 0 && x == centred(g, b, over));
}

/* x of (x - mean) / sqrt(mean((x - mean)^2) + epsilon) */
static int32_t normalised(const struct sdx_ir_graph *g, int32_t value, enum over over,
                          double *epsilon)
{
    const struct sdx_ir_node *div = sdx_match_maker(g, value, "Div");
    if (!div) {
        int32_t deviations = scaled_by_root(g, value, over, epsilon);
        return centred(g, deviations, over);
    }
    int32_t below = root_of(g, div->inputs[1], over, epsilon);
    if (below < 0 || !same_deviations(g, div->inputs[0], below, over)) return -1;
    return centred(g, div->inputs[0], over);
}

/* x of normalised(x) * *scale, the latter operand 1 - i of a product; the deviations may also be
 * scaled before they are divided. */
static int32_t scaled_normal(const struct sdx_ir_graph *g, int32_t value, enum over over, int i,
                             int32_t *scale, double *epsilon)
{
    const struct sdx_ir_node *div = sdx_match_maker(g, value, "Div");
    const struct sdx_ir_node *mul = sdx_match_maker(g, div ? div->inputs[0] : value, "Mul");
    if (!mul || mul->count_inputs != 2) return -1;
    *scale = mul->inputs[1 - i];
    if (!div) return normalised(g, mul->inputs[i], over, epsilon);
    const int32_t below = root_of(g, div->inputs[1], over, epsilon);
    if (below < 0 || !same_deviations(g, mul->inputs[i], below, over)) return -1;
    return centred(g, mul->inputs[i], over);
}

/* A constant of the length of x's last axis? */
static bool is_row(const struct sdx_ir_graph *g, int32_t value, int32_t x)
{
    const struct sdx_tensor *t = sdx_match_constant(g, value);
    const int rank = rank_of(g, x);
    return t && t->rank == 1 && t->dtype == SDX_F32 && rank > 0 &&
           g->values[x].type.dims[rank - 1] == t->dims[0];
}
/* value = rest op row */
static bool with_row(const struct sdx_ir_graph *g, const struct sdx_ir_node *node, int32_t *rest,
                     int32_t *row)
{
    for (int i = 0; i < 2; i++) {
        *rest = node->inputs[1 - i];
        *row = node->inputs[i];
        if (is_row(g, *row, *rest)) return true;
    }
    return false;
}

static bool is_all(const struct sdx_tensor *t, int64_t count, float value)
{
    if (!t || t->dtype != SDX_F32 || t->count != count) return false;
    for (int64_t i = 0; i < count; i++)
        if (memcmp((const char *)t->data + (size_t)i * sizeof value, &value, sizeof value))
            return false;
    return true;
}

/* The InstanceNormalization of x [N, C, ...] as [N, groups, the rest], without scale and bias, that
 * the Reshape `back` gives x's shape again; NULL: it is none. */
static const struct sdx_ir_node *
grouped(const struct sdx_ir_graph *g, const struct sdx_ir_node *back, int32_t *x, int64_t *groups)
{
    const struct sdx_ir_node *norm = sdx_match_maker(g, back->inputs[0], "InstanceNormalization");
    const struct sdx_ir_node *to = norm ? sdx_match_maker(g, norm->inputs[0], "Reshape") : NULL;
    if (!to || !sdx_match_same_type(g, to->inputs[0], back->outputs[0])) return NULL;
    const struct sdx_type *in = &g->values[to->inputs[0]].type,
                          *as = &g->values[to->outputs[0]].type;
    if (in->dtype != SDX_F32 || in->rank < 3 || !as->has_shape || as->rank != 3 ||
        as->dims[0] != in->dims[0] || in->dims[1] < 1 || as->dims[1] < 1 ||
        in->dims[1] % as->dims[1] != 0)
        return NULL;
    *x = to->inputs[0];
    *groups = as->dims[1];
    return is_all(sdx_match_constant(g, norm->inputs[1]), *groups, 1) &&
                   is_all(sdx_match_constant(g, norm->inputs[2]), *groups, 0)
               ? norm
               : NULL;
}

/* As a new value: the constant, one number for each of `channels`, as a list. -1: it is none. */
static int32_t channel_list(struct sdx_ir *ir, struct sdx_ir_graph *g, int32_t value, int rank,
                            int64_t channels)
{
    const struct sdx_tensor *t = sdx_match_constant(g, value);
    if (!t || t->dtype != SDX_F32 || t->count != channels ||
        !sdx_match_is_channels(t, rank, channels))
        return -1;
    if (t->rank == 1) return value;
    struct sdx_tensor *list = sdx_arena_copy(ir->arena, t, sizeof *t);
    if (!list) return -1;
    list->rank = 1;
    list->dims_inline[0] = channels;
    list->dims = list->dims_inline;
    return sdx_match_add_constant(ir, g, SDX_STR("channels"), list);
}

/* add = back * scale + bias */
static enum sdx_status rewrite_groups(struct sdx_context *cx, struct sdx_ir *ir,
                                      struct sdx_ir_graph *g, struct sdx_ir_node *add,
                                      bool *changed)
{
    for (int i = 0; i < 4 && sdx_str_is(add->op_type, "Add"); i++) {
        const struct sdx_ir_node *mul = sdx_match_maker(g, add->inputs[i / 2], "Mul");
        const struct sdx_ir_node *back = mul && mul->count_inputs == 2
                                             ? sdx_match_maker(g, mul->inputs[i % 2], "Reshape")
                                             : NULL;
        int32_t x = -1;
        int64_t groups = 0;
        const struct sdx_ir_node *norm = back ? grouped(g, back, &x, &groups) : NULL;
        if (!norm) continue;
        const struct sdx_type *type = &g->values[x].type;
        const float epsilon = sdx_ir_attr_float(norm, "epsilon", 1e-5f);
        const int32_t inputs[] = {
            x, channel_list(ir, g, mul->inputs[1 - i % 2], type->rank, type->dims[1]),
            channel_list(ir, g, add->inputs[1 - i / 2], type->rank, type->dims[1])};
        if (inputs[1] < 0 || inputs[2] < 0) return SDX_OK;
        *changed = true;
        SDX_TRY(sdx_match_become(cx, ir, add, "GroupNormalization", OPSET_GROUP, inputs, 3, 2));
        add->attrs[add->count_attrs++] = (struct sdx_ir_attr){
            .name = SDX_STR("num_groups"), .type = SDX_ATTR_INT, .graph = -1, .i = groups};
        add->attrs[add->count_attrs++] = (struct sdx_ir_attr){
            .name = SDX_STR("epsilon"), .type = SDX_ATTR_FLOAT, .graph = -1, .f = epsilon};
        return SDX_OK;
    }
    return SDX_OK;
}

static enum sdx_status become(struct sdx_context *cx, struct sdx_ir *ir, struct sdx_ir_node *node,
                              const char *op, int64_t opset, const int32_t *inputs, int count,
                              double epsilon)
{
    SDX_TRY(sdx_match_become(cx, ir, node, op, opset, inputs, count, 2));
    node->attrs[node->count_attrs++] =
        (struct sdx_ir_attr){.name = SDX_STR("axis"), .type = SDX_ATTR_INT, .graph = -1, .i = -1};
    node->attrs[node->count_attrs++] = (struct sdx_ir_attr){
        .name = SDX_STR("epsilon"), .type = SDX_ATTR_FLOAT, .graph = -1, .f = (float)epsilon};
    return SDX_OK;
}

static enum sdx_status rewrite(struct sdx_context *cx, struct sdx_ir *ir, struct sdx_ir_graph *g,
                               struct sdx_ir_node *node, bool *changed)
{
    const bool adds = sdx_str_is(node->op_type, "Add");
    int32_t rest = -1, row = -1, scale = -1;
    double epsilon = 0;
    if (!(adds || sdx_str_is(node->op_type, "Mul")) || !with_row(g, node, &rest, &row))
        return SDX_OK;
    if (adds) {
        for (int i = 0; i < 2; i++) {
            const int32_t x = scaled_normal(g, rest, OVER_LAST, i, &scale, &epsilon);
            const int32_t inputs[] = {x, scale, row};
            if (x < 0 || !is_row(g, scale, x)) continue;
            *changed = true;
            return become(cx, ir, node, "LayerNormalization", OPSET_LAYER, inputs, 3, epsilon);
        }
        return SDX_OK;
    }
    const int32_t x = scaled_by_root(g, rest, OVER_LAST, &epsilon);
    if (x < 0 || centred(g, x, OVER_LAST) >= 0) return SDX_OK; /* the bias may follow */
    const int32_t inputs[] = {x, row};
    *changed = true;
    return become(cx, ir, node, "RMSNormalization", OPSET_RMS, inputs, 2, epsilon);
}

static enum sdx_status become_channels(struct sdx_context *cx, struct sdx_ir *ir,
                                       struct sdx_ir_node *node, const int32_t inputs[3],
                                       double epsilon)
{
    SDX_TRY(sdx_match_become_in(cx, ir, node, "sardonyx", "ChannelNormalization", 1, inputs, 3, 1));
    node->attrs[node->count_attrs++] = (struct sdx_ir_attr){
        .name = SDX_STR("epsilon"), .type = SDX_ATTR_FLOAT, .graph = -1, .f = (float)epsilon};
    return SDX_OK;
}

/* add = normalised over axis 1 * scale + bias */
static enum sdx_status rewrite_channels(struct sdx_context *cx, struct sdx_ir *ir,
                                        struct sdx_ir_graph *g, struct sdx_ir_node *add,
                                        bool *changed)
{
    for (int i = 0; i < 4 && sdx_str_is(add->op_type, "Add"); i++) {
        double epsilon = 0;
        int32_t scale = -1;
        const int32_t x =
            scaled_normal(g, add->inputs[i / 2], OVER_CHANNELS, i % 2, &scale, &epsilon);
        if (x < 0 || !sdx_match_same_type(g, x, add->outputs[0])) continue;
        const struct sdx_type *type = &g->values[x].type;
        const int32_t inputs[] = {
            x, channel_list(ir, g, scale, type->rank, type->dims[1]),
            channel_list(ir, g, add->inputs[1 - i / 2], type->rank, type->dims[1])};
        if (inputs[1] < 0 || inputs[2] < 0) return SDX_OK;
        *changed = true;
        return become_channels(cx, ir, add, inputs, epsilon);
    }
    return SDX_OK;
}

/* back = Transpose(LayerNormalization of the last axis(Transpose(x))) */
static enum sdx_status rewrite_turned(struct sdx_context *cx, struct sdx_ir *ir,
                                      struct sdx_ir_graph *g, struct sdx_ir_node *back,
                                      const int32_t *uses, bool *changed)
{
    const struct sdx_ir_node *norm = sdx_match_maker(g, back->inputs[0], "LayerNormalization");
    const struct sdx_ir_node *to = norm ? sdx_match_maker(g, norm->inputs[0], "Transpose") : NULL;
    const int32_t x = to ? to->inputs[0] : -1;
    const int rank = rank_of(g, x);
    if (rank < 3 || uses[norm->outputs[0]] != 1 || norm->count_inputs < 2) return SDX_OK;
    const int64_t axis = sdx_ir_attr_int(norm, "axis", -1);
    if ((axis != -1 && axis != rank - 1) || norm->count_outputs != 1 ||
        !sdx_match_moves_axis(to, rank, 1, rank - 1) ||
        !sdx_match_moves_axis(back, rank, rank - 1, 1))
        return SDX_OK;
    const int64_t channels = g->values[x].type.dims[1];
    int32_t inputs[] = {x, norm->inputs[1], norm->count_inputs > 2 ? norm->inputs[2] : -1};
    for (int i = 1; i < 3; i++) {
        const struct sdx_tensor *t = sdx_match_constant(g, inputs[i]);
        if (i == 2 && inputs[2] < 0) continue;
        if (!t || t->dtype != SDX_F32 || t->rank != 1 || t->count != channels) return SDX_OK;
    }
    *changed = true;
    return become_channels(cx, ir, back, inputs, sdx_ir_attr_float(norm, "epsilon", 1e-5f));
}

typedef enum sdx_status rewrite_fn(struct sdx_context *cx, struct sdx_ir *ir,
                                   struct sdx_ir_graph *g, struct sdx_ir_node *node, bool *changed);

static enum sdx_status each_node(struct sdx_context *cx, struct sdx_ir *ir, rewrite_fn *rewrite_one,
                                 bool *changed)
{
    for (int32_t n_graph = 0; n_graph < ir->count_graphs; n_graph++) {
        struct sdx_ir_graph *g = &ir->graphs[n_graph];
        for (int32_t n = 0; n < g->count_nodes; n++) {
            struct sdx_ir_node *node = &g->nodes[n];
            bool did = false;
            if (node->is_dead || node->domain.len || node->count_inputs != 2) continue;
            if (!sdx_str_is(node->op_type, "Add") && !sdx_str_is(node->op_type, "Mul")) continue;
            if (node->inputs[0] < 0 || node->inputs[1] < 0) continue;
            SDX_TRY(rewrite_one(cx, ir, g, node, &did));
            *changed = *changed || did;
        }
    }
    return SDX_OK;
}

enum sdx_status sdx_pass_norm(struct sdx_context *cx, struct sdx_ir *ir, bool *changed)
{
    return each_node(cx, ir, rewrite, changed);
}

enum sdx_status sdx_pass_group_norm(struct sdx_context *cx, struct sdx_ir *ir, bool *changed)
{
    return each_node(cx, ir, rewrite_groups, changed);
}

static enum sdx_status each_turned(struct sdx_context *cx, struct sdx_ir *ir,
                                   struct sdx_ir_graph *g, bool *changed)
{
    int32_t *uses = sdx_ir_uses(g, ir->arena);
    if (!uses) return SDX_FAIL_MEMORY(cx);
    for (int32_t n = 0; n < g->count_nodes; n++) {
        struct sdx_ir_node *node = &g->nodes[n];
        if (!node->is_dead && !node->domain.len && sdx_str_is(node->op_type, "Transpose"))
            SDX_TRY(rewrite_turned(cx, ir, g, node, uses, changed));
    }
    return SDX_OK;
}

enum sdx_status sdx_pass_channel_norm(struct sdx_context *cx, struct sdx_ir *ir, bool *changed)
{
    SDX_TRY(each_node(cx, ir, rewrite_channels, changed));
    for (int32_t n = 0; n < ir->count_graphs; n++)
        SDX_TRY(each_turned(cx, ir, &ir->graphs[n], changed));
    return SDX_OK;
}
