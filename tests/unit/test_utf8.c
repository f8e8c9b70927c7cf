/* SPDX-License-Identifier: Apache-2.0
 * Code points: reading what is written, broken bytes, case mapping both ways. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ops/utf8.h"

static void test_round_trip(void **state)
{
    (void)state;
    for (uint32_t c = 0; c <= 0x10FFFF; c += c < 0x3000 ? 1 : 97) {
        char bytes[4];
        size_t n = sdx_utf8_put(c, bytes), at = 0;
        assert_int_equal(sdx_utf8_next((struct sdx_str){bytes, n}, &at), c);
        assert_int_equal(at, n);
    }
}

static void test_broken(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t len;
    } texts[] = {{"\xff", 1},     {"\x80z", 2},        {"\xc3", 1},
                 {"\xe2\x82", 2}, {"\xf0\x9f\x98", 3}, {"\xc3(", 2}};
    for (int i = 0; i < SDX_COUNT_OF(texts); i++) {
        size_t at = 0;
        struct sdx_str s = {texts[i].bytes, texts[i].len};
        (void)sdx_utf8_next(s, &at);
        assert_int_equal(at, 1); /* one bad byte, then on */
        while (at < s.len)
            (void)sdx_utf8_next(s, &at);
        assert_int_equal(at, s.len);
    }
}

static void test_case(void **state)
{
    (void)state;
    static const uint32_t pairs[][2] = {
        {'A', 'a'},     {'Z', 'z'},     {0xC9, 0xE9},    {0x178, 0xFF},  {0x100, 0x101},
        {0x147, 0x148}, {0x17D, 0x17E}, {0x394, 0x3B4},  {0x38F, 0x3CE}, {0x416, 0x436},
        {0x401, 0x451}, {0x531, 0x561}, {0x1EF8, 0x1EF9}};
    for (int i = 0; i < SDX_COUNT_OF(pairs); i++) {
        assert_int_equal(sdx_utf8_lower(pairs[i][0]), pairs[i][1]);
        assert_int_equal(sdx_utf8_upper(pairs[i][1]), pairs[i][0]);
        assert_int_equal(sdx_utf8_lower(pairs[i][1]), pairs[i][1]);
        assert_int_equal(sdx_utf8_upper(pairs[i][0]), pairs[i][0]);
    }
    static const uint32_t without[] = {'0', '@', '[', 0xD7, 0xF7, 0x138, 0x4E2D, 0x1F600};
    for (int i = 0; i < SDX_COUNT_OF(without); i++) {
        assert_int_equal(sdx_utf8_lower(without[i]), without[i]);
        assert_int_equal(sdx_utf8_upper(without[i]), without[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_broken),
        cmocka_unit_test(test_case),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
