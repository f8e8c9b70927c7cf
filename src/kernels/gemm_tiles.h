/* SPDX-License-Identifier: Apache-2.0
 * How operands of f32 products lie in tiles (docs/adr/0048). K is cut in chunks of 64, the last one
 * filled up with zeros; of its four vectors of 16 the elements of one number lie side by side. A
 * tile of A holds up to 16 rows: of each chunk 1 KB for each of three digits, and then the scales
 * of the rows. A panel of B holds 32 columns: of each chunk two such tiles for each digit, and then
 * the scales of the columns. Weights of 16 bits stay that in memory, in the order that makes such a
 * panel of them quickly, and are brought into it where it is used: of each chunk, half of the panel
 * and row of a tile the four vectors, and then the largest absolute values of the columns. */
#ifndef SDX_KERNELS_GEMM_TILES_H
#define SDX_KERNELS_GEMM_TILES_H

#include "kernels/gemm.h"

enum {
    SDX_TILES_CHUNK = 64, /* of K */
    SDX_TILES_HEIGHT = 16,
    SDX_TILES_WIDTH = 32, /* of a panel of B */
    SDX_TILES_DIGITS = 3,
    SDX_TILES_MOST_K = 1 << 15, /* of one span: sums of whole numbers hold it */
    SDX_TILES_LEAST_K = 97,     /* of weights: FMAs over fewer are as fast, and more precise */
    SDX_TILES_CHUNK_A = SDX_TILES_DIGITS * SDX_TILES_HEIGHT * SDX_TILES_CHUNK, /* bytes */
    SDX_TILES_CHUNK_B = SDX_TILES_DIGITS * SDX_TILES_WIDTH * SDX_TILES_CHUNK,
    SDX_TILES_SCALES_A = SDX_TILES_HEIGHT * 4,
    SDX_TILES_SCALES_B = SDX_TILES_WIDTH * 4,
    SDX_TILES_CHUNK_HALF = SDX_TILES_WIDTH * SDX_TILES_CHUNK * 2
};
#define SDX_TILES_READ 4.2 /* bytes of B a cycle from memory, beside products (Sapphire Rapids) */

static inline int64_t sdx_tiles_chunks(int64_t k)
{
    return (k + SDX_TILES_CHUNK - 1) / SDX_TILES_CHUNK;
}
/* Bytes of a tile of A, and of a panel of B. */
static inline int64_t sdx_tiles_bytes_a(int64_t k)
{
    return sdx_tiles_chunks(k) * SDX_TILES_CHUNK_A + SDX_TILES_SCALES_A;
}
static inline int64_t sdx_tiles_bytes_b(int64_t k)
{
    return sdx_tiles_chunks(k) * SDX_TILES_CHUNK_B + SDX_TILES_SCALES_B;
}
/* Of a panel of 16-bit weights. */
static inline int64_t sdx_tiles_bytes_half(int64_t k)
{
    return sdx_tiles_chunks(k) * SDX_TILES_CHUNK_HALF + SDX_TILES_SCALES_B;
}
/* Makes one: gather() gives rows k0 .. k0 + 63 of 32 columns, 0 where there are none. */
typedef void sdx_tiles_gather_fn(const void *arg, int64_t k0,
                                 uint16_t rows[SDX_TILES_CHUNK * SDX_TILES_WIDTH]);
void sdx_tiles_pack_half(enum sdx_half half, int64_t k, sdx_tiles_gather_fn *gather,
                         const void *arg, void *panel);
/* Tiles of m rows, and their rows: of all one height but the last. */
static inline int64_t sdx_tiles_of(int64_t m)
{
    return (m + SDX_TILES_HEIGHT - 1) / SDX_TILES_HEIGHT;
}
static inline int64_t sdx_tiles_height(int64_t m)
{
    const int64_t tiles = sdx_tiles_of(m);
    return m > 0 ? (m + tiles - 1) / tiles : 1;
}
#endif
