# SPDX-License-Identifier: Apache-2.0
"""sardonyx infer, and check --structure."""
import pytest

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper  # noqa: E402


def save(path, nodes, inputs, outputs, initializers=(), values=()):
    graph = helper.make_graph(nodes, "g", inputs, outputs, list(initializers), value_info=list(values))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    model.doc_string = "kept"
    onnx.save(model, path)
    return path


def value(name, shape, dtype=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, dtype, shape)


def dims(info):
    return [d.dim_value if d.HasField("dim_value") else d.dim_param for d in info.type.tensor_type.shape.dim]


@pytest.fixture
def chain(tmp_path):
    """x [N, 3, 8] to y through a value that the file says nothing of."""
    shape = helper.make_tensor("shape", TensorProto.INT64, [2], [0, -1])
    return save(tmp_path / "chain.onnx", [helper.make_node("Relu", ["x"], ["a"]),
                                          helper.make_node("Reshape", ["a", "shape"], ["y"])],
                [value("x", ["N", 3, 8])], [value("y", None)], [shape])


def test_types_are_written(sardonyx, chain, tmp_path):
    result = sardonyx("infer", chain, "-o", tmp_path / "typed.onnx")
    assert result.out.strip() == str(tmp_path / "typed.onnx")
    model = onnx.load(tmp_path / "typed.onnx")
    onnx.checker.check_model(model, full_check=True)
    assert [(v.name, dims(v)) for v in model.graph.value_info] == [("a", ["N", 3, 8])]
    assert dims(model.graph.output[0]) == ["N", 24]
    assert model.doc_string == "kept" and len(model.graph.node) == 2


def test_bodies_are_typed(sardonyx, tmp_path):
    body = helper.make_graph([helper.make_node("Relu", ["x"], ["r"]), helper.make_node("Neg", ["r"], ["o"])],
                             "body", [], [value("o", None)])
    path = save(tmp_path / "if.onnx",
                [helper.make_node("If", ["c"], ["y"], then_branch=body, else_branch=body)],
                [value("c", [], TensorProto.BOOL), value("x", [2, 5])], [value("y", None)])
    sardonyx("infer", path, "-o", tmp_path / "typed.onnx")
    node = onnx.load(tmp_path / "typed.onnx").graph.node[0]
    for attr in node.attribute:
        assert [(v.name, dims(v)) for v in attr.g.value_info] == [("r", [2, 5])]
        assert dims(attr.g.output[0]) == [2, 5]


def test_contradictions(sardonyx, tmp_path):
    path = save(tmp_path / "bad.onnx", [helper.make_node("MatMul", ["x", "x"], ["y"]),
                                        helper.make_node("Relu", ["x"], ["z"])],
                [value("x", [2, 3])], [value("y", None), value("z", [2, 4])])
    strict = sardonyx("infer", path, "-o", tmp_path / "typed.onnx", code=1)
    assert "MatMul" in strict.err and "inner length is 3 and 2" in strict.err
    assert not (tmp_path / "typed.onnx").exists()
    row = sardonyx("infer", path, "-o", tmp_path / "typed.onnx", "--lenient", "--json").json["files"][0]
    assert row["ok"] and len(row["faults"]) == 1 and "MatMul" in row["faults"][0]
    model = onnx.load(tmp_path / "typed.onnx")
    assert dims(model.graph.output[1]) == [2, 3]


def test_several_models(sardonyx, chain, tmp_path):
    other = save(tmp_path / "other.onnx", [helper.make_node("Relu", ["x"], ["y"])], [value("x", [1])],
                 [value("y", None)])
    rows = sardonyx("infer", chain, other, "-o", tmp_path / "typed", "--json").json
    assert rows["bad"] == 0
    assert [row["file"] for row in rows["files"]] == [str(tmp_path / "typed/chain.onnx"),
                                                      str(tmp_path / "typed/other.onnx")]


def test_usage(sardonyx, chain):
    assert "-o FILE is missing" in sardonyx("infer", chain, code=2).err
    assert sardonyx("infer", "no/such.onnx", "-o", "/tmp/never.onnx", code=1).err


def test_structure(sardonyx, tmp_path):
    """A shape that cannot be is a fault of a full check only, a name that nothing makes of both."""
    shapes = save(tmp_path / "shapes.onnx", [helper.make_node("MatMul", ["x", "x"], ["y"])],
                  [value("x", [2, 3])], [value("y", ["a", "b"])])
    names = save(tmp_path / "names.onnx", [helper.make_node("Relu", ["nobody"], ["y"])],
                 [value("x", [2, 3])], [value("y", [2, 3])])
    assert sardonyx("check", shapes, "--structure").out.strip().endswith(": ok")
    assert "inner length" in sardonyx("check", shapes, code=1).out
    for options in ([], ["--structure"]):
        assert 'input "nobody" is not defined' in sardonyx("check", names, *options, code=1).out


def test_to_the_letter(sardonyx, tmp_path):
    """What every runtime reads and the standard forbids: a fault of check, not of loading."""
    path = save(tmp_path / "order.onnx", [helper.make_node("Relu", ["a"], ["y"]),
                                          helper.make_node("Neg", ["x"], ["a"])],
                [value("x", [2])], [value("y", [2])])
    assert "made by this node or a later one" in sardonyx("check", path, code=1).out
    sardonyx("run", path, "--input", "x=1,2")
