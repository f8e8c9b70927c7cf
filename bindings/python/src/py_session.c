/* SPDX-License-Identifier: Apache-2.0
 * InferenceSession: where the model comes from, providers, what it tells of itself, pickling. What
 * is loaded is an object of its own (LoadedModel), so that set_providers may replace it while
 * another thread runs. Runs are in py_run.c. */
#include "py_state.h"

#include <ort_inside.h>
#include <string.h>

/* ---- what is loaded ---- */

static void loaded_dealloc(PyObject *object)
{
    py_loaded *self = (py_loaded *)object;
    const OrtApi *api = OrtGetApiBase()->GetApi(ORT_API_VERSION);
    if (self->session) {
        PyThreadState *thread = PyEval_SaveThread();
        api->ReleaseSession(self->session);
        PyEval_RestoreThread(thread);
    }
    for (size_t i = 0; self->in_names && i < self->count_in + self->count_init; i++)
        Py_XDECREF(self->in_names[i]);
    for (size_t i = 0; self->out_names && i < self->count_out; i++)
        Py_XDECREF(self->out_names[i]);
    PyMem_Free(self->in_names);
    PyMem_Free(self->out_names);
    PyMem_Free((void *)self->in_texts);
    PyMem_Free((void *)self->out_texts);
    PyMem_Free(self->wants);
    Py_CLEAR(self->in_bytes);
    Py_CLEAR(self->out_bytes);
    Py_CLEAR(self->inputs);
    Py_CLEAR(self->outputs);
    Py_CLEAR(self->initializers);
    Py_CLEAR(self->metadata);
    py_delete(object);
}

/* Names and their UTF-8 of a list of NodeArgs, behind `begin` names that are there. */
static int keep_names(PyObject *nodes, PyObject **names, const char **texts, PyObject *bytes,
                      size_t begin)
{
    for (Py_ssize_t i = 0; i < PyList_Size(nodes); i++) {
        PyObject *name = PyObject_GetAttrString(PyList_GetItem(nodes, i), "name");
        if (!name) return -1;
        PyUnicode_InternInPlace(&name);
        names[begin + (size_t)i] = name;
        PyObject *utf8 = PyUnicode_AsUTF8String(name);
        const int failed = utf8 ? PyList_Append(bytes, utf8) : -1;
        if (!failed) texts[begin + (size_t)i] = PyBytes_AsString(utf8);
        Py_XDECREF(utf8);
        if (failed) return -1;
    }
    return 0;
}

static int describe(py_loaded *self)
{
    py_state *st = self->st;
    size_t in = 0, init = 0, out = 0;
    if (py_check(st, st->api->SessionGetInputCount(self->session, &in)) < 0 ||
        py_check(st, st->api->SessionGetOverridableInitializerCount(self->session, &init)) < 0 ||
        py_check(st, st->api->SessionGetOutputCount(self->session, &out)) < 0)
        return -1;
    self->wants = py_calloc(in + init + 1, sizeof *self->wants);
    self->in_names = py_calloc(in + init + 1, sizeof *self->in_names);
    self->in_texts = py_calloc(in + init + 1, sizeof *self->in_texts);
    self->out_names = py_calloc(out + 1, sizeof *self->out_names);
    self->out_texts = py_calloc(out + 1, sizeof *self->out_texts);
    self->in_bytes = PyList_New(0);
    self->out_bytes = PyList_New(0);
    if (!self->wants || !self->in_names || !self->in_texts || !self->out_names ||
        !self->out_texts || !self->in_bytes || !self->out_bytes) {
        PyErr_NoMemory();
        return -1;
    }
    self->count_in = in;
    self->count_init = init;
    self->count_out = out;
    if (!(self->inputs = py_node_args(st, self->session, 0, self->wants))) return -1;
    if (!(self->outputs = py_node_args(st, self->session, 1, NULL))) return -1;
    if (!(self->initializers = py_node_args(st, self->session, 2, self->wants + in))) return -1;
    if (!(self->metadata = py_metadata_of(st, self->session))) return -1;
    if (keep_names(self->inputs, self->in_names, self->in_texts, self->in_bytes, 0) < 0) return -1;
    if (keep_names(self->initializers, self->in_names, self->in_texts, self->in_bytes, in) < 0)
        return -1;
    if (keep_names(self->outputs, self->out_names, self->out_texts, self->out_bytes, 0) < 0)
        return -1;
    for (size_t i = 0; i < in + init; i++)
        self->wants[i].name = self->in_texts[i];
    return 0;
}

