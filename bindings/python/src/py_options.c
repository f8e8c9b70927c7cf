/* SPDX-License-Identifier: Apache-2.0
 * SessionOptions and RunOptions. What is set goes to the library at once; Python keeps what was set
 * to show it, and the calls made to repeat them in a copy or after pickling. */
#include "py_state.h"

#include <ort_inside.h>
#include <string.h>

/* ---- properties ---- */

/* A property: kind 'b' bool, 'i' int, 's' str, 'e' an enumeration of sardonyx._types. */
struct property {
    const char *name;
    char kind;
    const char *enumeration;
    OrtStatus *(*apply)(py_options *self, long number, const char *text);
};

#define API (self->st->api)
#define APPLY(name, expression)                                                                    \
    static OrtStatus *apply_##name(py_options *self, long number, const char *text)                \
    {                                                                                              \
        (void)number;                                                                              \
        (void)text;                                                                                \
        return expression;                                                                         \
    }
APPLY(arena, (number ? API->EnableCpuMemArena : API->DisableCpuMemArena)(self->session))
APPLY(pattern, (number ? API->EnableMemPattern : API->DisableMemPattern)(self->session))
APPLY(mode, API->SetSessionExecutionMode(self->session, (ExecutionMode)number))
APPLY(level, API->SetSessionGraphOptimizationLevel(self->session, (GraphOptimizationLevel)number))
APPLY(inter, API->SetInterOpNumThreads(self->session, (int)number))
APPLY(intra, API->SetIntraOpNumThreads(self->session, (int)number))
APPLY(severity, API->SetSessionLogSeverityLevel(self->session, (int)number))
APPLY(verbosity, API->SetSessionLogVerbosityLevel(self->session, (int)number))
APPLY(logid, API->SetSessionLogId(self->session, text))
APPLY(optimized, API->SetOptimizedModelFilePath(self->session, text))
APPLY(deterministic, API->SetDeterministicCompute(self->session, number != 0))
APPLY(threads, number ? NULL : API->DisablePerSessionThreads(self->session))
APPLY(run_severity, API->RunOptionsSetRunLogSeverityLevel(self->run, (int)number))
APPLY(run_verbosity, API->RunOptionsSetRunLogVerbosityLevel(self->run, (int)number))
APPLY(run_logid, API->RunOptionsSetRunTag(self->run, text))
APPLY(terminate, (number ? API->RunOptionsSetTerminate : API->RunOptionsUnsetTerminate)(self->run))
#undef APPLY

/* Profiling is on or off with a prefix of the file: two properties, one call. */
static OrtStatus *apply_profiling(py_options *self, long number, const char *text)
{
    PyObject *on = PyDict_GetItemString(self->values, "enable_profiling");
    PyObject *prefix = PyDict_GetItemString(self->values, "profile_file_prefix");
    const bool wanted = text ? on && PyObject_IsTrue(on) : number != 0;
    PyObject *bytes = !text && prefix ? PyUnicode_AsUTF8String(prefix) : NULL;
    if (!text) text = bytes ? PyBytes_AsString(bytes) : "onnxruntime_profile_";
    OrtStatus *status =
        wanted ? API->EnableProfiling(self->session, text) : API->DisableProfiling(self->session);
    Py_XDECREF(bytes);
    return status;
}

static const struct property session_properties[] = {
    {"enable_cpu_mem_arena", 'b', NULL, apply_arena},
    {"enable_mem_pattern", 'b', NULL, apply_pattern},
    {"enable_mem_reuse", 'b', NULL, NULL},
    {"enable_profiling", 'b', NULL, apply_profiling},
    {"execution_mode", 'e', "ExecutionMode", apply_mode},
    {"execution_order", 'e', "ExecutionOrder", NULL},
    {"graph_optimization_level", 'e', "GraphOptimizationLevel", apply_level},
    {"inter_op_num_threads", 'i', NULL, apply_inter},
    {"intra_op_num_threads", 'i', NULL, apply_intra},
    {"log_severity_level", 'i', NULL, apply_severity},
    {"log_verbosity_level", 'i', NULL, apply_verbosity},
    {"logid", 's', NULL, apply_logid},
    {"optimized_model_filepath", 's', NULL, apply_optimized},
    {"profile_file_prefix", 's', NULL, apply_profiling},
    {"use_deterministic_compute", 'b', NULL, apply_deterministic},
    {"use_per_session_threads", 'b', NULL, apply_threads},
};
static const struct property run_properties[] = {
    {"log_severity_level", 'i', NULL, apply_run_severity},
    {"log_verbosity_level", 'i', NULL, apply_run_verbosity},
    {"logid", 's', NULL, apply_run_logid},
    {"only_execute_path_to_fetches", 'b', NULL, NULL},
    {"terminate", 'b', NULL, apply_terminate},
};

