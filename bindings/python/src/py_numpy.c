/* SPDX-License-Identifier: Apache-2.0
 * NumPy arrays without NumPy's headers. The table of functions that NumPy offers to compiled code
 * (_ARRAY_API) keeps its places, and the head of an array its members, within an ABI version: when
 * that is one we know, arrays are read and made directly. With another NumPy the same goes through
 * __array_struct__ and numpy.empty, with a copy of results. */
#include "py_state.h"

#include <string.h>

enum { AT_VERSION = 0, AT_CREATE = 94, AT_SET_BASE = 282 };
enum { NUMPY_1 = 0x01000009, NUMPY_2 = 0x02000000 };
enum { PACKED = 0x1, ALIGNED = 0x100, NATIVE = 0x200, WRITEABLE = 0x400 };

/* An array of NumPy 1 and 2 begins with this. */
struct array_head {
    PyObject_HEAD void *data;
    int rank;
    intptr_t *dims, *strides;
    PyObject *base, *dtype;
    int flags;
};

/* What the capsule __array_struct__ holds. */
struct array_struct {
    int two, rank;
    char kind;
    int size, flags;
    intptr_t *dims, *strides;
    void *data;
    PyObject *dtype;
};

/* X(element type, name of the dtype, kind, bytes, name of the type in messages) */
#define NUMPY_DTYPES(X)                                                                            \
    X(FLOAT, "float32", 'f', 4)                                                                    \
    X(DOUBLE, "float64", 'f', 8)                                                                   \
    X(INT64, "int64", 'i', 8)                                                                      \
    X(INT32, "int32", 'i', 4)                                                                      \
    X(UINT8, "uint8", 'u', 1)                                                                      \
    X(INT8, "int8", 'i', 1)                                                                        \
    X(UINT16, "uint16", 'u', 2)                                                                    \
    X(INT16, "int16", 'i', 2)                                                                      \
    X(BOOL, "bool", 'b', 1)                                                                        \
    X(FLOAT16, "float16", 'f', 2)                                                                  \
    X(UINT32, "uint32", 'u', 4)                                                                    \
    X(UINT64, "uint64", 'u', 8)                                                                    \
    X(COMPLEX64, "complex64", 'c', 8)                                                              \
    X(COMPLEX128, "complex128", 'c', 16)
/* X(element type, name in ml_dtypes) */
#define NARROW_DTYPES(X)                                                                           \
    X(BFLOAT16, "bfloat16")                                                                        \
    X(FLOAT8E4M3FN, "float8_e4m3fn")                                                               \
    X(FLOAT8E4M3FNUZ, "float8_e4m3fnuz")                                                           \
    X(FLOAT8E5M2, "float8_e5m2")                                                                   \
    X(FLOAT8E5M2FNUZ, "float8_e5m2fnuz")                                                           \
    X(UINT4, "uint4")                                                                              \
    X(INT4, "int4")                                                                                \
    X(FLOAT4E2M1, "float4_e2m1fn")                                                                 \
    X(FLOAT8E8M0, "float8_e8m0fnu")                                                                \
    X(UINT2, "uint2")                                                                              \
    X(INT2, "int2")
#define DTYPE(name) ONNX_TENSOR_ELEMENT_DATA_TYPE_##name

static const struct known_dtype {
    ONNXTensorElementDataType dtype;
    const char *name;
    int kind;
    size_t size;
} known_dtypes[] = {
#define KNOWN_DTYPE(dtype, name, kind, size) {DTYPE(dtype), name, kind, size},
    NUMPY_DTYPES(KNOWN_DTYPE)
#undef KNOWN_DTYPE
};
enum { COUNT_KNOWN = sizeof known_dtypes / sizeof known_dtypes[0] };

static const struct narrow_dtype {
    ONNXTensorElementDataType dtype;
    const char *name;
} narrow_dtypes[] = {
#define NARROW_DTYPE(dtype, name) {DTYPE(dtype), name},
    NARROW_DTYPES(NARROW_DTYPE)
#undef NARROW_DTYPE
};
enum { COUNT_NARROW = sizeof narrow_dtypes / sizeof narrow_dtypes[0] };

