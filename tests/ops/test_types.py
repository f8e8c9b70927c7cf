# SPDX-License-Identifier: Apache-2.0
"""Every row of the schema with every type that it allows for each of its type variables: a node made
from a case of the standard's suite, its inputs cast. What does not run, or gives something else, must
be in types_open.tsv with its reason, and nothing else may be there.

Expected values are the reference evaluator's; where that fails, those of the case's own types rounded;
where that fails too, or values are random, only shapes and types are compared (the summary counts
these). The newest row of each operator, and among the slow tests all of them: then SDX_TYPES_WRITE=1 writes the
table anew; SDX_TYPES_KEEP: a folder for the cases that fail."""
import collections
import os
import re
from pathlib import Path

import pytest

np = pytest.importorskip("numpy")
onnx = pytest.importorskip("onnx")
ml_dtypes = pytest.importorskip("ml_dtypes")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402
import types_by_hand  # noqa: E402
from contrib_cases import OnnxRuntime  # noqa: E402
from single_nodes import DTYPES, NAMES, Case, Reference, number_of, run_cases, to_tensor, tolerance_of  # noqa: E402
from types_by_hand import graph_of  # noqa: E402

HERE = Path(__file__).resolve().parent
OPEN = HERE / "types_open.tsv"
HEAD = "# operator\tsince\tvariable\ttype\treason\n"
TURNS = 16         # cases tried for a row
MOST = 60_000      # elements of all inputs of a template
TENSOR = re.compile(r"(seq|optional)?\(?(optional\(seq\()?tensor\((\w+)\)")
# Attributes that name the type of an output.
TYPE_ATTRIBUTES = ("to", "dtype", "output_dtype", "output_datatype", "stash_type")
RANDOM = {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Bernoulli",
          "Multinomial", "Dropout"}
# The reference gives newer versions' meaning: padding is never counted before 7, training begins with an
# attribute of version 14, pixels have no halves before 16.
# Text where it pads with 0 or calculates, and float8 that it makes integers, have its types and shapes only.
WRONG_TEXT = {"CastLike", "CenterCropPad", "OneHot", "Resize", "Trilu"}
STEPS = {"GridSample"}  # it rounds to integers after each axis: the f32 result is rounded instead
WRONG = {("AveragePool", 1), ("BatchNormalization", 9), ("RoiAlign", 10), ("Dropout", 10)}
BY_HAND = {"MaxRoiPool", "GlobalLpPool", "Resize", "Upsample", "BatchNormalization", "Pad", "Tile", "TopK", "Dropout",
           "LabelEncoder", "LinearClassifier", "CategoryMapper", "Col2Im"}
CONTROL = {"If", "Loop", "Scan", "SequenceMap"}  # their graphs hand on what they get
NONZERO = {"Div", "Mod", "Pow", "Reciprocal"}


class Template:
    """A node of the suite with the values of its inputs and outputs."""

    def __init__(self, node, opset, inputs, outputs, by_hand=False):
        self.by_hand = by_hand  # the outputs hold for every type
        self.op, self.domain, self.opset = node.op_type, node.domain, opset
        self.attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        self.inputs, self.outputs = inputs, outputs
        self.empty = any(np.size(v) == 0 for v in inputs if v is not None and not isinstance(v, list))
        self.size = sum(np.asarray(v).size for v in inputs if v is not None and not isinstance(v, list))


def read_value(path, info):
    data = path.read_bytes()
    kind = info.type.WhichOneof("value")
    if kind == "sequence_type":
        return numpy_helper.to_list(onnx.SequenceProto.FromString(data))
    if kind != "tensor_type":
        raise ValueError(kind)
    return numpy_helper.to_array(TensorProto.FromString(data))


def read_template(folder):
    """A Template, or None: not one node, or values of other kinds."""
    model = onnx.load(folder / "model.onnx")
    graph = model.graph
    if len(graph.node) != 1 or not (folder / "test_data_set_0/output_0.pb").is_file():
        return None
    node = graph.node[0]
    if any(a.type in (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS) for a in node.attribute):
        return None
    data = folder / "test_data_set_0"
    values = {t.name: numpy_helper.to_array(t) for t in graph.initializer}
    try:
        for i, info in enumerate([v for v in graph.input if v.name not in values]):
            values[info.name] = read_value(data / f"input_{i}.pb", info)
        made = {info.name: read_value(data / f"output_{i}.pb", info)
                for i, info in enumerate(graph.output)}
    except ValueError:
        return None
    inputs = [values.get(name) if name else None for name in node.input]
    if list(node.output) != list(made):
        return None
    version = next((o.version for o in model.opset_import if o.domain == node.domain), 1)
    return Template(node, version, inputs, list(made.values()))


