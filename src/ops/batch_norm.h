/* SPDX-License-Identifier: Apache-2.0
 * BatchNormalization of all versions. */
#ifndef SDX_OPS_BATCH_NORM_H
#define SDX_OPS_BATCH_NORM_H

#include "ops/op.h"

enum sdx_status sdx_batch_norm_infer(struct sdx_infer *ix);
void sdx_batch_norm_layout(struct sdx_prepare *px, struct sdx_layouts *want);
enum sdx_status sdx_batch_norm_prepare(struct sdx_prepare *px);
#endif
