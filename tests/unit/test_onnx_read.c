/* SPDX-License-Identifier: Apache-2.0
 * Reading messages: forms of repeated fields, oneofs, what may be given twice, depth, memory. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "message_bytes.h"
#include "proto/onnx.h"

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

static const struct sdx_onnx_tensor *read_tensor(struct reading *r, const struct bytes *b)
{
    struct sdx_onnx_tensor *t = NULL;
    if (sdx_onnx_read_tensor(&r->unit.cx, &r->arena, b->at, b->size, &t) != SDX_OK)
        fail_msg("%s", r->unit.cx.error.text);
    return t;
}

static void packed_and_single_numbers_join(void **state)
{
    (void)state;
    struct bytes b = {0};
    struct reading r;
    begin(&r);
    add_number(&b, 1, 2);
    add_bytes(&b, 1, "\x03\xac\x02", 3);
    add_number(&b, 1, UINT64_MAX);
    add_fixed32(&b, 4, 0x3f800000);
    add_bytes(&b, 4, "\0\0\0\x40\0\0\x40\x40", 8);
    add_fixed32(&b, 4, 0x40800000);
    add_number(&b, 5, UINT64_MAX); /* int32 -1 takes ten bytes */
    add_number(&b, 5, 0x1ffffffff);
    add_bytes(&b, 5, "\x07", 1);
    add_bytes(&b, 10, "\0\0\0\0\0\0\xf0\x3f", 8);
    add_bytes(&b, 11, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10);
    const struct sdx_onnx_tensor *t = read_tensor(&r, &b);
    assert_int_equal(t->dims.count, 4);
    assert_true(t->dims.at[0] == 2 && t->dims.at[1] == 3 && t->dims.at[2] == 300 &&
                t->dims.at[3] == -1);
    assert_int_equal(t->count_float, 4);
    for (int i = 0; i < 4; i++)
        assert_true(t->float_data[i] == (float)(i + 1));
    assert_int_equal(t->count_int32, 3);
    assert_true(t->int32_data[0] == -1 && t->int32_data[1] == -1 && t->int32_data[2] == 7);
    assert_true(t->count_double == 1 && t->double_data[0] == 1);
    assert_true(t->count_uint64 == 1 && t->uint64_data[0] == UINT64_MAX);
    end(&r);
}

static void the_last_scalar_wins(void **state)
{
    (void)state;
    struct bytes b = {0};
    struct reading r;
    begin(&r);
    add_number(&b, 2, 1);
    add_number(&b, 2, 7);
    add_text(&b, 8, "first");
    add_text(&b, 8, "second");
    const struct sdx_onnx_tensor *t = read_tensor(&r, &b);
    assert_int_equal(t->data_type, 7);
    assert_true(sdx_str_is(t->name, "second"));
    assert_null(t->doc.ptr);
    end(&r);
}

/* A model whose one input has `type`. */
static enum sdx_status read_input_type(struct reading *r, const struct bytes *type,
                                       const struct sdx_onnx_type **out)
{
    struct bytes model = {0}, graph = {0}, input = {0};
    struct sdx_onnx_model *m = NULL;
    add_text(&input, 1, "x");
    add_message(&input, 2, type);
    add_message(&graph, 11, &input);
    add_message(&model, 7, &graph);
    unsigned char *bytes = sdx_arena_copy(&r->arena, model.at, model.size);
    enum sdx_status status = sdx_onnx_read_model(&r->unit.cx, &r->arena, bytes, model.size, &m);
    *out = m ? m->graph->inputs.at[0].type : NULL;
    return status;
}

static void types(void **state)
{
    (void)state;
    struct bytes fixed = {0}, symbol = {0}, nothing = {0}, shape = {0}, tensor = {0}, type = {0},
                 map = {0}, outer = {0}, twice = {0};
    const struct sdx_onnx_type *t = NULL;
    struct reading r;
    begin(&r);
    add_number(&fixed, 1, 3);
    add_text(&symbol, 2, "N");
    add_text(&symbol, 3, "DATA_BATCH");
    add_message(&shape, 1, &fixed);
    add_message(&shape, 1, &symbol);
    add_message(&shape, 1, &nothing);
    add_number(&tensor, 1, 1);
    add_message(&tensor, 2, &shape);
    add_message(&type, 1, &tensor);
    add_text(&type, 6, "IMAGE");
    assert_int_equal(read_input_type(&r, &type, &t), SDX_OK);
    assert_true(t->which == SDX_TYPE_TENSOR && t->elem_type == 1 && t->has_shape && t->rank == 3);
    assert_true(t->dims[0].which == SDX_DIM_VALUE && t->dims[0].value == 3);
    assert_true(t->dims[1].which == SDX_DIM_PARAM && sdx_str_is(t->dims[1].param, "N"));
    assert_true(t->dims[2].which == SDX_DIM_NONE);
    assert_true(sdx_str_is(t->denotation, "IMAGE"));

    add_number(&map, 1, 7);
    add_message(&map, 2, &type);
    add_message(&outer, 5, &map);
    assert_int_equal(read_input_type(&r, &outer, &t), SDX_OK);
    assert_true(t->which == SDX_TYPE_MAP && t->elem_type == 7 && t->elem->which == SDX_TYPE_TENSOR);

    add_message(&twice, 1, &nothing);
    add_message(&twice, 8, &nothing);
    assert_int_equal(read_input_type(&r, &twice, &t), SDX_BAD_MODEL);
    assert_contains(r.unit.cx.error.text, "TypeProto has sparse_tensor_type besides another type");
    end(&r);
}

