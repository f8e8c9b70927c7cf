/* SPDX-License-Identifier: Apache-2.0
 * Numbers and text: grammar, limits, shortest text that reads back, and a locale with a comma. */
#include "unit.h"

#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>

#include "base/str.h"

static void integers(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t value;
    } good[] = {{"0", 0},
                {"-0", 0},
                {"+17", 17},
                {"0000000000000000000000012", 12},
                {"9223372036854775807", INT64_MAX},
                {"-9223372036854775808", INT64_MIN}};
    static const char *const bad[] = {"",
                                      "-",
                                      "+",
                                      "1x",
                                      " 1",
                                      "1 ",
                                      "--1",
                                      "0x10",
                                      "1.0",
                                      "1e3",
                                      "9223372036854775808",
                                      "-9223372036854775809",
                                      "99999999999999999999999"};
    int64_t value;
    for (int i = 0; i < SDX_COUNT_OF(good); i++) {
        assert_true(sdx_parse_i64(sdx_str(good[i].text), &value));
        assert_true(value == good[i].value);
    }
    for (int i = 0; i < SDX_COUNT_OF(bad); i++)
        assert_false(sdx_parse_i64(sdx_str(bad[i]), &value));
    assert_true(sdx_parse_i64((struct sdx_str){"123456", 3}, &value) && value == 123);
    assert_false(sdx_parse_i64(sdx_str(NULL), &value));
}

static void floats(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double value;
    } good[] = {{"0", 0},
                {"1.5", 1.5},
                {".5", 0.5},
                {"5.", 5},
                {"-1e3", -1000},
                {"+2.5E-1", 0.25},
                {"inf", INFINITY},
                {"-Infinity", -INFINITY},
                {"1e-400", 0},
                {"4.9e-324", 4.9e-324},
                {"1.7976931348623157e308", DBL_MAX},
                {"0.1", 0.1}};
    static const char *const bad[] = {"",    ".",     "-",      "e5",       "1e",
                                      "1e+", "0x1p3", "1,5",    "1.5f",     " 1",
                                      "1 ",  "1e999", "-1e999", "infinite", "nan(1)"};
    double value;
    for (int i = 0; i < SDX_COUNT_OF(good); i++) {
        assert_true(sdx_parse_f64(sdx_str(good[i].text), &value));
        assert_true(value == good[i].value);
    }
    for (int i = 0; i < SDX_COUNT_OF(bad); i++)
        assert_false(sdx_parse_f64(sdx_str(bad[i]), &value));
    assert_true(sdx_parse_f64(SDX_STR("NaN"), &value) && isnan(value));
    assert_true(sdx_parse_f64((struct sdx_str){"1.25999", 4}, &value) && value == 1.25);
    char many[500];
    memset(many, '1', sizeof many);
    assert_false(sdx_parse_f64((struct sdx_str){many, sizeof many}, &value));
}

static void shortest_texts(void **state)
{
    (void)state;
    static const struct {
        double value;
        const char *text;
    } wide[] = {{0, "0"},
                {-0.0, "-0"},
                {1, "1"},
                {0.1, "0.1"},
                {1e23, "1e+23"},
                {5e-324, "5e-324"},
                {1.0 / 3, "0.3333333333333333"},
                {INFINITY, "inf"},
                {-INFINITY, "-inf"},
                {NAN, "nan"},
                {-1.7976931348623157e308, "-1.7976931348623157e+308"}};
    static const struct {
        float value;
        const char *text;
    } narrow[] = {{0.1F, "0.1"},
                  {16777216.F, "16777216"},
                  {1e-45F, "1e-45"},
                  {1.F / 3, "0.33333334"},
                  {3.4028235e38F, "3.4028235e+38"}};
    char buf[32];
    for (int i = 0; i < SDX_COUNT_OF(wide); i++) {
        assert_int_equal(sdx_format_f64(buf, wide[i].value), strlen(wide[i].text));
        assert_string_equal(buf, wide[i].text);
    }
    for (int i = 0; i < SDX_COUNT_OF(narrow); i++) {
        assert_int_equal(sdx_format_f32(buf, narrow[i].value), strlen(narrow[i].text));
        assert_string_equal(buf, narrow[i].text);
    }
}

static void texts_read_back(void **state)
{
    (void)state;
    uint64_t bits = 88172645463325252U;
    for (int i = 0; i < 20000; i++) {
        bits ^= bits << 13;
        bits ^= bits >> 7;
        bits ^= bits << 17;
        double value, back;
        memcpy(&value, &bits, sizeof value);
        char buf[32];
        if (!isfinite(value)) continue;
        int length = sdx_format_f64(buf, value);
        assert_true(length < 32);
        assert_true(sdx_parse_f64((struct sdx_str){buf, (size_t)length}, &back) && back == value);
    }
}

/* A locale is only there when the system has it; without one the rest of the test still holds. */
static void comma_locales_change_nothing(void **state)
{
    (void)state;
    static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "de_DE"};
    const char *set = NULL;
    for (int i = 0; set == NULL && i < SDX_COUNT_OF(names); i++)
        set = setlocale(LC_NUMERIC, names[i]);
    if (set == NULL) {
        print_message("no locale with a decimal comma is installed\n");
        skip();
    }
    shortest_texts(NULL);
    floats(NULL);
    setlocale(LC_NUMERIC, "C");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers),
        cmocka_unit_test(floats),
        cmocka_unit_test(shortest_texts),
        cmocka_unit_test(texts_read_back),
        cmocka_unit_test(comma_locales_change_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
