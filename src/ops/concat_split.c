/* SPDX-License-Identifier: Apache-2.0
 * Concat and Split: one strided copy for each of the pieces, of which each part does its share: so
 * two threads do not write beside each other in every row. Blocks of channels that pieces do not
 * fill are picked together lane by lane. */
#include "ops/channel_pick.h"
#include "ops/layout.h"
#include "ops/move.h"

/* ---- pieces of one tensor ---- */

struct piece {
    int operand; /* input of Concat, output of Split */
    struct sdx_move move;
};

struct pieces {
    int count;
    int64_t parts;
    struct piece piece[];
};

static void strides_of(const struct sdx_tensor *t, int64_t *strides)
{
    int64_t memory[SDX_RANK_MAX];
    for (int i = 0; i < t->rank; i++)
        memory[i] = sdx_tensor_pitch(t, i);
    sdx_move_strides(t->rank, memory, strides);
}

/* Copies between the axis range of `whole` that begins at `at` and `part`. */
static void piece_init(struct piece *p, size_t size, const struct sdx_tensor *whole,
                       const struct sdx_tensor *part, int axis, int64_t at, bool split)
{
    const int rank = whole->rank;
    int64_t dims[SDX_RANK_MAX], big[SDX_RANK_MAX], small[SDX_RANK_MAX];
    for (int i = 0; i < rank; i++)
        dims[i] = i == axis ? part->dims[axis] : whole->dims[i];
    strides_of(whole, big);
    strides_of(part, small);
    int64_t offset = at * big[axis];
    sdx_move_init(&p->move, size, rank, dims, split ? big : small, split ? small : big,
                  split ? offset : 0, split ? 0 : offset);
}

static void pieces_add(struct pieces *all, int operand)
{
    all->piece[all->count++].operand = operand;
}

static void pieces_close(struct pieces *all, size_t bytes)
{
    int64_t most = 1;
    for (int i = 0; i < all->count; i++)
        if (all->piece[i].move.units > most) most = all->piece[i].move.units;
    all->parts = sdx_prepare_parts((double)bytes, 128 * 1024, most);
}

static void run_pieces(const struct sdx_step *step, int64_t part, bool split)
{
    const struct pieces *all = step->params;
    for (int i = 0; i < all->count; i++) {
        const struct piece *p = &all->piece[i];
        const void *src = step->in[split ? 0 : p->operand]->data;
        void *dst = step->out[split ? p->operand : 0]->data;
        const int64_t units = p->move.units;
        if (!split && src == (const char *)dst + (size_t)p->move.dst_at * p->move.size)
            continue; /* it was made there */
        sdx_move_run(&p->move, src, dst, sdx_part_begin(units, step->parts, part, 1),
                     sdx_part_begin(units, step->parts, part + 1, 1));
    }
}

static enum sdx_status run_concat(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)x;
    run_pieces(step, part, false);
    return SDX_OK;
}

static enum sdx_status run_split(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)x;
    run_pieces(step, part, true);
    return SDX_OK;
}

static struct pieces *pieces_create(struct sdx_prepare *px, int count)
{
    return sdx_prepare_alloc(px, sizeof(struct pieces) + (size_t)count * sizeof(struct piece));
}

/* ---- Concat ---- */

/* The contents one after the other; entries of inputs of unknown content are unknown. */
static enum sdx_status concat_ints(struct sdx_infer *ix)
{
    int64_t v[SDX_MOVE_INTS_MAX], sym[SDX_MOVE_INTS_MAX], n = 0;
    bool any = false;
    const struct sdx_type *t = &ix->out[0];
    if (ix->shapes_only || !t->has_shape || t->rank != 1 || t->dims[0] < 0 ||
        t->dims[0] > SDX_MOVE_INTS_MAX || !sdx_dtype_is_integer(t->dtype))
        return SDX_OK;
    for (int i = 0; i < ix->count_in; i++) {
        struct sdx_ints in;
        bool known = sdx_infer_ints(ix, i, &in);
        int64_t count = known ? in.count : sdx_infer_dims(ix, i)[0];
        any = any || known;
        if (count < 0 || n + count > t->dims[0]) return SDX_OK;
        for (int64_t j = 0; j < count; j++, n++) {
            v[n] = known ? in.v[j] : 0;
            sym[n] = !known ? -1 : in.sym ? in.sym[j] : 0;
        }
    }
    bool all = true;
    for (int64_t j = 0; j < n; j++)
        all = all && sym[j] == 0;
    if (!any || n != t->dims[0]) return SDX_OK;
    return sdx_infer_set_ints(ix, 0, 1, n, v, all ? NULL : sym);
}

