/* SPDX-License-Identifier: Apache-2.0
 * Where an operand of the fused attention lies in a tensor that holds it: the lengths of [batch,
 * head, row, column], their steps in elements, and the first; each a factor and, as far behind it,
 * a set of axes (bit d: axis d) of the tensor, by whose lengths it is multiplied. */
#ifndef SDX_OPS_ATTENTION_PLACE_H
#define SDX_OPS_ATTENTION_PLACE_H

#include <stdint.h>

enum {
    SDX_ATTENTION_AXES = 4,
    SDX_ATTENTION_FIRST = 8,
    SDX_ATTENTION_PLACE = 18 /* numbers */
};

/* Number `i` of a place in a tensor of these lengths; what does not fit wraps around. */
static inline int64_t sdx_attention_place(const int64_t *place, int i, const int64_t *dims)
{
    uint64_t value = (uint64_t)place[i];
    for (int d = 0; place[SDX_ATTENTION_PLACE / 2 + i] >> d; d++)
        if (place[SDX_ATTENTION_PLACE / 2 + i] >> d & 1) value *= (uint64_t)dims[d];
    return (int64_t)value;
}
#endif
