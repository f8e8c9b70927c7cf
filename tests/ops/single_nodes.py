# SPDX-License-Identifier: Apache-2.0
"""Models of one node: writing many as test folders and running all of them in a few processes of
`sardonyx test`. Expected values are given or come from the standard's reference evaluator."""
import collections
import io
import shutil
import signal
import sys
import warnings

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

# Element types by ONNX's name, and how far off a result of each may be: (rtol, atol).
NAMES = {name: number for name, number in TensorProto.DataType.items()
         if number not in (TensorProto.UNDEFINED,)}
DTYPES = {name.lower(): np.dtype(helper.tensor_dtype_to_np_dtype(number))
          for name, number in NAMES.items()}
TOLERANCES = {"exact": (0, 0), "float": (2e-4, 2e-5), "double": (1e-6, 1e-7), "half": (4e-3, 4e-3),
              "bfloat": (3e-2, 3e-2), "tiny": (0.26, 0.02), "loose": (2e-3, 1e-3),
              "any": (1e9, 1e9), "step": (0, 1.01)}
CLASSES = {np.dtype(np.float32): "float", np.dtype(np.float64): "double",
           np.dtype(np.float16): "half", np.dtype(np.complex64): "float",
           np.dtype(np.complex128): "double", np.dtype(ml_dtypes.bfloat16): "bfloat"}


def number_of(dtype):
    """ONNX's number of a NumPy element type."""
    dtype = np.dtype(dtype)
    if dtype.kind in "OUS":
        return TensorProto.STRING
    return helper.np_dtype_to_tensor_dtype(dtype)


def tolerance_of(values):
    """The class of tolerance that results of these types get."""
    found = "exact"
    order = list(TOLERANCES)
    for value in values:
        for array in value if isinstance(value, list) else [value]:
            dtype = np.asarray(array).dtype
            name = CLASSES.get(dtype, "tiny" if "float" in dtype.name else "exact")
            if found == "exact" or order.index(name) > order.index(found):
                found = name
    return found


def type_proto(value, shape=True):
    if isinstance(value, dict):
        key, item = next(iter(value.items()))
        return helper.make_map_type_proto(number_of(np.asarray(key).dtype), type_proto(item))
    if isinstance(value, list):
        first = value[0] if value else np.zeros((), np.float32)
        return helper.make_sequence_type_proto(type_proto(first, False))
    value = np.asarray(value)
    return helper.make_tensor_type_proto(number_of(value.dtype), value.shape if shape else None)


def map_proto(name, keys, values):
    made = onnx.MapProto(name=name, key_type=number_of(np.asarray(keys).dtype))
    if made.key_type == TensorProto.STRING:
        made.string_keys.extend(key.encode() for key in keys)
    else:
        made.keys.extend(int(key) for key in keys)
    made.values.CopyFrom(numpy_helper.from_list([to_array(v) for v in values], "values"))
    return made


def to_array(value):
    value = np.asarray(value)
    return value.astype(object) if value.dtype.kind in "OUS" else value


def to_tensor(array, name):
    return numpy_helper.from_array(to_array(array), name)


def to_bytes(value, name):
    if isinstance(value, dict):
        key, item = next(iter(value.items()))
        keys = list(value) if isinstance(key, str) else np.array(list(value))
        return map_proto(name, keys, [np.asarray(v) for v in value.values()]).SerializeToString()
    if isinstance(value, list):
        return numpy_helper.from_list(value, name).SerializeToString()
    return to_tensor(value, name).SerializeToString()


class Alarm(Exception):
    pass


class Reference:
    """The standard's evaluator, silent and with a limit of seconds a call."""

    def __init__(self, seconds=20):
        self.seconds = seconds

    def run(self, model, feeds):
        from onnx.reference import ReferenceEvaluator

        def ring(*_):
            raise Alarm("the reference takes too long")
        before = signal.signal(signal.SIGALRM, ring)
        signal.alarm(self.seconds)
        stdout, sys.stdout = sys.stdout, io.StringIO()
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                return ReferenceEvaluator(model).run(None, feeds)
        finally:
            sys.stdout = stdout
            signal.alarm(0)
            signal.signal(signal.SIGALRM, before)


