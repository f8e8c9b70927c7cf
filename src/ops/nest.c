/* SPDX-License-Identifier: Apache-2.0
 * Broadcasting loop nests: making one from shapes, and running a range of its elements. */
#include "ops/nest.h"

#include "kernels/vec.h"
#include "ops/move.h"

enum { SHORT = 64 }; /* elements of an innermost loop of which many are gathered */

/* Appends a loop, or merges it with the one before when every operand steps through both alike. */
static void add_loop(struct sdx_nest *nest, int64_t length, const int64_t *step)
{
    bool merge = nest->rank > 0;
    for (int i = 0; i < nest->count_in && merge; i++)
        merge = nest->step[i][nest->rank - 1] == step[i] * length;
    if (!merge) nest->rank++;
    int at = nest->rank - 1;
    nest->dims[at] = merge ? nest->dims[at] * length : length;
    for (int i = 0; i < nest->count_in; i++)
        nest->step[i][at] = step[i];
}

static void classify(struct sdx_nest *nest)
{
    bool all = true;
    for (int i = 0; i < nest->count_in; i++) {
        bool full = nest->inner_step[i] == 1 || nest->inner == 1;
        bool scalar = nest->inner_step[i] == 0;
        int64_t stride = nest->inner;
        for (int d = nest->rank - 1; d >= 0; d--) {
            full = full && nest->step[i][d] == stride;
            scalar = scalar && nest->step[i][d] == 0;
            stride *= nest->dims[d];
        }
        nest->is_full[i] = full;
        nest->is_scalar[i] = scalar;
        all = all && (full || scalar);
    }
    nest->gathers = nest->rank > 0 && nest->inner <= SHORT && !all;
}

enum sdx_status sdx_nest_make(struct sdx_prepare *px, struct sdx_nest *nest,
                              const struct sdx_tensor *out, int count_in,
                              struct sdx_tensor *const *in, const struct sdx_nest_shape *shapes)
{
    *nest = (struct sdx_nest){.count = out->count, .count_in = count_in};
    size_t room = (size_t)out->rank + 1;
    int64_t *memory = sdx_prepare_alloc(px, sizeof(int64_t) * room * (size_t)(count_in + 1));
    if (!memory) return px->cx->error.status;
    nest->dims = memory;
    int64_t stride[SDX_NEST_IN][SDX_RANK_MAX];
    for (int i = 0; i < count_in; i++) {
        nest->step[i] = memory + room * (size_t)(i + 1);
        nest->size[i] = (int32_t)(sdx_dtype_bits(in[i]->dtype) / 8);
        int lead = out->rank - shapes[i].rank;
        if (lead < 0)
            return SDX_FAIL(px->cx, SDX_BAD_INPUT, "%.*s: input %d of rank %d is over rank %d",
                            SDX_STR_ARG(px->node->op_type), i, shapes[i].rank, out->rank);
        int64_t run = 1;
        for (int d = out->rank - 1; d >= 0; d--) {
            int64_t length = d >= lead ? shapes[i].dims[d - lead] : 1;
            if (length != 1 && length != out->dims[d])
                return SDX_FAIL(px->cx, SDX_BAD_INPUT,
                                "%.*s: length %lld of input %d does not broadcast to %lld",
                                SDX_STR_ARG(px->node->op_type), (long long)length, i,
                                (long long)out->dims[d]);
            stride[i][d] = length == 1 ? 0 : run;
            run *= length;
        }
    }
    nest->size_out = (int32_t)(sdx_dtype_bits(out->dtype) / 8);
    for (int d = 0; d < out->rank; d++) {
        if (out->dims[d] == 1) continue;
        int64_t step[SDX_NEST_IN] = {0};
        for (int i = 0; i < count_in; i++)
            step[i] = stride[i][d];
        add_loop(nest, out->dims[d], step);
    }
    nest->inner = 1;
    if (nest->rank > 0) {
        nest->rank--;
        nest->inner = nest->dims[nest->rank];
        for (int i = 0; i < count_in; i++)
            nest->inner_step[i] = nest->step[i][nest->rank];
    }
    classify(nest);
    return SDX_OK;
}

enum sdx_status sdx_nest_plain(struct sdx_prepare *px, struct sdx_nest *nest,
                               const struct sdx_tensor *out, int count_in,
                               struct sdx_tensor *const *in)
{
    struct sdx_nest_shape shapes[SDX_NEST_IN];
    for (int i = 0; i < count_in; i++)
        shapes[i] = (struct sdx_nest_shape){in[i]->dims, in[i]->rank};
    return sdx_nest_make(px, nest, out, count_in, in, shapes);
}

