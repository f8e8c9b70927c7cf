/* SPDX-License-Identifier: Apache-2.0
 * OrtValue: a tensor, sequence, map or sparse tensor as an object of its own. */
#include "py_state.h"

#include <string.h>

#define DTYPE(name) ONNX_TENSOR_ELEMENT_DATA_TYPE_##name

PyObject *py_wrap_value(py_state *st, OrtValue *value, PyObject *hold)
{
    py_value *self = (py_value *)py_new(st->value);
    if (!self) {
        st->api->ReleaseValue(value);
        Py_XDECREF(hold);
        return NULL;
    }
    self->value = value;
    self->hold = hold;
    return (PyObject *)self;
}

OrtValue *py_unwrap_value(py_state *st, PyObject *object)
{
    if (PyObject_TypeCheck(object, st->value) && ((py_value *)object)->value)
        return ((py_value *)object)->value;
    PyErr_Format(PyExc_TypeError, "an OrtValue is wanted, not %R", Py_TYPE(object));
    return NULL;
}

static void value_dealloc(PyObject *object)
{
    py_value *self = (py_value *)object;
    if (self->value) OrtGetApiBase()->GetApi(ORT_API_VERSION)->ReleaseValue(self->value);
    Py_CLEAR(self->hold);
    py_delete(object);
}

/* ---- making ---- */

/* Only the CPU has memory here. */
static int want_cpu(PyObject *device)
{
    static const char *const known[] = {"cuda", "cann", "dml", "webgpu", "gpu", "npu"};
    if (!device || device == Py_None) return 0;
    PyObject *text = py_utf8(device, "device_type");
    if (!text) return -1;
    const char *name = PyBytes_AsString(text);
    int failed = strcmp(name, "cpu") == 0 ? 0 : -1;
    for (size_t i = 0; failed && i < sizeof known / sizeof known[0]; i++)
        if (strcmp(name, known[i]) == 0)
            PyErr_SetString(PyExc_RuntimeError,
                            "Can't allocate memory on the device using this package of "
                            "OnnxRuntime. Please use the appropriate package of OnnxRuntime for "
                            "your hardware to use this feature.");
    if (failed && !PyErr_Occurred())
        PyErr_Format(PyExc_Exception, "Unsupported device type: %s", name);
    Py_DECREF(text);
    return failed;
}

static int raise_text(void)
{
    PyErr_SetString(PyExc_RuntimeError, "Creation of OrtValues is currently only supported from "
                                        "non-string numpy arrays");
    return -1;
}

static PyObject *from_numpy(PyObject *type, PyObject *const *args, Py_ssize_t count,
                            PyObject *keywords)
{
    static const char *const names[] = {"numpy_obj", "device_type", "device_id", "vendor_id", NULL};
    py_state *st = py_state_of_type((PyTypeObject *)type);
    PyObject *found[4], *hold = NULL;
    struct py_array view;
    OrtValue *value = NULL;
    if (!st || py_arguments("ortvalue_from_numpy", names, 1, args, count, keywords, found) < 0)
        return NULL;
    if (want_cpu(found[1]) < 0) return NULL;
    if (!py_is_array(st, found[0])) {
        raise_text();
        return NULL;
    }
    if (py_open_array(st, found[0], &view) < 0) return NULL;
    const bool text = view.kind == 'O' || view.kind == 'U' || view.kind == 'S';
    Py_DECREF(view.array);
    if (text) {
        raise_text();
        return NULL;
    }
    if (py_tensor_of_array(st, found[0], &value, &hold) < 0) return NULL;
    return py_wrap_value(st, value, hold);
}

/* Bytes of one element; 0 for text and what is packed below a byte. */
static size_t size_of(ONNXTensorElementDataType dtype)
{
    switch (dtype) {
    case DTYPE(UINT8):
    case DTYPE(INT8):
    case DTYPE(BOOL):
    case DTYPE(FLOAT8E4M3FN):
    case DTYPE(FLOAT8E4M3FNUZ):
    case DTYPE(FLOAT8E5M2):
    case DTYPE(FLOAT8E5M2FNUZ):
    case DTYPE(FLOAT8E8M0): return 1;
    case DTYPE(UINT16):
    case DTYPE(INT16):
    case DTYPE(FLOAT16):
    case DTYPE(BFLOAT16): return 2;
    case DTYPE(FLOAT):
    case DTYPE(INT32):
    case DTYPE(UINT32): return 4;
    case DTYPE(DOUBLE):
    case DTYPE(INT64):
    case DTYPE(UINT64):
    case DTYPE(COMPLEX64): return 8;
    case DTYPE(COMPLEX128): return 16;
    default: return 0;
    }
}

