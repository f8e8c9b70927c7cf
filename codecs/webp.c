/* SPDX-License-Identifier: Apache-2.0
 * WebP through libwebp; of an animation the first picture. */
#include "codecs/sink.h"

#include <webp/decode.h>
#ifdef SDX_HAVE_WEBP_FRAMES
#include <webp/demux.h>
#endif

static enum sdx_codecs_result decode_webp(struct sdx_codecs_sink *sink, const unsigned char *data,
                                          size_t size, int width, int height)
{
    size_t stride = (size_t)width * 3;
    unsigned char *rows = malloc(stride * (size_t)height);
    if (!rows) return sdx_codecs_fail_memory(sink);
    bool is_good =
        WebPDecodeRGBInto(data, size, rows, stride * (size_t)height, (int)stride) != NULL;
    for (int y = 0; is_good && y < height; y++)
        sdx_codecs_row(sink, y, rows + (size_t)y * stride, 3);
    free(rows);
    return is_good ? SDX_CODECS_OK : sdx_codecs_fail(sink, "WebP: broken or cut off");
}

#ifdef SDX_HAVE_WEBP_FRAMES
/* The first picture on the animation's canvas, black where it does not reach. */
static enum sdx_codecs_result decode_frames(struct sdx_codecs_sink *sink, const unsigned char *data,
                                            size_t size)
{
    WebPAnimDecoderOptions options;
    WebPData source = {data, size};
    uint8_t *rows = NULL;
    int time = 0;
    if (!WebPAnimDecoderOptionsInit(&options)) return sdx_codecs_fail(sink, "WebP: library");
    options.color_mode = MODE_RGBA;
    WebPAnimDecoder *decoder = WebPAnimDecoderNew(&source, &options);
    bool is_good = decoder && WebPAnimDecoderGetNext(decoder, &rows, &time);
    for (int64_t y = 0; is_good && y < sink->height; y++)
        sdx_codecs_row(sink, y, rows + (size_t)y * (size_t)sink->width * 4, 4);
    if (decoder) WebPAnimDecoderDelete(decoder);
    return is_good ? SDX_CODECS_OK : sdx_codecs_fail(sink, "WebP: broken or cut off");
}
#endif

enum sdx_codecs_result sdx_codecs_read_webp(struct sdx_codecs_sink *sink, const unsigned char *data,
                                            size_t size)
{
    WebPBitstreamFeatures features;
    if (WebPGetFeatures(data, size, &features) != VP8_STATUS_OK)
        return sdx_codecs_fail(sink, "WebP: broken or cut off");
    enum sdx_codecs_result result = sdx_codecs_begin(sink, features.height, features.width);
    if (result != SDX_CODECS_OK) return result;
    if (!features.has_animation)
        return decode_webp(sink, data, size, features.width, features.height);
#ifdef SDX_HAVE_WEBP_FRAMES
    return decode_frames(sink, data, size);
#else
    return sdx_codecs_fail(sink, "WebP: an animation, which needs libwebpdemux");
#endif
}
