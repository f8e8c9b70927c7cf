/* SPDX-License-Identifier: Apache-2.0
 * Integer convolutions with stride 1 in planes, dilated or not, by Winograd's F(4x4, 3x3), exact;
 * of lines by F(4, 3). Planes of a deep kernel and pieces of 3x3 or 3 of a larger one, the last
 * filled up with zeros, add up as channels do, before the transform back. Bytes are transformed to
 * 16 bits, weights (times 24,
 * 6, 6, 24, 24, 6 for the six points) as well, their products summed modulo 2^32. The outputs come
 * out times 9 * 2^e; 9 has an inverse modulo 2^32 and the power of two is shifted away, so that
 * nothing is lost while sums stay below 2^25, which is known from the weights. 36 products of 16
 * bits stand for 144 of bytes. Private to qconv.c. */
#ifndef SDX_KERNELS_QCONV_WINOGRAD_H
#define SDX_KERNELS_QCONV_WINOGRAD_H

#include "kernels/qconv.h"

enum { SDX_QWINOGRAD_TILE = 4, SDX_QWINOGRAD_SIDE = 6, SDX_QWINOGRAD_PLANES = 36 /* at most */ };

/* Tiles first .. first + tiles - 1 of one plane of the output, in reading order, for panels
 * p0 .. p1 - 1. Row i of the store is pixel i of the plane. */
struct sdx_qwinograd {
    const struct sdx_conv_shape *shape;
    const uint8_t *x;   /* the image, plane 0 */
    int64_t plane;      /* of it, that the kernel's first one meets, maybe outside */
    int64_t depth;      /* channels of all planes and pieces of the kernel */
    int planes;         /* positions of a tile: 36, of a line 6 */
    uint8_t flip;       /* makes its bytes unsigned */
    const uint8_t *pad; /* what a pixel outside looks like, as those of the image */
    int64_t wide;       /* tiles across */
    int64_t first, tiles;
    const int16_t *u; /* [panel][position][depth / 2][16][2] */
    int64_t p0, p1;
    int16_t *v;               /* planes of [tile][depth] */
    int32_t *m;               /* planes of [tile][16] of each panel that is worked at once */
    int64_t plane_v, plane_m; /* elements */
    struct sdx_qdot_store store;
};

struct sdx_qwinograd_table {
    int panels;                                   /* worked at once */
    void (*run)(const struct sdx_qwinograd *job); /* NULL: sums over K are faster */
};

/* Pieces of the kernel across, and all of a plane; is it one of a line; the inputs and outputs of a
 * tile along an axis; how far apart they lie; and positions of a tile. */
static inline int64_t qwinograd_across(const struct sdx_conv_shape *s)
{
    return (s->kernel[2] + 2) / 3;
}
static inline int64_t qwinograd_pieces(const struct sdx_conv_shape *s)
{
    return (s->kernel[1] + 2) / 3 * qwinograd_across(s);
}
static inline bool qwinograd_is_line(const struct sdx_conv_shape *s)
{
    return s->kernel[1] == 1 || s->kernel[2] == 1;
}
static inline int qwinograd_side(const struct sdx_conv_shape *s, int axis)
{
    return s->kernel[axis] > 1 ? SDX_QWINOGRAD_SIDE : 1;
}
static inline int qwinograd_tile(const struct sdx_conv_shape *s, int axis)
{
    return s->kernel[axis] > 1 ? SDX_QWINOGRAD_TILE : 1;
}
static inline int64_t qwinograd_apart(const struct sdx_conv_shape *s, int axis)
{
    return s->kernel[axis] > 1 ? s->dilation[axis] : 1;
}
static inline int qwinograd_planes(const struct sdx_conv_shape *s)
{
    return qwinograd_side(s, 1) * qwinograd_side(s, 2);
}

/* Can and should these weights [oc, ic, kernel...] be convolved so, by the kernels of this CPU? */
bool sdx_qwinograd_serves(const struct sdx_qconv *q, const void *weights);
/* Packed: sums of the columns of all panels as in sdx_qdot_start, then u. */
size_t sdx_qwinograd_packed_size(const struct sdx_qconv *q);
void sdx_qwinograd_pack(const struct sdx_qconv *q, const void *weights, void *packed);
int64_t sdx_qwinograd_parts(const struct sdx_qconv *q);
size_t sdx_qwinograd_scratch(const struct sdx_qconv *q);
/* zero: of the unsigned bytes */
void sdx_qwinograd_part(const struct sdx_qconv *q, const void *x, int32_t zero, const void *packed,
                        const struct sdx_qdot_store *store, int64_t part, void *scratch);
#endif
