/* SPDX-License-Identifier: Apache-2.0
 * sardonyx compile: a model as a plan file, which loads in the time that mapping it takes. */
#include "inputs.h"
#include "json_out.h"
#include "progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

struct compile {
    struct sdx_cli cli;
    struct sdx_cli_sources sources;
    const char *to;
    bool tune;
};

static double file_bytes(const char *path)
{
    struct stat facts;
    return stat(path, &facts) == 0 ? (double)facts.st_size : 0;
}

/* One run makes every plan that these inputs need, and so every packed form. */
static int run_once(const struct compile *compile, sdx_session *session,
                    const struct sdx_cli_feeds *feeds, int outputs)
{
    sdx_tensor **out = calloc((size_t)outputs + 1, sizeof(sdx_tensor *));
    if (out == NULL) sdx_cli_no_memory();
    sdx_status status = sdx_run(session, feeds->count, feeds->items, outputs, NULL, out);
    for (int i = 0; i < outputs; i++)
        sdx_tensor_destroy(out[i]);
    free(out);
    return status ? sdx_cli_fail(&compile->cli, "%s", sdx_session_error(session)) : SDX_CLI_OK;
}

static int compile_model(const struct sdx_cli_verb *verb, struct compile *compile, const char *path)
{
    sdx_model *model = NULL;
    sdx_session *session = NULL;
    struct sdx_cli_feeds feeds = {0};
    sdx_session_options options;
    sdx_session_options_init(&options);
    options.tune = compile->tune;
    struct sdx_cli_progress *progress = sdx_cli_progress_begin("compiling", 0);
    double begin = sdx_cli_now_ms();
    int rc = sdx_cli_open(&compile->cli, path, &model);
    if (rc == SDX_CLI_OK)
        rc = sdx_cli_feeds_make(&compile->cli, verb, model, &compile->sources, &feeds);
    if (rc == SDX_CLI_OK && sdx_session_create(compile->cli.cx, model, &options, &session))
        rc = sdx_cli_fail(&compile->cli, "%s: %s", path, sdx_error(compile->cli.cx));
    if (rc == SDX_CLI_OK) rc = run_once(compile, session, &feeds, sdx_model_count_outputs(model));
    if (rc == SDX_CLI_OK && sdx_session_save_plan(session, compile->to))
        rc = sdx_cli_fail(&compile->cli, "%s", sdx_session_error(session));
    double ms = sdx_cli_now_ms() - begin;
    sdx_cli_progress_end(progress);
    if (rc == SDX_CLI_OK && compile->cli.json) {
        json_t *o = json_object();
        json_object_set_new(o, "model", sdx_cli_json_text(path));
        json_object_set_new(o, "file", sdx_cli_json_text(compile->to));
        json_object_set_new(o, "bytes", json_integer((json_int_t)file_bytes(compile->to)));
        json_object_set_new(o, "ms", sdx_cli_json_number(ms, 6));
        json_object_set_new(o, "cpu", json_string(sdx_cpu_name()));
        sdx_cli_json_print(o);
    } else if (rc == SDX_CLI_OK) {
        printf("%s: %s for %s\n", compile->to, sdx_cli_bytes(file_bytes(compile->to)),
               sdx_cpu_name());
    }
    sdx_cli_feeds_free(&feeds);
    sdx_session_destroy(session);
    sdx_model_destroy(model);
    return rc;
}

static int run_compile(const struct sdx_cli_verb *verb, int argc, char **argv)
{
    struct compile compile = {0};
    struct sdx_cli_list files = {0};
    const struct sdx_cli_option options[] = {
        {"-o", SDX_CLI_TEXT, &compile.to, "FILE", "the plan file to write, as model.sdx", 0, 0},
        {"--shape", SDX_CLI_LIST, &compile.sources.shapes, "NAME=1x3x8x8",
         "shape to be ready for (open dimensions: 1)", 0, 0},
        {"--input", SDX_CLI_LIST, &compile.sources.inputs, "NAME=WHAT",
         "FILE.npy, FILE.pb, random, zeros or 1,2,3 (default: random)", 0, 0},
        {"--inputs", SDX_CLI_TEXT, &compile.sources.folder, "DIR", "feed DIR/input_0.pb, ...", 0,
         0},
        {"--tune", SDX_CLI_FLAG, &compile.tune, NULL,
         "weights for the fastest ways to compute, measured once: for runs with --tune", 0, 0},
        {0}};
    int rc = sdx_cli_args(verb, &compile.cli, options, argc, argv, &files, 1, 1);
    if (rc < 0 && compile.to == NULL) rc = sdx_cli_usage(verb, "-o FILE is missing");
    if (rc < 0) {
        rc = sdx_cli_start(&compile.cli);
        if (rc == SDX_CLI_OK) rc = compile_model(verb, &compile, files.items[0]);
        sdx_cli_end(&compile.cli);
    }
    sdx_cli_sources_free(&compile.sources);
    sdx_cli_list_free(&files);
    return rc;
}

const struct sdx_cli_verb sdx_cli_verb_compile = {
    "compile", "MODEL -o MODEL.sdx [options]",
    "Write a plan file, which loads at once: the model optimised, weights as this CPU wants them.",
    "  sardonyx compile model.onnx -o model.sdx\n"
    "  sardonyx compile bert.onnx -o bert.sdx --shape input_ids=1x128\n"
    "  sardonyx run model.sdx --input x=picture.npy\n"
    "\nEvery verb that runs models takes a plan file in place of the model. It is for this "
    "version\n"
    "and kind of CPU only, and for any shapes: what they need beyond those given is made then.\n",
    run_compile};
