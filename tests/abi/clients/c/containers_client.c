/* SPDX-License-Identifier: Apache-2.0
 * Values that are no dense tensors: sequences, maps, optionals, opaque and sparse ones. */
#include "abi_client.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FLOAT  ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT
#define INT64  ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64
#define STRING ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING

static OrtValue *strings(struct client *c, const char *const *texts, size_t count)
{
    OrtValue *value = NULL;
    const int64_t dims[] = {(int64_t)count};
    if (!good(c, "strings",
              c->api->CreateTensorAsOrtValue(c->allocator, dims, 1, STRING, &value)) ||
        !good(c, "strings", c->api->FillStringTensor(value, texts, count)))
        exit(1);
    return value;
}

static OrtValue *ints(struct client *c, int64_t *data, int64_t count)
{
    return tensor_over(c, INT64, data, (size_t)count * sizeof *data, 1, &count);
}

static OrtValue *floats(struct client *c, float *data, int64_t count)
{
    return tensor_over(c, FLOAT, data, (size_t)count * sizeof *data, 1, &count);
}

static OrtValue *make(struct client *c, const char *name, OrtValue **in, size_t count,
                      ONNXType kind)
{
    OrtValue *made = NULL;
    OrtTypeInfo *type = NULL;
    if (!good(c, name, c->api->CreateValue((const OrtValue *const *)in, count, kind, &made)))
        return NULL;
    say_value(c, name, made);
    if (good(c, name, c->api->GetTypeInfo(made, &type))) say_type(c, name, type);
    c->api->ReleaseTypeInfo(type);
    return made;
}

static void check_sequences(struct client *c)
{
    float a[] = {1, 2}, b[] = {3, 4, 5};
    int64_t i[] = {7};
    OrtValue *in[3] = {floats(c, a, 2), floats(c, b, 3), ints(c, i, 1)};
    OrtValue *texts[2] = {strings(c, (const char *[]){"one", ""}, 2),
                          strings(c, (const char *[]){"two"}, 1)};
    OrtValue *made = make(c, "sequence", in, 2, ONNX_TYPE_SEQUENCE);
    c->api->ReleaseValue(made);
    c->api->ReleaseValue(make(c, "sequence.mixed", in, 3, ONNX_TYPE_SEQUENCE));
    c->api->ReleaseValue(make(c, "sequence.empty", in, 0, ONNX_TYPE_SEQUENCE));
    made = make(c, "sequence.text", texts, 2, ONNX_TYPE_SEQUENCE);
    OrtValue *item = NULL;
    size_t count = 0;
    say_status(c, "sequence.past", c->api->GetValue(made, 2, c->allocator, &item));
    say_status(c, "sequence.count", c->api->GetValueCount(made, &count));
    say_status(c, "sequence.count_of_tensor", c->api->GetValueCount(in[0], &count));
    if (good(c, "sequence.item", c->api->GetValue(made, 0, c->allocator, &item))) {
        c->api->ReleaseValue(made);
        say_value(c, "sequence.item_alone", item);
        c->api->ReleaseValue(item);
    }
    c->api->ReleaseValue(make(c, "sequence.tensor_type", in, 1, ONNX_TYPE_TENSOR));
    c->api->ReleaseValue(make(c, "sequence.sparse_type", in, 1, ONNX_TYPE_SPARSETENSOR));
    c->api->ReleaseValue(make(c, "sequence.optional_type", in, 1, ONNX_TYPE_OPTIONAL));
    for (int k = 0; k < 3; k++)
        c->api->ReleaseValue(in[k]);
    c->api->ReleaseValue(texts[0]);
    c->api->ReleaseValue(texts[1]);
}

