/* SPDX-License-Identifier: Apache-2.0
 * What is given beside the model's file: lengths of dimensions, initializers, files with external
 * data and their folder; and what the API tells of denotations and descriptions. */
#include "unit.h"

#include "make_model.h"

struct fixture {
    struct make m;
    char path[80];
    sdx_context *cx;
    sdx_model *model;
    sdx_session *session;
    sdx_model_options options;
};

static void init_fixture(struct fixture *f)
{
    memset(f, 0, sizeof *f);
    make_init(&f->m);
    f->cx = sdx_context_create(NULL);
    sdx_model_options_init(&f->options);
}

static void close_fixture(struct fixture *f)
{
    sdx_session_destroy(f->session);
    sdx_model_destroy(f->model);
    sdx_context_destroy(f->cx);
    if (f->path[0]) unlink(f->path);
}

static sdx_status open_status(struct fixture *f)
{
    make_write(&f->m, f->path, sizeof f->path);
    sdx_status status = sdx_model_open(f->cx, f->path, &f->options, &f->model);
    if (status == SDX_OK) status = sdx_session_create(f->cx, f->model, NULL, &f->session);
    return status;
}

static void open_fixture(struct fixture *f)
{
    if (open_status(f)) fail_msg("%s", sdx_error(f->cx));
}

static void expect_failure(struct fixture *f, sdx_status expected, const char *text)
{
    assert_int_equal(open_status(f), expected);
    assert_contains(sdx_error(f->cx), text);
    close_fixture(f);
}

/* ---- dimensions ---- */

static void make_dims(struct fixture *f)
{
    init_fixture(f);
    make_input(&f->m, "x", SDX_F32, 2, (int64_t[]){-1, -1});
    make_input(&f->m, "z", SDX_F32, 2, (int64_t[]){4, -1});
    f->m.types[0].dims[1].param = SDX_STR("M");
    f->m.types[1].dims[0].denotation = SDX_STR("DATA_CHANNEL");
    f->m.types[1].dims[1].param = SDX_STR("K");
    f->m.types[1].dims[1].denotation = SDX_STR("DATA_FEATURE");
    f->m.graph.doc = SDX_STR("two sums");
    make_node(&f->m, "Add", "x x -> y");
    make_node(&f->m, "Add", "z z -> w");
    make_output(&f->m, "y", SDX_F32, 2, (int64_t[]){-1, -1});
    f->m.types[2].dims[1].param = SDX_STR("M");
    make_output(&f->m, "w", SDX_F32, -1, NULL);
}

static void test_dims(void **state)
{
    (void)state;
    static const sdx_dim_override dims[] = {
        {.name = "N", .length = 3},
        {.denotation = "DATA_FEATURE", .length = 5},
        {.name = "nowhere", .length = 1},
    };
    struct fixture f;
    make_dims(&f);
    f.options.dims = dims;
    f.options.count_dims = 3;
    open_fixture(&f);
    const sdx_value_info *x = sdx_model_input(f.model, 0), *z = sdx_model_input(f.model, 1);
    assert_int_equal(x->dims[0], 3);
    assert_null(x->dim_names[0]);
    assert_int_equal(x->dims[1], -1);
    assert_string_equal(x->dim_names[1], "M");
    assert_null(x->dim_denotations[0]);
    assert_int_equal(z->dims[1], 5);
    assert_string_equal(z->dim_denotations[0], "DATA_CHANNEL");
    assert_string_equal(sdx_model_output(f.model, 0)->type, "float[3,M]");
    assert_string_equal(sdx_model_output(f.model, 1)->type, "float[4,5]");
    assert_string_equal(sdx_model_get_facts(f.model)->graph_doc, "two sums");
    sdx_tensor *t = NULL, *out[2] = {NULL, NULL};
    assert_int_equal(sdx_tensor_create(f.cx, SDX_F32, 2, (int64_t[]){2, 2}, &t), SDX_OK);
    assert_int_equal(sdx_run(f.session, 1, &(sdx_feed){"x", t}, 2, NULL, out), SDX_BAD_INPUT);
    assert_contains(sdx_error(f.cx), "expected float[3,M]");
    sdx_tensor_destroy(t);
    close_fixture(&f);
}

static void test_dims_refused(void **state)
{
    (void)state;
    static const sdx_dim_override other = {.denotation = "DATA_CHANNEL", .length = 5};
    static const sdx_dim_override both = {.name = "N", .denotation = "A", .length = 5};
    struct fixture f;
    make_dims(&f);
    f.options.dims = &other;
    f.options.count_dims = 1;
    expect_failure(&f, SDX_INVALID_ARGUMENT,
                   "input \"z\": dimension 0, denoted \"DATA_CHANNEL\", is 4, but 5 is given");
    make_dims(&f);
    f.options.dims = &both;
    f.options.count_dims = 1;
    expect_failure(&f, SDX_INVALID_ARGUMENT, "dimension override 0");
}

