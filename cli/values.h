/* SPDX-License-Identifier: Apache-2.0
 * Tensors made from text or from a fixed seed, and values printed as text. */
#ifndef SDX_CLI_VALUES_H
#define SDX_CLI_VALUES_H

#include "cli.h"

enum { SDX_CLI_RANK_MAX = 32 };

struct sdx_cli_shape {
    bool known; /* false: not even the rank */
    int rank;
    int open; /* lengths that are not known: -1 in dims */
    int64_t dims[SDX_CLI_RANK_MAX];
};

/* Zeros, or random values: floats in [-1, 1), 8 and 16 bit integers of their whole range, wider
 * ones and booleans 0 or 1 (they are often places or counts), empty strings. Unknown lengths are 1.
 */
int sdx_cli_value_fill(const struct sdx_cli *cli, const sdx_value_info *info,
                       const struct sdx_cli_shape *shape, bool random, sdx_tensor **value);
/* Values with commas between; brackets and blanks are skipped. One value fills the whole shape. */
int sdx_cli_value_parse(const struct sdx_cli *cli, const struct sdx_cli_verb *verb,
                        const sdx_value_info *info, const struct sdx_cli_shape *shape,
                        const char *text, sdx_tensor **value);
/* Element `i` as text: "0.25", "-3", "true", "a text". Caller frees. */
char *sdx_cli_value_text(const sdx_tensor *value, int64_t i);
/* "float[1,10]", "sequence of 3". Caller frees. */
char *sdx_cli_type_text(const sdx_tensor *value);

#endif
