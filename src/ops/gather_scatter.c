/* SPDX-License-Identifier: Apache-2.0
 * Gather, GatherElements, GatherND and their inverses. The scatters copy the data and then write
 * the updates in order, so that of equal indices the last one wins. */
#include "kernels/conv_block.h"
#include "ops/channel_pick.h"
#include "ops/layout.h"
#include "ops/move.h"
#include "ops/op.h"
#include "ops/scatter_reduce.h"

static int axis_of(const struct sdx_prepare *px, int64_t fallback, int rank)
{
    int64_t axis = sdx_ir_attr_int(px->node, "axis", fallback);
    return (int)(axis < 0 ? axis + rank : axis);
}

static enum sdx_status bad_index(struct sdx_exec *x, const char *op, int64_t index, int axis,
                                 int64_t length)
{
    return SDX_FAIL(x->cx, SDX_RUN_FAILED, "%s: index %lld is outside axis %d of length %lld", op,
                    (long long)index, axis, (long long)length);
}

/* ---- runs of known places ---- */

enum { RUN_LEAST = 4 };

/* Known indices that name runs of `length` slices which follow each other in the data, as those of
 * x[:, a:b] and of windows do; length 0: they do not, or are not known. */
struct runs {
    int64_t length;
    int64_t *first; /* slice of each */
};
/* The slice that index number i names; -1: it is outside, and the run says so. */
typedef int64_t slice_fn(const void *params, const struct sdx_tensor *index, int64_t i);

static int64_t length_of_runs(slice_fn *slice, const void *params, const struct sdx_tensor *index,
                              int64_t count)
{
    int64_t first = slice(params, index, 0), length = 1;
    while (length < count && slice(params, index, length) == first + length)
        length++;
    if (length < RUN_LEAST || count % length != 0) return 0;
    for (int64_t i = 0; i < count; i++) {
        if (i % length == 0) first = slice(params, index, i);
        if (first < 0 || slice(params, index, i) != first + i % length) return 0;
    }
    return length;
}
static enum sdx_status find_runs(struct sdx_prepare *px, slice_fn *slice, const void *params,
                                 int64_t count, struct runs *runs)
{
    const struct sdx_tensor *index = px->in[1];
    runs->length = 0;
    if (!index->is_constant || count < RUN_LEAST) return SDX_OK;
    const int64_t length = length_of_runs(slice, params, index, count);
    if (length == 0) return SDX_OK;
    runs->first = sdx_prepare_alloc(px, (size_t)(count / length) * sizeof *runs->first);
    if (!runs->first) return SDX_FAIL_MEMORY(px->cx);
    for (int64_t i = 0; i < count; i += length)
        runs->first[i / length] = slice(params, index, i);
    runs->length = length;
    return SDX_OK;
}
/* Slices begin .. end - 1 of the runs, of `bytes` each. */
static void gather_runs(const struct runs *runs, char *dst, const char *src, int64_t begin,
                        int64_t end, int64_t bytes)
{
    while (begin < end) {
        const int64_t run = begin / runs->length, skipped = begin % runs->length;
        const int64_t left = runs->length - skipped, n = left < end - begin ? left : end - begin;
        memcpy(dst, src + (runs->first[run] + skipped) * bytes, (size_t)(n * bytes));
        dst += n * bytes;
        begin += n;
    }
}

/* ---- Gather ---- */

static enum sdx_status gather_ints(struct sdx_infer *ix)
{
    struct sdx_ints data, index;
    const struct sdx_type *t = &ix->out[0];
    if (ix->shapes_only || !t->has_shape || t->rank > 1 || sdx_infer_rank(ix, 0) != 1)
        return SDX_OK;
    if (!sdx_infer_ints(ix, 0, &data) || !sdx_infer_ints(ix, 1, &index)) return SDX_OK;
    if (index.count > SDX_MOVE_INTS_MAX) return SDX_OK;
    int64_t v[SDX_MOVE_INTS_MAX], sym[SDX_MOVE_INTS_MAX];
    bool all = true;
    for (int64_t i = 0; i < index.count; i++) {
        int64_t j = index.v[i];
        if (index.sym && index.sym[i]) return SDX_OK;
        if (j < 0) j += data.count;
        if (j < 0 || j >= data.count)
            return SDX_FAIL(ix->cx, SDX_BAD_MODEL,
                            "Gather: index %lld is outside axis 0 of length %lld",
                            (long long)index.v[i], (long long)data.count);
        v[i] = data.v[j];
        sym[i] = data.sym ? data.sym[j] : 0;
        all = all && sym[i] == 0;
    }
    return sdx_infer_set_ints(ix, 0, t->rank, index.count, v, all ? NULL : sym);
}

static enum sdx_status infer_gather(struct sdx_infer *ix)
{
    int rank = sdx_infer_rank(ix, 0), rank_index = sdx_infer_rank(ix, 1), axis = 0, n = 0;
    sdx_infer_set_dtype(ix, 0, sdx_infer_dtype(ix, 0));
    if (rank == 0) return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "Gather: the data is a scalar");
    if (rank < 0) return SDX_OK;
    SDX_TRY(sdx_infer_axis(ix, sdx_ir_attr_int(ix->node, "axis", 0), rank, &axis));
    if (rank_index < 0) return SDX_OK;
    int64_t *dims = sdx_infer_new_dims(ix, 0, rank - 1 + rank_index);
    if (!dims) return SDX_OUT_OF_MEMORY;
    const int64_t *data = sdx_infer_dims(ix, 0), *index = sdx_infer_dims(ix, 1);
    for (int i = 0; i < axis; i++)
        dims[n++] = data[i];
    for (int i = 0; i < rank_index; i++)
        dims[n++] = index[i];
    for (int i = axis + 1; i < rank; i++)
        dims[n++] = data[i];
    return gather_ints(ix);
}

