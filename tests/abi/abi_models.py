# SPDX-License-Identifier: Apache-2.0
"""The tiny models that the clients of the ONNX Runtime ABI run: write_models(folder).

All numbers in them are small integers or halves, so that any order of summing gives the same bits.
"""
import numpy as np
from onnx import TensorProto, helper, numpy_helper

OPSET = 17
FLOAT, INT64, STRING = TensorProto.FLOAT, TensorProto.INT64, TensorProto.STRING
# What `types.onnx` passes through: one input and output of each.
PLAIN_TYPES = ("float", "double", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32",
               "uint64", "bool", "string", "float16")


def value(name, kind, shape):
    return helper.make_tensor_value_info(name, kind, shape)


def constant(name, array):
    return numpy_helper.from_array(array, name)


def model(nodes, inputs, outputs, constants=(), opset=OPSET, ir=8, domains=(), **more):
    graph = helper.make_graph(nodes, "g", inputs, outputs, list(constants))
    opsets = [helper.make_opsetid("", opset), *(helper.make_opsetid(*pair) for pair in domains)]
    made = helper.make_model(graph, opset_imports=opsets, ir_version=ir, producer_name="maker",
                             **more)
    return made


def linear():
    """y = x w + 1, metadata in every field."""
    w = np.arange(12, dtype=np.float32).reshape(4, 3) - 4
    made = model([helper.make_node("MatMul", ["x", "w"], ["p"], name="product"),
                  helper.make_node("Add", ["p", "b"], ["y"], name="sum")],
                 [value("x", FLOAT, ["N", 4])], [value("y", FLOAT, ["N", 3])],
                 [constant("w", w), constant("b", np.ones(3, np.float32))],
                 domain="org.example", doc_string="a linear map", model_version=7,
                 producer_version="3")
    made.graph.doc_string = "two nodes"
    helper.set_model_props(made, {"author": "someone", "empty": "", "names": "{0: 'a'}"})
    return made


def classify():
    """Gemm and Softmax: what ONNX Runtime fuses, and an output whose shape is seen late."""
    w = np.arange(12, dtype=np.float32).reshape(4, 3) - 4
    return model([helper.make_node("MatMul", ["x", "w"], ["p"]),
                  helper.make_node("Add", ["p", "b"], ["s"]),
                  helper.make_node("Softmax", ["s"], ["y"], axis=1)],
                 [value("x", FLOAT, ["N", 4])], [value("y", FLOAT, ["N", 3])],
                 [constant("w", w), constant("b", np.ones(3, np.float32))])


def weights_given():
    """An initializer that is an input too: a caller may override it."""
    return model([helper.make_node("Mul", ["x", "scale"], ["y"])],
                 [value("x", FLOAT, ["N"]), value("scale", FLOAT, [1])],
                 [value("y", FLOAT, ["N"])], [constant("scale", np.array([2], np.float32))])


def two_inputs():
    return model([helper.make_node("Concat", ["a", "b"], ["c"], axis=0, name="cat"),
                  helper.make_node("Shape", ["c"], ["s"])],
                 [value("a", FLOAT, ["A", "W"]), value("b", FLOAT, ["B", "W"])],
                 [value("c", FLOAT, ["C", "W"]), value("s", INT64, [2])])


def types():
    kinds = [getattr(TensorProto, name.upper()) for name in PLAIN_TYPES]
    return model([helper.make_node("Identity", [f"in_{name}"], [f"out_{name}"])
                  for name in PLAIN_TYPES],
                 [value(f"in_{name}", kind, ["N"]) for name, kind in zip(PLAIN_TYPES, kinds)],
                 [value(f"out_{name}", kind, ["N"]) for name, kind in zip(PLAIN_TYPES, kinds)])


def one_type(kind):
    """An operator of its own kind for a type; x and y of any length."""
    name = kind.upper()
    number = getattr(TensorProto, name)
    nodes = {"BOOL": [helper.make_node("Not", ["x"], ["y"])],
             "STRING": [helper.make_node("Concat", ["x", "tail"], ["y"], axis=0)]}
    dtype = helper.tensor_dtype_to_np_dtype(number)
    constants = [] if name == "BOOL" else [
        constant("tail", np.array(["end", ""], dtype=object)) if name == "STRING"
        else constant("tail", np.array([1], dtype))]
    out = ["M"] if name == "STRING" else ["N"]
    return model(nodes.get(name, [helper.make_node("Add", ["x", "tail"], ["y"])]),
                 [value("x", number, ["N"])], [value("y", number, out)], constants)


def scalar():
    return model([helper.make_node("Neg", ["x"], ["y"])], [value("x", FLOAT, [])],
                 [value("y", FLOAT, [])])