PyObject *py_enum(py_state *st, const char *name, long value)
{
    return PyObject_CallMethod(st->helpers, name, "l", value);
}

static int set_default(py_options *self, const char *name, PyObject *value)
{
    const int failed = value ? PyDict_SetItemString(self->values, name, value) : -1;
    Py_XDECREF(value);
    return failed;
}

/* What a property is until it is set; others than these are 0, False or "". */
static PyObject *default_of(py_options *self, const struct property *property)
{
    static const char *const on[] = {"enable_cpu_mem_arena", "enable_mem_pattern",
                                     "enable_mem_reuse", "use_per_session_threads"};
    const char *name = property->name;
    if (property->kind == 'e')
        return py_enum(self->st, property->enumeration,
                       strcmp(name, "graph_optimization_level") == 0 ? ORT_ENABLE_ALL : 0);
    if (property->kind == 'i') return PyLong_FromLong(strcmp(name, "log_severity_level") ? 0 : -1);
    if (property->kind == 's')
        return PyUnicode_FromString(strcmp(name, "profile_file_prefix") ? ""
                                                                        : "onnxruntime_profile_");
    for (size_t i = 0; i < sizeof on / sizeof on[0]; i++)
        if (strcmp(name, on[i]) == 0) return PyBool_FromLong(1);
    return PyBool_FromLong(0);
}

static PyObject *property_get(PyObject *object, void *closure)
{
    py_options *self = (py_options *)object;
    const struct property *property = closure;
    PyObject *value = PyDict_GetItemString(self->values, property->name);
    Py_XINCREF(value);
    return value;
}

/* `value` as the property keeps it: a new reference. NULL without an exception: it does not fit. */
static PyObject *fit_value(py_state *st, const struct property *property, PyObject *value)
{
    if (property->kind == 's') {
        if (!PyUnicode_Check(value)) return NULL;
        Py_INCREF(value);
        return value;
    }
    if (property->kind == 'b') {
        const bool can = value == Py_None || PyObject_HasAttrString(value, "__bool__");
        const int truth = can ? PyObject_IsTrue(value) : -1;
        return truth < 0 ? NULL : PyBool_FromLong(truth);
    }
    if (property->kind == 'e') {
        PyObject *type = PyObject_GetAttrString(st->helpers, property->enumeration);
        const int is = type ? PyObject_IsInstance(value, type) : -1;
        Py_XDECREF(type);
        if (is != 1) return NULL;
        Py_INCREF(value);
        return value;
    }
    if (!PyIndex_Check(value)) return NULL;
    PyObject *number = PyNumber_Index(value);
    const long read = number ? PyLong_AsLong(number) : -1;
    if (PyErr_Occurred() || read > INT32_MAX || read < INT32_MIN) Py_CLEAR(number);
    PyErr_Clear();
    return number;
}

static int raise_unfit(PyObject *object, const struct property *property, PyObject *value)
{
    py_options *self = (py_options *)object;
    PyObject *args[2] = {object, value};
    char signature[256], kind[128];
    const char *type = self->session ? "SessionOptions" : "RunOptions";
    PyOS_snprintf(kind, sizeof kind, "%s.%s", self->st->home,
                  property->enumeration ? property->enumeration : "");
    const char *wanted = property->kind == 'b'   ? "bool"
                         : property->kind == 's' ? "str"
                         : property->kind == 'e' ? kind
                                                 : "typing.SupportsInt | typing.SupportsIndex";
    PyOS_snprintf(signature, sizeof signature, "(arg0: %s.%s, arg1: %s) -> None", self->st->home,
                  type, wanted);
    return py_incompatible("", signature, args, 2);
}

