/* SPDX-License-Identifier: Apache-2.0
 * QuantizeLinear, DequantizeLinear (per tensor, axis or block), DynamicQuantizeLinear,
 * MatMulInteger and QLinearMatMul. Elements are worked on in rows along which the scale is one or
 * moves with the element, in chunks that go through f32. */
#include <math.h>

#include "kernels/elements.h"
#include "kernels/qbytes.h"
#include "kernels/vec.h"
#include "ops/product.h"
#include "ops/qproduct.h"
#include "ops/shared.h"
#include "tensor/convert.h"

#define NAME(node) SDX_STR_ARG((node)->op_type)

enum { CHUNK = 512 };

/* ---- rows of elements with their scales ---- */

struct rows {
    int64_t count, length;       /* rows, elements of each (the last of a group may be shorter) */
    int64_t group, group_length; /* rows of one stretch of group_length elements */
    int64_t scale_group, scale_row; /* scale of row r: r / group * scale_group + r % group * ... */
    int64_t rows_a_scale;           /* ... scale_row, shared by so many rows in turn */
    int64_t step;                   /* of the scale from element to element: 0 or 1 */
    int64_t rows_a_part;
    int dtype_mid; /* quotients are rounded to this type; f32: no rounding */
    bool saturate;
};

struct row {
    int64_t at, n, scale;
};

static struct row row_at(const struct rows *p, int64_t r)
{
    int64_t g = r / p->group, i = r % p->group, begin = i * p->length;
    int64_t left = p->group_length - begin;
    return (struct row){.at = g * p->group_length + begin,
                        .n = left < p->length ? left : p->length,
                        .scale = g * p->scale_group + i / p->rows_a_scale * p->scale_row};
}

static enum sdx_status bad_scale(struct sdx_prepare *px)
{
    return SDX_FAIL(px->cx, SDX_BAD_MODEL, "%.*s: the scale's shape does not fit the input",
                    NAME(px->node));
}

/* Granularity from the shapes of x and its scale. */
static enum sdx_status read_rows(struct sdx_prepare *px, struct rows *p)
{
    const struct sdx_tensor *x = px->in[0], *scale = px->in[1];
    int64_t block = sdx_ir_attr_int(px->node, "block_size", 0), outer = 1, inner = 1;
    int64_t axis = sdx_ir_attr_int(px->node, "axis", 1);
    *p = (struct rows){.group = 1, .rows_a_scale = 1, .dtype_mid = SDX_F32};
    p->saturate = sdx_ir_attr_int(px->node, "saturate", 1) != 0;
    if (block < 0)
        return SDX_FAIL(px->cx, SDX_BAD_MODEL, "%.*s: block_size is %lld, expected at least 0",
                        NAME(px->node), (long long)block);
    if (sdx_prepare_has(px, 2) &&
        !sdx_dims_equal(px->in[2]->dims, px->in[2]->rank, scale->dims, scale->rank) &&
        px->in[2]->count != scale->count)
        return SDX_FAIL(px->cx, SDX_BAD_MODEL, "%.*s: scale and zero point differ in shape",
                        NAME(px->node));
    if (scale->count == 1 && block == 0) { /* the tensor in rows of a few chunks */
        p->length = 16 * CHUNK;
        p->count = p->group = (x->count + p->length - 1) / p->length;
        p->group_length = x->count;
        p->rows_a_scale = p->count ? p->count : 1;
        return SDX_OK;
    }
    if (axis < 0) axis += x->rank;
    if (axis < 0 || axis >= x->rank)
        return SDX_FAIL(px->cx, SDX_BAD_MODEL, "%.*s: axis is not in an input of rank %d",
                        NAME(px->node), x->rank);
    int64_t length = x->dims[axis];
    for (int i = 0; i < x->rank; i++) {
        if (i < axis) outer *= x->dims[i];
        if (i > axis) inner *= x->dims[i];
    }
    if (block == 0) {
        if (scale->rank != 1 || scale->dims[0] != length) return bad_scale(px);
        p->group_length = inner == 1 ? length : length * inner;
        p->group = inner == 1 ? 1 : length;
        p->length = inner == 1 ? length : inner;
        p->step = inner == 1;
        p->scale_row = 1;
        p->count = outer * p->group;
        return SDX_OK;
    }
    int64_t blocks = length == 0 ? 0 : (length - 1) / block + 1;
    if (scale->rank != x->rank) return bad_scale(px);
    for (int i = 0; i < x->rank; i++)
        if (scale->dims[i] != (i == axis ? blocks : x->dims[i])) return bad_scale(px);
    p->group_length = length * inner;
    p->scale_group = blocks * inner;
    if (inner == 1) {
        p->length = block < length ? block : length;
        p->group = blocks;
        p->scale_row = 1;
    } else {
        p->length = inner;
        p->group = length;
        p->rows_a_scale = block;
        p->scale_row = inner;
        p->step = 1;
    }
    p->count = outer * p->group;
    return SDX_OK;
}

