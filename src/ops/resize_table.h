/* SPDX-License-Identifier: Apache-2.0
 * Resize and Upsample: what one axis does, as a table of source indices and weights for each output
 * index. The coordinate and filter formulas are those of the operator's specification. */
#ifndef SDX_OPS_RESIZE_TABLE_H
#define SDX_OPS_RESIZE_TABLE_H

#include "ops/step.h"

/* Bytes that lie together at a place, for filters that loop over them to pay. */
enum { SDX_RESIZE_CELL_LEAST = 8 };

enum sdx_resize_mode { SDX_RESIZE_NEAREST, SDX_RESIZE_LINEAR, SDX_RESIZE_CUBIC };
enum sdx_resize_coordinates {
    SDX_RESIZE_HALF_PIXEL,
    SDX_RESIZE_ASYMMETRIC,
    SDX_RESIZE_ALIGN_CORNERS,
    SDX_RESIZE_PYTORCH_HALF_PIXEL,
    SDX_RESIZE_HALF_PIXEL_SYMMETRIC,
    SDX_RESIZE_CROP,      /* tf_crop_and_resize */
    SDX_RESIZE_TF_NEAREST /* tf_half_pixel_for_nn, versions 11 and 12 */
};
enum sdx_resize_rounding {
    SDX_RESIZE_PREFER_FLOOR,
    SDX_RESIZE_PREFER_CEIL,
    SDX_RESIZE_FLOOR,
    SDX_RESIZE_CEIL,
    SDX_RESIZE_SIMPLE /* before version 11: down when enlarging, up when shrinking */
};

struct sdx_resize_rule {
    enum sdx_resize_mode mode;
    enum sdx_resize_coordinates coordinates;
    enum sdx_resize_rounding rounding;
    bool antialias, exclude_outside;
    double cubic_a;
};

/* Tables have n_out * taps entries; indices are inside the input. */
struct sdx_resize_axis {
    int64_t n_in, n_out;
    double scale, roi_begin, roi_end;
    bool identity;
    int taps;
    int32_t *index;
    float *weight;
    double *weight64;
    bool *outside; /* NULL: none is; true: the output takes the extrapolation value */
};

/* Fills the table of `axis` (n_in, n_out, scale and roi are set) in the plan's memory. */
SDX_MUST_CHECK enum sdx_status sdx_resize_axis_init(struct sdx_prepare *px,
                                                    const struct sdx_resize_rule *rule,
                                                    struct sdx_resize_axis *axis);
#endif
