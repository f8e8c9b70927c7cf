/* SPDX-License-Identifier: Apache-2.0
 * The checker of messages: each fault is found once, with its place, and all are reported. */
#include "message.h"

#include "base/str.h"
#include "ops/check.h"
#include "proto/tensor_data.h"

struct fixture {
    struct unit unit;
    struct sdx_arena arena;
    struct sdx_text lines;
};

static int setup(void **state)
{
    static struct fixture f;
    unit_init(&f.unit);
    sdx_arena_init(&f.arena, &f.unit.mem, SDX_MEM_MODEL);
    sdx_text_init(&f.lines, &f.unit.mem);
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    sdx_text_deinit(&f->lines);
    sdx_arena_deinit(&f->arena);
    unit_deinit(&f->unit);
    return 0;
}

static void add_line(const char *line, void *user)
{
    sdx_text_add(user, "%s\n", line);
}

/* All faults, a line each; "" when there is none. */
static const char *check(struct fixture *f, const struct sdx_onnx_model *model)
{
    struct sdx_external ex;
    struct sdx_faults faults = {.fault = add_line, .user = &f->lines};
    sdx_text_clear(&f->lines);
    sdx_context_clear(&f->unit.cx);
    sdx_external_init(&ex, &f->arena, NULL);
    enum sdx_status status = sdx_check_messages(&f->unit.cx, &f->arena, &ex, model, &faults);
    sdx_external_deinit(&ex);
    const char *text = sdx_text_get(&f->lines);
    assert_int_equal(status, faults.count ? SDX_BAD_MODEL : SDX_OK);
    if (faults.count)
        assert_memory_equal(f->unit.cx.error.text, text, strlen(f->unit.cx.error.text));
    sdx_context_clear(&f->unit.cx);
    return text;
}

static struct sdx_onnx_model *plain(struct fixture *f, const char *text)
{
    return message_model(&f->arena, message_graph(&f->arena, text, NULL), NULL, 0);
}

static void test_nodes(void **state)
{
    static const struct {
        const char *text, *expect;
    } cases[] = {
        {"in x\nout y\ny = Relu(x)\n", ""},
        {"in x\nout y\ny = Clip(x, _, x)\n", ""},
        {"in x\nout x\n", ""},
        {"in x\nout y\ny = Add(x, t)\nt = Relu(x)\n", ""},
        {"in x\nout y\ny = NoSuchOp(x)\n",
         "node of \"y\" (NoSuchOp): ai.onnx has no such operator\n"},
        {"in x\nout y\ny = Gelu(x)\n",
         "node of \"y\" (Gelu): the operator is not yet in version 17 of ai.onnx\n"},
        {"in x\nout y\ny = Scatter(x, x, x)\n",
         "node of \"y\" (Scatter): the operator is deprecated since version 11 of ai.onnx\n"},
        {"in x\nout y\ny = no.such.Relu(x)\n",
         "node of \"y\" (Relu): domain \"no.such\" is not imported\n"},
        {"in x\nout y\ny = f.Mystery(x)\n", ""}, /* a custom domain that is imported */
        {"in x\nout y\ny = Relu(x, x, x)\n", "node of \"y\" (Relu): has 3 inputs, expected 1\n"},
        {"in x\nout y\ny = Add(x)\n", "node of \"y\" (Add): has 1 inputs, expected 2\n"},
        {"in x\nout y\ny = Clip(x, x, x, x)\n",
         "node of \"y\" (Clip): has 4 inputs, expected 1 to 3\n"},
        {"in x\nout y\ny, z = Relu(x)\n", "node of \"y\" (Relu): has 2 outputs, expected 1\n"},
        {"in x\nout y\ny = Add(x, _)\n",
         "node of \"y\" (Add): input B is left out, but it is required\n"},
        {"in x\nout y\ny = Relu(x) bogus=3\n",
         "node of \"y\" (Relu): attribute bogus is unknown in version 14 of the operator\n"},
        {"in x\nout y\ny = Relu(x) __private__=3\n", ""},
        {"in x\nout y\ny = Elu(x) alpha=3\n",
         "node of \"y\" (Elu): attribute alpha is of type int, expected float\n"},
        {"in x\nout y\ny = Softmax(x) axis=1 axis=1\n",
         "node of \"y\" (Softmax): attribute axis is given twice\n"},
        {"in x\nout y\ny = Cast(x)\n", "node of \"y\" (Cast): required attribute to is missing\n"},
        {"in x\nout y\ny = Cast(x) to=$t\n", "node of \"y\" (Cast): attribute \"to\": refers to "
                                             "attribute \"t\" outside of a function\n"},
        {"in x\nout y\ny = Relu(ghost)\n",
         "node of \"y\" (Relu): input \"ghost\" is not defined\n"},
        {"in x\nout y\ny = Relu(x)\ny = Abs(x)\n",
         "node of \"y\" (Abs): output \"y\" is defined twice\n"},
        {"in x\nin x\nout x\n", "input \"x\": stands twice among the inputs\n"},
        {"in x\nout y\nt = Relu(x)\n", "output \"y\": is not made by any node\n"},
        {"out w\ninit w\ninit w\n", "initializer \"w\": is given twice\n"},
        {"in x\nout y\ny = Relu(a)\nz = Relu(b)\n",
         "node of \"y\" (Relu): input \"a\" is not defined\nnode of \"z\" (Relu): input \"b\" is "
         "not defined\n"},
    };
    struct fixture *f = *state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_string_equal(check(f, plain(f, cases[i].text)), cases[i].expect);
}

