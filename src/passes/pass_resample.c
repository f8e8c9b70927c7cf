/* SPDX-License-Identifier: Apache-2.0
 * A convolution of 1 x 1 beside what makes an image larger (Resize) or smaller (AveragePool) is
 * computed on the smaller image: the one mixes the channels of each pixel, the other the pixels of
 * each channel with weights that sum to 1, so the order is free. Where a Concat of enlarged images
 * and others is read, each enlarged one has a convolution with its own part of the weights, and the
 * results are added. Decoders of segmentation, necks of detectors and DenseNet are made so.
 * Re-associates: results differ in the last bits. */
#include "passes/match.h"
#include "passes/passes.h"

enum {
    PARTS_MAX = 32,
    /* Multiply-adds that take as long as an element of the image that is read or written: 240
     * GFLOP/s beside 20 GB/s with 512-bit vectors, fewer with narrower ones. */
    ELEMENT_COST = 48,
};

struct work {
    struct sdx_context *cx;
    struct sdx_ir *ir;
    struct sdx_ir_graph *g;
    int32_t *uses; /* of the values that were there before */
    bool did;
};

/* One operand of the Concat, or the only operand there is. */
struct part {
    int32_t value, resize; /* resize: node that makes it larger and shall come last; -1 */
    int64_t begin, channels;
};

static const struct sdx_type *type_of(const struct work *w, int32_t value)
{
    return &w->g->values[value].type;
}

static const struct sdx_tensor *constant_input(const struct work *w, const struct sdx_ir_node *node,
                                               int i)
{
    const struct sdx_tensor *t =
        i < node->count_inputs ? sdx_match_constant(w->g, node->inputs[i]) : NULL;
    return t && t->count ? t : NULL;
}

/* The factor by which a Resize of constant scales or sizes enlarges the pixels of an image of
 * whatever channels; 0 when it cannot be told, or does more. */
static double enlarges(const struct work *w, const struct sdx_ir_node *resize)
{
    const struct sdx_type *in = type_of(w, resize->inputs[0]),
                          *out = type_of(w, resize->outputs[0]);
    const int first = resize->opset < 11 || sdx_str_is(resize->op_type, "Upsample") ? 1 : 2;
    const struct sdx_tensor *scales = constant_input(w, resize, first),
                            *sizes = constant_input(w, resize, 3);
    const struct sdx_str mode =
        sdx_ir_attr_str(resize, "coordinate_transformation_mode", "half_pixel");
    double ratio = 1;
    if (!scales == !sizes || (scales && scales->dtype != SDX_F32) || sdx_ir_attr(resize, "axes") ||
        !sdx_str_is(sdx_ir_attr_str(resize, "keep_aspect_ratio_policy", "stretch"), "stretch") ||
        sdx_str_is(mode, "tf_crop_and_resize") || !in->has_shape || !out->has_shape ||
        in->rank < 3 || in->rank != out->rank || (scales ? scales : sizes)->count != in->rank ||
        in->dims[0] == -1 || in->dims[0] != out->dims[0] || in->dims[1] < 1 ||
        in->dims[1] != out->dims[1])
        return 0;
    for (int d = 0; d < in->rank; d++) {
        float scale = 1;
        if (scales) memcpy(&scale, (const char *)scales->data + (size_t)d * sizeof scale, 4);
        if (d < 2 && scale != 1) return 0;
        if (d < 2) continue;
        if (sizes && (in->dims[d] < 1 || out->dims[d] < 1)) return 0;
        ratio *= sizes ? (double)out->dims[d] / (double)in->dims[d] : scale;
    }
    return ratio;
}

/* Is it faster to resample `after` channels and convolve the smaller image than to resample
 * `before` channels and convolve the larger? A sum is read once more. */
static bool pays(double ratio, int64_t before, int64_t after)
{
    const double saved = (double)before * (double)after * (1 - 1 / ratio);
    return ratio > 1 && saved > ELEMENT_COST * (1.5 * (double)after - (double)before);
}

