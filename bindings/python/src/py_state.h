/* SPDX-License-Identifier: Apache-2.0
 * What the files of the Python extension share: the module's state, and the helpers over the
 * limited API of CPython (3.9 and later). There are no globals: a type knows its module, an object
 * the module's state. */
#ifndef SDX_PY_STATE_H
#define SDX_PY_STATE_H

#ifdef SDX_PY_LIMITED_API
#define Py_LIMITED_API SDX_PY_LIMITED_API
#endif
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#include <sardonyx/ort.h>
#include <stdbool.h>
#include <string.h>

/* The calling convention is in every CPython from 3.7 on; headers of the limited API show it from
 * 3.10 on. */
#ifndef METH_FASTCALL
#define METH_FASTCALL 0x0080
#endif
#define PY_FAST(function) (PyCFunction)(void (*)(void)) function, METH_FASTCALL | METH_KEYWORDS

/* The docstring of a method, with the signature as inspect reads it: "($self, a, b=1)". */
#define PY_DOC(name, signature, doc) name signature "\n--\n\n" doc
/* Rows of tables: methods without arguments, with arguments that have names, those of the class,
 * and properties that are read; `closure` is what the getter is given. */
#define PY_ASK(name, function, doc)                                                                \
    {                                                                                              \
        name, function, METH_NOARGS, PY_DOC(name, "($self)", doc)                                  \
    }
#define PY_NAMED(name, function, signature, doc)                                                   \
    {                                                                                              \
        name, PY_FAST(function), PY_DOC(name, signature, doc)                                      \
    }
#define PY_MAKE(name, function, signature, doc)                                                    \
    {                                                                                              \
        name, PY_FAST(function) | METH_CLASS, PY_DOC(name, signature, doc)                         \
    }
#define PY_GET(name, getter, closure, doc)                                                         \
    {                                                                                              \
        name, getter, NULL, doc, (void *)(uintptr_t)(closure)                                      \
    }

/* Objects that several threads may use guard what changes in them. With the GIL that is the GIL. */
#ifdef Py_GIL_DISABLED
#define PY_GUARD      PyMutex guard;
#define PY_LOCK(self) PyMutex_Lock(&(self)->guard)
#define PY_FREE(self) PyMutex_Unlock(&(self)->guard)
#else
#define PY_GUARD
#define PY_LOCK(self) (void)(self)
#define PY_FREE(self) (void)(self)
#endif

/* Zeroed memory of PyMem_Free; headers of the limited API of 3.9 lack PyMem_Calloc. */
static inline void *py_calloc(size_t count, size_t size)
{
    void *block = PyMem_Malloc(count * size);
    return block ? memset(block, 0, count * size) : NULL;
}

enum { COUNT_DTYPES = 27, COUNT_CODES = 15 };

/* X(member of the state, name of the class) */
#define PY_TYPES(X)                                                                                \
    X(loaded, "LoadedModel")                                                                       \
    X(session, "InferenceSession")                                                                 \
    X(session_options, "SessionOptions")                                                           \
    X(run_options, "RunOptions")                                                                   \
    X(value, "OrtValue")                                                                           \
    X(vector, "OrtValueVector")                                                                    \
    X(binding, "IOBinding")                                                                        \
    X(node_arg, "NodeArg")                                                                         \
    X(metadata, "ModelMetadata")                                                                   \
    X(memory_info, "OrtMemoryInfo")                                                                \
    X(adapter, "LoraAdapter")                                                                      \
    X(sparse, "SparseTensor")                                                                      \
    X(ep_device, "OrtEpDevice")                                                                    \
    X(hardware, "OrtHardwareDevice")

/* The functions of NumPy that are called, out of the table that it offers to compiled code. */
struct py_numpy {
    PyTypeObject *array; /* numpy.ndarray */
    PyObject *module;
    PyObject *dtype;                /* numpy.dtype */
    PyObject *dtypes[COUNT_DTYPES]; /* by element type; NULL: NumPy has none */
    bool narrow_known;              /* those of ml_dtypes were looked for */
    PyObject *(*create)(PyTypeObject *, PyObject *, int, const intptr_t *, const intptr_t *, void *,
                        int, PyObject *); /* NULL: this NumPy's table is not known */
    int (*set_base)(PyObject *, PyObject *);
};

