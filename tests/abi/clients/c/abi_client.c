/* SPDX-License-Identifier: Apache-2.0
 * Printing and small helpers of the C clients. */
#include "abi_client.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const char *const type_names[] = {
    "undefined", "float",  "uint8",     "int8",       "uint16",   "int16",
    "int32",     "int64",  "string",    "bool",       "float16",  "double",
    "uint32",    "uint64", "complex64", "complex128", "bfloat16",
};

static const char *type_name(ONNXTensorElementDataType type)
{
    return (size_t)type < COUNT(type_names) ? type_names[type] : "other";
}

static void die(const char *what)
{
    fprintf(stderr, "client: %s\n", what);
    exit(1);
}

void client_open(struct client *c, const char *library, const char *models)
{
    memset(c, 0, sizeof(*c));
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!handle) die(dlerror());
    const OrtApiBase *(*get_base)(void) = NULL;
    *(void **)&get_base = dlsym(handle, "OrtGetApiBase");
    if (!get_base) die("no OrtGetApiBase");
    c->base = get_base();
    for (uint32_t version = ORT_API_VERSION; !c->api && version > 22; version--)
        c->api = c->base->GetApi(version);
    if (!c->api) die("GetApi gives NULL");
    c->models = models;
    if (!good(c, "env", c->api->CreateEnv(ORT_LOGGING_LEVEL_FATAL, "client", &c->env)) ||
        !good(c, "cpu",
              c->api->CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, &c->cpu)) ||
        !good(c, "allocator", c->api->GetAllocatorWithDefaultOptions(&c->allocator)))
        exit(1);
    setvbuf(stdout, NULL, _IOLBF, 0);
}

void client_close(struct client *c)
{
    c->api->ReleaseMemoryInfo(c->cpu);
    c->api->ReleaseEnv(c->env);
}

void say(const char *name, const char *format, ...)
{
    char text[16384];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    printf("%s | ", name);
    for (const char *at = text; *at; at++) {
        if (*at == '\n')
            fputs("\\n", stdout);
        else if (*at == '\\')
            fputs("\\\\", stdout);
        else
            putchar(*at);
    }
    putchar('\n');
}

bool good(struct client *c, const char *name, OrtStatus *status)
{
    if (!status) return true;
    say(name, "code=%d %s", (int)c->api->GetErrorCode(status), c->api->GetErrorMessage(status));
    c->api->ReleaseStatus(status);
    return false;
}

bool say_status(struct client *c, const char *name, OrtStatus *status)
{
    if (!good(c, name, status)) return true;
    say(name, "ok");
    return false;
}

struct text {
    char bytes[12288];
    size_t size;
};

