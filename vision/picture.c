/* SPDX-License-Identifier: Apache-2.0
 * Reading and writing of pictures through FFmpeg's codecs. A picture file is one packet of its
 * codec, so no container library is needed; the format is told from the first bytes. */
#include "fault.h"
#include "picture_limits.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <libavcodec/avcodec.h>
#include <libavutil/log.h>
#include <libavutil/opt.h>
#include <libswscale/swscale.h>

enum { FILE_MAX = 1 << 30 };

void sdx_vision_log(bool on)
{
    av_log_set_level(on ? AV_LOG_INFO : AV_LOG_QUIET);
}

/* ---- reading ---- */

static enum AVCodecID codec_of_bytes(const uint8_t *p, size_t size)
{
    if (size >= 8 && memcmp(p, "\x89PNG\r\n\x1a\n", 8) == 0) return AV_CODEC_ID_PNG;
    if (size >= 3 && memcmp(p, "\xff\xd8\xff", 3) == 0) return AV_CODEC_ID_MJPEG;
    if (size >= 12 && memcmp(p, "RIFF", 4) == 0 && memcmp(p + 8, "WEBP", 4) == 0)
        return AV_CODEC_ID_WEBP;
    if (size >= 2 && memcmp(p, "BM", 2) == 0) return AV_CODEC_ID_BMP;
    return AV_CODEC_ID_NONE;
}

/* The first picture of a packet; the caller frees *frame. */
static sdx_status decode_frame(const void *bytes, size_t size, AVFrame **frame,
                               sdx_vision_fault *fault)
{
    *frame = NULL;
    const AVCodec *codec = avcodec_find_decoder(codec_of_bytes(bytes, size));
    if (codec == NULL)
        return sdx_vision_fail(fault, SDX_BAD_DATA, "not a PNG, JPEG, WebP or BMP picture");
    AVCodecContext *context = avcodec_alloc_context3(codec);
    AVPacket *packet = av_packet_alloc();
    AVFrame *made = av_frame_alloc();
    sdx_status status = SDX_OK;
    if (context == NULL || packet == NULL || made == NULL || av_new_packet(packet, (int)size) < 0) {
        status = sdx_vision_fail(fault, SDX_OUT_OF_MEMORY, "no memory to read a picture");
        goto done;
    }
    memcpy(packet->data, bytes, size);
    context->max_pixels = SDX_IMAGE_PIXELS_MAX;
    context->thread_count = 1;
    context->err_recognition = AV_EF_EXPLODE;
    int rc = avcodec_open2(context, codec, NULL);
    if (rc >= 0) rc = avcodec_send_packet(context, packet);
    if (rc >= 0) rc = avcodec_send_packet(context, NULL);
    if (rc >= 0) rc = avcodec_receive_frame(context, made);
    if (rc < 0) {
        char text[AV_ERROR_MAX_STRING_SIZE] = "";
        av_strerror(rc, text, sizeof text);
        status = sdx_vision_fail(fault, SDX_BAD_DATA, "broken %s picture: %s", codec->name, text);
        goto done;
    }
    *frame = made;
    made = NULL;
done:
    av_frame_free(&made);
    av_packet_free(&packet);
    avcodec_free_context(&context);
    return status;
}

/* The same samples under the name without a range in it ("yuvj"), which is what swscale wants. */
static enum AVPixelFormat plain_format(enum AVPixelFormat format, bool *full)
{
    *full = true;
    switch (format) {
    case AV_PIX_FMT_YUVJ420P: return AV_PIX_FMT_YUV420P;
    case AV_PIX_FMT_YUVJ422P: return AV_PIX_FMT_YUV422P;
    case AV_PIX_FMT_YUVJ444P: return AV_PIX_FMT_YUV444P;
    case AV_PIX_FMT_YUVJ440P: return AV_PIX_FMT_YUV440P;
    case AV_PIX_FMT_YUVJ411P: return AV_PIX_FMT_YUV411P;
    default: *full = false; return format;
    }
}

