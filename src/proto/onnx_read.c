/* SPDX-License-Identifier: Apache-2.0
 * The reader of messages: two passes over each. The first checks the wire and counts, so that every
 * array is allocated once and exactly; the second decodes. Nested messages are skipped by their
 * length in the first pass, so the work is linear in the bytes and the depth bounds the stack. */
#include "proto/messages.h"

struct reader {
    struct sdx_wire_source source;
    struct sdx_arena *arena;
};

#define MEMBER(base, offset, type) ((type *)(void *)((char *)(base) + (offset)))

static enum sdx_status read_fields(const struct reader *r, const struct sdx_message *message,
                                   void *base, const unsigned char *at, const unsigned char *end,
                                   int depth);

static const struct sdx_field *find_field(const struct sdx_message *message, uint32_t number)
{
    static const struct sdx_field none = {0};
    return number < message->count ? &message->fields[number] : &none;
}

/* ---- first pass ---- */

struct counts {
    int64_t of[SDX_MESSAGE_FIELDS_MAX];
    int64_t unknown;
};

static enum sdx_status fail_type(const struct sdx_wire *w, const struct sdx_wire_field *f,
                                 const struct sdx_field *row, enum sdx_wire_type expected)
{
    return SDX_FAIL(w->source->cx, w->source->status,
                    "byte %zu: %s of %s (field %u) has wire type %d, expected %d",
                    sdx_wire_offset(w, f->tag), row->name, w->message, (unsigned)f->number,
                    (int)f->type, (int)expected);
}

/* Elements of one packed block. */
static enum sdx_status count_packed(const struct sdx_wire *w, const struct sdx_wire_field *f,
                                    const struct sdx_field *row, int64_t *count)
{
    size_t n = 0;
    bool whole = true;
    if (row->form == SDX_FIELD_F32S || row->form == SDX_FIELD_F64S) {
        size_t size = row->form == SDX_FIELD_F32S ? 4 : 8;
        n = f->size / size;
        whole = f->size % size == 0;
    } else {
        for (size_t i = 0; i < f->size; i++)
            n += f->payload[i] < 0x80;
        whole = f->size == 0 || f->payload[f->size - 1] < 0x80;
    }
    if (!whole)
        return SDX_FAIL(w->source->cx, w->source->status, "byte %zu: %s of %s ends within a number",
                        sdx_wire_offset(w, f->tag), row->name, w->message);
    *count += (int64_t)n;
    return SDX_OK;
}

static enum sdx_status count_field(const struct sdx_wire *w, const struct sdx_wire_field *f,
                                   const struct sdx_field *row, struct counts *counts)
{
    int64_t *count = &counts->of[f->number];
    enum sdx_wire_type type = SDX_WIRE_BYTES;
    switch ((enum sdx_field_form)row->form) {
    case SDX_FIELD_I32:
    case SDX_FIELD_I64: type = SDX_WIRE_VARINT; break;
    case SDX_FIELD_F32: type = SDX_WIRE_FIXED32; break;
    case SDX_FIELD_I32S:
    case SDX_FIELD_I64S:
    case SDX_FIELD_U64S:
    case SDX_FIELD_F32S:
    case SDX_FIELD_F64S:
        if (f->type == SDX_WIRE_BYTES) return count_packed(w, f, row, count);
        type = row->form == SDX_FIELD_F32S   ? SDX_WIRE_FIXED32
               : row->form == SDX_FIELD_F64S ? SDX_WIRE_FIXED64
                                             : SDX_WIRE_VARINT;
        break;
    default: break;
    }
    if (f->type != type) return fail_type(w, f, row, type);
    ++*count;
    if (*count > 1 && (row->form == SDX_FIELD_MESSAGE || row->form == SDX_FIELD_INLINE))
        return SDX_FAIL(w->source->cx, w->source->status, "byte %zu: %s of %s is given twice",
                        sdx_wire_offset(w, f->tag), row->name, w->message);
    if (*count > INT32_MAX)
        return SDX_FAIL(w->source->cx, w->source->status,
                        "byte %zu: %s of %s has more than %d elements", sdx_wire_offset(w, f->tag),
                        row->name, w->message, INT32_MAX);
    return SDX_OK;
}

