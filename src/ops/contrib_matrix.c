/* SPDX-License-Identifier: Apache-2.0
 * com.microsoft: Inverse, SparseToDenseMatMul, and what reads weights of a few bits that are not
 * plain integers or are looked up by row: MatMulBnb4 and GatherBlockQuantized. */
#include <math.h>

#include "kernels/gemm.h"
#include "ops/contrib_quant.h"
#include "ops/op.h"
#include "ops/product.h"
#include "tensor/convert.h"

/* ---- Inverse ---- */

static enum sdx_status infer_inverse(struct sdx_infer *ix)
{
    int rank = sdx_infer_rank(ix, 0);
    int64_t unused;
    const int64_t *dims = sdx_infer_dims(ix, 0);
    if (rank >= 0 && rank < 2)
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "Inverse: input has rank %d, expected at least 2",
                        rank);
    if (rank >= 2)
        SDX_TRY(sdx_infer_merge_dim(ix, dims[rank - 2], dims[rank - 1], "side of the matrices",
                                    &unused));
    return sdx_infer_same(ix);
}

/* Gauss-Jordan with the largest pivot of each column: a [n, 2n] is the matrix beside the unit
 * matrix, which becomes the inverse. */
static void invert(double *a, int64_t n)
{
    const int64_t w = 2 * n;
    for (int64_t c = 0; c < n; c++) {
        int64_t best = c;
        for (int64_t r = c + 1; r < n; r++)
            if (fabs(a[r * w + c]) > fabs(a[best * w + c])) best = r;
        for (int64_t j = 0; j < w && best != c; j++) {
            double t = a[c * w + j];
            a[c * w + j] = a[best * w + j];
            a[best * w + j] = t;
        }
        const double pivot = a[c * w + c];
        for (int64_t j = 0; j < w; j++)
            a[c * w + j] /= pivot;
        for (int64_t r = 0; r < n; r++) {
            const double f = a[r * w + c];
            if (r == c || f == 0) continue;
            for (int64_t j = c; j < w; j++)
                a[r * w + j] -= f * a[c * w + j];
        }
    }
}

/* One matrix. */
static enum sdx_status run_inverse(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct sdx_tensor *from = step->in[0], *to = step->out[0];
    const int64_t n = from->dims[from->rank - 1], at = part * n * n;
    double *a = x->scratch;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            a[i * 2 * n + j] = sdx_load_f64(from->dtype, from->data, at + i * n + j);
            a[i * 2 * n + n + j] = i == j;
        }
    invert(a, n);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++)
            sdx_store_f64(to->dtype, to->data, at + i * n + j, a[i * 2 * n + n + j]);
    return SDX_OK;
}

static enum sdx_status prepare_inverse(struct sdx_prepare *px)
{
    const struct sdx_tensor *x = px->in[0];
    if (x->count == 0) return SDX_OK;
    const int64_t n = x->dims[x->rank - 1];
    return sdx_prepare_step(px, "inverse", run_inverse, NULL, x->count / (n * n),
                            (size_t)(2 * n * n) * sizeof(double));
}

/* ---- SparseToDenseMatMul: Y [m, n] = alpha * A * B, either of which may be transposed ---- */

struct sparse {
    bool trans_a, trans_b;
    float alpha;
};

static enum sdx_status infer_sparse(struct sdx_infer *ix)
{
    const struct sdx_type *a = ix->in[0], *b = ix->in[1];
    int trans_a = sdx_ir_attr_int(ix->node, "transA", 0) != 0;
    int trans_b = sdx_ir_attr_int(ix->node, "transB", 0) != 0;
    int64_t out[2] = {-1, -1}, unused;
    sdx_infer_set_dtype(ix, 0, sdx_infer_dtype(ix, 1));
    if ((a->has_shape && a->rank != 2) || (b->has_shape && b->rank != 2))
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "SparseToDenseMatMul: inputs must have rank 2");
    if (a->has_shape && b->has_shape)
        SDX_TRY(sdx_infer_merge_dim(ix, a->dims[1 - trans_a], b->dims[trans_b], "inner length",
                                    &unused));
    if (a->has_shape) out[0] = a->dims[trans_a];
    if (b->has_shape) out[1] = b->dims[1 - trans_b];
    return sdx_infer_set_dims(ix, 0, 2, out);
}

