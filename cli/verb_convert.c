/* SPDX-License-Identifier: Apache-2.0
 * sardonyx convert: a model in another version of the standard. */
#include "args.h"
#include "json_out.h"
#include "progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { OPSETS_MAX = 16 };

struct convert {
    struct sdx_cli cli;
    const char *to;
    bool unchecked;
    int count;
    sdx_opset opsets[OPSETS_MAX];
};

/* "17" or "ai.onnx.ml=3"; the domain is cut out of `text`. */
static bool read_opset(char *text, sdx_opset *opset)
{
    char *equals = strchr(text, '='), *end = NULL;
    const char *number = equals != NULL ? equals + 1 : text;
    if (equals != NULL) *equals = '\0';
    opset->domain = equals != NULL ? text : "";
    opset->version = strtol(number, &end, 10);
    return *number != '\0' && *end == '\0' && opset->version > 0 && opset->version < 100000;
}

static int convert_model(const struct convert *convert, const char *path)
{
    const struct sdx_cli *cli = &convert->cli;
    sdx_convert_options options;
    sdx_convert_options_init(&options);
    options.check_fully = !convert->unchecked;
    struct sdx_cli_progress *progress = sdx_cli_progress_begin("converting", 0);
    double begin = sdx_cli_now_ms();
    sdx_status status =
        sdx_model_convert(cli->cx, path, convert->count, convert->opsets, &options, convert->to);
    double ms = sdx_cli_now_ms() - begin;
    sdx_cli_progress_end(progress);
    if (status != SDX_OK) {
        const char *why = sdx_error(cli->cx);
        if (strstr(why, path) != NULL) return sdx_cli_fail(cli, "%s", why);
        return sdx_cli_fail(cli, "%s: %s", path, why);
    }
    struct stat facts;
    double bytes = stat(convert->to, &facts) == 0 ? (double)facts.st_size : 0;
    if (cli->json) {
        json_t *o = json_object(), *list = json_object();
        for (int i = 0; i < convert->count; i++) {
            const char *domain = convert->opsets[i].domain;
            json_object_set_new(list, domain[0] ? domain : "ai.onnx",
                                json_integer(convert->opsets[i].version));
        }
        json_object_set_new(o, "model", sdx_cli_json_text(path));
        json_object_set_new(o, "file", sdx_cli_json_text(convert->to));
        json_object_set_new(o, "opsets", list);
        json_object_set_new(o, "bytes", json_integer((json_int_t)bytes));
        json_object_set_new(o, "ms", sdx_cli_json_number(ms, 6));
        sdx_cli_json_print(o);
        return SDX_CLI_OK;
    }
    printf("%s: %s,", convert->to, sdx_cli_bytes(bytes));
    for (int i = 0; i < convert->count; i++) {
        const char *domain = convert->opsets[i].domain;
        printf(" %s %lld", domain[0] ? domain : "opset", (long long)convert->opsets[i].version);
    }
    printf("\n");
    return SDX_CLI_OK;
}

static int read_opsets(const struct sdx_cli_verb *verb, struct convert *convert,
                       const struct sdx_cli_list *given, char *text, size_t size)
{
    if (given->count == 0) return sdx_cli_usage(verb, "--opset VERSION is missing");
    if (given->count > OPSETS_MAX) return sdx_cli_usage(verb, "--opset: more than %d", OPSETS_MAX);
    for (int i = 0; i < given->count; i++) {
        size_t length = strlen(given->items[i]) + 1;
        bool fits = length <= size;
        if (fits) memcpy(text, given->items[i], length);
        if (!fits || !read_opset(text, &convert->opsets[i]))
            return sdx_cli_usage(verb, "--opset: '%.60s' is not a version or DOMAIN=VERSION",
                                 given->items[i]);
        text += length;
        size -= length;
    }
    convert->count = given->count;
    return -1;
}

static int run_convert(const struct sdx_cli_verb *verb, int argc, char **argv)
{
    struct convert convert = {0};
    struct sdx_cli_list files = {0}, opsets = {0};
    char text[1024];
    const struct sdx_cli_option options[] = {
        {"--opset", SDX_CLI_LIST, &opsets, "[DOMAIN=]N",
         "version to convert to; of ai.onnx without DOMAIN; may be given several times", 0, 0},
        {"-o", SDX_CLI_TEXT, &convert.to, "FILE", "the model file to write", 0, 0},
        {"--unchecked", SDX_CLI_FLAG, &convert.unchecked, NULL,
         "convert a model that is not valid too, as far as it goes", 0, 0},
        {0}};
    int rc = sdx_cli_args(verb, &convert.cli, options, argc, argv, &files, 1, 1);
    if (rc < 0) rc = read_opsets(verb, &convert, &opsets, text, sizeof text);
    if (rc < 0 && convert.to == NULL) rc = sdx_cli_usage(verb, "-o FILE is missing");
    if (rc < 0) {
        rc = sdx_cli_start(&convert.cli);
        if (rc == SDX_CLI_OK) rc = convert_model(&convert, files.items[0]);
        sdx_cli_end(&convert.cli);
    }
    sdx_cli_list_free(&opsets);
    sdx_cli_list_free(&files);
    return rc;
}

const struct sdx_cli_verb sdx_cli_verb_convert = {
    "convert", "MODEL --opset N -o FILE [options]",
    "Write a model in another version of the standard, newer or older; it computes the same.",
    "  sardonyx convert model.onnx --opset 28 -o newest.onnx\n"
    "  sardonyx convert model.onnx --opset 13 -o older.onnx\n"
    "  sardonyx convert forest.onnx --opset 17 --opset ai.onnx.ml=3 -o forest17.onnx\n"
    "\nWhere the other version cannot say what a node does, the exit code is 1 and the line names\n"
    "the node, the versions and the reason.\n",
    run_convert};