struct gather_params {
    const char *op;
    int axis;
    int64_t outer, length, count; /* indices */
    size_t run;                   /* bytes of what stays together */
    struct sdx_move one;          /* with one index, from slice 0 */
    struct runs runs;
};

enum { GATHER_BLOCK = 4096 }; /* slices that are known at a time */
enum { FEW_SLICES = 8 };      /* of a row, that are gathered column by column */

/* The slices that n indices from number i on name. */
static enum sdx_status gather_block(struct sdx_exec *x, const struct gather_params *p,
                                    const struct sdx_tensor *index, int64_t i, int64_t n,
                                    int64_t *slices)
{
    const int64_t length = p->length;
    for (int64_t k = 0; k < n; k++) {
        int64_t j = sdx_move_index(index, i + k);
        if (SDX_UNLIKELY((uint64_t)j >= (uint64_t)length)) {
            if (j >= length || j < -length) return bad_index(x, p->op, j, p->axis, length);
            j += length;
        }
        slices[k] = j;
    }
    return SDX_OK;
}

#define GATHER(bytes)                                                                              \
    for (int64_t k = 0; k < n; k++)                                                                \
        memcpy(dst + k * (bytes), src + slices[k] * (bytes), (bytes));

static void gather_slices(char *dst, const char *src, const int64_t *slices, int64_t n, int64_t run)
{
    switch (run) {
    case 1: GATHER(1) break;
    case 2: GATHER(2) break;
    case 4: GATHER(4) break;
    case 8: GATHER(8) break;
    case 16: GATHER(16) break;
    default:
        for (int64_t k = 0; k < n; k++)
            sdx_move_bytes(dst + k * run, src + slices[k] * run, (size_t)run);
    }
}
#undef GATHER

/* The few slices of `times` rows: colours of pixels, corners of boxes. */
static void gather_columns(const struct gather_params *p, char *dst, const char *src,
                           const int64_t *slices, int64_t times)
{
    const int64_t run = (int64_t)p->run;
    int64_t at[FEW_SLICES];
    for (int64_t k = 0; k < p->count; k++)
        at[k] = slices[k] * run;
    sdx_move_columns(p->run, src, p->length * run, at, p->count, dst, p->count * run, run, times);
}

/* Elements of a table, each read as its index is; up to the first that is not from 0 to length - 1.
 * Returns how many. */
#define LOOK_UP(name, type, bytes)                                                                 \
    static int64_t name(char *dst, const char *src, const type *index, int64_t n, int64_t length)  \
    {                                                                                              \
        int64_t k = 0;                                                                             \
        for (; k < n && SDX_LIKELY((uint64_t)index[k] < (uint64_t)length); k++)                    \
            memcpy(dst + k * (bytes), src + index[k] * (bytes), (bytes));                          \
        return k;                                                                                  \
    }
LOOK_UP(look_up_i32_4, int32_t, INT64_C(4))
LOOK_UP(look_up_i64_4, int64_t, INT64_C(4))
LOOK_UP(look_up_i32_8, int32_t, INT64_C(8))
LOOK_UP(look_up_i64_8, int64_t, INT64_C(8))
#undef LOOK_UP
static int64_t look_up(const struct gather_params *p, const struct sdx_tensor *index, int64_t i,
                       int64_t n, const char *src, char *dst)
{
    const bool is_short = index->dtype == SDX_I32;
    const void *at = (const char *)index->data + i * (is_short ? 4 : 8);
    if (p->outer != 1) return 0;
    if (p->run == 4)
        return is_short ? look_up_i32_4(dst, src, at, n, p->length)
                        : look_up_i64_4(dst, src, at, n, p->length);
    if (p->run == 8)
        return is_short ? look_up_i32_8(dst, src, at, n, p->length)
                        : look_up_i64_8(dst, src, at, n, p->length);
    return 0;
}

/* Indices are read and checked a block at a time: once for all repetitions where it holds all. */
static enum sdx_status run_gather(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct gather_params *p = step->params;
    const int64_t total = p->outer * p->count, run = (int64_t)p->run;
    int64_t at = sdx_part_begin(total, step->parts, part, 1);
    const int64_t end = sdx_part_begin(total, step->parts, part + 1, 1);
    if (at >= end) return SDX_OK;
    int64_t *slices = x->scratch, i = at % p->count, known = 0, stop = 0; /* known .. stop-1 */
    const char *src = (const char *)step->in[0]->data + at / p->count * p->length * run;
    char *dst = (char *)step->out[0]->data + at * run;
    const int64_t done = look_up(p, step->in[1], i, end - at, src, dst);
    at += done;
    i += done;
    dst += done * run;
    while (at < end) {
        if (i < known || i >= stop) {
            known = i;
            stop = i + GATHER_BLOCK < p->count ? i + GATHER_BLOCK : p->count;
            SDX_TRY(gather_block(x, p, step->in[1], i, stop - i, slices));
        }
        const int64_t n = stop - i < end - at ? stop - i : end - at;
        int64_t times = 1;
        if (n == p->count && n <= FEW_SLICES && run <= 16 && (run & (run - 1)) == 0) {
            times = (end - at) / n;
            gather_columns(p, dst, src, slices, times);
        } else
            gather_slices(dst, src, slices + (i - known), n, run);
        at += n * times;
        dst += n * times * run;
        i += n;
        if (i < p->count) continue;
        i = 0;
        src += p->length * times * run;
    }
    return SDX_OK;
}

static enum sdx_status run_gather_runs(struct sdx_exec *x, const struct sdx_step *step,
                                       int64_t part)
{
    (void)x;
    const struct gather_params *p = step->params;
    const int64_t total = p->outer * p->count, run = (int64_t)p->run;
    const int64_t begin = sdx_part_begin(total, step->parts, part, 1);
    const int64_t end = sdx_part_begin(total, step->parts, part + 1, 1);
    const char *src = step->in[0]->data;
    char *dst = step->out[0]->data;
    for (int64_t at = begin, n; at < end; at += n) {
        const int64_t i = at % p->count, left = p->count - i;
        n = left < end - at ? left : end - at;
        gather_runs(&p->runs, dst + at * run, src + at / p->count * p->length * run, i, i + n, run);
    }
    return SDX_OK;
}
static int64_t gather_slice(const void *params, const struct sdx_tensor *index, int64_t i)
{
    const struct gather_params *p = params;
    const int64_t j = sdx_move_index(index, i);
    return j >= p->length || j < -p->length ? -1 : j < 0 ? j + p->length : j;
}