/* ONNX Runtime reads files in another order here than behind its C functions, and words two faults
 * of them another way. */
static int raise_load(py_state *st, OrtStatus *status, const char *path)
{
    static const struct {
        const char *end;
        OrtErrorCode code;
        const char *text;
    } known[] = {
        {"instead.", ORT_INVALID_PROTOBUF,
         "7 : INVALID_PROTOBUF : Load model from %s failed:"
         "Protobuf parsing failed."},
        {"ModelProto does not have a graph.", ORT_INVALID_ARGUMENT,
         "2 : INVALID_ARGUMENT : Load model from %s failed:No graph was found in the protobuf."},
    };
    const char *text = status && path ? st->api->GetErrorMessage(status) : "";
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        const size_t length = strlen(text), end = strlen(known[i].end);
        if (length < end || strcmp(text + length - end, known[i].end) != 0) continue;
        PyObject *told = PyUnicode_FromFormat(known[i].text, path);
        if (told) PyErr_Format(st->errors[known[i].code], "[ONNXRuntimeError] : %U", told);
        Py_XDECREF(told);
        st->api->ReleaseStatus(status);
        return -1;
    }
    return py_check(st, status);
}

/* The path as the file system has it, or the model's bytes: one of them is NULL. */
PyObject *py_load(py_state *st, PyObject *path, PyObject *bytes, py_options *options)
{
    OrtStatus *status;
    PyObject *file = NULL;
    if (path && !PyUnicode_FSConverter(path, &file)) return NULL;
    py_loaded *self = (py_loaded *)py_new(st->loaded);
    if (self) {
        PyThreadState *thread = PyEval_SaveThread();
        if (file)
            status = st->api->CreateSession(st->env, PyBytes_AsString(file), options->session,
                                            &self->session);
        else
            status = st->api->CreateSessionFromArray(st->env, PyBytes_AsString(bytes),
                                                     (size_t)PyBytes_Size(bytes), options->session,
                                                     &self->session);
        PyEval_RestoreThread(thread);
        if (raise_load(st, status, file ? PyBytes_AsString(file) : NULL) < 0) {
            self->session = NULL;
            Py_CLEAR(self);
        } else if (describe(self) < 0) {
            Py_CLEAR(self);
        }
    }
    Py_XDECREF(file);
    return (PyObject *)self;
}

static PyType_Slot loaded_slots[] = {
    {Py_tp_doc, "A model that is loaded: what an InferenceSession runs."},
    {Py_tp_dealloc, loaded_dealloc},
    {0, NULL},
};

py_loaded *py_session_loaded(PyObject *object)
{
    py_session *self = (py_session *)object;
    PY_LOCK(self);
    py_loaded *loaded = self->loaded;
    Py_XINCREF((PyObject *)loaded);
    PY_FREE(self);
    if (!loaded)
        PyErr_SetString(PyExc_RuntimeError, "the session has no model: __init__ was not called");
    return loaded;
}

/* ---- providers ---- */

static int raise_value(const char *text)
{
    PyErr_SetString(PyExc_ValueError, text);
    return -1;
}

static bool is_sequence(PyObject *object)
{
    return PySequence_Check(object) && !PyDict_Check(object) && !PyUnicode_Check(object) &&
           !PyBytes_Check(object) && PyObject_HasAttrString(object, "__getitem__");
}

/* name -> options into `table`; the first of two is kept, as ONNX Runtime does. */
static int put_provider(PyObject *list, PyObject *table, PyObject *name, PyObject *options)
{
    const int there = PySequence_Contains(list, name);
    if (there) return there < 0 ? -1 : 0;
    PyObject *texts = PyDict_New();
    PyObject *key, *value;
    Py_ssize_t place = 0;
    int failed = texts ? 0 : -1;
    while (!failed && options && PyDict_Next(options, &place, &key, &value)) {
        PyObject *k = PyObject_Str(key), *v = PyObject_Str(value);
        failed = k && v ? PyDict_SetItem(texts, k, v) : -1;
        Py_XDECREF(k);
        Py_XDECREF(v);
    }
    if (!failed) failed = PyDict_SetItem(table, name, texts);
    if (!failed) failed = PyList_Append(list, name);
    Py_XDECREF(texts);
    return failed;
}

