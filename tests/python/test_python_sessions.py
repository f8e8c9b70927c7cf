# SPDX-License-Identifier: Apache-2.0
"""Sessions: where models come from, providers, threads, fork, pickling, other ways to run."""
import os
import pathlib
import pickle
import subprocess
import sys
import threading
import time
import weakref

import numpy as np
import onnx
import pytest
from onnx import TensorProto

import python_models as models

X = np.arange(3, dtype="f4")


@pytest.fixture
def path(tmp_path):
    """A file with Identity."""
    file = tmp_path / "mod\u00e9l.onnx"
    file.write_bytes(models.identity())
    return file


def test_sources(sdx, path):
    data = models.identity()

    class Path:
        def __fspath__(self):
            return str(path)

    for source in (str(path), path, Path(), data, bytearray(data), memoryview(data)):
        assert sdx.InferenceSession(source).run(None, {"x": X})[0].tolist() == [0, 1, 2]


def test_bytes_may_go(sdx):
    data = bytes(bytearray(models.matmul()))
    session = sdx.InferenceSession(data)
    del data
    assert session.run(["y"], {"x": np.ones((1, 4), "f4"), "w": np.ones((4, 3), "f4")})[0][0, 0] == 4


def test_overridable(sdx):
    """A session goes from the default to what is fed, and back."""
    session = sdx.InferenceSession(models.overridable())
    for b in (None, 1, None, None, 2, 3, None):
        feeds = {"x": X} if b is None else {"x": X, "b": np.full(1, b, "f4")}
        assert session.run(None, feeds)[0].tolist() == (X + (10 if b is None else b)).tolist()


def test_providers_are_strict(sdx):
    data = models.identity()
    for name in ("FooExecutionProvider", "CUDAExecutionProvider"):
        with pytest.raises(Exception) as error:
            sdx.InferenceSession(data, providers=[name, "CPUExecutionProvider"])
        assert name[:4] in str(error.value)
    for wrong in ("CPUExecutionProvider", {"CPUExecutionProvider"}, [5], [("a", 5)], 7):
        with pytest.raises(ValueError):
            sdx.InferenceSession(data, providers=wrong)
    with pytest.raises(ValueError, match="same length"):
        sdx.InferenceSession(data, providers=["CPUExecutionProvider"], provider_options=[])
    session = sdx.InferenceSession(data, providers=[("CPUExecutionProvider", {"a": 1})])
    assert session.get_providers() == ["CPUExecutionProvider"]
    session.set_providers(["CPUExecutionProvider"])
    assert session.run(None, {"x": X})[0].tolist() == [0, 1, 2]


def test_a_failed_change_leaves_the_session(sdx):
    session = sdx.InferenceSession(models.identity())
    with pytest.raises(Exception):
        session.set_providers(["FooExecutionProvider"])
    assert session.run(None, {"x": X})[0].tolist() == [0, 1, 2]


def test_without_init(sdx):
    session = sdx.InferenceSession.__new__(sdx.InferenceSession)
    for call in (session.get_inputs, session.get_modelmeta, lambda: session.run(None, {}),
                 session.io_binding, session.__getstate__, session.end_profiling):
        with pytest.raises(RuntimeError, match="__init__"):
            call()
    assert session.get_providers() == []