/* Known channels of blocked ones. */
static void layout_gather(struct sdx_prepare *px, struct sdx_layouts *want)
{
    const struct sdx_tensor *data = px->in[0], *index = px->in[1];
    if (data->layout != SDX_LAYOUT_BLOCKED || axis_of(px, 0, data->rank) != 1 ||
        !index->is_constant || index->rank != 1 || index->count < sdx_block_lanes() / 2)
        return;
    for (int64_t i = 0; i < index->count; i++) {
        const int64_t j = sdx_move_index(index, i);
        if (j < -data->dims[1] || j >= data->dims[1]) return; /* the run says so */
    }
    want->in[0] = want->out[0] = SDX_LAYOUT_BLOCKED;
}

static enum sdx_status gather_channels(struct sdx_prepare *px)
{
    const struct sdx_tensor *index = px->in[1];
    struct sdx_channel *map = sdx_prepare_alloc(px, (size_t)index->count * sizeof *map);
    if (!map) return SDX_FAIL_MEMORY(px->cx);
    for (int64_t i = 0; i < index->count; i++) {
        const int64_t j = sdx_move_index(index, i);
        map[i].channel = j < 0 ? j + px->in[0]->dims[1] : j;
    }
    return sdx_channel_pick(px, "gather_channels", 1, px->in, px->out[0], map);
}

/* One index: a strided copy from where it says. */
static enum sdx_status run_gather_one(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct gather_params *p = step->params;
    int64_t slice;
    SDX_TRY(gather_block(x, p, step->in[1], 0, 1, &slice));
    sdx_move_run(&p->one, (const char *)step->in[0]->data + slice * (int64_t)p->run,
                 step->out[0]->data, sdx_part_begin(p->one.units, step->parts, part, 1),
                 sdx_part_begin(p->one.units, step->parts, part + 1, 1));
    return SDX_OK;
}

static enum sdx_status add_gather(struct sdx_prepare *px, const char *op, const char *name,
                                  int axis)
{
    const struct sdx_tensor *data = px->in[0], *out = px->out[0];
    struct gather_params *p = SDX_PREPARE_NEW(px, struct gather_params);
    if (!p) return SDX_OUT_OF_MEMORY;
    size_t size = sdx_move_size(data->dtype);
    p->op = op;
    p->axis = axis;
    p->length = data->dims[p->axis];
    p->count = px->in[1]->count;
    const bool whole = p->length == 1 && p->count == 1; /* the only slice there is */
    p->outer = whole ? 1 : sdx_move_product(data->dims, 0, p->axis);
    p->run = (size_t)sdx_move_product(data->dims, whole ? 0 : p->axis + 1, data->rank) * size;
    if (out->count == 0 || p->run == 0) p->outer = 0;
    if (p->count == 1 && p->outer > 0) {
        const int64_t inner = (int64_t)(p->run / size), dims[] = {p->outer, inner};
        sdx_move_init(&p->one, size, 2, dims, (const int64_t[]){p->length * inner, 1},
                      (const int64_t[]){inner, 1}, 0, 0);
        return sdx_move_step(px, name, run_gather_one, p, sdx_move_parts(&p->one), 0);
    }
    int64_t parts = sdx_prepare_parts((double)out->count * (double)size, 128 * 1024,
                                      p->outer * p->count > 0 ? p->outer * p->count : 1);
    SDX_TRY(find_runs(px, gather_slice, p, p->count, &p->runs));
    if (p->runs.length > 0) return sdx_move_step(px, name, run_gather_runs, p, parts, 0);
    const size_t known = (size_t)(p->count < GATHER_BLOCK ? p->count : GATHER_BLOCK);
    return sdx_move_step(px, name, run_gather, p, parts, known * sizeof(int64_t));
}

static enum sdx_status prepare_gather(struct sdx_prepare *px)
{
    if (px->out[0]->layout == SDX_LAYOUT_BLOCKED) return gather_channels(px);
    return add_gather(px, "Gather", "gather", axis_of(px, 0, px->in[0]->rank));
}

/* One index that is known: the output lies within the data. */
static bool place_gather(struct sdx_prepare *px, int64_t *at)
{
    const struct sdx_tensor *data = px->in[0], *index = px->in[1];
    const int axis = axis_of(px, 0, data->rank);
    if (!index->is_constant || index->count != 1 || px->out[0]->count == 0) return false;
    int64_t j = sdx_move_index(index, 0);
    if (j < 0) j += data->dims[axis];
    if (j < 0 || j >= data->dims[axis] || sdx_move_product(data->dims, 0, axis) != 1) return false;
    at[0] = j * sdx_move_product(data->dims, axis + 1, data->rank);
    return true;
}

/* ---- GatherElements, ScatterElements: an index for each element ---- */

static enum sdx_status infer_gather_elements(struct sdx_infer *ix)
{
    int rank = sdx_infer_rank(ix, 0), rank_index = sdx_infer_rank(ix, 1), axis = 0;
    sdx_infer_set_dtype(ix, 0, sdx_infer_dtype(ix, 0));
    if (rank >= 0) {
        SDX_TRY(sdx_infer_axis(ix, sdx_ir_attr_int(ix->node, "axis", 0), rank, &axis));
        if (rank_index >= 0 && rank != rank_index)
            return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "%.*s: indices have rank %d, expected %d",
                            SDX_MOVE_OP(ix), rank_index, rank);
    }
    if (rank_index < 0) return SDX_OK;
    const int64_t *index = sdx_infer_dims(ix, 1), *data = sdx_infer_dims(ix, 0);
    const bool spread = sdx_ir_attr_int(ix->node, "spread", 0) != 0; /* passes/pass_gather.c */
    for (int i = 0; i < rank; i++)
        if (i != axis && data[i] >= 0 && index[i] > data[i] && !(spread && data[i] == 1))
            return SDX_FAIL(ix->cx, SDX_BAD_MODEL,
                            "%.*s: axis %d of the indices has length %lld, at most %lld allowed",
                            SDX_MOVE_OP(ix), i, (long long)index[i], (long long)data[i]);
    return sdx_infer_set_dims(ix, 0, rank_index, index);
}

