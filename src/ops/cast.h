/* SPDX-License-Identifier: Apache-2.0
 * Numbers as text and back, as the operator Cast means it. */
#ifndef SDX_OPS_CAST_H
#define SDX_OPS_CAST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

enum { SDX_CAST_TEXT = 48 }; /* bytes a number's text takes at most */

/* Element i as text; returns its length. */
int sdx_cast_format(int dtype, const void *data, int64_t i, char *text);
/* Text as element i. false: it is not a number. */
bool sdx_cast_parse(int dtype, struct sdx_str text, void *out, int64_t i);
#endif
