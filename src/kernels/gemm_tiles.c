/* SPDX-License-Identifier: Apache-2.0
 * Panels of 16-bit weights for products of tiles. */
#include "kernels/gemm_tiles.h"

#include <string.h>

void sdx_tiles_pack_half(enum sdx_half half, int64_t k, sdx_tiles_gather_fn *gather,
                         const void *arg, void *panel)
{
    enum { LANES = SDX_TILES_WIDTH / 2, HALF = SDX_TILES_HEIGHT * SDX_TILES_CHUNK };
    uint16_t rows[SDX_TILES_CHUNK * SDX_TILES_WIDTH], *to = panel;
    int16_t most_bits[SDX_TILES_WIDTH] = {0};
    for (int64_t k0 = 0; k0 < k; k0 += SDX_TILES_CHUNK, to += 2 * HALF) {
        gather(arg, k0, rows);
        for (int64_t i = 0; i < SDX_TILES_CHUNK; i++) {
            const uint16_t *row = rows + i * SDX_TILES_WIDTH;
            /* [half][row][vector][column] */
            uint16_t *at = to + i % SDX_TILES_HEIGHT * SDX_TILES_CHUNK;
            at += i / SDX_TILES_HEIGHT * LANES;
            memcpy(at, row, LANES * sizeof *at);
            memcpy(at + HALF, row + LANES, LANES * sizeof *at);
            for (int j = 0; j < SDX_TILES_WIDTH; j++) {
                const int16_t size = row[j] & 0x7fff;
                most_bits[j] = size > most_bits[j] ? size : most_bits[j];
            }
        }
    }
    float sizes[SDX_TILES_WIDTH];
    sdx_half_decode(half, (const uint16_t *)most_bits, sizes, SDX_TILES_WIDTH);
    memcpy(to, sizes, sizeof sizes);
}
