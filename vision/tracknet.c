/* SPDX-License-Identifier: Apache-2.0
 * TrackNet on a stream of frames. Frames are made into planes once, in a ring that always holds a
 * window in one piece; heat maps are added up until a frame has been seen by every window.
 *
 *     planes:  [lead] [slot 0] [slot 1] ... [slot 2 n - 1]      n: frames of a window
 *                         ^--- window of n slots ---^           slides; at the end it goes back
 *
 * The background of "concat" stands before the window: in the slot that has just left it. */
#include "fault.h"
#include "meta.h"
#include "picture_limits.h"
#include "track_frames.h"
#include "track_model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PLANE = SDX_TRACK_PLANE, WARMUP_MAX = 65535 };

/* What windows have said of one frame. */
struct heat {
    bool used;
    int64_t frame;
    double weight;
    float *sum; /* [PLANE] */
};

struct sdx_tracknet {
    struct sdx_track_model model;
    struct sdx_track_frames frames;
    int seq_len;
    enum sdx_track_mode mode;
    float *weights; /* of the places of a window */
    /* The ring. */
    size_t slot;  /* floats of a frame */
    float *ring;  /* lead and slots */
    float *first; /* slot 0 */
    int begin, count;
    sdx_tensor **inputs; /* the window that begins at slot i, seq_len + 1 of them */
    sdx_tensor *output;
    /* Ids of the last frames pushed. */
    int64_t *ids;
    int count_ids;
    int64_t pushed; /* since the start or reset */
    struct heat *heats;
    int count_heats;
    float *heat; /* of the last track */
    bool has_heat;
    int width, height; /* of the first frame; 0: none */
    sdx_track_stats stats;
};

void sdx_tracknet_options_init(sdx_tracknet_options *options)
{
    *options = (sdx_tracknet_options){
        .size = sizeof *options, .eval_mode = "weight", .median_dtype = SDX_U8};
}

void sdx_tracknet_destroy(sdx_tracknet *t)
{
    if (t == NULL) return;
    for (int i = 0; t->inputs != NULL && i <= t->seq_len; i++)
        sdx_tensor_destroy(t->inputs[i]);
    for (int i = 0; i < t->count_heats; i++)
        free(t->heats[i].sum);
    sdx_tensor_destroy(t->output);
    sdx_track_model_deinit(&t->model);
    sdx_track_frames_deinit(&t->frames);
    free(t->weights);
    free(t->ring);
    free(t->inputs);
    free(t->ids);
    free(t->heats);
    free(t->heat);
    free(t);
}

/* ---- opening ---- */

static int channels_of(enum sdx_track_mode mode, int seq_len)
{
    return sdx_track_modes[mode].before + seq_len * sdx_track_modes[mode].planes;
}

/* The mode that is named, else the one of the metadata, else the one whose input has so many
 * channels: of two, the later in the table. */
static sdx_status find_mode(sdx_tracknet *t, const char *path, const char *wanted,
                            sdx_vision_fault *fault)
{
    const char *told = sdx_vision_meta(t->model.model, "bg_mode");
    if (wanted != NULL && *wanted != '\0' && told != NULL && strcmp(told, wanted) != 0)
        return sdx_vision_fail(fault, SDX_INVALID_ARGUMENT,
                               "Model metadata mismatch: expected bg_mode='%s', got '%.40s'. "
                               "Model=%s",
                               wanted, told, path);
    if (wanted == NULL) wanted = told;
    const sdx_value_info *input = sdx_model_input(t->model.model, 0);
    for (int i = SDX_TRACK_MODE_COUNT - 1; i >= 0; i--) {
        t->mode = (enum sdx_track_mode)i;
        if (wanted != NULL ? strcmp(wanted, sdx_track_modes[i].name) == 0
                           : input != NULL && input->rank == 4 &&
                                 input->dims[1] == channels_of(t->mode, t->seq_len))
            return SDX_OK;
    }
    if (wanted != NULL)
        return sdx_vision_fail(fault, SDX_INVALID_ARGUMENT, "Invalid bg_mode: '%.60s'", wanted);
    t->mode = SDX_TRACK_RGB;
    return SDX_OK;
}

