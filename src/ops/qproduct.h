/* SPDX-License-Identifier: Apache-2.0
 * Batches of integer matrix products as steps: MatMulInteger, QLinearMatMul and their contrib kin.
 */
#ifndef SDX_OPS_QPRODUCT_H
#define SDX_OPS_QPRODUCT_H

#include "ops/requant.h"

enum sdx_qproduct_to {
    SDX_QPRODUCT_SUMS,    /* c: i32 */
    SDX_QPRODUCT_REQUANT, /* c: u8 or i8; bias: i32, one a column */
    SDX_QPRODUCT_FLOAT    /* c: f32 = sum * scale_a * scale_b (+ bias: f32, one a column) */
};

/* As struct sdx_product, of u8 and i8. facts.rows is 1 or m, facts.columns is n. */
struct sdx_qproduct {
    struct sdx_tensor *a, *b, *c, *bias;
    int input_b; /* the node's input that b is; -1: none of them */
    int64_t batch, m, n, k;
    const int64_t *at_a, *at_b;
    int64_t row_a, col_a, row_b, col_b;
    struct sdx_qsource facts;
    enum sdx_qproduct_to to;
    double alpha; /* multiplies scale_a */
};
SDX_MUST_CHECK enum sdx_status sdx_qproduct_prepare(struct sdx_prepare *px,
                                                    const struct sdx_qproduct *product);
/* Fills sizes, strides and places of NumPy's MatMul of a and b. */
SDX_MUST_CHECK enum sdx_status sdx_qproduct_matmul(struct sdx_prepare *px, struct sdx_qproduct *p);
/* Three steps: least and greatest value of f32 x, then scale and zero point (u8), then y. */
SDX_MUST_CHECK enum sdx_status sdx_dynamic_quantize(struct sdx_prepare *px, struct sdx_tensor *x,
                                                    struct sdx_tensor *y, struct sdx_tensor *scale,
                                                    struct sdx_tensor *zero);
#endif
