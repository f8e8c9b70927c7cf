/* SPDX-License-Identifier: Apache-2.0
 * Sequences and maps that a program makes: `containers LIBRARY MODELS`. */
#include "abi_client.h"

#include <stdio.h>
#include <string.h>

#define F32 ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT
#define F64 ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE
#define I64 ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64
#define I32 ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32

static OrtValue *row(struct client *c, ONNXTensorElementDataType type, void *data, size_t bytes,
                     int64_t count)
{
    return tensor_over(c, type, data, bytes, 1, &count);
}

static OrtValue *texts(struct client *c, const char *const *all, size_t count)
{
    OrtValue *value = NULL;
    const int64_t dims[] = {(int64_t)count};
    if (good(c, "texts",
             c->api->CreateTensorAsOrtValue(c->allocator, dims, 1,
                                            ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING, &value)))
        good(c, "texts", c->api->FillStringTensor(value, all, count));
    return value;
}

/* Makes a value, prints it and its type; the caller releases it. */
static OrtValue *make(struct client *c, const char *name, const OrtValue *const *items,
                      size_t count, enum ONNXType kind)
{
    OrtValue *value = NULL;
    OrtTypeInfo *type = NULL;
    char line[64];
    if (say_status(c, name, c->api->CreateValue(items, count, kind, &value))) return NULL;
    say_value(c, name, value);
    snprintf(line, sizeof(line), "%s.type", name);
    if (good(c, line, c->api->GetTypeInfo(value, &type))) say_type(c, line, type);
    if (type) c->api->ReleaseTypeInfo(type);
    return value;
}

static void drop(struct client *c, OrtValue *value)
{
    if (value) c->api->ReleaseValue(value);
}

static void check_sequences(struct client *c)
{
    float f[] = {1, 2, 3};
    int64_t i[] = {4, 5};
    double d[] = {6};
    uint8_t b[] = {1, 0};
    const char *const words[] = {"a", "", "long enough for memory of its own"};
    OrtValue *floats = row(c, F32, f, sizeof(f), 3), *few = row(c, F32, f, 4, 1);
    OrtValue *ints = row(c, I64, i, sizeof(i), 2), *doubles = row(c, F64, d, sizeof(d), 1);
    OrtValue *bools = row(c, ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL, b, 2, 2);
    OrtValue *strings = texts(c, words, 3);
    OrtValue *same =
        make(c, "seq.same", (const OrtValue *[]){floats, few, floats}, 3, ONNX_TYPE_SEQUENCE);
    drop(c, make(c, "seq.ints", (const OrtValue *[]){ints}, 1, ONNX_TYPE_SEQUENCE));
    drop(c, make(c, "seq.doubles", (const OrtValue *[]){doubles}, 1, ONNX_TYPE_SEQUENCE));
    drop(c, make(c, "seq.bools", (const OrtValue *[]){bools}, 1, ONNX_TYPE_SEQUENCE));
    drop(c, make(c, "seq.strings", (const OrtValue *[]){strings}, 1, ONNX_TYPE_SEQUENCE));
    drop(c, make(c, "seq.mixed", (const OrtValue *[]){floats, ints}, 2, ONNX_TYPE_SEQUENCE));
    drop(c, make(c, "seq.none", NULL, 0, ONNX_TYPE_SEQUENCE));
    drop(c, make(c, "seq.deep", (const OrtValue *[]){same}, 1, ONNX_TYPE_SEQUENCE));
    drop(c, make(c, "seq.tensor", (const OrtValue *[]){floats}, 1, ONNX_TYPE_TENSOR));
    drop(c, make(c, "seq.unknown", (const OrtValue *[]){floats}, 1, ONNX_TYPE_UNKNOWN));
    f[0] = 100;
    if (same) say_value(c, "seq.written", same);
    drop(c, floats);
    drop(c, few); /* the sequence keeps its items */
    if (same) say_value(c, "seq.kept", same);
    OrtValue *beyond = NULL;
    if (same) say_status(c, "seq.beyond", c->api->GetValue(same, 0, c->allocator, &beyond));
    drop(c, same);
    if (beyond) say_value(c, "seq.outlives", beyond);
    drop(c, beyond);
    drop(c, ints);
    drop(c, doubles);
    drop(c, bools);
    drop(c, strings);
}

