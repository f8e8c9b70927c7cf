/* SPDX-License-Identifier: Apache-2.0
 * Pad, CenterCropPad, Slice and Compress. Padding is a table of source indices for each axis; axes
 * behind the last padded one stay together, and neighbours on that are copied in one piece. */
#include "kernels/conv_block.h"
#include "ops/channel_pick.h"
#include "ops/layout.h"
#include "ops/move.h"
#include "ops/lower.h"
#include "ops/op.h"
#include "tensor/convert.h"

/* ---- index tables: Pad, CenterCropPad ---- */

enum pad_mode { PAD_CONSTANT, PAD_EDGE, PAD_REFLECT, PAD_WRAP };

struct pad_params {
    int rank;        /* of the axes up to the last padded one */
    int value_input; /* input with the value; -1: `value` */
    size_t size;
    unsigned char value[16];
    int64_t unit;                                      /* elements of the axes behind */
    int64_t dims[SDX_RANK_MAX], strides[SDX_RANK_MAX]; /* output lengths, input strides */
    const int64_t *table[SDX_RANK_MAX];                /* input index, -1: the value */
    const int64_t *together; /* last axis: how many from here on are neighbours, or the value */
    int64_t rows;
};

/* Input index of output index o, or -1. Negative padding cuts the input before the mode applies. */
static int64_t pad_index(enum pad_mode mode, int64_t o, int64_t n, int64_t begin, int64_t end)
{
    int64_t lo = begin < 0 ? -begin : 0, hi = end < 0 ? n + end : n, len = hi - lo;
    int64_t j = o - (begin > 0 ? begin : 0);
    if (j >= 0 && j < len) return lo + j;
    if (mode == PAD_CONSTANT || len <= 0) return -1;
    if (mode == PAD_EDGE) return j < 0 ? lo : hi - 1;
    int64_t period = mode == PAD_WRAP ? len : len > 1 ? 2 * (len - 1) : 1;
    j %= period;
    if (j < 0) j += period;
    return lo + (j < len ? j : period - j);
}

/* Where the last axis can be copied or filled in one piece. */
static enum sdx_status pad_pieces(struct sdx_prepare *px, struct pad_params *p)
{
    const int64_t n = p->dims[p->rank - 1], *table = p->table[p->rank - 1];
    int64_t *together = sdx_prepare_alloc(px, ((size_t)n + 1) * sizeof(*together));
    if (!together) return SDX_OUT_OF_MEMORY;
    for (int64_t o = n - 1; o >= 0; o--) {
        const bool goes_on = o + 1 < n && table[o + 1] == (table[o] < 0 ? -1 : table[o] + 1);
        together[o] = goes_on ? together[o + 1] + 1 : 1;
    }
    p->together = together;
    return SDX_OK;
}

/* From the shape of `in` to that of `to`. */
static enum sdx_status pad_create(struct sdx_prepare *px, enum pad_mode mode,
                                  const struct sdx_tensor *in, const struct sdx_tensor *to,
                                  const int64_t *begin, const int64_t *end, struct pad_params **out)
{
    struct pad_params *p = SDX_PREPARE_NEW(px, struct pad_params);
    if (!p) return SDX_OUT_OF_MEMORY;
    p->rank = to->rank;
    p->size = sdx_move_size(to->dtype);
    p->value_input = -1;
    p->rows = p->unit = to->count == 0 ? 0 : 1;
    while (p->rank > 1 && begin[p->rank - 1] == 0 && end[p->rank - 1] == 0)
        p->unit *= to->dims[--p->rank];
    sdx_move_strides(in->rank, in->dims, p->strides);
    for (int i = 0; i < p->rank; i++) {
        int64_t n = to->dims[i], *table = sdx_prepare_alloc(px, ((size_t)n + 1) * sizeof(*table));
        if (!table) return SDX_OUT_OF_MEMORY;
        for (int64_t o = 0; o < n; o++) {
            table[o] = pad_index(mode, o, in->dims[i], begin[i], end[i]);
            if (table[o] < 0 && mode != PAD_CONSTANT)
                return SDX_FAIL(px->cx, SDX_BAD_MODEL, "Pad: axis %d has nothing to repeat", i);
        }
        p->table[i] = table;
        p->dims[i] = n;
        if (i < p->rank - 1) p->rows *= n;
    }
    *out = p;
    return p->rank > 0 ? pad_pieces(px, p) : SDX_OK;
}

