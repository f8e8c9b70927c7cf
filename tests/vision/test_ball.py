# SPDX-License-Identifier: Apache-2.0
"""The model of examples/ball on the clip beside it: how many places are right."""
import csv
import math

import onnx

NEAR = 5  # pixels of 640 x 360: twice the radius of the ball
WARMUP = 40


def table(path):
    with open(path, newline="", encoding="ascii") as file:
        return {int(row["Frame"]): (int(row["X"]), int(row["Y"]), int(row["Visibility"]))
                for row in csv.DictReader(file)}


def test_accuracy(root, sardonyx, tmp_path):
    """Of the balls that are to be seen at least 95 of 100 are found where they are, and of the pictures without one at most
    two have a ball."""
    folder = root / "examples/ball"
    sardonyx("track-ball", "--model", folder / "ball.onnx", "--median-warmup", WARMUP,
             folder / "rally.mp4", "--csv", tmp_path / "tracked.csv")
    truth, found = table(folder / "rally.csv"), table(tmp_path / "tracked.csv")
    assert sorted(found) == list(range(WARMUP - 1, len(truth)))
    seen = [frame for frame in found if truth[frame][2]]
    right = [frame for frame in seen if found[frame][2]
             and math.dist(found[frame][:2], truth[frame][:2]) <= NEAR]
    ghosts = [frame for frame in found if not truth[frame][2] and found[frame][2]]
    print(f"{len(right)} of {len(seen)} balls, {len(ghosts)} ghosts in {len(found) - len(seen)} frames")
    assert len(right) >= 0.95 * len(seen) and len(ghosts) <= 2


def test_small_enough(root):
    """Model and clip together are below 2 MB, and the model says what it is for."""
    folder = root / "examples/ball"
    assert sum((folder / name).stat().st_size for name in ("ball.onnx", "rally.mp4")) < 2_000_000
    model = onnx.load(folder / "ball.onnx")
    onnx.checker.check_model(model, full_check=True)
    assert {p.key: p.value for p in model.metadata_props} == {
        "model_name": "TrackNet", "seq_len": "3", "bg_mode": "concat", "batch_mode": "dynamic",
        "batch_size": "1"}
