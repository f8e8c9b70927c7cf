/* SPDX-License-Identifier: Apache-2.0
 * Writing the one line that says why a call of libsardonyx_vision failed. */
#include "fault.h"

#include <stdarg.h>
#include <stdio.h>

sdx_status sdx_vision_fail(sdx_vision_fault *fault, sdx_status status, const char *format, ...)
{
    if (fault == NULL) return status;
    va_list list;
    va_start(list, format);
    vsnprintf(fault->text, sizeof fault->text, format, list);
    va_end(list);
    return status;
}
