/* SPDX-License-Identifier: Apache-2.0
 * Where, which moves elements of any type, and Clip, whose bounds were attributes before opset 11.
 */
#include <math.h>

#include "kernels/elements.h"
#include "kernels/vec.h"
#include "ops/loops.h"
#include "ops/layout.h"
#include "tensor/convert.h"

/* ---- Where ---- */

static bool where_small(const void *arg, const void *const *in, const int64_t *step, void *out,
                        int64_t n)
{
    const struct sdx_elements *elements = sdx_elements();
    const uint8_t size = *(const uint8_t *)arg, sizes[] = {1, size, size, size};
    sdx_element_run(size == 1   ? elements->where_1
                    : size == 2 ? elements->where_2
                    : size == 4 ? elements->where_4
                                : elements->where_8,
                    NULL, 3, sizes, in, step, out, n);
    return true;
}
/* Of 16 bytes: strings, complex numbers of doubles. */
static bool where_large(const void *arg, const void *const *in, const int64_t *step, void *out,
                        int64_t n)
{
    (void)arg;
    for (int64_t j = 0; j < n; j++) {
        const int from = ((const uint8_t *)in[0])[j * step[0]] ? 1 : 2;
        memcpy((char *)out + j * 16, (const char *)in[from] + j * step[from] * 16, 16);
    }
    return true;
}

static enum sdx_status run_where_strings(struct sdx_exec *x, const struct sdx_step *step,
                                         int64_t part)
{
    (void)part;
    const struct sdx_nest_job *job = step->params;
    const struct sdx_tensor *out = step->out[0];
    const void *in[3] = {step->in[0]->data, step->in[1]->data, step->in[2]->data};
    struct sdx_str *texts = x->scratch;
    char *gathered = (char *)x->scratch + (size_t)job->nest.count * sizeof *texts;
    if (!sdx_nest_run(&job->nest, in, texts, 0, job->nest.count, gathered, job->fn, NULL))
        return SDX_FAIL(x->cx, SDX_INTERNAL, "Where: a move of strings failed");
    return sdx_exec_output_strings(x, step, 0, out->rank, out->dims, texts);
}

static enum sdx_status prepare_where(struct sdx_prepare *px)
{
    struct sdx_nest_job *job = SDX_PREPARE_NEW(px, struct sdx_nest_job);
    if (!job) return px->cx->error.status;
    int dtype = px->in[1]->dtype, bits = sdx_dtype_bits(dtype);
    if (px->in[2]->dtype != dtype || bits < 8)
        return SDX_FAIL(px->cx, SDX_NOT_SUPPORTED, "Where: element types %s and %s",
                        sdx_dtype_name(dtype), sdx_dtype_name(px->in[2]->dtype));
    SDX_TRY(sdx_nest_plain(px, &job->nest, px->out[0], 3, px->in));
    if (dtype == SDX_STRING) {
        size_t texts = 0;
        if (!sdx_mul_size((size_t)job->nest.count, sizeof(struct sdx_str), &texts))
            return SDX_FAIL_MEMORY(px->cx);
        job->fn = where_large;
        return sdx_prepare_step(px, "where strings", run_where_strings, job, 1,
                                texts + SDX_NEST_SCRATCH);
    }
    uint8_t *size = SDX_PREPARE_NEW(px, uint8_t);
    if (!size) return px->cx->error.status;
    *size = (uint8_t)(bits / 8);
    job->fn = bits <= 64 ? where_small : where_large;
    job->arg = size;
    return sdx_nest_add(px, "where", job, 1, 3, px->in, px->out[0]);
}

/* The condition as numbers, 0 or 1. */
static bool condition_ints(struct sdx_infer *ix, struct sdx_ints *out)
{
    const struct sdx_tensor *c = sdx_infer_value(ix, 0);
    if (!c) return sdx_infer_ints_to_pass(ix, 0, out);
    if (c->dtype != SDX_BOOL || c->rank > 1 || c->count > SDX_RANK_MAX) return false;
    int64_t *v = sdx_arena_array(ix->arena, (size_t)c->count + 1, sizeof *v);
    for (int64_t i = 0; v && i < c->count; i++)
        v[i] = ((const uint8_t *)c->data)[i] != 0;
    *out = (struct sdx_ints){.v = v, .count = c->count, .rank = c->rank};
    return v != NULL;
}

/* Where a condition that is known picks known numbers or symbols: the shape arithmetic of Expand as
 * exporters write it. */
static struct sdx_int where_int(struct sdx_infer *ix, const void *arg, const struct sdx_int *at)
{
    (void)ix, (void)arg;
    if (at[0].sym) return (struct sdx_int){0, -1};
    return at[at[0].v ? 1 : 2];
}

