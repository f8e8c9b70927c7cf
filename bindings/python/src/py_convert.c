/* SPDX-License-Identifier: Apache-2.0
 * Values in and out: arrays, lists, texts, dictionaries and sequences against OrtValue. Numbers are
 * never copied when the array is packed; texts always are. */
#include "py_state.h"

#include <ort_inside.h>
#include <string.h>

#define DTYPE(name) ONNX_TENSOR_ELEMENT_DATA_TYPE_##name
#define CAPSULE     "sardonyx.value"

static const OrtApi *table(void)
{
    return OrtGetApiBase()->GetApi(ORT_API_VERSION);
}

static void release_capsule(PyObject *capsule)
{
    table()->ReleaseValue(PyCapsule_GetPointer(capsule, CAPSULE));
}

PyObject *py_capsule_of_value(OrtValue *value)
{
    PyObject *capsule = PyCapsule_New(value, CAPSULE, release_capsule);
    if (!capsule) table()->ReleaseValue(value);
    return capsule;
}

/* ---- into values ---- */

int py_narrow_bits(ONNXTensorElementDataType dtype)
{
    switch (dtype) {
    case DTYPE(UINT4):
    case DTYPE(INT4):
    case DTYPE(FLOAT4E2M1): return 4;
    case DTYPE(UINT2):
    case DTYPE(INT2): return 2;
    default: return 0;
    }
}

static size_t count_elements(size_t rank, const int64_t *dims)
{
    size_t count = 1;
    for (size_t i = 0; i < rank; i++)
        count *= (size_t)dims[i];
    return count;
}

/* UTF-8 of an element of an array of texts: a new bytes object. */
static PyObject *text_of_item(PyObject *item, int kind)
{
    if (PyUnicode_Check(item)) return PyUnicode_AsUTF8String(item);
    if (kind != 'O' && PyBytes_Check(item)) {
        Py_INCREF(item);
        return item;
    }
    PyObject *shown = PyObject_Str(item);
    PyObject *bytes = shown ? PyUnicode_AsUTF8String(shown) : NULL;
    Py_XDECREF(shown);
    return bytes;
}

static int fill_text(py_state *st, OrtValue *value, PyObject *list, int kind)
{
    const Py_ssize_t count = PyList_Size(list);
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *bytes = text_of_item(PyList_GetItem(list, i), kind);
        if (!bytes) return -1;
        const size_t size = (size_t)PyBytes_Size(bytes);
        char *place = NULL;
        const int failed = py_check(
            st, st->api->GetResizedStringTensorElementBuffer(value, (size_t)i, size, &place));
        if (!failed && size) memcpy(place, PyBytes_AsString(bytes), size);
        Py_DECREF(bytes);
        if (failed) return -1;
    }
    return 0;
}

static int make_text(py_state *st, const struct py_array *view, PyObject *object, OrtValue **out)
{
    PyObject *plain = py_as_array(st, object, NULL);
    PyObject *base = plain ? PyObject_CallMethod(st->numpy.module, "ravel", "O", plain) : NULL;
    PyObject *list = base ? PyObject_CallMethod(base, "tolist", NULL) : NULL;
    int failed =
        list ? py_check(st,
                        st->api->CreateTensorAsOrtValue(st->allocator, (const int64_t *)view->dims,
                                                        (size_t)view->rank, DTYPE(STRING), out))
             : -1;
    if (!failed && fill_text(st, *out, list, view->kind) < 0) {
        st->api->ReleaseValue(*out);
        *out = NULL;
        failed = -1;
    }
    Py_XDECREF(list);
    Py_XDECREF(base);
    Py_XDECREF(plain);
    return failed;
}

