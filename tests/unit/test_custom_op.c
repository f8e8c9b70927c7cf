/* SPDX-License-Identifier: Apache-2.0
 * Operators of the caller's own: types and shapes told or not, attributes, constants, bodies and
 * functions, failures, plans. */
#include <stdatomic.h>

#include "unit.h"

#include "make_model.h"

struct counts {
    int infer, create, run, destroy;
};

struct fixture {
    struct make m;
    char path[80];
    sdx_context *cx;
    sdx_model *model;
    sdx_session *session;
    size_t held; /* by the context alone */
};

static sdx_status open_model(struct fixture *f, int count, const sdx_custom_op *const *ops)
{
    sdx_model_options options;
    sdx_model_options_init(&options);
    options.count_custom_ops = count;
    options.custom_ops = ops;
    return sdx_model_open(f->cx, f->path, &options, &f->model);
}

static void open_fixture(struct fixture *f, int count, const sdx_custom_op *const *ops)
{
    make_write(&f->m, f->path, sizeof f->path);
    f->cx = sdx_context_create(NULL);
    f->held = sdx_memory_now(f->cx);
    if (open_model(f, count, ops) || sdx_session_create(f->cx, f->model, NULL, &f->session))
        fail_msg("%s", sdx_error(f->cx));
}

static void close_fixture(struct fixture *f)
{
    sdx_session_destroy(f->session);
    sdx_model_destroy(f->model);
    assert_int_equal(sdx_memory_now(f->cx), f->held);
    sdx_context_destroy(f->cx);
    unlink(f->path);
}

static sdx_status run_floats(struct fixture *f, int rank, const int64_t *dims, float *data,
                             sdx_tensor **y)
{
    sdx_tensor *x = NULL;
    *y = NULL;
    if (sdx_tensor_view(f->cx, SDX_F32, rank, dims, data, &x)) fail_msg("%s", sdx_error(f->cx));
    sdx_status status = sdx_run(f->session, 1, &(sdx_feed){"x", x}, 1, NULL, y);
    sdx_tensor_destroy(x);
    return status;
}

static void check_floats(struct fixture *f, int count, float *data, int count_y, const float *y)
{
    sdx_tensor *found = NULL;
    if (run_floats(f, 1, (int64_t[]){count}, data, &found)) fail_msg("%s", sdx_error(f->cx));
    assert_int_equal(sdx_tensor_count(found), count_y);
    for (int i = 0; i < count_y; i++)
        assert_true(sdx_tensor_f64(found, i) == y[i]);
    sdx_tensor_destroy(found);
}

/* ---- Twice: the shape of its input ---- */

static sdx_status infer_same(sdx_node *node, void *user)
{
    ((struct counts *)user)->infer++;
    return sdx_node_set_output(node, 0, sdx_node_input(node, 0));
}

static sdx_status create_counted(const sdx_node *node, void **state, void *user)
{
    struct counts *counts = user;
    assert_null(*state);
    assert_contains(sdx_node_name(node), "Twice");
    counts->create++;
    *state = counts;
    return SDX_OK;
}

static void destroy_counted(void *state, void *user)
{
    assert_ptr_equal(state, user);
    ((struct counts *)user)->destroy++;
}

static sdx_status run_twice(sdx_call *call, void *state, void *user)
{
    const sdx_tensor *in = sdx_call_input(call, 0);
    sdx_tensor *out = NULL;
    if (user) {
        assert_ptr_equal(state, user);
        ((struct counts *)user)->run++;
    }
    sdx_status status =
        sdx_call_make_output(call, 0, SDX_F32, sdx_tensor_rank(in), sdx_tensor_dims(in), &out);
    for (int64_t i = 0; status == SDX_OK && i < sdx_tensor_count(in); i++)
        ((float *)sdx_tensor_data(out))[i] = 2 * ((const float *)sdx_tensor_const_data(in))[i];
    return status;
}