static enum sdx_status infer_where(struct sdx_infer *ix)
{
    struct sdx_ints lists[3];
    sdx_infer_set_dtype(ix, 0, sdx_infer_dtype(ix, 1));
    SDX_TRY(sdx_infer_broadcast(ix, 0, 0, 3));
    if (ix->shapes_only || !condition_ints(ix, &lists[0]) ||
        !sdx_infer_ints_to_pass(ix, 1, &lists[1]) || !sdx_infer_ints_to_pass(ix, 2, &lists[2]))
        return SDX_OK;
    return sdx_infer_map_ints(ix, lists, 3, NULL, where_int);
}

/* ---- Clip ---- */

struct clip {
    float low, high; /* attributes; may be infinite */
    void (*run)(const struct clip *c, const void *x, void *y, int64_t n, const void *low,
                const void *high);
};

/* low, high: the operands; NULL: the attribute, which is infinite when there is none. */
#define CLIP(s, T, lowest, highest)                                                                \
    static void clip_##s(const struct clip *c, const void *from, void *to, int64_t n,              \
                         const void *low, const void *high)                                        \
    {                                                                                              \
        (void)c;                                                                                   \
        const T *x = from, lo = low ? *(const T *)low : (T)(lowest);                               \
        const T hi = high ? *(const T *)high : (T)(highest);                                       \
        T *y = to;                                                                                 \
        for (int64_t j = 0; j < n; j++) {                                                          \
            T v = x[j] < lo ? lo : x[j];                                                           \
            y[j] = v > hi ? hi : v;                                                                \
        }                                                                                          \
    }
CLIP(f64, double, c->low, c->high)
CLIP(u8, uint8_t, 0, UINT8_MAX)
CLIP(u16, uint16_t, 0, UINT16_MAX)
CLIP(u32, uint32_t, 0, UINT32_MAX)
CLIP(u64, uint64_t, 0, UINT64_MAX)
CLIP(i8, int8_t, INT8_MIN, INT8_MAX)
CLIP(i16, int16_t, INT16_MIN, INT16_MAX)
CLIP(i32, int32_t, INT32_MIN, INT32_MAX)
CLIP(i64, int64_t, INT64_MIN, INT64_MAX)

static void clip_f32(const struct clip *c, const void *x, void *y, int64_t n, const void *low,
                     const void *high)
{
    sdx_vec()->f32_clip(x, y, (size_t)n, low ? *(const float *)low : c->low,
                        high ? *(const float *)high : c->high);
}

static void run_clip(const struct sdx_step *step, const void *const *in, void *out, int64_t begin,
                     int64_t end, void *scratch)
{
    (void)scratch;
    const struct clip *c = step->params;
    c->run(c, in[0], out, end - begin, step->count_in > 1 ? in[1] : NULL,
           step->count_in > 2 ? in[2] : NULL);
}

static enum sdx_status prepare_clip(struct sdx_prepare *px)
{
    struct clip *c = SDX_PREPARE_NEW(px, struct clip);
    if (!c) return px->cx->error.status;
    int dtype = px->in[0]->dtype;
    switch (dtype) {
    case SDX_F32: c->run = clip_f32; break;
    case SDX_F64: c->run = clip_f64; break;
    case SDX_U8: c->run = clip_u8; break;
    case SDX_U16: c->run = clip_u16; break;
    case SDX_U32: c->run = clip_u32; break;
    case SDX_U64: c->run = clip_u64; break;
    case SDX_I8: c->run = clip_i8; break;
    case SDX_I16: c->run = clip_i16; break;
    case SDX_I32: c->run = clip_i32; break;
    case SDX_I64: c->run = clip_i64; break;
    default:
        return SDX_FAIL(px->cx, SDX_NOT_SUPPORTED, "Clip: element type %s", sdx_dtype_name(dtype));
    }
    for (int i = 1; i < 3; i++)
        if (sdx_prepare_has(px, i) && (px->in[i]->count != 1 || px->in[i]->dtype != dtype))
            return SDX_FAIL(px->cx, SDX_BAD_INPUT, "Clip: %s must be one %s, it has %lld elements",
                            i == 1 ? "min" : "max", sdx_dtype_name(dtype),
                            (long long)px->in[i]->count);
    c->low = px->opset < 11 ? sdx_ir_attr_float(px->node, "min", -INFINITY) : -INFINITY;
    c->high = px->opset < 11 ? sdx_ir_attr_float(px->node, "max", INFINITY) : INFINITY;
    const struct sdx_tiles tiles = {
        .run = run_clip, .count = px->out[0]->count, .weight = 1, .full = 1};
    return sdx_prepare_tiles(px, "clip", &tiles, c, 0, px->count_in, px->in, px->out[0]);
}

static const struct sdx_op ops[] = {
    {"Where", 9, 0, infer_where, KERNEL(prepare_where),
     .flags = SDX_OP_INPLACE(1) | SDX_OP_INPLACE(2)},
    {"Clip", 1, 0, sdx_infer_same, KERNEL(prepare_clip), .layout = sdx_layout_elementwise,
     .flags = SDX_OP_VIA_F32 | SDX_OP_INPLACE(0) | SDX_OP_PHYSICAL | SDX_OP_FINITE},
};
const struct sdx_op_family sdx_ops_ternary = FAMILY("", ops);
