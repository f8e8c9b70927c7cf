/* SPDX-License-Identifier: Apache-2.0
 * Writing the one line that says why a call of libsardonyx_vision failed. */
#ifndef SDX_VISION_FAULT_H
#define SDX_VISION_FAULT_H

#include <sardonyx/vision.h>

/* Sets *fault (may be NULL) and returns `status`. */
__attribute__((format(printf, 3, 4))) sdx_status
sdx_vision_fail(sdx_vision_fault *fault, sdx_status status, const char *format, ...);

#endif
