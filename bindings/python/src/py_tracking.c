/* SPDX-License-Identifier: Apache-2.0
 * The streaming modules of sardonyx.tracknet and the resizing of sardonyx.vision, as functions on
 * handles; the classes over them are Python. A handle may be used by several threads: calls on it
 * wait for each other, without the GIL. */
#include "py_state.h"

#include <pthread.h>
#include <sardonyx/vision.h>
#include <stdlib.h>
#include <string.h>

#define HANDLE "sardonyx.handle"

/* One of the two modules, with a context of its own. */
struct handle {
    sdx_context *cx;
    sdx_tracknet *tracknet;
    sdx_inpaint *inpaint;
    pthread_mutex_t lock;
};

static void handle_free(struct handle *handle)
{
    sdx_tracknet_destroy(handle->tracknet);
    sdx_inpaint_destroy(handle->inpaint);
    sdx_context_destroy(handle->cx);
    pthread_mutex_destroy(&handle->lock);
    free(handle);
}

static void handle_end(PyObject *capsule)
{
    struct handle *handle = PyCapsule_GetPointer(capsule, HANDLE);
    Py_BEGIN_ALLOW_THREADS;
    handle_free(handle);
    Py_END_ALLOW_THREADS;
}

static struct handle *handle_new(void)
{
    struct handle *handle = calloc(1, sizeof *handle);
    if (handle && !(handle->cx = sdx_context_create(NULL))) {
        free(handle);
        handle = NULL;
    }
    if (handle)
        pthread_mutex_init(&handle->lock, NULL);
    else
        PyErr_NoMemory();
    return handle;
}

/* ValueError for what the caller or the model's file says, RuntimeError for what a run meets. */
static int raise_fault(sdx_status status, const sdx_vision_fault *fault)
{
    PyObject *text = PyUnicode_DecodeUTF8(fault->text, (Py_ssize_t)strlen(fault->text), "replace");
    if (!text) return -1;
    switch (status) {
    case SDX_OUT_OF_MEMORY: PyErr_SetObject(PyExc_MemoryError, text); break;
    case SDX_RUN_FAILED:
    case SDX_CANCELLED:
    case SDX_INTERNAL: PyErr_SetObject(PyExc_RuntimeError, text); break;
    default: PyErr_SetObject(PyExc_ValueError, text);
    }
    Py_DECREF(text);
    return -1;
}

/* The object that owns a module which was opened; frees the handle when it was not. */
static PyObject *handle_give(struct handle *handle, sdx_status status,
                             const sdx_vision_fault *fault)
{
    PyObject *capsule = NULL;
    if (status)
        raise_fault(status, fault);
    else
        capsule = PyCapsule_New(handle, HANDLE, handle_end);
    if (!capsule) handle_free(handle);
    return capsule;
}

static PyObject *track_dict(const sdx_track *track)
{
    return Py_BuildValue("{s:L,s:i,s:i,s:i}", "Frame", (long long)track->frame, "X", track->x, "Y",
                         track->y, "Visibility", track->visibility);
}

/* An array of bytes of rank `least` to `most`; ValueError that names `what`. */
static int open_bytes(py_state *st, PyObject *object, const char *what, int least, int most,
                      struct py_array *view)
{
    if (!py_is_array(st, object)) {
        PyErr_Format(PyExc_TypeError, "%s must be a numpy.ndarray of uint8", what);
        return -1;
    }
    if (py_open_array(st, object, view) < 0) return -1;
    if (view->kind == 'u' && view->size == 1 && view->rank >= least && view->rank <= most) return 0;
    PyErr_Format(PyExc_ValueError,
                 "%s must be of uint8 with %d%s dimensions, got kind '%c' with %d", what, least,
                 least == most ? "" : " or more", view->kind, view->rank);
    Py_CLEAR(view->array);
    return -1;
}

/* ---- tracknet ---- */