static bool is_pointwise(const struct work *w, const struct sdx_ir_node *conv)
{
    const struct sdx_tensor *weights = sdx_match_weights(w->g, conv, 1);
    return weights && !sdx_match_is_fused(conv) && type_of(w, conv->outputs[0])->has_shape &&
           sdx_match_is_pointwise(conv, weights);
}

/* The operands of the image that the Conv reads; 0: it has none to move. */
static int parts_of(const struct work *w, const struct sdx_ir_node *conv, struct part *parts)
{
    const struct sdx_tensor *weights = sdx_match_weights(w->g, conv, 1);
    const int32_t image = conv->inputs[0];
    const struct sdx_ir_node *concat =
        w->uses[image] == 1 ? sdx_match_maker(w->g, image, "Concat") : NULL;
    const int32_t *values = concat ? concat->inputs : &image;
    const int count = concat ? concat->count_inputs : 1;
    int64_t begin = 0;
    bool any = false;
    if (count > PARTS_MAX || (concat && sdx_ir_attr_int(concat, "axis", 0) != 1)) return 0;
    for (int i = 0; i < count; i++) {
        struct part *part = &parts[i];
        const struct sdx_type *type = type_of(w, values[i]);
        struct sdx_ir_node *resize = sdx_match_maker(w->g, values[i], "Resize");
        if (!resize) resize = sdx_match_maker(w->g, values[i], "Upsample");
        if (!type->has_shape || type->rank != weights->rank || type->dims[1] < 1) return 0;
        *part = (struct part){values[i], -1, begin, type->dims[1]};
        begin += type->dims[1];
        const double ratio =
            resize && w->uses[values[i]] == 1 && type->dtype == SDX_F32 ? enlarges(w, resize) : 0;
        if (!pays(ratio, part->channels, weights->dims[0])) continue;
        part->resize = (int32_t)(resize - w->g->nodes);
        any = true;
    }
    return any && begin == weights->dims[1] ? count : 0;
}

/* A node like `node` of other inputs, that makes `out`. */
static enum sdx_status add_node(struct work *w, const struct sdx_ir_node *node, const char *op,
                                int count, const int32_t *inputs, int32_t out)
{
    const struct sdx_ir_node like = *node;
    struct sdx_ir_node *made =
        out < 0 ? NULL
                : sdx_match_add_node(w->ir, w->g, op, like.opset, like.name, inputs, count, out, 0);
    if (!made) return SDX_FAIL_MEMORY(w->cx);
    if (sdx_str_is(like.op_type, op)) {
        made->attrs = like.attrs;
        made->count_attrs = like.count_attrs;
    }
    return SDX_OK;
}

/* Columns of the weights of those parts that are moved, or of those that are not. -1: no memory. */
static int32_t take_weights(struct work *w, const struct sdx_tensor *from, struct sdx_str name,
                            const struct part *parts, int count, bool moved)
{
    int64_t dims[SDX_RANK_MAX], channels = 0;
    for (int d = 0; d < from->rank; d++)
        dims[d] = from->dims[d];
    for (int i = 0; i < count; i++)
        channels += (parts[i].resize >= 0) == moved ? parts[i].channels : 0;
    dims[1] = channels;
    struct sdx_tensor *t = sdx_match_new_constant(w->ir, from->dtype, from->rank, dims);
    if (!t) return -1;
    char *to = t->data;
    const size_t element = t->bytes / (size_t)t->count;
    for (int64_t row = 0; row < dims[0]; row++)
        for (int i = 0; i < count; i++) {
            if ((parts[i].resize >= 0) != moved) continue;
            const size_t bytes = (size_t)parts[i].channels * element;
            memcpy(to,
                   (const char *)from->data +
                       (size_t)(row * from->dims[1] + parts[i].begin) * element,
                   bytes);
            to += bytes;
        }
    return sdx_match_add_constant(w->ir, w->g, name, t);
}

