/* SPDX-License-Identifier: Apache-2.0
 * BMP (core, info, V4 and V5 headers; 1 to 32 bits; run lengths; bit fields) and PNM (P1 to P6).
 * Both are simple enough to need no library. */
#include "codecs/sink.h"

/* ---- BMP ---- */

struct bmp {
    const unsigned char *data;
    size_t size, pixels; /* pixels: where they begin */
    int64_t width, height;
    bool from_top;
    unsigned bits, compression;
    unsigned masks[3];
    unsigned char palette[256][3];
    unsigned colours;
};

enum { BMP_PLAIN = 0, BMP_RLE8 = 1, BMP_RLE4 = 2, BMP_FIELDS = 3, BMP_FIELDS_ALPHA = 6 };

static enum sdx_codecs_result read_bmp_header(struct sdx_codecs_sink *sink, struct bmp *b)
{
    const unsigned char *h = b->data + 14;
    if (b->size < 26) return sdx_codecs_fail(sink, "BMP: cut off in its header");
    b->pixels = sdx_codecs_u32(b->data + 10);
    size_t length = sdx_codecs_u32(h), entry = 4, used = 0;
    if (length == 12) {
        b->width = sdx_codecs_u16(h + 4);
        b->height = sdx_codecs_u16(h + 6);
        b->bits = sdx_codecs_u16(h + 10);
        entry = 3;
    } else if (length >= 40 && length <= 1024 && b->size >= 14 + length) {
        b->width = (int32_t)sdx_codecs_u32(h + 4);
        b->height = (int32_t)sdx_codecs_u32(h + 8);
        b->bits = sdx_codecs_u16(h + 14);
        b->compression = sdx_codecs_u32(h + 16);
        used = sdx_codecs_u32(h + 32);
        b->from_top = b->height < 0;
        if (b->from_top) b->height = -b->height;
    } else {
        return sdx_codecs_fail(sink, "BMP: header of %zu bytes", length);
    }
    size_t at = 14 + length;
    if (b->compression == BMP_FIELDS || b->compression == BMP_FIELDS_ALPHA) {
        const unsigned char *masks = b->data + 14 + 40; /* inside of longer headers */
        if (b->size < 14 + 40 + 12) return sdx_codecs_fail(sink, "BMP: cut off in its masks");
        for (int i = 0; i < 3; i++)
            b->masks[i] = sdx_codecs_u32(masks + 4 * i);
        if (length == 40) at += b->compression == BMP_FIELDS ? 12 : 16;
    } else if (b->bits == 16) {
        b->masks[0] = 0x7c00;
        b->masks[1] = 0x3e0;
        b->masks[2] = 0x1f;
    }
    if (b->bits > 8) return SDX_CODECS_OK;
    b->colours = used && used <= 256 ? (unsigned)used : 1u << b->bits;
    for (unsigned i = 0; i < b->colours && at + entry <= b->size; i++, at += entry)
        for (int c = 0; c < 3; c++)
            b->palette[i][c] = b->data[at + 2 - (size_t)c];
    return SDX_CODECS_OK;
}

/* The value in a mask's bits as 0..255. */
static unsigned char field_of(uint32_t v, uint32_t mask)
{
    if (!mask) return 0;
    uint32_t top = mask;
    while (!(top & 1)) {
        top >>= 1;
        v >>= 1;
        mask >>= 1;
    }
    return (unsigned char)(((uint64_t)(v & mask) * 255 + mask / 2) / mask);
}

static void bmp_row(const struct bmp *b, const unsigned char *from, unsigned char *to)
{
    for (int64_t x = 0; x < b->width; x++, to += 3) {
        if (b->bits <= 8) {
            int64_t bit = x * b->bits;
            unsigned shift = 8 - b->bits - (unsigned)(bit & 7);
            unsigned index = from[bit >> 3] >> shift & ((1u << b->bits) - 1);
            memcpy(to, b->palette[index], 3);
        } else if (b->masks[0] | b->masks[1] | b->masks[2]) {
            uint32_t v =
                b->bits == 16 ? sdx_codecs_u16(from + 2 * x) : sdx_codecs_u32(from + 4 * x);
            for (int c = 0; c < 3; c++)
                to[c] = field_of(v, b->masks[c]);
        } else {
            const unsigned char *p = from + x * (b->bits / 8);
            to[0] = p[2];
            to[1] = p[1];
            to[2] = p[0];
        }
    }
}

