/* SPDX-License-Identifier: Apache-2.0
 * Facts about element types: names, sizes, classes. The list itself is SDX_DTYPES in sardonyx.h. */
#include "tensor/tensor.h"

struct dtype_facts {
    const char *name;
    int bits;
};

#define DTYPE_FACTS(id, number, width, onnx_name) [id] = {.name = onnx_name, .bits = width},
static const struct dtype_facts facts[] = {SDX_DTYPES(DTYPE_FACTS)};
#undef DTYPE_FACTS

static const char *const names_short[] = {
    [SDX_F32] = "f32",         [SDX_U8] = "u8",
    [SDX_I8] = "i8",           [SDX_U16] = "u16",
    [SDX_I16] = "i16",         [SDX_I32] = "i32",
    [SDX_I64] = "i64",         [SDX_STRING] = "str",
    [SDX_BOOL] = "bool",       [SDX_F16] = "f16",
    [SDX_F64] = "f64",         [SDX_U32] = "u32",
    [SDX_U64] = "u64",         [SDX_C64] = "c64",
    [SDX_C128] = "c128",       [SDX_BF16] = "bf16",
    [SDX_F8E4M3FN] = "f8e4m3", [SDX_F8E4M3FNUZ] = "f8e4m3fnuz",
    [SDX_F8E5M2] = "f8e5m2",   [SDX_F8E5M2FNUZ] = "f8e5m2fnuz",
    [SDX_U4] = "u4",           [SDX_I4] = "i4",
    [SDX_F4E2M1] = "f4e2m1",   [SDX_F8E8M0] = "f8e8m0",
    [SDX_U2] = "u2",           [SDX_I2] = "i2",
    [SDX_F6E2M3] = "f6e2m3",   [SDX_F6E3M2] = "f6e3m2",
};

const char *sdx_dtype_name(sdx_dtype dtype)
{
    return sdx_dtype_is_valid(dtype) ? facts[dtype].name : "undefined";
}

int sdx_dtype_bits(sdx_dtype dtype)
{
    return sdx_dtype_is_valid(dtype) ? facts[dtype].bits : 0;
}

const char *sdx_dtype_short_name(int dtype)
{
    return sdx_dtype_is_valid(dtype) ? names_short[dtype] : "?";
}

bool sdx_dtype_is_float(int dtype)
{
    switch (dtype) {
    case SDX_F32:
    case SDX_F64:
    case SDX_F16:
    case SDX_BF16:
    case SDX_F8E4M3FN:
    case SDX_F8E4M3FNUZ:
    case SDX_F8E5M2:
    case SDX_F8E5M2FNUZ:
    case SDX_F8E8M0:
    case SDX_F6E2M3:
    case SDX_F6E3M2:
    case SDX_F4E2M1: return true;
    default: return false;
    }
}

static bool is_unsigned_integer(int dtype)
{
    return dtype == SDX_U8 || dtype == SDX_U16 || dtype == SDX_U32 || dtype == SDX_U64 ||
           dtype == SDX_U4 || dtype == SDX_U2;
}

static bool is_signed_integer(int dtype)
{
    return dtype == SDX_I8 || dtype == SDX_I16 || dtype == SDX_I32 || dtype == SDX_I64 ||
           dtype == SDX_I4 || dtype == SDX_I2;
}

bool sdx_dtype_is_integer(int dtype)
{
    return is_unsigned_integer(dtype) || is_signed_integer(dtype);
}

bool sdx_dtype_is_signed(int dtype)
{
    return is_signed_integer(dtype) || (sdx_dtype_is_float(dtype) && dtype != SDX_F8E8M0);
}

bool sdx_dtype_is_complex(int dtype)
{
    return dtype == SDX_C64 || dtype == SDX_C128;
}

bool sdx_dtype_bytes(int dtype, int64_t count, size_t *bytes)
{
    *bytes = 0;
    if (!sdx_dtype_is_valid(dtype) || count < 0 || (uint64_t)count > SIZE_MAX) return false;
    int bits = facts[dtype].bits;
    size_t n = (size_t)count;
    if (bits >= 8) return sdx_mul_size(n, (size_t)bits / 8, bytes);
    *bytes = n / 8 * (size_t)bits + (n % 8 * (size_t)bits + 7) / 8;
    return true;
}

bool sdx_dims_count(const int64_t *dims, int rank, int64_t *count)
{
    int64_t product = 1;
    bool fits = true, has_zero = false;
    for (int i = 0; i < rank; i++) {
        if (dims[i] < 0) return false;
        if (dims[i] == 0) has_zero = true;
        if (fits) fits = sdx_mul_i64(product, dims[i], &product);
    }
    *count = has_zero ? 0 : product;
    return fits || has_zero;
}

bool sdx_dims_equal(const int64_t *a, int rank_a, const int64_t *b, int rank_b)
{
    if (rank_a != rank_b) return false;
    return rank_a == 0 || memcmp(a, b, (size_t)rank_a * sizeof *a) == 0;
}
