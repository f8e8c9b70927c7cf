/* SPDX-License-Identifier: Apache-2.0
 * Building blocks of passes: nodes, order, uses, compaction, attributes, and what the verifier
 * finds. */
#include "unit.h"

#include "base/str.h"
#include "ir/ir.h"

struct fixture {
    struct unit unit;
    struct sdx_arena arena;
    struct sdx_ir ir;
};

static int setup(void **state)
{
    static struct fixture f;
    unit_init(&f.unit);
    sdx_arena_init(&f.arena, &f.unit.mem, SDX_MEM_MODEL);
    f.ir = (struct sdx_ir){.cx = &f.unit.cx, .arena = &f.arena};
    sdx_map_init(&f.ir.symbol_map, &f.unit.mem);
    assert_int_equal(sdx_ir_graph_create(&f.ir, -1, -1), 0);
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    sdx_ir_deinit(&f->ir);
    sdx_arena_deinit(&f->arena);
    unit_deinit(&f->unit);
    return 0;
}

static int32_t add_input(struct fixture *f, int32_t graph, const char *name)
{
    struct sdx_ir_graph *g = &f->ir.graphs[graph];
    int32_t value = sdx_ir_value_create(&f->ir, g, sdx_str(name));
    assert_true(value >= 0);
    g->inputs = g->inputs ? g->inputs : sdx_arena_array(&f->arena, 8, sizeof(int32_t));
    g->inputs[g->count_inputs++] = value;
    g->values[value].flags |= SDX_IR_INPUT;
    return value;
}

static void add_output(struct fixture *f, int32_t graph, int32_t value)
{
    struct sdx_ir_graph *g = &f->ir.graphs[graph];
    g->outputs = g->outputs ? g->outputs : sdx_arena_array(&f->arena, 8, sizeof(int32_t));
    g->outputs[g->count_outputs++] = value;
    g->values[value].flags |= SDX_IR_OUTPUT;
}

/* A node with up to two inputs and one output, which is returned. */
static int32_t add_node(struct fixture *f, int32_t graph, const char *op, int32_t a, int32_t b)
{
    int32_t count = b >= 0 ? 2 : 1;
    struct sdx_ir_node *node =
        sdx_ir_node_create(&f->ir, &f->ir.graphs[graph], SDX_STR(""), sdx_str(op), count, 1, 0);
    assert_non_null(node);
    node->inputs[0] = a;
    if (b >= 0) node->inputs[1] = b;
    return node->outputs[0];
}

/* If(c) with one body Relu(outer) as its only branch. */
static int32_t add_if(struct fixture *f, int32_t graph, int32_t c, int32_t outer, int32_t *body)
{
    struct sdx_ir_node *node =
        sdx_ir_node_create(&f->ir, &f->ir.graphs[graph], SDX_STR(""), SDX_STR("If"), 1, 1, 1);
    assert_non_null(node);
    int32_t out = node->outputs[0];
    node->inputs[0] = c;
    *body = sdx_ir_graph_create(&f->ir, graph, f->ir.graphs[graph].count_nodes - 1);
    node->attrs[0] = (struct sdx_ir_attr){
        .name = SDX_STR("then_branch"), .type = SDX_ATTR_GRAPH, .graph = *body};
    int32_t capture = sdx_ir_value_create(&f->ir, &f->ir.graphs[*body], SDX_STR("k"));
    f->ir.graphs[*body].values[capture].outer = outer;
    add_output(f, *body, add_node(f, *body, "Relu", capture, -1));
    assert_int_equal(sdx_ir_update_captures(&f->unit.cx, &f->ir, graph), SDX_OK);
    return out;
}

static void assert_verified(struct fixture *f)
{
    if (sdx_ir_verify(&f->unit.cx, &f->ir) != SDX_OK) fail_msg("%s", f->unit.cx.error.text);
}

static void test_sort(void **state)
{
    struct fixture *f = *state;
    int32_t x = add_input(f, 0, "x"), body = -1;
    int32_t a = add_node(f, 0, "A", x, -1), b = add_node(f, 0, "B", a, -1);
    int32_t d = add_if(f, 0, x, b, &body);
    int32_t e = add_node(f, 0, "E", b, d);
    int32_t late = add_node(f, 0, "Late", x, -1);
    add_output(f, 0, e);
    struct sdx_ir_graph *g = &f->ir.graphs[0];
    g->nodes[1].inputs[0] = late; /* B now reads what comes last */
    assert_int_equal(sdx_ir_verify(&f->unit.cx, &f->ir), SDX_INTERNAL);
    sdx_context_clear(&f->unit.cx);
    assert_int_equal(sdx_ir_sort(&f->unit.cx, &f->ir, g), SDX_OK);
    assert_verified(f);
    const char *const expect[] = {"A", "Late", "B", "If", "E"};
    for (int i = 0; i < 5; i++)
        assert_true(sdx_str_is(g->nodes[i].op_type, expect[i]));
    assert_int_equal(f->ir.graphs[body].parent_node, 3);
    g->nodes[1].inputs[0] = e; /* Late reads E: a cycle */
    assert_int_equal(sdx_ir_sort(&f->unit.cx, &f->ir, g), SDX_BAD_MODEL);
    assert_contains(f->unit.cx.error.text, "depends on its own output, expected no cycle");
}

