/* SPDX-License-Identifier: Apache-2.0
 * The points 0, +-a, +-b, infinity of Winograd's tiles of 6 x 6 inputs, a b = 1, and their powers:
 * F(4 x 4, 3 x 3) errs by 3e-6 of the peak at 512 channels, a quarter of what 1 and 2 give. */
#ifndef SDX_KERNELS_WINOGRAD_POINTS_H
#define SDX_KERNELS_WINOGRAD_POINTS_H

#define A  (2.0f / 3)
#define B  1.5f
#define A2 (4.0f / 9)
#define B2 2.25f
#define S2 (97.0f / 36) /* a^2 + b^2 */
#define A3 (8.0f / 27)
#define B3 3.375f
#endif
