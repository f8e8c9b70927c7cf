/* SPDX-License-Identifier: Apache-2.0
 * Building and printing the JSON objects of --json. */
#ifndef SDX_CLI_JSON_OUT_H
#define SDX_CLI_JSON_OUT_H

#include "cli.h"

/* Text that may not be UTF-8 (names of files and nodes): bad bytes become U+FFFD. */
json_t *sdx_cli_json_text(const char *text);
/* A number rounded to `digits` significant digits; null when it is not finite. */
json_t *sdx_cli_json_number(double value, int digits);
/* [1, "N", null]: a value's dimensions. */
json_t *sdx_cli_json_dims(const sdx_value_info *info);
json_t *sdx_cli_json_shape(const sdx_tensor *tensor);
/* Prints `object` as one line on stdout and releases it. */
void sdx_cli_json_print(json_t *object);

#endif
