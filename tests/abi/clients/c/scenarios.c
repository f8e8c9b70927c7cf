/* SPDX-License-Identifier: Apache-2.0
 * A C program over the ONNX Runtime ABI: `scenarios LIBRARY MODELS` runs every scenario and prints
 * one line a check. */
#include "abi_client.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void say_ends(struct client *c, const char *name, const OrtSession *session)
{
    const OrtApi *api = c->api;
    size_t inputs = 0, outputs = 0;
    good(c, name, api->SessionGetInputCount(session, &inputs));
    good(c, name, api->SessionGetOutputCount(session, &outputs));
    for (size_t i = 0; i < inputs + outputs; i++) {
        size_t k = i < inputs ? i : i - inputs;
        char *value_name = NULL, line[256];
        OrtTypeInfo *type = NULL;
        OrtStatus *status = i < inputs
                                ? api->SessionGetInputName(session, k, c->allocator, &value_name)
                                : api->SessionGetOutputName(session, k, c->allocator, &value_name);
        if (!good(c, name, status)) continue;
        snprintf(line, sizeof(line), "%s.%s.%zu.%s", name, i < inputs ? "in" : "out", k,
                 value_name);
        status = i < inputs ? api->SessionGetInputTypeInfo(session, k, &type)
                            : api->SessionGetOutputTypeInfo(session, k, &type);
        if (good(c, line, status)) say_type(c, line, type);
        if (type) api->ReleaseTypeInfo(type);
        good(c, line, api->AllocatorFree(c->allocator, value_name));
    }
}

static void check_ends(struct client *c)
{
    static const char *const names[] = {
        "linear.onnx",     "types.onnx",         "scalar.onnx",
        "two_inputs.onnx", "zipmap_string.onnx", "zipmap_int64.onnx",
        "sequence.onnx",   "sequence_in.onnx",   "weights_given.onnx"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        OrtSession *session = open_model(c, names[i]);
        if (!session) continue;
        char line[128];
        snprintf(line, sizeof(line), "ends.%s", names[i]);
        say_ends(c, line, session);
        size_t count = 0;
        if (good(c, line, c->api->SessionGetOverridableInitializerCount(session, &count)))
            say(line, "%zu overridable", count);
        for (size_t k = 0; k < count; k++) {
            char *name = NULL;
            OrtTypeInfo *type = NULL;
            if (good(c, line,
                     c->api->SessionGetOverridableInitializerName(session, k, c->allocator,
                                                                  &name)) &&
                good(c, line,
                     c->api->SessionGetOverridableInitializerTypeInfo(session, k, &type))) {
                say(line, "overridable %s", name);
                say_type(c, line, type);
            }
            c->allocator->Free(c->allocator, name);
            if (type) c->api->ReleaseTypeInfo(type);
        }
        c->api->ReleaseSession(session);
    }
}

static void check_load(struct client *c)
{
    size_t size = 0;
    void *bytes = read_whole(model_path(c, "linear.onnx"), &size);
    OrtSessionOptions *options = NULL;
    OrtSession *session = NULL;
    good(c, "load", c->api->CreateSessionOptions(&options));
    OrtStatus *status = c->api->CreateSessionFromArray(c->env, bytes, size, options, &session);
    free(bytes); /* the session keeps nothing of it */
    if (!say_status(c, "load.memory", status)) {
        float x[8] = {1, 2, 3, 4, -1, -2, -3, -4};
        run_one(c, "load.memory.run", session, float_tensor(c, x, 2, 4));
        c->api->ReleaseSession(session);
    }
    c->api->ReleaseSessionOptions(options);
}

static void run_typed(struct client *c, const char *model, ONNXTensorElementDataType type,
                      void *data, size_t bytes, int64_t count)
{
    OrtSession *session = open_model(c, model);
    if (!session) return;
    char line[128];
    snprintf(line, sizeof(line), "run.%s", model);
    run_one(c, line, session, tensor_over(c, type, data, bytes, 1, &count));
    snprintf(line, sizeof(line), "run.%s.empty", model);
    int64_t none = 0;
    run_one(c, line, session, tensor_over(c, type, data, 0, 1, &none));
    c->api->ReleaseSession(session);
}

