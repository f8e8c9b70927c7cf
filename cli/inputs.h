/* SPDX-License-Identifier: Apache-2.0
 * Values to feed a model with: from options, from ONNX test data folders, made up. */
#ifndef SDX_CLI_INPUTS_H
#define SDX_CLI_INPUTS_H

#include "args.h"

/* The values of one run. */
struct sdx_cli_feeds {
    int count;
    sdx_feed *items;
    sdx_tensor **values; /* owned; values[i] is items[i].value */
};

void sdx_cli_feeds_free(struct sdx_cli_feeds *feeds);

/* Where values come from; all may be empty. */
struct sdx_cli_sources {
    struct sdx_cli_list inputs; /* NAME=FILE.npy, .npz[:MEMBER], .pb, random, zeros or values */
    struct sdx_cli_list shapes; /* NAME=1x3x224x224, or 1x3x224x224 for the only input */
    const char *folder;         /* with input_0.pb, ... */
};

void sdx_cli_sources_free(struct sdx_cli_sources *sources);

/* A value for every input that must be fed: from `folder` when it is set, else as `inputs` say,
 * else random. Returns an exit code, having said why. */
int sdx_cli_feeds_make(const struct sdx_cli *cli, const struct sdx_cli_verb *verb,
                       const sdx_model *model, const struct sdx_cli_sources *sources,
                       struct sdx_cli_feeds *feeds);

/* Reads input_*.pb of `folder`: a file belongs to the input that its value is named after, or, when
 * not all are named so, to the input at its number. On failure *why gets a line that the caller
 * frees. */
bool sdx_cli_feeds_load(sdx_context *cx, const sdx_model *model, const char *folder,
                        struct sdx_cli_feeds *feeds, char **why);

/* Joins a folder and a name. Caller frees. */
char *sdx_cli_join(const char *folder, const char *name);

#endif