static int make_narrow(py_state *st, const struct py_array *view, int bits, OrtValue **out)
{
    const size_t count = count_elements((size_t)view->rank, (const int64_t *)view->dims);
    const unsigned char *from = view->data;
    const size_t each = 8 / (size_t)bits;
    const unsigned mask = (1U << bits) - 1;
    unsigned char *to = NULL;
    if (py_check(st, st->api->CreateTensorAsOrtValue(st->allocator, (const int64_t *)view->dims,
                                                     (size_t)view->rank, view->dtype, out)) < 0)
        return -1;
    if (py_check(st, st->api->GetTensorMutableData(*out, (void **)&to)) < 0) return -1;
    memset(to, 0, (count + each - 1) / each);
    for (size_t i = 0; i < count; i++)
        to[i / each] |= (unsigned char)((from[i] & mask) << (i % each * (size_t)bits));
    return 0;
}

static int raise_dtype(PyObject *array)
{
    PyObject *dtype = PyObject_GetAttrString(array, "dtype");
    PyObject *number = dtype ? PyObject_GetAttrString(dtype, "num") : NULL;
    if (number)
        PyErr_Format(PyExc_RuntimeError, "Numpy_type %S can't be converted to MLDataType.", number);
    Py_XDECREF(number);
    Py_XDECREF(dtype);
    return -1;
}

int py_tensor_of_array(py_state *st, PyObject *array, OrtValue **out, PyObject **hold)
{
    struct py_array view;
    *out = NULL;
    *hold = NULL;
    if (py_open_array(st, array, &view) < 0) return -1;
    int failed;
    const int bits = py_narrow_bits(view.dtype);
    if (view.dtype == DTYPE(UNDEFINED)) {
        const bool text =
            view.kind == 'O' || view.kind == 'U' || view.kind == 'S' || view.kind == 'V';
        failed = text ? make_text(st, &view, array, out) : raise_dtype(array);
    } else if (bits) {
        failed = make_narrow(st, &view, bits, out);
    } else {
        const int64_t *dims = (const int64_t *)view.dims;
        const size_t bytes = view.size * count_elements((size_t)view.rank, dims);
        failed = py_check(
            st, st->api->CreateTensorWithDataAsOrtValue(st->cpu_info, view.data, bytes, dims,
                                                        (size_t)view.rank, view.dtype, out));
        if (!failed) {
            *hold = view.array;
            return 0;
        }
    }
    Py_DECREF(view.array);
    return failed;
}

/* Makes one item of a container; want: of the container, NULL: any. */
typedef int (*convert_fn)(py_state *st, const struct py_want *want, PyObject *object,
                          OrtValue **out, PyObject **hold);

/* The values of items, made from `items`; CreateValue shares them. */
static int make_container(py_state *st, ONNXType kind, const struct py_want *want, PyObject *items,
                          convert_fn convert, OrtValue **out)
{
    const Py_ssize_t count = PyList_Size(items);
    OrtValue **values = PyMem_Malloc((size_t)(count + 1) * sizeof *values);
    PyObject *holds = PyList_New(0);
    int failed = values && holds ? 0 : -1;
    Py_ssize_t made = 0;
    for (; !failed && made < count; made++) {
        PyObject *hold = NULL;
        values[made] = NULL;
        failed = convert(st, want, PyList_GetItem(items, made), &values[made], &hold);
        if (failed) break;
        if (hold && PyList_Append(holds, hold) < 0) failed = -1;
        Py_XDECREF(hold);
    }
    if (!failed)
        failed = py_check(
            st, st->api->CreateValue((const OrtValue *const *)values, (size_t)count, kind, out));
    for (Py_ssize_t i = 0; i < made; i++)
        st->api->ReleaseValue(values[i]);
    PyMem_Free(values);
    Py_XDECREF(holds);
    return failed;
}

static ONNXTensorElementDataType dtype_of(py_state *st, const OrtValue *tensor)
{
    ONNXTensorElementDataType dtype = DTYPE(UNDEFINED);
    const int64_t *dims = NULL;
    size_t rank = 0;
    st->api->ReleaseStatus(
        st->api->GetTensorElementTypeAndShapeDataReference(tensor, &dtype, &dims, &rank));
    return dtype;
}