static void check_types(struct client *c)
{
    int64_t int64s[] = {1, -2, INT64_MAX - 1};
    run_typed(c, "int64.onnx", ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64, int64s, sizeof(int64s), 3);
    int32_t int32s[] = {1, -2, INT32_MAX - 1};
    run_typed(c, "int32.onnx", ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32, int32s, sizeof(int32s), 3);
    double doubles[] = {0.5, -2, 1e300};
    run_typed(c, "float64.onnx", ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE, doubles, sizeof(doubles), 3);
    uint8_t bools[] = {0, 1, 1};
    run_typed(c, "bool.onnx", ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL, bools, sizeof(bools), 3);
    uint16_t halves[] = {0x3c00, 0xc000, 0x3555};
    run_typed(c, "float16.onnx", ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16, halves, sizeof(halves), 3);
}

static void check_strings(struct client *c)
{
    const OrtApi *api = c->api;
    OrtSession *session = open_model(c, "string.onnx");
    OrtValue *x = NULL;
    int64_t dims[] = {3};
    if (!session) return;
    const char *texts[] = {"a", "", "gr\xc3\xbc\xc3\x9f dich"};
    if (good(c, "run.string",
             api->CreateTensorAsOrtValue(c->allocator, dims, 1,
                                         ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING, &x)) &&
        good(c, "run.string", api->FillStringTensor(x, texts, 3))) {
        say_value(c, "run.string.input", x);
        say_status(c, "run.string.element", api->FillStringTensorElement(x, "new", 1));
        say_status(c, "run.string.beyond", api->FillStringTensorElement(x, "new", 3));
        say_status(c, "run.string.many", api->FillStringTensor(x, texts, 2));
        size_t length = 0;
        say_status(c, "run.string.length", api->GetStringTensorElementLength(x, 3, &length));
        char small[1];
        say_status(c, "run.string.small", api->GetStringTensorElement(x, 1, 2, small));
        run_one(c, "run.string", session, x);
    }
    api->ReleaseSession(session);
}

static void check_dynamic(struct client *c)
{
    float x[20];
    for (int i = 0; i < 20; i++)
        x[i] = (float)(i - 5) / 2;
    OrtSession *session = open_model(c, "linear.onnx");
    if (!session) return;
    static const int64_t rows[] = {1, 5, 2, 0, 3};
    for (size_t i = 0; i < 5; i++) {
        char line[64];
        snprintf(line, sizeof(line), "dynamic.%zu", i);
        run_one(c, line, session, float_tensor(c, x, rows[i], 4));
    }
    c->api->ReleaseSession(session);
    session = open_model(c, "scalar.onnx");
    if (session)
        run_one(c, "scalar", session,
                tensor_over(c, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, x, 4, 0, NULL));
    if (session) c->api->ReleaseSession(session);
    session = open_model(c, "two_inputs.onnx");
    if (!session) return;
    OrtValue *in[2] = {float_tensor(c, x, 2, 3), float_tensor(c, x + 6, 1, 3)}, *out[2] = {NULL};
    if (good(c, "two",
             c->api->Run(session, NULL, (const char *[]){"a", "b"}, (const OrtValue *const *)in, 2,
                         (const char *[]){"s", "c"}, 2, out))) {
        say_value(c, "two.s", out[0]);
        say_value(c, "two.c", out[1]);
        c->api->ReleaseValue(out[0]);
        c->api->ReleaseValue(out[1]);
    }
    c->api->ReleaseValue(in[0]);
    c->api->ReleaseValue(in[1]);
    c->api->ReleaseSession(session);
}

static void run_named(struct client *c, const char *model, OrtValue *x, const char *output)
{
    OrtSession *session = open_model(c, model);
    OrtValue *y = NULL;
    char line[128];
    snprintf(line, sizeof(line), "run.%s.%s", model, output);
    if (session && good(c, line,
                        c->api->Run(session, NULL, (const char *[]){"x"},
                                    (const OrtValue *const *)&x, 1, &output, 1, &y))) {
        say_value(c, line, y);
        c->api->ReleaseValue(y);
    }
    if (session) c->api->ReleaseSession(session);
}

