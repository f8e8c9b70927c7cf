/* SPDX-License-Identifier: Apache-2.0
 * The equation of an Einsum without ellipses and diagonals, term by term. */
#ifndef SDX_OPS_EINSUM_H
#define SDX_OPS_EINSUM_H

#include "ops/op.h"

enum { SDX_EINSUM_TERMS = 16, SDX_EINSUM_LONGEST = 512 };

struct sdx_einsum {
    int count;                                 /* of operands; term[count] is the output's */
    struct sdx_str term[SDX_EINSUM_TERMS + 1]; /* labels, in `text` or `implied` */
    bool is_explicit;                          /* is there an arrow? */
    char text[SDX_EINSUM_LONGEST];             /* without blanks */
    char implied[64];
};

/* false: an ellipsis, a label that a term has twice, or terms that are not as many as the node's
 * inputs. The equation is of a node that was inferred. *e points into itself. */
bool sdx_einsum_read(const struct sdx_ir_node *node, struct sdx_einsum *e);
bool sdx_einsum_holds(struct sdx_str term, char label);
#endif
