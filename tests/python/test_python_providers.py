# SPDX-License-Identifier: Apache-2.0
"""What runs a session: our engine, or the providers of a real ONNX Runtime library.

The library is SDX_ORT_LIBRARY, or that of the npm package onnxruntime-node where tests/abi put it.
It is loaded in a process of its own: another one may be in this one."""
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
OWN, CPU, CUDA = "CPUExecutionProvider", "ort:CPUExecutionProvider", "CUDAExecutionProvider"
CHILD = """
import json, sys
sys.path.insert(0, sys.argv[1])
import numpy as np, sardonyx
import python_models as models
sardonyx.set_default_logger_severity(4)
FEEDS = {"x": np.arange(12, dtype="f4").reshape(3, 4), "w": np.arange(12, dtype="f4").reshape(4, 3)}
def session(providers, **named):
    return sardonyx.InferenceSession(models.matmul(), providers=providers, **named)
def told(made):
    return [made.get_providers(), made.get_provider_options(), made.run(None, FEEDS)[0].tolist()]
def added(name):
    options = sardonyx.SessionOptions()
    options.add_provider(name, {})
    return sardonyx.InferenceSession(models.matmul(), options)
def given(name):
    options = sardonyx.SessionOptions()
    options.add_initializer("b", sardonyx.OrtValue.ortvalue_from_numpy(np.array([5], "f4")))
    options.add_free_dimension_override_by_name("N", 2)
    return sardonyx.InferenceSession(models.overridable(), options, providers=[name])
def custom(library, name, feeds, provider):
    sys.path.insert(0, sys.argv[1] + "/../abi")
    import family_models
    options = sardonyx.SessionOptions()
    options.register_custom_ops_library(library)
    made = sardonyx.InferenceSession(family_models.custom_models()[name].SerializeToString(), options,
                                     providers=[provider])
    found = [made.run(None, feeds)[0].tolist() for _ in range(2)][1]
    return [found, made.get_providers()]
def at_once(made):
    from concurrent.futures import ThreadPoolExecutor
    feeds = {"x": np.ones((200000, 4), "f4"), "w": np.ones((4, 3), "f4")}
    work = lambda _: [bool((made.run(None, feeds)[0] == 4).all()) for _ in range(10)]
    with ThreadPoolExecutor(4) as pool:
        return sum(pool.map(work, range(4)), [])
def failure(*arguments, **named):
    try:
        return told(session(*arguments, **named))
    except Exception as error:
        return str(error)
print(json.dumps(eval(sys.argv[2])))
"""


@pytest.fixture(scope="session")
def library(build):
    """The path of a real ONNX Runtime library."""
    given = os.environ.get("SDX_ORT_LIBRARY")
    if given:
        return Path(given)
    clients = Path(os.environ.get("SDX_CLIENTS", build / "clients"))
    found = sorted(clients.glob("node/node_modules/onnxruntime-node/bin/*/linux/x64/libonnxruntime.so.1"))
    if not found:
        pytest.skip("no ONNX Runtime library: SDX_ORT_LIBRARY names none, and tests/abi fetched none")
    return found[0]


@pytest.fixture
def ask(sdx, package_env):
    """ask(expression, library): its value in a process where SDX_ORT_LIBRARY is `library`."""
    def run(expression, path=None):
        env = dict(package_env)
        env.pop("SDX_ORT_LIBRARY", None)
        if path:
            env["SDX_ORT_LIBRARY"] = str(path)
        done = subprocess.run([sys.executable, "-c", CHILD, str(HERE), expression], env=env,
                              capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)
    return run


def test_own_engine(ask, tmp_path):
    nowhere = tmp_path / "libonnxruntime.so.1"
    for providers in ("None", "[]", "['CPUExecutionProvider']", "['cpu']", "['auto']",
                      "['CPUExecutionProvider', 'cpu']"):
        names, options, _ = ask(f"told(session({providers}))", nowhere)
        assert names == [OWN] and options == {OWN: {}}, providers
    assert ask("sardonyx.get_available_providers()", nowhere) == [OWN]
    assert CPU not in ask("sardonyx.get_all_providers()", nowhere)


