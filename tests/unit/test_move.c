/* SPDX-License-Identifier: Apache-2.0
 * Strided copies against element by element, for all element sizes and ways to split. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "ops/move.h"

static unsigned seed = 1;
static int pick(int n)
{
    seed = seed * 1103515245u + 12345u;
    return (int)((seed >> 16) % (unsigned)n);
}

/* dst[at] = src[...] one element at a time */
static void copy_simply(size_t size, int rank, const int64_t *dims, const int64_t *src_strides,
                        const int64_t *dst_strides, const char *src, char *dst, int64_t src_at,
                        int64_t dst_at)
{
    int64_t count = 1;
    for (int i = 0; i < rank; i++)
        count *= dims[i];
    for (int64_t k = 0; k < count; k++) {
        int64_t rest = k, s = src_at, d = dst_at;
        for (int i = rank - 1; i >= 0; i--) {
            s += rest % dims[i] * src_strides[i];
            d += rest % dims[i] * dst_strides[i];
            rest /= dims[i];
        }
        memcpy(dst + (size_t)d * size, src + (size_t)s * size, size);
    }
}

static void check_one(size_t size)
{
    enum { MOST = 40000 };
    int rank = 1 + pick(5), perm[5];
    int64_t dims[5], own[5], src[5], dst[5], at = 0, count = 1;
    for (int i = 0; i < rank; i++) {
        dims[i] = 1 + pick(pick(4) == 0 ? 40 : 7);
        while (count * dims[i] > MOST)
            dims[i] = 1;
        count *= dims[i];
        perm[i] = i;
    }
    for (int i = rank - 1; i > 0; i--) {
        int j = pick(i + 1), t = perm[i];
        perm[i] = perm[j];
        perm[j] = t;
    }
    /* the source has the axes in another order, some reversed, some repeated */
    int64_t stride = 1;
    for (int i = rank - 1; i >= 0; i--) {
        own[perm[i]] = stride;
        stride *= dims[perm[i]];
    }
    for (int i = 0; i < rank; i++) {
        int how = pick(6);
        src[i] = how == 0 ? 0 : how == 1 ? -own[i] : own[i];
        if (how == 1) at += own[i] * (dims[i] - 1);
    }
    /* the destination is a part of something longer, as in Concat */
    int64_t whole[5], axis = pick(rank), more = pick(3) == 0 ? 1 + pick(6) : 0, room = count;
    for (int i = 0; i < rank; i++)
        whole[i] = dims[i] + (i == axis ? more : 0);
    room = room / dims[axis] * whole[axis];
    sdx_move_strides(rank, whole, dst);
    const int64_t to = pick((int)more + 1) * dst[axis];
    char *from = malloc((size_t)count * size), *a = calloc((size_t)room, size);
    char *b = calloc((size_t)room, size);
    for (int64_t i = 0; i < count * (int64_t)size; i++)
        from[i] = (char)pick(256);
    struct sdx_move m;
    sdx_move_init(&m, size, rank, dims, src, dst, at, to);
    int64_t parts = 1 + pick(4);
    for (int64_t p = 0; p < parts; p++)
        sdx_move_run(&m, from, a, sdx_part_begin(m.units, parts, p, 1),
                     sdx_part_begin(m.units, parts, p + 1, 1));
    copy_simply(size, rank, dims, src, dst, from, b, at, to);
    assert_memory_equal(a, b, (size_t)room * size);
    free(from);
    free(a);
    free(b);
}

static void test_copies(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 2, 4, 8, 16};
    for (int i = 0; i < 4000; i++)
        check_one(sizes[i % 5]);
}

static void test_empty(void **state)
{
    (void)state;
    const int64_t dims[2] = {3, 0}, strides[2] = {0, 1};
    struct sdx_move m;
    sdx_move_init(&m, 4, 2, dims, strides, strides, 0, 0);
    assert_int_equal(m.units, 0);
    sdx_move_run(&m, NULL, NULL, 0, m.units);
}

static void test_fill(void **state)
{
    (void)state;
    unsigned char value[16], out[16 * 70 + 1];
    for (int i = 0; i < 16; i++)
        value[i] = (unsigned char)(i + 1);
    for (size_t size = 1; size <= 16; size *= 2)
        for (int64_t n = 0; n <= 70; n++) {
            memset(out, 0xee, sizeof out);
            sdx_move_fill(out, size, value, n);
            for (size_t i = 0; i < (size_t)n * size; i++)
                assert_int_equal(out[i], value[i % size]);
            assert_int_equal(out[(size_t)n * size], 0xee);
        }
}

static void test_bytes(void **state)
{
    (void)state;
    unsigned char from[300], to[301];
    for (int i = 0; i < 300; i++)
        from[i] = (unsigned char)pick(256);
    for (size_t n = 0; n <= sizeof from; n++) {
        memset(to, 0xee, sizeof to);
        sdx_move_bytes(to, from + sizeof from - n, n);
        assert_memory_equal(to, from + sizeof from - n, n);
        assert_int_equal(to[n], 0xee);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_copies),
        cmocka_unit_test(test_empty),
        cmocka_unit_test(test_fill),
        cmocka_unit_test(test_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