/* Indices begin .. end-1 of a row. */
static void pad_row(const struct pad_params *p, const char *row, const void *value, char *dst,
                    int64_t begin, int64_t end)
{
    const int64_t bytes = p->unit * (int64_t)p->size, *table = p->table[p->rank - 1];
    for (int64_t j = begin, n = 0; j < end; j += n, dst += n * bytes) {
        const int64_t from = table[j];
        n = p->together[j] < end - j ? p->together[j] : end - j;
        if (n == 1 && p->unit == 1)
            sdx_move_one(dst, from < 0 ? value : row + from * bytes, p->size);
        else if (from < 0)
            sdx_move_fill(dst, p->size, value, n * p->unit);
        else
            sdx_move_bytes(dst, row + from * bytes, (size_t)(n * bytes));
    }
}

static enum sdx_status run_pad(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)x;
    const struct pad_params *p = step->params;
    const void *value = p->value_input < 0 ? p->value : step->in[p->value_input]->data;
    const char *src = step->in[0]->data;
    char *dst = step->out[0]->data;
    if (p->rank == 0) {
        memcpy(dst, src, p->size);
        return SDX_OK;
    }
    const int64_t n = p->dims[p->rank - 1], bytes = p->unit * (int64_t)p->size;
    const int64_t first = sdx_part_begin(p->rows * n, step->parts, part, 1);
    int64_t left = sdx_part_begin(p->rows * n, step->parts, part + 1, 1) - first;
    if (left <= 0) return SDX_OK;
    int64_t at[SDX_RANK_MAX], rest = first / n;
    for (int i = p->rank - 2; i >= 0; i--) {
        at[i] = rest % p->dims[i];
        rest /= p->dims[i];
    }
    dst += first * bytes;
    for (int64_t begin = first % n; left > 0; begin = 0) {
        const int64_t end = n - begin < left ? n : begin + left;
        int64_t from = 0;
        bool outside = false;
        for (int i = 0; i < p->rank - 1; i++) {
            outside = outside || p->table[i][at[i]] < 0;
            from += p->table[i][at[i]] * p->strides[i];
        }
        if (outside)
            sdx_move_fill(dst, p->size, value, (end - begin) * p->unit);
        else
            pad_row(p, src + from * (int64_t)p->size, value, dst, begin, end);
        dst += (end - begin) * bytes;
        left -= end - begin;
        for (int i = p->rank - 2; i >= 0; i--) {
            if (++at[i] < p->dims[i]) break;
            at[i] = 0;
        }
    }
    return SDX_OK;
}

static enum sdx_status pad_add(struct sdx_prepare *px, const char *kernel, struct pad_params *p)
{
    const int64_t units = p->rank > 0 ? p->rows * p->dims[p->rank - 1] : 0;
    int64_t parts = sdx_prepare_parts((double)px->out[0]->count * (double)p->size, 128 * 1024,
                                      units > 0 ? units : 1);
    return sdx_move_step(px, kernel, run_pad, p, parts, 0);
}

/* ---- Pad ---- */

/* The padding of each axis from `pads` (begins, then ends) for the listed axes (NULL: all). */
static enum sdx_status spread_pads(struct sdx_context *cx, int rank, const int64_t *pads,
                                   int64_t count, const int64_t *axes, int64_t count_axes,
                                   int64_t *begin, int64_t *end)
{
    int64_t n = axes ? count_axes : rank;
    memset(begin, 0, SDX_RANK_MAX * sizeof(*begin));
    memset(end, 0, SDX_RANK_MAX * sizeof(*end));
    if (count != 2 * n)
        return SDX_FAIL(cx, SDX_BAD_MODEL, "Pad: %lld numbers in pads, expected %lld",
                        (long long)count, (long long)(2 * n));
    for (int64_t i = 0; i < n; i++) {
        int64_t axis = axes ? axes[i] : i;
        if (axis < -rank || axis >= rank)
            return SDX_FAIL(cx, SDX_BAD_MODEL, "Pad: axis %lld of a tensor of rank %d",
                            (long long)axis, rank);
        if (axis < 0) axis += rank;
        begin[axis] = pads[i];
        end[axis] = pads[n + i];
    }
    return SDX_OK;
}

static enum sdx_status padded_length(struct sdx_context *cx, int64_t n, int64_t begin, int64_t end,
                                     int64_t *out)
{
    int64_t sum = 0;
    bool ok = sdx_add_i64(begin, end, &sum) && sdx_add_i64(n, sum, &sum) && sum >= 0;
    if (ok && ((begin < 0 && begin < -n) || (end < 0 && end < -n))) ok = false;
    if (!ok)
        return SDX_FAIL(cx, SDX_BAD_MODEL, "Pad: length %lld with padding %lld and %lld",
                        (long long)n, (long long)begin, (long long)end);
    *out = sum;
    return SDX_OK;
}