static sdx_status run_twice_plainly(sdx_call *call, void *state, void *user)
{
    (void)state, (void)user;
    return run_twice(call, NULL, NULL);
}

static sdx_custom_op twice_op(struct counts *counts)
{
    return (sdx_custom_op){.size = sizeof(sdx_custom_op),
                           .domain = "mine",
                           .name = "Twice",
                           .inputs_min = 1,
                           .inputs_max = 1,
                           .outputs_min = 1,
                           .outputs_max = 1,
                           .infer = infer_same,
                           .create = create_counted,
                           .run = run_twice,
                           .destroy = destroy_counted,
                           .user = counts};
}

static struct sdx_onnx_node *make_mine(struct make *m, const char *op, const char *names)
{
    struct sdx_onnx_node *node = make_node(m, op, names);
    node->domain = SDX_STR("mine");
    return node;
}

/* y = relu(twice(x)) */
static void make_twice(struct fixture *f, const char *domain)
{
    make_init(&f->m);
    make_input(&f->m, "x", SDX_F32, 1, (int64_t[]){-1});
    make_node(&f->m, "Twice", "x -> a")->domain = sdx_str(domain);
    make_node(&f->m, "Relu", "a -> y");
    make_output(&f->m, "y", SDX_F32, 1, (int64_t[]){-1});
}

static void test_same_shape(void **state)
{
    (void)state;
    struct counts counts = {0};
    sdx_custom_op op = twice_op(&counts);
    struct fixture f = {0};
    make_twice(&f, "mine");
    open_fixture(&f, 1, &(const sdx_custom_op *){&op});
    assert_int_equal(counts.create, 1);
    check_floats(&f, 3, (float[]){1, -2, 3}, 3, (float[]){2, 0, 6});
    check_floats(&f, 2, (float[]){5, 7}, 2, (float[]){10, 14});
    int infer = counts.infer;
    check_floats(&f, 3, (float[]){0, 1, 2}, 3, (float[]){0, 2, 4});
    assert_int_equal(counts.infer, infer); /* that plan was there */
    assert_int_equal(counts.run, 3);
    const sdx_op_use *use = sdx_model_op_use(f.model, 1);
    assert_string_equal(use->name, "Twice");
    assert_null(use->unsupported);
    sdx_session *other = NULL;
    assert_int_equal(sdx_session_create(f.cx, f.model, NULL, &other), SDX_OK);
    assert_int_equal(counts.create, 2);
    sdx_session_destroy(other);
    assert_int_equal(counts.destroy, 1);
    close_fixture(&f);
    assert_int_equal(counts.destroy, 2);
}

/* An operator that the library has too is the caller's, for the passes too. */
static void test_goes_before(void **state)
{
    (void)state;
    sdx_custom_op op = twice_op(NULL);
    op.domain = "ai.onnx";
    op.name = "Relu";
    op.infer = NULL;
    op.create = NULL;
    op.destroy = NULL;
    struct fixture f = {0};
    make_init(&f.m);
    make_input(&f.m, "x", SDX_F32, 1, (int64_t[]){-1});
    make_node(&f.m, "Relu", "x -> a");
    make_node(&f.m, "Relu", "a -> y");
    make_output(&f.m, "y", SDX_F32, 1, (int64_t[]){-1});
    open_fixture(&f, 1, &(const sdx_custom_op *){&op});
    check_floats(&f, 2, (float[]){-1, 2}, 2, (float[]){-4, 8});
    close_fixture(&f);
}

/* ---- Keep: a shape that depends on data ---- */

static sdx_status infer_list(sdx_node *node, void *user)
{
    (void)user;
    const sdx_value_info *in = sdx_node_input(node, 0);
    if (in->dtype != SDX_F32) return sdx_node_fail(node, SDX_OK, "floats are wanted");
    return sdx_node_set_output(
        node, 0,
        &(sdx_value_info){
            .kind = SDX_KIND_TENSOR, .dtype = SDX_F32, .rank = 1, .dims = &(int64_t){-1}});
}

