/* SPDX-License-Identifier: Apache-2.0
 * What the files of com.microsoft's operators share: an operator seen as one of another name, and
 * channels last. */
#ifndef SDX_OPS_CONTRIB_LOWER_H
#define SDX_OPS_CONTRIB_LOWER_H

#include "ops/lower.h"

/* Inference as the operator `name` of `domain` does it. */
SDX_MUST_CHECK enum sdx_status sdx_contrib_infer_as(struct sdx_infer *ix, const char *domain,
                                                    const char *name, int opset);
/* The same where the inputs in the set `data` (bit i: input i) and output 0 are channels last. */
SDX_MUST_CHECK enum sdx_status sdx_contrib_infer_last(struct sdx_infer *ix, const char *domain,
                                                      const char *name, int opset, uint32_t data);
/* The node becomes `name` of com.microsoft (contrib) or of the standard between transpositions of
 * the inputs in `data` and of output 0; the attributes but channels_last are kept. */
SDX_MUST_CHECK enum sdx_status sdx_contrib_lower_last(struct sdx_lower *lx, bool contrib,
                                                      const char *name, uint32_t data);
static inline bool sdx_contrib_is_last(const struct sdx_ir_node *node)
{
    return sdx_ir_attr_int(node, "channels_last", 0) != 0;
}
#endif
