/* SPDX-License-Identifier: Apache-2.0
 * What the type of a value is told as: infos that the caller asks, and texts in messages. */
#include "ort_objects.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- element type and shape ---- */

enum { FEW = sizeof((struct OrtTensorTypeAndShapeInfo *)0)->few / sizeof(int64_t) };

static void free_names(OrtTensorTypeAndShapeInfo *shape)
{
    for (size_t i = 0; shape->names && i < shape->rank; i++)
        free(shape->names[i]);
    free(shape->names);
    shape->names = NULL;
}

void ort_shape_free(OrtTensorTypeAndShapeInfo *shape)
{
    if (!shape) return;
    free_names(shape);
    if (shape->dims != shape->few) free(shape->dims);
    free(shape);
}

static OrtStatusPtr set_dims(OrtTensorTypeAndShapeInfo *shape, const int64_t *dims, size_t rank)
{
    int64_t *room = rank <= FEW ? shape->few : malloc(rank * sizeof *room);
    if (!room) return ort_no_memory();
    free_names(shape);
    if (shape->dims != shape->few) free(shape->dims);
    if (rank) memcpy(room, dims, rank * sizeof *room);
    shape->dims = room;
    shape->rank = rank;
    shape->has_shape = true;
    return NULL;
}

static OrtStatusPtr set_names(OrtTensorTypeAndShapeInfo *shape, const char *const *names)
{
    free_names(shape);
    shape->names = calloc(shape->rank + 1, sizeof *shape->names);
    if (!shape->names) return ort_no_memory();
    for (size_t i = 0; i < shape->rank; i++)
        if (names[i] && *names[i]) ORT_TRY(ort_set_text(&shape->names[i], names[i]));
    return NULL;
}

OrtStatusPtr ort_shape_create(ONNXTensorElementDataType type, size_t rank, const int64_t *dims,
                              const char *const *names, OrtTensorTypeAndShapeInfo **out)
{
    OrtTensorTypeAndShapeInfo *shape = calloc(1, sizeof *shape);
    *out = NULL;
    if (!shape) return ort_no_memory();
    shape->type = type;
    shape->dims = shape->few;
    OrtStatusPtr status = set_dims(shape, dims, rank);
    if (!status && names) status = set_names(shape, names);
    if (status)
        ort_shape_free(shape);
    else
        *out = shape;
    return status;
}

OrtStatusPtr ort_shape_copy(const OrtTensorTypeAndShapeInfo *from, OrtTensorTypeAndShapeInfo **out)
{
    ORT_TRY(ort_shape_create(from->type, from->rank, from->dims, (const char *const *)from->names,
                             out));
    (*out)->has_shape = from->has_shape;
    return NULL;
}

static OrtStatusPtr create_shape(OrtTensorTypeAndShapeInfo **out)
{
    ORT_TRY(ort_shape_create(ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED, 0, NULL, NULL, out));
    (*out)->has_shape = false;
    return NULL;
}

static OrtStatusPtr set_element_type(OrtTensorTypeAndShapeInfo *shape,
                                     ONNXTensorElementDataType type)
{
    shape->type = type;
    return NULL;
}

static OrtStatusPtr set_symbolic(OrtTensorTypeAndShapeInfo *shape, const char **names, size_t count)
{
    if (count != shape->rank)
        return ort_fail(ORT_INVALID_ARGUMENT, "%zu names for %zu dimensions", count, shape->rank);
    return set_names(shape, names);
}

static OrtStatusPtr get_element_type(const OrtTensorTypeAndShapeInfo *shape,
                                     ONNXTensorElementDataType *out)
{
    *out = shape->type;
    return NULL;
}

static OrtStatusPtr get_rank(const OrtTensorTypeAndShapeInfo *shape, size_t *out)
{
    *out = shape->rank;
    return NULL;
}

static OrtStatusPtr get_dims(const OrtTensorTypeAndShapeInfo *shape, int64_t *dims, size_t count)
{
    for (size_t i = 0; i < count && i < shape->rank; i++)
        dims[i] = shape->dims[i];
    return NULL;
}

