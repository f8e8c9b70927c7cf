/* SPDX-License-Identifier: Apache-2.0
 * Operators between DequantizeLinear and QuantizeLinear as integer operators. The bias of a product
 * becomes 32-bit integers in units of the operands' scales, rounded to even, as ONNX Runtime has
 * it. Products get inputs and attributes that files cannot have: QLinearConv without a scale of the
 * output gives floats, QLinearMatMul has a bias (input 8), "clamp" bounds the bytes of the result.
 */
#include <math.h>

#include "passes/qdq.h"
#include "tensor/convert.h"

enum { ATTRS_MAX = 16 };

/* ---- operands ---- */

struct weights {
    int32_t w, scale, zero; /* zero -1: left out */
    int dtype;
    const struct sdx_tensor *scales;
};

/* `value` is bytes dequantised by one scale, or by one for each index along `axis` (-1: the last).
 */
static bool weights_of(const struct sdx_qdq *r, int32_t value, int axis, struct weights *q)
{
    const struct sdx_ir_node *node = sdx_qdq_maker(r, value, "DequantizeLinear");
    if (!node || node->inputs[0] < 0 || sdx_ir_attr_int(node, "block_size", 0)) return false;
    *q = (struct weights){.w = node->inputs[0], .scale = node->inputs[1], .zero = -1};
    if (node->count_inputs > 2) q->zero = node->inputs[2];
    const struct sdx_type *type = &r->g->values[q->w].type;
    q->dtype = type->dtype;
    q->scales = sdx_match_constant(r->g, q->scale);
    if ((q->dtype != SDX_U8 && q->dtype != SDX_I8) || !q->scales || q->scales->dtype != SDX_F32 ||
        r->g->values[value].type.dtype != SDX_F32 || !type->has_shape)
        return false;
    if (q->zero >= 0) {
        const struct sdx_tensor *zeros = sdx_match_constant(r->g, q->zero);
        if (!zeros || zeros->count != q->scales->count) return false;
    }
    if (q->scales->count == 1) return true;
    int64_t own = sdx_ir_attr_int(node, "axis", 1);
    if (own < 0) own += type->rank;
    if (axis < 0) axis += type->rank;
    return q->scales->rank == 1 && own == axis && axis < type->rank &&
           type->dims[axis] == q->scales->count;
}

static double scale_at(const struct sdx_tensor *t, int64_t i)
{
    return sdx_load_f64(t->dtype, t->data, t->count == 1 ? 0 : i);
}

/* Products of a sum, of weights with their results along `axis`; as many as may be where a size is
 * not known. */
static int64_t terms_of(const struct sdx_type *w, int axis)
{
    int64_t terms = 1;
    for (int i = 0; i < w->rank; i++)
        if (i != axis && (w->dims[i] < 0 || !sdx_mul_i64(terms, w->dims[i], &terms)))
            return INT64_MAX;
    return terms;
}
/* The bias as n integers in units of the operands' scales, so that sums of `terms` products with it
 * fit 32 bits. *bias -1: there is none. false: it cannot be had. */
