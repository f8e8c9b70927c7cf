/* SPDX-License-Identifier: Apache-2.0
 * MaxPool of bytes that lie channels last; its row is in the pool family. */
#ifndef SDX_OPS_POOL_LAST_H
#define SDX_OPS_POOL_LAST_H

#include "ops/op.h"

/* Channels last where the bytes already are. */
void sdx_max_pool_layout(struct sdx_prepare *px, struct sdx_layouts *want);
enum sdx_status sdx_max_pool_last_prepare(struct sdx_prepare *px);
#endif
