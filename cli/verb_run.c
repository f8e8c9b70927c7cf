/* SPDX-License-Identifier: Apache-2.0
 * sardonyx run: runs a model once; prints or writes what comes out. */
#include "inputs.h"
#include "json_out.h"
#include "progress.h"
#include "providers.h"
#include "values.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct run {
    struct sdx_cli cli;
    struct sdx_cli_sources sources;
    struct sdx_cli_providers providers;
    struct sdx_cli_list names; /* of outputs; empty: all */
    const char *out, *level;
    bool tune;
    bool memory;
    long show; /* values printed of each output */
    double load_ms, run_ms;
    struct sdx_cli_progress *progress;
};

static json_t *values_json(const sdx_tensor *value, int64_t count)
{
    json_t *list = json_array();
    sdx_dtype dtype = sdx_tensor_dtype(value);
    bool whole = dtype == SDX_I64 || dtype == SDX_I32 || dtype == SDX_I16 || dtype == SDX_I8 ||
                 dtype == SDX_U8 || dtype == SDX_U16 || dtype == SDX_U32;
    for (int64_t i = 0; i < count; i++) {
        if (whole) {
            json_array_append_new(list, json_integer(sdx_tensor_i64(value, i)));
        } else if (dtype == SDX_F32 || dtype == SDX_F64 || dtype == SDX_F16 || dtype == SDX_BF16) {
            json_array_append_new(list, sdx_cli_json_number(sdx_tensor_f64(value, i), 12));
        } else {
            char *text = sdx_cli_value_text(value, i);
            json_array_append_new(list, sdx_cli_json_text(text));
            free(text);
        }
    }
    return list;
}

/* Values to show of `value`: none of kinds that hold items. */
static int64_t count_shown(const struct run *run, const sdx_tensor *value)
{
    if (sdx_tensor_kind(value) != SDX_KIND_TENSOR) return 0;
    int64_t count = sdx_tensor_count(value);
    return count < run->show ? count : run->show;
}

static void print_items(const struct run *run, const sdx_tensor *value, int depth);

static void print_value(const struct run *run, const sdx_tensor *value, int depth)
{
    char *type = sdx_cli_type_text(value);
    printf("%s", type);
    free(type);
    int64_t shown = count_shown(run, value);
    for (int64_t i = 0; i < shown; i++) {
        char *text = sdx_cli_value_text(value, i);
        printf("%s%s", i == 0 ? " = " : ", ", text);
        free(text);
    }
    bool more = sdx_tensor_kind(value) == SDX_KIND_TENSOR && sdx_tensor_count(value) > shown;
    puts(more && shown > 0 ? ", ..." : "");
    print_items(run, value, depth + 1);
}

/* The first items of a sequence, map or sparse tensor, each indented on its own line. */
static void print_items(const struct run *run, const sdx_tensor *value, int depth)
{
    if (sdx_tensor_kind(value) == SDX_KIND_TENSOR || depth > 8) return;
    for (int i = 0; i < run->show; i++) {
        const sdx_tensor *item = sdx_tensor_item(value, i);
        if (item == NULL) return;
        printf("%*s[%d] ", 2 * depth, "", i);
        print_value(run, item, depth);
    }
}

/* Writes DIR/NAME.npy, or NAME.pb for what .npy cannot hold; the file's name without the folder is
 * returned through *file, which the caller frees. */
static int save(const struct run *run, const char *name, const sdx_tensor *value, char **file)
{
    char *base = sdx_cli_clean(name);
    for (char *p = base; *p != '\0'; p++)
        if (*p == '/' || *p == ' ' || *p == ':') *p = '_';
    if (base[0] == '.') base[0] = '_';
    sdx_status status = SDX_NOT_SUPPORTED;
    for (int pb = 0; pb < 2 && status == SDX_NOT_SUPPORTED; pb++) {
        free(*file);
        if (asprintf(file, "%s.%s", base, pb ? "pb" : "npy") < 0) sdx_cli_no_memory();
        char *path = sdx_cli_join(run->out, *file);
        if (pb)
            status = sdx_tensor_save_pb(run->cli.cx, path, name, value);
        else if (sdx_tensor_kind(value) == SDX_KIND_TENSOR)
            status = sdx_tensor_save_npy(run->cli.cx, path, value);
        free(path);
    }
    free(base);
    return status ? sdx_cli_fail(&run->cli, "output '%s': %s", name, sdx_error(run->cli.cx))
                  : SDX_CLI_OK;
}

static json_t *memory_json(const sdx_context *cx)
{
    json_t *rows = json_array();
    const char *tag = NULL;
    size_t now = 0, peak = 0;
    for (int i = 0; sdx_memory_row(cx, i, &tag, &now, &peak); i++) {
        json_t *row = json_object();
        json_object_set_new(row, "tag", json_string(tag));
        json_object_set_new(row, "now", json_integer((json_int_t)now));
        json_object_set_new(row, "peak", json_integer((json_int_t)peak));
        json_array_append_new(rows, row);
    }
    return rows;
}

