/* SPDX-License-Identifier: Apache-2.0
 * Layouts of operands other than row-major (enum sdx_layout): headers, reorder steps, and the
 * choice that elementwise operators make. */
#ifndef SDX_OPS_LAYOUT_H
#define SDX_OPS_LAYOUT_H

#include "ops/op.h"

/* Can a value of this type and shape be laid out so? Rank 3 to 5; blocked: f32; last:
 * 8-bit integers. */
bool sdx_layout_serves(int layout, int dtype, int rank);
/* Header without data of the logical shape in `layout`. NULL: error is set. */
struct sdx_tensor *sdx_layout_tensor(struct sdx_context *cx, struct sdx_arena *arena, int dtype,
                                     int rank, const int64_t *dims, int layout);
/* A plain header of the shape that `t` has in memory, among operands in `layout`: [N, C / b,
 * spatial..., b] or [N, spatial..., C]. A plain `t` has one channel or is a scalar there. NULL:
 * error is set. */
struct sdx_tensor *sdx_layout_physical(struct sdx_context *cx, struct sdx_arena *arena,
                                       const struct sdx_tensor *t, int layout);
/* Are the elements of a plain tensor of these dims where `layout` would have them? */
bool sdx_layout_is_same(int layout, int rank, const int64_t *dims);
/* The axis of a physical shape of `rank` that `axis` (negative: from the end) of the logical shape
 * is. */
int sdx_layout_axis(int layout, int64_t axis, int rank);

/* Adds a step that copies `from` to `to`; their layouts differ. */
SDX_MUST_CHECK enum sdx_status sdx_layout_reorder(struct sdx_prepare *px, struct sdx_tensor *from,
                                                  struct sdx_tensor *to);
/* Copies at once, on this thread. */
void sdx_layout_copy(const struct sdx_tensor *from, struct sdx_tensor *to);

/* sdx_op_layout_fn of operators that work element by element with broadcasting: the layout of the
 * first full operand that is not plain, when all operands can have it. */
void sdx_layout_elementwise(struct sdx_prepare *px, struct sdx_layouts *want);
/* Of Concat and Split along the channels (`axis`, from the front). */
void sdx_layout_channels(struct sdx_prepare *px, int axis, struct sdx_layouts *want);
#endif
