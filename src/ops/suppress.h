/* SPDX-License-Identifier: Apache-2.0
 * NonMaxSuppression. */
#ifndef SDX_OPS_SUPPRESS_H
#define SDX_OPS_SUPPRESS_H

#include "ops/infer.h"
#include "ops/step.h"

enum sdx_status sdx_suppress_infer(struct sdx_infer *ix);
enum sdx_status sdx_suppress_prepare(struct sdx_prepare *px);
#endif