def test_subclass(sdx, path):
    """As insightface derives its sessions."""

    class Pickable(sdx.InferenceSession):
        def __init__(self, model_path, **options):
            super().__init__(model_path, **options)
            self.model_path = model_path

        def __getstate__(self):
            return {"model_path": self.model_path}

        def __setstate__(self, values):
            self.__init__(values["model_path"])

    session = Pickable(str(path), providers=["CPUExecutionProvider"])
    copy = Pickable.__new__(Pickable)
    copy.__setstate__(session.__getstate__())
    assert copy.run(None, {"x": X})[0].tolist() == [0, 1, 2]
    session.itself = session  # a cycle
    gone = weakref.ref(session)
    del session
    import gc
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_pickle(sdx, path, protocol):
    options = sdx.SessionOptions()
    options.intra_op_num_threads = 1
    options.graph_optimization_level = sdx.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.add_session_config_entry("a.key", "1")
    for source in (path, models.identity()):
        session = sdx.InferenceSession(source, options, providers=["CPUExecutionProvider"])
        session.note = "kept"
        copy = pickle.loads(pickle.dumps(session, protocol))
        assert copy.run(None, {"x": X})[0].tolist() == [0, 1, 2]
        assert copy.note == "kept" and copy.get_providers() == ["CPUExecutionProvider"]
        used = copy.get_session_options()
        assert used.intra_op_num_threads == 1
        assert used.graph_optimization_level == sdx.GraphOptimizationLevel.ORT_ENABLE_BASIC
        assert used.get_session_config_entry("a.key") == "1"


def test_pickle_small_things(sdx):
    value = pickle.loads(pickle.dumps(sdx.OrtValue.ortvalue_from_numpy(X)))
    assert value.numpy().tolist() == [0, 1, 2]
    options = sdx.RunOptions()
    options.logid = "me"
    assert pickle.loads(pickle.dumps(options)).logid == "me"
    level = sdx.GraphOptimizationLevel.ORT_ENABLE_ALL
    assert pickle.loads(pickle.dumps(level)) is level
    error = pickle.loads(pickle.dumps(sdx.InvalidArgument("text")))
    assert type(error) is sdx.InvalidArgument and str(error) == "text"


def test_options_are_copied(sdx):
    options = sdx.SessionOptions()
    options.logid = "before"
    session = sdx.InferenceSession(models.identity(), options)
    options.logid = "after"
    assert session.get_session_options().logid == "before"


def test_free_dimensions(sdx):
    options = sdx.SessionOptions()
    options.add_free_dimension_override_by_name("N", 3)
    session = sdx.InferenceSession(models.identity(), options)
    assert session.get_inputs()[0].shape == [3]


def test_initializers(sdx):
    options = sdx.SessionOptions()
    options.add_initializer("b", sdx.OrtValue.ortvalue_from_numpy(np.array([5], "f4")))
    session = sdx.InferenceSession(models.overridable(), options)
    assert session.run(None, {"x": X})[0].tolist() == [5, 6, 7]


def test_optimized_model(sdx, tmp_path):
    options = sdx.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "optimized.onnx")
    sdx.InferenceSession(models.identity(), options)
    assert sdx.InferenceSession(tmp_path / "optimized.onnx").run(None, {"x": X})[0].tolist() == [0, 1, 2]


def test_optimized_weights(sdx, tmp_path):
    """What a pass makes of weights is in the file."""
    options = sdx.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "optimized.onnx")
    sdx.InferenceSession(models.normalised(), options)
    model = onnx.load(tmp_path / "optimized.onnx")
    assert [node.op_type for node in model.graph.node] == ["Conv"]
    weights = {t.name: onnx.numpy_helper.to_array(t) for t in model.graph.initializer}
    assert weights[model.graph.node[0].input[1]].ravel().tolist() == [2, 0, 0, 4]
    x = np.arange(8, dtype="f4").reshape(1, 2, 2, 2)
    y = sdx.InferenceSession(tmp_path / "optimized.onnx").run(None, {"x": x})[0]
    assert y.ravel().tolist() == [0, 2, 4, 6, 16, 20, 24, 28]


def test_profile(sdx, tmp_path):
    import json
    options = sdx.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(tmp_path / "trace")
    session = sdx.InferenceSession(models.matmul(), options)
    session.run(None, {"x": np.ones((1, 4), "f4"), "w": np.ones((4, 3), "f4")})
    assert session.get_profiling_start_time_ns() > 0
    name = session.end_profiling()
    assert name.startswith(str(tmp_path / "trace"))
    assert json.loads(pathlib.Path(name).read_text())


