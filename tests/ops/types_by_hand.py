# SPDX-License-Identifier: Apache-2.0
"""Rows of the schema that no single node of the suite can walk: optionals and empty sequences (made and
opened again by a second node), maps, what only an output has, and versions that are not like any later
one. case_of gives a Case for such a row, or None."""
import numpy as np
import onnx
from onnx import TensorProto, helper
from single_nodes import DTYPES, Case, number_of

F32 = np.float32
ROW = np.array([0, 1, 1], F32)
# Variables of outputs, and the variable of an input that fixes them: {operator: (output, input, from, to)}.
LINKED = {"ConcatFromSequence": ("T", "S", "tensor", "seq(tensor"), "SequenceAt": ("T", "S", "tensor", "seq(tensor"),
          "SequenceConstruct": ("S", "T", "seq(tensor", "tensor"), "SplitToSequence": ("S", "T", "seq(tensor", "tensor")}


def linked(schema, variable, kind):
    """(variable, type) of the input that says it."""
    output, given, before, after = LINKED.get(schema.name, ("", "", "", ""))
    if variable != output or not kind.startswith(before):
        return variable, kind
    return given, kind.replace("seq(", "").replace("))", ")") if after == "tensor" else f"seq({kind})"


def value_of(kind):
    """0, 1, 1 in a type; of a sequence: twice."""
    dtype = DTYPES[kind.split("tensor(")[1].rstrip(")")]
    array = ROW.astype(str).astype(object) if dtype.kind == "O" else ROW.astype(dtype)
    return [array, array] if "seq(" in kind else array


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs, outputs, **attributes)


def graph_of(name, nodes, inputs, outputs):
    """A graph of values without types."""
    return helper.make_graph(nodes, name, [onnx.ValueInfoProto(name=n) for n in inputs],
                             [onnx.ValueInfoProto(name=n) for n in outputs])


def through(row, opset, nodes, inputs, expected):
    """A Case of several nodes that ends in what is expected."""
    case = Case(row.schema.name, inputs, outputs=len(expected), domain=row.schema.domain, opset=opset,
                expected=expected, tolerance="exact", title="/".join(row.key()))
    case.nodes = nodes
    return case


def of_optional(row, opset):
    name, value = row.schema.name, value_of(row.kind) if row.kind != "tensor(bool)" or row.variable != "B" else ROW
    if name == "OptionalHasElement":
        nodes = [node(name, ["x0"], ["y0"])] if opset >= 18 else [node("Optional", ["x0"], ["o"]), node(name, ["o"], ["y0"])]
        return through(row, opset, nodes, [value], [np.array(True)])
    if name == "OptionalGetElement" and opset >= 18:
        return through(row, opset, [node(name, ["x0"], ["y0"])], [value], [value])
    return through(row, opset, [node("Optional", ["x0"], ["o"]), node("OptionalGetElement", ["o"], ["y0"])], [value],
                   [value])


def of_sequence(row, opset):
    value = value_of(row.kind)
    if row.schema.name == "SequenceEmpty":
        nodes = [node("SequenceEmpty", [], ["s"], dtype=number_of(value[0].dtype)),
                 node("SequenceInsert", ["s", "x0"], ["y0"])]
        return through(row, opset, nodes, [value[0]], [[value[0]]])
    body = graph_of("map", [node("Identity", ["e"], ["d"])], ["e", "a"], ["d"])  # SequenceMap, one more input
    return through(row, opset, [node("SequenceMap", ["x0", "x1"], ["y0"], body=body)], [[ROW, ROW], value], [[ROW, ROW]])


def of_control(row, opset):
    """Sequences that no operator takes go through a loop's body as they are."""
    value = value_of(row.kind)
    body = graph_of("loop", [node("Identity", ["c"], ["d"])], ["i", "c", "v"], ["d", "v"])
    count, go = np.array(2), np.array(True)
    loop = node("Loop", ["x0", "x1", "x2"], ["y0"], body=body)
    if row.schema.name == "Loop":
        return through(row, opset, [loop], [count, go, value], [value])
    branch = graph_of("branch", [loop], [], ["y0"])
    both = {"then_branch": branch, "else_branch": branch}
    return through(row, opset, [node("If", ["x1"], ["y0"], **both), node("Identity", ["x0"], ["y1"])],
                   [count, go, value], [value, count])