static sdx_status check_shapes(const sdx_tracknet *t, const char *path, sdx_vision_fault *fault)
{
    const sdx_value_info *in = sdx_model_input(t->model.model, 0);
    const sdx_value_info *out = sdx_model_output(t->model.model, 0);
    int channels = channels_of(t->mode, t->seq_len);
    const int64_t in_dims[4] = {1, channels, SDX_TRACKNET_HEIGHT, SDX_TRACKNET_WIDTH};
    const int64_t out_dims[4] = {1, t->seq_len, SDX_TRACKNET_HEIGHT, SDX_TRACKNET_WIDTH};
    if (in != NULL && in->rank == 4 && in->dims[1] >= 0 && in->dims[1] != channels)
        return sdx_vision_fail(fault, SDX_INVALID_ARGUMENT,
                               "model input '%.80s' has %lld channels, bg_mode='%s' with "
                               "seq_len=%d needs %d. Model=%s",
                               in->name, (long long)in->dims[1], sdx_track_modes[t->mode].name,
                               t->seq_len, channels, path);
    if (!sdx_track_model_fits(in, 4, in_dims))
        return sdx_vision_fail(fault, SDX_INVALID_ARGUMENT,
                               "the model's input is %.120s, expected float[1,%d,%d,%d]. Model=%s",
                               in != NULL ? in->type : "missing", channels, SDX_TRACKNET_HEIGHT,
                               SDX_TRACKNET_WIDTH, path);
    if (!sdx_track_model_fits(out, 4, out_dims))
        return sdx_vision_fail(fault, SDX_INVALID_ARGUMENT,
                               "the model's output is %.120s, expected float[1,%d,%d,%d]. Model=%s",
                               out != NULL ? out->type : "missing", t->seq_len, SDX_TRACKNET_HEIGHT,
                               SDX_TRACKNET_WIDTH, path);
    return SDX_OK;
}

/* The weight of each place of a window: even, or a triangle; the sum is 1. */
static sdx_status make_weights(sdx_tracknet *t, const char *eval_mode, sdx_vision_fault *fault)
{
    bool even = strcmp(eval_mode, "average") == 0, alone = strcmp(eval_mode, "nonoverlap") == 0;
    if (!even && !alone && strcmp(eval_mode, "weight") != 0)
        return sdx_vision_fail(fault, SDX_INVALID_ARGUMENT, "Invalid eval_mode: '%.60s'",
                               eval_mode);
    int n = t->seq_len;
    t->weights = malloc((size_t)n * sizeof *t->weights);
    if (t->weights == NULL)
        return sdx_vision_fail(fault, SDX_OUT_OF_MEMORY, "no memory for a window");
    float sum = 0;
    for (int i = 0; i < n; i++)
        sum += t->weights[i] = (float)(even || alone ? 1 : i < n - i ? i + 1 : n - i);
    for (int i = 0; i < n && !alone; i++)
        t->weights[i] /= sum;
    return SDX_OK;
}

static sdx_status make_ring(sdx_tracknet *t, sdx_vision_fault *fault)
{
    size_t n = (size_t)t->seq_len, lead = (size_t)sdx_track_modes[t->mode].before * PLANE;
    const int64_t in_dims[4] = {1, channels_of(t->mode, t->seq_len), SDX_TRACKNET_HEIGHT,
                                SDX_TRACKNET_WIDTH};
    const int64_t out_dims[4] = {1, t->seq_len, SDX_TRACKNET_HEIGHT, SDX_TRACKNET_WIDTH};
    t->slot = (size_t)sdx_track_modes[t->mode].planes * PLANE;
    t->ring = malloc((lead + 2 * n * t->slot) * sizeof *t->ring);
    t->inputs = calloc(n + 1, sizeof *t->inputs);
    t->ids = malloc(n * sizeof *t->ids);
    t->heat = malloc(PLANE * sizeof *t->heat);
    if (t->ring == NULL || t->inputs == NULL || t->ids == NULL || t->heat == NULL)
        return sdx_vision_fail(fault, SDX_OUT_OF_MEMORY, "no memory for a window");
    t->first = t->ring + lead;
    sdx_context *cx = t->model.cx;
    sdx_status status = sdx_tensor_create(cx, SDX_F32, 4, out_dims, &t->output);
    for (size_t i = 0; !status && i <= n; i++)
        status =
            sdx_tensor_view(cx, SDX_F32, 4, in_dims, t->first + i * t->slot - lead, &t->inputs[i]);
    return status ? sdx_vision_fail(fault, status, "%s", sdx_error(cx)) : SDX_OK;
}

