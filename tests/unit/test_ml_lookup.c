/* SPDX-License-Identifier: Apache-2.0
 * Lookup tables: numbers, texts, NaN and repeated keys. */
#include "unit.h"

#include <math.h>

#include "ops/ml_lookup.h"

struct fixture {
    struct unit unit;
    struct sdx_arena arena;
    struct sdx_prepare px;
};

static void begin(struct fixture *f)
{
    unit_init(&f->unit);
    sdx_arena_init(&f->arena, &f->unit.mem, SDX_MEM_PLAN);
    f->px = (struct sdx_prepare){.cx = &f->unit.cx, .arena = &f->arena};
}

static void end(struct fixture *f)
{
    sdx_arena_deinit(&f->arena);
    unit_deinit(&f->unit);
}

static void test_ints(void **state)
{
    (void)state;
    enum { COUNT = 3000 };
    static int64_t keys[COUNT];
    struct fixture f;
    struct sdx_lookup table;
    begin(&f);
    for (int64_t i = 0; i < COUNT; i++)
        keys[i] = (i - COUNT / 2) * 1000003;
    assert_int_equal(sdx_lookup_ints(&f.px, &table, keys, COUNT), SDX_OK);
    for (int64_t i = 0; i < COUNT; i++) {
        assert_int_equal(sdx_lookup_int(&table, keys[i]), i);
        assert_int_equal(sdx_lookup_int(&table, keys[i] + 1), -1);
    }
    assert_int_equal(sdx_lookup_ints(&f.px, &table, NULL, 0), SDX_OK);
    assert_int_equal(sdx_lookup_int(&table, 0), -1);
    end(&f);
}

static void test_reals(void **state)
{
    (void)state;
    static const double keys[] = {0.0, 1.5, (double)NAN, 1.5};
    struct fixture f;
    struct sdx_lookup table;
    begin(&f);
    assert_int_equal(sdx_lookup_reals(&f.px, &table, keys, 4), SDX_OK);
    assert_int_equal(sdx_lookup_real(&table, -0.0), 0);
    assert_int_equal(sdx_lookup_real(&table, -(double)NAN), 2);
    assert_int_equal(sdx_lookup_real(&table, 1.5), 3); /* the last of equal keys */
    assert_int_equal(sdx_lookup_real(&table, 2.5), -1);
    end(&f);
}

static void test_texts(void **state)
{
    (void)state;
    const struct sdx_str keys[] = {SDX_STR("a"), SDX_STR(""), SDX_STR("ab")};
    struct fixture f;
    struct sdx_lookup table;
    begin(&f);
    assert_int_equal(sdx_lookup_texts(&f.px, &table, keys, 3), SDX_OK);
    assert_int_equal(sdx_lookup_text(&table, SDX_STR("ab")), 2);
    assert_int_equal(sdx_lookup_text(&table, (struct sdx_str){NULL, 0}), 1);
    assert_int_equal(sdx_lookup_text(&table, SDX_STR("b")), -1);
    end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ints),
        cmocka_unit_test(test_reals),
        cmocka_unit_test(test_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
