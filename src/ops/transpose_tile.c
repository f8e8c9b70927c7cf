/* SPDX-License-Identifier: Apache-2.0
 * Operators that are one strided copy: Transpose, Tile, Expand, DepthToSpace, SpaceToDepth; and
 * ReverseSequence, which copies rows in another order. */
#include "kernels/conv_block.h"
#include "ops/layout.h"
#include "ops/move.h"
#include "ops/op.h"
#include "tensor/convert.h"

/* ---- Transpose ---- */

static enum sdx_status read_perm(struct sdx_context *cx, const struct sdx_ir_node *node, int rank,
                                 int *perm)
{
    int64_t count = 0;
    const int64_t *given = sdx_ir_attr_ints(node, "perm", &count);
    bool seen[SDX_RANK_MAX] = {false};
    if (given && count != rank)
        return SDX_FAIL(cx, SDX_BAD_MODEL,
                        "Transpose: perm has %lld entries, the input has rank %d", (long long)count,
                        rank);
    for (int i = 0; i < rank; i++) {
        int64_t axis = given ? given[i] : rank - 1 - i;
        if (axis < 0 && axis >= -rank) axis += rank;
        if (axis < 0 || axis >= rank || seen[axis])
            return SDX_FAIL(cx, SDX_BAD_MODEL, "Transpose: perm is no permutation of %d axes",
                            rank);
        seen[axis] = true;
        perm[i] = (int)axis;
    }
    return SDX_OK;
}

static enum sdx_status infer_transpose(struct sdx_infer *ix)
{
    int rank = sdx_infer_rank(ix, 0), perm[SDX_RANK_MAX];
    sdx_infer_set_dtype(ix, 0, sdx_infer_dtype(ix, 0));
    if (rank < 0) return SDX_OK;
    SDX_TRY(read_perm(ix->cx, ix->node, rank, perm));
    int64_t *dims = sdx_infer_new_dims(ix, 0, rank);
    if (!dims) return SDX_OUT_OF_MEMORY;
    for (int i = 0; i < rank; i++)
        dims[i] = sdx_infer_dims(ix, 0)[perm[i]];
    return sdx_move_infer_pass_ints(ix);
}

/* Between blocked channels and channels last: the lanes of a pixel stay together. */
struct lanes_move {
    bool to_blocked;
    int64_t images, channels, pixels;
};

static void move_pixels(const struct lanes_move *m, const float *from, float *to, int64_t image,
                        int64_t begin, int64_t end)
{
    const int64_t lanes = sdx_block_lanes(), blocks = (m->channels + lanes - 1) / lanes;
    const int64_t last = image * m->channels * m->pixels;
    const int64_t first = image * blocks * lanes * m->pixels;
    for (int64_t p = begin; p < end; p++)
        for (int64_t c = 0; c < m->channels; c += lanes) {
            const int64_t n = m->channels - c < lanes ? m->channels - c : lanes;
            const int64_t at = first + c * m->pixels + p * lanes,
                          other = last + p * m->channels + c;
            if (!m->to_blocked) {
                memcpy(to + other, from + at, (size_t)n * sizeof *to);
                continue;
            }
            memcpy(to + at, from + other, (size_t)n * sizeof *to);
            for (int64_t l = n; l < lanes; l++)
                to[at + l] = 0.0f;
        }
}

static enum sdx_status run_lanes(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)x;
    const struct lanes_move *m = step->params;
    const int64_t rows = m->images * m->pixels;
    int64_t row = sdx_part_begin(rows, step->parts, part, 1);
    const int64_t stop = sdx_part_begin(rows, step->parts, part + 1, 1);
    while (row < stop) {
        const int64_t image = row / m->pixels, begin = row % m->pixels;
        const int64_t end = stop - row < m->pixels - begin ? begin + stop - row : m->pixels;
        move_pixels(m, step->in[0]->data, step->out[0]->data, image, begin, end);
        row += end - begin;
    }
    return SDX_OK;
}