/* What is told of dimensions is in a plan file too. */
static void test_plan_keeps_facts(void **state)
{
    (void)state;
    struct fixture f, g;
    make_dims(&f);
    init_fixture(&g);
    open_fixture(&f);
    snprintf(g.path, sizeof g.path, "%s.plan", f.path);
    assert_int_equal(sdx_session_save_plan(f.session, g.path), SDX_OK);
    if (sdx_model_open(g.cx, g.path, NULL, &g.model)) fail_msg("%s", sdx_error(g.cx));
    const sdx_value_info *z = sdx_model_input(g.model, 1);
    assert_string_equal(z->dim_denotations[1], "DATA_FEATURE");
    assert_string_equal(z->dim_names[1], "K");
    assert_string_equal(sdx_model_get_facts(g.model)->graph_doc, "two sums");
    sdx_model_destroy(g.model);
    g.options.dims = &(sdx_dim_override){.name = "N", .length = 1};
    g.options.count_dims = 1;
    assert_int_equal(sdx_model_open(g.cx, g.path, &g.options, &g.model), SDX_NOT_SUPPORTED);
    close_fixture(&g);
    close_fixture(&f);
}

/* ---- initializers ---- */

static const float weights[4] = {1, 2, 3, 4};

/* y = x + w + v; v is an input, w an initializer, in a file that is not there when `is_external`.
 */
static void make_sum(struct fixture *f, bool is_external)
{
    static struct sdx_onnx_pair pairs[2];
    init_fixture(f);
    make_input(&f->m, "x", SDX_F32, 1, (int64_t[]){4});
    make_input(&f->m, "v", SDX_F32, 1, (int64_t[]){-1});
    make_initializer(&f->m, "w", SDX_F32, 1, (int64_t[]){4}, weights, sizeof weights);
    if (is_external) {
        pairs[0] = (struct sdx_onnx_pair){.key = SDX_STR("location"), .value = SDX_STR("w.bin")};
        pairs[1] = (struct sdx_onnx_pair){.key = SDX_STR("offset"), .value = SDX_STR("8")};
        f->m.initializers[0].has_raw = false;
        f->m.initializers[0].raw = (struct sdx_str){NULL, 0};
        f->m.initializers[0].external = (struct sdx_onnx_pairs){pairs, 2};
        f->m.initializers[0].data_location = 1;
        f->m.initializers[0].has_location = true;
    }
    make_node(&f->m, "Add", "x w -> a");
    make_node(&f->m, "Add", "a v -> y");
    make_output(&f->m, "y", SDX_F32, 1, (int64_t[]){4});
}

/* Runs with x = 1 and, unless it is a constant, v = 10. */
static void check_sum(struct fixture *f, const float *expected)
{
    static float ones[4] = {1, 1, 1, 1}, tens[4] = {10, 10, 10, 10};
    sdx_tensor *x = NULL, *v = NULL, *y = NULL;
    const int64_t dims[1] = {4};
    assert_int_equal(sdx_tensor_view(f->cx, SDX_F32, 1, dims, ones, &x), SDX_OK);
    assert_int_equal(sdx_tensor_view(f->cx, SDX_F32, 1, dims, tens, &v), SDX_OK);
    const sdx_feed feeds[2] = {{"x", x}, {"v", v}};
    if (sdx_run(f->session, sdx_model_count_inputs(f->model), feeds, 1, NULL, &y))
        fail_msg("%s", sdx_error(f->cx));
    for (int i = 0; i < 4; i++)
        assert_true(sdx_tensor_f64(y, i) == expected[i]);
    sdx_tensor_destroy(x);
    sdx_tensor_destroy(v);
    sdx_tensor_destroy(y);
}

