/* SPDX-License-Identifier: Apache-2.0
 * The edges of the functions behind values, types, memory and options: arguments that are refused,
 * shapes without elements, infos of memory that is not there. */
#include "abi_client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FLOAT  ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT
#define STRING ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING

static void say_memory(struct client *c, const char *name, OrtStatus *status,
                       const OrtMemoryInfo *info)
{
    const OrtApi *api = c->api;
    const char *text = NULL;
    int id = -9;
    OrtMemType mem_type = -9;
    OrtAllocatorType type = -9;
    OrtMemoryInfoDeviceType device = -9;
    if (!good(c, name, status)) return;
    good(c, name, api->MemoryInfoGetName(info, &text));
    good(c, name, api->MemoryInfoGetId(info, &id));
    good(c, name, api->MemoryInfoGetMemType(info, &mem_type));
    good(c, name, api->MemoryInfoGetType(info, &type));
    api->MemoryInfoGetDeviceType(info, &device);
    say(name, "%s id %d mem %d type %d device %d memory %d vendor %x", text, id, (int)mem_type,
        (int)type, (int)device, (int)api->MemoryInfoGetDeviceMemType(info),
        (unsigned)api->MemoryInfoGetVendorId(info));
}

static void check_memory(struct client *c)
{
    static const char *const names[] = {"Cpu",          "Cuda",
                                        "CudaPinned",   "Hip",
                                        "HipPinned",    "OpenVINO_CPU",
                                        "DML",          "QnnHtpShared",
                                        "WebGPU_Buf",   "WebGPU_Buffer",
                                        "WebNN_Tensor", "Cann",
                                        "CannPinned",   "OpenVINO_RT",
                                        "OpenVINO_GPU", "OpenVINO_RT_NPU",
                                        "Tpu",          ""};
    const OrtApi *api = c->api;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char name[64];
        OrtMemoryInfo *info = NULL;
        snprintf(name, sizeof name, "memory.%s", names[i]);
        OrtStatus *status =
            api->CreateMemoryInfo(names[i], OrtDeviceAllocator, 1, OrtMemTypeDefault, &info);
        say_memory(c, name, status, info);
        api->ReleaseMemoryInfo(info);
    }
    OrtMemoryInfo *a = NULL, *b = NULL;
    OrtStatus *status =
        api->CreateMemoryInfo_V2("Mine", OrtMemoryInfoDeviceType_GPU, 0x10de, 3,
                                 OrtDeviceMemoryType_HOST_ACCESSIBLE, 64, OrtArenaAllocator, &a);
    say_memory(c, "memory.v2", status, a);
    int differ = 9;
    if (good(c, "memory.compare", api->CompareMemoryInfo(a, c->cpu, &differ)))
        say("memory.compare", "%d", differ);
    if (good(c, "memory.equal", api->CreateCpuMemoryInfo(OrtArenaAllocator, 0, &b)) &&
        good(c, "memory.equal", api->CompareMemoryInfo(b, c->cpu, &differ)))
        say("memory.equal", "%d", differ);
    api->ReleaseMemoryInfo(a);
    api->ReleaseMemoryInfo(b);
    status = api->CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeCPUOutput, &a);
    say_memory(c, "memory.cpu", status, a);
    api->ReleaseMemoryInfo(a);
    const OrtMemoryInfo *info = NULL;
    status = api->AllocatorGetInfo(c->allocator, &info);
    say_memory(c, "memory.default", status, info);
}

static void check_arenas(struct client *c)
{
    const OrtApi *api = c->api;
    static const char *const keys[] = {"max_mem", "arena_extend_strategy", "no_such_key"};
    static const size_t values[] = {0, 1, 2};
    OrtArenaCfg *arena = NULL;
    say_status(c, "arena.good", api->CreateArenaCfgV2(keys, values, 2, &arena));
    say_status(c, "arena.register", api->CreateAndRegisterAllocator(c->env, c->cpu, arena));
    say_status(c, "arena.twice", api->CreateAndRegisterAllocator(c->env, c->cpu, arena));
    say_status(c, "arena.unregister", api->UnregisterAllocator(c->env, c->cpu));
    say_status(c, "arena.unregistered", api->UnregisterAllocator(c->env, c->cpu));
    api->ReleaseArenaCfg(arena);
    say_status(c, "arena.bad", api->CreateArenaCfgV2(keys, values, 3, &arena));
}

