/* SPDX-License-Identifier: Apache-2.0
 * PNG through libpng: palettes and small samples are widened, of 16 bits the upper 8 stay, alpha is
 * dropped; no gamma is applied. */
#include "codecs/sink.h"

#include <png.h>

struct png {
    struct sdx_codecs_sink *sink;
    png_structp read;
    png_infop info;
    const unsigned char *data;
    size_t left;
    unsigned char *rows;
    png_bytep *pointers;
    enum sdx_codecs_result result;
};

static void fail_png(png_structp read, png_const_charp text)
{
    struct png *p = png_get_error_ptr(read);
    if (p->result == SDX_CODECS_OK) p->result = sdx_codecs_fail(p->sink, "PNG: %.200s", text);
    png_longjmp(read, 1);
}

static void ignore_warning(png_structp read, png_const_charp text)
{
    (void)read;
    (void)text;
}

static void give_bytes(png_structp read, png_bytep to, size_t count)
{
    struct png *p = png_get_io_ptr(read);
    if (count > p->left) png_error(read, "cut off");
    memcpy(to, p->data, count);
    p->data += count;
    p->left -= count;
}

static void decode_png(struct png *p)
{
    png_read_info(p->read, p->info);
    png_uint_32 width = png_get_image_width(p->read, p->info);
    png_uint_32 height = png_get_image_height(p->read, p->info);
    p->result = sdx_codecs_begin(p->sink, height, width);
    if (p->result != SDX_CODECS_OK) return;
    png_set_expand(p->read);
    png_set_strip_16(p->read);
    png_set_strip_alpha(p->read);
    int passes = png_set_interlace_handling(p->read);
    png_read_update_info(p->read, p->info);
    size_t stride = png_get_rowbytes(p->read, p->info);
    int channels = png_get_channels(p->read, p->info);
    if ((channels != 1 && channels != 3) || stride != (size_t)width * (size_t)channels)
        png_error(p->read, "samples that are neither gray nor RGB");
    size_t kept = passes > 1 ? height : 1;
    p->rows = malloc(kept * stride);
    p->pointers = passes > 1 ? malloc(kept * sizeof *p->pointers) : NULL;
    if (!p->rows || (passes > 1 && !p->pointers)) {
        p->result = sdx_codecs_fail_memory(p->sink);
        return;
    }
    if (passes > 1) {
        for (size_t y = 0; y < kept; y++)
            p->pointers[y] = p->rows + y * stride;
        png_read_image(p->read, p->pointers);
    }
    for (png_uint_32 y = 0; y < height; y++) {
        if (passes == 1) png_read_row(p->read, p->rows, NULL);
        sdx_codecs_row(p->sink, y, p->rows + (passes > 1 ? y * stride : 0), channels);
    }
}

enum sdx_codecs_result sdx_codecs_read_png(struct sdx_codecs_sink *sink, const unsigned char *data,
                                           size_t size)
{
    struct png *p = calloc(1, sizeof *p);
    if (!p) return sdx_codecs_fail_memory(sink);
    p->sink = sink;
    p->data = data;
    p->left = size;
    p->read = png_create_read_struct(PNG_LIBPNG_VER_STRING, p, fail_png, ignore_warning);
    if (p->read) p->info = png_create_info_struct(p->read);
    if (!p->info) {
        p->result = sdx_codecs_fail_memory(sink);
    } else if (setjmp(png_jmpbuf(p->read)) == 0) {
        png_set_read_fn(p->read, p, give_bytes);
        png_set_user_limits(p->read, 1u << 20, 1u << 20);
        png_set_chunk_malloc_max(p->read, 64u << 20);
        decode_png(p);
    }
    enum sdx_codecs_result result = p->result;
    png_destroy_read_struct(&p->read, &p->info, NULL);
    free(p->rows);
    free(p->pointers);
    free(p);
    return result;
}
