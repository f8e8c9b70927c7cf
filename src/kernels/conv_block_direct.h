/* SPDX-License-Identifier: Apache-2.0
 * The forms DIRECT and FIRST of conv_block.h: sums over runs of the input from tables of offsets,
 * read in place; padding is left out. */
#ifndef SDX_KERNELS_CONV_BLOCK_DIRECT_H
#define SDX_KERNELS_CONV_BLOCK_DIRECT_H

#include "kernels/conv.h"

bool sdx_direct_block_fits(const struct sdx_conv_shape *s);
bool sdx_direct_block_is_first(const struct sdx_conv_shape *s);
size_t sdx_direct_block_packed_size(const struct sdx_conv_shape *s);
void sdx_direct_block_pack(const struct sdx_conv_shape *s, const sdx_weight_f32 *weights,
                           void *packed, const struct sdx_pieces *pieces);
int64_t sdx_direct_block_parts(const struct sdx_conv_shape *s);
size_t sdx_direct_block_scratch(const struct sdx_conv_shape *s);
void sdx_direct_block_part(const struct sdx_conv_shape *s, const float *x, const void *packed,
                           float *y, const struct sdx_epilogue *epilogue, int64_t part,
                           void *scratch);

/* Rows row0 .. row1 - 1 of the outputs of panels panel0 .. panel1 - 1, each a few neighbouring
 * blocks of channels: for a reader that takes them at once, from memory that stays in the cache. */
struct sdx_direct_rows {
    int64_t panel0, panel1, row0, row1;
    int64_t y_step; /* floats from a block of y to the next */
};
/* The panels of an image; 0: this shape is not made in rows. */
int64_t sdx_direct_block_panels(const struct sdx_conv_shape *s);
/* The first block of a panel, or behind the last one's. */
int64_t sdx_direct_block_panel(const struct sdx_conv_shape *s, int64_t panel);
/* Bytes, for up to so many rows. */
size_t sdx_direct_block_rows_scratch(const struct sdx_conv_shape *s, int64_t rows);
/* x: of one image; y, the residual: from row0 of the first block of panel0 on. */
void sdx_direct_block_rows(const struct sdx_conv_shape *s, const struct sdx_direct_rows *r,
                           const float *x, const void *packed, const struct sdx_epilogue *e,
                           float *y, void *scratch);
#endif
