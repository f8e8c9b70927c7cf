/* SPDX-License-Identifier: Apache-2.0
 * Optional modules: shared libraries of ours that are opened when they are needed, from the folder
 * of the library or program this code is in, or from where an environment variable says. */
#ifndef SDX_BASE_MODULE_H
#define SDX_BASE_MODULE_H

#include "base/context.h"

/* Opens `file` (a name without folder; `variable` names another path when set) and finds `count`
 * functions by name. The module stays open. NOT_SUPPORTED, with the places looked at, when it is
 * not there. */
SDX_MUST_CHECK enum sdx_status sdx_module_open(struct sdx_context *cx, const char *file,
                                               const char *variable, int count,
                                               const char *const *names, void **functions);
#endif
