/* SPDX-License-Identifier: Apache-2.0
 * sardonyx classify: what is in a picture. */
#include "json_out.h"
#include "pictures.h"

#include <stdio.h>
#include <stdlib.h>

enum { TOP_MAX = 1000 };

struct classify {
    struct sdx_cli_pictures pictures;
    long top;
};

static void print_scores(const struct classify *verb, const char *path,
                         const sdx_class_score *scores, int count)
{
    char *name = sdx_cli_clean(path);
    printf("%s\n", name);
    free(name);
    for (int i = 0; i < count; i++) {
        char number[16];
        printf("  %6.2f%%  %s\n", 100 * scores[i].score,
               sdx_labels_name(&verb->pictures.labels, scores[i].label, number, sizeof number));
    }
}

static json_t *scores_json(const struct classify *verb, const sdx_class_score *scores, int count)
{
    json_t *list = json_array();
    for (int i = 0; i < count; i++) {
        char number[16];
        json_t *row = json_object();
        json_object_set_new(row, "label", json_integer(scores[i].label));
        json_object_set_new(row, "name",
                            sdx_cli_json_text(sdx_labels_name(
                                &verb->pictures.labels, scores[i].label, number, sizeof number)));
        json_object_set_new(row, "score", sdx_cli_json_number(scores[i].score, 6));
        json_array_append_new(list, row);
    }
    return list;
}

static bool classify_picture(void *user, const char *path, json_t *row, sdx_vision_fault *fault)
{
    struct classify *verb = user;
    sdx_image image = {0};
    sdx_tensor *output = NULL;
    sdx_class_score scores[TOP_MAX];
    if (sdx_image_load(path, verb->pictures.input.channels, &image, fault) != SDX_OK) return false;
    bool ok = sdx_cli_pictures_run(&verb->pictures, &image, &output, NULL, fault);
    sdx_image_deinit(&image);
    if (ok && sdx_tensor_kind(output) != SDX_KIND_TENSOR) {
        snprintf(fault->text, sizeof fault->text, "the model's first output is not a tensor");
        ok = false;
    }
    if (ok) {
        int count = sdx_classify_top(output, (int)verb->top, scores);
        json_object_set_new(row, "ms", sdx_cli_json_number(verb->pictures.run_ms, 6));
        json_object_set_new(row, "top", scores_json(verb, scores, count));
        if (!verb->pictures.cli.json) print_scores(verb, path, scores, count);
    }
    sdx_tensor_destroy(output);
    return ok;
}

static int run_classify(const struct sdx_cli_verb *verb, int argc, char **argv)
{
    struct classify classify = {.top = 5};
    struct sdx_cli_list files = {0};
    const struct sdx_cli_option options[] = {
        {"--labels", SDX_CLI_TEXT, &classify.pictures.labels_path, "FILE",
         "names of the classes, one a line (default: the model's)", 0, 0},
        {"--top", SDX_CLI_INT, &classify.top, "N", "classes to print (5)", 1, TOP_MAX},
        {"--size", SDX_CLI_INT, &classify.pictures.size, "N",
         "side of the input where the model leaves it open", 8, 8192},
        {"--level", SDX_CLI_TEXT, &classify.pictures.level, "LEVEL",
         "graph optimisation: none, basic, extended, all", 0, 0},
        {0}};
    int rc = sdx_cli_args(verb, &classify.pictures.cli, options, argc, argv, &files, 2, 0);
    if (rc < 0) {
        rc = sdx_cli_pictures_open(verb, &classify.pictures, files.items[0], SDX_TASK_CLASSIFY);
        if (rc == SDX_CLI_OK)
            rc = sdx_cli_pictures_each(&classify.pictures, &files, classify_picture, &classify);
        sdx_cli_pictures_close(&classify.pictures);
    }
    sdx_cli_list_free(&files);
    return rc;
}

const struct sdx_cli_verb sdx_cli_verb_classify = {
    "classify", "MODEL IMAGE... [options]", sdx_cli_summary_classify,
    "  sardonyx classify digits.onnx scan.png\n"
    "  sardonyx classify resnet50.onnx cat.jpg --labels imagenet.txt --top 3\n",
    run_classify};