static enum sdx_status infer_pad(struct sdx_infer *ix)
{
    int rank = sdx_infer_rank(ix, 0);
    int64_t count = 0, count_axes = 0, begin[SDX_RANK_MAX], end[SDX_RANK_MAX];
    const int64_t *pads = NULL, *axes = NULL;
    sdx_infer_set_dtype(ix, 0, sdx_infer_dtype(ix, 0));
    if (rank < 0) return SDX_OK;
    bool known = true;
    if (ix->opset < 11)
        pads = sdx_ir_attr_ints(ix->node, ix->opset < 2 ? "paddings" : "pads", &count);
    else
        known = sdx_infer_known_ints(ix, 1, &pads, &count);
    if (known && sdx_infer_has(ix, 3)) known = sdx_infer_known_ints(ix, 3, &axes, &count_axes);
    if (!known) return sdx_move_infer_rank(ix, 0, rank);
    SDX_TRY(spread_pads(ix->cx, rank, pads, count, axes, count_axes, begin, end));
    const int64_t *in = sdx_infer_dims(ix, 0);
    int64_t *dims = sdx_infer_new_dims(ix, 0, rank);
    if (!dims) return SDX_OUT_OF_MEMORY;
    for (int i = 0; i < rank; i++) {
        if (begin[i] == 0 && end[i] == 0)
            dims[i] = in[i];
        else if (in[i] >= 0)
            SDX_TRY(padded_length(ix->cx, in[i], begin[i], end[i], &dims[i]));
        else if (sdx_add_i64(begin[i], end[i], &dims[i]))
            dims[i] = sdx_infer_scaled(
                ix,
                (struct sdx_ir_length){.dim = in[i], .factor = 1, .term = dims[i], .divisor = 1});
        else
            return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "Pad: padding %lld and %lld is too large",
                            (long long)begin[i], (long long)end[i]);
    }
    return SDX_OK;
}

static enum sdx_status pad_mode_of(struct sdx_prepare *px, enum pad_mode *out)
{
    static const char *const names[] = {"constant", "edge", "reflect", "wrap"};
    struct sdx_str mode = sdx_ir_attr_str(px->node, "mode", "constant");
    for (int i = 0; i < SDX_COUNT_OF(names); i++)
        if (sdx_str_is(mode, names[i])) {
            *out = (enum pad_mode)i;
            return SDX_OK;
        }
    return SDX_FAIL(px->cx, SDX_BAD_MODEL,
                    "Pad: mode \"%.*s\", expected constant, edge, reflect or wrap",
                    SDX_STR_ARG(mode));
}

/* The padding of each axis, from constants or what the run has computed. */
static enum sdx_status pads_of(struct sdx_prepare *px, int64_t *begin, int64_t *end)
{
    int64_t count = 0, count_axes = 0;
    const int64_t *pads = NULL, *axes = NULL;
    if (px->opset < 11)
        pads = sdx_ir_attr_ints(px->node, px->opset < 2 ? "paddings" : "pads", &count);
    else
        SDX_TRY(sdx_move_ints(px, 1, &pads, &count));
    if (sdx_prepare_has(px, 3)) SDX_TRY(sdx_move_ints(px, 3, &axes, &count_axes));
    return spread_pads(px->cx, px->in[0]->rank, pads, count, axes, count_axes, begin, end);
}

static bool pads_zeros(const struct sdx_prepare *px)
{
    if (px->opset < 11) return sdx_ir_attr_float(px->node, "value", 0) == 0;
    return !sdx_prepare_has(px, 2) || px->in[2]->count == 0 ||
           (px->in[2]->is_constant && sdx_load_f64(px->in[2]->dtype, px->in[2]->data, 0) == 0);
}

/* Blocked channels: all axes but those, or zeros to those alone. */
static void layout_pad(struct sdx_prepare *px, struct sdx_layouts *want)
{
    const struct sdx_tensor *in = px->in[0], *out = px->out[0];
    enum pad_mode mode = PAD_CONSTANT;
    int64_t begin[SDX_RANK_MAX], end[SDX_RANK_MAX];
    if (in->layout != SDX_LAYOUT_BLOCKED || out->count == 0 ||
        (px->opset >= 11 && !px->in[1]->is_constant) ||
        (sdx_prepare_has(px, 3) && !px->in[3]->is_constant) || pad_mode_of(px, &mode) != SDX_OK ||
        pads_of(px, begin, end) != SDX_OK)
        return;
    bool others = false;
    for (int i = 0; i < in->rank; i++)
        others = others || (i != 1 && (begin[i] || end[i]));
    if ((begin[1] || end[1]) &&
        (others || mode != PAD_CONSTANT || !pads_zeros(px) || out->dims[1] < sdx_block_lanes() / 2))
        return;
    want->in[0] = want->out[0] = SDX_LAYOUT_BLOCKED;
}

