/* SPDX-License-Identifier: Apache-2.0
 * MatMul (with NumPy's batching), Gemm, their fused kin, and Det. The products are those of
 * ops/product.h. */
#include "kernels/gemm.h"

#include <math.h>

#include "kernels/vec.h"
#include "ops/product.h"
#include "ops/shared.h"
#include "tensor/convert.h"

#define NAME(node) SDX_STR_ARG((node)->op_type)

/* ---- MatMul ---- */

/* Rows and columns of an operand whose matrices may be stored transposed. Vectors: is_a gives one
 * row, otherwise one column. */
static void matrix_of(const int64_t *dims, int rank, bool trans, bool is_a, int64_t *rows,
                      int64_t *columns)
{
    if (rank == 1) {
        *rows = is_a ? 1 : dims[0];
        *columns = is_a ? dims[0] : 1;
        return;
    }
    *rows = dims[rank - 2 + trans];
    *columns = dims[rank - 1 - trans];
}

static bool attr_true(const struct sdx_ir_node *node, const char *name)
{
    return sdx_ir_attr_int(node, name, 0) != 0;
}

/* Does the attribute move axis 0 behind the batch? */
static bool is_turned(const struct sdx_ir_node *node, const char *name, int rank)
{
    return rank > 2 && attr_true(node, name);
}

/* The lengths of an operand as MatMul has them: batch, then the matrix. */
static const int64_t *plain_dims(const struct sdx_ir_node *node, const char *name,
                                 const int64_t *dims, int rank, int64_t *turned)
{
    if (!is_turned(node, name, rank)) return dims;
    memcpy(turned, dims + 1, (size_t)(rank - 2) * sizeof *turned);
    turned[rank - 2] = dims[0];
    turned[rank - 1] = dims[rank - 1];
    return turned;
}

enum sdx_status sdx_matmul_infer(struct sdx_infer *ix)
{
    sdx_infer_set_dtype(ix, 0, sdx_infer_dtype(ix, 0));
    int rank_a = sdx_infer_rank(ix, 0), rank_b = sdx_infer_rank(ix, 1);
    int64_t turned_a[SDX_RANK_MAX], turned_b[SDX_RANK_MAX];
    const int64_t *a = plain_dims(ix->node, "transBatchA", sdx_infer_dims(ix, 0), rank_a, turned_a);
    const int64_t *b = plain_dims(ix->node, "transBatchB", sdx_infer_dims(ix, 1), rank_b, turned_b);
    if (rank_a == 0 || rank_b == 0)
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "%.*s: operand is a scalar, expected rank 1 or more",
                        NAME(ix->node));
    if (rank_a < 0 || rank_b < 0) return SDX_OK;
    int64_t m, k, k2, n, unused;
    matrix_of(a, rank_a, attr_true(ix->node, "transA"), true, &m, &k);
    matrix_of(b, rank_b, attr_true(ix->node, "transB"), false, &k2, &n);
    SDX_TRY(sdx_infer_merge_dim(ix, k, k2, "inner length", &unused));
    int batch_a = rank_a > 2 ? rank_a - 2 : 0, batch_b = rank_b > 2 ? rank_b - 2 : 0;
    int batch = batch_a > batch_b ? batch_a : batch_b;
    int64_t *out = sdx_infer_new_dims(ix, 0, batch + (rank_a > 1) + (rank_b > 1));
    if (!out) return SDX_FAIL_MEMORY(ix->cx);
    for (int i = 0; i < batch; i++) {
        int64_t da = i < batch - batch_a ? 1 : a[i - (batch - batch_a)];
        int64_t db = i < batch - batch_b ? 1 : b[i - (batch - batch_b)];
        SDX_TRY(sdx_infer_broadcast_dim(ix, da, db, &out[i]));
    }
    int at = batch;
    if (rank_a > 1) out[at++] = m;
    if (rank_b > 1) out[at] = n;
    return SDX_OK;
}

