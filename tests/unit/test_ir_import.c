/* SPDX-License-Identifier: Apache-2.0
 * Import: scopes, captures, order, attributes, inlining of functions, and what is refused. */
#include "message.h"

#include <stdio.h>

#include "base/str.h"
#include "ir/ir.h"
#include "proto/tensor_data.h"

struct fixture {
    struct unit unit;
    struct sdx_arena arena;
    struct sdx_ir *ir;
    struct sdx_text printed;
};

static int setup(void **state)
{
    static struct fixture f;
    unit_init(&f.unit);
    sdx_arena_init(&f.arena, &f.unit.mem, SDX_MEM_MODEL);
    sdx_text_init(&f.printed, &f.unit.mem);
    f.ir = NULL;
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    sdx_text_deinit(&f->printed);
    sdx_ir_deinit(f->ir);
    sdx_arena_deinit(&f->arena);
    unit_deinit(&f->unit);
    return 0;
}

static void add_line(const char *line, void *user)
{
    sdx_text_add(user, "%s\n", line);
}

static enum sdx_status import(struct fixture *f, const struct sdx_onnx_model *model)
{
    struct sdx_external ex;
    sdx_external_init(&ex, &f->arena, NULL);
    enum sdx_status status = sdx_ir_import(&f->unit.cx, &f->arena, &ex, model, &f->ir);
    sdx_external_deinit(&ex);
    return status;
}

/* Imports, verifies and prints. */
static const char *show(struct fixture *f, const struct sdx_onnx_model *model)
{
    if (import(f, model) != SDX_OK) fail_msg("%s", f->unit.cx.error.text);
    if (sdx_ir_verify(&f->unit.cx, f->ir) != SDX_OK) fail_msg("%s", f->unit.cx.error.text);
    sdx_text_clear(&f->printed);
    assert_int_equal(sdx_ir_print(&f->unit.cx, f->ir, add_line, &f->printed), SDX_OK);
    return sdx_text_get(&f->printed);
}

static const char *refusal(struct fixture *f, const struct sdx_onnx_model *model)
{
    assert_int_equal(import(f, model), SDX_BAD_MODEL);
    assert_null(f->ir);
    return f->unit.cx.error.text;
}

static struct sdx_onnx_model *plain(struct fixture *f, const char *text)
{
    return message_model(&f->arena, message_graph(&f->arena, text, NULL), NULL, 0);
}

static void test_order(void **state)
{
    struct fixture *f = *state;
    const char *text = show(f, plain(f, "in x\nout y\ny = Add(b, w)\nb = Relu(a)\ninit w\n"
                                        "a = Clip(x, _, w) k=3\n"));
    assert_string_equal(text, "graph 0 \"g\"\n"
                              "  input %x : float[2]\n"
                              "  constant %w : float[2]\n"
                              "  %a = Clip(%x, _, %w) {k=3} : ?\n"
                              "  %b = Relu(%a) : ?\n"
                              "  %y = Add(%b, %w) : float[2]\n"
                              "  output %y : float[2]\n");
    assert_int_equal(f->ir->graphs[0].nodes[0].opset, 17);
    assert_int_equal(sdx_ir_attr_int(&f->ir->graphs[0].nodes[0], "k", 7), 3);
    assert_int_equal(sdx_ir_attr_int(&f->ir->graphs[0].nodes[0], "none", 7), 7);
}

static void test_input_with_initializer(void **state)
{
    struct fixture *f = *state;
    show(f, plain(f, "in x\nin w\ninit w\nout x\nout w\nout x\n"));
    const struct sdx_ir_graph *g = &f->ir->graphs[0];
    assert_int_equal(g->count_inputs, 2);
    assert_int_equal(g->count_outputs, 3);
    assert_int_equal(g->outputs[0], g->outputs[2]);
    const struct sdx_ir_value *w = &g->values[g->inputs[1]];
    assert_int_equal(w->flags, SDX_IR_INPUT | SDX_IR_OUTPUT);
    assert_non_null(w->constant);
}

