/* SPDX-License-Identifier: Apache-2.0
 * Layouts of operands: what they look like in memory, reorder steps, elementwise choice. */
#include "ops/layout.h"

#include "kernels/conv_block.h"
#include "kernels/qbytes.h"
#include "kernels/vec.h"
#include "ops/step_host.h"

enum { REORDER_GRAIN = 32768 }; /* elements a part */

bool sdx_layout_serves(int layout, int dtype, int rank)
{
    if (rank < 3 || rank > 5 || layout == SDX_LAYOUT_GROWING) return false;
    return layout == SDX_LAYOUT_BLOCKED ? dtype == SDX_F32 : dtype == SDX_U8 || dtype == SDX_I8;
}

/* Returns the rank in memory. */
static int physical_dims(int layout, int rank, const int64_t *dims, int64_t *to)
{
    const int64_t lanes = layout == SDX_LAYOUT_BLOCKED ? sdx_block_lanes() : 0;
    to[0] = dims[0];
    if (lanes) {
        to[1] = (dims[1] + lanes - 1) / lanes;
        for (int d = 2; d < rank; d++)
            to[d] = dims[d];
        to[rank] = lanes;
        return rank + 1;
    }
    for (int d = 2; d < rank; d++)
        to[d - 1] = dims[d];
    to[rank - 1] = dims[1];
    return rank;
}

struct sdx_tensor *sdx_layout_tensor(struct sdx_context *cx, struct sdx_arena *arena, int dtype,
                                     int rank, const int64_t *dims, int layout)
{
    int64_t memory[SDX_RANK_MAX + 1], count = 0;
    struct sdx_tensor *t = sdx_op_tensor(cx, arena, dtype, rank, dims);
    if (!t || layout == SDX_LAYOUT_PLAIN) return t;
    const int rank_memory = physical_dims(layout, rank, dims, memory);
    t->layout = (uint8_t)layout;
    if (!sdx_dims_count(memory, rank_memory, &count) || !sdx_dtype_bytes(dtype, count, &t->bytes)) {
        (void)SDX_FAIL_MEMORY(cx);
        return NULL;
    }
    return t;
}

struct sdx_tensor *sdx_layout_physical(struct sdx_context *cx, struct sdx_arena *arena,
                                       const struct sdx_tensor *t, int layout)
{
    int64_t memory[SDX_RANK_MAX + 1];
    int rank = t->rank;
    if (t->layout != SDX_LAYOUT_PLAIN) {
        rank = physical_dims(layout, rank, t->dims, memory);
    } else if (t->count == 1) {
        rank = 0;
    } else if (layout == SDX_LAYOUT_BLOCKED) {
        memcpy(memory, t->dims, (size_t)rank * sizeof *memory);
        memory[rank++] = 1;
    } else {
        (void)physical_dims(layout, rank, t->dims, memory);
    }
    struct sdx_tensor *to = sdx_op_tensor(cx, arena, t->dtype, rank, memory);
    if (!to) return NULL;
    to->data = t->data;
    to->is_constant = t->is_constant;
    to->in_model = t->in_model;
    to->needs_copy = t->needs_copy;
    to->recipe = t->recipe;
    return to;
}

bool sdx_layout_is_same(int layout, int rank, const int64_t *dims)
{
    int64_t pixels = 1;
    if (layout == SDX_LAYOUT_GROWING) return false;
    for (int d = 2; d < rank; d++)
        pixels *= dims[d];
    if (layout == SDX_LAYOUT_BLOCKED) return pixels == 1 && dims[1] % sdx_block_lanes() == 0;
    return layout == SDX_LAYOUT_PLAIN || pixels == 1 || dims[1] == 1;
}

int sdx_layout_axis(int layout, int64_t axis, int rank)
{
    const int logical = layout == SDX_LAYOUT_BLOCKED ? rank - 1 : rank;
    const int a = (int)(axis < 0 ? axis + logical : axis);
    if (layout != SDX_LAYOUT_LAST || a == 0) return a;
    return a == 1 ? rank - 1 : a - 1;
}

/* ---- reordering ---- */

