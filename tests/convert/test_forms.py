# SPDX-License-Identifier: Apache-2.0
"""Single forms of the version converter: old ones, bodies, functions, formulas of operators that an
older version has not, and every kind of refusal. Results are those of ONNX Runtime or the reference
evaluator on the model as it was."""
import models
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto as T
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

ort_options = onnxruntime.SessionOptions()
ort_options.log_severity_level = 4


def reference(path, feeds):
    try:
        return onnxruntime.InferenceSession(str(path), ort_options, providers=["CPUExecutionProvider"]).run(None, feeds)
    except Exception:  # what it has not, the evaluator may have
        return ReferenceEvaluator(onnx.load(str(path))).run(None, feeds)


def convert(sardonyx, path, opset, to):
    sardonyx("convert", path, "--opset", opset, "-o", to)
    sardonyx("check", to)
    model = onnx.load(str(to))
    onnx.checker.check_model(model, full_check=True)
    return model


def ours(sardonyx, path, feeds, folder):
    folder.mkdir(exist_ok=True)
    arguments = []
    for name, array in feeds.items():
        np.save(folder / f"in_{name}.npy", array)
        arguments += ["--input", f"{name}={folder / f'in_{name}.npy'}"]
    sardonyx("run", path, *arguments, "--out", folder / "out")
    names = [value.name for value in onnx.load(str(path)).graph.output]
    return [np.load(folder / "out" / f"{name}.npy") for name in names]


def random_of(*shape, dtype=np.float32, seed=3):
    return (np.random.default_rng(seed).random(shape) * 4 - 2).astype(dtype)


def ints(name, *v):
    return numpy_helper.from_array(np.array(v, np.int64), name)


