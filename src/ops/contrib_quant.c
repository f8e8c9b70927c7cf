/* SPDX-License-Identifier: Apache-2.0
 * Quantised operators of com.microsoft, as ONNX Runtime's quantiser writes them. */
#include "ops/contrib_quant.h"

#include "kernels/gemm.h"
#include "ops/contrib_lower.h"
#include "ops/product.h"
#include "ops/qproduct.h"
#include "ops/shared.h"
#include "ops/window.h"
#include "tensor/convert.h"

#define NAME(node) SDX_STR_ARG((node)->op_type)

static struct sdx_tensor *input(struct sdx_prepare *px, int i)
{
    return sdx_prepare_has(px, i) ? px->in[i] : NULL;
}

/* ---- QGemm ---- */

enum sdx_status sdx_qgemm_infer(struct sdx_infer *ix)
{
    const int64_t *a = sdx_infer_dims(ix, 0), *b = sdx_infer_dims(ix, 3);
    int trans_a = sdx_ir_attr_int(ix->node, "transA", 0) != 0;
    int trans_b = sdx_ir_attr_int(ix->node, "transB", 0) != 0;
    int64_t out[2] = {-1, -1}, k;
    sdx_infer_set_dtype(ix, 0, sdx_infer_has(ix, 8) ? sdx_infer_dtype(ix, 8) : SDX_F32);
    if ((a && sdx_infer_rank(ix, 0) != 2) || (b && sdx_infer_rank(ix, 3) != 2))
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "QGemm: operands must have rank 2");
    if (a && b) SDX_TRY(sdx_infer_merge_dim(ix, a[1 - trans_a], b[trans_b], "inner length", &k));
    if (a) out[0] = a[trans_a];
    if (b) out[1] = b[1 - trans_b];
    return sdx_infer_set_dims(ix, 0, 2, out);
}

/* Sums with C are scaled to floats: C is in units of scale_a * scale_b. */
static enum sdx_status run_scale_c(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)x;
    (void)part;
    const struct sdx_tensor *c = step->in[0], *a = step->in[1], *b = step->in[2];
    float alpha = *(const float *)step->params, *y = step->out[0]->data;
    for (int64_t j = 0; j < step->out[0]->count; j++)
        y[j] = (float)sdx_load_i64(c->dtype, c->data, c->count == 1 ? 0 : j) * alpha *
               (float)sdx_load_f64(a->dtype, a->data, 0) *
               (float)sdx_load_f64(b->dtype, b->data, b->count == 1 ? 0 : j);
    return SDX_OK;
}

/* C that is not one row is added to sums that are kept whole: [m, n] with strides of 0. */
struct whole {
    int64_t m, n, row_c, col_c;
    float alpha;
};

static enum sdx_status run_whole(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct whole *p = step->params;
    const struct sdx_tensor *sums = step->in[0], *c = step->in[1], *a = step->in[2],
                            *b = step->in[3], *scale = step->in[4], *zero = step->in[5],
                            *y = step->out[0];
    const float scale_a = p->alpha * ((const float *)a->data)[0];
    const float over = scale ? ((const float *)scale->data)[0] : 1.0f;
    const int32_t least = y->dtype == SDX_I8 ? -128 : 0;
    const int32_t add = zero ? (int32_t)sdx_load_i64(zero->dtype, zero->data, 0) : 0;
    (void)x;
    (void)part;
    for (int64_t at = 0; at < p->m * p->n; at++) {
        const int64_t i = at / p->n, j = at % p->n;
        const int32_t sum = ((const int32_t *)sums->data)[at] +
                            ((const int32_t *)c->data)[i * p->row_c + j * p->col_c];
        const float v =
            (float)sum * (scale_a * ((const float *)b->data)[b->count == 1 ? 0 : j] / over);
        if (y->dtype == SDX_F32)
            ((float *)y->data)[at] = v;
        else
            ((uint8_t *)y->data)[at] = (uint8_t)sdx_round_saturate(v, add, least, least + 255);
    }
    return SDX_OK;
}

