/* SPDX-License-Identifier: Apache-2.0
 * Integer convolution of bytes that lie channels last, [batch, spatial..., channels], with sums
 * exact in 32 bits (qdot.h). Padding counts as the zero point of x. The image is read in place
 * where nothing is padded, otherwise a strip of its rows is copied with its padding. One channel a
 * group: over vectors of channels in 16 bits; kernels of 3 x 3 read unsigned bytes in place, padded
 * or not. */
#ifndef SDX_KERNELS_QCONV_H
#define SDX_KERNELS_QCONV_H

#include "kernels/conv.h"
#include "kernels/qdot.h"

enum sdx_qconv_form {
    SDX_QCONV_BYTES,
    SDX_QCONV_SHORTS,   /* bytes and weights widened before the product: qconv_shorts.h */
    SDX_QCONV_WINOGRAD, /* qconv_winograd.h; store->zero_w is of no use */
    SDX_QCONV_FOURS     /* one channel a group: four taps at a time, qconv_depthwise.h */
};
struct sdx_qconv {
    struct sdx_conv_shape shape;
    bool x_signed, w_signed;
    bool quickly;          /* packed for one use */
    const int32_t *zero_w; /* [oc], for packing and to know whether there are any; NULL: all 0 */
    enum sdx_qconv_form form;
};
/* Weight i as a signed byte: unsigned ones less 128. */
static inline int8_t sdx_qconv_weight(const struct sdx_qconv *q, const void *weights, int64_t i)
{
    const int8_t byte = ((const int8_t *)weights)[i];
    return q->w_signed ? byte : (int8_t)(byte ^ 0x80);
}
/* Chooses the form for constant weights with their zero points; others have the first. */
void sdx_qconv_choose(struct sdx_qconv *q, const void *weights);
/* Weights [oc, ic / groups, kernel...] u8 or s8. The form depends on groups, ic, oc, kernel,
 * dilation of the last axis being 1, w_signed; with one channel a group on zero_w as well. */
size_t sdx_qconv_packed_size(const struct sdx_qconv *q);
/* Returns how many bytes are filled; the others are not read. */
size_t sdx_qconv_pack(const struct sdx_qconv *q, const void *weights, void *packed);
bool sdx_qconv_check(const struct sdx_qconv *q, const void *packed); /* as sdx_qdot_check */
/* Arrays of a value for each output channel have room for whole panels of each group: their length,
 * and the place of channel c. */
int64_t sdx_qconv_width(const struct sdx_qconv *q);
int64_t sdx_qconv_place_of(const struct sdx_qconv *q, int64_t c);
/* The sums' beginnings: less than 0 by what zero_x brings; a bias comes on top. */
void sdx_qconv_start(const struct sdx_qconv *q, const void *packed, int32_t zero_x, int32_t *start);
/* Where the steps' bytes lie for this shape: bytes of a table to be filled once, for
 * sdx_qconv_run.
 */
size_t sdx_qconv_steps_size(const struct sdx_qconv *q);
void sdx_qconv_steps(const struct sdx_qconv *q, const void *packed, void *steps);

int64_t sdx_qconv_parts(const struct sdx_qconv *q);
size_t sdx_qconv_scratch(const struct sdx_qconv *q);
/* Parts that cost less in one call, so many at most: they have an image row or weights in common.
 */
int64_t sdx_qconv_together(const struct sdx_qconv *q);
/* Parts part .. end - 1 into store->y [batch, out..., oc]; of `store` pitch and row_sums are set
 * here, the arrays are those described above. store->zero_w: needed when q->zero_w is not all 0
 * (less 128 for unsigned weights, and so never NULL then unless that makes 0); not with one channel
 * a group. */
void sdx_qconv_run(const struct sdx_qconv *q, const void *x, int32_t zero_x, const void *packed,
                   const void *steps, const struct sdx_qdot_store *store, int64_t part, int64_t end,
                   void *scratch);
/* May store->addend be store->y? */
bool sdx_qconv_sums_in_place(const struct sdx_qconv *q);
/* Is it worked over vectors of channels? */
bool sdx_qconv_is_depthwise(const struct sdx_qconv *q);
#endif