static void test_sort_long_chain(void **state)
{
    struct fixture *f = *state;
    enum { COUNT = 200000 };
    int32_t x = add_input(f, 0, "x");
    for (int i = 0; i < COUNT; i++)
        add_node(f, 0, "N", x, -1);
    struct sdx_ir_graph *g = &f->ir.graphs[0];
    for (int i = 0; i + 1 < COUNT; i++)
        g->nodes[i].inputs[0] = g->nodes[i + 1].outputs[0];
    assert_int_equal(sdx_ir_sort(&f->unit.cx, &f->ir, g), SDX_OK);
    assert_verified(f);
    assert_int_equal(g->nodes[0].inputs[0], x);
}

static void test_replace_uses(void **state)
{
    struct fixture *f = *state;
    int32_t x = add_input(f, 0, "x"), body = -1;
    int32_t a = add_node(f, 0, "A", x, -1), b = add_node(f, 0, "B", x, -1);
    int32_t c = add_if(f, 0, a, a, &body);
    add_output(f, 0, a);
    add_output(f, 0, c);
    sdx_ir_replace_uses(&f->ir, 0, a, b);
    assert_verified(f);
    int32_t uses[16];
    sdx_ir_count_uses(&f->ir.graphs[0], uses);
    assert_int_equal(uses[a], 0);
    assert_int_equal(uses[b], 3);
    assert_int_equal(uses[x], 2);
    assert_int_equal(f->ir.graphs[body].values[0].outer, b);
    assert_int_equal(f->ir.graphs[0].outputs[0], b);
    assert_int_equal(f->ir.graphs[0].values[a].flags, 0);
}

static void test_compact(void **state)
{
    struct fixture *f = *state;
    int32_t x = add_input(f, 0, "x"), one = -1, two = -1;
    int32_t a = add_node(f, 0, "A", x, -1);
    int32_t b = add_if(f, 0, x, a, &one);
    int32_t c = add_if(f, 0, x, a, &two);
    add_output(f, 0, c);
    struct sdx_ir_graph *g = &f->ir.graphs[0];
    g->nodes[1].is_dead = true;
    assert_int_equal(g->values[b].producer, 1);
    /* The second body stops reading its capture. */
    f->ir.graphs[two].nodes[0].inputs[0] = -1;
    assert_int_equal(sdx_ir_compact(&f->unit.cx, &f->ir), SDX_OK);
    assert_verified(f);
    assert_int_equal(g->count_nodes, 2);
    assert_int_equal(g->values[b].producer, -1);
    assert_int_equal(g->values[c].producer, 1);
    assert_int_equal(g->nodes[1].count_captures, 0);
    assert_int_equal(f->ir.graphs[one].parent, -1);
    assert_int_equal(f->ir.graphs[one].count_nodes, 0);
    assert_int_equal(f->ir.graphs[two].parent_node, 1);
    assert_int_equal(f->ir.graphs[two].values[0].outer, -1);
}

static void test_symbols(void **state)
{
    struct fixture *f = *state;
    int32_t n = sdx_ir_symbol(&f->ir, SDX_STR("N")), m = sdx_ir_symbol(&f->ir, SDX_STR("M"));
    assert_int_equal(n, -2);
    assert_int_equal(m, -3);
    assert_int_equal(sdx_ir_symbol(&f->ir, SDX_STR("N")), n);
    char buf[64], tiny[8];
    const int64_t dims[] = {n, 3, -1};
    struct sdx_type type = {
        .kind = SDX_KIND_TENSOR, .dtype = SDX_F32, .has_shape = true, .rank = 3, .dims = dims};
    assert_string_equal(sdx_ir_type_describe(&f->ir, &type, buf, sizeof buf), "float[N,3,?]");
    assert_string_equal(sdx_ir_type_describe(&f->ir, &type, tiny, sizeof tiny), "float[N");
    struct sdx_type map = {.kind = SDX_KIND_MAP, .key_dtype = SDX_STRING, .dtype = SDX_I64};
    struct sdx_type seq = {.kind = SDX_KIND_SEQUENCE, .elem = &map};
    assert_string_equal(sdx_ir_type_describe(&f->ir, &seq, buf, sizeof buf),
                        "seq(map(string,int64))");
    assert_string_equal(sdx_ir_type_describe(&f->ir, NULL, buf, sizeof buf), "?");
}

