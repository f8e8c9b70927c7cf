/* SPDX-License-Identifier: Apache-2.0
 * Runs: run, run_async, with OrtValues, with vectors. run is the way that must be short: no frame
 * of Python, names compared by address first, feeds and results on the stack. */
#include "py_state.h"

#include <stdlib.h>
#include <string.h>

enum { ON_STACK = 16 };

/* What goes into a run and comes out of it. */
struct job {
    py_state *st;
    py_loaded *loaded;
    size_t count_in, count_out;
    size_t most_in; /* a feed that grows under our hands must not */
    const char **in_names, **out_names;
    OrtValue **in, **out;
    PyObject **holds; /* count_in references that keep the inputs */
    bool *borrowed;   /* count_in: the value is not ours */
    PyObject *texts;  /* list of bytes: names that the model does not have */
    void *heap;       /* memory of the arrays when there are many */
    const char *in_names_own[ON_STACK], *out_names_own[ON_STACK];
    OrtValue *in_own[ON_STACK], *out_own[ON_STACK];
    PyObject *holds_own[ON_STACK];
    bool borrowed_own[ON_STACK];
};

/* Room for so many inputs and outputs, and nothing in it. */
static int begin_job(struct job *job, py_loaded *loaded, size_t count_in, size_t count_out)
{
    job->st = loaded->st;
    job->loaded = loaded;
    job->count_in = 0;
    job->most_in = count_in;
    job->count_out = count_out;
    job->texts = NULL;
    job->heap = NULL;
    job->in_names = job->in_names_own;
    job->out_names = job->out_names_own;
    job->in = job->in_own;
    job->out = job->out_own;
    job->holds = job->holds_own;
    job->borrowed = job->borrowed_own;
    if (count_in > ON_STACK || count_out > ON_STACK) {
        const size_t most = count_in > count_out ? count_in : count_out;
        char *heap = py_calloc(most, 5 * sizeof(void *) + sizeof(bool));
        if (!heap) {
            PyErr_NoMemory();
            return -1;
        }
        job->heap = heap;
        job->in_names = (const char **)heap;
        job->out_names = job->in_names + most;
        job->in = (OrtValue **)(job->out_names + most);
        job->out = job->in + most;
        job->holds = (PyObject **)(job->out + most);
        job->borrowed = (bool *)(job->holds + most);
    }
    memset(job->out, 0, count_out * sizeof *job->out);
    return 0;
}

static void end_job(struct job *job)
{
    const OrtApi *api = job->st->api;
    for (size_t i = 0; i < job->count_in; i++) {
        if (job->in[i] && !job->borrowed[i]) api->ReleaseValue(job->in[i]);
        Py_XDECREF(job->holds[i]);
    }
    for (size_t i = 0; i < job->count_out; i++)
        if (job->out[i]) api->ReleaseValue(job->out[i]);
    Py_XDECREF(job->texts);
    PyMem_Free(job->heap);
}

/* Index of `name` among `count` interned names; -1: not there, -2: exception. */
static Py_ssize_t find_name(PyObject *const *names, size_t count, PyObject *name)
{
    for (size_t i = 0; i < count; i++)
        if (names[i] == name) return (Py_ssize_t)i;
    if (!PyUnicode_Check(name)) return -1;
    for (size_t i = 0; i < count; i++) {
        const int order = PyUnicode_Compare(names[i], name);
        if (order == -1 && PyErr_Occurred()) return -2;
        if (order == 0) return (Py_ssize_t)i;
    }
    return -1;
}

/* UTF-8 of a name that the model may not have: the library says so. */
static const char *keep_text(struct job *job, PyObject *name)
{
    if (!job->texts && !(job->texts = PyList_New(0))) return NULL;
    PyObject *bytes = PyUnicode_AsUTF8String(name);
    const int failed = bytes ? PyList_Append(job->texts, bytes) : -1;
    Py_XDECREF(bytes);
    return failed ? NULL : PyBytes_AsString(bytes);
}

static bool is_all(PyObject *names)
{
    if (names == Py_None) return true;
    return (PyList_Check(names) && PyList_Size(names) == 0) ||
           (PyTuple_Check(names) && PyTuple_Size(names) == 0);
}

