/* SPDX-License-Identifier: Apache-2.0
 * The pool: each part once, ranges, worker numbers, sharing, nesting, runs, sleeping, forks. */
#include "unit.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PARTS = 1000 };

struct job {
    struct sdx_pool *pool;
    int threads;
    atomic_int runs[PARTS];
    atomic_int busy[64]; /* by worker: a number is used by one thread at a time */
    atomic_int workers_bad, worker_highest;
    atomic_int calls; /* of count_range */
};

static void count_part(void *arg, int64_t part, int worker)
{
    struct job *job = arg;
    if (worker < 0 || worker >= job->threads || atomic_fetch_add(&job->busy[worker], 1) != 0)
        atomic_fetch_add(&job->workers_bad, 1);
    if (worker > atomic_load(&job->worker_highest)) atomic_store(&job->worker_highest, worker);
    atomic_fetch_add(&job->runs[part], 1);
    atomic_fetch_sub(&job->busy[worker], 1);
}

static struct job *new_job(struct sdx_pool *pool, int threads)
{
    struct job *job = calloc(1, sizeof *job);
    job->pool = pool;
    job->threads = threads;
    return job;
}

static bool ran_once(struct job *job, int64_t count)
{
    bool ok = atomic_load(&job->workers_bad) == 0;
    for (int64_t i = 0; i < PARTS; i++)
        ok = ok && atomic_load(&job->runs[i]) == (i < count);
    return ok;
}

static void each_part_runs_once(void **state)
{
    (void)state;
    static const int threads[] = {1, 2, 7};
    static const int64_t counts[] = {0, 1, 2, 3, 7, 8, 100, PARTS};
    static const int64_t grains[] = {-1, 0, 1, 3, 64, 5000};
    struct unit unit;
    unit_init(&unit);
    for (int t = 0; t < SDX_COUNT_OF(threads); t++) {
        struct sdx_pool *pool = sdx_pool_create(&unit.mem, threads[t]);
        assert_int_equal(sdx_pool_threads(pool), threads[t]);
        for (int round = 0; round < 20; round++) {
            for (int c = 0; c < SDX_COUNT_OF(counts); c++) {
                for (int g = 0; g < SDX_COUNT_OF(grains); g++) {
                    struct job *job = new_job(pool, threads[t]);
                    sdx_parallel_for(pool, 0, counts[c], grains[g], count_part, job);
                    assert_true(ran_once(job, counts[c]));
                    free(job);
                }
            }
        }
        sdx_pool_destroy(pool);
    }
    assert_int_equal(sdx_pool_threads(NULL), 1);
    sdx_pool_destroy(NULL);
    struct job *job = new_job(NULL, 1);
    sdx_parallel_for(NULL, 0, 10, 1, count_part, job);
    assert_true(ran_once(job, 10));
    free(job);
    unit_deinit(&unit);
}

static void count_range(void *arg, int64_t part, int64_t end, int worker)
{
    struct job *job = arg;
    if (part >= end) atomic_fetch_add(&job->workers_bad, 1);
    atomic_fetch_add(&job->calls, 1);
    for (; part < end; part++)
        count_part(arg, part, worker);
}

static void ranges_hold_each_part_once(void **state)
{
    (void)state;
    static const int64_t counts[] = {0, 1, 2, 3, 7, 8, 9, 100, PARTS};
    struct unit unit;
    unit_init(&unit);
    for (int threads = 0; threads <= 7; threads++) { /* 0: no pool */
        struct sdx_pool *pool = threads ? sdx_pool_create(&unit.mem, threads) : NULL;
        for (int i = 0; i < 50 * SDX_COUNT_OF(counts); i++) {
            const int64_t count = counts[i % SDX_COUNT_OF(counts)];
            struct job *job = new_job(pool, threads ? threads : 1);
            sdx_parallel_ranges(pool, 0, count, 0, count_range, job);
            assert_true(ran_once(job, count));
            /* halves: few calls for a thread's range and for each that is taken over */
            if (threads <= 1) assert_true(atomic_load(&job->calls) <= 8);
            assert_true(atomic_load(&job->calls) < 16 * (threads + 1));
            sdx_parallel_for(pool, 0, count, 1, count_part, job);
            assert_true(atomic_load(&job->calls) < 16 * (threads + 1));
            free(job);
        }
        sdx_pool_destroy(pool);
    }
    unit_deinit(&unit);
}

