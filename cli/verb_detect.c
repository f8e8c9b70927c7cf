/* SPDX-License-Identifier: Apache-2.0
 * sardonyx detect: where what is in a picture. */
#include "inputs.h"
#include "json_out.h"
#include "pictures.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BOXES_MAX = 300 };

struct detect {
    struct sdx_cli_pictures pictures;
    const char *out, *head_name;
    double conf, iou;
    sdx_head head;               /* SDX_HEAD_NONE: the first output's shape will tell */
    int classes;                 /* names given; 0: unknown */
    struct sdx_cli_list written; /* base names of the pictures done so far */
};

static const char *metadata(const sdx_model *model, const char *key)
{
    const sdx_model_facts *facts = sdx_model_get_facts(model);
    for (int i = 0; i < facts->count_metadata; i++)
        if (strcmp(facts->metadata_keys[i], key) == 0) return facts->metadata_values[i];
    return "";
}

/* The head by --head or by what the model says of its first output. */
static int find_head(const struct sdx_cli_verb *verb, struct detect *detect)
{
    struct sdx_cli_pictures *p = &detect->pictures;
    const sdx_value_info *info = sdx_model_output(p->model, 0);
    const char *task = metadata(p->model, "task");
    if (strcmp(task, "obb") == 0 || strcmp(task, "classify") == 0)
        return sdx_cli_fail(&p->cli, "a model for the task '%s' gives no upright boxes", task);
    if (detect->head_name != NULL) {
        detect->head = sdx_head_find(detect->head_name);
        if (detect->head == SDX_HEAD_NONE)
            return sdx_cli_usage(verb, "--head: '%.60s' is not v5, v8, yolox, yolox-decoded or nms",
                                 detect->head_name);
    } else if (info->kind == SDX_KIND_TENSOR) {
        detect->head = sdx_head_guess(info->rank, info->dims, p->input.width, p->input.height);
    }
    sdx_vision_input_for_head(&p->input, detect->head);
    return SDX_CLI_OK;
}

/* Names: given ones, the model's, or COCO's when there are 80 classes. Returns how many classes the
 * head has, 0 when only its columns tell. */
static bool settle_names(struct detect *detect, const sdx_tensor *output, sdx_vision_fault *fault)
{
    struct sdx_cli_pictures *p = &detect->pictures;
    if (p->labels.count > 0) {
        detect->classes = p->labels.count;
        return true;
    }
    const int64_t *dims = sdx_tensor_dims(output);
    int64_t columns = detect->head == SDX_HEAD_V8    ? dims[1] - 4
                      : detect->head == SDX_HEAD_NMS ? 0
                                                     : dims[2] - 5;
    /* 32 columns of mask weights stand behind the classes of a segmenter. */
    const sdx_value_info *second = sdx_model_output(p->model, 1);
    if (detect->head != SDX_HEAD_NMS && second != NULL && second->rank == 4 &&
        second->dims[1] == 32 && columns > 32)
        columns -= 32;
    detect->classes = (int)columns;
    return columns != 80 || sdx_labels_coco(&p->labels, fault) == SDX_OK;
}

