/* SPDX-License-Identifier: Apache-2.0
 * Products of tokens [N, L, C] beside convolutions of images [N, C, H, W]: the matrix product whose
 * result is transposed to channels for a convolution, or whose operand comes from one so, becomes a
 * convolution of 1 x 1 over [N, C, L], and the Transpose comes to its other side, where there are
 * fewer channels to move (the two layers around the depthwise convolution of PVT v2 and SegFormer).
 * Of images that are transposed for a product and back it needs no Transpose (CaiT's mixed heads).
 * And two such convolutions in a row with nothing between them become one, when their product has
 * fewer weights (the decoder of SegFormer). Re-associates: results differ in the last bits. */
#include "passes/match.h"
#include "passes/passes.h"
#include "tensor/convert.h"

enum {
    NARROWER = 2, /* times fewer channels, from which moving the Transpose pays */
    AXES_MAX = 5  /* of a Conv */
};

static const struct sdx_type *type_of(const struct sdx_match_walk *w, int32_t value)
{
    return &w->g->values[value].type;
}

/* Weights of that rank, or a bias, of 1; NULL: no. */
static const struct sdx_tensor *weights_of(const struct sdx_match_walk *w,
                                           const struct sdx_ir_node *node, int i, int rank)
{
    const struct sdx_tensor *t = sdx_match_weights(w->g, node, i);
    return t && t->rank == rank && (rank > 1 || t->dtype == SDX_F32) ? t : NULL;
}

/* As sdx_match_moves_axis, between values of known shapes. */
static bool moves(const struct sdx_match_walk *w, const struct sdx_ir_node *node, int rank,
                  int from, int to)
{
    return sdx_match_is(node, "Transpose") && sdx_match_moves_axis(node, rank, from, to) &&
           type_of(w, node->inputs[0])->has_shape && type_of(w, node->outputs[0])->has_shape;
}

/* Does it swap the last two of three axes? */
static bool swaps(const struct sdx_match_walk *w, const struct sdx_ir_node *node)
{
    return moves(w, node, 3, 1, 2);
}

static enum sdx_status add_node(struct sdx_match_walk *w, struct sdx_str name, int64_t opset,
                                const char *op, int count, const int32_t *inputs, int32_t out)
{
    static const int64_t swap[] = {0, 2, 1};
    const bool is_transpose = count == 1;
    struct sdx_ir_node *node =
        sdx_match_add_node(w->ir, w->g, op, opset, name, inputs, count, out, is_transpose);
    if (!node) return SDX_FAIL_MEMORY(w->cx);
    if (is_transpose)
        node->attrs[0] = (struct sdx_ir_attr){
            .name = SDX_STR("perm"), .type = SDX_ATTR_INTS, .count = 3, .ints = swap};
    w->did = true;
    return SDX_OK;
}

/* Of the weights of a MatMul, K x M, those of a Conv: M x K. */
static void make_turned(const struct sdx_recipe *recipe, void *elements)
{
    const struct sdx_tensor *from = recipe->of;
    const int64_t k = from->dims[0], m = from->dims[1];
    const size_t element = from->bytes / (size_t)from->count;
    for (int64_t i = 0; i < k * m; i++)
        memcpy((char *)elements + (size_t)i * element,
               (const char *)from->data + (size_t)(i % k * m + i / k) * element, element);
}

/* Conv of [N, K, L...] with the transposed weights of the MatMul (K x M): [N, M, L...]. */
static enum sdx_status add_conv(struct sdx_match_walk *w, const struct sdx_ir_node *matmul,
                                int32_t x, int32_t bias, int32_t out)
{
    const int rank = type_of(w, out)->rank;
    const struct sdx_str name = matmul->name;
    const int64_t opset = matmul->opset;
    const struct sdx_recipe recipe = {make_turned, sdx_match_constant(w->g, matmul->inputs[1]),
                                      NULL};
    struct sdx_recipe *own = sdx_arena_copy(w->ir->arena, &recipe, sizeof recipe);
    if (!recipe.of || !own) return SDX_FAIL_MEMORY(w->cx);
    int64_t dims[SDX_RANK_MAX] = {recipe.of->dims[1], recipe.of->dims[0]};
    for (int d = 2; d < rank; d++)
        dims[d] = 1;
    struct sdx_tensor *t = sdx_match_new_recipe(w->ir, own, rank, dims);
    if (!t) return SDX_FAIL_MEMORY(w->cx);
    const int32_t inputs[] = {x, sdx_match_add_constant(w->ir, w->g, name, t), bias};
    if (inputs[1] < 0) return SDX_FAIL_MEMORY(w->cx);
    return add_node(w, name, opset, "Conv", bias < 0 ? 2 : 3, inputs, out);
}

