/* SPDX-License-Identifier: Apache-2.0
 * What a broken invariant of ours does: says where and stops. */
#include "base/compiler.h"

#include <stdio.h>
#include <stdlib.h>

void sdx_assert_failed(const char *text, const char *file, int line)
{
    fprintf(stderr, "%s:%d: assertion failed: %s\n", file, line, text);
    fflush(stderr);
    abort();
}