/* A tensor with memory of its own: containers outlive the arrays they are made from. */
static int copy_of_array(py_state *st, const struct py_want *want, PyObject *array, OrtValue **out,
                         PyObject **hold)
{
    OrtValue *view = NULL;
    void *from = NULL, *to = NULL;
    struct py_array look;
    *hold = NULL;
    if (!py_is_array(st, array)) {
        PyErr_SetString(PyExc_RuntimeError, "CreateSequenceOfTensors: Input is not a tensor");
        return -1;
    }
    PyObject *kept = NULL;
    if (py_tensor_of_array(st, array, &view, &kept) < 0) return -1;
    if (want && want->dtype != DTYPE(UNDEFINED) && dtype_of(st, view) != want->dtype) {
        PyErr_SetString(PyExc_RuntimeError,
                        "TensorSeq: tensor to be added has a different data type.");
        st->api->ReleaseValue(view);
        Py_XDECREF(kept);
        return -1;
    }
    if (!kept) { /* it has its own already */
        *out = view;
        return 0;
    }
    int failed = py_open_array(st, kept, &look);
    if (!failed) {
        const int64_t *dims = (const int64_t *)look.dims;
        const size_t bytes = look.size * count_elements((size_t)look.rank, dims);
        failed = py_check(st, st->api->CreateTensorAsOrtValue(st->allocator, dims,
                                                              (size_t)look.rank, look.dtype, out));
        if (!failed) failed = py_check(st, st->api->GetTensorMutableData(view, &from));
        if (!failed) failed = py_check(st, st->api->GetTensorMutableData(*out, &to));
        if (!failed && bytes) memcpy(to, from, bytes);
        Py_DECREF(look.array);
    }
    st->api->ReleaseValue(view);
    Py_DECREF(kept);
    return failed;
}

/* A key or value of a map as a number or text of its type: a new reference; NULL, also without an
 * exception: it is none. */
static PyObject *map_item(PyObject *item, ONNXTensorElementDataType dtype, bool is_key)
{
    PyObject *made = NULL;
    if (dtype == DTYPE(STRING))
        made = is_key || PyUnicode_Check(item) ? PyObject_Str(item) : NULL;
    else if (dtype == DTYPE(INT64))
        made = PyNumber_Index(item);
    else if (PyNumber_Check(item))
        made = PyNumber_Float(item);
    if (PyErr_ExceptionMatches(PyExc_TypeError)) PyErr_Clear();
    return made;
}

/* An array of the keys or the values. */
static PyObject *map_column(py_state *st, const char *input, PyObject *items,
                            ONNXTensorElementDataType dtype, ONNXTensorElementDataType key)
{
    PyObject *list = PyList_New(0);
    for (Py_ssize_t i = 0; list && i < PyList_Size(items); i++) {
        PyObject *item = PyList_GetItem(items, i);
        PyObject *made = map_item(item, dtype, key == DTYPE(UNDEFINED));
        if (!made && !PyErr_Occurred())
            PyErr_Format(PyExc_RuntimeError,
                         "Unexpected %s type  %R, it cannot be linked to C type %s for input '%s'.",
                         key ? "value" : "key", Py_TYPE(item),
                         (key ? key : dtype) == DTYPE(STRING) ? "string" : "int64_t", input);
        if (!made || PyList_Append(list, made) < 0) Py_CLEAR(list);
        Py_XDECREF(made);
    }
    PyObject *array = list ? py_as_array(st, list, py_dtype_of(st, dtype)) : NULL;
    Py_XDECREF(list);
    return array;
}

/* The first key tells the type of all: texts or int64. Values are what the input takes, float where
 * it takes no map. */
