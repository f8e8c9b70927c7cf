/* SPDX-License-Identifier: Apache-2.0
 * Pictures in memory. */
#include "fault.h"
#include "picture_limits.h"

#include <stdlib.h>

sdx_status sdx_image_init(sdx_image *image, int width, int height, int channels,
                          sdx_vision_fault *fault)
{
    *image = (sdx_image){0};
    if (width < 1 || height < 1 || width > SDX_IMAGE_SIDE_MAX || height > SDX_IMAGE_SIDE_MAX ||
        (int64_t)width * height > SDX_IMAGE_PIXELS_MAX || channels < 1 || channels > 4)
        return sdx_vision_fail(fault, SDX_INVALID_ARGUMENT,
                               "a picture of %d x %d with %d channels cannot be made", width,
                               height, channels);
    image->pixels = calloc((size_t)width * (size_t)height, (size_t)channels);
    if (image->pixels == NULL)
        return sdx_vision_fail(fault, SDX_OUT_OF_MEMORY, "no memory for a picture of %d x %d",
                               width, height);
    image->width = width;
    image->height = height;
    image->channels = channels;
    return SDX_OK;
}

void sdx_image_deinit(sdx_image *image)
{
    free(image->pixels);
    *image = (sdx_image){0};
}
