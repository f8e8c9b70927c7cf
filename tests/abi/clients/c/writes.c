/* SPDX-License-Identifier: Apache-2.0
 * A program that gives paths to write to: `writes LIBRARY MODELS` has a session write its optimised
 * model, its profile and those of single runs below the folder `out`. */
#include "abi_client.h"

#include <glob.h>
#include <stdio.h>
#include <string.h>

/* How many profiles of runs there are, after a run with these options. */
static void run_and_count(struct client *c, const char *name, OrtSession *session,
                          const OrtRunOptions *options)
{
    float x[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    const char *in = "x", *out = "y";
    OrtValue *input = float_tensor(c, x, 2, 4), *output = NULL;
    glob_t found;
    if (!say_status(c, name,
                    c->api->Run(session, options, &in, (const OrtValue *const *)&input, 1, &out, 1,
                                &output)))
        say_value(c, name, output);
    const int failed = glob("out/single_*.json", 0, NULL, &found);
    say(name, "%zu profiles", failed ? 0 : found.gl_pathc);
    if (!failed) globfree(&found);
    c->api->ReleaseValue(output);
    c->api->ReleaseValue(input);
}

static void profile_runs(struct client *c)
{
    const OrtApi *api = c->api;
    OrtSession *session = open_model(c, "linear.onnx");
    OrtRunOptions *options = NULL;
    if (!session || !good(c, "runs", api->CreateRunOptions(&options))) return;
    run_and_count(c, "runs.before", session, options);
    say_status(c, "runs.on", api->RunOptionsEnableProfiling(options, "out/single"));
    run_and_count(c, "runs.with", session, options);
    say_status(c, "runs.off", api->RunOptionsDisableProfiling(options));
    run_and_count(c, "runs.behind", session, options);
    say_status(c, "runs.nowhere", api->RunOptionsEnableProfiling(options, "out/nowhere/single"));
    run_and_count(c, "runs.nowhere", session, options);
    api->ReleaseRunOptions(options);
    api->ReleaseSession(session);
}

int main(int argc, char **argv)
{
    if (argc != 3) return fprintf(stderr, "usage: writes LIBRARY MODELS\n"), 2;
    struct client c;
    client_open(&c, argv[1], argv[2]);
    const OrtApi *api = c.api;
    OrtSessionOptions *options = NULL;
    OrtSession *session = NULL;
    char *profile = NULL;
    float x[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    if (!good(&c, "options", api->CreateSessionOptions(&options))) return 1;
    say_status(&c, "optimised", api->SetOptimizedModelFilePath(options, "out/optimised.onnx"));
    say_status(&c, "profile", api->EnableProfiling(options, "out/profile"));
    if (!say_status(
            &c, "session",
            api->CreateSession(c.env, model_path(&c, "classify.onnx"), options, &session))) {
        run_one(&c, "run", session, float_tensor(&c, x, 2, 4));
        if (!say_status(&c, "ended", api->SessionEndProfiling(session, c.allocator, &profile))) {
            say("begins", "%.11s", profile);
            c.allocator->Free(c.allocator, profile);
        }
        api->ReleaseSession(session);
    }
    api->ReleaseSessionOptions(options);
    OrtSession *again = NULL;
    if (good(&c, "options", api->CreateSessionOptions(&options)) &&
        good(&c, "again", api->CreateSession(c.env, "out/optimised.onnx", options, &again))) {
        run_one(&c, "again", again, float_tensor(&c, x, 2, 4));
        api->ReleaseSession(again);
    }
    api->ReleaseSessionOptions(options);
    profile_runs(&c);
    client_close(&c);
    say("end", "reached");
    return 0;
}
