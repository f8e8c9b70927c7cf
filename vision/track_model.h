/* SPDX-License-Identifier: Apache-2.0
 * What the two modules that follow a ball share: a model, what runs it, and its metadata. */
#ifndef SDX_VISION_TRACK_MODEL_H
#define SDX_VISION_TRACK_MODEL_H

#include <sardonyx/vision.h>

struct sdx_track_model {
    sdx_context *cx;
    sdx_model *model;
    sdx_session *session;
};

/* Opens the file for `device` ("cpu"; "cuda" or NULL: CUDA before the CPU). */
SDX_MUST_CHECK sdx_status sdx_track_model_open(struct sdx_track_model *m, sdx_context *cx,
                                               const char *path, const char *device,
                                               const sdx_session_options *session,
                                               sdx_vision_fault *fault);
void sdx_track_model_deinit(struct sdx_track_model *m);
/* Checks *seq_len against the metadata; one of 0 is taken from there, or else is `usual`. */
SDX_MUST_CHECK sdx_status sdx_track_model_seq_len(const struct sdx_track_model *m, const char *path,
                                                  int64_t usual, int *seq_len,
                                                  sdx_vision_fault *fault);
/* Fails unless it is 1 to 32767. */
SDX_MUST_CHECK sdx_status sdx_track_model_check_length(int seq_len, sdx_vision_fault *fault);
/* Runs with inputs by position; *output is written into. Fails with SDX_RUN_FAILED, or
 * SDX_CANCELLED. */
SDX_MUST_CHECK sdx_status sdx_track_model_run(struct sdx_track_model *m, int count_inputs,
                                              sdx_tensor *const *inputs, sdx_tensor *output,
                                              sdx_vision_fault *fault);
/* What runs the model. */
const char *sdx_track_model_provider(const struct sdx_track_model *m);
/* Whether input or output `info` is a tensor of float of the shape `dims`; what is open fits. */
bool sdx_track_model_fits(const sdx_value_info *info, int rank, const int64_t *dims);

/* Seconds of a clock that only goes forward. */
double sdx_track_seconds(void);
/* A coordinate that left its float: cut to whole pixels, as Python's int() does. */
int sdx_track_pixel(double value);

#endif