/* Boxes in the picture's coordinates. */
static bool find_boxes(struct detect *detect, const sdx_image *image, sdx_boxes *boxes,
                       sdx_vision_fault *fault)
{
    struct sdx_cli_pictures *p = &detect->pictures;
    sdx_tensor *output = NULL;
    sdx_letterbox place;
    if (!sdx_cli_pictures_run(p, image, &output, &place, fault)) return false;
    if (detect->head == SDX_HEAD_NONE && sdx_tensor_kind(output) == SDX_KIND_TENSOR) {
        /* The model left its output's shape open; a head that wants another input runs again. */
        detect->head = sdx_head_guess(sdx_tensor_rank(output), sdx_tensor_dims(output),
                                      p->input.width, p->input.height);
        if (detect->head == SDX_HEAD_YOLOX) {
            sdx_tensor_destroy(output);
            sdx_vision_input_for_head(&p->input, detect->head);
            return find_boxes(detect, image, boxes, fault);
        }
    }
    bool ok = detect->head != SDX_HEAD_NONE;
    if (!ok)
        snprintf(fault->text, sizeof fault->text,
                 "the model's first output is none of a known detector (--head tells which)");
    if (ok && p->labels.count == 0 && sdx_tensor_rank(output) == 3)
        ok = settle_names(detect, output, fault);
    else if (ok)
        detect->classes = p->labels.count;
    ok = ok && sdx_head_decode(detect->head, output, detect->classes, p->input.width,
                               p->input.height, detect->conf, boxes, fault) == SDX_OK;
    if (ok) {
        /* A model that suppresses by itself is only sorted. */
        sdx_boxes_suppress(boxes, detect->head == SDX_HEAD_NMS ? 1.0 : detect->iou, BOXES_MAX);
        sdx_boxes_to_picture(boxes, &place, image->width, image->height);
    }
    sdx_tensor_destroy(output);
    return ok;
}

/* DIR/NAME of the annotated picture; a second picture of the same name becomes NAME-2. */
static char *output_path(struct detect *detect, const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const char *dot = strrchr(name, '.');
    int stem = dot ? (int)(dot - name) : (int)strlen(name), same = 0;
    for (int i = 0; i < detect->written.count; i++)
        same += strcmp(detect->written.items[i], name) == 0;
    sdx_cli_list_add(&detect->written, name);
    char *base = NULL;
    int rc = same == 0 ? asprintf(&base, "%s", name)
                       : asprintf(&base, "%.*s-%d%s", stem, name, same + 1, dot ? dot : "");
    if (rc < 0) sdx_cli_no_memory();
    char *full = sdx_cli_join(detect->out, base);
    free(base);
    return full;
}

static void print_boxes(const struct detect *detect, const char *path, const sdx_boxes *boxes)
{
    char *name = sdx_cli_clean(path);
    printf("%s: %zu object%s in %.1f ms\n", name, boxes->count, boxes->count == 1 ? "" : "s",
           detect->pictures.run_ms);
    free(name);
    for (size_t i = 0; i < boxes->count; i++) {
        const sdx_box *b = &boxes->items[i];
        char number[16];
        printf("  %-16s %.2f  [%.0f,%.0f,%.0f,%.0f]\n",
               sdx_labels_name(&detect->pictures.labels, b->label, number, sizeof number),
               (double)b->score, (double)b->x0, (double)b->y0, (double)b->x1, (double)b->y1);
    }
}

static json_t *boxes_json(const struct detect *detect, const sdx_boxes *boxes)
{
    json_t *list = json_array();
    for (size_t i = 0; i < boxes->count; i++) {
        const sdx_box *b = &boxes->items[i];
        char number[16];
        const double corners[4] = {b->x0, b->y0, b->x1, b->y1};
        json_t *row = json_object(), *box = json_array();
        for (int k = 0; k < 4; k++)
            json_array_append_new(box, sdx_cli_json_number(corners[k], 6));
        json_object_set_new(row, "label", json_integer(b->label));
        json_object_set_new(row, "name",
                            sdx_cli_json_text(sdx_labels_name(&detect->pictures.labels, b->label,
                                                              number, sizeof number)));
        json_object_set_new(row, "score", sdx_cli_json_number((double)b->score, 5));
        json_object_set_new(row, "box", box);
        json_array_append_new(list, row);
    }
    return list;
}