def test_many_inputs(sdx):
    """More than a run keeps on the stack."""
    from onnx import helper
    count = 40
    model = models.make([helper.make_node("Sum", [f"x{i}" for i in range(count)], ["s"])]
                        + [helper.make_node("Identity", ["s"], [f"y{i}"]) for i in range(count)],
                        [models.value(f"x{i}") for i in range(count)],
                        [models.value(f"y{i}") for i in range(count)])
    session = sdx.InferenceSession(model)
    found = session.run(None, {f"x{i}": X for i in range(count)})
    assert len(found) == count and all((y == X * count).all() for y in found)


def test_threads(sdx):
    session = sdx.InferenceSession(models.matmul())
    w = np.ones((4, 3), "f4")
    faults = []

    def work(number):
        x = np.full((number + 1, 4), number, "f4")
        for _ in range(200):
            y = session.run(None, {"x": x, "w": w})[0]
            if y.shape != (number + 1, 3) or (y != 4 * number).any():
                faults.append(number)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults


def test_change_while_others_run(sdx):
    session = sdx.InferenceSession(models.identity())
    end, faults = threading.Event(), []

    def work():
        while not end.is_set():
            if session.run(None, {"x": X})[0].tolist() != [0, 1, 2]:
                faults.append(1)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(20):
        session.set_providers()
    end.set()
    for thread in threads:
        thread.join()
    assert not faults


def test_the_gil_is_free(sdx):
    """Another thread moves while one runs."""
    session = sdx.InferenceSession(models.slow())
    done = threading.Event()

    def work():
        session.run(None, {"x": np.zeros((400, 400), "f4")})
        done.set()

    thread = threading.Thread(target=work)
    thread.start()
    turns = 0
    while not done.is_set():
        turns += 1
    thread.join()
    assert turns > 100


def test_terminate(sdx):
    session = sdx.InferenceSession(models.slow(steps=3000))
    options = sdx.RunOptions()
    caught = []

    def work():
        try:
            session.run(None, {"x": np.zeros((400, 400), "f4")}, options)
        except sdx.Fail as error:
            caught.append(str(error))

    thread = threading.Thread(target=work)
    thread.start()
    time.sleep(0.05)
    options.terminate = True
    thread.join()
    assert caught and "terminate flag" in caught[0]
    options.terminate = False
    assert sdx.InferenceSession(models.identity()).run(None, {"x": X}, options)[0].tolist() == [0, 1, 2]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_fork(sdx, package_env, tmp_path):
    """A child uses the parent's session, and makes its own."""
    (tmp_path / "m.onnx").write_bytes(models.slow(steps=3))
    script = tmp_path / "fork_script.py"
    script.write_text(
        "import os, sys, numpy as np, sardonyx\n"
        "x = np.ones((400, 400), 'f4') / 400\n"
        "s = sardonyx.InferenceSession(sys.argv[1])\n"
        "y = s.run(None, {'x': x})[0]\n"
        "pid = os.fork()\n"
        "same = (s.run(None, {'x': x})[0] == y).all()\n"
        "same = same and (sardonyx.InferenceSession(sys.argv[1]).run(None, {'x': x})[0] == y).all()\n"
        "if pid == 0:\n"
        "    os._exit(0 if same else 3)\n"
        "code = os.waitpid(pid, 0)[1]\n"
        "sys.exit(0 if same and code == 0 else 4)\n")
    done = subprocess.run([sys.executable, script, tmp_path / "m.onnx"], env=package_env, timeout=120)
    assert done.returncode == 0


