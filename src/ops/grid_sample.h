/* SPDX-License-Identifier: Apache-2.0
 * GridSample, for the family in image.c. */
#ifndef SDX_OPS_GRID_SAMPLE_H
#define SDX_OPS_GRID_SAMPLE_H

#include "ops/infer.h"
#include "ops/step.h"

enum sdx_status sdx_grid_sample_infer(struct sdx_infer *ix);
enum sdx_status sdx_grid_sample_prepare(struct sdx_prepare *px);
#endif
