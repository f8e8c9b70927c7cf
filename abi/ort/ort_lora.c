/* SPDX-License-Identifier: Apache-2.0
 * LoRA adapters: small files with named tensors, which the runs with an adapter feed as inputs. A
 * file is a FlatBuffers table, read here with every offset checked:
 *   Adapter {format_version, adapter_version, model_version: int32; parameters: [Parameter]}
 *   Parameter {name: string; dims: [int64]; data_type: int32; raw_data: [uint8]} */
#include "ort_bytes.h"
#include "ort_inside.h"
#include "ort_objects.h"

#include <stdlib.h>
#include <string.h>

enum { FORMAT = 1, RANK_MAX = 64, IDENTIFIER_AT = 4 };

struct parameter {
    char *name;
    OrtValue *value;
};

struct OrtLoraAdapter {
    int32_t versions[3]; /* of the format, the adapter, the model */
    size_t count;
    struct parameter *parameters;
};

/* ---- FlatBuffers ---- */

struct file {
    const unsigned char *bytes;
    size_t size;
    bool bad; /* something lay outside */
};

static uint64_t read_number(struct file *file, size_t at, size_t bytes)
{
    uint64_t number = 0;
    if (at > file->size || file->size - at < bytes) {
        file->bad = true;
        return 0;
    }
    for (size_t i = 0; i < bytes; i++)
        number |= (uint64_t)file->bytes[at + i] << (8 * i);
    return number;
}

/* Where the offset at `at` leads. */
static size_t follow(struct file *file, size_t at)
{
    const size_t offset = (size_t)read_number(file, at, 4);
    if (offset > file->size - at) file->bad = true;
    return file->bad ? 0 : at + offset;
}

/* The place of field `index` of a table; 0: it has none. */
static size_t field_at(struct file *file, size_t table, size_t index)
{
    const int64_t back = (int32_t)(uint32_t)read_number(file, table, 4);
    const int64_t about = (int64_t)table - back;
    if (file->bad || about < 0) {
        file->bad = true;
        return 0;
    }
    const size_t place = 4 + 2 * index;
    if (place + 2 > read_number(file, (size_t)about, 2)) return 0;
    const size_t offset = (size_t)read_number(file, (size_t)about + place, 2);
    return offset ? table + offset : 0;
}

static int32_t int_field(struct file *file, size_t table, size_t index)
{
    const size_t at = field_at(file, table, index);
    return at ? (int32_t)(uint32_t)read_number(file, at, 4) : 0;
}

/* The first element of a vector and how many there are; 0: none. */
static size_t vector_field(struct file *file, size_t table, size_t index, size_t size,
                           size_t *count)
{
    *count = 0;
    const size_t at = field_at(file, table, index);
    const size_t vector = at ? follow(file, at) : 0;
    if (!vector) return 0;
    const size_t length = (size_t)read_number(file, vector, 4);
    if (file->bad || length > (file->size - vector - 4) / size) {
        file->bad = true;
        return 0;
    }
    *count = length;
    return vector + 4;
}

/* ---- adapters ---- */

static void release(OrtLoraAdapter *adapter)
{
    if (!adapter) return;
    for (size_t i = 0; i < adapter->count; i++) {
        free(adapter->parameters[i].name);
        ort_value_release(adapter->parameters[i].value);
    }
    free(adapter->parameters);
    free(adapter);
}

static OrtStatusPtr fail_format(const char *what)
{
    return ort_fail(ORT_INVALID_ARGUMENT, "LoRA adapter: %s", what);
}

static OrtStatusPtr read_parameter(struct file *file, size_t table, OrtAllocator *allocator,
                                   struct parameter *out)
{
    enum { NAME, DIMS, TYPE, DATA };
    int64_t dims[RANK_MAX];
    size_t length, rank, bytes;
    const size_t name = vector_field(file, table, NAME, 1, &length);
    const size_t dims_at = vector_field(file, table, DIMS, sizeof dims[0], &rank);
    const size_t data = vector_field(file, table, DATA, 1, &bytes);
    const int32_t type = int_field(file, table, TYPE);
    if (file->bad || !name || rank > RANK_MAX) return fail_format("a parameter is broken");
    if (type == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING)
        return fail_format("a parameter holds strings");
    for (size_t i = 0; i < rank; i++)
        dims[i] = (int64_t)read_number(file, dims_at + i * sizeof dims[0], sizeof dims[0]);
    out->name = strndup((const char *)file->bytes + name, length);
    if (!out->name) return ort_no_memory();
    ORT_TRY(ort_value_create(allocator, dims, rank, (ONNXTensorElementDataType)type, &out->value));
    sdx_tensor *tensor = ort_value_tensor(out->value);
    if (sdx_tensor_bytes(tensor) != bytes)
        return ort_fail(ORT_INVALID_ARGUMENT,
                        "LoRA adapter: parameter '%s' has %zu bytes of data, expected %zu",
                        out->name, bytes, sdx_tensor_bytes(tensor));
    if (bytes) memcpy(sdx_tensor_data(tensor), file->bytes + data, bytes);
    return NULL;
}

