/* SPDX-License-Identifier: Apache-2.0
 * The sum of two convolutions of one image becomes a convolution, where the taps of one lie on
 * those of the other, and so does the sum of a convolution and a BatchNormalization of its image:
 * what RepVGG, MobileOne and their like train as branches and are often exported with (Ding et al.,
 * "RepVGG", 2021). Re-associates: results differ in the last bits. */
#include "ops/window.h"
#include "passes/affine.h"
#include "passes/match.h"
#include "passes/passes.h"

/* A Conv of constant f32 weights. */
struct branch {
    struct sdx_ir_node *node;
    const struct sdx_tensor *w, *bias; /* bias: NULL if there is none */
    int64_t groups;
    struct sdx_window window;
    int64_t extent[SDX_RANK_MAX]; /* of the window */
};

static bool branch_of(struct sdx_context *cx, const struct sdx_ir_graph *g, int32_t value,
                      struct branch *b)
{
    struct sdx_ir_node *node = sdx_match_maker(g, value, "Conv");
    if (!node || sdx_match_is_fused(node)) return false;
    *b = (struct branch){.node = node, .w = sdx_match_weights(g, node, 1)};
    b->bias = sdx_match_constant_f32(g, node, 2);
    b->groups = sdx_ir_attr_int(node, "group", 1);
    if (!b->w || b->w->dtype != SDX_F32 ||
        (node->count_inputs > 2 && node->inputs[2] >= 0 && !b->bias))
        return false;
    if (b->w->rank < 3 || b->groups < 1 || b->w->dims[0] % b->groups != 0 ||
        (b->bias && b->bias->count != b->w->dims[0]))
        return false;
    if (sdx_window_read(cx, node, b->w->rank - 2, b->w->dims + 2, &b->window) != SDX_OK) {
        sdx_context_clear(cx); /* said when the model runs, if it comes there */
        return false;
    }
    for (int i = 0; i < b->window.rank; i++)
        if (!sdx_window_extent(&b->window, i, &b->extent[i])) return false;
    return b->window.auto_pad == SDX_PAD_EXPLICIT;
}

/* Place in the kernel of `large` of the tap of another kernel that reads `from` pixels behind the
 * first pixel of the image at output 0; -1: it has none there. */
static int64_t place(const struct branch *large, int axis, int64_t from)
{
    const struct sdx_window *w = &large->window;
    const int64_t at = from + w->pad_begin[axis], d = w->dilation[axis];
    return at >= 0 && at % d == 0 && at / d < w->kernel[axis] ? at / d : -1;
}

/* How many more outputs than inputs of stride 1 an axis has. */
static int64_t growth(const struct branch *b, int axis)
{
    return b->window.pad_begin[axis] + b->window.pad_end[axis] + 1 - b->extent[axis];
}

/* Place in the kernel of `large` of tap t of `small` along an axis; -1: it has none there. */
static int64_t place_of(const struct branch *small, const struct branch *large, int axis, int64_t t)
{
    const struct sdx_window *w = &small->window;
    return place(large, axis, t * w->dilation[axis] - w->pad_begin[axis]);
}

/* Do all taps of `small` lie on taps of `large`, and both have as many outputs on any image? */
static bool lies_on(const struct branch *small, const struct branch *large)
{
    if (small->groups != large->groups || small->w->rank != large->w->rank ||
        !sdx_dims_equal(small->w->dims, 2, large->w->dims, 2))
        return false;
    for (int i = 0; i < small->window.rank; i++) {
        if (small->window.stride[i] != large->window.stride[i] ||
            growth(small, i) != growth(large, i))
            return false;
        for (int64_t t = 0; t < small->window.kernel[i]; t++)
            if (place_of(small, large, i, t) < 0) return false;
    }
    return true;
}

/* Weights of a Conv and what is added to them: those of another one, or at one tap a scale for each
 * channel. */
struct summed {
    struct sdx_recipe recipe;
    const struct sdx_tensor *w; /* NULL: a scale */
    const double *scale;
    const int64_t *places; /* of the taps of w, or of the scale, in a filter */
};

