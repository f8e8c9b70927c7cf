/* SPDX-License-Identifier: Apache-2.0
 * Where memory is and what runs: OrtMemoryInfo, OrtEpDevice, OrtHardwareDevice, and the functions
 * that list devices. What is only data (OrtDevice, OrtArenaCfg) is in sardonyx/_types.py. */
#include "py_state.h"

#include <string.h>

/* ---- OrtMemoryInfo ---- */

struct memory_info {
    PyObject_HEAD py_state *st;
    OrtMemoryInfo *info;
};

static void memory_info_dealloc(PyObject *object)
{
    struct memory_info *self = (struct memory_info *)object;
    if (self->info) OrtGetApiBase()->GetApi(ORT_API_VERSION)->ReleaseMemoryInfo(self->info);
    py_delete(object);
}

/* The int behind an int or a member of an enumeration. */
static long number_of(PyObject *object)
{
    PyObject *number = PyNumber_Index(object);
    const long value = number ? PyLong_AsLong(number) : -1;
    Py_XDECREF(number);
    return value;
}

static PyObject *memory_info_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"name", "allocator_type", "device_id", "mem_type", NULL};
    PyObject *name = NULL, *kind = NULL, *memory = NULL;
    int id = 0;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "UOiO", names, &name, &kind, &id, &memory))
        return NULL;
    const long allocator = number_of(kind), mem = number_of(memory);
    if (PyErr_Occurred()) return NULL;
    PyObject *text = PyUnicode_AsUTF8String(name);
    struct memory_info *self = text ? (struct memory_info *)py_new(type) : NULL;
    if (self && py_check_plain(self->st, self->st->api->CreateMemoryInfo(
                                             PyBytes_AsString(text), (OrtAllocatorType)allocator,
                                             id, (OrtMemType)mem, &self->info)) < 0)
        Py_CLEAR(self);
    Py_XDECREF(text);
    return (PyObject *)self;
}

static PyObject *create_v2(PyObject *type, PyObject *args)
{
    PyObject *name = NULL, *kind[3] = {NULL, NULL, NULL};
    unsigned vendor = 0;
    int id = 0;
    Py_ssize_t alignment = 0;
    long number[3] = {0, 0, 0};
    if (!PyArg_ParseTuple(args, "UOIiOnO", &name, &kind[0], &vendor, &id, &kind[1], &alignment,
                          &kind[2]))
        return NULL;
    for (int i = 0; i < 3; i++)
        number[i] = number_of(kind[i]);
    if (PyErr_Occurred()) return NULL;
    PyObject *text = PyUnicode_AsUTF8String(name);
    struct memory_info *self = text ? (struct memory_info *)py_new((PyTypeObject *)type) : NULL;
    if (self &&
        py_check_plain(self->st, self->st->api->CreateMemoryInfo_V2(
                                     PyBytes_AsString(text), (OrtMemoryInfoDeviceType)number[0],
                                     vendor, id, (OrtDeviceMemoryType)number[1], (size_t)alignment,
                                     (OrtAllocatorType)number[2], &self->info)) < 0)
        Py_CLEAR(self);
    Py_XDECREF(text);
    return (PyObject *)self;
}

/* A copy of what the library holds. */
static PyObject *wrap_info(py_state *st, const OrtMemoryInfo *info)
{
    const char *name = NULL;
    int id = 0;
    OrtAllocatorType allocator = OrtArenaAllocator;
    OrtMemType mem = OrtMemTypeDefault;
    struct memory_info *self = (struct memory_info *)py_new(st->memory_info);
    if (self &&
        (py_check(st, st->api->MemoryInfoGetName(info, &name)) < 0 ||
         py_check(st, st->api->MemoryInfoGetId(info, &id)) < 0 ||
         py_check(st, st->api->MemoryInfoGetType(info, &allocator)) < 0 ||
         py_check(st, st->api->MemoryInfoGetMemType(info, &mem)) < 0 ||
         py_check(st, st->api->CreateMemoryInfo(name, allocator, id, mem, &self->info)) < 0))
        Py_CLEAR(self);
    return (PyObject *)self;
}