static const struct sdx_tensor *zero_of(const struct sdx_step *step)
{
    return step->count_in > 2 ? step->in[2] : NULL;
}

/* y = (x - zero) * scale, n integers of 8 or 16 bits from `at` on. False: of another type. */
static bool scaled(int dtype, const void *x, int64_t at, int64_t n, float scale, int32_t zero,
                   float *y)
{
    const struct sdx_elements *elements = sdx_elements();
    const float arg[] = {(float)zero, scale};
    switch (dtype) {
    case SDX_U8: sdx_vec()->u8_to_f32((const uint8_t *)x + at, scale, zero, y, (size_t)n); break;
    case SDX_I8: sdx_vec()->s8_to_f32((const int8_t *)x + at, scale, zero, y, (size_t)n); break;
    case SDX_U16:
    case SDX_I16:
        x = (const uint16_t *)x + at;
        sdx_element_run(dtype == SDX_U16 ? elements->u16_scaled : elements->i16_scaled, arg, 1,
                        (const uint8_t[]){2, 4}, &x, &(int64_t){1}, y, n);
        break;
    default: return false;
    }
    return true;
}

/* n elements from `at` as f32, in place when they are. */
static const float *as_f32(const struct sdx_tensor *t, int64_t at, int64_t n, float *buffer)
{
    if (t->dtype == SDX_F32) return (const float *)t->data + at;
    if (t->dtype == SDX_I32) {
        const void *x = (const int32_t *)t->data + at;
        sdx_element_run(sdx_elements()->i32_f32, NULL, 1, (const uint8_t[]){4, 4}, &x,
                        &(int64_t){1}, buffer, n);
    } else if (!scaled(t->dtype, t->data, at, n, 1, 0, buffer)) {
        sdx_convert(SDX_F32, buffer, 0, t->dtype, t->data, at, n, true);
    }
    return buffer;
}

static int bits_of(int dtype)
{
    size_t bytes = 0;
    return sdx_dtype_bytes(dtype, 8, &bytes) ? (int)bytes : 0;
}

/* Least and greatest value of a quantised integer type. */
static void limits_of(int dtype, int32_t *lo, int32_t *hi)
{
    int bits = bits_of(dtype);
    *lo = sdx_dtype_is_signed(dtype) ? -(1 << (bits - 1)) : 0;
    *hi = sdx_dtype_is_signed(dtype) ? (1 << (bits - 1)) - 1 : (1 << bits) - 1;
}

static void round_to(int dtype, float *x, int64_t n)
{
    if (dtype == SDX_F32) return;
    for (int64_t i = 0; i < n; i++)
        x[i] = dtype == SDX_F16 ? sdx_f16_to_f32(sdx_f32_to_f16(x[i]))
                                : sdx_bf16_to_f32(sdx_f32_to_bf16(x[i]));
}

/* ---- QuantizeLinear ---- */

/* n integers of 8 or 16 bits of y from `at` on: x / scale to the nearest whole number, + zero,
 * within the bounds. False: of another type. */
static bool quantized(const float *x, float scale, int32_t zero, int dtype, void *y, int64_t at,
                      int64_t n)
{
    const struct sdx_elements *elements = sdx_elements();
    const float arg[] = {(float)zero, scale};
    const int32_t shift = dtype == SDX_I8 ? 128 : 0;
    switch (dtype) {
    case SDX_U8:
    case SDX_I8:
        sdx_qbytes()->quantize(x, scale, zero + shift, (uint8_t)shift, (uint8_t *)y + at,
                               (size_t)n);
        return true;
    case SDX_U16:
    case SDX_I16:
        sdx_element_run(
            dtype == SDX_U16 ? elements->f32_quantized_u16 : elements->f32_quantized_i16, arg, 1,
            (const uint8_t[]){4, 2}, &(const void *){x}, &(int64_t){1}, (uint16_t *)y + at, n);
        return true;
    default: return false;
    }
}