typedef struct py_state {
    const OrtApi *api;
    OrtEnv *env;
    OrtAllocator *allocator; /* the default one */
    OrtMemoryInfo *cpu_info;
    PyObject *module;  /* borrowed: itself */
    const char *home;  /* "sardonyx": the module that its classes name */
    PyObject *helpers; /* module sardonyx._types */
#define PY_TYPE_MEMBER(member, name) PyTypeObject *member;
    PY_TYPES(PY_TYPE_MEMBER)
#undef PY_TYPE_MEMBER
    PyObject *errors[COUNT_CODES];                   /* exception classes by code */
    PyObject *text_names, *text_feed, *text_options; /* names of arguments of run, interned */
    struct py_numpy numpy;
} py_state;

/* ---- module, types (py_module.c) ---- */

/* Whether this is sardonyx itself: strict, and with names beside those of ONNX Runtime. */
bool py_is_own(const py_state *st);

py_state *py_state_of_module(PyObject *module);
/* The state behind a class of ours or one derived from it; NULL with an exception set. */
py_state *py_state_of_type(PyTypeObject *type);
/* A class; *slot is a member of the state, whose name in PY_TYPES it gets. */
int py_add_type(py_state *st, PyTypeObject **slot, PyType_Spec *spec);
#define PY_FAMILIES(X)                                                                             \
    X(values)                                                                                      \
    X(vectors) X(options) X(nodes) X(devices) X(sessions) X(bindings) X(sparse) X(adapters)
#define PY_FAMILY(name) int py_add_##name(py_state *st);
PY_FAMILIES(PY_FAMILY)
#undef PY_FAMILY
extern PyMethodDef py_engine_methods[];   /* py_engine.c: check, convert_version ... */
extern PyMethodDef py_tracking_methods[]; /* py_tracking.c: what sardonyx.tracknet is made of */
/* An object of `type` with all of its own members zero and its state set. */
PyObject *py_new(PyTypeObject *type);
void py_delete(PyObject *self); /* the end of every tp_dealloc */

/* The head of every object of ours. */
typedef struct py_head {
    PyObject_HEAD py_state *st;
} py_head;

/* ---- errors (py_status.c) ---- */

int py_add_errors(py_state *st, PyObject *module);
/* Raises what a status says and releases it: -1; 0 for NULL. */
int py_check(py_state *st, OrtStatus *status);
/* RuntimeError with the text alone, as the binding of ONNX Runtime does for what it throws. */
int py_check_plain(py_state *st, OrtStatus *status);
/* Writes "[ONNXRuntimeError] : 2 : INVALID_ARGUMENT : text". */
PyObject *py_error_text(OrtErrorCode code, const char *text);

/* ---- arguments (py_arguments.c) ---- */

/* Arguments of a METH_FASTCALL | METH_KEYWORDS function: fills found[i] with borrowed references,
 * NULL where an argument past `required` is not given. names end with NULL. */
int py_arguments(const char *function, const char *const *names, int required,
                 PyObject *const *args, Py_ssize_t count, PyObject *keywords, PyObject **found);
/* The bytes object of a str in UTF-8, a new reference; NULL with a TypeError that names `what`. */
PyObject *py_utf8(PyObject *object, const char *what);
/* Lengths of a sequence of integers: PyMem_Malloc'ed *dims. */
int py_dims(PyObject *sequence, int64_t **dims, Py_ssize_t *rank);
PyObject *py_list_of_dims(const int64_t *dims, size_t rank);
/* A TypeError as the binding of ONNX Runtime words it: the function, its signature, and what it was
 * called with. */
int py_incompatible(const char *function, const char *signature, PyObject *const *args, int count);