/* _tracknet_open(path, seq_len, device, bg_mode, eval_mode, median, median_warmup) */
static PyObject *tracknet_open(PyObject *module, PyObject *args)
{
    py_state *st = py_state_of_module(module);
    const char *path = NULL;
    PyObject *median = NULL;
    struct py_array view = {0};
    sdx_tracknet_options options;
    sdx_tracknet_options_init(&options);
    if (!PyArg_ParseTuple(args, "sizszOi", &path, &options.seq_len, &options.device,
                          &options.bg_mode, &options.eval_mode, &median, &options.median_warmup))
        return NULL;
    if (median != Py_None) {
        if (py_open_array(st, median, &view) < 0) return NULL;
        options.median = view.data;
        options.median_dtype = (sdx_dtype)view.dtype;
        options.median_height = (int)view.dims[0];
        options.median_width = (int)view.dims[1];
    }
    struct handle *handle = handle_new();
    sdx_vision_fault fault = {""};
    sdx_status status = SDX_OK;
    if (handle) {
        Py_BEGIN_ALLOW_THREADS;
        status = sdx_tracknet_open(handle->cx, path, &options, &handle->tracknet, &fault);
        Py_END_ALLOW_THREADS;
    }
    Py_XDECREF(view.array);
    if (!handle) return NULL;
    return handle_give(handle, status, &fault);
}

/* _tracknet_push(handle, frame, frame_id) */
static PyObject *tracknet_push(PyObject *module, PyObject *args)
{
    py_state *st = py_state_of_module(module);
    PyObject *capsule = NULL, *frame = NULL, *frame_id = NULL;
    struct py_array view = {0};
    if (!PyArg_ParseTuple(args, "OOO", &capsule, &frame, &frame_id)) return NULL;
    struct handle *handle = PyCapsule_GetPointer(capsule, HANDLE);
    if (!handle) return NULL;
    const bool named = frame_id != Py_None;
    const int64_t id = named ? PyLong_AsLongLong(frame_id) : 0;
    if (id == -1 && PyErr_Occurred()) return NULL;
    if (open_bytes(st, frame, "frame_bgr", 3, 3, &view) < 0) return NULL;
    if (view.dims[2] != 3 || view.dims[0] > INT32_MAX || view.dims[1] > INT32_MAX) {
        PyErr_Format(PyExc_ValueError, "frame_bgr must be [H, W, 3], got [%zd, %zd, %zd]",
                     (Py_ssize_t)view.dims[0], (Py_ssize_t)view.dims[1], (Py_ssize_t)view.dims[2]);
        Py_DECREF(view.array);
        return NULL;
    }
    sdx_vision_fault fault = {""};
    sdx_track track;
    bool found = false;
    sdx_status status = SDX_OK;
    Py_BEGIN_ALLOW_THREADS;
    pthread_mutex_lock(&handle->lock);
    status = sdx_tracknet_push(handle->tracknet, view.data, (int)view.dims[1], (int)view.dims[0], 0,
                               named ? &id : NULL, &track, &found, &fault);
    pthread_mutex_unlock(&handle->lock);
    Py_END_ALLOW_THREADS;
    Py_DECREF(view.array);
    if (status) {
        raise_fault(status, &fault);
        return NULL;
    }
    if (found) return track_dict(&track);
    Py_RETURN_NONE;
}

/* _tracknet_heat(handle): the heat map of the last track, or None. */
static PyObject *tracknet_heat(PyObject *module, PyObject *capsule)
{
    struct handle *handle = PyCapsule_GetPointer(capsule, HANDLE);
    if (!handle) return NULL;
    const float *heat = sdx_tracknet_heat(handle->tracknet);
    const int64_t dims[2] = {SDX_TRACKNET_HEIGHT, SDX_TRACKNET_WIDTH};
    if (!heat) Py_RETURN_NONE;
    return py_make_array(py_state_of_module(module), ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, 2, dims,
                         (void *)(uintptr_t)heat, NULL);
}

/* _tracknet_size(handle): (W, H) of the first frame, or None. */
static PyObject *tracknet_size(PyObject *module, PyObject *capsule)
{
    (void)module;
    struct handle *handle = PyCapsule_GetPointer(capsule, HANDLE);
    int width = 0, height = 0;
    if (!handle) return NULL;
    if (!sdx_tracknet_frame_size(handle->tracknet, &width, &height)) Py_RETURN_NONE;
    return Py_BuildValue("(ii)", width, height);
}