static OrtStatusPtr get_symbolic(const OrtTensorTypeAndShapeInfo *shape, const char **names,
                                 size_t count)
{
    for (size_t i = 0; i < count && i < shape->rank; i++)
        names[i] = shape->names && shape->names[i] ? shape->names[i] : "";
    return NULL;
}

static OrtStatusPtr get_count(const OrtTensorTypeAndShapeInfo *shape, size_t *out)
{
    size_t count = 1;
    *out = 0;
    for (size_t i = 0; i < shape->rank; i++)
        if (shape->dims[i] < 0 || __builtin_mul_overflow(count, (size_t)shape->dims[i], &count))
            return ort_status(ORT_FAIL, "Integer overflow");
    *out = count;
    return NULL;
}

static bool has_shape(const OrtTensorTypeAndShapeInfo *shape)
{
    return shape->has_shape;
}

/* ---- types ---- */

ONNXType ort_kind(sdx_kind kind)
{
    switch (kind) {
    case SDX_KIND_TENSOR: return ONNX_TYPE_TENSOR;
    case SDX_KIND_SEQUENCE: return ONNX_TYPE_SEQUENCE;
    case SDX_KIND_OPTIONAL: return ONNX_TYPE_OPTIONAL;
    case SDX_KIND_MAP: return ONNX_TYPE_MAP;
    case SDX_KIND_SPARSE: return ONNX_TYPE_SPARSETENSOR;
    case SDX_KIND_NONE: break;
    }
    return ONNX_TYPE_UNKNOWN;
}

void ort_type_free(OrtTypeInfo *type)
{
    if (!type) return;
    free(type->denotation);
    ort_shape_free(type->tensor);
    if (type->map) ort_type_free(type->map->value);
    if (type->sequence) ort_type_free(type->sequence->element);
    if (type->optional) ort_type_free(type->optional->contained);
    free(type->map);
    free(type->sequence);
    free(type->optional);
    free(type);
}

/* Puts `inner`, which it takes, into a new type of a kind that holds another; `key`: maps only. */
static OrtStatusPtr wrap_type(ONNXType kind, ONNXTensorElementDataType key, OrtTypeInfo *inner,
                              OrtTypeInfo **out)
{
    OrtTypeInfo *type = calloc(1, sizeof *type);
    void *part = calloc(1, sizeof(struct OrtMapTypeInfo));
    *out = type;
    if (!type || !part) {
        free(type);
        free(part);
        ort_type_free(inner);
        *out = NULL;
        return ort_no_memory();
    }
    type->kind = kind;
    if (kind == ONNX_TYPE_MAP) {
        type->map = part;
        *type->map = (struct OrtMapTypeInfo){key, inner};
    } else if (kind == ONNX_TYPE_SEQUENCE) {
        type->sequence = part;
        type->sequence->element = inner;
    } else {
        type->optional = part;
        type->optional->contained = inner;
    }
    return NULL;
}

static OrtStatusPtr shape_type(ONNXType kind, OrtTensorTypeAndShapeInfo *shape, OrtTypeInfo **out)
{
    *out = calloc(1, sizeof **out);
    if (!*out) {
        ort_shape_free(shape);
        return ort_no_memory();
    }
    (*out)->kind = kind;
    (*out)->tensor = shape;
    return NULL;
}

OrtStatusPtr ort_type_of_info(const sdx_value_info *info, OrtTypeInfo **out)
{
    *out = NULL;
    const ONNXType kind = ort_kind(info->kind);
    if (info->elem) {
        OrtTypeInfo *inner = NULL;
        ORT_TRY(ort_type_of_info(info->elem, &inner));
        return wrap_type(kind, (ONNXTensorElementDataType)info->key_dtype, inner, out);
    }
    OrtTensorTypeAndShapeInfo *shape = NULL;
    const size_t rank = info->rank > 0 ? (size_t)info->rank : 0;
    ORT_TRY(ort_shape_create((ONNXTensorElementDataType)info->dtype, rank, info->dims,
                             rank ? info->dim_names : NULL, &shape));
    shape->has_shape = info->rank >= 0;
    return shape_type(kind, shape, out);
}