static void quantize_chunk(const struct rows *p, const struct sdx_step *step, int64_t at,
                           int64_t scale_at, int64_t n)
{
    const struct sdx_vec *vec = sdx_vec();
    float x_buffer[CHUNK], scales[CHUNK], zeros[CHUNK], q[CHUNK];
    const struct sdx_tensor *zero = zero_of(step), *y = step->out[0];
    const float *x = as_f32(step->in[0], at, n, x_buffer);
    int64_t count = p->step ? n : 1;
    const float *s = as_f32(step->in[1], scale_at, count, scales);
    zeros[0] = 0;
    const float *z = zero ? as_f32(zero, scale_at, count, zeros) : zeros;
    const size_t step_z = zero ? (size_t)p->step : 0;
    vec->f32_div(x, 1, s, (size_t)p->step, q, (size_t)n);
    round_to(p->dtype_mid, q, n);
    if (sdx_dtype_is_float(y->dtype)) {
        vec->f32_add(q, 1, z, step_z, q, (size_t)n);
        sdx_convert(y->dtype, y->data, at, SDX_F32, q, 0, n, p->saturate);
        return;
    }
    if (step_z) { /* a zero point for each is added here, to a whole number */
        vec->f32_round(q, q, (size_t)n, 0, 0);
        vec->f32_add(q, 1, z, 1, q, (size_t)n);
    }
    const int32_t one = step_z ? 0 : (int32_t)z[0];
    int32_t lo, hi;
    if (quantized(q, 1, one, y->dtype, y->data, at, n)) return;
    limits_of(y->dtype, &lo, &hi);
    for (int64_t i = 0; i < n; i++)
        sdx_store_i64(y->dtype, y->data, at + i, sdx_round_saturate(q[i], one, lo, hi));
}

static bool quantize_fast(const struct rows *p, const struct sdx_step *step, const struct row *row)
{
    const struct sdx_tensor *x = step->in[0], *zero = zero_of(step), *y = step->out[0];
    if (x->dtype != SDX_F32 || p->step || step->in[1]->dtype != SDX_F32 || p->dtype_mid != SDX_F32)
        return false;
    float scale = ((const float *)step->in[1]->data)[row->scale];
    int32_t z = zero ? (int32_t)sdx_load_i64(zero->dtype, zero->data, row->scale) : 0;
    return quantized((const float *)x->data + row->at, scale, z, y->dtype, y->data, row->at,
                     row->n);
}

/* A row at once where a kernel can; false: it cannot. Otherwise chunk by chunk. */
typedef bool row_fn(const struct rows *p, const struct sdx_step *step, const struct row *row);
typedef void chunk_fn(const struct rows *p, const struct sdx_step *step, int64_t at,
                      int64_t scale_at, int64_t n);

/* Rows of the same few scales and zero points, as many at once as a chunk holds. */
static bool run_short_rows(struct sdx_exec *x, const struct sdx_step *step, int64_t begin,
                           int64_t end, chunk_fn *chunk)
{
    const struct rows *p = step->params;
    const int64_t n = p->length, whole = n ? CHUNK / n * n : 0;
    const struct sdx_tensor *zero = zero_of(step);
    if (!p->step || p->group > 1 || p->scale_group || whole <= n) return false;
    float facts[2][CHUNK], buffer[CHUNK];
    struct sdx_tensor repeated[2], *in[] = {step->in[0], repeated, zero ? repeated + 1 : NULL};
    for (int i = 0; i < 1 + (zero != NULL); i++) {
        const float *of = as_f32(step->in[1 + i], 0, n, buffer);
        for (int64_t j = 0; j < whole; j += n)
            memcpy(facts[i] + j, of, (size_t)n * sizeof *of);
        repeated[i] = (struct sdx_tensor){.dtype = SDX_F32, .data = facts[i], .count = whole};
    }
    struct sdx_step own = *step;
    own.in = in;
    for (int64_t at = begin * n; at < end * n && !sdx_exec_cancelled(x); at += whole)
        chunk(p, &own, at, 0, end * n - at < whole ? end * n - at : whole);
    return true;
}
static enum sdx_status run_rows(struct sdx_exec *x, const struct sdx_step *step, int64_t part,
                                row_fn *fast, chunk_fn *chunk)
{
    const struct rows *p = step->params;
    int64_t begin = part * p->rows_a_part, end = begin + p->rows_a_part;
    if (run_short_rows(x, step, begin, end < p->count ? end : p->count, chunk)) return SDX_OK;
    for (int64_t r = begin; r < end && r < p->count && !sdx_exec_cancelled(x); r++) {
        struct row row = row_at(p, r);
        if (fast(p, step, &row)) continue;
        for (int64_t i = 0; i < row.n; i += CHUNK)
            chunk(p, step, row.at + i, row.scale + i * p->step,
                  row.n - i < CHUNK ? row.n - i : CHUNK);
    }
    return SDX_OK;
}