/* The array's bytes as elements of another type of the same size. */
static PyObject *from_numpy_as(PyObject *type, PyObject *const *args, Py_ssize_t count,
                               PyObject *keywords)
{
    static const char *const names[] = {"data", "onnx_element_type", NULL};
    py_state *st = py_state_of_type((PyTypeObject *)type);
    PyObject *found[2];
    struct py_array view;
    OrtValue *value = NULL;
    if (!st || py_arguments("ortvalue_from_numpy_with_onnx_type", names, 2, args, count, keywords,
                            found) < 0)
        return NULL;
    const long dtype = PyLong_AsLong(found[1]);
    if (PyErr_Occurred()) return NULL;
    if (!py_is_array(st, found[0])) {
        raise_text();
        return NULL;
    }
    if (py_open_array(st, found[0], &view) < 0) return NULL;
    const size_t size = py_narrow_bits((ONNXTensorElementDataType)dtype)
                            ? 1 /* packed elements, in the first bytes of the array */
                            : size_of((ONNXTensorElementDataType)dtype);
    if (size != view.size) {
        PyErr_Format(PyExc_RuntimeError,
                     "Items size in the incoming array: %zu specified by onnxtype: %zu", view.size,
                     size);
        Py_DECREF(view.array);
        return NULL;
    }
    size_t bytes = size;
    for (int i = 0; i < view.rank; i++)
        bytes *= (size_t)view.dims[i];
    if (py_check(st, st->api->CreateTensorWithDataAsOrtValue(
                         st->cpu_info, view.data, bytes, (const int64_t *)view.dims,
                         (size_t)view.rank, (ONNXTensorElementDataType)dtype, &value)) < 0) {
        Py_DECREF(view.array);
        return NULL;
    }
    return py_wrap_value(st, value, view.array);
}

static PyObject *from_shape(PyObject *type, PyObject *const *args, Py_ssize_t count,
                            PyObject *keywords)
{
    static const char *const names[] = {"shape",     "element_type", "device_type", "device_id",
                                        "vendor_id", "memory_info",  NULL};
    py_state *st = py_state_of_type((PyTypeObject *)type);
    PyObject *found[6];
    int64_t *dims = NULL;
    Py_ssize_t rank = 0;
    OrtValue *value = NULL;
    if (!st ||
        py_arguments("ortvalue_from_shape_and_type", names, 2, args, count, keywords, found) < 0)
        return NULL;
    if (want_cpu(found[2]) < 0) return NULL;
    const ONNXTensorElementDataType dtype = PyLong_Check(found[1])
                                                ? (ONNXTensorElementDataType)PyLong_AsLong(found[1])
                                                : py_dtype_from(st, found[1]);
    if (PyErr_Occurred()) return NULL;
    if (dtype == DTYPE(STRING)) {
        raise_text();
        return NULL;
    }
    if (py_dims(found[0], &dims, &rank) < 0) return NULL;
    const int failed = py_check(
        st, st->api->CreateTensorAsOrtValue(st->allocator, dims, (size_t)rank, dtype, &value));
    PyMem_Free(dims);
    return failed ? NULL : py_wrap_value(st, value, NULL);
}

static PyObject *from_sparse(PyObject *type, PyObject *tensor)
{
    (void)type;
    PyObject *value = PyObject_GetAttrString(tensor, "_value");
    return value;
}

/* ---- asking ---- */

#define VALUE(object) ((py_value *)(object))

static int read_kind(PyObject *object, ONNXType *kind)
{
    py_state *st = VALUE(object)->st;
    return py_check(st, st->api->GetValueType(VALUE(object)->value, kind));
}

static PyObject *is_kind(PyObject *object, ONNXType wanted)
{
    ONNXType kind = ONNX_TYPE_UNKNOWN;
    return read_kind(object, &kind) < 0 ? NULL : PyBool_FromLong(kind == wanted);
}

static PyObject *is_tensor(PyObject *object, PyObject *unused)
{
    (void)unused;
    return is_kind(object, ONNX_TYPE_TENSOR);
}

static PyObject *is_sparse_tensor(PyObject *object, PyObject *unused)
{
    (void)unused;
    return is_kind(object, ONNX_TYPE_SPARSETENSOR);
}

static PyObject *is_tensor_sequence(PyObject *object, PyObject *unused)
{
    (void)unused;
    return is_kind(object, ONNX_TYPE_SEQUENCE);
}

