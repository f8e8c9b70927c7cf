/* SPDX-License-Identifier: Apache-2.0
 * .pb data files: TensorProto, SparseTensorProto and the messages of onnx-data.proto
 * (SequenceProto, OptionalProto, MapProto). A map whose values are scalars of one type becomes a
 * tensor of keys and a tensor of values; other values stay a sequence. */
#include "proto/messages.h"
#include "proto/tensor_data.h"
#include "tensor/convert.h"

struct pb_map;
struct pb_optional;

struct pb_sequence {
    struct sdx_str name;
    int32_t elem_type;
    bool has_elem_type;
    struct sdx_onnx_tensors tensors;
    struct sdx_onnx_sparses sparses;
    struct pb_sequence *sequences;
    struct pb_map *maps;
    struct pb_optional *optionals;
    int32_t count_sequences, count_maps, count_optionals;
    struct sdx_onnx_unknown unknown;
};

struct pb_map {
    struct sdx_str name;
    int32_t key_type;
    bool has_key_type;
    struct sdx_onnx_ints keys;
    struct sdx_onnx_strings string_keys;
    struct pb_sequence *values;
    struct sdx_onnx_unknown unknown;
};

struct pb_optional {
    struct sdx_str name;
    int32_t elem_type;
    bool has_elem_type;
    struct sdx_onnx_tensor *tensor;
    struct sdx_onnx_sparse *sparse;
    struct pb_sequence *sequence;
    struct pb_map *map;
    struct pb_optional *optional;
    struct sdx_onnx_unknown unknown;
};

enum { ELEM_UNDEFINED, ELEM_TENSOR, ELEM_SPARSE, ELEM_SEQUENCE, ELEM_MAP, ELEM_OPTIONAL };

/* ---- tables ---- */

static const struct sdx_message sequence_message, map_message, optional_message;

static const struct sdx_field sequence_fields[] = {
    [1] = SDX_FIELD(TEXT, pb_sequence, name, name),
    [2] = SDX_FIELD_HAS(I32, pb_sequence, elem_type, elem_type, has_elem_type),
    [3] = SDX_FIELD_MANY(pb_sequence, tensor_values, tensors.at, tensors.count, sdx_message_tensor),
    [4] = SDX_FIELD_MANY(pb_sequence, sparse_tensor_values, sparses.at, sparses.count,
                         sdx_message_sparse),
    [5] =
        SDX_FIELD_MANY(pb_sequence, sequence_values, sequences, count_sequences, sequence_message),
    [6] = SDX_FIELD_MANY(pb_sequence, map_values, maps, count_maps, map_message),
    [7] =
        SDX_FIELD_MANY(pb_sequence, optional_values, optionals, count_optionals, optional_message),
};
static const struct sdx_message sequence_message =
    SDX_MESSAGE("SequenceProto", pb_sequence, unknown, sequence_fields);

static const struct sdx_field map_fields[] = {
    [1] = SDX_FIELD(TEXT, pb_map, name, name),
    [2] = SDX_FIELD_HAS(I32, pb_map, key_type, key_type, has_key_type),
    [3] = SDX_FIELD_LIST(I64S, pb_map, keys, keys.at, keys.count),
    [4] = SDX_FIELD_LIST(BYTESS, pb_map, string_keys, string_keys.at, string_keys.count),
    [5] = SDX_FIELD_PTR(pb_map, values, values, sequence_message),
};
static const struct sdx_message map_message = SDX_MESSAGE("MapProto", pb_map, unknown, map_fields);

static const struct sdx_field optional_fields[] = {
    [1] = SDX_FIELD(TEXT, pb_optional, name, name),
    [2] = SDX_FIELD_HAS(I32, pb_optional, elem_type, elem_type, has_elem_type),
    [3] = SDX_FIELD_PTR(pb_optional, tensor_value, tensor, sdx_message_tensor),
    [4] = SDX_FIELD_PTR(pb_optional, sparse_tensor_value, sparse, sdx_message_sparse),
    [5] = SDX_FIELD_PTR(pb_optional, sequence_value, sequence, sequence_message),
    [6] = SDX_FIELD_PTR(pb_optional, map_value, map, map_message),
    [7] = SDX_FIELD_PTR(pb_optional, optional_value, optional, optional_message),
};
static const struct sdx_message optional_message =
    SDX_MESSAGE("OptionalProto", pb_optional, unknown, optional_fields);

