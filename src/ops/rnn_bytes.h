/* SPDX-License-Identifier: Apache-2.0
 * The products of DynamicQuantizeLSTM in integers (kernels/qdot.h): rows of bytes with one scale
 * and zero point, weights of bytes with those of each direction or column. */
#ifndef SDX_OPS_RNN_BYTES_H
#define SDX_OPS_RNN_BYTES_H

#include "kernels/qdot.h"
#include "kernels/rnn_step.h"
#include "ops/op.h"

static inline int sdx_rnn_facts_of(int i)
{
    return 8 + 2 * (i - 1);
}
/* Scale and zero point of DynamicQuantizeLinear for n floats. */
void sdx_rnn_byte_scale(const float *x, int64_t n, float *scale, int32_t *zero);

/* The node's weights [directions, k, gates * hidden], of each direction a matrix packed with
 * columns in the order of sdx_rnn_column(). */
struct sdx_rnn_bytes {
    struct sdx_qdot_shape shape; /* of one direction */
    const char *packed;
    size_t size;   /* of one direction's */
    float *scale;  /* of each column; columns of no unit: 0 */
    int32_t *zero; /* the same, less 128 for unsigned weights; NULL: all 0 */
};
/* Of input i of the node (1: W, 2: R), whose scales and zero points are input sdx_rnn_facts_of(i)
 * and the one after it; all are constant. rows: of each product. */
SDX_MUST_CHECK enum sdx_status sdx_rnn_bytes_prepare(struct sdx_prepare *px, int i,
                                                     enum sdx_rnn_kind kind, int64_t hidden,
                                                     int64_t rows, struct sdx_rnn_bytes *w);

/* Rows of k bytes, `pitch` apart. May be read up to 15 bytes beyond the last where k is below 16.
 */
struct sdx_rnn_rows {
    const uint8_t *x;
    int64_t count, pitch;
    float scale;
    int32_t zero;
};
/* y[i * pitch + j] = sum over k of the products of row i and column j + bias[j], for columns n0 ..
 * n1 - 1, multiples of SDX_QDOT_COLS; bias NULL: 0. */
void sdx_rnn_bytes_multiply(const struct sdx_rnn_bytes *w, int direction,
                            const struct sdx_rnn_rows *rows, int64_t n0, int64_t n1,
                            const float *bias, float *y, int64_t pitch, void *scratch);
size_t sdx_rnn_bytes_scratch(const struct sdx_rnn_bytes *w);
#endif
