/* SPDX-License-Identifier: Apache-2.0
 * Sparse tensors: made by programs in one of three formats, copied or over their memory, and read.
 * Those that models give are in coordinates. */
#include "ort_sparse.h"

#include <stdlib.h>
#include <string.h>

static void free_sparse(void *data)
{
    struct ort_sparse *sparse = data;
    ort_value_release(sparse->values);
    ort_value_release(sparse->indices[0]);
    ort_value_release(sparse->indices[1]);
    free(sparse);
}

const struct ort_sparse *ort_sparse_of(const OrtValue *value)
{
    return value->opaque_free == free_sparse ? value->opaque : NULL;
}

static OrtStatusPtr need_sparse(OrtValue *value, struct ort_sparse **out)
{
    *out = (struct ort_sparse *)(uintptr_t)ort_sparse_of(value);
    if (!*out) return ort_fail(ORT_RUNTIME_EXCEPTION, "Unsupported type proto value case:0");
    if ((*out)->format)
        return ort_fail(ORT_FAIL, "this tensor already has populated sparse_indices");
    return NULL;
}

static OrtStatusPtr create(OrtAllocator *allocator, const int64_t *dims, size_t rank,
                           ONNXTensorElementDataType type, OrtValue **out)
{
    *out = NULL;
    for (size_t i = 0; i < rank; i++)
        if (dims[i] < 0)
            return ort_fail(ORT_INVALID_ARGUMENT,
                            "tried creating tensor with negative value in shape");
    if (sdx_dtype_bits((sdx_dtype)type) == 0)
        return ort_fail(ORT_NOT_IMPLEMENTED, "sparse tensors of type %d are not supported",
                        (int)type);
    struct ort_sparse *sparse = calloc(1, sizeof *sparse + rank * sizeof *dims);
    if (!sparse) return ort_no_memory();
    *sparse = (struct ort_sparse){.type = type, .allocator = allocator, .rank = rank};
    if (rank) memcpy(sparse->dims, dims, rank * sizeof *dims);
    OrtStatusPtr failed = ort_value_own(NULL, out);
    if (failed) {
        free_sparse(sparse);
        return failed;
    }
    (*out)->opaque = sparse;
    (*out)->opaque_free = free_sparse;
    return NULL;
}

static OrtStatusPtr create_with_values(const OrtMemoryInfo *memory, void *data, const int64_t *dims,
                                       size_t rank, const int64_t *values, size_t values_rank,
                                       ONNXTensorElementDataType type, OrtValue **out)
{
    OrtValue *view = NULL;
    *out = NULL;
    if (type == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING)
        return ort_fail(ORT_INVALID_ARGUMENT, "Can not use strings in pre-allocated memory. Use "
                                              "CreateSparseTensorAsOrtValue() to allocate memory "
                                              "inside and copy data.");
    ORT_TRY(ort_value_view(memory, data, SIZE_MAX, values, values_rank, type, &view));
    OrtStatusPtr failed = create(ort_default_allocator(), dims, rank, type, out);
    if (failed)
        ort_value_release(view);
    else
        ((struct ort_sparse *)(*out)->opaque)->values = view;
    return failed;
}

/* ---- filling ---- */

static OrtStatusPtr copy_values(struct ort_sparse *sparse, const int64_t *dims, size_t rank,
                                const void *data)
{
    const OrtApi *api = OrtGetApiBase()->GetApi(ORT_API_VERSION);
    ORT_TRY(ort_value_create(sparse->allocator, dims, rank, sparse->type, &sparse->values));
    sdx_tensor *tensor = ort_value_tensor(sparse->values);
    if (sparse->type == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING)
        return api->FillStringTensor(sparse->values, data, (size_t)sdx_tensor_count(tensor));
    memcpy(sdx_tensor_data(tensor), data, sdx_tensor_bytes(tensor));
    return NULL;
}

/* Indices `i`, a copy or (data not const, `view`) the program's. */
static OrtStatusPtr set_indices(struct ort_sparse *sparse, int i, ONNXTensorElementDataType type,
                                const int64_t *dims, size_t rank, const void *data, bool view)
{
    if (view)
        return ort_value_view(&ort_cpu_memory, (void *)(uintptr_t)data, SIZE_MAX, dims, rank, type,
                              &sparse->indices[i]);
    ORT_TRY(ort_value_create(sparse->allocator, dims, rank, type, &sparse->indices[i]));
    sdx_tensor *tensor = ort_value_tensor(sparse->indices[i]);
    if (sdx_tensor_bytes(tensor)) memcpy(sdx_tensor_data(tensor), data, sdx_tensor_bytes(tensor));
    return NULL;
}