static void test_model(void **state)
{
    struct fixture *f = *state;
    struct sdx_onnx_model *model = plain(f, "in x\nout x\n");
    model->ir_version = 9999;
    assert_string_equal(check(f, model), "ir_version is 9999, expected 1 to 14\n");
    model->ir_version = 0;
    assert_string_equal(check(f, model), "ir_version is 0, expected 1 to 14\n");
    model->ir_version = 8;
    model->opsets.at[1].domain = SDX_STR("ai.onnx");
    assert_string_equal(check(f, model), "domain \"\" is imported twice, with versions 17 and 1\n");
    model->opsets.count = 1;
    model->opsets.at[0].version = 99;
    assert_string_equal(check(f, model),
                        "version 99 of domain ai.onnx is imported, newest known is 28\n");
    model->opsets.at[0].version = -5;
    assert_string_equal(check(f, model),
                        "version -5 of domain ai.onnx is imported, expected 1 to 28\n");
    model->opsets.count = 0;
    assert_string_equal(check(f, model),
                        "opset_import is empty, expected the version of ai.onnx\n");
    model->ir_version = 2;
    assert_string_equal(check(f, model), "");
    model->graph = NULL;
    assert_string_equal(check(f, model), "the model has no graph\n");
}

static void test_values(void **state)
{
    struct fixture *f = *state;
    struct sdx_onnx_model *model = plain(f, "in x\nout w\ninit w\n");
    model->graph->inputs.at[0].type->dims[0].value = -7;
    assert_string_equal(check(f, model), "input \"x\": dimension 0 is -7, expected at least 0\n");
    model->graph->inputs.at[0].type->dims[0].value = 7;
    model->graph->inputs.at[0].type->elem_type = 0;
    assert_contains(check(f, model), "input \"x\": element type is 0, expected 1 to ");
    model->graph->inputs.at[0].type = NULL;
    assert_string_equal(check(f, model), "input \"x\": has no type\n");
    model = plain(f, "in x\nout w\ninit w\n");
    model->graph->initializers.at[0].count_float = 1;
    assert_contains(check(f, model), "tensor \"w\": float_data has 1 elements");
    struct sdx_onnx_attr *attr;
    model = plain(f, "in x\nout y\ny = Softmax(x) axis=1\n");
    attr = &model->graph->nodes.at[0].attrs.at[0];
    attr->has_s = true;
    assert_contains(check(f, model), "attribute \"axis\": 2 value fields are set, expected one\n");
    attr->has_i = false;
    assert_contains(check(f, model), "type is int, but the value field of another type is set\n");
    attr->type = 99;
    assert_contains(check(f, model), "attribute \"axis\": type is 99, expected 1 to 14\n");
}

