/* SPDX-License-Identifier: Apache-2.0
 * SparseTensor: values and indices of a matrix that is mostly zero, in the coordinate and the
 * compressed row format. */
#include "py_state.h"

#include <string.h>

#define DTYPE(name) ONNX_TENSOR_ELEMENT_DATA_TYPE_##name

struct sparse {
    PyObject_HEAD py_state *st;
    PyObject *value; /* an OrtValue object */
    PyObject *parts; /* what it was made from, or the arrays of the library */
};

static OrtValue *inner(PyObject *object)
{
    return ((py_value *)((struct sparse *)object)->value)->value;
}

static void sparse_dealloc(PyObject *object)
{
    struct sparse *self = (struct sparse *)object;
    Py_CLEAR(self->value);
    Py_CLEAR(self->parts);
    py_delete(object);
}

/* hold NULL: takes the value; otherwise it belongs to the OrtValue `hold`. */
PyObject *py_sparse_of_value(py_state *st, OrtValue *value, PyObject *hold)
{
    PyObject *wrapped = hold;
    if (hold)
        Py_INCREF(hold);
    else
        wrapped = py_wrap_value(st, value, NULL);
    struct sparse *self = wrapped ? (struct sparse *)py_new(st->sparse) : NULL;
    if (!self) {
        Py_XDECREF(wrapped);
        return NULL;
    }
    self->value = wrapped;
    return (PyObject *)self;
}

/* ---- making ---- */

/* A packed int64 array of `object`. */
static int open_indices(py_state *st, PyObject *object, struct py_array *view)
{
    PyObject *array = py_as_array(st, object, st->numpy.dtypes[DTYPE(INT64)]);
    const int failed = array ? py_open_array(st, array, view) : -1;
    Py_XDECREF(array);
    return failed;
}

static size_t count_of(const struct py_array *view)
{
    size_t count = 1;
    for (int i = 0; i < view->rank; i++)
        count *= (size_t)view->dims[i];
    return count;
}

struct parts {
    struct py_array shape, values, first, second;
};

static void close_parts(struct parts *parts)
{
    Py_XDECREF(parts->shape.array);
    Py_XDECREF(parts->values.array);
    Py_XDECREF(parts->first.array);
    Py_XDECREF(parts->second.array);
}

static int open_parts(py_state *st, PyObject *const *found, bool rows, struct parts *parts)
{
    memset(parts, 0, sizeof *parts);
    if (open_indices(st, found[0], &parts->shape) < 0) return -1;
    if (!py_is_array(st, found[1])) {
        PyErr_SetString(PyExc_RuntimeError, "values must be a numpy array");
        return -1;
    }
    if (py_open_array(st, found[1], &parts->values) < 0) return -1;
    if (parts->values.dtype == DTYPE(UNDEFINED)) {
        PyErr_SetString(PyExc_RuntimeError, "values must be an array of numbers");
        return -1;
    }
    if (open_indices(st, found[2], &parts->first) < 0) return -1;
    return rows ? open_indices(st, found[3], &parts->second) : 0;
}

static OrtStatus *use_indices(py_state *st, OrtValue *value, bool rows, const struct parts *parts)
{
    if (rows)
        return st->api->UseCsrIndices(value, parts->first.data, count_of(&parts->first),
                                      parts->second.data, count_of(&parts->second));
    return st->api->UseCooIndices(value, parts->first.data, count_of(&parts->first));
}

static PyObject *make_sparse(py_state *st, PyObject *const *found, bool rows)
{
    struct parts parts;
    OrtValue *value = NULL;
    PyObject *object = NULL;
    if (open_parts(st, found, rows, &parts) == 0) {
        const int64_t count = (int64_t)count_of(&parts.values);
        int failed =
            py_check(st, st->api->CreateSparseTensorWithValuesAsOrtValue(
                             st->cpu_info, parts.values.data, parts.shape.data,
                             count_of(&parts.shape), &count, 1, parts.values.dtype, &value));
        if (!failed) failed = py_check_plain(st, use_indices(st, value, rows, &parts));
        if (failed && value) st->api->ReleaseValue(value);
        PyObject *hold = failed ? NULL
                                : Py_BuildValue("(OOO)", parts.values.array, parts.first.array,
                                                rows ? parts.second.array : Py_None);
        PyObject *wrapped = hold ? py_wrap_value(st, value, hold) : NULL;
        if (wrapped) object = py_sparse_of_value(st, NULL, wrapped);
        Py_XDECREF(wrapped);
    }
    close_parts(&parts);
    return object;
}

static PyObject *from_coo(PyObject *type, PyObject *const *args, Py_ssize_t count,
                          PyObject *keywords)
{
    static const char *const names[] = {"dense_shape", "values", "coo_indices", "ort_device", NULL};
    py_state *st = py_state_of_type((PyTypeObject *)type);
    PyObject *found[4];
    if (!st || py_arguments("sparse_coo_from_numpy", names, 3, args, count, keywords, found) < 0)
        return NULL;
    return make_sparse(st, found, false);
}

