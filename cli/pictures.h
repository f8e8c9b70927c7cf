/* SPDX-License-Identifier: Apache-2.0
 * What classify and detect share: a model that takes one picture, and the pictures given. */
#ifndef SDX_CLI_PICTURES_H
#define SDX_CLI_PICTURES_H

#include "args.h"

#include <sardonyx/vision.h>

struct sdx_cli_pictures {
    struct sdx_cli cli;
    const char *labels_path; /* --labels or --classes; NULL: the model's */
    const char *level;
    long size; /* side of inputs that the model leaves open; 0: the usual one */
    sdx_model *model;
    sdx_session *session;
    sdx_vision_input input;
    sdx_labels labels;
    double run_ms; /* of the last picture */
};

/* Starts the program's context and opens all of the above. */
int sdx_cli_pictures_open(const struct sdx_cli_verb *verb, struct sdx_cli_pictures *pictures,
                          const char *model, sdx_vision_task task);
void sdx_cli_pictures_close(struct sdx_cli_pictures *pictures);

/* Runs the model on `image`; *output is its first output, the caller's. `place` may be NULL. */
bool sdx_cli_pictures_run(struct sdx_cli_pictures *pictures, const sdx_image *image,
                          sdx_tensor **output, sdx_letterbox *place, sdx_vision_fault *fault);

/* What a verb does with one picture: prints it, and with --json fills `row`. */
typedef bool sdx_cli_picture_fn(void *verb, const char *path, json_t *row, sdx_vision_fault *fault);

/* Calls `work` for each file; what fails is named on stderr (and in its row) and the rest goes on.
 * With --json prints {"model": ..., "images": [...]}. Returns an exit code. */
int sdx_cli_pictures_each(struct sdx_cli_pictures *pictures, const struct sdx_cli_list *files,
                          sdx_cli_picture_fn *work, void *verb);

#endif