/* The type of a value is that of its first item; without one, of a tensor of its element type. */
OrtStatusPtr ort_type_of_tensor(const sdx_tensor *tensor, OrtTypeInfo **out)
{
    const sdx_kind kind = sdx_tensor_kind(tensor);
    const ONNXTensorElementDataType dtype = (ONNXTensorElementDataType)sdx_tensor_dtype(tensor);
    OrtTensorTypeAndShapeInfo *shape = NULL;
    OrtTypeInfo *inner = NULL;
    *out = NULL;
    if (kind == SDX_KIND_TENSOR || kind == SDX_KIND_SPARSE) {
        ORT_TRY(ort_shape_create(dtype, (size_t)sdx_tensor_rank(tensor), sdx_tensor_dims(tensor),
                                 NULL, &shape));
        return shape_type(ort_kind(kind), shape, out);
    }
    const sdx_tensor *item = sdx_tensor_item(tensor, kind == SDX_KIND_MAP ? 1 : 0);
    if (item && sdx_tensor_kind(item) != SDX_KIND_TENSOR) {
        ORT_TRY(ort_type_of_tensor(item, &inner));
    } else { /* items differ in shape: none is told */
        ORT_TRY(create_shape(&shape));
        shape->type = item ? (ONNXTensorElementDataType)sdx_tensor_dtype(item) : dtype;
        ORT_TRY(shape_type(ONNX_TYPE_TENSOR, shape, &inner));
    }
    const sdx_tensor *keys = kind == SDX_KIND_MAP ? sdx_tensor_item(tensor, 0) : NULL;
    return wrap_type(ort_kind(kind),
                     keys ? (ONNXTensorElementDataType)sdx_tensor_dtype(keys)
                          : ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED,
                     inner, out);
}

OrtStatusPtr ort_type_copy(const OrtTypeInfo *from, OrtTypeInfo **out)
{
    OrtTypeInfo *inner = NULL;
    OrtTensorTypeAndShapeInfo *shape = NULL;
    *out = NULL;
    const OrtTypeInfo *held = from->map        ? from->map->value
                              : from->sequence ? from->sequence->element
                              : from->optional ? from->optional->contained
                                               : NULL;
    if (held) {
        ORT_TRY(ort_type_copy(held, &inner));
        ORT_TRY(wrap_type(from->kind, from->map ? from->map->key : 0, inner, out));
    } else {
        ORT_TRY(ort_shape_copy(from->tensor, &shape));
        ORT_TRY(shape_type(from->kind, shape, out));
    }
    return from->denotation ? ort_set_text(&(*out)->denotation, from->denotation) : NULL;
}

static OrtStatusPtr get_kind(const OrtTypeInfo *type, ONNXType *out)
{
    *out = type->kind;
    return NULL;
}

static OrtStatusPtr get_denotation(const OrtTypeInfo *type, const char **const out, size_t *length)
{
    *out = type->denotation ? type->denotation : "";
    *length = strlen(*out);
    return NULL;
}

static OrtStatusPtr as_tensor(const OrtTypeInfo *type, const OrtTensorTypeAndShapeInfo **out)
{
    *out = type->tensor;
    return NULL;
}

static OrtStatusPtr as_map(const OrtTypeInfo *type, const OrtMapTypeInfo **out)
{
    *out = type->map;
    return NULL;
}

static OrtStatusPtr as_sequence(const OrtTypeInfo *type, const OrtSequenceTypeInfo **out)
{
    *out = type->sequence;
    return NULL;
}

static OrtStatusPtr as_optional(const OrtTypeInfo *type, const OrtOptionalTypeInfo **out)
{
    *out = type->optional;
    return NULL;
}

static OrtStatusPtr map_key(const OrtMapTypeInfo *map, ONNXTensorElementDataType *out)
{
    *out = map->key;
    return NULL;
}

static OrtStatusPtr map_value(const OrtMapTypeInfo *map, OrtTypeInfo **out)
{
    return ort_type_copy(map->value, out);
}

