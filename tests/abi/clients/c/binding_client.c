/* SPDX-License-Identifier: Apache-2.0
 * IO binding: inputs and outputs bound, to memory and to a device, bound again, cleared. */
#include "abi_client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void say_bound(struct client *c, const char *name, OrtIoBinding *binding)
{
    char *names = NULL, below[64];
    size_t *lengths = NULL, count = 0;
    OrtValue **values = NULL;
    if (good(c, name,
             c->api->GetBoundOutputNames(binding, c->allocator, &names, &lengths, &count))) {
        const char *at = names;
        say(name, "%zu names%s", count, names && lengths ? "" : " NULL");
        snprintf(below, sizeof below, "%s.name", name);
        for (size_t i = 0; i < count; at += lengths[i++])
            say(below, "%.*s", (int)lengths[i], at);
        if (names) good(c, name, c->api->AllocatorFree(c->allocator, names));
        if (lengths) good(c, name, c->api->AllocatorFree(c->allocator, lengths));
    }
    if (!good(c, name, c->api->GetBoundOutputValues(binding, c->allocator, &values, &count)))
        return;
    say(name, "%zu values%s", count, values ? "" : " NULL");
    snprintf(below, sizeof below, "%s.value", name);
    for (size_t i = 0; i < count; i++) {
        say_value(c, below, values[i]);
        c->api->ReleaseValue(values[i]);
    }
    if (values) good(c, name, c->api->AllocatorFree(c->allocator, values));
}

static void check_binding(struct client *c)
{
    float a[] = {1, 2, 3, 4, 5, 6}, b[] = {10, 20, 30, 40, 50, 60}, sum[6] = {0};
    OrtSession *session = open_model(c, "two_outputs.onnx");
    OrtIoBinding *binding = NULL;
    if (!session || !good(c, "bind", c->api->CreateIoBinding(session, &binding))) return;
    OrtValue *in_a = float_tensor(c, a, 2, 3), *in_b = float_tensor(c, b, 2, 3);
    OrtValue *out = float_tensor(c, sum, 2, 3);
    say_bound(c, "bind.nothing", binding);
    say_status(c, "bind.run_nothing", c->api->RunWithBinding(session, NULL, binding));
    say_status(c, "bind.a", c->api->BindInput(binding, "a", in_a));
    say_status(c, "bind.b", c->api->BindInput(binding, "b", in_b));
    say_status(c, "bind.run_no_output", c->api->RunWithBinding(session, NULL, binding));
    say_status(c, "bind.sum", c->api->BindOutput(binding, "sum", out));
    say_status(c, "bind.product", c->api->BindOutputToDevice(binding, "product", c->cpu));
    say_bound(c, "bind.before", binding);
    say_status(c, "bind.sync", c->api->SynchronizeBoundInputs(binding));
    say_status(c, "bind.run", c->api->RunWithBinding(session, NULL, binding));
    say_status(c, "bind.sync", c->api->SynchronizeBoundOutputs(binding));
    say_bound(c, "bind.after", binding);
    say("bind.memory", "%g %g", (double)sum[0], (double)sum[5]);
    a[0] = 7;
    say_status(c, "bind.run_again", c->api->RunWithBinding(session, NULL, binding));
    say_bound(c, "bind.again", binding);
    OrtValue *fewer_a = float_tensor(c, a, 1, 3), *fewer_b = float_tensor(c, b, 1, 3);
    say_status(c, "bind.fewer_a", c->api->BindInput(binding, "a", fewer_a));
    say_status(c, "bind.fewer_b", c->api->BindInput(binding, "b", fewer_b));
    OrtStatus *failed = c->api->RunWithBinding(session, NULL, binding);
    say("bind.wrong_shape", "code=%d", failed ? (int)c->api->GetErrorCode(failed) : 0);
    c->api->ReleaseStatus(failed);
    c->api->ClearBoundOutputs(binding);
    say_bound(c, "bind.cleared", binding);
    say_status(c, "bind.product", c->api->BindOutputToDevice(binding, "product", c->cpu));
    say_status(c, "bind.run_fewer", c->api->RunWithBinding(session, NULL, binding));
    say_bound(c, "bind.fewer", binding);
    say_status(c, "bind.more_a", c->api->BindInput(binding, "a", in_a));
    say_status(c, "bind.more_b", c->api->BindInput(binding, "b", in_b));
    failed = c->api->RunWithBinding(session, NULL, binding);
    say("bind.grown", "code=%d", failed ? (int)c->api->GetErrorCode(failed) : 0);
    c->api->ReleaseStatus(failed);
    say_bound(c, "bind.grown", binding);
    say_status(c, "bind.product", c->api->BindOutputToDevice(binding, "product", c->cpu));
    say_status(c, "bind.run_more", c->api->RunWithBinding(session, NULL, binding));
    say_bound(c, "bind.more", binding);
    say_status(c, "bind.no_input", c->api->BindInput(binding, "nowhere", in_a));
    say_status(c, "bind.no_output", c->api->BindOutputToDevice(binding, "nowhere", c->cpu));
    say_status(c, "bind.run_nowhere", c->api->RunWithBinding(session, NULL, binding));
    c->api->ClearBoundInputs(binding);
    c->api->ClearBoundOutputs(binding);
    c->api->ReleaseValue(in_a);
    c->api->ReleaseValue(in_b);
    c->api->ReleaseValue(fewer_a);
    c->api->ReleaseValue(fewer_b);
    c->api->ReleaseValue(out);
    c->api->ReleaseIoBinding(binding);
    c->api->ReleaseSession(session);
}

