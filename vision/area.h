/* SPDX-License-Identifier: Apache-2.0
 * Area averaging with its tables made once: for streams of pictures of one size. */
#ifndef SDX_VISION_AREA_H
#define SDX_VISION_AREA_H

#include <sardonyx/vision.h>

struct sdx_tap;

enum sdx_area_way {
    SDX_AREA_COPY,   /* the same size */
    SDX_AREA_BLOCKS, /* means of whole pixels: both ratios are integers */
    SDX_AREA_CELLS,  /* means of cells that cut pixels */
    SDX_AREA_MIX     /* larger on an axis: mixed neighbours */
};

/* Output place i of an axis is the sum of in[first + k] * weights[k] for k < count. */
struct sdx_area_cell {
    int first, count;
    const float *weights;
};

struct sdx_area {
    int in_width, in_height, width, height, channels;
    enum sdx_area_way way;
    int step_x, step_y;                  /* blocks */
    struct sdx_area_cell *across, *down; /* cells */
    struct sdx_tap *taps;                /* mixed: of the columns, then of the rows */
    float *weights;
    void *scratch;
};

/* Tables and scratch memory for pictures of one size; sdx_area_deinit accepts a zeroed one. */
SDX_MUST_CHECK sdx_status sdx_area_init(struct sdx_area *area, int in_width, int in_height,
                                        int width, int height, int channels,
                                        sdx_vision_fault *fault);
void sdx_area_deinit(struct sdx_area *area);
/* Whether `area` was made for these sizes. */
bool sdx_area_is_for(const struct sdx_area *area, int in_width, int in_height, int width,
                     int height, int channels);
/* `in`: rows `stride` bytes apart; `out`: height * width * channels bytes. Allocates nothing. */
void sdx_area_apply(struct sdx_area *area, const uint8_t *in, size_t stride, uint8_t *out);

#endif