static sdx_status run_keep(sdx_call *call, void *state, void *user)
{
    const sdx_tensor *in = sdx_call_input(call, 0);
    const float *from = sdx_tensor_const_data(in);
    int64_t count = 0;
    sdx_tensor *out = NULL;
    (void)state, (void)user;
    for (int64_t i = 0; i < sdx_tensor_count(in); i++)
        count += from[i] > 0;
    if (sdx_call_make_output(call, 0, SDX_F32, 1, &count, &out)) return SDX_RUN_FAILED;
    float *to = sdx_tensor_data(out);
    for (int64_t i = 0; i < sdx_tensor_count(in); i++)
        if (from[i] > 0) *to++ = from[i];
    return SDX_OK;
}

static const sdx_custom_op keep_op = {.size = sizeof keep_op,
                                      .domain = "mine",
                                      .name = "Keep",
                                      .inputs_min = 1,
                                      .inputs_max = 1,
                                      .outputs_min = 1,
                                      .outputs_max = 1,
                                      .infer = infer_list,
                                      .run = run_keep};

static void test_shape_from_data(void **state)
{
    (void)state;
    sdx_custom_op untold = keep_op;
    untold.infer = NULL;
    const sdx_custom_op *variants[] = {&keep_op, &untold};
    for (int i = 0; i < 2; i++) {
        struct fixture f = {0};
        make_init(&f.m);
        make_input(&f.m, "x", SDX_F32, 1, (int64_t[]){-1});
        make_mine(&f.m, "Keep", "x -> a");
        make_node(&f.m, "Add", "a a -> y");
        make_output(&f.m, "y", SDX_F32, 1, (int64_t[]){-1});
        open_fixture(&f, 1, &variants[i]);
        check_floats(&f, 3, (float[]){1, -2, 3}, 2, (float[]){2, 6});
        check_floats(&f, 3, (float[]){1, 2, 3}, 3, (float[]){2, 4, 6});
        check_floats(&f, 3, (float[]){-1, -2, -3}, 0, NULL);
        check_floats(&f, 3, (float[]){-1, -2, 3}, 1, (float[]){6});
        close_fixture(&f);
    }
}

/* ---- Fill: a shape from the elements of an input ---- */

static sdx_status infer_fill(sdx_node *node, void *user)
{
    (void)user;
    const sdx_tensor *shape = sdx_node_value(node, 0);
    sdx_value_info type = {.kind = SDX_KIND_TENSOR, .dtype = SDX_F32, .rank = -1};
    if (shape) {
        type.rank = (int)sdx_tensor_count(shape);
        type.dims = sdx_tensor_const_data(shape);
    }
    return sdx_node_set_output(node, 0, &type);
}

static void write_index(int64_t i, void *user)
{
    ((float *)user)[i] = (float)i;
}

static sdx_status run_fill(sdx_call *call, void *state, void *user)
{
    const sdx_tensor *shape = sdx_call_input(call, 0);
    sdx_tensor *out = NULL;
    (void)state, (void)user;
    sdx_status status = sdx_call_make_output(call, 0, SDX_F32, (int)sdx_tensor_count(shape),
                                             sdx_tensor_const_data(shape), &out);
    assert_true(sdx_call_threads(call) >= 1);
    assert_false(sdx_call_is_cancelled(call));
    if (status == SDX_OK)
        sdx_call_parallel(call, sdx_tensor_count(out), write_index, sdx_tensor_data(out));
    return status;
}