static size_t count_values(const struct ort_sparse *sparse)
{
    return (size_t)sdx_tensor_count(ort_value_tensor(sparse->values));
}

/* The engine's value, over the values and places, int64 [n] or [n, 2]. */
static OrtStatusPtr set_tensor(OrtValue *value, const struct ort_sparse *sparse, sdx_tensor *places)
{
    sdx_context *cx = ort_context();
    sdx_tensor *tensor = NULL;
    if (!cx) return ort_no_memory();
    if (sdx_tensor_create_sparse(cx, (int)sparse->rank, sparse->dims,
                                 ort_value_tensor(sparse->values), places, &tensor))
        return ort_status(ORT_INVALID_ARGUMENT, sdx_error(cx));
    ort_value_set(value, tensor);
    return NULL;
}

static OrtStatusPtr set_coo(OrtValue *value, struct ort_sparse *sparse, const int64_t *indices,
                            size_t count, bool view)
{
    const size_t values = count_values(sparse);
    if (count != values && count != 2 * values)
        return ort_status(ORT_INVALID_ARGUMENT,
                          "COO indices count must be equal to or twice the values count.");
    const size_t rank = count == values ? 1 : 2;
    if (rank == 2 && sparse->rank != 2)
        return ort_fail(ORT_INVALID_ARGUMENT, "COO 2D indices require dense shape of 2 dimensions");
    const int64_t dims[] = {(int64_t)values, 2};
    ORT_TRY(set_indices(sparse, 0, ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64, dims, rank, indices, view));
    sparse->format = ORT_SPARSE_COO;
    return set_tensor(value, sparse, ort_value_tensor(sparse->indices[0]));
}

/* Rows that end where `outer` says, as coordinates. */
static OrtStatusPtr set_rows(OrtValue *value, const struct ort_sparse *sparse, const int64_t *inner,
                             size_t count, const int64_t *outer, size_t count_outer)
{
    const int64_t dims[] = {(int64_t)count, 2};
    sdx_context *cx = ort_context();
    sdx_tensor *places = NULL;
    if (!cx || sdx_tensor_create(cx, SDX_I64, 2, dims, &places)) return ort_no_memory();
    int64_t *at = sdx_tensor_data(places);
    size_t row = 0;
    for (size_t i = 0; i < count; i++) {
        while (row + 1 < count_outer && outer[row + 1] <= (int64_t)i)
            row++;
        at[2 * i] = (int64_t)row;
        at[2 * i + 1] = inner[i];
    }
    OrtStatusPtr failed = set_tensor(value, sparse, places);
    sdx_tensor_destroy(places);
    return failed;
}

static OrtStatusPtr set_csr(OrtValue *value, struct ort_sparse *sparse, const int64_t *inner,
                            size_t count_inner, const int64_t *outer, size_t count_outer, bool view)
{
    const ONNXTensorElementDataType type = ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64;
    const int64_t inner_dims[] = {(int64_t)count_inner}, outer_dims[] = {(int64_t)count_outer};
    if (sparse->rank != 2)
        return ort_fail(ORT_INVALID_ARGUMENT, "CSR format requires a dense shape of 2 dimensions");
    if (count_inner != count_values(sparse))
        return ort_fail(ORT_INVALID_ARGUMENT,
                        "CSR inner index count (%zu) must equal the values "
                        "count (%zu)",
                        count_inner, count_values(sparse));
    if (count_outer && outer[count_outer - 1] != (int64_t)count_inner)
        return ort_fail(
            ORT_INVALID_ARGUMENT,
            "CSR outer index last element must equal inner index count (%zu), got: %lld",
            count_inner, (long long)outer[count_outer - 1]);
    if (count_outer != (size_t)sparse->dims[0] + 1 && (count_inner || count_outer))
        return ort_fail(ORT_INVALID_ARGUMENT, "CSR outer index count must be rows + 1, got: %zu",
                        count_outer);
    ORT_TRY(set_indices(sparse, 0, type, inner_dims, 1, inner, view));
    ORT_TRY(set_indices(sparse, 1, type, outer_dims, 1, outer, view));
    sparse->format = ORT_SPARSE_CSRC;
    return set_rows(value, sparse, inner, count_inner, outer, count_outer);
}

