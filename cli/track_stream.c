/* SPDX-License-Identifier: Apache-2.0
 * A video through the trackers: see track_stream.h. */
#include "track_stream.h"
#include "cli.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { READ_AHEAD = 4, WRITE_AHEAD = 4 };

struct sdx_cli_track_frame {
    uint8_t *bgr;
    int64_t index;  /* in the video */
    int64_t pushed; /* in what the tracker sees */
    bool has_track;
    sdx_track track;
};

static volatile sig_atomic_t stopped; /* by a signal */
static atomic_bool over;              /* something failed */

static void on_signal(int number)
{
    (void)number;
    stopped = 1;
}

void sdx_cli_track_catch_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESETHAND};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

bool sdx_cli_track_stopped(void *user)
{
    (void)user;
    return stopped != 0 || atomic_load(&over);
}

/* Keeps the first fault and lets every thread come to its end. */
static void fail(struct sdx_cli_track_stream *s, const char *text)
{
    pthread_mutex_lock(&s->lock);
    if (s->fault[0] == '\0') snprintf(s->fault, sizeof s->fault, "%s", text);
    pthread_mutex_unlock(&s->lock);
    atomic_store(&over, true);
    sdx_cli_queue_close(&s->pool);
    sdx_cli_queue_close(&s->read);
    sdx_cli_queue_close(&s->write);
}

/* ---- reading ---- */

static void wait_until(double begin_ms, double due_ms)
{
    double wait = begin_ms + due_ms - sdx_cli_now_ms();
    if (wait <= 0) return;
    struct timespec time = {(time_t)(wait / 1000), (long)(wait * 1e6) % 1000000000};
    nanosleep(&time, NULL);
}

static void *read_frames(void *argument)
{
    struct sdx_cli_track_stream *s = argument;
    const sdx_video_facts *facts = sdx_video_get_facts(s->video);
    struct sdx_cli_track_frame *frame = NULL;
    double begin = sdx_cli_now_ms();
    sdx_vision_fault fault = {""};
    for (int64_t i = 0; s->limit == 0 || i < s->limit; i++) {
        if (sdx_cli_track_stopped(NULL)) break;
        if (frame == NULL) frame = sdx_cli_queue_pop(&s->pool);
        if (frame == NULL) break;
        bool found = false;
        sdx_status status = sdx_video_read(s->video, frame->bgr, &found, &fault);
        if (status) {
            pthread_mutex_lock(&s->lock);
            snprintf(s->fault, sizeof s->fault, "%s", fault.text);
            pthread_mutex_unlock(&s->lock);
        }
        if (status || !found) break;
        frame->index = i;
        /* A file stands in for a camera: a frame comes at its time. */
        if (s->drop && !facts->live) wait_until(begin, 1000.0 * (double)i / facts->fps);
        bool taken =
            s->drop ? sdx_cli_queue_offer(&s->read, frame) : sdx_cli_queue_push(&s->read, frame);
        if (taken)
            frame = NULL;
        else
            s->dropped++;
    }
    sdx_cli_queue_close(&s->read);
    return NULL;
}

/* ---- writing ---- */

static void *write_frames(void *argument)
{
    struct sdx_cli_track_stream *s = argument;
    const sdx_video_facts *facts = sdx_video_get_facts(s->video);
    sdx_track trail[SDX_CLI_TRAIL_MAX];
    int count = 0;
    sdx_vision_fault fault = {""};
    struct sdx_cli_track_frame *frame = NULL;
    while ((frame = sdx_cli_queue_pop(&s->write)) != NULL) {
        if (count == s->trail && count > 0)
            memmove(trail, trail + 1, (size_t)--count * sizeof *trail);
        if (s->trail > 0) trail[count++] = frame->has_track ? frame->track : (sdx_track){0};
        sdx_draw_trail(frame->bgr, facts->width, facts->height, 0, trail, count);
        if (sdx_film_write(s->film, frame->bgr, frame->index, &fault)) {
            fail(s, fault.text);
            break;
        }
        (void)sdx_cli_queue_push(&s->pool, frame);
    }
    return NULL;
}

/* ---- between them ---- */

/* The first frame that waits has what it waited for. */
static void release(struct sdx_cli_track_stream *s)
{
    struct sdx_cli_track_frame *frame = s->waiting[0];
    memmove(s->waiting, s->waiting + 1, (size_t)--s->count_waiting * sizeof(void *));
    (void)sdx_cli_queue_push(s->film != NULL ? &s->write : &s->pool, frame);
}

