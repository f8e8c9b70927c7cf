/* SPDX-License-Identifier: Apache-2.0
 * Models with the operators of custom_ops_library.c, registered in each way there is. Arguments:
 * LIBRARY MODELS CUSTOM_OPS. */
#include "abi_client.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *library;

static OrtSession *open_with(struct client *c, const char *name, OrtSessionOptions *options)
{
    OrtSession *session = NULL;
    char line[64];
    snprintf(line, sizeof line, "open.%s", name);
    OrtStatus *failed = c->api->CreateSession(c->env, model_path(c, name), options, &session);
    say_status(c, line, failed);
    return session;
}

static OrtSessionOptions *options_with_library(struct client *c)
{
    OrtSessionOptions *options = NULL;
    if (!good(c, "options", c->api->CreateSessionOptions(&options)) ||
        !good(c, "options", c->api->RegisterCustomOpsLibrary_V2(options, library)) ||
        !good(c, "options", c->api->AddSessionConfigEntry(options, "my.entry", "told")))
        exit(1);
    return options;
}

static void check_scale(struct client *c, OrtSessionOptions *options)
{
    float x[] = {1, 2, 3, 4}, bias[] = {10, 20, 30, 40};
    OrtSession *session = open_with(c, "scale.onnx", options);
    if (!session) return;
    run_one(c, "scale.y", session, float_tensor(c, x, 2, 2));
    run_one(c, "scale.y", session, float_tensor(c, x, 1, 2));
    c->api->ReleaseSession(session);
    session = open_with(c, "scale_bias.onnx", options);
    if (!session) return;
    OrtValue *in[2] = {float_tensor(c, x, 2, 2), float_tensor(c, bias, 2, 2)}, *y = NULL;
    if (good(c, "scale_bias.y",
             c->api->Run(session, NULL, (const char *[]){"x", "bias"}, (const OrtValue *const *)in,
                         2, (const char *[]){"y"}, 1, &y)))
        say_value(c, "scale_bias.y", y);
    c->api->ReleaseValue(y);
    c->api->ReleaseValue(in[0]);
    c->api->ReleaseValue(in[1]);
    c->api->ReleaseSession(session);
}

static void check_join(struct client *c, OrtSessionOptions *options)
{
    float a[] = {1, 2}, b[] = {10, 20}, d[] = {100, 200};
    OrtSession *session = open_with(c, "join.onnx", options);
    if (!session) return;
    OrtValue *in[3] = {float_tensor(c, a, 1, 2), float_tensor(c, b, 1, 2),
                       float_tensor(c, d, 1, 2)};
    OrtValue *out[2] = {NULL};
    if (good(c, "join.y",
             c->api->Run(session, NULL, (const char *[]){"a", "b", "c"},
                         (const OrtValue *const *)in, 3, (const char *[]){"y", "count"}, 2, out))) {
        say_value(c, "join.y", out[0]);
        say_value(c, "join.count", out[1]);
    }
    for (int i = 0; i < 3; i++)
        c->api->ReleaseValue(in[i]);
    c->api->ReleaseValue(out[0]);
    c->api->ReleaseValue(out[1]);
    c->api->ReleaseSession(session);
    c->api->ReleaseSession(open_with(c, "join_one.onnx", options));
    session = open_with(c, "join_no_count.onnx", options);
    if (!session) return;
    OrtValue *x = float_tensor(c, a, 1, 2);
    run_one(c, "join_no_count.y", session, x);
    c->api->ReleaseSession(session);
}

