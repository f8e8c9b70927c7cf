/* SPDX-License-Identifier: Apache-2.0
 * How batches of matrix products are cut into parts, and neighbouring parts joined again. */
#include <string.h>

#include "unit.h"

#include "ops/product.h"

enum { BATCH_MAX = 9, M_MAX = 60, N_MAX = 130 };

struct shape {
    int64_t batch, m, n, k, step_n;
};
static const struct shape shapes[] = {
    {1, 1, 1, 1, 16},       {1, 48, 128, 2048, 16},  {1, 60, 16, 100000, 16}, {9, 7, 5, 9000, 8},
    {2, 37, 130, 4000, 16}, {1, 13, 130, 200000, 8}, {5, 60, 33, 50000, 16},  {1, 4, 130, 0, 16}};

/* Every element lies in one of the ranges that `most` parts at a time give. */
static void cover(const struct shape *t, int64_t most)
{
    static unsigned char seen[BATCH_MAX * M_MAX * N_MAX];
    const struct sdx_split s = sdx_split_make(t->batch, t->m, t->n, t->k, 0, t->step_n);
    memset(seen, 0, sizeof seen);
    for (int64_t part = 0; part < s.parts;) {
        const int64_t end = s.parts - part < most ? s.parts : part + most;
        while (part < end) {
            const int64_t before = part;
            const struct sdx_split_range r = sdx_split_next(&s, &part, end);
            assert_true(part > before && part <= end);
            for (int64_t i = r.begin; i < r.end; i++)
                for (int64_t y = r.m0; y < r.m1; y++)
                    for (int64_t x = r.n0; x < r.n1; x++)
                        assert_int_equal(seen[(i * t->m + y) * t->n + x]++, 0);
        }
    }
    for (int64_t i = 0; i < t->batch * t->m * t->n; i++)
        assert_int_equal(seen[i], 1);
}

static void ranges_cover(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int64_t most = 1; most <= 200; most = most * 3 / 2 + 1)
            cover(&shapes[i], most);
}

/* All parts of one product whose columns alone are cut are one range. */
static void columns_join(void **state)
{
    (void)state;
    const struct sdx_split s = sdx_split_make(1, 48, 2048, 512, 0, 16);
    int64_t part = 0;
    const struct sdx_split_range r = sdx_split_next(&s, &part, s.parts);
    assert_true(s.parts >= 32);
    assert_int_equal(part, s.parts);
    assert_int_equal(r.m1 - r.m0, 48);
    assert_int_equal(r.n1 - r.n0, 2048);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(ranges_cover),
                                       cmocka_unit_test(columns_join)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
