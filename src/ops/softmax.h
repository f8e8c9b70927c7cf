/* SPDX-License-Identifier: Apache-2.0
 * Softmax of rows for other operators. */
#ifndef SDX_OPS_SOFTMAX_H
#define SDX_OPS_SOFTMAX_H

#include <stddef.h>
#include <stdint.h>

/* In place, of each of `rows` rows of `length` numbers, one behind the other; a row has the same
 * bits among any others. scratch: sdx_softmax_rows_scratch() bytes. */
size_t sdx_softmax_rows_scratch(int64_t length);
void sdx_softmax_rows(float *x, int64_t rows, int64_t length, float *scratch);
#endif
