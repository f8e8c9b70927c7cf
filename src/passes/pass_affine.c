/* SPDX-License-Identifier: Apache-2.0
 * Folds what scales and shifts each output channel of a convolution or Gemm with constant weights
 * into those weights and the bias: a BatchNormalization (y * s + t with s = gamma / sqrt(variance +
 * epsilon), t = beta - mean * s), and Mul, Div, Add and Sub of a constant. And a BatchNormalization
 * of its input alone, which an activation keeps from what is before, where no padding is seen.
 * Re-associates: results differ in the last bits. */
#include <math.h>

#include "kernels/elements.h"
#include "passes/affine.h"
#include "passes/match.h"
#include "passes/passes.h"

/* The product that makes a value, and what of it is constant. */
struct maker {
    struct sdx_ir_node *node;
    const struct sdx_tensor *w, *bias; /* bias: NULL if there is none */
    int64_t channels, groups;
    bool is_gemm, first; /* first: channels are axis 0 of w, or they are 1 (of each group) */
};

static bool maker_of(const struct sdx_ir_graph *g, int32_t value, struct maker *m)
{
    static const char *const ops[] = {"Conv", "ConvTranspose", "Gemm"};
    int kind = 0;
    for (m->node = NULL; value >= 0 && kind < SDX_COUNT_OF(ops); kind++)
        if ((m->node = sdx_match_maker(g, value, ops[kind]))) break;
    if (!m->node || sdx_match_is_fused(m->node)) return false; /* with what stood between the two */
    m->w = sdx_match_weights(g, m->node, 1);
    m->bias = sdx_match_constant_f32(g, m->node, 2);
    if (!m->w || m->w->dtype != SDX_F32 || m->w->count == 0 ||
        (m->node->count_inputs > 2 && m->node->inputs[2] >= 0 && !m->bias))
        return false;
    m->is_gemm = kind == 2;
    m->groups = kind == 1 ? sdx_ir_attr_int(m->node, "group", 1) : 1;
    m->first = kind == 0 || (m->is_gemm && sdx_ir_attr_int(m->node, "transB", 0));
    if (m->is_gemm ? m->w->rank != 2 || sdx_ir_attr_float(m->node, "beta", 1) != 1
                   : m->w->rank < 3 || m->groups < 1)
        return false;
    m->channels = m->first ? m->w->dims[0] : m->w->dims[1] * m->groups;
    return m->w->dims[0] % m->groups == 0 &&
           (!m->bias || (m->bias->rank == 1 && m->bias->count == m->channels));
}

static bool normalisation(const struct sdx_ir_graph *g, const struct sdx_ir_node *bn,
                          struct sdx_affine *f)
{
    const struct sdx_tensor *p[4];
    const double epsilon = sdx_ir_attr_float(bn, "epsilon", 1e-5f);
    if (sdx_ir_attr_int(bn, "training_mode", 0)) return false;
    for (int k = 1; k < bn->count_outputs; k++)
        if (bn->outputs[k] >= 0) return false;
    for (int i = 0; i < 4; i++) {
        p[i] = sdx_match_constant_f32(g, bn, i + 1);
        if (!p[i] || p[i]->count != f->channels) return false;
    }
    f->scales = true;
    for (int64_t c = 0; c < f->channels; c++) {
        f->scale[c] = sdx_match_f32_at(p[0], c) / sqrt(sdx_match_f32_at(p[3], c) + epsilon);
        f->shift[c] = sdx_match_f32_at(p[1], c) - sdx_match_f32_at(p[2], c) * f->scale[c];
    }
    return true;
}

/* An operator of a value of this rank, channels along axis 1, and a constant of one number or one a
 * channel. */
static bool arithmetic(const struct sdx_ir_graph *g, const struct sdx_ir_node *node, int rank,
                       struct sdx_affine *f, int *operand)
{
    const bool mul = sdx_str_is(node->op_type, "Mul"), div = sdx_str_is(node->op_type, "Div");
    const bool add = sdx_str_is(node->op_type, "Add"), sub = sdx_str_is(node->op_type, "Sub");
    const struct sdx_tensor *t = NULL;
    if ((!mul && !div && !add && !sub) || node->opset < 7 || node->count_inputs != 2) return false;
    for (int i = 1; i >= (mul || add ? 0 : 1) && !t; i--) {
        t = sdx_match_constant_f32(g, node, i);
        *operand = 1 - i;
    }
    if (!t || !sdx_match_is_channels(t, rank, f->channels)) return false;
    f->scales = mul || div;
    for (int64_t c = 0; c < f->channels; c++) {
        const double value = sdx_match_f32_at(t, t->count > 1 ? c : 0);
        f->scale[c] = mul ? value : div ? 1 / value : 1;
        f->shift[c] = add ? value : sub ? -value : 0;
        if (!isfinite(f->scale[c]) || !isfinite(f->shift[c])) return false;
    }
    return true;
}

