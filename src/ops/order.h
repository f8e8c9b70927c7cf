/* SPDX-License-Identifier: Apache-2.0
 * Sorting of keys and where they came from. Orders are total: equal keys keep the lower index
 * first; as a key, NaN is the largest value and -0 equals 0. */
#ifndef SDX_OPS_ORDER_H
#define SDX_OPS_ORDER_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct sdx_pair {
    uint64_t key;
    int64_t index;
};

/* Order of a float as an unsigned number. */
static inline uint32_t sdx_order_key_f32(float x)
{
    uint32_t bits;
    if (isnan(x)) return UINT32_MAX;
    x += 0.0f; /* -0 becomes 0 */
    memcpy(&bits, &x, sizeof bits);
    return bits ^ (bits >> 31 ? UINT32_MAX : UINT32_C(1) << 31);
}

/* The k smallest pairs come first, sorted. */
void sdx_order_first(struct sdx_pair *v, int64_t n, int64_t k);
/* Sorts all; `work` has room for n. is_rising: their indices rise. */
void sdx_order_all(struct sdx_pair *v, int64_t n, bool is_rising, struct sdx_pair *work);
#endif
