/* SPDX-License-Identifier: Apache-2.0
 * What belongs to no other client: shared allocators, external initializers, options of the CPU
 * provider, models compiled for a provider, load cancellation, environments with options. */
#include "abi_client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check_allocators(struct client *c)
{
    const OrtEpDevice *const *devices = NULL;
    size_t count = 0;
    OrtAllocator *made = NULL, *found = NULL;
    const OrtApi *api = c->api;
    if (!good(c, "shared", api->GetEpDevices(c->env, &devices, &count))) return;
    say_status(c, "shared.get", api->GetSharedAllocator(c->env, c->cpu, &found));
    say("shared.get", "%s", found ? "there" : "NULL");
    OrtStatus *failed = api->CreateSharedAllocator(c->env, devices[0], OrtDeviceMemoryType_DEFAULT,
                                                   OrtDeviceAllocator, NULL, &made);
    say("shared.create", "code=%d", failed ? (int)api->GetErrorCode(failed) : 0);
    api->ReleaseStatus(failed);
    failed = api->ReleaseSharedAllocator(c->env, devices[0], OrtDeviceMemoryType_DEFAULT);
    say("shared.release", "code=%d", failed ? (int)api->GetErrorCode(failed) : 0);
    api->ReleaseStatus(failed);
    say_status(c, "register.cpu",
               api->CreateAndRegisterAllocatorV2(c->env, "CPUExecutionProvider", c->cpu, NULL, NULL,
                                                 NULL, 0));
    failed = api->CreateAndRegisterAllocatorV2(c->env, "NoProvider", c->cpu, NULL, NULL, NULL, 0);
    say("register.none", "code=%d", failed ? (int)api->GetErrorCode(failed) : 0);
    api->ReleaseStatus(failed);
}

static void check_external(struct client *c)
{
    OrtExternalInitializerInfo *info = NULL;
    const OrtApi *api = c->api;
    if (good(c, "external", api->CreateExternalInitializerInfo("weights.bin", 4096, 77, &info)))
        say("external", "%s %lld %zu", api->ExternalInitializerInfo_GetFilePath(info),
            (long long)api->ExternalInitializerInfo_GetFileOffset(info),
            api->ExternalInitializerInfo_GetByteSize(info));
    api->ReleaseExternalInitializerInfo(info);
    OrtSessionOptions *options = NULL;
    OrtSession *session = NULL;
    float weights[] = {10, 20}, x[] = {1, 2, 3, 4};
    const size_t size = sizeof weights;
    if (!good(c, "files", api->CreateSessionOptions(&options))) return;
    char *bytes = malloc(size);
    memcpy(bytes, weights, size);
    say_status(c, "files.add",
               api->AddExternalInitializersFromFilesInMemory(
                   options, (const char *[]){"weights.bin"}, &bytes, &size, 1));
    size_t length = 0;
    void *model = read_whole(model_path(c, "external.onnx"), &length);
    say_status(c, "files.open",
               api->CreateSessionFromArray(c->env, model, length, options, &session));
    memset(bytes, 0, size);
    free(bytes);
    free(model);
    if (session) run_one(c, "files.run", session, float_tensor(c, x, 2, 2));
    api->ReleaseSession(session);
    api->ReleaseSessionOptions(options);
}

