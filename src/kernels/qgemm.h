/* SPDX-License-Identifier: Apache-2.0
 * Integer matrix product and convolution with exact 32-bit sums on every instruction set:
 * C(i, j) = sum over k of (A(i, k) - zero_a) * (B(k, j) - zero_b(j)), modulo 2^32. A, B: u8 or s8.
 */
#ifndef SDX_KERNELS_QGEMM_H
#define SDX_KERNELS_QGEMM_H

#include "kernels/conv.h"

struct sdx_qgemm {
    int64_t m, n, k;
    const void *a; /* u8 or s8, element (i, k) at a[i * row_a + k * col_a] */
    int64_t row_a, col_a;
    bool a_signed;
    const int32_t *zero_a; /* one, or one for each row when zero_a_per_row */
    bool zero_a_per_row;
    const void *packed;    /* B, with its sums of columns */
    const int32_t *zero_b; /* one for each column (n of them) */
    int32_t *c;
    int64_t row_c;
};
/* B u8 or s8 with strides; the packed form keeps what zero_a needs. */
size_t sdx_qgemm_packed_size(int64_t k, int64_t n);
void sdx_qgemm_pack(const void *b, bool b_signed, int64_t row_b, int64_t col_b, int64_t k,
                    int64_t n, void *packed);
int64_t sdx_qgemm_panel(void);
size_t sdx_qgemm_scratch(int64_t m, int64_t n, int64_t k);
void sdx_qgemm_run(const struct sdx_qgemm *g, int64_t m0, int64_t m1, int64_t n0, int64_t n1,
                   void *scratch);

/* Integer convolution, plain layout; x u8/s8, weights u8/s8 with a zero point for each output
 * channel (often all 0); padding counts as zero_x. y: i32 sums [batch, oc, out...]. Parts as in
 * conv.h. */
struct sdx_qconv {
    struct sdx_conv_shape shape;
    bool x_signed, w_signed;
    int32_t zero_x;
    const int32_t *zero_w; /* [oc], NULL: all 0 */
};
size_t sdx_qconv_packed_size(const struct sdx_qconv *q);
void sdx_qconv_pack(const struct sdx_qconv *q, const void *weights, void *packed);
int64_t sdx_qconv_parts(const struct sdx_qconv *q);
size_t sdx_qconv_scratch(const struct sdx_qconv *q);
/* Each finished block of sums goes to store(arg, n, channel, first pixel, count, sums): requantise
 * or copy there. */
typedef void (*sdx_qconv_store_fn)(void *arg, int64_t n, int64_t channel, int64_t pixel,
                                   int64_t count, const int32_t *sums);
void sdx_qconv_part(const struct sdx_qconv *q, const void *x, const void *packed, int64_t part,
                    void *scratch, sdx_qconv_store_fn store, void *arg);
#endif