/* Resize(Conv(part)) -> out; bias -1: none. */
static enum sdx_status add_branch(struct work *w, int32_t conv, const struct part *part,
                                  int32_t bias, int32_t out)
{
    struct sdx_ir_node *node = &w->g->nodes[conv], *resize = &w->g->nodes[part->resize];
    const struct sdx_tensor *weights = constant_input(w, node, 1);
    const int64_t channels = weights->dims[0];
    int32_t inputs[4] = {-1, -1, -1, -1};
    const int count = resize->count_inputs;
    for (int i = 0; i < count; i++)
        inputs[i] = resize->inputs[i];
    const int32_t small = sdx_match_value_channels(w->ir, w->g, inputs[0], channels);
    const int32_t of_conv[] = {inputs[0], take_weights(w, weights, node->name, part, 1, true),
                               bias};
    if (small < 0 || of_conv[1] < 0) return SDX_FAIL_MEMORY(w->cx);
    SDX_TRY(add_node(w, node, "Conv", bias < 0 ? 2 : 3, of_conv, small));
    const struct sdx_tensor *sizes = constant_input(w, &w->g->nodes[part->resize], 3);
    if (sizes) {
        int64_t list[SDX_RANK_MAX];
        memcpy(list, sizes->data, sizes->bytes);
        list[1] = channels;
        inputs[3] = sdx_match_add_ints(w->ir, w->g, "sizes", list, sizes->count);
        if (inputs[3] < 0) return SDX_FAIL_MEMORY(w->cx);
    }
    inputs[0] = small;
    resize = &w->g->nodes[part->resize];
    const bool is_resize = sdx_str_is(resize->op_type, "Resize");
    return add_node(w, resize, is_resize ? "Resize" : "Upsample", count, inputs, out);
}

/* What stays of the Conv: it reads the other parts and makes `out`. */
static enum sdx_status keep_rest(struct work *w, int32_t conv, const struct part *parts, int count,
                                 int32_t out)
{
    struct sdx_ir_node *node = &w->g->nodes[conv];
    const struct sdx_ir_node *concat = sdx_match_maker(w->g, node->inputs[0], "Concat");
    const struct sdx_tensor *weights = constant_input(w, node, 1);
    int32_t inputs[PARTS_MAX], n = 0;
    int64_t channels = 0;
    for (int i = 0; i < count; i++) {
        if (parts[i].resize >= 0) continue;
        inputs[n++] = parts[i].value;
        channels += parts[i].channels;
    }
    int32_t image = inputs[0], of_conv[3] = {-1, -1, -1};
    if (n > 1) {
        image = sdx_match_value_channels(w->ir, w->g, image, channels);
        if (image < 0) return SDX_FAIL_MEMORY(w->cx);
        SDX_TRY(add_node(w, concat, "Concat", n, inputs, image));
        node = &w->g->nodes[conv];
    }
    of_conv[0] = image;
    of_conv[1] = take_weights(w, weights, node->name, parts, count, false);
    of_conv[2] = node->count_inputs > 2 ? node->inputs[2] : -1;
    if (of_conv[1] < 0) return SDX_FAIL_MEMORY(w->cx);
    return add_node(w, node, "Conv", of_conv[2] < 0 ? 2 : 3, of_conv, out);
}

/* The Conv becomes the sum of the branches and of what stays of it. */
static enum sdx_status move_parts(struct work *w, int32_t conv, const struct part *parts, int count)
{
    const struct sdx_ir_node *node = &w->g->nodes[conv];
    const int32_t result = node->outputs[0];
    int32_t bias = node->count_inputs > 2 ? node->inputs[2] : -1, sum = -1;
    int left = 0, done = 0; /* terms of the sum */
    bool has_rest = false;
    for (int i = 0; i < count; i++) {
        left += parts[i].resize >= 0;
        has_rest = has_rest || parts[i].resize < 0;
    }
    left += has_rest;
    w->g->nodes[conv].is_dead = w->did = true;
    w->g->values[result].producer = -1;
    for (int i = 0; i <= count; i++) { /* the rest last, for its store adds the others */
        if (i < count ? parts[i].resize < 0 : !has_rest) continue;
        const int32_t term =
            left == 1 && !done ? result : sdx_match_value_like(w->ir, w->g, result);
        if (term < 0) return SDX_FAIL_MEMORY(w->cx);
        if (i < count)
            SDX_TRY(add_branch(w, conv, &parts[i], done || has_rest ? -1 : bias, term));
        else
            SDX_TRY(keep_rest(w, conv, parts, count, term));
        if (done++) {
            const int32_t pair[] = {sum, term},
                          to = done == left ? result : sdx_match_value_like(w->ir, w->g, result);
            if (to < 0) return SDX_FAIL_MEMORY(w->cx);
            SDX_TRY(add_node(w, &w->g->nodes[conv], "Add", 2, pair, to));
            sum = to;
        } else {
            sum = term;
        }
    }
    return SDX_OK;
}