static enum sdx_status whole_bias(struct sdx_prepare *px, struct sdx_qproduct *p)
{
    struct whole *w = SDX_PREPARE_NEW(px, struct whole);
    const int64_t dims[] = {p->m, p->n};
    struct sdx_tensor *sums = sdx_prepare_temp(px, SDX_I32, 2, dims), *c = p->bias, *y = p->c;
    if (!w || !sums) return SDX_FAIL_MEMORY(px->cx);
    const int64_t rows = c->rank > 1 ? c->dims[c->rank - 2] : 1;
    const int64_t columns = c->rank > 0 ? c->dims[c->rank - 1] : 1;
    if (c->rank > 2 || (rows != 1 && rows != p->m) || (columns != 1 && columns != p->n))
        return SDX_FAIL(px->cx, SDX_BAD_MODEL, "QGemm: C of shape [%lld,%lld] for [%lld,%lld]",
                        (long long)rows, (long long)columns, (long long)p->m, (long long)p->n);
    *w = (struct whole){p->m, p->n, rows > 1 ? columns : 0, columns > 1, (float)p->alpha};
    struct sdx_tensor *in[] = {
        sums, c, p->facts.scale_a, p->facts.scale_b, p->facts.scale_y, p->facts.zero_y};
    p->c = sums;
    p->bias = NULL;
    p->to = SDX_QPRODUCT_SUMS;
    SDX_TRY(sdx_qproduct_prepare(px, p));
    return sdx_prepare_step_on(px, "qgemm_whole", run_whole, w, 1, 0, 6, in, 1, &y);
}

static enum sdx_status float_bias(struct sdx_prepare *px, struct sdx_qproduct *p)
{
    float *alpha = SDX_PREPARE_NEW(px, float);
    struct sdx_tensor *in[] = {p->bias, p->facts.scale_a, p->facts.scale_b};
    struct sdx_tensor *bias = sdx_prepare_temp(px, SDX_F32, 1, &p->n);
    if (!alpha || !bias) return SDX_FAIL_MEMORY(px->cx);
    *alpha = (float)p->alpha;
    p->bias = bias;
    return sdx_prepare_step_on(px, "qgemm_bias", run_scale_c, alpha, 1, 0, 3, in, 1, &bias);
}

enum sdx_status sdx_qgemm_prepare(struct sdx_prepare *px)
{
    struct sdx_tensor *a = px->in[0], *b = px->in[3], *y = px->out[0];
    bool trans_a = sdx_ir_attr_int(px->node, "transA", 0) != 0;
    bool trans_b = sdx_ir_attr_int(px->node, "transB", 0) != 0;
    struct sdx_qproduct p = {.a = a, .b = b, .c = y, .input_b = 3, .batch = 1};
    p.m = y->dims[0];
    p.n = y->dims[1];
    p.k = a->dims[trans_a ? 0 : 1];
    p.row_a = trans_a ? 1 : p.k;
    p.col_a = trans_a ? p.m : 1;
    p.row_b = trans_b ? 1 : p.n;
    p.col_b = trans_b ? p.k : 1;
    p.alpha = sdx_ir_attr_float(px->node, "alpha", 1);
    p.facts = (struct sdx_qsource){.scale_a = px->in[1],
                                   .zero_a = px->in[2],
                                   .scale_b = px->in[4],
                                   .zero_b = px->in[5],
                                   .scale_y = input(px, 7),
                                   .zero_y = input(px, 8),
                                   .rows = 1};
    p.bias = input(px, 6);
    if (y->count == 0) return SDX_OK;
    if (p.bias && p.bias->count == 0) p.bias = NULL;
    if (p.bias &&
        (p.bias->count != p.n || (p.bias->rank > 0 && p.bias->dims[p.bias->rank - 1] != p.n)))
        return whole_bias(px, &p);
    p.to = y->dtype == SDX_F32 ? SDX_QPRODUCT_FLOAT : SDX_QPRODUCT_REQUANT;
    if (p.to == SDX_QPRODUCT_FLOAT && p.bias) SDX_TRY(float_bias(px, &p));
    return sdx_qproduct_prepare(px, &p);
}