static void check_maps(struct client *c)
{
    int64_t keys[] = {30, 10, 20}, whole[] = {5, 6, 7};
    float values[] = {1, 2, 3};
    OrtValue *in[2] = {ints(c, keys, 3), floats(c, values, 3)};
    OrtValue *text = strings(c, (const char *[]){"b", "a", "c"}, 3), *number = ints(c, whole, 3);
    OrtValue *map = make(c, "map", in, 2, ONNX_TYPE_MAP), *first = NULL;
    size_t count = 0;
    say_status(c, "map.count", c->api->GetValueCount(map, &count));
    say_status(c, "map.past", c->api->GetValue(map, 2, c->allocator, &first));
    OrtValue *maps[2] = {map, map};
    c->api->ReleaseValue(make(c, "map.sequence", maps, 2, ONNX_TYPE_SEQUENCE));
    c->api->ReleaseValue(map);
    c->api->ReleaseValue(make(c, "map.one", in, 1, ONNX_TYPE_MAP));
    c->api->ReleaseValue(make(c, "map.text", (OrtValue *[]){text, in[1]}, 2, ONNX_TYPE_MAP));
    c->api->ReleaseValue(make(c, "map.text_int", (OrtValue *[]){text, number}, 2, ONNX_TYPE_MAP));
    c->api->ReleaseValue(make(c, "map.int_text", (OrtValue *[]){in[0], text}, 2, ONNX_TYPE_MAP));
    c->api->ReleaseValue(make(c, "map.float_keys", (OrtValue *[]){in[1], in[0]}, 2, ONNX_TYPE_MAP));
    OrtValue *short_values = floats(c, values, 2);
    c->api->ReleaseValue(
        make(c, "map.lengths", (OrtValue *[]){in[0], short_values}, 2, ONNX_TYPE_MAP));
    c->api->ReleaseValue(short_values);
    c->api->ReleaseValue(in[0]);
    c->api->ReleaseValue(in[1]);
    c->api->ReleaseValue(text);
    c->api->ReleaseValue(number);
}

static void check_opaque(struct client *c)
{
    OrtValue *value = NULL;
    int data = 1;
    OrtStatus *failed = c->api->CreateOpaqueValue("mine", "Thing", &data, sizeof data, &value);
    say("opaque", "code=%d", failed ? (int)c->api->GetErrorCode(failed) : 0);
    c->api->ReleaseStatus(failed);
}

/* An optional that comes in goes out. */
static void check_optional(struct client *c)
{
    float x[] = {1, 2};
    OrtSession *session = open_model(c, "optional.onnx");
    OrtValue *in = floats(c, x, 2), *out[2] = {NULL};
    int has = 9;
    if (!session) return;
    if (good(c, "optional",
             c->api->Run(session, NULL, (const char *[]){"x"}, (const OrtValue *const *)&in, 1,
                         (const char *[]){"full", "empty"}, 2, out))) {
        for (int i = 0; i < 2; i++) {
            if (good(c, "optional.has", c->api->HasValue(out[i], &has)))
                say("optional.has", "%d", has);
            ONNXType kind = ONNX_TYPE_UNKNOWN;
            if (has && good(c, "optional.kind", c->api->GetValueType(out[i], &kind)))
                say("optional.kind", "%d", (int)kind);
            if (has) say_value(c, "optional.value", out[i]);
        }
    }
    c->api->ReleaseValue(out[0]);
    c->api->ReleaseValue(out[1]);
    c->api->ReleaseValue(in);
    c->api->ReleaseSession(session);
}

/* ---- sparse tensors ---- */

static void say_indices(struct client *c, const char *name, const OrtValue *value,
                        enum OrtSparseIndicesFormat format)
{
    OrtTensorTypeAndShapeInfo *info = NULL;
    ONNXTensorElementDataType type = 0;
    int64_t dims[4] = {0};
    size_t rank = 0, count = 0;
    const void *data = NULL;
    char text[512];
    if (!good(c, name, c->api->GetSparseTensorIndicesTypeShape(value, format, &info)) ||
        !good(c, name, c->api->GetTensorElementType(info, &type)) ||
        !good(c, name, c->api->GetDimensionsCount(info, &rank)) ||
        !good(c, name, c->api->GetDimensions(info, dims, rank)) ||
        !good(c, name, c->api->GetSparseTensorIndices(value, format, &count, &data)))
        return;
    int used =
        snprintf(text, sizeof text, "type %d rank %zu [%" PRId64 ",%" PRId64 "] %zu:", (int)type,
                 rank, dims[0], rank > 1 ? dims[1] : 0, count);
    for (size_t i = 0; i < count; i++)
        used += snprintf(text + used, sizeof text - (size_t)used, " %" PRId64,
                         type == INT64 ? ((const int64_t *)data)[i] : ((const int32_t *)data)[i]);
    say(name, "%s", text);
    c->api->ReleaseTensorTypeAndShapeInfo(info);
}