/* Leaves numpy.create NULL when the table is not there or is one we do not know. */
static void load_table(py_state *st)
{
    PyObject *module = PyImport_ImportModule("numpy._core._multiarray_umath");
    if (!module) {
        PyErr_Clear();
        module = PyImport_ImportModule("numpy.core._multiarray_umath");
    }
    PyObject *capsule = module ? PyObject_GetAttrString(module, "_ARRAY_API") : NULL;
    void **table = capsule ? PyCapsule_GetPointer(capsule, NULL) : NULL;
    PyErr_Clear();
    unsigned (*version)(void) = NULL;
    if (table) memcpy(&version, &table[AT_VERSION], sizeof version);
    if (version && (version() == NUMPY_1 || version() == NUMPY_2)) {
        memcpy(&st->numpy.create, &table[AT_CREATE], sizeof st->numpy.create);
        memcpy(&st->numpy.set_base, &table[AT_SET_BASE], sizeof st->numpy.set_base);
    }
    Py_XDECREF(capsule);
    Py_XDECREF(module);
}

int py_load_numpy(py_state *st)
{
    struct py_numpy *numpy = &st->numpy;
    if (!(numpy->module = PyImport_ImportModule("numpy"))) return -1;
    if (!(numpy->dtype = PyObject_GetAttrString(numpy->module, "dtype"))) return -1;
    PyObject *array = PyObject_GetAttrString(numpy->module, "ndarray");
    if (!array) return -1;
    numpy->array = (PyTypeObject *)array;
    for (int i = 0; i < COUNT_KNOWN; i++) {
        PyObject *dtype = PyObject_CallFunction(numpy->dtype, "s", known_dtypes[i].name);
        if (!dtype) return -1;
        numpy->dtypes[known_dtypes[i].dtype] = dtype;
    }
    PyObject *object = PyObject_CallFunction(numpy->dtype, "s", "object");
    if (!object) return -1;
    numpy->dtypes[DTYPE(STRING)] = object;
    load_table(st);
    return 0;
}

/* Looks for the dtypes of ml_dtypes, once; without it they stay NULL. */
static void load_narrow(py_state *st)
{
    if (st->numpy.narrow_known) return;
    st->numpy.narrow_known = true;
    PyObject *module = PyImport_ImportModule("ml_dtypes");
    for (int i = 0; module && i < COUNT_NARROW; i++) {
        PyObject *type = PyObject_GetAttrString(module, narrow_dtypes[i].name);
        PyObject *dtype = type ? PyObject_CallFunctionObjArgs(st->numpy.dtype, type, NULL) : NULL;
        PyErr_Clear();
        st->numpy.dtypes[narrow_dtypes[i].dtype] = dtype;
        Py_XDECREF(type);
    }
    PyErr_Clear();
    Py_XDECREF(module);
}

bool py_is_array(py_state *st, PyObject *object)
{
    return PyObject_TypeCheck(object, st->numpy.array);
}

PyObject *py_dtype_of(py_state *st, ONNXTensorElementDataType dtype)
{
    const bool known = dtype > 0 && (int)dtype < COUNT_DTYPES;
    if (known && !st->numpy.dtypes[dtype]) load_narrow(st);
    if (known && st->numpy.dtypes[dtype]) return st->numpy.dtypes[dtype];
    const char *name = "";
    for (int i = 0; i < COUNT_NARROW; i++)
        if (narrow_dtypes[i].dtype == dtype) name = narrow_dtypes[i].name;
    PyErr_Format(PyExc_RuntimeError, "No corresponding Numpy type for Tensor Type. %s%s", name,
                 *name ? " (install ml_dtypes)" : "");
    return NULL;
}

/* The character that attribute `name` of a dtype is; 0 with an exception. */
static int char_of(PyObject *dtype, const char *name)
{
    PyObject *text = PyObject_GetAttrString(dtype, name);
    const Py_UCS4 found = text ? PyUnicode_ReadChar(text, 0) : 0;
    Py_XDECREF(text);
    return found == (Py_UCS4)-1 ? 0 : (int)found;
}