static PyObject *has_value(PyObject *object, PyObject *unused)
{
    py_state *st = VALUE(object)->st;
    int has = 0;
    (void)unused;
    if (py_check(st, st->api->HasValue(VALUE(object)->value, &has)) < 0) return NULL;
    return PyBool_FromLong(has);
}

/* Element type and shape of a tensor; the dims are to be freed. */
static int read_shape(PyObject *object, ONNXTensorElementDataType *dtype, int64_t **dims,
                      size_t *rank)
{
    py_state *st = VALUE(object)->st;
    OrtTensorTypeAndShapeInfo *info = NULL;
    *dims = NULL;
    if (py_check_plain(st, st->api->GetTensorTypeAndShape(VALUE(object)->value, &info)) < 0)
        return -1;
    int failed = py_check(st, st->api->GetTensorElementType(info, dtype));
    if (!failed) failed = py_check(st, st->api->GetDimensionsCount(info, rank));
    if (!failed && !(*dims = PyMem_Malloc((*rank + 1) * sizeof **dims))) {
        PyErr_NoMemory();
        failed = -1;
    }
    if (!failed) failed = py_check(st, st->api->GetDimensions(info, *dims, *rank));
    st->api->ReleaseTensorTypeAndShapeInfo(info);
    return failed;
}

static PyObject *shape(PyObject *object, PyObject *unused)
{
    ONNXTensorElementDataType dtype = DTYPE(UNDEFINED);
    int64_t *dims = NULL;
    size_t rank = 0;
    (void)unused;
    PyObject *list =
        read_shape(object, &dtype, &dims, &rank) < 0 ? NULL : py_list_of_dims(dims, rank);
    PyMem_Free(dims);
    return list;
}

static PyObject *element_type(PyObject *object, PyObject *unused)
{
    py_state *st = VALUE(object)->st;
    OrtTypeInfo *info = NULL;
    (void)unused;
    if (py_check(st, st->api->GetTypeInfo(VALUE(object)->value, &info)) < 0) return NULL;
    const ONNXTensorElementDataType dtype = info ? py_leaf_type(st, info) : DTYPE(UNDEFINED);
    if (info) st->api->ReleaseTypeInfo(info);
    return PyLong_FromLong(dtype);
}

static PyObject *data_type(PyObject *object, PyObject *unused)
{
    py_state *st = VALUE(object)->st;
    OrtTypeInfo *info = NULL;
    (void)unused;
    if (py_check(st, st->api->GetTypeInfo(VALUE(object)->value, &info)) < 0) return NULL;
    PyObject *text = info ? py_type_text(st, info) : PyUnicode_FromString("");
    if (info) st->api->ReleaseTypeInfo(info);
    return text;
}

static PyObject *size_in_bytes(PyObject *object, PyObject *unused)
{
    py_state *st = VALUE(object)->st;
    size_t bytes = 0;
    (void)unused;
    if (py_check_plain(st, st->api->GetTensorSizeInBytes(VALUE(object)->value, &bytes)) < 0)
        return NULL;
    return PyLong_FromSize_t(bytes);
}

static PyObject *data_ptr(PyObject *object, PyObject *unused)
{
    py_state *st = VALUE(object)->st;
    void *data = NULL;
    (void)unused;
    if (py_check_plain(st, st->api->GetTensorMutableData(VALUE(object)->value, &data)) < 0)
        return NULL;
    return PyLong_FromVoidPtr(data);
}

static PyObject *device_name(PyObject *object, PyObject *unused)
{
    (void)object;
    (void)unused;
    return PyUnicode_FromString("cpu");
}

/* ---- looking in ---- */

static PyObject *numpy(PyObject *object, PyObject *unused)
{
    py_value *self = VALUE(object);
    py_state *st = self->st;
    ONNXType kind = ONNX_TYPE_UNKNOWN;
    ONNXTensorElementDataType dtype = DTYPE(UNDEFINED);
    int64_t *dims = NULL;
    size_t rank = 0;
    void *data = NULL;
    (void)unused;
    if (read_kind(object, &kind) < 0) return NULL;
    if (kind != ONNX_TYPE_TENSOR) {
        PyErr_SetString(PyExc_RuntimeError, "Only OrtValues that are Tensors are convertible to "
                                            "Numpy objects");
        return NULL;
    }
    PyObject *array = NULL;
    if (read_shape(object, &dtype, &dims, &rank) == 0) {
        if (size_of(dtype) == 0) {
            array = py_copy_of_tensor(st, self->value);
        } else if (py_check(st, st->api->GetTensorMutableData(self->value, &data)) == 0) {
            Py_INCREF(object);
            array = py_make_array(st, dtype, rank, dims, data, object);
        }
    }
    PyMem_Free(dims);
    return array;
}