static void test_bodies(void **state)
{
    struct fixture *f = *state;
    struct sdx_onnx_graph *bodies[3] = {NULL};
    bodies[0] = message_graph(&f->arena, "t = Relu(x)\nout t\n", NULL);
    bodies[1] = message_graph(&f->arena, "y = Relu(ghost)\nout y\n", NULL);
    bodies[2] = message_graph(&f->arena, "out x\n", NULL);
    struct sdx_onnx_graph *g = message_graph(
        &f->arena, "in x\nout y\nt = Abs(x)\ny = If(x) then_branch={0} else_branch={1}\n", bodies);
    assert_string_equal(check(f, message_model(&f->arena, g, NULL, 0)),
                        "node of \"y\" (If): attribute \"then_branch\": node of \"t\" (Relu): "
                        "output \"t\" shadows a value of a graph around it\n"
                        "node of \"y\" (If): attribute \"else_branch\": node of \"y\" (Relu): "
                        "input \"ghost\" is not defined\n");
    /* What is made by the node itself or later is no shadow. */
    g = message_graph(
        &f->arena, "in x\nout y\ny = If(x) then_branch={0} else_branch={0}\nt = Abs(x)\n", bodies);
    assert_string_equal(check(f, message_model(&f->arena, g, NULL, 0)), "");
    g = message_graph(&f->arena, "in x\nout y\ny = If(x) then_branch={0} else_branch={2}\n",
                      bodies);
    assert_contains(check(f, message_model(&f->arena, g, NULL, 0)),
                    "output \"x\": is a value of a graph around it, expected one of its own\n");
}

static void test_functions(void **state)
{
    struct fixture *f = *state;
    struct sdx_onnx_function functions[3];
    struct sdx_str names[] = {SDX_STR("alpha")};
    functions[0] = message_function(&f->arena, "F", "in a\nout b\nb = Cast(a) to=$alpha\n", NULL);
    functions[0].attr_names = (struct sdx_onnx_strings){names, 1};
    functions[1] = message_function(&f->arena, "G", "in a\nout b\nb = f.H(a)\n", NULL);
    functions[2] = message_function(&f->arena, "H", "in a\nout b\nb = f.F(a) alpha=1\n", NULL);
    struct sdx_onnx_graph *g = message_graph(&f->arena, "in x\nout y\ny = f.G(x)\n", NULL);
    assert_string_equal(check(f, message_model(&f->arena, g, functions, 3)), "");
    functions[2] = message_function(&f->arena, "H", "in a\nout b\nb = f.G(a)\n", NULL);
    assert_string_equal(check(f, message_model(&f->arena, g, functions, 3)),
                        "function \"G\": calls itself, expected no recursion\n");
    functions[2].name = SDX_STR("F");
    assert_contains(check(f, message_model(&f->arena, g, functions, 3)),
                    "function \"F\": is defined twice\n");
    functions[1] = message_function(&f->arena, "G", "in a\nout b\nc = Cast(z) to=$beta\n", NULL);
    assert_string_equal(check(f, message_model(&f->arena, g, functions, 2)),
                        "function \"G\": node of \"c\" (Cast): input \"z\" is not defined\n"
                        "function \"G\": node of \"c\" (Cast): attribute \"to\": refers to "
                        "attribute \"beta\", which the function does not declare\n"
                        "function \"G\": output \"b\" is not made by any node\n");
    g = message_graph(&f->arena, "in x\nout y\ny, z = f.F(x, x) other=1\n", NULL);
    assert_string_equal(check(f, message_model(&f->arena, g, functions, 1)),
                        "node of \"y\" (F): has 2 inputs, expected 0 to 1\n"
                        "node of \"y\" (F): has 2 outputs, expected 0 to 1\n"
                        "node of \"y\" (F): function \"F\" has no attribute other\n");
}

/* Without a callback the first fault is in the context. */
static void test_first_fault(void **state)
{
    struct fixture *f = *state;
    struct sdx_external ex;
    struct sdx_faults faults = {.fault = NULL};
    struct sdx_onnx_model *model = plain(f, "in x\nout y\ny = Relu(a)\nz = Relu(b)\n");
    sdx_external_init(&ex, &f->arena, NULL);
    assert_int_equal(sdx_check_messages(&f->unit.cx, &f->arena, &ex, model, &faults),
                     SDX_BAD_MODEL);
    assert_string_equal(f->unit.cx.error.text, "node of \"y\" (Relu): input \"a\" is not defined");
    assert_int_equal(faults.count, 2);
    sdx_external_deinit(&ex);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {CASE(test_nodes),     CASE(test_model),
                                       CASE(test_values),    CASE(test_bodies),
                                       CASE(test_functions), CASE(test_first_fault)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
