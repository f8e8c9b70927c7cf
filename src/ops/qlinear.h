/* SPDX-License-Identifier: Apache-2.0
 * Operators on quantised bytes of com.microsoft; their rows are in the contrib family. */
#ifndef SDX_OPS_QLINEAR_H
#define SDX_OPS_QLINEAR_H

#include "kernels/qbytes.h"
#include "ops/op.h"

/* What the scales and zero points of QLinearAdd or QLinearMul say, of bytes of this dtype; in: the
 * operator's inputs, of which scales and zero points are read (NULL: 0). */
struct sdx_qpair sdx_qlinear_pair(struct sdx_tensor *const in[8], bool multiply, int dtype);

enum sdx_status sdx_qlinear_binary_infer(struct sdx_infer *ix);
enum sdx_status sdx_qlinear_add_prepare(struct sdx_prepare *px);
enum sdx_status sdx_qlinear_mul_prepare(struct sdx_prepare *px);
enum sdx_status sdx_qlinear_global_average_pool_infer(struct sdx_infer *ix);
enum sdx_status sdx_qlinear_global_average_pool_prepare(struct sdx_prepare *px);
void sdx_qlinear_global_average_pool_layout(struct sdx_prepare *px, struct sdx_layouts *want);
#endif
