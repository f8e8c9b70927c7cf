/* SPDX-License-Identifier: Apache-2.0
 * OrtValueVector: a list of OrtValues. */
#include "py_state.h"

struct vector {
    PyObject_HEAD py_state *st;
    PyObject *list;
};

static PyObject *vector_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    (void)args;
    (void)keywords;
    struct vector *self = (struct vector *)py_new(type);
    if (self && !(self->list = PyList_New(0))) Py_CLEAR(self);
    return (PyObject *)self;
}

static void vector_dealloc(PyObject *object)
{
    Py_CLEAR(((struct vector *)object)->list);
    py_delete(object);
}

static PyObject *vector_push(PyObject *object, PyObject *value)
{
    struct vector *self = (struct vector *)object;
    if (!py_unwrap_value(self->st, value) || PyList_Append(self->list, value) < 0) return NULL;
    Py_RETURN_NONE;
}

/* (tensors, addresses, element types, shapes, devices): values over the memory of the tensors. */
static PyObject *vector_push_batch(PyObject *object, PyObject *args)
{
    struct vector *self = (struct vector *)object;
    PyObject *columns[5], *row[5];
    if (!PyArg_ParseTuple(args, "OOOOO", &columns[0], &columns[1], &columns[2], &columns[3],
                          &columns[4]))
        return NULL;
    const Py_ssize_t count = PySequence_Size(columns[0]);
    for (Py_ssize_t i = 0; i < count; i++) {
        for (int k = 0; k < 5; k++)
            row[k] = PySequence_GetItem(columns[k], i);
        OrtValue *value = NULL;
        if (!PyErr_Occurred() && py_want_cpu(row[4]) == 0)
            value = py_value_at(self->st, row[2], row[3], row[1]);
        Py_XINCREF(row[0]);
        PyObject *wrapped = value ? py_wrap_value(self->st, value, row[0]) : NULL;
        const int failed = wrapped ? PyList_Append(self->list, wrapped) : -1;
        if (!value) Py_XDECREF(row[0]);
        Py_XDECREF(wrapped);
        for (int k = 0; k < 5; k++)
            Py_XDECREF(row[k]);
        if (failed) return NULL;
    }
    if (PyErr_Occurred()) return NULL;
    Py_RETURN_NONE;
}

static PyObject *vector_accept(PyObject *object, PyObject *args)
{
    (void)object;
    (void)args;
    Py_RETURN_NONE;
}

static PyObject *vector_indices(PyObject *object, PyObject *unused)
{
    struct vector *self = (struct vector *)object;
    (void)unused;
    PyObject *found = PyList_New(0);
    for (Py_ssize_t i = 0; found && i < PyList_Size(self->list); i++) {
        PyObject *number = PyObject_CallMethod(PyList_GetItem(self->list, i), "element_type", NULL);
        PyObject *index = PyLong_FromSsize_t(i);
        if (!number || !index ||
            (PyLong_AsLong(number) == ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL &&
             PyList_Append(found, index) < 0))
            Py_CLEAR(found);
        Py_XDECREF(number);
        Py_XDECREF(index);
    }
    return found;
}

static PyObject *vector_call_at(PyObject *object, PyObject *index, const char *method)
{
    PyObject *value = PyObject_GetItem(((struct vector *)object)->list, index);
    PyObject *result = value ? PyObject_CallMethod(value, method, NULL) : NULL;
    Py_XDECREF(value);
    return result;
}

static PyObject *vector_dlpack_at(PyObject *object, PyObject *index)
{
    return vector_call_at(object, index, "__dlpack__");
}

static PyObject *vector_element_type_at(PyObject *object, PyObject *index)
{
    return vector_call_at(object, index, "element_type");
}

/* The capsules, or what `to_tensor` makes of each. */
static PyObject *vector_to_dlpacks(PyObject *object, PyObject *to_tensor)
{
    PyObject *values = ((struct vector *)object)->list, *list = PyList_New(0);
    for (Py_ssize_t i = 0; list && i < PyList_Size(values); i++) {
        PyObject *item = PyObject_CallMethod(PyList_GetItem(values, i), "__dlpack__", NULL);
        if (item && to_tensor != Py_None) {
            PyObject *made = PyObject_CallFunctionObjArgs(to_tensor, item, NULL);
            Py_DECREF(item);
            item = made;
        }
        if (!item || PyList_Append(list, item) < 0) Py_CLEAR(list);
        Py_XDECREF(item);
    }
    return list;
}

static Py_ssize_t vector_length(PyObject *object)
{
    return PyList_Size(((struct vector *)object)->list);
}

static PyObject *vector_item(PyObject *object, PyObject *index)
{
    return PyObject_GetItem(((struct vector *)object)->list, index);
}

static PyObject *vector_at(PyObject *object, Py_ssize_t index)
{
    return PySequence_GetItem(((struct vector *)object)->list, index);
}

static PyObject *vector_iter(PyObject *object)
{
    return PyObject_GetIter(((struct vector *)object)->list);
}

static PyMethodDef vector_methods[] = {
    {"push_back", vector_push, METH_O,
     PY_DOC("push_back", "($self, value, /)", "Adds a value at the end.")},
    {"push_back_batch", vector_push_batch, METH_VARARGS,
     PY_DOC("push_back_batch", "($self, tensors, data_ptrs, element_types, shapes, devices, /)",
            "Adds a value over the memory of each tensor, which the value keeps.")},
    {"to_dlpacks", vector_to_dlpacks, METH_O,
     PY_DOC("to_dlpacks", "($self, to_tensor, /)",
            "-> list\n\nWhat to_tensor makes of each value's DLPack capsule; None: the capsules.")},
    {"reserve", vector_accept, METH_VARARGS,
     PY_DOC("reserve", "($self, count, /)", "Does nothing.")},
    PY_ASK("shrink_to_fit", vector_accept, "Does nothing."),
    PY_ASK("bool_tensor_indices", vector_indices, "-> list[int]"),
    {"dlpack_at", vector_dlpack_at, METH_O,
     PY_DOC("dlpack_at", "($self, index, /)", "The capsule of one of them.")},
    {"element_type_at", vector_element_type_at, METH_O,
     PY_DOC("element_type_at", "($self, index, /)", "-> int")},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot vector_slots[] = {
    {Py_tp_doc, "A list of OrtValues."}, {Py_tp_new, vector_new},
    {Py_tp_dealloc, vector_dealloc},     {Py_tp_iter, vector_iter},
    {Py_mp_length, vector_length},       {Py_mp_subscript, vector_item},
    {Py_sq_length, vector_length},       {Py_sq_item, vector_at},
    {Py_tp_methods, vector_methods},     {0, NULL},
};

int py_add_vectors(py_state *st)
{
    PyType_Spec vector = {.basicsize = sizeof(struct vector), .slots = vector_slots};
    return py_add_type(st, &st->vector, &vector);
}
