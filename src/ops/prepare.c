/* SPDX-License-Identifier: Apache-2.0
 * What prepare functions call: parameters, steps, temporaries, packed constants; and the conversion
 * of narrow floats around operators that are written for f32. */
#include "kernels/vec.h"
#include "ops/narrow.h"
#include "ops/step_host.h"
#include "tensor/convert.h"

static struct sdx_prepare_host *host_of(struct sdx_prepare *px)
{
    return px->host;
}

const struct sdx_tensor *sdx_prepare_value(struct sdx_prepare *px, int i)
{
    if (!sdx_prepare_has(px, i)) return NULL;
    if (px->in[i]->is_constant && px->in[i]->data) return px->in[i];
    return host_of(px)->value(px, i);
}

void *sdx_prepare_alloc(struct sdx_prepare *px, size_t size)
{
    void *p = sdx_arena_alloc(px->arena, size);
    if (!p) (void)SDX_FAIL_MEMORY(px->cx);
    return p;
}

/* Room for one more element in an arena array; NULL: no memory. */
static void *grow(struct sdx_arena *arena, void *array, int32_t count, int32_t *capacity,
                  size_t size)
{
    if (count < *capacity) return array;
    int32_t wanted = *capacity ? *capacity * 2 : 16;
    void *bigger = sdx_arena_array(arena, (size_t)wanted, size);
    if (!bigger) return NULL;
    if (count) memcpy(bigger, array, (size_t)count * size);
    *capacity = wanted;
    return bigger;
}

enum sdx_status sdx_prepare_step_on(struct sdx_prepare *px, const char *kernel, sdx_step_fn *run,
                                    void *params, int64_t parts, size_t scratch, int count_in,
                                    struct sdx_tensor *const *in, int count_out,
                                    struct sdx_tensor *const *out)
{
    struct sdx_step_list *list = host_of(px)->list;
    struct sdx_step *steps =
        grow(list->arena, list->steps, list->count, &list->capacity, sizeof *steps);
    struct sdx_tensor **ins = sdx_arena_copy(list->arena, in, (size_t)count_in * sizeof *in);
    struct sdx_tensor **outs = sdx_arena_copy(list->arena, out, (size_t)count_out * sizeof *out);
    if (!steps || !ins || !outs) return SDX_FAIL_MEMORY(px->cx);
    list->steps = steps;
    steps[list->count++] = (struct sdx_step){.run = run,
                                             .params = params,
                                             .in = ins,
                                             .out = outs,
                                             .count_in = count_in,
                                             .count_out = count_out,
                                             .parts = parts < 1 ? 1 : parts,
                                             .together = 1,
                                             .scratch = scratch,
                                             .node = list->node,
                                             .kernel = kernel};
    return SDX_OK;
}

void sdx_prepare_in_ranges(struct sdx_prepare *px)
{
    struct sdx_step_list *list = host_of(px)->list;
    list->steps[list->count - 1].in_ranges = true;
}
void sdx_prepare_together(struct sdx_prepare *px, int64_t most)
{
    struct sdx_step_list *list = host_of(px)->list;
    list->steps[list->count - 1].together = most;
}
void sdx_prepare_absorbs(struct sdx_prepare *px, sdx_absorb_fn *absorb)
{
    struct sdx_step_list *list = host_of(px)->list;
    list->steps[list->count - 1].absorb = absorb;
}

enum sdx_status sdx_prepare_step(struct sdx_prepare *px, const char *kernel, sdx_step_fn *run,
                                 void *params, int64_t parts, size_t scratch)
{
    return sdx_prepare_step_on(px, kernel, run, params, parts, scratch, px->count_in, px->in,
                               px->count_out, px->out);
}

struct sdx_tensor *sdx_op_tensor(struct sdx_context *cx, struct sdx_arena *arena, int dtype,
                                 int rank, const int64_t *dims)
{
    struct sdx_tensor *t = sdx_arena_alloc(arena, sizeof *t);
    if (!t) {
        (void)SDX_FAIL_MEMORY(cx);
        return NULL;
    }
    t->kind = SDX_KIND_TENSOR;
    t->dtype = (uint8_t)dtype;
    t->rank = rank;
    t->dims = t->dims_inline;
    if (rank > SDX_RANK_INLINE) t->dims = sdx_arena_array(arena, (size_t)rank, sizeof *dims);
    if (!t->dims) {
        (void)SDX_FAIL_MEMORY(cx);
        return NULL;
    }
    if (rank) memcpy((void *)(uintptr_t)t->dims, dims, (size_t)rank * sizeof *dims);
    if (!sdx_dims_count(dims, rank, &t->count) || !sdx_dtype_bytes(dtype, t->count, &t->bytes)) {
        char text[200];
        (void)SDX_FAIL(cx, SDX_OUT_OF_MEMORY, "a tensor of shape %s is larger than memory can be",
                       sdx_dims_describe(dims, rank, text, sizeof text));
        return NULL;
    }
    return t;
}

