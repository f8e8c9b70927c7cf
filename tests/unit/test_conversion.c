/* SPDX-License-Identifier: Apache-2.0
 * Float to integer where the value does not fit: the standard leaves it open, we give what NumPy
 * gives on x86-64, on every machine and instruction set, and in Cast. And texts that are none. */
#include <math.h>

#include "unit.h"

#include "make_model.h"
#include "tensor/convert.h"

static const int types[8] = {SDX_I8, SDX_U8, SDX_I16, SDX_U16, SDX_I32, SDX_U32, SDX_I64, SDX_U64};

/* A value and what it is in each of the types. */
static const struct {
    double value;
    int64_t as[8];
} rows[] = {
    {300, {44, 44, 300, 300, 300, 300, 300, (int64_t)UINT64_C(300)}},
    {255.9, {-1, 255, 255, 255, 255, 255, 255, (int64_t)UINT64_C(255)}},
    {-0.9, {0, 0, 0, 0, 0, 0, 0, (int64_t)UINT64_C(0)}},
    {-1.5, {-1, 255, -1, 65535, -1, 4294967295, -1, (int64_t)UINT64_C(18446744073709551615)}},
    {-129,
     {127, 127, -129, 65407, -129, 4294967167, -129, (int64_t)UINT64_C(18446744073709551487)}},
    {40000, {64, 64, -25536, 40000, 40000, 40000, 40000, (int64_t)UINT64_C(40000)}},
    {-40000,
     {-64, 192, 25536, 25536, -40000, 4294927296, -40000, (int64_t)UINT64_C(18446744073709511616)}},
    {70000, {112, 112, 4464, 4464, 70000, 70000, 70000, (int64_t)UINT64_C(70000)}},
    {0x1p31, {0, 0, 0, 0, -2147483648, 2147483648, 2147483648, (int64_t)UINT64_C(2147483648)}},
    {3e9, {0, 0, 0, 0, -2147483648, 3000000000, 3000000000, (int64_t)UINT64_C(3000000000)}},
    {-3e9,
     {0, 0, 0, 0, -2147483648, 1294967296, -3000000000, (int64_t)UINT64_C(18446744070709551616)}},
    {0x1p32, {0, 0, 0, 0, -2147483648, 0, 4294967296, (int64_t)UINT64_C(4294967296)}},
    {1e10, {0, 0, 0, 0, -2147483648, 1410065408, 10000000000, (int64_t)UINT64_C(10000000000)}},
    {0x1p63, {0, 0, 0, 0, -2147483648, 0, INT64_MIN, (int64_t)UINT64_C(9223372036854775808)}},
    {-0x1p63, {0, 0, 0, 0, -2147483648, 0, INT64_MIN, (int64_t)UINT64_C(9223372036854775808)}},
    {0x1.8p63, {0, 0, 0, 0, -2147483648, 0, INT64_MIN, (int64_t)UINT64_C(13835058055282163712)}},
    {0x1p64, {0, 0, 0, 0, -2147483648, 0, INT64_MIN, (int64_t)UINT64_C(0)}},
    {1e30, {0, 0, 0, 0, -2147483648, 0, INT64_MIN, (int64_t)UINT64_C(0)}},
    {-1e30, {0, 0, 0, 0, -2147483648, 0, INT64_MIN, (int64_t)UINT64_C(9223372036854775808)}},
    {INFINITY, {0, 0, 0, 0, -2147483648, 0, INT64_MIN, (int64_t)UINT64_C(0)}},
    {-INFINITY, {0, 0, 0, 0, -2147483648, 0, INT64_MIN, (int64_t)UINT64_C(9223372036854775808)}},
    {NAN, {0, 0, 0, 0, -2147483648, 0, INT64_MIN, (int64_t)UINT64_C(9223372036854775808)}},
};

enum { ROWS = SDX_COUNT_OF(rows) };

static int64_t element(int dtype, const void *data, int i)
{
    return sdx_load_i64(dtype, data, i);
}

static void check(int from, const void *values)
{
    int64_t out[ROWS];
    for (int t = 0; t < 8; t++) {
        sdx_convert(types[t], out, 0, from, values, 0, ROWS, true);
        for (int i = 0; i < ROWS; i++)
            if (element(types[t], out, i) != rows[i].as[t])
                fail_msg("%g as %s: found %lld, expected %lld", rows[i].value,
                         sdx_dtype_name((sdx_dtype)types[t]), (long long)element(types[t], out, i),
                         (long long)rows[i].as[t]);
    }
}

static void test_convert(void **state)
{
    (void)state;
    double wide[ROWS];
    for (int i = 0; i < ROWS; i++)
        wide[i] = rows[i].value;
    check(SDX_F64, wide);
}

