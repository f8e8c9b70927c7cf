# SPDX-License-Identifier: Apache-2.0
"""libsardonyx_vision.so through ctypes: what the tests call that no program shows."""
import ctypes
import os
from pathlib import Path

import numpy as np

BUILD = Path(os.environ.get("SDX_BUILD", Path(__file__).resolve().parents[2] / "build"))


class Fault(ctypes.Structure):
    _fields_ = [("text", ctypes.c_char * 8192)]


class Image(ctypes.Structure):
    _fields_ = [("width", ctypes.c_int), ("height", ctypes.c_int), ("channels", ctypes.c_int),
                ("pixels", ctypes.POINTER(ctypes.c_uint8))]


def load():
    path = BUILD / "libsardonyx_vision.so"
    if not path.is_file():
        import pytest
        pytest.skip(f"{path} is not built")
    return ctypes.CDLL(str(path))


def resize_area(library, array, width, height):
    """[h, w] or [h, w, c] of uint8 as sdx_image_resize_area makes it."""
    array = np.ascontiguousarray(array)
    channels = array.shape[2] if array.ndim == 3 else 1
    image = Image(array.shape[1], array.shape[0], channels,
                  array.ctypes.data_as(ctypes.POINTER(ctypes.c_uint8)))
    out, fault = Image(), Fault()
    status = library.sdx_image_resize_area(ctypes.byref(image), width, height, ctypes.byref(out),
                                           ctypes.byref(fault))
    if status != 0:
        raise ValueError(fault.text.decode())
    result = np.ctypeslib.as_array(out.pixels, (height, width, channels)).copy()
    library.sdx_image_deinit(ctypes.byref(out))
    return result if array.ndim == 3 else result[:, :, 0]


class Track(ctypes.Structure):
    _fields_ = [("frame", ctypes.c_int64), ("x", ctypes.c_int), ("y", ctypes.c_int),
                ("visibility", ctypes.c_int)]

    def row(self):
        return {"Frame": self.frame, "X": self.x, "Y": self.y, "Visibility": self.visibility}


class Stats(ctypes.Structure):
    _fields_ = [("push_calls", ctypes.c_int64), ("outputs", ctypes.c_int64),
                ("t_preprocess", ctypes.c_double), ("t_forward", ctypes.c_double),
                ("t_post", ctypes.c_double), ("t_median", ctypes.c_double)]


class TrackNetOptions(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("seq_len", ctypes.c_int), ("bg_mode", ctypes.c_char_p),
                ("eval_mode", ctypes.c_char_p), ("device", ctypes.c_char_p),
                ("median", ctypes.c_void_p), ("median_dtype", ctypes.c_int),
                ("median_width", ctypes.c_int), ("median_height", ctypes.c_int),
                ("median_warmup", ctypes.c_int), ("session", ctypes.c_void_p)]


class InpaintOptions(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("seq_len", ctypes.c_int), ("device", ctypes.c_char_p),
                ("scale_x", ctypes.c_double), ("scale_y", ctypes.c_double),
                ("session", ctypes.c_void_p)]


RUN_FAILED = 9


class Module:
    """What the two modules share: the library, a context, faults as Python's modules raise them."""

    def __init__(self, kind):
        self.library = load()
        self.kind = kind
        self.library.sdx_context_create.restype = ctypes.c_void_p
        self.library.sdx_tracknet_heat.restype = ctypes.POINTER(ctypes.c_float)
        self.library.sdx_tracknet_flush.restype = ctypes.c_bool
        self.library.sdx_inpaint_flush.restype = ctypes.c_bool
        self.context = ctypes.c_void_p(self.library.sdx_context_create(None))
        self.handle = ctypes.c_void_p()

    def call(self, name, *arguments):
        fault = Fault()
        status = getattr(self.library, f"sdx_{self.kind}_{name}")(*arguments, ctypes.byref(fault))
        if status != 0:
            raise (RuntimeError if status == RUN_FAILED else ValueError)(fault.text.decode())

    def close(self):
        getattr(self.library, f"sdx_{self.kind}_destroy")(self.handle)
        self.library.sdx_context_destroy(self.context)
        self.handle = self.context = ctypes.c_void_p()

    def flush(self, each=None):
        rows, track = [], Track()
        while getattr(self.library, f"sdx_{self.kind}_flush")(self.handle, ctypes.byref(track)):
            rows.append(track.row())
            if each is not None:
                each()
        return rows

    def reset(self):
        getattr(self.library, f"sdx_{self.kind}_reset")(self.handle)

    @property
    def stats(self):
        stats = Stats()
        getattr(self.library, f"sdx_{self.kind}_get_stats")(self.handle, ctypes.byref(stats))
        return {name: getattr(stats, name) for name, _ in Stats._fields_}


