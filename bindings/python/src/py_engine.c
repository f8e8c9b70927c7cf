/* SPDX-License-Identifier: Apache-2.0
 * What the engine offers beside sessions: checking, inferring shapes, converting versions, plan
 * files and the table of operators. Each call has a context of its own. */
#include "py_state.h"

#include <sardonyx/sardonyx.h>
#include <stdlib.h>
#include <string.h>

/* Which exception tells of a status. */
static OrtErrorCode code_of(sdx_status status)
{
    switch (status) {
    case SDX_INVALID_ARGUMENT:
    case SDX_BAD_INPUT: return ORT_INVALID_ARGUMENT;
    case SDX_NOT_FOUND: return ORT_NO_SUCHFILE;
    case SDX_BAD_MODEL: return ORT_INVALID_GRAPH;
    case SDX_NOT_SUPPORTED: return ORT_NOT_IMPLEMENTED;
    default: return ORT_FAIL;
    }
}

/* Raises what the context says; -1. */
static int raise_status(py_state *st, const sdx_context *cx, sdx_status status)
{
    PyObject *text = py_error_text(code_of(status), sdx_error(cx));
    if (text) PyErr_SetObject(st->errors[code_of(status)], text);
    Py_XDECREF(text);
    return -1;
}

static sdx_context *make_context(void)
{
    sdx_context *cx = sdx_context_create(NULL);
    if (!cx) PyErr_NoMemory();
    return cx;
}

/* Lines that the engine tells, kept without the GIL. */
struct lines {
    char *text;
    size_t used, room;
    bool lost;
};

static void keep_line(const char *line, void *user)
{
    struct lines *lines = user;
    const size_t size = strlen(line) + 1;
    if (lines->used + size > lines->room) {
        const size_t room = (lines->used + size) * 2;
        char *text = realloc(lines->text, room);
        if (!text) {
            lines->lost = true;
            return;
        }
        lines->text = text;
        lines->room = room;
    }
    memcpy(lines->text + lines->used, line, size);
    lines->used += size;
}

/* list[str] of them; frees the memory. */
static PyObject *list_of_lines(struct lines *lines)
{
    PyObject *list = lines->lost ? PyErr_NoMemory() : PyList_New(0);
    for (size_t i = 0; list && i < lines->used; i += strlen(lines->text + i) + 1) {
        const char *text = lines->text + i;
        PyObject *line = PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
        if (!line || PyList_Append(list, line) < 0) Py_CLEAR(list);
        Py_XDECREF(line);
    }
    free(lines->text);
    return list;
}

static PyObject *check(PyObject *module, PyObject *const *args, Py_ssize_t count,
                       PyObject *keywords)
{
    static const char *const names[] = {"model", NULL};
    py_state *st = py_state_of_module(module);
    PyObject *found[1], *path = NULL;
    struct lines lines = {0};
    sdx_status status;
    if (py_arguments("check", names, 1, args, count, keywords, found) < 0) return NULL;
    const bool is_bytes = PyBytes_Check(found[0]);
    if (!is_bytes && !PyUnicode_FSConverter(found[0], &path)) return NULL;
    sdx_context *cx = make_context();
    if (!cx) {
        Py_XDECREF(path);
        return NULL;
    }
    PyThreadState *thread = PyEval_SaveThread();
    status = is_bytes ? sdx_check_bytes(cx, PyBytes_AsString(found[0]),
                                        (size_t)PyBytes_Size(found[0]), keep_line, &lines)
                      : sdx_check(cx, PyBytes_AsString(path), keep_line, &lines);
    PyEval_RestoreThread(thread);
    /* A model with faults is what was asked about; all else is an error. */
    const bool told = status == SDX_OK || (status == SDX_BAD_MODEL && lines.used);
    if (!told) raise_status(st, cx, status);
    PyObject *list = list_of_lines(&lines);
    if (!told) Py_CLEAR(list);
    sdx_context_destroy(cx);
    Py_XDECREF(path);
    return list;
}

/* The two paths that most functions here begin with. */
struct paths {
    PyObject *from, *to;
    sdx_context *cx;
};

static int begin_paths(struct paths *paths, PyObject *from, PyObject *to)
{
    memset(paths, 0, sizeof *paths);
    if (!PyUnicode_FSConverter(from, &paths->from)) return -1;
    if (!PyUnicode_FSConverter(to, &paths->to) || !(paths->cx = make_context())) {
        Py_CLEAR(paths->from);
        Py_CLEAR(paths->to);
        return -1;
    }
    return 0;
}

static PyObject *end_paths(py_state *st, struct paths *paths, sdx_status status)
{
    if (status) raise_status(st, paths->cx, status);
    sdx_context_destroy(paths->cx);
    Py_DECREF(paths->from);
    Py_DECREF(paths->to);
    if (status) return NULL;
    Py_RETURN_NONE;
}

static PyObject *infer_shapes(PyObject *module, PyObject *const *args, Py_ssize_t count,
                              PyObject *keywords)
{
    static const char *const names[] = {"model_path", "output_path", NULL};
    py_state *st = py_state_of_module(module);
    PyObject *found[2];
    struct paths paths;
    sdx_status status;
    if (py_arguments("infer_shapes", names, 2, args, count, keywords, found) < 0) return NULL;
    if (begin_paths(&paths, found[0], found[1]) < 0) return NULL;
    PyThreadState *thread = PyEval_SaveThread();
    status =
        sdx_infer(paths.cx, PyBytes_AsString(paths.from), PyBytes_AsString(paths.to), NULL, NULL);
    PyEval_RestoreThread(thread);
    return end_paths(st, &paths, status);
}

