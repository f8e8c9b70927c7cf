/* SPDX-License-Identifier: Apache-2.0
 * Elements of TensorProto and SparseTensorProto: each type in each of its fields, what is refused,
 * alignment, external data. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "proto/tensor_data.h"
#include "tensor/convert.h"

struct reading {
    struct unit unit;
    struct sdx_arena arena;
};

static void begin(struct reading *r)
{
    unit_init(&r->unit);
    sdx_arena_init(&r->arena, &r->unit.mem, SDX_MEM_MODEL);
}

static void end(struct reading *r)
{
    sdx_arena_deinit(&r->arena);
    unit_deinit(&r->unit);
}

static int64_t four[1] = {4};

static void typed_fields(void **state)
{
    (void)state;
    static int64_t ones[4] = {1, 0, 1, 3}, nibbles[2] = {0x01, 0x31}, crumbs[1] = {0xd1};
    static int64_t halves[4] = {0x3c00, 0, 0x3c00, 0x4200};
    static float floats[8] = {1, 0, 0, 0, 1, 0, 3, 0}, plain[4] = {1, 0, 1, 3};
    static double doubles[8] = {1, 0, 0, 0, 1, 0, 3, 0};
    static uint64_t wide[4] = {1, 0, 1, 3};
    const struct sdx_onnx_tensor rows[] = {
        {.data_type = SDX_F32, .float_data = plain, .count_float = 4},
        {.data_type = SDX_C64, .float_data = floats, .count_float = 8},
        {.data_type = SDX_F64, .double_data = (double[]){1, 0, 1, 3}, .count_double = 4},
        {.data_type = SDX_C128, .double_data = doubles, .count_double = 8},
        {.data_type = SDX_I64, .int64_data = ones, .count_int64 = 4},
        {.data_type = SDX_U64, .uint64_data = wide, .count_uint64 = 4},
        {.data_type = SDX_U32, .uint64_data = wide, .count_uint64 = 4},
        {.data_type = SDX_I32, .int32_data = ones, .count_int32 = 4},
        {.data_type = SDX_I16, .int32_data = ones, .count_int32 = 4},
        {.data_type = SDX_U16, .int32_data = ones, .count_int32 = 4},
        {.data_type = SDX_I8, .int32_data = ones, .count_int32 = 4},
        {.data_type = SDX_U8, .int32_data = ones, .count_int32 = 4},
        {.data_type = SDX_F16, .int32_data = halves, .count_int32 = 4},
        {.data_type = SDX_U4, .int32_data = nibbles, .count_int32 = 2},
        {.data_type = SDX_I4, .int32_data = nibbles, .count_int32 = 2},
        {.data_type = SDX_U2, .int32_data = crumbs, .count_int32 = 1},
    };
    const double expected[4] = {1, 0, 1, 3};
    for (int k = 0; k < SDX_COUNT_OF(rows); k++) {
        struct reading r;
        struct sdx_onnx_tensor from = rows[k];
        struct sdx_tensor *t = NULL;
        begin(&r);
        from.dims = (struct sdx_onnx_ints){four, 1};
        if (sdx_onnx_tensor_import(&r.unit.cx, &r.arena, NULL, &from, &t) != SDX_OK)
            fail_msg("%s", r.unit.cx.error.text);
        assert_true(t->is_constant && t->refs == 0 && t->count == 4);
        for (int i = 0; i < 4; i++) {
            if (sdx_load_f64(t->dtype, t->data, i) != expected[i])
                fail_msg("%s: element %d is %g", sdx_dtype_short_name(t->dtype), i,
                         sdx_load_f64(t->dtype, t->data, i));
        }
        end(&r);
    }
}

static void faults(void **state)
{
    (void)state;
    static int64_t values[4] = {0, 300, 0, 0};
    static uint64_t wide[4] = {0, (uint64_t)1 << 32, 0, 0};
    static int64_t pair[2] = {2, 2};
    const struct {
        struct sdx_onnx_tensor from;
        const char *text;
        enum sdx_status status;
    } rows[] = {
        {{.data_type = SDX_U8, .int32_data = values, .count_int32 = 4},
         "tensor \"w\": int32_data[1] is 300, which is not uint8",
         SDX_BAD_MODEL},
        {{.data_type = SDX_U32, .uint64_data = wide, .count_uint64 = 4},
         "tensor \"w\": uint64_data[1] is 4294967296, which is not uint32",
         SDX_BAD_MODEL},
        {{.data_type = SDX_I32, .int32_data = values, .count_int32 = 3},
         "tensor \"w\": int32_data has 3 elements, i32[4] needs 4",
         SDX_BAD_MODEL},
        {{.data_type = SDX_F6E3M2, .int32_data = values, .count_int32 = 3},
         "tensor \"w\": int32_data has 3 elements, f6e3m2[4] needs 4",
         SDX_BAD_MODEL},
        {{.data_type = SDX_F32, .data_location = 2},
         "tensor \"w\": data_location is 2, expected 0 or 1",
         SDX_BAD_MODEL},
        {{.data_type = SDX_F32, .data_location = 1, .has_raw = true},
         "tensor \"w\": raw_data is set, but the data is external",
         SDX_BAD_MODEL},
        {{.data_type = SDX_STRING, .data_location = 1},
         "tensor \"w\": strings cannot be external data",
         SDX_BAD_MODEL},
        {{.data_type = SDX_F32, .int64_data = pair, .count_int64 = 2},
         "tensor \"w\": float data is in int64_data, expected raw_data or float_data",
         SDX_BAD_MODEL},
    };
    for (int k = 0; k < SDX_COUNT_OF(rows); k++) {
        struct reading r;
        struct sdx_onnx_tensor from = rows[k].from;
        begin(&r);
        from.name = SDX_STR("w");
        from.dims = (struct sdx_onnx_ints){four, 1};
        assert_int_equal(sdx_onnx_tensor_data(&r.unit.cx, &r.arena, NULL, &from, NULL),
                         rows[k].status);
        assert_string_equal(r.unit.cx.error.text, rows[k].text);
        end(&r);
    }
}

static void raw_data_is_used_in_place(void **state)
{
    (void)state;
    static _Alignas(8) char bytes[17] = {1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0, 0};
    struct reading r;
    struct sdx_tensor *t = NULL;
    struct sdx_onnx_tensor from = {
        .data_type = SDX_I32, .has_raw = true, .raw = {bytes, 16}, .dims = {four, 1}};
    begin(&r);
    assert_int_equal(sdx_onnx_tensor_import(&r.unit.cx, &r.arena, NULL, &from, &t), SDX_OK);
    assert_ptr_equal(t->data, bytes);
    memmove(bytes + 1, bytes, 16);
    from.raw.ptr = bytes + 1;
    assert_int_equal(sdx_onnx_tensor_import(&r.unit.cx, &r.arena, NULL, &from, &t), SDX_OK);
    assert_ptr_not_equal(t->data, bytes + 1);
    for (int i = 0; i < 4; i++)
        assert_int_equal(((int32_t *)t->data)[i], i + 1);
    const void *data = NULL;
    assert_int_equal(sdx_onnx_tensor_data(&r.unit.cx, &r.arena, NULL, &from, &data), SDX_OK);
    assert_ptr_equal(data, bytes + 1);
    end(&r);
}

static void bools_become_0_or_1(void **state)
{
    (void)state;
    struct reading r;
    const void *data = NULL;
    struct sdx_onnx_tensor from = {
        .data_type = SDX_BOOL, .has_raw = true, .raw = {"\x02\x00\xff\x01", 4}, .dims = {four, 1}};
    begin(&r);
    assert_int_equal(sdx_onnx_tensor_data(&r.unit.cx, &r.arena, NULL, &from, &data), SDX_OK);
    assert_memory_equal(data, "\1\0\1\1", 4);
    end(&r);
}

/* Typed 6-bit data has one code in each entry, raw data four in three bytes. */
static void six_bits(void **state)
{
    (void)state;
    struct reading r;
    const void *data = NULL;
    int64_t codes[4] = {0, 2, 44, 31};
    struct sdx_onnx_tensor from = {
        .data_type = SDX_F6E2M3, .int32_data = codes, .count_int32 = 4, .dims = {four, 1}};
    begin(&r);
    assert_int_equal(sdx_onnx_tensor_data(&r.unit.cx, &r.arena, NULL, &from, &data), SDX_OK);
    assert_memory_equal(data, "\x80\xc0\x7e", 3);
    end(&r);
}

