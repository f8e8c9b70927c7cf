/* SPDX-License-Identifier: Apache-2.0
 * The corpus of broken models, as far as reading messages and tensor data can tell: what is broken
 * at this level is refused with one line, and everything else is read. */
#include "unit.h"

#include "data.h"
#include "proto/tensor_data.h"

struct verdict {
    const char *name;   /* of the file, after its number; one that ends in '_' is a beginning */
    const char *expect; /* text of the error; NULL: it is read */
};

/* In the order of the corpus. Faults of models, graphs, nodes and functions are the checker's. */
static const struct verdict verdicts[] = {
    {"_truncated_at_", "byte "},
    {"_empty_file", "the file is empty"},
    {"_one_byte", "cut off"},
    {"_not_protobuf_text", "wire type 4"},
    {"_all_ff", "longer than 64 bits"},
    {"_trailing_garbage", "cut off"},
    {"_varint_eleven_bytes", "longer than 64 bits"},
    {"_length_2_63", "takes 9223372036854775808 bytes, but 3 are left"},
    {"_length_4_gib", "takes 4294967295 bytes, but 3 are left"},
    {"_length_past_parent", "graph of ModelProto is given twice"},
    {"_group_wire_type", "wire type 3"},
    {"_wire_type_7", "wire type 7"},
    {"_field_number_0", "field number 0 in ModelProto"},
    {"_graph_as_varint", "graph of ModelProto (field 7) has wire type 0, expected 2"},
    {"_unknown_fields", NULL},
    {"_packed_dims_length_odd", "ends within a number"},
    {"_graph_given_twice", "graph of ModelProto is given twice"},
    {"_nul_in_name", "op_type of NodeProto holds a NUL"},
    {"_invalid_utf8_name", "op_type of NodeProto is not valid UTF-8"},
    {"_nested_subgraphs_60", "nested deeper than 100"},
    {"_nested_subgraphs_5000", "nested deeper than 100"},
    {"_nested_sequence_type_10000", "nested deeper than 100"},
    {"_chain_of_20000_nodes", NULL},
    {"_raw_data_short", "tensor \"w\": raw_data has 23 bytes, f32[2,3] needs 24"},
    {"_raw_data_long", "tensor \"w\": raw_data has 25 bytes, f32[2,3] needs 24"},
    {"_raw_data_absent", "tensor \"w\": float_data has 0 elements, f32[2,3] needs 6"},
    {"_float_data_short", "float_data has 1 elements, f32[2,3] needs 6"},
    {"_raw_and_typed_both", "both raw_data and float_data are set"},
    {"_typed_field_of_other_type", "float data is in int64_data, expected raw_data or float_data"},
    {"_dim_negative", "dimension 0 is -2"},
    {"_dims_product_wraps_to_small", "[4294967296,4294967296] has more elements"},
    {"_dims_bytes_wrap", "[4611686018427387904,1] has more elements"},
    {"_dims_1_tib_no_data", "raw_data has 4 bytes, f32[274877906944] needs 1099511627776"},
    {"_rank_10000", "rank 10000, expected at most 64"},
    {"_data_type_undefined", "element type 0 is unknown"},
    {"_data_type_unknown", "element type 77 is unknown"},
    {"_string_with_raw_data", "string data is in raw_data, expected string_data"},
    {"_int4_raw_short", "raw_data has 2 bytes, i4[5] needs 3"},
    {"_segment_set", "data in segments is not supported"},
    {"_sparse_index_out_of_range", "sparse: index 0 is outside shape [2,3]"},
    {"_sparse_index_negative", "sparse: index 0 is outside shape [2,3]"},
    {"_path_parent_traversal", "external data"},
    {"_path_absolute", "external data"},
    {"_path_hidden_traversal", "external data"},
    {"_path_empty", "external data has no location"},
    {"_path_missing_file", "no such file"},
    {"_path_directory", "external data"},
    {"_path_device", "external data"},
    {"_path_symlink", "external data"},
    {"_offset_negative", "offset is \"-24\", expected a number"},
    {"_offset_past_end", "takes 24 bytes at 1099511627776, but \"weights.bin\" has 24"},
    {"_offset_not_a_number", "offset is \"12abc\""},
    {"_length_disagrees", "external data has 20 bytes, expected 24"},
    {"_length_huge", "external data has 18446744073709551615 bytes, expected 24"},
    {"_offset_plus_length_wraps", "takes 24 bytes at 9223372036854775800"},
    {"_no_location", "external data has no location"},
};

static enum sdx_status read_file(struct sdx_context *cx, const char *folder,
                                 const struct sdx_file_map *map)
{
    struct sdx_arena arena;
    struct sdx_external external;
    struct sdx_onnx_model *model = NULL;
    sdx_arena_init(&arena, cx->mem, SDX_MEM_MODEL);
    sdx_external_init(&external, &arena, folder);
    enum sdx_status status = sdx_onnx_read_model(cx, &arena, map->data, map->size, &model);
    const struct sdx_onnx_graph *graph = model ? model->graph : NULL;
    for (int i = 0; graph && status == SDX_OK && i < graph->initializers.count; i++) {
        struct sdx_tensor *tensor = NULL;
        status = sdx_onnx_tensor_import(cx, &arena, &external, &graph->initializers.at[i], &tensor);
    }
    for (int i = 0; graph && status == SDX_OK && i < graph->sparse_initializers.count; i++) {
        struct sdx_tensor *tensor = NULL;
        status = sdx_onnx_sparse_import(cx, &arena, &external, &graph->sparse_initializers.at[i],
                                        1 << 20, &tensor);
    }
    sdx_external_deinit(&external);
    sdx_arena_deinit(&arena);
    return status;
}

static void check_file(const char *folder, const char *name)
{
    struct unit unit;
    struct sdx_file_map map;
    char path[512];
    const char *expect = NULL;
    unit_init(&unit);
    for (int i = 0; i < SDX_COUNT_OF(verdicts); i++) {
        size_t length = strlen(verdicts[i].name);
        if (strncmp(name + 3, verdicts[i].name, length) != 0) continue;
        if (name[3 + length] == '.' || verdicts[i].name[length - 1] == '_')
            expect = verdicts[i].expect;
    }
    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_int_equal(sdx_file_map_open(&unit.cx, path, &map), SDX_OK);
    enum sdx_status status = read_file(&unit.cx, folder, &map);
    if (expect == NULL && status != SDX_OK) fail_msg("%s: %s", name, unit.cx.error.text);
    if (expect != NULL && status == SDX_OK) fail_msg("%s: was read", name);
    if (expect != NULL && !strstr(unit.cx.error.text, expect))
        fail_msg("%s: found \"%s\", expected \"%s\"", name, unit.cx.error.text, expect);
    sdx_file_map_close(&map);
    unit_deinit(&unit);
}

static void corpus(void **state)
{
    (void)state;
    char folder[300], path[320], line[512];
    int count = 0;
    if (!data_path("malformed", folder, sizeof folder)) skip();
    snprintf(path, sizeof path, "%s/cases.json", folder);
    FILE *cases = fopen(path, "r");
    if (!cases) skip();
    while (fgets(line, sizeof line, cases)) { /* one member a line */
        char name[200];
        if (sscanf(line, " \"file\": \"%199[^\"]\"", name) != 1) continue;
        check_file(folder, name);
        count++;
    }
    fclose(cases);
    assert_true(count > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(corpus)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
