/* SPDX-License-Identifier: Apache-2.0
 * Compiling: a model is prepared for the session's providers and written as an ONNX file. The CPU
 * provider compiles no nodes, so what is written is the model as the passes of the level left it,
 * and options about compiled nodes have nothing to say. */
#include "ort_graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ERROR_IF_NO_NODES = 1, ERROR_IF_FILE_EXISTS = 2 };

/* One way in and one way out are set. */
struct OrtModelCompilationOptions {
    OrtSessionOptions *options;
    char *in_path;
    const void *in_bytes; /* the program's */
    size_t in_size;
    const OrtModel *in_model; /* the program's */
    char *out_path;
    OrtAllocator *allocator;
    void **buffer;
    size_t *buffer_size;
    OrtWriteBufferFunc write;
    void *write_state;
    uint32_t flags;
};

static void release_options(OrtModelCompilationOptions *options)
{
    if (!options) return;
    ort_options_free(options->options);
    free(options->in_path);
    free(options->out_path);
    free(options);
}

static OrtStatusPtr create_options(const OrtEnv *env, const OrtSessionOptions *session_options,
                                   OrtModelCompilationOptions **out)
{
    (void)env;
    *out = calloc(1, sizeof **out);
    if (!*out) return ort_no_memory();
    OrtStatusPtr failed = ort_options_copy(session_options, &(*out)->options);
    if (!failed) {
        (*out)->options->level = ORT_DISABLE_ALL; /* unless it is set here */
        return NULL;
    }
    release_options(*out);
    *out = NULL;
    return failed;
}

static void forget_input(OrtModelCompilationOptions *options)
{
    free(options->in_path);
    options->in_path = NULL;
    options->in_bytes = NULL;
    options->in_model = NULL;
}

static OrtStatusPtr set_in_path(OrtModelCompilationOptions *options, const char *path)
{
    if (!path || !*path) return ort_fail(ORT_INVALID_ARGUMENT, "Invalid input model path");
    forget_input(options);
    return ort_set_text(&options->in_path, path);
}

static OrtStatusPtr set_in_bytes(OrtModelCompilationOptions *options, const void *model,
                                 size_t size)
{
    if (!model || !size) return ort_fail(ORT_INVALID_ARGUMENT, "Invalid input model buffer");
    forget_input(options);
    options->in_bytes = model;
    options->in_size = size;
    return NULL;
}

static OrtStatusPtr set_in_model(OrtModelCompilationOptions *options, const OrtModel *model)
{
    if (!model) return ort_fail(ORT_INVALID_ARGUMENT, "Invalid input model");
    forget_input(options);
    options->in_model = model;
    return NULL;
}

static void forget_output(OrtModelCompilationOptions *options)
{
    free(options->out_path);
    options->out_path = NULL;
    options->buffer = NULL;
    options->write = NULL;
}

static OrtStatusPtr set_out_path(OrtModelCompilationOptions *options, const char *path)
{
    if (!path || !*path) return ort_fail(ORT_INVALID_ARGUMENT, "Invalid output model path");
    forget_output(options);
    return ort_set_text(&options->out_path, path);
}

static OrtStatusPtr set_out_buffer(OrtModelCompilationOptions *options, OrtAllocator *allocator,
                                   void **buffer, size_t *size)
{
    if (!allocator || !buffer || !size)
        return ort_fail(ORT_INVALID_ARGUMENT, "Invalid output model buffer");
    forget_output(options);
    options->allocator = allocator;
    options->buffer = buffer;
    options->buffer_size = size;
    return NULL;
}

static OrtStatusPtr set_out_write(OrtModelCompilationOptions *options, OrtWriteBufferFunc write,
                                  void *state)
{
    if (!write) return ort_fail(ORT_INVALID_ARGUMENT, "OrtWriteBufferFunc function is null");
    forget_output(options);
    options->write = write;
    options->write_state = state;
    return NULL;
}

static OrtStatusPtr set_initializers_file(OrtModelCompilationOptions *options, const char *path,
                                          size_t threshold)
{
    (void)options, (void)path, (void)threshold;
    return ort_fail(ORT_NOT_IMPLEMENTED, "initializers of a compiled model are in its own file");
}

static OrtStatusPtr set_locate(OrtModelCompilationOptions *options,
                               OrtGetInitializerLocationFunc locate, void *state)
{
    (void)locate, (void)state;
    return set_initializers_file(options, NULL, 0);
}

static OrtStatusPtr set_embed(OrtModelCompilationOptions *options, bool embed)
{
    (void)options, (void)embed;
    return NULL;
}

static OrtStatusPtr set_context_information(OrtModelCompilationOptions *options, const char *folder,
                                            const char *model_name)
{
    (void)options, (void)folder, (void)model_name;
    return NULL;
}

static OrtStatusPtr set_flags(OrtModelCompilationOptions *options, uint32_t flags)
{
    options->flags = flags;
    return NULL;
}

static OrtStatusPtr set_level(OrtModelCompilationOptions *options, GraphOptimizationLevel level)
{
    options->options->level = level;
    return NULL;
}

/* ---- compiling ---- */

static OrtStatusPtr open_input(const OrtEnv *env, const OrtModelCompilationOptions *options,
                               OrtSession **out)
{
    struct ort_bytes bytes = {0};
    if (!options->in_model)
        return ort_session_create(env, options->in_path, options->in_bytes, options->in_size,
                                  options->options, out);
    ORT_TRY(ort_model_write(options->in_model, &bytes));
    OrtStatusPtr failed =
        ort_session_create(env, NULL, bytes.data, bytes.size, options->options, out);
    ort_bytes_deinit(&bytes);
    return failed;
}