static int property_set(PyObject *object, PyObject *value, void *closure)
{
    py_options *self = (py_options *)object;
    const struct property *property = closure;
    if (!value) {
        PyErr_Format(PyExc_AttributeError, "can't delete attribute '%s'", property->name);
        return -1;
    }
    PyObject *fits = fit_value(self->st, property, value);
    if (!fits) {
        PyErr_Clear();
        return raise_unfit(object, property, value);
    }
    PyObject *bytes = property->kind == 's' ? PyUnicode_AsUTF8String(fits) : NULL;
    long number = property->kind == 's' ? 0 : PyLong_AsLong(fits);
    int failed = PyErr_Occurred() ? -1 : 0;
    if (!failed && property->apply)
        failed = py_check_plain(
            self->st, property->apply(self, number, bytes ? PyBytes_AsString(bytes) : NULL));
    if (!failed) failed = PyDict_SetItemString(self->values, property->name, fits);
    Py_XDECREF(bytes);
    Py_DECREF(fits);
    return failed;
}

/* ---- calls ---- */

/* Notes a call that succeeded; takes `args`. */
PyObject *py_options_note(py_options *self, const char *method, PyObject *args)
{
    PyObject *call = args ? Py_BuildValue("(sN)", method, args) : NULL;
    const int failed = call ? PyList_Append(self->calls, call) : -1;
    Py_XDECREF(call);
    if (failed) return NULL;
    Py_RETURN_NONE;
}

/* Raises a TypeError for arguments of another type than str. */
static int want_texts(PyObject *object, const char *method, const char *rest,
                      PyObject *const *found, int count)
{
    py_options *self = (py_options *)object;
    char signature[256];
    PyObject *shown[4] = {object};
    for (int i = 0; i < count; i++)
        shown[i + 1] = found[i];
    bool fits = true;
    for (int i = 0; i < count; i++)
        fits = fits && PyUnicode_Check(found[i]);
    if (fits) return 0;
    PyOS_snprintf(signature, sizeof signature, "(self: %s.%s, %s", self->st->home,
                  self->session ? "SessionOptions" : "RunOptions", rest);
    return py_incompatible(method, signature, shown, count + 1);
}

static PyObject *add_entry(PyObject *object, PyObject *const *args, Py_ssize_t count,
                           PyObject *keywords, const char *method)
{
    static const char *const names[] = {"key", "value", NULL};
    py_options *self = (py_options *)object;
    PyObject *found[2];
    if (py_arguments(method, names, 2, args, count, keywords, found) < 0) return NULL;
    if (want_texts(object, method, "arg0: str, arg1: str) -> None", found, 2) < 0) return NULL;
    PyObject *key = py_utf8(found[0], "key"), *value = py_utf8(found[1], "value");
    int failed = key && value ? 0 : -1;
    if (!failed) {
        const char *k = PyBytes_AsString(key), *v = PyBytes_AsString(value);
        failed =
            py_check_plain(self->st, self->session ? API->AddSessionConfigEntry(self->session, k, v)
                                                   : API->AddRunConfigEntry(self->run, k, v));
    }
    Py_XDECREF(key);
    Py_XDECREF(value);
    return failed ? NULL : py_options_note(self, method, Py_BuildValue("(OO)", found[0], found[1]));
}

static PyObject *add_session_entry(PyObject *object, PyObject *const *args, Py_ssize_t count,
                                   PyObject *keywords)
{
    return add_entry(object, args, count, keywords, "add_session_config_entry");
}

static PyObject *add_run_entry(PyObject *object, PyObject *const *args, Py_ssize_t count,
                               PyObject *keywords)
{
    return add_entry(object, args, count, keywords, "add_run_config_entry");
}

static PyObject *read_entry(py_options *self, const char *key)
{
    int has = 0;
    size_t size = 0;
    if (self->run) {
        const char *text = API->GetRunConfigEntry(self->run, key);
        if (text) return PyUnicode_FromString(text);
        return PyErr_Format(PyExc_RuntimeError,
                            "RunOptions does not have configuration with key: %s", key);
    }
    if (py_check_plain(self->st, API->HasSessionConfigEntry(self->session, key, &has)) < 0)
        return NULL;
    if (!has)
        return PyErr_Format(PyExc_RuntimeError,
                            "SessionOptions does not have configuration with key: %s", key);
    API->ReleaseStatus(API->GetSessionConfigEntry(self->session, key, NULL, &size));
    char *text = PyMem_Malloc(size + 1);
    PyObject *value = NULL;
    if (!text)
        PyErr_NoMemory();
    else if (py_check_plain(self->st,
                            API->GetSessionConfigEntry(self->session, key, text, &size)) == 0)
        value = PyUnicode_FromString(text);
    PyMem_Free(text);
    return value;
}

