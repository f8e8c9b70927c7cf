/* SPDX-License-Identifier: Apache-2.0
 * Transposed convolutions by phases. Along an axis of stride s, outputs o with (o + pad) mod s = f
 * depend on the taps k with (k * dilation) mod s = f only, and on consecutive inputs: an ordinary
 * convolution of stride 1 with the weights reversed. Phases of one shape become the output channels
 * of one convolution. */
#ifndef SDX_OPS_CONV_TRANSPOSE_H
#define SDX_OPS_CONV_TRANSPOSE_H

#include "kernels/conv.h"
#include "ops/op.h"

/* One axis of one phase: outputs first, first + stride, ... (count of them); taps tap, tap +
 * tap_step, ... (taps of them) with inputs begin - j * dilation for the first output. */
struct sdx_phase_axis {
    int64_t first, count, tap, tap_step, taps, dilation, begin;
};
struct sdx_phase {
    struct sdx_phase_axis axes[3];
    int32_t group, slot; /* convolution it belongs to (-1: no taps) and its place there */
};
/* A convolution of stride 1 that makes `slots` phases at once. */
struct sdx_phase_conv {
    struct sdx_conv_shape s; /* oc: `channels` for each slot */
    int32_t slots;
    int32_t first; /* phase that tells the shape */
    const void *packed;
};
struct sdx_phases {
    struct sdx_conv_shape t; /* as given: strides, dilations, pads of the transposed convolution */
    struct sdx_phase *phases;
    int32_t count_phases;
    struct sdx_phase_conv *convs;
    int32_t count_convs;
    int64_t channels; /* of a phase in the output of its convolution: t.oc or more */
    bool is_apart;    /* given: a convolution makes one phase only */
};

/* Of inputs x and w [ic, oc / groups, kernel...] (and bias, -1: none) of this dtype. */
SDX_MUST_CHECK enum sdx_status sdx_conv_transpose_infer_of(struct sdx_infer *ix, int x, int w,
                                                           int bias, int dtype);
void sdx_conv_transpose_cost_of(const struct sdx_infer *ix, int w, struct sdx_cost *cost);
/* The transposed convolution of input 0 and input w as given. */
SDX_MUST_CHECK enum sdx_status sdx_conv_transpose_shape(struct sdx_prepare *px, int w,
                                                        struct sdx_conv_shape *t);
/* Fills p from p->t and p->is_apart; a phase's channels are rounded up to a multiple of `lanes`
 * where there are several phases. */
SDX_MUST_CHECK enum sdx_status sdx_phases_find(struct sdx_prepare *px, int64_t lanes,
                                               struct sdx_phases *p);
/* The taps of a phase, reversed, from those of one filter [kernel...] of elements of `size` bytes
 * (1 or 4); returns the end of `to`. */
void *sdx_phase_filter(const struct sdx_conv_shape *t, const struct sdx_phase *phase,
                       const void *from, size_t size, void *to);
/* What the weights and the choice of phases of convolution g depend on. */
int64_t sdx_phases_variant(const struct sdx_phases *p, int32_t g);
#endif