/* ---- integer MatMul with float results ---- */

enum sdx_status sdx_float_matmul_infer(struct sdx_infer *ix)
{
    SDX_TRY(sdx_matmul_infer(ix));
    sdx_infer_set_dtype(ix, 0, SDX_F32);
    return SDX_OK;
}

static enum sdx_status check_bias(struct sdx_prepare *px, const struct sdx_qproduct *p)
{
    if (!p->bias || (p->bias->count == p->n && p->bias->dtype == SDX_F32)) return SDX_OK;
    return SDX_FAIL(px->cx, SDX_BAD_MODEL, "%.*s: bias has %lld values, expected %lld",
                    NAME(px->node), (long long)p->bias->count, (long long)p->n);
}

enum sdx_status sdx_dynamic_matmul_prepare(struct sdx_prepare *px)
{
    const struct sdx_tensor *a = px->in[0];
    struct sdx_tensor *q = sdx_prepare_temp(px, SDX_U8, a->rank, a->dims);
    struct sdx_tensor *scale = sdx_prepare_temp(px, SDX_F32, 0, NULL);
    struct sdx_tensor *zero = sdx_prepare_temp(px, SDX_U8, 0, NULL);
    if (!q || !scale || !zero) return SDX_FAIL_MEMORY(px->cx);
    struct sdx_qproduct p = {.a = q, .b = px->in[1], .c = px->out[0], .input_b = 1};
    p.facts = (struct sdx_qsource){
        .scale_a = scale, .zero_a = zero, .scale_b = px->in[2], .zero_b = input(px, 3)};
    p.to = SDX_QPRODUCT_FLOAT;
    p.bias = input(px, 4);
    if (px->out[0]->count == 0) return SDX_OK;
    SDX_TRY(sdx_dynamic_quantize(px, px->in[0], q, scale, zero));
    SDX_TRY(sdx_qproduct_matmul(px, &p));
    SDX_TRY(check_bias(px, &p));
    return sdx_qproduct_prepare(px, &p);
}

enum sdx_status sdx_integer_matmul_prepare(struct sdx_prepare *px)
{
    struct sdx_qproduct p = {.a = px->in[0], .b = px->in[1], .c = px->out[0], .input_b = 1};
    p.facts = (struct sdx_qsource){
        .scale_a = px->in[2], .zero_a = input(px, 4), .scale_b = px->in[3], .zero_b = input(px, 5)};
    p.to = SDX_QPRODUCT_FLOAT;
    p.bias = input(px, 6);
    if (px->out[0]->count == 0) return SDX_OK;
    SDX_TRY(sdx_qproduct_matmul(px, &p));
    SDX_TRY(check_bias(px, &p));
    return sdx_qproduct_prepare(px, &p);
}

/* ---- lowerings ---- */

/* Inputs x, scale, zero point (may be left out) from index `at` on, as f32. */
static int32_t dequantize(struct sdx_lower *lx, int at)
{
    const int32_t in[] = {sdx_lower_input(lx, at), sdx_lower_input(lx, at + 1),
                          sdx_lower_input(lx, at + 2)};
    return sdx_lower_op(lx, "DequantizeLinear", in[2] < 0 ? 2 : 3, in);
}

/* Output 0 is `value` quantised by inputs `scale` and scale + 1; x: an input of the output's type.
 */
static enum sdx_status quantize(struct sdx_lower *lx, int32_t value, int scale, int x)
{
    int32_t zero = sdx_lower_input(lx, scale + 1);
    if (zero < 0) zero = sdx_lower_scalar_like(lx, x, 0);
    const int32_t in[] = {value, sdx_lower_input(lx, scale), zero};
    sdx_lower_output(lx, 0, sdx_lower_op(lx, "QuantizeLinear", 3, in));
    return lx->status;
}