static void make_summed(const struct sdx_recipe *recipe, void *elements)
{
    const struct summed *s = (const struct summed *)recipe;
    const int64_t channels = recipe->of->dims[0], icg = recipe->of->dims[1];
    const int64_t filters = channels * icg, each = recipe->of->count / filters;
    float *to = elements;
    sdx_tensor_copy_elements(recipe->of, to);
    const int64_t taps = s->w ? s->w->count / filters : 1;
    for (int64_t i = 0; s->w && i < s->w->count; i++)
        to[i / taps * each + s->places[i % taps]] += sdx_match_f32_at(s->w, i);
    for (int64_t c = 0; !s->w && c < channels; c++)
        to[(c * icg + c % icg) * each + s->places[0]] += (float)s->scale[c];
}

/* Index among the taps of one filter of `large` of tap `t` among those of `small`. */
static int64_t index_of(const struct branch *small, const struct branch *large, int64_t t)
{
    int64_t index = 0, step = 1;
    for (int i = small->window.rank - 1; i >= 0; i--) {
        index += place_of(small, large, i, t % small->window.kernel[i]) * step;
        step *= large->window.kernel[i];
        t /= small->window.kernel[i];
    }
    return index;
}

/* The Conv gets the sum as its weights, and `shift` added to its bias. */
static enum sdx_status take_weights(struct sdx_context *cx, struct sdx_ir *ir,
                                    struct sdx_ir_graph *g, const struct branch *b,
                                    const struct summed *sum, const double *shift)
{
    struct sdx_ir_node *conv = b->node;
    struct summed *own = sdx_arena_copy(ir->arena, sum, sizeof *sum);
    struct sdx_tensor *w =
        own ? sdx_match_new_recipe(ir, &own->recipe, b->w->rank, b->w->dims) : NULL;
    struct sdx_tensor *bias = sdx_match_new_constant(ir, SDX_F32, 1, b->w->dims);
    int32_t *inputs = sdx_arena_array(ir->arena, 3, sizeof *inputs);
    if (!w || !bias || !inputs) return SDX_FAIL_MEMORY(cx);
    for (int64_t c = 0; c < bias->count; c++)
        ((float *)bias->data)[c] = (b->bias ? sdx_match_f32_at(b->bias, c) : 0) + (float)shift[c];
    inputs[0] = conv->inputs[0];
    inputs[1] = sdx_match_add_constant(ir, g, conv->name, w);
    inputs[2] = sdx_match_add_constant(ir, g, conv->name, bias);
    if (inputs[1] < 0 || inputs[2] < 0) return SDX_FAIL_MEMORY(cx);
    conv->inputs = inputs;
    conv->count_inputs = 3;
    return SDX_OK;
}

static enum sdx_status add_conv(struct sdx_context *cx, struct sdx_ir *ir, struct sdx_ir_graph *g,
                                const struct branch *small, const struct branch *large)
{
    const int64_t channels = small->w->dims[0];
    const int64_t taps = small->w->count / (channels * small->w->dims[1]);
    int64_t *places = sdx_arena_array(ir->arena, (size_t)taps, sizeof *places);
    double *shift = sdx_arena_array(ir->arena, (size_t)channels, sizeof *shift);
    const struct summed sum = {.recipe = {make_summed, large->w, NULL},
                               .w = sdx_match_constant(g, small->node->inputs[1]),
                               .places = places};
    if (!places || !shift || !sum.w) return SDX_FAIL_MEMORY(cx);
    for (int64_t t = 0; t < taps; t++)
        places[t] = index_of(small, large, t);
    for (int64_t c = 0; small->bias && c < channels; c++)
        shift[c] = sdx_match_f32_at(small->bias, c);
    return take_weights(cx, ir, g, large, &sum, shift);
}

/* Index of the tap of the pixel itself of a Conv that gives as many pixels and channels as it gets;
 * -1: it has none, or does not. */