static enum sdx_status integer_bias(struct sdx_qdq *r, int32_t value, float scale_x,
                                    const struct sdx_tensor *scales_w, int64_t n, int64_t terms,
                                    int32_t *bias, bool *ok)
{
    const double most = fmax(1 << 30, (double)INT32_MAX - 255.0 * 255.0 * (double)terms);
    *bias = -1;
    *ok = value < 0;
    if (value < 0) return SDX_OK;
    const struct sdx_ir_node *node = sdx_qdq_maker(r, value, "DequantizeLinear");
    const struct sdx_tensor *x = sdx_match_constant(r->g, node ? node->inputs[0] : value);
    const struct sdx_tensor *scales = node ? sdx_match_constant(r->g, node->inputs[1]) : NULL;
    const struct sdx_tensor *zeros = NULL;
    if (!x || !x->data || x->count != n || (node && !scales)) return SDX_OK;
    if (node && node->count_inputs > 2 && node->inputs[2] >= 0) {
        zeros = sdx_match_constant(r->g, node->inputs[2]);
        if (!zeros) return SDX_OK;
    }
    if ((scales && scales->count != 1 && scales->count != n) ||
        (node && sdx_ir_attr_int(node, "block_size", 0)))
        return SDX_OK;
    void *data = NULL;
    int32_t made = sdx_qdq_constant(r, SDX_I32, 1, &n, &data);
    if (made < 0) return SDX_FAIL_MEMORY(r->cx);
    for (int64_t i = 0; i < n; i++) {
        double unit = (double)scale_x * scale_at(scales_w, i),
               own = scales ? scale_at(scales, i) : 1;
        double v = sdx_load_f64(x->dtype, x->data, i);
        if (zeros) v -= sdx_load_f64(zeros->dtype, zeros->data, zeros->count == 1 ? 0 : i);
        if (!scales || fabs(own - unit) > 1e-6 * unit) v = v * own / unit;
        if (!(fabs(v) < most)) return SDX_OK;
        ((int32_t *)data)[i] = (int32_t)nearbyint(v);
    }
    *bias = made;
    *ok = true;
    return SDX_OK;
}

/* Scale and zero point of the result (scale -1: floats), and the bytes it is bounded to. */
struct result {
    int32_t scale, zero;
    bool clamps;
    int64_t bounds[2];
};

static bool take_bounds(const struct result *to, struct sdx_arena *arena, struct sdx_ir_attr *attrs,
                        int *count)
{
    if (!to->clamps) return true;
    const int64_t *bounds = sdx_arena_copy(arena, to->bounds, sizeof to->bounds);
    attrs[(*count)++] = (struct sdx_ir_attr){
        .name = SDX_STR("clamp"), .type = SDX_ATTR_INTS, .count = 2, .ints = bounds, .graph = -1};
    return bounds != NULL;
}
static int take_attrs(const struct sdx_ir_node *from, const struct result *to,
                      struct sdx_arena *arena, struct sdx_ir_attr *attrs)
{
    int count = 0;
    for (int i = 0; i < from->count_attrs && count < ATTRS_MAX - 1; i++)
        attrs[count++] = from->attrs[i];
    return take_bounds(to, arena, attrs, &count) ? count : -1;
}

/* ---- products ---- */

/* Along each axis a tap for every phase, and no group but one. */
static bool has_plain_phases(const struct sdx_ir_node *conv, const struct sdx_type *w)
{
    int64_t strides = 0, dilations = 0;
    const int64_t *s = sdx_ir_attr_ints(conv, "strides", &strides);
    const int64_t *d = sdx_ir_attr_ints(conv, "dilations", &dilations);
    if (sdx_ir_attr_int(conv, "group", 1) != 1 || w->rank < 3) return false;
    for (int i = 0; i < w->rank - 2; i++)
        if (w->dims[i + 2] < (s && i < strides ? s[i] : 1) || (d && i < dilations && d[i] != 1))
            return false;
    return true;
}