static void fewer_threads_on_request(void **state)
{
    (void)state;
    struct unit unit;
    unit_init(&unit);
    struct sdx_pool *pool = sdx_pool_create(&unit.mem, 7);
    for (int limit = 1; limit <= 8; limit++) {
        for (int round = 0; round < 50; round++) {
            struct job *job = new_job(pool, limit > 7 ? 7 : limit);
            sdx_parallel_for(pool, limit, PARTS, 1, count_part, job);
            assert_true(ran_once(job, PARTS));
            free(job);
        }
    }
    sdx_pool_destroy(pool);
    unit_deinit(&unit);
}

static void nested_part(void *arg, int64_t part, int worker)
{
    struct job *job = arg;
    struct job *inner = new_job(job->pool, 1); /* alone: worker 0 */
    sdx_parallel_for(job->pool, 0, 20, 1, count_part, inner);
    if (!ran_once(inner, 20)) atomic_fetch_add(&job->workers_bad, 1);
    free(inner);
    count_part(arg, part, worker);
}

static void nested_jobs_run_alone(void **state)
{
    (void)state;
    struct unit unit;
    unit_init(&unit);
    struct sdx_pool *pool = sdx_pool_create(&unit.mem, 4);
    struct job *job = new_job(pool, 4);
    sdx_parallel_for(pool, 0, 200, 1, nested_part, job);
    assert_true(ran_once(job, 200));
    free(job);
    sdx_pool_destroy(pool);
    unit_deinit(&unit);
}

static void *share(void *arg)
{
    int bad = 0;
    for (int round = 0; round < 200; round++) {
        struct job *job = new_job(arg, 3);
        sdx_parallel_for(arg, 0, 300, 2, count_part, job);
        bad += !ran_once(job, 300);
        free(job);
    }
    return bad == 0 ? arg : NULL;
}

static void callers_share_a_pool(void **state)
{
    (void)state;
    struct unit unit;
    unit_init(&unit);
    struct sdx_pool *pool = sdx_pool_create(&unit.mem, 3);
    pthread_t callers[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&callers[i], NULL, share, pool), 0);
    for (int i = 0; i < 4; i++) {
        void *result;
        pthread_join(callers[i], &result);
        assert_ptr_equal(result, pool);
    }
    sdx_pool_destroy(pool);
    unit_deinit(&unit);
}

static void nap_part(void *arg, int64_t part, int worker)
{
    const struct timespec nap = {0, 2000000};
    nanosleep(&nap, NULL);
    count_part(arg, part, worker);
}

static void sleepers_wake_and_are_waited_for(void **state)
{
    (void)state;
    struct unit unit;
    unit_init(&unit);
    struct sdx_pool *pool = sdx_pool_create(&unit.mem, 4);
    int joined = 0;
    for (int round = 0; round < 20; round++) {
        struct job *job = new_job(pool, 4);
        const struct timespec nap = {0, 1000000}; /* longer than workers spin */
        nanosleep(&nap, NULL);
        sdx_parallel_for(pool, 0, 4, 1, nap_part, job);
        assert_true(ran_once(job, 4));
        joined += atomic_load(&job->worker_highest) > 0; /* the nap lets others in */
        free(job);
    }
    assert_true(joined > 0); /* on a busy machine not always */
    sdx_pool_destroy(pool);
    unit_deinit(&unit);
}

