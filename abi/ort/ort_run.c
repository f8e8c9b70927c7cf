/* SPDX-License-Identifier: Apache-2.0
 * Runs: checks in the order and with the words of the real library, then the engine. */
#include "ort_objects.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FEW = 16, TYPE_TEXT = 256 };

/* What a call needs besides its arguments. */
struct call {
    sdx_feed *feeds;
    sdx_tensor **results;
    sdx_feed few_feeds[FEW];
    sdx_tensor *few_results[FEW];
};

/* ---- checks ---- */

/* Adds to the message about the dimensions of an input, the first time its head too. */
static void add_dim(char *text, size_t size, const char *name, int axis, int64_t got,
                    int64_t expected)
{
    size_t length = strlen(text);
    if (!length)
        length = (size_t)snprintf(
            text, size, "Got invalid dimensions for input: %s for the following indices", name);
    if (length < size)
        snprintf(text + length, size - length, "\n index: %d Got: %lld Expected: %lld", axis,
                 (long long)got, (long long)expected);
}

static OrtStatusPtr check_dims(const sdx_value_info *info, const sdx_tensor *tensor)
{
    const int rank = sdx_tensor_rank(tensor);
    if (info->rank < 0) return NULL;
    if (rank != info->rank)
        return ort_fail(ORT_INVALID_ARGUMENT,
                        "Invalid rank for input: %s Got: %d Expected: %d Please fix either the "
                        "inputs/outputs or the model.",
                        info->name, rank, info->rank);
    const int64_t *dims = sdx_tensor_dims(tensor);
    bool fits = true;
    for (int i = 0; i < rank; i++)
        fits = fits && (info->dims[i] < 0 || info->dims[i] == dims[i]);
    if (fits) return NULL;
    char text[2048] = "";
    for (int i = 0; i < rank; i++)
        if (info->dims[i] >= 0 && info->dims[i] != dims[i])
            add_dim(text, sizeof text, info->name, i, dims[i], info->dims[i]);
    return ort_fail(ORT_INVALID_ARGUMENT, "%s\n Please fix either the inputs/outputs or the model.",
                    text);
}

static OrtStatusPtr wrong_type(const char *what, const sdx_value_info *info,
                               const sdx_tensor *tensor)
{
    char actual[TYPE_TEXT], expected[TYPE_TEXT];
    return ort_fail(ORT_INVALID_ARGUMENT, "Unexpected %s data type. Actual: (%s) , expected: (%s)",
                    what, ort_tensor_type_text(tensor, actual, sizeof actual),
                    ort_type_text(info, expected, sizeof expected));
}

/* Is the value of the type that the model declares? Of sequences and maps the kind is looked at. */
static bool type_fits(const sdx_value_info *info, const sdx_tensor *tensor)
{
    const sdx_kind kind = sdx_tensor_kind(tensor);
    if (info->kind == SDX_KIND_OPTIONAL && info->elem) return type_fits(info->elem, tensor);
    if (info->kind == SDX_KIND_NONE) return true;
    if (kind != info->kind) return false;
    if (kind != SDX_KIND_TENSOR && kind != SDX_KIND_SPARSE) return true;
    return info->dtype == SDX_DTYPE_NONE || info->dtype == sdx_tensor_dtype(tensor);
}

static OrtStatusPtr take_input(OrtSession *session, size_t i, const char *name,
                               const OrtValue *value, sdx_feed *feed)
{
    const sdx_value_info *info = ort_find_input(session, i, name);
    if (!info) return ort_fail(ORT_INVALID_ARGUMENT, "Invalid input name: %s", name);
    const sdx_tensor *tensor = ort_value_tensor(value);
    *feed = (sdx_feed){info->name, tensor};
    if (!tensor) return NULL; /* an optional without a value */
    if (!type_fits(info, tensor)) return wrong_type("input", info, tensor);
    return sdx_tensor_kind(tensor) == SDX_KIND_TENSOR && info->kind == SDX_KIND_TENSOR
               ? check_dims(info, tensor)
               : NULL;
}

static OrtStatusPtr take_output(OrtSession *session, size_t i, const char *name,
                                const OrtValue *value, sdx_tensor **result)
{
    const sdx_value_info *info = ort_find_output(session, i, name);
    *result = NULL;
    if (!info) return ort_fail(ORT_INVALID_ARGUMENT, "Invalid output name: %s", name);
    sdx_tensor *tensor = value ? ort_value_tensor(value) : NULL;
    if (!tensor) return NULL;
    if (!type_fits(info, tensor)) return wrong_type("output", info, tensor);
    if (sdx_tensor_dtype(tensor) != SDX_STRING && sdx_tensor_kind(tensor) == SDX_KIND_TENSOR)
        *result = tensor;
    return NULL;
}