static enum sdx_status concat_axis(struct sdx_infer *ix, int rank, int *axis)
{
    const struct sdx_ir_attr *a = sdx_ir_attr(ix->node, "axis");
    if (!a && ix->opset >= 4)
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "Concat: attribute axis is missing");
    return sdx_infer_axis(ix, a ? a->i : 1, rank, axis);
}

static enum sdx_status infer_concat(struct sdx_infer *ix)
{
    int rank = -1, axis = 0, symbols = 0;
    int64_t sum = 0, symbol = -1;
    bool known = true;
    if (ix->count_in < 1) return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "Concat: it has no input");
    for (int i = 0; i < ix->count_in; i++) {
        int r = sdx_infer_rank(ix, i), dtype = sdx_infer_dtype(ix, i);
        if (!ix->in[i]) return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "Concat: input %d is left out", i);
        if (dtype != SDX_DTYPE_NONE) sdx_infer_set_dtype(ix, 0, dtype);
        if (rank >= 0 && r >= 0 && r != rank)
            return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "Concat: input %d has rank %d, expected %d", i,
                            r, rank);
        if (r >= 0) rank = r;
    }
    if (rank < 0) return SDX_OK;
    if (rank == 0) return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "Concat: scalars cannot be concatenated");
    SDX_TRY(concat_axis(ix, rank, &axis));
    int64_t dims[SDX_RANK_MAX];
    for (int j = 0; j < rank; j++)
        dims[j] = -1;
    for (int i = 0; i < ix->count_in; i++) {
        const int64_t *in = sdx_infer_dims(ix, i);
        known = known && in && in[axis] >= 0;
        symbols += !in || in[axis] < 0;
        if (!in) continue;
        if (in[axis] < 0) symbol = in[axis];
        for (int j = 0; j < rank; j++)
            if (j != axis) SDX_TRY(sdx_infer_merge_dim(ix, dims[j], in[j], "axis", &dims[j]));
        if (in[axis] >= 0 && !sdx_add_i64(sum, in[axis], &sum))
            return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "Concat: the sum of lengths is too large");
    }
    dims[axis] = known ? sum : -1;
    if (!known && symbols == 1)
        dims[axis] = sdx_infer_scaled(
            ix, (struct sdx_ir_length){.dim = symbol, .factor = 1, .term = sum, .divisor = 1});
    SDX_TRY(sdx_infer_set_dims(ix, 0, rank, dims));
    return concat_ints(ix);
}

/* Of shapes of this rank in memory. */
static int axis_of(const struct sdx_prepare *px, int64_t fallback, int rank)
{
    return sdx_layout_axis(px->layout, sdx_ir_attr_int(px->node, "axis", fallback), rank);
}

/* Where pieces that lie one after another on an axis begin, when no axis before it repeats them. */
static bool place_pieces(const struct sdx_tensor *whole, int axis, int count,
                         struct sdx_tensor *const *pieces, int64_t *at)
{
    int64_t begin = 0;
    for (int d = 0; d < axis; d++)
        if (whole->dims[d] != 1) return false;
    for (int i = 0; i < count; i++) {
        if (!pieces[i]) return false;
        at[i] = begin;
        begin += pieces[i]->count;
    }
    return begin <= whole->count;
}

static bool place_concat(struct sdx_prepare *px, int64_t *at)
{
    return place_pieces(px->out[0], axis_of(px, 1, px->out[0]->rank), px->count_in, px->in, at);
}

static void layout_concat(struct sdx_prepare *px, struct sdx_layouts *want)
{
    sdx_layout_channels(px, axis_of(px, 1, px->out[0]->rank), want);
}

/* Channels of pieces that begin within a block. */
static enum sdx_status concat_channels(struct sdx_prepare *px)
{
    struct sdx_channel *map = sdx_prepare_alloc(px, (size_t)px->out[0]->dims[1] * sizeof *map);
    int64_t at = 0;
    if (!map) return SDX_FAIL_MEMORY(px->cx);
    for (int i = 0; i < px->count_in; i++)
        for (int64_t c = 0; c < px->in[i]->dims[1]; c++)
            map[at++] = (struct sdx_channel){i, c};
    return sdx_channel_pick(px, "concat_channels", px->count_in, px->in, px->out[0], map);
}

