/* SPDX-License-Identifier: Apache-2.0
 * Convolutions that read one image alike and leave many lanes of their last blocks of channels
 * empty become one with a Split behind it, as the heads of a detector (YuNet: 1, 4, 1 and 10
 * outputs). Each output is computed as before. */
#include "kernels/conv_block.h"
#include "passes/match.h"
#include "passes/passes.h"

enum {
    SIBLINGS_MOST = 16,
    SPLIT_OPSET = 13,
    WORTH = 32 /* multiply-adds to be saved for each vector that the Split may copy */
};

struct work {
    struct sdx_context *cx;
    struct sdx_ir *ir;
    struct sdx_ir_graph *g;
    int32_t *uses;       /* of the values */
    int32_t count_nodes; /* before there were new ones */
    bool did;
};

struct siblings {
    int32_t nodes[SIBLINGS_MOST];
    int count;
};

static const struct sdx_tensor *weights_of(const struct work *w, int32_t node)
{
    return sdx_match_weights(w->g, &w->g->nodes[node], 1);
}

static bool has_bias(const struct sdx_ir_node *node)
{
    return node->count_inputs > 2 && node->inputs[2] >= 0;
}
/* A Conv of constants, of one group, without a residual; the channels of its output are known. */
static bool is_candidate(const struct work *w, int32_t n)
{
    const struct sdx_ir_node *node = &w->g->nodes[n];
    if (!sdx_match_is(node, "Conv") || node->count_inputs > 3 || node->outputs[0] < 0 ||
        sdx_ir_attr_int(node, "group", 1) != 1)
        return false;
    const struct sdx_tensor *t = weights_of(w, n);
    const struct sdx_type *y = &w->g->values[node->outputs[0]].type;
    if (!t || t->rank < 3 || t->count == 0 || !y->has_shape || y->rank != t->rank) return false;
    const struct sdx_tensor *bias = sdx_match_constant_f32(w->g, node, 2);
    return !has_bias(node) || (bias && bias->count == t->dims[0]);
}

static bool same_list(const void *a, const void *b, int64_t count, size_t size)
{
    return count <= 0 || memcmp(a, b, (size_t)count * size) == 0;
}
static bool same_attr(const struct sdx_ir_attr *a, const struct sdx_ir_attr *b)
{
    if (a->type != b->type || a->count != b->count) return false;
    switch (a->type) {
    case SDX_ATTR_INT: return a->i == b->i;
    case SDX_ATTR_FLOAT: return same_list(&a->f, &b->f, 1, sizeof a->f);
    case SDX_ATTR_STRING: return sdx_str_equal(a->s, b->s);
    case SDX_ATTR_INTS: return same_list(a->ints, b->ints, a->count, sizeof *a->ints);
    case SDX_ATTR_FLOATS: return same_list(a->floats, b->floats, a->count, sizeof *a->floats);
    default: return false;
    }
}
static bool has_attr(const struct sdx_ir_node *node, const struct sdx_ir_attr *a)
{
    for (int i = 0; i < node->count_attrs; i++)
        if (sdx_str_equal(node->attrs[i].name, a->name)) return same_attr(&node->attrs[i], a);
    return false;
}
static bool has_attrs(const struct sdx_ir_node *node, const struct sdx_ir_node *of)
{
    for (int i = 0; i < of->count_attrs; i++)
        if (!has_attr(node, &of->attrs[i])) return false;
    return true;
}
/* Are two convolutions alike but for weights and output channels? */
static bool alike(const struct work *w, int32_t a, int32_t b)
{
    const struct sdx_ir_node *x = &w->g->nodes[a], *y = &w->g->nodes[b];
    const struct sdx_tensor *t = weights_of(w, a), *u = weights_of(w, b);
    if (t->dtype != u->dtype || t->rank != u->rank ||
        !same_list(t->dims + 1, u->dims + 1, t->rank - 1, sizeof *t->dims))
        return false;
    return has_attrs(x, y) && has_attrs(y, x);
}

/* Of output channels. */
static int64_t vectors(int64_t channels)
{
    return (channels + sdx_block_lanes() - 1) / sdx_block_lanes();
}
static int64_t channels_of(const struct work *w, const struct siblings *s)
{
    int64_t all = 0;
    for (int i = 0; i < s->count; i++)
        all += weights_of(w, s->nodes[i])->dims[0];
    return all;
}
/* Do fuller vectors save more than to copy what the Split gives? */
static bool pays(const struct work *w, const struct siblings *s)
{
    const struct sdx_tensor *t = weights_of(w, s->nodes[0]);
    const int64_t after = vectors(channels_of(w, s));
    int64_t before = 0;
    for (int i = 0; i < s->count; i++)
        before += vectors(weights_of(w, s->nodes[i])->dims[0]);
    return (before - after) * (t->count / t->dims[0]) >= WORTH * after;
}

/* The parts of input 1 or 2 one behind the other, zeros for a bias that is left out; -1: no memory.
 */