/* One entry of `providers`: a name or a pair (name, dict). */
static int read_provider(PyObject *entry, PyObject *options, PyObject *list, PyObject *table)
{
    if (PyUnicode_Check(entry)) return put_provider(list, table, entry, options);
    if (!PyTuple_Check(entry) || PyTuple_Size(entry) != 2 ||
        !PyUnicode_Check(PyTuple_GetItem(entry, 0)) || !PyDict_Check(PyTuple_GetItem(entry, 1)))
        return raise_value("'providers' values must be either strings or (string, dict) tuples.");
    if (options)
        return raise_value("Only string values for 'providers' are supported if 'provider_options' "
                           "is given.");
    return put_provider(list, table, PyTuple_GetItem(entry, 0), PyTuple_GetItem(entry, 1));
}

/* Fills the list of names and the dict of options by name from the arguments. */
static int read_providers(const py_state *st, PyObject *providers, PyObject *options,
                          PyObject *list, PyObject *table)
{
    if (!providers || providers == Py_None) return 0;
    if (options == Py_None) options = NULL;
    if (py_is_own(st) && !options && PyUnicode_Check(providers) &&
        PyUnicode_CompareWithASCIIString(providers, "auto") == 0)
        return put_provider(list, table, providers, NULL);
    if (!is_sequence(providers)) return raise_value("'providers' should be a sequence.");
    if (options && !is_sequence(options))
        return raise_value("'provider_options' should be a sequence.");
    PyObject *names = PySequence_List(providers);
    PyObject *each = options ? PySequence_List(options) : NULL;
    int failed = names && (each || !options) ? 0 : -1;
    if (!failed && each && PyList_Size(each) != PyList_Size(names))
        failed = raise_value("'providers' and 'provider_options' should be the same length if both "
                             "are given.");
    for (Py_ssize_t i = 0; !failed && i < PyList_Size(names); i++) {
        PyObject *with = each ? PyList_GetItem(each, i) : NULL;
        if (with && !PyDict_Check(with))
            failed = raise_value("'provider_options' values must be dicts.");
        else
            failed = read_provider(PyList_GetItem(names, i), with, list, table);
    }
    Py_XDECREF(names);
    Py_XDECREF(each);
    return failed;
}

static int use_providers(py_options *options, PyObject *list, PyObject *table)
{
    int failed = 0;
    for (Py_ssize_t i = 0; !failed && i < PyList_Size(list); i++) {
        PyObject *name = PyList_GetItem(list, i);
        failed = py_options_provider(options, name, PyDict_GetItem(table, name), true);
    }
    return failed;
}

/* What runs, while it is asked for. */
struct running {
    py_state *st;
    PyObject *list, *table, *given; /* names, options by name; options as they were given */
    int failed;
};

/* The options of a provider, which may have been given under another of its names. */
static PyObject *options_given(PyObject *given, const char *name)
{
    char other[256];
    PyObject *found = PyDict_GetItemString(given, name);
    if (found) return found;
    if (strcmp(name, "ort:CPUExecutionProvider") == 0) return PyDict_GetItemString(given, "ort");
    PyOS_snprintf(other, sizeof other, "ort:%s", name);
    return PyDict_GetItemString(given, other);
}

static void note_running(const char *name, void *user)
{
    struct running *to = user;
    PyObject *options = options_given(to->given, name);
    /* In the package that stands in for onnxruntime it has the name it has there. */
    if (!py_is_own(to->st) && strcmp(name, "ort:CPUExecutionProvider") == 0) name += 4;
    PyObject *text = PyUnicode_FromString(name);
    if (!text || put_provider(to->list, to->table, text, options) < 0) to->failed = -1;
    Py_XDECREF(text);
}

/* Puts what really runs in place of what was asked for. */
static int tell_providers(py_loaded *loaded, PyObject **list, PyObject **table)
{
    struct running to = {loaded->st, PyList_New(0), PyDict_New(), *table, 0};
    if (!to.list || !to.table) to.failed = -1;
    if (!to.failed &&
        py_check(loaded->st, ort_session_providers(loaded->session, note_running, &to)) < 0)
        to.failed = -1;
    if (to.failed) {
        Py_XDECREF(to.list);
        Py_XDECREF(to.table);
        return -1;
    }
    Py_DECREF(*list);
    Py_DECREF(*table);
    *list = to.list;
    *table = to.table;
    return 0;
}