static int map_of_dict(py_state *st, const struct py_want *want, PyObject *dict, OrtValue **out,
                       PyObject **hold)
{
    *hold = NULL;
    if (!PyDict_Check(dict)) {
        PyErr_Format(PyExc_RuntimeError, "Unable to handle object of type %R", Py_TYPE(dict));
        return -1;
    }
    if (PyDict_Size(dict) == 0) {
        PyErr_SetString(PyExc_RuntimeError,
                        "Size of dictionary is empty, unable to run the prediction.");
        return -1;
    }
    PyObject *keys = PyDict_Keys(dict), *values = PyDict_Values(dict);
    PyObject *first = keys ? PyList_GetItem(keys, 0) : NULL, *columns[2] = {NULL, NULL};
    const bool is_text = first && PyUnicode_Check(first);
    const ONNXTensorElementDataType key = is_text ? DTYPE(STRING) : DTYPE(INT64);
    const bool takes_maps = (want->kind == ONNX_TYPE_MAP || want->kind == ONNX_TYPE_SEQUENCE) &&
                            want->dtype != DTYPE(UNDEFINED);
    if (first && !is_text && !PyNumber_Check(first))
        PyErr_Format(PyExc_RuntimeError, "Key type must be int or string (not %R) for input '%s'.",
                     Py_TYPE(first), want->name);
    else if (first && values)
        columns[0] = map_column(st, want->name, keys, key, DTYPE(UNDEFINED));
    if (columns[0])
        columns[1] =
            map_column(st, want->name, values, takes_maps ? want->dtype : DTYPE(FLOAT), key);
    PyObject *arrays = columns[1] ? Py_BuildValue("[OO]", columns[0], columns[1]) : NULL;
    const int failed =
        arrays ? make_container(st, ONNX_TYPE_MAP, NULL, arrays, copy_of_array, out) : -1;
    Py_XDECREF(arrays);
    Py_XDECREF(columns[0]);
    Py_XDECREF(columns[1]);
    Py_XDECREF(keys);
    Py_XDECREF(values);
    return failed;
}

static int value_of_list(py_state *st, const struct py_want *want, PyObject *list, OrtValue **out,
                         PyObject **hold)
{
    PyObject *first = PyList_Size(list) ? PyList_GetItem(list, 0) : NULL;
    if (want->kind == ONNX_TYPE_SEQUENCE && !first)
        return py_check(st, ort_sequence_empty(want->dtype, out));
    if (want->kind == ONNX_TYPE_SEQUENCE)
        return make_container(st, ONNX_TYPE_SEQUENCE, want, list,
                              PyDict_Check(first) ? map_of_dict : copy_of_array, out);
    PyObject *dtype = NULL;
    if (want->dtype != DTYPE(UNDEFINED) && !(dtype = py_dtype_of(st, want->dtype))) return -1;
    PyObject *array = py_as_array(st, list, dtype);
    if (!array) {
        PyErr_Clear();
        PyErr_SetString(PyExc_RuntimeError, "Could not create tensor from given input list");
        return -1;
    }
    const int failed = py_tensor_of_array(st, array, out, hold);
    Py_DECREF(array);
    return failed;
}

/* A tensor of another library, through DLPack. 1: it is none. */
static int value_of_dlpack(py_state *st, PyObject *object, OrtValue **out, PyObject **hold,
                           bool *borrowed)
{
    if (!PyObject_HasAttrString(object, "__dlpack__")) return 1;
    PyObject *wrapped = PyObject_CallMethod((PyObject *)st->value, "from_dlpack", "O", object);
    if (!wrapped) return -1;
    *out = py_unwrap_value(st, wrapped);
    *hold = wrapped;
    *borrowed = true;
    return 0;
}

/* What is iterable may be a series of dictionaries; the messages are those of ONNX Runtime. */
static int value_of_other(py_state *st, const struct py_want *want, PyObject *object,
                          OrtValue **out)
{
    PyObject *iterator = PyObject_GetIter(object);
    if (!iterator) {
        PyErr_Clear();
        PyErr_Format(PyExc_RuntimeError, "Unable to handle object of type %R", Py_TYPE(object));
        return -1;
    }
    PyObject *list = PySequence_List(iterator);
    Py_DECREF(iterator);
    if (!list) return -1;
    PyObject *first = PyList_Size(list) ? PyList_GetItem(list, 0) : NULL;
    int failed = -1;
    if (first && PyDict_Check(first))
        failed = make_container(st, ONNX_TYPE_SEQUENCE, want, list, map_of_dict, out);
    else if (!first)
        PyErr_Format(PyExc_RuntimeError, "Input '%s' must not be empty.", want->name);
    else if (py_is_array(st, first))
        PyErr_Format(PyExc_RuntimeError, "Iterable of %R should be given as array for input '%s'.",
                     Py_TYPE(first), want->name);
    else
        PyErr_Format(PyExc_RuntimeError,
                     "Input must be a list of dictionaries or a single numpy array for input '%s'.",
                     want->name);
    Py_DECREF(list);
    return failed;
}