static void check_containers(struct client *c)
{
    float x[6] = {1, 2, 3, 4, 5, 6};
    OrtValue *rows = float_tensor(c, x, 2, 3), *pairs = float_tensor(c, x, 3, 2), *joined = NULL;
    run_named(c, "zipmap_string.onnx", rows, "z");
    run_named(c, "zipmap_int64.onnx", rows, "z");
    run_named(c, "sequence.onnx", pairs, "rows");
    run_named(c, "sequence.onnx", pairs, "count");
    const OrtValue *items[] = {pairs, pairs};
    OrtSession *session = open_model(c, "sequence_in.onnx");
    if (session && !say_status(c, "sequence.make",
                               c->api->CreateValue(items, 2, ONNX_TYPE_SEQUENCE, &joined))) {
        OrtValue *y = NULL;
        say_value(c, "sequence.made", joined);
        if (good(c, "sequence.run",
                 c->api->Run(session, NULL, (const char *[]){"rows"},
                             (const OrtValue *const *)&joined, 1, (const char *[]){"y"}, 1, &y))) {
            say_value(c, "sequence.run", y);
            c->api->ReleaseValue(y);
        }
        c->api->ReleaseValue(joined);
    }
    if (session) c->api->ReleaseSession(session);
    c->api->ReleaseValue(rows);
    c->api->ReleaseValue(pairs);
}

static void check_load_errors(struct client *c)
{
    static const char *const names[] = {
        "nofile.onnx",    "garbage.onnx", "empty.onnx",   "truncated.onnx", "badop.onnx",
        "baddomain.onnx", "badir.onnx",   "badedge.onnx", "badtype.onnx",   "cycle.onnx"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        OrtSession *session = open_model(c, names[i]);
        if (session) say(names[i], "opened");
        if (session) c->api->ReleaseSession(session);
    }
}

static void try_run(struct client *c, const char *line, OrtSession *session, const char *input,
                    OrtValue *x, const char *output)
{
    OrtValue *y = NULL;
    if (!say_status(
            c, line,
            c->api->Run(session, NULL, &input, (const OrtValue *const *)&x, 1, &output, 1, &y)))
        c->api->ReleaseValue(y);
    c->api->ReleaseValue(x);
}

static void check_run_errors(struct client *c)
{
    float x[20] = {0};
    double d[4] = {0};
    int64_t indices[] = {0, 7};
    OrtSession *session = open_model(c, "linear.onnx");
    if (!session) return;
    try_run(c, "error.input", session, "q", float_tensor(c, x, 1, 4), "y");
    try_run(c, "error.output", session, "x", float_tensor(c, x, 1, 4), "q");
    try_run(c, "error.dimension", session, "x", float_tensor(c, x, 1, 5), "y");
    try_run(c, "error.rank", session, "x",
            tensor_over(c, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, x, 16, 1, (int64_t[]){4}), "y");
    try_run(c, "error.type", session, "x",
            tensor_over(c, ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE, d, 32, 2, (int64_t[]){1, 4}), "y");
    run_one(c, "error.then", session, float_tensor(c, x, 1, 4)); /* works as before */
    c->api->ReleaseSession(session);
    session = open_model(c, "gather.onnx");
    if (!session) return;
    OrtValue *i =
        tensor_over(c, ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64, indices, 16, 1, (int64_t[]){2});
    try_run(c, "error.kernel", session, "i", i, "y");
    c->api->ReleaseSession(session);
}

