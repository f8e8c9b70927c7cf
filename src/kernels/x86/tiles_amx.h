/* SPDX-License-Identifier: Apache-2.0
 * The tile registers of AMX: their shapes, and what the compiler must know of them. Registers 0 to
 * 3 hold sums, 4 and 5 rows of A, 6 and 7 columns of B; 0 and 1 belong to 4, 2 and 3 to 5. Of few
 * rows, and where K is long, 0 to 5 hold sums, 6 rows of A, 7 columns of B. */
#ifndef SDX_KERNELS_X86_TILES_AMX_H
#define SDX_KERNELS_X86_TILES_AMX_H

#include <immintrin.h>
#include <stdatomic.h>
#include <stdint.h>

#include "kernels/simd.h"

enum { SDX_TILE_ROWS = 16, SDX_TILE_BYTES = 64 /* of a row */ };
/* A store of sums that comes after more than some 256 instructions on tiles without one takes 0.3
 * us more (Sapphire Rapids), as long as 50 products. So another tile is stored now and then, to
 * where nobody reads it: after `more` loads and products. */
enum { SDX_TILE_BURST = 96 };
struct sdx_tile_drain {
    _Alignas(64) char nobody[SDX_TILE_ROWS * SDX_TILE_BYTES];
    int since; /* begins at 0 */
};
SDX_INLINE void sdx_tile_drain(struct sdx_tile_drain *d, int more)
{
    d->since += more;
    if (d->since <= SDX_TILE_BURST) return;
    _tile_stored(6, d->nobody, SDX_TILE_BYTES);
    d->since = 0;
}

/* As ldtilecfg reads it (Intel SDM volume 2, LDTILECFG). */
struct sdx_tile_config {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
};

/* The first `count` tiles, of sums and of A, get `height` rows, 1 to 16; a product takes time for
 * each. _tile_release() when done: the system saves what is configured at every switch of threads.
 */
SDX_INLINE void sdx_tile_configure(int height, int count)
{
    struct sdx_tile_config c = {.palette = 1};
    for (int i = 0; i < 8; i++) {
        c.row_bytes[i] = SDX_TILE_BYTES;
        c.rows[i] = (uint8_t)(i < count ? height : SDX_TILE_ROWS);
    }
    _tile_loadconfig(&c);
}
/* Loads of tiles are not loads to gcc 12: what was stored before must be in memory. */
SDX_INLINE void sdx_tile_fence(void)
{
    atomic_signal_fence(memory_order_seq_cst);
}
#endif
