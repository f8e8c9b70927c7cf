/* SPDX-License-Identifier: Apache-2.0
 * The wire format: every kind of field, and every way it can be broken. */
#include "unit.h"

#include "message_bytes.h"

static enum sdx_status next(struct unit *unit, const void *bytes, size_t size,
                            struct sdx_wire_field *field)
{
    struct sdx_wire_source source = {&unit->cx, SDX_BAD_MODEL, bytes};
    struct sdx_wire w = {&source, "Thing", bytes, (const unsigned char *)bytes + size};
    sdx_context_clear(&unit->cx);
    return sdx_wire_next(&w, field);
}

static void varints(void **state)
{
    (void)state;
    const uint64_t values[] = {0, 1, 127, 128, 300, UINT32_MAX, (uint64_t)1 << 63, UINT64_MAX};
    for (int i = 0; i < SDX_COUNT_OF(values); i++) {
        unsigned char bytes[SDX_WIRE_VARINT_MAX];
        int n = sdx_wire_put_varint(bytes, values[i]);
        const unsigned char *at = bytes;
        uint64_t back = 0;
        assert_true(sdx_wire_varint(&at, bytes + n, &back));
        assert_true(back == values[i]);
        assert_ptr_equal(at, bytes + n);
        at = bytes;
        assert_false(sdx_wire_varint(&at, bytes + n - 1, &back));
        assert_ptr_equal(at, bytes);
    }
    const unsigned char *at = (const unsigned char *)"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02";
    uint64_t value = 0;
    assert_false(sdx_wire_varint(&at, at + 10, &value));
}

static void fields(void **state)
{
    (void)state;
    struct unit unit;
    struct sdx_wire_field f;
    unit_init(&unit);
    assert_int_equal(next(&unit, "\x08\x96\x01", 3, &f), SDX_OK);
    assert_true(f.number == 1 && f.type == SDX_WIRE_VARINT && f.varint == 150);
    assert_int_equal(next(&unit, "\x12\x02hi", 4, &f), SDX_OK);
    assert_true(f.number == 2 && f.type == SDX_WIRE_BYTES && f.size == 2);
    assert_memory_equal(f.payload, "hi", 2);
    assert_int_equal(next(&unit, "\x1d\1\2\3\4", 5, &f), SDX_OK);
    assert_true(f.type == SDX_WIRE_FIXED32 && sdx_wire_u32(f.payload) == 0x04030201);
    assert_int_equal(next(&unit, "\x19\1\2\3\4\5\6\7\x88", 9, &f), SDX_OK);
    assert_true(f.type == SDX_WIRE_FIXED64 && sdx_wire_u64(f.payload) == 0x8807060504030201);
    unit_deinit(&unit);
}

static void faults(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t size;
        const char *text;
    } rows[] = {
        {"\x08", 1, "byte 1: a number is cut off at the end of Thing"},
        {"\xff", 1, "byte 0: a number is cut off at the end of Thing"},
        {"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12,
         "byte 1: a number is longer than 64 bits in Thing"},
        {"\x12\x05hi", 4, "byte 0: field 2 of Thing takes 5 bytes, but 2 are left"},
        {"\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11,
         "byte 0: field 2 of Thing takes 18446744073709551615 bytes, but 0 are left"},
        {"\x1d\1\2\3", 4, "byte 0: field 3 of Thing takes 4 bytes, but 3 are left"},
        {"\x0b", 1, "byte 0: field 1 of Thing has wire type 3, expected 0, 1, 2 or 5"},
        {"\x02\0", 2, "byte 0: field number 0 in Thing, expected 1 to 536870911"},
        {"\x80\x80\x80\x80\x10\0", 6,
         "byte 0: field number 536870912 in Thing, expected 1 to 536870911"},
    };
    struct unit unit;
    struct sdx_wire_field f;
    unit_init(&unit);
    for (int i = 0; i < SDX_COUNT_OF(rows); i++) {
        assert_int_equal(next(&unit, rows[i].bytes, rows[i].size, &f), SDX_BAD_MODEL);
        assert_string_equal(unit.cx.error.text, rows[i].text);
    }
    unit_deinit(&unit);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(varints), cmocka_unit_test(fields),
                                       cmocka_unit_test(faults)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
