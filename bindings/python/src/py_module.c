/* SPDX-License-Identifier: Apache-2.0
 * The extension module: its state, the making of classes, and the functions of the package. The
 * file can be loaded under two names: sardonyx._sardonyx, and onnxruntime_pybind11_state for the
 * package that stands in for onnxruntime, whose classes then carry its name. */
#include "py_state.h"

#include <ort_inside.h>
#include <sardonyx/sardonyx.h>
#include <string.h>

/* ---- classes ---- */

#define HOME_OWN "sardonyx"
#define HOME_ORT "onnxruntime.capi.onnxruntime_pybind11_state"
/* A type keeps the pointer to its name, so both are here as literals. */
static const struct type_name {
    size_t offset;
    const char *name, *own, *ort;
} type_names[] = {
#define TYPE_NAME(member, name)                                                                    \
    {offsetof(py_state, member), name, HOME_OWN "." name, HOME_ORT "." name},
    PY_TYPES(TYPE_NAME)
#undef TYPE_NAME
};
#define MODULE_KEY "_sardonyx_module" /* what a type knows its module by */

py_state *py_state_of_module(PyObject *module)
{
    return PyModule_GetState(module);
}

py_state *py_state_of_type(PyTypeObject *type)
{
    PyObject *module = PyObject_GetAttrString((PyObject *)type, MODULE_KEY);
    if (!module) return NULL;
    py_state *st = PyModule_GetState(module);
    Py_DECREF(module); /* the type holds it */
    return st;
}

bool py_is_own(const py_state *st)
{
    return strcmp(st->home, HOME_OWN) == 0;
}

int py_add_type(py_state *st, PyTypeObject **slot, PyType_Spec *spec)
{
    const size_t offset = (size_t)((char *)slot - (char *)st);
    const struct type_name *name = type_names;
    while (name->offset != offset)
        name++;
    spec->name = py_is_own(st) ? name->own : name->ort;
    spec->flags |= Py_TPFLAGS_DEFAULT;
    PyObject *type = PyType_FromSpec(spec);
    if (!type) return -1;
    *slot = (PyTypeObject *)type;
    if (PyObject_SetAttrString(type, MODULE_KEY, st->module) < 0) return -1;
    Py_INCREF(type);
    return PyModule_AddObject(st->module, name->name, type);
}

PyObject *py_new(PyTypeObject *type)
{
    py_state *st = py_state_of_type(type);
    if (!st) return NULL;
    const allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    py_head *self = (py_head *)alloc(type, 0);
    if (self) self->st = st;
    return (PyObject *)self;
}