static void check_maps(struct client *c)
{
    int64_t keys[] = {3, 1, 2, 1};
    float f[] = {30, 10, 20, 11};
    double d[] = {30, 10, 20, 11};
    int32_t narrow[] = {1, 2, 3, 4};
    const char *const words[] = {"c", "a", "b", "a"};
    OrtValue *ints = row(c, I64, keys, sizeof(keys), 4), *names = texts(c, words, 4);
    OrtValue *floats = row(c, F32, f, sizeof(f), 4), *three = row(c, F32, f, 12, 3);
    OrtValue *doubles = row(c, F64, d, sizeof(d), 4), *small = row(c, I32, narrow, 16, 4);
    OrtValue *wide = tensor_over(c, I64, keys, sizeof(keys), 2, (int64_t[]){2, 2});
    OrtValue *map =
        make(c, "map.int64.float", (const OrtValue *[]){ints, floats}, 2, ONNX_TYPE_MAP);
    drop(c, make(c, "map.int64.double", (const OrtValue *[]){ints, doubles}, 2, ONNX_TYPE_MAP));
    drop(c, make(c, "map.int64.int64", (const OrtValue *[]){ints, ints}, 2, ONNX_TYPE_MAP));
    drop(c, make(c, "map.int64.string", (const OrtValue *[]){ints, names}, 2, ONNX_TYPE_MAP));
    drop(c, make(c, "map.string.float", (const OrtValue *[]){names, floats}, 2, ONNX_TYPE_MAP));
    drop(c, make(c, "map.string.int64", (const OrtValue *[]){names, ints}, 2, ONNX_TYPE_MAP));
    drop(c, make(c, "map.string.string", (const OrtValue *[]){names, names}, 2, ONNX_TYPE_MAP));
    drop(c, make(c, "map.float.float", (const OrtValue *[]){floats, floats}, 2, ONNX_TYPE_MAP));
    drop(c, make(c, "map.int32.float", (const OrtValue *[]){small, floats}, 2, ONNX_TYPE_MAP));
    drop(c, make(c, "map.int64.int32", (const OrtValue *[]){ints, small}, 2, ONNX_TYPE_MAP));
    drop(c, make(c, "map.short", (const OrtValue *[]){ints, three}, 2, ONNX_TYPE_MAP));
    drop(c, make(c, "map.wide", (const OrtValue *[]){wide, floats}, 2, ONNX_TYPE_MAP));
    drop(c, make(c, "map.one", (const OrtValue *[]){ints}, 1, ONNX_TYPE_MAP));
    drop(c, make(c, "map.three", (const OrtValue *[]){ints, floats, floats}, 3, ONNX_TYPE_MAP));
    if (map) {
        drop(c, make(c, "map.nested", (const OrtValue *[]){map, map}, 2, ONNX_TYPE_SEQUENCE));
        drop(c, make(c, "map.key", (const OrtValue *[]){map, floats}, 2, ONNX_TYPE_MAP));
        f[0] = 100;
        say_value(c, "map.written", map);
        OrtValue *part = NULL;
        say_status(c, "map.beyond", c->api->GetValue(map, 2, c->allocator, &part));
        drop(c, part);
    }
    OrtValue *all[] = {map, ints, names, floats, three, doubles, small, wide};
    for (size_t k = 0; k < sizeof(all) / sizeof(all[0]); k++)
        drop(c, all[k]);
}

int main(int argc, char **argv)
{
    if (argc != 3) return fprintf(stderr, "usage: containers LIBRARY MODELS\n"), 2;
    struct client c;
    client_open(&c, argv[1], argv[2]);
    check_sequences(&c);
    check_maps(&c);
    client_close(&c);
    say("end", "reached");
    return 0;
}
