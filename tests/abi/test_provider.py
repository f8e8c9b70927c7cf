# SPDX-License-Identifier: Apache-2.0
"""Sessions of an installed ONNX Runtime library: what starts and why not, values over and back,
errors, cancelling; and its results against those of our engine.

The library is SDX_ORT_LIBRARY, or that of the npm package onnxruntime-node (conftest.py)."""
import ctypes
import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto as T
from onnx import helper, numpy_helper

sys.path.insert(0, str(Path(__file__).resolve().parent))

import models as cli_models  # noqa: E402
import zoo  # noqa: E402
from engine_calls import Engine, Failed  # noqa: E402

OWN, CPU, CUDA = "CPUExecutionProvider", "ort:CPUExecutionProvider", "CUDAExecutionProvider"
KNOWN = {"TensorrtExecutionProvider", CUDA, "ROCMExecutionProvider", "MIGraphXExecutionProvider",
         "OpenVINOExecutionProvider", "CoreMLExecutionProvider", "DmlExecutionProvider"}
INFO = 1
NONE_LEFT = "No ONNX Runtime execution providers available"


@pytest.fixture(scope="module")
def library(request):
    """A real ONNX Runtime library."""
    given = os.environ.get("SDX_ORT_LIBRARY")
    return Path(given) if given else request.getfixturevalue("real_ort")


@pytest.fixture
def engine(build, sanitizers, monkeypatch):
    """A context of build/libsardonyx.so; the environment names no library."""
    path = build / "libsardonyx.so"
    if not path.is_file():
        pytest.skip(f"{path} is not built")
    if sanitizers:
        pytest.skip("the library is built with sanitizers, Python is not")
    monkeypatch.delenv("SDX_ORT_LIBRARY", raising=False)
    made = Engine(path)
    yield made
    made.lib.sdx_context_destroy(made.cx)


@pytest.fixture
def add(tmp_path):
    return cli_models.add_model(tmp_path / "add.onnx")


def value(name, shape, kind=T.FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def model(nodes, inputs, outputs, constants=(), opset=17):
    graph = helper.make_graph(nodes, "g", inputs, outputs, list(constants))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)],
                             ir_version=8).SerializeToString()


def fails(engine, status, *parts):
    """A context in which the call must fail with this status and all parts in its text."""
    class Expect:
        def __enter__(self):
            return self

        def __exit__(self, kind, failed, _trace):
            assert kind is Failed, f"no failure; expected {status} {parts}"
            assert failed.args[0] == status, failed.args
            for part in parts:
                assert part in failed.args[1], failed.args
            assert "\n" not in failed.args[1]
            return True
    return Expect()


A = np.array([[1, 2, 3]], np.float32)
B = np.array([[10, 20, 30]], np.float32)


# ---- without a library ----

@pytest.mark.parametrize("names", [(), ("cpu",), (OWN,), (OWN, CUDA)])
def test_own_engine(engine, add, names):
    with engine.session(add, names) as session:
        assert session.providers == [OWN]
        assert session.run({"a": A, "b": B}, ["y"])[0].tolist() == [[11, 22, 33]]


def test_missing_library_is_named(engine, add, tmp_path):
    path = tmp_path / "libnothing.so"
    with fails(engine, "SDX_NOT_SUPPORTED", f"{CUDA} cannot start: ", str(path)):
        with engine.session(add, [CUDA], path):
            pass
    with fails(engine, "SDX_NOT_SUPPORTED", f"{CUDA} cannot start: ", str(path)):
        with engine.session(add, [CUDA, "cpu"], path):
            pass
    assert engine.warnings == []


def test_library_of_the_environment(engine, add, tmp_path, monkeypatch):
    monkeypatch.setenv("SDX_ORT_LIBRARY", str(tmp_path / "libelsewhere.so"))
    with fails(engine, "SDX_NOT_SUPPORTED", "libelsewhere.so"):
        with engine.session(add, ["ort"]):
            pass


def test_fallback_is_told(engine, add, tmp_path):
    path = tmp_path / "libnothing.so"
    with engine.session(add, ["TensorrtExecutionProvider", CUDA, "cpu"], path, provider_fallback=True) as session:
        assert session.providers == [OWN]
        assert session.run({"a": A, "b": B}, ["y"])[0].tolist() == [[11, 22, 33]]
    assert len(engine.warnings) == 2
    for name, line in zip(("TensorrtExecutionProvider", CUDA), engine.warnings):
        assert line.startswith(f"provider: {name} cannot start: ") and str(path) in line