static enum sdx_status prepare_lanes(struct sdx_prepare *px)
{
    const struct sdx_tensor *in = px->in[0], *out = px->out[0];
    struct lanes_move *m = SDX_PREPARE_NEW(px, struct lanes_move);
    if (!m) return px->cx->error.status;
    m->to_blocked = out->layout == SDX_LAYOUT_BLOCKED;
    const struct sdx_tensor *blocked = m->to_blocked ? out : in;
    m->images = blocked->dims[0];
    m->channels = blocked->dims[1];
    m->pixels = sdx_move_product(blocked->dims, 2, blocked->rank);
    if (out->count == 0) return SDX_OK;
    return sdx_prepare_step(px, "transpose_blocked", run_lanes, m,
                            sdx_prepare_parts((double)out->count, 16384, m->images * m->pixels), 0);
}

/* [N, C, ...] to [N, ..., C] is read from blocked channels (of bytes: from channels last, which is
 * then a plain copy), and the way back makes them: of [N, C, L], which is as often an operand of a
 * product, where a convolution reads it. */
static void layout_transpose(struct sdx_prepare *px, struct sdx_layouts *want)
{
    const struct sdx_tensor *in = px->in[0];
    int perm[SDX_RANK_MAX];
    const int rank = in->rank;
    const bool bytes = sdx_layout_serves(SDX_LAYOUT_LAST, in->dtype, rank);
    if ((!bytes && (in->dtype != SDX_F32 || rank < 3 || rank > 4)) ||
        read_perm(px->cx, px->node, rank, perm) != SDX_OK || perm[0] != 0)
        return;
    bool to_last = perm[rank - 1] == 1,
         to_first = (bytes || (rank == 4 && !want->leaves) || want->feeds) && perm[1] == rank - 1;
    for (int i = 1; i + 1 < rank; i++) {
        to_last = to_last && perm[i] == i + 1;
        to_first = to_first && perm[i + 1] == i;
    }
    if (bytes && to_last && in->layout == SDX_LAYOUT_LAST)
        want->in[0] = SDX_LAYOUT_LAST;
    else if (bytes && to_first && in->layout == SDX_LAYOUT_PLAIN)
        want->out[0] = SDX_LAYOUT_LAST;
    else if (bytes)
        return;
    else if (to_last && in->layout == SDX_LAYOUT_BLOCKED)
        want->in[0] = SDX_LAYOUT_BLOCKED;
    else if (to_first && in->layout == SDX_LAYOUT_PLAIN && in->dims[rank - 1] >= sdx_block_lanes())
        want->out[0] = SDX_LAYOUT_BLOCKED;
}

static enum sdx_status prepare_transpose(struct sdx_prepare *px)
{
    const struct sdx_tensor *in = px->in[0], *out = px->out[0];
    int perm[SDX_RANK_MAX];
    if (in->layout == SDX_LAYOUT_LAST || out->layout == SDX_LAYOUT_LAST) {
        const int64_t one = 1;
        struct sdx_move copy;
        sdx_move_init(&copy, 1, 1, &in->count, &one, &one, 0, 0);
        return sdx_move_add(px, "copy", 0, &copy);
    }
    if (in->layout != out->layout) return prepare_lanes(px);
    int64_t own[SDX_RANK_MAX], src[SDX_RANK_MAX], dst[SDX_RANK_MAX];
    SDX_TRY(read_perm(px->cx, px->node, in->rank, perm));
    sdx_move_strides(in->rank, in->dims, own);
    sdx_move_strides(out->rank, out->dims, dst);
    for (int i = 0; i < in->rank; i++)
        src[i] = own[perm[i]];
    struct sdx_move m;
    sdx_move_init(&m, sdx_move_size(in->dtype), in->rank, out->dims, src, dst, 0, 0);
    return sdx_move_add(px, "transpose", 0, &m);
}

/* ---- Tile ---- */

/* The one number of an input of any type. */
static bool tile_number(struct sdx_infer *ix, int i, int64_t *number)
{
    const struct sdx_tensor *t = sdx_infer_value(ix, i);
    if (!t || t->count < 1) return false;
    *number = sdx_load_i64(t->dtype, t->data, 0);
    return true;
}