/* y[j] += v * b[j * step], or y[j] *= alpha where b is NULL. Integers wrap. */
#define SPARSE_ROW(name, T)                                                                        \
    static void name(void *y_, const void *b_, int64_t step, const void *v_, int64_t at,           \
                     float alpha, int64_t n)                                                       \
    {                                                                                              \
        T *y = y_;                                                                                 \
        const T *b = b_, v = b ? ((const T *)v_)[at] : (T)alpha;                                   \
        for (int64_t j = 0; j < n; j++)                                                            \
            y[j] = b ? y[j] + v * b[j * step] : y[j] * v;                                          \
    }
SPARSE_ROW(sparse_row_f32, float)
SPARSE_ROW(sparse_row_f64, double)
SPARSE_ROW(sparse_row_u32, uint32_t)
SPARSE_ROW(sparse_row_u64, uint64_t)
#undef SPARSE_ROW

static enum sdx_status run_sparse(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct sparse *p = step->params;
    const struct sdx_tensor *a = step->in[0], *b = step->in[1];
    (void)part;
    if (a->kind != SDX_KIND_SPARSE || a->rank != 2 || b->rank != 2 ||
        a->items[0]->dtype != b->dtype ||
        a->dims[p->trans_a ? 0 : 1] != b->dims[p->trans_b ? 1 : 0])
        return SDX_FAIL(x->cx, SDX_RUN_FAILED,
                        "SparseToDenseMatMul: A must be sparse, of B's type and inner length");
    const struct sdx_tensor *values = a->items[0], *places = a->items[1];
    const int64_t out[] = {a->dims[p->trans_a ? 1 : 0], b->dims[p->trans_b ? 0 : 1]}, n = out[1];
    const size_t size = (size_t)sdx_dtype_bits(b->dtype) / 8;
    void (*row)(void *, const void *, int64_t, const void *, int64_t, float, int64_t) =
        b->dtype == SDX_F32   ? sparse_row_f32
        : b->dtype == SDX_F64 ? sparse_row_f64
        : size == 4           ? sparse_row_u32
                              : sparse_row_u64;
    SDX_TRY(sdx_exec_output(x, step, 0, b->dtype, 2, out));
    char *y = step->out[0]->data;
    memset(y, 0, (size_t)(out[0] * n) * size);
    for (int64_t i = 0; i < values->count; i++) {
        const int64_t *at = (const int64_t *)places->data + (places->rank == 2 ? 2 * i : i);
        const int64_t r = places->rank == 2 ? at[0] : at[0] / (a->dims[1] ? a->dims[1] : 1);
        const int64_t c = places->rank == 2 ? at[1] : at[0] % (a->dims[1] ? a->dims[1] : 1);
        if (r < 0 || c < 0 || r >= a->dims[0] || c >= a->dims[1])
            return SDX_FAIL(x->cx, SDX_RUN_FAILED,
                            "SparseToDenseMatMul: value %lld is outside of A", (long long)i);
        const int64_t m = p->trans_a ? c : r, k = p->trans_a ? r : c;
        row(y + (size_t)(m * n) * size, (char *)b->data + (size_t)(p->trans_b ? k : k * n) * size,
            p->trans_b ? b->dims[1] : 1, values->data, i, 1, n);
    }
    if (p->alpha != 1) row(y, NULL, 0, NULL, 0, p->alpha, out[0] * n);
    return SDX_OK;
}

static enum sdx_status prepare_sparse(struct sdx_prepare *px)
{
    struct sparse *p = SDX_PREPARE_NEW(px, struct sparse);
    if (!p) return SDX_FAIL_MEMORY(px->cx);
    p->trans_a = sdx_ir_attr_int(px->node, "transA", 0) != 0;
    p->trans_b = sdx_ir_attr_int(px->node, "transB", 0) != 0;
    p->alpha = sdx_ir_attr_float(px->node, "alpha", 1);
    return sdx_prepare_step(px, "sparse_matmul", run_sparse, p, 1, 0);
}

/* ---- MatMulBnb4 ---- */

/* What four bits stand for, in units of the block's largest: FP4 (a sign, two bits of exponent,
 * one of fraction, over 12) and NF4 (quantiles of the normal distribution, as in QLoRA). */