static sdx_status frame_to_rgb(const AVFrame *frame, sdx_image *out, sdx_vision_fault *fault)
{
    bool full = false;
    enum AVPixelFormat format = plain_format(frame->format, &full);
    full = full || frame->color_range == AVCOL_RANGE_JPEG;
    struct SwsContext *sws = sws_getContext(
        frame->width, frame->height, format, frame->width, frame->height, AV_PIX_FMT_RGB24,
        SWS_BICUBIC | SWS_ACCURATE_RND | SWS_FULL_CHR_H_INT | SWS_FULL_CHR_H_INP, NULL, NULL, NULL);
    if (sws == NULL)
        return sdx_vision_fail(fault, SDX_NOT_SUPPORTED, "pixel format %d cannot be read",
                               frame->format);
    /* The matrix of BT.601, which is JPEG's (JFIF) and WebP's. */
    const int *matrix = sws_getCoefficients(SWS_CS_ITU601);
    if (full) sws_setColorspaceDetails(sws, matrix, 1, matrix, 1, 0, 1 << 16, 1 << 16);
    uint8_t *planes[4] = {out->pixels, NULL, NULL, NULL};
    int strides[4] = {3 * out->width, 0, 0, 0};
    int rows = sws_scale(sws, (const uint8_t *const *)frame->data, frame->linesize, 0,
                         frame->height, planes, strides);
    sws_freeContext(sws);
    return rows == frame->height
               ? SDX_OK
               : sdx_vision_fail(fault, SDX_INTERNAL, "swscale made %d of %d rows", rows,
                                 frame->height);
}

/* Pillow's "L": (19595 R + 38470 G + 7471 B + 32768) / 65536, its libImaging/Convert.c. */
static void rgb_to_grey(const uint8_t *rgb, size_t count, uint8_t *grey)
{
    for (size_t i = 0; i < count; i++, rgb += 3)
        grey[i] = (uint8_t)((rgb[0] * 19595u + rgb[1] * 38470u + rgb[2] * 7471u + 0x8000u) >> 16);
}

static sdx_status frame_to_image(const AVFrame *frame, int channels, sdx_image *out,
                                 sdx_vision_fault *fault)
{
    sdx_status status = sdx_image_init(out, frame->width, frame->height, channels, fault);
    if (status) return status;
    if (frame->format == AV_PIX_FMT_GRAY8) {
        for (int y = 0; y < out->height; y++) {
            const uint8_t *row = frame->data[0] + (ptrdiff_t)y * frame->linesize[0];
            uint8_t *to = out->pixels + (size_t)y * (size_t)out->width * (size_t)channels;
            for (int x = 0; x < out->width; x++)
                for (int c = 0; c < channels; c++)
                    *to++ = row[x];
        }
        return SDX_OK;
    }
    if (channels == 3) {
        status = frame_to_rgb(frame, out, fault);
    } else {
        sdx_image colour = {0};
        status = sdx_image_init(&colour, frame->width, frame->height, 3, fault);
        if (!status) status = frame_to_rgb(frame, &colour, fault);
        if (!status)
            rgb_to_grey(colour.pixels, (size_t)out->width * (size_t)out->height, out->pixels);
        sdx_image_deinit(&colour);
    }
    if (status) sdx_image_deinit(out);
    return status;
}

sdx_status sdx_image_decode(const void *bytes, size_t size, int channels, sdx_image *out,
                            sdx_vision_fault *fault)
{
    *out = (sdx_image){0};
    if (channels != 1 && channels != 3)
        return sdx_vision_fail(fault, SDX_INVALID_ARGUMENT,
                               "a picture is read into 1 or 3 channels, not %d", channels);
    if (size > FILE_MAX)
        return sdx_vision_fail(fault, SDX_NOT_SUPPORTED, "a picture file of %zu bytes is too large",
                               size);
    AVFrame *frame = NULL;
    sdx_status status = decode_frame(bytes, size, &frame, fault);
    if (status) return status;
    status = frame_to_image(frame, channels, out, fault);
    av_frame_free(&frame);
    if (!status) status = sdx_image_turn(out, sdx_image_orientation(bytes, size), fault);
    if (status) sdx_image_deinit(out);
    return status;
}

