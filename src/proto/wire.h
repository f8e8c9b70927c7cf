/* SPDX-License-Identifier: Apache-2.0
 * Protobuf's wire format: a reader that never leaves its bounds and tells byte offsets. */
#ifndef SDX_PROTO_WIRE_H
#define SDX_PROTO_WIRE_H

#include "base/context.h"

enum sdx_wire_type {
    SDX_WIRE_VARINT = 0,
    SDX_WIRE_FIXED64 = 1,
    SDX_WIRE_BYTES = 2,
    SDX_WIRE_FIXED32 = 5
};

enum { SDX_WIRE_VARINT_MAX = 10 };

/* What all messages of one file share. */
struct sdx_wire_source {
    struct sdx_context *cx;
    enum sdx_status status; /* of faults: SDX_BAD_MODEL or SDX_BAD_DATA */
    const unsigned char *start;
};

/* One message: what is left of it. */
struct sdx_wire {
    const struct sdx_wire_source *source;
    const char *message; /* its name, for texts */
    const unsigned char *at, *end;
};

struct sdx_wire_field {
    const unsigned char *tag;     /* where the field begins */
    const unsigned char *payload; /* SDX_WIRE_BYTES and the fixed types */
    size_t size;                  /* of the payload */
    uint64_t varint;
    uint32_t number;
    enum sdx_wire_type type;
};

/* The next field; call while w->at < w->end. */
SDX_MUST_CHECK enum sdx_status sdx_wire_next(struct sdx_wire *w, struct sdx_wire_field *field);
/* A varint at *at, which moves past it. false: it runs over `end`, or is longer than 64 bits. */
bool sdx_wire_varint(const unsigned char **at, const unsigned char *end, uint64_t *value);
size_t sdx_wire_offset(const struct sdx_wire *w, const unsigned char *at);
uint32_t sdx_wire_u32(const unsigned char *at);
uint64_t sdx_wire_u64(const unsigned char *at);
/* Writes at most SDX_WIRE_VARINT_MAX bytes; returns how many. */
int sdx_wire_put_varint(unsigned char *to, uint64_t value);
#endif
