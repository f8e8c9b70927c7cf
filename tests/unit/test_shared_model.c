/* SPDX-License-Identifier: Apache-2.0
 * One model for many: sessions of several threads that make graphs, plans and packed weights of it
 * at once, and processes that are forked meanwhile. */
#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>

#include "unit.h"

#include "make_model.h"

enum { ROWS = 48, COLUMNS = 40, CHANNELS = 8, THREADS = 4, ROUNDS = 6, CHILDREN = 12 };

struct fixture {
    struct make m;
    char path[80];
    sdx_context *cx;
    sdx_model *model;
    double sums[2][ROUNDS + 1]; /* of the result, by level and rows of x */
};

static float weights[ROWS * COLUMNS], filters[CHANNELS * 1 * 3 * 3];

/* y = relu(conv(reshape(x w))): both have weights that sessions share in packed form */
static void make_graph(struct make *m)
{
    static const int64_t shape[4] = {-1, 1, 5, 8};
    for (int i = 0; i < ROWS * COLUMNS; i++)
        weights[i] = (float)(i % 17) - 8;
    for (int i = 0; i < CHANNELS * 9; i++)
        filters[i] = (float)(i % 5) - 2;
    make_init(m);
    make_input(m, "x", SDX_F32, 2, (int64_t[]){-1, ROWS});
    make_initializer(m, "w", SDX_F32, 2, (int64_t[]){ROWS, COLUMNS}, weights, sizeof weights);
    make_initializer(m, "f", SDX_F32, 4, (int64_t[]){CHANNELS, 1, 3, 3}, filters, sizeof filters);
    make_initializer(m, "s", SDX_I64, 1, (int64_t[]){4}, shape, sizeof shape);
    make_node(m, "MatMul", "x w -> a");
    make_node(m, "Reshape", "a s -> b");
    make_node(m, "Conv", "b f -> c");
    make_node(m, "Relu", "c -> y");
    make_output(m, "y", SDX_F32, 4, (int64_t[]){-1, CHANNELS, 3, 6});
}

/* The sum of the result for `n` rows, in a session of its own. false: a call failed. */
static bool run_session(const struct fixture *f, sdx_level level, int n, double *sum)
{
    float data[ROUNDS * ROWS];
    sdx_session_options options;
    sdx_session *session = NULL;
    sdx_tensor *x = NULL, *y = NULL;
    for (int i = 0; i < n * ROWS; i++)
        data[i] = (float)(i % 7) - 3;
    sdx_session_options_init(&options);
    options.level = level;
    bool ok = !sdx_session_create(f->cx, f->model, &options, &session) &&
              !sdx_tensor_view(f->cx, SDX_F32, 2, (int64_t[]){n, ROWS}, data, &x) &&
              !sdx_run(session, 1, &(sdx_feed){"x", x}, 1, NULL, &y);
    *sum = 0;
    for (int64_t i = 0; ok && i < sdx_tensor_count(y); i++)
        *sum += sdx_tensor_f64(y, i) * (double)(i % 3 + 1);
    sdx_tensor_destroy(x);
    sdx_tensor_destroy(y);
    sdx_session_destroy(session);
    return ok;
}

static sdx_level level_of(int i)
{
    return i ? SDX_LEVEL_ALL : SDX_LEVEL_BASIC;
}

static bool run_all(const struct fixture *f)
{
    bool ok = true;
    for (int n = 1; n <= ROUNDS; n++)
        for (int l = 0; l < 2; l++) {
            double sum = 0;
            ok = run_session(f, level_of(l), n, &sum) && ok;
            ok = ok && sum == f->sums[l][n];
        }
    return ok;
}

static void open_fixture(struct fixture *f)
{
    make_graph(&f->m);
    make_write(&f->m, f->path, sizeof f->path);
    sdx_context_options options;
    sdx_context_options_init(&options);
    options.threads = 3;
    f->cx = sdx_context_create(&options);
    if (sdx_model_open(f->cx, f->path, NULL, &f->model)) fail_msg("%s", sdx_error(f->cx));
}

static void close_fixture(struct fixture *f)
{
    sdx_model_destroy(f->model);
    sdx_context_destroy(f->cx);
    unlink(f->path);
}

/* What is expected comes from a model of its own. */
static void find_sums(struct fixture *f)
{
    struct fixture other = {0};
    open_fixture(&other);
    for (int n = 1; n <= ROUNDS; n++)
        for (int l = 0; l < 2; l++)
            assert_true(run_session(&other, level_of(l), n, &f->sums[l][n]));
    close_fixture(&other);
}

