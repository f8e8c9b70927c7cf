/* SPDX-License-Identifier: Apache-2.0
 * Dropout: a copy when inferring, the reference's random mask when training. */
#ifndef SDX_OPS_DROPOUT_H
#define SDX_OPS_DROPOUT_H

#include "ops/infer.h"
#include "ops/step.h"

enum sdx_status sdx_dropout_infer(struct sdx_infer *ix);
enum sdx_status sdx_dropout_prepare(struct sdx_prepare *px);
#endif