def control_templates():
    """Graphs that hand on what they get, for any type."""
    def same(a, b):
        return helper.make_node("Identity", [a], [b])
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    loop = graph_of("loop", [same("c", "d"), same("v", "w"), same("v", "s")], ["i", "c", "v"], ["d", "w", "s"])
    plain = graph_of("loop", [same("c", "d"), same("v", "w")], ["i", "c", "v"], ["d", "w"])
    scan = graph_of("scan", [same("v", "w"), same("e", "s")], ["v", "e"], ["w", "s"])
    twice = graph_of("map", [same("e", "s")], ["e"], ["s"])
    outer = graph_of("branch", [same("outer", "r")], [], ["r"])
    count, go = np.array(2, np.int64), np.array(True)
    return [("", "Loop", {"body": loop}, [count, go, x], [x, np.stack([x, x])]),
            ("", "Loop", {"body": plain}, [count, go, [x, x]], [[x, x]]),
            ("", "Scan", {"body": scan, "num_scan_inputs": 1}, [x[0], x], [x[0], x]),
            ("", "If", {"then_branch": outer, "else_branch": outer}, [go], [x]),
            ("", "SequenceMap", {"body": twice}, [[x, x[:1]]], [[x, x[:1]]])]


def hand_templates():
    """Operators that the suite does not have as one node, or not for all types:
    (domain, operator, attributes, inputs, outputs); outputs None: the reference's."""
    x = np.arange(1, 25, dtype=np.float32).reshape(1, 2, 3, 4)
    m, at = np.arange(6, dtype=np.float32).reshape(2, 3), np.array(1, np.int64)
    rois = np.array([[0, 0, 0, 2, 2]], np.float32)
    tensors = {name: helper.make_tensor("k", NAMES[name.upper()], [2], [1, 2])
               for name in ("int16", "int32", "double", "float", "int64")}
    random = [("", op, attributes, inputs, [np.zeros((2, 3), np.float32)]) for op, attributes, inputs in (
        ("RandomNormalLike", {}, [m]), ("RandomUniformLike", {}, [m]),
        ("RandomNormal", {"shape": [2, 3]}, []), ("RandomUniform", {"shape": [2, 3]}, []))]
    trees = {"nodes_falsenodeids": [2, 0, 0], "nodes_truenodeids": [1, 0, 0], "nodes_featureids": [0, 0, 0],
             "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"], "nodes_nodeids": [0, 1, 2],
             "nodes_treeids": [0, 0, 0], "nodes_values": [1.5, 0.0, 0.0]}
    leaves = {"treeids": [0, 0], "nodeids": [1, 2], "ids": [0, 1], "weights": [1.0, 2.0]}
    support = {"kernel_type": "LINEAR", "kernel_params": [0.0, 0.0, 3.0], "coefficients": [0.5, -0.5],
               "support_vectors": [1.0, 2.0, 3.0, 0.0, 1.0, 0.5], "rho": [0.25]}
    ml = [
        ("TreeEnsembleRegressor", {**trees, "n_targets": 2, **{f"target_{k}": v for k, v in leaves.items()}},
         [m], None),
        ("TreeEnsembleClassifier", {**trees, "classlabels_int64s": [0, 1],
                                    **{f"class_{k}": v for k, v in leaves.items()}}, [m],
         [np.zeros(2, np.int64), np.zeros((2, 2), np.float32)]),
        ("LinearRegressor", {"coefficients": [1.0, 2.0, 3.0], "intercepts": [0.5]}, [m], None),
        ("LinearClassifier", {"coefficients": [1.0, 2.0, 3.0, -1.0, 0.0, 1.0], "intercepts": [0.5, 1.0],
                              "classlabels_ints": [0, 1]}, [m], None),
        ("SVMRegressor", {**support, "n_supports": 2}, [m], [np.zeros((2, 1), np.float32)]),
        ("SVMClassifier", {**support, "classlabels_ints": [0, 1], "vectors_per_class": [1, 1]}, [m],
         [np.zeros(2, np.int64), np.zeros((2, 2), np.float32)]),
        ("OneHotEncoder", {"cats_int64s": [0, 1, 2]}, [m[0]], None),
        ("OneHotEncoder", {"cats_strings": ["0", "1.0"]}, [np.array(["1.0", "a"], object)], None),
        ("FeatureVectorizer", {"inputdimensions": [3]}, [m], None),
        ("Imputer", {"imputed_value_floats": [9.0], "replaced_value_float": 1.0}, [m], None),
        ("Imputer", {"imputed_value_int64s": [9], "replaced_value_int64": 1}, [m.astype(np.int64)], None),
        ("Normalizer", {"norm": "L2"}, [m + 1], None),
        ("Scaler", {"offset": [1.0], "scale": [2.0]}, [m], None),
        ("CategoryMapper", {"cats_int64s": [0, 1], "cats_strings": ["a", "b"]},
         [np.array(["a", "b", "c"], object)], [np.array([0, 1, -1])]),
        ("CategoryMapper", {"cats_int64s": [0, 1], "cats_strings": ["a", "b"]},
         [np.array([0, 1])], [np.array(["a", "b"], object)]),
        ("LabelEncoder", {"keys_floats": [0.0, 1.0], "values_floats": [5.0, 6.0], "default_float": 7.0}, [m], None),
        ("LabelEncoder", {"keys_int64s": [0, 1], "values_int64s": [5, 6], "default_int64": 7}, [m.astype(np.int64)], None),
        *[("LabelEncoder", {"keys_tensor": t, "values_tensor": t,
                            "default_tensor": helper.make_tensor("d", t.data_type, [1], [0])},
           [np.clip(m, 1, 3).astype(DTYPES[name])], [np.array([[1, 1, 2], [0, 0, 0]], DTYPES[name])]) for name, t in tensors.items()]]
    words = np.array(["a", "b", "a"], object)
    return [
        *control_templates(), *random, *[("ai.onnx.ml", *row) for row in ml],
        ("", "Multinomial", {"sample_size": 4}, [m], [np.zeros((2, 4), np.int32)]),
        ("", "GlobalLpPool", {"p": 2}, [x], [np.sqrt((x ** 2).sum((2, 3), keepdims=True))]),
        ("", "GlobalLpPool", {"p": 2.0}, [x], [np.sqrt((x ** 2).sum((2, 3), keepdims=True))]),
        ("", "Col2Im", {"strides": [2, 2]},  # no two meet at a pixel
         [np.arange(1, 17, dtype=np.float32).reshape(1, 4, 4), np.array([4, 4]), np.array([2, 2])], None),
        ("", "MaxRoiPool", {"pooled_shape": [1, 1]}, [x, rois], [x[:, :, 2:3, 2:3]]),
        ("", "MaxRoiPool", {"pooled_shape": [7, 1]},  # 7 bins of 29 / 7 in f32 end with the region, in f64 behind it
         [np.arange(40, dtype=np.float32).reshape(1, 1, 40, 1), np.array([[0, 0, 0, 0, 28]], np.float32)],
         [np.array([4, 8, 12, 16, 20, 24, 28], np.float32).reshape(1, 1, 7, 1)]),
        ("", "SequenceAt", {}, [[m, m + 1], at], None), ("", "SequenceErase", {}, [[m, m + 1], at], None),
        ("", "SequenceLength", {}, [[m, m + 1]], None), ("", "SequenceConstruct", {}, [m, m + 1], None),
        ("", "ConcatFromSequence", {"axis": 0}, [[m, m + 1]], None),
        ("", "TfIdfVectorizer", {"mode": "TF", "min_gram_length": 1, "max_gram_length": 1, "max_skip_count": 0,
                                 "ngram_counts": [0], "ngram_indexes": [0, 1], "pool_strings": ["a", "b"]},
         [words], [np.array([2, 1], np.float32)])]