static const struct sdx_message *message_of(int kind)
{
    switch (kind) {
    case SDX_KIND_NONE:
    case SDX_KIND_TENSOR: return &sdx_message_tensor;
    case SDX_KIND_SEQUENCE: return &sequence_message;
    case SDX_KIND_OPTIONAL: return &optional_message;
    case SDX_KIND_MAP: return &map_message;
    case SDX_KIND_SPARSE: return &sdx_message_sparse;
    default: return NULL;
    }
}

/* ---- reading ---- */

static enum sdx_status load_value(struct sdx_context *cx, struct sdx_arena *arena, int kind,
                                  const void *from, struct sdx_tensor **out);

/* The one kind of items that is there; texts name both when there are two. */
static enum sdx_status find_items(struct sdx_context *cx, const struct pb_sequence *from, int *kind,
                                  const char **at, size_t *size, int64_t *count)
{
    const struct {
        int kind, elem;
        const void *at;
        size_t size;
        int64_t count;
    } lists[] = {
        {SDX_KIND_TENSOR, ELEM_TENSOR, from->tensors.at, sizeof *from->tensors.at,
         from->tensors.count},
        {SDX_KIND_SPARSE, ELEM_SPARSE, from->sparses.at, sizeof *from->sparses.at,
         from->sparses.count},
        {SDX_KIND_SEQUENCE, ELEM_SEQUENCE, from->sequences, sizeof *from->sequences,
         from->count_sequences},
        {SDX_KIND_MAP, ELEM_MAP, from->maps, sizeof *from->maps, from->count_maps},
        {SDX_KIND_OPTIONAL, ELEM_OPTIONAL, from->optionals, sizeof *from->optionals,
         from->count_optionals},
    };
    *count = 0;
    *kind = SDX_KIND_TENSOR;
    *at = NULL;
    *size = 0;
    for (int i = 0; i < SDX_COUNT_OF(lists); i++) {
        if (lists[i].count == 0) continue;
        if (*count > 0 || (from->elem_type != 0 && from->elem_type != lists[i].elem))
            return SDX_FAIL(cx, SDX_BAD_DATA, "sequence of element kind %d holds items of kind %d",
                            (int)from->elem_type, lists[i].elem);
        *kind = lists[i].kind;
        *at = lists[i].at;
        *size = lists[i].size;
        *count = lists[i].count;
    }
    return SDX_OK;
}

static enum sdx_status load_sequence(struct sdx_context *cx, struct sdx_arena *arena,
                                     const struct pb_sequence *from, struct sdx_tensor **out)
{
    int kind = 0;
    const char *at = NULL;
    size_t size = 0;
    int64_t count = 0, done = 0;
    SDX_TRY(find_items(cx, from, &kind, &at, &size, &count));
    struct sdx_tensor **items = sdx_arena_array(arena, (size_t)count + 1, sizeof *items);
    if (!items) return SDX_FAIL_MEMORY(cx);
    enum sdx_status status = SDX_OK;
    for (; done < count && status == SDX_OK; done++)
        status = load_value(cx, arena, kind, at + (size_t)done * size, &items[done]);
    if (status == SDX_OK)
        status = sdx_tensor_new_items(cx, SDX_KIND_SEQUENCE, count > 0 ? items[0]->dtype : 0, count,
                                      items, 0, NULL, out);
    for (int64_t i = 0; i < done; i++)
        sdx_tensor_release(items[i]);
    return status;
}

