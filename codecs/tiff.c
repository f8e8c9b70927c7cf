/* SPDX-License-Identifier: Apache-2.0
 * TIFF through libtiff, the first picture of the file: 8-bit gray and RGB rows as they stand,
 * everything else through libtiff's RGBA pictures. Colours that would have to be multiplied with
 * their alpha there are refused. */
#include "codecs/sink.h"

#include <stdarg.h>
#include <stdio.h>

#include <tiffio.h>

struct tiff {
    struct sdx_codecs_sink *sink;
    const unsigned char *data;
    toff_t size, at;
    char text[200]; /* libtiff's first complaint */
};

static tmsize_t read_bytes(thandle_t handle, void *to, tmsize_t count)
{
    struct tiff *t = (struct tiff *)handle;
    toff_t left = t->at < t->size ? t->size - t->at : 0;
    if (count < 0) return 0;
    if ((toff_t)count > left) count = (tmsize_t)left;
    memcpy(to, t->data + t->at, (size_t)count);
    t->at += (toff_t)count;
    return count;
}

static tmsize_t write_bytes(thandle_t handle, void *from, tmsize_t count)
{
    (void)handle;
    (void)from;
    (void)count;
    return 0;
}

static toff_t seek_byte(thandle_t handle, toff_t at, int whence)
{
    struct tiff *t = (struct tiff *)handle;
    t->at = whence == SEEK_SET ? at : whence == SEEK_CUR ? t->at + at : t->size + at;
    if (t->at > t->size) t->at = t->size;
    return t->at;
}

static int close_bytes(thandle_t handle)
{
    (void)handle;
    return 0;
}

static toff_t size_of_bytes(thandle_t handle)
{
    return ((struct tiff *)handle)->size;
}

static int map_bytes(thandle_t handle, void **base, toff_t *size)
{
    (void)handle;
    (void)base;
    (void)size;
    return 0;
}

static void unmap_bytes(thandle_t handle, void *base, toff_t size)
{
    (void)handle;
    (void)base;
    (void)size;
}

static int keep_error(TIFF *file, void *user, const char *module, const char *format, va_list args)
{
    struct tiff *t = user;
    (void)file;
    (void)module;
    if (!t->text[0]) vsnprintf(t->text, sizeof t->text, format, args);
    return 1;
}

static int ignore_warning(TIFF *file, void *user, const char *module, const char *format,
                          va_list args)
{
    (void)file;
    (void)user;
    (void)module;
    (void)format;
    (void)args;
    return 1;
}

static enum sdx_codecs_result fail_tiff(const struct tiff *t)
{
    return sdx_codecs_fail(t->sink, "TIFF: %s", t->text[0] ? t->text : "broken or cut off");
}

/* Rows of 8-bit samples that need no conversion but for white as 0 and for more than 3 samples. */
static enum sdx_codecs_result read_rows(struct tiff *t, TIFF *file, int samples, bool is_negative)
{
    struct sdx_codecs_sink *sink = t->sink;
    int channels = samples >= 3 ? 3 : 1;
    size_t stride = (size_t)TIFFScanlineSize(file), used = (size_t)sink->width * (size_t)samples;
    if (stride < used) return fail_tiff(t);
    unsigned char *row = malloc(stride);
    if (!row) return sdx_codecs_fail_memory(sink);
    enum sdx_codecs_result result = SDX_CODECS_OK;
    for (int64_t y = 0; y < sink->height && result == SDX_CODECS_OK; y++) {
        if (TIFFReadScanline(file, row, (uint32_t)y, 0) < 0) {
            result = fail_tiff(t);
            break;
        }
        for (int64_t x = 0; x < sink->width; x++)
            for (int c = 0; c < channels; c++)
                row[x * channels + c] =
                    (unsigned char)(row[x * samples + c] ^ (is_negative ? 255 : 0));
        sdx_codecs_row(sink, y, row, channels);
    }
    free(row);
    return result;
}