/* Node n becomes the integer form of the product at `at` (which may be n itself). */
static enum sdx_status make_conv(struct sdx_qdq *r, int32_t n, int32_t at, const struct result *to,
                                 bool transposed, bool *done)
{
    const struct sdx_ir_node *conv = &r->g->nodes[at];
    struct sdx_quant x;
    struct weights w;
    struct sdx_ir_attr attrs[ATTRS_MAX];
    bool ok = false;
    int32_t bias = -1;
    const int axis = transposed ? 1 : 0;
    if (sdx_match_is_fused(conv) || conv->count_attrs >= ATTRS_MAX ||
        !sdx_qdq_dequantized(r, conv->inputs[0], &x) || !weights_of(r, conv->inputs[1], axis, &w))
        return SDX_OK;
    const struct sdx_type *type = &r->g->values[w.w].type;
    if (transposed &&
        (to->scale < 0 || !sdx_match_constant(r->g, w.w) || !has_plain_phases(conv, type)))
        return SDX_OK;
    const int32_t own_bias = conv->count_inputs > 2 ? conv->inputs[2] : -1;
    SDX_TRY(integer_bias(r, own_bias, x.s, w.scales, type->rank > axis ? type->dims[axis] : 0,
                         terms_of(type, axis), &bias, &ok));
    if (!ok && (to->scale >= 0 || r->g->values[own_bias].type.dtype != SDX_F32)) return SDX_OK;
    if (!ok) bias = own_bias; /* added to what is scaled */
    int count_attrs = take_attrs(&r->g->nodes[at], to, r->ir->arena, attrs);
    int32_t in[] = {x.x,       x.scale,  sdx_qdq_zero(r, x.zero, x.dtype),
                    w.w,       w.scale,  w.zero < 0 ? sdx_qdq_zero(r, -1, w.dtype) : w.zero,
                    to->scale, to->zero, bias};
    if (count_attrs < 0 || in[2] < 0 || in[5] < 0) return SDX_FAIL_MEMORY(r->cx);
    *done = true;
    if (transposed)
        return sdx_qdq_become(r, n, "ai.sardonyx", "QLinearConvTranspose", 1, 9, in, attrs,
                              count_attrs);
    return sdx_qdq_become(r, n, "", "QLinearConv", 10, 9, in, attrs, count_attrs);
}

static enum sdx_status make_gemm(struct sdx_qdq *r, int32_t n, int32_t at, const struct result *to,
                                 bool *done)
{
    const struct sdx_ir_node *gemm = &r->g->nodes[at];
    struct sdx_quant a;
    struct weights b;
    struct sdx_ir_attr attrs[ATTRS_MAX];
    bool trans_b = sdx_ir_attr_int(gemm, "transB", 0) != 0, ok = false;
    int32_t bias = -1, c = gemm->count_inputs > 2 ? gemm->inputs[2] : -1;
    if (sdx_match_is_fused(gemm) || sdx_ir_attr_float(gemm, "alpha", 1) != 1 ||
        (c >= 0 && sdx_ir_attr_float(gemm, "beta", 1) != 1) ||
        !sdx_qdq_dequantized(r, gemm->inputs[0], &a) ||
        !weights_of(r, gemm->inputs[1], trans_b ? 0 : 1, &b))
        return SDX_OK;
    const struct sdx_type *type = &r->g->values[b.w].type;
    if (type->rank != 2) return SDX_OK;
    SDX_TRY(integer_bias(r, c, a.s, b.scales, type->dims[!trans_b], terms_of(type, !trans_b), &bias,
                         &ok));
    if (!ok) return SDX_OK;
    struct sdx_ir_node plain = *gemm;
    int kept = 0;
    struct sdx_ir_attr own[2];
    for (int i = 0; i < gemm->count_attrs && kept < 2; i++)
        if (sdx_str_is(gemm->attrs[i].name, "transA") || sdx_str_is(gemm->attrs[i].name, "transB"))
            own[kept++] = gemm->attrs[i];
    plain.attrs = own;
    plain.count_attrs = kept;
    int count_attrs = take_attrs(&plain, to, r->ir->arena, attrs);
    int32_t in[] = {a.x,  a.scale,   sdx_qdq_zero(r, a.zero, a.dtype),
                    b.w,  b.scale,   b.zero < 0 ? sdx_qdq_zero(r, -1, b.dtype) : b.zero,
                    bias, to->scale, to->zero};
    if (count_attrs < 0 || in[2] < 0 || in[5] < 0) return SDX_FAIL_MEMORY(r->cx);
    *done = true;
    return sdx_qdq_become(r, n, "com.microsoft", "QGemm", 1, 9, in, attrs, count_attrs);
}

