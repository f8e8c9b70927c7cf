/* SPDX-License-Identifier: Apache-2.0
 * Values: tensors over the caller's memory or an allocator's, what is in a value, items. */
#include "ort_sparse.h"

#include <stdlib.h>
#include <string.h>

static OrtStatusPtr new_value(OrtValue **out)
{
    *out = calloc(1, sizeof **out);
    if (!*out) return ort_no_memory();
    atomic_init(&(*out)->refs, 1);
    (*out)->memory = &ort_cpu_memory;
    return NULL;
}

OrtStatusPtr ort_value_own(sdx_tensor *tensor, OrtValue **out)
{
    OrtStatusPtr status = new_value(out);
    if (status)
        sdx_tensor_destroy(tensor);
    else
        ort_value_set(*out, tensor);
    return status;
}

void ort_value_set(OrtValue *value, sdx_tensor *tensor)
{
    ort_texts_free(value); /* needs the tensor */
    sdx_tensor_destroy(value->holder);
    value->holder = value->tensor = tensor;
    if (tensor && sdx_tensor_kind(tensor) == SDX_KIND_OPTIONAL)
        value->tensor = sdx_tensor_item(tensor, 0);
}

OrtStatusPtr ort_value_item(OrtValue *parent, sdx_tensor *item, OrtValue **out)
{
    ORT_TRY(new_value(out));
    (*out)->tensor = item;
    (*out)->parent = parent ? ort_value_retain(parent) : NULL;
    return NULL;
}

OrtValue *ort_value_retain(const OrtValue *value)
{
    OrtValue *mine = (OrtValue *)(uintptr_t)value;
    atomic_fetch_add_explicit(&mine->refs, 1, memory_order_relaxed);
    return mine;
}

void ort_value_release(OrtValue *value)
{
    if (!value || atomic_fetch_sub_explicit(&value->refs, 1, memory_order_acq_rel) != 1) return;
    ort_texts_free(value); /* needs the tensor */
    sdx_tensor_destroy(value->holder);
    if (value->opaque_free) value->opaque_free(value->opaque);
    if (value->block) value->allocator->Free(value->allocator, value->block);
    ort_value_release(value->parent);
    free(value);
}

sdx_tensor *ort_value_tensor(const OrtValue *value)
{
    if (value->texts && atomic_load_explicit(&value->stale, memory_order_acquire))
        ort_texts_gather((OrtValue *)(uintptr_t)value);
    return value->tensor;
}

OrtStatusPtr ort_need_tensor(const OrtValue *value, sdx_tensor **out)
{
    *out = value ? ort_value_tensor(value) : NULL;
    if (*out && sdx_tensor_kind(*out) == SDX_KIND_TENSOR) return NULL;
    return ort_status(ORT_FAIL, "the ort_value must contain a constructed tensor");
}

/* ---- making ---- */

/* Elements and bytes of a tensor, both from what the caller says. */
static OrtStatusPtr size_of(const int64_t *dims, size_t rank, ONNXTensorElementDataType type,
                            size_t *bytes)
{
    enum { RANK_MAX = 64, BITS = 8, TEXT_BYTES = 32 /* of a string in the real library */ };
    size_t count = 1;
    if (rank > RANK_MAX)
        return ort_fail(ORT_INVALID_ARGUMENT, "a tensor has %zu dimensions, expected at most %d",
                        rank, RANK_MAX);
    for (size_t i = 0; i < rank; i++) {
        if (dims[i] < 0)
            return ort_status(ORT_INVALID_ARGUMENT,
                              "tried creating tensor with negative value in shape");
        if (__builtin_mul_overflow(count, (size_t)dims[i], &count))
            return ort_status(ORT_FAIL, "Integer overflow");
    }
    size_t bits = (size_t)sdx_dtype_bits((sdx_dtype)type);
    if (bits == 0)
        return ort_fail(ORT_NOT_IMPLEMENTED, "tensor type %d is not supported", (int)type);
    if (type == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING) bits = (size_t)TEXT_BYTES * BITS;
    size_t all;
    if (__builtin_mul_overflow(count, bits, &all) || all > SIZE_MAX - BITS)
        return ort_status(ORT_FAIL, "Integer overflow");
    *bytes = (all + BITS - 1) / BITS;
    return NULL;
}

