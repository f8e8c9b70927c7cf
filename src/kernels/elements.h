/* SPDX-License-Identifier: Apache-2.0
 * Elementwise kernels that the compiler makes vectors of: conversions, tests of value, logic,
 * comparisons, selection, remainders. Each takes whole blocks; sdx_element_run does the rest.
 * Results of all sets are bit-equal. */
#ifndef SDX_KERNELS_ELEMENTS_H
#define SDX_KERNELS_ELEMENTS_H

#include <stddef.h>
#include <stdint.h>

enum { SDX_ELEMENT_BLOCK = 64, SDX_ELEMENT_IN = 3, SDX_ELEMENT_BYTES = 8 };

/* Elements of `blocks` blocks; step[i]: elements from one block of operand i to the next, a block's
 * or 0. arg: the parameters of the operator. `out` may be an operand of elements as wide. */
typedef void sdx_element_fn(const void *const *in, const size_t *step, void *out, size_t blocks,
                            const float *arg);

/* X(name). Conversions by their types; bool is 0 or not, and 0 or 1 as a result; what an integer
 * cannot hold becomes its smallest, u8 the low bits of an i32. shrink: bias, lambd; is_inf: equal
 * to one of two. equal, where: of elements of so many bytes, where with the bool first. fmod: as C
 * has it, exact. pow: as C has it, within 0.51 ulp. max, min: NaN where the first is one, or both.
 * Of integers, no divisor of which is 0: div truncates, and -2^31 / -1 wraps as its like of 64
 * bits; modp is the remainder of the divisor's sign. b32, b64: integers of either sign, which wrap.
 * bits: of bytes, which serve elements of any
 * size. scaled: (x - zero) * scale; quantized: round_to_even(x / scale) + zero within the integer's
 * bounds, NaN the least; arg: zero, scale. */
/* clang-format off */
#define SDX_ELEMENTS(X) \
    X(bool_f32) X(bool_i32) X(bool_i64) X(i32_f32) X(i32_i64) X(i64_f32) X(i64_i32) X(i64_bool) \
    X(u8_i64) X(i32_u8) X(u16_scaled) X(i16_scaled) X(f32_quantized_u16) X(f32_quantized_i16) \
    X(f32_u8) X(f32_i32) X(f32_i64) X(f32_bool) X(f32_f64) X(f64_f32) \
    X(bool_not) X(bool_and) X(bool_or) X(bool_xor) X(bool_equal) \
    X(equal_1) X(equal_2) X(equal_4) X(equal_8) X(f32_equal) \
    X(f32_less) X(i32_less) X(i64_less) X(f32_less_equal) \
    X(where_1) X(where_2) X(where_4) X(where_8) \
    X(f32_is_nan) X(f32_is_inf) X(f32_sign) X(f32_shrink) X(f32_fmod) X(f32_pow) \
    X(i32_div) X(i64_div) X(i32_modp) X(i64_modp) \
    X(b32_add) X(b32_sub) X(b32_mul) X(b64_add) X(b64_sub) X(b64_mul) \
    X(i32_max) X(i32_min) X(i64_max) X(i64_min) X(u8_max) X(u8_min) X(f64_max) X(f64_min) \
    X(i32_abs) X(i64_abs) X(i32_sign) X(f64_sqrt) X(f64_round) \
    X(f64_add) X(f64_sub) X(f64_mul) X(f64_div) X(bits_and) X(bits_or) X(bits_xor)
/* clang-format on */

struct sdx_elements {
#define SDX_ELEMENT_FIELD(name) sdx_element_fn *name;
    SDX_ELEMENTS(SDX_ELEMENT_FIELD)
#undef SDX_ELEMENT_FIELD
};
const struct sdx_elements *sdx_elements(void);

/* n elements; size: bytes of those of each operand and of the result; step[i]: 1, or 0 of an
 * operand that is one element for all. */
void sdx_element_run(sdx_element_fn *fn, const float *arg, int count_in, const uint8_t *size,
                     const void *const *in, const int64_t *step, void *out, int64_t n);
#endif