static PyObject *get_entry(PyObject *object, PyObject *key)
{
    PyObject *bytes = py_utf8(key, "key");
    PyObject *value = bytes ? read_entry((py_options *)object, PyBytes_AsString(bytes)) : NULL;
    Py_XDECREF(bytes);
    return value;
}

static PyObject *override_dim(PyObject *object, PyObject *const *args, Py_ssize_t count,
                              PyObject *keywords, const char *method, bool by_name)
{
    static const char *const names[] = {"name", "value", NULL};
    py_options *self = (py_options *)object;
    PyObject *found[2];
    if (py_arguments(method, names, 2, args, count, keywords, found) < 0) return NULL;
    const long long dim = PyLong_AsLongLong(found[1]);
    PyObject *name = PyErr_Occurred() ? NULL : py_utf8(found[0], "name");
    if (!name) return NULL;
    const int failed = py_check_plain(
        self->st, (by_name ? API->AddFreeDimensionOverrideByName : API->AddFreeDimensionOverride)(
                      self->session, PyBytes_AsString(name), dim));
    Py_DECREF(name);
    return failed ? NULL : py_options_note(self, method, Py_BuildValue("(OO)", found[0], found[1]));
}

static PyObject *override_by_name(PyObject *object, PyObject *const *args, Py_ssize_t count,
                                  PyObject *keywords)
{
    return override_dim(object, args, count, keywords, "add_free_dimension_override_by_name", true);
}

static PyObject *override_by_denotation(PyObject *object, PyObject *const *args, Py_ssize_t count,
                                        PyObject *keywords)
{
    return override_dim(object, args, count, keywords, "add_free_dimension_override_by_denotation",
                        false);
}

static PyObject *add_initializer(PyObject *object, PyObject *const *args, Py_ssize_t count,
                                 PyObject *keywords)
{
    static const char *const names[] = {"name", "value", NULL};
    py_options *self = (py_options *)object;
    PyObject *found[2];
    if (py_arguments("add_initializer", names, 2, args, count, keywords, found) < 0) return NULL;
    if (!PyObject_TypeCheck(found[1], self->st->value)) {
        PyErr_SetString(PyExc_RuntimeError, "The provided Python object must be an OrtValue");
        return NULL;
    }
    PyObject *name = py_utf8(found[0], "name");
    if (!name) return NULL;
    const int failed = py_check(self->st, API->AddInitializer(self->session, PyBytes_AsString(name),
                                                              py_unwrap_value(self->st, found[1])));
    Py_DECREF(name);
    return failed ? NULL
                  : py_options_note(self, "add_initializer",
                                    Py_BuildValue("(OO)", found[0], found[1]));
}

/* Calls the library with arrays of names and values out of two lists of `count` items. */
static int add_external(py_options *self, PyObject *names, PyObject *values, Py_ssize_t count)
{
    const char **texts = PyMem_Malloc((size_t)(count + 1) * sizeof *texts);
    const OrtValue **found = PyMem_Malloc((size_t)(count + 1) * sizeof *found);
    PyObject *held = PyList_New(0);
    int failed = texts && found && held ? 0 : -1;
    for (Py_ssize_t i = 0; !failed && i < count; i++) {
        PyObject *name = py_utf8(PyList_GetItem(names, i), "name");
        found[i] = py_unwrap_value(self->st, PyList_GetItem(values, i));
        failed = name && found[i] ? PyList_Append(held, name) : -1;
        if (!failed) texts[i] = PyBytes_AsString(name);
        Py_XDECREF(name);
    }
    if (!failed)
        failed = py_check(self->st,
                          API->AddExternalInitializers(self->session, texts, found, (size_t)count));
    PyMem_Free(texts);
    PyMem_Free(found);
    Py_XDECREF(held);
    return failed;
}