/* Exit code of a child that runs jobs on `pool`, uses its threads, and destroys it. */
static int run_child(struct sdx_pool *pool)
{
    pid_t child = fork();
    if (child == 0) {
        alarm(20);
        int bad = 0, highest = 0;
        for (int round = 0; round < 20; round++) {
            struct job *job = new_job(pool, 3);
            if (round % 2 != 0) sdx_pool_run_begin(pool, 0);
            sdx_parallel_for(pool, 0, 6, 1, nap_part, job);
            if (round % 2 != 0) sdx_pool_run_end(pool, 0);
            bad += !ran_once(job, 6);
            if (atomic_load(&job->worker_highest) > highest)
                highest = atomic_load(&job->worker_highest);
            free(job);
        }
        sdx_pool_destroy(pool);
        _exit(bad != 0 ? 1 : highest == 0 ? 2 : 0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    return status;
}

struct holder {
    struct sdx_pool *pool;
    atomic_bool inside, end;
};

static void hold_part(void *arg, int64_t part, int worker)
{
    (void)part;
    (void)worker;
    struct holder *holder = arg;
    const struct timespec nap = {0, 100000};
    atomic_store(&holder->inside, true);
    while (!atomic_load(&holder->end))
        nanosleep(&nap, NULL);
}

static void *hold_pool(void *arg)
{
    struct holder *holder = arg;
    sdx_parallel_for(holder->pool, 0, 3, 1, hold_part, holder);
    return NULL;
}

static void *run_and_hold_pool(void *arg)
{
    struct holder *holder = arg;
    sdx_pool_run_begin(holder->pool, 0);
    hold_pool(arg);
    sdx_pool_run_end(holder->pool, 0);
    return NULL;
}

static void children_make_their_own_workers(void **state)
{
    (void)state;
#if defined(__SANITIZE_THREAD__)
    print_message("ThreadSanitizer forbids threads in a forked child\n");
    skip();
#endif
    struct unit unit;
    unit_init(&unit);
    struct sdx_pool *pool = sdx_pool_create(&unit.mem, 3);
    assert_int_equal(run_child(pool), 0); /* before the first job */
    struct job *job = new_job(pool, 3);
    sdx_parallel_for(pool, 0, 100, 1, count_part, job);
    free(job);
    assert_int_equal(run_child(pool), 0);

    struct holder holder = {.pool = pool};
    pthread_t thread;
    pthread_create(&thread, NULL, run_and_hold_pool, &holder);
    while (!atomic_load(&holder.inside))
        sched_yield();
    assert_int_equal(run_child(pool), 0); /* while another thread is in a job */
    atomic_store(&holder.end, true);
    pthread_join(thread, NULL);

    job = new_job(pool, 3);
    sdx_parallel_for(pool, 0, 100, 1, count_part, job);
    assert_true(ran_once(job, 100));
    free(job);
    sdx_pool_destroy(pool);
    unit_deinit(&unit);
}

/* CPU time of this process in ns. */
static int64_t cpu_ns(void)
{
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    return (use.ru_utime.tv_sec + use.ru_stime.tv_sec) * INT64_C(1000000000) +
           (use.ru_utime.tv_usec + use.ru_stime.tv_usec) * INT64_C(1000);
}

static void short_loops_in_runs(void **state)
{
    (void)state;
    static const int threads[] = {1, 2, 7};
    struct unit unit;
    unit_init(&unit);
    for (int t = 0; t < SDX_COUNT_OF(threads); t++) {
        struct sdx_pool *pool = sdx_pool_create(&unit.mem, threads[t]);
        for (int run = 0; run < 30; run++) {
            const struct timespec nap = {0, run % 3 * 50000}; /* workers awake, or asleep */
            struct job *job = new_job(pool, threads[t]);
            nanosleep(&nap, NULL);
            sdx_pool_run_begin(pool, 0);
            for (int round = 0; round < 100; round++)
                sdx_parallel_for(pool, 0, 5, 1, count_part, job);
            sdx_pool_run_end(pool, 0);
            assert_int_equal(atomic_load(&job->workers_bad), 0);
            for (int64_t i = 0; i < 5; i++)
                assert_int_equal(atomic_load(&job->runs[i]), 100);
            free(job);
        }
        sdx_pool_destroy(pool);
    }
    sdx_pool_run_begin(NULL, 0);
    sdx_pool_run_end(NULL, 0);
    unit_deinit(&unit);
}

static void idle_workers_sleep(void **state)
{
    (void)state;
    struct unit unit;
    unit_init(&unit);
    struct sdx_pool *pool = sdx_pool_create(&unit.mem, 2);
    struct job *job = new_job(pool, 2);
    sdx_pool_run_begin(pool, 0);
    sdx_parallel_for(pool, 0, PARTS, 1, count_part, job);
    sdx_pool_run_end(pool, 0);
    free(job);
    const struct timespec settle = {0, 2000000}, pause = {0, 300000000};
    nanosleep(&settle, NULL);
    int64_t before = cpu_ns();
    nanosleep(&pause, NULL);
    assert_true(cpu_ns() - before < 3000000); /* 1 % of the pause */
    sdx_pool_run_begin(pool, 0);              /* a run that never has a job */
    nanosleep(&settle, NULL);
    before = cpu_ns();
    nanosleep(&pause, NULL);
    assert_true(cpu_ns() - before < 3000000);
    sdx_pool_run_end(pool, 0);
    sdx_pool_destroy(pool);
    unit_deinit(&unit);
}

static void paced_runs_cost_their_work(void **state)
{
    (void)state;
    struct unit unit;
    unit_init(&unit);
    struct sdx_pool *pool = sdx_pool_create(&unit.mem, 2);
    const struct timespec pause = {0, 10000000};
    int64_t before = cpu_ns();
    for (int run = 0; run < 30; run++) {
        struct job *job = new_job(pool, 2);
        sdx_pool_run_begin(pool, 0);
        for (int round = 0; round < 5; round++)
            sdx_parallel_for(pool, 0, 10, 1, count_part, job);
        sdx_pool_run_end(pool, 0);
        free(job);
        nanosleep(&pause, NULL);
    }
    /* 300 ms, nearly all of it pause; a pool that spun through would take 300 ms */
    assert_true(cpu_ns() - before < 30000000);
    sdx_pool_destroy(pool);
    unit_deinit(&unit);
}

/* A program's own threads: three at most. */
struct source {
    pthread_t threads[3];
    atomic_int started, joined;
};

struct start {
    void (*work)(void *arg);
    void *arg;
};

static void *run_start(void *arg)
{
    struct start start = *(struct start *)arg;
    free(arg);
    start.work(start.arg);
    return NULL;
}

static void *start_own(void (*work)(void *arg), void *arg, void *user)
{
    struct source *source = user;
    const int i = atomic_load(&source->started);
    if (i == 3) return NULL;
    struct start *start = malloc(sizeof *start);
    *start = (struct start){work, arg};
    assert_int_equal(pthread_create(&source->threads[i], NULL, run_start, start), 0);
    atomic_store(&source->started, i + 1);
    return &source->threads[i];
}

static void join_own(void *thread, void *user)
{
    struct source *source = user;
    pthread_join(*(pthread_t *)thread, NULL);
    atomic_fetch_add(&source->joined, 1);
}

/* They start with the pool, work, and are joined with its end; where there are no more it goes on
 * with those. A context with a parent has them for itself. */
static void threads_of_a_program(void **state)
{
    (void)state;
    for (int threads = 3; threads <= 8; threads += 5) {
        struct source source = {0};
        sdx_context *parent = sdx_context_create(NULL);
        sdx_context_options options;
        sdx_context_options_init(&options);
        options.parent = parent;
        options.threads = threads;
        options.thread_start = start_own;
        options.thread_join = join_own;
        options.thread_user = &source;
        sdx_context *cx = sdx_context_create(&options);
        const int made = threads == 3 ? 2 : 3;
        assert_int_equal(atomic_load(&source.started), made);
        assert_int_equal(sdx_threads(cx), threads);
        struct job *job = new_job(cx->pool, threads);
        sdx_parallel_for(cx->pool, 0, PARTS, 1, count_part, job);
        assert_true(ran_once(job, PARTS));
        free(job);
        sdx_context_destroy(cx);
        assert_int_equal(atomic_load(&source.joined), made);
        assert_int_equal(atomic_load(&source.started), made);
        sdx_context_destroy(parent);
    }
}

static void no_memory_no_pool(void **state)
{
    (void)state;
    struct unit unit;
    unit_init(&unit);
    atomic_store(&unit.mem.fail_at, 0);
    assert_null(sdx_pool_create(&unit.mem, 4));
    unit_deinit(&unit);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_part_runs_once),
        cmocka_unit_test(ranges_hold_each_part_once),
        cmocka_unit_test(fewer_threads_on_request),
        cmocka_unit_test(nested_jobs_run_alone),
        cmocka_unit_test(callers_share_a_pool),
        cmocka_unit_test(sleepers_wake_and_are_waited_for),
        cmocka_unit_test(short_loops_in_runs),
        cmocka_unit_test(idle_workers_sleep),
        cmocka_unit_test(paced_runs_cost_their_work),
        cmocka_unit_test(children_make_their_own_workers),
        cmocka_unit_test(threads_of_a_program),
        cmocka_unit_test(no_memory_no_pool),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
