/* SPDX-License-Identifier: Apache-2.0
 * DLPack both ways: tensors that share memory with other libraries. The structures are those of the
 * protocol (dmlc.github.io/dlpack), with and without its version. */
#include "py_state.h"

#include <stdlib.h>
#include <string.h>

#define DTYPE(name) ONNX_TENSOR_ELEMENT_DATA_TYPE_##name

enum {
    ON_CPU = 1,
    CODE_INT = 0,
    CODE_UINT = 1,
    CODE_FLOAT = 2,
    CODE_BFLOAT = 4,
    CODE_COMPLEX = 5,
    CODE_BOOL = 6
};

struct dl_tensor {
    void *data;
    int32_t device_type, device_id;
    int32_t rank;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *dims, *strides; /* strides NULL: packed */
    uint64_t offset;
};

struct dl_managed {
    struct dl_tensor tensor;
    void *context;
    void (*release)(struct dl_managed *self);
};

struct dl_versioned {
    uint32_t major, minor;
    void *context;
    void (*release)(struct dl_versioned *self);
    uint64_t flags;
    struct dl_tensor tensor;
};

/* X(element type, code, bits) */
#define DL_DTYPES(X)                                                                               \
    X(FLOAT, CODE_FLOAT, 32)                                                                       \
    X(DOUBLE, CODE_FLOAT, 64)                                                                      \
    X(FLOAT16, CODE_FLOAT, 16)                                                                     \
    X(BFLOAT16, CODE_BFLOAT, 16)                                                                   \
    X(INT8, CODE_INT, 8)                                                                           \
    X(INT16, CODE_INT, 16)                                                                         \
    X(INT32, CODE_INT, 32)                                                                         \
    X(INT64, CODE_INT, 64)                                                                         \
    X(UINT8, CODE_UINT, 8)                                                                         \
    X(UINT16, CODE_UINT, 16)                                                                       \
    X(UINT32, CODE_UINT, 32)                                                                       \
    X(UINT64, CODE_UINT, 64)                                                                       \
    X(BOOL, CODE_BOOL, 8)                                                                          \
    X(COMPLEX64, CODE_COMPLEX, 64)                                                                 \
    X(COMPLEX128, CODE_COMPLEX, 128)

static const struct dl_dtype {
    ONNXTensorElementDataType dtype;
    uint8_t code, bits;
} dl_dtypes[] = {
#define DL_DTYPE(name, code, bits) {DTYPE(name), code, bits},
    DL_DTYPES(DL_DTYPE)
#undef DL_DTYPE
};
enum { COUNT_DTYPES_DL = sizeof dl_dtypes / sizeof dl_dtypes[0] };

/* ---- out ---- */

/* What a consumer holds: the tensor's head, our object, and the lengths. */
struct exported {
    union {
        struct dl_managed plain;
        struct dl_versioned versioned;
    } head;
    PyObject *owner;
    int64_t dims[];
};

static void release_exported(struct exported *exported)
{
    const PyGILState_STATE held = PyGILState_Ensure();
    Py_DECREF(exported->owner);
    PyGILState_Release(held);
    free(exported);
}

static void release_plain(struct dl_managed *managed)
{
    release_exported(managed->context);
}

static void release_versioned(struct dl_versioned *managed)
{
    release_exported(managed->context);
}

/* A capsule that nobody took; a taken one has another name. */
static void drop_capsule(PyObject *capsule)
{
    if (PyCapsule_IsValid(capsule, "dltensor"))
        release_plain(PyCapsule_GetPointer(capsule, "dltensor"));
    else if (PyCapsule_IsValid(capsule, "dltensor_versioned"))
        release_versioned(PyCapsule_GetPointer(capsule, "dltensor_versioned"));
}

static int fill_dtype(struct dl_tensor *tensor, ONNXTensorElementDataType dtype)
{
    for (int i = 0; i < COUNT_DTYPES_DL; i++) {
        if (dl_dtypes[i].dtype != dtype) continue;
        tensor->code = dl_dtypes[i].code;
        tensor->bits = dl_dtypes[i].bits;
        tensor->lanes = 1;
        return 0;
    }
    PyErr_SetString(PyExc_RuntimeError, "DLPack has no such element type");
    return -1;
}