void sdx_matmul_cost(const struct sdx_infer *ix, struct sdx_cost *cost)
{
    int64_t m, k, turned[SDX_RANK_MAX];
    int rank = sdx_infer_rank(ix, 0);
    matrix_of(plain_dims(ix->node, "transBatchA", sdx_infer_dims(ix, 0), rank, turned), rank,
              attr_true(ix->node, "transA"), true, &m, &k);
    cost->macs = (double)k;
    for (int i = 0; i < ix->out[0].rank; i++)
        cost->macs *= (double)ix->out[0].dims[i];
    cost->flops = 2 * cost->macs;
}

/* Packed products read the residual before they store sums; with alpha they add it at the end. */
void sdx_matmul_layout(struct sdx_prepare *px, struct sdx_layouts *want)
{
    if (px->in[1]->is_constant && sdx_ir_attr_float(px->node, "alpha", 1) == 1)
        want->over = SDX_OVER(3);
}

static struct sdx_tensor *input(struct sdx_prepare *px, int i)
{
    return sdx_prepare_has(px, i) ? px->in[i] : NULL;
}

enum sdx_status sdx_matmul_prepare(struct sdx_prepare *px)
{
    struct sdx_tensor *a = px->in[0], *b = px->in[1], *c = px->out[0];
    bool trans_a = attr_true(px->node, "transA") && a->rank > 1;
    bool trans_b = attr_true(px->node, "transB") && b->rank > 1;
    struct sdx_product p = {.a = a, .b = b, .c = c, .input_b = 1, .batch = 1};
    int64_t k_b, turned_a[SDX_RANK_MAX], turned_b[SDX_RANK_MAX];
    struct sdx_tensor plain_a = *a, plain_b = *b; /* only their lengths are read */
    plain_a.dims =
        (int64_t *)(uintptr_t)plain_dims(px->node, "transBatchA", a->dims, a->rank, turned_a);
    plain_b.dims =
        (int64_t *)(uintptr_t)plain_dims(px->node, "transBatchB", b->dims, b->rank, turned_b);
    matrix_of(plain_a.dims, a->rank, trans_a, true, &p.m, &p.k);
    matrix_of(plain_b.dims, b->rank, trans_b, false, &k_b, &p.n);
    const bool batch_a = is_turned(px->node, "transBatchA", a->rank);
    const bool batch_b = is_turned(px->node, "transBatchB", b->rank);
    /* Elements between rows in memory, and between matrices. */
    const int64_t across_a = a->dims[a->rank - 1],
                  across_b = b->rank > 1 ? b->dims[b->rank - 1] : 1;
    const int64_t rows_a = batch_a && a->dims[0] ? a->count / a->dims[0] : across_a;
    const int64_t rows_b = batch_b && b->dims[0] ? b->count / b->dims[0] : across_b;
    p.row_a = trans_a ? 1 : rows_a;
    p.col_a = trans_a ? rows_a : 1;
    p.row_b = trans_b ? 1 : rows_b;
    p.col_b = trans_b ? rows_b : 1;
    p.alpha = sdx_ir_attr_float(px->node, "alpha", 1);
    SDX_TRY(sdx_fused_act(px->cx, px->node, &p.act, &p.act_a, &p.act_b));
    p.bias_col = input(px, 2);
    p.residual = input(px, 3);
    p.scale_col = input(px, 4);
    bool is_fused = p.bias_col || p.residual || p.scale_col || p.act != SDX_ACT_NONE;
    if (c->dtype != SDX_F32 && (is_fused || (p.alpha != 1 && c->dtype != SDX_F64)))
        return SDX_FAIL(px->cx, SDX_NOT_SUPPORTED, "%.*s: element type %s", NAME(px->node),
                        sdx_dtype_short_name(c->dtype));
    if ((p.bias_col && p.bias_col->count != p.n) || (p.scale_col && p.scale_col->count != p.n) ||
        (p.residual && p.residual->count != c->count))
        return SDX_FAIL(px->cx, SDX_BAD_MODEL, "%.*s: bias does not fit the product",
                        NAME(px->node));
    int batch_rank = c->rank - (a->rank > 1) - (b->rank > 1);
    for (int i = 0; i < batch_rank; i++)
        p.batch *= c->dims[i];
    if (p.batch > 1) {
        SDX_TRY(sdx_product_places(px, batch_rank, c->dims, &plain_a,
                                   batch_a ? across_a : p.m * p.k, p.batch, &p.at_a));
        SDX_TRY(sdx_product_places(px, batch_rank, c->dims, &plain_b,
                                   batch_b ? across_b : p.k * p.n, p.batch, &p.at_b));
    }
    return sdx_product_prepare(px, &p);
}