bool sdx_affine_read(const struct sdx_ir_graph *g, const struct sdx_ir_node *node, int rank,
                     struct sdx_affine *f, int *operand)
{
    *operand = 0;
    if (sdx_str_is(node->op_type, "BatchNormalization")) return normalisation(g, node, f);
    return arithmetic(g, node, rank, f, operand);
}

enum sdx_status sdx_affine_init(struct sdx_context *cx, struct sdx_ir *ir, int64_t channels,
                                struct sdx_affine *f)
{
    *f = (struct sdx_affine){.channels = channels};
    f->scale = sdx_arena_array(ir->arena, (size_t)channels, sizeof *f->scale);
    f->shift = sdx_arena_array(ir->arena, (size_t)channels, sizeof *f->shift);
    if (!f->scale || !f->shift) return SDX_FAIL_MEMORY(cx);
    for (int64_t c = 0; c < channels; c++)
        f->scale[c] = 1;
    return SDX_OK;
}

/* to[i] = x[i] * scale[i * step], rounded once; step: 0 or 1. x may be `to`, or lie at an odd
 * address of a file. */
static void scale_row(const char *x, const double *scale, int64_t step, float *to, int64_t n)
{
    enum { CHUNK = 256 };
    const struct sdx_elements *elements = sdx_elements();
    double wide[CHUNK];
    for (int64_t i = 0, some; i < n; i += some) {
        some = n - i < CHUNK ? n - i : CHUNK;
        memmove(to + i, x + (size_t)i * sizeof *to, (size_t)some * sizeof *to);
        sdx_element_run(elements->f32_f64, NULL, 1, (const uint8_t[]){4, 8},
                        &(const void *){to + i}, &(int64_t){1}, wide, some);
        sdx_element_run(elements->f64_mul, NULL, 2, (const uint8_t[]){8, 8, 8},
                        (const void *const[]){wide, scale + i * step}, (const int64_t[]){1, step},
                        wide, some);
        sdx_element_run(elements->f64_f32, NULL, 1, (const uint8_t[]){8, 4}, &(const void *){wide},
                        &(int64_t){1}, to + i, some);
    }
}

/* Weights times the scale of a channel, which is their row (first), or their column, of those of
 * each group of rows. */
struct scaled {
    struct sdx_recipe recipe;
    const double *scale; /* of each row, or of each weight in a row of each group */
    int64_t groups;
    bool first;
};
static int64_t first_channel(const struct sdx_tensor *w, bool first, int64_t groups, int64_t row)
{
    return first ? row : row / (w->dims[0] / groups) * w->dims[1];
}

static void make_scaled(const struct sdx_recipe *recipe, void *elements)
{
    const struct scaled *s = (const struct scaled *)recipe;
    const struct sdx_tensor *w = recipe->of;
    const int64_t rows = w->dims[0], row = w->count / rows, each = row / w->dims[1];
    float *to = elements;
    const char *from = w->data;
    if (w->recipe) {
        sdx_tensor_copy_elements(w, to);
        from = elements;
    }
    for (int64_t i = 0; i < rows; i++, from += (size_t)row * sizeof *to)
        scale_row(from, s->scale + first_channel(w, s->first, s->groups, i) * (s->first ? 1 : each),
                  !s->first, to + i * row, row);
}

static struct sdx_tensor *new_scaled(struct sdx_ir *ir, const struct sdx_tensor *w, bool first,
                                     int64_t groups, const struct sdx_affine *f)
{
    const int64_t each = first ? 1 : w->count / w->dims[0] / w->dims[1];
    struct scaled *s = sdx_arena_alloc(ir->arena, sizeof *s);
    double *scale = sdx_arena_array(ir->arena, (size_t)(f->channels * each), sizeof *scale);
    if (!s || !scale) return NULL;
    for (int64_t i = 0; i < f->channels * each; i++)
        scale[i] = f->scale[i / each];
    *s = (struct scaled){{make_scaled, w, NULL}, scale, groups, first};
    return sdx_match_new_recipe(ir, &s->recipe, w->rank, w->dims);
}

