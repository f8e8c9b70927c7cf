/* SPDX-License-Identifier: Apache-2.0
 * Integer matrix product with exact 32-bit sums on every instruction set:
 * C(i, j) = sum over k of (A(i, k) - zero_a) * (B(k, j) - zero_b(j)), modulo 2^32. A, B: u8 or s8.
 */
#ifndef SDX_KERNELS_QGEMM_H
#define SDX_KERNELS_QGEMM_H

#include "kernels/gemm.h"

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

#endif
