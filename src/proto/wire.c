/* SPDX-License-Identifier: Apache-2.0
 * Protobuf's wire format (protobuf.dev/programming-guides/encoding): tags, varints, lengths. */
#include "proto/wire.h"

#include <string.h>

bool sdx_wire_varint(const unsigned char **at, const unsigned char *end, uint64_t *value)
{
    const unsigned char *p = *at;
    uint64_t result = 0;
    for (int shift = 0; shift < 70 && p < end; shift += 7) {
        unsigned char byte = *p++;
        result |= (uint64_t)(byte & 0x7f) << shift;
        if (shift == 63 && byte > 1) return false;
        if (byte < 0x80) {
            *at = p;
            *value = result;
            return true;
        }
    }
    return false;
}

size_t sdx_wire_offset(const struct sdx_wire *w, const unsigned char *at)
{
    return (size_t)(at - w->source->start);
}

uint32_t sdx_wire_u32(const unsigned char *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

uint64_t sdx_wire_u64(const unsigned char *at)
{
    return (uint64_t)sdx_wire_u32(at) | (uint64_t)sdx_wire_u32(at + 4) << 32;
}

int sdx_wire_put_varint(unsigned char *to, uint64_t value)
{
    int n = 0;
    while (value >= 0x80) {
        to[n++] = (unsigned char)(value | 0x80);
        value >>= 7;
    }
    to[n++] = (unsigned char)value;
    return n;
}

/* Why the varint at `at` could not be read. */
static enum sdx_status fail_varint(const struct sdx_wire *w, const unsigned char *at)
{
    const unsigned char *p = at;
    while (p < w->end && p - at < SDX_WIRE_VARINT_MAX && *p >= 0x80)
        p++;
    return SDX_FAIL(
        w->source->cx, w->source->status, "byte %zu: a number %s %s", sdx_wire_offset(w, at),
        p == w->end ? "is cut off at the end of" : "is longer than 64 bits in", w->message);
}

static enum sdx_status read_length(struct sdx_wire *w, struct sdx_wire_field *field, size_t fixed)
{
    const unsigned char *at = w->at;
    uint64_t length = fixed;
    if (fixed == 0 && !sdx_wire_varint(&w->at, w->end, &length)) return fail_varint(w, at);
    size_t left = (size_t)(w->end - w->at);
    if (length > left)
        return SDX_FAIL(w->source->cx, w->source->status,
                        "byte %zu: field %u of %s takes %llu bytes, but %zu are left",
                        sdx_wire_offset(w, field->tag), (unsigned)field->number, w->message,
                        (unsigned long long)length, left);
    field->payload = w->at;
    field->size = (size_t)length;
    w->at += length;
    return SDX_OK;
}

enum sdx_status sdx_wire_next(struct sdx_wire *w, struct sdx_wire_field *field)
{
    uint64_t tag = 0;
    *field = (struct sdx_wire_field){.tag = w->at};
    if (!sdx_wire_varint(&w->at, w->end, &tag)) return fail_varint(w, w->at);
    if (tag >> 3 == 0 || tag > UINT32_MAX)
        return SDX_FAIL(w->source->cx, w->source->status,
                        "byte %zu: field number %llu in %s, expected 1 to 536870911",
                        sdx_wire_offset(w, field->tag), (unsigned long long)(tag >> 3), w->message);
    field->number = (uint32_t)(tag >> 3);
    switch (tag & 7) {
    case SDX_WIRE_VARINT:
        field->type = SDX_WIRE_VARINT;
        if (!sdx_wire_varint(&w->at, w->end, &field->varint)) return fail_varint(w, w->at);
        return SDX_OK;
    case SDX_WIRE_FIXED64: field->type = SDX_WIRE_FIXED64; return read_length(w, field, 8);
    case SDX_WIRE_BYTES: field->type = SDX_WIRE_BYTES; return read_length(w, field, 0);
    case SDX_WIRE_FIXED32: field->type = SDX_WIRE_FIXED32; return read_length(w, field, 4);
    default:
        return SDX_FAIL(w->source->cx, w->source->status,
                        "byte %zu: field %u of %s has wire type %d, expected 0, 1, 2 or 5",
                        sdx_wire_offset(w, field->tag), (unsigned)field->number, w->message,
                        (int)(tag & 7));
    }
}
