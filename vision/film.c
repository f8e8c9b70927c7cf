/* SPDX-License-Identifier: Apache-2.0
 * Writing frames to a film through FFmpeg's encoders. */
#include "fault.h"
#include "picture_limits.h"

#include <stdlib.h>
#include <string.h>

#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/opt.h>
#include <libswscale/swscale.h>

struct sdx_film {
    char *path;
    AVFormatContext *format;
    AVCodecContext *codec;
    AVStream *stream;
    AVPacket *packet;
    AVFrame *frame, *bgr; /* bgr: padded, since swscale reads past the ends of rows */
    struct SwsContext *sws;
    size_t line; /* bytes of a row that is given */
};

static sdx_status say(const sdx_film *film, const char *what, int rc, sdx_vision_fault *fault)
{
    char text[AV_ERROR_MAX_STRING_SIZE] = "";
    av_strerror(rc, text, sizeof text);
    return sdx_vision_fail(fault, SDX_IO, "%s: %s: %s", film->path, what, text);
}

static void film_free(sdx_film *film)
{
    if (film == NULL) return;
    sws_freeContext(film->sws);
    av_frame_free(&film->frame);
    av_frame_free(&film->bgr);
    av_packet_free(&film->packet);
    avcodec_free_context(&film->codec);
    if (film->format != NULL && film->format->pb != NULL) avio_closep(&film->format->pb);
    avformat_free_context(film->format);
    av_free(film->path);
    free(film);
}

static sdx_status open_codec(sdx_film *film, int width, int height, double fps,
                             sdx_vision_fault *fault)
{
    const AVCodec *codec = avcodec_find_encoder_by_name("libx264");
    bool h264 = codec != NULL &&
                avformat_query_codec(film->format->oformat, codec->id, FF_COMPLIANCE_NORMAL) == 1;
    if (!h264) codec = avcodec_find_encoder(AV_CODEC_ID_MPEG4);
    if (codec == NULL)
        return sdx_vision_fail(fault, SDX_NOT_SUPPORTED,
                               "%s: this FFmpeg has no encoder of H.264 or MPEG-4", film->path);
    film->codec = avcodec_alloc_context3(codec);
    film->packet = av_packet_alloc();
    film->frame = av_frame_alloc();
    film->bgr = av_frame_alloc();
    film->stream = avformat_new_stream(film->format, NULL);
    if (film->codec == NULL || film->packet == NULL || film->frame == NULL || film->bgr == NULL ||
        film->stream == NULL)
        return sdx_vision_fail(fault, SDX_OUT_OF_MEMORY, "no memory to write %s", film->path);
    AVCodecContext *c = film->codec;
    AVRational rate = av_d2q(fps, 60000);
    c->width = film->frame->width = film->bgr->width = width & ~1;
    c->height = film->frame->height = film->bgr->height = height & ~1;
    film->bgr->format = AV_PIX_FMT_BGR24;
    c->pix_fmt = film->frame->format = AV_PIX_FMT_YUV420P;
    c->time_base = av_inv_q(rate);
    c->framerate = rate;
    c->gop_size = 48;
    c->thread_count = 1; /* the model wants the others */
    if (h264) {
        av_opt_set(c->priv_data, "preset", "veryfast", 0);
        av_opt_set(c->priv_data, "crf", "23", 0);
    } else {
        c->flags |= AV_CODEC_FLAG_QSCALE;
        c->global_quality = 4 * FF_QP2LAMBDA;
    }
    if (film->format->oformat->flags & AVFMT_GLOBALHEADER) c->flags |= AV_CODEC_FLAG_GLOBAL_HEADER;
    int rc = avcodec_open2(c, codec, NULL);
    if (rc >= 0) rc = avcodec_parameters_from_context(film->stream->codecpar, c);
    if (rc >= 0) rc = av_frame_get_buffer(film->frame, 0);
    if (rc >= 0) rc = av_frame_get_buffer(film->bgr, 0);
    film->stream->time_base = c->time_base;
    film->stream->avg_frame_rate = rate;
    return rc < 0 ? say(film, "cannot encode", rc, fault) : SDX_OK;
}