def test_nothing_left(engine, add, tmp_path):
    with fails(engine, "SDX_NOT_SUPPORTED") as _:
        with engine.session(add, [CUDA], tmp_path / "libnothing.so", provider_fallback=True):
            pass
    assert engine.lib.sdx_error(engine.cx).decode() == NONE_LEFT
    assert len(engine.warnings) == 1 and CUDA in engine.warnings[0]


def test_auto_without_library(engine, add, tmp_path):
    with engine.session(add, ["auto"], tmp_path / "libnothing.so") as session:
        assert session.providers == [OWN]
    assert len(engine.warnings) == 1 and "libnothing.so" in engine.warnings[0]


def test_our_own_library_is_no_real_one(engine, add, our_ort):
    with fails(engine, "SDX_NOT_SUPPORTED", "is Sardonyx's own libonnxruntime.so.1", str(our_ort)):
        with engine.session(add, ["ort"], our_ort):
            pass
    rows = engine.providers(our_ort)
    assert [row["name"] for row in rows if row["starts"]] == [OWN]


def test_no_recursion_through_the_loader(sardonyx, our_ort):
    found = sardonyx("providers", "--json", env={"LD_LIBRARY_PATH": str(our_ort.parent), "SDX_ORT_LIBRARY": ""})
    rows = found.json["providers"]
    assert [row["name"] for row in rows if row["starts"]] == [OWN]
    assert "is Sardonyx's own" in rows[1]["reason"]


def test_library_of_something_else(engine, add):
    with fails(engine, "SDX_NOT_SUPPORTED", "libm.so.6 has no function OrtGetApiBase"):
        with engine.session(add, ["ort"], "libm.so.6"):
            pass


@pytest.mark.parametrize("names, options, text", [
    (["cpu"], [("cpu", "threads", "2")], 'option "threads": cpu has no options'),
    (["auto"], [("auto", "device_id", "1")], 'option "device_id": auto has no options'),
    (["cpu"], [(CUDA, "device_id", "1")], f'option "device_id": {CUDA} is not in the list of providers'),
    ([], [(CUDA, "device_id", "1")], "is not in the list of providers"),
    ([None], [], "provider 0 is NULL")])
def test_wrong_lists(engine, add, names, options, text):
    with fails(engine, "SDX_INVALID_ARGUMENT", text):
        with engine.session(add, names, options=options):
            pass


def test_list_without_library(engine, tmp_path):
    rows = engine.providers(tmp_path / "libnothing.so")
    assert rows[0] == {"name": OWN, "starts": True, "reason": None, "library": None, "version": None}
    assert {row["name"] for row in rows[1:]} == KNOWN | {CPU}
    assert all(not row["starts"] and "libnothing.so" in row["reason"] for row in rows[1:])


# ---- with a library ----

def test_list(engine, library):
    rows = {row["name"]: row for row in engine.providers(library)}
    assert set(rows) >= KNOWN | {OWN, CPU}
    assert rows[CPU]["starts"] and rows[CPU]["library"] == str(library)
    assert rows[CPU]["version"].startswith("1.")
    for row in rows.values():
        assert row["starts"] == (row["reason"] is None)
        assert row["reason"] is None or ("\n" not in row["reason"] and row["reason"].strip())


@pytest.mark.parametrize("name", ["ort", CPU])
def test_cpu_of_the_library(engine, library, add, name):
    with engine.session(add, [name, "cpu"], library) as session:
        assert session.providers == [CPU]
        assert session.run({"a": A, "b": B}, ["y"])[0].tolist() == [[11, 22, 33]]
    assert engine.warnings == []


def test_from_memory_and_by_the_environment(engine, library, add, monkeypatch):
    monkeypatch.setenv("SDX_ORT_LIBRARY", str(library))
    with engine.session(add.read_bytes(), ["ort"]) as session:
        assert session.run({"a": A, "b": B}, ["y"])[0].tolist() == [[11, 22, 33]]


def test_beside_the_program(library, program, tmp_path, add):
    """libonnxruntime.so.1 in the folder of the program is found without being named."""
    shutil.copy2(program, tmp_path / "sardonyx")
    os.symlink(library, tmp_path / "libonnxruntime.so.1")
    env = {key: text for key, text in os.environ.items() if key != "SDX_ORT_LIBRARY"}
    done = subprocess.run([tmp_path / "sardonyx", "run", add, "--provider", "ort", "--json"],
                          capture_output=True, text=True, env=env, timeout=120)
    assert done.returncode == 0, done.stderr
    assert '"providers": ["ort:CPUExecutionProvider"]' in done.stdout.replace('":[', '": [')