void py_delete(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    const freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

/* ---- functions ---- */

static int add_name(PyObject *list, const char *text)
{
    PyObject *name = PyUnicode_FromString(text);
    const int there = name ? PySequence_Contains(list, name) : -1;
    const int failed = there ? there : PyList_Append(list, name);
    Py_XDECREF(name);
    return failed < 0 ? -1 : 0;
}

/* Adds what starts here to `list`, which this takes. */
static PyObject *add_available(py_state *st, PyObject *list)
{
    char **names = NULL;
    int count = 0;
    if (!list || py_check(st, ort_provider_names(py_is_own(st), &names, &count)) < 0)
        Py_CLEAR(list);
    for (int i = 0; list && i < count; i++)
        if (add_name(list, names[i]) < 0) Py_CLEAR(list);
    st->api->ReleaseStatus(st->api->ReleaseAvailableProviders(names, count));
    return list;
}

static PyObject *get_available_providers(PyObject *module, PyObject *unused)
{
    (void)unused;
    return add_available(py_state_of_module(module), PyList_New(0));
}

/* Every name that ONNX Runtime knows, the most wanted first, then those that only we know. */
static PyObject *get_all_providers(PyObject *module, PyObject *unused)
{
    static const char *const names[] = {
        "NvTensorRTRTXExecutionProvider", "TensorrtExecutionProvider", "CUDAExecutionProvider",
        "MIGraphXExecutionProvider",      "OpenVINOExecutionProvider", "DnnlExecutionProvider",
        "VitisAIExecutionProvider",       "QNNExecutionProvider",      "NnapiExecutionProvider",
        "VSINPUExecutionProvider",        "JsExecutionProvider",       "CoreMLExecutionProvider",
        "ACLExecutionProvider",           "DmlExecutionProvider",      "RknpuExecutionProvider",
        "WebNNExecutionProvider",         "WebGpuExecutionProvider",   "XnnpackExecutionProvider",
        "CANNExecutionProvider",          "AzureExecutionProvider",    "CPUExecutionProvider"};
    PyObject *list = PyList_New(0);
    (void)unused;
    for (size_t i = 0; list && i < sizeof names / sizeof names[0]; i++)
        if (add_name(list, names[i]) < 0) Py_CLEAR(list);
    return add_available(py_state_of_module(module), list);
}

static PyObject *get_device(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return PyUnicode_FromString("CPU");
}

static PyObject *get_version_string(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return PyUnicode_FromString(OrtGetApiBase()->GetVersionString());
}

static PyObject *get_build_info(PyObject *module, PyObject *unused)
{
    (void)unused;
    return PyUnicode_FromString(py_state_of_module(module)->api->GetBuildInfoString());
}

static PyObject *do_nothing(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    Py_RETURN_NONE;
}

static PyObject *do_not(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    Py_RETURN_FALSE;
}

static PyObject *set_default_logger_severity(PyObject *module, PyObject *number)
{
    py_state *st = py_state_of_module(module);
    const long severity = PyLong_AsLong(number);
    if (severity == -1 && PyErr_Occurred()) return NULL;
    if (severity < ORT_LOGGING_LEVEL_VERBOSE || severity > ORT_LOGGING_LEVEL_FATAL) {
        PyErr_SetString(PyExc_RuntimeError, "Invalid logging severity. 0:Verbose, 1:Info, "
                                            "2:Warning, 3:Error, 4:Fatal");
        return NULL;
    }
    if (py_check(st, st->api->UpdateEnvWithCustomLogLevel(st->env, (OrtLoggingLevel)severity)) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *set_number(PyObject *module, PyObject *number)
{
    (void)module;
    if (PyLong_AsLongLong(number) == -1 && PyErr_Occurred()) return NULL;
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"get_available_providers", get_available_providers, METH_NOARGS,
     PY_DOC("get_available_providers", "($module)",
            "-> list[str]\n\nNames of the execution providers that can be used now; the CPU is the "
            "last.")},
    {"get_all_providers", get_all_providers, METH_NOARGS,
     PY_DOC("get_all_providers", "($module)",
            "-> list[str]\n\nNames of all execution providers that are known, available or not.")},
    {"get_device", get_device, METH_NOARGS, PY_DOC("get_device", "($module)", "-> str\n\n'CPU'.")},
    {"get_version_string", get_version_string, METH_NOARGS,
     PY_DOC("get_version_string", "($module)",
            "-> str\n\nThe version of ONNX Runtime whose interface this is.")},
    {"get_build_info", get_build_info, METH_NOARGS,
     PY_DOC("get_build_info", "($module)", "-> str\n\nHow it was built.")},
    {"disable_telemetry_events", do_nothing, METH_NOARGS,
     PY_DOC("disable_telemetry_events", "($module)", "Does nothing: there is no telemetry.")},
    {"enable_telemetry_events", do_nothing, METH_NOARGS,
     PY_DOC("enable_telemetry_events", "($module)", "Does nothing: there is no telemetry.")},
    {"has_collective_ops", do_not, METH_NOARGS,
     PY_DOC("has_collective_ops", "($module)", "-> bool\n\nFalse.")},
    {"set_default_logger_severity", set_default_logger_severity, METH_O,
     PY_DOC("set_default_logger_severity", "($module, severity, /)",
            "What is below it is not logged: 0 verbose, 1 info, 2 warning, 3 error, 4 fatal. "
            "RuntimeError for another number.")},
    {"set_default_logger_verbosity", set_number, METH_O,
     PY_DOC("set_default_logger_verbosity", "($module, level, /)", "Taken and not used.")},
    {"set_seed", set_number, METH_O,
     PY_DOC("set_seed", "($module, seed, /)",
            "Taken and not used: random operators without an attribute seed draw anew.")},
    {NULL, NULL, 0, NULL},
};

/* ---- making and ending ---- */

static int load_library(py_state *st)
{
    st->api = OrtGetApiBase()->GetApi(ORT_API_VERSION);
    if (py_check(st, st->api->CreateEnv(ORT_LOGGING_LEVEL_WARNING, "Default", &st->env)) < 0)
        return -1;
    if (py_check(st, st->api->GetAllocatorWithDefaultOptions(&st->allocator)) < 0) return -1;
    return py_check(
        st, st->api->CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, &st->cpu_info));
}

static int load_names(py_state *st)
{
    st->text_names = PyUnicode_InternFromString("output_names");
    st->text_feed = PyUnicode_InternFromString("input_feed");
    st->text_options = PyUnicode_InternFromString("run_options");
    return st->text_names && st->text_feed && st->text_options ? 0 : -1;
}

static int fill_module(PyObject *module)
{
    py_state *st = py_state_of_module(module);
    const char *name = PyModule_GetName(module);
    if (!name) return -1;
    st->module = module;
    st->home = strncmp(name, "onnxruntime", 11) == 0 ? HOME_ORT : HOME_OWN;
    if (!(st->helpers = PyImport_ImportModule("sardonyx._types"))) return -1;
    if (py_add_errors(st, module) < 0 || load_library(st) < 0 || load_names(st) < 0) return -1;
    if (py_load_numpy(st) < 0) return -1;
#define ADD_FAMILY(family)                                                                         \
    if (py_add_##family(st) < 0) return -1;
    PY_FAMILIES(ADD_FAMILY)
#undef ADD_FAMILY
    Py_INCREF(st->binding);
    if (PyModule_AddObject(module, "SessionIOBinding", (PyObject *)st->binding) < 0) return -1;
    if (PyModule_AddFunctions(module, py_engine_methods) < 0) return -1;
    if (PyModule_AddFunctions(module, py_tracking_methods) < 0) return -1;
    return PyModule_AddStringConstant(module, "__version__", sdx_version());
}

/* The members that hold references. */
static int traverse(PyObject *module, visitproc visit, void *arg)
{
    py_state *st = py_state_of_module(module);
    if (!st) return 0;
#define VISIT_TYPE(member, name) Py_VISIT((PyObject *)st->member);
    PY_TYPES(VISIT_TYPE)
#undef VISIT_TYPE
    for (int i = 0; i < COUNT_CODES; i++)
        Py_VISIT(st->errors[i]);
    for (int i = 0; i < COUNT_DTYPES; i++)
        Py_VISIT(st->numpy.dtypes[i]);
    Py_VISIT(st->numpy.module);
    Py_VISIT(st->numpy.dtype);
    Py_VISIT((PyObject *)st->numpy.array);
    Py_VISIT(st->helpers);
    return 0;
}

static int clear(PyObject *module)
{
    py_state *st = py_state_of_module(module);
    if (!st) return 0;
#define CLEAR_TYPE(member, name) Py_CLEAR(st->member);
    PY_TYPES(CLEAR_TYPE)
#undef CLEAR_TYPE
    for (int i = 0; i < COUNT_CODES; i++)
        Py_CLEAR(st->errors[i]);
    for (int i = 0; i < COUNT_DTYPES; i++)
        Py_CLEAR(st->numpy.dtypes[i]);
    Py_CLEAR(st->numpy.module);
    Py_CLEAR(st->numpy.dtype);
    Py_CLEAR(st->numpy.array);
    Py_CLEAR(st->helpers);
    Py_CLEAR(st->text_names);
    Py_CLEAR(st->text_feed);
    Py_CLEAR(st->text_options);
    return 0;
}

/* The environment stays: sessions and values may outlive the module. */
static void end(void *module)
{
    clear(module);
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, fill_module},
#ifdef Py_mod_gil
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "sardonyx._sardonyx",
    .m_doc = "The engine of sardonyx: sessions, values and options in C.",
    .m_size = sizeof(py_state),
    .m_methods = methods,
    .m_slots = slots,
    .m_traverse = traverse,
    .m_clear = clear,
    .m_free = end,
};

PyMODINIT_FUNC PyInit__sardonyx(void);
PyMODINIT_FUNC PyInit__sardonyx(void)
{
    return PyModuleDef_Init(&definition);
}

PyMODINIT_FUNC PyInit_onnxruntime_pybind11_state(void);
PyMODINIT_FUNC PyInit_onnxruntime_pybind11_state(void)
{
    return PyModuleDef_Init(&definition);
}
