/* SPDX-License-Identifier: Apache-2.0
 * Bytes that grow, and protobuf's wire format. */
#include "ort_bytes.h"

#include <stdlib.h>
#include <string.h>

enum { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

void ort_bytes_add(struct ort_bytes *bytes, const void *data, size_t size)
{
    if (bytes->failed || size == 0) return;
    if (size > bytes->capacity - bytes->size) {
        size_t capacity = bytes->capacity ? bytes->capacity : 64;
        while (capacity < SIZE_MAX / 2 && capacity - bytes->size < size)
            capacity *= 2;
        unsigned char *grown =
            capacity - bytes->size >= size ? realloc(bytes->data, capacity) : NULL;
        if (!grown) {
            bytes->failed = true;
            return;
        }
        bytes->data = grown;
        bytes->capacity = capacity;
    }
    memcpy(bytes->data + bytes->size, data, size);
    bytes->size += size;
}

void ort_bytes_deinit(struct ort_bytes *bytes)
{
    free(bytes->data);
    *bytes = (struct ort_bytes){0};
}

static void add_varint(struct ort_bytes *bytes, uint64_t value)
{
    unsigned char digits[10];
    size_t count = 0;
    do {
        digits[count++] = (unsigned char)((value & 127) | (value > 127 ? 128 : 0));
        value >>= 7;
    } while (value);
    ort_bytes_add(bytes, digits, count);
}

static void add_tag(struct ort_bytes *bytes, int field, int wire)
{
    add_varint(bytes, (uint64_t)field << 3 | (uint64_t)wire);
}

void ort_pb_int(struct ort_bytes *bytes, int field, int64_t value)
{
    add_tag(bytes, field, WIRE_VARINT);
    add_varint(bytes, (uint64_t)value);
}

void ort_pb_float(struct ort_bytes *bytes, int field, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    const unsigned char little[4] = {bits & 255, bits >> 8 & 255, bits >> 16 & 255, bits >> 24};
    add_tag(bytes, field, WIRE_32);
    ort_bytes_add(bytes, little, sizeof little);
}

void ort_pb_head(struct ort_bytes *bytes, int field, size_t size)
{
    add_tag(bytes, field, WIRE_BYTES);
    add_varint(bytes, size);
}

void ort_pb_bytes(struct ort_bytes *bytes, int field, const void *data, size_t size)
{
    ort_pb_head(bytes, field, size);
    ort_bytes_add(bytes, data, size);
}

void ort_pb_text(struct ort_bytes *bytes, int field, const char *text)
{
    if (text && *text) ort_pb_bytes(bytes, field, text, strlen(text));
}

void ort_pb_message(struct ort_bytes *bytes, int field, struct ort_bytes *message)
{
    ort_pb_bytes(bytes, field, message->data, message->size);
    bytes->failed |= message->failed;
    message->size = 0;
}

static bool read_varint(const unsigned char **at, const unsigned char *end, uint64_t *value)
{
    *value = 0;
    for (int shift = 0; shift < 64 && *at < end; shift += 7) {
        const unsigned char byte = *(*at)++;
        *value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) return true;
    }
    return false;
}

bool ort_pb_next(const unsigned char **at, const unsigned char *end, struct ort_pb_field *field)
{
    if (*at >= end) return false;
    const unsigned char *p = *at;
    uint64_t tag = 0;
    *field = (struct ort_pb_field){.begin = p};
    if (!read_varint(&p, end, &tag) || tag >> 3 == 0 || tag >> 32 != 0) return false;
    field->number = (int)(tag >> 3);
    field->wire = (int)(tag & 7);
    if (field->wire == WIRE_VARINT) {
        if (!read_varint(&p, end, &field->value)) return false;
    } else if (field->wire == WIRE_BYTES) {
        uint64_t size = 0;
        if (!read_varint(&p, end, &size) || size > (uint64_t)(end - p)) return false;
        field->data = p;
        field->size = (size_t)size;
        p += size;
    } else {
        const ptrdiff_t size = field->wire == WIRE_64   ? 8
                               : field->wire == WIRE_32 ? 4
                                                        : end - p + 1;
        if (size > end - p) return false;
        p += size;
    }
    *at = field->end = p;
    return true;
}