static enum sdx_status count_fields(struct sdx_wire *w, const struct sdx_message *message,
                                    struct counts *counts)
{
    while (w->at < w->end) {
        struct sdx_wire_field f;
        SDX_TRY(sdx_wire_next(w, &f));
        const struct sdx_field *row = find_field(message, f.number);
        if (row->form == SDX_FIELD_NONE)
            counts->unknown++;
        else
            SDX_TRY(count_field(w, &f, row, counts));
    }
    return SDX_OK;
}

static size_t element_size(const struct sdx_field *row)
{
    switch ((enum sdx_field_form)row->form) {
    case SDX_FIELD_F32S: return sizeof(float);
    case SDX_FIELD_I32S:
    case SDX_FIELD_I64S:
    case SDX_FIELD_U64S:
    case SDX_FIELD_F64S: return 8;
    case SDX_FIELD_TEXTS:
    case SDX_FIELD_BYTESS: return sizeof(struct sdx_str);
    case SDX_FIELD_MESSAGES: return row->message->size;
    default: return 0;
    }
}

/* Arrays for what was counted; their counts start at 0 and grow in the second pass. */
static enum sdx_status allocate(const struct reader *r, const struct sdx_message *message,
                                void *base, const struct counts *counts)
{
    for (int i = 0; i < message->count; i++) {
        const struct sdx_field *row = &message->fields[i];
        size_t size = element_size(row);
        if (size == 0 || counts->of[i] == 0) continue;
        void *array = sdx_arena_array(r->arena, (size_t)counts->of[i], size);
        if (!array) return SDX_FAIL_MEMORY(r->source.cx);
        *MEMBER(base, row->at, void *) = array;
    }
    if (counts->unknown > INT32_MAX)
        return SDX_FAIL(r->source.cx, r->source.status, "%s has more than %d unknown fields",
                        message->name, INT32_MAX);
    if (counts->unknown > 0) {
        struct sdx_onnx_unknown *unknown =
            MEMBER(base, message->at_unknown, struct sdx_onnx_unknown);
        unknown->spans = sdx_arena_array(r->arena, (size_t)counts->unknown, sizeof *unknown->spans);
        if (!unknown->spans) return SDX_FAIL_MEMORY(r->source.cx);
    }
    return SDX_OK;
}

/* ---- second pass ---- */

static enum sdx_status read_text(const struct sdx_wire *w, const struct sdx_wire_field *f,
                                 const struct sdx_field *row, struct sdx_str *out)
{
    *out = (struct sdx_str){(const char *)f->payload, f->size};
    if (row->form == SDX_FIELD_BYTES || row->form == SDX_FIELD_BYTESS) return SDX_OK;
    if (!sdx_str_is_utf8(*out))
        return SDX_FAIL(w->source->cx, w->source->status, "byte %zu: %s of %s %s",
                        sdx_wire_offset(w, f->payload), row->name, w->message,
                        memchr(out->ptr, 0, out->len) ? "holds a NUL" : "is not valid UTF-8");
    return SDX_OK;
}

static void put_number(const struct sdx_field *row, void *array, int64_t i, uint64_t bits)
{
    switch ((enum sdx_field_form)row->form) {
    case SDX_FIELD_F32S: memcpy((float *)array + i, &(uint32_t){(uint32_t)bits}, 4); break;
    case SDX_FIELD_F64S: memcpy((double *)array + i, &bits, 8); break;
    case SDX_FIELD_I32S: ((int64_t *)array)[i] = (int32_t)(uint32_t)bits; break;
    case SDX_FIELD_I64S: ((int64_t *)array)[i] = (int64_t)bits; break;
    default: ((uint64_t *)array)[i] = bits;
    }
}