/* A track that is final; those of earlier frames will not come. */
static void deliver(struct sdx_cli_track_stream *s, const sdx_track *track)
{
    while (s->count_waiting > 0 && s->waiting[0]->pushed < track->frame)
        release(s);
    if (s->count_waiting == 0 || s->waiting[0]->pushed != track->frame) return;
    struct sdx_cli_track_frame *frame = s->waiting[0];
    frame->has_track = true;
    frame->track = *track;
    s->tracks++;
    s->visible += track->visibility;
    if (s->csv != NULL)
        fprintf(s->csv, "%lld,%d,%d,%d\n", (long long)frame->index, track->x, track->y,
                track->visibility);
    release(s);
}

static bool fill(struct sdx_cli_track_stream *s, const sdx_track *track, sdx_vision_fault *fault)
{
    sdx_track filled;
    bool found = false;
    if (s->inpaint == NULL) {
        deliver(s, track);
        return true;
    }
    if (sdx_inpaint_push(s->inpaint, track, &filled, &found, fault)) return false;
    if (found) deliver(s, &filled);
    return true;
}

/* The window of the second module keeps the frame that it has just given. */
static void flush_inpaint(struct sdx_cli_track_stream *s)
{
    sdx_track track;
    while (s->inpaint != NULL && sdx_inpaint_flush(s->inpaint, &track))
        deliver(s, &track);
}

static bool track_frame(struct sdx_cli_track_stream *s, struct sdx_cli_track_frame *frame,
                        sdx_vision_fault *fault)
{
    const sdx_video_facts *facts = sdx_video_get_facts(s->video);
    sdx_track track;
    bool found = false;
    frame->pushed = s->frames++;
    frame->has_track = false;
    s->waiting[s->count_waiting++] = frame;
    if (sdx_tracknet_push(s->tracknet, frame->bgr, facts->width, facts->height, 0, NULL, &track,
                          &found, fault))
        return false;
    if (frame->pushed < s->warmup - 1) release(s);
    return !found || fill(s, &track, fault);
}

static void track_all(struct sdx_cli_track_stream *s)
{
    sdx_vision_fault fault = {""};
    struct sdx_cli_track_frame *frame = NULL;
    sdx_track track;
    bool ok = true;
    while (ok && (frame = sdx_cli_queue_pop(&s->read)) != NULL) {
        ok = track_frame(s, frame, &fault);
        if (s->each != NULL) s->each(s->frames, s->user);
    }
    while (ok && sdx_tracknet_flush(s->tracknet, &track))
        ok = fill(s, &track, &fault);
    if (!ok) fail(s, fault.text);
    flush_inpaint(s);
    while (s->count_waiting > 0)
        release(s);
}

/* ---- all ---- */

/* As many frames as may wait for their tracks, lie in queues, or are in a thread's hands. */
static void make_frames(struct sdx_cli_track_stream *s)
{
    const sdx_video_facts *facts = sdx_video_get_facts(s->video);
    int windows = sdx_tracknet_seq_len(s->tracknet) +
                  (s->inpaint != NULL ? sdx_inpaint_seq_len(s->inpaint) : 0);
    s->count_memory = windows + READ_AHEAD + WRITE_AHEAD + 3;
    s->memory = calloc((size_t)s->count_memory, sizeof *s->memory);
    s->waiting = calloc((size_t)s->count_memory, sizeof *s->waiting);
    if (s->memory == NULL || s->waiting == NULL) sdx_cli_no_memory();
    sdx_cli_queue_init(&s->pool, s->count_memory);
    sdx_cli_queue_init(&s->read, READ_AHEAD);
    sdx_cli_queue_init(&s->write, WRITE_AHEAD);
    for (int i = 0; i < s->count_memory; i++) {
        s->memory[i].bgr = malloc((size_t)facts->width * (size_t)facts->height * 3);
        if (s->memory[i].bgr == NULL) sdx_cli_no_memory();
        (void)sdx_cli_queue_push(&s->pool, &s->memory[i]);
    }
}

bool sdx_cli_track_stream_run(struct sdx_cli_track_stream *s)
{
    pthread_t reader, writer;
    pthread_mutex_init(&s->lock, NULL);
    make_frames(s);
    bool reads = pthread_create(&reader, NULL, read_frames, s) == 0;
    bool writes = reads && s->film != NULL && pthread_create(&writer, NULL, write_frames, s) == 0;
    if (!reads || (s->film != NULL && !writes)) fail(s, "cannot start a thread");
    if (reads) {
        track_all(s);
        sdx_cli_queue_close(&s->pool);
        pthread_join(reader, NULL);
    }
    sdx_cli_queue_close(&s->write);
    if (writes) pthread_join(writer, NULL);
    for (int i = 0; i < s->count_memory; i++)
        free(s->memory[i].bgr);
    free(s->memory);
    free(s->waiting);
    sdx_cli_queue_deinit(&s->pool);
    sdx_cli_queue_deinit(&s->read);
    sdx_cli_queue_deinit(&s->write);
    pthread_mutex_destroy(&s->lock);
    return s->fault[0] == '\0';
}
