# SPDX-License-Identifier: Apache-2.0
"""What the cases of the drop-in share: small models, the list of cases, how a result reads.

A case is a function of one argument, the kit: kit.ort is the module `onnxruntime` under test, kit.dir
a folder to write to. What it returns, or the exception it raises, is written as text.
"""
import contextlib
import io
import re
import warnings
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper as h

CASES = {}
ANY = "<any>"
SURFACE = "names:"
WITH_OVERLOADS = re.compile("options_set_|run_options_set_|module_s")  # cases whose list is compared


def case(function):
    """Adds a case under the name of the function."""
    name = function.__name__
    assert name not in CASES, name
    CASES[name] = function
    return function


def cases(table):
    """Adds a case a row: {suffix: argument}; the function takes the kit and the argument."""
    def add(function):
        for suffix, argument in table.items():
            def run(kit, argument=argument):
                return function(kit, argument)
            run.__name__ = f"{function.__name__}_{suffix}"
            case(run)
        return function
    return add


def value(name, kind, shape):
    return h.make_tensor_value_info(name, kind, shape)


def model(nodes, inputs, outputs, initializers=(), opset=17, ir=8, name="g", **fields):
    """The bytes of a model; fields: metadata of ModelProto."""
    graph = h.make_graph(nodes, name, inputs, outputs, list(initializers))
    made = h.make_model(graph, opset_imports=[h.make_opsetid("", opset)], ir_version=ir)
    for key, content in fields.pop("props", {}).items():
        entry = made.metadata_props.add()
        entry.key, entry.value = key, content
    for field, content in fields.items():
        setattr(made, field, content)
    return made.SerializeToString()


def matmul(**fields):
    """y = x @ w, both inputs; x: [N, 4], w: [4, 3]."""
    return model([h.make_node("MatMul", ["x", "w"], ["y"], name="mm")],
                 [value("x", T.FLOAT, ["N", 4]), value("w", T.FLOAT, [4, 3])],
                 [value("y", T.FLOAT, ["N", 3])], **fields)


def unary(op, kind=T.FLOAT, shape=("N",), out=None, opset=17, ir=8, **attributes):
    """y = op(x)."""
    return model([h.make_node(op, ["x"], ["y"], name="n", **attributes)],
                 [value("x", kind, list(shape))], [value("y", out or kind, list(shape))],
                 opset=opset, ir=ir)


def add_one():
    """y = x + 1, z = y * 2; x: [N, 2]."""
    return model([h.make_node("Add", ["x", "one"], ["y"], name="add"),
                  h.make_node("Mul", ["y", "two"], ["z"], name="mul")],
                 [value("x", T.FLOAT, ["N", 2])],
                 [value("y", T.FLOAT, ["N", 2]), value("z", T.FLOAT, ["N", 2])],
                 [h.make_tensor("one", T.FLOAT, [], [1.0]), h.make_tensor("two", T.FLOAT, [], [2.0])])


def overridable():
    """y = x + b; b is an initializer and an input: may be fed."""
    return model([h.make_node("Add", ["x", "b"], ["y"])],
                 [value("x", T.FLOAT, [2]), value("b", T.FLOAT, [2])], [value("y", T.FLOAT, [2])],
                 [h.make_tensor("b", T.FLOAT, [2], [10.0, 20.0])])


def looped():
    """y = x * 2 ten million times over one element: long enough to be stopped."""
    body = h.make_graph([h.make_node("Identity", ["c"], ["d"]), h.make_node("Add", ["v", "v"], ["w"])],
                        "body", [value("i", T.INT64, []), value("c", T.BOOL, []),
                                 value("v", T.FLOAT, [1])],
                        [value("d", T.BOOL, []), value("w", T.FLOAT, [1])])
    return model([h.make_node("Loop", ["n", "", "x"], ["y"], body=body)],
                 [value("x", T.FLOAT, [1]), value("n", T.INT64, [])], [value("y", T.FLOAT, [1])])


def sequence_out():
    """s = a sequence of x and x."""
    return model([h.make_node("SequenceConstruct", ["x", "x"], ["s"])], [value("x", T.FLOAT, [2])],
                 [h.make_tensor_sequence_value_info("s", T.FLOAT, None)])


def sequence_in():
    """y = the element 0 of s, n = its length."""
    return model([h.make_node("SequenceAt", ["s", "zero"], ["y"]),
                  h.make_node("SequenceLength", ["s"], ["n"])],
                 [h.make_tensor_sequence_value_info("s", T.FLOAT, ["k"])],
                 [value("y", T.FLOAT, None), value("n", T.INT64, [])],
                 [h.make_tensor("zero", T.INT64, [], [0])])


def optional_in():
    """Whether o holds something, and what."""
    kind = h.make_optional_type_proto(h.make_tensor_type_proto(T.FLOAT, [2]))
    return model([h.make_node("OptionalHasElement", ["o"], ["has"])],
                 [h.make_value_info("o", kind)], [value("has", T.BOOL, [])], opset=18)