static enum sdx_codecs_result read_rgba(struct tiff *t, TIFF *file)
{
    struct sdx_codecs_sink *sink = t->sink;
    TIFFRGBAImage image;
    char text[1024] = "";
    if (!TIFFRGBAImageBegin(&image, file, 1, text))
        return sdx_codecs_fail(sink, "TIFF: %.200s", text);
    if (image.alpha == EXTRASAMPLE_UNASSALPHA) {
        TIFFRGBAImageEnd(&image);
        return sdx_codecs_fail(sink, "TIFF: alpha in tiles, planes or other than 8 bits");
    }
    image.req_orientation = image.orientation; /* rows as they are stored */
    size_t count = (size_t)sink->height * (size_t)sink->width;
    uint32_t *pixels = malloc(count * sizeof *pixels);
    unsigned char *row = malloc((size_t)sink->width * 3);
    enum sdx_codecs_result result = SDX_CODECS_OK;
    if (!pixels || !row)
        result = sdx_codecs_fail_memory(sink);
    else if (!TIFFRGBAImageGet(&image, pixels, (uint32_t)sink->width, (uint32_t)sink->height))
        result = fail_tiff(t);
    for (int64_t y = 0; y < sink->height && result == SDX_CODECS_OK; y++) {
        const uint32_t *from = pixels + y * sink->width;
        for (int64_t x = 0; x < sink->width; x++) {
            row[3 * x] = (unsigned char)TIFFGetR(from[x]);
            row[3 * x + 1] = (unsigned char)TIFFGetG(from[x]);
            row[3 * x + 2] = (unsigned char)TIFFGetB(from[x]);
        }
        sdx_codecs_row(sink, y, row, 3);
    }
    free(row);
    free(pixels);
    TIFFRGBAImageEnd(&image);
    return result;
}

static enum sdx_codecs_result decode_tiff(struct tiff *t, TIFF *file)
{
    uint32_t width = 0, height = 0;
    uint16_t bits = 1, samples = 1, planes = PLANARCONFIG_CONTIG, photometric = 0, format = 1;
    TIFFGetField(file, TIFFTAG_IMAGEWIDTH, &width);
    TIFFGetField(file, TIFFTAG_IMAGELENGTH, &height);
    TIFFGetFieldDefaulted(file, TIFFTAG_BITSPERSAMPLE, &bits);
    TIFFGetFieldDefaulted(file, TIFFTAG_SAMPLESPERPIXEL, &samples);
    TIFFGetFieldDefaulted(file, TIFFTAG_PLANARCONFIG, &planes);
    TIFFGetFieldDefaulted(file, TIFFTAG_SAMPLEFORMAT, &format);
    if (!TIFFGetField(file, TIFFTAG_PHOTOMETRIC, &photometric))
        return sdx_codecs_fail(t->sink, "TIFF: no photometric interpretation");
    enum sdx_codecs_result result = sdx_codecs_begin(t->sink, height, width);
    if (result != SDX_CODECS_OK) return result;
    bool is_rgb = photometric == PHOTOMETRIC_RGB && samples >= 3 && samples <= 8;
    bool is_gray =
        (photometric == PHOTOMETRIC_MINISBLACK || photometric == PHOTOMETRIC_MINISWHITE) &&
        samples >= 1 && samples <= 2;
    if (bits == 8 && format == SAMPLEFORMAT_UINT && planes == PLANARCONFIG_CONTIG &&
        (is_rgb || is_gray) && !TIFFIsTiled(file))
        return read_rows(t, file, samples, photometric == PHOTOMETRIC_MINISWHITE);
    return read_rgba(t, file);
}

enum sdx_codecs_result sdx_codecs_read_tiff(struct sdx_codecs_sink *sink, const unsigned char *data,
                                            size_t size)
{
    struct tiff t = {.sink = sink, .data = data, .size = size};
    TIFFOpenOptions *options = TIFFOpenOptionsAlloc();
    if (!options) return sdx_codecs_fail_memory(sink);
    TIFFOpenOptionsSetErrorHandlerExtR(options, keep_error, &t);
    TIFFOpenOptionsSetWarningHandlerExtR(options, ignore_warning, &t);
    TIFFOpenOptionsSetMaxSingleMemAlloc(options, (tmsize_t)(sink->picture->pixels_most * 8));
    TIFF *file =
        TIFFClientOpenExt("picture", "rm", (thandle_t)&t, read_bytes, write_bytes, seek_byte,
                          close_bytes, size_of_bytes, map_bytes, unmap_bytes, options);
    enum sdx_codecs_result result = file ? decode_tiff(&t, file) : fail_tiff(&t);
    if (file) TIFFClose(file);
    TIFFOpenOptionsFree(options);
    return result;
}
