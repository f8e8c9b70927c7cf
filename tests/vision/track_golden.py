# SPDX-License-Identifier: Apache-2.0
"""The recorded streams of the published module: golden.json with the frames and models it was made from."""
import importlib.util
import json

import numpy as np
import onnx

COUNT = 21


def load_module(path):
    spec = importlib.util.spec_from_file_location(f"golden_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def place_of(heat, row, size):
    """The heat at a recorded position, over the pixels of the model that scale to it."""
    xs = np.flatnonzero((np.arange(512) * (size[0] / 512)).astype(int) == row["X"])
    ys = np.flatnonzero((np.arange(288) * (size[1] / 288)).astype(int) == row["Y"])
    return heat[np.ix_(ys, xs)].max() if len(xs) and len(ys) else -1


def check(folder, index, tmp_path, tracknet, inpaint, resize):
    """Pushes stream `index` through what `tracknet` and `inpaint` make: every row must be the recorded one.

    Without a ball the heat map is noise: there a position counts whose heat is within 1e-5 of the
    greatest; how many were accepted that way is printed."""
    rally, models = load_module(folder / "frames.py"), load_module(folder / "models.py")
    case, expect = (json.loads((folder / "golden.json").read_text())[index][key]
                    for key in ("case", "expect"))
    size, mode = (case["width"], case["height"]), case["bg_mode"]
    onnx.save(models.tracknet(case["seq_len"], mode), tmp_path / "tracknet.onnx")
    median = None
    if case["median"] == "given":
        scene = rally.background(*size, case["seed"])
        median = np.ascontiguousarray(np.clip(scene, 0, 255).astype(np.uint8)[:, :, ::-1])
        if mode == "concat":
            median = resize(median, 512, 288).transpose(2, 0, 1)
    module = tracknet(tmp_path / "tracknet.onnx", case["seq_len"], mode, eval_mode=case["eval_mode"],
                      median=median, median_warmup=case.get("warmup", 0))
    ids = case.get("ids", [None] * case["frames"])
    hidden = {i if ids[i] is None else ids[i] for i in case["hidden"]}
    accepted = 0

    def same(found, wanted):
        nonlocal accepted
        if found == wanted:
            return
        assert found is not None and wanted is not None and found["Frame"] == wanted["Frame"]
        assert found["Frame"] in hidden, (found, wanted)
        assert module.heat.max() - place_of(module.heat, wanted, size) <= 1e-5, (found, wanted)
        accepted += 1

    pictures = rally.frames(*size, case["frames"], case["seed"], case["hidden"])
    for image, frame_id, wanted in zip(pictures, ids, expect["push"]):
        same(module.push(image, frame_id), wanted)
    assert module.flush() == expect["flush"]
    assert {key: module.stats[key] for key in expect["stats"]} == expect["stats"]
    print(f"{accepted} positions accepted by their heat")
    if "inpaint" in case:
        onnx.save(models.inpaintnet(case["inpaint"]), tmp_path / "inpaint.onnx")
        filler = inpaint(tmp_path / "inpaint.onnx", case["inpaint"], None,
                         (size[0] / 512, size[1] / 288))
        tracks = [row for row in expect["push"] if row] + expect["flush"]
        assert [filler.push(row) for row in tracks] == expect["inpaint_push"]
        assert filler.flush() == expect["inpaint_flush"]
