/* SPDX-License-Identifier: Apache-2.0
 * What a model says of itself: NodeArg (name, type and shape of an input or output) and
 * ModelMetadata. Both are read once, when the model is loaded. */
#include "py_state.h"

#include <stdio.h>
#include <string.h>

#define DTYPE(name) ONNX_TENSOR_ELEMENT_DATA_TYPE_##name

/* Names of element types in "tensor(float)", by number. */
static const char *const dtype_names[COUNT_DTYPES] = {
    [DTYPE(FLOAT)] = "float",
    [DTYPE(UINT8)] = "uint8",
    [DTYPE(INT8)] = "int8",
    [DTYPE(UINT16)] = "uint16",
    [DTYPE(INT16)] = "int16",
    [DTYPE(INT32)] = "int32",
    [DTYPE(INT64)] = "int64",
    [DTYPE(STRING)] = "string",
    [DTYPE(BOOL)] = "bool",
    [DTYPE(FLOAT16)] = "float16",
    [DTYPE(DOUBLE)] = "double",
    [DTYPE(UINT32)] = "uint32",
    [DTYPE(UINT64)] = "uint64",
    [DTYPE(COMPLEX64)] = "complex64",
    [DTYPE(COMPLEX128)] = "complex128",
    [DTYPE(BFLOAT16)] = "bfloat16",
    [DTYPE(FLOAT8E4M3FN)] = "float8e4m3fn",
    [DTYPE(FLOAT8E4M3FNUZ)] = "float8e4m3fnuz",
    [DTYPE(FLOAT8E5M2)] = "float8e5m2",
    [DTYPE(FLOAT8E5M2FNUZ)] = "float8e5m2fnuz",
    [DTYPE(UINT4)] = "uint4",
    [DTYPE(INT4)] = "int4",
    [DTYPE(FLOAT4E2M1)] = "float4e2m1",
    [DTYPE(FLOAT8E8M0)] = "float8e8m0",
    [DTYPE(UINT2)] = "uint2",
    [DTYPE(INT2)] = "int2",
};

static const char *name_of_dtype(ONNXTensorElementDataType dtype)
{
    const bool known = dtype > 0 && (int)dtype < COUNT_DTYPES && dtype_names[dtype];
    return known ? dtype_names[dtype] : "undefined";
}

/* ---- types as text ---- */

static PyObject *tensor_text(py_state *st, const char *prefix,
                             const OrtTensorTypeAndShapeInfo *shape)
{
    ONNXTensorElementDataType dtype = DTYPE(UNDEFINED);
    if (shape && py_check(st, st->api->GetTensorElementType(shape, &dtype)) < 0) return NULL;
    return PyUnicode_FromFormat("%s(%s)", prefix, name_of_dtype(dtype));
}

/* The text of the type inside of another one; takes the type. */
static PyObject *inner_text(py_state *st, const char *prefix, OrtTypeInfo *inner)
{
    PyObject *text = inner ? py_type_text(st, inner) : PyUnicode_FromString("?");
    if (inner) st->api->ReleaseTypeInfo(inner);
    PyObject *whole = text ? PyUnicode_FromFormat("%s(%U)", prefix, text) : NULL;
    Py_XDECREF(text);
    return whole;
}

static PyObject *sequence_text(py_state *st, const OrtTypeInfo *info)
{
    const OrtSequenceTypeInfo *sequence = NULL;
    OrtTypeInfo *inner = NULL;
    if (py_check(st, st->api->CastTypeInfoToSequenceTypeInfo(info, &sequence)) < 0) return NULL;
    if (sequence && py_check(st, st->api->GetSequenceElementType(sequence, &inner)) < 0)
        return NULL;
    return inner_text(st, "seq", inner);
}

static PyObject *optional_text(py_state *st, const OrtTypeInfo *info)
{
    const OrtOptionalTypeInfo *optional = NULL;
    OrtTypeInfo *inner = NULL;
    if (py_check(st, st->api->CastTypeInfoToOptionalTypeInfo(info, &optional)) < 0) return NULL;
    if (optional && py_check(st, st->api->GetOptionalContainedTypeInfo(optional, &inner)) < 0)
        return NULL;
    return inner_text(st, "optional", inner);
}

