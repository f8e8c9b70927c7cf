/* SPDX-License-Identifier: Apache-2.0
 * Convolutions of bytes as steps, for the operators that are made of them. */
#ifndef SDX_OPS_CONV_QUANT_H
#define SDX_OPS_CONV_QUANT_H

#include "kernels/conv.h"
#include "kernels/qbytes.h"
#include "ops/op.h"

/* What the bytes mean: tensors of one element, those of the weights and the bias (i32, or f32 for a
 * result of f32) also of one a channel; NULL: 0 or 1. */
enum {
    SDX_CONV_Q_ZERO_X,
    SDX_CONV_Q_SCALE_X,
    SDX_CONV_Q_ZERO_W,
    SDX_CONV_Q_SCALE_W,
    SDX_CONV_Q_ZERO_Y,
    SDX_CONV_Q_SCALE_Y,
    SDX_CONV_Q_BIAS,
    SDX_CONV_Q_FACTS
};

struct sdx_conv_q_source {
    int w; /* the node's input that the weights are */
    struct sdx_tensor *facts[SDX_CONV_Q_FACTS];
    struct sdx_tensor *table;  /* of 256 bytes for those of the result; NULL: none */
    struct sdx_tensor *addend; /* bytes to be added, as y is; NULL: none */
    struct sdx_qpair sum;      /* how */
    /* NULL, or: makes weights [oc, ic / groups, kernel...] from the node's, which are constant with
     * their zero points. `variant` tells what `arg` makes of them from anything else. Output
     * channel c has the facts of c % channels. */
    void (*make)(const void *arg, const uint8_t *weights, uint8_t *to);
    const void *arg;
    int64_t variant, channels;
};
/* w and facts from a node with the inputs of QLinearConv. */
void sdx_conv_q_facts(struct sdx_prepare *px, struct sdx_conv_q_source *source);
/* Are the counts of the facts right for `channels` output channels of a result of this dtype? */
SDX_MUST_CHECK enum sdx_status sdx_conv_q_check(struct sdx_prepare *px,
                                                struct sdx_tensor *const *facts, int64_t channels,
                                                int dtype_y);
/* x and y: of bytes, or y the sums (i32) or f32; channels last in memory. */
SDX_MUST_CHECK enum sdx_status sdx_conv_q_add(struct sdx_prepare *px,
                                              const struct sdx_conv_q_source *source,
                                              const struct sdx_conv_shape *shape,
                                              struct sdx_tensor *x, struct sdx_tensor *y);
/* t where it is channels last in memory already, otherwise a temporary that is; NULL: no memory. */
struct sdx_tensor *sdx_conv_q_last(struct sdx_prepare *px, struct sdx_tensor *t);
#endif
