# SPDX-License-Identifier: Apache-2.0
"""The public interface of the engine through ctypes, as far as tests of providers need it."""
import ctypes as c
from contextlib import contextmanager

import numpy as np

F32, I64, STRING = 1, 7, 8
SEQUENCE, OPTIONAL, MAP = 2, 3, 4
NUMPY = {1: np.float32, 7: np.int64, 9: np.bool_, 11: np.float64, 6: np.int32}
LOG = c.CFUNCTYPE(None, c.c_int, c.c_char_p, c.c_char_p, c.c_void_p)


class ContextOptions(c.Structure):
    _fields_ = [("size", c.c_size_t), ("log", LOG), ("log_user", c.c_void_p), ("log_level", c.c_int),
                ("alloc", c.c_void_p), ("free", c.c_void_p), ("alloc_user", c.c_void_p),
                ("memory_limit", c.c_size_t), ("threads", c.c_int), ("parent", c.c_void_p),
                ("thread_start", c.c_void_p), ("thread_join", c.c_void_p), ("thread_user", c.c_void_p)]


class ProviderOption(c.Structure):
    _fields_ = [("provider", c.c_char_p), ("key", c.c_char_p), ("value", c.c_char_p)]


class SessionOptions(c.Structure):
    _fields_ = [("size", c.c_size_t), ("threads", c.c_int), ("level", c.c_int), ("profile", c.c_bool),
                ("plans", c.c_int), ("memory_limit", c.c_size_t), ("tune", c.c_bool), ("cancel_holds", c.c_bool),
                ("count_providers", c.c_int), ("providers", c.POINTER(c.c_char_p)),
                ("count_provider_options", c.c_int), ("provider_options", c.POINTER(ProviderOption)),
                ("provider_fallback", c.c_bool), ("ort_library", c.c_char_p), ("sibling", c.c_void_p),
                ("ort_setup", c.c_void_p), ("ort_setup_user", c.c_void_p)]


class DimOverride(c.Structure):
    _fields_ = [("name", c.c_char_p), ("denotation", c.c_char_p), ("length", c.c_int64)]


class FileBytes(c.Structure):
    _fields_ = [("name", c.c_char_p), ("bytes", c.c_char_p), ("size", c.c_size_t)]


class Feed(c.Structure):
    _fields_ = [("name", c.c_char_p), ("value", c.c_void_p)]


class ModelOptions(c.Structure):
    _fields_ = [("size", c.c_size_t), ("check_fully", c.c_bool), ("memory_limit", c.c_size_t),
                ("count_custom_ops", c.c_int), ("custom_ops", c.c_void_p), ("count_dims", c.c_int),
                ("dims", c.POINTER(DimOverride)), ("count_initializers", c.c_int),
                ("initializers", c.POINTER(Feed)), ("count_files", c.c_int),
                ("files", c.POINTER(FileBytes)),
                ("folder", c.c_char_p), ("tolerate", c.c_bool)]


class ProviderInfo(c.Structure):
    _fields_ = [("name", c.c_char_p), ("starts", c.c_bool), ("reason", c.c_char_p),
                ("library", c.c_char_p), ("version", c.c_char_p)]


EACH = c.CFUNCTYPE(None, c.POINTER(ProviderInfo), c.c_void_p)
POINTERS = ("sdx_context_create", "sdx_tensor_data", "sdx_tensor_item")
TEXTS = ("sdx_error", "sdx_session_error", "sdx_session_provider", "sdx_status_name")


class Failed(Exception):
    """A status that is not SDX_OK: (name of the status, text)."""


