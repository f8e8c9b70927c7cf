# SPDX-License-Identifier: Apache-2.0
"""The same calls through sardonyx and onnxruntime: results, classes of exceptions and messages."""
import collections
import re
import types

import numpy as np
import pytest
from onnx import TensorProto

import python_models as models

X = np.arange(3, dtype="f4")
M = np.arange(8, dtype="f4").reshape(2, 4)
W = np.ones((4, 3), "f4")


def run(m, data, dtype=models.FLOAT, shape=("N",)):
    """One input through Identity."""
    result = m.InferenceSession(models.identity(dtype, shape)).run(None, {"x": data})[0]
    return type(result).__name__, str(result.dtype), result.shape, result.tolist()


def session(m, model=None):
    return m.InferenceSession(models.identity() if model is None else model)


def matmul(m, feed, names=None):
    return [y.tolist() for y in session(m, models.matmul()).run(names, feed)]


def set_option(m, name, to):
    options = m.SessionOptions()
    setattr(options, name, to)
    return getattr(options, name)


def value_facts(m):
    v = m.OrtValue.ortvalue_from_numpy(M.copy())
    return (v.shape(), v.data_type(), v.device_name(), v.element_type(), v.is_tensor(),
            v.is_sparse_tensor(), v.is_tensor_sequence(), v.has_value(), v.tensor_size_in_bytes())


def node_facts(m, model):
    s = session(m, model)
    return [(n.name, n.type, n.shape, str(n)) for n in
            [*s.get_inputs(), *s.get_outputs(), *s.get_overridable_initializers()]]


def bind(m, *calls):
    """Calls on a binding of Identity, then a run."""
    s = session(m, models.identity(shape=("N", "M")))
    io = s.io_binding()
    for name, *args in calls:
        getattr(io, name)(*args)
    s.run_with_iobinding(io)
    return [y.tolist() for y in io.copy_outputs_to_cpu()]


def metadata(m):
    meta = session(m, models.matmul()).get_modelmeta()
    return (meta.custom_metadata_map, meta.producer_name, meta.graph_name, meta.domain,
            meta.description, meta.graph_description, meta.version)


def run_twice_terminated(m):
    options = m.RunOptions()
    options.terminate = True
    return session(m).run(None, {"x": X}, options)