static OrtStatusPtr set_blocks(struct ort_sparse *sparse, const int64_t *dims, size_t rank,
                               const int32_t *places, bool view)
{
    ORT_TRY(set_indices(sparse, 0, ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32, dims, rank, places, view));
    sparse->format = ORT_SPARSE_BLOCK_SPARSE;
    return NULL;
}

static OrtStatusPtr fill_coo(OrtValue *value, const OrtMemoryInfo *memory, const int64_t *dims,
                             size_t rank, const void *data, const int64_t *indices, size_t count)
{
    struct ort_sparse *sparse = NULL;
    (void)memory;
    ORT_TRY(need_sparse(value, &sparse));
    ORT_TRY(copy_values(sparse, dims, rank, data));
    return set_coo(value, sparse, indices, count, false);
}

static OrtStatusPtr fill_csr(OrtValue *value, const OrtMemoryInfo *memory, const int64_t *dims,
                             size_t rank, const void *data, const int64_t *inner,
                             size_t count_inner, const int64_t *outer, size_t count_outer)
{
    struct ort_sparse *sparse = NULL;
    (void)memory;
    ORT_TRY(need_sparse(value, &sparse));
    ORT_TRY(copy_values(sparse, dims, rank, data));
    return set_csr(value, sparse, inner, count_inner, outer, count_outer, false);
}

static OrtStatusPtr fill_blocks(OrtValue *value, const OrtMemoryInfo *memory, const int64_t *dims,
                                size_t rank, const void *data, const int64_t *index_dims,
                                size_t index_rank, const int32_t *places)
{
    struct ort_sparse *sparse = NULL;
    (void)memory;
    ORT_TRY(need_sparse(value, &sparse));
    ORT_TRY(copy_values(sparse, dims, rank, data));
    return set_blocks(sparse, index_dims, index_rank, places, false);
}

static OrtStatusPtr need_values(OrtValue *value, struct ort_sparse **out)
{
    ORT_TRY(need_sparse(value, out));
    if ((*out)->values) return NULL;
    return ort_fail(ORT_INVALID_ARGUMENT, "this tensor has no values yet");
}

static OrtStatusPtr use_coo(OrtValue *value, int64_t *indices, size_t count)
{
    struct ort_sparse *sparse = NULL;
    ORT_TRY(need_values(value, &sparse));
    return set_coo(value, sparse, indices, count, true);
}

static OrtStatusPtr use_csr(OrtValue *value, int64_t *inner, size_t count_inner, int64_t *outer,
                            size_t count_outer)
{
    struct ort_sparse *sparse = NULL;
    ORT_TRY(need_values(value, &sparse));
    return set_csr(value, sparse, inner, count_inner, outer, count_outer, true);
}

static OrtStatusPtr use_blocks(OrtValue *value, const int64_t *dims, size_t rank, int32_t *places)
{
    struct ort_sparse *sparse = NULL;
    ORT_TRY(need_values(value, &sparse));
    return set_blocks(sparse, dims, rank, places, true);
}

/* ---- reading ---- */

static OrtStatusPtr is_sparse_tensor(const OrtValue *value, int *out)
{
    const sdx_tensor *tensor = ort_value_tensor(value);
    *out = ort_sparse_of(value) || (tensor && sdx_tensor_kind(tensor) == SDX_KIND_SPARSE);
    return NULL;
}

static OrtStatusPtr find_parts(const OrtValue *value, OrtSparseFormat *format, sdx_tensor **values,
                               sdx_tensor *indices[2])
{
    const struct ort_sparse *sparse = ort_sparse_of(value);
    sdx_tensor *tensor = ort_value_tensor(value);
    *values = indices[0] = indices[1] = NULL;
    if (sparse) {
        *format = sparse->format;
        if (sparse->values) *values = ort_value_tensor(sparse->values);
        for (int i = 0; i < 2; i++)
            if (sparse->indices[i]) indices[i] = ort_value_tensor(sparse->indices[i]);
        return NULL;
    }
    if (!tensor || sdx_tensor_kind(tensor) != SDX_KIND_SPARSE)
        return ort_fail(ORT_RUNTIME_EXCEPTION, "Unsupported type proto value case:0");
    *format = ORT_SPARSE_COO;
    *values = sdx_tensor_item(tensor, 0);
    indices[0] = sdx_tensor_item(tensor, 1);
    return NULL;
}