static PyObject *map_text(py_state *st, const OrtTypeInfo *info)
{
    const OrtMapTypeInfo *map = NULL;
    ONNXTensorElementDataType key = DTYPE(UNDEFINED);
    OrtTypeInfo *inner = NULL;
    if (py_check(st, st->api->CastTypeInfoToMapTypeInfo(info, &map)) < 0) return NULL;
    if (map && (py_check(st, st->api->GetMapKeyType(map, &key)) < 0 ||
                py_check(st, st->api->GetMapValueType(map, &inner)) < 0))
        return NULL;
    char prefix[64];
    snprintf(prefix, sizeof prefix, "map(%s,", name_of_dtype(key));
    PyObject *text = inner ? py_type_text(st, inner) : PyUnicode_FromString("?");
    if (inner) st->api->ReleaseTypeInfo(inner);
    PyObject *whole = text ? PyUnicode_FromFormat("%s%U)", prefix, text) : NULL;
    Py_XDECREF(text);
    return whole;
}

PyObject *py_type_text(py_state *st, const OrtTypeInfo *info)
{
    ONNXType kind = ONNX_TYPE_UNKNOWN;
    const OrtTensorTypeAndShapeInfo *shape = NULL;
    if (py_check(st, st->api->GetOnnxTypeFromTypeInfo(info, &kind)) < 0) return NULL;
    switch (kind) {
    case ONNX_TYPE_TENSOR:
    case ONNX_TYPE_SPARSETENSOR:
        if (py_check(st, st->api->CastTypeInfoToTensorInfo(info, &shape)) < 0) return NULL;
        return tensor_text(st, kind == ONNX_TYPE_TENSOR ? "tensor" : "sparse_tensor", shape);
    case ONNX_TYPE_SEQUENCE: return sequence_text(st, info);
    case ONNX_TYPE_OPTIONAL: return optional_text(st, info);
    case ONNX_TYPE_MAP: return map_text(st, info);
    default: return PyUnicode_FromString("");
    }
}

/* ---- NodeArg ---- */

struct node_arg {
    PyObject_HEAD py_state *st;
    PyObject *name, *type, *shape;
};

/* The tensor in a type: itself, or what an optional holds; NULL for others. *held is to be
 * released. */
static const OrtTensorTypeAndShapeInfo *tensor_of_type(py_state *st, const OrtTypeInfo *info,
                                                       OrtTypeInfo **held)
{
    ONNXType kind = ONNX_TYPE_UNKNOWN;
    const OrtTensorTypeAndShapeInfo *shape = NULL;
    const OrtOptionalTypeInfo *optional = NULL;
    *held = NULL;
    st->api->ReleaseStatus(st->api->GetOnnxTypeFromTypeInfo(info, &kind));
    if (kind == ONNX_TYPE_OPTIONAL) {
        st->api->ReleaseStatus(st->api->CastTypeInfoToOptionalTypeInfo(info, &optional));
        if (optional) st->api->ReleaseStatus(st->api->GetOptionalContainedTypeInfo(optional, held));
        if (!*held) return NULL;
        info = *held;
    } else if (kind != ONNX_TYPE_TENSOR && kind != ONNX_TYPE_SPARSETENSOR) {
        return NULL;
    }
    st->api->ReleaseStatus(st->api->CastTypeInfoToTensorInfo(info, &shape));
    return shape;
}

/* An int, a str, or None for what the model leaves open. */
static PyObject *dim_object(int64_t dim, const char *name)
{
    if (name && *name) return PyUnicode_FromString(name);
    if (dim >= 0) return PyLong_FromLongLong(dim);
    Py_RETURN_NONE;
}