static void test_captures(void **state)
{
    struct fixture *f = *state;
    struct sdx_onnx_graph *bodies[3] = {NULL};
    bodies[0] = message_graph(&f->arena, "r = Add(x, k)\nout r\n", bodies);
    bodies[1] =
        message_graph(&f->arena, "r = If(c) then_branch={0} else_branch={0}\nout r\n", bodies);
    bodies[2] = message_graph(&f->arena, "out x\n", bodies);
    struct sdx_onnx_graph *g = message_graph(
        &f->arena, "in c\nin x\nout y\ny = If(c) then_branch={1} else_branch={2}\nk = Relu(x)\n",
        bodies);
    show(f, message_model(&f->arena, g, NULL, 0));
    assert_int_equal(f->ir->count_graphs, 5);
    const struct sdx_ir_graph *main_graph = &f->ir->graphs[0];
    const struct sdx_ir_node *node = &main_graph->nodes[1]; /* k is a capture: it comes first */
    assert_true(sdx_str_is(node->op_type, "If"));
    assert_int_equal(node->count_captures, 3);
    for (int i = 0; i < 5; i++) {
        const struct sdx_ir_graph *graph = &f->ir->graphs[i];
        if (i)
            assert_int_equal(f->ir->graphs[graph->parent].nodes[graph->parent_node].op_type.len, 2);
    }
    assert_int_equal(f->ir->graphs[1].parent, 0);
    assert_int_equal(f->ir->graphs[2].parent, 1);
    assert_int_equal(f->ir->graphs[1].nodes[0].count_captures, 2);
    /* Shapes of captures come from outside. */
    assert_contains(sdx_text_get(&f->printed), "  capture %x : float[2]\n");
}

static void test_shadowing_is_local(void **state)
{
    struct fixture *f = *state;
    struct sdx_onnx_graph *bodies[1] = {NULL};
    bodies[0] = message_graph(&f->arena, "in x\nr = Relu(x)\nout r\n", bodies);
    struct sdx_onnx_graph *g = message_graph(&f->arena, "in x\nout y\ny = Body(x) g={0}\n", bodies);
    show(f, message_model(&f->arena, g, NULL, 0));
    assert_int_equal(f->ir->graphs[0].nodes[0].count_captures, 0);
}

static void test_refused(void **state)
{
    static const struct {
        const char *text, *expect;
    } cases[] = {
        {"in x\nout y\ny = Relu(y)\n", "node of \"y\" (Relu) depends on its own output"},
        {"in x\nout a\na = Add(x, b)\nb = Relu(a)\n",
         "depends on its own output, expected no cycle"},
        {"in x\nout y\ny = Relu(x)\ny = Abs(x)\n", "value \"y\" is defined twice"},
        {"in x\nin x\nout x\n", "value \"x\" is defined twice"},
        {"in x\nout y\ny = Add(x, ghost)\n", "node of \"y\" (Add): value \"ghost\" is not defined"},
        {"in x\nout y\nt = Relu(x)\n", "output 0 of graph \"g\": value \"y\" is not defined"},
        {"in x\nout x\ninit w\ninit w\n", "initializer \"w\" is given twice"},
        {"in x\nout y\ny = Relu(x) k=$z\n", "attribute k refers to \"z\""},
    };
    struct fixture *f = *state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_contains(refusal(f, plain(f, cases[i].text)), cases[i].expect);
        sdx_context_clear(&f->unit.cx);
    }
    struct sdx_onnx_model *model = plain(f, "in x\nout x\n");
    model->graph->inputs.at[0].type->dims[0].value = -7;
    assert_contains(refusal(f, model), "input \"x\": dimension 0 is -7, expected at least 0");
    sdx_context_clear(&f->unit.cx);
    model->graph = NULL;
    assert_contains(refusal(f, model), "the model has no graph");
}

static void test_function(void **state)
{
    struct fixture *f = *state;
    struct sdx_onnx_function functions[2];
    functions[0] = message_function(
        &f->arena, "F",
        "in a\nin b\nout s\nout a\nt = Op(a, b) k=$alpha j=$beta m=$none\ns = Relu(t)\n", NULL);
    functions[1] =
        message_function(&f->arena, "G", "in a\nout q\nq, p = f.F(a) alpha=$deep\n", NULL);
    struct sdx_onnx_attr fallback = {
        .name = SDX_STR("beta"), .type = SDX_ATTR_INT, .i = 9, .has_i = true};
    functions[0].attrs.at = &fallback;
    functions[0].attrs.count = 1;
    struct sdx_onnx_graph *g = message_graph(
        &f->arena, "in x\nout y\ny = f.G(z) deep=5\nz, w = f.F(x, x) alpha=4 beta=3\n", NULL);
    const char *text = show(f, message_model(&f->arena, g, functions, 2));
    assert_string_equal(text, "graph 0 \"g\"\n"
                              "  input %x : float[2]\n"
                              "  %F#3/t = Op(%x, %x) {k=4, j=3} : ?\n"
                              "  %z = Relu(%F#3/t) : ?\n"
                              "  %F#2/t = Op(%z, _) {k=5, j=9} : ?\n"
                              "  %y = Relu(%F#2/t) : float[2]\n"
                              "  %G#1/p = Identity(%z) : ?\n"
                              "  %w = Identity(%x) : ?\n"
                              "  output %y : float[2]\n");
}

