/* SPDX-License-Identifier: Apache-2.0
 * Growing a list of boxes: for the heads. */
#ifndef SDX_VISION_BOXES_H
#define SDX_VISION_BOXES_H

#include <sardonyx/vision.h>

sdx_status sdx_boxes_append(sdx_boxes *boxes, sdx_box box, sdx_vision_fault *fault);

#endif
