/* SPDX-License-Identifier: Apache-2.0
 * com.microsoft on sequences: UnfoldTensor, DynamicTimeWarping, RemovePadding and RestorePadding
 * around packed sequences, and what the generation of text needs around the model:
 * NGramRepeatBlock, BifurcationDetector. */
#include <math.h>

#include "ops/move.h"
#include "ops/op.h"

/* ---- UnfoldTensor ---- */

static enum sdx_status infer_unfold(struct sdx_infer *ix)
{
    int rank = sdx_infer_rank(ix, 0), axis;
    int64_t size = sdx_ir_attr_int(ix->node, "size", 0),
            step = sdx_ir_attr_int(ix->node, "step", 1);
    sdx_infer_set_dtype(ix, 0, sdx_infer_dtype(ix, 0));
    if (size < 1 || step < 1)
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL,
                        "UnfoldTensor: size is %lld and step %lld, expected at least 1",
                        (long long)size, (long long)step);
    if (rank < 0) return SDX_OK;
    SDX_TRY(sdx_infer_axis(ix, sdx_ir_attr_int(ix->node, "dim", -1), rank, &axis));
    const int64_t *dims = sdx_infer_dims(ix, 0);
    int64_t *out = sdx_infer_new_dims(ix, 0, rank + 1);
    if (!out) return SDX_FAIL_MEMORY(ix->cx);
    memcpy(out, dims, (size_t)rank * sizeof *out);
    out[rank] = size;
    if (dims[axis] >= 0 && dims[axis] < size)
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "UnfoldTensor: size is %lld of an axis of %lld",
                        (long long)size, (long long)dims[axis]);
    out[axis] = dims[axis] < 0 ? -1 : (dims[axis] - size) / step + 1;
    return SDX_OK;
}

static enum sdx_status prepare_unfold(struct sdx_prepare *px)
{
    const struct sdx_tensor *x = px->in[0], *y = px->out[0];
    int64_t src[SDX_RANK_MAX + 1], dst[SDX_RANK_MAX + 1], axis;
    struct sdx_move m;
    axis = sdx_ir_attr_int(px->node, "dim", -1);
    if (axis < 0) axis += x->rank;
    sdx_move_strides(x->rank, x->dims, src);
    sdx_move_strides(y->rank, y->dims, dst);
    src[x->rank] = src[axis];
    src[axis] *= sdx_ir_attr_int(px->node, "step", 1);
    sdx_move_init(&m, sdx_move_size(x->dtype), y->rank, y->dims, src, dst, 0, 0);
    return sdx_move_add(px, "unfold", 0, &m);
}

/* ---- DynamicTimeWarping ---- */

static enum sdx_status infer_warp(struct sdx_infer *ix)
{
    const int64_t out[] = {2, -1}, *x = sdx_infer_dims(ix, 0);
    int rank = sdx_infer_rank(ix, 0);
    sdx_infer_set_dtype(ix, 0, SDX_I32);
    if (x && rank != 2 && (rank != 3 || (sdx_dim_known(x[0]) && x[0] != 1)))
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL,
                        "DynamicTimeWarping: input must be [M, N] or [1, M, N]");
    return sdx_infer_set_dims(ix, 0, 2, out);
}

/* The cheapest path from the first cell to the last: best[r][c] sums up to cell (r - 1, c - 1), and
 * from[r][c] tells where it came from: 0 both, 1 the row, 2 the column before. */
