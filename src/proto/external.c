/* SPDX-License-Identifier: Apache-2.0
 * External data: the entries of TensorProto.external_data, read strictly, and the files they name,
 * each mapped once a model. The SHA1 checksum is not verified: no exporter writes it. */
#include "proto/tensor_data.h"

#define TENSOR_NAME(from) SDX_STR_ARG((from)->name)
#define NO_FOLDER         "data is in file \"%.*s\", but a model from memory has no folder"

void sdx_external_init(struct sdx_external *ex, struct sdx_arena *arena, const char *folder)
{
    *ex = (struct sdx_external){.arena = arena, .folder = folder};
    sdx_map_init(&ex->index, arena->mem);
    sdx_map_init(&ex->given_index, arena->mem);
}

void sdx_external_deinit(struct sdx_external *ex)
{
    if (!ex->arena) return;
    for (int32_t i = 0; i < ex->count; i++)
        sdx_file_map_close(&ex->files[i]);
    sdx_map_deinit(&ex->index);
    sdx_map_deinit(&ex->given_index);
    *ex = (struct sdx_external){0};
}

/* Room for one more in an array of the arena. */
static bool reserve(struct sdx_external *ex, void **array, int32_t count, int32_t *capacity,
                    size_t size)
{
    if (count < *capacity) return true;
    const int32_t wanted = *capacity ? 2 * *capacity : 4;
    void *more = sdx_arena_array(ex->arena, (size_t)wanted, size);
    if (!more) return false;
    if (count) memcpy(more, *array, (size_t)count * size);
    *array = more;
    *capacity = wanted;
    return true;
}

static bool reserve_file(struct sdx_external *ex)
{
    return reserve(ex, (void **)&ex->files, ex->count, &ex->capacity, sizeof *ex->files);
}

enum sdx_status sdx_external_give_tensor(struct sdx_context *cx, struct sdx_external *ex,
                                         const char *name, const struct sdx_tensor *tensor)
{
    const struct sdx_str own = sdx_str(sdx_arena_strndup(ex->arena, name, strlen(name)));
    if (own.ptr && sdx_map_get(&ex->given_index, own) >= 0)
        return SDX_FAIL(cx, SDX_INVALID_ARGUMENT, "initializer \"%s\" is given twice", name);
    if (!own.ptr ||
        !reserve(ex, (void **)&ex->given, ex->count_given, &ex->capacity_given,
                 sizeof *ex->given) ||
        !sdx_map_put(&ex->given_index, own, ex->count_given))
        return SDX_FAIL_MEMORY(cx);
    ex->given[ex->count_given++] = (struct sdx_given){own, tensor};
    return SDX_OK;
}

enum sdx_status sdx_external_give_file(struct sdx_context *cx, struct sdx_external *ex,
                                       const char *name, const void *bytes, size_t size)
{
    const struct sdx_str own = sdx_str(sdx_arena_strndup(ex->arena, name, strlen(name)));
    if (own.ptr && sdx_map_get(&ex->index, own) >= 0)
        return SDX_FAIL(cx, SDX_INVALID_ARGUMENT, "file \"%s\" is given twice", name);
    if (!own.ptr || !reserve_file(ex) || !sdx_map_put(&ex->index, own, ex->count))
        return SDX_FAIL_MEMORY(cx);
    ex->files[ex->count++] =
        (struct sdx_file_map){.data = bytes, .size = size, .given_as = own.ptr};
    return SDX_OK;
}

const struct sdx_tensor *sdx_external_given(const struct sdx_external *ex, struct sdx_str name)
{
    const int32_t at = ex && ex->count_given ? sdx_map_get(&ex->given_index, name) : -1;
    return at >= 0 ? ex->given[at].tensor : NULL;
}

/* Maps the file unless it is mapped or given already. */
static enum sdx_status open_file(struct sdx_context *cx, struct sdx_external *ex,
                                 struct sdx_str location, const struct sdx_file_map **out)
{
    int32_t place = sdx_map_get(&ex->index, location);
    if (place >= 0) {
        *out = &ex->files[place];
        return SDX_OK;
    }
    if (!ex->folder) return SDX_FAIL(cx, SDX_BAD_MODEL, NO_FOLDER, SDX_STR_ARG(location));
    if (!reserve_file(ex)) return SDX_FAIL_MEMORY(cx);
    SDX_TRY(sdx_file_map_open_below(cx, ex->folder, location, &ex->files[ex->count]));
    if (!sdx_map_put(&ex->index, location, ex->count)) {
        sdx_file_map_close(&ex->files[ex->count]);
        return SDX_FAIL_MEMORY(cx);
    }
    sdx_file_map_use_small_pages(&ex->files[ex->count]);
    *out = &ex->files[ex->count++];
    return SDX_OK;
}

void sdx_external_drop(const struct sdx_external *ex, const void *bytes, size_t size)
{
    for (int32_t i = 0; i < ex->count; i++)
        sdx_file_map_drop(&ex->files[i], bytes, size);
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
    if (!ex)
        return SDX_FAIL(cx, SDX_BAD_MODEL, "tensor \"%.*s\": " NO_FOLDER, TENSOR_NAME(from),
                        SDX_STR_ARG(*entries.location));
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
