/* SPDX-License-Identifier: Apache-2.0
 * Which models with faults load, and run on x = float[3]: a line for each model of the list that
 * stdin gives, `name | loads`, `name | runs` or `name | refused CODE MESSAGE`. */
#include "abi_client.h"

#include <stdio.h>
#include <string.h>

enum { NAME = 128 };

static void say_refused(struct client *c, const char *name, OrtStatus *status)
{
    say(name, "refused %d %s", (int)c->api->GetErrorCode(status), c->api->GetErrorMessage(status));
    c->api->ReleaseStatus(status);
}

static void run(struct client *c, const char *name, OrtSession *session)
{
    float data[3] = {-1, 0, 2};
    const int64_t length = 3;
    OrtValue *x =
        tensor_over(c, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, data, sizeof data, 1, &length);
    OrtValue *y = NULL;
    OrtStatus *status = c->api->Run(session, NULL, (const char *[]){"x"},
                                    (const OrtValue *const[]){x}, 1, (const char *[]){"y"}, 1, &y);
    say(name, status ? "loads" : "runs");
    c->api->ReleaseStatus(status);
    if (y) c->api->ReleaseValue(y);
    c->api->ReleaseValue(x);
}

static void try_model(struct client *c, const char *name)
{
    OrtSessionOptions *options = NULL;
    OrtSession *session = NULL;
    if (!good(c, name, c->api->CreateSessionOptions(&options))) return;
    if (!good(c, name, c->api->SetSessionLogSeverityLevel(options, ORT_LOGGING_LEVEL_FATAL)))
        return;
    char file[NAME + sizeof ".onnx"];
    snprintf(file, sizeof file, "%s.onnx", name);
    OrtStatus *status = c->api->CreateSession(c->env, model_path(c, file), options, &session);
    c->api->ReleaseSessionOptions(options);
    if (status) {
        say_refused(c, name, status);
        return;
    }
    run(c, name, session);
    c->api->ReleaseSession(session);
}

int main(int argc, char **argv)
{
    struct client c;
    if (argc < 3) return 1;
    client_open(&c, argv[1], argv[2]);
    char name[NAME];
    while (fgets(name, sizeof name, stdin)) {
        name[strcspn(name, "\n")] = '\0';
        try_model(&c, name);
    }
    client_close(&c);
    say("end", "reached");
    return 0;
}