/* Makes the session anew: (providers, provider_options, disabled_optimizers) -> None. */
static int create(py_session *self, PyObject *providers, PyObject *provider_options)
{
    py_state *st = self->st;
    PyObject *list = PyList_New(0), *table = PyDict_New();
    py_options *given = (py_options *)(self->options == Py_None ? NULL : self->options);
    py_options *options = py_options_copy(st, given);
    int failed = list && table && options ? 0 : -1;
    if (!failed) failed = read_providers(self->st, providers, provider_options, list, table);
    if (!failed) failed = use_providers(options, list, table);
    PyObject *loaded = failed ? NULL : py_load(st, self->path, self->bytes, options);
    if (loaded && tell_providers((py_loaded *)loaded, &list, &table) < 0) Py_CLEAR(loaded);
    if (loaded) {
        PyObject *old[4] = {(PyObject *)self->loaded, self->options_used, self->providers,
                            self->provider_options};
        PY_LOCK(self);
        self->loaded = (py_loaded *)loaded;
        self->options_used = (PyObject *)options;
        self->providers = list;
        self->provider_options = table;
        PY_FREE(self);
        for (int i = 0; i < 4; i++)
            Py_XDECREF(old[i]);
        return 0;
    }
    Py_XDECREF(list);
    Py_XDECREF(table);
    Py_XDECREF((PyObject *)options);
    return -1;
}

static PyObject *session_create(PyObject *object, PyObject *args)
{
    PyObject *providers = NULL, *options = NULL, *disabled = NULL;
    if (!PyArg_ParseTuple(args, "OO|O", &providers, &options, &disabled)) return NULL;
    if (create((py_session *)object, providers, options) < 0) return NULL;
    Py_RETURN_NONE;
}

/* ---- making ---- */

static PyObject *session_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    (void)args;
    (void)keywords;
    return py_new(type);
}

/* Where the model comes from: a path or bytes. */
static int take_source(py_session *self, PyObject *source)
{
    Py_CLEAR(self->path);
    Py_CLEAR(self->bytes);
    if (PyBytes_Check(source)) {
        Py_INCREF(source);
        self->bytes = source;
        return 0;
    }
    if (PyUnicode_Check(source) || PyObject_HasAttrString(source, "__fspath__")) {
        self->path = PyOS_FSPath(source);
        return self->path ? 0 : -1;
    }
    if (PyByteArray_Check(source) || PyMemoryView_Check(source)) {
        self->bytes = PyBytes_FromObject(source);
        return self->bytes ? 0 : -1;
    }
    PyErr_Format(PyExc_TypeError, "Unable to load from type '%R'", Py_TYPE(source));
    return -1;
}

static int take_options(py_session *self, PyObject *options)
{
    if (options != Py_None && !PyObject_TypeCheck(options, self->st->session_options)) {
        PyErr_Format(PyExc_TypeError, "sess_options must be a SessionOptions, not %R",
                     Py_TYPE(options));
        return -1;
    }
    PyObject *old = self->options;
    Py_INCREF(options);
    self->options = options;
    Py_XDECREF(old);
    return 0;
}

/* Takes (path_or_bytes, sess_options, providers, provider_options) out of args and keywords; other
 * keywords are ONNX Runtime's own and change nothing here, but disabled_optimizers is passed on. */
static int read_init(PyObject *args, PyObject *keywords, PyObject **found)
{
    static const char *const names[] = {"path_or_bytes", "sess_options", "providers",
                                        "provider_options", "disabled_optimizers"};
    const Py_ssize_t count = PyTuple_Size(args);
    if (count > 4) {
        PyErr_Format(PyExc_TypeError,
                     "InferenceSession.__init__() takes from 2 to 5 positional arguments but %zd "
                     "were given",
                     count + 1);
        return -1;
    }
    for (int i = 0; i < 5; i++) {
        PyObject *named = keywords ? PyDict_GetItemString(keywords, names[i]) : NULL;
        found[i] = i < count ? PyTuple_GetItem(args, i) : named;
        if (i < count && named) {
            PyErr_Format(PyExc_TypeError,
                         "InferenceSession.__init__() got multiple values for argument '%s'",
                         names[i]);
            return -1;
        }
    }
    if (found[0]) return 0;
    PyErr_SetString(PyExc_TypeError, "InferenceSession.__init__() missing 1 required positional "
                                     "argument: 'path_or_bytes'");
    return -1;
}