int py_to_value(py_state *st, const struct py_want *want, PyObject *object, OrtValue **out,
                PyObject **hold, bool *borrowed)
{
    *out = NULL;
    *hold = NULL;
    *borrowed = false;
    if (py_is_array(st, object)) return py_tensor_of_array(st, object, out, hold);
    if (PyObject_TypeCheck(object, st->value)) {
        *out = py_unwrap_value(st, object);
        Py_INCREF(object);
        *hold = object;
        *borrowed = true;
        return 0;
    }
    if (PyList_Check(object)) return value_of_list(st, want, object, out, hold);
    if (PyDict_Check(object)) return map_of_dict(st, want, object, out, hold);
    const int failed = value_of_dlpack(st, object, out, hold, borrowed);
    return failed <= 0 ? failed : value_of_other(st, want, object, out);
}

/* ---- out of values ---- */

static PyObject *text_array(py_state *st, const OrtValue *value, size_t rank, const int64_t *dims)
{
    const size_t count = count_elements(rank, dims);
    size_t bytes = 0;
    if (py_check(st, st->api->GetStringTensorDataLength(value, &bytes)) < 0) return NULL;
    char *texts = PyMem_Malloc(bytes + 1);
    size_t *begins = PyMem_Malloc((count + 1) * sizeof *begins);
    PyObject *array = NULL;
    if (!texts || !begins) {
        PyErr_NoMemory();
    } else if (!count || py_check(st, st->api->GetStringTensorContent(value, texts, bytes, begins,
                                                                      count)) == 0) {
        array = py_make_array(st, DTYPE(STRING), rank, dims, NULL, NULL);
    }
    PyObject **items = array ? py_array_data(st, array) : NULL;
    for (size_t i = 0; items && i < count; i++) {
        const size_t end = i + 1 < count ? begins[i + 1] : bytes;
        PyObject *text =
            PyUnicode_DecodeUTF8(texts + begins[i], (Py_ssize_t)(end - begins[i]), NULL);
        if (!text) {
            Py_CLEAR(array);
            break;
        }
        PyObject *old = items[i];
        items[i] = text;
        Py_XDECREF(old);
    }
    PyMem_Free(texts);
    PyMem_Free(begins);
    return array;
}

static PyObject *narrow_array(py_state *st, ONNXTensorElementDataType dtype, size_t rank,
                              const int64_t *dims, const unsigned char *from, int bits)
{
    PyObject *array = py_make_array(st, dtype, rank, dims, NULL, NULL);
    unsigned char *to = array ? py_array_data(st, array) : NULL;
    const size_t count = count_elements(rank, dims), each = 8 / (size_t)bits;
    const bool is_signed = dtype == DTYPE(INT4) || dtype == DTYPE(INT2);
    const unsigned mask = (1U << bits) - 1, sign = 1U << (bits - 1);
    for (size_t i = 0; to && i < count; i++) {
        unsigned item = from[i / each] >> (i % each * (size_t)bits) & mask;
        if (is_signed && (item & sign)) item |= ~mask;
        to[i] = (unsigned char)item;
    }
    return array;
}