def of_map(row, opset):
    """CastMap and DictVectorizer, of maps that come from outside."""
    if row.schema.name == "CastMap":
        dtype = DTYPES[row.kind[7:-1]]
        made = np.array([[1.5, 0.0, 2.5]], F32)
        made = made.astype(dtype) if dtype.kind != "O" else None
        case = through(row, opset, None, [{0: F32(1.5), 2: F32(2.5)}], [made])
        case.attributes = {"cast_to": {"O": "TO_STRING", "f": "TO_FLOAT", "i": "TO_INT64"}[dtype.kind], "map_form": "SPARSE",
                           "max_map": 3}
        if made is None:
            case.inputs, case.expected = [{0: "a", 2: "b"}], [np.array([["a", "", "b"]], object)]
        return case
    dtype = DTYPES[row.kind[7:-1]]
    if dtype.kind == "O":
        case = through(row, opset, None, [{3: "p", 5: "q"}], [np.array([["", "p", "q"]], object)])
        case.attributes = {"int64_vocabulary": [1, 3, 5]}
    else:
        case = through(row, opset, None, [{"c": dtype.type(4), "a": dtype.type(2)}], [np.array([[2, 0, 4]], dtype)])
        case.attributes = {"string_vocabulary": ["a", "b", "c"]}
    return case


def of_gradient(row, opset):
    """d(x * x) / dx, and beside it an input of the type that the function reads through Cast."""
    dtype = DTYPES[row.kind[7:-1]]
    if row.variable == "T2" or row.kind in ("tensor(float)", "tensor(double)", "tensor(float16)"):
        x = np.array([1, 2, 3]).astype(dtype)
        case = through(row, opset, [node("Mul", ["x0", "x0"], ["z"]), node(
            "Gradient", ["x0"], ["y0"], domain=row.schema.domain, xs=["x0"], y="z")], [x], [2 * x])
        return case
    x, other = np.array([1, 2, 3], F32), value_of(row.kind)
    nodes = [node("Size", ["x1"], ["n"]), node("Cast", ["n"], ["f"], to=TensorProto.FLOAT), node("Mul", ["x0", "f"], ["m"]),
             node("Mul", ["m", "x0"], ["z"]),
             node("Gradient", ["x0", "x1"], ["y0"], domain=row.schema.domain, xs=["x0"], zs=["x1"], y="z")]
    return through(row, opset, nodes, [x, other], [6 * x])


SPECIAL = {"Optional": of_optional, "OptionalGetElement": of_optional, "OptionalHasElement": of_optional,
           "SequenceEmpty": of_sequence, "SequenceMap": of_sequence, "Loop": of_control, "If": of_control,
           "CastMap": of_map, "DictVectorizer": of_map, "Gradient": of_gradient}


def case_of(row, opset):
    maker = SPECIAL.get(row.schema.name)
    return maker(row, opset) if maker else None


