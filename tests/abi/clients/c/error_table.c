/* SPDX-License-Identifier: Apache-2.0
 * The situations of the recorded table of errors: `error_table LIBRARY MODELS` prints one line for
 * each row of it, under the row's name. */
#include "abi_client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void load_errors(struct client *c)
{
    static const char *const names[] = {"nofile.onnx",    "garbage.onnx", "empty.onnx",
                                        "truncated.onnx", "badop.onnx",   "baddomain.onnx",
                                        "badopset.onnx",  "badir.onnx",   "badedge.onnx",
                                        "badtype.onnx",   "cycle.onnx",   "directory"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        OrtSession *session = open_model(c, names[i]);
        if (session) say(names[i], "ok");
        if (session) c->api->ReleaseSession(session);
    }
    OrtSessionOptions *options = NULL;
    OrtSession *session = NULL;
    if (!good(c, "options", c->api->CreateSessionOptions(&options))) return;
    say_status(c, "array: garbage",
               c->api->CreateSessionFromArray(c->env, "garbage", 7, options, &session));
    say_status(c, "array: empty", c->api->CreateSessionFromArray(c->env, "", 0, options, &session));
    c->api->ReleaseSessionOptions(options);
}

static void tensor_error(struct client *c, const char *name, ONNXTensorElementDataType type,
                         size_t bytes, int64_t rows)
{
    float data[16] = {0};
    OrtValue *value = NULL;
    const int64_t dims[] = {rows, 4};
    if (!say_status(
            c, name,
            c->api->CreateTensorWithDataAsOrtValue(c->cpu, data, bytes, dims, 2, type, &value)))
        c->api->ReleaseValue(value);
}

static void tensor_errors(struct client *c)
{
    tensor_error(c, "tensor: buffer too small", ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, 31, 2);
    tensor_error(c, "tensor: negative dimension", ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, 32, -2);
    tensor_error(c, "tensor: undefined type", ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED, 32, 2);
    tensor_error(c, "tensor: string over a buffer", ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING, 64, 2);
}

/* One call of Run; up to two inputs and outputs. `given`: an output that the caller brings. */
struct call {
    const char *name;
    const char *inputs[2];
    OrtValue *values[2];
    size_t count_in;
    const char *outputs[2];
    size_t count_out;
    OrtValue *given;
    OrtRunOptions *options;
};

static void run_call(struct client *c, OrtSession *session, struct call call)
{
    OrtValue *out[2] = {call.given, NULL};
    OrtStatus *status =
        c->api->Run(session, call.options, call.inputs, (const OrtValue *const *)call.values,
                    call.count_in, call.outputs, call.count_out, out);
    if (say_status(c, call.name, status)) return;
    for (size_t i = 0; i < call.count_out; i++)
        if (out[i] != call.given) c->api->ReleaseValue(out[i]);
}

static void run_errors(struct client *c)
{
    float x[16] = {0}, y[16] = {0};
    double d[16] = {0};
    const int64_t flat[] = {4}, square[] = {2, 4}, small[] = {2, 3};
    OrtSession *session = open_model(c, "classify.onnx");
    OrtRunOptions *stopped = NULL;
    if (!session || !good(c, "run options", c->api->CreateRunOptions(&stopped))) return;
    OrtValue *fine = float_tensor(c, x, 2, 4), *wide = float_tensor(c, x, 2, 5);
    OrtValue *row = tensor_over(c, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, x, 16, 1, flat);
    OrtValue *doubles = tensor_over(c, ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE, d, 64, 2, square);
    OrtValue *short_y = float_tensor(c, y, 1, 3);
    OrtValue *double_y = tensor_over(c, ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE, d, 48, 2, small);
    good(c, "terminate", c->api->RunOptionsSetTerminate(stopped));
    const struct call calls[] = {
        {"run: fine", {"x"}, {fine}, 1, {"y"}, 1, NULL, NULL},
        {"run: wrong dimension", {"x"}, {wide}, 1, {"y"}, 1, NULL, NULL},
        {"run: wrong rank", {"x"}, {row}, 1, {"y"}, 1, NULL, NULL},
        {"run: wrong type", {"x"}, {doubles}, 1, {"y"}, 1, NULL, NULL},
        {"run: no inputs", {NULL}, {NULL}, 0, {"y"}, 1, NULL, NULL},
        {"run: unknown input", {"q"}, {fine}, 1, {"y"}, 1, NULL, NULL},
        {"run: empty input name", {""}, {fine}, 1, {"y"}, 1, NULL, NULL},
        {"run: input twice", {"x", "x"}, {fine, fine}, 2, {"y"}, 1, NULL, NULL},
        {"run: null value", {"x"}, {NULL}, 1, {"y"}, 1, NULL, NULL},
        {"run: unknown output", {"x"}, {fine}, 1, {"z"}, 1, NULL, NULL},
        {"run: no outputs", {"x"}, {fine}, 1, {NULL}, 0, NULL, NULL},
        {"run: output twice", {"x"}, {fine}, 1, {"y", "y"}, 2, NULL, NULL},
        {"run: given output of the wrong shape", {"x"}, {fine}, 1, {"y"}, 1, short_y, NULL},
        {"run: given output of the wrong type", {"x"}, {fine}, 1, {"y"}, 1, double_y, NULL},
        {"run: terminate set", {"x"}, {fine}, 1, {"y"}, 1, NULL, stopped},
    };
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
        run_call(c, session, calls[i]);
    OrtSession *many = open_model(c, "types.onnx");
    if (many) {
        run_call(
            c, many,
            (struct call){
                "run: some inputs missing", {"in_float"}, {row}, 1, {"out_double"}, 1, NULL, NULL});
        c->api->ReleaseSession(many);
    }
    OrtValue *values[] = {fine, wide, row, doubles, short_y, double_y};
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
        c->api->ReleaseValue(values[i]);
    c->api->ReleaseRunOptions(stopped);
    c->api->ReleaseSession(session);
}