/* Reductions with loops of their own. */
enum op_f32 { OP_OTHER, OP_ADD, OP_MUL, OP_MAX, OP_MIN };

struct elements_params {
    const char *op;
    int axis, rank;
    int part_axis; /* parts divide the indices on this axis; -1: one part */
    size_t size;
    int64_t dims[SDX_RANK_MAX];   /* of the indices */
    int64_t stride[SDX_RANK_MAX]; /* of the data */
    int64_t length;               /* of the data's axis */
    sdx_scatter_fn *reduce;       /* NULL: replace */
    enum op_f32 op_f32;
};

static struct elements_params *elements_create(struct sdx_prepare *px, const char *op)
{
    struct elements_params *p = SDX_PREPARE_NEW(px, struct elements_params);
    if (!p) return NULL;
    const struct sdx_tensor *data = px->in[0], *index = px->in[1];
    p->op = op;
    p->rank = data->rank;
    p->axis = axis_of(px, 0, data->rank);
    p->size = sdx_move_size(data->dtype);
    p->length = data->dims[p->axis];
    p->part_axis = p->axis != 0 ? 0 : p->rank > 1 ? 1 : -1;
    memcpy(p->dims, index->dims, (size_t)p->rank * sizeof(*p->dims));
    sdx_move_strides(data->rank, data->dims, p->stride);
    for (int i = 0; i < p->rank; i++)
        if (i != p->axis && data->dims[i] == 1) p->stride[i] = 0;
    return p;
}

static int64_t elements_parts(const struct elements_params *p, int64_t count)
{
    if (p->part_axis < 0) return 1;
    int64_t most = p->dims[p->part_axis];
    return sdx_prepare_parts((double)count, 16 * 1024, most > 0 ? most : 1);
}

enum { ELEMENTS_BLOCK = 512 }; /* places that are known at a time */

struct elements_block {
    int64_t first, count; /* indices first .. first + count - 1 name these places in the data */
    int64_t places[ELEMENTS_BLOCK];
};

static void move_elements(const struct elements_block *b, char *to, const char *from, size_t size,
                          bool gather)
{
    const int64_t *places = b->places, n = b->count;
#define MOVE(type)                                                                                 \
    {                                                                                              \
        const type *src = (const type *)(const void *)from + (gather ? 0 : b->first);              \
        type *dst = (type *)(void *)to + (gather ? b->first : 0);                                  \
        if (gather)                                                                                \
            for (int64_t k = 0; k < n; k++)                                                        \
                dst[k] = src[places[k]];                                                           \
        else                                                                                       \
            for (int64_t k = 0; k < n; k++)                                                        \
                dst[places[k]] = src[k];                                                           \
    }
    switch (size) {
    case 1: MOVE(uint8_t) break;
    case 2: MOVE(uint16_t) break;
    case 4: MOVE(uint32_t) break;
    case 8: MOVE(uint64_t) break;
    default: MOVE(struct sdx_str) break;
    }
#undef MOVE
}

/* a where `is_first`, without a jump: which it is cannot be foretold. */
static float one_of(int is_first, float a, float b)
{
    uint32_t x, y, mask = 0 - (uint32_t)is_first;
    memcpy(&x, &a, sizeof x);
    memcpy(&y, &b, sizeof y);
    x = (x & mask) | (y & ~mask);
    memcpy(&a, &x, sizeof a);
    return a;
}

static void reduce_elements(const struct elements_params *p, const struct elements_block *b,
                            char *to, const char *from)
{
    const int64_t *places = b->places, size = (int64_t)p->size;
    from += b->first * size;
    float *y = (float *)(void *)to;
    const float *x = (const float *)(const void *)from;
#define UPDATE(expression)                                                                         \
    for (int64_t k = 0; k < b->count; k++) {                                                       \
        const float old = y[places[k]], new = x[k];                                                \
        y[places[k]] = (expression);                                                               \
    }                                                                                              \
    return;
    switch (p->op_f32) {
    case OP_ADD: UPDATE(old + new)
    case OP_MUL: UPDATE(old * new)
    case OP_MAX: UPDATE(one_of((old != old) | (old > new), old, new))
    case OP_MIN: UPDATE(one_of((old != old) | (old < new), old, new))
    default: break;
    }
#undef UPDATE
    for (int64_t k = 0, n; k < b->count; k += n) {
        for (n = 1; k + n < b->count && places[k + n] == places[k] + n;)
            n++;
        p->reduce(to + places[k] * size, from + k * size, n);
    }
}

static void elements_flush(const struct elements_params *p, struct elements_block *b,
                           const struct sdx_step *step, bool gather)
{
    char *to = step->out[0]->data;
    const char *from = step->in[gather ? 0 : 2]->data;
    if (p->reduce)
        reduce_elements(p, b, to, from);
    else
        move_elements(b, to, from, p->size, gather);
    b->count = 0;
}

