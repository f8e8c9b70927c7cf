# SPDX-License-Identifier: Apache-2.0
"""The package as such: its names, stubs, docstrings, modules, and what beside sessions it offers."""
import ast
import importlib
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import python_models as models

# Names of onnxruntime that are its own affair: packaging, CUDA.
FOREIGN = {"capi", "contextlib", "cuda_version", "import_capi_exception", "onnxruntime_validation",
           "package_name", "preload_dlls", "print_debug_info", "version", "backend", "datasets",
           "quantization", "tools", "transformers"}


def public(thing):
    return {name for name in dir(thing) if not name.startswith("_")}


def test_all_names_of_onnxruntime(sdx, ort):
    assert public(ort) - FOREIGN - public(sdx) == set()


@pytest.mark.parametrize("name", ["InferenceSession", "SessionOptions", "RunOptions", "OrtValue", "IOBinding",
                                  "ModelMetadata", "NodeArg", "SparseTensor", "OrtDevice",
                                  "GraphOptimizationLevel", "ExecutionMode", "ExecutionOrder",
                                  "OrtMemoryInfo", "OrtArenaCfg", "OrtEpDevice", "OrtSparseFormat",
                                  "OrtMemType", "OrtAllocatorType"])
def test_all_members(sdx, ort, name):
    theirs, ours = getattr(ort, name), getattr(sdx, name)
    here = public(ours)
    if hasattr(ours, "__members__"):
        here |= public(ours(0)) | {"name", "value"} | set(ours.__members__)
    elif name == "OrtArenaCfg":
        here |= public(ours({}))
    assert public(theirs) - here == set()


def test_exceptions(sdx, ort):
    inner = importlib.import_module("sardonyx.capi.onnxruntime_pybind11_state")
    theirs = importlib.import_module("onnxruntime.capi.onnxruntime_pybind11_state")
    for name, thing in vars(theirs).items():
        if isinstance(thing, type) and issubclass(thing, Exception):
            assert getattr(inner, name) is getattr(sdx, name)
            assert getattr(sdx, name).__bases__ == (Exception,)
            assert getattr(sdx, name).__module__ == "sardonyx"
    assert inner.InferenceSession is sdx.InferenceSession


def test_everything_is_documented(sdx):
    for name in public(sdx):
        thing = getattr(sdx, name)
        assert thing.__doc__, name
        if isinstance(thing, type):
            for member in public(thing) - public(Exception) - public(int):
                assert inspect.getdoc(getattr(thing, member)) is not None, f"{name}.{member}"


def test_everything_tells_its_signature(sdx):
    for name in public(sdx._sardonyx):
        thing = getattr(sdx._sardonyx, name)
        members = public(thing) - public(Exception) if isinstance(thing, type) else ()
        for function in [getattr(thing, member) for member in members] or [thing]:
            if callable(function) and not isinstance(function, type):
                assert inspect.signature(function), function


def test_stubs_name_everything(sdx):
    """Every public name of the extension, with its members, is in the stub, and no other."""
    stub = Path(sdx.__file__).parent / "_sardonyx.pyi"
    tree = ast.parse(stub.read_text(encoding="utf-8"))
    extension = sdx._sardonyx
    told = {}
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            members = getattr(node, "body", [])
            told[node.name] = {m.name for m in members if isinstance(m, ast.FunctionDef)}
            told[node.name] |= {m.target.id for m in members if isinstance(m, ast.AnnAssign)}
        elif isinstance(node, ast.Assign):
            told[node.targets[0].id] = None
    assert {name for name in told if not name.startswith("_")} == public(extension)
    for name, members in told.items():
        thing = getattr(extension, name, None)
        if isinstance(thing, type) and members is not None:
            real = public(thing) - public(Exception if issubclass(thing, Exception) else object)
            assert {m for m in members if not m.startswith("_")} == real, name


def test_stubtest(sdx, package_env):
    """mypy compares signatures, where it is installed."""
    pytest.importorskip("mypy")
    done = subprocess.run([sys.executable, "-m", "mypy.stubtest", "sardonyx._sardonyx", "--concise",
                           "--ignore-missing-stub", "--ignore-disjoint-bases"], env=package_env,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:]


def test_second_name(sdx, package_env):
    """The same file as the inner module of onnxruntime: its classes carry that name, and nothing is
    shared with the first."""
    script = (
        "import importlib.machinery as m, importlib.util as u, sys\n"
        "import sardonyx\n"
        "name = 'onnxruntime.capi.onnxruntime_pybind11_state'\n"
        "path = sardonyx._sardonyx.__file__\n"
        "spec = u.spec_from_file_location(name, path, loader=m.ExtensionFileLoader(name, path))\n"
        "C = u.module_from_spec(spec)\n"
        "spec.loader.exec_module(C)\n"
        "assert C.Fail.__module__ == C.InferenceSession.__module__ == name\n"
        "assert C.Fail is not sardonyx.Fail\n"
        "try:\n"
        "    C.InferenceSession('/nope.onnx')\n"
        "except C.NoSuchFile as error:\n"
        "    print(type(error))\n")
    done = subprocess.run([sys.executable, "-c", script], env=package_env, capture_output=True, text=True)
    assert "onnxruntime.capi.onnxruntime_pybind11_state.NoSuchFile" in done.stdout, done.stderr