static PyObject *shape_list(py_state *st, const OrtTensorTypeAndShapeInfo *shape)
{
    size_t rank = 0;
    if (!shape) return PyList_New(0);
    if (py_check(st, st->api->GetDimensionsCount(shape, &rank)) < 0) return NULL;
    int64_t *dims = PyMem_Malloc((rank + 1) * sizeof *dims);
    const char **names = PyMem_Malloc((rank + 1) * sizeof *names);
    PyObject *list = NULL;
    if (!dims || !names)
        PyErr_NoMemory();
    else if (py_check(st, st->api->GetDimensions(shape, dims, rank)) == 0 &&
             py_check(st, st->api->GetSymbolicDimensions(shape, names, rank)) == 0)
        list = PyList_New((Py_ssize_t)rank);
    for (size_t i = 0; list && i < rank; i++) {
        PyObject *dim = dim_object(dims[i], names[i]);
        if (!dim || PyList_SetItem(list, (Py_ssize_t)i, dim) < 0) Py_CLEAR(list);
    }
    PyMem_Free(dims);
    PyMem_Free(names);
    return list;
}

ONNXTensorElementDataType py_leaf_type(py_state *st, const OrtTypeInfo *info)
{
    const OrtApi *api = st->api;
    ONNXType kind = ONNX_TYPE_UNKNOWN;
    ONNXTensorElementDataType dtype = DTYPE(UNDEFINED);
    OrtTypeInfo *inner = NULL;
    const OrtTensorTypeAndShapeInfo *shape = tensor_of_type(st, info, &inner);
    const OrtSequenceTypeInfo *sequence = NULL;
    const OrtMapTypeInfo *map = NULL;
    api->ReleaseStatus(api->GetOnnxTypeFromTypeInfo(info, &kind));
    if (shape) {
        api->ReleaseStatus(api->GetTensorElementType(shape, &dtype));
    } else if (kind == ONNX_TYPE_SEQUENCE) {
        api->ReleaseStatus(api->CastTypeInfoToSequenceTypeInfo(info, &sequence));
        if (sequence) api->ReleaseStatus(api->GetSequenceElementType(sequence, &inner));
    } else if (kind == ONNX_TYPE_MAP) {
        api->ReleaseStatus(api->CastTypeInfoToMapTypeInfo(info, &map));
        if (map) api->ReleaseStatus(api->GetMapValueType(map, &inner));
    }
    if (inner && !shape) dtype = py_leaf_type(st, inner);
    if (inner) api->ReleaseTypeInfo(inner);
    return dtype;
}

/* Kind and element type that run needs to read lists. */
static void fill_want(py_state *st, const OrtTypeInfo *info, struct py_want *want)
{
    st->api->ReleaseStatus(st->api->GetOnnxTypeFromTypeInfo(info, &want->kind));
    want->dtype = py_leaf_type(st, info);
}

static PyObject *make_node_arg(py_state *st, PyObject *name, const OrtTypeInfo *info,
                               struct py_want *want)
{
    struct node_arg *self = (struct node_arg *)py_new(st->node_arg);
    if (!self) return NULL;
    OrtTypeInfo *held = NULL;
    const OrtTensorTypeAndShapeInfo *shape = tensor_of_type(st, info, &held);
    Py_INCREF(name);
    self->name = name;
    self->type = py_type_text(st, info);
    self->shape = shape_list(st, shape);
    if (want) {
        fill_want(st, held ? held : info, want);
        want->optional = held != NULL;
    }
    if (held) st->api->ReleaseTypeInfo(held);
    if (!self->type || !self->shape) Py_CLEAR(self);
    return (PyObject *)self;
}

static void node_arg_dealloc(PyObject *object)
{
    struct node_arg *self = (struct node_arg *)object;
    Py_CLEAR(self->name);
    Py_CLEAR(self->type);
    Py_CLEAR(self->shape);
    py_delete(object);
}