static enum sdx_status run_quantize(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    return run_rows(x, step, part, quantize_fast, quantize_chunk);
}

/* One scale for the whole tensor, f32 to bytes or back: element by element. */
static bool is_tiled(const struct sdx_prepare *px, int wide, int bytes)
{
    return px->in[1]->count == 1 && px->in[1]->dtype == SDX_F32 && wide == SDX_F32 &&
           (bytes == SDX_U8 || bytes == SDX_I8) && sdx_ir_attr_int(px->node, "block_size", 0) == 0;
}

static void scale_of(const struct sdx_step *step, const void *const *in, float *scale,
                     int32_t *zero)
{
    const struct sdx_tensor *z = zero_of(step);
    *scale = *(const float *)in[1];
    *zero = z ? (int32_t)sdx_load_i64(z->dtype, in[2], 0) : 0;
}

static void tile_quantize(const struct sdx_step *step, const void *const *in, void *out,
                          int64_t begin, int64_t end, void *scratch)
{
    (void)scratch;
    float scale;
    int32_t zero;
    scale_of(step, in, &scale, &zero);
    (void)quantized(in[0], scale, zero, step->out[0]->dtype, out, 0, end - begin);
}

enum sdx_status sdx_quantize_infer(struct sdx_infer *ix)
{
    int wanted = (int)sdx_ir_attr_int(ix->node, "output_dtype", 0);
    int dtype = wanted ? wanted : SDX_U8;
    if (!sdx_infer_has(ix, 0)) return SDX_OK;
    sdx_infer_copy(ix, 0, 0);
    if (sdx_infer_has(ix, 2)) {
        dtype = sdx_infer_dtype(ix, 2);
        if (wanted && dtype && wanted != dtype)
            return SDX_FAIL(ix->cx, SDX_BAD_MODEL,
                            "%.*s: output_dtype is %d, but the zero point's type is %d",
                            NAME(ix->node), wanted, dtype);
    } else if (!sdx_dtype_is_valid(dtype)) {
        return SDX_FAIL(ix->cx, SDX_NOT_SUPPORTED, "%.*s: output_dtype %d", NAME(ix->node), wanted);
    }
    sdx_infer_set_dtype(ix, 0, dtype);
    return SDX_OK;
}

/* Parts of whole rows. Several elements share a byte in the small types: those run in one part. */
static int64_t split_rows(struct rows *p, int64_t elements, int dtype_out)
{
    int64_t parts = bits_of(dtype_out) < 8 ? 1 : sdx_prepare_parts((double)elements, 1 << 14, 128);
    p->rows_a_part = (p->count + parts - 1) / parts;
    return p->rows_a_part ? (p->count + p->rows_a_part - 1) / p->rows_a_part : 1;
}

static bool is_half(int dtype)
{
    return dtype == SDX_F16 || dtype == SDX_BF16;
}

