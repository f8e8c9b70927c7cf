/* SPDX-License-Identifier: Apache-2.0
 * What runs a model besides the engine: the execution providers of an ONNX Runtime library that is
 * opened at run time. provider_library.c opens it, provider_list.c starts what a list of names asks
 * for, provider_session.c runs, provider_value.c carries values over and back. */
#ifndef SDX_PROVIDER_PROVIDER_H
#define SDX_PROVIDER_PROVIDER_H

#include "base/module.h"
#include "run/session.h"
#include "sardonyx/ort.h"

#define SDX_PROVIDER_OWN "CPUExecutionProvider"
#define SDX_PROVIDER_CPU "ort:CPUExecutionProvider" /* that of the library */

enum { SDX_PROVIDERS = 16, SDX_PROVIDER_NAME = 48 }; /* in one session */

struct sdx_ort_library {
    const OrtApi *api; /* NULL: not opened */
    OrtEnv *env;
    const char *version;
    uint32_t release; /* of `api`: 30 is 1.30's */
    char path[SDX_MODULE_PATH];
};

/* `given`: path; NULL: the usual ones. Closing leaves the library itself in the process, which has
 * threads and more. */
SDX_MUST_CHECK enum sdx_status sdx_ort_open(struct sdx_context *cx, const char *given,
                                            struct sdx_ort_library *out);
void sdx_ort_close(struct sdx_ort_library *library);
/* The library's status as ours, with its text, behind "where: " unless that is NULL; takes `from`.
 */
SDX_MUST_CHECK enum sdx_status sdx_ort_status(const struct sdx_ort_library *library,
                                              struct sdx_context *cx, const char *where,
                                              OrtStatusPtr from);

/* A session of the library. Sessions of ours that run in several threads may have one in common. */
struct sdx_remote {
    atomic_int refs;
    struct sdx_ort_library library;
    OrtSessionOptions *options;
    OrtSession *session;
    OrtMemoryInfo *memory;
    OrtAllocator *allocator;
    OrtValue **given; /* initializers, as long as the session */
    int count_given;
    bool is_lenient;  /* what cannot be is told of, and the engine may run the model if ... */
    bool own_is_next; /* ... it is behind in the list */
    int count;
    char names[SDX_PROVIDERS][SDX_PROVIDER_NAME];
};

/* A session of what starts of the list, or that of the sibling; *out NULL: the engine is to run the
 * model. */
SDX_MUST_CHECK enum sdx_status sdx_remote_open(struct sdx_context *cx, struct sdx_model *model,
                                               const struct sdx_session_options *options,
                                               struct sdx_session **out);
void sdx_remote_close(struct sdx_session *session);
SDX_MUST_CHECK enum sdx_status sdx_remote_run(struct sdx_session *s, int count_feeds,
                                              const struct sdx_feed *feeds, int count_outputs,
                                              const char *const *names,
                                              struct sdx_tensor **outputs);
void sdx_remote_cancel(struct sdx_session *session);
SDX_MUST_CHECK enum sdx_status sdx_remote_list(struct sdx_context *cx, const char *given,
                                               sdx_provider_fn each, void *user);

/* Session options of the library with the providers that `options` asks for and that start. Those
 * that do not are failures, or are told of where `options` allows it. remote->count 0: none is
 * left but the engine. */
SDX_MUST_CHECK enum sdx_status sdx_remote_choose(struct sdx_context *cx,
                                                 const struct sdx_session_options *options,
                                                 struct sdx_remote *remote);

/* Makes a session of a model of one node with these options. */
SDX_MUST_CHECK enum sdx_status sdx_remote_probe(const struct sdx_ort_library *library,
                                                struct sdx_context *cx, const char *where,
                                                const OrtSessionOptions *options);
/* Fails when what the options ask for does not start. */
SDX_MUST_CHECK enum sdx_status sdx_remote_try(struct sdx_context *cx,
                                              const struct sdx_session_options *options);

/* provider_given.c: hands on what the options of the model brought; *level is lowered where the
 * library's passes would not see it. */
SDX_MUST_CHECK enum sdx_status sdx_remote_give(struct sdx_context *cx, struct sdx_model *model,
                                               struct sdx_remote *remote, sdx_level *level);

/* A value over `from`'s memory (strings are copied), of rank 0 where that says so. */
SDX_MUST_CHECK enum sdx_status sdx_remote_value(struct sdx_context *cx,
                                                const struct sdx_remote *remote,
                                                const struct sdx_tensor *from, int rank,
                                                OrtValue **out);
/* A copy of `from`; kind and dtype: what the model says it is. */
SDX_MUST_CHECK enum sdx_status sdx_remote_tensor(struct sdx_context *cx,
                                                 const struct sdx_remote *remote,
                                                 const OrtValue *from, int kind, int dtype,
                                                 struct sdx_tensor **out);
#endif