static enum sdx_status warp(struct sdx_exec *x, const struct sdx_step *step, int64_t rows,
                            int64_t columns, float *best, uint8_t *from)
{
    const float *cost = step->in[0]->data;
    const int64_t w = columns + 1;
    for (int64_t i = 0; i < (rows + 1) * w; i++)
        best[i] = INFINITY;
    best[0] = 0;
    for (int64_t r = 0; r <= rows; r++)
        from[r * w] = 1;
    for (int64_t c = 0; c <= columns; c++)
        from[c] = 2;
    for (int64_t r = 1; r <= rows; r++)
        for (int64_t c = 1; c <= columns; c++) {
            const float both = best[(r - 1) * w + c - 1], row = best[(r - 1) * w + c];
            const float column = best[r * w + c - 1];
            const int k = both < row && both < column ? 0 : row < both && row < column ? 1 : 2;
            from[r * w + c] = (uint8_t)k;
            best[r * w + c] = cost[(r - 1) * columns + c - 1] + (k == 0   ? both
                                                                 : k == 1 ? row
                                                                          : column);
        }
    int64_t length = 0;
    for (int64_t r = rows, c = columns; r > 0 || c > 0; length++) {
        const int k = from[r * w + c];
        r -= k != 2;
        c -= k != 1;
    }
    const int64_t dims[] = {2, length};
    SDX_TRY(sdx_exec_output(x, step, 0, SDX_I32, 2, dims));
    int32_t *path = step->out[0]->data;
    for (int64_t r = rows, c = columns, i = length; i-- > 0;) {
        const int k = from[r * w + c];
        path[i] = (int32_t)(r - 1);
        path[length + i] = (int32_t)(c - 1);
        r -= k != 2;
        c -= k != 1;
    }
    return SDX_OK;
}

static enum sdx_status run_warp(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)part;
    const struct sdx_tensor *t = step->in[0];
    const int64_t rows = t->dims[t->rank - 2], columns = t->dims[t->rank - 1];
    if (rows < 1 || columns < 1 || rows > INT32_MAX / 2 || columns > INT32_MAX / 2)
        return SDX_FAIL(x->cx, SDX_RUN_FAILED, "DynamicTimeWarping: input of %lld by %lld",
                        (long long)rows, (long long)columns);
    const size_t count = ((size_t)rows + 1) * ((size_t)columns + 1);
    float *best = sdx_mem_calloc(x->cx->mem, SDX_MEM_SCRATCH, count, sizeof *best);
    uint8_t *from = sdx_mem_calloc(x->cx->mem, SDX_MEM_SCRATCH, count, 1);
    enum sdx_status status =
        best && from ? warp(x, step, rows, columns, best, from) : SDX_FAIL_MEMORY(x->cx);
    sdx_mem_free(x->cx->mem, best);
    sdx_mem_free(x->cx->mem, from);
    return status;
}

static enum sdx_status prepare_warp(struct sdx_prepare *px)
{
    return sdx_prepare_step(px, "time_warping", run_warp, NULL, 1, 0);
}

/* ---- NGramRepeatBlock ---- */

static enum sdx_status infer_repeat(struct sdx_infer *ix)
{
    int64_t unused;
    const int64_t *ids = sdx_infer_dims(ix, 0), *scores = sdx_infer_dims(ix, 1);
    if ((ids && sdx_infer_rank(ix, 0) != 2) || (scores && sdx_infer_rank(ix, 1) != 2))
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "NGramRepeatBlock: inputs must have rank 2");
    if (sdx_ir_attr_int(ix->node, "ngram_size", 0) < 1)
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "NGramRepeatBlock: ngram_size must be at least 1");
    if (ids && scores) SDX_TRY(sdx_infer_merge_dim(ix, ids[0], scores[0], "batch", &unused));
    sdx_infer_copy(ix, 0, 1);
    return SDX_OK;
}

/* One batch entry: what would repeat an n-gram of the text so far gets -inf. */
static enum sdx_status run_repeat(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const int64_t size = *(const int64_t *)step->params, length = step->in[0]->dims[1];
    const int64_t words = step->in[1]->dims[1];
    const int64_t *ids = (const int64_t *)step->in[0]->data + part * length;
    const float *from = (const float *)step->in[1]->data + part * words;
    float *to = (float *)step->out[0]->data + part * words;
    memmove(to, from, (size_t)words * sizeof *to);
    for (int64_t i = 0; i + size <= length; i++) {
        if (memcmp(ids + i, ids + length + 1 - size, (size_t)(size - 1) * sizeof *ids)) continue;
        const int64_t word = ids[i + size - 1];
        if (word < 0 || word >= words)
            return SDX_FAIL(x->cx, SDX_RUN_FAILED, "NGramRepeatBlock: token %lld of %lld",
                            (long long)word, (long long)words);
        to[word] = -INFINITY;
    }
    return SDX_OK;
}

