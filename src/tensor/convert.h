/* SPDX-License-Identifier: Apache-2.0
 * Conversion between all element types, one element or many. Rounding is to nearest, ties to even;
 * the small floating formats follow the ONNX specification's "Float stored in 8 bits" tables.
 * Plain C; kernels/ has the vectorised f16 and bf16. */
#ifndef SDX_TENSOR_CONVERT_H
#define SDX_TENSOR_CONVERT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

float sdx_f16_to_f32(uint16_t x);
uint16_t sdx_f32_to_f16(float x);
static inline float sdx_bf16_to_f32(uint16_t x)
{
    union {
        uint32_t u;
        float f;
    } v = {(uint32_t)x << 16};
    return v.f;
}
uint16_t sdx_f32_to_bf16(float x);
/* dtype: one of the four float8 formats, e8m0, e2m1, e2m3 or e3m2. saturate: out of range gives the
 * largest finite value, otherwise infinity or NaN as the format has them (Cast's attribute). e8m0
 * rounds up, as Cast's default. */
float sdx_f8_to_f32(int dtype, uint8_t x);
uint8_t sdx_f32_to_f8(int dtype, float x, bool saturate);
/* Cast's round_mode: away from zero, towards zero, to nearest with ties up. */
enum sdx_e8m0_round { SDX_E8M0_UP, SDX_E8M0_DOWN, SDX_E8M0_NEAREST };
uint8_t sdx_f32_to_e8m0(float x, enum sdx_e8m0_round round, bool saturate);

/* Element i of packed data, which may lie at any address. Integers wider than 53 bits lose bits as
 * f64. Strings give 0. */
double sdx_load_f64(int dtype, const void *data, int64_t i);
int64_t sdx_load_i64(int dtype, const void *data,
                     int64_t i); /* floats truncate and saturate; u64 wraps */
void sdx_store_f64(int dtype, void *data, int64_t i,
                   double x); /* C conversion made total: saturating, NaN to 0 for integers */
void sdx_store_i64(int dtype, void *data, int64_t i, int64_t x); /* integers wrap to their width */

/* n elements of a type of less than a byte from their codes, one in each entry. */
void sdx_pack_codes(int dtype, void *data, const int64_t *codes, int64_t n);

/* n elements, as operator Cast means it (strings excluded): float to integer truncates; out of
 * range values wrap as NumPy on x86-64 does for integers to integers; bool is x != 0. Elements are
 * taken from index `from` of src (for packed types) and put at index `to` of dst. */
void sdx_convert(int dtype_to, void *dst, int64_t to, int dtype_from, const void *src, int64_t from,
                 int64_t n, bool saturate);
#endif