def zipmap(**keys):
    key = STRING if "classlabels_strings" in keys else INT64
    made = model([helper.make_node("Add", ["x", "one"], ["p"]),
                  helper.make_node("ZipMap", ["p"], ["z"], domain="ai.onnx.ml", **keys)],
                 [value("x", FLOAT, ["N", 3])], [], [constant("one", np.ones(1, np.float32))],
                 domains=[("ai.onnx.ml", 3)])
    kind = helper.make_sequence_type_proto(helper.make_map_type_proto(
        key, helper.make_tensor_type_proto(FLOAT, [])))
    made.graph.output.append(helper.make_value_info("z", kind))
    return made


def sequences():
    """Rows of x as a sequence, and the sequence that comes in, behind it its length."""
    made = model([helper.make_node("SplitToSequence", ["x"], ["rows"], axis=0, keepdims=1),
                  helper.make_node("SequenceLength", ["rows"], ["count"])],
                 [value("x", FLOAT, ["N", 2])], [])
    kind = helper.make_sequence_type_proto(helper.make_tensor_type_proto(FLOAT, [1, 2]))
    made.graph.output.append(helper.make_value_info("rows", kind))
    made.graph.output.append(value("count", INT64, []))
    return made


def sequence_in():
    kind = helper.make_sequence_type_proto(helper.make_tensor_type_proto(FLOAT, None))
    return model([helper.make_node("ConcatFromSequence", ["rows"], ["y"], axis=0)],
                 [helper.make_value_info("rows", kind)], [value("y", FLOAT, None)])


def gather():
    """An index outside of the data is found by the kernel."""
    return model([helper.make_node("Gather", ["data", "i"], ["y"], name="pick")],
                 [value("i", INT64, ["N"])], [value("y", FLOAT, ["N"])],
                 [constant("data", np.array([10, 20, 30], np.float32))])


def endless():
    """A loop of `count` turns, each of which adds 1."""
    body = helper.make_graph(
        [helper.make_node("Add", ["a", "one"], ["a_next"]),
         helper.make_node("Identity", ["go"], ["go_next"])],
        "body", [value("i", INT64, []), value("go", TensorProto.BOOL, []), value("a", FLOAT, [1])],
        [value("go_next", TensorProto.BOOL, []), value("a_next", FLOAT, [1])])
    return model([helper.make_node("Loop", ["count", "yes", "x"], ["y"], body=body)],
                 [value("count", INT64, []), value("x", FLOAT, [1])], [value("y", FLOAT, [1])],
                 [constant("yes", np.array(True)), constant("one", np.ones(1, np.float32))])


def bad_operator(domain=""):
    name = "Foo" if domain else "NoSuchOp"
    return model([helper.make_node(name, ["x"], ["y"], domain=domain)],
                 [value("x", FLOAT, ["N"])], [value("y", FLOAT, ["N"])],
                 domains=[(domain, 1)] if domain else ())


def plain(nodes, **more):
    return model(nodes, [value("x", FLOAT, ["N"])], [value("y", FLOAT, ["N"])], **more)


def cycle():
    return plain([helper.make_node("Add", ["x", "b"], ["a"]),
                  helper.make_node("Add", ["a", "x"], ["b"]),
                  helper.make_node("Identity", ["b"], ["y"])])


def bad_type():
    return model([helper.make_node("Not", ["x"], ["y"])], [value("x", FLOAT, ["N"])],
                 [value("y", TensorProto.BOOL, ["N"])])


def write_models(folder):
    """Writes all models below `folder`; those that are no models too."""
    relu = [helper.make_node("Relu", ["x"], ["y"])]
    made = {
        "linear": linear(), "classify": classify(), "weights_given": weights_given(),
        "two_inputs": two_inputs(), "types": types(), "scalar": scalar(),
        "float64": one_type("double"), "int64": one_type("int64"), "int32": one_type("int32"),
        "bool": one_type("bool"), "string": one_type("string"), "float16": one_type("float16"),
        "zipmap_string": zipmap(classlabels_strings=["a", "b", "c"]),
        "zipmap_int64": zipmap(classlabels_int64s=[10, 20, 30]),
        "sequence": sequences(), "sequence_in": sequence_in(), "gather": gather(),
        "endless": endless(),
        "badop": bad_operator(), "baddomain": bad_operator("my.dom"),
        "badopset": plain(relu, opset=99), "badir": plain(relu, ir=99),
        "badedge": plain([helper.make_node("Add", ["x", "nowhere"], ["y"])]),
        "badtype": bad_type(), "cycle": cycle(),
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, proto in made.items():
        (folder / f"{name}.onnx").write_bytes(proto.SerializeToString())
    whole = made["linear"].SerializeToString()
    (folder / "truncated.onnx").write_bytes(whole[:len(whole) // 2])
    (folder / "garbage.onnx").write_bytes(bytes(range(256)) * 4)
    (folder / "empty.onnx").write_bytes(b"")
    (folder / "directory").mkdir(exist_ok=True)
    return folder


