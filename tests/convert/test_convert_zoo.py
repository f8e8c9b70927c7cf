# SPDX-License-Identifier: Apache-2.0
"""The zoo and the real models in other versions of the standard: converted to the newest and down
to 13, valid, and with the outputs of the model as it was (the engine on both, on the same inputs).

Small models by default, all of them in `make test-all`."""
import re

import zoo
import numpy as np
import onnx
import pytest

NEWEST, OLDER = 28, 13
# Operators that version 13 has not and that have no function: the line that must come.
REFUSED = {"grounding_dino": r'GridSample\): opset 16 to 15: version 15 has no such operator'}
SHARED = zoo.shared_folder()


def is_small(row):
    return (int(row.get("params", 0) or 0) <= zoo.SMALL and int(row.get("macs", 0) or 0) <= zoo.SMALL_MACS // 10
            and int(row.get("nodes", 0) or 0) <= 3000)


ZOO = [pytest.param(row["name"], id=row["name"], marks=() if is_small(row) else pytest.mark.slow)
       for row in zoo.rows(SHARED / "zoo/INDEX.tsv")]
# Each runs three times for about a second on a busy core: the others take most of a minute together.
QUICK = ("gtcrn_simple", "hand_keypoint_classifier", "lgbm_classifier", "mnist_8", "mnist_quantized", "nnsplit_en",
         "ppocr_cls", "silero_vad", "ultraface_rfb320", "yunet_n_dynamic")
REAL = [pytest.param(row["name"], id=row["name"], marks=() if row["name"] in QUICK else pytest.mark.slow)
        for row in zoo.rows(SHARED / "real/INDEX.tsv")]


def results(sardonyx, model, data, folder):
    sardonyx("run", model, "--inputs", data, "--out", folder, timeout=900)
    return {path.name: path for path in sorted(folder.iterdir())}


def compare(found, expected):
    assert sorted(found) == sorted(expected)
    for name, path in expected.items():
        if path.suffix != ".npy":
            assert found[name].read_bytes() == path.read_bytes(), name
            continue
        a, b = np.load(found[name], allow_pickle=True), np.load(path, allow_pickle=True)
        assert a.dtype == b.dtype and a.shape == b.shape, name
        if a.dtype.kind == "f" and a.size:
            peak = np.abs(b[np.isfinite(b)]).max(initial=0).astype(np.float64)
            np.testing.assert_allclose(a.astype(np.float64), b.astype(np.float64), rtol=1e-4, atol=1e-5 * peak)
        else:
            assert (a == b).all(), name


def convert_and_run(sardonyx, folder, tmp_path):
    model = folder / "model.onnx"
    data = next((path for path in sorted(folder.glob("test_data_set_*")) if list(path.glob("input_*.pb"))), None)
    imports = {o.domain for o in onnx.load(str(model), load_external_data=False).opset_import}
    if not imports & {"", "ai.onnx"}:
        result = sardonyx("convert", model, "--opset", NEWEST, "-o", tmp_path / "no.onnx", code=1)
        assert "the model does not import ai.onnx" in result.err
        return
    expected = results(sardonyx, model, data, tmp_path / "expected") if data else {}
    for opset in (NEWEST, OLDER):
        to = tmp_path / f"{opset}.onnx"
        refused = REFUSED.get(folder.name) if opset == OLDER else None
        done = sardonyx("convert", model, "--opset", opset, "-o", to, code=1 if refused else 0)
        if refused:
            assert re.search(refused, done.err) and done.err.count("\n") == 1
            continue
        sardonyx("check", to)
        if data:
            compare(results(sardonyx, to, data, tmp_path / str(opset)), expected)
        to.unlink()


@pytest.mark.parametrize("name", ZOO)
def test_zoo(name, sardonyx, shared, tmp_path):
    convert_and_run(sardonyx, zoo.zoo_case(shared, name), tmp_path)


@pytest.mark.parametrize("name", REAL)
def test_real(name, sardonyx, shared, tmp_path):
    convert_and_run(sardonyx, zoo.real_case(shared, name), tmp_path)
