/* SPDX-License-Identifier: Apache-2.0
 * Finding ONNX test folders: a model beside folders test_data_set_*. */
#ifndef SDX_CLI_CASES_H
#define SDX_CLI_CASES_H

#include "args.h"
#include "values.h"

struct sdx_cli_case {
    char *folder;
    char *model; /* path; NULL when there is not just one */
    int count_sets;
    char **sets; /* names of data set folders, sorted as numbers */
    char *why;   /* set when there is nothing to run */
};

struct sdx_cli_cases {
    int count, capacity;
    struct sdx_cli_case *items;
};

/* Appends the cases in and below `root`, sorted by path; `filter` (may be NULL) must occur in the
 * path. On failure *why gets a line that the caller frees. */
bool sdx_cli_cases_find(struct sdx_cli_cases *cases, const char *root, const char *filter,
                        char **why);
void sdx_cli_cases_free(struct sdx_cli_cases *cases);

#endif
