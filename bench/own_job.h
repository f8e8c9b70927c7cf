/* SPDX-License-Identifier: Apache-2.0
 * What bench/peers runs of Sardonyx: a session with its inputs, shared by the two files of
 * own_worker.
 */
#ifndef SDX_BENCH_OWN_JOB_H
#define SDX_BENCH_OWN_JOB_H

#include <sardonyx/sardonyx.h>

#include "worker.h"

struct own_job {
    sdx_context *cx;
    sdx_model *model;
    sdx_session *session;
    sdx_feed feeds[WORKER_VALUES_MAX];
    sdx_tensor *inputs[WORKER_VALUES_MAX], *outputs[WORKER_VALUES_MAX];
    int count_feeds, count_outputs;
    bool keeps[WORKER_VALUES_MAX]; /* the tensor of the last run takes the next one's output */
};

/* One run; outputs that are not kept are made anew. A worker_run_fn of a struct own_job. */
bool own_run(void *arg);

/* After a first run: prints one JSON object with "weights_mb", the memory held for weights;
 * "sessions", the share of it that a second session of the model has in common with the first; and
 * "new_shape" when the first input has open dimensions: a run in the steady state over the first
 * run of a shape not seen before (1: no dearer), the median of three shapes. Returns the exit code.
 */
int own_tell_facts(struct own_job *job);

#endif