def read_templates(suite):
    templates = collections.defaultdict(list)
    newest = {domain: max(s.since_version for s in onnx.defs.get_all_schemas() if s.domain == domain)
              for domain in ("", "ai.onnx.ml")}
    by_hand = [(*row, None) for row in hand_templates()] + types_by_hand.templates()
    for domain, op, attributes, inputs, outputs, version in by_hand:
        count = 1 if outputs is None else len(outputs)
        node = helper.make_node(op, [f"x{i}" for i in range(len(inputs))], [f"y{i}" for i in range(count)],
                                domain=domain, **attributes)
        history = [s for s in onnx.defs.get_all_schemas_with_history()
                   if s.domain == domain and s.name == op and all(a in s.attributes for a in attributes)]
        version = version or max((s.since_version for s in history if not s.deprecated), default=newest[domain])
        if outputs is None:
            case = Case(op, inputs, attributes, domain=domain, opset=version,
                        outputs=2 if op.endswith("Classifier") or op in ("LSTM", "GRU", "RNN") else 1)
            why = case.solve(Reference(10))
            if why is not None:
                raise ValueError(f"{op}: {why}")
            outputs = case.expected
        templates[domain, op].append(Template(node, version, inputs, outputs, op in BY_HAND))
    for folder in sorted((suite / "node").iterdir()):
        template = read_template(folder)
        if template is not None and template.size <= MOST:
            templates[template.domain, template.op].append(template)
    for group in templates.values():
        # The smallest first, but one of each number of inputs before any second.
        group.sort(key=lambda t: (t.empty, t.size))
        seen = collections.Counter()
        rank = {}
        for t in group:
            key = (len([v for v in t.inputs if v is not None]), tuple(sorted(t.attributes)))
            rank[id(t)] = (t.empty, seen[key], t.size)
            seen[key] += 1
        group.sort(key=lambda t: rank[id(t)])
    return templates