/* Gathers n elements of 4 bytes by indices of 64 bits from number i on. False: one is outside. */
static bool gather_row_4(const struct elements_params *p, const struct sdx_step *step, int64_t i,
                         int64_t n, int64_t base)
{
    const int64_t *index = (const int64_t *)step->in[1]->data + i;
    const uint32_t *src = (const uint32_t *)step->in[0]->data + base;
    uint32_t *dst = (uint32_t *)step->out[0]->data + i;
    const int last = p->rank - 1;
    const int64_t step_base = last == p->axis ? 0 : p->stride[last];
    const int64_t stride = p->stride[p->axis], length = p->length;
    for (int64_t k = 0; k < n; k++, src += step_base) {
        int64_t j = index[k];
        if (SDX_UNLIKELY((uint64_t)j >= (uint64_t)length)) {
            if (j >= length || j < -length) return false;
            j += length;
        }
        dst[k] = src[j * stride];
    }
    return true;
}

/* The places of the n indices from number i on: base + k * step_base less the axis. */
static enum sdx_status elements_row(struct sdx_exec *x, const struct elements_params *p,
                                    const struct sdx_step *step, struct elements_block *b,
                                    int64_t i, int64_t n, int64_t base, bool gather)
{
    const struct sdx_tensor *index = step->in[1];
    const int last = p->rank - 1;
    const int64_t step_base = last == p->axis ? 0 : p->stride[last];
    const int64_t stride = p->stride[p->axis], length = p->length;
    if (gather && p->size == 4 && index->dtype == SDX_I64 && gather_row_4(p, step, i, n, base))
        return SDX_OK;
    while (n > 0) {
        if (b->count && (b->first + b->count != i || b->count == ELEMENTS_BLOCK))
            elements_flush(p, b, step, gather);
        if (!b->count) b->first = i;
        const int64_t room = ELEMENTS_BLOCK - b->count, run = n < room ? n : room;
        int64_t *places = b->places + b->count;
        for (int64_t k = 0; k < run; k++, base += step_base) {
            int64_t j = sdx_move_index(index, i + k);
            if (SDX_UNLIKELY((uint64_t)j >= (uint64_t)length)) {
                if (j >= length || j < -length) return bad_index(x, p->op, j, p->axis, length);
                j += length;
            }
            places[k] = base + j * stride;
        }
        b->count += run;
        i += run;
        n -= run;
    }
    return SDX_OK;
}

/* Visits the indices of a part. gather: out[i] = data[..index..]; otherwise out[..index..] takes
 * update i. */
static enum sdx_status run_elements(struct sdx_exec *x, const struct sdx_step *step, int64_t part,
                                    bool gather)
{
    const struct elements_params *p = step->params;
    struct elements_block block;
    int64_t begin[SDX_RANK_MAX] = {0}, end[SDX_RANK_MAX], at[SDX_RANK_MAX], own[SDX_RANK_MAX];
    sdx_move_strides(p->rank, p->dims, own);
    for (int i = 0; i < p->rank; i++)
        end[i] = p->dims[i];
    if (p->part_axis >= 0) {
        begin[p->part_axis] = sdx_part_begin(p->dims[p->part_axis], step->parts, part, 1);
        end[p->part_axis] = sdx_part_begin(p->dims[p->part_axis], step->parts, part + 1, 1);
    }
    int64_t i_at = 0, base = 0; /* offset among the indices, and in the data less the axis */
    int last = p->rank - 1;
    for (int i = 0; i < p->rank; i++) {
        if (begin[i] >= end[i]) return SDX_OK;
        at[i] = begin[i];
        i_at += begin[i] * own[i];
        if (i != p->axis) base += begin[i] * p->stride[i];
    }
    block.first = block.count = 0;
    for (;;) {
        SDX_TRY(elements_row(x, p, step, &block, i_at, end[last] - begin[last], base, gather));
        int i = last - 1;
        for (; i >= 0; i--) {
            i_at += own[i];
            if (i != p->axis) base += p->stride[i];
            if (++at[i] < end[i]) break;
            i_at -= own[i] * (end[i] - begin[i]);
            if (i != p->axis) base -= p->stride[i] * (end[i] - begin[i]);
            at[i] = begin[i];
        }
        if (i < 0) break;
    }
    elements_flush(p, &block, step, gather);
    return SDX_OK;
}

static enum sdx_status run_gather_elements(struct sdx_exec *x, const struct sdx_step *step,
                                           int64_t part)
{
    return run_elements(x, step, part, true);
}

static enum sdx_status prepare_gather_elements(struct sdx_prepare *px)
{
    if (px->in[0]->rank == 0)
        return SDX_FAIL(px->cx, SDX_BAD_MODEL, "GatherElements: the data is a scalar");
    struct elements_params *p = elements_create(px, "GatherElements");
    if (!p) return SDX_OUT_OF_MEMORY;
    return sdx_move_step(px, "gather_elements", run_gather_elements, p,
                         elements_parts(p, px->out[0]->count), 0);
}

/* ---- scatters: shared ---- */

static enum sdx_status infer_scatter(struct sdx_infer *ix)
{
    sdx_infer_copy(ix, 0, 0);
    return SDX_OK;
}

static enum sdx_status find_reduction(struct sdx_prepare *px, sdx_scatter_fn **out)
{
    struct sdx_str name = sdx_ir_attr_str(px->node, "reduction", "none");
    *out = NULL;
    if (sdx_str_is(name, "none")) return SDX_OK;
    *out = sdx_scatter_find(name, px->in[0]->dtype);
    if (!*out)
        return SDX_FAIL(px->cx, SDX_NOT_SUPPORTED, "%.*s: reduction %.*s of %s", SDX_MOVE_OP(px),
                        SDX_STR_ARG(name), sdx_dtype_short_name(px->in[0]->dtype));
    return SDX_OK;
}

/* ---- ScatterElements ---- */

static enum sdx_status run_scatter_elements(struct sdx_exec *x, const struct sdx_step *step,
                                            int64_t part)
{
    return run_elements(x, step, part, false);
}