def test_cuda_that_cannot_start_says_why(engine, library, add):
    rows = {row["name"]: row for row in engine.providers(library)}
    if rows[CUDA]["starts"]:
        pytest.skip("CUDA starts here")
    with fails(engine, "SDX_NOT_SUPPORTED", f"{CUDA} cannot start: {rows[CUDA]['reason']}"):
        with engine.session(add, [CUDA, "ort"], library):
            pass
    with engine.session(add, [CUDA, "ort"], library, provider_fallback=True) as session:
        assert session.providers == [CPU]
    assert engine.warnings == [f"provider: {CUDA} cannot start: {rows[CUDA]['reason']}"]


def test_start_without_a_model(engine, library, tmp_path):
    """sdx_providers_start says what making a session would say."""
    engine.start()
    engine.start("cpu")
    engine.start("ort", library=library)
    missing = tmp_path / "libnothing.so"
    with fails(engine, "SDX_NOT_SUPPORTED", f"{CPU} cannot start: ", str(missing)):
        engine.start("ort", library=missing)
    with fails(engine, "SDX_NOT_SUPPORTED", "FooExecutionProvider cannot start: "):
        engine.start("FooExecutionProvider", library=library)
    with fails(engine, "SDX_INVALID_ARGUMENT", 'option "threads": cpu has no options'):
        engine.start("cpu", options=[("cpu", "threads", "2")])
    engine.start("FooExecutionProvider", "cpu", library=library, provider_fallback=True)
    assert len(engine.warnings) == 1 and "FooExecutionProvider cannot start" in engine.warnings[0]


def test_auto(engine, library, add):
    started = [row["name"] for row in engine.providers(library)
               if row["starts"] and row["name"] not in (OWN, CPU)]
    with engine.session(add, ["auto"], library) as session:
        assert session.providers == (started + [CPU] if started else [OWN])
    built = [row["name"] for row in engine.providers(library)
             if row["library"] and row["name"] not in (*started, CPU)]
    told = [line for line in engine.warnings if " cannot start: " in line]
    assert told and {line.split()[1] for line in told} <= set(built)


def test_program_auto(sardonyx, library, add, tmp_path):
    """--provider auto: what starts runs; each that does not is told of, with the reason."""
    arguments = ["run", add, "--input", "a=1,2,3", "--shape", "a=1x3", "--json", "--provider", "auto"]
    started = [row["name"] for row in sardonyx("providers", "--ort-library", library, "--json").json["providers"]
               if row["starts"] and row["name"] not in (OWN, CPU)]
    found = sardonyx(*arguments, "--ort-library", library)
    assert found.json["providers"] == (started + [CPU] if started else [OWN])
    assert found.err.count(" cannot start: ") >= 1 or started
    missing = tmp_path / "libnothing.so"
    found = sardonyx(*arguments, "--ort-library", missing)
    assert found.json["providers"] == [OWN] and f"warning: provider: {missing}" in found.err


@pytest.mark.parametrize("name, parts", [
    ("FooExecutionProvider", ["Unknown provider name 'FooExecutionProvider'"]),
    ("x" * 60, ["is one too many or no name"])])
def test_unknown_provider(engine, library, add, name, parts):
    status = "SDX_NOT_SUPPORTED" if len(name) < 48 else "SDX_INVALID_ARGUMENT"
    with fails(engine, status, name, *parts):
        with engine.session(add, [name], library):
            pass


def test_unknown_option(engine, library, add):
    with fails(engine, "SDX_NOT_SUPPORTED", f'{CPU} cannot start: it has no option "speed"'):
        with engine.session(add, ["ort"], library, options=[("ort", "speed", "high")]):
            pass


def test_options_reach_the_provider(engine, library, add):
    """A wrong value of a known key is refused by the provider itself, when it can be opened."""
    starts = {row["name"]: row["starts"] for row in engine.providers(library)}
    if not starts[CUDA]:
        pytest.skip("CUDA does not start here")
    with fails(engine, "SDX_NOT_SUPPORTED", CUDA, "device_id"):
        with engine.session(add, [CUDA], library, options=[(CUDA, "device_id", "many")]):
            pass