static PyObject *node_arg_str(PyObject *object)
{
    struct node_arg *self = (struct node_arg *)object;
    PyObject *shape = PyUnicode_FromString("[");
    for (Py_ssize_t i = 0; shape && i < PyList_Size(self->shape); i++) {
        PyObject *more =
            PyUnicode_FromFormat("%U%s%R", shape, i ? ", " : "", PyList_GetItem(self->shape, i));
        Py_DECREF(shape);
        shape = more;
    }
    PyObject *text = shape ? PyUnicode_FromFormat("NodeArg(name='%U', type='%U', shape=%U])",
                                                  self->name, self->type, shape)
                           : NULL;
    Py_XDECREF(shape);
    return text;
}

static PyMemberDef node_arg_members[] = {
    {"name", T_OBJECT, offsetof(struct node_arg, name), READONLY, "Name of the input or output."},
    {"type", T_OBJECT, offsetof(struct node_arg, type), READONLY,
     "Its type, as in 'tensor(float)' or 'seq(map(int64,tensor(float)))'."},
    {"shape", T_OBJECT, offsetof(struct node_arg, shape), READONLY,
     "Its lengths: an int each, the name of a symbolic one, or None."},
    {0},
};

static PyType_Slot node_arg_slots[] = {
    {Py_tp_doc, "Name, type and shape of an input, an output or an initializer."},
    {Py_tp_dealloc, node_arg_dealloc},
    {Py_tp_str, node_arg_str},
    {Py_tp_members, node_arg_members},
    {0, NULL},
};

/* A str, interned; frees `text` with the allocator. */
PyObject *py_strings_owned(py_state *st, char *text)
{
    PyObject *object = PyUnicode_FromString(text ? text : "");
    if (text) st->allocator->Free(st->allocator, text);
    if (object) PyUnicode_InternInPlace(&object);
    return object;
}

/* What a session tells of its inputs (0), outputs (1) and initializers (2). */
struct series {
    OrtStatus *(*count)(const OrtSession *, size_t *);
    OrtStatus *(*name)(const OrtSession *, size_t, OrtAllocator *, char **);
    OrtStatus *(*type)(const OrtSession *, size_t, OrtTypeInfo **);
};

static struct series series_of(const OrtApi *api, int which)
{
    if (which == 0)
        return (struct series){api->SessionGetInputCount, api->SessionGetInputName,
                               api->SessionGetInputTypeInfo};
    if (which == 1)
        return (struct series){api->SessionGetOutputCount, api->SessionGetOutputName,
                               api->SessionGetOutputTypeInfo};
    return (struct series){api->SessionGetOverridableInitializerCount,
                           api->SessionGetOverridableInitializerName,
                           api->SessionGetOverridableInitializerTypeInfo};
}

PyObject *py_node_args(py_state *st, OrtSession *session, int which, struct py_want *wants)
{
    const struct series series = series_of(st->api, which);
    size_t count = 0;
    if (py_check(st, series.count(session, &count)) < 0) return NULL;
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; list && i < count; i++) {
        char *text = NULL;
        OrtTypeInfo *info = NULL;
        PyObject *name = NULL, *node = NULL;
        if (py_check(st, series.name(session, i, st->allocator, &text)) == 0)
            name = py_strings_owned(st, text);
        if (name && py_check(st, series.type(session, i, &info)) == 0) {
            node = make_node_arg(st, name, info, wants ? &wants[i] : NULL);
            st->api->ReleaseTypeInfo(info);
        }
        Py_XDECREF(name);
        if (!node || PyList_SetItem(list, (Py_ssize_t)i, node) < 0) Py_CLEAR(list);
    }
    return list;
}

/* ---- ModelMetadata ---- */

struct metadata {
    PyObject_HEAD py_state *st;
    PyObject *producer_name, *graph_name, *domain, *description, *graph_description, *version, *map;
};

static void metadata_dealloc(PyObject *object)
{
    struct metadata *self = (struct metadata *)object;
    Py_CLEAR(self->producer_name);
    Py_CLEAR(self->graph_name);
    Py_CLEAR(self->domain);
    Py_CLEAR(self->description);
    Py_CLEAR(self->graph_description);
    Py_CLEAR(self->version);
    Py_CLEAR(self->map);
    py_delete(object);
}

