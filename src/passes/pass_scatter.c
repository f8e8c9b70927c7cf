/* SPDX-License-Identifier: Apache-2.0
 * x[:, a:b] = y as PyTorch exports it: a ScatterND whose indices are all places of a box, made of
 * one Expand an axis. Where the box is the whole of x, the result is y; another is a ScatterGrid of
 * the places along each axis. And scatter_add of rows, as graph networks gather messages: a
 * ScatterElements whose index is the same for all of a row, an Expand of [E, 1], is a ScatterND of
 * rows. */
#include "passes/match.h"
#include "passes/passes.h"

static int64_t number_at(const struct sdx_tensor *t, int64_t i) /* at any address */
{
    int64_t number;
    memcpy(&number, (const char *)t->data + (size_t)i * sizeof number, sizeof number);
    return number;
}

/* Are the elements of t, read with axes of `rank` as an Expand does, 0 .. length - 1 along `axis`
 * and the same along all others? */
static bool counts_along(const struct sdx_tensor *t, int rank, int axis, int64_t length)
{
    if (!t || t->dtype != SDX_I64 || t->count != length || t->rank > rank) return false;
    for (int d = 0; d < t->rank; d++)
        if (t->dims[d] != (d + rank - t->rank == axis ? length : 1)) return length == 1;
    for (int64_t i = 0; i < length; i++)
        if (number_at(t, i) != i) return false;
    return true;
}

/* Is the value [d0, d1, ..., 1] number `axis` of each place of a box of these lengths? */
static bool is_place(const struct sdx_ir_graph *g, int32_t value, const int64_t *lengths, int rank,
                     int axis)
{
    const struct sdx_ir_node *unsqueeze = sdx_match_maker(g, value, "Unsqueeze");
    const struct sdx_type *type = &g->values[value].type;
    if (!unsqueeze || !type->has_shape || type->rank != rank + 1 || type->dims[rank] != 1)
        return false;
    const int32_t inner = unsqueeze->inputs[0];
    const struct sdx_type *grid = &g->values[inner].type;
    if (!grid->has_shape || grid->rank != rank) return false;
    for (int d = 0; d < rank; d++) /* so the new axis is the last, or one of many of length 1 */
        if (grid->dims[d] != lengths[d] || type->dims[d] != lengths[d]) return false;
    const struct sdx_ir_node *expand = sdx_match_maker(g, inner, "Expand");
    return counts_along(sdx_match_constant(g, expand ? expand->inputs[0] : inner), rank, axis,
                        lengths[axis]);
}

/* A constant of all places, as where it is small. */
static bool are_places(const struct sdx_tensor *t, const int64_t *lengths, int rank)
{
    if (t->dtype != SDX_I64 || t->rank != rank + 1 || t->dims[rank] != rank) return false;
    for (int64_t i = 0; i < t->count / rank; i++) {
        int64_t rest = i;
        for (int d = rank - 1; d >= 0; d--) {
            if (number_at(t, i * rank + d) != rest % lengths[d]) return false;
            rest /= lengths[d];
        }
    }
    return true;
}

static bool writes_all(const struct sdx_ir_graph *g, const struct sdx_ir_node *node)
{
    if (node->count_inputs != 3 || node->inputs[1] < 0 || node->inputs[2] < 0 ||
        !sdx_str_is(sdx_ir_attr_str(node, "reduction", "none"), "none") ||
        !sdx_match_same_type(g, node->inputs[0], node->inputs[2]))
        return false;
    const struct sdx_type *x = &g->values[node->inputs[0]].type,
                          *indices = &g->values[node->inputs[1]].type;
    if (!indices->has_shape || indices->rank < 2) return false;
    const int rank = indices->rank - 1;
    if (indices->dims[rank] != rank || rank > x->rank) return false;
    for (int d = 0; d < rank; d++)
        if (x->dims[d] < 1 || indices->dims[d] != x->dims[d]) return false;
    const struct sdx_tensor *constant = sdx_match_constant(g, node->inputs[1]);
    if (constant) return are_places(constant, x->dims, rank);
    const struct sdx_ir_node *concat = sdx_match_maker(g, node->inputs[1], "Concat");
    if (!concat || concat->count_inputs != rank) return false;
    for (int d = 0; d < rank; d++)
        if (!is_place(g, concat->inputs[d], x->dims, rank, d)) return false;
    return true;
}

