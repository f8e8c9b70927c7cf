/* SPDX-License-Identifier: Apache-2.0
 * JPEG 2000 (.jp2 and code streams) through OpenJPEG: gray, RGB, YCbCr and palettes, with samples
 * of 1 to 16 bits and chroma of a lower resolution; alpha is dropped. */
#include "codecs/sink.h"

#include <openjpeg.h>

struct stream {
    const unsigned char *data;
    size_t size, at;
};

static OPJ_SIZE_T read_bytes(void *to, OPJ_SIZE_T count, void *user)
{
    struct stream *s = user;
    size_t left = s->size - s->at;
    if (left == 0) return (OPJ_SIZE_T)-1;
    if (count > left) count = left;
    memcpy(to, s->data + s->at, count);
    s->at += count;
    return count;
}

static OPJ_OFF_T skip_bytes(OPJ_OFF_T count, void *user)
{
    struct stream *s = user;
    if (count < 0) return -1;
    size_t left = s->size - s->at;
    if ((uint64_t)count > left) count = (OPJ_OFF_T)left;
    s->at += (size_t)count;
    return count;
}

static OPJ_BOOL seek_byte(OPJ_OFF_T at, void *user)
{
    struct stream *s = user;
    if (at < 0 || (uint64_t)at > s->size) return OPJ_FALSE;
    s->at = (size_t)at;
    return OPJ_TRUE;
}

static void keep_error(const char *text, void *user)
{
    struct sdx_codecs_sink *sink = user;
    if (!sink->picture->error[0])
        sdx_codecs_fail(sink, "JPEG 2000: %.*s", (int)strcspn(text, "\n"), text);
}

static enum sdx_codecs_result fail_jpeg2000(struct sdx_codecs_sink *sink)
{
    if (sink->picture->error[0]) return SDX_CODECS_BAD_PICTURE;
    return sdx_codecs_fail(sink, "JPEG 2000: broken or cut off");
}

/* The sample at (x, y) of the picture as 0..255. */
static unsigned char sample_at(const opj_image_comp_t *c, int64_t x, int64_t y)
{
    int64_t column = x / c->dx, row = y / c->dy;
    if (column >= c->w) column = c->w - 1;
    if (row >= c->h) row = c->h - 1;
    int64_t v = c->data[row * c->w + column];
    if (c->sgnd) v += INT64_C(1) << (c->prec - 1);
    int shift = 8 - (int)c->prec;
    v = shift < 0 ? v >> -shift : v << shift;
    return (unsigned char)(v < 0 ? 0 : v > 255 ? 255 : v);
}

static unsigned char rounded(double v)
{
    return (unsigned char)(v <= 0 ? 0 : v >= 255 ? 255 : v + 0.5);
}

static void rgb_of_ycc(unsigned char *p)
{
    double y = p[0], cb = p[1] - 128.0, cr = p[2] - 128.0;
    p[0] = rounded(y + 1.402 * cr);
    p[1] = rounded(y - 0.344136286 * cb - 0.714136286 * cr);
    p[2] = rounded(y + 1.772 * cb);
}

static enum sdx_codecs_result give_rows(struct sdx_codecs_sink *sink, const opj_image_t *image)
{
    uint32_t channels = image->numcomps >= 3 ? 3 : 1;
    for (uint32_t c = 0; c < channels; c++) {
        const opj_image_comp_t *comp = &image->comps[c];
        if (!comp->data || !comp->w || !comp->h || !comp->dx || !comp->dy || comp->prec < 1 ||
            comp->prec > 31)
            return sdx_codecs_fail(sink, "JPEG 2000: component %u is empty", (unsigned)c);
    }
    bool is_ycc = channels == 3 && (image->color_space == OPJ_CLRSPC_SYCC ||
                                    (image->color_space != OPJ_CLRSPC_SRGB &&
                                     image->comps[0].dx == 1 && image->comps[1].dx == 2));
    unsigned char *row = malloc((size_t)sink->width * channels);
    if (!row) return sdx_codecs_fail_memory(sink);
    for (int64_t y = 0; y < sink->height; y++) {
        for (int64_t x = 0; x < sink->width; x++) {
            for (uint32_t c = 0; c < channels; c++)
                row[x * channels + c] = sample_at(&image->comps[c], x, y);
            if (is_ycc) rgb_of_ycc(row + 3 * x);
        }
        sdx_codecs_row(sink, y, row, (int)channels);
    }
    free(row);
    return SDX_CODECS_OK;
}

static enum sdx_codecs_result decode_jpeg2000(struct sdx_codecs_sink *sink, opj_codec_t *codec,
                                              opj_stream_t *from, opj_image_t **image)
{
    opj_dparameters_t parameters;
    opj_set_default_decoder_parameters(&parameters);
    opj_set_error_handler(codec, keep_error, sink);
    if (!opj_setup_decoder(codec, &parameters) || !opj_read_header(from, codec, image) || !*image)
        return fail_jpeg2000(sink);
    int64_t width = (int64_t)(*image)->x1 - (*image)->x0;
    int64_t height = (int64_t)(*image)->y1 - (*image)->y0;
    if ((*image)->numcomps < 1 || (*image)->numcomps > 8)
        return sdx_codecs_fail(sink, "JPEG 2000: %u components", (unsigned)(*image)->numcomps);
    enum sdx_codecs_result result = sdx_codecs_begin(sink, height, width);
    if (result != SDX_CODECS_OK) return result;
    if (!opj_decode(codec, from, *image) || !opj_end_decompress(codec, from))
        return fail_jpeg2000(sink);
    return give_rows(sink, *image);
}

enum sdx_codecs_result sdx_codecs_read_jpeg2000(struct sdx_codecs_sink *sink,
                                                const unsigned char *data, size_t size)
{
    struct stream s = {data, size, 0};
    opj_codec_t *codec = opj_create_decompress(data[0] ? OPJ_CODEC_J2K : OPJ_CODEC_JP2);
    opj_stream_t *from = opj_stream_create(1 << 16, OPJ_TRUE);
    opj_image_t *image = NULL;
    enum sdx_codecs_result result = SDX_CODECS_MEMORY;
    if (codec && from) {
        opj_stream_set_user_data(from, &s, NULL);
        opj_stream_set_user_data_length(from, size);
        opj_stream_set_read_function(from, read_bytes);
        opj_stream_set_skip_function(from, skip_bytes);
        opj_stream_set_seek_function(from, seek_byte);
        result = decode_jpeg2000(sink, codec, from, &image);
    } else {
        sdx_codecs_fail_memory(sink);
    }
    if (image) opj_image_destroy(image);
    if (from) opj_stream_destroy(from);
    if (codec) opj_destroy_codec(codec);
    return result;
}