/* The members, by the letter that the table of properties gives. */
static PyObject *memory_info_get(PyObject *object, void *closure)
{
    struct memory_info *self = (struct memory_info *)object;
    const OrtApi *api = self->st->api;
    const char *name = NULL;
    int id = 0;
    OrtAllocatorType allocator = OrtArenaAllocator;
    OrtMemType mem = OrtMemTypeDefault;
    switch (*(const char *)closure) {
    case 'n':
        return py_check(self->st, api->MemoryInfoGetName(self->info, &name)) < 0
                   ? NULL
                   : PyUnicode_FromString(name);
    case 'i':
        return py_check(self->st, api->MemoryInfoGetId(self->info, &id)) < 0 ? NULL
                                                                             : PyLong_FromLong(id);
    case 'm':
        return py_check(self->st, api->MemoryInfoGetMemType(self->info, &mem)) < 0
                   ? NULL
                   : py_enum(self->st, "OrtMemType", mem);
    case 'a':
        return py_check(self->st, api->MemoryInfoGetType(self->info, &allocator)) < 0
                   ? NULL
                   : py_enum(self->st, "OrtAllocatorType", allocator);
    case 'd':
        return py_enum(self->st, "OrtDeviceMemoryType",
                       api->MemoryInfoGetDeviceMemType(self->info));
    default: return PyLong_FromUnsignedLong(api->MemoryInfoGetVendorId(self->info));
    }
}

static PyGetSetDef memory_info_getset[] = {
    PY_GET("name", memory_info_get, "n", "str: 'Cpu'."),
    PY_GET("device_id", memory_info_get, "i", "int"),
    PY_GET("mem_type", memory_info_get, "m", "OrtMemType"),
    PY_GET("allocator_type", memory_info_get, "a", "OrtAllocatorType"),
    PY_GET("device_mem_type", memory_info_get, "d", "OrtDeviceMemoryType"),
    PY_GET("device_vendor_id", memory_info_get, "v", "int"),
    {0},
};