def param(params, i):
    return params[min(i, len(params) - 1)]


def fit(template, schema):
    """(inputs, attributes) of a template for another version of its operator; None: it does not fit.
    Inputs that an older version has as attributes become those."""
    newer = onnx.defs.get_schema(template.op, template.opset, template.domain)
    inputs, attributes = list(template.inputs), dict(template.attributes)
    names = [param(newer.inputs, i).name if newer.inputs else "" for i in range(len(inputs))]
    if newer.since_version != schema.since_version:
        for i in reversed(range(len(inputs))):
            attribute = schema.attributes.get(names[i])
            known = i < len(schema.inputs) and schema.inputs[i].name == names[i]
            if attribute is None or known or inputs[i] is None:
                continue
            flat = np.asarray(inputs.pop(i)).reshape(-1).tolist()
            many = attribute.type.name in ("INTS", "FLOATS", "STRINGS")
            if not flat:
                return None
            attributes[names[i]] = flat if many else flat[0]
        while inputs and inputs[-1] is None:
            inputs.pop()
        for name in list(attributes):
            if name not in schema.attributes and name in newer.attributes:
                value = newer.attributes[name].default_value
                if value.type and helper.get_attribute_value(value) == attributes[name]:
                    del attributes[name]
    if any(name not in schema.attributes for name in attributes):
        return None
    for name, value in attributes.items():
        kind = schema.attributes[name].type.name
        if kind == "FLOAT" and isinstance(value, int):
            attributes[name] = float(value)
        elif kind == "STRING" and isinstance(value, int):
            attributes[name] = TensorProto.DataType.Name(value)
    if any(f.option.name == "Single" and (i >= len(inputs) or inputs[i] is None)
           for i, f in enumerate(schema.inputs)):
        return None
    if any(a.required and name not in attributes for name, a in schema.attributes.items()):
        return None
    present = len(inputs)
    if not schema.min_input <= present <= schema.max_input or len(template.outputs) > schema.max_output:
        return None
    if any(isinstance(value, list) and not value for value in attributes.values()):
        return None
    return inputs, attributes


def type_of(value):
    """As the schema writes it."""
    if isinstance(value, list):
        return f"seq({type_of(value[0])})" if value else "seq()"
    return f"tensor({TensorProto.DataType.Name(number_of(np.asarray(value).dtype)).lower()})"


def cast(value, dtype, op="", i=0):
    """Values of another type, kept in its range."""
    if isinstance(value, list):
        return [cast(v, dtype, op, i) for v in value]
    value = np.asarray(value)
    if value.dtype == dtype:
        return value
    if dtype.kind == "O":
        plain = value if value.dtype.kind in "OUSiubf" else value.astype(np.float64)
        return plain.astype(str).astype(object)
    if value.dtype.kind in "OUS":
        try:
            value = value.astype(np.float64)
        except ValueError:
            value = np.array([len(str(v)) for v in value.reshape(-1)]).reshape(value.shape)
    if value.dtype.kind == "c" and dtype.kind != "c":
        value = value.real
    if dtype.kind == "b":
        return value.astype(np.float64) > 0
    if dtype.kind == "c":
        return value.astype(np.float64).astype(dtype)
    with np.errstate(all="ignore"):
        if "int" in dtype.name:
            info = ml_dtypes.iinfo(dtype)
            if "float" in value.dtype.name:
                value = np.rint(np.nan_to_num(value.astype(np.float64)))
            elif value.dtype.kind not in "iub":
                value = value.astype(np.int64)
            low, high = max(int(info.min), -2**62), min(int(info.max), 2**62)
            value = np.clip(value, low, high) if value.dtype.kind != "b" else value
            if op in NONZERO and i == 1:
                value = np.where(value == 0, 1, value)
            if op.startswith("ReduceLog") and i == 0:
                value = np.abs(value) + 1
            return value.astype(np.int64).astype(dtype) if value.dtype.kind != "u" else value.astype(dtype)
        if dtype.name == "float8_e8m0fnu":
            value = np.abs(value.astype(np.float64)) + 0.5
        elif dtype.itemsize == 1:
            most = float(ml_dtypes.finfo(dtype).max)
            value = np.clip(value.astype(np.float64), -most, most)
        if value.dtype.kind in "iub" or dtype.itemsize == 1:
            value = value.astype(np.float32)
        return value.astype(dtype)