/* ---- inpaint ---- */

/* _inpaint_open(path, seq_len, device, scale_x, scale_y) */
static PyObject *inpaint_open(PyObject *module, PyObject *args)
{
    const char *path = NULL;
    sdx_inpaint_options options;
    sdx_inpaint_options_init(&options);
    (void)module;
    if (!PyArg_ParseTuple(args, "sizdd", &path, &options.seq_len, &options.device, &options.scale_x,
                          &options.scale_y))
        return NULL;
    struct handle *handle = handle_new();
    sdx_vision_fault fault = {""};
    sdx_status status = SDX_OK;
    if (!handle) return NULL;
    Py_BEGIN_ALLOW_THREADS;
    status = sdx_inpaint_open(handle->cx, path, &options, &handle->inpaint, &fault);
    Py_END_ALLOW_THREADS;
    return handle_give(handle, status, &fault);
}

/* _inpaint_push(handle, frame, x, y, visibility, scale_x, scale_y) */
static PyObject *inpaint_push(PyObject *module, PyObject *args)
{
    PyObject *capsule = NULL;
    long long frame = 0;
    sdx_track track = {0}, filled;
    double scale_x = 1, scale_y = 1;
    (void)module;
    if (!PyArg_ParseTuple(args, "OLiiidd", &capsule, &frame, &track.x, &track.y, &track.visibility,
                          &scale_x, &scale_y))
        return NULL;
    struct handle *handle = PyCapsule_GetPointer(capsule, HANDLE);
    if (!handle) return NULL;
    track.frame = frame;
    sdx_vision_fault fault = {""};
    bool found = false;
    sdx_status status = SDX_OK;
    Py_BEGIN_ALLOW_THREADS;
    pthread_mutex_lock(&handle->lock);
    sdx_inpaint_set_scale(handle->inpaint, scale_x, scale_y);
    status = sdx_inpaint_push(handle->inpaint, &track, &filled, &found, &fault);
    pthread_mutex_unlock(&handle->lock);
    Py_END_ALLOW_THREADS;
    if (status) {
        raise_fault(status, &fault);
        return NULL;
    }
    if (found) return track_dict(&filled);
    Py_RETURN_NONE;
}

/* ---- both ---- */

static bool flush_one(struct handle *handle, sdx_track *track)
{
    bool found = false;
    Py_BEGIN_ALLOW_THREADS;
    pthread_mutex_lock(&handle->lock);
    found = handle->tracknet ? sdx_tracknet_flush(handle->tracknet, track)
                             : sdx_inpaint_flush(handle->inpaint, track);
    pthread_mutex_unlock(&handle->lock);
    Py_END_ALLOW_THREADS;
    return found;
}

/* _track_flush(handle): the tracks that are left. */
static PyObject *track_flush(PyObject *module, PyObject *capsule)
{
    (void)module;
    struct handle *handle = PyCapsule_GetPointer(capsule, HANDLE);
    PyObject *list = handle ? PyList_New(0) : NULL;
    sdx_track track;
    while (list && flush_one(handle, &track)) {
        PyObject *dict = track_dict(&track);
        if (!dict || PyList_Append(list, dict) < 0) Py_CLEAR(list);
        Py_XDECREF(dict);
    }
    return list;
}

/* _track_reset(handle) */
static PyObject *track_reset(PyObject *module, PyObject *capsule)
{
    (void)module;
    struct handle *handle = PyCapsule_GetPointer(capsule, HANDLE);
    if (!handle) return NULL;
    Py_BEGIN_ALLOW_THREADS;
    pthread_mutex_lock(&handle->lock);
    if (handle->tracknet)
        sdx_tracknet_reset(handle->tracknet);
    else
        sdx_inpaint_reset(handle->inpaint);
    pthread_mutex_unlock(&handle->lock);
    Py_END_ALLOW_THREADS;
    Py_RETURN_NONE;
}