static sdx_status open_all(sdx_tracknet *t, sdx_context *cx, const char *path,
                           const sdx_tracknet_options *options, sdx_vision_fault *fault)
{
    sdx_status status =
        sdx_track_model_open(&t->model, cx, path, options->device, options->session, fault);
    if (status) return status;
    const sdx_value_info *out = sdx_model_output(t->model.model, 0);
    int64_t usual = out != NULL && out->rank == 4 ? out->dims[1] : 0;
    t->seq_len = options->seq_len;
    status = sdx_track_model_seq_len(&t->model, path, usual, &t->seq_len, fault);
    if (!status) status = find_mode(t, path, options->bg_mode, fault);
    if (!status) status = sdx_track_model_check_length(t->seq_len, fault);
    if (!status) status = check_shapes(t, path, fault);
    if (!status && options->median_warmup > WARMUP_MAX)
        status = sdx_vision_fail(fault, SDX_INVALID_ARGUMENT, "median_warmup=%d is above %d",
                                 options->median_warmup, WARMUP_MAX);
    if (!status) status = make_weights(t, options->eval_mode, fault);
    if (!status) status = sdx_track_frames_init(&t->frames, t->mode, options->median_warmup, fault);
    if (!status && options->median != NULL)
        status = sdx_track_frames_set_median(&t->frames, options, fault);
    if (!status) status = make_ring(t, fault);
    return status;
}

sdx_status sdx_tracknet_open(sdx_context *cx, const char *model_path,
                             const sdx_tracknet_options *options, sdx_tracknet **out,
                             sdx_vision_fault *fault)
{
    *out = NULL;
    sdx_tracknet *t = calloc(1, sizeof *t);
    if (t == NULL) return sdx_vision_fail(fault, SDX_OUT_OF_MEMORY, "no memory for a tracker");
    sdx_tracknet_options given;
    sdx_tracknet_options_init(&given);
    if (options != NULL)
        memcpy(&given, options, options->size < sizeof given ? options->size : sizeof given);
    sdx_status status = open_all(t, cx, model_path, &given, fault);
    if (status)
        sdx_tracknet_destroy(t);
    else
        *out = t;
    return status;
}

/* ---- heat maps ---- */

static struct heat *heat_find(sdx_tracknet *t, int64_t frame)
{
    for (int i = 0; i < t->count_heats; i++)
        if (t->heats[i].used && t->heats[i].frame == frame) return &t->heats[i];
    return NULL;
}

/* A heat map that is not in use, for `frame`. */
static struct heat *heat_add(sdx_tracknet *t, int64_t frame)
{
    int i = 0;
    while (i < t->count_heats && t->heats[i].used)
        i++;
    if (i == t->count_heats) {
        struct heat *more = realloc(t->heats, ((size_t)i + 1) * sizeof *more);
        if (more == NULL) return NULL;
        t->heats = more;
        float *sum = malloc(PLANE * sizeof *sum);
        if (sum == NULL) return NULL;
        t->heats[t->count_heats++] = (struct heat){.sum = sum};
    }
    t->heats[i].used = true;
    t->heats[i].frame = frame;
    t->heats[i].weight = 0;
    return &t->heats[i];
}

/* Adds what the window's output says of each of its frames. */
static sdx_status heats_add_window(sdx_tracknet *t, sdx_vision_fault *fault)
{
    const float *restrict y = sdx_tensor_const_data(t->output);
    for (int j = 0; j < t->count_ids; j++, y += PLANE) {
        struct heat *heat = heat_find(t, t->ids[j]);
        bool begun = heat != NULL;
        if (!begun) heat = heat_add(t, t->ids[j]);
        if (heat == NULL)
            return sdx_vision_fail(fault, SDX_OUT_OF_MEMORY, "no memory for a heat map");
        float weight = t->weights[t->seq_len - 1 - j], *restrict sum = heat->sum;
        if (begun)
            for (size_t i = 0; i < PLANE; i++)
                sum[i] += y[i] * weight;
        else
            for (size_t i = 0; i < PLANE; i++)
                sum[i] = y[i] * weight;
        heat->weight += weight;
    }
    return SDX_OK;
}

