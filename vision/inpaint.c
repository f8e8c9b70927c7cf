/* SPDX-License-Identifier: Apache-2.0
 * Filling the gaps of a track as it comes: a window of coordinates goes through a model, and what
 * it says of the oldest frame stands where that one was not seen. Kinds of numbers are those of the
 * published module (double until the model, float from there on): they decide the last pixel. */
#include "fault.h"
#include "track_model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH_MAX = 1 << 16 };

struct seen {
    int64_t frame;
    double x, y; /* 0 to 1 */
    bool gap;
};

struct sdx_inpaint {
    struct sdx_track_model model;
    int seq_len;
    double scale_x, scale_y;
    struct seen *window;
    int count;
    sdx_tensor *inputs[2]; /* coords [N, seq_len, 2] and mask [N, seq_len, 1]; row 0 is used */
    sdx_tensor *output;
    sdx_track_stats stats;
};

void sdx_inpaint_options_init(sdx_inpaint_options *options)
{
    *options = (sdx_inpaint_options){.size = sizeof *options, .scale_x = 1, .scale_y = 1};
}

void sdx_inpaint_destroy(sdx_inpaint *p)
{
    if (p == NULL) return;
    sdx_tensor_destroy(p->inputs[0]);
    sdx_tensor_destroy(p->inputs[1]);
    sdx_tensor_destroy(p->output);
    sdx_track_model_deinit(&p->model);
    free(p->window);
    free(p);
}

static sdx_status make_values(sdx_inpaint *p, const char *path, sdx_vision_fault *fault)
{
    const sdx_model *model = p->model.model;
    const sdx_value_info *coords = sdx_model_input(model, 0), *mask = sdx_model_input(model, 1);
    const sdx_value_info *out = sdx_model_output(model, 0);
    int64_t batch =
        coords != NULL && coords->rank == 3 && coords->dims[0] > 0 ? coords->dims[0] : 1;
    const int64_t coords_dims[3] = {batch, p->seq_len, 2}, mask_dims[3] = {batch, p->seq_len, 1};
    if (batch > BATCH_MAX || !sdx_track_model_fits(coords, 3, coords_dims) ||
        !sdx_track_model_fits(mask, 3, mask_dims) || !sdx_track_model_fits(out, 3, coords_dims))
        return sdx_vision_fail(
            fault, SDX_INVALID_ARGUMENT,
            "the model is (%.60s, %.60s) -> %.60s, expected (float[N,%d,2], "
            "float[N,%d,1]) -> float[N,%d,2]. Model=%s",
            coords != NULL ? coords->type : "missing", mask != NULL ? mask->type : "missing",
            out != NULL ? out->type : "missing", p->seq_len, p->seq_len, p->seq_len, path);
    p->window = malloc((size_t)p->seq_len * sizeof *p->window);
    if (p->window == NULL)
        return sdx_vision_fail(fault, SDX_OUT_OF_MEMORY, "no memory for a window");
    sdx_context *cx = p->model.cx;
    sdx_status status = sdx_tensor_create(cx, SDX_F32, 3, coords_dims, &p->inputs[0]);
    if (!status) status = sdx_tensor_create(cx, SDX_F32, 3, mask_dims, &p->inputs[1]);
    if (!status) status = sdx_tensor_create(cx, SDX_F32, 3, coords_dims, &p->output);
    return status ? sdx_vision_fail(fault, status, "%s", sdx_error(cx)) : SDX_OK;
}

static sdx_status open_all(sdx_inpaint *p, sdx_context *cx, const char *path,
                           const sdx_inpaint_options *options, sdx_vision_fault *fault)
{
    sdx_status status =
        sdx_track_model_open(&p->model, cx, path, options->device, options->session, fault);
    if (status) return status;
    const sdx_value_info *coords = sdx_model_input(p->model.model, 0);
    int64_t usual = coords != NULL && coords->rank == 3 ? coords->dims[1] : 0;
    p->seq_len = options->seq_len;
    sdx_inpaint_set_scale(p, options->scale_x, options->scale_y);
    status = sdx_track_model_seq_len(&p->model, path, usual, &p->seq_len, fault);
    if (!status) status = sdx_track_model_check_length(p->seq_len, fault);
    if (!status) status = make_values(p, path, fault);
    return status;
}

