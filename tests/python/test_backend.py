# SPDX-License-Identifier: Apache-2.0
"""sardonyx.backend: the test runner of the package onnx on it, and its methods."""
import os
import pickle
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "dropin")]
from dropin_paths import paths_of_ours  # noqa: E402

NO_CODEC = "ImageDecoder needs its codecs"
FAULTS = HERE / "backend_faults.tsv"


def run_cases(build, tmp_path, backend, *pattern):
    """{case: (how it ended, why)} of the runner."""
    out = tmp_path / "ends.pickle"
    env = {**os.environ, "PYTHONPATH": paths_of_ours(build), "PYTHONWARNINGS": "ignore",
           "ONNX_HOME": str(tmp_path / "home"), "SDX_CODECS": str(build / "libsardonyx_codecs.so")}
    done = subprocess.run([sys.executable, str(HERE / "clients/client_backend.py"), str(out), backend, *pattern],
                          env=env, capture_output=True, text=True, timeout=3000)
    assert out.is_file(), f"exit code {done.returncode}\n{done.stdout[-1000:]}\n{done.stderr[-3000:]}"
    return pickle.loads(out.read_bytes())


def check(ends, listed):
    """Cases that fail are those that are listed, each with its reason; random ones may pass."""
    counts = Counter(kind for kind, _ in ends.values())
    print(", ".join(f"{count} {kind}" for kind, count in sorted(counts.items())))
    ends = {name: end for name, end in ends.items() if NO_CODEC not in end[1]}
    failed = {name: why for name, (kind, why) in ends.items()
              if kind == "failed" or why == "Not compatible with backend"}
    unknown = [f"{name}: {failed[name].splitlines()[0][:200] if failed[name] else ''}"
               for name in sorted(set(failed) - set(listed))]
    assert not unknown, f"{len(unknown)} cases\n" + "\n".join(unknown[:60])
    passing = [name for name, reason in listed.items() if ends.get(name, ("",))[0] == "passed"
               and not reason.startswith(("random", "open"))]
    assert not passing, f"these pass, but {FAULTS.name} lists them: {passing}"


def read_faults():
    lines = FAULTS.read_text(encoding="utf-8").split("\n")
    return dict(line.split("\t", 1) for line in lines if line and not line.startswith("#"))


def test_all_cases_of_the_standard(build, tmp_path):
    ends = run_cases(build, tmp_path, "sardonyx.backend")
    check(ends, read_faults())
    assert Counter(kind for kind, _ in ends.values())["passed"] > 1900


def test_through_the_drop_in(build, tmp_path):
    """onnxruntime.backend is the same backend."""
    ends = run_cases(build, tmp_path, "onnxruntime.backend", r"^test_(abs|add|relu)\w*_cpu$")
    assert set(kind for kind, _ in ends.values()) == {"passed"}


@pytest.fixture(scope="module")
def backend(build):
    """The module, imported from the build."""
    before = list(sys.path)
    sys.path[:0] = paths_of_ours(build).split(os.pathsep)[1:]
    try:
        import sardonyx.backend
        yield sardonyx.backend
    finally:
        sys.path[:] = before


def make_model():
    from onnx import TensorProto, helper
    graph = helper.make_graph([helper.make_node("Add", ["x", "y"], ["z"])], "g",
                              [helper.make_tensor_value_info(n, TensorProto.FLOAT, [2]) for n in "xy"],
                              [helper.make_tensor_value_info("z", TensorProto.FLOAT, [2])])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_prepare_takes_many_forms(backend, tmp_path):
    import sardonyx
    made, x = make_model(), np.ones(2, np.float32)
    path = tmp_path / "m.onnx"
    path.write_bytes(made.SerializeToString())
    forms = [made, made.SerializeToString(), str(path), path, sardonyx.InferenceSession(str(path))]
    forms.append(backend.prepare(made))
    for form in forms:
        assert backend.prepare(form).run([x, x])[0].tolist() == [2, 2]
    assert backend.prepare(made).run({"y": x, "x": x})[0].tolist() == [2, 2]


def test_run_model_and_options(backend):
    x = np.ones(2, np.float32)
    assert backend.run_model(make_model(), [x, x], intra_op_num_threads=1, logid="a")[0].tolist() == [2, 2]
    with pytest.raises(RuntimeError, match="enable_profiling"):
        backend.prepare(make_model(), enable_profiling=True)


def test_run_node(backend):
    from onnx import helper
    x = np.array([-1, 2], np.float32)
    assert backend.run_node(helper.make_node("Relu", ["x"], ["y"]), [x])[0].tolist() == [0, 2]
    assert backend.run_node(helper.make_node("Relu", ["x"], ["y"]), x, opset_version=13)[0].tolist() == [0, 2]
    node = helper.make_node("Split", ["x"], ["a", "b"], num_outputs=2)
    assert [item.tolist() for item in backend.run_node(node, [x])] == [[-1], [2]]
    info = [(np.float32, (2,))]
    assert backend.run_node(helper.make_node("Abs", ["x"], ["y"]), [x], outputs_info=info)[0].tolist() == [1, 2]


def test_devices(backend):
    assert backend.supports_device("CPU") and backend.supports_device("CPU:0")
    assert not backend.supports_device("CUDA") and not backend.supports_device("CUDA:1")
    with pytest.raises(RuntimeError, match="CUDA"):
        backend.prepare(make_model(), "CUDA")


def test_is_compatible(backend):
    bad = make_model()
    bad.graph.node[0].op_type = "Nope"
    assert backend.is_compatible(make_model())
    assert not backend.is_compatible(bad)
    assert not backend.is_compatible(make_model(), "CUDA")


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2", "int4", "uint4"])
def test_narrow_types(backend, name):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    from onnx import helper
    x = np.array([[1, 2, 0], [3, 1, 2]]).astype(getattr(ml_dtypes, name))
    y = backend.run_node(helper.make_node("Identity", ["x"], ["y"]), [x])[0]
    assert y.dtype == x.dtype and y.astype(np.float32).tolist() == x.astype(np.float32).tolist()
    y = backend.run_node(helper.make_node("Cast", ["x"], ["y"], to=1), [x])[0]
    assert y.tolist() == x.astype(np.float32).tolist()
