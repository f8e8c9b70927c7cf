/* SPDX-License-Identifier: Apache-2.0
 * Sequences of tensors. Items are immutable handles: the operators that change a sequence make a
 * new list of the same items. */
#include "ops/move.h"
#include "ops/op.h"

/* ---- shared ---- */

/* Output k is a sequence of `elem` (NULL: not known). */
static void set_sequence(struct sdx_infer *ix, int k, const struct sdx_type *elem)
{
    ix->out[k].kind = SDX_KIND_SEQUENCE;
    ix->out[k].elem = elem;
    ix->out[k].dtype = elem ? elem->dtype : SDX_DTYPE_NONE;
}

static const struct sdx_type *elem_of(const struct sdx_infer *ix, int i)
{
    return sdx_infer_has(ix, i) && ix->in[i]->kind == SDX_KIND_SEQUENCE ? ix->in[i]->elem : NULL;
}

/* A tensor type; `from` gives its shape (NULL, or one without a shape: not known). NULL: no memory.
 */
static struct sdx_type *tensor_type(struct sdx_infer *ix, int dtype, const struct sdx_type *from)
{
    struct sdx_type *t = sdx_arena_alloc(ix->arena, sizeof(*t));
    int64_t *dims = NULL;
    if (from && from->kind == SDX_KIND_TENSOR && from->has_shape) {
        dims = sdx_arena_array(ix->arena, (size_t)from->rank + 1, sizeof(*dims));
        if (dims && from->rank) memcpy(dims, from->dims, (size_t)from->rank * sizeof(*dims));
    }
    if (!t || (!dims && from && from->has_shape)) {
        (void)SDX_FAIL_MEMORY(ix->cx);
        return NULL;
    }
    t->kind = SDX_KIND_TENSOR;
    t->dtype = (uint8_t)dtype;
    t->has_shape = dims != NULL;
    t->rank = dims ? from->rank : 0;
    t->dims = dims;
    return t;
}

/* `t` becomes the type of tensors of either shape; its dims are ours. */
static void unite_shapes(struct sdx_type *t, const struct sdx_type *other)
{
    if (!t->has_shape) return;
    if (!other->has_shape || other->rank != t->rank) {
        t->has_shape = false;
        t->rank = 0;
        return;
    }
    int64_t *dims = (int64_t *)(uintptr_t)t->dims;
    for (int d = 0; d < t->rank; d++)
        if (dims[d] != other->dims[d]) dims[d] = -1;
}

static enum sdx_status check_sequence(struct sdx_exec *x, const struct sdx_step *step,
                                      const char *op)
{
    if (step->in[0]->kind == SDX_KIND_SEQUENCE) return SDX_OK;
    return SDX_FAIL(x->cx, SDX_RUN_FAILED, "%s: input 0 is no sequence", op);
}

/* The position in input i, counted from the end when negative; `last` is the largest allowed. */
static enum sdx_status position_of(struct sdx_exec *x, const struct sdx_step *step, const char *op,
                                   int i, int64_t count, int64_t last, int64_t *out)
{
    if (step->in[i]->count < 1)
        return SDX_FAIL(x->cx, SDX_RUN_FAILED, "%s: the position is empty", op);
    int64_t at = sdx_move_index(step->in[i], 0), raw = at;
    if (at < 0) at += count;
    if (at < 0 || at > last)
        return SDX_FAIL(x->cx, SDX_RUN_FAILED, "%s: position %lld in a sequence of %lld items", op,
                        (long long)raw, (long long)count);
    *out = at;
    return SDX_OK;
}

static enum sdx_status prepare_one(struct sdx_prepare *px, const char *kernel, sdx_step_fn *run)
{
    return sdx_prepare_step(px, kernel, run, NULL, 1, 0);
}

/* Items of a new sequence while it is built; owns a reference to each. */
struct items {
    struct sdx_mem *mem;
    struct sdx_tensor **list;
    int64_t count;
};

static enum sdx_status items_init(struct sdx_exec *x, struct items *s, int64_t capacity)
{
    *s = (struct items){.mem = x->cx->mem};
    s->list = sdx_mem_calloc(s->mem, SDX_MEM_TENSOR, (size_t)capacity + 1, sizeof(*s->list));
    return s->list ? SDX_OK : SDX_FAIL_MEMORY(x->cx);
}