static enum sdx_status pad_channels(struct sdx_prepare *px, int64_t begin)
{
    const int64_t channels = px->in[0]->dims[1], all = px->out[0]->dims[1];
    struct sdx_channel *map = sdx_prepare_alloc(px, (size_t)all * sizeof *map);
    if (!map) return SDX_FAIL_MEMORY(px->cx);
    for (int64_t c = 0; c < all; c++)
        map[c].channel = c >= begin && c - begin < channels ? c - begin : -1;
    return sdx_channel_pick(px, "pad_channels", 1, px->in, px->out[0], map);
}

static enum sdx_status prepare_pad(struct sdx_prepare *px)
{
    const struct sdx_tensor *in = px->in[0], *out = px->out[0];
    enum pad_mode mode = PAD_CONSTANT;
    int64_t begin[SDX_RANK_MAX + 1], end[SDX_RANK_MAX + 1];
    struct pad_params *p = NULL;
    SDX_TRY(pad_mode_of(px, &mode));
    SDX_TRY(pads_of(px, begin, end));
    if (out->layout == SDX_LAYOUT_BLOCKED) {
        if (begin[1] || end[1]) return pad_channels(px, begin[1]);
        begin[in->rank] = end[in->rank] = 0;
        in = sdx_layout_physical(px->cx, px->arena, in, SDX_LAYOUT_BLOCKED);
        out = sdx_layout_physical(px->cx, px->arena, out, SDX_LAYOUT_BLOCKED);
        if (!in || !out) return px->cx->error.status;
    }
    SDX_TRY(pad_create(px, mode, in, out, begin, end, &p));
    if (px->opset < 11)
        sdx_store_f64(px->in[0]->dtype, p->value, 0, sdx_ir_attr_float(px->node, "value", 0));
    else if (sdx_prepare_has(px, 2) && px->in[2]->count > 0)
        p->value_input = 2;
    return pad_add(px, "pad", p);
}

/* ---- CenterCropPad ---- */

static enum sdx_status crop_axes(struct sdx_context *cx, const struct sdx_ir_node *node, int rank,
                                 int64_t *axes, int64_t *n)
{
    const int64_t *given = sdx_ir_attr_ints(node, "axes", n);
    if (!given) *n = rank;
    if (*n > rank)
        return SDX_FAIL(cx, SDX_BAD_MODEL, "CenterCropPad: %lld axes of a tensor of rank %d",
                        (long long)*n, rank);
    for (int64_t i = 0; i < *n; i++) {
        int64_t axis = given ? given[i] : i;
        if (axis < -rank || axis >= rank)
            return SDX_FAIL(cx, SDX_BAD_MODEL, "CenterCropPad: axis %lld of a tensor of rank %d",
                            (long long)axis, rank);
        axes[i] = axis < 0 ? axis + rank : axis;
    }
    return SDX_OK;
}

static enum sdx_status infer_center_crop_pad(struct sdx_infer *ix)
{
    int rank = sdx_infer_rank(ix, 0);
    int64_t axes[SDX_RANK_MAX], n = 0;
    struct sdx_ints shape;
    sdx_infer_set_dtype(ix, 0, sdx_infer_dtype(ix, 0));
    if (rank < 0) return SDX_OK;
    SDX_TRY(crop_axes(ix->cx, ix->node, rank, axes, &n));
    if (!sdx_infer_ints(ix, 1, &shape)) return sdx_move_infer_rank(ix, 0, rank);
    if (shape.count != n)
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "CenterCropPad: %lld lengths for %lld axes",
                        (long long)shape.count, (long long)n);
    int64_t *dims = sdx_infer_new_dims(ix, 0, rank);
    if (!dims) return SDX_OUT_OF_MEMORY;
    memcpy(dims, sdx_infer_dims(ix, 0), (size_t)rank * sizeof(*dims));
    for (int64_t i = 0; i < n; i++) {
        bool symbolic = shape.sym && shape.sym[i];
        if (!symbolic && shape.v[i] < 0)
            return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "CenterCropPad: length %lld",
                            (long long)shape.v[i]);
        dims[axes[i]] = symbolic ? shape.sym[i] : shape.v[i];
    }
    return SDX_OK;
}

