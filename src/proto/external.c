/* SPDX-License-Identifier: Apache-2.0
 * External data: the entries of TensorProto.external_data, read strictly, and the files they name,
 * each mapped once a model. The SHA1 checksum is not verified: no exporter writes it. */
#include "proto/tensor_data.h"

#define TENSOR_NAME(from) SDX_STR_ARG((from)->name)

void sdx_external_init(struct sdx_external *ex, struct sdx_arena *arena, const char *folder)
{
    *ex = (struct sdx_external){.arena = arena, .folder = folder};
    sdx_map_init(&ex->index, arena->mem);
}

void sdx_external_deinit(struct sdx_external *ex)
{
    if (!ex->arena) return;
    for (int32_t i = 0; i < ex->count; i++)
        sdx_file_map_close(&ex->files[i]);
    sdx_map_deinit(&ex->index);
    *ex = (struct sdx_external){0};
}

/* Maps the file unless it is mapped already. */
static enum sdx_status open_file(struct sdx_context *cx, struct sdx_external *ex,
                                 struct sdx_str location, const struct sdx_file_map **out)
{
    int32_t place = sdx_map_get(&ex->index, location);
    if (place >= 0) {
        *out = &ex->files[place];
        return SDX_OK;
    }
    if (ex->count == ex->capacity) {
        int32_t capacity = ex->capacity ? 2 * ex->capacity : 4;
        struct sdx_file_map *files = sdx_arena_array(ex->arena, (size_t)capacity, sizeof *files);
        if (!files) return SDX_FAIL_MEMORY(cx);
        if (ex->count > 0) memcpy(files, ex->files, (size_t)ex->count * sizeof *files);
        ex->files = files;
        ex->capacity = capacity;
    }
    SDX_TRY(sdx_file_map_open_below(cx, ex->folder, location, &ex->files[ex->count]));
    if (!sdx_map_put(&ex->index, location, ex->count)) {
        sdx_file_map_close(&ex->files[ex->count]);
        return SDX_FAIL_MEMORY(cx);
    }
    *out = &ex->files[ex->count++];
    return SDX_OK;
}

/* Decimal digits only: no sign, no space, no overflow. */
static bool parse_digits(struct sdx_str text, uint64_t *out)
{
    uint64_t value = 0;
    if (text.len == 0) return false;
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9') return false;
        uint64_t digit = (uint64_t)(text.ptr[i] - '0');
        if (value > (UINT64_MAX - digit) / 10) return false;
        value = value * 10 + digit;
    }
    *out = value;
    return true;
}

struct external_entries {
    const struct sdx_str *location, *offset, *length;
};

/* Keys we do not know ("checksum", "basepath", ones of other runtimes) change nothing. */
static enum sdx_status read_entries(struct sdx_context *cx, const struct sdx_onnx_tensor *from,
                                    struct external_entries *entries)
{
    *entries = (struct external_entries){0};
    for (int32_t i = 0; i < from->external.count; i++) {
        const struct sdx_onnx_pair *pair = &from->external.at[i];
        const struct sdx_str **entry = sdx_str_is(pair->key, "location") ? &entries->location
                                       : sdx_str_is(pair->key, "offset") ? &entries->offset
                                       : sdx_str_is(pair->key, "length") ? &entries->length
                                                                         : NULL;
        if (!entry) continue;
        if (*entry)
            return SDX_FAIL(cx, SDX_BAD_MODEL,
                            "tensor \"%.*s\": external data gives \"%.*s\" twice",
                            TENSOR_NAME(from), SDX_STR_ARG(pair->key));
        *entry = &pair->value;
    }
    if (!entries->location || entries->location->len == 0)
        return SDX_FAIL(cx, SDX_BAD_MODEL, "tensor \"%.*s\": external data has no location",
                        TENSOR_NAME(from));
    return SDX_OK;
}

enum sdx_status sdx_external_get(struct sdx_context *cx, struct sdx_external *ex,
                                 const struct sdx_onnx_tensor *from, size_t bytes,
                                 const void **data)
{
    struct external_entries entries;
    uint64_t offset = 0, length = bytes;
    *data = NULL;
    SDX_TRY(read_entries(cx, from, &entries));
    if (!ex || (!ex->folder && !ex->section))
        return SDX_FAIL(cx, SDX_BAD_MODEL,
                        "tensor \"%.*s\": data is in file \"%.*s\", but a model from memory has "
                        "no folder",
                        TENSOR_NAME(from), SDX_STR_ARG(*entries.location));
    if (entries.offset && !parse_digits(*entries.offset, &offset))
        return SDX_FAIL(cx, SDX_BAD_MODEL,
                        "tensor \"%.*s\": external data's offset is \"%.*s\", expected a number",
                        TENSOR_NAME(from), SDX_STR_ARG(*entries.offset));
    if (entries.length && !parse_digits(*entries.length, &length))
        return SDX_FAIL(cx, SDX_BAD_MODEL,
                        "tensor \"%.*s\": external data's length is \"%.*s\", expected a number",
                        TENSOR_NAME(from), SDX_STR_ARG(*entries.length));
    if (length != bytes)
        return SDX_FAIL(cx, SDX_BAD_MODEL,
                        "tensor \"%.*s\": external data has %llu bytes, expected %zu",
                        TENSOR_NAME(from), (unsigned long long)length, bytes);
    const struct sdx_file_map section = {.data = ex->section, .size = ex->section_size};
    const struct sdx_file_map *map = &section;
    if (!ex->section && open_file(cx, ex, *entries.location, &map) != SDX_OK)
        return sdx_fail_where(cx, "tensor \"%.*s\"", TENSOR_NAME(from));
    if (offset > map->size || bytes > map->size - offset)
        return SDX_FAIL(cx, SDX_BAD_MODEL,
                        "tensor \"%.*s\": external data takes %zu bytes at %llu, but \"%.*s\" has "
                        "%zu",
                        TENSOR_NAME(from), bytes, (unsigned long long)offset,
                        SDX_STR_ARG(*entries.location), map->size);
    *data = bytes > 0 ? map->data + offset : (const unsigned char *)"";
    return SDX_OK;
}