static enum sdx_status load_optional(struct sdx_context *cx, struct sdx_arena *arena,
                                     const struct pb_optional *from, struct sdx_tensor **out)
{
    const struct {
        int kind;
        const void *value;
    } members[] = {
        {SDX_KIND_TENSOR, from->tensor},     {SDX_KIND_SPARSE, from->sparse},
        {SDX_KIND_SEQUENCE, from->sequence}, {SDX_KIND_MAP, from->map},
        {SDX_KIND_OPTIONAL, from->optional},
    };
    int found = -1;
    for (int i = 0; i < SDX_COUNT_OF(members); i++) {
        if (!members[i].value) continue;
        if (found >= 0) return SDX_FAIL(cx, SDX_BAD_DATA, "optional holds more than one value");
        found = i;
    }
    if (found < 0) return sdx_tensor_new_items(cx, SDX_KIND_OPTIONAL, 0, 0, NULL, 0, NULL, out);
    struct sdx_tensor *item = NULL;
    SDX_TRY(load_value(cx, arena, members[found].kind, members[found].value, &item));
    enum sdx_status status =
        sdx_tensor_new_items(cx, SDX_KIND_OPTIONAL, item->dtype, 1, &item, 0, NULL, out);
    sdx_tensor_release(item);
    return status;
}

static enum sdx_status load_keys(struct sdx_context *cx, const struct pb_map *from,
                                 struct sdx_tensor **out)
{
    if (from->key_type == SDX_STRING) {
        if (from->keys.count > 0)
            return SDX_FAIL(cx, SDX_BAD_DATA, "map of string keys has integer keys");
        const int64_t count = from->string_keys.count;
        return sdx_tensor_new_strings(cx, 1, &count, from->string_keys.at, out);
    }
    if (!sdx_dtype_is_integer(from->key_type))
        return SDX_FAIL(cx, SDX_BAD_DATA, "map has key type %d, expected an integer or string type",
                        (int)from->key_type);
    if (from->string_keys.count > 0)
        return SDX_FAIL(cx, SDX_BAD_DATA, "map of integer keys has string keys");
    SDX_TRY(sdx_tensor_new(cx, from->key_type, 1, &from->keys.count, out));
    sdx_convert(from->key_type, (*out)->data, 0, SDX_I64, from->keys.at, 0, from->keys.count,
                false);
    return SDX_OK;
}

/* Scalars of one type, as one tensor [n]; *out stays NULL when they are anything else. */
static enum sdx_status merge_scalars(struct sdx_context *cx, struct sdx_arena *arena,
                                     const struct sdx_tensor *values, struct sdx_tensor **out)
{
    const int64_t count = values->count;
    for (int64_t i = 0; i < count; i++) {
        const struct sdx_tensor *item = values->items[i];
        if (item->kind != SDX_KIND_TENSOR || item->rank != 0 || item->dtype != values->dtype ||
            sdx_dtype_bits((sdx_dtype)item->dtype) < 8)
            return SDX_OK;
    }
    if (count == 0) return SDX_OK;
    if (values->dtype == SDX_STRING) {
        struct sdx_str *texts = sdx_arena_array(arena, (size_t)count, sizeof *texts);
        if (!texts) return SDX_FAIL_MEMORY(cx);
        for (int64_t i = 0; i < count; i++)
            texts[i] = *(const struct sdx_str *)values->items[i]->data;
        return sdx_tensor_new_strings(cx, 1, &count, texts, out);
    }
    SDX_TRY(sdx_tensor_new(cx, values->dtype, 1, &count, out));
    size_t size = values->items[0]->bytes;
    for (int64_t i = 0; i < count; i++)
        memcpy((char *)(*out)->data + (size_t)i * size, values->items[i]->data, size);
    return SDX_OK;
}

static enum sdx_status load_map(struct sdx_context *cx, struct sdx_arena *arena,
                                const struct pb_map *from, struct sdx_tensor **out)
{
    static const struct pb_sequence empty = {0};
    struct sdx_tensor *items[2] = {NULL, NULL}, *values = NULL;
    enum sdx_status status = load_keys(cx, from, &items[0]);
    if (status == SDX_OK)
        status = load_sequence(cx, arena, from->values ? from->values : &empty, &items[1]);
    if (status == SDX_OK && items[0]->count != items[1]->count)
        status = SDX_FAIL(cx, SDX_BAD_DATA, "map has %lld keys and %lld values",
                          (long long)items[0]->count, (long long)items[1]->count);
    if (status == SDX_OK) status = merge_scalars(cx, arena, items[1], &values);
    if (values) {
        sdx_tensor_release(items[1]);
        items[1] = values;
    }
    if (status == SDX_OK)
        status = sdx_tensor_new_items(cx, SDX_KIND_MAP, items[1]->dtype, 2, items, 0, NULL, out);
    sdx_tensor_release(items[0]);
    sdx_tensor_release(items[1]);
    return status;
}

