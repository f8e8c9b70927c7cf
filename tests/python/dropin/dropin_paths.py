# SPDX-License-Identifier: Apache-2.0
"""Where the package onnxruntime, ours and its extension are; tests skip where one is not."""
import importlib.util
import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


def find_real():
    """PYTHONPATH for the package onnxruntime from PyPI: nothing, it is installed."""
    if importlib.util.find_spec("onnx") is None:
        pytest.skip("the package onnx is not installed")
    spec = importlib.util.find_spec("onnxruntime")
    if spec is None or not list(Path(spec.origin).parent.glob("capi/libonnxruntime.so*")):
        pytest.skip("the package onnxruntime of PyPI is not installed")
    return ""


def paths_of_ours(build):
    """PYTHONPATH for our package of that name and the package sardonyx: SDX_PACKAGE, or that of a
    build."""
    given = os.environ.get("SDX_PACKAGE")
    places = [Path(given)] if given else [build / "python", ROOT / "bindings/python"]
    for place in places:
        if list(place.glob("sardonyx/*.so")):
            return os.pathsep.join([str(ROOT / "bindings/python-onnxruntime"), str(place)])
    pytest.skip(f"the package sardonyx is not built in {places[0]}")
    return None