enum sdx_status sdx_nest_binary(struct sdx_prepare *px, struct sdx_nest *nest)
{
    const struct sdx_tensor *a = px->in[0], *b = px->in[1];
    struct sdx_nest_shape shapes[2] = {{a->dims, a->rank}, {b->dims, b->rank}};
    int64_t padded[SDX_RANK_MAX];
    const struct sdx_ir_attr *axis = sdx_ir_attr(px->node, "axis");
    if (px->opset < 7 && axis && b->rank <= a->rank) {
        int64_t at = axis->i < 0 ? axis->i + a->rank : axis->i;
        if (at < 0 || at + b->rank > a->rank)
            return SDX_FAIL(px->cx, SDX_BAD_MODEL, "%.*s: axis %lld of rank %d and %d",
                            SDX_STR_ARG(px->node->op_type), (long long)axis->i, a->rank, b->rank);
        int rank = a->rank - (int)at;
        for (int d = 0; d < rank; d++)
            padded[d] = d < b->rank ? b->dims[d] : 1;
        shapes[1] = (struct sdx_nest_shape){padded, rank};
    }
    return sdx_nest_make(px, nest, px->out[0], 2, px->in, shapes);
}

/* Where operand i stands at a position of the outer loops. */
struct place {
    int64_t index[SDX_RANK_MAX];
    int64_t offset[SDX_NEST_IN];
};

static void place_set(const struct sdx_nest *nest, struct place *place, int64_t outer)
{
    for (int i = 0; i < nest->count_in; i++)
        place->offset[i] = 0;
    for (int d = nest->rank - 1; d >= 0; d--) {
        int64_t index = outer % nest->dims[d];
        outer /= nest->dims[d];
        place->index[d] = index;
        for (int i = 0; i < nest->count_in; i++)
            place->offset[i] += index * nest->step[i][d];
    }
}

/* On by so many places, which do not pass the end of the last loop. */
static void place_next(const struct sdx_nest *nest, struct place *place, int64_t by)
{
    for (int d = nest->rank - 1; d >= 0; d--, by = 1) {
        place->index[d] += by;
        for (int i = 0; i < nest->count_in; i++)
            place->offset[i] += by * nest->step[i][d];
        if (place->index[d] < nest->dims[d]) return;
        for (int i = 0; i < nest->count_in; i++)
            place->offset[i] -= nest->dims[d] * nest->step[i][d];
        place->index[d] = 0;
    }
}

/* Rows of 8 to 16 bytes, each one byte again and again, from `stride` apart. */
static void splat_bytes(char *to, const char *from, int64_t stride, int64_t n, int64_t rows)
{
    for (; rows > 0; rows--, from += stride, to += n) {
        const uint64_t all = (unsigned char)*from * UINT64_C(0x0101010101010101);
        memcpy(to, &all, sizeof all);
        memcpy(to + n - sizeof all, &all, sizeof all);
    }
}

/* Rows of n elements, one after the other: from `stride` apart, each a run or one element again
 * and again. */
static void copy_rows(size_t size, char *to, const char *from, int64_t stride, bool splat,
                      int64_t n, int64_t rows)
{
    if (size == 4 || (size == 8 && !splat)) {
        const size_t words = size / 4;
        sdx_vec()->b32_rows((const float *)(const void *)from, (size_t)stride * words, splat,
                            (float *)(void *)to, (size_t)n * words, (size_t)rows);
        return;
    }
    if (size == 1 && splat && n >= 8 && n <= 16) {
        splat_bytes(to, from, stride, n, rows);
        return;
    }
    for (int64_t r = 0; r < rows; r++, from += stride * (int64_t)size, to += n * (int64_t)size)
        if (splat)
            sdx_move_fill(to, size, from, n);
        else
            memcpy(to, from, (size_t)n * size);
}

/* Operand i of rows x run elements at a place. */
static void gather_rows(const struct sdx_nest *nest, int i, const char *from, char *to, int64_t run,
                        int64_t rows)
{
    const size_t size = (size_t)nest->size[i];
    const bool splat = !nest->inner_step[i];
    const int64_t stride = nest->rank > 0 ? nest->step[i][nest->rank - 1] : 0;
    if (stride || splat) {
        copy_rows(size, to, from, stride, splat, run, rows);
        return;
    }
    copy_rows(size, to, from, 0, false, run, 1);
    const size_t bytes = (size_t)(rows * run) * size;
    for (size_t done = (size_t)run * size; done < bytes;) {
        const size_t more = bytes - done < done ? bytes - done : done;
        memcpy(to + done, to, more);
        done += more;
    }
}

