/* SPDX-License-Identifier: Apache-2.0
 * BENCH: the time of a function of vec.h on one row. */
#ifndef SDX_TESTS_TIMED_ROW_H
#define SDX_TESTS_TIMED_ROW_H

#include "kernelcheck.h"

static float *random_row(size_t n, float lo, float hi, size_t offset)
{
    float *x = guarded(n * 4, offset);
    for (size_t i = 0; i < n; i++)
        x[i] = random_float(lo, hi);
    return x;
}

enum { TIMED = 4096, TURNS = 16 };
static float *timed_x, *timed_y;
static void *timed_bytes;
#define BENCH(name, call)                                                                          \
    static void timed_##name(void *arg)                                                            \
    {                                                                                              \
        (void)arg;                                                                                 \
        for (int turn = 0; turn < TURNS; turn++)                                                   \
            call;                                                                                  \
    }                                                                                              \
    double bench_##name(void)                                                                      \
    {                                                                                              \
        timed_x = random_row(TIMED, -3, 3, 0);                                                     \
        timed_y = random_row(TIMED, -3, 3, 0);                                                     \
        timed_bytes = random_row(TIMED, -3, 3, 0);                                                 \
        return best_ns(timed_##name, NULL) / ((double)TURNS * TIMED);                              \
    }

#endif
