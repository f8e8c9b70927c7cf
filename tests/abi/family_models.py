# SPDX-License-Identifier: Apache-2.0
"""The tiny models of the tests of the ABI's families: write_models(folder)."""
import numpy as np
import onnx
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


def two_outputs():
    """sum = a + b and product = a * b, of rows of 3."""
    return model([helper.make_node("Add", ["a", "b"], ["sum"]),
                  helper.make_node("Mul", ["a", "b"], ["product"])],
                 [tensor("a", ["N", 3]), tensor("b", ["N", 3])],
                 [tensor("sum", ["N", 3]), tensor("product", ["N", 3])])


def write_models(folder):
    folder.mkdir(parents=True, exist_ok=True)
    for make in (add, two_outputs):
        onnx.save(make(), str(folder / f"{make.__name__}.onnx"))
    return folder