enum sdx_status sdx_quantize_prepare(struct sdx_prepare *px)
{
    struct rows *p = SDX_PREPARE_NEW(px, struct rows);
    const struct sdx_tensor *x = px->in[0], *y = px->out[0];
    if (!p) return SDX_FAIL_MEMORY(px->cx);
    SDX_TRY(read_rows(px, p));
    if (x->count == 0) return SDX_OK;
    bool is_integer = sdx_dtype_is_integer(y->dtype) && bits_of(y->dtype) <= 16;
    bool is_small = sdx_dtype_is_float(y->dtype) && bits_of(y->dtype) <= 8;
    if (!is_integer && !is_small)
        return SDX_FAIL(px->cx, SDX_NOT_SUPPORTED, "%.*s: output type %s", NAME(px->node),
                        sdx_dtype_short_name(y->dtype));
    int precision = (int)sdx_ir_attr_int(px->node, "precision", 0);
    if (is_half(precision))
        p->dtype_mid = precision;
    else if (!precision && is_half(x->dtype) && x->dtype == px->in[1]->dtype)
        p->dtype_mid = x->dtype;
    if (is_tiled(px, x->dtype, y->dtype) && p->dtype_mid == SDX_F32) {
        const struct sdx_tiles tiles = {
            .run = tile_quantize, .count = x->count, .weight = 2, .full = 1};
        return sdx_prepare_tiles(px, "quantize", &tiles, NULL, 0, px->count_in, px->in, px->out[0]);
    }
    int64_t parts = split_rows(p, x->count, y->dtype);
    return sdx_prepare_step(px, "quantize", run_quantize, p, parts, 0);
}

/* ---- DequantizeLinear ---- */

static void dequantize_chunk(const struct rows *p, const struct sdx_step *step, int64_t at,
                             int64_t scale_at, int64_t n)
{
    float x_buffer[CHUNK], scales[CHUNK], zeros[CHUNK], y_buffer[CHUNK];
    const struct sdx_tensor *zero = zero_of(step), *out = step->out[0];
    const float *x = as_f32(step->in[0], at, n, x_buffer);
    int64_t count = p->step ? n : 1;
    const float *s = as_f32(step->in[1], scale_at, count, scales);
    float *y = out->dtype == SDX_F32 ? (float *)out->data + at : y_buffer;
    if (zero) {
        const float *z = as_f32(zero, scale_at, count, zeros);
        sdx_vec()->f32_sub(x, 1, z, (size_t)p->step, y, (size_t)n);
        x = y;
    }
    sdx_vec()->f32_mul(x, 1, s, (size_t)p->step, y, (size_t)n);
    if (out->dtype != SDX_F32) sdx_convert(out->dtype, out->data, at, SDX_F32, y, 0, n, true);
}

static bool dequantize_fast(const struct rows *p, const struct sdx_step *step,
                            const struct row *row)
{
    const struct sdx_tensor *x = step->in[0], *zero = zero_of(step), *y = step->out[0];
    if (y->dtype != SDX_F32 || p->step || step->in[1]->dtype != SDX_F32) return false;
    float scale = ((const float *)step->in[1]->data)[row->scale];
    int32_t z = zero ? (int32_t)sdx_load_i64(zero->dtype, zero->data, row->scale) : 0;
    return scaled(x->dtype, x->data, row->at, row->n, scale, z, (float *)y->data + row->at);
}

static enum sdx_status run_dequantize(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    return run_rows(x, step, part, dequantize_fast, dequantize_chunk);
}

static void tile_dequantize(const struct sdx_step *step, const void *const *in, void *out,
                            int64_t begin, int64_t end, void *scratch)
{
    (void)scratch;
    float scale;
    int32_t zero;
    scale_of(step, in, &scale, &zero);
    (void)scaled(step->in[0]->dtype, in[0], 0, end - begin, scale, zero, out);
}

enum sdx_status sdx_dequantize_infer(struct sdx_infer *ix)
{
    int wanted = (int)sdx_ir_attr_int(ix->node, "output_dtype", 0);
    if (!sdx_infer_has(ix, 0)) return SDX_OK;
    sdx_infer_copy(ix, 0, 0);
    if (wanted && wanted != SDX_F32 && !is_half(wanted))
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "%.*s: output_dtype is %d, expected a float type",
                        NAME(ix->node), wanted);
    int dtype = wanted ? wanted : sdx_infer_dtype(ix, 1);
    sdx_infer_set_dtype(ix, 0, dtype);
    return SDX_OK;
}