V = models.value
N = helper.make_node
X = random_of(2, 4, 6, 5)
# name: opset of the model, opsets to convert to, nodes, inputs by name, initializers, outputs
FORMS = {
    "layer_norm": (17, [16, 13, 9], [N("LayerNormalization", ["x", "s", "b"], ["y", "m", "i"], axis=-2, epsilon=1e-3)],
                   {"x": X, "s": random_of(6, 5), "b": random_of(6, 5)}, [], ["y", "m", "i"]),
    "gelu": (20, [19, 13, 9, 28], [N("Gelu", ["x"], ["y"])], {"x": X}, [], ["y"]),
    "gelu_tanh": (20, [19, 13, 9], [N("Gelu", ["x"], ["y"], approximate="tanh")], {"x": X}, [], ["y"]),
    "hard_swish": (14, [13, 7], [N("HardSwish", ["x"], ["y"])], {"x": X}, [], ["y"]),
    "mish": (18, [17, 9], [N("Mish", ["x"], ["y"])], {"x": X}, [], ["y"]),
    "celu": (12, [11, 7], [N("Celu", ["x"], ["y"], alpha=1.5)], {"x": X}, [], ["y"]),
    "swish": (24, [23, 13], [N("Swish", ["x"], ["y"], alpha=1.3)], {"x": X}, [], ["y"]),
    "rms_norm": (23, [22, 17, 13], [N("RMSNormalization", ["x", "s"], ["y"], axis=2)],
                 {"x": X, "s": random_of(6, 5)}, [], ["y"]),
    "less_or_equal": (12, [11], [N("LessOrEqual", ["x", "z"], ["y:b"])], {"x": X, "z": random_of(5)}, [], ["y:b"]),
    "group_norm": (21, [20, 17, 13, 28], [N("GroupNormalization", ["x", "s", "b"], ["y"], num_groups=2)],
                      {"x": X, "s": random_of(4), "b": random_of(4)}, [], ["y"]),
    "softmax_axis_1": (12, [13, 28, 7], [N("Softmax", ["x"], ["y"], axis=1)], {"x": X}, [], ["y"]),
    "softmax_13_axis_1": (13, [12, 9, 28], [N("LogSoftmax", ["x"], ["y"], axis=1)], {"x": X}, [], ["y"]),
    "add_spread": (9, [6, 7, 28], [N("Add", ["x", "z"], ["y"])], {"x": random_of(4, 1, 5), "z": random_of(1, 6, 1)}, [],
                   ["y"]),
    "mul_swapped": (9, [6, 28], [N("Mul", ["z", "x"], ["y"])], {"x": X, "z": random_of(5)}, [], ["y"]),
    "gemm_row": (9, [6, 11], [N("Gemm", ["x", "z", "c"], ["y"], transB=1)],
                 {"x": random_of(3, 4), "z": random_of(5, 4), "c": random_of(1, 5)}, [], ["y"]),
    "gemm_no_c": (11, [10, 7], [N("Gemm", ["x", "z"], ["y"])], {"x": random_of(3, 4), "z": random_of(4, 5)}, [], ["y"]),
    "prelu": (9, [6, 16], [N("PRelu", ["x", "s"], ["y"])], {"x": X, "s": random_of(4, 1, 1)}, [], ["y"]),
    "split_uneven": (18, [17, 12, 28], [N("Split", ["x"], ["y", "w"], axis=3, num_outputs=2)], {"x": X}, [], ["y", "w"]),
    "pad_axes": (18, [17, 13, 10, 28], [N("Pad", ["x", "p", "", "a"], ["y"])], {"x": X},
                 [ints("p", 1, 2, 0, 1), ints("a", -1, 1)], ["y"]),
    "pad_value": (13, [10, 2, 28], [N("Pad", ["x", "p", "v"], ["y"])], {"x": X},
                  [ints("p", 0, 0, 1, 1, 0, 0, 1, 2), numpy_helper.from_array(np.float32(1.5), "v")], ["y"]),
    "shape_part": (15, [14, 9, 28], [N("Shape", ["x"], ["y:i"], start=1, end=-1)], {"x": X}, [], ["y:i"]),
    "slice": (13, [9, 28], [N("Slice", ["x", "s", "e", "a"], ["y"])], {"x": X},
              [ints("s", 1, -3), ints("e", 4, 2 ** 62), ints("a", 1, 2)], ["y"]),
    "top_k": (11, [9, 28], [N("TopK", ["x", "k"], ["y", "i:i"], axis=-1)], {"x": X}, [ints("k", 3)], ["y", "i:i"]),
    "clip": (13, [12, 11, 6, 28], [N("Clip", ["x", "", "v"], ["y"])], {"x": X},
             [numpy_helper.from_array(np.float32(0.5), "v")], ["y"]),
    "resize_10": (10, [11, 13, 28], [N("Resize", ["x", "s"], ["y"], mode="linear")], {"x": X},
                  [numpy_helper.from_array(np.array([1, 1, 1.5, 2], np.float32), "s")], ["y"]),
    "resize_10_nearest": (10, [9, 7, 11, 28], [N("Resize", ["x", "s"], ["y"])], {"x": X},
                          [numpy_helper.from_array(np.array([1, 1, 1.5, 2], np.float32), "s")], ["y"]),
    "resize_13": (13, [12, 11, 10], [N("Resize", ["x", "", "s"], ["y"], mode="nearest", nearest_mode="floor",
                                       coordinate_transformation_mode="asymmetric")], {"x": X},
                  [numpy_helper.from_array(np.array([1, 1, 2, 2], np.float32), "s")], ["y"]),
    "reduce_max_18": (18, [17, 11, 8, 28], [N("ReduceMax", ["x", "a"], ["y"], keepdims=0)], {"x": X}, [ints("a", -1, 1)],
                      ["y"]),
    "reduce_sum_noop": (13, [12, 7], [N("ReduceSum", ["x"], ["y"], noop_with_empty_axes=1)], {"x": X}, [], ["y"]),
    "unsqueeze": (13, [12, 10, 28], [N("Unsqueeze", ["x", "a"], ["y"])], {"x": X}, [ints("a", -1, 0)], ["y"]),
    "lstm_batch_first": (14, [13, 7, 28], [N("LSTM", ["x", "w", "r", "", "", "h", "c"], ["y", "u", "v"], hidden_size=3,
                                             layout=1)],
                         {"x": random_of(2, 4, 5), "w": random_of(1, 12, 5), "r": random_of(1, 12, 3),
                          "h": random_of(2, 1, 3), "c": random_of(2, 1, 3)}, [], ["y", "u", "v"]),
    "grid_sample": (16, [20, 28], [N("GridSample", ["x", "g"], ["y"], mode="bicubic")],
                    {"x": X, "g": random_of(2, 3, 3, 2) / 2}, [], ["y"]),
    "tile": (9, [6, 28], [N("Tile", ["x", "r"], ["y"])], {"x": X}, [ints("r", 1, 2, 1, 3)], ["y"]),
    "constant_forms": (13, [12, 11, 28], [N("Constant", [], ["c"], value_floats=[1.0, 2.0, 3.0, 4.0, 5.0]),
                                          N("Mul", ["x", "c"], ["y"])], {"x": X}, [], ["y"]),
    "int_constant": (9, [8, 6], [N("Constant", [], ["c"], value=ints("", 2, 4, 30)), N("Reshape", ["x", "c"], ["y"])],
                     {"x": X}, [], ["y"]),
    "flatten_ints": (9, [8, 6], [N("Flatten", ["x"], ["y:i"], axis=2)],
                     {"x": np.arange(24, dtype=np.int64).reshape(2, 3, 4) + 2 ** 60}, [], ["y:i"]),
    "matmul_ints": (9, [8], [N("MatMul", ["x", "z"], ["y:i"])],
                    {"x": np.arange(6, dtype=np.int64).reshape(2, 3), "z": np.arange(6, dtype=np.int64).reshape(3, 2)},
                    [], ["y:i"]),
    "one_hot": (11, [10, 9, 28], [N("OneHot", ["i", "d", "v"], ["y"])],
                {"i": np.array([1, -1, -4, 4, 7, -9], np.int64)},
                [numpy_helper.from_array(np.array([5], np.int64), "d"),
                 numpy_helper.from_array(np.array([0, 3], np.float32), "v")], ["y"]),
    "dropout": (13, [11, 6, 28], [N("Dropout", ["x", "r"], ["y"])], {"x": X},
                [numpy_helper.from_array(np.float32(0.3), "r")], ["y"]),
    "batch_norm": (15, [13, 8, 6, 28], [N("BatchNormalization", ["x", "s", "b", "m", "v"], ["y"])],
                   {"x": X, "s": random_of(4), "b": random_of(4), "m": random_of(4), "v": np.abs(random_of(4)) + 1},
                   [], ["y"]),
    "scatter": (13, [10, 28], [N("ScatterElements", ["x", "i", "u"], ["y"], axis=-1)], {"x": X, "u": random_of(2, 1, 1, 2)},
                [numpy_helper.from_array(np.array([[[[0, 3]]], [[[1, 2]]]], np.int64), "i")], ["y"]),
}
KINDS = {"b": T.BOOL, "i": T.INT64}