static int raise_run(PyObject *self, PyObject *names, PyObject *feed, PyObject *options)
{
    py_state *st = ((py_session *)self)->st;
    py_loaded *loaded = ((py_session *)self)->loaded;
    PyObject *all = NULL; /* in place of none */
    if (is_all(names)) names = all = PyList_New(0);
    for (size_t i = 0; all && i < loaded->count_out; i++)
        if (PyList_Append(all, loaded->out_names[i]) < 0) Py_CLEAR(all);
    if (!names) return -1;
    PyObject *args[4] = {self, names, feed, options ? options : Py_None};
    char signature[512];
    PyOS_snprintf(signature, sizeof signature,
                  "(self: %s.InferenceSession, arg0: collections.abc.Sequence[str], arg1: "
                  "collections.abc.Mapping[str, object], arg2: %s.RunOptions) -> list",
                  st->home, st->home);
    const int failed = py_incompatible("run", signature, args, 4);
    Py_XDECREF(all);
    return failed;
}

/* ---- outputs ---- */

/* ONNX Runtime words this one another way in Python than in C. */
static int raise_output(py_state *st, const char *name)
{
    PyObject *error = PyUnicode_FromFormat(
        "[ONNXRuntimeError] : 2 : INVALID_ARGUMENT : Invalid output name:%s", name);
    if (error) PyErr_SetObject(st->errors[ORT_INVALID_ARGUMENT], error);
    Py_XDECREF(error);
    return -1;
}

/* 1: names are no sequence of str. */
static int read_outputs(struct job *job, PyObject *names, bool all)
{
    py_loaded *loaded = job->loaded;
    if (all) {
        memcpy(job->out_names, loaded->out_texts, loaded->count_out * sizeof *job->out_names);
        return 0;
    }
    for (size_t i = 0; i < job->count_out; i++) {
        PyObject *name = PySequence_GetItem(names, (Py_ssize_t)i);
        if (name && PyBytes_Check(name)) {
            PyObject *text = PyUnicode_FromEncodedObject(name, "utf-8", NULL);
            Py_DECREF(name);
            name = text;
        }
        if (!name || !PyUnicode_Check(name)) {
            Py_XDECREF(name);
            return name ? 1 : -1;
        }
        if (PyUnicode_GetLength(name) == 0) {
            Py_DECREF(name);
            return raise_output(job->st, "");
        }
        const Py_ssize_t at = find_name(loaded->out_names, loaded->count_out, name);
        job->out_names[i] = at >= 0    ? loaded->out_texts[at]
                            : at == -1 ? keep_text(job, name)
                                       : NULL;
        Py_DECREF(name);
        if (!job->out_names[i]) return -1;
    }
    return 0;
}

/* ---- inputs ---- */

/* "Required inputs (['w']) are missing from input feed (['x'])." */
static int raise_missing(py_loaded *loaded, PyObject *feed)
{
    PyObject *missing = PyList_New(0), *keys = PyMapping_Keys(feed);
    int failed = missing && keys ? 0 : -1;
    for (size_t i = 0; !failed && i < loaded->count_in; i++) {
        if (loaded->wants[i].optional) continue;
        const int has = PySequence_Contains(keys, loaded->in_names[i]);
        failed = has < 0 ? -1 : has ? 0 : PyList_Append(missing, loaded->in_names[i]);
    }
    if (!failed && PyList_Size(missing) > 0)
        PyErr_Format(PyExc_ValueError, "Required inputs (%R) are missing from input feed (%R).",
                     missing, keys);
    failed = PyErr_Occurred() ? -1 : 0;
    Py_XDECREF(missing);
    Py_XDECREF(keys);
    return failed;
}

/* One pair of the feed into the job. None feeds nothing: an optional input without a value. */
static int read_feed(struct job *job, PyObject *key, PyObject *value)
{
    py_loaded *loaded = job->loaded;
    const size_t known = loaded->count_in + loaded->count_init;
    if (value == Py_None) return 0;
    const Py_ssize_t at = find_name(loaded->in_names, known, key);
    if (at == -2) return -1;
    struct py_want want = {.name = ""};
    if (at >= 0)
        want = loaded->wants[at];
    else if (!PyUnicode_Check(key))
        return 1;
    else if (!(want.name = keep_text(job, key)))
        return -1;
    const size_t i = job->count_in;
    job->in_names[i] = want.name;
    job->in[i] = NULL;
    job->holds[i] = NULL;
    if (py_to_value(job->st, &want, value, &job->in[i], &job->holds[i], &job->borrowed[i]) < 0) {
        Py_CLEAR(job->holds[i]);
        return -1;
    }
    job->count_in++;
    return 0;
}

