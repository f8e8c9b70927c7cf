/* SPDX-License-Identifier: Apache-2.0
 * Threads that use one library at once: a session for all of them, sessions of their own, runs that
 * are ended by others, values that all read, models that do not load. Prints what went wrong. */
#include "abi_client.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { THREADS = 8, TURNS = 60, ROWS = 5, IN = 4, OUT = 3 };

struct shared {
    struct client *c;
    OrtSession *linear, *string, *endless, *profiled;
    OrtValue *texts; /* filled element by element, gathered by whoever is first */
    OrtRunOptions *options;
    atomic_int wrong, ended;
    atomic_int at_work;
};

static void expect(struct shared *s, bool holds)
{
    if (!holds) atomic_fetch_add(&s->wrong, 1);
}

static bool is_good(struct shared *s, OrtStatus *status)
{
    if (!status) return true;
    fprintf(stderr, "stress: %s\n", s->c->api->GetErrorMessage(status));
    s->c->api->ReleaseStatus(status);
    expect(s, false);
    return false;
}

/* y = x w + 1 with w[i][j] = 3 i + j - 4. */
static void check_linear(struct shared *s, const float *x, const float *y, int rows)
{
    for (int r = 0; r < rows; r++)
        for (int j = 0; j < OUT; j++) {
            float sum = 1;
            for (int i = 0; i < IN; i++)
                sum += x[r * IN + i] * (float)(3 * i + j - 4);
            expect(s, sum == y[r * OUT + j]);
        }
}

static void run_linear(struct shared *s, OrtSession *session, const OrtRunOptions *options,
                       int rows, bool is_bound)
{
    const OrtApi *api = s->c->api;
    float x[ROWS * IN], y[ROWS * OUT];
    const char *in = "x", *out = "y";
    for (int i = 0; i < rows * IN; i++)
        x[i] = (float)(i % 7 + rows);
    OrtValue *input = float_tensor(s->c, x, rows, IN);
    OrtValue *output = is_bound ? float_tensor(s->c, y, rows, OUT) : NULL;
    float *data = NULL;
    if (is_good(s, api->Run(session, options, &in, (const OrtValue *const *)&input, 1, &out, 1,
                            &output)) &&
        is_good(s, api->GetTensorMutableData(output, (void **)&data)))
        check_linear(s, x, data, rows);
    api->ReleaseValue(output);
    api->ReleaseValue(input);
}

static void run_texts(struct shared *s)
{
    const OrtApi *api = s->c->api;
    const char *in = "x", *out = "y";
    OrtValue *output = NULL;
    size_t length = 0;
    if (is_good(s, api->Run(s->string, NULL, &in, (const OrtValue *const *)&s->texts, 1, &out, 1,
                            &output)) &&
        is_good(s, api->GetStringTensorDataLength(output, &length)))
        expect(s, length == strlen("one"
                                   "two"
                                   "three"
                                   "end"));
    api->ReleaseValue(output);
}

/* Sessions come and go, some of models that do not load; names and types are asked for meanwhile.
 */
static void run_sessions(struct shared *s)
{
    const OrtApi *api = s->c->api;
    static const char *const broken[] = {"badop.onnx", "garbage.onnx", "cycle.onnx"};
    OrtSessionOptions *options = NULL;
    OrtSession *session = NULL;
    OrtTypeInfo *type = NULL;
    OrtModelMetadata *metadata = NULL;
    char *name = NULL;
    if (!is_good(s, api->CreateSessionOptions(&options))) return;
    for (size_t i = 0; i < 3; i++) {
        OrtStatus *status =
            api->CreateSession(s->c->env, model_path(s->c, broken[i]), options, &session);
        expect(s, status != NULL && strstr(api->GetErrorMessage(status), broken[i]));
        api->ReleaseStatus(status);
    }
    is_good(s, api->SetIntraOpNumThreads(options, 2));
    if (is_good(
            s, api->CreateSession(s->c->env, model_path(s->c, "linear.onnx"), options, &session))) {
        is_good(s, api->SessionGetInputName(session, 0, s->c->allocator, &name));
        expect(s, name && !strcmp(name, "x"));
        s->c->allocator->Free(s->c->allocator, name);
        is_good(s, api->SessionGetOutputTypeInfo(session, 0, &type));
        api->ReleaseTypeInfo(type);
        is_good(s, api->SessionGetModelMetadata(session, &metadata));
        api->ReleaseModelMetadata(metadata);
        run_linear(s, session, NULL, 2, false);
        api->ReleaseSession(session);
    }
    api->ReleaseSessionOptions(options);
}

