/* SPDX-License-Identifier: Apache-2.0
 * Exceptions: one class a status code, and the way from a status to it. */
#include "py_state.h"

#include <stdio.h>
#include <string.h>

/* X(code, name of the class); the codes of SDX_ORT_ERRORS, in their order */
#define PY_ERRORS(X)                                                                               \
    X(ORT_FAIL, "Fail", "the run or the load failed")                                              \
    X(ORT_INVALID_ARGUMENT, "InvalidArgument", "a name, type or shape does not fit the model")     \
    X(ORT_NO_SUCHFILE, "NoSuchFile", "the model's file is not there")                              \
    X(ORT_NO_MODEL, "NoModel", "there is no model")                                                \
    X(ORT_ENGINE_ERROR, "EngineError", "a fault of the engine")                                    \
    X(ORT_RUNTIME_EXCEPTION, "RuntimeException", "a value met while running breaks a rule")        \
    X(ORT_INVALID_PROTOBUF, "InvalidProtobuf", "the file is no ONNX model")                        \
    X(ORT_MODEL_LOADED, "ModelLoaded", "a model is loaded already")                                \
    X(ORT_NOT_IMPLEMENTED, "NotImplemented", "valid, but not supported")                           \
    X(ORT_INVALID_GRAPH, "InvalidGraph", "the graph breaks a rule of the standard")                \
    X(ORT_EP_FAIL, "EPFail", "an execution provider failed")                                       \
    X(ORT_MODEL_LOAD_CANCELED, "ModelLoadCanceled", "loading was cancelled")                       \
    X(ORT_MODEL_REQUIRES_COMPILATION, "ModelRequiresCompilation", "the model must be compiled")    \
    X(ORT_NOT_FOUND, "NotFound", "a name was not found")

static const char *const code_names[] = {
#define PY_CODE_NAME(code, number, name) [number] = name,
    SDX_ORT_ERRORS(PY_CODE_NAME)
#undef PY_CODE_NAME
};

static PyObject *new_error(py_state *st, PyObject *module, const char *name, const char *text)
{
    char full[128];
    snprintf(full, sizeof full, "%s.%s", st->home, name);
    PyObject *error = PyErr_NewExceptionWithDoc(full, text, PyExc_Exception, NULL);
    if (error && PyObject_SetAttrString(module, name, error) < 0) Py_CLEAR(error);
    return error;
}

int py_add_errors(py_state *st, PyObject *module)
{
#define PY_ADD_ERROR(code, name, text)                                                             \
    if (!(st->errors[code] = new_error(st, module, name, text))) return -1;
    PY_ERRORS(PY_ADD_ERROR)
#undef PY_ADD_ERROR
    /* Only devices that we do not have raise it. */
    PyObject *reset = new_error(st, module, "DeviceReset", "the device was reset");
    Py_XDECREF(reset);
    return reset ? 0 : -1;
}

PyObject *py_error_text(OrtErrorCode code, const char *text)
{
    const bool known = code > 0 && (int)code < COUNT_CODES;
    PyObject *shown = PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
    if (!shown) return NULL;
    PyObject *whole = PyUnicode_FromFormat("[ONNXRuntimeError] : %d : %s : %U", (int)code,
                                           known ? code_names[code] : "UNKNOWN", shown);
    Py_DECREF(shown);
    return whole;
}

int py_check(py_state *st, OrtStatus *status)
{
    if (!status) return 0;
    const OrtErrorCode code = st->api->GetErrorCode(status);
    PyObject *text = py_error_text(code, st->api->GetErrorMessage(status));
    st->api->ReleaseStatus(status);
    if (!text) return -1;
    const bool known = code > 0 && (int)code < COUNT_CODES;
    PyErr_SetObject(known ? st->errors[code] : st->errors[ORT_FAIL], text);
    Py_DECREF(text);
    return -1;
}

int py_check_plain(py_state *st, OrtStatus *status)
{
    if (!status) return 0;
    PyErr_SetString(PyExc_RuntimeError, st->api->GetErrorMessage(status));
    st->api->ReleaseStatus(status);
    return -1;
}