/* Inputs that must be fed and are among those of the job. */
static size_t count_fed(const struct job *job)
{
    const py_loaded *loaded = job->loaded;
    size_t fed = 0;
    for (size_t i = 0; i < loaded->count_in; i++) {
        bool is = loaded->wants[i].optional;
        for (size_t k = 0; !is && k < job->count_in; k++)
            is = job->in_names[k] == loaded->in_texts[i];
        fed += is;
    }
    return fed;
}

/* 1: a key is no str. What misses is told before what does not fit. */
static int read_feeds(struct job *job, PyObject *feed)
{
    PyObject *key, *value;
    Py_ssize_t place = 0;
    int failed = 0;
    while (!failed && job->count_in < job->most_in && PyDict_Next(feed, &place, &key, &value)) {
        Py_INCREF(key);
        Py_INCREF(value);
        failed = read_feed(job, key, value);
        Py_DECREF(key);
        Py_DECREF(value);
    }
    if (!failed && count_fed(job) == job->loaded->count_in) return 0;
    PyObject *type = NULL, *error = NULL, *trace = NULL;
    PyErr_Fetch(&type, &error, &trace);
    if (raise_missing(job->loaded, feed) < 0) {
        Py_XDECREF(type);
        Py_XDECREF(error);
        Py_XDECREF(trace);
        return -1;
    }
    PyErr_Restore(type, error, trace);
    return failed;
}

/* A dict of any mapping: a new reference. */
static PyObject *dict_of(PyObject *feed)
{
    if (PyDict_Check(feed)) {
        Py_INCREF(feed);
        return feed;
    }
    if (!PyObject_HasAttrString(feed, "keys")) {
        PyObject *name = PyObject_GetAttrString((PyObject *)Py_TYPE(feed), "__name__");
        if (name) PyErr_Format(PyExc_AttributeError, "'%U' object has no attribute 'keys'", name);
        Py_XDECREF(name);
        return NULL;
    }
    PyObject *dict = PyDict_New();
    if (dict && PyDict_Update(dict, feed) < 0) Py_CLEAR(dict);
    return dict;
}

/* ---- running ---- */

static int check_run(py_state *st, OrtStatus *status)
{
    static const char begin[] = "Invalid output name: ";
    const char *text = status ? st->api->GetErrorMessage(status) : "";
    if (!status || strncmp(text, begin, sizeof begin - 1) != 0) return py_check(st, status);
    raise_output(st, text + sizeof begin - 1);
    st->api->ReleaseStatus(status);
    return -1;
}

static int run_job(struct job *job, const OrtRunOptions *options)
{
    const OrtApi *api = job->st->api;
    OrtStatus *status;
    PyThreadState *thread = PyEval_SaveThread();
    status =
        api->Run(job->loaded->session, options, job->in_names, (const OrtValue *const *)job->in,
                 job->count_in, job->out_names, job->count_out, job->out);
    PyEval_RestoreThread(thread);
    return check_run(job->st, status);
}

/* The results as a list; what they own leaves the job. */
static PyObject *take_results(struct job *job, PyObject *(*wrap)(py_state *, OrtValue *))
{
    PyObject *list = PyList_New((Py_ssize_t)job->count_out);
    for (size_t i = 0; list && i < job->count_out; i++) {
        OrtValue *value = job->out[i];
        job->out[i] = NULL;
        PyObject *object = wrap(job->st, value);
        if (!object || PyList_SetItem(list, (Py_ssize_t)i, object) < 0) Py_CLEAR(list);
    }
    return list;
}

/* What names the outputs, as a list or tuple where it is some other series: a new reference. */
static PyObject *list_names(PyObject *names)
{
    const bool is_other = PyUnicode_Check(names) || PyBytes_Check(names) || PyDict_Check(names);
    if (names == Py_None || is_other || PyList_Check(names) || PyTuple_Check(names) ||
        !PyObject_HasAttrString(names, "__iter__")) {
        Py_INCREF(names);
        return names;
    }
    return PySequence_List(names);
}

/* Number of outputs wanted; -1 when names are no series of names. */
static Py_ssize_t count_outputs(py_loaded *loaded, PyObject *names, bool all)
{
    if (all) return (Py_ssize_t)loaded->count_out;
    return PyList_Check(names) || PyTuple_Check(names) ? PySequence_Size(names) : -1;
}