static void add(struct text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(struct text *t, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int count = vsnprintf(t->bytes + t->size, sizeof(t->bytes) - t->size, format, arguments);
    va_end(arguments);
    t->size += (size_t)count;
    if (t->size >= sizeof(t->bytes)) die("a value too long to print");
}

static double half_value(uint16_t bits)
{
    int exponent = bits >> 10 & 31, fraction = bits & 1023;
    double value = exponent ? 1024 + fraction : fraction;
    for (int i = exponent ? exponent : 1; i < 25; i++)
        value /= 2;
    for (int i = 25; i < exponent; i++)
        value *= 2;
    return bits >> 15 ? -value : value;
}

static void add_element(struct text *t, ONNXTensorElementDataType type, const void *data, size_t i)
{
    switch (type) {
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT:
        add(t, " %.6g", (double)((const float *)data)[i]);
        break;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE: add(t, " %.12g", ((const double *)data)[i]); break;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16:
        add(t, " %.6g", half_value(((const uint16_t *)data)[i]));
        break;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8: add(t, " %d", ((const int8_t *)data)[i]); break;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8: add(t, " %u", ((const uint8_t *)data)[i]); break;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT16: add(t, " %d", ((const int16_t *)data)[i]); break;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT16: add(t, " %u", ((const uint16_t *)data)[i]); break;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32: add(t, " %d", ((const int32_t *)data)[i]); break;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT32: add(t, " %u", ((const uint32_t *)data)[i]); break;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64:
        add(t, " %lld", (long long)((const int64_t *)data)[i]);
        break;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT64:
        add(t, " %llu", (unsigned long long)((const uint64_t *)data)[i]);
        break;
    default: add(t, " ?"); break;
    }
}

static bool add_strings(struct client *c, const char *name, struct text *t, const OrtValue *value,
                        size_t count)
{
    size_t total = 0;
    if (!good(c, name, c->api->GetStringTensorDataLength(value, &total))) return false;
    char *bytes = calloc(total + 1, 1);
    size_t *offsets = calloc(count + 1, sizeof(*offsets));
    bool read = good(c, name, c->api->GetStringTensorContent(value, bytes, total, offsets, count));
    for (size_t i = 0; read && i < count; i++) {
        size_t end = i + 1 < count ? offsets[i + 1] : total, length = 0;
        add(t, " \"%.*s\"", (int)(end - offsets[i]), bytes + offsets[i]);
        read = good(c, name, c->api->GetStringTensorElementLength(value, i, &length));
        if (read && length != end - offsets[i]) add(t, "(length %zu)", length);
    }
    free(bytes);
    free(offsets);
    return read;
}

/* type[dims], named ones by their name; -1 without a name is "?". */
static bool add_shape(struct client *c, const char *name, struct text *t,
                      const OrtTensorTypeAndShapeInfo *info)
{
    ONNXTensorElementDataType type = 0;
    size_t rank = 0;
    int64_t dims[16] = {0};
    const char *names[16] = {NULL};
    if (!good(c, name, c->api->GetTensorElementType(info, &type)) ||
        !good(c, name, c->api->GetDimensionsCount(info, &rank)) ||
        !good(c, name, c->api->GetDimensions(info, dims, rank)) ||
        !good(c, name, c->api->GetSymbolicDimensions(info, names, rank)))
        return false;
    add(t, "%s[", type_name(type));
    for (size_t i = 0; i < rank; i++) {
        add(t, "%s", i ? "," : "");
        if (dims[i] >= 0)
            add(t, "%lld", (long long)dims[i]);
        else
            add(t, "%s", names[i] && *names[i] ? names[i] : "?");
    }
    add(t, "]");
    return true;
}

static void say_tensor(struct client *c, const char *name, const OrtValue *value)
{
    const OrtApi *api = c->api;
    OrtTensorTypeAndShapeInfo *info = NULL;
    if (!good(c, name, api->GetTensorTypeAndShape(value, &info))) return;
    struct text *t = calloc(1, sizeof(*t));
    ONNXTensorElementDataType type = 0;
    size_t count = 0;
    void *data = NULL;
    if (add_shape(c, name, t, info) && good(c, name, api->GetTensorElementType(info, &type)) &&
        good(c, name, api->GetTensorShapeElementCount(info, &count))) {
        bool read = type == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING
                        ? add_strings(c, name, t, value, count)
                        : good(c, name, api->GetTensorMutableData((OrtValue *)value, &data));
        for (size_t i = 0; data && i < count; i++)
            add_element(t, type, data, i);
        if (read) say(name, "%s", t->bytes);
    }
    free(t);
    api->ReleaseTensorTypeAndShapeInfo(info);
}

void say_value(struct client *c, const char *name, const OrtValue *value)
{
    enum ONNXType kind = ONNX_TYPE_UNKNOWN;
    if (!value) {
        say(name, "NULL");
        return;
    }
    if (!good(c, name, c->api->GetValueType(value, &kind))) return;
    if (kind == ONNX_TYPE_TENSOR) {
        say_tensor(c, name, value);
        return;
    }
    size_t count = 0;
    if (kind != ONNX_TYPE_SEQUENCE && kind != ONNX_TYPE_MAP) {
        say(name, "kind %d", (int)kind);
        return;
    }
    if (!good(c, name, c->api->GetValueCount(value, &count))) return;
    say(name, "%s of %zu", kind == ONNX_TYPE_MAP ? "map" : "sequence", count);
    for (size_t i = 0; i < count; i++) {
        char below[256];
        OrtValue *item = NULL;
        snprintf(below, sizeof(below), "%s.%zu", name, i);
        if (!good(c, below, c->api->GetValue(value, (int)i, c->allocator, &item))) continue;
        say_value(c, below, item);
        c->api->ReleaseValue(item);
    }
}

static void say_sequence_type(struct client *c, const char *name, const OrtTypeInfo *type)
{
    const OrtSequenceTypeInfo *sequence = NULL;
    OrtTypeInfo *element = NULL;
    char below[256];
    snprintf(below, sizeof(below), "%s.element", name);
    say(name, "sequence");
    if (good(c, below, c->api->CastTypeInfoToSequenceTypeInfo(type, &sequence)) &&
        good(c, below, c->api->GetSequenceElementType(sequence, &element)))
        say_type(c, below, element);
    if (element) c->api->ReleaseTypeInfo(element);
}

static void say_map_type(struct client *c, const char *name, const OrtTypeInfo *type)
{
    const OrtMapTypeInfo *map = NULL;
    ONNXTensorElementDataType key = 0;
    OrtTypeInfo *value = NULL;
    char below[256];
    snprintf(below, sizeof(below), "%s.value", name);
    if (!good(c, name, c->api->CastTypeInfoToMapTypeInfo(type, &map)) ||
        !good(c, name, c->api->GetMapKeyType(map, &key)))
        return;
    say(name, "map of %s", type_name(key));
    if (good(c, below, c->api->GetMapValueType(map, &value))) say_type(c, below, value);
    if (value) c->api->ReleaseTypeInfo(value);
}

void say_type(struct client *c, const char *name, const OrtTypeInfo *type)
{
    enum ONNXType kind = ONNX_TYPE_UNKNOWN;
    if (!good(c, name, c->api->GetOnnxTypeFromTypeInfo(type, &kind))) return;
    if (kind == ONNX_TYPE_SEQUENCE)
        say_sequence_type(c, name, type);
    else if (kind == ONNX_TYPE_MAP)
        say_map_type(c, name, type);
    else if (kind != ONNX_TYPE_TENSOR)
        say(name, "kind %d", (int)kind);
    else {
        const OrtTensorTypeAndShapeInfo *info = NULL;
        struct text *t = calloc(1, sizeof(*t));
        if (good(c, name, c->api->CastTypeInfoToTensorInfo(type, &info)) &&
            add_shape(c, name, t, info))
            say(name, "%s", t->bytes);
        free(t);
    }
}

const char *model_path(struct client *c, const char *name)
{
    static _Thread_local char path[512];
    snprintf(path, sizeof(path), "%s/%s", c->models, name);
    return path;
}

OrtSession *open_model(struct client *c, const char *name)
{
    OrtSessionOptions *options = NULL;
    OrtSession *session = NULL;
    if (!good(c, name, c->api->CreateSessionOptions(&options))) return NULL;
    good(c, name, c->api->CreateSession(c->env, model_path(c, name), options, &session));
    c->api->ReleaseSessionOptions(options);
    return session;
}

OrtValue *tensor_over(struct client *c, ONNXTensorElementDataType type, void *data, size_t bytes,
                      size_t rank, const int64_t *dims)
{
    OrtValue *value = NULL;
    if (!good(
            c, "tensor",
            c->api->CreateTensorWithDataAsOrtValue(c->cpu, data, bytes, dims, rank, type, &value)))
        exit(1);
    return value;
}

OrtValue *float_tensor(struct client *c, float *data, int64_t rows, int64_t columns)
{
    return tensor_over(c, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, data,
                       (size_t)(rows * columns) * sizeof(float), 2, (int64_t[]){rows, columns});
}

void run_one(struct client *c, const char *name, OrtSession *session, OrtValue *x)
{
    OrtValue *y = NULL;
    if (good(c, name,
             c->api->Run(session, NULL, (const char *[]){"x"}, (const OrtValue *const *)&x, 1,
                         (const char *[]){"y"}, 1, &y))) {
        say_value(c, name, y);
        c->api->ReleaseValue(y);
    }
    c->api->ReleaseValue(x);
}

void *read_whole(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    if (!file) die(path);
    fseek(file, 0, SEEK_END);
    long end = ftell(file);
    rewind(file);
    void *bytes = malloc((size_t)end + 1);
    if (fread(bytes, 1, (size_t)end, file) != (size_t)end) die(path);
    fclose(file);
    *size = (size_t)end;
    return bytes;
}