/* c: the value added to the product, -1: none. */
static enum sdx_status make_matmul(struct sdx_qdq *r, int32_t n, int32_t at, int32_t c,
                                   const struct result *to, bool *done)
{
    const struct sdx_ir_node *product = &r->g->nodes[at];
    struct sdx_quant a;
    struct weights b;
    struct sdx_ir_attr attrs[ATTRS_MAX];
    bool ok = false;
    int32_t bias = -1;
    if (product->count_inputs != 2 || sdx_match_is_fused(product) ||
        !sdx_qdq_dequantized(r, product->inputs[0], &a) ||
        !weights_of(r, product->inputs[1], -1, &b))
        return SDX_OK;
    const struct sdx_type *type = &r->g->values[b.w].type;
    if (type->rank < 2 || (type->rank != 2 && (b.scales->count != 1 || c >= 0))) return SDX_OK;
    if (c < 0 && to->scale < 0) { /* MatMulIntegerToFloat */
        int32_t in[] = {a.x, b.w, a.scale, b.scale, a.zero, b.zero < 0 && a.zero < 0 ? -1 : b.zero};
        *done = true;
        return sdx_qdq_become(r, n, "com.microsoft", "MatMulIntegerToFloat", 1, 6, in, NULL, 0);
    }
    if (to->scale < 0) return SDX_OK;
    SDX_TRY(integer_bias(r, c, a.s, b.scales, type->dims[type->rank - 1],
                         terms_of(type, type->rank - 1), &bias, &ok));
    if (!ok) return SDX_OK;
    struct sdx_ir_node plain = {.count_attrs = 0};
    int count_attrs = take_attrs(&plain, to, r->ir->arena, attrs);
    int32_t in[] = {a.x,       a.scale,  sdx_qdq_zero(r, a.zero, a.dtype),
                    b.w,       b.scale,  b.zero < 0 ? sdx_qdq_zero(r, -1, b.dtype) : b.zero,
                    to->scale, to->zero, bias};
    if (count_attrs < 0 || in[2] < 0 || in[5] < 0) return SDX_FAIL_MEMORY(r->cx);
    *done = true;
    return sdx_qdq_become(r, n, "", "QLinearMatMul", 10, 9, in, attrs, count_attrs);
}

static bool is_plain(const struct sdx_ir_node *node, const char *op)
{
    return !node->is_dead && !node->domain.len && sdx_str_is(node->op_type, op);
}

static enum sdx_status make_product(struct sdx_qdq *r, int32_t n, int32_t at,
                                    const struct result *to, bool *done)
{
    const struct sdx_ir_node *node = &r->g->nodes[at];
    if (is_plain(node, "Conv")) return make_conv(r, n, at, to, false, done);
    if (is_plain(node, "ConvTranspose")) return make_conv(r, n, at, to, true, done);
    if (is_plain(node, "Gemm")) return make_gemm(r, n, at, to, done);
    if (is_plain(node, "MatMul")) return make_matmul(r, n, at, -1, to, done);
    if (!is_plain(node, "Add") || to->scale < 0) return SDX_OK;
    for (int i = 0; i < 2 && !*done; i++) { /* a MatMul and its bias */
        node = &r->g->nodes[at];
        int32_t v = node->inputs[i], c = node->inputs[1 - i];
        const struct sdx_ir_node *product = sdx_qdq_maker(r, v, "MatMul");
        if (!product || product->domain.len || r->uses[v] != 1 || c < 0) continue;
        SDX_TRY(make_matmul(r, n, r->g->values[v].producer, c, to, done));
    }
    return SDX_OK;
}

/* ---- the rest ---- */

static enum sdx_status make_binary(struct sdx_qdq *r, int32_t n, int32_t at,
                                   const struct sdx_quant *q, const char *op, bool *done)
{
    const struct sdx_ir_node *node = &r->g->nodes[at];
    struct sdx_quant a, b;
    if (node->count_inputs != 2 || node->opset < 7 ||
        !sdx_qdq_dequantized(r, node->inputs[0], &a) ||
        !sdx_qdq_dequantized(r, node->inputs[1], &b) || a.dtype != q->dtype || b.dtype != q->dtype)
        return SDX_OK;
    int32_t in[] = {a.x, a.scale, a.zero, b.x, b.scale, b.zero, q->scale, q->zero};
    *done = true;
    return sdx_qdq_become(r, n, "com.microsoft", op, 1, 8, in, NULL, 0);
}

