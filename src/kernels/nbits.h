/* SPDX-License-Identifier: Apache-2.0
 * Products of floats with weights of 2, 4 or 8 bits in blocks along K, each with a scale and a zero
 * point: B(k, n) = (q(k, n) - zero) * scale. The weights stay as they are in memory and are decoded
 * in registers. One thread, a range of columns, as in gemm.h.
 *
 * Rows of A are made ready first, and C has the same bits for any number of rows and any range. A
 * row with NaN or infinity gives no finite number.
 *
 * Floats: with the middle z of q, 2^(bits - 1), C is a chain over runs of up to SDX_NBITS_RUN
 * numbers of a block, scale * sum((q - z) a), and then over blocks of (z - zero) * scale * sum(a).
 * The sum of a run is a chain too; with 2 and 4 bits it begins at -z sum(a) less the part of the
 * topmost weight of each word, and adds q a. In FMAs where there are. With 4 bits and vpdpbusd
 * numbers of A are whole ones of 24 bits instead, with a scale for each run, max |a| / 8355709
 * (2^-23 of the greatest), and the sum of a run is exact before it becomes a float.
 *
 * Whole: A becomes whole numbers of 8 bits with a scale for each row and block, s = max |a| / 127:
 * q' = a / s rounded to nearest even; a block of zeros has s = 0 and q' = 0. C is a chain over the
 * blocks of float(sum q' (q - z)), which is exact, times (s * scale) and, when has_zeros, of
 * s * float(sum q') times (z - zero) * scale. */
#ifndef SDX_KERNELS_NBITS_H
#define SDX_KERNELS_NBITS_H

#include "kernels/gemm.h"

/* block: a multiple of 32 / bits, of whole products at most SDX_NBITS_WHOLE_BLOCK; has_zeros:
 * otherwise all zero points are the middle; whole: packed for whole products and for nothing else.
 */
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

/* Is the packed form of these weights that of whole products? */
bool sdx_nbits_packs_bytes(const struct sdx_nbits *w);
size_t sdx_nbits_packed_size(const struct sdx_nbits *w);
void sdx_nbits_pack(const struct sdx_nbits *w, const struct sdx_nbits_source *source, void *packed);

/* Ranges of so many columns, or a multiple, are computed the fastest; m: rows of A. */
int64_t sdx_nbits_columns(const struct sdx_nbits *w, int64_t m);

/* rows: of m rows of A, in a form that depends on m; sdx_nbits_rows fills rows i0..i1 of it, a:
 * [m, k] with rows row_a apart. sdx_nbits_run: C(i, j) for i in 0..m, j in n0..n1; n0 and n1 as in
 * sdx_gemm_f32_run, the panel's width too. Epilogue without residual. */
size_t sdx_nbits_rows_size(const struct sdx_nbits *w, int64_t m);
void sdx_nbits_rows(const struct sdx_nbits *w, int64_t m, const float *a, int64_t row_a, int64_t i0,
                    int64_t i1, void *rows);
void sdx_nbits_run(const struct sdx_nbits *w, const void *packed, int64_t m, const void *rows,
                   float *c, int64_t row_c, const struct sdx_epilogue *epilogue, int64_t n0,
                   int64_t n1);
#endif