static PyObject *add_external_initializers(PyObject *object, PyObject *const *args,
                                           Py_ssize_t count, PyObject *keywords)
{
    static const char *const names[] = {"names", "values", NULL};
    py_options *self = (py_options *)object;
    PyObject *found[2];
    if (py_arguments("add_external_initializers", names, 2, args, count, keywords, found) < 0)
        return NULL;
    PyObject *texts = PySequence_List(found[0]), *values = PySequence_List(found[1]);
    int failed = texts && values ? 0 : -1;
    if (!failed && PyList_Size(texts) != PyList_Size(values)) {
        PyErr_SetString(PyExc_RuntimeError,
                        "Expecting names and ort_values lists to have equal length");
        failed = -1;
    }
    if (!failed) failed = add_external(self, texts, values, PyList_Size(texts));
    PyObject *done = failed ? NULL
                            : py_options_note(self, "add_external_initializers",
                                              Py_BuildValue("(OO)", texts, values));
    Py_XDECREF(texts);
    Py_XDECREF(values);
    return done;
}

static PyObject *register_library(PyObject *object, PyObject *path)
{
    py_options *self = (py_options *)object;
    PyObject *bytes = NULL;
    if (!PyUnicode_FSConverter(path, &bytes)) return NULL;
    const int failed = py_check(
        self->st, API->RegisterCustomOpsLibrary_V2(self->session, PyBytes_AsString(bytes)));
    Py_DECREF(bytes);
    return failed
               ? NULL
               : py_options_note(self, "register_custom_ops_library", Py_BuildValue("(O)", path));
}

/* ---- providers ---- */

/* Texts of a dict's keys and values, str() of each; *held keeps them. */
static int option_texts(PyObject *options, const char ***keys, const char ***values, size_t *count,
                        PyObject **held)
{
    PyObject *items = options ? PyMapping_Items(options) : PyList_New(0);
    if (!items) return -1;
    *count = (size_t)PyList_Size(items);
    *keys = PyMem_Malloc((*count + 1) * sizeof **keys);
    *values = PyMem_Malloc((*count + 1) * sizeof **values);
    *held = PyList_New(0);
    int failed = *keys && *values && *held ? 0 : -1;
    for (size_t i = 0; !failed && i < *count; i++) {
        PyObject *item = PyList_GetItem(items, (Py_ssize_t)i);
        for (int part = 0; !failed && part < 2; part++) {
            PyObject *text = PyObject_Str(PyTuple_GetItem(item, part));
            PyObject *bytes = text ? PyUnicode_AsUTF8String(text) : NULL;
            failed = bytes ? PyList_Append(*held, bytes) : -1;
            if (!failed) (part ? *values : *keys)[i] = PyBytes_AsString(bytes);
            Py_XDECREF(bytes);
            Py_XDECREF(text);
        }
    }
    Py_DECREF(items);
    return failed;
}

int py_options_provider(py_options *self, PyObject *name, PyObject *options, bool is_late)
{
    const char **keys = NULL, **values = NULL;
    size_t count = 0;
    PyObject *held = NULL, *text = py_utf8(name, "provider");
    int failed = text ? option_texts(options, &keys, &values, &count, &held) : -1;
    if (!failed)
        failed = py_check(
            self->st, (is_late ? ort_provider_append : API->SessionOptionsAppendExecutionProvider)(
                          self->session, PyBytes_AsString(text), keys, values, count));
    PyMem_Free(keys);
    PyMem_Free(values);
    Py_XDECREF(held);
    Py_XDECREF(text);
    return failed;
}

static PyObject *add_provider(PyObject *object, PyObject *const *args, Py_ssize_t count,
                              PyObject *keywords)
{
    static const char *const names[] = {"name", "options", NULL};
    py_options *self = (py_options *)object;
    PyObject *found[2];
    if (py_arguments("add_provider", names, 1, args, count, keywords, found) < 0) return NULL;
    if (py_options_provider(self, found[0], found[1], false) < 0) return NULL;
    return py_options_note(self, "add_provider",
                           found[1] ? Py_BuildValue("(OO)", found[0], found[1])
                                    : Py_BuildValue("(O)", found[0]));
}

static PyObject *has_providers(PyObject *object, PyObject *unused)
{
    py_options *self = (py_options *)object;
    (void)unused;
    for (Py_ssize_t i = 0; i < PyList_Size(self->calls); i++) {
        PyObject *method = PyTuple_GetItem(PyList_GetItem(self->calls, i), 0);
        if (PyUnicode_CompareWithASCIIString(method, "add_provider") == 0) Py_RETURN_TRUE;
    }
    Py_RETURN_FALSE;
}