static PyObject *from_csr(PyObject *type, PyObject *const *args, Py_ssize_t count,
                          PyObject *keywords)
{
    static const char *const names[] = {"dense_shape",   "values",     "inner_indices",
                                        "outer_indices", "ort_device", NULL};
    py_state *st = py_state_of_type((PyTypeObject *)type);
    PyObject *found[5];
    if (!st || py_arguments("sparse_csr_from_numpy", names, 4, args, count, keywords, found) < 0)
        return NULL;
    return make_sparse(st, found, true);
}

/* ---- looking in ---- */

/* An array over memory of the tensor, which `object` keeps. */
static PyObject *array_over(PyObject *object, ONNXTensorElementDataType dtype, size_t rank,
                            const int64_t *dims, const void *data)
{
    py_state *st = ((struct sparse *)object)->st;
    Py_INCREF(object);
    return py_make_array(st, dtype, rank, dims, (void *)(uintptr_t)data, object);
}

/* Element type and lengths of the values (or of the whole, for `dense`). */
static int read_info(PyObject *object, bool dense, ONNXTensorElementDataType *dtype, int64_t *dims,
                     size_t *rank)
{
    py_state *st = ((struct sparse *)object)->st;
    OrtTensorTypeAndShapeInfo *info = NULL;
    OrtStatus *status = dense ? st->api->GetTensorTypeAndShape(inner(object), &info)
                              : st->api->GetSparseTensorValuesTypeAndShape(inner(object), &info);
    if (py_check(st, status) < 0) return -1;
    int failed = py_check(st, st->api->GetTensorElementType(info, dtype));
    if (!failed) failed = py_check(st, st->api->GetDimensionsCount(info, rank));
    if (!failed && *rank > 8) {
        PyErr_SetString(PyExc_RuntimeError, "a sparse tensor of more than 8 dimensions");
        failed = -1;
    }
    if (!failed) failed = py_check(st, st->api->GetDimensions(info, dims, *rank));
    st->api->ReleaseTensorTypeAndShapeInfo(info);
    return failed;
}

static PyObject *values(PyObject *object, PyObject *unused)
{
    py_state *st = ((struct sparse *)object)->st;
    ONNXTensorElementDataType dtype = DTYPE(UNDEFINED);
    int64_t dims[8];
    size_t rank = 0;
    const void *data = NULL;
    (void)unused;
    if (read_info(object, false, &dtype, dims, &rank) < 0 ||
        py_check(st, st->api->GetSparseTensorValues(inner(object), &data)) < 0)
        return NULL;
    return array_over(object, dtype, rank, dims, data);
}

static PyObject *dense_shape(PyObject *object, PyObject *unused)
{
    ONNXTensorElementDataType dtype = DTYPE(UNDEFINED);
    int64_t dims[8];
    size_t rank = 0;
    (void)unused;
    return read_info(object, true, &dtype, dims, &rank) < 0 ? NULL : py_list_of_dims(dims, rank);
}

static int read_format(PyObject *object, OrtSparseFormat *format)
{
    py_state *st = ((struct sparse *)object)->st;
    return py_check(st, st->api->GetSparseTensorFormat(inner(object), format));
}

static PyObject *format(PyObject *object, PyObject *unused)
{
    OrtSparseFormat found = ORT_SPARSE_UNDEFINED;
    (void)unused;
    return read_format(object, &found) < 0
               ? NULL
               : py_enum(((struct sparse *)object)->st, "OrtSparseFormat", found);
}

static PyObject *indices_of(PyObject *object, OrtSparseIndicesFormat part)
{
    py_state *st = ((struct sparse *)object)->st;
    OrtTensorTypeAndShapeInfo *info = NULL;
    const void *data = NULL;
    size_t count = 0, rank = 0;
    int64_t dims[8];
    if (py_check(st, st->api->GetSparseTensorIndicesTypeShape(inner(object), part, &info)) < 0)
        return NULL;
    int failed = py_check(st, st->api->GetDimensionsCount(info, &rank));
    if (!failed) failed = rank > 8 ? -1 : py_check(st, st->api->GetDimensions(info, dims, rank));
    st->api->ReleaseTensorTypeAndShapeInfo(info);
    if (!failed)
        failed = py_check(st, st->api->GetSparseTensorIndices(inner(object), part, &count, &data));
    return failed ? NULL : array_over(object, DTYPE(INT64), rank, dims, data);
}

