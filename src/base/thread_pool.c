/* SPDX-License-Identifier: Apache-2.0
 * Fork and join. The `gate` is one word: the number of the job, how many workers it wants, whether
 * it is open, and how many workers are inside:
 *
 *     63 ............ 32 | 31 ..... 17 | 16   | 15 ..... 0
 *     number of the job  | wanted      | open | inside
 *
 * A worker enters an open gate by compare-and-swap, so it can only see the fields of the job whose
 * number it read; the caller closes the gate when no part is left and waits for those inside alone.
 * A worker that wakes too late finds the gate closed and costs nothing.
 *
 * Workers stay awake while a run is announced (sdx_pool_run_begin), and a moment after; otherwise
 * they sleep. One that is woken is first barred from its waker's processor: the scheduler would put
 * it there, where it waits until the waker is done. */
#include "base/thread_pool.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>

#include "base/compiler.h"
#include "base/mem.h"

enum {
    THREADS_MOST = 1024,
    SPIN_NS = 30000,      /* awake after a job or run: waking takes about as long */
    SPIN_RUN_NS = 500000, /* awake within a run: most steps that run on one thread are shorter */
    STACK = 1 << 20,
    SERIAL_CALLS = 8 /* of a range function: so often it can look whether to go on */
};

#define GATE_INSIDE UINT64_C(0xffff)
#define GATE_OPEN   (UINT64_C(1) << 16)
#define GATE_WANTED 17
#define GATE_JOB    32

/* Parts `next` .. `end` - 1 of the job, which one thread takes first. */
struct range {
    _Alignas(64) atomic_llong next;
    int64_t end;
};

struct worker {
    struct range range;
    pthread_t thread;
    void *handle; /* of the pool's source, if it has one */
    struct sdx_pool *pool;
    int index;  /* 1 .. threads-1 */
    int barred; /* processor it may not use, -1: none; of the holder of the pool's lock */
    atomic_bool asleep;
    pthread_mutex_t mutex;
    pthread_cond_t wake;
};

struct sdx_pool {
    struct sdx_mem *mem;
    struct sdx_thread_source source; /* start NULL: the system */
    int threads;                     /* the caller included */
    int started;                     /* workers that run; only the holder of `lock` looks */
    bool refused;                    /* the system gave no more threads */
    bool may_spin;     /* false where threads outnumber processors: spinning would keep them off */
    atomic_uint lock;  /* forks seen * 2 + held: see take_lock */
    atomic_uint calls; /* runs announced: sleepers look whether it changed */
    atomic_uint_least64_t runs; /* forks seen << 32 | runs under way */
    atomic_bool quit;
    atomic_bool caller_asleep;
    pthread_mutex_t mutex; /* of `left` */
    pthread_cond_t left;
    /* The job; written by the caller while the gate is closed and nobody is inside. */
    sdx_range_fn fn;
    void *arg;
    int64_t grain; /* parts at a time; 0: half of what is left */
    int team;      /* threads that have a range of it */
    _Alignas(64) atomic_uint_least64_t gate;
    struct range range; /* the caller's */
    struct worker workers[];
};

/* Forks that led to this process. A child has none of its parent's threads. */
static atomic_uint forks;

static void note_fork(void)
{
    atomic_fetch_add(&forks, 1);
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, note_fork);
}

static void init_sync(struct sdx_pool *pool)
{
    pthread_mutex_init(&pool->mutex, NULL);
    pthread_cond_init(&pool->left, NULL);
    for (int i = 0; i < pool->threads - 1; i++) {
        struct worker *worker = &pool->workers[i];
        worker->pool = pool;
        worker->index = i + 1;
        worker->barred = -1;
        atomic_init(&worker->asleep, false);
        pthread_mutex_init(&worker->mutex, NULL);
        pthread_cond_init(&worker->wake, NULL);
    }
}

struct sdx_pool *sdx_pool_create(struct sdx_mem *mem, int threads)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
    if (threads < 1) threads = 1;
    if (threads > THREADS_MOST) threads = THREADS_MOST;
    size_t size = sizeof(struct sdx_pool) + (size_t)(threads - 1) * sizeof(struct worker);
    struct sdx_pool *pool = sdx_mem_calloc(mem, SDX_MEM_OTHER, 1, size);
    if (pool == NULL) return NULL;
    pool->mem = mem;
    pool->threads = threads;
    pool->may_spin = threads <= sdx_threads_available();
    atomic_init(&pool->lock, atomic_load(&forks) * 2);
    atomic_init(&pool->calls, 0);
    atomic_init(&pool->runs, 0);
    atomic_init(&pool->quit, false);
    atomic_init(&pool->caller_asleep, false);
    atomic_init(&pool->gate, 0);
    init_sync(pool);
    return pool;
}

