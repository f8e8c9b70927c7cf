# SPDX-License-Identifier: Apache-2.0
"""TrackNetV3's streaming module as users have it, written anew in NumPy over onnxruntime: what ours is compared with.

Slow on purpose where the published one is: each window is joined from its frames again, each heat
map is an array of its own. `resize` is cv2.resize with INTER_AREA, or something equal to it.
"""
import time
from collections import deque

import numpy as np
import onnxruntime

HEIGHT, WIDTH = 288, 512


def shrink(image, width, height):
    """Area averaging in NumPy for the same size and for halves, which OpenCV rounds up."""
    if image.shape[:2] == (height, width):
        return image.copy()
    assert image.shape[:2] == (2 * height, 2 * width)
    wide = image.astype(np.uint16)
    return ((wide[::2, ::2] + wide[::2, 1::2] + wide[1::2, ::2] + wide[1::2, 1::2] + 2) >> 2).astype(np.uint8)


def weights(seq_len, eval_mode):
    if eval_mode == "nonoverlap":
        return np.ones(seq_len, np.float32)
    rising = np.arange(1, seq_len + 1, dtype=np.float32)
    raw = np.minimum(rising, rising[::-1]) if eval_mode == "weight" else np.ones(seq_len, np.float32)
    return raw / np.float32(raw.sum())


class TrackNet:
    def __init__(self, model_path, seq_len, bg_mode, device=None, eval_mode="weight", median=None,
                 median_warmup=0, resize=shrink, threads=0):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        self.session = onnxruntime.InferenceSession(str(model_path), options,
                                                    providers=["CPUExecutionProvider"])
        self.seq_len, self.bg_mode, self.resize = seq_len, bg_mode, resize
        self.weights = weights(seq_len, eval_mode)
        self.median, self.warmup = median, median_warmup
        self.heat = None
        self.stats = {"push_calls": 0, "outputs": 0, "t_preprocess": 0.0, "t_forward": 0.0,
                      "t_post": 0.0, "t_median": 0.0}
        self.reset()

    def reset(self):
        self.window, self.ids = deque(maxlen=self.seq_len), deque(maxlen=self.seq_len)
        self.sums, self.totals, self.kept = {}, {}, []
        self.count, self.size = 0, None

    def area(self, image):
        return self.resize(image, WIDTH, HEIGHT)

    def warm_up(self, rgb):
        """False while the background is not there."""
        if not self.bg_mode or self.median is not None:
            return True
        self.kept.append(rgb)
        if len(self.kept) < self.warmup:
            return False
        begin = time.perf_counter()
        median = np.median(np.stack(self.kept), axis=0).astype(np.uint8)
        self.stats["t_median"] += time.perf_counter() - begin
        self.median = median if self.bg_mode != "concat" else self.area(median).transpose(2, 0, 1)
        self.kept = []
        return True

    def planes(self, rgb):
        parts = []
        if self.bg_mode != "subtract":
            parts.append((self.area(rgb).astype(np.float32) / 255).transpose(2, 0, 1))
        if self.bg_mode.startswith("subtract"):
            apart = np.abs(rgb.astype(np.int16) - self.median.astype(np.int16)).sum(axis=2)
            small = self.area(np.minimum(apart, 255).astype(np.uint8))
            parts.append(small.astype(np.float32)[None] / 255)
        return np.concatenate(parts)

    def take(self, frame):
        self.heat = self.sums.pop(frame) / max(1e-6, self.totals.pop(frame))
        row, column = np.unravel_index(np.argmax(self.heat), self.heat.shape)
        x = y = 0
        if self.heat.max() > 0:
            x, y = int(column * (self.size[0] / WIDTH)), int(row * (self.size[1] / HEIGHT))
        return {"Frame": frame, "X": x, "Y": y, "Visibility": int(x != 0 or y != 0)}

    def push(self, frame_bgr, frame_id=None):
        self.stats["push_calls"] += 1
        self.size = self.size or (frame_bgr.shape[1], frame_bgr.shape[0])
        frame_id = self.count if frame_id is None else frame_id
        self.count += 1
        self.ids.append(frame_id)
        begin = time.perf_counter()
        rgb = np.ascontiguousarray(frame_bgr[:, :, ::-1])
        ready = self.warm_up(rgb)
        if ready:
            self.window.append(self.planes(rgb))
        self.stats["t_preprocess"] += time.perf_counter() - begin
        if not ready or len(self.window) < self.seq_len:
            return None
        lead = [self.median.astype(np.float32) / 255] if self.bg_mode == "concat" else []
        joined = np.concatenate(lead + list(self.window))[None]
        begin = time.perf_counter()
        heats = self.session.run(None, {self.session.get_inputs()[0].name: joined})[0][0]
        self.stats["t_forward"] += time.perf_counter() - begin
        begin = time.perf_counter()
        for j, frame in enumerate(self.ids):
            weight = float(self.weights[self.seq_len - 1 - j])
            self.sums[frame] = self.sums.get(frame, np.float32(0)) + heats[j] * np.float32(weight)
            self.totals[frame] = self.totals.get(frame, 0.0) + weight
        row = None
        if frame_id - (self.seq_len - 1) in self.sums:
            row = self.take(frame_id - (self.seq_len - 1))
            self.stats["outputs"] += 1
        self.stats["t_post"] += time.perf_counter() - begin
        return row

    def flush(self, each=None):
        rows = []
        for frame in sorted(self.sums):
            rows.append(self.take(frame))
            if each is not None:
                each()
        self.window.clear()
        self.ids.clear()
        return rows