enum sdx_status sdx_dequantize_prepare(struct sdx_prepare *px)
{
    struct rows *p = SDX_PREPARE_NEW(px, struct rows);
    if (!p) return SDX_FAIL_MEMORY(px->cx);
    SDX_TRY(read_rows(px, p));
    if (px->in[0]->count == 0) return SDX_OK;
    if (is_tiled(px, px->out[0]->dtype, px->in[0]->dtype)) {
        const struct sdx_tiles tiles = {
            .run = tile_dequantize, .count = px->in[0]->count, .weight = 2, .full = 1};
        return sdx_prepare_tiles(px, "dequantize", &tiles, NULL, 0, px->count_in, px->in,
                                 px->out[0]);
    }
    int64_t parts = split_rows(p, px->in[0]->count, px->out[0]->dtype);
    return sdx_prepare_step(px, "dequantize", run_dequantize, p, parts, 0);
}

/* ---- DynamicQuantizeLinear ---- */

static enum sdx_status infer_dynamic(struct sdx_infer *ix)
{
    if (sdx_infer_has(ix, 0)) sdx_infer_copy(ix, 0, 0);
    for (int k = 0; k < ix->count_out; k++) {
        sdx_infer_set_dtype(ix, k, k == 1 ? SDX_F32 : SDX_U8);
        if (k > 0) SDX_TRY(sdx_infer_set_dims(ix, k, 0, NULL));
    }
    return SDX_OK;
}

static enum sdx_status prepare_dynamic(struct sdx_prepare *px)
{
    struct sdx_tensor *out[3] = {NULL, NULL, NULL};
    for (int k = 0; k < 3; k++) {
        int dtype = k == 1 ? SDX_F32 : SDX_U8;
        if (k < px->count_out) out[k] = px->out[k];
        if (!out[k]) out[k] = sdx_prepare_temp(px, dtype, k ? 0 : px->in[0]->rank, px->in[0]->dims);
        if (!out[k]) return SDX_FAIL_MEMORY(px->cx);
    }
    return sdx_dynamic_quantize(px, px->in[0], out[0], out[1], out[2]);
}

/* ---- MatMulInteger, QLinearMatMul ---- */

static enum sdx_status infer_matmul_integer(struct sdx_infer *ix)
{
    SDX_TRY(sdx_matmul_infer(ix));
    sdx_infer_set_dtype(ix, 0, SDX_I32);
    return SDX_OK;
}

static struct sdx_tensor *input(struct sdx_prepare *px, int i)
{
    return sdx_prepare_has(px, i) ? px->in[i] : NULL;
}

static enum sdx_status prepare_matmul_integer(struct sdx_prepare *px)
{
    struct sdx_qproduct p = {.a = px->in[0], .b = px->in[1], .c = px->out[0], .input_b = 1};
    p.facts.zero_a = input(px, 2);
    p.facts.zero_b = input(px, 3);
    p.to = SDX_QPRODUCT_SUMS;
    SDX_TRY(sdx_qproduct_matmul(px, &p));
    return sdx_qproduct_prepare(px, &p);
}

/* QLinearMatMul's operands as those of MatMul. */
static enum sdx_status infer_qlinear_matmul(struct sdx_infer *ix)
{
    const struct sdx_type *in[2] = {NULL, NULL};
    if (ix->count_in > 3) {
        in[0] = ix->in[0];
        in[1] = ix->in[3];
    }
    struct sdx_infer plain = *ix;
    plain.in = in;
    plain.count_in = 2;
    SDX_TRY(sdx_matmul_infer(&plain));
    sdx_infer_set_dtype(ix, 0, sdx_infer_dtype(ix, 7));
    return SDX_OK;
}

static void cost_qlinear_matmul(const struct sdx_infer *ix, struct sdx_cost *cost)
{
    const struct sdx_type *in[2] = {ix->in[0], ix->in[3]};
    struct sdx_infer plain = *ix;
    plain.in = in;
    plain.count_in = 2;
    sdx_matmul_cost(&plain, cost);
}

struct float8 {
    int64_t m, n, k, batch;
    const int64_t *at_a, *at_b;
};

