/* SPDX-License-Identifier: Apache-2.0
 * What threads cost: bench_threads MODEL.onnx. A fork and join while the workers are awake, the CPU
 * time of an idle session, that of runs 30 times a second against the same runs back to back, and
 * the scaling from one thread to two. Figures of time are the least of many, as the machine may be
 * busy; CPU time is the process's own. Exit code 1 when a goal is missed (scaling is only told). */
#include <sardonyx/sardonyx.h>

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "base/mem.h"
#include "base/thread_pool.h"

enum { VALUES_MAX = 64, FORKS = 20000, CALLS = 90, TURNS = 30, PER_SECOND = 30 };

struct job {
    sdx_context *cx;
    sdx_model *model;
    sdx_session *session;
    sdx_tensor *in[VALUES_MAX];
    sdx_feed feeds[VALUES_MAX];
    int count;
};

static double wall_us(void)
{
    return (double)sdx_clock_ns() * 1e-3;
}
static double cpu_us(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e6 +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}
static void sleep_us(double us)
{
    const int64_t ns = us > 0 ? (int64_t)(us * 1e3) : 0;
    nanosleep(&(struct timespec){.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000}, NULL);
}
static int told(const char *what, double value, const char *unit, double goal)
{
    const bool missed = goal > 0 && value > goal;
    printf("%-52s %9.3f %-3s", what, value, unit);
    if (goal > 0) printf("  goal %g: %s", goal, missed ? "missed" : "reached");
    printf("\n");
    fflush(stdout);
    return missed;
}

/* Waits for the other part, so that a job is over only when two threads took part: a caller would
 * do two empty parts alone. After 50 us it goes on, as the pool may have had no thread for it. */
struct meeting {
    atomic_int here, missed;
};
static void meet(void *arg, int64_t part, int worker)
{
    struct meeting *m = arg;
    (void)part;
    (void)worker;
    atomic_fetch_add(&m->here, 1);
    for (const double begin = wall_us(); atomic_load(&m->here) < 2;)
        if (wall_us() - begin > 50) {
            atomic_store(&m->missed, 1);
            return;
        }
}
static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}
static int fork_join(void)
{
    static double times[FORKS];
    struct sdx_mem mem;
    sdx_mem_init(&mem, NULL, 0);
    struct sdx_pool *pool = sdx_pool_create(&mem, 2);
    if (!pool) return 1;
    sdx_pool_run_begin(pool, 2);
    int count = 0;
    for (int i = 0; i < FORKS; i++) {
        struct meeting m = {0};
        const double begin = wall_us();
        sdx_parallel_for(pool, 2, 2, 1, meet, &m);
        times[count] = wall_us() - begin;
        count += !atomic_load(&m.missed);
    }
    sdx_pool_run_end(pool, 2);
    sdx_pool_destroy(pool);
    if (count == 0) return told("fork and join: no second thread, of jobs", FORKS, "", 1);
    qsort(times, (size_t)count, sizeof times[0], by_value);
    told("fork and join of 2 threads, median", times[count / 2], "us", 0);
    return told("fork and join of 2 threads, least", times[0], "us", 2);
}