def test_wrong_feeds(engine, library, add):
    with engine.session(add, ["ort"], library) as session:
        with fails(engine, "SDX_NOT_FOUND", 'no input is named "c"'):
            session.run({"c": A}, ["y"])
        with fails(engine, "SDX_NOT_FOUND", 'no output is named "z"'):
            session.run({"a": A, "b": B}, ["z"])
        with fails(engine, "SDX_BAD_INPUT", 'input "a": found i64[1,3], expected float[N,3]'):
            session.run({"a": A.astype(np.int64), "b": B}, ["y"])
        assert session.run({"a": A, "b": B}, ["y"])[0].tolist() == [[11, 22, 33]]


def test_errors_carry_the_librarys_text(engine, library):
    made = model([helper.make_node("Reshape", ["x", "s"], ["y"], name="fold")],
                 [value("x", ["N"]), value("s", ["K"], T.INT64)], [value("y", None)])
    with engine.session(made, ["ort"], library) as session:
        with fails(engine, "SDX_RUN_FAILED", f"{CPU}: ", "Reshape", "fold"):
            session.run({"x": np.ones(5, np.float32), "s": np.array([2, 2])}, ["y"])


def test_model_that_the_library_refuses(engine, library):
    made = model([helper.make_node("Relu", ["x"], ["y"])], [value("x", [1])], [value("y", [1])], opset=21)
    newer = onnx.load_from_string(made)
    newer.opset_import[0].version = 99
    with pytest.raises(Failed):
        with engine.session(newer.SerializeToString(), ["ort"], library):
            pass


def test_profile_and_plan_are_the_engines(engine, library, add, tmp_path):
    with fails(engine, "SDX_NOT_SUPPORTED", f"{CPU}: there is a profile only with {OWN}"):
        with engine.session(add, ["ort"], library, profile=True):
            pass
    plan = str(tmp_path / "add.plan").encode()
    with engine.session(add) as session:
        session.run({"a": A, "b": B}, ["y"])
        engine.check(engine.lib.sdx_session_save_plan(session.handle, plan))
    with fails(engine, "SDX_NOT_SUPPORTED", f"{CPU}: a plan file runs only with {OWN}"):
        with engine.session(plan.decode(), ["ort"], library):
            pass
    with engine.session(add, ["ort"], library) as session:
        with fails(engine, "SDX_NOT_SUPPORTED", f"only {OWN} has plan files"):
            engine.check(engine.lib.sdx_session_save_plan(session.handle, plan))
    with engine.session(plan.decode(), ["ort", "cpu"], library, provider_fallback=True) as session:
        assert session.providers == [OWN]
    assert any("plan file" in line for line in engine.warnings)


# ---- what the caller gives beside the model ----

def test_lengths_are_given(engine, library, add):
    for providers in ((), ("ort",)):
        with engine.session(add, providers, library, dims=[("N", 1), ("unused", 5)]) as session:
            assert session.run({"a": A, "b": B}, ["y"])[0].tolist() == [[11, 22, 33]]
    shape = model([helper.make_node("Shape", ["x"], ["y"])], [value("x", ["N", 3])], [value("y", [2], T.INT64)])
    told = Engine(engine.path, log_level=INFO)
    for given in ({"dims": [("N", 7)]}, {"denoted": [("DATA_BATCH", 7)]}):
        named = onnx.load_from_string(shape)
        named.graph.input[0].type.tensor_type.shape.dim[0].denotation = "DATA_BATCH"
        with told.session(named.SerializeToString(), ["ort"], library, **given) as session:
            assert session.run({"x": np.ones((7, 3), np.float32)}, ["y"])[0].tolist() == [7, 3]
    folded = [line for line in told.warnings if "ConstantFolding modified: 1" in line]
    assert len(folded) == 2, told.warnings  # the library knew the length
    told.lib.sdx_context_destroy(told.cx)


W, GIVEN = np.array([1, 2], np.float32), np.array([10, 20], np.float32)


def weighted(external=False, extra=()):
    """y = x + w - (-w), where a library folds -w; w is in the file w.bin when it is external."""
    w = numpy_helper.from_array(W, "w")
    if external:
        w.ClearField("raw_data")
        w.data_location = T.EXTERNAL
        for key, text in (("location", "w.bin"), ("offset", "0"), ("length", "8")):
            w.external_data.add(key=key, value=text)
    return model([helper.make_node("Neg", ["w"], ["v"]), helper.make_node("Add", ["x", "w"], ["a"]),
                  helper.make_node("Sub", ["a", "v"], ["y"])],
                 [value("x", ["N"]), *extra], [value("y", ["N"])], [w])