static enum sdx_status read_numbers(const struct sdx_wire *w, const struct sdx_wire_field *f,
                                    const struct sdx_field *row, void *base)
{
    void *array = *MEMBER(base, row->at, void *);
    int64_t *count = MEMBER(base, row->at_other, int64_t);
    const unsigned char *at = f->payload;
    switch (f->type) {
    case SDX_WIRE_VARINT: put_number(row, array, (*count)++, f->varint); return SDX_OK;
    case SDX_WIRE_FIXED32: put_number(row, array, (*count)++, sdx_wire_u32(at)); return SDX_OK;
    case SDX_WIRE_FIXED64: put_number(row, array, (*count)++, sdx_wire_u64(at)); return SDX_OK;
    case SDX_WIRE_BYTES: break;
    }
    const unsigned char *end = at + f->size;
    if (row->form == SDX_FIELD_F32S || row->form == SDX_FIELD_F64S) { /* little endian, as we are */
        size_t size = element_size(row);
        if (f->size > 0) memcpy((char *)array + (size_t)*count * size, at, f->size);
        *count += (int64_t)(f->size / size);
        return SDX_OK;
    }
    while (at < end) {
        uint64_t value = *at;
        if (value < 0x80)
            at++;
        else if (!sdx_wire_varint(&at, end, &value))
            return SDX_FAIL(w->source->cx, w->source->status,
                            "byte %zu: a number is longer than 64 bits in %s of %s",
                            sdx_wire_offset(w, at), row->name, w->message);
        put_number(row, array, (*count)++, value);
    }
    return SDX_OK;
}

static enum sdx_status read_nested(const struct reader *r, const struct sdx_wire_field *f,
                                   const struct sdx_field *row, void *base, int depth)
{
    void *inner = base;
    if (row->form == SDX_FIELD_MESSAGE) {
        inner = sdx_arena_alloc(r->arena, row->message->size);
        if (!inner) return SDX_FAIL_MEMORY(r->source.cx);
        *MEMBER(base, row->at, void *) = inner;
    } else if (row->form == SDX_FIELD_MESSAGES) {
        int32_t *count = MEMBER(base, row->at_other, int32_t);
        inner = *MEMBER(base, row->at, char *) + (size_t)(*count)++ * row->message->size;
    }
    return read_fields(r, row->message, inner, f->payload, f->payload + f->size, depth + 1);
}

/* Notes that a singular field was there. */
static enum sdx_status mark(const struct sdx_wire *w, const struct sdx_wire_field *f,
                            const struct sdx_field *row, void *base)
{
    if (row->has) *MEMBER(base, row->at_other, bool) = true;
    if (row->which) {
        int which = 0;
        memcpy(&which, MEMBER(base, row->at_other, char), sizeof which);
        if (which != 0 && row->form == SDX_FIELD_INLINE)
            return SDX_FAIL(w->source->cx, w->source->status,
                            "byte %zu: %s has %s besides another type", sdx_wire_offset(w, f->tag),
                            w->message, row->name);
        which = row->which;
        memcpy(MEMBER(base, row->at_other, char), &which, sizeof which);
    }
    return SDX_OK;
}

