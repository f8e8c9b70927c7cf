/* SPDX-License-Identifier: Apache-2.0
 * Sessions through the public interface: results, views, shapes that depend on data, bodies, plans
 * kept, memory, errors, cancelling, threads. */
#include <pthread.h>
#include <time.h>

#include "unit.h"

#include "base/mem.h"
#include "base/thread_pool.h"
#include "make_model.h"
#include "run/session.h"

struct fixture {
    char path[80];
    sdx_context *cx;
    sdx_model *model;
    sdx_session *session;
};

static void open_fixture(struct fixture *f, struct make *m, const sdx_session_options *options)
{
    make_write(m, f->path, sizeof f->path);
    f->cx = sdx_context_create(NULL);
    assert_non_null(f->cx);
    if (sdx_model_open(f->cx, f->path, NULL, &f->model) ||
        sdx_session_create(f->cx, f->model, options, &f->session))
        fail_msg("%s", sdx_error(f->cx));
}

static void close_fixture(struct fixture *f)
{
    sdx_session_destroy(f->session);
    sdx_model_destroy(f->model);
    sdx_context_destroy(f->cx);
    unlink(f->path);
}

static sdx_tensor *floats(struct fixture *f, int rank, const int64_t *dims, float *data)
{
    sdx_tensor *t = NULL;
    if (sdx_tensor_view(f->cx, SDX_F32, rank, dims, data, &t)) fail_msg("%s", sdx_error(f->cx));
    return t;
}

static sdx_tensor *run_one(struct fixture *f, sdx_tensor *x)
{
    sdx_tensor *y = NULL;
    if (sdx_run(f->session, 1, &(sdx_feed){"x", x}, 1, NULL, &y)) fail_msg("%s", sdx_error(f->cx));
    return y;
}

/* y = reshape(relu(x) + x, [N, 2]) */
static void make_views(struct make *m)
{
    static const int64_t target[2] = {-1, 2};
    make_init(m);
    make_input(m, "x", SDX_F32, 2, (int64_t[]){-1, 4});
    make_initializer(m, "target", SDX_I64, 1, (int64_t[]){2}, target, sizeof target);
    make_node(m, "Relu", "x -> a");
    make_node(m, "Add", "a x -> b");
    make_node(m, "Reshape", "b target -> y");
    make_output(m, "y", SDX_F32, -1, NULL);
}

static void test_views_and_shapes(void **state)
{
    (void)state;
    struct make m;
    make_views(&m);
    struct fixture f = {0};
    open_fixture(&f, &m, NULL);
    float data[12];
    for (int i = 0; i < 12; i++)
        data[i] = (float)(i - 5);
    for (int64_t n = 1; n <= 3; n++) {
        sdx_tensor *x = floats(&f, 2, (int64_t[]){n, 4}, data), *y = run_one(&f, x);
        assert_int_equal(sdx_tensor_rank(y), 2);
        assert_int_equal(sdx_tensor_dims(y)[0], 2 * n);
        for (int i = 0; i < 4 * n; i++)
            assert_true(sdx_tensor_f64(y, i) == (data[i] > 0 ? 2 * data[i] : data[i]));
        sdx_tensor_destroy(x);
        sdx_tensor_destroy(y);
    }
    close_fixture(&f);
}

static void test_bound_output(void **state)
{
    (void)state;
    struct make m;
    make_views(&m);
    struct fixture f = {0};
    open_fixture(&f, &m, NULL);
    float data[4] = {-1, 2, -3, 4}, result[4] = {0};
    sdx_tensor *x = floats(&f, 2, (int64_t[]){1, 4}, data),
               *y = floats(&f, 2, (int64_t[]){2, 2}, result), *bound = y;
    assert_int_equal(sdx_run(f.session, 1, &(sdx_feed){"x", x}, 1, &(const char *){"y"}, &bound),
                     SDX_OK);
    assert_ptr_equal(bound, y);
    assert_true(result[0] == -1 && result[1] == 4 && result[2] == -3 && result[3] == 8);
    sdx_tensor *wrong = floats(&f, 1, (int64_t[]){3}, result), *keep = wrong;
    assert_int_equal(sdx_run(f.session, 1, &(sdx_feed){"x", x}, 1, NULL, &wrong), SDX_BAD_INPUT);
    assert_ptr_equal(wrong, keep);
    sdx_tensor_destroy(keep);
    sdx_tensor_destroy(x);
    sdx_tensor_destroy(y);
    close_fixture(&f);
}