static int32_t join_constants(struct work *w, const struct siblings *s, int input)
{
    const struct sdx_tensor *first = weights_of(w, s->nodes[0]);
    int64_t dims[SDX_RANK_MAX];
    memcpy(dims, first->dims, (size_t)first->rank * sizeof *dims);
    dims[0] = channels_of(w, s);
    struct sdx_tensor *t = sdx_match_new_constant(w->ir, input == 1 ? first->dtype : SDX_F32,
                                                  input == 1 ? first->rank : 1, dims);
    if (!t) return -1;
    char *to = t->data;
    memset(to, 0, t->bytes);
    for (int i = 0; i < s->count; i++) {
        const struct sdx_ir_node *node = &w->g->nodes[s->nodes[i]];
        const struct sdx_tensor *part =
            input == 1 || has_bias(node) ? sdx_match_constant(w->g, node->inputs[input]) : NULL;
        if (part) memcpy(to, part->data, part->bytes);
        to += (size_t)weights_of(w, s->nodes[i])->dims[0] * (t->bytes / (size_t)dims[0]);
    }
    return sdx_match_add_constant(w->ir, w->g, w->g->nodes[s->nodes[0]].name, t);
}

/* The convolution of x to all outputs: *y. */
static enum sdx_status add_conv(struct work *w, const struct siblings *s, int32_t x, int32_t *y)
{
    const struct sdx_ir_node first = w->g->nodes[s->nodes[0]];
    bool biased = false;
    for (int i = 0; i < s->count; i++)
        biased = biased || has_bias(&w->g->nodes[s->nodes[i]]);
    const int32_t inputs[] = {x, join_constants(w, s, 1), biased ? join_constants(w, s, 2) : -1};
    *y = sdx_match_value_channels(w->ir, w->g, first.outputs[0], channels_of(w, s));
    if (inputs[1] < 0 || (biased && inputs[2] < 0) || *y < 0) return SDX_FAIL_MEMORY(w->cx);
    struct sdx_ir_node *node = sdx_match_add_node(w->ir, w->g, "Conv", first.opset, first.name,
                                                  inputs, biased ? 3 : 2, *y, first.count_attrs);
    if (!node) return SDX_FAIL_MEMORY(w->cx);
    for (int i = 0; i < first.count_attrs; i++)
        node->attrs[i] = first.attrs[i];
    return SDX_OK;
}

/* Of x to what the convolutions gave. */
static enum sdx_status add_split(struct work *w, const struct siblings *s, int32_t x)
{
    int64_t lengths[SIBLINGS_MOST];
    for (int i = 0; i < s->count; i++)
        lengths[i] = weights_of(w, s->nodes[i])->dims[0];
    const int32_t inputs[] = {x, sdx_match_add_ints(w->ir, w->g, "split", lengths, s->count)};
    int32_t *outputs = sdx_arena_array(w->ir->arena, (size_t)s->count, sizeof *outputs);
    if (inputs[1] < 0 || !outputs) return SDX_FAIL_MEMORY(w->cx);
    const struct sdx_ir_node first = w->g->nodes[s->nodes[0]];
    struct sdx_ir_node *node = sdx_match_add_node(w->ir, w->g, "Split", SPLIT_OPSET, first.name,
                                                  inputs, 2, first.outputs[0], 1);
    if (!node) return SDX_FAIL_MEMORY(w->cx);
    node->attrs[0] = (struct sdx_ir_attr){.name = SDX_STR("axis"), .type = SDX_ATTR_INT, .i = 1};
    node->outputs = outputs;
    node->count_outputs = s->count;
    for (int i = 0; i < s->count; i++) {
        struct sdx_ir_node *made = &w->g->nodes[s->nodes[i]];
        made->is_dead = true;
        sdx_ir_node_set_output(w->g, node, w->g->count_nodes - 1, i, made->outputs[0]);
    }
    w->did = true;
    return SDX_OK;
}

static enum sdx_status join_readers(struct work *w, int32_t n)
{
    const int32_t x = w->g->nodes[n].inputs[0];
    struct siblings s = {.nodes = {n}, .count = 1};
    int32_t y;
    if (x < 0 || w->uses[x] < 2) return SDX_OK;
    for (int32_t m = n + 1; m < w->count_nodes && s.count < SIBLINGS_MOST; m++)
        if (w->g->nodes[m].count_inputs > 0 && w->g->nodes[m].inputs[0] == x &&
            is_candidate(w, m) && alike(w, n, m))
            s.nodes[s.count++] = m;
    if (s.count < 2 || !pays(w, &s)) return SDX_OK;
    SDX_TRY(add_conv(w, &s, x, &y));
    return add_split(w, &s, y);
}

enum sdx_status sdx_pass_siblings(struct sdx_context *cx, struct sdx_ir *ir, bool *changed)
{
    for (int32_t n_graph = 0; n_graph < ir->count_graphs; n_graph++) {
        struct work w = {.cx = cx, .ir = ir, .g = &ir->graphs[n_graph]};
        w.count_nodes = w.g->count_nodes;
        w.uses = sdx_ir_uses(w.g, ir->arena);
        if (!w.uses) return SDX_FAIL_MEMORY(cx);
        for (int32_t n = 0; n < w.count_nodes; n++)
            if (is_candidate(&w, n)) SDX_TRY(join_readers(&w, n));
        if (w.did) SDX_TRY(sdx_ir_sort(cx, ir, w.g));
        *changed = *changed || w.did;
    }
    return SDX_OK;
}