class Case:
    """One node: its operator, inputs (arrays, lists for sequences, None), attributes."""

    def __init__(self, op, inputs, attributes=None, *, outputs=1, domain="", opset=26, expected=None,
                 tolerance=None, constant=(), family="", title="", dtype=None, unmade=()):
        self.op, self.inputs, self.domain, self.opset = op, list(inputs), domain, opset
        self.attributes = {k: v for k, v in (attributes or {}).items() if v is not None}
        self.outputs, self.expected, self.tolerance = outputs, expected, tolerance
        self.constant, self.family, self.title = set(constant), family, title or op
        self.dtype = dtype  # of output 0, where the reference gives another
        self.unmade = set(unmade)  # outputs that the node leaves out
        self.nodes = None  # those of the model, where they are more than the one
        self.captured = {}  # more inputs of the model, which graphs of the node read

    def model(self, expected=None):
        names = ["" if value is None else f"x{i}" for i, value in enumerate(self.inputs)]
        places = ["" if k in self.unmade else f"y{k}" for k in range(self.outputs)]
        made = [name for name in places if name]
        node = helper.make_node(self.op, names, places, domain=self.domain, **self.attributes)
        inputs, constants = [], []
        for i, value in enumerate(self.inputs):
            if value is None:
                continue
            if i in self.constant and not isinstance(value, list):
                constants.append(to_tensor(value, names[i]))
            else:
                inputs.append(helper.make_value_info(names[i], type_proto(value)))
        inputs += [helper.make_value_info(name, type_proto(v)) for name, v in self.captured.items()]
        outputs = [onnx.ValueInfoProto(name=name) if expected is None else
                   helper.make_value_info(name, type_proto(value, False))
                   for name, value in zip(made, expected or made)]
        graph = helper.make_graph(self.nodes or [node], self.op, inputs, outputs, constants)
        opsets = [helper.make_opsetid(self.domain, self.opset)]
        if self.domain:
            opsets.append(helper.make_opsetid("", 26))
        return helper.make_model(graph, ir_version=13 if self.opset > 24 else 10,
                                 opset_imports=opsets)

    def feeds(self):
        feeds = {f"x{i}": value for i, value in enumerate(self.inputs)
                 if value is not None and (i not in self.constant or isinstance(value, list))}
        return {**feeds, **self.captured}

    def solve(self, reference):
        """Fills in the expected values; a text: why there are none."""
        if callable(self.expected):
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                values = self.expected(*self.inputs)
            self.expected = values if isinstance(values, tuple) else (values,)
        if self.expected is None:
            try:
                self.expected = reference.run(self.model(), self.feeds())
            except Exception as fault:  # the reference raises whatever NumPy does
                fault = fault.__cause__ or fault
                text = str(fault).split("\n")[0][:70]
                return f"the reference fails: {type(fault).__name__}: {text}"
        self.expected = [v if isinstance(v, list) else np.asarray(v) for v in self.expected]
        if self.dtype is not None:
            self.expected[0] = self.expected[0].astype(self.dtype)
        if any(isinstance(v, np.ndarray) and v.dtype == object and
               not all(isinstance(text, (str, bytes)) for text in v.reshape(-1)) for v in self.expected):
            return "the reference gives no tensor"
        return None

    def save(self, folder):
        data = folder / "test_data_set_0"
        data.mkdir(parents=True)
        (folder / "model.onnx").write_bytes(self.model(self.expected).SerializeToString())
        for i, (name, value) in enumerate(self.feeds().items()):
            (data / f"input_{i}.pb").write_bytes(to_bytes(value, name))
        for i, value in enumerate(self.expected):
            (data / f"output_{i}.pb").write_bytes(to_bytes(value, f"y{i}"))

    def text(self):
        shown = []
        for value in self.inputs:
            if value is None or isinstance(value, (list, dict)):
                shown.append("-" if value is None else f"list of {len(value)}")
                continue
            value = np.asarray(value)
            values = f"={value.tolist()}" if value.size < 9 else ""
            shown.append(f"{value.dtype}{list(value.shape)}{values}")
        return f"{self.op}-{self.opset} {self.attributes} ({', '.join(shown)})"


def run_cases(sardonyx, folder, cases, keep=None):
    """Runs solved cases; [(case, why)] of those that do not pass. keep: a folder for those."""
    groups = collections.defaultdict(list)
    for case in cases:
        groups[case.tolerance or tolerance_of(case.expected)].append(case)
    failed = []
    for name, members in groups.items():
        root = folder / name
        for i, case in enumerate(members):
            case.save(root / f"{i:06d}")
        rtol, atol = TOLERANCES[name]
        result = sardonyx("test", root, "--json", "--rtol", rtol, "--atol", atol, code=None)
        found = {}
        for record in result.json["cases"]:
            found[int(record["case"].rstrip("/").split("/")[-2])] = record
        for i, case in enumerate(members):
            record = found.get(i, {"result": "lost", "why": "the program says nothing of it"})
            if record["result"] != "passed":
                failed.append((case, record.get("why") or record["result"]))
                if keep:
                    shutil.copytree(root / f"{i:06d}", keep / f"{case.op}_{len(failed):04d}",
                                    dirs_exist_ok=True)
        shutil.rmtree(root)
    return failed