/* Kind, size and element type of a dtype that is none of the objects we hold. */
static int read_dtype(py_state *st, PyObject *dtype, struct py_array *view)
{
    view->kind = char_of(dtype, "kind");
    PyObject *size = PyObject_GetAttrString(dtype, "itemsize");
    view->size = size ? PyLong_AsSize_t(size) : 0;
    Py_XDECREF(size);
    if (PyErr_Occurred()) return -1;
    view->dtype = DTYPE(UNDEFINED);
    load_narrow(st);
    for (int i = 0; i < COUNT_NARROW; i++)
        if (st->numpy.dtypes[narrow_dtypes[i].dtype] == dtype) {
            view->dtype = narrow_dtypes[i].dtype;
            return 0;
        }
    for (int i = 0; i < COUNT_KNOWN; i++)
        if (known_dtypes[i].kind == view->kind && known_dtypes[i].size == view->size)
            view->dtype = known_dtypes[i].dtype;
    return 0;
}

static int set_dtype(py_state *st, PyObject *dtype, struct py_array *view)
{
    for (int i = 0; i < COUNT_KNOWN; i++) {
        if (st->numpy.dtypes[known_dtypes[i].dtype] != dtype) continue;
        view->dtype = known_dtypes[i].dtype;
        view->kind = known_dtypes[i].kind;
        view->size = known_dtypes[i].size;
        return 0;
    }
    return read_dtype(st, dtype, view);
}

/* 1: dtype has the other byte order; -1: exception. */
static int is_swapped(PyObject *dtype)
{
    PyObject *native = PyObject_GetAttrString(dtype, "isnative");
    const int swapped = native ? !PyObject_IsTrue(native) : -1;
    Py_XDECREF(native);
    return swapped;
}

/* `array` in the byte order of this machine, packed: a new array. */
static PyObject *pack_array(PyObject *array, bool swapped)
{
    if (!swapped) return PyObject_CallMethod(array, "copy", NULL);
    PyObject *dtype = PyObject_GetAttrString(array, "dtype");
    PyObject *native = dtype ? PyObject_CallMethod(dtype, "newbyteorder", "s", "=") : NULL;
    PyObject *packed = native ? PyObject_CallMethod(array, "astype", "Os", native, "C") : NULL;
    Py_XDECREF(native);
    Py_XDECREF(dtype);
    return packed;
}

/* Reads the head of an array, with this NumPy's layout or, when that is not known, what its capsule
 * says; *keep holds what dims points to. */
static int read_head(py_state *st, PyObject *array, struct py_array *view, int *flags,
                     PyObject **dtype, PyObject **keep)
{
    *keep = NULL;
    if (st->numpy.create) {
        const struct array_head *head = (const struct array_head *)array;
        view->data = head->data;
        view->rank = head->rank;
        view->dims = head->dims;
        *flags = head->flags;
        *dtype = head->dtype;
        Py_INCREF(*dtype);
        return 0;
    }
    *dtype = PyObject_GetAttrString(array, "dtype");
    *keep = PyObject_GetAttrString(array, "__array_struct__");
    const struct array_struct *head = *keep ? PyCapsule_GetPointer(*keep, NULL) : NULL;
    if (!*dtype || !head) {
        Py_CLEAR(*dtype);
        Py_CLEAR(*keep);
        return -1;
    }
    view->data = head->data;
    view->rank = head->rank;
    view->dims = head->dims;
    *flags = head->flags;
    return 0;
}

/* With the capsule's dims the view must hold the capsule as well: a pair of both. */
static int hold_array(struct py_array *view, PyObject *array, PyObject *keep)
{
    if (keep) {
        view->array = PyTuple_Pack(2, array, keep);
        Py_DECREF(keep);
        return view->array ? 0 : -1;
    }
    Py_INCREF(array);
    view->array = array;
    return 0;
}

