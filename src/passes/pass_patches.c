/* SPDX-License-Identifier: Apache-2.0
 * A convolution whose stride is its kernel cuts images into patches, each of which is multiplied by
 * the weights. Where its result is taken as tokens [N, L, C] or with channels last (the patch
 * embedding of vision transformers, the reduction of tokens in PVT and SegFormer), a Transpose
 * gathers the patches and a MatMul makes the tokens, and the Transposes around the convolution are
 * gone. Sums are added in another order: results differ in the last bits. */
#include "passes/match.h"
#include "passes/passes.h"

enum { CHANNELS_MOST = 4, SPATIAL_MOST = 3, PIXELS_LEAST = 4 };

/* What is known of such a convolution. */
struct patches {
    const struct sdx_tensor *weights; /* [outputs, channels, kernel...] */
    int32_t image;
    int32_t from;               /* the image, or what it is made of with channels last */
    bool channels_last;         /* is it so? */
    int32_t tokens;             /* the value with the result's channels last */
    int token_rank;             /* 3: its grid is one axis */
    int spatial;                /* axes */
    int64_t grid[SPATIAL_MOST]; /* patches along each */
    int64_t count;              /* of patches */
};

/* The weights as a matrix, [elements of a patch, outputs]. */
struct matrix_recipe {
    struct sdx_recipe recipe;
    bool channels_last; /* a patch's elements: pixel by pixel, else channel by channel */
};

static const struct sdx_type *type_of(const struct sdx_match_walk *w, int32_t value)
{
    return &w->g->values[value].type;
}

static void make_matrix(const struct sdx_recipe *recipe, void *elements)
{
    enum { COLUMNS = 16 }; /* side by side, as each is read from a place of its own */
    const struct matrix_recipe *r = (const struct matrix_recipe *)(const void *)recipe;
    const struct sdx_tensor *from = recipe->of;
    const size_t element = from->bytes / (size_t)from->count;
    const int64_t outputs = from->dims[0], channels = from->dims[1];
    const int64_t rows = from->count / outputs, pixels = rows / channels;
    for (int64_t first = 0; first < outputs; first += COLUMNS) {
        const int64_t end = first + COLUMNS < outputs ? first + COLUMNS : outputs;
        for (int64_t i = 0; i < rows; i++) {
            const int64_t at = r->channels_last ? i % channels * pixels + i / channels : i;
            for (int64_t m = first; m < end; m++)
                memcpy((char *)elements + (size_t)(i * outputs + m) * element,
                       (const char *)from->data + (size_t)(m * rows + at) * element, element);
        }
    }
}

/* Does the convolution cut its image into patches that leave nothing over? */
static bool cuts(const struct sdx_match_walk *w, const struct sdx_ir_node *conv, struct patches *p)
{
    const struct sdx_type *in = type_of(w, conv->inputs[0]), *out = type_of(w, conv->outputs[0]);
    int64_t count = 0, pixels = 1, all = 1;
    const int64_t *strides = sdx_ir_attr_ints(conv, "strides", &count);
    p->weights = sdx_match_weights(w->g, conv, 1);
    p->image = conv->inputs[0];
    p->spatial = in->rank - 2;
    if (!p->weights || p->weights->rank < 3 || !in->has_shape || !out->has_shape ||
        p->spatial < 1 || p->spatial > SPATIAL_MOST || p->weights->rank != in->rank ||
        out->rank != in->rank || !strides || count != p->spatial ||
        p->weights->dims[1] != in->dims[1] || in->dims[0] == -1 || in->dims[0] == 0 ||
        !sdx_match_all_are(conv, "pads", 0) || !sdx_match_all_are(conv, "dilations", 1))
        return false;
    for (int d = 0; d < p->spatial; d++) {
        const int64_t kernel = p->weights->dims[d + 2], length = in->dims[d + 2];
        if (strides[d] != kernel || length < kernel || length % kernel ||
            out->dims[d + 2] != length / kernel || !sdx_mul_i64(all, length, &all))
            return false;
        p->grid[d] = length / kernel;
        pixels *= kernel;
    }
    p->count = all / pixels;
    return pixels >= PIXELS_LEAST;
}