static enum sdx_status prepare_repeat(struct sdx_prepare *px)
{
    int64_t *size = SDX_PREPARE_NEW(px, int64_t);
    if (!size) return SDX_FAIL_MEMORY(px->cx);
    *size = sdx_ir_attr_int(px->node, "ngram_size", 1);
    if (px->out[0]->count == 0) return SDX_OK;
    return sdx_prepare_step(px, "ngram_repeat", run_repeat, size, px->out[0]->dims[0], 0);
}

/* ---- BifurcationDetector ---- */

static enum sdx_status infer_bifurcation(struct sdx_infer *ix)
{
    const int64_t unknown = -1;
    const int64_t least = sdx_ir_attr_int(ix->node, "min_ngram_size", 1);
    if (least < 1 || sdx_ir_attr_int(ix->node, "max_ngram_size", 3) < least)
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL,
                        "BifurcationDetector: min_ngram_size is %lld and max_ngram_size %lld",
                        (long long)least,
                        (long long)sdx_ir_attr_int(ix->node, "max_ngram_size", 3));
    sdx_infer_set_dtype(ix, 0, SDX_I64);
    if (ix->count_out > 1) sdx_infer_copy(ix, 1, 2);
    return sdx_infer_set_dims(ix, 0, 1, &unknown);
}

/* Where the n tokens of `what` begin in `in` at or after `from`; -1: nowhere. */
static int64_t find(const int64_t *in, int64_t length, int64_t from, const int64_t *what, int64_t n)
{
    for (int64_t i = from; i + n <= length; i++)
        if (memcmp(in + i, what, (size_t)n * sizeof *in) == 0) return i;
    return -1;
}

/* The place in `source` behind the longest suffix of `tokens` (of least..most tokens) that stands
 * there once; -1: none. */
static int64_t suffix_match(const int64_t *source, int64_t length, const int64_t *tokens,
                            int64_t count, int64_t least, int64_t most)
{
    int64_t match = -1;
    for (int64_t n = least; n <= most && n <= count; n++) {
        int64_t at = find(source, length, 0, tokens + count - n, n);
        if (at < 0) break;
        match = at + n;
        if (match >= length) break;
        if (find(source, length, at + 1, tokens + count - n, n) >= 0) match = -1;
    }
    return match;
}

static enum sdx_status run_bifurcation(struct sdx_exec *x, const struct sdx_step *step,
                                       int64_t part)
{
    const int64_t *limits = step->params;
    const struct sdx_tensor *source = step->in[0], *current = step->in[1], *made = step->in[3];
    const int64_t *from = source->data, *guess = made ? made->data : NULL;
    int64_t taken = 0, previous;
    (void)part;
    if (step->in[2]->count < 1)
        return SDX_FAIL(x->cx, SDX_RUN_FAILED, "BifurcationDetector: no previous match index");
    previous = ((const int64_t *)step->in[2]->data)[0];
    if (made) {
        if (previous < 0 || previous > source->count || made->count != source->count + 1 - previous)
            return SDX_FAIL(x->cx, SDX_RUN_FAILED,
                            "BifurcationDetector: %lld predictions from place %lld of %lld tokens",
                            (long long)made->count, (long long)previous, (long long)source->count);
        while (taken < made->count - 1 && guess[taken] == from[previous + taken])
            taken++;
        taken++;
    }
    const int64_t count = current->count + taken;
    SDX_TRY(sdx_exec_output(x, step, 0, SDX_I64, 1, &count));
    int64_t *tokens = step->out[0]->data;
    if (current->count) memcpy(tokens, current->data, (size_t)current->count * sizeof *tokens);
    if (taken) memcpy(tokens + current->count, guess, (size_t)taken * sizeof *tokens);
    if (step->count_out < 2 || !step->out[1]) return SDX_OK;
    SDX_TRY(sdx_exec_output(x, step, 1, SDX_I64, step->in[2]->rank, step->in[2]->dims));
    int64_t *match = step->out[1]->data;
    match[0] = suffix_match(from, source->count, tokens, count, limits[0], limits[1]);
    return SDX_OK;
}

