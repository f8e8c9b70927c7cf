/* SPDX-License-Identifier: Apache-2.0
 * What the fuzzers of models and of plans do with a session that could be made: run it on zeros. A
 * failure must have a text and leave no outputs behind. */
#ifndef SDX_FUZZ_RUN_ON_ZEROS_H
#define SDX_FUZZ_RUN_ON_ZEROS_H

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include <sardonyx/sardonyx.h>

enum { INPUTS_MAX = 8, OUTPUTS_MAX = 16, COUNT_MAX = 4096 };

/* The session that runs and since when, for the thread that cancels it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static sdx_session *running;
static int64_t since_ms;

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void *cancel_late(void *arg)
{
    (void)arg;
    for (;;) {
        nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
        pthread_mutex_lock(&lock);
        if (running && now_ms() - since_ms > 1000) sdx_cancel(running);
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

static void watch(sdx_session *session)
{
    pthread_mutex_lock(&lock);
    running = session;
    since_ms = now_ms();
    pthread_mutex_unlock(&lock);
}

/* Zeros of the declared type, unknown lengths 2, unknown ranks 1; NULL for what is not a small
 * tensor. */
static sdx_tensor *zeros(sdx_context *cx, const sdx_value_info *info)
{
    int64_t dims[8] = {2}, count = 1;
    int rank = info->rank < 0 ? 1 : info->rank;
    sdx_tensor *t = NULL;
    if (info->kind != SDX_KIND_TENSOR || rank > 8) return NULL;
    for (int d = 0; d < info->rank; d++)
        dims[d] = info->dims[d] < 0 ? 2 : info->dims[d];
    for (int d = 0; d < rank; d++) {
        if (dims[d] > COUNT_MAX) return NULL;
        count *= dims[d];
        if (count > COUNT_MAX) return NULL;
    }
    if (sdx_tensor_create(cx, info->dtype, rank, dims, &t)) return NULL;
    return t;
}

/* Runs the session once; a run is cancelled after a second. */
static void run_on_zeros(sdx_context *cx, const sdx_model *model, sdx_session *session)
{
    static bool watched;
    pthread_t thread;
    if (!watched && pthread_create(&thread, NULL, cancel_late, NULL)) abort();
    watched = true;
    sdx_tensor *in[INPUTS_MAX] = {0}, *out[OUTPUTS_MAX] = {0};
    sdx_feed feeds[INPUTS_MAX];
    int count_in = sdx_model_count_inputs(model), count_out = sdx_model_count_outputs(model);
    if (count_in > INPUTS_MAX || count_out > OUTPUTS_MAX) return;
    int count = 0;
    bool whole = true;
    for (int i = 0; i < count_in; i++) {
        const sdx_value_info *info = sdx_model_input(model, i);
        if (info->optional) continue;
        in[i] = zeros(cx, info);
        whole = whole && in[i];
        feeds[count++] = (sdx_feed){info->name, in[i]};
    }
    if (whole) {
        watch(session);
        sdx_status status = sdx_run(session, count, feeds, count_out, NULL, out);
        watch(NULL);
        if (status != SDX_OK && sdx_error(cx)[0] == 0) abort();
        if (status == SDX_INTERNAL) abort();
        for (int i = 0; i < count_out; i++)
            if ((status == SDX_OK) != (out[i] != NULL)) abort();
    }
    for (int i = 0; i < count_out; i++)
        sdx_tensor_destroy(out[i]);
    for (int i = 0; i < count_in; i++)
        sdx_tensor_destroy(in[i]);
}
#endif
