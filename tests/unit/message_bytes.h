/* SPDX-License-Identifier: Apache-2.0
 * Protobuf messages written by hand, field by field. */
#ifndef SDX_TESTS_MESSAGE_BYTES_H
#define SDX_TESTS_MESSAGE_BYTES_H

#include <string.h>

#include "proto/wire.h"

struct bytes {
    unsigned char at[4096];
    size_t size;
};

static inline void add_varint(struct bytes *b, uint64_t value)
{
    b->size += (size_t)sdx_wire_put_varint(b->at + b->size, value);
}

static inline void add_number(struct bytes *b, int field, uint64_t value)
{
    add_varint(b, (uint64_t)field << 3);
    add_varint(b, value);
}

static inline void add_bytes(struct bytes *b, int field, const void *from, size_t size)
{
    add_varint(b, (uint64_t)field << 3 | 2);
    add_varint(b, size);
    memcpy(b->at + b->size, from, size);
    b->size += size;
}

static inline void add_text(struct bytes *b, int field, const char *text)
{
    add_bytes(b, field, text, strlen(text));
}

static inline void add_message(struct bytes *b, int field, const struct bytes *inner)
{
    add_bytes(b, field, inner->at, inner->size);
}

static inline void add_fixed32(struct bytes *b, int field, uint32_t value)
{
    add_varint(b, (uint64_t)field << 3 | SDX_WIRE_FIXED32);
    for (int i = 0; i < 4; i++)
        b->at[b->size++] = (unsigned char)(value >> 8 * i);
}
#endif