static PyObject *as_array(PyObject *object, PyObject *const *args, Py_ssize_t count,
                          PyObject *keywords)
{
    static const char *const names[] = {"dtype", "copy", NULL};
    PyObject *found[2];
    py_state *st = VALUE(object)->st;
    if (py_arguments("__array__", names, 0, args, count, keywords, found) < 0) return NULL;
    PyObject *array = numpy(object, NULL);
    if (array && found[0] && found[0] != Py_None) {
        PyObject *cast = py_as_array(st, array, found[0]);
        Py_DECREF(array);
        array = cast;
    }
    if (array && found[1] && found[1] != Py_None && PyObject_IsTrue(found[1]) == 1) {
        PyObject *copy = PyObject_CallMethod(array, "copy", NULL);
        Py_DECREF(array);
        array = copy;
    }
    return array;
}

static PyObject *as_sparse_tensor(PyObject *object, PyObject *unused)
{
    ONNXType kind = ONNX_TYPE_UNKNOWN;
    (void)unused;
    if (read_kind(object, &kind) < 0) return NULL;
    if (kind == ONNX_TYPE_SPARSETENSOR)
        return py_sparse_of_value(VALUE(object)->st, VALUE(object)->value, object);
    PyErr_SetString(PyExc_RuntimeError, "This OrtValue does not hold a SparseTensor");
    return NULL;
}

/* ---- writing ---- */

/* Memory and size of a tensor's elements, in bytes. */
static int read_memory(PyObject *object, char **data, size_t *bytes)
{
    py_state *st = VALUE(object)->st;
    if (py_check_plain(st, st->api->GetTensorSizeInBytes(VALUE(object)->value, bytes)) < 0)
        return -1;
    return py_check_plain(st, st->api->GetTensorMutableData(VALUE(object)->value, (void **)data));
}

static int copy_bytes(PyObject *object, const char *from, size_t bytes)
{
    char *to = NULL;
    size_t room = 0;
    if (read_memory(object, &to, &room) < 0) return -1;
    if (room != bytes) {
        PyErr_SetString(PyExc_RuntimeError,
                        "The input size of numpy arrays does not match the size of the OrtValue.");
        return -1;
    }
    if (bytes) memmove(to, from, bytes);
    return 0;
}

static int update_from_array(PyObject *object, PyObject *array)
{
    py_state *st = VALUE(object)->st;
    ONNXTensorElementDataType dtype = DTYPE(UNDEFINED);
    int64_t *dims = NULL;
    size_t rank = 0, bytes;
    struct py_array view;
    PyObject *own = PyObject_GetAttrString(array, "dtype");
    PyObject *kind = own ? PyObject_GetAttrString(own, "kind") : NULL;
    const bool is_text = kind && (PyUnicode_CompareWithASCIIString(kind, "U") == 0 ||
                                  PyUnicode_CompareWithASCIIString(kind, "S") == 0 ||
                                  PyUnicode_CompareWithASCIIString(kind, "O") == 0);
    Py_XDECREF(own);
    Py_XDECREF(kind);
    if (is_text) {
        PyErr_SetString(PyExc_RuntimeError, "Inplace update of OrtValues is currently only "
                                            "supported from non-string numpy arrays");
        return -1;
    }
    int failed = read_shape(object, &dtype, &dims, &rank);
    PyMem_Free(dims);
    PyObject *type = failed ? NULL : py_dtype_of(st, dtype);
    PyObject *cast = type ? PyObject_CallMethod(array, "astype", "Oss", type, "C", "unsafe") : NULL;
    PyErr_Clear();
    failed = py_open_array(st, cast ? cast : array, &view);
    if (!failed) {
        bytes = view.size;
        for (int i = 0; i < view.rank; i++)
            bytes *= (size_t)view.dims[i];
        failed = copy_bytes(object, view.data, bytes);
        Py_DECREF(view.array);
    }
    Py_XDECREF(cast);
    return failed;
}