/* Do the channels go to what computes on images? */
static bool leads_to_images(const struct sdx_match_walk *w, int32_t value)
{
    static const char *const ops[] = {"Conv", "Resize", "Concat"};
    const struct sdx_ir_node *node = sdx_match_reader(w, value);
    if (!sdx_match_is(node, "Reshape") || type_of(w, node->outputs[0])->rank != 4) return false;
    node = sdx_match_reader(w, node->outputs[0]);
    for (int i = 0; i < SDX_COUNT_OF(ops); i++)
        if (sdx_match_is(node, ops[i])) return true;
    return false;
}

/* Do they come from a convolution, through activations and views? */
static bool comes_from_images(const struct sdx_match_walk *w, int32_t value)
{
    enum { STEPS = 4 };
    for (int i = 0; i < STEPS && value >= 0; i++) {
        if (w->g->values[value].producer < 0) return false;
        const struct sdx_ir_node *node = &w->g->nodes[w->g->values[value].producer];
        if (sdx_match_is(node, "Conv")) return true;
        if (node->domain.len || (node->count_inputs != 1 && !sdx_match_is(node, "Reshape")))
            return false;
        value = node->inputs[0];
    }
    return false;
}

static enum sdx_status move_transpose(struct sdx_match_walk *w, int32_t n)
{
    struct sdx_ir_node *matmul = &w->g->nodes[n];
    const struct sdx_tensor *weights = weights_of(w, matmul, 1, 2);
    const int32_t x = matmul->inputs[0];
    const struct sdx_type *in = type_of(w, x);
    int32_t bias;
    const int rank = in->rank;
    if (!weights || matmul->count_inputs != 2 || sdx_ir_attr(matmul, "activation") ||
        !in->has_shape || rank < 3 || rank > AXES_MAX)
        return SDX_OK;
    const int32_t y = matmul->outputs[0];
    struct sdx_ir_node *add =
        sdx_match_adds_row(w->g, sdx_match_reader(w, y), y, weights->dims[1], &bias);
    const int32_t out = (add ? add : matmul)->outputs[0];
    const int64_t k = weights->dims[0], m = weights->dims[1], opset = matmul->opset;
    const struct sdx_str name = matmul->name;
    struct sdx_ir_node *before = sdx_match_maker(w->g, x, "Transpose"),
                       *after = sdx_match_reader(w, out);
    if (rank > 3) {
        if (!moves(w, before, rank, 1, rank - 1) || !moves(w, after, rank, rank - 1, 1))
            return SDX_OK;
        const int32_t z = before->inputs[0], result = after->outputs[0];
        sdx_match_discard(w->g, matmul);
        sdx_match_discard(w->g, add);
        sdx_match_discard(w->g, after);
        return add_conv(w, matmul, z, bias, result);
    }
    if (!swaps(w, before)) before = NULL;
    if ((m >= NARROWER * k || before) && swaps(w, after) && leads_to_images(w, after->outputs[0])) {
        const int64_t turned[] = {in->dims[0], k, in->dims[1]};
        const int32_t result = after->outputs[0],
                      channels = sdx_match_value_shaped(w->ir, w->g, x, 3, turned);
        if (channels < 0) return SDX_FAIL_MEMORY(w->cx);
        sdx_match_discard(w->g, matmul);
        sdx_match_discard(w->g, add);
        sdx_match_discard(w->g, after);
        SDX_TRY(add_node(w, name, opset, "Transpose", 1, &x, channels));
        return add_conv(w, &w->g->nodes[n], channels, bias, result);
    }
    if (k >= NARROWER * m && before && w->uses[x] == 1 && comes_from_images(w, before->inputs[0])) {
        const int32_t z = before->inputs[0], channels = sdx_match_value_channels(w->ir, w->g, z, m);
        if (channels < 0) return SDX_FAIL_MEMORY(w->cx);
        sdx_match_discard(w->g, matmul);
        sdx_match_discard(w->g, add);
        SDX_TRY(add_conv(w, matmul, z, bias, channels));
        return add_node(w, name, opset, "Transpose", 1, &channels, out);
    }
    return SDX_OK;
}