static enum sdx_status make_pool(struct sdx_qdq *r, int32_t n, int32_t at,
                                 const struct sdx_quant *q, bool *done)
{
    struct sdx_quant x;
    if (!sdx_qdq_dequantized(r, r->g->nodes[at].inputs[0], &x) || x.dtype != q->dtype)
        return SDX_OK;
    int32_t in[] = {x.x, x.scale, sdx_qdq_zero(r, x.zero, x.dtype), q->scale,
                    sdx_qdq_zero(r, q->zero, q->dtype)};
    if (in[2] < 0 || in[4] < 0) return SDX_FAIL_MEMORY(r->cx);
    *done = true;
    return sdx_qdq_become(r, n, "com.microsoft", "QLinearGlobalAveragePool", 1, 5, in, NULL, 0);
}

/* Does each window count as many elements, whatever of it is padding? */
static bool has_one_count(const struct sdx_ir_node *pool)
{
    const struct sdx_str auto_pad = sdx_ir_attr_str(pool, "auto_pad", "NOTSET");
    int64_t count = 0, padding = 0;
    const int64_t *pads = sdx_ir_attr_ints(pool, "pads", &count);
    for (int64_t i = 0; pads && i < count; i++)
        padding |= pads[i];
    if (sdx_ir_attr_int(pool, "ceil_mode", 0)) return false;
    if (!sdx_str_is(auto_pad, "NOTSET")) return sdx_str_is(auto_pad, "VALID");
    return !padding || sdx_ir_attr_int(pool, "count_include_pad", 0);
}
/* AveragePool as a convolution of single channels with ones. Averages of an even count that keep
 * the scale often lie between two bytes: the rounding errors of floats then decide, as elsewhere,
 * and networks are seen whose result hangs on it. */
static enum sdx_status make_average(struct sdx_qdq *r, int32_t n, int32_t at,
                                    const struct sdx_quant *q, const struct result *to, bool *done)
{
    static const char *const kept[] = {"auto_pad", "pads", "strides", "dilations", "kernel_shape"};
    const struct sdx_ir_node *pool = &r->g->nodes[at];
    struct sdx_quant x;
    struct sdx_ir_attr attrs[SDX_COUNT_OF(kept) + 2];
    int64_t rank = 0, dims[SDX_RANK_MAX], area = 1;
    const int64_t *kernel = sdx_ir_attr_ints(pool, "kernel_shape", &rank);
    if (!sdx_qdq_dequantized(r, pool->inputs[0], &x) || !has_one_count(pool) || !kernel)
        return SDX_OK;
    const struct sdx_type *type = &r->g->values[x.x].type;
    if (!type->has_shape || type->rank != rank + 2 || type->dims[1] <= 1) return SDX_OK;
    dims[0] = type->dims[1];
    dims[1] = 1;
    for (int64_t i = 0; i < rank; i++) {
        if (kernel[i] < 1 || !sdx_mul_i64(area, kernel[i], &area) || area > 1 << 16) return SDX_OK;
        dims[i + 2] = kernel[i];
    }
    if (x.s == q->s && area % 2 == 0) return SDX_OK;
    void *ones = NULL, *scale = NULL;
    int count = 0;
    for (int k = 0; k < SDX_COUNT_OF(kept); k++) {
        const struct sdx_ir_attr *attr = sdx_ir_attr(pool, kept[k]);
        if (attr) attrs[count++] = *attr;
    }
    attrs[count++] = (struct sdx_ir_attr){
        .name = SDX_STR("group"), .type = SDX_ATTR_INT, .i = dims[0], .graph = -1};
    if (!take_bounds(to, r->ir->arena, attrs, &count)) return SDX_FAIL_MEMORY(r->cx);
    int32_t in[] = {x.x,
                    x.scale,
                    sdx_qdq_zero(r, x.zero, x.dtype),
                    sdx_qdq_constant(r, SDX_I8, (int)rank + 2, dims, &ones),
                    sdx_qdq_constant(r, SDX_F32, 0, NULL, &scale),
                    sdx_qdq_zero(r, -1, SDX_I8),
                    to->scale,
                    to->zero};
    for (int i = 0; i < SDX_COUNT_OF(in); i++)
        if (in[i] < 0) return SDX_FAIL_MEMORY(r->cx);
    memset(ones, 1, (size_t)(dims[0] * area));
    *(float *)scale = 1.0f / (float)area;
    *done = true;
    return sdx_qdq_become(r, n, "", "QLinearConv", 10, SDX_COUNT_OF(in), in, attrs, count);
}