PyObject *py_value_to_dlpack(py_state *st, PyObject *self, bool versioned)
{
    OrtValue *value = py_unwrap_value(st, self);
    ONNXTensorElementDataType dtype = DTYPE(UNDEFINED);
    const int64_t *dims = NULL;
    size_t rank = 0;
    void *data = NULL;
    if (!value || py_check(st, st->api->GetTensorElementTypeAndShapeDataReference(
                                   value, &dtype, &dims, &rank)) < 0)
        return NULL;
    struct exported *exported = calloc(1, sizeof *exported + rank * sizeof *dims);
    if (!exported) return PyErr_NoMemory();
    struct dl_tensor *tensor =
        versioned ? &exported->head.versioned.tensor : &exported->head.plain.tensor;
    if (fill_dtype(tensor, dtype) < 0 ||
        py_check(st, st->api->GetTensorMutableData(value, &data)) < 0) {
        free(exported);
        return NULL;
    }
    if (rank) memcpy(exported->dims, dims, rank * sizeof *dims);
    tensor->data = data;
    tensor->device_type = ON_CPU;
    tensor->rank = (int32_t)rank;
    tensor->dims = exported->dims;
    exported->owner = self;
    if (versioned) {
        exported->head.versioned.major = 1;
        exported->head.versioned.context = exported;
        exported->head.versioned.release = release_versioned;
    } else {
        exported->head.plain.context = exported;
        exported->head.plain.release = release_plain;
    }
    PyObject *capsule =
        PyCapsule_New(&exported->head, versioned ? "dltensor_versioned" : "dltensor", drop_capsule);
    if (!capsule) {
        free(exported);
        return NULL;
    }
    Py_INCREF(self);
    return capsule;
}

/* ---- in ---- */

static void drop_taken(PyObject *capsule)
{
    const char *name = PyCapsule_GetName(capsule);
    void *head = PyCapsule_GetPointer(capsule, name);
    if (strcmp(name, "used_dltensor") == 0) {
        struct dl_managed *managed = head;
        if (managed->release) managed->release(managed);
    } else {
        struct dl_versioned *managed = head;
        if (managed->release) managed->release(managed);
    }
}

static bool is_packed(const struct dl_tensor *tensor)
{
    int64_t step = 1;
    for (int i = tensor->rank - 1; tensor->strides && i >= 0; i--) {
        if (tensor->dims[i] == 0) return true;
        if (tensor->dims[i] != 1 && tensor->strides[i] != step) return false;
        step *= tensor->dims[i];
    }
    return true;
}

static ONNXTensorElementDataType dtype_of(const struct dl_tensor *tensor, bool is_bool)
{
    if (is_bool && tensor->bits == 8) return DTYPE(BOOL);
    for (int i = 0; i < COUNT_DTYPES_DL; i++)
        if (dl_dtypes[i].code == tensor->code && dl_dtypes[i].bits == tensor->bits &&
            tensor->lanes == 1)
            return dl_dtypes[i].dtype;
    return DTYPE(UNDEFINED);
}

static int wrap_tensor(py_state *st, const struct dl_tensor *tensor, bool is_bool, OrtValue **out)
{
    const ONNXTensorElementDataType dtype = dtype_of(tensor, is_bool);
    if (tensor->device_type != ON_CPU) {
        PyErr_SetString(PyExc_RuntimeError, "the tensor is not in the CPU's memory");
        return -1;
    }
    if (dtype == DTYPE(UNDEFINED)) {
        PyErr_Format(PyExc_RuntimeError, "Unsupported code %d", (int)tensor->code);
        return -1;
    }
    if (!is_packed(tensor)) {
        PyErr_SetString(PyExc_RuntimeError, "ORT only supports contiguous tensor for now.");
        return -1;
    }
    size_t bytes = tensor->bits / 8;
    for (int i = 0; i < tensor->rank; i++)
        bytes *= (size_t)tensor->dims[i];
    char *data = tensor->data;
    return py_check(st, st->api->CreateTensorWithDataAsOrtValue(
                            st->cpu_info, data ? data + tensor->offset : data, bytes, tensor->dims,
                            (size_t)tensor->rank, dtype, out));
}

/* Takes the tensor out of the capsule; the value keeps it through a capsule of ours. */
PyObject *py_value_from_dlpack(py_state *st, PyObject *capsule, bool is_bool)
{
    const bool versioned = PyCapsule_IsValid(capsule, "dltensor_versioned");
    if (!versioned && !PyCapsule_IsValid(capsule, "dltensor")) {
        PyErr_SetString(PyExc_TypeError,
                        "from_dlpack expected a valid DLPack capsule named 'dltensor'");
        return NULL;
    }
    void *head = PyCapsule_GetPointer(capsule, versioned ? "dltensor_versioned" : "dltensor");
    struct dl_tensor *tensor =
        versioned ? &((struct dl_versioned *)head)->tensor : &((struct dl_managed *)head)->tensor;
    OrtValue *value = NULL;
    if (wrap_tensor(st, tensor, is_bool, &value) < 0) return NULL;
    const char *used = versioned ? "used_dltensor_versioned" : "used_dltensor";
    PyObject *keeper = PyCapsule_New(head, used, drop_taken);
    if (!keeper || PyCapsule_SetName(capsule, used) < 0) {
        st->api->ReleaseValue(value);
        if (keeper) PyCapsule_SetDestructor(keeper, NULL);
        Py_XDECREF(keeper);
        return NULL;
    }
    return py_wrap_value(st, value, keeper);
}