def make(path, form):
    """The model of a form, with the shapes that its outputs turn out to have; and its outputs."""
    build(path, form, [None] * len(form[5]))
    expected = reference(path, form[3])
    build(path, form, [array.shape for array in expected])
    return expected


def build(path, form, shapes):
    opset, _, nodes, feeds, given, outputs = form
    copies = []
    for node in nodes:
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        copy.output[:] = [name.split(":")[0] for name in node.output]
        copies.append(copy)
    inputs = [V(name, array.shape, helper.np_dtype_to_tensor_dtype(array.dtype)) for name, array in feeds.items()]
    ends = [helper.make_tensor_value_info(name.split(":")[0], KINDS.get(name[-1] if ":" in name else "", T.FLOAT), shape)
            for name, shape in zip(outputs, shapes, strict=True)]
    models.save(path, copies, inputs, ends, given, opset=opset)


@pytest.mark.parametrize("name", FORMS)
def test_form(name, sardonyx, tmp_path):
    path = tmp_path / "model.onnx"
    feeds = FORMS[name][3]
    expected = make(path, FORMS[name])
    for opset in FORMS[name][1]:
        to = tmp_path / f"{opset}.onnx"
        convert(sardonyx, path, opset, to)
        for a, b in zip(ours(sardonyx, to, feeds, tmp_path / str(opset)), expected, strict=True):
            assert a.dtype == b.dtype and a.shape == b.shape
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_body_and_captures(sardonyx, tmp_path):
    """Bodies are converted too; constants come from the graphs around them."""
    def branch(name, op):
        return helper.make_graph([N("Squeeze", ["x", "axes"], ["s" + name]), N(op, ["s" + name], ["o" + name])], name, [],
                                 [helper.make_tensor_value_info("o" + name, T.FLOAT, None)])
    path = models.save(tmp_path / "m.onnx", [N("If", ["c"], ["y"], then_branch=branch("t", "Abs"),
                                               else_branch=branch("e", "Neg"))],
                       [V("c", [], T.BOOL), V("x", [1, 3])], [V("y", [3])], [ints("axes", 0)], opset=13)
    for opset in (11, 28):
        for flag in (True, False):
            feeds = {"c": np.array(flag), "x": random_of(1, 3)}
            to = tmp_path / f"{opset}.onnx"
            model = convert(sardonyx, path, opset, to)
            found = ours(sardonyx, to, feeds, tmp_path / f"{opset}{flag}")
            assert (found[0] == reference(path, feeds)[0]).all()
        assert [t.name for t in model.graph.initializer] == (["axes"] if opset > 12 else [])