static enum sdx_status load_value(struct sdx_context *cx, struct sdx_arena *arena, int kind,
                                  const void *from, struct sdx_tensor **out)
{
    switch (kind) {
    case SDX_KIND_SEQUENCE: return load_sequence(cx, arena, from, out);
    case SDX_KIND_OPTIONAL: return load_optional(cx, arena, from, out);
    case SDX_KIND_MAP: return load_map(cx, arena, from, out);
    case SDX_KIND_SPARSE: return sdx_onnx_sparse_load(cx, arena, from, out);
    default: return sdx_onnx_tensor_load(cx, arena, from, out);
    }
}

enum sdx_status sdx_pb_read(struct sdx_context *cx, const void *bytes, size_t size, int kind,
                            struct sdx_tensor **out)
{
    const struct sdx_message *message = message_of(kind);
    struct sdx_arena arena;
    void *from = NULL;
    *out = NULL;
    if (!message) return SDX_FAIL(cx, SDX_INVALID_ARGUMENT, "value kind %d is unknown", kind);
    sdx_arena_init(&arena, cx->mem, SDX_MEM_TENSOR);
    enum sdx_status status =
        sdx_message_read(cx, &arena, message, SDX_BAD_DATA, bytes, size, &from);
    if (status == SDX_OK) status = load_value(cx, &arena, kind, from, out);
    sdx_arena_deinit(&arena);
    return status;
}

enum sdx_status sdx_pb_load(struct sdx_context *cx, const char *path, int kind,
                            struct sdx_tensor **out)
{
    struct sdx_file_map map;
    *out = NULL;
    SDX_TRY(sdx_file_map_open(cx, path, &map));
    enum sdx_status status = sdx_pb_read(cx, map.data, map.size, kind, out);
    sdx_file_map_close(&map);
    return status == SDX_OK ? SDX_OK : sdx_fail_where(cx, "%s", path);
}

/* ---- writing ---- */

static enum sdx_status save_value(struct sdx_context *cx, struct sdx_arena *arena,
                                  const struct sdx_tensor *from, void *out);

static enum sdx_status save_tensor(struct sdx_context *cx, struct sdx_arena *arena,
                                   const struct sdx_tensor *from, struct sdx_onnx_tensor *out)
{
    *out = (struct sdx_onnx_tensor){.data_type = from->dtype};
    out->dims.count = from->rank;
    out->dims.at = sdx_arena_copy(arena, from->dims, (size_t)from->rank * sizeof *from->dims);
    if (!out->dims.at) return SDX_FAIL_MEMORY(cx);
    if (from->dtype == SDX_STRING) {
        if (from->count > INT32_MAX)
            return SDX_FAIL(cx, SDX_NOT_SUPPORTED, "tensor of %lld strings, expected at most %d",
                            (long long)from->count, INT32_MAX);
        out->strings.at = from->data;
        out->strings.count = (int32_t)from->count;
    } else {
        out->has_raw = true;
        out->raw = (struct sdx_str){from->data, from->bytes};
    }
    return SDX_OK;
}

static enum sdx_status save_sparse(struct sdx_context *cx, struct sdx_arena *arena,
                                   const struct sdx_tensor *from, struct sdx_onnx_sparse *out)
{
    *out = (struct sdx_onnx_sparse){.dims.count = from->rank};
    out->dims.at = sdx_arena_copy(arena, from->dims, (size_t)from->rank * sizeof *from->dims);
    out->values = sdx_arena_alloc(arena, sizeof *out->values);
    out->indices = sdx_arena_alloc(arena, sizeof *out->indices);
    if (!out->dims.at || !out->values || !out->indices) return SDX_FAIL_MEMORY(cx);
    SDX_TRY(save_tensor(cx, arena, from->items[0], out->values));
    return save_tensor(cx, arena, from->items[1], out->indices);
}

