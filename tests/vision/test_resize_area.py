# SPDX-License-Identifier: Apache-2.0
"""sdx_image_resize_area against OpenCV's INTER_AREA: equal to the last bit."""
import os
import re
import subprocess

import numpy as np
import pytest

import vision_library

PEER = """
import sys
import cv2
import numpy as np
rows = np.load(sys.argv[1])["rows"]
made = {}
for i, (w, h, c, ow, oh) in enumerate(rows.tolist()):
    image = np.random.default_rng([11, i]).integers(0, 256, (h, w, c), np.uint8)
    made[str(i)] = cv2.resize(image, (ow, oh), interpolation=cv2.INTER_AREA).reshape(oh, ow, c)
np.savez(sys.argv[2], **made)
"""


@pytest.fixture(scope="module")
def library():
    return vision_library.load()


def test_recorded(library, shared):
    """What OpenCV 5.0 made of seeded noise."""
    recorded = np.load(shared / "tracknet/area_resize.npz")
    for name in recorded:
        w, h, c, ow, oh, k = map(int, re.fullmatch(r"(\d+)x(\d+)x(\d+)_to_(\d+)x(\d+)_seed7_(\d+)",
                                                   name).groups())
        shape = (h, w, c) if c > 1 else (h, w)
        image = np.random.default_rng([7, k]).integers(0, 256, shape, np.uint8)
        found = vision_library.resize_area(library, image, ow, oh)
        assert np.array_equal(found, recorded[name]), name


def random_rows(rng, count):
    """Sizes of each kind: any, whole ratios, one axis as it is, larger, tiny."""
    for i in range(count):
        w, h, ow, oh = (int(v) for v in rng.integers(1, 200, 4))
        kind = i % 6
        if kind == 0:
            ow, oh = min(w, ow), min(h, oh)
        elif kind == 1:
            w, h = ow * int(rng.integers(1, 9)), oh * int(rng.integers(1, 9))
        elif kind == 2:
            ow, oh = w, min(h, oh)
        elif kind == 3:
            w, h, ow, oh = ow * 2, oh * 2, ow, oh
        elif kind == 4:
            w, h, ow, oh = int(w * 17), int(h * 9), 1 + ow // 8, 1 + oh // 8
        yield w, h, 1 + i // 6 % 4, ow, oh


@pytest.mark.slow
def test_random_sizes(library, tmp_path):
    python = os.environ.get("SDX_BENCH_PYTHON", "")
    if not python or subprocess.run([python, "-c", "import cv2"], capture_output=True).returncode:
        pytest.skip("SDX_BENCH_PYTHON names no Python with cv2")
    rows = np.array(list(random_rows(np.random.default_rng(5), 600)))
    np.savez(tmp_path / "rows.npz", rows=rows)
    subprocess.run([python, "-c", PEER, str(tmp_path / "rows.npz"), str(tmp_path / "made.npz")],
                   check=True)
    made = np.load(tmp_path / "made.npz")
    for i, (w, h, c, ow, oh) in enumerate(rows.tolist()):
        image = np.random.default_rng([11, i]).integers(0, 256, (h, w, c), np.uint8)
        found = vision_library.resize_area(library, image, ow, oh)
        worst = np.abs(found.astype(int) - made[str(i)]).max()
        assert worst == 0, f"{w}x{h}x{c} to {ow}x{oh}: differs by up to {worst}"


def test_refused(library):
    with pytest.raises(ValueError, match="a picture of 0 x 3 with 3 channels cannot be made"):
        vision_library.resize_area(library, np.zeros((4, 4, 3), np.uint8), 0, 3)
    with pytest.raises(ValueError, match="with 5 channels cannot be made"):
        vision_library.resize_area(library, np.zeros((4, 4, 5), np.uint8), 2, 3)