/* ---- two convolutions in a row ---- */

/* Is it a Conv of constant weights that takes each pixel for itself? */
static bool is_pointwise(const struct sdx_match_walk *w, const struct sdx_ir_node *conv, int rank)
{
    const struct sdx_tensor *weights =
        sdx_match_is(conv, "Conv") ? weights_of(w, conv, 1, rank) : NULL;
    const bool has_bias = conv && conv->count_inputs > 2 && conv->inputs[2] >= 0;
    return weights && sdx_match_is_pointwise(conv, weights) &&
           (!has_bias || weights_of(w, conv, 2, 1));
}

/* The elements in f64; zeros for none. NULL: no memory. */
static double *widened(struct sdx_arena *arena, const struct sdx_tensor *t, int64_t count)
{
    double *all = sdx_arena_array(arena, (size_t)count, sizeof *all);
    if (!all || !t) return all;
    const size_t element = t->bytes / (size_t)t->count;
    for (int64_t i = 0; i < count; i++) {
        uint64_t aligned; /* it may lie at an odd address of the file */
        memcpy(&aligned, (const char *)t->data + (size_t)i * element, element);
        all[i] = sdx_load_f64(t->dtype, &aligned, 0);
    }
    return all;
}

/* weights, bias: those of a and then b, in f32; `arena` for what is needed in between. */
static enum sdx_status multiply(const struct sdx_match_walk *w, struct sdx_arena *arena,
                                const struct sdx_ir_node *a, const struct sdx_ir_node *b,
                                float *weights, float *bias)
{
    const struct sdx_tensor *of_a = sdx_match_constant(w->g, a->inputs[1]),
                            *of_b = sdx_match_constant(w->g, b->inputs[1]);
    const int64_t k = of_a->dims[1], m = of_a->dims[0], n = of_b->dims[0];
    const double *wa = widened(arena, of_a, m * k), *wb = widened(arena, of_b, n * m),
                 *ba = widened(arena, weights_of(w, a, 2, 1), m),
                 *bb = widened(arena, weights_of(w, b, 2, 1), n);
    double *row = widened(arena, NULL, k);
    if (!wa || !wb || !ba || !bb || !row) return SDX_FAIL_MEMORY(w->cx);
    for (int64_t i = 0; i < n; i++) {
        double shift = bb[i];
        memset(row, 0, (size_t)k * sizeof *row);
        for (int64_t j = 0; j < m; j++) {
            const double factor = wb[i * m + j];
            shift += factor * ba[j];
            for (int64_t c = 0; c < k; c++)
                row[c] += factor * wa[j * k + c];
        }
        bias[i] = (float)shift;
        for (int64_t c = 0; c < k; c++)
            weights[i * k + c] = (float)row[c];
    }
    return SDX_OK;
}

/* Inputs 1 and 2 of a Conv that does what a and then b do. */
static enum sdx_status add_product(struct sdx_match_walk *w, const struct sdx_ir_node *a,
                                   const struct sdx_ir_node *b, int32_t *inputs)
{
    const struct sdx_tensor *of_b = sdx_match_constant(w->g, b->inputs[1]);
    const struct sdx_str name = b->name;
    int64_t dims[SDX_RANK_MAX];
    for (int d = 0; d < of_b->rank; d++)
        dims[d] = d == 1 ? sdx_match_constant(w->g, a->inputs[1])->dims[1] : of_b->dims[d];
    struct sdx_tensor *weights = sdx_match_new_constant(w->ir, SDX_F32, of_b->rank, dims),
                      *bias = sdx_match_new_constant(w->ir, SDX_F32, 1, dims);
    if (!weights || !bias) return SDX_FAIL_MEMORY(w->cx);
    struct sdx_arena arena;
    sdx_arena_init(&arena, w->cx->mem, SDX_MEM_PLAN);
    const enum sdx_status status = multiply(w, &arena, a, b, weights->data, bias->data);
    sdx_arena_deinit(&arena);
    if (status != SDX_OK) return status;
    inputs[1] = sdx_match_add_constant(w->ir, w->g, name, weights);
    inputs[2] = sdx_match_add_constant(w->ir, w->g, name, bias);
    return inputs[1] < 0 || inputs[2] < 0 ? SDX_FAIL_MEMORY(w->cx) : SDX_OK;
}