static OrtStatusPtr read_adapter(struct file *file, OrtAllocator *allocator,
                                 OrtLoraAdapter *adapter)
{
    enum { PARAMETERS = 3 };
    size_t count;
    if (file->size < 8 || memcmp(file->bytes + IDENTIFIER_AT, "TORT", 4) != 0)
        return fail_format("The buffer does not appear to be a valid lora parameter format");
    const size_t root = follow(file, 0);
    for (size_t i = 0; i < 3; i++)
        adapter->versions[i] = int_field(file, root, i);
    const size_t at = vector_field(file, root, PARAMETERS, 4, &count);
    if (file->bad) return fail_format("an offset lies outside of the file");
    if (adapter->versions[0] != FORMAT)
        return ort_fail(ORT_INVALID_ARGUMENT, "LoRA adapter: format version is %d, expected %d",
                        (int)adapter->versions[0], FORMAT);
    adapter->parameters = calloc(count + 1, sizeof *adapter->parameters);
    if (!adapter->parameters) return ort_no_memory();
    for (; adapter->count < count; adapter->count++) {
        struct parameter *parameter = &adapter->parameters[adapter->count];
        OrtStatusPtr failed =
            read_parameter(file, follow(file, at + 4 * adapter->count), allocator, parameter);
        if (!failed) continue;
        adapter->count++; /* what it has is released */
        return failed;
    }
    return NULL;
}

static OrtStatusPtr create_from_array(const void *bytes, size_t size, OrtAllocator *allocator,
                                      OrtLoraAdapter **out)
{
    struct file file = {.bytes = bytes, .size = size};
    *out = NULL;
    OrtLoraAdapter *adapter = calloc(1, sizeof *adapter);
    if (!adapter) return ort_no_memory();
    OrtStatusPtr failed = read_adapter(&file, allocator, adapter);
    if (failed)
        release(adapter);
    else
        *out = adapter;
    return failed;
}

static OrtStatusPtr create(const char *path, OrtAllocator *allocator, OrtLoraAdapter **out)
{
    struct ort_bytes bytes = {0};
    *out = NULL;
    OrtStatusPtr failed = ort_read_file(path, &bytes);
    if (!failed) failed = create_from_array(bytes.data, bytes.size, allocator, out);
    ort_bytes_deinit(&bytes);
    return failed;
}

void ort_lora_versions(const OrtLoraAdapter *adapter, int32_t versions[3])
{
    memcpy(versions, adapter->versions, sizeof adapter->versions);
}

const OrtValue *ort_lora_parameter(const OrtLoraAdapter *adapter, size_t i, const char **name)
{
    if (i >= adapter->count) return NULL;
    *name = adapter->parameters[i].name;
    return adapter->parameters[i].value;
}

/* ---- runs ---- */

static OrtStatusPtr activate(OrtRunOptions *options, const OrtLoraAdapter *adapter)
{
    ORT_TRY(ort_grow(&options->adapters, options->count_adapters, sizeof(void *)));
    options->adapters[options->count_adapters++] = adapter;
    return NULL;
}

static bool is_named(const char *const *names, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (name && names[i] && !strcmp(names[i], name)) return true;
    return false;
}

static void add_feed(struct ort_feeds *feeds, const char *name, const OrtValue *value)
{
    if (is_named(feeds->own_names, feeds->count, name)) return;
    feeds->own_names[feeds->count] = name;
    feeds->own_values[feeds->count++] = value;
}

/* Of two values for an input an adapter's goes before the run's, and the first adapter's before
 * others'. */
OrtStatusPtr ort_lora_feed(const OrtRunOptions *options, struct ort_feeds *feeds)
{
    const size_t given = feeds->count;
    size_t most = given;
    for (size_t a = 0; a < options->count_adapters; a++)
        most += options->adapters[a]->count;
    feeds->own_names = calloc(most + 1, sizeof *feeds->own_names);
    feeds->own_values = calloc(most + 1, sizeof *feeds->own_values);
    if (!feeds->own_names || !feeds->own_values) return ort_no_memory();
    feeds->count = 0;
    for (size_t a = 0; a < options->count_adapters; a++)
        for (size_t i = 0; i < options->adapters[a]->count; i++)
            add_feed(feeds, options->adapters[a]->parameters[i].name,
                     options->adapters[a]->parameters[i].value);
    for (size_t i = 0; i < given; i++)
        add_feed(feeds, feeds->names[i], feeds->values[i]);
    feeds->names = feeds->own_names;
    feeds->values = feeds->own_values;
    return NULL;
}

void ort_fill_lora(OrtApi *api)
{
    api->CreateLoraAdapter = create;
    api->CreateLoraAdapterFromArray = create_from_array;
    api->ReleaseLoraAdapter = release;
    api->RunOptionsAddActiveLoraAdapter = activate;
}