class Row:
    """A schema row with one type for one of its variables."""

    def __init__(self, schema, variable, kind):
        self.schema, self.variable, self.kind = schema, variable, kind
        self.case, self.how, self.next = None, "", 0

    def key(self):
        name = f"{self.schema.domain}.{self.schema.name}" if self.schema.domain else self.schema.name
        return name, str(self.schema.since_version), self.variable, self.kind


def outer_value(kind):
    """A value of a type, for If's branches to hand on."""
    value = cast(np.array([0.0, 1.0, 1.0], np.float32), DTYPES[TENSOR.match(kind).group(3)])
    return [value, value] if kind.startswith("seq") else value


def last_version(schema):
    """The newest opset at which a row is in force."""
    later = [s.since_version for s in onnx.defs.get_all_schemas_with_history()
             if s.name == schema.name and s.domain == schema.domain and
             s.since_version > schema.since_version]
    return min(later) - 1 if later else schema.since_version


def bind(template, schema, variable, kind):
    """(inputs, attributes, {variable: dtype}) of the template with the variable bound; a text: why not."""
    fitted = fit(template, schema)
    if fitted is None:
        return "no case of the suite fits"
    inputs, attributes = fitted
    dtype, bound, used = DTYPES[TENSOR.match(kind).group(3)], {variable: None}, False
    bound[variable] = dtype
    for i, value in enumerate(inputs):
        if value is None:
            continue
        formal = param(schema.inputs, i)
        name = formal.type_str
        if name == variable:
            if isinstance(value, list) != kind.startswith("seq"):
                return "the suite's cases have no value of that kind"
            inputs[i], used = cast(value, dtype, schema.name, i), True
        elif type_of(value) not in formal.types:
            options = [t for t in formal.types if t.startswith("tensor(")] if \
                not isinstance(value, list) else [t for t in formal.types if t.startswith("seq(tensor")]
            if not options:
                return "the suite's cases have no value of that kind"
            best = next((t for t in ("tensor(float)", "tensor(int64)", "seq(tensor(float))")
                         if t in options), sorted(options)[0])
            inputs[i] = cast(value, DTYPES[TENSOR.match(best).group(3)], schema.name, i)
        if inputs[i] is not None and name not in bound and not isinstance(inputs[i], list):
            bound[name] = np.asarray(inputs[i]).dtype
    if not used:
        name = next((a for a in TYPE_ATTRIBUTES if a in schema.attributes), None)
        if name and name != "stash_type":
            text = schema.attributes[name].type.name == "STRING"
            attributes[name] = TensorProto.DataType.Name(number_of(dtype)) if text else number_of(dtype)
            if schema.name == "BitCast":
                twin = {1: "uint8", 2: "int16", 4: "uint32", 8: "int64", 16: "complex128"}[dtype.itemsize]
                twin = kind if dtype.itemsize == 1 else f"tensor({twin})"
                inputs[0] = cast(inputs[0], DTYPES[TENSOR.match(twin).group(3)])
        elif "value" in attributes and isinstance(attributes["value"], TensorProto):
            array = cast(numpy_helper.to_array(attributes["value"]), dtype)
            attributes["value"] = numpy_helper.from_array(array)
        elif schema.name == "If" or any(o.type_str == variable for o in schema.outputs[:len(template.outputs)]):
            got = set() if schema.name == "If" else {type_of(v) for o, v in zip(schema.outputs, template.outputs) if o.type_str == variable}
            if schema.name != "If" and kind not in got:
                return "nothing in the node says the type"
        else:
            return "the suite's cases leave the operand out"
    adjust(schema, template, inputs, attributes, bound)
    return inputs, attributes, bound