@pytest.mark.parametrize("how", ["same", "other", "external", "file", "folder", "folder and path"])
def test_initializers_are_given(engine, library, tmp_path, how):
    (tmp_path / "w.bin").write_bytes(GIVEN.tobytes())
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "m.onnx").write_bytes(weighted(external=True))
    made, given = {
        "same": (weighted(), {"given": {"w": W}}),
        "other": (weighted(), {"given": {"w": GIVEN}}),
        "external": (weighted(external=True), {"given": {"w": GIVEN}}),
        "file": (weighted(external=True), {"files": {"w.bin": GIVEN.tobytes()}}),
        "folder": (weighted(external=True), {"folder": tmp_path}),
        "folder and path": (elsewhere / "m.onnx", {"folder": tmp_path})}[how]
    expected = 2 * (W if how == "same" else GIVEN)
    for providers in ((), ("ort",)):
        with engine.session(made, providers, library, **given) as session:
            assert session.run({"x": np.zeros(2, np.float32)}, ["y"])[0].tolist() == expected.tolist()


def test_strings_cannot_be_given(engine, library):
    made = model([helper.make_node("Identity", ["w"], ["y"])], [], [value("y", [2], T.STRING)],
                 [helper.make_tensor("w", T.STRING, [2], [b"a", b"b"])])
    texts = np.array(["no", "yes, and longer than small"], object)
    with engine.session(made, given={"w": texts}) as session:
        assert session.run({}, ["y"])[0].tolist() == texts.tolist()
    with fails(engine, "SDX_INVALID_ARGUMENT", f"{CPU}: Buffer containing the initializer must be owned by the user"):
        with engine.session(made, ["ort"], library, given={"w": texts}):
            pass


def test_input_given_as_initializer(engine, library):
    made = model([helper.make_node("Add", ["x", "b"], ["y"])], [value("x", [2]), value("b", [2])], [value("y", [2])])
    with engine.session(made, given={"b": W}) as session:
        assert session.run({"x": W}, ["y"])[0].tolist() == [2, 4]
    with fails(engine, "SDX_NOT_SUPPORTED", f'{CPU}: the file has no dense initializer "b"'):
        with engine.session(made, ["ort"], library, given={"b": W}):
            pass
    with engine.session(made, ["ort", "cpu"], library, given={"b": W}, provider_fallback=True) as session:
        assert session.providers == [OWN]


# ---- values ----

def both(engine, library, made, feeds, names):
    """The outputs of our engine and of the library."""
    found = []
    for providers in ((), ("ort",)):
        with engine.session(made, providers, library) as session:
            found.append(session.run(feeds, names))
    return found


def test_strings(engine, library):
    made = model([helper.make_node("Identity", ["x"], ["y"])], [value("x", ["N", 2], T.STRING)],
                 [value("y", ["N", 2], T.STRING)])
    texts = np.array([["a", "\u03b2\u03b3"], ["", "a longer text than any small buffer holds"]], object)
    for (found,) in both(engine, library, made, {"x": texts}, ["y"]):
        assert found.tolist() == texts.tolist()
    (ours,), (theirs,) = both(engine, library, made, {"x": np.empty((0, 2), object)}, ["y"])
    assert ours.shape == theirs.shape == (0, 2)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64, np.bool_])
def test_numbers(engine, library, dtype):
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    made = model([helper.make_node("Identity", ["x"], ["y"])], [value("x", None, kind)],
                 [value("y", None, kind)])
    for array in (np.arange(6).reshape(1, 2, 3), np.ones(()), np.ones((0, 4))):
        (found,), (theirs,) = both(engine, library, made, {"x": array.astype(dtype)}, ["y"])
        assert found.dtype == theirs.dtype and found.tolist() == theirs.tolist()
        assert theirs.shape == array.shape


def test_scalar_fed_as_array(engine, library):
    made = model([helper.make_node("Add", ["x", "x"], ["y"])], [value("x", [])], [value("y", [])])
    for (found,) in both(engine, library, made, {"x": np.array([4], np.float32)}, ["y"]):
        assert found.shape == () and found == 8


def sequence(name, kind=T.FLOAT):
    return helper.make_tensor_sequence_value_info(name, kind, None)


def test_sequences(engine, library):
    made = model([helper.make_node("SequenceInsert", ["s", "x"], ["y"]),
                  helper.make_node("SequenceEmpty", [], ["none"])],
                 [sequence("s"), value("x", None)], [sequence("y"), sequence("none")])
    items = [np.ones((2, 2), np.float32), np.arange(3, dtype=np.float32)]
    for y, none in both(engine, library, made, {"s": items, "x": A}, ["y", "none"]):
        assert [item.tolist() for item in y] == [item.tolist() for item in (*items, A)]
        assert none == []
    with engine.session(made, ["ort"], library) as session:
        with fails(engine, "SDX_NOT_SUPPORTED", 'input "s": an empty sequence'):
            session.run({"s": [], "x": A}, ["y"])