static int64_t centre_of(const struct branch *b)
{
    int64_t centre = 0;
    if (b->w->dims[1] * b->groups != b->w->dims[0]) return -1;
    for (int i = 0; i < b->window.rank; i++) {
        const int64_t tap = place(b, i, 0);
        if (tap < 0 || b->window.stride[i] != 1 || growth(b, i) != 0) return -1;
        centre = centre * b->window.kernel[i] + tap;
    }
    return centre;
}

static enum sdx_status add_norm(struct sdx_context *cx, struct sdx_ir *ir, struct sdx_ir_graph *g,
                                const struct sdx_affine *f, const struct branch *conv,
                                int64_t centre)
{
    const struct summed sum = {.recipe = {make_summed, conv->w, NULL},
                               .scale = f->scale,
                               .places = sdx_arena_copy(ir->arena, &centre, sizeof centre)};
    if (!sum.places) return SDX_FAIL_MEMORY(cx);
    return take_weights(cx, ir, g, conv, &sum, f->shift);
}

/* The Conv makes what the sum made. */
static void take_sum(struct sdx_ir_graph *g, const struct branch *b, struct sdx_ir_node *add,
                     bool *changed)
{
    g->values[b->node->outputs[0]].producer = -1;
    sdx_ir_node_set_output(g, b->node, (int32_t)(b->node - g->nodes), 0, add->outputs[0]);
    add->is_dead = true;
    *changed = true;
}

static enum sdx_status join(struct sdx_context *cx, struct sdx_ir *ir, struct sdx_ir_graph *g,
                            struct sdx_ir_node *add, const int32_t *uses, int32_t count,
                            bool *changed)
{
    struct branch found[2];
    bool is_conv[2];
    if (add->opset < 7 || add->count_inputs != 2) return SDX_OK;
    for (int i = 0; i < 2; i++) {
        const int32_t value = add->inputs[i];
        if (value < 0 || value >= count || uses[value] != 1) return SDX_OK;
        is_conv[i] = branch_of(cx, g, value, &found[i]);
    }
    if (is_conv[0] && is_conv[1]) {
        if (found[0].node->inputs[0] != found[1].node->inputs[0]) return SDX_OK;
        const int large = lies_on(&found[0], &found[1]) ? 1 : 0;
        if (!large && !lies_on(&found[1], &found[0])) return SDX_OK;
        SDX_TRY(add_conv(cx, ir, g, &found[1 - large], &found[large]));
        take_sum(g, &found[large], add, changed);
        return SDX_OK;
    }
    for (int i = 0; i < 2; i++) {
        const struct sdx_ir_node *norm =
            is_conv[i] ? sdx_match_maker(g, add->inputs[1 - i], "BatchNormalization") : NULL;
        const int64_t centre = norm ? centre_of(&found[i]) : -1;
        struct sdx_affine f;
        int operand;
        if (centre < 0 || norm->inputs[0] != found[i].node->inputs[0]) continue;
        SDX_TRY(sdx_affine_init(cx, ir, found[i].w->dims[0], &f));
        if (!sdx_affine_read(g, norm, found[i].w->rank, &f, &operand)) continue;
        SDX_TRY(add_norm(cx, ir, g, &f, &found[i], centre));
        take_sum(g, &found[i], add, changed);
        return SDX_OK;
    }
    return SDX_OK;
}

enum sdx_status sdx_pass_branches(struct sdx_context *cx, struct sdx_ir *ir, bool *changed)
{
    for (int32_t n_graph = 0; n_graph < ir->count_graphs; n_graph++) {
        struct sdx_ir_graph *g = &ir->graphs[n_graph];
        const int32_t count = g->count_values;
        int32_t *uses = sdx_ir_uses(g, ir->arena);
        if (!uses) return SDX_FAIL_MEMORY(cx);
        for (int32_t n = 0; n < g->count_nodes; n++) {
            struct sdx_ir_node *node = &g->nodes[n];
            if (!node->is_dead && !node->domain.len && sdx_str_is(node->op_type, "Add"))
                SDX_TRY(join(cx, ir, g, node, uses, count, changed));
        }
    }
    return SDX_OK;
}
