/* SPDX-License-Identifier: Apache-2.0
 * Folds a BatchNormalization behind a convolution with constant weights into those weights and the
 * bias: w' = w * s, b' = (b - mean) * s + beta with s = gamma / sqrt(variance + epsilon), for each
 * output channel. Re-associates: results differ in the last bits. */
#include <math.h>

#include "passes/match.h"
#include "passes/passes.h"

static const struct sdx_tensor *constant_f32(const struct sdx_ir_graph *g,
                                             const struct sdx_ir_node *node, int i)
{
    const struct sdx_tensor *t =
        i < node->count_inputs ? sdx_match_constant(g, node->inputs[i]) : NULL;
    return t && t->dtype == SDX_F32 ? t : NULL;
}

static struct sdx_tensor *new_constant(struct sdx_context *cx, struct sdx_ir *ir, int rank,
                                       const int64_t *dims)
{
    struct sdx_tensor *t = sdx_arena_alloc(ir->arena, sizeof *t);
    int64_t *own = sdx_arena_copy(ir->arena, dims, (size_t)rank * sizeof *dims);
    if (!t || !own || !sdx_dims_count(dims, rank, &t->count)) {
        (void)SDX_FAIL_MEMORY(cx);
        return NULL;
    }
    t->kind = SDX_KIND_TENSOR;
    t->dtype = SDX_F32;
    t->rank = rank;
    t->dims = own;
    t->bytes = (size_t)t->count * sizeof(float);
    t->is_constant = t->in_model = true;
    t->data = sdx_arena_alloc(ir->arena, t->bytes + 64);
    if (t->data) return t;
    (void)SDX_FAIL_MEMORY(cx);
    return NULL;
}

static int32_t add_value(struct sdx_ir *ir, struct sdx_ir_graph *g, struct sdx_str name,
                         struct sdx_tensor *t)
{
    int32_t v = sdx_ir_value_create(ir, g, name);
    if (v < 0) return -1;
    g->values[v].constant = t;
    g->values[v].type = (struct sdx_type){.kind = SDX_KIND_TENSOR,
                                          .dtype = t->dtype,
                                          .has_shape = true,
                                          .rank = t->rank,
                                          .dims = t->dims};
    return v;
}

/* Channels are axis 0 of Conv weights. */
static void scale_weights(const struct sdx_ir_node *bn, const struct sdx_tensor *const p[4],
                          const struct sdx_tensor *w, const struct sdx_tensor *bias,
                          struct sdx_tensor *w_new, struct sdx_tensor *b_new)
{
    double epsilon = sdx_ir_attr_float(bn, "epsilon", 1e-5f);
    const float *gamma = p[0]->data, *beta = p[1]->data, *mean = p[2]->data, *variance = p[3]->data;
    int64_t channels = w->dims[0], each = channels ? w->count / channels : 0;
    for (int64_t c = 0; c < channels; c++) {
        double s = gamma[c] / sqrt(variance[c] + epsilon),
               b = bias ? ((const float *)bias->data)[c] : 0;
        for (int64_t i = c * each; i < (c + 1) * each; i++) {
            float old; /* the weights may lie at an odd address of the file */
            memcpy(&old, (const char *)w->data + (size_t)i * sizeof old, sizeof old);
            ((float *)w_new->data)[i] = (float)(old * s);
        }
        ((float *)b_new->data)[c] = (float)((b - mean[c]) * s + beta[c]);
    }
}

static enum sdx_status fold(struct sdx_context *cx, struct sdx_ir *ir, int32_t graph,
                            struct sdx_ir_node *bn, const int32_t *uses, bool *changed)
{
    struct sdx_ir_graph *g = &ir->graphs[graph];
    int32_t x = bn->inputs[0];
    struct sdx_ir_node *conv = sdx_match_maker(g, x, "Conv");
    if (!conv || uses[x] != 1 || sdx_ir_attr_int(bn, "training_mode", 0)) return SDX_OK;
    if (sdx_match_is_fused(conv)) return SDX_OK; /* with what stood between the two */
    for (int k = 1; k < bn->count_outputs; k++)
        if (bn->outputs[k] >= 0) return SDX_OK;
    const struct sdx_tensor *w = constant_f32(g, conv, 1), *bias = constant_f32(g, conv, 2);
    if (!w || w->rank < 3 || (conv->count_inputs > 2 && conv->inputs[2] >= 0 && !bias))
        return SDX_OK;
    const struct sdx_tensor *p[4];
    for (int i = 0; i < 4; i++) {
        p[i] = constant_f32(g, bn, i + 1);
        if (!p[i] || p[i]->count != w->dims[0]) return SDX_OK;
    }
    struct sdx_tensor *w_new = new_constant(cx, ir, w->rank, w->dims),
                      *b_new = new_constant(cx, ir, 1, w->dims);
    int32_t *inputs = sdx_arena_array(ir->arena, 3, sizeof *inputs);
    if (!w_new || !b_new || !inputs)
        return cx->error.status ? cx->error.status : SDX_FAIL_MEMORY(cx);
    scale_weights(bn, p, w, bias, w_new, b_new);
    inputs[0] = conv->inputs[0];
    inputs[1] = add_value(ir, g, conv->name, w_new);
    inputs[2] = add_value(ir, g, conv->name, b_new);
    if (inputs[1] < 0 || inputs[2] < 0) return SDX_FAIL_MEMORY(cx);
    conv->inputs = inputs;
    conv->count_inputs = 3;
    /* the convolution makes the normalisation's value: a graph output keeps its name */
    int32_t y = bn->outputs[0];
    conv->outputs[0] = y;
    g->values[y].producer = g->values[x].producer;
    g->values[y].producer_slot = 0;
    g->values[x].producer = -1;
    bn->is_dead = true;
    *changed = true;
    return SDX_OK;
}

enum sdx_status sdx_pass_batch_norm(struct sdx_context *cx, struct sdx_ir *ir, bool *changed)
{
    for (int32_t n_graph = 0; n_graph < ir->count_graphs; n_graph++) {
        struct sdx_ir_graph *g = &ir->graphs[n_graph];
        int32_t *uses = sdx_arena_array(ir->arena, (size_t)g->count_values + 1, sizeof *uses);
        if (!uses) return SDX_FAIL_MEMORY(cx);
        sdx_ir_count_uses(g, uses);
        for (int32_t n = 0; n < g->count_nodes; n++) {
            struct sdx_ir_node *node = &g->nodes[n];
            if (!node->is_dead && !node->domain.len &&
                sdx_str_is(node->op_type, "BatchNormalization"))
                SDX_TRY(fold(cx, ir, n_graph, node, uses, changed));
        }
    }
    return SDX_OK;
}