def adjust(schema, template, inputs, attributes, bound):
    """What a type asks of the rest of the node."""
    name = next((a for a in TYPE_ATTRIBUTES if a in attributes), None)
    results = [param(schema.outputs, i) for i in range(len(template.outputs))]
    if schema.name == "BitCast" and bound.get("T2") is None:
        size = np.asarray(inputs[0]).dtype
        same = {2: "uint16", 4: "int32", 8: "uint64", 16: "complex128"}.get(size.itemsize)
        attributes["to"] = number_of(DTYPES[same] if same else size)
    elif name and name != "stash_type":
        text = attributes[name] if isinstance(attributes[name], (str, bytes)) else \
            TensorProto.DataType.Name(attributes[name])
        kind = f"tensor({(text.decode() if isinstance(text, bytes) else text).lower()})"
        for result in results:
            if result.type_str not in bound and (kind not in result.types or "int2" in kind):
                attributes[name] = TensorProto.FLOAT if isinstance(attributes[name], int) else "FLOAT"
    if schema.name == "Cast" and np.asarray(inputs[0]).dtype.kind in "fi":
        inputs[0] = np.abs(inputs[0])
    if "output_dtype" in schema.attributes and "output_dtype" not in attributes and \
            schema.name == "DequantizeLinear" and np.asarray(inputs[1]).dtype.itemsize == 1:
        attributes["output_dtype"] = TensorProto.FLOAT
    for i, value in enumerate(inputs):
        # The zero point of floating types is 0.
        if value is not None and "zero_point" in param(schema.inputs, i).name and \
                "float" in np.asarray(value).dtype.name:
            inputs[i] = np.zeros(np.shape(value), value.dtype)
    if schema.name == "LayerNormalization":
        bound.setdefault("U", DTYPES["float"])
    if "dtype" in schema.attributes and "dtype" not in attributes and results[0].type_str not in bound \
            and "T1" in bound and schema.name in RANDOM:
        same = f"tensor({TensorProto.DataType.Name(number_of(bound['T1'])).lower()})" in results[0].types
        if not same and schema.name != "Multinomial":
            attributes["dtype"] = TensorProto.FLOAT
        bound[results[0].type_str] = bound["T1"] if same else DTYPES["int32" if schema.name == "Multinomial"
                                                                    else "float"]


def rounded(values, template, schema, bound):
    """Results of the template's types in the types that the row gives."""
    result = []
    for i, value in enumerate(values):
        name = param(schema.outputs, i).type_str
        dtype = bound.get(name)
        found = TENSOR.match(name)
        dtype = DTYPES[found.group(3)] if dtype is None and found else dtype
        if dtype is None and not isinstance(value, list) and type_of(value) not in \
                param(schema.outputs, i).types and "tensor(float)" in param(schema.outputs, i).types:
            dtype = DTYPES["float"]
        result.append(value if dtype is None else cast(value, dtype))
    return result