#define METADATA_MEMBER(name, member, doc)                                                         \
    {                                                                                              \
        name, T_OBJECT, offsetof(struct metadata, member), 0, doc                                  \
    }
static PyMemberDef metadata_members[] = {
    METADATA_MEMBER("producer_name", producer_name, "Who wrote the model."),
    METADATA_MEMBER("graph_name", graph_name, "Name of the graph."),
    METADATA_MEMBER("domain", domain, "Domain of the model."),
    METADATA_MEMBER("description", description, "The model's doc string."),
    METADATA_MEMBER("graph_description", graph_description, "The graph's doc string."),
    METADATA_MEMBER("version", version, "Version of the model, an int."),
    METADATA_MEMBER("custom_metadata_map", map, "dict of the texts that the model carries."),
    {0},
};

static PyType_Slot metadata_slots[] = {
    {Py_tp_doc, "What a model says of itself, all str but version and custom_metadata_map."},
    {Py_tp_dealloc, metadata_dealloc},
    {Py_tp_members, metadata_members},
    {0, NULL},
};

typedef OrtStatus *(*metadata_text)(const OrtModelMetadata *, OrtAllocator *, char **);

static PyObject *read_text(py_state *st, const OrtModelMetadata *from, metadata_text read)
{
    char *text = NULL;
    return py_check(st, read(from, st->allocator, &text)) < 0 ? NULL : py_strings_owned(st, text);
}

static PyObject *read_map(py_state *st, const OrtModelMetadata *from)
{
    char **keys = NULL;
    int64_t count = 0;
    if (py_check(st, st->api->ModelMetadataGetCustomMetadataMapKeys(from, st->allocator, &keys,
                                                                    &count)) < 0)
        return NULL;
    PyObject *map = PyDict_New();
    for (int64_t i = 0; i < count; i++) {
        char *text = NULL;
        PyObject *value = NULL;
        if (map && py_check(st, st->api->ModelMetadataLookupCustomMetadataMap(from, st->allocator,
                                                                              keys[i], &text)) == 0)
            value = py_strings_owned(st, text);
        PyObject *key = py_strings_owned(st, keys[i]);
        if (map && (!key || !value || PyDict_SetItem(map, key, value) < 0)) Py_CLEAR(map);
        Py_XDECREF(key);
        Py_XDECREF(value);
    }
    if (keys) st->allocator->Free(st->allocator, keys);
    return map;
}

PyObject *py_metadata_of(py_state *st, OrtSession *session)
{
    OrtModelMetadata *from = NULL;
    int64_t version = 0;
    if (py_check(st, st->api->SessionGetModelMetadata(session, &from)) < 0) return NULL;
    struct metadata *self = (struct metadata *)py_new(st->metadata);
    if (self) {
        self->producer_name = read_text(st, from, st->api->ModelMetadataGetProducerName);
        self->graph_name = read_text(st, from, st->api->ModelMetadataGetGraphName);
        self->domain = read_text(st, from, st->api->ModelMetadataGetDomain);
        self->description = read_text(st, from, st->api->ModelMetadataGetDescription);
        self->graph_description = read_text(st, from, st->api->ModelMetadataGetGraphDescription);
        if (py_check(st, st->api->ModelMetadataGetVersion(from, &version)) == 0)
            self->version = PyLong_FromLongLong(version);
        self->map = read_map(st, from);
    }
    st->api->ReleaseModelMetadata(from);
    if (PyErr_Occurred()) Py_CLEAR(self);
    return (PyObject *)self;
}

int py_add_nodes(py_state *st)
{
    PyType_Spec node = {.basicsize = sizeof(struct node_arg), .slots = node_arg_slots};
    PyType_Spec data = {.basicsize = sizeof(struct metadata), .slots = metadata_slots};
    return py_add_type(st, &st->node_arg, &node) < 0 || py_add_type(st, &st->metadata, &data) < 0
               ? -1
               : 0;
}
