/* SPDX-License-Identifier: Apache-2.0
 * The writer of messages: one walk, done twice. The first adds up sizes and keeps the length of
 * every nested message and packed array in the order of the walk; the second writes and takes the
 * lengths from there, so nothing is measured twice. */
#include "proto/messages.h"

struct writer {
    struct sdx_context *cx;
    bool measures; /* the first walk */
    struct sdx_file_writer *to;
    struct sdx_text *text; /* instead of a file */
    uint64_t total;        /* bytes of this walk so far */
    uint64_t *lengths;
    size_t capacity, next; /* slots */
    size_t used;
    unsigned char buffer[4096];
};

#define MEMBER(base, offset, type) ((const type *)(const void *)((const char *)(base) + (offset)))

static enum sdx_status emit(struct writer *w, const struct sdx_message *message, const void *base);

static enum sdx_status hand_on(struct writer *w, const void *bytes, size_t size)
{
    if (w->to) return sdx_file_writer_put(w->to, bytes, size);
    sdx_text_add_bytes(w->text, bytes, size);
    return w->text->ok ? SDX_OK : SDX_FAIL_MEMORY(w->cx);
}

static enum sdx_status flush(struct writer *w)
{
    size_t used = w->used;
    w->used = 0;
    return used > 0 ? hand_on(w, w->buffer, used) : SDX_OK;
}

static enum sdx_status put_bytes(struct writer *w, const void *bytes, size_t size)
{
    w->total += size;
    if (w->measures || size == 0) return SDX_OK;
    if (size > sizeof w->buffer - w->used) SDX_TRY(flush(w));
    if (size > sizeof w->buffer) return hand_on(w, bytes, size);
    memcpy(w->buffer + w->used, bytes, size);
    w->used += size;
    return SDX_OK;
}

static enum sdx_status put_varint(struct writer *w, uint64_t value)
{
    unsigned char bytes[SDX_WIRE_VARINT_MAX];
    return put_bytes(w, bytes, (size_t)sdx_wire_put_varint(bytes, value));
}

static enum sdx_status put_tag(struct writer *w, int number, enum sdx_wire_type type)
{
    return put_varint(w, (uint64_t)number << 3 | type);
}

static enum sdx_status put_fixed(struct writer *w, uint64_t bits, int size)
{
    unsigned char bytes[8];
    for (int i = 0; i < size; i++)
        bytes[i] = (unsigned char)(bits >> 8 * i);
    return put_bytes(w, bytes, (size_t)size);
}

static enum sdx_status put_text(struct writer *w, int number, struct sdx_str text)
{
    SDX_TRY(put_tag(w, number, SDX_WIRE_BYTES));
    SDX_TRY(put_varint(w, text.len));
    return put_bytes(w, text.ptr, text.len);
}

/* A length-delimited part begins: in the measuring walk a slot is kept for its length, which
 * end_part fills in; in the writing walk the length is written. */
static enum sdx_status begin_part(struct writer *w, int number, size_t *slot, uint64_t *begin)
{
    SDX_TRY(put_tag(w, number, SDX_WIRE_BYTES));
    *slot = w->next++;
    if (!w->measures) return put_varint(w, w->lengths[*slot]);
    if (*slot == w->capacity) {
        size_t capacity = w->capacity ? 2 * w->capacity : 256, bytes = 0;
        if (!sdx_mul_size(capacity, sizeof *w->lengths, &bytes)) return SDX_FAIL_MEMORY(w->cx);
        uint64_t *lengths = sdx_mem_realloc(w->cx->mem, SDX_MEM_MODEL, w->lengths, bytes);
        if (!lengths) return SDX_FAIL_MEMORY(w->cx);
        w->lengths = lengths;
        w->capacity = capacity;
    }
    *begin = w->total;
    return SDX_OK;
}

