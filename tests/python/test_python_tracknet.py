# SPDX-License-Identifier: Apache-2.0
"""sardonyx.tracknet and sardonyx.vision: signatures, texts, arrays; what they compute is tested below vision/ too."""
import importlib
import inspect
import os
import re
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import track_golden
import track_models


@pytest.fixture(scope="module")
def tracknet(build):
    folder = Path(os.environ.get("SDX_PACKAGE", build / "python"))
    if not list(folder.glob("sardonyx/_sardonyx*.so")):
        pytest.skip(f"{folder} has no extension")
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    return importlib.import_module("sardonyx.tracknet")


@pytest.fixture(scope="module")
def vision(tracknet):
    return importlib.import_module("sardonyx.vision")


def test_signatures(tracknet):
    """Names, order and defaults behind the model's path, which the published module calls `tracknet`."""
    def rows(kind):
        return [(p.name, p.default) for p in inspect.signature(kind).parameters.values()]

    none = inspect.Parameter.empty
    assert rows(tracknet.TrackNetModuleONNX) == [
        ("model_path", none), ("seq_len", none), ("bg_mode", none), ("device", None),
        ("eval_mode", "weight"), ("median", None), ("median_warmup", 0)]
    assert rows(tracknet.InpaintModuleONNX) == [
        ("model_path", none), ("seq_len", none), ("device", none), ("img_scaler", none)]
    assert rows(tracknet.TrackNetModuleONNX.push)[1:] == [("frame_bgr", none), ("frame_id", None)]
    assert rows(tracknet.InpaintModuleONNX.push)[1:] == [("pred", none)]
    assert (tracknet.HEIGHT, tracknet.WIDTH) == (288, 512)


@pytest.mark.parametrize("index", [
    index if index in (1, 5, 14, 19) else pytest.param(index, marks=pytest.mark.slow)
    for index in range(track_golden.COUNT)])
def test_recorded(index, tracknet, vision, shared, tmp_path):
    track_golden.check(shared / "tracknet", index, tmp_path, tracknet.TrackNetModuleONNX,
                       tracknet.InpaintModuleONNX, vision.resize_area)


def test_area(vision, shared):
    recorded = np.load(shared / "tracknet/area_resize.npz")
    for name in recorded:
        w, h, c, ow, oh, k = map(int, re.findall(r"\d+", name.replace("seed7_", "")))
        shape = (h, w, c) if c > 1 else (h, w)
        image = np.random.default_rng([7, k]).integers(0, 256, shape, np.uint8)
        assert np.array_equal(vision.resize_area(image, ow, oh), recorded[name]), name


def test_area_of_any_array(vision):
    image = np.random.default_rng(1).integers(0, 256, (40, 60, 3), np.uint8)
    whole = vision.resize_area(image, 20, 10)
    assert whole.shape == (10, 20, 3) and whole.dtype == np.uint8
    assert np.array_equal(vision.resize_area(image[::-1, ::-1], 20, 10), vision.resize_area(
        np.ascontiguousarray(image[::-1, ::-1]), 20, 10))
    assert np.array_equal(vision.resize_area(image[:, :, 0], 20, 10), whole[:, :, 0])
    for bad, error in (([[1, 2], [3, 4]], TypeError), (image.astype(np.float32), ValueError),
                       (image[0, 0], ValueError), (np.zeros((4, 4, 5), np.uint8), ValueError),
                       (np.zeros((0, 4), np.uint8), ValueError)):
        with pytest.raises(error):
            vision.resize_area(bad, 2, 2)
    with pytest.raises(ValueError, match="a picture of 0 x 3"):
        vision.resize_area(image, 0, 3)


def refused(error, text, call, *arguments, **options):
    with pytest.raises(error) as caught:
        call(*arguments, **options)
    assert str(caught.value) == text


def test_texts(tracknet, tmp_path):
    kind, filler = tracknet.TrackNetModuleONNX, tracknet.InpaintModuleONNX
    missing = str(tmp_path / "missing.onnx")
    refused(ValueError, f"ONNX model file not found: {missing}", kind, missing, 8, "")
    refused(ValueError, f"ONNX model file not found: {missing}", filler, missing, 8, None, (1, 1))
    told = {"seq_len": 4, "bg_mode": "subtract"}
    path = track_models.tracknet(tmp_path / "told.onnx", 4, "subtract", told)
    refused(ValueError, f"Model metadata mismatch: expected seq_len=8, got 4. Model={path}", kind, path,
            8, "subtract")
    refused(ValueError, f"Model metadata mismatch: expected seq_len=-1, got 4. Model={path}", kind, path,
            -1, "subtract")
    refused(ValueError, "Model metadata mismatch: expected bg_mode='concat', got 'subtract'. "
            f"Model={path}", kind, str(path), 4, "concat")
    refused(ValueError, f"model input 'frames' has 4 channels, bg_mode='' with seq_len=4 needs 12. "
            f"Model={path}", kind, path, 4, None)
    refused(ValueError, "Invalid eval_mode: 'best'", kind, path, 4, "subtract", eval_mode="best")
    module = kind(path, 4, "subtract")
    refused(RuntimeError, "bg_mode='subtract' needs median. Pass median=... or set median_warmup>0.",
            module.push, np.zeros((288, 512, 3), np.uint8))
    with pytest.raises(ValueError, match=re.escape("must be [H, W, 3], got [512, 3]")):
        kind(path, 4, "subtract", median=np.zeros((512, 3)))
    (tmp_path / "broken.onnx").write_bytes(b"nothing")
    with pytest.raises(ValueError, match="broken.onnx"):
        kind(tmp_path / "broken.onnx", 4, "subtract")


def test_frames_of_any_layout(tracknet, tmp_path):
    path = track_models.tracknet(tmp_path / "model.onnx", 2, "")
    _, frames = track_models.rally(512, 288, 4, 5)
    module, mirrored = (tracknet.TrackNetModuleONNX(path, 2, None, device="cpu") for _ in range(2))
    assert module.img_shape is None and module.img_scaler is None and module.heat is None
    rows = [module.push(image) for image in frames]
    views = [np.ascontiguousarray(image[:, ::-1])[:, ::-1] for image in frames]
    assert [mirrored.push(image) for image in views] == rows
    assert module.img_shape == (512, 288) and module.img_scaler == (1.0, 1.0)
    assert module.heat.shape == (288, 512) and module.heat.dtype == np.float32
    assert list(module.stats) == ["push_calls", "outputs", "t_preprocess", "t_forward", "t_post",
                                  "t_median"]
    assert module.get_providers()[-1] == "CPUExecutionProvider"
    assert all(type(value) is int for value in rows[1].values())
    for bad in (frames[0].astype(np.float32), frames[0][:, :, 0], frames[0][:, :, :2]):
        with pytest.raises(ValueError, match="frame_bgr must be"):
            module.push(bad)
    with pytest.raises(TypeError):
        module.push(None)
    with pytest.raises(TypeError):
        module.push(frames[0], "7")
    module.reset()
    assert module.flush() == [] and module.img_shape is None


def test_threads(tracknet, tmp_path):
    """Calls from many threads on one object wait for each other."""
    path = track_models.tracknet(tmp_path / "model.onnx", 2, "")
    _, frames = track_models.rally(512, 288, 4, 6)
    module, rows = tracknet.TrackNetModuleONNX(path, 2, ""), []
    workers = [threading.Thread(target=lambda: rows.extend(module.push(f) for f in frames))
               for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert module.stats["push_calls"] == 16 and module.stats["outputs"] == 15
    assert sorted(row["Frame"] for row in rows if row) == list(range(15))
