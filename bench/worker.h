/* SPDX-License-Identifier: Apache-2.0
 * What the C workers of bench/peers share: the clock, memory, and the lines they speak. A worker is
 * started as PROGRAM MODEL_DIR THREADS; at once after its first run it prints "first", then one
 * JSON object; each line "MS" on its input makes it run once unmeasured and then again and again
 * for MS milliseconds (three runs at least), and print a JSON list of the times in us. */
#ifndef SDX_BENCH_WORKER_H
#define SDX_BENCH_WORKER_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WORKER_TIMES_MAX = 100000, WORKER_VALUES_MAX = 64, WORKER_PATH = 4096 };

static inline double worker_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

/* From /proc: what getrusage tells begins at the size of the parent. */
static inline double worker_peak_mb(void)
{
    char line[256];
    double kb = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, "VmHWM:", 6) == 0) kb = strtod(line + 6, NULL);
    if (file != NULL) fclose(file);
    return kb / 1024;
}

/* Tells bench/peers, which has the time of exec, that the first result is there. */
static inline void worker_tell_first(void)
{
    puts("first");
    fflush(stdout);
}

typedef bool worker_run_fn(void *arg); /* false: the run failed */

/* Calls short of a clock's grain are timed in groups; a group counts with its mean. */
static inline int worker_answer(worker_run_fn *run, void *arg)
{
    static double times[WORKER_TIMES_MAX];
    char line[64];
    while (fgets(line, sizeof line, stdin) != NULL) {
        double budget = strtod(line, NULL) * 1e3, begin = worker_us();
        if (!run(arg)) return 1;
        double once = worker_us() - begin;
        int group = once < 20 ? 50 : 1, count = 0;
        begin = worker_us();
        while (count < WORKER_TIMES_MAX && (count < 3 || worker_us() - begin < budget)) {
            double at = worker_us();
            for (int i = 0; i < group; i++)
                if (!run(arg)) return 1;
            times[count++] = (worker_us() - at) / group;
        }
        for (int i = 0; i < count; i++)
            printf("%s%.4f", i ? "," : "[", times[i]);
        printf("]\n");
        fflush(stdout);
    }
    return 0;
}

#endif