int sdx_pool_threads(const struct sdx_pool *pool)
{
    return pool != NULL ? pool->threads : 1;
}
int sdx_pool_threads_of(const struct sdx_pool *pool, int threads)
{
    const int all = sdx_pool_threads(pool);
    return threads > 0 && threads < all ? threads : all;
}

static struct range *range_of(struct sdx_pool *pool, int index)
{
    return index ? &pool->workers[index - 1].range : &pool->range;
}

/* Takes some parts of the range, *from .. *to - 1; false: none are left. */
static bool take_parts(struct range *range, int64_t grain, long long *from, long long *to)
{
    if (grain > 0) {
        *from = atomic_fetch_add_explicit(&range->next, grain, memory_order_relaxed);
        *to = range->end - *from < grain ? range->end : *from + grain;
        return *from < range->end;
    }
    *from = atomic_load_explicit(&range->next, memory_order_relaxed);
    do {
        if (*from >= range->end) return false;
        *to = *from + (range->end - *from + 1) / 2;
    } while (!atomic_compare_exchange_weak_explicit(&range->next, from, *to, memory_order_relaxed,
                                                    memory_order_relaxed));
    return true;
}

/* The thread's own range, then what is left of the others'. */
static void run_parts(struct sdx_pool *pool, int index)
{
    long long from, to;
    for (int i = 0; i < pool->team; i++)
        while (take_parts(range_of(pool, (index + i) % pool->team), pool->grain, &from, &to))
            pool->fn(pool->arg, from, to, index);
}

/* Ranges of about as many chunks of `size` parts. */
static void share_parts(struct sdx_pool *pool, int64_t count, int64_t size, int64_t chunks)
{
    for (int i = 0; i < pool->team; i++) {
        struct range *range = range_of(pool, i);
        const int64_t end = chunks * (i + 1) / pool->team * size;
        atomic_store_explicit(&range->next, chunks * i / pool->team * size, memory_order_relaxed);
        range->end = end < count ? end : count;
    }
}

static void leave(struct sdx_pool *pool)
{
    uint64_t gate = atomic_fetch_sub(&pool->gate, 1);
    if ((gate & GATE_INSIDE) == 1 && !(gate & GATE_OPEN) && atomic_load(&pool->caller_asleep)) {
        pthread_mutex_lock(&pool->mutex);
        pthread_cond_signal(&pool->left);
        pthread_mutex_unlock(&pool->mutex);
    }
}

static bool is_called(const struct worker *worker, uint64_t gate, uint32_t last_job)
{
    return (gate & GATE_OPEN) && (uint32_t)(gate >> GATE_JOB) != last_job &&
           (int)((gate & 0xffffffffU) >> GATE_WANTED) >= worker->index;
}

enum wait { WAIT_ON, WAIT_JOB, WAIT_END };

static bool run_is_on(const struct sdx_pool *pool)
{
    return (uint32_t)atomic_load_explicit(&pool->runs, memory_order_relaxed) != 0;
}

/* Looks for a job without sleeping: for a while within a run, a moment after it. */
static enum wait spin_for_job(struct worker *worker, uint32_t last_job, uint64_t *gate)
{
    struct sdx_pool *pool = worker->pool;
    int64_t begin = pool->may_spin ? sdx_clock_ns() : 0, now = begin;
    bool was_on = false, is_on = false;
    do {
        for (int i = 0; i < 64; i++) {
            *gate = atomic_load(&pool->gate);
            if (is_called(worker, *gate, last_job)) return WAIT_JOB;
            if (atomic_load_explicit(&pool->quit, memory_order_acquire)) return WAIT_END;
            SDX_SPIN_HINT();
        }
        if (!pool->may_spin) return WAIT_ON;
        now = sdx_clock_ns();
        is_on = run_is_on(pool);
        if (was_on && !is_on) begin = now;
        was_on = is_on;
    } while (now - begin < (is_on ? SPIN_RUN_NS : SPIN_NS));
    return WAIT_ON;
}

/* Sleeps until there is a job, a run is announced (`calls` changes) or the pool ends. */
static enum wait sleep_for_job(struct worker *worker, uint32_t last_job, unsigned calls,
                               uint64_t *gate)
{
    struct sdx_pool *pool = worker->pool;
    enum wait found = WAIT_ON;
    pthread_mutex_lock(&worker->mutex);
    atomic_store(&worker->asleep, true); /* before the last look: see wake_workers */
    for (;;) {
        *gate = atomic_load(&pool->gate);
        if (atomic_load(&pool->quit))
            found = WAIT_END;
        else if (is_called(worker, *gate, last_job))
            found = WAIT_JOB;
        else if (atomic_load(&pool->calls) == calls) {
            pthread_cond_wait(&worker->wake, &worker->mutex);
            continue;
        }
        break;
    }
    atomic_store(&worker->asleep, false);
    pthread_mutex_unlock(&worker->mutex);
    return found;
}