/* Version 1 has one count and one axis as inputs, of the type of what is repeated. */
static bool tile_repeats(struct sdx_infer *ix, int rank, int64_t *repeats, enum sdx_status *status)
{
    const int64_t *v = NULL;
    int64_t n = 0, times = 0, axis = 0;
    *status = SDX_OK;
    for (int i = 0; i < rank; i++)
        repeats[i] = 1;
    if (ix->opset < 6) {
        int at = 0;
        if (!tile_number(ix, 1, &times) || !tile_number(ix, 2, &axis)) return false;
        *status = sdx_infer_axis(ix, axis, rank, &at);
        if (*status == SDX_OK) repeats[at] = times;
        return *status == SDX_OK;
    }
    if (!sdx_infer_known_ints(ix, 1, &v, &n)) return false;
    if (n != rank) {
        *status = SDX_FAIL(ix->cx, SDX_BAD_MODEL, "Tile: %lld repeats for a tensor of rank %d",
                           (long long)n, rank);
        return false;
    }
    for (int i = 0; i < rank; i++)
        repeats[i] = v[i];
    return true;
}

static enum sdx_status infer_tile(struct sdx_infer *ix)
{
    int rank = sdx_infer_rank(ix, 0);
    int64_t repeats[SDX_RANK_MAX];
    enum sdx_status status = SDX_OK;
    sdx_infer_set_dtype(ix, 0, sdx_infer_dtype(ix, 0));
    if (rank < 0) return SDX_OK;
    if (!tile_repeats(ix, rank, repeats, &status))
        return status != SDX_OK ? status : sdx_move_infer_rank(ix, 0, rank);
    int64_t *dims = sdx_infer_new_dims(ix, 0, rank);
    if (!dims) return SDX_OUT_OF_MEMORY;
    for (int i = 0; i < rank; i++) {
        int64_t d = sdx_infer_dims(ix, 0)[i];
        if (repeats[i] < 0)
            return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "Tile: repeat %d is %lld", i,
                            (long long)repeats[i]);
        if (d < 0)
            dims[i] = repeats[i] == 1 ? d : repeats[i] == 0 ? 0 : -1;
        else if (!sdx_mul_i64(d, repeats[i], &dims[i]))
            return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "Tile: axis %d is too long", i);
    }
    return SDX_OK;
}

/* An axis of length d repeated r times is two axes, the outer one with stride 0. */
static enum sdx_status prepare_tile(struct sdx_prepare *px)
{
    const struct sdx_tensor *in = px->in[0], *out = px->out[0];
    int64_t dims[SDX_MOVE_RANK], src[SDX_MOVE_RANK], dst[SDX_MOVE_RANK], own[SDX_RANK_MAX];
    sdx_move_strides(in->rank, in->dims, own);
    for (int i = 0; i < in->rank; i++) {
        dims[2 * i] = in->dims[i] ? out->dims[i] / in->dims[i] : 0;
        dims[2 * i + 1] = in->dims[i];
        src[2 * i] = 0;
        src[2 * i + 1] = own[i];
    }
    sdx_move_strides(2 * in->rank, dims, dst);
    struct sdx_move m;
    sdx_move_init(&m, sdx_move_size(in->dtype), 2 * in->rank, dims, src, dst, 0, 0);
    return sdx_move_add(px, "tile", 0, &m);
}

/* ---- Expand ---- */