static void test_attributes(void **state)
{
    struct fixture *f = *state;
    struct sdx_ir_node *node =
        sdx_ir_node_create(&f->ir, &f->ir.graphs[0], SDX_STR(""), SDX_STR("X"), 0, 2, 4);
    assert_non_null(node);
    const int64_t ints[] = {4, 5};
    node->attrs[0] = (struct sdx_ir_attr){.name = SDX_STR("i"), .type = SDX_ATTR_INT, .i = 3};
    node->attrs[1] =
        (struct sdx_ir_attr){.name = SDX_STR("s"), .type = SDX_ATTR_STRING, .s = SDX_STR("text")};
    node->attrs[2] =
        (struct sdx_ir_attr){.name = SDX_STR("l"), .type = SDX_ATTR_INTS, .ints = ints, .count = 2};
    node->attrs[3] = (struct sdx_ir_attr){.name = SDX_STR("e"), .type = SDX_ATTR_FLOATS};
    int64_t count = -1;
    assert_int_equal(sdx_ir_attr_int(node, "i", 9), 3);
    assert_int_equal(sdx_ir_attr_int(node, "j", 9), 9);
    assert_true(sdx_str_is(sdx_ir_attr_str(node, "s", "none"), "text"));
    assert_true(sdx_str_is(sdx_ir_attr_str(node, "t", "none"), "none"));
    assert_int_equal(sdx_ir_attr_ints(node, "l", &count)[1], 5);
    assert_int_equal(count, 2);
    assert_non_null(sdx_ir_attr_floats(node, "e", &count)); /* there, but empty */
    assert_int_equal(count, 0);
    assert_null(sdx_ir_attr_strings(node, "z", &count));
    assert_true(sdx_ir_attr_float(node, "z", 0.5f) == 0.5f);
    char buf[64];
    assert_string_equal(sdx_ir_node_describe(&f->ir.graphs[0], node, buf, sizeof buf),
                        "node \"\" (X)");
    f->ir.graphs[0].values[node->outputs[1]].name = SDX_STR("y");
    assert_string_equal(sdx_ir_node_describe(&f->ir.graphs[0], node, buf, sizeof buf),
                        "node of \"y\" (X)");
    node->name = SDX_STR("n");
    assert_string_equal(sdx_ir_node_describe(&f->ir.graphs[0], node, buf, sizeof buf),
                        "node \"n\" (X)");
}

static void assert_fault(struct fixture *f, const char *expect)
{
    assert_int_equal(sdx_ir_verify(&f->unit.cx, &f->ir), SDX_INTERNAL);
    assert_contains(f->unit.cx.error.text, expect);
    sdx_context_clear(&f->unit.cx);
}

static void test_verify(void **state)
{
    struct fixture *f = *state;
    int32_t x = add_input(f, 0, "x"), body = -1;
    int32_t a = add_node(f, 0, "A", x, -1);
    int32_t c = add_if(f, 0, x, a, &body);
    add_output(f, 0, c);
    assert_verified(f);
    struct sdx_ir_graph *g = &f->ir.graphs[0];
    g->nodes[0].inputs[0] = 99;
    assert_fault(f, "node 0 reads value 99");
    g->nodes[0].inputs[0] = c;
    assert_fault(f, "node 0 reads value 2, which node 1 makes later");
    g->nodes[0].inputs[0] = x;
    g->nodes[1].outputs[0] = a;
    assert_fault(f, "value 2 is not output 0 of node 1");
    g->nodes[1].outputs[0] = c;
    g->nodes[1].count_captures = 0;
    assert_fault(f, "does not list capture 1 of graph 1");
    g->nodes[1].count_captures = 1;
    f->ir.graphs[body].values[0].outer = 50;
    assert_fault(f, "does not list capture 50 of graph 1");
    f->ir.graphs[body].values[0].outer = a;
    f->ir.graphs[body].parent_node = 0;
    assert_fault(f, "holds graph 1, which belongs elsewhere");
    f->ir.graphs[body].parent_node = 1;
    g->nodes[0].is_dead = true;
    assert_fault(f, "reads value 1 of a dead node");
    g->nodes[0].is_dead = false;
    g->values[x].flags = 0;
    assert_fault(f, "input 0 is value 0 without the flag");
    g->values[x].flags = SDX_IR_INPUT;
    assert_verified(f);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(test_sort),    CASE(test_sort_long_chain), CASE(test_replace_uses), CASE(test_compact),
        CASE(test_symbols), CASE(test_attributes),      CASE(test_verify),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
