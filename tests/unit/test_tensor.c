/* SPDX-License-Identifier: Apache-2.0
 * Value handles: sizes, counted references, copies, text form; and the facts about element types.
 */
#include "unit.h"

#include "tensor/tensor.h"

static void sizes_of_types(void **state)
{
    (void)state;
    size_t bytes = 0;
    assert_true(sdx_dtype_bytes(SDX_I4, 5, &bytes));
    assert_int_equal(bytes, 3);
    assert_true(sdx_dtype_bytes(SDX_U2, 5, &bytes));
    assert_int_equal(bytes, 2);
    assert_true(sdx_dtype_bytes(SDX_C128, 2, &bytes));
    assert_int_equal(bytes, 32);
    assert_true(sdx_dtype_bytes(SDX_F4E2M1, INT64_MAX, &bytes));
    assert_int_equal(bytes, (size_t)1 << 62);
    assert_false(sdx_dtype_bytes(SDX_F32, INT64_MAX, &bytes));
    assert_false(sdx_dtype_bytes(SDX_F32, -1, &bytes));
    assert_false(sdx_dtype_bytes(0, 1, &bytes));
    assert_true(sdx_dtype_bytes(SDX_F6E2M3, 5, &bytes));
    assert_int_equal(bytes, 4);
    assert_false(sdx_dtype_bytes(SDX_DTYPE_LAST + 1, 1, &bytes));
}

static void classes_of_types(void **state)
{
    (void)state;
    int floats = 0, integers = 0, signeds = 0, complexes = 0;
    for (int dtype = -1; dtype < 40; dtype++) {
        floats += sdx_dtype_is_float(dtype);
        integers += sdx_dtype_is_integer(dtype);
        signeds += sdx_dtype_is_signed(dtype);
        complexes += sdx_dtype_is_complex(dtype);
        assert_true(sdx_dtype_is_valid(dtype) == (sdx_dtype_bits((sdx_dtype)dtype) > 0));
    }
    assert_int_equal(floats, 12);
    assert_int_equal(integers, 12);
    assert_int_equal(signeds, 17);
    assert_int_equal(complexes, 2);
    assert_string_equal(sdx_dtype_name(SDX_F32), "float");
    assert_string_equal(sdx_dtype_name((sdx_dtype)99), "undefined");
    assert_string_equal(sdx_dtype_short_name(SDX_STRING), "str");
    assert_string_equal(sdx_dtype_short_name(99), "?");
}

static void counts_of_shapes(void **state)
{
    (void)state;
    int64_t count = 0;
    const int64_t huge = (int64_t)1 << 40;
    assert_true(sdx_dims_count(NULL, 0, &count));
    assert_int_equal(count, 1);
    assert_true(sdx_dims_count((const int64_t[]){2, 3, 4}, 3, &count));
    assert_int_equal(count, 24);
    assert_true(sdx_dims_count((const int64_t[]){huge, huge, 0}, 3, &count));
    assert_int_equal(count, 0);
    assert_false(sdx_dims_count((const int64_t[]){huge, huge}, 2, &count));
    assert_false(sdx_dims_count((const int64_t[]){0, -1}, 2, &count));
    assert_true(sdx_dims_equal((const int64_t[]){2, 3}, 2, (const int64_t[]){2, 3}, 2));
    assert_false(sdx_dims_equal((const int64_t[]){2, 3}, 2, (const int64_t[]){2, 4}, 2));
    assert_false(sdx_dims_equal((const int64_t[]){2, 3}, 2, (const int64_t[]){2}, 1));
}

