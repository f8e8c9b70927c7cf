/* SPDX-License-Identifier: Apache-2.0
 * Runs: checks in the order and with the words of the real library, then the engine. */
#include "ort_sparse.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FEW = 16, TYPE_TEXT = 256 };

/* What the engine is called with. An output asked for twice is one result. */
struct call {
    sdx_feed *feeds;
    sdx_tensor **results;
    const char **names; /* of the results */
    int *result_of;     /* where output i is among them */
    int count_feeds, count_results;
    sdx_feed few_feeds[FEW];
    sdx_tensor *few_results[FEW];
    const char *few_names[FEW];
    int few_places[FEW];
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

static OrtStatusPtr check_dims(const char *name, const sdx_value_info *info,
                               const sdx_tensor *tensor)
{
    const int rank = sdx_tensor_rank(tensor);
    if (info->rank < 0) return NULL;
    if (rank != info->rank)
        return ort_fail(ORT_INVALID_ARGUMENT,
                        "Invalid rank for input: %s Got: %d Expected: %d Please fix either the "
                        "inputs/outputs or the model.",
                        name, rank, info->rank);
    const int64_t *dims = sdx_tensor_dims(tensor);
    bool fits = true;
    for (int i = 0; i < rank; i++)
        fits = fits && (info->dims[i] < 0 || info->dims[i] == dims[i]);
    if (fits) return NULL;
    char text[2048] = "";
    for (int i = 0; i < rank; i++)
        if (info->dims[i] >= 0 && info->dims[i] != dims[i])
            add_dim(text, sizeof text, name, i, dims[i], info->dims[i]);
    return ort_fail(ORT_INVALID_ARGUMENT, "%s\n Please fix either the inputs/outputs or the model.",
                    text);
}

/* Forms of values, as the real library numbers them in messages. */
enum form { FORM_OTHER = 1, FORM_TENSOR, FORM_SEQUENCE, FORM_SPARSE, FORM_OPTIONAL };

static enum form form_of_value(const sdx_tensor *tensor)
{
    const sdx_kind kind = sdx_tensor_kind(tensor);
    const sdx_tensor *item = kind == SDX_KIND_SEQUENCE ? sdx_tensor_item(tensor, 0) : NULL;
    return kind == SDX_KIND_TENSOR                             ? FORM_TENSOR
           : kind == SDX_KIND_SPARSE                           ? FORM_SPARSE
           : kind != SDX_KIND_SEQUENCE                         ? FORM_OTHER
           : !item || sdx_tensor_kind(item) == SDX_KIND_TENSOR ? FORM_SEQUENCE
                                                               : FORM_OTHER;
}

static enum form form_of_info(const sdx_value_info *info)
{
    return info->kind == SDX_KIND_TENSOR                        ? FORM_TENSOR
           : info->kind == SDX_KIND_SPARSE                      ? FORM_SPARSE
           : info->kind == SDX_KIND_OPTIONAL                    ? FORM_OPTIONAL
           : info->kind != SDX_KIND_SEQUENCE                    ? FORM_OTHER
           : !info->elem || info->elem->kind == SDX_KIND_TENSOR ? FORM_SEQUENCE
                                                                : FORM_OTHER;
}

/* Maps and sequences of them: all of the type counts. */
static OrtStatusPtr check_whole_type(const sdx_value_info *info, const sdx_value_info *inner,
                                     const sdx_tensor *tensor)
{
    char actual[TYPE_TEXT], expected[TYPE_TEXT];
    ort_tensor_type_text(tensor, actual, sizeof actual);
    if (!strcmp(actual, ort_type_text(inner, expected, sizeof expected))) return NULL;
    return ort_fail(ORT_INVALID_ARGUMENT,
                    "Unexpected input data type. Actual: ((%s)) , expected: ((%s))", actual,
                    ort_type_text(info, expected, sizeof expected));
}

/* Is the value of the type that the input has? inner: what an optional holds, else the input. */
static OrtStatusPtr check_type(const sdx_value_info *info, const sdx_value_info *inner,
                               const sdx_tensor *tensor)
{
    static const char *const words[] = {[FORM_TENSOR] = "tensor",
                                        [FORM_SEQUENCE] = "tensor sequence",
                                        [FORM_SPARSE] = "sparse tensor"};
    static const char *const types[] = {
        [FORM_TENSOR] = "tensor", [FORM_SEQUENCE] = "seq", [FORM_SPARSE] = "sparse_tensor"};
    const enum form form = form_of_value(tensor);
    if (inner->kind == SDX_KIND_NONE) return NULL;
    if (form == FORM_OTHER) return check_whole_type(info, inner, tensor);
    if (form != form_of_info(inner))
        return ort_fail(ORT_INVALID_ARGUMENT,
                        "input with name: '%s' expected to be of type: %d but received a %s",
                        info->name, (int)form_of_info(info), words[form]);
    const sdx_value_info *typed = form == FORM_SEQUENCE && inner->elem ? inner->elem : inner;
    const sdx_dtype found = sdx_tensor_dtype(tensor);
    if (typed->dtype == SDX_DTYPE_NONE || typed->dtype == found) return NULL;
    return ort_fail(ORT_INVALID_ARGUMENT,
                    "Unexpected input data type. Actual: (%s(%s)) , expected: (%s(%s))",
                    types[form], sdx_dtype_name(found), types[form], sdx_dtype_name(typed->dtype));
}

static OrtStatusPtr take_input(OrtSession *session, size_t i, const char *name,
                               const OrtValue *value, sdx_feed *feed)
{
    const sdx_value_info *info = ort_find_input(session, i, name);
    if (!info) return ort_fail(ORT_INVALID_ARGUMENT, "Invalid input name: %s", name);
    const sdx_tensor *tensor = ort_value_tensor(value);
    *feed = (sdx_feed){info->name, tensor};
    if (!tensor && ort_sparse_of(value))
        return ort_fail(ORT_NOT_IMPLEMENTED, "input '%s' is a sparse tensor without coordinates",
                        name);
    if (!tensor) return NULL; /* an optional without a value */
    const sdx_value_info *inner = info->kind == SDX_KIND_OPTIONAL && info->elem ? info->elem : info;
    ORT_TRY(check_type(info, inner, tensor));
    return sdx_tensor_kind(tensor) == SDX_KIND_TENSOR ? check_dims(name, inner, tensor) : NULL;
}

/* ---- outputs ---- */

/* Is a value of the caller's of the type of the output? Of sequences and maps the kind counts. */
static bool type_fits(const sdx_value_info *info, const sdx_tensor *tensor)
{
    const sdx_kind kind = sdx_tensor_kind(tensor);
    if (info->kind == SDX_KIND_OPTIONAL && info->elem) return type_fits(info->elem, tensor);
    if (info->kind == SDX_KIND_NONE) return true;
    if (kind != info->kind) return false;
    if (kind != SDX_KIND_TENSOR && kind != SDX_KIND_SPARSE) return true;
    return info->dtype == SDX_DTYPE_NONE || info->dtype == sdx_tensor_dtype(tensor);
}

/* The tensor that the engine is to write into; NULL: it makes one. */
static OrtStatusPtr prepared_output(const sdx_value_info *info, const OrtValue *value,
                                    sdx_tensor **out)
{
    sdx_tensor *tensor = value ? ort_value_tensor(value) : NULL;
    *out = NULL;
    if (!tensor) return NULL;
    if (!type_fits(info, tensor)) {
        char actual[TYPE_TEXT], expected[TYPE_TEXT];
        return ort_fail(ORT_INVALID_ARGUMENT,
                        "Unexpected output data type. Actual: (%s) , expected: (%s)",
                        ort_tensor_type_text(tensor, actual, sizeof actual),
                        ort_type_text(info, expected, sizeof expected));
    }
    if (sdx_tensor_dtype(tensor) != SDX_STRING && sdx_tensor_kind(tensor) == SDX_KIND_TENSOR)
        *out = tensor;
    return NULL;
}

static OrtStatusPtr take_output(OrtSession *session, size_t i, const char *name,
                                const OrtValue *value, struct call *call)
{
    const sdx_value_info *info = ort_find_output(session, i, name);
    if (!info) return ort_fail(ORT_INVALID_ARGUMENT, "Invalid output name: %s", name);
    int at = 0;
    while (at < call->count_results && call->names[at] != info->name)
        at++;
    call->result_of[i] = at;
    if (at < call->count_results) return NULL;
    call->names[at] = info->name;
    call->count_results++;
    return prepared_output(info, value, &call->results[at]);
}

static OrtStatusPtr check_names(const char *const *names, size_t count, const char *what)
{
    for (size_t i = 0; i < count; i++)
        if (!names[i] || !*names[i])
            return ort_fail(ORT_INVALID_ARGUMENT, "%s name cannot be empty", what);
    return NULL;
}

/* ---- the run ---- */

/* Whoever sets the flag of the run options from here on cancels the session. */
static void begin_run(OrtRunOptions *options, struct ort_running *running)
{
    pthread_mutex_lock(&options->lock);
    running->next = options->running;
    options->running = running;
    pthread_mutex_unlock(&options->lock);
    if (atomic_load(&options->terminate)) sdx_cancel(running->session);
}

static void end_run(OrtRunOptions *options, struct ort_running *running)
{
    pthread_mutex_lock(&options->lock);
    struct ort_running **at = &options->running;
    while (*at != running)
        at = &(*at)->next;
    *at = running->next;
    pthread_mutex_unlock(&options->lock);
    sdx_cancel_clear(running->session);
}

/* own: the profile of this run alone; NULL: none. */
static OrtStatusPtr run_worker(const OrtSession *session, struct ort_worker *worker,
                               const OrtRunOptions *given, const struct call *call,
                               struct ort_profile *own)
{
    OrtRunOptions *options = (OrtRunOptions *)(uintptr_t)given;
    struct ort_running running = {.session = worker->session};
    if (options) begin_run(options, &running);
    const uint64_t begin = session->profile || own ? ort_clock() : 0;
    const sdx_status status = sdx_run(worker->session, call->count_feeds, call->feeds,
                                      call->count_results, call->names, call->results);
    if (options) end_run(options, &running);
    if (session->profile) ort_profile_add_run(session->profile, worker->session, begin);
    if (own) ort_profile_add_run(own, worker->session, begin);
    if (!status) return NULL;
    OrtStatusPtr told = ort_run_status(session, status, sdx_session_error(worker->session));
    ort_log(&session->logger, ORT_LOGGING_LEVEL_ERROR, "Run", "%s", ort_status_text(told));
    return told;
}

static OrtStatusPtr run_profiled(OrtSession *session, const OrtRunOptions *options,
                                 const struct call *call)
{
    struct ort_profile *profile = NULL;
    struct ort_worker *worker = NULL;
    ORT_TRY(ort_profile_open(options->profile_prefix, &profile));
    OrtStatusPtr status = ort_worker_take_profiled(session, &worker);
    if (!status) {
        status = run_worker(session, worker, options, call, profile);
        ort_worker_give_profiled(session, worker);
    }
    ort_profile_close(profile);
    return status;
}

static OrtStatusPtr run_plain(OrtSession *session, const OrtRunOptions *options,
                              const struct call *call)
{
    struct ort_worker *worker = NULL;
    ORT_TRY(ort_worker_take(session, &worker));
    OrtStatusPtr status = run_worker(session, worker, options, call, NULL);
    ort_worker_give(session, worker);
    return status;
}

/* Output `i` is one that an earlier one has already: a new value shares it. */
static OrtStatusPtr repeat_output(const struct call *call, size_t i, OrtValue **outputs)
{
    size_t first = 0;
    while (call->result_of[first] != call->result_of[i])
        first++;
    if (first == i || !outputs[first] || outputs[first] == outputs[i]) return NULL;
    sdx_tensor *from = ort_value_tensor(outputs[first]);
    if (!outputs[i]) return ort_value_item(outputs[first], from, &outputs[i]);
    sdx_tensor *to = ort_value_tensor(outputs[i]);
    const void *data = sdx_tensor_const_data(from);
    if (!to || !data || sdx_tensor_bytes(to) != sdx_tensor_bytes(from))
        return ort_fail(ORT_INVALID_ARGUMENT,
                        "output '%s' is asked for twice, and its values differ "
                        "in type or shape",
                        call->names[call->result_of[i]]);
    memcpy(sdx_tensor_data(to), data, sdx_tensor_bytes(from));
    return NULL;
}

/* A new value for a result, which it takes: in the memory of the allocator that the environment has
 * for this session's outputs, if any. */
static OrtStatusPtr new_output(const OrtSession *session, sdx_tensor *made, OrtValue **out)
{
    const void *data = sdx_tensor_const_data(made);
    if (!session->allocator || !data) {
        ORT_TRY(ort_value_own(made, out));
        if (session->options->cpu_arena) (*out)->memory = &ort_arena_memory;
        return NULL;
    }
    OrtStatusPtr status =
        ort_value_create(session->allocator, sdx_tensor_dims(made), (size_t)sdx_tensor_rank(made),
                         (ONNXTensorElementDataType)sdx_tensor_dtype(made), out);
    if (!status) memcpy(sdx_tensor_data((*out)->tensor), data, sdx_tensor_bytes(made));
    sdx_tensor_destroy(made);
    return status;
}

/* Hands the results to the caller's values, or to new ones. */
static OrtStatusPtr give_outputs(const OrtSession *session, const struct call *call, size_t count,
                                 OrtValue **outputs)
{
    OrtStatusPtr status = NULL;
    for (size_t i = 0; i < count && !status; i++) {
        sdx_tensor **made = &call->results[call->result_of[i]];
        if (outputs[i] && outputs[i]->tensor && outputs[i]->tensor == *made)
            *made = NULL;
        else if (!*made)
            status = repeat_output(call, i, outputs);
        else if (outputs[i])
            ort_value_set(outputs[i], *made);
        else
            status = new_output(session, *made, &outputs[i]);
        *made = NULL;
    }
    for (int i = 0; i < call->count_results; i++)
        sdx_tensor_destroy(call->results[i]);
    return status;
}

/* Inputs of optional type that the caller left out have no value. */
static void feed_nothing(const OrtSession *session, struct call *call)
{
    const int count = call->count_feeds;
    for (size_t i = 0; i < session->count_feeds; i++) {
        const sdx_value_info *info = session->feeds[i];
        int at = 0;
        while (at < count && call->feeds[at].name != info->name)
            at++;
        if (info->kind == SDX_KIND_OPTIONAL && at == count)
            call->feeds[call->count_feeds++] = (sdx_feed){info->name, session->nothing};
    }
}

static OrtStatusPtr run_call(OrtSession *session, const OrtRunOptions *options, struct call *call,
                             const char *const *input_names, const OrtValue *const *inputs,
                             size_t count_inputs, const char *const *output_names,
                             size_t count_outputs, OrtValue **outputs)
{
    for (size_t i = 0; i < count_inputs; i++) {
        ORT_TRY(take_input(session, i, input_names[i], inputs[i], &call->feeds[call->count_feeds]));
        if (call->feeds[call->count_feeds].value) call->count_feeds++;
    }
    if (session->count_optional) feed_nothing(session, call);
    for (size_t i = 0; i < count_outputs; i++)
        ORT_TRY(take_output(session, i, output_names[i], outputs[i], call));
    ORT_TRY(
        (options && options->profile_prefix ? run_profiled : run_plain)(session, options, call));
    return give_outputs(session, call, count_outputs, outputs);
}

static OrtStatusPtr more_room(struct call *call, size_t inputs, size_t outputs, void **block)
{
    const size_t output = sizeof *call->results + sizeof *call->names + sizeof *call->result_of;
    *block = malloc(inputs * sizeof *call->feeds + outputs * output);
    if (!*block) return ort_no_memory();
    call->feeds = *block;
    call->results = (sdx_tensor **)(call->feeds + inputs);
    call->names = (const char **)(call->results + outputs);
    call->result_of = (int *)(call->names + outputs);
    return NULL;
}

static OrtStatusPtr run_fed(OrtSession *session, const OrtRunOptions *options,
                            const char *const *input_names, const OrtValue *const *inputs,
                            size_t count_inputs, const char *const *output_names,
                            size_t count_outputs, OrtValue **outputs)
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
    call.names = call.few_names;
    call.result_of = call.few_places;
    call.count_feeds = call.count_results = 0;
    void *block = NULL;
    const size_t count_feeds = count_inputs + session->count_optional;
    if (count_feeds > FEW || count_outputs > FEW)
        ORT_TRY(more_room(&call, count_feeds, count_outputs, &block));
    OrtStatusPtr status = run_call(session, options, &call, input_names, inputs, count_inputs,
                                   output_names, count_outputs, outputs);
    free(block);
    return status;
}

OrtStatusPtr ort_run(OrtSession *session, const OrtRunOptions *options,
                     const char *const *input_names, const OrtValue *const *inputs,
                     size_t count_inputs, const char *const *output_names, size_t count_outputs,
                     OrtValue **outputs)
{
    if (!options || !options->count_adapters)
        return run_fed(session, options, input_names, inputs, count_inputs, output_names,
                       count_outputs, outputs);
    struct ort_feeds feeds = {.names = input_names, .values = inputs, .count = count_inputs};
    OrtStatusPtr status = ort_lora_feed(options, &feeds);
    if (!status)
        status = run_fed(session, options, feeds.names, feeds.values, feeds.count, output_names,
                         count_outputs, outputs);
    free((void *)feeds.own_names);
    free((void *)feeds.own_values);
    return status;
}

void ort_fill_run(OrtApi *api)
{
    api->Run = ort_run;
}