static const float bnb4_values[2][16] = {
    {0.0f, 5.208333333e-03f, 0.66666667f, 1.0f, 0.33333333f, 0.5f, 0.16666667f, 0.25f, -0.0f,
     -5.208333333e-03f, -0.66666667f, -1.0f, -0.33333333f, -0.5f, -0.16666667f, -0.25f},
    {-1.0f, -0.6961928009986877f, -0.5250730514526367f, -0.39491748809814453f,
     -0.28444138169288635f, -0.18477343022823334f, -0.09105003625154495f, 0.0f,
     0.07958029955625534f, 0.16093020141124725f, 0.24611230194568634f, 0.33791524171829224f,
     0.44070982933044434f, 0.5626170039176941f, 0.7229568362236023f, 1.0f}};

struct bnb4 {
    int64_t m, n, k, block;
    int64_t row, column; /* element (k, n) of B is number n * row + k * column */
    const float *values;
    struct sdx_split split;
    size_t floats, packed; /* bytes of a panel */
};
enum { BNB4_PANEL = 64 };

/* Columns n0 .. n0 + count of B as [count][k] floats. Runs of a column that lie together in one
 * block share its factor. */
static void bnb4_columns(const struct bnb4 *p, const uint8_t *b, const float *most, int64_t n0,
                         int64_t count, float *out)
{
    for (int64_t n = 0; n < count; n++, out += p->k)
        for (int64_t k = 0; k < p->k;) {
            int64_t at = (n0 + n) * p->row + k * p->column, end = k + 1;
            if (p->column == 1) end = k + p->block - at % p->block;
            if (end > p->k) end = p->k;
            const float factor = most[at / p->block];
            for (; k < end; k++, at++)
                out[k] = p->values[at & 1 ? b[at / 2] & 15 : b[at / 2] >> 4] * factor;
        }
}

static enum sdx_status run_bnb4(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct bnb4 *p = step->params;
    struct sdx_split_range r = sdx_split_at(&p->split, part);
    float *columns = x->scratch, *packed = (float *)(void *)((char *)x->scratch + p->floats);
    struct sdx_gemm_f32 g = {.m = p->m, .k = p->k, .a = step->in[0]->data, .row_a = p->k};
    g.col_a = 1;
    g.packed = packed;
    g.row_c = p->n;
    g.alpha = 1;
    for (int64_t n = r.n0; n < r.n1 && !sdx_exec_cancelled(x); n += g.n) {
        g.n = r.n1 - n < BNB4_PANEL ? r.n1 - n : BNB4_PANEL;
        g.c = (float *)step->out[0]->data + n;
        bnb4_columns(p, step->in[1]->data, step->in[2]->data, n, g.n, columns);
        sdx_gemm_f32_pack(columns, 1, p->k, p->k, g.n, packed);
        sdx_gemm_f32_run(&g, 0, p->m, 0, g.n, (char *)packed + p->packed);
    }
    return SDX_OK;
}

static enum sdx_status prepare_bnb4(struct sdx_prepare *px)
{
    struct bnb4 *p = SDX_PREPARE_NEW(px, struct bnb4);
    const int64_t kind = sdx_ir_attr_int(px->node, "quant_type", 0);
    if (!p) return SDX_FAIL_MEMORY(px->cx);
    p->n = sdx_ir_attr_int(px->node, "N", 0);
    p->k = sdx_ir_attr_int(px->node, "K", 0);
    p->block = sdx_ir_attr_int(px->node, "block_size", 0);
    p->m = px->in[0]->count / p->k;
    bool turned = sdx_ir_attr_int(px->node, "transB", 1) != 0;
    p->row = turned ? p->k : 1;
    p->column = turned ? 1 : p->n;
    if ((kind != 0 && kind != 1) || p->block < 1)
        return SDX_FAIL(px->cx, SDX_NOT_SUPPORTED, "MatMulBnb4: quant_type %lld in blocks of %lld",
                        (long long)kind, (long long)p->block);
    int64_t count, blocks;
    if (!sdx_mul_i64(p->n, p->k, &count)) return SDX_FAIL_MEMORY(px->cx);
    blocks = (count - 1) / p->block + 1;
    if (px->in[1]->count != (count - 1) / 2 + 1 || px->in[2]->count != blocks)
        return SDX_FAIL(px->cx, SDX_BAD_MODEL, "MatMulBnb4: inputs do not fit K, N and block_size");
    if (px->in[0]->dtype != SDX_F32)
        return SDX_FAIL(px->cx, SDX_NOT_SUPPORTED, "MatMulBnb4: element type %s",
                        sdx_dtype_short_name(px->in[0]->dtype));
    if (p->m == 0) return SDX_OK;
    p->values = bnb4_values[kind];
    p->floats = ((size_t)(BNB4_PANEL * p->k) * sizeof(float) + 63) / 64 * 64;
    p->packed = (sdx_gemm_f32_packed_size(p->k, BNB4_PANEL) + 63) / 64 * 64;
    p->split = sdx_split_make(1, 1, p->n, p->k * p->m, 0, BNB4_PANEL);
    return sdx_prepare_step(px, "bnb4", run_bnb4, p, p->split.parts,
                            p->floats + p->packed + sdx_gemm_f32_scratch(p->m, BNB4_PANEL, p->k));
}