static void items_deinit(struct items *s)
{
    for (int64_t i = 0; s->list && i < s->count; i++)
        sdx_tensor_release(s->list[i]);
    sdx_mem_free(s->mem, s->list);
}

static enum sdx_status items_add_copy(struct sdx_exec *x, struct items *s,
                                      const struct sdx_tensor *from)
{
    SDX_TRY(sdx_tensor_clone(x->cx, from, &s->list[s->count]));
    s->count++;
    return SDX_OK;
}

static void items_add(struct items *s, struct sdx_tensor *item)
{
    s->list[s->count++] = sdx_tensor_retain(item);
}

static enum sdx_status items_finish(struct sdx_exec *x, const struct sdx_step *step,
                                    struct items *s, int dtype, enum sdx_status status)
{
    if (status == SDX_OK)
        status = sdx_exec_output_items(x, step, 0, SDX_KIND_SEQUENCE, dtype, s->count, s->list);
    items_deinit(s);
    return status;
}

/* ---- SequenceConstruct, SequenceEmpty ---- */

static enum sdx_status infer_construct(struct sdx_infer *ix)
{
    struct sdx_type *elem = NULL;
    for (int i = 0; i < ix->count_in; i++) {
        if (sdx_infer_dtype(ix, i) == SDX_DTYPE_NONE) return SDX_OK;
        if (elem)
            unite_shapes(elem, ix->in[i]);
        else
            elem = tensor_type(ix, sdx_infer_dtype(ix, i), ix->in[i]);
        if (!elem) return SDX_OUT_OF_MEMORY;
    }
    set_sequence(ix, 0, elem);
    return SDX_OK;
}

static enum sdx_status run_construct(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)part;
    struct items s;
    enum sdx_status status = items_init(x, &s, step->count_in);
    for (int i = 0; i < step->count_in && status == SDX_OK; i++)
        status = items_add_copy(x, &s, step->in[i]);
    return items_finish(x, step, &s, step->count_in ? step->in[0]->dtype : SDX_DTYPE_NONE, status);
}

static enum sdx_status prepare_construct(struct sdx_prepare *px)
{
    for (int i = 0; i < px->count_in; i++)
        if (!px->in[i])
            return SDX_FAIL(px->cx, SDX_BAD_MODEL, "SequenceConstruct: input %d is left out", i);
    return prepare_one(px, "sequence_construct", run_construct);
}

static enum sdx_status infer_empty(struct sdx_infer *ix)
{
    int64_t dtype = sdx_ir_attr_int(ix->node, "dtype", SDX_F32);
    if (!sdx_dtype_is_valid((int)dtype))
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "SequenceEmpty: dtype %lld", (long long)dtype);
    const struct sdx_type *elem = tensor_type(ix, (int)dtype, NULL);
    if (!elem) return SDX_OUT_OF_MEMORY;
    set_sequence(ix, 0, elem);
    return SDX_OK;
}

static enum sdx_status run_empty(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)part;
    return sdx_exec_output_items(x, step, 0, SDX_KIND_SEQUENCE, *(const int *)step->params, 0,
                                 NULL);
}

static enum sdx_status prepare_empty(struct sdx_prepare *px)
{
    int *dtype = SDX_PREPARE_NEW(px, int);
    if (!dtype) return SDX_OUT_OF_MEMORY;
    *dtype = (int)sdx_ir_attr_int(px->node, "dtype", SDX_F32);
    return sdx_prepare_step(px, "sequence_empty", run_empty, dtype, 1, 0);
}

/* ---- SequenceInsert, SequenceErase, SequenceAt, SequenceLength ---- */

static enum sdx_status infer_same_sequence(struct sdx_infer *ix)
{
    set_sequence(ix, 0, elem_of(ix, 0));
    return SDX_OK;
}