sdx_status sdx_inpaint_open(sdx_context *cx, const char *model_path,
                            const sdx_inpaint_options *options, sdx_inpaint **out,
                            sdx_vision_fault *fault)
{
    *out = NULL;
    sdx_inpaint *p = calloc(1, sizeof *p);
    if (p == NULL) return sdx_vision_fail(fault, SDX_OUT_OF_MEMORY, "no memory for a window");
    sdx_inpaint_options given;
    sdx_inpaint_options_init(&given);
    if (options != NULL)
        memcpy(&given, options, options->size < sizeof given ? options->size : sizeof given);
    sdx_status status = open_all(p, cx, model_path, &given, fault);
    if (status)
        sdx_inpaint_destroy(p);
    else
        *out = p;
    return status;
}

static double cut(double value)
{
    return value < 0 ? 0 : value > 1 ? 1 : value;
}

static void window_take_in(sdx_inpaint *p, const sdx_track *track)
{
    if (p->count == p->seq_len) {
        memmove(p->window, p->window + 1, (size_t)(p->seq_len - 1) * sizeof *p->window);
        p->count--;
    }
    struct seen *seen = &p->window[p->count++];
    *seen = (struct seen){.frame = track->frame, .gap = true};
    if (track->visibility == 1 && track->x > 0 && track->y > 0) {
        seen->gap = false;
        seen->x = cut(track->x / (SDX_TRACKNET_WIDTH * p->scale_x));
        seen->y = cut(track->y / (SDX_TRACKNET_HEIGHT * p->scale_y));
    }
}

static void set_pixels(sdx_track *track, double x, double y)
{
    track->x = sdx_track_pixel(x);
    track->y = sdx_track_pixel(y);
    track->visibility = track->x != 0 || track->y != 0;
}

sdx_status sdx_inpaint_push(sdx_inpaint *p, const sdx_track *track, sdx_track *filled, bool *found,
                            sdx_vision_fault *fault)
{
    *found = false;
    p->stats.push_calls++;
    window_take_in(p, track);
    if (p->count < p->seq_len) return SDX_OK;
    float *coords = sdx_tensor_data(p->inputs[0]), *mask = sdx_tensor_data(p->inputs[1]);
    for (int i = 0; i < p->seq_len; i++) {
        coords[2 * i] = (float)p->window[i].x;
        coords[2 * i + 1] = (float)p->window[i].y;
        mask[i] = p->window[i].gap ? 1.0f : 0.0f;
    }
    double begin = sdx_track_seconds();
    sdx_status status = sdx_track_model_run(&p->model, 2, p->inputs, p->output, fault);
    double ran = sdx_track_seconds();
    p->stats.t_forward += ran - begin;
    if (status) return status;
    const float *out = sdx_tensor_const_data(p->output);
    float x = out[0] * mask[0] + coords[0] * (1.0f - mask[0]);
    float y = out[1] * mask[0] + coords[1] * (1.0f - mask[0]);
    if (!isfinite(x) || !isfinite(y))
        return sdx_vision_fail(fault, SDX_RUN_FAILED,
                               "the model fills frame %lld with (%g, %g), which is no place",
                               (long long)p->window[0].frame, (double)x, (double)y);
    *filled = (sdx_track){.frame = p->window[0].frame};
    set_pixels(filled, (double)(x * SDX_TRACKNET_WIDTH * (float)p->scale_x),
               (double)(y * SDX_TRACKNET_HEIGHT * (float)p->scale_y));
    *found = true;
    p->stats.outputs++;
    p->stats.t_post += sdx_track_seconds() - ran;
    return SDX_OK;
}

bool sdx_inpaint_flush(sdx_inpaint *p, sdx_track *track)
{
    if (p->count == 0) return false;
    struct seen oldest = p->window[0];
    memmove(p->window, p->window + 1, (size_t)--p->count * sizeof *p->window);
    *track = (sdx_track){.frame = oldest.frame};
    if (!oldest.gap)
        set_pixels(track, oldest.x * SDX_TRACKNET_WIDTH * p->scale_x,
                   oldest.y * SDX_TRACKNET_HEIGHT * p->scale_y);
    return true;
}

void sdx_inpaint_reset(sdx_inpaint *p)
{
    p->count = 0;
}

void sdx_inpaint_set_scale(sdx_inpaint *p, double scale_x, double scale_y)
{
    p->scale_x = scale_x;
    p->scale_y = scale_y;
}

void sdx_inpaint_get_stats(const sdx_inpaint *p, sdx_track_stats *stats)
{
    *stats = p->stats;
}

int sdx_inpaint_seq_len(const sdx_inpaint *p)
{
    return p->seq_len;
}

const char *sdx_inpaint_provider(const sdx_inpaint *p)
{
    return sdx_track_model_provider(&p->model);
}