static int elem_of_kind(int kind)
{
    switch (kind) {
    case SDX_KIND_SEQUENCE: return ELEM_SEQUENCE;
    case SDX_KIND_OPTIONAL: return ELEM_OPTIONAL;
    case SDX_KIND_MAP: return ELEM_MAP;
    case SDX_KIND_SPARSE: return ELEM_SPARSE;
    default: return ELEM_TENSOR;
    }
}

static enum sdx_status save_sequence(struct sdx_context *cx, struct sdx_arena *arena,
                                     const struct sdx_tensor *from, struct pb_sequence *out)
{
    const int kind = from->count > 0 ? from->items[0]->kind : SDX_KIND_TENSOR;
    const size_t size = message_of(kind)->size;
    *out = (struct pb_sequence){.elem_type = elem_of_kind(kind)};
    if (from->count > INT32_MAX)
        return SDX_FAIL(cx, SDX_NOT_SUPPORTED, "sequence of %lld items, expected at most %d",
                        (long long)from->count, INT32_MAX);
    const int32_t count = (int32_t)from->count;
    char *at = sdx_arena_array(arena, (size_t)count, size);
    if (!at) return SDX_FAIL_MEMORY(cx);
    for (int32_t i = 0; i < count; i++) {
        if (from->items[i]->kind != kind)
            return SDX_FAIL(cx, SDX_INVALID_ARGUMENT, "sequence: item %d is of another kind",
                            (int)i);
        SDX_TRY(save_value(cx, arena, from->items[i], at + (size_t)i * size));
    }
    switch (kind) {
    case SDX_KIND_SEQUENCE:
        out->sequences = (void *)at;
        out->count_sequences = count;
        break;
    case SDX_KIND_OPTIONAL:
        out->optionals = (void *)at;
        out->count_optionals = count;
        break;
    case SDX_KIND_MAP:
        out->maps = (void *)at;
        out->count_maps = count;
        break;
    case SDX_KIND_SPARSE: out->sparses = (struct sdx_onnx_sparses){(void *)at, count}; break;
    default: out->tensors = (struct sdx_onnx_tensors){(void *)at, count};
    }
    return SDX_OK;
}

static enum sdx_status save_optional(struct sdx_context *cx, struct sdx_arena *arena,
                                     const struct sdx_tensor *from, struct pb_optional *out)
{
    *out = (struct pb_optional){0};
    if (from->count == 0) {
        out->has_elem_type = true;
        return SDX_OK;
    }
    const int kind = from->items[0]->kind;
    void *item = sdx_arena_alloc(arena, message_of(kind)->size);
    if (!item) return SDX_FAIL_MEMORY(cx);
    SDX_TRY(save_value(cx, arena, from->items[0], item));
    out->elem_type = elem_of_kind(kind);
    switch (kind) {
    case SDX_KIND_SEQUENCE: out->sequence = item; break;
    case SDX_KIND_OPTIONAL: out->optional = item; break;
    case SDX_KIND_MAP: out->map = item; break;
    case SDX_KIND_SPARSE: out->sparse = item; break;
    default: out->tensor = item;
    }
    return SDX_OK;
}

/* The values of a map as a sequence of scalars. */
static enum sdx_status save_scalars(struct sdx_context *cx, struct sdx_arena *arena,
                                    const struct sdx_tensor *from, struct pb_sequence *out)
{
    const size_t size = (size_t)sdx_dtype_bits((sdx_dtype)from->dtype) / 8;
    if (from->count > INT32_MAX || size == 0)
        return SDX_FAIL(cx, SDX_NOT_SUPPORTED, "map of %lld values of type %s",
                        (long long)from->count, sdx_dtype_short_name(from->dtype));
    *out = (struct pb_sequence){.elem_type = ELEM_TENSOR};
    struct sdx_onnx_tensor *items = sdx_arena_array(arena, (size_t)from->count, sizeof *items);
    if (!items) return SDX_FAIL_MEMORY(cx);
    for (int64_t i = 0; i < from->count; i++) {
        items[i].data_type = from->dtype;
        if (from->dtype == SDX_STRING) {
            items[i].strings = (struct sdx_onnx_strings){(struct sdx_str *)from->data + i, 1};
        } else {
            items[i].has_raw = true;
            items[i].raw = (struct sdx_str){(const char *)from->data + (size_t)i * size, size};
        }
    }
    out->tensors = (struct sdx_onnx_tensors){items, (int32_t)from->count};
    return SDX_OK;
}

