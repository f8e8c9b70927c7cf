/* SPDX-License-Identifier: Apache-2.0
 * The outputs of detectors, turned into boxes. The layouts: ultralytics/yolov5 models/yolo.py
 * (Detect), ultralytics nn/modules/head.py (Detect, v10Detect), Megvii YOLOX yolo_head.py
 * (decode_outputs). Oriented boxes and key points are left to the tasks that know them. */
#include "boxes.h"
#include "fault.h"

#include <math.h>
#include <string.h>

const char *sdx_head_name(sdx_head head)
{
    switch (head) {
#define HEAD_NAME(id, name, meaning)                                                               \
    case id: return name;
        SDX_HEADS(HEAD_NAME)
#undef HEAD_NAME
    default: return "none";
    }
}

sdx_head sdx_head_find(const char *name)
{
#define HEAD_FIND(id, text, meaning)                                                               \
    if (strcmp(name, text) == 0) return id;
    SDX_HEADS(HEAD_FIND)
#undef HEAD_FIND
    return SDX_HEAD_NONE;
}

/* Cells of the grids of strides 8, 16, 32 and so on up to `most`. */
static int64_t count_cells(int width, int height, int most)
{
    int64_t count = 0;
    for (int stride = 8; stride <= most; stride *= 2)
        count += (int64_t)(width / stride) * (height / stride);
    return count;
}

/* Only numbers of rows that a head has for this size are taken: a wrong guess would give wrong
 * boxes in silence. Models of four grids ("P6") go to stride 64. */
sdx_head sdx_head_guess(int rank, const int64_t *dims, int input_width, int input_height)
{
    if (rank != 3 || dims[0] > 1) return SDX_HEAD_NONE;
    for (int most = 32; most <= 64; most *= 2) {
        int64_t cells = count_cells(input_width, input_height, most);
        if (most == 32 && dims[2] > 5 && dims[1] == cells) return SDX_HEAD_YOLOX;
        if (dims[2] > 5 && dims[1] == 3 * cells) return SDX_HEAD_V5;
        if (dims[1] > 4 && dims[2] == cells) return SDX_HEAD_V8;
    }
    return dims[2] == 6 && dims[1] > 0 ? SDX_HEAD_NMS : SDX_HEAD_NONE;
}

/* A matrix of candidates: value k of candidate a is data[a * step + k * skip]. */
struct rows {
    const float *data;
    int64_t count, step, skip;
    int classes; /* columns of class scores */
};

static float value(const struct rows *r, int64_t a, int64_t k)
{
    return r->data[a * r->step + k * r->skip];
}

/* The best of the class scores from column `first` on. */
static float best_class(const struct rows *r, int64_t a, int first, int *label)
{
    float best = -INFINITY;
    for (int k = 0; k < r->classes; k++) {
        float score = value(r, a, first + k);
        if (score > best) {
            best = score;
            *label = k;
        }
    }
    return best;
}

/* Scores are probabilities; anything above is another task's column (a place, an angle) read as a
 * class. */
static sdx_status append(sdx_boxes *boxes, sdx_box box, sdx_vision_fault *fault)
{
    if (box.score > 1.01f)
        return sdx_vision_fail(
            fault, SDX_NOT_SUPPORTED,
            "the output holds scores above 1 (%g): not only boxes and classes, or "
            "the names of the classes are not given",
            (double)box.score);
    return sdx_boxes_append(boxes, box, fault);
}

static sdx_status append_centred(sdx_boxes *boxes, float x, float y, float w, float h, float score,
                                 int label, sdx_vision_fault *fault)
{
    sdx_box box = {x - w / 2, y - h / 2, x + w / 2, y + h / 2, score, label};
    return append(boxes, box, fault);
}

static sdx_status decode_v5(const struct rows *r, double conf, sdx_boxes *boxes,
                            sdx_vision_fault *fault)
{
    for (int64_t a = 0; a < r->count; a++) {
        float object = value(r, a, 4);
        if (!(object > conf)) continue;
        int label = 0;
        float score = object * best_class(r, a, 5, &label);
        if (!(score > conf)) continue;
        sdx_status status = append_centred(boxes, value(r, a, 0), value(r, a, 1), value(r, a, 2),
                                           value(r, a, 3), score, label, fault);
        if (status) return status;
    }
    return SDX_OK;
}

