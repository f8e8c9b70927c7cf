/* SPDX-License-Identifier: Apache-2.0
 * IOBinding: inputs and outputs that stay bound between runs. */
#include "py_state.h"

#include <string.h>

struct binding {
    PyObject_HEAD py_state *st;
    py_loaded *loaded;
    OrtIoBinding *binding;
    PyObject *inputs, *outputs; /* name -> what keeps its memory */
};

static PyObject *binding_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    PyObject *session = NULL;
    (void)keywords;
    if (!PyArg_ParseTuple(args, "O", &session)) return NULL;
    struct binding *self = (struct binding *)py_new(type);
    if (!self) return NULL;
    if (PyObject_TypeCheck(session, self->st->session)) {
        self->loaded = py_session_loaded(session);
    } else if (PyObject_TypeCheck(session, self->st->loaded)) {
        Py_INCREF(session);
        self->loaded = (py_loaded *)session;
    } else {
        PyErr_Format(PyExc_TypeError, "an InferenceSession is wanted, not %R", Py_TYPE(session));
    }
    self->inputs = PyDict_New();
    self->outputs = PyDict_New();
    if (!self->loaded || !self->inputs || !self->outputs ||
        py_check(self->st, self->st->api->CreateIoBinding(self->loaded->session, &self->binding)) <
            0)
        Py_CLEAR(self);
    return (PyObject *)self;
}

static void binding_dealloc(PyObject *object)
{
    struct binding *self = (struct binding *)object;
    if (self->binding) OrtGetApiBase()->GetApi(ORT_API_VERSION)->ReleaseIoBinding(self->binding);
    Py_CLEAR(self->inputs);
    Py_CLEAR(self->outputs);
    Py_CLEAR(self->loaded);
    py_delete(object);
}

/* Binds `value` and notes what keeps its memory; takes neither. */
static int bind(struct binding *self, PyObject *name, const OrtValue *value, PyObject *hold,
                bool output)
{
    PyObject *text = py_utf8(name, "name");
    if (!text) return -1;
    const OrtApi *api = self->st->api;
    int failed = py_check_plain(self->st, (output ? api->BindOutput : api->BindInput)(
                                              self->binding, PyBytes_AsString(text), value));
    if (!failed)
        failed = PyDict_SetItem(output ? self->outputs : self->inputs, name, hold ? hold : Py_None);
    Py_DECREF(text);
    return failed;
}

static PyObject *end_bind(int failed)
{
    if (failed) return NULL;
    Py_RETURN_NONE;
}

/* What the model says of the input; -1 with an exception when it has none of this name. */
static int want_of(struct binding *self, PyObject *name, struct py_want *want)
{
    const py_loaded *loaded = self->loaded;
    for (size_t i = 0; i < loaded->count_in + loaded->count_init; i++)
        if (PyUnicode_Check(name) && PyUnicode_Compare(loaded->in_names[i], name) == 0) {
            *want = loaded->wants[i];
            return 0;
        }
    PyErr_Format(PyExc_RuntimeError, "Failed to find NodeArg with name: %S in the def list", name);
    return -1;
}

static PyObject *bind_cpu_input(PyObject *object, PyObject *const *args, Py_ssize_t count,
                                PyObject *keywords)
{
    static const char *const names[] = {"name", "arr_on_cpu", NULL};
    struct binding *self = (struct binding *)object;
    PyObject *found[2], *hold = NULL;
    struct py_want want;
    OrtValue *value = NULL;
    bool borrowed = false;
    if (py_arguments("bind_cpu_input", names, 2, args, count, keywords, found) < 0) return NULL;
    if (want_of(self, found[0], &want) < 0) return NULL;
    if (!py_is_array(self->st, found[1])) {
        PyErr_SetString(PyExc_RuntimeError,
                        "Unable to create OrtValue from the given python object");
        return NULL;
    }
    if (py_to_value(self->st, &want, found[1], &value, &hold, &borrowed) < 0) return NULL;
    const int failed = bind(self, found[0], value, hold, false);
    if (!borrowed) self->st->api->ReleaseValue(value);
    Py_XDECREF(hold);
    return end_bind(failed);
}

