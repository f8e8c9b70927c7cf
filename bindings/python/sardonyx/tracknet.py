# SPDX-License-Identifier: Apache-2.0
"""TrackNetV3's streaming modules: frames go in one by one, tracked positions come out with a delay.

    from sardonyx.tracknet import TrackNetModuleONNX
    module = TrackNetModuleONNX("tracknet.onnx", seq_len=8, bg_mode="concat", median_warmup=30)
    for frame_bgr in video:
        track = module.push(frame_bgr)      # {"Frame": 0, "X": 640, "Y": 212, "Visibility": 1} or None
    tracks = module.flush()

The work is done in C. An object may be used by several threads; their calls wait for each other.
"""
import os

import numpy as np

from . import _sardonyx

__all__ = ["HEIGHT", "WIDTH", "InpaintModuleONNX", "TrackNetModuleONNX"]

HEIGHT, WIDTH = 288, 512  # of the model's pictures


def _background(median, bg_mode):
    """The median as the C functions take it."""
    median = np.asarray(median)
    if bg_mode == "concat":
        if median.shape != (3, HEIGHT, WIDTH):
            raise ValueError(f"median for bg_mode='concat' must be [3, {HEIGHT}, {WIDTH}], "
                             f"got {list(median.shape)}")
        return np.ascontiguousarray(median if median.dtype == np.uint8 else median.astype(np.float32))
    if median.ndim != 3 or median.shape[2] != 3:
        raise ValueError(f"median must be [H, W, 3], got {list(median.shape)}")
    if median.dtype != np.uint8:
        whole = median.astype(np.int16)
        if whole.size and (whole.min() < 0 or whole.max() > 255):
            raise ValueError("median must hold values from 0 to 255")
        median = whole.astype(np.uint8)
    return np.ascontiguousarray(median)


class _Module:
    """A model's file, and what runs it."""

    def __init__(self, model_path, seq_len, device):
        self._path = os.fsdecode(model_path)
        self.seq_len = int(seq_len)
        self.device = device
        if not os.path.exists(self._path):
            raise ValueError(f"ONNX model file not found: {self._path}")

    def _arguments(self):
        """The first arguments of the C functions that open."""
        # A length of 0 would have them read it from the model.
        return self._path, self.seq_len or -1, None if self.device is None else str(self.device)

    def get_providers(self):
        """Names of what runs the model."""
        return [_sardonyx._track_provider(self._handle)]


class TrackNetModuleONNX(_Module):
    """Follows a ball through a stream of frames.

    model_path: ONNX model [1, C, 288, 512] -> [1, seq_len, 288, 512] of float32.
    bg_mode: "" (or None): C = 3 seq_len; "subtract": seq_len; "subtract_concat": 4 seq_len;
        "concat": 3 (seq_len + 1), the background first.
    device: "cpu", or "cuda" (None): CUDA is tried first. The CPU is the fallback.
    eval_mode: how windows are weighed: "weight", "average" or "nonoverlap".
    median: the background, uint8 R, G, B, [H, W, 3] in the size of the frames; for "concat"
        [3, 288, 512]. median_warmup: without it, frames that it is made of.

    ValueError: the file is missing, is no such model, or its metadata say otherwise.
    """

    def __init__(self, model_path, seq_len, bg_mode, device=None, eval_mode="weight", median=None,
                 median_warmup=0):
        super().__init__(model_path, seq_len, device)
        self.bg_mode = bg_mode or ""
        self.eval_mode = eval_mode
        if median is not None and self.bg_mode:
            median = _background(median, self.bg_mode)
        else:
            median = None
        self._handle = _sardonyx._tracknet_open(*self._arguments(), self.bg_mode, str(eval_mode),
                                                median, int(median_warmup))

    def push(self, frame_bgr, frame_id=None):
        """Takes a frame, uint8 [H, W, 3] in the order B, G, R, of any size.

        Returns {"Frame", "X", "Y", "Visibility"} of the frame seq_len - 1 ids before, or None while
        there is none. frame_id: an int; the number of frames pushed before when it is None.
        RuntimeError: a background is needed and there is none, or the model fails.
        """
        return _sardonyx._tracknet_push(self._handle, frame_bgr, frame_id)

    def flush(self):
        """The list of what is left, in ascending order of frames; the window is empty then."""
        return _sardonyx._track_flush(self._handle)

    def reset(self):
        """Begins anew: frames, ids and the scale are forgotten; a background that is made stays."""
        _sardonyx._track_reset(self._handle)

    @property
    def stats(self):
        """push_calls, outputs, and the seconds t_preprocess, t_forward, t_post, t_median."""
        return _sardonyx._track_stats(self._handle)

    @property
    def img_shape(self):
        """(W, H) of the first frame; None before it."""
        return _sardonyx._tracknet_size(self._handle)

    @property
    def img_scaler(self):
        """(W / 512, H / 288) of the first frame; None before it."""
        shape = self.img_shape
        return None if shape is None else (shape[0] / WIDTH, shape[1] / HEIGHT)

    @property
    def heat(self):
        """The heat map [288, 512] behind the last track that came out; None before one did."""
        return _sardonyx._tracknet_heat(self._handle)


class InpaintModuleONNX(_Module):
    """Fills the gaps of a track as it comes.

    model_path: ONNX model of coordinates [N, seq_len, 2] and gaps [N, seq_len, 1] (by position) to
    coordinates [N, seq_len, 2]. img_scaler: (frame width / 512, frame height / 288).
    """

    def __init__(self, model_path, seq_len, device, img_scaler):
        super().__init__(model_path, seq_len, device)
        self.img_scaler = img_scaler
        self._handle = _sardonyx._inpaint_open(*self._arguments(), 1.0, 1.0)

    def push(self, pred):
        """Takes {"Frame", "X", "Y", "Visibility"}; returns that of the window's oldest frame, its gap
        filled, or None while the window is not full."""
        sx, sy = self.img_scaler
        return _sardonyx._inpaint_push(self._handle, int(pred["Frame"]), int(pred["X"]),
                                       int(pred["Y"]), int(pred["Visibility"]), float(sx), float(sy))

    def flush(self):
        """The list of what is in the window, oldest first; gaps are not visible."""
        return _sardonyx._track_flush(self._handle)

    def reset(self):
        """Empties the window."""
        _sardonyx._track_reset(self._handle)

    @property
    def stats(self):
        """push_calls, outputs, and the seconds t_forward, t_post."""
        return _sardonyx._track_stats(self._handle)