static void say_text(struct client *c, const char *name, OrtStatus *status, char *text)
{
    if (!good(c, name, status)) return;
    say(name, "%s", text ? text : "NULL");
    if (text) c->allocator->Free(c->allocator, text);
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void check_metadata(struct client *c)
{
    const OrtApi *api = c->api;
    OrtSession *session = open_model(c, "linear.onnx");
    OrtModelMetadata *meta = NULL;
    OrtAllocator *a = c->allocator;
    if (!session || !good(c, "meta", api->SessionGetModelMetadata(session, &meta))) return;
    char *text = NULL, **keys = NULL;
    OrtStatus *status = api->ModelMetadataGetProducerName(meta, a, &text);
    say_text(c, "meta.producer", status, text);
    status = api->ModelMetadataGetGraphName(meta, a, &text);
    say_text(c, "meta.graph", status, text);
    status = api->ModelMetadataGetDomain(meta, a, &text);
    say_text(c, "meta.domain", status, text);
    status = api->ModelMetadataGetDescription(meta, a, &text);
    say_text(c, "meta.description", status, text);
    status = api->ModelMetadataGetGraphDescription(meta, a, &text);
    say_text(c, "meta.graph_description", status, text);
    status = api->ModelMetadataLookupCustomMetadataMap(meta, a, "author", &text);
    say_text(c, "meta.author", status, text);
    status = api->ModelMetadataLookupCustomMetadataMap(meta, a, "absent", &text);
    say_text(c, "meta.absent", status, text);
    int64_t count = 0, version = 0;
    if (good(c, "meta.version", api->ModelMetadataGetVersion(meta, &version)))
        say("meta.version", "%lld", (long long)version);
    if (good(c, "meta.keys", api->ModelMetadataGetCustomMetadataMapKeys(meta, a, &keys, &count))) {
        qsort(keys, (size_t)count, sizeof(*keys), compare_texts);
        for (int64_t i = 0; i < count; i++)
            say_text(c, "meta.key", NULL, keys[i]);
        a->Free(a, keys);
    }
    api->ReleaseModelMetadata(meta);
    api->ReleaseSession(session);
}

static void say_bound(struct client *c, const OrtIoBinding *binding)
{
    char *names = NULL;
    size_t *lengths = NULL, count = 0, at = 0;
    OrtValue **values = NULL;
    if (good(c, "bind.names",
             c->api->GetBoundOutputNames(binding, c->allocator, &names, &lengths, &count))) {
        for (size_t i = 0; i < count; i++) {
            say("bind.name", "%.*s", (int)lengths[i], names + at);
            at += lengths[i];
        }
        if (names) c->allocator->Free(c->allocator, names);
        if (lengths) c->allocator->Free(c->allocator, lengths);
    }
    if (!good(c, "bind.values",
              c->api->GetBoundOutputValues(binding, c->allocator, &values, &count)))
        return;
    for (size_t i = 0; i < count; i++) {
        say_value(c, "bind.value", values[i]);
        c->api->ReleaseValue(values[i]);
    }
    if (values) c->allocator->Free(c->allocator, values);
}

static void check_binding(struct client *c)
{
    const OrtApi *api = c->api;
    OrtSession *session = open_model(c, "linear.onnx");
    OrtIoBinding *binding = NULL;
    if (!session || !good(c, "bind", api->CreateIoBinding(session, &binding))) return;
    float x[8] = {1, 2, 3, 4, 5, 6, 7, 8}, y[6] = {0};
    OrtValue *in = float_tensor(c, x, 2, 4), *out = float_tensor(c, y, 2, 3);
    say_status(c, "bind.input", api->BindInput(binding, "x", in));
    say_status(c, "bind.unknown", api->BindInput(binding, "q", in));
    say_status(c, "bind.output", api->BindOutput(binding, "y", out));
    say_status(c, "bind.sync_in", api->SynchronizeBoundInputs(binding));
    say_status(c, "bind.run", api->RunWithBinding(session, NULL, binding));
    say_status(c, "bind.sync_out", api->SynchronizeBoundOutputs(binding));
    say("bind.memory", "%g %g %g %g %g %g", (double)y[0], (double)y[1], (double)y[2], (double)y[3],
        (double)y[4], (double)y[5]);
    say_bound(c, binding);
    x[0] = 10; /* the binding sees the memory, not a copy */
    say_status(c, "bind.again", api->RunWithBinding(session, NULL, binding));
    say("bind.memory", "%g", (double)y[0]);
    api->ClearBoundOutputs(binding);
    say_status(c, "bind.device", api->BindOutputToDevice(binding, "y", c->cpu));
    say_status(c, "bind.run_device", api->RunWithBinding(session, NULL, binding));
    say_bound(c, binding);
    api->ClearBoundInputs(binding);
    api->ClearBoundOutputs(binding);
    say_bound(c, binding);
    api->ReleaseIoBinding(binding);
    api->ReleaseValue(in);
    api->ReleaseValue(out);
    api->ReleaseSession(session);
}

static void check_options(struct client *c)
{
    const OrtApi *api = c->api;
    OrtSessionOptions *o = NULL, *copy = NULL;
    OrtSession *session = NULL;
    char entry[64];
    size_t size = sizeof(entry);
    int has = -1;
    if (!good(c, "options", api->CreateSessionOptions(&o))) return;
    say_status(c, "options.intra", api->SetIntraOpNumThreads(o, 2));
    say_status(c, "options.inter", api->SetInterOpNumThreads(o, 1));
    say_status(c, "options.mode", api->SetSessionExecutionMode(o, ORT_SEQUENTIAL));
    say_status(c, "options.pattern", api->DisableMemPattern(o));
    say_status(c, "options.pattern_on", api->EnableMemPattern(o));
    say_status(c, "options.arena", api->DisableCpuMemArena(o));
    say_status(c, "options.arena_on", api->EnableCpuMemArena(o));
    say_status(c, "options.log_id", api->SetSessionLogId(o, "name"));
    say_status(c, "options.verbosity", api->SetSessionLogVerbosityLevel(o, 0));
    say_status(c, "options.severity", api->SetSessionLogSeverityLevel(o, 3));
    static const int levels[] = {0, 1, 2, 3, 7, 99};
    for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++)
        say_status(c, "options.level",
                   api->SetSessionGraphOptimizationLevel(o, (GraphOptimizationLevel)levels[i]));
    say_status(c, "options.entry",
               api->AddSessionConfigEntry(o, "session.set_denormal_as_zero", "0"));
    say_status(c, "options.entry_own", api->AddSessionConfigEntry(o, "my.key", "my value"));
    say_status(c, "options.entry_empty", api->AddSessionConfigEntry(o, "", "1"));
    if (!say_status(c, "options.has", api->HasSessionConfigEntry(o, "my.key", &has)))
        say("options.has", "%d", has);
    if (!say_status(c, "options.get", api->GetSessionConfigEntry(o, "my.key", entry, &size)))
        say("options.get", "%zu %s", size, entry);
    size = 2;
    say_status(c, "options.get_short", api->GetSessionConfigEntry(o, "my.key", entry, &size));
    say("options.get_short", "%zu", size);
    say_status(c, "options.absent", api->GetSessionConfigEntry(o, "no.key", entry, &size));
    say_status(c, "options.dimension", api->AddFreeDimensionOverrideByName(o, "N", 2));
    say_status(c, "options.deterministic", api->SetDeterministicCompute(o, true));
    say_status(c, "options.clone", api->CloneSessionOptions(o, &copy));
    if (!say_status(c, "options.session",
                    api->CreateSession(c->env, model_path(c, "linear.onnx"), copy, &session))) {
        say_ends(c, "options.ends", session);
        float x[8] = {1, 2, 3, 4, 5, 6, 7, 8};
        run_one(c, "options.run", session, float_tensor(c, x, 2, 4));
        api->ReleaseSession(session);
    }
    api->ReleaseSessionOptions(copy);
    api->ReleaseSessionOptions(o);
}