OrtValue *py_value_at(py_state *st, PyObject *element, PyObject *shape, PyObject *address)
{
    int64_t *dims = NULL;
    Py_ssize_t rank = 0;
    OrtValue *probe = NULL, *value = NULL;
    size_t bytes = 0;
    const ONNXTensorElementDataType dtype = PyLong_Check(element)
                                                ? (ONNXTensorElementDataType)PyLong_AsLong(element)
                                                : py_dtype_from(st, element);
    void *data = PyErr_Occurred() ? NULL : PyLong_AsVoidPtr(address);
    if (PyErr_Occurred() || py_dims(shape, &dims, &rank) < 0) return NULL;
    /* The library knows how many bytes the elements take: ask it with none of them. */
    if (py_check(st, st->api->CreateTensorAsOrtValue(st->allocator, dims, (size_t)rank, dtype,
                                                     &probe)) == 0) {
        if (py_check(st, st->api->GetTensorSizeInBytes(probe, &bytes)) == 0 &&
            py_check(st, st->api->CreateTensorWithDataAsOrtValue(st->cpu_info, data, bytes, dims,
                                                                 (size_t)rank, dtype, &value)) < 0)
            value = NULL;
        st->api->ReleaseValue(probe);
    }
    PyMem_Free(dims);
    return value;
}

static PyObject *bind_address(struct binding *self, PyObject *name, PyObject *element,
                              PyObject *shape, PyObject *address, bool output)
{
    OrtValue *value = py_value_at(self->st, element, shape, address);
    if (!value) return NULL;
    const int failed = bind(self, name, value, NULL, output);
    self->st->api->ReleaseValue(value);
    return end_bind(failed);
}

int py_want_cpu(PyObject *device)
{
    if (!device) return 0;
    if (PyUnicode_Check(device)) {
        if (PyUnicode_CompareWithASCIIString(device, "cpu") == 0) return 0;
    } else { /* an OrtDevice */
        PyObject *type = PyObject_CallMethod(device, "device_type", NULL);
        const long number = type ? PyLong_AsLong(type) : -1;
        Py_XDECREF(type);
        if (PyErr_Occurred()) return -1;
        if (number == 0) return 0;
    }
    PyErr_Format(PyExc_RuntimeError, "there is no memory on device %S: only the CPU's", device);
    return -1;
}

/* bind_input(name, array), as ONNX Runtime's inner class has it, or with device, type, shape and
 * address. */
static PyObject *bind_input(PyObject *object, PyObject *const *args, Py_ssize_t count,
                            PyObject *keywords)
{
    static const char *const names[] = {"name",  "device_type", "device_id", "element_type",
                                        "shape", "buffer_ptr",  NULL};
    PyObject *found[6];
    if (count == 2 && !keywords) return bind_cpu_input(object, args, count, NULL);
    if (py_arguments("bind_input", names, 6, args, count, keywords, found) < 0) return NULL;
    if (py_want_cpu(found[1]) < 0) return NULL;
    return bind_address((struct binding *)object, found[0], found[3], found[4], found[5], false);
}

static PyObject *bind_output(PyObject *object, PyObject *const *args, Py_ssize_t count,
                             PyObject *keywords)
{
    static const char *const names[] = {"name",  "device_type", "device_id", "element_type",
                                        "shape", "buffer_ptr",  NULL};
    struct binding *self = (struct binding *)object;
    PyObject *found[6];
    if (py_arguments("bind_output", names, 1, args, count, keywords, found) < 0) return NULL;
    if (py_want_cpu(found[1]) < 0) return NULL;
    if (found[5] && found[5] != Py_None) {
        if (!found[3] || !found[4] || found[3] == Py_None || found[4] == Py_None) {
            PyErr_SetString(PyExc_ValueError, "`element_type` and `shape` are to be provided if "
                                              "pre-allocated memory is provided");
            return NULL;
        }
        return bind_address(self, found[0], found[3], found[4], found[5], true);
    }
    PyObject *text = py_utf8(found[0], "name");
    if (!text) return NULL;
    int failed =
        py_check_plain(self->st, self->st->api->BindOutputToDevice(
                                     self->binding, PyBytes_AsString(text), self->st->cpu_info));
    Py_DECREF(text);
    if (!failed) failed = PyDict_SetItem(self->outputs, found[0], Py_None);
    return end_bind(failed);
}

static PyObject *bind_value(PyObject *object, PyObject *const *args, Py_ssize_t count,
                            PyObject *keywords, const char *function, bool output)
{
    static const char *const names[] = {"name", "ortvalue", NULL};
    struct binding *self = (struct binding *)object;
    PyObject *found[2];
    if (py_arguments(function, names, 2, args, count, keywords, found) < 0) return NULL;
    const OrtValue *value = py_unwrap_value(self->st, found[1]);
    return value ? end_bind(bind(self, found[0], value, found[1], output)) : NULL;
}