enum { LANES = 16 };

/* heat[i] = sum[i] / total, and the greatest of them; not a number when one of them is not. */
static float divide_and_peak(const float *restrict sum, float total, float *restrict heat)
{
    float peaks[LANES];
    int odd[LANES] = {0};
    for (size_t k = 0; k < LANES; k++)
        peaks[k] = sum[k] / total;
    for (size_t i = 0; i < PLANE; i += LANES)
        for (size_t k = 0; k < LANES; k++) {
            float value = sum[i + k] / total;
            heat[i + k] = value;
            peaks[k] = value > peaks[k] ? value : peaks[k];
            odd[k] |= value != value;
        }
    float peak = peaks[0];
    for (size_t k = 0; k < LANES; k++) {
        if (odd[k]) return NAN;
        if (peaks[k] > peak) peak = peaks[k];
    }
    return peak;
}

/* The track of a heat map, which is no longer in use then. */
static void heat_take(sdx_tracknet *t, struct heat *heat, sdx_track *track)
{
    double total = heat->weight > 1e-6 ? heat->weight : 1e-6;
    float peak = divide_and_peak(heat->sum, (float)total, t->heat);
    heat->used = false;
    t->has_heat = true;
    *track = (sdx_track){.frame = heat->frame};
    if (peak <= 0) return;
    size_t at = 0;
    while (at + 1 < PLANE && (peak == peak ? t->heat[at] != peak : t->heat[at] == t->heat[at]))
        at++;
    double scale_x = (double)t->width / SDX_TRACKNET_WIDTH;
    double scale_y = (double)t->height / SDX_TRACKNET_HEIGHT;
    track->x = sdx_track_pixel((double)(at % SDX_TRACKNET_WIDTH) * scale_x);
    track->y = sdx_track_pixel((double)(at / SDX_TRACKNET_WIDTH) * scale_y);
    track->visibility = track->x != 0 || track->y != 0;
}

/* ---- frames ---- */

static void push_id(sdx_tracknet *t, int64_t id)
{
    if (t->count_ids == t->seq_len) {
        memmove(t->ids, t->ids + 1, (size_t)(t->seq_len - 1) * sizeof *t->ids);
        t->count_ids--;
    }
    t->ids[t->count_ids++] = id;
}

/* Makes the frame's planes in the slot behind the window, which then takes it in. */
static sdx_status push_planes(sdx_tracknet *t, const struct sdx_track_frame *frame,
                              sdx_vision_fault *fault)
{
    int n = t->seq_len;
    if (t->begin + t->count == 2 * n) {
        int kept = t->count == n ? n - 1 : t->count;
        memmove(t->first, t->first + (size_t)(2 * n - kept) * t->slot,
                (size_t)kept * t->slot * sizeof *t->first);
        t->begin = 0;
        t->count = kept;
    }
    float *slot = t->first + (size_t)(t->begin + t->count) * t->slot;
    sdx_status status = sdx_track_frames_make(&t->frames, frame, slot, fault);
    if (status) return status;
    if (t->count < n)
        t->count++;
    else
        t->begin++;
    return SDX_OK;
}

/* *ready: there are planes of the frame; without them the background is not there yet. */
static sdx_status take_frame(sdx_tracknet *t, const struct sdx_track_frame *frame, bool *ready,
                             sdx_vision_fault *fault)
{
    *ready = sdx_track_frames_ready(&t->frames);
    if (!*ready) {
        if (t->frames.warmup <= 0)
            return sdx_vision_fail(fault, SDX_RUN_FAILED,
                                   "bg_mode='%s' needs median. Pass median=... or set "
                                   "median_warmup>0.",
                                   sdx_track_modes[t->mode].name);
        sdx_status status = sdx_track_frames_warm(&t->frames, frame, &t->stats.t_median, fault);
        if (status) return status;
        *ready = sdx_track_frames_ready(&t->frames);
    }
    return *ready ? push_planes(t, frame, fault) : SDX_OK;
}