static void *terminate_soon(void *argument)
{
    struct {
        const OrtApi *api;
        OrtRunOptions *options;
    } *told = argument;
    nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
    OrtStatus *status = told->api->RunOptionsSetTerminate(told->options);
    if (status) told->api->ReleaseStatus(status);
    return NULL;
}

static void run_endless(struct client *c, const char *name, OrtSession *session,
                        const OrtRunOptions *options, int64_t turns)
{
    float x[1] = {0};
    OrtValue *in[2] = {
        tensor_over(c, ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64, &turns, sizeof(turns), 0, NULL),
        tensor_over(c, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, x, 4, 1, (int64_t[]){1})};
    OrtValue *y = NULL;
    if (good(c, name,
             c->api->Run(session, options, (const char *[]){"count", "x"},
                         (const OrtValue *const *)in, 2, (const char *[]){"y"}, 1, &y))) {
        say_value(c, name, y);
        c->api->ReleaseValue(y);
    }
    c->api->ReleaseValue(in[0]);
    c->api->ReleaseValue(in[1]);
}

static void check_terminate(struct client *c)
{
    const OrtApi *api = c->api;
    OrtRunOptions *options = NULL;
    const char *tag = NULL;
    OrtSession *session = open_model(c, "endless.onnx");
    if (!session || !good(c, "terminate", api->CreateRunOptions(&options))) return;
    say_status(c, "terminate.tag", api->RunOptionsSetRunTag(options, "mine"));
    if (good(c, "terminate.tag", api->RunOptionsGetRunTag(options, &tag)))
        say("terminate.tag", "%s", tag);
    say_status(c, "terminate.severity", api->RunOptionsSetRunLogSeverityLevel(options, 4));
    say_status(c, "terminate.entry", api->AddRunConfigEntry(options, "my.key", "1"));
    run_endless(c, "terminate.before", session, options, 3);
    say_status(c, "terminate.set", api->RunOptionsSetTerminate(options));
    run_endless(c, "terminate.flag", session, options, 3);
    say_status(c, "terminate.unset", api->RunOptionsUnsetTerminate(options));
    run_endless(c, "terminate.after", session, options, 3);
    struct {
        const OrtApi *api;
        OrtRunOptions *options;
    } told = {api, options};
    pthread_t thread;
    pthread_create(&thread, NULL, terminate_soon, &told);
    run_endless(c, "terminate.thread", session, options, INT64_MAX);
    pthread_join(thread, NULL);
    api->ReleaseRunOptions(options);
    api->ReleaseSession(session);
}