static OrtStatusPtr sequence_element(const OrtSequenceTypeInfo *sequence, OrtTypeInfo **out)
{
    return ort_type_copy(sequence->element, out);
}

static OrtStatusPtr optional_contained(const OrtOptionalTypeInfo *optional, OrtTypeInfo **out)
{
    return ort_type_copy(optional->contained, out);
}

/* Parts of a type are only lent: what Release gets of them stays with the type. */
static void release_map(OrtMapTypeInfo *map)
{
    (void)map;
}

static void release_sequence(OrtSequenceTypeInfo *sequence)
{
    (void)sequence;
}

/* ---- texts ---- */

const char *ort_type_text(const sdx_value_info *info, char *text, size_t size)
{
    char inner[256] = "";
    if (info->elem) ort_type_text(info->elem, inner, sizeof inner);
    switch (info->kind) {
    case SDX_KIND_SEQUENCE: snprintf(text, size, "seq(%s)", inner); break;
    case SDX_KIND_OPTIONAL: snprintf(text, size, "optional(%s)", inner); break;
    case SDX_KIND_MAP:
        snprintf(text, size, "map(%s,%s)", sdx_dtype_name(info->key_dtype), inner);
        break;
    case SDX_KIND_SPARSE:
        snprintf(text, size, "sparse_tensor(%s)", sdx_dtype_name(info->dtype));
        break;
    default: snprintf(text, size, "tensor(%s)", sdx_dtype_name(info->dtype)); break;
    }
    return text;
}

const char *ort_tensor_type_text(const sdx_tensor *tensor, char *text, size_t size)
{
    char inner[256];
    const sdx_kind kind = sdx_tensor_kind(tensor);
    const sdx_tensor *item = sdx_tensor_item(tensor, kind == SDX_KIND_MAP ? 1 : 0);
    snprintf(inner, sizeof inner, "tensor(%s)", sdx_dtype_name(sdx_tensor_dtype(tensor)));
    if (kind == SDX_KIND_SPARSE)
        snprintf(text, size, "sparse_%s", inner);
    else if (kind == SDX_KIND_TENSOR)
        snprintf(text, size, "%s", inner);
    else {
        if (item) ort_tensor_type_text(item, inner, sizeof inner);
        if (kind == SDX_KIND_MAP)
            snprintf(text, size, "map(%s,%s)",
                     sdx_dtype_name(sdx_tensor_dtype(sdx_tensor_item(tensor, 0))), inner);
        else
            snprintf(text, size, kind == SDX_KIND_SEQUENCE ? "seq(%s)" : "optional(%s)", inner);
    }
    return text;
}

void ort_fill_types(OrtApi *api)
{
    api->CreateTensorTypeAndShapeInfo = create_shape;
    api->ReleaseTensorTypeAndShapeInfo = ort_shape_free;
    api->SetTensorElementType = set_element_type;
    api->SetDimensions = set_dims;
    api->SetSymbolicDimensions = set_symbolic;
    api->GetTensorElementType = get_element_type;
    api->GetDimensionsCount = get_rank;
    api->GetDimensions = get_dims;
    api->GetSymbolicDimensions = get_symbolic;
    api->GetTensorShapeElementCount = get_count;
    api->TensorTypeAndShape_HasShape = has_shape;
    api->GetOnnxTypeFromTypeInfo = get_kind;
    api->GetDenotationFromTypeInfo = get_denotation;
    api->CastTypeInfoToTensorInfo = as_tensor;
    api->CastTypeInfoToMapTypeInfo = as_map;
    api->CastTypeInfoToSequenceTypeInfo = as_sequence;
    api->CastTypeInfoToOptionalTypeInfo = as_optional;
    api->GetMapKeyType = map_key;
    api->GetMapValueType = map_value;
    api->GetSequenceElementType = sequence_element;
    api->GetOptionalContainedTypeInfo = optional_contained;
    api->ReleaseMapTypeInfo = release_map;
    api->ReleaseSequenceTypeInfo = release_sequence;
    api->ReleaseTypeInfo = ort_type_free;
}