static void creation(void **state)
{
    (void)state;
    struct unit unit;
    struct sdx_tensor *t = NULL;
    unit_init(&unit);
    assert_int_equal(sdx_tensor_new(&unit.cx, SDX_F32, 2, (const int64_t[]){2, 3}, &t), SDX_OK);
    assert_int_equal(t->bytes, 24);
    for (int i = 0; i < 24; i++)
        assert_int_equal(((char *)t->data)[i], 0);
    assert_ptr_equal(sdx_tensor_retain(t), t);
    sdx_tensor_release(t);
    assert_int_equal(t->count, 6);
    sdx_tensor_release(t);

    const int64_t long_dims[8] = {1, 2, 1, 2, 1, 2, 1, 2};
    float data[16];
    assert_int_equal(sdx_tensor_new_view(&unit.cx, SDX_F32, 8, long_dims, data, &t), SDX_OK);
    assert_ptr_equal(t->data, data);
    assert_true(sdx_dims_equal(t->dims, t->rank, long_dims, 8));
    sdx_tensor_release(t);

    assert_int_equal(sdx_tensor_new(&unit.cx, SDX_F32, 1, (const int64_t[]){-1}, &t),
                     SDX_INVALID_ARGUMENT);
    assert_null(t);
    assert_string_equal(unit.cx.error.text,
                        "tensor: shape [?] has a negative length or too many elements");
    sdx_context_clear(&unit.cx);
    assert_int_equal(sdx_tensor_new(&unit.cx, 0, 0, NULL, &t), SDX_INVALID_ARGUMENT);
    sdx_context_clear(&unit.cx);
    assert_int_equal(sdx_tensor_new(&unit.cx, SDX_F32, 65, NULL, &t), SDX_INVALID_ARGUMENT);
    sdx_tensor_release(NULL);
    unit_deinit(&unit);
}

static void strings(void **state)
{
    (void)state;
    struct unit unit;
    struct sdx_tensor *t = NULL, *copy = NULL;
    char first[] = "first";
    unit_init(&unit);
    const struct sdx_str texts[3] = {sdx_str(first), SDX_STR(""), {NULL, 0}};
    const int64_t dims[1] = {3};
    assert_int_equal(sdx_tensor_new_strings(&unit.cx, 1, dims, texts, &t), SDX_OK);
    first[0] = 'X';
    assert_true(sdx_str_is(((struct sdx_str *)t->data)[0], "first"));
    assert_int_equal(sdx_tensor_clone(&unit.cx, t, &copy), SDX_OK);
    sdx_tensor_release(t);
    assert_true(sdx_str_is(((struct sdx_str *)copy->data)[0], "first"));
    assert_int_equal(((struct sdx_str *)copy->data)[2].len, 0);
    sdx_tensor_release(copy);
    assert_int_equal(sdx_tensor_new(&unit.cx, SDX_STRING, 1, dims, &t), SDX_OK);
    assert_int_equal(((struct sdx_str *)t->data)[2].len, 0);
    sdx_tensor_release(t);
    unit_deinit(&unit);
}

/* A sequence of a shared tensor and an optional, copied deeply. */
static enum sdx_status make_nested(struct sdx_context *cx, struct sdx_tensor **out)
{
    struct sdx_tensor *items[2] = {NULL, NULL};
    const int64_t dims[1] = {4};
    *out = NULL;
    enum sdx_status status = sdx_tensor_new(cx, SDX_I64, 1, dims, &items[0]);
    if (status == SDX_OK)
        status = sdx_tensor_new_items(cx, SDX_KIND_OPTIONAL, SDX_I64, 1, items, 0, NULL, &items[1]);
    if (status == SDX_OK)
        status = sdx_tensor_new_items(cx, SDX_KIND_SEQUENCE, SDX_I64, 2, items, 0, NULL, out);
    sdx_tensor_release(items[0]);
    sdx_tensor_release(items[1]);
    return status;
}

