# SPDX-License-Identifier: Apache-2.0
"""The tiny models of the tests of the ABI's families: write_models(folder)."""
import numpy as np
from onnx import TensorProto, helper, numpy_helper

FLOAT, INT64, STRING, BOOL = (TensorProto.FLOAT, TensorProto.INT64, TensorProto.STRING,
                              TensorProto.BOOL)


def tensor(name, shape, kind=FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def model(nodes, inputs, outputs, constants=(), opset=18, domains=()):
    graph = helper.make_graph(nodes, "g", inputs, outputs, list(constants))
    opsets = [helper.make_opsetid("", opset), *(helper.make_opsetid(*pair) for pair in domains)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9, producer_name="tests")


def add():
    """y = x + 1, x of rows of 2."""
    return model([helper.make_node("Add", ["x", "one"], ["y"], name="sum")],
                 [tensor("x", ["N", 2])], [tensor("y", ["N", 2])],
                 [numpy_helper.from_array(np.ones(2, np.float32), "one")])


def external():
    """y = x + w, w in the file weights.bin."""
    made = model([helper.make_node("Add", ["x", "w"], ["y"])],
                 [tensor("x", ["N", 2])], [tensor("y", ["N", 2])],
                 [numpy_helper.from_array(np.zeros(2, np.float32), "w")])
    w = made.graph.initializer[0]
    w.ClearField("raw_data")
    w.data_location = TensorProto.EXTERNAL
    for key, text in (("location", "weights.bin"), ("offset", "0"), ("length", "8")):
        w.external_data.add(key=key, value=text)
    return made


def two_outputs():
    """sum = a + b and product = a * b, of rows of 3."""
    return model([helper.make_node("Add", ["a", "b"], ["sum"]),
                  helper.make_node("Mul", ["a", "b"], ["product"])],
                 [tensor("a", ["N", 3]), tensor("b", ["N", 3])],
                 [tensor("sum", ["N", 3]), tensor("product", ["N", 3])])


def optional():
    """full: an optional of x; empty: one without a value."""
    kind = helper.make_tensor_type_proto(FLOAT, ["N"])
    made = model([helper.make_node("Optional", ["x"], ["full"]),
                  helper.make_node("Optional", [], ["empty"], type=kind)],
                 [tensor("x", ["N"])], [])
    for name in ("full", "empty"):
        made.graph.output.append(helper.make_value_info(name, helper.make_optional_type_proto(kind)))
    return made


def custom(op, inputs, outputs, **attributes):
    """One node of domain my.ops."""
    node = helper.make_node(op, [value.name for value in inputs], [value.name for value in outputs],
                            name=f"{op.lower()}_node", domain="my.ops", **attributes)
    return model([node], inputs, outputs, domains=[("my.ops", 1)])


SCALE = {"factor": 2.0, "offset": 3, "mode": "fast", "floats": [0.5, 1.5], "ints": [1, -2, 3],
         "texts": ["one", "two"],
         "table": numpy_helper.from_array(np.array([7, 8], np.float32), "table")}


def custom_models():
    x, y = tensor("x", ["N", 2]), tensor("y", None)
    line, line_out = tensor("x", ["N"]), tensor("y", ["N"])
    rows = [tensor(name, ["N", 2]) for name in "abc"]
    return {
        "scale": custom("Scale", [x], [y], **SCALE),
        "scale_bias": custom("Scale", [x, tensor("bias", ["N", 2])], [y], **SCALE),
        "scale_of_ints": custom("Scale", [tensor("x", ["N", 2], INT64)], [y], **SCALE),
        "join": custom("Join", rows, [tensor("y", None), tensor("count", None, INT64)]),
        "join_one": custom("Join", [x], [y]),
        "join_no_count": model(
            [helper.make_node("Neg", ["x"], ["n"]),
             helper.make_node("Join", ["x", "n", "x"], ["y"], domain="my.ops")],
            [x], [y], domains=[("my.ops", 1)]),
        "any": custom("Any", [tensor("x", ["N"], INT64)], [tensor("y", ["N"], INT64)]),
        "shout": custom("Shout", [tensor("x", ["N"], STRING)], [tensor("y", ["N"], STRING)]),
        "fails": custom("Fails", [line], [line_out]),
        "fails_early": custom("Fails", [line], [line_out], early=1),
        "composed": custom("Composed", [line], [line_out]),
    }


def write_models(folder):
    folder.mkdir(parents=True, exist_ok=True)
    made = {"add": add(), "two_outputs": two_outputs(), "optional": optional(),
            "external": external(), **custom_models()}
    for name, proto in made.items():
        (folder / f"{name}.onnx").write_bytes(proto.SerializeToString())
    return folder
