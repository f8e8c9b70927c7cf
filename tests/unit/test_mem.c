/* SPDX-License-Identifier: Apache-2.0
 * Counted memory: alignment, counts by tag and level, limits, injected failures, size arithmetic.
 */
#include "unit.h"

#include <pthread.h>
#include <stdlib.h>

static void blocks_are_aligned_and_counted(void **state)
{
    (void)state;
    struct sdx_mem mem;
    sdx_mem_init(&mem, NULL, 0);
    void *blocks[9];
    size_t total = 0;
    for (size_t i = 0; i < 9; i++) {
        size_t size = i == 0 ? 0 : (size_t)1 << (2 * i);
        blocks[i] = sdx_mem_alloc(&mem, SDX_MEM_PLAN, size);
        assert_non_null(blocks[i]);
        assert_int_equal((uintptr_t)blocks[i] % 64, 0);
        assert_int_equal(sdx_mem_size(blocks[i]), size);
        memset(blocks[i], 0xff, size);
        total += size;
    }
    assert_int_equal(atomic_load(&mem.now), total);
    assert_int_equal(atomic_load(&mem.tag_now[SDX_MEM_PLAN]), total);
    assert_int_equal(atomic_load(&mem.count), 9);
    for (int i = 0; i < 9; i++)
        sdx_mem_free(&mem, blocks[i]);
    sdx_mem_free(&mem, NULL);
    assert_int_equal(atomic_load(&mem.now), 0);
    assert_int_equal(atomic_load(&mem.peak), total);
    assert_int_equal(atomic_load(&mem.tag_peak[SDX_MEM_PLAN]), total);
}

static void zeroed_and_grown(void **state)
{
    (void)state;
    struct sdx_mem mem;
    sdx_mem_init(&mem, NULL, 0);
    unsigned char *block = sdx_mem_calloc(&mem, SDX_MEM_OTHER, 10, 30);
    for (int i = 0; i < 300; i++)
        assert_int_equal(block[i], 0);
    memset(block, 7, 300);
    block = sdx_mem_realloc(&mem, SDX_MEM_OTHER, block, 1000);
    for (int i = 0; i < 300; i++)
        assert_int_equal(block[i], 7);
    block = sdx_mem_realloc(&mem, SDX_MEM_OTHER, block, 3);
    assert_int_equal(sdx_mem_size(block), 3);
    assert_int_equal(block[2], 7);
    assert_null(sdx_mem_calloc(&mem, SDX_MEM_OTHER, SIZE_MAX / 2, 3));
    assert_null(sdx_mem_alloc(&mem, SDX_MEM_OTHER, SIZE_MAX - 1));
    sdx_mem_free(&mem, block);
    block = sdx_mem_realloc(&mem, SDX_MEM_OTHER, NULL, 5);
    assert_non_null(block);
    sdx_mem_free(&mem, block);
    assert_int_equal(atomic_load(&mem.now), 0);
}

static void limits_of_all_levels_hold(void **state)
{
    (void)state;
    struct sdx_mem top, model, session;
    sdx_mem_init(&top, NULL, 1000);
    sdx_mem_init(&model, &top, 0);
    sdx_mem_init(&session, &model, 600);
    void *a = sdx_mem_alloc(&model, SDX_MEM_MODEL, 500);
    assert_non_null(a);
    assert_null(sdx_mem_alloc(&session, SDX_MEM_SLAB, 601));
    assert_true(atomic_load(&session.failed_by_limit));
    assert_int_equal(atomic_load(&session.failed), 601);
    assert_null(sdx_mem_alloc(&session, SDX_MEM_SLAB, 501)); /* fits the session, not the top */
    assert_int_equal(atomic_load(&session.now), 0);
    assert_int_equal(atomic_load(&model.now), 500);
    assert_int_equal(atomic_load(&top.now), 500);
    void *b = sdx_mem_alloc(&session, SDX_MEM_SLAB, 500);
    assert_non_null(b);
    assert_int_equal(atomic_load(&top.tag_now[SDX_MEM_SLAB]), 500);
    assert_int_equal(atomic_load(&top.now), 1000);
    void *same = sdx_mem_realloc(&session, SDX_MEM_SLAB, b, 600);
    assert_null(same);
    assert_int_equal(sdx_mem_size(b), 500);

    struct sdx_context cx = {.mem = &session};
    assert_int_equal(SDX_FAIL_MEMORY(&cx), SDX_OUT_OF_MEMORY);
    assert_contains(cx.error.text, "limit of 600 bytes");
    struct sdx_context outer = {.mem = &top}; /* asks above where it happened */
    assert_int_equal(SDX_FAIL_MEMORY(&outer), SDX_OUT_OF_MEMORY);
    assert_contains(outer.error.text, "limit of 600 bytes");
    sdx_mem_free(&session, b);
    sdx_mem_free(&model, a);
    assert_int_equal(atomic_load(&top.now), 0);
}

