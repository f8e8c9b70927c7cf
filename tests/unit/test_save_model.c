/* SPDX-License-Identifier: Apache-2.0
 * The optimised model as an ONNX file: it is valid, computes the same, and says what passes did
 * as far as the version that it imports and com.microsoft can. */
#include "unit.h"

#include "make_model.h"

struct fixture {
    struct make m;
    char path[80], to[88];
    sdx_context *cx;
    sdx_model *model;
    sdx_session *session;
};

static void open_file(struct fixture *f, const char *path, sdx_level level)
{
    sdx_session_options options;
    sdx_session_options_init(&options);
    options.level = level;
    if (sdx_model_open(f->cx, path, NULL, &f->model) ||
        sdx_session_create(f->cx, f->model, &options, &f->session))
        fail_msg("%s", sdx_error(f->cx));
}

static void close_file(struct fixture *f)
{
    sdx_session_destroy(f->session);
    sdx_model_destroy(f->model);
    f->session = NULL;
    f->model = NULL;
}

static void no_fault(const char *text, void *user)
{
    (void)user;
    fail_msg("%s", text);
}

/* Saves at `level` and opens what was written. */
static void save(struct fixture *f, sdx_level level)
{
    make_write(&f->m, f->path, sizeof f->path);
    snprintf(f->to, sizeof f->to, "%s.saved", f->path);
    f->cx = sdx_context_create(NULL);
    open_file(f, f->path, level);
    if (sdx_session_save_model(f->session, f->to)) fail_msg("%s", sdx_error(f->cx));
    close_file(f);
    assert_int_equal(sdx_check(f->cx, f->to, no_fault, NULL), SDX_OK);
    open_file(f, f->to, level);
}

static void close_fixture(struct fixture *f)
{
    close_file(f);
    sdx_context_destroy(f->cx);
    unlink(f->path);
    unlink(f->to);
}

static int count_op(const struct fixture *f, const char *domain, const char *name)
{
    for (int i = 0; i < sdx_model_count_op_uses(f->model); i++) {
        const sdx_op_use *use = sdx_model_op_use(f->model, i);
        if (strcmp(use->domain, domain) == 0 && strcmp(use->name, name) == 0) return use->count;
    }
    return 0;
}

static void check_run(struct fixture *f, int count, float *data, const double *expected)
{
    sdx_tensor *x = NULL, *y = NULL;
    assert_int_equal(sdx_tensor_view(f->cx, SDX_F32, 1, (int64_t[]){count}, data, &x), SDX_OK);
    if (sdx_run(f->session, 1, &(sdx_feed){"x", x}, 1, NULL, &y)) fail_msg("%s", sdx_error(f->cx));
    for (int i = 0; i < count; i++)
        assert_true(sdx_tensor_f64(y, i) - expected[i] < 1e-6 &&
                    expected[i] - sdx_tensor_f64(y, i) < 1e-6);
    sdx_tensor_destroy(x);
    sdx_tensor_destroy(y);
}

static const float one = 1, two = 2;

/* y = relu(identity(x) * (one + two)) * sigmoid of itself, two operators behind another name */
static void make_graph(struct make *m)
{
    make_init(m);
    make_input(m, "x", SDX_F32, 1, (int64_t[]){-1});
    make_initializer(m, "one", SDX_F32, 0, NULL, &one, sizeof one);
    make_initializer(m, "two", SDX_F32, 0, NULL, &two, sizeof two);
    make_node(m, "Add", "one two -> three");
    make_node(m, "Identity", "x -> i");
    make_node(m, "Mul", "i three -> a");
    make_node(m, "Sigmoid", "a -> s");
    make_node(m, "Mul", "a s -> y");
    make_output(m, "y", SDX_F32, 1, (int64_t[]){-1});
}

static const double silu[3] = {0, 2.857722379, -0.142277621};

static void test_basic(void **state)
{
    (void)state;
    struct fixture f = {0};
    make_graph(&f.m);
    save(&f, SDX_LEVEL_BASIC);
    assert_int_equal(count_op(&f, "ai.onnx", "Add"), 0); /* folded */
    assert_int_equal(count_op(&f, "ai.onnx", "Identity"), 0);
    assert_int_equal(count_op(&f, "ai.onnx", "Mul"), 2);
    assert_string_equal(sdx_model_input(f.model, 0)->name, "x");
    assert_string_equal(sdx_model_output(f.model, 0)->type, "float[N]");
    check_run(&f, 3, (float[]){0, 1, -1}, silu);
    close_fixture(&f);
}