static enum sdx_status end_part(struct writer *w, size_t slot, uint64_t begin)
{
    if (!w->measures) return SDX_OK;
    w->lengths[slot] = w->total - begin;
    return put_varint(w, w->lengths[slot]);
}

static enum sdx_status emit_nested(struct writer *w, int number, const struct sdx_message *message,
                                   const void *base)
{
    size_t slot = 0;
    uint64_t begin = 0;
    SDX_TRY(begin_part(w, number, &slot, &begin));
    SDX_TRY(emit(w, message, base));
    return end_part(w, slot, begin);
}

static uint64_t number_bits(const struct sdx_field *row, const void *array, int64_t i)
{
    uint32_t bits = 0;
    if (row->form != SDX_FIELD_F32S) return ((const uint64_t *)array)[i];
    memcpy(&bits, (const float *)array + i, sizeof bits);
    return bits;
}

static enum sdx_status put_number(struct writer *w, const struct sdx_field *row, const void *array,
                                  int64_t i)
{
    uint64_t bits = 0;
    if (row->form == SDX_FIELD_F32S) return put_fixed(w, number_bits(row, array, i), 4);
    if (row->form != SDX_FIELD_F64S) return put_varint(w, number_bits(row, array, i));
    memcpy(&bits, (const double *)array + i, sizeof bits);
    return put_fixed(w, bits, 8);
}

static enum sdx_status emit_numbers(struct writer *w, int number, const struct sdx_field *row,
                                    const void *base)
{
    const void *array = *MEMBER(base, row->at, void *const);
    const int64_t count = *MEMBER(base, row->at_other, int64_t);
    const enum sdx_wire_type type = row->form == SDX_FIELD_F32S   ? SDX_WIRE_FIXED32
                                    : row->form == SDX_FIELD_F64S ? SDX_WIRE_FIXED64
                                                                  : SDX_WIRE_VARINT;
    size_t slot = 0;
    uint64_t begin = 0;
    if (count == 0) return SDX_OK;
    if (row->packed) SDX_TRY(begin_part(w, number, &slot, &begin));
    if (row->packed && type != SDX_WIRE_VARINT) { /* little endian, as we are */
        SDX_TRY(put_bytes(w, array, (size_t)count * (type == SDX_WIRE_FIXED32 ? 4 : 8)));
        return end_part(w, slot, begin);
    }
    for (int64_t i = 0; i < count; i++) {
        if (!row->packed) SDX_TRY(put_tag(w, number, type));
        SDX_TRY(put_number(w, row, array, i));
    }
    return row->packed ? end_part(w, slot, begin) : SDX_OK;
}

static bool is_present(const struct sdx_field *row, const void *base)
{
    if (row->which) {
        int which = 0;
        memcpy(&which, MEMBER(base, row->at_other, char), sizeof which);
        return which == row->which;
    }
    if (row->has && *MEMBER(base, row->at_other, bool)) return true;
    switch ((enum sdx_field_form)row->form) {
    case SDX_FIELD_I32: return *MEMBER(base, row->at, int32_t) != 0;
    case SDX_FIELD_I64: return *MEMBER(base, row->at, int64_t) != 0;
    case SDX_FIELD_F32: return *MEMBER(base, row->at, float) != 0;
    case SDX_FIELD_TEXT:
    case SDX_FIELD_BYTES: return MEMBER(base, row->at, struct sdx_str)->ptr != NULL;
    case SDX_FIELD_MESSAGE: return *MEMBER(base, row->at, void *const) != NULL;
    default: return false;
    }
}