/* Is `flat`, of [N, C, length], the image with its axes as one? */
static bool is_flat(const struct sdx_match_walk *w, int32_t flat, int32_t image, int64_t length)
{
    const struct sdx_type *f = type_of(w, flat), *i = type_of(w, image);
    return f->has_shape && f->rank == 3 && f->dims[0] == i->dims[0] && f->dims[1] == i->dims[1] &&
           f->dims[2] == length;
}

/* The value that has the channels of the result as its last axis: [N, L, C] or [N, ..., C]. */
static bool find_tokens(const struct sdx_match_walk *w, int32_t result, struct patches *p)
{
    const struct sdx_ir_node *node = sdx_match_reader(w, result);
    p->token_rank = p->spatial + 2;
    if (sdx_match_is(node, "Reshape") || sdx_match_is(node, "Flatten")) {
        if (node->inputs[0] != result || !is_flat(w, node->outputs[0], result, p->count))
            return false;
        p->token_rank = 3;
        node = sdx_match_reader(w, node->outputs[0]);
    }
    if (!node || !sdx_match_moves_axis(node, p->token_rank, 1, p->token_rank - 1)) return false;
    p->tokens = node->outputs[0];
    return true;
}

/* What the image is made of by turning channels to axis 1, or the image. */
static bool find_image(const struct sdx_match_walk *w, struct patches *p)
{
    const int32_t image = p->image;
    const int rank = p->spatial + 2;
    const struct sdx_ir_node *split = sdx_match_maker(w->g, image, "Reshape");
    const struct sdx_ir_node *turn =
        sdx_match_maker(w->g, split ? split->inputs[0] : image, "Transpose");
    if (turn && split) {
        int64_t length = p->count; /* of pixels */
        for (int d = 0; d < p->spatial; d++)
            length *= p->weights->dims[d + 2];
        p->channels_last =
            sdx_match_moves_axis(turn, 3, 2, 1) && is_flat(w, split->inputs[0], image, length);
    } else if (turn) {
        p->channels_last = sdx_match_moves_axis(turn, rank, rank - 1, 1);
    }
    p->from = p->channels_last ? turn->inputs[0] : image;
    return p->channels_last || p->weights->dims[1] <= CHANNELS_MOST;
}

/* A Reshape of x to those lengths, the first that of x; -1: no memory. */
static int32_t reshape(const struct sdx_match_walk *w, const struct patches *p, int32_t x, int rank,
                       int64_t *dims)
{
    enum { OPSET = 13 };
    const int32_t to = sdx_match_value_shaped(w->ir, w->g, p->image, rank, dims);
    dims[0] = 0;
    const int32_t inputs[] = {x, sdx_match_add_ints(w->ir, w->g, "patches", dims, rank)};
    if (to < 0 || inputs[1] < 0) return -1;
    const struct sdx_str name = w->g->values[to].name;
    return sdx_match_add_node(w->ir, w->g, "Reshape", OPSET, name, inputs, 2, to, 0) ? to : -1;
}

/* Patch after patch: [N, patches, elements of one] or, of tokens with all axes, [N, ..., elements].
 * -1: no memory. */