/* A view with a dict of arrays: what as_coo_view() and the like give has methods of these names. */
static PyObject *view_of(PyObject *object, OrtSparseFormat wanted, const char *name)
{
    py_state *st = ((struct sparse *)object)->st;
    OrtSparseFormat found = ORT_SPARSE_UNDEFINED;
    if (read_format(object, &found) < 0) return NULL;
    if (found != wanted)
        return PyErr_Format(PyExc_RuntimeError, "This sparse tensor does not contain %s format",
                            name);
    if (wanted == ORT_SPARSE_CSRC) {
        PyObject *first = indices_of(object, ORT_SPARSE_CSR_INNER_INDICES);
        PyObject *second = first ? indices_of(object, ORT_SPARSE_CSR_OUTER_INDICES) : NULL;
        PyObject *view =
            second ? PyObject_CallMethod(st->helpers, "SparseCsrView", "OO", first, second) : NULL;
        Py_XDECREF(first);
        Py_XDECREF(second);
        return view;
    }
    PyObject *indices =
        indices_of(object, wanted == ORT_SPARSE_COO ? ORT_SPARSE_COO_INDICES
                                                    : ORT_SPARSE_BLOCK_SPARSE_INDICES);
    PyObject *view =
        indices ? PyObject_CallMethod(st->helpers, "SparseCooView", "O", indices) : NULL;
    Py_XDECREF(indices);
    return view;
}

static PyObject *as_coo(PyObject *object, PyObject *unused)
{
    (void)unused;
    return view_of(object, ORT_SPARSE_COO, "COO");
}

static PyObject *as_csr(PyObject *object, PyObject *unused)
{
    (void)unused;
    return view_of(object, ORT_SPARSE_CSRC, "CSR(C)");
}

static PyObject *as_blocks(PyObject *object, PyObject *unused)
{
    (void)unused;
    return view_of(object, ORT_SPARSE_BLOCK_SPARSE, "BlockSparse");
}

static PyObject *data_type(PyObject *object, PyObject *unused)
{
    (void)unused;
    return PyObject_CallMethod(((struct sparse *)object)->value, "data_type", NULL);
}

static PyObject *device_name(PyObject *object, PyObject *unused)
{
    (void)object;
    (void)unused;
    return PyUnicode_FromString("cpu");
}

static PyObject *to_cuda(PyObject *object, PyObject *device)
{
    (void)object;
    (void)device;
    PyErr_SetString(PyExc_RuntimeError, "there is no CUDA here");
    return NULL;
}

static PyObject *itself(PyObject *object, PyObject *unused)
{
    (void)unused;
    Py_INCREF(object);
    return object;
}

static PyObject *get_value(PyObject *object, void *unused)
{
    (void)unused;
    PyObject *value = ((struct sparse *)object)->value;
    Py_INCREF(value);
    return value;
}

static PyMethodDef sparse_methods[] = {
    PY_MAKE("sparse_coo_from_numpy", from_coo,
            "($type, dense_shape, values, coo_indices, ort_device)",
            "-> SparseTensor\n\nvalues: [n]; coo_indices: [n] of the flattened matrix, or [n, 2]. "
            "Memory is shared."),
    PY_MAKE("sparse_csr_from_numpy", from_csr,
            "($type, dense_shape, values, inner_indices, outer_indices, ort_device)",
            "-> SparseTensor\n\nvalues, inner_indices: [n]; outer_indices: [rows + 1]. Memory is "
            "shared."),
    PY_ASK("values", values, "-> numpy.ndarray\n\n[n], over the tensor's memory."),
    PY_ASK("dense_shape", dense_shape, "-> list[int]"),
    PY_ASK("format", format, "-> OrtSparseFormat"),
    PY_ASK("data_type", data_type, "-> str\n\nAs in 'sparse_tensor(float)'."),
    PY_ASK("device_name", device_name, "-> str\n\n'cpu'."),
    PY_ASK("as_coo_view", as_coo,
           "Its indices() are [n] or [n, 2]. RuntimeError for another format."),
    PY_ASK("as_csrc_view", as_csr,
           "Its inner() are [n], its outer() [rows + 1]. RuntimeError for another format."),
    PY_ASK("as_blocksparse_view", as_blocks,
           "Its indices() are those of the blocks. RuntimeError for another format."),
    PY_ASK("get_coo_data", as_coo, "The same as as_coo_view()."),
    PY_ASK("get_csrc_data", as_csr, "The same as as_csrc_view()."),
    PY_ASK("get_blocksparse_data", as_blocks, "The same as as_blocksparse_view()."),
    {"to_cuda", to_cuda, METH_O,
     PY_DOC("to_cuda", "($self, ort_device, /)", "RuntimeError: there is no CUDA.")},
    {"_get_c_tensor", itself, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef sparse_getset[] = {
    {"_value", get_value, NULL, NULL, NULL},
    {0},
};

static PyType_Slot sparse_slots[] = {
    {Py_tp_doc, "A sparse tensor. Made by its class methods and by runs."},
    {Py_tp_dealloc, sparse_dealloc},
    {Py_tp_methods, sparse_methods},
    {Py_tp_getset, sparse_getset},
    {0, NULL},
};

int py_add_sparse(py_state *st)
{
    PyType_Spec spec = {.basicsize = sizeof(struct sparse), .slots = sparse_slots};
    return py_add_type(st, &st->sparse, &spec);
}