/* Conv b of the image that a Reshape makes of the result of Conv a, or of that result. */
static enum sdx_status join(struct sdx_match_walk *w, struct sdx_ir_node *b)
{
    const int32_t image = b->inputs[0];
    if (image >= w->count_values || w->uses[image] != 1) return SDX_OK;
    struct sdx_ir_node *reshape = sdx_match_maker(w->g, image, "Reshape");
    const int32_t result = reshape ? reshape->inputs[0] : image;
    const struct sdx_tensor *shape = reshape ? sdx_match_constant(w->g, reshape->inputs[1]) : NULL;
    const struct sdx_ir_node *a = sdx_match_maker(w->g, result, "Conv");
    const int rank = type_of(w, image)->rank;
    if (!a || result >= w->count_values || w->uses[result] != 1 || sdx_match_is_fused(a) ||
        !type_of(w, image)->has_shape || !type_of(w, result)->has_shape ||
        !is_pointwise(w, b, rank) || !is_pointwise(w, a, type_of(w, result)->rank))
        return SDX_OK;
    const struct sdx_tensor *wa = weights_of(w, a, 1, type_of(w, result)->rank),
                            *wb = weights_of(w, b, 1, rank);
    const int64_t k = wa->dims[1], m = wa->dims[0], n = wb->dims[0];
    if (wb->dims[1] != m || k * n >= k * m + m * n) return SDX_OK;
    const int64_t *from = type_of(w, result)->dims, *to = type_of(w, image)->dims;
    int64_t list[SDX_RANK_MAX];
    if (reshape) {
        if (!shape || shape->count != rank) return SDX_OK;
        memcpy(list, shape->data, shape->bytes);
        if (list[1] != m && list[1] != -1) return SDX_OK;
        if (list[1] == m) list[1] = k;
    }
    if (from[0] == -1 || from[0] != to[0] || from[1] != to[1]) return SDX_OK;
    const int32_t x = a->inputs[0];
    const size_t count = (size_t)(b->count_inputs > 3 ? b->count_inputs : 3);
    int32_t *inputs = sdx_arena_array(w->ir->arena, count, sizeof *inputs);
    if (!inputs) return SDX_FAIL_MEMORY(w->cx);
    for (int i = 3; i < b->count_inputs; i++)
        inputs[i] = b->inputs[i];
    inputs[0] = x;
    SDX_TRY(add_product(w, a, b, inputs));
    if (reshape) {
        int32_t *of_reshape = sdx_arena_array(w->ir->arena, 2, sizeof *of_reshape);
        int64_t *dims =
            sdx_arena_copy(w->ir->arena, type_of(w, image)->dims, (size_t)rank * sizeof *dims);
        if (!of_reshape || !dims) return SDX_FAIL_MEMORY(w->cx);
        of_reshape[0] = x;
        of_reshape[1] = sdx_match_add_ints(w->ir, w->g, "shape", list, rank);
        if (of_reshape[1] < 0) return SDX_FAIL_MEMORY(w->cx);
        dims[1] = k;
        w->g->values[image].type.dims = dims;
        reshape->inputs = of_reshape;
        reshape->count_inputs = 2;
        inputs[0] = image;
    }
    b->inputs = inputs;
    b->count_inputs = (int32_t)count;
    w->did = true;
    return SDX_OK;
}

static enum sdx_status rewrite(struct sdx_match_walk *w, int32_t n)
{
    struct sdx_ir_node *node = &w->g->nodes[n];
    if (sdx_match_is(node, "MatMul")) return move_transpose(w, n);
    return sdx_match_is(node, "Conv") ? join(w, node) : SDX_OK;
}

enum sdx_status sdx_pass_pointwise(struct sdx_context *cx, struct sdx_ir *ir, bool *changed)
{
    return sdx_match_walk_nodes(cx, ir, rewrite, changed);
}