/* w: NULL: as it was. */
static enum sdx_status set_weights(struct sdx_context *cx, struct sdx_ir *ir,
                                   struct sdx_ir_graph *g, struct sdx_ir_node *node,
                                   struct sdx_tensor *w, struct sdx_tensor *bias)
{
    int32_t *inputs = sdx_arena_array(ir->arena, 3, sizeof *inputs);
    if (!inputs) return SDX_FAIL_MEMORY(cx);
    inputs[0] = node->inputs[0];
    inputs[1] = w ? sdx_match_add_constant(ir, g, node->name, w) : node->inputs[1];
    inputs[2] = sdx_match_add_constant(ir, g, node->name, bias);
    if (inputs[1] < 0 || inputs[2] < 0) return SDX_FAIL_MEMORY(cx);
    node->inputs = inputs;
    node->count_inputs = 3;
    return SDX_OK;
}

/* New weights and bias. */
static enum sdx_status apply(struct sdx_context *cx, struct sdx_ir *ir, struct sdx_ir_graph *g,
                             const struct maker *m, const struct sdx_affine *f)
{
    struct sdx_tensor *w = f->scales ? new_scaled(ir, m->w, m->first, m->groups, f) : NULL;
    struct sdx_tensor *bias = sdx_match_new_constant(ir, SDX_F32, 1, &m->channels);
    if ((f->scales && !w) || !bias) return SDX_FAIL_MEMORY(cx);
    for (int64_t c = 0; c < m->channels; c++)
        ((float *)bias->data)[c] =
            (float)((m->bias ? sdx_match_f32_at(m->bias, c) : 0) * f->scale[c] + f->shift[c]);
    return set_weights(cx, ir, g, m->node, w, bias);
}

static enum sdx_status fold(struct sdx_context *cx, struct sdx_ir *ir, int32_t graph,
                            struct sdx_ir_node *after, const int32_t *uses, bool *changed)
{
    struct sdx_ir_graph *g = &ir->graphs[graph];
    const bool is_norm = sdx_str_is(after->op_type, "BatchNormalization");
    for (int i = 0; i < (is_norm ? 1 : after->count_inputs); i++) {
        const int32_t x = after->inputs[i];
        struct maker m;
        int operand = 0;
        if (x < 0 || uses[x] != 1 || !maker_of(g, x, &m)) continue;
        const int rank = m.is_gemm ? 2 : m.w->rank;
        struct sdx_affine f;
        SDX_TRY(sdx_affine_init(cx, ir, m.channels, &f));
        if (!sdx_affine_read(g, after, rank, &f, &operand) || operand != i) continue;
        SDX_TRY(apply(cx, ir, g, &m, &f));
        /* the product makes the other's value: a graph output keeps its name */
        g->values[x].producer = -1;
        sdx_ir_node_set_output(g, m.node, (int32_t)(m.node - g->nodes), 0, after->outputs[0]);
        after->is_dead = true;
        *changed = true;
        return SDX_OK;
    }
    return SDX_OK;
}

/* A normalisation of the columns of a MatMul, whose rows lie in one axis there (LeViT): the weights
 * take the scale, and an Add of the shift comes behind the product. */
