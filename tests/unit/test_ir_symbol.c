/* SPDX-License-Identifier: Apache-2.0
 * Lengths reckoned from symbols: equal ones are one symbol, others are not. */
#include "unit.h"

#include "base/str.h"
#include "ir/ir.h"

struct fixture {
    struct unit unit;
    struct sdx_arena arena;
    struct sdx_ir ir;
};

static int setup(void **state)
{
    static struct fixture f;
    unit_init(&f.unit);
    sdx_arena_init(&f.arena, &f.unit.mem, SDX_MEM_MODEL);
    f.ir = (struct sdx_ir){.cx = &f.unit.cx, .arena = &f.arena};
    sdx_map_init(&f.ir.symbol_map, &f.unit.mem);
    sdx_map_init(&f.ir.length_map, &f.unit.mem);
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    sdx_ir_deinit(&f->ir);
    sdx_arena_deinit(&f->arena);
    unit_deinit(&f->unit);
    return 0;
}

static int64_t scaled(struct fixture *f, int64_t dim, int64_t factor, int64_t term, int64_t divisor)
{
    return sdx_ir_symbol_scaled(
        &f->ir,
        (struct sdx_ir_length){.dim = dim, .factor = factor, .term = term, .divisor = divisor});
}

static void test_scaled(void **state)
{
    struct fixture *f = *state;
    const int64_t h = sdx_ir_symbol(&f->ir, SDX_STR("h")), w = sdx_ir_symbol(&f->ir, SDX_STR("w"));
    const int64_t half = scaled(f, h, 1, 1, 2);
    assert_true(half < -1 && half != h && half != w);
    assert_int_equal(scaled(f, h, 1, 1, 2), half);
    assert_int_not_equal(scaled(f, w, 1, 1, 2), half);
    assert_int_not_equal(scaled(f, h, 1, 0, 2), half);
    assert_int_equal(scaled(f, h, 1, 0, 1), h);
    assert_int_equal(scaled(f, h, 3, 2, 6), scaled(f, h, 1, 0, 2)); /* the rest of 2 / 3 is lost */
    assert_int_equal(scaled(f, scaled(f, h, 1, 3, 1), 1, -3, 1), h);
    assert_int_equal(scaled(f, scaled(f, h, 2, 0, 1), 1, 0, 2), h);
    /* two convolutions of stride 2 are as one of 4: ((h + 1) / 2 + 1) / 2 = (h + 3) / 4 */
    assert_int_equal(scaled(f, half, 1, 1, 2), scaled(f, h, 1, 3, 4));
    assert_int_not_equal(scaled(f, half, 2, 0, 1), h); /* an odd one is not what it was */
    assert_int_equal(scaled(f, 7, 1, 0, 1), -1);
    assert_int_equal(scaled(f, -1, 1, 0, 1), -1);
    assert_int_equal(scaled(f, h, 1, 0, 0), -1);
    assert_int_equal(
        scaled(f, scaled(f, h, INT64_MAX, 0, 1), 3, 0, 1),
        scaled(f, scaled(f, h, INT64_MAX, 0, 1), 3, 0, 1)); /* does not fit: two steps */
}

static void test_bound(void **state)
{
    struct fixture *f = *state;
    const int64_t s = sdx_ir_symbol(&f->ir, SDX_STR("s"));
    const struct sdx_ir_length cut = {.dim = s, .factor = 1, .divisor = 1, .most = 512};
    const int64_t at_most = sdx_ir_symbol_scaled(&f->ir, cut);
    assert_true(at_most < -1 && at_most != s);
    assert_int_equal(sdx_ir_symbol_scaled(&f->ir, cut), at_most);
    assert_int_not_equal(scaled(f, at_most, 1, 1, 1), scaled(f, s, 1, 1, 1));
    for (int sample = 0; sample < 2; sample++) /* both are cut to 512, which tells nothing */
        assert_int_equal(sdx_ir_symbol_sample(&f->ir, at_most, sample), -1);
}