static PyObject *not_here(PyObject *object, PyObject *args)
{
    py_options *self = (py_options *)object;
    (void)args;
    PyErr_SetString(
        self->st->errors[ORT_NOT_IMPLEMENTED],
        "devices and compiled contexts belong to providers that Sardonyx does not have");
    return NULL;
}

static PyObject *cancel_load(PyObject *object, PyObject *is_cancel)
{
    py_options *self = (py_options *)object;
    const int is = PyObject_IsTrue(is_cancel);
    if (is < 0 ||
        py_check(self->st, API->SessionOptionsSetLoadCancellationFlag(self->session, is)) < 0)
        return NULL;
    return py_options_note(self, "set_load_cancellation_flag", Py_BuildValue("(O)", is_cancel));
}

static PyObject *add_adapter(PyObject *object, PyObject *adapter)
{
    py_options *self = (py_options *)object;
    const OrtLoraAdapter *loaded = py_adapter_of(self->st, adapter);
    if (!loaded || py_check(self->st, API->RunOptionsAddActiveLoraAdapter(self->run, loaded)) < 0)
        return NULL;
    return py_options_note(self, "add_active_adapter", Py_BuildValue("(O)", adapter));
}

static PyObject *accept(PyObject *object, PyObject *args)
{
    (void)object;
    (void)args;
    Py_RETURN_NONE;
}

/* ---- making, copying, pickling ---- */

static int make_options(py_options *self, const struct property *properties, size_t count)
{
    self->values = PyDict_New();
    self->calls = PyList_New(0);
    if (!self->values || !self->calls) return -1;
    for (size_t i = 0; i < count; i++)
        if (set_default(self, properties[i].name, default_of(self, &properties[i])) < 0) return -1;
    return 0;
}

static PyObject *session_options_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    (void)args;
    (void)keywords;
    py_options *self = (py_options *)py_new(type);
    if (!self) return NULL;
    const size_t count = sizeof session_properties / sizeof session_properties[0];
    if (py_check(self->st, API->CreateSessionOptions(&self->session)) < 0 ||
        make_options(self, session_properties, count) < 0)
        Py_CLEAR(self);
    return (PyObject *)self;
}

static PyObject *run_options_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    (void)args;
    (void)keywords;
    py_options *self = (py_options *)py_new(type);
    if (!self) return NULL;
    const size_t count = sizeof run_properties / sizeof run_properties[0];
    if (py_check(self->st, API->CreateRunOptions(&self->run)) < 0 ||
        make_options(self, run_properties, count) < 0)
        Py_CLEAR(self);
    return (PyObject *)self;
}

static void options_dealloc(PyObject *object)
{
    py_options *self = (py_options *)object;
    const OrtApi *api = OrtGetApiBase()->GetApi(ORT_API_VERSION);
    if (self->session) api->ReleaseSessionOptions(self->session);
    if (self->run) api->ReleaseRunOptions(self->run);
    Py_CLEAR(self->values);
    Py_CLEAR(self->calls);
    py_delete(object);
}

static PyObject *options_reduce(PyObject *object, PyObject *unused)
{
    py_options *self = (py_options *)object;
    (void)unused;
    return Py_BuildValue("(O()(OO))", Py_TYPE(object), self->values, self->calls);
}

/* Sets and calls anew what another object was given. */
static PyObject *options_setstate(PyObject *object, PyObject *state)
{
    PyObject *values = NULL, *calls = NULL, *key = NULL, *value = NULL;
    Py_ssize_t place = 0;
    if (!PyArg_ParseTuple(state, "OO", &values, &calls)) return NULL;
    PyObject *mine = ((py_options *)object)->values;
    while (PyDict_Next(values, &place, &key, &value)) {
        PyObject *old = PyDict_GetItem(mine, key);
        const int same = old ? PyObject_RichCompareBool(old, value, Py_EQ) : 0;
        if (same < 0 || (!same && PyObject_SetAttr(object, key, value) < 0)) return NULL;
    }
    for (Py_ssize_t i = 0; i < PyList_Size(calls); i++) {
        PyObject *call = PyList_GetItem(calls, i);
        PyObject *method = PyObject_GetAttr(object, PyTuple_GetItem(call, 0));
        PyObject *done = method ? PyObject_CallObject(method, PyTuple_GetItem(call, 1)) : NULL;
        Py_XDECREF(method);
        Py_XDECREF(done);
        if (!done) return NULL;
    }
    Py_RETURN_NONE;
}