static int64_t quantised(const struct sdx_quant *q, double v)
{
    double lo = q->dtype == SDX_U8 ? 0 : -128, y = nearbyint((double)((float)v / q->s)) + q->z;
    return (int64_t)(y > lo ? y < lo + 255 ? y : lo + 255 : lo);
}

/* Relu and Clip bound the bytes. */
static bool bounds_of(const struct sdx_qdq *r, const struct sdx_ir_node *node,
                      const struct sdx_quant *q, struct result *to)
{
    double lo = -INFINITY, hi = INFINITY;
    if (is_plain(node, "Relu")) {
        lo = 0;
    } else if (is_plain(node, "Clip") && node->opset >= 11) {
        for (int i = 1; i < node->count_inputs && i < 3; i++)
            if (node->inputs[i] >= 0 &&
                !sdx_match_scalar(r->g, node->inputs[i], i == 1 ? &lo : &hi))
                return false;
    } else if (is_plain(node, "Clip")) {
        lo = sdx_ir_attr_float(node, "min", -INFINITY);
        hi = sdx_ir_attr_float(node, "max", INFINITY);
    } else {
        return false;
    }
    if (lo > hi) return false;
    to->bounds[0] = quantised(q, lo);
    to->bounds[1] = quantised(q, hi);
    to->clamps = to->bounds[1] - to->bounds[0] < 255;
    return true;
}

static enum sdx_status make_affine(struct sdx_qdq *r, int32_t n, int32_t value,
                                   const struct sdx_quant *q, const struct result *to, bool *done)
{
    struct sdx_ir_attr attrs[1];
    int count = 0;
    if (!take_bounds(to, r->ir->arena, attrs, &count)) return SDX_FAIL_MEMORY(r->cx);
    return sdx_qdq_affine(r, n, value, q, to->zero, attrs, count, done);
}

enum sdx_status sdx_qdq_operator(struct sdx_qdq *r, int32_t n, const struct sdx_quant *q)
{
    int32_t v = q->x, at = r->g->values[v].producer;
    struct result to = {.scale = q->scale, .zero = q->zero};
    bool done = false;
    if (at < 0 || r->uses[v] != 1) return SDX_OK;
    if (is_plain(&r->g->nodes[at], "GlobalAveragePool")) return make_pool(r, n, at, q, &done);
    if (bounds_of(r, &r->g->nodes[at], q, &to)) {
        v = r->g->nodes[at].inputs[0];
        if (v < 0 || r->uses[v] != 1 || r->g->values[v].producer < 0) return SDX_OK;
        at = r->g->values[v].producer;
    }
    to.zero = sdx_qdq_zero(r, to.zero, q->dtype);
    if (to.zero < 0) return SDX_FAIL_MEMORY(r->cx);
    if (is_plain(&r->g->nodes[at], "AveragePool")) return make_average(r, n, at, q, &to, &done);
    SDX_TRY(make_product(r, n, at, &to, &done));
    if (!done) SDX_TRY(make_affine(r, n, v, q, &to, &done));
    if (done || to.clamps) return SDX_OK;
    if (is_plain(&r->g->nodes[at], "Add")) return make_binary(r, n, at, q, "QLinearAdd", &done);
    if (is_plain(&r->g->nodes[at], "Mul")) return make_binary(r, n, at, q, "QLinearMul", &done);
    return SDX_OK;
}

enum sdx_status sdx_qdq_float_product(struct sdx_qdq *r, int32_t n)
{
    bool done = false;
    struct result to = {.scale = -1, .zero = -1};
    return make_product(r, n, n, &to, &done);
}