static enum sdx_status infer_insert(struct sdx_infer *ix)
{
    const struct sdx_type *old = elem_of(ix, 0);
    int dtype = old && old->dtype ? old->dtype : sdx_infer_dtype(ix, 1);
    struct sdx_type *elem = tensor_type(ix, dtype, old);
    if (!elem) return SDX_OUT_OF_MEMORY;
    if (sdx_infer_has(ix, 1)) unite_shapes(elem, ix->in[1]);
    set_sequence(ix, 0, elem);
    return SDX_OK;
}

static bool has_position(const struct sdx_step *step, int i)
{
    return step->count_in > i && step->in[i];
}

static enum sdx_status run_insert(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)part;
    SDX_TRY(check_sequence(x, step, "SequenceInsert"));
    const struct sdx_tensor *in = step->in[0];
    int64_t at = in->count;
    if (has_position(step, 2))
        SDX_TRY(position_of(x, step, "SequenceInsert", 2, in->count, in->count, &at));
    struct items s;
    enum sdx_status status = items_init(x, &s, in->count + 1);
    for (int64_t i = 0; i <= in->count && status == SDX_OK; i++) {
        if (i == at) status = items_add_copy(x, &s, step->in[1]);
        if (i < in->count && status == SDX_OK) items_add(&s, in->items[i]);
    }
    return items_finish(x, step, &s, step->in[1]->dtype, status);
}

static enum sdx_status prepare_insert(struct sdx_prepare *px)
{
    return prepare_one(px, "sequence_insert", run_insert);
}

static enum sdx_status run_erase(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)part;
    SDX_TRY(check_sequence(x, step, "SequenceErase"));
    const struct sdx_tensor *in = step->in[0];
    int64_t at = in->count - 1;
    if (has_position(step, 1))
        SDX_TRY(position_of(x, step, "SequenceErase", 1, in->count, in->count - 1, &at));
    if (at < 0) return SDX_FAIL(x->cx, SDX_RUN_FAILED, "SequenceErase: the sequence is empty");
    struct items s;
    enum sdx_status status = items_init(x, &s, in->count);
    for (int64_t i = 0; i < in->count && status == SDX_OK; i++)
        if (i != at) items_add(&s, in->items[i]);
    return items_finish(x, step, &s, in->dtype, status);
}

static enum sdx_status prepare_erase(struct sdx_prepare *px)
{
    return prepare_one(px, "sequence_erase", run_erase);
}

static enum sdx_status infer_at(struct sdx_infer *ix)
{
    const struct sdx_type *elem = elem_of(ix, 0);
    if (elem) ix->out[0] = *elem;
    return SDX_OK;
}

static enum sdx_status run_at(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)part;
    SDX_TRY(check_sequence(x, step, "SequenceAt"));
    int64_t at = 0, count = step->in[0]->count;
    SDX_TRY(position_of(x, step, "SequenceAt", 1, count, count - 1, &at));
    return sdx_exec_output_copy(x, step, 0, step->in[0]->items[at]);
}

static enum sdx_status prepare_at(struct sdx_prepare *px)
{
    return prepare_one(px, "sequence_at", run_at);
}

static enum sdx_status infer_length(struct sdx_infer *ix)
{
    sdx_infer_set_dtype(ix, 0, SDX_I64);
    return sdx_infer_set_dims(ix, 0, 0, NULL);
}

static enum sdx_status run_length(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)part;
    SDX_TRY(check_sequence(x, step, "SequenceLength"));
    *(int64_t *)step->out[0]->data = step->in[0]->count;
    return SDX_OK;
}

static enum sdx_status prepare_length(struct sdx_prepare *px)
{
    return prepare_one(px, "sequence_length", run_length);
}

/* ---- ConcatFromSequence ---- */

static enum sdx_status infer_concat(struct sdx_infer *ix)
{
    const struct sdx_type *elem = elem_of(ix, 0);
    const struct sdx_ir_attr *attr = sdx_ir_attr(ix->node, "axis");
    if (!attr)
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "ConcatFromSequence: attribute axis is missing");
    if (!elem) return SDX_OK;
    sdx_infer_set_dtype(ix, 0, elem->dtype);
    if (!elem->has_shape) return SDX_OK;
    const bool is_new = sdx_ir_attr_int(ix->node, "new_axis", 0) != 0;
    int axis = 0;
    SDX_TRY(sdx_infer_axis(ix, attr->i, elem->rank + is_new, &axis));
    int64_t *dims = sdx_infer_new_dims(ix, 0, elem->rank + is_new);
    if (!dims) return ix->cx->error.status;
    for (int d = 0, from = 0; d < elem->rank + is_new; d++) {
        dims[d] = d == axis ? -1 : elem->dims[from];
        from += d != axis || !is_new;
    }
    return SDX_OK;
}

