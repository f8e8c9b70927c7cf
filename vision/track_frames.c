/* SPDX-License-Identifier: Apache-2.0
 * Frames of a stream as TrackNet's input planes. All is done on bytes until the last step, as the
 * published modules do it, so that the planes are equal to theirs in every bit. */
#include "track_frames.h"
#include "fault.h"
#include "track_model.h"

#include <stdlib.h>
#include <string.h>

const struct sdx_track_mode_facts sdx_track_modes[SDX_TRACK_MODE_COUNT] = {
#define MODE(id, name, planes, before) {name, planes, before},
    SDX_TRACK_MODES(MODE)
#undef MODE
};

enum { WIDTH = SDX_TRACKNET_WIDTH, HEIGHT = SDX_TRACKNET_HEIGHT, PLANE = SDX_TRACK_PLANE };

static sdx_status no_memory(sdx_vision_fault *fault)
{
    return sdx_vision_fail(fault, SDX_OUT_OF_MEMORY, "no memory for frames");
}

sdx_status sdx_track_frames_init(struct sdx_track_frames *f, enum sdx_track_mode mode, int warmup,
                                 sdx_vision_fault *fault)
{
    *f = (struct sdx_track_frames){.mode = mode, .warmup = warmup};
    for (int i = 0; i < 256; i++)
        f->share[i] = (float)i / 255.0f;
    f->small = malloc((size_t)PLANE * 3);
    return f->small != NULL ? SDX_OK : no_memory(fault);
}

void sdx_track_frames_deinit(struct sdx_track_frames *f)
{
    sdx_track_frames_forget(f);
    sdx_area_deinit(&f->colour);
    sdx_area_deinit(&f->grey);
    free(f->small);
    free(f->difference);
    free(f->median);
    free(f->median_planes);
    free(f->kept);
    *f = (struct sdx_track_frames){0};
}

void sdx_track_frames_forget(struct sdx_track_frames *f)
{
    while (f->count_kept > 0)
        free(f->kept[--f->count_kept]);
}

/* ---- planes ---- */

/* Pixels B, G, R as three planes R, G, B. */
static void planes_of_pixels(const struct sdx_track_frames *f, const uint8_t *restrict bgr,
                             float *restrict planes)
{
    for (size_t i = 0; i < PLANE; i++) {
        planes[i] = f->share[bgr[3 * i + 2]];
        planes[PLANE + i] = f->share[bgr[3 * i + 1]];
        planes[2 * PLANE + i] = f->share[bgr[3 * i]];
    }
}

static sdx_status area_for(struct sdx_area *area, const struct sdx_track_frame *frame, int channels,
                           sdx_vision_fault *fault)
{
    if (sdx_area_is_for(area, frame->width, frame->height, WIDTH, HEIGHT, channels)) return SDX_OK;
    sdx_area_deinit(area);
    return sdx_area_init(area, frame->width, frame->height, WIDTH, HEIGHT, channels, fault);
}

static sdx_status make_colour(struct sdx_track_frames *f, const struct sdx_track_frame *frame,
                              float *planes, sdx_vision_fault *fault)
{
    sdx_status status = area_for(&f->colour, frame, 3, fault);
    if (status) return status;
    sdx_area_apply(&f->colour, frame->bgr, frame->stride, f->small);
    planes_of_pixels(f, f->small, planes);
    return SDX_OK;
}

/* out[x] = the sum of |a - b| over the three values of a pixel, at most 255. `each`: 3 * width. */
static void difference_row(const uint8_t *restrict a, const uint8_t *restrict b, size_t width,
                           uint8_t *restrict each, uint8_t *restrict out)
{
    for (size_t i = 0; i < 3 * width; i++)
        each[i] = (uint8_t)(a[i] > b[i] ? a[i] - b[i] : b[i] - a[i]);
    for (size_t x = 0; x < width; x++) {
        int sum = each[3 * x] + each[3 * x + 1] + each[3 * x + 2];
        out[x] = (uint8_t)(sum > 255 ? 255 : sum);
    }
}