static OrtStatusPtr set_view(OrtValue *value, const int64_t *dims, size_t rank,
                             ONNXTensorElementDataType type, void *data)
{
    static char nothing; /* where a tensor without elements is */
    sdx_context *cx = ort_context();
    sdx_tensor *tensor = NULL;
    if (!cx) return ort_no_memory();
    const sdx_status status = type == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING
                                  ? sdx_tensor_create(cx, SDX_STRING, (int)rank, dims, &tensor)
                                  : sdx_tensor_view(cx, (sdx_dtype)type, (int)rank, dims,
                                                    data ? data : &nothing, &tensor);
    if (status) return ort_no_memory(); /* all else was checked */
    ort_value_set(value, tensor);
    return NULL;
}

OrtStatusPtr ort_value_view(const struct OrtMemoryInfo *memory, void *data, size_t bytes,
                            const int64_t *dims, size_t rank, ONNXTensorElementDataType type,
                            OrtValue **out)
{
    size_t need = 0;
    *out = NULL;
    ORT_TRY(size_of(dims, rank, type, &need));
    if (bytes < need)
        return ort_fail(ORT_INVALID_ARGUMENT, "not enough space: expected %zu, got %zu", need,
                        bytes);
    OrtValue *value = NULL;
    ORT_TRY(new_value(&value));
    value->memory = ort_memory_keep(memory);
    OrtStatusPtr status = value->memory ? set_view(value, dims, rank, type, data) : ort_no_memory();
    if (status)
        ort_value_release(value);
    else
        *out = value;
    return status;
}

OrtStatusPtr ort_value_create(OrtAllocator *allocator, const int64_t *dims, size_t rank,
                              ONNXTensorElementDataType type, OrtValue **out)
{
    size_t bytes = 0;
    *out = NULL;
    ORT_TRY(size_of(dims, rank, type, &bytes));
    OrtValue *value = NULL;
    ORT_TRY(new_value(&value));
    value->allocator = allocator ? allocator : ort_default_allocator();
    value->memory = ort_memory_keep(value->allocator->Info(value->allocator));
    OrtStatusPtr status = value->memory ? NULL : ort_no_memory();
    if (!status && bytes && type != ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING) {
        value->block = value->allocator->Alloc(value->allocator, bytes);
        if (!value->block) status = ort_no_memory();
    }
    if (!status) status = set_view(value, dims, rank, type, value->block);
    if (status)
        ort_value_release(value);
    else
        *out = value;
    return status;
}

static OrtStatusPtr create_tensor(OrtAllocator *allocator, const int64_t *dims, size_t rank,
                                  ONNXTensorElementDataType type, OrtValue **out)
{
    return ort_value_create(allocator, dims, rank, type, out);
}

static OrtStatusPtr create_with_data(const OrtMemoryInfo *memory, void *data, size_t bytes,
                                     const int64_t *dims, size_t rank,
                                     ONNXTensorElementDataType type, OrtValue **out)
{
    return ort_value_view(memory, data, bytes, dims, rank, type, out);
}

static OrtStatusPtr create_with_deleter(OrtAllocator *deleter, void *data, size_t bytes,
                                        const int64_t *dims, size_t rank,
                                        ONNXTensorElementDataType type, OrtValue **out)
{
    ORT_TRY(ort_value_view(deleter->Info(deleter), data, bytes, dims, rank, type, out));
    (*out)->allocator = deleter;
    (*out)->block = data;
    return NULL;
}

/* ---- looking ---- */

static OrtStatusPtr is_tensor(const OrtValue *value, int *out)
{
    const sdx_tensor *tensor = ort_value_tensor(value);
    *out = tensor && sdx_tensor_kind(tensor) == SDX_KIND_TENSOR;
    return NULL;
}