/* ---- arrays (py_numpy.c) ---- */

/* A look into an array. `array` is held: the argument, or a packed copy. */
struct py_array {
    PyObject *array;
    void *data;
    int rank;
    const intptr_t *dims;
    int kind;    /* of the dtype: 'f', 'i', 'u', 'b', 'c', 'O', 'U', 'S', 'V' ... */
    size_t size; /* of an element, in bytes */
    ONNXTensorElementDataType dtype; /* UNDEFINED: none of ours, or text */
};

int py_load_numpy(py_state *st);
bool py_is_array(py_state *st, PyObject *object);
/* Fills `view` with a packed, native array: the one given, where it is such. */
int py_open_array(py_state *st, PyObject *object, struct py_array *view);
/* numpy.asarray(object, dtype) with dtype NULL or borrowed. */
PyObject *py_as_array(py_state *st, PyObject *object, PyObject *dtype);
/* An array over `data`, which `owner` (stolen, also on failure) keeps alive; owner NULL: with
 * memory of its own, into which data, if not NULL, is copied. */
PyObject *py_make_array(py_state *st, ONNXTensorElementDataType dtype, size_t rank,
                        const int64_t *dims, void *data, PyObject *owner);
/* Borrowed dtype for an element type, of NumPy or of ml_dtypes; NULL with an exception. */
PyObject *py_dtype_of(py_state *st, ONNXTensorElementDataType dtype);
/* The element type of a NumPy dtype, type or name; UNDEFINED with an exception. */
ONNXTensorElementDataType py_dtype_from(py_state *st, PyObject *object);
/* Address and flags of any array, writeable or not. */
void *py_array_data(py_state *st, PyObject *array);

/* ---- values (py_convert.c) ---- */

/* What an input takes. */
struct py_want {
    const char *name;
    ONNXType kind;                   /* UNKNOWN: not known; of what an optional holds */
    bool optional;                   /* need not be fed */
    ONNXTensorElementDataType dtype; /* of tensors, items of sequences, values of maps */
};

/* A value for an input; *hold (a new reference) must live as long as the value is used.
 * *borrowed: the value belongs to *hold. */
int py_to_value(py_state *st, const struct py_want *want, PyObject *object, OrtValue **out,
                PyObject **hold, bool *borrowed);
/* Elements of this many bits lie packed in a tensor, and one a byte in an array; 0: others. */
int py_narrow_bits(ONNXTensorElementDataType dtype);
/* A tensor over (or, for text, made from) an array. */
int py_tensor_of_array(py_state *st, PyObject *array, OrtValue **out, PyObject **hold);
/* A result as Python sees it; takes the value. */
PyObject *py_from_value(py_state *st, OrtValue *value);
/* The array of a tensor whose elements must be copied: text, and those below a byte. */
PyObject *py_copy_of_tensor(py_state *st, const OrtValue *value);
/* A capsule that owns a value. */
PyObject *py_capsule_of_value(OrtValue *value);

/* ---- objects ---- */

typedef struct py_value {
    PyObject_HEAD py_state *st;
    OrtValue *value;
    PyObject *hold; /* memory that the value looks at, or NULL */
} py_value;
/* Takes the value; hold is stolen and may be NULL. */
PyObject *py_wrap_value(py_state *st, OrtValue *value, PyObject *hold);
/* Of an OrtValue object; NULL with a TypeError. Borrowed. */
OrtValue *py_unwrap_value(py_state *st, PyObject *object);
PyObject *py_type_text(py_state *st, const OrtTypeInfo *info);
/* The element type of the tensors that a type is made of: of a map, its values. */
ONNXTensorElementDataType py_leaf_type(py_state *st, const OrtTypeInfo *info);
/* A tensor over memory that the caller has: element type (a number or a NumPy type), shape and
 * address. */