static void items(void **state)
{
    (void)state;
    struct unit unit;
    struct sdx_tensor *t = NULL, *copy = NULL;
    char text[64];
    unit_init(&unit);
    assert_int_equal(make_nested(&unit.cx, &t), SDX_OK);
    assert_ptr_equal(t->items[1]->items[0], t->items[0]);
    assert_int_equal(sdx_tensor_clone(&unit.cx, t, &copy), SDX_OK);
    assert_string_equal(sdx_tensor_describe(t, text, sizeof text), "seq(2 items)");
    assert_string_equal(sdx_tensor_describe(t->items[1], text, sizeof text), "optional(1 item)");
    sdx_tensor_release(t);
    ((int64_t *)copy->items[0]->data)[3] = 7;
    assert_int_equal(((int64_t *)copy->items[1]->items[0]->data)[3], 0);
    sdx_tensor_release(copy);

    assert_int_equal(
        sdx_tensor_new_items(&unit.cx, SDX_KIND_SEQUENCE, SDX_F32, 0, NULL, 0, NULL, &t), SDX_OK);
    sdx_tensor_release(t);
    assert_int_equal(sdx_tensor_new_items(&unit.cx, SDX_KIND_MAP, SDX_F32, 1, NULL, 0, NULL, &t),
                     SDX_INVALID_ARGUMENT);
    sdx_context_clear(&unit.cx);
    assert_int_equal(sdx_tensor_new_items(&unit.cx, SDX_KIND_TENSOR, SDX_F32, 1, NULL, 0, NULL, &t),
                     SDX_INVALID_ARGUMENT);
    unit_deinit(&unit);
}

/* More items than lie in a handle's block, maps that share their keys. */
static void many_maps(void **state)
{
    (void)state;
    enum { MAPS = 300 };
    struct unit unit;
    struct sdx_tensor *keys = NULL, *maps[MAPS], *t = NULL, *copy = NULL;
    const int64_t dims[1] = {2};
    unit_init(&unit);
    assert_int_equal(sdx_tensor_new(&unit.cx, SDX_I64, 1, dims, &keys), SDX_OK);
    for (int i = 0; i < MAPS; i++) {
        struct sdx_tensor *items[2] = {keys, NULL};
        assert_int_equal(sdx_tensor_new(&unit.cx, SDX_F32, 1, dims, &items[1]), SDX_OK);
        ((float *)items[1]->data)[1] = (float)i;
        assert_int_equal(
            sdx_tensor_new_items(&unit.cx, SDX_KIND_MAP, SDX_F32, 2, items, 0, NULL, &maps[i]),
            SDX_OK);
        sdx_tensor_release(items[1]);
    }
    assert_int_equal(
        sdx_tensor_new_items(&unit.cx, SDX_KIND_SEQUENCE, SDX_F32, MAPS, maps, 0, NULL, &t),
        SDX_OK);
    for (int i = 0; i < MAPS; i++)
        sdx_tensor_release(maps[i]);
    assert_int_equal(sdx_tensor_clone(&unit.cx, t, &copy), SDX_OK);
    sdx_tensor_release(t);
    for (int i = 0; i < MAPS; i++) {
        assert_ptr_equal(copy->items[i]->items[0], copy->items[0]->items[0]);
        assert_ptr_not_equal(copy->items[i]->items[0], keys);
        assert_true(((const float *)copy->items[i]->items[1]->data)[1] == (float)i);
    }
    sdx_tensor_release(keys);
    sdx_tensor_release(copy);
    unit_deinit(&unit);
}

static struct sdx_tensor *zeros(struct unit *unit, int dtype, int rank, const int64_t *dims)
{
    struct sdx_tensor *t = NULL;
    assert_int_equal(sdx_tensor_new(&unit->cx, dtype, rank, dims, &t), SDX_OK);
    return t;
}