static OrtStatusPtr has_value(const OrtValue *value, int *out)
{
    *out = ort_value_tensor(value) != NULL || ort_sparse_of(value) != NULL;
    return NULL;
}

static OrtStatusPtr value_type(const OrtValue *value, ONNXType *out)
{
    if (ort_sparse_of(value)) {
        *out = ONNX_TYPE_SPARSETENSOR;
        return NULL;
    }
    const sdx_tensor *tensor = ort_value_tensor(value);
    *out = tensor ? ort_kind(sdx_tensor_kind(tensor)) : ONNX_TYPE_UNKNOWN;
    return NULL;
}

static OrtStatusPtr type_info(const OrtValue *value, OrtTypeInfo **out)
{
    const sdx_tensor *tensor = ort_value_tensor(value);
    const struct ort_sparse *sparse = ort_sparse_of(value);
    *out = NULL;
    if (!sparse) return tensor ? ort_type_of_tensor(tensor, out) : NULL;
    *out = calloc(1, sizeof **out);
    if (!*out) return ort_no_memory();
    (*out)->kind = ONNX_TYPE_SPARSETENSOR;
    return ort_shape_create(sparse->type, sparse->rank, sparse->dims, NULL, &(*out)->tensor);
}

static OrtStatusPtr type_and_shape(const OrtValue *value, OrtTensorTypeAndShapeInfo **out)
{
    const sdx_tensor *tensor = ort_value_tensor(value);
    const sdx_kind kind = tensor ? sdx_tensor_kind(tensor) : SDX_KIND_NONE;
    const struct ort_sparse *sparse = ort_sparse_of(value);
    *out = NULL;
    if (sparse) return ort_shape_create(sparse->type, sparse->rank, sparse->dims, NULL, out);
    if (kind != SDX_KIND_TENSOR && kind != SDX_KIND_SPARSE)
        return ort_status(ORT_INVALID_ARGUMENT, "Argument is not a tensor");
    return ort_shape_create((ONNXTensorElementDataType)sdx_tensor_dtype(tensor),
                            (size_t)sdx_tensor_rank(tensor), sdx_tensor_dims(tensor), NULL, out);
}

static OrtStatusPtr type_and_dims(const OrtValue *value, ONNXTensorElementDataType *type,
                                  const int64_t **dims, size_t *rank)
{
    const sdx_tensor *tensor = ort_value_tensor(value);
    const sdx_kind kind = tensor ? sdx_tensor_kind(tensor) : SDX_KIND_NONE;
    const struct ort_sparse *sparse = ort_sparse_of(value);
    if (sparse) {
        *type = sparse->type;
        *dims = sparse->dims;
        *rank = sparse->rank;
        return NULL;
    }
    if (kind != SDX_KIND_TENSOR && kind != SDX_KIND_SPARSE)
        return ort_status(ORT_INVALID_ARGUMENT,
                          "Argument must be a tensor or sparse tensor OrtValue.");
    *type = (ONNXTensorElementDataType)sdx_tensor_dtype(tensor);
    *dims = sdx_tensor_dims(tensor);
    *rank = (size_t)sdx_tensor_rank(tensor);
    return NULL;
}

static OrtStatusPtr mutable_data(OrtValue *value, void **out)
{
    sdx_tensor *tensor = NULL;
    *out = NULL;
    ORT_TRY(ort_need_tensor(value, &tensor));
    *out = sdx_tensor_data(tensor);
    return NULL;
}

static OrtStatusPtr const_data(const OrtValue *value, const void **out)
{
    sdx_tensor *tensor = NULL;
    *out = NULL;
    ORT_TRY(ort_need_tensor(value, &tensor));
    *out = sdx_tensor_const_data(tensor);
    return NULL;
}