struct sides {
    bool to_blocked, to_last, from_last;
    int64_t channels, pixels;
    int64_t rows;  /* blocks of channels of all images; channels last: of pixels */
    int64_t block; /* pixels of such a row */
    bool wide;     /* elements of 4 bytes: the sums of a convolution, on their way to plain */
};
static struct sides sides_of(const struct sdx_tensor *from, const struct sdx_tensor *to)
{
    const int64_t lanes = sdx_block_lanes();
    struct sides s = {
        .to_blocked = to->layout == SDX_LAYOUT_BLOCKED, .channels = from->dims[1], .pixels = 1};
    for (int d = 2; d < from->rank; d++)
        s.pixels *= from->dims[d];
    s.rows = from->dims[0] * ((s.channels + lanes - 1) / lanes);
    s.to_last = to->layout == SDX_LAYOUT_LAST;
    s.from_last = from->layout == SDX_LAYOUT_LAST;
    s.wide = sdx_dtype_bits(from->dtype) == 32;
    if (!s.to_last && !s.from_last) return s;
    s.block = REORDER_GRAIN / 2 / (s.channels > 0 ? s.channels : 1) / 16 * 16;
    if (s.block < 16) s.block = 16;
    s.rows = from->dims[0] * ((s.pixels + s.block - 1) / s.block);
    return s;
}

/* Blocks of pixels between [channels][pixels] and [pixels][channels]. Elements of 4 bytes go to
 * plain only. */
static void reorder_last(const struct sides *s, int64_t begin, int64_t end, const void *from,
                         void *to)
{
    const int64_t blocks = (s->pixels + s->block - 1) / s->block;
    for (int64_t r = begin; r < end; r++) {
        const int64_t p0 = r % blocks * s->block, image = r / blocks * s->channels * s->pixels;
        const size_t n = (size_t)(s->pixels - p0 < s->block ? s->pixels - p0 : s->block);
        const size_t channels = (size_t)s->channels, pixels = (size_t)s->pixels;
        const int64_t plain = image + p0, last = image + p0 * s->channels;
        if (s->to_last)
            sdx_qbytes()->transpose((const uint8_t *)from + plain, pixels, (uint8_t *)to + last,
                                    channels, channels, n);
        else if (s->wide)
            sdx_vec()->b32_transpose((const uint32_t *)from + last, channels,
                                     (uint32_t *)to + plain, pixels, n, channels);
        else
            sdx_qbytes()->transpose((const uint8_t *)from + last, channels, (uint8_t *)to + plain,
                                    pixels, n, channels);
    }
}

static void reorder_rows(const struct sides *s, int64_t begin, int64_t end, const void *from,
                         void *to)
{
    if (s->to_last || s->from_last)
        reorder_last(s, begin, end, from, to);
    else if (s->to_blocked)
        sdx_block_from_plain(from, to, s->channels, s->pixels, begin, end, 0, s->pixels);
    else
        sdx_block_to_plain(from, to, s->channels, s->pixels, begin, end, 0, s->pixels);
}

static enum sdx_status run_reorder(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct sides *s = step->params;
    (void)x;
    reorder_rows(s, sdx_part_begin(s->rows, step->parts, part, 1),
                 sdx_part_begin(s->rows, step->parts, part + 1, 1), step->in[0]->data,
                 step->out[0]->data);
    return SDX_OK;
}

static enum sdx_status run_pack(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const int64_t *all = step->params;
    (void)x;
    sdx_tensor_copy(step->in[0], step->out[0], sdx_part_begin(*all, step->parts, part, 1),
                    sdx_part_begin(*all, step->parts, part + 1, 1));
    return SDX_OK;
}

/* A growing operand as a packed one. */
static enum sdx_status reorder_growing(struct sdx_prepare *px, struct sdx_tensor *from,
                                       struct sdx_tensor *to)
{
    int64_t *all = SDX_PREPARE_NEW(px, int64_t);
    if (!all) return px->cx->error.status;
    *all = sdx_tensor_copy_parts(from, to);
    return sdx_prepare_step_on(px, "reorder", run_pack, all,
                               sdx_prepare_parts((double)from->count, REORDER_GRAIN, *all), 0, 1,
                               &from, 1, &to);
}

void sdx_layout_copy(const struct sdx_tensor *from, struct sdx_tensor *to)
{
    if (from->layout == SDX_LAYOUT_GROWING) {
        sdx_tensor_copy(from, to, 0, sdx_tensor_copy_parts(from, to));
        return;
    }
    const struct sides s = sides_of(from, to);
    reorder_rows(&s, 0, s.rows, from->data, to->data);
}