/* A model may list an output twice; its own names in its own order are all of them. */
static void test_output_listed_twice(void **state)
{
    (void)state;
    struct make m;
    make_init(&m);
    make_input(&m, "x", SDX_F32, 1, (int64_t[]){2});
    make_node(&m, "Relu", "x -> y");
    make_node(&m, "Neg", "x -> z");
    make_output(&m, "y", SDX_F32, 1, (int64_t[]){2});
    make_output(&m, "z", SDX_F32, 1, (int64_t[]){2});
    make_output(&m, "y", SDX_F32, 1, (int64_t[]){2});
    struct fixture f = {0};
    open_fixture(&f, &m, NULL);
    sdx_tensor *x = floats(&f, 1, (int64_t[]){2}, (float[]){-1, 2}), *out[3] = {NULL};
    for (int named = 0; named < 2; named++) {
        const char *names[] = {"y", "z", "y"};
        if (sdx_run(f.session, 1, &(sdx_feed){"x", x}, 3, named ? names : NULL, out))
            fail_msg("%s", sdx_error(f.cx));
        assert_true(sdx_tensor_f64(out[0], 1) == 2 && sdx_tensor_f64(out[1], 1) == -2);
        assert_true(sdx_tensor_f64(out[2], 0) == 0 && sdx_tensor_f64(out[2], 1) == 2);
        for (int i = 0; i < 3; i++) {
            sdx_tensor_destroy(out[i]);
            out[i] = NULL;
        }
    }
    const char *const again[] = {"z", "z"};
    assert_int_equal(sdx_run(f.session, 1, &(sdx_feed){"x", x}, 2, again, out),
                     SDX_INVALID_ARGUMENT);
    sdx_tensor_destroy(x);
    close_fixture(&f);
}

/* NonZero's output length, and through it the shapes behind it, depend on data. */
static void make_dynamic(struct make *m)
{
    make_init(m);
    make_input(m, "x", SDX_F32, 1, (int64_t[]){-1});
    make_node(m, "NonZero", "x -> a");
    make_node(m, "Transpose", "a -> b");
    make_node(m, "GatherND", "x b -> c");
    make_node(m, "Relu", "c -> y");
    make_output(m, "y", SDX_F32, -1, NULL);
}

static void test_shapes_from_data(void **state)
{
    (void)state;
    struct make m;
    make_dynamic(&m);
    struct fixture f = {0};
    open_fixture(&f, &m, NULL);
    float data[6] = {0, 1, 0, -2, 3, 0};
    for (int turn = 0; turn < 30; turn++) { /* more sets of facts than plans are kept */
        int64_t n = 1 + turn % 6;
        int expected = 0;
        for (int i = 0; i < n; i++)
            expected += data[i] != 0;
        sdx_tensor *x = floats(&f, 1, &n, data), *y = run_one(&f, x);
        assert_int_equal(sdx_tensor_count(y), expected);
        if (expected) assert_true(sdx_tensor_f64(y, 0) == 1);
        sdx_tensor_destroy(x);
        sdx_tensor_destroy(y);
    }
    close_fixture(&f);
}

/* for i in 0..n: v = v + step, where step is taken from outside the body */
static void make_loop(struct make *m, struct make *body, const int64_t *trips)
{
    static const float step = 2;
    make_init(body);
    make_input(body, "i", SDX_I64, 0, NULL);
    make_input(body, "go", SDX_BOOL, 0, NULL);
    make_input(body, "v", SDX_F32, -1, NULL);
    make_node(body, "Identity", "go -> go_out");
    make_node(body, "Add", "v step -> v_out");
    make_output(body, "go_out", SDX_BOOL, 0, NULL);
    make_output(body, "v_out", SDX_F32, -1, NULL);
    make_init(m);
    make_input(m, "x", SDX_F32, 1, (int64_t[]){-1});
    make_initializer(m, "trips", SDX_I64, 0, NULL, trips, sizeof *trips);
    make_initializer(m, "step", SDX_F32, 0, NULL, &step, sizeof step);
    make_attr_graph(make_node(m, "Loop", "trips _ x -> y"), "body", body);
    make_output(m, "y", SDX_F32, -1, NULL);
}

static void test_loop(void **state)
{
    (void)state;
    static const int64_t trips = 10;
    struct make m, body;
    make_loop(&m, &body, &trips);
    struct fixture f = {0};
    open_fixture(&f, &m, NULL);
    float data[3] = {1, 2, 3};
    sdx_tensor *x = floats(&f, 1, (int64_t[]){3}, data), *y = run_one(&f, x);
    for (int i = 0; i < 3; i++)
        assert_true(sdx_tensor_f64(y, i) == data[i] + 20);
    sdx_tensor_destroy(x);
    sdx_tensor_destroy(y);
    close_fixture(&f);
}