static sdx_status file_read(const char *path, uint8_t **bytes, size_t *size,
                            sdx_vision_fault *fault)
{
    *bytes = NULL;
    *size = 0;
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return sdx_vision_fail(fault, errno == ENOENT ? SDX_NOT_FOUND : SDX_IO, "%s: %s", path,
                               strerror(errno));
    long end = fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
    if (end < 0 || end > FILE_MAX || fseek(file, 0, SEEK_SET) != 0) {
        fclose(file);
        return sdx_vision_fail(fault, SDX_IO, "%s: not a file of at most 1 GiB", path);
    }
    uint8_t *block = malloc((size_t)end + 1);
    size_t got = block != NULL ? fread(block, 1, (size_t)end, file) : 0;
    fclose(file);
    if (block == NULL)
        return sdx_vision_fail(fault, SDX_OUT_OF_MEMORY, "no memory to read %s", path);
    if (got != (size_t)end) {
        free(block);
        return sdx_vision_fail(fault, SDX_IO, "%s: read %zu of %ld bytes", path, got, end);
    }
    *bytes = block;
    *size = got;
    return SDX_OK;
}

sdx_status sdx_image_load(const char *path, int channels, sdx_image *out, sdx_vision_fault *fault)
{
    *out = (sdx_image){0};
    uint8_t *bytes = NULL;
    size_t size = 0;
    sdx_status status = file_read(path, &bytes, &size, fault);
    if (status) return status;
    sdx_vision_fault why = {""};
    status = sdx_image_decode(bytes, size, channels, out, &why);
    free(bytes);
    return status ? sdx_vision_fail(fault, status, "%.100s: %.200s", path, why.text) : SDX_OK;
}

/* ---- writing ---- */

/* One picture format that can be written: the name's ending and how its codec wants pixels. */
struct writer {
    const char *ending, *codec;
    enum AVPixelFormat colour, grey;
    const char *option, *value; /* quality, or NULL */
};

static const struct writer writers[] = {
    {".png", "png", AV_PIX_FMT_RGB24, AV_PIX_FMT_GRAY8, NULL, NULL},
    {".jpg", "mjpeg", AV_PIX_FMT_YUVJ444P, AV_PIX_FMT_YUVJ444P, NULL, NULL},
    {".jpeg", "mjpeg", AV_PIX_FMT_YUVJ444P, AV_PIX_FMT_YUVJ444P, NULL, NULL},
    {".bmp", "bmp", AV_PIX_FMT_BGR24, AV_PIX_FMT_BGR24, NULL, NULL},
    {".webp", "libwebp", AV_PIX_FMT_YUV420P, AV_PIX_FMT_YUV420P, "quality", "90"},
};

static const struct writer *writer_find(const char *path)
{
    const char *dot = strrchr(path, '.');
    for (size_t i = 0; dot != NULL && i < sizeof writers / sizeof *writers; i++)
        if (strcasecmp(dot, writers[i].ending) == 0) return &writers[i];
    return NULL;
}

/* The picture in the codec's pixel format; the caller frees *out. */
static sdx_status image_to_frame(const sdx_image *image, enum AVPixelFormat format, AVFrame **out,
                                 sdx_vision_fault *fault)
{
    bool full = false;
    enum AVPixelFormat plain = plain_format(format, &full);
    AVFrame *frame = av_frame_alloc();
    struct SwsContext *sws = sws_getContext(
        image->width, image->height, image->channels == 3 ? AV_PIX_FMT_RGB24 : AV_PIX_FMT_GRAY8,
        image->width, image->height, plain, SWS_BICUBIC | SWS_ACCURATE_RND, NULL, NULL, NULL);
    bool ok = frame != NULL && sws != NULL;
    if (ok) {
        frame->width = image->width;
        frame->height = image->height;
        frame->format = format;
        frame->color_range = full ? AVCOL_RANGE_JPEG : AVCOL_RANGE_UNSPECIFIED;
        ok = av_frame_get_buffer(frame, 0) >= 0;
    }
    if (ok) {
        const int *matrix = sws_getCoefficients(SWS_CS_ITU601);
        if (full) sws_setColorspaceDetails(sws, matrix, 1, matrix, 1, 0, 1 << 16, 1 << 16);
        const uint8_t *planes[4] = {image->pixels, NULL, NULL, NULL};
        int strides[4] = {image->width * image->channels, 0, 0, 0};
        ok = sws_scale(sws, planes, strides, 0, image->height, frame->data, frame->linesize) ==
             image->height;
    }
    sws_freeContext(sws);
    if (!ok) av_frame_free(&frame);
    *out = frame;
    return ok ? SDX_OK : sdx_vision_fail(fault, SDX_OUT_OF_MEMORY, "no memory to write a picture");
}

