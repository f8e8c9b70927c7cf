/* SPDX-License-Identifier: Apache-2.0
 * Attributes of sliding windows and the lengths they give. */
#include "unit.h"

#include "ops/window.h"

struct lists {
    struct sdx_ir_attr attrs[8];
    struct sdx_ir_node node;
};

static void begin(struct lists *l)
{
    *l = (struct lists){.node = {.op_type = SDX_STR("MaxPool")}};
    l->node.attrs = l->attrs;
}

static void add_ints(struct lists *l, const char *name, int64_t count, const int64_t *v)
{
    struct sdx_ir_attr *a = &l->attrs[l->node.count_attrs++];
    *a = (struct sdx_ir_attr){.name = sdx_str(name), .type = SDX_ATTR_INTS, .count = count};
    a->ints = v;
}

static void add_text(struct lists *l, const char *name, const char *text)
{
    struct sdx_ir_attr *a = &l->attrs[l->node.count_attrs++];
    *a = (struct sdx_ir_attr){.name = sdx_str(name), .type = SDX_ATTR_STRING};
    a->s = sdx_str(text);
}

static void add_int(struct lists *l, const char *name, int64_t v)
{
    struct sdx_ir_attr *a = &l->attrs[l->node.count_attrs++];
    *a = (struct sdx_ir_attr){.name = sdx_str(name), .type = SDX_ATTR_INT, .i = v};
}

/* Length of the only axis; -2: an error. */
static int64_t length_of(struct lists *l, int64_t in, struct sdx_window *w)
{
    struct unit unit;
    int64_t out = -2;
    unit_init(&unit);
    if (sdx_window_read(&unit.cx, &l->node, 1, NULL, w) ||
        sdx_window_length(&unit.cx, &l->node, w, 0, in, &out))
        out = -2;
    unit_deinit(&unit);
    return out;
}

static void explicit_pads(void **state)
{
    (void)state;
    struct lists l;
    struct sdx_window w;
    const int64_t kernel[] = {3}, stride[] = {2}, pads[] = {1, 1}, cut[] = {-100, -100};
    begin(&l);
    add_ints(&l, "kernel_shape", 1, kernel);
    assert_int_equal(length_of(&l, 8, &w), 6);
    assert_int_equal(length_of(&l, 2, &w), -2);
    assert_int_equal(length_of(&l, -1, &w), -1);
    add_ints(&l, "pads", 2, pads);
    assert_int_equal(length_of(&l, 8, &w), 8);
    assert_int_equal(length_of(&l, -7, &w), -7); /* the symbol itself */
    add_ints(&l, "strides", 1, stride);
    assert_int_equal(length_of(&l, 8, &w), 4);
    add_int(&l, "ceil_mode", 1);
    assert_int_equal(length_of(&l, 8, &w), 5);
    begin(&l);
    add_ints(&l, "kernel_shape", 1, kernel);
    add_ints(&l, "pads", 2, cut);
    assert_int_equal(length_of(&l, 8, &w), -2);
}

static void windows_in_the_padding_are_dropped(void **state)
{
    (void)state;
    struct lists l;
    struct sdx_window w;
    const int64_t kernel[] = {1}, stride[] = {2}, pads[] = {0, 1};
    begin(&l);
    add_ints(&l, "kernel_shape", 1, kernel);
    add_ints(&l, "strides", 1, stride);
    add_ints(&l, "pads", 2, pads);
    add_int(&l, "ceil_mode", 1);
    assert_int_equal(length_of(&l, 3, &w), 2);
}

static void automatic_pads(void **state)
{
    (void)state;
    struct lists l;
    struct sdx_window w;
    const int64_t kernel[] = {4}, stride[] = {2};
    const char *const modes[] = {"SAME_UPPER", "SAME_LOWER", "VALID", "OTHER"};
    const int64_t length[] = {4, 4, 2, -2}, first[] = {1, 2, 0, 0};
    for (int i = 0; i < 4; i++) {
        begin(&l);
        add_ints(&l, "kernel_shape", 1, kernel);
        add_ints(&l, "strides", 1, stride);
        add_text(&l, "auto_pad", modes[i]);
        assert_int_equal(length_of(&l, 7, &w), length[i]);
        if (length[i] > 0) assert_int_equal(w.pad_begin[0], first[i]);
    }
}

static void hostile_attributes(void **state)
{
    (void)state;
    struct lists l;
    struct sdx_window w;
    const int64_t huge[] = {INT64_MAX}, zero[] = {0}, kernel[] = {INT64_C(1) << 40};
    const int64_t two[] = {3, 3};
    static const char *const names[] = {"kernel_shape", "strides", "dilations"};
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 3; k++) {
            begin(&l);
            if (i) add_ints(&l, "kernel_shape", 1, kernel);
            add_ints(&l, names[i], k == 2 ? 2 : 1, k == 0 ? huge : k == 1 ? zero : two);
            assert_int_equal(length_of(&l, 100, &w), -2);
        }
    begin(&l);
    add_ints(&l, "kernel_shape", 1, kernel);
    add_ints(&l, "dilations", 1, kernel); /* the product is too large */
    assert_int_equal(length_of(&l, 100, &w), -2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(explicit_pads),
        cmocka_unit_test(windows_in_the_padding_are_dropped),
        cmocka_unit_test(automatic_pads),
        cmocka_unit_test(hostile_attributes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
