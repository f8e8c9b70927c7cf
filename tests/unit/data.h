/* SPDX-License-Identifier: Apache-2.0
 * Test data that is not part of the repository: $SDX_DATA, or build/data
 * (made by scripts/test). Tests that need it are
 * skipped, and say so, where it is absent. */
#ifndef SDX_TESTS_DATA_H
#define SDX_TESTS_DATA_H

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static inline const char *data_root(void)
{
    const char *root = getenv("SDX_DATA");
    return root ? root : "build/data";
}

/* Path of `relative` there; NULL (after a line that says so) when it does not exist. */
static inline const char *data_path(const char *relative, char *buf, size_t size)
{
    snprintf(buf, size, "%s/%s", data_root(), relative);
    if (access(buf, R_OK) == 0) return buf;
    printf("skipped: %s is not there (SDX_DATA names the folder of test data)\n", buf);
    return NULL;
}
#endif
