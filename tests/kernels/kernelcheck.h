/* SPDX-License-Identifier: Apache-2.0
 * Shared by the files of kernelcheck: the list of checks, guarded buffers, random numbers, reports.
 */
#ifndef SDX_TESTS_KERNELCHECK_H
#define SDX_TESTS_KERNELCHECK_H

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/tables.h"

/* Every kernel has check_<name>, and bench_<name>: ns for one element (or multiply-accumulate). A
 * kernel added to a list of vec.h that has none does not link. */
/* clang-format off */
#define CHECK_VEC_OTHERS(X) \
    X(f32_dot) X(f32_axpy) X(f32_mix) X(f32_mix_cells) X(f32_distances) X(f32_exp_sum) \
    X(f32_softmax) X(f32_softmax_masked) \
    X(f32_log_softmax) X(f32_arg_columns) X(f32_top_columns) X(f32_overlaps) X(f32_above) \
    X(f32_softmax_columns) X(f32_layer_norm) X(f32_layer_norm_rows) X(f32_rms_norm) \
    X(f32_rms_norm_rows) X(f32_affine) X(f16_to_f32) X(f32_to_f16) X(bf16_to_f32) X(f32_to_bf16) \
    X(u8_to_f32) X(s8_to_f32) X(u8_mix) X(b32_transpose) X(b32_rows) X(f32_add_outer) \
    X(f32_rotate) \
    X(f32_rotate_pairs)
#define CHECK_SUBJECTS(X) \
    X(gemm_f32) X(gemm_f32_plain) X(gemm_tiles) X(gemm_half) X(gemm_f64) X(gemm_b32) X(nbits) \
    X(conv_f32) \
    X(conv_f32_depthwise) X(qconv) \
    X(conv_block) X(conv_block_half) X(conv_block_reorder) X(depthwise_block) X(conv_bands) \
    X(winograd_block) \
    X(winograd_half) \
    X(qdot) X(qbytes) X(channel_block) X(pool_block) X(rnn_step) X(fft_lanes) \
    X(elements) X(sample)
/* clang-format on */

#define CHECK_DECLARE(name)                                                                        \
    void check_##name(void);                                                                       \
    double bench_##name(void);
#define CHECK_DECLARE_MAP(name)    CHECK_DECLARE(f32_map_##name)
#define CHECK_DECLARE_BINARY(name) CHECK_DECLARE(f32_binary_##name)
#define CHECK_DECLARE_REDUCE(name) CHECK_DECLARE(f32_reduce_##name)
SDX_VEC_MAPS(CHECK_DECLARE_MAP)
SDX_VEC_BINARIES(CHECK_DECLARE_BINARY)
SDX_VEC_REDUCTIONS(CHECK_DECLARE_REDUCE)
CHECK_VEC_OTHERS(CHECK_DECLARE)
CHECK_SUBJECTS(CHECK_DECLARE)

/* The tables of the set in hand and the generic ones. */
extern const struct sdx_vec *vec_now;
extern struct sdx_vec vec_generic;

/* Counts a comparison; the first few failures of a kernel are printed. Returns ok. */
bool expect(bool ok, const char *format, ...) __attribute__((__format__(__printf__, 2, 3)));

/* The `done` of a struct sdx_pieces: each piece begins at *next, where the one before ended. */
void expect_piece(void *next, const sdx_weight_f32 *begin, int64_t count);

/* Uniform numbers from a generator that every check begins anew. */
uint32_t random_bits(void);
float random_float(float lo, float hi);
int64_t random_int(int64_t lo, int64_t hi); /* both included */

/* n random numbers that 16 bits hold, to x and, as they are, to the 16-bit y (NULL: not wanted). */
void random_half(enum sdx_half half, float *x, uint16_t *y, int64_t n);
/* A random tensor [batch][ceil(channels / lanes)][pixels][lanes] in a guarded buffer, with large
 * values in the lanes beyond the channels. */
float *blocked_tensor(int64_t batch, int64_t channels, int64_t pixels, int64_t lanes);
/* The activation of an epilogue by its definition. */
double exact_activation(double x, const struct sdx_epilogue *epilogue);

/* n bytes at `offset` beyond a 64-byte boundary with guard bytes around them; until the check ends.
 */
void *guarded(size_t n, size_t offset);
/* All guards of the check untouched? */
bool guards_intact(void);
/* Frees what guarded() gave. */
void guards_release(void);

/* Steps in f32 between a and the exact value b; 0 for NaN and NaN. */
double ulp_error(float a, double b);
bool same_bits(float a, float b); /* any NaN equals any NaN */

/* Best processor time of a few runs of fn(arg), in ns. */
double best_ns(void (*fn)(void *arg), void *arg);
#endif