static void check_shape(struct client *c, const char *name, const int64_t *dims, size_t rank)
{
    const OrtApi *api = c->api;
    OrtTensorTypeAndShapeInfo *info = NULL;
    size_t count = 99, got = 99;
    if (!good(c, name, api->CreateTensorTypeAndShapeInfo(&info))) return;
    say(name, "has shape %d", (int)api->TensorTypeAndShape_HasShape(info));
    say_status(c, name, api->SetTensorElementType(info, FLOAT));
    say_status(c, name, api->SetDimensions(info, dims, rank));
    say(name, "has shape %d", (int)api->TensorTypeAndShape_HasShape(info));
    if (good(c, name, api->GetDimensionsCount(info, &got))) say(name, "rank %zu", got);
    if (good(c, name, api->GetTensorShapeElementCount(info, &count)))
        say(name, "count %lld", (long long)count);
    const char *symbols[] = {"batch", "", "w"}, *back[3] = {"?", "?", "?"};
    say_status(c, name, api->SetSymbolicDimensions(info, symbols, rank));
    if (good(c, name, api->GetSymbolicDimensions(info, back, rank)))
        for (size_t i = 0; i < rank; i++)
            say(name, "symbol %s", back[i]);
    api->ReleaseTensorTypeAndShapeInfo(info);
}

static void check_shapes(struct client *c)
{
    check_shape(c, "shape.none", NULL, 0);
    check_shape(c, "shape.some", (int64_t[]){2, 3, 4}, 3);
    check_shape(c, "shape.zero", (int64_t[]){2, 0, 4}, 3);
    check_shape(c, "shape.open", (int64_t[]){-1, 3, 4}, 3);
}

static OrtValue *make(struct client *c, const char *name, ONNXTensorElementDataType type,
                      size_t rank, const int64_t *dims)
{
    OrtValue *value = NULL;
    say_status(c, name, c->api->CreateTensorAsOrtValue(c->allocator, dims, rank, type, &value));
    return value;
}

static void check_tensors(struct client *c)
{
    const OrtApi *api = c->api;
    size_t bytes = 99;
    void *at = NULL;
    OrtValue *value = make(c, "tensor.scalar", FLOAT, 0, NULL);
    if (good(c, "tensor.bytes", api->GetTensorSizeInBytes(value, &bytes)))
        say("tensor.bytes", "%zu", bytes);
    api->ReleaseValue(value);
    value = make(c, "tensor.empty", FLOAT, 2, (int64_t[]){0, 3});
    if (good(c, "tensor.empty", api->GetTensorSizeInBytes(value, &bytes)))
        say("tensor.empty", "%zu", bytes);
    api->ReleaseValue(value);
    value = make(c, "tensor.4bit", ONNX_TENSOR_ELEMENT_DATA_TYPE_INT4, 1, (int64_t[]){3});
    if (value && good(c, "tensor.4bit", api->GetTensorSizeInBytes(value, &bytes)))
        say("tensor.4bit", "%zu", bytes);
    api->ReleaseValue(value);
    value = make(c, "tensor.at", FLOAT, 2, (int64_t[]){2, 3});
    float *data = NULL;
    good(c, "tensor.data", api->GetTensorMutableData(value, (void **)&data));
    if (good(c, "tensor.at", api->TensorAt(value, (int64_t[]){1, 2}, 2, &at)))
        say("tensor.at", "%d", (int)((float *)at - data));
    say_status(c, "tensor.at_rank", api->TensorAt(value, (int64_t[]){1}, 1, &at));
    say_status(c, "tensor.at_range", api->TensorAt(value, (int64_t[]){1, 3}, 2, &at));
    say_status(c, "tensor.at_negative", api->TensorAt(value, (int64_t[]){-1, 0}, 2, &at));
    OrtValue *item = NULL;
    say_status(c, "tensor.item", api->GetValue(value, 0, c->allocator, &item));
    api->ReleaseValue(value);
    value = make(c, "tensor.complex", ONNX_TENSOR_ELEMENT_DATA_TYPE_COMPLEX64, 1, (int64_t[]){3});
    api->ReleaseValue(value);
    value = make(c, "tensor.type99", (ONNXTensorElementDataType)99, 1, (int64_t[]){3});
    api->ReleaseValue(value);
    value = make(c, "tensor.huge", FLOAT, 2, (int64_t[]){INT64_MAX / 2, 16});
    api->ReleaseValue(value);
}

