/* SPDX-License-Identifier: Apache-2.0
 * Names of classes: from a file, from a model's metadata (our own key, or the Python dict or list
 * that Ultralytics writes), or COCO's. */
#include "fault.h"
#include "meta.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LABELS_MAX = 1 << 20 };

void sdx_labels_deinit(sdx_labels *labels)
{
    for (int i = 0; i < labels->count; i++)
        free(labels->names[i]);
    free(labels->names);
    *labels = (sdx_labels){0};
}

/* Sets name `i`; the names between are NULL. A second name for `i` replaces the first. */
static sdx_status labels_set(sdx_labels *labels, long i, const char *text, size_t length,
                             sdx_vision_fault *fault)
{
    if (i < 0 || i >= LABELS_MAX)
        return sdx_vision_fail(fault, SDX_BAD_DATA, "class number %ld is not in 0 to %d", i,
                               LABELS_MAX - 1);
    if (i >= labels->count) {
        char **names = realloc(labels->names, ((size_t)i + 1) * sizeof *names);
        if (names == NULL) return sdx_vision_fail(fault, SDX_OUT_OF_MEMORY, "no memory for names");
        labels->names = names;
        while (labels->count <= i)
            names[labels->count++] = NULL;
    }
    char *copy = malloc(length + 1);
    if (copy == NULL) return sdx_vision_fail(fault, SDX_OUT_OF_MEMORY, "no memory for names");
    for (size_t k = 0; k < length; k++) /* a control character would break a line */
        copy[k] = (unsigned char)text[k] < 32 || text[k] == 127 ? ' ' : text[k];
    copy[length] = '\0';
    free(labels->names[i]);
    labels->names[i] = copy;
    return SDX_OK;
}

sdx_status sdx_labels_load(const char *path, sdx_labels *out, sdx_vision_fault *fault)
{
    *out = (sdx_labels){0};
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return sdx_vision_fail(fault, errno == ENOENT ? SDX_NOT_FOUND : SDX_IO, "%s: %s", path,
                               strerror(errno));
    char *line = NULL;
    size_t room = 0;
    ssize_t length = 0;
    sdx_status status = SDX_OK;
    while (!status && (length = getline(&line, &room, file)) >= 0) {
        while (length > 0 && (line[length - 1] == '\n' || line[length - 1] == '\r'))
            length--;
        status = labels_set(out, out->count, line, (size_t)length, fault);
    }
    free(line);
    fclose(file);
    while (!status && out->count > 0 && out->names[out->count - 1][0] == '\0')
        free(out->names[--out->count]);
    if (!status && out->count == 0)
        status = sdx_vision_fail(fault, SDX_BAD_DATA, "%s: holds no names", path);
    if (status) sdx_labels_deinit(out);
    return status;
}

/* Names between commas or newlines. */
static sdx_status labels_split(const char *text, sdx_labels *out, sdx_vision_fault *fault)
{
    sdx_status status = SDX_OK;
    while (!status && *text != '\0') {
        size_t length = strcspn(text, ",\n");
        size_t skip = strspn(text, " ");
        if (skip > length) skip = length;
        status = labels_set(out, out->count, text + skip, length - skip, fault);
        text += length;
        if (*text != '\0') text++;
    }
    return status;
}

/* A Python string literal at *at, unescaped in place; returns NULL when there is none. */
static char *python_string(char **at, size_t *length)
{
    char quote = **at;
    if (quote != '\'' && quote != '"') return NULL;
    char *begin = *at + 1, *to = begin, *p = begin;
    while (*p != '\0' && *p != quote) {
        if (*p == '\\' && p[1] != '\0') p++;
        *to++ = *p++;
    }
    if (*p != quote) return NULL;
    *at = p + 1;
    *length = (size_t)(to - begin);
    return begin;
}