static enum sdx_status save_map(struct sdx_context *cx, struct sdx_arena *arena,
                                const struct sdx_tensor *from, struct pb_map *out)
{
    const struct sdx_tensor *keys = from->items[0], *values = from->items[1];
    *out = (struct pb_map){.key_type = keys->dtype};
    out->values = sdx_arena_alloc(arena, sizeof *out->values);
    if (!out->values) return SDX_FAIL_MEMORY(cx);
    if (keys->dtype == SDX_STRING && keys->count <= INT32_MAX) {
        out->string_keys = (struct sdx_onnx_strings){keys->data, (int32_t)keys->count};
    } else if (sdx_dtype_is_integer(keys->dtype)) {
        out->keys.count = keys->count;
        out->keys.at = sdx_arena_array(arena, (size_t)keys->count, sizeof *out->keys.at);
        if (!out->keys.at) return SDX_FAIL_MEMORY(cx);
        sdx_convert(SDX_I64, out->keys.at, 0, keys->dtype, keys->data, 0, keys->count, false);
    } else {
        return SDX_FAIL(cx, SDX_INVALID_ARGUMENT,
                        "map has %lld keys of type %s, expected integers "
                        "or strings",
                        (long long)keys->count, sdx_dtype_short_name(keys->dtype));
    }
    return values->kind == SDX_KIND_SEQUENCE ? save_sequence(cx, arena, values, out->values)
                                             : save_scalars(cx, arena, values, out->values);
}

static enum sdx_status save_value(struct sdx_context *cx, struct sdx_arena *arena,
                                  const struct sdx_tensor *from, void *out)
{
    switch (from->kind) {
    case SDX_KIND_SEQUENCE: return save_sequence(cx, arena, from, out);
    case SDX_KIND_OPTIONAL: return save_optional(cx, arena, from, out);
    case SDX_KIND_MAP: return save_map(cx, arena, from, out);
    case SDX_KIND_SPARSE: return save_sparse(cx, arena, from, out);
    default: return save_tensor(cx, arena, from, out);
    }
}

static void set_name(int kind, void *value, struct sdx_str name)
{
    switch (kind) {
    case SDX_KIND_SEQUENCE: ((struct pb_sequence *)value)->name = name; break;
    case SDX_KIND_OPTIONAL: ((struct pb_optional *)value)->name = name; break;
    case SDX_KIND_MAP: ((struct pb_map *)value)->name = name; break;
    case SDX_KIND_SPARSE: ((struct sdx_onnx_sparse *)value)->values->name = name; break;
    default: ((struct sdx_onnx_tensor *)value)->name = name;
    }
}

static enum sdx_status save_file(struct sdx_context *cx, struct sdx_arena *arena, const char *path,
                                 struct sdx_str name, const struct sdx_tensor *tensor)
{
    const struct sdx_message *message = message_of(tensor->kind);
    struct sdx_file_writer file;
    void *value = message ? sdx_arena_alloc(arena, message->size) : NULL;
    if (!value) return SDX_FAIL_MEMORY(cx);
    SDX_TRY(save_value(cx, arena, tensor, value));
    set_name(tensor->kind, value, name);
    SDX_TRY(sdx_file_writer_open(cx, path, &file));
    enum sdx_status status = sdx_message_write(cx, message, value, &file);
    if (status == SDX_OK) return sdx_file_writer_close(&file);
    sdx_file_writer_abandon(&file);
    return status;
}

enum sdx_status sdx_pb_save(struct sdx_context *cx, const char *path, const char *name,
                            const struct sdx_tensor *tensor)
{
    struct sdx_arena arena;
    sdx_arena_init(&arena, cx->mem, SDX_MEM_TENSOR);
    enum sdx_status status = save_file(cx, &arena, path, sdx_str(name), tensor);
    sdx_arena_deinit(&arena);
    return status;
}