static PyObject *bind_ortvalue_input(PyObject *object, PyObject *const *args, Py_ssize_t count,
                                     PyObject *keywords)
{
    return bind_value(object, args, count, keywords, "bind_ortvalue_input", false);
}

static PyObject *bind_ortvalue_output(PyObject *object, PyObject *const *args, Py_ssize_t count,
                                      PyObject *keywords)
{
    return bind_value(object, args, count, keywords, "bind_ortvalue_output", true);
}

static PyObject *clear_inputs(PyObject *object, PyObject *unused)
{
    struct binding *self = (struct binding *)object;
    (void)unused;
    self->st->api->ClearBoundInputs(self->binding);
    PyDict_Clear(self->inputs);
    Py_RETURN_NONE;
}

static PyObject *clear_outputs(PyObject *object, PyObject *unused)
{
    struct binding *self = (struct binding *)object;
    (void)unused;
    self->st->api->ClearBoundOutputs(self->binding);
    PyDict_Clear(self->outputs);
    Py_RETURN_NONE;
}

static PyObject *synchronize(PyObject *object, PyObject *unused)
{
    (void)object;
    (void)unused;
    Py_RETURN_NONE;
}

/* The names of the bound outputs, in order. */
static PyObject *output_names(struct binding *self)
{
    py_state *st = self->st;
    char *text = NULL;
    size_t *lengths = NULL, count = 0, place = 0;
    if (py_check(st, st->api->GetBoundOutputNames(self->binding, st->allocator, &text, &lengths,
                                                  &count)) < 0)
        return NULL;
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; list && i < count; i++) {
        PyObject *name = PyUnicode_DecodeUTF8(text + place, (Py_ssize_t)lengths[i], NULL);
        place += lengths[i];
        if (!name || PyList_SetItem(list, (Py_ssize_t)i, name) < 0) Py_CLEAR(list);
    }
    if (text) st->allocator->Free(st->allocator, text);
    if (lengths) st->allocator->Free(st->allocator, lengths);
    return list;
}

/* What keeps the memory of the output: what was bound, when it was bound with memory. */
static PyObject *hold_of(struct binding *self, PyObject *names, size_t i)
{
    PyObject *name =
        names && (Py_ssize_t)i < PyList_Size(names) ? PyList_GetItem(names, (Py_ssize_t)i) : NULL;
    PyObject *hold = name ? PyDict_GetItem(self->outputs, name) : NULL;
    if (hold == Py_None) hold = NULL;
    Py_XINCREF(hold);
    return hold;
}

/* The outputs, as OrtValues or as arrays of their own. */
static PyObject *outputs_as(PyObject *object, bool arrays)
{
    struct binding *self = (struct binding *)object;
    py_state *st = self->st;
    OrtValue **values = NULL;
    size_t count = 0;
    PyObject *names = output_names(self);
    if (!names || py_check(st, st->api->GetBoundOutputValues(self->binding, st->allocator, &values,
                                                             &count)) < 0) {
        Py_XDECREF(names);
        return NULL;
    }
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; i < count; i++) {
        if (!list) {
            st->api->ReleaseValue(values[i]);
            continue;
        }
        PyObject *item = NULL;
        if (!arrays) {
            item = py_wrap_value(st, values[i], hold_of(self, names, i));
        } else {
            PyObject *shared = py_from_value(st, values[i]);
            /* The memory is that of the binding, which the next run writes. */
            item = shared && py_is_array(st, shared) ? PyObject_CallMethod(shared, "copy", NULL)
                                                     : shared;
            if (item != shared) Py_XDECREF(shared);
        }
        if (!item || PyList_SetItem(list, (Py_ssize_t)i, item) < 0) Py_CLEAR(list);
    }
    if (values) st->allocator->Free(st->allocator, values);
    Py_DECREF(names);
    return list;
}

static PyObject *get_outputs(PyObject *object, PyObject *unused)
{
    (void)unused;
    return outputs_as(object, false);
}

static PyObject *copy_outputs(PyObject *object, PyObject *unused)
{
    (void)unused;
    return outputs_as(object, true);
}