static void *work(void *arg)
{
    struct shared *s = arg;
    for (int turn = 0; turn < TURNS; turn++) {
        run_linear(s, s->linear, NULL, turn % ROWS + 1, turn % 3 == 0);
        run_linear(s, s->profiled, NULL, turn % ROWS + 1, false);
        run_texts(s);
        if (turn % 16 == 0) run_sessions(s);
    }
    return NULL;
}

/* A loop without end, until somebody sets the flag of its options. */
static void *run_endless(void *arg)
{
    struct shared *s = arg;
    const OrtApi *api = s->c->api;
    int64_t count = INT64_MAX;
    float x = 1;
    const char *ins[] = {"count", "x"}, *out = "y";
    const int64_t one = 1;
    OrtValue *inputs[] = {
        tensor_over(s->c, ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64, &count, sizeof count, 0, NULL),
        tensor_over(s->c, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &x, sizeof x, 1, &one)};
    OrtValue *output = NULL;
    atomic_fetch_add(&s->at_work, 1);
    OrtStatus *status =
        api->Run(s->endless, s->options, ins, (const OrtValue *const *)inputs, 2, &out, 1, &output);
    expect(s, status && strstr(api->GetErrorMessage(status),
                               "Exiting due to terminate flag being set to true."));
    api->ReleaseStatus(status);
    api->ReleaseValue(inputs[0]);
    api->ReleaseValue(inputs[1]);
    atomic_fetch_add(&s->ended, 1);
    return NULL;
}

static void in_threads(struct shared *s, void *(*fn)(void *))
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, fn, s);
    if (fn == run_endless) {
        while (atomic_load(&s->at_work) < THREADS / 2)
            usleep(1000); /* the others find the flag set */
        is_good(s, s->c->api->RunOptionsSetTerminate(s->options));
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

static void check_terminate(struct shared *s)
{
    for (int turn = 0; turn < 5; turn++) {
        atomic_store(&s->at_work, 0);
        in_threads(s, run_endless);
        is_good(s, s->c->api->RunOptionsUnsetTerminate(s->options));
        run_linear(s, s->linear, s->options, 1, false);
    }
    say("terminate", "%d ended, %d wrong", atomic_load(&s->ended), atomic_load(&s->wrong));
}

static OrtSession *open_profiled(struct client *c)
{
    OrtSessionOptions *options = NULL;
    OrtSession *session = NULL;
    if (!good(c, "options", c->api->CreateSessionOptions(&options)) ||
        !good(c, "profile", c->api->EnableProfiling(options, "stress_profile")) ||
        !good(c, "profiled",
              c->api->CreateSession(c->env, model_path(c, "linear.onnx"), options, &session)))
        exit(1);
    c->api->ReleaseSessionOptions(options);
    return session;
}

static void close_profiled(struct shared *s)
{
    char *path = NULL;
    if (is_good(s, s->c->api->SessionEndProfiling(s->profiled, s->c->allocator, &path))) {
        say("profile", access(path, R_OK) ? "is not there" : "is there");
        unlink(path);
        s->c->allocator->Free(s->c->allocator, path);
    }
    s->c->api->ReleaseSession(s->profiled);
}

int main(int argc, char **argv)
{
    struct client c;
    const int64_t three = 3;
    static const char *const texts[] = {"one", "two", "three"};
    if (argc != 3) return 2;
    client_open(&c, argv[1], argv[2]);
    struct shared s = {.c = &c,
                       .linear = open_model(&c, "linear.onnx"),
                       .string = open_model(&c, "string.onnx"),
                       .endless = open_model(&c, "endless.onnx"),
                       .profiled = open_profiled(&c)};
    if (!s.linear || !s.string || !s.endless) return 1;
    is_good(&s, c.api->CreateRunOptions(&s.options));
    is_good(&s, c.api->CreateTensorAsOrtValue(c.allocator, &three, 1,
                                              ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING, &s.texts));
    for (size_t i = 0; i < 3; i++)
        is_good(&s, c.api->FillStringTensorElement(s.texts, texts[i], i));
    in_threads(&s, work);
    say("threads", "%d wrong", atomic_load(&s.wrong));
    check_terminate(&s);
    close_profiled(&s);
    c.api->ReleaseValue(s.texts);
    c.api->ReleaseRunOptions(s.options);
    c.api->ReleaseSession(s.endless);
    c.api->ReleaseSession(s.string);
    c.api->ReleaseSession(s.linear);
    client_close(&c);
    say("end", "reached");
    return 0;
}