static enum sdx_status prepare_center_crop_pad(struct sdx_prepare *px)
{
    const struct sdx_tensor *in = px->in[0], *out = px->out[0];
    int64_t begin[SDX_RANK_MAX], end[SDX_RANK_MAX];
    for (int i = 0; i < in->rank; i++) {
        int64_t d = out->dims[i] - in->dims[i];
        begin[i] = d >= 0 ? d / 2 : -(-d / 2);
        end[i] = d - begin[i];
    }
    struct pad_params *p = NULL;
    SDX_TRY(pad_create(px, PAD_CONSTANT, in, out, begin, end, &p));
    return pad_add(px, "center_crop_pad", p);
}

/* ---- Slice ---- */

/* starts, ends, axes, steps: attributes 0..2 before version 10, inputs 1..4 since. */
static bool slice_list(struct sdx_infer *ix, int i, struct sdx_ints *v, bool *given)
{
    static const char *const names[] = {"starts", "ends", "axes"};
    *v = (struct sdx_ints){.rank = 1};
    if (ix->opset < 10) {
        if (i < 3) v->v = sdx_ir_attr_ints(ix->node, names[i], &v->count);
        *given = v->v != NULL;
        return true;
    }
    *given = sdx_infer_has(ix, i + 1);
    return !*given || sdx_infer_ints(ix, i + 1, v);
}

/* Clamps start and end to the axis (the standard puts a start below the axis at 0 for negative
 * steps too, unlike Python); returns the number of elements. */
static int64_t slice_clamp(int64_t n, int64_t *start, int64_t end, int64_t step)
{
    int64_t low = step < 0 ? -1 : 0, high = step < 0 ? n - 1 : n, s = *start;
    if (s < 0) s += n;
    if (end < 0) end += n;
    s = s < 0 ? 0 : s;
    *start = s = s > high ? high : s;
    end = end < low ? low : end > high ? high : end;
    if (step > 0) return end > s ? (end - s - 1) / step + 1 : 0;
    if (step == INT64_MIN) return s > end ? 1 : 0;
    return s > end ? (s - end - 1) / -step + 1 : 0;
}

static bool symbol_at(const struct sdx_ints *v, int64_t i)
{
    return v->sym && v->sym[i];
}

/* Length of one axis; `i` is its place in the lists. */
static int64_t slice_dim(struct sdx_infer *ix, const struct sdx_ints list[4], bool has_steps,
                         int64_t i, int64_t n)
{
    if (symbol_at(&list[0], i) || (has_steps && symbol_at(&list[3], i))) return -1;
    int64_t start = list[0].v[i], step = has_steps ? list[3].v[i] : 1;
    if (symbol_at(&list[1], i)) {
        const int64_t end = list[1].sym[i];
        if (start != 0 || step != 1) return -1;
        if (n < 1) return end == n ? n : n == 0 ? 0 : -1;
        return sdx_infer_scaled(
            ix, (struct sdx_ir_length){.dim = end, .factor = 1, .divisor = 1, .most = n});
    }
    if (n >= 0) return slice_clamp(n, &start, list[1].v[i], step);
    return start == 0 && step == 1 && list[1].v[i] >= INT32_MAX ? n : -1;
}

static enum sdx_status slice_check(struct sdx_infer *ix, const struct sdx_ints list[4],
                                   const bool given[4])
{
    if (!given[0] || !given[1])
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "Slice: starts or ends are missing");
    if (list[0].count != list[1].count || (given[2] && list[2].count != list[0].count) ||
        (given[3] && list[3].count != list[0].count))
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL,
                        "Slice: starts, ends, axes and steps differ in "
                        "length");
    for (int64_t i = 0; given[3] && i < list[3].count; i++)
        if (!symbol_at(&list[3], i) && list[3].v[i] == 0)
            return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "Slice: step %lld is 0", (long long)i);
    return SDX_OK;
}

