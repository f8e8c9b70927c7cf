/* SPDX-License-Identifier: Apache-2.0
 * A square of 4-byte elements turned in registers, 8 x 8 or 4 x 4. For files compiled once a set.
 */
#ifndef SDX_KERNELS_TRANSPOSE_H
#define SDX_KERNELS_TRANSPOSE_H

#include "kernels/simd.h"

/* Lanes of four rows to columns: q[c] holds column c of rows 0..3 (and, in its upper half when
 * there are 8 lanes, column c + 4). */
#if SDX_SIMD_LANES >= 8
enum { SIDE = 8 };
typedef int32_t turn_row __attribute__((vector_size(32)));
#define LOW(a, b)  __builtin_shufflevector(a, b, 0, 8, 1, 9, 4, 12, 5, 13)
#define HIGH(a, b) __builtin_shufflevector(a, b, 2, 10, 3, 11, 6, 14, 7, 15)
#else
enum { SIDE = 4 };
typedef int32_t turn_row __attribute__((vector_size(16)));
#define LOW(a, b)  __builtin_shufflevector(a, b, 0, 4, 1, 5)
#define HIGH(a, b) __builtin_shufflevector(a, b, 2, 6, 3, 7)
#endif
SIMD void turn_rows(const turn_row a[4], turn_row q[4])
{
    turn_row low02 = LOW(a[0], a[2]), high02 = HIGH(a[0], a[2]);
    turn_row low13 = LOW(a[1], a[3]), high13 = HIGH(a[1], a[3]);
    q[0] = LOW(low02, low13);
    q[1] = HIGH(low02, low13);
    q[2] = LOW(high02, high13);
    q[3] = HIGH(high02, high13);
}
SIMD void turn_four(const char *src, size_t stride, turn_row q[4])
{
    turn_row a[4];
    SDX_UNROLL(4)
    for (size_t i = 0; i < 4; i++)
        memcpy(&a[i], src + 4 * i * stride, sizeof(turn_row));
    turn_rows(a, q);
}
/* both at any address */
SIMD void turn(const void *src, size_t stride, void *dst_, size_t stride_dst)
{
    char *dst = dst_;
    turn_row q[4];
    turn_four(src, stride, q);
#if SDX_SIMD_LANES >= 8
    turn_row p[4];
    turn_four((const char *)src + 16 * stride, stride, p);
    SDX_UNROLL(4) for (size_t c = 0; c < 4; c++)
    {
        turn_row near = __builtin_shufflevector(q[c], p[c], 0, 1, 2, 3, 8, 9, 10, 11);
        turn_row far = __builtin_shufflevector(q[c], p[c], 4, 5, 6, 7, 12, 13, 14, 15);
        memcpy(dst + 4 * c * stride_dst, &near, sizeof near);
        memcpy(dst + 4 * (c + 4) * stride_dst, &far, sizeof far);
    }
#else
    SDX_UNROLL(4)
    for (size_t c = 0; c < 4; c++)
        memcpy(dst + 4 * c * stride_dst, &q[c], sizeof(turn_row));
#endif
}
#endif