PyObject *py_options_new(py_state *st)
{
    return session_options_new(st->session_options, NULL, NULL);
}

py_options *py_options_copy(py_state *st, py_options *self)
{
    PyObject *copy = py_options_new(st);
    if (!copy || !self) return (py_options *)copy;
    PyObject *state = PyTuple_Pack(2, self->values, self->calls);
    PyObject *done = state ? options_setstate(copy, state) : NULL;
    Py_XDECREF(state);
    Py_XDECREF(done);
    if (!done) Py_CLEAR(copy);
    return (py_options *)copy;
}

int py_run_options(py_state *st, PyObject *object, const OrtRunOptions **out)
{
    *out = NULL;
    if (!object || object == Py_None) return 0;
    if (!PyObject_TypeCheck(object, st->run_options)) return -1;
    *out = ((py_options *)object)->run;
    return 0;
}

/* ---- the classes ---- */

#define SESSION(i, name, doc)                                                                      \
    {                                                                                              \
        name, property_get, property_set, doc, (void *)(uintptr_t)&session_properties[i]           \
    }
#define RUN(i, name, doc)                                                                          \
    {                                                                                              \
        name, property_get, property_set, doc, (void *)(uintptr_t)&run_properties[i]               \
    }

static PyGetSetDef session_getset[] = {
    SESSION(0, "enable_cpu_mem_arena", "bool: keep memory between runs. True."),
    SESSION(1, "enable_mem_pattern", "bool: taken for compatibility. True."),
    SESSION(2, "enable_mem_reuse", "bool: taken for compatibility. True."),
    SESSION(3, "enable_profiling", "bool: write a trace of every node; see end_profiling. False."),
    SESSION(4, "execution_mode", "ExecutionMode. ORT_SEQUENTIAL."),
    SESSION(5, "execution_order", "ExecutionOrder. DEFAULT."),
    SESSION(6, "graph_optimization_level", "GraphOptimizationLevel. ORT_ENABLE_ALL."),
    SESSION(7, "inter_op_num_threads", "int: taken for compatibility. 0."),
    SESSION(8, "intra_op_num_threads", "int: threads a run may use; 0: those of this machine."),
    SESSION(9, "log_severity_level", "int: 0 verbose to 4 fatal; -1: the default."),
    SESSION(10, "log_verbosity_level", "int: taken for compatibility. 0."),
    SESSION(11, "logid", "str: what log lines carry."),
    SESSION(12, "optimized_model_filepath", "str: where to write the rewritten model; '': not."),
    SESSION(13, "profile_file_prefix", "str: how the trace's file name begins."),
    SESSION(14, "use_deterministic_compute", "bool: results are always deterministic. False."),
    SESSION(15, "use_per_session_threads", "bool: False shares the threads of the process."),
    {0},
};