def test_maps(engine, library):
    graph = helper.make_graph(
        [helper.make_node("ZipMap", ["x"], ["y"], domain="ai.onnx.ml", classlabels_strings=["no", "yes"])],
        "g", [value("x", ["N", 2])],
        [helper.make_value_info("y", helper.make_sequence_type_proto(helper.make_map_type_proto(
            T.STRING, helper.make_tensor_type_proto(T.FLOAT, []))))])
    made = helper.make_model(graph, ir_version=8, opset_imports=[
        helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 1)]).SerializeToString()
    for (found,) in both(engine, library, made, {"x": np.array([[1, 2], [3, 4]], np.float32)}, ["y"]):
        assert [(keys.tolist(), values.tolist()) for keys, values in found] == [
            (["no", "yes"], [1, 2]), (["no", "yes"], [3, 4])]


def optional(name):
    kind = helper.make_optional_type_proto(helper.make_tensor_type_proto(T.FLOAT, None))
    return helper.make_value_info(name, kind)


def test_optionals(engine, library):
    made = model([helper.make_node("Identity", ["x"], ["y"])], [optional("x")], [optional("y")])
    for (found,) in both(engine, library, made, {"x": A}, ["y"]):
        assert found.tolist() == A.tolist()
    made = model([helper.make_node("Optional", [], ["y"], type=helper.make_tensor_type_proto(T.FLOAT, [1]))],
                 [], [optional("y")])
    for (found,) in both(engine, library, made, {}, ["y"]):
        assert found is None


def test_output_of_the_caller(engine, library, add):
    """A tensor given as output is written into, without a copy of it."""
    with engine.session(add, ["ort"], library) as session:
        a, b, y = engine.tensor(A), engine.tensor(B), engine.tensor(np.zeros((1, 3), np.float32))
        outputs = (ctypes.c_void_p * 1)(y.value)
        session.run_handles({"a": a, "b": b}, ["y"], outputs)
        assert outputs[0] == y.value and engine.array(y).tolist() == [[11, 22, 33]]
        wrong = engine.tensor(np.zeros((2, 3), np.float32))
        with pytest.raises(Failed):
            session.run_handles({"a": a, "b": b}, ["y"], (ctypes.c_void_p * 1)(wrong.value))
        for handle in (a, b, y, wrong):
            engine.lib.sdx_tensor_destroy(handle)


def test_tensor_that_grows(engine, library):
    made = model([helper.make_node("Concat", ["past", "new"], ["present"], axis=1)],
                 [value("past", [1, "P", 2]), value("new", [1, "N", 2])], [value("present", [1, "T", 2])])
    dims = (ctypes.c_int64 * 3)(1, 0, 2)
    for providers in ((), ("ort",)):
        past = ctypes.c_void_p()
        with engine.session(made, providers, library) as session:
            engine.check(engine.lib.sdx_tensor_create_growing(engine.cx, 1, 3, dims, 1, ctypes.c_int64(3),
                                                              ctypes.byref(past)))
            for step in range(3):
                new = engine.tensor(np.full((1, 1, 2), step, np.float32))
                outputs = (ctypes.c_void_p * 1)(past.value)
                session.run_handles({"past": past, "new": new}, ["present"], outputs)
                assert engine.array(past).tolist() == [[[s, s] for s in range(step + 1)]]
                if step == 2:
                    with pytest.raises(Failed):
                        session.run_handles({"past": past, "new": new}, ["present"], outputs)
                engine.lib.sdx_tensor_destroy(new)
            engine.lib.sdx_tensor_destroy(past)


def long_loop():
    """Adds 1 so often that no machine is done within the test."""
    body = helper.make_graph([helper.make_node("Identity", ["c"], ["c2"]),
                              helper.make_node("Add", ["v", "one"], ["v2"])], "body",
                             [value("i", [], T.INT64), value("c", [], T.BOOL), value("v", [4])],
                             [value("c2", [], T.BOOL), value("v2", [4])])
    one = numpy_helper.from_array(np.ones(4, np.float32), "one")
    often = numpy_helper.from_array(np.array(1 << 40), "often")
    go = numpy_helper.from_array(np.array(True), "go")
    return model([helper.make_node("Loop", ["often", "go", "x"], ["y"], body=body)], [value("x", [4])],
                 [value("y", [4])], [one, often, go])


