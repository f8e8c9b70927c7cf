/* SPDX-License-Identifier: Apache-2.0
 * A block of bytes that grows, and the wire format of protobuf written into it: what models made by
 * programs become before the engine reads them. */
#ifndef SDX_ABI_ORT_BYTES_H
#define SDX_ABI_ORT_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* {0} is empty. Once memory is missing `failed` stays set and nothing more is added. */
struct ort_bytes {
    unsigned char *data;
    size_t size, capacity;
    bool failed;
};

void ort_bytes_add(struct ort_bytes *bytes, const void *data, size_t size);
void ort_bytes_deinit(struct ort_bytes *bytes);

/* A field of the message under way. Text NULL or "": nothing is written. */
void ort_pb_int(struct ort_bytes *bytes, int field, int64_t value);
void ort_pb_float(struct ort_bytes *bytes, int field, float value);
void ort_pb_bytes(struct ort_bytes *bytes, int field, const void *data, size_t size);
void ort_pb_text(struct ort_bytes *bytes, int field, const char *text);
/* A message within it, which is emptied for the next. */
void ort_pb_message(struct ort_bytes *bytes, int field, struct ort_bytes *message);
/* The head of a field of `size` bytes that the caller adds. */
void ort_pb_head(struct ort_bytes *bytes, int field, size_t size);

/* One field of a message that is read. */
struct ort_pb_field {
    int number, wire;
    uint64_t value;            /* varint */
    const unsigned char *data; /* of wire type 2 */
    size_t size;
    const unsigned char *begin, *end; /* the field with its tag */
};

/* The field at *at, which goes behind it; false at the end and where the bytes are broken, then *at
 * is not `end`. */
bool ort_pb_next(const unsigned char **at, const unsigned char *end, struct ort_pb_field *field);
#endif