enum sdx_status sdx_qlinear_sigmoid_lower(struct sdx_lower *lx)
{
    int32_t x = dequantize(lx, 0);
    return quantize(lx, sdx_lower_op(lx, "Sigmoid", 1, &x), 3, 0);
}

enum sdx_status sdx_qlinear_leaky_relu_lower(struct sdx_lower *lx)
{
    float alpha = sdx_ir_attr_float(sdx_lower_node(lx), "alpha", 0.01f);
    int32_t x = dequantize(lx, 0), y = sdx_lower_op(lx, "LeakyRelu", 1, &x);
    sdx_lower_attr_float(lx, "alpha", alpha);
    return quantize(lx, y, 3, 0);
}

enum sdx_status sdx_qlinear_softmax_lower(struct sdx_lower *lx)
{
    /* Before version 13 Softmax went over all axes from `axis` on. */
    const bool is_old = sdx_ir_attr_int(sdx_lower_node(lx), "opset", 13) < 13;
    int64_t axis = sdx_ir_attr_int(sdx_lower_node(lx), "axis", is_old ? 1 : -1);
    lx->opset = is_old ? 11 : 13;
    int32_t x = dequantize(lx, 0), y = sdx_lower_op(lx, "Softmax", 1, &x);
    sdx_lower_attr_int(lx, "axis", axis);
    return quantize(lx, y, 3, 0);
}

enum sdx_status sdx_qlinear_average_pool_infer(struct sdx_infer *ix)
{
    if (sdx_contrib_is_last(ix->node)) return sdx_contrib_infer_last(ix, "", "AveragePool", 11, 1);
    return sdx_pool_infer(ix);
}

/* auto_pad becomes pads: it needs the lengths when it is SAME. */
enum sdx_status sdx_qlinear_average_pool_lower(struct sdx_lower *lx)
{
    struct sdx_window w;
    const struct sdx_type *type = sdx_lower_type(lx, 0);
    int64_t pads[2 * SDX_RANK_MAX], unused;
    if (sdx_contrib_is_last(sdx_lower_node(lx)))
        return sdx_contrib_lower_last(lx, true, "QLinearAveragePool", 1);
    if (!type->has_shape)
        return SDX_FAIL(lx->cx, SDX_NOT_SUPPORTED, "QLinearAveragePool: input of unknown rank");
    SDX_TRY(sdx_window_read(lx->cx, sdx_lower_node(lx), type->rank - 2, NULL, &w));
    for (int i = 0; i < w.rank; i++) {
        bool is_same = w.auto_pad == SDX_PAD_SAME_UPPER || w.auto_pad == SDX_PAD_SAME_LOWER;
        if (is_same && type->dims[i + 2] < 0)
            return SDX_FAIL(lx->cx, SDX_NOT_SUPPORTED,
                            "QLinearAveragePool: auto_pad with unknown lengths");
        SDX_TRY(sdx_window_length(lx->cx, sdx_lower_node(lx), &w, i, type->dims[i + 2], &unused));
        pads[i] = w.pad_begin[i];
        pads[w.rank + i] = w.pad_end[i];
    }
    int64_t include = sdx_ir_attr_int(sdx_lower_node(lx), "count_include_pad", 0);
    int32_t x = dequantize(lx, 0), y = sdx_lower_op(lx, "AveragePool", 1, &x);
    sdx_lower_attr_ints(lx, "kernel_shape", w.rank, w.kernel);
    sdx_lower_attr_ints(lx, "strides", w.rank, w.stride);
    sdx_lower_attr_ints(lx, "pads", 2 * (int64_t)w.rank, pads);
    sdx_lower_attr_int(lx, "count_include_pad", include);
    sdx_lower_attr_int(lx, "ceil_mode", w.ceil_mode);
    return quantize(lx, y, 3, 0);
}

enum sdx_status sdx_qlinear_reduce_mean_infer(struct sdx_infer *ix)
{
    return sdx_contrib_infer_as(ix, "", "ReduceMean", 13);
}