static void test_function_body(void **state)
{
    struct fixture *f = *state;
    struct sdx_onnx_graph *bodies[1] = {NULL};
    bodies[0] = message_graph(&f->arena, "r = Relu(t)\nout r\n", bodies);
    struct sdx_onnx_function function = message_function(
        &f->arena, "F", "in a\nout s\nt = Abs(a)\ns = If(a) then_branch={0} else_branch={0}\n",
        bodies);
    struct sdx_onnx_graph *g =
        message_graph(&f->arena, "in x\nout z\ny = f.F(x)\nz = f.F(y)\nt = Neg(x)\n", NULL);
    show(f, message_model(&f->arena, g, &function, 1));
    assert_int_equal(f->ir->count_graphs, 5);
    /* The body sees the function's t, not the caller's. */
    const struct sdx_ir_graph *main_graph = &f->ir->graphs[0];
    const struct sdx_ir_node *node = &main_graph->nodes[1];
    assert_int_equal(node->count_captures, 1);
    assert_true(sdx_str_is(main_graph->values[node->captures[0]].name, "F#1/t"));
}

static void test_function_refused(void **state)
{
    static const struct {
        const char *body, *call, *expect;
    } cases[] = {
        {"in a\nout b\nb = f.F(a)\n", "y = f.F(x)", "function \"F\" calls itself"},
        {"in a\nout b\nb = Relu(a)\n", "y = f.F(x, x)", "is given 2 inputs, expected at most 1"},
        {"in a\nout b\nb = Relu(a)\n", "y, z = f.F(x)",
         "has 2 outputs asked of it, expected at most 1"},
        {"in a\nout b\nb = Relu(x)\n", "y = f.F(x)", "value \"x\" is not defined"},
        {"in a\nout b\nc = Relu(a)\n", "y = f.F(x)", "nothing makes output \"b\""},
        {"in a\nout b\nb = Relu(a)\nb = Abs(a)\n", "y = f.F(x)", "value \"y\" is made twice"},
        {"in a\nin b\nout b\n", "y = f.F(x)", "output \"b\" is an input that the call leaves out"},
    };
    struct fixture *f = *state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct sdx_onnx_function function = message_function(&f->arena, "F", cases[i].body, NULL);
        char text[128];
        snprintf(text, sizeof text, "in x\nout y\n%s\n", cases[i].call);
        struct sdx_onnx_graph *g = message_graph(&f->arena, text, NULL);
        assert_contains(refusal(f, message_model(&f->arena, g, &function, 1)), cases[i].expect);
        sdx_context_clear(&f->unit.cx);
    }
}

/* F0 calls F1 twice, F1 calls F2 twice ... : 2^40 nodes are counted, not made. */
static void test_expansion(void **state)
{
    struct fixture *f = *state;
    enum { COUNT = 41, DEEP = SDX_IR_CALL_DEPTH_MAX + 2 };
    static struct sdx_onnx_function functions[DEEP];
    char name[16], text[128];
    for (int i = 0; i < COUNT; i++) {
        snprintf(name, sizeof name, "F%d", i);
        snprintf(text, sizeof text,
                 i + 1 < COUNT ? "in a\nout c\nb = f.F%d(a)\nc = f.F%d(b)\n"
                               : "in a\nout c\nc = Relu(a)\n",
                 i + 1, i + 1);
        functions[i] = message_function(&f->arena, sdx_arena_strndup(&f->arena, name, strlen(name)),
                                        text, NULL);
    }
    struct sdx_onnx_graph *g = message_graph(&f->arena, "in x\nout y\ny = f.F0(x)\n", NULL);
    assert_contains(refusal(f, message_model(&f->arena, g, functions, COUNT)),
                    "more than 4000000 nodes once its functions are inlined");
    sdx_context_clear(&f->unit.cx);
    for (int i = 0; i < DEEP; i++) {
        snprintf(name, sizeof name, "F%d", i);
        snprintf(text, sizeof text,
                 i + 1 < DEEP ? "in a\nout b\nb = f.F%d(a)\n" : "in a\nout b\nb = Relu(a)\n",
                 i + 1);
        functions[i] = message_function(&f->arena, sdx_arena_strndup(&f->arena, name, strlen(name)),
                                        text, NULL);
    }
    assert_contains(refusal(f, message_model(&f->arena, g, functions, DEEP)),
                    "calls of functions nest more than 64 deep");
    sdx_context_clear(&f->unit.cx);
    struct sdx_onnx_graph *near = message_graph(&f->arena, "in x\nout y\ny = f.F2(x)\n", NULL);
    show(f, message_model(&f->arena, near, functions, DEEP));
    assert_int_equal(f->ir->graphs[0].count_nodes, 1);
}