class Engine:
    """One context. `warnings` are what the log got."""

    def __init__(self, path, log_level=None):
        self.path, self.lib = path, c.CDLL(str(path))
        for name in POINTERS:
            getattr(self.lib, name).restype = c.c_void_p
        for name in TEXTS:
            getattr(self.lib, name).restype = c.c_char_p
        self.lib.sdx_tensor_dims.restype = c.POINTER(c.c_int64)
        self.lib.sdx_tensor_string.restype = c.POINTER(c.c_char)
        for name in ("sdx_tensor_count", "sdx_tensor_capacity"):
            getattr(self.lib, name).restype = c.c_int64
        self.warnings = []
        self.log = LOG(lambda level, area, text, user: self.warnings.append(
            f"{area.decode()}: {text.decode()}"))
        options = ContextOptions()
        self.lib.sdx_context_options_init(c.byref(options))
        assert options.size == c.sizeof(options), "ContextOptions is not sdx_context_options"
        options.log = self.log
        if log_level is not None:
            options.log_level = log_level
        self.cx = c.c_void_p(self.lib.sdx_context_create(c.byref(options)))

    def check(self, status):
        if status:
            raise Failed(self.lib.sdx_status_name(status).decode(),
                         self.lib.sdx_error(self.cx).decode())

    def providers(self, library=None):
        """[{"name", "starts", "reason", "library", "version"}]"""
        rows = []

        def each(info, _user):
            row = {name: getattr(info.contents, name) for name, _ in ProviderInfo._fields_}
            rows.append({k: v.decode() if isinstance(v, bytes) else v for k, v in row.items()})
        self.check(self.lib.sdx_providers(self.cx, library and str(library).encode(), EACH(each), None))
        return rows

    # ---- values ----

    def tensor(self, array):
        """A handle with the array's elements; lists are sequences, a tuple (keys, values) a map."""
        out = c.c_void_p()
        if isinstance(array, (list, tuple)):
            items = [self.tensor(item) for item in array]
            kind = MAP if isinstance(array, tuple) else SEQUENCE
            handles = (c.c_void_p * len(items))(*(item.value for item in items))
            self.check(self.lib.sdx_value_create(self.cx, kind, F32, c.c_int64(len(items)), handles,
                                                 c.byref(out)))
            for item in items:
                self.lib.sdx_tensor_destroy(item)
            return out
        array = np.asarray(array)
        dims = (c.c_int64 * max(array.ndim, 1))(*array.shape)
        if array.dtype == object:
            texts = [text.encode() for text in array.ravel()]
            self.check(self.lib.sdx_tensor_create_strings(
                self.cx, array.ndim, dims, (c.c_char_p * len(texts))(*texts),
                (c.c_size_t * len(texts))(*map(len, texts)), c.byref(out)))
            return out
        dtype = next(number for number, kind in NUMPY.items() if array.dtype == kind)
        self.check(self.lib.sdx_tensor_create(self.cx, dtype, array.ndim, dims, c.byref(out)))
        data = np.ascontiguousarray(array)
        c.memmove(self.lib.sdx_tensor_data(out), data.ctypes.data, data.nbytes)
        return out

    def array(self, handle):
        """The reverse of `tensor`; an optional is its value or None."""
        kind, count = self.lib.sdx_tensor_kind(handle), self.lib.sdx_tensor_count(handle)
        if kind != 1:
            items = [self.array(c.c_void_p(self.lib.sdx_tensor_item(handle, c.c_int64(i))))
                     for i in range(count)]
            if kind == OPTIONAL:
                return items[0] if items else None
            return tuple(items) if kind == MAP else items
        rank = self.lib.sdx_tensor_rank(handle)
        shape = self.lib.sdx_tensor_dims(handle)[:rank] if rank else []
        dtype = self.lib.sdx_tensor_dtype(handle)
        if dtype == STRING:
            texts = []
            for i in range(count):
                length = c.c_size_t()
                text = self.lib.sdx_tensor_string(handle, c.c_int64(i), c.byref(length))
                texts.append(text[:length.value].decode())
            return np.array(texts, object).reshape(shape)
        made = np.empty(shape, NUMPY[dtype])
        if made.nbytes:
            c.memmove(made.ctypes.data, self.lib.sdx_tensor_data(handle), made.nbytes)
        return made

    # ---- models and sessions ----

    def session_options(self, providers=(), library=None, options=(), **members):
        """SessionOptions; they hold what they point to."""
        given = SessionOptions()
        self.lib.sdx_session_options_init(c.byref(given))
        assert given.size == c.sizeof(given), "SessionOptions is not struct sdx_session_options"
        names = (c.c_char_p * len(providers))(*(p if p is None else p.encode() for p in providers))
        rows = (ProviderOption * len(options))(*(tuple(t.encode() for t in row) for row in options))
        given.count_providers, given.providers = len(names), names
        given.count_provider_options, given.provider_options = len(rows), rows
        given.ort_library = library and str(library).encode()
        for name, member in members.items():
            setattr(given, name, member)
        return given

    def start(self, *providers, **members):
        """sdx_providers_start of session_options()."""
        given = self.session_options(providers, **members)
        self.check(self.lib.sdx_providers_start(self.cx, c.byref(given)))

    @contextmanager
    def session(self, model, providers=(), library=None, options=(), dims=(), denoted=(), given=None,
                files=None, folder=None, tolerate=False, **members):
        """model: a path, or bytes. Of the model's options: dims and denoted, (name, length) each;
        given, {initializer: array}; files, {name: bytes}; folder; tolerate. A Session of it."""
        model_options = ModelOptions()
        self.lib.sdx_model_options_init(c.byref(model_options))
        assert model_options.size == c.sizeof(model_options), "ModelOptions is not sdx_model_options"
        model_options.tolerate = tolerate
        overrides = [(name.encode(), None, length) for name, length in dims]
        overrides += [(None, name.encode(), length) for name, length in denoted]
        model_options.count_dims = len(overrides)
        model_options.dims = (DimOverride * len(overrides))(*overrides)
        tensors = {name: self.tensor(array) for name, array in (given or {}).items()}
        rows = [(name.encode(), value) for name, value in tensors.items()]
        model_options.count_initializers = len(rows)
        model_options.initializers = (Feed * len(rows))(*rows)
        rows = [(name.encode(), data, len(data)) for name, data in (files or {}).items()]
        model_options.count_files, model_options.files = len(rows), (FileBytes * len(rows))(*rows)
        model_options.folder = folder and str(folder).encode()
        given = self.session_options(providers, library, options, **members)
        handle, session = c.c_void_p(), c.c_void_p()
        if isinstance(model, bytes):
            status = self.lib.sdx_model_load(self.cx, model, c.c_size_t(len(model)),
                                             c.byref(model_options), c.byref(handle))
        else:
            status = self.lib.sdx_model_open(self.cx, str(model).encode(), c.byref(model_options),
                                             c.byref(handle))
        self.check(status)
        try:
            self.check(self.lib.sdx_session_create(self.cx, handle, c.byref(given), c.byref(session)))
            yield Session(self, session, handle, given)
        finally:
            self.lib.sdx_session_destroy(session)
            self.lib.sdx_model_destroy(handle)
            for tensor in tensors.values():
                self.lib.sdx_tensor_destroy(tensor)


