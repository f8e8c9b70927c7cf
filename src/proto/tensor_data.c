/* SPDX-License-Identifier: Apache-2.0
 * From TensorProto and SparseTensorProto to elements: every length, type and index is checked here.
 * raw_data and external data stay where they are; typed fields are narrowed into the arena. */
#include "proto/tensor_data.h"

#include "tensor/convert.h"

/* Smaller tensors at odd addresses are copied at once. */
enum { UNALIGNED_MIN = 4096 };

/* One tensor under check: what faults are called, and its facts once they are known. */
struct check {
    struct sdx_context *cx;
    enum sdx_status status;
    struct sdx_arena *arena;
    const struct sdx_onnx_tensor *from;
    int64_t count;
    size_t bytes;
};

#define FAIL_TENSOR(c, code, text, ...)                                                            \
    SDX_FAIL((c)->cx, (code), "tensor \"%.*s\": " text, SDX_STR_ARG((c)->from->name), __VA_ARGS__)

enum data_field {
    FIELD_RAW,
    FIELD_FLOAT,
    FIELD_INT32,
    FIELD_STRING,
    FIELD_INT64,
    FIELD_DOUBLE,
    FIELD_UINT64,
    FIELD_COUNT
};

static const char *const field_names[FIELD_COUNT] = {
    "raw_data",   "float_data",  "int32_data",  "string_data",
    "int64_data", "double_data", "uint64_data",
};

static int64_t field_count(const struct sdx_onnx_tensor *from, enum data_field field)
{
    switch (field) {
    case FIELD_RAW: return from->has_raw;
    case FIELD_FLOAT: return from->count_float;
    case FIELD_INT32: return from->count_int32;
    case FIELD_STRING: return from->strings.count;
    case FIELD_INT64: return from->count_int64;
    case FIELD_DOUBLE: return from->count_double;
    case FIELD_UINT64: return from->count_uint64;
    default: return 0;
    }
}

/* The typed field of an element type, and how many of its entries `count` elements take. */
static enum data_field typed_field(int dtype, int64_t count, int64_t *entries)
{
    *entries = count;
    switch (dtype) {
    case SDX_C64: *entries = 2 * count; return FIELD_FLOAT;
    case SDX_F32: return FIELD_FLOAT;
    case SDX_C128: *entries = 2 * count; return FIELD_DOUBLE;
    case SDX_F64: return FIELD_DOUBLE;
    case SDX_STRING: return FIELD_STRING;
    case SDX_I64: return FIELD_INT64;
    case SDX_U32:
    case SDX_U64: return FIELD_UINT64;
    case SDX_U4:
    case SDX_I4:
    case SDX_F4E2M1: *entries = count / 2 + count % 2; return FIELD_INT32;
    case SDX_U2:
    case SDX_I2: *entries = count / 4 + (count % 4 != 0); return FIELD_INT32;
    default: return FIELD_INT32;
    }
}

static enum sdx_status check_shape(struct check *c)
{
    const struct sdx_onnx_tensor *from = c->from;
    if (!sdx_dtype_is_valid(from->data_type))
        return FAIL_TENSOR(c, c->status, "element type %d is unknown", (int)from->data_type);
    if (from->dims.count > SDX_RANK_MAX)
        return FAIL_TENSOR(c, c->status, "rank %lld, expected at most %d",
                           (long long)from->dims.count, SDX_RANK_MAX);
    int rank = (int)from->dims.count;
    for (int i = 0; i < rank; i++)
        if (from->dims.at[i] < 0)
            return FAIL_TENSOR(c, c->status, "dimension %d is %lld, expected at least 0", i,
                               (long long)from->dims.at[i]);
    char text[256];
    if (!sdx_dims_count(from->dims.at, rank, &c->count) ||
        !sdx_dtype_bytes(from->data_type, c->count, &c->bytes) || c->bytes > INT64_MAX)
        return FAIL_TENSOR(c, c->status, "shape %s has more elements than can be addressed",
                           sdx_dims_describe(from->dims.at, rank, text, sizeof text));
    return SDX_OK;
}

static enum sdx_status fail_length(const struct check *c, enum data_field field, int64_t found,
                                   int64_t expected)
{
    char text[256];
    const struct sdx_onnx_tensor *from = c->from;
    return FAIL_TENSOR(c, c->status, "%s has %lld %s, %s%s needs %lld", field_names[field],
                       (long long)found, field == FIELD_RAW ? "bytes" : "elements",
                       sdx_dtype_short_name(from->data_type),
                       sdx_dims_describe(from->dims.at, (int)from->dims.count, text, sizeof text),
                       (long long)expected);
}