def test_functions(sardonyx, tmp_path):
    """Functions have versions of their own, and attributes that only the call knows."""
    squeeze = N("Unsqueeze", ["a"], ["b"])
    squeeze.attribute.add(name="axes", type=onnx.AttributeProto.INTS, ref_attr_name="where")
    function = helper.make_function("local", "Up", ["a"], ["b"], [squeeze], [helper.make_opsetid("", 12)], ["where"])
    graph = helper.make_graph([N("Up", ["x"], ["y"], domain="local", where=[0, 2])], "g", [V("x", [3, 4])], [V("y", [1, 3, 1, 4])])
    model = helper.make_model(graph, functions=[function], ir_version=8,
                              opset_imports=[helper.make_opsetid("", 12), helper.make_opsetid("local", 1)])
    path = tmp_path / "m.onnx"
    onnx.save(model, str(path))
    to = tmp_path / "to.onnx"
    found = convert(sardonyx, path, 18, to)
    assert [(o.domain, o.version) for o in found.functions[0].opset_import] == [("", 18)]
    assert ours(sardonyx, to, {"x": random_of(3, 4)}, tmp_path / "run")[0].shape == (1, 3, 1, 4)
    assert "function" in sardonyx("convert", to, "--opset", 11, "-o", tmp_path / "no.onnx", code=1).err


def test_one_hot_9(sardonyx, tmp_path):
    """Before version 11 an index below 0 makes nothing hot."""
    path, to = tmp_path / "m.onnx", tmp_path / "to.onnx"
    given = [numpy_helper.from_array(np.array([5], np.int64), "d"),
             numpy_helper.from_array(np.array([0, 3], np.float32), "v")]
    models.save(path, [N("OneHot", ["i", "d", "v"], ["y"])], [V("i", [4], T.INT64)], [V("y", [4, 5])], given, opset=9)
    feeds = {"i": np.array([1, -1, -5, 4], np.int64)}
    expected = np.zeros((4, 5), np.float32)
    expected[0, 1] = expected[3, 4] = 3
    for opset in (11, 28):
        convert(sardonyx, path, opset, to)
        assert (ours(sardonyx, to, feeds, tmp_path / str(opset))[0] == expected).all()


def test_group_norm_18(sardonyx, tmp_path):
    """Deprecated, so not valid where it stands: converted unchecked."""
    path, to = tmp_path / "m.onnx", tmp_path / "to.onnx"
    x, s, b = random_of(2, 4, 3), random_of(2), random_of(2)
    models.save(path, [N("GroupNormalization", ["x", "s", "b"], ["y"], num_groups=2)],
                [V("x", x.shape), V("s", [2]), V("b", [2])], [V("y", x.shape)], opset=18)
    groups = x.reshape(2, 2, 6)
    normed = (groups - groups.mean(-1, keepdims=True)) / np.sqrt(groups.var(-1, keepdims=True) + 1e-5)
    expected = (normed * s[:, None] + b[:, None]).reshape(x.shape)
    for opset in (17, 13, 21, 28):
        sardonyx("convert", path, "--opset", opset, "-o", to, "--unchecked")
        sardonyx("check", to)
        found = ours(sardonyx, to, {"x": x, "s": s, "b": b}, tmp_path / str(opset))[0]
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_scan_of_a_batch(sardonyx, tmp_path):
    """Version 8 had a batch; version 9 gets it as a Scan around the Scan."""
    body = helper.make_graph([N("Add", ["s", "n"], ["t"]), N("Identity", ["t"], ["o"])], "body",
                             [V("s", [2]), V("n", [2])], [V("t", [2]), V("o", [2])])
    for batch in (1, 3):
        path = models.save(tmp_path / f"{batch}.onnx", [N("Scan", ["", "i", "x"], ["y", "z"], num_scan_inputs=1, body=body)],
                           [V("i", [batch, 2]), V("x", [batch, 4, 2])], [V("y", [batch, 2]), V("z", [batch, 4, 2])], opset=8)
        feeds = {"i": random_of(batch, 2), "x": random_of(batch, 4, 2)}
        sums = feeds["i"][:, None] + np.cumsum(feeds["x"], axis=1)
        for opset in (9, 13, 28):
            to = tmp_path / f"{batch}_{opset}.onnx"
            convert(sardonyx, path, opset, to)
            found = ours(sardonyx, to, feeds, tmp_path / f"run{batch}_{opset}")
            np.testing.assert_allclose(found[0], sums[:, -1], rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(found[1], sums, rtol=1e-5, atol=1e-6)


def test_label_encoder(sardonyx, tmp_path):
    graph = helper.make_graph([N("LabelEncoder", ["x"], ["y"], domain="ai.onnx.ml", classes_strings=["a", "b", "c"],
                                 default_string="none", default_int64=7)], "g", [V("x", [4], T.INT64)],
                              [V("y", [4], T.STRING)])
    path = tmp_path / "m.onnx"
    onnx.save(helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("ai.onnx.ml", 1)]), str(path))
    to, back = tmp_path / "to.onnx", tmp_path / "back.onnx"
    sardonyx("convert", path, "--opset", "ai.onnx.ml=4", "-o", to)
    sardonyx("convert", to, "--opset", "ai.onnx.ml=1", "-o", back)
    for one in (to, back):
        sardonyx("check", one)
    attributes = {a.name: helper.get_attribute_value(a) for a in onnx.load(str(to)).graph.node[0].attribute}
    assert attributes["values_strings"] == [b"a", b"b", b"c"] and attributes["keys_int64s"] == [0, 1, 2]
    attributes = {a.name: helper.get_attribute_value(a) for a in onnx.load(str(back)).graph.node[0].attribute}
    assert attributes == {"classes_strings": [b"a", b"b", b"c"], "default_string": b"none", "default_int64": 7}