static void no_elements_need_no_data(void **state)
{
    (void)state;
    struct reading r;
    struct sdx_tensor *t = NULL;
    int64_t dims[2] = {0, 3};
    begin(&r);
    for (int dtype = SDX_F32; dtype <= SDX_DTYPE_LAST; dtype++) {
        struct sdx_onnx_tensor from = {.data_type = dtype, .dims = {dims, 2}};
        assert_int_equal(sdx_onnx_tensor_import(&r.unit.cx, &r.arena, NULL, &from, &t), SDX_OK);
        assert_true(t->count == 0 && t->bytes == 0 && t->data != NULL);
    }
    end(&r);
}

/* ---- sparse ---- */

static struct sdx_onnx_tensor index_tensor(int64_t *data, int64_t *dims, int rank)
{
    struct sdx_onnx_tensor t = {.data_type = SDX_I64, .dims = {dims, rank}, .int64_data = data};
    t.count_int64 = rank == 2 ? dims[0] * dims[1] : dims[0];
    return t;
}

static void sparse_tensors(void **state)
{
    (void)state;
    struct reading r;
    struct sdx_tensor *t = NULL;
    int64_t shape[2] = {2, 3}, two[2] = {2, 2}, flat[2] = {1, 5}, pairs[4] = {0, 1, 1, 2};
    float floats[2] = {7, 8};
    struct sdx_onnx_tensor values = {.name = SDX_STR("s"),
                                     .data_type = SDX_F32,
                                     .dims = {two, 1},
                                     .float_data = floats,
                                     .count_float = 2};
    struct sdx_onnx_tensor linear = index_tensor(flat, two, 1),
                           matrix = index_tensor(pairs, two, 2);
    struct sdx_onnx_sparse from = {.values = &values, .indices = &linear, .dims = {shape, 2}};
    const float expected[6] = {0, 7, 0, 0, 0, 8};
    begin(&r);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(sdx_onnx_sparse_import(&r.unit.cx, &r.arena, NULL, &from, 24, &t), SDX_OK);
        assert_memory_equal(t->data, expected, sizeof expected);
        from.indices = &matrix;
    }
    assert_int_equal(sdx_onnx_sparse_import(&r.unit.cx, &r.arena, NULL, &from, 23, &t),
                     SDX_OUT_OF_MEMORY);
    sdx_context_clear(&r.unit.cx);
    pairs[3] = 3;
    assert_int_equal(sdx_onnx_sparse_import(&r.unit.cx, &r.arena, NULL, &from, 24, &t),
                     SDX_BAD_MODEL);
    assert_string_equal(r.unit.cx.error.text,
                        "tensor \"s\": sparse: index 1 is outside shape [2,3]");
    sdx_context_clear(&r.unit.cx);
    from.indices = &linear;
    flat[1] = 1;
    assert_int_equal(sdx_onnx_sparse_import(&r.unit.cx, &r.arena, NULL, &from, 24, &t),
                     SDX_BAD_MODEL);
    assert_string_equal(r.unit.cx.error.text,
                        "tensor \"s\": sparse: index 1 is not above the one before it");
    sdx_context_clear(&r.unit.cx);
    two[0] = 1;
    assert_int_equal(sdx_onnx_sparse_import(&r.unit.cx, &r.arena, NULL, &from, 24, &t),
                     SDX_BAD_MODEL);
    end(&r);
}