/* false: the end. */
static bool wait_for_job(struct worker *worker, uint32_t last_job, uint64_t *gate)
{
    enum wait found = WAIT_ON;
    while (found == WAIT_ON) {
        unsigned calls = atomic_load(&worker->pool->calls);
        found = spin_for_job(worker, last_job, gate);
        if (found == WAIT_ON) found = sleep_for_job(worker, last_job, calls, gate);
    }
    return found == WAIT_JOB;
}

static void *work(void *arg)
{
    struct worker *worker = arg;
    struct sdx_pool *pool = worker->pool;
    uint32_t last_job = 0;
    uint64_t gate;
    while (wait_for_job(worker, last_job, &gate)) {
        if (!atomic_compare_exchange_weak(&pool->gate, &gate, gate + 1)) continue;
        last_job = (uint32_t)(gate >> GATE_JOB);
        run_parts(pool, worker->index);
        leave(pool);
    }
    return NULL;
}

static void work_from(void *arg)
{
    work(arg);
}

static bool start_from(const struct sdx_thread_source *source, struct worker *worker)
{
    worker->handle = source->start(work_from, worker, source->user);
    return worker->handle != NULL;
}

static void start_workers(struct sdx_pool *pool, int wanted)
{
    if (pool->started >= wanted || pool->refused) return;
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK);
    sigset_t all, before; /* signals are for the program's own threads */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (pool->started < wanted && !pool->refused) {
        struct worker *worker = &pool->workers[pool->started];
        if (pool->source.start ? start_from(&pool->source, worker)
                               : pthread_create(&worker->thread, &attr, work, worker) == 0)
            pool->started++;
        else
            pool->refused = true;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
}

/* Keeps a worker off the processor that this thread runs on. */
static void bar_processor(struct worker *worker)
{
#if defined(__linux__)
    int cpu = sched_getcpu();
    cpu_set_t set;
    if (cpu < 0 || cpu >= CPU_SETSIZE || worker->barred == cpu || worker->handle) return;
    if (sched_getaffinity(0, sizeof set, &set) != 0) return;
    CPU_CLR(cpu, &set);
    if (CPU_COUNT(&set) == 0) return;
    if (pthread_setaffinity_np(worker->thread, sizeof set, &set) == 0) worker->barred = cpu;
#else
    (void)worker;
#endif
}

static void wake_worker(struct worker *worker)
{
    pthread_mutex_lock(&worker->mutex);
    pthread_cond_signal(&worker->wake);
    pthread_mutex_unlock(&worker->mutex);
}

/* A worker says that it sleeps and then looks at the gate and the calls; we changed one of those
 * and then look who sleeps: one of the two sees the other. */
static void wake_workers(struct sdx_pool *pool, int wanted)
{
    for (int i = 0; i < wanted; i++) {
        if (!atomic_load(&pool->workers[i].asleep)) continue;
        bar_processor(&pool->workers[i]);
        wake_worker(&pool->workers[i]);
    }
}

static void wait_for_workers(struct sdx_pool *pool)
{
    int64_t limit = run_is_on(pool) ? SPIN_RUN_NS : SPIN_NS, until = 0;
    do {
        for (int i = 0; i < 64; i++) {
            if ((atomic_load(&pool->gate) & GATE_INSIDE) == 0) return;
            SDX_SPIN_HINT();
        }
        if (!pool->may_spin) break;
        if (until == 0) until = sdx_clock_ns() + limit;
    } while (sdx_clock_ns() < until);
    pthread_mutex_lock(&pool->mutex);
    atomic_store(&pool->caller_asleep, true);
    while ((atomic_load(&pool->gate) & GATE_INSIDE) != 0)
        pthread_cond_wait(&pool->left, &pool->mutex);
    atomic_store(&pool->caller_asleep, false);
    pthread_mutex_unlock(&pool->mutex);
}

/* One job at a time. The lock remembers the forks seen, so a child process takes over a lock that a
 * thread it does not have was holding, and learns that there are no workers. */
static bool take_lock(struct sdx_pool *pool)
{
    unsigned seen = atomic_load(&forks) * 2;
    unsigned lock = atomic_load(&pool->lock);
    bool is_child = (lock & ~1U) != seen;
    if ((!is_child && (lock & 1U)) || !atomic_compare_exchange_strong(&pool->lock, &lock, seen | 1))
        return false;
    if (is_child) {
        pool->started = 0;
        pool->refused = false;
        atomic_store(&pool->caller_asleep, false);
        atomic_fetch_and(&pool->gate, ~UINT64_C(0xffffffff));
        init_sync(pool);
    }
    return true;
}