OrtValue *py_value_at(py_state *st, PyObject *element, PyObject *shape, PyObject *address);
/* Only the CPU has memory: 0 for its name or OrtDevice, or NULL. */
int py_want_cpu(PyObject *device);
PyObject *py_value_to_dlpack(py_state *st, PyObject *self, bool versioned);
PyObject *py_value_from_dlpack(py_state *st, PyObject *capsule, bool is_bool);
/* What a LoraAdapter has loaded; NULL with an exception. Borrowed. */
const OrtLoraAdapter *py_adapter_of(py_state *st, PyObject *object);
PyObject *py_sparse_of_value(py_state *st, OrtValue *value, PyObject *hold);

/* SessionOptions and RunOptions: properties with what was set, and the calls made, to copy and
 * pickle them. */
typedef struct py_options {
    PyObject_HEAD py_state *st;
    OrtSessionOptions *session; /* of SessionOptions */
    OrtRunOptions *run;         /* of RunOptions */
    PyObject *values;           /* dict: property -> value */
    PyObject *calls;            /* list of (method, arguments) */
} py_options;
PyObject *py_options_new(py_state *st);
/* A copy; `self` NULL: the defaults. */
py_options *py_options_copy(py_state *st, py_options *self);
/* Remembers a call for copies; takes args. None, or NULL with an exception, also when args is NULL.
 */
PyObject *py_options_note(py_options *self, const char *method, PyObject *args);
PyObject *py_add_files(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *keywords);
PyObject *py_compile_model(PyObject *self, PyObject *args);
/* is_late: a provider that cannot start is told of when the session is made, not here. */
int py_options_provider(py_options *self, PyObject *name, PyObject *options, bool is_late);
/* The RunOptions behind an argument, NULL for None or none; -1 with a TypeError. */
int py_run_options(py_state *st, PyObject *object, const OrtRunOptions **out);
PyObject *py_enum(py_state *st, const char *name, long value);

/* A session of the library with what a run needs at hand. Never changes after it was made. */
typedef struct py_loaded {
    PyObject_HEAD py_state *st;
    OrtSession *session;
    size_t count_in, count_init, count_out;
    PyObject **in_names, **out_names; /* interned str; initializers behind the inputs */
    const char **in_texts, **out_texts;
    struct py_want *wants;                                /* count_in + count_init */
    PyObject *in_bytes, *out_bytes;                       /* lists: what the texts point into */
    PyObject *inputs, *outputs, *initializers, *metadata; /* lists of NodeArg, ModelMetadata */
} py_loaded;
PyObject *py_load(py_state *st, PyObject *path, PyObject *bytes, py_options *options);

typedef struct py_session {
    PyObject_HEAD py_state *st;
    PyObject *dict, *weak;
    PY_GUARD
    py_loaded *loaded;      /* NULL: __init__ was not called */
    PyObject *path, *bytes; /* the model: one of them */
    PyObject *options;      /* as given, or NULL */
    PyObject *options_used;
    PyObject *providers, *provider_options; /* list of names, dict of dicts */
    PyObject *given;                        /* (providers, provider_options) for pickling */
} py_session;
/* A new reference to what is loaded; NULL with an exception. */
py_loaded *py_session_loaded(PyObject *self);

PyObject *py_node_args(py_state *st, OrtSession *session, int which, struct py_want *wants);
PyObject *py_metadata_of(py_state *st, OrtSession *session);
PyObject *py_memory_infos(py_state *st, const py_loaded *loaded, bool outputs);
PyObject *py_ep_devices_of(py_state *st, const py_loaded *loaded);
PyObject *py_strings_owned(py_state *st, char *text); /* a str; frees text with the allocator */

PyObject *py_run(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *keywords);
PyObject *py_run_async(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *keywords);
PyObject *py_run_values(PyObject *self, PyObject *const *args, Py_ssize_t count,
                        PyObject *keywords);
PyObject *py_run_vector(PyObject *self, PyObject *const *args, Py_ssize_t count,
                        PyObject *keywords);
PyObject *py_run_binding(PyObject *self, PyObject *const *args, Py_ssize_t count,
                         PyObject *keywords);
#endif
