# SPDX-License-Identifier: Apache-2.0
"""sardonyx info, check and ops."""
import models
import onnx
from onnx import helper


def test_info(sardonyx, tmp_path):
    model = models.gemm_model(tmp_path / "gemm.onnx")
    info = sardonyx("info", model, "--json").json
    assert info["producer"] == "sardonyx-tests" and info["opsets"] == {"ai.onnx": 17}
    assert info["nodes"] == 2 and info["initializers"] == 1 and info["functions"] == 0
    assert info["parameters"] == 64 * 32 and info["parameter_bytes"] == 64 * 32 * 4
    assert info["macs"] == 8 * 64 * 32 and info["macs_exact"] is True
    assert info["inputs"] == [{"name": "x", "kind": "tensor", "dtype": "float", "dims": [8, 64],
                               "type": "float[8,64]", "optional": False}]
    assert [(o["name"], o["count"], o["unsupported"]) for o in info["operators"]] == [
        ("MatMul", 1, None), ("Relu", 1, None)]
    text = sardonyx("info", model).out
    for part in ("float[8,64]", "MatMul", "16.4 k", "opsets", "parameters"):
        assert part in text, part


def test_info_of_open_dimensions_and_metadata(sardonyx, tmp_path):
    model = models.add_model(tmp_path / "add.onnx")
    info = sardonyx("info", model, "--json").json
    assert info["inputs"][0]["dims"] == ["N", 3] and info["metadata"] == {"author": "tests"}
    assert "author" in sardonyx("info", model).out


def test_info_names_what_cannot_run(sardonyx, tmp_path):
    node = helper.make_node("Frobnicate", ["a"], ["y"], domain="com.example")
    graph = helper.make_graph([node], "g", [models.value("a", [1])], [models.value("y", [1])])
    model = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17),
                                                                   helper.make_opsetid("com.example", 1)])
    onnx.save(model, str(tmp_path / "odd.onnx"))
    result = sardonyx("info", tmp_path / "odd.onnx", "--json", code=None)
    if result.code == 0:
        assert result.json["operators"][0]["unsupported"]


def test_info_graph(sardonyx, tmp_path):
    model = models.add_model(tmp_path / "add.onnx")
    text = sardonyx("info", model, "--graph").out
    assert "Add" in text and "a" in text
    assert any("Add" in line for line in sardonyx("info", model, "--graph", "--json").json["graph"])


def test_check(sardonyx, tmp_path):
    good = models.add_model(tmp_path / "good.onnx")
    assert sardonyx("check", good).out == f"{good}: ok\n"
    proto = onnx.load(str(good))
    proto.graph.node[0].input[1] = "nowhere"
    proto.graph.node.add(op_type="Relu", input=["y", "a"], output=["z"])
    bad = tmp_path / "bad.onnx"
    onnx.save(proto, str(bad))
    result = sardonyx("check", good, bad, code=1)
    lines = result.out.splitlines()
    assert lines[0] == f"{good}: ok" and len(lines) >= 3
    assert all(line.startswith(f"{bad}: ") for line in lines[1:])
    assert result.err == "sardonyx: 1 of 2 models has faults\n"
    files = sardonyx("check", good, bad, "--json", code=1).json["files"]
    assert [f["ok"] for f in files] == [True, False]
    assert len(files[1]["faults"]) == len(lines) - 1


def test_ops(sardonyx):
    table = sardonyx("ops", "--json").json
    assert table["count"] == len(table["operators"]) > 150
    rows = {(o["domain"], o["name"], o["since"]): o for o in table["operators"]}
    assert rows["ai.onnx", "Relu", 14]["support"] in ("kernel", "lowering", "function")
    assert "float" in rows["ai.onnx", "Relu", 14]["types"]
    keys = [(o["domain"], o["name"], o["since"]) for o in table["operators"]]
    assert keys == sorted(keys)
    text = sardonyx("ops", "relu").out
    assert text.splitlines()[1].split()[1] == "Relu"
    page = sardonyx("ops", "--markdown").out
    assert "# Operators" in page and "| Relu | 14 |" in page