static void test_shape_from_elements(void **state)
{
    (void)state;
    sdx_custom_op op = keep_op;
    op.name = "Fill";
    op.infer = infer_fill;
    op.run = run_fill;
    struct fixture f = {0};
    make_init(&f.m);
    make_input(&f.m, "x", SDX_F32, 2, (int64_t[]){-1, -1});
    make_node(&f.m, "NonZero", "x -> i");
    make_node(&f.m, "Shape", "i -> s");
    make_mine(&f.m, "Fill", "s -> y");
    make_output(&f.m, "y", SDX_F32, -1, NULL);
    open_fixture(&f, 1, &(const sdx_custom_op *){&op});
    for (int n = 1; n <= 4; n++) {
        float data[4] = {0};
        sdx_tensor *y = NULL;
        for (int i = 0; i < n; i++)
            data[i] = 1;
        if (run_floats(&f, 2, (int64_t[]){2, 2}, data, &y)) fail_msg("%s", sdx_error(f.cx));
        assert_int_equal(sdx_tensor_rank(y), 2);
        assert_int_equal(sdx_tensor_dims(y)[0], 2);
        assert_int_equal(sdx_tensor_dims(y)[1], n);
        for (int i = 0; i < 2 * n; i++)
            assert_int_equal(sdx_tensor_i64(y, i), i);
        sdx_tensor_destroy(y);
    }
    close_fixture(&f);
}

/* ---- Look: what a node says ---- */

static void check_lists(const sdx_node *node)
{
    const sdx_attr *a = sdx_node_attr(node, "floats");
    assert_int_equal(a->type, SDX_ATTR_FLOATS);
    assert_int_equal(a->count, 2);
    assert_true(a->floats[1] == 2.5f);
    a = sdx_node_attr(node, "ints");
    assert_int_equal(a->type, SDX_ATTR_INTS);
    assert_int_equal(a->count, 3);
    assert_int_equal(a->ints[2], -7);
    a = sdx_node_attr(node, "strings");
    assert_int_equal(a->type, SDX_ATTR_STRINGS);
    assert_int_equal(a->count, 2);
    assert_string_equal(a->strings[1], "two");
    assert_int_equal(a->lengths[1], 3);
    a = sdx_node_attr(node, "tensor");
    assert_int_equal(a->type, SDX_ATTR_TENSOR);
    assert_int_equal(sdx_tensor_i64(a->tensors[0], 1), 9);
}

static sdx_status create_looks(const sdx_node *node, void **state, void *user)
{
    (void)state;
    assert_string_equal(sdx_node_domain(node), "mine");
    assert_string_equal(sdx_node_op(node), "Look");
    assert_int_equal(sdx_node_count_inputs(node), 3);
    assert_int_equal(sdx_node_count_outputs(node), 3);
    assert_string_equal(sdx_node_input(node, 0)->name, "x");
    assert_int_equal(sdx_node_input(node, 0)->dtype, SDX_F32);
    assert_int_equal(sdx_node_input(node, 0)->dims[0], -1);
    assert_string_equal(sdx_node_input(node, 0)->dim_names[0], "N");
    assert_string_equal(sdx_node_input(node, 0)->type, "float[N]");
    assert_null(sdx_node_input(node, 1));
    assert_null(sdx_node_input(node, 3));
    assert_null(sdx_node_output(node, 1));
    assert_string_equal(sdx_node_output(node, 2)->type, "string[N]");
    assert_null(sdx_node_value(node, 0));
    assert_null(sdx_node_value(node, 1));
    assert_int_equal(sdx_tensor_i64(sdx_node_value(node, 2), 2), 33);
    assert_int_equal(sdx_node_attr(node, "int")->i, -5);
    assert_true(sdx_node_attr(node, "float")->f == 0.5f);
    assert_int_equal(sdx_node_attr(node, "string")->lengths[0], 5);
    assert_string_equal(sdx_node_attr(node, "string")->strings[0], "hello");
    assert_null(sdx_node_attr(node, "none"));
    assert_string_equal(sdx_node_attr_at(node, 0)->name, "int");
    assert_null(sdx_node_attr_at(node, 7));
    check_lists(node);
    *(int *)user += 1;
    return SDX_OK;
}

