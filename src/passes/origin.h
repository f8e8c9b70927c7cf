/* SPDX-License-Identifier: Apache-2.0
 * Where the elements of a value lie in another one that they are only moved from. */
#ifndef SDX_PASSES_ORIGIN_H
#define SDX_PASSES_ORIGIN_H

#include "ops/op.h"

enum { SDX_ORIGIN_AXES = 4 };

/* Element [i0, i1, i2, i3] of an operand is element first + sum of steps[d] * i_d of `value`, all
 * counted in memory order. Lengths that are open have those of a sample (sdx_ir_symbol_sample). */
struct sdx_origin {
    int32_t value;
    int sample;
    int64_t dims[SDX_ORIGIN_AXES], steps[SDX_ORIGIN_AXES], first;
};

/* The lengths of a value's axes, of graph 0, in a sample; false: one is not known or 0, or they are
 * too many elements to count. */
bool sdx_origin_lengths(const struct sdx_ir *ir, int32_t value, int sample,
                        int64_t dims[SDX_RANK_MAX]);

/* Goes up from up to SDX_ORIGIN_MOST operands of one node through nodes of graph 0 that only move
 * elements (views, Transpose, Gather of one index, Split, Slice): as far as nobody
 * else reads what they make, for then they are not needed, and the elements of the last axis lie
 * side by side. uses: how many inputs read each value. went[i]: operand i is past a node that would
 * copy. */
enum { SDX_ORIGIN_MOST = 3 };
void sdx_origin_climb(const struct sdx_ir *ir, const int32_t *uses, struct sdx_origin *operands,
                      int count, bool *went);
#endif
