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
    return ctypes.CDLL(str(BUILD / "libsardonyx_vision.so"))


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
