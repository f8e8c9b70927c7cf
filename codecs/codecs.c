/* SPDX-License-Identifier: Apache-2.0
 * The module's two functions: the kind of a picture is told by its first bytes, rows are brought
 * into the wanted form. Gray is made of RGB with the weights of ITU-R 601-2 in 16 bits, as the
 * operator's reference does. */
#include "codecs/sink.h"

#include <stdarg.h>
#include <stdio.h>

#if defined(__GNUC__)
#define EXPORT __attribute__((visibility("default")))
#else
#define EXPORT
#endif

EXPORT sdx_codecs_version_fn sdx_codecs_version;
EXPORT sdx_codecs_decode_fn sdx_codecs_decode;

enum { SIDE_MOST = 1 << 20 };

enum sdx_codecs_result sdx_codecs_fail(struct sdx_codecs_sink *sink, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(sink->picture->error, sizeof sink->picture->error, format, args);
    va_end(args);
    /* Libraries' texts may hold what was in the file. */
    for (char *c = sink->picture->error; *c; c++)
        if (*c < ' ' || *c > '~') *c = ' ';
    return SDX_CODECS_BAD_PICTURE;
}

enum sdx_codecs_result sdx_codecs_fail_memory(struct sdx_codecs_sink *sink)
{
    sdx_codecs_fail(sink, "no memory for the picture");
    return SDX_CODECS_MEMORY;
}

enum sdx_codecs_result sdx_codecs_begin(struct sdx_codecs_sink *sink, int64_t height, int64_t width)
{
    struct sdx_codecs_picture *picture = sink->picture;
    if (height < 1 || width < 1 || height > SIDE_MOST || width > SIDE_MOST)
        return sdx_codecs_fail(sink, "the picture has %lld x %lld pixels", (long long)width,
                               (long long)height);
    if (height * width > picture->pixels_most)
        return sdx_codecs_fail(sink, "the picture has %lld x %lld pixels, more than %lld",
                               (long long)width, (long long)height,
                               (long long)picture->pixels_most);
    int64_t channels = picture->pixels == SDX_CODECS_GRAY ? 1 : 3;
    sink->height = height;
    sink->width = width;
    sink->pixels = picture->take_pixels(picture->user, height, width, channels);
    return sink->pixels ? SDX_CODECS_OK : sdx_codecs_fail_memory(sink);
}

void sdx_codecs_row(struct sdx_codecs_sink *sink, int64_t y, const unsigned char *row, int channels)
{
    int64_t width = sink->width;
    if (sink->picture->pixels == SDX_CODECS_GRAY) {
        unsigned char *to = sink->pixels + y * width;
        if (channels == 1) {
            memcpy(to, row, (size_t)width);
            return;
        }
        for (int64_t x = 0; x < width; x++, row += channels)
            to[x] =
                (unsigned char)((row[0] * 19595u + row[1] * 38470u + row[2] * 7471u + 0x8000u) >>
                                16);
        return;
    }
    unsigned char *to = sink->pixels + y * width * 3;
    int first = sink->picture->pixels == SDX_CODECS_BGR ? 2 : 0;
    int second = channels == 1 ? 0 : 1, third = channels == 1 ? 0 : 2 - first;
    if (channels == 1) first = 0;
    for (int64_t x = 0; x < width; x++, row += channels, to += 3) {
        to[0] = row[first];
        to[1] = row[second];
        to[2] = row[third];
    }
}

/* ---- which decoder ---- */

static const struct kind {
    const char *name, *library;
    sdx_codecs_read_fn *read; /* NULL: left out of this build */
    size_t length, at;        /* of magic */
    const char *magic;
} kinds[] = {
#ifdef SDX_HAVE_JPEG
#define JPEG sdx_codecs_read_jpeg
#else
#define JPEG NULL
#endif
#ifdef SDX_HAVE_PNG
#define PNG sdx_codecs_read_png
#else
#define PNG NULL
#endif
#ifdef SDX_HAVE_WEBP
#define WEBP sdx_codecs_read_webp
#else
#define WEBP NULL
#endif
#ifdef SDX_HAVE_TIFF
#define TIFF sdx_codecs_read_tiff
#else
#define TIFF NULL
#endif
#ifdef SDX_HAVE_JPEG2000
#define JPEG2000 sdx_codecs_read_jpeg2000
#else
#define JPEG2000 NULL
#endif
    {"JPEG", "libjpeg-turbo", JPEG, 3, 0, "\xff\xd8\xff"},
    {"PNG", "libpng", PNG, 8, 0, "\x89PNG\r\n\x1a\n"},
    {"WebP", "libwebp", WEBP, 4, 8, "WEBP"},
    {"TIFF", "libtiff", TIFF, 4, 0, "II*\0"},
    {"TIFF", "libtiff", TIFF, 4, 0, "MM\0*"},
    {"TIFF", "libtiff", TIFF, 4, 0, "II+\0"},
    {"TIFF", "libtiff", TIFF, 4, 0, "MM\0+"},
    {"JPEG 2000", "OpenJPEG", JPEG2000, 12, 0, "\0\0\0\x0cjP  \r\n\x87\n"},
    {"JPEG 2000", "OpenJPEG", JPEG2000, 4, 0, "\xff\x4f\xff\x51"},
    {"BMP", NULL, sdx_codecs_read_bmp, 2, 0, "BM"},
    {"PNM", NULL, sdx_codecs_read_pnm, 1, 0, "P"},
};

int sdx_codecs_version(void)
{
    return SDX_CODECS_VERSION;
}

enum sdx_codecs_result sdx_codecs_decode(struct sdx_codecs_picture *picture)
{
    struct sdx_codecs_sink sink = {.picture = picture};
    picture->error[0] = 0;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        const struct kind *kind = &kinds[i];
        if (picture->size < kind->at + kind->length ||
            memcmp(picture->data + kind->at, kind->magic, kind->length) != 0)
            continue;
        if (kind->read) return kind->read(&sink, picture->data, picture->size);
        sdx_codecs_fail(&sink, "%s needs %s, which this build lacks", kind->name, kind->library);
        return SDX_CODECS_MISSING;
    }
    return sdx_codecs_fail(&sink, "%zu bytes that are no picture of a known kind", picture->size);
}