static void *cancel_soon(void *arg)
{
    struct timespec wait = {0, 30 * 1000 * 1000};
    nanosleep(&wait, NULL);
    sdx_cancel(arg);
    return NULL;
}

static void test_cancel(void **state)
{
    (void)state;
    static const int64_t trips = INT64_MAX;
    struct make m, body;
    make_loop(&m, &body, &trips);
    struct fixture f = {0};
    open_fixture(&f, &m, NULL);
    float data[3] = {1, 2, 3};
    sdx_tensor *x = floats(&f, 1, (int64_t[]){3}, data), *y = NULL;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, cancel_soon, f.session), 0);
    assert_int_equal(sdx_run(f.session, 1, &(sdx_feed){"x", x}, 1, NULL, &y), SDX_CANCELLED);
    pthread_join(thread, NULL);
    assert_null(y);
    assert_non_null(strstr(sdx_error(f.cx), "cancelled"));
    sdx_tensor_destroy(x);
    close_fixture(&f);
}

/* x [N, 64] * w [64, 64] */
static void make_product(struct make *m, float *w)
{
    for (int i = 0; i < 64 * 64; i++)
        w[i] = (float)((i * 37 % 101) - 50) / 50;
    make_init(m);
    make_input(m, "x", SDX_F32, 2, (int64_t[]){-1, 64});
    make_initializer(m, "w", SDX_F32, 2, (int64_t[]){64, 64}, w, 64 * 64 * sizeof *w);
    make_node(m, "MatMul", "x w -> a");
    make_node(m, "Relu", "a -> y");
    make_output(m, "y", SDX_F32, -1, NULL);
}

static void test_no_allocation_after_warm_up(void **state)
{
    (void)state;
    static float w[64 * 64], data[8 * 64];
    struct make m;
    make_product(&m, w);
    struct fixture f = {0};
    open_fixture(&f, &m, NULL);
    for (int i = 0; i < 8 * 64; i++)
        data[i] = (float)i / 100;
    sdx_tensor *x = floats(&f, 2, (int64_t[]){8, 64}, data), *y = run_one(&f, x);
    size_t before = atomic_load(&f.session->mem.count);
    for (int i = 0; i < 10; i++)
        assert_int_equal(sdx_run(f.session, 1, &(sdx_feed){"x", x}, 1, NULL, &y), SDX_OK);
    assert_int_equal(atomic_load(&f.session->mem.count), before);
    sdx_tensor_destroy(x);
    sdx_tensor_destroy(y);
    close_fixture(&f);
}

static void test_same_bits_for_any_threads_and_batch(void **state)
{
    (void)state;
    static float w[64 * 64], data[9 * 64];
    struct make m;
    make_product(&m, w);
    for (int i = 0; i < 9 * 64; i++)
        data[i] = (float)((i * 7919) % 1000) / 333;
    for (int threads = 1; threads <= 7; threads += 3) {
        sdx_session_options options;
        sdx_session_options_init(&options);
        options.threads = threads;
        struct fixture f = {0};
        open_fixture(&f, &m, &options);
        sdx_tensor *x = floats(&f, 2, (int64_t[]){9, 64}, data), *y = run_one(&f, x);
        sdx_tensor *row_in = floats(&f, 2, (int64_t[]){1, 64}, data + 4 * 64),
                   *row = run_one(&f, row_in);
        assert_memory_equal(sdx_tensor_const_data(row),
                            (const float *)sdx_tensor_const_data(y) + 4 * 64, 64 * 4);
        static float kept[9 * 64];
        if (threads == 1)
            memcpy(kept, sdx_tensor_const_data(y), sizeof kept);
        else
            assert_memory_equal(kept, sdx_tensor_const_data(y), sizeof kept);
        sdx_tensor_destroy(x);
        sdx_tensor_destroy(y);
        sdx_tensor_destroy(row_in);
        sdx_tensor_destroy(row);
        close_fixture(&f);
    }
}