def templates():
    """(domain, operator, attributes, inputs, outputs, version): version None: the newest that has the attributes;
    outputs None: the reference's."""
    x = np.arange(1, 25, dtype=F32).reshape(1, 2, 3, 4)
    twice = np.repeat(np.repeat(x, 2, 2), 2, 3)
    rng = np.random.default_rng(5)
    t, n, i, h = 3, 2, 2, 2
    rows = []
    for op, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1)):
        sizes = ((t, n, i), (1, gates * h, i), (1, gates * h, h), (1, 2 * gates * h))
        rows.append(("", op, {"hidden_size": h}, [*(rng.normal(size=s).astype(F32) for s in sizes),
                                                  np.full(n, t, np.int32)], None, None))
    m = np.arange(6, dtype=F32).reshape(2, 3)
    mean = np.array([1, 2], F32)
    normal = (x - mean.reshape(1, 2, 1, 1)) / np.sqrt(np.array([4, 9], F32).reshape(1, 2, 1, 1) + F32(1e-5))
    q = rng.integers(0, 9, (1, 1, 3, 3)).astype(np.uint8)
    scale, zero, texts = np.array(1, F32), np.array(0, np.uint8), np.array(["a", "b", "a"], object)
    two = {"classlabels_strings": ["u", "v"]}
    linear = {"coefficients": [1.0, 2.0, 3.0, -1.0, 0.0, 1.0], "intercepts": [0.5, 1.0]}
    trees = {"nodes_falsenodeids": [2, 0, 0], "nodes_truenodeids": [1, 0, 0], "nodes_featureids": [0, 0, 0],
             "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"], "nodes_nodeids": [0, 1, 2],
             "nodes_treeids": [0, 0, 0], "nodes_values": [1.5, 0.0, 0.0], "class_treeids": [0, 0, 0, 0],
             "class_nodeids": [1, 1, 2, 2], "class_ids": [0, 1, 0, 1], "class_weights": [1.0, 2.0, 5.0, 3.0]}
    support = {"kernel_type": "LINEAR", "kernel_params": [0.0, 0.0, 3.0], "coefficients": [0.5, -0.5],
               "support_vectors": [1.0, 2.0, 3.0, 0.0, 1.0, 0.5], "rho": [0.25], "vectors_per_class": [1, 1]}
    margin = m @ np.array([1, 2, 3], F32) * F32(0.5) - m @ np.array([0, 1, 0.5], F32) * F32(0.5) + F32(0.25)
    return [
        *rows,
        ("", "BatchNormalization", {"consumed_inputs": [0, 0, 0, 1, 1], "is_test": 1},
         [x, np.ones(2, F32), np.zeros(2, F32), mean, np.array([4, 9], F32)], [normal], 1),
        ("", "Dropout", {"ratio": 0.3}, [m], [m, np.zeros((2, 3), bool)], 10),
        ("", "Pad", {"paddings": [0, 1, 1, 0], "mode": "constant"}, [m], [np.pad(m, ((0, 1), (1, 0)))], 1),
        ("", "Resize", {"mode": "nearest"}, [x, np.array([1, 1, 2, 2], F32)], [twice], 10),
        ("", "Resize", {"mode": "nearest"}, [x, np.zeros(8, F32), np.array([1, 1, 2, 2], F32)], [twice], 11),
        ("", "Tile", {}, [m, np.array([2], F32), np.array([1], F32)], [np.tile(m, (1, 2))], 1),
        ("", "TopK", {"k": 2, "axis": -1}, [m], [m[:, :0:-1], np.array([[2, 1], [2, 1]])], 1),
        ("", "Upsample", {"height_scale": 2.0, "width_scale": 2.0, "mode": "nearest"}, [x], [twice], 1),
        ("", "QLinearConv", {}, [q, scale, zero, q[:, :, :2, :2] % 2, scale, zero, scale, zero, np.array([3], np.int32)],
         None, None),
        ("", "DFT", {"axis": 1}, [m.reshape(1, 6, 1), np.array(4)], None, 17),
        ("", "DFT", {}, [m.reshape(1, 6, 1), np.array(4), np.array(1)], None, 20),
        ("ai.onnx.ml", "LabelEncoder", {"classes_strings": ["a", "b"], "default_int64": 9}, [texts], [np.array([0, 1, 0])], 1),
        ("ai.onnx.ml", "LabelEncoder", {"classes_strings": ["a", "b"], "default_string": "z"}, [np.array([1, 0, 5])],
         [np.array(["b", "a", "z"], object)], 1),
        *[("ai.onnx.ml", "LabelEncoder", {"keys_int64s": [0, 1], "values_strings": ["a", "b"], "default_string": "z"},
           [np.array([1, 0, 5])], [np.array(["b", "a", "z"], object)], version) for version in (2, 4)],
        ("ai.onnx.ml", "LinearClassifier", {**linear, **two}, [m],
         [np.array(["u", "u"], object), np.stack([m @ np.array([1, 2, 3], F32) + F32(.5), m @ np.array([-1, 0, 1], F32) + 1], 1)], 1),
        *[("ai.onnx.ml", "TreeEnsembleClassifier", {**trees, **two}, [m],
           [np.array(["v", "u"], object), np.array([[1, 2], [5, 3]], F32)], version) for version in (1, 3)],
        ("ai.onnx.ml", "SVMClassifier", {**support, **two}, [m],
         [np.where(margin > 0, "v", "u").astype(object), np.stack([-margin, margin], 1)], 1)]