static enum sdx_status prepare_scatter_elements(struct sdx_prepare *px)
{
    const struct sdx_tensor *data = px->in[0], *index = px->in[1], *updates = px->in[2];
    int64_t axis = sdx_ir_attr_int(px->node, "axis", 0);
    if (data->rank == 0 || axis < -data->rank || axis >= data->rank)
        return SDX_FAIL(px->cx, SDX_BAD_MODEL, "%.*s: axis %lld of a tensor of rank %d",
                        SDX_MOVE_OP(px), (long long)axis, data->rank);
    if (index->rank != data->rank)
        return SDX_FAIL(px->cx, SDX_BAD_MODEL, "%.*s: indices have rank %d, expected %d",
                        SDX_MOVE_OP(px), index->rank, data->rank);
    if (!sdx_dims_equal(index->dims, index->rank, updates->dims, updates->rank)) {
        char a[128], b[128];
        return SDX_FAIL(px->cx, SDX_BAD_MODEL, "%.*s: updates have shape %s, expected %s",
                        SDX_MOVE_OP(px),
                        sdx_dims_describe(updates->dims, updates->rank, a, sizeof(a)),
                        sdx_dims_describe(index->dims, index->rank, b, sizeof(b)));
    }
    struct elements_params *p = elements_create(px, "ScatterElements");
    if (!p) return SDX_OUT_OF_MEMORY;
    for (int i = 0; i < p->rank; i++)
        if (i != p->axis && index->dims[i] > data->dims[i])
            return SDX_FAIL(px->cx, SDX_BAD_MODEL,
                            "%.*s: axis %d of the indices has length %lld, at most %lld allowed",
                            SDX_MOVE_OP(px), i, (long long)index->dims[i],
                            (long long)data->dims[i]);
    SDX_TRY(find_reduction(px, &p->reduce));
    const struct sdx_str name = sdx_ir_attr_str(px->node, "reduction", "");
    if (p->reduce && data->dtype == SDX_F32)
        p->op_f32 = sdx_str_is(name, "add")   ? OP_ADD
                    : sdx_str_is(name, "mul") ? OP_MUL
                    : sdx_str_is(name, "max") ? OP_MAX
                                              : OP_MIN;
    return sdx_scatter_add(px, "scatter_elements", run_scatter_elements, p,
                           elements_parts(p, index->count));
}

/* ---- GatherND, ScatterND: an index tuple for each slice ---- */

struct nd_params {
    const char *op;
    int k;                         /* length of a tuple */
    int64_t dims[SDX_RANK_MAX];    /* of the axes the tuple addresses */
    int64_t strides[SDX_RANK_MAX]; /* in slices */
    int first_axis;
    int64_t tuples, per_batch; /* in all, and for one batch */
    int64_t batch_slices, run; /* slices of data a batch; elements of a slice */
    size_t size;
    sdx_scatter_fn *reduce;
    struct runs runs;
};

static struct nd_params *nd_create(struct sdx_prepare *px, const char *op, int batch)
{
    struct nd_params *p = SDX_PREPARE_NEW(px, struct nd_params);
    if (!p) return NULL;
    const struct sdx_tensor *data = px->in[0], *index = px->in[1];
    p->op = op;
    p->k = (int)index->dims[index->rank - 1];
    p->first_axis = batch;
    p->size = sdx_move_size(data->dtype);
    p->run = sdx_move_product(data->dims, batch + p->k, data->rank);
    p->tuples = sdx_move_product(index->dims, 0, index->rank - 1);
    p->per_batch = sdx_move_product(index->dims, batch, index->rank - 1);
    p->batch_slices = sdx_move_product(data->dims, batch, batch + p->k);
    memcpy(p->dims, data->dims + batch, (size_t)p->k * sizeof(*p->dims));
    sdx_move_strides(p->k, p->dims, p->strides);
    return p;
}

/* The slice that tuple t addresses; -1, and which of its indices, where that is outside. */
static int64_t nd_place(const struct nd_params *p, const struct sdx_tensor *index, int64_t t,
                        int *outside)
{
    int64_t at = t / p->per_batch * p->batch_slices;
    for (int i = 0; i < p->k; i++) {
        const int64_t raw = sdx_move_index(index, t * p->k + i);
        const int64_t j = raw < 0 ? raw + p->dims[i] : raw;
        *outside = i;
        if (SDX_UNLIKELY(j < 0 || j >= p->dims[i])) return -1;
        at += j * p->strides[i];
    }
    return at;
}
static int64_t nd_slice_of(const void *params, const struct sdx_tensor *index, int64_t t)
{
    int outside;
    return nd_place(params, index, t, &outside);
}
static enum sdx_status nd_slice(struct sdx_exec *x, const struct nd_params *p,
                                const struct sdx_tensor *index, int64_t t, int64_t *out)
{
    int i;
    *out = nd_place(p, index, t, &i);
    if (SDX_LIKELY(*out >= 0)) return SDX_OK;
    return bad_index(x, p->op, sdx_move_index(index, t * p->k + i), p->first_axis + i, p->dims[i]);
}

static enum sdx_status infer_gather_nd(struct sdx_infer *ix)
{
    int rank = sdx_infer_rank(ix, 0), rank_index = sdx_infer_rank(ix, 1), n = 0;
    int64_t batch = sdx_ir_attr_int(ix->node, "batch_dims", 0);
    sdx_infer_set_dtype(ix, 0, sdx_infer_dtype(ix, 0));
    if (rank < 0 || rank_index < 0) return SDX_OK;
    if (rank < 1 || rank_index < 1 || batch < 0 || batch >= rank || batch >= rank_index)
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL,
                        "GatherND: data of rank %d, indices of rank %d and batch_dims %lld", rank,
                        rank_index, (long long)batch);
    const int64_t *data = sdx_infer_dims(ix, 0), *index = sdx_infer_dims(ix, 1);
    int64_t k = index[rank_index - 1];
    if (k < 0) return SDX_OK;
    if (k < 1 || k > rank - batch)
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL,
                        "GatherND: tuples of %lld indices into rank %d with batch_dims %lld",
                        (long long)k, rank, (long long)batch);
    int64_t ignored = 0;
    for (int i = 0; i < (int)batch; i++)
        SDX_TRY(sdx_infer_merge_dim(ix, data[i], index[i], "batch axis", &ignored));
    int64_t *dims = sdx_infer_new_dims(ix, 0, rank_index - 1 + rank - (int)(batch + k));
    if (!dims) return SDX_OUT_OF_MEMORY;
    for (int i = 0; i < rank_index - 1; i++)
        dims[n++] = index[i];
    for (int i = (int)(batch + k); i < rank; i++)
        dims[n++] = data[i];
    return SDX_OK;
}

