/* SPDX-License-Identifier: Apache-2.0
 * Matrix product C = epilogue(A * B) with packed operands and register tiles, f32 and f64, and its
 * integer kin in qdot.h. Every function works on one thread over a given range; the caller splits
 * work into parts. The order of additions over K depends on K only, not on M, N or the range: a row
 * has the same bits in any batch and any split. Numbers of f32 below 2^-126 count as 0. */
#ifndef SDX_KERNELS_GEMM_H
#define SDX_KERNELS_GEMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

/* Weights, as they lie in a model file: at any address. */
typedef float sdx_weight_f32 SDX_ANYWHERE;
/* Who hears, while large weights are packed, which of them are not read any more: `count` from
 * `begin` on, a piece behind the other. */
struct sdx_pieces {
    void (*done)(void *user, const sdx_weight_f32 *begin, int64_t count);
    void *user;
};

/* What happens at the store of GEMM and convolution. */
enum sdx_act {
    SDX_ACT_NONE,
    SDX_ACT_RELU,
    SDX_ACT_CLIP /* a, b */,
    SDX_ACT_LEAKY_RELU /* a */,
    SDX_ACT_SIGMOID,
    SDX_ACT_TANH,
    SDX_ACT_SILU,
    SDX_ACT_HARD_SWISH,
    SDX_ACT_HARD_SIGMOID /* a, b */,
    SDX_ACT_GELU_ERF,
    SDX_ACT_GELU_TANH
};
struct sdx_epilogue {
    const float *bias_col; /* one for each column of C, or NULL */
    const float *bias_row; /* one for each row of C (output channel of a convolution), or NULL */
    const float *residual; /* same layout and strides as C, added before the activation, or NULL */
    enum sdx_act act;
    float a, b;
};

/* How 16 bits hold a weight. */
enum sdx_half { SDX_HALF_NONE, SDX_HALF_F16, SDX_HALF_BF16 };
/* n of them; src and dst do not overlap. To 16 bits: exact for values that came from there. */
void sdx_half_decode(enum sdx_half half, const uint16_t *src, float *dst, int64_t n);
void sdx_half_encode(enum sdx_half half, const float *src, uint16_t *dst, int64_t n);

/* B [K, N] with strides (in elements) row_b, col_b: B(k, n) = b[k * row_b + n * col_b]; so a
 * transposed operand costs nothing. Packed: panels of a width that the CPU's tile wants. Sizes in
 * bytes, 64-byte aligned. */
size_t sdx_gemm_f32_packed_size(int64_t k, int64_t n);
void sdx_gemm_f32_pack(const sdx_weight_f32 *b, int64_t row_b, int64_t col_b, int64_t k, int64_t n,
                       float *packed);
/* The same by pieces of some megabytes. */
void sdx_gemm_f32_pack_in_pieces(const sdx_weight_f32 *b, int64_t row_b, int64_t col_b, int64_t k,
                                 int64_t n, float *packed, const struct sdx_pieces *pieces);
/* Column j of a packed B becomes scale[j] times itself. */
void sdx_gemm_f32_pack_scale(const sdx_weight_f32 *scale, int64_t k, int64_t n, float *packed);
/* The same order, and half the size, for a B of 16-bit numbers, which are decoded where they are
 * used: results have the bits that a decoded B gives. */
size_t sdx_gemm_half_packed_size(int64_t k, int64_t n);
void sdx_gemm_half_pack(const uint16_t *b, int64_t row_b, int64_t col_b, int64_t k, int64_t n,
                        uint16_t *packed);
/* Columns a panel holds: ranges n0..n1 begin at multiples of it. */
int64_t sdx_gemm_f32_panel(void);

/* C(i, j) for i in m0..m1, j in n0..n1 (n0 a multiple of the panel, n1 too unless it is n).
 * a: element (i, k) at a[i * row_a + k * col_a]; col_a == 1 is read in place, anything else is
 * packed into scratch. c: element (i, j) at c[i * row_c + j]. The sums begin at C when accumulate
 * is true, else at 0. alpha multiplies them (before bias); with accumulate it is 1. K = 0 gives the
 * epilogue of 0 or C. */
struct sdx_gemm_f32 {
    int64_t m, n, k;
    const float *a;
    int64_t row_a, col_a;
    const void *packed; /* of B: float, or uint16_t when half says so */
    enum sdx_half half;
    float *c;
    int64_t row_c;
    float alpha;
    bool accumulate;
    bool residual_first; /* it may be C: added to the sums of the first block of K, which the packed
                            form cuts; alpha is 1 */
    const void *a_tiles; /* what sdx_gemm_f32_tile_a made of all m rows, and packed is what
                            sdx_gemm_tiles_pack, or sdx_gemm_half_tiles_pack with half, made;
                            NULL: they are not; with them a may be NULL: then what is not
                            finite makes a row or column NaN */
    bool a_in_blocks; /* a is what sdx_gemm_f32_block_a made of all m rows; row_a, col_a unused */
    struct sdx_epilogue epilogue;
};
/* Ranges of columns copy A into their scratch, each again: true where one copy of A before (m * k
 * floats, 64-byte aligned) is worth it. block_a writes its rows m0..m1. */
