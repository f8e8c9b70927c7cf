/* SPDX-License-Identifier: Apache-2.0
 * The operator that the pass `attention` makes of MatMul - Softmax - MatMul and what stands between
 * and around them (passes/pass_attention.c). Inputs: q, k, v, choice (bool), mask (f32), factor
 * (one number that multiplies or, with factor_divides, divides the scale), outer and inner (a mask
 * as the sum of one for key / width and one for key % width, where width is the last axis of
 * inner), more (f32, another mask), the last six optional; the first of one rank, 3 or 4, but for
 * the masks, which broadcast to the scores. The attributes q_axes, k_axes, v_axes tell which axis
 * of an input is axis i of [batch, head, row, column] (rank 3: [batch, row, column]), y_axes which
 * of these is axis i of the output, the column the last; scale, fill and choice_is_false for the
 * choice, and nan_is_zero: the output of a row whose softmax is NaN is 0. Leading axes broadcast.
 * An input may be any tensor that holds the operand: then q_place, k_place, v_place are not empty
 * (ops/attention_place.h). */
#include "ops/attention_core.h"
#include "ops/attention_place.h"

enum {
    MASKS = 3 /* the first of the two */,
    FACTOR = 5,
    OUTER = 6,
    INNER = 7,
    MORE = 8,
    Y = 3 /* of axes_of */
};
static const char *const axes_of[] = {"q_axes", "k_axes", "v_axes", "y_axes"};
static const char *const place_of[] = {"q_place", "k_place", "v_place"};

/* The place of input i, or NULL. */
static const int64_t *read_place(const struct sdx_ir_node *node, int i)
{
    int64_t count = 0;
    const int64_t *place = sdx_ir_attr_ints(node, place_of[i], &count);
    return count == SDX_ATTENTION_PLACE ? place : NULL;
}

/* A permutation of `rank` axes. */
static enum sdx_status read_axes(struct sdx_context *cx, const struct sdx_ir_node *node, int i,
                                 int rank, const int64_t **axes)
{
    int64_t count = 0;
    unsigned seen = 0;
    *axes = sdx_ir_attr_ints(node, axes_of[i], &count);
    for (int64_t d = 0; *axes && d < count; d++)
        if ((*axes)[d] >= 0 && (*axes)[d] < rank) seen |= 1u << (*axes)[d];
    if ((rank != 3 && rank != 4) || count != rank || seen != (1u << rank) - 1 ||
        (i == Y && (*axes)[rank - 1] != rank - 1))
        return SDX_FAIL(cx, SDX_BAD_MODEL, "Attention: %s does not fit rank %d", axes_of[i], rank);
    return SDX_OK;
}

/* Axis d of a place in a tensor some of whose lengths are open. */
static int64_t open_length(struct sdx_infer *ix, const int64_t *place, int d, const int64_t *dims,
                           int rank)
{
    int64_t factors[SDX_RANK_MAX + 1] = {place[d]};
    int count = 1;
    for (int i = 0; i < rank; i++)
        if (place[SDX_ATTENTION_PLACE / 2 + d] >> i & 1) factors[count++] = dims[i];
    return sdx_infer_ratio(ix, factors, count, NULL, 0);
}

/* Does the set of axes of the place's number d have no axis from `rank` on? */
static bool fits_rank(const int64_t *place, int rank)
{
    for (int i = SDX_ATTENTION_PLACE / 2; i < SDX_ATTENTION_PLACE; i++)
        if (place[i] < 0 || place[i] >> rank) return false;
    return true;
}

/* Lengths of an input's axes in the order of the scores, with a head axis for rank 3; axes[d]: of
 * the input, -1 for that head axis, and where the input, of rank_in axes, has a place. ix: where
 * lengths may be open, else NULL. */