def test_cancel(engine, library):
    with engine.session(long_loop(), ["ort"], library) as session:
        done = threading.Event()

        def cancel():
            while not done.wait(0.05):
                engine.lib.sdx_cancel(session.handle)
        thread = threading.Thread(target=cancel)
        thread.start()
        try:
            with fails(engine, "SDX_CANCELLED", "the run was cancelled"):
                session.run({"x": np.zeros(4, np.float32)}, ["y"])
        finally:
            done.set()
            thread.join()
    with engine.session(model([helper.make_node("Relu", ["x"], ["y"])], [value("x", [4])], [value("y", [4])]),
                        ["ort"], library) as session:
        engine.lib.sdx_cancel(session.handle)  # between runs: the next one is not cancelled
        assert session.run({"x": np.ones(4, np.float32)}, ["y"])[0].tolist() == [1] * 4
    with engine.session(long_loop(), ["ort"], library, cancel_holds=True) as session:
        engine.lib.sdx_cancel(session.handle)
        with fails(engine, "SDX_CANCELLED", "the run was cancelled"):
            session.run({"x": np.zeros(4, np.float32)}, ["y"])


def test_many_sessions_one_after_the_other(engine, library, add):
    for _ in range(5):
        with engine.session(add, ["ort"], library) as first, engine.session(add, ["ort"], library) as second:
            assert first.run({"a": A, "b": B}, ["y"])[0].tolist() == [[11, 22, 33]]
            assert second.run({"a": B, "b": B}, ["y"])[0].tolist() == [[20, 40, 60]]