static sdx_status infer_looks(sdx_node *node, void *user)
{
    (void)user;
    sdx_value_info texts = *sdx_node_input(node, 0);
    texts.dtype = SDX_STRING;
    if (sdx_node_set_output(node, 0, sdx_node_input(node, 0)) ||
        sdx_node_set_output(node, 1, &texts))
        return SDX_INTERNAL;
    return sdx_node_set_output(node, 2, &texts);
}

static sdx_status run_looks(sdx_call *call, void *state, void *user)
{
    const sdx_tensor *in = sdx_call_input(call, 0);
    sdx_tensor *out = NULL, *texts = NULL;
    const char *words[2] = {"first", "second"};
    (void)state, (void)user;
    assert_null(sdx_call_input(call, 1));
    assert_int_equal(sdx_tensor_i64(sdx_call_input(call, 2), 0), 11);
    assert_string_equal(sdx_node_op(sdx_call_node(call)), "Look");
    if (sdx_call_make_output(call, 0, SDX_F32, 1, sdx_tensor_dims(in), &out)) return SDX_INTERNAL;
    memcpy(sdx_tensor_data(out), sdx_tensor_const_data(in), sdx_tensor_bytes(in));
    if (sdx_call_make_output(call, 1, SDX_F32, 1, sdx_tensor_dims(in), &out)) return SDX_INTERNAL;
    assert_null(out); /* left out */
    sdx_status status = sdx_tensor_create_strings(sdx_call_context(call), 1, sdx_tensor_dims(in),
                                                  words, NULL, &texts);
    if (status == SDX_OK) status = sdx_call_set_output(call, 2, texts);
    sdx_tensor_destroy(texts);
    return status;
}

static void add_attrs(struct sdx_onnx_node *node, struct sdx_onnx_attr *attrs)
{
    static float floats[2] = {1, 2.5f};
    static int64_t ints[3] = {5, 6, -7}, values[2] = {8, 9}, dims[1] = {2};
    static struct sdx_str strings[2];
    static struct sdx_onnx_tensor tensor;
    strings[0] = SDX_STR("one");
    strings[1] = SDX_STR("two");
    tensor = (struct sdx_onnx_tensor){.data_type = SDX_I64,
                                      .has_raw = true,
                                      .dims = {dims, 1},
                                      .raw = {(const char *)values, sizeof values}};
    const struct sdx_onnx_attr all[7] = {
        {.name = SDX_STR("int"), .type = SDX_ATTR_INT, .has_i = true, .i = -5},
        {.name = SDX_STR("float"), .type = SDX_ATTR_FLOAT, .has_f = true, .f = 0.5f},
        {.name = SDX_STR("string"), .type = SDX_ATTR_STRING, .has_s = true, .s = SDX_STR("hello")},
        {.name = SDX_STR("floats"), .type = SDX_ATTR_FLOATS, .floats = floats, .count_floats = 2},
        {.name = SDX_STR("ints"), .type = SDX_ATTR_INTS, .ints = {ints, 3}},
        {.name = SDX_STR("strings"), .type = SDX_ATTR_STRINGS, .strings = {strings, 2}},
        {.name = SDX_STR("tensor"), .type = SDX_ATTR_TENSOR, .t = &tensor}};
    memcpy(attrs, all, sizeof all);
    for (int i = 0; i < 7; i++)
        attrs[i].has_type = true;
    node->attrs.at = attrs;
    node->attrs.count = 7;
}