static enum sdx_status read_dims(struct sdx_context *cx, struct sdx_infer *ix,
                                 const struct sdx_ir_node *node, int i, int rank, int rank_in,
                                 const int64_t *dims, int64_t out[4], int axes[4])
{
    const int64_t *order = NULL, *place = read_place(node, i);
    bool is_open = false;
    if (place && !fits_rank(place, rank_in))
        return SDX_FAIL(cx, SDX_BAD_MODEL, "Attention: %s does not fit", place_of[i]);
    for (int d = 0; d < rank_in; d++)
        is_open = is_open || dims[d] < 0;
    for (int d = 0; place && d < SDX_ATTENTION_AXES; d++) {
        out[d] = is_open && ix ? open_length(ix, place, d, dims, rank_in)
                               : sdx_attention_place(place, d, dims);
        axes[d] = -1;
    }
    if (place) return SDX_OK;
    SDX_TRY(read_axes(cx, node, i, rank, &order));
    for (int d = 0, to = 0; d < rank; d++, to++) {
        out[to] = dims[order[d]];
        axes[to] = (int)order[d];
        if (rank == 3 && d == 0) {
            out[++to] = 1;
            axes[to] = -1;
        }
    }
    return SDX_OK;
}

static int scores_rank(const struct sdx_ir_node *node)
{
    int64_t count = 0;
    (void)sdx_ir_attr_ints(node, axes_of[Y], &count);
    return (int)count;
}

static enum sdx_status infer_fused(struct sdx_infer *ix)
{
    const int64_t *order = NULL;
    int64_t dims[3][4], y[4], unused;
    int axes[4], rank = scores_rank(ix->node);
    sdx_infer_set_dtype(ix, 0, sdx_infer_dtype(ix, 0));
    for (int i = 0; i < 3; i++) {
        if (sdx_infer_rank(ix, i) < 0) return SDX_OK;
        if (sdx_infer_rank(ix, i) != rank && !read_place(ix->node, i))
            return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "Attention: an operand's rank is not %d", rank);
        SDX_TRY(read_dims(ix->cx, ix, ix->node, i, rank, sdx_infer_rank(ix, i),
                          sdx_infer_dims(ix, i), dims[i], axes));
        if (i > 0 && dims[0][1] > 0 && dims[i][1] > 0 && dims[0][1] % dims[i][1] == 0)
            dims[i][1] = dims[0][1]; /* heads that several of q share */
    }
    for (int d = 0; d < 2; d++) {
        SDX_TRY(sdx_infer_broadcast_dim(ix, dims[0][d], dims[1][d], &y[d]));
        SDX_TRY(sdx_infer_broadcast_dim(ix, y[d], dims[2][d], &y[d]));
        for (int i = MASKS; i < MASKS + 2; i++) {
            int at = sdx_infer_rank(ix, i) - (d == 0 || rank == 3 ? rank : 3);
            if (sdx_infer_has(ix, i) && at >= 0 && !(rank == 3 && d == 1))
                SDX_TRY(sdx_infer_broadcast_dim(ix, y[d], sdx_infer_dims(ix, i)[at], &y[d]));
        }
    }
    SDX_TRY(sdx_infer_merge_dim(ix, dims[0][3], dims[1][3], "head size", &unused));
    SDX_TRY(sdx_infer_merge_dim(ix, dims[1][2], dims[2][2], "keys", &unused));
    y[2] = dims[0][2];
    y[3] = dims[2][3];
    SDX_TRY(read_axes(ix->cx, ix->node, Y, rank, &order));
    int64_t *out = sdx_infer_new_dims(ix, 0, rank);
    if (!out) return SDX_FAIL_MEMORY(ix->cx);
    for (int d = 0; d < rank; d++)
        out[d] = y[rank == 3 && order[d] > 0 ? order[d] + 1 : order[d]];
    return SDX_OK;
}

static void cost_fused(const struct sdx_infer *ix, struct sdx_cost *cost)
{
    const int rank = scores_rank(ix->node);
    int64_t q[4], k[4];
    int axes[4];
    if (read_dims(ix->cx, NULL, ix->node, 0, rank, sdx_infer_rank(ix, 0), sdx_infer_dims(ix, 0), q,
                  axes) != SDX_OK ||
        read_dims(ix->cx, NULL, ix->node, 1, rank, sdx_infer_rank(ix, 1), sdx_infer_dims(ix, 1), k,
                  axes) != SDX_OK)
        return;
    cost->macs = (double)k[2];
    for (int d = 0; d < rank; d++)
        cost->macs *= (double)ix->out[0].dims[d] + (d + 1 == rank) * (double)q[3];
    cost->flops = 2 * cost->macs;
}