PyObject *py_copy_of_tensor(py_state *st, const OrtValue *value)
{
    ONNXTensorElementDataType dtype = DTYPE(UNDEFINED);
    const int64_t *dims = NULL;
    size_t rank = 0;
    void *data = NULL;
    if (py_check(st, st->api->GetTensorElementTypeAndShapeDataReference(value, &dtype, &dims,
                                                                        &rank)) < 0)
        return NULL;
    if (dtype == DTYPE(STRING)) return text_array(st, value, rank, dims);
    if (py_check(st, st->api->GetTensorMutableData((OrtValue *)value, &data)) < 0) return NULL;
    return narrow_array(st, dtype, rank, dims, data, py_narrow_bits(dtype));
}

/* The array keeps the value, which is taken. */
static PyObject *array_of_tensor(py_state *st, OrtValue *value)
{
    ONNXTensorElementDataType dtype = DTYPE(UNDEFINED);
    const int64_t *dims = NULL;
    size_t rank = 0;
    void *data = NULL;
    if (py_check(st, st->api->GetTensorElementTypeAndShapeDataReference(value, &dtype, &dims,
                                                                        &rank)) < 0)
        goto failed;
    if (dtype == DTYPE(STRING) || py_narrow_bits(dtype)) {
        PyObject *array = py_copy_of_tensor(st, value);
        st->api->ReleaseValue(value);
        return array;
    }
    if (py_check(st, st->api->GetTensorMutableData(value, &data)) < 0) goto failed;
    PyObject *owner = py_capsule_of_value(value);
    return owner ? py_make_array(st, dtype, rank, dims, data, owner) : NULL;
failed:
    st->api->ReleaseValue(value);
    return NULL;
}

/* {key: value} of a map's two tensors. */
static PyObject *dict_of_map(py_state *st, const OrtValue *value)
{
    PyObject *lists[2] = {NULL, NULL};
    for (int i = 0; i < 2; i++) {
        OrtValue *part = NULL;
        if (py_check(st, st->api->GetValue(value, i, st->allocator, &part)) < 0) break;
        PyObject *array = py_from_value(st, part);
        lists[i] = array ? PyObject_CallMethod(array, "tolist", NULL) : NULL;
        Py_XDECREF(array);
        if (!lists[i]) break;
    }
    PyObject *dict = lists[0] && lists[1] ? PyDict_New() : NULL;
    for (Py_ssize_t i = 0; dict && i < PyList_Size(lists[0]); i++)
        if (PyDict_SetItem(dict, PyList_GetItem(lists[0], i), PyList_GetItem(lists[1], i)) < 0)
            Py_CLEAR(dict);
    Py_XDECREF(lists[0]);
    Py_XDECREF(lists[1]);
    return dict;
}

static PyObject *list_of_sequence(py_state *st, const OrtValue *value)
{
    size_t count = 0;
    if (py_check(st, st->api->GetValueCount(value, &count)) < 0) return NULL;
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; list && i < count; i++) {
        OrtValue *item = NULL;
        PyObject *object = NULL;
        if (py_check(st, st->api->GetValue(value, (int)i, st->allocator, &item)) == 0)
            object = py_from_value(st, item);
        if (!object || PyList_SetItem(list, (Py_ssize_t)i, object) < 0) Py_CLEAR(list);
    }
    return list;
}

PyObject *py_from_value(py_state *st, OrtValue *value)
{
    ONNXType kind = ONNX_TYPE_UNKNOWN;
    int has = 0;
    if (!value) Py_RETURN_NONE;
    if (py_check(st, st->api->GetValueType(value, &kind)) < 0) goto failed;
    if (kind == ONNX_TYPE_TENSOR) return array_of_tensor(st, value);
    if (kind == ONNX_TYPE_SPARSETENSOR) return py_sparse_of_value(st, value, NULL);
    PyObject *object = NULL;
    if (py_check(st, st->api->HasValue(value, &has)) < 0) goto failed;
    if (!has) {
        object = Py_None;
        Py_INCREF(object);
    } else if (kind == ONNX_TYPE_MAP) {
        object = dict_of_map(st, value);
    } else {
        object = list_of_sequence(st, value);
    }
    st->api->ReleaseValue(value);
    return object;
failed:
    st->api->ReleaseValue(value);
    return NULL;
}