/* Which field holds the data: exactly one, of the right length. No element needs none. */
static enum sdx_status check_field(const struct check *c, enum data_field *out)
{
    const struct sdx_onnx_tensor *from = c->from;
    int64_t entries = 0;
    enum data_field typed = typed_field(from->data_type, c->count, &entries), found = FIELD_COUNT;
    for (enum data_field field = FIELD_RAW; field < FIELD_COUNT; field++) {
        if (field_count(from, field) == 0) continue;
        if (found != FIELD_COUNT)
            return FAIL_TENSOR(c, c->status, "both %s and %s are set, expected one",
                               field_names[found], field_names[field]);
        found = field;
    }
    *out = found == FIELD_COUNT ? typed : found;
    if (found == FIELD_COUNT) return c->count == 0 ? SDX_OK : fail_length(c, typed, 0, entries);
    if (found == FIELD_RAW && from->data_type != SDX_STRING)
        return from->raw.len == c->bytes
                   ? SDX_OK
                   : fail_length(c, FIELD_RAW, (int64_t)from->raw.len, (int64_t)c->bytes);
    if (found != typed)
        return FAIL_TENSOR(c, c->status, "%s data is in %s, expected %s%s",
                           sdx_dtype_name((sdx_dtype)from->data_type), field_names[found],
                           typed == FIELD_STRING ? "" : "raw_data or ", field_names[typed]);
    if (field_count(from, found) != entries)
        return fail_length(c, found, field_count(from, found), entries);
    return SDX_OK;
}

/* int32_data and the low halves of uint64_data: each entry must fit its element, signed or not. */
static enum sdx_status check_range(const struct check *c, enum data_field field)
{
    const struct sdx_onnx_tensor *from = c->from;
    int bits = sdx_dtype_bits((sdx_dtype)from->data_type);
    if (field == FIELD_INT32 && bits < 32 && from->data_type != SDX_BOOL) {
        if (bits < 8) bits = 8;
        int64_t low = -((int64_t)1 << (bits - 1)), high = ((int64_t)1 << bits) - 1;
        for (int64_t i = 0; i < from->count_int32; i++)
            if (from->int32_data[i] < low || from->int32_data[i] > high)
                return FAIL_TENSOR(c, c->status, "int32_data[%lld] is %lld, which is not %s",
                                   (long long)i, (long long)from->int32_data[i],
                                   sdx_dtype_name((sdx_dtype)from->data_type));
    }
    if (field == FIELD_UINT64 && from->data_type == SDX_U32)
        for (int64_t i = 0; i < from->count_uint64; i++)
            if (from->uint64_data[i] > UINT32_MAX)
                return FAIL_TENSOR(c, c->status, "uint64_data[%lld] is %llu, which is not uint32",
                                   (long long)i, (unsigned long long)from->uint64_data[i]);
    return SDX_OK;
}

/* Bytes of a bool tensor may only be 0 and 1 further on: others are brought to 1 in a copy. */
static enum sdx_status normalise_bool(const struct check *c, const void **data)
{
    const unsigned char *bytes = *data;
    unsigned char bits = 0;
    for (size_t i = 0; i < c->bytes; i++)
        bits |= bytes[i];
    if (bits <= 1) return SDX_OK;
    unsigned char *copy = sdx_arena_alloc(c->arena, c->bytes);
    if (!copy) return SDX_FAIL_MEMORY(c->cx);
    for (size_t i = 0; i < c->bytes; i++)
        copy[i] = bytes[i] != 0;
    *data = copy;
    return SDX_OK;
}