static enum sdx_status slice_ints(struct sdx_infer *ix, const struct sdx_ints list[4],
                                  bool has_steps)
{
    struct sdx_ints in;
    if (ix->shapes_only || sdx_infer_rank(ix, 0) != 1 || !ix->out[0].has_shape ||
        ix->out[0].dims[0] < 0 || ix->out[0].dims[0] > SDX_MOVE_INTS_MAX || list[0].count != 1 ||
        !sdx_infer_ints(ix, 0, &in))
        return SDX_OK;
    int64_t start = list[0].v[0], step = has_steps ? list[3].v[0] : 1, v[SDX_MOVE_INTS_MAX];
    int64_t sym[SDX_MOVE_INTS_MAX], n = slice_clamp(in.count, &start, list[1].v[0], step);
    bool all = true;
    for (int64_t i = 0; i < n; i++) {
        v[i] = in.v[start + i * step];
        sym[i] = in.sym ? in.sym[start + i * step] : 0;
        all = all && sym[i] == 0;
    }
    return sdx_infer_set_ints(ix, 0, 1, n, v, all ? NULL : sym);
}

/* Something of the lists is not known: lengths of axes that are not named stay. */
static enum sdx_status slice_partly(struct sdx_infer *ix, int rank, const struct sdx_ints *axes)
{
    SDX_TRY(sdx_move_infer_rank(ix, 0, rank));
    int64_t *dims = (int64_t *)(uintptr_t)ix->out[0].dims;
    for (int64_t i = 0; axes && i < axes->count; i++)
        if (axes->sym && axes->sym[i]) return SDX_OK;
    for (int d = 0; axes && d < rank; d++) {
        bool is_named = false;
        for (int64_t i = 0; i < axes->count; i++)
            is_named = is_named || axes->v[i] == d || axes->v[i] == d - rank;
        if (!is_named) dims[d] = sdx_infer_dims(ix, 0)[d];
    }
    return SDX_OK;
}

static enum sdx_status infer_slice(struct sdx_infer *ix)
{
    struct sdx_ints list[4];
    bool given[4], known[4];
    int rank = sdx_infer_rank(ix, 0);
    sdx_infer_set_dtype(ix, 0, sdx_infer_dtype(ix, 0));
    if (rank < 0) return SDX_OK;
    for (int i = 0; i < 4; i++)
        known[i] = slice_list(ix, i, &list[i], &given[i]);
    if (!known[0] || !known[1] || !known[2] || !known[3])
        return slice_partly(ix, rank, given[2] && known[2] ? &list[2] : NULL);
    SDX_TRY(slice_check(ix, list, given));
    if (!given[2] && list[0].count > rank)
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "Slice: %lld starts for a tensor of rank %d",
                        (long long)list[0].count, rank);
    int64_t dims[SDX_RANK_MAX];
    memcpy(dims, sdx_infer_dims(ix, 0), (size_t)rank * sizeof(*dims));
    for (int64_t i = 0; i < list[0].count; i++) {
        int axis = (int)i;
        if (given[2]) {
            if (symbol_at(&list[2], i)) return sdx_move_infer_rank(ix, 0, rank);
            SDX_TRY(sdx_infer_axis(ix, list[2].v[i], rank, &axis));
        }
        dims[axis] = slice_dim(ix, list, given[3], i, sdx_infer_dims(ix, 0)[axis]);
    }
    SDX_TRY(sdx_infer_set_dims(ix, 0, rank, dims));
    return slice_ints(ix, list, given[3]);
}

enum { STARTS, ENDS, AXES, STEPS, LISTS }; /* AXES and STEPS may be NULL */

static enum sdx_status slice_lists(struct sdx_prepare *px, const int64_t **list, int64_t *count)
{
    static const char *const names[] = {"starts", "ends", "axes"};
    for (int i = 0; i < LISTS; i++) {
        int64_t n = 0;
        list[i] = NULL;
        if (px->opset < 10)
            list[i] = i < STEPS ? sdx_ir_attr_ints(px->node, names[i], &n) : NULL;
        else if (sdx_prepare_has(px, i + 1))
            SDX_TRY(sdx_move_ints(px, i + 1, &list[i], &n));
        if (i == STARTS) *count = n;
    }
    return SDX_OK;
}

/* Strides in the input of the output's axes, and the first element. */
static enum sdx_status slice_strides(struct sdx_prepare *px, int64_t *src, int64_t *at)
{
    const struct sdx_tensor *in = px->in[0];
    const int64_t *list[LISTS];
    int64_t count = 0;
    SDX_TRY(slice_lists(px, list, &count));
    sdx_move_strides(in->rank, in->dims, src);
    *at = 0;
    for (int64_t i = 0; i < count; i++) {
        const int axis = sdx_layout_axis(px->layout, list[AXES] ? list[AXES][i] : i, in->rank);
        int64_t start = list[STARTS][i], step = list[STEPS] ? list[STEPS][i] : 1;
        if (px->layout == SDX_LAYOUT_BLOCKED && axis == 1) { /* whole blocks: slice_layout */
            *at += (start > 0 ? start : 0) / sdx_block_lanes() * src[1];
            continue;
        }
        if (slice_clamp(in->dims[axis], &start, list[ENDS][i], step) < 2) step = 1;
        *at += start * src[axis];
        src[axis] *= step;
    }
    return SDX_OK;
}