class TrackNet(Module):
    """TrackNetModuleONNX over the C functions."""

    def __init__(self, model_path, seq_len, bg_mode, device=None, eval_mode="weight", median=None,
                 median_warmup=0):
        super().__init__("tracknet")
        options = TrackNetOptions()
        self.library.sdx_tracknet_options_init(ctypes.byref(options))
        assert options.size == ctypes.sizeof(options)
        options.seq_len = seq_len
        options.bg_mode = bg_mode.encode()
        options.eval_mode = eval_mode.encode()
        options.device = device.encode() if device else None
        options.median_warmup = median_warmup
        if median is not None:
            median = np.ascontiguousarray(median)
            options.median = median.ctypes.data
            options.median_dtype = {"uint8": 2, "float32": 1}[median.dtype.name]
            options.median_height, options.median_width = median.shape[:2]
        self.call("open", self.context, str(model_path).encode(), ctypes.byref(options),
                  ctypes.byref(self.handle))

    def push(self, frame_bgr, frame_id=None):
        track, found = Track(), ctypes.c_bool()
        frame = np.ascontiguousarray(frame_bgr)
        given = ctypes.c_int64(frame_id or 0)
        self.call("push", self.handle, frame.ctypes.data_as(ctypes.c_void_p), frame.shape[1],
                  frame.shape[0], ctypes.c_size_t(0),
                  ctypes.byref(given) if frame_id is not None else None, ctypes.byref(track),
                  ctypes.byref(found))
        return track.row() if found.value else None

    @property
    def heat(self):
        return np.ctypeslib.as_array(self.library.sdx_tracknet_heat(self.handle), (288, 512))


class Inpaint(Module):
    """InpaintModuleONNX over the C functions."""

    def __init__(self, model_path, seq_len, device, img_scaler):
        super().__init__("inpaint")
        options = InpaintOptions()
        self.library.sdx_inpaint_options_init(ctypes.byref(options))
        assert options.size == ctypes.sizeof(options)
        options.seq_len = seq_len
        options.device = device.encode() if device else None
        options.scale_x, options.scale_y = img_scaler
        self.call("open", self.context, str(model_path).encode(), ctypes.byref(options),
                  ctypes.byref(self.handle))

    def push(self, pred):
        track = Track(pred["Frame"], pred["X"], pred["Y"], pred["Visibility"])
        filled, found = Track(), ctypes.c_bool()
        self.call("push", self.handle, ctypes.byref(track), ctypes.byref(filled),
                  ctypes.byref(found))
        return filled.row() if found.value else None


class VideoFacts(ctypes.Structure):
    _fields_ = [("width", ctypes.c_int), ("height", ctypes.c_int), ("fps", ctypes.c_double),
                ("frames", ctypes.c_int64), ("live", ctypes.c_bool), ("codec", ctypes.c_char_p)]


def check(status, fault):
    if status != 0:
        raise ValueError(fault.text.decode())


def write_film(path, frames, fps=25.0):
    """Frames [h, w, 3] of B, G, R bytes as a film."""
    library, film, fault = load(), ctypes.c_void_p(), Fault()
    height, width = frames[0].shape[:2]
    check(library.sdx_film_open(str(path).encode(), width, height, ctypes.c_double(fps),
                                ctypes.byref(film), ctypes.byref(fault)), fault)
    for i, frame in enumerate(frames):
        frame = np.ascontiguousarray(frame)
        check(library.sdx_film_write(film, frame.ctypes.data_as(ctypes.c_void_p), ctypes.c_int64(i),
                                     ctypes.byref(fault)), fault)
    check(library.sdx_film_close(film, ctypes.byref(fault)), fault)
    return path


def read_video(source):
    """(facts, frames) of a video."""
    library, video, fault = load(), ctypes.c_void_p(), Fault()
    library.sdx_video_get_facts.restype = ctypes.POINTER(VideoFacts)
    check(library.sdx_video_open(str(source).encode(), None, ctypes.byref(video),
                                 ctypes.byref(fault)), fault)
    facts = library.sdx_video_get_facts(video).contents
    told = {name: getattr(facts, name) for name, _ in VideoFacts._fields_}
    frames, found = [], ctypes.c_bool(True)
    while True:
        frame = np.empty((facts.height, facts.width, 3), np.uint8)
        check(library.sdx_video_read(video, frame.ctypes.data_as(ctypes.c_void_p),
                                     ctypes.byref(found), ctypes.byref(fault)), fault)
        if not found.value:
            break
        frames.append(frame)
    library.sdx_video_close(video)
    return told, frames