/* _track_stats(handle): dict */
static PyObject *track_stats(PyObject *module, PyObject *capsule)
{
    (void)module;
    struct handle *handle = PyCapsule_GetPointer(capsule, HANDLE);
    sdx_track_stats s;
    if (!handle) return NULL;
    if (!handle->tracknet) {
        sdx_inpaint_get_stats(handle->inpaint, &s);
        return Py_BuildValue("{s:L,s:L,s:d,s:d}", "push_calls", (long long)s.push_calls, "outputs",
                             (long long)s.outputs, "t_forward", s.t_forward, "t_post", s.t_post);
    }
    sdx_tracknet_get_stats(handle->tracknet, &s);
    return Py_BuildValue("{s:L,s:L,s:d,s:d,s:d,s:d}", "push_calls", (long long)s.push_calls,
                         "outputs", (long long)s.outputs, "t_preprocess", s.t_preprocess,
                         "t_forward", s.t_forward, "t_post", s.t_post, "t_median", s.t_median);
}

/* _track_provider(handle): what runs the model. */
static PyObject *track_provider(PyObject *module, PyObject *capsule)
{
    (void)module;
    struct handle *handle = PyCapsule_GetPointer(capsule, HANDLE);
    if (!handle) return NULL;
    return PyUnicode_FromString(handle->tracknet ? sdx_tracknet_provider(handle->tracknet)
                                                 : sdx_inpaint_provider(handle->inpaint));
}

/* ---- pictures ---- */

/* _resize_area(image, width, height) */
static PyObject *resize_area(PyObject *module, PyObject *args)
{
    py_state *st = py_state_of_module(module);
    PyObject *object = NULL;
    int width = 0, height = 0;
    struct py_array view = {0};
    if (!PyArg_ParseTuple(args, "Oii", &object, &width, &height)) return NULL;
    if (open_bytes(st, object, "image", 2, 3, &view) < 0) return NULL;
    const int rank = view.rank;
    const int64_t channels = rank == 3 ? view.dims[2] : 1;
    sdx_vision_fault fault = {""};
    sdx_image out = {0};
    sdx_status status = SDX_INVALID_ARGUMENT;
    if (view.dims[0] < 1 || view.dims[1] < 1 || view.dims[0] > UINT16_MAX + 1 ||
        view.dims[1] > UINT16_MAX + 1 || channels < 1 || channels > 4) {
        PyErr_SetString(PyExc_ValueError,
                        "image must be [H, W] or [H, W, C] with 1 to 65536 rows and columns, "
                        "1 to 4 channels");
        Py_DECREF(view.array);
        return NULL;
    }
    const sdx_image image = {(int)view.dims[1], (int)view.dims[0], (int)channels, view.data};
    Py_BEGIN_ALLOW_THREADS;
    status = sdx_image_resize_area(&image, width, height, &out, &fault);
    Py_END_ALLOW_THREADS;
    Py_DECREF(view.array);
    if (status) {
        raise_fault(status, &fault);
        return NULL;
    }
    const int64_t dims[3] = {height, width, channels};
    PyObject *array = py_make_array(st, ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8, (size_t)rank, dims,
                                    out.pixels, NULL);
    sdx_image_deinit(&out);
    return array;
}

PyMethodDef py_tracking_methods[] = {
    {"_tracknet_open", tracknet_open, METH_VARARGS, NULL},
    {"_tracknet_push", tracknet_push, METH_VARARGS, NULL},
    {"_tracknet_heat", tracknet_heat, METH_O, NULL},
    {"_tracknet_size", tracknet_size, METH_O, NULL},
    {"_inpaint_open", inpaint_open, METH_VARARGS, NULL},
    {"_inpaint_push", inpaint_push, METH_VARARGS, NULL},
    {"_track_flush", track_flush, METH_O, NULL},
    {"_track_reset", track_reset, METH_O, NULL},
    {"_track_stats", track_stats, METH_O, NULL},
    {"_track_provider", track_provider, METH_O, NULL},
    {"_resize_area", resize_area, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