static enum sdx_status emit_single(struct writer *w, int number, const struct sdx_field *row,
                                   const void *base)
{
    uint32_t bits = 0;
    if (!is_present(row, base)) return SDX_OK;
    switch ((enum sdx_field_form)row->form) {
    case SDX_FIELD_I32:
        SDX_TRY(put_tag(w, number, SDX_WIRE_VARINT));
        return put_varint(w, (uint64_t)(int64_t)*MEMBER(base, row->at, int32_t));
    case SDX_FIELD_I64:
        SDX_TRY(put_tag(w, number, SDX_WIRE_VARINT));
        return put_varint(w, (uint64_t)*MEMBER(base, row->at, int64_t));
    case SDX_FIELD_F32:
        SDX_TRY(put_tag(w, number, SDX_WIRE_FIXED32));
        memcpy(&bits, MEMBER(base, row->at, float), sizeof bits);
        return put_fixed(w, bits, 4);
    case SDX_FIELD_TEXT:
    case SDX_FIELD_BYTES: return put_text(w, number, *MEMBER(base, row->at, struct sdx_str));
    case SDX_FIELD_MESSAGE:
        return emit_nested(w, number, row->message, *MEMBER(base, row->at, void *const));
    default: return emit_nested(w, number, row->message, base);
    }
}

static enum sdx_status emit_field(struct writer *w, int number, const struct sdx_field *row,
                                  const void *base)
{
    switch ((enum sdx_field_form)row->form) {
    case SDX_FIELD_NONE: return SDX_OK;
    case SDX_FIELD_I32S:
    case SDX_FIELD_I64S:
    case SDX_FIELD_U64S:
    case SDX_FIELD_F32S:
    case SDX_FIELD_F64S: return emit_numbers(w, number, row, base);
    case SDX_FIELD_TEXTS:
    case SDX_FIELD_BYTESS: {
        const struct sdx_str *texts = *MEMBER(base, row->at, struct sdx_str *const);
        const int32_t count = *MEMBER(base, row->at_other, int32_t);
        for (int32_t i = 0; i < count; i++)
            SDX_TRY(put_text(w, number, texts[i]));
        return SDX_OK;
    }
    case SDX_FIELD_MESSAGES: {
        const char *at = *MEMBER(base, row->at, char *const);
        const int32_t count = *MEMBER(base, row->at_other, int32_t);
        for (int32_t i = 0; i < count; i++)
            SDX_TRY(emit_nested(w, number, row->message, at + (size_t)i * row->message->size));
        return SDX_OK;
    }
    default: return emit_single(w, number, row, base);
    }
}

static enum sdx_status emit(struct writer *w, const struct sdx_message *message, const void *base)
{
    for (int i = 1; i < message->count; i++)
        SDX_TRY(emit_field(w, i, &message->fields[i], base));
    const struct sdx_onnx_unknown *unknown =
        MEMBER(base, message->at_unknown, struct sdx_onnx_unknown);
    for (int32_t i = 0; i < unknown->count; i++)
        SDX_TRY(put_bytes(w, unknown->spans[i].ptr, unknown->spans[i].len));
    return SDX_OK;
}

static enum sdx_status write_message(struct writer *w, const struct sdx_message *message,
                                     const void *from)
{
    w->measures = true;
    enum sdx_status status = emit(w, message, from);
    w->measures = false;
    w->next = 0;
    if (status == SDX_OK) status = emit(w, message, from);
    if (status == SDX_OK) status = flush(w);
    sdx_mem_free(w->cx->mem, w->lengths);
    return status;
}

enum sdx_status sdx_message_write(struct sdx_context *cx, const struct sdx_message *message,
                                  const void *from, struct sdx_file_writer *to)
{
    struct writer w = {.cx = cx, .to = to};
    return write_message(&w, message, from);
}

enum sdx_status sdx_onnx_write_model(struct sdx_context *cx, const struct sdx_onnx_model *model,
                                     struct sdx_file_writer *to)
{
    return sdx_message_write(cx, &sdx_message_model, model, to);
}

enum sdx_status sdx_onnx_write_model_text(struct sdx_context *cx,
                                          const struct sdx_onnx_model *model, struct sdx_text *to)
{
    struct writer w = {.cx = cx, .text = to};
    return write_message(&w, &sdx_message_model, model);
}
