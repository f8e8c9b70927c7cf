/* SPDX-License-Identifier: Apache-2.0
 * Batches of matrix products as steps: what MatMul, Gemm, Einsum and their fused kin share; and the
 * activation that fused operators carry. */
#ifndef SDX_OPS_PRODUCT_H
#define SDX_OPS_PRODUCT_H

#include "kernels/gemm.h"
#include "ops/op.h"

/* C[i] = act((alpha * A[i] * B[i] + bias) * scale + residual) for i in 0..batch-1, of any element
 * type that MatMul or Einsum allow but the 16-bit floats, which only a constant b beside an f32 a
 * may have. Strides and places are in elements. Integers wrap. Only f32 has bias, scale (of
 * columns; it, B and the bias are constant), residual and activation; alpha is for floats. */
struct sdx_product {
    struct sdx_tensor *a, *b, *c;
    int input_b; /* the node's input that b is; -1: none of them */
    int64_t batch, m, n, k;
    const int64_t *at_a, *at_b; /* `batch` places of the plan's memory; NULL: all 0 */
    int64_t row_a, col_a, row_b, col_b;
    double alpha; /* product i of C is contiguous at i * m * n */
    struct sdx_tensor *bias_col, *bias_row, *scale_col,
        *residual; /* f32; bias for every product the same */
    enum sdx_act act;
    float act_a, act_b;
};
SDX_MUST_CHECK enum sdx_status sdx_product_prepare(struct sdx_prepare *px,
                                                   const struct sdx_product *product);

/* Places of the operands' matrices under NumPy broadcasting of the leading dims (rank - 2 of them):
 * *at[0], *at[1] get `count` entries. dims_c: the broadcast shape. */
SDX_MUST_CHECK enum sdx_status sdx_product_places(struct sdx_prepare *px, int rank_batch,
                                                  const int64_t *dims_c,
                                                  const struct sdx_tensor *operand,
                                                  int64_t elements, int64_t count,
                                                  const int64_t **at);

/* How `batch` products of m x n are split into parts, from shapes only: whole products when there
 * are many, otherwise blocks of rows and columns of one. */
struct sdx_split {
    int64_t batch, m, n, step_m, step_n; /* columns are cut at multiples of step_n */
    int64_t split_m, split_n, per_part;
    int64_t parts;
};
struct sdx_split_range {
    int64_t begin, end, m0, m1, n0, n1; /* products; rows and columns of each */
};
/* Rows are cut at multiples of step_m, or, when that is 0, such that suit tiles of 4, 6, 12 and 14
 * rows. */
struct sdx_split sdx_split_make(int64_t batch, int64_t m, int64_t n, int64_t k, int64_t step_m,
                                int64_t step_n);
struct sdx_split_range sdx_split_at(const struct sdx_split *s, int64_t part);
/* The parts from *part to `end` at the most that are one range, which *part becomes the end of. */
struct sdx_split_range sdx_split_next(const struct sdx_split *s, int64_t *part, int64_t end);

/* Attributes "activation" (name of an ONNX operator, Silu, HardSwish or Gelu, GeluTanh) and
 * "activation_params" (or activation_alpha, activation_beta). */
SDX_MUST_CHECK enum sdx_status sdx_fused_act(struct sdx_context *cx, const struct sdx_ir_node *node,
                                             enum sdx_act *act, float *a, float *b);

/* How 16 bits hold the elements of `weights`; NONE for other types. */
static inline enum sdx_half sdx_half_of(const struct sdx_tensor *weights)
{
    return weights->dtype == SDX_F16    ? SDX_HALF_F16
           : weights->dtype == SDX_BF16 ? SDX_HALF_BF16
                                        : SDX_HALF_NONE;
}
/* Constant weights as f32, for packing: where they are, or decoded into *temp, which the caller
 * frees. NULL: no memory (error is set). */
const sdx_weight_f32 *sdx_weights_f32(struct sdx_context *cx, const struct sdx_tensor *weights,
                                      float **temp);
/* For the packing of large f32 weights, whose pieces then leave memory one by one; NULL for others.
 */
const struct sdx_pieces *sdx_drops_pieces(struct sdx_prepare *px, const struct sdx_tensor *weights,
                                          struct sdx_pieces *pieces);

/* A number that names a packed form: a mixture of `count` values. */
int64_t sdx_pack_variant(const int64_t *values, int count);
#endif