static enum sdx_status infer_expand(struct sdx_infer *ix)
{
    struct sdx_ints shape;
    int rank = sdx_infer_rank(ix, 0);
    sdx_infer_set_dtype(ix, 0, sdx_infer_dtype(ix, 0));
    if (rank < 0) return SDX_OK;
    if (!sdx_infer_ints(ix, 1, &shape)) {
        const int64_t *d = sdx_infer_dims(ix, 1);
        if (!d || sdx_infer_rank(ix, 1) != 1 || d[0] < 0 || d[0] > SDX_RANK_MAX) return SDX_OK;
        const int wide = d[0] > rank ? (int)d[0] : rank;
        SDX_TRY(sdx_move_infer_rank(ix, 0, wide));
        int64_t *out = (int64_t *)(uintptr_t)ix->out[0].dims;
        for (int i = 0; i < rank; i++) { /* what is longer than 1, or not named, cannot change */
            const int64_t have = sdx_infer_dims(ix, 0)[i];
            if (have > 1 || wide - rank + i < wide - d[0]) out[wide - rank + i] = have;
        }
        return SDX_OK;
    }
    int n = shape.count > rank ? (int)shape.count : rank;
    if (shape.count > SDX_RANK_MAX)
        return SDX_FAIL(ix->cx, SDX_NOT_SUPPORTED, "Expand: rank %lld, at most %d are supported",
                        (long long)shape.count, SDX_RANK_MAX);
    int64_t *dims = sdx_infer_new_dims(ix, 0, n);
    if (!dims) return SDX_OUT_OF_MEMORY;
    for (int i = 0; i < n; i++) {
        int a = i - (n - rank), b = i - (n - (int)shape.count);
        int64_t have = a >= 0 ? sdx_infer_dims(ix, 0)[a] : 1;
        int64_t want = b < 0 ? 1 : shape.sym && shape.sym[b] ? shape.sym[b] : shape.v[b];
        if (b >= 0 && want < 0 && !(shape.sym && shape.sym[b]))
            return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "Expand: length %d is %lld", b, (long long)want);
        SDX_TRY(sdx_infer_broadcast_dim(ix, have, want, &dims[i]));
    }
    return sdx_move_infer_pass_ints(ix);
}

static enum sdx_status prepare_expand(struct sdx_prepare *px)
{
    const struct sdx_tensor *in = px->in[0], *out = px->out[0];
    int64_t src[SDX_RANK_MAX], dst[SDX_RANK_MAX], own[SDX_RANK_MAX];
    int lead = out->rank - in->rank;
    sdx_move_strides(in->rank, in->dims, own);
    sdx_move_strides(out->rank, out->dims, dst);
    for (int i = 0; i < out->rank; i++)
        src[i] = i < lead || in->dims[i - lead] == 1 ? 0 : own[i - lead];
    struct sdx_move m;
    sdx_move_init(&m, sdx_move_size(in->dtype), out->rank, out->dims, src, dst, 0, 0);
    return sdx_move_add(px, "expand", 0, &m);
}

/* ---- DepthToSpace, SpaceToDepth ---- */

static enum sdx_status read_block(struct sdx_infer *ix, int64_t *block)
{
    const struct sdx_ir_attr *a = sdx_ir_attr(ix->node, "blocksize");
    if (!a || a->i < 1 || a->i > INT32_MAX)
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "%.*s: blocksize %lld, expected at least 1",
                        SDX_MOVE_OP(ix), a ? (long long)a->i : 0LL);
    struct sdx_str mode = sdx_ir_attr_str(ix->node, "mode", "DCR");
    if (!sdx_str_is(mode, "DCR") && !sdx_str_is(mode, "CRD"))
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "%.*s: mode \"%.*s\", expected DCR or CRD",
                        SDX_MOVE_OP(ix), SDX_STR_ARG(mode));
    *block = a->i;
    return SDX_OK;
}

static enum sdx_status scale_dim(struct sdx_infer *ix, int64_t d, int64_t factor, bool divide,
                                 int64_t *out)
{
    *out = d;
    if (d < 0) {
        *out = factor == 1 ? d : -1;
    } else if (divide ? d % factor != 0 : !sdx_mul_i64(d, factor, out)) {
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "%.*s: length %lld and a block of %lld",
                        SDX_MOVE_OP(ix), (long long)d, (long long)factor);
    } else if (divide) {
        *out = d / factor;
    }
    return SDX_OK;
}