static enum sdx_status decode(const struct check *c, enum data_field field, const void **data)
{
    const struct sdx_onnx_tensor *from = c->from;
    switch (field) {
    case FIELD_RAW: *data = from->raw.ptr; break;
    case FIELD_FLOAT: *data = from->float_data; break;
    case FIELD_STRING: *data = from->strings.at; break;
    case FIELD_INT64: *data = from->int64_data; break;
    case FIELD_DOUBLE: *data = from->double_data; break;
    default: *data = from->data_type == SDX_U64 ? from->uint64_data : NULL;
    }
    if (*data || c->count == 0) {
        if (!*data) *data = "";
        return SDX_OK;
    }
    /* What is left are integers stored wider than they are. Packed ones come as whole bytes. */
    void *elements = sdx_arena_alloc(c->arena, c->bytes);
    if (!elements) return SDX_FAIL_MEMORY(c->cx);
    if (from->data_type == SDX_F6E2M3 || from->data_type == SDX_F6E3M2) /* one in each entry */
        sdx_pack_codes(from->data_type, elements, from->int32_data, from->count_int32);
    else if (field == FIELD_UINT64)
        sdx_convert(SDX_U32, elements, 0, SDX_U64, from->uint64_data, 0, from->count_uint64, false);
    else
        sdx_convert(from->data_type == SDX_BOOL                        ? SDX_BOOL
                    : sdx_dtype_bits((sdx_dtype)from->data_type) <= 8  ? SDX_U8
                    : sdx_dtype_bits((sdx_dtype)from->data_type) == 16 ? SDX_U16
                                                                       : SDX_I32,
                    elements, 0, SDX_I64, from->int32_data, 0, from->count_int32, false);
    *data = elements;
    return SDX_OK;
}

static enum sdx_status get_data(struct check *c, struct sdx_external *ex, const void **data)
{
    const struct sdx_onnx_tensor *from = c->from;
    enum data_field field = FIELD_RAW;
    const void *elements = NULL;
    SDX_TRY(check_shape(c));
    if (from->has_segment)
        return FAIL_TENSOR(c, SDX_NOT_SUPPORTED, "%s", "data in segments is not supported");
    if (from->data_location != 0 && from->data_location != 1)
        return FAIL_TENSOR(c, c->status, "data_location is %d, expected 0 or 1",
                           (int)from->data_location);
    if (from->data_location == 1) {
        for (enum data_field other = FIELD_RAW; other < FIELD_COUNT; other++)
            if (field_count(from, other) > 0)
                return FAIL_TENSOR(c, c->status, "%s is set, but the data is external",
                                   field_names[other]);
        if (from->data_type == SDX_STRING)
            return FAIL_TENSOR(c, c->status, "%s", "strings cannot be external data");
        SDX_TRY(sdx_external_get(c->cx, ex, from, c->bytes, &elements));
    } else {
        SDX_TRY(check_field(c, &field));
        SDX_TRY(check_range(c, field));
        if (data) SDX_TRY(decode(c, field, &elements));
    }
    if (!data) return SDX_OK;
    if (from->data_type == SDX_BOOL) SDX_TRY(normalise_bool(c, &elements));
    *data = elements;
    return SDX_OK;
}

enum sdx_status sdx_onnx_tensor_data(struct sdx_context *cx, struct sdx_arena *arena,
                                     struct sdx_external *ex, const struct sdx_onnx_tensor *from,
                                     const void **data)
{
    struct check c = {.cx = cx, .status = SDX_BAD_MODEL, .arena = arena, .from = from};
    if (data) *data = NULL;
    return get_data(&c, ex, data);
}

/* A constant operand over elements that stay where they are. */
static enum sdx_status make_constant(const struct check *c, int dtype,
                                     const struct sdx_onnx_ints *dims, const void *data,
                                     struct sdx_tensor **out)
{
    struct sdx_tensor *t = sdx_arena_alloc(c->arena, sizeof *t);
    int64_t *own = t ? t->dims_inline : NULL;
    if (dims->count > SDX_RANK_INLINE)
        own = sdx_arena_array(c->arena, (size_t)dims->count, sizeof *own);
    if (!t || !own) return SDX_FAIL_MEMORY(c->cx);
    if (dims->count > 0) memcpy(own, dims->at, (size_t)dims->count * sizeof *own);
    t->rank = (int32_t)dims->count;
    t->dims = own;
    t->data = (void *)(uintptr_t)data;
    t->count = c->count;
    t->bytes = c->bytes;
    t->kind = SDX_KIND_TENSOR;
    t->dtype = (uint8_t)dtype;
    t->is_constant = t->in_model = true;
    atomic_init(&t->refs, 0);
    *out = t;
    return SDX_OK;
}

static size_t alignment_of(int dtype)
{
    int bits = sdx_dtype_bits((sdx_dtype)dtype);
    return bits <= 8 ? 1 : bits >= 64 ? 8 : (size_t)bits / 8;
}

