/* SPDX-License-Identifier: Apache-2.0
 * A program that gives paths to write to: `writes LIBRARY MODELS` has a session write its optimised
 * model and its profile below the folder `out`. */
#include "abi_client.h"

#include <stdio.h>
#include <string.h>

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
    client_close(&c);
    say("end", "reached");
    return 0;
}