/* ---- Gemm ---- */

enum sdx_status sdx_gemm_infer(struct sdx_infer *ix)
{
    sdx_infer_set_dtype(ix, 0, sdx_infer_dtype(ix, 0));
    const int64_t *a = sdx_infer_dims(ix, 0), *b = sdx_infer_dims(ix, 1);
    for (int i = 0; i < 2; i++)
        if (sdx_infer_rank(ix, i) >= 0 && sdx_infer_rank(ix, i) != 2)
            return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "%.*s: input %d has rank %d, expected 2",
                            NAME(ix->node), i, sdx_infer_rank(ix, i));
    int64_t out[2] = {-1, -1}, k, unused;
    int trans_a = attr_true(ix->node, "transA"), trans_b = attr_true(ix->node, "transB");
    if (a && b && a[1 - trans_a] >= 0 && b[0] >= 0 && b[1] >= 0 && a[1 - trans_a] != b[trans_b])
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL,
                        "%.*s: inner length of A is %lld, B is [%lld,%lld] with %lld columns",
                        NAME(ix->node), (long long)a[1 - trans_a], (long long)b[0], (long long)b[1],
                        (long long)b[1 - trans_b]);
    if (a && b) SDX_TRY(sdx_infer_merge_dim(ix, a[1 - trans_a], b[trans_b], "inner length", &k));
    if (a) out[0] = a[trans_a];
    if (b) out[1] = b[1 - trans_b];
    const int64_t *c = sdx_infer_dims(ix, 2);
    int rank_c = sdx_infer_rank(ix, 2);
    if (rank_c > 2)
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "%.*s: C has rank %d, expected at most 2",
                        NAME(ix->node), rank_c);
    for (int i = 0; c && i < rank_c; i++)
        if (c[i] != 1 && out[2 - rank_c + i] >= 0)
            SDX_TRY(sdx_infer_merge_dim(ix, c[i], out[2 - rank_c + i], "length of C", &unused));
    return sdx_infer_set_dims(ix, 0, 2, out);
}

void sdx_gemm_cost(const struct sdx_infer *ix, struct sdx_cost *cost)
{
    const int64_t *out = ix->out[0].dims;
    int64_t k = sdx_infer_dims(ix, 0)[attr_true(ix->node, "transA") ? 0 : 1];
    cost->macs = (double)out[0] * (double)out[1] * (double)k;
    cost->flops = 2 * cost->macs;
}

struct scale_c {
    double alpha, beta;
    int64_t row_c, col_c; /* steps of C in the output's rows and columns */
};

static enum sdx_status run_scale_f32(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)x;
    (void)part;
    const struct scale_c *p = step->params;
    const float *c = step->in[0]->data;
    float *y = step->out[0]->data;
    int64_t n = step->out[0]->count;
    bool is_scalar = step->in[0]->count == 1;
    for (int64_t i = 0; i < n; i++)
        y[i] = (float)p->beta * c[is_scalar ? 0 : i];
    return SDX_OK;
}