static OrtStatusPtr save(OrtSession *session, const char *path)
{
    struct ort_worker *worker = NULL;
    ORT_TRY(ort_worker_take(session, &worker));
    const sdx_status status = sdx_session_save_model(worker->session, path);
    OrtStatusPtr failed = status ? ort_status(ORT_FAIL, sdx_session_error(worker->session)) : NULL;
    ort_worker_give(session, worker);
    return failed;
}

static OrtStatusPtr hand_over(const OrtModelCompilationOptions *options, const void *bytes,
                              size_t size)
{
    if (options->write) return options->write(options->write_state, bytes, size);
    *options->buffer = options->allocator->Alloc(options->allocator, size);
    if (!*options->buffer) return ort_no_memory();
    memcpy(*options->buffer, bytes, size);
    *options->buffer_size = size;
    return NULL;
}

static OrtStatusPtr read_back(const char *path, struct ort_bytes *out)
{
    unsigned char block[16384];
    FILE *file = fopen(path, "rb");
    if (!file) return ort_fail(ORT_FAIL, "%s cannot be read", path);
    for (size_t count; (count = fread(block, 1, sizeof block, file)) > 0;)
        ort_bytes_add(out, block, count);
    const bool broken = ferror(file) || out->failed;
    fclose(file);
    return broken ? ort_fail(ORT_FAIL, "%s cannot be read", path) : NULL;
}

/* The engine writes files: what goes to memory is in one for a moment. */
static OrtStatusPtr save_to_memory(OrtSession *session, const OrtModelCompilationOptions *options)
{
    const char *folder = getenv("TMPDIR");
    char path[1024];
    struct ort_bytes bytes = {0};
    snprintf(path, sizeof path, "%s/sardonyx-XXXXXX", folder && *folder ? folder : P_tmpdir);
    const int file = mkstemp(path);
    if (file < 0) return ort_fail(ORT_FAIL, "no temporary file %s", path);
    close(file);
    OrtStatusPtr failed = save(session, path);
    if (!failed) failed = read_back(path, &bytes);
    unlink(path);
    if (!failed) failed = hand_over(options, bytes.data, bytes.size);
    ort_bytes_deinit(&bytes);
    return failed;
}

/* Beside the input, with "_ctx" before its ending. */
static OrtStatusPtr default_path(const char *in_path, char **out)
{
    char path[4096];
    const char *end = strrchr(in_path, '.');
    const char *slash = strrchr(in_path, '/');
    if (!end || (slash && end < slash)) end = in_path + strlen(in_path);
    snprintf(path, sizeof path, "%.*s_ctx.onnx", (int)(end - in_path), in_path);
    return ort_set_text(out, path);
}

static OrtStatusPtr save_to_path(OrtSession *session, const OrtModelCompilationOptions *options)
{
    struct stat about;
    char *path = NULL;
    OrtStatusPtr failed = options->out_path ? ort_set_text(&path, options->out_path)
                                            : default_path(options->in_path, &path);
    if (!failed && options->flags & ERROR_IF_FILE_EXISTS && !stat(path, &about))
        failed = ort_fail(ORT_FAIL, "output model path '%s' already exists", path);
    if (!failed) failed = save(session, path);
    free(path);
    return failed;
}

static OrtStatusPtr compile_model(const OrtEnv *env, const OrtModelCompilationOptions *options)
{
    OrtSession *session = NULL;
    if (!options->in_path && !options->in_bytes && !options->in_model)
        return ort_fail(ORT_INVALID_ARGUMENT, "Input model to compile must be specified via file "
                                              "path, memory buffer, or OrtModel");
    if (!options->in_path && !options->out_path && !options->buffer && !options->write)
        return ort_fail(ORT_INVALID_ARGUMENT,
                        "Output model must be specified when the input model is in memory");
    if (options->flags & ERROR_IF_NO_NODES)
        return ort_fail(ORT_FAIL, "Unable to compile any nodes. Check that the session EPs support "
                                  "compilation and can execute at least one subgraph in the "
                                  "model.");
    if (options->in_path && access(options->in_path, F_OK))
        return ort_fail(ORT_INVALID_ARGUMENT, "Input model path does not exist: \"%s\"",
                        options->in_path);
    ORT_TRY(open_input(env, options, &session));
    OrtStatusPtr failed = options->buffer || options->write ? save_to_memory(session, options)
                                                            : save_to_path(session, options);
    ort_session_free(session);
    return failed;
}

static const OrtCompileApi compile_table = {
    .ReleaseModelCompilationOptions = release_options,
    .CreateModelCompilationOptionsFromSessionOptions = create_options,
    .ModelCompilationOptions_SetInputModelPath = set_in_path,
    .ModelCompilationOptions_SetInputModelFromBuffer = set_in_bytes,
    .ModelCompilationOptions_SetOutputModelPath = set_out_path,
    .ModelCompilationOptions_SetOutputModelExternalInitializersFile = set_initializers_file,
    .ModelCompilationOptions_SetOutputModelBuffer = set_out_buffer,
    .ModelCompilationOptions_SetEpContextEmbedMode = set_embed,
    .CompileModel = compile_model,
    .ModelCompilationOptions_SetFlags = set_flags,
    .ModelCompilationOptions_SetEpContextBinaryInformation = set_context_information,
    .ModelCompilationOptions_SetGraphOptimizationLevel = set_level,
    .ModelCompilationOptions_SetOutputModelWriteFunc = set_out_write,
    .ModelCompilationOptions_SetOutputModelGetInitializerLocationFunc = set_locate,
    .ModelCompilationOptions_SetInputModel = set_in_model,
};

static const OrtCompileApi *get_compile_api(void)
{
    return &compile_table;
}

void ort_fill_compile(OrtApi *api)
{
    api->GetCompileApi = get_compile_api;
}