static PyMethodDef memory_info_methods[] = {
    {"create_v2", create_v2, METH_VARARGS | METH_CLASS,
     PY_DOC("create_v2",
            "($type, name, device_type, vendor_id, device_id, device_mem_type, alignment, "
            "allocator_type, /)",
            "-> OrtMemoryInfo")},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot memory_info_slots[] = {
    {Py_tp_doc, "OrtMemoryInfo(name, allocator_type, device_id, mem_type)\n\nWhere memory is. "
                "RuntimeError for a device that is not known."},
    {Py_tp_new, memory_info_new},
    {Py_tp_dealloc, memory_info_dealloc},
    {Py_tp_getset, memory_info_getset},
    {Py_tp_methods, memory_info_methods},
    {0, NULL},
};

PyObject *py_memory_infos(py_state *st, const py_loaded *loaded, bool outputs)
{
    const size_t count = outputs ? loaded->count_out : loaded->count_in;
    const OrtMemoryInfo **infos = py_calloc(count + 1, sizeof *infos);
    if (!infos) return PyErr_NoMemory();
    OrtStatus *status =
        (outputs ? st->api->SessionGetMemoryInfoForOutputs
                 : st->api->SessionGetMemoryInfoForInputs)(loaded->session, infos, count);
    PyObject *list = py_check(st, status) < 0 ? NULL : PyList_New((Py_ssize_t)count);
    for (size_t i = 0; list && i < count; i++) {
        PyObject *info = wrap_info(st, infos[i]);
        if (!info || PyList_SetItem(list, (Py_ssize_t)i, info) < 0) Py_CLEAR(list);
    }
    PyMem_Free((void *)infos);
    return list;
}

/* ---- devices: the library's own, which live as long as the environment ---- */

struct device {
    PyObject_HEAD py_state *st;
    const void *device; /* OrtEpDevice or OrtHardwareDevice */
};

static void device_dealloc(PyObject *object)
{
    py_delete(object);
}

static PyObject *wrap_device(py_state *st, PyTypeObject *type, const void *device)
{
    (void)st;
    struct device *self = (struct device *)py_new(type);
    if (self) self->device = device;
    return (PyObject *)self;
}

static PyObject *dict_of_pairs(py_state *st, const OrtKeyValuePairs *pairs)
{
    const char *const *keys = NULL, *const *values = NULL;
    size_t count = 0;
    PyObject *dict = PyDict_New();
    if (dict && pairs) st->api->GetKeyValuePairs(pairs, &keys, &values, &count);
    for (size_t i = 0; dict && i < count; i++) {
        PyObject *value = PyUnicode_FromString(values[i]);
        if (!value || PyDict_SetItemString(dict, keys[i], value) < 0) Py_CLEAR(dict);
        Py_XDECREF(value);
    }
    return dict;
}

static PyObject *ep_device_get(PyObject *object, void *closure)
{
    struct device *self = (struct device *)object;
    const OrtApi *api = self->st->api;
    const OrtEpDevice *device = self->device;
    switch (*(const char *)closure) {
    case 'n': return PyUnicode_FromString(api->EpDevice_EpName(device));
    case 'v': return PyUnicode_FromString(api->EpDevice_EpVendor(device));
    case 'm': return dict_of_pairs(self->st, api->EpDevice_EpMetadata(device));
    case 'o': return dict_of_pairs(self->st, api->EpDevice_EpOptions(device));
    default: return wrap_device(self->st, self->st->hardware, api->EpDevice_Device(device));
    }
}

static PyObject *ep_device_memory(PyObject *object, PyObject *kind)
{
    struct device *self = (struct device *)object;
    const long memory = number_of(kind);
    if (PyErr_Occurred()) return NULL;
    const OrtMemoryInfo *info =
        self->st->api->EpDevice_MemoryInfo(self->device, (OrtDeviceMemoryType)memory);
    if (info) return wrap_info(self->st, info);
    Py_RETURN_NONE;
}

static PyObject *ep_device_stream(PyObject *object, PyObject *unused)
{
    (void)unused;
    PyErr_SetString(((struct device *)object)->st->errors[ORT_NOT_IMPLEMENTED],
                    "the CPU has no streams");
    return NULL;
}

static PyGetSetDef ep_device_getset[] = {
    PY_GET("ep_name", ep_device_get, "n", "str: name of the execution provider."),
    PY_GET("ep_vendor", ep_device_get, "v", "str"),
    PY_GET("ep_metadata", ep_device_get, "m", "dict[str, str]"),
    PY_GET("ep_options", ep_device_get, "o", "dict[str, str]"),
    PY_GET("device", ep_device_get, "d", "OrtHardwareDevice"),
    {0},
};

static PyMethodDef ep_device_methods[] = {
    {"memory_info", ep_device_memory, METH_O,
     PY_DOC("memory_info", "($self, memory_type, /)", "-> OrtMemoryInfo | None")},
    PY_ASK("create_sync_stream", ep_device_stream, "NotImplemented."),
    {NULL, NULL, 0, NULL},
};

static PyType_Slot ep_device_slots[] = {
    {Py_tp_doc, "An execution provider on a device."},
    {Py_tp_dealloc, device_dealloc},
    {Py_tp_getset, ep_device_getset},
    {Py_tp_methods, ep_device_methods},
    {0, NULL},
};

static PyObject *hardware_get(PyObject *object, void *closure)
{
    struct device *self = (struct device *)object;
    const OrtApi *api = self->st->api;
    const OrtHardwareDevice *device = self->device;
    switch (*(const char *)closure) {
    case 't': return py_enum(self->st, "OrtHardwareDeviceType", api->HardwareDevice_Type(device));
    case 'v': return PyUnicode_FromString(api->HardwareDevice_Vendor(device));
    case 'm': return dict_of_pairs(self->st, api->HardwareDevice_Metadata(device));
    case 'i': return PyLong_FromUnsignedLong(api->HardwareDevice_DeviceId(device));
    default: return PyLong_FromUnsignedLong(api->HardwareDevice_VendorId(device));
    }
}

static PyGetSetDef hardware_getset[] = {
    PY_GET("type", hardware_get, "t", "OrtHardwareDeviceType"),
    PY_GET("vendor", hardware_get, "v", "str"),
    PY_GET("metadata", hardware_get, "m", "dict[str, str]"),
    PY_GET("device_id", hardware_get, "i", "int"),
    PY_GET("vendor_id", hardware_get, "d", "int"),
    {0},
};

static PyType_Slot hardware_slots[] = {
    {Py_tp_doc, "A processor of this machine."},
    {Py_tp_dealloc, device_dealloc},
    {Py_tp_getset, hardware_getset},
    {0, NULL},
};

static PyObject *list_of_devices(py_state *st, PyTypeObject *type, const void *const *devices,
                                 size_t count)
{
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; list && i < count; i++) {
        PyObject *device = wrap_device(st, type, devices[i]);
        if (!device || PyList_SetItem(list, (Py_ssize_t)i, device) < 0) Py_CLEAR(list);
    }
    return list;
}

PyObject *py_ep_devices_of(py_state *st, const py_loaded *loaded)
{
    const OrtEpDevice **devices = py_calloc(loaded->count_in + 1, sizeof *devices);
    if (!devices) return PyErr_NoMemory();
    PyObject *list = NULL;
    if (py_check(st, st->api->SessionGetEpDeviceForInputs(loaded->session, devices,
                                                          loaded->count_in)) == 0)
        list = list_of_devices(st, st->ep_device, (const void *const *)devices, loaded->count_in);
    PyMem_Free((void *)devices);
    return list;
}

/* ---- functions ---- */

static PyObject *get_ep_devices(PyObject *module, PyObject *unused)
{
    py_state *st = py_state_of_module(module);
    const OrtEpDevice *const *devices = NULL;
    size_t count = 0;
    (void)unused;
    if (py_check(st, st->api->GetEpDevices(st->env, &devices, &count)) < 0) return NULL;
    return list_of_devices(st, st->ep_device, (const void *const *)devices, count);
}