static int session_init(PyObject *object, PyObject *args, PyObject *keywords)
{
    py_session *self = (py_session *)object;
    PyObject *found[5];
    if (read_init(args, keywords, found) < 0) return -1;
    if (take_source(self, found[0]) < 0) return -1;
    if (take_options(self, found[1] ? found[1] : Py_None) < 0) return -1;
    PyObject *given =
        Py_BuildValue("(OO)", found[2] ? found[2] : Py_None, found[3] ? found[3] : Py_None);
    Py_XDECREF(self->given);
    self->given = given;
    if (!given) return -1;
    /* Through the method, so that a derived class can have its own way with providers. */
    PyObject *done =
        PyObject_CallMethod(object, "_create_inference_session", "OOO", PyTuple_GetItem(given, 0),
                            PyTuple_GetItem(given, 1), found[4] ? found[4] : Py_None);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

static int session_traverse(PyObject *object, visitproc visit, void *arg)
{
    py_session *self = (py_session *)object;
    Py_VISIT(self->dict);
    Py_VISIT(self->options);
    Py_VISIT(self->options_used);
    Py_VISIT(self->given);
#if PY_VERSION_HEX >= 0x03090000
    Py_VISIT((PyObject *)Py_TYPE(object));
#endif
    return 0;
}

static int session_clear(PyObject *object)
{
    py_session *self = (py_session *)object;
    Py_CLEAR(self->dict);
    Py_CLEAR(self->given);
    return 0;
}

static void session_dealloc(PyObject *object)
{
    py_session *self = (py_session *)object;
    PyObject_GC_UnTrack(object);
    if (self->weak) PyObject_ClearWeakRefs(object);
    session_clear(object);
    Py_CLEAR(self->loaded);
    Py_CLEAR(self->path);
    Py_CLEAR(self->bytes);
    Py_CLEAR(self->options);
    Py_CLEAR(self->options_used);
    Py_CLEAR(self->providers);
    Py_CLEAR(self->provider_options);
    py_delete(object);
}

/* ---- what it tells ---- */

/* A list of what is loaded, as a list of its own. */
#define LOADED_LIST(function, member)                                                              \
    static PyObject *function(PyObject *object, PyObject *unused)                                  \
    {                                                                                              \
        (void)unused;                                                                              \
        py_loaded *loaded = py_session_loaded(object);                                             \
        PyObject *list = loaded ? PySequence_List(loaded->member) : NULL;                          \
        Py_XDECREF((PyObject *)loaded);                                                            \
        return list;                                                                               \
    }
LOADED_LIST(get_inputs, inputs)
LOADED_LIST(get_outputs, outputs)
LOADED_LIST(get_overridable_initializers, initializers)

static PyObject *get_modelmeta(PyObject *object, PyObject *unused)
{
    (void)unused;
    py_loaded *loaded = py_session_loaded(object);
    PyObject *metadata = loaded ? loaded->metadata : NULL;
    Py_XINCREF(metadata);
    Py_XDECREF((PyObject *)loaded);
    return metadata;
}

static PyObject *get_providers(PyObject *object, PyObject *unused)
{
    py_session *self = (py_session *)object;
    (void)unused;
    return self->providers ? PySequence_List(self->providers) : PyList_New(0);
}

static PyObject *get_provider_options(PyObject *object, PyObject *unused)
{
    py_session *self = (py_session *)object;
    (void)unused;
    return self->provider_options ? PyDict_Copy(self->provider_options) : PyDict_New();
}

static PyObject *get_session_options(PyObject *object, PyObject *unused)
{
    PyObject *options = ((py_session *)object)->options_used;
    (void)unused;
    if (!options) options = Py_None;
    Py_INCREF(options);
    return options;
}

static PyObject *get_memory_infos(PyObject *object, bool outputs)
{
    py_loaded *loaded = py_session_loaded(object);
    PyObject *list = loaded ? py_memory_infos(loaded->st, loaded, outputs) : NULL;
    Py_XDECREF((PyObject *)loaded);
    return list;
}

static PyObject *get_input_memory_infos(PyObject *object, PyObject *unused)
{
    (void)unused;
    return get_memory_infos(object, false);
}

static PyObject *get_output_memory_infos(PyObject *object, PyObject *unused)
{
    (void)unused;
    return get_memory_infos(object, true);
}

static PyObject *get_input_epdevices(PyObject *object, PyObject *unused)
{
    (void)unused;
    py_loaded *loaded = py_session_loaded(object);
    PyObject *list = loaded ? py_ep_devices_of(loaded->st, loaded) : NULL;
    Py_XDECREF((PyObject *)loaded);
    return list;
}

static PyObject *set_providers(PyObject *object, PyObject *const *args, Py_ssize_t count,
                               PyObject *keywords)
{
    static const char *const names[] = {"providers", "provider_options", NULL};
    PyObject *found[2];
    if (py_arguments("set_providers", names, 0, args, count, keywords, found) < 0) return NULL;
    return PyObject_CallMethod(object, "_create_inference_session", "OO",
                               found[0] ? found[0] : Py_None, found[1] ? found[1] : Py_None);
}

/* ---- profiling and the rest ---- */

static PyObject *end_profiling(PyObject *object, PyObject *unused)
{
    (void)unused;
    py_loaded *loaded = py_session_loaded(object);
    if (!loaded) return NULL;
    py_state *st = loaded->st;
    char *text = NULL;
    PyObject *path = NULL;
    if (py_check(st, st->api->SessionEndProfiling(loaded->session, st->allocator, &text)) == 0)
        path = py_strings_owned(st, text);
    Py_DECREF((PyObject *)loaded);
    return path;
}

static PyObject *get_profiling_start(PyObject *object, PyObject *unused)
{
    (void)unused;
    py_loaded *loaded = py_session_loaded(object);
    if (!loaded) return NULL;
    py_state *st = loaded->st;
    uint64_t begin = 0;
    const int failed =
        py_check(st, st->api->SessionGetProfilingStartTimeNs(loaded->session, &begin));
    Py_DECREF((PyObject *)loaded);
    return failed ? NULL : PyLong_FromUnsignedLongLong(begin);
}

static PyObject *io_binding(PyObject *object, PyObject *unused)
{
    (void)unused;
    py_state *st = ((py_session *)object)->st;
    return PyObject_CallFunctionObjArgs((PyObject *)st->binding, object, NULL);
}

static PyObject *create_value(PyObject *object, PyObject *const *args, Py_ssize_t count,
                              PyObject *keywords)
{
    static const char *const names[] = {"shape",     "element_type", "device_type",
                                        "device_id", "vendor_id",    NULL};
    PyObject *found[5];
    py_state *st = ((py_session *)object)->st;
    if (py_arguments("create_ortvalue_from_shape_and_type", names, 3, args, count, keywords,
                     found) < 0)
        return NULL;
    return PyObject_CallMethod((PyObject *)st->value, "ortvalue_from_shape_and_type", "OOO",
                               found[0], found[1], found[2]);
}

static PyObject *set_ep_dynamic_options(PyObject *object, PyObject *const *args, Py_ssize_t count,
                                        PyObject *keywords)
{
    static const char *const names[] = {"options", NULL};
    PyObject *options = NULL;
    (void)object;
    if (py_arguments("Session.set_ep_dynamic_options", names, 1, args, count, keywords, &options) <
        0)
        return NULL;
    if (!PyDict_Check(options) || PyDict_Size(options) == 0) {
        PyErr_SetString(PyExc_RuntimeError, "No options were provided");
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *nothing(PyObject *object, PyObject *args)
{
    (void)object;
    (void)args;
    Py_RETURN_NONE;
}

static PyObject *set_tuning_results(PyObject *object, PyObject *const *args, Py_ssize_t count,
                                    PyObject *keywords)
{
    static const char *const names[] = {"results", "error_on_invalid", NULL};
    PyObject *found[2];
    (void)object;
    if (py_arguments("Session.set_tuning_results", names, 1, args, count, keywords, found) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *release_captured_graph(PyObject *object, PyObject *const *args, Py_ssize_t count,
                                        PyObject *keywords)
{
    static const char *const names[] = {"graph_annotation_id", NULL};
    PyObject *id = NULL;
    (void)object;
    if (py_arguments("Session.release_captured_graph", names, 0, args, count, keywords, &id) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *get_tuning_results(PyObject *object, PyObject *unused)
{
    (void)object;
    (void)unused;
    return PyList_New(0);
}

static PyObject *get_assignment(PyObject *object, PyObject *unused)
{
    (void)unused;
    PyErr_SetString(((py_session *)object)->st->errors[ORT_FAIL],
                    "[ONNXRuntimeError] : 1 : FAIL : Session configuration entry "
                    "'session.record_ep_graph_assignment_info' must be set to \"1\" to retrieve EP "
                    "graph assignment information.");
    return NULL;
}

/* ---- pickling: the model's path or bytes, options and providers; loaded anew ---- */

static PyObject *session_getstate(PyObject *object, PyObject *unused)
{
    py_session *self = (py_session *)object;
    (void)unused;
    if (!self->given) {
        PyErr_SetString(PyExc_RuntimeError, "the session has no model: __init__ was not called");
        return NULL;
    }
    PyObject *dict = self->dict ? self->dict : Py_None;
    return Py_BuildValue("(OOOO)", self->path ? self->path : self->bytes, self->options,
                         self->given, dict);
}

static PyObject *session_setstate(PyObject *object, PyObject *state)
{
    PyObject *source, *options, *given, *dict;
    if (!PyArg_ParseTuple(state, "OOOO", &source, &options, &given, &dict)) return NULL;
    PyObject *init = PyObject_GetAttrString(object, "__init__");
    PyObject *args = init ? PyTuple_Pack(4, source, options, PyTuple_GetItem(given, 0),
                                         PyTuple_GetItem(given, 1))
                          : NULL;
    PyObject *done = args ? PyObject_CallObject(init, args) : NULL;
    Py_XDECREF(init);
    Py_XDECREF(args);
    if (!done || dict == Py_None) return done;
    Py_DECREF(done);
    PyObject *own = PyObject_GetAttrString(object, "__dict__");
    const int failed = own ? PyDict_Update(own, dict) : -1;
    Py_XDECREF(own);
    if (failed) return NULL;
    Py_RETURN_NONE;
}

/* ---- the class ---- */

static PyObject *get_dict(PyObject *object, void *unused)
{
    py_session *self = (py_session *)object;
    (void)unused;
    if (!self->dict) self->dict = PyDict_New();
    Py_XINCREF(self->dict);
    return self->dict;
}

/* What ONNX Runtime's Python class keeps in attributes of these names: programs peek at them. */
static PyObject *get_private(PyObject *object, void *closure)
{
    py_session *self = (py_session *)object;
    PyObject *value = *(PyObject **)((char *)self + (uintptr_t)closure);
    if (!value) value = Py_None;
    Py_INCREF(value);
    return value;
}

static PyObject *get_private_list(PyObject *object, void *closure)
{
    return PyObject_CallMethod(object, closure, NULL);
}

static PyGetSetDef session_getset[] = {
    {"__dict__", get_dict, NULL, NULL, NULL},
    PY_GET("_sess", get_private, offsetof(py_session, loaded), NULL),
    PY_GET("_model_path", get_private, offsetof(py_session, path), NULL),
    PY_GET("_model_bytes", get_private, offsetof(py_session, bytes), NULL),
    PY_GET("_sess_options", get_private, offsetof(py_session, options_used), NULL),
    PY_GET("_sess_options_initial", get_private, offsetof(py_session, options), NULL),
    PY_GET("_providers", get_private, offsetof(py_session, providers), NULL),
    PY_GET("_provider_options", get_private, offsetof(py_session, provider_options), NULL),
    PY_GET("_inputs_meta", get_private_list, "get_inputs", NULL),
    PY_GET("_outputs_meta", get_private_list, "get_outputs", NULL),
    PY_GET("_overridable_initializers", get_private_list, "get_overridable_initializers", NULL),
    PY_GET("_model_meta", get_private_list, "get_modelmeta", NULL),
    {0},
};

static PyMemberDef session_members[] = {
    {"__dictoffset__", T_PYSSIZET, offsetof(py_session, dict), READONLY, NULL},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(py_session, weak), READONLY, NULL},
    {0},
};

static PyMethodDef session_methods[] = {
    PY_NAMED(
        "run", py_run, "($self, output_names, input_feed, run_options=None)",
        "-> list\n\nRuns the model. output_names: names, or None for all outputs. input_feed: a "
        "dict from names of inputs to NumPy arrays of the input's type and shape (lists of "
        "numbers, lists of arrays for sequences, dicts for maps, OrtValues, and tensors with "
        "__dlpack__ are taken as well). Packed arrays are read in place. Returns a list of arrays "
        "that own their memory; a sequence comes as a list, a map as a dict, an empty optional as "
        "None.\n\nValueError: an input is missing. InvalidArgument: a name, type or shape does not "
        "fit. Fail: a node failed, or run_options.terminate was set. The GIL is released."),
    PY_NAMED("run_async", py_run_async,
             "($self, output_names, input_feed, callback, user_data, run_options=None)",
             "Runs in another thread, which then calls callback(results, user_data, error): a list "
             "of arrays and '', or [] and the error's text."),
    PY_NAMED("run_with_ort_values", py_run_values,
             "($self, output_names, input_dict_ort_values, run_options=None)",
             "-> list[OrtValue]\n\nrun() with OrtValues in and out."),
    PY_NAMED("run_with_ortvaluevector", py_run_vector,
             "($self, run_options, feed_names, feeds, fetch_names, fetches, fetch_devices)",
             "run() with OrtValueVectors; results are added to fetches."),
    PY_NAMED("run_with_iobinding", py_run_binding, "($self, iobinding, run_options=None)",
             "Runs with what is bound."),
    PY_ASK("io_binding", io_binding, "-> IOBinding\n\nA new, empty binding."),
    PY_ASK("get_inputs", get_inputs, "-> list[NodeArg]"),
    PY_ASK("get_outputs", get_outputs, "-> list[NodeArg]"),
    PY_ASK("get_overridable_initializers", get_overridable_initializers,
           "-> list[NodeArg]\n\nInitializers that may be fed."),
    PY_ASK("get_modelmeta", get_modelmeta, "-> ModelMetadata"),
    PY_ASK("get_providers", get_providers,
           "-> list[str]\n\nThe execution providers that run this session."),
    PY_ASK("get_provider_options", get_provider_options, "-> dict[str, dict[str, str]]"),
    PY_ASK("get_session_options", get_session_options,
           "-> SessionOptions\n\nThose it was made with."),
    PY_ASK("get_input_memory_infos", get_input_memory_infos, "-> list[OrtMemoryInfo]"),
    PY_ASK("get_output_memory_infos", get_output_memory_infos, "-> list[OrtMemoryInfo]"),
    PY_ASK("get_input_epdevices", get_input_epdevices, "-> list[OrtEpDevice]"),
    PY_NAMED("set_providers", set_providers, "($self, providers=None, provider_options=None)",
             "Loads the model anew with other providers. An unknown one or one that does not start "
             "is an error."),
    PY_ASK("end_profiling", end_profiling,
           "-> str\n\nWrites the trace and returns its file's name; '' when "
           "SessionOptions.enable_profiling was not set."),
    PY_ASK("get_profiling_start_time_ns", get_profiling_start,
           "-> int\n\nOn the clock of time.monotonic_ns()."),
    PY_NAMED("create_ortvalue_from_shape_and_type", create_value,
             "($self, shape, element_type, device_type, device_id=0, vendor_id=-1)", "-> OrtValue"),
    PY_NAMED("set_ep_dynamic_options", set_ep_dynamic_options, "($self, options)",
             "Taken: the CPU has none."),
    PY_ASK("get_tuning_results", get_tuning_results, "-> list\n\nEmpty."),
    PY_NAMED("set_tuning_results", set_tuning_results,
             "($self, results, *, error_on_invalid=False)", "Taken."),
    PY_NAMED("release_captured_graph", release_captured_graph, "($self, graph_annotation_id=0)",
             "Taken: none is captured."),
    PY_ASK("get_provider_graph_assignment_info", get_assignment,
           "-> list\n\nFail unless it was recorded."),
    PY_ASK("disable_fallback", nothing, "There is no fallback."),
    PY_ASK("enable_fallback", nothing, "There is no fallback."),
    {"_create_inference_session", session_create, METH_VARARGS, NULL},
    {"__getstate__", session_getstate, METH_NOARGS, NULL},
    {"__setstate__", session_setstate, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot session_slots[] = {
    {Py_tp_doc,
     "InferenceSession(path_or_bytes, sess_options=None, providers=None, provider_options=None)\n\n"
     "A model, ready to run. path_or_bytes: path of a model or of a plan file (str, PathLike), or "
     "a "
     "model's bytes. providers: names, or (name, {option: value}) pairs, the most wanted first; "
     "the "
     "CPU is always the last. One that is unknown or does not start is an error that names it.\n\n"
     "NoSuchFile, InvalidProtobuf, InvalidGraph, NotImplemented, Fail: the model cannot be used. "
     "TypeError: path_or_bytes is something else. A session may be used by several threads at "
     "once, "
     "survives fork, and pickles by its path or bytes."},
    {Py_tp_new, session_new},
    {Py_tp_init, session_init},
    {Py_tp_dealloc, session_dealloc},
    {Py_tp_traverse, session_traverse},
    {Py_tp_clear, session_clear},
    {Py_tp_getset, session_getset},
    {Py_tp_members, session_members},
    {Py_tp_methods, session_methods},
    {0, NULL},
};

int py_add_sessions(py_state *st)
{
    PyType_Spec loaded = {.basicsize = sizeof(py_loaded), .slots = loaded_slots};
    PyType_Spec session = {.basicsize = sizeof(py_session),
                           .flags = Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
                           .slots = session_slots};
    return py_add_type(st, &st->loaded, &loaded) < 0 || py_add_type(st, &st->session, &session) < 0
               ? -1
               : 0;
}