static PyObject *update_inplace(PyObject *object, PyObject *const *args, Py_ssize_t count,
                                PyObject *keywords)
{
    static const char *const names[] = {"data", NULL};
    py_state *st = VALUE(object)->st;
    PyObject *data = NULL;
    int failed = -1;
    if (py_arguments("OrtValue.update_inplace", names, 1, args, count, keywords, &data) < 0)
        return NULL;
    if (PyObject_TypeCheck(data, st->value)) {
        char *from = NULL;
        size_t bytes = 0;
        failed = read_memory(data, &from, &bytes);
        if (!failed) failed = copy_bytes(object, from, bytes);
    } else if (py_is_array(st, data)) {
        failed = update_from_array(object, data);
    } else {
        PyErr_SetString(PyExc_TypeError, "data must be a numpy.ndarray or an OrtValue.");
    }
    if (failed) return NULL;
    Py_RETURN_NONE;
}

/* ---- DLPack ---- */

static PyObject *dlpack(PyObject *object, PyObject *const *args, Py_ssize_t count,
                        PyObject *keywords)
{
    static const char *const names[] = {"stream", "max_version", "dl_device", "copy", NULL};
    PyObject *found[4];
    if (py_arguments("__dlpack__", names, 0, args, count, keywords, found) < 0) return NULL;
    long major = 0;
    if (found[1] && PyTuple_Check(found[1]) && PyTuple_Size(found[1]) > 0)
        major = PyLong_AsLong(PyTuple_GetItem(found[1], 0));
    if (PyErr_Occurred()) return NULL;
    return py_value_to_dlpack(VALUE(object)->st, object, major >= 1);
}

static PyObject *dlpack_device(PyObject *object, PyObject *unused)
{
    (void)object;
    (void)unused;
    return Py_BuildValue("(ii)", 1, 0); /* kDLCPU, device 0 */
}

/* True for an object whose dtype is bool: DLPack did not tell it from uint8 for long. */
static bool says_bool(PyObject *data)
{
    PyObject *dtype = PyObject_GetAttrString(data, "dtype");
    PyObject *name = dtype ? PyObject_GetAttrString(dtype, "name") : NULL;
    PyErr_Clear();
    if (dtype && !name) name = PyObject_Str(dtype);
    bool is = false;
    if (name && PyUnicode_Check(name))
        is = PyUnicode_CompareWithASCIIString(name, "bool") == 0 ||
             PyUnicode_CompareWithASCIIString(name, "torch.bool") == 0;
    Py_XDECREF(name);
    Py_XDECREF(dtype);
    PyErr_Clear();
    return is;
}

static PyObject *from_dlpack(PyObject *type, PyObject *const *args, Py_ssize_t count,
                             PyObject *keywords)
{
    static const char *const names[] = {"data", "is_bool_tensor", NULL};
    py_state *st = py_state_of_type((PyTypeObject *)type);
    PyObject *found[2];
    if (!st || py_arguments("from_dlpack", names, 1, args, count, keywords, found) < 0) return NULL;
    const bool is_bool =
        found[1] && found[1] != Py_None ? PyObject_IsTrue(found[1]) == 1 : says_bool(found[0]);
    PyObject *capsule = NULL;
    if (PyObject_HasAttrString(found[0], "__dlpack__")) {
        PyObject *method = PyObject_GetAttrString(found[0], "__dlpack__");
        PyObject *none = PyTuple_New(0), *version = Py_BuildValue("{s:(ii)}", "max_version", 1, 0);
        capsule = method && none && version ? PyObject_Call(method, none, version) : NULL;
        if (!capsule && PyErr_ExceptionMatches(PyExc_TypeError)) { /* an older protocol */
            PyErr_Clear();
            capsule = PyObject_CallObject(method, none);
        }
        Py_XDECREF(method);
        Py_XDECREF(none);
        Py_XDECREF(version);
    } else {
        Py_INCREF(found[0]);
        capsule = found[0];
    }
    PyObject *value = capsule ? py_value_from_dlpack(st, capsule, is_bool) : NULL;
    Py_XDECREF(capsule);
    return value;
}

static PyObject *itself(PyObject *object, PyObject *unused)
{
    (void)unused;
    Py_INCREF(object);
    return object;
}

static PyObject *no(PyObject *object, PyObject *unused)
{
    (void)object;
    (void)unused;
    Py_RETURN_FALSE;
}

/* Pickles by its array. */
static PyObject *value_reduce(PyObject *object, PyObject *unused)
{
    (void)unused;
    PyObject *make = PyObject_GetAttrString((PyObject *)Py_TYPE(object), "ortvalue_from_numpy");
    PyObject *array = make ? numpy(object, NULL) : NULL;
    PyObject *reduced = array ? Py_BuildValue("(O(O))", make, array) : NULL;
    Py_XDECREF(make);
    Py_XDECREF(array);
    return reduced;
}

