/* SPDX-License-Identifier: Apache-2.0
 * DeformConv of one to three spatial axes; its row is in the conv family. */
#ifndef SDX_OPS_CONV_DEFORM_H
#define SDX_OPS_CONV_DEFORM_H

#include "ops/op.h"

enum sdx_status sdx_deform_conv_infer(struct sdx_infer *ix);
enum sdx_status sdx_deform_conv_prepare(struct sdx_prepare *px);
#endif