static enum sdx_status run_gather_nd(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct nd_params *p = step->params;
    const char *src = step->in[0]->data;
    char *dst = step->out[0]->data;
    int64_t begin = sdx_part_begin(p->tuples, step->parts, part, 1);
    int64_t end = sdx_part_begin(p->tuples, step->parts, part + 1, 1), at = 0;
    size_t bytes = (size_t)p->run * p->size;
    if (p->runs.length > 0) {
        gather_runs(&p->runs, dst + (size_t)begin * bytes, src, begin, end, (int64_t)bytes);
        return SDX_OK;
    }
    for (int64_t t = begin; t < end; t++) {
        SDX_TRY(nd_slice(x, p, step->in[1], t, &at));
        if (p->run == 1)
            sdx_move_one(dst + (size_t)t * bytes, src + (size_t)at * bytes, bytes);
        else
            memcpy(dst + (size_t)t * bytes, src + (size_t)at * bytes, bytes);
    }
    return SDX_OK;
}

static enum sdx_status prepare_gather_nd(struct sdx_prepare *px)
{
    int batch = (int)sdx_ir_attr_int(px->node, "batch_dims", 0);
    const struct sdx_tensor *index = px->in[1];
    if (batch == 0 && index->dims[index->rank - 1] == 1)
        return add_gather(px, "GatherND", "gather_nd", 0);
    struct nd_params *p = nd_create(px, "GatherND", batch);
    if (!p) return SDX_OUT_OF_MEMORY;
    if (px->out[0]->count == 0) p->tuples = 0;
    SDX_TRY(find_runs(px, nd_slice_of, p, p->tuples, &p->runs));
    int64_t parts = sdx_prepare_parts((double)px->out[0]->count * (double)p->size, 64 * 1024,
                                      p->tuples > 0 ? p->tuples : 1);
    return sdx_move_step(px, "gather_nd", run_gather_nd, p, parts, 0);
}

/* Parts divide the slices' elements, so that equal indices are met in order in each; what two
 * threads add to lines beside each other takes them twice as long as one. */
enum { SLICE = 1024 };

/* All of them, one after the other: two may share a slice. */
static void scatter_runs(const struct nd_params *p, char *dst, const char *src)
{
    const int64_t elements = p->runs.length * p->run, size = (int64_t)p->size;
    for (int64_t i = 0; i < p->tuples / p->runs.length; i++, src += elements * size) {
        char *to = dst + p->runs.first[i] * p->run * size;
        if (p->reduce)
            p->reduce(to, src, elements);
        else
            memcpy(to, src, (size_t)(elements * size));
    }
}

static enum sdx_status run_scatter_nd(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct nd_params *p = step->params;
    const char *src = step->in[2]->data;
    char *dst = step->out[0]->data;
    int64_t begin = sdx_part_begin(p->run, step->parts, part, 64), at = 0;
    int64_t n = sdx_part_begin(p->run, step->parts, part + 1, 64) - begin;
    if (p->runs.length > 0) {
        scatter_runs(p, dst, src);
        return SDX_OK;
    }
    const int64_t *rows = p->k == 1 && step->in[1]->dtype == SDX_I64 ? step->in[1]->data : NULL;
    for (int64_t t = 0; t < p->tuples; t++) {
        if (rows && rows[t] >= 0 && rows[t] < p->dims[0])
            at = rows[t];
        else
            SDX_TRY(nd_slice(x, p, step->in[1], t, &at));
        char *to = dst + (size_t)(at * p->run + begin) * p->size;
        const char *from = src + (size_t)(t * p->run + begin) * p->size;
        if (n <= 0) continue;
        if (p->reduce)
            p->reduce(to, from, n);
        else
            memcpy(to, from, (size_t)n * p->size);
    }
    return SDX_OK;
}

static enum sdx_status check_scatter_nd(struct sdx_prepare *px)
{
    const struct sdx_tensor *data = px->in[0], *index = px->in[1], *updates = px->in[2];
    int64_t dims[2 * SDX_RANK_MAX];
    int n = 0;
    if (data->rank < 1 || index->rank < 1 || index->dims[index->rank - 1] > data->rank ||
        index->dims[index->rank - 1] < 1)
        return SDX_FAIL(px->cx, SDX_BAD_MODEL, "ScatterND: data of rank %d, tuples of %lld indices",
                        data->rank,
                        index->rank < 1 ? 0LL : (long long)index->dims[index->rank - 1]);
    for (int i = 0; i < index->rank - 1; i++)
        dims[n++] = index->dims[i];
    for (int i = (int)index->dims[index->rank - 1]; i < data->rank; i++)
        dims[n++] = data->dims[i];
    if (sdx_dims_equal(dims, n, updates->dims, updates->rank)) return SDX_OK;
    char a[128], b[128];
    return SDX_FAIL(px->cx, SDX_BAD_MODEL, "ScatterND: updates have shape %s, expected %s",
                    sdx_dims_describe(updates->dims, updates->rank, a, sizeof(a)),
                    sdx_dims_describe(dims, n > SDX_RANK_MAX ? SDX_RANK_MAX : n, b, sizeof(b)));
}

