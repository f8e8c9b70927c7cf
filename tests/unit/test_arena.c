/* SPDX-License-Identifier: Apache-2.0
 * Arenas: alignment, zeroed objects that do not overlap, reset, failing allocations. */
#include "unit.h"

static void objects_are_apart(void **state)
{
    (void)state;
    struct unit unit;
    unit_init(&unit);
    struct sdx_arena arena;
    sdx_arena_init(&arena, &unit.mem, SDX_MEM_MODEL);
    enum { COUNT = 2000 };
    static unsigned char *objects[COUNT];
    static size_t sizes[COUNT];
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < COUNT; i++) {
            sizes[i] = i % 97 == 0 ? i * 13 : i * 7 % 300;
            objects[i] = sdx_arena_alloc(&arena, sizes[i]);
            assert_non_null(objects[i]);
            assert_int_equal((uintptr_t)objects[i] % (sizes[i] >= 256 ? 64 : 16), 0);
            for (size_t k = 0; k < sizes[i]; k++)
                assert_int_equal(objects[i][k], 0);
            memset(objects[i], (int)(i % 255) + 1, sizes[i]);
        }
        for (size_t i = 0; i < COUNT; i++)
            for (size_t k = 0; k < sizes[i]; k++)
                assert_int_equal(objects[i][k], i % 255 + 1);
        sdx_arena_reset(&arena);
        assert_true(atomic_load(&unit.mem.now) <= 8192); /* the first block is kept */
        assert_true(atomic_load(&unit.mem.now) > 0);
    }
    sdx_arena_deinit(&arena);
    unit_deinit(&unit);
}

static void copies_and_texts(void **state)
{
    (void)state;
    struct unit unit;
    unit_init(&unit);
    struct sdx_arena arena;
    sdx_arena_init(&arena, &unit.mem, SDX_MEM_MODEL);
    const int numbers[3] = {1, 2, 3};
    assert_memory_equal(sdx_arena_copy(&arena, numbers, sizeof numbers), numbers, sizeof numbers);
    assert_non_null(sdx_arena_copy(&arena, NULL, 0));
    assert_string_equal(sdx_arena_strndup(&arena, "abcdef", 3), "abc");
    assert_string_equal(sdx_arena_strndup(&arena, NULL, 0), "");
    assert_string_equal(sdx_arena_printf(&arena, "%s %d", "node", 7), "node 7");
    assert_null(sdx_arena_array(&arena, SIZE_MAX / 8, 16));
    assert_null(sdx_arena_alloc(&arena, SIZE_MAX - 8));
    sdx_arena_deinit(&arena);
    sdx_arena_deinit(&arena); /* again is harmless */
    sdx_arena_reset(&arena);
    unit_deinit(&unit);
}

static void no_memory_leaves_the_arena_usable(void **state)
{
    (void)state;
    struct unit unit;
    unit_init(&unit);
    struct sdx_arena arena;
    sdx_arena_init(&arena, &unit.mem, SDX_MEM_MODEL);
    atomic_store(&unit.mem.fail_at, 0);
    assert_null(sdx_arena_alloc(&arena, 10));
    char *small = sdx_arena_alloc(&arena, 10);
    assert_non_null(small);
    memcpy(small, "123456789", 10);
    atomic_store(&unit.mem.fail_at, 0);
    assert_null(sdx_arena_alloc(&arena, 100000));
    assert_non_null(sdx_arena_alloc(&arena, 10));
    assert_string_equal(small, "123456789");
    sdx_arena_deinit(&arena);
    unit_deinit(&unit);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(objects_are_apart),
        cmocka_unit_test(copies_and_texts),
        cmocka_unit_test(no_memory_leaves_the_arena_usable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