struct sdx_tensor *sdx_prepare_temp(struct sdx_prepare *px, int dtype, int rank,
                                    const int64_t *dims)
{
    struct sdx_step_list *list = host_of(px)->list;
    struct sdx_temp *temps =
        grow(list->arena, list->temps, list->count_temps, &list->capacity_temps, sizeof *temps);
    struct sdx_tensor *t = temps ? sdx_op_tensor(px->cx, list->arena, dtype, rank, dims) : NULL;
    if (!temps) (void)SDX_FAIL_MEMORY(px->cx);
    if (!t) return NULL;
    list->temps = temps;
    temps[list->count_temps++] = (struct sdx_temp){t, list->node};
    return t;
}

const void *sdx_prepare_pack(struct sdx_prepare *px, int i, const struct sdx_pack *pack)
{
    SDX_ASSERT(px->in[i]->is_constant);
    return host_of(px)->pack(px, px->in[i], pack);
}

void sdx_prepare_drop(struct sdx_prepare *px, const void *bytes, size_t size)
{
    if (host_of(px)->drop) host_of(px)->drop(px, bytes, size);
}

struct sdx_body *sdx_prepare_body(struct sdx_prepare *px, const char *name)
{
    const struct sdx_ir_attr *attr = sdx_ir_attr(px->node, name);
    if (!attr || attr->type != SDX_ATTR_GRAPH) {
        (void)SDX_FAIL(px->cx, SDX_BAD_MODEL, "%.*s: attribute %s is missing, expected a graph",
                       SDX_STR_ARG(px->node->op_type), name);
        return NULL;
    }
    return host_of(px)->body(px, attr->graph);
}

bool sdx_prepare_tunes(const struct sdx_prepare *px)
{
    return ((const struct sdx_prepare_host *)px->host)->choose != NULL;
}

int sdx_prepare_choose(struct sdx_prepare *px, const struct sdx_choice *choice)
{
    return host_of(px)->choose(px, choice);
}

int64_t sdx_prepare_parts(double work, double grain, int64_t most)
{
    double parts = work / (grain > 0 ? grain : 1);
    int64_t count = parts < 1 ? 1 : parts > 1e6 ? 1000000 : (int64_t)parts;
    if (count > 64) count = 64; /* enough for balance; more only adds dispatch */
    return count < most ? count : most < 1 ? 1 : most;
}

/* ---- narrow floats through f32 ---- */

static bool is_narrow(const struct sdx_tensor *t)
{
    if (!t || t->kind != SDX_KIND_TENSOR) return false;
    switch (t->dtype) {
    case SDX_F16:
    case SDX_BF16:
    case SDX_F8E4M3FN:
    case SDX_F8E4M3FNUZ:
    case SDX_F8E5M2:
    case SDX_F8E5M2FNUZ: return true;
    default: return false;
    }
}

static bool is_half(const struct sdx_tensor *t)
{
    return t && (t->dtype == SDX_F16 || t->dtype == SDX_BF16);
}

/* Are input i and output k converted to f32? */
static bool widens_input(const struct sdx_op *op, const struct sdx_tensor *t, int i)
{
    const bool is_weight = i == 1 && op->flags & SDX_OP_NARROW_WEIGHTS && t && t->is_constant;
    return is_narrow(t) && !(is_half(t) && (is_weight || sdx_op_is_cache_in(op, i)));
}
static bool widens_output(const struct sdx_op *op, const struct sdx_tensor *t, int k)
{
    return is_narrow(t) && !(is_half(t) && sdx_op_is_cache_out(op, k));
}

