/* SPDX-License-Identifier: Apache-2.0
 * Error texts: the first wins, where is put in front, one plain line whatever a file holds; log. */
#include "unit.h"

#include <stdio.h>

static void first_failure_wins(void **state)
{
    (void)state;
    struct unit unit;
    unit_init(&unit);
    struct sdx_context *cx = &unit.cx;
    assert_int_equal(SDX_FAIL(cx, SDX_BAD_MODEL, "Conv: rank %d, expected %d", 1, 3),
                     SDX_BAD_MODEL);
    assert_int_equal(SDX_FAIL(cx, SDX_IO, "later"), SDX_IO);
    assert_string_equal(cx->error.text, "Conv: rank 1, expected 3");
    assert_int_equal(cx->error.status, SDX_BAD_MODEL);
    assert_contains(cx->error.file, "test_context.c");
    assert_int_equal(sdx_fail_where(cx, "node \"%s\"", "conv1"), SDX_BAD_MODEL);
    assert_string_equal(cx->error.text, "node \"conv1\": Conv: rank 1, expected 3");
    sdx_context_clear(cx);
    assert_string_equal(cx->error.text, "");
    assert_int_equal(sdx_fail_where(cx, "nothing held"), SDX_OK);
    assert_int_equal(SDX_FAIL(cx, SDX_IO, "%s", "again"), SDX_IO);
    assert_string_equal(cx->error.text, "again");
    assert_int_equal(SDX_FAIL(NULL, SDX_IO, "no context"), SDX_IO);
}

static void texts_are_one_plain_line(void **state)
{
    (void)state;
    struct unit unit;
    unit_init(&unit);
    struct sdx_context *cx = &unit.cx;
    (void)SDX_FAIL(cx, SDX_IO, "%s", "a\nb\tc\x7f d\xff \xc3\xa9 \xe2\x82");
    assert_string_equal(cx->error.text, "a?b?c? d? \xc3\xa9 ??");
    sdx_context_clear(cx);
    char big[3000];
    memset(big, 'x', sizeof big - 1);
    big[sizeof big - 1] = '\0';
    (void)SDX_FAIL(cx, SDX_IO, "%s", "the reason");
    sdx_fail_where(cx, "%s", big);
    assert_contains(cx->error.text, "x: the reason");
    sdx_context_clear(cx);
    (void)SDX_FAIL(cx, SDX_IO, "%s", big);
    assert_int_equal(strlen(cx->error.text), SDX_ERROR_TEXT - 1);
}

static void fail_part(void *arg, int64_t part, int worker)
{
    (void)worker;
    (void)SDX_FAIL(arg, SDX_RUN_FAILED, "part %03d of many", (int)part);
}

static void parts_may_fail_together(void **state)
{
    (void)state;
    struct unit unit;
    unit_init(&unit);
    struct sdx_pool *pool = sdx_pool_create(&unit.mem, 4);
    for (int round = 0; round < 50; round++) {
        sdx_parallel_for(pool, 0, 100, 1, fail_part, &unit.cx);
        assert_int_equal(strlen(unit.cx.error.text), strlen("part 000 of many"));
        assert_int_equal(unit.cx.error.status, SDX_RUN_FAILED);
        sdx_context_clear(&unit.cx);
    }
    sdx_pool_destroy(pool);
    unit_deinit(&unit);
}

static void keep_line(sdx_log_level level, const char *area, const char *text, void *user)
{
    snprintf(user, 100, "%d %s %s", (int)level, area, text);
}

static void log_has_levels(void **state)
{
    (void)state;
    struct unit unit;
    unit_init(&unit);
    char line[100] = "";
    sdx_log(&unit.cx, SDX_LOG_ERROR, "run", "nobody listens");
    unit.cx.log = keep_line;
    unit.cx.log_user = line;
    struct sdx_context child;
    sdx_context_init_child(&child, &unit.cx);
    assert_ptr_equal(child.mem, &unit.mem);
    sdx_log(&child, SDX_LOG_INFO, "run", "below the level");
    assert_string_equal(line, "");
    sdx_log(&child, SDX_LOG_WARNING, "run", "%d nodes", 3);
    assert_string_equal(line, "2 run 3 nodes");
}

static void memory_failures_say_how_much(void **state)
{
    (void)state;
    struct unit unit;
    unit_init(&unit);
    atomic_store(&unit.mem.fail_at, 0);
    assert_null(sdx_mem_alloc(&unit.mem, SDX_MEM_OTHER, 12345));
    assert_int_equal(SDX_FAIL_MEMORY(&unit.cx), SDX_OUT_OF_MEMORY);
    assert_string_equal(unit.cx.error.text, "out of memory: 12345 bytes asked");
    sdx_context_clear(&unit.cx);
    unit.mem.limit = 1000;
    assert_null(sdx_mem_alloc(&unit.mem, SDX_MEM_OTHER, 1001));
    assert_int_equal(SDX_FAIL_MEMORY(&unit.cx), SDX_OUT_OF_MEMORY);
    assert_string_equal(unit.cx.error.text, "memory limit of 1000 bytes reached: 1001 bytes asked");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_failure_wins),           cmocka_unit_test(texts_are_one_plain_line),
        cmocka_unit_test(parts_may_fail_together),      cmocka_unit_test(log_has_levels),
        cmocka_unit_test(memory_failures_say_how_much),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