enum sdx_status sdx_qlinear_reduce_mean_lower(struct sdx_lower *lx)
{
    lx->opset = 13;
    int32_t x = dequantize(lx, 0), y = sdx_lower_op(lx, "ReduceMean", 1, &x);
    sdx_lower_attrs(lx, NULL);
    return quantize(lx, y, 3, 0);
}

enum sdx_status sdx_qlinear_where_infer(struct sdx_infer *ix)
{
    struct sdx_infer sub = *ix;
    const struct sdx_type *in[] = {ix->in[0], ix->in[1], ix->in[4]};
    sub.in = in;
    sub.count_in = 3;
    SDX_TRY(sdx_infer_broadcast(&sub, 0, 0, 3));
    sdx_infer_set_dtype(ix, 0, sdx_infer_dtype(ix, 1));
    return SDX_OK;
}

enum sdx_status sdx_qlinear_where_lower(struct sdx_lower *lx)
{
    lx->opset = 13;
    const int32_t in[] = {sdx_lower_input(lx, 0), dequantize(lx, 1), dequantize(lx, 4)};
    return quantize(lx, sdx_lower_op(lx, "Where", 3, in), 7, 1);
}

/* ---- QEmbedLayerNormalization ---- */

enum { QEMBED_IDS, QEMBED_TYPES, QEMBED_TABLES, QEMBED_MASK = 7, QEMBED_SCALES, QEMBED_ZEROS = 13 };

enum sdx_status sdx_qembed_infer(struct sdx_infer *ix)
{
    const int64_t *ids = sdx_infer_dims(ix, QEMBED_IDS);
    const int64_t *words = sdx_infer_dims(ix, QEMBED_TABLES);
    if ((ids && sdx_infer_rank(ix, QEMBED_IDS) != 2) ||
        (words && sdx_infer_rank(ix, QEMBED_TABLES) != 2))
        return SDX_FAIL(
            ix->cx, SDX_BAD_MODEL,
            "QEmbedLayerNormalization: input_ids and word_embedding_quant must have rank 2");
    const int64_t out[] = {ids ? ids[0] : -1, ids ? ids[1] : -1, words ? words[1] : -1};
    for (int k = 0; k < ix->count_out; k++) {
        sdx_infer_set_dtype(ix, k, k ? SDX_I32 : SDX_F32);
        SDX_TRY(sdx_infer_set_dims(ix, k, k ? 1 : 3, out));
    }
    return SDX_OK;
}

/* Table k (words, positions, segments, gamma, beta), or `rows` of it, as floats. */
static int32_t qembed_table(struct sdx_lower *lx, int k, int32_t rows)
{
    const int32_t in[] = {rows, sdx_lower_input(lx, QEMBED_SCALES + k),
                          sdx_lower_input(lx, QEMBED_ZEROS + k)};
    return sdx_lower_op(lx, "DequantizeLinear", 3, in);
}