static void job_close(struct job *job)
{
    for (int i = 0; i < job->count; i++)
        sdx_tensor_destroy(job->in[i]);
    sdx_session_destroy(job->session);
    sdx_model_destroy(job->model);
    sdx_context_destroy(job->cx);
}
static bool job_open(struct job *job, const char *path, int threads)
{
    sdx_context_options options;
    sdx_context_options_init(&options);
    options.threads = threads;
    *job = (struct job){.cx = sdx_context_create(&options)};
    if (!job->cx || sdx_model_open(job->cx, path, NULL, &job->model) ||
        sdx_session_create(job->cx, job->model, NULL, &job->session))
        return false;
    for (int i = 0; i < sdx_model_count_inputs(job->model) && i < VALUES_MAX; i++) {
        const sdx_value_info *info = sdx_model_input(job->model, i);
        int64_t dims[64] = {0};
        if (info->optional) continue;
        for (int d = 0; d < info->rank && d < 64; d++)
            dims[d] = info->dims[d] > 0 ? info->dims[d] : 1;
        const int at = job->count;
        if (sdx_tensor_create(job->cx, info->dtype, info->rank, dims, &job->in[at])) return false;
        job->feeds[at] = (sdx_feed){info->name, job->in[at]};
        job->count++;
    }
    return true;
}
/* In us; below 0: the run failed. */
static double run(struct job *job)
{
    sdx_tensor *out[VALUES_MAX] = {0};
    const int count = sdx_model_count_outputs(job->model);
    if (count > VALUES_MAX) return -1;
    const double begin = wall_us();
    const sdx_status status = sdx_run(job->session, job->count, job->feeds, count, NULL, out);
    const double taken = wall_us() - begin;
    for (int i = 0; i < count; i++)
        sdx_tensor_destroy(out[i]);
    return status == SDX_OK ? taken : -1;
}

static int idle(void)
{
    sleep_us(50000); /* what the last run left behind */
    const double begin = wall_us(), cpu = cpu_us();
    sleep_us(2e6);
    return told("idle session, share of a CPU", 100 * (cpu_us() - cpu) / (wall_us() - begin), "%",
                1);
}
/* CPU time of a call, back to back, paced, and that of the pauses alone, in turns; the least of the
 * turns of each, as caches shared with other programs cost CPU time too. A pause lets caches and
 * clock cool down, so a tenth and 50 us are not held against the pool. */
static int paced(struct job *job)
{
    enum { BACK_TO_BACK, PACED, PAUSES, WAYS };
    double least[WAYS] = {1e18, 1e18, 1e18};
    for (int turn = 0; turn < 3 * WAYS; turn++) {
        const int way = turn % WAYS;
        const double cpu = cpu_us();
        for (int i = 0; i < CALLS / 3; i++) {
            const double taken = way == PAUSES ? 0 : run(job);
            if (taken < 0) return 1;
            if (way != BACK_TO_BACK) sleep_us(1e6 / PER_SECOND - taken);
        }
        const double each = (cpu_us() - cpu) / (CALLS / 3.0);
        if (each < least[way]) least[way] = each;
    }
    const double more = least[PACED] - least[PAUSES] - 50;
    told("CPU time of a call, back to back, 2 threads", least[BACK_TO_BACK] / 1000, "ms", 0);
    told("CPU time of a call, 30 a second, 2 threads", least[PACED] / 1000, "ms", 0);
    told("CPU time of a pause", least[PAUSES] / 1000, "ms", 0);
    return told("paced over back to back", more / least[BACK_TO_BACK], "", 1.1);
}
static double least_time(struct job *job, double least)
{
    const double taken = run(job);
    return taken > 0 && taken < least ? taken : least;
}

int main(int argc, char **argv)
{
    struct job one, two;
    if (argc != 2) {
        fprintf(stderr, "usage: bench_threads MODEL.onnx\n");
        return 2;
    }
    int missed = fork_join();
    if (!job_open(&one, argv[1], 1) || !job_open(&two, argv[1], 2)) {
        fprintf(stderr, "bench_threads: %s does not load\n", argv[1]);
        return 2;
    }
    if (run(&one) < 0 || run(&two) < 0) return 2;
    missed += idle();
    missed += paced(&two);
    double times[2] = {1e18, 1e18};
    for (int i = 0; i < TURNS; i++) {
        times[0] = least_time(&one, times[0]);
        times[1] = least_time(&two, times[1]);
    }
    told("a call, 1 thread, least", times[0] / 1000, "ms", 0);
    told("a call, 2 threads, least", times[1] / 1000, "ms", 0);
    told("scaling", times[0] / times[1], "", 0);
    job_close(&one);
    job_close(&two);
    return missed > 0;
}
