/* SPDX-License-Identifier: Apache-2.0
 * Frames of a stream as TrackNet's input planes: averaged to 512 x 288, as differences from the
 * background where the mode wants them; the background itself. */
#ifndef SDX_VISION_TRACK_FRAMES_H
#define SDX_VISION_TRACK_FRAMES_H

#include "area.h"

enum { SDX_TRACK_PLANE = SDX_TRACKNET_WIDTH * SDX_TRACKNET_HEIGHT };

/* X(id, name, planes a frame, planes before the frames) */
#define SDX_TRACK_MODES(X)                                                                         \
    X(SDX_TRACK_RGB, "", 3, 0)                                                                     \
    X(SDX_TRACK_SUBTRACT, "subtract", 1, 0)                                                        \
    X(SDX_TRACK_SUBTRACT_CONCAT, "subtract_concat", 4, 0)                                          \
    X(SDX_TRACK_CONCAT, "concat", 3, 3)

enum sdx_track_mode {
#define SDX_TRACK_MODE_ENUM(id, name, planes, before) id,
    SDX_TRACK_MODES(SDX_TRACK_MODE_ENUM)
#undef SDX_TRACK_MODE_ENUM
        SDX_TRACK_MODE_COUNT
};

struct sdx_track_mode_facts {
    const char *name;
    int planes, before;
};
extern const struct sdx_track_mode_facts sdx_track_modes[SDX_TRACK_MODE_COUNT];

/* A frame as it was pushed: B, G, R, rows `stride` bytes apart. */
struct sdx_track_frame {
    const uint8_t *bgr;
    int width, height;
    size_t stride;
};

struct sdx_track_frames {
    enum sdx_track_mode mode;
    struct sdx_area colour, grey;
    uint8_t *small;      /* a frame of 512 x 288 */
    uint8_t *difference; /* one byte a pixel of a frame, and a row of three behind */
    float share[256];    /* i / 255 */
    /* The background: of full frames, B G R; for SDX_TRACK_CONCAT as planes of the input. */
    uint8_t *median;
    int median_width, median_height;
    float *median_planes;
    /* Frames that it will be made of. */
    int warmup, count_kept, room_kept;
    uint8_t **kept;
    int kept_width, kept_height;
};

SDX_MUST_CHECK sdx_status sdx_track_frames_init(struct sdx_track_frames *f,
                                                enum sdx_track_mode mode, int warmup,
                                                sdx_vision_fault *fault);
void sdx_track_frames_deinit(struct sdx_track_frames *f);
/* The background given; see sdx_tracknet_options. */
SDX_MUST_CHECK sdx_status sdx_track_frames_set_median(struct sdx_track_frames *f,
                                                      const sdx_tracknet_options *options,
                                                      sdx_vision_fault *fault);
/* Whether frames can be made into planes. */
bool sdx_track_frames_ready(const struct sdx_track_frames *f);
/* One frame of those that the background is made of; with the last of them it is made. */
SDX_MUST_CHECK sdx_status sdx_track_frames_warm(struct sdx_track_frames *f,
                                                const struct sdx_track_frame *frame,
                                                double *seconds, sdx_vision_fault *fault);
void sdx_track_frames_forget(struct sdx_track_frames *f);
/* The planes of one frame: sdx_track_modes[mode].planes of SDX_TRACK_PLANE floats, 0 to 1. */
SDX_MUST_CHECK sdx_status sdx_track_frames_make(struct sdx_track_frames *f,
                                                const struct sdx_track_frame *frame, float *planes,
                                                sdx_vision_fault *fault);

#endif
