# SPDX-License-Identifier: Apache-2.0
"""Inputs that have an initializer: what nobody feeds is a constant, which passes use; what is fed takes its place."""
import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from case_folder import write_case


@pytest.fixture
def model():
    """Conv and BatchNormalization as PyTorch 1.2 wrote them, and a Reshape whose shape may be fed."""
    random = np.random.default_rng(5)
    defaults = {"w": random.standard_normal((24, 8, 3, 3)), "scale": random.uniform(0.5, 2, 24),
                "bias": random.standard_normal(24), "mean": random.standard_normal(24),
                "var": random.uniform(0.5, 2, 24)}
    defaults = {name: array.astype(np.float32) for name, array in defaults.items()}
    defaults["shape"] = np.array([1, -1])
    nodes = [helper.make_node("Conv", ["x", "w"], ["c"], pads=[1] * 4),
             helper.make_node("BatchNormalization", ["c", "scale", "bias", "mean", "var"], ["n"]),
             helper.make_node("Relu", ["n"], ["r"]), helper.make_node("Reshape", ["r", "shape"], ["y"])]
    infos = [helper.make_tensor_value_info("x", 1, [1, 8, 6, 6]),
             *(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
               for name, a in defaults.items())]
    graph = helper.make_graph(nodes, "old", infos, [helper.make_tensor_value_info("y", 1, ["a", "b"])],
                              [numpy_helper.from_array(a, name) for name, a in defaults.items()])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 15)], ir_version=4)
    onnx.checker.check_model(made)
    return made


def feeds_of(model, *names):
    random = np.random.default_rng(6)
    shapes = {"x": (1, 8, 6, 6), "w": (24, 8, 3, 3), "scale": (24,)}
    feeds = {name: random.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    feeds["shape"] = np.array([24, 36])
    return {name: feeds[name] for name in ("x", *names)}


@pytest.mark.parametrize("names", ((), ("w",), ("scale",), ("shape",), ("w", "scale", "shape")))
def test_values(sardonyx, tmp_path, model, names):
    feeds = feeds_of(model, *names)
    write_case(tmp_path / "case", model, feeds, ReferenceEvaluator(model).run(None, feeds))
    for level in ("none", "basic", "all"):
        done = sardonyx("test", tmp_path / "case", "--rtol", "1e-4", "--peak", "1e-5", "--level", level)
        assert "1 passed, 0 failed" in done.out


def test_constants(sardonyx, tmp_path, model):
    """Where nothing takes their place one Conv is left: the norm is in its weights."""
    onnx.save(model, tmp_path / "m.onnx")
    rows = sardonyx("profile", tmp_path / "m.onnx", "--top", "0").out
    assert "BatchNormalization" not in rows and " Relu" not in rows


def test_plan_file(sardonyx, tmp_path, model):
    """It is made with the initializers: runs without them, and says so to who feeds one."""
    feeds = feeds_of(model, "w")
    for names in ((), ("w",)):
        given = {name: feeds[name] for name in ("x", *names)}
        write_case(tmp_path / f"case{len(names)}", model, given, ReferenceEvaluator(model).run(None, given))
    plan = tmp_path / "m.sdx"
    sardonyx("compile", tmp_path / "case0/model.onnx", "-o", plan)
    found = sardonyx("run", plan, "--inputs", tmp_path / "case0/test_data_set_0", "--out", tmp_path / "out")
    assert found.code == 0
    err = sardonyx("run", plan, "--inputs", tmp_path / "case1/test_data_set_0", code=1).err
    assert "plan file: made with the initializers of inputs, which cannot be fed to it" in err