struct join_params {
    int64_t axis;
    bool new_axis;
};

/* Shape of the result; also checks the items. */
static enum sdx_status joined_dims(struct sdx_exec *x, const struct sdx_tensor *seq,
                                   const struct join_params *p, int *axis, int *rank, int64_t *dims)
{
    const struct sdx_tensor *first = seq->items[0];
    *rank = first->rank + (p->new_axis ? 1 : 0);
    int64_t at = p->axis < 0 ? p->axis + *rank : p->axis;
    if (at < 0 || at >= *rank || *rank > SDX_RANK_MAX)
        return SDX_FAIL(x->cx, SDX_RUN_FAILED, "ConcatFromSequence: axis %lld of items of rank %d",
                        (long long)p->axis, first->rank);
    *axis = (int)at;
    for (int i = 0, j = 0; i < *rank; i++)
        dims[i] = p->new_axis && i == at ? 0 : first->dims[j++];
    dims[at] = 0;
    for (int64_t k = 0; k < seq->count; k++) {
        const struct sdx_tensor *t = seq->items[k];
        bool ok = t->rank == first->rank && t->dtype == first->dtype;
        for (int i = 0, j = 0; ok && i < *rank; i++) {
            if (p->new_axis && i == at) continue;
            ok = i == at || t->dims[j] == dims[i];
            j++;
        }
        if (!ok)
            return SDX_FAIL(x->cx, SDX_RUN_FAILED,
                            "ConcatFromSequence: item %lld does not fit the first one",
                            (long long)k);
        dims[at] += p->new_axis ? 1 : t->dims[at];
    }
    return SDX_OK;
}

/* Whole rows of each item one after the other. */
static void join(const struct sdx_tensor *seq, int axis, bool new_axis, const int64_t *dims,
                 int rank, char *dst)
{
    int64_t outer = sdx_move_product(dims, 0, axis);
    int64_t inner = sdx_move_product(dims, axis + 1, rank);
    if (sdx_move_product(dims, 0, rank) == 0) return;
    size_t size = sdx_move_size(seq->items[0]->dtype);
    for (int64_t o = 0; o < outer; o++)
        for (int64_t k = 0; k < seq->count; k++) {
            const struct sdx_tensor *t = seq->items[k];
            size_t run = (size_t)((new_axis ? 1 : t->dims[axis]) * inner) * size;
            if (run) memcpy(dst, (const char *)t->data + (size_t)o * run, run);
            dst += run;
        }
}

static enum sdx_status run_concat(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)part;
    SDX_TRY(check_sequence(x, step, "ConcatFromSequence"));
    const struct sdx_tensor *seq = step->in[0];
    const struct join_params *p = step->params;
    int axis = 0, rank = 0;
    int64_t dims[SDX_RANK_MAX + 1], count = 0;
    if (seq->count == 0)
        return SDX_FAIL(x->cx, SDX_RUN_FAILED, "ConcatFromSequence: the sequence is empty");
    SDX_TRY(joined_dims(x, seq, p, &axis, &rank, dims));
    if (seq->items[0]->dtype != SDX_STRING) {
        SDX_TRY(sdx_exec_output(x, step, 0, seq->items[0]->dtype, rank, dims));
        join(seq, axis, p->new_axis, dims, rank, step->out[0]->data);
        return SDX_OK;
    }
    for (int64_t k = 0; k < seq->count; k++)
        count += seq->items[k]->count;
    struct sdx_str *texts =
        sdx_mem_calloc(x->cx->mem, SDX_MEM_SCRATCH, (size_t)count + 1, sizeof(*texts));
    if (!texts) return SDX_FAIL_MEMORY(x->cx);
    join(seq, axis, p->new_axis, dims, rank, (char *)texts);
    enum sdx_status status = sdx_exec_output_strings(x, step, 0, rank, dims, texts);
    sdx_mem_free(x->cx->mem, texts);
    return status;
}

