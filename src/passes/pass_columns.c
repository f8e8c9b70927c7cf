/* SPDX-License-Identifier: Apache-2.0
 * A product with constant weights whose columns are only taken apart, by a Split or by Slices,
 * becomes one product for each part: nothing is copied, and what follows a part may go into its
 * store (GLU, SwiGLU, GEGLU, joined gates). Each number is computed as before. */
#include "passes/match.h"
#include "passes/passes.h"

enum { PARTS_MOST = 8 };

/* Columns of the product that are a value of their own. */
struct part {
    int32_t value;
    int64_t begin, columns;
};

/* The columns [begin, begin + columns) of weights or of a bias. */
struct column_recipe {
    struct sdx_recipe recipe;
    int64_t begin, columns;
};

static const struct sdx_type *type_of(const struct sdx_match_walk *w, int32_t value)
{
    return &w->g->values[value].type;
}

static void make_columns(const struct sdx_recipe *recipe, void *elements)
{
    const struct column_recipe *r = (const struct column_recipe *)(const void *)recipe;
    const struct sdx_tensor *from = recipe->of;
    const size_t element = from->bytes / (size_t)from->count;
    const int64_t all = from->dims[from->rank - 1], rows = from->count / all;
    const size_t bytes = (size_t)r->columns * element;
    for (int64_t i = 0; i < rows; i++)
        memcpy((char *)elements + (size_t)i * bytes,
               (const char *)from->data + (size_t)(i * all + r->begin) * element, bytes);
}

/* A constant of those columns of the constant `value`; -1: no memory. */
static int32_t take_columns(struct sdx_match_walk *w, int32_t value, const struct part *part)
{
    const struct sdx_tensor *of = sdx_match_constant(w->g, value);
    const struct column_recipe recipe = {
        {.make = make_columns, .of = of}, part->begin, part->columns};
    struct column_recipe *own = of ? sdx_arena_copy(w->ir->arena, &recipe, sizeof recipe) : NULL;
    if (!own) return -1;
    int64_t dims[2] = {of->dims[0], part->columns};
    struct sdx_tensor *t =
        sdx_match_new_recipe(w->ir, &own->recipe, of->rank, of->rank == 1 ? dims + 1 : dims);
    return t ? sdx_match_add_constant(w->ir, w->g, w->g->values[value].name, t) : -1;
}

/* Adds what a Split or Slice along the last axis makes of y; false: it is something else. */
static bool add_parts(const struct sdx_match_walk *w, const struct sdx_ir_node *node, int32_t y,
                      struct part *parts, int *count)
{
    const int rank = type_of(w, y)->rank;
    const int64_t all = type_of(w, y)->dims[rank - 1];
    if (node->inputs[0] != y) return false;
    if (sdx_match_is(node, "Split")) {
        const int64_t axis = sdx_ir_attr_int(node, "axis", 0);
        int64_t begin = 0;
        if (axis != rank - 1 && axis != -1) return false;
        for (int k = 0; k < node->count_outputs; k++) {
            const int32_t value = node->outputs[k];
            const struct sdx_type *t = value < 0 ? NULL : type_of(w, value);
            if (!t || !t->has_shape || t->rank != rank || *count == PARTS_MOST) return false;
            parts[*count] = (struct part){value, begin, t->dims[rank - 1]};
            if (parts[*count].columns < 1) return false;
            begin += parts[(*count)++].columns;
        }
        return begin == all;
    }
    static const char *const names[] = {"starts", "ends", "axes", NULL};
    const int64_t *list[4];
    for (int i = 0; i < 4; i++) {
        int64_t length = 0;
        if (!sdx_match_list(w->g, node, i + 1, names[i], &list[i], &length)) return false;
        if (list[i] ? length != 1 : i < 2) return false;
    }
    const int64_t axis = list[2] ? list[2][0] : 0;
    if (!sdx_match_is(node, "Slice") || (axis != rank - 1 && axis != -1) ||
        (list[3] && list[3][0] != 1) || *count == PARTS_MOST)
        return false;
    const int64_t begin = list[0][0] < 0 ? list[0][0] + all : list[0][0];
    int64_t end = list[1][0] < 0 ? list[1][0] + all : list[1][0];
    if (end > all) end = all;
    if (begin < 0 || end <= begin) return false;
    parts[(*count)++] = (struct part){node->outputs[0], begin, end - begin};
    return true;
}