static void print_memory(const sdx_context *cx)
{
    const char *tag = NULL;
    size_t now = 0, peak = 0;
    printf("\n%-16s %12s %12s\n", "memory", "now", "peak");
    for (int i = 0; sdx_memory_row(cx, i, &tag, &now, &peak); i++)
        printf("%-16s %12s %12s\n", tag, sdx_cli_bytes((double)now), sdx_cli_bytes((double)peak));
    printf("%-16s %12s %12s\n", "all", sdx_cli_bytes((double)sdx_memory_now(cx)),
           sdx_cli_bytes((double)sdx_memory_peak(cx)));
}

/* Prints, or collects for --json, and writes the outputs. */
static int give(const struct run *run, const sdx_session *session, int count,
                const char *const *names, sdx_tensor *const *outputs)
{
    json_t *rows = json_array();
    int rc = SDX_CLI_OK;
    for (int i = 0; i < count && rc == SDX_CLI_OK; i++) {
        char *file = NULL;
        if (run->out != NULL) rc = save(run, names[i], outputs[i], &file);
        if (rc == SDX_CLI_OK && run->cli.json) {
            json_t *row = json_object();
            char *type = sdx_cli_type_text(outputs[i]);
            json_object_set_new(row, "name", sdx_cli_json_text(names[i]));
            json_object_set_new(row, "type", json_string(type));
            json_object_set_new(row, "shape", sdx_cli_json_shape(outputs[i]));
            json_object_set_new(row, "values",
                                values_json(outputs[i], count_shown(run, outputs[i])));
            if (file != NULL) json_object_set_new(row, "file", sdx_cli_json_text(file));
            json_array_append_new(rows, row);
            free(type);
        } else if (rc == SDX_CLI_OK) {
            char *name = sdx_cli_clean(names[i]);
            printf("%s: ", name);
            free(name);
            print_value(run, outputs[i], 0);
        }
        free(file);
    }
    if (rc == SDX_CLI_OK && run->cli.json) {
        json_t *object = json_object();
        json_object_set(object, "outputs", rows);
        json_object_set_new(object, "load_ms", sdx_cli_json_number(run->load_ms, 6));
        json_object_set_new(object, "run_ms", sdx_cli_json_number(run->run_ms, 6));
        json_object_set_new(object, "threads", json_integer(sdx_threads(run->cli.cx)));
        json_object_set_new(object, "cpu", json_string(sdx_cpu_name()));
        json_object_set_new(object, "providers", sdx_cli_providers_json(session));
        if (run->memory) json_object_set_new(object, "memory", memory_json(run->cli.cx));
        sdx_cli_json_print(object);
    } else if (rc == SDX_CLI_OK && run->memory) {
        print_memory(run->cli.cx);
    }
    json_decref(rows);
    return rc;
}

/* The names of the outputs to compute: --output's, or all. */
static int output_names(const struct sdx_cli_verb *verb, const struct run *run,
                        const sdx_model *model, struct sdx_cli_list *names)
{
    for (int i = 0; i < sdx_model_count_outputs(model) && run->names.count == 0; i++)
        sdx_cli_list_add(names, sdx_model_output(model, i)->name);
    for (int k = 0; k < run->names.count; k++) {
        bool found = false;
        for (int i = 0; i < sdx_model_count_outputs(model) && !found; i++)
            found = strcmp(sdx_model_output(model, i)->name, run->names.items[k]) == 0;
        if (!found)
            return sdx_cli_usage(verb, "--output '%.200s': the model has no output of this name",
                                 run->names.items[k]);
        sdx_cli_list_add(names, run->names.items[k]);
    }
    return SDX_CLI_OK;
}