static enum sdx_status read_field(const struct reader *r, const struct sdx_wire *w,
                                  const struct sdx_wire_field *f, const struct sdx_field *row,
                                  void *base, int depth)
{
    switch ((enum sdx_field_form)row->form) {
    case SDX_FIELD_NONE: return SDX_OK;
    case SDX_FIELD_I32S:
    case SDX_FIELD_I64S:
    case SDX_FIELD_U64S:
    case SDX_FIELD_F32S:
    case SDX_FIELD_F64S: return read_numbers(w, f, row, base);
    case SDX_FIELD_TEXTS:
    case SDX_FIELD_BYTESS: {
        int32_t *count = MEMBER(base, row->at_other, int32_t);
        return read_text(w, f, row, *MEMBER(base, row->at, struct sdx_str *) + (*count)++);
    }
    case SDX_FIELD_MESSAGES: return read_nested(r, f, row, base, depth);
    default: break;
    }
    SDX_TRY(mark(w, f, row, base));
    switch ((enum sdx_field_form)row->form) {
    case SDX_FIELD_I32: *MEMBER(base, row->at, int32_t) = (int32_t)(uint32_t)f->varint; break;
    case SDX_FIELD_I64: *MEMBER(base, row->at, int64_t) = (int64_t)f->varint; break;
    case SDX_FIELD_F32:
        put_number(&(struct sdx_field){.form = SDX_FIELD_F32S}, MEMBER(base, row->at, float), 0,
                   sdx_wire_u32(f->payload));
        break;
    case SDX_FIELD_TEXT:
    case SDX_FIELD_BYTES: return read_text(w, f, row, MEMBER(base, row->at, struct sdx_str));
    default: return read_nested(r, f, row, base, depth);
    }
    return SDX_OK;
}

static enum sdx_status read_fields(const struct reader *r, const struct sdx_message *message,
                                   void *base, const unsigned char *at, const unsigned char *end,
                                   int depth)
{
    struct sdx_wire w = {&r->source, message->name, at, end};
    struct counts counts = {0};
    SDX_ASSERT(message->count <= SDX_MESSAGE_FIELDS_MAX);
    if (depth > SDX_ONNX_DEPTH_MAX)
        return SDX_FAIL(r->source.cx, r->source.status,
                        "byte %zu: messages are nested deeper than %d", sdx_wire_offset(&w, at),
                        SDX_ONNX_DEPTH_MAX);
    SDX_TRY(count_fields(&w, message, &counts));
    SDX_TRY(allocate(r, message, base, &counts));
    struct sdx_onnx_unknown *unknown = MEMBER(base, message->at_unknown, struct sdx_onnx_unknown);
    w.at = at;
    while (w.at < w.end) {
        struct sdx_wire_field f;
        SDX_TRY(sdx_wire_next(&w, &f));
        const struct sdx_field *row = find_field(message, f.number);
        if (row->form == SDX_FIELD_NONE)
            unknown->spans[unknown->count++] =
                (struct sdx_str){(const char *)f.tag, (size_t)(w.at - f.tag)};
        SDX_TRY(read_field(r, &w, &f, row, base, depth));
    }
    return SDX_OK;
}

enum sdx_status sdx_message_read(struct sdx_context *cx, struct sdx_arena *arena,
                                 const struct sdx_message *message, enum sdx_status status,
                                 const void *bytes, size_t size, void **out)
{
    static const unsigned char nothing[1] = {0};
    const unsigned char *at = size > 0 ? bytes : nothing;
    struct reader r = {{cx, status, at}, arena};
    *out = NULL;
    void *base = sdx_arena_alloc(arena, message->size);
    if (!base) return SDX_FAIL_MEMORY(cx);
    SDX_TRY(read_fields(&r, message, base, at, at + size, 1));
    *out = base;
    return SDX_OK;
}

enum sdx_status sdx_onnx_read_model(struct sdx_context *cx, struct sdx_arena *arena,
                                    const void *bytes, size_t size, struct sdx_onnx_model **out)
{
    void *model = NULL;
    *out = NULL;
    if (size == 0) return SDX_FAIL(cx, SDX_BAD_MODEL, "the file is empty, expected a ModelProto");
    SDX_TRY(sdx_message_read(cx, arena, &sdx_message_model, SDX_BAD_MODEL, bytes, size, &model));
    *out = model;
    return SDX_OK;
}

enum sdx_status sdx_onnx_read_tensor(struct sdx_context *cx, struct sdx_arena *arena,
                                     const void *bytes, size_t size, struct sdx_onnx_tensor **out)
{
    void *tensor = NULL;
    *out = NULL;
    SDX_TRY(sdx_message_read(cx, arena, &sdx_message_tensor, SDX_BAD_DATA, bytes, size, &tensor));
    *out = tensor;
    return SDX_OK;
}
