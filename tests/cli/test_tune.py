# SPDX-License-Identifier: Apache-2.0
"""--tune: what was measured is kept and taken from there, with several processes at once, and never trusted blindly."""
import os
import subprocess

import models
import numpy as np
import onnx.reference
import pytest
from onnx import helper, numpy_helper

CHANNELS = 32


def conv_model(path, size):
    rng = np.random.default_rng(size)
    weight = numpy_helper.from_array(rng.standard_normal((CHANNELS, CHANNELS, 3, 3)).astype(np.float32), "w")
    shape = [1, CHANNELS, size, size]
    return models.save(path, [helper.make_node("Conv", ["x", "w"], ["h"], pads=[1, 1, 1, 1], name="first"),
                              helper.make_node("Relu", ["h"], ["r"]),
                              helper.make_node("Conv", ["r", "w"], ["y"], pads=[1, 1, 1, 1], name="second")],
                       [models.value("x", shape)], [models.value("y", shape)], [weight])


@pytest.fixture()
def env(tmp_path):
    return {"XDG_CACHE_HOME": str(tmp_path / "cache")}


def the_file(tmp_path):
    (path,) = (tmp_path / "cache" / "sardonyx").glob("tune-*.txt")
    return path


def kernels(sardonyx, model, env):
    rows = sardonyx("profile", model, "--runs", "1", "--tune", "--json", env=env).json["nodes"]
    return [row["kernel"] for row in rows if row["kernel"].startswith("conv")]


def test_verbs(sardonyx, tmp_path, env):
    model = conv_model(tmp_path / "model.onnx", 20)
    sardonyx("run", model, "--tune", env=env)
    before = the_file(tmp_path).read_text()
    assert before.count("\nConv 32x32x1x0 in 1x20x20 ") == 1  # of both nodes
    way = before.split("\t")[1].split("\n")[0]
    expected = {"block": "conv_block_direct", "plain": "conv_f32"}.get(way, f"conv_block_{way}")
    assert kernels(sardonyx, model, env) == [expected] * 2
    sardonyx("bench", model, "--runs", "1", "--tune", env=env)
    sardonyx("compile", model, "-o", tmp_path / "model.sdx", "--tune", env=env)
    assert kernels(sardonyx, tmp_path / "model.sdx", env) == [expected] * 2
    assert the_file(tmp_path).read_text() == before
    sardonyx("run", model, env={"XDG_CACHE_HOME": str(tmp_path / "other")})
    assert not (tmp_path / "other").exists()  # only when asked for


def test_results(sardonyx, tmp_path, env):
    path = conv_model(tmp_path / "model.onnx", 14)
    model = onnx.load(path)
    x = np.random.default_rng(1).standard_normal((1, CHANNELS, 14, 14)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    (expected,) = onnx.reference.ReferenceEvaluator(model).run(None, {"x": x})
    bits = set()
    for threads in (1, 2, 7):
        sardonyx("run", path, "--tune", "--threads", threads, "--input", f"x={tmp_path / 'x.npy'}", "--out", tmp_path / "out", env=env)
        (found,) = (tmp_path / "out").iterdir()
        bits.add(found.read_bytes())
        y = numpy_helper.to_array(onnx.load_tensor(found)) if found.suffix == ".pb" else np.load(found)
        assert np.abs(y - expected).max() <= 1e-4 * np.abs(expected).max()
    assert len(bits) == 1


def test_processes_at_once(build, sardonyx, tmp_path, env):
    sizes = [10, 12, 14, 16]
    paths = [conv_model(tmp_path / f"{size}.onnx", size) for size in sizes]
    running = [subprocess.Popen([build / "sardonyx", "run", path, "--tune"], env={**os.environ, **env}, text=True,
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) for path in paths]
    for process in running:
        _, err = process.communicate(timeout=300)
        assert process.returncode == 0 and err == ""
    text = the_file(tmp_path).read_text()
    assert text.split("\n")[-2].startswith(f"end {len(sizes)} ")
    assert sorted(int(line.split(" in 1x")[1].split("x")[0]) for line in text.split("\n") if "\t" in line) == sizes
    assert sardonyx("run", paths[0], "--tune", env=env).err == ""  # valid
    assert the_file(tmp_path).read_text() == text


@pytest.mark.parametrize("fault", ["cut", "changed", "empty", "other"])
def test_file_that_does_not_fit(sardonyx, tmp_path, env, fault):
    model = conv_model(tmp_path / "model.onnx", 10)
    sardonyx("run", model, "--tune", env=env)
    path = the_file(tmp_path)
    good = path.read_bytes()
    bad = {"cut": good[:-4], "changed": good.replace(b"kernel 1x3x3", b"kernel 1x3x5"), "empty": b"",
           "other": good.replace(b", ", b", 9", 1)}[fault]
    path.write_bytes(bad)
    err = sardonyx("run", model, "--tune", env=env).err.strip()
    why = "it is of another version or CPU" if fault == "other" else "it is broken"
    assert err == f'sardonyx: warning: tune: "{path}" is ignored: {why}'
    assert sardonyx("run", model, "--tune", env=env).err == ""