/* The indices [E, 1] of rows [E, F] that a ScatterElements moves whole. -1: it does not. */
static int32_t rows_moved(const struct sdx_ir_graph *g, const struct sdx_ir_node *node)
{
    const int64_t axis = sdx_ir_attr_int(node, "axis", 0);
    if (node->count_inputs != 3 || node->inputs[0] < 0 || node->inputs[1] < 0) return -1;
    const struct sdx_type *x = &g->values[node->inputs[0]].type,
                          *index = &g->values[node->inputs[1]].type;
    const struct sdx_ir_node *expand = sdx_match_maker(g, node->inputs[1], "Expand");
    if (!expand || expand->inputs[0] < 0 || (axis != 0 && axis != -2)) return -1;
    const struct sdx_type *rows = &g->values[expand->inputs[0]].type;
    const bool fits = x->has_shape && index->has_shape && rows->has_shape && x->rank == 2 &&
                      index->rank == 2 && rows->rank == 2 && rows->dims[1] == 1 && x->dims[1] > 0 &&
                      index->dims[1] == x->dims[1] && rows->dims[0] != -1 &&
                      rows->dims[0] == index->dims[0] && rows->dtype == SDX_I64;
    return fits ? expand->inputs[0] : -1;
}

static enum sdx_status move_rows(struct sdx_context *cx, struct sdx_ir *ir,
                                 struct sdx_ir_node *node, int32_t rows)
{
    const int32_t inputs[] = {node->inputs[0], rows, node->inputs[2]};
    const struct sdx_ir_attr *reduction = sdx_ir_attr(node, "reduction");
    SDX_TRY(sdx_match_become(cx, ir, node, "ScatterND", 18, inputs, 3, 1));
    if (reduction) node->attrs[node->count_attrs++] = *reduction; /* still in the arena */
    return SDX_OK;
}

enum sdx_status sdx_pass_scatter(struct sdx_context *cx, struct sdx_ir *ir, bool *changed)
{
    for (int32_t n_graph = 0; n_graph < ir->count_graphs; n_graph++) {
        const struct sdx_ir_graph *g = &ir->graphs[n_graph];
        for (int32_t n = 0; n < g->count_nodes; n++) {
            struct sdx_ir_node *node = &g->nodes[n];
            if (node->is_dead || node->domain.len) continue;
            const int32_t rows =
                sdx_str_is(node->op_type, "ScatterElements") ? rows_moved(g, node) : -1;
            if (rows >= 0) {
                SDX_TRY(move_rows(cx, ir, node, rows));
                *changed = true;
                continue;
            }
            if (!sdx_str_is(node->op_type, "ScatterND") || !writes_all(g, node)) continue;
            SDX_TRY(sdx_match_become(cx, ir, node, "Identity", 14, &node->inputs[2], 1, 0));
            *changed = true;
        }
    }
    return SDX_OK;
}

/* ---- boxes ---- */

/* The places along `axis` that the value [d0, d1, ..., 1] is one number of, for each place of a
 * grid of `axes`, whatever its lengths. -1: it is something else. */
static int32_t places_along(const struct sdx_ir_graph *g, int32_t value, int axes, int axis)
{
    const struct sdx_ir_node *unsqueeze = sdx_match_maker(g, value, "Unsqueeze");
    const struct sdx_type *type = &g->values[value].type;
    int64_t count = 0;
    if (!unsqueeze || !type->has_shape || type->rank != axes + 1) return -1;
    const int64_t *last = sdx_match_ints(g, unsqueeze, 1, &count);
    if (!last) last = sdx_ir_attr_ints(unsqueeze, "axes", &count);
    if (!last || count != 1 || (*last != -1 && *last != axes)) return -1;
    int32_t inner = unsqueeze->inputs[0];
    const struct sdx_ir_node *expand = sdx_match_maker(g, inner, "Expand");
    if (expand) inner = expand->inputs[0];
    const struct sdx_type *places = &g->values[inner].type;
    if (!places->has_shape || places->rank > axes || places->dtype != SDX_I64) return -1;
    for (int d = 0; d < places->rank; d++)
        if (d + axes - places->rank != axis && places->dims[d] != 1) return -1;
    return inner;
}

enum {
    GRID_LEAST = 1024 /* places of a constant that is worth it: runs of few are known as such */
};