/* {domain: version} or a version of the standard's domain. */
static int read_opsets(PyObject *object, sdx_opset *opsets, int most, PyObject *held)
{
    if (PyLong_Check(object)) {
        opsets[0] = (sdx_opset){.domain = "", .version = PyLong_AsLongLong(object)};
        return PyErr_Occurred() ? -1 : 1;
    }
    if (!PyDict_Check(object) || PyDict_Size(object) > most) {
        PyErr_SetString(PyExc_TypeError,
                        "target must be a version or a dict of versions by domain");
        return -1;
    }
    PyObject *key, *value;
    Py_ssize_t place = 0;
    int count = 0;
    while (PyDict_Next(object, &place, &key, &value)) {
        PyObject *text = py_utf8(key, "domain");
        if (!text || PyList_Append(held, text) < 0) return -1;
        opsets[count++] = (sdx_opset){PyBytes_AsString(text), PyLong_AsLongLong(value)};
        Py_DECREF(text);
        if (PyErr_Occurred()) return -1;
    }
    return count;
}

static PyObject *convert_version(PyObject *module, PyObject *const *args, Py_ssize_t count,
                                 PyObject *keywords)
{
    static const char *const names[] = {"model_path", "target", "output_path", NULL};
    enum { MOST = 16 };
    py_state *st = py_state_of_module(module);
    PyObject *found[3], *held = PyList_New(0);
    struct paths paths;
    sdx_opset opsets[MOST];
    sdx_status status;
    if (!held || py_arguments("convert_version", names, 3, args, count, keywords, found) < 0) {
        Py_XDECREF(held);
        return NULL;
    }
    const int count_opsets = read_opsets(found[1], opsets, MOST, held);
    if (count_opsets < 0 || begin_paths(&paths, found[0], found[2]) < 0) {
        Py_DECREF(held);
        return NULL;
    }
    PyThreadState *thread = PyEval_SaveThread();
    status = sdx_model_convert(paths.cx, PyBytes_AsString(paths.from), count_opsets, opsets, NULL,
                               PyBytes_AsString(paths.to));
    PyEval_RestoreThread(thread);
    Py_DECREF(held);
    return end_paths(st, &paths, status);
}

static PyObject *compile(PyObject *module, PyObject *const *args, Py_ssize_t count,
                         PyObject *keywords)
{
    static const char *const names[] = {"model_path", "plan_path", NULL};
    py_state *st = py_state_of_module(module);
    PyObject *found[2];
    struct paths paths;
    sdx_model *model = NULL;
    sdx_session *session = NULL;
    sdx_status status;
    if (py_arguments("compile", names, 2, args, count, keywords, found) < 0) return NULL;
    if (begin_paths(&paths, found[0], found[1]) < 0) return NULL;
    PyThreadState *thread = PyEval_SaveThread();
    status = sdx_model_open(paths.cx, PyBytes_AsString(paths.from), NULL, &model);
    if (!status) status = sdx_session_create(paths.cx, model, NULL, &session);
    if (!status) status = sdx_session_save_plan(session, PyBytes_AsString(paths.to));
    sdx_session_destroy(session);
    sdx_model_destroy(model);
    PyEval_RestoreThread(thread);
    return end_paths(st, &paths, status);
}

static PyObject *operators(PyObject *module, PyObject *unused)
{
    sdx_op_info info;
    (void)module;
    (void)unused;
    PyObject *list = PyList_New(0);
    for (int i = 0; list && sdx_op_info_get(i, &info); i++) {
        PyObject *row = Py_BuildValue("{s:s,s:s,s:i,s:N,s:z,s:z,s:s}", "domain", info.domain,
                                      "name", info.name, "since", info.since, "deprecated",
                                      PyBool_FromLong(info.deprecated), "support", info.support,
                                      "note", info.note, "types", info.types ? info.types : "");
        if (!row || PyList_Append(list, row) < 0) Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

PyMethodDef py_engine_methods[] = {
    PY_NAMED("check", check, "($module, model)",
             "-> list[str]\n\nChecks a model (path or bytes) against the standard: a line for each "
             "fault, with its place; [] for a valid one. NoSuchFile, Fail: it cannot be read."),
    PY_NAMED("infer_shapes", infer_shapes, "($module, model_path, output_path)",
             "Writes the model with the types and shapes of all its values. InvalidGraph: they "
             "contradict each other."),
    PY_NAMED("convert_version", convert_version, "($module, model_path, target, output_path)",
             "Writes the model with its nodes as another version of the standard has them. target: "
             "a version, or {domain: version}. NotImplemented: that version cannot say it, with "
             "the node and the reason."),
    PY_NAMED("compile", compile, "($module, model_path, plan_path)",
             "Writes a plan file: the model, rewritten and packed for this machine and version. "
             "InferenceSession takes it like a model."),
    {"operators", operators, METH_NOARGS,
     PY_DOC("operators", "($module)",
            "-> list[dict]\n\nThe operators that are known, a row for each version: domain, name, "
            "since, deprecated, support ('kernel', 'lowering', 'function' or None), note, types.")},
    {NULL, NULL, 0, NULL},
};
