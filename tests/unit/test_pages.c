/* SPDX-License-Identifier: Apache-2.0
 * Blocks in regions: alignment, no overlap, exact counts, limits, an allocator of the program. */
#include "unit.h"

#include <stdlib.h>

#include "base/pages.h"

/* 60 MB in 40 blocks: three regions, one of them for a block alone. */
static size_t size_of(size_t i)
{
    return i == 30 ? (size_t)40 << 20 : 100 + i * 25000;
}
static void blocks_are_apart_and_counted(void **state)
{
    (void)state;
    struct unit unit;
    unit_init(&unit);
    struct sdx_pages pages;
    sdx_pages_init(&pages, &unit.mem, SDX_MEM_WEIGHTS);
    enum { COUNT = 40 };
    unsigned char *blocks[COUNT];
    size_t total = 0;
    for (size_t i = 0; i < COUNT; i++) {
        const size_t size = size_of(i);
        blocks[i] = sdx_pages_alloc(&pages, size);
        assert_non_null(blocks[i]);
        assert_int_equal((uintptr_t)blocks[i] % 64, 0);
        blocks[i][0] = blocks[i][size - 1] = (unsigned char)i;
        total += size;
        assert_true(atomic_load(&unit.mem.tag_now[SDX_MEM_WEIGHTS]) >= total);
        assert_true(atomic_load(&unit.mem.tag_now[SDX_MEM_WEIGHTS]) <= total + COUNT * 64);
    }
    for (size_t i = 0; i < COUNT; i++) {
        assert_int_equal(blocks[i][0], i);
        assert_int_equal(blocks[i][size_of(i) - 1], i);
    }
    sdx_pages_deinit(&pages);
    assert_int_equal(atomic_load(&unit.mem.tag_now[SDX_MEM_WEIGHTS]), 0);
    sdx_pages_deinit(&pages); /* again is harmless */
    unit_deinit(&unit);
}

/* What a block gives back is the next one's. */
static void what_is_not_used_comes_back(void **state)
{
    (void)state;
    struct unit unit;
    unit_init(&unit);
    struct sdx_pages pages;
    sdx_pages_init(&pages, &unit.mem, SDX_MEM_WEIGHTS);
    const size_t size = (size_t)20 << 20;
    unsigned char *a = sdx_pages_alloc(&pages, size);
    assert_non_null(a);
    sdx_pages_trim(&pages, a, size, 1000);
#ifndef __SANITIZE_ADDRESS__
    assert_int_equal(atomic_load(&unit.mem.tag_now[SDX_MEM_WEIGHTS]), 1000);
    unsigned char *b = sdx_pages_alloc(&pages, size);
    assert_ptr_equal(b, a + 1024);
    sdx_pages_trim(&pages, b, size, size);
    assert_int_equal(atomic_load(&unit.mem.tag_now[SDX_MEM_WEIGHTS]), 1000 + size);
    sdx_pages_trim(&pages, b, size, 0);
    assert_ptr_equal(sdx_pages_alloc(&pages, 8), b);
#endif
    sdx_pages_deinit(&pages);
    assert_int_equal(atomic_load(&unit.mem.tag_now[SDX_MEM_WEIGHTS]), 0);
    unit_deinit(&unit);
}

static void limits_hold(void **state)
{
    (void)state;
    struct sdx_mem mem;
    struct sdx_pages pages;
    sdx_mem_init(&mem, NULL, 1 << 20);
    sdx_pages_init(&pages, &mem, SDX_MEM_WEIGHTS);
    assert_non_null(sdx_pages_alloc(&pages, 1000000));
    assert_null(sdx_pages_alloc(&pages, 100000));
    assert_true(atomic_load(&mem.failed_by_limit));
    assert_null(sdx_pages_alloc(&pages, SIZE_MAX - 8));
    assert_non_null(sdx_pages_alloc(&pages, 10000));
    atomic_store(&mem.fail_at, 0);
    assert_null(sdx_pages_alloc(&pages, 10));
    sdx_pages_deinit(&pages);
    assert_int_equal(atomic_load(&mem.now), 0);
}

static void *count_alloc(size_t size, void *user)
{
    ++*(int *)user;
    return malloc(size);
}
static void count_free(void *block, void *user)
{
    --*(int *)user;
    free(block);
}
static void an_allocator_of_the_program_serves(void **state)
{
    (void)state;
    struct sdx_mem mem;
    struct sdx_pages pages;
    int live = 0;
    sdx_mem_init(&mem, NULL, 0);
    mem.alloc = count_alloc;
    mem.free = count_free;
    mem.user = &live;
    sdx_pages_init(&pages, &mem, SDX_MEM_WEIGHTS);
    for (int i = 0; i < 3; i++)
        memset(sdx_pages_alloc(&pages, 70000), i, 70000);
    assert_int_equal(live, 3);
    sdx_pages_deinit(&pages);
    assert_int_equal(live, 0);
    assert_int_equal(atomic_load(&mem.now), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_are_apart_and_counted),
        cmocka_unit_test(what_is_not_used_comes_back),
        cmocka_unit_test(limits_hold),
        cmocka_unit_test(an_allocator_of_the_program_serves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