static void check_session(struct client *c)
{
    const OrtApi *api = c->api;
    OrtSession *session = open_model(c, "add.onnx");
    const OrtEpDevice *device = NULL;
    OrtSessionOptions *options = NULL;
    char *info = NULL;
    if (!session) return;
    say_status(
        c, "session.dynamic",
        api->SetEpDynamicOptions(session, (const char *[]){"key"}, (const char *[]){"value"}, 1));
    OrtStatus *failed = api->SessionReleaseCapturedGraph(session, 0);
    say("session.captured", "code=%d", failed ? (int)api->GetErrorCode(failed) : 0);
    api->ReleaseStatus(failed);
    if (good(c, "session.device", api->SessionGetEpDeviceForInputs(session, &device, 1)))
        say("session.device", "%s", device ? api->EpDevice_EpName(device) : "NULL");
    if (good(c, "session.device_out", api->SessionGetEpDeviceForOutputs(session, &device, 1)))
        say("session.device_out", "%s", device ? api->EpDevice_EpName(device) : "NULL");
    api->ReleaseSession(session);
    say_status(c, "compatible",
               api->GetCompatibilityInfoFromModel(model_path(c, "add.onnx"), "CPUExecutionProvider",
                                                  c->allocator, &info));
    say("compatible", "%s", info ? info : "NULL");
    if (!good(c, "cancel", api->CreateSessionOptions(&options))) return;
    say_status(c, "cancel.set", api->SessionOptionsSetLoadCancellationFlag(options, true));
    session = NULL;
    failed = api->CreateSession(c->env, model_path(c, "add.onnx"), options, &session);
    say("cancel.open", "code=%d", failed ? (int)api->GetErrorCode(failed) : 0);
    api->ReleaseStatus(failed);
    api->ReleaseSession(session);
    say_status(c, "cancel.unset", api->SessionOptionsSetLoadCancellationFlag(options, false));
    session = NULL;
    say_status(c, "cancel.again",
               api->CreateSession(c->env, model_path(c, "add.onnx"), options, &session));
    api->ReleaseSession(session);
    api->ReleaseSessionOptions(options);
}

static void check_compile(struct client *c)
{
    const OrtCompileApi *compile = c->api->GetCompileApi();
    OrtModelCompilationOptions *options = NULL;
    OrtSessionOptions *session_options = NULL;
    OrtSession *session = NULL;
    float x[] = {1, 2, 3, 4};
    void *bytes = NULL;
    size_t size = 0;
    if (!good(c, "compile", c->api->CreateSessionOptions(&session_options)) ||
        !good(c, "compile",
              compile->CreateModelCompilationOptionsFromSessionOptions(c->env, session_options,
                                                                       &options)))
        return;
    say_status(c, "compile.nothing", compile->CompileModel(c->env, options));
    say_status(
        c, "compile.in",
        compile->ModelCompilationOptions_SetInputModelPath(options, model_path(c, "add.onnx")));
    say_status(c, "compile.embed",
               compile->ModelCompilationOptions_SetEpContextEmbedMode(options, true));
    say_status(
        c, "compile.level",
        compile->ModelCompilationOptions_SetGraphOptimizationLevel(options, ORT_ENABLE_BASIC));
    say_status(c, "compile.flags", compile->ModelCompilationOptions_SetFlags(options, 0));
    say_status(c, "compile.out",
               compile->ModelCompilationOptions_SetOutputModelBuffer(options, c->allocator, &bytes,
                                                                     &size));
    if (!say_status(c, "compile.run", compile->CompileModel(c->env, options)) && bytes &&
        good(c, "compile.open",
             c->api->CreateSessionFromArray(c->env, bytes, size, session_options, &session)))
        run_one(c, "compile.y", session, float_tensor(c, x, 2, 2));
    if (bytes) good(c, "compile.free", c->api->AllocatorFree(c->allocator, bytes));
    c->api->ReleaseSession(session);
    session = NULL;
    say_status(c, "compile.out_path",
               compile->ModelCompilationOptions_SetOutputModelPath(options,
                                                                   model_path(c, "compiled.onnx")));
    if (!say_status(c, "compile.run_path", compile->CompileModel(c->env, options)) &&
        good(c, "compile.open_path",
             c->api->CreateSession(c->env, model_path(c, "compiled.onnx"), session_options,
                                   &session)))
        run_one(c, "compile.y_path", session, float_tensor(c, x, 2, 2));
    remove(model_path(c, "compiled.onnx"));
    c->api->ReleaseSession(session);
    compile->ReleaseModelCompilationOptions(options);
    c->api->ReleaseSessionOptions(session_options);
}

int main(int argc, char **argv)
{
    struct client c;
    if (argc < 3) return 2;
    client_open(&c, argv[1], argv[2]);
    check_allocators(&c);
    check_external(&c);
    check_session(&c);
    check_compile(&c);
    client_close(&c);
    say("end", "reached");
    return 0;
}
