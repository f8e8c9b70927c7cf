/* SPDX-License-Identifier: Apache-2.0
 * Formulas: an operator's meaning as text, from which the nodes are made. */
#ifndef SDX_CONVERT_FORMULA_H
#define SDX_CONVERT_FORMULA_H

#include "convert/rewrite.h"

/* Statements "y = Mul(x, Sigmoid(x)){axis=1, perm=[1,0]}; z = y". Names: in0, in1 ... and out0,
 * out1
 * ... are the node's inputs and outputs (an output that the node leaves out is made all the same),
 * others are set by statements and stay known. Numbers: 2.5 is of type `dtype`, 2.5f a float, 3i an
 * int64, all of rank 0; [1,-1] is a list of int64. */
struct sdx_formula {
    struct sdx_rewrite *rx;
    int dtype;
    int count;
    struct {
        struct sdx_str name, value;
    } locals[24];
    const char *at;
};

void sdx_formula_init(struct sdx_formula *f, struct sdx_rewrite *rx, int dtype);
void sdx_formula_set(struct sdx_formula *f, const char *name, struct sdx_str value);
struct sdx_str sdx_formula_get(const struct sdx_formula *f, const char *name);
/* Adds the nodes before the rewritten one; the format's numbers are put into the text first.
 * Failures are held by the rewrite. */
void sdx_formula_add(struct sdx_formula *f, const char *format, ...) SDX_PRINTF(2, 3);
#endif