static int compute(const struct sdx_cli_verb *verb, struct run *run, const char *path,
                   const sdx_model *model, const sdx_session_options *options)
{
    struct sdx_cli_feeds feeds = {0};
    struct sdx_cli_list names = {0};
    sdx_session *session = NULL;
    sdx_tensor **outputs = NULL;
    int rc = output_names(verb, run, model, &names);
    if (rc == SDX_CLI_OK) rc = sdx_cli_feeds_make(&run->cli, verb, model, &run->sources, &feeds);
    if (rc != SDX_CLI_OK) goto done;
    outputs = calloc((size_t)names.count + 1, sizeof(sdx_tensor *));
    if (outputs == NULL) sdx_cli_no_memory();
    double begin = sdx_cli_now_ms();
    if (sdx_session_create(run->cli.cx, model, options, &session)) {
        rc = sdx_cli_fail(&run->cli, "%s: %s", path, sdx_error(run->cli.cx));
        goto done;
    }
    double ready = sdx_cli_now_ms();
    if (sdx_run(session, feeds.count, feeds.items, names.count, names.items, outputs)) {
        rc = sdx_cli_fail(&run->cli, "%s: %s", path, sdx_session_error(session));
        goto done;
    }
    run->load_ms += ready - begin;
    run->run_ms = sdx_cli_now_ms() - ready;
done:
    sdx_cli_progress_end(run->progress);
    run->progress = NULL;
    /* The outputs are given while the session still lives, so that --memory shows it. */
    if (rc == SDX_CLI_OK) rc = give(run, session, names.count, names.items, outputs);
    for (int i = 0; outputs != NULL && i < names.count; i++)
        sdx_tensor_destroy(outputs[i]);
    free(outputs);
    sdx_session_destroy(session);
    sdx_cli_feeds_free(&feeds);
    sdx_cli_list_free(&names);
    return rc;
}

static int run_model(const struct sdx_cli_verb *verb, struct run *run, const char *path)
{
    sdx_session_options options;
    int rc = sdx_cli_session_options(verb, run->level, &options);
    options.tune = run->tune;
    if (rc == SDX_CLI_OK) rc = sdx_cli_providers_set(verb, &run->providers, &options);
    if (rc == SDX_CLI_OK) rc = sdx_cli_start(&run->cli);
    if (rc != SDX_CLI_OK) return rc;
    if (run->out != NULL && !sdx_cli_make_folder(run->out)) {
        rc = sdx_cli_fail(&run->cli, "%s: %s", run->out, strerror(errno));
    } else {
        sdx_model *model = NULL;
        run->progress = sdx_cli_progress_begin("running", 0);
        double begin = sdx_cli_now_ms();
        rc = sdx_cli_open(&run->cli, path, &model);
        run->load_ms = sdx_cli_now_ms() - begin;
        if (rc == SDX_CLI_OK) rc = compute(verb, run, path, model, &options);
        sdx_cli_progress_end(run->progress);
        sdx_model_destroy(model);
    }
    sdx_cli_end(&run->cli);
    return rc;
}

static int run_run(const struct sdx_cli_verb *verb, int argc, char **argv)
{
    struct run run = {.show = 8};
    struct sdx_cli_list files = {0};
    const struct sdx_cli_option options[] = {
        {"--input", SDX_CLI_LIST, &run.sources.inputs, "NAME=WHAT",
         "FILE.npy, FILE.npz:MEMBER, FILE.pb, random, zeros or 1,2,3 (default: random)", 0, 0},
        {"--shape", SDX_CLI_LIST, &run.sources.shapes, "NAME=1x3x8x8",
         "shape of a value that is made (open dimensions: 1)", 0, 0},
        {"--inputs", SDX_CLI_TEXT, &run.sources.folder, "DIR", "feed DIR/input_0.pb, ...", 0, 0},
        {"--output", SDX_CLI_LIST, &run.names, "NAME", "compute this output only", 0, 0},
        {"--out", SDX_CLI_TEXT, &run.out, "DIR", "write outputs as DIR/NAME.npy or .pb", 0, 0},
        {"--show", SDX_CLI_INT, &run.show, "N", "values printed of each output (8)", 0, 1e9},
        {"--level", SDX_CLI_TEXT, &run.level, "LEVEL",
         "graph optimisation: none, basic, extended, all", 0, 0},
        SDX_CLI_PROVIDER_OPTIONS(&run.providers),
        {"--tune", SDX_CLI_FLAG, &run.tune, NULL,
         "measure the ways to compute a convolution once, and keep the fastest", 0, 0},
        {"--memory", SDX_CLI_FLAG, &run.memory, NULL, "print the memory in use, by tag", 0, 0},
        {0}};
    int rc = sdx_cli_args(verb, &run.cli, options, argc, argv, &files, 1, 1);
    if (rc < 0) rc = run_model(verb, &run, files.items[0]);
    sdx_cli_sources_free(&run.sources);
    sdx_cli_list_free(&run.names);
    sdx_cli_providers_free(&run.providers);
    sdx_cli_list_free(&files);
    return rc;
}

const struct sdx_cli_verb sdx_cli_verb_run = {
    "run", "MODEL [options]",
    "Run a model once. Inputs that are not given get random values from a fixed seed.",
    "  sardonyx run model.onnx\n"
    "  sardonyx run model.onnx --input x=picture.npy --out results\n"
    "  sardonyx run model.onnx --shape x=1x3x224x224 --threads 4 --memory\n"
    "  sardonyx run add.onnx --input a=1,2,3 --input b=10\n"
    "  sardonyx run model.onnx --provider CUDAExecutionProvider,cpu --provider-fallback\n",
    run_run};