/* ---- external data ---- */

static void external_data(void **state)
{
    (void)state;
    char folder[] = "/tmp/sdx_test_data_XXXXXX", path[64];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/w.bin", folder);
    FILE *file = fopen(path, "wb");
    const float floats[6] = {0, 1, 2, 3, 4, 5};
    fwrite(floats, sizeof floats, 1, file);
    fclose(file);

    struct reading r;
    struct sdx_external ex;
    const void *data = NULL;
    begin(&r);
    sdx_external_init(&ex, &r.arena, folder);
    struct sdx_onnx_pair entries[4] = {{.key = SDX_STR("location"), .value = SDX_STR("w.bin")},
                                       {.key = SDX_STR("offset"), .value = SDX_STR("8")},
                                       {.key = SDX_STR("checksum"), .value = SDX_STR("0")},
                                       {.key = SDX_STR("location"), .value = SDX_STR("w.bin")}};
    struct sdx_onnx_tensor from = {.name = SDX_STR("w"),
                                   .data_type = SDX_F32,
                                   .data_location = 1,
                                   .dims = {four, 1},
                                   .external = {entries, 3}};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(sdx_onnx_tensor_data(&r.unit.cx, &r.arena, &ex, &from, &data), SDX_OK);
        assert_memory_equal(data, floats + 2, 16);
    }
    assert_int_equal(ex.count, 1);
    entries[1].value = SDX_STR("12");
    assert_int_equal(sdx_onnx_tensor_data(&r.unit.cx, &r.arena, &ex, &from, &data), SDX_BAD_MODEL);
    assert_string_equal(r.unit.cx.error.text,
                        "tensor \"w\": external data takes 16 bytes at 12, but "
                        "\"w.bin\" has 24");
    sdx_context_clear(&r.unit.cx);
    from.external.count = 4;
    assert_int_equal(sdx_onnx_tensor_data(&r.unit.cx, &r.arena, &ex, &from, &data), SDX_BAD_MODEL);
    assert_string_equal(r.unit.cx.error.text,
                        "tensor \"w\": external data gives \"location\" twice");
    sdx_context_clear(&r.unit.cx);
    from.external.count = 3;
    assert_int_equal(sdx_onnx_tensor_data(&r.unit.cx, &r.arena, NULL, &from, &data), SDX_BAD_MODEL);
    assert_contains(r.unit.cx.error.text, "a model from memory has no folder");
    sdx_external_deinit(&ex);
    sdx_external_deinit(&ex);
    unlink(path);
    rmdir(folder);
    end(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(typed_fields),
        cmocka_unit_test(faults),
        cmocka_unit_test(raw_data_is_used_in_place),
        cmocka_unit_test(bools_become_0_or_1),
        cmocka_unit_test(six_bits),
        cmocka_unit_test(no_elements_need_no_data),
        cmocka_unit_test(sparse_tensors),
        cmocka_unit_test(external_data),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
