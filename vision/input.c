/* SPDX-License-Identifier: Apache-2.0
 * What a model wants as its picture, and a picture as a tensor. ImageNet's means and deviations are
 * those of torchvision's models; the crop is torchvision's (resize the shorter side with a triangle
 * filter, int(long * size / short) for the other, take the centre). */
#include "fault.h"
#include "meta.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INPUT_SIDE_MAX = 1 << 14 };

const char *sdx_vision_meta(const sdx_model *model, const char *key)
{
    const sdx_model_facts *facts = sdx_model_get_facts(model);
    for (int i = 0; i < facts->count_metadata; i++)
        if (strcmp(facts->metadata_keys[i], key) == 0) return facts->metadata_values[i];
    return NULL;
}

/* ---- wishes ---- */

/* Numbers with commas between into out[3]; one number stands for all three. */
static sdx_status read_numbers(const sdx_model *model, const char *key, double out[3],
                               sdx_vision_fault *fault)
{
    const char *text = sdx_vision_meta(model, key);
    if (text == NULL) return SDX_OK;
    double values[3] = {0};
    int count = 0;
    const char *at = text;
    for (; count < 3; count++) {
        char *end = NULL;
        values[count] = strtod(at, &end);
        if (end == at || !isfinite(values[count])) break;
        at = end + strspn(end, " ");
        if (*at != ',') {
            count++;
            break;
        }
        at++;
    }
    if (*at != '\0' || (count != 1 && count != 3))
        return sdx_vision_fail(fault, SDX_BAD_DATA,
                               "metadata '%s' is '%.60s', expected one or three numbers", key,
                               text);
    for (int i = 0; i < 3; i++)
        out[i] = values[count == 1 ? 0 : i];
    return SDX_OK;
}

/* A word of `words`, which ends with NULL, into *out. */
static sdx_status read_word(const sdx_model *model, const char *key, const char *const *words,
                            int *out, sdx_vision_fault *fault)
{
    const char *text = sdx_vision_meta(model, key);
    if (text == NULL) return SDX_OK;
    for (int i = 0; words[i] != NULL; i++)
        if (strcmp(text, words[i]) == 0) {
            *out = i;
            return SDX_OK;
        }
    return sdx_vision_fail(fault, SDX_BAD_DATA, "metadata '%s' has the unknown value '%.60s'", key,
                           text);
}

static const sdx_value_info *picture_input(const sdx_model *model)
{
    const sdx_value_info *found = NULL;
    int required = 0;
    for (int i = 0; i < sdx_model_count_inputs(model); i++) {
        const sdx_value_info *info = sdx_model_input(model, i);
        if (info->optional) continue;
        required++;
        if (info->kind == SDX_KIND_TENSOR && info->rank == 4 &&
            (info->dtype == SDX_F32 || info->dtype == SDX_F16 || info->dtype == SDX_U8))
            found = info;
    }
    return required == 1 ? found : NULL;
}

/* Sides that the model leaves open: `size`, else what Ultralytics wrote, else the task's. */
static void open_sides(const sdx_model *model, sdx_vision_task task, int size, int *height,
                       int *width)
{
    int usual = task == SDX_TASK_DETECT ? 640 : 224, h = usual, w = usual;
    const char *text = sdx_vision_meta(model, "imgsz");
    if (size > 0)
        h = w = size;
    else if (text == NULL || sscanf(text, "[%5d, %5d]", &h, &w) != 2 || h < 1 || w < 1)
        h = w = usual;
    if (*height < 0) *height = h;
    if (*width < 0) *width = w;
}

static sdx_status read_shape(sdx_vision_input *input, const sdx_model *model, sdx_vision_task task,
                             int size, sdx_vision_fault *fault)
{
    const sdx_value_info *info = picture_input(model);
    if (info == NULL)
        return sdx_vision_fail(fault, SDX_NOT_SUPPORTED,
                               "the model has not just one picture as its input (float, float16 "
                               "or uint8 of 4 dimensions)");
    const int64_t *d = info->dims;
    bool first = d[1] == 1 || d[1] == 3, last = d[3] == 1 || d[3] == 3;
    if (!first && !last && d[1] >= 0)
        return sdx_vision_fail(fault, SDX_NOT_SUPPORTED,
                               "input '%.80s' is %.120s, expected 1 or 3 channels", info->name,
                               info->type);
    if (d[0] > 1)
        return sdx_vision_fail(fault, SDX_NOT_SUPPORTED, "input '%.80s' is %.120s, a batch of %lld",
                               info->name, info->type, (long long)d[0]);
    input->name = info->name;
    input->dtype = info->dtype;
    input->channels_last = last && !first;
    int64_t channels = input->channels_last ? d[3] : d[1];
    int64_t height = input->channels_last ? d[1] : d[2];
    int64_t width = input->channels_last ? d[2] : d[3];
    if (height > INPUT_SIDE_MAX || width > INPUT_SIDE_MAX || height == 0 || width == 0)
        return sdx_vision_fail(fault, SDX_NOT_SUPPORTED, "input '%.80s' is %.120s", info->name,
                               info->type);
    input->channels = channels == 1 ? 1 : 3;
    input->height = (int)height;
    input->width = (int)width;
    open_sides(model, task, size, &input->height, &input->width);
    return SDX_OK;
}

