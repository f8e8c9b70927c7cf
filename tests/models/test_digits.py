# SPDX-License-Identifier: Apache-2.0
"""The accuracy that examples/digits/README.md states is reached by our engine."""
import re

import numpy as np
import pytest


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_accuracy(sardonyx, root, tmp_path, threads):
    folder = root / "examples" / "digits"
    stated = re.search(r"test split: (\d+) of (\d+) \((\d+\.\d+)%\)", (folder / "README.md").read_text())
    right, count = int(stated[1]), int(stated[2])
    assert float(stated[3]) == pytest.approx(100 * right / count, abs=0.01)
    sardonyx("run", folder / "digits.onnx", "--input", f"scan={folder}/digits_test.npz:x", "--out", tmp_path,
             "--threads", threads)
    scores = np.load(tmp_path / "scores.npy")
    truth = np.load(folder / "digits_test.npz")["y"]
    assert scores.shape == (count, 10) and len(truth) == count
    assert int((scores.argmax(1) == truth).sum()) >= right


def test_files_are_small(root):
    folder = root / "examples" / "digits"
    assert (folder / "digits.onnx").stat().st_size < 200_000
    assert len(list(folder.glob("*.png"))) == 10
