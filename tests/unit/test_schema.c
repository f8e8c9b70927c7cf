/* SPDX-License-Identifier: Apache-2.0
 * Look-ups in the schema table. */
#include "unit.h"

#include "ops/schema.h"

static const struct sdx_schema *find(const char *domain, const char *name, int64_t opset)
{
    return sdx_schema_find(sdx_str(domain), sdx_str(name), opset, NULL);
}

static void test_sorted(void **state)
{
    (void)state;
    const struct sdx_schema *before = NULL, *row;
    int count = 0;
    for (int i = 0; (row = sdx_schema_at(i)) != NULL; i++, count++) {
        if (before) {
            int order = strcmp(sdx_schema_domain_name(before), sdx_schema_domain_name(row));
            if (order == 0) order = strcmp(sdx_schema_str(before->name), sdx_schema_str(row->name));
            assert_true(order < 0 || (order == 0 && before->since < row->since));
        }
        before = row;
    }
    assert_int_equal(count, sdx_schema_count);
    assert_true(count >= 659);
    assert_null(sdx_schema_at(-1));
}

/* Every row finds itself at its own version, and its counts fit its lists. */
static void test_every_row(void **state)
{
    (void)state;
    for (int i = 0; i < sdx_schema_count; i++) {
        const struct sdx_schema *row = &sdx_schemas[i];
        assert_ptr_equal(find(sdx_schema_domain_name(row), sdx_schema_str(row->name), row->since),
                         row);
        const int32_t most = sdx_schema_inputs_max(row);
        assert_true(row->inputs_min <= most && row->outputs_min <= sdx_schema_outputs_max(row));
        if (most != INT32_MAX) {
            assert_int_equal(most, row->count_params_in);
            assert_null(sdx_schema_input(row, most));
        } else {
            assert_non_null(sdx_schema_input(row, 1000));
        }
        for (int k = 0; k < row->count_attrs; k++) {
            const struct sdx_schema_attr *attr = &sdx_schema_attrs[row->attrs + k];
            assert_ptr_equal(sdx_schema_find_attr(row, sdx_str(sdx_schema_str(attr->name))), attr);
        }
    }
}

static void test_versions(void **state)
{
    (void)state;
    bool known = false;
    assert_int_equal(find("", "Relu", 1)->since, 1);
    assert_int_equal(find("", "Relu", 13)->since, 13);
    assert_int_equal(find("ai.onnx", "Relu", 12)->since, 6);
    assert_int_equal(find("", "Relu", 1 << 20)->since, 14);
    assert_null(sdx_schema_find(SDX_STR(""), SDX_STR("Gelu"), 19, &known));
    assert_true(known);
    assert_null(sdx_schema_find(SDX_STR(""), SDX_STR("NoSuchOp"), 19, &known));
    assert_false(known);
    assert_true(find("", "Upsample", 10)->deprecated);
    assert_false(find("", "Upsample", 9)->deprecated);
    assert_non_null(find("com.microsoft", "QLinearAdd", 1));
    assert_non_null(find("ai.onnx.ml", "TreeEnsemble", 5));
    assert_int_equal(sdx_schema_domain_version(SDX_STR("ai.onnx")), sdx_schema_opset_newest);
    assert_int_equal(sdx_schema_domain_version(SDX_STR("ai.onnx.ml")), 5);
    assert_int_equal(sdx_schema_domain_version(SDX_STR("no.such")), 0);
}

static void test_parameters(void **state)
{
    (void)state;
    const struct sdx_schema *conv = find("", "Conv", 11);
    assert_int_equal(conv->inputs_min, 2);
    assert_int_equal(sdx_schema_inputs_max(conv), 3);
    assert_int_equal(sdx_schema_input(conv, 2)->option, SDX_PARAM_OPTIONAL);
    assert_int_equal(sdx_schema_input(conv, 0)->variable, sdx_schema_output(conv, 0)->variable);
    const struct sdx_schema *loop = find("", "Loop", 16);
    assert_int_equal(sdx_schema_input(loop, 9)->option,
                     SDX_PARAM_VARIADIC | SDX_PARAM_HETEROGENEOUS);
    assert_int_equal(sdx_schema_find_attr(loop, SDX_STR("body"))->type, SDX_ATTR_GRAPH);
    assert_true(sdx_schema_find_attr(loop, SDX_STR("body"))->required);
    assert_int_equal(sdx_schema_inputs_max(loop), INT32_MAX);
    assert_int_equal(sdx_schema_outputs_max(loop), INT32_MAX);
    const struct sdx_schema *gather = find("", "Gather", 13);
    assert_int_not_equal(sdx_schema_input(gather, 0)->variable,
                         sdx_schema_input(gather, 1)->variable);
    const struct sdx_schema *gemm = find("com.microsoft", "QGemm", 1);
    assert_int_equal(gemm->inputs_min, 6);
    assert_int_equal(sdx_schema_inputs_max(gemm), 9);
}

static bool allows(const char *domain, const char *name, int64_t opset, int input,
                   struct sdx_type type)
{
    const struct sdx_schema_param *param = sdx_schema_input(find(domain, name, opset), input);
    return sdx_schema_allows(&sdx_schema_typesets[param->types], &type);
}

static struct sdx_type tensor(int dtype)
{
    return (struct sdx_type){.kind = SDX_KIND_TENSOR, .dtype = (uint8_t)dtype};
}

static void test_types(void **state)
{
    (void)state;
    assert_true(allows("", "Relu", 13, 0, tensor(SDX_BF16)));
    assert_false(allows("", "Relu", 13, 0, tensor(SDX_I32)));
    assert_true(allows("", "Relu", 14, 0, tensor(SDX_I32)));
    assert_true(allows("", "Relu", 14, 0, tensor(SDX_DTYPE_NONE)));
    assert_true(allows("", "Relu", 14, 0, (struct sdx_type){.kind = SDX_KIND_NONE}));
    struct sdx_type f32 = tensor(SDX_F32);
    struct sdx_type seq = {.kind = SDX_KIND_SEQUENCE, .dtype = SDX_F32, .elem = &f32};
    struct sdx_type opt = {.kind = SDX_KIND_OPTIONAL, .dtype = SDX_F32, .elem = &seq};
    assert_false(allows("", "Relu", 14, 0, seq));
    assert_true(allows("", "SequenceLength", 11, 0, seq));
    assert_false(allows("", "SequenceLength", 11, 0, f32));
    assert_true(allows("", "OptionalGetElement", 15, 0, opt));
    assert_false(allows("", "OptionalGetElement", 15, 0, f32));
    assert_true(allows("", "OptionalGetElement", 18, 0, f32));
    struct sdx_type map = {.kind = SDX_KIND_MAP, .key_dtype = SDX_I64, .dtype = SDX_F32};
    assert_true(allows("ai.onnx.ml", "CastMap", 1, 0, map));
    map.key_dtype = SDX_STRING;
    assert_false(allows("ai.onnx.ml", "CastMap", 1, 0, map));
    assert_true(allows("ai.onnx.ml", "DictVectorizer", 1, 0, map));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sorted),   cmocka_unit_test(test_every_row),
        cmocka_unit_test(test_versions), cmocka_unit_test(test_parameters),
        cmocka_unit_test(test_types),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