/* Channels in blocks or last stay so when nothing else is cut, or they are all there. */
static void slice_layout(struct sdx_prepare *px, struct sdx_layouts *want)
{
    const struct sdx_tensor *in = px->in[0], *out = px->out[0];
    const int64_t *list[LISTS], lanes = sdx_block_lanes();
    int64_t count = 0, channels = -1; /* channels: where in the lists they are */
    if (in->layout == SDX_LAYOUT_PLAIN || out->count == 0 ||
        slice_lists(px, list, &count) != SDX_OK)
        return;
    for (int64_t i = 0; i < count; i++) {
        const int64_t axis = list[AXES] ? list[AXES][i] : i,
                      step = list[STEPS] ? list[STEPS][i] : 1;
        if ((axis == 1 || axis + in->rank == 1) && (step != 1 || out->dims[1] != in->dims[1]))
            channels = i;
    }
    bool is_even = true;
    if (channels >= 0) {
        const int64_t start = list[STARTS][channels];
        if (count != 1 || (list[STEPS] && list[STEPS][0] != 1) || start < 0) return;
        is_even = start % lanes == 0 &&
                  (out->dims[1] % lanes == 0 || start + out->dims[1] == in->dims[1]);
        if (in->layout == SDX_LAYOUT_BLOCKED && !is_even && out->dims[1] < lanes / 2) return;
    }
    want->in[0] = want->out[0] = in->layout;
    want->logical = in->layout == SDX_LAYOUT_BLOCKED && !is_even;
}

static bool place_slice(struct sdx_prepare *px, int64_t *at)
{
    int64_t src[SDX_RANK_MAX], dst[SDX_RANK_MAX];
    const struct sdx_tensor *out = px->out[0];
    if (out->count == 0 || slice_strides(px, src, at) != SDX_OK) return false;
    sdx_move_strides(out->rank, out->dims, dst);
    for (int d = 0; d < out->rank; d++)
        if (out->dims[d] > 1 && src[d] != dst[d]) return false;
    return true;
}

/* Channels that begin or end within a block. */
static enum sdx_status slice_channels(struct sdx_prepare *px)
{
    const int64_t *list[LISTS], channels = px->out[0]->dims[1];
    int64_t count = 0;
    SDX_TRY(slice_lists(px, list, &count));
    struct sdx_channel *map = sdx_prepare_alloc(px, (size_t)channels * sizeof *map);
    if (!map) return SDX_FAIL_MEMORY(px->cx);
    for (int64_t c = 0; c < channels; c++)
        map[c].channel = list[STARTS][0] + c;
    return sdx_channel_pick(px, "slice_channels", 1, px->in, px->out[0], map);
}

static enum sdx_status prepare_slice(struct sdx_prepare *px)
{
    if (px->out[0]->layout == SDX_LAYOUT_BLOCKED) return slice_channels(px);
    const struct sdx_tensor *in = px->in[0];
    int64_t src[SDX_RANK_MAX], dst[SDX_RANK_MAX], at = 0;
    SDX_TRY(slice_strides(px, src, &at));
    sdx_move_strides(px->out[0]->rank, px->out[0]->dims, dst);
    struct sdx_move m;
    sdx_move_init(&m, sdx_move_size(in->dtype), in->rank, px->out[0]->dims, src, dst, at, 0);
    return sdx_move_add(px, "slice", 0, &m);
}

/* ---- Compress ---- */

static enum sdx_status infer_compress(struct sdx_infer *ix)
{
    int rank = sdx_infer_rank(ix, 0), axis = 0;
    const struct sdx_ir_attr *a = sdx_ir_attr(ix->node, "axis");
    sdx_infer_set_dtype(ix, 0, sdx_infer_dtype(ix, 0));
    if (!a) return sdx_move_infer_rank(ix, 0, 1);
    if (rank < 0) return SDX_OK;
    SDX_TRY(sdx_infer_axis(ix, a->i, rank, &axis));
    int64_t *dims = sdx_infer_new_dims(ix, 0, rank);
    if (!dims) return SDX_OUT_OF_MEMORY;
    memcpy(dims, sdx_infer_dims(ix, 0), (size_t)rank * sizeof(*dims));
    dims[axis] = -1;
    return SDX_OK;
}