static bool detect_picture(void *user, const char *path, json_t *row, sdx_vision_fault *fault)
{
    struct detect *detect = user;
    sdx_image image = {0}, grey = {0};
    sdx_boxes boxes = {0};
    char *file = NULL;
    bool ok = sdx_image_load(path, 3, &image, fault) == SDX_OK;
    bool one = ok && detect->pictures.input.channels == 1;
    if (one) ok = sdx_image_load(path, 1, &grey, fault) == SDX_OK;
    ok = ok && find_boxes(detect, one ? &grey : &image, &boxes, fault);
    if (ok && detect->out != NULL) {
        file = output_path(detect, path);
        ok = sdx_draw_boxes(&image, &boxes, &detect->pictures.labels, fault) == SDX_OK &&
             sdx_image_save(file, &image, fault) == SDX_OK;
    }
    if (ok) {
        json_object_set_new(row, "width", json_integer(image.width));
        json_object_set_new(row, "height", json_integer(image.height));
        json_object_set_new(row, "ms", sdx_cli_json_number(detect->pictures.run_ms, 6));
        json_object_set_new(row, "boxes", boxes_json(detect, &boxes));
        if (file != NULL) json_object_set_new(row, "file", sdx_cli_json_text(file));
        if (!detect->pictures.cli.json) {
            print_boxes(detect, path, &boxes);
            if (file != NULL) printf("  -> %s\n", file);
        }
    }
    free(file);
    sdx_boxes_deinit(&boxes);
    sdx_image_deinit(&image);
    sdx_image_deinit(&grey);
    return ok;
}

static int detect_all(const struct sdx_cli_verb *verb, struct detect *detect,
                      const struct sdx_cli_list *files)
{
    int rc = sdx_cli_pictures_open(verb, &detect->pictures, files->items[0], SDX_TASK_DETECT);
    if (rc == SDX_CLI_OK) rc = find_head(verb, detect);
    if (rc == SDX_CLI_OK && detect->out != NULL && !sdx_cli_make_folder(detect->out))
        rc = sdx_cli_fail(&detect->pictures.cli, "%s: %s", detect->out, strerror(errno));
    if (rc == SDX_CLI_OK)
        rc = sdx_cli_pictures_each(&detect->pictures, files, detect_picture, detect);
    sdx_cli_pictures_close(&detect->pictures);
    return rc;
}

static int run_detect(const struct sdx_cli_verb *verb, int argc, char **argv)
{
    struct detect detect = {.conf = 0.25, .iou = 0.45};
    struct sdx_cli_list files = {0};
    const struct sdx_cli_option options[] = {
        {"--out", SDX_CLI_TEXT, &detect.out, "DIR", "write the pictures with boxes drawn", 0, 0},
        {"--conf", SDX_CLI_NUMBER, &detect.conf, "C", "least score (0.25)", 0, 1},
        {"--iou", SDX_CLI_NUMBER, &detect.iou, "I",
         "overlap above which the weaker of two boxes goes (0.45)", 0, 1},
        {"--classes", SDX_CLI_TEXT, &detect.pictures.labels_path, "FILE",
         "names of the classes, one a line (default: the model's, or COCO's)", 0, 0},
        {"--head", SDX_CLI_TEXT, &detect.head_name, "HEAD",
         "v5, v8, yolox, yolox-decoded or nms (default: told from the output's shape)", 0, 0},
        {"--size", SDX_CLI_INT, &detect.pictures.size, "N",
         "side of the input where the model leaves it open", 32, 8192},
        {"--level", SDX_CLI_TEXT, &detect.pictures.level, "LEVEL",
         "graph optimisation: none, basic, extended, all", 0, 0},
        {0}};
    int rc = sdx_cli_args(verb, &detect.pictures.cli, options, argc, argv, &files, 2, 0);
    if (rc < 0) rc = detect_all(verb, &detect, &files);
    sdx_cli_list_free(&detect.written);
    sdx_cli_list_free(&files);
    return rc;
}

const struct sdx_cli_verb sdx_cli_verb_detect = {
    "detect", "MODEL IMAGE... [options]", sdx_cli_summary_detect,
    "  sardonyx detect yolov8n.onnx street.jpg --out annotated\n"
    "  sardonyx detect yolox_nano.onnx *.jpg --conf 0.4 --json\n",
    run_detect};