/* ---- GatherBlockQuantized ---- */

enum { GATHER_CHUNK = 256 };
struct gather {
    int dtype, dtype_zero; /* of the data's elements, unpacked; of the zero points */
    int gather_axis, quantize_axis;
    int64_t outer, length, run; /* runs of elements behind each index */
    int64_t rows;               /* outer * indices */
    int64_t block, blocks;      /* of the quantised axis */
    int64_t depth, inner;       /* its length, and of the axes behind it */
    int64_t zero_row;           /* elements of a packed row of zero points; 0: not packed */
    float zero;                 /* without zero points */
    int64_t scale_dims[SDX_RANK_MAX], dims[SDX_RANK_MAX];
    int rank;
    bool broadcasts; /* some scale serves several places beside its block */
};

static int element_type(const struct sdx_ir_node *node, int dtype)
{
    int64_t bits = sdx_ir_attr_int(node, "bits", 4);
    if (dtype != SDX_U8 || bits == 8) return dtype;
    return bits == 4 ? SDX_U4 : bits == 2 ? SDX_U2 : SDX_DTYPE_NONE;
}

static enum sdx_status infer_gather(struct sdx_infer *ix)
{
    int rank = sdx_infer_rank(ix, 0), rank_i = sdx_infer_rank(ix, 1), axis, to = 0, last;
    const int64_t *data = sdx_infer_dims(ix, 0), *indices = sdx_infer_dims(ix, 1);
    int type = element_type(ix->node, sdx_infer_dtype(ix, 0));
    sdx_infer_set_dtype(ix, 0, sdx_infer_dtype(ix, 2));
    if (sdx_infer_dtype(ix, 0) == SDX_U8 && type == SDX_DTYPE_NONE)
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL,
                        "GatherBlockQuantized: %lld bits, expected 2, 4 or 8",
                        (long long)sdx_ir_attr_int(ix->node, "bits", 4));
    if (rank < 0 || rank_i < 0) return SDX_OK;
    SDX_TRY(sdx_infer_axis(ix, sdx_ir_attr_int(ix->node, "gather_axis", 0), rank, &axis));
    SDX_TRY(sdx_infer_axis(ix, sdx_ir_attr_int(ix->node, "quantize_axis", 1), rank, &last));
    bool packs = type == SDX_U4 || type == SDX_U2;
    bool is_bytes = sdx_infer_dtype(ix, 0) == SDX_U8;
    if (is_bytes && (last != rank - 1 || axis == last))
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL,
                        "GatherBlockQuantized: bytes are quantised along the last axis only");
    int64_t *out = sdx_infer_new_dims(ix, 0, rank - 1 + rank_i);
    if (!out) return SDX_FAIL_MEMORY(ix->cx);
    for (int i = 0; i < axis; i++)
        out[to++] = data[i];
    for (int i = 0; i < rank_i; i++)
        out[to++] = indices[i];
    for (int i = axis + 1; i < rank; i++)
        out[to++] = data[i];
    if (sdx_infer_dtype(ix, 0) == SDX_U8 && packs && out[to - 1] >= 0)
        out[to - 1] *= type == SDX_U4 ? 2 : 4;
    else if (sdx_infer_dtype(ix, 0) == SDX_U8 && packs)
        out[to - 1] = -1;
    return SDX_OK;
}