bool sdx_gemm_f32_wants_blocks(int64_t m, int64_t k, int64_t col_a);
void sdx_gemm_f32_block_a(const struct sdx_gemm_f32 *g, int64_t m0, int64_t m1, float *blocks);
/* Where the machine multiplies tiles of bytes (AMX), products with a constant B are made of them:
 * rows of A and columns of B are whole numbers of 24 bits times a scale, for each span of up to
 * 1024 k, and six of nine products of their digits are summed exactly. Error: (k 2^-20 max|a|
 * max|b|) of a row and a column at most; with random operands below 2e-6 of the output's largest
 * magnitude, about that of a chain of FMAs over 400 k. Scales of numbers of 16 bits are powers of
 * 2: sums of whole numbers are exact. Does this product go that way? k and n alone decide, so a row
 * has the same bits in any batch. */
bool sdx_gemm_f32_wants_tiles(int64_t k, int64_t n);
/* Cycles of one of many rows (Sapphire Rapids); are they fewer than by FMAs? */
double sdx_gemm_f32_tiles_cost(int64_t k, int64_t n);
bool sdx_gemm_f32_tiles_pay(int64_t k, int64_t n);
/* As sdx_gemm_f32_pack, with row_b or col_b 1; column j times scale[j], NULL: as it is. */
size_t sdx_gemm_tiles_packed_size(int64_t k, int64_t n);
void sdx_gemm_tiles_pack(const sdx_weight_f32 *b, int64_t row_b, int64_t col_b,
                         const sdx_weight_f32 *scale, int64_t k, int64_t n, void *packed);
/* The same of 16-bit numbers, in as many bytes as these, brought into tiles where they are used, as
 * whole numbers of 23 bits: within the same error, but not the bits that a decoded B gives. Such a
 * product needs that scratch for one part. */
size_t sdx_gemm_half_tiles_packed_size(int64_t k, int64_t n);
void sdx_gemm_half_tiles_pack(const uint16_t *b, int64_t row_b, int64_t col_b, enum sdx_half half,
                              int64_t k, int64_t n, void *packed);
size_t sdx_gemm_half_tiles_scratch(int64_t k);
/* A is brought into tiles of so many rows; ranges m0..m1 begin at multiples of them. Tiles t0..t1
 * are written here, to their places from `tiles` on, 64-byte aligned. */
int64_t sdx_gemm_f32_tile_rows(int64_t m);
size_t sdx_gemm_f32_tiles_size(int64_t m, int64_t k);
void sdx_gemm_f32_tile_a(const struct sdx_gemm_f32 *g, int64_t t0, int64_t t1, void *tiles);
/* Bytes for one part, any range of it. */
size_t sdx_gemm_f32_scratch(int64_t m, int64_t n, int64_t k);
size_t sdx_gemm_half_scratch(int64_t m, int64_t n, int64_t k);
void sdx_gemm_f32_run(const struct sdx_gemm_f32 *g, int64_t m0, int64_t m1, int64_t n0, int64_t n1,
                      void *scratch);

/* B not constant and M small, or one product only: without a packed B. b(k, n) = b[k * row_b + n *
 * col_b]. */
size_t sdx_gemm_f32_plain_scratch(int64_t m, int64_t n, int64_t k);
void sdx_gemm_f32_plain(const struct sdx_gemm_f32 *g, const float *b, int64_t row_b, int64_t col_b,
                        int64_t m0, int64_t m1, int64_t n0, int64_t n1, void *scratch);

/* y[i] = sum over k of a[i * row_a + k] * x[k] for i < m: a product with one column whose A is used
 * once, so nothing is packed. Summed in lanes: 2 k 2^-24 * sum |a| |x|. */
void sdx_gemm_f32_rows_dot(const float *a, int64_t row_a, const float *x, int64_t m, int64_t k,
                           float *y);

/* Rows m0 .. m1 of a product of at most SDX_GEMM_COLUMNS columns, packed as [n][k]: sums as above,
 * of rows of up to SDX_GEMM_SHORT_ROW in order, then bias_col and the activation. col_a is 1, row_c
 * is n, alpha 1. */
enum { SDX_GEMM_COLUMNS = 6, SDX_GEMM_SHORT_ROW = 24 };
void sdx_gemm_f32_columns(const struct sdx_gemm_f32 *g, int64_t m0, int64_t m1);

/* `count` products of small matrices, 1 <= m, n, k <= SDX_GEMM_SMALL, each in one piece behind the
 * one before; strides of A and B within them. Products are summed in order, each rounded. */
enum { SDX_GEMM_SMALL = 4 };
struct sdx_gemm_small {
    int64_t m, n, k, row_a, col_a, row_b, col_b;
};
void sdx_gemm_f32_small(const struct sdx_gemm_small *g, int64_t count, const float *a,
                        const float *b, float *c);

/* f64, simple blocked kernel: C = alpha * A * B + beta * C. Strides as above. */
void sdx_gemm_f64(int64_t m, int64_t n, int64_t k, double alpha, const double *a, int64_t row_a,
                  int64_t col_a, const double *b, int64_t row_b, int64_t col_b, double beta,
                  double *c, int64_t row_c);

/* C = A * B of integers of 32 bits, signed or not, modulo 2^32. Strides as above. */
void sdx_gemm_b32(int64_t m, int64_t n, int64_t k, const uint32_t *a, int64_t row_a, int64_t col_a,
                  const uint32_t *b, int64_t row_b, int64_t col_b, uint32_t *c, int64_t row_c);
#endif