/* As many elements as kernels take at a time, and some. */
static void test_cast(void **state)
{
    (void)state;
    enum { TIMES = 9 };
    static double wide[ROWS * TIMES];
    for (int i = 0; i < ROWS * TIMES; i++)
        wide[i] = rows[i % ROWS].value;
    for (int t = 0; t < 8; t++) {
        struct make m;
        char path[80];
        sdx_model *model = NULL;
        sdx_session *session = NULL;
        sdx_tensor *x = NULL, *y = NULL;
        sdx_context *cx = sdx_context_create(NULL);
        make_init(&m);
        make_input(&m, "x", SDX_F64, 1, (int64_t[]){-1});
        make_attr_int(make_node(&m, "Cast", "x -> y"), "to", types[t]);
        make_output(&m, "y", types[t], 1, (int64_t[]){-1});
        make_write(&m, path, sizeof path);
        if (sdx_model_open(cx, path, NULL, &model) ||
            sdx_session_create(cx, model, NULL, &session) ||
            sdx_tensor_view(cx, SDX_F64, 1, (int64_t[]){ROWS * TIMES}, wide, &x) ||
            sdx_run(session, 1, &(sdx_feed){"x", x}, 1, NULL, &y))
            fail_msg("%s", sdx_error(cx));
        for (int i = 0; i < ROWS * TIMES; i++)
            if (element(types[t], sdx_tensor_data(y), i) != rows[i % ROWS].as[t])
                fail_msg("%g as %s", wide[i], sdx_dtype_name((sdx_dtype)types[t]));
        sdx_tensor_destroy(x);
        sdx_tensor_destroy(y);
        sdx_session_destroy(session);
        sdx_model_destroy(model);
        sdx_context_destroy(cx);
        unlink(path);
    }
}

/* Bytes that are no text are refused with one line; NUL is a letter as any. */
static void test_tokenizer_wants_text(void **state)
{
    (void)state;
    static const char *const texts[3] = {"a b", "caf\xc3\xa9 x", "a\0b c"};
    static const char *const broken[3] = {"a b", "x", "caf\xc3 x"};
    static const size_t lengths[3] = {3, 7, 5};
    static struct sdx_str separator = {" ", 1};
    struct make m;
    char path[80];
    sdx_model *model = NULL;
    sdx_session *session = NULL;
    sdx_tensor *x = NULL, *y = NULL;
    sdx_context *cx = sdx_context_create(NULL);
    make_init(&m);
    m.has_contrib = true;
    make_input(&m, "x", SDX_STRING, 1, (int64_t[]){-1});
    struct sdx_onnx_node *node = make_node(&m, "Tokenizer", "x -> y");
    node->domain = SDX_STR("com.microsoft");
    make_attr_int(node, "mark", 0);
    make_attr_int(node, "mincharnum", 1);
    node->attrs.at[node->attrs.count++] = (struct sdx_onnx_attr){
        .name = SDX_STR("separators"), .type = SDX_ATTR_STRINGS, .strings = {&separator, 1}};
    node->attrs.at[node->attrs.count++] = (struct sdx_onnx_attr){
        .name = SDX_STR("pad_value"), .type = SDX_ATTR_STRING, .has_s = true, .s = SDX_STR("#")};
    make_output(&m, "y", SDX_STRING, 2, (int64_t[]){-1, -1});
    make_write(&m, path, sizeof path);
    if (sdx_model_open(cx, path, NULL, &model) || sdx_session_create(cx, model, NULL, &session) ||
        sdx_tensor_create_strings(cx, 1, (int64_t[]){3}, texts, lengths, &x) ||
        sdx_run(session, 1, &(sdx_feed){"x", x}, 1, NULL, &y))
        fail_msg("%s", sdx_error(cx));
    assert_int_equal(sdx_tensor_count(y), 6);
    sdx_tensor_destroy(x);
    sdx_tensor_destroy(y);
    y = NULL;
    assert_int_equal(sdx_tensor_create_strings(cx, 1, (int64_t[]){3}, broken, NULL, &x), SDX_OK);
    assert_int_equal(sdx_run(session, 1, &(sdx_feed){"x", x}, 1, NULL, &y), SDX_RUN_FAILED);
    assert_contains(sdx_error(cx), "Tokenizer: text 2 is not valid UTF-8");
    sdx_tensor_destroy(x);
    sdx_session_destroy(session);
    sdx_model_destroy(model);
    sdx_context_destroy(cx);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_convert),
        cmocka_unit_test(test_cast),
        cmocka_unit_test(test_tokenizer_wants_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