/* The parts of y, where nothing else reads it and they are no more columns than it has. */
static int parts_of(const struct sdx_match_walk *w, int32_t y, struct part *parts)
{
    int count = 0, readers = 0;
    int64_t columns = 0;
    for (int32_t n = w->g->values[y].producer + 1; n <= w->reader[y]; n++) {
        const struct sdx_ir_node *node = &w->g->nodes[n];
        bool reads = false;
        for (int i = 0; i < node->count_inputs && !node->is_dead; i++)
            reads = reads || node->inputs[i] == y;
        if (!reads) continue;
        readers++;
        if (node->domain.len || !add_parts(w, node, y, parts, &count)) return 0;
    }
    for (int i = 0; i < count; i++)
        columns += parts[i].columns;
    return readers == w->uses[y] && columns <= type_of(w, y)->dims[type_of(w, y)->rank - 1] ? count
                                                                                            : 0;
}

static enum sdx_status add_product(struct sdx_match_walk *w, const struct sdx_ir_node *matmul,
                                   int32_t bias, const struct part *part)
{
    const struct sdx_str name = matmul->name;
    const int64_t opset = matmul->opset;
    const int32_t inputs[] = {matmul->inputs[0], take_columns(w, matmul->inputs[1], part)};
    const int32_t y = bias < 0 ? part->value : sdx_match_value_like(w->ir, w->g, part->value);
    if (inputs[1] < 0 || y < 0 ||
        !sdx_match_add_node(w->ir, w->g, "MatMul", opset, name, inputs, 2, y, 0))
        return SDX_FAIL_MEMORY(w->cx);
    if (bias < 0) return SDX_OK;
    const int32_t terms[] = {y, take_columns(w, bias, part)};
    return terms[1] < 0 ||
                   !sdx_match_add_node(w->ir, w->g, "Add", opset, name, terms, 2, part->value, 0)
               ? SDX_FAIL_MEMORY(w->cx)
               : SDX_OK;
}

static enum sdx_status rewrite(struct sdx_match_walk *w, int32_t n)
{
    struct sdx_ir_node *matmul = &w->g->nodes[n];
    struct part parts[PARTS_MOST];
    int32_t bias = -1;
    if (!sdx_match_is(matmul, "MatMul") || matmul->count_inputs != 2 || sdx_match_is_fused(matmul))
        return SDX_OK;
    const struct sdx_tensor *weights = sdx_match_weights(w->g, matmul, 1);
    int32_t y = matmul->outputs[0];
    const struct sdx_type *t = type_of(w, y);
    if (!weights || weights->rank != 2 || !t->has_shape || t->rank < 2 || w->uses[y] < 1 ||
        w->reader[y] < 0)
        return SDX_OK;
    int64_t rows = 1;
    for (int d = 0; d + 1 < t->rank; d++)
        rows = t->dims[d] == 1 ? rows : 0;
    if (rows == 1) return SDX_OK; /* parts of one row are views */
    struct sdx_ir_node *add =
        sdx_match_adds_row(w->g, sdx_match_reader(w, y), y, weights->dims[1], &bias);
    if (add) y = add->outputs[0];
    const int count =
        w->reader[y] < 0 || !type_of(w, y)->has_shape || type_of(w, y)->rank != t->rank
            ? 0
            : parts_of(w, y, parts);
    if (count < 2) return SDX_OK;
    const struct sdx_ir_node like = *matmul;
    for (int32_t k = w->g->values[y].producer + 1; k <= w->reader[y]; k++)
        if (!w->g->nodes[k].is_dead && w->g->nodes[k].count_inputs > 0 &&
            w->g->nodes[k].inputs[0] == y)
            sdx_match_discard(w->g, &w->g->nodes[k]);
    sdx_match_discard(w->g, add);
    sdx_match_discard(w->g, matmul);
    for (int i = 0; i < count; i++)
        SDX_TRY(add_product(w, &like, bias, &parts[i]));
    w->did = true;
    return SDX_OK;
}

enum sdx_status sdx_pass_columns(struct sdx_context *cx, struct sdx_ir *ir, bool *changed)
{
    return sdx_match_walk_nodes(cx, ir, rewrite, changed);
}