enum sdx_status sdx_layout_reorder(struct sdx_prepare *px, struct sdx_tensor *from,
                                   struct sdx_tensor *to)
{
    if (from->layout == SDX_LAYOUT_GROWING) return reorder_growing(px, from, to);
    struct sides *s = SDX_PREPARE_NEW(px, struct sides);
    if (!s) return px->cx->error.status;
    *s = sides_of(from, to);
    return sdx_prepare_step_on(px, "reorder", run_reorder, s,
                               sdx_prepare_parts((double)from->count, REORDER_GRAIN, s->rows), 0, 1,
                               &from, 1, &to);
}

/* ---- choices ---- */

static bool is_full(const struct sdx_tensor *t, const struct sdx_tensor *out)
{
    return t && sdx_dims_equal(t->dims, t->rank, out->dims, out->rank);
}

/* Can operand `t` of an elementwise operator be shown beside `out` in `layout`? *as: its layout; of
 * one channel that broadcasts plain. */
static bool joins(const struct sdx_tensor *t, const struct sdx_tensor *out, int layout, uint8_t *as)
{
    *as = SDX_LAYOUT_PLAIN;
    if (t->kind != SDX_KIND_TENSOR || t->count == 1) return t->kind == SDX_KIND_TENSOR;
    if (t->rank > out->rank) return false;
    const int shift = out->rank - t->rank;
    const int64_t channels = shift <= 1 ? t->dims[1 - shift] : 1;
    if (channels == 1 && !is_full(t, out)) return layout == SDX_LAYOUT_BLOCKED || shift == 0;
    *as = (uint8_t)layout;
    return channels == out->dims[1] && sdx_layout_serves(layout, t->dtype, out->rank) &&
           (shift == 0 || t->is_constant);
}

void sdx_layout_elementwise(struct sdx_prepare *px, struct sdx_layouts *want)
{
    const struct sdx_tensor *out = px->out[0];
    int layout = SDX_LAYOUT_PLAIN;
    if (!out || out->kind != SDX_KIND_TENSOR) return;
    if (px->opset < 7 && sdx_ir_attr(px->node, "broadcast")) return; /* aligned from the front */
    for (int i = 0; i < px->count_in && !layout; i++)
        if (is_full(px->in[i], out)) layout = px->in[i]->layout;
    if (!layout || !sdx_layout_serves(layout, out->dtype, out->rank)) return;
    if (layout == SDX_LAYOUT_BLOCKED && out->dims[1] % sdx_block_lanes() != 0 &&
        !(px->node->op->flags & SDX_OP_FINITE))
        return;
    uint8_t as[8];
    if (px->count_in > SDX_COUNT_OF(as)) return;
    for (int i = 0; i < px->count_in; i++)
        if (px->in[i] && !joins(px->in[i], out, layout, &as[i])) return;
    for (int i = 0; i < px->count_in; i++)
        if (px->in[i]) want->in[i] = as[i];
    want->out[0] = (uint8_t)layout;
}

void sdx_layout_channels(struct sdx_prepare *px, int axis, struct sdx_layouts *want)
{
    const bool joining = px->node->op->flags & SDX_OP_JOIN;
    const int count = joining ? px->count_in : px->count_out;
    struct sdx_tensor *const *pieces = joining ? px->in : px->out;
    int layout = SDX_LAYOUT_PLAIN;
    for (int i = 0; i < (joining ? count : 1) && !layout; i++)
        layout = px->in[i] ? px->in[i]->layout : SDX_LAYOUT_PLAIN;
    if (!layout || !px->out[0] || !sdx_layout_serves(layout, px->out[0]->dtype, px->out[0]->rank) ||
        axis != 1)
        return;
    const int64_t lanes = sdx_block_lanes();
    bool whole = true; /* blocks: pieces begin with one */
    for (int k = 0; k < count; k++) {
        if (!pieces[k]) return;
        /* few channels would mostly be lanes without meaning */
        if (layout == SDX_LAYOUT_BLOCKED && pieces[k]->dims[1] < lanes / 2) return;
        whole = whole && (k + 1 == count || pieces[k]->dims[1] % lanes == 0);
    }
    want->logical = layout == SDX_LAYOUT_BLOCKED && !whole;
    memset(want->in, 0, (size_t)px->count_in);
    memset(want->in, layout, joining ? (size_t)px->count_in : 1);
    memset(want->out, layout, (size_t)px->count_out);
}