/* C of an f32 Gemm: as it is, or times beta in a temporary, to where the epilogue wants it. */
static enum sdx_status place_c_f32(struct sdx_prepare *px, struct sdx_product *p, double beta)
{
    struct sdx_tensor *c = px->in[2];
    bool is_row = c->rank == 2 && c->dims[0] == p->m && c->dims[1] == 1 && p->m > 1 && p->n > 1;
    bool is_full = c->count == p->m * p->n && p->m > 1 && p->n > 1;
    if (beta != 1 || (c->count == 1 && p->n > 1)) {
        struct scale_c *s = SDX_PREPARE_NEW(px, struct scale_c);
        int64_t count = c->count == 1 ? p->n : c->count;
        struct sdx_tensor *temp = sdx_prepare_temp(px, SDX_F32, 1, &count);
        if (!s || !temp) return SDX_FAIL_MEMORY(px->cx);
        s->beta = beta;
        SDX_TRY(sdx_prepare_step_on(px, "gemm_scale_c", run_scale_f32, s, 1, 0, 1, &c, 1, &temp));
        c = temp;
    }
    if (is_full)
        p->residual = c;
    else if (is_row || (p->n == 1 && c->count == p->m))
        p->bias_row = c;
    else
        p->bias_col = c;
    return SDX_OK;
}

/* Y = alpha * Y + beta * C in place, for the types that have no epilogue. */
static enum sdx_status run_add_c(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)x;
    (void)part;
    const struct scale_c *p = step->params;
    const struct sdx_tensor *c = step->in[0], *y = step->out[0];
    bool is_wrapping = y->dtype != SDX_F64 && p->alpha == 1 && p->beta == 1;
    for (int64_t i = 0; i < y->dims[0]; i++)
        for (int64_t j = 0; j < y->dims[1]; j++) {
            int64_t at = i * y->dims[1] + j, at_c = i * p->row_c + j * p->col_c;
            if (is_wrapping) {
                uint64_t sum = (uint64_t)sdx_load_i64(y->dtype, y->data, at);
                if (c) sum += (uint64_t)sdx_load_i64(c->dtype, c->data, at_c);
                sdx_store_i64(y->dtype, y->data, at, (int64_t)sum);
                continue;
            }
            double sum = p->alpha * sdx_load_f64(y->dtype, y->data, at);
            if (c) sum += p->beta * sdx_load_f64(c->dtype, c->data, at_c);
            sdx_store_f64(y->dtype, y->data, at, sum);
        }
    return SDX_OK;
}

static enum sdx_status add_c(struct sdx_prepare *px, struct sdx_tensor *c, double alpha,
                             double beta)
{
    struct scale_c *s = SDX_PREPARE_NEW(px, struct scale_c);
    struct sdx_tensor *y = px->out[0];
    if (!s) return SDX_FAIL_MEMORY(px->cx);
    s->alpha = alpha;
    s->beta = beta;
    if (c) {
        int64_t columns = c->rank > 0 ? c->dims[c->rank - 1] : 1;
        s->col_c = columns > 1;
        s->row_c = c->rank == 2 && c->dims[0] > 1 ? columns : 0;
    }
    return sdx_prepare_step_on(px, "gemm_add_c", run_add_c, s, 1, 0, 1, &c, 1, &y);
}

enum sdx_status sdx_gemm_prepare(struct sdx_prepare *px)
{
    struct sdx_tensor *a = px->in[0], *b = px->in[1], *y = px->out[0];
    bool trans_a = attr_true(px->node, "transA"), trans_b = attr_true(px->node, "transB");
    double beta = sdx_ir_attr_float(px->node, "beta", 1);
    double alpha = sdx_ir_attr_float(px->node, "alpha", 1);
    struct sdx_tensor *c = beta != 0 ? input(px, 2) : NULL;
    struct sdx_product p = {.a = a, .b = b, .c = y, .input_b = 1, .batch = 1, .alpha = alpha};
    p.m = y->dims[0];
    p.n = y->dims[1];
    p.k = a->dims[trans_a ? 0 : 1];
    p.row_a = trans_a ? 1 : p.k;
    p.col_a = trans_a ? p.m : 1;
    p.row_b = trans_b ? 1 : p.n;
    p.col_b = trans_b ? p.k : 1;
    if (y->count == 0) return SDX_OK;
    SDX_TRY(sdx_fused_act(px->cx, px->node, &p.act, &p.act_a, &p.act_b));
    if (y->dtype == SDX_F32) {
        if (c) SDX_TRY(place_c_f32(px, &p, beta));
        if (input(px, 3) && p.residual)
            return SDX_FAIL(px->cx, SDX_NOT_SUPPORTED, "%.*s: two matrices to add", NAME(px->node));
        if (input(px, 3)) p.residual = input(px, 3);
        p.scale_col = input(px, 4);
        if ((p.residual && p.residual->count != y->count) ||
            (p.scale_col && p.scale_col->count != p.n))
            return SDX_FAIL(px->cx, SDX_BAD_MODEL, "%.*s: bias does not fit the product",
                            NAME(px->node));
        return sdx_product_prepare(px, &p);
    }
    if (p.act != SDX_ACT_NONE)
        return SDX_FAIL(px->cx, SDX_NOT_SUPPORTED, "%.*s: element type %s", NAME(px->node),
                        sdx_dtype_short_name(y->dtype));
    SDX_TRY(sdx_product_prepare(px, &p));
    bool is_f64 = y->dtype == SDX_F64; /* its product has alpha already */
    if (!c && (is_f64 || alpha == 1)) return SDX_OK;
    return add_c(px, c, is_f64 ? 1 : alpha, beta);
}