static PyMethodDef value_methods[] = {
    PY_MAKE("ortvalue_from_numpy", from_numpy,
            "($type, numpy_obj, /, device_type='cpu', device_id=0, vendor_id=-1)",
            "-> OrtValue\n\nA tensor over a packed array's memory (others are copied). "
            "RuntimeError for text and for devices that are not there."),
    PY_MAKE("ortvalue_from_numpy_with_onnx_type", from_numpy_as, "($type, data, onnx_element_type)",
            "-> OrtValue\n\nThe array's bytes as elements of another type of the same size."),
    PY_MAKE("ortvalue_from_shape_and_type", from_shape,
            "($type, shape, element_type, device_type='cpu', device_id=0, vendor_id=-1, "
            "memory_info=None)",
            "-> OrtValue\n\nA tensor with memory of its own. element_type: a NumPy type or a "
            "number of onnx.TensorProto.DataType."),
    PY_MAKE("ortvalue_from_shape_and_onnx_type", from_shape,
            "($type, shape, element_type, device=None)", "-> OrtValue"),
    {"ort_value_from_sparse_tensor", from_sparse, METH_O | METH_CLASS,
     PY_DOC("ort_value_from_sparse_tensor", "($type, sparse_tensor, /)", "-> OrtValue")},
    PY_MAKE("from_dlpack", from_dlpack, "($type, data, is_bool_tensor=None)",
            "-> OrtValue\n\nA tensor over the memory of any object with __dlpack__ (or a capsule "
            "of it) on the CPU. RuntimeError when it is not packed."),
    PY_ASK("shape", shape, "-> list[int]"),
    PY_ASK("data_type", data_type, "-> str\n\nAs in 'tensor(float)'."),
    PY_ASK("element_type", element_type, "-> int\n\nThe number of onnx.TensorProto.DataType."),
    PY_ASK("tensor_size_in_bytes", size_in_bytes, "-> int"),
    PY_ASK("data_ptr", data_ptr, "-> int\n\nAddress of the first element."),
    PY_ASK("device_name", device_name, "-> str\n\n'cpu'."),
    PY_ASK("has_value", has_value, "-> bool\n\nFalse for an empty optional."),
    PY_ASK("is_tensor", is_tensor, "-> bool"),
    PY_ASK("is_sparse_tensor", is_sparse_tensor, "-> bool"),
    PY_ASK("is_tensor_sequence", is_tensor_sequence, "-> bool"),
    PY_ASK("numpy", numpy,
           "-> numpy.ndarray\n\nThe tensor as an array over the same memory (text: a copy). "
           "RuntimeError for what is no tensor."),
    {"__array__", PY_FAST(as_array), NULL},
    PY_ASK("as_sparse_tensor", as_sparse_tensor, "-> SparseTensor"),
    PY_NAMED("update_inplace", update_inplace, "($self, data)",
             "Copies an array or OrtValue of the same size into the tensor's memory; numbers of "
             "another type are converted. RuntimeError for text."),
    PY_NAMED("__dlpack__", dlpack,
             "($self, *, stream=None, max_version=None, dl_device=None, copy=None)",
             "A capsule over the tensor's memory."),
    {"__dlpack_device__", dlpack_device, METH_NOARGS, NULL},
    PY_NAMED("to_dlpack", dlpack,
             "($self, *, stream=None, max_version=None, dl_device=None, copy=None)",
             "The capsule of __dlpack__."),
    {"_get_c_value", itself, METH_NOARGS, NULL},
    {"_is_webgpu_buffer", no, METH_NOARGS, NULL},
    {"__reduce__", value_reduce, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyObject *get_self(PyObject *object, void *unused)
{
    (void)unused;
    return itself(object, NULL);
}

static PyGetSetDef value_getset[] = {
    {"_ortvalue", get_self, NULL, NULL, NULL},
    {0},
};

static PyType_Slot value_slots[] = {
    {Py_tp_doc, "A tensor, sequence, map or sparse tensor. Made by its class methods and by runs."},
    {Py_tp_dealloc, value_dealloc},
    {Py_tp_getset, value_getset},
    {Py_tp_methods, value_methods},
    {0, NULL},
};

int py_add_values(py_state *st)
{
    PyType_Spec value = {.basicsize = sizeof(py_value), .slots = value_slots};
    return py_add_type(st, &st->value, &value);
}