static enum sdx_status prepare_bifurcation(struct sdx_prepare *px)
{
    int64_t *limits = sdx_prepare_alloc(px, 2 * sizeof *limits);
    struct sdx_tensor *in[] = {px->in[0], px->in[1], px->in[2],
                               sdx_prepare_has(px, 3) ? px->in[3] : NULL};
    if (!limits) return SDX_FAIL_MEMORY(px->cx);
    limits[0] = sdx_ir_attr_int(px->node, "min_ngram_size", 1);
    limits[1] = sdx_ir_attr_int(px->node, "max_ngram_size", 3);
    return sdx_prepare_step_on(px, "bifurcation", run_bifurcation, limits, 1, 0, 4, in,
                               px->count_out, px->out);
}

/* ---- RemovePadding, RestorePadding: [batch, length, width] and [tokens, width] ---- */

static enum sdx_status infer_remove(struct sdx_infer *ix)
{
    const int64_t *x = sdx_infer_dims(ix, 0);
    if (x && sdx_infer_rank(ix, 0) != 3)
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "RemovePadding: input has rank %d, expected 3",
                        sdx_infer_rank(ix, 0));
    const int64_t lengths[][2] = {{-1, x ? x[2] : -1},
                                  {x ? x[0] : -1, x ? x[1] : -1},
                                  {x && x[0] >= 0 ? x[0] + 1 : -1, 0},
                                  {1, 0}};
    for (int k = 0; k < ix->count_out && k < SDX_COUNT_OF(lengths); k++) {
        sdx_infer_set_dtype(ix, k, k ? SDX_I32 : sdx_infer_dtype(ix, 0));
        SDX_TRY(sdx_infer_set_dims(ix, k, k < 2 ? 2 : 1, lengths[k]));
    }
    return SDX_OK;
}

/* Offsets of the tokens, then those of the padding; the counts summed up; the largest. */
static void list_tokens(const int32_t *counts, int64_t batch, int64_t length, int32_t *offsets,
                        int32_t *sums, int32_t *most)
{
    int64_t at = 0;
    sums[0] = *most = 0;
    for (int64_t b = 0; b < batch; b++) {
        for (int64_t t = 0; t < counts[b]; t++)
            offsets[at++] = (int32_t)(b * length + t);
        sums[b + 1] = (int32_t)at;
        if (counts[b] > *most) *most = counts[b];
    }
    for (int64_t b = 0; b < batch; b++)
        for (int64_t t = counts[b]; t < length; t++)
            offsets[at++] = (int32_t)(b * length + t);
}