static void test_accessors(void **state)
{
    (void)state;
    int created = 0;
    sdx_custom_op op = keep_op;
    op.name = "Look";
    op.inputs_max = op.outputs_max = 3;
    op.inputs_optional = op.outputs_optional = 2;
    op.infer = infer_looks;
    op.create = create_looks;
    op.run = run_looks;
    op.user = &created;
    struct fixture f = {0};
    struct sdx_onnx_attr attrs[7];
    static const int32_t constant[3] = {11, 22, 33};
    make_init(&f.m);
    make_input(&f.m, "x", SDX_F32, 1, (int64_t[]){-1});
    make_initializer(&f.m, "c", SDX_I32, 1, (int64_t[]){3}, constant, sizeof constant);
    add_attrs(make_mine(&f.m, "Look", "x _ c -> y _ z"), attrs);
    make_output(&f.m, "y", SDX_F32, 1, (int64_t[]){-1});
    make_output(&f.m, "z", SDX_STRING, 1, (int64_t[]){-1});
    open_fixture(&f, 1, &(const sdx_custom_op *){&op});
    assert_int_equal(created, 1);
    sdx_tensor *x = NULL, *out[2] = {NULL, NULL};
    size_t length;
    assert_int_equal(sdx_tensor_view(f.cx, SDX_F32, 1, (int64_t[]){2}, (float[]){3, 4}, &x),
                     SDX_OK);
    if (sdx_run(f.session, 1, &(sdx_feed){"x", x}, 2, NULL, out)) fail_msg("%s", sdx_error(f.cx));
    assert_true(sdx_tensor_f64(out[0], 1) == 4);
    assert_memory_equal(sdx_tensor_string(out[1], 1, &length), "second", 6);
    sdx_tensor_destroy(x);
    sdx_tensor_destroy(out[0]);
    sdx_tensor_destroy(out[1]);
    close_fixture(&f);
}

/* ---- bodies and functions ---- */

static void test_in_body(void **state)
{
    (void)state;
    struct counts counts = {0};
    sdx_custom_op op = twice_op(&counts);
    struct fixture f = {0};
    static const int64_t trips = 3;
    static const bool go_on = true;
    struct make body;
    make_init(&body);
    make_input(&body, "i", SDX_I64, 0, NULL);
    make_input(&body, "c", SDX_BOOL, 0, NULL);
    make_input(&body, "a", SDX_F32, 1, (int64_t[]){-1});
    make_node(&body, "Identity", "c -> c2");
    make_mine(&body, "Twice", "a -> a2");
    make_output(&body, "c2", SDX_BOOL, 0, NULL);
    make_output(&body, "a2", SDX_F32, 1, (int64_t[]){-1});
    make_init(&f.m);
    make_input(&f.m, "x", SDX_F32, 1, (int64_t[]){-1});
    make_initializer(&f.m, "n", SDX_I64, 0, NULL, &trips, sizeof trips);
    make_initializer(&f.m, "g", SDX_BOOL, 0, NULL, &go_on, sizeof go_on);
    make_attr_graph(make_node(&f.m, "Loop", "n g x -> y"), "body", &body);
    make_output(&f.m, "y", SDX_F32, 1, (int64_t[]){-1});
    open_fixture(&f, 1, &(const sdx_custom_op *){&op});
    check_floats(&f, 2, (float[]){1, -1}, 2, (float[]){8, -8});
    assert_int_equal(counts.run, 3);
    assert_int_equal(counts.create, 1);
    close_fixture(&f);
}

static void test_in_function(void **state)
{
    (void)state;
    struct counts counts = {0};
    sdx_custom_op op = twice_op(&counts);
    struct fixture f = {0};
    struct make body;
    struct sdx_str in[1] = {SDX_STR("p")}, out[1] = {SDX_STR("q")};
    struct sdx_onnx_opset opset = {.version = 17};
    make_init(&body);
    make_mine(&body, "Twice", "p -> q");
    struct sdx_onnx_function function = {.domain = SDX_STR("local"),
                                         .name = SDX_STR("Call"),
                                         .inputs = {in, 1},
                                         .outputs = {out, 1},
                                         .nodes = body.graph.nodes,
                                         .opsets = {&opset, 1}};
    make_init(&f.m);
    make_input(&f.m, "x", SDX_F32, 1, (int64_t[]){-1});
    make_node(&f.m, "Call", "x -> a")->domain = SDX_STR("local");
    make_node(&f.m, "Call", "a -> y")->domain = SDX_STR("local");
    make_output(&f.m, "y", SDX_F32, 1, (int64_t[]){-1});
    f.m.functions = &function;
    f.m.count_functions = 1;
    open_fixture(&f, 1, &(const sdx_custom_op *){&op});
    check_floats(&f, 2, (float[]){1, -1}, 2, (float[]){4, -4});
    assert_int_equal(counts.create, 2);
    close_fixture(&f);
}