static void usual_values(sdx_vision_input *input, const sdx_model *model, sdx_vision_task task)
{
    static const double mean[3] = {0.485, 0.456, 0.406}, std[3] = {0.229, 0.224, 0.225};
    const char *named = sdx_vision_meta(model, "task");
    bool ultralytics = named != NULL && strcmp(named, "classify") == 0;
    bool imagenet =
        task == SDX_TASK_CLASSIFY && input->channels == 3 && !ultralytics && input->dtype != SDX_U8;
    input->scale = input->dtype == SDX_U8 ? 1.0 : 1.0 / 255;
    for (int i = 0; i < 3; i++) {
        input->mean[i] = imagenet ? mean[i] : 0;
        input->std[i] = imagenet ? std[i] : 1;
    }
    input->crop = ultralytics ? 1.0 : 0.875;
    if (task == SDX_TASK_DETECT)
        input->fit = SDX_FIT_LETTERBOX;
    else
        input->fit = input->width < 64 || input->height < 64 ? SDX_FIT_STRETCH : SDX_FIT_CROP;
}

sdx_status sdx_vision_input_init(sdx_vision_input *input, const sdx_model *model,
                                 sdx_vision_task task, int size, sdx_vision_fault *fault)
{
    static const char *const fits[] = {"stretch", "crop", "letterbox", "letterbox-corner", NULL};
    static const char *const colours[] = {"rgb", "bgr", NULL};
    static const char *const switches[] = {"0", "1", NULL};
    *input = (sdx_vision_input){0};
    sdx_status status = read_shape(input, model, task, size, fault);
    if (status) return status;
    usual_values(input, model, task);
    int fit = (int)input->fit, bgr = 0, invert = 0;
    double scale[3] = {input->scale, 0, 0}, crop[3] = {input->crop, 0, 0};
    status = read_numbers(model, "sardonyx.mean", input->mean, fault);
    if (!status) status = read_numbers(model, "sardonyx.std", input->std, fault);
    if (!status) status = read_numbers(model, "sardonyx.scale", scale, fault);
    if (!status) status = read_numbers(model, "sardonyx.crop", crop, fault);
    if (!status) status = read_word(model, "sardonyx.fit", fits, &fit, fault);
    if (!status) status = read_word(model, "sardonyx.color", colours, &bgr, fault);
    if (!status) status = read_word(model, "sardonyx.invert", switches, &invert, fault);
    if (status) return status;
    if (!(crop[0] > 0.01 && crop[0] <= 1) || !(scale[0] > 0) || input->std[0] == 0 ||
        input->std[1] == 0 || input->std[2] == 0)
        return sdx_vision_fail(fault, SDX_BAD_DATA,
                               "metadata: crop must be in (0.01, 1], scale above 0, std not 0");
    input->scale = scale[0];
    input->crop = crop[0];
    input->fit = (sdx_fit)fit;
    input->bgr = bgr != 0;
    input->invert = invert != 0;
    return SDX_OK;
}

void sdx_vision_input_for_head(sdx_vision_input *input, sdx_head head)
{
    if (head != SDX_HEAD_YOLOX && head != SDX_HEAD_YOLOX_DECODED) return;
    input->fit = SDX_FIT_LETTERBOX_CORNER;
    input->bgr = true;
    input->scale = 1;
}

/* ---- the picture in the input's shape ---- */

static sdx_status fit_crop(const sdx_vision_input *input, const sdx_image *image, sdx_image *out,
                           sdx_vision_fault *fault)
{
    /* torchvision resizes to one number and takes a square; an input that is not square is filled
     * by the same rule on the side that fits tighter. */
    double need_w = input->width / input->crop, need_h = input->height / input->crop;
    int w = 0, h = 0;
    if (need_w * image->height >= need_h * image->width) {
        w = (int)(need_w + 1e-6);
        h = (int)((double)w * image->height / image->width);
    } else {
        h = (int)(need_h + 1e-6);
        w = (int)((double)h * image->width / image->height);
    }
    if (w < input->width) w = input->width;
    if (h < input->height) h = input->height;
    sdx_image small = {0};
    sdx_status status = sdx_image_resize(image, w, h, SDX_RESIZE_ANTIALIAS, &small, fault);
    if (status) return status;
    status = sdx_image_crop(&small, (int)rint((w - input->width) / 2.0),
                            (int)rint((h - input->height) / 2.0), input->width, input->height, 0,
                            out, fault);
    sdx_image_deinit(&small);
    return status;
}

