/* SPDX-License-Identifier: Apache-2.0
 * sardonyx infer: models with the types and shapes of all their values written in. */
#include "args.h"
#include "json_out.h"
#include "progress.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct infer {
    struct sdx_cli cli;
    const char *to;
    bool to_folder, lenient;
    json_t *rows;
    struct sdx_cli_progress *progress;
};

/* The file to write for the model at `path`; the caller frees. */
static char *target_of(const struct infer *infer, const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    size_t size = strlen(infer->to) + strlen(name) + 2;
    char *text = malloc(size);
    if (text == NULL) sdx_cli_no_memory();
    if (infer->to_folder)
        snprintf(text, size, "%s/%s", infer->to, name);
    else
        snprintf(text, size, "%s", infer->to);
    return text;
}

struct faults {
    const struct infer *infer;
    const char *path;
    json_t *list;
};

static void take_fault(const char *text, void *user)
{
    struct faults *faults = user;
    json_array_append_new(faults->list, sdx_cli_json_text(text));
    if (faults->infer->cli.json) return;
    char *line = sdx_cli_clean(text);
    sdx_cli_progress_clear(faults->infer->progress);
    fprintf(stderr, "sardonyx: %s: %s\n", faults->path, line);
    free(line);
}

/* false: the model's types contradict each other, or it cannot be read or written. */
static bool infer_file(struct infer *infer, const char *path)
{
    char *to = target_of(infer, path);
    struct faults faults = {infer, path, json_array()};
    sdx_status status =
        sdx_infer(infer->cli.cx, path, to, infer->lenient ? take_fault : NULL, &faults);
    json_t *row = json_object();
    json_object_set_new(row, "model", sdx_cli_json_text(path));
    json_object_set_new(row, "ok", json_boolean(status == SDX_OK));
    if (status == SDX_OK)
        json_object_set_new(row, "file", sdx_cli_json_text(to));
    else
        json_object_set_new(row, "error", sdx_cli_json_text(sdx_error(infer->cli.cx)));
    json_object_set_new(row, "faults", faults.list);
    json_array_append_new(infer->rows, row);
    if (!infer->cli.json) {
        char *line = sdx_cli_clean(status == SDX_OK ? to : sdx_error(infer->cli.cx));
        sdx_cli_progress_clear(infer->progress);
        fprintf(status == SDX_OK ? stdout : stderr, "%s%s\n",
                status == SDX_OK ? "" : "sardonyx: ", line);
        free(line);
    }
    free(to);
    return status == SDX_OK;
}

static int infer_files(struct infer *infer, const struct sdx_cli_list *files)
{
    struct stat info;
    int bad = 0;
    infer->to_folder = files->count > 1 || (stat(infer->to, &info) == 0 && S_ISDIR(info.st_mode));
    if (infer->to_folder && !sdx_cli_make_folder(infer->to))
        return sdx_cli_fail(&infer->cli, "%s: %s", infer->to, strerror(errno));
    infer->rows = json_array();
    infer->progress = sdx_cli_progress_begin("inferring", files->count);
    for (int i = 0; i < files->count; i++) {
        bad += !infer_file(infer, files->items[i]);
        sdx_cli_progress_set(infer->progress, i + 1);
    }
    sdx_cli_progress_end(infer->progress);
    if (infer->cli.json) {
        json_t *object = json_object();
        json_object_set(object, "files", infer->rows);
        json_object_set_new(object, "bad", json_integer(bad));
        sdx_cli_json_print(object);
    }
    json_decref(infer->rows);
    return bad > 0 ? SDX_CLI_FAILED : SDX_CLI_OK;
}

static int run_infer(const struct sdx_cli_verb *verb, int argc, char **argv)
{
    struct infer infer = {0};
    struct sdx_cli_list files = {0};
    const struct sdx_cli_option options[] = {
        {"-o", SDX_CLI_TEXT, &infer.to, "FILE", "the model to write; a folder for several", 0, 0},
        {"--lenient", SDX_CLI_FLAG, &infer.lenient, NULL,
         "go on where types contradict each other, and say where", 0, 0},
        {0}};
    int rc = sdx_cli_args(verb, &infer.cli, options, argc, argv, &files, 1, 0);
    if (rc < 0 && infer.to == NULL) rc = sdx_cli_usage(verb, "-o FILE is missing");
    if (rc < 0) {
        rc = sdx_cli_start(&infer.cli);
        if (rc == SDX_CLI_OK) rc = infer_files(&infer, &files);
        sdx_cli_end(&infer.cli);
    }
    sdx_cli_list_free(&files);
    return rc;
}

const struct sdx_cli_verb sdx_cli_verb_infer = {
    "infer", "MODEL... -o FILE [options]",
    "Write a model with the types and shapes of all its values.",
    "  sardonyx infer model.onnx -o typed.onnx\n"
    "  sardonyx infer models/*.onnx -o typed --json\n"
    "\nExit code 1 when the types or shapes of a model contradict each other.\n",
    run_infer};