/* ---- failures ---- */

static sdx_status run_fails(sdx_call *call, void *state, void *user)
{
    (void)state, (void)user;
    return sdx_call_fail(call, SDX_OK, "no such luck");
}

static sdx_status run_silent(sdx_call *call, void *state, void *user)
{
    (void)call, (void)state, (void)user;
    return SDX_OK;
}

static sdx_status run_short(sdx_call *call, void *state, void *user)
{
    sdx_tensor *out;
    (void)state, (void)user;
    return sdx_call_make_output(call, 0, SDX_F32, 1, &(int64_t){1}, &out);
}

static sdx_status create_fails(const sdx_node *node, void **state, void *user)
{
    (void)state, (void)user;
    return sdx_node_fail(node, SDX_NOT_FOUND, "no table");
}

static void test_run_fails(void **state)
{
    (void)state;
    static const struct {
        sdx_status (*run)(sdx_call *call, void *state, void *user);
        const char *text;
    } cases[] = {
        {run_fails, "node \"Twice\" (Twice: x f32[2]): no such luck"},
        {run_silent, "node \"Twice\" (Twice: x f32[2]): the operator did not make output 0"},
        {run_short, "output 0 is made f32[1], infer said f32[2]"},
    };
    for (int i = 0; i < SDX_COUNT_OF(cases); i++) {
        struct counts counts = {0};
        sdx_custom_op op = twice_op(&counts);
        struct fixture f = {0};
        sdx_tensor *y = NULL;
        op.run = cases[i].run;
        make_twice(&f, "mine");
        open_fixture(&f, 1, &(const sdx_custom_op *){&op});
        assert_int_equal(run_floats(&f, 1, (int64_t[]){2}, (float[]){1, 2}, &y), SDX_RUN_FAILED);
        assert_contains(sdx_error(f.cx), cases[i].text);
        close_fixture(&f);
    }
}

static void expect_fault(struct fixture *f, sdx_status expected, const char *text, int count,
                         const sdx_custom_op *const *ops)
{
    make_write(&f->m, f->path, sizeof f->path);
    f->cx = sdx_context_create(NULL);
    f->held = sdx_memory_now(f->cx);
    sdx_status status = open_model(f, count, ops);
    if (status == SDX_OK) status = sdx_session_create(f->cx, f->model, NULL, &f->session);
    assert_int_equal(status, expected);
    assert_contains(sdx_error(f->cx), text);
    close_fixture(f);
}