/* Run lengths into one byte an index; what the file does not set stays 0. */
static enum sdx_codecs_result unpack_runs(struct sdx_codecs_sink *sink, const struct bmp *b,
                                          unsigned char *indices)
{
    bool is_half = b->compression == BMP_RLE4;
    int64_t x = 0, y = 0;
    size_t at = b->pixels;
    while (at + 2 <= b->size && y < b->height) {
        unsigned count = b->data[at], value = b->data[at + 1];
        at += 2;
        if (count) {
            for (unsigned i = 0; i < count && x < b->width; i++, x++)
                indices[y * b->width + x] = (unsigned char)(!is_half ? value
                                                            : i & 1  ? value & 15
                                                                     : value >> 4);
        } else if (value == 0) {
            x = 0;
            y++;
        } else if (value == 1) {
            break;
        } else if (value == 2) {
            if (at + 2 > b->size) break;
            x += b->data[at];
            y += b->data[at + 1];
            at += 2;
        } else {
            size_t bytes = is_half ? (value + 1) / 2 : value;
            if (at + bytes > b->size) return sdx_codecs_fail(sink, "BMP: cut off in a run");
            for (unsigned i = 0; i < value && x < b->width; i++, x++) {
                unsigned v = b->data[at + (is_half ? i / 2 : i)];
                indices[y * b->width + x] = (unsigned char)(!is_half ? v : i & 1 ? v & 15 : v >> 4);
            }
            at += bytes + (bytes & 1);
        }
    }
    return SDX_CODECS_OK;
}

static enum sdx_codecs_result bmp_rows(struct sdx_codecs_sink *sink, const struct bmp *b,
                                       const unsigned char *pixels, size_t stride)
{
    unsigned char *row = malloc((size_t)b->width * 3);
    if (!row) return sdx_codecs_fail_memory(sink);
    for (int64_t y = 0; y < b->height; y++) {
        bmp_row(b, pixels + (size_t)y * stride, row);
        sdx_codecs_row(sink, b->from_top ? y : b->height - 1 - y, row, 3);
    }
    free(row);
    return SDX_CODECS_OK;
}

enum sdx_codecs_result sdx_codecs_read_bmp(struct sdx_codecs_sink *sink, const unsigned char *data,
                                           size_t size)
{
    struct bmp b = {.data = data, .size = size};
    enum sdx_codecs_result result = read_bmp_header(sink, &b);
    if (result != SDX_CODECS_OK) return result;
    bool is_packed = b.compression == BMP_RLE8 || b.compression == BMP_RLE4;
    bool has_fields = b.compression == BMP_FIELDS || b.compression == BMP_FIELDS_ALPHA;
    bool is_known =
        b.bits == 1 || b.bits == 4 || b.bits == 8 || b.bits == 16 || b.bits == 24 || b.bits == 32;
    if (!is_known || (b.compression == BMP_RLE8 && b.bits != 8) ||
        (b.compression == BMP_RLE4 && b.bits != 4) ||
        (has_fields && b.bits != 16 && b.bits != 32) ||
        (!is_packed && !has_fields && b.compression != BMP_PLAIN))
        return sdx_codecs_fail(sink, "BMP: %u bits a pixel with compression %u", b.bits,
                               b.compression);
    uint64_t stride = ((uint64_t)(b.width > 0 ? b.width : 0) * b.bits + 31) / 32 * 4;
    uint64_t bytes = stride * (uint64_t)(b.height > 0 ? b.height : 0);
    if (b.pixels > size || (!is_packed && bytes > size - b.pixels))
        return sdx_codecs_fail(sink, "BMP: cut off in its pixels");
    result = sdx_codecs_begin(sink, b.height, b.width);
    if (result != SDX_CODECS_OK) return result;
    if (!is_packed) return bmp_rows(sink, &b, data + b.pixels, (size_t)stride);
    unsigned char *indices = calloc((size_t)b.height, (size_t)b.width);
    if (!indices) return sdx_codecs_fail_memory(sink);
    result = unpack_runs(sink, &b, indices);
    b.bits = 8;
    if (result == SDX_CODECS_OK) result = bmp_rows(sink, &b, indices, (size_t)b.width);
    free(indices);
    return result;
}