int py_open_array(py_state *st, PyObject *object, struct py_array *view)
{
    int flags = 0;
    PyObject *dtype = NULL, *keep = NULL;
    if (read_head(st, object, view, &flags, &dtype, &keep) < 0) return -1;
    int failed = set_dtype(st, dtype, view);
    int swapped = 0;
    if (!failed && (view->dtype == DTYPE(UNDEFINED) || st->numpy.dtypes[view->dtype] != dtype))
        swapped = is_swapped(dtype);
    Py_DECREF(dtype);
    if (failed || swapped < 0) {
        Py_XDECREF(keep);
        return -1;
    }
    const bool packed = (flags & PACKED) && (flags & ALIGNED);
    if (packed && !swapped) return hold_array(view, object, keep);
    Py_XDECREF(keep);
    PyObject *copy = pack_array(object, swapped);
    if (!copy) return -1;
    failed = py_open_array(st, copy, view);
    Py_DECREF(copy);
    return failed;
}

PyObject *py_as_array(py_state *st, PyObject *object, PyObject *dtype)
{
    return PyObject_CallMethod(st->numpy.module, "asarray", dtype ? "OO" : "O", object, dtype);
}

void *py_array_data(py_state *st, PyObject *array)
{
    struct py_array view;
    int flags = 0;
    PyObject *dtype = NULL, *keep = NULL;
    if (read_head(st, array, &view, &flags, &dtype, &keep) < 0) return NULL;
    Py_DECREF(dtype);
    Py_XDECREF(keep);
    return view.data;
}

static PyObject *make_empty(py_state *st, PyObject *dtype, size_t rank, const int64_t *dims)
{
    PyObject *list = py_list_of_dims(dims, rank);
    if (!list) return NULL;
    PyObject *array = PyObject_CallMethod(st->numpy.module, "empty", "NO", list, dtype);
    return array;
}

/* Copies `data` in; with the table unknown that is how results come. */
static PyObject *make_copy(py_state *st, PyObject *dtype, size_t rank, const int64_t *dims,
                           const void *data)
{
    PyObject *array = make_empty(st, dtype, rank, dims);
    struct py_array view;
    if (!array || !data) return array;
    if (py_open_array(st, array, &view) < 0) {
        Py_DECREF(array);
        return NULL;
    }
    size_t count = view.size;
    for (size_t i = 0; i < rank; i++)
        count *= (size_t)dims[i];
    if (count) memcpy(view.data, data, count);
    Py_DECREF(view.array);
    return array;
}

PyObject *py_make_array(py_state *st, ONNXTensorElementDataType dtype, size_t rank,
                        const int64_t *dims, void *data, PyObject *owner)
{
    PyObject *type = py_dtype_of(st, dtype), *array = NULL;
    if (type && (!st->numpy.create || !owner)) {
        array = make_copy(st, type, rank, dims, data);
    } else if (type) {
        _Static_assert(sizeof(intptr_t) == sizeof(int64_t), "lengths are those of NumPy");
        Py_INCREF(type);
        array = st->numpy.create(st->numpy.array, type, (int)rank, (const intptr_t *)dims, NULL,
                                 data, PACKED | ALIGNED | WRITEABLE, NULL);
        if (!array) goto done;
        /* Takes the owner, also when it fails. */
        if (st->numpy.set_base(array, owner) < 0) Py_CLEAR(array);
        return array;
    }
done:
    Py_XDECREF(owner);
    return array;
}

ONNXTensorElementDataType py_dtype_from(py_state *st, PyObject *object)
{
    struct py_array view = {0};
    PyObject *dtype = PyObject_CallFunctionObjArgs(st->numpy.dtype, object, NULL);
    if (!dtype) {
        PyErr_Clear();
        PyErr_SetString(PyExc_RuntimeError, "Not a valid numpy type");
        return DTYPE(UNDEFINED);
    }
    const int failed = set_dtype(st, dtype, &view);
    Py_DECREF(dtype);
    if (failed) return DTYPE(UNDEFINED);
    if (view.kind == 'O' || view.kind == 'U' || view.kind == 'S') return DTYPE(STRING);
    if (view.dtype == DTYPE(UNDEFINED))
        PyErr_SetString(PyExc_RuntimeError, "Not a valid numpy type");
    return view.dtype;
}