static enum sdx_status prepare_concat(struct sdx_prepare *px)
{
    const struct sdx_tensor *out = px->out[0];
    if (out->layout == SDX_LAYOUT_BLOCKED) return concat_channels(px);
    int axis = axis_of(px, 1, out->rank);
    int64_t at = 0;
    struct pieces *all = pieces_create(px, px->count_in);
    if (!all) return SDX_OUT_OF_MEMORY;
    for (int i = 0; i < px->count_in; i++) {
        const struct sdx_tensor *in = px->in[i];
        if (i > 0 || out->layout != SDX_LAYOUT_GROWING) { /* that one's memory is input 0's */
            piece_init(&all->piece[all->count], sdx_move_size(out->dtype), out, in, axis, at,
                       false);
            pieces_add(all, i);
        }
        at += in->dims[axis];
    }
    pieces_close(all, out->bytes);
    return sdx_move_step(px, "concat", run_concat, all, all->parts, 0);
}

static bool grow_concat(const struct sdx_ir_node *node, int k, int rank, int *input, int *axis)
{
    (void)k;
    *input = 0;
    *axis = sdx_layout_axis(SDX_LAYOUT_PLAIN, sdx_ir_attr_int(node, "axis", 1), rank);
    return true;
}

/* ---- Split ---- */

/* Lengths of the outputs on an axis, whose own may be unknown. *known false: not known. */
static enum sdx_status split_lengths(struct sdx_infer *ix, int axis, int64_t *lengths, bool *known)
{
    const int64_t *in = sdx_infer_dims(ix, 0), n = in[axis];
    char shape[160];
    int count = ix->count_out;
    int64_t given = 0;
    const int64_t *list = NULL;
    bool is_input = sdx_infer_has(ix, 1);
    *known = false;
    if (is_input) {
        if (!sdx_infer_known_ints(ix, 1, &list, &given)) return SDX_OK;
    } else {
        list = sdx_ir_attr_ints(ix->node, "split", &given);
        if (list && given == 0) list = NULL; /* some old exporters write an empty list */
    }
    if (list) {
        int64_t sum = 0;
        for (int64_t k = 0; k < given; k++) {
            if (list[k] < 0 || !sdx_add_i64(sum, list[k], &sum))
                return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "Split: length %lld is %lld", (long long)k,
                                (long long)list[k]);
            if (k < count) lengths[k] = list[k];
        }
        if (given != count || (n >= 0 && sum != n))
            return SDX_FAIL(ix->cx, SDX_BAD_MODEL,
                            "Split: %lld lengths sum up to %lld for %d outputs on axis %d of %s",
                            (long long)given, (long long)sum, count, axis,
                            sdx_dims_describe(in, sdx_infer_rank(ix, 0), shape, sizeof shape));
        *known = true;
        return SDX_OK;
    }
    int64_t wanted = sdx_ir_attr_int(ix->node, "num_outputs", count);
    if (wanted != count)
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "Split: num_outputs is %lld for %d outputs",
                        (long long)wanted, count);
    if (n < 0) return SDX_OK;
    int64_t each = (n + count - 1) / count;
    if (ix->opset < 18 && n % count != 0)
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "Split: %d outputs do not divide axis %d of %s",
                        count, axis,
                        sdx_dims_describe(in, sdx_infer_rank(ix, 0), shape, sizeof shape));
    for (int k = 0; k < count; k++) {
        int64_t left = n - each * k;
        lengths[k] = left < 0 ? 0 : left < each ? left : each;
    }
    *known = true;
    return SDX_OK;
}

static enum sdx_status split_ints(struct sdx_infer *ix, const int64_t *lengths)
{
    struct sdx_ints in;
    int64_t at = 0;
    if (ix->shapes_only || !sdx_infer_ints(ix, 0, &in) || in.rank != 1 ||
        in.count > SDX_MOVE_INTS_MAX)
        return SDX_OK;
    for (int k = 0; k < ix->count_out; at += lengths[k++])
        SDX_TRY(sdx_infer_set_ints(ix, k, 1, lengths[k], in.v + at, in.sym ? in.sym + at : NULL));
    return SDX_OK;
}

