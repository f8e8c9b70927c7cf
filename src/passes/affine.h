/* SPDX-License-Identifier: Apache-2.0
 * Operators that scale and shift each channel of axis 1 by constants (pass_affine.c). */
#ifndef SDX_PASSES_AFFINE_H
#define SDX_PASSES_AFFINE_H

#include "ops/op.h"

/* What becomes of channel c: y * scale[c] + shift[c]. */
struct sdx_affine {
    int64_t channels;
    double *scale, *shift;
    bool scales;
};
/* Room for so many channels, which stay as they are. */
SDX_MUST_CHECK enum sdx_status sdx_affine_init(struct sdx_context *cx, struct sdx_ir *ir,
                                               int64_t channels, struct sdx_affine *f);
/* Does the node, a BatchNormalization, Mul, Div, Add or Sub of a value of this rank with
 * f->channels channels and constants of f32, do that? *operand: the input that is the value. */
bool sdx_affine_read(const struct sdx_ir_graph *g, const struct sdx_ir_node *node, int rank,
                     struct sdx_affine *f, int *operand);
#endif
