/* SPDX-License-Identifier: Apache-2.0
 * JPEG through libjpeg-turbo: the exact integer transform and interpolated chroma, as the operator
 * demands. CMYK and YCCK become RGB as (255 - c) (255 - k) / 255. */
#include "codecs/sink.h"

#include <setjmp.h>
#include <stdio.h>

#include <jpeglib.h>

#include <jerror.h>

struct jpeg {
    struct jpeg_error_mgr errors; /* first: libjpeg hands it back */
    struct jpeg_decompress_struct d;
    jmp_buf back;
    struct sdx_codecs_sink *sink;
    const unsigned char *data;
    size_t size;
    unsigned char *row;
    enum sdx_codecs_result result;
};

static void fail_jpeg(j_common_ptr common)
{
    struct jpeg *j = (struct jpeg *)(void *)common->err;
    char text[JMSG_LENGTH_MAX];
    common->err->format_message(common, text);
    j->result = sdx_codecs_fail(j->sink, "JPEG: %.200s", text);
    longjmp(j->back, 1);
}

static void ignore_message(j_common_ptr common)
{
    (void)common;
}

/* Warnings of damaged data are tolerated, as viewers do, but not of data that end early: what
 * follows would be invented. */
static void judge_warning(j_common_ptr common, int level)
{
    if (level >= 0) return;
    common->err->num_warnings++;
    if (common->err->msg_code == JWRN_JPEG_EOF) fail_jpeg(common);
}

static void rgb_of_cmyk(unsigned char *row, int64_t width, bool is_inverted)
{
    for (int64_t x = 0; x < width; x++) {
        const unsigned char *from = row + 4 * x;
        unsigned char *to = row + 3 * x;
        unsigned v[4];
        for (int c = 0; c < 4; c++)
            v[c] = is_inverted ? 255u - from[c] : from[c];
        unsigned light = 255 - v[3];
        for (int c = 0; c < 3; c++) {
            unsigned product = v[c] * light + 128;
            to[c] = (unsigned char)(light - (((product >> 8) + product) >> 8));
        }
    }
}

static void decode_jpeg(struct jpeg *j)
{
    struct jpeg_decompress_struct *d = &j->d;
    bool is_cmyk = d->jpeg_color_space == JCS_CMYK || d->jpeg_color_space == JCS_YCCK;
    d->out_color_space = is_cmyk                                ? JCS_CMYK
                         : d->jpeg_color_space == JCS_GRAYSCALE ? JCS_GRAYSCALE
                                                                : JCS_RGB;
    d->dct_method = JDCT_ISLOW;
    d->do_fancy_upsampling = TRUE;
    j->result = sdx_codecs_begin(j->sink, d->image_height, d->image_width);
    if (j->result != SDX_CODECS_OK) return;
    jpeg_start_decompress(d);
    j->row = malloc((size_t)d->output_width * (size_t)d->output_components);
    if (!j->row) {
        j->result = sdx_codecs_fail_memory(j->sink);
        return;
    }
    while (d->output_scanline < d->output_height) {
        int64_t y = d->output_scanline;
        JSAMPROW rows[1] = {j->row};
        if (jpeg_read_scanlines(d, rows, 1) != 1) break;
        if (is_cmyk) rgb_of_cmyk(j->row, d->output_width, d->saw_Adobe_marker);
        sdx_codecs_row(j->sink, y, j->row, is_cmyk ? 3 : d->output_components);
    }
    jpeg_finish_decompress(d);
}

static void read_picture(struct jpeg *j)
{
    jpeg_create_decompress(&j->d);
    /* A progressive picture keeps its coefficients: 2 bytes a sample. */
    j->d.mem->max_memory_to_use = (long)(j->sink->picture->pixels_most * 8);
    jpeg_mem_src(&j->d, j->data, (unsigned long)j->size);
    jpeg_read_header(&j->d, TRUE);
    decode_jpeg(j);
}

static void release(struct jpeg *j)
{
    jpeg_destroy_decompress(&j->d);
}

/* libjpeg ends what fails by jumping here. */
static void call_guarded(struct jpeg *j, void (*fn)(struct jpeg *j))
{
    if (setjmp(j->back) == 0) fn(j);
}

enum sdx_codecs_result sdx_codecs_read_jpeg(struct sdx_codecs_sink *sink, const unsigned char *data,
                                            size_t size)
{
    struct jpeg *j = calloc(1, sizeof *j);
    if (!j) return sdx_codecs_fail_memory(sink);
    j->sink = sink;
    j->data = data;
    j->size = size;
    j->d.err = jpeg_std_error(&j->errors);
    j->errors.error_exit = fail_jpeg;
    j->errors.output_message = ignore_message;
    j->errors.emit_message = judge_warning;
    call_guarded(j, read_picture);
    call_guarded(j, release);
    enum sdx_codecs_result result = j->result;
    free(j->row);
    free(j);
    return result;
}