/* Steps over [batch, head, row, column] of a tensor with these axes; 0 for lengths of 1. */
static void steps_of(const struct sdx_tensor *t, const int axes[4], int64_t at[4])
{
    for (int d = 0; d < 4; d++) {
        at[d] = axes[d] < 0 ? 0 : 1;
        for (int i = axes[d] + 1; axes[d] >= 0 && i < t->rank; i++)
            at[d] *= sdx_tensor_pitch(t, i);
        if (axes[d] >= 0 && t->dims[axes[d]] == 1 && d < 2) at[d] = 0;
    }
}

/* The steps of input i and its first element. */
static enum sdx_status find_steps(struct sdx_prepare *px, int i, const int axes[4], int64_t at[4],
                                  int64_t *first)
{
    const int64_t *place = read_place(px->node, i);
    if (!place) {
        steps_of(px->in[i], axes, at);
        return SDX_OK;
    }
    const int64_t *dims = px->in[i]->dims;
    int64_t last = *first = sdx_attention_place(place, SDX_ATTENTION_FIRST, dims);
    for (int d = 0; d < SDX_ATTENTION_AXES; d++) {
        const int64_t length = sdx_attention_place(place, d, dims);
        at[d] = sdx_attention_place(place, SDX_ATTENTION_AXES + d, dims);
        if (length < 1 || at[d] < 0 || last < 0 || last >= px->in[i]->count ||
            (at[d] && length - 1 > (px->in[i]->count - 1 - last) / at[d]))
            return SDX_FAIL(px->cx, SDX_BAD_MODEL, "Attention: %s does not fit", place_of[i]);
        last += (length - 1) * at[d];
        if (length == 1 && d < 2) at[d] = 0; /* all batches, or heads, read the one */
    }
    if (px->in[i]->layout != SDX_LAYOUT_PLAIN)
        return SDX_FAIL(px->cx, SDX_BAD_MODEL, "Attention: %s does not fit", place_of[i]);
    return SDX_OK;
}

/* A mask's axes are the scores' from the right. */
static enum sdx_status mask_steps(struct sdx_prepare *px, const struct sdx_attention *a,
                                  const struct sdx_tensor *mask, int rank, int64_t at[4])
{
    const int64_t want[] = {a->batch, a->heads, a->queries, a->keys};
    if (mask->rank > rank)
        return SDX_FAIL(px->cx, SDX_NOT_SUPPORTED, "Attention: mask of rank %d", mask->rank);
    int64_t step = 1;
    for (int d = mask->rank - 1, to = 3; d >= 0; d--, to--) {
        if (rank == 3 && to == 1) to = 0;
        if (mask->dims[d] != 1 && mask->dims[d] != want[to])
            return SDX_FAIL(px->cx, SDX_NOT_SUPPORTED,
                            "Attention: mask has length %lld where scores have %lld",
                            (long long)mask->dims[d], (long long)want[to]);
        at[to] = mask->dims[d] == 1 ? 0 : step;
        step *= mask->dims[d];
    }
    return SDX_OK;
}

static enum sdx_status read_outer(struct sdx_prepare *px, struct sdx_attention *a)
{
    if (!sdx_prepare_has(px, OUTER)) return SDX_OK;
    a->outer = px->in[OUTER];
    a->inner = px->in[INNER];
    const int64_t rows = a->batch * a->heads * a->queries;
    if (a->inner->rank > 0) a->width = a->inner->dims[a->inner->rank - 1];
    if (a->outer->dtype != SDX_F32 || a->inner->dtype != SDX_F32 || a->width < 1 ||
        a->keys % a->width || a->inner->count != rows * a->width ||
        a->outer->count != rows * (a->keys / a->width))
        return SDX_FAIL(px->cx, SDX_NOT_SUPPORTED,
                        "Attention: the parts of the mask do not fit %lld x %lld scores",
                        (long long)rows, (long long)a->keys);
    return SDX_OK;
}