static sdx_status fit_letterbox(const sdx_vision_input *input, const sdx_image *image,
                                sdx_image *out, sdx_letterbox *place, sdx_vision_fault *fault)
{
    sdx_image small = {0};
    sdx_letterbox_place(image->width, image->height, input->width, input->height, input->fit,
                        place);
    sdx_status status =
        sdx_image_resize(image, place->width, place->height, SDX_RESIZE_BILINEAR, &small, fault);
    if (status) return status;
    status = sdx_image_crop(&small, -place->left, -place->top, input->width, input->height, 114,
                            out, fault);
    sdx_image_deinit(&small);
    return status;
}

/* ---- values ---- */

/* IEEE 754 half, rounded to nearest even. */
static uint16_t half_of(float value)
{
    uint32_t bits = 0;
    memcpy(&bits, &value, sizeof bits);
    uint32_t sign = bits >> 16 & 0x8000, rest = bits & 0x7fffffff;
    if (rest >= 0x47800000) return (uint16_t)(sign | (rest > 0x7f800000 ? 0x7e00 : 0x7c00));
    if (rest < 0x38800000) { /* below the smallest normal half: units of 2^-24 */
        float small = 0;
        memcpy(&small, &rest, sizeof small);
        return (uint16_t)(sign | (uint32_t)lrintf(small * 16777216.0f));
    }
    rest += 0xfff + (rest >> 13 & 1);
    return (uint16_t)(sign | ((rest - 0x38000000) >> 13));
}

/* The value of each of the 256 pixel values of channel `c`, as the elements the input takes. */
static void value_table(const sdx_vision_input *input, int c, float table[256])
{
    for (int p = 0; p < 256; p++) {
        double v = input->invert ? 255 - p : p;
        table[p] = (float)((v * input->scale - input->mean[c]) / input->std[c]);
    }
}

static void store(sdx_dtype dtype, void *data, size_t at, float value)
{
    if (dtype == SDX_F32)
        ((float *)data)[at] = value;
    else if (dtype == SDX_F16)
        ((uint16_t *)data)[at] = half_of(value);
    else
        ((uint8_t *)data)[at] = (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : lrintf(value));
}

static void fill(const sdx_vision_input *input, const sdx_image *image, void *data)
{
    size_t channels = (size_t)input->channels;
    size_t count = (size_t)input->width * (size_t)input->height;
    for (size_t c = 0; c < channels; c++) {
        float table[256];
        value_table(input, (int)c, table);
        size_t from = input->bgr ? channels - 1 - c : c;
        size_t step = input->channels_last ? channels : 1;
        size_t begin = input->channels_last ? c : c * count;
        for (size_t i = 0; i < count; i++)
            store(input->dtype, data, begin + i * step, table[image->pixels[i * channels + from]]);
    }
}

sdx_status sdx_vision_input_make(sdx_context *cx, const sdx_vision_input *input,
                                 const sdx_image *image, sdx_tensor **out, sdx_letterbox *place,
                                 sdx_vision_fault *fault)
{
    *out = NULL;
    if (image->channels != input->channels)
        return sdx_vision_fail(fault, SDX_INVALID_ARGUMENT,
                               "the picture has %d channels, the input %d", image->channels,
                               input->channels);
    sdx_image fitted = {0};
    sdx_letterbox at = {0};
    sdx_status status = SDX_OK;
    switch (input->fit) {
    case SDX_FIT_CROP: status = fit_crop(input, image, &fitted, fault); break;
    case SDX_FIT_LETTERBOX:
    case SDX_FIT_LETTERBOX_CORNER: status = fit_letterbox(input, image, &fitted, &at, fault); break;
    default:
        status = sdx_image_resize(image, input->width, input->height, SDX_RESIZE_ANTIALIAS, &fitted,
                                  fault);
    }
    if (status) return status;
    if (place != NULL) *place = at;
    int64_t planar[4] = {1, input->channels, input->height, input->width};
    int64_t packed[4] = {1, input->height, input->width, input->channels};
    status = sdx_tensor_create(cx, input->dtype, 4, input->channels_last ? packed : planar, out);
    if (status)
        status = sdx_vision_fail(fault, status, "%.300s", sdx_error(cx));
    else
        fill(input, &fitted, sdx_tensor_data(*out));
    sdx_image_deinit(&fitted);
    return status;
}