static int32_t gather(const struct sdx_match_walk *w, const struct patches *p)
{
    const int64_t *weights = p->weights->dims, batch = type_of(w, p->image)->dims[0];
    const int axes = p->spatial, rank = 2 + 2 * axes, first = p->channels_last ? 1 : 2;
    int64_t apart[2 + 2 * SPATIAL_MOST] = {batch}, turned[2 + 2 * SPATIAL_MOST] = {batch};
    int64_t perm[2 + 2 * SPATIAL_MOST] = {0}, rows[2 + SPATIAL_MOST] = {batch};
    const int channel = p->channels_last ? rank - 1 : 1,
              channel_to = channel == 1 ? axes + 1 : channel;
    apart[channel] = weights[1];
    perm[channel_to] = channel;
    for (int d = 0; d < axes; d++) {
        apart[first + 2 * d] = p->grid[d];
        apart[first + 2 * d + 1] = weights[d + 2];
        perm[1 + d] = first + 2 * d;
        perm[axes + first + d] = first + 2 * d + 1;
    }
    for (int d = 1; d < rank; d++)
        turned[d] = apart[perm[d]];
    const int32_t image = reshape(w, p, p->from, rank, apart);
    const int32_t patches = sdx_match_value_shaped(w->ir, w->g, p->image, rank, turned);
    if (image < 0 || patches < 0) return -1;
    struct sdx_ir_node *node = sdx_match_add_node(
        w->ir, w->g, "Transpose", 13, w->g->values[patches].name, &image, 1, patches, 1);
    int64_t *own = sdx_arena_copy(w->ir->arena, perm, (size_t)rank * sizeof *perm);
    if (!node || !own) return -1;
    node->attrs[0] = (struct sdx_ir_attr){
        .name = SDX_STR("perm"), .type = SDX_ATTR_INTS, .count = rank, .ints = own, .graph = -1};
    for (int d = 0; d < axes; d++)
        rows[1 + d] = p->grid[d];
    if (p->token_rank == 3) rows[1] = p->count;
    rows[p->token_rank - 1] = p->weights->count / weights[0];
    return reshape(w, p, patches, p->token_rank, rows);
}

static enum sdx_status rewrite(struct sdx_match_walk *w, int32_t n)
{
    struct sdx_ir_node *conv = &w->g->nodes[n];
    struct patches p = {0};
    if (!sdx_match_is(conv, "Conv") || conv->count_inputs < 2 || conv->inputs[0] < 0 ||
        conv->outputs[0] < 0 || sdx_match_is_fused(conv) ||
        sdx_ir_attr_int(conv, "group", 1) != 1 || !cuts(w, conv, &p) ||
        !find_tokens(w, conv->outputs[0], &p) || !find_image(w, &p))
        return SDX_OK;
    const struct sdx_str name = conv->name;
    const int32_t bias = conv->count_inputs > 2 ? conv->inputs[2] : -1;
    if (bias >= 0 && type_of(w, bias)->dtype != SDX_F32) return SDX_OK;
    const struct matrix_recipe recipe = {
        {.make = make_matrix, .of = sdx_match_constant(w->g, conv->inputs[1])}, p.channels_last};
    struct matrix_recipe *own = sdx_arena_copy(w->ir->arena, &recipe, sizeof recipe);
    if (!recipe.recipe.of || !own) return SDX_FAIL_MEMORY(w->cx);
    const int64_t dims[] = {p.weights->count / p.weights->dims[0], p.weights->dims[0]};
    struct sdx_tensor *matrix = sdx_match_new_recipe(w->ir, &own->recipe, 2, dims);
    if (!matrix) return SDX_FAIL_MEMORY(w->cx);
    for (int32_t value = conv->outputs[0]; value != p.tokens;) {
        struct sdx_ir_node *reader = sdx_match_reader(w, value);
        value = reader->outputs[0];
        sdx_match_discard(w->g, reader);
    }
    sdx_match_discard(w->g, conv);
    const int32_t factors[] = {gather(w, &p), sdx_match_add_constant(w->ir, w->g, name, matrix)};
    const int32_t y = bias < 0 ? p.tokens : sdx_match_value_like(w->ir, w->g, p.tokens);
    if (factors[0] < 0 || factors[1] < 0 || y < 0 ||
        !sdx_match_add_node(w->ir, w->g, "MatMul", 13, name, factors, 2, y, 0))
        return SDX_FAIL_MEMORY(w->cx);
    const int32_t terms[] = {y, bias};
    if (bias >= 0 && !sdx_match_add_node(w->ir, w->g, "Add", 14, name, terms, 2, p.tokens, 0))
        return SDX_FAIL_MEMORY(w->cx);
    w->did = true;
    return SDX_OK;
}

enum sdx_status sdx_pass_patches(struct sdx_context *cx, struct sdx_ir *ir, bool *changed)
{
    return sdx_match_walk_nodes(cx, ir, rewrite, changed);
}