static void question_errors(struct client *c)
{
    const OrtApi *api = c->api;
    OrtSession *session = open_model(c, "linear.onnx");
    float x[16] = {0};
    char *name = NULL;
    OrtTypeInfo *type = NULL;
    OrtValue *tensor = float_tensor(c, x, 2, 4), *item = NULL;
    OrtTensorTypeAndShapeInfo *info = NULL;
    size_t length = 0;
    int64_t dim = 0;
    if (!session) return;
    say_status(c, "input name out of range",
               api->SessionGetInputName(session, 99, c->allocator, &name));
    say_status(c, "input type out of range", api->SessionGetInputTypeInfo(session, 99, &type));
    if (good(c, "shape", api->GetTensorTypeAndShape(tensor, &info))) {
        say_status(c, "dimensions into a short array", api->GetDimensions(info, &dim, 1));
        api->ReleaseTensorTypeAndShapeInfo(info);
    }
    say_status(c, "string length of a float tensor",
               api->GetStringTensorDataLength(tensor, &length));
    say_status(c, "sequence element of a tensor", api->GetValue(tensor, 0, c->allocator, &item));
    say_status(c, "value count of a tensor", api->GetValueCount(tensor, &length));
    OrtModelMetadata *meta = NULL;
    char *text = NULL;
    if (good(c, "metadata", api->SessionGetModelMetadata(session, &meta))) {
        say_status(c, "metadata: absent key",
                   api->ModelMetadataLookupCustomMetadataMap(meta, c->allocator, "no", &text));
        say("metadata: absent key gives", "%s", text ? text : "NULL");
        api->ReleaseModelMetadata(meta);
    }
    if (!say_status(c, "model profile off", api->SessionEndProfiling(session, c->allocator, &text)))
        c->allocator->Free(c->allocator, text);
    api->ReleaseValue(tensor);
    api->ReleaseSession(session);
}

static void option_errors(struct client *c)
{
    const OrtApi *api = c->api;
    OrtSessionOptions *o = NULL;
    char entry[16];
    size_t size = sizeof(entry);
    if (!good(c, "options", api->CreateSessionOptions(&o))) return;
    say_status(c, "option: threads -1", api->SetIntraOpNumThreads(o, -1));
    say_status(c, "option: graph level 7",
               api->SetSessionGraphOptimizationLevel(o, (GraphOptimizationLevel)7));
    say_status(c, "option: log severity 9", api->SetSessionLogSeverityLevel(o, 9));
    say_status(c, "option: empty config key", api->AddSessionConfigEntry(o, "", "1"));
    say_status(c, "option: unknown config key", api->AddSessionConfigEntry(o, "my.own", "1"));
    say_status(c, "option: missing config key",
               api->GetSessionConfigEntry(o, "absent", entry, &size));
    say_status(c, "provider: unknown",
               api->SessionOptionsAppendExecutionProvider(o, "NoSuch", NULL, NULL, 0));
    say_status(c, "provider: not built",
               api->SessionOptionsAppendExecutionProvider(o, "XNNPACK", NULL, NULL, 0));
    static const uint64_t zeros[64]; /* options of the provider, larger than any release has them */
    say_status(c, "provider: CUDA absent",
               api->SessionOptionsAppendExecutionProvider_CUDA(
                   o, (const OrtCUDAProviderOptions *)(const void *)zeros));
    void *handle = NULL;
    say_status(c, "library: missing custom ops",
               api->RegisterCustomOpsLibrary(o, "/no/such.so", &handle));
    api->ReleaseSessionOptions(o);
    OrtMemoryInfo *info = NULL;
    say_status(c, "memory info: unknown name",
               api->CreateMemoryInfo("NoSuch", OrtDeviceAllocator, 0, OrtMemTypeDefault, &info));
    if (!say_status(c, "memory info: Cuda",
                    api->CreateMemoryInfo("Cuda", OrtDeviceAllocator, 0, OrtMemTypeDefault, &info)))
        api->ReleaseMemoryInfo(info);
}

static void binding_errors(struct client *c)
{
    OrtSession *session = open_model(c, "linear.onnx");
    OrtIoBinding *binding = NULL;
    float x[8] = {0};
    if (!session || !good(c, "bind", c->api->CreateIoBinding(session, &binding))) return;
    OrtValue *value = float_tensor(c, x, 2, 4);
    say_status(c, "bind: unknown input", c->api->BindInput(binding, "q", value));
    say_status(c, "bind: unknown output", c->api->BindOutputToDevice(binding, "z", c->cpu));
    say_status(c, "bind: run without inputs", c->api->RunWithBinding(session, NULL, binding));
    c->api->ReleaseValue(value);
    c->api->ReleaseIoBinding(binding);
    c->api->ReleaseSession(session);
}

int main(int argc, char **argv)
{
    if (argc != 3) return fprintf(stderr, "usage: error_table LIBRARY MODELS\n"), 2;
    struct client c;
    client_open(&c, argv[1], argv[2]);
    load_errors(&c);
    tensor_errors(&c);
    run_errors(&c);
    question_errors(&c);
    option_errors(&c);
    binding_errors(&c);
    client_close(&c);
    say("end", "reached");
    return 0;
}
