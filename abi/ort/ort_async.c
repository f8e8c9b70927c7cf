/* SPDX-License-Identifier: Apache-2.0
 * Runs in the background, and copies of tensors. */
#include "ort_objects.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* A run that was asked for: names are copied, input values retained, outputs the caller's. */
struct pending {
    OrtSession *session;
    const OrtRunOptions *options;
    char **input_names, **output_names;
    OrtValue **inputs, **outputs;
    size_t count_inputs, count_outputs;
    RunAsyncCallbackFn done;
    void *user;
};

static void free_names(char **names, size_t count)
{
    for (size_t i = 0; names && i < count; i++)
        free(names[i]);
    free(names);
}

static void free_pending(struct pending *run)
{
    for (size_t i = 0; run->inputs && i < run->count_inputs; i++)
        ort_value_release(run->inputs[i]);
    free(run->inputs);
    free_names(run->input_names, run->count_inputs);
    free_names(run->output_names, run->count_outputs);
    free(run);
}

static void *run_pending(void *argument)
{
    struct pending *run = argument;
    OrtStatusPtr failed =
        ort_run(run->session, run->options, (const char *const *)run->input_names,
                (const OrtValue *const *)run->inputs, run->count_inputs,
                (const char *const *)run->output_names, run->count_outputs, run->outputs);
    run->done(run->user, failed ? NULL : run->outputs, failed ? 0 : run->count_outputs, failed);
    free_pending(run);
    return NULL;
}

static OrtStatusPtr copy_names(const char *const *names, size_t count, char ***out)
{
    *out = calloc(count + 1, sizeof **out);
    if (!*out) return ort_no_memory();
    for (size_t i = 0; i < count; i++)
        ORT_TRY(ort_set_text(&(*out)[i], names[i]));
    return NULL;
}

static OrtStatusPtr fill_pending(struct pending *run, const char *const *input_names,
                                 const OrtValue *const *inputs, const char *const *output_names)
{
    ORT_TRY(copy_names(input_names, run->count_inputs, &run->input_names));
    ORT_TRY(copy_names(output_names, run->count_outputs, &run->output_names));
    run->inputs = calloc(run->count_inputs + 1, sizeof(OrtValue *));
    if (!run->inputs) return ort_no_memory();
    for (size_t i = 0; i < run->count_inputs; i++)
        run->inputs[i] = inputs[i] ? ort_value_retain(inputs[i]) : NULL;
    return NULL;
}

static OrtStatusPtr start(struct pending *run)
{
    pthread_t thread;
    pthread_attr_t detached;
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    const int failed = pthread_create(&thread, &detached, run_pending, run);
    pthread_attr_destroy(&detached);
    return failed ? ort_fail(ORT_FAIL, "no thread for RunAsync: %s", strerror(failed)) : NULL;
}

/* A thread of its own carries the run; it needs a session that may have more than the caller's. */
static OrtStatusPtr run_async(OrtSession *session, const OrtRunOptions *options,
                              const char *const *input_names, const OrtValue *const *inputs,
                              size_t count_inputs, const char *const *output_names,
                              size_t count_outputs, OrtValue **outputs, RunAsyncCallbackFn done,
                              void *user)
{
    if (session->engine.threads == 1)
        return ort_fail(ORT_INVALID_ARGUMENT,
                        "intra op thread pool must have at least one thread for RunAsync");
    struct pending *run = calloc(1, sizeof *run);
    if (!run) return ort_no_memory();
    *run = (struct pending){.session = session,
                            .options = options,
                            .outputs = outputs,
                            .count_inputs = count_inputs,
                            .count_outputs = count_outputs,
                            .done = done,
                            .user = user};
    OrtStatusPtr failed = fill_pending(run, input_names, inputs, output_names);
    if (!failed) failed = start(run);
    if (failed) free_pending(run);
    return failed;
}

static OrtStatusPtr copy_tensor(const OrtValue *from, OrtValue *to)
{
    sdx_tensor *a = NULL, *b = NULL;
    ORT_TRY(ort_need_tensor(from, &a));
    ORT_TRY(ort_need_tensor(to, &b));
    const int rank = sdx_tensor_rank(a);
    const size_t dims = (size_t)rank * sizeof(int64_t);
    if (sdx_tensor_dtype(a) != sdx_tensor_dtype(b))
        return ort_fail(ORT_INVALID_ARGUMENT, "Tensor type mismatch. %s!=%s",
                        sdx_dtype_name(sdx_tensor_dtype(a)), sdx_dtype_name(sdx_tensor_dtype(b)));
    if (rank != sdx_tensor_rank(b) || memcmp(sdx_tensor_dims(a), sdx_tensor_dims(b), dims) != 0)
        return ort_fail(ORT_INVALID_ARGUMENT, "Tensor size mismatch");
    if (sdx_tensor_dtype(a) == SDX_STRING)
        return ort_fail(ORT_NOT_IMPLEMENTED, "CopyTensors does not copy strings");
    memmove(sdx_tensor_data(b), sdx_tensor_const_data(a), sdx_tensor_bytes(a));
    return NULL;
}

static OrtStatusPtr copy_tensors(const OrtEnv *env, const OrtValue *const *from,
                                 OrtValue *const *to, OrtSyncStream *stream, size_t count)
{
    (void)stream;
    if (!env || !from || !to || count == 0)
        return ort_fail(ORT_INVALID_ARGUMENT, "Invalid arguments provided to CopyTensors.");
    for (size_t i = 0; i < count; i++)
        ORT_TRY(copy_tensor(from[i], to[i]));
    return NULL;
}

void ort_fill_async(OrtApi *api)
{
    api->RunAsync = run_async;
    api->CopyTensors = copy_tensors;
}
