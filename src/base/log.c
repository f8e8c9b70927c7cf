/* SPDX-License-Identifier: Apache-2.0
 * The log: lines of text to the user's callback, nothing without one. */
#include <stdio.h>

#include "base/context.h"

enum { LINE = 1024 };

void sdx_log(const struct sdx_context *cx, sdx_log_level level, const char *area,
             const char *format, ...)
{
    if (cx == NULL || cx->log == NULL || level < cx->log_level) return;
    char text[LINE];
    va_list args;
    va_start(args, format);
    if (vsnprintf(text, sizeof text, format, args) < 0) text[0] = '\0';
    va_end(args);
    cx->log(level, area, text, cx->log_user);
}
