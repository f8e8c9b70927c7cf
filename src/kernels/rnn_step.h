/* SPDX-License-Identifier: Apache-2.0
 * One time step of RNN, GRU and LSTM in f32 with their usual activations: the product with the
 * recurrent weights in register tiles, then the gates and the new state. All gates of a few units
 * lie side by side ("columns", sdx_rnn_column), so that a tile has them all. A row has the same
 * bits in any batch, a unit among any others. */
#ifndef SDX_KERNELS_RNN_STEP_H
#define SDX_KERNELS_RNN_STEP_H

#include <stddef.h>
#include <stdint.h>

/* LSTM: gates i, o, f, g. GRU: z, r, n with the reset applied after the product
 * (linear_before_reset). RNN_TANH, RNN_RELU: one gate. */
enum sdx_rnn_kind { SDX_RNN_TANH, SDX_RNN_RELU, SDX_RNN_GRU, SDX_RNN_LSTM };

int sdx_rnn_gates(enum sdx_rnn_kind kind);
/* Floats in a row of states, and in a row of gates; both whole vectors. */
int64_t sdx_rnn_padded(int64_t hidden);
int64_t sdx_rnn_width(enum sdx_rnn_kind kind, int64_t hidden);
/* Where gate `gate` of unit `unit` is in a row of gates. Columns of no unit hold anything finite.
 */
int64_t sdx_rnn_column(enum sdx_rnn_kind kind, int gate, int64_t unit);
/* Recurrent weights r [gates * hidden, hidden] of one direction; the size in bytes. */
size_t sdx_rnn_packed_size(enum sdx_rnn_kind kind, int64_t hidden);
void sdx_rnn_pack(enum sdx_rnn_kind kind, int64_t hidden, const float *r, float *packed);

/* Units that calls may be split by are multiples of this. */
int64_t sdx_rnn_units(void);

struct sdx_rnn_step {
    enum sdx_rnn_kind kind;
    int64_t rows, hidden;
    int64_t begin, end; /* units to do; end: `padded`, or a multiple of sdx_rnn_units() */
    const float *x; /* input's part of the gates, all biases included but bias_h: rows of columns */
    int64_t row_x;
    const float *weights; /* packed; NULL: gates hold all that the weights would give */
    const float *bias_h;  /* GRU: added to the recurrent part of n; [padded] */
    const float *h;       /* rows of states, `padded` floats apart */
    float *h_next;        /* the same; not h */
    float *c;             /* LSTM: the same; changed in place */
    float *gates;         /* room for rows of gates, `width` floats apart */
};
void sdx_rnn_step_f32(const struct sdx_rnn_step *step);
#endif