/* Everything up to the run. self is for messages. */
static int fill_job(struct job *job, py_loaded *loaded, PyObject *self, PyObject *given,
                    PyObject *feed, PyObject *run_options, const OrtRunOptions **options)
{
    PyObject *names = list_names(given), *dict = names ? dict_of(feed) : NULL;
    if (!dict) {
        Py_XDECREF(names);
        return -1;
    }
    const bool all = is_all(names);
    const Py_ssize_t count_out = count_outputs(loaded, names, all);
    int failed =
        begin_job(job, loaded, (size_t)PyDict_Size(dict), count_out > 0 ? (size_t)count_out : 0);
    if (!failed) {
        failed = read_feeds(job, dict);
        if (!failed && count_out < 0) failed = 1;
        if (!failed) failed = read_outputs(job, names, all);
        if (!failed && py_run_options(job->st, run_options, options) < 0) failed = 1;
        if (failed == 1) raise_run(self, given, feed, run_options);
        if (failed) end_job(job);
    }
    Py_DECREF(names);
    Py_DECREF(dict);
    return failed ? -1 : 0;
}

/* Arguments of run: three at most, found without a table of names when they come in order. */
static int read_run(const char *function, PyObject *const *args, Py_ssize_t count,
                    PyObject *keywords, PyObject **found)
{
    static const char *const names[] = {"output_names", "input_feed", "run_options", NULL};
    static const char *const value_names[] = {"output_names", "input_dict_ort_values",
                                              "run_options", NULL};
    if (!keywords && (count == 2 || count == 3)) {
        found[0] = args[0];
        found[1] = args[1];
        found[2] = count == 3 ? args[2] : NULL;
        return 0;
    }
    const bool values = strcmp(function, "Session.run_with_ort_values") == 0;
    return py_arguments(function, values ? value_names : names, 2, args, count, keywords, found);
}

PyObject *py_run(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *keywords)
{
    PyObject *found[3], *list = NULL;
    const OrtRunOptions *options = NULL;
    struct job job;
    if (read_run("Session.run", args, count, keywords, found) < 0) return NULL;
    py_loaded *loaded = py_session_loaded(self);
    if (!loaded) return NULL;
    if (fill_job(&job, loaded, self, found[0], found[1], found[2], &options) == 0) {
        if (run_job(&job, options) == 0) list = take_results(&job, py_from_value);
        end_job(&job);
    }
    Py_DECREF((PyObject *)loaded);
    return list;
}

static PyObject *wrap_value(py_state *st, OrtValue *value)
{
    return py_wrap_value(st, value, NULL);
}

/* Every value of the feed must be an OrtValue. */
static int want_values(py_state *st, PyObject *feed)
{
    PyObject *key, *value;
    Py_ssize_t place = 0;
    while (PyDict_Check(feed) && PyDict_Next(feed, &place, &key, &value)) {
        if (PyObject_TypeCheck(value, st->value)) continue;
        PyErr_Format(PyExc_AttributeError, "%R is no OrtValue: it has no attribute '_get_c_value'",
                     Py_TYPE(value));
        return -1;
    }
    return 0;
}

PyObject *py_run_values(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *keywords)
{
    PyObject *found[3], *list = NULL;
    const OrtRunOptions *options = NULL;
    struct job job;
    if (read_run("Session.run_with_ort_values", args, count, keywords, found) < 0) return NULL;
    py_loaded *loaded = py_session_loaded(self);
    if (!loaded) return NULL;
    if (want_values(loaded->st, found[1]) == 0 &&
        fill_job(&job, loaded, self, found[0], found[1], found[2], &options) == 0) {
        if (run_job(&job, options) == 0) list = take_results(&job, wrap_value);
        end_job(&job);
    }
    Py_DECREF((PyObject *)loaded);
    return list;
}