static sdx_status decode_v8(const struct rows *r, double conf, sdx_boxes *boxes,
                            sdx_vision_fault *fault)
{
    for (int64_t a = 0; a < r->count; a++) {
        int label = 0;
        float score = best_class(r, a, 4, &label);
        if (!(score > conf)) continue;
        sdx_status status = append_centred(boxes, value(r, a, 0), value(r, a, 1), value(r, a, 2),
                                           value(r, a, 3), score, label, fault);
        if (status) return status;
    }
    return SDX_OK;
}

static sdx_status decode_yolox(const struct rows *r, int width, int height, double conf,
                               sdx_boxes *boxes, sdx_vision_fault *fault)
{
    if (r->count != count_cells(width, height, 32))
        return sdx_vision_fail(
            fault, SDX_BAD_INPUT, "yolox head: %lld rows, expected %lld for an input of %d x %d",
            (long long)r->count, (long long)count_cells(width, height, 32), width, height);
    int64_t a = 0;
    for (int stride = 8; stride <= 32; stride *= 2)
        for (int y = 0; y < height / stride; y++)
            for (int x = 0; x < width / stride; x++, a++) {
                int label = 0;
                float score = value(r, a, 4) * best_class(r, a, 5, &label);
                if (!(score > conf)) continue;
                float cell = (float)stride;
                sdx_status status = append_centred(
                    boxes, (value(r, a, 0) + (float)x) * cell, (value(r, a, 1) + (float)y) * cell,
                    expf(value(r, a, 2)) * cell, expf(value(r, a, 3)) * cell, score, label, fault);
                if (status) return status;
            }
    return SDX_OK;
}

static sdx_status decode_nms(const struct rows *r, double conf, sdx_boxes *boxes,
                             sdx_vision_fault *fault)
{
    for (int64_t a = 0; a < r->count; a++) {
        float score = value(r, a, 4), label = value(r, a, 5);
        if (!(score > conf) || !(label >= 0 && label < 1e6f)) continue;
        sdx_box box = {value(r, a, 0), value(r, a, 1), value(r, a, 2),
                       value(r, a, 3), score,          (int)label};
        sdx_status status = append(boxes, box, fault);
        if (status) return status;
    }
    return SDX_OK;
}

sdx_status sdx_head_decode(sdx_head head, const sdx_tensor *output, int classes, int input_width,
                           int input_height, double conf, sdx_boxes *boxes, sdx_vision_fault *fault)
{
    const int64_t *dims = sdx_tensor_dims(output);
    if (sdx_tensor_kind(output) != SDX_KIND_TENSOR || sdx_tensor_dtype(output) != SDX_F32 ||
        sdx_tensor_rank(output) != 3 || dims[0] != 1)
        return sdx_vision_fail(fault, SDX_NOT_SUPPORTED,
                               "a detector's output must be float[1,...,...], found %s of rank %d",
                               sdx_dtype_name(sdx_tensor_dtype(output)), sdx_tensor_rank(output));
    int64_t columns = head == SDX_HEAD_V8 ? dims[1] : dims[2];
    int fixed = head == SDX_HEAD_V8 ? 4 : head == SDX_HEAD_NMS ? 6 : 5;
    if (columns < fixed + (head != SDX_HEAD_NMS) || columns > 1000000)
        return sdx_vision_fail(fault, SDX_BAD_INPUT, "%s head: %lld columns, expected at least %d",
                               sdx_head_name(head), (long long)columns, fixed + 1);
    if (classes < 1 || classes > columns - fixed) classes = (int)columns - fixed;
    struct rows rows = {sdx_tensor_const_data(output), dims[1], dims[2], 1, classes};
    if (head == SDX_HEAD_V8) rows = (struct rows){rows.data, dims[2], 1, dims[2], classes};
    switch (head) {
    case SDX_HEAD_V5:
    case SDX_HEAD_YOLOX_DECODED: return decode_v5(&rows, conf, boxes, fault);
    case SDX_HEAD_V8: return decode_v8(&rows, conf, boxes, fault);
    case SDX_HEAD_YOLOX: return decode_yolox(&rows, input_width, input_height, conf, boxes, fault);
    case SDX_HEAD_NMS: return decode_nms(&rows, conf, boxes, fault);
    default: return sdx_vision_fail(fault, SDX_INVALID_ARGUMENT, "no head named");
    }
}
