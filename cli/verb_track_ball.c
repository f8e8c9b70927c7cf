/* SPDX-License-Identifier: Apache-2.0
 * sardonyx track-ball: where the ball is in each frame of a video, as a table and drawn. */
#include "args.h"
#include "json_out.h"
#include "progress.h"
#include "track_stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct track_ball {
    struct sdx_cli cli;
    const char *model, *inpaint, *source, *out, *csv;
    const char *bg_mode, *eval_mode, *device, *level;
    long seq_len, warmup, trail, frames;
    bool drop;
    struct sdx_cli_track_stream stream;
    struct sdx_cli_progress *progress;
};

static int open_trackers(const struct sdx_cli_verb *verb, struct track_ball *b)
{
    sdx_session_options session;
    int rc = sdx_cli_session_options(verb, b->level, &session);
    if (rc != SDX_CLI_OK) return rc;
    sdx_vision_fault fault = {""};
    const sdx_video_facts *facts = sdx_video_get_facts(b->stream.video);
    sdx_tracknet_options options;
    sdx_tracknet_options_init(&options);
    options.seq_len = (int)b->seq_len;
    options.bg_mode = b->bg_mode;
    options.eval_mode = b->eval_mode;
    options.device = b->device;
    options.median_warmup = (int)b->warmup;
    options.session = &session;
    if (sdx_tracknet_open(b->cli.cx, b->model, &options, &b->stream.tracknet, &fault))
        return sdx_cli_fail(&b->cli, "%s", fault.text);
    if (*sdx_tracknet_bg_mode(b->stream.tracknet) != '\0') b->stream.warmup = (int)b->warmup;
    if (b->inpaint == NULL) return SDX_CLI_OK;
    sdx_inpaint_options filling;
    sdx_inpaint_options_init(&filling);
    filling.device = b->device;
    filling.scale_x = (double)facts->width / SDX_TRACKNET_WIDTH;
    filling.scale_y = (double)facts->height / SDX_TRACKNET_HEIGHT;
    filling.session = &session;
    if (sdx_inpaint_open(b->cli.cx, b->inpaint, &filling, &b->stream.inpaint, &fault))
        return sdx_cli_fail(&b->cli, "%s", fault.text);
    return SDX_CLI_OK;
}

static int open_outputs(struct track_ball *b)
{
    sdx_vision_fault fault = {""};
    const sdx_video_facts *facts = sdx_video_get_facts(b->stream.video);
    if (b->csv != NULL) {
        b->stream.csv = fopen(b->csv, "w");
        if (b->stream.csv == NULL) return sdx_cli_fail(&b->cli, "%s: %s", b->csv, strerror(errno));
    } else if (b->out == NULL && !b->cli.json) {
        b->stream.csv = stdout;
    }
    if (b->stream.csv != NULL) {
        /* Whoever follows a live track reads it line by line. */
        setvbuf(b->stream.csv, NULL, _IOLBF, BUFSIZ);
        fprintf(b->stream.csv, "Frame,X,Y,Visibility\n");
    }
    if (b->out != NULL &&
        sdx_film_open(b->out, facts->width, facts->height, facts->fps, &b->stream.film, &fault))
        return sdx_cli_fail(&b->cli, "%s", fault.text);
    return SDX_CLI_OK;
}

/* Ends what open_outputs began; the first thing that went wrong is said. */
static int close_outputs(struct track_ball *b, int rc)
{
    sdx_vision_fault fault = {""};
    if (sdx_film_close(b->stream.film, &fault) && rc == SDX_CLI_OK)
        rc = sdx_cli_fail(&b->cli, "%s", fault.text);
    FILE *csv = b->stream.csv;
    bool bad = csv != NULL && ferror(csv) != 0;
    if (csv != NULL && csv != stdout && fclose(csv) != 0) bad = true;
    if (bad && csv != stdout && rc == SDX_CLI_OK)
        rc = sdx_cli_fail(&b->cli, "%s: writing failed", b->csv);
    return rc;
}

static void show_progress(int64_t frames, void *user)
{
    sdx_cli_progress_set(((struct track_ball *)user)->progress, frames);
}

