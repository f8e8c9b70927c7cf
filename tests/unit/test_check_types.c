/* SPDX-License-Identifier: Apache-2.0
 * The checker of types: allowed types, equal type variables, inference; one fault a node. */
#include "message.h"

#include "base/str.h"
#include "ops/check.h"
#include "ops/op.h"
#include "proto/tensor_data.h"

static void add_line(const char *line, void *user)
{
    sdx_text_add(user, "%s\n", line);
}

/* All faults of the graph, a line each; z is an int32 input where it stands among the inputs. */
static void expect_faults(const char *text, const char *expect)
{
    struct unit unit;
    struct sdx_arena arena;
    struct sdx_external ex;
    struct sdx_text lines;
    struct sdx_ir *ir = NULL;
    unit_init(&unit);
    sdx_arena_init(&arena, &unit.mem, SDX_MEM_MODEL);
    sdx_text_init(&lines, &unit.mem);
    sdx_external_init(&ex, &arena, NULL);
    struct sdx_onnx_graph *graph = message_graph(&arena, text, NULL);
    for (int i = 0; i < graph->inputs.count; i++)
        if (sdx_str_is(graph->inputs.at[i].name, "z"))
            graph->inputs.at[i].type->elem_type = SDX_I32;
    struct sdx_onnx_model *model = message_model(&arena, graph, NULL, 0);
    struct sdx_faults faults = {.fault = add_line, .user = &lines};
    assert_int_equal(sdx_ir_import(&unit.cx, &arena, &ex, model, &ir), SDX_OK);
    assert_int_equal(sdx_ops_bind(&unit.cx, ir, false), SDX_OK);
    enum sdx_status status = sdx_check_types(&unit.cx, ir, &faults);
    assert_string_equal(sdx_text_get(&lines), expect);
    assert_int_equal(status, *expect ? SDX_BAD_MODEL : SDX_OK);
    if (*expect) /* the first fault is the error's text */
        assert_memory_equal(unit.cx.error.text, expect, strcspn(expect, "\n"));
    sdx_ir_deinit(ir);
    sdx_external_deinit(&ex);
    sdx_text_deinit(&lines);
    sdx_arena_deinit(&arena);
    unit_deinit(&unit);
}

static void test_types(void **state)
{
    (void)state;
    expect_faults("in x\nout y\ny = Relu(x)\n", "");
    expect_faults("in x\nout y\nt = f.Mystery(x)\ny = Relu(t)\n", "");
    expect_faults(
        "in x\nin z\nout y\ny = Add(x, z)\n",
        "node of \"y\" (Add): input B is int32[2], expected the type of input A, which is "
        "float[2]\n");
    expect_faults("in z\nout y\ny = Erf(z)\nw = Ceil(z)\n",
                  "node of \"y\" (Erf): input input is int32[2], expected float, float16, double, "
                  "bfloat16\n"
                  "node of \"w\" (Ceil): input X is int32[2], expected float, float16, double, "
                  "bfloat16\n");
}

static void test_inference(void **state)
{
    (void)state;
    expect_faults("in x\nout y\ny = Softmax(x) axis=7\n",
                  "node of \"y\" (Softmax): axis 7 is out of range for rank 1\n");
    /* What a faulty node gives is unknown: its consumers are not blamed. */
    expect_faults(
        "in x\nin z\nout y\nt = Add(x, z)\nu = Concat(t, t) axis=0\ny = Relu(u)\n",
        "node of \"t\" (Add): input B is int32[2], expected the type of input A, which is "
        "float[2]\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_types),
                                       cmocka_unit_test(test_inference)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