/* Float8 operands: a plain sum of products in f32, for there is no kernel of these types. */
static enum sdx_status run_float8(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct float8 *p = step->params;
    const struct sdx_tensor *a = step->in[0], *b = step->in[3], *y = step->out[0];
    double scale[3], zero[3];
    for (int i = 0; i < 3; i++) {
        const struct sdx_tensor *s = step->in[i == 2 ? 6 : 1 + 3 * i];
        const struct sdx_tensor *z = step->in[i == 2 ? 7 : 2 + 3 * i];
        scale[i] = sdx_load_f64(s->dtype, s->data, 0);
        zero[i] = sdx_load_f64(z->dtype, z->data, 0);
    }
    float factor = (float)scale[0] * (float)scale[1] / (float)scale[2];
    int64_t i = part / p->m, row = part % p->m;
    int64_t at_a = (p->at_a ? p->at_a[i] : i * p->m * p->k) + row * p->k;
    int64_t at_b = p->at_b ? p->at_b[i] : 0;
    for (int64_t j = 0; j < p->n && !sdx_exec_cancelled(x); j++) {
        float sum = 0;
        for (int64_t k = 0; k < p->k; k++)
            sum += (float)((sdx_load_f64(a->dtype, a->data, at_a + k) - zero[0]) *
                           (sdx_load_f64(b->dtype, b->data, at_b + k * p->n + j) - zero[1]));
        float q = sum * factor + (float)zero[2];
        sdx_convert(y->dtype, y->data, (i * p->m + row) * p->n + j, SDX_F32, &q, 0, 1, true);
    }
    return SDX_OK;
}

static enum sdx_status prepare_float8(struct sdx_prepare *px, const struct sdx_qproduct *q)
{
    struct float8 *p = SDX_PREPARE_NEW(px, struct float8);
    static const int facts[] = {1, 2, 4, 5, 6, 7};
    if (!p) return SDX_FAIL_MEMORY(px->cx);
    for (int i = 0; i < SDX_COUNT_OF(facts); i++)
        if (px->in[facts[i]]->count != 1)
            return SDX_FAIL(px->cx, SDX_NOT_SUPPORTED,
                            "QLinearMatMul: scales of rows or columns with float8 operands");
    *p = (struct float8){
        .m = q->m, .n = q->n, .k = q->k, .batch = q->batch, .at_a = q->at_a, .at_b = q->at_b};
    if (px->out[0]->count == 0) return SDX_OK;
    return sdx_prepare_step(px, "gemm_float8", run_float8, p, p->batch * p->m, 0);
}

static bool is_byte(const struct sdx_tensor *t)
{
    return t->dtype == SDX_U8 || t->dtype == SDX_I8;
}

static enum sdx_status prepare_qlinear_matmul(struct sdx_prepare *px)
{
    struct sdx_qproduct p = {.a = px->in[0], .b = px->in[3], .c = px->out[0], .input_b = 3};
    p.facts.scale_a = px->in[1];
    p.facts.zero_a = px->in[2];
    p.facts.scale_b = px->in[4];
    p.facts.zero_b = px->in[5];
    p.facts.scale_y = px->in[6];
    p.facts.zero_y = px->in[7];
    p.to = SDX_QPRODUCT_REQUANT;
    p.bias = input(px, 8); /* of the pass qdq: i32, one a column */
    SDX_TRY(sdx_qproduct_matmul(px, &p));
    if (p.bias && p.bias->count != p.n)
        return SDX_FAIL(px->cx, SDX_BAD_MODEL, "QLinearMatMul: bias has %lld values, expected %lld",
                        (long long)p.bias->count, (long long)p.n);
    if (is_byte(p.a) && is_byte(p.b) && is_byte(p.c)) return sdx_qproduct_prepare(px, &p);
    return prepare_float8(px, &p);
}

static const struct sdx_op ops[] = {
    {"QuantizeLinear", 10, 0, sdx_quantize_infer, KERNEL(sdx_quantize_prepare),
     .note = "no 6-bit floats"},
    {"DequantizeLinear", 10, 0, sdx_dequantize_infer, KERNEL(sdx_dequantize_prepare),
     .note = "no 6-bit floats"},
    {"DynamicQuantizeLinear", 11, 0, infer_dynamic, KERNEL(prepare_dynamic)},
    {"MatMulInteger", 10, 0, infer_matmul_integer, KERNEL(prepare_matmul_integer),
     .cost = sdx_matmul_cost},
    {"QLinearMatMul", 10, 0, infer_qlinear_matmul, KERNEL(prepare_qlinear_matmul),
     .cost = cost_qlinear_matmul},
};

const struct sdx_op_family sdx_ops_quant = FAMILY("", ops);