def test_without_a_library(ask, tmp_path):
    path = tmp_path / "missing.so"
    for name in (CUDA, CPU, "FooExecutionProvider"):
        for rest in ("", f", '{OWN}'"):
            text = ask(f"failure(['{name}'{rest}])", path)
            assert f"{name} cannot start: " in text and str(path) in text and "\n" not in text, text


def test_results_of_the_library(ask, library):
    ours = ask("told(session(None))", library)
    theirs = ask(f"told(session(['{CPU}']))", library)
    assert ours[0] == [OWN] and theirs[0] == [CPU] and theirs[1] == {CPU: {}}
    assert ours[2] == theirs[2]
    assert ask("told(session(['ort']))", library) == theirs
    assert ask(f"told(session(['{CPU}', '{OWN}']))", library) == theirs
    assert ask(f"told(session(['{OWN}', '{CPU}']))", library) == ours


def test_auto_is_what_starts(ask, library):
    names, available = ask("[session(['auto']).get_providers(), sardonyx.get_available_providers()]",
                           library)
    assert names == [name for name in available if name != CPU] or names[-1] == CPU
    assert available[-2:] == [OWN, CPU]
    assert set(available) <= set(ask("sardonyx.get_all_providers()", library))
    for name in available:
        assert name in ask(f"told(session(['{name}']))", library)[0]
    assert ask("session('auto').get_providers()", library) == names
    assert ask("added('auto').get_providers()", library) == names
    for call in ("failure(['auto'], provider_options=[{'device_id': 1}])", "failure([('auto', {'device_id': 1})])"):
        assert 'option "device_id": auto has no options' in ask(call, library)


@pytest.mark.parametrize("call", ["session('auto')", "session(['auto'])", "added('auto')"])
def test_auto_tells_what_does_not_start(sdx, package_env, library, call):
    code = f"(sardonyx.set_default_logger_severity(2), {call}.get_providers())[1]"
    for path, reason in ((library, " cannot start: "), ("/nothing/there.so", "/nothing/there.so")):
        done = subprocess.run([sys.executable, "-c", CHILD, str(HERE), code], capture_output=True, text=True,
                              env=dict(package_env, SDX_ORT_LIBRARY=str(path)), timeout=120)
        assert done.returncode == 0, done.stderr
        assert reason in done.stderr or len(json.loads(done.stdout)) > 1, done.stderr


def test_no_other_text_is_a_list(ask):
    assert ask("failure('cpu')") == "'providers' should be a sequence."
    assert ask("failure('auto', provider_options=[{}])") == "'providers' should be a sequence."


def test_a_provider_that_does_not_start(ask, library):
    if CUDA in ask("sardonyx.get_available_providers()", library):
        pytest.skip("CUDA starts here")
    for providers in (f"['{CUDA}']", f"['{CUDA}', '{OWN}']", f"[('{CUDA}', {{'device_id': 1}})]"):
        text = ask(f"failure({providers})", library)
        assert f"{CUDA} cannot start: " in text, text


def test_options_reach_the_provider(ask, library):
    for call in (f"failure([('{CPU}', {{'depth': 3}})])",
                 f"failure(['{CPU}'], provider_options=[{{'depth': 3}}])"):
        text = ask(call, library)
        assert f"{CPU} cannot start: " in text and '"depth"' in text, text


def test_a_change_of_providers(ask, library):
    steps = ("(lambda s: [s.get_providers(), s.set_providers(['ort']), s.get_providers(), "
             "s.set_providers(), s.get_providers()])(session(None))")
    assert ask(steps, library) == [[OWN], None, [CPU], None, [OWN]]


def test_pickled_with_its_provider(ask, library):
    code = f"__import__('pickle').loads(__import__('pickle').dumps(session(['{CPU}']))).get_providers()"
    assert ask(code, library) == [CPU]