static sdx_status run_window(sdx_tracknet *t, sdx_vision_fault *fault)
{
    size_t before = (size_t)sdx_track_modes[t->mode].before * PLANE;
    if (before > 0)
        memcpy(t->first + (size_t)t->begin * t->slot - before, t->frames.median_planes,
               before * sizeof *t->first);
    return sdx_track_model_run(&t->model, 1, &t->inputs[t->begin], t->output, fault);
}

sdx_status sdx_tracknet_push(sdx_tracknet *t, const uint8_t *bgr, int width, int height,
                             size_t stride, const int64_t *frame_id, sdx_track *track, bool *found,
                             sdx_vision_fault *fault)
{
    *found = false;
    if (stride == 0) stride = 3 * (size_t)(width > 0 ? width : 0);
    if (width < 1 || height < 1 || width > SDX_IMAGE_SIDE_MAX || height > SDX_IMAGE_SIDE_MAX ||
        stride < 3 * (size_t)width)
        return sdx_vision_fail(fault, SDX_INVALID_ARGUMENT, "a frame of %d x %d cannot be taken",
                               width, height);
    struct sdx_track_frame frame = {bgr, width, height, stride};
    int64_t id = frame_id != NULL ? *frame_id : t->pushed;
    t->stats.push_calls++;
    t->pushed++;
    if (t->width == 0) {
        t->width = width;
        t->height = height;
    }
    push_id(t, id);

    double begin = sdx_track_seconds();
    bool ready = false;
    sdx_status status = take_frame(t, &frame, &ready, fault);
    double made = sdx_track_seconds();
    t->stats.t_preprocess += made - begin;
    if (status || !ready || t->count < t->seq_len) return status;

    status = run_window(t, fault);
    double ran = sdx_track_seconds();
    t->stats.t_forward += ran - made;
    if (!status) status = heats_add_window(t, fault);
    if (status) return status;
    struct heat *heat = heat_find(t, id - (t->seq_len - 1));
    if (heat != NULL) {
        heat_take(t, heat, track);
        *found = true;
        t->stats.outputs++;
    }
    t->stats.t_post += sdx_track_seconds() - ran;
    return SDX_OK;
}

bool sdx_tracknet_flush(sdx_tracknet *t, sdx_track *track)
{
    t->begin = t->count = t->count_ids = 0;
    struct heat *lowest = NULL;
    for (int i = 0; i < t->count_heats; i++) {
        struct heat *heat = &t->heats[i];
        if (heat->used && (lowest == NULL || heat->frame < lowest->frame)) lowest = heat;
    }
    if (lowest == NULL) return false;
    heat_take(t, lowest, track);
    return true;
}

void sdx_tracknet_reset(sdx_tracknet *t)
{
    for (int i = 0; i < t->count_heats; i++)
        t->heats[i].used = false;
    sdx_track_frames_forget(&t->frames);
    t->begin = t->count = t->count_ids = 0;
    t->pushed = 0;
    t->width = t->height = 0;
}

/* ---- what is known ---- */

void sdx_tracknet_cancel(sdx_tracknet *t)
{
    sdx_cancel(t->model.session);
}

void sdx_tracknet_get_stats(const sdx_tracknet *t, sdx_track_stats *stats)
{
    *stats = t->stats;
}

int sdx_tracknet_seq_len(const sdx_tracknet *t)
{
    return t->seq_len;
}

const char *sdx_tracknet_bg_mode(const sdx_tracknet *t)
{
    return sdx_track_modes[t->mode].name;
}

bool sdx_tracknet_frame_size(const sdx_tracknet *t, int *width, int *height)
{
    *width = t->width;
    *height = t->height;
    return t->width > 0;
}

const float *sdx_tracknet_heat(const sdx_tracknet *t)
{
    return t->has_heat ? t->heat : NULL;
}

const char *sdx_tracknet_provider(const sdx_tracknet *t)
{
    return sdx_track_model_provider(&t->model);
}
