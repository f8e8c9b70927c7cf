/* SPDX-License-Identifier: Apache-2.0
 * What SessionOptions bring to a model or make of it: files with the data of initializers from
 * memory, and compiling, which sardonyx._types.ModelCompiler is made of. */
#include "py_state.h"

#include <string.h>

#define API (self->st->api)

/* ---- files in memory ---- */

/* One file: `bytes` is a list of what buffers hold. */
static int add_file(py_options *self, PyObject *name, PyObject *buffer, PyObject *length,
                    PyObject *bytes)
{
    PyObject *text = py_utf8(name, "file name");
    PyObject *data = text && !PyLong_Check(buffer) ? PyBytes_FromObject(buffer) : NULL;
    if (text && !data && !PyErr_Occurred())
        PyErr_SetString(PyExc_TypeError, "buffers must be bytes-like, not int");
    const size_t size = data ? PyLong_AsSize_t(length) : 0;
    int failed = data && !PyErr_Occurred() ? PyList_Append(bytes, data) : -1;
    if (!failed && size > (size_t)PyBytes_Size(data)) {
        PyErr_Format(PyExc_ValueError, "file '%s': the buffer has %zd bytes, not %zu",
                     PyBytes_AsString(text), PyBytes_Size(data), size);
        failed = -1;
    }
    if (!failed) {
        const char *of_name = PyBytes_AsString(text);
        char *of_data = PyBytes_AsString(data);
        failed = py_check(self->st, API->AddExternalInitializersFromFilesInMemory(
                                        self->session, &of_name, &of_data, &size, 1));
    }
    Py_XDECREF(text);
    Py_XDECREF(data);
    return failed;
}

PyObject *py_add_files(PyObject *object, PyObject *const *args, Py_ssize_t count,
                       PyObject *keywords)
{
    static const char *const names[] = {"names", "buffers", "lengths", NULL};
    static const char method[] = "add_external_initializers_from_files_in_memory";
    py_options *self = (py_options *)object;
    PyObject *found[3], *lists[3], *done = NULL;
    if (py_arguments(method, names, 3, args, count, keywords, found) < 0) return NULL;
    PyObject *bytes = PyList_New(0);
    if (!bytes) return NULL;
    int failed = 0;
    for (int i = 0; i < 3; i++) {
        lists[i] = failed ? NULL : PySequence_List(found[i]);
        failed = lists[i] ? 0 : -1;
    }
    const Py_ssize_t files = failed ? 0 : PyList_Size(lists[0]);
    if (!failed && (PyList_Size(lists[1]) != files || PyList_Size(lists[2]) != files)) {
        PyErr_SetString(PyExc_RuntimeError,
                        "Expecting names, buffers and lengths to have equal length");
        failed = -1;
    }
    for (Py_ssize_t i = 0; !failed && i < files; i++)
        failed = add_file(self, PyList_GetItem(lists[0], i), PyList_GetItem(lists[1], i),
                          PyList_GetItem(lists[2], i), bytes);
    if (!failed)
        done = py_options_note(self, method, Py_BuildValue("(OOO)", lists[0], bytes, lists[2]));
    for (int i = 0; i < 3; i++)
        Py_XDECREF(lists[i]);
    Py_DECREF(bytes);
    return done;
}

/* ---- compiling ---- */

struct compiling {
    PyObject *model, *initializers_file, *to;       /* bytes objects; the last two may be NULL */
    bool is_path, in_memory, is_embedded, is_asked; /* asked: where each initializer goes */
    unsigned threshold, flags;
    int level;
    void *block; /* what came out */
    size_t size;
};

static OrtStatus *set_up(py_options *self, const OrtCompileApi *api, OrtModelCompilationOptions *to,
                         struct compiling *what)
{
    const char *model = PyBytes_AsString(what->model);
    OrtStatus *status = what->is_path ? api->ModelCompilationOptions_SetInputModelPath(to, model)
                                      : api->ModelCompilationOptions_SetInputModelFromBuffer(
                                            to, model, (size_t)PyBytes_Size(what->model));
    if (!status) status = api->ModelCompilationOptions_SetEpContextEmbedMode(to, what->is_embedded);
    if (!status && what->initializers_file)
        status = api->ModelCompilationOptions_SetOutputModelExternalInitializersFile(
            to, PyBytes_AsString(what->initializers_file), what->threshold);
    if (!status && what->is_asked)
        status =
            api->ModelCompilationOptions_SetOutputModelGetInitializerLocationFunc(to, NULL, NULL);
    if (!status) status = api->ModelCompilationOptions_SetFlags(to, what->flags);
    if (!status)
        status = api->ModelCompilationOptions_SetGraphOptimizationLevel(
            to, (GraphOptimizationLevel)what->level);
    if (!status && what->in_memory)
        status = api->ModelCompilationOptions_SetOutputModelBuffer(to, self->st->allocator,
                                                                   &what->block, &what->size);
    if (!status && what->to)
        status = api->ModelCompilationOptions_SetOutputModelPath(to, PyBytes_AsString(what->to));
    return status;
}

static int to_path(PyObject *object, PyObject **out)
{
    return PyUnicode_FSConverter(object, out) ? 0 : -1;
}

static int compile(py_options *self, struct compiling *what)
{
    const OrtCompileApi *api = API->GetCompileApi();
    OrtModelCompilationOptions *options = NULL;
    OrtStatus *status = api->CreateModelCompilationOptionsFromSessionOptions(
        self->st->env, self->session, &options);
    if (!status) status = set_up(self, api, options, what);
    if (!status) {
        PyThreadState *thread = PyEval_SaveThread();
        status = api->CompileModel(self->st->env, options);
        PyEval_RestoreThread(thread);
    }
    api->ReleaseModelCompilationOptions(options);
    return py_check(self->st, status);
}

/* (model: path or bytes, to: path, None for one beside the model's or True for memory, embed,
 * initializers_file or None, threshold, flags, level, is_asked) -> bytes or None */
PyObject *py_compile_model(PyObject *object, PyObject *args)
{
    py_options *self = (py_options *)object;
    struct compiling what = {0};
    PyObject *model = NULL, *to = NULL, *file = NULL, *result = NULL;
    int embed = 0, asked = 0;
    if (!PyArg_ParseTuple(args, "OOpOIIip", &model, &to, &embed, &file, &what.threshold,
                          &what.flags, &what.level, &asked))
        return NULL;
    what.is_path = !PyBytes_Check(model);
    what.in_memory = to == Py_True;
    what.is_embedded = embed != 0;
    what.is_asked = asked != 0;
    int failed = 0;
    if (what.is_path) failed = to_path(model, &what.model);
    if (!what.is_path) what.model = Py_BuildValue("O", model);
    if (!failed && file != Py_None) failed = to_path(file, &what.initializers_file);
    if (!failed && to != Py_None && !what.in_memory) failed = to_path(to, &what.to);
    if (!failed) failed = compile(self, &what);
    if (!failed)
        result = what.in_memory ? PyBytes_FromStringAndSize(what.block, (Py_ssize_t)what.size)
                                : Py_BuildValue("");
    if (what.block) self->st->allocator->Free(self->st->allocator, what.block);
    Py_XDECREF(what.model);
    Py_XDECREF(what.initializers_file);
    Py_XDECREF(what.to);
    return result;
}