PyObject *py_run_vector(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *keywords)
{
    static const char *const names[] = {"run_options", "feed_names",    "feeds", "fetch_names",
                                        "fetches",     "fetch_devices", NULL};
    PyObject *found[6];
    if (py_arguments("Session.run_with_ortvaluevector", names, 5, args, count, keywords, found) < 0)
        return NULL;
    PyObject *feed = PyDict_New(), *values = NULL, *done = NULL;
    const Py_ssize_t most = PySequence_Size(found[1]);
    int failed = feed && most >= 0 ? 0 : -1;
    for (Py_ssize_t i = 0; !failed && i < most; i++) {
        PyObject *name = PySequence_GetItem(found[1], i), *value = PySequence_GetItem(found[2], i);
        failed = name && value ? PyDict_SetItem(feed, name, value) : -1;
        Py_XDECREF(name);
        Py_XDECREF(value);
    }
    if (!failed)
        values = PyObject_CallMethod(self, "run_with_ort_values", "OOO", found[3], feed, found[0]);
    for (Py_ssize_t i = 0; values && i < PyList_Size(values); i++) {
        Py_XDECREF(done);
        done = PyObject_CallMethod(found[4], "push_back", "O", PyList_GetItem(values, i));
        if (!done) break;
    }
    if (values && !done && !PyErr_Occurred()) {
        Py_INCREF(Py_None);
        done = Py_None;
    }
    Py_XDECREF(feed);
    Py_XDECREF(values);
    return done;
}

/* ---- run_async ---- */

struct async {
    struct job job;
    PyObject *callback, *user;
    PyObject *run_options; /* held while the run needs them */
};

static void end_async(struct async *async)
{
    PyObject *loaded = (PyObject *)async->job.loaded;
    end_job(&async->job);
    Py_XDECREF(async->callback);
    Py_XDECREF(async->user);
    Py_XDECREF(async->run_options);
    Py_XDECREF(loaded);
    free(async);
}

/* Called by a thread of the library. What the callback raises is reported, not passed on. */
static void async_done(void *user, OrtValue **outputs, size_t count, OrtStatus *status)
{
    struct async *async = user;
    const PyGILState_STATE held = PyGILState_Ensure();
    py_state *st = async->job.st;
    PyObject *results = NULL, *text = NULL;
    (void)count;
    if (status) {
        text = PyUnicode_FromString(st->api->GetErrorMessage(status));
        results = PyList_New(0);
        st->api->ReleaseStatus(status);
    } else {
        if (outputs && outputs != async->job.out)
            memcpy(async->job.out, outputs, async->job.count_out * sizeof *outputs);
        text = PyUnicode_FromString("");
        results = take_results(&async->job, py_from_value);
    }
    PyObject *done = results && text ? PyObject_CallFunctionObjArgs(async->callback, results,
                                                                    async->user, text, NULL)
                                     : NULL;
    if (!done) PyErr_WriteUnraisable(async->callback);
    Py_XDECREF(done);
    Py_XDECREF(results);
    Py_XDECREF(text);
    end_async(async);
    PyGILState_Release(held);
}

PyObject *py_run_async(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *keywords)
{
    static const char *const names[] = {"output_names", "input_feed",  "callback",
                                        "user_data",    "run_options", NULL};
    PyObject *found[5];
    const OrtRunOptions *options = NULL;
    if (py_arguments("Session.run_async", names, 4, args, count, keywords, found) < 0) return NULL;
    struct async *async = calloc(1, sizeof *async);
    py_loaded *loaded = async ? py_session_loaded(self) : NULL;
    if (!loaded) {
        free(async);
        return async ? NULL : PyErr_NoMemory();
    }
    if (fill_job(&async->job, loaded, self, found[0], found[1], found[4], &options) < 0) {
        Py_DECREF((PyObject *)loaded);
        free(async);
        return NULL;
    }
    Py_INCREF(found[2]);
    async->callback = found[2];
    Py_INCREF(found[3]);
    async->user = found[3];
    Py_XINCREF(found[4]);
    async->run_options = found[4];
    struct job *job = &async->job;
    OrtStatus *status;
    PyThreadState *thread = PyEval_SaveThread();
    status = job->st->api->RunAsync(loaded->session, options, job->in_names,
                                    (const OrtValue *const *)job->in, job->count_in, job->out_names,
                                    job->count_out, job->out, async_done, async);
    PyEval_RestoreThread(thread);
    if (!status) Py_RETURN_NONE; /* `async` belongs to the callback now */
    py_check(loaded->st, status);
    PyObject *type = NULL, *error = NULL, *trace = NULL;
    PyErr_Fetch(&type, &error, &trace);
    end_async(async);
    PyErr_Restore(type, error, trace);
    return NULL;
}
