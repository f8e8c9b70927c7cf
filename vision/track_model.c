/* SPDX-License-Identifier: Apache-2.0
 * What the two modules that follow a ball share: a model, what runs it, and its metadata. Texts are
 * those of the published Python modules. */
#include "track_model.h"
#include "fault.h"
#include "meta.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

double sdx_track_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

int sdx_track_pixel(double value)
{
    return !(value > INT_MIN) ? INT_MIN : value >= INT_MAX ? INT_MAX : (int)value;
}

static sdx_status say_load(sdx_vision_fault *fault, sdx_status status, sdx_context *cx,
                           const char *path)
{
    static const char none[] = "No ONNX Runtime execution providers available";
    const char *why = sdx_error(cx);
    if (strcmp(why, none) == 0) return sdx_vision_fail(fault, SDX_RUN_FAILED, "%s", none);
    if (strstr(why, path) != NULL) return sdx_vision_fail(fault, status, "%s", why);
    return sdx_vision_fail(fault, status, "%s: %s", path, why);
}

static sdx_status make_session(struct sdx_track_model *m, const char *device,
                               const sdx_session_options *given)
{
    static const char *const wanted[] = {"CUDAExecutionProvider", "CPUExecutionProvider"};
    sdx_session_options options;
    sdx_session_options_init(&options);
    if (given != NULL)
        memcpy(&options, given, given->size < sizeof options ? given->size : sizeof options);
    options.size = sizeof options;
    if (options.count_providers == 0 && (device == NULL || strncmp(device, "cuda", 4) == 0)) {
        options.count_providers = 2;
        options.providers = wanted;
        options.provider_fallback = true;
    }
    return sdx_session_create(m->cx, m->model, &options, &m->session);
}

sdx_status sdx_track_model_open(struct sdx_track_model *m, sdx_context *cx, const char *path,
                                const char *device, const sdx_session_options *session,
                                sdx_vision_fault *fault)
{
    *m = (struct sdx_track_model){.cx = cx};
    if (access(path, F_OK) != 0)
        return sdx_vision_fail(fault, SDX_NOT_FOUND, "ONNX model file not found: %s", path);
    sdx_status status = sdx_model_open(cx, path, NULL, &m->model);
    if (!status) status = make_session(m, device, session);
    if (!status) return SDX_OK;
    status = say_load(fault, status, cx, path);
    sdx_track_model_deinit(m);
    return status;
}

void sdx_track_model_deinit(struct sdx_track_model *m)
{
    sdx_session_destroy(m->session);
    sdx_model_destroy(m->model);
    *m = (struct sdx_track_model){0};
}

sdx_status sdx_track_model_seq_len(const struct sdx_track_model *m, const char *path, int64_t usual,
                                   int *seq_len, sdx_vision_fault *fault)
{
    const char *text = sdx_vision_meta(m->model, "seq_len");
    if (text != NULL) {
        char *end = NULL;
        errno = 0;
        long told = strtol(text, &end, 10);
        end += strspn(end, " ");
        bool number = end != text && *end == '\0' && errno == 0 && told == (int)told;
        if (*seq_len == 0 && number) *seq_len = (int)told;
        if (!number || told != *seq_len)
            return sdx_vision_fail(fault, SDX_INVALID_ARGUMENT,
                                   "Model metadata mismatch: expected seq_len=%d, got %.40s. "
                                   "Model=%s",
                                   *seq_len, text, path);
    }
    if (*seq_len == 0 && usual > 0 && usual <= INT_MAX) *seq_len = (int)usual;
    return SDX_OK;
}

sdx_status sdx_track_model_check_length(int seq_len, sdx_vision_fault *fault)
{
    if (seq_len <= 0)
        return sdx_vision_fail(fault, SDX_INVALID_ARGUMENT, "seq_len must be positive");
    if (seq_len > INT16_MAX)
        return sdx_vision_fail(fault, SDX_INVALID_ARGUMENT, "seq_len=%d is above %d", seq_len,
                               INT16_MAX);
    return SDX_OK;
}

sdx_status sdx_track_model_run(struct sdx_track_model *m, int count_inputs,
                               sdx_tensor *const *inputs, sdx_tensor *output,
                               sdx_vision_fault *fault)
{
    sdx_feed feeds[2] = {{NULL, NULL}, {NULL, NULL}};
    for (int i = 0; i < count_inputs; i++)
        feeds[i] = (sdx_feed){sdx_model_input(m->model, i)->name, inputs[i]};
    const char *name = sdx_model_output(m->model, 0)->name;
    sdx_status status = sdx_run(m->session, count_inputs, feeds, 1, &name, &output);
    if (status == SDX_OK) return SDX_OK;
    return sdx_vision_fail(fault, status == SDX_CANCELLED ? status : SDX_RUN_FAILED, "%s",
                           sdx_session_error(m->session));
}

const char *sdx_track_model_provider(const struct sdx_track_model *m)
{
    return sdx_session_provider(m->session, 0);
}

bool sdx_track_model_fits(const sdx_value_info *info, int rank, const int64_t *dims)
{
    if (info == NULL || info->kind != SDX_KIND_TENSOR || info->dtype != SDX_F32) return false;
    if (info->rank < 0) return true;
    bool fits = info->rank == rank;
    for (int i = 0; fits && i < rank; i++)
        fits = info->dims[i] < 0 || dims[i] < 0 || info->dims[i] == dims[i];
    return fits;
}