static void check_strings(struct client *c)
{
    const OrtApi *api = c->api;
    static const char *const texts[] = {"a", "", "three"};
    char buffer[16] = "";
    char *room = NULL;
    size_t offsets[3], length = 99, bytes = 99;
    OrtValue *value = make(c, "string.make", STRING, 1, (int64_t[]){3});
    say_value(c, "string.fresh", value);
    say_status(c, "string.fill", api->FillStringTensor(value, texts, 3));
    say_status(c, "string.fill_short", api->FillStringTensor(value, texts, 2));
    say_status(c, "string.element", api->FillStringTensorElement(value, "twotwo", 1));
    say_status(c, "string.element_range", api->FillStringTensorElement(value, "x", 3));
    say_value(c, "string.value", value);
    say_status(c, "string.resize", api->GetResizedStringTensorElementBuffer(value, 0, 4, &room));
    if (room) memcpy(room, "wxyz", 4);
    say_value(c, "string.resized", value);
    say_status(c, "string.length_range", api->GetStringTensorElementLength(value, 3, &length));
    say_status(c, "string.get_range", api->GetStringTensorElement(value, 16, 3, buffer));
    say_status(c, "string.get_short", api->GetStringTensorElement(value, 2, 0, buffer));
    say_status(c, "string.content_short",
               api->GetStringTensorContent(value, buffer, 2, offsets, 3));
    say_status(c, "string.content_count",
               api->GetStringTensorContent(value, buffer, 16, offsets, 2));
    say_status(c, "string.bytes", api->GetTensorSizeInBytes(value, &bytes));
    api->ReleaseValue(value);
}

static void check_options(struct client *c)
{
    const OrtApi *api = c->api;
    static float one = 1;
    OrtSessionOptions *options = NULL;
    char small[2];
    size_t size = 0;
    const int64_t length = 1;
    OrtValue *value = tensor_over(c, FLOAT, &one, sizeof one, 1, &length);
    good(c, "options", api->CreateSessionOptions(&options));
    say_status(c, "options.mode", api->SetSessionExecutionMode(options, (ExecutionMode)7));
    say_status(c, "options.denotation", api->AddFreeDimensionOverride(options, "DATA_BATCH", 2));
    say_status(c, "options.negative", api->AddFreeDimensionOverrideByName(options, "N", -2));
    say_status(c, "options.initializer", api->AddInitializer(options, "w", value));
    say_status(c, "options.again", api->AddInitializer(options, "w", value));
    say_status(c, "options.unnamed", api->AddInitializer(options, "", value));
    say_status(c, "options.unvalued", api->AddInitializer(options, "v", NULL));
    say_status(c, "options.set", api->AddSessionConfigEntry(options, "a.key", "value"));
    say_status(c, "options.set_again", api->AddSessionConfigEntry(options, "a.key", "other"));
    say_status(c, "options.size", api->GetSessionConfigEntry(options, "a.key", NULL, &size));
    say("options.size", "%zu", size);
    size = sizeof small;
    say_status(c, "options.small", api->GetSessionConfigEntry(options, "a.key", small, &size));
    say_status(c, "options.end", api->DisableProfiling(options));
    api->ReleaseSessionOptions(options);
    api->ReleaseValue(value);
}

