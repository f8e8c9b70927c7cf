/* SPDX-License-Identifier: Apache-2.0
 * A video through the trackers: one thread reads frames, the caller's runs the models, a third one
 * draws and writes the film.
 *
 *     pool -> reader -> [read] -> trackers, frames that wait for their track -> [write] -> film ->
 * pool
 */
#ifndef SDX_CLI_TRACK_STREAM_H
#define SDX_CLI_TRACK_STREAM_H

#include "queue.h"

#include <sardonyx/vision.h>

#include <stdio.h>

enum { SDX_CLI_TRAIL_MAX = 256 };

struct sdx_cli_track_frame;

struct sdx_cli_track_stream {
    /* Set by the caller; the stream closes none of them. */
    sdx_video *video;
    sdx_tracknet *tracknet;
    sdx_inpaint *inpaint; /* NULL: none */
    sdx_film *film;       /* NULL: none */
    FILE *csv;            /* NULL: none */
    int warmup;           /* frames at the start that only make the background */
    int trail;            /* tracks that are drawn */
    long limit;           /* frames to read; 0: all */
    bool drop;            /* a frame that finds the models busy is left out */
    void (*each)(int64_t frames, void *user);
    void *user;
    /* What came out. */
    int64_t frames, dropped, tracks, visible;
    char fault[sizeof(sdx_vision_fault)]; /* "": none */
    /* The stream's own. */
    struct sdx_cli_queue pool, read, write;
    struct sdx_cli_track_frame *memory, **waiting;
    int count_memory, count_waiting;
    pthread_mutex_t lock;
};

/* Runs the video to its end, or until sdx_cli_track_stopped() is true; false when something failed,
 * and `fault` says what. Tracks that are known by then are written in any case. */
bool sdx_cli_track_stream_run(struct sdx_cli_track_stream *stream);

/* From now on SIGINT and SIGTERM end the stream instead of the program; a second one ends that. */
void sdx_cli_track_catch_signals(void);
bool sdx_cli_track_stopped(void *user);

#endif