/* Is a constant all places of a grid? Then steps[d] is how far those along axis d lie apart. */
static bool is_grid(const struct sdx_tensor *t, int axes, int64_t steps[SDX_RANK_MAX])
{
    if (t->dtype != SDX_I64 || t->count / axes < GRID_LEAST) return false;
    int64_t step = axes, at[SDX_RANK_MAX] = {0};
    for (int d = axes - 1; d >= 0; step *= t->dims[d--])
        steps[d] = step;
    for (int64_t i = 0; i < t->count; i += axes) {
        for (int d = 0; d < axes; d++)
            if (number_at(t, i + d) != number_at(t, at[d] * steps[d] + d)) return false;
        for (int d = axes - 1; d >= 0 && ++at[d] == t->dims[d]; d--)
            at[d] = 0;
    }
    return true;
}

static enum sdx_status grid_constants(struct sdx_context *cx, struct sdx_ir *ir,
                                      struct sdx_ir_graph *g, const struct sdx_tensor *t, int axes,
                                      const int64_t *steps, int32_t *inputs)
{
    for (int d = 0; d < axes; d++) {
        struct sdx_tensor *along = sdx_match_new_constant(ir, SDX_I64, 1, &t->dims[d]);
        if (!along) return SDX_FAIL_MEMORY(cx);
        for (int64_t i = 0; i < along->count; i++)
            ((int64_t *)along->data)[i] = number_at(t, i * steps[d] + d);
        inputs[d] = sdx_match_add_constant(ir, g, SDX_STR("places"), along);
        if (inputs[d] < 0) return SDX_FAIL_MEMORY(cx);
    }
    return SDX_OK;
}

/* The node's inputs as a ScatterGrid; *count 0: it is none. */
static enum sdx_status grid_inputs(struct sdx_context *cx, struct sdx_ir *ir,
                                   struct sdx_ir_graph *g, const struct sdx_ir_node *node,
                                   int32_t inputs[2 + SDX_RANK_MAX], int *count)
{
    *count = 0;
    if (node->is_dead || node->domain.len || !sdx_str_is(node->op_type, "ScatterND") ||
        node->count_inputs != 3 || node->inputs[1] < 0 ||
        !sdx_str_is(sdx_ir_attr_str(node, "reduction", "none"), "none"))
        return SDX_OK;
    const struct sdx_type *indices = &g->values[node->inputs[1]].type;
    const int axes = indices->has_shape ? indices->rank - 1 : 0;
    if (axes < 1 || axes > SDX_RANK_MAX || indices->dims[axes] != axes) return SDX_OK;
    inputs[0] = node->inputs[0];
    inputs[1] = node->inputs[2];
    const struct sdx_tensor *constant = sdx_match_constant(g, node->inputs[1]);
    int64_t steps[SDX_RANK_MAX];
    if (constant && is_grid(constant, axes, steps)) {
        *count = 2 + axes;
        return grid_constants(cx, ir, g, constant, axes, steps, inputs + 2);
    }
    const struct sdx_ir_node *concat = sdx_match_maker(g, node->inputs[1], "Concat");
    const int64_t joined = concat ? sdx_ir_attr_int(concat, "axis", 0) : 0;
    if (!concat || concat->count_inputs != axes || (joined != -1 && joined != axes)) return SDX_OK;
    for (int d = 0; d < axes; d++) {
        inputs[2 + d] = places_along(g, concat->inputs[d], axes, d);
        if (inputs[2 + d] < 0) return SDX_OK;
    }
    *count = 2 + axes;
    return SDX_OK;
}

enum sdx_status sdx_pass_grids(struct sdx_context *cx, struct sdx_ir *ir, bool *changed)
{
    for (int32_t n_graph = 0; n_graph < ir->count_graphs; n_graph++) {
        struct sdx_ir_graph *g = &ir->graphs[n_graph];
        for (int32_t n = 0; n < g->count_nodes; n++) {
            struct sdx_ir_node *node = &g->nodes[n];
            int32_t inputs[2 + SDX_RANK_MAX];
            int count;
            SDX_TRY(grid_inputs(cx, ir, g, node, inputs, &count));
            if (count == 0) continue;
            SDX_TRY(
                sdx_match_become_in(cx, ir, node, "sardonyx", "ScatterGrid", 1, inputs, count, 0));
            *changed = true;
        }
    }
    return SDX_OK;
}