static void *run_thread(void *arg)
{
    struct fixture *f = arg;
    return run_all(f) ? f : NULL;
}

static void test_threads(void **state)
{
    (void)state;
    struct fixture f = {0};
    pthread_t threads[THREADS];
    find_sums(&f);
    open_fixture(&f);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run_thread, &f), 0);
    for (int i = 0; i < THREADS; i++) {
        void *result = NULL;
        pthread_join(threads[i], &result);
        assert_ptr_equal(result, &f);
    }
    close_fixture(&f);
}

/* ---- forks ---- */

static int run_child(struct fixture *f)
{
    pid_t child = fork();
    if (child == 0) {
        alarm(60);
        bool ok = run_all(f);
        sdx_model_destroy(f->model);
        sdx_context_destroy(f->cx);
        _exit(ok ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    return status;
}

struct busy {
    struct fixture *f;
    atomic_bool end, begun, failed;
};

/* Opens the model again and again, so that its locks are mostly held, and makes sessions of the
 * shared one. */
static void *keep_busy(void *arg)
{
    struct busy *busy = arg;
    while (!atomic_load(&busy->end)) {
        struct fixture own = {.cx = busy->f->cx};
        double sum = 0;
        bool ok = !sdx_model_open(own.cx, busy->f->path, NULL, &own.model) &&
                  run_session(&own, SDX_LEVEL_ALL, 2, &sum) &&
                  run_session(busy->f, SDX_LEVEL_ALL, 3, &sum);
        if (!ok) atomic_store(&busy->failed, true);
        sdx_model_destroy(own.model);
        atomic_store(&busy->begun, true);
    }
    return NULL;
}

static void skip_with_thread_sanitizer(void)
{
#if defined(__SANITIZE_THREAD__)
    print_message("ThreadSanitizer forbids threads in a forked child\n");
    skip();
#endif
}

static void test_child_goes_on(void **state)
{
    (void)state;
    skip_with_thread_sanitizer();
    struct fixture f = {0};
    find_sums(&f);
    open_fixture(&f);
    assert_int_equal(run_child(&f), 0); /* before anything was packed */
    assert_true(run_all(&f));
    assert_int_equal(run_child(&f), 0);
    assert_true(run_all(&f));
    close_fixture(&f);
}

static void test_fork_while_others_work(void **state)
{
    (void)state;
    skip_with_thread_sanitizer();
#if defined(__SANITIZE_ADDRESS__)
    print_message(
        "AddressSanitizer's own locks are held in a child that is forked beside threads\n");
    skip();
#endif
    struct fixture f = {0};
    struct busy busy = {.f = &f};
    pthread_t threads[2];
    find_sums(&f);
    open_fixture(&f);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, keep_busy, &busy), 0);
    while (!atomic_load(&busy.begun))
        sched_yield();
    for (int i = 0; i < CHILDREN; i++)
        assert_int_equal(run_child(&f), 0);
    atomic_store(&busy.end, true);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    assert_false(atomic_load(&busy.failed));
    close_fixture(&f);
}

/* A session that did not run at the time of the fork is the child's too. */
static void test_session_of_parent(void **state)
{
    (void)state;
    skip_with_thread_sanitizer();
    struct fixture f = {0};
    sdx_session *session = NULL;
    sdx_tensor *x = NULL, *y = NULL, *z = NULL;
    open_fixture(&f);
    assert_int_equal(sdx_session_create(f.cx, f.model, NULL, &session), SDX_OK);
    assert_int_equal(sdx_tensor_create(f.cx, SDX_F32, 2, (int64_t[]){64, ROWS}, &x), SDX_OK);
    for (int i = 0; i < 64 * ROWS; i++)
        ((float *)sdx_tensor_data(x))[i] = (float)(i % 11);
    assert_int_equal(sdx_run(session, 1, &(sdx_feed){"x", x}, 1, NULL, &y), SDX_OK);
    pid_t child = fork();
    if (child == 0) {
        alarm(60);
        bool ok = !sdx_run(session, 1, &(sdx_feed){"x", x}, 1, NULL, &z) &&
                  memcmp(sdx_tensor_data(y), sdx_tensor_data(z), sdx_tensor_bytes(y)) == 0;
        sdx_session_destroy(session);
        _exit(ok ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
    sdx_tensor_destroy(x);
    sdx_tensor_destroy(y);
    sdx_session_destroy(session);
    close_fixture(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_child_goes_on),
        cmocka_unit_test(test_fork_while_others_work),
        cmocka_unit_test(test_session_of_parent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