class Session:
    def __init__(self, engine, handle, model, options):
        self.engine, self.lib, self.handle = engine, engine.lib, handle
        self.model, self.options = model, options

    def sibling(self, model=None):
        """Another session of the same (or that) model and options; `destroy` ends it."""
        self.options.sibling = self.handle
        made = c.c_void_p()
        self.engine.check(self.lib.sdx_session_create(self.engine.cx, model or self.model,
                                                      c.byref(self.options), c.byref(made)))
        return Session(self.engine, made, self.model, self.options)

    def destroy(self):
        self.lib.sdx_session_destroy(self.handle)

    @property
    def providers(self):
        names, i = [], 0
        while (name := self.lib.sdx_session_provider(self.handle, i)) is not None:
            names.append(name.decode())
            i += 1
        return names

    def run_handles(self, feeds, names, outputs):
        """sdx_run with handles; `outputs`, a ctypes array, is written."""
        rows = (Feed * len(feeds))(*((name.encode(), value) for name, value in feeds.items()))
        texts = (c.c_char_p * len(names))(*(name.encode() for name in names))
        self.engine.check(self.lib.sdx_run(self.handle, len(rows), rows, len(texts), texts, outputs))

    def run(self, feeds, names):
        """The outputs `names` as arrays."""
        handles = {name: self.engine.tensor(value) for name, value in feeds.items()}
        outputs = (c.c_void_p * len(names))()
        try:
            self.run_handles(handles, names, outputs)
            return [self.engine.array(c.c_void_p(output)) for output in outputs]
        finally:
            for handle in [*handles.values(), *map(c.c_void_p, outputs)]:
                self.lib.sdx_tensor_destroy(handle)
