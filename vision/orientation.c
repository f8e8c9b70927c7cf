/* SPDX-License-Identifier: Apache-2.0
 * Which way up a picture is: finds the Exif block of a JPEG (APP1), PNG (eXIf) or WebP (EXIF) file
 * and reads tag 0x0112 of its first directory (Exif 2.32, section 4.6), and turns a picture
 * upright.
 */
#include "fault.h"

#include <stdlib.h>
#include <string.h>

/* A window of bytes; reading outside gives 0. */
struct bytes {
    const uint8_t *at;
    size_t size;
    bool big_endian;
};

static uint32_t read_u16(struct bytes b, size_t at)
{
    if (at > b.size || b.size - at < 2) return 0;
    const uint8_t *p = b.at + at;
    return b.big_endian ? (uint32_t)p[0] << 8 | p[1] : (uint32_t)p[1] << 8 | p[0];
}

static uint32_t read_u32(struct bytes b, size_t at)
{
    if (at > b.size || b.size - at < 4) return 0;
    uint32_t first = read_u16(b, at), second = read_u16(b, at + 2);
    return b.big_endian ? first << 16 | second : second << 16 | first;
}

/* `tiff` begins at the byte order mark. */
static int tiff_orientation(struct bytes tiff)
{
    if (tiff.size < 14) return 1;
    if (memcmp(tiff.at, "MM\0*", 4) == 0)
        tiff.big_endian = true;
    else if (memcmp(tiff.at, "II*\0", 4) != 0)
        return 1;
    size_t directory = read_u32(tiff, 4);
    uint32_t entries = read_u16(tiff, directory);
    for (uint32_t i = 0; i < entries; i++) {
        size_t entry = directory + 2 + (size_t)12 * i;
        if (entry > tiff.size) break;
        if (read_u16(tiff, entry) == 0x0112) {
            uint32_t value = read_u16(tiff, entry + 8);
            return value >= 1 && value <= 8 ? (int)value : 1;
        }
    }
    return 1;
}

static int jpeg_orientation(struct bytes b)
{
    b.big_endian = true;
    for (size_t at = 2; at + 4 <= b.size;) {
        uint32_t marker = read_u16(b, at), length = read_u16(b, at + 2);
        /* 0xffda: the compressed data begin, no Exif can follow. */
        if ((marker & 0xff00) != 0xff00 || marker == 0xffda || length < 2) return 1;
        if (length > b.size - at - 2) return 1;
        if (marker == 0xffe1 && length >= 8 && memcmp(b.at + at + 4, "Exif\0", 6) == 0)
            return tiff_orientation((struct bytes){b.at + at + 10, length - 8, false});
        at += 2 + (size_t)length;
    }
    return 1;
}

static int png_orientation(struct bytes b)
{
    b.big_endian = true;
    for (size_t at = 8; at + 12 <= b.size;) {
        size_t length = read_u32(b, at);
        if (length > b.size - at - 12) return 1;
        if (memcmp(b.at + at + 4, "eXIf", 4) == 0)
            return tiff_orientation((struct bytes){b.at + at + 8, length, false});
        at += 12 + length;
    }
    return 1;
}

static int webp_orientation(struct bytes b)
{
    for (size_t at = 12; at + 8 <= b.size;) {
        size_t length = read_u32(b, at + 4);
        if (length > b.size - at - 8) return 1;
        if (memcmp(b.at + at, "EXIF", 4) == 0) {
            struct bytes tiff = {b.at + at + 8, length, false};
            if (length >= 6 && memcmp(tiff.at, "Exif\0", 6) == 0)
                tiff = (struct bytes){tiff.at + 6, length - 6, false};
            return tiff_orientation(tiff);
        }
        at += 8 + length + (length & 1);
    }
    return 1;
}

int sdx_image_orientation(const void *bytes, size_t size)
{
    struct bytes b = {bytes, size, false};
    if (size >= 4 && memcmp(bytes, "\xff\xd8", 2) == 0) return jpeg_orientation(b);
    if (size >= 16 && memcmp(bytes, "\x89PNG\r\n\x1a\n", 8) == 0) return png_orientation(b);
    if (size >= 12 && memcmp(bytes, "RIFF", 4) == 0 && memcmp(b.at + 8, "WEBP", 4) == 0)
        return webp_orientation(b);
    return 1;
}

sdx_status sdx_image_turn(sdx_image *image, int orientation, sdx_vision_fault *fault)
{
    if (orientation < 1 || orientation > 8)
        return sdx_vision_fail(fault, SDX_INVALID_ARGUMENT, "orientation %d is not in 1 to 8",
                               orientation);
    if (orientation == 1) return SDX_OK;
    int w = image->width, h = image->height, c = image->channels;
    /* 5 to 8 exchange rows and columns: the picture's first row is the upright one's first (5, 8)
     * or last (6, 7) column. */
    bool swap = orientation >= 5;
    sdx_image out = {0};
    sdx_status status = sdx_image_init(&out, swap ? h : w, swap ? w : h, c, fault);
    if (status) return status;
    for (int y = 0; y < out.height; y++)
        for (int x = 0; x < out.width; x++) {
            int sx = swap ? y : x, sy = swap ? x : y;
            if (orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8)
                sx = w - 1 - sx;
            if (orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7)
                sy = h - 1 - sy;
            memcpy(out.pixels + ((size_t)y * (size_t)out.width + (size_t)x) * (size_t)c,
                   image->pixels + ((size_t)sy * (size_t)w + (size_t)sx) * (size_t)c, (size_t)c);
        }
    sdx_image_deinit(image);
    *image = out;
    return SDX_OK;
}