CASES = {
    "list": lambda m: run(m, [1, 2]),
    "list of wrong things": lambda m: run(m, ["a", 2]),
    "ragged list": lambda m: run(m, [[1], [2, 3]], shape=("N", "M")),
    "list of texts": lambda m: run(m, ["a", "b"], TensorProto.STRING),
    "tuple": lambda m: run(m, (1, 2)),
    "float": lambda m: run(m, 1.0, shape=()),
    "int": lambda m: run(m, 1, TensorProto.INT64, ()),
    "numpy scalar": lambda m: run(m, np.float32(1), shape=()),
    "no dimensions": lambda m: run(m, np.array(1, "f4"), shape=()),
    "str": lambda m: run(m, "abc", TensorProto.STRING),
    "bytes": lambda m: run(m, b"abc", TensorProto.UINT8),
    "set": lambda m: run(m, {1, 2}),
    "generator": lambda m: run(m, (i for i in (1, 2))),
    "range": lambda m: run(m, range(3), TensorProto.INT64),
    "longlong": lambda m: run(m, np.arange(3, dtype=np.longlong), TensorProto.INT64),
    "U": lambda m: run(m, np.array(["ab", "c\u00e9"]), TensorProto.STRING),
    "O mixed": lambda m: run(m, np.array(["ab", 1, None, 2.5, b"x"], object), TensorProto.STRING),
    "O for float": lambda m: run(m, np.array([1.0, 2.0], object)),
    "void": lambda m: run(m, np.array([b"ab", b"c"], "V3"), TensorProto.STRING),
    "every second": lambda m: run(m, np.arange(6, dtype="f4")[::2]),
    "backwards": lambda m: run(m, X[::-1]),
    "fortran": lambda m: run(m, np.asfortranarray(M), shape=("N", "M")),
    "texts, every second": lambda m: run(m, np.array(list("abcd"))[::2], TensorProto.STRING),
    "read-only": lambda m: run(m, np.frombuffer(b"\0\0\x80?", "f4")),
    "unaligned": lambda m: run(m, np.frombuffer(b"x\0\0\x80?", "f4", offset=1)),
    "datetime": lambda m: run(m, np.array(["2020-01-01"], "M8[D]"), TensorProto.INT64),
    "longdouble": lambda m: run(m, np.arange(3, dtype=np.longdouble), TensorProto.DOUBLE),
    "matrix": lambda m: run(m, np.asmatrix([[1, 2]]).astype("f4"), shape=("N", "M")),
    "masked": lambda m: run(m, np.ma.array([1, 2], dtype="f4")),
    "record": lambda m: run(m, np.zeros(2, [("a", "f4")])),
    "uint16 for bfloat16": lambda m: run(m, np.arange(3, dtype="u2"), TensorProto.BFLOAT16),
    "empty": lambda m: run(m, np.zeros((0, 4), "f4"), shape=("N", 4)),
    "names tuple": lambda m: matmul(m, {"x": M, "w": W}, ("y",)),
    "names empty": lambda m: matmul(m, {"x": M, "w": W}, []),
    "names str": lambda m: matmul(m, {"x": M, "w": W}, "y"),
    "names int": lambda m: matmul(m, {"x": M, "w": W}, [1]),
    "names twice": lambda m: matmul(m, {"x": M, "w": W}, ["y", "y"]),
    "unknown output": lambda m: matmul(m, {"x": M, "w": W}, ["q"]),
    "unknown input": lambda m: matmul(m, {"x": M, "w": W, "z": W}),
    "missing input": lambda m: matmul(m, {"x": M}),
    "missing and wrong": lambda m: matmul(m, {"x": 5}),
    "wrong dtype": lambda m: matmul(m, {"x": M.astype("f8"), "w": W}),
    "wrong rank": lambda m: matmul(m, {"x": M[0], "w": W}),
    "wrong length": lambda m: matmul(m, {"x": np.ones((2, 5), "f4"), "w": W}),
    "feed list": lambda m: matmul(m, [("x", M)]),
    "feed int keys": lambda m: matmul(m, {1: M}),
    "feed None": lambda m: matmul(m, None),
    "feed bytes key": lambda m: matmul(m, {b"x": M}),
    "feed mappings": lambda m: [matmul(m, kind({"x": M, "w": W})) for kind in
                                (collections.OrderedDict, types.MappingProxyType,
                                 collections.UserDict)],
    "run options of another type": lambda m: session(m).run(None, {"x": X}, 5),
    "run without arguments": lambda m: session(m).run(),
    "run keyword": lambda m: session(m).run(None, {"x": X}, foo=1),
    "run keywords": lambda m: session(m).run(output_names=None, input_feed={"x": X},
                                             run_options=None)[0].tolist(),
    "OrtValue in run": lambda m: session(m).run(
        None, {"x": m.OrtValue.ortvalue_from_numpy(X)})[0].tolist(),
    "terminate": run_twice_terminated,
    "sequence out": lambda m: [[x.tolist() for x in y] for y in
                               session(m, models.to_sequence()).run(None, {"x": X})],
    "sequence in": lambda m: session(m, models.from_sequence()).run(None, {"s": [X, X]})[0].tolist(),
    "sequence tuple": lambda m: session(m, models.from_sequence()).run(None, {"s": (X, X)}),
    "sequence of lists": lambda m: session(m, models.from_sequence()).run(None, {"s": [[1.0]]}),
    "optional None": lambda m: session(m, models.has_element()).run(None, {"o": None})[0].tolist(),
    "optional missing": lambda m: session(m, models.has_element()).run(None, {})[0].tolist(),
    "optional": lambda m: session(m, models.has_element()).run(None, {"o": X})[0].tolist(),
    "overridable": lambda m: [session(m, models.overridable()).run(None, feed)[0].tolist() for feed
                              in ({"x": X}, {"x": X, "b": np.ones(1, "f4")})],
    "nodes": lambda m: [node_facts(m, model) for model in
                        (models.matmul(), models.overridable(), models.to_sequence(),
                         models.from_sequence(), models.has_element(),
                         models.identity(shape=[None, "N", 3]), models.identity(shape=None),
                         models.identity(TensorProto.STRING, []))],
    "metadata": metadata,
    "no such file": lambda m: m.InferenceSession("/nope.onnx"),
    "bad bytes": lambda m: m.InferenceSession(b"abc"),
    "empty bytes": lambda m: m.InferenceSession(b""),
    "int for a path": lambda m: m.InferenceSession(5),
    "no path": lambda m: m.InferenceSession(),
    "providers": lambda m: [m.InferenceSession(models.identity(), providers=p).get_providers() for p in
                            (None, [], ("CPUExecutionProvider",), [("CPUExecutionProvider", {})])],
    "keywords": lambda m: m.InferenceSession(
        path_or_bytes=models.identity(), sess_options=None, providers=["CPUExecutionProvider"],
        provider_options=[{}]).get_provider_options(),
    "unknown keywords": lambda m: m.InferenceSession(
        models.identity(), foo=1, disabled_optimizers=["a"]).get_providers(),
    **{f"option {name} = {to!r}": lambda m, name=name, to=to: set_option(m, name, to)
       for name, to in [("intra_op_num_threads", "2"), ("intra_op_num_threads", 2.0),
                        ("intra_op_num_threads", np.int64(2)), ("enable_profiling", 1),
                        ("enable_mem_pattern", None), ("graph_optimization_level", 99),
                        ("execution_mode", "x"), ("logid", 3), ("logid", "me"),
                        ("optimized_model_filepath", "/tmp/x"), ("foo", 1), ("execution_order", 1),
                        ("use_deterministic_compute", "x"), ("log_severity_level", 2 ** 40)]},
    "option defaults": lambda m: {name: str(getattr(m.SessionOptions(), name)) for name in (
        "enable_cpu_mem_arena", "enable_mem_pattern", "enable_mem_reuse", "enable_profiling",
        "execution_mode", "execution_order", "graph_optimization_level", "inter_op_num_threads",
        "intra_op_num_threads", "log_severity_level", "log_verbosity_level", "logid",
        "optimized_model_filepath", "profile_file_prefix", "use_deterministic_compute",
        "use_per_session_threads")},
    "run option defaults": lambda m: {name: getattr(m.RunOptions(), name) for name in (
        "log_severity_level", "log_verbosity_level", "logid", "only_execute_path_to_fetches",
        "terminate")},
    "entry that is not set": lambda m: m.SessionOptions().get_session_config_entry("a"),
    "run entry that is not set": lambda m: m.RunOptions().get_run_config_entry("a"),
    "entry of another type": lambda m: m.SessionOptions().add_session_config_entry("a", 1),
    "entry without a name": lambda m: m.SessionOptions().add_session_config_entry("", "1"),
    "enumerations": lambda m: (repr(m.GraphOptimizationLevel.ORT_ENABLE_ALL),
                               str(m.GraphOptimizationLevel(1)), int(m.ExecutionMode.ORT_PARALLEL),
                               m.GraphOptimizationLevel.ORT_ENABLE_ALL == 99,
                               m.ExecutionOrder.PRIORITY_BASED.name,
                               {k: int(v) for k, v in m.OrtMemType.__members__.items()},
                               {k: int(v) for k, v in m.OrtSparseFormat.__members__.items()},
                               {k: int(v) for k, v in m.ExecutionOrder.__members__.items()},
                               {k: int(v) for k, v in m.OrtAllocatorType.__members__.items()}),
    "value": value_facts,
    "value of a list": lambda m: m.OrtValue.ortvalue_from_numpy([1, 2]),
    "value of text": lambda m: m.OrtValue.ortvalue_from_numpy(np.array(["a"])),
    "value on cuda": lambda m: m.OrtValue.ortvalue_from_numpy(X, "cuda", 0),
    "value on foo": lambda m: m.OrtValue.ortvalue_from_numpy(X, "foo", 0),
    "value of a shape": lambda m: (lambda v: (v.shape(), v.data_type(), v.numpy().shape))(
        m.OrtValue.ortvalue_from_shape_and_type([2, 3], np.float32)),
    "value of a number": lambda m: (lambda v: (v.shape(), v.data_type(), v.element_type()))(
        m.OrtValue.ortvalue_from_shape_and_type([2, 3], 16)),
    "value of no type": lambda m: m.OrtValue.ortvalue_from_shape_and_type([2, 3], "foo"),
    "value of str": lambda m: m.OrtValue.ortvalue_from_shape_and_type([2, 3], np.str_),
    "value as bfloat16": lambda m: m.OrtValue.ortvalue_from_numpy_with_onnx_type(
        np.zeros(3, "u2"), 16).data_type(),
    "update of another size": lambda m: m.OrtValue.ortvalue_from_numpy(M.copy()).update_inplace(X),
    "update with a list": lambda m: m.OrtValue.ortvalue_from_numpy(M.copy()).update_inplace([1]),
    "from_dlpack of nothing": lambda m: m.OrtValue.from_dlpack(5),
    "binding": lambda m: bind(m, ("bind_cpu_input", "x", M), ("bind_output", "y")),
    "binding of values": lambda m: bind(
        m, ("bind_ortvalue_input", "x", m.OrtValue.ortvalue_from_numpy(M)),
        ("bind_ortvalue_output", "y", m.OrtValue.ortvalue_from_shape_and_type([2, 4], np.float32))),
    "binding at an address": lambda m: bind(
        m, ("bind_input", "x", "cpu", 0, np.float32, M.shape, M.ctypes.data), ("bind_output", "y")),
    "binding without outputs": lambda m: bind(m),
    "binding of an unknown input": lambda m: bind(m, ("bind_cpu_input", "q", M)),
    "binding of a list": lambda m: bind(m, ("bind_cpu_input", "x", [[1.0]])),
    "binding without a shape": lambda m: bind(
        m, ("bind_output", "y", "cpu", 0, None, None, 5)),
    "values": lambda m: [v.numpy().tolist() for v in session(m).run_with_ort_values(
        None, {"x": m.OrtValue.ortvalue_from_numpy(X)})],
    "values missing": lambda m: session(m).run_with_ort_values(None, {}),
    "device": lambda m: (lambda d: (d.device_id(), d.device_type(), d.device_mem_type(),
                                    d.device_vendor_id()))(m.OrtDevice.make("cuda", 1)),
    "unknown device": lambda m: m.OrtDevice.make("foo", 1),
    "memory info": lambda m: (lambda i: (i.name, i.device_id, repr(i.mem_type), repr(i.allocator_type),
                                         repr(i.device_mem_type), i.device_vendor_id))(
        m.OrtMemoryInfo("Cpu", m.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, m.OrtMemType.DEFAULT)),
    "memory info of nothing": lambda m: m.OrtMemoryInfo(
        "Foo", m.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, m.OrtMemType.DEFAULT),
    "arena": lambda m: (m.OrtArenaCfg({"max_mem": 5}).max_mem,
                        m.OrtArenaCfg(0, -1, -1, -1).initial_chunk_size_bytes),
    # ort:CPUExecutionProvider is ours only, when other tests have loaded a real library here
    "all providers": lambda m: [name for name in m.get_all_providers() if ":" not in name],
    "device of the package": lambda m: (m.get_device(), m.get_version_string(),
                                        m.has_collective_ops()),
    "nothing to say": lambda m: (m.set_seed(5), m.disable_telemetry_events(),
                                 m.enable_telemetry_events(), m.set_default_logger_verbosity(0)),
    "end_profiling": lambda m: session(m).end_profiling(),
    "tuning results": lambda m: session(m).get_tuning_results(),
}

ADDRESS = re.compile(r"0x[0-9a-f]{6,}")
HOMES = re.compile(r"onnxruntime\.capi\.onnxruntime_(pybind11_state|inference_collection)\b|\bsardonyx\b")


def outcome(module, case):
    """("result", value) or (class, message), without addresses and names of modules."""
    try:
        return "result", case(module)
    except Exception as error:
        home = type(error).__module__
        kind = type(error).__name__ if home == "builtins" else f"package.{type(error).__name__}"
        return kind, ADDRESS.sub("0x", HOMES.sub("package", str(error)))


@pytest.mark.parametrize("name", CASES)
def test_same(sdx, ort, name):
    found = outcome(sdx, CASES[name])
    expected = outcome(ort, CASES[name])
    if "is not implemented by Sardonyx" in str(found[1]):
        pytest.skip(found[1])
    assert found == expected