/* x * sigmoid(x) is Swish where the model's version has it, else an operator of com.microsoft. */
static void test_extended(void **state)
{
    (void)state;
    struct fixture f = {0};
    make_graph(&f.m);
    save(&f, SDX_LEVEL_ALL);
    assert_int_equal(count_op(&f, "com.microsoft", "QuickGelu"), 1);
    assert_int_equal(count_op(&f, "ai.onnx", "Sigmoid"), 0);
    assert_int_equal(sdx_model_op_use(f.model, 0)->opset, 17);
    check_run(&f, 3, (float[]){0, 1, -1}, silu);
    close_fixture(&f);
    make_graph(&f.m);
    f.m.opset = 24;
    save(&f, SDX_LEVEL_ALL);
    assert_int_equal(count_op(&f, "ai.onnx", "Swish"), 1);
    check_run(&f, 3, (float[]){0, 1, -1}, silu);
    close_fixture(&f);
}

/* x * hard_sigmoid(x) is HardSwish, which version 13 cannot say: the file is the basic one. */
static void test_falls_back(void **state)
{
    (void)state;
    struct fixture f = {0};
    make_graph(&f.m);
    f.m.nodes[3].op_type = SDX_STR("HardSigmoid");
    f.m.nodes[3].attrs.at[f.m.nodes[3].attrs.count++] = (struct sdx_onnx_attr){
        .name = SDX_STR("alpha"), .type = SDX_ATTR_FLOAT, .has_f = true, .f = 1.0f / 6};
    f.m.opset = 13;
    save(&f, SDX_LEVEL_ALL);
    assert_int_equal(count_op(&f, "ai.onnx", "HardSigmoid"), 1);
    assert_int_equal(count_op(&f, "ai.onnx", "Add"), 0);
    check_run(&f, 3, (float[]){0, 1, -1}, (double[]){0, 3, 0});
    close_fixture(&f);
}

/* A function is written inlined; a body's value with a taken name gets another. The condition may
 * be overridden, so that both bodies stay. */
static void test_function_and_body(void **state)
{
    (void)state;
    struct fixture f = {0};
    struct make body, branch;
    static const bool yes = true;
    struct sdx_str in[1] = {SDX_STR("p")}, out[1] = {SDX_STR("q")};
    struct sdx_onnx_opset opset = {.version = 17};
    make_init(&body);
    make_node(&body, "Neg", "p -> t");
    make_node(&body, "Exp", "t -> q");
    struct sdx_onnx_function function = {.domain = SDX_STR("local"),
                                         .name = SDX_STR("Call"),
                                         .inputs = {in, 1},
                                         .outputs = {out, 1},
                                         .nodes = body.graph.nodes,
                                         .opsets = {&opset, 1}};
    make_init(&branch);
    make_node(&branch, "Abs", "a -> b");
    make_output(&branch, "b", SDX_F32, 1, (int64_t[]){-1});
    make_init(&f.m);
    make_input(&f.m, "x", SDX_F32, 1, (int64_t[]){-1});
    make_input(&f.m, "c", SDX_BOOL, 0, NULL);
    make_initializer(&f.m, "c", SDX_BOOL, 0, NULL, &yes, sizeof yes);
    make_node(&f.m, "Call", "x -> a")->domain = SDX_STR("local");
    struct sdx_onnx_node *node = make_node(&f.m, "If", "c -> y");
    make_attr_graph(node, "then_branch", &branch);
    make_attr_graph(node, "else_branch", &branch);
    make_output(&f.m, "y", SDX_F32, 1, (int64_t[]){-1});
    f.m.functions = &function;
    f.m.count_functions = 1;
    save(&f, SDX_LEVEL_ALL);
    assert_int_equal(sdx_model_get_facts(f.model)->count_functions, 0);
    assert_int_equal(count_op(&f, "ai.onnx", "Abs"), 2);
    check_run(&f, 2, (float[]){0, 1}, (double[]){1, 0.367879441});
    close_fixture(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_basic),
        cmocka_unit_test(test_extended),
        cmocka_unit_test(test_falls_back),
        cmocka_unit_test(test_function_and_body),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