static PyMethodDef session_methods[] = {
    PY_NAMED("add_session_config_entry", add_session_entry, "($self, key, value)",
             "A setting by its name."),
    {"get_session_config_entry", get_entry, METH_O,
     PY_DOC("get_session_config_entry", "($self, key, /)",
            "-> str\n\nRuntimeError when it was not set.")},
    PY_NAMED("add_free_dimension_override_by_name", override_by_name, "($self, name, value)",
             "Gives the symbolic dimension `name` a length."),
    PY_NAMED("add_free_dimension_override_by_denotation", override_by_denotation,
             "($self, name, value)", "Gives the dimensions of that denotation a length."),
    PY_NAMED("add_initializer", add_initializer, "($self, name, value)",
             "Replaces an initializer of the model; the memory is shared."),
    PY_NAMED("add_external_initializers", add_external_initializers, "($self, names, values)",
             "Gives initializers that the model keeps outside of its file."),
    {"register_custom_ops_library", register_library, METH_O,
     PY_DOC("register_custom_ops_library", "($self, path, /)",
            "Loads operators from a shared library. Fail when it cannot be loaded.")},
    PY_NAMED("add_provider", add_provider, "($self, name, options)",
             "An execution provider; one that is unknown or does not start is an error."),
    PY_ASK("has_providers", has_providers, "-> bool"),
    {"add_provider_for_devices", not_here, METH_VARARGS,
     PY_DOC("add_provider_for_devices", "($self, devices, options, /)", "NotImplemented.")},
    {"set_provider_selection_policy", accept, METH_VARARGS,
     PY_DOC("set_provider_selection_policy", "($self, policy, /)",
            "Taken: there is the CPU to choose.")},
    {"set_provider_selection_policy_delegate", not_here, METH_VARARGS,
     PY_DOC("set_provider_selection_policy_delegate", "($self, delegate, /)", "NotImplemented.")},
    {"set_ep_context_data_read_func", not_here, METH_VARARGS,
     PY_DOC("set_ep_context_data_read_func", "($self, function, /)", "NotImplemented.")},
    {"clear_ep_context_data_read_func", accept, METH_VARARGS,
     PY_DOC("clear_ep_context_data_read_func", "($self)", "Does nothing: none is called.")},
    {"set_load_cancellation_flag", cancel_load, METH_O,
     PY_DOC("set_load_cancellation_flag", "($self, value, /)",
            "True: sessions that are made with these options end in ModelLoadCanceled.")},
    PY_NAMED("add_external_initializers_from_files_in_memory", py_add_files,
             "($self, names, buffers, lengths)",
             "Files with the data of initializers, by the names that the model has for them; the "
             "bytes are copied."),
    {"_compile", py_compile_model, METH_VARARGS, NULL},
    {"__reduce__", options_reduce, METH_NOARGS, NULL},
    {"__setstate__", options_setstate, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef run_getset[] = {
    RUN(0, "log_severity_level", "int: 0 verbose to 4 fatal; -1: the session's."),
    RUN(1, "log_verbosity_level", "int: taken for compatibility. 0."),
    RUN(2, "logid", "str: what log lines carry."),
    RUN(3, "only_execute_path_to_fetches", "bool: only what the outputs need is ever run. False."),
    RUN(4, "terminate", "bool: True ends the runs that have these options, also those under way."),
    {0},
};

static PyMethodDef run_methods[] = {
    PY_NAMED("add_run_config_entry", add_run_entry, "($self, key, value)",
             "A setting by its name."),
    {"get_run_config_entry", get_entry, METH_O,
     PY_DOC("get_run_config_entry", "($self, key, /)",
            "-> str\n\nRuntimeError when it was not set.")},
    {"add_active_adapter", add_adapter, METH_O,
     PY_DOC("add_active_adapter", "($self, adapter, /)",
            "Runs with these options feed the parameters of the adapter, which is kept.")},
    {"__reduce__", options_reduce, METH_NOARGS, NULL},
    {"__setstate__", options_setstate, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot session_slots[] = {
    {Py_tp_doc, "How a session is made. Every property may be set until then."},
    {Py_tp_new, session_options_new},
    {Py_tp_dealloc, options_dealloc},
    {Py_tp_getset, session_getset},
    {Py_tp_methods, session_methods},
    {0, NULL},
};

static PyType_Slot run_slots[] = {
    {Py_tp_doc, "How a run is done."}, {Py_tp_new, run_options_new},
    {Py_tp_dealloc, options_dealloc},  {Py_tp_getset, run_getset},
    {Py_tp_methods, run_methods},      {0, NULL},
};

static PyObject *default_options(PyObject *module, PyObject *unused)
{
    (void)unused;
    return py_options_new(py_state_of_module(module));
}

int py_add_options(py_state *st)
{
    static PyMethodDef functions[] = {
        {"get_default_session_options", default_options, METH_NOARGS,
         PY_DOC("get_default_session_options", "($module)", "-> SessionOptions")},
        {NULL, NULL, 0, NULL},
    };
    PyType_Spec session = {
        .basicsize = sizeof(py_options), .flags = Py_TPFLAGS_BASETYPE, .slots = session_slots};
    PyType_Spec run = {
        .basicsize = sizeof(py_options), .flags = Py_TPFLAGS_BASETYPE, .slots = run_slots};
    if (py_add_type(st, &st->session_options, &session) < 0) return -1;
    if (py_add_type(st, &st->run_options, &run) < 0) return -1;
    return PyModule_AddFunctions(st->module, functions);
}