static void print_summary(const struct track_ball *b, double seconds)
{
    const struct sdx_cli_track_stream *s = &b->stream;
    const sdx_video_facts *facts = sdx_video_get_facts(s->video);
    double rate = seconds > 0 ? (double)s->frames / seconds : 0;
    if (!b->cli.json) {
        if (s->csv == stdout) return;
        printf("%lld frames, %.1f a second; ball seen in %lld of %lld", (long long)s->frames, rate,
               (long long)s->visible, (long long)s->tracks);
        if (b->drop) printf("; %lld frames left out", (long long)s->dropped);
        for (int i = 0; i < 2; i++) {
            const char *file = i == 0 ? b->out : b->csv;
            if (file != NULL) printf(" -> %s", file);
        }
        printf("\n");
        return;
    }
    sdx_track_stats stats;
    sdx_tracknet_get_stats(s->tracknet, &stats);
    json_t *o = json_object();
    json_object_set_new(o, "model", sdx_cli_json_text(b->model));
    json_object_set_new(o, "source", sdx_cli_json_text(b->source));
    json_object_set_new(o, "width", json_integer(facts->width));
    json_object_set_new(o, "height", json_integer(facts->height));
    json_object_set_new(o, "fps", sdx_cli_json_number(facts->fps, 6));
    json_object_set_new(o, "seq_len", json_integer(sdx_tracknet_seq_len(s->tracknet)));
    json_object_set_new(o, "bg_mode", sdx_cli_json_text(sdx_tracknet_bg_mode(s->tracknet)));
    json_object_set_new(o, "provider", sdx_cli_json_text(sdx_tracknet_provider(s->tracknet)));
    json_object_set_new(o, "frames", json_integer(s->frames));
    json_object_set_new(o, "dropped", json_integer(s->dropped));
    json_object_set_new(o, "tracks", json_integer(s->tracks));
    json_object_set_new(o, "visible", json_integer(s->visible));
    json_object_set_new(o, "seconds", sdx_cli_json_number(seconds, 6));
    json_object_set_new(o, "frames_per_second", sdx_cli_json_number(rate, 4));
    json_object_set_new(o, "preprocess_seconds", sdx_cli_json_number(stats.t_preprocess, 4));
    json_object_set_new(o, "forward_seconds", sdx_cli_json_number(stats.t_forward, 4));
    json_object_set_new(o, "post_seconds", sdx_cli_json_number(stats.t_post, 4));
    if (b->out != NULL) json_object_set_new(o, "out", sdx_cli_json_text(b->out));
    if (b->csv != NULL) json_object_set_new(o, "csv", sdx_cli_json_text(b->csv));
    sdx_cli_json_print(o);
}

static int follow(struct track_ball *b)
{
    struct sdx_cli_track_stream *s = &b->stream;
    const sdx_video_facts *facts = sdx_video_get_facts(s->video);
    int64_t total = facts->frames;
    if (b->frames > 0 && (total == 0 || total > b->frames)) total = b->frames;
    if (facts->live) total = b->frames;
    s->limit = b->frames;
    s->trail = (int)b->trail;
    s->drop = b->drop;
    s->each = show_progress;
    s->user = b;
    b->progress = sdx_cli_progress_count("track-ball", total, "frames");
    double begin = sdx_cli_now_ms();
    bool ok = sdx_cli_track_stream_run(s);
    double seconds = (sdx_cli_now_ms() - begin) / 1000;
    sdx_cli_progress_end(b->progress);
    int rc = ok ? SDX_CLI_OK : sdx_cli_fail(&b->cli, "%s", s->fault);
    rc = close_outputs(b, rc);
    if (rc == SDX_CLI_OK) print_summary(b, seconds);
    return rc;
}