static sdx_status make_difference(struct sdx_track_frames *f, const struct sdx_track_frame *frame,
                                  float *plane, sdx_vision_fault *fault)
{
    size_t width = (size_t)frame->width, height = (size_t)frame->height;
    if (frame->width != f->median_width || frame->height != f->median_height)
        return sdx_vision_fail(fault, SDX_INVALID_ARGUMENT,
                               "the frame is %d x %d, the median %d x %d", frame->width,
                               frame->height, f->median_width, f->median_height);
    if (f->difference == NULL) f->difference = malloc(width * height + 3 * width);
    if (f->difference == NULL) return no_memory(fault);
    sdx_status status = area_for(&f->grey, frame, 1, fault);
    if (status) return status;
    for (size_t y = 0; y < height; y++)
        difference_row(frame->bgr + y * frame->stride, f->median + y * 3 * width, width,
                       f->difference + width * height, f->difference + y * width);
    sdx_area_apply(&f->grey, f->difference, width, f->small);
    for (size_t i = 0; i < PLANE; i++)
        plane[i] = f->share[f->small[i]];
    return SDX_OK;
}

sdx_status sdx_track_frames_make(struct sdx_track_frames *f, const struct sdx_track_frame *frame,
                                 float *planes, sdx_vision_fault *fault)
{
    sdx_status status = SDX_OK;
    bool differs = f->mode == SDX_TRACK_SUBTRACT || f->mode == SDX_TRACK_SUBTRACT_CONCAT;
    if (differs)
        status = make_difference(
            f, frame, planes + (f->mode == SDX_TRACK_SUBTRACT ? 0 : 3 * (size_t)PLANE), fault);
    if (!status && f->mode != SDX_TRACK_SUBTRACT) status = make_colour(f, frame, planes, fault);
    return status;
}

/* ---- the background ---- */

bool sdx_track_frames_ready(const struct sdx_track_frames *f)
{
    return f->mode == SDX_TRACK_RGB || f->median != NULL || f->median_planes != NULL;
}

static sdx_status set_planes(struct sdx_track_frames *f, const sdx_tracknet_options *options,
                             sdx_vision_fault *fault)
{
    if (options->median_dtype != SDX_U8 && options->median_dtype != SDX_F32)
        return sdx_vision_fail(fault, SDX_INVALID_ARGUMENT, "the median is of %s, expected %s",
                               sdx_dtype_name(options->median_dtype), "uint8 or float");
    f->median_planes = malloc(3 * (size_t)PLANE * sizeof(float));
    if (f->median_planes == NULL) return no_memory(fault);
    const uint8_t *bytes = options->median;
    const float *floats = options->median;
    for (size_t i = 0; i < 3 * (size_t)PLANE; i++)
        f->median_planes[i] =
            options->median_dtype == SDX_U8 ? f->share[bytes[i]] : floats[i] / 255.0f;
    return SDX_OK;
}

sdx_status sdx_track_frames_set_median(struct sdx_track_frames *f,
                                       const sdx_tracknet_options *options, sdx_vision_fault *fault)
{
    if (f->mode == SDX_TRACK_RGB) return SDX_OK;
    if (f->mode == SDX_TRACK_CONCAT) return set_planes(f, options, fault);
    if (options->median_dtype != SDX_U8)
        return sdx_vision_fail(fault, SDX_INVALID_ARGUMENT, "the median is of %s, expected uint8",
                               sdx_dtype_name(options->median_dtype));
    if (options->median_width < 1 || options->median_height < 1)
        return sdx_vision_fail(fault, SDX_INVALID_ARGUMENT, "the median has no pixels");
    size_t count = (size_t)options->median_width * (size_t)options->median_height;
    f->median = malloc(count * 3);
    if (f->median == NULL) return no_memory(fault);
    const uint8_t *rgb = options->median;
    for (size_t i = 0; i < 3 * count; i += 3)
        for (size_t c = 0; c < 3; c++)
            f->median[i + c] = rgb[i + 2 - c];
    f->median_width = options->median_width;
    f->median_height = options->median_height;
    return SDX_OK;
}

enum { LANES = 64 };

/* out[i] = the value of rank `rank` (0: the least) among kept[0..count)[at + i]: bit by bit, the
 * greatest v that at most `rank` values are below. */