REFUSALS = {
    "axes_not_constant": (13, 12, [N("Squeeze", ["x", "a"], ["y"], name="sq")],
                          [V("x", [1, 3]), V("a", [1], T.INT64)],
                          'node "sq" (Squeeze): opset 13 to 12: input 1 ("a") is not a constant, expected one to become '
                          "attribute axes"),
    "no_operator": (9, 8, [N("Shrink", ["x"], ["y"])], [V("x", [3, 3])],
                    'node of "y" (Shrink): opset 9 to 8: version 8 has no such operator'),
    "type": (13, 12, [N("Abs", ["x"], ["y"])], [V("x", [3], T.BFLOAT16)],
             'node of "y" (Abs): opset 13 to 12: input 0 is bfloat16[3], which version 12 does not take'),
    "attribute": (12, 11, [N("ArgMax", ["x"], ["y:i"], select_last_index=1)], [V("x", [3])],
                  'node of "y" (ArgMax): opset 12 to 11: attribute select_last_index is 1, and version 11 has none'),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_refusal(name, sardonyx, tmp_path):
    opset, to, nodes, inputs, line = REFUSALS[name]
    kind = inputs[0].type.tensor_type.elem_type
    copies = [N(n.op_type, n.input, [o.split(":")[0] for o in n.output], name=n.name) for n in nodes]
    for copy, node in zip(copies, nodes, strict=True):
        copy.attribute.extend(node.attribute)
    ends = [helper.make_tensor_value_info("y", T.INT64 if name == "attribute" else kind, None)]
    path = models.save(tmp_path / "m.onnx", copies, inputs, ends, opset=opset)
    result = sardonyx("convert", path, "--opset", to, "-o", tmp_path / "to.onnx", code=1)
    assert result.err == f"sardonyx: {path}: {line}\n"
    assert not (tmp_path / "to.onnx").exists()


def test_program(sardonyx, tmp_path):
    path = models.add_model(tmp_path / "add.onnx")
    to = tmp_path / "to.onnx"
    result = sardonyx("convert", path, "--opset", 9, "-o", to, "--json")
    assert result.json["opsets"] == {"ai.onnx": 9} and result.json["bytes"] == to.stat().st_size
    assert "opset 28" in sardonyx("convert", to, "--opset", 28, "-o", to).out
    assert onnx.load(str(to)).opset_import[0].version == 28
    for wrong, text in (("29", "expected 1 to 28"), ("ai.onnx.ml=3", "the model does not import ai.onnx.ml"),
                        ("nobody.knows=3", "no domain with known versions")):
        assert text in sardonyx("convert", path, "--opset", wrong, "-o", to, code=1).err


def test_external_data(sardonyx, tmp_path):
    """Beside the model it stays outside; in another folder it comes into the file."""
    weights = numpy_helper.from_array(random_of(64, 64), "w")
    path = models.save(tmp_path / "m.onnx", [N("MatMul", ["x", "w"], ["y"])], [V("x", [1, 64])], [V("y", [1, 64])],
                       [weights], opset=13)
    onnx.save(onnx.load(str(path)), str(path), save_as_external_data=True, location="m.data", size_threshold=0)
    (tmp_path / "other").mkdir()
    for to in (tmp_path / "beside.onnx", tmp_path / "other/m.onnx"):
        convert(sardonyx, path, 17, to)
        feeds = {"x": random_of(1, 64)}
        np.testing.assert_allclose(ours(sardonyx, to, feeds, tmp_path / "run")[0], reference(path, feeds)[0], rtol=1e-4,
                                   atol=1e-5)
    assert (tmp_path / "beside.onnx").stat().st_size < 1000 < (tmp_path / "other/m.onnx").stat().st_size
