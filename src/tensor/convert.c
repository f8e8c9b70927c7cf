/* SPDX-License-Identifier: Apache-2.0
 * Conversion between element types: the readable reference. Small floating formats are encoded by
 * one routine from their parameters (ONNX "Float stored in 8 bits" and "Float stored in 4 bits");
 * float8e8m0 follows operator Cast's table. Many elements go through blocks of int64, float or
 * double on the stack. */
#include "tensor/convert.h"

#include <string.h>

#include "tensor/tensor.h"

/* ---- bits ---- */

static uint32_t bits_of_f32(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

static float f32_of_bits(uint32_t u)
{
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

/* Magnitude of a finite f32 (sign bit clear) rounded to nearest even in a format with `mantissa`
 * bits and `bias`. The code may exceed the format's largest: the caller saturates. */
static uint32_t round_magnitude(uint32_t magnitude, int mantissa, int bias)
{
    int exponent = (int)(magnitude >> 23) - 127 + bias;
    int shift = 23 - mantissa;
    uint32_t value;
    if (exponent >= 1) {
        value = (uint32_t)exponent << 23 | (magnitude & 0x7fffff);
    } else { /* subnormal there: the hidden bit becomes a stored one */
        shift += 1 - exponent;
        if (shift > 24 || magnitude < 0x800000) return 0;
        value = 0x800000 | (magnitude & 0x7fffff);
    }
    uint32_t half = (uint32_t)1 << (shift - 1);
    return (value + half - 1 + (value >> shift & 1)) >> shift;
}

/* ---- f16, bf16 ---- */

float sdx_f16_to_f32(uint16_t x)
{
    uint32_t sign = (uint32_t)(x & 0x8000) << 16, exponent = x >> 10 & 31, mantissa = x & 0x3ff;
    if (exponent == 31) /* a signalling NaN becomes quiet, as the hardware does it */
        return f32_of_bits(sign | 0x7f800000 | mantissa << 13 | (mantissa ? 0x400000u : 0));
    if (exponent == 0) {
        float magnitude = (float)mantissa * 0x1p-24f;
        return sign ? -magnitude : magnitude;
    }
    return f32_of_bits(sign | (exponent + 112) << 23 | mantissa << 13);
}

uint16_t sdx_f32_to_f16(float x)
{
    uint32_t u = bits_of_f32(x), magnitude = u & 0x7fffffff;
    uint16_t sign = (uint16_t)(u >> 16 & 0x8000);
    if (magnitude > 0x7f800000) return (uint16_t)(sign | 0x7e00 | (magnitude >> 13 & 0x3ff));
    if (magnitude >= 0x47800000) return sign | 0x7c00; /* 65536 and more */
    uint32_t code = round_magnitude(magnitude, 10, 15);
    return (uint16_t)(sign | (code > 0x7c00 ? 0x7c00 : code));
}

/* One rounding: the way over f32 rounds to odd, so the second step sees that bits were lost. */
static uint16_t f64_to_f16(double x)
{
    float f = (float)x;
    if (f != f || (double)f == x) return sdx_f32_to_f16(f);
    uint32_t u = bits_of_f32(f);
    bool past = x < 0 ? (double)f < x : (double)f > x; /* |f| > |x| */
    if (past) u--;
    return sdx_f32_to_f16(f32_of_bits(u | 1));
}

uint16_t sdx_f32_to_bf16(float x)
{
    uint32_t u = bits_of_f32(x);
    if ((u & 0x7fffffff) > 0x7f800000) return (uint16_t)((u >> 16 & 0x8000) | 0x7fc0);
    return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

/* ---- 8 and 4 bits ---- */

struct small_format {
    uint8_t mantissa, bias;
    uint8_t sign, max, nan, inf; /* codes; inf 0: none */
    bool no_negative_zero;       /* the NaN takes its code */
};

static const struct small_format *small_format(int dtype)
{
    static const struct small_format e4m3fn = {3, 7, 0x80, 0x7e, 0x7f, 0, false};
    static const struct small_format e4m3fnuz = {3, 8, 0x80, 0x7f, 0x80, 0, true};
    static const struct small_format e5m2 = {2, 15, 0x80, 0x7b, 0x7e, 0x7c, false};
    static const struct small_format e5m2fnuz = {2, 16, 0x80, 0x7f, 0x80, 0, true};
    static const struct small_format e2m1 = {1, 1, 0x8, 0x7, 0, 0, false};
    static const struct small_format e2m3 = {3, 1, 0x20, 0x1f, 0, 0, false};
    static const struct small_format e3m2 = {2, 3, 0x20, 0x1f, 0, 0, false};
    switch (dtype) {
    case SDX_F8E4M3FN: return &e4m3fn;
    case SDX_F8E4M3FNUZ: return &e4m3fnuz;
    case SDX_F8E5M2: return &e5m2;
    case SDX_F8E5M2FNUZ: return &e5m2fnuz;
    case SDX_F4E2M1: return &e2m1;
    case SDX_F6E2M3: return &e2m3;
    case SDX_F6E3M2: return &e3m2;
    default: return NULL;
    }
}

float sdx_f8_to_f32(int dtype, uint8_t x)
{
    if (dtype == SDX_F8E8M0) {
        if (x == 255) return f32_of_bits(0x7fc00000);
        return f32_of_bits(x ? (uint32_t)x << 23 : 0x400000);
    }
    const struct small_format *format = small_format(dtype);
    SDX_ASSERT(format != NULL);
    uint32_t code = x & (format->sign - 1u);
    uint32_t sign = x & format->sign ? 0x80000000 : 0;
    if (format->no_negative_zero && x == 0x80) return f32_of_bits(0x7fc00000);
    if (format->nan && !format->no_negative_zero && code > format->max)
        return f32_of_bits(sign | (code == format->inf ? 0x7f800000 : 0x7fc00000));
    uint32_t exponent = code >> format->mantissa;
    uint32_t mantissa = code & ((1u << format->mantissa) - 1);
    if (exponent > 0)
        return f32_of_bits(sign | (exponent + 127 - format->bias) << 23 |
                           mantissa << (23 - format->mantissa));
    float step = f32_of_bits((uint32_t)(128 - format->bias - format->mantissa) << 23);
    return sign ? -((float)mantissa * step) : (float)mantissa * step;
}

uint8_t sdx_f32_to_f8(int dtype, float x, bool saturate)
{
    if (dtype == SDX_F8E8M0) return sdx_f32_to_e8m0(x, SDX_E8M0_UP, saturate);
    const struct small_format *format = small_format(dtype);
    SDX_ASSERT(format != NULL);
    uint32_t u = bits_of_f32(x), magnitude = u & 0x7fffffff;
    uint8_t sign = u >> 31 ? format->sign : 0;
    if (magnitude > 0x7f800000) { /* without a NaN: zero of the other sign, as ml_dtypes */
        if (!format->nan) return sign ^ format->sign;
        return format->no_negative_zero ? format->nan : sign | format->nan;
    }
    uint32_t code =
        magnitude < 0x7f800000 ? round_magnitude(magnitude, format->mantissa, format->bias) : 0x100;
    if (code > format->max) {
        if (saturate || !format->nan) return sign | format->max;
        if (format->no_negative_zero) return format->nan;
        return sign | (format->inf ? format->inf : format->nan);
    }
    if (code == 0 && format->no_negative_zero) return 0;
    return (uint8_t)(sign | code);
}

/* The sign is ignored: negative values are undefined in the standard. */
uint8_t sdx_f32_to_e8m0(float x, enum sdx_e8m0_round round, bool saturate)
{
    uint32_t magnitude = bits_of_f32(x) & 0x7fffffff;
    if (magnitude > 0x7f800000) return 255;
    if (magnitude == 0x7f800000) return saturate ? 254 : 255;
    if (magnitude < 0x400000) return saturate ? 0 : 255; /* below 2^-127 */
    /* Subnormals lack the hidden bit: 2^-127 is bit 22, and the fraction is what is below it. */
    uint32_t code = magnitude >> 23;
    uint32_t fraction = code ? magnitude & 0x7fffff : (magnitude & 0x3fffff) << 1;
    if (round == SDX_E8M0_UP && fraction) code++;
    if (round == SDX_E8M0_NEAREST && fraction >= 0x400000) code++;
    if (code == 255 && saturate) return 254;
    return (uint8_t)code;
}

/* ---- elements of less than a byte ---- */

/* Where element i begins: a group of 8 takes `bits` bytes. */
static size_t packed_at(int64_t i, int bits, int *shift)
{
    int bit = (int)(i % 8) * bits;
    *shift = bit % 8;
    return (size_t)(i / 8) * (size_t)bits + (size_t)bit / 8;
}

static uint8_t packed_get(const void *data, int64_t i, int bits)
{
    int shift = 0;
    const uint8_t *byte = (const uint8_t *)data + packed_at(i, bits, &shift);
    unsigned both = 8 % bits && shift + bits > 8 ? byte[0] | (unsigned)byte[1] << 8 : byte[0];
    return (uint8_t)(both >> shift & ((1u << bits) - 1));
}

static void packed_put(void *data, int64_t i, int bits, uint8_t value)
{
    int shift = 0;
    uint8_t *byte = (uint8_t *)data + packed_at(i, bits, &shift);
    unsigned mask = ((1u << bits) - 1) << shift, put = (unsigned)value << shift & mask;
    byte[0] = (uint8_t)((byte[0] & ~mask) | put);
    if (8 % bits && shift + bits > 8) byte[1] = (uint8_t)((byte[1] & ~(mask >> 8)) | put >> 8);
}

void sdx_pack_codes(int dtype, void *data, const int64_t *codes, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        packed_put(data, i, sdx_dtype_bits((sdx_dtype)dtype), (uint8_t)codes[i]);
}

/* ---- float to integer, always defined ---- */

/* As x86-64's conversion: out of range and NaN give the smallest integer. */
static int64_t truncate_i64(double x)
{
    return x >= -0x1p63 && x < 0x1p63 ? (int64_t)x : INT64_MIN;
}

static int64_t truncate_i32(double x)
{
    return x > -0x1p31 - 1 && x < 0x1p31 ? (int64_t)x : INT32_MIN;
}

static int64_t truncate_u64(double x)
{
    if (!(x >= 0x1p63)) return truncate_i64(x);
    return (int64_t)((uint64_t)truncate_i64(x - 0x1p63) ^ (uint64_t)1 << 63);
}

/* The nearest value of the type; NaN gives 0. 2^63 itself does not fit, so bounds are exclusive. */
static int64_t saturate_i64(double x)
{
    if (x != x) return 0;
    if (x >= 0x1p63) return INT64_MAX;
    return x < -0x1p63 ? INT64_MIN : (int64_t)x;
}

static int64_t saturate_integer(int dtype, double x)
{
    if (dtype == SDX_I64) return saturate_i64(x);
    if (dtype == SDX_U64) {
        if (!(x > 0)) return 0;
        return x >= 0x1p64 ? -1 : truncate_u64(x);
    }
    int bits = sdx_dtype_bits((sdx_dtype)dtype);
    bool is_signed = sdx_dtype_is_signed(dtype);
    int64_t high = ((int64_t)1 << (is_signed ? bits - 1 : bits)) - 1,
            low = is_signed ? -high - 1 : 0;
    int64_t value = saturate_i64(x);
    return value < low ? low : value > high ? high : value;
}

/* ---- many elements: blocks ---- */

enum { BLOCK = 256 };

#define LOAD_CASE(id, type, expression)                                                            \
    case id:                                                                                       \
        for (int64_t k = 0; k < n; k++) {                                                          \
            type x; /* a constant may lie at an odd address of its file */                         \
            memcpy(&x, (const char *)src + (size_t)(from + k) * sizeof x, sizeof x);               \
            out[k] = (expression);                                                                 \
        }                                                                                          \
        break;
#define LOAD_PACKED(id, bits, expression)                                                          \
    case id:                                                                                       \
        for (int64_t k = 0; k < n; k++) {                                                          \
            const uint8_t x = packed_get(src, from + k, bits);                                     \
            out[k] = (expression);                                                                 \
        }                                                                                          \
        break;

static void load_i64(int dtype, const void *src, int64_t from, int64_t n, int64_t *out)
{
    switch (dtype) {
        LOAD_CASE(SDX_I8, int8_t, x)
        LOAD_CASE(SDX_U8, uint8_t, x)
        LOAD_CASE(SDX_BOOL, uint8_t, x != 0)
        LOAD_CASE(SDX_I16, int16_t, x)
        LOAD_CASE(SDX_U16, uint16_t, x)
        LOAD_CASE(SDX_I32, int32_t, x)
        LOAD_CASE(SDX_U32, uint32_t, x)
        LOAD_CASE(SDX_I64, int64_t, x)
        LOAD_CASE(SDX_U64, uint64_t, (int64_t)x)
        LOAD_PACKED(SDX_U4, 4, x)
        LOAD_PACKED(SDX_I4, 4, (x ^ 8) - 8)
        LOAD_PACKED(SDX_U2, 2, x)
        LOAD_PACKED(SDX_I2, 2, (x ^ 2) - 2)
    default: SDX_ASSERT(false);
    }
}

static void load_f32(int dtype, const void *src, int64_t from, int64_t n, float *out)
{
    switch (dtype) {
        LOAD_CASE(SDX_F32, float, x)
        LOAD_CASE(SDX_F16, uint16_t, sdx_f16_to_f32(x))
        LOAD_CASE(SDX_BF16, uint16_t, sdx_bf16_to_f32(x))
        LOAD_CASE(SDX_F8E4M3FN, uint8_t, sdx_f8_to_f32(SDX_F8E4M3FN, x))
        LOAD_CASE(SDX_F8E4M3FNUZ, uint8_t, sdx_f8_to_f32(SDX_F8E4M3FNUZ, x))
        LOAD_CASE(SDX_F8E5M2, uint8_t, sdx_f8_to_f32(SDX_F8E5M2, x))
        LOAD_CASE(SDX_F8E5M2FNUZ, uint8_t, sdx_f8_to_f32(SDX_F8E5M2FNUZ, x))
        LOAD_CASE(SDX_F8E8M0, uint8_t, sdx_f8_to_f32(SDX_F8E8M0, x))
        LOAD_PACKED(SDX_F4E2M1, 4, sdx_f8_to_f32(SDX_F4E2M1, x))
        LOAD_PACKED(SDX_F6E2M3, 6, sdx_f8_to_f32(SDX_F6E2M3, x))
        LOAD_PACKED(SDX_F6E3M2, 6, sdx_f8_to_f32(SDX_F6E3M2, x))
    default: SDX_ASSERT(false);
    }
}
#undef LOAD_CASE
#undef LOAD_PACKED

#define STORE_CASE(id, type, expression)                                                           \
    case id:                                                                                       \
        for (int64_t k = 0; k < n; k++)                                                            \
            ((type *)dst)[to + k] = (type)(expression);                                            \
        break;
#define STORE_PACKED(id, bits, expression)                                                         \
    case id:                                                                                       \
        for (int64_t k = 0; k < n; k++)                                                            \
            packed_put(dst, to + k, bits, (uint8_t)(expression));                                  \
        break;

/* Integers wrap to their width. */
static void store_integers(int dtype, void *dst, int64_t to, int64_t n, const int64_t *x)
{
    switch (dtype) {
        STORE_CASE(SDX_I8, int8_t, x[k])
        STORE_CASE(SDX_U8, uint8_t, x[k])
        STORE_CASE(SDX_BOOL, uint8_t, x[k] != 0)
        STORE_CASE(SDX_I16, int16_t, x[k])
        STORE_CASE(SDX_U16, uint16_t, x[k])
        STORE_CASE(SDX_I32, int32_t, x[k])
        STORE_CASE(SDX_U32, uint32_t, x[k])
        STORE_CASE(SDX_I64, int64_t, x[k])
        STORE_CASE(SDX_U64, uint64_t, x[k])
        STORE_PACKED(SDX_U4, 4, x[k])
        STORE_PACKED(SDX_I4, 4, x[k])
        STORE_PACKED(SDX_U2, 2, x[k])
        STORE_PACKED(SDX_I2, 2, x[k])
    default: SDX_ASSERT(false);
    }
}

static void store_floats(int dtype, void *dst, int64_t to, int64_t n, const float *x, bool saturate)
{
    switch (dtype) {
        STORE_CASE(SDX_F32, float, x[k])
        STORE_CASE(SDX_F64, double, x[k])
        STORE_CASE(SDX_F16, uint16_t, sdx_f32_to_f16(x[k]))
        STORE_CASE(SDX_BF16, uint16_t, sdx_f32_to_bf16(x[k]))
        STORE_CASE(SDX_F8E4M3FN, uint8_t, sdx_f32_to_f8(SDX_F8E4M3FN, x[k], saturate))
        STORE_CASE(SDX_F8E4M3FNUZ, uint8_t, sdx_f32_to_f8(SDX_F8E4M3FNUZ, x[k], saturate))
        STORE_CASE(SDX_F8E5M2, uint8_t, sdx_f32_to_f8(SDX_F8E5M2, x[k], saturate))
        STORE_CASE(SDX_F8E5M2FNUZ, uint8_t, sdx_f32_to_f8(SDX_F8E5M2FNUZ, x[k], saturate))
        STORE_CASE(SDX_F8E8M0, uint8_t, sdx_f32_to_f8(SDX_F8E8M0, x[k], saturate))
        STORE_PACKED(SDX_F4E2M1, 4, sdx_f32_to_f8(SDX_F4E2M1, x[k], saturate))
        STORE_PACKED(SDX_F6E2M3, 6, sdx_f32_to_f8(SDX_F6E2M3, x[k], saturate))
        STORE_PACKED(SDX_F6E3M2, 6, sdx_f32_to_f8(SDX_F6E3M2, x[k], saturate))
    default: SDX_ASSERT(false);
    }
}
#undef STORE_CASE
#undef STORE_PACKED

static void store_from_i64(int dtype, void *dst, int64_t to, int64_t n, const int64_t *x,
                           bool is_unsigned, bool saturate)
{
    if (dtype == SDX_BOOL || sdx_dtype_is_integer(dtype)) {
        store_integers(dtype, dst, to, n, x);
        return;
    }
    if (dtype == SDX_F64) {
        double *out = (double *)dst + to;
        for (int64_t k = 0; k < n; k++)
            out[k] = is_unsigned ? (double)(uint64_t)x[k] : (double)x[k];
        return;
    }
    float block[BLOCK];
    for (int64_t k = 0; k < n; k++)
        block[k] = is_unsigned ? (float)(uint64_t)x[k] : (float)x[k];
    store_floats(dtype, dst, to, n, block, saturate);
}

static void store_from_f64(int dtype, void *dst, int64_t to, int64_t n, const double *x,
                           bool saturate)
{
    if (dtype == SDX_F64) {
        memcpy((double *)dst + to, x, (size_t)n * sizeof *x);
    } else if (dtype == SDX_F16) {
        for (int64_t k = 0; k < n; k++)
            ((uint16_t *)dst)[to + k] = f64_to_f16(x[k]);
    } else if (dtype == SDX_BOOL) {
        for (int64_t k = 0; k < n; k++)
            ((uint8_t *)dst)[to + k] = x[k] != 0;
    } else if (sdx_dtype_is_float(dtype)) {
        float block[BLOCK];
        for (int64_t k = 0; k < n; k++)
            block[k] = (float)x[k];
        store_floats(dtype, dst, to, n, block, saturate);
    } else {
        int64_t block[BLOCK];
        if (dtype == SDX_U64)
            for (int64_t k = 0; k < n; k++)
                block[k] = truncate_u64(x[k]);
        else if (dtype == SDX_I64 || dtype == SDX_U32)
            for (int64_t k = 0; k < n; k++)
                block[k] = truncate_i64(x[k]);
        else
            for (int64_t k = 0; k < n; k++)
                block[k] = truncate_i32(x[k]);
        store_integers(dtype, dst, to, n, block);
    }
}

static void convert_block(int dtype_to, void *dst, int64_t to, int dtype_from, const void *src,
                          int64_t from, int64_t n, bool saturate)
{
    if (dtype_from == SDX_F64) {
        store_from_f64(dtype_to, dst, to, n, (const double *)src + from, saturate);
    } else if (sdx_dtype_is_float(dtype_from)) {
        float block[BLOCK];
        load_f32(dtype_from, src, from, n, block);
        if (sdx_dtype_is_float(dtype_to)) {
            store_floats(dtype_to, dst, to, n, block, saturate);
        } else {
            double wide[BLOCK];
            for (int64_t k = 0; k < n; k++)
                wide[k] = block[k];
            store_from_f64(dtype_to, dst, to, n, wide, saturate);
        }
    } else {
        int64_t block[BLOCK];
        load_i64(dtype_from, src, from, n, block);
        store_from_i64(dtype_to, dst, to, n, block, dtype_from == SDX_U64, saturate);
    }
}

/* Complex numbers: the imaginary part is lost, or zero. */
static void convert_complex(int dtype_to, void *dst, int64_t to, int dtype_from, const void *src,
                            int64_t from, int64_t n)
{
    for (int64_t k = 0; k < n; k++) {
        double part = 0;
        if (dtype_from == SDX_C64) part = ((const float *)src)[2 * (from + k) + 1];
        if (dtype_from == SDX_C128) part = ((const double *)src)[2 * (from + k) + 1];
        sdx_store_f64(dtype_to, dst, to + k, sdx_load_f64(dtype_from, src, from + k));
        if (dtype_to == SDX_C64) ((float *)dst)[2 * (to + k) + 1] = (float)part;
        if (dtype_to == SDX_C128) ((double *)dst)[2 * (to + k) + 1] = part;
    }
}

/* The pairs that graphs use most, without a detour through blocks. false: not one of them. */
static bool convert_direct(int dtype_to, void *dst, int64_t to, int dtype_from, const void *src,
                           int64_t from, int64_t n)
{
#define PAIR(a, b) ((a)*256 + (b))
#define DIRECT(a, type_a, b, type_b, expression)                                                   \
    case PAIR(a, b):                                                                               \
        for (int64_t k = 0; k < n; k++) {                                                          \
            const type_a x = ((const type_a *)src)[from + k];                                      \
            ((type_b *)dst)[to + k] = (type_b)(expression);                                        \
        }                                                                                          \
        return true;
    switch (PAIR(dtype_from, dtype_to)) {
        DIRECT(SDX_BOOL, uint8_t, SDX_F32, float, x != 0)
        DIRECT(SDX_BOOL, uint8_t, SDX_I32, int32_t, x != 0)
        DIRECT(SDX_BOOL, uint8_t, SDX_I64, int64_t, x != 0)
        DIRECT(SDX_U8, uint8_t, SDX_F32, float, x)
        DIRECT(SDX_I32, int32_t, SDX_F32, float, x)
        DIRECT(SDX_I32, int32_t, SDX_I64, int64_t, x)
        DIRECT(SDX_I64, int64_t, SDX_F32, float, x)
        DIRECT(SDX_I64, int64_t, SDX_I32, int32_t, x)
        DIRECT(SDX_F32, float, SDX_BOOL, uint8_t, x != 0)
        DIRECT(SDX_F32, float, SDX_I32, int32_t, truncate_i32(x))
        DIRECT(SDX_F32, float, SDX_I64, int64_t, truncate_i64(x))
    default: return false;
    }
#undef DIRECT
#undef PAIR
}

/* Elements of four bits to floats, two a byte. false: of another type. */
static bool convert_nibbles(int dtype_from, const void *src, int64_t from, int64_t n, float *to)
{
    static const float tables[][16] = {
        {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
        {0, 1, 2, 3, 4, 5, 6, 7, -8, -7, -6, -5, -4, -3, -2, -1},
        {0, 0.5f, 1, 1.5f, 2, 3, 4, 6, -0.0f, -0.5f, -1, -1.5f, -2, -3, -4, -6},
    };
    const float *table = dtype_from == SDX_U4       ? tables[0]
                         : dtype_from == SDX_I4     ? tables[1]
                         : dtype_from == SDX_F4E2M1 ? tables[2]
                                                    : NULL;
    if (!table) return false;
    const uint8_t *bytes = (const uint8_t *)src + from / 2;
    int64_t k = 0;
    if (from % 2 && n > 0) to[k++] = table[*bytes++ >> 4];
    for (; k + 1 < n; k += 2, bytes++) {
        to[k] = table[*bytes & 15];
        to[k + 1] = table[*bytes >> 4];
    }
    if (k < n) to[k] = table[*bytes & 15];
    return true;
}

void sdx_convert(int dtype_to, void *dst, int64_t to, int dtype_from, const void *src, int64_t from,
                 int64_t n, bool saturate)
{
    SDX_ASSERT(dtype_to != SDX_STRING && dtype_from != SDX_STRING);
    int bits = sdx_dtype_bits((sdx_dtype)dtype_from);
    if (dtype_to == dtype_from && bits >= 8 && dtype_to != SDX_BOOL) {
        size_t size = (size_t)bits / 8;
        if (n > 0)
            memmove((char *)dst + (size_t)to * size, (const char *)src + (size_t)from * size,
                    (size_t)n * size);
        return;
    }
    if (sdx_dtype_is_complex(dtype_to) || sdx_dtype_is_complex(dtype_from)) {
        convert_complex(dtype_to, dst, to, dtype_from, src, from, n);
        return;
    }
    if (convert_direct(dtype_to, dst, to, dtype_from, src, from, n)) return;
    if (dtype_to == SDX_F32 && convert_nibbles(dtype_from, src, from, n, (float *)dst + to)) return;
    for (int64_t k = 0; k < n; k += BLOCK) {
        int64_t some = n - k < BLOCK ? n - k : BLOCK;
        convert_block(dtype_to, dst, to + k, dtype_from, src, from + k, some, saturate);
    }
}

/* ---- one element ---- */

static double load_double(const void *data, int64_t i)
{
    double x;
    memcpy(&x, (const char *)data + (size_t)i * sizeof x, sizeof x);
    return x;
}

double sdx_load_f64(int dtype, const void *data, int64_t i)
{
    if (dtype == SDX_F64) return load_double(data, i);
    if (dtype == SDX_C64) return sdx_load_f64(SDX_F32, data, 2 * i);
    if (dtype == SDX_C128) return load_double(data, 2 * i);
    if (dtype == SDX_U64) {
        uint64_t x;
        memcpy(&x, (const char *)data + (size_t)i * sizeof x, sizeof x);
        return (double)x;
    }
    if (dtype == SDX_STRING || !sdx_dtype_is_valid(dtype)) return 0;
    if (sdx_dtype_is_float(dtype)) {
        float x = 0;
        load_f32(dtype, data, i, 1, &x);
        return x;
    }
    int64_t x = 0;
    load_i64(dtype, data, i, 1, &x);
    return (double)x;
}

int64_t sdx_load_i64(int dtype, const void *data, int64_t i)
{
    if (dtype == SDX_STRING || !sdx_dtype_is_valid(dtype)) return 0;
    if (sdx_dtype_is_float(dtype) || sdx_dtype_is_complex(dtype))
        return saturate_i64(sdx_load_f64(dtype, data, i));
    int64_t x = 0;
    load_i64(dtype, data, i, 1, &x);
    return x;
}

void sdx_store_f64(int dtype, void *data, int64_t i, double x)
{
    if (dtype == SDX_C64) {
        ((float *)data)[2 * i] = (float)x;
        ((float *)data)[2 * i + 1] = 0;
    } else if (dtype == SDX_C128) {
        ((double *)data)[2 * i] = x;
        ((double *)data)[2 * i + 1] = 0;
    } else if (sdx_dtype_is_integer(dtype)) {
        int64_t value = saturate_integer(dtype, x);
        store_integers(dtype, data, i, 1, &value);
    } else if (dtype != SDX_STRING && sdx_dtype_is_valid(dtype)) {
        store_from_f64(dtype, data, i, 1, &x, true);
    }
}

void sdx_store_i64(int dtype, void *data, int64_t i, int64_t x)
{
    if (sdx_dtype_is_complex(dtype))
        sdx_store_f64(dtype, data, i, (double)x);
    else if (dtype != SDX_STRING && sdx_dtype_is_valid(dtype))
        store_from_i64(dtype, data, i, 1, &x, false, true);
}