static void test_symbols(void **state)
{
    struct fixture *f = *state;
    struct sdx_onnx_graph *bodies[1] = {NULL};
    bodies[0] = message_graph(&f->arena, "in q\nr = Relu(q)\nout r\n", bodies);
    struct sdx_onnx_graph *g =
        message_graph(&f->arena, "in x\nin z\nout y\ny = Body(x) g={0}\n", bodies);
    struct sdx_onnx_dim batch = {.which = SDX_DIM_PARAM, .param = SDX_STR("batch")};
    g->inputs.at[0].type->dims[0] = batch;
    g->inputs.at[1].type->dims[0] = batch;
    g->outputs.at[0].type->dims[0] = (struct sdx_onnx_dim){.which = SDX_DIM_NONE};
    bodies[0]->inputs.at[0].type->dims[0] = batch;
    const char *text = show(f, message_model(&f->arena, g, NULL, 0));
    assert_contains(text, "  input %x : float[batch]\n");
    assert_contains(text, "  output %y : float[?]\n");
    /* A body's symbol is its own. */
    assert_contains(text, "  input %q : float[batch@1]\n");
    assert_int_equal(f->ir->count_symbols, 2);
    assert_int_equal(f->ir->graphs[0].values[0].type.dims[0],
                     f->ir->graphs[0].values[1].type.dims[0]);
}

/* Every allocation may fail: nothing leaks, nothing crashes. */
static void test_out_of_memory(void **state)
{
    struct fixture *f = *state;
    struct sdx_onnx_graph *bodies[1] = {NULL};
    bodies[0] = message_graph(&f->arena, "r = Relu(t)\nout r\n", bodies);
    struct sdx_onnx_function function = message_function(
        &f->arena, "F", "in a\nout s\nt = Abs(a)\ns = If(a) then_branch={0} else_branch={0}\n",
        bodies);
    struct sdx_onnx_graph *g =
        message_graph(&f->arena, "in x\nout z\nz = f.F(y)\ny = Add(x, w)\ninit w\n", NULL);
    struct sdx_onnx_model *model = message_model(&f->arena, g, &function, 1);
    size_t before = atomic_load(&f->unit.mem.now);
    for (int fail = 0;; fail++) {
        struct sdx_arena arena;
        struct sdx_external ex;
        struct sdx_ir *ir = NULL;
        sdx_arena_init(&arena, &f->unit.mem, SDX_MEM_MODEL);
        sdx_external_init(&ex, &arena, NULL);
        atomic_store(&f->unit.mem.fail_at, fail);
        enum sdx_status status = sdx_ir_import(&f->unit.cx, &arena, &ex, model, &ir);
        atomic_store(&f->unit.mem.fail_at, -1);
        sdx_ir_deinit(ir);
        sdx_external_deinit(&ex);
        sdx_arena_deinit(&arena);
        assert_int_equal(atomic_load(&f->unit.mem.now), before);
        sdx_context_clear(&f->unit.cx);
        if (status == SDX_OK) break;
        assert_int_equal(status, SDX_OUT_OF_MEMORY);
        assert_true(fail < 1000);
    }
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(test_order),         CASE(test_input_with_initializer),
        CASE(test_captures),      CASE(test_shadowing_is_local),
        CASE(test_refused),       CASE(test_function),
        CASE(test_function_body), CASE(test_function_refused),
        CASE(test_expansion),     CASE(test_symbols),
        CASE(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