static OrtStatusPtr size_in_bytes(const OrtValue *value, size_t *out)
{
    sdx_tensor *tensor = NULL;
    *out = 0;
    ORT_TRY(ort_need_tensor(value, &tensor));
    if (sdx_tensor_dtype(tensor) == SDX_STRING)
        return ort_status(ORT_INVALID_ARGUMENT, "String tensors are not supported by this API");
    *out = sdx_tensor_bytes(tensor);
    return NULL;
}

static OrtStatusPtr element_at(OrtValue *value, const int64_t *at, size_t count, void **out)
{
    sdx_tensor *tensor = NULL;
    int64_t offset = 0;
    *out = NULL;
    ORT_TRY(ort_need_tensor(value, &tensor));
    const int bits = sdx_dtype_bits(sdx_tensor_dtype(tensor));
    if (sdx_tensor_dtype(tensor) == SDX_STRING || bits % 8)
        return ort_status(ORT_INVALID_ARGUMENT, "this API does not support strings");
    if (count != (size_t)sdx_tensor_rank(tensor))
        return ort_status(ORT_INVALID_ARGUMENT, "location dimensions do not match shape size");
    for (size_t i = 0; i < count; i++) {
        const int64_t length = sdx_tensor_dims(tensor)[i];
        if (at[i] < 0 || at[i] >= length)
            return ort_status(ORT_INVALID_ARGUMENT, "invalid location range");
        offset = offset * length + at[i];
    }
    *out = (char *)sdx_tensor_data(tensor) + offset * (bits / 8);
    return NULL;
}

static OrtStatusPtr memory_info(const OrtValue *value, const OrtMemoryInfo **out)
{
    *out = value->memory;
    return NULL;
}

/* ---- items of sequences and maps ---- */

static OrtStatusPtr need_items(const OrtValue *value, sdx_tensor **out)
{
    *out = ort_value_tensor(value);
    const sdx_kind kind = *out ? sdx_tensor_kind(*out) : SDX_KIND_NONE;
    if (kind == SDX_KIND_SEQUENCE || kind == SDX_KIND_MAP) return NULL;
    return ort_status(ORT_FAIL, "Input is not of type sequence or map.");
}

static OrtStatusPtr value_count(const OrtValue *value, size_t *out)
{
    sdx_tensor *tensor = NULL;
    *out = 0;
    ORT_TRY(need_items(value, &tensor));
    *out = (size_t)sdx_tensor_count(tensor);
    return NULL;
}

/* The item shares the memory of what it is in. */
static OrtStatusPtr get_item(const OrtValue *value, int index, OrtAllocator *allocator,
                             OrtValue **out)
{
    (void)allocator;
    sdx_tensor *tensor = NULL;
    *out = NULL;
    ORT_TRY(need_items(value, &tensor));
    sdx_tensor *item = sdx_tensor_item(tensor, index);
    if (item) return ort_value_item((OrtValue *)(uintptr_t)value, item, out);
    if (sdx_tensor_kind(tensor) == SDX_KIND_MAP)
        return ort_status(ORT_FAIL, "Invalid index requested for map type.");
    return ort_fail(ORT_FAIL, "index %d of a sequence of %lld values", index,
                    (long long)sdx_tensor_count(tensor));
}

void ort_fill_values(OrtApi *api)
{
    api->CreateTensorAsOrtValue = create_tensor;
    api->CreateTensorWithDataAsOrtValue = create_with_data;
    api->CreateTensorWithDataAndDeleterAsOrtValue = create_with_deleter;
    api->ReleaseValue = ort_value_release;
    api->IsTensor = is_tensor;
    api->HasValue = has_value;
    api->GetValueType = value_type;
    api->GetTypeInfo = type_info;
    api->GetTensorTypeAndShape = type_and_shape;
    api->GetTensorElementTypeAndShapeDataReference = type_and_dims;
    api->GetTensorMutableData = mutable_data;
    api->GetTensorData = const_data;
    api->GetTensorSizeInBytes = size_in_bytes;
    api->TensorAt = element_at;
    api->GetTensorMemoryInfo = memory_info;
    api->GetValueCount = value_count;
    api->GetValue = get_item;
}