def build(row, template, reference):
    """Fills in row.case; a text: why not."""
    made = bind(template, row.schema, *types_by_hand.linked(row.schema, row.variable, row.kind))
    if isinstance(made, str):
        return made
    inputs, attributes, bound = made
    schema = row.schema
    if schema.name == "Scan" and schema.since_version == 8:  # lengths first, all in batches
        dtype = DTYPES[TENSOR.match(row.kind).group(3)] if row.variable == "V" else DTYPES["float"]
        lengths = np.array([2]) if row.variable == "I" else None
        inputs, bound = [lengths] + [cast(v[None], dtype) for v in template.inputs], {"V": dtype}
        template = Template(helper.make_node("Scan", [], []), 1, inputs, [v[None] for v in template.outputs])
    if schema.name == "If" and row.variable == "V":
        template = Template(helper.make_node("If", [], []), 1, inputs, [outer_value(row.kind)])
        bound = {}
    opset = last_version(schema) if schema.name in CONTROL else schema.since_version
    if schema.name in CONTROL and row.kind.startswith("seq"):
        if row.kind not in onnx.defs.get_schema("Identity", opset).inputs[0].types:
            return "no operator of the standard takes or gives such a sequence"
    case = Case(schema.name, inputs, attributes, outputs=len(template.outputs), domain=schema.domain,
                opset=opset, title="/".join(row.key()))
    row.case, case.row = case, row
    row.how = "reference"
    if schema.name in CONTROL:
        if schema.name == "If":
            case.captured = {"outer": template.outputs[0]}
        case.expected = rounded(template.outputs, template, schema, bound)
        case.tolerance, row.how = "exact", "by definition"
        return None
    if schema.name == "Split":
        case.constant = {1}
    names = {np.asarray(v).dtype.name for v in inputs if v is not None and not isinstance(v, list)}
    wrong = (schema.name in WRONG_TEXT and "object" in names and
             (schema.name != "CastLike" or np.asarray(inputs[0]).dtype.kind == "O") or
             schema.name == "QLinearMatMul" and any("float8" in name for name in names))
    drawn = schema.name in RANDOM and not (schema.name == "Dropout" and schema.since_version >= 12 and len(inputs) < 3)
    if drawn or (schema.name, schema.since_version) in WRONG or wrong:
        if template.by_hand and template.opset == schema.since_version:
            return take_by_hand(row, template, bound)
        case.expected = rounded(template.outputs, template, schema, bound)
        if schema.name in ("CenterCropPad", "Trilu") and case.expected[0].dtype.kind == "O":
            zero = np.isin(case.expected[0].astype(str), ["0", "0.0"])
            case.expected = [np.where(zero, "", case.expected[0]).astype(object)]
            if schema.name == "Trilu":
                case.inputs[0] = np.where(case.inputs[0] == "0", "", case.inputs[0]).astype(object)
        case.tolerance, row.how = "any", "types and shapes"
        return None
    steps = schema.name in STEPS and ("int" in row.kind or "string" in row.kind)
    if not steps and case.solve(reference) is None and well_typed(case.expected, schema, bound):
        low = tolerance_of(case.expected + [v for v in inputs if v is not None])
        case.tolerance = "exact" if low == "exact" else max((low, "float"), key=ORDER.index)
        if schema.name.startswith("QLinear"):
            case.tolerance = "step"  # a half of a step is rounded either way
        return None
    # Through the template's own types, from values that the bound type can hold.
    wide = [None if a is None else cast(a, np.asarray(t).dtype) if not isinstance(a, list) else a
            for a, t in zip(inputs, fit(template, schema)[0])]
    twin = Case(schema.name, wide, attributes if "value" not in attributes else template.attributes,
                outputs=len(template.outputs), domain=schema.domain, opset=schema.since_version)
    if twin.solve(reference) is None:
        case.expected, row.how = rounded(twin.expected, template, schema, bound), "rounded"
        if steps and "string" in row.kind:  # what padding gives is empty
            case.inputs[0] = np.where(case.inputs[0] == "0.0", "", case.inputs[0]).astype(object)
            case.expected = [np.where(case.expected[0] == "0.0", "", case.expected[0]).astype(object)]
            case.tolerance = "exact"
            return None
        if steps or any(not isinstance(v, list) and v.dtype.kind in "iu" for v in case.expected) and \
                row.schema.name.startswith("ReduceLog"):
            case.tolerance = "step"
            return None
        low = max((tolerance_of(case.expected), tolerance_of([v for v in inputs if v is not None])),
                  key=ORDER.index)
        case.tolerance = "exact" if low == "exact" else max((low, "loose"), key=ORDER.index)
        return None
    newer = as_newer(template, schema, inputs, attributes)
    if newer is not None and newer.solve(reference) is None and well_typed(newer.expected, schema, bound):
        low = tolerance_of(newer.expected + [v for v in inputs if v is not None])
        case.expected, row.how = newer.expected, "reference of a later version"
        case.tolerance = "exact" if low == "exact" else max((low, "loose"), key=ORDER.index)
        return None
    if template.by_hand:
        return take_by_hand(row, template, bound)
    if case.solve(OnnxRuntime()) is None and well_typed(case.expected, schema, bound):
        case.tolerance, row.how = max((tolerance_of(case.expected), "loose"), key=ORDER.index), "onnxruntime"
        return None
    case.expected = rounded(template.outputs, template, schema, bound)
    case.tolerance, row.how = "any", "types and shapes"
    return None


def take_by_hand(row, template, bound):
    """The template's outputs, true for all types."""
    case = row.case
    case.expected, row.how = rounded(template.outputs, template, row.schema, bound), "by hand"
    low = max(tolerance_of(case.expected), tolerance_of([v for v in case.inputs if v is not None]), key=ORDER.index)
    case.tolerance = "exact" if low == "exact" else max((low, "loose"), key=ORDER.index)


def as_newer(template, schema, inputs, attributes):
    """The same node in the template's version, which says what older ones say in other attributes."""
    if template.opset == schema.since_version:
        return None
    same = [new if new is not None and old is not None and not isinstance(new, list) and np.shape(new) == np.shape(old)
            else old for new, old in zip(inputs + [None] * len(template.inputs), template.inputs)]
    given = dict(template.attributes)
    for name in set(TYPE_ATTRIBUTES) & set(attributes):
        value = attributes[name]
        given[name] = TensorProto.DataType.Value(value) if isinstance(value, str) else value
    return Case(schema.name, same, given, outputs=len(template.outputs), domain=schema.domain, opset=template.opset)


ORDER = ["exact", "double", "float", "loose", "half", "bfloat", "tiny", "any"]  # of TOLERANCES