enum sdx_status sdx_onnx_tensor_import(struct sdx_context *cx, struct sdx_arena *arena,
                                       struct sdx_external *ex, const struct sdx_onnx_tensor *from,
                                       struct sdx_tensor **out)
{
    struct check c = {.cx = cx, .status = SDX_BAD_MODEL, .arena = arena, .from = from};
    const void *data = NULL;
    *out = NULL;
    SDX_TRY(get_data(&c, ex, &data));
    bool is_unaligned = c.bytes > 0 && (uintptr_t)data % alignment_of(from->data_type) != 0;
    if (is_unaligned && c.bytes < UNALIGNED_MIN) {
        data = sdx_arena_copy(arena, data, c.bytes);
        if (!data) return SDX_FAIL_MEMORY(cx);
        is_unaligned = false;
    }
    SDX_TRY(make_constant(&c, from->data_type, &from->dims, data, out));
    (*out)->needs_copy = is_unaligned;
    return SDX_OK;
}

enum sdx_status sdx_onnx_tensor_load(struct sdx_context *cx, struct sdx_arena *arena,
                                     const struct sdx_onnx_tensor *from, struct sdx_tensor **out)
{
    struct check c = {.cx = cx, .status = SDX_BAD_DATA, .arena = arena, .from = from};
    const void *data = NULL;
    *out = NULL;
    if (from->data_location == 1)
        return FAIL_TENSOR(&c, SDX_BAD_DATA, "%s", "a data file has external data");
    SDX_TRY(get_data(&c, NULL, &data));
    int rank = (int)from->dims.count;
    if (from->data_type == SDX_STRING)
        return sdx_tensor_new_strings(cx, rank, from->dims.at, data, out);
    SDX_TRY(sdx_tensor_new_raw(cx, from->data_type, rank, from->dims.at, out));
    if (c.bytes > 0) memcpy((*out)->data, data, c.bytes);
    return SDX_OK;
}

/* ---- sparse ---- */

struct sparse {
    struct check values, indices;
    const void *data;
    const unsigned char *index; /* int64 values, unaligned */
    int64_t count_dense;
    bool is_linear; /* indices are [n], not [n, rank] */
};

static enum sdx_status check_sparse_shapes(const struct sdx_onnx_sparse *from, struct sparse *s)
{
    const struct check *c = &s->values;
    const struct sdx_onnx_ints *values = &from->values->dims, *indices = &from->indices->dims;
    if (from->dims.count > SDX_RANK_MAX)
        return FAIL_TENSOR(c, c->status, "sparse: rank %lld, expected at most %d",
                           (long long)from->dims.count, SDX_RANK_MAX);
    int rank = (int)from->dims.count;
    char text[256];
    if (rank == 0 || !sdx_dims_count(from->dims.at, rank, &s->count_dense))
        return FAIL_TENSOR(c, c->status, "sparse: dense shape %s is not valid",
                           sdx_dims_describe(from->dims.at, rank, text, sizeof text));
    if (values->count != 1)
        return FAIL_TENSOR(c, c->status, "sparse: values have rank %lld, expected 1",
                           (long long)values->count);
    if (from->indices->data_type != SDX_I64)
        return FAIL_TENSOR(c, c->status, "sparse: indices have element type %d, expected 7 (int64)",
                           (int)from->indices->data_type);
    s->is_linear = indices->count == 1;
    bool fits = s->is_linear ? indices->at[0] == values->at[0]
                             : indices->count == 2 && indices->at[0] == values->at[0] &&
                                   indices->at[1] == rank;
    if (!fits)
        return FAIL_TENSOR(
            c, c->status, "sparse: indices have shape %s, expected [%lld] or [%lld,%d]",
            sdx_dims_describe(indices->at,
                              indices->count > SDX_RANK_MAX ? SDX_RANK_MAX : (int)indices->count,
                              text, sizeof text),
            (long long)values->at[0], (long long)values->at[0], rank);
    return SDX_OK;
}

static int64_t sparse_index(const struct sparse *s, int64_t i)
{
    int64_t value;
    memcpy(&value, s->index + (size_t)i * sizeof value, sizeof value);
    return value;
}

