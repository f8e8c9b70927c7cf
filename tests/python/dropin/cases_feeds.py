# SPDX-License-Identifier: Apache-2.0
"""Cases: values of every kind for inputs of every kind; dictionaries; runs of nodes that fail."""
import numpy as np
import onnx
from cases_run import vectorizer
from dropin_kit import (T, case, cases, classifier, fails, h, model, optional_in, optional_out, sequence_in,
                        unary, value)

ONES = np.ones(2, np.float32)


def sparse_in():
    """y = a @ b; a: sparse [3, 3]."""
    info = onnx.ValueInfoProto(name="a")
    info.type.sparse_tensor_type.elem_type = T.FLOAT
    for _ in range(2):
        info.type.sparse_tensor_type.shape.dim.add().dim_value = 3
    node = h.make_node("SparseToDenseMatMul", ["a", "b"], ["y"], domain="com.microsoft", name="n")
    graph = h.make_graph([node], "g", [info, value("b", T.FLOAT, [3, 3])], [value("y", T.FLOAT, [3, 3])])
    opsets = [h.make_opsetid("", 15), h.make_opsetid("com.microsoft", 1)]
    return h.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()


def optional_sequence_in():
    kind = h.make_optional_type_proto(h.make_sequence_type_proto(h.make_tensor_type_proto(T.FLOAT, None)))
    return model([h.make_node("OptionalHasElement", ["o"], ["has"])], [h.make_value_info("o", kind)],
                 [value("has", T.BOOL, [])], opset=18)


MODELS = {"tensor": (unary("Abs"), "x"), "sequence": (sequence_in(), "s"), "optional": (optional_in(), "o"),
          "map": (vectorizer(string_vocabulary=["a"]), "m"), "sparse": (sparse_in(), "a"),
          "optional_sequence": (optional_sequence_in(), "o")}


def made_by(kit, data, name, feed):
    feed = {key: kit.ort.OrtValue.ortvalue_from_numpy(array) for key, array in feed.items()}
    return kit.session(data).run_with_ort_values([name], feed)[0]


def sequence_of(kit, kind, array):
    data = model([h.make_node("SequenceConstruct", ["x"], ["s"])], [value("x", kind, [2])],
                 [h.make_tensor_sequence_value_info("s", kind, None)])
    return made_by(kit, data, "s", {"x": array})


def sparse_of(kit, dtype=np.float32, places=((0, 1), (2, 2)), shape=(3, 3)):
    tensor = kit.ort.SparseTensor.sparse_coo_from_numpy(
        np.array(shape, np.int64), np.array([2, 3], dtype), np.array(places, np.int64).ravel(),
        kit.ort.OrtDevice.make("cpu", 0))
    return kit.ort.OrtValue.ort_value_from_sparse_tensor(tensor)


VALUES = {"floats": lambda kit: kit.ort.OrtValue.ortvalue_from_numpy(ONES),
          "doubles": lambda kit: kit.ort.OrtValue.ortvalue_from_numpy(ONES.astype(np.float64)),
          "sequence": lambda kit: sequence_of(kit, T.FLOAT, ONES),
          "sequence_of_doubles": lambda kit: sequence_of(kit, T.DOUBLE, ONES.astype(np.float64)),
          "maps": lambda kit: made_by(kit, classifier([1, 2]), "probabilities", {"x": ONES.reshape(1, 2)}),
          "sparse": sparse_of, "sparse_doubles": lambda kit: sparse_of(kit, np.float64),
          "optional": lambda kit: made_by(kit, optional_out(), "o", {"x": ONES})}


@cases({f"{name}_to_{to}": (name, to) for name in VALUES for to in MODELS})
def feed(kit, pair):
    data, name = MODELS[pair[1]]
    feeds = {name: VALUES[pair[0]](kit)}
    if pair[1] == "sparse":
        feeds["b"] = kit.ort.OrtValue.ortvalue_from_numpy(np.arange(9, dtype=np.float32).reshape(3, 3))
    results = fails(lambda: [item.numpy() for item in kit.session(data).run_with_ort_values(None, feeds)])
    return results


@case
def feed_sparse_rows(kit):
    tensor = kit.ort.SparseTensor.sparse_csr_from_numpy(
        np.array([3, 3], np.int64), np.array([2, 3], np.float32), np.array([1, 2], np.int64),
        np.array([0, 1, 1, 2], np.int64), kit.ort.OrtDevice.make("cpu", 0))
    b = kit.ort.OrtValue.ortvalue_from_numpy(np.arange(9, dtype=np.float32).reshape(3, 3))
    feeds = {"a": kit.ort.OrtValue.ort_value_from_sparse_tensor(tensor), "b": b}
    return kit.session(sparse_in()).run_with_ort_values(None, feeds)[0].numpy()