def well_typed(values, schema, bound):
    """Has the reference given the types of the row?"""
    for i, value in enumerate(values):
        dtype = bound.get(param(schema.outputs, i).type_str)
        if dtype is not None and not isinstance(value, list) and value.dtype != dtype and \
                not (dtype.kind == "O" and value.dtype.kind in "OU"):
            return False
        if dtype is None and not isinstance(value, list) and value.dtype.kind != "U" and \
                type_of(value) not in param(schema.outputs, i).types:
            return False
        if not isinstance(value, list) and "int" in (dtype.name if dtype is not None else "") and \
                "float" in value.dtype.name:
            return False
    return True


def rows():
    """Every row, variable and type of a tensor or a sequence of tensors."""
    result = []
    for schema in sorted(onnx.defs.get_all_schemas_with_history(),
                         key=lambda s: (s.domain, s.name, s.since_version)):
        if schema.deprecated:
            continue
        for constraint in schema.type_constraints:
            for kind in sorted(constraint.allowed_type_strs):
                if TENSOR.match(kind) and not kind.startswith("optional"):
                    result.append(Row(schema, constraint.type_param_str, kind))
    return result


def prepare(chosen, templates):
    """Builds the cases of rows from the next template that fits each; rows without are left out."""
    reference, solved = Reference(10), []
    for row in chosen:
        group = templates[row.schema.domain, row.schema.name]
        why = row.how or "no case has that operator"
        while row.next < len(group):
            row.next += 1
            why = build(row, group[row.next - 1], reference)
            if why is None:
                break
        if why is not None and row.case is None:
            row.case = types_by_hand.case_of(row, last_version(row.schema))
            if row.case is not None:
                row.case.row, row.how, why = row, "by definition", None
        if why is None:
            solved.append(row)
        else:
            row.how = row.how or why
    return solved


def run_rows(sardonyx, folder, templates, keep, every):
    """(the rows with a case, {key: why} of those that fail, Counter of why rows have none). What an
    operator refuses is tried with its other cases: it may be another attribute's fault."""
    solved = prepare(every, templates)
    ran = {id(row) for row in solved}
    missing = collections.Counter(row.how for row in every if id(row) not in ran)
    found, left = {}, solved
    for turn in range(TURNS):
        failed = run_cases(sardonyx, folder / str(turn), [row.case for row in left], keep)
        found.update({case.row.key(): clean(why) for case, why in failed})
        bad = {case.row.key() for case, _ in failed}
        for row in left:
            if row.key() not in bad:
                found.pop(row.key(), None)
        again = [case.row for case, why in failed if "differing" not in why]
        left = prepare(again, templates)
        if not left:
            break
    return solved, found, missing


def clean(why):
    """A reason without what differs from run to run."""
    why = re.sub(r"\S*model\.onnx: ", "", why)
    return why.replace("\t", " ").split("\n")[0][:200]


@pytest.mark.parametrize("newest", [True, pytest.param(False, marks=pytest.mark.slow)], ids=["newest", "all"])
def test_types(sardonyx, suite, tmp_path, newest):
    keep = os.environ.get("SDX_TYPES_KEEP")
    every = rows()
    if newest:
        last = {(s.domain, s.name): s.since_version for s in onnx.defs.get_all_schemas()}
        every = [r for r in every if last[r.schema.domain, r.schema.name] == r.schema.since_version]
    solved, found, missing = run_rows(sardonyx, tmp_path, read_templates(suite), Path(keep) if keep else None,
                                      every)
    how = collections.Counter(row.how for row in solved)
    lines = [f"skipped {n} x {why}" for why, n in sorted(missing.items())]
    lines.append(f"{len(solved) - len(found)} of {len(solved)} types of rows run (expected values: " +
                 ", ".join(f"{name} {n}" for name, n in sorted(how.items())) + ")")
    print("\n".join(lines))
    if os.environ.get("SDX_TYPES_WRITE") and not newest:
        OPEN.write_text(HEAD + "".join("\t".join([*key, why]) + "\n" for key, why in sorted(found.items())))
    asked = {row.key() for row in every}
    known = {tuple(line.split("\t")[:4]) for line in OPEN.read_text().split("\n")[1:] if line} \
        if OPEN.is_file() else set()
    known &= asked
    new = [f"{' '.join(key)}: {why}" for key, why in sorted(found.items()) if key not in known]
    gone = [f"{' '.join(key)}: runs now, take it out of {OPEN.name}" for key in sorted(known - set(found))]
    assert not new and not gone, "\n".join(new + gone + lines)