static void give_lock(struct sdx_pool *pool)
{
    atomic_fetch_and(&pool->lock, ~1U);
}

/* Adds to the number of runs under way. A count of the process that this one was forked from is
 * worth nothing. */
static void count_run(struct sdx_pool *pool, int change)
{
    uint64_t seen = atomic_load(&forks), runs = atomic_load(&pool->runs), next;
    do {
        uint32_t count = runs >> 32 == seen ? (uint32_t)runs : 0;
        if (change < 0 && count == 0) return;
        next = seen << 32 | (uint32_t)(count + (uint32_t)change);
    } while (!atomic_compare_exchange_weak(&pool->runs, &runs, next));
}

void sdx_pool_run_begin(struct sdx_pool *pool, int threads)
{
    const int wanted = sdx_pool_threads_of(pool, threads);
    if (wanted < 2) return;
    count_run(pool, 1);
    if (!take_lock(pool)) return; /* whoever has it keeps the workers awake */
    start_workers(pool, wanted - 1);
    atomic_fetch_add(&pool->calls, 1);
    wake_workers(pool, wanted - 1 < pool->started ? wanted - 1 : pool->started);
    give_lock(pool);
}

void sdx_pool_run_end(struct sdx_pool *pool, int threads)
{
    if (sdx_pool_threads(pool) > 1 && threads != 1) count_run(pool, -1);
}

void sdx_parallel_ranges(struct sdx_pool *pool, int threads, int64_t count, int64_t grain,
                         sdx_range_fn fn, void *arg)
{
    const int64_t size = grain > 0 ? grain : 1, chunks = count / size + (count % size != 0);
    int64_t wanted = sdx_pool_threads_of(pool, threads);
    if (chunks < wanted) wanted = chunks;
    if (wanted < 2 || !take_lock(pool)) {
        const int64_t some = grain > 0 ? grain : (count + SERIAL_CALLS - 1) / SERIAL_CALLS;
        for (int64_t part = 0; part < count; part += some)
            fn(arg, part, count - part < some ? count : part + some, 0);
        return;
    }
    start_workers(pool, (int)wanted - 1);
    int helpers = (int)wanted - 1 < pool->started ? (int)wanted - 1 : pool->started;
    pool->fn = fn;
    pool->arg = arg;
    pool->grain = grain;
    pool->team = helpers + 1;
    share_parts(pool, count, size, chunks);
    uint32_t job = (uint32_t)(atomic_load(&pool->gate) >> GATE_JOB) + 1;
    if (job == 0) job = 1; /* 0 is what a new worker has seen last */
    atomic_store(&pool->gate,
                 (uint64_t)job << GATE_JOB | (uint64_t)helpers << GATE_WANTED | GATE_OPEN);
    wake_workers(pool, helpers);
    run_parts(pool, 0);
    atomic_fetch_and(&pool->gate, ~GATE_OPEN);
    wait_for_workers(pool);
    give_lock(pool);
}

struct each {
    sdx_part_fn fn;
    void *arg;
};

static void run_each(void *arg, int64_t part, int64_t end, int worker)
{
    const struct each *each = arg;
    for (; part < end; part++)
        each->fn(each->arg, part, worker);
}

void sdx_parallel_for(struct sdx_pool *pool, int threads, int64_t count, int64_t grain,
                      sdx_part_fn fn, void *arg)
{
    struct each each = {fn, arg};
    sdx_parallel_ranges(pool, threads, count, grain < 1 ? 1 : grain, run_each, &each);
}

struct sdx_pool *sdx_pool_create_from(struct sdx_mem *mem, int threads,
                                      const struct sdx_thread_source *source)
{
    struct sdx_pool *pool = sdx_pool_create(mem, threads);
    if (!pool) return NULL;
    pool->source = *source;
    start_workers(pool, pool->threads - 1);
    return pool;
}

void sdx_pool_destroy(struct sdx_pool *pool)
{
    if (pool == NULL) return;
    bool is_child = (atomic_load(&pool->lock) & ~1U) != atomic_load(&forks) * 2;
    if (!is_child) {
        atomic_store(&pool->quit, true);
        for (int i = 0; i < pool->started; i++)
            wake_worker(&pool->workers[i]);
        for (int i = 0; i < pool->started; i++)
            if (pool->source.start)
                pool->source.join(pool->workers[i].handle, pool->source.user);
            else
                pthread_join(pool->workers[i].thread, NULL);
        for (int i = 0; i < pool->threads - 1; i++) {
            pthread_mutex_destroy(&pool->workers[i].mutex);
            pthread_cond_destroy(&pool->workers[i].wake);
        }
        pthread_mutex_destroy(&pool->mutex);
        pthread_cond_destroy(&pool->left);
    }
    sdx_mem_free(pool->mem, pool);
}
