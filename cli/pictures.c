/* SPDX-License-Identifier: Apache-2.0
 * What classify and detect share: a model that takes one picture, and the pictures given. */
#include "json_out.h"
#include "pictures.h"
#include "progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int open_labels(struct sdx_cli_pictures *p)
{
    sdx_vision_fault fault = {""};
    sdx_status status = p->labels_path != NULL
                            ? sdx_labels_load(p->labels_path, &p->labels, &fault)
                            : sdx_labels_from_model(p->model, &p->labels, &fault);
    return status ? sdx_cli_fail(&p->cli, "%s", fault.text) : SDX_CLI_OK;
}

int sdx_cli_pictures_open(const struct sdx_cli_verb *verb, struct sdx_cli_pictures *p,
                          const char *model, sdx_vision_task task)
{
    sdx_session_options options;
    sdx_vision_fault fault = {""};
    int rc = sdx_cli_session_options(verb, p->level, &options);
    if (rc == SDX_CLI_OK) rc = sdx_cli_start(&p->cli);
    sdx_vision_log(p->cli.verbose);
    if (rc == SDX_CLI_OK) rc = sdx_cli_open(&p->cli, model, &p->model);
    if (rc == SDX_CLI_OK &&
        sdx_vision_input_init(&p->input, p->model, task, (int)p->size, &fault) != SDX_OK)
        rc = sdx_cli_fail(&p->cli, "%s: %s", model, fault.text);
    if (rc == SDX_CLI_OK) rc = open_labels(p);
    if (rc == SDX_CLI_OK &&
        sdx_session_create(p->cli.cx, p->model, &options, &p->session) != SDX_OK)
        rc = sdx_cli_fail(&p->cli, "%s: %s", model, sdx_error(p->cli.cx));
    return rc;
}

void sdx_cli_pictures_close(struct sdx_cli_pictures *p)
{
    sdx_labels_deinit(&p->labels);
    sdx_session_destroy(p->session);
    sdx_model_destroy(p->model);
    sdx_cli_end(&p->cli);
}

bool sdx_cli_pictures_run(struct sdx_cli_pictures *p, const sdx_image *image, sdx_tensor **output,
                          sdx_letterbox *place, sdx_vision_fault *fault)
{
    sdx_tensor *value = NULL;
    *output = NULL;
    if (sdx_vision_input_make(p->cli.cx, &p->input, image, &value, place, fault) != SDX_OK)
        return false;
    const char *name = sdx_model_output(p->model, 0)->name;
    double begin = sdx_cli_now_ms();
    sdx_status status = sdx_run(p->session, 1, &(sdx_feed){p->input.name, value}, 1, &name, output);
    p->run_ms = sdx_cli_now_ms() - begin;
    if (status) snprintf(fault->text, sizeof fault->text, "%s", sdx_session_error(p->session));
    sdx_tensor_destroy(value);
    return status == SDX_OK;
}

int sdx_cli_pictures_each(struct sdx_cli_pictures *p, const struct sdx_cli_list *files,
                          sdx_cli_picture_fn *work, void *verb)
{
    json_t *rows = json_array();
    int failed = 0;
    /* Results on the same terminal show how far the work is. */
    bool bar = p->cli.json || !isatty(STDOUT_FILENO);
    struct sdx_cli_progress *progress =
        bar ? sdx_cli_progress_begin("pictures", files->count - 1) : NULL;
    for (int i = 1; i < files->count; i++) {
        sdx_vision_fault fault = {""};
        json_t *row = json_object();
        json_object_set_new(row, "image", sdx_cli_json_text(files->items[i]));
        if (!work(verb, files->items[i], row, &fault)) {
            failed++;
            char *line = sdx_cli_clean(fault.text);
            bool named = strstr(line, files->items[i]) != NULL;
            sdx_cli_progress_clear(progress);
            fflush(stdout);
            fprintf(stderr, "sardonyx: %s%s%s\n", named ? "" : files->items[i], named ? "" : ": ",
                    line);
            json_object_set_new(row, "error", sdx_cli_json_text(line));
            free(line);
        }
        json_array_append_new(rows, row);
        sdx_cli_progress_set(progress, i);
    }
    sdx_cli_progress_end(progress);
    if (p->cli.json) {
        json_t *object = json_object();
        json_object_set_new(object, "model", sdx_cli_json_text(files->items[0]));
        json_object_set(object, "images", rows);
        sdx_cli_json_print(object);
    }
    json_decref(rows);
    return failed > 0 ? SDX_CLI_FAILED : SDX_CLI_OK;
}