/* ---- PNM ---- */

struct text {
    const unsigned char *data;
    size_t size, at;
};

/* The next number of the header or of a text picture; comments are skipped. -1: there is none. */
static int64_t next_number(struct text *t, bool is_bit)
{
    while (t->at < t->size) {
        unsigned char c = t->data[t->at];
        if (c == '#') {
            while (t->at < t->size && t->data[t->at] != '\n')
                t->at++;
        } else if (c == ' ' || (c >= '\t' && c <= '\r')) {
            t->at++;
        } else {
            break;
        }
    }
    int64_t v = -1;
    while (t->at < t->size && t->data[t->at] >= '0' && t->data[t->at] <= '9') {
        v = (v < 0 ? 0 : v * 10) + (t->data[t->at++] - '0');
        if (is_bit || v > INT32_MAX) break; /* the bits of P1 may touch */
    }
    return v;
}

/* Sample of 0..most as 0..255. */
static unsigned char scaled(int64_t v, int64_t most)
{
    if (most == 255) return (unsigned char)v;
    return (unsigned char)((v * 510 + most) / (2 * most));
}

static enum sdx_codecs_result pnm_row(struct sdx_codecs_sink *sink, struct text *t, int kind,
                                      int64_t most, unsigned char *row)
{
    int64_t values = sink->width * (kind == 3 || kind == 6 ? 3 : 1);
    size_t bytes = kind == 4 ? (size_t)(values + 7) / 8 : (size_t)values * (most > 255 ? 2 : 1);
    if (kind >= 4 && bytes > t->size - t->at)
        return sdx_codecs_fail(sink, "PNM: cut off in its pixels");
    const unsigned char *from = t->data + t->at;
    for (int64_t i = 0; i < values; i++) {
        int64_t v;
        if (kind <= 3)
            v = next_number(t, kind == 1);
        else if (kind == 4)
            v = from[i / 8] >> (7 - i % 8) & 1;
        else
            v = most > 255 ? (int64_t)from[2 * i] << 8 | from[2 * i + 1] : from[i];
        if (v < 0) return sdx_codecs_fail(sink, "PNM: cut off in its pixels");
        if (v > most) v = most;
        row[i] = kind == 1 || kind == 4 ? (unsigned char)(v ? 0 : 255) : scaled(v, most);
    }
    if (kind >= 4) t->at += bytes;
    return SDX_CODECS_OK;
}

enum sdx_codecs_result sdx_codecs_read_pnm(struct sdx_codecs_sink *sink, const unsigned char *data,
                                           size_t size)
{
    struct text t = {data, size, 2};
    int kind = size > 2 ? data[1] - '0' : 0;
    if (kind < 1 || kind > 6) return sdx_codecs_fail(sink, "PNM: neither of P1 to P6");
    int64_t width = next_number(&t, false), height = next_number(&t, false), most = 1;
    if (kind != 1 && kind != 4) most = next_number(&t, false);
    if (width < 0 || height < 0 || most < 1 || most > 65535)
        return sdx_codecs_fail(sink, "PNM: its header is no header");
    if (kind >= 4 && t.at >= size) return sdx_codecs_fail(sink, "PNM: cut off in its header");
    if (kind >= 4) t.at++; /* one white space */
    /* A pixel takes at least a bit: no bomb. */
    if (width > 0 && height > (int64_t)(8 * (size - t.at)) / width)
        return sdx_codecs_fail(sink, "PNM: cut off in its pixels");
    enum sdx_codecs_result result = sdx_codecs_begin(sink, height, width);
    if (result != SDX_CODECS_OK) return result;
    int channels = kind == 3 || kind == 6 ? 3 : 1;
    unsigned char *row = malloc((size_t)width * (size_t)channels);
    if (!row) return sdx_codecs_fail_memory(sink);
    for (int64_t y = 0; y < height && result == SDX_CODECS_OK; y++) {
        result = pnm_row(sink, &t, kind, most, row);
        if (result == SDX_CODECS_OK) sdx_codecs_row(sink, y, row, channels);
    }
    free(row);
    return result;
}