struct compress_params {
    bool flat;
    int axis;
};

static enum sdx_status run_compress(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)part;
    const struct compress_params *p = step->params;
    const struct sdx_tensor *in = step->in[0], *keep = step->in[1];
    const uint8_t *flag = keep->data;
    int64_t flags = keep->count;
    int64_t dims[SDX_RANK_MAX], length = p->flat ? in->count : in->dims[p->axis], n = 0;
    int64_t outer = 1, inner = 1, rank = p->flat ? 1 : in->rank;
    if (flags > length) flags = length; /* as ONNX Runtime: what is too much selects nothing */
    for (int64_t i = 0; i < flags; i++)
        n += flag[i] != 0;
    for (int i = 0; i < rank; i++)
        dims[i] = p->flat || i == p->axis ? n : in->dims[i];
    if (!p->flat) {
        outer = sdx_move_product(in->dims, 0, p->axis);
        inner = sdx_move_product(in->dims, p->axis + 1, in->rank);
    }
    if (in->count == 0) outer = inner = 0;
    size_t size = sdx_move_size(in->dtype), run = (size_t)inner * size;
    char *dst = NULL, *texts = NULL;
    if (in->dtype == SDX_STRING) {
        texts = sdx_mem_calloc(x->cx->mem, SDX_MEM_SCRATCH, (size_t)(outer * n) + 1, run);
        if (!texts) return SDX_FAIL_MEMORY(x->cx);
        dst = texts;
    } else {
        SDX_TRY(sdx_exec_output(x, step, 0, in->dtype, (int)rank, dims));
        dst = step->out[0]->data;
    }
    const char *src = in->data;
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0, left = n; left > 0; i++) {
            if (run <= 16 && run) { /* no branch on data */
                sdx_move_one(dst, src + (size_t)(o * length + i) * run, run);
                dst += flag[i] ? run : 0;
                left -= flag[i] != 0;
                continue;
            }
            if (!flag[i]) continue;
            left--;
            if (run) memcpy(dst, src + (size_t)(o * length + i) * run, run);
            dst += run;
        }
    if (!texts) return SDX_OK;
    enum sdx_status status =
        sdx_exec_output_strings(x, step, 0, (int)rank, dims, (const struct sdx_str *)(void *)texts);
    sdx_mem_free(x->cx->mem, texts);
    return status;
}

static enum sdx_status prepare_compress(struct sdx_prepare *px)
{
    struct compress_params *p = SDX_PREPARE_NEW(px, struct compress_params);
    if (!p) return SDX_OUT_OF_MEMORY;
    const struct sdx_ir_attr *a = sdx_ir_attr(px->node, "axis");
    p->flat = a == NULL;
    if (a) p->axis = (int)(a->i < 0 ? a->i + px->in[0]->rank : a->i);
    return sdx_prepare_step(px, "compress", run_compress, p, 1, 0);
}

/* DynamicSlice, experimental before version 10, was Slice as that is since. */
static enum sdx_status infer_dynamic_slice(struct sdx_infer *ix)
{
    struct sdx_infer as_slice = *ix;
    as_slice.opset = 10;
    return infer_slice(&as_slice);
}

static enum sdx_status lower_dynamic_slice(struct sdx_lower *lx)
{
    int32_t in[4];
    int count = sdx_lower_node(lx)->count_inputs;
    for (int i = 0; i < count && i < 4; i++)
        in[i] = sdx_lower_input(lx, i);
    lx->opset = 10;
    sdx_lower_output(lx, 0, sdx_lower_op(lx, "Slice", count < 4 ? count : 4, in));
    return lx->status;
}

static const struct sdx_op ops[] = {
    {"Pad", 1, 0, infer_pad, KERNEL(prepare_pad), .cost = sdx_cost_none, .layout = layout_pad},
    {"CenterCropPad", 18, 0, infer_center_crop_pad, KERNEL(prepare_center_crop_pad),
     .cost = sdx_cost_none},
    {"DynamicSlice", 1, 9, infer_dynamic_slice, LOWER(lower_dynamic_slice)},
    {"Slice", 1, 0, infer_slice, KERNEL(prepare_slice), .cost = sdx_cost_none, .place = place_slice,
     .layout = slice_layout, .flags = SDX_OP_PIECES | SDX_OP_PHYSICAL},
    {"Compress", 9, 0, infer_compress, KERNEL(prepare_compress), .cost = sdx_cost_none,
     .flags = SDX_OP_DYNAMIC},
};
const struct sdx_op_family sdx_ops_pad_slice = FAMILY("", ops);