static void failures_are_injected(void **state)
{
    (void)state;
    struct sdx_mem mem, child;
    sdx_mem_init(&mem, NULL, 0);
    sdx_mem_init(&child, &mem, 0);
    atomic_store(&mem.fail_at, 2);
    void *a = sdx_mem_alloc(&child, SDX_MEM_OTHER, 8);
    void *b = sdx_mem_alloc(&mem, SDX_MEM_OTHER, 8);
    assert_non_null(a);
    assert_non_null(b);
    assert_null(sdx_mem_alloc(&child, SDX_MEM_OTHER, 9));
    assert_false(atomic_load(&child.failed_by_limit));
    assert_int_equal(atomic_load(&child.failed), 9);
    void *c = sdx_mem_alloc(&child, SDX_MEM_OTHER, 8);
    assert_non_null(c);
    sdx_mem_free(&child, a);
    sdx_mem_free(&mem, b);
    sdx_mem_free(&child, c);
    assert_int_equal(atomic_load(&mem.now), 0);
    assert_int_equal(atomic_load(&child.now), 0);
}

struct user {
    int live, refuse;
};

static void *user_alloc(size_t size, void *user)
{
    struct user *u = user;
    if (u->refuse) return NULL;
    u->live++;
    char *block = malloc(size + 8); /* odd on purpose: the alignment is ours to make */
    return block;
}

static void user_free(void *block, void *user)
{
    ((struct user *)user)->live--;
    free(block);
}

static void users_allocator_serves_all_levels(void **state)
{
    (void)state;
    struct user user = {0, 0};
    struct sdx_mem mem, child;
    sdx_mem_init(&mem, NULL, 0);
    mem.alloc = user_alloc;
    mem.free = user_free;
    mem.user = &user;
    sdx_mem_init(&child, &mem, 0);
    void *block = sdx_mem_alloc(&child, SDX_MEM_OTHER, 100);
    assert_int_equal(user.live, 1);
    assert_int_equal((uintptr_t)block % 64, 0);
    user.refuse = 1;
    assert_null(sdx_mem_alloc(&child, SDX_MEM_OTHER, 100));
    assert_int_equal(atomic_load(&mem.now), 100);
    sdx_mem_free(&child, block);
    assert_int_equal(user.live, 0);
}

static void sizes_are_checked(void **state)
{
    (void)state;
    size_t size;
    int64_t n;
    assert_true(sdx_mul_size(0, SIZE_MAX, &size) && size == 0);
    assert_true(sdx_mul_size(SIZE_MAX, 1, &size) && size == SIZE_MAX);
    assert_false(sdx_mul_size(SIZE_MAX / 2 + 1, 2, &size));
    assert_true(sdx_add_size(SIZE_MAX, 0, &size));
    assert_false(sdx_add_size(SIZE_MAX, 1, &size));
    static const int64_t values[] = {
        INT64_MIN,  INT64_MIN + 1, -3037000500,   -3037000499,   -2,       -1, 0, 1, 2,
        3037000499, 3037000500,    INT64_MAX / 2, INT64_MAX - 1, INT64_MAX};
    for (int i = 0; i < SDX_COUNT_OF(values); i++) {
        for (int j = 0; j < SDX_COUNT_OF(values); j++) {
            int64_t a = values[i], b = values[j], expected;
            bool fits = !__builtin_mul_overflow(a, b, &expected);
            assert_int_equal(sdx_mul_i64(a, b, &n), fits);
            if (fits) assert_true(n == expected);
            fits = !__builtin_add_overflow(a, b, &expected);
            assert_int_equal(sdx_add_i64(a, b, &n), fits);
            if (fits) assert_true(n == expected);
        }
    }
}

