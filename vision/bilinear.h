/* SPDX-License-Identifier: Apache-2.0
 * Mixing neighbours as OpenCV does on 8 bits: a table of taps for each axis, then two passes. */
#ifndef SDX_VISION_BILINEAR_H
#define SDX_VISION_BILINEAR_H

#include <sardonyx/vision.h>

/* One output place: between source places `at` and `next`, weights in 1/2048. */
struct sdx_tap {
    int at, next;
    int w0, w1;
};

/* Place `at` of an axis of `from` (cut to it), `rest` of the weight on the next one. */
void sdx_tap_set(struct sdx_tap *tap, int at, int from, float rest);

/* Fills `out` from `in`, rows of `out->channels` values `stride` bytes apart. `across`: a tap for
 * each column of `out`, `down`: for each row. `rows`: room for two rows of `out`. */
void sdx_bilinear_apply(const uint8_t *in, size_t stride, const struct sdx_tap *across,
                        const struct sdx_tap *down, const sdx_image *out, int *rows);

#endif