static void test_open_fails(void **state)
{
    (void)state;
    struct counts counts = {0};
    sdx_custom_op op = twice_op(&counts), same = op;
    const sdx_custom_op *both[] = {&op, &same}, *one[] = {&op};
    struct fixture f = {0};
    make_twice(&f, "other");
    expect_fault(&f, SDX_BAD_MODEL, "domain \"other\" is not imported", 1, one);
    make_twice(&f, "mine");
    expect_fault(&f, SDX_INVALID_ARGUMENT, "custom operator \"Twice\"", 2, both);
    op.inputs_min = op.inputs_max = 2;
    make_twice(&f, "mine");
    expect_fault(&f, SDX_BAD_MODEL, "has 1 inputs, expected 2", 1, one);
    op = same;
    op.create = create_fails;
    make_twice(&f, "mine");
    expect_fault(&f, SDX_NOT_FOUND, "node \"Twice\" (Twice): no table", 1, one);
    assert_int_equal(counts.destroy, 0);
    op = same;
    op.run = NULL;
    make_twice(&f, "mine");
    expect_fault(&f, SDX_INVALID_ARGUMENT, "run is NULL", 1, one);
    make_init(&f.m);
    make_input(&f.m, "x", SDX_I64, 1, (int64_t[]){-1});
    make_mine(&f.m, "Keep", "x -> y");
    make_output(&f.m, "y", SDX_F32, 1, (int64_t[]){-1});
    expect_fault(&f, SDX_BAD_MODEL, "node \"Keep\" (Keep): floats are wanted", 1,
                 &(const sdx_custom_op *){&keep_op});
}

/* ---- files that are written ---- */

/* The optimised model names the operator as the file did, also one that the library has too. */
static void test_saved_model(void **state)
{
    (void)state;
    struct counts counts = {0};
    sdx_custom_op op = twice_op(&counts);
    const sdx_custom_op *ops[] = {&op};
    static const char *const domains[] = {"mine", ""};
    for (int i = 0; i < 2; i++) {
        struct fixture f = {0}, g = {0};
        op.domain = domains[i];
        op.name = i ? "Relu" : "Twice";
        op.create = NULL;
        op.destroy = NULL;
        make_twice(&f, domains[i]);
        f.m.nodes[0].op_type = sdx_str(op.name);
        f.m.nodes[1].op_type = SDX_STR("Abs");
        op.run = run_twice_plainly;
        open_fixture(&f, 1, ops);
        snprintf(g.path, sizeof g.path, "%s.saved", f.path);
        if (sdx_session_save_model(f.session, g.path)) fail_msg("%s", sdx_error(f.cx));
        close_fixture(&f);
        g.cx = sdx_context_create(NULL);
        g.held = sdx_memory_now(g.cx);
        if (open_model(&g, 1, ops) || sdx_session_create(g.cx, g.model, NULL, &g.session))
            fail_msg("%s", sdx_error(g.cx));
        check_floats(&g, 2, (float[]){1, -1}, 2, (float[]){2, 2});
        close_fixture(&g);
    }
}

static void test_plan_file(void **state)
{
    (void)state;
    struct counts counts = {0};
    sdx_custom_op op = twice_op(&counts);
    const sdx_custom_op *ops[] = {&op};
    struct fixture f = {0}, g = {0};
    make_twice(&f, "mine");
    open_fixture(&f, 1, ops);
    snprintf(g.path, sizeof g.path, "%s.plan", f.path);
    if (sdx_session_save_plan(f.session, g.path)) fail_msg("%s", sdx_error(f.cx));
    close_fixture(&f);
    g.cx = sdx_context_create(NULL);
    g.held = sdx_memory_now(g.cx);
    assert_int_equal(open_model(&g, 0, NULL), SDX_NOT_SUPPORTED);
    assert_contains(sdx_error(g.cx), "mine.Twice");
    if (open_model(&g, 1, ops) || sdx_session_create(g.cx, g.model, NULL, &g.session))
        fail_msg("%s", sdx_error(g.cx));
    check_floats(&g, 2, (float[]){1, -1}, 2, (float[]){2, 0});
    close_fixture(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_shape),      cmocka_unit_test(test_goes_before),
        cmocka_unit_test(test_shape_from_data), cmocka_unit_test(test_shape_from_elements),
        cmocka_unit_test(test_accessors),       cmocka_unit_test(test_in_body),
        cmocka_unit_test(test_in_function),     cmocka_unit_test(test_run_fails),
        cmocka_unit_test(test_open_fails),      cmocka_unit_test(test_saved_model),
        cmocka_unit_test(test_plan_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
