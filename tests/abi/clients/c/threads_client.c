/* SPDX-License-Identifier: Apache-2.0
 * Threads that the program makes, for one session and for all of an environment. */
#include "abi_client.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

static atomic_int started, joined;

struct thread {
    pthread_t id;
    OrtThreadWorkerFn work;
    void *arg;
};

static void *begin(void *arg)
{
    struct thread *thread = arg;
    thread->work(thread->arg);
    return NULL;
}

static OrtCustomThreadHandle create(void *options, OrtThreadWorkerFn work, void *arg)
{
    struct thread *thread = malloc(sizeof *thread);
    *thread = (struct thread){.work = work, .arg = arg};
    if (pthread_create(&thread->id, NULL, begin, thread)) abort();
    atomic_fetch_add((atomic_int *)options, 1);
    return (OrtCustomThreadHandle)thread;
}

static void join(OrtCustomThreadHandle handle)
{
    struct thread *thread = (struct thread *)handle;
    pthread_join(thread->id, NULL);
    free(thread);
    atomic_fetch_add(&joined, 1);
}

/* A large product, so that the work is shared, through a session with these options. */
static void run(struct client *c, const char *name, OrtSessionOptions *options)
{
    enum { ROWS = 512, COLUMNS = 4 };
    static float x[ROWS * COLUMNS];
    OrtSession *session = NULL;
    OrtValue *y = NULL;
    if (!good(c, name,
              c->api->CreateSession(c->env, model_path(c, "linear.onnx"), options, &session)))
        return;
    say(name, "started %d joined %d", atomic_load(&started), atomic_load(&joined));
    const int64_t dims[] = {ROWS, COLUMNS};
    OrtValue *in = tensor_over(c, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, x, sizeof x, 2, dims);
    say_status(c, name,
               c->api->Run(session, NULL, (const char *[]){"x"}, (const OrtValue *const[]){in}, 1,
                           (const char *[]){"y"}, 1, &y));
    if (y) c->api->ReleaseValue(y);
    c->api->ReleaseValue(in);
    c->api->ReleaseSession(session);
    say(name, "started %d joined %d", atomic_load(&started), atomic_load(&joined));
}

static void check_session(struct client *c)
{
    OrtSessionOptions *options = NULL;
    const OrtApi *api = c->api;
    if (!good(c, "session", api->CreateSessionOptions(&options))) return;
    say_status(c, "session.threads", api->SetIntraOpNumThreads(options, 3));
    say_status(c, "session.create", api->SessionOptionsSetCustomCreateThreadFn(options, create));
    say_status(c, "session.options",
               api->SessionOptionsSetCustomThreadCreationOptions(options, &started));
    say_status(c, "session.join", api->SessionOptionsSetCustomJoinThreadFn(options, join));
    run(c, "session.run", options);
    api->ReleaseSessionOptions(options);
}

static void check_environment(struct client *c)
{
    OrtThreadingOptions *threading = NULL;
    OrtSessionOptions *options = NULL;
    const OrtApi *api = c->api;
    api->ReleaseEnv(c->env);
    if (!good(c, "env", api->CreateThreadingOptions(&threading))) return;
    say_status(c, "env.threads", api->SetGlobalIntraOpNumThreads(threading, 4));
    say_status(c, "env.inter", api->SetGlobalInterOpNumThreads(threading, 1));
    say_status(c, "env.create", api->SetGlobalCustomCreateThreadFn(threading, create));
    say_status(c, "env.options", api->SetGlobalCustomThreadCreationOptions(threading, &started));
    say_status(c, "env.join", api->SetGlobalCustomJoinThreadFn(threading, join));
    say_status(c, "env.make",
               api->CreateEnvWithGlobalThreadPools(ORT_LOGGING_LEVEL_WARNING, "threads", threading,
                                                   &c->env));
    api->ReleaseThreadingOptions(threading);
    if (!good(c, "env", api->CreateSessionOptions(&options))) return;
    say_status(c, "env.shared", api->DisablePerSessionThreads(options));
    run(c, "env.first", options);
    run(c, "env.second", options);
    api->ReleaseSessionOptions(options);
}

int main(int argc, char **argv)
{
    struct client c;
    if (argc < 3) return 2;
    client_open(&c, argv[1], argv[2]);
    check_session(&c);
    check_environment(&c);
    client_close(&c);
    say("env.end", "started %d joined %d", atomic_load(&started), atomic_load(&joined));
    say("end", "reached");
    return 0;
}
