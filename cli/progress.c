/* SPDX-License-Identifier: Apache-2.0
 * The progress bar. A thread of its own draws it ten times a second, so that it moves while the
 * library is busy with one long call. */
#include "progress.h"
#include "cli.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { WIDTH = 30, FIRST_MS = 1000, TICK_MS = 100 };

struct sdx_cli_progress {
    const char *title, *unit; /* unit NULL: no rate is shown */
    int64_t total;
    _Atomic int64_t done;
    double begin;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool over, drawn;
};

static void draw(struct sdx_cli_progress *p)
{
    double seconds = (sdx_cli_now_ms() - p->begin) / 1000;
    int64_t done = atomic_load(&p->done);
    char rate[80] = "";
    if (p->unit != NULL && p->total > 0)
        snprintf(rate, sizeof rate, " %s  %.1f/s", p->unit, (double)done / seconds);
    else if (p->unit != NULL)
        snprintf(rate, sizeof rate, " %lld %s  %.1f/s", (long long)done, p->unit,
                 (double)done / seconds);
    if (p->total > 0) {
        char bar[WIDTH + 1];
        int full = (int)(WIDTH * (double)done / (double)p->total);
        for (int i = 0; i < WIDTH; i++)
            bar[i] = i < full ? '#' : '.';
        bar[WIDTH] = '\0';
        fprintf(stderr, "\r\033[K%s [%s] %lld/%lld%s  %.0f s", p->title, bar, (long long)done,
                (long long)p->total, rate, seconds);
    } else {
        fprintf(stderr, "\r\033[K%s%s  %.0f s", p->title, rate, seconds);
    }
    fflush(stderr);
    p->drawn = true;
}

static void *ticker(void *argument)
{
    struct sdx_cli_progress *p = argument;
    pthread_mutex_lock(&p->lock);
    int wait_ms = FIRST_MS;
    while (!p->over) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += (long)wait_ms % 1000 * 1000000;
        until.tv_sec += wait_ms / 1000 + until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&p->wake, &p->lock, &until);
        if (!p->over && sdx_cli_now_ms() - p->begin >= FIRST_MS) draw(p);
        wait_ms = TICK_MS;
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

struct sdx_cli_progress *sdx_cli_progress_begin(const char *title, int64_t total)
{
    return sdx_cli_progress_count(title, total, NULL);
}

struct sdx_cli_progress *sdx_cli_progress_count(const char *title, int64_t total, const char *unit)
{
    if (!isatty(STDERR_FILENO)) return NULL;
    struct sdx_cli_progress *p = calloc(1, sizeof *p);
    if (p == NULL) return NULL;
    p->title = title;
    p->unit = unit;
    p->total = total;
    p->begin = sdx_cli_now_ms();
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->wake, NULL);
    if (pthread_create(&p->thread, NULL, ticker, p) != 0) {
        free(p);
        return NULL;
    }
    return p;
}

void sdx_cli_progress_set(struct sdx_cli_progress *p, int64_t done)
{
    if (p != NULL) atomic_store(&p->done, done);
}

/* With the lock held. */
static void wipe(struct sdx_cli_progress *p)
{
    if (p->drawn) {
        fputs("\r\033[K", stderr);
        fflush(stderr);
    }
    p->drawn = false;
}

void sdx_cli_progress_clear(struct sdx_cli_progress *p)
{
    if (p == NULL) return;
    pthread_mutex_lock(&p->lock);
    wipe(p);
    pthread_mutex_unlock(&p->lock);
}

void sdx_cli_progress_end(struct sdx_cli_progress *p)
{
    if (p == NULL) return;
    pthread_mutex_lock(&p->lock);
    p->over = true;
    pthread_cond_signal(&p->wake);
    pthread_mutex_unlock(&p->lock);
    pthread_join(p->thread, NULL);
    wipe(p);
    pthread_mutex_destroy(&p->lock);
    pthread_cond_destroy(&p->wake);
    free(p);
}