/* ---- FusedGemm: activations that no product's store has ---- */

struct late_act {
    int kind;
    float a, b;
};
static const struct late_name {
    const char *name;
    float a, b; /* alpha, beta */
} late_names[] = {{"Elu", 1, 0},        {"Softplus", 0, 0},
                  {"Softsign", 0, 0},   {"ThresholdedRelu", 1, 0},
                  {"ScaledTanh", 1, 1}, {"ParametricSoftplus", 1, 1}};
enum { ELU, SOFTPLUS, SOFTSIGN, THRESHOLDED_RELU, SCALED_TANH, PARAMETRIC_SOFTPLUS };

static enum sdx_status run_late(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct late_act *act = step->params;
    const struct sdx_vec *vec = sdx_vec();
    float *y = step->out[0]->data;
    const size_t n = (size_t)step->out[0]->count;
    (void)x;
    (void)part;
    switch (act->kind) {
    case ELU: vec->f32_elu(y, y, n, act->a, 0); return SDX_OK;
    case SOFTPLUS: vec->f32_softplus(y, y, n, 0, 0); return SDX_OK;
    case SOFTSIGN: vec->f32_softsign(y, y, n, 0, 0); return SDX_OK;
    case THRESHOLDED_RELU: vec->f32_thresholded_relu(y, y, n, act->a, 0); return SDX_OK;
    }
    vec->f32_affine(y, act->b, 0, y, n);
    (act->kind == SCALED_TANH ? vec->f32_tanh : vec->f32_softplus)(y, y, n, 0, 0);
    vec->f32_affine(y, act->a, 0, y, n);
    return SDX_OK;
}

enum sdx_status sdx_fused_gemm_prepare(struct sdx_prepare *px)
{
    const struct sdx_str name = sdx_ir_attr_str(px->node, "activation", "");
    struct late_act *act = NULL;
    for (int i = 0; i < SDX_COUNT_OF(late_names); i++) {
        if (!sdx_str_is(name, late_names[i].name)) continue;
        act = SDX_PREPARE_NEW(px, struct late_act);
        if (!act) return SDX_FAIL_MEMORY(px->cx);
        act->kind = i;
        act->a = sdx_ir_attr_float(px->node, "activation_alpha", late_names[i].a);
        act->b = sdx_ir_attr_float(px->node, "activation_beta", late_names[i].b);
    }
    if (!act || px->out[0]->dtype != SDX_F32) return sdx_gemm_prepare(px);
    struct sdx_ir_node plain = *px->node;
    struct sdx_prepare sub = *px;
    struct sdx_ir_attr *attrs =
        sdx_prepare_alloc(px, ((size_t)plain.count_attrs + 1) * sizeof *attrs);
    if (!attrs) return SDX_FAIL_MEMORY(px->cx);
    plain.attrs = attrs;
    plain.count_attrs = 0;
    for (int32_t i = 0; i < px->node->count_attrs; i++)
        if (!sdx_str_is(px->node->attrs[i].name, "activation"))
            attrs[plain.count_attrs++] = px->node->attrs[i];
    sub.node = &plain;
    SDX_TRY(sdx_gemm_prepare(&sub));
    return sdx_prepare_step_on(px, "gemm_act", run_late, act, 1, 0, 0, NULL, 1, &px->out[0]);
}

