/* SPDX-License-Identifier: Apache-2.0
 * The map: many keys, replacing, empty and binary keys, no memory. */
#include "unit.h"

#include <stdio.h>

#include "base/str.h"

enum { COUNT = 5000 };

static void holds_many(void **state)
{
    (void)state;
    struct unit unit;
    unit_init(&unit);
    struct sdx_map map;
    sdx_map_init(&map, &unit.mem);
    assert_int_equal(sdx_map_get(&map, SDX_STR("x")), -1);
    static char names[COUNT][16];
    for (int i = 0; i < COUNT; i++) {
        snprintf(names[i], sizeof names[i], "node_%d", i);
        assert_true(sdx_map_put(&map, sdx_str(names[i]), i));
    }
    assert_int_equal(map.count, COUNT);
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(sdx_map_get(&map, sdx_str(names[i])), i);
    assert_int_equal(sdx_map_get(&map, SDX_STR("node_")), -1);
    assert_true(sdx_map_put(&map, SDX_STR("node_7"), INT32_MAX));
    assert_int_equal(sdx_map_get(&map, SDX_STR("node_7")), INT32_MAX);
    assert_int_equal(map.count, COUNT);
    assert_true(sdx_map_put(&map, sdx_str(NULL), 0));
    assert_int_equal(sdx_map_get(&map, SDX_STR("")), 0);
    assert_true(sdx_map_put(&map, (struct sdx_str){"a\0b", 3}, 4));
    assert_int_equal(sdx_map_get(&map, (struct sdx_str){"a\0c", 3}), -1);
    sdx_map_deinit(&map);
    unit_deinit(&unit);
}

static void no_memory_keeps_content(void **state)
{
    (void)state;
    struct unit unit;
    unit_init(&unit);
    struct sdx_map map;
    sdx_map_init(&map, &unit.mem);
    atomic_store(&unit.mem.fail_at, 0);
    assert_false(sdx_map_put(&map, SDX_STR("a"), 1));
    static char names[64][8];
    int held = 0;
    atomic_store(&unit.mem.fail_at, 1);
    for (; held < 64; held++) {
        snprintf(names[held], sizeof names[held], "%d", held);
        if (!sdx_map_put(&map, sdx_str(names[held]), held)) break;
    }
    assert_true(held > 4 && held < 64);
    for (int i = 0; i < held; i++)
        assert_int_equal(sdx_map_get(&map, sdx_str(names[i])), i);
    assert_int_equal(sdx_map_get(&map, sdx_str(names[held])), -1);
    sdx_map_deinit(&map);
    unit_deinit(&unit);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(holds_many),
        cmocka_unit_test(no_memory_keeps_content),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