static enum sdx_status fold_columns(struct sdx_context *cx, struct sdx_ir *ir,
                                    struct sdx_ir_graph *g, int32_t norm, const int32_t *uses,
                                    bool *changed)
{
    const int32_t x = g->nodes[norm].inputs[0], result = g->nodes[norm].outputs[0];
    struct sdx_ir_node *flat = sdx_match_maker(g, x, "Flatten");
    if (!flat) flat = sdx_match_maker(g, x, "Reshape");
    const int32_t y = flat ? flat->inputs[0] : x;
    struct sdx_ir_node *product = sdx_match_plain_product(g, y);
    const struct sdx_tensor *w = product ? sdx_match_weights(g, product, 1) : NULL;
    if (!w || w->dtype != SDX_F32 || w->rank != 2 || w->count == 0 || uses[x] != 1 || uses[y] != 1)
        return SDX_OK;
    const struct sdx_type *rows = &g->values[x].type, *of = &g->values[y].type;
    const int64_t n = w->dims[1];
    if (!rows->has_shape || rows->rank != 2 || rows->dims[1] != n || !of->has_shape ||
        of->rank < 2 || of->dims[of->rank - 1] != n)
        return SDX_OK;
    struct sdx_affine f;
    SDX_TRY(sdx_affine_init(cx, ir, n, &f));
    if (!normalisation(g, &g->nodes[norm], &f)) return SDX_OK;
    struct sdx_tensor *scaled = new_scaled(ir, w, false, 1, &f);
    struct sdx_tensor *shift = sdx_match_new_constant(ir, SDX_F32, 1, &n);
    int32_t *inputs = sdx_arena_array(ir->arena, 2, sizeof *inputs);
    if (!scaled || !shift || !inputs) return SDX_FAIL_MEMORY(cx);
    for (int64_t c = 0; c < n; c++)
        ((float *)shift->data)[c] = (float)f.shift[c];
    const struct sdx_str name = product->name;
    inputs[0] = product->inputs[0];
    inputs[1] = sdx_match_add_constant(ir, g, name, scaled);
    const int32_t of_add[] = {sdx_match_value_like(ir, g, y),
                              sdx_match_add_constant(ir, g, name, shift)};
    if (inputs[1] < 0 || of_add[0] < 0 || of_add[1] < 0) return SDX_FAIL_MEMORY(cx);
    product->inputs = inputs;
    sdx_ir_node_set_output(g, product, (int32_t)(product - g->nodes), 0, of_add[0]);
    sdx_match_discard(g, &g->nodes[norm]);
    if (flat) {
        g->values[x].producer = -1;
        sdx_ir_node_set_output(g, flat, (int32_t)(flat - g->nodes), 0, result);
    }
    *changed = true;
    return sdx_match_add_node(ir, g, "Add", 14, name, of_add, 2, flat ? y : result, 0)
               ? SDX_OK
               : SDX_FAIL_MEMORY(cx);
}

/* ---- what is before ---- */

/* Does a Pad bring in nothing but other elements of the same channels? */
static bool keeps_channels(const struct sdx_ir_graph *g, const struct sdx_ir_node *pad)
{
    const struct sdx_type *type = &g->values[pad->outputs[0]].type;
    int64_t count = 0;
    const int64_t *pads = sdx_match_ints(g, pad, 1, &count);
    return pads && type->has_shape && type->rank > 2 && count == 2 * type->rank &&
           (pad->count_inputs < 4 || pad->inputs[3] < 0) && !pads[1] && !pads[type->rank + 1] &&
           !sdx_str_is(sdx_ir_attr_str(pad, "mode", "constant"), "constant");
}

