/* SPDX-License-Identifier: Apache-2.0
 * LoraAdapter: named tensors from a file, which the runs with it feed as inputs. */
#include "py_state.h"

#include <ort_inside.h>

struct adapter {
    PyObject_HEAD py_state *st;
    OrtLoraAdapter *adapter; /* NULL: nothing is loaded */
};

static PyObject *adapter_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    (void)args;
    (void)keywords;
    return py_new(type);
}

static void adapter_dealloc(PyObject *object)
{
    struct adapter *self = (struct adapter *)object;
    OrtGetApiBase()->GetApi(ORT_API_VERSION)->ReleaseLoraAdapter(self->adapter);
    py_delete(object);
}

/* Once: what is loaded may be active in options. */
static PyObject *load(PyObject *object, PyObject *path)
{
    struct adapter *self = (struct adapter *)object;
    py_state *st = self->st;
    PyObject *bytes = NULL;
    if (self->adapter) {
        PyErr_SetString(PyExc_RuntimeError, "the adapter is loaded already");
        return NULL;
    }
    if (!PyUnicode_FSConverter(path, &bytes)) return NULL;
    const int failed = py_check_plain(
        st, st->api->CreateLoraAdapter(PyBytes_AsString(bytes), NULL, &self->adapter));
    Py_DECREF(bytes);
    if (failed) return NULL;
    Py_RETURN_NONE;
}

const OrtLoraAdapter *py_adapter_of(py_state *st, PyObject *object)
{
    const bool is_one = PyObject_TypeCheck(object, st->adapter);
    if (is_one && ((struct adapter *)object)->adapter) return ((struct adapter *)object)->adapter;
    if (is_one)
        PyErr_SetString(PyExc_RuntimeError, "the adapter has nothing loaded");
    else
        PyErr_Format(PyExc_TypeError, "a LoraAdapter is wanted, not %R", Py_TYPE(object));
    return NULL;
}

static PyObject *versions(PyObject *object, PyObject *unused)
{
    int32_t found[3];
    (void)unused;
    const OrtLoraAdapter *adapter = py_adapter_of(((struct adapter *)object)->st, object);
    if (!adapter) return NULL;
    ort_lora_versions(adapter, found);
    return Py_BuildValue("(iii)", (int)found[0], (int)found[1], (int)found[2]);
}

/* An OrtValue over the memory of a parameter, which keeps the adapter. */
static PyObject *look_at(PyObject *object, const OrtValue *parameter)
{
    py_state *st = ((struct adapter *)object)->st;
    ONNXTensorElementDataType dtype;
    const int64_t *dims;
    size_t rank, bytes;
    const void *data;
    OrtValue *value = NULL;
    if (py_check(st, st->api->GetTensorElementTypeAndShapeDataReference(parameter, &dtype, &dims,
                                                                        &rank)) < 0 ||
        py_check(st, st->api->GetTensorSizeInBytes(parameter, &bytes)) < 0 ||
        py_check(st, st->api->GetTensorData(parameter, &data)) < 0 ||
        py_check(st, st->api->CreateTensorWithDataAsOrtValue(st->cpu_info, (void *)(uintptr_t)data,
                                                             bytes, dims, rank, dtype, &value)) < 0)
        return NULL;
    Py_INCREF(object);
    return py_wrap_value(st, value, object);
}

static PyObject *parameters(PyObject *object, PyObject *unused)
{
    (void)unused;
    const OrtLoraAdapter *adapter = py_adapter_of(((struct adapter *)object)->st, object);
    PyObject *dict = adapter ? PyDict_New() : NULL;
    const OrtValue *parameter = NULL;
    const char *name = NULL;
    for (size_t i = 0; dict && (parameter = ort_lora_parameter(adapter, i, &name)) != NULL; i++) {
        PyObject *value = look_at(object, parameter);
        if (!value || PyDict_SetItemString(dict, name, value) < 0) Py_CLEAR(dict);
        Py_XDECREF(value);
    }
    return dict;
}

static PyMethodDef adapter_methods[] = {
    {"Load", load, METH_O,
     PY_DOC("Load", "($self, path, /)", "Reads a file. RuntimeError: it is none of an adapter.")},
    {"_versions", versions, METH_NOARGS, NULL},
    {"_parameters", parameters, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot adapter_slots[] = {
    {Py_tp_doc,
     "LoraAdapter()\n\nWeights that a run is given by RunOptions.add_active_adapter: its "
     "parameters are fed as the inputs of their names, whatever the run feeds."},
    {Py_tp_new, adapter_new},
    {Py_tp_dealloc, adapter_dealloc},
    {Py_tp_methods, adapter_methods},
    {0, NULL},
};

int py_add_adapters(py_state *st)
{
    PyType_Spec spec = {.basicsize = sizeof(struct adapter), .slots = adapter_slots};
    return py_add_type(st, &st->adapter, &spec);
}
