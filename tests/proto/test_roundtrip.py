# SPDX-License-Identifier: Apache-2.0
"""Load and save through the public API: protobuf's own reader sees the same model before and after."""
import ctypes
import os
from pathlib import Path

import pytest

onnx = pytest.importorskip("onnx")

LARGEST = 64 << 20  # larger models differ in nothing but the size of their weights


class ModelOptions(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("check_fully", ctypes.c_bool), ("memory_limit", ctypes.c_size_t)]


@pytest.fixture(scope="session")
def library(build):
    path = build / "libsardonyx.so"
    if not path.is_file():
        pytest.skip(f"no library at {path}")
    lib = ctypes.CDLL(str(path))
    lib.sdx_context_create.restype = ctypes.c_void_p
    lib.sdx_error.restype = ctypes.c_char_p
    return lib


def rewrite(lib, source, target):
    """Loads `source` and saves it as `target`; None, or why it could not be opened."""
    cx, model = ctypes.c_void_p(lib.sdx_context_create(None)), ctypes.c_void_p()
    options = ModelOptions(ctypes.sizeof(ModelOptions), False, 0)
    try:
        if lib.sdx_model_open(cx, str(source).encode(), ctypes.byref(options), ctypes.byref(model)):
            return lib.sdx_error(cx).decode()
        assert lib.sdx_model_save(cx, model, str(target).encode()) == 0, lib.sdx_error(cx).decode()
        return None
    finally:
        lib.sdx_model_destroy(model)
        lib.sdx_context_destroy(cx)


def check(lib, sources, folder):
    refused = []
    for source in sources:
        target = folder / "copy.onnx"
        fault = rewrite(lib, source, target)
        if fault:  # other tests ask whether it should open
            refused.append(fault)
            continue
        before, after = onnx.ModelProto(), onnx.ModelProto()
        before.ParseFromString(source.read_bytes())
        after.ParseFromString(target.read_bytes())
        same = before.SerializeToString(deterministic=True) == after.SerializeToString(deterministic=True)
        assert same, f"{source} changed"
    print(f"{len(sources)} models, {len(refused)} not opened", *refused, sep="\n")
    assert len(refused) <= len(sources) // 20, refused


def data_models(*patterns):
    """Models of the test data; a skip that says so when there are none."""
    root = Path(os.environ.get("SDX_DATA", Path(__file__).resolve().parents[2] / "build/data"))
    models = [p for pattern in patterns for p in sorted(root.glob(pattern)) if p.stat().st_size <= LARGEST]
    if not models:
        pytest.skip(f"no models at {root} (SDX_DATA)")
    return models


def test_seeds(library, root, tmp_path):
    check(library, [root / "tests/fuzz/corpus/fuzz_wire/graph.onnx"], tmp_path)


def test_suite(library, tmp_path):
    check(library, data_models("suite/node/*/model.onnx")[::8], tmp_path)


@pytest.mark.slow
def test_everything(library, tmp_path):
    check(library, data_models("suite/*/*/model.onnx", "zoo/*/model.onnx", "*/model.onnx"), tmp_path)