static void convert(int to, void *dst, int from, const void *src, int64_t n)
{
    const struct sdx_vec *vec = sdx_vec();
    if (from == SDX_F16 && to == SDX_F32)
        vec->f16_to_f32(src, dst, (size_t)n);
    else if (from == SDX_F32 && to == SDX_F16)
        vec->f32_to_f16(src, dst, (size_t)n);
    else if (from == SDX_BF16 && to == SDX_F32)
        vec->bf16_to_f32(src, dst, (size_t)n);
    else if (from == SDX_F32 && to == SDX_BF16)
        vec->f32_to_bf16(src, dst, (size_t)n);
    else
        sdx_convert(to, dst, 0, from, src, 0, n, true);
}

static void run_convert(const struct sdx_step *step, const void *const *in, void *out,
                        int64_t begin, int64_t end, void *scratch)
{
    (void)scratch;
    convert(step->out[0]->dtype, out, step->in[0]->dtype, in[0], end - begin);
}

static enum sdx_status pack_convert(struct sdx_context *cx, void *dst, void *arg)
{
    (void)cx;
    const struct sdx_tensor *from = arg;
    convert(SDX_F32, dst, from->dtype, from->data, from->count);
    return SDX_OK;
}

enum sdx_status sdx_prepare_convert(struct sdx_prepare *px, struct sdx_tensor *from,
                                    struct sdx_tensor *to)
{
    const struct sdx_tiles tiles = {
        .run = run_convert, .count = from->count, .weight = 0.5, .full = 1};
    return sdx_prepare_tiles(px, "convert", &tiles, NULL, 0, 1, &from, to);
}

struct sdx_tensor *sdx_prepare_converted(struct sdx_prepare *px, struct sdx_tensor *from, int dtype)
{
    struct sdx_tensor *to = sdx_prepare_temp(px, dtype, from->rank, from->dims);
    return to && sdx_prepare_convert(px, from, to) == SDX_OK ? to : NULL;
}

/* The f32 twin of an input: converted once when constant, by a step otherwise. NULL: error is set.
 */
static struct sdx_tensor *widen_input(struct sdx_prepare *px, struct sdx_tensor *in)
{
    if (!in->is_constant) return sdx_prepare_converted(px, in, SDX_F32);
    struct sdx_tensor *wide = sdx_op_tensor(px->cx, px->arena, SDX_F32, in->rank, in->dims);
    if (!wide) return NULL;
    wide->is_constant = true;
    wide->in_model = in->in_model;
    const struct sdx_pack pack = {
        .key = "f32", .size = wide->bytes, .pack = pack_convert, .arg = in};
    wide->data = (void *)(uintptr_t)host_of(px)->pack(px, in, &pack);
    return wide->data ? wide : NULL;
}

enum sdx_status sdx_op_prepare_node(struct sdx_prepare *px, const struct sdx_op *op)
{
    bool narrow = false;
    for (int i = 0; i < px->count_in; i++)
        narrow = narrow || widens_input(op, px->in[i], i);
    for (int k = 0; k < px->count_out; k++)
        narrow = narrow || widens_output(op, px->out[k], k);
    if (!narrow || !(op->flags & SDX_OP_VIA_F32)) return op->prepare(px);
    struct sdx_tensor **in = sdx_prepare_alloc(px, ((size_t)px->count_in + 1) * sizeof *in);
    struct sdx_tensor **out = sdx_prepare_alloc(px, ((size_t)px->count_out + 1) * sizeof *out);
    if (!in || !out) return px->cx->error.status;
    struct sdx_prepare inner = *px;
    if (px->count_out > 0 && is_narrow(px->out[0])) inner.narrow = px->out[0]->dtype;
    for (int i = 0; i < px->count_in; i++) {
        in[i] = px->in[i];
        if (widens_input(op, in[i], i)) in[i] = widen_input(px, in[i]);
        if (px->in[i] && !in[i]) return px->cx->error.status;
    }
    for (int k = 0; k < px->count_out; k++) {
        out[k] = px->out[k];
        if (widens_output(op, out[k], k))
            out[k] = sdx_prepare_temp(px, SDX_F32, out[k]->rank, out[k]->dims);
        if (px->out[k] && !out[k]) return px->cx->error.status;
    }
    inner.in = in;
    inner.out = out;
    SDX_TRY(op->prepare(&inner));
    for (int k = 0; k < px->count_out; k++)
        if (out[k] != px->out[k]) SDX_TRY(sdx_prepare_convert(px, out[k], px->out[k]));
    return SDX_OK;
}