/* ---- Det ---- */

static enum sdx_status infer_det(struct sdx_infer *ix)
{
    sdx_infer_set_dtype(ix, 0, sdx_infer_dtype(ix, 0));
    int rank = sdx_infer_rank(ix, 0);
    const int64_t *dims = sdx_infer_dims(ix, 0);
    int64_t n;
    if (rank < 0) return SDX_OK;
    if (rank < 2)
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "Det: input has rank %d, expected at least 2", rank);
    SDX_TRY(sdx_infer_merge_dim(ix, dims[rank - 2], dims[rank - 1], "side of a matrix", &n));
    return sdx_infer_set_dims(ix, 0, rank - 2, dims);
}

/* Gaussian elimination with row pivots; a is overwritten. */
static double determinant(double *a, int64_t n)
{
    double det = 1;
    for (int64_t k = 0; k < n; k++) {
        int64_t pivot = k;
        for (int64_t i = k + 1; i < n; i++)
            if (fabs(a[i * n + k]) > fabs(a[pivot * n + k])) pivot = i;
        if (a[pivot * n + k] == 0) return 0;
        if (pivot != k) det = -det;
        for (int64_t j = k; j < n && pivot != k; j++) {
            double swap = a[k * n + j];
            a[k * n + j] = a[pivot * n + j];
            a[pivot * n + j] = swap;
        }
        det *= a[k * n + k];
        for (int64_t i = k + 1; i < n; i++) {
            double factor = a[i * n + k] / a[k * n + k];
            for (int64_t j = k + 1; j < n; j++)
                a[i * n + j] -= factor * a[k * n + j];
        }
    }
    return det;
}

static enum sdx_status run_det(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct sdx_tensor *in = step->in[0], *out = step->out[0];
    const int64_t n = in->dims[in->rank - 1];
    const int64_t end = sdx_part_begin(out->count, step->parts, part + 1, 1);
    double *a = x->scratch;
    for (int64_t m = sdx_part_begin(out->count, step->parts, part, 1); m < end; m++) {
        for (int64_t i = 0; i < n * n; i++)
            a[i] = sdx_load_f64(in->dtype, in->data, m * n * n + i);
        sdx_store_f64(out->dtype, out->data, m, determinant(a, n));
    }
    return SDX_OK;
}

static enum sdx_status prepare_det(struct sdx_prepare *px)
{
    const struct sdx_tensor *in = px->in[0];
    int64_t n = in->dims[in->rank - 1];
    if (px->out[0]->count == 0) return SDX_OK;
    return sdx_prepare_step(
        px, "det", run_det, NULL,
        sdx_prepare_parts((double)in->count * (double)(n + 8), 1 << 15, px->out[0]->count),
        (size_t)(n * n) * 8);
}

static const struct sdx_op ops[] = {
    {"MatMul", 1, 0, sdx_matmul_infer, KERNEL(sdx_matmul_prepare), .cost = sdx_matmul_cost,
     .layout = sdx_matmul_layout, .packs = 1u << 1,
     .flags = SDX_OP_VIA_F32 | SDX_OP_NARROW_WEIGHTS},
    {"Gemm", 1, 0, sdx_gemm_infer, KERNEL(sdx_gemm_prepare), .cost = sdx_gemm_cost,
     .layout = sdx_matmul_layout, .packs = 1u << 1,
     .flags = SDX_OP_VIA_F32 | SDX_OP_NARROW_WEIGHTS},
    {"Det", 11, 0, infer_det, KERNEL(prepare_det), .flags = SDX_OP_VIA_F32},
};

const struct sdx_op_family sdx_ops_gemm = FAMILY("", ops);