static PyObject *get_vector(PyObject *object, PyObject *unused)
{
    struct binding *self = (struct binding *)object;
    (void)unused;
    PyObject *list = outputs_as(object, false);
    PyObject *vector = list ? PyObject_CallObject((PyObject *)self->st->vector, NULL) : NULL;
    for (Py_ssize_t i = 0; vector && i < PyList_Size(list); i++) {
        PyObject *done = PyObject_CallMethod(vector, "push_back", "O", PyList_GetItem(list, i));
        if (!done) Py_CLEAR(vector);
        Py_XDECREF(done);
    }
    Py_XDECREF(list);
    return vector;
}

static PyObject *get_inner(PyObject *object, void *unused)
{
    (void)unused;
    Py_INCREF(object);
    return object;
}

PyObject *py_run_binding(PyObject *object, PyObject *const *args, Py_ssize_t count,
                         PyObject *keywords)
{
    static const char *const names[] = {"iobinding", "run_options", NULL};
    PyObject *found[2];
    const OrtRunOptions *options = NULL;
    py_state *st = ((py_session *)object)->st;
    if (py_arguments("run_with_iobinding", names, 1, args, count, keywords, found) < 0) return NULL;
    if (!PyObject_TypeCheck(found[0], st->binding) || py_run_options(st, found[1], &options) < 0) {
        PyErr_SetString(PyExc_TypeError, "run_with_iobinding wants an IOBinding and a RunOptions");
        return NULL;
    }
    py_loaded *loaded = py_session_loaded(object);
    if (!loaded) return NULL;
    struct binding *self = (struct binding *)found[0];
    int failed = -1;
    if (self->loaded != loaded) {
        PyErr_SetString(PyExc_ValueError,
                        "IOBinding must be used with the session that created it.");
    } else {
        OrtStatus *status;
        PyThreadState *thread = PyEval_SaveThread();
        status = st->api->RunWithBinding(loaded->session, options, self->binding);
        PyEval_RestoreThread(thread);
        if (status) {
            PyErr_Format(PyExc_RuntimeError, "Error in execution: %s",
                         st->api->GetErrorMessage(status));
            st->api->ReleaseStatus(status);
        } else {
            failed = 0;
        }
    }
    Py_DECREF((PyObject *)loaded);
    return end_bind(failed);
}

static PyMethodDef binding_methods[] = {
    PY_NAMED("bind_cpu_input", bind_cpu_input, "($self, name, arr_on_cpu)",
             "Binds an input to a NumPy array, whose memory is read when it is packed."),
    PY_NAMED("bind_input", bind_input,
             "($self, name, device_type, device_id, element_type, shape, buffer_ptr)",
             "Binds an input to memory at an address, which must live until the runs are done."),
    PY_NAMED("bind_output", bind_output,
             "($self, name, device_type='cpu', device_id=0, element_type=None, shape=None, "
             "buffer_ptr=None)",
             "Asks for an output, in memory of its own or at an address."),
    PY_NAMED("bind_ortvalue_input", bind_ortvalue_input, "($self, name, ortvalue)",
             "The run reads the OrtValue."),
    PY_NAMED("bind_ortvalue_output", bind_ortvalue_output, "($self, name, ortvalue)",
             "The run writes into the OrtValue."),
    PY_ASK("clear_binding_inputs", clear_inputs, "Nothing is bound to inputs any more."),
    PY_ASK("clear_binding_outputs", clear_outputs, "Nothing is bound to outputs any more."),
    PY_ASK("synchronize_inputs", synchronize, "Does nothing: memory is the CPU's."),
    PY_ASK("synchronize_outputs", synchronize, "Does nothing: memory is the CPU's."),
    PY_ASK("get_outputs", get_outputs, "-> list[OrtValue]\n\nOf the last run."),
    PY_ASK("get_outputs_as_ortvaluevector", get_vector, "-> OrtValueVector"),
    PY_ASK("copy_outputs_to_cpu", copy_outputs,
           "-> list[numpy.ndarray]\n\nThe outputs of the last run, copied."),
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef binding_getset[] = {
    {"_iobinding", get_inner, NULL, NULL, NULL},
    {0},
};

static PyType_Slot binding_slots[] = {
    {Py_tp_doc, "IOBinding(session)\n\nInputs and outputs that stay bound between runs."},
    {Py_tp_new, binding_new},
    {Py_tp_dealloc, binding_dealloc},
    {Py_tp_methods, binding_methods},
    {Py_tp_getset, binding_getset},
    {0, NULL},
};

int py_add_bindings(py_state *st)
{
    PyType_Spec spec = {.basicsize = sizeof(struct binding), .slots = binding_slots};
    return py_add_type(st, &st->binding, &spec);
}