static OrtStatusPtr check_names(const char *const *names, size_t count, const char *what)
{
    for (size_t i = 0; i < count; i++)
        if (!names[i] || !*names[i])
            return ort_fail(ORT_INVALID_ARGUMENT, "%s name cannot be empty", what);
    return NULL;
}

/* ---- the run ---- */

static OrtStatusPtr terminated(void)
{
    return ort_status(ORT_FAIL, "Exiting due to terminate flag being set to true.");
}

static OrtStatusPtr run_status(const struct ort_worker *worker, sdx_status status)
{
    if (status == SDX_CANCELLED) return terminated();
    const OrtErrorCode code =
        status == SDX_INVALID_ARGUMENT || status == SDX_BAD_INPUT || status == SDX_NOT_FOUND
            ? ORT_INVALID_ARGUMENT
            : ORT_FAIL;
    return ort_status(code, sdx_session_error(worker->session));
}

static OrtStatusPtr run_worker(struct ort_worker *worker, const OrtRunOptions *given,
                               const struct call *call, size_t count_inputs,
                               const char *const *output_names, size_t count_outputs)
{
    OrtRunOptions *options = (OrtRunOptions *)(uintptr_t)given;
    struct ort_running running = {.session = worker->session};
    if (options) {
        pthread_mutex_lock(&options->lock);
        running.next = options->running;
        options->running = &running;
        pthread_mutex_unlock(&options->lock);
        if (atomic_load(&options->terminate)) sdx_cancel(worker->session);
    }
    const sdx_status status = options && atomic_load(&options->terminate)
                                  ? SDX_CANCELLED
                                  : sdx_run(worker->session, (int)count_inputs, call->feeds,
                                            (int)count_outputs, output_names, call->results);
    if (options) {
        pthread_mutex_lock(&options->lock);
        struct ort_running **at = &options->running;
        while (*at != &running)
            at = &(*at)->next;
        *at = running.next;
        pthread_mutex_unlock(&options->lock);
    }
    return status ? run_status(worker, status) : NULL;
}

/* Hands the results to the caller's values, or to new ones. */
static OrtStatusPtr give_outputs(const struct call *call, size_t count, OrtValue **outputs)
{
    OrtStatusPtr status = NULL;
    for (size_t i = 0; i < count; i++) {
        sdx_tensor *made = call->results[i];
        if (outputs[i] && outputs[i]->tensor == made) continue;
        if (outputs[i])
            ort_value_set(outputs[i], made);
        else if (status)
            sdx_tensor_destroy(made);
        else
            status = ort_value_own(made, &outputs[i]);
    }
    return status;
}

static OrtStatusPtr run_call(OrtSession *session, const OrtRunOptions *options, struct call *call,
                             const char *const *input_names, const OrtValue *const *inputs,
                             size_t count_inputs, const char *const *output_names,
                             size_t count_outputs, OrtValue **outputs)
{
    struct ort_worker *worker = NULL;
    for (size_t i = 0; i < count_inputs; i++)
        ORT_TRY(take_input(session, i, input_names[i], inputs[i], &call->feeds[i]));
    for (size_t i = 0; i < count_outputs; i++)
        ORT_TRY(take_output(session, i, output_names[i], outputs[i], &call->results[i]));
    ORT_TRY(ort_worker_take(session, &worker));
    OrtStatusPtr status =
        run_worker(worker, options, call, count_inputs, output_names, count_outputs);
    ort_worker_give(session, worker);
    return status ? status : give_outputs(call, count_outputs, outputs);
}

OrtStatusPtr ort_run(OrtSession *session, const OrtRunOptions *options,
                     const char *const *input_names, const OrtValue *const *inputs,
                     size_t count_inputs, const char *const *output_names, size_t count_outputs,
                     OrtValue **outputs)
{
    ORT_TRY(check_names(input_names, count_inputs, "input"));
    for (size_t i = 0; i < count_inputs; i++)
        if (!inputs[i])
            return ort_fail(ORT_INVALID_ARGUMENT, "NULL input supplied for input %s",
                            input_names[i]);
    ORT_TRY(check_names(output_names, count_outputs, "output"));
    if (!count_outputs)
        return ort_status(ORT_INVALID_ARGUMENT, "At least one output should be requested.");
    struct call call;
    call.feeds = call.few_feeds;
    call.results = call.few_results;
    void *block = NULL;
    if (count_inputs > FEW || count_outputs > FEW) {
        block = malloc(count_inputs * sizeof *call.feeds + count_outputs * sizeof *call.results);
        if (!block) return ort_no_memory();
        call.feeds = block;
        call.results = (sdx_tensor **)(call.feeds + count_inputs);
    }
    OrtStatusPtr status = run_call(session, options, &call, input_names, inputs, count_inputs,
                                   output_names, count_outputs, outputs);
    free(block);
    return status;
}

void ort_fill_run(OrtApi *api)
{
    api->Run = ort_run;
}