static void say_sparse(struct client *c, const char *name, const OrtValue *value)
{
    enum OrtSparseFormat format = ORT_SPARSE_UNDEFINED;
    OrtTensorTypeAndShapeInfo *info = NULL;
    ONNXTensorElementDataType type = 0;
    int64_t dims[4] = {0};
    size_t rank = 0, count = 0;
    const void *data = NULL;
    int sparse = 9, has = 9, dense = 9;
    ONNXType kind = ONNX_TYPE_UNKNOWN;
    char text[512];
    good(c, name, c->api->IsSparseTensor(value, &sparse));
    good(c, name, c->api->HasValue(value, &has));
    good(c, name, c->api->IsTensor(value, &dense));
    good(c, name, c->api->GetValueType(value, &kind));
    if (good(c, name, c->api->GetSparseTensorFormat(value, &format)))
        say(name, "sparse %d has %d dense %d kind %d format %d", sparse, has, dense, (int)kind,
            (int)format);
    if (good(c, name, c->api->GetTensorTypeAndShape(value, &info)) &&
        good(c, name, c->api->GetDimensionsCount(info, &rank)) &&
        good(c, name, c->api->GetDimensions(info, dims, rank)))
        say(name, "dense shape of rank %zu [%" PRId64 ",%" PRId64 "]", rank, dims[0], dims[1]);
    c->api->ReleaseTensorTypeAndShapeInfo(info);
    info = NULL;
    if (!good(c, name, c->api->GetSparseTensorValuesTypeAndShape(value, &info)) ||
        !good(c, name, c->api->GetTensorElementType(info, &type)) ||
        !good(c, name, c->api->GetDimensionsCount(info, &rank)) ||
        !good(c, name, c->api->GetTensorShapeElementCount(info, &count)))
        return;
    c->api->ReleaseTensorTypeAndShapeInfo(info);
    if (type != STRING && !good(c, name, c->api->GetSparseTensorValues(value, &data))) return;
    int used = snprintf(text, sizeof text, "values of type %d rank %zu:", (int)type, rank);
    for (size_t i = 0; i < count && type == FLOAT; i++)
        used += snprintf(text + used, sizeof text - (size_t)used, " %g",
                         (double)((const float *)data)[i]);
    say(name, "%s", text);
}

static OrtValue *new_sparse(struct client *c, const char *name, ONNXTensorElementDataType type)
{
    OrtValue *value = NULL;
    const int64_t dense[] = {3, 4};
    if (!good(c, name, c->api->CreateSparseTensorAsOrtValue(c->allocator, dense, 2, type, &value)))
        exit(1);
    return value;
}

static void check_fill(struct client *c)
{
    const int64_t count[] = {3}, flat[] = {1, 6, 11}, pairs[] = {0, 1, 1, 2, 2, 3};
    const int64_t inner[] = {1, 2, 3}, outer[] = {0, 1, 2, 3};
    const float values[] = {5, 6, 7};
    OrtValue *value = new_sparse(c, "sparse.new", FLOAT);
    enum OrtSparseFormat format = ORT_SPARSE_COO;
    if (good(c, "sparse.new", c->api->GetSparseTensorFormat(value, &format)))
        say("sparse.new", "format %d", (int)format);
    say_status(c, "sparse.coo",
               c->api->FillSparseTensorCoo(value, c->cpu, count, 1, values, flat, 3));
    say_sparse(c, "sparse.coo", value);
    say_indices(c, "sparse.coo.indices", value, ORT_SPARSE_COO_INDICES);
    say_indices(c, "sparse.coo.inner", value, ORT_SPARSE_CSR_INNER_INDICES);
    c->api->ReleaseValue(value);
    value = new_sparse(c, "sparse.pairs", FLOAT);
    say_status(c, "sparse.pairs",
               c->api->FillSparseTensorCoo(value, c->cpu, count, 1, values, pairs, 6));
    say_sparse(c, "sparse.pairs", value);
    say_indices(c, "sparse.pairs.indices", value, ORT_SPARSE_COO_INDICES);
    c->api->ReleaseValue(value);
    value = new_sparse(c, "sparse.wrong", FLOAT);
    say_status(c, "sparse.wrong",
               c->api->FillSparseTensorCoo(value, c->cpu, count, 1, values, pairs, 4));
    c->api->ReleaseValue(value);
    value = new_sparse(c, "sparse.csr", FLOAT);
    say_status(c, "sparse.csr",
               c->api->FillSparseTensorCsr(value, c->cpu, count, 1, values, inner, 3, outer, 4));
    say_sparse(c, "sparse.csr", value);
    say_indices(c, "sparse.csr.inner", value, ORT_SPARSE_CSR_INNER_INDICES);
    say_indices(c, "sparse.csr.outer", value, ORT_SPARSE_CSR_OUTER_INDICES);
    c->api->ReleaseValue(value);
    value = new_sparse(c, "sparse.csr_wrong", FLOAT);
    say_status(c, "sparse.csr_wrong",
               c->api->FillSparseTensorCsr(value, c->cpu, count, 1, values, inner, 3, outer, 3));
    c->api->ReleaseValue(value);
}

