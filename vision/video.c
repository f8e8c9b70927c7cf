/* SPDX-License-Identifier: Apache-2.0
 * Frames of files, streams and cameras through FFmpeg, as B, G, R bytes of one size. Colours are
 * converted as OpenCV's VideoCapture does it (bicubic, swscale's own matrix), since models see
 * frames from there. A packet that cannot be decoded is left out. */
#include "fault.h"
#include "picture_limits.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libavcodec/avcodec.h>
#include <libavdevice/version.h>
#include <libavformat/avformat.h>
#include <libswscale/swscale.h>

struct sdx_video {
    sdx_video_options options;
    sdx_video_facts facts;
    AVFormatContext *format;
    AVCodecContext *codec;
    AVPacket *packet;
    AVFrame *frame, *bgr; /* bgr: padded, since swscale writes past the ends of rows */
    struct SwsContext *sws;
    int stream;
    bool drained; /* the file has no more packets */
};

void sdx_video_options_init(sdx_video_options *options)
{
    *options = (sdx_video_options){.size = sizeof *options};
}

void sdx_video_close(sdx_video *video)
{
    if (video == NULL) return;
    sws_freeContext(video->sws);
    av_frame_free(&video->frame);
    av_frame_free(&video->bgr);
    av_packet_free(&video->packet);
    avcodec_free_context(&video->codec);
    avformat_close_input(&video->format);
    free(video);
}

static int asked_to_stop(void *user)
{
    const sdx_video *video = user;
    return video->options.stopped != NULL && video->options.stopped(video->options.stopped_user);
}

static sdx_status say(sdx_vision_fault *fault, sdx_status status, const char *source, int rc)
{
    char text[AV_ERROR_MAX_STRING_SIZE] = "";
    av_strerror(rc, text, sizeof text);
    return sdx_vision_fail(fault, rc == AVERROR(ENOENT) ? SDX_NOT_FOUND : status, "%s: %s", source,
                           text);
}

/* A camera's device, in `path`, for a number or a device's name. */
static bool is_camera(const char *source, char path[64])
{
    size_t digits = strspn(source, "0123456789");
    bool number = digits > 0 && digits < 4 && source[digits] == '\0';
    if (!number && strncmp(source, "/dev/video", 10) != 0) return false;
    snprintf(path, 64, "%s%s", number ? "/dev/video" : "", source);
    return true;
}

/* FFmpeg's devices are loaded when one is asked for: the library brings dozens of others along. */
static const AVInputFormat *camera_format(void)
{
    void *library = dlopen("libavdevice.so." AV_STRINGIFY(LIBAVDEVICE_VERSION_MAJOR), RTLD_NOW);
    void *symbol = library != NULL ? dlsym(library, "avdevice_register_all") : NULL;
    void (*register_all)(void) = NULL;
    if (symbol == NULL) return NULL;
    memcpy(&register_all, &symbol, sizeof symbol);
    register_all();
    return av_find_input_format("video4linux2");
}

static sdx_status open_source(sdx_video *video, const char *source, sdx_vision_fault *fault)
{
    char camera[64];
    const AVInputFormat *kind = NULL;
    AVDictionary *more = NULL;
    const char *address = source;
    if (is_camera(source, camera)) {
        address = camera;
        kind = camera_format();
        if (kind == NULL)
            return sdx_vision_fail(fault, SDX_NOT_SUPPORTED,
                                   "%s: libavdevice.so.%d with video4linux2 is not there", source,
                                   LIBAVDEVICE_VERSION_MAJOR);
        video->facts.live = true;
    } else if (strstr(source, "://") != NULL && strncmp(source, "file://", 7) != 0) {
        video->facts.live = true;
        avformat_network_init();
        av_dict_set(&more, "rtsp_transport", "tcp", 0);
    }
    video->format = avformat_alloc_context();
    if (video->format == NULL) {
        av_dict_free(&more);
        return sdx_vision_fail(fault, SDX_OUT_OF_MEMORY, "no memory to open %s", source);
    }
    video->format->interrupt_callback = (AVIOInterruptCB){asked_to_stop, video};
    int rc = avformat_open_input(&video->format, address, (AVInputFormat *)(uintptr_t)kind, &more);
    av_dict_free(&more);
    if (rc >= 0) rc = avformat_find_stream_info(video->format, NULL);
    return rc < 0 ? say(fault, SDX_IO, source, rc) : SDX_OK;
}