static enum sdx_status infer_blocks(struct sdx_infer *ix, bool to_space)
{
    int rank = sdx_infer_rank(ix, 0);
    int64_t block = 1, dims[4];
    sdx_infer_set_dtype(ix, 0, sdx_infer_dtype(ix, 0));
    SDX_TRY(read_block(ix, &block));
    if (rank < 0) return sdx_move_infer_rank(ix, 0, 4);
    if (rank != 4)
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "%.*s: the input has rank %d, expected 4",
                        SDX_MOVE_OP(ix), rank);
    const int64_t *in = sdx_infer_dims(ix, 0);
    dims[0] = in[0];
    SDX_TRY(scale_dim(ix, in[1], block * block, to_space, &dims[1]));
    SDX_TRY(scale_dim(ix, in[2], block, !to_space, &dims[2]));
    SDX_TRY(scale_dim(ix, in[3], block, !to_space, &dims[3]));
    return sdx_infer_set_dims(ix, 0, 4, dims);
}

static enum sdx_status infer_depth_to_space(struct sdx_infer *ix)
{
    return infer_blocks(ix, true);
}

static enum sdx_status infer_space_to_depth(struct sdx_infer *ix)
{
    return infer_blocks(ix, false);
}

/* The six axes N, block row, block column, C, H, W of the deep tensor in two orders. */
static enum sdx_status prepare_blocks(struct sdx_prepare *px, bool to_space)
{
    int64_t b = sdx_ir_attr_int(px->node, "blocksize", 1);
    bool crd = sdx_str_is(sdx_ir_attr_str(px->node, "mode", "DCR"), "CRD");
    const int64_t *deep = px->in[0]->dims, *wide = px->out[0]->dims;
    if (!to_space) {
        deep = px->out[0]->dims;
        wide = px->in[0]->dims;
    }
    int64_t c = wide[1], h = deep[2], w = deep[3];
    /* order of the wide tensor: N C H row W column */
    const int64_t dims_wide[6] = {wide[0], c, h, b, w, b};
    int64_t strides_wide[6], strides_deep[6];
    sdx_move_strides(6, dims_wide, strides_wide);
    int64_t plane = h * w, step_c = crd ? plane * b * b : plane;
    int64_t step_col = crd ? plane : plane * c, step_row = step_col * b;
    const int64_t in_wide_order[6] = {deep[1] * plane, step_c, w, step_row, 1, step_col};
    memcpy(strides_deep, in_wide_order, sizeof(strides_deep));
    struct sdx_move m;
    size_t size = sdx_move_size(px->in[0]->dtype);
    if (to_space) {
        sdx_move_init(&m, size, 6, dims_wide, strides_deep, strides_wide, 0, 0);
        return sdx_move_add(px, "depth_to_space", 0, &m);
    }
    static const int dcr_order[6] = {0, 3, 5, 1, 2, 4}, crd_order[6] = {0, 1, 3, 5, 2, 4};
    int64_t dims[6], src[6], dst[6];
    for (int i = 0; i < 6; i++) {
        int k = crd ? crd_order[i] : dcr_order[i];
        dims[i] = dims_wide[k];
        src[i] = strides_wide[k];
        dst[i] = strides_deep[k];
    }
    sdx_move_init(&m, size, 6, dims, src, dst, 0, 0);
    return sdx_move_add(px, "space_to_depth", 0, &m);
}

static enum sdx_status prepare_depth_to_space(struct sdx_prepare *px)
{
    return prepare_blocks(px, true);
}

static enum sdx_status prepare_space_to_depth(struct sdx_prepare *px)
{
    return prepare_blocks(px, false);
}

/* ---- ReverseSequence ---- */

struct reverse_params {
    bool time_first;
    int64_t n[2]; /* lengths of axes 0 and 1 */
    size_t run;   /* bytes of what stays together */
};

static enum sdx_status infer_reverse_sequence(struct sdx_infer *ix)
{
    int64_t time = sdx_ir_attr_int(ix->node, "time_axis", 0);
    int64_t batch = sdx_ir_attr_int(ix->node, "batch_axis", 1);
    if (time < 0 || time > 1 || batch != 1 - time)
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL,
                        "ReverseSequence: time_axis %lld and batch_axis %lld, expected 0 and 1",
                        (long long)time, (long long)batch);
    int rank = sdx_infer_rank(ix, 0);
    if (rank >= 0 && rank < 2)
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL,
                        "ReverseSequence: the input has rank %d, expected 2 "
                        "or more",
                        rank);
    int64_t merged = 0;
    if (rank >= 2 && sdx_infer_rank(ix, 1) == 1)
        SDX_TRY(sdx_infer_merge_dim(ix, sdx_infer_dims(ix, 0)[batch], sdx_infer_dims(ix, 1)[0],
                                    "batch axis", &merged));
    sdx_infer_copy(ix, 0, 0);
    return SDX_OK;
}

