/* SPDX-License-Identifier: Apache-2.0
 * What the ways of Resize share: its axes, and the steps of resize_rows.c. */
#ifndef SDX_OPS_RESIZE_H
#define SDX_OPS_RESIZE_H

#include "ops/resize_table.h"

struct sdx_resize {
    int rank;
    int64_t cell; /* values that lie together at a place: the lanes of blocked channels, else 1 */
    struct sdx_resize_rule rule;
    struct sdx_resize_axis axis[SDX_RANK_MAX];
    float extrapolation;
};

/* Adds the step of a filter on the last two axes of `in`, f32 of rank 2 or more, to output 0; the
 * other axes of both are alike. */
SDX_MUST_CHECK enum sdx_status sdx_resize_planes(struct sdx_prepare *px, const struct sdx_resize *r,
                                                 struct sdx_tensor *in);
/* Can bytes go row by row? The axis of the columns; -1: no. */
int sdx_resize_byte_columns(const struct sdx_tensor *in, const struct sdx_resize *r);
/* Adds the step from input 0 to output 0 for those columns. */
SDX_MUST_CHECK enum sdx_status sdx_resize_bytes(struct sdx_prepare *px, const struct sdx_resize *r,
                                                int columns);
#endif