#define RATIO(f, over, under)                                                                      \
    sdx_ir_symbol_ratio(&(f)->ir, over, sizeof over / sizeof *over, under,                         \
                        sizeof under / sizeof *under)

static void test_ratio(void **state)
{
    struct fixture *f = *state;
    const int64_t b = sdx_ir_symbol(&f->ir, SDX_STR("b")), h = sdx_ir_symbol(&f->ir, SDX_STR("h"));
    const int64_t w = sdx_ir_symbol(&f->ir, SDX_STR("w")), two[] = {2}, hw[] = {h, w},
                  wh[] = {w, h};
    const int64_t pixels = sdx_ir_symbol_ratio(&f->ir, hw, 2, NULL, 0);
    assert_true(pixels < -1);
    assert_int_equal(sdx_ir_symbol_ratio(&f->ir, wh, 2, NULL, 0), pixels);
    const int64_t image[] = {b, 8, h, w}, tokens[] = {b, 8}, some[] = {pixels, 4}, of_h[] = {h};
    assert_int_equal(RATIO(f, image, tokens), pixels);
    assert_int_equal(RATIO(f, some, of_h), scaled(f, w, 4, 0, 1));
    const int64_t windows[] = {b, 8, 8, 7, 7, 96}, rows[] = {7, 7, 96};
    assert_int_equal(RATIO(f, windows, rows), scaled(f, b, 64, 0, 1));
    assert_int_equal(RATIO(f, hw, wh), 1);
    const int64_t six_h[] = {h, 6}, four_h[] = {h, 4}, none[] = {0, h}, unknown[] = {-1, h};
    assert_int_equal(RATIO(f, six_h, four_h), 0);
    assert_int_equal(RATIO(f, six_h, two), scaled(f, h, 3, 0, 1));
    assert_int_equal(RATIO(f, two, of_h), -1);
    assert_int_equal(RATIO(f, none, two), -1);
    assert_int_equal(RATIO(f, unknown, two), -1);
}

static void test_sample(void **state)
{
    struct fixture *f = *state;
    const int64_t h = sdx_ir_symbol(&f->ir, SDX_STR("h")), w = sdx_ir_symbol(&f->ir, SDX_STR("w"));
    const int64_t hw[] = {h, w}, pixels = sdx_ir_symbol_ratio(&f->ir, hw, 2, NULL, 0);
    for (int sample = 0; sample < 2; sample++) {
        const int64_t a = sdx_ir_symbol_sample(&f->ir, h, sample);
        const int64_t b = sdx_ir_symbol_sample(&f->ir, w, sample);
        assert_true(a > 1000 && b > 1000 && a != b);
        assert_int_equal(sdx_ir_symbol_sample(&f->ir, pixels, sample), a * b);
        assert_int_equal(sdx_ir_symbol_sample(&f->ir, scaled(f, h, 3, -2, 4), sample),
                         (3 * a - 2) / 4);
    }
    assert_int_not_equal(sdx_ir_symbol_sample(&f->ir, h, 0), sdx_ir_symbol_sample(&f->ir, h, 1));
    const int64_t frames = scaled(f, h, 1, 64, 64); /* of a long stride */
    assert_int_not_equal(sdx_ir_symbol_sample(&f->ir, frames, 0),
                         sdx_ir_symbol_sample(&f->ir, frames, 1));
    assert_int_equal(sdx_ir_symbol_sample(&f->ir, 12, 0), 12);
    assert_int_equal(sdx_ir_symbol_sample(&f->ir, -1, 0), -1);
    int64_t deep = h; /* each of two divisions that do not join */
    for (int i = 0; i < 100; i++)
        deep = scaled(f, scaled(f, deep, 1, 0, 2), 3, 1, 1);
    assert_int_equal(sdx_ir_symbol_sample(&f->ir, deep, 0), -1);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {CASE(test_scaled), CASE(test_bound), CASE(test_ratio),
                                       CASE(test_sample)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
