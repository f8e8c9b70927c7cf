/* SPDX-License-Identifier: Apache-2.0
 * Values at the edges of integer arithmetic, which the standard's cases do not have. */
#include "unit.h"

#include "make_model.h"

static sdx_status run_two(const char *op, int dtype, int64_t n, void *a, void *b, void *result,
                          size_t size, char *text, size_t room)
{
    struct make m;
    char path[80];
    sdx_context *cx = sdx_context_create(NULL);
    sdx_model *model = NULL;
    sdx_session *session = NULL;
    sdx_tensor *x = NULL, *y = NULL, *z = NULL;
    make_init(&m);
    make_input(&m, "a", dtype, 1, &n);
    make_input(&m, "b", dtype, 1, &n);
    make_node(&m, op, "a b -> c");
    make_output(&m, "c", dtype, -1, NULL);
    make_write(&m, path, sizeof path);
    if (sdx_model_open(cx, path, NULL, &model) || sdx_session_create(cx, model, NULL, &session) ||
        sdx_tensor_view(cx, (sdx_dtype)dtype, 1, &n, a, &x) ||
        sdx_tensor_view(cx, (sdx_dtype)dtype, 1, &n, b, &y))
        fail_msg("%s", sdx_error(cx));
    sdx_status status = sdx_run(session, 2, (sdx_feed[]){{"a", x}, {"b", y}}, 1, NULL, &z);
    if (status == SDX_OK) memcpy(result, sdx_tensor_data(z), size);
    snprintf(text, room, "%s", sdx_error(cx));
    sdx_tensor_destroy(x);
    sdx_tensor_destroy(y);
    sdx_tensor_destroy(z);
    sdx_session_destroy(session);
    sdx_model_destroy(model);
    sdx_context_destroy(cx);
    unlink(path);
    return status;
}

static void check_i32(const char *op, int32_t a, int32_t b, int32_t expected)
{
    int32_t result = 0;
    char text[200];
    if (run_two(op, SDX_I32, 1, &a, &b, &result, sizeof result, text, sizeof text))
        fail_msg("%s", text);
    assert_int_equal(result, expected);
}

static void test_overflow_wraps(void **state)
{
    (void)state;
    check_i32("Add", INT32_MAX, 1, INT32_MIN);
    check_i32("Sub", INT32_MIN, 1, INT32_MAX);
    check_i32("Mul", INT32_MIN, -1, INT32_MIN);
    check_i32("Div", INT32_MIN, -1, INT32_MIN);
    check_i32("Mod", INT32_MIN, -1, 0);
    check_i32("Pow", -2, 31, INT32_MIN);
}

static void test_signs(void **state)
{
    (void)state;
    check_i32("Div", -7, 2, -3); /* towards zero */
    check_i32("Mod", -7, 3, 2);  /* the divisor's sign */
    check_i32("Mod", 7, -3, -2);
    check_i32("Pow", -1, -3, -1);
    check_i32("Pow", 5, -1, 0);
}

static void test_refusals(void **state)
{
    (void)state;
    int32_t a[2] = {4, 5}, b[2] = {2, 0}, result[2];
    char text[200];
    assert_int_equal(run_two("Div", SDX_I32, 2, a, b, result, sizeof result, text, sizeof text),
                     SDX_RUN_FAILED);
    assert_contains(text, "division by zero");
    assert_int_equal(run_two("Mod", SDX_I32, 2, a, b, result, sizeof result, text, sizeof text),
                     SDX_RUN_FAILED);
    int32_t base = 0, exponent = -1;
    assert_int_equal(
        run_two("Pow", SDX_I32, 1, &base, &exponent, result, sizeof base, text, sizeof text),
        SDX_RUN_FAILED);
    assert_contains(text, "0 to a negative integer power");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_overflow_wraps),
        cmocka_unit_test(test_signs),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