static int track_ball(const struct sdx_cli_verb *verb, struct track_ball *b)
{
    int rc = sdx_cli_start(&b->cli);
    if (rc != SDX_CLI_OK) return rc;
    sdx_vision_log(b->cli.verbose);
    sdx_cli_track_catch_signals();
    sdx_vision_fault fault = {""};
    sdx_video_options options;
    sdx_video_options_init(&options);
    options.stopped = sdx_cli_track_stopped;
    if (sdx_video_open(b->source, &options, &b->stream.video, &fault))
        rc = sdx_cli_fail(&b->cli, "%s", fault.text);
    if (rc == SDX_CLI_OK) rc = open_trackers(verb, b);
    if (rc == SDX_CLI_OK) {
        rc = open_outputs(b);
        rc = rc == SDX_CLI_OK ? follow(b) : close_outputs(b, rc);
    }
    sdx_inpaint_destroy(b->stream.inpaint);
    sdx_tracknet_destroy(b->stream.tracknet);
    sdx_video_close(b->stream.video);
    sdx_cli_end(&b->cli);
    return rc;
}

static int run_track_ball(const struct sdx_cli_verb *verb, int argc, char **argv)
{
    struct track_ball b = {.eval_mode = "weight", .device = "cpu", .warmup = 30, .trail = 12};
    struct sdx_cli_list files = {0};
    const struct sdx_cli_option options[] = {
        {"--model", SDX_CLI_TEXT, &b.model, "FILE", "TrackNet's model; must be given", 0, 0},
        {"--inpaint", SDX_CLI_TEXT, &b.inpaint, "FILE", "InpaintNet's model, which fills gaps", 0,
         0},
        {"-o", SDX_CLI_TEXT, &b.out, "FILE", "film with the trail drawn: .mp4, .mkv, .mov, .avi", 0,
         0},
        {"--csv", SDX_CLI_TEXT, &b.csv, "FILE",
         "table Frame,X,Y,Visibility (on stdout when neither -o nor --csv is given)", 0, 0},
        {"--seq-len", SDX_CLI_INT, &b.seq_len, "N",
         "frames of a window (default: what the model says)", 1, 1024},
        {"--bg-mode", SDX_CLI_TEXT, &b.bg_mode, "MODE",
         "\"\", subtract, subtract_concat or concat (default: what the model says)", 0, 0},
        {"--eval-mode", SDX_CLI_TEXT, &b.eval_mode, "MODE",
         "how windows are weighed: weight, average, nonoverlap (weight)", 0, 0},
        {"--median-warmup", SDX_CLI_INT, &b.warmup, "N",
         "frames at the start that the background is made of, where one is needed (30)", 1, 65535},
        {"--device", SDX_CLI_TEXT, &b.device, "DEVICE", "cpu, or cuda: try CUDA first (cpu)", 0, 0},
        {"--drop-if-lagging", SDX_CLI_FLAG, &b.drop, NULL,
         "leave frames out rather than fall behind; a file plays at its own speed then", 0, 0},
        {"--frames", SDX_CLI_INT, &b.frames, "N", "stop after so many frames", 1, 1e15},
        {"--trail", SDX_CLI_INT, &b.trail, "N", "places that are drawn (12)", 0, SDX_CLI_TRAIL_MAX},
        {"--level", SDX_CLI_TEXT, &b.level, "LEVEL",
         "graph optimisation: none, basic, extended, all", 0, 0},
        {0}};
    int rc = sdx_cli_args(verb, &b.cli, options, argc, argv, &files, 1, 1);
    if (rc < 0 && b.model == NULL) rc = sdx_cli_usage(verb, "--model FILE is missing");
    if (rc < 0) {
        b.source = files.items[0];
        rc = track_ball(verb, &b);
    }
    sdx_cli_list_free(&files);
    return rc;
}

const struct sdx_cli_verb sdx_cli_verb_track_ball = {
    "track-ball", "--model FILE VIDEO [options]", sdx_cli_summary_track_ball,
    "  sardonyx track-ball --model tracknet.onnx match.mp4 -o marked.mp4 --csv ball.csv\n"
    "  sardonyx track-ball --model tracknet.onnx --inpaint inpaint.onnx match.mp4 --csv ball.csv\n"
    "  sardonyx track-ball --model tracknet.onnx /dev/video0 --drop-if-lagging\n"
    "  sardonyx track-ball --model tracknet.onnx rtsp://camera/stream --drop-if-lagging --json\n"
    "\nVIDEO is a file, an address, a camera's device or its number. Ctrl-C ends the stream and\n"
    "keeps what was found until then.\n",
    run_track_ball};