static PyObject *register_provider(PyObject *module, PyObject *args)
{
    py_state *st = py_state_of_module(module);
    const char *name = NULL;
    PyObject *path = NULL;
    if (!PyArg_ParseTuple(args, "sO&", &name, PyUnicode_FSConverter, &path)) return NULL;
    const int failed = py_check(
        st, st->api->RegisterExecutionProviderLibrary(st->env, name, PyBytes_AsString(path)));
    Py_DECREF(path);
    if (failed) return NULL;
    Py_RETURN_NONE;
}

static PyObject *unregister_provider(PyObject *module, PyObject *name)
{
    py_state *st = py_state_of_module(module);
    PyObject *text = py_utf8(name, "name");
    if (!text) return NULL;
    const int failed =
        py_check(st, st->api->UnregisterExecutionProviderLibrary(st->env, PyBytes_AsString(text)));
    Py_DECREF(text);
    if (failed) return NULL;
    Py_RETURN_NONE;
}

/* There is one allocator, and it has no settings. */
static PyObject *register_allocator(PyObject *module, PyObject *args)
{
    (void)module;
    (void)args;
    Py_RETURN_NONE;
}

static PyObject *copy_tensors(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *from = NULL, *to = NULL, *stream = NULL;
    if (!PyArg_ParseTuple(args, "OO|O", &from, &to, &stream)) return NULL;
    const Py_ssize_t count = PySequence_Size(from);
    if (count < 0) return NULL;
    if (PySequence_Size(to) != count) {
        PyErr_SetString(PyExc_ValueError, "copy_tensors wants as many destinations as sources");
        return NULL;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *source = PySequence_GetItem(from, i), *target = PySequence_GetItem(to, i);
        PyObject *done =
            source && target ? PyObject_CallMethod(target, "update_inplace", "O", source) : NULL;
        Py_XDECREF(source);
        Py_XDECREF(target);
        if (!done) return NULL;
        Py_DECREF(done);
    }
    Py_RETURN_NONE;
}

/* Threads belong to sessions, which share them where the options say so. */
static PyObject *set_pool_sizes(PyObject *module, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"intra_op_num_threads", "inter_op_num_threads", NULL};
    int intra = 0, inter = 0;
    (void)module;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "|ii", names, &intra, &inter)) return NULL;
    Py_RETURN_NONE;
}

int py_add_devices(py_state *st)
{
    static PyMethodDef functions[] = {
        {"get_ep_devices", get_ep_devices, METH_NOARGS,
         PY_DOC("get_ep_devices", "($module)", "-> list[OrtEpDevice]")},
        {"register_execution_provider_library", register_provider, METH_VARARGS,
         PY_DOC("register_execution_provider_library", "($module, name, path, /)",
                "Fail when the library cannot be loaded.")},
        {"unregister_execution_provider_library", unregister_provider, METH_O,
         PY_DOC("unregister_execution_provider_library", "($module, name, /)",
                "Takes it out again.")},
        {"create_and_register_allocator", register_allocator, METH_VARARGS,
         PY_DOC("create_and_register_allocator", "($module, memory_info, arena_cfg, /)",
                "Taken: there is one allocator.")},
        {"create_and_register_allocator_v2", register_allocator, METH_VARARGS,
         PY_DOC("create_and_register_allocator_v2",
                "($module, provider, memory_info, options, arena_cfg, /)",
                "Taken: there is one allocator.")},
        {"copy_tensors", copy_tensors, METH_VARARGS,
         PY_DOC("copy_tensors", "($module, sources, destinations, stream=None, /)",
                "Copies elements between OrtValues of equal size.")},
        {"set_global_thread_pool_sizes", (PyCFunction)(void (*)(void))set_pool_sizes,
         METH_VARARGS | METH_KEYWORDS,
         PY_DOC("set_global_thread_pool_sizes",
                "($module, intra_op_num_threads=0, inter_op_num_threads=0)",
                "Taken: set the threads of a session.")},
        {NULL, NULL, 0, NULL},
    };
    PyType_Spec info = {.basicsize = sizeof(struct memory_info), .slots = memory_info_slots};
    PyType_Spec device = {.basicsize = sizeof(struct device), .slots = ep_device_slots};
    PyType_Spec hardware = {.basicsize = sizeof(struct device), .slots = hardware_slots};
    if (py_add_type(st, &st->memory_info, &info) < 0) return -1;
    if (py_add_type(st, &st->ep_device, &device) < 0) return -1;
    if (py_add_type(st, &st->hardware, &hardware) < 0) return -1;
    return PyModule_AddFunctions(st->module, functions);
}
