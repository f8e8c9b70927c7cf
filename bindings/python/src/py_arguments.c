/* SPDX-License-Identifier: Apache-2.0
 * Arguments of functions: names, numbers, shapes, and the TypeErrors that name what was expected.
 */
#include "py_state.h"

#include <stdio.h>
#include <string.h>

/* "f() missing 2 required positional arguments: 'a' and 'b'", as Python says it. */
static int raise_missing(const char *function, const char *const *names, int required,
                         PyObject *const *found)
{
    char list[256] = "";
    int missing = 0, shown = 0;
    for (int i = 0; i < required; i++)
        missing += !found[i];
    for (int i = 0; i < required; i++) {
        if (found[i]) continue;
        const char *joint = shown == 0            ? ""
                            : shown < missing - 1 ? ", "
                            : missing > 2         ? ", and "
                                                  : " and ";
        const size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s'%s'", joint, names[i]);
        shown++;
    }
    PyErr_Format(PyExc_TypeError, "%s() missing %d required positional argument%s: %s", function,
                 missing, missing == 1 ? "" : "s", list);
    return -1;
}

static int place_keyword(const char *function, const char *const *names, int most, PyObject *name,
                         PyObject *value, PyObject **found)
{
    for (int i = 0; i < most; i++) {
        if (PyUnicode_CompareWithASCIIString(name, names[i]) != 0) continue;
        if (found[i]) {
            PyErr_Format(PyExc_TypeError, "%s() got multiple values for argument '%s'", function,
                         names[i]);
            return -1;
        }
        found[i] = value;
        return 0;
    }
    PyErr_Format(PyExc_TypeError, "%s() got an unexpected keyword argument '%U'", function, name);
    return -1;
}

int py_arguments(const char *function, const char *const *names, int required,
                 PyObject *const *args, Py_ssize_t count, PyObject *keywords, PyObject **found)
{
    int most = 0;
    while (names[most])
        most++;
    if (count > most) {
        PyErr_Format(PyExc_TypeError,
                     "%s() takes at most %d positional arguments but %zd were given", function,
                     most, count);
        return -1;
    }
    for (int i = 0; i < most; i++)
        found[i] = i < count ? args[i] : NULL;
    const Py_ssize_t named = keywords ? PyTuple_Size(keywords) : 0;
    for (Py_ssize_t i = 0; i < named; i++)
        if (place_keyword(function, names, most, PyTuple_GetItem(keywords, i), args[count + i],
                          found) < 0)
            return -1;
    for (int i = 0; i < required; i++)
        if (!found[i]) return raise_missing(function, names, required, found);
    return 0;
}

PyObject *py_utf8(PyObject *object, const char *what)
{
    if (PyUnicode_Check(object)) return PyUnicode_AsUTF8String(object);
    PyErr_Format(PyExc_TypeError, "%s must be a str, not %R", what, Py_TYPE(object));
    return NULL;
}

int py_dims(PyObject *sequence, int64_t **dims, Py_ssize_t *rank)
{
    PyObject *items = PySequence_Tuple(sequence);
    if (!items) return -1;
    *rank = PyTuple_Size(items);
    *dims = PyMem_Malloc((size_t)(*rank + 1) * sizeof **dims);
    if (!*dims) PyErr_NoMemory();
    for (Py_ssize_t i = 0; *dims && i < *rank; i++) {
        PyObject *number = PyNumber_Index(PyTuple_GetItem(items, i));
        (*dims)[i] = number ? PyLong_AsLongLong(number) : -1;
        Py_XDECREF(number);
        if (!PyErr_Occurred()) continue;
        PyMem_Free(*dims);
        *dims = NULL;
    }
    Py_DECREF(items);
    return *dims ? 0 : -1;
}

PyObject *py_list_of_dims(const int64_t *dims, size_t rank)
{
    PyObject *list = PyList_New((Py_ssize_t)rank);
    for (size_t i = 0; list && i < rank; i++) {
        PyObject *number = PyLong_FromLongLong(dims[i]);
        if (!number || PyList_SetItem(list, (Py_ssize_t)i, number) < 0) Py_CLEAR(list);
    }
    return list;
}

int py_incompatible(const char *function, const char *signature, PyObject *const *args, int count)
{
    PyObject *shown = PyUnicode_FromString("");
    for (int i = 0; shown && i < count; i++) {
        PyObject *more = PyUnicode_FromFormat("%U%s%R", shown, i ? ", " : "", args[i]);
        Py_DECREF(shown);
        shown = more;
    }
    if (!shown) return -1;
    PyErr_Format(PyExc_TypeError,
                 "%s(): incompatible function arguments. The following argument types are "
                 "supported:\n    1. %s\n\nInvoked with: %U",
                 function, signature, shown);
    Py_DECREF(shown);
    return -1;
}
