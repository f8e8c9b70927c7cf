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

/* ---- boxes ---- */

/* What the indices of a ScatterND are, when they are all places of a grid: the places along each of
 * its axes. */
struct grid {
    int axes;
    int32_t along[SDX_RANK_MAX];       /* values, broadcast along the other axes; or */
    const struct sdx_tensor *constant; /* all places, ... */
    int64_t steps[SDX_RANK_MAX]; /* ... those along axis d this far apart, from element d on */
};

/* The places along `axis` that the value [d0, d1, ..., 1] is one number of, for each place of a
 * grid of `axes`, whatever its lengths. -1: it is something else. */
static int32_t places_along(const struct sdx_ir_graph *g, int32_t value, int axes, int axis)
{
    const struct sdx_ir_node *unsqueeze = sdx_match_maker(g, value, "Unsqueeze");
    const struct sdx_type *type = &g->values[value].type;
    const int64_t *last;
    int64_t count;
    if (!unsqueeze || !type->has_shape || type->rank != axes + 1) return -1;
    if (!sdx_match_list(g, unsqueeze, 1, "axes", &last, &count) || !last || count != 1 ||
        (*last != -1 && *last != axes))
        return -1;
    int32_t inner = unsqueeze->inputs[0];
    const struct sdx_ir_node *expand = sdx_match_maker(g, inner, "Expand");
    if (expand) inner = expand->inputs[0];
    const struct sdx_type *places = &g->values[inner].type;
    if (!places->has_shape || places->rank > axes || places->dtype != SDX_I64) return -1;
    for (int d = 0; d < places->rank; d++)
        if (d + axes - places->rank != axis && places->dims[d] != 1) return -1;
    return inner;
}

static bool is_grid(const struct sdx_tensor *t, struct grid *grid)
{
    if (t->dtype != SDX_I64) return false;
    const int axes = grid->axes;
    int64_t step = axes, at[SDX_RANK_MAX] = {0};
    for (int d = axes - 1; d >= 0; step *= t->dims[d--])
        grid->steps[d] = step;
    for (int64_t i = 0; i < t->count; i += axes) {
        for (int d = 0; d < axes; d++)
            if (number_at(t, i + d) != number_at(t, at[d] * grid->steps[d] + d)) return false;
        for (int d = axes - 1; d >= 0 && ++at[d] == t->dims[d]; d--)
            at[d] = 0;
    }
    return true;
}

/* A ScatterND that writes at the places of a grid; false: at others, or it does more. */
static bool read_grid(const struct sdx_ir_graph *g, const struct sdx_ir_node *node,
                      struct grid *grid)
{
    if (!sdx_str_is(node->op_type, "ScatterND") || node->count_inputs != 3 || node->inputs[0] < 0 ||
        node->inputs[1] < 0 || node->inputs[2] < 0 ||
        !sdx_str_is(sdx_ir_attr_str(node, "reduction", "none"), "none"))
        return false;
    const struct sdx_type *indices = &g->values[node->inputs[1]].type;
    const int axes = indices->has_shape ? indices->rank - 1 : 0;
    if (axes < 1 || axes > SDX_RANK_MAX || indices->dims[axes] != axes) return false;
    *grid = (struct grid){.axes = axes, .constant = sdx_match_constant(g, node->inputs[1])};
    if (grid->constant) return is_grid(grid->constant, grid);
    const struct sdx_ir_node *concat = sdx_match_maker(g, node->inputs[1], "Concat");
    const int64_t joined = concat ? sdx_ir_attr_int(concat, "axis", 0) : 0;
    if (!concat || concat->count_inputs != axes || (joined != -1 && joined != axes)) return false;
    for (int d = 0; d < axes; d++) {
        grid->along[d] = places_along(g, concat->inputs[d], axes, d);
        if (grid->along[d] < 0) return false;
    }
    return true;
}

/* Are the places along axis d 0 .. length - 1? */
static bool counts_along(const struct sdx_ir_graph *g, const struct grid *grid, int d,
                         int64_t length)
{
    const struct sdx_tensor *t = grid->constant;
    const int64_t first = t ? d : 0, step = t ? grid->steps[d] : 1;
    if (!t) t = sdx_match_constant(g, grid->along[d]);
    if (!t || (grid->constant ? t->dims[d] : t->count) != length) return false;
    for (int64_t i = 0; i < length; i++)
        if (number_at(t, first + i * step) != i) return false;
    return true;
}

static bool writes_all(const struct sdx_ir_graph *g, const struct sdx_ir_node *node)
{
    struct grid grid;
    if (!read_grid(g, node, &grid) || !sdx_match_same_type(g, node->inputs[0], node->inputs[2]))
        return false;
    const struct sdx_type *x = &g->values[node->inputs[0]].type,
                          *indices = &g->values[node->inputs[1]].type;
    if (grid.axes > x->rank) return false;
    for (int d = 0; d < grid.axes; d++)
        if (x->dims[d] < 1 || indices->dims[d] != x->dims[d] ||
            !counts_along(g, &grid, d, x->dims[d]))
            return false;
    return true;
}

static enum sdx_status grid_constants(struct sdx_context *cx, struct sdx_ir *ir,
                                      struct sdx_ir_graph *g, const struct grid *grid,
                                      int32_t *inputs)
{
    const struct sdx_tensor *t = grid->constant;
    for (int d = 0; d < grid->axes; d++) {
        struct sdx_tensor *along = sdx_match_new_constant(ir, SDX_I64, 1, &t->dims[d]);
        if (!along) return SDX_FAIL_MEMORY(cx);
        for (int64_t i = 0; i < along->count; i++)
            ((int64_t *)along->data)[i] = number_at(t, i * grid->steps[d] + d);
        inputs[d] = sdx_match_add_constant(ir, g, SDX_STR("places"), along);
        if (inputs[d] < 0) return SDX_FAIL_MEMORY(cx);
    }
    return SDX_OK;
}

enum {
    GRID_LEAST = 1024 /* places of a constant that is worth it: runs of few are known as such */
};

enum sdx_status sdx_pass_grids(struct sdx_context *cx, struct sdx_ir *ir, bool *changed)
{
    for (int32_t n_graph = 0; n_graph < ir->count_graphs; n_graph++) {
        struct sdx_ir_graph *g = &ir->graphs[n_graph];
        for (int32_t n = 0; n < g->count_nodes; n++) {
            struct sdx_ir_node *node = &g->nodes[n];
            struct grid grid;
            if (node->is_dead || node->domain.len || !read_grid(g, node, &grid) ||
                (grid.constant && grid.constant->count / grid.axes < GRID_LEAST))
                continue;
            int32_t inputs[2 + SDX_RANK_MAX] = {node->inputs[0], node->inputs[2]};
            if (grid.constant)
                SDX_TRY(grid_constants(cx, ir, g, &grid, inputs + 2));
            else
                memcpy(inputs + 2, grid.along, (size_t)grid.axes * sizeof *inputs);
            SDX_TRY(sdx_match_become_in(cx, ir, node, "sardonyx", "ScatterGrid", 1, inputs,
                                        2 + grid.axes, 0));
            *changed = true;
        }
    }
    return SDX_OK;
}

/* ---- rows, and what is all of x ---- */

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
            if (!writes_all(g, node)) continue;
            SDX_TRY(sdx_match_become(cx, ir, node, "Identity", 14, &node->inputs[2], 1, 0));
            *changed = true;
        }
    }
    return SDX_OK;
}
