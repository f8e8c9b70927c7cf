/* SPDX-License-Identifier: Apache-2.0
 * sardonyx check: all faults of model files, a line each. */
#include "args.h"
#include "json_out.h"
#include "progress.h"

#include <stdio.h>
#include <stdlib.h>

struct faults {
    const struct sdx_cli *cli;
    const char *path;
    json_t *list;
    struct sdx_cli_progress *progress;
};

static void take_fault(const char *text, void *user)
{
    struct faults *faults = user;
    json_array_append_new(faults->list, sdx_cli_json_text(text));
    if (faults->cli->json) return;
    char *line = sdx_cli_clean(text);
    sdx_cli_progress_clear(faults->progress);
    printf("%s: %s\n", faults->path, line);
    free(line);
}

/* Checks one file; false when it has faults or could not be checked. */
static bool check_file(const struct sdx_cli *cli, const char *path, bool structure, json_t *files,
                       struct sdx_cli_progress *progress)
{
    struct faults faults = {cli, path, json_array(), progress};
    sdx_status status = structure ? sdx_check_structure(cli->cx, path, take_fault, &faults)
                                  : sdx_check(cli->cx, path, take_fault, &faults);
    if (status != SDX_OK && json_array_size(faults.list) == 0)
        take_fault(sdx_error(cli->cx), &faults);
    if (status == SDX_OK && !cli->json) {
        sdx_cli_progress_clear(progress);
        printf("%s: ok\n", path);
    }
    json_t *row = json_object();
    json_object_set_new(row, "model", sdx_cli_json_text(path));
    json_object_set_new(row, "ok", json_boolean(status == SDX_OK));
    json_object_set_new(row, "status", json_string(sdx_status_name(status)));
    json_object_set_new(row, "faults", faults.list);
    json_array_append_new(files, row);
    return status == SDX_OK;
}

static int run_check(const struct sdx_cli_verb *verb, int argc, char **argv)
{
    struct sdx_cli cli = {0};
    struct sdx_cli_list files = {0};
    bool structure = false;
    const struct sdx_cli_option options[] = {{"--structure", SDX_CLI_FLAG, &structure, NULL,
                                              "without types and shapes: no inference", 0, 0},
                                             {0}};
    int rc = sdx_cli_args(verb, &cli, options, argc, argv, &files, 1, 0);
    if (rc >= 0 || (rc = sdx_cli_start(&cli)) != SDX_CLI_OK) {
        sdx_cli_list_free(&files);
        return rc;
    }
    json_t *rows = json_array();
    int bad = 0;
    struct sdx_cli_progress *progress = sdx_cli_progress_begin("checking", files.count);
    for (int i = 0; i < files.count; i++) {
        bad += !check_file(&cli, files.items[i], structure, rows, progress);
        sdx_cli_progress_set(progress, i + 1);
    }
    sdx_cli_progress_end(progress);
    if (cli.json) {
        json_t *object = json_object();
        json_object_set(object, "files", rows);
        json_object_set_new(object, "bad", json_integer(bad));
        sdx_cli_json_print(object);
    }
    if (bad > 0) {
        fflush(stdout);
        fprintf(stderr, "sardonyx: %d of %d models %s faults\n", bad, files.count,
                bad == 1 ? "has" : "have");
    }
    json_decref(rows);
    sdx_cli_end(&cli);
    sdx_cli_list_free(&files);
    return bad > 0 ? SDX_CLI_FAILED : SDX_CLI_OK;
}

const struct sdx_cli_verb sdx_cli_verb_check = {
    "check", "MODEL... [options]",
    "Check model files against the standard; every fault is a line. Exit code 1 when there is one.",
    "  sardonyx check model.onnx\n"
    "  sardonyx check models/*.onnx --json\n",
    run_check};