static enum sdx_status run_reverse_sequence(struct sdx_exec *x, const struct sdx_step *step,
                                            int64_t part)
{
    const struct reverse_params *p = step->params;
    const char *src = step->in[0]->data;
    char *dst = step->out[0]->data;
    int64_t end = sdx_part_begin(p->n[0] * p->n[1], step->parts, part + 1, 1);
    int64_t length = p->n[p->time_first ? 0 : 1];
    for (int64_t r = sdx_part_begin(p->n[0] * p->n[1], step->parts, part, 1); r < end; r++) {
        int64_t i = r / p->n[1], j = r % p->n[1];
        int64_t t = p->time_first ? i : j, b = p->time_first ? j : i;
        int64_t n = sdx_move_index(step->in[1], b);
        if (n < 0 || n > length)
            return SDX_FAIL(x->cx, SDX_RUN_FAILED,
                            "ReverseSequence: sequence %lld has length %lld, the axis %lld",
                            (long long)b, (long long)n, (long long)length);
        int64_t from = t < n ? n - 1 - t : t;
        int64_t row = p->time_first ? from * p->n[1] + b : b * p->n[1] + from;
        memcpy(dst + (size_t)r * p->run, src + (size_t)row * p->run, p->run);
    }
    return SDX_OK;
}

static enum sdx_status prepare_reverse_sequence(struct sdx_prepare *px)
{
    const struct sdx_tensor *in = px->in[0];
    struct reverse_params *p = SDX_PREPARE_NEW(px, struct reverse_params);
    if (!p) return SDX_OUT_OF_MEMORY;
    p->time_first = sdx_ir_attr_int(px->node, "time_axis", 0) == 0;
    p->n[0] = in->dims[0];
    p->n[1] = in->dims[1];
    if (px->in[1]->count != p->n[p->time_first ? 1 : 0])
        return SDX_FAIL(px->cx, SDX_BAD_MODEL, "ReverseSequence: %lld lengths for a batch of %lld",
                        (long long)px->in[1]->count, (long long)p->n[p->time_first ? 1 : 0]);
    int64_t rows = p->n[0] * p->n[1];
    p->run = rows && in->count ? (size_t)(in->count / rows) * sdx_move_size(in->dtype) : 0;
    if (p->run == 0) p->n[0] = rows = 0;
    int64_t parts = sdx_prepare_parts((double)in->bytes, 128 * 1024, rows > 0 ? rows : 1);
    return sdx_move_step(px, "reverse_sequence", run_reverse_sequence, p, parts, 0);
}

static const struct sdx_op ops[] = {
    {"Transpose", 1, 0, infer_transpose, KERNEL(prepare_transpose), .cost = sdx_cost_none,
     .layout = layout_transpose, .flags = SDX_OP_MAKES_BLOCKS},
    {"Tile", 1, 0, infer_tile, KERNEL(prepare_tile), .cost = sdx_cost_none},
    {"Expand", 8, 0, infer_expand, KERNEL(prepare_expand), .cost = sdx_cost_none},
    {"DepthToSpace", 1, 0, infer_depth_to_space, KERNEL(prepare_depth_to_space),
     .cost = sdx_cost_none},
    {"SpaceToDepth", 1, 0, infer_space_to_depth, KERNEL(prepare_space_to_depth),
     .cost = sdx_cost_none},
    {"ReverseSequence", 10, 0, infer_reverse_sequence, KERNEL(prepare_reverse_sequence),
     .cost = sdx_cost_none},
};
const struct sdx_op_family sdx_ops_transpose_tile = FAMILY("", ops);