/* Values released before the run: the binding keeps them. */
static void check_life(struct client *c)
{
    OrtSession *session = open_model(c, "add.onnx");
    OrtIoBinding *binding = NULL;
    OrtValue *x = NULL, *y = NULL;
    float *data = NULL;
    const int64_t dims[] = {1, 2};
    const ONNXTensorElementDataType type = ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT;
    if (!session || !good(c, "life", c->api->CreateIoBinding(session, &binding)) ||
        !good(c, "life", c->api->CreateTensorAsOrtValue(c->allocator, dims, 2, type, &x)) ||
        !good(c, "life", c->api->CreateTensorAsOrtValue(c->allocator, dims, 2, type, &y)) ||
        !good(c, "life", c->api->GetTensorMutableData(x, (void **)&data)))
        return;
    data[0] = 5;
    data[1] = 6;
    say_status(c, "life.x", c->api->BindInput(binding, "x", x));
    say_status(c, "life.y", c->api->BindOutput(binding, "y", y));
    c->api->ReleaseValue(x);
    c->api->ReleaseValue(y);
    say_status(c, "life.run", c->api->RunWithBinding(session, NULL, binding));
    say_bound(c, "life", binding);
    c->api->ReleaseIoBinding(binding);
    c->api->ReleaseSession(session);
}

static volatile int done;

static void on_done(void *user, OrtValue **outputs, size_t count, OrtStatusPtr status)
{
    struct client *c = user;
    if (!status)
        for (size_t i = 0; i < count; i++)
            say_value(c, "async.output", outputs[i]);
    else
        say_status(c, "async.status", status);
    __atomic_store_n(&done, 1, __ATOMIC_RELEASE);
}

static void run_async(struct client *c, const char *name, OrtSession *session, const char *input)
{
    float x[] = {1, 2};
    OrtValue *in = float_tensor(c, x, 1, 2), *out = NULL;
    done = 0;
    const char *const inputs[] = {input}, *const outputs[] = {"y"};
    bool started = good(c, name,
                        c->api->RunAsync(session, NULL, inputs, (const OrtValue *const *)&in, 1,
                                         outputs, 1, &out, on_done, c));
    while (started && !__atomic_load_n(&done, __ATOMIC_ACQUIRE))
        ;
    c->api->ReleaseValue(out);
    c->api->ReleaseValue(in);
}

static void check_async(struct client *c)
{
    OrtSessionOptions *options = NULL;
    OrtSession *session = NULL;
    if (!good(c, "async", c->api->CreateSessionOptions(&options)) ||
        !good(c, "async", c->api->SetIntraOpNumThreads(options, 2)) ||
        !good(c, "async",
              c->api->CreateSession(c->env, model_path(c, "add.onnx"), options, &session)))
        return;
    run_async(c, "async.run", session, "x");
    run_async(c, "async.run_again", session, "x");
    run_async(c, "async.wrong_name", session, "nowhere");
    c->api->ReleaseSession(session);
    if (!good(c, "async", c->api->SetIntraOpNumThreads(options, 1)) ||
        !good(c, "async",
              c->api->CreateSession(c->env, model_path(c, "add.onnx"), options, &session)))
        return;
    OrtValue *out = NULL;
    say_status(c, "async.one_thread",
               c->api->RunAsync(session, NULL, NULL, NULL, 0, NULL, 0, &out, on_done, c));
    c->api->ReleaseSession(session);
    c->api->ReleaseSessionOptions(options);
}

static void check_copy(struct client *c)
{
    float from[] = {1, 2, 3, 4}, to[4] = {0}, few[2] = {0};
    OrtValue *a = float_tensor(c, from, 2, 2), *b = float_tensor(c, to, 2, 2);
    OrtValue *d = float_tensor(c, few, 1, 2);
    say_status(c, "copy", c->api->CopyTensors(c->env, (const OrtValue *const *)&a, &b, NULL, 1));
    say_value(c, "copy.result", b);
    OrtStatus *failed = c->api->CopyTensors(c->env, (const OrtValue *const *)&a, &d, NULL, 1);
    say("copy.wrong_shape", "code=%d", failed ? (int)c->api->GetErrorCode(failed) : 0);
    c->api->ReleaseStatus(failed);
    say_status(c, "copy.none", c->api->CopyTensors(c->env, NULL, NULL, NULL, 0));
    c->api->ReleaseValue(a);
    c->api->ReleaseValue(b);
    c->api->ReleaseValue(d);
}

int main(int argc, char **argv)
{
    struct client c;
    if (argc < 3) return 2;
    client_open(&c, argv[1], argv[2]);
    check_binding(&c);
    check_life(&c);
    check_async(&c);
    check_copy(&c);
    client_close(&c);
    say("end", "reached");
    return 0;
}
