/* SPDX-License-Identifier: Apache-2.0
 * Element conversion against NumPy and ml_dtypes (golden_convert.h), and the rules that are ours.
 */
#include "unit.h"

#include <math.h>
#include <stdlib.h>

#include "golden_convert.h"
#include "tensor/convert.h"
#include "tensor/tensor.h"

static float f32(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static uint64_t fnv(const void *bytes, size_t size)
{
    const unsigned char *p = bytes;
    uint64_t h = 1469598103934665603u;
    for (size_t i = 0; i < size; i++)
        h = (h ^ p[i]) * 1099511628211u;
    return h;
}

struct small {
    int dtype, count;
    const uint32_t *decoded;
    const uint8_t *plain, *saturated;
};

static const struct small smalls[] = {
    {SDX_F8E4M3FN, 256, golden_f8e4m3fn_decoded, golden_f8e4m3fn_plain, golden_f8e4m3fn_saturated},
    {SDX_F8E4M3FNUZ, 256, golden_f8e4m3fnuz_decoded, golden_f8e4m3fnuz_plain,
     golden_f8e4m3fnuz_saturated},
    {SDX_F8E5M2, 256, golden_f8e5m2_decoded, golden_f8e5m2_plain, golden_f8e5m2_saturated},
    {SDX_F8E5M2FNUZ, 256, golden_f8e5m2fnuz_decoded, golden_f8e5m2fnuz_plain,
     golden_f8e5m2fnuz_saturated},
    {SDX_F4E2M1, 16, golden_f4e2m1_decoded, golden_f4e2m1_plain, golden_f4e2m1_saturated},
    {SDX_F6E2M3, 64, golden_f6e2m3_decoded, golden_f6e2m3_plain, golden_f6e2m3_saturated},
    {SDX_F6E3M2, 64, golden_f6e3m2_decoded, golden_f6e3m2_plain, golden_f6e3m2_saturated},
};

static void assert_decoded(int dtype, int code, uint32_t golden)
{
    float found = sdx_f8_to_f32(dtype, (uint8_t)code), expected = f32(golden);
    if (isnan(found) && isnan(expected)) return;
    if (memcmp(&found, &expected, sizeof found) != 0)
        fail_msg("%s code 0x%02x: %g, expected %g", sdx_dtype_short_name(dtype), code, found,
                 expected);
}

static void small_formats_decode(void **state)
{
    (void)state;
    for (int k = 0; k < SDX_COUNT_OF(smalls); k++)
        for (int i = 0; i < smalls[k].count; i++)
            assert_decoded(smalls[k].dtype, i, smalls[k].decoded[i]);
    for (int i = 0; i < 256; i++)
        assert_decoded(SDX_F8E8M0, i, golden_f8e8m0_decoded[i]);
}

static void small_formats_encode(void **state)
{
    (void)state;
    for (int k = 0; k < SDX_COUNT_OF(smalls); k++)
        for (int i = 0; i < SDX_COUNT_OF(golden_special); i++)
            for (int saturate = 0; saturate < 2; saturate++) {
                int expected = saturate ? smalls[k].saturated[i] : smalls[k].plain[i];
                int found = sdx_f32_to_f8(smalls[k].dtype, f32(golden_special[i]), saturate);
                if (found != expected)
                    fail_msg("%s of %g, saturate %d: 0x%02x, expected 0x%02x",
                             sdx_dtype_short_name(smalls[k].dtype), f32(golden_special[i]),
                             saturate, found, expected);
            }
}

static void small_formats_nan(void **state)
{
    (void)state;
    assert_int_equal(sdx_f32_to_f8(SDX_F8E4M3FN, NAN, true), 0x7f);
    assert_int_equal(sdx_f32_to_f8(SDX_F8E4M3FN, -NAN, true), 0xff);
    assert_int_equal(sdx_f32_to_f8(SDX_F8E4M3FNUZ, NAN, true), 0x80);
    assert_int_equal(sdx_f32_to_f8(SDX_F8E5M2, NAN, false), 0x7e);
    assert_int_equal(sdx_f32_to_f8(SDX_F8E5M2FNUZ, -NAN, false), 0x80);
    assert_int_equal(sdx_f32_to_f8(SDX_F4E2M1, NAN, true), 0x8);
    assert_int_equal(sdx_f32_to_f8(SDX_F6E2M3, NAN, false), 0x20);
    assert_int_equal(sdx_f32_to_f8(SDX_F6E3M2, -NAN, true), 0);
}

/* Cast's table for float8e8m0, and the reference's rounding. */
static void e8m0(void **state)
{
    (void)state;
    for (int i = 0; i < SDX_COUNT_OF(golden_normal); i++) {
        float x = f32(golden_normal[i]);
        assert_int_equal(sdx_f32_to_e8m0(x, SDX_E8M0_UP, true), golden_f8e8m0_up[i]);
        assert_int_equal(sdx_f32_to_e8m0(x, SDX_E8M0_DOWN, true), golden_f8e8m0_down[i]);
        assert_int_equal(sdx_f32_to_e8m0(x, SDX_E8M0_NEAREST, true), golden_f8e8m0_nearest[i]);
    }
    assert_int_equal(sdx_f32_to_e8m0(0, SDX_E8M0_UP, true), 0);
    assert_int_equal(sdx_f32_to_e8m0(0, SDX_E8M0_NEAREST, false), 255);
    assert_int_equal(sdx_f32_to_e8m0(NAN, SDX_E8M0_UP, true), 255);
    assert_int_equal(sdx_f32_to_e8m0(INFINITY, SDX_E8M0_UP, true), 254);
    assert_int_equal(sdx_f32_to_e8m0(INFINITY, SDX_E8M0_NEAREST, false), 255);
    assert_int_equal(sdx_f32_to_e8m0(0x1.8p127f, SDX_E8M0_UP, true), 254);
    assert_int_equal(sdx_f32_to_e8m0(0x1.8p127f, SDX_E8M0_NEAREST, false), 255);
    assert_int_equal(sdx_f32_to_e8m0(0x1p-127f, SDX_E8M0_UP, true), 0);
    assert_int_equal(sdx_f32_to_e8m0(0x1.1p-127f, SDX_E8M0_UP, true), 1);
    assert_int_equal(sdx_f32_to_e8m0(0x1p-128f, SDX_E8M0_UP, true), 0);
    assert_int_equal(sdx_f32_to_e8m0(0x1p-128f, SDX_E8M0_DOWN, false), 255);
}

static void halves_decode(void **state)
{
    (void)state;
    static float values[65536];
    size_t n = 0;
    for (int i = 0; i < 65536; i++) {
        float x = sdx_f16_to_f32((uint16_t)i);
        if (!isnan(x)) {
            values[n++] = x;
            assert_int_equal(sdx_f32_to_f16(x), i);
        } else {
            assert_true((i & 0x7c00) == 0x7c00 && (i & 0x3ff) != 0);
            assert_int_equal(sdx_f32_to_f16(x), i | 0x200);
        }
    }
    assert_true(fnv(values, n * sizeof *values) == GOLDEN_F16_TO_F32);
}

static float sweep_values[4 * 65536];
static int64_t sweep_count;

static int make_sweep(void **state)
{
    static const uint32_t low[4] = {0, 1, 0x8000, 0xffff};
    (void)state;
    for (uint32_t i = 0; i < 4 * 65536; i++) {
        float x = f32(i / 4 << 16 | low[i % 4]);
        if (!isnan(x)) sweep_values[sweep_count++] = x;
    }
    return 0;
}

static uint64_t hash_sweep(int dtype, size_t size, const double *doubles, int64_t count)
{
    void *out = malloc((size_t)count * size);
    sdx_convert(dtype, out, 0, doubles ? SDX_F64 : SDX_F32,
                doubles ? (const void *)doubles : (const void *)sweep_values, 0, count, false);
    uint64_t h = fnv(out, (size_t)count * size);
    free(out);
    return h;
}

static void sweeps(void **state)
{
    (void)state;
    assert_true(hash_sweep(SDX_F16, 2, NULL, sweep_count) == GOLDEN_SWEEP_F16);
    assert_true(hash_sweep(SDX_BF16, 2, NULL, sweep_count) == GOLDEN_SWEEP_BF16);
    assert_true(hash_sweep(SDX_F8E4M3FN, 1, NULL, sweep_count) == GOLDEN_SWEEP_F8E4M3FN);
    assert_true(hash_sweep(SDX_F8E4M3FNUZ, 1, NULL, sweep_count) == GOLDEN_SWEEP_F8E4M3FNUZ);
    assert_true(hash_sweep(SDX_F8E5M2, 1, NULL, sweep_count) == GOLDEN_SWEEP_F8E5M2);
    assert_true(hash_sweep(SDX_F8E5M2FNUZ, 1, NULL, sweep_count) == GOLDEN_SWEEP_F8E5M2FNUZ);
}

static void doubles_round_once(void **state)
{
    (void)state;
    double *doubles = malloc((size_t)sweep_count * 2 * sizeof *doubles);
    for (int64_t i = 0; i < sweep_count; i++) {
        doubles[i] = (double)sweep_values[i] * (1 - 0x1p-30);
        doubles[sweep_count + i] = (double)sweep_values[i] * (1 + 0x1p-30);
    }
    assert_true(hash_sweep(SDX_F16, 2, doubles, 2 * sweep_count) == GOLDEN_SWEEP_F64_F16);
    assert_true(hash_sweep(SDX_BF16, 2, doubles, 2 * sweep_count) == GOLDEN_SWEEP_F64_BF16);
    free(doubles);
}

static const struct {
    int to, from;
    uint64_t hash;
} pairs[] = {
#define PAIR(to, from, hash) {to, from, hash},
    GOLDEN_PAIRS(PAIR)
#undef PAIR
};

static void every_pair_of_types(void **state)
{
    (void)state;
    for (int k = 0; k < SDX_COUNT_OF(pairs); k++) {
        unsigned char source[401 * 8] = {0}, target[401 * 8] = {0};
        float values[401];
        int64_t integers[401], n = 401;
        size_t bytes = 0;
        for (int i = 0; i < 401; i++) {
            values[i] = (float)(i - 200) / 4;
            integers[i] = (i - 200) / 4;
        }
        if (pairs[k].from == SDX_F8E8M0)
            for (n = 0; n < 15; n++)
                source[n] = (unsigned char)(120 + n);
        else if (sdx_dtype_is_integer(pairs[k].from))
            sdx_convert(pairs[k].from, source, 0, SDX_I64, integers, 0, n, false);
        else
            sdx_convert(pairs[k].from, source, 0, SDX_F32, values, 0, n, false);
        sdx_convert(pairs[k].to, target, 0, pairs[k].from, source, 0, n, false);
        assert_true(sdx_dtype_bytes(pairs[k].to, n, &bytes));
        if (fnv(target, bytes) != pairs[k].hash)
            fail_msg("%s to %s differs from NumPy", sdx_dtype_short_name(pairs[k].from),
                     sdx_dtype_short_name(pairs[k].to));
    }
}

static void packed_elements_at_any_place(void **state)
{
    (void)state;
    const int types[] = {SDX_U4, SDX_I4, SDX_U2, SDX_I2, SDX_F4E2M1, SDX_F6E2M3, SDX_F6E3M2};
    for (int k = 0; k < SDX_COUNT_OF(types); k++)
        for (int64_t to = 0; to < 9; to++)
            for (int64_t from = 0; from < 5; from++) {
                unsigned char source[24], target[24];
                for (int i = 0; i < 24; i++)
                    source[i] = (unsigned char)(37 * i + 11);
                memset(target, 0xa5, sizeof target);
                sdx_convert(types[k], target, to, types[k], source, from, 7, true);
                unsigned char untouched[24];
                memset(untouched, 0xa5, sizeof untouched);
                for (int64_t i = 0; i < 32; i++) {
                    bool inside = i >= to && i < to + 7;
                    assert_true(sdx_load_f64(types[k], target, i) ==
                                (inside ? sdx_load_f64(types[k], source, from + i - to)
                                        : sdx_load_f64(types[k], untouched, i)));
                }
            }
}

static void one_element_stores_saturate(void **state)
{
    (void)state;
    const struct {
        int dtype;
        double x;
        int64_t expected;
    } rows[] = {
        {SDX_I8, 1e9, 127},
        {SDX_I8, -1e9, -128},
        {SDX_U8, -3, 0},
        {SDX_U8, 255.9, 255},
        {SDX_I8, -1.9, -1},
        {SDX_I4, 100, 7},
        {SDX_I4, -100, -8},
        {SDX_U2, 9, 3},
        {SDX_I2, -9, -2},
        {SDX_I32, NAN, 0},
        {SDX_I64, 1e30, INT64_MAX},
        {SDX_I64, -1e30, INT64_MIN},
        {SDX_U64, 1e30, -1},
        {SDX_U64, 0x1.8p63, (int64_t)(3ull << 62)},
        {SDX_U64, -1, 0},
        {SDX_U32, 1e10, UINT32_MAX},
        {SDX_I32, -INFINITY, INT32_MIN},
    };
    for (int k = 0; k < SDX_COUNT_OF(rows); k++) {
        uint64_t cell = 0;
        sdx_store_f64(rows[k].dtype, &cell, 0, rows[k].x);
        assert_int_equal(sdx_load_i64(rows[k].dtype, &cell, 0), rows[k].expected);
    }
    uint64_t cell = 0;
    sdx_store_i64(SDX_I8, &cell, 0, 200);
    assert_int_equal(sdx_load_i64(SDX_I8, &cell, 0), -56);
    sdx_store_i64(SDX_BOOL, &cell, 0, 256);
    assert_int_equal(sdx_load_i64(SDX_BOOL, &cell, 0), 1);
    const float big = 1e30f;
    assert_int_equal(sdx_load_i64(SDX_F32, &big, 0), INT64_MAX);
}

static void casts_out_of_range_are_defined(void **state)
{
    (void)state;
    const double from[] = {NAN, INFINITY, -INFINITY, 1e10, -1e10, 3e9, 1e19};
    int32_t i32[7];
    int64_t i64[7];
    uint64_t u64[7];
    sdx_convert(SDX_I32, i32, 0, SDX_F64, from, 0, 7, true);
    sdx_convert(SDX_I64, i64, 0, SDX_F64, from, 0, 7, true);
    sdx_convert(SDX_U64, u64, 0, SDX_F64, from, 0, 7, true);
    for (int i = 0; i < 7; i++)
        assert_int_equal(i32[i], INT32_MIN);
    for (int i = 0; i < 3; i++)
        assert_true(i64[i] == INT64_MIN);
    assert_true(i64[3] == 10000000000 && i64[4] == -10000000000 && i64[6] == INT64_MIN);
    assert_true(u64[6] == 10000000000000000000u);
}

static void complex_numbers(void **state)
{
    (void)state;
    const float from[] = {1.5f, -2, 3, 4};
    double wide[4];
    float real[2], back[4];
    sdx_convert(SDX_C128, wide, 0, SDX_C64, from, 0, 2, true);
    assert_true(wide[0] == 1.5 && wide[1] == -2 && wide[2] == 3 && wide[3] == 4);
    sdx_convert(SDX_F32, real, 0, SDX_C64, from, 0, 2, true);
    assert_true(real[0] == 1.5f && real[1] == 3);
    sdx_convert(SDX_C64, back, 0, SDX_F32, real, 0, 2, true);
    assert_true(back[0] == 1.5f && back[1] == 0 && back[2] == 3 && back[3] == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_formats_decode),
        cmocka_unit_test(small_formats_encode),
        cmocka_unit_test(small_formats_nan),
        cmocka_unit_test(e8m0),
        cmocka_unit_test(halves_decode),
        cmocka_unit_test(sweeps),
        cmocka_unit_test(doubles_round_once),
        cmocka_unit_test(every_pair_of_types),
        cmocka_unit_test(packed_elements_at_any_place),
        cmocka_unit_test(one_element_stores_saturate),
        cmocka_unit_test(casts_out_of_range_are_defined),
        cmocka_unit_test(complex_numbers),
    };
    return cmocka_run_group_tests(tests, make_sweep, NULL);
}