static void check_env_options(struct client *c)
{
    const OrtApi *api = c->api;
    OrtEnvCreationOptions with = {.version = 24, .logging_severity_level = 4, .log_id = "third"};
    OrtEnv *env = NULL;
    const void *found = NULL;
    say_status(c, "env.none", api->CreateEnvWithOptions(NULL, &env));
    if (!say_status(c, "env.with", api->CreateEnvWithOptions(&with, &env))) {
        say("env.same", "%d", env == c->env);
        api->ReleaseEnv(env);
    }
    with.log_id = NULL;
    say_status(c, "env.unnamed", api->CreateEnvWithOptions(&with, &env));
    with.logging_severity_level = 5;
    say_status(c, "env.level", api->CreateEnvWithOptions(&with, &env));
    with.version = 23;
    say_status(c, "env.old", api->CreateEnvWithOptions(&with, &env));
    say_status(c, "provider.api", api->GetExecutionProviderApi("DML", 24, &found));
    say("experimental", "%d", api->GetExperimentalFunction("OrtApi_NoSuchFunction") != NULL);
}

static void check_run_options(struct client *c)
{
    const OrtApi *api = c->api;
    OrtRunOptions *options = NULL;
    const char *tag = NULL;
    int level = -9;
    good(c, "run", api->CreateRunOptions(&options));
    if (good(c, "run.tag", api->RunOptionsGetRunTag(options, &tag))) say("run.tag", "'%s'", tag);
    if (good(c, "run.verbosity", api->RunOptionsGetRunLogVerbosityLevel(options, &level)))
        say("run.verbosity", "%d", level);
    if (good(c, "run.severity", api->RunOptionsGetRunLogSeverityLevel(options, &level)))
        say("run.severity", "%d", level);
    say_status(c, "run.entry", api->AddRunConfigEntry(options, "a", "b"));
    say_status(c, "run.empty", api->AddRunConfigEntry(options, "", "b"));
    const char *got = api->GetRunConfigEntry(options, "a"),
               *none = api->GetRunConfigEntry(options, "z");
    say("run.entry", "%s %s", got ? got : "NULL", none ? none : "NULL");
    api->ReleaseRunOptions(options);
}

static void check_session(struct client *c)
{
    const OrtApi *api = c->api;
    const OrtMemoryInfo *infos[4] = {0};
    OrtSession *session = open_model(c, "weights_given.onnx");
    OrtAllocator *allocator = NULL;
    OrtTypeInfo *type = NULL;
    uint64_t start = 9;
    char *name = NULL;
    if (!session) return;
    say_status(c, "session.memory", api->SessionGetMemoryInfoForInputs(session, infos, 1));
    say_memory(c, "session.memory", NULL, infos[0]);
    say_status(c, "session.memory_count", api->SessionGetMemoryInfoForOutputs(session, infos, 3));
    say_status(c, "session.overridable",
               api->SessionGetOverridableInitializerName(session, 5, c->allocator, &name));
    say_status(c, "session.overridable_type",
               api->SessionGetOverridableInitializerTypeInfo(session, 5, &type));
    say_status(c, "session.profile_start", api->SessionGetProfilingStartTimeNs(session, &start));
    if (good(c, "session.allocator", api->CreateAllocator(session, c->cpu, &allocator))) {
        const OrtMemoryInfo *info = NULL;
        OrtStatus *status = api->AllocatorGetInfo(allocator, &info);
        say_memory(c, "session.allocator", status, info);
        api->ReleaseAllocator(allocator);
    }
    OrtMemoryInfo *cuda = NULL;
    good(c, "cuda", api->CreateMemoryInfo("Cuda", OrtDeviceAllocator, 0, 0, &cuda));
    say_status(c, "session.allocator_cuda", api->CreateAllocator(session, cuda, &allocator));
    api->ReleaseMemoryInfo(cuda);
    api->ReleaseSession(session);
}

static void check_threading(struct client *c)
{
    const OrtApi *api = c->api;
    OrtThreadingOptions *threading = NULL;
    good(c, "threading", api->CreateThreadingOptions(&threading));
    say_status(c, "threading.intra", api->SetGlobalIntraOpNumThreads(threading, 2));
    say_status(c, "threading.spin", api->SetGlobalSpinControl(threading, 2));
    say_status(c, "threading.denormal", api->SetGlobalDenormalAsZero(threading));
    say_status(c, "threading.affinity", api->SetGlobalIntraOpThreadAffinity(threading, ""));
    OrtEnv *second = NULL;
    say_status(
        c, "threading.env",
        api->CreateEnvWithGlobalThreadPools(ORT_LOGGING_LEVEL_FATAL, "b", threading, &second));
    say("threading.same", "%d", second == c->env);
    api->ReleaseEnv(second);
    api->ReleaseThreadingOptions(threading);
}