def test_stand_in_has_the_names_of_onnxruntime(ask, library):
    """The extension as onnxruntime_pybind11_state: no name that ONNX Runtime does not have."""
    code = ("(lambda u: (lambda m: (m[0].loader.exec_module(m[1]), m[1].get_available_providers(), "
            "m[1].get_all_providers(), m[1].InferenceSession(models.matmul(), providers=['ort'])"
            ".get_providers())[1:])((lambda s: (s, u.module_from_spec(s)))(u.spec_from_file_location("
            "'onnxruntime_pybind11_state', sardonyx._sardonyx.__file__))))"
            "(__import__('importlib.util').util)")
    available, known, running = ask(code, library)
    assert available[-1] == OWN and CPU not in available + known + running and running == [OWN]


def test_what_the_options_give(ask, library):
    """Lengths and initializers reach the library, as they reach our engine."""
    text = ("[given(name).run(None, {'x': np.zeros(2, 'f4')})[0].tolist()"
            " for name in ('cpu', 'ort:CPUExecutionProvider')]")
    assert ask(text, library) == [[5.0, 5.0]] * 2


@pytest.fixture(scope="session")
def custom_ops(tmp_path_factory):
    """The library of operators that tests/abi has."""
    if not shutil.which("gcc"):
        pytest.skip("no gcc")
    source = HERE.parent / "abi/clients/c/custom_ops_library.c"
    library = tmp_path_factory.mktemp("ops") / "libcustom_ops.so"
    subprocess.run(["gcc", "-std=gnu17", "-fPIC", "-shared", "-fvisibility=hidden", "-I",
                    HERE.parents[1] / "include", source, "-o", library], check=True)
    return library


@pytest.mark.parametrize("name, feeds", [
    ("scale", '{"x": np.ones((3, 2), "f4")}'), ("any", '{"x": np.arange(4)}'),
    ("shout", '{"x": np.array(["a", "long enough to need memory"])}')])
def test_custom_operators(sdx, package_env, library, custom_ops, name, feeds):
    """The library keeps the table of functions in a variable, as most do; it serves both runtimes in turn."""
    code = (f"[custom('{custom_ops}', '{name}', {feeds}, provider)"
            f" for provider in ('cpu', '{CPU}', 'cpu', '{CPU}')]")
    done = subprocess.run([sys.executable, "-c", CHILD, str(HERE), code], capture_output=True, text=True,
                          env=dict(package_env, SDX_ORT_LIBRARY=str(library)), timeout=120)
    assert done.returncode == 0, done.stderr[-4000:]
    rows = json.loads(done.stdout.strip().split("\n")[-1])
    assert [providers for _, providers in rows] == [[OWN], [CPU]] * 2
    assert [found for found, _ in rows] == [rows[0][0]] * 4


def test_operators_that_cannot_serve_two(sdx, package_env, library, custom_ops, tmp_path):
    """As those in C++ that export Ort::Global<void>::api_."""
    shared = tmp_path / "libshared_ops.so"
    source = HERE.parent / "abi/clients/c/custom_ops_library.c"
    subprocess.run(["gcc", "-std=gnu17", "-fPIC", "-shared", "-fvisibility=hidden", "-I", HERE.parents[1] / "include",
                    source, "-o", shared, "-Wl,--defsym=_ZN3Ort6GlobalIvE4api_E=RegisterCustomOps"], check=True)
    code = f"custom('{shared}', 'scale', {{'x': np.ones((3, 2), 'f4')}}, '{CPU}')"
    done = subprocess.run([sys.executable, "-c", CHILD, str(HERE), code], capture_output=True, text=True,
                          env=dict(package_env, SDX_ORT_LIBRARY=str(library)), timeout=120)
    assert done.returncode == 1
    assert f"{CPU}: Scale is of a library that exports its table of functions" in done.stderr.strip().split("\n")[-1]


def test_threads_share_the_librarys_session(sdx, package_env, library):
    """Four threads run one InferenceSession: the real library has made one session."""
    env = dict(package_env, SDX_ORT_LIBRARY=str(library))
    text = f"(sardonyx.set_default_logger_severity(1), at_once(session(['{CPU}'])))[1]"
    done = subprocess.run([sys.executable, "-c", CHILD, str(HERE), text], env=env,
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [True] * 40
    made = [line for line in done.stderr.split("\n") if "ort] Session successfully initialized" in line]
    assert len(made) == 1, done.stderr[-4000:]