static enum sdx_status infer_split(struct sdx_infer *ix)
{
    int rank = sdx_infer_rank(ix, 0), axis = 0;
    bool known = false;
    for (int k = 0; k < ix->count_out; k++)
        sdx_infer_set_dtype(ix, k, sdx_infer_dtype(ix, 0));
    if (rank < 0 || ix->count_out < 1) return SDX_OK;
    SDX_TRY(sdx_infer_axis(ix, sdx_ir_attr_int(ix->node, "axis", 0), rank, &axis));
    const int64_t *in = sdx_infer_dims(ix, 0);
    int64_t *lengths = sdx_arena_array(ix->arena, (size_t)ix->count_out, sizeof(*lengths));
    if (!lengths) return SDX_FAIL_MEMORY(ix->cx);
    SDX_TRY(split_lengths(ix, axis, lengths, &known));
    for (int k = 0; k < ix->count_out; k++) {
        int64_t *dims = sdx_infer_new_dims(ix, k, rank);
        if (!dims) return SDX_OUT_OF_MEMORY;
        memcpy(dims, in, (size_t)rank * sizeof(*dims));
        dims[axis] = known ? lengths[k] : ix->count_out == 1 ? in[axis] : -1;
    }
    return known && rank == 1 ? split_ints(ix, lengths) : SDX_OK;
}

static enum sdx_status split_channels(struct sdx_prepare *px)
{
    struct sdx_channel *map = sdx_prepare_alloc(px, (size_t)px->in[0]->dims[1] * sizeof *map);
    int64_t at = 0;
    if (!map) return SDX_FAIL_MEMORY(px->cx);
    for (int64_t c = 0; c < px->in[0]->dims[1]; c++)
        map[c].channel = c;
    for (int k = 0; k < px->count_out; at += px->out[k++]->dims[1])
        SDX_TRY(sdx_channel_pick(px, "split_channels", 1, px->in, px->out[k], map + at));
    return SDX_OK;
}

static enum sdx_status prepare_split(struct sdx_prepare *px)
{
    const struct sdx_tensor *in = px->in[0];
    if (in->layout == SDX_LAYOUT_BLOCKED) return split_channels(px);
    int axis = axis_of(px, 0, in->rank);
    int64_t n = in->dims[axis], at = 0, given = 0;
    const int64_t *list = NULL;
    struct pieces *all = pieces_create(px, px->count_out);
    if (!all) return SDX_OUT_OF_MEMORY;
    if (sdx_prepare_has(px, 1))
        SDX_TRY(sdx_move_ints(px, 1, &list, &given));
    else
        list = sdx_ir_attr_ints(px->node, "split", &given);
    int64_t each = (n + px->count_out - 1) / px->count_out;
    for (int k = 0; k < px->count_out; k++) {
        int64_t left = n - at, length = given ? list[k] : left < each ? left : each;
        if (px->out[k]) {
            length = px->out[k]->dims[axis]; /* in memory */
            piece_init(&all->piece[all->count], sdx_move_size(in->dtype), in, px->out[k], axis, at,
                       true);
            pieces_add(all, k);
        }
        at += length;
    }
    pieces_close(all, in->bytes);
    return sdx_move_step(px, "split", run_split, all, all->parts, 0);
}

static bool place_split(struct sdx_prepare *px, int64_t *at)
{
    return place_pieces(px->in[0], axis_of(px, 0, px->in[0]->rank), px->count_out, px->out, at);
}

static void layout_split(struct sdx_prepare *px, struct sdx_layouts *want)
{
    sdx_layout_channels(px, axis_of(px, 0, px->in[0]->rank), want);
}

static const struct sdx_op ops[] = {
    {"Concat", 1, 0, infer_concat, KERNEL(prepare_concat), .cost = sdx_cost_none,
     .layout = layout_concat, .place = place_concat, .grow = grow_concat, .growing = UINT32_MAX,
     .flags = SDX_OP_PHYSICAL | SDX_OP_JOIN},
    {"Split", 1, 0, infer_split, KERNEL(prepare_split), .cost = sdx_cost_none,
     .layout = layout_split, .place = place_split, .flags = SDX_OP_PHYSICAL | SDX_OP_PIECES},
};
const struct sdx_op_family sdx_ops_concat_split = FAMILY("", ops);