static bool run_gathered(const struct sdx_nest *nest, const void *const *in, char *out,
                         int64_t begin, int64_t end, char *scratch, sdx_nest_fn *fn,
                         const void *arg)
{
    struct place place;
    place_set(nest, &place, begin / nest->inner);
    const int64_t inner = nest->inner, *loop = &place.index[nest->rank - 1];
    int64_t inside = begin % inner;
    const void *operand[SDX_NEST_IN];
    int64_t step[SDX_NEST_IN];
    for (int64_t at = begin; at < end;) {
        int64_t n = end - at < SDX_NEST_BLOCK ? end - at : SDX_NEST_BLOCK;
        for (int64_t done = 0; done < n;) {
            int64_t run = inner - inside < n - done ? inner - inside : n - done, rows = 1;
            if (run == inner) {
                const int64_t left = nest->dims[nest->rank - 1] - *loop;
                rows = (n - done) / inner < left ? (n - done) / inner : left;
            }
            for (int i = 0; i < nest->count_in; i++) {
                if (nest->is_full[i] || nest->is_scalar[i]) continue;
                int32_t size = nest->size[i];
                const char *from =
                    (const char *)in[i] + (place.offset[i] + inside * nest->inner_step[i]) * size;
                gather_rows(nest, i, from, scratch + (size_t)i * SDX_NEST_BLOCK * 16 + done * size,
                            run, rows);
            }
            done += rows * run;
            inside += run;
            if (inside == inner) {
                inside = 0;
                place_next(nest, &place, rows);
            }
        }
        for (int i = 0; i < nest->count_in; i++) {
            step[i] = !nest->is_scalar[i];
            operand[i] = nest->is_full[i]     ? (const char *)in[i] + (at - begin) * nest->size[i]
                         : nest->is_scalar[i] ? (const char *)in[i]
                                              : scratch + (size_t)i * SDX_NEST_BLOCK * 16;
        }
        if (!fn(arg, operand, step, out + (at - begin) * nest->size_out, n)) return false;
        at += n;
    }
    return true;
}

bool sdx_nest_tile(const struct sdx_nest *nest, const void *const *in, void *out, int64_t begin,
                   int64_t end, void *scratch, sdx_nest_fn *fn, const void *arg)
{
    if (begin >= end) return true;
    if (nest->gathers) return run_gathered(nest, in, out, begin, end, scratch, fn, arg);
    struct place place;
    place_set(nest, &place, begin / nest->inner);
    int64_t inside = begin % nest->inner;
    const void *operand[SDX_NEST_IN];
    for (int64_t at = begin; at < end;) {
        int64_t n = nest->inner - inside < end - at ? nest->inner - inside : end - at;
        for (int i = 0; i < nest->count_in; i++) {
            int64_t offset =
                nest->is_full[i] ? at - begin : place.offset[i] + inside * nest->inner_step[i];
            operand[i] = (const char *)in[i] + offset * nest->size[i];
        }
        char *to = (char *)out + (at - begin) * nest->size_out;
        if (!fn(arg, operand, nest->inner_step, to, n)) return false;
        at += n;
        inside = 0;
        place_next(nest, &place, 1);
    }
    return true;
}

bool sdx_nest_run(const struct sdx_nest *nest, const void *const *in, void *out, int64_t begin,
                  int64_t end, void *scratch, sdx_nest_fn *fn, const void *arg)
{
    const void *from[SDX_NEST_IN];
    for (int i = 0; i < nest->count_in; i++)
        from[i] = nest->is_full[i] ? (const char *)in[i] + begin * nest->size[i] : in[i];
    return sdx_nest_tile(nest, from, (char *)out + begin * nest->size_out, begin, end, scratch, fn,
                         arg);
}

static void nest_tile(const struct sdx_step *step, const void *const *in, void *out, int64_t begin,
                      int64_t end, void *scratch)
{
    const struct sdx_nest_job *job = step->params;
    (void)sdx_nest_tile(&job->nest, in, out, begin, end, scratch, job->fn, job->arg);
}

/* Of nests whose values may break the operator's rules. */
static enum sdx_status nest_step(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct sdx_nest_job *job = step->params;
    const void *in[SDX_NEST_IN];
    for (int i = 0; i < job->nest.count_in; i++)
        in[i] = step->in[i]->data;
    int64_t begin = sdx_part_begin(job->nest.count, step->parts, part, 64);
    int64_t end = sdx_part_begin(job->nest.count, step->parts, part + 1, 64);
    if (!sdx_nest_run(&job->nest, in, step->out[0]->data, begin, end, x->scratch, job->fn,
                      job->arg))
        return SDX_FAIL(x->cx, SDX_RUN_FAILED, "%s", job->failure);
    return SDX_OK;
}

enum sdx_status sdx_nest_add(struct sdx_prepare *px, const char *kernel, struct sdx_nest_job *job,
                             double weight, int count_in, struct sdx_tensor *const *in,
                             struct sdx_tensor *out)
{
    size_t scratch = sdx_nest_scratch(&job->nest);
    if (!job->failure) {
        struct sdx_tiles tiles = {.run = nest_tile, .count = job->nest.count, .weight = weight};
        for (int i = 0; i < count_in; i++)
            tiles.full |= (unsigned)job->nest.is_full[i] << i;
        return sdx_prepare_tiles(px, kernel, &tiles, job, scratch, count_in, in, out);
    }
    int64_t most = (job->nest.count + 63) / 64;
    int64_t parts =
        sdx_prepare_parts((double)job->nest.count * weight, SDX_NEST_GRAIN, most > 0 ? most : 1);
    return sdx_prepare_step_on(px, kernel, nest_step, job, parts, scratch, count_in, in, 1, &out);
}

enum sdx_status sdx_nest_infer_shape(struct sdx_infer *ix)
{
    if (ix->opset >= 7) return sdx_infer_broadcast(ix, 0, 0, 2);
    const int64_t *dims = sdx_infer_dims(ix, 0);
    if (!dims) return SDX_OK;
    return sdx_infer_set_dims(ix, 0, sdx_infer_rank(ix, 0), dims);
}