def test_multiprocessing(sdx, package_env, tmp_path, path):
    """Sessions are handed to workers by pickling."""
    script = tmp_path / "pool_script.py"
    script.write_text(
        "import multiprocessing, sys, numpy as np, sardonyx\n"
        "def work(session):\n"
        "    return session.run(None, {'x': np.arange(3, dtype='f4')})[0].tolist()\n"
        "if __name__ == '__main__':\n"
        "    s = sardonyx.InferenceSession(sys.argv[1])\n"
        "    with multiprocessing.get_context('spawn').Pool(2) as pool:\n"
        "        assert pool.map(work, [s, s, s]) == [[0, 1, 2]] * 3\n")
    done = subprocess.run([sys.executable, script, path], env=package_env, timeout=300,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_run_async(sdx):
    session = sdx.InferenceSession(models.identity())
    got, come = [], threading.Event()

    def callback(results, user, error):
        got.append((results, user, error))
        come.set()

    user = object()
    session.run_async(["y"], {"x": X.copy()}, callback, user)
    assert come.wait(60)
    assert got[0][0][0].tolist() == [0, 1, 2] and got[0][1] is user and got[0][2] == ""
    come.clear()
    session.run_async(None, {"x": X.astype("f8")}, callback, None)
    assert come.wait(60)
    assert got[1][0] == [] and "Unexpected input data type" in got[1][2]
    with pytest.raises(ValueError):
        session.run_async(None, {}, callback, None)


def test_values(sdx):
    session = sdx.InferenceSession(models.identity())
    value = sdx.OrtValue.ortvalue_from_numpy(X)
    (found,) = session.run_with_ort_values(["y"], {"x": value})
    assert type(found) is sdx.OrtValue and found.numpy().tolist() == [0, 1, 2]
    (again,) = session.run_with_ort_values(None, {"x": found})
    del found
    assert again.numpy().tolist() == [0, 1, 2]
    with pytest.raises(AttributeError):
        session.run_with_ort_values(None, {"x": X})
    names, fetches = sdx.OrtValueVector(), sdx.OrtValueVector()
    names.push_back(value)
    session.run_with_ortvaluevector(None, ["x"], names, ["y"], fetches, None)
    assert len(fetches) == 1 and fetches[0].numpy().tolist() == [0, 1, 2]


def test_binding_belongs_to_its_session(sdx):
    one, two = (sdx.InferenceSession(models.identity()) for _ in range(2))
    with pytest.raises(ValueError, match="session that created it"):
        two.run_with_iobinding(one.io_binding())


def test_binding_outlives_its_arrays(sdx):
    session = sdx.InferenceSession(models.identity())
    io = session.io_binding()
    io.bind_cpu_input("x", np.arange(1000, dtype="f4"))
    io.bind_output("y")
    for _ in range(3):
        session.run_with_iobinding(io)
    (found,) = io.copy_outputs_to_cpu()
    values = io.get_outputs()
    del io, session
    assert found[999] == 999 and values[0].numpy()[999] == 999


def test_node_error_names_the_node(sdx):
    with pytest.raises(sdx.Fail, match="running Concat node. Name:'cat'"):
        sdx.InferenceSession(models.concat()).run(
            None, {"a": np.ones((2, 4), "f4"), "b": np.ones((1, 3), "f4")})


def test_feed_that_changes(sdx):
    """A feed that grows while it is read does not break anything."""
    feed = {}

    class Tensor:
        def __dlpack__(self, **options):
            feed.update({f"more{i}": X for i in range(100)})
            return X.copy().__dlpack__(**options)

        def __dlpack_device__(self):
            return (1, 0)

    feed["x"] = Tensor()
    try:
        sdx.InferenceSession(models.identity()).run(None, feed)
    except Exception as error:
        assert error


def test_plan(sdx, tmp_path):
    (tmp_path / "m.onnx").write_bytes(models.identity(shape=(3,)))
    sdx.compile(tmp_path / "m.onnx", tmp_path / "m.plan")
    assert sdx.InferenceSession(tmp_path / "m.plan").run(None, {"x": X})[0].tolist() == [0, 1, 2]


def test_text_model(sdx):
    session = sdx.InferenceSession(models.identity(TensorProto.STRING))
    assert session.get_inputs()[0].type == "tensor(string)"