static void test_two_sessions_pack_once(void **state)
{
    (void)state;
    static float w[64 * 64], data[64];
    struct make m;
    make_product(&m, w);
    struct fixture f = {0};
    open_fixture(&f, &m, NULL);
    sdx_tensor *x = floats(&f, 2, (int64_t[]){1, 64}, data), *y = run_one(&f, x);
    size_t weights = atomic_load(&f.model->mem.tag_now[SDX_MEM_WEIGHTS]);
    assert_true(weights >= sizeof w);
    sdx_session *second = NULL;
    assert_int_equal(sdx_session_create(f.cx, f.model, NULL, &second), SDX_OK);
    sdx_tensor *z = NULL;
    assert_int_equal(sdx_run(second, 1, &(sdx_feed){"x", x}, 1, NULL, &z), SDX_OK);
    assert_int_equal(atomic_load(&f.model->mem.tag_now[SDX_MEM_WEIGHTS]), weights);
    sdx_session_destroy(second);
    sdx_tensor_destroy(x);
    sdx_tensor_destroy(y);
    sdx_tensor_destroy(z);
    close_fixture(&f);
}

static void test_memory_limit(void **state)
{
    (void)state;
    struct make m;
    make_init(&m);
    make_input(&m, "x", SDX_F32, 2, (int64_t[]){-1, 4});
    make_node(&m, "Relu", "x -> a");
    make_node(&m, "Transpose", "a -> b");
    make_node(&m, "Relu", "b -> y");
    make_output(&m, "y", SDX_F32, -1, NULL);
    sdx_session_options options;
    sdx_session_options_init(&options);
    options.memory_limit = 4 * 1024 * 1024;
    struct fixture f = {0};
    open_fixture(&f, &m, &options);
    int64_t dims[2] = {1000 * 1000, 4};
    sdx_tensor *x = NULL, *y = NULL;
    assert_int_equal(sdx_tensor_create(f.cx, SDX_F32, 2, dims, &x), SDX_OK);
    assert_int_equal(sdx_run(f.session, 1, &(sdx_feed){"x", x}, 1, NULL, &y), SDX_OUT_OF_MEMORY);
    assert_non_null(strstr(sdx_error(f.cx), "limit"));
    sdx_tensor_destroy(x);
    dims[0] = 10;
    assert_int_equal(sdx_tensor_create(f.cx, SDX_F32, 2, dims, &x), SDX_OK);
    assert_int_equal(sdx_run(f.session, 1, &(sdx_feed){"x", x}, 1, NULL, &y),
                     SDX_OK); /* usable afterwards */
    sdx_tensor_destroy(x);
    sdx_tensor_destroy(y);
    close_fixture(&f);
}

static void test_errors_name_the_place(void **state)
{
    (void)state;
    struct make m;
    make_views(&m);
    struct fixture f = {0};
    open_fixture(&f, &m, NULL);
    float data[6] = {0};
    sdx_tensor *x = floats(&f, 2, (int64_t[]){2, 3}, data), *y = NULL;
    assert_int_equal(sdx_run(f.session, 1, &(sdx_feed){"x", x}, 1, NULL, &y), SDX_BAD_INPUT);
    assert_string_equal(sdx_error(f.cx), "input \"x\": found f32[2,3], expected float[N,4]");
    assert_int_equal(sdx_run(f.session, 1, &(sdx_feed){"z", x}, 1, NULL, &y), SDX_NOT_FOUND);
    assert_string_equal(sdx_error(f.cx), "no input is named \"z\"");
    assert_int_equal(sdx_run(f.session, 0, NULL, 1, NULL, &y), SDX_BAD_INPUT);
    assert_string_equal(sdx_error(f.cx), "input \"x\" was not given");
    sdx_tensor_destroy(x);
    close_fixture(&f);
}

/* Every allocation of load, session and run fails once; nothing leaks or crashes. */
static void test_failing_allocations(void **state)
{
    (void)state;
    static const int64_t trips = 3;
    struct make m, body;
    make_loop(&m, &body, &trips);
    char path[80];
    make_write(&m, path, sizeof path);
    float data[3] = {1, 2, 3};
    bool done = false;
    for (int fail_at = 0; !done; fail_at++) {
        sdx_context *cx = sdx_context_create(NULL);
        size_t before = atomic_load(&cx->mem->now);
        sdx_model *model = NULL;
        sdx_session *session = NULL;
        sdx_tensor *x = NULL, *y = NULL;
        atomic_store(&cx->mem->fail_at, fail_at);
        sdx_status status = sdx_model_open(cx, path, NULL, &model);
        if (status == SDX_OK) status = sdx_session_create(cx, model, NULL, &session);
        if (status == SDX_OK) status = sdx_tensor_view(cx, SDX_F32, 1, (int64_t[]){3}, data, &x);
        if (status == SDX_OK) status = sdx_run(session, 1, &(sdx_feed){"x", x}, 1, NULL, &y);
        done = atomic_load(&cx->mem->fail_at) >= 0;
        if (done)
            assert_int_equal(status, SDX_OK);
        else if (status != SDX_OK)
            assert_int_equal(status, SDX_OUT_OF_MEMORY);
        atomic_store(&cx->mem->fail_at, -1);
        sdx_tensor_destroy(x);
        sdx_tensor_destroy(y);
        sdx_session_destroy(session);
        sdx_model_destroy(model);
        assert_int_equal(atomic_load(&cx->mem->now), before);
        sdx_context_destroy(cx);
        assert_true(fail_at < 100000);
    }
    unlink(path);
}