static enum sdx_status prepare_concat(struct sdx_prepare *px)
{
    struct join_params *p = SDX_PREPARE_NEW(px, struct join_params);
    if (!p) return SDX_OUT_OF_MEMORY;
    p->axis = sdx_ir_attr_int(px->node, "axis", 0);
    p->new_axis = sdx_ir_attr_int(px->node, "new_axis", 0) != 0;
    return sdx_prepare_step(px, "concat_from_sequence", run_concat, p, 1, 0);
}

/* ---- SplitToSequence ---- */

struct cut_params {
    int axis;
    bool keep_dims;
};

/* Length of every piece of an axis of length n; -1: not all are equal, or not known. */
static int64_t piece_length(struct sdx_infer *ix, int64_t n)
{
    struct sdx_ints split = {0};
    if (!sdx_infer_has(ix, 1)) return 1;
    if (!sdx_infer_ints(ix, 1, &split) || split.count < 1) return -1;
    for (int64_t k = 0; k < split.count; k++)
        if ((split.sym && split.sym[k]) || split.v[k] != split.v[0]) return -1;
    if (split.rank > 0) return split.v[0];
    return n >= 0 && n % split.v[0] == 0 ? split.v[0] : -1;
}

static enum sdx_status infer_split(struct sdx_infer *ix)
{
    struct sdx_type *elem =
        tensor_type(ix, sdx_infer_dtype(ix, 0), sdx_infer_has(ix, 0) ? ix->in[0] : NULL);
    struct sdx_ints split = {0};
    int rank = sdx_infer_rank(ix, 0), axis = 0;
    if (!elem) return SDX_OUT_OF_MEMORY;
    if (sdx_infer_ints(ix, 1, &split) && split.rank == 0 && split.count == 1 &&
        !(split.sym && split.sym[0]) && split.v[0] < 1)
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "SplitToSequence: split is %lld, expected above 0",
                        (long long)split.v[0]);
    set_sequence(ix, 0, elem);
    if (rank < 0) return SDX_OK;
    SDX_TRY(sdx_infer_axis(ix, sdx_ir_attr_int(ix->node, "axis", 0), rank, &axis));
    int64_t *dims = (int64_t *)(uintptr_t)elem->dims;
    dims[axis] = piece_length(ix, dims[axis]);
    if (sdx_infer_has(ix, 1) || sdx_ir_attr_int(ix->node, "keepdims", 1)) return SDX_OK;
    for (int d = axis; d + 1 < rank; d++)
        dims[d] = dims[d + 1];
    elem->rank--;
    return SDX_OK;
}

/* Length of piece k from position `at`; -1 when there is none left. */
static int64_t cut_length(const struct sdx_tensor *split, int64_t k, int64_t at, int64_t n)
{
    if (split && split->rank > 0) return k < split->count ? sdx_move_index(split, k) : -1;
    if (at >= n) return -1;
    int64_t each = split ? sdx_move_index(split, 0) : 1;
    return each < n - at ? each : n - at;
}

