# SPDX-License-Identifier: Apache-2.0
"""The model collections of ../shared for the tests: filled or unpacked once, then reused.

SDX_CACHE (default: build/zoo beside the sources) gets what is made: cases/NAME and real/NAME.
SDX_ZOO and SDX_REAL name folders that hold them already; those are only read.
"""
import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
THREADS = (1, 2, 7)
# Models of at most this many bytes belong to `make test`; the others to `make test-all`.
SMALL = 15_000_000
# Multiply-accumulates of one run that `make test` spends on a model: what 0.1 s of a core can do.
SMALL_MACS = 2_000_000_000


def shared_folder():
    return Path(os.environ.get("SDX_SHARED", ROOT.parent / "shared"))


def rows(path):
    """The rows of a table of ../shared as dicts; none where it is absent."""
    if not path.is_file():
        return []
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def cache_folder():
    return Path(os.environ.get("SDX_CACHE", ROOT / "build/zoo"))


def zoo_case(shared, name):
    """The folder of a zoo model, filled now when it is not there yet."""
    given = os.environ.get("SDX_ZOO")
    if given:
        folder = Path(given) / name
        if not (folder / "test_data_set_0/output_0.pb").is_file():
            pytest.skip(f"{folder} is not filled (SDX_ZOO)")
        return folder
    pytest.importorskip("onnxruntime", reason="skeletons are filled with onnxruntime")
    out = cache_folder() / "cases"
    folder = out / name
    if not (folder / "filled").is_file():
        done = subprocess.run([sys.executable, str(shared / "zoo/skeleton.py"), "fill",
                               str(shared / "zoo"), name, "--out", str(out)], capture_output=True,
                              text=True, timeout=1800,
                              env={**os.environ, "ORT_DISABLE_TELEMETRY": "1"})
        assert done.returncode == 0, done.stderr[-2000:]
        (folder / "filled").touch()
    return folder


def real_case(shared, name):
    """The folder of a real model, unpacked now when it is not there yet."""
    given = os.environ.get("SDX_REAL")
    if given:
        folder = Path(given) / name
        if not (folder / "model.onnx").is_file():
            pytest.skip(f"{folder} is not there (SDX_REAL)")
        return folder
    out = cache_folder() / "real"
    if not (out / "unpacked").is_file():
        archive = shared / "real/models.tar.xz"
        if not archive.is_file():
            pytest.skip(f"no {archive}")
        out.mkdir(parents=True, exist_ok=True)
        subprocess.run(["tar", "-xf", str(archive), "-C", str(out)], check=True, timeout=600)
        (out / "unpacked").touch()
    assert (out / name / "model.onnx").is_file(), f"{name} is not in the archive"
    return out / name


def data_sets(folder):
    return sorted(folder.glob("test_data_set_*"), key=lambda path: int(path.name.split("_")[-1]))


def run_case(sardonyx, folder, threads, *tolerance, cpu=None):
    """The records of `sardonyx test` on a folder: [{"case", "result", "why", "digest", ...}]."""
    result = sardonyx("test", folder, "--json", "--digest", "--threads", threads, *tolerance,
                      code=None, timeout=900, env={"SDX_CPU": cpu} if cpu else None)
    return result.json["cases"]


def same_digests(sardonyx, folder, records, *tolerance):
    """Every thread count gives the bits that `records` (of one thread) have."""
    first = [record["digest"] for record in records]
    for threads in THREADS[1:]:
        again = run_case(sardonyx, folder, threads, *tolerance)
        assert [record["digest"] for record in again] == first, f"{threads} threads differ from 1"


def failures(records):
    assert records, "no data sets"
    return [f"{Path(record['case']).name}: {record.get('why', record['result'])}"
            for record in records if record["result"] != "passed"]


def peer_outputs(folder, data):
    """What ONNX Runtime computes with its optimisations on, and the expected outputs."""
    ort = pytest.importorskip("onnxruntime")
    options = ort.SessionOptions()
    options.log_severity_level = 3
    session = ort.InferenceSession(str(folder / "model.onnx"), options,
                                   providers=["CPUExecutionProvider"])
    feeds = {value.name: tensor_file(data / f"input_{i}.pb")
             for i, value in enumerate(session.get_inputs())}
    return session.run(None, feeds), expected_outputs(data)


def tensor_file(path):
    onnx = pytest.importorskip("onnx")
    return onnx.numpy_helper.to_array(onnx.load_tensor(str(path)))


def expected_outputs(data):
    paths = sorted(data.glob("output_*.pb"), key=lambda path: int(path.stem.split("_")[-1]))
    return [tensor_file(path) for path in paths]


def peer_noise(folder):
    """The largest difference that ONNX Runtime's own optimisations make to an output, over the
    output's largest value: how far rounding alone moves this model. Kept in the cache."""
    import numpy as np

    known = cache_folder() / "noise.json"
    table = json.loads(known.read_text()) if known.is_file() else {}
    if folder.name not in table:
        worst = 0.0
        for found, expected in zip(*peer_outputs(folder, data_sets(folder)[0])):
            if found.shape == expected.shape and expected.dtype.kind == "f" and expected.size:
                a, b = found.astype(np.float64), expected.astype(np.float64)
                worst = max(worst, float(np.abs(a - b).max() / max(np.abs(b).max(), 1e-30)))
        table[folder.name] = worst
        known.parent.mkdir(parents=True, exist_ok=True)
        known.write_text(json.dumps(table, indent=1, sort_keys=True))
    return table[folder.name]