#ifndef __SANITIZE_ADDRESS__ /* where nothing is kept */
static void tensors_wait_for_the_next(void **state)
{
    (void)state;
    enum { SIZE = 100000, COUNT = 200 };
    struct sdx_mem mem, child;
    sdx_mem_init(&mem, NULL, 0);
    assert_true(sdx_mem_keep(&mem));
    sdx_mem_init(&child, &mem, 0);
    const size_t own = atomic_load(&mem.now);
    sdx_mem_free(&mem, sdx_mem_alloc(&mem, SDX_MEM_TENSOR, 10 * SIZE)); /* as much may wait */
    void *first = sdx_mem_alloc(&child, SDX_MEM_TENSOR, SIZE);
    sdx_mem_free(&child, first);
    assert_int_equal(atomic_load(&mem.now), own);
    void *others[] = {sdx_mem_alloc(&mem, SDX_MEM_TENSOR, 3 * SIZE), /* too little for that */
                      sdx_mem_alloc(&mem, SDX_MEM_TENSOR, SIZE / 3), /* too much */
                      sdx_mem_alloc(&mem, SDX_MEM_PLAN, SIZE)};      /* another kind */
    for (int i = 0; i < SDX_COUNT_OF(others); i++) {
        assert_ptr_not_equal(others[i], first);
        sdx_mem_free(&mem, others[i]);
    }
    void *again = sdx_mem_alloc(&mem, SDX_MEM_TENSOR, SIZE + SIZE / 10); /* a row more */
    assert_ptr_equal(again, first);
    assert_int_equal(sdx_mem_size(again), SIZE + SIZE / 10);
    assert_int_equal(atomic_load(&mem.tag_now[SDX_MEM_TENSOR]), SIZE + SIZE / 10);
    sdx_mem_free(&mem, again);
    void *blocks[COUNT]; /* more than wait at once */
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < COUNT; i++) {
            blocks[i] = sdx_mem_alloc(&mem, SDX_MEM_TENSOR, (size_t)(SIZE + 1000 * i));
            assert_non_null(blocks[i]);
            memset(blocks[i], i, (size_t)(SIZE + 1000 * i));
        }
        for (int i = 0; i < COUNT; i++) {
            assert_int_equal(((unsigned char *)blocks[i])[SIZE + 1000 * i - 1], i);
            sdx_mem_free(&mem, blocks[i]);
        }
    }
    sdx_mem_keep_end(&mem);
    assert_int_equal(atomic_load(&mem.now), 0);
    sdx_mem_keep_end(&mem); /* again is harmless */
}

enum { STRIDE = 4096, ROUNDS = 3000, LIVE = 20 };
struct holder {
    struct sdx_mem *mem;
    unsigned char mark; /* in its blocks */
    int lost;           /* marks of others found there */
};
static void *come_and_go(void *arg)
{
    struct holder *h = arg;
    unsigned char *blocks[LIVE] = {NULL};
    unsigned random = h->mark;
    for (int i = 0; i < ROUNDS + LIVE; i++) {
        unsigned char **block = &blocks[i % LIVE];
        if (*block) {
            const size_t size = sdx_mem_size(*block);
            for (size_t at = 0; at < size; at += STRIDE)
                h->lost += (*block)[at] != h->mark;
            sdx_mem_free(h->mem, *block);
            *block = NULL;
        }
        if (i >= ROUNDS) continue;
        random = random * 1664525 + 1013904223;
        const size_t size = 66000 + (random >> 16) * 4;
        *block = sdx_mem_alloc(h->mem, SDX_MEM_TENSOR, size);
        for (size_t at = 0; at < size && *block; at += STRIDE)
            (*block)[at] = h->mark;
    }
    return NULL;
}
static void threads_share_what_waits(void **state)
{
    (void)state;
    enum { THREADS = 4 };
    struct sdx_mem mem;
    struct holder holders[THREADS];
    pthread_t threads[THREADS];
    sdx_mem_init(&mem, NULL, 0);
    assert_true(sdx_mem_keep(&mem));
    for (int t = 0; t < THREADS; t++) {
        holders[t] = (struct holder){&mem, (unsigned char)(t + 1), 0};
        assert_int_equal(pthread_create(&threads[t], NULL, come_and_go, &holders[t]), 0);
    }
    for (int t = 0; t < THREADS; t++) {
        assert_int_equal(pthread_join(threads[t], NULL), 0);
        assert_int_equal(holders[t].lost, 0);
    }
    assert_int_equal(atomic_load(&mem.tag_now[SDX_MEM_TENSOR]), 0);
    sdx_mem_keep_end(&mem);
    assert_int_equal(atomic_load(&mem.now), 0);
}

static void nothing_waits_under_a_limit(void **state)
{
    (void)state;
    struct sdx_mem mem;
    sdx_mem_init(&mem, NULL, 1 << 20);
    assert_true(sdx_mem_keep(&mem));
    assert_null(mem.kept);
    sdx_mem_keep_end(&mem);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_are_aligned_and_counted),
        cmocka_unit_test(zeroed_and_grown),
        cmocka_unit_test(limits_of_all_levels_hold),
        cmocka_unit_test(failures_are_injected),
        cmocka_unit_test(users_allocator_serves_all_levels),
        cmocka_unit_test(sizes_are_checked),
#ifndef __SANITIZE_ADDRESS__
        cmocka_unit_test(tensors_wait_for_the_next),
        cmocka_unit_test(threads_share_what_waits),
        cmocka_unit_test(nothing_waits_under_a_limit),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