static enum sdx_status cut_piece(struct sdx_exec *x, const struct sdx_tensor *in, int axis,
                                 int64_t at, int64_t length, bool keep, struct items *s)
{
    int64_t dims[SDX_RANK_MAX], src[SDX_RANK_MAX], dst[SDX_RANK_MAX], count = 0;
    for (int i = 0; i < in->rank; i++)
        dims[i] = i == axis ? length : in->dims[i];
    sdx_move_strides(in->rank, in->dims, src);
    sdx_move_strides(in->rank, dims, dst);
    struct sdx_move m;
    size_t size = sdx_move_size(in->dtype);
    sdx_move_init(&m, size, in->rank, dims, src, dst, at * src[axis], 0);
    int rank = in->rank;
    int64_t kept[SDX_RANK_MAX];
    memcpy(kept, dims, sizeof(kept));
    if (!keep) {
        rank--;
        memmove(kept + axis, kept + axis + 1, (size_t)(rank - axis) * sizeof(*kept));
    }
    struct sdx_tensor **out = &s->list[s->count];
    if (in->dtype != SDX_STRING) {
        SDX_TRY(sdx_tensor_new(x->cx, in->dtype, rank, kept, out));
        s->count++;
        sdx_move_run(&m, in->data, (*out)->data, 0, m.units);
        return SDX_OK;
    }
    (void)sdx_dims_count(dims, in->rank, &count);
    struct sdx_str *texts =
        sdx_mem_calloc(x->cx->mem, SDX_MEM_SCRATCH, (size_t)count + 1, sizeof(*texts));
    if (!texts) return SDX_FAIL_MEMORY(x->cx);
    sdx_move_run(&m, in->data, texts, 0, m.units);
    enum sdx_status status = sdx_tensor_new_strings(x->cx, rank, kept, texts, out);
    if (status == SDX_OK) s->count++;
    sdx_mem_free(x->cx->mem, texts);
    return status;
}

static enum sdx_status run_split(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)part;
    const struct cut_params *p = step->params;
    const struct sdx_tensor *in = step->in[0], *split = step->count_in > 1 ? step->in[1] : NULL;
    int64_t n = in->dims[p->axis], at = 0, k = 0, length = 0;
    if (split && split->rank == 0 && sdx_move_index(split, 0) < 1)
        return SDX_FAIL(x->cx, SDX_RUN_FAILED, "SplitToSequence: a length of %lld",
                        (long long)sdx_move_index(split, 0));
    struct items s;
    enum sdx_status status = items_init(x, &s, split && split->rank ? split->count : n);
    while (status == SDX_OK && (length = cut_length(split, k++, at, n)) != -1) {
        if (length < 0 || length > n - at)
            status = SDX_FAIL(x->cx, SDX_RUN_FAILED,
                              "SplitToSequence: length %lld at %lld of an axis of %lld",
                              (long long)length, (long long)at, (long long)n);
        else
            status = cut_piece(x, in, p->axis, at, length, split || p->keep_dims, &s);
        at += length;
    }
    if (status == SDX_OK && at != n)
        status = SDX_FAIL(x->cx, SDX_RUN_FAILED,
                          "SplitToSequence: the lengths sum up to %lld, the axis has %lld",
                          (long long)at, (long long)n);
    return items_finish(x, step, &s, in->dtype, status);
}

static enum sdx_status prepare_split(struct sdx_prepare *px)
{
    struct cut_params *p = SDX_PREPARE_NEW(px, struct cut_params);
    if (!p) return SDX_OUT_OF_MEMORY;
    int64_t axis = sdx_ir_attr_int(px->node, "axis", 0);
    p->axis = (int)(axis < 0 ? axis + px->in[0]->rank : axis);
    p->keep_dims = sdx_ir_attr_int(px->node, "keepdims", 1) != 0;
    return sdx_prepare_step(px, "split_to_sequence", run_split, p, 1, 0);
}

static const struct sdx_op ops[] = {
    {"SequenceConstruct", 11, 0, infer_construct, KERNEL(prepare_construct),
     .flags = SDX_OP_DYNAMIC},
    {"SequenceEmpty", 11, 0, infer_empty, KERNEL(prepare_empty), .flags = SDX_OP_DYNAMIC},
    {"SequenceInsert", 11, 0, infer_insert, KERNEL(prepare_insert), .flags = SDX_OP_DYNAMIC},
    {"SequenceErase", 11, 0, infer_same_sequence, KERNEL(prepare_erase), .flags = SDX_OP_DYNAMIC},
    {"SequenceAt", 11, 0, infer_at, KERNEL(prepare_at), .flags = SDX_OP_DYNAMIC},
    {"SequenceLength", 11, 0, infer_length, KERNEL(prepare_length)},
    {"ConcatFromSequence", 11, 0, infer_concat, KERNEL(prepare_concat), .flags = SDX_OP_DYNAMIC},
    {"SplitToSequence", 11, 0, infer_split, KERNEL(prepare_split), .flags = SDX_OP_DYNAMIC},
};
const struct sdx_op_family sdx_ops_sequence = FAMILY("", ops);
