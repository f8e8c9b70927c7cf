/* SPDX-License-Identifier: Apache-2.0
 * Limits of pictures. */
#ifndef SDX_VISION_PICTURE_LIMITS_H
#define SDX_VISION_PICTURE_LIMITS_H

enum {
    SDX_IMAGE_SIDE_MAX = 1 << 16,  /* longest side of a picture */
    SDX_IMAGE_PIXELS_MAX = 1 << 28 /* most pixels: 800 MB of colour */
};

#endif
