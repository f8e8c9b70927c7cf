/* SPDX-License-Identifier: Apache-2.0
 * Products of floats with weights of 2, 4 or 8 bits in blocks along K, each with a scale and a zero
 * point: B(k, n) = q(k, n) * scale + shift with shift = -zero * scale, in one FMA where there is
 * one. The weights stay as they are in memory: with up to 4 rows they are decoded in registers,
 * with more a panel at a time in scratch. The sum over K is one chain in rising k, whatever the
 * number of rows and the range. One thread, a range of columns, as in gemm.h.
 *
 * Whole products: A too becomes whole numbers, of 8 bits with a scale for each row and block, and
 * the sum of a block is exact. See sdx_nbits_rows. */
#ifndef SDX_KERNELS_NBITS_H
#define SDX_KERNELS_NBITS_H

#include "kernels/gemm.h"

/* block: a multiple of 32 / bits; has_zeros: otherwise all zero points are the middle; whole:
 * packed for sdx_nbits_run_whole and for nothing else. */
struct sdx_nbits {
    int64_t n, k, block;
    int bits;
    bool has_zeros, whole;
};
enum { SDX_NBITS_WHOLE_BLOCK = 1 << 17 }; /* the longest whose sum fits 32 bits */

/* Weight (k, n) is element n * row + k * column of `weights`, `bits` wide from the low end of each
 * byte, with its top bit turned when is_signed. scales, zeros: [n][blocks of k]; zeros (of the
 * unsigned weight) may be NULL. */
struct sdx_nbits_source {
    const uint8_t *weights;
    int64_t row, column;
    bool is_signed;
    const float *scales, *zeros;
};

size_t sdx_nbits_packed_size(const struct sdx_nbits *w);
void sdx_nbits_pack(const struct sdx_nbits *w, const struct sdx_nbits_source *source, void *packed);

/* C(i, j) for i in 0..m, j in n0..n1; n0 and n1 as in sdx_gemm_f32_run, the panel's width too.
 * a: [m, k] with rows row_a apart. Epilogue without residual. */
size_t sdx_nbits_scratch(const struct sdx_nbits *w, int64_t m);
void sdx_nbits_run(const struct sdx_nbits *w, const void *packed, int64_t m, const float *a,
                   int64_t row_a, float *c, int64_t row_c, const struct sdx_epilogue *epilogue,
                   int64_t n0, int64_t n1, void *scratch);

/* Whole products. With a block's scale s = max |a| / 127 a number of A is q = a / s, rounded to
 * nearest even; a block of zeros has s = 0 and q = 0. With weights p and zero points z less the
 * middle, C is a chain over the blocks of float(sum q p) * (s scale) and, when has_zeros, of
 * (s float(sum q)) * (-z scale), in FMAs where there are: the same bits for any number of rows and
 * any range. A block with NaN or infinity gives no finite number.
 *
 * rows: sdx_nbits_row_bytes a row of A, a multiple of 4; sdx_nbits_rows fills rows i0..i1 of it.
 * bias (may be NULL): n numbers. block: at most SDX_NBITS_WHOLE_BLOCK. */
size_t sdx_nbits_row_bytes(const struct sdx_nbits *w);
void sdx_nbits_rows(const struct sdx_nbits *w, const float *a, int64_t row_a, int64_t i0,
                    int64_t i1, void *rows);
void sdx_nbits_run_whole(const struct sdx_nbits *w, const void *packed, int64_t m, const void *rows,
                         float *c, int64_t row_c, const float *bias, int64_t n0, int64_t n1);
#endif
