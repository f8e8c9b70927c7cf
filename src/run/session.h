/* SPDX-License-Identifier: Apache-2.0
 * A session: a runner of the model's main graph with its own error text, memory counter and plans;
 * once an input that has an initializer is fed, or two lengths of one name differ, another one of
 * the open graph. Used by one thread at a time; sdx_cancel by any. */
#ifndef SDX_RUN_SESSION_H
#define SDX_RUN_SESSION_H

#include "run/model.h"
#include "run/profile.h"
#include "run/runner.h"

/* An axis of an input, and the first one that has its name. */
struct sdx_alike {
    int32_t input, axis, first, first_axis;
};

struct sdx_session {
    struct sdx_context cx;
    struct sdx_context results_cx; /* of the creator's memory */
    struct sdx_context *user;      /* the creator's context also gets the error texts */
    struct sdx_mem mem;
    struct sdx_pool *own_pool; /* when more threads were asked for than the context's pool has */
    struct sdx_model *model;
    sdx_level level;
    atomic_int cancel;
    struct sdx_session_graph {
        struct sdx_run_shared shared;
        struct sdx_runner runner;
    } graph, *open_graph; /* NULL: was not needed yet */
    struct sdx_profile profile;
    const struct sdx_tensor **feeds; /* room for one an input of the model */
    struct sdx_tensor **stand_ins; /* of feeds: scalars for arrays of one element, packed copies */
    struct sdx_tensor **results;
    bool *wanted;
    int32_t *feed_order, *output_order; /* index of the feed and output named there last */
    struct sdx_map input_index, output_index;
    struct sdx_alike *alike; /* axes of inputs with a name that an earlier axis has */
    int32_t count_alike;
    bool cancel_holds;
    struct sdx_remote *remote;        /* runs it instead of `runner` (src/provider); NULL: none */
    struct OrtRunOptions *remote_run; /* of its runs there */
};

/* Without plans and names yet; sdx_session_close ends it. NULL: no memory. */
struct sdx_session *sdx_session_new(struct sdx_context *cx, struct sdx_model *model,
                                    size_t memory_limit);
/* Does a fed value fit what the model declares (info NULL: it has no such input)? */
SDX_MUST_CHECK enum sdx_status sdx_session_check_feed(struct sdx_session *s,
                                                      const struct sdx_value_info *info,
                                                      const struct sdx_feed *feed);

SDX_MUST_CHECK enum sdx_status sdx_session_open(struct sdx_context *cx, struct sdx_model *model,
                                                const struct sdx_session_options *options,
                                                struct sdx_session **out);
void sdx_session_close(struct sdx_session *session);
SDX_MUST_CHECK enum sdx_status sdx_session_run(struct sdx_session *s, int count_feeds,
                                               const struct sdx_feed *feeds, int count_outputs,
                                               const char *const *names,
                                               struct sdx_tensor **outputs);
#endif