static enum sdx_status run_remove(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct sdx_tensor *in = step->in[0];
    const int64_t batch = in->dims[0], length = in->dims[1], width = in->dims[2];
    const int32_t *counts = step->in[1]->data;
    int64_t total = 0;
    (void)part;
    if (step->in[1]->count != batch || batch * length > INT32_MAX)
        return SDX_FAIL(x->cx, SDX_RUN_FAILED, "RemovePadding: %lld counts for a batch of %lld",
                        (long long)step->in[1]->count, (long long)batch);
    for (int64_t b = 0; b < batch; b++) {
        if (counts[b] < 0 || counts[b] > length)
            return SDX_FAIL(x->cx, SDX_RUN_FAILED, "RemovePadding: %d tokens of %lld", counts[b],
                            (long long)length);
        total += counts[b];
    }
    const int64_t dims[][2] = {{total, width}, {batch, length}, {batch + 1, 0}, {1, 0}};
    SDX_TRY(sdx_exec_output(x, step, 0, in->dtype, 2, dims[0]));
    for (int k = 1; k < 4; k++)
        SDX_TRY(sdx_exec_output(x, step, k, SDX_I32, k < 2 ? 2 : 1, dims[k]));
    int32_t *offsets = step->out[1]->data;
    list_tokens(counts, batch, length, offsets, step->out[2]->data, step->out[3]->data);
    const size_t row = (size_t)width * sdx_move_size(in->dtype);
    for (int64_t i = 0; i < total && row; i++)
        memcpy((char *)step->out[0]->data + (size_t)i * row,
               (const char *)in->data + (size_t)offsets[i] * row, row);
    return SDX_OK;
}

static enum sdx_status prepare_remove(struct sdx_prepare *px)
{
    for (int k = 0; k < 4; k++)
        if (k >= px->count_out || !px->out[k])
            return SDX_FAIL(px->cx, SDX_NOT_SUPPORTED, "RemovePadding: output %d is not used", k);
    return sdx_prepare_step(px, "remove_padding", run_remove, NULL, 1, 0);
}

static enum sdx_status infer_restore(struct sdx_infer *ix)
{
    const int64_t *x = sdx_infer_dims(ix, 0), *offsets = sdx_infer_dims(ix, 1);
    sdx_infer_set_dtype(ix, 0, sdx_infer_dtype(ix, 0));
    if ((x && sdx_infer_rank(ix, 0) != 2) || (offsets && sdx_infer_rank(ix, 1) != 2))
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "RestorePadding: inputs must have rank 2");
    const int64_t out[] = {offsets ? offsets[0] : -1, offsets ? offsets[1] : -1, x ? x[1] : -1};
    return sdx_infer_set_dims(ix, 0, 3, out);
}

static enum sdx_status run_restore(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct sdx_tensor *in = step->in[0], *offsets = step->in[1], *out = step->out[0];
    const size_t row = (size_t)in->dims[1] * sdx_move_size(in->dtype);
    (void)part;
    memset(out->data, 0, (size_t)out->count * sdx_move_size(in->dtype));
    for (int64_t i = 0; i < in->dims[0] && row; i++) {
        const int32_t at = i < offsets->count ? ((const int32_t *)offsets->data)[i] : -1;
        if (at < 0 || at >= offsets->count)
            return SDX_FAIL(x->cx, SDX_RUN_FAILED, "RestorePadding: no place for token %lld",
                            (long long)i);
        memcpy((char *)out->data + (size_t)at * row, (const char *)in->data + (size_t)i * row, row);
    }
    return SDX_OK;
}

static enum sdx_status prepare_restore(struct sdx_prepare *px)
{
    if (px->out[0]->count == 0) return SDX_OK;
    return sdx_prepare_step(px, "restore_padding", run_restore, NULL, 1, 0);
}

static const struct sdx_op ops[] = {
    {"RemovePadding", 1, 0, infer_remove, KERNEL(prepare_remove), .flags = SDX_OP_DYNAMIC},
    {"RestorePadding", 1, 0, infer_restore, KERNEL(prepare_restore)},
    {"UnfoldTensor", 1, 0, infer_unfold, KERNEL(prepare_unfold)},
    {"DynamicTimeWarping", 1, 0, infer_warp, KERNEL(prepare_warp), .flags = SDX_OP_DYNAMIC},
    {"NGramRepeatBlock", 1, 0, infer_repeat, KERNEL(prepare_repeat), .flags = SDX_OP_INPLACE(1)},
    {"BifurcationDetector", 1, 0, infer_bifurcation, KERNEL(prepare_bifurcation),
     .flags = SDX_OP_DYNAMIC},
};

const struct sdx_op_family sdx_ops_contrib_tokens = FAMILY("com.microsoft", ops);