static void check_providers(struct client *c)
{
    char **names = NULL;
    int count = 0;
    if (good(c, "providers", c->api->GetAvailableProviders(&names, &count))) {
        bool has_cpu = count > 0 && !strcmp(names[count - 1], "CPUExecutionProvider");
        say("providers.last", "%s", has_cpu ? names[count - 1] : "another");
        say_status(c, "providers.release", c->api->ReleaseAvailableProviders(names, count));
    }
    const OrtEpDevice *const *devices = NULL;
    size_t device_count = 0;
    if (good(c, "devices", c->api->GetEpDevices(c->env, &devices, &device_count)))
        for (size_t i = 0; i < device_count; i++)
            say("devices", "%s %d", c->api->EpDevice_EpName(devices[i]),
                (int)c->api->HardwareDevice_Type(c->api->EpDevice_Device(devices[i])));
    const char *name = NULL;
    int id = -1;
    OrtMemType memory = 0;
    OrtAllocatorType type = 0;
    if (good(c, "memory", c->api->MemoryInfoGetName(c->cpu, &name)) &&
        good(c, "memory", c->api->MemoryInfoGetId(c->cpu, &id)) &&
        good(c, "memory", c->api->MemoryInfoGetMemType(c->cpu, &memory)) &&
        good(c, "memory", c->api->MemoryInfoGetType(c->cpu, &type)))
        say("memory", "%s %d %d %d", name, id, (int)memory, (int)type);
    const OrtMemoryInfo *info = c->allocator->Info(c->allocator);
    int equal = -1;
    if (good(c, "memory.compare", c->api->CompareMemoryInfo(info, c->cpu, &equal)))
        say("memory.compare", "%d", equal);
    if (good(c, "memory.default", c->api->MemoryInfoGetType(info, &type)))
        say("memory.default", "%d", (int)type);
    void *block = c->allocator->Alloc(c->allocator, 100);
    say("memory.alloc", "%s", block ? "a block" : "NULL");
    c->allocator->Free(c->allocator, block);
    say("version.string", "%s", c->base->GetVersionString());
    say("version.build", "%s", c->api->GetBuildInfoString());
}

enum { RUNNERS = 4, RUNS = 50 };

struct runner {
    struct client *client;
    OrtSession *session;
    int number, wrong;
};