static sdx_status packet_write(const char *path, const AVPacket *packet, sdx_vision_fault *fault)
{
    FILE *file = fopen(path, "wb");
    bool ok =
        file != NULL && fwrite(packet->data, 1, (size_t)packet->size, file) == (size_t)packet->size;
    int why = errno;
    if (file != NULL && fclose(file) != 0 && ok) {
        ok = false;
        why = errno;
    }
    return ok ? SDX_OK : sdx_vision_fail(fault, SDX_IO, "%s: %s", path, strerror(why));
}

sdx_status sdx_image_save(const char *path, const sdx_image *image, sdx_vision_fault *fault)
{
    const struct writer *writer = writer_find(path);
    if (image->channels != 1 && image->channels != 3)
        return sdx_vision_fail(fault, SDX_INVALID_ARGUMENT,
                               "%s: a picture of %d channels cannot be written", path,
                               image->channels);
    if (writer == NULL)
        return sdx_vision_fail(fault, SDX_INVALID_ARGUMENT,
                               "%s: the name must end in .png, .jpg, .webp or .bmp", path);
    const AVCodec *codec = avcodec_find_encoder_by_name(writer->codec);
    if (codec == NULL)
        return sdx_vision_fail(fault, SDX_NOT_SUPPORTED, "%s: this FFmpeg has no %s encoder", path,
                               writer->codec);
    AVCodecContext *context = avcodec_alloc_context3(codec);
    AVPacket *packet = av_packet_alloc();
    AVFrame *frame = NULL;
    enum AVPixelFormat format = image->channels == 3 ? writer->colour : writer->grey;
    sdx_status status = image_to_frame(image, format, &frame, fault);
    if (status) goto done;
    if (context == NULL || packet == NULL) {
        status = sdx_vision_fail(fault, SDX_OUT_OF_MEMORY, "no memory to write a picture");
        goto done;
    }
    context->width = image->width;
    context->height = image->height;
    context->pix_fmt = format;
    context->color_range = frame->color_range;
    context->time_base = (AVRational){1, 1};
    context->thread_count = 1;
    /* JPEG: quantiser scale 2 of 31, about quality 95. */
    context->flags |= AV_CODEC_FLAG_QSCALE;
    context->global_quality = frame->quality = 2 * FF_QP2LAMBDA;
    if (writer->option != NULL)
        av_opt_set(context, writer->option, writer->value, AV_OPT_SEARCH_CHILDREN);
    int rc = avcodec_open2(context, codec, NULL);
    if (rc >= 0) rc = avcodec_send_frame(context, frame);
    if (rc >= 0) rc = avcodec_send_frame(context, NULL);
    if (rc >= 0) rc = avcodec_receive_packet(context, packet);
    if (rc < 0) {
        char text[AV_ERROR_MAX_STRING_SIZE] = "";
        av_strerror(rc, text, sizeof text);
        status = sdx_vision_fail(fault, SDX_INTERNAL, "%s: the %s encoder failed: %s", path,
                                 writer->codec, text);
        goto done;
    }
    status = packet_write(path, packet, fault);
done:
    av_frame_free(&frame);
    av_packet_free(&packet);
    avcodec_free_context(&context);
    return status;
}