def test_siblings_have_one_session_in_common(engine, library, add):
    told = Engine(engine.path, log_level=INFO)
    wrong = []

    def work(session, number):
        for i in range(50):
            found = session.run({"a": A * number, "b": B + i}, ["y"])[0]
            if not np.array_equal(found, A * number + B + i):
                wrong.append((number, i))
    with told.session(add, ["ort"], library) as first:
        sessions = [first, *(first.sibling() for _ in range(3))]
        threads = [threading.Thread(target=work, args=(session, number))
                   for number, session in enumerate(sessions)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert wrong == [] and all(session.providers == [CPU] for session in sessions)
        for session in sessions[1:]:
            session.destroy()
        made = [line for line in told.warnings if "Session successfully initialized" in line]
        assert len(made) == 1, told.warnings
        with told.session(add, ["ort"], library) as other:
            with pytest.raises(Failed) as failed:
                first.sibling(other.model)
        assert failed.value.args == ("SDX_INVALID_ARGUMENT", "the sibling is of another model or context")
    told.lib.sdx_context_destroy(told.cx)


def test_siblings_are_cancelled_apart(engine, library):
    with engine.session(long_loop(), ["ort"], library, cancel_holds=True) as first:
        second = first.sibling()
        engine.lib.sdx_cancel(second.handle)
        with pytest.raises(Failed) as failed:
            second.run({"x": np.zeros(4, np.float32)}, ["y"])
        assert failed.value.args[0] == "SDX_CANCELLED"
        second.destroy()
    with engine.session(model([helper.make_node("Relu", ["x"], ["y"])], [value("x", [4])], [value("y", [4])]),
                        ["ort"], library, cancel_holds=True) as first:
        second = first.sibling()
        engine.lib.sdx_cancel(first.handle)
        assert second.run({"x": np.ones(4, np.float32)}, ["y"])[0].tolist() == [1] * 4
        second.destroy()


def test_sibling_of_the_engine(engine, library, add):
    """Where nothing of the list started before, nothing is tried again."""
    with engine.session(add, ["FooExecutionProvider", "cpu"], library, provider_fallback=True) as first:
        second = first.sibling()
        assert second.providers == [OWN] and len(engine.warnings) == 1
        assert second.run({"a": A, "b": B}, ["y"])[0].tolist() == [[11, 22, 33]]
        second.destroy()


# ---- the program ----

def test_program_lists(sardonyx, library):
    rows = {row["name"]: row for row in sardonyx("providers", "--ort-library", library, "--json").json["providers"]}
    assert rows[OWN]["starts"] and rows[CPU]["starts"] and set(rows) >= KNOWN
    text = sardonyx("providers", "--ort-library", library).out
    assert f"yes  {OWN}" in text and f"yes  {CPU}" in text


def test_program_runs(sardonyx, library, add):
    arguments = ["run", add, "--input", "a=1,2,3", "--shape", "a=1x3", "--json"]
    found = sardonyx(*arguments, "--provider", "ort", "--ort-library", library).json
    assert found["providers"] == [CPU]
    assert sardonyx(*arguments).json["providers"] == [OWN]
    assert found["outputs"] == sardonyx(*arguments).json["outputs"]
    found = sardonyx(*arguments, "--provider", "Foo,cpu", "--ort-library", library, code=1)
    assert "Foo cannot start" in found.json["error"]
    found = sardonyx(*arguments, "--provider", "Foo,cpu", "--ort-library", library, "--provider-fallback")
    assert found.json["providers"] == [OWN] and "warning: provider: Foo cannot start" in found.err


@pytest.mark.parametrize("arguments", [["--provider", ""], ["--provider", "cpu,,ort"],
                                       ["--provider-option", "CUDAExecutionProvider"],
                                       ["--provider-option", "device_id=1"]])
def test_program_wrong_usage(sardonyx, add, arguments):
    assert "--provider" in sardonyx("run", add, *arguments, code=2).err


def test_program_bench(sardonyx, library, add):
    found = sardonyx("bench", add, "--runs", "3", "--provider", "ort", "--ort-library", library, "--json")
    assert found.json["providers"] == [CPU]


# ---- the zoo ----

SMALL = 3_000_000
MODELS = [pytest.param(row["name"], id=row["name"],
                       marks=() if int(row["params"]) <= SMALL and int(row["macs"]) <= 200_000_000
                       and int(row["nodes"]) <= 1000 else pytest.mark.slow)
          for row in zoo.rows(zoo.shared_folder() / "zoo/INDEX.tsv")]


@pytest.mark.parametrize("name", MODELS)
def test_zoo(sardonyx, library, shared, name):
    """The library without optimisations gives the recorded outputs, which our engine is held against
    in tests/models/test_zoo.py: so the two agree."""
    folder = zoo.zoo_case(shared, name)
    if name == "sk_logreg_zipmap":
        pytest.skip("its expected file holds doubles where the model says float")
    done = sardonyx("test", folder, "--provider", "ort", "--ort-library", library, "--level", "none", "--json",
                    "--rtol", "1e-3", "--atol", "1e-5", "--peak", "1e-4", code=None, timeout=900)
    assert zoo.failures(done.json["cases"]) == []


# ---- programs written for ONNX Runtime, on our libonnxruntime.so.1 ----

def borrowed(c_client, our_ort, models, provider, library):
    """{name: text} of the lines that borrowed_client prints on our library."""
    env = {**os.environ, "SDX_ORT_LIBRARY": str(library or "")}
    done = subprocess.run([c_client("borrowed_client"), our_ort, models, provider], capture_output=True,
                          text=True, env=env, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return dict(line.split(" | ", 1) for line in done.stdout.rstrip("\n").split("\n"))


def test_programs_get_providers_of_the_library(c_client, our_ort, models, library, engine):
    starts = {row["name"]: row for row in engine.providers(library)}
    found = borrowed(c_client, our_ort, models, CPU, library)
    assert found["append"] == "ok" and found["end"] == "reached"
    assert [line for line in found if line.startswith("y")], found
    assert found["own.session"].endswith(
        f"{CPU}: Mine is the program's own; only those of a library go to another runtime")
    if starts[CUDA]["starts"]:
        assert found["cuda.append"] == "ok"
    else:
        text = "OrtSessionOptionsAppendExecutionProvider_Cuda: Failed to load shared library: "
        assert text + f"{CUDA} cannot start: {starts[CUDA]['reason']}" in found["cuda.append"]
    if not starts[CUDA]["starts"]:
        found = borrowed(c_client, our_ort, models, CUDA, library)
        assert f"Unknown provider name '{CUDA}'" in found["append"]
        assert f"{CUDA} cannot start: {starts[CUDA]['reason']}" in found["append"]
    own = borrowed(c_client, our_ort, models, "CPU", library)
    assert own["own.session"] == "ok"
    assert {k: v for k, v in own.items() if k[0] == "y"} == {k: v for k, v in found.items() if k[0] == "y"}


def test_programs_without_a_library(c_client, our_ort, models):
    found = borrowed(c_client, our_ort, models, "XNNPACK", None)
    assert found["cuda.append"].endswith("OrtSessionOptionsAppendExecutionProvider_Cuda: Failed to load shared library")
    assert found["append"].rstrip().endswith("XNNPACK execution provider is not supported in this build.")
    assert found["end"] == "reached"