@cases({"text_for_number": {1: "x"}, "float_key": {1.5: 2.0}, "int": {"a": 1}, "numpy": {"a": np.float32(1)},
        "numpy_key": {np.int64(1): 2.0}, "mixed_values": {"a": "b", "b": 1.0}, "empty": {},
        "mixed_keys": {1: 1.0, "b": 2.0}, "late_text": {"a": 1.0, "b": "z"}, "none": {"a": None},
        "bool": {"a": True}, "bytes_key": {b"a": 1.0}, "list": [{"a": 1.0}]})
def feed_dict(kit, given):
    return [fails(kit.session(vectorizer(**vocabulary)).run, None, {"m": given})
            for vocabulary in (dict(string_vocabulary=["a", "b"]), dict(int64_vocabulary=[1, 2]))]


@cases({"set": {"y"}, "bytes": [b"y"], "array": np.array(["y"]), "dict": {"y": 1}, "number": 3})
def outputs_as(kit, names):
    return kit.session(unary("Abs")).run(names, {"x": ONES})


def ones(*shape, dtype=np.float32):
    return np.ones(shape, dtype)


def ints(*items):
    return np.array(items, np.int64)


# Nodes whose inputs do not fit at run time: operator, inputs, outputs, attributes.
FAULTS = {
    "gemm_inner": ("Gemm", [ones(2, 3), ones(4, 5)]),
    "gemm_transposed": ("Gemm", [ones(2, 3), ones(5, 4)], 1, {"transB": 1}),
    "gemm_bias": ("Gemm", [ones(2, 3), ones(3, 5), ones(4)]),
    "matmul": ("MatMul", [ones(2, 3), ones(4, 5)]),
    "add": ("Add", [ones(2, 3), ones(2, 4)]),
    "split_sum": ("Split", [ones(6), ints(2, 3)], 2),
    "split_count": ("Split", [ones(6), ints(2, 2, 2)], 2),
    "split_even": ("Split", [ones(7)], 2),
    "concat": ("Concat", [ones(2, 3), ones(3, 3)], 1, {"axis": 1}),
    "squeeze": ("Squeeze", [ones(2, 3), ints(0)]),
    "unsqueeze_twice": ("Unsqueeze", [ones(2, 3), ints(0, 0)]),
    "slice_step": ("Slice", [ones(4), ints(0), ints(4), ints(0), ints(0)]),
    "slice_axis": ("Slice", [ones(4), ints(0), ints(4), ints(3)]),
    "slice_axes": ("Slice", [ones(4), ints(0, 0), ints(4, 4)]),
    "reshape": ("Reshape", [ones(2, 3), ints(4, -1)]),
    "gather": ("Gather", [ones(3, 2), ints(5)]),
    "gather_elements": ("GatherElements", [ones(3, 2), np.zeros((1, 5), np.int64)]),
    "gather_nd": ("GatherND", [ones(3, 2), np.array([[5, 0]])]),
    "gather_nd_rank": ("GatherND", [ones(3, 2), np.array([[0, 0, 0]])]),
    "scatter_nd": ("ScatterND", [ones(3, 2), np.array([[5]]), ones(1, 2)]),
    "expand": ("Expand", [ones(2, 3), ints(-1, 3)]),
    "tile": ("Tile", [ones(2, 3), ints(2, -1)]),
    "range": ("Range", [ones(), ones(), np.zeros((), np.float32)]),
    "topk": ("TopK", [ones(3), ints(-1)], 2),
    "conv_groups": ("Conv", [ones(1, 4, 5, 5), ones(3, 2, 3, 3)], 1, {"group": 2}),
    "conv_transpose": ("ConvTranspose", [ones(1, 3, 5, 5), ones(2, 4, 3, 3)]),
    "batch_norm": ("BatchNormalization", [ones(1, 3, 4, 4), ones(3), ones(3), ones(3), ones(2)]),
    "instance_norm": ("InstanceNormalization", [ones(1, 3, 4), ones(2), ones(3)]),
    "depth": ("DepthToSpace", [ones(1, 3, 2, 2)], 1, {"blocksize": 2}),
    "one_hot": ("OneHot", [ints(1, 2), np.array(3), ones(3)]),
    "lengths": ("ReverseSequence", [ones(3, 2), ints(1, 9)]),
}


@cases(FAULTS)
def node_fault(kit, row):
    op, arrays, outputs, attributes = (*row, *((1, {})[len(row) - 2:]))
    kinds = {np.dtype(np.float32): T.FLOAT, np.dtype(np.int64): T.INT64}
    names = [f"x{i}" for i in range(len(arrays))]
    node = h.make_node(op, names, [f"y{i}" for i in range(outputs)], name="n", **attributes)
    results = [onnx.ValueInfoProto(name=name) for name in node.output]
    inputs = [value(name, kinds[array.dtype], [f"{name}_{d}" for d in range(array.ndim)])
              for name, array in zip(names, arrays)]
    return kit.session(model([node], inputs, results)).run(None, dict(zip(names, arrays)))