/* The sum of n channels' shifts, each times the sum of its `each` weights, from number `at` on. */
static double shifted_sum(const struct sdx_tensor *w, int64_t at, int64_t each, const double *shift,
                          int64_t n)
{
    double sum[4] = {0}; /* which need not wait for one another */
    for (int64_t c = 0; c < n; c++) {
        double of = 0;
        for (int64_t e = 0; e < each; e++, at++)
            of += sdx_match_f32_at(w, at);
        sum[c % 4] += of * shift[c];
    }
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

/* bias[o] + the sum of all weights of output o times the shift of what they meet */
static struct sdx_tensor *shifted_bias(struct sdx_ir *ir, const struct maker *m,
                                       const struct sdx_tensor *w, bool first, int64_t groups,
                                       const struct sdx_affine *f)
{
    const int64_t rows = w->dims[0], columns = w->dims[1], row = w->count / rows;
    const double alpha = m->is_gemm ? sdx_ir_attr_float(m->node, "alpha", 1) : 1;
    struct sdx_tensor *bias = sdx_match_new_constant(ir, SDX_F32, 1, &m->channels);
    double *sums = sdx_arena_array(ir->arena, (size_t)m->channels, sizeof *sums);
    if (!bias || !sums) return NULL;
    for (int64_t i = 0; i < rows; i++) {
        const double *shift = f->shift + first_channel(w, first, groups, i);
        if (!first) sums[i] = shifted_sum(w, i * row, row / columns, shift, columns);
        for (int64_t c = 0; first && c < columns; c++)
            sums[c] += sdx_match_f32_at(w, i * row + c) * *shift;
    }
    for (int64_t c = 0; c < m->channels; c++)
        ((float *)bias->data)[c] =
            (float)((m->bias ? sdx_match_f32_at(m->bias, c) : 0) + alpha * sums[c]);
    return bias;
}

static enum sdx_status fold_before(struct sdx_context *cx, struct sdx_ir *ir,
                                   struct sdx_ir_graph *g, const struct sdx_ir_node *node,
                                   const int32_t *uses, bool *changed)
{
    struct maker m;
    if (!maker_of(g, node->outputs[0], &m) || sdx_str_is(node->op_type, "ConvTranspose"))
        return SDX_OK;
    int32_t x = m.node->inputs[0];
    struct sdx_ir_node *pad = m.is_gemm ? NULL : sdx_match_maker(g, x, "Pad");
    if (pad && (uses[x] != 1 || !keeps_channels(g, pad))) return SDX_OK;
    if (pad) x = pad->inputs[0];
    struct sdx_ir_node *norm = sdx_match_maker(g, x, "BatchNormalization");
    const struct sdx_str padding = sdx_ir_attr_str(m.node, "auto_pad", "NOTSET");
    if (!norm || uses[x] != 1 || sdx_ir_attr_int(m.node, "transA", 0) ||
        !sdx_match_all_are(m.node, "pads", 0) ||
        !(sdx_str_is(padding, "NOTSET") || sdx_str_is(padding, "VALID")))
        return SDX_OK;
    const bool first = m.is_gemm && !m.first;
    const int64_t groups = m.is_gemm ? 1 : sdx_ir_attr_int(m.node, "group", 1);
    struct sdx_affine f;
    if (groups < 1 || m.w->dims[0] % groups) return SDX_OK;
    SDX_TRY(sdx_affine_init(cx, ir, first ? m.w->dims[0] : m.w->dims[1] * groups, &f));
    if (!normalisation(g, norm, &f)) return SDX_OK;
    const struct sdx_tensor *elements = sdx_match_constant(g, m.node->inputs[1]);
    if (!elements) return SDX_FAIL_MEMORY(cx);
    struct sdx_tensor *w = new_scaled(ir, m.w, first, groups, &f);
    struct sdx_tensor *bias = shifted_bias(ir, &m, elements, first, groups, &f);
    if (!w || !bias) return SDX_FAIL_MEMORY(cx);
    SDX_TRY(set_weights(cx, ir, g, m.node, w, bias));
    *(pad ? &pad->inputs[0] : &m.node->inputs[0]) = norm->inputs[0];
    norm->is_dead = true;
    *changed = true;
    return SDX_OK;
}

enum sdx_status sdx_pass_affine(struct sdx_context *cx, struct sdx_ir *ir, bool *changed)
{
    static const char *const ops[] = {"BatchNormalization", "Mul", "Div", "Add", "Sub"};
    for (int32_t n_graph = 0; n_graph < ir->count_graphs; n_graph++) {
        struct sdx_ir_graph *g = &ir->graphs[n_graph];
        int32_t *uses = sdx_ir_uses(g, ir->arena);
        if (!uses) return SDX_FAIL_MEMORY(cx);
        const int32_t count = g->count_nodes; /* uses tells of their values */
        for (int32_t n = 0; n < count; n++) {
            struct sdx_ir_node *node = &g->nodes[n];
            for (int i = 0; i < SDX_COUNT_OF(ops) && !node->is_dead && !node->domain.len; i++)
                if (sdx_str_is(node->op_type, ops[i]))
                    SDX_TRY(fold(cx, ir, n_graph, node, uses, changed));
            if (sdx_match_is(node, "BatchNormalization"))
                SDX_TRY(fold_columns(cx, ir, g, n, uses, changed));
        }
        for (int32_t n = 0; n < count; n++)
            if (!g->nodes[n].is_dead && g->nodes[n].count_outputs > 0 && !g->nodes[n].domain.len)
                SDX_TRY(fold_before(cx, ir, g, &g->nodes[n], uses, changed));
        if (g->count_nodes > count) SDX_TRY(sdx_ir_sort(cx, ir, g));
    }
    return SDX_OK;
}
