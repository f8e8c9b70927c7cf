/* SPDX-License-Identifier: Apache-2.0
 * The thread pool: one call, sdx_parallel_for, and the announcement of runs of many such calls. The
 * caller works too. Workers stay awake during a run (for half a millisecond between two jobs) and
 * sleep otherwise. A pool may be shared by several sessions: a caller that finds it busy runs its
 * job alone. After fork() the child's first use makes new workers. */
#ifndef SDX_BASE_THREAD_POOL_H
#define SDX_BASE_THREAD_POOL_H

#include <stdbool.h>
#include <stdint.h>

struct sdx_mem;
struct sdx_pool;

/* Who makes and ends threads in place of the system: `start` calls work(arg) in a new one and gives
 * a handle of it, NULL: there are no more; `join` returns when that work has returned. */
struct sdx_thread_source {
    void *(*start)(void (*work)(void *arg), void *arg, void *user);
    void (*join)(void *thread, void *user);
    void *user;
};

/* `threads` counts the caller. NULL: no memory. Worker threads start at the first job that needs
 * them; when the system refuses one the pool goes on with fewer. */
struct sdx_pool *sdx_pool_create(struct sdx_mem *mem, int threads);
/* The same with threads of `source`, which all start now. */
struct sdx_pool *sdx_pool_create_from(struct sdx_mem *mem, int threads,
                                      const struct sdx_thread_source *source);
void sdx_pool_destroy(struct sdx_pool *pool);      /* NULL allowed */
int sdx_pool_threads(const struct sdx_pool *pool); /* NULL: 1 */
/* Of those, at most `threads`; 0: all. */
int sdx_pool_threads_of(const struct sdx_pool *pool, int threads);

/* One part of a job. `worker` is 0 .. threads-1 and unique among the parts that run at one time: it
 * indexes scratch memory, never work. */
typedef void (*sdx_part_fn)(void *arg, int64_t part, int worker);
/* Calls fn(arg, part, worker) once for each part 0 .. count-1, in any order and place; returns when
 * all are done. Each thread begins with a range of its own, the same share of every job, so that
 * neighbouring parts of one step find in its cache what they made in the step before, and then
 * helps the others; `grain` parts are taken at a time. At most `threads` threads take part (0:
 * all). pool NULL: serial. */
void sdx_parallel_for(struct sdx_pool *pool, int threads, int64_t count, int64_t grain,
                      sdx_part_fn fn, void *arg);

/* The same, neighbouring parts in one call: fn(arg, part, end, worker) does parts part .. end - 1.
 * grain 0: a thread takes half of what is left of a range at a time, for parts that cost less
 * together, so that the last calls are short; serial, an eighth of all. */
typedef void (*sdx_range_fn)(void *arg, int64_t part, int64_t end, int worker);
void sdx_parallel_ranges(struct sdx_pool *pool, int threads, int64_t count, int64_t grain,
                         sdx_range_fn fn, void *arg);

/* Around a stretch of work with several calls of sdx_parallel_for: wakes the workers at its begin
 * and keeps them awake between the calls. `threads` as there, the same in both. For work of fewer
 * than some 50 us not worth it. Calls may overlap, also from several threads. pool NULL: nothing.
 */
void sdx_pool_run_begin(struct sdx_pool *pool, int threads);
void sdx_pool_run_end(struct sdx_pool *pool, int threads);

/* Threads this process may use: the least of SDX_THREADS (if set), the affinity mask and the cgroup
 * quota rounded up (v1 and v2); at least 1. */
int sdx_threads_available(void);
/* CPUs that the cgroup quota of this process allows, rounded up; 0: no quota. `root` goes in front
 * of /proc and /sys: "", or a folder of a test. */
int sdx_threads_quota(const char *root);

/* Monotonic clock in ns. */
int64_t sdx_clock_ns(void);
#endif