static void check_blocks(struct client *c)
{
    const int64_t block_values[] = {2, 1, 2}, index_shape[] = {2, 2};
    const int32_t places[] = {0, 1, 0, 1};
    const float values[] = {5, 6, 7, 8};
    const int64_t string_count[] = {2}, flat[] = {1, 6};
    OrtValue *value = new_sparse(c, "sparse.block", FLOAT);
    say_status(c, "sparse.block",
               c->api->FillSparseTensorBlockSparse(value, c->cpu, block_values, 3, values,
                                                   index_shape, 2, places));
    say_sparse(c, "sparse.block", value);
    say_indices(c, "sparse.block.indices", value, ORT_SPARSE_BLOCK_SPARSE_INDICES);
    c->api->ReleaseValue(value);
    value = new_sparse(c, "sparse.text", STRING);
    say_status(c, "sparse.text",
               c->api->FillSparseTensorCoo(value, c->cpu, string_count, 1,
                                           (const char *[]){"one", "two"}, flat, 2));
    say_sparse(c, "sparse.text", value);
    c->api->ReleaseValue(value);
}

/* Over the caller's memory. */
static void check_use(struct client *c)
{
    const int64_t dense[] = {3, 4}, count[] = {3}, block_values[] = {2, 1, 2},
                  index_shape[] = {2, 2};
    int64_t flat[] = {1, 6, 11}, inner[] = {1, 2, 3}, outer[] = {0, 1, 2, 3};
    int32_t places[] = {0, 1, 0, 1};
    float values[] = {5, 6, 7, 8};
    OrtValue *value = NULL;
    const OrtApi *api = c->api;
    if (!good(c, "use",
              api->CreateSparseTensorWithValuesAsOrtValue(c->cpu, values, dense, 2, count, 1, FLOAT,
                                                          &value)))
        return;
    say_status(c, "use.coo", api->UseCooIndices(value, flat, 3));
    say_sparse(c, "use.coo", value);
    say_indices(c, "use.coo.indices", value, ORT_SPARSE_COO_INDICES);
    values[0] = 50;
    const void *data = NULL;
    if (good(c, "use.shared", api->GetSparseTensorValues(value, &data)))
        say("use.shared", "%d", data == values);
    say_status(c, "use.again", api->UseCooIndices(value, flat, 3));
    api->ReleaseValue(value);
    if (!good(c, "use",
              api->CreateSparseTensorWithValuesAsOrtValue(c->cpu, values, dense, 2, count, 1, FLOAT,
                                                          &value)))
        return;
    say_status(c, "use.csr", api->UseCsrIndices(value, inner, 3, outer, 4));
    say_indices(c, "use.csr.inner", value, ORT_SPARSE_CSR_INNER_INDICES);
    say_indices(c, "use.csr.outer", value, ORT_SPARSE_CSR_OUTER_INDICES);
    api->ReleaseValue(value);
    if (!good(c, "use",
              api->CreateSparseTensorWithValuesAsOrtValue(c->cpu, values, dense, 2, block_values, 3,
                                                          FLOAT, &value)))
        return;
    say_status(c, "use.block", api->UseBlockSparseIndices(value, index_shape, 2, places));
    say_sparse(c, "use.block", value);
    say_indices(c, "use.block.indices", value, ORT_SPARSE_BLOCK_SPARSE_INDICES);
    api->ReleaseValue(value);
    OrtValue *tensor = floats(c, values, 3);
    enum OrtSparseFormat format = ORT_SPARSE_UNDEFINED;
    OrtTensorTypeAndShapeInfo *info = NULL;
    say_status(c, "use.format_of_dense", api->GetSparseTensorFormat(tensor, &format));
    say_status(c, "use.values_of_dense", api->GetSparseTensorValuesTypeAndShape(tensor, &info));
    say_status(c, "use.fill_dense",
               api->FillSparseTensorCoo(tensor, c->cpu, count, 1, values, flat, 3));
    api->ReleaseValue(tensor);
}

int main(int argc, char **argv)
{
    struct client c;
    if (argc < 3) return 2;
    client_open(&c, argv[1], argv[2]);
    check_sequences(&c);
    check_maps(&c);
    check_opaque(&c);
    check_optional(&c);
    check_fill(&c);
    check_blocks(&c);
    check_use(&c);
    client_close(&c);
    say("end", "reached");
    return 0;
}