static sdx_status open_all(sdx_film *film, const char *path, int width, int height, double fps,
                           sdx_vision_fault *fault)
{
    film->path = av_strdup(path);
    film->line = width > 0 ? 3 * (size_t)width : 0;
    if (film->path == NULL)
        return sdx_vision_fail(fault, SDX_OUT_OF_MEMORY, "no memory to write %s", path);
    if (width < 2 || height < 2 || width > SDX_IMAGE_SIDE_MAX || height > SDX_IMAGE_SIDE_MAX ||
        !(fps > 0 && fps <= 10000))
        return sdx_vision_fail(fault, SDX_INVALID_ARGUMENT,
                               "%s: a film of %d x %d at %g frames a second cannot be made", path,
                               width, height, fps);
    if (avformat_alloc_output_context2(&film->format, NULL, NULL, path) < 0)
        return sdx_vision_fail(fault, SDX_INVALID_ARGUMENT,
                               "%s: the name's ending is none of a film (.mp4, .mkv, .mov, .avi)",
                               path);
    sdx_status status = open_codec(film, width, height, fps, fault);
    if (status) return status;
    film->sws = sws_getContext(film->codec->width, film->codec->height, AV_PIX_FMT_BGR24,
                               film->codec->width, film->codec->height, AV_PIX_FMT_YUV420P,
                               SWS_BICUBIC, NULL, NULL, NULL);
    if (film->sws == NULL)
        return sdx_vision_fail(fault, SDX_OUT_OF_MEMORY, "no memory to write %s", path);
    int rc = avio_open(&film->format->pb, path, AVIO_FLAG_WRITE);
    if (rc < 0) {
        char text[AV_ERROR_MAX_STRING_SIZE] = "";
        av_strerror(rc, text, sizeof text);
        return sdx_vision_fail(fault, SDX_IO, "%s: %s", path, text);
    }
    rc = avformat_write_header(film->format, NULL);
    return rc < 0 ? say(film, "cannot begin", rc, fault) : SDX_OK;
}

sdx_status sdx_film_open(const char *path, int width, int height, double fps, sdx_film **out,
                         sdx_vision_fault *fault)
{
    *out = NULL;
    sdx_film *film = calloc(1, sizeof *film);
    if (film == NULL)
        return sdx_vision_fail(fault, SDX_OUT_OF_MEMORY, "no memory to write %s", path);
    sdx_status status = open_all(film, path, width, height, fps, fault);
    if (status)
        film_free(film);
    else
        *out = film;
    return status;
}

/* Hands a frame (NULL: no more) to the encoder and writes what comes out. */
static int encode(sdx_film *film, const AVFrame *frame)
{
    int rc = avcodec_send_frame(film->codec, frame);
    while (rc >= 0) {
        rc = avcodec_receive_packet(film->codec, film->packet);
        if (rc == AVERROR(EAGAIN) || rc == AVERROR_EOF) return 0;
        if (rc < 0) break;
        av_packet_rescale_ts(film->packet, film->codec->time_base, film->stream->time_base);
        film->packet->stream_index = film->stream->index;
        if (film->packet->duration == 0)
            film->packet->duration =
                av_rescale_q(1, av_inv_q(film->codec->framerate), film->stream->time_base);
        rc = av_interleaved_write_frame(film->format, film->packet);
    }
    return rc;
}

sdx_status sdx_film_write(sdx_film *film, const uint8_t *bgr, int64_t index,
                          sdx_vision_fault *fault)
{
    int rc = av_frame_make_writable(film->frame);
    if (rc < 0) return say(film, "cannot write", rc, fault);
    AVFrame *copy = film->bgr;
    for (int y = 0; y < copy->height; y++)
        memcpy(copy->data[0] + (ptrdiff_t)y * copy->linesize[0], bgr + (size_t)y * film->line,
               3 * (size_t)copy->width);
    sws_scale(film->sws, (const uint8_t *const *)copy->data, copy->linesize, 0, copy->height,
              film->frame->data, film->frame->linesize);
    film->frame->pts = index;
    rc = encode(film, film->frame);
    return rc < 0 ? say(film, "cannot write", rc, fault) : SDX_OK;
}

sdx_status sdx_film_close(sdx_film *film, sdx_vision_fault *fault)
{
    if (film == NULL) return SDX_OK;
    int rc = encode(film, NULL);
    int end = av_write_trailer(film->format);
    if (rc >= 0) rc = end;
    end = avio_closep(&film->format->pb);
    if (rc >= 0) rc = end;
    sdx_status status = rc < 0 ? say(film, "cannot end", rc, fault) : SDX_OK;
    film_free(film);
    return status;
}