/* {0: 'person', 1: "driver's seat"} or ['person', 'car']. `text` is written over. */
static sdx_status labels_python(char *text, sdx_labels *out, sdx_vision_fault *fault)
{
    static const char blank[] = " \t\r\n";
    char *at = text + strspn(text, blank);
    bool dict = *at == '{';
    char close = dict ? '}' : ']';
    if (!dict && *at != '[') goto bad;
    at++;
    for (long next = 0;; next++) {
        at += strspn(at, blank);
        if (*at == close) return SDX_OK;
        long key = next;
        if (dict) {
            size_t unused = 0;
            char *end = at, *quoted = python_string(&end, &unused);
            key = strtol(quoted != NULL ? quoted : at, quoted != NULL ? &quoted : &end, 10);
            if (end == at) goto bad;
            at = end + strspn(end, blank);
            if (*at != ':') goto bad;
            at++;
            at += strspn(at, blank);
        }
        size_t length = 0;
        char *name = python_string(&at, &length);
        if (name == NULL) goto bad;
        sdx_status status = labels_set(out, key, name, length, fault);
        if (status) return status;
        at += strspn(at, blank);
        if (*at == ',')
            at++;
        else if (*at != close)
            goto bad;
    }
bad:
    return sdx_vision_fail(fault, SDX_BAD_DATA,
                           "metadata 'names' is not a Python dict or list of strings");
}

sdx_status sdx_labels_from_model(const sdx_model *model, sdx_labels *out, sdx_vision_fault *fault)
{
    *out = (sdx_labels){0};
    const char *own = sdx_vision_meta(model, "sardonyx.labels");
    const char *names = sdx_vision_meta(model, "names");
    sdx_status status = SDX_OK;
    if (own != NULL) {
        status = labels_split(own, out, fault);
    } else if (names != NULL) {
        char *copy = strdup(names);
        if (copy == NULL) return sdx_vision_fail(fault, SDX_OUT_OF_MEMORY, "no memory for names");
        status = labels_python(copy, out, fault);
        free(copy);
    }
    if (status) sdx_labels_deinit(out);
    return status;
}

static const char *const coco[] = {"person",        "bicycle",      "car",
                                   "motorcycle",    "airplane",     "bus",
                                   "train",         "truck",        "boat",
                                   "traffic light", "fire hydrant", "stop sign",
                                   "parking meter", "bench",        "bird",
                                   "cat",           "dog",          "horse",
                                   "sheep",         "cow",          "elephant",
                                   "bear",          "zebra",        "giraffe",
                                   "backpack",      "umbrella",     "handbag",
                                   "tie",           "suitcase",     "frisbee",
                                   "skis",          "snowboard",    "sports ball",
                                   "kite",          "baseball bat", "baseball glove",
                                   "skateboard",    "surfboard",    "tennis racket",
                                   "bottle",        "wine glass",   "cup",
                                   "fork",          "knife",        "spoon",
                                   "bowl",          "banana",       "apple",
                                   "sandwich",      "orange",       "broccoli",
                                   "carrot",        "hot dog",      "pizza",
                                   "donut",         "cake",         "chair",
                                   "couch",         "potted plant", "bed",
                                   "dining table",  "toilet",       "tv",
                                   "laptop",        "mouse",        "remote",
                                   "keyboard",      "cell phone",   "microwave",
                                   "oven",          "toaster",      "sink",
                                   "refrigerator",  "book",         "clock",
                                   "vase",          "scissors",     "teddy bear",
                                   "hair drier",    "toothbrush"};

sdx_status sdx_labels_coco(sdx_labels *out, sdx_vision_fault *fault)
{
    *out = (sdx_labels){0};
    sdx_status status = SDX_OK;
    for (size_t i = 0; i < sizeof coco / sizeof *coco && !status; i++)
        status = labels_set(out, (long)i, coco[i], strlen(coco[i]), fault);
    if (status) sdx_labels_deinit(out);
    return status;
}

const char *sdx_labels_name(const sdx_labels *labels, int i, char *buffer, size_t size)
{
    if (i >= 0 && i < labels->count && labels->names[i] != NULL) return labels->names[i];
    snprintf(buffer, size, "%d", i);
    return buffer;
}