struct thread_job {
    struct fixture *f;
    sdx_session *session;
    bool ok;
};

static void *run_many(void *arg)
{
    struct thread_job *job = arg;
    float data[8 * 64];
    for (int i = 0; i < 8 * 64; i++)
        data[i] = (float)(i % 13);
    job->ok = true;
    for (int turn = 0; turn < 20 && job->ok; turn++) {
        sdx_tensor *x = NULL, *y = NULL;
        int64_t n = 1 + turn % 8;
        job->ok = !sdx_tensor_view(job->f->cx, SDX_F32, 2, (int64_t[]){n, 64}, data, &x) &&
                  !sdx_run(job->session, 1, &(sdx_feed){"x", x}, 1, NULL, &y) &&
                  sdx_tensor_count(y) == n * 64;
        sdx_tensor_destroy(x);
        sdx_tensor_destroy(y);
    }
    return NULL;
}

static void test_sessions_in_threads(void **state)
{
    (void)state;
    static float w[64 * 64];
    struct make m;
    make_product(&m, w);
    struct fixture f = {0};
    open_fixture(&f, &m, NULL);
    struct thread_job jobs[4];
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) {
        jobs[i] = (struct thread_job){.f = &f};
        assert_int_equal(sdx_session_create(f.cx, f.model, NULL, &jobs[i].session), SDX_OK);
        assert_int_equal(pthread_create(&threads[i], NULL, run_many, &jobs[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        assert_true(jobs[i].ok);
        sdx_session_destroy(jobs[i].session);
    }
    close_fixture(&f);
}

/* An input of an optional type that is not fed is an empty optional. */
static void test_optional_not_fed(void **state)
{
    (void)state;
    struct make m;
    struct fixture f = {0};
    struct sdx_onnx_type outer = {.which = SDX_TYPE_OPTIONAL};
    sdx_tensor *y = NULL, *x = NULL;
    make_init(&m);
    m.opset = 18;
    make_input(&m, "x", SDX_F32, 1, (int64_t[]){2});
    outer.elem = m.inputs[0].type;
    m.inputs[0].type = &outer;
    make_node(&m, "OptionalHasElement", "x -> y");
    make_output(&m, "y", SDX_BOOL, 0, NULL);
    open_fixture(&f, &m, NULL);
    for (int round = 0; round < 2; round++) {
        if (sdx_run(f.session, 0, NULL, 1, NULL, &y)) fail_msg("%s", sdx_error(f.cx));
        assert_int_equal(sdx_tensor_i64(y, 0), 0);
        sdx_tensor_destroy(y);
        y = NULL;
        x = floats(&f, 1, (int64_t[]){2}, (float[]){1, 2});
        if (sdx_run(f.session, 1, &(sdx_feed){"x", x}, 1, NULL, &y))
            fail_msg("%s", sdx_error(f.cx));
        assert_int_equal(sdx_tensor_i64(y, 0), 1);
        sdx_tensor_destroy(x);
        sdx_tensor_destroy(y);
        y = NULL;
    }
    close_fixture(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_views_and_shapes),
        cmocka_unit_test(test_bound_output),
        cmocka_unit_test(test_output_listed_twice),
        cmocka_unit_test(test_shapes_from_data),
        cmocka_unit_test(test_loop),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_no_allocation_after_warm_up),
        cmocka_unit_test(test_same_bits_for_any_threads_and_batch),
        cmocka_unit_test(test_two_sessions_pack_once),
        cmocka_unit_test(test_memory_limit),
        cmocka_unit_test(test_errors_name_the_place),
        cmocka_unit_test(test_failing_allocations),
        cmocka_unit_test(test_sessions_in_threads),
        cmocka_unit_test(test_optional_not_fed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