static enum sdx_status enlarge_last(struct work *w, int32_t n)
{
    struct part parts[PARTS_MAX];
    const int count = parts_of(w, &w->g->nodes[n], parts);
    return count ? move_parts(w, n, parts, count) : SDX_OK;
}

/* ---- averages ---- */

/* An AveragePool whose weights sum to 1 at the border too: padding is not counted. */
static bool averages(const struct sdx_ir_node *pool)
{
    if (!sdx_ir_attr_int(pool, "count_include_pad", 0)) return pool->opset >= 7;
    return sdx_match_all_are(pool, "pads", 0) && !sdx_ir_attr_int(pool, "ceil_mode", 0) &&
           sdx_str_is(sdx_ir_attr_str(pool, "auto_pad", "NOTSET"), "NOTSET");
}

/* The Conv before an AveragePool that makes the image smaller comes behind it. */
static enum sdx_status average_first(struct work *w, int32_t n)
{
    struct sdx_ir_node *pool = &w->g->nodes[n];
    const int32_t image = pool->inputs[0], result = pool->outputs[0];
    struct sdx_ir_node *conv = sdx_match_maker(w->g, image, "Conv");
    if (!conv || w->uses[image] != 1 || !is_pointwise(w, conv) || !averages(pool)) return SDX_OK;
    const struct sdx_type *in = type_of(w, image), *out = type_of(w, result);
    const struct sdx_tensor *weights = sdx_match_weights(w->g, conv, 1);
    double ratio = 1;
    for (int d = 2; d < in->rank; d++) {
        if (in->dims[d] < 1 || !out->has_shape || out->dims[d] < 1) return SDX_OK;
        ratio *= (double)in->dims[d] / (double)out->dims[d];
    }
    if (!pays(ratio, weights->dims[0], weights->dims[1])) return SDX_OK;
    const int32_t small = sdx_match_value_channels(w->ir, w->g, result, weights->dims[1]);
    if (small < 0) return SDX_FAIL_MEMORY(w->cx);
    w->did = true;
    pool->inputs[0] = conv->inputs[0];
    conv->inputs[0] = small;
    w->g->values[image].producer = -1;
    sdx_ir_node_set_output(w->g, pool, n, 0, small);
    sdx_ir_node_set_output(w->g, conv, (int32_t)(conv - w->g->nodes), 0, result);
    return SDX_OK;
}

enum sdx_status sdx_pass_resample(struct sdx_context *cx, struct sdx_ir *ir, bool *changed)
{
    for (int32_t n_graph = 0; n_graph < ir->count_graphs; n_graph++) {
        struct work w = {.cx = cx, .ir = ir, .g = &ir->graphs[n_graph]};
        const int32_t count_nodes = w.g->count_nodes;
        w.uses = sdx_ir_uses(w.g, ir->arena);
        if (!w.uses) return SDX_FAIL_MEMORY(cx);
        for (int32_t n = 0; n < count_nodes; n++) {
            const struct sdx_ir_node *node = &w.g->nodes[n];
            if (node->is_dead || node->domain.len) continue;
            if (sdx_str_is(node->op_type, "AveragePool"))
                SDX_TRY(average_first(&w, n));
            else if (sdx_str_is(node->op_type, "Conv") && is_pointwise(&w, node))
                SDX_TRY(enlarge_last(&w, n));
        }
        if (w.did) SDX_TRY(sdx_ir_sort(cx, ir, w.g));
        *changed = *changed || w.did;
    }
    return SDX_OK;
}