/* Number of the scale of the element `at` of the data. */
static int64_t scale_at(const struct gather *p, int64_t at)
{
    if (!p->broadcasts) {
        const int64_t inner = at % p->inner, rest = at / p->inner;
        return (rest / p->depth * p->blocks + rest % p->depth / p->block) * p->inner + inner;
    }
    int64_t place = 0, step = 1;
    for (int i = p->rank - 1; i >= 0; i--) {
        int64_t k = at % p->dims[i];
        at /= p->dims[i];
        if (i == p->quantize_axis) k /= p->block;
        if (p->scale_dims[i] > 1) place += k * step;
        step *= p->scale_dims[i];
    }
    return place;
}

/* Where scales and zero points of a block are, and how many of its elements are left. */
struct block {
    int64_t scale, zero, left, number; /* number: of those of its row */
};
static struct block block_at(const struct gather *p, int64_t at)
{
    struct block b = {.scale = scale_at(p, at), .left = 1};
    b.zero = p->zero_row ? b.scale / p->blocks * p->zero_row + b.scale % p->blocks : b.scale;
    if (p->inner != 1) return b; /* the quantised axis is not the last */
    const int64_t place = at % p->depth;
    b.number = place / p->block;
    b.left = (b.number + 1) * p->block < p->depth ? (b.number + 1) * p->block : p->depth;
    b.left -= place;
    return b;
}
/* The block that begins with element `at`, behind b. */
static struct block next_block(const struct gather *p, struct block b, int64_t at)
{
    if (p->inner != 1 || p->broadcasts || b.number + 1 == p->blocks) return block_at(p, at);
    b.number++;
    b.scale++;
    b.zero++;
    b.left = p->depth - b.number * p->block;
    if (b.left > p->block) b.left = p->block;
    return b;
}

static enum sdx_status run_gather(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct gather *p = step->params;
    const struct sdx_tensor *indices = step->in[1], *scales = step->in[2], *y = step->out[0];
    const struct sdx_tensor *zeros = step->in[3];
    int64_t end = sdx_part_begin(p->rows, step->parts, part + 1, 1);
    const size_t size = (size_t)sdx_dtype_bits(y->dtype) / 8;
    float q[GATHER_CHUNK];
    (void)x;
    for (int64_t r = sdx_part_begin(p->rows, step->parts, part, 1); r < end; r++) {
        int64_t index = sdx_load_i64(indices->dtype, indices->data, r % indices->count);
        if (index < 0) index += p->length;
        if (index < 0 || index >= p->length) { /* zeros, as ONNX Runtime has it */
            memset((char *)y->data + (size_t)(r * p->run) * size, 0, (size_t)p->run * size);
            continue;
        }
        int64_t from = (r / indices->count * p->length + index) * p->run;
        struct block b = block_at(p, from);
        for (int64_t at = 0, n; at < p->run; at += n) {
            n = p->run - at < GATHER_CHUNK ? p->run - at : GATHER_CHUNK;
            sdx_convert(SDX_F32, q, 0, p->dtype, step->in[0]->data, from + at, n, false);
            for (int64_t i = 0, some; i < n; b.left -= some, i += some) {
                if (b.left == 0) b = next_block(p, b, from + at + i);
                const float scale = (float)sdx_load_f64(scales->dtype, scales->data, b.scale);
                const float zero =
                    zeros ? (float)sdx_load_i64(p->dtype_zero, zeros->data, b.zero) : p->zero;
                some = b.left < n - i ? b.left : n - i;
                for (int64_t k = 0; k < some; k++)
                    q[i + k] = (q[i + k] - zero) * scale;
            }
            sdx_convert(y->dtype, y->data, r * p->run + at, SDX_F32, q, 0, n, false);
        }
    }
    return SDX_OK;
}

