/* SPDX-License-Identifier: Apache-2.0
 * Boxes and their names, drawn with Cairo. Line width and text size follow the picture's size; a
 * label stands above its box, inside where there is no room above. */
#include "fault.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include <cairo.h>

#if defined(__SANITIZE_ADDRESS__)
/* Fontconfig holds what it read of the fonts until the process ends. */
SDX_API const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:libfontconfig\n";
}
#endif

/* Hues a golden angle apart are distinct for any number of classes; three levels of brightness
 * keep neighbours of a hue apart too. */
static void class_colour(int label, double rgb[3])
{
    double hue = fmod(label * 137.50776405, 360.0) / 60.0;
    double high = 0.95 - 0.18 * (label / 7 % 3), low = high * 0.12;
    double mid = low + (high - low) * (1 - fabs(fmod(hue, 2.0) - 1));
    const double wheel[6][3] = {{high, mid, low}, {mid, high, low}, {low, high, mid},
                                {low, mid, high}, {mid, low, high}, {high, low, mid}};
    memcpy(rgb, wheel[(int)hue % 6], sizeof wheel[0]);
}

static void picture_to_surface(const sdx_image *image, cairo_surface_t *surface)
{
    cairo_surface_flush(surface);
    unsigned char *rows = cairo_image_surface_get_data(surface);
    int stride = cairo_image_surface_get_stride(surface);
    const uint8_t *p = image->pixels;
    for (int y = 0; y < image->height; y++) {
        uint32_t *to = (uint32_t *)(void *)(rows + (ptrdiff_t)y * stride);
        for (int x = 0; x < image->width; x++, p += image->channels) {
            uint32_t r = p[0], g = image->channels == 3 ? p[1] : r;
            uint32_t b = image->channels == 3 ? p[2] : r;
            to[x] = r << 16 | g << 8 | b;
        }
    }
    cairo_surface_mark_dirty(surface);
}

static void surface_to_picture(cairo_surface_t *surface, sdx_image *image)
{
    cairo_surface_flush(surface);
    const unsigned char *rows = cairo_image_surface_get_data(surface);
    int stride = cairo_image_surface_get_stride(surface);
    uint8_t *p = image->pixels;
    for (int y = 0; y < image->height; y++) {
        const uint32_t *from = (const uint32_t *)(const void *)(rows + (ptrdiff_t)y * stride);
        for (int x = 0; x < image->width; x++, p += image->channels) {
            p[0] = (uint8_t)(from[x] >> 16);
            if (image->channels == 3) {
                p[1] = (uint8_t)(from[x] >> 8);
                p[2] = (uint8_t)from[x];
            }
        }
    }
}

static void draw_label(cairo_t *cr, const sdx_image *image, const sdx_box *box, const char *text,
                       const double rgb[3], double line)
{
    cairo_text_extents_t text_size;
    cairo_font_extents_t font;
    cairo_text_extents(cr, text, &text_size);
    cairo_font_extents(cr, &font);
    double pad = line, wide = text_size.x_advance + 2 * pad, high = font.ascent + font.descent;
    double x = box->x0 - line / 2, y = box->y0 - high;
    if (y < 0) y = box->y0;
    if (x + wide > image->width) x = image->width - wide;
    if (x < 0) x = 0;
    cairo_set_source_rgb(cr, rgb[0], rgb[1], rgb[2]);
    cairo_rectangle(cr, x, y, wide, high);
    cairo_fill(cr);
    double light = 0.299 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2];
    double ink = light > 0.5 ? 0.0 : 1.0;
    cairo_set_source_rgb(cr, ink, ink, ink);
    cairo_move_to(cr, x + pad, y + font.ascent);
    cairo_show_text(cr, text);
}

sdx_status sdx_draw_boxes(sdx_image *image, const sdx_boxes *boxes, const sdx_labels *labels,
                          sdx_vision_fault *fault)
{
    cairo_surface_t *surface =
        cairo_image_surface_create(CAIRO_FORMAT_RGB24, image->width, image->height);
    if (cairo_surface_status(surface) != CAIRO_STATUS_SUCCESS) {
        cairo_surface_destroy(surface);
        return sdx_vision_fail(fault, SDX_OUT_OF_MEMORY, "no surface of %d x %d to draw on",
                               image->width, image->height);
    }
    picture_to_surface(image, surface);
    cairo_t *cr = cairo_create(surface);
    double side = sqrt((double)image->width * image->height);
    double line = fmax(2.0, round(side / 300)), text_size = fmax(11.0, side / 45);
    cairo_select_font_face(cr, "sans-serif", CAIRO_FONT_SLANT_NORMAL, CAIRO_FONT_WEIGHT_BOLD);
    cairo_set_font_size(cr, text_size);
    cairo_set_line_width(cr, line);
    /* The best box last, on top. */
    for (size_t i = boxes->count; i-- > 0;) {
        const sdx_box *box = &boxes->items[i];
        double rgb[3];
        class_colour(box->label, rgb);
        cairo_set_source_rgb(cr, rgb[0], rgb[1], rgb[2]);
        cairo_rectangle(cr, box->x0, box->y0, (double)box->x1 - box->x0, (double)box->y1 - box->y0);
        cairo_stroke(cr);
        char number[16], text[128];
        snprintf(text, sizeof text, "%.100s %.2f",
                 sdx_labels_name(labels, box->label, number, sizeof number), box->score);
        draw_label(cr, image, box, text, rgb, line);
    }
    cairo_status_t drawn = cairo_status(cr);
    cairo_destroy(cr);
    surface_to_picture(surface, image);
    cairo_surface_destroy(surface);
    return drawn == CAIRO_STATUS_SUCCESS
               ? SDX_OK
               : sdx_vision_fail(fault, SDX_INTERNAL, "drawing failed: %s",
                                 cairo_status_to_string(drawn));
}