static sdx_status open_codec(sdx_video *video, const char *source, sdx_vision_fault *fault)
{
    const AVCodec *codec = NULL;
    video->stream = av_find_best_stream(video->format, AVMEDIA_TYPE_VIDEO, -1, -1, NULL, 0);
    if (video->stream < 0)
        return sdx_vision_fail(fault, SDX_BAD_DATA, "%s: no video in it", source);
    AVStream *stream = video->format->streams[video->stream];
    codec = avcodec_find_decoder(stream->codecpar->codec_id);
    if (codec == NULL)
        return sdx_vision_fail(fault, SDX_NOT_SUPPORTED, "%s: this FFmpeg cannot decode %s", source,
                               avcodec_get_name(stream->codecpar->codec_id));
    video->codec = avcodec_alloc_context3(codec);
    video->packet = av_packet_alloc();
    video->frame = av_frame_alloc();
    video->bgr = av_frame_alloc();
    if (video->codec == NULL || video->packet == NULL || video->frame == NULL || video->bgr == NULL)
        return sdx_vision_fail(fault, SDX_OUT_OF_MEMORY, "no memory to decode %s", source);
    int rc = avcodec_parameters_to_context(video->codec, stream->codecpar);
    video->codec->max_pixels = SDX_IMAGE_PIXELS_MAX;
    video->codec->thread_count = 1; /* the model wants the others */
    video->codec->pkt_timebase = stream->time_base;
    if (rc >= 0) rc = avcodec_open2(video->codec, codec, NULL);
    if (rc < 0) return say(fault, SDX_BAD_DATA, source, rc);
    sdx_video_facts *facts = &video->facts;
    AVRational rate = av_guess_frame_rate(video->format, stream, NULL);
    facts->width = video->codec->width;
    facts->height = video->codec->height;
    facts->codec = codec->name;
    facts->fps = rate.num > 0 && rate.den > 0 ? av_q2d(rate) : 25;
    facts->frames = stream->nb_frames;
    if (facts->frames <= 0 && video->format->duration > 0)
        facts->frames =
            (int64_t)((double)video->format->duration / AV_TIME_BASE * facts->fps + 0.5);
    if (facts->live || facts->frames < 0) facts->frames = 0;
    if (facts->width < 1 || facts->height < 1 || facts->width > SDX_IMAGE_SIDE_MAX ||
        facts->height > SDX_IMAGE_SIDE_MAX)
        return sdx_vision_fail(fault, SDX_BAD_DATA, "%s: frames of %d x %d", source, facts->width,
                               facts->height);
    video->bgr->width = facts->width;
    video->bgr->height = facts->height;
    video->bgr->format = AV_PIX_FMT_BGR24;
    rc = av_frame_get_buffer(video->bgr, 0);
    return rc < 0 ? say(fault, SDX_OUT_OF_MEMORY, source, rc) : SDX_OK;
}

sdx_status sdx_video_open(const char *source, const sdx_video_options *options, sdx_video **out,
                          sdx_vision_fault *fault)
{
    *out = NULL;
    sdx_video *video = calloc(1, sizeof *video);
    if (video == NULL)
        return sdx_vision_fail(fault, SDX_OUT_OF_MEMORY, "no memory to open %s", source);
    if (options != NULL)
        memcpy(&video->options, options,
               options->size < sizeof *options ? options->size : sizeof *options);
    sdx_status status = open_source(video, source, fault);
    if (!status) status = open_codec(video, source, fault);
    if (status)
        sdx_video_close(video);
    else
        *out = video;
    return status;
}

const sdx_video_facts *sdx_video_get_facts(const sdx_video *video)
{
    return &video->facts;
}

/* The next decoded frame in video->frame: 0, AVERROR_EOF at the end, or another failure. */
static int next_frame(sdx_video *video)
{
    for (;;) {
        int rc = avcodec_receive_frame(video->codec, video->frame);
        if (rc != AVERROR(EAGAIN)) {
            if (rc == AVERROR_INVALIDDATA) continue;
            return rc;
        }
        if (asked_to_stop(video) || video->drained) return AVERROR_EOF;
        rc = av_read_frame(video->format, video->packet);
        if (rc == AVERROR(EAGAIN)) continue;
        if (rc == AVERROR_EOF || rc == AVERROR_EXIT) {
            video->drained = true;
            rc = avcodec_send_packet(video->codec, NULL);
        } else if (rc >= 0) {
            bool ours = video->packet->stream_index == video->stream;
            rc = ours ? avcodec_send_packet(video->codec, video->packet) : 0;
            av_packet_unref(video->packet);
        }
        if (rc < 0 && rc != AVERROR_INVALIDDATA) return rc;
    }
}

static bool convert(sdx_video *video, uint8_t *bgr)
{
    const AVFrame *from = video->frame, *to = video->bgr;
    video->sws =
        sws_getCachedContext(video->sws, from->width, from->height, from->format, to->width,
                             to->height, AV_PIX_FMT_BGR24, SWS_BICUBIC, NULL, NULL, NULL);
    if (video->sws == NULL ||
        sws_scale(video->sws, (const uint8_t *const *)from->data, from->linesize, 0, from->height,
                  to->data, to->linesize) != to->height)
        return false;
    size_t line = 3 * (size_t)to->width;
    for (int y = 0; y < to->height; y++)
        memcpy(bgr + (size_t)y * line, to->data[0] + (ptrdiff_t)y * to->linesize[0], line);
    return true;
}

sdx_status sdx_video_read(sdx_video *video, uint8_t *bgr, bool *found, sdx_vision_fault *fault)
{
    *found = false;
    int rc = next_frame(video);
    if (rc == AVERROR_EOF) return SDX_OK;
    if (rc < 0) return say(fault, SDX_BAD_DATA, video->format->url, rc);
    *found = true;
    sdx_status status = SDX_OK;
    if (bgr != NULL && !convert(video, bgr))
        status = sdx_vision_fail(fault, SDX_NOT_SUPPORTED, "%s: pixel format %d cannot be read",
                                 video->format->url, video->frame->format);
    av_frame_unref(video->frame);
    return status;
}
