# SPDX-License-Identifier: Apache-2.0
"""Small models and test folders for the tests of the program."""
import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper, numpy_helper


def value(name, shape, dtype=T.FLOAT):
    return helper.make_tensor_value_info(name, dtype, shape)


def save(path, nodes, inputs, outputs, initializers=(), metadata=None, opset=17):
    graph = helper.make_graph(nodes, "test", inputs, outputs, list(initializers))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8,
                              producer_name="sardonyx-tests")
    for key, text in (metadata or {}).items():
        model.metadata_props.add(key=key, value=text)
    onnx.save(model, str(path))
    return path


def add_model(path):
    """y = a + b, both float[N,3]."""
    return save(path, [helper.make_node("Add", ["a", "b"], ["y"], name="sum")],
                [value("a", ["N", 3]), value("b", ["N", 3])], [value("y", ["N", 3])],
                metadata={"author": "tests"})


def gemm_model(path, rows=8, inner=64, columns=32):
    rng = np.random.default_rng(3)
    weight = numpy_helper.from_array(rng.standard_normal((inner, columns)).astype(np.float32), "w")
    return save(path, [helper.make_node("MatMul", ["x", "w"], ["h"], name="product"),
                       helper.make_node("Relu", ["h"], ["y"], name="cut")],
                [value("x", [rows, inner])], [value("y", [rows, columns])], [weight])


def text_model(path):
    """y = x, texts [N]."""
    return save(path, [helper.make_node("Identity", ["x"], ["y"])], [value("x", ["N"], T.STRING)],
                [value("y", ["N"], T.STRING)])


def write_pb(path, array, name=""):
    with open(path, "wb") as f:
        f.write(numpy_helper.from_array(np.asarray(array), name).SerializeToString())


def case(folder, inputs, outputs, make=add_model, sets=1):
    """A test folder; inputs and outputs: (name, array) in the order of their files."""
    folder.mkdir(parents=True)
    make(folder / "model.onnx")
    for s in range(sets):
        data = folder / f"test_data_set_{s}"
        data.mkdir()
        for i, (name, array) in enumerate(inputs):
            write_pb(data / f"input_{i}.pb", array, name)
        for i, (name, array) in enumerate(outputs):
            write_pb(data / f"output_{i}.pb", array, name)
    return folder