/* Outputs that the caller has memory for, and values without elements. */
static void check_outputs(struct client *c)
{
    const OrtApi *api = c->api;
    OrtSession *session = open_model(c, "linear.onnx");
    float x[4] = {1, 2, 3, 4};
    const char *in = "x", *outs[] = {"y", "y"};
    if (!session) return;
    OrtValue *input = float_tensor(c, x, 1, 4), *bound[2] = {NULL, NULL};
    say_status(c, "outputs.bound",
               api->Run(session, NULL, &in, (const OrtValue *const *)&input, 1, outs, 2, bound));
    if (bound[0]) say_value(c, "outputs.first", bound[0]);
    if (bound[1]) say_value(c, "outputs.second", bound[1]);
    api->ReleaseValue(bound[0]);
    api->ReleaseValue(bound[1]);
    OrtValue *empty = float_tensor(c, x, 0, 4), *none = NULL;
    say_status(c, "outputs.none",
               api->Run(session, NULL, &in, (const OrtValue *const *)&empty, 1, outs, 1, &none));
    if (none) say_value(c, "outputs.none", none);
    api->ReleaseValue(none);
    api->ReleaseValue(empty);
    api->ReleaseValue(input);
    api->ReleaseSession(session);
}

static void run_linear(struct client *c, const char *name, OrtSession *session)
{
    float x[4] = {1, 2, 3, 4};
    run_one(c, name, session, float_tensor(c, x, 1, 4));
}

/* Sessions that may share a model, in any order of their ends. */
static void check_shared(struct client *c)
{
    const OrtApi *api = c->api;
    OrtSession *sessions[4] = {NULL};
    OrtSessionOptions *options = NULL;
    OrtPrepackedWeightsContainer *container = NULL;
    size_t size = 0;
    void *bytes = read_whole(model_path(c, "linear.onnx"), &size);
    good(c, "shared.options", api->CreateSessionOptions(&options));
    good(c, "shared.container", api->CreatePrepackedWeightsContainer(&container));
    for (int i = 0; i < 2; i++) {
        say_status(c, "shared.bytes",
                   api->CreateSessionFromArrayWithPrepackedWeightsContainer(
                       c->env, bytes, size, options, container, &sessions[i]));
        say_status(c, "shared.path",
                   api->CreateSessionWithPrepackedWeightsContainer(
                       c->env, model_path(c, "linear.onnx"), options, container, &sessions[2 + i]));
    }
    free(bytes);
    for (int i = 0; i < 4; i++) {
        run_linear(c, "shared.run", sessions[i]);
        api->ReleaseSession(sessions[i]);
    }
    api->ReleasePrepackedWeightsContainer(container);
    good(c, "shared.dimension", api->AddFreeDimensionOverrideByName(options, "N", 2));
    OrtSession *plain = open_model(c, "linear.onnx"), *fixed = NULL;
    good(c, "shared.fixed",
         api->CreateSession(c->env, model_path(c, "linear.onnx"), options, &fixed));
    run_linear(c, "shared.plain", plain);
    run_linear(c, "shared.fixed", fixed);
    api->ReleaseSession(plain);
    api->ReleaseSession(fixed);
    api->ReleaseSessionOptions(options);
}

int main(int argc, char **argv)
{
    struct client c;
    if (argc != 3) return 2;
    client_open(&c, argv[1], argv[2]);
    check_memory(&c);
    check_arenas(&c);
    check_shapes(&c);
    check_tensors(&c);
    check_strings(&c);
    check_options(&c);
    check_run_options(&c);
    check_env_options(&c);
    check_session(&c);
    check_threading(&c);
    check_outputs(&c);
    check_shared(&c);
    client_close(&c);
    say("end", "reached");
    return 0;
}
