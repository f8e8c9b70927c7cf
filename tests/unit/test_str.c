/* SPDX-License-Identifier: Apache-2.0
 * String views, UTF-8, hash, growing text. */
#include "unit.h"

#include "base/str.h"

static void views_compare(void **state)
{
    (void)state;
    assert_true(sdx_str_equal(sdx_str(NULL), SDX_STR("")));
    assert_true(sdx_str_is(SDX_STR("Conv"), "Conv"));
    assert_false(sdx_str_is(SDX_STR("Conv"), "Convolution"));
    assert_true(sdx_str_compare(SDX_STR("a"), SDX_STR("ab")) < 0);
    assert_true(sdx_str_compare(SDX_STR("b"), SDX_STR("ab")) > 0);
    assert_true(sdx_str_compare(SDX_STR("\xff"), SDX_STR("a")) > 0);
    assert_int_equal(sdx_str_compare(sdx_str(NULL), sdx_str("")), 0);
}

static void utf8_is_checked(void **state)
{
    (void)state;
    static const char *const good[] = {"",
                                       "plain",
                                       "\xc2\x80",
                                       "\xdf\xbf",
                                       "\xe0\xa0\x80",
                                       "\xed\x9f\xbf",
                                       "\xef\xbf\xbf",
                                       "\xf0\x90\x80\x80",
                                       "\xf4\x8f\xbf\xbf"};
    static const char *const bad[] = {"\x80",
                                      "\xc0\x80",
                                      "\xc1\xbf",
                                      "\xc2",
                                      "\xe0\x9f\xbf",
                                      "\xed\xa0\x80",
                                      "\xf0\x8f\xbf\xbf",
                                      "\xf4\x90\x80\x80",
                                      "\xf5\x80\x80\x80",
                                      "\xe2\x82",
                                      "\xe2\x28\xa1",
                                      "\xff"};
    for (int i = 0; i < SDX_COUNT_OF(good); i++)
        assert_true(sdx_str_is_utf8(sdx_str(good[i])));
    for (int i = 0; i < SDX_COUNT_OF(bad); i++)
        assert_false(sdx_str_is_utf8(sdx_str(bad[i])));
    assert_false(sdx_str_is_utf8((struct sdx_str){"a\0b", 3}));
}

/* SipHash-1-3 has no table in its paper; what counts is that keys and every byte matter. */
static void hash_depends_on_all(void **state)
{
    (void)state;
    unsigned char bytes[40] = {0};
    for (size_t size = 0; size < 40; size++) {
        uint64_t whole = sdx_hash_bytes(bytes, size, 1);
        assert_true(whole == sdx_hash_bytes(bytes, size, 1));
        assert_true(whole != sdx_hash_bytes(bytes, size, 2));
        assert_true(whole != sdx_hash_bytes(bytes, size + 1 < 40 ? size + 1 : 0, 1));
        for (size_t i = 0; i < size; i++) {
            bytes[i] ^= 1;
            assert_true(whole != sdx_hash_bytes(bytes, size, 1));
            bytes[i] ^= 1;
        }
    }
}

static void text_grows(void **state)
{
    (void)state;
    struct unit unit;
    unit_init(&unit);
    struct sdx_text text;
    sdx_text_init(&text, &unit.mem);
    assert_string_equal(sdx_text_get(&text), "");
    for (int i = 0; i < 500; i++)
        sdx_text_add(&text, "%03d,", i);
    sdx_text_add_bytes(&text, "end", 3);
    assert_int_equal(text.len, 2003);
    assert_contains(sdx_text_get(&text), "498,499,end");
    atomic_store(&unit.mem.fail_at, 0);
    for (int i = 0; i < 500; i++)
        sdx_text_add(&text, "%03d,", i);
    assert_false(text.ok);
    assert_memory_equal(sdx_text_get(&text), "000,001,", 8);
    sdx_text_clear(&text);
    assert_true(text.ok);
    assert_string_equal(sdx_text_get(&text), "");
    sdx_text_deinit(&text);
    unit_deinit(&unit);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(views_compare),
        cmocka_unit_test(utf8_is_checked),
        cmocka_unit_test(hash_depends_on_all),
        cmocka_unit_test(text_grows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