static enum sdx_status prepare_fused(struct sdx_prepare *px)
{
    struct sdx_tensor *y = px->out[0];
    struct sdx_attention a = {.q = px->in[0], .k = px->in[1], .v = px->in[2], .y = y};
    const int64_t *order = NULL;
    int64_t dims[3][4];
    int axes[3][4], y_axes[4] = {-1, -1, -1, -1};
    const int rank = scores_rank(px->node);
    for (int i = 0; i < 3; i++) {
        SDX_TRY(read_dims(px->cx, NULL, px->node, i, rank, px->in[i]->rank, px->in[i]->dims,
                          dims[i], axes[i]));
        if (px->in[i]->dtype != SDX_F32)
            return SDX_FAIL(px->cx, SDX_NOT_SUPPORTED, "Attention: element type %s",
                            sdx_dtype_short_name(px->in[i]->dtype));
    }
    SDX_TRY(read_axes(px->cx, px->node, Y, rank, &order));
    for (int d = 0; d < rank; d++)
        y_axes[rank == 3 && order[d] > 0 ? order[d] + 1 : order[d]] = d;
    int64_t y_dims[4];
    for (int d = 0; d < 4; d++)
        y_dims[d] = y_axes[d] < 0 ? 1 : y->dims[y_axes[d]];
    a.batch = y_dims[0];
    a.heads = y_dims[1];
    a.queries = dims[0][2];
    a.size = dims[0][3];
    a.keys = a.mask_keys = dims[1][2];
    a.value_size = dims[2][3];
    if (dims[1][1] > 1 && dims[1][1] == dims[2][1]) a.heads_per_key = a.heads / dims[1][1];
    a.scale = sdx_ir_attr_float(px->node, "scale", 1);
    a.fill = sdx_ir_attr_float(px->node, "fill", 0);
    a.nan_is_zero = sdx_ir_attr_int(px->node, "nan_is_zero", 0) != 0;
    a.choice_is_false = sdx_ir_attr_int(px->node, "choice_is_false", 0) != 0;
    if (y->count == 0) return SDX_OK;
    SDX_TRY(find_steps(px, 0, axes[0], a.q_at, &a.q_first));
    SDX_TRY(find_steps(px, 1, axes[1], a.k_at, &a.k_first));
    SDX_TRY(find_steps(px, 2, axes[2], a.v_at, &a.v_first));
    steps_of(y, y_axes, a.y_at);
    a.choice = sdx_prepare_has(px, MASKS) ? px->in[MASKS] : NULL;
    a.mask = sdx_prepare_has(px, MASKS + 1) ? px->in[MASKS + 1] : NULL;
    a.more = sdx_prepare_has(px, MORE) ? px->in[MORE] : NULL;
    if ((a.choice && a.choice->dtype != SDX_BOOL) || (a.mask && a.mask->dtype != SDX_F32) ||
        (a.more && a.more->dtype != SDX_F32))
        return SDX_FAIL(px->cx, SDX_NOT_SUPPORTED, "Attention: element type of a mask");
    if (a.choice) SDX_TRY(mask_steps(px, &a, a.choice, rank, a.choice_at));
    if (a.mask) SDX_TRY(mask_steps(px, &a, a.mask, rank, a.mask_at));
    if (a.more) SDX_TRY(mask_steps(px, &a, a.more, rank, a.more_at));
    SDX_TRY(read_outer(px, &a));
    a.factor = sdx_prepare_has(px, FACTOR) ? px->in[FACTOR] : NULL;
    a.factor_divides = sdx_ir_attr_int(px->node, "factor_divides", 0) != 0;
    if (a.factor && (a.factor->dtype != SDX_F32 || a.factor->count != 1))
        return SDX_FAIL(px->cx, SDX_NOT_SUPPORTED, "Attention: the factor is not one number");
    return sdx_attention_prepare(px, &a);
}

static const struct sdx_op ops[] = {
    {"Attention", 1, 0, infer_fused, KERNEL(prepare_fused), .cost = cost_fused, .growing = 7},
};

const struct sdx_op_family sdx_ops_attention_fused = FAMILY("sardonyx", ops);