static enum sdx_status check_gather(struct sdx_prepare *px, struct gather *p, int64_t each)
{
    const struct sdx_tensor *data = px->in[0], *scales = px->in[2];
    const struct sdx_tensor *zeros = sdx_prepare_has(px, 3) ? px->in[3] : NULL;
    int64_t want = 1;
    bool fits = scales->rank == data->rank;
    for (int i = 0; fits && i < data->rank; i++) {
        p->dims[i] = data->dims[i] * (i == data->rank - 1 ? each : 1);
        int64_t length =
            i == p->quantize_axis ? (p->dims[i] + p->block - 1) / p->block : p->dims[i];
        p->scale_dims[i] = scales->dims[i];
        if (scales->dims[i] != length) p->broadcasts = true;
        fits = scales->dims[i] == length || (scales->dims[i] == 1 && i != p->quantize_axis);
        want *= scales->dims[i];
    }
    if (fits && zeros && each > 1) {
        p->zero_row = (p->blocks + each - 1) / each * each;
        want = want / (p->blocks > 0 ? p->blocks : 1) * (p->zero_row / each);
    }
    if (!fits || (zeros && (zeros->count != want || zeros->dtype != data->dtype)))
        return SDX_FAIL(px->cx, SDX_BAD_MODEL,
                        "GatherBlockQuantized: scales or zero points do not fit the data");
    return SDX_OK;
}

static enum sdx_status prepare_gather(struct sdx_prepare *px)
{
    struct gather *p = SDX_PREPARE_NEW(px, struct gather);
    struct sdx_tensor *data = px->in[0];
    if (!p) return SDX_FAIL_MEMORY(px->cx);
    int64_t axis = sdx_ir_attr_int(px->node, "gather_axis", 0);
    int64_t along = sdx_ir_attr_int(px->node, "quantize_axis", 1);
    p->rank = data->rank;
    p->gather_axis = (int)(axis < 0 ? axis + p->rank : axis);
    p->quantize_axis = (int)(along < 0 ? along + p->rank : along);
    p->dtype = p->dtype_zero = element_type(px->node, data->dtype);
    const int64_t each = data->dtype != SDX_U8 ? 1 : 8 / sdx_dtype_bits(p->dtype);
    if (data->dtype == SDX_U8) p->zero = (float)(1 << (sdx_dtype_bits(p->dtype) - 1));
    p->depth = data->dims[p->quantize_axis] * (p->quantize_axis == p->rank - 1 ? each : 1);
    p->block = sdx_ir_attr_int(px->node, "block_size", 128);
    if (p->block == 0) p->block = p->depth > 0 ? p->depth : 1;
    if (p->block < 1)
        return SDX_FAIL(px->cx, SDX_BAD_MODEL, "GatherBlockQuantized: block_size is %lld",
                        (long long)p->block);
    p->blocks = (p->depth + p->block - 1) / p->block;
    SDX_TRY(check_gather(px, p, each));
    p->inner = p->run = p->outer = 1;
    for (int i = 0; i < p->rank; i++) {
        if (i > p->quantize_axis) p->inner *= p->dims[i];
        if (i < p->gather_axis) p->outer *= p->dims[i];
        if (i > p->gather_axis) p->run *= p->dims[i];
    }
    p->length = p->dims[p->gather_axis];
    p->rows = p->outer * px->in[1]->count;
    if (px->out[0]->count == 0) return SDX_OK;
    int64_t parts = sdx_prepare_parts((double)px->out[0]->count * 4, 1 << 15, p->rows);
    struct sdx_tensor *in[] = {data, px->in[1], px->in[2],
                               sdx_prepare_has(px, 3) ? px->in[3] : NULL};
    return sdx_prepare_step_on(px, "gather_blocks", run_gather, p, parts, 0, 4, in, 1, px->out);
}

static const struct sdx_op ops[] = {
    {"Inverse", 1, 0, infer_inverse, KERNEL(prepare_inverse)},
    {"SparseToDenseMatMul", 1, 0, infer_sparse, KERNEL(prepare_sparse), .flags = SDX_OP_DYNAMIC},
    {"MatMulBnb4", 1, 0, sdx_nbits_infer, KERNEL(prepare_bnb4), .cost = sdx_nbits_cost,
     .flags = SDX_OP_VIA_F32},
    {"GatherBlockQuantized", 1, 0, infer_gather, KERNEL(prepare_gather)},
};

const struct sdx_op_family sdx_ops_contrib_matrix = FAMILY("com.microsoft", ops);