def optional_out():
    kind = h.make_optional_type_proto(h.make_tensor_type_proto(T.FLOAT, [2]))
    return model([h.make_node("Optional", ["x"], ["o"])], [value("x", T.FLOAT, [2])],
                 [h.make_value_info("o", kind)], opset=18)


def classifier(keys):
    """A linear classifier with ZipMap: label and a sequence of maps; keys: ints or strings."""
    labels = {"classlabels_ints": keys} if isinstance(keys[0], int) else {"classlabels_strings": keys}
    zipped = {key.replace("classlabels_ints", "classlabels_int64s"): item
              for key, item in labels.items()}
    kind = T.INT64 if isinstance(keys[0], int) else T.STRING
    nodes = [h.make_node("LinearClassifier", ["x"], ["label", "p"], domain="ai.onnx.ml", multi_class=1,
                         post_transform="NONE", coefficients=[1.0, 0.0, 0.0, 1.0],
                         intercepts=[0.0, 0.5], **labels),
             h.make_node("ZipMap", ["p"], ["probabilities"], domain="ai.onnx.ml", **zipped)]
    maps = onnx.TypeProto()
    maps.sequence_type.elem_type.map_type.key_type = kind
    maps.sequence_type.elem_type.map_type.value_type.tensor_type.elem_type = T.FLOAT
    graph = h.make_graph(nodes, "g", [value("x", T.FLOAT, [None, 2])],
                         [value("label", kind, [None]), h.make_value_info("probabilities", maps)])
    return h.make_model(graph, opset_imports=[h.make_opsetid("", 15), h.make_opsetid("ai.onnx.ml", 1)],
                        ir_version=8).SerializeToString()


def show(item):
    """A value as text that does not depend on addresses."""
    if isinstance(item, np.ndarray):
        return f"array({item.dtype.str if item.dtype.kind != 'O' else 'object'}, {list(item.shape)}, " \
               f"{item.tolist()!r})"
    if isinstance(item, np.generic):
        return f"{item.dtype.name}({item.item()!r})"
    if isinstance(item, tuple):
        return "(" + ", ".join(map(show, item)) + ("," if len(item) == 1 else "") + ")"
    if isinstance(item, list):
        return "[" + ", ".join(map(show, item)) + "]"
    if isinstance(item, dict):
        return "{" + ", ".join(f"{show(key)}: {show(inner)}" for key, inner in item.items()) + "}"
    if isinstance(item, Path):
        return f"Path({str(item)!r})"
    return repr(item)


def fails(function, *arguments, **named):
    """The exception of a call as text, or what it gives.

    ANY stands for what no other library says alike: lines of its sources, texts of a TypeError."""
    try:
        item = function(*arguments, **named)
        return item if isinstance(item, str) and item.startswith(SURFACE) else show(item)
    except Exception as error:  # every kind is of interest
        text = re.sub(r"(\S+/)?\w+\.(cc|h):\d+ .*", ANY, str(error), flags=re.S)
        if isinstance(error, TypeError) and not Kit.overloads and "Unable to load" not in text:
            text = ANY
        return f"{type(error).__module__}.{type(error).__qualname__}: {text}"


def surface(names):
    """Public names, a line each; the drop-in may have more (SURFACE)."""
    return SURFACE + "\n" + "\n".join(sorted(name for name in names if not name.startswith("_")))


class Kit:
    """What a case works with."""

    overloads = False

    def __init__(self, ort, folder):
        self.ort, self.dir = ort, Path(folder)

    def session(self, data, *arguments, **named):
        named.setdefault("providers", ["CPUExecutionProvider"])
        return self.ort.InferenceSession(data, *arguments, **named)

    def write(self, name, data):
        path = self.dir / name
        path.write_bytes(data)
        return path


def normalise(text, folder):
    """Takes out what differs between two runs of one module, and the provider that is Azure's service."""
    text = text.replace(str(folder), "DIR").replace("AzureExecutionProvider, ", "")
    return re.sub(r"0x[0-9a-f]{6,}", "0xADDRESS", text)


def run_case(name, ort, folder):
    """The transcript of one case: its result, then warnings and what it printed."""
    folder = Path(folder) / name
    folder.mkdir(parents=True, exist_ok=True)
    out, err = io.StringIO(), io.StringIO()
    Kit.overloads = bool(WITH_OVERLOADS.match(name))
    with warnings.catch_warnings(record=True) as caught, contextlib.redirect_stdout(out), \
            contextlib.redirect_stderr(err):
        warnings.simplefilter("always")
        text = fails(CASES[name], Kit(ort, folder))
    lines = [text]
    lines += [f"warning {item.category.__name__}: {item.message}" for item in caught
              if item.category is not ResourceWarning]
    lines += [f"out: {line}" for line in out.getvalue().splitlines()]
    lines += [f"err: {line}" for line in err.getvalue().splitlines()]
    return normalise("\n".join(lines), folder)