static void *run_many(void *argument)
{
    struct runner *r = argument;
    const OrtApi *api = r->client->api;
    float x[8];
    for (int i = 0; i < RUNS; i++) {
        int64_t rows = 1 + i % 2;
        for (int k = 0; k < 8; k++)
            x[k] = (float)(r->number + k);
        OrtValue *in = float_tensor(r->client, x, rows, 4), *y = NULL;
        OrtStatus *status = api->Run(r->session, NULL, (const char *[]){"x"},
                                     (const OrtValue *const *)&in, 1, (const char *[]){"y"}, 1, &y);
        const float *data = NULL;
        if (!status) status = api->GetTensorMutableData(y, (void **)&data);
        /* column 0 of w is -4, -1, 2, 5 */
        float expected = x[0] * -4 + x[1] * -1 + x[2] * 2 + x[3] * 5 + 1;
        r->wrong += status || data[0] != expected;
        if (status) api->ReleaseStatus(status);
        if (y) api->ReleaseValue(y);
        api->ReleaseValue(in);
    }
    return NULL;
}

/* One session in many threads, then many sessions at once. */
static void check_threads(struct client *c)
{
    pthread_t threads[RUNNERS];
    struct runner runners[RUNNERS];
    OrtSession *shared = open_model(c, "linear.onnx");
    if (!shared) return;
    for (int own = 0; own < 2; own++) {
        int wrong = 0;
        for (int i = 0; i < RUNNERS; i++) {
            runners[i] = (struct runner){c, own ? open_model(c, "linear.onnx") : shared, i, 0};
            pthread_create(&threads[i], NULL, run_many, &runners[i]);
        }
        for (int i = 0; i < RUNNERS; i++) {
            pthread_join(threads[i], NULL);
            wrong += runners[i].wrong;
            if (own) c->api->ReleaseSession(runners[i].session);
        }
        say(own ? "threads.own" : "threads.shared", "%d wrong", wrong);
    }
    c->api->ReleaseSession(shared);
}

static void check_many(struct client *c)
{
    OrtSession *sessions[40];
    float x[4] = {1, 2, 3, 4};
    int opened = 0;
    for (int i = 0; i < 40; i++) {
        sessions[i] = open_model(c, i % 2 ? "linear.onnx" : "classify.onnx");
        opened += sessions[i] != NULL;
    }
    say("many.opened", "%d", opened);
    run_one(c, "many.run", sessions[39], float_tensor(c, x, 1, 4));
    for (int i = 0; i < 40; i++)
        c->api->ReleaseSession(sessions[i]);
}

/* The initializer that a caller may override, left and given. */
static void check_overridden(struct client *c)
{
    OrtSession *session = open_model(c, "weights_given.onnx");
    float x[2] = {1, 2}, scale[1] = {10};
    if (!session) return;
    run_one(c, "override.left", session,
            tensor_over(c, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, x, 8, 1, (int64_t[]){2}));
    OrtValue *in[2] = {
        tensor_over(c, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, x, 8, 1, (int64_t[]){2}),
        tensor_over(c, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, scale, 4, 1, (int64_t[]){1})};
    OrtValue *y = NULL;
    if (good(c, "override.given",
             c->api->Run(session, NULL, (const char *[]){"x", "scale"}, (const OrtValue *const *)in,
                         2, (const char *[]){"y"}, 1, &y))) {
        say_value(c, "override.given", y);
        c->api->ReleaseValue(y);
    }
    c->api->ReleaseValue(in[0]);
    c->api->ReleaseValue(in[1]);
    c->api->ReleaseSession(session);
}

int main(int argc, char **argv)
{
    if (argc != 3) return fprintf(stderr, "usage: scenarios LIBRARY MODELS\n"), 2;
    struct client c;
    client_open(&c, argv[1], argv[2]);
    check_ends(&c);
    check_load(&c);
    check_types(&c);
    check_strings(&c);
    check_dynamic(&c);
    check_overridden(&c);
    check_containers(&c);
    check_load_errors(&c);
    check_run_errors(&c);
    check_metadata(&c);
    check_binding(&c);
    check_options(&c);
    check_terminate(&c);
    check_providers(&c);
    check_threads(&c);
    check_many(&c);
    client_close(&c);
    say("end", "reached");
    return 0;
}