static void test_initializers(void **state)
{
    (void)state;
    for (int round = 0; round < 2; round++) {
        struct fixture f;
        sdx_tensor *w = NULL, *v = NULL;
        float other[4] = {100, 200, 300, 400}, zeros[4] = {0};
        make_sum(&f, round == 1);
        assert_int_equal(sdx_tensor_view(f.cx, SDX_F32, 1, (int64_t[]){4}, other, &w), SDX_OK);
        assert_int_equal(sdx_tensor_view(f.cx, SDX_F32, 1, (int64_t[]){4}, zeros, &v), SDX_OK);
        const sdx_feed given[2] = {{"w", w}, {"v", v}};
        f.options.initializers = given;
        f.options.count_initializers = 1 + round;
        open_fixture(&f);
        assert_int_equal(sdx_model_count_inputs(f.model), 2 - round);
        check_sum(&f, round ? (float[]){101, 201, 301, 401} : (float[]){111, 211, 311, 411});
        close_fixture(&(struct fixture){.session = f.session, .model = f.model});
        f.session = NULL;
        f.model = NULL;
        sdx_tensor_destroy(w);
        sdx_tensor_destroy(v);
        close_fixture(&f);
    }
}

static void expect_refused(const char *name, sdx_dtype dtype, int rank, const int64_t *dims,
                           sdx_status status, const char *text)
{
    struct fixture f;
    sdx_tensor *t = NULL;
    make_sum(&f, false);
    assert_int_equal(sdx_tensor_create(f.cx, dtype, rank, dims, &t), SDX_OK);
    const sdx_feed given = {name, t};
    f.options.initializers = &given;
    f.options.count_initializers = 1;
    assert_int_equal(open_status(&f), status);
    assert_contains(sdx_error(f.cx), text);
    sdx_tensor_destroy(t);
    close_fixture(&f);
}

static void test_initializers_refused(void **state)
{
    (void)state;
    expect_refused("u", SDX_F32, 1, (int64_t[]){4}, SDX_NOT_FOUND,
                   "no initializer or input is named \"u\"");
    expect_refused("w", SDX_F32, 1, (int64_t[]){5}, SDX_INVALID_ARGUMENT,
                   "initializer \"w\": given f32[5], expected f32[4]");
    expect_refused("w", SDX_I32, 1, (int64_t[]){4}, SDX_INVALID_ARGUMENT,
                   "initializer \"w\": given i32[4], expected f32[4]");
    expect_refused("v", SDX_F32, 2, (int64_t[]){1, 4}, SDX_INVALID_ARGUMENT,
                   "initializer \"v\": given f32[1,4], expected f32[?]");
}

/* ---- files ---- */

static void test_files(void **state)
{
    (void)state;
    const float bytes[6] = {0, 0, 5, 6, 7, 8};
    const sdx_file_bytes files[2] = {{"w.bin", bytes, sizeof bytes}, {"w.bin", bytes, 8}};
    struct fixture f;
    make_sum(&f, true);
    f.options.files = files;
    f.options.count_files = 1;
    open_fixture(&f);
    check_sum(&f, (float[]){16, 17, 18, 19});
    close_fixture(&f);
    make_sum(&f, true);
    f.options.files = files;
    f.options.count_files = 2;
    expect_failure(&f, SDX_INVALID_ARGUMENT, "file \"w.bin\" is given twice");
    make_sum(&f, true);
    f.options.files = &files[1];
    f.options.count_files = 1;
    expect_failure(&f, SDX_BAD_MODEL, "external data takes 16 bytes at 8, but \"w.bin\" has 8");
}

static void write_bytes(const char *path, const void *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    fclose(file);
}

static size_t read_bytes(const char *path, char *bytes, size_t room)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t size = fread(bytes, 1, room, file);
    fclose(file);
    return size;
}

/* A model from memory finds its external data in the folder that is given. */
static void test_folder(void **state)
{
    (void)state;
    const float bytes[6] = {0, 0, 5, 6, 7, 8};
    char folder[] = "/tmp/sdx_test_folder_XXXXXX", data[64], model[4096];
    struct fixture f;
    make_sum(&f, true);
    make_write(&f.m, f.path, sizeof f.path);
    size_t size = read_bytes(f.path, model, sizeof model);
    assert_non_null(mkdtemp(folder));
    snprintf(data, sizeof data, "%s/w.bin", folder);
    write_bytes(data, bytes, sizeof bytes);
    assert_int_equal(sdx_model_load(f.cx, model, size, &f.options, &f.model), SDX_BAD_MODEL);
    assert_contains(sdx_error(f.cx), "but a model from memory has no folder");
    f.options.folder = folder;
    if (sdx_model_load(f.cx, model, size, &f.options, &f.model) ||
        sdx_session_create(f.cx, f.model, NULL, &f.session))
        fail_msg("%s", sdx_error(f.cx));
    check_sum(&f, (float[]){16, 17, 18, 19});
    close_fixture(&f);
    unlink(data);
    rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dims),
        cmocka_unit_test(test_dims_refused),
        cmocka_unit_test(test_plan_keeps_facts),
        cmocka_unit_test(test_initializers),
        cmocka_unit_test(test_initializers_refused),
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
