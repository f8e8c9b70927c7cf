/* SPDX-License-Identifier: Apache-2.0
 * What the C clients of the ONNX Runtime ABI share: a library opened by path, and one line of
 * output a check, `name | text`, in a form that does not depend on the library. */
#ifndef SARDONYX_TESTS_ABI_CLIENT_H
#define SARDONYX_TESTS_ABI_CLIENT_H

#include <sardonyx/ort.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct client {
    const OrtApi *api;
    const OrtApiBase *base;
    OrtEnv *env;
    OrtMemoryInfo *cpu;
    OrtAllocator *allocator; /* the default one */
    const char *models;      /* the folder */
};

/* Opens the library and makes the environment; ends the program where that fails. Each check before
 * a client is there names itself on stderr. */
void client_open(struct client *c, const char *library, const char *models);
void client_close(struct client *c);

/* Prints `name | text`; line ends in the text become \n, backslashes \\. */
void say(const char *name, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Prints `name | ok` or the code and message of a status, which it frees; true when it was one. */
bool say_status(struct client *c, const char *name, OrtStatus *status);

/* True when a status was none; otherwise prints it under `name` and frees it. */
bool good(struct client *c, const char *name, OrtStatus *status);

/* Prints a value of any kind, its elements below `name`. */
void say_value(struct client *c, const char *name, const OrtValue *value);

/* Prints a type of any kind. */
void say_type(struct client *c, const char *name, const OrtTypeInfo *type);

/* The path of a model, in a buffer that the next call of the same thread fills anew. */
const char *model_path(struct client *c, const char *name);

/* A session with default options, or NULL after it has printed why. */
OrtSession *open_model(struct client *c, const char *name);

/* A tensor over `data`, which must outlive it; ends the program where it cannot be made. */
OrtValue *tensor_over(struct client *c, ONNXTensorElementDataType type, void *data, size_t bytes,
                      size_t rank, const int64_t *dims);
OrtValue *float_tensor(struct client *c, float *data, int64_t rows, int64_t columns);

/* Runs x -> y and prints y; `x` is released. */
void run_one(struct client *c, const char *name, OrtSession *session, OrtValue *x);

/* The bytes of a file, the caller frees them; ends the program where it cannot be read. */
void *read_whole(const char *path, size_t *size);

#endif