static enum sdx_status prepare_scatter_nd(struct sdx_prepare *px)
{
    SDX_TRY(check_scatter_nd(px));
    struct nd_params *p = nd_create(px, "ScatterND", 0);
    if (!p) return SDX_OUT_OF_MEMORY;
    SDX_TRY(find_reduction(px, &p->reduce));
    double bytes = (double)px->in[2]->count * (double)p->size;
    int64_t most = p->run / SLICE;
    if (most <= 1) SDX_TRY(find_runs(px, nd_slice_of, p, p->tuples, &p->runs));
    return sdx_scatter_add(px, "scatter_nd", run_scatter_nd, p,
                           sdx_prepare_parts(bytes, 128 * 1024, most > 0 ? most : 1));
}

/* ---- TensorScatter ---- */

struct cache_params {
    bool circular;
    int64_t batch, prefixes; /* prefixes: indices before the axis, in all */
    int64_t length, count;   /* of the cache and of the update on the axis */
    size_t run;              /* bytes after the axis */
};

static enum sdx_status run_tensor_scatter(struct sdx_exec *x, const struct sdx_step *step,
                                          int64_t part)
{
    const struct cache_params *p = step->params;
    int64_t begin = sdx_part_begin(p->prefixes, step->parts, part, 1);
    int64_t end = sdx_part_begin(p->prefixes, step->parts, part + 1, 1);
    bool has_index = step->count_in > 2 && step->in[2];
    for (int64_t i = begin; i < end; i++) {
        int64_t at = has_index ? sdx_move_index(step->in[2], i / (p->prefixes / p->batch)) : 0;
        if (!p->circular && (at < 0 || at > p->length - p->count))
            return SDX_FAIL(x->cx, SDX_RUN_FAILED,
                            "TensorScatter: write index %lld and %lld elements, the axis has %lld",
                            (long long)at, (long long)p->count, (long long)p->length);
        if (p->length > 0) at = (at % p->length + p->length) % p->length;
        const char *src = (const char *)step->in[1]->data + (size_t)(i * p->count) * p->run;
        char *dst = (char *)step->out[0]->data + (size_t)(i * p->length) * p->run;
        for (int64_t done = 0; done < p->count;) {
            int64_t to = (at + done) % p->length, n = p->count - done;
            if (n > p->length - to) n = p->length - to;
            memcpy(dst + (size_t)to * p->run, src + (size_t)done * p->run, (size_t)n * p->run);
            done += n;
        }
    }
    return SDX_OK;
}

static enum sdx_status check_tensor_scatter(struct sdx_prepare *px, int axis)
{
    const struct sdx_tensor *cache = px->in[0], *update = px->in[1];
    bool ok = cache->rank == update->rank && axis >= 1 && axis < cache->rank;
    for (int i = 0; ok && i < cache->rank; i++)
        ok = i == axis ? update->dims[i] <= cache->dims[i] : update->dims[i] == cache->dims[i];
    if (ok && sdx_prepare_has(px, 2)) ok = px->in[2]->count == cache->dims[0];
    if (ok) return SDX_OK;
    char a[128], b[128];
    return SDX_FAIL(px->cx, SDX_BAD_MODEL,
                    "TensorScatter: cache %s and update %s do not fit on axis %d",
                    sdx_dims_describe(cache->dims, cache->rank, a, sizeof(a)),
                    sdx_dims_describe(update->dims, update->rank, b, sizeof(b)), axis);
}

static enum sdx_status prepare_tensor_scatter(struct sdx_prepare *px)
{
    const struct sdx_tensor *cache = px->in[0];
    int axis = axis_of(px, -2, cache->rank);
    SDX_TRY(check_tensor_scatter(px, axis));
    struct sdx_str mode = sdx_ir_attr_str(px->node, "mode", "linear");
    struct cache_params *p = SDX_PREPARE_NEW(px, struct cache_params);
    if (!p) return SDX_OUT_OF_MEMORY;
    p->circular = sdx_str_is(mode, "circular");
    if (!p->circular && !sdx_str_is(mode, "linear"))
        return SDX_FAIL(px->cx, SDX_BAD_MODEL, "TensorScatter: mode \"%.*s\"", SDX_STR_ARG(mode));
    p->batch = cache->dims[0];
    p->prefixes = sdx_move_product(cache->dims, 0, axis);
    p->length = cache->dims[axis];
    p->count = px->in[1]->dims[axis];
    p->run =
        (size_t)sdx_move_product(cache->dims, axis + 1, cache->rank) * sdx_move_size(cache->dtype);
    int64_t parts =
        sdx_prepare_parts((double)px->in[1]->bytes, 128 * 1024, p->prefixes > 0 ? p->prefixes : 1);
    return sdx_scatter_add(px, "tensor_scatter", run_tensor_scatter, p, parts);
}

static const struct sdx_op ops[] = {
    {"Gather", 1, 0, infer_gather, KERNEL(prepare_gather), .cost = sdx_cost_none,
     .layout = layout_gather, .place = place_gather, .anywhere = 1u << 0, .flags = SDX_OP_PIECES},
    {"GatherElements", 11, 0, infer_gather_elements, KERNEL(prepare_gather_elements),
     .cost = sdx_cost_none},
    {"GatherND", 11, 0, infer_gather_nd, KERNEL(prepare_gather_nd), .cost = sdx_cost_none},
    {"Scatter", 9, 10, infer_scatter, KERNEL(prepare_scatter_elements), .cost = sdx_cost_none,
     .flags = SDX_OP_INPLACE(0)},
    {"ScatterElements", 11, 0, infer_scatter, KERNEL(prepare_scatter_elements),
     .cost = sdx_cost_none, .flags = SDX_OP_INPLACE(0), .note = "reductions: no strings"},
    {"ScatterND", 11, 0, infer_scatter, KERNEL(prepare_scatter_nd), .cost = sdx_cost_none,
     .flags = SDX_OP_INPLACE(0), .note = "reductions: no strings"},
    {"TensorScatter", 24, 0, infer_scatter, KERNEL(prepare_tensor_scatter), .cost = sdx_cost_none,
     .flags = SDX_OP_INPLACE(0)},
};
const struct sdx_op_family sdx_ops_gather_scatter = FAMILY("", ops);