static OrtStatusPtr get_format(const OrtValue *value, OrtSparseFormat *out)
{
    sdx_tensor *values, *indices[2];
    *out = ORT_SPARSE_UNDEFINED;
    return find_parts(value, out, &values, indices);
}

static OrtStatusPtr need_part(const sdx_tensor *part)
{
    return part ? NULL : ort_fail(ORT_FAIL, "this sparse tensor has not been filled in");
}

static OrtStatusPtr shape_of(const sdx_tensor *tensor, OrtTensorTypeAndShapeInfo **out)
{
    return ort_shape_create((ONNXTensorElementDataType)sdx_tensor_dtype(tensor),
                            (size_t)sdx_tensor_rank(tensor), sdx_tensor_dims(tensor), NULL, out);
}

static OrtStatusPtr get_values_shape(const OrtValue *value, OrtTensorTypeAndShapeInfo **out)
{
    sdx_tensor *values, *indices[2];
    OrtSparseFormat format;
    *out = NULL;
    ORT_TRY(find_parts(value, &format, &values, indices));
    ORT_TRY(need_part(values));
    return shape_of(values, out);
}

static OrtStatusPtr get_values(const OrtValue *value, const void **out)
{
    sdx_tensor *values, *indices[2];
    OrtSparseFormat format;
    *out = NULL;
    ORT_TRY(find_parts(value, &format, &values, indices));
    ORT_TRY(need_part(values));
    if (sdx_tensor_dtype(values) == SDX_STRING)
        return ort_fail(ORT_INVALID_ARGUMENT, "Use GetStringTensor*() API to retrieve strings");
    *out = sdx_tensor_const_data(values);
    return NULL;
}

static OrtStatusPtr find_indices(const OrtValue *value, OrtSparseIndicesFormat kind,
                                 sdx_tensor **out)
{
    static const OrtSparseFormat formats[] = {
        [ORT_SPARSE_COO_INDICES] = ORT_SPARSE_COO,
        [ORT_SPARSE_CSR_INNER_INDICES] = ORT_SPARSE_CSRC,
        [ORT_SPARSE_CSR_OUTER_INDICES] = ORT_SPARSE_CSRC,
        [ORT_SPARSE_BLOCK_SPARSE_INDICES] = ORT_SPARSE_BLOCK_SPARSE,
    };
    sdx_tensor *values, *indices[2];
    OrtSparseFormat format;
    ORT_TRY(find_parts(value, &format, &values, indices));
    if ((size_t)kind >= sizeof formats / sizeof formats[0] || formats[kind] != format)
        return ort_fail(ORT_FAIL, "indices of format %d are asked for, the tensor has format %d",
                        (int)kind, (int)format);
    *out = indices[kind == ORT_SPARSE_CSR_OUTER_INDICES];
    return need_part(*out);
}

static OrtStatusPtr get_indices_shape(const OrtValue *value, OrtSparseIndicesFormat kind,
                                      OrtTensorTypeAndShapeInfo **out)
{
    sdx_tensor *indices = NULL;
    *out = NULL;
    ORT_TRY(find_indices(value, kind, &indices));
    return shape_of(indices, out);
}

static OrtStatusPtr get_indices(const OrtValue *value, OrtSparseIndicesFormat kind, size_t *count,
                                const void **out)
{
    sdx_tensor *indices = NULL;
    *count = 0;
    *out = NULL;
    ORT_TRY(find_indices(value, kind, &indices));
    *count = (size_t)sdx_tensor_count(indices);
    *out = sdx_tensor_const_data(indices);
    return NULL;
}

void ort_fill_sparse(OrtApi *api)
{
    api->IsSparseTensor = is_sparse_tensor;
    api->CreateSparseTensorAsOrtValue = create;
    api->CreateSparseTensorWithValuesAsOrtValue = create_with_values;
    api->FillSparseTensorCoo = fill_coo;
    api->FillSparseTensorCsr = fill_csr;
    api->FillSparseTensorBlockSparse = fill_blocks;
    api->UseCooIndices = use_coo;
    api->UseCsrIndices = use_csr;
    api->UseBlockSparseIndices = use_blocks;
    api->GetSparseTensorFormat = get_format;
    api->GetSparseTensorValuesTypeAndShape = get_values_shape;
    api->GetSparseTensorValues = get_values;
    api->GetSparseTensorIndicesTypeShape = get_indices_shape;
    api->GetSparseTensorIndices = get_indices;
}