/* Values and indices that fit each other and the dense shape. */
static void sparse_tensors(void **state)
{
    static const int64_t dims[] = {3, 4}, negative[] = {3, -4}, pairs[] = {2, 2},
                         triples[] = {2, 3};
    (void)state;
    struct unit unit;
    unit_init(&unit);
    struct sdx_tensor *values = zeros(&unit, SDX_F32, 1, pairs), *made = NULL;
    struct sdx_tensor *flat = zeros(&unit, SDX_I64, 1, pairs);
    struct sdx_tensor *table = zeros(&unit, SDX_I64, 2, pairs);
    struct sdx_tensor *wide = zeros(&unit, SDX_I64, 2, triples);
    struct sdx_tensor *few = zeros(&unit, SDX_I64, 1, triples + 1);
    struct sdx_tensor *narrow = zeros(&unit, SDX_I32, 1, pairs);
    struct sdx_tensor *good[] = {flat, table}, *bad[] = {wide, few, narrow, NULL};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(sdx_tensor_create_sparse(&unit.cx, 2, dims, values, good[i], &made),
                         SDX_OK);
        assert_int_equal(sdx_tensor_kind(made), SDX_KIND_SPARSE);
        assert_int_equal(sdx_tensor_dtype(made), SDX_F32);
        assert_memory_equal(sdx_tensor_dims(made), dims, sizeof dims);
        assert_ptr_equal(sdx_tensor_data(sdx_tensor_item(made, 0)), sdx_tensor_data(values));
        assert_ptr_equal(sdx_tensor_data(sdx_tensor_item(made, 1)), sdx_tensor_data(good[i]));
        sdx_tensor_destroy(made);
    }
    for (int i = 0; bad[i]; i++) {
        assert_int_equal(sdx_tensor_create_sparse(&unit.cx, 2, dims, values, bad[i], &made),
                         SDX_INVALID_ARGUMENT);
        assert_null(made);
    }
    assert_string_equal(sdx_error(&unit.cx), "values f32[2] with indices i32[2], "
                                             "expected [n] and int64 [n] or [n,2]");
    assert_int_equal(sdx_tensor_create_sparse(&unit.cx, 2, dims, table, flat, &made),
                     SDX_INVALID_ARGUMENT);
    assert_int_equal(sdx_tensor_create_sparse(&unit.cx, 2, negative, values, flat, &made),
                     SDX_INVALID_ARGUMENT);
    assert_int_equal(sdx_value_create(&unit.cx, SDX_KIND_SPARSE, SDX_F32, 2, good, &made),
                     SDX_INVALID_ARGUMENT);
    sdx_tensor_destroy(values);
    for (int i = 0; i < 2; i++)
        sdx_tensor_destroy(good[i]);
    for (int i = 0; bad[i]; i++)
        sdx_tensor_destroy(bad[i]);
    unit_deinit(&unit);
}

static void text_form(void **state)
{
    (void)state;
    struct unit unit;
    struct sdx_tensor *t = NULL;
    char text[64], tiny[8];
    unit_init(&unit);
    assert_int_equal(sdx_tensor_new(&unit.cx, SDX_F32, 4, (const int64_t[]){1, 3, 2, 2}, &t),
                     SDX_OK);
    assert_string_equal(sdx_tensor_describe(t, text, sizeof text), "f32[1,3,2,2]");
    assert_string_equal(sdx_tensor_describe(t, tiny, sizeof tiny), "f32[1,3");
    sdx_tensor_release(t);
    assert_string_equal(sdx_dims_describe((const int64_t[]){1, -1, -5}, 3, text, sizeof text),
                        "[1,?,?]");
    unit_deinit(&unit);
}

/* Every allocation fails once: nothing leaks, and the code is right. */
static void out_of_memory(void **state)
{
    (void)state;
    for (long long fail_at = 0;; fail_at++) {
        struct unit unit;
        struct sdx_tensor *t = NULL, *copy = NULL, *again = NULL;
        unit_init(&unit);
        atomic_store(&unit.mem.fail_at, fail_at);
        enum sdx_status status = make_nested(&unit.cx, &t);
        if (status == SDX_OK) status = sdx_tensor_clone(&unit.cx, t, &copy);
        if (status == SDX_OK) status = sdx_tensor_clone(&unit.cx, copy, &again);
        sdx_tensor_release(t);
        sdx_tensor_release(copy);
        sdx_tensor_release(again);
        unit_deinit(&unit);
        if (status == SDX_OK) {
            assert_true(fail_at > 10);
            return;
        }
        assert_int_equal(status, SDX_OUT_OF_MEMORY);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_of_types),   cmocka_unit_test(classes_of_types),
        cmocka_unit_test(counts_of_shapes), cmocka_unit_test(creation),
        cmocka_unit_test(strings),          cmocka_unit_test(items),
        cmocka_unit_test(sparse_tensors),   cmocka_unit_test(text_form),
        cmocka_unit_test(many_maps),        cmocka_unit_test(out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
