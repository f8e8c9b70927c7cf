/* SPDX-License-Identifier: Apache-2.0
 * The sliding window of convolutions and pools: its attributes, their checks, and lengths of
 * outputs. */
#ifndef SDX_OPS_WINDOW_H
#define SDX_OPS_WINDOW_H

#include "kernels/conv.h"
#include "ops/op.h"

enum sdx_auto_pad { SDX_PAD_EXPLICIT, SDX_PAD_SAME_UPPER, SDX_PAD_SAME_LOWER, SDX_PAD_VALID };

/* Arrays hold `rank` spatial axes. kernel[i] < 0: not known. Pads are those of the attribute until
 * sdx_window_length has seen the axis. */
struct sdx_window {
    int rank;
    enum sdx_auto_pad auto_pad;
    bool ceil_mode;
    int64_t kernel[SDX_RANK_MAX], stride[SDX_RANK_MAX], dilation[SDX_RANK_MAX];
    int64_t pad_begin[SDX_RANK_MAX], pad_end[SDX_RANK_MAX];
};

/* Reads kernel_shape, strides, dilations, pads, auto_pad, ceil_mode. `kernel`: spatial lengths of
 * the weights (entries < 0: unknown), with which kernel_shape must agree; NULL: kernel_shape is
 * required. */
SDX_MUST_CHECK enum sdx_status sdx_window_read(struct sdx_context *cx,
                                               const struct sdx_ir_node *node, int rank,
                                               const int64_t *kernel, struct sdx_window *w);
/* Length of axis i of the output for an input of length `in` (-1, or the symbol itself when the
 * length does not change, for an unknown one); completes pad_begin and pad_end of auto_pad. */
SDX_MUST_CHECK enum sdx_status sdx_window_length(struct sdx_context *cx,
                                                 const struct sdx_ir_node *node,
                                                 struct sdx_window *w, int i, int64_t in,
                                                 int64_t *out);
/* The same of dims[i + 2] for all axes of a node's output; a length that is reckoned from a symbol
 * becomes one. */
SDX_MUST_CHECK enum sdx_status sdx_window_infer(struct sdx_infer *ix, struct sdx_window *w,
                                                const int64_t *dims, int64_t *out);
/* Length that a window covers: (kernel - 1) * dilation + 1. false: too large. */
bool sdx_window_extent(const struct sdx_window *w, int i, int64_t *extent);
/* The window, with known lengths, as a convolution of at most three spatial axes (in, out: rank
 * lengths each). */
void sdx_window_shape(const struct sdx_window *w, const int64_t *in, const int64_t *out,
                      struct sdx_conv_shape *shape);
#endif
