/* SPDX-License-Identifier: Apache-2.0
 * Messages described by tables: one row a field says its number, form and place in a struct. One
 * reader (onnx_read.c) and one writer (onnx_write.c) serve every message. */
#ifndef SDX_PROTO_MESSAGES_H
#define SDX_PROTO_MESSAGES_H

#include <stddef.h>

#include "proto/onnx.h"
#include "proto/wire.h"

enum sdx_field_form {
    SDX_FIELD_NONE = 0, /* not a known number */
    SDX_FIELD_I32,      /* int32_t */
    SDX_FIELD_I64,      /* int64_t */
    SDX_FIELD_F32,      /* float */
    SDX_FIELD_TEXT,     /* struct sdx_str, UTF-8 without NUL */
    SDX_FIELD_BYTES,    /* struct sdx_str */
    SDX_FIELD_MESSAGE,  /* pointer to the message's struct */
    SDX_FIELD_INLINE,   /* a message whose members lie in this same struct */
    /* Repeated: a pointer to the elements, and their number as int64_t ... */
    SDX_FIELD_I32S, /* stored as int64_t */
    SDX_FIELD_I64S,
    SDX_FIELD_U64S,
    SDX_FIELD_F32S,
    SDX_FIELD_F64S,
    /* ... or, for these, as int32_t. */
    SDX_FIELD_TEXTS,
    SDX_FIELD_BYTESS,
    SDX_FIELD_MESSAGES
};

struct sdx_field {
    const char *name;
    const struct sdx_message *message; /* MESSAGE, INLINE, MESSAGES */
    uint16_t at;                       /* offset of the member */
    uint16_t at_other; /* offset of: the count (repeated), the `which` enum (which > 0), or the has_
                          flag (has) */
    uint8_t form;      /* enum sdx_field_form */
    uint8_t which;     /* member of a oneof: the enum's value */
    bool has;
    bool packed; /* how it is written; both are read */
};

struct sdx_message {
    const char *name;
    size_t size;
    uint16_t at_unknown;
    uint16_t count;                 /* of rows: the largest number + 1 */
    const struct sdx_field *fields; /* row = field number */
};

enum { SDX_MESSAGE_FIELDS_MAX = 32 }; /* rows of the longest table */

extern const struct sdx_message sdx_message_model, sdx_message_tensor, sdx_message_sparse;

/* Reads one message into the arena. `status` is what faults are called. */
SDX_MUST_CHECK enum sdx_status sdx_message_read(struct sdx_context *cx, struct sdx_arena *arena,
                                                const struct sdx_message *message,
                                                enum sdx_status status, const void *bytes,
                                                size_t size, void **out);
SDX_MUST_CHECK enum sdx_status sdx_message_write(struct sdx_context *cx,
                                                 const struct sdx_message *message,
                                                 const void *from, struct sdx_file_writer *to);

/* Rows of tables, for a struct S; `name_` is the field's name in onnx.proto. */
#define SDX_FIELD(form_, S, name_, member)                                                         \
    {                                                                                              \
        .name = #name_, .form = SDX_FIELD_##form_, .at = offsetof(struct S, member)                \
    }
#define SDX_FIELD_HAS(form_, S, name_, member, flag)                                               \
    {                                                                                              \
        .name = #name_, .form = SDX_FIELD_##form_, .at = offsetof(struct S, member), .has = true,  \
        .at_other = offsetof(struct S, flag)                                                       \
    }
#define SDX_FIELD_WHICH(form_, S, name_, member, value)                                            \
    {                                                                                              \
        .name = #name_, .form = SDX_FIELD_##form_, .at = offsetof(struct S, member),               \
        .which = (value), .at_other = offsetof(struct S, which)                                    \
    }
#define SDX_FIELD_PTR(S, name_, member, message_)                                                  \
    {                                                                                              \
        .name = #name_, .form = SDX_FIELD_MESSAGE, .at = offsetof(struct S, member),               \
        .message = &(message_)                                                                     \
    }
#define SDX_FIELD_PART_HAS(S, name_, flag, message_)                                               \
    {                                                                                              \
        .name = #name_, .form = SDX_FIELD_INLINE, .has = true,                                     \
        .at_other = offsetof(struct S, flag), .message = &(message_)                               \
    }
#define SDX_FIELD_PART_WHICH(S, name_, value, message_)                                            \
    {                                                                                              \
        .name = #name_, .form = SDX_FIELD_INLINE, .which = (value),                                \
        .at_other = offsetof(struct S, which), .message = &(message_)                              \
    }
#define SDX_FIELD_LIST(form_, S, name_, member, count_)                                            \
    {                                                                                              \
        .name = #name_, .form = SDX_FIELD_##form_, .at = offsetof(struct S, member),               \
        .at_other = offsetof(struct S, count_)                                                     \
    }
#define SDX_FIELD_PACKED(form_, S, name_, member, count_)                                          \
    {                                                                                              \
        .name = #name_, .form = SDX_FIELD_##form_, .at = offsetof(struct S, member),               \
        .at_other = offsetof(struct S, count_), .packed = true                                     \
    }
#define SDX_FIELD_MANY(S, name_, member, count_, message_)                                         \
    {                                                                                              \
        .name = #name_, .form = SDX_FIELD_MESSAGES, .at = offsetof(struct S, member),              \
        .at_other = offsetof(struct S, count_), .message = &(message_)                             \
    }
#define SDX_MESSAGE(name_, S, unknown_, rows)                                                      \
    {                                                                                              \
        .name = (name_), .size = sizeof(struct S), .at_unknown = offsetof(struct S, unknown_),     \
        .count = SDX_COUNT_OF(rows), .fields = (rows)                                              \
    }
#endif