static void select_rank(uint8_t *const *kept, int count, size_t at, int rank, uint8_t out[LANES])
{
    memset(out, 0, LANES);
    for (int bit = 128; bit > 0; bit >>= 1) {
        uint8_t limit[LANES];
        uint16_t below[LANES] = {0};
        for (size_t i = 0; i < LANES; i++)
            limit[i] = (uint8_t)(out[i] | bit);
        for (int k = 0; k < count; k++) {
            const uint8_t *from = kept[k] + at;
            for (size_t i = 0; i < LANES; i++)
                below[i] = (uint16_t)(below[i] + (from[i] < limit[i]));
        }
        for (size_t i = 0; i < LANES; i++)
            if (below[i] <= rank) out[i] = limit[i];
    }
}

/* The median of each byte; the mean of the middle two, cut, when their number is even. Frames have
 * room for whole blocks of LANES. */
static void median_of(uint8_t *const *kept, int count, size_t size, uint8_t *out)
{
    for (size_t at = 0; at < size; at += LANES) {
        uint8_t low[LANES], high[LANES];
        select_rank(kept, count, at, (count - 1) / 2, low);
        if (count % 2 == 0)
            select_rank(kept, count, at, count / 2, high);
        else
            memcpy(high, low, LANES);
        for (size_t i = 0; i < LANES && at + i < size; i++)
            out[at + i] = (uint8_t)((low[i] + high[i]) / 2);
    }
}

static sdx_status keep(struct sdx_track_frames *f, const struct sdx_track_frame *frame,
                       sdx_vision_fault *fault)
{
    size_t line = 3 * (size_t)frame->width, size = line * (size_t)frame->height;
    if (f->count_kept > 0 && (frame->width != f->kept_width || frame->height != f->kept_height))
        return sdx_vision_fail(fault, SDX_INVALID_ARGUMENT,
                               "the frame is %d x %d, those before it %d x %d", frame->width,
                               frame->height, f->kept_width, f->kept_height);
    if (f->count_kept == f->room_kept) {
        int room = f->room_kept == 0 ? 16 : 2 * f->room_kept;
        uint8_t **kept = realloc(f->kept, (size_t)room * sizeof *kept);
        if (kept == NULL) return no_memory(fault);
        f->kept = kept;
        f->room_kept = room;
    }
    size_t padded = (size + LANES - 1) / LANES * LANES;
    uint8_t *copy = malloc(padded);
    if (copy == NULL) return no_memory(fault);
    for (int y = 0; y < frame->height; y++)
        memcpy(copy + (size_t)y * line, frame->bgr + (size_t)y * frame->stride, line);
    memset(copy + size, 0, padded - size);
    f->kept[f->count_kept++] = copy;
    f->kept_width = frame->width;
    f->kept_height = frame->height;
    return SDX_OK;
}

/* The background of all frames kept, in the form that the mode wants. */
static sdx_status make_median(struct sdx_track_frames *f, uint8_t *median, sdx_vision_fault *fault)
{
    if (f->mode != SDX_TRACK_CONCAT) {
        f->median = median;
        f->median_width = f->kept_width;
        f->median_height = f->kept_height;
        return SDX_OK;
    }
    struct sdx_track_frame frame = {median, f->kept_width, f->kept_height,
                                    3 * (size_t)f->kept_width};
    float *planes = malloc(3 * (size_t)PLANE * sizeof(float));
    sdx_status status = planes != NULL ? make_colour(f, &frame, planes, fault) : no_memory(fault);
    free(median);
    if (status)
        free(planes);
    else
        f->median_planes = planes;
    return status;
}

sdx_status sdx_track_frames_warm(struct sdx_track_frames *f, const struct sdx_track_frame *frame,
                                 double *seconds, sdx_vision_fault *fault)
{
    sdx_status status = keep(f, frame, fault);
    if (status || f->count_kept < f->warmup) return status;
    size_t size = 3 * (size_t)frame->width * (size_t)frame->height;
    uint8_t *median = malloc(size);
    if (median == NULL) return no_memory(fault);
    double begin = sdx_track_seconds();
    median_of(f->kept, f->count_kept, size, median);
    *seconds += sdx_track_seconds() - begin;
    status = make_median(f, median, fault);
    sdx_track_frames_forget(f);
    return status;
}
