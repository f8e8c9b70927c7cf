/* SPDX-License-Identifier: Apache-2.0
 * Rounding and saturation of integer sums. */
#include "unit.h"

#include <math.h>

#include "ops/requant.h"

static void rounds_to_even_and_saturates(void **state)
{
    (void)state;
    assert_int_equal(sdx_round_saturate(0.5f, 0, 0, 255), 0);
    assert_int_equal(sdx_round_saturate(1.5f, 0, 0, 255), 2);
    assert_int_equal(sdx_round_saturate(2.5f, 1, 0, 255), 3);
    assert_int_equal(sdx_round_saturate(-2.5f, 10, 0, 255), 8);
    assert_int_equal(sdx_round_saturate(1e30f, 3, 0, 255), 255);
    assert_int_equal(sdx_round_saturate(-1e30f, 3, -128, 127), -128);
    assert_int_equal(sdx_round_saturate(INFINITY, 0, -32768, 32767), 32767);
    assert_int_equal(sdx_round_saturate(NAN, 7, 0, 255), 0);
    for (int i = -70000; i < 70000; i += 13) {
        int want = i < -32768 ? -32768 : i > 32767 ? 32767 : i;
        assert_int_equal(sdx_round_saturate((float)i, 0, -32768, 32767), want);
    }
}

static void sums_become_bytes(void **state)
{
    (void)state;
    const int32_t sums[5] = {0, 10, -10, 1000000, INT32_MAX};
    uint8_t u[5];
    sdx_requantize(sums, 5, 2, 0.25f, 128, (struct sdx_qclamp){0, 255}, u);
    assert_int_equal(u[0], 128); /* 0.5 to even */
    assert_int_equal(u[1], 131);
    assert_int_equal(u[2], 126);
    assert_int_equal(u[3], 255);
    assert_int_equal(u[4], 0); /* the bias wraps the sum around */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rounds_to_even_and_saturates),
        cmocka_unit_test(sums_become_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
