/* SPDX-License-Identifier: Apache-2.0
 * The usual case of RNN, GRU and LSTM: f32, constant weights and biases, standard activations, no
 * lengths, no peepholes. */
#ifndef SDX_OPS_RNN_FUSED_H
#define SDX_OPS_RNN_FUSED_H

#include "kernels/rnn_step.h"
#include "ops/rnn_walk.h"

/* Adds the node's steps. With walk->rounds the node is DynamicQuantizeLSTM, whose weights, scales
 * and zero points are constant too. */
SDX_MUST_CHECK enum sdx_status sdx_rnn_fused_prepare(struct sdx_prepare *px,
                                                     const struct sdx_rnn_walk *walk,
                                                     enum sdx_rnn_kind kind);
#endif
