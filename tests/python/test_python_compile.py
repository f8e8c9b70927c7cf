# SPDX-License-Identifier: Apache-2.0
"""ModelCompiler, and external data that SessionOptions bring from memory."""
import copy
import pickle

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import python_models as models

X = np.arange(3, dtype="f4")
DATA = np.array([10, 20, 30], "f4")


@pytest.fixture
def path(tmp_path):
    """A file with Identity."""
    file = tmp_path / "plain.onnx"
    file.write_bytes(models.identity())
    return file


@pytest.fixture(scope="module")
def external():
    """Bytes of y = x + w, where w is 12 bytes at offset 4 of the file weights.bin."""
    w = numpy_helper.from_array(DATA, "w")
    w.ClearField("raw_data")
    w.data_location = TensorProto.EXTERNAL
    for key, value in (("location", "weights.bin"), ("offset", "4"), ("length", "12")):
        w.external_data.add(key=key, value=value)
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [3]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Add", ["x", "w"], ["y"])], "g", values[:1], values[1:],
                              [w])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)],
                             ir_version=8).SerializeToString()


def run(sdx, model, options=None):
    return sdx.InferenceSession(model, options).run(None, {"x": X})[0].tolist()


def test_compile_to_each_place(sdx, path, tmp_path):
    for source in (str(path), path, models.identity()):
        compiler = sdx.ModelCompiler(sdx.SessionOptions(), source)
        assert compiler.compile_to_file(tmp_path / "to.onnx") is None
        onnx.checker.check_model(onnx.load(tmp_path / "to.onnx"))
        pieces = []
        compiler.compile_to_stream(pieces.append)
        for model in (tmp_path / "to.onnx", compiler.compile_to_bytes(), b"".join(pieces)):
            assert run(sdx, model) == [0, 1, 2]


def test_default_place(sdx, path):
    sdx.ModelCompiler(sdx.SessionOptions(), path).compile_to_file()
    assert run(sdx, path.with_name("plain_ctx.onnx")) == [0, 1, 2]
    with pytest.raises(sdx.InvalidArgument, match="must be specified"):
        sdx.ModelCompiler(sdx.SessionOptions(), models.identity()).compile_to_file()


def test_compile_flags(sdx, path):
    flags = sdx.OrtCompileApiFlags
    with pytest.raises(sdx.Fail, match="Unable to compile any nodes"):
        sdx.ModelCompiler(sdx.SessionOptions(), path,
                          flags=flags.ERROR_IF_NO_NODES_COMPILED).compile_to_bytes()
    with pytest.raises(sdx.Fail, match="already exists"):
        sdx.ModelCompiler(sdx.SessionOptions(), path,
                          flags=flags.ERROR_IF_OUTPUT_FILE_EXISTS).compile_to_file(path)
    assert run(sdx, path) == [0, 1, 2]


def test_level_of_optimisation(sdx):
    """Without one the nodes stay; with one Identity of a constant is folded."""
    w = numpy_helper.from_array(DATA, "w")
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [3]) for name in "xy"]
    nodes = [helper.make_node("Neg", ["w"], ["n"]), helper.make_node("Add", ["x", "n"], ["y"])]
    model = helper.make_model(helper.make_graph(nodes, "g", values[:1], values[1:], [w]), ir_version=8,
                              opset_imports=[helper.make_opsetid("", 17)]).SerializeToString()
    level = sdx.GraphOptimizationLevel
    counts = [len(onnx.load_model_from_string(sdx.ModelCompiler(
        sdx.SessionOptions(), model, graph_optimization_level=each).compile_to_bytes()).graph.node)
        for each in (level.ORT_DISABLE_ALL, level.ORT_ENABLE_ALL)]
    assert counts == [2, 1]


def test_wrong_arguments(sdx, path):
    options = sdx.SessionOptions()
    for error, arguments, named in (
            (ValueError, (options, b""), {}), (ValueError, (options, ""), {}),
            (TypeError, (options, 3), {}), (TypeError, (None, path), {}),
            (TypeError, (options, path), {"external_initializers_file_path": 3}),
            (ValueError, (options, path), {"external_initializers_file_path": "w",
                                           "get_initializer_location_func": print})):
        with pytest.raises(error):
            sdx.ModelCompiler(*arguments, **named)
    compiler = sdx.ModelCompiler(options, path)
    for call in (compiler.compile_to_file, compiler.compile_to_stream,
                 compiler.set_ep_context_data_write_func):
        with pytest.raises(TypeError):
            call(3)
    with pytest.raises(sdx.InvalidArgument, match="does not exist"):
        sdx.ModelCompiler(options, "/nope.onnx").compile_to_bytes()
    for named in ({"external_initializers_file_path": "w"}, {"get_initializer_location_func": print}):
        with pytest.raises(sdx.NotImplemented):
            sdx.ModelCompiler(options, path, **named).compile_to_bytes()


def test_an_error_of_the_stream_is_told(sdx, path):
    def fail(piece):
        raise KeyError("full")

    with pytest.raises(KeyError, match="full"):
        sdx.ModelCompiler(sdx.SessionOptions(), path).compile_to_stream(fail)


def test_files_in_memory(sdx, external):
    file = b"\0" * 4 + DATA.tobytes()
    for buffer in (file, bytearray(file), memoryview(file), np.frombuffer(file, "u1")):
        options = sdx.SessionOptions()
        options.add_external_initializers_from_files_in_memory(["weights.bin"], [buffer], [len(file)])
        assert run(sdx, external, options) == [10, 21, 32]
    for again in (pickle.loads(pickle.dumps(options)), copy.copy(options)):
        assert run(sdx, external, again) == [10, 21, 32]


def test_wrong_files_in_memory(sdx, external):
    options = sdx.SessionOptions()
    add = options.add_external_initializers_from_files_in_memory
    for error, arguments in ((RuntimeError, (["a"], [b"x", b"y"], [1])), (TypeError, (["a"], [2], [1])),
                             (ValueError, (["a"], [b"xyz"], [7])), (TypeError, ([1], [b"x"], [1])),
                             (sdx.InvalidArgument, (["a"], [b""], [0])), (TypeError, (["a"],)),
                             (OverflowError, (["a"], [b"x"], [-1]))):
        with pytest.raises(error):
            add(*arguments)
    add(["a"], [b"x"], [1])
    with pytest.raises(sdx.InvalidArgument, match="already been added"):
        add(["a"], [b"x"], [1])
    with pytest.raises(Exception, match="weights.bin"):
        sdx.InferenceSession(external, options)