/* Flat place of value i; -1: out of range. */
static int64_t sparse_place(const struct sparse *s, const struct sdx_onnx_ints *dims, int64_t i)
{
    if (s->is_linear) {
        int64_t place = sparse_index(s, i);
        return place >= 0 && place < s->count_dense ? place : -1;
    }
    int64_t place = 0;
    for (int64_t d = 0; d < dims->count; d++) {
        int64_t index = sparse_index(s, i * dims->count + d);
        if (index < 0 || index >= dims->at[d]) return -1;
        place = place * dims->at[d] + index;
    }
    return place;
}

/* Checks everything: after this the indices are in range and rise strictly. */
static enum sdx_status read_sparse(struct sdx_context *cx, enum sdx_status status,
                                   struct sdx_arena *arena, struct sdx_external *ex,
                                   const struct sdx_onnx_sparse *from, struct sparse *s)
{
    const void *index = NULL;
    if (!from->values || !from->indices)
        return SDX_FAIL(cx, status, "sparse tensor without %s",
                        from->values ? "indices" : "values");
    *s = (struct sparse){
        .values = {.cx = cx, .status = status, .arena = arena, .from = from->values},
        .indices = {.cx = cx, .status = status, .arena = arena, .from = from->indices}};
    SDX_TRY(check_sparse_shapes(from, s));
    SDX_TRY(get_data(&s->values, ex, &s->data));
    SDX_TRY(get_data(&s->indices, ex, &index));
    s->index = index;
    int64_t last = -1;
    for (int64_t i = 0; i < s->values.count; i++) {
        int64_t place = sparse_place(s, &from->dims, i);
        char text[256];
        if (place < 0)
            return FAIL_TENSOR(
                &s->values, status, "sparse: index %lld is outside shape %s", (long long)i,
                sdx_dims_describe(from->dims.at, (int)from->dims.count, text, sizeof text));
        if (place <= last)
            return FAIL_TENSOR(&s->values, status,
                               "sparse: index %lld is not above the one before it", (long long)i);
        last = place;
    }
    return SDX_OK;
}

enum sdx_status sdx_onnx_sparse_import(struct sdx_context *cx, struct sdx_arena *arena,
                                       struct sdx_external *ex, const struct sdx_onnx_sparse *from,
                                       size_t limit, struct sdx_tensor **out)
{
    struct sparse s;
    size_t bytes = 0;
    *out = NULL;
    SDX_TRY(read_sparse(cx, SDX_BAD_MODEL, arena, ex, from, &s));
    int dtype = from->values->data_type;
    if (!sdx_dtype_bytes(dtype, s.count_dense, &bytes) || bytes > limit)
        return FAIL_TENSOR(&s.values, SDX_OUT_OF_MEMORY,
                           "sparse: %lld elements once dense, which is over the limit of %zu bytes",
                           (long long)s.count_dense, limit);
    char *dense = sdx_arena_alloc(arena, bytes);
    if (!dense) return SDX_FAIL_MEMORY(cx);
    size_t size = (size_t)sdx_dtype_bits((sdx_dtype)dtype) / 8;
    for (int64_t i = 0; i < s.values.count; i++) {
        int64_t place = sparse_place(&s, &from->dims, i);
        if (size > 0)
            memcpy(dense + (size_t)place * size, (const char *)s.data + (size_t)i * size, size);
        else
            sdx_convert(dtype, dense, place, dtype, s.data, i, 1, true);
    }
    s.values.count = s.count_dense;
    s.values.bytes = bytes;
    return make_constant(&s.values, dtype, &from->dims, dense, out);
}

enum sdx_status sdx_onnx_sparse_load(struct sdx_context *cx, struct sdx_arena *arena,
                                     const struct sdx_onnx_sparse *from, struct sdx_tensor **out)
{
    struct sparse s;
    struct sdx_tensor *items[2] = {NULL, NULL};
    *out = NULL;
    SDX_TRY(read_sparse(cx, SDX_BAD_DATA, arena, NULL, from, &s));
    enum sdx_status status = sdx_onnx_tensor_load(cx, arena, from->values, &items[0]);
    if (status == SDX_OK) status = sdx_onnx_tensor_load(cx, arena, from->indices, &items[1]);
    if (status == SDX_OK)
        status = sdx_tensor_new_items(cx, SDX_KIND_SPARSE, items[0]->dtype, 2, items,
                                      (int)from->dims.count, from->dims.at, out);
    sdx_tensor_release(items[0]);
    sdx_tensor_release(items[1]);
    return status;
}
