/* SPDX-License-Identifier: Apache-2.0
 * Blocked channels: a tensor [N, C, pixels] as [N, C / b, pixels, b]. */
#ifndef SDX_KERNELS_BLOCK_H
#define SDX_KERNELS_BLOCK_H

#include <stdint.h>

/* b, the floats of a vector of the CPU's set. */
int64_t sdx_block_lanes(void);
/* One block: `channels` (at most b) plain lines of `pixels` floats to pixels of b lanes, those
 * beyond `channels` 0; and back. */
void sdx_block_from_plain(const float *from, int64_t pixels, int64_t channels, float *to);
void sdx_block_to_plain(const float *from, int64_t pixels, int64_t channels, float *to);
#endif
