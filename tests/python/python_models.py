# SPDX-License-Identifier: Apache-2.0
"""Small models that the tests of the Python package run, as bytes."""
from onnx import TensorProto, helper

FLOAT = TensorProto.FLOAT


def make(nodes, inputs, outputs, opset=21, metadata=None, **graph):
    """A model of one graph."""
    model = helper.make_model(helper.make_graph(nodes, "g", inputs, outputs, **graph),
                              opset_imports=[helper.make_opsetid("", opset)])
    model.ir_version = 10
    if metadata:
        helper.set_model_props(model, metadata)
    return model.SerializeToString()


def value(name, dtype=FLOAT, shape=("N",)):
    """A tensor's declaration."""
    return helper.make_tensor_value_info(name, dtype, shape)


def identity(dtype=FLOAT, shape=("N",)):
    """x -> y"""
    return make([helper.make_node("Identity", ["x"], ["y"])], [value("x", dtype, shape)],
                [value("y", dtype, shape)])


def matmul():
    """x [N, 4] and w [4, 3] -> y [N, 3]; with metadata."""
    return make([helper.make_node("MatMul", ["x", "w"], ["y"])],
                [value("x", shape=("N", 4)), value("w", shape=(4, 3))], [value("y", shape=("N", 3))],
                metadata={"names": "{0: 'a'}", "k": "v"})


def overridable():
    """x + b, where b has an initializer and is an input too."""
    return make([helper.make_node("Add", ["x", "b"], ["y"])], [value("x"), value("b", shape=(1,))],
                [value("y")], initializer=[helper.make_tensor("b", FLOAT, [1], [10.0])])


def normalised():
    """Conv and BatchNormalization, which become one Conv of weights 2, 4: x [1, 2, 2, 2] -> y [1, 2, 2, 2]"""
    shape = (1, 2, 2, 2)
    nodes = [helper.make_node("Conv", ["x", "w"], ["c"]),
             helper.make_node("BatchNormalization", list("cgzzo"), ["y"], epsilon=0.0)]
    values = {"w": ([2, 2, 1, 1], [1, 0, 0, 1]), "g": ([2], [2, 4]), "z": ([2], [0, 0]), "o": ([2], [1, 1])}
    return make(nodes, [value("x", shape=shape)], [value("y", shape=shape)],
                initializer=[helper.make_tensor(n, FLOAT, *v) for n, v in values.items()])


def sequence_type(dtype=FLOAT):
    """seq(tensor(float))"""
    return helper.make_sequence_type_proto(helper.make_tensor_type_proto(dtype, None))


def to_sequence():
    """x -> s, a sequence of x twice"""
    return make([helper.make_node("SequenceConstruct", ["x", "x"], ["s"])], [value("x")],
                [helper.make_value_info("s", sequence_type())])


def from_sequence():
    """s -> y, its items joined"""
    return make([helper.make_node("ConcatFromSequence", ["s"], ["y"], axis=0)],
                [helper.make_value_info("s", sequence_type())], [value("y")])


def has_element():
    """o, an optional -> y, a bool"""
    optional = helper.make_optional_type_proto(helper.make_tensor_type_proto(FLOAT, ["N"]))
    return make([helper.make_node("OptionalHasElement", ["o"], ["y"])],
                [helper.make_value_info("o", optional)], [value("y", TensorProto.BOOL, [])], opset=18)


def concat():
    """a and b joined along axis 0: fails in the node when their rows differ"""
    return make([helper.make_node("Concat", ["a", "b"], ["y"], name="cat", axis=0)],
                [value("a", shape=("N", "M")), value("b", shape=("K", "L"))],
                [value("y", shape=("P", "Q"))])


def slow(steps=200, size=400):
    """x [size, size] multiplied by itself many times"""
    nodes = [helper.make_node("MatMul", ["x" if i == 0 else f"t{i}", "x"],
                              ["y" if i == steps - 1 else f"t{i + 1}"]) for i in range(steps)]
    return make(nodes, [value("x", shape=(size, size))], [value("y", shape=(size, size))])