/* `depth` messages in each other: a graph's attribute's graph's ... */
static enum sdx_status read_nested(struct reading *r, int depth)
{
    static unsigned char bytes[1 << 14];
    size_t at = sizeof bytes;
    struct sdx_onnx_model *model = NULL;
    for (int i = depth - 1; i > 0; i--) {
        static const unsigned char tags[] = {7 << 3 | 2, 1 << 3 | 2, 5 << 3 | 2, 6 << 3 | 2};
        unsigned char length[SDX_WIRE_VARINT_MAX];
        int n = sdx_wire_put_varint(length, sizeof bytes - at);
        at -= (size_t)n;
        memcpy(bytes + at, length, (size_t)n);
        bytes[--at] = i == 1 ? tags[0] : tags[1 + (i - 2) % 3];
    }
    return sdx_onnx_read_model(&r->unit.cx, &r->arena, bytes + at, sizeof bytes - at, &model);
}

static void depth(void **state)
{
    (void)state;
    struct reading r;
    begin(&r);
    assert_int_equal(read_nested(&r, SDX_ONNX_DEPTH_MAX), SDX_OK);
    assert_int_equal(read_nested(&r, SDX_ONNX_DEPTH_MAX + 1), SDX_BAD_MODEL);
    assert_contains(r.unit.cx.error.text, "messages are nested deeper than 100");
    end(&r);
}

/* A field of `size` bytes, of which only the beginning is written. */
static void add_beginning(struct bytes *b, int field, uint64_t size)
{
    add_varint(b, (uint64_t)field << 3 | SDX_WIRE_BYTES);
    add_varint(b, size);
}

static void more_than_4_gib(void **state)
{
    (void)state;
    const uint64_t size = (uint64_t)5 << 30; /* a hole in the file: takes no room on disk */
    struct bytes b = {0};
    struct reading r;
    struct sdx_file_map map;
    struct sdx_onnx_model *model = NULL;
    char path[] = "/tmp/sdx_test_read_XXXXXX";
    int fd = mkstemp(path);
    add_beginning(&b, 7, size + 22);
    add_beginning(&b, 5, size + 16);
    add_number(&b, 2, 2);
    add_number(&b, 1, size);
    b.size += (size_t)sdx_wire_put_varint(b.at + b.size, 8 << 3 | SDX_WIRE_BYTES);
    b.at[b.size++] = 0;
    add_beginning(&b, 9, size);
    assert_int_equal(b.size, 6 + 6 + 16);
    assert_true(fd >= 0 && write(fd, b.at, b.size) == (ssize_t)b.size);
    bool fits = ftruncate(fd, (off_t)(b.size + size)) == 0;
    close(fd);
    begin(&r);
    fits = fits && sdx_file_map_open(&r.unit.cx, path, &map) == SDX_OK;
    unlink(path);
    if (fits) {
        if (sdx_onnx_read_model(&r.unit.cx, &r.arena, map.data, map.size, &model) != SDX_OK)
            fail_msg("%s", r.unit.cx.error.text);
        assert_true(model->graph->initializers.at[0].raw.len == size);
        sdx_file_map_close(&map);
    }
    end(&r);
    if (!fits) skip();
}

static void out_of_memory(void **state)
{
    (void)state;
    struct bytes model = {0}, graph = {0}, node = {0};
    add_text(&node, 1, "x");
    for (int i = 0; i < 50; i++)
        add_message(&graph, 1, &node);
    add_message(&model, 7, &graph);
    add_text(&model, 99, "unknown");
    for (long long fail_at = 0;; fail_at++) {
        struct reading r;
        struct sdx_onnx_model *m = NULL;
        begin(&r);
        atomic_store(&r.unit.mem.fail_at, fail_at);
        enum sdx_status status =
            sdx_onnx_read_model(&r.unit.cx, &r.arena, model.at, model.size, &m);
        assert_true((status == SDX_OK) == (m != NULL));
        end(&r);
        if (status == SDX_OK) return;
        assert_int_equal(status, SDX_OUT_OF_MEMORY);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(packed_and_single_numbers_join),
                                       cmocka_unit_test(the_last_scalar_wins),
                                       cmocka_unit_test(types),
                                       cmocka_unit_test(depth),
                                       cmocka_unit_test(more_than_4_gib),
                                       cmocka_unit_test(out_of_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
