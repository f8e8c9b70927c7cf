/* SPDX-License-Identifier: Apache-2.0
 * Regular expressions: what matches whole, what does not, and which patterns are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "ops/regex.h"

static const struct {
    const char *pattern, *text;
    bool matches;
} cases[] = {
    {"", "", true},
    {"", "a", false},
    {"abc", "abc", true},
    {"abc", "abcd", false},
    {"a*", "", true},
    {"a*", "aaaa", true},
    {"a+", "", false},
    {"(a|b)*c", "ababc", true},
    {"(a|b|)c", "c", true},
    {"a|bc|d", "bc", true},
    {"a|bc|d", "b", false},
    {"(a*)*", "aaa", true},
    {"(a*){0,2}b", "aab", true},
    {"(ab*){2,3}", "abbab", true},
    {"(ab*){2,3}", "a", false},
    {"(ab*){2,3}", "aaaa", false},
    {"x{3}", "xxx", true},
    {"x{3}", "xx", false},
    {"x{2,}", "xxxxx", true},
    {"x{0}y", "y", true},
    {"x{,2}", "x{,2}", true},
    {"(x|y){1,2}?", "xy", true},
    {".", "\n", false},
    {"(?s).", "\n", true},
    {".", "\xc3\xa9", true},
    {"[a-c]+", "abcabc", true},
    {"[^a-c]+", "xyz", true},
    {"[^a-c]+", "xaz", false},
    {"[]a]+", "]a]", true},
    {"[a\\-z]+", "-az", true},
    {"[[:digit:]x]+", "12x", true},
    {"[\\w.]+@\\w+\\.com", "a.b@example.com", true},
    {"\\d{4}-\\d\\d", "2024-05", true},
    {"\\D+", "ab1", false},
    {"(?i)hello", "HeLLo", true},
    {"(?i:h)ello", "Hello", true},
    {"(?i:h)ello", "HELLO", false},
    {"(?i)[a-f]+", "ABCdef", true},
    {"^abc$", "abc", true},
    {"\\bfoo\\b bar", "foo bar", true},
    {"foo\\Bbar", "foobar", true},
    {"foo\\bbar", "foobar", false},
    {"(?P<name>a)b", "ab", true},
    {"\\x41\\x{e9}\\t", "A\xc3\xa9\t", true},
    {"\\Qa.b\\E+", "a.bb", true},
    {"\\Qa.b\\E+", "a.ba.b", false},
    {"\\Qa.b\\E", "a.b", true},
    {"(x\\Qab\\E)+", "xabxab", true},
    {"(www.)?[a-z]+\\.(com|org)", "www.foo.org", true},
    {"(a?){50}a{50}", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", true},
};

static void test_matches(void **state)
{
    (void)state;
    struct sdx_context *cx = sdx_context_create(NULL);
    for (int i = 0; i < SDX_COUNT_OF(cases); i++) {
        struct sdx_arena arena;
        struct sdx_regex *re = NULL;
        sdx_arena_init(&arena, cx->mem, SDX_MEM_OTHER);
        assert_int_equal(sdx_regex_create(cx, &arena, sdx_str(cases[i].pattern), &re), SDX_OK);
        void *scratch = sdx_arena_alloc(&arena, sdx_regex_scratch(re));
        if (sdx_regex_match(re, sdx_str(cases[i].text), scratch) != cases[i].matches)
            fail_msg("\"%s\" on \"%s\"", cases[i].pattern, cases[i].text);
        sdx_arena_deinit(&arena);
    }
    sdx_context_destroy(cx);
}

static void test_refused(void **state)
{
    (void)state;
    static const char *const patterns[] = {
        "(",    ")",    "[a",      "*a",   "a{3,2}",         "a\\", "\\pN", "[z-a]",
        "(?<a", "(?Q)", "x{1001}", "\\xZ", "(a{1000}){1000}"};
    struct sdx_context *cx = sdx_context_create(NULL);
    for (int i = 0; i < SDX_COUNT_OF(patterns); i++) {
        struct sdx_arena arena;
        struct sdx_regex *re = NULL;
        sdx_arena_init(&arena, cx->mem, SDX_MEM_OTHER);
        if (sdx_regex_create(cx, &arena, sdx_str(patterns[i]), &re) != SDX_BAD_MODEL)
            fail_msg("\"%s\" is not refused", patterns[i]);
        sdx_context_clear(cx);
        sdx_arena_deinit(&arena);
    }
    sdx_context_destroy(cx);
}

/* All places where a pattern is found, as pairs of begin and end. Returns how many. */
static int places_of(struct sdx_context *cx, const char *pattern, struct sdx_str text, int most,
                     size_t (*places)[2])
{
    struct sdx_arena arena;
    struct sdx_regex *re = NULL;
    char memory[4096];
    int count = 0;
    sdx_arena_init(&arena, cx->mem, SDX_MEM_OTHER);
    assert_int_equal(sdx_regex_create(cx, &arena, sdx_str(pattern), &re), SDX_OK);
    assert_true(sdx_regex_scratch(re) <= sizeof memory);
    for (size_t from = 0, begin, end;
         count < most && sdx_regex_find(re, text, from, memory, &begin, &end); count++) {
        places[count][0] = begin;
        places[count][1] = end;
        from = end > begin ? end : end + 1;
        if (from > text.len) break;
    }
    sdx_arena_deinit(&arena);
    return count;
}

/* One test again and again is found without threads: where the same as an alternative is. */
static void test_found(void **state)
{
    (void)state;
    static const char *const patterns[] = {
        "[a-z0-9_]+", "\\w{2,}", "\\w{2}",          "x",  ".",     "\\S+", "[^a-c]",
        "(?i)[a-f]+", "\\s",     "[\xc3\xa9z]{3,}", "aa", "a{1}a*"};
    static const char *const texts[] = {"",
                                        "a",
                                        "one two, x3 _y",
                                        "xx x xxx",
                                        "AbCdEfG abc",
                                        "\xc3\xa9"
                                        "z\xc3\xa9 z",
                                        "  \n\t",
                                        "aaaaa a aa",
                                        "z\xc3\xa9",
                                        "tail ab"};
    enum { MOST = 64 };
    struct sdx_context *cx = sdx_context_create(NULL);
    for (int p = 0; p < SDX_COUNT_OF(patterns); p++)
        for (int t = 0; t < SDX_COUNT_OF(texts); t++) {
            size_t found[MOST][2], expected[MOST][2];
            char both[256];
            snprintf(both, sizeof both, "(?:%s)|(?:%s)", patterns[p], patterns[p]);
            const struct sdx_str text = sdx_str(texts[t]);
            const int n = places_of(cx, patterns[p], text, MOST, found);
            assert_int_equal(n, places_of(cx, both, text, MOST, expected));
            assert_memory_equal(found, expected, (size_t)n * sizeof *found);
        }
    sdx_context_destroy(cx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_matches),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