static void check_others(struct client *c, OrtSessionOptions *options)
{
    float x[] = {1, 5, 3};
    int64_t numbers[] = {7, 8};
    OrtSession *session = open_with(c, "any.onnx", options);
    if (session)
        run_one(c, "any.y", session,
                tensor_over(c, ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64, numbers, sizeof numbers, 1,
                            (int64_t[]){2}));
    c->api->ReleaseSession(session);
    session = open_with(c, "shout.onnx", options);
    OrtValue *text = NULL;
    if (session &&
        good(c, "shout",
             c->api->CreateTensorAsOrtValue(c->allocator, (int64_t[]){2}, 1,
                                            ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING, &text)) &&
        good(c, "shout", c->api->FillStringTensor(text, (const char *[]){"one", ""}, 2)))
        run_one(c, "shout.y", session, text);
    c->api->ReleaseSession(session);
    session = open_with(c, "fails.onnx", options);
    if (session)
        run_one(
            c, "fails.y", session,
            tensor_over(c, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, x, sizeof x, 1, (int64_t[]){3}));
    c->api->ReleaseSession(session);
    c->api->ReleaseSession(open_with(c, "fails_early.onnx", options));
    c->api->ReleaseSession(open_with(c, "scale_of_ints.onnx", options));
    session = open_with(c, "composed.onnx", options);
    if (session)
        run_one(
            c, "composed.y", session,
            tensor_over(c, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, x, sizeof x, 1, (int64_t[]){3}));
    c->api->ReleaseSession(session);
}

/* Each way to register, and what is wrong with some. */
static void check_registration(struct client *c)
{
    OrtSessionOptions *options = NULL;
    OrtCustomOpDomain *domain = NULL;
    void *handle = NULL;
    if (!good(c, "register", c->api->CreateSessionOptions(&options))) return;
    c->api->ReleaseSession(open_with(c, "any.onnx", options));
    say_status(c, "register.extensions", c->api->EnableOrtCustomOps(options));
    OrtStatus *failed = c->api->RegisterCustomOpsLibrary(options, "no_such_library.so", &handle);
    say("register.missing", "code=%d", failed ? (int)c->api->GetErrorCode(failed) : 0);
    c->api->ReleaseStatus(failed);
    failed = c->api->RegisterCustomOpsLibrary_V2(options, "no_such_library.so");
    say("register.missing_v2", "code=%d", failed ? (int)c->api->GetErrorCode(failed) : 0);
    c->api->ReleaseStatus(failed);
    say_status(c, "register.no_function",
               c->api->RegisterCustomOpsUsingFunction(options, "no_such_function"));
    say_status(c, "register.empty_function", c->api->RegisterCustomOpsUsingFunction(options, ""));
    say_status(c, "register.library", c->api->RegisterCustomOpsLibrary(options, library, &handle));
    say("register.handle", "%s", handle ? "there" : "NULL");
    c->api->ReleaseSession(open_with(c, "any.onnx", options));
    c->api->ReleaseSessionOptions(options);
    if (!dlopen(library, RTLD_NOW | RTLD_GLOBAL)) return;
    if (!good(c, "register", c->api->CreateSessionOptions(&options))) return;
    say_status(c, "register.function",
               c->api->RegisterCustomOpsUsingFunction(options, "RegisterCustomOps"));
    c->api->ReleaseSession(open_with(c, "any.onnx", options));
    OrtSessionOptions *clone = NULL;
    if (good(c, "register.clone", c->api->CloneSessionOptions(options, &clone))) {
        c->api->ReleaseSessionOptions(options);
        c->api->ReleaseSession(open_with(c, "any.onnx", clone));
        c->api->ReleaseSessionOptions(clone);
    }
    say_status(c, "register.empty_domain", c->api->CreateCustomOpDomain("", &domain));
    c->api->ReleaseCustomOpDomain(domain);
}

int main(int argc, char **argv)
{
    struct client c;
    if (argc < 4) return 2;
    library = argv[3];
    client_open(&c, argv[1], argv[2]);
    OrtSessionOptions *options = options_with_library(&c);
    check_scale(&c, options);
    check_join(&c, options);
    check_others(&c, options);
    c.api->ReleaseSessionOptions(options);
    check_registration(&c);
    client_close(&c);
    say("end", "reached");
    return 0;
}
