/* SPDX-License-Identifier: Apache-2.0
 * Inside the module: what a decoder gets and where its rows go. Decoders are called with the bytes
 * of a picture whose first bytes are theirs; everything in these bytes is hostile. */
#ifndef SDX_CODECS_SINK_H
#define SDX_CODECS_SINK_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "sardonyx/codecs.h"

/* Where decoded rows go: they become the pixels that the operator asks for. */
struct sdx_codecs_sink {
    struct sdx_codecs_picture *picture;
    unsigned char *pixels; /* set by sdx_codecs_begin */
    int64_t height, width;
};

/* "FORMAT: text" into the picture; returns BAD_PICTURE. */
enum sdx_codecs_result sdx_codecs_fail(struct sdx_codecs_sink *sink, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
enum sdx_codecs_result sdx_codecs_fail_memory(struct sdx_codecs_sink *sink);

/* Tells the picture's size; checks it and takes the memory. */
enum sdx_codecs_result sdx_codecs_begin(struct sdx_codecs_sink *sink, int64_t height,
                                        int64_t width);
/* Row y: `width` pixels of 1 (gray), 3 (RGB) or 4 (RGB and one byte that is ignored) bytes. */
void sdx_codecs_row(struct sdx_codecs_sink *sink, int64_t y, const unsigned char *row,
                    int channels);

typedef enum sdx_codecs_result sdx_codecs_read_fn(struct sdx_codecs_sink *sink,
                                                  const unsigned char *data, size_t size);
sdx_codecs_read_fn sdx_codecs_read_bmp, sdx_codecs_read_pnm, sdx_codecs_read_jpeg,
    sdx_codecs_read_png, sdx_codecs_read_webp, sdx_codecs_read_tiff, sdx_codecs_read_jpeg2000;

static inline unsigned sdx_codecs_u16(const unsigned char *p)
{
    return (unsigned)p[0] | (unsigned)p[1] << 8;
}
static inline uint32_t sdx_codecs_u32(const unsigned char *p)
{
    return (uint32_t)sdx_codecs_u16(p) | (uint32_t)sdx_codecs_u16(p + 2) << 16;
}
#endif