def test_stable_abi(sdx):
    """The extension asks CPython for nothing that the limited API of 3.9 lacks."""
    path = sdx._sardonyx.__file__
    if ".abi3." not in path:
        pytest.skip("not built for the limited API")
    done = subprocess.run(["nm", "-D", "--undefined-only", path], capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip("no nm")
    asked = set(re.findall(r" U (_?Py\w+)", done.stdout))
    newer = {"PyObject_GetBuffer", "PyBuffer_Release", "PyUnicode_AsUTF8AndSize", "PyUnicode_AsUTF8",
             "PyType_FromModuleAndSpec", "PyType_GetModuleState", "PyModule_AddObjectRef",
             "PyObject_Vectorcall", "PyObject_CallNoArgs", "PyObject_CallOneArg", "PyType_GetModule",
             "PyObject_GenericGetDict", "PyMem_RawMalloc", "PyMem_RawFree", "Py_NewRef"}
    assert asked and not asked & newer
    defined = subprocess.run(["nm", "-D", "--defined-only", path], capture_output=True, text=True).stdout
    assert set(re.findall(r" T (\w+)", defined)) == {"PyInit__sardonyx", "PyInit_onnxruntime_pybind11_state"}


def test_portable_arrays(sdx, package_env):
    """Without NumPy's table of functions everything works, with copies."""
    script = (
        "import sys, types, numpy as np\n"
        "import numpy._core._multiarray_umath as inner\n"
        "fake = types.ModuleType('numpy._core._multiarray_umath')\n"
        "sys.modules['numpy._core._multiarray_umath'] = fake\n"
        "import sardonyx\n"
        "sys.modules['numpy._core._multiarray_umath'] = inner\n"
        "s = sardonyx.InferenceSession(sys.stdin.buffer.read())\n"
        "for data in (np.arange(6, dtype='f4').reshape(2, 3), np.arange(12, dtype='f4').reshape(2, 6)[:, ::2],\n"
        "             np.zeros((0, 3), 'f4'), np.arange(6, dtype='>f4').reshape(2, 3)):\n"
        "    (y,) = s.run(None, {'x': data})\n"
        "    assert y.flags.owndata and y.dtype == np.float32, y.flags\n"
        "    np.testing.assert_array_equal(y, data)\n"
        "v = sardonyx.OrtValue.ortvalue_from_numpy(np.arange(3, dtype='f4'))\n"
        "assert v.numpy().tolist() == [0, 1, 2]\n")
    if tuple(map(int, np.__version__.split(".")[:1])) < (2,):
        pytest.skip("the inner module of this NumPy has another name")
    done = subprocess.run([sys.executable, "-c", script], env=package_env, capture_output=True,
                          input=models.identity(shape=("N", "M")))
    assert done.returncode == 0, done.stderr.decode()


def test_no_telemetry_no_files(sdx, package_env, tmp_path):
    """Importing and running writes nothing beside it."""
    script = ("import sys, numpy, sardonyx\n"
              "sardonyx.InferenceSession(sys.stdin.buffer.read()).run(None, {'x': numpy.zeros(3, 'f4')})\n")
    env = dict(package_env, HOME=str(tmp_path), XDG_CACHE_HOME=str(tmp_path), TMPDIR=str(tmp_path),
               PYTHONDONTWRITEBYTECODE="1")
    done = subprocess.run([sys.executable, "-c", script], env=env, cwd=tmp_path, capture_output=True,
                          input=models.identity())
    assert done.returncode == 0, done.stderr.decode()
    assert os.listdir(tmp_path) == []


def test_check(sdx, tmp_path):
    assert sdx.check(models.identity()) == []
    (tmp_path / "m.onnx").write_bytes(models.identity())
    assert sdx.check(tmp_path / "m.onnx") == []
    faults = sdx.check(models.make([models.helper.make_node("Nope", ["x"], ["y"])], [models.value("x")],
                                   [models.value("y")]))
    assert faults and "Nope" in faults[0]
    with pytest.raises(sdx.NoSuchFile):
        sdx.check(tmp_path / "no.onnx")


def test_infer_and_convert(sdx, tmp_path):
    import onnx
    source, to = tmp_path / "m.onnx", tmp_path / "n.onnx"
    source.write_bytes(models.make([models.helper.make_node("Relu", ["x"], ["t"]),
                                    models.helper.make_node("Abs", ["t"], ["y"])],
                                   [models.value("x", shape=(2, 3))], [models.value("y", shape=(2, 3))]))
    sdx.infer_shapes(source, to)
    assert [v.name for v in onnx.load(to).graph.value_info] == ["t"]
    sdx.convert_version(source, 13, to)
    assert onnx.load(to).opset_import[0].version == 13
    sdx.convert_version(source, {"": 17}, to)
    assert onnx.load(to).opset_import[0].version == 17
    with pytest.raises(TypeError):
        sdx.convert_version(source, "13", to)


def test_operators(sdx):
    rows = sdx.operators()
    assert {"domain", "name", "since", "deprecated", "support", "note", "types"} == set(rows[0])
    assert any(row["name"] == "Conv" and row["support"] for row in rows)