/* Rows are looked up before they are dequantised. */
enum sdx_status sdx_qembed_lower(struct sdx_lower *lx)
{
    const int64_t one = 1, zero = 0;
    const int32_t *in = sdx_lower_node(lx)->inputs, count = sdx_lower_node(lx)->count_inputs;
    float epsilon = sdx_ir_attr_float(sdx_lower_node(lx), "epsilon", 1e-12f);
    if (count < 18)
        return SDX_FAIL(lx->cx, SDX_BAD_MODEL, "QEmbedLayerNormalization: %d inputs, expected 18",
                        count);
    const int32_t ids = in[QEMBED_IDS], types = in[QEMBED_TYPES], mask = in[QEMBED_MASK];
    const int32_t words = in[QEMBED_TABLES], places = in[QEMBED_TABLES + 1];
    const int32_t segments = in[QEMBED_TABLES + 2], gamma = in[5], beta = in[6];
    lx->opset = 17;
    int32_t shape = sdx_lower_unary(lx, "Shape", ids);
    const int32_t cut[] = {places, sdx_lower_ints(lx, 1, &zero),
                           sdx_lower_binary(lx, "Gather", shape, sdx_lower_ints(lx, 1, &one)),
                           sdx_lower_ints(lx, 1, &zero)};
    int32_t sum =
        sdx_lower_binary(lx, "Add", qembed_table(lx, 0, sdx_lower_binary(lx, "Gather", words, ids)),
                         qembed_table(lx, 1, sdx_lower_op(lx, "Slice", 4, cut)));
    if (types >= 0 && segments >= 0)
        sum = sdx_lower_binary(
            lx, "Add", sum, qembed_table(lx, 2, sdx_lower_binary(lx, "Gather", segments, types)));
    const int32_t norm[] = {sum, qembed_table(lx, 3, gamma), qembed_table(lx, 4, beta)};
    sdx_lower_output(lx, 0, sdx_lower_op(lx, "LayerNormalization", 3, norm));
    sdx_lower_attr_float(lx, "epsilon", epsilon);
    if (sdx_lower_node(lx)->count_outputs < 2) return lx->status;
    /* The number of ones of the mask; without one: zeros. */
    int32_t ones = mask < 0 ? ids : mask;
    ones = sdx_lower_unary(lx, "Cast",
                           sdx_lower_binary(lx, "Equal", ones, sdx_lower_scalar(lx, SDX_I32, 1)));
    sdx_lower_attr_int(lx, "to", SDX_I32);
    if (mask < 0) ones = sdx_lower_binary(lx, "Sub", ones, ones);
    ones = sdx_lower_binary(lx, "ReduceSum", ones, sdx_lower_ints(lx, 1, &one));
    sdx_lower_attr_int(lx, "keepdims", 0);
    sdx_lower_output(lx, 1, ones);
    return lx->status;
}

enum sdx_status sdx_qlinear_concat_lower(struct sdx_lower *lx)
{
    int count = (sdx_lower_node(lx)->count_inputs - 2) / 3;
    int64_t axis = sdx_ir_attr_int(sdx_lower_node(lx), "axis", 1);
    int32_t *parts = sdx_arena_array(lx->ir->arena, (size_t)(count > 0 ? count : 1), sizeof *parts);
    if (!parts) return SDX_FAIL_MEMORY(lx->cx);
    for (int i = 0; i < count; i++)
        parts[i] = dequantize(lx, 2 + 3 * i);
    int32_t y = sdx_lower_op(lx, "Concat", count, parts);
    sdx_lower_attr_int(lx, "axis", axis);
    return quantize(lx, y, 0, 2);
}

enum sdx_status sdx_qlinear_concat_infer(struct sdx_infer *ix)
{
    int rank = sdx_infer_rank(ix, 2), axis;
    sdx_infer_set_dtype(ix, 0, sdx_infer_dtype(ix, 1));
    if (ix->count_in < 5 || (ix->count_in - 2) % 3)
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL,
                        "QLinearConcat: %d inputs, expected 2 and three for each part",
                        ix->count_in);
    for (int i = 2; i < ix->count_in; i += 3)
        if (sdx_infer_rank(ix, i) != rank || rank < 0) return SDX_OK;
    SDX_TRY(sdx_infer_axis(ix, sdx_ir_attr_int(ix->node, "axis", 1), rank, &axis));
    int64_t *out = sdx_infer_new_dims(ix, 0, rank);
    if (!out) return SDX_FAIL_MEMORY(ix->cx);
    memcpy(out, sdx_infer_dims(ix, 2), (size_t)rank * sizeof *out);
    for (int i = 5; i < ix->count_in; i += 3) {
        const int64_t *dims = sdx_infer_dims(ix, i);
        for (int d = 0; d < rank; d++) {
            if (d != axis)
                SDX_TRY(sdx_infer_merge_dim(ix, out[d], dims[d], "length of a part", &out[d]));
            else
                out[d] = out[d] >= 0 && dims[d] >= 0 ? out[d] + dims[d] : -1;
        }
    }
    return SDX_OK;
}
